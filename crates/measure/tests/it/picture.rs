//! Pictures of runs: nothing is lost but what is said to be, and the extremes
//! of what is thinned stay.

use measure::facts::{LoadKind, RunFacts};
use measure::picture::{Picture, picture};
use measure::summary::summarise;
use measure::{At, FailureKind, Record, Span};
use proptest::prelude::*;

use crate::build::{FINISH, TEXT, facts, failed, records, request, streamed, summary};

fn drawn(records: &[Record], facts: &RunFacts) -> Picture {
    picture(records, &summarise(records, facts, &measure::definition::GOODPUT))
}

fn total(counts: &[u32]) -> usize {
    counts.iter().map(|count| *count as usize).sum()
}

/// One request each 100 ms, each 1 s long: ten in flight.
fn steady(count: u32) -> Vec<Record> {
    records((0..count).map(|index| streamed(index, 200, 1_000, 5).at(i64::from(index) * 100)))
}

#[test]
fn series_count_every_request_and_every_token() {
    let run = steady(200);
    let series = drawn(&run, &facts(LoadKind::Open)).series;
    assert_eq!(total(&series.offered), 200);
    assert_eq!(total(&series.sent), 200);
    assert_eq!(total(&series.completed), 200);
    assert_eq!(total(&series.failed), 0);
    let tokens: f32 = series.output_tokens.iter().sum();
    assert!((tokens - 1_000.0).abs() < 0.01, "{tokens}");
    assert_eq!((series.from, series.step), (At::ZERO, Span::from_ms(1_000)));
    // The first second fills up and the last empties.
    for (bin, mean) in series.in_flight.iter().enumerate().take(19).skip(1) {
        assert!((mean - 10.0).abs() < 1e-3, "bin {bin}: {mean}");
    }
    assert!((series.in_flight[0] - 5.5).abs() < 1e-3, "{}", series.in_flight[0]);
}

#[test]
fn failures_are_counted_when_they_end_and_leave_no_tokens() {
    let mut run = steady(20);
    run.push(failed(20, FailureKind::Connect).record());
    let picture = drawn(&run, &facts(LoadKind::Open));
    assert_eq!(total(&picture.series.failed), 1);
    assert_eq!(total(&picture.series.completed), 20);
    assert_eq!(picture.requests.of, 20);
}

#[test]
fn a_shape_is_the_distribution() {
    // 1 to 1 000 ms: the curve at a share is that many ms.
    let run = records((1..=1_000).map(|ms| streamed(ms, i64::from(ms), 2_000, 3)));
    let picture = drawn(&run, &facts(LoadKind::Burst));
    let ttft = picture.shapes.iter().find(|shape| shape.key == "ttft_ms").expect("a shape");
    assert_eq!(ttft.n, 1_000);
    assert_eq!(total(&ttft.counts), 1_000);
    let ratio = ttft.edges[1] / ttft.edges[0];
    for pair in ttft.edges.windows(2) {
        assert!((pair[1] / pair[0] / ratio - 1.0).abs() < 1e-4);
    }
    for (share, value) in ttft.shares.iter().zip(&ttft.values) {
        let right = 1.0 + share * 999.0;
        assert!((value / right - 1.0).abs() < 1e-3, "{share}: {value}, not {right}");
    }
    assert_eq!(ttft.shares.last(), Some(&1.0));
    assert_eq!(ttft.values.last(), Some(&1_000.0));
}

#[test]
fn a_percentile_over_time_needs_a_sample_beyond_it() {
    let picture = drawn(&steady(200), &facts(LoadKind::Open));
    let ttft = picture.over_time.of.iter().find(|one| one.key == "ttft_ms").expect("ttft");
    // Some 25 requests a bin: enough for P90, not for P99.
    assert_eq!(ttft.p50[0], 200.0);
    assert_eq!(ttft.p90[0], 200.0);
    assert!(ttft.p99.iter().all(|value| value.is_nan()), "{:?}", ttft.p99);
    let icl = picture.over_time.of.iter().find(|one| one.key == "icl_ms").expect("icl");
    assert_eq!(icl.p50[1], 800.0);
}

#[test]
fn thinning_keeps_the_extremes() {
    let slow = 31_337;
    let run = records((0..60_000u32).map(|index| {
        let ttft = if index == slow { 9_000 } else { 100 + i64::from(index % 7) };
        streamed(index, ttft, ttft + 400, 5).prompt(10 + index % 500).at(i64::from(index) * 10)
    }));
    let picture = drawn(&run, &facts(LoadKind::Open));
    assert_eq!(picture.ttft_by_input.of, 60_000);
    assert!(picture.ttft_by_input.x.len() <= 3_000);
    assert!(picture.ttft_by_input.y.contains(&9_000.0));
    assert!(picture.lateness.x.len() <= 3_000);
    assert_eq!(picture.lanes[0].index, slow, "the slowest comes first");
    assert!(picture.lanes.len() <= 40);
    assert!(picture.requests.e2el_ms.contains(&9_400.0));
    assert!(picture.requests.tokens.len() <= 2_001);
    assert_eq!(picture.requests.of, 60_000);
    assert!(picture.series.offered.len() <= 162, "{}", picture.series.offered.len());
}

#[test]
fn a_long_time_line_keeps_both_ends_of_its_longest_gap() {
    let mut build = request(0).usage(5_000);
    for token in 0..5_000i64 {
        let stall = if token >= 1_234 { 700 } else { 0 };
        build = build.event(100 + token * 10 + stall, TEXT);
    }
    let run = records([build.event(60_000, FINISH)]);
    let lanes = drawn(&run, &facts(LoadKind::Burst)).lanes;
    let line = &lanes[0].tokens_ms;
    assert_eq!(lanes[0].tokens_of, 5_000);
    assert!(line.len() <= 1_000);
    let before = (100 + 1_233 * 10) as f32;
    let place = line.iter().position(|ms| *ms == before).expect("the token before the stall");
    assert_eq!(line[place + 1], before + 710.0);
    assert_eq!((line[0], line[line.len() - 1]), (100.0, (100 + 4_999 * 10 + 700) as f32));
}

#[test]
fn lateness_is_the_clients_and_a_cap_is_no_lateness() {
    // Held back for 300 ms, then sent 2 ms late.
    let run = records([request(0).intended(1_000).released(1_300).edit(|record| {
        record.stamps.sent_at = Some(crate::build::at(1_302));
    })]);
    let capped = drawn(&run, &facts(LoadKind::Capped));
    assert_eq!((&capped.lateness.x[..], &capped.lateness.y[..]), (&[1.0][..], &[2.0][..]));
    assert_eq!(capped.cap_wait.y, [300.0]);
    let open = drawn(&run, &facts(LoadKind::Open));
    assert_eq!(open.lateness.y, [302.0]);
    assert!(open.cap_wait.y.is_empty());
    // What is due all at once is not late.
    assert!(drawn(&run, &facts(LoadKind::Burst)).lateness.y.is_empty());
}

#[test]
fn an_empty_run_has_an_empty_picture() {
    let picture = drawn(&[], &facts(LoadKind::Open));
    assert!(picture.series.offered.is_empty());
    assert!(picture.shapes.iter().all(|shape| shape.n == 0 && shape.counts.is_empty()));
    assert!(picture.lanes.is_empty());
    let one = records([streamed(0, 5, 5, 1)]);
    let picture = drawn(&one, &facts(LoadKind::Burst));
    assert_eq!(picture.shapes[0].counts, [1]);
    assert_eq!(picture.lanes.len(), 2, "it is the slowest and the spread");
    assert_eq!(summary(&one, &facts(LoadKind::Burst)).outcomes.ok, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_records_give_columns_of_one_length(run in crate::wild::run()) {
        let picture = drawn(&run, &facts(LoadKind::Open));
        let series = &picture.series;
        let bins = series.offered.len();
        for other in [series.sent.len(), series.completed.len(), series.failed.len(),
            series.in_flight.len(), series.output_tokens.len()] {
            prop_assert_eq!(other, bins);
        }
        for shape in &picture.shapes {
            prop_assert_eq!(shape.edges.len(), shape.counts.len());
            let drawn = if shape.edges.is_empty() { 0 } else { shape.n };
            prop_assert_eq!(total(&shape.counts) as u64, drawn);
            prop_assert!(shape.values.is_sorted());
        }
        for cloud in [&picture.ttft_by_input, &picture.lateness] {
            prop_assert_eq!(cloud.x.len(), cloud.y.len());
            prop_assert!(cloud.x.is_sorted());
        }
    }
}
