//! When requests arrive by the clock: a process of gaps, put on the rate that a
//! shape has over time.

use measure::{At, PerSecond, Span};

use crate::digest::Digest;
use crate::shape::Shape;
use crate::stream::Stream;

/// How arrivals lie between each other, at a rate of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Process {
    /// The same gap always. The first arrival is at 0, so that [0, t) holds
    /// exactly ⌈λt⌉ of them.
    Constant,
    /// Exponential gaps.
    Poisson,
    /// Gamma gaps of this shape, above 0: their coefficient of variation is
    /// 1/√burstiness. A burstiness of 1 is a Poisson process.
    Gamma {
        /// The shape.
        burstiness: f64,
    },
    /// One arrival at a uniformly drawn instant of each interval of 1/λ: the
    /// count is that of constant gaps, and no arrival keeps step with anything
    /// on the server.
    Uniform,
}

impl Process {
    /// The process that vLLM's burstiness means.
    pub fn of_burstiness(burstiness: f64) -> Self {
        if burstiness == 1.0 {
            Self::Poisson
        } else if burstiness == f64::INFINITY {
            Self::Constant
        } else {
            Self::Gamma { burstiness }
        }
    }

    /// The burstiness that it has, infinite for constant gaps; `None` for what
    /// is no gamma process.
    pub const fn burstiness(self) -> Option<f64> {
        match self {
            Self::Constant => Some(f64::INFINITY),
            Self::Poisson => Some(1.0),
            Self::Gamma { burstiness } => Some(burstiness),
            Self::Uniform => None,
        }
    }

    /// The name in flags.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Poisson => "poisson",
            Self::Gamma { .. } => "gamma",
            Self::Uniform => "uniform",
        }
    }

    /// The process in words.
    pub fn describe(self) -> String {
        match self {
            Self::Constant => "constant gaps".to_owned(),
            Self::Poisson => "Poisson process".to_owned(),
            Self::Gamma { burstiness } => format!("gamma process, burstiness {burstiness}"),
            Self::Uniform => "one arrival at random in each interval".to_owned(),
        }
    }
}

/// Arrivals by the clock: a process and its rate over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    /// How arrivals lie between each other.
    pub process: Process,
    /// The rate.
    pub shape: Shape,
}

impl Pace {
    /// One rate, and gaps of this burstiness.
    pub fn flat(rate: PerSecond, burstiness: f64) -> Self {
        Self { process: Process::of_burstiness(burstiness), shape: Shape::Flat(rate) }
    }

    /// The process, and the shape where it is not one rate.
    pub fn describe(&self) -> String {
        match self.shape {
            Shape::Flat(_) => self.process.describe(),
            _ => format!("{}, {}", self.shape.describe(), self.process.describe()),
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        match (self.shape.flat(), self.process.burstiness()) {
            // As it was before there were shapes, so that the digests of old
            // runs still match.
            (Some(rate), Some(burstiness)) => {
                digest.float(rate.get()).float(burstiness);
            }
            _ => {
                digest.text(self.process.name());
                digest.float(self.process.burstiness().unwrap_or_default());
                self.shape.digest(digest);
            }
        }
    }
}

/// The instants of arrivals, in order. They end where the shape does.
///
/// A random process has its first arrival after one gap, so that the counts in
/// [0, t) are those of the process.
///
/// The instants are **not** rescaled so that the last falls on N/λ, as vLLM
/// does. Rescaling fixes the count in the window, which removes the variance
/// that makes a Poisson process one, and with it the load peaks that queues
/// come from. The price is that the drawn rate differs from λ by about 1/√N;
/// the offered rate is reported as it was drawn.
///
/// Sums are kept as floats, in seconds where there is one rate and otherwise in
/// expected arrivals, and each instant is rounded by itself to whole
/// microseconds, so rounding does not add up.
#[derive(Clone, Debug)]
pub struct Arrivals {
    pace: Pace,
    stream: Stream,
    elapsed: f64,
    drawn: u64,
}

impl Arrivals {
    /// Arrivals at this pace, which [`crate::Load::check`] has found in order.
    pub fn new(pace: Pace, stream: Stream) -> Self {
        Self { pace, stream, elapsed: 0.0, drawn: 0 }
    }
}

impl Iterator for Arrivals {
    type Item = At;

    fn next(&mut self) -> Option<At> {
        let rate = self.pace.shape.flat().map_or(1.0, PerSecond::get);
        match self.pace.process {
            // Divided anew each time: a sum of 0.1 s drifts, 3/10 does not.
            Process::Constant => self.elapsed = self.drawn as f64 / rate,
            Process::Uniform => {
                self.elapsed = (self.drawn as f64 + self.stream.unit()) / rate;
            }
            Process::Poisson => self.elapsed += self.stream.exponential() / rate,
            Process::Gamma { burstiness } => {
                self.elapsed += self.stream.gamma(burstiness) / rate;
            }
        }
        self.drawn += 1;
        let at_s = match &self.pace.shape {
            Shape::Flat(_) => self.elapsed,
            shape => shape.instant_of(self.elapsed)?,
        };
        Some(At::ZERO + Span::from_s(at_s))
    }
}

/// The index of dispersion of counts: variance ÷ mean of the number of arrivals
/// in equal windows. 1 for a Poisson process, 0 for constant gaps, above 1 for
/// bursts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// Variance (n − 1 in the denominator) ÷ mean.
    pub index: f64,
    /// Whole windows that were counted.
    pub windows: u64,
}

impl Dispersion {
    /// The band in which the index of a true Poisson process lies in 99 of 100
    /// cases. (windows − 1)·index is then near χ² with windows − 1 degrees of
    /// freedom; its quantiles by Wilson and Hilferty (1931), within 1 % from
    /// ten windows on.
    pub fn poisson_band_99(self) -> (f64, f64) {
        let freedom = self.windows.saturating_sub(1).max(1) as f64;
        let deviation = 2.0 / (9.0 * freedom);
        let quantile = |z: f64| (1.0 - deviation + z * deviation.sqrt()).max(0.0).powi(3);
        (quantile(-2.575_829_303_5), quantile(2.575_829_303_5))
    }
}

/// The index of dispersion of `arrivals`, which must be in order. Windows are
/// laid from just after the first arrival, which is a renewal and so as good an
/// origin as any; the last, incomplete window is left out. `None` with fewer
/// than two windows or a window of no length: a variance needs two counts.
pub fn index_of_dispersion(arrivals: &[At], window: Span) -> Option<Dispersion> {
    let (first, last) = (*arrivals.first()?, *arrivals.last()?);
    if window <= Span::ZERO || last < first {
        return None;
    }
    let windows = ((last - first).us() / window.us()) as u64;
    if windows < 2 {
        return None;
    }
    // Empty windows add nothing to either sum, so only runs are walked: the
    // memory does not depend on the window.
    let (mut total, mut squares) = (0u64, 0u128);
    let (mut current, mut count) = (0u64, 0u64);
    let mut close = |count: u64| {
        total += count;
        squares += u128::from(count) * u128::from(count);
    };
    for &at in &arrivals[1..] {
        // (first, first + window] is window 0.
        let position = ((at - first).us() - 1).max(0) as u64 / window.us() as u64;
        if position >= windows {
            break;
        }
        if position != current {
            close(count);
            (current, count) = (position, 0);
        }
        count += 1;
    }
    close(count);
    let n = windows as f64;
    let mean = total as f64 / n;
    let variance = (squares as f64 - n * mean * mean) / (n - 1.0);
    (total > 0).then(|| Dispersion { index: (variance / mean).max(0.0), windows })
}

#[cfg(test)]
mod tests;
