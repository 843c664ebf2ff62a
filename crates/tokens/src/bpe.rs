//! Byte pair encoding over bytes (Sennrich, Haddow, Birch 2016; over bytes as
//! in GPT-2): a text is cut into pieces, and inside each piece the pair with
//! the lowest rank is joined until no pair is known. No token spans two pieces.

use std::collections::HashMap;

use workload::Tokenizer;

/// Every vocabulary file of ours begins so.
const MAGIC: &[u8; 8] = b"GPBPE\x00\x00\x01";

/// Characters of a piece at most: joining takes the square of a piece's
/// length, and a text without spaces must not take minutes.
const PIECE_LIMIT: usize = 64;

/// Digits of a piece at most, as in cl100k.
const DIGIT_LIMIT: usize = 3;

/// Ids below this are single bytes.
const BYTES: u32 = 256;

/// A pair that is not in the vocabulary.
const UNKNOWN: u32 = u32::MAX;

/// A vocabulary of single bytes and of pairs joined in order.
#[derive(Clone, Debug)]
pub struct Bpe {
    name: String,
    /// The bytes of each id.
    tokens: Vec<Vec<u8>>,
    joined: HashMap<(u32, u32), u32>,
    whole: HashMap<Vec<u8>, u32>,
}

/// Why a vocabulary was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// The first bytes are others.
    #[error("the file is no vocabulary of goodput's")]
    Magic,
    /// Bytes are missing or left over.
    #[error("the file ends in the middle of a pair")]
    Cut,
    /// A pair names an id that is not made before it.
    #[error("pair {0} joins a token that comes after it")]
    Order(usize),
    /// More pairs than ids of two bytes.
    #[error("more than 65280 pairs")]
    TooMany,
}

impl Bpe {
    /// A vocabulary from pairs in order: pair k makes id 256 + k.
    pub fn of_pairs(
        name: impl Into<String>,
        pairs: &[(u16, u16)],
    ) -> Result<Self, VocabularyError> {
        if pairs.len() > usize::from(u16::MAX) + 1 - BYTES as usize {
            return Err(VocabularyError::TooMany);
        }
        let mut tokens: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
        let mut joined = HashMap::with_capacity(pairs.len());
        for (place, &(left, right)) in pairs.iter().enumerate() {
            let of = |id: u16| tokens.get(usize::from(id)).ok_or(VocabularyError::Order(place));
            let bytes = [of(left)?.as_slice(), of(right)?.as_slice()].concat();
            let id = tokens.len() as u32;
            joined.entry((u32::from(left), u32::from(right))).or_insert(id);
            tokens.push(bytes);
        }
        let whole = tokens.iter().enumerate().rev();
        let whole = whole.map(|(id, bytes)| (bytes.clone(), id as u32)).collect();
        Ok(Self { name: name.into(), tokens, joined, whole })
    }

    /// A vocabulary from a file of ours: eight bytes of magic, then pairs of
    /// little-endian 16-bit ids.
    pub fn of_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, VocabularyError> {
        let pairs = bytes.strip_prefix(MAGIC).ok_or(VocabularyError::Magic)?;
        let (pairs, rest) = pairs.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(VocabularyError::Cut);
        }
        let pairs = pairs
            .iter()
            .map(|&[a, b, c, d]| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])));
        Self::of_pairs(name, &pairs.collect::<Vec<_>>())
    }

    /// The file of these pairs, which [`Self::of_bytes`] reads back.
    pub fn file_of(pairs: &[(u16, u16)]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (left, right) in pairs {
            bytes.extend(left.to_le_bytes());
            bytes.extend(right.to_le_bytes());
        }
        bytes
    }

    fn encode_piece(&self, piece: &[u8], ids: &mut Vec<u32>) {
        // Most pieces of prose are one token, and one look-up finds it.
        if let Some(&id) = self.whole.get(piece) {
            return ids.push(id);
        }
        // Each part with what it makes together with the next.
        let mut parts: Vec<(u32, u32)> =
            piece.iter().map(|&byte| (u32::from(byte), UNKNOWN)).collect();
        let join = |parts: &[(u32, u32)], place: usize| match parts.get(place + 1) {
            Some(next) => *self.joined.get(&(parts[place].0, next.0)).unwrap_or(&UNKNOWN),
            None => UNKNOWN,
        };
        for place in 0..parts.len() {
            parts[place].1 = join(&parts, place);
        }
        // Ids of pairs are their ranks. `min_by_key` takes the first of equals.
        while let Some((place, id)) = parts
            .iter()
            .map(|part| part.1)
            .enumerate()
            .min_by_key(|(_, id)| *id)
            .filter(|(_, id)| *id != UNKNOWN)
        {
            parts[place].0 = id;
            parts.remove(place + 1);
            parts[place].1 = join(&parts, place);
            if place > 0 {
                parts[place - 1].1 = join(&parts, place - 1);
            }
        }
        ids.extend(parts.iter().map(|part| part.0));
    }
}

impl Tokenizer for Bpe {
    fn name(&self) -> &str {
        &self.name
    }

    fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4);
        for piece in pieces(text) {
            self.encode_piece(piece.as_bytes(), &mut ids);
        }
        ids
    }

    fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> =
            ids.iter().filter_map(|id| self.tokens.get(*id as usize)).flatten().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn vocabulary_size(&self) -> u32 {
        self.tokens.len() as u32
    }

    fn special_ids(&self) -> Vec<u32> {
        Vec::new()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Letter,
    Digit,
    Space,
    Mark,
}

impl Kind {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            _ if c.is_whitespace() => Self::Space,
            _ if c.is_alphabetic() => Self::Letter,
            _ if c.is_numeric() => Self::Digit,
            _ => Self::Mark,
        }
    }
}

/// The pieces of a text, which together are the text: words and runs of marks,
/// each with the one space before it; up to three digits; and other space.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(first_piece(rest));
        rest = after;
        Some(piece)
    })
}

/// Bytes of the first piece of a text that is not empty.
fn first_piece(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    let Some((_, first)) = chars.next() else { return 0 };
    let mut kind = Kind::of(first);
    let mut length = 1;
    if first == ' '
        && let Some(&(_, next)) = chars.peek()
        && matches!(Kind::of(next), Kind::Letter | Kind::Mark)
    {
        kind = Kind::of(next);
    }
    let limit = if kind == Kind::Digit { DIGIT_LIMIT } else { PIECE_LIMIT };
    while let Some(&(at, next)) = chars.peek() {
        if Kind::of(next) != kind || length == limit {
            return at;
        }
        chars.next();
        // The last space of a run belongs to the word or mark after it.
        let before_word = chars
            .peek()
            .is_some_and(|&(_, after)| matches!(Kind::of(after), Kind::Letter | Kind::Mark));
        if kind == Kind::Space && next == ' ' && before_word {
            return at;
        }
        length += 1;
    }
    text.len()
}
