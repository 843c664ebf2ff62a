//! Parts of a run partition it, and the bucket that owns the tail is named.

use measure::definition::GOODPUT;
use measure::request::{Settings, Timed};
use measure::slices::{Part, Slices, slices};
use measure::{FailureKind, Outcome, Record};
use proptest::prelude::*;

use crate::build::{records, streamed};

fn cut(records: &[Record]) -> Slices {
    let look = |record| Timed::new(record, &GOODPUT, Settings::default());
    slices(&records.iter().map(look).collect::<Vec<_>>(), None)
}

fn input(from: u32, until: u32) -> Part {
    Part::Input { from, until }
}

#[test]
fn prompts_fall_into_buckets_of_powers_of_two() {
    let lengths = [1, 127, 128, 255, 256, 4_095, 4_096];
    let run = records(
        (0..)
            .zip(lengths)
            .map(|(index, tokens)| streamed(index, 100 + i64::from(index), 500, 5).prompt(tokens)),
    );
    let by_input = cut(&run).by_input;
    let counts: Vec<(Part, u64)> = by_input.iter().map(|s| (s.of.clone(), s.n)).collect();
    assert_eq!(
        counts,
        [
            (input(0, 128), 2),
            (input(128, 256), 2),
            (input(256, 512), 1),
            (input(2_048, 4_096), 1),
            (input(4_096, 8_192), 1),
        ]
    );
    assert_eq!(by_input[0].ttft.figure("max"), Some(101.0));
    // A prompt that nobody counted is in no bucket.
    assert!(cut(&records([streamed(0, 100, 500, 5)])).by_input.is_empty());
}

#[test]
fn the_bucket_with_most_of_the_slowest_owns_the_tail() {
    // Of 1 000 requests 100 have long prompts and wait four times as long.
    let run = records((0..1_000u32).map(|index| {
        let long = index % 10 == 0;
        let (ttft, tokens) = if long { (400, 3_000) } else { (100, 200) };
        streamed(index, ttft, 1_000, 5).prompt(tokens)
    }));
    let owner = cut(&run).tail_owner.expect("one owns it");
    assert_eq!(owner.of, input(2_048, 4_096));
    assert_eq!((owner.of_slowest, owner.of_all), (1.0, 0.1));
    // Where all wait alike, or where there are few, nobody owns it.
    let alike = records((0..1_000u32).map(|index| streamed(index, 100, 1_000, 5).prompt(200)));
    assert_eq!(cut(&alike).tail_owner, None);
    assert_eq!(cut(&run[..50]).tail_owner, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_slices_of_a_label_are_all_requests(
        values in prop::collection::vec((0usize..4, any::<bool>()), 1..60),
    ) {
        let run = records((0..).zip(values).map(|(index, (value, ok))| {
            let build = streamed(index, 100, 500, 5);
            let build = if value < 3 { build.label("tenant", ["a", "b", "c"][value]) } else { build };
            if ok { build } else { build.outcome(Outcome::Failed(FailureKind::Connect)) }
        }));
        let slices = cut(&run).by_label;
        if run.iter().all(|record| record.planned.labels.is_empty()) {
            prop_assert!(slices.is_empty());
        } else {
            prop_assert_eq!(slices.iter().map(|slice| slice.n).sum::<u64>(), run.len() as u64);
            let ok = run.iter().filter(|record| record.outcome == Outcome::Ok).count() as u64;
            prop_assert_eq!(slices.iter().map(|slice| slice.ok).sum::<u64>(), ok);
        }
    }
}
