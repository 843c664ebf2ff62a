//! One engine: a scheduler, and the steps under way on its accelerators.

use std::collections::VecDeque;

use crate::cost::{Cost, StepCost};
use crate::scheduler::{
    Begun, Ended, Limits, PrefixCounts, Scheduler, Sink, Step, Submission, Work,
};

/// A step that was planned and has not ended.
#[derive(Debug, Default)]
struct Flight {
    step: Step,
    starts_ns: u64,
    ends_ns: u64,
    cost: StepCost,
}

/// Sums over all steps that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Steps.
    pub steps: u64,
    /// Time with a step under way, nanoseconds.
    pub busy_ns: u64,
    /// Tokens computed, drafted and repeated ones too.
    pub computed_tokens: u64,
    /// Tokens of prompts among them.
    pub prefill_tokens: u64,
    /// Tokens of answers that were given out.
    pub output_tokens: u64,
    /// Times that a sequence lost its blocks.
    pub preemptions: u64,
    /// Floating point operations.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
    /// Time that each term alone would have taken, seconds.
    pub compute_s: f64,
    /// The memory traffic.
    pub memory_s: f64,
    /// The collectives.
    pub collective_s: f64,
    /// The scheduler's work.
    pub host_s: f64,
}

impl Totals {
    /// Both together.
    pub(crate) fn and(&self, other: &Self) -> Self {
        self.with(other, |a, b| a + b, |a, b| a + b)
    }

    /// What was done since.
    pub fn since(&self, before: &Self) -> Self {
        self.with(before, |a, b| a - b, |a, b| a - b)
    }

    /// Each sum of this with the same of another.
    fn with(
        &self,
        other: &Self,
        count: impl Fn(u64, u64) -> u64,
        amount: impl Fn(f64, f64) -> f64,
    ) -> Self {
        Self {
            steps: count(self.steps, other.steps),
            busy_ns: count(self.busy_ns, other.busy_ns),
            computed_tokens: count(self.computed_tokens, other.computed_tokens),
            prefill_tokens: count(self.prefill_tokens, other.prefill_tokens),
            output_tokens: count(self.output_tokens, other.output_tokens),
            preemptions: count(self.preemptions, other.preemptions),
            flops: amount(self.flops, other.flops),
            bytes: amount(self.bytes, other.bytes),
            compute_s: amount(self.compute_s, other.compute_s),
            memory_s: amount(self.memory_s, other.memory_s),
            collective_s: amount(self.collective_s, other.collective_s),
            host_s: amount(self.host_s, other.host_s),
        }
    }
}

/// What a replica is like at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gauges {
    /// Sequences that run.
    pub running: usize,
    /// Sequences that wait.
    pub waiting: usize,
    /// Those of them that were passed by, since there is no place for their
    /// adapters.
    pub deferred: usize,
    /// Share of blocks in use, 0 to 1.
    pub kv_usage: f64,
}

/// A step that has ended, as it is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// When the accelerators began it.
    pub starts_ns: u64,
    /// When its tokens were there.
    pub ends_ns: u64,
    /// What it computed.
    pub work: Work,
    /// What it took.
    pub cost: StepCost,
    /// Sequences that lost their blocks when it was planned.
    pub preempted: u32,
    /// The replica after it.
    pub after: Gauges,
}

/// Who hears of a replica's steps, tokens and ends.
pub trait Listener: Sink {
    /// A step has ended; its tokens were told.
    fn step(&mut self, _report: &StepReport) {}
}

/// A change of speed from an instant on: hot accelerators, a bad neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// From here.
    pub from_ns: u64,
    /// To here.
    pub until_ns: u64,
    /// Steps take so many times as long.
    pub factor: f64,
}

/// One engine.
#[derive(Debug)]
pub struct Replica {
    scheduler: Scheduler,
    cost: Cost,
    flights: VecDeque<Flight>,
    /// Steps of the past, for their memory.
    spare: Vec<Step>,
    /// When the scheduler has done its work for the steps under way.
    host_free_ns: u64,
    /// When the first stage is free again.
    entry_free_ns: u64,
    slowdowns: Vec<Slowdown>,
    totals: Totals,
}

impl Replica {
    /// An engine without requests.
    pub fn new(limits: Limits, cost: Cost) -> Self {
        Self {
            scheduler: Scheduler::new(limits),
            cost,
            flights: VecDeque::new(),
            spare: Vec::new(),
            host_free_ns: 0,
            entry_free_ns: 0,
            slowdowns: Vec::new(),
            totals: Totals::default(),
        }
    }

    /// Makes its steps slower at times.
    #[must_use]
    pub fn with_slowdowns(mut self, slowdowns: Vec<Slowdown>) -> Self {
        self.slowdowns = slowdowns;
        self
    }

    /// Lets it compute nothing before an instant.
    #[must_use]
    pub fn ready_at(mut self, at_ns: u64) -> Self {
        self.entry_free_ns = at_ns;
        self
    }

    /// Its limits.
    pub const fn limits(&self) -> &Limits {
        self.scheduler.limits()
    }

    /// The sums over all steps that have ended.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Prompt tokens looked up and found.
    pub const fn prefix(&self) -> PrefixCounts {
        self.scheduler.prefix()
    }

    /// What it is like now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            running: self.scheduler.running(),
            waiting: self.scheduler.waiting(),
            deferred: self.scheduler.deferred(),
            kv_usage: self.scheduler.pool().usage(),
        }
    }

    /// True without requests and steps under way.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.scheduler.running() == 0 && self.scheduler.waiting() == 0
    }

    /// Takes a request. Call [`Self::advance`] to its instant before, and
    /// [`Self::kick`] when all that come at this instant are in.
    pub fn submit(&mut self, submission: Submission) {
        self.scheduler.submit(submission);
    }

    /// Forgets a request whose client left; false where it is over already.
    pub fn abort(&mut self, id: u64, now_ns: u64, listener: &mut impl Listener) -> bool {
        self.scheduler.abort(id, now_ns, listener)
    }

    /// True while no request holds blocks.
    pub fn holds_nothing(&self) -> bool {
        self.scheduler.pool().free() == self.scheduler.pool().len()
    }

    /// Empties the prefix cache; false, and nothing is done, while a request
    /// holds blocks.
    pub fn reset_prefix_cache(&mut self) -> bool {
        self.scheduler.reset_prefix_cache()
    }

    /// Starts a step where none is under way: a busy engine sees what came when
    /// its step ends.
    pub fn kick(&mut self, now_ns: u64) {
        if self.flights.is_empty() {
            self.fill(now_ns);
        }
    }

    /// When the next step ends; none while idle.
    pub fn next_ns(&self) -> Option<u64> {
        self.flights.front().map(|flight| flight.ends_ns)
    }

    /// Ends all steps that end until `until_ns`, itself included, and starts
    /// those that follow.
    pub fn advance(&mut self, until_ns: u64, listener: &mut impl Listener) {
        while self.next_ns().is_some_and(|ends_ns| ends_ns <= until_ns) {
            self.end_step(listener);
        }
    }

    /// Ends the step that ends next and starts those that follow. Nothing
    /// happens while idle.
    pub fn end_step(&mut self, listener: &mut impl Listener) {
        let Some(flight) = self.flights.pop_front() else { return };
        let Flight { step, starts_ns, ends_ns, cost } = flight;
        let mut counted = Counted { listener, tokens: 0 };
        self.scheduler.finish(&step, ends_ns, &mut counted);
        let Counted { listener, tokens } = counted;
        let totals = &mut self.totals;
        totals.steps += 1;
        totals.output_tokens += tokens;
        totals.computed_tokens += u64::from(step.work.tokens);
        totals.prefill_tokens += u64::from(step.work.prefill_tokens);
        totals.preemptions += u64::from(step.preempted);
        totals.flops += cost.flops;
        totals.bytes += cost.bytes;
        totals.compute_s += cost.compute_s;
        totals.memory_s += cost.memory_s;
        totals.collective_s += cost.collective_s;
        totals.host_s += cost.host_s;
        let work = step.work;
        let preempted = step.preempted;
        self.spare.push(step);
        self.fill(ends_ns);
        listener.step(&StepReport {
            starts_ns,
            ends_ns,
            work,
            cost,
            preempted,
            after: self.gauges(),
        });
    }

    /// Plans steps until as many are under way as may be, or nothing is left to
    /// compute.
    fn fill(&mut self, now_ns: u64) {
        while self.flights.len() < self.scheduler.limits().depth as usize {
            let mut step = self.spare.pop().unwrap_or_default();
            self.scheduler.plan(now_ns, &mut step);
            if step.work.sequences == 0 {
                self.totals.preemptions += u64::from(step.preempted);
                self.spare.push(step);
                return;
            }
            let mut cost = self.cost.of(&step.work);
            // The scheduler works on one step at a time.
            self.host_free_ns =
                now_ns.max(self.host_free_ns).saturating_add(nanoseconds(cost.host_s));
            let starts_ns = self.host_free_ns.max(self.entry_free_ns);
            cost.device_s *= self.slowness(starts_ns);
            let device_ns = nanoseconds(cost.device_s).max(1);
            let stage_ns = (device_ns as f64 / self.cost.stages.max(1.0)) as u64;
            // A step cannot overtake the one before it.
            let after = self.flights.back().map_or(0, |last| last.ends_ns);
            let ends_ns = starts_ns.saturating_add(device_ns).max(after);
            self.entry_free_ns = starts_ns.saturating_add(stage_ns);
            let busy_from = starts_ns.max(after);
            self.totals.busy_ns += ends_ns - busy_from.min(ends_ns);
            self.flights.push_back(Flight { step, starts_ns, ends_ns, cost });
        }
    }

    fn slowness(&self, at_ns: u64) -> f64 {
        let now = |slowdown: &&Slowdown| (slowdown.from_ns..slowdown.until_ns).contains(&at_ns);
        self.slowdowns.iter().filter(now).map(|slowdown| slowdown.factor).product()
    }
}

/// A listener whose tokens are counted on the way.
struct Counted<'a, L> {
    listener: &'a mut L,
    tokens: u64,
}

impl<L: Sink> Sink for Counted<'_, L> {
    fn begun(&mut self, begun: &Begun, at_ns: u64) {
        self.listener.begun(begun, at_ns);
    }

    fn tokens(&mut self, id: u64, at_ns: u64, tokens: u32) {
        self.tokens += u64::from(tokens);
        self.listener.tokens(id, at_ns, tokens);
    }

    fn ended(&mut self, ended: &Ended) {
        self.listener.ended(ended);
    }
}

/// Seconds as whole nanoseconds; what is negative or no number is 0.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
