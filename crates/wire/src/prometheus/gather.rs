//! Lines of an exposition brought together to families: samples come before
//! their TYPE line, apart from each other, or without one.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use memchr::memchr;

use super::comment::{self, Comment};
use super::layout::{Expected, Head, Labels, Layout, Series, Skeleton, Slot};
use super::line::{self, Pair};
use super::member::{Names, Role};
use super::{Exposition, Kind, Part, Tally};

/// The most characters that are shown of a line that was left out.
const SHOWN: usize = 60;

/// Everything that the lines say, before it is known what belongs to what.
#[derive(Default)]
pub(super) struct Gathered<'a> {
    pub(super) tally: Tally,
    declared: Vec<Declared<'a>>,
    by_name: HashMap<Cow<'a, str>, usize>,
    found: Vec<Found<'a>>,
    sets: LabelSets<'a>,
    lines: Vec<Seen>,
    /// An exposition that says where it ends is OpenMetrics.
    is_openmetrics: bool,
}

/// A family as comments tell of it.
struct Declared<'a> {
    name: Cow<'a, str>,
    kind: Option<Kind>,
    help: &'a str,
    unit: &'a str,
}

struct Found<'a> {
    name: Cow<'a, str>,
    /// The bound of a bucket or the place of a quantile.
    at: Option<f64>,
    labels: u32,
    value: f64,
    timestamp: Option<f64>,
}

/// A line of which something was kept: where its fixed part lies.
struct Seen {
    from: usize,
    until: usize,
    sample: Option<usize>,
}

impl<'a> Gathered<'a> {
    pub(super) fn of(body: &'a [u8]) -> Self {
        let mut all = Self::default();
        let mut scratch = Vec::new();
        let (mut from, mut number) = (0, 0);
        while from < body.len() {
            let rest = &body[from..];
            let end = memchr(b'\n', rest).unwrap_or(rest.len());
            number += 1;
            let line = std::str::from_utf8(&rest[..end]);
            if line.is_err() || !line.is_ok_and(|line| all.line(line, from, &mut scratch)) {
                all.reject(&rest[..end], number);
            }
            from += end + 1;
        }
        all
    }

    /// Takes a line; false where it is nothing known.
    fn line(&mut self, line: &'a str, from: usize, scratch: &mut Vec<Pair<'a>>) -> bool {
        let text = line.trim_ascii();
        let fixed = Seen { from, until: from + line.len(), sample: None };
        if let Some(remark) = text.strip_prefix('#') {
            self.comment(comment::read(remark));
            self.lines.push(fixed);
            return true;
        }
        if text.is_empty() {
            self.lines.push(fixed);
            return true;
        }
        let line = line.trim_ascii_end();
        let Some(written) = line::sample(line, scratch) else { return false };
        let Some(at) = bound(&written.name, scratch) else { return false };
        self.tally.samples += 1;
        self.tally.exemplars += usize::from(written.has_exemplar);
        let until = from + written.until_value;
        self.lines.push(Seen { from, until, sample: Some(self.found.len()) });
        self.found.push(Found {
            name: written.name,
            at,
            labels: self.sets.of(scratch),
            value: written.value,
            timestamp: written.timestamp,
        });
        true
    }

    fn comment(&mut self, comment: Comment<'a>) {
        match comment {
            Comment::Help(name, help) => self.declared(name).help = help,
            Comment::Unit(name, unit) => self.declared(name).unit = unit,
            Comment::Type(name, kind) => {
                let before = self.declared(name).kind.get_or_insert(kind);
                let differs = *before != kind;
                self.tally.type_conflicts += usize::from(differs);
            }
            Comment::End => self.is_openmetrics = true,
            Comment::Remark => {}
        }
    }

    fn declared(&mut self, name: Cow<'a, str>) -> &mut Declared<'a> {
        let place = *self.by_name.entry(name.clone()).or_insert(self.declared.len());
        if place == self.declared.len() {
            self.declared.push(Declared { name, kind: None, help: "", unit: "" });
        }
        &mut self.declared[place]
    }

    fn reject(&mut self, line: &[u8], number: usize) {
        self.tally.rejected += 1;
        self.tally.first_rejected.get_or_insert_with(|| {
            let text = String::from_utf8_lossy(line);
            (number, text.trim().chars().take(SHOWN).collect())
        });
    }

    pub(super) fn into_exposition(mut self, body: &[u8]) -> Exposition {
        let members = self.members();
        let mut series = Vec::with_capacity(self.found.len());
        let mut places: HashMap<(usize, u8, u64, u32), usize> = HashMap::new();
        let per_second = if self.is_openmetrics { 1e3 } else { 1.0 };
        let mut slots = Vec::with_capacity(self.found.len());
        for (found, member) in self.found.iter().zip(members) {
            let Some((family, part)) = member else {
                self.tally.created += 1;
                slots.push(None);
                continue;
            };
            let (kind_of_part, bits) = key(part);
            let key = (family, kind_of_part, bits, found.labels);
            let stamp_ms = found.timestamp.map(|timestamp| timestamp * per_second);
            let told = Told { family, part, labels: found.labels, value: found.value, stamp_ms };
            match places.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(series.len());
                    slots.push(Some(series.len()));
                    series.push(told);
                }
                Entry::Occupied(entry) => {
                    let before: &mut Told = &mut series[*entry.get()];
                    let grows = grows(self.declared[family].kind, part);
                    before.merge(told, grows, &mut self.tally);
                    slots.push(None);
                }
            }
        }
        self.laid_out(series, &slots, body)
    }

    /// The family and part of every sample; none for instants of creation.
    fn members(&mut self) -> Vec<Option<(usize, Part)>> {
        let found = std::mem::take(&mut self.found);
        let names = Names::of(found.iter().map(|sample| (sample.name.as_ref(), sample.at)));
        let mut members = Vec::with_capacity(found.len());
        // Samples of one name come one after the other.
        let mut last: Option<(&str, usize, Role)> = None;
        for sample in &found {
            let known = last.filter(|(name, ..)| *name == sample.name);
            let (_, family, role) = known.unwrap_or_else(|| self.placed(&names, sample));
            last = Some((&sample.name, family, role));
            members.push(role.part(sample.at).map(|part| (family, part)));
        }
        self.found = found;
        members
    }

    /// The place of the family of a sample, and what the sample is to it.
    fn placed<'n>(&mut self, names: &Names<'_>, sample: &'n Found<'a>) -> (&'n str, usize, Role) {
        let name = &sample.name;
        let kind = |name: &str| {
            let place = self.by_name.get(name)?;
            Some(self.declared[*place].kind.unwrap_or_default())
        };
        let (base, inferred, role) = names.role(name, kind);
        if matches!(role, Role::Created) {
            return (name, 0, role);
        }
        let declared = self.declared(beginning(name, base.len()));
        if declared.kind.unwrap_or_default() == Kind::Unknown {
            declared.kind = Some(inferred);
        }
        (name, self.by_name[base], role)
    }

    fn laid_out(self, told: Vec<Told>, slots: &[Option<usize>], body: &[u8]) -> Exposition {
        let mut order: Vec<usize> = (0..told.len()).collect();
        order.sort_by_key(|place| told[*place].family);
        let mut place_of = vec![0; told.len()];
        order.iter().enumerate().for_each(|(place, from)| place_of[*from] = place as u32);
        let skeleton = (self.is_plain() && told.iter().all(|one| one.stamp_ms.is_none()))
            .then(|| self.skeleton(body, |sample| slots[sample].map(|from| place_of[from])));
        let mut heads: Vec<Head> = self
            .declared
            .iter()
            .map(|family| Head {
                name: family.name.as_ref().into(),
                kind: family.kind.unwrap_or_default(),
                help: comment::unescaped(family.help),
                unit: family.unit.into(),
                series: 0..0,
            })
            .collect();
        for (place, from) in order.iter().enumerate() {
            let range = &mut heads[told[*from].family].series;
            let start = if range.start == range.end { place } else { range.start };
            *range = start..place + 1;
        }
        // Instants of creation may have a TYPE line of their own.
        heads
            .retain(|head| head.series.start < head.series.end || !head.name.ends_with("_created"));
        let series = order.iter().map(|from| told[*from].series()).collect();
        let values = order.iter().map(|from| told[*from].value).collect();
        let stamps = order.iter().enumerate();
        let stamps_ms =
            stamps.filter_map(|(place, from)| Some((place as u32, told[*from].stamp_ms?)));
        let stamps_ms = stamps_ms.collect();
        let layout = Layout::new(heads, series, self.sets.all, skeleton);
        Exposition { layout: Arc::new(layout), values, stamps_ms, tally: self.tally }
    }

    /// Whether the next exposition may be read by the shape of this one.
    fn is_plain(&self) -> bool {
        let Tally { exemplars, duplicates, conflicts, rejected, .. } = &self.tally;
        [exemplars, duplicates, conflicts, rejected].into_iter().all(|count| *count == 0)
    }

    fn skeleton(&self, body: &[u8], place: impl Fn(usize) -> Option<u32>) -> Skeleton {
        let mut text = Vec::with_capacity(body.len());
        let mut lines = Vec::with_capacity(self.lines.len());
        for line in &self.lines {
            let fixed = &body[line.from..line.until];
            text.extend_from_slice(fixed);
            let slot = match line.sample {
                None => Slot::Fixed,
                Some(sample) => place(sample).map_or(Slot::Created, Slot::Series),
            };
            lines.push(Expected { bytes: fixed.len() as u32, slot });
        }
        Skeleton { text: text.into(), lines: lines.into(), tally: self.tally.clone() }
    }
}

/// One series and its value.
struct Told {
    family: usize,
    part: Part,
    labels: u32,
    value: f64,
    stamp_ms: Option<f64>,
}

impl Told {
    const fn series(&self) -> Series {
        Series { part: self.part, labels: self.labels }
    }

    /// Takes the second sample of the same series.
    fn merge(&mut self, other: Self, grows: bool, tally: &mut Tally) {
        if self.stamp_ms != other.stamp_ms {
            // Several points in time of one series are allowed: the last holds.
            if other.stamp_ms >= self.stamp_ms {
                *self = other;
            }
            return;
        }
        if self.value == other.value || (self.value.is_nan() && other.value.is_nan()) {
            tally.duplicates += 1;
            return;
        }
        tally.conflicts += 1;
        let keeps = other.value.is_nan() || (grows && self.value > other.value);
        if !keeps {
            self.value = other.value;
        }
    }
}

const fn grows(kind: Option<Kind>, part: Part) -> bool {
    matches!(kind, Some(Kind::Counter)) || matches!(part, Part::Bucket(_) | Part::Count | Part::Sum)
}

/// What tells one part of a family from another.
fn key(part: Part) -> (u8, u64) {
    match part {
        Part::Value => (0, 0),
        Part::Bucket(bound) => (1, bound.to_bits()),
        Part::Quantile(at) => (2, at.to_bits()),
        Part::Sum => (3, 0),
        Part::Count => (4, 0),
    }
}

/// Takes the bound of a bucket or the place of a quantile out of the labels.
/// `None` where it is no number: the sample means nothing then.
fn bound(name: &str, labels: &mut Vec<Pair<'_>>) -> Option<Option<f64>> {
    let wanted = if name.ends_with("_bucket") { "le" } else { "quantile" };
    let Some(place) = labels.iter().position(|(label, _)| label == wanted) else {
        return Some(None);
    };
    let (_, text) = labels.remove(place);
    line::number(&text).map(Some)
}

/// The first bytes of a name.
fn beginning<'a>(name: &Cow<'a, str>, bytes: usize) -> Cow<'a, str> {
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(&name[..bytes]),
        Cow::Owned(name) => Cow::Owned(name[..bytes].to_owned()),
    }
}

/// Sets of labels, each kept once: most series of an exposition share theirs
/// with many others.
#[derive(Default)]
struct LabelSets<'a> {
    all: Vec<Labels>,
    known: HashMap<Vec<Pair<'a>>, u32>,
}

impl<'a> LabelSets<'a> {
    fn of(&mut self, pairs: &[Pair<'a>]) -> u32 {
        if let Some(place) = self.known.get(pairs) {
            return *place;
        }
        let place = self.all.len() as u32;
        self.all.push(Labels::of(pairs));
        self.known.insert(pairs.to_vec(), place);
        place
    }
}
