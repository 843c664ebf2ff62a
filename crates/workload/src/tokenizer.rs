//! What a tokenizer does, whoever made it.

use std::fmt;

/// A tokenizer. Its work depends on the text alone, and it is shared between
/// threads.
pub trait Tokenizer: fmt::Debug + Send + Sync {
    /// Which one it is: two tokenizers of one name give the same ids.
    fn name(&self) -> &str;

    /// The ids of a text, without any that a model's template puts around it.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// The text of ids; bytes that are no text become U+FFFD.
    fn decode(&self, ids: &[u32]) -> String;

    /// Number of ids, special ones among them.
    fn vocabulary_size(&self) -> u32;

    /// Ids that steer a model and never come from plain text.
    fn special_ids(&self) -> Vec<u32>;

    /// Number of ids that are put around a plain text where special tokens are
    /// asked for, as endpoints that take a plain prompt do: a mark of the
    /// beginning, most often.
    fn added(&self) -> u32 {
        0
    }

    /// The ids of several texts. A tokenizer that has to ask somebody asks for
    /// them at the same time.
    fn encode_all(&self, texts: &[String]) -> Vec<Vec<u32>> {
        texts.iter().map(|text| self.encode(text)).collect()
    }

    /// The texts of several lists of ids.
    fn decode_all(&self, lists: &[Vec<u32>]) -> Vec<String> {
        lists.iter().map(|ids| self.decode(ids)).collect()
    }

    /// Number of tokens of a text.
    fn count(&self, text: &str) -> u32 {
        u32::try_from(self.encode(text).len()).unwrap_or(u32::MAX)
    }
}

impl PartialEq for dyn Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}
