//! Answers as bytes. A streamed answer is made event by event, each just before
//! it leaves or while the one before it waits in the kernel, so that no long
//! answer lies in memory.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use sim::Ended;

use super::ask::Ask;
use super::words::Words;
use crate::draw::mix;
use crate::request::Request;
use crate::script::{LAST_CHUNK, whole_head};

const DONE: &[u8] = b"data: [DONE]\n\n";
const FINGERPRINT: &str = concat!("goodput-", env!("CARGO_PKG_VERSION"));

/// An answer: everything but its tokens' number and their instants.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) ask: Ask,
    /// The request's name in the truth log.
    pub(crate) truth_id: String,
    id: String,
    model: String,
    created_s: u64,
    words: Arc<Words>,
    words_seed: u64,
    close: bool,
    /// The start of every event, up to the value of `choices`.
    common: String,
    /// The event that is being written.
    event: String,
    reasoning: Option<Reasoning>,
}

/// What an answer's tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u32,
    /// Prompt tokens that were found in a cache, where that is known.
    pub(crate) cached: Option<u32>,
    pub(crate) completion: u32,
    /// Output tokens that were reasoning, where some are told apart.
    pub(crate) reasoning: Option<u32>,
}

/// Tokens of one of the answers to a request that leave together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passage {
    /// Which answer.
    pub(crate) choice: u8,
    /// Tokens of it before these.
    pub(crate) from: u32,
    pub(crate) count: u32,
}

/// The first tokens of an answer, where they are told apart as reasoning.
#[derive(Clone, Copy, Debug)]
struct Reasoning {
    tokens: u32,
    /// The member of a delta that has their text.
    field: &'static str,
}

/// A server's own timings of a request, as vLLM tells them where it is asked to
/// (`--enable-per-request-metrics`). Its `time_to_first_token_ms` begins when
/// the request is first put into a step, not when it came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timings {
    pub(crate) time_to_first_token_ms: f64,
    pub(crate) generation_time_ms: f64,
    pub(crate) queue_time_ms: f64,
    pub(crate) mean_itl_ms: Option<f64>,
    pub(crate) tokens_per_second: Option<f64>,
}

impl Usage {
    fn write(self, out: &mut String) {
        let Self { prompt, completion, .. } = self;
        let total = u64::from(prompt) + u64::from(completion);
        let _ = write!(
            out,
            r#""usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}"#
        );
        if let Some(cached) = self.cached {
            let _ = write!(out, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#);
        }
        if let Some(reasoning) = self.reasoning {
            let _ =
                write!(out, r#","completion_tokens_details":{{"reasoning_tokens":{reasoning}}}"#);
        }
        out.push('}');
    }

    fn json(self) -> Value {
        let total = u64::from(self.prompt) + u64::from(self.completion);
        let mut usage = json!({
            "prompt_tokens": self.prompt,
            "total_tokens": total,
            "completion_tokens": self.completion,
        });
        if let Some(cached) = self.cached {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        usage
    }
}

impl Timings {
    fn json(&self) -> Value {
        json!({
            "time_to_first_token_ms": self.time_to_first_token_ms,
            "generation_time_ms": self.generation_time_ms,
            "queue_time_ms": self.queue_time_ms,
            "mean_itl_ms": self.mean_itl_ms,
            "tokens_per_second": self.tokens_per_second,
        })
    }
}

/// Who answers: what all answers of an engine have in common.
pub(crate) struct Voice<'a> {
    /// The model's name, for requests that name none.
    pub(crate) model: &'a str,
    pub(crate) created_s: u64,
    /// Which request of the engine it is.
    pub(crate) number: u64,
    pub(crate) words: &'a Arc<Words>,
    pub(crate) words_seed: u64,
}

impl Answer {
    /// The answer to a request.
    pub(crate) fn new(ask: Ask, request: &Request, voice: &Voice<'_>) -> Self {
        let sent_id = request.header("x-request-id").map(str::to_owned);
        let truth_id = sent_id.unwrap_or_else(|| format!("{:016x}", voice.number));
        let (prefix, object) = if ask.chat {
            ("chatcmpl-", "chat.completion.chunk")
        } else {
            ("cmpl-", "text_completion")
        };
        let id = format!("{prefix}{truth_id}");
        let model = ask.model.clone().unwrap_or_else(|| voice.model.to_owned());
        let created_s = voice.created_s;
        let common = format!(
            r#"data: {{"id":{},"object":"{object}","created":{created_s},"model":{},"choices":"#,
            json!(id),
            json!(model),
        );
        Self {
            truth_id,
            id,
            model,
            created_s,
            words: Arc::clone(voice.words),
            words_seed: voice.words_seed,
            close: !request.keep_alive,
            common,
            event: String::new(),
            reasoning: None,
            ask,
        }
    }

    /// The usage without what a cache saved.
    pub(crate) fn usage(&self, completion: u32) -> Usage {
        let reasoning = self.reasoning.map(|reasoning| reasoning.tokens.min(completion));
        Usage { prompt: self.ask.prompt_tokens, cached: None, completion, reasoning }
    }

    /// The usage of all answers of the engine model together. As in vLLM the
    /// prompt counts once, and so does what was cached of it, for one of them.
    pub(crate) fn counted<'e>(&self, ends: impl Iterator<Item = &'e Ended>, cached: u32) -> Usage {
        let none = Usage { cached: Some(cached), ..self.usage(0) };
        ends.map(|ended| self.usage(ended.output_tokens)).fold(none, |sum, one| Usage {
            completion: sum.completion.saturating_add(one.completion),
            reasoning: sum.reasoning.zip(one.reasoning).map(|(a, b)| a.saturating_add(b)),
            ..sum
        })
    }

    /// The seed of the words of one answer.
    fn seed_of(&self, choice: u8) -> u64 {
        if choice == 0 { self.words_seed } else { mix(self.words_seed, choice.into(), 0) }
    }

    /// Tells the first tokens of a chat's stream apart as reasoning, in this
    /// member of its deltas.
    pub(crate) fn reason(&mut self, tokens: u32, field: &'static str) {
        self.reasoning = Some(Reasoning { tokens, field });
    }

    /// The head of a stream.
    pub(crate) fn head(&self) -> Vec<u8> {
        let close = if self.close { "connection: close\r\n" } else { "" };
        format!(
            "HTTP/1.1 200 OK\r\nserver: goodput\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n{close}\r\n"
        )
        .into_bytes()
    }

    /// The whole answer in one piece, its head included. `ends` has the tokens and
    /// the finish reason of each choice.
    pub(crate) fn whole(
        &mut self,
        ends: &[(u32, &str)],
        usage: Usage,
        timings: Option<&Timings>,
    ) -> Vec<u8> {
        if let Some(mut body) = self.ask.results.take() {
            let tokens = self.ask.prompt_tokens;
            body["id"] = json!(self.id);
            body["model"] = json!(self.model);
            body["usage"] = json!({"prompt_tokens": tokens, "total_tokens": tokens});
            return self.in_one_piece(&body);
        }
        let choices: Vec<Value> = (0..)
            .zip(ends)
            .map(|(choice, (tokens, why))| self.choice(choice, *tokens, why))
            .collect();
        let mut body = json!({
            "id": self.id,
            "object": if self.ask.chat { "chat.completion" } else { "text_completion" },
            "created": self.created_s,
            "model": self.model,
            "choices": choices,
            "usage": usage.json(),
            "system_fingerprint": FINGERPRINT,
        });
        if let Some(timings) = timings {
            body["metrics"] = timings.json();
        }
        self.in_one_piece(&body)
    }

    /// One whole answer.
    fn choice(&self, index: u8, tokens: u32, finish_reason: &str) -> Value {
        let mut text = String::new();
        let seed = self.seed_of(index);
        (0..tokens).for_each(|token| self.words.write(seed, token, &mut text));
        let mut choice = if self.ask.chat {
            json!({"message": {"role": "assistant", "content": text}})
        } else {
            json!({"text": text})
        };
        choice["index"] = json!(index);
        choice["logprobs"] = json!(null);
        choice["finish_reason"] = json!(finish_reason);
        choice["stop_reason"] = json!(null);
        choice
    }

    fn in_one_piece(&self, body: &Value) -> Vec<u8> {
        let close = if self.close {
            "server: goodput\r\nconnection: close\r\n"
        } else {
            "server: goodput\r\n"
        };
        let body = body.to_string();
        (whole_head(200, "application/json", body.len(), close) + &body).into_bytes()
    }

    /// The events with the role, one for each choice, before a chat's first token.
    pub(crate) fn role_events(&mut self, out: &mut Vec<u8>) {
        for choice in 0..self.ask.choices {
            let usage = self.ask.continuous_usage.then(|| self.usage(0));
            self.begin();
            let _ = write!(
                self.event,
                r#"[{{"index":{choice},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]"#,
            );
            self.end(usage, out);
        }
    }

    /// The event with some tokens, and the finish reason where they are the last
    /// of their choice. Where the reasoning ends among them they are two events.
    pub(crate) fn tokens_event(
        &mut self,
        Passage { choice, mut from, mut count }: Passage,
        finish_reason: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        if let Some(Reasoning { tokens, field }) = self.reasoning.filter(|one| from < one.tokens) {
            let reasoned = count.min(tokens - from);
            let ends = finish_reason.filter(|_| reasoned == count);
            self.event_of(field, Passage { choice, from, count: reasoned }, ends, out);
            (from, count) = (from + reasoned, count - reasoned);
            if count == 0 {
                return;
            }
        }
        self.event_of("content", Passage { choice, from, count }, finish_reason, out);
    }

    /// One event with tokens, which a chat has in this member of its delta.
    fn event_of(
        &mut self,
        field: &str,
        Passage { choice, from, count }: Passage,
        finish_reason: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let usage = self.ask.continuous_usage.then(|| self.usage(from + count));
        self.begin();
        if self.ask.chat {
            let _ = write!(self.event, r#"[{{"index":{choice},"delta":{{"{field}":""#);
        } else {
            let _ = write!(self.event, r#"[{{"index":{choice},"text":""#);
        }
        let seed = self.seed_of(choice);
        for token in from..from + count {
            self.words.write(seed, token, &mut self.event);
        }
        let delta_ends = if self.ask.chat { "}" } else { "" };
        let _ = write!(self.event, r#""{delta_ends},"logprobs":null,"finish_reason":"#);
        let _ = match (finish_reason, self.ask.chat) {
            (Some(reason), true) => write!(self.event, r#""{reason}","stop_reason":null"#),
            (Some(reason), false) => write!(self.event, r#""{reason}""#),
            (None, true) => write!(self.event, "null"),
            (None, false) => write!(self.event, r#"null,"stop_reason":null"#),
        };
        self.event.push_str(r#","token_ids":null}]"#);
        self.end(usage, out);
    }

    /// Usage, where it was asked for, the sentinel and the end of the body.
    pub(crate) fn last_events(
        &mut self,
        usage: Usage,
        timings: Option<&Timings>,
        out: &mut Vec<u8>,
    ) {
        if self.ask.include_usage {
            self.begin();
            self.event.push_str("[],");
            usage.write(&mut self.event);
            if let Some(timings) = timings {
                let _ = write!(self.event, r#","metrics":{}"#, timings.json());
            }
            let _ = write!(self.event, r#","system_fingerprint":"{FINGERPRINT}""#);
            self.end(None, out);
        }
        chunk(out, DONE);
        Self::end_of_body(out);
    }

    /// The end of a stream's body, in good order.
    pub(crate) fn end_of_body(out: &mut Vec<u8>) {
        out.extend_from_slice(LAST_CHUNK);
    }

    /// An error inside a stream, as vLLM writes one: the object, the sentinel and
    /// the end of the body.
    pub(crate) fn error_events(out: &mut Vec<u8>) {
        let error = json!({"error": {
            "message": "the engine failed on request",
            "type": "InternalServerError",
            "param": null,
            "code": 500,
        }});
        chunk(out, format!("data: {error}\n\n").as_bytes());
        chunk(out, DONE);
        Self::end_of_body(out);
    }

    /// A comment, which keeps a connection alive and says nothing.
    pub(crate) fn comment(out: &mut Vec<u8>) {
        chunk(out, b": still here\n\n");
    }

    /// The ids of the first tokens of one answer, where they are known.
    pub(crate) fn ids(&self, choice: u8, tokens: u32) -> Option<impl Iterator<Item = u32>> {
        self.words.ids(self.seed_of(choice), tokens)
    }

    fn begin(&mut self) {
        self.event.clear();
        self.event.push_str(&self.common);
    }

    fn end(&mut self, usage: Option<Usage>, out: &mut Vec<u8>) {
        if let Some(usage) = usage {
            self.event.push(',');
            usage.write(&mut self.event);
        }
        self.event.push_str("}\n\n");
        chunk(out, self.event.as_bytes());
    }
}

/// Bytes as one HTTP chunk.
fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    use std::io::Write as _;
    // Writing to memory does not fail.
    let _ = write!(out, "{:x}\r\n", bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
