//! Histograms with fixed bounds.

use std::sync::Arc;

/// Counts of values between bounds, and their sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: Arc<[f64]>,
    /// One for each bound, and one for what lies above the last.
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// Nothing counted yet. Bounds rise; a value that equals one is under it.
    pub fn new(bounds: impl Into<Arc<[f64]>>) -> Self {
        let bounds = bounds.into();
        Self { counts: vec![0; bounds.len() + 1], bounds, sum: 0.0 }
    }

    /// Counts one value.
    pub fn observe(&mut self, value: f64) {
        self.observe_shares(value, 1);
    }

    /// Counts a value as so many equal parts.
    pub fn observe_shares(&mut self, value: f64, parts: u32) {
        if parts == 0 {
            return;
        }
        let part = value / f64::from(parts);
        let place = self.bounds.partition_point(|bound| *bound < part);
        self.counts[place] += u64::from(parts);
        self.sum += value;
    }

    /// Values counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the values.
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// Bounds, each with the number of values up to it.
    pub fn cumulated(&self) -> impl Iterator<Item = (f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(&self.counts).scan(0, |below, (bound, count)| {
            *below += count;
            Some((bound, *below))
        })
    }

    /// The values of both, which have the same bounds.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let both = self.counts.iter().zip(&other.counts).map(|(one, other)| one + other);
        Self { bounds: Arc::clone(&self.bounds), counts: both.collect(), sum: self.sum + other.sum }
    }
}
