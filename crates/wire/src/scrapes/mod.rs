//! What was scraped of servers and exporters during a run: expositions with
//! their instants on the run's clock, bounded, and as one file.
//!
//! The file, `metrics.parquet`, is in long form, one row a sample, so that any
//! Parquet reader can draw a series of it. Stages and findings are computed from
//! what it holds and from nothing else, so that they can be recomputed from a
//! run's directory.

mod file;
pub mod queried;
mod seen;
mod spelling;

use measure::window::Window;
use measure::{At, Span};

use crate::prometheus::{Exposition, Kind, Part, Sample};

pub use file::{MAX_ROWS, MetricsError, VERSION, checksum, decode, encode};

/// The most values that are kept of all sources together: 64 MB. An engine tells
/// about a thousand each time, which is two hours of a scrape a second before
/// the first is left out.
pub const MOST_VALUES: usize = 8 << 20;

/// Different reasons of failed scrapes that are kept of a source. One that fails
/// for more has been seen to fail for enough.
const MOST_REASONS: usize = 16;

/// One scrape that gave metrics.
#[derive(Clone, Debug)]
pub struct Scrape {
    /// When its values were told: the middle of the exchange.
    pub at: At,
    /// How long the exchange took.
    pub took: Span,
    /// How long after its planned instant it began.
    pub late: Span,
    /// What was told.
    pub exposition: Exposition,
}

/// Scrapes that gave nothing for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why, in words.
    pub reason: String,
    /// How many.
    pub count: u32,
    /// When the last one was.
    pub last_at: At,
}

/// Where metrics were read, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// Address without secrets, or `nvml`.
    pub name: String,
    /// Whether it was looked for without being asked for: that there is nothing
    /// is then no mistake of the user's.
    pub is_found: bool,
    /// Scrapes that gave metrics, in their order.
    pub scrapes: Vec<Scrape>,
    /// Scrapes that gave none, by reason.
    pub failed: Vec<Failed>,
    /// Scrapes that gave metrics and were left out, to keep to a bound.
    pub left_out: u32,
}

/// Everything that was scraped during a run.
#[derive(Clone, Debug, Default)]
pub struct Collected {
    /// By source, in the order in which they were named.
    pub sources: Vec<Source>,
    /// The distance between scrapes that was asked for.
    pub interval: Span,
}

impl Collected {
    /// Whether anything was told.
    pub fn is_empty(&self) -> bool {
        self.sources.iter().all(|source| source.scrapes.is_empty())
    }
}

impl Source {
    /// One that was not scraped yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Takes a scrape that failed.
    pub fn fail(&mut self, at: At, reason: String) {
        if let Some(failed) = self.failed.iter_mut().find(|failed| failed.reason == reason) {
            failed.count += 1;
            failed.last_at = at;
        } else if self.failed.len() < MOST_REASONS {
            self.failed.push(Failed { reason, count: 1, last_at: at });
        }
    }
}

/// Keeps the scrapes of a source within a bound. When they are too many, every
/// second one between the first and the last goes, and from then on every second
/// new one: what is left is evenly spaced, whatever the length of the run.
#[derive(Debug)]
pub struct Keeper {
    source: Source,
    most_values: usize,
    values: usize,
    /// Of so many scrapes one is kept.
    stride: usize,
    /// Scrapes so far.
    count: usize,
}

impl Keeper {
    /// For a source of which so many values may be kept.
    pub fn new(source: Source, most_values: usize) -> Self {
        Self { source, most_values, values: 0, stride: 1, count: 0 }
    }

    /// Takes a scrape that gave metrics.
    pub fn push(&mut self, scrape: Scrape) {
        // The newest one is kept until the next one comes, for it may be the last.
        let scrapes = &mut self.source.scrapes;
        let is_off_stride = !self.count.saturating_sub(1).is_multiple_of(self.stride);
        if is_off_stride && let Some(newest) = scrapes.pop() {
            self.values -= newest.exposition.series();
            self.source.left_out += 1;
        }
        self.count += 1;
        self.values += scrape.exposition.series();
        scrapes.push(scrape);
        while self.values > self.most_values && self.source.scrapes.len() > 2 {
            self.halve();
        }
    }

    /// Takes a scrape that failed.
    pub fn fail(&mut self, at: At, reason: String) {
        self.source.fail(at, reason);
    }

    /// What was kept.
    pub fn into_source(self) -> Source {
        self.source
    }

    fn halve(&mut self) {
        let scrapes = std::mem::take(&mut self.source.scrapes);
        let last = scrapes.len() - 1;
        for (place, scrape) in scrapes.into_iter().enumerate() {
            if place % 2 == 0 || place == last {
                self.source.scrapes.push(scrape);
            } else {
                self.values -= scrape.exposition.series();
                self.source.left_out += 1;
            }
        }
        self.stride *= 2;
    }
}

/// Which scrapes of a source are kept with the buckets of their histograms: the
/// first and the last, those at both edges of the window that is measured, and
/// those beside a restart. Between them only sums and counts are looked at, and
/// buckets are most of what an engine tells.
fn with_buckets(scrapes: &[Scrape], window: Option<Window>) -> Vec<bool> {
    let mut whole = vec![false; scrapes.len()];
    let Some(last) = scrapes.len().checked_sub(1) else { return whole };
    (whole[0], whole[last]) = (true, true);
    if let Some(window) = window {
        let before = scrapes.iter().rposition(|scrape| scrape.at <= window.from);
        let after = scrapes.iter().position(|scrape| scrape.at >= window.until);
        [before, after].into_iter().flatten().for_each(|place| whole[place] = true);
    }
    for (place, pair) in scrapes.windows(2).enumerate() {
        if differs(&pair[0].exposition, &pair[1].exposition) {
            (whole[place], whole[place + 1]) = (true, true);
        }
    }
    whole
}

/// Whether a counter fell from one scrape to the next, or other series were told.
fn differs(before: &Exposition, after: &Exposition) -> bool {
    let mut earlier = samples(before);
    for (family, kind, now) in samples(after) {
        let Some((name, _, then)) = earlier.next() else { return true };
        if (name, then.part, then.labels) != (family, now.part, now.labels) {
            return true;
        }
        let grows = match now.part {
            Part::Count => true,
            Part::Value => kind == Kind::Counter,
            _ => false,
        };
        if grows && now.value < then.value {
            return true;
        }
    }
    earlier.next().is_some()
}

/// Every sample with the name and the kind of its family.
fn samples(exposition: &Exposition) -> impl Iterator<Item = (&str, Kind, Sample<'_>)> {
    exposition.families().flat_map(|family| {
        family.samples().map(move |sample| (family.name(), family.kind(), sample))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus;

    fn scrape(at_s: i64, text: &str) -> Scrape {
        let exposition = prometheus::read(text.as_bytes()).expect("it is an exposition");
        Scrape { at: At::from_us(at_s * 1_000_000), took: Span::ZERO, late: Span::ZERO, exposition }
    }

    fn kept(most_values: usize, scrapes: i64) -> Source {
        let mut keeper = Keeper::new(Source::new("a"), most_values);
        for at_s in 0..scrapes {
            keeper.push(scrape(at_s, &format!("x {at_s}\ny 1\n")));
        }
        keeper.into_source()
    }

    #[test]
    fn scrapes_are_thinned_evenly_and_the_first_and_the_last_stay() {
        for scrapes in 1..200 {
            let source = kept(20, scrapes);
            let at_s: Vec<i64> =
                source.scrapes.iter().map(|scrape| scrape.at.us() / 1_000_000).collect();
            assert!(at_s.len() <= 10, "{at_s:?}");
            assert_eq!((at_s.first(), at_s.last()), (Some(&0), Some(&(scrapes - 1))));
            assert_eq!(at_s.len() + source.left_out as usize, scrapes as usize);
            let gaps: Vec<i64> = at_s.windows(2).map(|pair| pair[1] - pair[0]).collect();
            // The newest one is there wherever it lies.
            let even = &gaps[..gaps.len().saturating_sub(1)];
            assert!(even.windows(2).all(|pair| pair[0] == pair[1]), "{at_s:?}");
        }
    }

    #[test]
    fn a_bound_that_one_scrape_exceeds_keeps_two() {
        assert_eq!(kept(1, 9).scrapes.len(), 2);
    }

    #[test]
    fn buckets_stay_at_edges_and_beside_restarts() {
        let histogram = |count: u32| {
            format!("# TYPE h histogram\nh_bucket{{le=\"+Inf\"}} {count}\nh_count {count}\n")
        };
        let counts = [1, 2, 3, 4, 1, 2, 3, 4];
        let scrapes: Vec<Scrape> =
            counts.iter().zip(0..).map(|(count, at)| scrape(at, &histogram(*count))).collect();
        let window = Window { from: At::from_us(1_500_000), until: At::from_us(5_500_000) };
        let whole = with_buckets(&scrapes, Some(window));
        let places: Vec<usize> = (0..8).filter(|place| whole[*place]).collect();
        assert_eq!(places, [0, 1, 3, 4, 6, 7]);
        assert!(with_buckets(&[], None).is_empty());
    }

    #[test]
    fn reasons_are_counted_and_bounded() {
        let mut source = Source::new("a");
        (0..100).for_each(|at| source.fail(At::from_us(at), format!("reason {}", at % 20)));
        assert_eq!(source.failed.len(), MOST_REASONS);
        assert_eq!(source.failed[0].count, 5);
        assert_eq!(source.failed[0].last_at, At::from_us(80));
    }
}
