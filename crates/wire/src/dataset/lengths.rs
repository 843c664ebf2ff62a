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

use measure::{Span, Tokens};
use workload::{LengthRow, MAX_TOKENS};

use super::columns::{Columns, Field, listed};
use super::{DatasetNotes, Place, Reason, Refusal, labels, without_mark};

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
    match read_checked(bytes, columns, model) {
        Ok(read) => read,
        Err(refusal) => (Vec::new(), DatasetNotes::refused(refusal)),
    }
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
) -> Result<(Vec<LengthRow>, DatasetNotes), Refusal> {
    let bytes = without_mark(bytes)?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let head = reader.byte_headers().map_err(|_| Refusal::NotRows)?;
    let head: Vec<String> =
        head.iter().map(|name| String::from_utf8_lossy(name).trim().to_owned()).collect();
    let places = places(&head, columns, model.is_some())?;
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
                times.push(at_us);
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
    let first = times.iter().flatten().min().copied().unwrap_or(0);
    for (row, at_us) in rows.iter_mut().zip(times) {
        row.at = at_us.map(|at_us| Span::from_us(at_us.saturating_sub(first)));
    }
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

fn places(head: &[String], columns: &Columns, needs_model: bool) -> Result<Places, Refusal> {
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
        time: if columns.of(Field::Time).is_some() { Some(time?) } else { time.ok() },
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
        Some(place) => Some(instant_us(&text(place)).ok_or(Reason::BadTime)?),
    };
    let mut of_row = Vec::new();
    for (name, place) in &places.labels {
        of_row.push((name.clone(), labels::value(&text(*place).into())?));
    }
    let row = LengthRow {
        input: Tokens::new(within(input).ok_or(Reason::InputTooLarge)?),
        output: Tokens::new(within(output).ok_or(Reason::LengthTooLarge)?),
        at: None,
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

/// The most seconds that an instant may be from its zero: 30 000 years.
const MAX_SECONDS: f64 = 1e12;

/// Seconds, or a date and time of day in any number of fraction digits, in
/// microseconds.
fn instant_us(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return (seconds.abs() <= MAX_SECONDS).then(|| (seconds * 1e6).round() as i64);
    }
    let (date, time) = text.split_once([' ', 'T'])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    // Offsets from UTC are the same in every row, so they are left out.
    let time = time.split(['+', 'Z']).next()?;
    let mut time = time.splitn(3, ':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let seconds = time.next()?.parse::<f64>().ok()?;
    let in_range = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&seconds);
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute;
    in_range.then(|| minutes * 60_000_000 + (seconds * 1e6).round() as i64)
}

/// Days since 1970-01-01 in the Gregorian calendar (Hinnant, "chrono-compatible
/// low-level date algorithms", `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests;
