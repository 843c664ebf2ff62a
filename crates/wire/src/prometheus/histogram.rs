//! Histograms as values: added over engines, and differenced over time.

use std::collections::BTreeMap;

use super::layout::Labels;
use super::{Family, Part};

/// Counts by upper bounds, with their sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Upper bounds, ascending, with how many are at or under each. The last
    /// bound is infinite; where an exporter leaves that one out it is the count.
    buckets: Vec<(f64, f64)>,
    sum: Option<f64>,
    count: Option<f64>,
}

/// A count that is smaller than one at a lower bound.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{count} are at or under {bound}, fewer than under a smaller bound")]
pub struct NotCumulative {
    /// The bound.
    pub bound: f64,
    /// Its count.
    pub count: f64,
}

impl Histogram {
    /// Those of a family, by their labels. A plain value, as a counter has, is
    /// taken as a count.
    pub fn all_of(family: Family<'_>) -> BTreeMap<&Labels, Self> {
        let mut all: BTreeMap<&Labels, Self> = BTreeMap::new();
        for sample in family.samples() {
            all.entry(sample.labels).or_default().take(sample.part, sample.value);
        }
        all.values_mut().for_each(Self::settle);
        all
    }

    fn take(&mut self, part: Part, value: f64) {
        match part {
            _ if value.is_nan() => {}
            Part::Bucket(bound) if !bound.is_nan() => self.buckets.push((bound, value)),
            Part::Sum => self.sum = Some(value),
            Part::Count | Part::Value => self.count = Some(value),
            Part::Bucket(_) | Part::Quantile(_) => {}
        }
    }

    /// Sorts the bounds, and takes from the count what the last bound lacks, or
    /// the other way round.
    fn settle(&mut self) {
        self.buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all = self.buckets.last().filter(|(bound, _)| *bound == f64::INFINITY);
        match (all, self.count) {
            (Some((_, all)), None) => self.count = Some(*all),
            (None, Some(count)) if !self.buckets.is_empty() => {
                self.buckets.push((f64::INFINITY, count));
            }
            _ => {}
        }
    }

    /// Whether it has bounds.
    pub const fn has_buckets(&self) -> bool {
        !self.buckets.is_empty()
    }

    /// How many were observed; none where neither a count nor an infinite bound
    /// is told.
    pub const fn count(&self) -> Option<f64> {
        self.count
    }

    /// The sum of what was observed.
    pub const fn sum(&self) -> Option<f64> {
        self.sum
    }

    /// The mean; none where nothing was observed.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count.filter(|count| *count > 0.0)?;
        Some(self.sum? / count)
    }

    /// Upper bounds with how many are at or under each.
    ///
    /// # Errors
    /// The first bound with fewer than a smaller one has: no quantile follows
    /// from such counts.
    pub fn buckets(&self) -> Result<&[(f64, f64)], NotCumulative> {
        let falls = self.buckets.windows(2).find(|pair| pair[1].1 < pair[0].1);
        match falls {
            Some(pair) => Err(NotCumulative { bound: pair[1].0, count: pair[1].1 }),
            None => Ok(&self.buckets),
        }
    }

    /// Whether the exporter started again between `earlier` and this one: a
    /// count, or one of a bound, fell.
    pub fn fell_since(&self, earlier: &Self) -> bool {
        let fell = |now: Option<f64>, then: Option<f64>| now.zip(then).is_some_and(|(n, t)| n < t);
        fell(self.count, earlier.count)
            || earlier.buckets.iter().any(|(bound, then)| fell(self.under(*bound), Some(*then)))
    }

    /// What was observed since `earlier`. Bounds that only one of them has are
    /// left out: nothing is known of them.
    pub fn since(&self, earlier: &Self) -> Self {
        let buckets = self.buckets.iter();
        Self {
            buckets: buckets
                .filter_map(|(bound, now)| Some((*bound, now - earlier.under(*bound)?)))
                .collect(),
            sum: self.sum.zip(earlier.sum).map(|(now, then)| now - then),
            count: self.count.zip(earlier.count).map(|(now, then)| now - then),
        }
    }

    /// This one and another together, over the bounds that both have.
    pub fn with(&self, other: &Self) -> Self {
        let buckets = self.buckets.iter();
        Self {
            buckets: buckets
                .filter_map(|(bound, one)| Some((*bound, one + other.under(*bound)?)))
                .collect(),
            sum: self.sum.zip(other.sum).map(|(one, other)| one + other),
            count: self.count.zip(other.count).map(|(one, other)| one + other),
        }
    }

    fn under(&self, bound: f64) -> Option<f64> {
        let place = self.buckets.binary_search_by(|(other, _)| other.total_cmp(&bound)).ok()?;
        Some(self.buckets[place].1)
    }
}
