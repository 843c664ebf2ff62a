//! What stays the same from one exposition of an exporter to the next: families,
//! series and labels. Values are held beside it, one a series.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memchr;

use super::line::{self, Pair};
use super::{Exposition, Kind, Part, Tally};

/// The labels of a series, by name; their order means nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    /// Those of pairs that are sorted by name.
    pub(super) fn of(pairs: &[Pair<'_>]) -> Self {
        let own = |text: &str| Box::<str>::from(text);
        Self(pairs.iter().map(|(name, value)| (own(name), own(value))).collect())
    }

    /// The value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(label, _)| *label == name).map(|(_, value)| value)
    }

    /// Names and values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }
}

/// A family without its values.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) name: Box<str>,
    pub(super) kind: Kind,
    pub(super) help: Box<str>,
    pub(super) unit: Box<str>,
    pub(super) series: Range<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub(super) part: Part,
    pub(super) labels: u32,
}

/// Families and series in their places.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    heads: Box<[Head]>,
    by_name: HashMap<Box<str>, usize>,
    series: Box<[Series]>,
    labels: Box<[Labels]>,
    skeleton: Option<Skeleton>,
}

/// The text of an exposition without its values. Exporters tell the same series
/// in the same order each time, so the next text is compared with this one and
/// only its values are read.
#[derive(Clone, Debug)]
pub(super) struct Skeleton {
    pub(super) text: Box<[u8]>,
    pub(super) lines: Box<[Expected]>,
    pub(super) tally: Tally,
}

#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// How much of the text is at the beginning of the line.
    pub(super) bytes: u32,
    pub(super) slot: Slot,
}

/// What follows the fixed part of a line.
#[derive(Clone, Debug)]
pub(super) enum Slot {
    /// Nothing.
    Fixed,
    /// An instant of creation, which is not kept.
    Created,
    /// The value of a series.
    Series(u32),
}

impl Layout {
    pub(super) fn new(
        heads: Vec<Head>,
        series: Box<[Series]>,
        labels: Vec<Labels>,
        skeleton: Option<Skeleton>,
    ) -> Self {
        let names = heads.iter().enumerate().map(|(place, head)| (head.name.clone(), place));
        let by_name = names.collect();
        Self { heads: heads.into(), by_name, series, labels: labels.into(), skeleton }
    }

    pub(super) const fn families(&self) -> usize {
        self.heads.len()
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The values of a body that has the same lines but for its values.
    pub(super) fn values_of(&self, body: &[u8]) -> Option<(Box<[f64]>, Tally)> {
        let skeleton = self.skeleton.as_ref()?;
        let mut values = vec![f64::NAN; self.series.len()].into_boxed_slice();
        let (mut rest, mut text) = (body, &skeleton.text[..]);
        for expected in &skeleton.lines {
            if rest.is_empty() {
                return None;
            }
            let (fixed, later) = text.split_at(expected.bytes as usize);
            text = later;
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            let value = rest[..end].strip_prefix(fixed)?;
            rest = rest.get(end + 1..).unwrap_or_default();
            let number = || line::number(std::str::from_utf8(value).ok()?.trim_ascii_end());
            match expected.slot {
                Slot::Fixed => value.is_empty().then_some(())?,
                Slot::Created => number().map(|_| ())?,
                Slot::Series(place) => values[place as usize] = number()?,
            }
        }
        rest.is_empty().then(|| (values, skeleton.tally.clone()))
    }
}

/// One family of an exposition.
#[derive(Clone, Copy, Debug)]
pub struct Family<'a> {
    exposition: &'a Exposition,
    head: &'a Head,
}

impl<'a> Family<'a> {
    pub(super) fn new(exposition: &'a Exposition, place: usize) -> Self {
        Self { exposition, head: &exposition.layout.heads[place] }
    }

    /// Its name, as its TYPE line has it.
    pub fn name(&self) -> &'a str {
        &self.head.name
    }

    /// What it counts.
    pub const fn kind(&self) -> Kind {
        self.head.kind
    }

    /// Its help text; empty where there is none.
    pub fn help(&self) -> &'a str {
        &self.head.help
    }

    /// The unit that an OpenMetrics exposition names; empty where it does not.
    pub fn unit(&self) -> &'a str {
        &self.head.unit
    }

    /// Its samples, in the order in which they were told. None where the
    /// exporter has not counted anything yet.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'a>> + use<'a> {
        let Exposition { layout, values, stamps_ms, .. } = self.exposition;
        self.head.series.clone().map(move |place| {
            let series = &layout.series[place];
            let stamp = stamps_ms.binary_search_by_key(&(place as u32), |(of, _)| *of);
            Sample {
                part: series.part,
                labels: &layout.labels[series.labels as usize],
                value: values[place],
                timestamp_ms: stamp.ok().map(|stamp| stamps_ms[stamp].1),
            }
        })
    }
}

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample<'a> {
    /// Which part of its family it is.
    pub part: Part,
    /// Its labels, without the bound of a bucket and the place of a quantile.
    pub labels: &'a Labels,
    /// Its value; NaN where the exporter says that there is none.
    pub value: f64,
    /// The instant that it carries, milliseconds since 1970; most carry none,
    /// and then it is of the instant of the scrape.
    pub timestamp_ms: Option<f64>,
}
