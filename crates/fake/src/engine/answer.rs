//! Answers as bytes, in the shape of vLLM's OpenAI endpoints. A streamed
//! answer is made chunk by chunk, each while the one before it waits in the
//! kernel, so that no encoding lies between a deadline and its write and no
//! long answer lies in memory.

use serde_json::json;

use super::ask::Ask;
use super::{Plan, mix};
use crate::script::{Action, LAST_CHUNK, Step, http_chunk, whole_head};

/// What the engine says: plain words, so that no escape is ever needed.
const WORDS: [&str; 64] = [
    "the", "of", "a", "request", "and", "token", "to", "is", "model", "in", "that", "each", "for",
    "time", "it", "with", "as", "load", "on", "are", "by", "batch", "this", "from", "when", "step",
    "which", "memory", "an", "can", "be", "server", "at", "first", "queue", "has", "more", "than",
    "one", "cache", "prompt", "all", "answer", "between", "only", "until", "rate", "long", "next",
    "while", "under", "every", "small", "after", "many", "output", "so", "or", "wait", "not",
    "users", "limit", "was", "them",
];

/// An answer before it has a seat: everything but its deadlines.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) ask: Ask,
    pub(super) truth_id: String,
    pub(super) id: String,
    pub(super) model: String,
    pub(super) created_s: u64,
    pub(super) tokens: u32,
    pub(super) finish_reason: &'static str,
    pub(super) chunk_tokens: u32,
    pub(super) role_at_accept: bool,
    pub(super) words_seed: u64,
    pub(super) close: bool,
}

impl Answer {
    /// What leaves when the request is accepted, before it has a seat: the
    /// head of a stream, and the role chunk where it is wanted so early.
    pub(super) fn opening(&self) -> Vec<Step> {
        if !self.ask.stream {
            return Vec::new();
        }
        let close = if self.close { "connection: close\r\n" } else { "" };
        let mut bytes = format!(
            "HTTP/1.1 200 OK\r\nserver: goodput\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n{close}\r\n"
        )
        .into_bytes();
        if self.ask.chat && self.role_at_accept {
            bytes.extend(self.role_chunk());
        }
        vec![Step::send(0, bytes)]
    }

    /// The whole answer as one JSON body, due at `at_ns`.
    pub(super) fn whole(mut self, at_ns: u64) -> Step {
        if let Some(mut body) = self.ask.results.take() {
            let tokens = self.ask.prompt_tokens;
            body["id"] = json!(self.id);
            body["model"] = json!(self.model);
            body["usage"] = json!({"prompt_tokens": tokens, "total_tokens": tokens});
            return self.in_one_piece(at_ns, &body.to_string());
        }
        let text: String = (0..self.tokens).map(|token| self.word(token)).collect();
        let (object, mut choice) = if self.ask.chat {
            ("chat.completion", json!({"message": {"role": "assistant", "content": text}}))
        } else {
            ("text_completion", json!({"text": text}))
        };
        choice["index"] = json!(0);
        choice["logprobs"] = json!(null);
        choice["finish_reason"] = json!(self.finish_reason);
        choice["stop_reason"] = json!(null);
        let body = json!({
            "id": self.id,
            "object": object,
            "created": self.created_s,
            "model": self.model,
            "choices": [choice],
            "usage": {
                "prompt_tokens": self.ask.prompt_tokens,
                "total_tokens": u64::from(self.ask.prompt_tokens) + u64::from(self.tokens),
                "completion_tokens": self.tokens,
            },
            "system_fingerprint": FINGERPRINT,
        })
        .to_string();
        self.in_one_piece(at_ns, &body)
    }

    fn in_one_piece(&self, at_ns: u64, body: &str) -> Step {
        let close = if self.close {
            "server: goodput\r\nconnection: close\r\n"
        } else {
            "server: goodput\r\n"
        };
        let bytes = whole_head(200, "application/json", body.len(), close) + body;
        Step { at_ns, action: Action::Send(bytes.into_bytes()), tokens: self.tokens, last: true }
    }

    fn role_chunk(&self) -> Vec<u8> {
        let choice = r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}"#;
        let usage = if self.ask.continuous_usage { self.usage(0) } else { String::new() };
        event(&format!("{}[{choice}]{usage}}}", self.common()))
    }

    /// The start of every chunk, up to the value of `choices`.
    fn common(&self) -> String {
        let object = if self.ask.chat { "chat.completion.chunk" } else { "text_completion" };
        let (id, model) = (json!(self.id), json!(self.model));
        let created = self.created_s;
        format!(r#"{{"id":{id},"object":"{object}","created":{created},"model":{model},"choices":"#)
    }

    fn usage(&self, completion: u32) -> String {
        let prompt = self.ask.prompt_tokens;
        let total = u64::from(prompt) + u64::from(completion);
        format!(
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{total},"completion_tokens":{completion}}}"#
        )
    }

    fn word(&self, token: u32) -> String {
        let draw = mix(self.words_seed, u64::from(token), 0);
        let word = WORDS[(draw % WORDS.len() as u64) as usize];
        // Words after the first carry their blank, as vocabularies have it.
        if token == 0 { word.to_owned() } else { format!(" {word}") }
    }
}

const FINGERPRINT: &str = concat!("goodput-", env!("CARGO_PKG_VERSION"));

/// One server-sent event as one HTTP chunk.
fn event(data: &str) -> Vec<u8> {
    http_chunk(format!("data: {data}\n\n").as_bytes())
}

/// The steps of a streamed answer from its first token on.
pub(super) struct TokenStream {
    answer: Answer,
    plan: Plan,
    /// The constant start of each chunk.
    common: String,
    made: u32,
    stage: Stage,
}

enum Stage {
    Role,
    Tokens,
    Tail,
    Over,
}

impl TokenStream {
    pub(super) fn new(answer: Answer, plan: Plan) -> Self {
        let owes_role = answer.ask.chat && !answer.role_at_accept;
        let stage = if owes_role { Stage::Role } else { Stage::Tokens };
        Self { common: answer.common(), answer, plan, made: 0, stage }
    }

    /// Deadline of the chunk that ends with token number `made`.
    fn due_ns(&self, made: u32) -> u64 {
        self.plan.offset_ns(u64::from(made.saturating_sub(self.answer.chunk_tokens)))
    }

    fn token_chunk(&mut self) -> Step {
        let answer = &self.answer;
        let count = answer.chunk_tokens.min(answer.tokens - self.made);
        let text: String = (self.made..self.made + count).map(|token| answer.word(token)).collect();
        self.made += count;
        let ends = self.made == answer.tokens;
        let finish = if ends {
            format!(r#""{}","stop_reason":null"#, answer.finish_reason)
        } else {
            "null".to_owned()
        };
        let choice = if answer.ask.chat {
            format!(
                r#"{{"index":0,"delta":{{"content":"{text}"}},"logprobs":null,"finish_reason":{finish},"token_ids":null}}"#
            )
        } else {
            let stop_reason = if ends { "" } else { r#","stop_reason":null"# };
            format!(
                r#"{{"index":0,"text":"{text}","logprobs":null,"finish_reason":{finish}{stop_reason},"token_ids":null}}"#
            )
        };
        let usage =
            if answer.ask.continuous_usage { answer.usage(self.made) } else { String::new() };
        let bytes = event(&format!("{}[{choice}]{usage}}}", self.common));
        let at_ns = self.due_ns(self.made);
        Step { at_ns, action: Action::Send(bytes), tokens: count, last: false }
    }

    /// Usage, the sentinel and the end of the body.
    fn tail(&self) -> Step {
        let mut bytes = Vec::new();
        if self.answer.ask.include_usage {
            let usage = self.answer.usage(self.answer.tokens);
            bytes.extend(event(&format!(
                r#"{}[]{usage},"system_fingerprint":"{FINGERPRINT}"}}"#,
                self.common
            )));
        }
        bytes.extend(event("[DONE]"));
        bytes.extend_from_slice(LAST_CHUNK);
        let at_ns = self.due_ns(self.answer.tokens);
        Step { at_ns, action: Action::Send(bytes), tokens: 0, last: true }
    }
}

impl Iterator for TokenStream {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        match self.stage {
            Stage::Role => {
                self.stage = Stage::Tokens;
                let first = self.answer.chunk_tokens.min(self.answer.tokens);
                Some(Step::send(self.due_ns(first), self.answer.role_chunk()))
            }
            Stage::Tokens => {
                let step = self.token_chunk();
                if self.made == self.answer.tokens {
                    self.stage = Stage::Tail;
                }
                Some(step)
            }
            Stage::Tail => {
                self.stage = Stage::Over;
                Some(self.tail())
            }
            Stage::Over => None,
        }
    }
}
