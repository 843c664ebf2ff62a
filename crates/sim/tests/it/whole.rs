//! Whole runs: a schedule and an engine.

use measure::{Outcome, PerSecond, Record, Span};
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, Settings};
use workload::arrival::Pace;
use workload::choice::{Assignment, Choice};
use workload::load::{Load, Stop};
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, ModelKind, Prefixes};

struct Keep(Vec<Record>);

impl Observer for Keep {
    fn ended(&mut self, record: Record) {
        self.0.push(record);
    }
}

pub(crate) fn around() -> Surroundings {
    Surroundings {
        one_way: Span::ZERO,
        request_timeout: Span::from_ms(600_000),
        idle_timeout: Span::from_ms(60_000),
        is_chat: true,
        keep_events: true,
        default_output: 128,
    }
}

pub(crate) fn spec(load: Load, stop: Stop) -> Spec {
    Spec {
        seed: 7,
        load,
        stop,
        prompts: PromptSource::Synthetic { input: Lengths::fixed(512).unwrap() },
        pictures: None,
        batch: Batch::One,
        prefixes: Prefixes::NONE,
        output: OutputLength::Drawn(Lengths::fixed(64).unwrap()),
        output_forced: true,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: None,
    }
}

/// The records of a run, in the order of their ends.
pub(crate) fn run(spec: Spec, settings: &Settings) -> Vec<Record> {
    let cluster = Cluster::new(settings, spec.seed).unwrap();
    let schedule = Schedule::draw(spec).unwrap().0;
    let mut kept = Keep(Vec::new());
    client::run(&schedule, RunNonce::new(5), cluster, around(), &mut kept);
    kept.0
}

#[test]
fn an_open_loop_ends_every_request_with_every_token() {
    let load = Load::Open { pace: Pace::flat(PerSecond::new(20.0), 1.0) };
    let records = run(spec(load, Stop::Count(200)), &Settings::default());
    assert_eq!(records.len(), 200);
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok);
        assert_eq!(record.output_tokens().unwrap().0.get(), 64);
        assert_eq!(record.output_chunks(), 64);
    }
}

#[test]
fn a_closed_loop_keeps_its_users_busy() {
    let load = Load::Closed { users: 4, think: Span::ZERO.into() };
    let records = run(spec(load, Stop::Count(40)), &Settings::default());
    assert_eq!(records.len(), 40);
    let first = records.iter().filter(|record| record.stamps.intended_at.us() == 0).count();
    assert_eq!(first, 4);
}

/// The mean of a figure of the records.
fn mean(records: &[Record], of: impl Fn(&Record) -> Option<f64>) -> f64 {
    let all: Vec<f64> = records.iter().filter_map(of).collect();
    all.iter().sum::<f64>() / all.len() as f64
}

fn first_token_ms(record: &Record) -> Option<f64> {
    let first = record.events.iter().find(|event| event.carries.is_arrival())?;
    Some((record.event_at(first.at_us)? - record.stamps.intended_at).ms())
}

fn with(sets: &[&str]) -> Settings {
    let mut settings = Settings::default();
    sets.iter().for_each(|set| settings.set(set).unwrap());
    settings
}

fn at_rate(rate: f64, count: u32) -> Spec {
    let load = Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) };
    spec(load, Stop::Count(count))
}

#[test]
fn a_slow_replica_slows_its_own_requests_only() {
    let settings = with(&["replicas=2", "slow_replica_factor=3"]);
    let records = run(at_rate(2.0, 100), &settings);
    let of = |name: &str| {
        let own: Vec<Record> = records
            .iter()
            .filter(|record| record.answer.served_by.as_deref() == Some(name))
            .cloned()
            .collect();
        assert_eq!(own.len(), 50, "each gets every other request");
        mean(&own, first_token_ms)
    };
    let (slow, sound) = (of("replica-0"), of("replica-1"));
    assert!((2.0..3.5).contains(&(slow / sound)), "{slow} and {sound}");
    let usual = mean(&run(at_rate(2.0, 100), &with(&["replicas=2"])), first_token_ms);
    assert!((sound / usual - 1.0).abs() < 0.1, "{sound} and {usual}");
}

#[test]
fn heat_slows_what_comes_while_it_lasts() {
    let settings = with(&["throttle_after_s=20", "throttle_for_s=20", "throttle_factor=2"]);
    let records = run(at_rate(2.0, 120), &settings);
    let between = |from: i64, until: i64| {
        let own: Vec<Record> = records
            .iter()
            .filter(|record| (from..until).contains(&(record.stamps.intended_at.us() / 1_000_000)))
            .cloned()
            .collect();
        mean(&own, first_token_ms)
    };
    let (before, hot, after) = (between(0, 19), between(20, 39), between(41, 60));
    assert!((1.7..2.3).contains(&(hot / before)), "{before}, {hot}, {after}");
    assert!((0.9..1.1).contains(&(after / before)), "{before}, {hot}, {after}");
}

#[test]
fn a_cold_start_makes_the_first_ones_wait() {
    let records = run(at_rate(2.0, 60), &with(&["cold_start_s=5"]));
    let first = records.iter().min_by_key(|record| record.index).unwrap();
    let waited = first_token_ms(first).unwrap() + first.stamps.intended_at.ms();
    assert!((5_000.0..5_200.0).contains(&waited), "{waited}");
    let last = records.iter().max_by_key(|record| record.index).unwrap();
    assert!(first_token_ms(last).unwrap() < 200.0);
}

#[test]
fn more_adapters_than_places_load_again_and_again() {
    let spec = || {
        let mut spec = at_rate(4.0, 120);
        let names = ["a", "b", "c", "d"].map(|name| (name.to_owned(), 1.0));
        let choice = Choice::new(names.to_vec(), Assignment::InTurn).unwrap();
        spec.routing.models = Some((ModelKind::Adapter, choice));
        spec
    };
    let ttft = |sets: &[&str]| mean(&run(spec(), &with(sets)), first_token_ms);
    let free = ttft(&[]);
    let enough = ttft(&["max_loras=4", "lora_load_ms=200"]);
    let few = ttft(&["max_loras=2", "lora_load_ms=200"]);
    assert!((enough - free) * 120.0 < 4.0 * 400.0, "four loads in all: {free} and {enough}");
    assert!(few > enough + 100.0, "{enough} and {few}");
}
