//! Vocabularies as tiktoken has them: a token in base64 and its rank, one a
//! line. The file does not say how a text is cut before tokens are joined, so
//! its name has to.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fancy_regex::Regex;
use workload::Tokenizer;
use workload::digest::Digest;

/// How texts are cut under one family of vocabularies.
#[derive(Debug)]
pub struct Cut {
    /// What a file's name holds, in small letters: any of these.
    pub names: &'static [&'static str],
    /// The expression that finds the pieces.
    pattern: &'static str,
}

/// Every family that is known: `tiktoken_ext/openai_public.py` of tiktoken 0.14
/// for OpenAI's; for Qwen and Llama 3 the `pat_str` that lies beside their
/// vocabularies, which is cl100k's but for the digits.
pub const CUTS: &[Cut] = &[
    Cut {
        names: &["o200k"],
        pattern: concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*",
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    },
    Cut {
        names: &["cl100k", "llama3", "llama-3", "llama_3"],
        pattern: concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    },
    Cut {
        names: &["qwen"],
        pattern: concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}",
            r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
    },
    Cut {
        names: &["gpt2", "r50k", "p50k"],
        pattern: r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    },
];

/// Why a file gave no tokenizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TiktokenError {
    /// No known way to cut texts.
    #[error(
        "{file} is a tiktoken vocabulary, and its name does not say how texts are cut; rename it \
         so that it holds one of {}",
        known()
    )]
    Family {
        /// The file as it was named.
        file: String,
    },
    /// A line that is no token with its rank.
    #[error("{file}, line {line}: not a token in base64 and its rank; fetch the file again")]
    Line {
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// A token or a rank that is there already.
    #[error("{file}, line {line}: the token or its rank is there twice; fetch the file again")]
    Twice {
        /// The file as it was named.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// Texts with that byte could not be written down.
    #[error("{file} has no token for the byte {byte}; fetch the file again")]
    Byte {
        /// The file as it was named.
        file: String,
        /// The byte.
        byte: u8,
    },
}

fn known() -> String {
    let names: Vec<&str> = CUTS.iter().flat_map(|cut| cut.names).copied().collect();
    names.join(", ")
}

#[derive(Debug)]
struct Tiktoken {
    name: String,
    cut: Regex,
    ranks: HashMap<Vec<u8>, u32>,
    tokens: HashMap<u32, Vec<u8>>,
    size: u32,
}

/// A tokenizer from the bytes of a file; `label` as for
/// [`read`](crate::read).
pub(crate) fn read(
    label: &str,
    file: &str,
    bytes: &[u8],
) -> Result<Arc<dyn Tokenizer>, TiktokenError> {
    let file = || file.to_owned();
    let cut = cut_of(&file()).ok_or(TiktokenError::Family { file: file() })?;
    let mut ranks = HashMap::new();
    let mut tokens = HashMap::new();
    for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let (token, rank) =
            token_of(text).ok_or_else(|| TiktokenError::Line { file: file(), line })?;
        let twice = ranks.insert(token.clone(), rank).is_some();
        if twice || tokens.insert(rank, token).is_some() {
            return Err(TiktokenError::Twice { file: file(), line });
        }
    }
    if let Some(byte) = (0..=u8::MAX).find(|byte| !ranks.contains_key([*byte].as_slice())) {
        return Err(TiktokenError::Byte { file: file(), byte });
    }
    // A rank is below u32::MAX, which marks a pair that makes no token.
    let size = tokens.keys().max().map_or(0, |rank| rank + 1);
    let name = format!("{label} ({})", Digest::new().raw(bytes).hex());
    Ok(Arc::new(Tiktoken { name, cut, ranks, tokens, size }))
}

/// The expression for a file of this name.
fn cut_of(file: &str) -> Option<Regex> {
    let stem = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    let cut = CUTS.iter().find(|cut| cut.names.iter().any(|name| stem.contains(name)))?;
    // The table's expressions are held by a test.
    Regex::new(cut.pattern).ok()
}

fn token_of(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let token = STANDARD.decode(&line[..space]).ok().filter(|token| !token.is_empty())?;
    let rank: u32 = std::str::from_utf8(&line[space + 1..]).ok()?.parse().ok()?;
    (rank < u32::MAX).then_some((token, rank))
}

impl Tiktoken {
    fn rank(&self, bytes: &[u8]) -> Option<u32> {
        self.ranks.get(bytes).copied()
    }

    /// Joins the neighbours whose token has the lowest rank, the first of
    /// equals, until none make one. A heap keeps a text without spaces from
    /// taking the square of its length.
    fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) {
        if let Some(id) = self.rank(piece) {
            return ids.push(id);
        }
        // Part k begins at byte k; a part that was joined to the one before it
        // has no end.
        let mut ends: Vec<Option<usize>> = (1..=piece.len()).map(Some).collect();
        let mut before: Vec<Option<usize>> = (0..piece.len()).map(|k| k.checked_sub(1)).collect();
        let mut heap = BinaryHeap::new();
        let pair = |ends: &[Option<usize>], left: usize| {
            let right = ends[left].filter(|right| *right < piece.len())?;
            let end = ends[right]?;
            Some(Reverse((self.rank(&piece[left..end])?, left, end)))
        };
        heap.extend((0..piece.len()).filter_map(|left| pair(&ends, left)));
        while let Some(Reverse((_, left, end))) = heap.pop() {
            // What was joined otherwise in the meantime is no pair any more.
            let Some(right) = ends[left].filter(|right| *right < end) else { continue };
            if ends[right] != Some(end) {
                continue;
            }
            ends[left] = Some(end);
            ends[right] = None;
            if end < piece.len() {
                before[end] = Some(left);
            }
            heap.extend(pair(&ends, left));
            heap.extend(before[left].and_then(|previous| pair(&ends, previous)));
        }
        let parts = ends.iter().enumerate();
        let parts = parts.filter_map(|(start, end)| self.rank(&piece[start..(*end)?]));
        ids.extend(parts);
    }
}

impl Tokenizer for Tiktoken {
    fn name(&self) -> &str {
        &self.name
    }

    /// A text that the expression cannot cut has the ids up to there: the check
    /// of lengths before a run tells of it.
    fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        for piece in self.cut.find_iter(text).map_while(Result::ok) {
            self.encode_piece(piece.as_str().as_bytes(), &mut ids);
        }
        ids
    }

    fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> =
            ids.iter().filter_map(|id| self.tokens.get(id)).flatten().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn vocabulary_size(&self) -> u32 {
        self.size
    }

    /// The file holds what plain text becomes and nothing else.
    fn special_ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_familys_expression_is_one_and_its_names_find_it() {
        for cut in CUTS {
            Regex::new(cut.pattern).unwrap();
            for name in cut.names {
                let found = cut_of(&format!("some/{}_base.tiktoken", name.to_ascii_uppercase()));
                assert_eq!(found.unwrap().as_str(), cut.pattern, "{name}");
            }
        }
        assert!(cut_of("qwen/vocabulary.tiktoken").is_none(), "a folder's name says nothing");
    }
}
