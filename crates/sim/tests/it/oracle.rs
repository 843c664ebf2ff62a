//! The engine against [`crate::naive`]: cached tokens to the block, preemptions,
//! computed tokens and instants to the nanosecond.

use proptest::prelude::*;
use sim::{Content, Stretch, Submission};

use crate::cases::{Case, STEP_NS, case, config};
use crate::naive;
use crate::watched::{roomy, serve, steady};

/// Moves each request behind the end of the one before it.
fn one_at_a_time(case: &mut Case) {
    case.leaves.clear();
    for (number, request) in case.requests.iter_mut().enumerate() {
        request.arrived_ns = number as u64 * 1_000 * STEP_NS;
    }
}

proptest! {
    #![proptest_config(config(3_000))]

    #[test]
    fn one_at_a_time_each_finds_what_the_naive_engine_finds(mut case in case(12)) {
        case.limits.speculation = None;
        one_at_a_time(&mut case);
        let expected = naive::serve(case.limits, STEP_NS, &case.requests, &[]);
        let log = serve(steady(case.limits, STEP_NS), case.requests, &[]);
        prop_assert_eq!(log.by_id(), expected);
    }

    #[test]
    fn together_and_leaving_they_fare_as_in_the_naive_engine(mut case in case(12)) {
        case.limits.speculation = None;
        let expected = naive::serve(case.limits, STEP_NS, &case.requests, &case.leaves);
        let log = serve(steady(case.limits, STEP_NS), case.requests, &case.leaves);
        prop_assert_eq!(log.by_id(), expected);
    }
}

/// A conversation's next turn brings the prompt and the answer before it.
fn turn(id: u64, stretches: &[(u64, u32)], output: u32) -> Submission {
    let one = |&(source, tokens)| Stretch { source, from: 0, tokens };
    Submission {
        id,
        prompt: Content::Stretches(stretches.iter().map(one).collect()),
        answer: 1_000 + id,
        limit: output,
        natural: None,
        priority: 0,
        adapter: None,
        arrived_ns: id * 1_000_000,
        transferred: 0,
    }
}

/// By hand, blocks of 16: the first turn has 20 + 44 = 64 tokens, of which the
/// last is drawn and not computed, so 63 lie in memory and 3 blocks are full.
/// The second has 64 + 32 = 96 and finds these 48. Its answer of 33 makes 129
/// tokens, 128 of them computed: the third, which brings them all, finds 8
/// blocks. The same again finds what is full and not its last token: of 129
/// tokens 8 blocks.
#[test]
fn a_conversation_finds_its_blocks_whether_planned_ahead_or_not() {
    let first = [(1, 20)];
    let second = [(1, 20), (1_000, 44), (2, 32)];
    let third = [(1, 20), (1_000, 44), (2, 32), (1_001, 33)];
    let turns =
        vec![turn(0, &first, 44), turn(1, &second, 33), turn(2, &third, 5), turn(3, &third, 5)];
    for ahead in [false, true] {
        let mut limits = roomy();
        (limits.depth, limits.plans_ahead) = (1 + u32::from(ahead), ahead);
        let ended = serve(steady(limits, 100), turns.clone(), &[]).by_id();
        let cached: Vec<u32> = ended.iter().map(|one| one.cached_tokens).collect();
        assert_eq!(cached, [0, 48, 128, 128], "planned ahead: {ahead}");
    }
}
