//! The engine gets on, however little memory it has.

use std::collections::HashMap;

use proptest::prelude::*;
use sim::{Limits, Policy, Submission};

use crate::cases::{STEP_NS, case, config};
use crate::watched::{request, roomy, serve, steady};

/// The most steps in which a request that nobody can take blocks from comes to
/// its end: its prompt and the answer that it may have, in pieces of what a
/// step takes, and a step for each token.
fn most_steps_alone(limits: &Limits, request: &Submission) -> u64 {
    let piece = match limits.long_prefill_token_threshold {
        0 => limits.max_num_batched_tokens,
        threshold => threshold.min(limits.max_num_batched_tokens),
    };
    let tokens = request.prompt.len() + request.limit;
    u64::from(tokens.div_ceil(piece) + request.limit)
}

proptest! {
    #![proptest_config(config(1_500))]

    /// First come, first served: those that run stand in the order in which they
    /// came, and the last of them is preempted. So the oldest is never
    /// preempted, gets its tokens first, and ends within the steps that it would
    /// need alone; where `depth` steps are under way it is in one of that many.
    /// Then the next is the oldest. That bounds the steps of a run with anyone
    /// in it by a sum over all requests, and the preemptions of one by the steps
    /// until it is the oldest: between two of them lie two steps, for nobody is
    /// admitted in a step that preempts.
    #[test]
    fn first_come_ends_in_time_and_bounds_preemptions(mut case in case(12)) {
        case.limits.policy = Policy::FirstCome;
        let log = serve(steady(case.limits, STEP_NS), case.requests.clone(), &[]);
        let depth = u64::from(case.limits.depth);
        let mut order: Vec<&Submission> = case.requests.iter().collect();
        order.sort_by_key(|request| (request.arrived_ns, request.id));
        let ended: HashMap<u64, _> = log.ended.iter().map(|one| (one.id, one)).collect();
        let mut before = 0;
        for request in order {
            let preemptions = u64::from(ended[&request.id].preemptions);
            prop_assert!(2 * preemptions <= before + 1, "{preemptions} of {}", request.id);
            before += depth * most_steps_alone(&case.limits, request);
        }
        prop_assert!(log.steps.len() as u64 <= before, "{} steps", log.steps.len());
    }

    /// By priority: the most important one that runs is never preempted. One
    /// that comes later and matters more may be admitted before it and take its
    /// blocks; it keeps its tokens and has its computation again to do, once for
    /// each that comes. So each request adds its own steps and, at most, those of
    /// the longest computation to each request that it passes.
    #[test]
    fn by_priority_it_ends_in_time(mut case in case(12)) {
        case.limits.policy = Policy::Priority;
        let log = serve(steady(case.limits, STEP_NS), case.requests.clone(), &[]);
        let alone: Vec<u64> =
            case.requests.iter().map(|one| most_steps_alone(&case.limits, one)).collect();
        let longest = alone.iter().max().copied().unwrap_or(0);
        let count = alone.len() as u64;
        let most = u64::from(case.limits.depth) * (alone.iter().sum::<u64>() + count * longest);
        prop_assert!(log.steps.len() as u64 <= most, "{} steps of {most}", log.steps.len());
        let preemptions = log.ended.iter().map(|one| u64::from(one.preemptions)).max();
        prop_assert!(preemptions.unwrap_or(0) <= most / 2);
    }
}

/// A cache of exactly one longest sequence, and many that want it all: what made
/// another model of an engine run for ever (inference-sim#297).
#[test]
fn a_cache_of_one_sequence_serves_all() {
    for policy in [Policy::FirstCome, Policy::Priority] {
        for (depth, plans_ahead) in [(1, false), (2, true), (2, false)] {
            for (caches, chunks) in [(true, true), (false, true), (true, false), (false, false)] {
                let mut limits = roomy();
                limits.max_model_len = 64;
                limits.blocks = 4;
                limits.max_num_batched_tokens = if chunks { 16 } else { 64 };
                (limits.policy, limits.depth, limits.plans_ahead) = (policy, depth, plans_ahead);
                (limits.enable_prefix_caching, limits.enable_chunked_prefill) = (caches, chunks);
                let requests: Vec<_> = (0..20).map(|id| request(id, id * 10, 24, 40)).collect();
                let most: u64 = requests.iter().map(|one| most_steps_alone(&limits, one)).sum();
                let log = serve(steady(limits, STEP_NS), requests, &[]);
                assert_eq!(log.ended.len(), 20);
                assert!(log.steps.len() as u64 <= most * u64::from(depth), "{limits:?}");
            }
        }
    }
}
