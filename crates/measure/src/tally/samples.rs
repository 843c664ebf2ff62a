//! Values of requests counted metric by metric.

use crate::bins::Bins;
use crate::metric::{How, METRICS, Metric};
use crate::request::{Timed, Value};
use crate::statistics::{Distribution, Sample};
use crate::summary::{OF_ALL_REQUESTS, without_value};
use crate::undefined::Undefined;

/// A metric that each request has a value of, or a reason.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) metric: &'static Metric,
    value: fn(&Timed<'_>) -> Value,
    /// Whether it is shown of all requests too.
    of_all: bool,
}

/// Every such metric.
pub(super) fn of_requests() -> Vec<Measured> {
    let values = METRICS.iter().filter_map(|metric| match metric.how {
        How::Request(value) => {
            Some(Measured { metric, value, of_all: OF_ALL_REQUESTS.contains(&metric.key) })
        }
        _ => None,
    });
    values.collect()
}

/// How often values were missing, by reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reasons([u64; Undefined::ALL.len()]);

impl Default for Reasons {
    fn default() -> Self {
        Self([0; Undefined::ALL.len()])
    }
}

impl Reasons {
    pub(super) fn add(&mut self, reason: Undefined) {
        self.0[reason as usize] += 1;
    }

    pub(super) fn add_all(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, count)| *sum += count);
    }

    pub(super) fn list(&self) -> Vec<(Undefined, u64)> {
        let counts = Undefined::ALL.iter().zip(&self.0);
        counts.filter(|(_, count)| **count > 0).map(|(reason, count)| (*reason, *count)).collect()
    }
}

/// Values of some requests, by metric in the order of [`of_requests`].
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<(Bins, Reasons)>);

impl Samples {
    /// Takes in a request. False where it lacks a value that is shown of all
    /// requests.
    pub(super) fn add(&mut self, metrics: &[Measured], request: &Timed<'_>) -> bool {
        self.0.resize_with(metrics.len(), Default::default);
        let mut whole = true;
        for (measured, (bins, reasons)) in metrics.iter().zip(&mut self.0) {
            match (measured.value)(request) {
                Ok(value) => bins.add(value),
                Err(reason) => {
                    reasons.add(reason);
                    whole &= !measured.of_all;
                }
            }
        }
        whole
    }

    /// All of these together.
    pub(super) fn together(all: &[&Self]) -> Self {
        let mut sum = Self::default();
        for samples in all {
            sum.0.resize_with(sum.0.len().max(samples.0.len()), Default::default);
            for ((bins, reasons), (more, missing)) in sum.0.iter_mut().zip(&samples.0) {
                bins.add_all(more);
                reasons.add_all(missing);
            }
        }
        sum
    }

    /// The values of the metric at a place.
    pub(super) fn bins(&self, place: usize) -> Bins {
        self.0.get(place).map_or_else(Bins::default, |(bins, _)| bins.clone())
    }

    pub(super) fn distribution(&self, place: usize, extra: &[f64]) -> Distribution {
        let (bins, reasons) = self.0.get(place).cloned().unwrap_or_default();
        Distribution::of_bins(&bins, reasons.list(), extra)
    }

    pub(super) fn held(&self) -> usize {
        self.0.iter().map(|(bins, _)| bins.held()).sum()
    }
}

/// Requests without a value, as the distributions of all requests have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Unfinished([Missing; OF_ALL_REQUESTS.len()]);

#[derive(Clone, Debug, Default)]
struct Missing {
    exact: Bins,
    at_least: Bins,
    never: u64,
    reasons: Reasons,
}

impl Unfinished {
    /// Takes in a request that lacks one of the values.
    pub(super) fn add(
        &mut self,
        metrics: &[Measured],
        request: &Timed<'_>,
        generates: bool,
        censored_at: Option<f64>,
    ) {
        for (key, missing) in OF_ALL_REQUESTS.iter().zip(&mut self.0) {
            let Some(measured) = metrics.iter().find(|known| known.metric.key == *key) else {
                continue;
            };
            let (metric, value) = (measured.metric, (measured.value)(request));
            let Err(reason) = value else { continue };
            match without_value(request, metric, generates, censored_at, reason) {
                Ok(Sample::Exact(ms)) => missing.exact.add(ms),
                Ok(Sample::AtLeast(ms)) => missing.at_least.add(ms),
                Ok(Sample::Unbounded) => missing.never += 1,
                Err(reason) => missing.reasons.add(reason),
            }
        }
    }

    /// The distributions of all requests, of which `samples` have a value.
    pub(super) fn distributions(
        &self,
        metrics: &[Measured],
        samples: &Samples,
        extra: &[f64],
    ) -> Vec<(&'static str, Distribution)> {
        let named = OF_ALL_REQUESTS.iter().zip(&self.0).filter_map(|(key, missing)| {
            let place = metrics.iter().position(|known| known.metric.key == *key)?;
            let mut exact = samples.bins(place);
            exact.add_all(&missing.exact);
            let Missing { at_least, never, reasons, .. } = missing;
            let found = Distribution::of_counted(&exact, at_least, *never, reasons.list(), extra);
            Some((*key, found))
        });
        named.collect()
    }
}
