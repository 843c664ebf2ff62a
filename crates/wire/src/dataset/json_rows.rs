//! Rows of JSON: an array of them, or one a line.
//!
//! Each row is found by its strings and brackets alone and parsed by itself, so
//! that one with a mistake in it costs that row only, and a file that ends
//! inside a row keeps the rows before it.

use serde_json::{Map, Value};

use super::{
    DatasetNotes, Place, Reason, Refusal, broken_json, each_line, is_blank, lines, without_mark,
};

/// The object that a row is.
pub(super) fn object(bytes: &[u8], place: Place) -> Result<Map<String, Value>, Reason> {
    made(serde_json::from_slice(bytes), place)
}

fn made(row: serde_json::Result<Value>, place: Place) -> Result<Map<String, Value>, Reason> {
    match row {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Reason::NotAnObject),
        Err(error) => Err(broken_json(&error, place)),
    }
}

/// Hands over the object of each line, where a file holds nothing but lines.
/// What is none, and what `take` refuses, is skipped with its reason.
pub(super) fn each_of_lines(
    bytes: &[u8],
    mut take: impl FnMut(&mut DatasetNotes, Place, Map<String, Value>) -> Result<(), Reason>,
) -> DatasetNotes {
    let bytes = match without_mark(bytes) {
        Ok(bytes) => bytes,
        Err(refusal) => return DatasetNotes::refused(refusal),
    };
    let mut notes = DatasetNotes::default();
    each_line(bytes, &mut notes, &mut |notes, line| {
        notes.entries += 1;
        let place = Place::Line(line.number);
        let parsed: serde_json::Result<Value> = serde_json::from_slice(line.bytes);
        if !line.ended && parsed.as_ref().is_err_and(serde_json::Error::is_eof) {
            notes.truncated_at = Some(line.number);
        }
        if let Err(reason) = made(parsed, place).and_then(|object| take(notes, place, object)) {
            notes.skip(place, None, reason);
        }
    });
    notes
}

/// Hands over each row's bytes with its place.
pub(super) fn each(
    bytes: &[u8],
    take: &mut dyn FnMut(&mut DatasetNotes, Place, &[u8]),
) -> DatasetNotes {
    let bytes = match without_mark(bytes) {
        Ok(bytes) => bytes,
        Err(refusal) => return DatasetNotes::refused(refusal),
    };
    let mut notes = DatasetNotes::default();
    let mut row = |notes: &mut DatasetNotes, place, bytes: &[u8]| {
        notes.entries += 1;
        take(notes, place, bytes);
    };
    match bytes.trim_ascii_start() {
        [b'[', rows @ ..] => each_of_array(rows, &mut notes, &mut row),
        [b'{', ..] if first_line_is_whole(bytes) => {
            each_line(bytes, &mut notes, &mut |notes, line| {
                if !line.ended && extent(line.bytes).is_none() {
                    notes.truncated_at = Some(line.number);
                }
                row(notes, Place::Line(line.number), line.bytes);
            });
        }
        _ => return DatasetNotes::refused(Refusal::NotRows),
    }
    notes
}

/// Goes through the inside of an array.
fn each_of_array(
    mut rest: &[u8],
    notes: &mut DatasetNotes,
    row: &mut dyn FnMut(&mut DatasetNotes, Place, &[u8]),
) {
    for number in 1.. {
        rest = skip_separators(rest);
        if rest.first() == Some(&b']') {
            return;
        }
        let Some(length) = extent(rest) else {
            notes.truncated_at = Some(number);
            return;
        };
        let (this, later) = rest.split_at(length);
        row(notes, Place::Row(number), this);
        rest = later;
    }
}

/// Tells rows of one line each from one object written over many lines. A file
/// that is only the beginning of a line is the former.
fn first_line_is_whole(bytes: &[u8]) -> bool {
    let first = lines(bytes).find(|line| !is_blank(line.bytes));
    first.is_some_and(|line| !line.ended || extent(line.bytes).is_some())
}

fn skip_separators(bytes: &[u8]) -> &[u8] {
    let skipped = bytes.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b',');
    &bytes[skipped.count()..]
}

/// The length of the first JSON value in an array's inside; `None` when the
/// bytes end before it does. Only strings and brackets are looked at, so that a
/// value with a mistake in it can be skipped and the next one found. Every byte
/// is looked at once.
fn extent(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
    for (position, byte) in bytes.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' if depth == 1 => return Some(position + 1),
            // A stray brace must still be passed, or reading would stand still.
            b'}' if position == 0 => return Some(1),
            b'}' | b']' => return Some(position),
            b',' if depth == 0 => return Some(position),
            _ => {}
        }
    }
    None
}
