//! What was achieved, and at what cost: throughput, resources, directions,
//! goodput, caveats.

use measure::definition::ThroughputWindow;
use measure::goodput::{Asked, Goodput};
use measure::metric::find;
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::undefined::Undefined;

use super::{distribution, few_samples, missing, not_available};
use crate::catalogue::report as words;
use crate::document::{Document, symbol};
use crate::lang::Lang;
use crate::number::{count, duration_ms, percent, short};

pub(super) fn throughput(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let rates = &summary.throughput;
    let rule = lang.pick(summary.definition.card().throughput);
    page.section("throughput", &lang.fill(words::THROUGHPUT, &[("rule", &rule)]));
    let rows = [
        ("output_tok_s", rates.output_tok_s),
        ("input_tok_s", rates.input_tok_s),
        ("input_computed_tok_s", rates.input_computed_tok_s),
        ("input_cached_tok_s", rates.input_cached_tok_s),
        ("total_tok_s", rates.total_tok_s),
        ("req_s", rates.req_s),
        ("wasted_tok_s", rates.wasted_tok_s),
    ];
    let generates = summary.facts.endpoint.generates();
    for (key, value) in rows {
        // Why the others are missing is said once, of the latencies.
        if !generates && ["output_tok_s", "total_tok_s", "wasted_tok_s"].contains(&key) {
            continue;
        }
        let Some(metric) = find(key) else { continue };
        let value = match value {
            Some(value) => format!("{} {}", short(value), metric.unit.symbol()),
            None => missing(summary, &format!("throughput.{key}"), lang),
        };
        page.figure(metric.key, symbol(metric.symbol), &value);
    }
    page.pair(words::IN_STEADY, &in_steady(summary, lang));
    if generates {
        page.figure("interactivity_tok_s", words::INTERACTIVITY, &interactivity(summary, lang));
    }
    if let Some(peaks) = summary.peaks {
        let (events, requests) =
            (short(peaks.max_output_tokens_per_s), count(peaks.max_concurrent_requests));
        page.pair(words::PEAK_SECOND, &lang.fill(words::PEAK_EVENTS, &[("n", &events)]));
        page.more(&lang.fill(words::PEAK_REQUESTS, &[("n", &requests)]));
    }
}

fn in_steady(summary: &Summary, lang: Lang) -> String {
    let steady = &summary.steady;
    if steady.window.is_err() {
        return lang.pick(words::NO_STEADY_SEE).to_owned();
    }
    let output = match steady.output_tok_s {
        Some(rate) => lang.fill(words::OUTPUT_RATE, &[("rate", &short(rate))]),
        None => {
            let why = lang.pick(Undefined::NoTokenCount.texts());
            lang.fill(words::NO_OUTPUT_RATE, &[("why", &why)])
        }
    };
    if !summary.facts.endpoint.generates()
        && let Some(rate) = steady.req_s
    {
        return lang.fill(words::REQUEST_RATE, &[("rate", &short(rate))]);
    }
    let requests = match steady.req_s {
        Some(rate) => lang.fill(words::REQUEST_RATE, &[("rate", &short(rate))]),
        None => {
            let why = lang.pick(Undefined::NoTime.texts());
            lang.fill(words::NO_REQUEST_RATE, &[("why", &why)])
        }
    };
    [output, requests].join(lang.pick(words::COMMA))
}

fn interactivity(summary: &Summary, lang: Lang) -> String {
    let tpot = distribution(&summary.metrics, "tpot_ms");
    let known = summary.interactivity_tok_s.iter().find(|(name, _)| *name == "p90");
    if let Some((_, Some(tok_s))) = known {
        let few = tpot.map_or(String::new(), |figures| few_samples(figures, "p90", lang));
        return lang.fill(words::INTERACTIVITY_TAIL, &[("rate", &short(*tok_s)), ("few", &few)]);
    }
    let why = tpot.map_or(Undefined::NoSamples, Distribution::reason);
    not_available(lang.pick(why.texts()), lang)
}

pub(super) fn goodput(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    page.section("goodput", lang.pick(words::GOODPUT_TITLE));
    let Some(goodput) = &summary.goodput else {
        page.line(lang.pick(words::NO_SLO));
        return;
    };
    page.pair(words::SLO_JOINTLY, &goodput.slo.to_string());
    let rate = |value: Option<f64>, unit: &str| match value {
        Some(value) => format!("{} {unit}", short(value)),
        None => lang.pick(words::NO_WINDOW).to_owned(),
    };
    let tokens = if summary.facts.endpoint.generates() {
        rate(goodput.tok_s, "tok/s")
    } else {
        "n/a".to_owned()
    };
    let rates = lang.fill(
        words::GOODPUT_RATES,
        &[
            ("requests", &rate(goodput.req_s, "req/s")),
            ("tokens", &tokens),
            ("window", &window(summary, lang)),
        ],
    );
    page.figure("goodput_req_s", words::GOODPUT, &rates);
    page.figure("attainment", words::ATTAINMENT, &share(goodput.good, goodput.of, lang));
    let mut pairs: Vec<(String, String)> = goodput
        .per_slo
        .iter()
        .map(|result| {
            let label = result.label.as_ref().map_or(String::new(), |label| format!("{label}: "));
            (format!("{label}{}", result.term), share(result.met, result.of, lang))
        })
        .collect();
    pairs.extend(goodput.per_label.iter().map(|result| {
        let figures = share(result.good, result.of, lang);
        let asked = asked(goodput, &result.asked, lang);
        (format!("{}={}", result.name, result.value), format!("{figures}{asked}"))
    }));
    page.pairs(pairs);
    exceptions(page, goodput);
}

/// By what the requests with a label were judged, where not all of the run
/// were judged alike.
fn asked(goodput: &Goodput, asked: &Asked, lang: Lang) -> String {
    if goodput.slo.labelled.is_empty() {
        return String::new();
    }
    let words = match asked {
        Asked::Nothing => lang.pick(words::NO_OWN_SLO).to_owned(),
        Asked::Same(terms) => lang.fill(words::OWN_SLO, &[("slo", terms)]),
        Asked::Several => lang.pick(words::SEVERAL_SLOS).to_owned(),
    };
    format!(" · {words}")
}

/// What goodput divides by: not the makespan of the other rates where arrivals
/// follow a schedule.
fn window(summary: &Summary, lang: Lang) -> String {
    if summary.definition.window == ThroughputWindow::WholeRun {
        return lang.pick(words::OVER_DURATION).to_owned();
    }
    let load = &summary.load;
    match load.arrival_window_s.filter(|_| load.goodput_window_s == load.arrival_window_s) {
        Some(s) => lang.fill(words::OVER_ARRIVALS, &[("length", &duration_ms(s * 1e3))]),
        None => lang.pick(words::OVER_MAKESPAN).to_owned(),
    }
}

fn share(part: u64, of: u64, lang: Lang) -> String {
    if of == 0 {
        return lang.pick(words::NONE_JUDGED).to_owned();
    }
    let share = percent(part as f64 / of as f64);
    lang.fill(words::SHARE_OF, &[("share", &share), ("part", &count(part)), ("of", &count(of))])
}

/// Requests that the share does not tell of.
fn exceptions(page: &mut Document, goodput: &Goodput) {
    let lang = page.lang;
    if goodput.vacuous > 0 {
        page.sentence(2, &lang.fill(words::VACUOUS, &[("n", &count(goodput.vacuous))]));
    }
    if let (true, Some((low, high))) = (goodput.undecided > 0, goodput.bounds) {
        let undecided = lang.fill(
            words::UNDECIDED,
            &[("n", &count(goodput.undecided)), ("low", &percent(low)), ("high", &percent(high))],
        );
        page.sentence(2, &undecided);
    }
    if goodput.not_asked > 0 {
        page.sentence(2, &lang.fill(words::NOT_ASKED, &[("n", &count(goodput.not_asked))]));
    }
    if goodput.client_faults > 0 {
        page.sentence(2, &lang.fill(words::CLIENT_FAULTS, &[("n", &count(goodput.client_faults))]));
    }
}

pub(super) fn caveats(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    page.section("caveats", lang.pick(words::CAVEATS));
    // The owner of the tail is said beside the tail.
    let caveats = || summary.caveats.iter().filter(|caveat| caveat.id != "tail_owner");
    if caveats().next().is_none() && summary.answer_warnings.is_empty() {
        page.line(lang.pick(words::NO_CAVEATS));
    }
    for caveat in caveats() {
        page.sentence(2, lang.sentence(&caveat.text));
    }
    if !summary.answer_warnings.is_empty() {
        let warnings = summary.answer_warnings.iter();
        let warnings: Vec<String> = warnings
            .map(|(name, n)| lang.fill(words::WARNING, &[("name", name), ("n", &count(*n))]))
            .collect();
        let warnings = warnings.join(lang.pick(words::COMMA));
        page.sentence(2, &lang.fill(words::ANSWER_WARNINGS, &[("warnings", &warnings)]));
    }
}
