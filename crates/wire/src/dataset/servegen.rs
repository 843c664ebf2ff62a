//! The client traces of ServeGen: what each client of a service sent over days,
//! in 600 s windows, as rates, distributions of gaps and shares of lengths.
//!
//! A folder has two files for each client. `chunk-N-trace.csv` has no head; its
//! columns are the beginning of the window in seconds, requests per second, the
//! coefficient of variation of the gaps, the distribution that fits them, its
//! shape and its scale. A rate of 0 is a silence.
//!
//! ```text
//! 31800,0.0433,1.0486,Gamma,0.9094,0.0886
//! 32400,0,0,,0,0
//! 34200,1.625,10.4704,Weibull,0.3519,0.2965
//! ```
//!
//! `chunk-N-dataset.json` has wider windows, six hours as published, by the
//! second at which they begin; each member of one is a Python dictionary,
//! written as a text, of lengths and their shares. `{}` is none.
//!
//! ```text
//! {"21600": {"input_tokens": "{143: 0.25, 148: 0.75}", "output_tokens": "{18: 1.0}"}}
//! ```
//!
//! Models that take pictures have `text_tokens` in place of `input_tokens`, and
//! members for what is no text; those that reason have `reason_ratio`. These are
//! passed over and named.
//!
//! Source of the format: alibaba/ServeGen, README and data; Xiang et al.,
//! "ServeGen: Workload Characterization and Generation of Large Language Model
//! Serving in Production" (2025).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use measure::{PerSecond, Span, Tokens};
use serde::Deserialize;
use serde::de::IgnoredAny;
use workload::clients::{MAX_SHAPE, MIN_SHAPE};
use workload::load::MAX_RATE;
use workload::{Active, Bucket, Gaps, LengthError, Lengths, MAX_TOKENS, Sizes};

use super::{Refusal, each_line_of, without_mark};

/// How long a window lasts in a trace of one window, which does not say it.
const WINDOW: Span = Span::from_ms(600_000);

/// The latest second at which a window may begin: 31 years.
const MAX_SECOND: f64 = 1e9;

/// How far the shares of one list may be from 1 together. Within that they are
/// scaled to it; beyond it a part of the list is missing.
const MAX_SUM_ERROR: f64 = 0.01;

/// Members that give the length of a prompt; the first that is there.
const PROMPTS: [&str; 2] = ["input_tokens", "text_tokens"];

/// The member that gives the length of an answer.
const ANSWERS: &str = "output_tokens";

/// Further members that are kept by name.
const MAX_ASIDE: usize = 30;

/// The longest piece of a file that a message repeats, in characters.
const MAX_SHOWN: usize = 40;

/// How a pointer begins that Git leaves in the place of a large file.
const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// The file of a client's rates.
pub fn trace_file(client: u32) -> String {
    format!("chunk-{client}-trace.csv")
}

/// The file of a client's lengths.
pub fn lengths_file(client: u32) -> String {
    format!("chunk-{client}-dataset.json")
}

/// The clients of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Those with both files.
    pub whole: BTreeSet<u32>,
    /// Those with a trace alone.
    pub without_lengths: BTreeSet<u32>,
    /// Those with lengths alone.
    pub without_trace: BTreeSet<u32>,
}

impl Listing {
    /// Takes the names of a folder's files, in any order. Other files are
    /// passed over.
    pub fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let (mut traces, mut lengths) = (BTreeSet::new(), BTreeSet::new());
        for name in names {
            let rest = name.strip_prefix("chunk-").unwrap_or_default();
            let Some((number, _)) = rest.split_once('-') else { continue };
            let Ok(number) = number.parse() else { continue };
            // Not 007 or +7, which would be another file of client 7.
            if name == trace_file(number) {
                traces.insert(number);
            } else if name == lengths_file(number) {
                lengths.insert(number);
            }
        }
        Self {
            whole: traces.intersection(&lengths).copied().collect(),
            without_lengths: traces.difference(&lengths).copied().collect(),
            without_trace: lengths.difference(&traces).copied().collect(),
        }
    }
}

/// What is wrong with a file of a client.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Wrong {
    /// Nothing in it, or not UTF-8.
    #[error(transparent)]
    File(Refusal),
    /// A large file that was not fetched.
    #[error("it is a pointer of Git LFS and not the file itself; run git lfs pull in its folder")]
    Pointer,
    /// A line with another number of columns.
    #[error(
        "line {line} has {found} columns and not 6: time, rate, cv, distribution, shape, scale, \
         without a head"
    )]
    Columns {
        /// The line.
        line: u64,
        /// How many it has.
        found: usize,
    },
    /// A column that holds no such number.
    #[error("line {line}, column {place} ({column}): {text:?} is not a number {rule}")]
    Number {
        /// The line.
        line: u64,
        /// The column, from 1.
        place: usize,
        /// What it is.
        column: &'static str,
        /// What it holds.
        text: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Gaps of an unknown distribution.
    #[error(
        "line {line}, column 4 (distribution): {text:?} is not known here; gaps are Gamma or \
         Weibull, and exponential where nothing stands"
    )]
    Distribution {
        /// The line.
        line: u64,
        /// What stands there.
        text: String,
    },
    /// A window before or at the one above it.
    #[error(
        "line {line} goes back in time, from {before_s} s to {at_s} s; windows stand in their order"
    )]
    BackInTime {
        /// The line.
        line: u64,
        /// Where its window begins.
        at_s: f64,
        /// Where the one above begins.
        before_s: f64,
    },
    /// No JSON, or no object of objects.
    #[error("line {line}: not an object of windows: {what} at column {column}")]
    Json {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
        /// What the parser said.
        what: String,
    },
    /// A window that is named by no time, or twice.
    #[error("window {0:?} is not named by the second at which it begins, each once")]
    Window(String),
    /// A window without a member that is needed.
    #[error("window {window} has no {wanted}, a text like \"{{62: 0.25, 80: 0.75}}\"")]
    Member {
        /// The window.
        window: String,
        /// The member.
        wanted: &'static str,
    },
    /// A text that is no dictionary.
    #[error("{at} is {text:?} and not a text like \"{{62: 0.25, 80: 0.75}}\"")]
    Dictionary {
        /// The list.
        at: ListName,
        /// How the text begins.
        text: String,
    },
    /// An entry that is none.
    #[error("{at}, entry {entry}: {text:?} is not {rule}")]
    Entry {
        /// The list.
        at: ListName,
        /// The entry, from 1.
        entry: usize,
        /// How it is written.
        text: String,
        /// What it must be.
        rule: &'static str,
    },
    /// Shares that are not a whole.
    #[error("{at}: the shares make {sum} together and not 1; a part of the list is missing")]
    Sum {
        /// The list.
        at: ListName,
        /// Their sum.
        sum: f64,
    },
    /// Nothing but lengths of 0.
    #[error("{at}: no length from 1 on has a share")]
    Nothing {
        /// The list.
        at: ListName,
    },
    /// Nothing can be drawn.
    #[error("{at}: {error}")]
    Lengths {
        /// The list.
        at: ListName,
        /// Why.
        error: LengthError,
    },
}

/// A list of lengths, by its window and the member that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListName {
    /// The window, as the file names it.
    pub window: String,
    /// The member.
    pub member: &'static str,
}

impl fmt::Display for ListName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "window {}, {}", self.window, self.member)
    }
}

fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).collect()
}

fn file(bytes: &[u8]) -> Result<&[u8], Wrong> {
    let bytes = without_mark(bytes).map_err(Wrong::File)?;
    if bytes.starts_with(POINTER) { Err(Wrong::Pointer) } else { Ok(bytes) }
}

/// The rate and the gaps of a window; `None` where it is silent.
type Sends = Option<(PerSecond, Gaps)>;

/// A client's rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The beginning of its first window.
    pub from: Span,
    /// The end of its last one.
    pub until: Span,
    /// The windows in which it sends.
    pub active: Vec<Active>,
}

/// Reads `chunk-N-trace.csv`. A window lasts until the next one, and the last
/// as long as the one before it.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn trace(bytes: &[u8]) -> Result<Trace, Wrong> {
    let mut windows: Vec<(Span, u64, Sends)> = Vec::new();
    for (line, bytes) in each_line_of(file(bytes)?) {
        let (from, sends) = row(line, &String::from_utf8_lossy(bytes))?;
        if let Some((before, ..)) = windows.last().filter(|(before, ..)| *before >= from) {
            return Err(Wrong::BackInTime { line, at_s: from.s(), before_s: before.s() });
        }
        windows.push((from, line, sends));
    }
    let begins = |place: usize| windows.get(place).map(|(from, ..)| *from);
    let (from, last) = (begins(0).unwrap_or_default(), windows.len().saturating_sub(1));
    let lasts = match last.checked_sub(1).and_then(begins).zip(begins(last)) {
        Some((before, last)) => last - before,
        None => WINDOW,
    };
    let until = begins(last).unwrap_or_default() + lasts;
    let ends = windows.iter().skip(1).map(|(from, ..)| *from).chain([until]);
    let active = windows.iter().zip(ends).filter_map(|((from, line, sends), until)| {
        let (rate, gaps) = (*sends)?;
        Some(Active { from: *from, until, rate, gaps, source_row: *line })
    });
    Ok(Trace { from, until, active: active.collect() })
}

/// One window, and what is sent in it unless it is silent.
fn row(line: u64, text: &str) -> Result<(Span, Sends), Wrong> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let [time, rate, cv, distribution, shape, scale] = fields[..] else {
        return Err(Wrong::Columns { line, found: fields.len() });
    };
    let number = |place, column, text: &str, low: f64, high: f64, rule| {
        let read = text.parse().ok().filter(|number| (low..=high).contains(number));
        read.ok_or_else(|| Wrong::Number { line, place, column, text: shown(text), rule })
    };
    let of_time = "of seconds from 0 to 1e9";
    let from = Span::from_s(number(1, "time", time, 0.0, MAX_SECOND, of_time)?);
    let of_rate = "of requests per second from 0 to 1e6";
    let rate = number(2, "rate", rate, 0.0, MAX_RATE, of_rate)?;
    number(3, "cv", cv, 0.0, f64::MAX, "of at least 0")?;
    number(6, "scale", scale, 0.0, f64::MAX, "of at least 0")?;
    let silent = rate == 0.0;
    // Where nothing is sent and where nothing is fitted it says nothing.
    let (low, high, rule) = match distribution {
        name if name.is_empty() || silent => (0.0, f64::MAX, "of at least 0"),
        _ => (MIN_SHAPE, MAX_SHAPE, "from 0.001 to 1e9"),
    };
    let shape = number(5, "shape", shape, low, high, rule)?;
    let gaps = match distribution {
        "" => Gaps::Exponential,
        "Gamma" => Gaps::Gamma { shape },
        "Weibull" => Gaps::Weibull { shape },
        other => return Err(Wrong::Distribution { line, text: shown(other) }),
    };
    // The scale is that of the fit, whose mean need not be 1/rate; the rate is
    // what was counted.
    Ok((from, (!silent).then(|| (PerSecond::new(rate), gaps))))
}

/// A member of a window.
#[derive(Deserialize)]
#[serde(untagged)]
enum Member<'b> {
    Text(#[serde(borrow)] Cow<'b, str>),
    Other(IgnoredAny),
}

type Members<'b> = BTreeMap<String, Member<'b>>;

/// The windows of `chunk-N-dataset.json` in order of time, with their names.
fn windows(bytes: &[u8]) -> Result<Vec<(Span, String, Members<'_>)>, Wrong> {
    let read = serde_json::from_slice(file(bytes)?);
    let read: BTreeMap<String, Members<'_>> = read.map_err(|error| {
        let text = error.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        Wrong::Json { line: error.line(), column: error.column(), what: shown(what) }
    })?;
    let mut windows = Vec::with_capacity(read.len());
    for (name, members) in read {
        let second = name.parse().ok().filter(|second| (0.0..=MAX_SECOND).contains(second));
        let second = second.ok_or_else(|| Wrong::Window(shown(&name)))?;
        windows.push((Span::from_s(second), name, members));
    }
    windows.sort_by_key(|(from, ..)| *from);
    match windows.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Wrong::Window(shown(&pair[1].1))),
        None => Ok(windows),
    }
}

/// The lists of a window: of prompts and of answers.
fn lists<'m>(name: &str, members: &'m Members<'_>) -> Result<[(ListName, &'m str); 2], Wrong> {
    let prompts = PROMPTS.into_iter().find(|prompts| members.contains_key(*prompts));
    let list = |member: &'static str| match members.get(member) {
        Some(Member::Text(text)) => Ok((ListName { window: shown(name), member }, text.as_ref())),
        _ => Err(Wrong::Member { window: shown(name), wanted: member }),
    };
    Ok([list(prompts.unwrap_or(PROMPTS[0]))?, list(ANSWERS)?])
}

/// What a file of lengths holds, before any list is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// The beginnings of the windows that have lengths of both kinds, in order.
    pub with_lengths: Vec<Span>,
    /// Members that are not taken.
    pub aside: BTreeSet<String>,
}

/// Reads of `chunk-N-dataset.json` which windows have lengths, which is quick:
/// the lists make nearly all of a file.
///
/// # Errors
///
/// The first thing that is wrong with it, apart from the lists.
pub fn outline(bytes: &[u8]) -> Result<Outline, Wrong> {
    let mut outline = Outline::default();
    for (from, name, members) in windows(bytes)? {
        let lists = lists(&name, &members)?;
        let mut are_empty = false;
        for (at, text) in &lists {
            are_empty |= entries(at, text)?.is_none();
        }
        if !are_empty {
            outline.with_lengths.push(from);
        }
        let taken = |name: &str| lists.iter().any(|(at, _)| at.member == name);
        for name in members.keys().filter(|name| !taken(name)) {
            if outline.aside.len() < MAX_ASIDE {
                outline.aside.insert(shown(name));
            }
        }
    }
    Ok(outline)
}

/// The lengths of a client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// Of each window that was asked for, in order.
    pub sizes: Vec<Sizes>,
    /// The largest share of lengths of 0 in any list of them. No request has
    /// one, so it is left out and the others are scaled up.
    pub zeros: f64,
}

/// Reads the lists of these windows of `chunk-N-dataset.json`.
///
/// # Errors
///
/// The first thing that is wrong with them.
pub fn sizes(bytes: &[u8], wanted: &BTreeSet<Span>) -> Result<Read, Wrong> {
    let mut read = Read::default();
    for (from, name, members) in windows(bytes)? {
        if wanted.contains(&from) {
            let [input, output] = lists(&name, &members)?;
            let (input, of_input) = lengths(input)?;
            let (output, of_output) = lengths(output)?;
            read.sizes.push(Sizes { from, input, output });
            read.zeros = read.zeros.max(of_input).max(of_output);
        }
    }
    Ok(read)
}

/// What stands between the braces; `None` where nothing does.
fn entries<'t>(at: &ListName, text: &'t str) -> Result<Option<&'t str>, Wrong> {
    let inside = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let wrong = || Wrong::Dictionary { at: at.clone(), text: shown(text) };
    Ok(Some(inside.ok_or_else(wrong)?).filter(|inside| !inside.trim().is_empty()))
}

/// One list, and the share of lengths of 0 in it.
fn lengths((at, text): (ListName, &str)) -> Result<(Lengths, f64), Wrong> {
    let (mut sum, mut zeros, mut buckets) = (0.0, 0.0, Vec::new());
    let entries = entries(&at, text)?.unwrap_or_default();
    for (place, entry) in (1..).zip(entries.split(',')) {
        let wrong =
            |rule| Wrong::Entry { at: at.clone(), entry: place, text: shown(entry.trim()), rule };
        let (length, share) =
            entry.split_once(':').ok_or_else(|| wrong("LENGTH: SHARE, as in 62: 0.25"))?;
        let length: f64 =
            length.trim().parse().map_err(|_| wrong("LENGTH: SHARE, as in 62: 0.25"))?;
        if !(0.0..=f64::from(MAX_TOKENS)).contains(&length) || length.fract() != 0.0 {
            return Err(wrong("a whole number of tokens up to 16777216 with its share"));
        }
        let share: f64 = share.trim().parse().unwrap_or(f64::NAN);
        if !(share >= 0.0 && share.is_finite()) {
            return Err(wrong("a length with a share of at least 0"));
        }
        sum += share;
        if length == 0.0 {
            zeros += share;
        } else {
            let length = Tokens::new(length as u32);
            buckets.push(Bucket { low: length, high: length, weight: share });
        }
    }
    if (sum - 1.0).abs() > MAX_SUM_ERROR {
        return Err(Wrong::Sum { at, sum: (sum * 1e6).round() / 1e6 });
    }
    if buckets.iter().all(|bucket| bucket.weight == 0.0) {
        return Err(Wrong::Nothing { at });
    }
    match Lengths::histogram(buckets) {
        Ok(lengths) => Ok((lengths, zeros / sum)),
        Err(error) => Err(Wrong::Lengths { at, error }),
    }
}

#[cfg(test)]
mod tests;
