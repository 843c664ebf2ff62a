//! Fits: settings that made a run are found again, and what no settings make is
//! refused.

use measure::facts::{LoadFacts, LoadKind};
use measure::{PerSecond, Record, Span};
use sim::Settings;
use sim::fit::{FitError, Observed, USUAL, fit};
use workload::arrival::Pace;
use workload::load::{Load, Stop};

use crate::whole::{run, spec};

fn facts(kind: LoadKind, users: Option<u32>) -> LoadFacts {
    LoadFacts {
        kind,
        request_rate: None,
        burstiness: None,
        users,
        arrivals: String::new(),
        planned_duration: None,
        seed: 7,
        schedule_hash: String::new(),
        replay: None,
    }
}

fn open(rate: f64, settings: &Settings) -> (Vec<Record>, LoadFacts) {
    let load = Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) };
    (run(spec(load, Stop::Count(150)), settings), facts(LoadKind::Open, None))
}

fn closed(users: u32, settings: &Settings) -> (Vec<Record>, LoadFacts) {
    let load = Load::Closed { users, think: Span::ZERO.into() };
    (run(spec(load, Stop::Count(150)), settings), facts(LoadKind::Closed, Some(users)))
}

fn observed(name: &str, (records, load): &(Vec<Record>, LoadFacts)) -> Observed {
    Observed::of(name, records, load).unwrap()
}

#[test]
fn the_settings_that_made_runs_are_found_again() {
    let mut truth = Settings::default();
    for set in [
        "compute_efficiency=0.4",
        "memory_efficiency=0.55",
        "step_overhead_us=1500",
        "request_overhead_us=40",
        "frontend_overhead_us=6000",
    ] {
        truth.set(set).unwrap();
    }
    let runs = [open(4.0, &truth), closed(2, &truth), closed(48, &truth)];
    let runs: Vec<Observed> = runs.iter().map(|one| observed("run", one)).collect();
    let found = fit(&runs, &Settings::default(), USUAL).unwrap();
    assert!(found.holds() && found.error < 0.02, "{}: {:?}", found.error, found.fitted);
    let expected = [0.4, 0.55, 1500.0, 40.0, 6000.0];
    for (fitted, expected) in found.fitted.iter().zip(expected) {
        let within = fitted.low.is_none_or(|low| low <= expected)
            && fitted.high.is_none_or(|high| expected <= high);
        assert!(within, "{fitted}, made with {expected}");
    }
    let determined =
        |name: &str| found.fitted.iter().any(|fitted| fitted.name == name && fitted.determined);
    assert!(determined("compute_efficiency") && determined("memory_efficiency"));
    // What a scheduler takes is hidden behind the steps.
    assert!(!determined("request_overhead_us"), "{:?}", found.fitted);
    // What was not fitted to is predicted.
    let (fresh, load) = closed(16, &truth);
    let fresh = observed("fresh", &(fresh, load));
    let predicted = fresh.simulated(&found.settings).unwrap();
    let off = |own: f64, other: f64| (own / other).ln().abs();
    assert!(off(predicted.mean_ttft_ms, fresh.measured().mean_ttft_ms) < 0.05);
    assert!(off(predicted.makespan_s, fresh.measured().makespan_s) < 0.02);
}

#[test]
fn what_one_idle_user_shows_does_not_determine_everything() {
    let truth = Settings::default();
    let runs = [observed("run", &closed(1, &truth))];
    let mut start = Settings::default();
    start.set("request_overhead_us=100").unwrap();
    let found = fit(&runs, &start, USUAL).unwrap();
    assert!(found.holds());
    let vague = found.fitted.iter().filter(|fitted| !fitted.determined).count();
    assert!(vague > 0, "{:?}", found.fitted);
}

#[test]
fn a_run_that_no_engine_of_this_kind_makes_is_refused() {
    let (mut records, load) = open(4.0, &Settings::default());
    for record in records.iter_mut().filter(|record| record.index % 2 == 0) {
        // Half of the requests stand somewhere for three seconds.
        for at_us in &mut record.events.at_us {
            *at_us += 3_000_000;
        }
        record.stamps.ended_at = record.stamps.ended_at.map(|at| at + Span::from_ms(3_000));
    }
    let runs = [observed("run", &(records, load))];
    assert!(!fit(&runs, &Settings::default(), USUAL).unwrap().holds());
}

#[test]
fn a_run_that_says_too_little_is_refused_with_the_reason() {
    let (records, load) = open(4.0, &Settings::default());
    let few = Observed::of("few", &records[..10], &load).unwrap_err();
    assert_eq!(few, FitError::TooFew { run: "few".to_owned(), ok: 10 });
    let mut unsaid = records.clone();
    for record in &mut unsaid {
        record.answer.counts.prompt = None;
    }
    let unsaid = Observed::of("unsaid", &unsaid, &load).unwrap_err();
    assert_eq!(unsaid, FitError::NoLengths { run: "unsaid".to_owned() });
    let mut several = records.clone();
    several[3].answer.choices = 2;
    let several = Observed::of("several", &several, &load).unwrap_err();
    assert_eq!(several, FitError::SeveralChoices { run: "several".to_owned() });
    let runs = [observed("run", &(records, load))];
    let unknown = fit(&runs, &Settings::default(), &["scheduling_policy"]).unwrap_err();
    assert_eq!(unknown, FitError::NotFitted("scheduling_policy is no time or rate".to_owned()));
}
