//! Statistics of one metric over a set of requests or gaps.

use crate::bins::{Bins, Ranks};
use crate::quantile;
use crate::undefined::Undefined;

/// The percentiles that every distribution carries.
pub const PERCENTILES: &[(&str, f64)] =
    &[("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// One sample of a metric, in the metric's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// Observed.
    Exact(f64),
    /// Right-censored: the time-out cut it off, the true value is at least
    /// this.
    AtLeast(f64),
    /// A failure: it never came.
    Unbounded,
}

/// Mean, spread and percentiles of one metric. Every figure is `None` where
/// it is not defined; `unbounded` and `at_least` say where a failure or a
/// time-out is the reason.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distribution {
    /// Samples with a value.
    pub n: u64,
    /// Members of the population without a value, by reason.
    pub undefined: Vec<(Undefined, u64)>,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Population standard deviation (ddof 0).
    pub std: Option<f64>,
    /// Smallest.
    pub min: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
    /// The figures of [`PERCENTILES`], in its order.
    pub percentiles: Vec<Option<f64>>,
    /// Further percentiles asked for: percentile in percent and value.
    pub extra: Vec<(f64, Option<f64>)>,
    /// Names of percentiles with fewer than 10/(1 − p) samples.
    pub few_samples: Vec<String>,
    /// Names of figures that a failure makes infinite.
    pub unbounded: Vec<&'static str>,
    /// Names of figures that are known only to be at least so much.
    pub at_least: Vec<(&'static str, f64)>,
    /// Share of samples that a time-out cut off.
    pub censored: f64,
}

impl Distribution {
    /// Number of members without a value.
    pub fn n_undefined(&self) -> u64 {
        self.undefined.iter().map(|(_, count)| count).sum()
    }

    /// The most frequent reason for a missing value, when there is no sample.
    pub fn reason(&self) -> Undefined {
        self.undefined
            .iter()
            .max_by_key(|(_, count)| *count)
            .map_or(Undefined::NoSamples, |(reason, _)| *reason)
    }

    /// A figure by its name: mean, std, min, max, p50 … p999.
    pub fn figure(&self, name: &str) -> Option<f64> {
        match name {
            "mean" => self.mean,
            "std" => self.std,
            "min" => self.min,
            "max" => self.max,
            _ => {
                let position = PERCENTILES.iter().position(|(known, _)| *known == name)?;
                *self.percentiles.get(position)?
            }
        }
    }

    /// What gaps between chunks say of gaps between tokens: the mean by tokens,
    /// and percentiles only where about every chunk carries one token, because
    /// spreading a gap over its tokens would hide stalls.
    pub(crate) fn by_token(&self, mean: Option<f64>, one_a_chunk: bool) -> Self {
        if one_a_chunk {
            return Self { mean: mean.or(self.mean), ..self.clone() };
        }
        Self {
            n: self.n,
            undefined: vec![(Undefined::ManyTokensPerChunk, self.n)],
            mean,
            percentiles: vec![None; PERCENTILES.len()],
            extra: self.extra.iter().map(|(percent, _)| (*percent, None)).collect(),
            ..Self::default()
        }
    }

    /// The distribution of exact samples.
    pub fn of(samples: Vec<f64>, undefined: Vec<(Undefined, u64)>, extra: &[f64]) -> Self {
        Self::of_samples(samples.into_iter().map(Sample::Exact).collect(), undefined, extra)
    }

    /// A distribution that knows how many samples it has, and no figure yet.
    fn without_figures(n: usize, undefined: Vec<(Undefined, u64)>, extra: &[f64]) -> Self {
        Self {
            n: n as u64,
            undefined,
            percentiles: vec![None; PERCENTILES.len()],
            extra: extra.iter().map(|percent| (*percent, None)).collect(),
            ..Self::default()
        }
    }

    /// The distribution in milliseconds of spans in whole microseconds. Ten
    /// million gaps are 40 MB in this form and 240 MB as [`Sample`]s.
    pub fn of_us(mut spans_us: Vec<u32>, undefined: Vec<(Undefined, u64)>, extra: &[f64]) -> Self {
        spans_us.sort_unstable();
        let n = spans_us.len();
        let mut distribution = Self::without_figures(n, undefined, extra);
        let ms = |index: usize| f64::from(spans_us[index]) / 1e3;
        let (Some(first), Some(last)) = (spans_us.first(), spans_us.last()) else {
            return distribution;
        };
        distribution.min = Some(f64::from(*first) / 1e3);
        distribution.max = Some(f64::from(*last) / 1e3);
        let mean_us = spans_us.iter().map(|us| u64::from(*us)).sum::<u64>() as f64 / n as f64;
        let squares: f64 = spans_us.iter().map(|us| (f64::from(*us) - mean_us).powi(2)).sum();
        distribution.mean = Some(mean_us / 1e3);
        distribution.std = Some((squares / n as f64).sqrt() / 1e3);
        distribution.fill_exact(n, ms, extra);
        distribution
    }

    /// The distribution of samples that were counted in bins: percentiles are
    /// those of the samples within 0.05 %, everything else is exact.
    pub fn of_bins(bins: &Bins, undefined: Vec<(Undefined, u64)>, extra: &[f64]) -> Self {
        Self::of_counted(bins, &Bins::default(), 0, undefined, extra)
    }

    /// The same where some samples were cut off at their values in `at_least`,
    /// and `never` of them are failures.
    pub fn of_counted(
        exact: &Bins,
        at_least: &Bins,
        never: u64,
        undefined: Vec<(Undefined, u64)>,
        extra: &[f64],
    ) -> Self {
        let n = exact.n() + at_least.n() + never;
        let mut distribution = Self::without_figures(n as usize, undefined, extra);
        if n == 0 {
            return distribution;
        }
        let mut all = exact.clone();
        all.add_all(at_least);
        distribution.censored = at_least.n() as f64 / n as f64;
        if exact.n() == n {
            (distribution.mean, distribution.std) = (exact.mean(), exact.std());
        } else if never > 0 {
            distribution.unbounded.push("mean");
        } else {
            distribution.at_least.extend(all.mean().map(|least| ("mean", least)));
        }
        let (lower, upper) = (all.ranks(), exact.ranks());
        let bound = |ranks: &Ranks, q| {
            quantile::linear_of(n as usize, |rank| ranks.at(rank), q).unwrap_or(f64::INFINITY)
        };
        let bounds = |q| (bound(&lower, q), bound(&upper, q));
        distribution.min = distribution.place("min", bounds(0.0));
        distribution.max = distribution.place("max", bounds(1.0));
        distribution.file_percentiles(n as usize, extra, bounds);
        distribution
    }

    fn fill_exact(&mut self, n: usize, ms: impl Fn(usize) -> f64 + Copy, extra: &[f64]) {
        let known = |q| quantile::linear_of(n, ms, q).map(|value| (value, value));
        self.file_percentiles(n, extra, |q| known(q).unwrap_or((f64::NAN, f64::NAN)));
    }

    /// The distribution of samples of which some may be cut off or missing.
    /// Order of the input does not matter: the mean is summed over sorted
    /// samples.
    pub fn of_samples(
        mut samples: Vec<Sample>,
        undefined: Vec<(Undefined, u64)>,
        extra: &[f64],
    ) -> Self {
        samples.sort_by(|a, b| a.most().total_cmp(&b.most()).then(a.least().total_cmp(&b.least())));
        let n = samples.len();
        let mut distribution = Self::without_figures(n, undefined, extra);
        if n == 0 {
            return distribution;
        }
        let cut = samples.iter().filter(|sample| matches!(sample, Sample::AtLeast(_))).count();
        distribution.censored = cut as f64 / n as f64;
        distribution.fill_moments(&samples);
        distribution.fill_percentiles(&samples, extra);
        distribution
    }

    fn fill_moments(&mut self, samples: &[Sample]) {
        let n = samples.len() as f64;
        let exact: Vec<f64> = samples.iter().map_while(|sample| sample.exact()).collect();
        if exact.len() == samples.len() {
            let mean = exact.iter().sum::<f64>() / n;
            let variance = exact.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
            self.mean = Some(mean);
            self.std = Some(variance.sqrt());
        } else if samples.iter().any(|sample| matches!(sample, Sample::Unbounded)) {
            self.unbounded.push("mean");
        } else {
            // With every cut-off sample at its limit the mean is a lower bound.
            let least = samples.iter().map(|sample| sample.least()).sum::<f64>() / n;
            self.at_least.push(("mean", least));
        }
    }

    fn fill_percentiles(&mut self, samples: &[Sample], extra: &[f64]) {
        // A figure is known where it comes out the same with every cut-off
        // sample at its limit and with every one at infinity.
        let mut lower: Vec<f64> = samples.iter().map(|sample| sample.least()).collect();
        lower.sort_by(f64::total_cmp);
        let upper: Vec<f64> = samples.iter().map(|sample| sample.most()).collect();
        let bounds = |q| {
            let least = quantile::linear(&lower, q).unwrap_or(f64::INFINITY);
            (least, quantile::linear(&upper, q).unwrap_or(f64::INFINITY))
        };
        self.min = self.place("min", bounds(0.0));
        self.max = self.place("max", bounds(1.0));
        self.file_percentiles(samples.len(), extra, bounds);
    }

    /// Fills in the percentiles by their lower and upper bounds.
    fn file_percentiles(&mut self, n: usize, extra: &[f64], bounds: impl Fn(f64) -> (f64, f64)) {
        for (position, (name, q)) in PERCENTILES.iter().enumerate() {
            self.percentiles[position] = self.place(name, bounds(*q));
            if quantile::has_few_samples(n, *q) {
                self.few_samples.push((*name).to_owned());
            }
        }
        for (position, percent) in extra.iter().enumerate() {
            let q = (percent / 100.0).clamp(0.0, 1.0);
            let (least, most) = bounds(q);
            self.extra[position].1 = (least == most && least.is_finite()).then_some(least);
            let name = percentile_name(*percent);
            if quantile::has_few_samples(n, q) && !self.few_samples.contains(&name) {
                self.few_samples.push(name);
            }
        }
    }

    /// Files a figure by its bounds: known, known to be at least so much, or
    /// made infinite by a failure.
    fn place(&mut self, name: &'static str, (least, most): (f64, f64)) -> Option<f64> {
        if least.is_infinite() {
            self.unbounded.push(name);
            return None;
        }
        if least < most {
            self.at_least.push((name, least));
            return None;
        }
        Some(least)
    }
}

impl Sample {
    fn exact(self) -> Option<f64> {
        match self {
            Self::Exact(value) => Some(value),
            _ => None,
        }
    }

    fn least(self) -> f64 {
        match self {
            Self::Exact(value) | Self::AtLeast(value) => value,
            Self::Unbounded => f64::INFINITY,
        }
    }

    fn most(self) -> f64 {
        match self {
            Self::Exact(value) => value,
            Self::AtLeast(_) | Self::Unbounded => f64::INFINITY,
        }
    }
}

/// `p99` for 99, `p99.9` for 99.9, as vLLM names them.
pub fn percentile_name(percent: f64) -> String {
    format!("p{percent}")
}

/// Mean with weights: Σ wᵢ·xᵢ ÷ Σ wᵢ over pairs (value, weight). `None` when
/// the weights sum to nothing.
pub fn weighted_mean(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<f64> {
    let (sum, weight) = pairs
        .into_iter()
        .fold((0.0, 0.0), |(sum, total), (value, weight)| (sum + value * weight, total + weight));
    (weight > 0.0).then(|| sum / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m07_failed_requests_do_not_enter_as_zeros() {
        let ok = Distribution::of(vec![100.0, 110.0, 120.0], vec![(Undefined::NotOk, 3)], &[]);
        assert_eq!((ok.n, ok.n_undefined()), (3, 3));
        assert_eq!((ok.min, ok.figure("p50"), ok.mean), (Some(100.0), Some(110.0), Some(110.0)));
    }

    #[test]
    fn m10_time_outs_cut_the_tail() {
        let mut samples = vec![Sample::Exact(100_000.0); 90];
        samples.extend(vec![Sample::AtLeast(300_000.0); 10]);
        let all = Distribution::of_samples(samples, vec![], &[]);
        assert_eq!(all.figure("p50"), Some(100_000.0));
        assert_eq!(all.figure("p99"), None);
        assert!(all.at_least.contains(&("p99", 300_000.0)));
        assert_eq!(all.censored, 0.1);
        assert!(all.unbounded.is_empty());
    }

    #[test]
    fn a_failure_makes_the_tail_and_the_mean_infinite() {
        let mut samples = vec![Sample::Exact(10.0); 9];
        samples.push(Sample::Unbounded);
        let all = Distribution::of_samples(samples, vec![], &[]);
        assert_eq!(all.unbounded, ["mean", "max", "p90", "p95", "p99", "p999"]);
        assert_eq!((all.mean, all.figure("p50")), (None, Some(10.0)));
    }

    #[test]
    fn a_limit_below_known_values_leaves_what_lies_above_it_open() {
        // The cut-off sample may be 5, and then the median is 3.5, or larger
        // than everything, and then it is 51.
        let samples =
            [Sample::Exact(1.0), Sample::Exact(2.0), Sample::Exact(100.0), Sample::AtLeast(5.0)];
        let all = Distribution::of_samples(samples.to_vec(), vec![], &[0.0, 50.0, 200.0]);
        assert_eq!((all.figure("p50"), all.min, all.max), (None, Some(1.0), None));
        assert!(all.at_least.contains(&("p50", 3.5)));
        assert!(all.at_least.contains(&("max", 100.0)));
        assert_eq!(all.extra, [(0.0, Some(1.0)), (50.0, None), (200.0, None)]);
    }

    #[test]
    fn spans_in_microseconds_give_the_same_figures_as_samples() {
        let us = vec![900u32, 100, 100, 70_000, 3, 12_345];
        let lean = Distribution::of_us(us.clone(), vec![], &[75.0]);
        let ms = us.iter().map(|us| f64::from(*us) / 1e3).collect();
        let wide = Distribution::of(ms, vec![], &[75.0]);
        assert_eq!(lean.percentiles, wide.percentiles);
        assert_eq!((lean.n, lean.min, lean.max, &lean.extra), (6, wide.min, wide.max, &wide.extra));
        let near = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-9;
        assert!(near(lean.mean, wide.mean) && near(lean.std, wide.std));
        assert_eq!(lean.few_samples, wide.few_samples);
    }

    #[test]
    fn counted_samples_give_the_figures_of_samples() {
        let samples = [
            Sample::Exact(1.5),
            Sample::Exact(2.0),
            Sample::AtLeast(5.0),
            Sample::Exact(100.0),
            Sample::Unbounded,
        ];
        for (from, until) in [(0, 2), (0, 4), (2, 3), (4, 5), (0, 5), (1, 1)] {
            let samples = &samples[from..until];
            let (mut exact, mut at_least, mut never) = (Bins::default(), Bins::default(), 0);
            for sample in samples {
                match sample {
                    Sample::Exact(value) => exact.add(*value),
                    Sample::AtLeast(value) => at_least.add(*value),
                    Sample::Unbounded => never += 1,
                }
            }
            let extra = [0.0, 30.0, 75.0];
            assert_eq!(
                Distribution::of_counted(&exact, &at_least, never, vec![], &extra),
                Distribution::of_samples(samples.to_vec(), vec![], &extra),
            );
        }
    }

    #[test]
    fn standard_deviation_has_no_degrees_of_freedom_removed() {
        let two = Distribution::of(vec![1.0, 3.0], vec![], &[]);
        assert_eq!(two.std, Some(1.0));
    }

    #[test]
    fn nothing_measured_gives_nothing() {
        let none = Distribution::of(vec![], vec![(Undefined::NotOk, 4)], &[75.0]);
        assert_eq!((none.mean, none.min, none.figure("p99")), (None, None, None));
        assert_eq!(none.reason(), Undefined::NotOk);
        assert_eq!(none.extra, [(75.0, None)]);
    }

    #[test]
    fn question_1_of_seed_000_request_and_token_weights_differ() {
        // Two requests: 2 tokens at 100 ms, 101 tokens at 10 ms a gap.
        let token_weighted = weighted_mean([(100.0, 1.0), (10.0, 100.0)]).unwrap();
        assert!((token_weighted - 1100.0 / 101.0).abs() < 1e-12);
        assert_eq!(weighted_mean([]), None);
    }
}
