//! Prometheus' exposition: the text format 0.0.4 and OpenMetrics 1.0, as engines
//! and exporters tell them, from bytes to families of series.
//!
//! What is lenient here was seen somewhere: samples before their TYPE line or
//! without one, blanks around every word, a comma after the last label, CRLF,
//! expositions that a proxy joined, names in quotation marks. A line that is
//! none of these is left out and counted; the others stand.
//!
//! A [`Reader`] that reads the same exporter again and again keeps the names
//! and labels once: a scrape is then as many numbers as it has series.

mod comment;
mod gather;
mod histogram;
mod layout;
mod line;
mod member;

pub use histogram::{Histogram, NotCumulative};
pub use layout::{Family, Labels, Sample};

use std::sync::Arc;

use gather::Gathered;
use layout::Layout;

/// The most bytes of an exposition that are read: the largest engines tell a
/// hundredth of it.
pub const MOST_BYTES: usize = 64 << 20;

/// What a family counts, as its TYPE line says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// It grows, or starts again from 0.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by bounds, with their sum.
    Histogram,
    /// Quantiles, with sum and count.
    Summary,
    /// Its labels are what it says.
    Info,
    /// One series is 1 and the others are 0.
    StateSet,
    /// No TYPE line, or one of another word.
    #[default]
    Unknown,
}

impl Kind {
    /// The word of the formats.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
            Self::Info => "info",
            Self::StateSet => "stateset",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of a word; a histogram of gauges has the parts of a histogram.
    fn find(word: &str) -> Self {
        match word {
            "counter" => Self::Counter,
            "gauge" => Self::Gauge,
            "histogram" | "gaugehistogram" => Self::Histogram,
            "summary" => Self::Summary,
            "info" => Self::Info,
            "stateset" => Self::StateSet,
            _ => Self::Unknown,
        }
    }
}

/// Which part of its family a sample is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// The value itself.
    Value,
    /// How many are at or under this bound.
    Bucket(f64),
    /// The value at this quantile, 0 to 1.
    Quantile(f64),
    /// The sum of all.
    Sum,
    /// The number of all.
    Count,
}

/// What was seen while reading, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines with a sample, all of them.
    pub samples: usize,
    /// Of these, instants at which counting began (`_created`): left out.
    pub created: usize,
    /// Examples that samples carried: left out.
    pub exemplars: usize,
    /// Samples that were told twice with one value: kept once.
    pub duplicates: usize,
    /// Samples that were told twice with different values: of what only grows
    /// the larger one is kept, of anything else the last.
    pub conflicts: usize,
    /// Families that have TYPE lines of different words: the first counts.
    pub type_conflicts: usize,
    /// Lines that are no sample and no comment: left out.
    pub rejected: usize,
    /// The first of them: its number, from 1, and how it begins.
    pub first_rejected: Option<(usize, String)>,
}

impl Tally {
    /// Names of what is not as it should be.
    pub fn warnings(&self) -> impl Iterator<Item = &'static str> {
        [
            ("duplicate", self.duplicates),
            ("duplicate_conflict", self.conflicts),
            ("type_conflict", self.type_conflicts),
            ("rejected_line", self.rejected),
        ]
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, _)| name)
    }
}

/// Why a body holds no exposition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Longer than what is read.
    #[error(
        "an exposition of {bytes} bytes is over the limit of {limit}: scrape an exporter with \
         fewer series"
    )]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// JSON, as TensorRT-LLM has under `/metrics`. Asking again would take these
    /// statistics away from whom they are for.
    #[error(
        "answered JSON, which is not Prometheus' text: TensorRT-LLM tells that under \
         /prometheus/metrics"
    )]
    Json,
    /// A page for people: a login, or an error.
    #[error(
        "answered a page of HTML: a login or an error, not Prometheus' text; name the right \
         address, or the key that it wants"
    )]
    Html,
    /// Nothing at all.
    #[error("answered nothing: metrics are switched off, or are told at another address")]
    Empty,
    /// Comments and no sample.
    #[error("tells of no series: nothing was counted yet, or metrics are switched off")]
    NoSamples,
    /// Text of another kind.
    #[error("is not Prometheus' text: its line {line} begins with {beginning:?}")]
    NotText {
        /// The first line that is nothing known, from 1.
        line: usize,
        /// How it begins.
        beginning: String,
    },
}

impl Unreadable {
    /// Stable name, for JSON and tests.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::Json => "not_prometheus_json",
            Self::Html => "not_prometheus_html",
            Self::Empty => "empty",
            Self::NoSamples => "no_samples",
            Self::NotText { .. } => "not_prometheus",
        }
    }
}

/// An exposition: families, series and their values at one instant.
#[derive(Clone, Debug)]
pub struct Exposition {
    layout: Arc<Layout>,
    values: Box<[f64]>,
    /// Instants that samples carried, by the position of the series.
    stamps_ms: Box<[(u32, f64)]>,
    tally: Tally,
}

impl Exposition {
    /// Its families, in the order in which they were first named.
    pub fn families(&self) -> impl Iterator<Item = Family<'_>> {
        (0..self.layout.families()).map(|place| Family::new(self, place))
    }

    /// The family of this name. A counter is found with and without `_total`,
    /// because clients differ in whether a family's name ends so.
    pub fn family(&self, name: &str) -> Option<Family<'_>> {
        let place = self.layout.find(name);
        let place = place.or_else(|| self.layout.find(name.strip_suffix("_total")?));
        place.map(|place| Family::new(self, place))
    }

    /// How many series it has.
    pub fn series(&self) -> usize {
        self.values.len()
    }

    /// What was seen while reading.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// Reads one exporter's expositions, one after the other.
#[derive(Clone, Debug)]
pub struct Reader {
    limit: usize,
    last: Option<Arc<Layout>>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::with_limit(MOST_BYTES)
    }
}

impl Reader {
    /// One that reads no more than so many bytes.
    pub const fn with_limit(limit: usize) -> Self {
        Self { limit, last: None }
    }

    /// Reads a body. Where it tells of the same series as the last one, in the
    /// same lines, only the numbers are read.
    ///
    /// # Errors
    /// Why it holds no exposition.
    pub fn read(&mut self, body: &[u8]) -> Result<Exposition, Unreadable> {
        if body.len() > self.limit {
            return Err(Unreadable::TooLarge { bytes: body.len(), limit: self.limit });
        }
        if let Some(layout) = &self.last
            && let Some((values, tally)) = layout.values_of(body)
        {
            let layout = Arc::clone(layout);
            return Ok(Exposition { layout, values, stamps_ms: Box::default(), tally });
        }
        let exposition = whole(body)?;
        self.last = Some(Arc::clone(&exposition.layout));
        Ok(exposition)
    }
}

/// Reads one exposition.
///
/// # Errors
/// Why it holds none.
pub fn read(body: &[u8]) -> Result<Exposition, Unreadable> {
    Reader::default().read(body)
}

fn whole(body: &[u8]) -> Result<Exposition, Unreadable> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let start = body.trim_ascii_start();
    match start.first() {
        None => return Err(Unreadable::Empty),
        Some(b'<') => return Err(Unreadable::Html),
        Some(b'[') => return Err(Unreadable::Json),
        _ => {}
    }
    let gathered = Gathered::of(body);
    if gathered.tally.samples == 0 {
        return Err(match gathered.tally.first_rejected {
            // A name in quotation marks begins a sample the same way.
            Some(_) if start[0] == b'{' => Unreadable::Json,
            Some((line, beginning)) => Unreadable::NotText { line, beginning },
            None => Unreadable::NoSamples,
        });
    }
    Ok(gathered.into_exposition(body))
}

#[cfg(test)]
mod tests;
