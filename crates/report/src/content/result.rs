//! What was achieved, and at what cost: throughput, resources, directions,
//! goodput, caveats.

use measure::definition::ThroughputWindow;
use measure::goodput::Goodput;
use measure::metric::{Branch, How, METRICS, find};
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::undefined::Undefined;

use super::{distribution, missing};
use crate::document::Document;
use crate::number::{count, duration_ms, percent, short};

pub(super) fn throughput(page: &mut Document, summary: &Summary) {
    let rates = &summary.throughput;
    page.section("throughput", &format!("Throughput ({})", summary.definition.card().throughput));
    let rows = [
        ("output_tok_s", rates.output_tok_s),
        ("input_tok_s", rates.input_tok_s),
        ("input_computed_tok_s", rates.input_computed_tok_s),
        ("input_cached_tok_s", rates.input_cached_tok_s),
        ("total_tok_s", rates.total_tok_s),
        ("req_s", rates.req_s),
        ("wasted_tok_s", rates.wasted_tok_s),
    ];
    for (key, value) in rows {
        let Some(metric) = find(key) else { continue };
        let value = match value {
            Some(value) => format!("{} {}", short(value), metric.unit.symbol()),
            None => missing(summary, &format!("throughput.{key}")),
        };
        page.figure(metric.key, metric.symbol, &value);
    }
    let steady = &summary.steady;
    page.pair(
        "in the steady window",
        &match (&steady.window, steady.output_tok_s, steady.req_s) {
            (Err(_), ..) => "n/a (there is none, see 2)".to_owned(),
            (Ok(_), output, requests) => {
                let rate = |value: Option<f64>, unit: &str, why: Undefined| match value {
                    Some(value) => format!("{} {unit}", short(value)),
                    None => format!("{unit} n/a ({})", why.text()),
                };
                format!(
                    "{}, {}",
                    rate(output, "output tok/s", Undefined::NoTokenCount),
                    rate(requests, "req/s", Undefined::NoTime)
                )
            }
        },
    );
    page.figure("interactivity_tok_s", "interactivity", &interactivity(summary));
    if let Some(peaks) = summary.peaks {
        let events = short(peaks.max_output_tokens_per_s);
        page.pair("peak second", &format!("{events} events with a choice (vLLM's peak tok/s)"));
        let requests = count(peaks.max_concurrent_requests);
        page.pair("", &format!("{requests} requests touched (vLLM's peak concurrency)"));
    }
}

fn interactivity(summary: &Summary) -> String {
    let tpot = distribution(&summary.metrics, "tpot_ms");
    let known = summary.interactivity_tok_s.iter().find(|(name, _)| *name == "p90");
    if let Some((_, Some(tok_s))) = known {
        let few = tpot.filter(|figures| figures.few_samples.iter().any(|name| name == "p90"));
        let few = few.map_or(String::new(), |figures| format!(" (n={})", count(figures.n)));
        return format!("90 % of users get at least {} tok/s{few}", short(*tok_s));
    }
    let why = tpot.map_or(Undefined::NoSamples, Distribution::reason);
    format!("n/a ({})", why.text())
}

/// Figures of hardware and money, grouped by the reason why they are missing.
pub(super) fn resources(page: &mut Document, _: &Summary) {
    page.section("resources", "Resources");
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for metric in METRICS.iter().filter(|metric| metric.branch == Branch::Efficiency) {
        let How::Absent(reason) = metric.how else { continue };
        match reasons.iter_mut().find(|(text, _)| *text == reason.text()) {
            Some((_, symbols)) => symbols.push(metric.symbol),
            None => reasons.push((reason.text(), vec![metric.symbol])),
        }
    }
    for (reason, symbols) in reasons {
        page.sentence(2, &format!("{} n/a ({reason})", symbols.join(", ")));
    }
}

pub(super) fn directions(page: &mut Document, summary: &Summary) {
    page.section("directions", "Directions");
    page.pair("findings", &missing(summary, "findings"));
    page.sentence(
        2,
        "goodput explain WORD tells what a figure or a failure means and how it is misread",
    );
}

pub(super) fn goodput(page: &mut Document, summary: &Summary) {
    page.section("goodput", "Goodput and attainment, by which a change is judged");
    let Some(goodput) = &summary.goodput else {
        page.line("n/a (no SLO was given; add --goodput ttft:300 tpot:60, in milliseconds)");
        return;
    };
    page.pair("SLO, jointly", &goodput.slo.to_string());
    let rate = |value: Option<f64>, unit: &str| {
        value
            .map_or("n/a (the window has no length)".to_owned(), |v| format!("{} {unit}", short(v)))
    };
    page.figure(
        "goodput_req_s",
        "goodput",
        &format!(
            "{} · {} ({})",
            rate(goodput.req_s, "req/s"),
            rate(goodput.tok_s, "tok/s"),
            window(summary)
        ),
    );
    page.figure("attainment", "attainment", &share(goodput.good, goodput.of));
    let mut pairs: Vec<(String, String)> = goodput
        .per_slo
        .iter()
        .map(|result| {
            let name = format!("{} ≤ {} ms", result.term.quantity.name(), result.term.limit_ms);
            (name, share(result.met, result.of))
        })
        .collect();
    pairs.extend(goodput.per_label.iter().map(|result| {
        (format!("{}={}", result.name, result.value), share(result.good, result.of))
    }));
    page.pairs(pairs);
    exceptions(page, goodput);
}

/// What goodput divides by: not the makespan of the other rates where arrivals
/// follow a schedule.
fn window(summary: &Summary) -> String {
    if summary.definition.window == ThroughputWindow::WholeRun {
        return "over the duration of the run".to_owned();
    }
    match summary.load.arrival_window_s {
        Some(s) => format!("over the arrival window of {}", duration_ms(s * 1e3)),
        None => "over the makespan".to_owned(),
    }
}

fn share(part: u64, of: u64) -> String {
    if of == 0 {
        return "n/a (no request could be judged)".to_owned();
    }
    format!("{} ({} of {})", percent(part as f64 / of as f64), count(part), count(of))
}

/// Requests that the share does not tell of.
fn exceptions(page: &mut Document, goodput: &Goodput) {
    if goodput.vacuous > 0 {
        let number = count(goodput.vacuous);
        page.sentence(2, &format!("{number} good with one output token, where TPOT cannot apply"));
    }
    if let (true, Some((low, high))) = (goodput.undecided > 0, goodput.bounds) {
        page.sentence(
            2,
            &format!(
                "{} could not be judged: attainment lies between {} and {}",
                count(goodput.undecided),
                percent(low),
                percent(high)
            ),
        );
    }
    if goodput.client_faults > 0 {
        let number = count(goodput.client_faults);
        page.sentence(2, &format!("{number} never sent by the client's own fault stay out"));
    }
}

pub(super) fn caveats(page: &mut Document, summary: &Summary) {
    page.section("caveats", "Caveats");
    if summary.caveats.is_empty() && summary.answer_warnings.is_empty() {
        page.line("none");
    }
    for caveat in &summary.caveats {
        page.sentence(2, &caveat.text);
    }
    if !summary.answer_warnings.is_empty() {
        let warnings: Vec<String> = summary
            .answer_warnings
            .iter()
            .map(|(name, number)| format!("{name} {}", count(*number)))
            .collect();
        let warnings = warnings.join(", ");
        page.sentence(2, &format!("answers with a warning: {warnings} (goodput explain NAME)"));
    }
}
