//! Tables of lengths, as traces are published: one request a line, no text.
//!
//! ```text
//! Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
//! 5,ChatGPT,472,18,490,Conversation log
//! ```
//!
//! BurstGPT (both versions) and the Azure traces of 2023 and 2024, and any other
//! CSV with a head whose columns are named. Columns are found by name, in any
//! order and case. A row without response tokens is a request that failed when
//! the trace was taken; it is skipped, since no limit of 0 can be sent.

use measure::Tokens;
use workload::{LengthRow, MAX_TOKENS};

use super::columns::{Columns, Field, listed};
use super::{DatasetNotes, Place, Reason, Refusal, instant, labels, without_mark};

/// Names of the prompt's length.
const INPUTS: &[&str] =
    &["Request tokens", "ContextTokens", "input_length", "input_tokens", "num_prefill_tokens"];

/// Names of the answer's length.
const OUTPUTS: &[&str] =
    &["Response tokens", "GeneratedTokens", "output_length", "output_tokens", "num_decode_tokens"];

/// Names of the instant.
const TIMES: &[&str] = &["Timestamp", "arrived_at"];

/// Reads the file; of one model only where one is asked for, by the column
/// `Model`.
pub fn read(
    bytes: &[u8],
    columns: &Columns,
    model: Option<&str>,
) -> (Vec<LengthRow>, DatasetNotes) {
    or_refused(read_checked(bytes, columns, model, false))
}

/// The same of a file that has to have times.
pub(super) fn read_timed(bytes: &[u8], columns: &Columns) -> (Vec<LengthRow>, DatasetNotes) {
    or_refused(read_checked(bytes, columns, None, true))
}

fn or_refused(
    read: Result<(Vec<LengthRow>, DatasetNotes), Refusal>,
) -> (Vec<LengthRow>, DatasetNotes) {
    read.unwrap_or_else(|refusal| (Vec::new(), DatasetNotes::refused(refusal)))
}

/// Places of columns.
struct Places {
    input: usize,
    output: usize,
    time: Option<usize>,
    model: Option<usize>,
    labels: Vec<(String, usize)>,
    count: usize,
}

fn read_checked(
    bytes: &[u8],
    columns: &Columns,
    model: Option<&str>,
    needs_time: bool,
) -> Result<(Vec<LengthRow>, DatasetNotes), Refusal> {
    let bytes = without_mark(bytes)?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let head = reader.byte_headers().map_err(|_| Refusal::NotRows)?;
    let head: Vec<String> =
        head.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
    let places = places(&head, columns, model.is_some(), needs_time)?;
    let (mut rows, mut notes) = (Vec::new(), DatasetNotes::default());
    let mut times = Vec::new();
    let mut record = csv::ByteRecord::new();
    let mut line = LineCounter { bytes, at: 0, line: 1 };
    // Reading from memory fails never, and a flexible reader takes any line.
    while reader.read_byte_record(&mut record).unwrap_or(false) {
        let place = Place::Line(line.of(record.position().map_or(0, csv::Position::byte)));
        notes.entries += 1;
        match row_of(&record, &places, model) {
            Ok((row, at_us)) => {
                rows.push(LengthRow { source_row: place.number(), ..row });
                times.extend(at_us);
            }
            Err(reason) => {
                let last = reader.position().byte() as usize >= bytes.len();
                if reason == Reason::FieldCount && last && !bytes.ends_with(b"\n") {
                    notes.truncated_at = Some(place.number());
                }
                notes.skip(place, None, reason);
            }
        }
    }
    notes.times = instant::from_earliest(&times);
    Ok((rows, notes))
}

/// Numbers lines as an editor does. The reader's own count is one too low where
/// lines end with CR LF.
struct LineCounter<'b> {
    bytes: &'b [u8],
    at: usize,
    line: u64,
}

impl LineCounter<'_> {
    /// The line of the record that begins at or after this byte; records are
    /// asked for in order.
    fn of(&mut self, byte: u64) -> u64 {
        let byte = byte as usize;
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let ends = self.bytes.get(byte..).unwrap_or_default().iter().take_while(|b| is_end(b));
        let start = (byte + ends.count()).max(self.at);
        let passed = self.bytes.get(self.at..start).unwrap_or_default();
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.at = start;
        self.line
    }
}

fn places(
    head: &[String],
    columns: &Columns,
    needs_model: bool,
    needs_time: bool,
) -> Result<Places, Refusal> {
    let at = |name: &str| head.iter().position(|column| column.eq_ignore_ascii_case(name));
    let place = |field: &'static str, named: Option<&str>, usual: &[&str]| {
        let found = match named {
            Some(name) => at(name),
            None => usual.iter().find_map(|name| at(name)),
        };
        found.ok_or_else(|| Refusal::NoColumn {
            field,
            wanted: named.map_or_else(|| usual.join(" or "), str::to_owned),
            found: listed(head.iter().map(String::as_str)),
        })
    };
    let time = place("time", columns.of(Field::Time), TIMES);
    let mut labels = Vec::new();
    for name in columns.labels() {
        labels.push((name.to_owned(), place("label", Some(name), &[])?));
    }
    labels.sort();
    Ok(Places {
        input: place("input", columns.of(Field::Input), INPUTS)?,
        output: place("output", columns.of(Field::Output), OUTPUTS)?,
        // A file without instants is one of lengths; only a name that is wrong
        // is an error.
        time: if needs_time || columns.of(Field::Time).is_some() { Some(time?) } else { time.ok() },
        model: if needs_model { Some(place("model", None, &["Model"])?) } else { None },
        labels,
        count: head.len(),
    })
}

fn row_of(
    record: &csv::ByteRecord,
    places: &Places,
    model: Option<&str>,
) -> Result<(LengthRow, Option<i64>), Reason> {
    if record.len() != places.count {
        return Err(Reason::FieldCount);
    }
    let text = |place: usize| String::from_utf8_lossy(&record[place]).trim().to_owned();
    if let (Some(place), Some(model)) = (places.model, model)
        && !text(place).eq_ignore_ascii_case(model)
    {
        return Err(Reason::NotAskedFor("model"));
    }
    let output = whole(&text(places.output), "the answer's length")?;
    if output == 0 {
        return Err(Reason::FailedRequest);
    }
    let input = whole(&text(places.input), "the prompt's length")?;
    let within = |number: u64| u32::try_from(number).ok().filter(|&number| number <= MAX_TOKENS);
    let at_us = match places.time {
        None => None,
        Some(place) => Some(instant::parse(&text(place)).ok_or(Reason::BadTime)?),
    };
    let mut of_row = Vec::new();
    for (name, place) in &places.labels {
        of_row.push((name.clone(), labels::value(&text(*place).into())?));
    }
    let row = LengthRow {
        input: Tokens::new(within(input).ok_or(Reason::InputTooLarge)?),
        output: Tokens::new(within(output).ok_or(Reason::LengthTooLarge)?),
        blocks: None,
        labels: of_row,
        source_row: 0,
    };
    if input == 0 { Err(Reason::EmptyPrompt) } else { Ok((row, at_us)) }
}

/// A whole number, also as `12.0`, which spreadsheets make of it.
fn whole(text: &str, what: &'static str) -> Result<u64, Reason> {
    let number: f64 = text.parse().map_err(|_| Reason::NoNumber(what))?;
    let whole = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    if whole { Ok(number as u64) } else { Err(Reason::NoNumber(what)) }
}

#[cfg(test)]
mod tests;
