//! What the tokens of a prompt are, without its text: enough to know which
//! prompts begin alike, which is all that a model of a prefix cache asks.

use crate::digest::Digest;
use crate::piece::Piece;

/// Tokens in a row of one source: those numbered `from`, `from + 1` and so on.
/// Two tokens are the same when source and number are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    /// What they are of: a piece of a prompt, a message, an answer. Sources with
    /// different numbers have no token in common.
    pub source: u64,
    /// The first of them.
    pub from: u32,
    /// How many.
    pub tokens: u32,
}

impl Stretch {
    /// The tokens of a text that is not looked into: the same text, the same
    /// tokens.
    pub fn of_text(text: &str, tokens: u32) -> Self {
        Self { source: source(|digest| digest.text("text").text(text)), from: 0, tokens }
    }

    /// The answer to request `index`, so far as it has been given.
    pub fn of_answer(index: u32, tokens: u32) -> Self {
        Self { source: Self::answer_source(index), from: 0, tokens }
    }

    /// The source of the answer to request `index`.
    pub fn answer_source(index: u32) -> u64 {
        source(|digest| digest.text("answer").number(index.into()))
    }

    /// A number for a name, such as that of an adapter.
    pub fn name_source(name: &str) -> u64 {
        source(|digest| digest.text("name").text(name))
    }

    /// A piece from its token `from` on; of none where it is shorter.
    pub(crate) fn of_piece(piece: &Piece, seed: u64, from: u32) -> Self {
        let (name, number) = piece.stream;
        let seed = if piece.is_block() { 0 } else { seed };
        let source = source(|digest| digest.text(name).number(seed).number(number));
        Self { source, from, tokens: piece.tokens.saturating_sub(from) }
    }

    /// The first words of a prompt with this nonce.
    pub(crate) fn of_nonce(bits: u64, tokens: u32) -> Self {
        Self { source: source(|digest| digest.text("nonce").number(bits)), from: 0, tokens }
    }
}

fn source(take: impl FnOnce(&mut Digest) -> &mut Digest) -> u64 {
    let mut digest = Digest::new();
    take(&mut digest);
    digest.value()
}
