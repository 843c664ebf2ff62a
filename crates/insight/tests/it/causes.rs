//! Runs of the engine model whose cause is known, and what is named.

use measure::finding::{Confidence, Finding};
use measure::record::Carries;
use measure::summary::Summary;
use measure::{FailureKind, Outcome, PerSecond, Span};
use workload::arrival::{Pace, Process};
use workload::choice::{Assignment, Choice};
use workload::prompt::PromptSource;
use workload::routing::Routing;
use workload::schedule::{OutputLength, Spec};
use workload::{Lengths, Load, Mix, ModelKind, Part, Prefixes, Shape, Stage};

use crate::model::{Ran, at_rate, of_users, play, spec, with};

const NEAR: Span = Span::from_us(200);

fn findings(summary: Summary) -> Vec<Finding> {
    summary.inside.findings.unwrap()
}

fn shown(found: &[Finding]) -> String {
    let each = found.iter().map(|one| {
        format!("{} {} {:.2}: {}", one.rule, one.confidence.text().en, one.share, one.says.en)
    });
    each.collect::<Vec<_>>().join("\n      ")
}

/// A known run and the rules of which one must be named first.
struct Known {
    name: &'static str,
    ran: Ran,
    rules: &'static [&'static str],
    /// How sure it must be at least.
    sure: Confidence,
    /// The same without the server's metrics, where that can be told.
    by_client: &'static [&'static str],
}

fn known(name: &'static str, ran: Ran, rules: &'static [&'static str]) -> Known {
    Known { name, ran, rules, sure: Confidence::Confirmed, by_client: &[] }
}

impl Known {
    fn likely(self) -> Self {
        Self { sure: Confidence::Likely, ..self }
    }

    fn alone(self, by_client: &'static [&'static str]) -> Self {
        Self { by_client, ..self }
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let found = findings(self.ran.examined());
        let first = found
            .first()
            .filter(|first| self.rules.contains(&first.rule) && first.confidence >= self.sure);
        if first.is_none() {
            problems.push(format!(
                "{}: {:?} and not\n      {}",
                self.name,
                self.rules,
                shown(&found)
            ));
        }
        let alone = findings(self.ran.by_client());
        let first = alone.first().map(|first| first.rule);
        if !self.by_client.is_empty() && !first.is_some_and(|rule| self.by_client.contains(&rule)) {
            problems.push(format!(
                "{} by the client: {:?} and not\n      {}",
                self.name,
                self.by_client,
                shown(&alone)
            ));
        }
        // What needs evidence of its own is not guessed from latencies.
        if let Some(unseen) = found.iter().chain(&alone).find(|one| !one.seen_live) {
            problems.push(format!("{}: {} {}", self.name, unseen.rule, unseen.says.en));
        }
        if alone.iter().any(|one| one.confidence == Confidence::Confirmed && one.rule != "errors") {
            problems.push(format!(
                "{}: sure without the server\n      {}",
                self.name,
                shown(&alone)
            ));
        }
        problems
    }
}

#[track_caller]
fn hold(all: Vec<Known>) {
    let problems: Vec<String> = all.iter().flat_map(Known::problems).collect();
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

const LIMITED: &[&str] = &["seat_limit", "kv_capacity", "kv_admission"];

#[test]
fn queues_are_told_apart_by_what_is_at_its_end() {
    let seats = with(&["max_num_seqs=8"]);
    let kv = with(&["num_gpu_blocks_override=700", "max_model_len=4096"]);
    let budget = with(&["max_num_batched_tokens=96", "max_num_seqs=64"]);
    hold(vec![
        known(
            "seats",
            play(spec(of_users(32), 200, (600, 100)), &seats, NEAR).seats(8),
            &["seat_limit"],
        )
        .alone(LIMITED),
        known(
            "seats not told",
            play(spec(of_users(32), 200, (600, 100)), &seats, NEAR),
            &["seat_limit"],
        )
        .likely(),
        known(
            "KV",
            play(spec(of_users(48), 200, (600, 300)), &kv, NEAR).seats(1024),
            &["kv_capacity"],
        )
        .alone(LIMITED),
        known(
            "token budget",
            play(spec(at_rate(2.0), 120, (2_000, 60)), &budget, NEAR).seats(64).wants(150.0, 50.0),
            &["prefill_backlog"],
        )
        .likely(),
        known(
            "over-saturation",
            play(spec(at_rate(60.0), 900, (2_000, 60)), &with(&[]), NEAR).seats(1024),
            &["over_saturation"],
        )
        .alone(&["over_saturation"]),
    ]);
}

#[test]
fn what_decoding_waits_for_is_named() {
    let weights = with(&["model=llama-3.1-8b"]);
    let contexts = with(&["max_num_batched_tokens=2048"]);
    let eager = with(&["enforce_eager=true", "eager_layer_overhead_us=900"]);
    let drafts = with(&["num_speculative_tokens=5", "acceptance_rate=0.05", "draft_share=0.15"]);
    hold(vec![
        known(
            "weights",
            play(spec(of_users(4), 80, (200, 200)), &weights, NEAR)
                .on(&weights)
                .wants(2_000.0, 5.0),
            &["weight_bandwidth"],
        ),
        known(
            "keys and values",
            play(spec(of_users(30), 90, (9_000, 600)), &contexts, NEAR)
                .on(&contexts)
                .wants(60_000.0, 9.0),
            &["kv_bandwidth"],
        ),
        known(
            "host",
            play(spec(at_rate(2.0), 80, (300, 80)), &eager, NEAR).on(&eager),
            &["host_bound"],
        )
        .likely(),
        known(
            "drafts",
            play(spec(at_rate(3.0), 90, (300, 120)), &drafts, NEAR),
            &["speculation_ineffective"],
        ),
        known(
            "long prompts",
            play(
                spec(at_rate(2.0), 100, (7_000, 250)),
                &with(&["max_num_batched_tokens=8192"]),
                NEAR,
            ),
            &["prefill_interference"],
        )
        .likely()
        .alone(&["prefill_interference"]),
    ]);
}

#[test]
fn what_lies_outside_the_engine_is_named() {
    let far = Span::from_ms(90);
    let with_handshakes = |mut ran: Ran, round_trip: Span| {
        for record in ran.records.iter_mut().step_by(7) {
            record.stamps.resolved_at = record.stamps.sent_at.map(|at| at - round_trip);
            record.stamps.connected_at = record.stamps.sent_at;
        }
        ran
    };
    let slow_door = with(&["frontend_overhead_us=120000"]);
    let mut coalesced = play(spec(at_rate(3.0), 90, (300, 100)), &with(&[]), NEAR);
    let mut buffered = play(spec(at_rate(3.0), 90, (300, 100)), &with(&[]), NEAR);
    let mut late = play(spec(at_rate(6.0), 150, (300, 60)), &with(&[]), NEAR);
    let mut refused = play(spec(at_rate(6.0), 150, (300, 60)), &with(&[]), NEAR);
    for record in &mut coalesced.records {
        record.events.at_us.iter_mut().for_each(|us| *us = us.div_ceil(150_000) * 150_000);
    }
    for record in &mut buffered.records {
        let last = *record.events.at_us.last().unwrap();
        record.events.at_us.iter_mut().for_each(|us| *us = last);
        record.stamps.first_byte_at = record.event_at(last);
    }
    for (place, record) in late.records.iter_mut().enumerate() {
        let wait = Span::from_ms(20 * (place as i64 % 15));
        record.stamps.intended_at = record.stamps.sent_at.unwrap() - wait;
    }
    late.facts.instrument.busiest_thread = Some(0.97);
    for record in refused.records.iter_mut().step_by(5) {
        record.outcome = Outcome::Failed(FailureKind::HttpStatus);
        record.answer.http_status = Some(503);
        record.events = measure::record::Events::default();
    }
    let usual = spec(at_rate(3.0), 90, (300, 80));
    hold(vec![
        known(
            "distance",
            with_handshakes(play(usual.clone(), &with(&[]), far), far + far),
            &["distance"],
        ),
        known(
            "front end",
            play(spec(at_rate(3.0), 90, (300, 80)), &slow_door, NEAR),
            &["front_end"],
        )
        .likely(),
        known("a proxy that coalesces", coalesced, &["proxy_buffering"])
            .alone(&["proxy_buffering"]),
        known("a proxy that buffers", buffered, &["proxy_buffering"]).alone(&["proxy_buffering"]),
        known("a late client", late, &["client_bottleneck"]).alone(&["client_bottleneck"]),
        known("errors", refused, &["errors"]),
    ]);
}

fn sharing(tokens: u32, groups: u32, own: u32, rate: f64) -> Spec {
    let prefixes = Prefixes { shared_tokens: 0, groups, group_tokens: tokens, session_tokens: 0 };
    Spec { prefixes, ..spec(at_rate(rate), 200, (own, 60)) }
}

#[test]
fn lost_prefixes_are_named() {
    let off = with(&["enable_prefix_caching=false"]);
    let small = with(&["num_gpu_blocks_override=2200", "max_model_len=8192"]);
    hold(vec![
        known("cache off", play(sharing(4_000, 1, 100, 5.0), &off, NEAR), &["prefix_not_hit"])
            .alone(&["prefix_not_hit"]),
        known(
            "evicted",
            play(sharing(2_000, 40, 100, 5.0), &small, NEAR),
            &["prefix_evicted", "prefix_not_hit"],
        ),
    ]);
}

fn bursts() -> Load {
    let stage =
        |rate: f64, s: i64| Stage { rate: PerSecond::new(rate), lasts: Span::from_ms(1_000 * s) };
    let shape = Shape::Bursts { on: stage(60.0, 1), off: stage(0.2, 6) };
    Load::Open { pace: Pace { process: Process::Poisson, shape } }
}

fn long_among_short() -> Spec {
    let short = spec(at_rate(10.0), 400, (100, 12));
    let part = |name: &str, weight, input: u32| Part {
        name: name.to_owned(),
        weight,
        prompts: PromptSource::Synthetic { input: Lengths::uniform(input, 0.1).unwrap() },
        pictures: None,
        prefixes: Prefixes::NONE,
        batch: workload::Batch::One,
        output: OutputLength::Drawn(Lengths::fixed(12).unwrap()),
        output_forced: true,
        repeats: true,
        routing: Routing::default(),
    };
    let parts = vec![part("short", 0.94, 100), part("long", 0.06, 9_000)];
    Spec { prompts: PromptSource::Mix(Box::new(Mix::new(parts).unwrap())), ..short }
}

#[test]
fn what_the_load_and_the_machines_do_over_time_is_named() {
    let cold = with(&["cold_start_s=6"]);
    let hot = with(&["throttle_after_s=14", "throttle_for_s=60", "throttle_factor=2.2"]);
    let uneven = with(&["replicas=3", "slow_replica_factor=4"]);
    let places = with(&["max_loras=1", "lora_load_ms=120"]);
    let mut adapters = spec(at_rate(5.0), 150, (300, 60));
    let names = (0..8).map(|number| (format!("adapter-{number}"), 1.0)).collect();
    let choice = Choice::new(names, Assignment::Random).unwrap();
    adapters.routing = Routing { models: Some((ModelKind::Adapter, choice)), ..Routing::default() };
    let budget = with(&["max_num_batched_tokens=2048"]);
    hold(vec![
        known("cold start", play(spec(at_rate(5.0), 200, (300, 60)), &cold, NEAR), &["cold_start"]),
        known("heat", play(spec(at_rate(5.0), 200, (300, 100)), &hot, NEAR), &["throttled"])
            .likely(),
        known(
            "a slow replica",
            play(spec(at_rate(9.0), 250, (300, 80)), &uneven, NEAR),
            &["replica_imbalance"],
        )
        .likely(),
        known("adapters", play(adapters, &places, NEAR), &["deferred"]).likely(),
        known("bursts", play(spec(bursts(), 400, (1_500, 60)), &with(&[]), NEAR), &["bursts"])
            .likely(),
        known(
            "long prompts before short ones",
            play(long_among_short(), &budget, NEAR),
            &["head_of_line"],
        )
        .likely(),
        known(
            "underload",
            play(spec(at_rate(0.3), 60, (300, 60)), &with(&[]), NEAR),
            &["underload"],
        )
        .likely()
        .alone(&["underload"]),
    ]);
}

#[test]
fn answers_of_any_length_are_no_fault_of_the_server() {
    let mut free = spec(at_rate(3.0), 100, (300, 400));
    free.output_forced = false;
    let mut ran = play(free, &with(&[]), NEAR);
    // The model of these runs always writes to the limit: cut the answers.
    for (place, record) in ran.records.iter_mut().enumerate() {
        let kept = 4 + place * 37 % 150;
        let events = &mut record.events;
        events.at_us.truncate(kept);
        events.carries.truncate(kept);
        events.tokens.truncate(kept);
        events.choice.truncate(kept);
        let last = kept - 1;
        events.carries[last] = Carries::TEXT.with(Carries::CHOICE).with(Carries::FINISH);
        record.answer.counts.usage = Some(measure::Tokens::new(kept as u32 - 1));
    }
    let found = findings(ran.examined());
    assert!(found.iter().any(|one| one.rule == "uncontrolled_lengths"), "{}", shown(&found));
}

#[test]
fn a_sound_run_has_no_confirmed_cause() {
    for (rate, lengths) in [(4.0, (600, 100)), (8.0, (300, 80)), (3.0, (1_000, 200))] {
        let settings = with(&[]);
        let ran =
            play(spec(at_rate(rate), 200, lengths), &settings, NEAR).on(&settings).seats(1024);
        let found = findings(ran.examined());
        let sick: Vec<&Finding> =
            found.iter().filter(|one| one.confidence == Confidence::Confirmed).collect();
        assert!(sick.is_empty(), "{rate} {lengths:?}: {}", shown(&found));
        assert!(found.iter().all(|one| one.seen_live), "{rate} {lengths:?}: {}", shown(&found));
    }
}
