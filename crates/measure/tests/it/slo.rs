//! Objectives by label, by gaps and by what a person sees first.

use measure::facts::{LoadKind, RunFacts};
use measure::goodput::{Asked, Goodput};
use measure::slices::{Attained, Part};
use measure::slo::Slo;
use measure::threshold::{Outcome as Ruled, Threshold};
use measure::{Outcome, ReasoningDisclosure, Record, Warnings};

use crate::build::{
    Build, FINISH, REASONING, TEXT, TOOL_CALL, close, facts, records, request, streamed, summary,
};

fn asking(slo: &str) -> RunFacts {
    let mut facts = facts(LoadKind::Burst);
    facts.slo = Some(Slo::parse([slo]).unwrap_or_else(|error| panic!("{error}")));
    facts
}

fn judged(records: &[Record], slo: &str) -> Goodput {
    summary(records, &asking(slo)).goodput.expect("there is an SLO")
}

/// A stream with an arrival at each of these instants.
fn arriving(index: u32, at_ms: &[i64]) -> Build {
    let usage = u32::try_from(at_ms.len()).expect("few");
    at_ms.iter().fold(request(index).usage(usage), |built, at| built.event(*at, TEXT))
}

fn terms(goodput: &Goodput) -> Vec<(String, u64, u64)> {
    goodput.per_slo.iter().map(|term| (term.name(), term.met, term.of)).collect()
}

fn tenant(index: u32, tenant: &str, ttft_ms: i64) -> Build {
    streamed(index, ttft_ms, ttft_ms + 1_000, 11).label("tenant", tenant)
}

#[test]
fn a_set_with_a_label_stands_in_place_of_the_one_without() {
    let run = records([
        tenant(0, "fast", 150), // the set of all would be met, its own is not
        tenant(1, "fast", 90),
        tenant(2, "slow", 900), // only its own is met
        streamed(3, 200, 400, 11),
        streamed(4, 600, 800, 11),
    ]);
    let slo = "ttft <= 500ms; tenant=fast: ttft <= 100ms; tenant=slow: ttft <= 1s, e2el <= 3s";
    let goodput = judged(&run, slo);
    assert_eq!((goodput.good, goodput.of), (3, 5));
    assert_eq!(
        terms(&goodput),
        [
            ("ttft".to_owned(), 1, 2),
            ("tenant=fast:ttft".to_owned(), 1, 2),
            ("tenant=slow:ttft".to_owned(), 1, 1),
            ("tenant=slow:e2el".to_owned(), 1, 1),
        ]
    );
    let labels: Vec<_> = goodput
        .per_label
        .iter()
        .map(|l| (l.value.as_str(), l.asked.clone(), l.good, l.of))
        .collect();
    let same = |terms: &str| Asked::Same(terms.to_owned());
    assert_eq!(
        labels,
        [
            ("fast", same("ttft ≤ 100 ms"), 1, 2),
            ("slow", same("ttft ≤ 1000 ms, e2el ≤ 3000 ms"), 1, 1),
        ]
    );
}

#[test]
fn sets_of_two_labels_of_one_request_are_both_for_it() {
    let run = records([
        tenant(0, "a", 90).label("class", "chat"),
        tenant(1, "a", 90).label("class", "batch"),
        tenant(2, "b", 90).label("class", "chat"),
    ]);
    let goodput = judged(&run, "tenant=a: ttft <= 100ms; class=chat: e2el <= 1s");
    // The first is too long for its class, the third too.
    assert_eq!((goodput.good, goodput.of, goodput.not_asked), (1, 3, 0));
    let of_a = goodput.per_label.iter().find(|label| label.value == "a").unwrap();
    assert_eq!((of_a.asked.clone(), of_a.good, of_a.of), (Asked::Several, 1, 2));
}

#[test]
fn what_nothing_is_asked_of_stays_out() {
    let run = records([tenant(0, "a", 90), tenant(1, "b", 9_000), streamed(2, 9_000, 9_001, 2)]);
    let goodput = judged(&run, "tenant=a: ttft <= 100ms");
    assert_eq!((goodput.good, goodput.of, goodput.not_asked), (1, 1, 2));
    assert_eq!(goodput.attainment, Some(1.0));
    assert_eq!(goodput.per_label[1].asked, Asked::Nothing);
}

#[test]
fn each_label_has_latencies_and_attainment_that_partition_the_run() {
    let run = records([
        tenant(0, "a", 90),
        tenant(1, "b", 200),
        tenant(2, "b", 800),
        streamed(3, 10, 20, 3),
    ]);
    let summary = summary(&run, &asking("ttft <= 500ms; tenant=a: ttft <= 50ms"));
    let parts: Vec<_> = summary
        .slices
        .by_label
        .iter()
        .map(|slice| {
            let Part::Label { value, .. } = &slice.of else { panic!("{slice:?}") };
            (value.as_deref(), slice.n, slice.ttft.n, slice.attained.unwrap())
        })
        .collect();
    assert_eq!(
        parts,
        [
            (None, 1, 1, Attained { good: 1, of: 1 }),
            (Some("a"), 1, 1, Attained { good: 0, of: 1 }),
            (Some("b"), 2, 2, Attained { good: 1, of: 2 }),
        ]
    );
    let goodput = summary.goodput.unwrap();
    let sum = parts.iter().fold((0, 0), |(good, of), part| (good + part.3.good, of + part.3.of));
    assert_eq!(sum, (goodput.good, goodput.of));
}

#[test]
fn a_request_is_judged_by_a_figure_of_its_own_gaps() {
    // Ten gaps: nine of 10 ms and one of 110; mean 20, median 10, largest 110.
    let at: Vec<i64> = (0..10).map(|n| 100 + n * 10).chain([300]).collect();
    let stalls = || records([arriving(0, &at)]);
    for (slo, good) in [
        ("icl.mean <= 20ms", 1),
        ("icl.mean <= 19999us", 0),
        ("icl.p50 <= 10ms", 1),
        ("icl.max <= 110ms", 1),
        ("icl.max <= 109ms", 0),
        // Rank 0.9 · 9 = 8.1 of the sorted gaps: 10 + 0.1 · 100.
        ("icl.p90 <= 20ms", 1),
        ("icl.p90 <= 19ms", 0),
        // Eleven tokens in eleven chunks: the ITL mean is the same.
        ("itl.mean <= 20ms", 1),
        ("itl.max <= 109ms", 0),
    ] {
        let goodput = judged(&stalls(), slo);
        assert_eq!((goodput.good, goodput.of), (good, 1), "{slo}");
    }
}

#[test]
fn the_itl_mean_weighs_by_tokens_where_the_icl_mean_does_not() {
    // Two gaps of 40 ms, each before a chunk of four tokens.
    let run = records([request(0)
        .usage(9)
        .chunk(100, TEXT, 1, 0)
        .chunk(140, TEXT, 4, 0)
        .chunk(180, TEXT, 4, 0)]);
    assert_eq!(judged(&run, "itl.mean <= 10ms").good, 1);
    assert_eq!(judged(&run, "icl.mean <= 39ms").good, 0);
}

#[test]
fn an_answer_without_a_gap_breaks_no_limit_of_gaps() {
    let run = records([streamed(0, 100, 100, 1), arriving(1, &[50, 60, 70])]);
    let goodput = judged(&run, "icl.p99 <= 20ms");
    assert_eq!((goodput.good, goodput.of, goodput.vacuous), (2, 2, 1));
}

#[test]
fn a_stopped_request_has_missed_a_limit_of_gaps_once_one_was_too_long() {
    let stopped = |index| request(index).outcome(Outcome::Cancelled);
    let run = records([
        stopped(0).event(100, TEXT).event(400, TEXT).ended(410), // a gap of 300
        stopped(1).event(100, TEXT).event(150, TEXT).ended(900), // silent for 750
        stopped(2).event(100, TEXT).event(150, TEXT).ended(160), // may have gone on well
        stopped(3).ended(900),                                   // never began
    ]);
    let goodput = judged(&run, "icl.max <= 200ms");
    assert_eq!((goodput.good, goodput.of, goodput.undecided), (0, 2, 2));
    // A percentile of gaps to come is not known.
    assert_eq!(judged(&run, "icl.p99 <= 200ms").undecided, 4);
}

#[test]
fn text_is_what_ttfc_waits_for() {
    let thinking = |index, text_ms: Option<i64>| {
        let built = request(index).usage(20).event(100, REASONING).event(200, REASONING);
        let built = match text_ms {
            Some(at) => built.event(at, TEXT),
            None => built,
        };
        built.event(2_000, FINISH).reasoning(Some(10), ReasoningDisclosure::Verbatim)
    };
    let run = records([
        thinking(0, Some(900)),
        thinking(1, Some(1_100)),
        thinking(2, None), // thought and never said a word
        request(3).usage(5).event(100, TOOL_CALL).event(120, FINISH),
        request(4).outcome(Outcome::Cancelled).event(100, REASONING).ended(1_500),
        request(5).outcome(Outcome::Cancelled).event(100, REASONING).ended(700),
    ]);
    let goodput = judged(&run, "ttfc <= 1s");
    assert_eq!((goodput.good, goodput.of), (2, 5));
    assert_eq!((goodput.vacuous, goodput.undecided), (1, 1));
}

#[test]
fn the_start_of_an_answer_is_text_where_answers_reason() {
    let plain = [streamed(0, 300, 900, 11), streamed(1, 600, 900, 11)];
    let goodput = judged(&records(plain.clone()), "start <= 500ms");
    assert_eq!(terms(&goodput), [("ttft".to_owned(), 1, 2)]);
    assert_eq!(goodput.slo.to_string(), "ttft ≤ 500 ms");
    let reasoned = request(2)
        .usage(12)
        .event(100, REASONING)
        .event(800, TEXT)
        .event(900, TEXT)
        .reasoning(Some(6), ReasoningDisclosure::Verbatim);
    let mixed = records(plain.into_iter().chain([reasoned]));
    let goodput = judged(&mixed, "start <= 500ms");
    assert_eq!(terms(&goodput), [("ttfc".to_owned(), 1, 3)]);
}

#[test]
fn an_answer_at_one_instant_is_not_judged_by_gaps_that_nobody_saw() {
    let whole = measure::Carries::WHOLE;
    let run = records([request(0).event(800, whole).usage(4).warn(Warnings::NOT_STREAMED)]);
    assert_eq!(judged(&run, "icl.p99 <= 100ms").undecided, 1);
}

#[test]
fn a_rule_asks_for_the_attainment_of_a_term_or_of_a_label() {
    let run = records([tenant(0, "a", 90), tenant(1, "a", 200), tenant(2, "b", 9_000)]);
    let summary = summary(&run, &asking("start <= 10s; tenant=a: ttft <= 100ms"));
    let ruled = |text: &str| Threshold::parse(text).unwrap().judge(&summary);
    let value = |text: &str| match ruled(text) {
        Ruled::Missed(value) | Ruled::Passed(value) => Some(value),
        Ruled::Undefined => None,
    };
    for (text, right) in [
        ("attainment < 1", 2.0 / 3.0),
        ("attainment.ttft < 1", 1.0),
        ("attainment.start < 1", 1.0),
        ("attainment.tenant=a < 1", 0.5),
        ("attainment.a < 1", 0.5),
        ("attainment.tenant=a:ttft < 1", 0.5),
        ("attainment.tenant=b < 1", 1.0),
    ] {
        close(value(text), right);
    }
    assert_eq!(value("attainment.tpot < 1"), None);
    assert_eq!(value("attainment.tenant=c < 1"), None);
    assert_eq!(ruled("attainment.tenant=a < 60%"), Ruled::Missed(0.5));
}
