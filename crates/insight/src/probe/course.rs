//! Which trial comes next: what is planned, what fits the budget, and when a
//! server has had enough.

use std::collections::VecDeque;

use measure::said;
use measure::said::Said;

use super::figures::{self, Figures, Level};
use super::{
    Beside, Experiment, LEAST_INPUT, LeftOut, Limits, Observed, Press, RoundTrip, Step, Taken,
    Trial,
};

/// Connections that are opened for the transport.
const ROUND_TRIPS: u32 = 10;

/// Requests of the baseline before anything is known of their length, and at
/// most.
const FIRST: u32 = 3;
const MOST_SOLO: u32 = 20;

/// Share of the budget that the rest of the baseline may take, and the lengths of
/// prompts: where prompts are slow, shorter ones are sent.
const SOLO_SHARE: f64 = 0.1;
const LENGTHS_SHARE: f64 = 0.2;

/// The part of the TTFT of a longer prompt that a shorter one takes at least.
const LEAST_PART: f64 = 0.2;

/// Experiments of which a part says nothing.
const WHOLE: [Experiment; 4] =
    [Experiment::Lengths, Experiment::Prefix, Experiment::Outputs, Experiment::Rates];

/// The shortest that the longest prompt of the lengths may be.
const SHORTEST_TOP: u32 = 256;

/// Requests of each length, and of each length of answers.
const OF_EACH_LENGTH: u32 = 5;
const OF_EACH_OUTPUT: u32 = 3;

/// Requests of each user in a level: the first and the last are the ramp.
const ROUNDS: u32 = 4;

/// The same where one of eight is a short canary, and one a long one.
const CANARY_ROUNDS: u32 = 10;

/// The longest prompt of the lengths, of the same prompt twice, and of the
/// longer ladder.
const LONGEST: u32 = 4_096;
const PREFIX: u32 = 2_048;
const LONGEST_LADDER: u32 = 16_384;

/// Times the prompts of the second ladder are longer.
const LONGER: u32 = 4;

/// Lengths of answers.
const OUTPUTS: [u32; 5] = [1, 2, 16, 64, 256];

/// Rates of the open loop over the highest throughput that was seen.
const LOADS: [f64; 3] = [0.8, 0.4, 0.2];

/// Requests at each rate.
const OF_EACH_RATE: u32 = 24;

/// Tokens that a server may put around a prompt of ours: they are kept free of
/// the context.
const AROUND: u32 = 64;

/// Failures of a trial above which no other is made.
const MOST_FAILED: usize = 2;

/// How long is waited after a refusal that does not say it, seconds.
const USUAL_WAIT_S: f64 = 2.0;

/// What an experiment takes its figures from. The bases of bases come last.
const BUILDS_ON: &[(Experiment, Experiment)] = &[
    (Experiment::Contexts, Experiment::Ladder),
    (Experiment::Rates, Experiment::Ladder),
    (Experiment::Prefix, Experiment::Lengths),
    (Experiment::Canary, Experiment::Lengths),
    (Experiment::Canary, Experiment::Ladder),
    (Experiment::Lengths, Experiment::Baseline),
    (Experiment::Ladder, Experiment::Baseline),
    (Experiment::Outputs, Experiment::Baseline),
];

/// The course of the experiments.
#[derive(Clone, Debug)]
pub struct Probe {
    limits: Limits,
    ahead: VecDeque<Experiment>,
    steps: VecDeque<Step>,
    pub(super) taken: Vec<Taken>,
    pub(super) idle: Vec<RoundTrip>,
    pub(super) left_out: Vec<LeftOut>,
    most_users: u32,
    wait_s: Option<f64>,
    refusals: u32,
    pub(super) halted: Option<Said>,
    series: u32,
}

impl Probe {
    /// The course of what the limits allow.
    pub fn new(limits: Limits) -> Self {
        let order = super::EXPERIMENTS.iter().map(|entry| entry.experiment);
        let mut limits = limits;
        for (experiment, base) in BUILDS_ON {
            if limits.only.contains(experiment) && !limits.only.contains(base) {
                limits.only.push(*base);
            }
        }
        Self {
            ahead: order.filter(|experiment| limits.only.contains(experiment)).collect(),
            most_users: limits.most_users.max(1),
            limits,
            steps: VecDeque::new(),
            taken: Vec::new(),
            idle: Vec::new(),
            left_out: Vec::new(),
            wait_s: None,
            refusals: 0,
            halted: None,
            series: 0,
        }
    }

    /// What limits it.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The trials that were made, in their order.
    pub fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// What to do next, when so much time of the budget is gone; none at the end.
    pub fn next(&mut self, elapsed_s: f64) -> Option<Step> {
        loop {
            if let Some(why) = self.halted.clone() {
                self.leave_the_rest(&why);
                return None;
            }
            if let Some(wait_s) = self.wait_s.take() {
                if elapsed_s + wait_s < self.limits.budget_s {
                    return Some(Step::Wait(wait_s));
                }
                self.halted = Some(said!(
                    "the server asked for {wait:.0} s of silence, longer than what is left of the budget",
                    "服务端要求静默 {wait:.0} 秒，超过剩余预算",
                    wait = wait_s,
                ));
                continue;
            }
            let Some(step) = self.steps.pop_front() else {
                let experiment = self.ahead.pop_front()?;
                self.open(experiment);
                self.keep_whole(experiment, elapsed_s);
                continue;
            };
            let Step::Trial(trial) = step else { return Some(step) };
            if trial.press.users() > self.most_users {
                continue;
            }
            let needs_s = self.estimate_s(&trial);
            if self.taken.is_empty() || elapsed_s + needs_s <= self.limits.budget_s {
                return Some(Step::Trial(trial));
            }
            self.leave_out(trial.experiment, self.beyond(needs_s));
        }
    }

    /// Leaves an experiment out of which a part would say nothing, where not all
    /// of it fits.
    fn keep_whole(&mut self, experiment: Experiment, elapsed_s: f64) {
        let trials = self.steps.iter().filter_map(|step| match step {
            Step::Trial(trial) => Some(self.estimate_s(trial)),
            Step::RoundTrips(_) | Step::Wait(_) => None,
        });
        let needs_s: f64 = trials.sum();
        if WHOLE.contains(&experiment) && elapsed_s + needs_s > self.limits.budget_s {
            self.steps.clear();
            self.leave_out(experiment, self.beyond(needs_s));
        }
    }

    fn beyond(&self, needs_s: f64) -> Said {
        said!(
            "about {needs:.0} s more did not fit into the budget of {budget:.0} s",
            "还需约 {needs:.0} 秒，超出 {budget:.0} 秒的预算",
            needs = needs_s,
            budget = self.limits.budget_s,
        )
    }

    /// Ends it: somebody wants it to.
    pub fn interrupt(&mut self) {
        let why = said!("it was interrupted", "被用户中断");
        self.leave_the_rest(&why);
        self.halted = Some(why);
    }

    /// Takes the cheap requests.
    pub fn took_round_trips(&mut self, trips: Vec<RoundTrip>) {
        if trips.is_empty() {
            self.leave_out(
                Experiment::Transport,
                said!("no connection was opened", "没有成功建立连接"),
            );
        }
        self.idle = trips;
    }

    /// Takes what came of a trial.
    pub fn took(&mut self, trial: Trial, observed: Observed) {
        let none = observed.samples.is_empty();
        if observed.refused > 0 {
            self.refused(&trial, &observed);
        } else if observed.failed > MOST_FAILED || none && observed.failed > 0 {
            self.halted = Some(said!(
                "{failed} of {planned} requests failed ({message})",
                "{planned} 个请求中有 {failed} 个失败（{message}）",
                failed = observed.failed,
                planned = observed.planned,
                message = observed.message.as_deref().unwrap_or("no reason given"),
            ));
        } else if observed.is_cut {
            self.halted = Some(said!("the budget was over", "预算已用完"));
        } else if none {
            self.halted = Some(said!("no request ended", "没有请求完成"));
        }
        let of_baseline = trial.experiment == Experiment::Baseline && self.taken.is_empty();
        self.taken.push(Taken { trial, observed });
        if of_baseline && self.halted.is_none() {
            self.more_of_baseline(&trial);
        }
        if trial.experiment == Experiment::Ladder && self.is_full() {
            // More users would wait longer and tell nothing more.
            self.steps.clear();
        }
    }

    /// A server that says no is asked for less, and after the second time for
    /// nothing.
    fn refused(&mut self, trial: &Trial, observed: &Observed) {
        self.refusals += 1;
        if self.refusals > 1 || trial.press.users() == 1 {
            self.halted = Some(said!(
                "the server refused requests again ({message})",
                "服务端再次拒绝请求（{message}）",
                message = observed.message.as_deref().unwrap_or("429"),
            ));
            return;
        }
        self.most_users = (trial.press.users() / 2).max(1);
        self.wait_s = Some(observed.retry_after_s.unwrap_or(USUAL_WAIT_S).max(0.0));
        let why = said!(
            "the server refused {refused} requests with {users} in flight; at most {fewer} were sent from \
             then on",
            "并发 {users} 时服务端拒绝了 {refused} 个请求，此后并发不超过 {fewer}",
            refused = observed.refused,
            users = trial.press.users(),
            fewer = self.most_users,
        );
        self.leave_out(trial.experiment, why);
    }

    /// True where the last two levels of the ladder wait alike for what holds
    /// them.
    fn is_full(&self) -> bool {
        let figures = Figures::of(self);
        let Some(ladder) = figures.ladders.first() else { return false };
        let waiting = |level: &&Level| level.waits;
        ladder.levels.len() >= 4 && ladder.levels.iter().rev().take(2).filter(waiting).count() == 2
    }

    fn leave_out(&mut self, experiment: Experiment, why: Said) {
        if self.left_out.iter().all(|left| left.experiment != experiment) {
            self.left_out.push(LeftOut { experiment, why });
        }
    }

    fn leave_the_rest(&mut self, why: &Said) {
        let begun = self.steps.drain(..).find_map(|step| match step {
            Step::Trial(trial) => Some(trial.experiment),
            Step::RoundTrips(_) | Step::Wait(_) => None,
        });
        let ahead: Vec<Experiment> = begun.into_iter().chain(self.ahead.drain(..)).collect();
        for experiment in ahead {
            self.leave_out(experiment, why.clone());
        }
    }

    /// Lays the trials of an experiment out.
    fn open(&mut self, experiment: Experiment) {
        let Limits { input, output, .. } = self.limits;
        match experiment {
            Experiment::Transport => self.steps.push_back(Step::RoundTrips(ROUND_TRIPS)),
            Experiment::Baseline => self.add(experiment, (input, output), 1, FIRST),
            Experiment::Lengths => {
                for length in self.lengths() {
                    self.add(experiment, (length, 1), 1, OF_EACH_LENGTH);
                }
            }
            Experiment::Ladder => {
                for users in levels(self.most_users).into_iter().filter(|users| *users > 1) {
                    self.add(experiment, (input, output), users, ROUNDS * users);
                    self.beside(Beside::RoundTrips);
                }
            }
            Experiment::Contexts => self.open_contexts(),
            Experiment::Prefix => {
                let length = PREFIX.min(self.room(1));
                self.add(experiment, (length, 1), 1, OF_EACH_LENGTH);
                let again = self.steps.back().copied();
                self.steps.extend(again);
            }
            Experiment::Outputs => {
                let input = input.min(128);
                let room = self.limits.context.unwrap_or(u32::MAX).saturating_sub(input + AROUND);
                for length in OUTPUTS.into_iter().filter(|length| *length <= room.max(1)) {
                    self.add(experiment, (input, length), 1, OF_EACH_OUTPUT);
                }
            }
            Experiment::Canary => {
                self.add(
                    experiment,
                    (input, output),
                    self.most_users,
                    CANARY_ROUNDS * self.most_users,
                );
                self.beside(Beside::Canaries);
            }
            Experiment::Rates => self.open_rates(),
        }
    }

    /// The ladder with longer prompts: one user, half of the most and the most.
    fn open_contexts(&mut self) {
        let Limits { input, output, .. } = self.limits;
        let mut ladder =
            self.taken.iter().filter(|taken| taken.trial.experiment == Experiment::Ladder);
        if ladder.next().is_none() {
            let why = said!(
                "it is held against the ladder, which was not made",
                "需与并发阶梯对照，而阶梯未进行"
            );
            self.leave_out(Experiment::Contexts, why);
            return;
        }
        let length = (LONGER * input).min(LONGEST_LADDER).min(self.room(output));
        if length < 2 * input {
            let why = said!(
                "the context of the model has no room for longer prompts",
                "模型上下文容不下更长的输入"
            );
            self.leave_out(Experiment::Contexts, why);
            return;
        }
        // Where the first ladder was full, more users would wait only.
        let reached =
            self.taken.iter().filter(|taken| taken.trial.experiment == Experiment::Ladder);
        let most = reached.map(|taken| taken.trial.press.users()).max().unwrap_or(self.most_users);
        let mut users = vec![1, most.div_ceil(2), most];
        users.dedup();
        for users in users {
            let requests = if users == 1 { FIRST } else { ROUNDS * users };
            self.add(Experiment::Contexts, (length, output), users, requests);
        }
    }

    fn open_rates(&mut self) {
        let Limits { input, output, .. } = self.limits;
        let figures = Figures::of(self);
        let most = figures.ladders.first().and_then(|ladder| ladder.most_req_s());
        let Some(most) = most else {
            let why = said!(
                "rates are shares of the highest throughput, which the ladder finds",
                "速率按并发阶梯测得的最高吞吐取比例"
            );
            self.leave_out(Experiment::Rates, why);
            return;
        };
        for load in LOADS {
            self.add(Experiment::Rates, (input, output), self.most_users, OF_EACH_RATE);
            let press = Press::Rate { req_s: load * most, users: self.most_users };
            self.change(|trial| trial.press = press);
        }
    }

    fn add(
        &mut self,
        experiment: Experiment,
        (input, output): (u32, u32),
        users: u32,
        requests: u32,
    ) {
        self.series += 1;
        self.steps.push_back(Step::Trial(Trial {
            experiment,
            input: input.min(self.room(output)).max(1),
            output,
            press: Press::Users(users),
            requests,
            series: self.series,
            beside: Beside::Nothing,
        }));
    }

    /// Changes the trial that was added last.
    fn change(&mut self, change: impl FnOnce(&mut Trial)) {
        if let Some(Step::Trial(trial)) = self.steps.back_mut() {
            change(trial);
        }
    }

    fn beside(&mut self, beside: Beside) {
        self.change(|trial| trial.beside = beside);
    }

    /// Tokens that a prompt may have.
    fn room(&self, output: u32) -> u32 {
        let context = self.limits.context.unwrap_or(u32::MAX);
        context.saturating_sub(output.saturating_add(AROUND)).max(1)
    }

    /// Lengths of prompts: a few tokens, and parts of the longest.
    fn lengths(&self) -> Vec<u32> {
        let longest = LONGEST.max(self.limits.input.min(LONGEST_LADDER)).min(self.room(1));
        let parts = |top: u32| {
            [LEAST_INPUT, top / 32, top / 8, top / 4, top / 8 * 3, top / 2, top / 4 * 3, top]
        };
        let fits = f64::from(longest) * self.share_of_lengths(&parts(longest));
        let top = (fits as u32).clamp(SHORTEST_TOP.min(longest), longest);
        let mut lengths = parts(top).map(|length| length.clamp(LEAST_INPUT.min(top), top)).to_vec();
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// The share of the budget for lengths over what they would take, by the
    /// time of a prompt token of the baseline; 1 where they fit.
    fn share_of_lengths(&self, lengths: &[u32]) -> f64 {
        let Some(alone) = figures::baseline(self) else { return 1.0 };
        let tokens: f64 = lengths.iter().map(|length| f64::from(*length)).sum();
        let each_s = alone.ttft_ms / alone.input.max(1.0) / 1e3;
        let needs_s = f64::from(OF_EACH_LENGTH) * tokens * each_s;
        (LENGTHS_SHARE * self.limits.budget_s / needs_s.max(1e-9)).min(1.0)
    }

    fn more_of_baseline(&mut self, trial: &Trial) {
        let Some(alone_s) = self.solo_ms(trial).map(|ms| ms / 1e3).filter(|s| *s > 0.0) else {
            return;
        };
        let fit = (SOLO_SHARE * self.limits.budget_s / alone_s) as u32;
        let more = fit.min(MOST_SOLO - FIRST);
        if more > 0 {
            self.add(Experiment::Baseline, (trial.input, trial.output), 1, more);
            // Before anything that was laid out meanwhile.
            if let Some(step) = self.steps.pop_back() {
                self.steps.push_front(step);
            }
        }
    }

    /// About how long a request of a trial takes by itself, ms; none where
    /// nothing is known yet.
    fn solo_ms(&self, trial: &Trial) -> Option<f64> {
        let baseline = figures::baseline(self)?;
        let known = figures::solo_ttft_ms(self, f64::from(trial.input))?;
        // Nothing shorter was sent: it takes a part of that.
        let shorter = f64::from(trial.input) / figures::shortest(self).unwrap_or(1.0);
        let prompt_ms = known * shorter.clamp(LEAST_PART, 1.0);
        let later = f64::from(trial.output.saturating_sub(1));
        Some(prompt_ms + later * baseline.tpot_ms.unwrap_or(0.0))
    }

    /// About how long a trial takes, seconds.
    fn estimate_s(&self, trial: &Trial) -> f64 {
        let Some(solo_ms) = self.solo_ms(trial) else { return 0.0 };
        match trial.press {
            Press::Rate { req_s, .. } => f64::from(trial.requests) / req_s + 2.0 * solo_ms / 1e3,
            Press::Users(users) => {
                let rounds = f64::from(trial.requests) / f64::from(users);
                rounds * solo_ms * self.slowdown(users) / 1e3
            }
        }
    }

    /// How many times longer than by itself a request takes beside so many.
    fn slowdown(&self, users: u32) -> f64 {
        if users == 1 {
            return 1.0;
        }
        let figures = Figures::of(self);
        let mut levels = figures.ladders.iter().filter_map(|ladder| {
            let (alone, most) = (ladder.levels.first()?, ladder.levels.last()?);
            (most.users > 1).then(|| (most.e2e_ms / alone.e2e_ms, f64::from(most.users)))
        });
        let Some((times, of)) = levels.next_back() else { return 1.5 };
        // Above what was seen each user adds as much as those before.
        1.0 + (times - 1.0).max(0.05) * (f64::from(users) / of).max(1.0)
    }
}

/// Numbers of users from 1 to `most`: powers of two, with what lies between
/// where they are few.
fn levels(most: u32) -> Vec<u32> {
    let mut levels: Vec<u32> = std::iter::successors(Some(1u32), |users| users.checked_mul(2))
        .take_while(|users| *users < most)
        .collect();
    levels.push(most);
    if levels.len() < 6 {
        levels.extend((1..).map(|power| 3 << power >> 1).take_while(|users| *users < most));
        levels.sort_unstable();
        levels.dedup();
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_go_to_the_most_and_are_enough_for_a_fit_where_that_allows() {
        assert_eq!(levels(1), [1]);
        assert_eq!(levels(2), [1, 2]);
        assert_eq!(levels(8), [1, 2, 3, 4, 6, 8]);
        assert_eq!(levels(16), [1, 2, 3, 4, 6, 8, 12, 16]);
        assert_eq!(levels(50), [1, 2, 4, 8, 16, 32, 50]);
    }
}
