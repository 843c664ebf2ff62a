//! What servers say of their own tokenizer: the questions to `/tokenize` and
//! `/detokenize`, their answers, and the length of a model's context.

use serde_json::{Value, json};

/// How a server wants to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// vLLM and SGLang: a prompt for a model, and the count in the answer.
    Vllm,
    /// llama.cpp: a content. It answers vLLM's question too, with no token.
    LlamaCpp,
}

impl Dialect {
    /// Both, in the order in which a server is tried: vLLM refuses the other
    /// one's question, while llama.cpp's answer to vLLM's has no count.
    pub const ALL: [Self; 2] = [Self::Vllm, Self::LlamaCpp];

    /// The body that asks for the ids of a text, with the special tokens that
    /// the model has around a plain prompt, or without.
    pub fn tokenize(self, model: &str, text: &str, special: bool) -> Vec<u8> {
        let body = match self {
            Self::Vllm => json!({"model": model, "prompt": text, "add_special_tokens": special}),
            Self::LlamaCpp => json!({"content": text, "add_special": special}),
        };
        body.to_string().into_bytes()
    }

    /// The body that asks for the text of ids.
    pub fn detokenize(self, model: &str, ids: &[u32]) -> Vec<u8> {
        let body = match self {
            Self::Vllm => json!({"model": model, "tokens": ids}),
            Self::LlamaCpp => json!({"tokens": ids}),
        };
        body.to_string().into_bytes()
    }

    /// The ids in an answer; `None` when it is none of this dialect.
    pub fn ids(self, answer: &[u8]) -> Option<Vec<u32>> {
        let answer: Value = serde_json::from_slice(answer).ok()?;
        let id = |id: &Value| u32::try_from(id.as_u64()?).ok();
        let ids: Vec<u32> =
            answer.get("tokens")?.as_array()?.iter().map(id).collect::<Option<_>>()?;
        match self {
            Self::Vllm => (answer.get("count")?.as_u64()? == ids.len() as u64).then_some(ids),
            Self::LlamaCpp => Some(ids),
        }
    }

    /// The text in an answer; `None` when it is none of this dialect.
    pub fn text(self, answer: &[u8]) -> Option<String> {
        let answer: Value = serde_json::from_slice(answer).ok()?;
        let key = match self {
            // SGLang's own name for it comes second.
            Self::Vllm => answer.get("prompt").or_else(|| answer.get("text")),
            Self::LlamaCpp => answer.get("content"),
        };
        Some(key?.as_str()?.to_owned())
    }
}

/// A model as `/v1/models` lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedModel {
    /// The name that requests carry.
    pub id: String,
    /// Who is said to own it: engines write their own name.
    pub owner: Option<String>,
    /// Tokens of a prompt and its answer together at most: vLLM's and SGLang's
    /// `max_model_len`, or the context of a slot of llama.cpp.
    pub context: Option<u32>,
}

/// The models of an answer of `/v1/models`; none when it is no such list.
pub fn models(answer: &[u8]) -> Vec<ListedModel> {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else { return Vec::new() };
    let listed = answer.get("data").and_then(Value::as_array);
    listed.into_iter().flatten().filter_map(model).collect()
}

fn model(entry: &Value) -> Option<ListedModel> {
    let text = |key: &str| entry.get(key)?.as_str().map(str::to_owned);
    let meta = || entry.get("meta")?.get("n_ctx");
    let context = entry.get("max_model_len").or_else(meta).and_then(Value::as_u64);
    Some(ListedModel {
        id: text("id")?,
        owner: text("owned_by"),
        context: context.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Answers of llama.cpp's server (SmolLM2, build of 2026-10) as they came,
    // and of vLLM 0.27's protocol as its source writes them.
    const LLAMA: &[u8] = br#"{"tokens":[19556,905,260,655]}"#;
    const LLAMA_TO_VLLM: &[u8] = br#"{"tokens":[]}"#;
    const VLLM: &[u8] =
        br#"{"count":2,"max_model_len":4096,"tokens":[9707,1879],"token_strs":null}"#;

    #[test]
    fn each_dialect_takes_its_own_answers() {
        assert_eq!(Dialect::LlamaCpp.ids(LLAMA), Some(vec![19556, 905, 260, 655]));
        assert_eq!(Dialect::Vllm.ids(LLAMA), None);
        assert_eq!(Dialect::Vllm.ids(LLAMA_TO_VLLM), None);
        assert_eq!(Dialect::Vllm.ids(VLLM), Some(vec![9707, 1879]));
        let texts = [(Dialect::Vllm, r#"{"prompt":"a b"}"#), (Dialect::Vllm, r#"{"text":"a b"}"#)];
        for (dialect, answer) in texts {
            assert_eq!(dialect.text(answer.as_bytes()).as_deref(), Some("a b"));
        }
        assert_eq!(Dialect::LlamaCpp.text(br#"{"content":"a b"}"#).as_deref(), Some("a b"));
        assert_eq!(Dialect::LlamaCpp.text(br#"{"prompt":"a b"}"#), None);
    }

    #[test]
    fn what_is_no_list_of_ids_is_none() {
        for answer in [
            "",
            "null",
            "[]",
            "{\"tokens\":7}",
            "{\"tokens\":[-1]}",
            "{\"tokens\":[4294967296]}",
            "{\"tokens\":[1.5]}",
            "{\"tokens\":[{\"id\":1}]}",
            "{\"tokens\":[1],\"count\":2}",
            "{\"error\":{\"message\":\"no\"}}",
        ] {
            assert_eq!(Dialect::Vllm.ids(answer.as_bytes()), None, "{answer}");
            let llama = answer.contains("count");
            assert_eq!(Dialect::LlamaCpp.ids(answer.as_bytes()).is_some(), llama, "{answer}");
        }
    }

    #[test]
    fn questions_are_in_the_servers_own_words() {
        let body = |bytes: Vec<u8>| serde_json::from_slice::<Value>(&bytes).unwrap();
        assert_eq!(
            body(Dialect::Vllm.tokenize("m", "a \"b\"", false)),
            json!({"model": "m", "prompt": "a \"b\"", "add_special_tokens": false})
        );
        assert_eq!(
            body(Dialect::LlamaCpp.tokenize("m", "a", true)),
            json!({"content": "a", "add_special": true})
        );
        assert_eq!(
            body(Dialect::Vllm.detokenize("m", &[1, 2])),
            json!({"model": "m", "tokens": [1, 2]})
        );
        assert_eq!(body(Dialect::LlamaCpp.detokenize("m", &[3])), json!({"tokens": [3]}));
    }

    #[test]
    fn models_tell_their_context_where_engines_do() {
        let llama = br#"{"data":[{"id":"smollm2","owned_by":"llamacpp",
            "meta":{"n_ctx":2048,"n_ctx_train":8192}}]}"#;
        let vllm = br#"{"object":"list","data":[{"id":"a","owned_by":"vllm","max_model_len":4096},
            {"id":"b","max_model_len":null},{"object":"model"}]}"#;
        let of = |answer: &[u8]| -> Vec<(String, Option<u32>)> {
            models(answer).into_iter().map(|model| (model.id, model.context)).collect()
        };
        assert_eq!(of(llama), [("smollm2".to_owned(), Some(2048))]);
        assert_eq!(of(vllm), [("a".to_owned(), Some(4096)), ("b".to_owned(), None)]);
        assert_eq!(models(llama)[0].owner.as_deref(), Some("llamacpp"));
        assert_eq!(models(b"<html>"), []);
        assert_eq!(models(br#"{"data":{"id":"x"}}"#), []);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            for dialect in Dialect::ALL {
                let _ = (dialect.ids(&bytes), dialect.text(&bytes));
            }
            let _ = models(&bytes);
        }

        #[test]
        fn any_text_comes_through(text in ".{0,80}") {
            for dialect in Dialect::ALL {
                let body: Value =
                    serde_json::from_slice(&dialect.tokenize("m", &text, false)).unwrap();
                let sent = body.get("prompt").or_else(|| body.get("content"));
                prop_assert_eq!(sent.and_then(Value::as_str), Some(text.as_str()));
            }
        }
    }
}
