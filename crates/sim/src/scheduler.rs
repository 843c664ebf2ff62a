//! The step scheduler: which sequences run in a step, and how many of their
//! tokens.
//!
//! It follows vLLM 0.27's V1 scheduler: there is no prefill phase and no decode
//! phase; each sequence has tokens and computed tokens, and a step lets the
//! second catch up with the first within the limits. Sequences that run come
//! first, then those that wait, first come first served or by priority. When
//! blocks run out, the last to come (or the least important) is preempted: it
//! loses its blocks, waits at the head and computes its tokens again. What steps
//! under way bring it is its own all the same.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use workload::stream::Stream;

use crate::adapter::Adapters;
use crate::block::{BlockId, Pool};
use crate::content::{BlockHash, Chain, Content};

/// Which sequence comes first, and which one goes when blocks run out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served; the last to be admitted goes.
    #[default]
    FirstCome,
    /// The smallest priority first, among equals the earliest; the largest goes.
    Priority,
}

/// Drafted tokens that are proven with each token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speculation {
    /// Tokens drafted for each step of a sequence.
    pub drafted: u32,
    /// Probability that a drafted token is taken when those before it were.
    pub acceptance: f64,
}

/// What bounds a step. Names are those of vLLM's flags.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Sequences that run at a time.
    pub max_num_seqs: u32,
    /// Tokens computed in one step.
    pub max_num_batched_tokens: u32,
    /// Prompt and answer of one sequence.
    pub max_model_len: u32,
    /// Tokens in a block.
    pub block_size: u32,
    /// Blocks that sequences may use.
    pub blocks: u32,
    /// Whether blocks are found again.
    pub enable_prefix_caching: bool,
    /// Whether a prompt may be computed in several steps.
    pub enable_chunked_prefill: bool,
    /// The most tokens of one sequence in one step; 0 for no such limit.
    pub long_prefill_token_threshold: u32,
    /// Who comes first.
    pub policy: Policy,
    /// Blocks that an admission leaves free while others run.
    pub watermark_blocks: u32,
    /// Whether a whole prompt must fit before its first part is computed.
    pub reserve_full_isl: bool,
    /// Steps that may be under way at a time.
    pub depth: u32,
    /// Whether a sequence is planned again before its tokens of a step under way
    /// are there.
    pub plans_ahead: bool,
    /// Adapters whose sequences can be in one step; 0 lets all in, at no cost.
    pub max_loras: u32,
    /// Drafted tokens, if any.
    pub speculation: Option<Speculation>,
    /// The most tokens that layers with a window look at, where there are any.
    pub window: Option<u32>,
    /// Of what is drawn: how many drafted tokens are taken.
    pub seed: u64,
}

/// A request as the engine takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The caller's number for it.
    pub id: u64,
    /// What it brings.
    pub prompt: Content,
    /// The source of its answer's tokens.
    pub answer: u64,
    /// The most tokens of its answer.
    pub limit: u32,
    /// Where the model would end by itself.
    pub natural: Option<u32>,
    /// Smaller comes first, under [`Policy::Priority`].
    pub priority: i32,
    /// The adapter that it asks for.
    pub adapter: Option<u64>,
    /// When it came.
    pub arrived_ns: u64,
    /// Tokens at its beginning that another engine has computed and whose keys
    /// and values are here: they need blocks and no work.
    pub transferred: u32,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model ended it.
    Stop,
    /// It reached its limit, or the model's context.
    Length,
    /// Its client left.
    Abort,
}

impl Finish {
    /// All reasons.
    pub const ALL: &[Self] = &[Self::Stop, Self::Length, Self::Abort];

    /// The name in APIs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
        }
    }
}

/// What became of a request, as the engine knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The caller's number for it.
    pub id: u64,
    /// When it came.
    pub arrived_ns: u64,
    /// When it was first put into a step.
    pub scheduled_ns: u64,
    /// When its first token was there.
    pub first_token_ns: u64,
    /// When its last token was there.
    pub ended_ns: u64,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens of its prompt that were found when it was first admitted.
    pub cached_tokens: u32,
    /// Tokens of its answer.
    pub output_tokens: u32,
    /// The most tokens that its answer could have had.
    pub limit: u32,
    /// How often it lost its blocks.
    pub preemptions: u32,
    /// Tokens that were computed for it, drafted ones and repeated ones too.
    pub computed_tokens: u64,
    /// Why it ended.
    pub finish: Finish,
}

/// What is known of a request when its first token is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The caller's number for it.
    pub id: u64,
    /// When it was first put into a step.
    pub scheduled_ns: u64,
    /// Tokens of its prompt.
    pub prompt_tokens: u32,
    /// Tokens of its prompt that were found when it was first admitted.
    pub cached_tokens: u32,
    /// Tokens of its prompt that another engine had computed.
    pub transferred: u32,
}

/// What one step computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Sequences in it.
    pub sequences: u32,
    /// Tokens computed.
    pub tokens: u32,
    /// Tokens of prompts among them.
    pub prefill_tokens: u32,
    /// Tokens whose successor is drawn, drafted ones too.
    pub sampled: u32,
    /// Adapters that are loaded before it.
    pub adapter_loads: u32,
    /// Pairs of a computed token and one that it looks at, itself too, of
    /// sequences in their prompts.
    pub prefill_pairs: u64,
    /// The same of sequences in their answers.
    pub decode_pairs: u64,
    /// Tokens whose keys and values are read or written.
    pub context: u64,
    /// Pairs in layers with a window, where the model has any.
    pub window_pairs: u64,
    /// Tokens that those layers read or write.
    pub window_context: u64,
}

impl Work {
    fn add(&mut self, before: u32, computes: u32, prefills: bool, window: Option<u32>) {
        let (before, computes) = (u64::from(before), u64::from(computes));
        self.context += before + computes;
        let pairs = computes * before + computes * (computes + 1) / 2;
        if prefills {
            self.prefill_pairs += pairs;
        } else {
            self.decode_pairs += pairs;
        }
        if let Some(window) = window.map(u64::from) {
            // Until the window is full a token looks at all before it.
            let growing = window.saturating_sub(before).min(computes);
            let seen = before.min(window);
            self.window_pairs +=
                growing * seen + growing * (growing + 1) / 2 + (computes - growing) * window;
            self.window_context += (before + computes).min(window + computes);
        }
    }
}

/// One sequence's part of a step.
#[derive(Clone, Copy, Debug)]
struct Item {
    slot: u32,
    /// Of the sequence, and how often it had lost its blocks: what a step brings
    /// is not taken for somebody else's.
    number: u64,
    life: u32,
    /// Tokens that it had computed before.
    before: u32,
    /// Tokens that the step computes for it.
    computes: u32,
    /// Drafted ones among them.
    drafted: u32,
    /// Tokens that it adds to the answer.
    produces: u32,
}

/// What a sequence can have of a step: tokens that exist, and drafted ones.
#[derive(Clone, Copy, Debug)]
struct Part {
    new: u32,
    drafted: u32,
}

impl Part {
    const fn tokens(self) -> u32 {
        self.new + self.drafted
    }
}

/// A step under way.
#[derive(Debug, Default)]
pub(crate) struct Step {
    items: Vec<Item>,
    pub(crate) work: Work,
    pub(crate) preempted: u32,
}

#[derive(Debug)]
struct Sequence {
    /// Counts those that came before it.
    number: u64,
    submission: Submission,
    prompt_tokens: u32,
    /// Tokens that exist: the prompt and the answer so far.
    tokens: u32,
    computed: u32,
    /// Tokens that steps under way will add.
    awaited: u32,
    /// The same of steps from before it lost its blocks.
    stale: u32,
    /// Whether it has drawn a token since it was admitted, from which more are
    /// drafted.
    has_drawn: bool,
    blocks: Vec<BlockId>,
    hashes: Vec<BlockHash>,
    chain: Chain,
    /// Blocks that can be found by others.
    named: u32,
    scheduled_ns: Option<u64>,
    first_token_ns: Option<u64>,
    cached_tokens: u32,
    preemptions: u32,
    computed_tokens: u64,
    ended: bool,
}

impl Sequence {
    fn generated(&self) -> u32 {
        self.tokens - self.prompt_tokens
    }

    fn begun(&self, now_ns: u64) -> Begun {
        Begun {
            id: self.submission.id,
            scheduled_ns: self.scheduled_ns.unwrap_or(now_ns),
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            transferred: self.submission.transferred,
        }
    }

    /// The hash of block `number`, whose tokens exist.
    fn hash(&mut self, number: u32) -> BlockHash {
        while self.chain.given() <= number {
            let hash = self.chain.next(&self.submission.prompt, self.submission.answer);
            self.hashes.push(hash);
        }
        self.hashes[number as usize]
    }
}

/// Those that wait, in the order of the policy.
#[derive(Debug)]
enum Waiting {
    FirstCome(VecDeque<u32>),
    /// Priority, arrival, order of coming, slot.
    Priority(BinaryHeap<Reverse<(i32, u64, u64, u32)>>),
}

impl Waiting {
    fn len(&self) -> usize {
        match self {
            Self::FirstCome(queue) => queue.len(),
            Self::Priority(heap) => heap.len(),
        }
    }

    fn first(&self) -> Option<u32> {
        match self {
            Self::FirstCome(queue) => queue.front().copied(),
            Self::Priority(heap) => heap.peek().map(|Reverse((_, _, _, slot))| *slot),
        }
    }

    fn take(&mut self) {
        match self {
            Self::FirstCome(queue) => drop(queue.pop_front()),
            Self::Priority(heap) => drop(heap.pop()),
        }
    }

    fn remove(&mut self, slot: u32) {
        match self {
            // Those who give up have mostly waited for longest: they are in front.
            Self::FirstCome(queue) => {
                if let Some(place) = queue.iter().position(|other| *other == slot) {
                    queue.remove(place);
                }
            }
            Self::Priority(heap) => heap.retain(|Reverse((_, _, _, other))| *other != slot),
        }
    }
}

/// What the scheduler tells as tokens come and requests end.
pub trait Sink {
    /// The first token of an answer is there, and is told next.
    fn begun(&mut self, _begun: &Begun, _at_ns: u64) {}
    /// Tokens of an answer are there.
    fn tokens(&mut self, id: u64, at_ns: u64, tokens: u32);
    /// A request is over; its last tokens were told.
    fn ended(&mut self, ended: &Ended);
}

/// Sequences, who runs and who waits.
#[derive(Debug)]
pub(crate) struct Scheduler {
    limits: Limits,
    pool: Pool,
    sequences: Vec<Sequence>,
    vacant: Vec<u32>,
    /// Where each request is that has not ended, by the caller's number.
    slots: HashMap<u64, u32>,
    running: Vec<u32>,
    waiting: Waiting,
    /// Those of them that were passed by when a step was planned last: there was
    /// no place for their adapters.
    deferred: usize,
    /// Sequences so far.
    numbers: u64,
    prefix: PrefixCounts,
    adapters: Adapters,
}

/// Prompt tokens looked up and found at admission; a look-up after a preemption
/// is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCounts {
    /// Looked up.
    pub queries: u64,
    /// Found.
    pub hits: u64,
}

impl Scheduler {
    pub(crate) fn new(limits: Limits) -> Self {
        let waiting = match limits.policy {
            Policy::FirstCome => Waiting::FirstCome(VecDeque::new()),
            Policy::Priority => Waiting::Priority(BinaryHeap::new()),
        };
        Self {
            pool: Pool::new(limits.blocks, limits.enable_prefix_caching),
            adapters: Adapters::new(limits.max_loras),
            limits,
            sequences: Vec::new(),
            vacant: Vec::new(),
            slots: HashMap::new(),
            running: Vec::new(),
            waiting,
            deferred: 0,
            numbers: 0,
            prefix: PrefixCounts::default(),
        }
    }

    pub(crate) const fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn deferred(&self) -> usize {
        self.deferred.min(self.waiting())
    }

    pub(crate) const fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(crate) const fn prefix(&self) -> PrefixCounts {
        self.prefix
    }

    pub(crate) fn reset_prefix_cache(&mut self) -> bool {
        self.pool.reset()
    }

    /// Takes a request. The caller has seen to it that prompt and limit fit the
    /// context.
    pub(crate) fn submit(&mut self, submission: Submission) {
        // A model is given one token at least, which begins every text.
        let prompt_tokens = submission.prompt.len().max(1);
        let id = submission.id;
        let number = self.numbers;
        let key = (submission.priority, submission.arrived_ns, number);
        self.numbers += 1;
        let sequence = Sequence {
            number,
            prompt_tokens,
            tokens: prompt_tokens,
            computed: 0,
            awaited: 0,
            stale: 0,
            has_drawn: false,
            blocks: Vec::new(),
            hashes: Vec::new(),
            chain: Chain::new(self.limits.block_size).under(submission.adapter),
            named: 0,
            scheduled_ns: None,
            first_token_ns: None,
            cached_tokens: 0,
            preemptions: 0,
            computed_tokens: 0,
            ended: false,
            submission,
        };
        let slot = match self.vacant.pop() {
            Some(slot) => {
                self.sequences[slot as usize] = sequence;
                slot
            }
            None => {
                self.sequences.push(sequence);
                self.sequences.len() as u32 - 1
            }
        };
        self.slots.insert(id, slot);
        match &mut self.waiting {
            Waiting::FirstCome(queue) => queue.push_back(slot),
            Waiting::Priority(heap) => heap.push(Reverse((key.0, key.1, key.2, slot))),
        }
    }

    /// Plans a step; one without sequences is none. `step` is filled anew.
    pub(crate) fn plan(&mut self, now_ns: u64, step: &mut Step) {
        step.items.clear();
        step.work = Work::default();
        step.preempted = 0;
        let mut budget = self.limits.max_num_batched_tokens;
        self.plan_running(now_ns, &mut budget, step);
        if step.preempted == 0 {
            self.plan_waiting(now_ns, &mut budget, step);
        }
        for item in &step.items {
            let prompt_tokens = self.sequences[item.slot as usize].prompt_tokens;
            let decodes = item.before >= prompt_tokens;
            let work = &mut step.work;
            work.sequences += 1;
            work.tokens += item.computes;
            work.prefill_tokens += item.computes.min(prompt_tokens.saturating_sub(item.before));
            if item.produces > 0 {
                work.sampled += 1 + item.drafted;
            }
            work.add(item.before, item.computes, !decodes, self.limits.window);
        }
    }

    fn plan_running(&mut self, now_ns: u64, budget: &mut u32, step: &mut Step) {
        let mut place = 0;
        while place < self.running.len() && *budget > 0 {
            let slot = self.running[place];
            let Some(part) = self.due(slot, *budget) else {
                place += 1;
                continue;
            };
            let mut has_blocks = self.grow(slot, part);
            while !has_blocks {
                let (victim, at) = self.victim();
                if at < place {
                    // It was planned already, which only a priority can undo.
                    place -= 1;
                    *budget += self.withdraw(victim, step);
                }
                self.preempt(victim, at);
                step.preempted += 1;
                if victim == slot {
                    break;
                }
                has_blocks = self.grow(slot, part);
            }
            if !has_blocks {
                break;
            }
            self.run(now_ns, slot, part, step);
            *budget -= part.tokens();
            place += 1;
        }
    }

    /// Takes a sequence out of a step that is being planned. Gives back its
    /// tokens.
    fn withdraw(&mut self, slot: u32, step: &mut Step) -> u32 {
        let Some(place) = step.items.iter().position(|item| item.slot == slot) else { return 0 };
        let Item { before, computes, produces, .. } = step.items.remove(place);
        let sequence = &mut self.sequences[slot as usize];
        sequence.awaited -= produces;
        sequence.computed_tokens -= u64::from(computes);
        // Blocks that it would have filled stay empty: nobody may find them.
        let first = before / self.limits.block_size;
        for number in first..sequence.named {
            self.pool.forget(sequence.blocks[number as usize]);
        }
        sequence.named = sequence.named.min(first);
        computes
    }

    /// What a running sequence can compute next; nothing where it waits for
    /// tokens of a step under way.
    fn due(&self, slot: u32, budget: u32) -> Option<Part> {
        let sequence = &self.sequences[slot as usize];
        let known = sequence.tokens + sequence.awaited;
        // What is awaited ends it for certain.
        let full = sequence.generated() + sequence.awaited >= sequence.submission.limit
            || known >= self.limits.max_model_len;
        if sequence.awaited > 0 && (full || !self.limits.plans_ahead) {
            return None;
        }
        let new = self.at_most(known - sequence.computed).min(budget);
        if new == 0 {
            return None;
        }
        let speculation = self.limits.speculation.filter(|_| sequence.has_drawn);
        let drafted = speculation.map_or(0, |speculation| {
            let place = self.limits.max_model_len.saturating_sub(known + 1);
            let wanted = new.saturating_add(speculation.drafted.min(place));
            self.at_most(wanted).min(budget) - new
        });
        Some(Part { new, drafted })
    }

    /// So many tokens, within what one sequence may have of a step.
    fn at_most(&self, tokens: u32) -> u32 {
        match self.limits.long_prefill_token_threshold {
            0 => tokens,
            threshold => tokens.min(threshold),
        }
    }

    /// Puts a sequence that has its blocks into the step.
    fn run(&mut self, now_ns: u64, slot: u32, part: Part, step: &mut Step) {
        let produces = self.produced(slot, part);
        let Part { new, drafted } = part;
        let sequence = &mut self.sequences[slot as usize];
        sequence.scheduled_ns.get_or_insert(now_ns);
        let before = sequence.computed;
        // Of drafted tokens those that are taken have been computed.
        sequence.computed += new + produces.saturating_sub(1);
        sequence.awaited += produces;
        sequence.has_drawn |= produces > 0;
        sequence.computed_tokens += u64::from(part.tokens());
        step.items.push(Item {
            slot,
            number: sequence.number,
            life: sequence.preemptions,
            before,
            computes: part.tokens(),
            drafted,
            produces,
        });
    }

    /// Tokens that a sequence adds to its answer when it computes this.
    fn produced(&self, slot: u32, part: Part) -> u32 {
        let sequence = &self.sequences[slot as usize];
        let known = sequence.tokens + sequence.awaited;
        if sequence.computed + part.new < known {
            return 0;
        }
        let speculation = self.limits.speculation.filter(|_| part.drafted > 0);
        let Some(Speculation { acceptance, .. }) = speculation else { return 1 };
        let generated = sequence.generated() + sequence.awaited;
        // Drawn by place in the answer, so that a preemption changes nothing.
        let number = sequence.submission.answer ^ (u64::from(generated) << 40);
        let mut stream = Stream::numbered(self.limits.seed, "accepted drafts", number);
        let taken = (0..part.drafted).take_while(|_| stream.chance(acceptance)).count() as u32;
        let left = sequence.submission.limit.saturating_sub(generated);
        (1 + taken).min(left.max(1))
    }

    /// Takes the blocks for this part of a sequence; false, and nothing is
    /// taken, where they are not free.
    fn grow(&mut self, slot: u32, part: Part) -> bool {
        let sequence = &self.sequences[slot as usize];
        let until = sequence.computed + part.tokens();
        let wanted = until.div_ceil(self.limits.block_size) as usize;
        let missing = wanted.saturating_sub(sequence.blocks.len()) as u32;
        if missing > self.pool.free() {
            return false;
        }
        self.take_blocks(slot, missing, part.new);
        true
    }

    /// Gives a sequence blocks, and makes those findable that are full once
    /// `new` more tokens are computed. They are so at once: what comes later in
    /// this step reads them after they are written.
    fn take_blocks(&mut self, slot: u32, missing: u32, new: u32) {
        let sequence = &mut self.sequences[slot as usize];
        for _ in 0..missing {
            sequence.blocks.push(self.pool.take());
        }
        let known = (sequence.computed + new).min(sequence.tokens);
        self.name_blocks(slot, known);
    }

    /// Makes the blocks findable that the first `tokens` of a sequence fill.
    fn name_blocks(&mut self, slot: u32, tokens: u32) {
        if !self.limits.enable_prefix_caching {
            return;
        }
        let sequence = &mut self.sequences[slot as usize];
        while sequence.named < tokens / self.limits.block_size {
            let number = sequence.named;
            let hash = sequence.hash(number);
            self.pool.name(sequence.blocks[number as usize], hash);
            sequence.named += 1;
        }
    }

    /// Who loses its blocks, and its place among those that run.
    fn victim(&self) -> (u32, usize) {
        let last = self.running.len() - 1;
        let at = match self.limits.policy {
            Policy::FirstCome => last,
            Policy::Priority => (0..=last)
                .max_by_key(|at| {
                    let submission = &self.sequences[self.running[*at] as usize].submission;
                    (submission.priority, submission.arrived_ns, *at)
                })
                .unwrap_or(last),
        };
        (self.running[at], at)
    }

    fn preempt(&mut self, slot: u32, at: usize) {
        self.running.remove(at);
        let sequence = &mut self.sequences[slot as usize];
        let blocks = std::mem::take(&mut sequence.blocks);
        self.pool.release(&blocks);
        self.adapters.leave(sequence.submission.adapter);
        sequence.named = 0;
        sequence.computed = 0;
        // Their tokens come, though what they were computed with is lost.
        sequence.stale = std::mem::take(&mut sequence.awaited);
        sequence.has_drawn = false;
        sequence.preemptions += 1;
        // What another engine computed is gone too.
        sequence.submission.transferred = 0;
        self.wait_again(slot);
    }

    fn plan_waiting(&mut self, now_ns: u64, budget: &mut u32, step: &mut Step) {
        let mut passed = Vec::new();
        while *budget > 0 && self.running.len() < self.limits.max_num_seqs as usize {
            let Some(slot) = self.waiting.first() else { break };
            let sequence = &self.sequences[slot as usize];
            // What it computes next begins after tokens that are still to come.
            if sequence.stale > 0 {
                break;
            }
            let adapter = sequence.submission.adapter;
            if !self.adapters.admits(adapter) {
                // Those behind it may pass: their adapters are there.
                self.waiting.take();
                passed.push(slot);
                continue;
            }
            let Some(new) = self.admit(slot, *budget) else { break };
            self.waiting.take();
            step.work.adapter_loads += u32::from(self.adapters.join(adapter));
            self.running.push(slot);
            self.run(now_ns, slot, Part { new, drafted: 0 }, step);
            *budget -= new;
        }
        self.deferred = passed.len();
        for slot in passed.into_iter().rev() {
            self.wait_again(slot);
        }
    }

    /// Puts a sequence back to the head of those that wait.
    fn wait_again(&mut self, slot: u32) {
        let sequence = &self.sequences[slot as usize];
        let key = (sequence.submission.priority, sequence.submission.arrived_ns, sequence.number);
        match &mut self.waiting {
            Waiting::FirstCome(queue) => queue.push_front(slot),
            Waiting::Priority(heap) => heap.push(Reverse((key.0, key.1, key.2, slot))),
        }
    }

    /// Gives a waiting sequence what it needs to compute its first tokens, and
    /// their number; none, and nothing is given, where it does not fit.
    fn admit(&mut self, slot: u32, budget: u32) -> Option<u32> {
        let block_size = self.limits.block_size;
        let hits = self.look_up(slot);
        let sequence = &self.sequences[slot as usize];
        let found = hits.len() as u32 * block_size;
        // What was transferred counts from the beginning, found or not.
        let computed = found.max(sequence.submission.transferred.min(sequence.tokens - 1));
        let new = self.at_most(sequence.tokens - computed);
        if !self.limits.enable_chunked_prefill && new > budget {
            return None;
        }
        let new = new.min(budget);
        let watermark = if self.running.is_empty() { 0 } else { self.limits.watermark_blocks };
        // A found block that nobody uses is taken from the free ones too.
        let revived = hits.iter().filter(|id| self.pool.is_free(**id)).count() as u32;
        let needs =
            |tokens: u32| tokens.div_ceil(block_size) - hits.len() as u32 + revived + watermark;
        let whole = self.limits.reserve_full_isl && needs(sequence.tokens) > self.pool.free();
        if whole || needs(computed + new) > self.pool.free() {
            return None;
        }
        hits.iter().for_each(|id| self.pool.share(*id));
        let sequence = &mut self.sequences[slot as usize];
        if self.limits.enable_prefix_caching && sequence.preemptions == 0 {
            sequence.cached_tokens = found;
            self.prefix.queries += u64::from(sequence.prompt_tokens);
            self.prefix.hits += u64::from(found);
        }
        sequence.named = hits.len() as u32;
        sequence.blocks = hits;
        sequence.computed = computed;
        let missing = (computed + new).div_ceil(block_size) - sequence.blocks.len() as u32;
        self.take_blocks(slot, missing, new);
        Some(new)
    }

    /// The blocks of the sequence's beginning that are there, up to the first
    /// that is not. The last token is computed in any case: its successor is
    /// drawn from it.
    fn look_up(&mut self, slot: u32) -> Vec<BlockId> {
        let mut hits = Vec::new();
        if !self.limits.enable_prefix_caching {
            return hits;
        }
        let sequence = &mut self.sequences[slot as usize];
        for number in 0..(sequence.tokens - 1) / self.limits.block_size {
            match self.pool.find(sequence.hash(number)) {
                Some(id) => hits.push(id),
                None => break,
            }
        }
        hits
    }

    /// Takes in what a step that has ended produced.
    pub(crate) fn finish(&mut self, step: &Step, now_ns: u64, sink: &mut impl Sink) {
        let mut any_ended = false;
        for item in step.items.iter().filter(|item| item.produces > 0) {
            let limits = &self.limits;
            let sequence = &mut self.sequences[item.slot as usize];
            if sequence.number != item.number || sequence.ended {
                continue;
            }
            let runs = sequence.preemptions == item.life;
            let due = if runs { &mut sequence.awaited } else { &mut sequence.stale };
            *due -= item.produces;
            let submission = &sequence.submission;
            let natural = submission.natural.filter(|natural| *natural <= submission.limit);
            let until = natural.unwrap_or(submission.limit);
            let before = sequence.tokens - sequence.prompt_tokens;
            let room = limits.max_model_len - sequence.tokens;
            let produced = item.produces.min(until - before).min(room);
            sequence.tokens += produced;
            if sequence.first_token_ns.is_none() {
                sequence.first_token_ns = Some(now_ns);
                sink.begun(&sequence.begun(now_ns), now_ns);
            }
            let submission = &sequence.submission;
            sink.tokens(submission.id, now_ns, produced);
            let (tokens, generated) = (sequence.tokens, before + produced);
            let ends = generated >= until || tokens >= limits.max_model_len;
            if runs && limits.plans_ahead {
                // Planned before its tokens were there, it could not name the
                // blocks that they fill.
                self.name_blocks(item.slot, tokens - 1);
            }
            if !ends {
                continue;
            }
            let stops = natural.is_some_and(|natural| generated >= natural);
            let finish = if stops { Finish::Stop } else { Finish::Length };
            if !runs {
                self.waiting.remove(item.slot);
                self.vacant.push(item.slot);
            }
            any_ended |= runs;
            self.end(item.slot, now_ns, finish, sink);
        }
        if any_ended {
            self.drop_ended();
        }
    }

    /// Ends a request whose client left; false where it is over already.
    pub(crate) fn abort(&mut self, id: u64, now_ns: u64, sink: &mut impl Sink) -> bool {
        let Some(&slot) = self.slots.get(&id) else { return false };
        self.waiting.remove(slot);
        self.end(slot, now_ns, Finish::Abort, sink);
        if self.running.contains(&slot) {
            self.drop_ended();
        } else {
            self.vacant.push(slot);
        }
        true
    }

    fn end(&mut self, slot: u32, now_ns: u64, finish: Finish, sink: &mut impl Sink) {
        let sequence = &mut self.sequences[slot as usize];
        sequence.ended = true;
        self.slots.remove(&sequence.submission.id);
        let blocks = std::mem::take(&mut sequence.blocks);
        self.pool.release(&blocks);
        sink.ended(&Ended {
            id: sequence.submission.id,
            arrived_ns: sequence.submission.arrived_ns,
            scheduled_ns: sequence.scheduled_ns.unwrap_or(now_ns),
            first_token_ns: sequence.first_token_ns.unwrap_or(now_ns),
            ended_ns: now_ns,
            prompt_tokens: sequence.prompt_tokens,
            cached_tokens: sequence.cached_tokens,
            output_tokens: sequence.generated(),
            limit: sequence.submission.limit,
            preemptions: sequence.preemptions,
            computed_tokens: sequence.computed_tokens,
            finish,
        });
    }

    /// Frees the places of what has ended among those that run.
    fn drop_ended(&mut self) {
        let (sequences, vacant) = (&self.sequences, &mut self.vacant);
        let adapters = &mut self.adapters;
        self.running.retain(|slot| {
            let sequence = &sequences[*slot as usize];
            if sequence.ended {
                vacant.push(*slot);
                adapters.leave(sequence.submission.adapter);
            }
            !sequence.ended
        });
    }
}

#[cfg(test)]
mod tests;
