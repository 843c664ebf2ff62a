//! Anthropic messages: typed events, cumulative usage.

use measure::Carries;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{Count, Fault, Lax, List, Text};
use super::{CallPiece, Listener};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    message: Lax<Message<'a>>,
    index: Count,
    #[serde(borrow)]
    content_block: Lax<Block<'a>>,
    #[serde(borrow)]
    delta: Lax<Block<'a>>,
    usage: Lax<Usage>,
    #[serde(borrow)]
    error: Fault<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    usage: Lax<Usage>,
    #[serde(borrow)]
    content: List<Block<'a>>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
}

/// A content block, its start, or a change to it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    partial_json: Text<'a>,
    #[serde(borrow)]
    stop_reason: Text<'a>,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

pub(super) fn hear(kind: &[u8], data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(event) = serde_json::from_slice::<Lax<Event<'_>>>(data)?.0 else { return Ok(()) };
    let kind = match event.kind.some() {
        Some(kind) => kind,
        None => std::str::from_utf8(kind).unwrap_or_default(),
    };
    if event.error.present || kind == "error" {
        ear.fault(&event.error, "");
        ear.terminal();
        return Ok(());
    }
    match kind {
        "message_start" => {
            ear.carries(Carries::ROLE);
            if let Some(usage) = event.message.0.and_then(|message| message.usage.0) {
                let cached = usage.cache_read_input_tokens.0;
                ear.prompt_counts(usage.input_tokens.0, cached, None);
                ear.placeholder_count(usage.output_tokens.0);
            }
        }
        "content_block_start" => {
            if let Some(block) = event.content_block.0 {
                hear_block(&block, event.index.0, ear);
            }
        }
        "content_block_delta" => {
            if let Some(delta) = event.delta.0 {
                hear_block(&delta, event.index.0, ear);
            }
        }
        "message_delta" => {
            if let Some(delta) = event.delta.0 {
                ear.finish_reason(delta.stop_reason.as_str());
            }
            if let Some(usage) = event.usage.0 {
                hear_usage(&usage, ear);
            }
        }
        // The stop reason came before: this event only ends the stream, as
        // `[DONE]` does elsewhere, and moves no latency.
        "message_stop" => {
            ear.carries(Carries::DONE);
            ear.terminal();
        }
        "ping" => ear.carries(Carries::PING),
        _ => {}
    }
    Ok(())
}

/// The start of a tool-use block names the tool, but only its arguments are
/// output: the start comes with every block, text or not.
fn hear_block(block: &Block<'_>, place: Option<u32>, ear: &mut Listener) {
    let arguments = block.partial_json.as_str();
    ear.text(0, block.text.as_str());
    ear.reasoning(0, block.thinking.as_str(), false);
    ear.tool_call(0, "", arguments);
    if block.kind.as_str() == "tool_use" || !arguments.is_empty() {
        let (id, name) = (block.id.as_str(), block.name.as_str());
        ear.keep_call(0, CallPiece { place, id, name, arguments });
    }
    if block.kind.as_str() == "redacted_thinking" {
        ear.redacted_reasoning();
    }
}

fn hear_usage(usage: &Usage, ear: &mut Listener) {
    ear.prompt_counts(usage.input_tokens.0, usage.cache_read_input_tokens.0, None);
    ear.completion_count(usage.output_tokens.0);
}

/// A message that came as one body.
pub(super) fn hear_whole(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(message) = serde_json::from_slice::<Lax<Message<'_>>>(data)?.0 else {
        return Ok(());
    };
    for (place, block) in (0..).zip(&message.content.0) {
        hear_block(block, Some(place), ear);
        if block.kind.as_str() == "tool_use" {
            let arguments = block.input.map(RawValue::get).unwrap_or_default();
            ear.tool_call(0, block.name.as_str(), arguments);
            ear.keep_call(0, CallPiece { place: Some(place), arguments, ..CallPiece::default() });
        }
    }
    ear.finish_reason(message.stop_reason.as_str());
    if let Some(usage) = &message.usage.0 {
        hear_usage(usage, ear);
    }
    Ok(())
}
