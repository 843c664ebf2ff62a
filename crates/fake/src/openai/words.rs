//! What an engine says: plain words, so that no escape is ever needed.

use workload::Tokenizer;
use workload::prompt::estimated_pieces;

use super::ask::id_of_piece;
use crate::draw::mix;

const WORDS: [&str; 64] = [
    "the", "of", "a", "request", "and", "token", "to", "is", "model", "in", "that", "each", "for",
    "time", "it", "with", "as", "load", "on", "are", "by", "batch", "this", "from", "when", "step",
    "which", "memory", "an", "can", "be", "server", "at", "first", "queue", "has", "more", "than",
    "one", "cache", "prompt", "all", "answer", "between", "only", "until", "rate", "long", "next",
    "while", "under", "every", "small", "after", "many", "output", "so", "or", "wait", "not",
    "users", "limit", "was", "them",
];

/// Fewer words than these would make answers that all look alike.
const FEWEST: usize = 8;

/// Words that are one token each, with the ids that they have in a prompt.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    words: Vec<&'static str>,
    /// At the beginning of a text, and after another word; none where words are
    /// no tokens of the tokenizer.
    ids: Option<Vec<[u32; 2]>>,
}

impl Words {
    /// All of them, without ids.
    pub(crate) fn all() -> Self {
        Self { words: WORDS.to_vec(), ids: None }
    }

    /// Those that are one token for a tokenizer, or for the count by words.
    pub(crate) fn spelt(tokenizer: Option<&dyn Tokenizer>) -> Self {
        let ids = |word: &str| -> Option<[u32; 2]> {
            let one = |text: &str| match tokenizer {
                Some(tokenizer) => match tokenizer.encode(text).as_slice() {
                    [id] => Some(*id),
                    _ => None,
                },
                None => {
                    let mut id = None;
                    estimated_pieces(text, |piece, _| id = Some(id_of_piece(piece, 0)));
                    id
                }
            };
            Some([one(word)?, one(&format!(" {word}"))?])
        };
        let found: Vec<_> = WORDS.iter().filter_map(|word| Some((*word, ids(word)?))).collect();
        if found.len() < FEWEST {
            return Self::all();
        }
        let (words, ids) = found.into_iter().unzip();
        Self { words, ids: Some(ids) }
    }

    fn place(&self, seed: u64, token: u32) -> usize {
        (mix(seed, u64::from(token), 0) % self.words.len() as u64) as usize
    }

    /// Adds an answer's token to its text. Words after the first carry their
    /// blank, as vocabularies have it.
    pub(crate) fn write(&self, seed: u64, token: u32, text: &mut String) {
        if token > 0 {
            text.push(' ');
        }
        text.push_str(self.words[self.place(seed, token)]);
    }

    /// The ids of an answer's first `tokens`; none where they are not known.
    pub(crate) fn ids(&self, seed: u64, tokens: u32) -> Option<impl Iterator<Item = u32>> {
        let ids = self.ids.as_ref()?;
        let id = move |token: u32| ids[self.place(seed, token)][usize::from(token > 0)];
        Some((0..tokens).map(id))
    }
}
