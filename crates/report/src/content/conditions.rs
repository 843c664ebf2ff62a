//! What the figures mean and whether they can be believed: definitions, load,
//! validity, failures, workload.

use std::fmt::Display;

use measure::conversations::Conversations;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind};
use measure::metric::Text;
use measure::outcome::FailureKind;
use measure::replay::Kept;
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::undefined::Undefined;

use super::{bounded, distribution, missing, not_available, p50_p99_max};
use crate::catalogue::report as words;
use crate::document::{Document, symbol};
use crate::explain;
use crate::lang::Lang;
use crate::number::{count, duration_ms, percent, short};

/// Characters of a server's message that are shown.
const MESSAGE_LIMIT: usize = 300;

pub(super) fn definitions(page: &mut Document, summary: &Summary) {
    let card = summary.definition.card();
    let lang = page.lang;
    page.section("definitions", &lang.fill(words::DEFINITIONS, &[("name", &card.name)]));
    let span = |end| format!("{} → {}", lang.pick(card.ttft_start), lang.pick(end));
    let generates = summary.facts.endpoint.generates();
    if generates {
        page.figure("ttft_ms", symbol("TTFT"), &span(card.ttft_end));
    }
    page.figure("e2el_ms", symbol("E2EL"), &span(card.e2el_end));
    if generates {
        page.figure("tpot_ms", symbol("TPOT"), lang.pick(card.tpot));
        page.figure("icl_ms", words::GAPS, lang.pick(card.itl_unit));
        page.pair(words::TOKEN_COUNTS, &token_source(summary, lang));
    }
    page.pair(words::PERCENTILES, lang.pick(card.percentiles));
    page.pair(words::FAILURES, lang.pick(card.failures));
    if summary.facts.load.kind == LoadKind::Capped {
        page.pair(words::CAP, lang.pick(card.cap));
    }
}

fn token_source(summary: &Summary, lang: Lang) -> String {
    let sources: Vec<String> = summary
        .tokens
        .sources
        .iter()
        .map(|(source, number)| {
            let (source, n) = (source.name(), count(*number));
            lang.fill(words::SOURCE_OF_ANSWERS, &[("source", &source), ("n", &n)])
        })
        .collect();
    if sources.is_empty() {
        return lang.pick(words::NO_ANSWER_COUNTED).to_owned();
    }
    sources.join(lang.pick(words::COMMA))
}

pub(super) fn offered(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let (load, figures) = (&summary.facts.load, &summary.load);
    page.section("offered", lang.pick(words::OFFERED_TITLE));
    page.pair(words::LOAD, &load_words(load, lang));
    let rate = |value: Option<f64>, key: &str| match value {
        Some(value) => format!("{} req/s", short(value)),
        None => missing(summary, key, lang),
    };
    let asked = load
        .request_rate
        .map_or(String::new(), |rate| lang.fill(words::ASKED_FOR, &[("rate", &short(rate))]));
    let offered = rate(figures.offered_rps, "load.offered_rps");
    page.figure("offered_rps", words::OFFERED, &format!("{offered}{asked}"));
    page.figure("released_rps", words::RELEASED, &rate(figures.released_rps, "load.released_rps"));
    page.figure(
        "completed_rps",
        words::COMPLETED,
        &rate(figures.completed_rps, "load.completed_rps"),
    );
    let most = counted(u64::from(figures.max_in_flight), words::REQUEST, words::REQUESTS, lang);
    page.figure("max_in_flight", words::IN_FLIGHT, &most);
    let makespan = match figures.duration_s {
        Some(s) => duration_ms(s * 1e3),
        None => missing(summary, "load.duration_s", lang),
    };
    page.figure("duration_s", words::MAKESPAN, &makespan);
    page.pair(words::OUTCOMES, &outcomes(summary, lang));
    if let Some(figures) = &summary.conversations {
        conversations(page, figures);
    }
    validity(page, summary);
}

/// What the headline holds for: without lengths, arrivals and the state of the
/// cache two figures are not comparable.
pub(super) fn in_one_line(summary: &Summary, lang: Lang) -> String {
    let (load, workload) = (&summary.facts.load, &summary.facts.workload);
    let asked = |lengths: &str| asked_length(stated(lengths, lang), lang);
    let rate = load.request_rate.map_or(String::new(), |rate| format!(" {} req/s", short(rate)));
    lang.fill(
        words::CONDITIONS,
        &[
            ("input", &asked(&workload.input_lengths)),
            ("output", &asked(&workload.output_lengths)),
            ("load", &format!("{}{rate}", load_words(load, lang))),
            ("regime", &stated(&workload.cache_regime, lang)),
        ],
    )
}

fn load_words(load: &LoadFacts, lang: Lang) -> String {
    let users = load.users.map(u64::from);
    let kind = match (load.kind, users) {
        (LoadKind::Open, _) => lang.pick(words::OPEN).to_owned(),
        (LoadKind::Capped, Some(users)) => lang.fill(words::CAPPED, &[("users", &users)]),
        (LoadKind::Capped, None) => lang.pick(words::CAPPED_SOMEWHERE).to_owned(),
        (LoadKind::Closed, Some(users)) => {
            let users = counted(users, words::USER, words::USERS, lang);
            lang.fill(words::CLOSED, &[("users", &users)])
        }
        (LoadKind::Closed, None) => lang.pick(words::CLOSED_SOMEHOW).to_owned(),
        (LoadKind::Burst, _) => lang.pick(words::BURST).to_owned(),
        (LoadKind::Unknown, _) => lang.pick(words::LOAD_UNKNOWN).to_owned(),
    };
    if load.arrivals.is_empty() {
        return kind;
    }
    [kind.as_str(), load.arrivals.as_str()].join(lang.pick(words::COMMA))
}

/// A number with its noun, of which English has two forms.
fn counted(number: u64, one: Text, several: Text, lang: Lang) -> String {
    lang.fill(if number == 1 { one } else { several }, &[("n", &count(number))])
}

fn validity(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let validity = &summary.validity;
    page.verdict(words::VALIDITY, validity.verdict);
    for reason in &validity.reasons {
        let (verdict, text) = (reason.verdict.name(), lang.sentence(&reason.text));
        page.sentence(4, &lang.fill(words::REASON, &[("verdict", &verdict), ("text", &text)]));
    }
    let three = |figures: Option<[f64; 3]>, key: &str| match figures {
        Some(figures) => {
            let [p50, p99, max] = figures.map(|us| duration_ms(us / 1e3));
            p50_p99_max([&p50, &p99, &max], lang)
        }
        None => missing(summary, key, lang),
    };
    page.figure(
        "lateness_us",
        words::SENT_LATE,
        &three(validity.lateness_us, "validity.lateness_us"),
    );
    if let Some(length) = validity.burst_length {
        page.pair(words::BURST_WITHIN, &duration_ms(length.ms()));
    }
    page.figure("stamp_error_p99_us", words::STAMPS, &stamps(&summary.facts.instrument, lang));
    page.figure(
        "client_lag_us",
        words::CLIENT_LAG,
        &three(validity.client_lag_us, "validity.client_lag_us"),
    );
    page.pair(words::FLOOR, &floor(summary, lang));
    page.pair(words::STEADY, &steady(summary, lang));
}

/// What the client errs by on this machine when it has little to do.
fn floor(summary: &Summary, lang: Lang) -> String {
    let Some(floor) = &summary.facts.instrument.floor else {
        return missing(summary, "validity.instrument_floor", lang);
    };
    let p99 = |figures: &[f64]| duration_ms(figures[1] / 1e3);
    lang.fill(
        words::FLOOR_FIGURES,
        &[
            ("late", &p99(&floor.lateness_us)),
            ("lag", &p99(&floor.client_lag_us)),
            ("stamp", &p99(&floor.stamp_us)),
            ("chunks", &short(floor.highest_valid_chunks_s)),
        ],
    )
}

fn steady(summary: &Summary, lang: Lang) -> String {
    let steady = &summary.steady;
    match &steady.window {
        Ok(window) => lang.fill(
            words::STEADY_WINDOW,
            &[
                ("length", &duration_ms(window.length().ms())),
                ("from", &duration_ms(window.from.ms())),
                ("until", &duration_ms(window.until.ms())),
                ("n", &steady.mean_in_flight.map_or("n/a".to_owned(), short)),
            ],
        ),
        Err(reason) => lang.fill(words::NO_STEADY, &[("why", &lang.sentence(&reason.text()))]),
    }
}

fn stamps(instrument: &InstrumentFacts, lang: Lang) -> String {
    let source = instrument.stamp_source.as_str();
    match (source, instrument.stamp_error_p99_us) {
        ("", _) => not_available(lang.pick(Undefined::NotInFile.texts()), lang),
        ("none", _) => lang.pick(words::NOTHING_RECEIVED).to_owned(),
        (source, Some(us)) => {
            let error = duration_ms(us / 1e3);
            lang.fill(words::STAMP_ERROR, &[("source", &source), ("error", &error)])
        }
        (source, None) => source.to_owned(),
    }
}

fn outcomes(summary: &Summary, lang: Lang) -> String {
    let counts = &summary.outcomes;
    let part = |number: u64, text: Text| lang.fill(text, &[("n", &count(number))]);
    let mut parts = vec![part(counts.ok, words::OK)];
    for (number, text) in [
        (counts.empty, words::EMPTY),
        (counts.failed, words::FAILED),
        (counts.not_sent, words::NOT_SENT),
        (counts.cancelled, words::CANCELLED),
    ] {
        if number > 0 {
            parts.push(part(number, text));
        }
    }
    let parts = parts.join(lang.pick(words::COMMA));
    lang.fill(words::OUTCOMES_OF, &[("parts", &parts), ("total", &count(counts.total()))])
}

/// Conversations as wholes.
fn conversations(page: &mut Document, figures: &Conversations) {
    let lang = page.lang;
    let mut parts = vec![lang.fill(words::HELD, &[("n", &count(figures.completed))])];
    for (number, text) in [(figures.broken, words::BROKEN), (figures.stopped, words::STOPPED)] {
        if number > 0 {
            parts.push(lang.fill(text, &[("n", &count(number))]));
        }
    }
    let parts = parts.join(lang.pick(words::COMMA));
    let (begun, ok, turns) = (count(figures.begun), count(figures.turns_ok), count(figures.turns));
    let values: [(&str, &dyn std::fmt::Display); 4] =
        [("parts", &parts), ("total", &begun), ("ok", &ok), ("turns", &turns)];
    page.pair(words::CONVERSATIONS, &lang.fill(words::CONVERSATIONS_OF, &values));
    if figures.duration.n > 0 {
        let [p50, p99, max] = ["p50", "p99", "max"].map(|name| bounded_ms(&figures.duration, name));
        page.more(&lang.fill(
            words::CONVERSATION_LASTED,
            &[("figures", &p50_p99_max([&p50, &p99, &max], lang))],
        ));
    }
}

fn bounded_ms(figures: &Distribution, name: &str) -> String {
    figures.figure(name).map_or_else(|| "n/a".to_owned(), duration_ms)
}

pub(super) fn failures(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let outcomes = &summary.outcomes;
    page.section("failures", lang.pick(words::FAILURES_TITLE));
    if outcomes.ok == outcomes.total() {
        let all = if outcomes.ok == 0 { words::NO_REQUESTS } else { words::ALL_WELL };
        page.line(lang.pick(all));
        return;
    }
    for (number, text) in
        [(outcomes.empty, words::EMPTY_MEANS), (outcomes.cancelled, words::CANCELLED_MEANS)]
    {
        if number > 0 {
            page.line(&lang.fill(text, &[("n", &count(number))]));
        }
    }
    for (kind, number) in &outcomes.by_kind {
        failure(page, summary, kind, *number);
    }
}

/// One kind of failure: what it means, what to try, and what was said.
fn failure(page: &mut Document, summary: &Summary, kind: &str, number: u64) {
    let lang = page.lang;
    let (means, hint) = explain::kind_words(kind)
        .map_or(("", ""), |(means, hint)| (lang.pick(means), lang.pick(hint)));
    let n = count(number);
    let means = lang.fill(words::KIND_MEANS, &[("n", &n), ("kind", &kind), ("means", &means)]);
    page.sentence(2, &means);
    if kind == FailureKind::HttpStatus.name() {
        let by_status = summary.outcomes.by_status.iter();
        let statuses: Vec<String> = by_status
            .map(|(status, number)| {
                lang.fill(words::HTTP_STATUS, &[("status", status), ("n", &count(*number))])
            })
            .collect();
        page.sentence(4, &statuses.join(lang.pick(words::COMMA)));
    }
    page.sentence(4, &lang.fill(words::HINT, &[("hint", &hint)]));
    if let Some(message) = summary.outcomes.messages.get(kind) {
        let message: String = message.chars().take(MESSAGE_LIMIT).collect();
        page.sentence(4, &lang.fill(words::FIRST_SAID, &[("message", &message)]));
    }
}

/// What became of a trace: its instants and lengths, planned and real.
pub(super) fn replay(page: &mut Document, summary: &Summary) {
    let Some(fidelity) = &summary.replay else { return };
    let lang = page.lang;
    page.section("replay", lang.pick(words::REPLAY_TITLE));
    let n = |number: u64| count(number);
    let of = &fidelity.of;
    let cut = of.window_s.map_or(String::new(), |[from, until]| {
        let [from, until] = [from, until].map(|s| duration_ms(s * 1e3));
        lang.fill(words::REPLAY_WINDOW, &[("from", &from), ("until", &until)])
    });
    let rows = [("rows", &n(of.rows) as &dyn Display), ("speed", &short(of.speed)), ("cut", &cut)];
    page.pair(words::REPLAY_OF, &lang.fill(words::REPLAY_ROWS, &rows));
    let counts = lang.fill(
        words::REPLAY_COUNTS,
        &[
            ("planned", &n(fidelity.planned)),
            ("sent", &n(fidelity.sent)),
            ("missed", &n(fidelity.missed)),
            ("duplicated", &n(fidelity.duplicated)),
        ],
    );
    page.pair(words::REPLAY_ARRIVALS, &counts);
    let lag = match fidelity.lag_ms {
        Some(figures) => {
            let [p50, p99, max] = figures.map(duration_ms);
            p50_p99_max([&p50, &p99, &max], lang)
        }
        None => not_available(lang.pick(words::NOTHING_SENT), lang),
    };
    page.pair(words::REPLAY_LAG, &lag);
    if let Some((planned, sent)) = fidelity.span_s {
        let [planned, sent] = [planned, sent].map(|s| duration_ms(s * 1e3));
        let spans = lang.fill(words::REPLAY_SPANS, &[("planned", &planned), ("sent", &sent)]);
        page.pair(words::REPLAY_SPAN, &spans);
    }
    page.pair(words::REPLAY_INPUT, &kept(&fidelity.input, lang));
    page.pair(words::REPLAY_OUTPUT, &kept(&fidelity.output, lang));
}

fn kept(kept: &Kept, lang: Lang) -> String {
    let Some(share) = kept.share() else {
        return not_available(lang.pick(Undefined::NoSamples.texts()), lang);
    };
    lang.fill(
        words::REPLAY_KEPT,
        &[
            ("requested", &count(kept.requested)),
            ("served", &count(kept.served)),
            ("share", &percent(share)),
            ("exact", &count(kept.exact)),
            ("n", &count(kept.n)),
        ],
    )
}

pub(super) fn workload(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let workload = &summary.facts.workload;
    page.section("workload", lang.pick(words::WORKLOAD));
    page.pair(words::PROMPTS, stated(&workload.source, lang));
    let input = length(summary, "input_tokens", stated(&workload.input_lengths, lang), lang);
    page.figure("input_tokens", words::INPUT_LENGTH, &input);
    let output = length(summary, "output_tokens", stated(&workload.output_lengths, lang), lang);
    page.figure("output_tokens", words::OUTPUT_LENGTH, &output);
    page.figure("cached_share", words::PREFIX_CACHE, &cache(summary, lang));
    let load = &summary.facts.load;
    if !load.schedule_hash.is_empty() {
        let (seed, digest) = (load.seed, load.schedule_hash.as_str());
        let schedule = lang.fill(words::SEED_AND_DIGEST, &[("seed", &seed), ("digest", &digest)]);
        page.pair(words::SCHEDULE, &schedule);
    }
    for note in &workload.notes {
        page.sentence(4, note);
    }
}

/// What the cache was to know, and what the answers say of it.
fn cache(summary: &Summary, lang: Lang) -> String {
    let regime = stated(&summary.facts.workload.cache_regime, lang);
    match summary.tokens.cached_share {
        Some(share) => {
            lang.fill(words::CACHED_SHARE, &[("regime", &regime), ("share", &percent(share))])
        }
        None => {
            let why = missing(summary, "tokens.cached_share", lang);
            lang.fill(words::CACHED_UNKNOWN, &[("regime", &regime), ("why", &why)])
        }
    }
}

fn stated(recorded: &str, lang: Lang) -> &str {
    if recorded.is_empty() { lang.pick(words::NOT_STATED) } else { recorded }
}

/// A length as it was asked for; a bare number is a fixed one.
fn asked_length(asked: &str, lang: Lang) -> String {
    if !asked.bytes().all(|byte| byte.is_ascii_digit()) {
        return asked.to_owned();
    }
    lang.fill(words::FIXED_LENGTH, &[("n", &asked)])
}

fn length(summary: &Summary, key: &str, asked: &str, lang: Lang) -> String {
    let asked = asked_length(asked, lang);
    let served = distribution(&summary.metrics, key);
    match served.filter(|figures| figures.n > 0) {
        Some(figures) => lang.fill(
            words::LENGTH_SERVED,
            &[
                ("asked", &asked),
                ("mean", &bounded(figures, "mean", lang)),
                ("p50", &bounded(figures, "p50", lang)),
                ("max", &bounded(figures, "max", lang)),
            ],
        ),
        None => {
            let why = served.map_or(Undefined::NoSamples, Distribution::reason);
            let why = lang.pick(why.texts());
            lang.fill(words::LENGTH_NOT_SERVED, &[("asked", &asked), ("why", &why)])
        }
    }
}
