//! What a report says, in the seeds' order of analysis: definitions; what was
//! offered, and whether the run can be trusted; phases and latencies; mean
//! against tail; throughput and resources; directions; goodput, by which a
//! change is judged.

mod beside;
mod conditions;
pub(crate) mod inside;
mod latency;
mod result;

use measure::metric::find;
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::use_case::{self, Headline};
use measure::validity::Verdict;

pub use beside::beside;
pub(crate) use beside::lints as lints_beside;

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
    conditions::replay(&mut page, summary);
    latency::phases(&mut page, summary, rows);
    latency::mean_against_tail(&mut page, summary, rows);
    result::throughput(&mut page, summary);
    inside::resources(&mut page, summary);
    inside::directions(&mut page, summary);
    result::goodput(&mut page, summary);
    result::caveats(&mut page, summary);
    inside::place_lints(&mut page, &summary.inside.lints);
    page
}

/// What limits a run and what to change, without its other figures: the stages
/// of TTFT, the findings, and numbers that are easily misread.
pub fn diagnosis(summary: &Summary, lang: Lang) -> Document {
    let simulated = summary.facts.simulated;
    let title = if simulated { words::DIAGNOSE_TITLE_SIMULATED } else { words::DIAGNOSE_TITLE };
    let mut page = Document { title: lang.pick(title).to_owned(), ..head(summary, lang) };
    inside::directions(&mut page, summary);
    page.section("stages", lang.pick(words::STAGES_TITLE));
    inside::stages(&mut page, summary);
    page.section("lints", lang.pick(words::LINTS_TITLE));
    let lints = &summary.inside.lints;
    if lints.is_empty() {
        page.line(lang.pick(words::NO_LINTS));
    }
    for lint in lints {
        page.sentence(2, &inside::lint_words(lint, lang));
    }
    page
}

/// The diagnosis in one paragraph, for the end of a report: the first finding,
/// or why there is none.
pub fn in_short(summary: &Summary, lang: Lang) -> String {
    let inside = &summary.inside;
    if summary.validity.verdict == Verdict::Invalid {
        return lang.pick(words::IN_SHORT_INVALID).to_owned();
    }
    let id = summary.facts.run_id.as_str();
    let run = if id.is_empty() { "latest" } else { id };
    let Some(first) = inside.findings.iter().flatten().next() else {
        let nothing = lang.pick(words::IN_SHORT_NOTHING);
        let Some(missing) = inside.missing.first() else { return nothing.to_owned() };
        let missing = lang.sentence(missing);
        let said: [(&str, &dyn std::fmt::Display); 3] =
            [("nothing", &nothing), ("missing", &missing), ("run", &run)];
        return lang.fill(words::IN_SHORT_NOT_SAID, &said);
    };
    let change = first.directions.first().map_or_else(String::new, |direction| {
        let text = lang.sentence(&direction.text);
        let flag = direction.flag.as_ref().map_or(String::new(), |flag| format!(" ({flag})"));
        format!("{text}{flag}")
    });
    let simulated = summary.facts.simulated;
    let text = if simulated { words::IN_SHORT_SIMULATED } else { words::IN_SHORT };
    lang.fill(
        text,
        &[
            ("confidence", &lang.pick(first.confidence.text())),
            ("title", &lang.sentence(&first.title)),
            ("says", &lang.sentence(&first.says)),
            ("change", &change),
            ("improves", &inside::symbols(first.improves, lang)),
            ("run", &run),
        ],
    )
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
    if let Some(use_case) = facts.workload.use_case.as_deref().and_then(use_case::find) {
        let reason = lang.pick(use_case.reason);
        let said = [("name", &use_case.name as &dyn std::fmt::Display), ("reason", &reason)];
        lines.push(lang.fill(words::USE_CASE, &said));
    }
    Document {
        lang,
        title: lang.pick(title).to_owned(),
        verdict: Some(summary.validity.verdict),
        headline: headline(summary, lang),
        conditions: conditions::in_one_line(summary, lang),
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
    for figure in first_figures(summary) {
        let part = headline_figure(summary, figure, lang);
        parts.push(format!("{}{part}", std::mem::take(&mut of)));
    }
    parts.join(" · ")
}

/// What the headline shows where the use case names nothing.
const USUAL: &[Headline] = &[
    Headline { key: "ttft_ms", statistic: "p99" },
    Headline { key: "tpot_ms", statistic: "p50" },
    Headline { key: "output_tok_s", statistic: "" },
];

/// The same for an endpoint that generates nothing.
const WITHOUT_TOKENS: &[Headline] = &[
    Headline { key: "e2el_ms", statistic: "p50" },
    Headline { key: "e2el_ms", statistic: "p99" },
    Headline { key: "input_tok_s", statistic: "" },
];

/// The figures that a report begins with.
fn first_figures(summary: &Summary) -> &'static [Headline] {
    if !summary.facts.endpoint.generates() {
        return WITHOUT_TOKENS;
    }
    let use_case = summary.facts.workload.use_case.as_deref().and_then(use_case::find);
    use_case
        .map(|use_case| use_case.headline)
        .filter(|figures| !figures.is_empty())
        .unwrap_or(USUAL)
}

fn headline_figure(summary: &Summary, figure: &Headline, lang: Lang) -> String {
    let Headline { key, statistic } = *figure;
    let throughput = &summary.throughput;
    let rate = match key {
        "output_tok_s" => {
            return match throughput.output_tok_s {
                Some(rate) => lang.fill(words::HEADLINE_OUTPUT, &[("rate", &short(rate))]),
                None => lang.pick(words::HEADLINE_NO_OUTPUT).to_owned(),
            };
        }
        "input_tok_s" => {
            return match throughput.input_tok_s {
                Some(rate) => lang.fill(words::HEADLINE_INPUT, &[("rate", &short(rate))]),
                None => lang.pick(words::HEADLINE_NO_INPUT).to_owned(),
            };
        }
        "total_tok_s" => Some(throughput.total_tok_s),
        _ if statistic.is_empty() => Some(None),
        _ => None,
    };
    // Of a model that reasons, a person sees the start of the text.
    let reasons = distribution(&summary.metrics, "thinking_ms").is_some_and(|of| of.n > 0);
    let chat = summary.facts.workload.use_case.as_deref() == Some("chat");
    let key = if reasons && chat && key == "ttft_ms" { "ttfc_ms" } else { key };
    let symbol = find(key).map_or(key, |metric| metric.symbol);
    if let Some(rate) = rate {
        let value = rate.map_or("n/a".to_owned(), short);
        return format!("{symbol} {value}");
    }
    let symbol = format!("{symbol} {}", statistic.to_uppercase());
    let figures = distribution(&summary.metrics, key).filter(|figures| figures.n > 0);
    match figures.and_then(|figures| Some((figures, figures.figure(statistic)?))) {
        Some((figures, ms)) => {
            format!("{symbol} {} ms{}", short(ms), few_samples(figures, statistic, lang))
        }
        None => format!("{symbol} n/a"),
    }
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
fn why(summary: &Summary, key: &str, lang: Lang) -> String {
    let reason = summary.reasons().into_iter().find(|(name, _)| name == key);
    let reason = reason.map(|(_, reason)| lang.sentence(&reason).to_owned());
    reason.unwrap_or_else(|| lang.pick(words::NOT_MEASURED).to_owned())
}

/// "n/a" with a reason.
fn not_available(why: &str, lang: Lang) -> String {
    lang.fill(words::NOT_AVAILABLE, &[("why", &why)])
}

/// "n/a" with the reason that the summary gives for this key.
fn missing(summary: &Summary, key: &str, lang: Lang) -> String {
    not_available(&why(summary, key, lang), lang)
}

/// Three figures in this order: P50, P99 and the largest.
fn p50_p99_max(figures: [&str; 3], lang: Lang) -> String {
    let [p50, p99, max] = figures;
    lang.fill(words::P50_P99_MAX, &[("p50", &p50), ("p99", &p99), ("max", &max)])
}
