use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::content::Stretch;

#[derive(Default)]
struct Ends(HashMap<u64, u32>);

impl Sink for Ends {
    fn tokens(&mut self, _: u64, _: u64, tokens: u32) {
        assert!(tokens > 0);
    }

    fn ended(&mut self, ended: &Ended) {
        *self.0.entry(ended.id).or_default() += 1;
    }
}

/// What a block was last written with: whose tokens, which of its blocks, and
/// how many tokens from the block's beginning on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Written {
    id: u64,
    number: u32,
    tokens: u32,
}

/// A scheduler whose blocks are remembered as an accelerator's memory would.
struct Watched {
    scheduler: Scheduler,
    steps: VecDeque<Step>,
    memory: HashMap<BlockId, Written>,
    submissions: HashMap<u64, Submission>,
    ends: Ends,
    now_ns: u64,
}

impl Watched {
    fn new(limits: Limits) -> Self {
        Self {
            scheduler: Scheduler::new(limits),
            steps: VecDeque::new(),
            memory: HashMap::new(),
            submissions: HashMap::new(),
            ends: Ends::default(),
            now_ns: 0,
        }
    }

    fn submit(&mut self, submission: Submission) {
        self.submissions.insert(submission.id, submission.clone());
        self.scheduler.submit(submission);
    }

    fn abort(&mut self, id: u64) {
        self.scheduler.abort(id, self.now_ns, &mut self.ends);
        self.check();
    }

    fn plan(&mut self) -> bool {
        let mut step = Step::default();
        self.scheduler.plan(self.now_ns, &mut step);
        self.check_step(&step);
        for item in &step.items {
            self.write(item);
        }
        self.check();
        let any = !step.items.is_empty();
        if any {
            self.steps.push_back(step);
        }
        any
    }

    fn finish(&mut self) {
        self.now_ns += 1;
        if let Some(step) = self.steps.pop_front() {
            self.scheduler.finish(&step, self.now_ns, &mut self.ends);
            self.check();
        }
    }

    fn write(&mut self, item: &Item) {
        let size = self.scheduler.limits.block_size;
        let sequence = &self.scheduler.sequences[item.slot as usize];
        let id = sequence.submission.id;
        for place in item.before..item.before + item.computes {
            let number = place / size;
            let fresh = Written { id, number, tokens: 0 };
            let written = self.memory.entry(sequence.blocks[number as usize]).or_insert(fresh);
            if (written.id, written.number) != (id, number) || place.is_multiple_of(size) {
                *written = fresh;
            }
            assert!(written.tokens >= place % size, "a token before this one was not written");
            written.tokens = place % size + 1;
        }
    }

    fn check_step(&self, step: &Step) {
        let limits = &self.scheduler.limits;
        let slots: HashSet<u32> = step.items.iter().map(|item| item.slot).collect();
        assert_eq!(slots.len(), step.items.len(), "a sequence is in a step once");
        let tokens: u32 = step.items.iter().map(|item| item.computes).sum();
        assert_eq!(tokens, step.work.tokens);
        assert!(tokens <= limits.max_num_batched_tokens);
        assert!(step.items.len() <= limits.max_num_seqs as usize);
        for item in &step.items {
            let sequence = &self.scheduler.sequences[item.slot as usize];
            assert!(self.scheduler.running.contains(&item.slot));
            let places = sequence.blocks.len() as u32 * limits.block_size;
            assert!(item.before + item.computes <= places, "each token has its place");
            assert!(item.before + item.computes < limits.max_model_len, "its successor has one");
        }
    }

    /// Users, sharing and what can be found, block by block.
    fn check(&self) {
        let scheduler = &self.scheduler;
        let limits = &scheduler.limits;
        let seen = scheduler.pool.seen();
        let mut users = vec![0; seen.len()];
        let mut holds: HashMap<BlockId, (u32, BlockHash)> = HashMap::new();
        for slot in &scheduler.running {
            let sequence = &scheduler.sequences[*slot as usize];
            assert!(!sequence.ended);
            assert!(sequence.computed <= sequence.tokens + sequence.awaited);
            let unique: HashSet<BlockId> = sequence.blocks.iter().copied().collect();
            assert_eq!(unique.len(), sequence.blocks.len());
            for (number, id) in sequence.blocks.iter().enumerate() {
                users[*id as usize] += 1;
                if number < sequence.named as usize {
                    let of = (number as u32, sequence.hashes[number]);
                    let same = *holds.entry(*id).or_insert(of) == of;
                    assert!(same, "a shared block has the same tokens and beginning");
                } else {
                    assert_eq!(seen[*id as usize].users, 1, "a block that fills is shared");
                }
            }
        }
        for (id, block) in seen.iter().enumerate() {
            assert_eq!(block.users, users[id], "users of block {id}");
            let Some(hash) = block.hash else { continue };
            let Written { id, number, tokens } = self.memory[&(id as BlockId)];
            assert_eq!(tokens, limits.block_size, "what is found was written");
            let submission = &self.submissions[&id];
            let mut chain = Chain::new(limits.block_size);
            let hashes = (0..=number).map(|_| chain.next(&submission.prompt, submission.answer));
            assert_eq!(hashes.last(), Some(hash), "and is what it is found as");
        }
        let waits = scheduler.sequences.iter().enumerate().filter(|(slot, sequence)| {
            !sequence.ended && !scheduler.running.contains(&(*slot as u32))
        });
        let mut waiting = 0;
        for (_, sequence) in waits {
            waiting += 1;
            assert!(sequence.blocks.is_empty(), "who waits holds nothing");
        }
        assert_eq!(waiting, scheduler.waiting());
    }
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Submit { group: u64, shared: u32, own: u32, limit: u32, priority: i32 },
    Abort { back: u64 },
    Plan,
    Finish,
}

fn deed() -> impl Strategy<Value = Deed> {
    let submit = (0u64..3, 0u32..14, 1u32..12, 1u32..14, -1i32..=1).prop_map(
        |(group, shared, own, limit, priority)| Deed::Submit {
            group,
            shared,
            own,
            limit,
            priority,
        },
    );
    prop_oneof![
        3 => submit,
        1 => (1u64..8).prop_map(|back| Deed::Abort { back }),
        8 => Just(Deed::Plan),
        8 => Just(Deed::Finish),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let steps = (1u32..=5, 1u32..=30, prop_oneof![Just(1u32), Just(2), Just(5)], 0u32..6);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), 0u32..=2, 0u32..=6);
    let drafts = proptest::option::weighted(0.3, (1u32..=3, 0.0f64..=1.0));
    let overlap = prop_oneof![Just((1, false)), Just((2, true)), Just((3, false))];
    (steps, switches, drafts, overlap).prop_map(|(steps, switches, drafts, overlap)| {
        let (max_num_seqs, max_num_batched_tokens, block_size, spare) = steps;
        let (by_priority, caches, reserve_full_isl, watermark_blocks, threshold) = switches;
        Limits {
            max_num_seqs,
            max_num_batched_tokens,
            max_model_len: 40,
            block_size,
            blocks: 40_u32.div_ceil(block_size) + spare,
            enable_prefix_caching: caches,
            enable_chunked_prefill: true,
            long_prefill_token_threshold: threshold,
            policy: if by_priority { Policy::Priority } else { Policy::FirstCome },
            watermark_blocks,
            reserve_full_isl,
            depth: overlap.0,
            plans_ahead: overlap.1,
            max_loras: 0,
            speculation: drafts.map(|(drafted, acceptance)| Speculation { drafted, acceptance }),
            window: None,
            seed: 3,
        }
    })
}

fn carry_out(limits: Limits, deeds: &[Deed]) {
    let mut watched = Watched::new(limits);
    let mut count = 0;
    for deed in deeds {
        match *deed {
            Deed::Submit { group, shared, own, limit, priority } => {
                let stretch = |source, tokens| Stretch { source, from: 0, tokens };
                let prompt = [stretch(group, shared), stretch(100 + count, own)];
                watched.submit(Submission {
                    id: count,
                    prompt: Content::Stretches(prompt.into()),
                    answer: 1_000 + count,
                    limit,
                    natural: None,
                    priority,
                    adapter: None,
                    arrived_ns: watched.now_ns,
                    transferred: 0,
                });
                count += 1;
            }
            Deed::Abort { back } => watched.abort(count.saturating_sub(back)),
            Deed::Plan if watched.steps.len() < limits.depth as usize => {
                watched.plan();
            }
            Deed::Plan => {}
            Deed::Finish => watched.finish(),
        }
    }
    for _ in 0..100_000 {
        if !watched.plan() || watched.steps.len() >= limits.depth as usize {
            watched.finish();
        }
        if watched.scheduler.running() + watched.scheduler.waiting() == 0 {
            break;
        }
    }
    assert_eq!(watched.ends.0.len() as u64, count, "all end");
    assert!(watched.ends.0.values().all(|ends| *ends == 1), "and once");
    assert_eq!(watched.scheduler.pool.free(), limits.blocks);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        rng_seed: RngSeed::Fixed(0x600d_9075),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_shared_is_equal_and_what_is_found_was_written(
        limits in limits(),
        deeds in proptest::collection::vec(deed(), 1..120),
    ) {
        carry_out(limits, &deeds);
    }
}
