//! What the flags say of a trace: whether it is replayed, which part of it, and
//! how fast.

use measure::Span;
use wire::dataset::table::{Entry, Rows, Times};
use wire::dataset::timed_trace::Shape;
use workload::{MAX_TOKENS, Replay, ReplayError};

use super::load::PACES;
use crate::flags::{Reader, parse_duration};

/// Flags that concern a replay only.
const OF_REPLAYS: &[&str] = &["trace-speed", "trace-window"];

/// A part of a trace, in its own time from its first row; to its end where there
/// is no other.
pub(super) type Window = (Span, Option<Span>);

/// Whether the rows of this data set are let go at their own instants. Every
/// contradiction goes into `reader`.
pub(super) fn is_replayed(reader: &mut Reader<'_>, entry: Option<&Entry>) -> bool {
    let settings = reader.settings;
    let (asked, refused) = (settings.is_on("replay"), settings.is_on("no-replay"));
    let in_a_mix = settings.has("mix");
    let times = entry.map_or(Times::None, |entry| entry.times);
    if asked && refused {
        reader.wrong("replay", "contradicts --no-replay; leave out one of the two");
    }
    if times == Times::None || in_a_mix {
        let flags = ["replay", "trace-speed", "trace-window", "trace-sort"];
        if let Some(flag) = flags.into_iter().find(|flag| settings.has(flag)) {
            let name = entry.map_or("this workload", |entry| entry.name);
            let rule = if in_a_mix {
                "the parts of a mix come at the rate of the run, and none is replayed; leave it out"
                    .to_owned()
            } else {
                format!(
                    "{name} has no times to replay; give a trace: --dataset-name azure, mooncake, \
                     timed_trace, burstgpt or servegen"
                )
            };
            reader.wrong(flag, rule);
        }
        return false;
    }
    // Scripts for vLLM write its default out, which says that there is no rate.
    let says_when = |name: &&&str| !matches!(settings.text(name), None | Some("inf"));
    let pace = PACES.iter().find(says_when);
    if let (true, Some(pace)) = (asked, pace) {
        let rule =
            format!("says when requests arrive, and so does --{pace}; leave out one of the two");
        reader.wrong("replay", rule);
    }
    let replayed = asked || (times == Times::Replayed && !refused && pace.is_none());
    if let (false, Some(flag)) = (replayed, OF_REPLAYS.iter().find(|flag| settings.has(flag))) {
        let rule = match pace {
            Some(pace) => format!("concerns a replay, and --{pace} says when requests arrive"),
            None => "concerns a replay; add --replay".to_owned(),
        };
        reader.wrong(flag, rule);
    }
    replayed
}

/// The smallest block whose text is its own: shorter ones have so few words
/// that two hashes might mean one text.
const SMALLEST_BLOCK: u32 = 8;

/// How a timed trace is written, as its flags say.
pub(super) fn shape(reader: &mut Reader<'_>) -> Shape {
    let mut shape = Shape::default();
    let key = |flag: &str, otherwise: &mut String| {
        if let Some(key) = reader.settings.text(flag) {
            key.clone_into(otherwise);
        }
    };
    key("timed-trace-label-timestamp", &mut shape.time);
    key("timed-trace-label-input-length", &mut shape.input);
    key("timed-trace-label-output-length", &mut shape.output);
    key("timed-trace-label-hash-ids", &mut shape.hash_ids);
    if let Some(block) = reader.value("timed-trace-chunk-hash-size", "a whole number of tokens") {
        if (SMALLEST_BLOCK..=MAX_TOKENS).contains(&block) {
            shape.block = block;
        } else {
            let rule = format!("must be from {SMALLEST_BLOCK} to {MAX_TOKENS} tokens");
            reader.wrong("timed-trace-chunk-hash-size", rule);
        }
    }
    if let Some(seconds) = reader.number("timed-trace-sec-multiplier") {
        if seconds > 0.0 {
            shape.seconds = seconds;
        } else {
            reader.wrong("timed-trace-sec-multiplier", "must be above 0; 0.001 for milliseconds");
        }
    }
    shape
}

/// What a reader of the result must know of the rows' times.
pub(super) fn said(
    reader: &Reader<'_>,
    entry: &Entry,
    replay: Option<&Replay>,
    usable: usize,
) -> Vec<String> {
    let mut said = Vec::new();
    match replay {
        Some(replay) => {
            let outside = usable - replay.rows();
            if outside > 0 {
                said.push(format!(
                    "{outside} of {usable} usable rows lie outside of --trace-window and are not \
                     replayed"
                ));
            }
            if !reader.settings.is_on("ignore-eos") {
                said.push(
                    "an answer may end before the length that its row says; --ignore-eos forces it, \
                     as vLLM does for timed_trace"
                        .to_owned(),
                );
            }
        }
        None if entry.times == Times::Replayed => {
            said.push(
                "only lengths and texts are taken from the trace; its times are not replayed"
                    .to_owned(),
            );
        }
        None if entry.times == Times::OnRequest => {
            said.push("its times are not replayed; --replay does that".to_owned());
        }
        None => {}
    }
    said
}

/// Reads `--trace-window FROM..TO`; either end may be left out.
pub(super) fn window(reader: &mut Reader<'_>) -> Option<Window> {
    const FLAG: &str = "trace-window";
    let text = reader.settings.text(FLAG)?;
    let read = text.split_once("..").and_then(|(from, until)| {
        let from = if from.trim().is_empty() { Span::ZERO } else { parse_duration(from)? };
        let until = if until.trim().is_empty() { None } else { Some(parse_duration(until)?) };
        Some((from, until))
    });
    match read {
        Some((from, until)) if until.is_none_or(|until| from < until) => Some((from, until)),
        Some(_) => {
            reader.wrong(FLAG, format!("{text:?} is empty: FROM must be before TO"));
            None
        }
        None => {
            let rule = format!(
                "{text:?} is no part of a trace; write FROM..TO in its own time, such as 10m..20m, \
                 10m.. or ..90s"
            );
            reader.wrong(FLAG, rule);
            None
        }
    }
}

/// Puts rows and times into the order of time, equal ones as they were.
fn sort(rows: &mut Rows, times: &mut Vec<Span>) {
    let mut places: Vec<usize> = (0..times.len()).collect();
    places.sort_by_key(|&place| times[place]);
    rows.take(&places);
    *times = places.iter().map(|&place| times[place]).collect();
}

/// The replay of these rows. Rows outside of the window are taken out.
pub(super) fn replay(
    reader: &mut Reader<'_>,
    path: &str,
    rows: &mut Rows,
    mut times: Vec<Span>,
    window: Option<Window>,
) -> Option<Replay> {
    if times.len() != rows.len() {
        let rule = format!(
            "{path} has no column of times to replay; name it with --dataset-column time=COLUMN, \
             or leave out --replay"
        );
        reader.wrong("replay", rule);
        return None;
    }
    if reader.settings.is_on("trace-sort") {
        sort(rows, &mut times);
    }
    if let Some(place) = times.windows(2).position(|pair| pair[1] < pair[0]) {
        let (before, at) = (rows.source_row(place), rows.source_row(place + 1));
        let rule = format!(
            "{path}: line {at} goes back in time, {} before line {before}; a trace is in order of \
             time: sort the file, or add --trace-sort",
            times[place] - times[place + 1],
        );
        reader.wrong("dataset-path", rule);
        return None;
    }
    let last = times.last().copied().unwrap_or_default();
    let window = window.map(|(from, until)| (from, until.unwrap_or(last + Span::from_us(1))));
    if let Some((from, until)) = window {
        let inside = |time: &Span| (from..until).contains(time);
        let places: Vec<usize> = (0..times.len()).filter(|&place| inside(&times[place])).collect();
        if places.is_empty() {
            let rule = format!("no row of {path} lies in it; the trace ends after {last}");
            reader.wrong("trace-window", rule);
            return None;
        }
        rows.take(&places);
        times = places.iter().map(|&place| times[place]).collect();
    }
    let speed = reader.number("trace-speed").unwrap_or(1.0);
    match Replay::new(&times, speed, window) {
        Ok(replay) => Some(replay),
        Err(error @ ReplayError::Speed(_)) => {
            reader.wrong("trace-speed", error);
            None
        }
        Err(error) => {
            reader.wrong("dataset-path", format!("{path}: {error}"));
            None
        }
    }
}
