//! Replicas behind a router, and what lies between them and a client.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::choice::{Choice, MOST_CHOICES, NUMBERS};
use crate::content::{Chain, Content, mix};
use crate::replica::{Gauges, Listener, Replica, StepReport, Totals, nanoseconds};
use crate::scheduler::{Begun, Ended, Finish, Sink, Submission};
use crate::settings::{Router, Settings, SettingsError};

/// A request as a server gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The caller's number for it, below 2⁵⁶; no two requests under way have the
    /// same.
    pub id: u64,
    /// Its prompt.
    pub prompt: Content,
    /// The source of its first answer's tokens.
    pub answer: u64,
    /// The answers that it asks for (`n`), from 1 to [`MOST_CHOICES`]. As in
    /// vLLM's V1 engine each of them is a sequence of its own with the same
    /// prompt, and the request ends with the last of them.
    pub choices: u8,
    /// The most tokens of each answer, at least 1.
    pub limit: u32,
    /// Where the model would end by itself.
    pub natural: Option<u32>,
    /// Smaller comes first, under a policy of priorities.
    pub priority: i32,
    /// The adapter that it asks for.
    pub adapter: Option<u64>,
    /// What it belongs to.
    pub session: u64,
    /// Tokens at its prompt's beginning that need no work, whatever the prefix
    /// cache has: for a run that was measured, and whose server said so.
    pub computed: u32,
}

/// Who hears of a cluster's tokens, ends and steps. Instants of tokens and ends
/// are those at which they leave the server.
pub trait Audience {
    /// The first token of an answer is there at `replica`; [`Self::tokens`]
    /// follows. Where prompts are computed elsewhere than answers are written,
    /// both replicas tell it: the first one once for all answers to a prompt.
    fn begun(&mut self, _replica: usize, _choice: Choice, _begun: &Begun) {}
    /// Tokens of an answer leave.
    fn tokens(&mut self, choice: Choice, at_ns: u64, tokens: u32);
    /// An answer ends, and the request with the last of its answers. `ended` has
    /// the engine's own instants, and the request's number.
    fn ended(&mut self, replica: usize, choice: Choice, ended: &Ended, at_ns: u64);
    /// A step has ended.
    fn step(&mut self, _replica: usize, _report: &StepReport) {}
}

/// A request that no engine of this kind takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model's context has {context} tokens; the prompt has {prompt} and the answer may have {limit}"
)]
pub struct TooLong {
    /// Tokens of the context.
    pub context: u32,
    /// Tokens of the prompt.
    pub prompt: u32,
    /// The most tokens of the answer.
    pub limit: u32,
}

/// A request on its way to a replica.
#[derive(Debug, PartialEq, Eq)]
struct OnTheWay {
    at_ns: u64,
    order: u64,
    arrived_ns: u64,
    stage: Stage,
    ask: Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// To whoever computes prompts.
    Prompt,
    /// To whoever writes answers, with keys and values.
    Answer,
}

impl Ord for OnTheWay {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl PartialOrd for OnTheWay {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Replicas that serve together.
#[derive(Debug)]
pub struct Cluster {
    replicas: Vec<Replica>,
    /// How many of them, the first ones, compute prompts only.
    prefillers: usize,
    router: Routes,
    on_the_way: BinaryHeap<Reverse<OnTheWay>>,
    order: u64,
    /// When the front end has taken in all that came.
    frontend_free_ns: u64,
    /// The last instant at which something happened.
    now_ns: u64,
    delays: Delays,
    /// Requests whose prompt is computed elsewhere than their answer.
    split: HashMap<u64, Split>,
    /// Requests with several answers that are being written.
    several: HashMap<u64, Several>,
    /// Replicas that got a request at this instant.
    touched: Vec<usize>,
    context: u32,
}

/// What lies between client and scheduler.
#[derive(Clone, Copy, Debug)]
struct Delays {
    frontend_s: f64,
    frontend_per_token_s: f64,
    output_ns: u64,
    transfer_s: f64,
    transfer_per_token_s: f64,
}

#[derive(Debug)]
struct Split {
    ask: Ask,
    arrived_ns: u64,
    /// What the engine that computed its prompt said.
    prefill: Option<Ended>,
}

/// A request whose answers are written together.
#[derive(Clone, Copy, Debug)]
struct Several {
    replica: usize,
    choices: u8,
    /// Answers that have not ended.
    left: u8,
}

impl Cluster {
    /// The replicas of these settings, idle.
    ///
    /// # Errors
    /// What cannot be together, with the arithmetic.
    pub fn new(settings: &Settings, seed: u64) -> Result<Self, SettingsError> {
        let limits = settings.limits(seed)?;
        let cost = settings.cost();
        let prefillers = settings.prefill_replicas as usize;
        let count = prefillers + settings.replicas as usize;
        Ok(Self {
            replicas: (0..count)
                .map(|number| {
                    Replica::new(limits, cost)
                        .with_slowdowns(settings.slowdowns(number))
                        .ready_at(nanoseconds(settings.cold_start_s))
                })
                .collect(),
            prefillers,
            router: Routes::new(settings.router, limits.block_size, count),
            on_the_way: BinaryHeap::new(),
            order: 0,
            frontend_free_ns: 0,
            now_ns: 0,
            delays: Delays {
                frontend_s: settings.frontend_overhead_us * 1e-6,
                frontend_per_token_s: settings.frontend_token_us * 1e-6,
                output_ns: nanoseconds(settings.output_overhead_us * 1e-6),
                transfer_s: settings.kv_transfer_latency_ms * 1e-3,
                transfer_per_token_s: settings.kv_bytes_per_token()
                    / (settings.kv_transfer_gb_s * 1e9),
            },
            split: HashMap::new(),
            several: HashMap::new(),
            touched: Vec::new(),
            context: limits.max_model_len,
        })
    }

    /// The replicas, those that compute prompts only first.
    pub fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// What all replicas have done together.
    pub fn totals(&self) -> Totals {
        self.replicas.iter().fold(Totals::default(), |sum, replica| sum.and(replica.totals()))
    }

    /// What all replicas are like together; the usage is that of the fullest.
    pub fn gauges(&self) -> Gauges {
        let all = self.replicas.iter().map(Replica::gauges);
        let none = Gauges { running: 0, waiting: 0, deferred: 0, kv_usage: 0.0 };
        all.fold(none, |sum, one| Gauges {
            running: sum.running + one.running,
            waiting: sum.waiting + one.waiting,
            deferred: sum.deferred + one.deferred,
            kv_usage: sum.kv_usage.max(one.kv_usage),
        })
    }

    /// Whether a request of these lengths is taken.
    ///
    /// # Errors
    /// The lengths, where they are more than the context.
    pub fn accepts(&self, prompt: u32, limit: u32) -> Result<(), TooLong> {
        let fits = prompt.checked_add(limit).is_some_and(|sum| sum <= self.context);
        if fits { Ok(()) } else { Err(TooLong { context: self.context, prompt, limit }) }
    }

    /// Takes a request that [`Self::accepts`] and that reached the server at
    /// `at_ns`, which is not before an instant advanced to. Gives the instant at
    /// which it reaches a scheduler.
    pub fn submit(&mut self, at_ns: u64, ask: Ask) -> u64 {
        debug_assert!(ask.id < NUMBERS && (1..=MOST_CHOICES).contains(&ask.choices));
        let frontend_ns = self.frontend_ns(ask.prompt.len());
        if self.prefillers > 0 && ask.limit > 1 {
            let split = Split { ask: ask.clone(), arrived_ns: at_ns, prefill: None };
            self.split.insert(ask.id, split);
        }
        // One thread takes requests in, one after the other, so that of requests
        // that come together the first is under way before the last is read.
        self.frontend_free_ns = self.frontend_free_ns.max(at_ns).saturating_add(frontend_ns);
        self.send(self.frontend_free_ns, at_ns, Stage::Prompt, ask);
        self.frontend_free_ns
    }

    /// What the front end takes to take in a prompt of so many tokens,
    /// nanoseconds.
    pub fn frontend_ns(&self, prompt_tokens: u32) -> u64 {
        let tokens = f64::from(prompt_tokens);
        nanoseconds(self.delays.frontend_s + tokens * self.delays.frontend_per_token_s)
    }

    /// The last instant at which something happened.
    pub const fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// From the end of a step to its tokens' way out, nanoseconds.
    pub fn output_ns(&self) -> u64 {
        self.delays.output_ns
    }

    fn send(&mut self, at_ns: u64, arrived_ns: u64, stage: Stage, ask: Ask) {
        let order = self.order;
        self.order += 1;
        self.on_the_way.push(Reverse(OnTheWay { at_ns, order, arrived_ns, stage, ask }));
    }

    /// When something happens next; none while all is idle.
    pub fn next_ns(&self) -> Option<u64> {
        let way = self.on_the_way.peek().map(|Reverse(next)| next.at_ns);
        let steps = self.replicas.iter().filter_map(Replica::next_ns);
        way.into_iter().chain(steps).min()
    }

    /// Lets everything happen that happens until `until_ns`, itself included.
    pub fn advance(&mut self, until_ns: u64, audience: &mut impl Audience) {
        while let Some(now_ns) = self.next_ns().filter(|next| *next <= until_ns) {
            self.happen(now_ns, audience);
        }
    }

    /// One instant: what arrives then is seen by steps that begin then.
    fn happen(&mut self, now_ns: u64, audience: &mut impl Audience) {
        self.now_ns = now_ns;
        while self.on_the_way.peek().is_some_and(|Reverse(next)| next.at_ns <= now_ns) {
            if let Some(Reverse(next)) = self.on_the_way.pop() {
                self.arrive(next);
            }
        }
        for number in 0..self.replicas.len() {
            if self.replicas[number].next_ns() != Some(now_ns) {
                continue;
            }
            let is_prefiller = number < self.prefillers;
            let mut passed_on = Vec::new();
            let mut ear = Ear {
                audience,
                replica: number,
                output_ns: self.delays.output_ns,
                router: &mut self.router,
                split: &mut self.split,
                several: &mut self.several,
                is_prefiller,
                passed_on: &mut passed_on,
            };
            self.replicas[number].end_step(&mut ear);
            for (ask, arrived_ns) in passed_on {
                let tokens = f64::from(ask.prompt.len());
                let transfer = self.delays.transfer_s + tokens * self.delays.transfer_per_token_s;
                self.send(now_ns + nanoseconds(transfer), arrived_ns, Stage::Answer, ask);
            }
        }
        for number in std::mem::take(&mut self.touched) {
            self.replicas[number].kick(now_ns);
        }
    }

    fn arrive(&mut self, next: OnTheWay) {
        let OnTheWay { arrived_ns, stage, ask, .. } = next;
        let all = self.replicas.len();
        let (from, until) = match stage {
            Stage::Prompt if self.prefillers > 0 && ask.limit > 1 => (0, self.prefillers),
            _ => (self.prefillers, all),
        };
        let number = self.router.choose(&ask, from, until);
        let splits = stage == Stage::Prompt && until == self.prefillers;
        let transferred = if stage == Stage::Answer { ask.prompt.len() } else { ask.computed };
        // One sequence computes a prompt for all answers to it.
        let choices = if splits { 1 } else { ask.choices };
        if choices > 1 {
            let several = Several { replica: number, choices, left: choices };
            self.several.insert(ask.id, several);
        }
        for index in 0..choices {
            self.replicas[number].submit(Submission {
                id: Choice { request: ask.id, index }.sequence(),
                prompt: ask.prompt.before_choice(index),
                answer: if index == 0 { ask.answer } else { mix(ask.answer, u64::from(index)) },
                // A prompt's engine draws one token, as proof that it is done.
                limit: if splits { 1 } else { ask.limit },
                natural: ask.natural.filter(|_| !splits),
                priority: ask.priority,
                adapter: ask.adapter,
                arrived_ns,
                transferred,
            });
        }
        self.touched.push(number);
    }

    /// Forgets a request whose client left at `now_ns`. Gives the number of its
    /// answers that were not over.
    pub fn abort(&mut self, id: u64, now_ns: u64, audience: &mut impl Audience) -> u32 {
        let split = self.split.remove(&id);
        if let Some(Reverse(next)) = self.on_the_way.iter().find(|next| next.0.ask.id == id) {
            let choices = next.ask.choices;
            self.on_the_way.retain(|Reverse(next)| next.ask.id != id);
            return choices.into();
        }
        let several = self.several.get(&id).copied();
        let choices = several.map_or(1, |several| several.choices);
        let (from, until) = match several {
            Some(several) => (several.replica, several.replica + 1),
            None => (0, self.replicas.len()),
        };
        let mut passed_on = Vec::new();
        let mut ended = 0;
        for number in from..until {
            let mut ear = Ear {
                audience,
                replica: number,
                output_ns: 0,
                router: &mut self.router,
                split: &mut self.split,
                several: &mut self.several,
                is_prefiller: false,
                passed_on: &mut passed_on,
            };
            for index in 0..choices {
                let sequence = Choice { request: id, index }.sequence();
                ended += u32::from(self.replicas[number].abort(sequence, now_ns, &mut ear));
            }
        }
        // With its prompt go all the answers to it.
        let unwritten = split.filter(|_| several.is_none() && ended > 0);
        unwritten.map_or(ended, |split| split.ask.choices.into())
    }

    /// Empties the prefix caches; false where one replica holds blocks.
    pub fn reset_prefix_cache(&mut self) -> bool {
        // All of them or none.
        let free = self.replicas.iter().all(Replica::holds_nothing);
        free && self.replicas.iter_mut().all(Replica::reset_prefix_cache)
    }
}

/// Hears one replica for the audience.
struct Ear<'a, A> {
    audience: &'a mut A,
    replica: usize,
    output_ns: u64,
    router: &'a mut Routes,
    split: &'a mut HashMap<u64, Split>,
    several: &'a mut HashMap<u64, Several>,
    is_prefiller: bool,
    passed_on: &'a mut Vec<(Ask, u64)>,
}

impl<A> Ear<'_, A> {
    /// Counts the end of one answer; true where the request has no other left.
    fn ends_request(&mut self, request: u64) -> bool {
        if let Some(several) = self.several.get_mut(&request) {
            several.left -= 1;
            if several.left > 0 {
                return false;
            }
            self.several.remove(&request);
        }
        self.router.outstanding[self.replica] -= 1;
        true
    }
}

impl<A: Audience> Sink for Ear<'_, A> {
    fn begun(&mut self, begun: &Begun, _at_ns: u64) {
        let choice = Choice::of_sequence(begun.id);
        let begun = Begun { id: choice.request, ..*begun };
        self.audience.begun(self.replica, choice, &begun);
    }

    fn tokens(&mut self, id: u64, at_ns: u64, tokens: u32) {
        if !self.is_prefiller {
            let choice = Choice::of_sequence(id);
            self.audience.tokens(choice, at_ns + self.output_ns, tokens);
        }
    }

    fn ended(&mut self, ended: &Ended) {
        let choice = Choice::of_sequence(ended.id);
        let is_over = self.ends_request(choice.request);
        if self.is_prefiller && ended.finish != Finish::Abort {
            if let Some(split) = self.split.get_mut(&choice.request) {
                split.prefill = Some(*ended);
                self.passed_on.push((split.ask.clone(), split.arrived_ns));
            }
            return;
        }
        let prefill = self.split.get(&choice.request).and_then(|split| split.prefill);
        if is_over {
            self.split.remove(&choice.request);
        }
        let mut whole = Ended { id: choice.request, ..*ended };
        if let Some(prefill) = prefill {
            whole.scheduled_ns = prefill.scheduled_ns;
            whole.cached_tokens = prefill.cached_tokens;
            // The prompt was computed once for all answers.
            if choice.index == 0 {
                whole.preemptions += prefill.preemptions;
                whole.computed_tokens += prefill.computed_tokens;
            }
        }
        self.audience.ended(self.replica, choice, &whole, ended.ended_ns + self.output_ns);
    }
}

impl<A: Audience> Listener for Ear<'_, A> {
    fn step(&mut self, report: &StepReport) {
        self.audience.step(self.replica, report);
    }
}

/// Beginnings of prompts that a router remembers in one half of its memory.
const MOST_REMEMBERED: usize = 1 << 16;

/// Blocks of a prompt's beginning that it looks at.
const MOST_BLOCKS: u32 = 64;

/// Requests more than the least that a replica may have and still be chosen for
/// what it has cached.
const MOST_MORE: usize = 16;

/// Which replica gets what.
#[derive(Debug)]
struct Routes {
    by: Router,
    block_size: u32,
    /// Requests at each replica.
    outstanding: Vec<usize>,
    /// Whose turn it is among those that compute prompts, and among the others.
    turns: [usize; 2],
    /// Where prompts that begin so went last, in two halves: the older one is
    /// forgotten when the newer is full.
    newer: HashMap<u64, u32>,
    older: HashMap<u64, u32>,
}

impl Routes {
    fn new(by: Router, block_size: u32, replicas: usize) -> Self {
        Self {
            by,
            block_size,
            outstanding: vec![0; replicas],
            turns: [0, 0],
            newer: HashMap::new(),
            older: HashMap::new(),
        }
    }

    /// One of the replicas from `from` to before `until`.
    fn choose(&mut self, ask: &Ask, from: usize, until: usize) -> usize {
        let chosen = match self.by {
            _ if until - from == 1 => from,
            Router::RoundRobin => {
                let turn = &mut self.turns[usize::from(from > 0)];
                *turn += 1;
                from + (*turn - 1) % (until - from)
            }
            Router::LeastLoaded => self.least(from, until),
            Router::SessionSticky => from + (ask.session % (until - from) as u64) as usize,
            Router::PrefixAware => self.by_prefix(ask, from, until),
        };
        self.outstanding[chosen] += 1;
        chosen
    }

    fn least(&self, from: usize, until: usize) -> usize {
        (from..until).min_by_key(|number| self.outstanding[*number]).unwrap_or(from)
    }

    fn by_prefix(&mut self, ask: &Ask, from: usize, until: usize) -> usize {
        let mut chain = Chain::new(self.block_size).under(ask.adapter);
        let blocks = (ask.prompt.len() / self.block_size).min(MOST_BLOCKS);
        let hashes: Vec<u64> = (0..blocks).map(|_| chain.next(&ask.prompt, ask.answer)).collect();
        let seen = |hash: &u64| self.newer.get(hash).or_else(|| self.older.get(hash)).copied();
        let last = hashes.iter().map_while(seen).last().map(|number| number as usize);
        let least = self.least(from, until);
        let near = last.filter(|number| {
            (from..until).contains(number)
                && self.outstanding[*number] <= self.outstanding[least] + MOST_MORE
        });
        let chosen = near.unwrap_or(least);
        if self.newer.len() + hashes.len() > MOST_REMEMBERED {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.extend(hashes.into_iter().map(|hash| (hash, chosen as u32)));
        chosen
    }
}
