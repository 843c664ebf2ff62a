//! OpenAI's API in the shape of vLLM's: what requests say, and how answers look.
//! Every engine here is one behind it.

mod answer;
mod ask;
mod results;
mod words;

use serde_json::{Value, json};

use crate::request::Request;
use crate::script::{Script, whole_head};

pub(crate) use answer::{Answer, Passage, Timings, Usage, Voice};
pub(crate) use ask::{Ask, Kind, Refused, Tally, spell};
pub(crate) use words::Words;

/// What a server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// An answer of this kind, under this path.
    Answer(Kind, &'static str),
    /// What has an answer without the engine.
    Plain,
}

/// Paths with an answer that the engine makes.
const ANSWERED: &[(&str, Kind)] = &[
    ("/v1/chat/completions", Kind::Chat),
    ("/v1/completions", Kind::Completion),
    ("/v1/embeddings", Kind::Vectors),
    ("/v1/rerank", Kind::Scores),
    ("/rerank", Kind::Scores),
];

/// What a request asks for.
pub(crate) fn route(request: &Request) -> Route {
    let path = ANSWERED.iter().find(|(path, _)| *path == request.path());
    match path {
        Some((path, kind)) if request.method == "POST" => Route::Answer(*kind, path),
        _ => Route::Plain,
    }
}

/// The model as it is listed.
pub(crate) struct Served<'a> {
    pub(crate) name: &'a str,
    pub(crate) context_tokens: u32,
    pub(crate) created_s: u64,
}

impl Served<'_> {
    /// The answer to what needs no engine.
    pub(crate) fn plain(&self, request: &Request) -> Script {
        match (request.method.as_str(), request.path()) {
            ("GET", "/v1/models") => Script::json(200, &self.list()),
            ("GET", "/health") => Script::new().send(0, whole_head(200, "text/plain", 0, "")),
            ("GET", "/version") => {
                let version = concat!("goodput-", env!("CARGO_PKG_VERSION"));
                Script::json(200, &json!({"version": version}))
            }
            (_, "/v1/models" | "/health" | "/version") => not_allowed("GET"),
            (_, path) if ANSWERED.iter().any(|(known, _)| *known == path) => not_allowed("POST"),
            _ => Script::json(404, &json!({"detail": "Not Found"})),
        }
    }

    fn list(&self) -> Value {
        json!({"object": "list", "data": [{
            "id": self.name,
            "object": "model",
            "created": self.created_s,
            "owned_by": "goodput",
            "root": self.name,
            "parent": null,
            "max_model_len": self.context_tokens,
        }]})
    }
}

/// The answer to another method than the one that a path has.
pub(crate) fn not_allowed(allow: &str) -> Script {
    let body = r#"{"detail":"Method Not Allowed"}"#;
    let more = format!("allow: {allow}\r\n");
    let head = whole_head(405, "application/json", body.len(), &more);
    Script::new().send(0, head + body)
}
