//! Rules that look at figures which no run of the engine model has: made ones.

use measure::At;
use measure::finding::{Confidence, Finding};
use measure::signal::{Gauge, Reading, Signal};
use measure::{Span, Tokens};

use crate::model::{Ran, at_rate, of_users, play, spec, with};

const NEAR: Span = Span::from_us(200);

fn usual() -> Ran {
    play(spec(at_rate(4.0), 120, (400, 60)), &with(&[]), NEAR)
}

fn gauge(ran: &mut Ran, signal: Signal, mean: f64, max: f64) {
    let gauge = Gauge { mean, max, n: 10, ..Gauge::default() };
    ran.signals.readings.insert(signal, Reading::Gauge(gauge));
}

fn find(ran: &Ran, rule: &str) -> Option<Finding> {
    let findings = ran.examined().inside.findings.unwrap();
    findings.into_iter().find(|finding| finding.rule == rule)
}

/// That a rule speaks of one run and not of the usual one.
#[track_caller]
fn told(ran: &Ran, rule: &str, sure: Confidence) -> Finding {
    assert!(find(&usual(), rule).is_none(), "{rule} of a usual run");
    let found = find(ran, rule).unwrap_or_else(|| panic!("no {rule}"));
    assert_eq!(found.confidence, sure, "{found:#?}");
    assert!(!found.evidence.is_empty());
    found
}

#[test]
fn an_overcommitted_host_is_told_by_its_own_exporter() {
    let mut ran = usual();
    gauge(&mut ran, Signal::HostLoad, 2.4, 3.0);
    told(&ran, "noisy_host", Confidence::Possible);
}

#[test]
fn busy_and_useless_is_told_by_device_and_bound() {
    let slow = with(&["enforce_eager=true", "eager_layer_overhead_us=500"]);
    let mut ran = play(spec(at_rate(2.0), 80, (300, 60)), &slow, NEAR).on(&slow);
    gauge(&mut ran, Signal::GpuBusy, 0.95, 1.0);
    gauge(&mut ran, Signal::TensorActive, 0.05, 0.1);
    gauge(&mut ran, Signal::DramActive, 0.2, 0.3);
    // The host brings it about, so it is one step less sure.
    let found = told(&ran, "busy_but_useless", Confidence::Likely);
    assert!(found.says.en.contains("95 %"), "{}", found.says.en);
}

#[test]
fn hits_that_no_prompt_of_the_run_shares_come_from_before() {
    let mut ran = usual();
    ran.signals.readings.insert(Signal::PrefixQueries, Reading::Counter(48_000.0));
    ran.signals.readings.insert(Signal::PrefixHits, Reading::Counter(40_000.0));
    told(&ran, "cache_contamination", Confidence::Confirmed);
}

#[test]
fn a_server_that_sends_four_tokens_at_a_time_is_told() {
    let mut ran = usual();
    for record in &mut ran.records {
        let (events, usage) = (&mut record.events, record.answer.counts.usage);
        let keep: Vec<usize> = (0..events.len()).filter(|place| place % 4 == 1).collect();
        let pick = |place: &usize| events.get(*place);
        let kept: Vec<_> = keep.iter().map(pick).collect();
        *events = measure::record::Events::default();
        kept.into_iter().for_each(|event| events.push(event));
        record.answer.counts.usage = usage;
    }
    told(&ran, "output_path", Confidence::Confirmed);
}

#[test]
fn answers_that_are_computed_again_and_again_are_told() {
    let mut ran = usual();
    ran.signals.readings.insert(Signal::Preemptions, Reading::Counter(110.0));
    gauge(&mut ran, Signal::KvUsage, 0.97, 1.0);
    told(&ran, "kv_thrash", Confidence::Likely);
}

#[test]
fn deferred_requests_are_the_servers_own_word() {
    let mut ran = usual();
    gauge(&mut ran, Signal::QueueDeferred, 2.0, 6.0);
    told(&ran, "deferred", Confidence::Confirmed);
}

#[test]
fn lower_clocks_confirm_what_slower_steps_only_hint_at() {
    let hot = with(&["throttle_after_s=12", "throttle_for_s=60", "throttle_factor=2.2"]);
    let mut ran = play(spec(at_rate(5.0), 150, (300, 80)), &hot, NEAR);
    let clock = Gauge { mean: 1.4e9, min: 0.9e9, max: 1.98e9, n: 10, ..Gauge::default() };
    ran.signals.readings.insert(Signal::Clock, Reading::Gauge(clock));
    told(&ran, "throttled", Confidence::Confirmed);
}

#[test]
fn a_closed_loop_that_asks_less_while_the_server_is_slow_is_told() {
    let hot = with(&["throttle_after_s=20", "throttle_for_s=25", "throttle_factor=3"]);
    let ran = play(spec(of_users(6), 400, (300, 80)), &hot, NEAR);
    let found = find(&ran, "hidden_queue").expect("arrivals fell with the latency");
    assert_eq!(found.confidence, Confidence::Possible);
}

#[test]
fn what_is_completed_past_the_knee_is_of_no_use() {
    let seats = with(&["max_num_seqs=8"]);
    let ran = play(spec(of_users(40), 200, (400, 80)), &seats, NEAR).seats(8).wants(400.0, 50.0);
    let found = find(&ran, "past_the_knee").expect("most answers come too late");
    assert_eq!(found.confidence, Confidence::Possible);
    let first = ran.examined().inside.findings.unwrap().remove(0);
    assert_eq!(first.rule, "seat_limit", "the cause comes before what follows from it");
}

#[test]
fn a_prompt_at_the_peak_of_arithmetic_and_one_far_below_are_told_apart() {
    let quick = with(&["compute_efficiency=0.7", "max_num_batched_tokens=16384"]);
    let slow = with(&["compute_efficiency=0.12", "max_num_batched_tokens=16384"]);
    let run = |settings| {
        play(spec(at_rate(0.5), 60, (7_000, 20)), settings, NEAR).on(settings).wants(200.0, 50.0)
    };
    let (near, far) = (run(&quick), run(&slow));
    assert_eq!(find(&near, "prefill_bound").unwrap().confidence, Confidence::Confirmed);
    assert!(find(&near, "prefill_inefficient").is_none());
    assert!(find(&far, "prefill_bound").is_none());
    assert_eq!(find(&far, "prefill_inefficient").unwrap().confidence, Confidence::Likely);
}

#[test]
fn a_run_that_drifts_is_not_steady() {
    let mut ran = usual();
    for (place, record) in ran.records.iter_mut().enumerate() {
        let late = 2_000 * place as u32;
        record.events.at_us.iter_mut().for_each(|us| *us += late);
        let later = Span::from_us(i64::from(late));
        record.stamps.ended_at = record.stamps.ended_at.map(|at: At| at + later);
    }
    told(&ran, "not_steady", Confidence::Possible);
}

#[test]
fn an_idle_servers_cache_is_spare() {
    let ran = play(spec(at_rate(0.4), 60, (300, 40)), &with(&[]), NEAR);
    let found = find(&ran, "kv_spare").expect("a cache that is never used");
    assert_eq!(found.confidence, Confidence::Possible);
}

#[test]
fn runs_without_figures_are_examined_without_a_word() {
    let mut ran = usual();
    ran.records.clear();
    assert_eq!(ran.examined().inside.findings, Some(Vec::new()));
    let mut ran = usual();
    for record in &mut ran.records {
        record.events = measure::record::Events::default();
        record.answer.counts.usage = Some(Tokens::new(0));
    }
    assert!(ran.examined().inside.findings.is_some());
}
