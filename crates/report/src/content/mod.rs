//! What a report says, in the seeds' order of analysis: definitions; what was
//! offered, and whether the run can be trusted; phases and latencies; mean
//! against tail; throughput and resources; directions; goodput, by which a
//! change is judged.

mod conditions;
mod latency;
mod result;

use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::validity::Verdict;

use crate::document::Document;
use crate::lang::Lang;
use crate::number::{count, percent, short};

/// The latency rows of the main table, in order.
pub const LATENCIES: &[&str] =
    &["ttft_ms", "ttfc_ms", "tpot_ms", "itl_ms", "icl_ms", "e2el_ms", "generation_ms"];

/// The whole report. `rows` chooses the rows of the latency table among
/// [`LATENCIES`]; without it all are there.
pub fn document(summary: &Summary, rows: Option<&[&'static str]>, _lang: Lang) -> Document {
    let mut page = head(summary);
    let rows = rows.unwrap_or(LATENCIES);
    conditions::definitions(&mut page, summary);
    conditions::offered(&mut page, summary);
    conditions::failures(&mut page, summary);
    conditions::workload(&mut page, summary);
    latency::phases(&mut page, summary, rows);
    latency::mean_against_tail(&mut page, summary, rows);
    result::throughput(&mut page, summary);
    result::resources(&mut page, summary);
    result::directions(&mut page, summary);
    result::goodput(&mut page, summary);
    result::caveats(&mut page, summary);
    page
}

fn head(summary: &Summary) -> Document {
    let facts = &summary.facts;
    let simulated =
        if facts.simulated { " · SIMULATED: the embedded engine answered" } else { "" };
    let parts = [Some(facts.target.as_str()), Some(facts.api.as_str())];
    let known = [facts.model.as_deref(), facts.engine.as_deref()];
    let parts: Vec<&str> =
        parts.into_iter().chain(known).flatten().filter(|part| !part.is_empty()).collect();
    let mut lines = vec![parts.join(" · ")];
    if !facts.run_id.is_empty() {
        lines.push(format!("run {}", facts.run_id));
    }
    Document {
        title: format!("goodput report{simulated}"),
        verdict: Some(summary.validity.verdict),
        headline: headline(summary),
        lines,
        ..Document::default()
    }
}

/// The run on one line. Of an INVALID run it gives the reason and no figure,
/// because its figures do not describe the server. Of a run with failures it
/// says how many requests the latencies are of, and where few samples lie
/// beyond a percentile, how many there are.
fn headline(summary: &Summary) -> String {
    let validity = &summary.validity;
    if validity.verdict == Verdict::Invalid {
        let why = validity.reasons.first().map_or("", |reason| reason.text.as_str());
        return format!("INVALID · {why}");
    }
    let mut parts = vec![validity.verdict.name().to_owned()];
    if let Some(goodput) = &summary.goodput {
        let rate = goodput.req_s.map_or("n/a".to_owned(), |rate| format!("{} req/s", short(rate)));
        let attained = goodput
            .attainment
            .map_or(String::new(), |share| format!(" ({} attained)", percent(share)));
        parts.push(format!("goodput {rate}{attained}"));
    }
    let outcomes = &summary.outcomes;
    if outcomes.ok < outcomes.total() {
        parts.push(format!("of the {} of {} ok:", count(outcomes.ok), count(outcomes.total())));
    }
    for (symbol, key, name) in [("TTFT P99", "ttft_ms", "p99"), ("TPOT P50", "tpot_ms", "p50")] {
        let figures = distribution(&summary.metrics, key).filter(|figures| figures.n > 0);
        parts.push(match figures.and_then(|figures| Some((figures, figures.figure(name)?))) {
            Some((figures, ms)) => {
                let few = figures.few_samples.iter().any(|few| few == name);
                let few = if few { format!(" (n={})", count(figures.n)) } else { String::new() };
                format!("{symbol} {} ms{few}", short(ms))
            }
            None => format!("{symbol} n/a"),
        });
    }
    let output = summary.throughput.output_tok_s;
    parts.push(
        output
            .map_or("output tok/s n/a".to_owned(), |rate| format!("{} output tok/s", short(rate))),
    );
    parts.join(" · ").replace("ok: · ", "ok: ")
}

/// The distribution of this key.
fn distribution<'a>(
    among: &'a [(&'static str, Distribution)],
    key: &str,
) -> Option<&'a Distribution> {
    among.iter().find(|(name, _)| *name == key).map(|(_, figures)| figures)
}

/// A figure of a distribution, or what bounds it.
fn bounded(figures: &Distribution, name: &str) -> String {
    if let Some(value) = figures.figure(name) {
        return short(value);
    }
    if let Some((_, least)) = figures.at_least.iter().find(|(known, _)| *known == name) {
        return format!("≥ {}", short(*least));
    }
    if figures.unbounded.contains(&name) { "never".to_owned() } else { "n/a".to_owned() }
}

/// "n/a" with the reason that the summary gives for this key.
fn missing(summary: &Summary, key: &str) -> String {
    let reason = summary.absent.iter().find(|(name, _)| name == key).map(|(_, reason)| reason);
    format!("n/a ({})", reason.map_or("not measured", String::as_str))
}
