//! `tokenizer.json` as Hugging Face's models carry it, and what other files are.

use std::sync::Arc;

use workload::Tokenizer;
use workload::digest::Digest;

use crate::tiktoken::{self, TiktokenError};

/// Why a file gave no tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// JSON, but nothing that the library takes.
    #[error(
        "{file} is no tokenizer.json that can be read ({reason}); take the tokenizer.json that \
         lies beside the model's weights"
    )]
    Refused {
        /// The file as it was named.
        file: String,
        /// The library's words.
        reason: String,
    },
    /// Another kind of file.
    #[error(
        "{file} is {kind}, and what is accepted is tokenizer.json of Hugging Face or a tiktoken \
         vocabulary; save the model with its fast tokenizer (save_pretrained) to get the first"
    )]
    Kind {
        /// The file as it was named.
        file: String,
        /// What it looks like.
        kind: &'static str,
    },
    /// A vocabulary of tiktoken that cannot be used.
    #[error(transparent)]
    Tiktoken(#[from] TiktokenError),
}

#[derive(Debug)]
struct HuggingFace {
    name: String,
    inner: tokenizers::Tokenizer,
    special_ids: Vec<u32>,
    added: u32,
}

/// A tokenizer from the bytes of a file. `label` is what the user calls it; a
/// digest of the bytes joins it in the tokenizer's name.
pub fn read(label: &str, file: &str, bytes: &[u8]) -> Result<Arc<dyn Tokenizer>, ReadError> {
    if is_tiktoken(bytes) {
        return Ok(tiktoken::read(label, file, bytes)?);
    }
    if let Some(kind) = other_kind(bytes) {
        return Err(ReadError::Kind { file: file.to_owned(), kind });
    }
    let refused = |reason: String| ReadError::Refused { file: file.to_owned(), reason };
    let mut inner =
        tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| refused(error.to_string()))?;
    // Files of embedding models cut and pad; a count must do neither.
    inner.with_truncation(None).map_err(|error| refused(error.to_string()))?;
    inner.with_padding(None);
    let added = inner.get_added_tokens_decoder();
    let special = added.iter().filter(|(_, token)| token.special).map(|(id, _)| *id);
    let mut special_ids: Vec<u32> = special.collect();
    special_ids.sort_unstable();
    let name = format!("{label} ({})", Digest::new().raw(bytes).hex());
    // What the file's template puts around a text it puts around no text too.
    let around = |special| inner.encode_fast("", special).map_or(0, |around| around.len());
    let added = u32::try_from(around(true).saturating_sub(around(false))).unwrap_or(u32::MAX);
    Ok(Arc::new(HuggingFace { name, inner, special_ids, added }))
}

/// What a file is that does not hold a JSON object.
fn other_kind(bytes: &[u8]) -> Option<&'static str> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        None => Some("empty"),
        Some(b'{') => None,
        // Field 1 of SentencePiece's message is the list of its pieces.
        Some(_) if bytes.first() == Some(&b'\n') && bytes.contains(&0) => {
            Some("a SentencePiece model")
        }
        Some(_) => Some("no JSON object"),
    }
}

/// True when the first line is a token in base64 and its rank.
fn is_tiktoken(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.trim_ascii_end().splitn(2, |byte| *byte == b' ');
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let token = words.next().is_some_and(|token| !token.is_empty() && token.iter().all(base64));
    token
        && words.next().is_some_and(|rank| !rank.is_empty() && rank.iter().all(u8::is_ascii_digit))
}

impl Tokenizer for HuggingFace {
    fn name(&self) -> &str {
        &self.name
    }

    /// A text that the model's rules refuse has no ids: the check of lengths
    /// before a run tells of it.
    fn encode(&self, text: &str) -> Vec<u32> {
        let encoding = self.inner.encode_fast(text, false);
        encoding.map(|encoding| encoding.get_ids().to_vec()).unwrap_or_default()
    }

    fn decode(&self, ids: &[u32]) -> String {
        self.inner.decode(ids, false).unwrap_or_default()
    }

    fn vocabulary_size(&self) -> u32 {
        u32::try_from(self.inner.get_vocab_size(true)).unwrap_or(u32::MAX)
    }

    fn special_ids(&self) -> Vec<u32> {
        self.special_ids.clone()
    }

    fn added(&self) -> u32 {
        self.added
    }
}
