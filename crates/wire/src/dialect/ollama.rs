//! Ollama, chat and generate: one object a line, the last with `done` and the
//! server's own durations in nanoseconds.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{Count, Fault, Flag, Lax, List, Number, Text};
use super::template::Varying;
use super::{CallPiece, Listener};

/// Every line is stamped.
pub(super) const VARYING: &[Varying] = &[(1, "created_at")];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Line<'a> {
    #[serde(borrow)]
    message: Lax<Message<'a>>,
    #[serde(borrow)]
    response: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    done: Flag,
    #[serde(borrow)]
    done_reason: Text<'a>,
    #[serde(borrow)]
    error: Fault<'a>,
    prompt_eval_count: Count,
    eval_count: Count,
    total_duration: Number,
    load_duration: Number,
    prompt_eval_duration: Number,
    eval_duration: Number,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    thinking: Text<'a>,
    #[serde(borrow)]
    tool_calls: List<ToolCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolCall<'a> {
    #[serde(borrow)]
    function: Lax<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    /// An object, not a string as elsewhere.
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

pub(super) fn hear(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(line) = serde_json::from_slice::<Lax<Line<'_>>>(data)?.0 else { return Ok(()) };
    if line.error.present {
        ear.fault(&line.error, "");
        ear.terminal();
        return Ok(());
    }
    if let Some(message) = &line.message.0 {
        ear.text(0, message.content.as_str());
        ear.reasoning(0, message.thinking.as_str(), false);
        for function in message.tool_calls.0.iter().filter_map(|call| call.function.0.as_ref()) {
            let arguments = function.arguments.map(RawValue::get).unwrap_or_default();
            let name = function.name.as_str();
            ear.tool_call(0, name, arguments);
            ear.keep_call(0, CallPiece { name, arguments, ..CallPiece::default() });
        }
    }
    ear.text(0, line.response.as_str());
    ear.reasoning(0, line.thinking.as_str(), false);
    if line.done.0 {
        ear.finish_reason(line.done_reason.some().unwrap_or("stop"));
        ear.completion_count(line.eval_count.0);
        // Absent when the prompt came from the cache: unknown, not zero.
        ear.prompt_counts(line.prompt_eval_count.0, None, None);
        ear.no_prompt_count = line.prompt_eval_count.0.is_none();
        let durations = [
            ("total_duration", line.total_duration),
            ("load_duration", line.load_duration),
            ("prompt_eval_duration", line.prompt_eval_duration),
            ("eval_duration", line.eval_duration),
        ];
        let sent =
            durations.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.0?)));
        ear.timings(sent.collect());
        ear.terminal();
    }
    Ok(())
}
