//! What the figures mean and whether they can be believed: definitions, load,
//! validity, failures, workload.

use measure::facts::{InstrumentFacts, LoadFacts, LoadKind};
use measure::outcome::{FailureKind, NotSentKind};
use measure::summary::Summary;
use measure::undefined::Undefined;

use super::{bounded, distribution, missing};
use crate::document::Document;
use crate::number::{count, duration_ms, short};

/// Characters of a server's message that are shown.
const MESSAGE_LIMIT: usize = 300;

pub(super) fn definitions(page: &mut Document, summary: &Summary) {
    let card = summary.definition.card();
    page.section("definitions", &format!("Definitions ({})", card.name));
    page.figure("ttft_ms", "TTFT", &format!("{} → {}", card.ttft_start, card.ttft_end));
    page.figure("e2el_ms", "E2EL", &format!("{} → {}", card.ttft_start, card.e2el_end));
    page.figure("tpot_ms", "TPOT", card.tpot);
    page.figure("icl_ms", "gaps", card.itl_unit);
    page.pair("token counts", &token_source(summary));
    page.pair("percentiles", card.percentiles);
    page.pair("failures", card.failures);
    if summary.facts.load.kind == LoadKind::Capped {
        page.pair("cap", card.cap);
    }
}

fn token_source(summary: &Summary) -> String {
    let sources: Vec<String> = summary
        .tokens
        .sources
        .iter()
        .map(|(source, number)| format!("{} ({} answers)", source.name(), count(*number)))
        .collect();
    if sources.is_empty() { "n/a (no answer was counted)".to_owned() } else { sources.join(", ") }
}

pub(super) fn offered(page: &mut Document, summary: &Summary) {
    let (load, figures) = (&summary.facts.load, &summary.load);
    page.section("offered", "What was offered, and whether the run can be trusted");
    page.pair("load", &load_words(load));
    let rate = |value: Option<f64>, key: &str| match value {
        Some(value) => format!("{} req/s", short(value)),
        None => missing(summary, key),
    };
    let asked = load
        .request_rate
        .map_or(String::new(), |rate| format!(" (asked for: {} req/s)", short(rate)));
    let offered = rate(figures.offered_rps, "load.offered_rps");
    page.pair("offered", &format!("{offered}{asked}"));
    page.pair("released", &rate(figures.released_rps, "load.released_rps"));
    page.pair("completed", &rate(figures.completed_rps, "load.completed_rps"));
    page.pair("in flight, at most", &plural(u64::from(figures.max_in_flight), "request"));
    let makespan = match figures.duration_s {
        Some(s) => duration_ms(s * 1e3),
        None => missing(summary, "load.duration_s"),
    };
    page.pair("makespan", &makespan);
    page.pair("requests", &outcomes(summary));
    validity(page, summary);
}

fn load_words(load: &LoadFacts) -> String {
    let users = load.users.map(u64::from);
    let kind = match (load.kind, users) {
        (LoadKind::Open, _) => "open loop".to_owned(),
        (LoadKind::Capped, Some(users)) => format!("open loop capped at {users} in flight"),
        (LoadKind::Capped, None) => "open loop with a cap".to_owned(),
        (LoadKind::Closed, Some(users)) => format!("closed loop, {}", plural(users, "user")),
        (LoadKind::Closed, None) => "closed loop".to_owned(),
        (LoadKind::Burst, _) => "burst".to_owned(),
        (LoadKind::Unknown, _) => "n/a (the imported file does not say)".to_owned(),
    };
    if load.arrivals.is_empty() { kind } else { format!("{kind}, {}", load.arrivals) }
}

fn plural(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

fn validity(page: &mut Document, summary: &Summary) {
    let validity = &summary.validity;
    let verdict = validity.verdict;
    page.verdict("validity", verdict);
    for reason in &validity.reasons {
        page.sentence(4, &format!("{}: {}", reason.verdict.name(), reason.text));
    }
    let three = |figures: Option<[f64; 3]>, key: &str| match figures {
        Some(figures) => {
            let [p50, p99, max] = figures.map(|us| duration_ms(us / 1e3));
            format!("P50 {p50}, P99 {p99}, max {max}")
        }
        None => missing(summary, key),
    };
    page.pair("sent late by", &three(validity.lateness_us, "validity.lateness_us"));
    if let Some(length) = validity.burst_length {
        page.pair("burst sent within", &duration_ms(length.ms()));
    }
    page.pair("receive stamps", &stamps(&summary.facts.instrument));
    page.pair("client's own lag", &three(validity.client_lag_us, "validity.client_lag_us"));
    let floor = match &summary.facts.instrument.floor {
        Some(floor) => format!(
            "late P99 {}, lag P99 {}, stamp error P99 {}, valid up to {} chunks/s (selftest)",
            duration_ms(floor.lateness_us[1] / 1e3),
            duration_ms(floor.client_lag_us[1] / 1e3),
            duration_ms(floor.stamp_us[1] / 1e3),
            short(floor.highest_valid_chunks_s)
        ),
        None => missing(summary, "validity.instrument_floor"),
    };
    page.pair("floor of this machine", &floor);
    let steady = &summary.steady;
    page.pair(
        "steady window",
        &match (&steady.window, steady.mean_in_flight) {
            (Ok(window), in_flight) => format!(
                "{}, from {} to {}, {} in flight on average",
                duration_ms(window.length().ms()),
                duration_ms(window.from.ms()),
                duration_ms(window.until.ms()),
                in_flight.map_or("n/a".to_owned(), short)
            ),
            (Err(reason), _) => format!("none ({})", reason.text()),
        },
    );
}

fn stamps(instrument: &InstrumentFacts) -> String {
    let error = instrument.stamp_error_p99_us.map_or(String::new(), |us| {
        format!("; the arrival was at most {} earlier, at P99", duration_ms(us / 1e3))
    });
    match instrument.stamp_source.as_str() {
        "" => format!("n/a ({})", Undefined::NotInFile.text()),
        "none" => "n/a (nothing was received)".to_owned(),
        source => format!("{source}{error}"),
    }
}

fn outcomes(summary: &Summary) -> String {
    let counts = &summary.outcomes;
    let mut parts = vec![format!("{} ok", count(counts.ok))];
    for (number, name) in [
        (counts.empty, "empty"),
        (counts.failed, "failed"),
        (counts.not_sent, "not sent"),
        (counts.cancelled, "cancelled"),
    ] {
        if number > 0 {
            parts.push(format!("{} {name}", count(number)));
        }
    }
    format!("{} of {}", parts.join(", "), count(counts.total()))
}

pub(super) fn failures(page: &mut Document, summary: &Summary) {
    let outcomes = &summary.outcomes;
    page.section("failures", "What went wrong");
    if outcomes.ok == outcomes.total() {
        let all = if outcomes.ok == 0 {
            "n/a (there are no requests)"
        } else {
            "nothing: every request ended well"
        };
        page.line(all);
        return;
    }
    if outcomes.empty > 0 {
        page.line(&format!("{} empty: finished without any output", count(outcomes.empty)));
    }
    if outcomes.cancelled > 0 {
        let why = "stopped by goodput: an interrupt, the end of the run or a stop rule";
        page.line(&format!("{} cancelled: {why}", count(outcomes.cancelled)));
    }
    for (kind, number) in &outcomes.by_kind {
        let (means, hint) = words(kind);
        page.sentence(2, &format!("{} {kind}: {means}", count(*number)));
        if *kind == FailureKind::HttpStatus.name() {
            let statuses: Vec<String> = outcomes
                .by_status
                .iter()
                .map(|(status, number)| format!("HTTP {status}: {}", count(*number)))
                .collect();
            page.sentence(4, &statuses.join(", "));
        }
        page.sentence(4, &format!("hint: {hint}"));
        if let Some(message) = outcomes.messages.get(kind) {
            let message: String = message.chars().take(MESSAGE_LIMIT).collect();
            page.sentence(4, &format!("the first said: {message}"));
        }
    }
}

fn words(kind: &str) -> (&'static str, &'static str) {
    if let Some(kind) = FailureKind::from_name(kind) {
        return (kind.means(), kind.hint());
    }
    NotSentKind::from_name(kind).map_or(("", ""), |kind| (kind.means(), kind.hint()))
}

pub(super) fn workload(page: &mut Document, summary: &Summary) {
    let workload = &summary.facts.workload;
    page.section("workload", "Workload");
    page.pair("prompts", said(&workload.source));
    page.figure(
        "input_tokens",
        "input length",
        &length(summary, "input_tokens", said(&workload.input_lengths)),
    );
    page.figure(
        "output_tokens",
        "output length",
        &length(summary, "output_tokens", said(&workload.output_lengths)),
    );
    page.pair("prefix cache", said(&workload.cache_regime));
    let load = &summary.facts.load;
    if !load.schedule_hash.is_empty() {
        page.pair("schedule", &format!("seed {}, digest {}", load.seed, load.schedule_hash));
    }
    for note in &workload.notes {
        page.sentence(4, note);
    }
}

fn said(words: &str) -> &str {
    if words.is_empty() { "n/a (not stated)" } else { words }
}

fn length(summary: &Summary, key: &str, asked: &str) -> String {
    // A bare number is a fixed length.
    let unit = if asked.bytes().all(|byte| byte.is_ascii_digit()) { " tokens" } else { "" };
    let asked = format!("{asked}{unit}");
    let served = distribution(&summary.metrics, key);
    match served.filter(|figures| figures.n > 0) {
        Some(figures) => format!(
            "asked {asked}; served mean {}, P50 {}, max {} tokens",
            bounded(figures, "mean"),
            bounded(figures, "p50"),
            bounded(figures, "max")
        ),
        None => format!(
            "asked {asked}; served n/a ({})",
            served.map_or("no request has a value", |figures| figures.reason().text())
        ),
    }
}
