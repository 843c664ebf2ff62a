//! JSON bodies that are no stream: the answer of a server that ignores
//! `stream`, and the body of a refusal.

use serde::Deserialize;

use super::json::{Fault, Lax, Name, Text};
use super::{Listener, anthropic, ollama, openai, responses, results, sglang, tgi, triton};
use crate::api::Api;

/// An error in the shapes that servers give it in a body of its own.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal<'a> {
    #[serde(borrow)]
    error: Fault<'a>,
    /// FastAPI: a string, or a list of objects with `msg`.
    #[serde(borrow)]
    detail: Fault<'a>,
    /// Without an outer `error`: older vLLM, NIM and others.
    #[serde(borrow)]
    message: Text<'a>,
    #[serde(borrow)]
    object: Text<'a>,
    #[serde(borrow)]
    code: Name<'a>,
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    error_type: Text<'a>,
}

impl Refusal<'_> {
    fn message(&self) -> &str {
        let candidates = [&*self.error.message, self.message.as_str(), &*self.detail.message];
        candidates.into_iter().find(|message| !message.is_empty()).unwrap_or_default()
    }

    fn code(&self) -> &str {
        let candidates = [
            &*self.error.code,
            &*self.error.kind,
            &*self.code.name,
            self.error_type.as_str(),
            self.kind.as_str(),
        ];
        candidates.into_iter().find(|code| !code.is_empty()).unwrap_or_default()
    }
}

/// Message and code of a refusal; both may be empty. `None` when the body is
/// no JSON object.
pub(super) fn refusal(body: &[u8]) -> Option<(String, String)> {
    let refusal = serde_json::from_slice::<Lax<Refusal<'_>>>(body).ok()?.0?;
    Some((refusal.message().to_owned(), refusal.code().to_owned()))
}

/// Hears a whole answer.
pub(super) fn hear(body: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    if let Some(refusal) = serde_json::from_slice::<Lax<Refusal<'_>>>(body)?.0
        && (refusal.error.present || refusal.object.as_str() == "error")
    {
        ear.error(refusal.message(), refusal.code());
        return Ok(());
    }
    match ear.api {
        Api::OpenaiChat | Api::OpenaiCompletions => openai::hear(b"", body, ear),
        Api::OpenaiResponses => responses::hear_whole(body, ear),
        Api::Anthropic => anthropic::hear_whole(body, ear),
        Api::Ollama | Api::OllamaGenerate => ollama::hear(body, ear),
        Api::Tgi => tgi::hear_whole(body, ear),
        Api::Sglang => sglang::hear(body, ear),
        Api::Triton => triton::hear(body, ear),
        Api::Embeddings | Api::EmbeddingsChat | Api::Pooling | Api::Rerank => {
            let (yields, wanted) = (ear.api.entry().yields, ear.wanted_results);
            results::hear(body, yields, wanted, ear)
        }
    }
}
