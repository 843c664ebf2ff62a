//! What a row of JSON says besides its prompt: labels, and members
//! of the request.

use serde_json::{Map, Value};

use super::Reason;

/// The longest label value, in characters. A label names a class; what is
/// longer is a text that was taken for one.
const MAX_CHARS: usize = 120;

/// The labels of a row: `label` and `labels`, and its priority, which a request
/// is labelled with in any case.
pub(super) fn of_row(
    object: &Map<String, Value>,
    priority: Option<i32>,
) -> Result<Vec<(String, String)>, Reason> {
    let of_priority = |number: i32| (workload::routing::PRIORITY.to_owned(), number.to_string());
    let mut found: Vec<(String, String)> = priority.map(of_priority).into_iter().collect();
    for key in ["label", "labels"] {
        match object.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::Object(labels)) => {
                for (name, label) in labels.iter().filter(|(_, label)| !label.is_null()) {
                    found.push((name.clone(), value(label)?));
                }
            }
            Some(label) if key == "label" => found.push((key.to_owned(), value(label)?)),
            Some(_) => return Err(Reason::BadLabel),
        }
    }
    found.sort();
    found.dedup_by(|later, first| later.0 == first.0);
    Ok(found)
}

/// One label's value: a text, number or truth value.
pub(super) fn value(value: &Value) -> Result<String, Reason> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(Reason::BadLabel),
    };
    let chars = text.chars().count();
    if (1..=MAX_CHARS).contains(&chars) { Ok(text) } else { Err(Reason::BadLabel) }
}

/// The members of a row that go into the request's body: what the model may
/// call, and what its answer has to be like.
pub(super) fn body_of(object: &Map<String, Value>) -> Result<Vec<(String, String)>, Reason> {
    let present = |key: &str| object.get(key).filter(|value| !value.is_null());
    let mut body: Vec<(String, String)> = Vec::new();
    body.extend(present("tools").map(tools).transpose()?);
    for (name, takes_text) in [("tool_choice", true), ("response_format", false)] {
        match present(name) {
            None => {}
            Some(value) if value.is_object() || (takes_text && value.is_string()) => {
                body.push((name.to_owned(), value.to_string()));
            }
            Some(_) => return Err(Reason::BadMember(name)),
        }
    }
    Ok(body)
}

/// A list of tools, checked to be one of objects, as the body's member.
pub(super) fn tools(value: &Value) -> Result<(String, String), Reason> {
    match value {
        Value::Array(tools) if tools.iter().all(Value::is_object) => {
            Ok(("tools".to_owned(), value.to_string()))
        }
        _ => Err(Reason::BadTools),
    }
}
