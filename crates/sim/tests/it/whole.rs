//! Whole runs: a schedule and an engine.

use measure::{Outcome, PerSecond, Record, Span};
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, Settings};
use workload::arrival::Pace;
use workload::load::{Load, Stop};
use workload::prompt::{CacheRegime, PromptSource, RunNonce};
use workload::routing::Routing;
use workload::schedule::{OutputLength, Schedule, Spec};
use workload::{Batch, Lengths, Prefixes};

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
