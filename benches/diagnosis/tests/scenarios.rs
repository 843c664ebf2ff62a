//! What scenarios are held to, and a small part of the matrix.

use diagnosis::cause::CAUSES;
use diagnosis::judge::{found, found_by_client};
use diagnosis::scenario::{healthy, scenario};

#[test]
fn a_seed_gives_the_same_scenario() {
    for seed in [3, 4] {
        let (one, other) = (scenario(seed), scenario(seed));
        assert_eq!((&one.drawn, &one.labels), (&other.drawn, &other.labels));
        assert_eq!(one.records, other.records);
        assert_eq!(one.signals, other.signals);
        assert_eq!(found(&one), found(&other));
    }
    assert_ne!(scenario(3).drawn, scenario(4).drawn);
}

#[test]
fn a_scenario_has_what_a_run_has() {
    for one in (0..6).map(scenario).chain([healthy(0)]) {
        assert!(one.records.len() >= 40, "{}", one.drawn);
        let indices: Vec<u32> = one.records.iter().map(|record| record.index).collect();
        let expected: Vec<u32> = (0..one.records.len() as u32).collect();
        assert_eq!(indices, expected, "outcomes partition the schedule");
        assert!(one.signals.scraping.taken >= 3, "{:?}", one.signals.scraping);
        assert!(one.signals.engine == Some("vllm"));
        let _ = found_by_client(&one);
    }
}

#[test]
fn seeds_draw_every_kind() {
    let drawn: Vec<usize> =
        (0..40).map(|seed| diagnosis::scenario::drawn_causes(seed).len()).collect();
    let pairs = drawn.iter().filter(|count| **count == 2).count();
    assert!((6..=18).contains(&pairs), "{pairs} of 40 have two causes");
    let firsts: std::collections::BTreeSet<&str> =
        (0..400).map(|seed| diagnosis::scenario::drawn_causes(seed)[0].id).collect();
    assert_eq!(firsts.len(), CAUSES.len());
}
