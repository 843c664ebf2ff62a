//! Quantiles: the one place that computes them.

use crate::bins::Bins;

/// The quantile `q` in [0, 1] of samples sorted ascending, by linear
/// interpolation at rank (n − 1)·q, as numpy's default and vLLM do.
/// `None` without samples. Infinite samples give an infinite quantile wherever
/// the rank touches one.
pub fn linear(sorted: &[f64], q: f64) -> Option<f64> {
    linear_of(sorted.len(), |index| sorted[index], q)
}

/// The same of `n` samples that are sorted ascending and read one by one, so
/// that they may be kept in a smaller form.
pub fn linear_of(n: usize, sample: impl Fn(usize) -> f64, q: f64) -> Option<f64> {
    let last = n.checked_sub(1)?;
    let rank = q.clamp(0.0, 1.0) * last as f64;
    let below = rank.floor() as usize;
    let (low, high) = (sample(below), sample(rank.ceil() as usize));
    if low == high {
        return Some(low);
    }
    // numpy's own form: counted from the nearer end, so that the result is
    // the same to the last bit.
    let fraction = rank - below as f64;
    let step = high - low;
    if step.is_infinite() {
        return Some(high);
    }
    Some(if fraction >= 0.5 { high - step * (1.0 - fraction) } else { low + step * fraction })
}

/// The same of values that were counted in bins.
pub fn counted(bins: &Bins, q: f64) -> Option<f64> {
    let ranks = bins.ranks();
    linear_of(bins.n() as usize, |rank| ranks.at(rank), q)
}

/// The quantile by nearest rank ⌈q·n⌉, which some peers use.
pub fn nearest_rank(sorted: &[f64], q: f64) -> Option<f64> {
    let n = sorted.len();
    if n == 0 {
        return None;
    }
    // The product is rounded first: 0.99·100 is not exactly 99.
    let rank = (q * n as f64 * 1e9).round() / 1e9;
    Some(sorted[(rank.ceil() as usize).clamp(1, n) - 1])
}

/// Where a quantile lies, as far as counts by upper bounds tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FromBuckets {
    /// Here, by interpolation inside its bucket.
    At(f64),
    /// At or below the first bound: how far below is not told.
    AtMost(f64),
    /// Between two bounds: too few buckets hold anything for an interpolation.
    Within(f64, f64),
    /// Above the last finite bound.
    Above(f64),
}

/// The fewest buckets with observations between whose bounds a quantile is
/// interpolated.
const FEWEST_BUCKETS: usize = 3;

/// The quantile `q` in [0, 1] from upper bounds, ascending, and how many
/// observations lie at or below each, the last bound being infinite. It lies in
/// the bucket that holds rank n·q, and is interpolated there between its bounds,
/// as Prometheus' `histogram_quantile` does; unlike there, not where fewer than
/// three buckets hold anything, and not in the first bucket, whose lower end is
/// unknown. `None` without observations.
pub fn of_buckets(cumulated: &[(f64, f64)], q: f64) -> Option<FromBuckets> {
    let n = cumulated.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
    let rank = n * q.clamp(0.0, 1.0);
    let place = cumulated.iter().position(|(_, count)| *count >= rank && *count > 0.0)?;
    let (bound, under) = cumulated[place];
    let (lower, before) = match place.checked_sub(1) {
        Some(below) => cumulated[below],
        None => (f64::NEG_INFINITY, 0.0),
    };
    let counts = cumulated.iter().map(|(_, count)| *count);
    let steps = counts.clone().zip(std::iter::once(0.0).chain(counts));
    let is_coarse = steps.filter(|(count, below)| count > below).count() < FEWEST_BUCKETS;
    Some(match (lower.is_finite(), bound.is_finite()) {
        (false, false) => return None,
        (true, false) => FromBuckets::Above(lower),
        (false, true) if is_coarse || under > rank => FromBuckets::AtMost(bound),
        (false, true) => FromBuckets::At(bound),
        (true, true) if is_coarse => FromBuckets::Within(lower, bound),
        (true, true) => {
            let share = (rank - before).max(0.0) / (under - before);
            FromBuckets::At(lower + (bound - lower) * share)
        }
    })
}

/// The smallest value at which the weights of values up to it reach a share `q`
/// of all weights: (value, weight) in any order. `None` without weight.
pub fn weighted(values: &[(f64, f64)], q: f64) -> Option<f64> {
    let all: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut passed = 0.0;
    let reached = sorted.iter().find(|(_, weight)| {
        passed += weight;
        passed >= q * all
    });
    reached.filter(|_| all > 0.0).map(|(value, _)| *value)
}

/// True when `n` samples are too few for the quantile `q`: fewer than
/// 10/(1 − q), so that fewer than ten samples lie beyond it.
pub fn has_few_samples(n: usize, q: f64) -> bool {
    (n as f64) * (1.0 - q) < 10.0 - 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_weight_counts_as_often_as_it_is_large() {
        let spans = [(5.0, 1.0), (1.0, 2.0), (9.0, 1.0)];
        assert_eq!(weighted(&spans, 0.5), Some(1.0));
        assert_eq!(weighted(&spans, 0.51), Some(5.0));
        assert_eq!(weighted(&spans, 1.0), Some(9.0));
        assert_eq!(weighted(&[], 0.5), None);
        assert_eq!(weighted(&[(1.0, 0.0)], 0.5), None);
    }

    const SETS: [(&str, &[f64]); 4] = [
        ("a", &[7.0]),
        ("b", &[1.0, 2.0]),
        ("c", &[10.0, 20.0, 30.0]),
        ("d", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]),
    ];

    #[test]
    fn m01_percentiles_of_tiny_samples() {
        let linear_right =
            [[7.0, 7.0, 7.0], [1.5, 1.9, 1.99], [20.0, 28.0, 29.8], [5.5, 9.1, 9.91]];
        let nearest_right =
            [[7.0, 7.0, 7.0], [1.0, 2.0, 2.0], [20.0, 30.0, 30.0], [5.0, 9.0, 10.0]];
        for (index, (name, samples)) in SETS.iter().enumerate() {
            for (column, q) in [0.5, 0.9, 0.99].into_iter().enumerate() {
                let got = linear(samples, q).unwrap();
                assert!((got - linear_right[index][column]).abs() < 1e-12, "{name} {q} {got}");
                assert_eq!(nearest_rank(samples, q), Some(nearest_right[index][column]), "{name}");
            }
            assert!(has_few_samples(samples.len(), 0.99), "{name}");
        }
    }

    #[test]
    fn a_thousand_samples_are_enough_for_p99() {
        assert!(!has_few_samples(1000, 0.99));
        assert!(has_few_samples(999, 0.99));
        assert!(!has_few_samples(20, 0.5));
    }

    #[test]
    fn an_infinite_neighbour_makes_the_quantile_infinite_and_not_nan() {
        for q in [0.1, 0.5, 0.9, 1.0] {
            assert_eq!(linear(&[1.0, f64::INFINITY], q), Some(f64::INFINITY), "{q}");
        }
        assert_eq!(linear(&[1.0, f64::INFINITY], 0.0), Some(1.0));
    }

    #[test]
    fn no_samples_have_no_quantile() {
        assert_eq!(linear(&[], 0.5), None);
        assert_eq!(nearest_rank(&[], 0.5), None);
    }

    #[test]
    fn q08_quantiles_of_buckets() {
        const NONE: f64 = f64::INFINITY;
        let h1 = [(0.1, 10.0), (0.5, 30.0), (1.0, 40.0), (NONE, 40.0)];
        let FromBuckets::At(p50) = of_buckets(&h1, 0.5).unwrap() else { panic!("it is in reach") };
        let FromBuckets::At(p90) = of_buckets(&h1, 0.9).unwrap() else { panic!("it is in reach") };
        assert!((p50 - 0.3).abs() < 1e-12 && (p90 - 0.8).abs() < 1e-12, "{p50} {p90}");
        let h2 = [(0.1, 5.0), (0.5, 9.0), (NONE, 10.0)];
        assert_eq!(of_buckets(&h2, 0.5), Some(FromBuckets::At(0.1)));
        assert_eq!(of_buckets(&h2, 0.3), Some(FromBuckets::AtMost(0.1)));
        let h3 = [(0.001, 208.0), (0.01, 208.0), (NONE, 208.0)];
        assert_eq!(of_buckets(&h3, 0.5), Some(FromBuckets::AtMost(0.001)));
        let h5 = [(0.1, 0.0), (1.0, 0.0), (NONE, 6.0)];
        assert_eq!(of_buckets(&h5, 0.5), Some(FromBuckets::Above(1.0)));
        let two = [(0.1, 4.0), (0.5, 9.0), (NONE, 9.0)];
        assert_eq!(of_buckets(&two, 0.9), Some(FromBuckets::Within(0.1, 0.5)));
        assert_eq!(of_buckets(&[(1.0, 0.0), (NONE, 0.0)], 0.5), None);
        assert_eq!(of_buckets(&[(NONE, 7.0)], 0.5), None);
        assert_eq!(of_buckets(&[], 0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_of_buckets_holds_that_of_their_samples(
            mut samples in prop::collection::vec(0.0f64..10.0, 1..80), q in 0.0f64..=1.0,
        ) {
            samples.sort_by(f64::total_cmp);
            let bounds = [0.5, 1.0, 2.0, 4.0, 8.0, f64::INFINITY];
            let under = |bound: f64| samples.iter().filter(|value| **value <= bound).count();
            let cumulated = bounds.map(|bound| (bound, under(bound) as f64));
            // The sample of this rank lies in the same bucket.
            let rank = (q * samples.len() as f64).ceil().max(1.0) as usize;
            let sample = samples[rank - 1];
            let upper = bounds.into_iter().find(|bound| sample <= *bound).unwrap();
            let lower = bounds.into_iter().rev().find(|bound| *bound < upper).unwrap_or(0.0);
            let holds = match of_buckets(&cumulated, q).unwrap() {
                FromBuckets::At(value) => lower <= value && value <= upper,
                FromBuckets::AtMost(bound) => bound == upper,
                FromBuckets::Within(below, above) => (below, above) == (lower, upper),
                FromBuckets::Above(bound) => bound == lower,
            };
            prop_assert!(holds, "{q} of {samples:?}");
        }

        #[test]
        fn quantiles_are_monotone_and_inside(mut samples in prop::collection::vec(-1e9f64..1e9, 1..60),
                                             a in 0.0f64..=1.0, b in 0.0f64..=1.0) {
            samples.sort_by(f64::total_cmp);
            let (low, high) = (a.min(b), a.max(b));
            for quantile in [linear, nearest_rank] {
                let (x, y) = (quantile(&samples, low).unwrap(), quantile(&samples, high).unwrap());
                prop_assert!(x <= y);
                prop_assert!(samples[0] <= x && y <= samples[samples.len() - 1]);
            }
        }
    }
}
