//! Answers that hold no tokens: vectors of texts, scores of documents. One JSON
//! object each.
//!
//! - OpenAI's embeddings and vLLM's pooling: `data`, a list of objects with
//!   `embedding` or `data`, a list of numbers (of lists, for one vector a token)
//!   or base64.
//! - Rerank of Cohere, Jina, vLLM and llama.cpp: `results`, a list of objects
//!   with `relevance_score`, or `score`.
//!
//! The tokens that were read are in `usage`: `prompt_tokens`, else
//! `total_tokens`.

use serde::Deserialize;

use super::Listener;
use super::json::{Count, Filled, Lax, List, Number};
use crate::api::Yields;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    data: Maybe<Vector>,
    results: Maybe<Score>,
    usage: Lax<Usage>,
}

/// A list that may be missing, which is not the same as empty.
type Maybe<T> = Option<List<T>>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: Count,
    total_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Vector {
    embedding: Filled,
    data: Filled,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Score {
    relevance_score: Number,
    score: Number,
}

/// Hears a whole answer; `wanted` is the number of results asked for.
pub(super) fn hear(
    body: &[u8],
    yields: Yields,
    wanted: u32,
    ear: &mut Listener,
) -> serde_json::Result<()> {
    let Some(body) = serde_json::from_slice::<Lax<Body>>(body)?.0 else {
        ear.wrong_result("the answer is no JSON object");
        return Ok(());
    };
    let usage = body.usage.0.unwrap_or_default();
    ear.prompt_counts(usage.prompt_tokens.0.or(usage.total_tokens.0), None, None);
    let (name, found) = match yields {
        Yields::Scores => {
            let whole = |score: &Score| score.relevance_score.0.or(score.score.0).is_some();
            ("results", body.results.map(|list| counted(&list, whole)))
        }
        Yields::Vectors | Yields::Tokens => {
            let whole = |vector: &Vector| vector.embedding.0 || vector.data.0;
            ("data", body.data.map(|list| counted(&list, whole)))
        }
    };
    match found {
        None => ear.wrong_result(&format!("the answer has no {name}")),
        // Nothing of anything is an answer, and an empty one.
        Some((0, _)) => ear.results(0),
        Some((listed, whole)) if listed != whole => {
            let bad = listed - whole;
            ear.wrong_result(&format!("{bad} of {listed} {name} of the answer hold nothing"));
        }
        Some((listed, _)) if listed != wanted as usize => {
            let told = format!("{listed} {name} came and {wanted} were asked for");
            ear.wrong_result(&told);
        }
        Some(_) => ear.results(wanted),
    }
    Ok(())
}

/// Elements of a list, and those that hold something.
fn counted<T>(list: &List<T>, whole: impl Fn(&T) -> bool) -> (usize, usize) {
    (list.0.len(), list.0.iter().filter(|element| whole(element)).count())
}

#[cfg(test)]
mod tests;
