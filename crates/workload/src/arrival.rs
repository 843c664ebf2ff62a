//! When requests arrive by the clock: renewal processes with gamma gaps.

use measure::{At, PerSecond, Span};

use crate::stream::Stream;

/// The instants of an arrival process, in order, without end.
///
/// Gaps are gamma distributed with mean 1/λ and shape = burstiness, so their
/// coefficient of variation is 1/√burstiness: 1 is a Poisson process, infinite
/// a constant gap. A random process has its first arrival after one gap, so
/// that the counts in [0, t) are those of the process; with constant gaps the
/// first is at 0, so that [0, t) holds exactly ⌈λt⌉ of them.
///
/// The instants are **not** rescaled so that the last falls on N/λ, as vLLM
/// does. Rescaling fixes the count in the window, which removes the variance
/// that makes a Poisson process one, and with it the load peaks that queues
/// come from. The price is that the drawn rate differs from λ by about 1/√N;
/// the offered rate is reported as it was drawn.
///
/// Sums are kept as floats in seconds and each instant is rounded by itself to
/// whole microseconds, so rounding does not add up.
#[derive(Clone, Debug)]
pub struct Arrivals {
    rate: f64,
    burstiness: f64,
    stream: Stream,
    elapsed_s: f64,
    drawn: u64,
}

impl Arrivals {
    /// Arrivals at `rate`, finite and above 0, with this burstiness, above 0
    /// or infinite. [`crate::Load::check`] holds the caller to that.
    pub fn new(rate: PerSecond, burstiness: f64, stream: Stream) -> Self {
        Self { rate: rate.get(), burstiness, stream, elapsed_s: 0.0, drawn: 0 }
    }
}

impl Iterator for Arrivals {
    type Item = At;

    fn next(&mut self) -> Option<At> {
        if self.burstiness == f64::INFINITY {
            // Divided anew each time: a sum of 0.1 s drifts, 3/10 does not.
            self.elapsed_s = self.drawn as f64 / self.rate;
        } else {
            self.elapsed_s += self.stream.gamma(self.burstiness) / self.rate;
        }
        self.drawn += 1;
        Some(At::ZERO + Span::from_s(self.elapsed_s))
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
