//! How the rate of arrivals changes over time.
//!
//! A shape is a rate λ(t) with its integral Λ(t), the number of arrivals that
//! are expected until t, and the inverse of that. Arrivals of unit rate, put
//! through the inverse, come at λ(t) (time rescaling; Çinlar, Introduction to
//! Stochastic Processes, 1975, §4.7). So one seeded stream of gaps serves every
//! shape, and nothing is approximated by short pieces of constant rate.

use measure::{PerSecond, Span};

use crate::digest::Digest;
use crate::load::{HORIZON, MAX_RATE};

/// The most stages that one plan may have.
pub const MAX_STAGES: usize = 256;

/// The most phases that a plan is cut into for its reader; the last one then
/// reaches to the end.
const MAX_PHASES: usize = 1000;

/// Parts in which a ramp is shown.
const RAMP_PARTS: usize = 5;

/// A rate of arrivals as a function of time.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// The same rate always.
    Flat(PerSecond),
    /// From one rate to another, which is then held.
    Ramp {
        /// The rate at the start; above 0 where growth is exponential.
        from: PerSecond,
        /// The rate at the end and after it.
        to: PerSecond,
        /// How long it takes.
        over: Span,
        /// The way between.
        growth: Growth,
    },
    /// Constant rates one after the other. Nothing arrives after the last.
    Stages(Vec<Stage>),
    /// λ(t) = mean + amplitude · sin(2πt ÷ period).
    Sine {
        /// The mean rate.
        mean: PerSecond,
        /// How far the rate goes from its mean, at most the mean itself.
        amplitude: PerSecond,
        /// The time from one crest to the next.
        period: Span,
    },
    /// Two stages in turn, without end; the first begins.
    Bursts {
        /// The burst.
        on: Stage,
        /// What is between bursts.
        off: Stage,
    },
}

/// How a ramp goes from one rate to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// By the same number of requests a second in every second.
    Linear,
    /// By the same factor in every second.
    Exponential,
}

/// A rate for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    /// Arrivals a second, from 0.
    pub rate: PerSecond,
    /// How long.
    pub lasts: Span,
}

/// A part of a plan that its reader thinks of as one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Where it begins, from the start of the run.
    pub from: Span,
    /// Where it ends; the end is not in it.
    pub until: Span,
    /// Arrivals that the shape lets expect in it.
    pub expected: f64,
    /// Arrivals that the plan has in it.
    pub drawn: u32,
}

/// Which rule of a shape was broken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ShapeError {
    /// A rate is over what whole microseconds can express.
    #[error("no rate of a load shape may be over {MAX_RATE} per second; got {0}")]
    TooHigh(f64),
    /// The ramp starts below 0.
    #[error("--ramp-up-start-rps must be a number from 0; got {0}")]
    RampStart(f64),
    /// The ramp multiplies nothing.
    #[error(
        "--ramp-up-start-rps must be above 0 for an exponential ramp, which multiplies it; give a \
         small rate, or --ramp-up-strategy linear"
    )]
    RampFromNothing,
    /// The ramp ends at no rate.
    #[error("--ramp-up-end-rps must be a number above 0; got {0}")]
    RampEnd(f64),
    /// The ramp takes no time, or more than the horizon.
    #[error(
        "a ramp takes the time of the run, which must be above 0 and at most 366 days; got {0}. Give -n or --duration"
    )]
    RampLength(Span),
    /// No stage.
    #[error("--stages needs at least one stage; write RATE:DURATION,…, such as 5:30s,10:30s")]
    NoStage,
    /// More than [`MAX_STAGES`].
    #[error("--stages takes at most {MAX_STAGES} stages; got {0}")]
    TooManyStages(usize),
    /// A stage with an impossible rate.
    #[error("stage {place} of --stages must have a rate from 0; got {rate}")]
    StageRate {
        /// Which, from 1.
        place: usize,
        /// The rate.
        rate: f64,
    },
    /// A stage that takes no time.
    #[error("stage {place} of --stages must last longer than 0; got {lasts}")]
    StageLength {
        /// Which, from 1.
        place: usize,
        /// The length.
        lasts: Span,
    },
    /// The stages are longer than a plan.
    #[error("--stages must not last longer than 366 days together")]
    StagesTooLong,
    /// Nothing would ever be sent.
    #[error("every rate of {0} is 0, so nothing would be sent; give one above 0")]
    Silent(&'static str),
    /// A sine around nothing.
    #[error("the mean of a sine must be a number above 0; got {0}")]
    SineMean(f64),
    /// A sine that goes below 0.
    #[error(
        "the amplitude of a sine must be from 0 to its mean of {mean}, since a rate cannot be \
         negative; got {amplitude}"
    )]
    SineAmplitude {
        /// The mean.
        mean: f64,
        /// The amplitude.
        amplitude: f64,
    },
    /// A sine without length.
    #[error("the period of a sine must be above 0 and at most 366 days; got {0}")]
    SinePeriod(Span),
    /// A burst with an impossible rate.
    #[error("{0} of bursts must be a rate from 0; got {1}")]
    BurstRate(&'static str, f64),
    /// A burst that takes no time.
    #[error("{0} of bursts must be above 0 and at most 366 days; got {1}")]
    BurstLength(&'static str, Span),
}

impl Stage {
    /// Arrivals that are expected in the whole stage.
    fn expected(self) -> f64 {
        self.rate.get() * self.lasts.s()
    }

    /// Arrivals that are expected in its first `s` seconds.
    fn expected_in(self, s: f64) -> f64 {
        self.rate.get() * s.clamp(0.0, self.lasts.s())
    }
}

impl Growth {
    /// The mean rate of a whole ramp over time: how long a ramp of a number of
    /// requests takes follows from it.
    pub fn mean(self, from: PerSecond, to: PerSecond) -> PerSecond {
        let (from, to) = (from.get(), to.get());
        match self {
            Self::Exponential if !is_level(from, to) => {
                PerSecond::new((to - from) / (to / from).ln())
            }
            _ => PerSecond::new(f64::midpoint(from, to)),
        }
    }

    /// The name in flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        }
    }
}

/// True where an exponential ramp is so flat that the logarithm of its factor
/// would cancel; a linear one is the same to 1 part in 10¹².
fn is_level(from: f64, to: f64) -> bool {
    (to / from - 1.0).abs() < 1e-6
}

impl Shape {
    /// Checks every rule about a shape by itself.
    pub fn check(&self) -> Result<(), ShapeError> {
        if self.peak().get() > MAX_RATE {
            return Err(ShapeError::TooHigh(self.peak().get()));
        }
        match self {
            // The rule about a flat rate is the load's.
            Self::Flat(_) => Ok(()),
            Self::Ramp { from, to, over, growth } => check_ramp(*from, *to, *over, *growth),
            Self::Stages(stages) => check_stages(stages),
            Self::Sine { mean, amplitude, period } => {
                let (mean, amplitude) = (mean.get(), amplitude.get());
                if !(mean > 0.0 && mean.is_finite()) {
                    return Err(ShapeError::SineMean(mean));
                }
                if !(0.0..=mean).contains(&amplitude) {
                    return Err(ShapeError::SineAmplitude { mean, amplitude });
                }
                if is_length(*period) { Ok(()) } else { Err(ShapeError::SinePeriod(*period)) }
            }
            Self::Bursts { on, off } => {
                for (name, stage) in [("on", on), ("off", off)] {
                    if !is_rate(stage.rate) {
                        return Err(ShapeError::BurstRate(name, stage.rate.get()));
                    }
                }
                for (name, stage) in [("on_for", on), ("off_for", off)] {
                    if !is_length(stage.lasts) {
                        return Err(ShapeError::BurstLength(name, stage.lasts));
                    }
                }
                let silent = on.rate.get() + off.rate.get() <= 0.0;
                if silent { Err(ShapeError::Silent("bursts")) } else { Ok(()) }
            }
        }
    }

    /// The one rate, where there is one.
    pub const fn flat(&self) -> Option<PerSecond> {
        match self {
            Self::Flat(rate) => Some(*rate),
            _ => None,
        }
    }

    /// The highest rate that is ever reached.
    pub fn peak(&self) -> PerSecond {
        let highest = match self {
            Self::Flat(rate) => rate.get(),
            Self::Ramp { from, to, .. } => from.get().max(to.get()),
            Self::Stages(stages) => stages.iter().map(|s| s.rate.get()).fold(0.0, f64::max),
            Self::Sine { mean, amplitude, .. } => mean.get() + amplitude.get(),
            Self::Bursts { on, off } => on.rate.get().max(off.rate.get()),
        };
        PerSecond::new(highest)
    }

    /// How long arrivals come at all; `None` without end.
    pub fn lasts(&self) -> Option<Span> {
        match self {
            // Asked before the check too, so a sum beyond all limits must not
            // overflow.
            Self::Stages(stages) => Some(Span::from_us(
                stages.iter().fold(0, |sum, stage| stage.lasts.us().saturating_add(sum)),
            )),
            _ => None,
        }
    }

    /// Λ: arrivals that are expected in the first `s` seconds, `s` from 0.
    pub fn expected_until(&self, s: f64) -> f64 {
        match self {
            Self::Flat(rate) => rate.get() * s,
            Self::Ramp { from, to, over, growth } => {
                let within = s.min(over.s());
                let held = to.get() * (s - within);
                ramp_expected(from.get(), to.get(), over.s(), *growth, within) + held
            }
            Self::Stages(stages) => {
                let mut begins_s = 0.0;
                let mut sum = 0.0;
                for stage in stages {
                    sum += stage.expected_in(s - begins_s);
                    begins_s += stage.lasts.s();
                }
                sum
            }
            Self::Sine { mean, amplitude, period } => {
                sine_expected(mean.get(), amplitude.get(), period.s(), s)
            }
            Self::Bursts { on, off } => {
                let period_s = on.lasts.s() + off.lasts.s();
                let whole = (s / period_s).floor();
                let rest_s = s - whole * period_s;
                whole * (on.expected() + off.expected())
                    + on.expected_in(rest_s)
                    + off.expected_in(rest_s - on.lasts.s())
            }
        }
    }

    /// Λ⁻¹: the second from which on more than `expected` arrivals are
    /// expected, `expected` from 0. Where nothing arrives for a while that is
    /// the end of the pause, so that evenly spaced arrivals fill each burst
    /// from its beginning. `None` where so many never arrive.
    pub fn instant_of(&self, expected: f64) -> Option<f64> {
        match self {
            Self::Flat(rate) => Some(expected / rate.get()),
            Self::Ramp { from, to, over, growth } => {
                let (from, to, over_s) = (from.get(), to.get(), over.s());
                let whole = ramp_expected(from, to, over_s, *growth, over_s);
                Some(if expected < whole {
                    ramp_instant(from, to, over_s, *growth, expected)
                } else {
                    over_s + (expected - whole) / to
                })
            }
            Self::Stages(stages) => {
                let (mut begins_s, mut left) = (0.0, expected);
                for stage in stages {
                    if left < stage.expected() {
                        return Some(begins_s + left / stage.rate.get());
                    }
                    left -= stage.expected();
                    begins_s += stage.lasts.s();
                }
                None
            }
            Self::Sine { mean, amplitude, period } => {
                Some(sine_instant(mean.get(), amplitude.get(), period.s(), expected))
            }
            Self::Bursts { on, off } => {
                let each = on.expected() + off.expected();
                let whole = (expected / each).floor();
                let left = (expected - whole * each).max(0.0);
                let begins_s = whole * (on.lasts.s() + off.lasts.s());
                Some(if left < on.expected() || off.rate.get() <= 0.0 {
                    begins_s + left / on.rate.get()
                } else {
                    begins_s + on.lasts.s() + (left - on.expected()) / off.rate.get()
                })
            }
        }
    }

    /// The plan up to `end` in the parts that its reader thinks of: fifths of a
    /// ramp, stages, half periods of a sine, bursts and the time between.
    pub fn phases(&self, end: Span) -> Vec<Phase> {
        let mut phases: Vec<Phase> = Vec::new();
        let mut from = Span::ZERO;
        while from < end {
            let next = self.phase_end(phases.len()).filter(|_| phases.len() + 1 < MAX_PHASES);
            // Half a period of a microsecond is no time.
            let until = next.map_or(end, |at| at.max(from + Span::from_us(1)).min(end));
            let expected = self.expected_until(until.s()) - self.expected_until(from.s());
            phases.push(Phase { from, until, expected, drawn: 0 });
            from = until;
        }
        phases
    }

    /// Where phase `place` ends; `None` when it is the last.
    fn phase_end(&self, place: usize) -> Option<Span> {
        let next = place + 1;
        match self {
            Self::Flat(_) => None,
            Self::Ramp { over, .. } => (next <= RAMP_PARTS)
                .then(|| Span::from_us(over.us() * next as i64 / RAMP_PARTS as i64)),
            Self::Stages(stages) => {
                let upto = stages.get(..next)?;
                Some(upto.iter().fold(Span::ZERO, |sum, stage| sum + stage.lasts))
            }
            Self::Sine { period, .. } => Some(Span::from_us(period.us() * next as i64 / 2)),
            Self::Bursts { on, off } => {
                let pairs = (next / 2) as i64 * (on.lasts.us() + off.lasts.us());
                Some(Span::from_us(pairs + (next % 2) as i64 * on.lasts.us()))
            }
        }
    }

    /// The shape in words: `linear ramp from 1 to 10 req/s over 60 s`.
    pub fn describe(&self) -> String {
        match self {
            Self::Flat(rate) => format!("{} req/s", rate.get()),
            Self::Ramp { from, to, over, growth } => format!(
                "{} ramp from {} to {} req/s over {} s",
                growth.name(),
                from.get(),
                to.get(),
                over.s()
            ),
            Self::Stages(stages) => {
                let mut words: Vec<String> =
                    stages.iter().take(NAMED_STAGES).map(|stage| stage.describe()).collect();
                if stages.len() > NAMED_STAGES {
                    words.push("…".to_owned());
                }
                let noun = if stages.len() == 1 { "stage" } else { "stages" };
                format!("{} {noun} ({})", stages.len(), words.join(", "))
            }
            Self::Sine { mean, amplitude, period } => format!(
                "sine of {} ± {} req/s, period {} s",
                mean.get(),
                amplitude.get(),
                period.s()
            ),
            Self::Bursts { on, off } => {
                format!("bursts ({}, then {})", on.describe(), off.describe())
            }
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::Flat(rate) => {
                digest.text("flat").float(rate.get());
            }
            Self::Ramp { from, to, over, growth } => {
                digest.text(growth.name()).float(from.get()).float(to.get()).signed(over.us());
            }
            Self::Stages(stages) => {
                digest.text("stages").number(stages.len() as u64);
                for stage in stages {
                    digest.float(stage.rate.get()).signed(stage.lasts.us());
                }
            }
            Self::Sine { mean, amplitude, period } => {
                digest.text("sine").float(mean.get()).float(amplitude.get()).signed(period.us());
            }
            Self::Bursts { on, off } => {
                digest.text("bursts");
                for stage in [on, off] {
                    digest.float(stage.rate.get()).signed(stage.lasts.us());
                }
            }
        }
    }
}

/// Stages that a description names one by one.
const NAMED_STAGES: usize = 4;

impl Stage {
    fn describe(self) -> String {
        format!("{} req/s for {} s", self.rate.get(), self.lasts.s())
    }
}

fn is_rate(rate: PerSecond) -> bool {
    rate.get() >= 0.0 && rate.get().is_finite()
}

fn is_length(span: Span) -> bool {
    span > Span::ZERO && span <= HORIZON
}

fn check_ramp(
    from: PerSecond,
    to: PerSecond,
    over: Span,
    growth: Growth,
) -> Result<(), ShapeError> {
    if !is_rate(from) {
        return Err(ShapeError::RampStart(from.get()));
    }
    if growth == Growth::Exponential && from.get() <= 0.0 {
        return Err(ShapeError::RampFromNothing);
    }
    if !is_rate(to) || to.get() <= 0.0 {
        return Err(ShapeError::RampEnd(to.get()));
    }
    if is_length(over) { Ok(()) } else { Err(ShapeError::RampLength(over)) }
}

fn check_stages(stages: &[Stage]) -> Result<(), ShapeError> {
    if stages.is_empty() {
        return Err(ShapeError::NoStage);
    }
    if stages.len() > MAX_STAGES {
        return Err(ShapeError::TooManyStages(stages.len()));
    }
    let mut total = Span::ZERO;
    for (place, stage) in (1..).zip(stages) {
        if !is_rate(stage.rate) {
            return Err(ShapeError::StageRate { place, rate: stage.rate.get() });
        }
        if stage.lasts <= Span::ZERO {
            return Err(ShapeError::StageLength { place, lasts: stage.lasts });
        }
        // Compared before they are added, so that the sum cannot overflow.
        if stage.lasts > HORIZON - total {
            return Err(ShapeError::StagesTooLong);
        }
        total += stage.lasts;
    }
    let silent = stages.iter().all(|stage| stage.rate.get() <= 0.0);
    if silent { Err(ShapeError::Silent("--stages")) } else { Ok(()) }
}

/// Λ of a ramp within its time: from·t + (to − from)·t² ÷ 2D, or
/// from·D ÷ L · (exp(L·t ÷ D) − 1) with L = ln(to ÷ from).
fn ramp_expected(from: f64, to: f64, over_s: f64, growth: Growth, s: f64) -> f64 {
    if growth == Growth::Exponential && !is_level(from, to) {
        let factor = (to / from).ln();
        return from * over_s / factor * (factor * s / over_s).exp_m1();
    }
    from * s + (to - from) * s * s / (2.0 * over_s)
}

/// The inverse of [`ramp_expected`]. The root of the quadratic is written so
/// that nothing cancels when the ramp is nearly level.
fn ramp_instant(from: f64, to: f64, over_s: f64, growth: Growth, expected: f64) -> f64 {
    if expected <= 0.0 {
        return 0.0;
    }
    if growth == Growth::Exponential && !is_level(from, to) {
        let factor = (to / from).ln();
        return over_s / factor * (expected * factor / (from * over_s)).ln_1p();
    }
    let slope = (to - from) / over_s;
    2.0 * expected / (from + (from * from + 2.0 * slope * expected).max(0.0).sqrt())
}

/// Λ of a sine: mean·t + amplitude·P ÷ 2π · (1 − cos(2πt ÷ P)).
fn sine_expected(mean: f64, amplitude: f64, period_s: f64, s: f64) -> f64 {
    let turn = std::f64::consts::TAU / period_s;
    // 1 − cos x as 2·sin²(x ÷ 2), which does not cancel near whole periods.
    mean * s + amplitude / turn * 2.0 * (turn * s / 2.0).sin().powi(2)
}

/// The inverse of [`sine_expected`], which has no closed form: Newton's method
/// within one period, kept inside a bracket, to a nanosecond.
fn sine_instant(mean: f64, amplitude: f64, period_s: f64, expected: f64) -> f64 {
    let turn = std::f64::consts::TAU / period_s;
    let whole = (expected / (mean * period_s)).floor();
    let wanted = (expected - whole * mean * period_s).max(0.0);
    let (mut low, mut high) = (0.0, period_s);
    let mut at = (wanted / mean).min(period_s);
    // Where the rate touches 0, Newton gains a third a step, so that a period
    // of a year takes about a hundred.
    for _ in 0..200 {
        let excess = sine_expected(mean, amplitude, period_s, at) - wanted;
        if excess > 0.0 {
            high = at;
        } else {
            low = at;
        }
        let newton = at - excess / (mean + amplitude * (turn * at).sin());
        let next = if newton >= low && newton <= high { newton } else { f64::midpoint(low, high) };
        let step = (next - at).abs();
        at = next;
        if step < 1e-9 {
            break;
        }
    }
    whole * period_s + at
}

#[cfg(test)]
mod tests;
