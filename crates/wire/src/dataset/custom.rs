//! Custom prompts: one JSON object a line.
//!
//! ```text
//! {"prompt": "Why is the sky blue?", "output_tokens": 120}
//! {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 40}
//! ```
//!
//! - `prompt`: a string. Or `messages`: a list of `{role, content}`, `content` a
//!   string or a list of parts: `{"type": "text", "text": …}`, or an image,
//!   sound or film in the form of the chat API, kept as it is. One of the two.
//! - The answer's limit, the first of these that is not null: `output_tokens`,
//!   `output_length`, `output_len`, `max_output_tokens`,
//!   `max_completion_tokens`, `max_tokens`. A whole number from 1 on, also as
//!   `12.0`, `1e2` or `"20"`; without one the request has its default.
//! - `label`: a text, number or truth value, the label named `label`; or an
//!   object of several, as `labels` is.
//! - `tools`: the list of tools that the model may call, `tool_choice` and
//!   `response_format`, sent as they are.
//! - `priority`: a whole number, the place in the server's queue; it is also a
//!   label.
//! - A line of a batch file is unwrapped: its `body` is the row.
//! - Other keys are ignored. Of those that a request body may have (`model`,
//!   `stream`, `temperature`, …) a note says so: the run's own are sent, the
//!   same in every request.
//! - `session`, `id`, `parents`, `think_ms`, `history` and `answer` make turns of
//!   conversations of rows, as said of sessions.
//! - A message may have further members, as calls of tools and their results
//!   have; its content may then be null.
//!
//! UTF-8 with or without byte order mark; lines end with LF or CR LF, the last
//! one need not; blank lines are no error. A line that breaks a rule is
//! rejected with its number, and reading goes on.

use serde_json::{Map, Value};
use workload::{Attachment, Content, MAX_TOKENS, Media, Message, Prompt};

use measure::Tokens;

use crate::media;

use super::sessions::{self, Row};
use super::table::{Options, Rows};
use super::{DatasetNotes, Reason, json_rows, labels};

/// The keys of the answer's limit, first come first served: ours and vLLM's,
/// then other tools', then the API's own.
const LENGTH_KEYS: &[&str] = &[
    "output_tokens",
    "output_length",
    "output_len",
    "max_output_tokens",
    "max_completion_tokens",
    "max_tokens",
];

/// Keys of a request body, or of a row, that are known and not taken.
const SET_ASIDE: &[&str] = &[
    "model",
    "stream",
    "stream_options",
    "temperature",
    "top_p",
    "top_k",
    "stop",
    "n",
    "seed",
    "presence_penalty",
    "frequency_penalty",
];

/// Reads the file, each row as a prompt by itself. `count` says about how many
/// tokens a text is; without a tokenizer, pass [`workload::estimate_tokens`].
pub fn read(bytes: &[u8], count: &dyn Fn(&str) -> u32) -> (Vec<Prompt>, DatasetNotes) {
    rows(bytes, |object| prompt_of(object, count))
}

/// Reads a file of one JSON object a line, each made a prompt by `prompt_of`.
pub(super) fn rows(
    bytes: &[u8],
    prompt_of: impl FnMut(&Map<String, Value>) -> Result<Prompt, Reason>,
) -> (Vec<Prompt>, DatasetNotes) {
    let (rows, notes) = read_rows(bytes, prompt_of);
    (rows.into_iter().map(|row| row.prompt).collect(), notes)
}

/// Reads the file: prompts, or conversations where rows say that they belong
/// together or all turns of each are asked for.
pub fn prompts_or_turns(bytes: &[u8], options: &Options<'_>) -> (Rows, DatasetNotes) {
    let (rows, mut notes) = read_rows(bytes, |object| prompt_of(object, options.count));
    let together = rows.iter().any(|row| row.session.is_some() || row.parents.is_some());
    if together {
        let built = sessions::build(rows, options.scripted, &mut notes);
        return (built, notes);
    }
    if !options.multi_turn {
        return (Rows::Prompts(rows.into_iter().map(|row| row.prompt).collect()), notes);
    }
    let mut builder = sessions::Builder::new(options.scripted);
    for row in rows {
        let turns = sessions::cut(row.prompt, options.count);
        let added =
            if turns.is_empty() { Err(Reason::NoHumanTurn) } else { builder.add_chain(turns) };
        if let Err(reason) = added {
            notes.skip(row.place, None, reason);
        }
    }
    (builder.rows(), notes)
}

fn read_rows(
    bytes: &[u8],
    mut prompt_of: impl FnMut(&Map<String, Value>) -> Result<Prompt, Reason>,
) -> (Vec<Row>, DatasetNotes) {
    let mut rows = Vec::new();
    let notes = json_rows::each_of_lines(bytes, |notes, place, object| {
        let body = unwrapped(&object);
        note_aside(body, notes);
        let prompt = Prompt { source_row: Some(place.number()), ..prompt_of(body)? };
        rows.push(row_of(&object, Row::alone(place, prompt))?);
        Ok(())
    });
    (rows, notes)
}

/// Notes the members of a row that are not taken from it.
pub(super) fn note_aside(row: &Map<String, Value>, notes: &mut DatasetNotes) {
    notes.set_aside.extend(SET_ASIDE.iter().filter(|key| row.contains_key(**key)));
}

/// A row with what it says of its place in a conversation.
fn row_of(object: &Map<String, Value>, row: Row) -> Result<Row, Reason> {
    let present = |key: &str| object.get(key).filter(|value| !value.is_null());
    let name = |key: &'static str| {
        present(key).map(|value| labels::value(value).map_err(|_| Reason::BadName(key))).transpose()
    };
    // An id of many requests' logs is no name of ours, and any will do.
    let id = if present("parents").is_some() || present("session").is_some() {
        name("id")?
    } else {
        None
    };
    let parents = match present("parents") {
        None => None,
        Some(Value::Array(ids)) => {
            let ids: Result<Vec<String>, Reason> =
                ids.iter().map(|id| labels::value(id).map_err(|_| Reason::BadParents)).collect();
            Some(ids?)
        }
        Some(_) => return Err(Reason::BadParents),
    };
    let fresh = match present("history") {
        None | Some(Value::Bool(true)) => false,
        Some(Value::Bool(false)) => true,
        Some(_) => return Err(Reason::BadHistory),
    };
    let answer = match present("answer") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![Message::new("assistant", text.as_str())],
        Some(message @ Value::Object(_)) => answer_of(&Value::Array(vec![message.clone()]))?,
        Some(messages) => answer_of(messages)?,
    };
    Ok(Row {
        session: name("session")?,
        id,
        parents,
        think: present("think_ms").map(sessions::think_of).transpose()?,
        fresh,
        answer,
        ..row
    })
}

fn answer_of(messages: &Value) -> Result<Vec<Message>, Reason> {
    let messages = messages_of(messages).map_err(|_| Reason::BadAnswer)?;
    let said = messages.iter().all(|message| message.role == "assistant");
    said.then_some(messages).ok_or(Reason::BadAnswer)
}

/// The request of a batch file's line, or the line itself.
pub(super) fn unwrapped(object: &Map<String, Value>) -> &Map<String, Value> {
    match object.get("body") {
        Some(Value::Object(body)) if !object.contains_key("prompt") => body,
        _ => object,
    }
}

pub(super) fn prompt_of(
    object: &Map<String, Value>,
    count: &dyn Fn(&str) -> u32,
) -> Result<Prompt, Reason> {
    let present = |key: &str| object.get(key).filter(|value| !value.is_null());
    let content = match (present("prompt"), present("messages")) {
        (Some(_), Some(_)) => return Err(Reason::TwoPrompts),
        (Some(Value::String(text)), None) => Content::Text(text.clone()),
        (Some(_), None) => return Err(Reason::PromptNotText),
        (None, Some(messages)) => Content::Messages(messages_of(messages)?),
        (None, None) => return Err(Reason::NoPrompt),
    };
    with_content(object, content, count)
}

/// A prompt of this content; the rest of the row is read here.
pub(super) fn with_content(
    object: &Map<String, Value>,
    content: Content,
    count: &dyn Fn(&str) -> u32,
) -> Result<Prompt, Reason> {
    let present = |key: &str| object.get(key).filter(|value| !value.is_null());
    let length = LENGTH_KEYS.iter().find_map(|key| present(key));
    let priority = present("priority").map(priority_of).transpose()?;
    Ok(Prompt {
        input_tokens: Some(tokens_of(&content, count)?),
        content,
        max_output_tokens: length.map(length_of).transpose()?,
        source_row: None,
        labels: labels::of_row(object, priority)?,
        body: labels::body_of(object)?,
        priority,
    })
}

/// About how many tokens a prompt's text is; one without a letter or a picture
/// is refused.
pub(super) fn tokens_of(content: &Content, count: &dyn Fn(&str) -> u32) -> Result<Tokens, Reason> {
    let (blank, tokens) = match content {
        Content::Text(text) => (text.trim().is_empty(), count(text)),
        Content::Texts(texts) => (
            texts.iter().all(|text| text.trim().is_empty()),
            texts.iter().map(|text| count(text)).fold(0, u32::saturating_add),
        ),
        Content::Messages(messages) => {
            let counts = messages.iter().map(|message| count(&message.content));
            let empty =
                |message: &Message| message.content.trim().is_empty() && message.media.is_empty();
            let blank = messages.iter().all(empty);
            (blank, counts.fold(0, u32::saturating_add))
        }
    };
    if blank { Err(Reason::EmptyPrompt) } else { Ok(Tokens::new(tokens)) }
}

/// Messages as they are; what is neither text nor known media is refused.
pub(super) fn messages_of(value: &Value) -> Result<Vec<Message>, Reason> {
    let messages = value.as_array().ok_or(Reason::BadMessages)?;
    if messages.is_empty() {
        return Err(Reason::EmptyPrompt);
    }
    messages.iter().map(message_of).collect::<Option<_>>().ok_or(Reason::BadMessages)
}

/// Members of a message that are sent with it.
const MEMBERS: &[&str] = &["tool_calls", "tool_call_id", "name"];

fn message_of(message: &Value) -> Option<Message> {
    let role = message.get("role")?.as_str()?.to_owned();
    let mut members: Map<String, Value> = Map::new();
    for name in MEMBERS {
        if let Some(value) = message.get(name).filter(|value| !value.is_null()) {
            members.insert((*name).to_owned(), value.clone());
        }
    }
    let mut read = Message::new(role, "");
    match message.get("content") {
        Some(Value::String(text)) => read.content.clone_from(text),
        Some(Value::Array(parts)) => {
            for part in parts {
                take_part(&mut read, part)?;
            }
        }
        // A message of calls alone has no text.
        None | Some(Value::Null) if members.contains_key("tool_calls") => {
            members.insert("content".to_owned(), Value::Null);
        }
        _ => return None,
    }
    read.members = (!members.is_empty()).then(|| Value::Object(members).to_string());
    Some(read)
}

/// Adds one part to a message. What is not known is refused: to drop it would
/// be to measure another prompt than the file's.
fn take_part(message: &mut Message, part: &Value) -> Option<()> {
    match text_part(part) {
        Some(text) => message.content.push_str(text),
        None => attach(message, media::part_of(part)?),
    }
    Some(())
}

/// The text of a part of text.
pub(super) fn text_part(part: &Value) -> Option<&str> {
    (part.get("type")?.as_str()? == "text").then(|| part.get("text")?.as_str())?
}

/// Puts media behind what a message has so far.
pub(super) fn attach(message: &mut Message, media: Media) {
    message.media.push(Attachment { before: message.content.len(), media });
}

/// A limit from 1 on.
pub(super) fn length_of(value: &Value) -> Result<Tokens, Reason> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    match number.filter(|number| number.is_finite()) {
        None => Err(Reason::BadLength),
        Some(0.0) => Err(Reason::ZeroLength),
        Some(number) if number < 0.0 => Err(Reason::NegativeLength),
        Some(number) if number.fract() != 0.0 => Err(Reason::BadLength),
        Some(number) if number > f64::from(MAX_TOKENS) => Err(Reason::LengthTooLarge),
        Some(number) => Ok(Tokens::new(number as u32)),
    }
}

/// A whole number of either sign, also as `"3"`.
fn priority_of(value: &Value) -> Result<i32, Reason> {
    let number = match value {
        Value::Number(number) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or(Reason::BadPriority)
}

#[cfg(test)]
mod tests;
