//! OpenAI chat completions and completions, in the forms that vLLM, SGLang,
//! llama.cpp, Azure, DeepSeek, OpenRouter, Groq and others give them.

use measure::Carries;
use serde::Deserialize;

use super::json::{Count, Fault, Lax, Length, List, Name, Numbers, Text};
use super::template::Varying;
use super::{CallPiece, Listener};

/// Servers stamp each chunk; OpenAI pads them against eavesdroppers.
pub(super) const VARYING: &[Varying] = &[(1, "created"), (1, "id"), (1, "obfuscation")];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Chunk<'a> {
    #[serde(borrow)]
    choices: List<Choice<'a>>,
    usage: Lax<Usage>,
    #[serde(borrow)]
    error: Fault<'a>,
    /// "error" in the error objects of older vLLM.
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    detail: Text<'a>,
    #[serde(borrow)]
    code: Name<'a>,
    /// llama.cpp.
    timings: Numbers,
    /// vLLM with `--enable-per-request-metrics`.
    metrics: Numbers,
    /// Groq keeps its usage in an object of its own.
    x_groq: Lax<Groq>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Groq {
    usage: Lax<Usage>,
}

/// The usage object of the OpenAI APIs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Lax<PromptDetails>,
    completion_tokens_details: Lax<CompletionDetails>,
    /// DeepSeek's and Moonshot's names for cached prompt tokens.
    prompt_cache_hit_tokens: Count,
    cached_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    pub(super) cached_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    pub(super) reasoning_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Choice<'a> {
    index: Count,
    #[serde(borrow)]
    delta: Lax<Delta<'a>>,
    /// In a body that is not streamed.
    #[serde(borrow)]
    message: Lax<Delta<'a>>,
    /// Completions.
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    finish_reason: Name<'a>,
    logprobs: Lax<Logprobs>,
    /// vLLM, when asked for.
    token_ids: Length,
    /// Moonshot.
    usage: Lax<Usage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Text<'a>,
    #[serde(borrow)]
    refusal: Text<'a>,
    #[serde(borrow)]
    reasoning_content: Text<'a>,
    #[serde(borrow)]
    reasoning: Text<'a>,
    #[serde(borrow)]
    reasoning_details: List<ReasoningDetail<'a>>,
    #[serde(borrow)]
    tool_calls: List<ToolCall<'a>>,
    /// The form before tool calls.
    #[serde(borrow)]
    function_call: Lax<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ReasoningDetail<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    summary: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ToolCall<'a> {
    index: Count,
    #[serde(borrow)]
    id: Text<'a>,
    #[serde(borrow)]
    function: Lax<Function<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    arguments: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Logprobs {
    /// Chat: one entry a token.
    content: Length,
    /// Completions: one string a token.
    tokens: Length,
}

pub(super) fn hear(kind: &[u8], data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(chunk) = serde_json::from_slice::<Lax<Chunk<'_>>>(data)?.0 else { return Ok(()) };
    if chunk.error.present {
        ear.fault(&chunk.error, "");
        return Ok(());
    }
    let choices = &chunk.choices.0;
    if chunk.object.as_str() == "error" || (kind == b"error" && choices.is_empty()) {
        let message = chunk.message.some().or(chunk.detail.some()).unwrap_or_default();
        ear.error(message, chunk.code.some().or(chunk.kind.some()).unwrap_or_default());
        return Ok(());
    }
    if choices.is_empty() && (kind == b"ping" || chunk.kind.as_str() == "ping") {
        ear.carries(Carries::PING);
    }
    if !choices.is_empty() {
        ear.carries(Carries::CHOICE);
    }
    for choice in choices {
        hear_choice(choice, ear);
    }
    let groq = chunk.x_groq.0.and_then(|groq| groq.usage.0);
    for usage in chunk.usage.0.iter().chain(&groq) {
        hear_usage(usage, ear);
    }
    ear.timings(chunk.timings.0);
    ear.timings(chunk.metrics.0);
    Ok(())
}

fn hear_choice(choice: &Choice<'_>, ear: &mut Listener) {
    let index = ear.choice(choice.index.0.unwrap_or(0));
    ear.text(index, choice.text.as_str());
    for delta in choice.delta.0.iter().chain(&choice.message.0) {
        hear_delta(index, delta, ear);
    }
    if let Some(logprobs) = &choice.logprobs.0 {
        let count = logprobs.content.0.max(logprobs.tokens.0);
        ear.logprobs(count);
        ear.listed_tokens(count.max(choice.token_ids.0));
    } else {
        ear.listed_tokens(choice.token_ids.0);
    }
    ear.finish_reason(choice.finish_reason.some().unwrap_or_default());
    if let Some(usage) = &choice.usage.0 {
        hear_usage(usage, ear);
    }
}

/// Reasoning may come in up to three fields of one delta, the same text in
/// each while servers rename them: it is one channel, and the first field that
/// holds something is taken.
fn hear_delta(index: u8, delta: &Delta<'_>, ear: &mut Listener) {
    if !delta.role.is_empty() {
        ear.carries(Carries::ROLE);
    }
    ear.text(index, delta.content.as_str());
    ear.text(index, delta.refusal.as_str());
    let details = &delta.reasoning_details.0;
    let summary = details.iter().any(|detail| detail.kind.as_str() == "reasoning.summary");
    match delta.reasoning_content.some().or(delta.reasoning.some()) {
        Some(text) => ear.reasoning(index, text, summary),
        None => {
            for detail in details {
                let text = detail.text.some().or(detail.summary.some()).unwrap_or_default();
                ear.reasoning(index, text, detail.text.is_empty());
                if detail.kind.as_str() == "reasoning.encrypted" {
                    ear.redacted_reasoning();
                }
            }
        }
    }
    let calls = delta.tool_calls.0.iter();
    let calls = calls.filter_map(|call| Some((call.index.0, &call.id, call.function.0.as_ref()?)));
    let none = Text::default();
    let old = delta.function_call.0.iter().map(|function| (None, &none, function));
    for (place, id, function) in calls.chain(old) {
        let (name, arguments) = (function.name.as_str(), function.arguments.as_str());
        ear.tool_call(index, name, arguments);
        ear.keep_call(index, CallPiece { place, id: id.as_str(), name, arguments });
    }
}

fn hear_usage(usage: &Usage, ear: &mut Listener) {
    let cached = usage.prompt_tokens_details.0.as_ref().and_then(|details| details.cached_tokens.0);
    let cached = cached.or(usage.prompt_cache_hit_tokens.0).or(usage.cached_tokens.0);
    let reasoning =
        usage.completion_tokens_details.0.as_ref().and_then(|details| details.reasoning_tokens.0);
    ear.prompt_counts(usage.prompt_tokens.0, cached, reasoning);
    ear.completion_count(usage.completion_tokens.0);
}
