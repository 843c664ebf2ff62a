//! What a larger cache does to the share of prompts that is found.

use proptest::prelude::*;
use sim::{Content, Stretch, Submission};
use workload::Stream;

use crate::cases::{STEP_NS, config};
use crate::watched::{request, roomy, serve, steady};

const BLOCK: u32 = 4;
const CONTEXT: u32 = 48;

/// A prompt that begins like others: which way it takes at each fork, and tokens
/// of its own.
#[derive(Clone, Debug)]
struct Path {
    forks: Vec<(u64, u32)>,
    own: u32,
    output: u32,
}

fn path() -> impl Strategy<Value = Path> {
    let forks = proptest::collection::vec((0u64..2, 1u32..12), 0..4);
    (forks, 0u32..10, 1u32..8).prop_map(|(forks, own, output)| Path { forks, own, output })
}

/// The paths as requests, each after the one before it is over.
fn requests(paths: &[Path]) -> Vec<Submission> {
    let of = |(id, path): (usize, &Path)| {
        let mut way = 0;
        let mut left = CONTEXT - path.output - 2;
        let mut stretches = Vec::new();
        for (fork, tokens) in &path.forks {
            way = way * 3 + 1 + fork;
            let tokens = (*tokens).min(left);
            left -= tokens;
            stretches.push(Stretch { source: way, from: 0, tokens });
        }
        let own = path.own.min(left) + 1;
        stretches.push(Stretch { source: 500 + way, from: 0, tokens: own });
        Submission {
            prompt: Content::Stretches(stretches.into()),
            ..request(id as u64, id as u64 * 1_000 * STEP_NS, 1, path.output)
        }
    };
    paths.iter().enumerate().map(of).collect()
}

fn cached(requests: &[Submission], blocks: u32) -> u32 {
    let mut limits = roomy();
    (limits.block_size, limits.max_model_len, limits.blocks) = (BLOCK, CONTEXT, blocks);
    let log = serve(steady(limits, STEP_NS), requests.to_vec(), &[]);
    log.ended.iter().map(|one| one.cached_tokens).sum()
}

const SMALLEST: u32 = CONTEXT.div_ceil(BLOCK);

proptest! {
    #![proptest_config(config(400))]

    /// Blocks are a stack: those of an engine are among those of an engine with
    /// one block more. A sequence frees its tail first, so a block lies above
    /// all that follow it, and what is found from the beginning on is what is
    /// there. A block that two have filled is there twice and takes the place of
    /// at most the one that the larger engine has more.
    #[test]
    fn one_at_a_time_more_blocks_find_no_less(paths in proptest::collection::vec(path(), 2..40)) {
        let requests = requests(&paths);
        let found: Vec<u32> =
            (SMALLEST..SMALLEST + 24).map(|blocks| cached(&requests, blocks)).collect();
        prop_assert!(found.is_sorted(), "{found:?}");
    }
}

/// Requests that come as they like, of which each begins as one of ten others.
fn crowd(seed: u64) -> Vec<Submission> {
    let mut stream = Stream::new(seed, "crowd");
    let mut at_ns = 0;
    (0..120)
        .map(|id| {
            at_ns += (stream.exponential() * 6.0 * STEP_NS as f64) as u64;
            // The square makes some groups more frequent than others.
            let group = (stream.unit().powi(2) * 10.0) as u64;
            let own = 1 + stream.below(10) as u32;
            let prompt = [
                Stretch { source: group, from: 0, tokens: 20 },
                Stretch { source: 100 + id, from: 0, tokens: own },
            ];
            Submission {
                prompt: Content::Stretches(prompt.into()),
                ..request(id, at_ns, 1, 1 + stream.below(12) as u32)
            }
        })
        .collect()
}

/// With several at a time the cache also decides who runs with whom, so one run
/// may find less with more blocks; on average it must not.
#[test]
fn together_more_blocks_find_no_less_on_average() {
    let sizes = [12, 16, 24, 32, 48, 64, 96, 192];
    let mean = |blocks| {
        let of_seed = |seed| f64::from(cached(&crowd(seed), blocks));
        (0..50).map(of_seed).sum::<f64>() / 50.0
    };
    let means: Vec<f64> = sizes.into_iter().map(mean).collect();
    assert!(means.is_sorted(), "{means:?}");
    assert!(means[7] > 2.0 * means[0], "the sizes make a difference: {means:?}");
}
