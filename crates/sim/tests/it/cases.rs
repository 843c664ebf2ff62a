//! Engines and loads drawn at random, small enough that every limit is met.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::RngSeed;
use sim::{Content, Finish, Limits, Policy, Speculation, Stretch, Submission};

use crate::watched::{Leave, serve, steady};

/// A step of these engines.
pub(crate) const STEP_NS: u64 = 1_000;

/// The same cases in every run.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x600d_9075),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// An engine, what comes, and who leaves.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) limits: Limits,
    pub(crate) requests: Vec<Submission>,
    pub(crate) leaves: Vec<Leave>,
}

/// How steps overlap: depth and whether sequences are planned ahead.
fn overlap() -> impl Strategy<Value = (u32, bool)> {
    prop_oneof![Just((1, false)), Just((2, true)), Just((2, false)), Just((3, false))]
}

fn speculation() -> impl Strategy<Value = Option<Speculation>> {
    let some = (1u32..=4, 0.0f64..=1.0);
    proptest::option::weighted(
        0.3,
        some.prop_map(|(drafted, acceptance)| Speculation { drafted, acceptance }),
    )
}

prop_compose! {
    /// An engine whose blocks hold one longest sequence and a few more blocks.
    pub(crate) fn limits()(
        max_num_seqs in 1u32..=6,
        budget in 1u32..=48,
        max_model_len in 24u32..=64,
        block_size in prop_oneof![Just(1u32), Just(3), Just(4), Just(16)],
        spare_blocks in 0u32..=12,
        enable_prefix_caching: bool,
        enable_chunked_prefill in proptest::bool::weighted(0.8),
        threshold in prop_oneof![3 => Just(0u32), 1 => 1u32..=12],
        policy in prop_oneof![Just(Policy::FirstCome), Just(Policy::Priority)],
        watermark_blocks in 0u32..=2,
        reserve_full_isl: bool,
        (depth, plans_ahead) in overlap(),
        speculation in speculation(),
    ) -> Limits {
        let budget = if enable_chunked_prefill { budget } else { budget.max(max_model_len) };
        Limits {
            max_num_seqs,
            max_num_batched_tokens: budget,
            max_model_len,
            block_size,
            blocks: max_model_len.div_ceil(block_size) + spare_blocks,
            enable_prefix_caching,
            enable_chunked_prefill,
            long_prefill_token_threshold: threshold,
            policy,
            watermark_blocks,
            reserve_full_isl,
            depth,
            plans_ahead,
            max_loras: 0,
            speculation,
            window: None,
            seed: 11,
        }
    }
}

/// What a request is before it has a number and fits the context.
#[derive(Clone, Debug)]
struct Sketch {
    arrived_ns: u64,
    shared: u32,
    group: u64,
    own: u32,
    limit: u32,
    natural: Option<u32>,
    priority: i32,
    follows: bool,
    leaves_ns: Option<u64>,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    (
        0u64..40 * STEP_NS,
        0u32..40,
        0u64..3,
        1u32..30,
        1u32..30,
        proptest::option::weighted(0.3, 1u32..30),
        -1i32..=1,
        proptest::bool::weighted(0.3),
        proptest::option::weighted(0.2, 0u64..120 * STEP_NS),
    )
        .prop_map(
            |(arrived_ns, shared, group, own, limit, natural, priority, follows, leaves_ns)| {
                Sketch {
                    arrived_ns,
                    shared,
                    group,
                    own,
                    limit,
                    natural,
                    priority,
                    follows,
                    leaves_ns,
                }
            },
        )
}

/// The source of the answer to this request.
fn answer_source(id: u64) -> u64 {
    1_000 + id
}

fn submission(id: u64, sketch: &Sketch, context: u32) -> Submission {
    let limit = sketch.limit.min(context - 1);
    let mut left = context - limit;
    let mut stretches = Vec::new();
    let mut add = |source, tokens: u32| {
        let tokens = tokens.min(left);
        left -= tokens;
        if tokens > 0 {
            stretches.push(Stretch { source, from: 0, tokens });
        }
    };
    add(sketch.group, sketch.shared);
    if sketch.follows && id > 0 {
        // A later turn carries the answer to the request before it.
        add(answer_source(id - 1), sketch.own / 2);
    }
    add(100 + id, sketch.own);
    if stretches.is_empty() {
        stretches.push(Stretch { source: 100 + id, from: 0, tokens: 1 });
    }
    Submission {
        id,
        prompt: Content::Stretches(stretches.into()),
        answer: answer_source(id),
        limit,
        natural: sketch.natural,
        priority: sketch.priority,
        adapter: None,
        arrived_ns: sketch.arrived_ns,
        transferred: 0,
    }
}

/// Any engine with up to `most` requests.
pub(crate) fn case(most: usize) -> impl Strategy<Value = Case> {
    (limits(), proptest::collection::vec(sketch(), 1..=most)).prop_map(|(limits, sketches)| {
        let of = |(id, sketch)| submission(id as u64, sketch, limits.max_model_len);
        let requests = sketches.iter().enumerate().map(of).collect();
        let leaves = sketches.iter().enumerate().filter_map(|(id, sketch)| {
            let at_ns = sketch.leaves_ns?.max(sketch.arrived_ns);
            Some(Leave { at_ns, id: id as u64 })
        });
        Case { limits, requests, leaves: leaves.collect() }
    })
}

/// A property over cases that meet no limit says nothing: these meet all.
#[test]
fn the_cases_meet_every_limit() {
    let (mut preempted, mut cached, mut left, mut drafted, mut withdrawn) = (0, 0, 0, 0, 0);
    let mut runner = proptest::test_runner::TestRunner::new(config(1));
    for _ in 0..600 {
        let case = case(12).new_tree(&mut runner).expect("no case is rejected").current();
        let drafts = case.limits.speculation.is_some();
        let by_priority = case.limits.policy == Policy::Priority;
        let log = serve(steady(case.limits, STEP_NS), case.requests, &case.leaves);
        let preemptions: u32 = log.ended.iter().map(|end| end.preemptions).sum();
        preempted += u32::from(preemptions > 0);
        withdrawn += u32::from(preemptions > 0 && by_priority);
        cached += u32::from(log.ended.iter().any(|end| end.cached_tokens > 0));
        left += u32::from(log.ended.iter().any(|end| end.finish == Finish::Abort));
        drafted += u32::from(drafts && log.tokens.iter().any(|told| told.2 > 1));
    }
    for (what, count) in [
        ("preempted", preempted),
        ("preempted by priority", withdrawn),
        ("found a prefix", cached),
        ("left", left),
        ("took drafts", drafted),
    ] {
        assert!(count >= 60, "{count} of 600 {what}");
    }
}
