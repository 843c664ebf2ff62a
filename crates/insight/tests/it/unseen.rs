//! Rules that neither the engine model nor an engine on processors can show: of
//! made signals and records, each with what is just not enough for it.

use measure::finding::{Confidence, Finding};
use measure::hardware;
use measure::record::Events;
use measure::signal::{Gauge, Instance, Reading, Role, Signal, Taken};
use measure::{At, FailureKind, Outcome, Span, Tokens};
use workload::Lengths;
use workload::prompt::PromptSource;

use crate::model::{Ran, at_rate, of_users, play, spec, with};

const NEAR: Span = Span::from_us(200);

/// A run in which nothing is amiss, on machines that the user named.
fn usual() -> Ran {
    let settings = with(&[]);
    play(spec(at_rate(4.0), 120, (400, 60)), &settings, NEAR).on(&settings).seats(64)
}

fn gauge(ran: &mut Ran, signal: Signal, mean: f64) {
    between(ran, signal, mean, mean);
}

/// A gauge that went from one value to another.
fn between(ran: &mut Ran, signal: Signal, first: f64, last: f64) {
    let (min, max) = (first.min(last), first.max(last));
    let gauge = Gauge { mean: (first + last) / 2.0, min, max, first, last, n: 10 };
    ran.signals.readings.insert(signal, Reading::Gauge(gauge));
}

fn counter(ran: &mut Ran, signal: Signal, increase: f64) {
    ran.signals.readings.insert(signal, Reading::Counter(increase));
}

fn histogram(ran: &mut Ran, signal: Signal, count: f64, mean: f64) {
    let taken = Taken { count, sum: count * mean, buckets: Vec::new() };
    ran.signals.readings.insert(signal, Reading::Histogram(taken));
}

fn instance(ran: &mut Ran, role: Role, readings: &[(Signal, f64)]) {
    let reading = |value: f64| Gauge { mean: value, min: value, max: value, ..Gauge::default() };
    let readings =
        readings.iter().map(|(signal, value)| (*signal, Reading::Gauge(reading(*value)))).collect();
    let name = format!("{role:?} {}", ran.signals.instances.len());
    ran.signals.instances.push(Instance { name, role, readings });
}

fn experts(ran: &mut Ran) {
    ran.deployment.model = hardware::model("deepseek-v3").ok().cloned();
    assert!(ran.deployment.model.is_some());
}

/// Every TTFT longer by so much, as though it passed before the engine.
fn later(ran: &mut Ran, by: Span) {
    let us = u32::try_from(by.us()).unwrap();
    for record in &mut ran.records {
        record.events.at_us.iter_mut().for_each(|at| *at += us);
        record.stamps.ended_at = record.stamps.ended_at.map(|at: At| at + by);
    }
}

/// Handshakes of one round trip each, which a client measures.
fn handshakes(ran: &mut Ran, trip: Span) {
    for record in &mut ran.records {
        record.stamps.resolved_at = record.stamps.sent_at.map(|at| at - trip);
        record.stamps.connected_at = record.stamps.sent_at;
    }
}

/// A series over the run: a value for each second.
fn series(ran: &mut Ran, signal: Signal, value: impl Fn(f64) -> f64) {
    let length_s = (ran.signals.until - ran.signals.from).s().ceil() as i64;
    let at = |second: i64| At::ZERO + Span::from_ms(1_000 * second);
    let values = (0..=length_s).map(|second| (at(second), value(second as f64))).collect();
    ran.signals.series.insert(signal, values);
}

/// A rule, what makes it speak, and what is just not enough.
struct Made {
    rule: &'static str,
    sure: Confidence,
    make: fn(&mut Ran),
    not_quite: fn(&mut Ran),
}

const fn made(
    rule: &'static str,
    sure: Confidence,
    make: fn(&mut Ran),
    not_quite: fn(&mut Ran),
) -> Made {
    Made { rule, sure, make, not_quite }
}

fn find(ran: &Ran, rule: &str) -> Option<Finding> {
    let findings = ran.examined().inside.findings.unwrap();
    findings.into_iter().find(|finding| finding.rule == rule)
}

/// That each rule speaks of its run alone, with evidence, a way to check and a
/// way to mend it.
#[track_caller]
fn hold(usual: &Ran, all: &[Made]) {
    let mut problems = Vec::new();
    for one in all {
        let rule = insight::rule::find(one.rule).unwrap();
        assert!(!rule.seen_live, "{} was seen live: test it there", one.rule);
        let changed = |change: fn(&mut Ran)| {
            let mut ran = usual.clone();
            change(&mut ran);
            find(&ran, one.rule)
        };
        if let Some(found) = find(usual, one.rule).or_else(|| changed(one.not_quite)) {
            problems.push(format!("{} where it is not: {}", one.rule, found.says.en));
        }
        let Some(found) = changed(one.make) else {
            problems.push(format!("no {}", one.rule));
            continue;
        };
        // What explains little of what is wrong is one step less sure.
        let sure = match one.sure {
            sure if found.share >= insight::rule::MATTERS => sure,
            Confirmed => Likely,
            Likely | Possible => Possible,
        };
        if found.confidence != sure {
            problems.push(format!("{} is {:?}: {found:#?}", one.rule, found.confidence));
        }
        let numbers = found.evidence.iter().chain(&found.against);
        let all_finite = numbers.clone().all(|number| number.value.is_finite());
        if !all_finite || found.evidence.len() < 2 || found.directions.is_empty() {
            problems.push(format!("{}: {found:#?}", one.rule));
        }
        if found.says.en.contains("NaN") || found.says.zh.contains("NaN") {
            problems.push(format!("{}: {}", one.rule, found.says.en));
        }
    }
    assert!(problems.is_empty(), "\n{}", problems.join("\n"));
}

use Confidence::{Confirmed, Likely, Possible};

#[test]
fn waits_and_slow_prompts_are_told_by_what_the_server_says_of_them() {
    hold(
        &usual(),
        &[
            made(
                "upstream_queue",
                Likely,
                |ran| {
                    handshakes(ran, Span::from_ms(2));
                    later(ran, Span::from_ms(4_000));
                },
                // As late, but by distance.
                |ran| {
                    handshakes(ran, Span::from_ms(1_500));
                    later(ran, Span::from_ms(4_000));
                },
            ),
            made(
                "image_encoding",
                Likely,
                |ran| {
                    histogram(ran, Signal::FrontEndTime, 120.0, 0.4);
                    histogram(ran, Signal::ServerTtft, 120.0, 0.45);
                    later(ran, Span::from_ms(400));
                    counter(ran, Signal::ImageQueries, 120.0);
                    counter(ran, Signal::ImageHits, 12.0);
                },
                |ran| {
                    histogram(ran, Signal::FrontEndTime, 120.0, 0.4);
                    histogram(ran, Signal::ServerTtft, 120.0, 0.45);
                    later(ran, Span::from_ms(400));
                    counter(ran, Signal::ImageQueries, 120.0);
                    counter(ran, Signal::ImageHits, 100.0);
                },
            ),
        ],
    );
}

#[test]
fn what_decoding_waits_for_is_told_by_the_devices() {
    let settings = with(&[]);
    let busy = play(spec(of_users(24), 120, (300, 80)), &settings, NEAR).on(&settings).seats(64);
    hold(
        &busy,
        &[
            made(
                "decode_compute_bound",
                Possible,
                |ran| {
                    gauge(ran, Signal::TensorActive, 0.75);
                    gauge(ran, Signal::DramActive, 0.4);
                },
                |ran| {
                    gauge(ran, Signal::TensorActive, 0.75);
                    gauge(ran, Signal::DramActive, 0.85);
                },
            ),
            made(
                "decode_compute_bound",
                Likely,
                |ran| {
                    ran.deployment.model = None;
                    gauge(ran, Signal::TensorActive, 0.75);
                    gauge(ran, Signal::DramActive, 0.4);
                },
                |ran| gauge(ran, Signal::TensorActive, 0.75),
            ),
            made(
                "expert_spread",
                Likely,
                |ran| {
                    experts(ran);
                    gauge(ran, Signal::DramActive, 0.8);
                },
                // A dense model reads all of its weights for any batch.
                |ran| gauge(ran, Signal::DramActive, 0.8),
            ),
            made(
                "expert_imbalance",
                Confirmed,
                |ran| {
                    gauge(ran, Signal::ExpertBalance, 0.5);
                    instance(ran, Role::Device, &[(Signal::SmActive, 0.3)]);
                    instance(ran, Role::Device, &[(Signal::SmActive, 0.8)]);
                },
                |ran| {
                    gauge(ran, Signal::ExpertBalance, 0.9);
                    instance(ran, Role::Device, &[(Signal::SmActive, 0.7)]);
                    instance(ran, Role::Device, &[(Signal::SmActive, 0.8)]);
                },
            ),
            made(
                "speculation_crowded",
                Possible,
                |ran| {
                    counter(ran, Signal::Drafts, 3_000.0);
                    counter(ran, Signal::DraftTokens, 12_000.0);
                    counter(ran, Signal::AcceptedTokens, 6_000.0);
                    gauge(ran, Signal::TensorActive, 0.7);
                },
                |ran| {
                    counter(ran, Signal::Drafts, 3_000.0);
                    counter(ran, Signal::DraftTokens, 12_000.0);
                    counter(ran, Signal::AcceptedTokens, 6_000.0);
                    gauge(ran, Signal::TensorActive, 0.2);
                },
            ),
            made("sampling_cost", Likely, |ran| with_logprobs(ran, 2), |ran| with_logprobs(ran, 1)),
        ],
    );
}

/// Every other answer with log-probabilities, and so many times as slow.
fn with_logprobs(ran: &mut Ran, times: u32) {
    for record in ran.records.iter_mut().step_by(2) {
        record.answer.counts.logprobs = Some(Tokens::new(40));
        let first = record.events.at_us.first().copied().unwrap_or(0);
        record.events.at_us.iter_mut().for_each(|at| *at = first + times * (*at - first));
        let last = record.events.at_us.last().copied().unwrap_or(0);
        record.stamps.ended_at = record.event_at(last);
    }
}

/// Gaps that grow over the run by a share of themselves.
fn slower_and_slower(ran: &mut Ran, by: f64) {
    let count = ran.records.len() as f64;
    for (place, record) in ran.records.iter_mut().enumerate() {
        let first = record.events.at_us.first().copied().unwrap_or(0);
        let times = 1.0 + by * place as f64 / count;
        let later = |at: u32| first + (f64::from(at - first) * times) as u32;
        record.events.at_us.iter_mut().for_each(|at| *at = later(*at));
        let last = record.events.at_us.last().copied().unwrap_or(0);
        record.stamps.ended_at = record.event_at(last);
    }
}

/// Some requests that the server failed.
fn failed(ran: &mut Ran, kind: FailureKind, status: Option<u16>, every: usize) {
    for record in ran.records.iter_mut().skip(3).step_by(every) {
        record.outcome = Outcome::Failed(kind);
        record.answer.http_status = status;
        record.events = Events::default();
    }
}

#[test]
fn what_happens_to_machines_is_told_by_their_own_figures() {
    hold(
        &usual(),
        &[
            made(
                "slow_drift",
                Confirmed,
                |ran| {
                    slower_and_slower(ran, 0.4);
                    between(ran, Signal::Clock, 1.98e9, 1.5e9);
                    between(ran, Signal::Temperature, 60.0, 88.0);
                    gauge(ran, Signal::ThrottleBits, 64.0);
                },
                // The bit of the power cap, and a clock that stays.
                |ran| {
                    slower_and_slower(ran, 0.4);
                    between(ran, Signal::Clock, 1.98e9, 1.95e9);
                    gauge(ran, Signal::ThrottleBits, 4.0);
                },
            ),
            made(
                "memory_edge",
                Confirmed,
                |ran| {
                    gauge(ran, Signal::MemoryUsed, 79.5e9);
                    gauge(ran, Signal::MemoryTotal, 80e9);
                    gauge(ran, Signal::DeviceErrors, 31.0);
                    failed(ran, FailureKind::HttpStatus, Some(500), 20);
                },
                |ran| {
                    gauge(ran, Signal::MemoryUsed, 73e9);
                    gauge(ran, Signal::MemoryTotal, 80e9);
                    failed(ran, FailureKind::HttpStatus, Some(500), 20);
                },
            ),
            made(
                "reserved_memory",
                Possible,
                |ran| {
                    gauge(ran, Signal::MemoryUsed, 73e9);
                    gauge(ran, Signal::MemoryTotal, 80e9);
                },
                |ran| {
                    between(ran, Signal::MemoryUsed, 40e9, 73e9);
                    gauge(ran, Signal::MemoryTotal, 80e9);
                },
            ),
        ],
    );
}

#[test]
fn what_is_fetched_compiled_or_moved_is_told_by_the_engine() {
    hold(
        &usual(),
        &[
            made(
                "grammar_compilation",
                Confirmed,
                |ran| histogram(ran, Signal::GrammarTime, 120.0, 0.2),
                |ran| histogram(ran, Signal::GrammarTime, 2.0, 0.05),
            ),
            made(
                "kv_fetch",
                Confirmed,
                |ran| {
                    fetched(ran, 0.4);
                    later(ran, Span::from_ms(200));
                },
                // Much is found and it is there in no time.
                |ran| {
                    fetched(ran, 0.002);
                    later(ran, Span::from_ms(200));
                },
            ),
            made(
                "kv_fetch",
                Likely,
                |ran| {
                    ran.deployment.model = None;
                    fetched(ran, 0.4);
                    later(ran, Span::from_ms(200));
                },
                |ran| counter(ran, Signal::ExternalHits, 30_000.0),
            ),
            made(
                "offload_thrash",
                Likely,
                |ran| {
                    counter(ran, Signal::KvOffloadRefusals, 60.0);
                    counter(ran, Signal::KvLoadTime, 12.0);
                },
                |ran| {
                    counter(ran, Signal::KvOffloadRefusals, 1.0);
                    counter(ran, Signal::KvLoadTime, 12.0);
                },
            ),
            made(
                "graph_miss",
                Confirmed,
                |ran| {
                    counter(ran, Signal::Steps, 4_000.0);
                    counter(ran, Signal::EagerSteps, 3_000.0);
                },
                |ran| {
                    counter(ran, Signal::Steps, 4_000.0);
                    counter(ran, Signal::EagerSteps, 40.0);
                },
            ),
            made(
                "kv_handover",
                Confirmed,
                |ran| {
                    instance(ran, Role::Prefill, &[(Signal::QueueDepth, 0.0)]);
                    instance(ran, Role::Decode, &[(Signal::QueueDepth, 0.0)]);
                    histogram(ran, Signal::KvTransferTime, 120.0, 0.08);
                    counter(ran, Signal::KvTransferFailures, 6.0);
                    gauge(ran, Signal::TransferQueue, 1.5);
                    later(ran, Span::from_ms(80));
                },
                |ran| {
                    instance(ran, Role::Prefill, &[(Signal::QueueDepth, 0.0)]);
                    instance(ran, Role::Decode, &[(Signal::QueueDepth, 0.0)]);
                    histogram(ran, Signal::KvTransferTime, 120.0, 0.002);
                    counter(ran, Signal::KvTransferFailures, 0.0);
                },
            ),
            made(
                "phase_mix",
                Likely,
                |ran| by_role(ran, 4.0, 0.0),
                // Both wait: that is too few of either.
                |ran| by_role(ran, 4.0, 4.0),
            ),
        ],
    );
}

/// Half of the prompt tokens from outside, each request's in so many seconds.
fn fetched(ran: &mut Ran, load_s: f64) {
    let prompts = ran.signals.increase(Signal::PromptTokens).unwrap();
    counter(ran, Signal::ExternalHits, 0.5 * prompts);
    counter(ran, Signal::KvLoadTime, load_s * ran.records.len() as f64);
    counter(ran, Signal::KvLoadBytes, 6e9);
}

/// Prefill and decode engines with so many that wait, and a TTFT over its limit.
fn by_role(ran: &mut Ran, at_prefill: f64, at_decode: f64) {
    *ran = ran.clone().wants(20.0, 100.0);
    instance(ran, Role::Prefill, &[(Signal::QueueDepth, at_prefill)]);
    let decode = [(Signal::QueueDepth, at_decode), (Signal::KvUsage, 0.2)];
    instance(ran, Role::Decode, &decode);
}

#[test]
fn ranks_and_stages_that_wait_for_each_other_are_told() {
    let idle = |ran: &mut Ran| {
        gauge(ran, Signal::SmActive, 0.8);
        gauge(ran, Signal::TensorActive, 0.1);
        gauge(ran, Signal::DramActive, 0.2);
    };
    let slow = with(&["enforce_eager=true", "eager_layer_overhead_us=400"]);
    let mut far = play(spec(of_users(8), 80, (300, 80)), &slow, NEAR).on(&slow).seats(64);
    idle(&mut far);
    far.deployment.topology = vec![(String::new(), 8)];
    hold(
        &far,
        &[
            made(
                "tensor_parallel_bound",
                Confirmed,
                |ran| {
                    ran.deployment.tensor_parallel = Some(2);
                    gauge(ran, Signal::LinkBytes, 4e12);
                },
                |ran| {
                    ran.deployment.tensor_parallel = Some(2);
                    gauge(ran, Signal::DramActive, 0.8);
                },
            ),
            made(
                "tensor_parallel_bound",
                Likely,
                |ran| ran.deployment.tensor_parallel = Some(2),
                |ran| ran.deployment.tensor_parallel = Some(1),
            ),
            made(
                "pipeline_bubbles",
                Likely,
                |ran| {
                    ran.deployment.pipeline_parallel = Some(4);
                    gauge(ran, Signal::GpuBusy, 0.4);
                },
                |ran| {
                    ran.deployment.pipeline_parallel = Some(4);
                    gauge(ran, Signal::GpuBusy, 0.9);
                },
            ),
            made(
                "rank_lockstep",
                Confirmed,
                |ran| {
                    let length_s = ran.signals.length_s();
                    histogram(ran, Signal::RankSyncWait, 1_000.0, 0.3 * length_s / 1_000.0);
                    histogram(ran, Signal::RankImbalance, 1_000.0, 2.2);
                },
                |ran| {
                    histogram(ran, Signal::RankSyncWait, 1_000.0, 1e-6);
                    histogram(ran, Signal::RankImbalance, 1_000.0, 1.7);
                },
            ),
            made(
                "expert_exchange",
                Possible,
                |ran| {
                    experts(ran);
                    ran.deployment.tensor_parallel = Some(8);
                    gauge(ran, Signal::LinkBytes, 4e12);
                },
                |ran| {
                    experts(ran);
                    ran.deployment.tensor_parallel = Some(8);
                    gauge(ran, Signal::LinkBytes, 1e11);
                },
            ),
        ],
    );
}

#[test]
fn what_hosts_and_links_do_is_told_by_their_exporters() {
    hold(
        &usual(),
        &[
            made(
                "processor_contention",
                Likely,
                |ran| {
                    slower_and_slower(ran, 1.0);
                    counter(ran, Signal::CpuPressure, 6.0);
                    series(ran, Signal::CpuPressure, |s| 0.01 * s);
                },
                // As much pressure, at other times than the slow steps.
                |ran| {
                    slower_and_slower(ran, 1.0);
                    counter(ran, Signal::CpuPressure, 6.0);
                    series(ran, Signal::CpuPressure, |s| 0.2 * (s as i64 % 2) as f64);
                },
            ),
            made(
                "shared_accelerator",
                Likely,
                |ran| {
                    series(ran, Signal::Running, |s| f64::from(u8::from(s < 8.0)));
                    series(ran, Signal::QueueDepth, |_| 0.0);
                    series(ran, Signal::GpuBusy, |_| 0.8);
                },
                |ran| {
                    series(ran, Signal::Running, |s| f64::from(u8::from(s < 8.0)));
                    series(ran, Signal::QueueDepth, |_| 0.0);
                    series(ran, Signal::GpuBusy, |s| 0.8 * f64::from(u8::from(s < 9.0)));
                },
            ),
            made(
                "packet_loss",
                Likely,
                |ran| {
                    counter(ran, Signal::Retransmits, 300.0);
                    counter(ran, Signal::SegmentsSent, 10_000.0);
                    stall(ran, Span::from_ms(400));
                },
                |ran| {
                    counter(ran, Signal::Retransmits, 30.0);
                    counter(ran, Signal::SegmentsSent, 1_000_000.0);
                    stall(ran, Span::from_ms(400));
                },
            ),
            made(
                "connection_limit",
                Confirmed,
                |ran| {
                    failed(ran, FailureKind::Connect, None, 12);
                    counter(ran, Signal::ListenDrops, 9.0);
                },
                |ran| failed(ran, FailureKind::HttpStatus, Some(503), 12),
            ),
            made(
                "connection_limit",
                Likely,
                |ran| failed(ran, FailureKind::Connect, None, 12),
                // A server that is gone refuses all that come after.
                |ran| {
                    let gone = ran.records.len() - 12;
                    for record in ran.records.iter_mut().skip(gone) {
                        record.outcome = Outcome::Failed(FailureKind::Connect);
                        record.events = Events::default();
                    }
                },
            ),
        ],
    );
}

/// One long gap in every sixth answer.
fn stall(ran: &mut Ran, by: Span) {
    let us = u32::try_from(by.us()).unwrap();
    for record in ran.records.iter_mut().step_by(6) {
        record.events.at_us.iter_mut().skip(20).for_each(|at| *at += us);
        record.stamps.ended_at = record.stamps.ended_at.map(|at: At| at + by);
    }
}

#[test]
fn admission_that_keeps_room_for_nothing_is_told() {
    let waits = |ran: &mut Ran| {
        gauge(ran, Signal::QueueDepth, 3.0);
        gauge(ran, Signal::Running, 10.0);
        gauge(ran, Signal::KvUsage, 0.4);
        histogram(ran, Signal::QueueTime, 120.0, 0.3);
        later(ran, Span::from_ms(300));
        ran.signals.series.clear();
    };
    let mut queued = usual();
    waits(&mut queued);
    hold(
        &queued,
        &[
            made(
                "cautious_admission",
                Likely,
                |ran| gauge(ran, Signal::AdmissionReserve, 0.7),
                |ran| gauge(ran, Signal::AdmissionReserve, 0.15),
            ),
            made(
                "cautious_admission",
                Possible,
                |ran| {
                    ran.deployment.seats = None;
                    gauge(ran, Signal::AdmissionReserve, 0.7);
                },
                // What was admitted had to be put back: caution was right.
                |ran| {
                    gauge(ran, Signal::AdmissionReserve, 0.7);
                    counter(ran, Signal::Preemptions, 4.0);
                },
            ),
        ],
    );
}

#[test]
fn prompts_whose_time_grows_with_their_square_are_told() {
    let settings = with(&["max_num_batched_tokens=131072", "max_model_len=131072"]);
    let mut long = spec(at_rate(0.05), 60, (30_000, 4));
    long.prompts = PromptSource::Synthetic { input: Lengths::uniform(30_000, 0.9).unwrap() };
    let long = play(long, &settings, NEAR).seats(64);
    let mut found = long.clone();
    found.deployment.model = Some(settings.model.clone());
    timings(&mut found, |length| 5.0 + 0.05 * length + 2e-6 * length * length);
    let told = find(&found, "quadratic_attention").expect("a square term of 60 % and more");
    assert_eq!(told.confidence, Likely, "{told:#?}");
    found.deployment.model = None;
    let told = find(&found, "quadratic_attention").unwrap();
    assert_eq!(told.confidence, Possible, "nothing says what attention has to cost");
    timings(&mut found, |length| 5.0 + 0.05 * length);
    assert!(find(&found, "quadratic_attention").is_none(), "a line");
}

/// Prefill times as a server may tell them, ms, of a prompt's length.
fn timings(ran: &mut Ran, prefill_ms: impl Fn(f64) -> f64) {
    for record in &mut ran.records {
        let prompt = record.answer.counts.prompt.or(record.planned.input_tokens).unwrap();
        let ms = prefill_ms(f64::from(prompt.get()));
        record.answer.server_timings = vec![("time_to_first_token_ms".to_owned(), ms)];
    }
}

#[test]
fn an_objective_that_is_met_twice_over_is_told_by_its_price() {
    let settings = with(&[]);
    let mut dear = play(spec(at_rate(4.0), 120, (400, 60)), &settings, NEAR)
        .on(&settings)
        .seats(64)
        .wants(2_000.0, 200.0);
    dear.deployment.topology = vec![(String::new(), 1)];
    assert!(find(&dear, "cost_slack").is_none(), "nobody said what it costs");
    dear.deployment.price_per_hour = Some(2.5);
    let found = find(&dear, "cost_slack").expect("it is paid for twice");
    assert_eq!(found.confidence, Possible, "an idle server brings it about: {found:#?}");
    assert!(find(&dear.clone().seats(2), "cost_slack").is_none(), "all seats are taken");
    assert!(find(&dear.wants(40.0, 9.0), "cost_slack").is_none(), "nothing is left");
}

/// Made data show that a rule can speak; a list says that each of them does.
#[test]
fn every_rule_that_was_not_seen_live_is_made_here() {
    let this = include_str!("unseen.rs");
    for rule in insight::RULES.iter().filter(|rule| !rule.seen_live) {
        assert!(this.contains(&format!("\"{}\"", rule.id)), "{} is not made", rule.id);
    }
}
