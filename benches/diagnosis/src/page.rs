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
    page.push_str("\n## What was found and is not there\n\n");
    page.push_str(
        "Of all findings, not only the first: neither was it put in, nor does taking it away mend \
         half of what is asked of a cause. Statements about the load or the measurement that no \
         change of the world can prove (V4, E1) are among them.\n\n| Said to be | Rules |\n|---|---|\n",
    );
    for (confidence, row) in result["unfounded"].as_object().into_iter().flatten() {
        page.push_str(&format!("| {confidence} | {} |\n", counted(row)));
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
            let known = CAUSES.iter().find(|known| known.id == cause);
            let codes = known.map_or(String::new(), |known| match known.client {
                Seen::As(codes) if key != "first_by_cause" => codes.join(", "),
                _ => known.codes.join(", "),
            });
            page.push_str(&format!("| {cause} | {codes} | {} |\n", counted(row)));
        }
    }
    page.push_str("\n## Causes\n\n| Cause | What is wrong |\n|---|---|\n");
    for cause in CAUSES {
        page.push_str(&format!("| {} | {} |\n", cause.id, cause.text));
    }
    page
}

/// Codes with their counts, the most frequent first.
fn counted(row: &Value) -> String {
    let each = row.as_object().into_iter().flatten();
    let mut counts: Vec<(&String, u64)> =
        each.map(|(code, n)| (code, n.as_u64().unwrap_or(0))).collect();
    counts.sort_by_key(|(code, n)| (std::cmp::Reverse(*n), (*code).clone()));
    let words: Vec<String> = counts.iter().map(|(code, n)| format!("{code} {n}")).collect();
    words.join(", ")
}
