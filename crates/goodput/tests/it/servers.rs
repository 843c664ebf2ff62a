//! Servers to measure: scripted answers and the engine.

use std::time::Duration;

use fake::engine::Anchor;
use fake::{Config, EngineConfig, Listen, Modelled, ModelledConfig, Routes, Script, Server};

/// An engine that is quick: 10 ms to the first token, 2 ms between tokens.
pub(crate) fn engine() -> Server {
    let engine = EngineConfig {
        ttft: Duration::from_millis(10),
        ttft_per_prompt_token: Duration::ZERO,
        token_interval: Duration::from_millis(2),
        ..EngineConfig::default()
    };
    Server::start(Config { engine, ..Config::default() }).unwrap()
}

/// The engine model, on the real clock.
pub(crate) fn modelled() -> Server {
    let model = Modelled::new(ModelledConfig::default(), Anchor::now()).unwrap();
    Server::start_with(Listen::default(), model).unwrap()
}

/// An engine that takes 800 ms to the first token: a client on a busy machine
/// may then be late by 40 ms and more before it doubts itself.
pub(crate) fn slow_engine() -> Server {
    let engine = EngineConfig {
        ttft: Duration::from_millis(800),
        ttft_per_prompt_token: Duration::ZERO,
        token_interval: Duration::from_millis(2),
        ..EngineConfig::default()
    };
    Server::start(Config { engine, ..Config::default() }).unwrap()
}

/// A server that plays this to everybody.
pub(crate) fn playing(script: Script) -> Server {
    Server::start_scripted(Routes::new().on("/", script)).unwrap()
}

/// A server that refuses with this status and message.
pub(crate) fn refusing(status: u16, message: &str) -> Server {
    playing(Script::json(status, &serde_json::json!({"error": {"message": message}})))
}

/// The address of a port that was free a moment ago.
pub(crate) fn closed_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// An event with this object.
pub(crate) fn event(json: &serde_json::Value) -> String {
    format!("data: {json}\n\n")
}

/// An event with text.
pub(crate) fn text(text: &str) -> String {
    event(&serde_json::json!({"choices": [{"index": 0, "delta": {"content": text}}]}))
}

/// The event with the finish reason, and the end.
pub(crate) fn ending() -> String {
    let finish = serde_json::json!({"index": 0, "delta": {}, "finish_reason": "stop"});
    let finish = event(&serde_json::json!({"choices": [finish]}));
    format!("{finish}data: [DONE]\n\n")
}

/// A stream of these texts, the n-th after n × `gap_ms`.
pub(crate) fn stream(texts: &[&str], gap_ms: u64) -> Script {
    let mut script = Script::new().chunked_head(0, 200, "text/event-stream");
    for (place, token) in texts.iter().enumerate() {
        script = script.chunk(place as u64 * gap_ms, text(token));
    }
    let end_ms = texts.len().saturating_sub(1) as u64 * gap_ms;
    script.chunk(end_ms, ending()).last_chunk(end_ms)
}

/// A server whose answers reason before they say a word.
pub(crate) fn reasoning() -> Server {
    let thought = serde_json::json!({"index": 0, "delta": {"reasoning_content": "so"}});
    let thought = event(&serde_json::json!({"choices": [thought]}));
    let script = Script::new().chunked_head(0, 200, "text/event-stream").chunk(0, thought);
    playing(script.chunk(5, text("then")).chunk(10, ending()).last_chunk(10))
}

/// A server of completions with a prefix cache of its own: it tells of each
/// prompt how many of its words it had seen at the beginning of another, and
/// forgets them all on `POST /reset_prefix_cache`.
#[derive(Default)]
pub(crate) struct Caching {
    /// The prompts so far.
    pub(crate) seen: Vec<Vec<String>>,
    /// Whether it keeps anything.
    pub(crate) is_off: bool,
}

impl Caching {
    pub(crate) fn start(self) -> Server {
        Server::start_scripted(self).unwrap()
    }
}

impl fake::Respond for Caching {
    fn answer(&mut self, request: &fake::Request) -> fake::Play {
        let script = if request.path() == "/reset_prefix_cache" {
            self.seen.clear();
            Script::json(200, &serde_json::json!({}))
        } else {
            let words = words(request);
            let same = |seen: &Vec<String>| {
                seen.iter().zip(&words).take_while(|(seen, word)| seen == word).count()
            };
            let cached = self.seen.iter().map(same).max().unwrap_or(0);
            let usage = serde_json::json!({
                "prompt_tokens": words.len(), "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": cached},
            });
            let choice = serde_json::json!({"index": 0, "text": "yes", "finish_reason": "stop"});
            let last = serde_json::json!({"choices": [choice], "usage": usage});
            if !self.is_off {
                self.seen.push(words);
            }
            let body = format!("{}data: [DONE]\n\n", event(&last));
            Script::new().chunked_head(0, 200, "text/event-stream").chunk(20, body).last_chunk(20)
        };
        fake::Play::of(script, request.arrival_ns)
    }
}

/// The words of a completions prompt, marks apart: its tokens by estimate.
pub(crate) fn words(request: &fake::Request) -> Vec<String> {
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let text = body["prompt"].as_str().unwrap().replace('.', " .").replace(',', " ,");
    text.split_whitespace().map(str::to_owned).collect()
}
