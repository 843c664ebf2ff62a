//! Tokenizers behind [`workload::Tokenizer`]: bytes in, no files opened.

mod bpe;
mod embedded;
mod hugging_face;
pub mod tiktoken;

pub use bpe::{Bpe, VocabularyError, pieces};
pub use embedded::embedded;
pub use hugging_face::{ReadError, read};
