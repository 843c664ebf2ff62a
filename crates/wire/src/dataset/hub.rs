//! Files as the Hugging Face hub has them, from disk: rows of JSON, an array or
//! one a line, or Parquet. Any column may be the prompt:
//!
//! ```text
//! {"question": "What is 6 times 7?", "answer": "6 times 7 is 42.", "level": "easy"}
//! ```
//!
//! - The prompt is the column named for it, else the first of `prompt`,
//!   `messages`, `question`, `instruction`, `problem` and `text` that a row
//!   has: a text, or messages as in a custom file.
//! - The answer's limit is the column named for it, else the first of
//!   `output_tokens`, `answer`, `output`, `response`, `completion` and
//!   `solution`: a number is the limit, a text is as long as the answer is to
//!   be. A row without one has the default.
//! - Columns named for labels become labels of their names. `label` without
//!   being named is none: in such files it is mostly a class to be learnt.

use std::collections::BTreeSet;

use measure::Tokens;
use serde_json::{Map, Value};
use workload::{Content, Prompt};

use super::columns::{Columns, Field, listed};
use super::parquet_rows;
use super::{DatasetNotes, Place, Reason, Refusal, custom, json_rows, labels};

/// Columns that are the prompt when none was named.
const PROMPTS: &[&str] = &["prompt", "messages", "question", "instruction", "problem", "text"];

/// Columns that say the answer's length when none was named.
const OUTPUTS: &[&str] =
    &["output_tokens", "answer", "output", "response", "completion", "solution"];

/// How many different names of columns are kept for a message.
const MAX_SEEN: usize = 1000;

/// Reads the file. `count` as in [`custom::read`].
pub fn read(
    bytes: Vec<u8>,
    columns: &Columns,
    count: &dyn Fn(&str) -> u32,
) -> (Vec<Prompt>, DatasetNotes) {
    let mut prompts = Vec::new();
    let mut seen = BTreeSet::new();
    let mut row = |notes: &mut DatasetNotes, place: Place, row: Map<String, Value>| {
        if seen.len() < MAX_SEEN {
            seen.extend(row.keys().cloned());
        }
        match prompt_of(row, columns, count) {
            Ok(prompt) => prompts.push(Prompt { source_row: Some(place.number()), ..prompt }),
            Err(reason) => notes.skip(place, None, reason),
        }
    };
    let mut notes = if bytes.starts_with(parquet_rows::MAGIC) {
        let mut named: Vec<&str> = PROMPTS.iter().chain(OUTPUTS).copied().collect();
        named.extend(columns.pairs().map(|(_, column)| column));
        parquet_rows::each(bytes, &named, &mut row)
    } else {
        json_rows::each(&bytes, &mut |notes, place, bytes| match json_rows::object(bytes, place) {
            Ok(object) => row(notes, place, object),
            Err(reason) => notes.skip(place, None, reason),
        })
    };
    let names = notes.columns.take().unwrap_or(seen);
    if notes.refused.is_none() && !names.is_empty() {
        notes.refused = missing(columns, &names);
    }
    (prompts, notes)
}

/// The first column that is asked for and that no row has.
fn missing(columns: &Columns, names: &BTreeSet<String>) -> Option<Refusal> {
    let no_column = |field, wanted: &str| Refusal::NoColumn {
        field,
        wanted: wanted.to_owned(),
        found: listed(names.iter().map(String::as_str)),
    };
    let mut pairs = columns.pairs();
    if let Some((field, column)) = pairs.find(|(_, column)| !names.contains(*column)) {
        return Some(no_column(field.name(), column));
    }
    let usable = columns.of(Field::Prompt).is_some() || PROMPTS.iter().any(|&n| names.contains(n));
    (!usable).then(|| no_column("prompt", &PROMPTS.join(" or ")))
}

fn prompt_of(
    mut row: Map<String, Value>,
    columns: &Columns,
    count: &dyn Fn(&str) -> u32,
) -> Result<Prompt, Reason> {
    let mut labels = Vec::new();
    for column in columns.labels() {
        if let Some(value) = row.get(column).filter(|value| !value.is_null()) {
            labels.push((column.to_owned(), labels::value(value)?));
        }
    }
    labels.sort();
    let tools = columns.of(Field::Tools).and_then(|column| row.get(column));
    let tools = tools.filter(|tools| !tools.is_null()).map(labels::tools).transpose()?;
    let output = column_of(&row, columns.of(Field::Output), OUTPUTS).map(|key| &row[key]);
    let max_output_tokens = match output {
        None => None,
        Some(Value::String(answer)) if answer.trim().is_empty() => None,
        Some(Value::String(answer)) => {
            Some(Tokens::new(count(answer).clamp(1, workload::MAX_TOKENS)))
        }
        Some(number) => Some(custom::length_of(number)?),
    };
    let key = column_of(&row, columns.of(Field::Prompt), PROMPTS).ok_or(Reason::NoPrompt)?;
    let key = key.to_owned();
    let content = match row.get_mut(&key).map(Value::take) {
        Some(Value::String(text)) => Content::Text(text),
        Some(messages @ Value::Array(_)) => Content::Messages(custom::messages_of(&messages)?),
        _ => return Err(Reason::PromptNotText),
    };
    Ok(Prompt {
        input_tokens: Some(custom::tokens_of(&content, count)?),
        content,
        max_output_tokens,
        source_row: None,
        labels,
        body: tools.into_iter().collect(),
        priority: None,
    })
}

/// The column named, or the first usual one that the row has a value in.
fn column_of<'c>(
    row: &Map<String, Value>,
    named: Option<&'c str>,
    usual: &[&'static str],
) -> Option<&'c str> {
    let has = |column: &&str| row.get(*column).is_some_and(|value| !value.is_null());
    match named {
        Some(column) => Some(column).filter(has),
        None => usual.iter().copied().find(has),
    }
}

#[cfg(test)]
mod tests;
