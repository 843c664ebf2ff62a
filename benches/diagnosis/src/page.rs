//! The page of a result.

use serde_json::Value;

use crate::cause::{CAUSES, Seen};

/// The page that a result's file makes.
pub fn page(result: &Value) -> String {
    let text = |key: &str| result[key].as_str().unwrap_or_default().to_owned();
    let mut page = format!(
        "<!-- Written by cargo run --release -p diagnosis -- --page; do not edit. -->\n\n\
         # How often the cause is named\n\n\
         Scenarios of [the engine model](engine-model.md) with known causes, judged by the rules of \
         `goodput diagnose`. A scenario draws a model, an accelerator, lengths, a load relative to \
         the capacity that a saturated run found, and a cause with its severity; three in ten have \
         two. A draw is kept only when taking the cause away mends most of what is wrong, and no \
         other limit does; a healthy one only when no limit gains much. Rules see what a run has: \
         records, scrapes of `/metrics` once a second, and what a user may have said of the \
         machines. They were tuned on seeds 0 to 99; these are others.\n\n\
         Run of {}: seeds {}, {} healthy runs. Intervals are Wilson's at 95 %.\n\n\
         | | Share | Interval | Of | Goal | |\n|---|---|---|---|---|---|\n",
        text("date"),
        text("seeds"),
        result["healthy"],
    );
    for share in result["shares"].as_array().into_iter().flatten() {
        let percent = |key: &str| match share[key].as_f64() {
            Some(value) => format!("{:.1} %", 100.0 * value),
            None => "—".to_owned(),
        };
        let met = match share["met"].as_bool() {
            Some(true) => "met",
            Some(false) => "not met",
            None => "",
        };
        page.push_str(&format!(
            "| {} | {} | {} to {} | {} | {} | {met} |\n",
            share["name"].as_str().unwrap_or_default(),
            percent("share"),
            percent("low"),
            percent("high"),
            share["of"],
            share["goal"].as_str().unwrap_or_default(),
        ));
    }
    let sections = [
        (
            "What is first",
            "first_by_cause",
            "The rule of the first finding, by cause, of scenarios with one.",
        ),
        (
            "What is first without the server's metrics",
            "first_by_cause_client_alone",
            "The same by what the client saw alone; where nothing is claimed, nothing is right.",
        ),
    ];
    for (title, key, words) in sections {
        page.push_str(&format!(
            "\n## {title}\n\n{words}\n\n| Cause | Its rules | First |\n|---|---|---|\n"
        ));
        for (cause, row) in result[key].as_object().into_iter().flatten() {
            let mut counts: Vec<(&String, u64)> = row
                .as_object()
                .into_iter()
                .flatten()
                .map(|(code, n)| (code, n.as_u64().unwrap_or(0)))
                .collect();
            counts.sort_by_key(|(code, n)| (std::cmp::Reverse(*n), (*code).clone()));
            let first: Vec<String> = counts.iter().map(|(code, n)| format!("{code} {n}")).collect();
            let known = CAUSES.iter().find(|known| known.id == cause);
            let codes = known.map_or(String::new(), |known| match known.client {
                Seen::As(codes) if key != "first_by_cause" => codes.join(", "),
                _ => known.codes.join(", "),
            });
            page.push_str(&format!("| {cause} | {codes} | {} |\n", first.join(", ")));
        }
    }
    page.push_str("\n## Causes\n\n| Cause | What is wrong |\n|---|---|\n");
    for cause in CAUSES {
        page.push_str(&format!("| {} | {} |\n", cause.id, cause.text));
    }
    page
}
