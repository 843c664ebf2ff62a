//! Several answers to one request: sequences of their own that share the prompt.

use std::collections::HashMap;

use proptest::prelude::*;
use sim::{Ask, Audience, Choice, Cluster, Content, Ended, Finish, Settings, Stretch};

use crate::cases::config;

/// What left a cluster.
#[derive(Default)]
struct Log {
    tokens: Vec<(Choice, u64, u32)>,
    ended: Vec<(Choice, Ended)>,
}

impl Audience for Log {
    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32) {
        self.tokens.push((choice, at_ns, tokens));
    }

    fn ended(&mut self, _: usize, choice: Choice, ended: &Ended, _: u64) {
        assert_eq!(choice.request, ended.id);
        self.ended.push((choice, *ended));
    }
}

/// A request before it has a number, and when its client leaves.
#[derive(Clone, Debug)]
struct Sketch {
    at_us: u64,
    shared: u32,
    own: u32,
    limit: u32,
    natural: Option<u32>,
    choices: u8,
    leaves_us: Option<u64>,
}

/// Instants reach over a few steps of some five milliseconds each.
fn sketch() -> impl Strategy<Value = Sketch> {
    let lengths = (0u32..60, 1u32..60, 1u32..40, proptest::option::weighted(0.3, 1u32..40));
    let leaves = proptest::option::weighted(0.2, 0u64..300_000);
    (0u64..60_000, lengths, 1u8..=5, leaves).prop_map(|(at_us, lengths, choices, after_us)| {
        let (shared, own, limit, natural) = lengths;
        let leaves_us = after_us.map(|after| at_us + after);
        Sketch { at_us, shared, own, limit, natural, choices, leaves_us }
    })
}

/// Engines that are small enough for every limit to be met.
fn settings() -> impl Strategy<Value = Vec<String>> {
    let sizes = (1u32..=8, 16u32..=96, 10u32..=30, 1u32..=2, 0u32..=2);
    (sizes, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |((seats, budget, blocks, replicas, prefillers), caches, ahead, sticks)| {
            vec![
                format!("max_num_seqs={seats}"),
                format!("max_num_batched_tokens={budget}"),
                format!("num_gpu_blocks_override={blocks}"),
                "max_model_len=160".to_owned(),
                format!("replicas={replicas}"),
                format!("prefill_replicas={prefillers}"),
                format!("enable_prefix_caching={caches}"),
                format!("async_scheduling={ahead}"),
                format!("router={}", if sticks { "session-sticky" } else { "least-loaded" }),
                // Requests that came together are scheduled together.
                "frontend_overhead_us=0".to_owned(),
                "frontend_token_us=0".to_owned(),
            ]
        },
    )
}

fn cluster(set: &[String]) -> Cluster {
    let mut settings = Settings::default();
    set.iter().for_each(|assignment| settings.set(assignment).unwrap());
    Cluster::new(&settings, 1).unwrap()
}

fn ask(id: u64, sketch: &Sketch) -> Ask {
    let stretch = |source, tokens| Stretch { source, from: 0, tokens };
    Ask {
        id,
        prompt: Content::Stretches(
            [stretch(1, sketch.shared), stretch(100 + id, sketch.own)].into(),
        ),
        answer: 1_000_000 + id,
        choices: sketch.choices,
        limit: sketch.limit,
        natural: sketch.natural,
        priority: 0,
        adapter: None,
        session: id,
        computed: 0,
    }
}

/// Lets requests come and clients leave. Gives what was heard, and the answers
/// that were under way when a client left.
fn serve(cluster: &mut Cluster, sketches: &[Sketch]) -> (Log, HashMap<u64, u32>) {
    let mut deeds: Vec<(u64, bool, u64)> = Vec::new();
    for (id, sketch) in sketches.iter().enumerate() {
        deeds.push((sketch.at_us, false, id as u64));
        deeds.extend(sketch.leaves_us.map(|at_us| (at_us, true, id as u64)));
    }
    deeds.sort_unstable();
    let (mut log, mut left) = (Log::default(), HashMap::new());
    for (at_us, leaves, id) in deeds {
        let at_ns = at_us * 1_000;
        cluster.advance(at_ns, &mut log);
        if leaves {
            left.insert(id, cluster.abort(id, at_ns, &mut log));
        } else {
            cluster.submit(at_ns, ask(id, &sketches[id as usize]));
        }
    }
    cluster.advance(u64::MAX, &mut log);
    (log, left)
}

/// The end that an answer must have whose client stays.
fn expected(sketch: &Sketch) -> (u32, Finish) {
    match sketch.natural {
        Some(natural) if natural <= sketch.limit => (natural, Finish::Stop),
        _ => (sketch.limit, Finish::Length),
    }
}

proptest! {
    #![proptest_config(config(600))]

    /// Each answer ends once, with every token, whatever the others do; those that
    /// a leaving client had under way are neither lost nor counted as ended.
    #[test]
    fn answers_tokens_and_blocks_are_conserved(
        set in settings(),
        sketches in proptest::collection::vec(sketch(), 1..8),
    ) {
        let mut cluster = cluster(&set);
        let (log, left) = serve(&mut cluster, &sketches);
        let mut ends: HashMap<(u64, u8), Ended> = HashMap::new();
        for (choice, ended) in &log.ended {
            let twice = ends.insert((choice.request, choice.index), *ended);
            prop_assert!(twice.is_none(), "an answer ends once");
        }
        let mut told: HashMap<(u64, u8), u32> = HashMap::new();
        for (choice, _, tokens) in &log.tokens {
            *told.entry((choice.request, choice.index)).or_default() += tokens;
        }
        for (id, sketch) in (0..).zip(&sketches) {
            let mut well = 0;
            for index in 0..sketch.choices {
                let Some(ended) = ends.get(&(id, index)) else { continue };
                prop_assert_eq!(ended.prompt_tokens, sketch.shared + sketch.own);
                let told = told.get(&(id, index)).copied().unwrap_or(0);
                if ended.finish == Finish::Abort {
                    prop_assert!(left.contains_key(&id));
                } else {
                    well += 1;
                    prop_assert_eq!(told, ended.output_tokens);
                    prop_assert_eq!((ended.output_tokens, ended.finish), expected(sketch));
                }
            }
            let gone = left.get(&id).copied().unwrap_or(0);
            prop_assert_eq!(well + gone, u32::from(sketch.choices));
        }
        for replica in cluster.replicas() {
            prop_assert!(replica.is_idle() && replica.holds_nothing());
        }
        if left.values().all(|answers| *answers == 0) {
            let of_answers: u64 = log.ended.iter().map(|(_, ended)| ended.computed_tokens).sum();
            prop_assert_eq!(of_answers, cluster.totals().computed_tokens);
        }
    }

    /// To a scheduler an answer is a request of its own: so many requests with the
    /// same prompt that come at the same instant fare the same.
    #[test]
    fn answers_fare_as_requests_that_come_together(
        set in settings(),
        sketches in proptest::collection::vec(sketch(), 1..6),
    ) {
        // Requests would be dealt to other replicas, and their prompts computed
        // elsewhere each by itself.
        let set = [&set[..], &["replicas=1".to_owned(), "prefill_replicas=0".to_owned()]].concat();
        let sketches: Vec<Sketch> =
            sketches.into_iter().map(|sketch| Sketch { leaves_us: None, ..sketch }).collect();
        let (mut together, _) = serve(&mut cluster(&set), &sketches);
        let mut apart = Log::default();
        let mut cluster = cluster(&set);
        let mut order: Vec<(u64, &Sketch)> = (0..).zip(&sketches).collect();
        order.sort_by_key(|(id, sketch)| (sketch.at_us, *id));
        for (id, sketch) in order {
            cluster.advance(sketch.at_us * 1_000, &mut apart);
            for index in 0..sketch.choices {
                let number = id << 8 | u64::from(index);
                let answer = 9_000 + number;
                let alone = Ask { id: number, answer, choices: 1, ..ask(id, sketch) };
                cluster.submit(sketch.at_us * 1_000, alone);
            }
        }
        cluster.advance(u64::MAX, &mut apart);
        let number = |choice: &Choice| choice.request << 8 | u64::from(choice.index);
        together.ended.iter_mut().for_each(|(choice, ended)| ended.id = number(choice));
        let ends = |log: &Log| log.ended.iter().map(|(_, ended)| *ended).collect::<Vec<_>>();
        prop_assert_eq!(ends(&together), ends(&apart));
        let told = |log: &Log, number: &dyn Fn(&Choice) -> u64| -> Vec<(u64, u64, u32)> {
            let one = |told: &(Choice, u64, u32)| (number(&told.0), told.1, told.2);
            log.tokens.iter().map(one).collect()
        };
        prop_assert_eq!(told(&together, &number), told(&apart, &|choice| choice.request));
    }
}

/// Four answers of 10 tokens to a prompt of 500.
fn four(set: &[&str]) -> (Log, Cluster) {
    let set: Vec<String> = set.iter().map(|one| (*one).to_owned()).collect();
    let mut cluster = cluster(&set);
    let sketch = Sketch {
        at_us: 0,
        shared: 0,
        own: 500,
        limit: 10,
        natural: None,
        choices: 4,
        leaves_us: None,
    };
    let (log, _) = serve(&mut cluster, &[sketch]);
    (log, cluster)
}

#[test]
fn answers_share_the_whole_blocks_of_their_prompt() {
    let cached =
        |log: &Log| -> Vec<u32> { log.ended.iter().map(|end| end.1.cached_tokens).collect() };
    let (shared, cluster) = four(&[]);
    // 31 blocks of 16 are full; each computes the other 4 tokens, and 9 of its own.
    assert_eq!(cached(&shared), [0, 496, 496, 496]);
    assert_eq!(cluster.totals().computed_tokens, 500 + 3 * 4 + 4 * 9);
    let (apart, cluster) = four(&["enable_prefix_caching=false"]);
    assert_eq!(cached(&apart), [0; 4]);
    assert_eq!(cluster.totals().computed_tokens, 4 * (500 + 9));
    // 31 blocks and a tail for each of two: the others begin when those have ended.
    let (tight, cluster) = four(&["num_gpu_blocks_override=33", "max_model_len=512"]);
    assert_eq!(tight.ended.len(), 4);
    assert_eq!(cached(&tight), [0, 496, 496, 496]);
    assert_eq!((cluster.totals().steps, cluster.totals().preemptions), (20, 0));
}

#[test]
fn a_prompt_that_is_computed_elsewhere_is_computed_once_for_all_answers() {
    let (log, cluster) = four(&["prefill_replicas=1"]);
    assert_eq!(log.ended.len(), 4);
    let [prompts, answers] = cluster.replicas() else { panic!("two replicas") };
    assert_eq!(prompts.totals().computed_tokens, 500);
    // The last token of the prompt is computed where an answer is written.
    assert_eq!(answers.totals().computed_tokens, 4 * (1 + 9));
    let of_answers: u64 = log.ended.iter().map(|(_, ended)| ended.computed_tokens).sum();
    assert_eq!(of_answers, 540);
}

#[test]
fn a_client_that_leaves_takes_all_its_answers_along() {
    let whole = Sketch {
        at_us: 0,
        shared: 0,
        own: 100,
        limit: 2_000,
        natural: None,
        choices: 3,
        leaves_us: None,
    };
    // In the front end, while the prompt is computed, on the way between, while
    // answers are written, and when all is over.
    for (leaves_ms, under_way) in [(1, 3), (6, 3), (12, 3), (500, 3), (1_000_000, 0)] {
        for set in [&[][..], &["prefill_replicas=1".to_owned(), "replicas=2".to_owned()]] {
            let mut cluster = cluster(set);
            let sketch = Sketch { leaves_us: Some(leaves_ms * 1_000), ..whole.clone() };
            let (log, left) = serve(&mut cluster, &[sketch]);
            assert_eq!(left[&0], under_way, "{leaves_ms} ms, {set:?}");
            let well = log.ended.iter().filter(|(_, ended)| ended.finish == Finish::Length).count();
            assert_eq!(well as u32, 3 - under_way);
            assert!(cluster.replicas().iter().all(sim::Replica::holds_nothing));
        }
    }
}
