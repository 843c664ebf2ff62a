//! Runs side by side: in which of seed 000's three conditions they differ.

#[allow(dead_code, reason = "one builder for the tests of several crates")]
#[path = "../../report/tests/runs/mod.rs"]
mod runs;

use insight::conditions::{Difference, differences};
use measure::summary::Summary;

fn named(differences: &[Difference]) -> Vec<&str> {
    differences.iter().filter(|one| one.decides).map(|one| one.what.en).collect()
}

fn beside(change: impl Fn(&mut runs::Run)) -> Vec<Difference> {
    let one = runs::healthy().summary();
    let mut other = runs::healthy();
    change(&mut other);
    differences(&[&one, &other.summary()])
}

#[test]
fn a_run_differs_from_itself_in_nothing() {
    assert_eq!(beside(|_| {}), Vec::new());
    let alone: &[&Summary] = &[&runs::healthy().summary()];
    assert_eq!(differences(alone), Vec::new());
}

#[test]
fn each_of_the_three_conditions_is_found_by_itself() {
    let lengths = beside(|run| run.facts.workload.input_lengths = "1024 tokens".to_owned());
    assert_eq!(named(&lengths), ["prompt lengths asked for"]);
    let arrivals = beside(|run| run.facts.load.request_rate = Some(50.0));
    assert_eq!(named(&arrivals), ["requests a second asked for"]);
    let cache = beside(|run| run.facts.workload.cache_regime = "warm".to_owned());
    assert_eq!(named(&cache), ["state of the prefix cache"]);
}

#[test]
fn served_lengths_may_be_a_tenth_apart_and_no_more() {
    let served = |tokens: u32| {
        beside(|run| {
            for record in &mut run.records {
                record.answer.counts.prompt = Some(measure::Tokens::new(tokens));
            }
        })
    };
    assert_eq!(named(&served(490)), Vec::<&str>::new());
    let far = served(400);
    assert!(named(&far).contains(&"prompt tokens served, mean"), "{far:?}");
}

#[test]
fn another_model_is_said_and_decides_nothing() {
    let found = beside(|run| run.facts.model = Some("other".to_owned()));
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].what.en, found[0].decides), ("model", false));
}
