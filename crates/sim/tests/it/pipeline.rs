//! Steps that overlap: the scheduler's work behind the accelerators', and stages
//! one behind the other.

use sim::{Cost, Replica};

use crate::watched::{Log, request, roomy, serve};

/// Device and host time of each step, and whether steps are planned ahead.
fn decode(device_s: f64, host_s: f64, ahead: bool) -> Log {
    let mut limits = roomy();
    (limits.depth, limits.plans_ahead) = (1 + u32::from(ahead), ahead);
    let cost = Cost { host_s, ..Cost::constant(device_s) };
    let requests = (0..4).map(|id| request(id, 0, 10, 50)).collect();
    serve(Replica::new(limits, cost), requests, &[])
}

/// Gaps between tokens of one sequence, nanoseconds, without the first few: the
/// overlap has to begin.
fn steady_gaps(log: &Log) -> Vec<u64> {
    log.instants_of(0).windows(2).skip(3).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn a_step_at_a_time_the_host_adds_to_the_device() {
    for (device_s, host_s) in [(10e-3, 4e-3), (4e-3, 10e-3)] {
        let gaps = steady_gaps(&decode(device_s, host_s, false));
        assert_eq!(gaps, vec![14_000_000; gaps.len()]);
    }
}

#[test]
fn planned_ahead_the_longer_of_the_two_is_the_step() {
    for (device_s, host_s) in [(10e-3, 4e-3), (4e-3, 10e-3), (7e-3, 10e-3), (10e-3, 10e-3)] {
        let gaps = steady_gaps(&decode(device_s, host_s, true));
        assert_eq!(gaps, vec![10_000_000; gaps.len()], "{device_s} and {host_s}");
    }
}

/// Planned ahead no step is longer, and the run is shorter.
#[test]
fn planning_ahead_costs_nobody_anything() {
    let (one, ahead) = (decode(10e-3, 4e-3, false), decode(10e-3, 4e-3, true));
    let last = |log: &Log| log.ended.iter().map(|end| end.ended_ns).max();
    assert!(last(&ahead) < last(&one));
    assert_eq!(ahead.instants_of(0)[0], one.instants_of(0)[0], "the first step waits for nobody");
}

/// A sequence passes all stages before its next token is begun; others follow a
/// stage behind. One token a step makes a sequence a step.
#[test]
fn stages_keep_the_latency_and_share_the_interval() {
    let stages = 4;
    let mut limits = roomy();
    limits.max_num_batched_tokens = 1;
    limits.depth = stages;
    let cost = Cost { stages: f64::from(stages), ..Cost::constant(8e-3) };
    let requests = |count: u64| (0..count).map(|id| request(id, 0, 1, 40)).collect();
    let alone = serve(Replica::new(limits, cost), requests(1), &[]);
    let gaps = steady_gaps(&alone);
    assert_eq!(gaps, vec![8_000_000; gaps.len()], "alone a step takes its latency");
    let full = serve(Replica::new(limits, cost), requests(4), &[]);
    let gaps = steady_gaps(&full);
    assert_eq!(gaps, vec![8_000_000; gaps.len()], "together no sequence is slower");
    let ends: Vec<u64> = full.steps.iter().map(|step| step.ends_ns).collect();
    let middle = &ends[20..100];
    assert!(middle.windows(2).all(|pair| pair[1] - pair[0] == 2_000_000), "{middle:?}");
    let crowd = serve(Replica::new(limits, cost), requests(8), &[]);
    assert_eq!(crowd.steps.len(), 8 * 40);
    let last = crowd.steps.last().map(|step| step.ends_ns);
    assert_eq!(last, Some(319 * 2_000_000 + 8_000_000), "one step leaves every interval");
}
