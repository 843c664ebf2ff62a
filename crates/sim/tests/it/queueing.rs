//! Queues whose waits are known in closed form. An engine with one seat whose
//! steps all take the same is one server: a request of L tokens holds it for L
//! steps, since its prompt is computed in the step of its first token.

use sim::{Ended, Limits, Submission};
use workload::Stream;

use crate::watched::{mean_and_margin_99, request, roomy, serve, steady};

const STEP_NS: u64 = 1_000_000;

/// Independent runs of each queue, and requests in each.
const RUNS: u64 = 20;
const REQUESTS: u64 = 6_000;

fn one_seat() -> Limits {
    Limits { max_num_seqs: 1, enable_prefix_caching: false, ..roomy() }
}

/// The mean wait of a run in steps, without its first tenth, when the queue was
/// still filling.
fn mean_wait(requests: Vec<Submission>) -> f64 {
    let ended = serve(steady(one_seat(), STEP_NS), requests, &[]).by_id();
    let late = &ended[ended.len() / 10..];
    let wait = |one: &Ended| (one.scheduled_ns - one.arrived_ns) as f64 / STEP_NS as f64;
    late.iter().map(wait).sum::<f64>() / late.len() as f64
}

fn check(name: &str, expected: f64, of_run: impl Fn(u64) -> f64) {
    let means: Vec<f64> = (0..RUNS).map(of_run).collect();
    let (mean, margin) = mean_and_margin_99(&means);
    assert!((mean - expected).abs() < margin, "{name}: {mean} ± {margin}, not {expected}");
    assert!(margin < 0.1 * expected, "{name}: the interval says something: ± {margin}");
}

/// M/D/1: requests come at random and all take s. The mean wait is
/// ρ · s ÷ (2 · (1 − ρ)) with ρ = λ · s (Pollaczek 1930, Khinchine 1932, with no
/// variance of the service).
#[test]
fn waits_are_those_of_m_d_1() {
    for (load, tokens) in [(0.5, 2), (0.7, 3)] {
        let service = f64::from(tokens);
        let expected = load * service / (2.0 * (1.0 - load));
        check("M/D/1", expected, |run| {
            let mut stream = Stream::numbered(run, "poisson", u64::from(tokens));
            let mut at_ns = 0.0;
            let coming = (0..REQUESTS).map(|id| {
                at_ns += stream.exponential() * service / load * STEP_NS as f64;
                request(id, at_ns as u64, 10, tokens)
            });
            mean_wait(coming.collect())
        });
    }
}

/// Geo/G/1: at each step's begin a request comes with probability p, and takes G
/// steps. The mean wait is p · E[G · (G − 1)] ÷ (2 · (1 − p · E[G])) steps
/// (Hunter 1983, "Mathematical techniques of applied probability" 2, 9.2; Takagi
/// 1993, "Queueing analysis" 3, 1.1). Lengths here are 1, 2 and 6 steps.
#[test]
fn waits_are_those_of_geo_g_1() {
    let lengths = [(1, 0.5), (2, 0.3), (6, 0.2)];
    let mean_of = |of: fn(f64) -> f64| -> f64 {
        lengths.iter().map(|(steps, share)| of(f64::from(*steps)) * share).sum()
    };
    for p in [0.2, 0.3] {
        let expected =
            p * mean_of(|steps| steps * (steps - 1.0)) / (2.0 * (1.0 - p * mean_of(|steps| steps)));
        check("Geo/G/1", expected, |run| {
            let mut stream = Stream::numbered(run, "bernoulli", (p * 10.0) as u64);
            let mut slot = 0;
            let coming = (0..REQUESTS).map(|id| {
                slot += 1;
                while !stream.chance(p) {
                    slot += 1;
                }
                let drawn = stream.unit();
                let steps = match drawn {
                    _ if drawn < 0.5 => 1,
                    _ if drawn < 0.8 => 2,
                    _ => 6,
                };
                request(id, slot * STEP_NS, 10, steps)
            });
            mean_wait(coming.collect())
        });
    }
}
