//! The three windows: arrival, makespan, steady.

use measure::facts::{LoadFacts, LoadKind};
use measure::window::{NoSteady, Window, arrival, makespan, max_in_flight, mean_in_flight, steady};
use measure::{At, Carries, NotSentKind, Outcome, Record, Span, Warnings};

use crate::build::{Build, at, close, facts, records, request, streamed, summary};

fn seconds(s: i64) -> Span {
    Span::from_ms(s * 1_000)
}

fn load(kind: LoadKind, users: Option<u32>) -> LoadFacts {
    LoadFacts { users, request_rate: kind.has_schedule().then_some(1.0), ..facts(kind).load }
}

/// Requests sent and ended at these seconds, with two tokens: one half-way and
/// one at the end.
fn served(spans: &[(i64, i64)]) -> Vec<Record> {
    records(spans.iter().enumerate().map(|(index, (from, until))| {
        let took = (until - from) * 1_000;
        streamed(index as u32, took / 2, took, 2).at(from * 1_000)
    }))
}

/// A request a second for `n` seconds, each of which takes `took` seconds.
fn one_a_second(n: i64, took: i64) -> Vec<Record> {
    served(&(0..n).map(|second| (second, second + took)).collect::<Vec<_>>())
}

#[test]
fn the_arrival_window_adds_the_gap_that_n_arrivals_lack() {
    // Ten arrivals at 0 … 9 s are one a second: 9 s · 10 ÷ 9.
    let intended: Vec<At> = (0..10).map(|s| at(s * 1_000)).collect();
    assert_eq!(arrival(&intended, None).unwrap().length(), seconds(10));
    let late: Vec<At> = intended.iter().map(|at| *at + seconds(3)).collect();
    let window = arrival(&late, None).unwrap();
    assert_eq!((window.from, window.length()), (at(3_000), seconds(10)));
}

#[test]
fn a_planned_duration_is_the_length_of_the_arrival_window() {
    let intended = [at(1_000), at(4_000)];
    let window = arrival(&intended, Some(seconds(20))).unwrap();
    assert_eq!((window.from, window.length()), (At::ZERO, seconds(20)));
    assert_eq!(arrival(&[at(1_000)], Some(seconds(20))).unwrap().length(), seconds(20));
}

#[test]
fn one_arrival_or_none_or_all_at_once_have_no_rate() {
    assert_eq!(arrival(&[], None), None);
    assert_eq!(arrival(&[], Some(seconds(5))), None);
    assert_eq!(arrival(&[at(7)], None), None);
    assert_eq!(arrival(&[at(7), at(7)], None), None);
}

#[test]
fn offered_load_divides_by_the_arrival_window_and_closed_loops_have_none() {
    let records = one_a_second(10, 3);
    let mut open = facts(LoadKind::Open);
    close(summary(&records, &open).load.offered_rps, 1.0);
    open.load.planned_duration = Some(seconds(20));
    close(summary(&records, &open).load.offered_rps, 0.5);
    for kind in [LoadKind::Closed, LoadKind::Burst, LoadKind::Unknown] {
        assert_eq!(summary(&records, &facts(kind)).load.offered_rps, None);
    }
}

#[test]
fn the_makespan_runs_from_the_first_intended_instant_to_the_last_end() {
    let mut records = served(&[(2, 5), (3, 9), (4, 6)]);
    records[0].stamps.intended_at = at(1_500);
    // What was never released neither starts nor ends anything.
    records.push(
        request(3).outcome(Outcome::NotSent(NotSentKind::ClientResource)).unreleased().record(),
    );
    assert_eq!(makespan(&records), Some(Window { from: at(1_500), until: at(9_000) }));
    assert_eq!(makespan(&[]), None);
}

#[test]
fn requests_that_touch_were_not_in_flight_together() {
    assert_eq!(max_in_flight(&served(&[(0, 4), (4, 8)])), 1);
    assert_eq!(max_in_flight(&served(&[(0, 5), (4, 8), (4, 6)])), 3);
    // 2 s of one and 2 s of two in 4 s.
    let window = Window { from: at(2_000), until: at(6_000) };
    close(mean_in_flight(&served(&[(0, 9), (4, 6)]), window), 1.5);
}

/// Two users. A takes 4 s a request, B 6 s and 8 s for its last; A sends last
/// at 20 s and finds no more work at 24 s, B is done at 26 s.
fn two_users() -> Vec<Record> {
    served(&[
        (0, 4),
        (0, 6),
        (4, 8),
        (6, 12),
        (8, 12),
        (12, 16),
        (12, 18),
        (16, 20),
        (18, 26),
        (20, 24),
    ])
}

#[test]
fn a_closed_loop_is_steady_from_its_last_first_answer_until_work_runs_out() {
    let records = two_users();
    let window = steady(&records, &load(LoadKind::Closed, Some(2)));
    assert_eq!(window, Ok(Window { from: at(6_000), until: at(24_000) }));
    let mut facts = facts(LoadKind::Closed);
    facts.load.users = Some(2);
    let steady = summary(&records, &facts).steady;
    close(steady.mean_in_flight, 2.0);
    // Ends at 6, 8, 12, 12, 16, 18 and 20 lie in [6, 24).
    close(steady.req_s, 7.0 / 18.0);
    // Last tokens at those seven; first tokens at 6, 9, 10, 14, 15, 18, 22, 22.
    close(steady.output_tok_s, 15.0 / 18.0);
    // Asked in [6, 24): at 6, 8, 12, 12, 16, 18, 20.
    let e2el = &steady.metrics.iter().find(|(key, _)| *key == "e2el_ms").unwrap().1;
    assert_eq!(e2el.n, 7);
    // 18 → 26 is followed to its end although that lies outside.
    close(e2el.max, 8_000.0);
}

#[test]
fn an_open_loop_is_steady_from_its_plateau_to_the_last_arrival() {
    // Three are in flight from 2 s on; the drain from 29 s is left out.
    let records = one_a_second(30, 3);
    let window = steady(&records, &load(LoadKind::Open, None));
    assert_eq!(window, Ok(Window { from: at(2_000), until: at(29_000) }));
    assert_eq!(makespan(&records).unwrap().until, at(32_000));
}

#[test]
fn a_short_run_is_not_steady_and_says_what_was_needed() {
    // [2, 7] s.
    assert_eq!(
        steady(&one_a_second(8, 3), &load(LoadKind::Open, None)),
        Err(NoSteady::TooShort { length: seconds(5), needed: seconds(10) })
    );
    // [11, 29] s of answers that take 12 s each.
    assert_eq!(
        steady(&one_a_second(30, 12), &load(LoadKind::Capped, None)),
        Err(NoSteady::TooShort { length: seconds(18), needed: seconds(36) })
    );
}

#[test]
fn a_backlog_that_grows_is_not_steady() {
    // A server that answers one request each 2 s is asked once a second: the
    // k-th answer ends at 2 (k + 1) s.
    let spans: Vec<_> = (0..400).map(|k| (k, 2 * (k + 1))).collect();
    let got = steady(&served(&spans), &load(LoadKind::Open, None));
    // Its answers take 200 s in the median, so the run is too short as well;
    // over a run that is long enough for them the trend must be seen.
    assert!(matches!(got, Err(NoSteady::TooShort { .. })), "{got:?}");
    // Ten a second, each answered a little later than the one before: from
    // 0.1 s to 10 s over 1000 s.
    let slow = records((0..10_000).map(|k| {
        let took = 100 + k;
        streamed(k as u32, took / 2, took, 2).at(k * 100)
    }));
    let got = steady(&slow, &load(LoadKind::Open, None));
    assert!(matches!(got, Err(NoSteady::Trending { first, last }) if last > first), "{got:?}");
}

#[test]
fn loads_without_a_steady_part_say_so() {
    let records = one_a_second(30, 3);
    for kind in [LoadKind::Burst, LoadKind::Unknown] {
        assert_eq!(steady(&records, &load(kind, None)), Err(NoSteady::Kind(kind)));
    }
    for kind in [LoadKind::Open, LoadKind::Capped] {
        let shaped = LoadFacts { request_rate: None, ..load(kind, Some(8)) };
        assert_eq!(steady(&one_a_second(60, 3), &shaped), Err(NoSteady::Shaped));
        assert!(steady(&one_a_second(60, 3), &load(kind, Some(8))).is_ok());
    }
    assert_eq!(steady(&[], &load(LoadKind::Open, None)), Err(NoSteady::NothingSent));
    // Eight users and eight requests: nobody came back.
    let once = served(&[(0, 20); 8]);
    assert_eq!(steady(&once, &load(LoadKind::Closed, Some(8))), Err(NoSteady::NeverFull));
}

#[test]
fn whole_bodies_count_in_the_steady_window_when_they_arrive() {
    let whole = |index: u32| -> Build {
        request(index)
            .at(i64::from(index) * 1_000)
            .event(3_000, Carries::WHOLE)
            .usage(10)
            .warn(Warnings::NOT_STREAMED)
    };
    let mut open = facts(LoadKind::Open);
    open.load.request_rate = Some(1.0);
    let summary = summary(&records((0..30).map(whole)), &open);
    // One body a second of ten tokens, from 3 s on; the window is [2, 29).
    close(summary.steady.output_tok_s, 26.0 * 10.0 / 27.0);
    let uncounted = |index| whole(index).edit(|record| record.answer.counts.usage = None);
    let none = crate::build::summary(&records((0..30).map(uncounted)), &open);
    assert_eq!(none.steady.output_tok_s, None);
    assert!(none.steady.req_s.is_some());
}
