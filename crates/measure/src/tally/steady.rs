//! Gaps, and the steady part of a closed loop: it begins when every user's first
//! request has ended, which is known then, and ends when a user first finds no
//! work, which each later send takes back.

use std::collections::BTreeMap;

use super::crowd::Crowd;
use super::samples::Reasons;
use crate::bins::Bins;
use crate::facts::{LoadFacts, LoadKind};
use crate::goodput::Judging;
use crate::outcome::Outcome;
use crate::quantile;
use crate::record::Record;
use crate::request::Timed;
use crate::slo::Judged;
use crate::statistics::Distribution;
use crate::summary::{Steady, share};
use crate::undefined::Undefined;
use crate::unit::{At, Span};
use crate::window::{Extent, NoSteady, Window, long_enough, refuse_trend};

/// Gaps between token arrivals of successes.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// In ms.
    bins: Bins,
    reasons: Reasons,
    /// Output tokens that the gaps ended with.
    later_tokens: u64,
    /// Output tokens of the same requests and those of one arrival.
    output_tokens: u64,
    /// Arrivals that surely carried one token, and arrivals.
    single: (u64, u64),
}

impl Gaps {
    pub(super) fn add(&mut self, timed: &Timed<'_>, gaps: &[(u32, u32)]) {
        if let Err(reason) = timed.enters_gaps() {
            return self.reasons.add(reason);
        }
        let output = timed.output_tokens().unwrap_or(0);
        let arrivals = gaps.len() as u32 + 1;
        self.output_tokens += u64::from(output);
        let beyond = output.saturating_sub(arrivals);
        self.single.0 += u64::from(arrivals.saturating_sub(beyond));
        self.single.1 += u64::from(arrivals);
        if gaps.is_empty() {
            return self.reasons.add(Undefined::OneArrival);
        }
        self.later_tokens += u64::from(timed.tokens_after_first(1).unwrap_or(0));
        gaps.iter().for_each(|(us, _)| self.bins.add(f64::from(*us) / 1e3));
    }

    pub(super) fn together(all: &[Self]) -> Self {
        let mut sum = Self::default();
        for gaps in all {
            sum.bins.add_all(&gaps.bins);
            sum.reasons.add_all(&gaps.reasons);
            sum.later_tokens += gaps.later_tokens;
            sum.output_tokens += gaps.output_tokens;
            sum.single.0 += gaps.single.0;
            sum.single.1 += gaps.single.1;
        }
        sum
    }

    /// ICL by its key, and ITL by its own.
    pub(super) fn distributions(&self, extra: &[f64]) -> [(&'static str, Distribution); 2] {
        let icl = Distribution::of_bins(&self.bins, self.reasons.list(), extra);
        let (single, arrivals) = self.single;
        let itl = if icl.n == 0 {
            icl.clone()
        } else {
            icl.by_token(self.mean_by_token(), single as f64 >= 0.99 * arrivals as f64)
        };
        [("icl_ms", icl), ("itl_ms", itl)]
    }

    /// Σ gaps ÷ Σ tokens that ended them, ms.
    pub(super) fn mean_by_token(&self) -> Option<f64> {
        (self.later_tokens > 0).then(|| self.bins.sum() / self.later_tokens as f64)
    }

    /// Σ gaps ÷ Σ output tokens, ms.
    pub(super) fn mean_over_output(&self) -> Option<f64> {
        (self.output_tokens > 0).then(|| self.bins.sum() / self.output_tokens as f64)
    }

    pub(super) fn held(&self) -> usize {
        self.bins.held()
    }
}

/// What the steady window may hold.
#[derive(Clone, Debug)]
pub(super) struct SteadyPart {
    /// First requests whose ends are waited for: how many more are to be sent,
    /// and when those were sent that have not ended.
    unsent: u32,
    first_sent: BTreeMap<At, u32>,
    /// The last of their ends so far, and the area then.
    begins: Option<(At, u128)>,
    sends: u64,
    last_sent: Option<At>,
    /// The first end after the last send, and the area then.
    idle_from: Option<(At, u128)>,
    /// What came after that.
    after: Flow,
    /// What came since the beginning, or since this instant while that is not
    /// known.
    flow: Flow,
    instant: At,
    /// How long requests took, seconds.
    took: Bins,
    judged: Option<Judging>,
    /// Failed and empty requests, and all that ended by themselves.
    errors: (u64, u64),
}

/// What a stretch of time brought.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    ended: u64,
    tokens: f64,
    /// Whether any answer's tokens were counted.
    counted: bool,
}

impl SteadyPart {
    pub(super) fn of(load: &LoadFacts, judged: Option<Judging>) -> Self {
        Self {
            unsent: if load.kind == LoadKind::Closed { load.users.unwrap_or(1) } else { 0 },
            first_sent: BTreeMap::new(),
            begins: None,
            sends: 0,
            last_sent: None,
            idle_from: None,
            after: Flow::default(),
            flow: Flow::default(),
            instant: At::ZERO,
            took: Bins::default(),
            judged,
            errors: (0, 0),
        }
    }

    pub(super) fn sent(&mut self, at: At) {
        self.sends += 1;
        self.last_sent = Some(at);
        self.idle_from = None;
        self.after = Flow::default();
        if self.unsent > 0 {
            self.unsent -= 1;
            *self.first_sent.entry(at).or_default() += 1;
        }
    }

    /// Where it begins, once that is known.
    fn from(&self) -> Option<At> {
        let (at, _) = self.begins?;
        (self.unsent == 0 && self.first_sent.is_empty()).then_some(at)
    }

    /// Whether a request was intended in the window, as far as is known.
    pub(super) fn holds(&self, record: &Record) -> bool {
        self.from().is_some_and(|from| record.stamps.intended_at >= from)
    }

    pub(super) fn ended(
        &mut self,
        record: &Record,
        (sent, ended): (At, At),
        timed: &Timed<'_>,
        gaps: &[(u32, u32)],
        crowd: &Crowd,
    ) {
        self.took.add((ended - sent).s());
        if let Some(count) = self.first_sent.get_mut(&sent) {
            *count -= 1;
            if *count == 0 {
                self.first_sent.remove(&sent);
            }
            self.begins = Some((ended, crowd.area()));
        }
        if self.idle_from.is_none() && self.last_sent.is_some_and(|last| ended > last) {
            self.idle_from = Some((ended, crowd.area()));
        }
        let Some(from) = self.from() else {
            // Should the window begin now, what comes at this instant is in it.
            self.restart(ended);
            if timed.success {
                self.add_flow(record, (ended, sent, ended), timed, gaps);
            }
            return;
        };
        if self.instant < from {
            self.restart(from);
        }
        if timed.success {
            self.add_flow(record, (from, sent, ended), timed, gaps);
        }
        if self.holds(record) {
            match record.outcome {
                Outcome::Ok => self.errors.1 += 1,
                Outcome::Empty | Outcome::Failed(_) => {
                    self.errors.0 += 1;
                    self.errors.1 += 1;
                }
                Outcome::NotSent(_) | Outcome::Cancelled => {}
            }
        }
    }

    /// Forgets what came before an instant that is later than the last one.
    fn restart(&mut self, at: At) {
        if at > self.instant {
            self.instant = at;
            (self.flow, self.after) = (Flow::default(), Flow::default());
        }
    }

    fn add_flow(
        &mut self,
        record: &Record,
        (from, sent, ended): (At, At, At),
        timed: &Timed<'_>,
        gaps: &[(u32, u32)],
    ) {
        let until = self.idle_from.map(|(at, _)| at);
        let is_after = |at: At| until.is_some_and(|until| at >= until);
        let last = record.events.at_us.last().map(|us| sent + Span::from_us(i64::from(*us)));
        let last = last.unwrap_or(ended);
        self.flow.ended += u64::from(last >= from);
        self.after.ended += u64::from(last >= from && is_after(last));
        let Ok(output) = timed.output_tokens() else { return };
        let first = record.events.iter().find(|event| event.carries.is_arrival());
        let Some(first) = first else { return };
        let each = f64::from(output) / (gaps.len() + 1) as f64;
        let mut at = sent + Span::from_us(i64::from(first.at_us));
        let (mut inside, mut late) = (0u32, 0u32);
        if at >= from && until.is_none() {
            inside = gaps.len() as u32 + 1;
        } else {
            let mut see = |at: At| {
                inside += u32::from(at >= from);
                late += u32::from(at >= from && is_after(at));
            };
            see(at);
            for (us, _) in gaps {
                at = at + Span::from_us(i64::from(*us));
                see(at);
            }
        }
        self.flow.counted = true;
        self.flow.tokens += each * f64::from(inside);
        self.after.tokens += each * f64::from(late);
    }

    pub(super) fn judge(&mut self, timed: &Timed<'_>, judged: &Judged) {
        if let Some(judging) = &mut self.judged {
            judging.add(timed, judged);
        }
    }

    fn window(
        &self,
        load: &LoadFacts,
        extent: &Extent,
        crowd: &Crowd,
    ) -> Result<(Window, u128), NoSteady> {
        match load.kind {
            LoadKind::Burst | LoadKind::Unknown => return Err(NoSteady::Kind(load.kind)),
            LoadKind::Open | LoadKind::Capped if extent.tried.n == 0 => {
                return Err(NoSteady::NothingSent);
            }
            LoadKind::Open | LoadKind::Capped if load.request_rate.is_none() => {
                return Err(NoSteady::Shaped);
            }
            LoadKind::Open | LoadKind::Capped => return Err(NoSteady::NotKept),
            // A user is held by a conversation, of which the ends are not known.
            LoadKind::Closed if extent.later_turns > 0 => return Err(NoSteady::NotKept),
            LoadKind::Closed => {}
        }
        let users = u64::from(load.users.unwrap_or(1));
        let (Some(from), Some((_, begun))) = (self.from(), self.begins) else {
            return Err(NoSteady::NeverFull);
        };
        let (Some((until, area)), true) = (self.idle_from, self.sends > users) else {
            return Err(NoSteady::NeverFull);
        };
        if until <= from {
            return Err(NoSteady::NeverFull);
        }
        let window = Window { from, until };
        long_enough(window, quantile::counted(&self.took, 0.5).unwrap_or(0.0))?;
        refuse_trend(window, |part| crowd.mean(part))?;
        Ok((window, area - begun))
    }

    /// The steady window and its figures, with the distributions of its
    /// requests where there is one.
    pub(super) fn found(
        &self,
        load: &LoadFacts,
        extent: &Extent,
        crowd: &Crowd,
        metrics: impl FnOnce() -> Vec<(&'static str, Distribution)>,
    ) -> Steady {
        let (window, area) = match self.window(load, extent, crowd) {
            Ok(found) => found,
            Err(reason) => return Steady::none(reason),
        };
        let length_s = window.length().s();
        let tokens = self.flow.counted.then_some(self.flow.tokens - self.after.tokens);
        Steady {
            window: Ok(window),
            output_tok_s: tokens.map(|tokens| tokens / length_s),
            req_s: Some((self.flow.ended - self.after.ended) as f64 / length_s),
            mean_in_flight: Some(area as f64 / window.length().us().max(1) as f64),
            goodput: self.judged.as_ref().map(|judging| judging.goodput(Some(length_s))),
            error_rate: share(self.errors.0, self.errors.1),
            metrics: metrics(),
        }
    }

    pub(super) fn held(&self) -> usize {
        self.took.held() + self.first_sent.len()
    }
}
