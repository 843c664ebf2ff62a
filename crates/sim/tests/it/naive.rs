//! The same engine in the plainest way: tokens are spelt one by one, blocks and
//! their order are lists that are searched. It was written from the rules of
//! vLLM 0.27's scheduler and block pool and shares no code with `sim`; it is
//! slow, and it drafts nothing.

use sim::{Content, Ended, Finish, Limits, Policy, Submission};

use crate::watched::Leave;

/// A token: where it comes from and its place there.
type Token = (u64, u32);

#[derive(Clone, Default)]
struct Block {
    users: usize,
    /// All tokens up to the block's end, once it can be found.
    begins: Option<Vec<Token>>,
}

struct Blocks {
    all: Vec<Block>,
    /// The first is given next.
    free: Vec<usize>,
    /// Those that can be found, in the order in which they became so.
    findable: Vec<usize>,
    caches: bool,
}

impl Blocks {
    fn find(&self, begins: &[Token]) -> Option<usize> {
        let is_it = |id: &&usize| self.all[**id].begins.as_deref() == Some(begins);
        self.findable.iter().find(is_it).copied()
    }

    fn take(&mut self) -> usize {
        let id = self.free.remove(0);
        self.findable.retain(|other| *other != id);
        self.all[id] = Block { users: 1, begins: None };
        id
    }

    fn share(&mut self, id: usize) {
        self.free.retain(|other| *other != id);
        self.all[id].users += 1;
    }

    fn release(&mut self, blocks: Vec<usize>) {
        let (mut first, mut last) = (Vec::new(), Vec::new());
        for id in blocks.into_iter().rev() {
            self.all[id].users -= 1;
            if self.all[id].users == 0 {
                let goes_first = self.caches && self.all[id].begins.is_none();
                if goes_first { &mut first } else { &mut last }.push(id);
            }
        }
        first.append(&mut self.free);
        first.append(&mut last);
        self.free = first;
    }
}

struct Sequence {
    submission: Submission,
    tokens: Vec<Token>,
    prompt: usize,
    computed: usize,
    /// Steps under way that will give it a token, of this life and of former
    /// ones.
    awaited: usize,
    stale: usize,
    blocks: Vec<usize>,
    life: u32,
    scheduled_ns: Option<u64>,
    first_token_ns: Option<u64>,
    cached: u32,
    computed_tokens: u64,
    over: bool,
}

struct Item {
    id: usize,
    life: u32,
    before: usize,
    computes: usize,
    draws: bool,
}

struct Step {
    ends_ns: u64,
    items: Vec<Item>,
}

/// The engine and all that it has heard of.
pub(crate) struct Naive {
    limits: Limits,
    step_ns: u64,
    blocks: Blocks,
    sequences: Vec<Sequence>,
    running: Vec<usize>,
    waiting: Vec<usize>,
    steps: Vec<Step>,
    entry_free_ns: u64,
    ended: Vec<Ended>,
}

fn spelt(content: &Content) -> Vec<Token> {
    match content {
        Content::Stretches(all) => all
            .iter()
            .flat_map(|one| (one.from..one.from + one.tokens).map(|place| (one.source, place)))
            .collect(),
        // No source of these tests has this number.
        Content::Tokens(ids) | Content::Spelt { prompt: ids, .. } => {
            ids.iter().map(|id| (u64::MAX, *id)).collect()
        }
    }
}

/// What becomes of these requests, in the order of their numbers, which must be
/// that of the list.
pub(crate) fn serve(
    limits: Limits,
    step_ns: u64,
    requests: &[Submission],
    leaves: &[Leave],
) -> Vec<Ended> {
    let count = limits.blocks as usize;
    let mut naive = Naive {
        limits,
        step_ns,
        blocks: Blocks {
            all: vec![Block::default(); count],
            free: (0..count).collect(),
            findable: Vec::new(),
            caches: limits.enable_prefix_caching,
        },
        sequences: requests.iter().map(Sequence::new).collect(),
        running: Vec::new(),
        waiting: Vec::new(),
        steps: Vec::new(),
        entry_free_ns: 0,
        ended: Vec::new(),
    };
    naive.go(leaves);
    naive.ended.sort_by_key(|one| one.id);
    naive.ended
}

impl Sequence {
    fn new(submission: &Submission) -> Self {
        let tokens = spelt(&submission.prompt);
        Self {
            submission: submission.clone(),
            prompt: tokens.len(),
            tokens,
            computed: 0,
            awaited: 0,
            stale: 0,
            blocks: Vec::new(),
            life: 0,
            scheduled_ns: None,
            first_token_ns: None,
            cached: 0,
            computed_tokens: 0,
            over: false,
        }
    }

    fn answered(&self) -> usize {
        self.tokens.len() - self.prompt
    }

    fn order(&self) -> (i32, u64, u64) {
        (self.submission.priority, self.submission.arrived_ns, self.submission.id)
    }
}

impl Naive {
    fn go(&mut self, leaves: &[Leave]) {
        let mut instants: Vec<u64> = leaves.iter().map(|leave| leave.at_ns).collect();
        instants.extend(self.sequences.iter().map(|one| one.submission.arrived_ns));
        instants.sort_unstable();
        instants.dedup();
        let mut instants = instants.into_iter().peekable();
        loop {
            let ends_ns = self.steps.first().map(|step| step.ends_ns);
            let Some(now_ns) = instants.peek().copied().into_iter().chain(ends_ns).min() else {
                return;
            };
            if instants.next_if_eq(&now_ns).is_some() {
                self.hear(now_ns, leaves);
            }
            while self.steps.first().is_some_and(|step| step.ends_ns == now_ns) {
                let step = self.steps.remove(0);
                self.end_step(&step, now_ns);
                self.fill(now_ns);
            }
            if self.steps.is_empty() {
                self.fill(now_ns);
            }
        }
    }

    fn hear(&mut self, now_ns: u64, leaves: &[Leave]) {
        for id in 0..self.sequences.len() {
            if self.sequences[id].submission.arrived_ns == now_ns {
                self.waiting.push(id);
            }
        }
        for leave in leaves.iter().filter(|leave| leave.at_ns == now_ns) {
            let id = leave.id as usize;
            if !self.sequences[id].over {
                self.end(id, now_ns, Finish::Abort);
            }
        }
    }

    fn fill(&mut self, now_ns: u64) {
        while self.steps.len() < self.limits.depth as usize {
            let items = self.plan(now_ns);
            if items.is_empty() {
                return;
            }
            let starts_ns = now_ns.max(self.entry_free_ns);
            self.entry_free_ns = starts_ns + self.step_ns;
            self.steps.push(Step { ends_ns: starts_ns + self.step_ns, items });
        }
    }

    fn plan(&mut self, now_ns: u64) -> Vec<Item> {
        let mut budget = self.limits.max_num_batched_tokens as usize;
        let mut items: Vec<Item> = Vec::new();
        let mut any_preempted = false;
        let mut place = 0;
        while place < self.running.len() && budget > 0 {
            let id = self.running[place];
            let computes = self.next_of(id).min(budget);
            if computes == 0 {
                place += 1;
                continue;
            }
            let has_blocks = loop {
                if self.allocate(id, computes) {
                    break true;
                }
                any_preempted = true;
                let victim = self.victim();
                if let Some(at) = items.iter().position(|item| item.id == victim) {
                    budget += self.withdraw(items.remove(at));
                }
                let at = self.running.iter().position(|other| *other == victim).unwrap();
                self.running.remove(at);
                if at < place {
                    place -= 1;
                }
                self.preempt(victim);
                if victim == id {
                    break false;
                }
            };
            if !has_blocks {
                break;
            }
            budget -= computes;
            items.push(self.put(id, computes, now_ns));
            place += 1;
        }
        while !any_preempted && budget > 0 && self.running.len() < self.limits.max_num_seqs as usize
        {
            let Some(id) = self.next_waiting() else { break };
            let Some(computes) = self.admit(id, budget) else { break };
            self.waiting.retain(|other| *other != id);
            self.running.push(id);
            budget -= computes;
            items.push(self.put(id, computes, now_ns));
        }
        items
    }

    /// Tokens that a running sequence has left to compute, within the threshold.
    fn next_of(&self, id: usize) -> usize {
        let one = &self.sequences[id];
        if one.awaited > 0 {
            let coming = one.answered() + one.awaited;
            let longest = one.tokens.len() + one.awaited;
            let is_certain_to_end = coming >= one.submission.limit as usize
                || longest >= self.limits.max_model_len as usize;
            if is_certain_to_end || !self.limits.plans_ahead {
                return 0;
            }
        }
        self.below_threshold(one.tokens.len() + one.awaited - one.computed)
    }

    fn below_threshold(&self, tokens: usize) -> usize {
        match self.limits.long_prefill_token_threshold as usize {
            0 => tokens,
            threshold => tokens.min(threshold),
        }
    }

    fn allocate(&mut self, id: usize, computes: usize) -> bool {
        let one = &self.sequences[id];
        let wanted = (one.computed + computes).div_ceil(self.limits.block_size as usize);
        let missing = wanted.saturating_sub(one.blocks.len());
        if missing > self.blocks.free.len() {
            return false;
        }
        for _ in 0..missing {
            let block = self.blocks.take();
            self.sequences[id].blocks.push(block);
        }
        let one = &self.sequences[id];
        self.name(id, (one.computed + computes).min(one.tokens.len()));
        true
    }

    /// Makes the blocks findable that the first tokens fill.
    fn name(&mut self, id: usize, tokens: usize) {
        let size = self.limits.block_size as usize;
        let one = &self.sequences[id];
        for number in 0..tokens / size {
            let block = one.blocks[number];
            if self.blocks.caches && self.blocks.all[block].begins.is_none() {
                self.blocks.all[block].begins = Some(one.tokens[..(number + 1) * size].to_vec());
                self.blocks.findable.push(block);
            }
        }
    }

    fn victim(&self) -> usize {
        match self.limits.policy {
            Policy::FirstCome => *self.running.last().unwrap(),
            Policy::Priority => {
                let mut worst = self.running[0];
                for id in &self.running {
                    let rank = |id: usize| {
                        let (priority, arrived_ns, _) = self.sequences[id].order();
                        (priority, arrived_ns)
                    };
                    if rank(*id) >= rank(worst) {
                        worst = *id;
                    }
                }
                worst
            }
        }
    }

    /// Undoes a part of the step that is being planned: nothing of it is
    /// written.
    fn withdraw(&mut self, item: Item) -> usize {
        let size = self.limits.block_size as usize;
        let one = &mut self.sequences[item.id];
        one.awaited -= usize::from(item.draws);
        one.computed_tokens -= item.computes as u64;
        for block in one.blocks[item.before / size..].iter().copied() {
            self.blocks.all[block].begins = None;
            self.blocks.findable.retain(|other| *other != block);
        }
        item.computes
    }

    fn preempt(&mut self, id: usize) {
        let one = &mut self.sequences[id];
        one.computed = 0;
        one.life += 1;
        one.stale = std::mem::take(&mut one.awaited);
        let blocks = std::mem::take(&mut one.blocks);
        self.blocks.release(blocks);
        self.waiting.insert(0, id);
    }

    fn next_waiting(&self) -> Option<usize> {
        let id = match self.limits.policy {
            Policy::FirstCome => self.waiting.first().copied(),
            Policy::Priority => {
                self.waiting.iter().copied().min_by_key(|id| self.sequences[*id].order())
            }
        };
        id.filter(|id| self.sequences[*id].stale == 0)
    }

    fn admit(&mut self, id: usize, budget: usize) -> Option<usize> {
        let size = self.limits.block_size as usize;
        let one = &self.sequences[id];
        let mut found = Vec::new();
        while self.blocks.caches && (found.len() + 1) * size < one.tokens.len() {
            let Some(block) = self.blocks.find(&one.tokens[..(found.len() + 1) * size]) else {
                break;
            };
            found.push(block);
        }
        let computed = found.len() * size;
        let computes = self.below_threshold(one.tokens.len() - computed);
        if !self.limits.enable_chunked_prefill && computes > budget {
            return None;
        }
        let computes = computes.min(budget);
        let unused = found.iter().filter(|block| self.blocks.all[**block].users == 0).count();
        let kept_free =
            if self.running.is_empty() { 0 } else { self.limits.watermark_blocks as usize };
        let has_room = |tokens: usize| {
            let new = tokens.div_ceil(size) - found.len();
            new + unused + kept_free <= self.blocks.free.len()
        };
        if self.limits.reserve_full_isl && !has_room(one.tokens.len())
            || !has_room(computed + computes)
        {
            return None;
        }
        found.iter().for_each(|block| self.blocks.share(*block));
        let one = &mut self.sequences[id];
        if one.life == 0 {
            one.cached = computed as u32;
        }
        one.blocks = found;
        one.computed = computed;
        assert!(self.allocate(id, computes), "room was counted");
        Some(computes)
    }

    fn put(&mut self, id: usize, computes: usize, now_ns: u64) -> Item {
        let one = &mut self.sequences[id];
        one.scheduled_ns.get_or_insert(now_ns);
        let before = one.computed;
        one.computed += computes;
        one.computed_tokens += computes as u64;
        let draws = one.computed == one.tokens.len() + one.awaited;
        one.awaited += usize::from(draws);
        Item { id, life: one.life, before, computes, draws }
    }

    fn end_step(&mut self, step: &Step, now_ns: u64) {
        for item in step.items.iter().filter(|item| item.draws) {
            let one = &mut self.sequences[item.id];
            if one.over {
                continue;
            }
            let is_current = one.life == item.life;
            if is_current {
                one.awaited -= 1;
            } else {
                one.stale -= 1;
            }
            one.tokens.push((one.submission.answer, one.answered() as u32));
            one.first_token_ns.get_or_insert(now_ns);
            let (answered, length) = (one.answered() as u32, one.tokens.len());
            let limit = one.submission.limit;
            let stops = one.submission.natural == Some(answered);
            if is_current && self.limits.plans_ahead {
                self.name(item.id, length - 1);
            }
            if stops {
                self.end(item.id, now_ns, Finish::Stop);
            } else if answered == limit || length == self.limits.max_model_len as usize {
                self.end(item.id, now_ns, Finish::Length);
            }
        }
    }

    fn end(&mut self, id: usize, now_ns: u64, finish: Finish) {
        self.running.retain(|other| *other != id);
        self.waiting.retain(|other| *other != id);
        let one = &mut self.sequences[id];
        one.over = true;
        self.blocks.release(std::mem::take(&mut one.blocks));
        self.ended.push(Ended {
            id: one.submission.id,
            arrived_ns: one.submission.arrived_ns,
            scheduled_ns: one.scheduled_ns.unwrap_or(now_ns),
            first_token_ns: one.first_token_ns.unwrap_or(now_ns),
            ended_ns: now_ns,
            prompt_tokens: one.prompt as u32,
            cached_tokens: one.cached,
            output_tokens: one.answered() as u32,
            limit: one.submission.limit,
            preemptions: one.life,
            computed_tokens: one.computed_tokens,
            finish,
        });
    }
}
