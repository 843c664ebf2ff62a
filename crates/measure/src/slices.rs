//! Parts of a run: its requests by prompt length and by label. A percentile of
//! the whole says nothing of who waits; these say it.

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::Outcome;
use crate::request::{Timed, Value};
use crate::slo::{Slo, judge};
use crate::statistics::Distribution;

/// The parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slices {
    /// Successes by prompt length, as the server counted it.
    pub by_input: Vec<Slice>,
    /// All requests by each label, label by label. Those of one label are all
    /// requests of the run.
    pub by_label: Vec<Slice>,
    /// The bucket that most of the slowest requests lie in, where one does.
    pub tail_owner: Option<TailOwner>,
}

/// Requests that have something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// What they have in common.
    pub of: Part,
    /// Requests.
    pub n: u64,
    /// Of these, the ones that ended ok; latencies are of them.
    pub ok: u64,
    /// TTFT in ms.
    pub ttft: Distribution,
    /// TPOT in ms a token.
    pub tpot: Distribution,
    /// End-to-end latency in ms.
    pub e2el: Distribution,
    /// Of a label, under an SLO: how many met what is asked of them.
    pub attained: Option<Attained>,
}

/// How many requests of a slice met what is asked of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attained {
    /// Good requests.
    pub good: u64,
    /// Those that could be judged.
    pub of: u64,
}

/// What requests of a slice have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Prompts of so many tokens: from, and below.
    Input {
        /// The least.
        from: u32,
        /// Less than this.
        until: u32,
    },
    /// A label and its value; `None` for requests without the label.
    Label {
        /// The label.
        name: String,
        /// Its value.
        value: Option<String>,
    },
}

/// A bucket with more of the tail than of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct TailOwner {
    /// The bucket.
    pub of: Part,
    /// Its share of the slowest hundredth by TTFT.
    pub of_slowest: f64,
    /// Its share of the requests.
    pub of_all: f64,
}

/// Fewest requests of which a hundredth says something.
const FEWEST: usize = 100;

/// A bucket owns the tail when it holds at least this share of it, and this
/// many times its share of the requests.
const OWNS: f64 = 0.5;
const MORE_THAN: f64 = 1.5;

/// Cuts a run; labels are judged by `slo`.
pub fn slices(timed: &[Timed<'_>], slo: Option<&Slo>) -> Slices {
    Slices {
        by_input: by_input(timed),
        by_label: by_label(timed, slo),
        tail_owner: tail_owner(timed),
    }
}

/// The bucket of a prompt: powers of two from 128, because the work of a
/// prefill grows with the length and not with its logarithm below that.
pub(crate) fn bucket(tokens: f64) -> Part {
    let tokens = tokens as u32;
    let from = if tokens < 128 { 0 } else { 1 << tokens.ilog2() };
    Part::Input { from, until: if from == 0 { 128 } else { from.saturating_mul(2) } }
}

fn by_input(timed: &[Timed<'_>]) -> Vec<Slice> {
    let mut parts: BTreeMap<Part, Vec<&Timed<'_>>> = BTreeMap::new();
    for request in timed {
        if let Ok(tokens) = request.input_length() {
            parts.entry(bucket(tokens)).or_default().push(request);
        }
    }
    parts.into_iter().map(|(of, requests)| slice(of, &requests)).collect()
}

/// The names of all labels, in their order.
pub(crate) fn label_names<'t>(timed: &'t [Timed<'_>]) -> impl Iterator<Item = &'t str> {
    let labels = timed.iter().flat_map(|request| &request.record.planned.labels);
    labels.map(|(name, _)| name.as_str()).collect::<BTreeSet<&str>>().into_iter()
}

/// The requests by the value that they have of a label.
pub(crate) fn by_value<'t, 'r>(
    timed: &'t [Timed<'r>],
    name: &str,
) -> BTreeMap<Option<&'t str>, Vec<&'t Timed<'r>>> {
    let mut parts: BTreeMap<Option<&str>, Vec<&Timed<'_>>> = BTreeMap::new();
    for request in timed {
        parts.entry(request.record.planned.label(name)).or_default().push(request);
    }
    parts
}

fn by_label(timed: &[Timed<'_>], slo: Option<&Slo>) -> Vec<Slice> {
    let mut slices = Vec::new();
    for name in label_names(timed) {
        let mut parts: Vec<(Option<&str>, Vec<&Timed<'_>>)> =
            by_value(timed, name).into_iter().collect();
        parts.sort_by_key(|(value, _)| by_number(*value));
        slices.extend(parts.into_iter().map(|(value, requests)| {
            let (name, value) = (name.to_owned(), value.map(str::to_owned));
            let attained = slo.map(|slo| attained(&requests, slo));
            Slice { attained, ..slice(Part::Label { name, value }, &requests) }
        }));
    }
    slices
}

fn attained(requests: &[&Timed<'_>], slo: &Slo) -> Attained {
    let judged = requests.iter().map(|request| judge(request, slo).joint);
    judged.fold(Attained::default(), |sum, judgement| Attained {
        good: sum.good + u64::from(judgement.is_good()),
        of: sum.of + u64::from(judgement.decides()),
    })
}

/// The order of a label's values: without it first, numbers by their size, then
/// texts. Turn 10 comes after turn 9.
fn by_number(value: Option<&str>) -> (u8, u64, Option<&str>) {
    match value.map(|value| (value, value.parse())) {
        None => (0, 0, None),
        Some((value, Ok(number))) => (1, number, Some(value)),
        Some((value, Err(_))) => (2, 0, Some(value)),
    }
}

fn slice(of: Part, requests: &[&Timed<'_>]) -> Slice {
    let distribution = |value: fn(&Timed<'_>) -> Value| {
        let samples = requests.iter().filter_map(|request| value(request).ok()).collect();
        Distribution::of(samples, Vec::new(), &[])
    };
    let ok = requests.iter().filter(|request| request.record.outcome == Outcome::Ok).count();
    Slice {
        of,
        n: requests.len() as u64,
        ok: ok as u64,
        ttft: distribution(|request| request.ttft()),
        tpot: distribution(|request| request.tpot()),
        e2el: distribution(|request| request.e2el()),
        attained: None,
    }
}

fn tail_owner(timed: &[Timed<'_>]) -> Option<TailOwner> {
    let mut waits: Vec<(f64, Part)> = timed
        .iter()
        .filter_map(|request| Some((request.ttft().ok()?, bucket(request.input_length().ok()?))))
        .collect();
    if waits.len() < FEWEST {
        return None;
    }
    waits.sort_by(|a, b| b.0.total_cmp(&a.0));
    let slowest = &waits[..waits.len().div_ceil(100)];
    let mut counts: BTreeMap<&Part, usize> = BTreeMap::new();
    for (_, part) in slowest {
        *counts.entry(part).or_default() += 1;
    }
    let (of, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let all = waits.iter().filter(|(_, part)| part == of).count();
    let owner = TailOwner {
        of: of.clone(),
        of_slowest: count as f64 / slowest.len() as f64,
        of_all: all as f64 / waits.len() as f64,
    };
    (owner.of_slowest >= OWNS && owner.of_slowest >= MORE_THAN * owner.of_all).then_some(owner)
}
