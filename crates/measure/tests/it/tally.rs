//! A run that is counted as it goes says what its records say.

use measure::facts::{LoadKind, RunFacts};
use measure::statistics::Distribution;
use measure::summary::{Steady, Summary};
use measure::tally::Tally;
use measure::{At, Carries, Event, Events, Record};
use proptest::prelude::*;
use proptest::sample::select;

use crate::build::{TEXT, facts, request, summary};
use crate::properties::{JUDGED, fates, judged_by, run};

/// What a run without rows is told of a request: its first arrival, its last
/// one and its end, and the gaps.
fn lean(record: &Record) -> (Record, Vec<(u32, u32)>) {
    let is_arrival = |event: &Event| event.carries.is_arrival();
    let arrivals: Vec<Event> = record.events.iter().filter(is_arrival).collect();
    let gaps = arrivals.windows(2).map(|pair| (pair[1].at_us - pair[0].at_us, 1)).collect();
    let mut events = Events::default();
    arrivals.first().into_iter().for_each(|event| events.push(*event));
    arrivals.last().filter(|_| arrivals.len() > 1).into_iter().for_each(|e| events.push(*e));
    record.events.iter().filter(|event| !is_arrival(event)).for_each(|event| events.push(event));
    (Record { events, ..record.clone() }, gaps)
}

/// Tells a tally of these requests in the order of time.
fn tally(records: &[Record], facts: &RunFacts) -> Tally {
    let mut told: Vec<(At, bool, &Record)> = Vec::new();
    for record in records {
        let stamps = &record.stamps;
        told.extend(stamps.sent_at.map(|at| (at, true, record)));
        told.push((stamps.ended_at.unwrap_or(stamps.intended_at), false, record));
    }
    told.sort_by_key(|(at, is_send, record)| (*at, *is_send, record.index));
    let mut tally = Tally::new(facts);
    for (at, is_send, record) in told {
        if is_send {
            tally.sent(at);
        } else {
            let (record, gaps) = lean(record);
            tally.ended(&record, &gaps);
        }
    }
    tally
}

/// What needs the gaps of each request by itself.
const OF_GAPS: &[&str] = &["stall_ms", "stall_share", "reader_stall_ms", "tokens_per_chunk"];

fn near(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 0.001 * a.abs().max(b.abs()) + 1e-9,
        (a, b) => a == b,
    }
}

fn same_figures(
    counted: &[(&'static str, Distribution)],
    exact: &[(&'static str, Distribution)],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(counted.len(), exact.len());
    for ((key, counted), (other, exact)) in counted.iter().zip(exact) {
        prop_assert_eq!(key, other);
        if OF_GAPS.contains(key) {
            prop_assert_eq!(counted.n, 0);
            prop_assert_eq!(counted.n_undefined(), exact.n + exact.n_undefined());
            continue;
        }
        prop_assert_eq!(counted.n, exact.n, "{}", key);
        prop_assert_eq!(&counted.undefined, &exact.undefined, "{}", key);
        prop_assert_eq!(&counted.unbounded, &exact.unbounded, "{}", key);
        prop_assert_eq!(&counted.few_samples, &exact.few_samples, "{}", key);
        prop_assert_eq!(counted.censored, exact.censored, "{}", key);
        for name in ["mean", "std", "min", "max", "p50", "p90", "p95", "p99", "p999"] {
            let (a, b) = (counted.figure(name), exact.figure(name));
            prop_assert!(near(a, b), "{} {}: {:?} and {:?}", key, name, a, b);
        }
        for ((_, a), (_, b)) in counted.extra.iter().zip(&exact.extra) {
            prop_assert!(near(*a, *b), "{}: {:?} and {:?}", key, a, b);
        }
        for ((a, least), (b, most)) in counted.at_least.iter().zip(&exact.at_least) {
            prop_assert_eq!(a, b);
            prop_assert!(near(Some(*least), Some(*most)), "{} {}", key, a);
        }
    }
    Ok(())
}

fn same_steady(counted: &Steady, exact: &Steady) -> Result<(), TestCaseError> {
    let (Ok(window), Ok(other)) = (&counted.window, &exact.window) else {
        let reasons = (counted.window.err(), exact.window.err());
        let kinds = (
            reasons.0.as_ref().map(std::mem::discriminant),
            reasons.1.as_ref().map(std::mem::discriminant),
        );
        prop_assert_eq!(kinds.0, kinds.1, "{:?}", reasons);
        return Ok(());
    };
    prop_assert_eq!(window, other);
    let figures = |steady: &Steady| {
        [steady.output_tok_s, steady.req_s, steady.mean_in_flight, steady.error_rate]
    };
    for (a, b) in figures(counted).into_iter().zip(figures(exact)) {
        prop_assert!(near(a, b), "{:?} and {:?}", figures(counted), figures(exact));
    }
    prop_assert_eq!(&counted.goodput, &exact.goodput);
    same_figures(&counted.metrics, &exact.metrics)
}

fn same_run(counted: &Summary, exact: &Summary) -> Result<(), TestCaseError> {
    prop_assert_eq!(&counted.outcomes, &exact.outcomes);
    prop_assert_eq!(&counted.tokens, &exact.tokens);
    prop_assert_eq!(&counted.throughput, &exact.throughput);
    prop_assert_eq!(&counted.goodput, &exact.goodput);
    prop_assert_eq!(&counted.service_goodput, &exact.service_goodput);
    prop_assert_eq!(&counted.answer_warnings, &exact.answer_warnings);
    let (load, other) = (&counted.load, &exact.load);
    prop_assert_eq!(load.offered_rps, other.offered_rps);
    prop_assert_eq!(load.completed_rps, other.completed_rps);
    prop_assert_eq!(load.max_in_flight, other.max_in_flight);
    prop_assert_eq!(load.goodput_window_s, other.goodput_window_s);
    same_figures(&counted.metrics, &exact.metrics)?;
    same_figures(&counted.service_metrics, &exact.service_metrics)?;
    same_figures(&counted.all_requests_metrics, &exact.all_requests_metrics)?;
    let weighted = |summary: &Summary| {
        let weighted = &summary.weighted;
        [weighted.tpot_token_weighted_ms, weighted.itl_mean_ms, weighted.itl_mean_over_osl_ms]
    };
    for (a, b) in weighted(counted).into_iter().zip(weighted(exact)) {
        prop_assert!(near(a, b), "{:?} and {:?}", a, b);
    }
    prop_assert_eq!(counted.validity.verdict, exact.validity.verdict);
    let ids = |summary: &Summary| -> Vec<&'static str> {
        let ids = summary.caveats.iter().map(|caveat| caveat.id);
        ids.filter(|id| !["counted_in_bins", "tail_owner"].contains(id)).collect()
    };
    prop_assert_eq!(ids(counted), ids(exact));
    for (slice, other) in counted.slices.by_input.iter().zip(&exact.slices.by_input) {
        prop_assert_eq!((&slice.of, slice.n, slice.ok), (&other.of, other.n, other.ok));
        prop_assert!(near(slice.ttft.figure("p90"), other.ttft.figure("p90")));
    }
    Ok(())
}

proptest! {
    #[test]
    fn counted_figures_are_those_of_the_records(
        fates in fates(JUDGED),
        kind in select(LoadKind::ALL),
    ) {
        let records = run(&fates, 1);
        let mut facts = judged_by(kind, "ttft:2000 tpot:400 e2el:5000");
        facts.request_timeout = Some(measure::Span::from_ms(4_000));
        let exact = summary(&records, &facts);
        facts.rows_kept = false;
        let counted = tally(&records, &facts).summary(&facts);
        same_run(&counted, &exact)?;
        if kind == LoadKind::Closed {
            same_steady(&counted.steady, &exact.steady)?;
        }
    }
}

/// Two users who ask again at once, for so many requests.
fn two_users(count: u32) -> Vec<Record> {
    let mut free = [0, 0];
    let ask = |index: u32| {
        let user = (index % 2) as usize;
        // Both users' first requests end together, as those of one step do.
        let (ttft, osl) =
            if index < 2 { (200, 3) } else { (200 + i64::from(index * 37 % 101), 2 + index % 7) };
        let mut one = request(index).at(free[user]).usage(osl).prompt(100 + index % 50);
        (0..osl).for_each(|k| {
            let carries = if k + 1 == osl { TEXT.with(Carries::FINISH) } else { TEXT };
            let at = ttft + i64::from(k) * (20 + i64::from(index / 2 % 5));
            one = one.clone().event(at, carries).ended(at);
            free[user] = one.clone().record().stamps.ended_at.unwrap().us() / 1_000;
        });
        one.record()
    };
    (0..count).map(ask).collect()
}

#[test]
fn the_steady_part_of_a_closed_loop_is_that_of_the_records() {
    let records = two_users(200);
    let mut facts = facts(LoadKind::Closed);
    facts.load.users = Some(2);
    let exact = summary(&records, &facts);
    assert!(exact.steady.window.is_ok(), "{:?}", exact.steady.window);
    facts.rows_kept = false;
    let counted = tally(&records, &facts).summary(&facts);
    same_steady(&counted.steady, &exact.steady).unwrap();
}

#[test]
fn memory_does_not_grow_with_requests_that_have_ended() {
    let mut facts = facts(LoadKind::Closed);
    facts.load.users = Some(2);
    let held = |count: u32| tally(&two_users(count), &facts).held();
    // Places along the run come and go below a fixed number.
    let (some, many) = (held(1_000), held(20_000));
    assert!(many <= some + 8_192, "{some} and {many}");
}

#[test]
fn what_a_counted_run_cannot_say_is_named() {
    let records: Vec<Record> = (0..5)
        .map(|index| request(index).at(10).event(20, TEXT).usage(1).label("tenant", "a").record())
        .collect();
    let mut facts = facts(LoadKind::Open);
    facts.load.request_rate = Some(4.0);
    facts.rows_kept = false;
    let counted = tally(&records, &facts).summary(&facts);
    let reason = |key: &str| {
        let found = counted.absent.iter().find(|(known, _)| known == key);
        found.unwrap_or_else(|| panic!("{key} is not named")).1.en.clone()
    };
    for key in ["findings", "slices.by_label", "slices.tail_owner", "fairness", "steady"] {
        assert!(reason(key).contains("--no-events"), "{}", reason(key));
    }
    assert_eq!(reason("conversations"), "no request is a later turn of a conversation");
    assert!(counted.caveats.iter().any(|caveat| caveat.id == "counted_in_bins"));
}
