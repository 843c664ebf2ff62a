//! What scenarios are held to, and a small part of the matrix.

use diagnosis::cause::CAUSES;
use diagnosis::judge::{found, found_by_client};
use diagnosis::scenario::{Scenario, healthy, scenario};
use measure::finding::Confidence;

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
        (0..400).map(|seed| diagnosis::scenario::drawn_causes(seed).len()).collect();
    let pairs = drawn.iter().filter(|count| **count == 2).count();
    // 30 % of 400, four standard deviations either way.
    assert!((84..=156).contains(&pairs), "{pairs} of 400 have two causes");
    let firsts: std::collections::BTreeSet<&str> =
        (0..400).map(|seed| diagnosis::scenario::drawn_causes(seed)[0].id).collect();
    assert_eq!(firsts.len(), CAUSES.len());
}

/// Rules for what the model does not have stay silent about what it has.
fn are_seen_live(one: &Scenario) {
    for found in found(one).iter().chain(&found_by_client(one)) {
        let rule = insight::rule::find(found.rule).unwrap();
        assert!(rule.seen_live, "{} in {}", rule.id, one.drawn);
    }
}

/// A small part of the matrix, of seeds that rules may be tuned on. The whole is in
/// docs/diagnosis-matrix.md.
#[test]
fn most_causes_are_named() {
    let (mut first, mut singles) = (0, 0);
    for one in (0..24).map(scenario).filter(|one| one.labels.len() == 1) {
        are_seen_live(&one);
        singles += 1;
        let is_named = found(&one).first().is_some_and(|found| found.places(one.labels[0]));
        first += u32::from(is_named);
    }
    assert!(10 * first >= 8 * singles, "{first} of {singles}");
}

#[test]
fn of_healthy_runs_nothing_is_confirmed() {
    for one in (0..8).map(healthy) {
        are_seen_live(&one);
        let sure = |one: &diagnosis::judge::Found| one.confidence == Confidence::Confirmed;
        assert!(!found(&one).iter().any(sure), "{:?} in {}", found(&one), one.drawn);
    }
}

/// The page in docs is that of the file beside it.
#[test]
fn the_page_of_the_matrix_is_current() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/diagnosis-matrix");
    let read = |end: &str| std::fs::read_to_string(format!("{docs}.{end}")).unwrap();
    let result = serde_json::from_str(&read("json")).unwrap();
    assert_eq!(read("md"), diagnosis::page::page(&result));
}
