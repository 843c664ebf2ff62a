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

use crate::catalogue::report as words;
use crate::document::Document;
use crate::lang::Lang;
use crate::number::{count, percent, short};

/// The latency rows of the main table, in order.
pub const LATENCIES: &[&str] =
    &["ttft_ms", "ttfc_ms", "tpot_ms", "itl_ms", "icl_ms", "e2el_ms", "generation_ms"];

/// The whole report. `rows` chooses the rows of the latency table among
/// [`LATENCIES`]; without it all are there.
pub fn document(summary: &Summary, rows: Option<&[&'static str]>, lang: Lang) -> Document {
    let mut page = head(summary, lang);
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

fn head(summary: &Summary, lang: Lang) -> Document {
    let facts = &summary.facts;
    let title = if facts.simulated { words::TITLE_SIMULATED } else { words::TITLE };
    let parts = [Some(facts.target.as_str()), Some(facts.api.as_str())];
    let known = [facts.model.as_deref(), facts.engine.as_deref()];
    let parts: Vec<&str> =
        parts.into_iter().chain(known).flatten().filter(|part| !part.is_empty()).collect();
    let mut lines = vec![parts.join(" · ")];
    if !facts.run_id.is_empty() {
        lines.push(lang.fill(words::RUN, &[("id", &facts.run_id)]));
    }
    Document {
        lang,
        title: lang.pick(title).to_owned(),
        verdict: Some(summary.validity.verdict),
        headline: headline(summary, lang),
        lines,
        ..Document::default()
    }
}

/// The run on one line. Of an INVALID run it gives the reason and no figure,
/// because its figures do not describe the server. Of a run with failures it
/// says how many requests the latencies are of, and where few samples lie
/// beyond a percentile, how many there are.
fn headline(summary: &Summary, lang: Lang) -> String {
    let validity = &summary.validity;
    if validity.verdict == Verdict::Invalid {
        let why = validity.reasons.first().map_or("", |reason| lang.sentence(&reason.text));
        return format!("INVALID · {why}");
    }
    let mut parts = vec![validity.verdict.name().to_owned()];
    if let Some(goodput) = &summary.goodput {
        let rate = goodput.req_s.map_or("n/a".to_owned(), |rate| format!("{} req/s", short(rate)));
        let attained = goodput.attainment.map_or(String::new(), |share| {
            lang.fill(words::HEADLINE_ATTAINED, &[("share", &percent(share))])
        });
        parts.push(format!("goodput {rate}{attained}"));
    }
    let outcomes = &summary.outcomes;
    let (ok, total) = (count(outcomes.ok), count(outcomes.total()));
    let mut of = if outcomes.ok < outcomes.total() {
        lang.fill(words::HEADLINE_OF, &[("ok", &ok), ("total", &total)])
    } else {
        String::new()
    };
    let generates = summary.facts.endpoint.generates();
    let figures = if generates {
        [("TTFT P99", "ttft_ms", "p99"), ("TPOT P50", "tpot_ms", "p50")]
    } else {
        [("E2EL P50", "e2el_ms", "p50"), ("E2EL P99", "e2el_ms", "p99")]
    };
    for (symbol, key, name) in figures {
        let figures = distribution(&summary.metrics, key).filter(|figures| figures.n > 0);
        let part = match figures.and_then(|figures| Some((figures, figures.figure(name)?))) {
            Some((figures, ms)) => {
                format!("{symbol} {} ms{}", short(ms), few_samples(figures, name, lang))
            }
            None => format!("{symbol} n/a"),
        };
        parts.push(format!("{}{part}", std::mem::take(&mut of)));
    }
    let throughput = &summary.throughput;
    let rate = if generates { throughput.output_tok_s } else { throughput.input_tok_s };
    parts.push(match rate {
        Some(rate) if !generates => lang.fill(words::HEADLINE_INPUT, &[("rate", &short(rate))]),
        None if !generates => lang.pick(words::HEADLINE_NO_INPUT).to_owned(),
        Some(rate) => lang.fill(words::HEADLINE_OUTPUT, &[("rate", &short(rate))]),
        None => lang.pick(words::HEADLINE_NO_OUTPUT).to_owned(),
    });
    parts.join(" · ")
}

/// How many samples there are, where few lie beyond this figure.
fn few_samples(figures: &Distribution, name: &str, lang: Lang) -> String {
    if figures.few_samples.iter().any(|few| few == name) {
        lang.fill(words::FEW, &[("n", &count(figures.n))])
    } else {
        String::new()
    }
}

/// The distribution of this key.
fn distribution<'a>(
    among: &'a [(&'static str, Distribution)],
    key: &str,
) -> Option<&'a Distribution> {
    among.iter().find(|(name, _)| *name == key).map(|(_, figures)| figures)
}

/// A figure of a distribution, or what bounds it.
fn bounded(figures: &Distribution, name: &str, lang: Lang) -> String {
    if let Some(value) = figures.figure(name) {
        return short(value);
    }
    if let Some((_, least)) = figures.at_least.iter().find(|(known, _)| *known == name) {
        return format!("≥ {}", short(*least));
    }
    let never = figures.unbounded.contains(&name);
    if never { lang.pick(words::NEVER).to_owned() } else { "n/a".to_owned() }
}

/// Why there is no value for this key, as the summary says.
fn why<'a>(summary: &'a Summary, key: &str, lang: Lang) -> &'a str {
    let reason = summary.absent.iter().find(|(name, _)| name == key).map(|(_, reason)| reason);
    reason.map_or(lang.pick(words::NOT_MEASURED), |reason| lang.sentence(reason))
}

/// "n/a" with a reason.
fn not_available(why: &str, lang: Lang) -> String {
    lang.fill(words::NOT_AVAILABLE, &[("why", &why)])
}

/// "n/a" with the reason that the summary gives for this key.
fn missing(summary: &Summary, key: &str, lang: Lang) -> String {
    not_available(why(summary, key, lang), lang)
}

/// Three figures in this order: P50, P99 and the largest.
fn p50_p99_max(figures: [&str; 3], lang: Lang) -> String {
    let [p50, p99, max] = figures;
    lang.fill(words::P50_P99_MAX, &[("p50", &p50), ("p99", &p99), ("max", &max)])
}
