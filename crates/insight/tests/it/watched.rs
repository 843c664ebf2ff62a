//! A server that is watched: causes from its signals alone, and since when.

use insight::watch::{Watch, judge};
use measure::At;
use measure::deployment::Deployment;
use measure::finding::{Confidence, Finding};
use measure::signal::{Gauge, Reading, Signal, Signals};
use measure::watch::Kind;

use crate::model::{Ran, at_rate, of_users, play, spec, with};

const NEAR: measure::Span = measure::Span::from_us(200);

fn found(ran: &Ran) -> Vec<Finding> {
    judge(&ran.signals, "http://h:8000", &ran.deployment)
}

fn rules(found: &[Finding]) -> Vec<&str> {
    found.iter().map(|one| one.rule).collect()
}

#[test]
fn queues_are_told_apart_without_a_client() {
    let seats = play(spec(of_users(32), 200, (600, 100)), &with(&["max_num_seqs=8"]), NEAR);
    let kv = with(&["num_gpu_blocks_override=700", "max_model_len=4096"]);
    let kv = play(spec(of_users(48), 200, (600, 300)), &kv, NEAR);
    for (ran, rule) in [(seats.seats(8), "seat_limit"), (kv.seats(1024), "kv_capacity")] {
        let found = found(&ran);
        assert_eq!(found.first().map(|one| one.rule), Some(rule), "{:?}", rules(&found));
        assert_eq!(found[0].confidence, Confidence::Likely, "no client saw anything");
        let missing = &found[0].missing;
        assert!(missing.iter().any(|said| said.en.contains("clients")), "{missing:?}");
    }
}

#[test]
fn a_queue_that_grows_and_hot_accelerators_are_named() {
    let at = |second: i64| At::from_us(second * 1_000_000);
    let mut signals = Signals { from: at(0), until: at(30), ..Signals::default() };
    let series: Vec<(At, f64)> = (0..=30).map(|n| (at(n), 2.0 * n as f64)).collect();
    let level = |max| Reading::Gauge(Gauge { mean: max / 2.0, max, n: 30, ..Gauge::default() });
    signals.readings.insert(Signal::Running, level(8.0));
    signals.readings.insert(Signal::QueueDepth, level(60.0));
    signals.series.insert(Signal::QueueDepth, series);
    signals.readings.insert(Signal::Finished, Reading::Counter(90.0));
    let judged = |signals: &Signals| judge(signals, "http://h", &Deployment::default());
    let growing = judged(&signals);
    assert_eq!(rules(&growing), ["over_saturation"]);
    assert!(growing[0].says.en.contains("2.00 requests a second while 3.00 end"));
    // A queue that stands is another matter.
    signals.series.insert(Signal::QueueDepth, (0..=30).map(|n| (at(n), 30.0)).collect());
    assert_eq!(rules(&judged(&signals)), [""; 0]);
    let bits = |bits| Reading::Gauge(Gauge { max: bits, n: 30, ..Gauge::default() });
    // The power cap by itself, then heat.
    signals.readings.insert(Signal::ThrottleBits, bits(4.0));
    assert_eq!(rules(&judged(&signals)), [""; 0]);
    signals.readings.insert(Signal::ThrottleBits, bits(68.0));
    assert_eq!(rules(&judged(&signals)), ["throttled"]);
}

#[test]
fn a_sound_server_and_an_idle_one_have_no_likely_cause() {
    let sound = play(spec(at_rate(4.0), 200, (600, 100)), &with(&[]), NEAR);
    let found = found(&sound);
    let sure = found.iter().filter(|one| one.confidence >= Confidence::Likely);
    assert_eq!(sure.count(), 0, "{:?}", rules(&found));
    let level = |level| Reading::Gauge(Gauge { max: level, n: 30, ..Gauge::default() });
    let mut idle = Signals::default();
    idle.readings.insert(Signal::Running, level(0.0));
    idle.readings.insert(Signal::KvUsage, level(0.02));
    assert_eq!(judge(&idle, "http://h", &Deployment::default()), []);
    assert_eq!(judge(&Signals::default(), "http://h", &Deployment::default()), []);
}

#[test]
fn a_cause_is_there_after_three_glances_since_the_first_and_gone_after_three() {
    let ran = play(spec(of_users(32), 120, (600, 100)), &with(&["max_num_seqs=8"]), NEAR);
    let found = found(&ran.seats(8));
    let mut watch = Watch::default();
    let mut told = Vec::new();
    // One glance without it is no end, and one alone no beginning.
    let has_it = [1, 0, 0, 0, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0];
    for (second, has_it) in (0..).zip(has_it) {
        let at = At::from_us(second * 1_000_000);
        let now = if has_it == 1 { found[..1].to_vec() } else { Vec::new() };
        told.extend(watch.take(at, now).into_iter().map(|event| (second, event.kind)));
        if (6..13).contains(&second) {
            assert_eq!(watch.held()[0].since, At::from_us(4_000_000), "at {second} s");
        } else {
            assert!(watch.held().is_empty(), "at {second} s");
        }
    }
    assert_eq!(told, [(6, Kind::Found), (13, Kind::Gone)]);
}
