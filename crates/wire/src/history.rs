//! Answers as parts of later prompts: what a server said, put back into the
//! messages that the next turn sends it.

use serde_json::{Value, json};
use workload::Message;

use crate::dialect::ToolCall;

/// The message that an answer becomes in the prompts of later turns. Reasoning
/// is no part of it: servers take it out of what they are sent.
pub fn answer(text: &str, calls: &[ToolCall]) -> Message {
    let mut message = Message::new("assistant", text);
    if calls.is_empty() {
        return message;
    }
    let calls: Vec<Value> = (0..).zip(calls).map(|(place, call)| of_call(place, call)).collect();
    let mut members = json!({ "tool_calls": calls });
    if text.is_empty() {
        members["content"] = Value::Null;
    }
    message.members = Some(members.to_string());
    message
}

/// A call in the form of the chat API. A server that gave it no id gets one
/// made of its place, since results name the call that they belong to.
fn of_call(place: usize, call: &ToolCall) -> Value {
    let id = if call.id.is_empty() { format!("call_{place}") } else { call.id.clone() };
    // Arguments are sent back as they came, but for none at all: templates
    // parse them.
    let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
    json!({
        "id": id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    })
}

/// Makes results of tools fit the calls that they follow: the first result is
/// that of the first call, whatever id a script gave it. A result without a
/// call becomes a message of the user's, and a call without a result gets an
/// empty one, because servers refuse the one and the other. True when there was
/// any of those.
pub fn fit_results(messages: &mut Vec<Value>) -> bool {
    let mut misfit = false;
    let mut fitted: Vec<Value> = Vec::with_capacity(messages.len());
    // Calls that have no result yet.
    let mut open: Vec<String> = Vec::new();
    for mut message in messages.drain(..) {
        if message["role"] == "tool" {
            match open.is_empty() {
                false => message["tool_call_id"] = open.remove(0).into(),
                true => {
                    misfit = true;
                    message = json!({"role": "user", "content": message["content"]});
                }
            }
        } else {
            misfit |= !open.is_empty();
            fitted.extend(open.drain(..).map(|id| result(&id)));
            open = ids_of(&message);
        }
        fitted.push(message);
    }
    misfit |= !open.is_empty();
    fitted.extend(open.drain(..).map(|id| result(&id)));
    *messages = fitted;
    misfit
}

fn result(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": ""})
}

/// The ids of the calls in a message.
fn ids_of(message: &Value) -> Vec<String> {
    let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    calls.iter().filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
}

/// Messages as Anthropic takes them: calls and results are blocks of content,
/// and results are the user's.
pub(crate) fn for_anthropic(messages: Vec<Value>) -> Vec<Value> {
    let mut turned: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        if message["role"] == "tool" {
            let block = json!({
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": message["content"],
            });
            match turned.last_mut().filter(|last| has_results(last)) {
                Some(last) => {
                    if let Some(blocks) = last["content"].as_array_mut() {
                        blocks.push(block);
                    }
                }
                None => turned.push(json!({"role": "user", "content": [block]})),
            }
            continue;
        }
        let Some(calls) = message["tool_calls"].as_array() else {
            turned.push(message);
            continue;
        };
        let text = message["content"].as_str().filter(|text| !text.is_empty());
        let text = text.map(|text| json!({"type": "text", "text": text}));
        let calls = calls.iter().map(|call| {
            json!({
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": arguments(call),
            })
        });
        let blocks: Vec<Value> = text.into_iter().chain(calls).collect();
        turned.push(json!({"role": message["role"], "content": blocks}));
    }
    turned
}

fn has_results(message: &Value) -> bool {
    message["content"][0]["type"] == "tool_result"
}

/// The arguments of a call as a value; text that is none stays a text in an
/// object, so that the model still sees what it said.
fn arguments(call: &Value) -> Value {
    let text = call["function"]["arguments"].as_str().unwrap_or_default();
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ => json!({ "arguments": text }),
    }
}

/// Messages as the responses API takes them: calls and results are items of
/// their own.
pub(crate) fn for_responses(messages: Vec<Value>) -> Vec<Value> {
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        if message["role"] == "tool" {
            items.push(json!({
                "type": "function_call_output",
                "call_id": message["tool_call_id"],
                "output": message["content"],
            }));
            continue;
        }
        let Some(calls) = message["tool_calls"].as_array() else {
            items.push(message);
            continue;
        };
        if let Some(text) = message["content"].as_str().filter(|text| !text.is_empty()) {
            items.push(json!({"role": message["role"], "content": text}));
        }
        items.extend(calls.iter().map(|call| {
            json!({
                "type": "function_call",
                "call_id": call["id"],
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"],
            })
        }));
    }
    items
}

/// Messages as Ollama takes them: arguments of calls are objects.
pub(crate) fn for_ollama(mut messages: Vec<Value>) -> Vec<Value> {
    for message in &mut messages {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        let Some(calls) = calls else { continue };
        for call in calls {
            call["function"]["arguments"] = arguments(call);
        }
        if message["content"].is_null() {
            message["content"] = "".into();
        }
    }
    messages
}

#[cfg(test)]
mod tests;
