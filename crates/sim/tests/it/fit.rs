//! Fits: settings that made a run are found again, and what no settings make is
//! refused.

use measure::facts::{LoadFacts, LoadKind};
use measure::{PerSecond, Record, Span};
use sim::client::Surroundings;
use sim::fit::{Figures, FitError, Fitted, Observed, USUAL, fit};
use sim::{Inside, Settings};
use workload::arrival::Pace;
use workload::load::{Load, Stop};

use crate::whole::{around, run, run_within, spec};

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

/// What the server of these records says of itself: each answer came with its
/// prefill, and `outside` of what the client waited is none of the server's.
fn told(records: &[Record], outside: Span) -> Inside {
    let prefills = records.iter().filter_map(|record| {
        let timings = &record.answer.server_timings;
        timings.iter().find(|(name, _)| name == "time_to_first_token_ms").map(|(_, ms)| *ms)
    });
    let prefills: Vec<f64> = prefills.collect();
    assert_eq!(prefills.len(), records.len());
    Inside {
        ttft_ms: Some(Figures::of(records).mean_ttft_ms - outside.ms()),
        prefill_ms: prefills.iter().sum::<f64>() / prefills.len() as f64,
    }
}

#[test]
fn the_model_says_of_itself_what_its_server_said() {
    let truth = Settings::default();
    for users in [1, 48, 300] {
        let (records, load) = closed(users, &truth);
        let told = told(&records, Span::ZERO);
        let played = observed("run", &(records, load)).seen_inside(told).simulated(&truth).unwrap();
        let own = played.inside.unwrap();
        // The records have whole microseconds.
        assert!((own.ttft_ms.unwrap() - told.ttft_ms.unwrap()).abs() < 2e-3, "{own:?}, {told:?}");
        assert!((own.prefill_ms - told.prefill_ms).abs() < 2e-3, "{own:?}, {told:?}");
        assert!(own.waited_ms().unwrap() > 1.9, "the front end takes 2 ms: {own:?}");
    }
}

#[test]
fn what_the_server_says_tells_its_front_end_from_its_prefill_and_from_the_way_to_it() {
    let outside = Span::from_ms(80);
    let around = Surroundings { one_way: Span::from_ms(40), ..around() };
    for (compute, front_end_us) in [(0.4, 6_000.0), (0.75, 3_000.0), (0.5, 15_000.0)] {
        let mut truth = Settings::default();
        truth.set(&format!("compute_efficiency={compute}")).unwrap();
        truth.set(&format!("frontend_overhead_us={front_end_us}")).unwrap();
        let load = Load::Closed { users: 1, think: Span::ZERO.into() };
        let records = run_within(spec(load, Stop::Count(60)), &truth, around);
        let told = told(&records, outside);
        let client = observed("run", &(records, facts(LoadKind::Closed, Some(1))));
        let names = ["compute_efficiency", "frontend_overhead_us"];
        let front_end = |runs: &[Observed]| -> Vec<Fitted> {
            fit(runs, &Settings::default(), &names).unwrap().fitted
        };
        // One user's TTFT is one number, of which any part may be the front end.
        let alone = front_end(&[client.clone().at_distance(outside)]);
        assert!(!alone[1].determined, "{alone:?}");
        let seen = front_end(&[client.at_distance(outside).seen_inside(told)]);
        for (fitted, expected) in seen.iter().zip([compute, front_end_us]) {
            assert!((fitted.value / expected - 1.0).abs() < 0.03, "{fitted}, made with {expected}");
            assert!(fitted.determined, "{fitted}");
        }
    }
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
