//! OpenAI responses: typed events; the last one holds the whole response.

use measure::Carries;
use serde::Deserialize;

use super::json::{Count, Fault, Lax, List, Name, Numbers, Text};
use super::openai::{CompletionDetails, PromptDetails};
use super::template::Varying;
use super::{CallPiece, Listener};

/// The number of the event, the name of what it belongs to, and padding against
/// eavesdroppers.
pub(super) const VARYING: &[Varying] =
    &[(1, "sequence_number"), (1, "item_id"), (1, "obfuscation")];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(borrow)]
    response: Lax<Response<'a>>,
    output_index: Count,
    #[serde(borrow)]
    item: Lax<Item<'a>>,
    #[serde(borrow)]
    error: Fault<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    code: Name<'a>,
    /// llama.cpp's own, beside the response.
    timings: Numbers,
}

/// The response object, inside the last event or as a whole body.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    status: Text<'a>,
    usage: Lax<Usage>,
    #[serde(borrow)]
    error: Fault<'a>,
    #[serde(borrow)]
    output: List<Item<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Lax<PromptDetails>,
    output_tokens_details: Lax<CompletionDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    summary: Text<'a>,
    #[serde(borrow)]
    encrypted_content: Text<'a>,
    #[serde(borrow)]
    call_id: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

pub(super) fn hear(kind: &[u8], data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(event) = serde_json::from_slice::<Lax<Event<'_>>>(data)?.0 else { return Ok(()) };
    let kind = match event.kind.some() {
        Some(kind) => kind,
        None => std::str::from_utf8(kind).unwrap_or_default(),
    };
    if event.error.present {
        ear.fault(&event.error, "");
        ear.terminal();
        return Ok(());
    }
    let delta = event.delta.as_str();
    match kind {
        "error" => {
            ear.error(event.message.as_str(), event.code.some().unwrap_or_default());
            ear.terminal();
        }
        "response.created" => ear.carries(Carries::ROLE),
        "response.output_text.delta" | "response.refusal.delta" => ear.text(0, delta),
        "response.reasoning_text.delta" | "response.reasoning.delta" => {
            ear.reasoning(0, delta, false);
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_summary.delta" => {
            ear.reasoning(0, delta, true);
        }
        "response.function_call_arguments.delta"
        | "response.custom_tool_call_input.delta"
        | "response.mcp_call_arguments.delta"
        | "response.code_interpreter_call_code.delta" => {
            ear.tool_call(0, "", delta);
            let place = event.output_index.0;
            ear.keep_call(0, CallPiece { place, arguments: delta, ..CallPiece::default() });
        }
        "response.output_item.added"
            if event.item.0.as_ref().is_some_and(|item| item.kind.as_str() == "function_call") =>
        {
            let item = event.item.0.unwrap_or_default();
            let (id, name) = (item.call_id.as_str(), item.name.as_str());
            ear.keep_call(0, CallPiece { place: event.output_index.0, id, name, arguments: "" });
        }
        "response.output_item.added" | "response.output_item.done"
            if event.item.0.as_ref().is_some_and(is_redacted) =>
        {
            ear.redacted_reasoning();
        }
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            ear.timings(event.timings.0);
            let response = event.response.0.unwrap_or_default();
            hear_end(&response, kind, ear);
            ear.terminal();
        }
        "ping" => ear.carries(Carries::PING),
        _ => {}
    }
    Ok(())
}

fn is_redacted(item: &Item<'_>) -> bool {
    item.kind.as_str() == "reasoning" && !item.encrypted_content.is_empty()
}

/// The status is the finish reason; a failed response is an error.
fn hear_end(response: &Response<'_>, kind: &str, ear: &mut Listener) {
    let status = response.status.some().or(kind.strip_prefix("response.")).unwrap_or_default();
    if status == "failed" || kind == "response.failed" || response.error.present {
        ear.fault(&response.error, "");
    } else {
        ear.finish_reason(status);
    }
    if let Some(usage) = &response.usage.0 {
        let cached = usage.input_tokens_details.0.as_ref().and_then(|d| d.cached_tokens.0);
        let reasoning = usage.output_tokens_details.0.as_ref().and_then(|d| d.reasoning_tokens.0);
        ear.prompt_counts(usage.input_tokens.0, cached, reasoning);
        ear.completion_count(usage.output_tokens.0);
    }
}

/// A response that came as one body.
pub(super) fn hear_whole(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(response) = serde_json::from_slice::<Lax<Response<'_>>>(data)?.0 else {
        return Ok(());
    };
    for item in &response.output.0 {
        match item.kind.as_str() {
            "reasoning" => {
                ear.reasoning(0, item.content.as_str(), false);
                ear.reasoning(0, item.summary.as_str(), true);
                if is_redacted(item) {
                    ear.redacted_reasoning();
                }
            }
            "function_call" => {
                let (name, arguments) = (item.name.as_str(), item.arguments.as_str());
                ear.tool_call(0, name, arguments);
                let id = item.call_id.as_str();
                ear.keep_call(0, CallPiece { place: None, id, name, arguments });
            }
            _ => ear.text(0, item.content.as_str()),
        }
    }
    hear_end(&response, "", ear);
    Ok(())
}
