//! Nothing is lost and nothing comes twice, whatever the limits and whoever
//! leaves.

use std::collections::HashMap;

use proptest::prelude::*;
use sim::{Ended, Finish, Submission};

use crate::cases::{Case, STEP_NS, case, config};
use crate::watched::{Log, serve, serve_on, steady};

/// The end that a request that nobody leaves must have.
fn expected(request: &Submission) -> (u32, Finish) {
    match request.natural {
        Some(natural) if natural <= request.limit => (natural, Finish::Stop),
        _ => (request.limit, Finish::Length),
    }
}

fn check_ends(case: &Case, log: &Log) -> Result<(), TestCaseError> {
    let ended: Vec<Ended> = log.by_id();
    let ids: Vec<u64> = ended.iter().map(|one| one.id).collect();
    let all: Vec<u64> = (0..case.requests.len() as u64).collect();
    prop_assert_eq!(ids, all, "each request ends exactly once");
    let mut told: HashMap<u64, u32> = HashMap::new();
    let mut last: HashMap<u64, u64> = HashMap::new();
    for (id, at_ns, tokens) in &log.tokens {
        prop_assert!(*tokens > 0, "an event without tokens is none");
        *told.entry(*id).or_default() += tokens;
        prop_assert!(last.insert(*id, *at_ns).is_none_or(|before| before <= *at_ns));
    }
    for (end, request) in ended.iter().zip(&case.requests) {
        prop_assert_eq!(told.get(&end.id).copied().unwrap_or(0), end.output_tokens);
        prop_assert_eq!(end.prompt_tokens, request.prompt.len());
        prop_assert!(end.cached_tokens < end.prompt_tokens, "the last token is computed");
        let may_leave = case.leaves.iter().any(|leave| leave.id == end.id);
        let (tokens, finish) = expected(request);
        if end.finish == Finish::Abort {
            prop_assert!(may_leave && end.output_tokens <= tokens);
        } else {
            prop_assert_eq!((end.output_tokens, end.finish), (tokens, finish));
            prop_assert_eq!(last.get(&end.id), Some(&end.ended_ns));
            prop_assert!(end.arrived_ns <= end.scheduled_ns);
            prop_assert!(end.scheduled_ns < end.first_token_ns);
            prop_assert!(end.first_token_ns <= end.ended_ns);
            prop_assert!(end.computed_tokens >= u64::from(end.output_tokens));
            // Each token but the last was computed, found ones aside.
            let least = u64::from(end.prompt_tokens - end.cached_tokens + end.output_tokens - 1);
            if end.preemptions == 0 && case.limits.speculation.is_none() {
                prop_assert!(end.computed_tokens >= least);
                // One step too many, where the model ends an answer by itself
                // and the next token was planned already.
                let ahead = u64::from(case.limits.plans_ahead);
                prop_assert!(end.computed_tokens <= least + ahead);
            }
        }
    }
    Ok(())
}

fn check_steps(case: &Case, log: &Log) -> Result<(), TestCaseError> {
    let limits = &case.limits;
    let mut ends_ns = 0;
    for step in &log.steps {
        prop_assert!(step.work.tokens <= limits.max_num_batched_tokens, "{:?}", step.work);
        prop_assert!(step.work.sequences <= limits.max_num_seqs);
        prop_assert!((1..=step.work.tokens).contains(&step.work.sequences));
        prop_assert!(step.work.prefill_tokens <= step.work.tokens);
        prop_assert!(step.work.sampled <= step.work.tokens);
        prop_assert!(step.after.running <= limits.max_num_seqs as usize);
        prop_assert!((0.0..=1.0).contains(&step.after.kv_usage));
        prop_assert!(step.ends_ns >= ends_ns, "steps end in the order of their starts");
        ends_ns = step.ends_ns;
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn requests_tokens_and_blocks_are_conserved(case in case(12)) {
        let log = serve(steady(case.limits, STEP_NS), case.requests.clone(), &case.leaves);
        check_ends(&case, &log)?;
        check_steps(&case, &log)?;
    }

    #[test]
    fn what_requests_computed_is_what_steps_computed(case in case(8)) {
        let mut replica = steady(case.limits, STEP_NS);
        let mut requests = case.requests.clone();
        let log = serve_on(&mut replica, &mut requests, &[]);
        let of_requests: u64 = log.ended.iter().map(|end| end.computed_tokens).sum();
        let of_steps: u64 = log.steps.iter().map(|step| u64::from(step.work.tokens)).sum();
        prop_assert_eq!(of_requests, of_steps);
        let totals = replica.totals();
        prop_assert_eq!(totals.computed_tokens, of_steps);
        prop_assert_eq!(totals.steps, log.steps.len() as u64);
        let output: u64 = log.ended.iter().map(|end| u64::from(end.output_tokens)).sum();
        prop_assert_eq!(totals.output_tokens, output);
        let preemptions: u64 = log.ended.iter().map(|end| u64::from(end.preemptions)).sum();
        prop_assert_eq!(totals.preemptions, preemptions);
        let cached: u64 = log.ended.iter().map(|end| u64::from(end.cached_tokens)).sum();
        prop_assert_eq!(replica.prefix().hits, cached);
    }
}
