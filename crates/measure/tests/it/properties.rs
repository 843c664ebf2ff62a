//! Properties of well-formed runs: what must hold whatever was observed.

use measure::definition::{GOODPUT, SERVICE};
use measure::facts::{LoadKind, RunFacts};
use measure::metric::{Unit, find};
use measure::slo::Slo;
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::window::{makespan, steady};
use measure::{
    Carries, Event, FailureKind, NotSentKind, Outcome, Record, Span, Stamps, Tokens, Warnings,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::build::{facts, metric, request, summary, timed};

/// What becomes of a planned request, as the generator draws it.
#[derive(Clone, Debug)]
pub(crate) struct Fate {
    intended_us: i64,
    held_us: i64,
    connect_us: i64,
    ttft_us: u32,
    gaps_us: Vec<u32>,
    lag_us: u32,
    outcome: Outcome,
    buffered: bool,
    message: u8,
}

pub(crate) fn fates(outcomes: &'static [Outcome]) -> impl Strategy<Value = Vec<Fate>> {
    let fate = (
        (0i64..20_000_000, 0i64..2_000_000, 0i64..50_000),
        (1u32..3_000_000, prop::collection::vec(0u32..900_000, 0..12), 0u32..100_000),
        select(outcomes),
        prop::bool::weighted(0.1),
        0u8..3,
    )
        .prop_map(|((intended_us, held_us, connect_us), times, outcome, buffered, message)| {
            let (ttft_us, gaps_us, lag_us) = times;
            Fate {
                intended_us,
                held_us,
                connect_us,
                ttft_us,
                gaps_us,
                lag_us,
                outcome,
                buffered,
                message,
            }
        });
    prop::collection::vec(fate, 1..40)
}

pub(crate) const JUDGED: &[Outcome] = &[
    Outcome::Ok,
    Outcome::Ok,
    Outcome::Ok,
    Outcome::Empty,
    Outcome::Failed(FailureKind::HttpStatus),
    Outcome::Failed(FailureKind::TotalTimeout),
];

const ALL: &[Outcome] = &[
    Outcome::Ok,
    Outcome::Ok,
    Outcome::Ok,
    Outcome::Empty,
    Outcome::Failed(FailureKind::HttpStatus),
    Outcome::Failed(FailureKind::TotalTimeout),
    Outcome::NotSent(NotSentKind::PortExhausted),
    Outcome::Cancelled,
];

/// The record of a fate with every time multiplied by `scale`.
fn record(index: usize, fate: &Fate, scale: u32) -> Record {
    let long = i64::from(scale);
    let span = |us: i64| Span::from_us(us * long);
    let mut record = request(index as u32).outcome(fate.outcome).record();
    let intended_at = measure::At::ZERO + span(fate.intended_us);
    record.stamps = Stamps { intended_at, ..Stamps::default() };
    record.answer.message = Some(format!("message {}", fate.message));
    if matches!(fate.outcome, Outcome::NotSent(_)) {
        return record;
    }
    let released = intended_at + span(fate.held_us);
    let sent = released + span(fate.connect_us);
    record.stamps.released_at = Some(released);
    record.stamps.sent_at = Some(sent);
    record.stamps.headers_at = Some(sent + span(i64::from(fate.ttft_us / 2)));
    let mut at_us = fate.ttft_us * scale;
    if fate.outcome == Outcome::Ok {
        let text = |at_us| Event { at_us, carries: Carries::TEXT, tokens: 0, choice: 0 };
        record.events.push(text(at_us));
        for gap in &fate.gaps_us {
            at_us += if fate.buffered { 0 } else { gap * scale };
            record.events.push(text(at_us));
        }
        at_us += fate.lag_us * scale;
        record.events.push(Event { at_us, carries: Carries::FINISH, ..Event::default() });
        record.answer.counts.usage = Some(Tokens::new(fate.gaps_us.len() as u32 + 1));
        record.answer.counts.prompt = Some(Tokens::new(fate.ttft_us % 1_000));
        if fate.buffered {
            record.answer.warnings.add(Warnings::NOT_STREAMED);
        }
    }
    record.stamps.ended_at = Some(sent + Span::from_us(i64::from(at_us)));
    record
}

pub(crate) fn run(fates: &[Fate], scale: u32) -> Vec<Record> {
    fates.iter().enumerate().map(|(index, fate)| record(index, fate, scale)).collect()
}

pub(crate) fn judged_by(kind: LoadKind, slo: &str) -> RunFacts {
    let mut facts = facts(kind);
    facts.slo = Some(Slo::parse_goodput([slo]).unwrap());
    facts.load.users = Some(3);
    facts.percentiles = vec![75.0, 99.9];
    facts
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// Every figure of a distribution that is known.
fn figures(distribution: &Distribution) -> Vec<(String, Option<f64>)> {
    let names = ["mean", "std", "min", "max", "p50", "p90", "p95", "p99", "p999"];
    let extra = distribution.extra.iter().map(|(percent, value)| (percent.to_string(), *value));
    let named = names.map(|name| (name.to_owned(), distribution.figure(name)));
    named.into_iter().chain(extra).collect()
}

/// Latencies that must scale with time. Stall share and reader stall compare
/// with limits that do not.
fn scales(key: &str) -> bool {
    let unit = find(key).unwrap().unit;
    matches!(unit, Unit::Milliseconds | Unit::MillisecondsPerToken) && key != "reader_stall_ms"
}

proptest! {
    #[test]
    fn ttft_gaps_and_finish_lag_add_up_to_e2el(fates in fates(&[Outcome::Ok])) {
        for record in run(&fates, 1) {
            for definition in [GOODPUT, SERVICE] {
                let timed = timed(&record, &definition);
                let stamped = timed.stamped().unwrap();
                let gaps: i64 = stamped.gaps().iter().map(|gap| gap.us()).sum();
                let end = stamped.end.unwrap();
                let lag = end - stamped.arrivals.last().unwrap().at;
                prop_assert_eq!(stamped.arrivals[0].at.us() + gaps + lag.us(), end.us());
                // And what is reported is these integers.
                prop_assert_eq!(timed.ttft().unwrap(), stamped.arrivals[0].at.ms());
                prop_assert_eq!(timed.finish_lag().unwrap(), lag.ms());
                prop_assert_eq!(timed.e2el().unwrap(), end.ms());
                prop_assert_eq!(
                    timed.generation().unwrap(),
                    (end - stamped.arrivals[0].at).ms()
                );
            }
        }
    }

    #[test]
    fn goodput_is_attainment_times_offered_load(
        fates in fates(JUDGED),
        planned_s in prop::option::of(20i64..60),
    ) {
        let mut facts = judged_by(LoadKind::Open, "ttft:2000 tpot:400 e2el:5000");
        facts.load.planned_duration = planned_s.map(|s| Span::from_ms(s * 1_000));
        let summary = summary(&run(&fates, 1), &facts);
        let goodput = summary.goodput.unwrap();
        prop_assert_eq!((goodput.undecided, goodput.client_faults), (0, 0));
        if let Some(offered) = summary.load.offered_rps {
            prop_assert!(near(goodput.req_s.unwrap(), goodput.attainment.unwrap() * offered));
        }
    }

    #[test]
    fn outcomes_partition_the_schedule(fates in fates(ALL)) {
        let records = run(&fates, 1);
        let summary = summary(&records, &judged_by(LoadKind::Open, "ttft:2000"));
        let outcomes = &summary.outcomes;
        prop_assert_eq!(outcomes.total(), records.len() as u64);
        let kinds: u64 = outcomes.by_kind.values().sum();
        prop_assert_eq!(kinds, outcomes.failed + outcomes.not_sent);
        let goodput = summary.goodput.unwrap();
        let judged = goodput.of + goodput.undecided + goodput.client_faults;
        prop_assert_eq!(judged, records.len() as u64);
        for (key, distribution) in &summary.metrics {
            if find(key).unwrap().level == measure::metric::Level::Request {
                let members = distribution.n + distribution.n_undefined();
                prop_assert_eq!(members, records.len() as u64, "{}", key);
            }
        }
    }

    #[test]
    fn the_order_of_records_does_not_matter(
        (fates, shuffled) in fates(ALL).prop_flat_map(|fates| {
            let order: Vec<usize> = (0..fates.len()).collect();
            (Just(fates), Just(order).prop_shuffle())
        }),
        kind in select(LoadKind::ALL),
    ) {
        let records = run(&fates, 1);
        let other: Vec<Record> = shuffled.iter().map(|index| records[*index].clone()).collect();
        let facts = judged_by(kind, "ttft:2000 tpot:400");
        prop_assert_eq!(summary(&records, &facts), summary(&other, &facts));
    }

    #[test]
    fn twice_the_time_is_twice_the_latency_and_half_the_rate(fates in fates(ALL)) {
        let facts = judged_by(LoadKind::Open, "ttft:2000");
        let (once, twice) = (summary(&run(&fates, 1), &facts), summary(&run(&fates, 2), &facts));
        let sets = |summary: &Summary| {
            [
                summary.metrics.clone(),
                summary.service_metrics.clone(),
                summary.all_requests_metrics.clone(),
            ]
        };
        for (once, twice) in sets(&once).into_iter().zip(sets(&twice)) {
            for (key, before) in once.iter().filter(|(key, _)| scales(key)) {
                for (before, after) in figures(before).into_iter().zip(figures(metric(&twice, key)))
                {
                    let doubled = before.1.map(|value| 2.0 * value);
                    prop_assert_eq!(doubled, after.1, "{} {}", key, before.0);
                }
            }
        }
        let halved = once.throughput.output_tok_s.map(|rate| rate / 2.0);
        prop_assert_eq!(halved, twice.throughput.output_tok_s);
    }

    #[test]
    fn good_requests_are_not_more_than_offered_ones(
        fates in fates(ALL),
        planned_s in prop::option::of(20i64..60),
    ) {
        let mut facts = judged_by(LoadKind::Capped, "ttft:2000 tpot:400");
        facts.load.planned_duration = planned_s.map(|s| Span::from_ms(s * 1_000));
        let summary = summary(&run(&fates, 1), &facts);
        let goodput = summary.goodput.unwrap();
        // Not than released ones: a cap may let one go behind the window.
        if let (Some(good), Some(offered)) = (goodput.req_s, summary.load.offered_rps) {
            prop_assert!(good <= offered * (1.0 + 1e-12));
        }
        prop_assert!(goodput.good <= goodput.of);
        for term in &goodput.per_slo {
            prop_assert!(goodput.good <= term.met + goodput.undecided);
        }
        if let (Some(share), Some((low, high))) = (goodput.attainment, goodput.bounds) {
            prop_assert!(low <= share && share <= high);
        }
    }

    #[test]
    fn failures_make_no_percentile_smaller(fates in fates(ALL)) {
        let mut facts = judged_by(LoadKind::Open, "ttft:2000");
        facts.request_timeout = Some(Span::from_s(1.0));
        let summary = summary(&run(&fates, 1), &facts);
        for (key, all) in &summary.all_requests_metrics {
            let ok = metric(&summary.metrics, key);
            for (all, ok) in all.percentiles.iter().zip(&ok.percentiles) {
                if let (Some(all), Some(ok)) = (all, ok) {
                    prop_assert!(all >= ok, "{} {} < {}", key, all, ok);
                }
            }
        }
    }

    #[test]
    fn percentiles_are_ordered_and_inside(fates in fates(&[Outcome::Ok])) {
        let summary = summary(&run(&fates, 1), &judged_by(LoadKind::Open, "ttft:2000"));
        for (key, distribution) in &summary.metrics {
            let known: Vec<f64> = distribution.percentiles.iter().copied().flatten().collect();
            prop_assert!(known.windows(2).all(|pair| pair[0] <= pair[1]), "{}", key);
            if let (Some(min), Some(max), Some(first), Some(last)) =
                (distribution.min, distribution.max, known.first(), known.last())
            {
                prop_assert!(min <= *first && *last <= max, "{}", key);
            }
        }
    }

    #[test]
    fn a_steady_window_lies_inside_the_makespan(
        users in 1usize..6,
        took_us in prop::collection::vec(200_000i64..3_000_000, 20..120),
        open in any::<bool>(),
    ) {
        let mut free = vec![0i64; users];
        let records: Vec<Record> = took_us
            .iter()
            .enumerate()
            .map(|(index, took)| {
                let slot = (0..users).min_by_key(|slot| free[*slot]).unwrap();
                let start = if open { index as i64 * 400_000 } else { free[slot] };
                free[slot] = start + took;
                let mut record = request(index as u32).record();
                let at = measure::At::from_us(start);
                record.stamps = Stamps {
                    intended_at: at,
                    released_at: Some(at),
                    sent_at: Some(at),
                    ended_at: Some(at + Span::from_us(*took)),
                    ..Stamps::default()
                };
                record
            })
            .collect();
        let mut facts = facts(if open { LoadKind::Open } else { LoadKind::Closed });
        facts.load.users = Some(users as u32);
        let whole = makespan(&records).unwrap();
        if let Ok(window) = steady(&records, &facts.load) {
            prop_assert!(whole.from <= window.from && window.until <= whole.until);
            prop_assert!(window.length() >= Span::from_ms(10_000));
            if open {
                let last = records.iter().map(|r| r.stamps.intended_at).max().unwrap();
                prop_assert!(window.until <= last);
            } else {
                // Every slot is at work all the time.
                let mean = measure::window::mean_in_flight(&records, window);
                prop_assert!(near(mean, users as f64), "{}", mean);
            }
        }
    }
}
