//! Whole runs: a schedule and an engine.

use measure::{
    Answer, Carries, FailureKind, NotSentKind, Outcome, PerSecond, Record, Span, Warnings,
};
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, Settings, Work};
use workload::arrival::Pace;
use workload::choice::{Assignment, Choice};
use workload::conversation::{Conversations, History, Script, TurnCount, Turns};
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
        choices: 1,
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
    run_within(spec, settings, around())
}

/// The same within other surroundings.
pub(crate) fn run_within(spec: Spec, settings: &Settings, around: Surroundings) -> Vec<Record> {
    let cluster = Cluster::new(settings, spec.seed).unwrap();
    let schedule = Schedule::draw(spec).unwrap().0;
    let mut kept = Keep(Vec::new());
    client::run(&schedule, RunNonce::new(5), cluster, around, &mut kept);
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

/// A prompt of a thousand tokens and its first token take their arithmetic and
/// their memory traffic: beside each other, in turn, or in part.
#[test]
fn what_does_not_overlap_takes_turns() {
    let work = Work { sequences: 1, tokens: 1_000, context: 1_000, sampled: 1, ..Work::default() };
    let with_overlap = |overlap: f64| {
        let cost = with(&[&format!("overlap={overlap}"), "step_overhead_us=0"]).cost();
        let step = cost.of(&work);
        (step.device_s, step.compute_s, step.memory_s)
    };
    let (beside_s, compute_s, memory_s) = with_overlap(1.0);
    assert!(memory_s > 0.0 && compute_s > memory_s);
    assert_eq!(beside_s, compute_s);
    for overlap in [0.0, 0.25, 0.5] {
        let (step_s, ..) = with_overlap(overlap);
        assert!((step_s - compute_s - (1.0 - overlap) * memory_s).abs() < 1e-12, "{overlap}");
    }
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

/// A run with other surroundings than the usual ones.
fn run_in(spec: Spec, settings: &Settings, around: Surroundings) -> Vec<Record> {
    let schedule = Schedule::draw(spec).unwrap().0;
    let cluster = Cluster::new(settings, 1).unwrap();
    let mut kept = Keep(Vec::new());
    client::run(&schedule, RunNonce::new(5), cluster, around, &mut kept);
    kept.0.sort_by_key(|record| record.index);
    kept.0
}

#[test]
fn users_whose_requests_are_refused_come_to_an_end() {
    let load = Load::Closed { users: 4, think: Span::ZERO.into() };
    let records =
        run(spec(load, Stop::Duration(Span::from_ms(2_000))), &with(&["max_model_len=520"]));
    assert!(records.iter().all(|record| record.answer.http_status == Some(400)));
    // Each refusal takes the front end's 2.26 ms.
    assert!((3_000..4_000).contains(&records.len()), "{}", records.len());
}

#[test]
fn a_cap_holds_until_the_client_has_the_answer() {
    let load = Load::Capped { pace: Pace::flat(PerSecond::new(50.0), 1.0), users: 4 };
    let around = Surroundings { one_way: Span::from_ms(100), ..around() };
    let records = run_in(spec(load, Stop::Count(120)), &Settings::default(), around);
    let mut changes: Vec<(i64, i32)> = Vec::new();
    for record in &records {
        changes.push((record.stamps.sent_at.unwrap().us(), 1));
        changes.push((record.stamps.ended_at.unwrap().us(), -1));
    }
    // An end frees its slot for what is sent at the same instant.
    changes.sort_unstable();
    let mut in_flight = 0;
    for (at, change) in changes {
        in_flight += change;
        assert!(in_flight <= 4, "{in_flight} at {at} µs");
    }
    let waited =
        records.iter().filter(|record| record.stamps.released_at > Some(record.stamps.intended_at));
    assert!(waited.count() > 50);
}

#[test]
fn time_outs_are_the_clients() {
    let load = Load::Closed { users: 1, think: Span::ZERO.into() };
    let around = Surroundings {
        one_way: Span::from_ms(300),
        request_timeout: Span::from_ms(900),
        ..around()
    };
    // 64 tokens take some 430 ms, and the ways there and back 600 ms.
    let records = run_in(spec(load, Stop::Count(5)), &Settings::default(), around);
    assert_eq!(records.len(), 5);
    for record in &records {
        assert_eq!(record.outcome, Outcome::Failed(FailureKind::TotalTimeout));
        let took = record.stamps.ended_at.unwrap() - record.stamps.sent_at.unwrap();
        assert_eq!(took, Span::from_ms(900));
        assert_eq!(record.answer.http_status, Some(200), "its stream had begun");
        let last = record.events.at_us.last().copied().unwrap();
        assert!(last <= 900_000, "{last}");
    }
}

#[test]
fn of_several_answers_a_client_has_the_events_of_each_and_the_sum() {
    let load = Load::Closed { users: 2, think: Span::ZERO.into() };
    let of = |choices, keep_events| {
        let around = Surroundings { choices, keep_events, ..around() };
        run_in(spec(load.clone(), Stop::Count(6)), &Settings::default(), around)
    };
    let (several, one) = (of(3, true), of(1, true));
    for (index, record) in several.iter().enumerate() {
        assert_eq!(record.outcome, Outcome::Ok);
        let answer = &record.answer;
        assert_eq!((answer.choices, answer.counts.usage.unwrap().get()), (3, 3 * 64));
        assert_eq!(answer.counts.prompt, one[index].answer.counts.prompt);
        assert_eq!(answer.counts.cached.unwrap().get(), 0, "of the first that began");
        assert!(answer.warnings.has(Warnings::N_GT_1) && answer.server_timings.is_empty());
        let events: Vec<_> = record.events.iter().collect();
        let roles = events.iter().take_while(|event| event.carries.any(Carries::ROLE));
        assert_eq!(roles.map(|event| event.choice).collect::<Vec<_>>(), [0, 1, 2]);
        for choice in 0..3 {
            let texts = events
                .iter()
                .filter(|event| event.choice == choice && event.carries.any(Carries::TEXT));
            assert_eq!(texts.clone().count(), 64);
            let ends = texts.map(|event| event.carries.any(Carries::FINISH)).collect::<Vec<_>>();
            assert_eq!(ends.iter().position(|ends| *ends), Some(63));
        }
        let [.., usage, done] = events.as_slice() else { panic!("no events") };
        assert!(usage.carries.any(Carries::USAGE) && done.carries.any(Carries::DONE));
    }
    // Without events the first and the last are those of all answers together.
    for (all, few) in several.iter().zip(of(3, false)) {
        let ends = |record: &Record| {
            let texts = record.events.iter().filter(|event| event.carries.any(Carries::TEXT));
            let at: Vec<u32> = texts.map(|event| event.at_us).collect();
            (at[0], at[at.len() - 1])
        };
        assert_eq!(ends(all), ends(&few));
        // Nobody reads there why an answer ended.
        assert_eq!(Answer { finish_reason: None, ..all.answer.clone() }, few.answer);
    }
}

#[test]
fn a_later_turn_carries_the_first_of_several_answers() {
    let around = Surroundings { choices: 3, ..around() };
    let (several, one) = (conversations_in(2, &Settings::default(), around), {
        conversations(2, &Settings::default())
    });
    let prompt = |record: &Record| record.answer.counts.prompt;
    assert!(several.iter().map(prompt).eq(one.iter().map(prompt)));
    let cached = |record: &Record| record.answer.counts.cached;
    assert!(several.iter().map(cached).eq(one.iter().map(cached)));
}

#[test]
fn each_pool_of_replicas_is_dealt_in_turn() {
    let settings = with(&["replicas=2", "prefill_replicas=2"]);
    let load = Load::Closed { users: 1, think: Span::ZERO.into() };
    let records = run(spec(load, Stop::Count(20)), &settings);
    for replica in ["replica-2", "replica-3"] {
        let own =
            records.iter().filter(|record| record.answer.served_by.as_deref() == Some(replica));
        assert_eq!(own.count(), 10, "{replica}");
    }
}

fn conversations(count: u32, settings: &Settings) -> Vec<Record> {
    conversations_in(count, settings, around())
}

fn conversations_in(count: u32, settings: &Settings, around: Surroundings) -> Vec<Record> {
    let load = Load::Closed { users: 1, think: Span::ZERO.into() };
    let turns = Turns { count: TurnCount::fixed(3).unwrap(), input: None };
    let conversations = Conversations {
        script: Script::Written(turns),
        think: Span::from_ms(10_000).into(),
        history: History::Real,
    };
    let spec = Spec { conversations: Some(conversations), ..spec(load, Stop::Count(count)) };
    run_in(spec, settings, around)
}

#[test]
fn a_turn_waits_and_finds_what_was_said() {
    let records = conversations(2, &Settings::default());
    assert_eq!(records.len(), 6);
    for pair in records.windows(2).filter(|pair| pair[1].planned.turn > 0) {
        let [before, turn] = pair else { unreachable!("windows of two") };
        let pause = turn.stamps.intended_at - before.stamps.ended_at.unwrap();
        assert_eq!(pause, Span::from_ms(10_000));
        let counts = |record: &Record| record.answer.counts.prompt.unwrap().get();
        assert_eq!(counts(turn), counts(before) + 64 + 512, "its history, the answer, its own");
        // All whole blocks of the turn before and its answer are there, but for
        // the last token, which was never computed.
        let known = counts(before) + 64 - 1;
        assert_eq!(turn.answer.counts.cached.unwrap().get(), known / 16 * 16);
    }
}

#[test]
fn a_conversation_that_breaks_frees_its_user_at_the_last_turn_that_was_sent() {
    // The second turn has 512 + 64 + 512 tokens, and 64 to come.
    let records = conversations(2, &with(&["max_model_len=1100"]));
    let outcomes: Vec<Outcome> = records.iter().map(|record| record.outcome).collect();
    let broken = [
        Outcome::Ok,
        Outcome::Failed(FailureKind::HttpStatus),
        Outcome::NotSent(NotSentKind::ParentFailed),
    ];
    assert_eq!(outcomes, [broken, broken].concat());
    assert_eq!(records[3].stamps.intended_at, records[1].stamps.ended_at.unwrap());
}

#[test]
fn what_was_warmed_up_is_found() {
    let schedule = |cache: CacheRegime| {
        let spec = Spec {
            prefixes: Prefixes { shared_tokens: 800, ..Prefixes::NONE },
            cache,
            ..at_rate(2.0, 20)
        };
        Schedule::draw(spec).unwrap().0
    };
    let warm = schedule(CacheRegime::Warm);
    let mut cluster = Cluster::new(&Settings::default(), 1).unwrap();
    let nonce = RunNonce::new(5);
    let priming = warm.priming(0).unwrap();
    cluster = client::run(&priming, nonce, cluster, around(), &mut Keep(Vec::new()));
    assert!(cluster.now_ns() > 0);
    let mut kept = Keep(Vec::new());
    client::run(&warm, nonce, cluster, around(), &mut kept);
    assert!(kept.0.iter().all(|record| record.answer.counts.cached.unwrap().get() == 800));
    let first = kept.0.iter().min_by_key(|record| record.index).unwrap();
    assert!(first_token_ms(first).unwrap() < 200.0, "instants are those of the run");
}
