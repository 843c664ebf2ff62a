//! Timed traces: one JSON object a line, each a request with the time at which
//! it came.
//!
//! ```text
//! {"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}
//! {"timestamp": 61.114, "prompt": "Why is the sky blue?", "output_length": 132}
//! ```
//!
//! - The time: a number, times a factor that makes seconds of it, or a date.
//! - Either lengths in tokens, and optionally the hashes of the prompt's blocks:
//!   prompts with the same hashes at their heads began with the same text. Each
//!   block has the same number of tokens, but the last one may be cut. Or the
//!   prompt itself, as rows of `custom` have it. One file has one of the two.
//! - `label`, `labels`: as in `custom`.
//!
//! This is the format of vLLM's `timed_trace`, of Mooncake (milliseconds, blocks
//! of 512 tokens) and of the Qwen traces of Alibaba (seconds, blocks of 16).

use measure::Tokens;
use serde_json::{Map, Value};
use workload::digest::Digest;
use workload::{Blocks, LengthRow, Prompt};

use super::custom;
use super::table::Rows;
use super::{DatasetNotes, Reason, instant, json_rows, labels};

/// How a trace is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Tokens of a block that a hash names.
    pub block: u32,
    /// What a time is multiplied by to be seconds.
    pub seconds: f64,
    /// Key of the time.
    pub time: String,
    /// Key of the prompt's length.
    pub input: String,
    /// Key of the answer's length.
    pub output: String,
    /// Key of the hashes.
    pub hash_ids: String,
}

impl Default for Shape {
    /// As vLLM 0.27.1 takes it without flags.
    fn default() -> Self {
        Self {
            block: 16,
            seconds: 1.0,
            time: "timestamp".to_owned(),
            input: "input_length".to_owned(),
            output: "output_length".to_owned(),
            hash_ids: "hash_ids".to_owned(),
        }
    }
}

/// One row.
enum Row {
    Length(LengthRow),
    Prompt(Box<Prompt>),
}

/// Reads the file.
pub fn read(bytes: &[u8], shape: &Shape, count: &dyn Fn(&str) -> u32) -> (Rows, DatasetNotes) {
    let (mut lengths, mut prompts, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let mut notes = json_rows::each_of_lines(bytes, |notes, place, object| {
        let (row, us) = row_of(&object, shape, place.number(), count)?;
        match row {
            Row::Length(row) if prompts.is_empty() => lengths.push(row),
            Row::Prompt(prompt) if lengths.is_empty() => {
                custom::note_aside(custom::unwrapped(&object), notes);
                prompts.push(*prompt);
            }
            _ => return Err(Reason::OtherKind),
        }
        times.push(us);
        Ok(())
    });
    notes.times = instant::from_earliest(&times);
    let rows = if prompts.is_empty() { Rows::Lengths(lengths) } else { Rows::Prompts(prompts) };
    (rows, notes)
}

fn row_of(
    object: &Map<String, Value>,
    shape: &Shape,
    line: u64,
    count: &dyn Fn(&str) -> u32,
) -> Result<(Row, i64), Reason> {
    let present = |key: &str| object.get(key).filter(|value| !value.is_null());
    let time = present(&shape.time).ok_or_else(|| Reason::NoTime(shape.time.clone()))?;
    let us = time_us(time, shape.seconds).ok_or(Reason::BadTime)?;
    if ["prompt", "messages", "body"].iter().any(|key| present(key).is_some()) {
        let prompt = custom::prompt_of(custom::unwrapped(object), count)?;
        let limit = prompt.max_output_tokens;
        let own = present(&shape.output).map(custom::length_of).transpose()?;
        let max_output_tokens = limit.or(own);
        let prompt = Prompt { source_row: Some(line), max_output_tokens, ..prompt };
        return Ok((Row::Prompt(Box::new(prompt)), us));
    }
    let length = |key: &str| present(key).ok_or_else(|| Reason::NoKey(key.to_owned()));
    let input = match custom::length_of(length(&shape.input)?) {
        Ok(input) => input,
        Err(Reason::ZeroLength) => return Err(Reason::EmptyPrompt),
        Err(Reason::LengthTooLarge) => return Err(Reason::InputTooLarge),
        Err(_) => return Err(Reason::NoNumber("the prompt's length")),
    };
    let row = LengthRow {
        input,
        output: custom::length_of(length(&shape.output)?)?,
        blocks: present(&shape.hash_ids)
            .map(|ids| blocks(ids, input, shape.block))
            .transpose()?
            .flatten(),
        labels: labels::of_row(object, None)?,
        source_row: line,
    };
    Ok((Row::Length(row), us))
}

/// The time in microseconds.
fn time_us(time: &Value, seconds: f64) -> Option<i64> {
    match time {
        Value::Number(number) => instant::from_seconds(number.as_f64()? * seconds),
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) => instant::from_seconds(number * seconds),
            // A date is what it is, whatever numbers are multiplied by.
            Err(_) => instant::parse(text.trim()),
        },
        _ => None,
    }
}

/// The blocks of a prompt; `None` where none is named.
fn blocks(ids: &Value, input: Tokens, size: u32) -> Result<Option<Blocks>, Reason> {
    let Value::Array(ids) = ids else { return Err(Reason::BadHashId) };
    if ids.is_empty() {
        return Ok(None);
    }
    let needed = input.get().div_ceil(size);
    if ids.len() != needed as usize {
        let (ids, tokens) = (ids.len() as u64, input.get());
        return Err(Reason::BlockCount { ids, tokens, size, needed });
    }
    let ids = ids.iter().map(hash_id).collect::<Option<Box<[u64]>>>();
    let size = Tokens::new(size);
    Ok(Some(Blocks { ids: ids.ok_or(Reason::BadHashId)?, size }))
}

/// A hash as 64 bits. Whole numbers are taken as they are, whole width; of
/// texts and of negative numbers, which some programs write, the digest is.
fn hash_id(id: &Value) -> Option<u64> {
    let of_text = |text: &str| Digest::new().text(text).value();
    match id {
        // A number over 2⁶⁴ has lost its last digits by now: two ids could have
        // become one.
        Value::Number(number) => {
            number.as_u64().or_else(|| Some(of_text(&number.as_i64()?.to_string())))
        }
        Value::String(text) => Some(of_text(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
