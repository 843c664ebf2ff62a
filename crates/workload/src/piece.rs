//! Parts of a written prompt. Prompts that begin with the same pieces begin
//! with the same text, and so with the same tokens: this is how prefixes are
//! shared.

use crate::stream::Stream;

/// The name of streams of blocks.
const BLOCK: &str = "hash block";

/// A part of a prompt, with a stream of its own. Its text depends on its stream,
/// its length, on whether it stands first, since only a text's first word has no
/// space before it, and on the run's seed, but for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// What it is for, and which one of its kind: the name and number of its
    /// stream. Pieces of one kind that follow others differ from their first
    /// token on, as long as their numbers are different and close together.
    pub stream: (&'static str, u64),
    /// Its tokens, exactly; a piece of none has no text.
    pub tokens: u32,
}

impl Piece {
    /// What request `index` shares with no other request.
    pub const fn own(index: u32, tokens: u32) -> Self {
        Self { stream: ("prompt", index as u64), tokens }
    }

    /// The block that a trace names by this hash. Its text is the same in every
    /// run, whatever the seed, so that a server that keeps its cache meets what
    /// it knows.
    pub const fn block(hash: u64, tokens: u32) -> Self {
        Self { stream: (BLOCK, hash), tokens }
    }

    /// The pieces of a prompt of so many tokens that begins with `leading`:
    /// they are cut where the prompt ends, and what is left is its own.
    pub(crate) fn of_prompt(leading: &[Self], index: u32, tokens: u32) -> Vec<Self> {
        let mut left = tokens;
        let mut pieces = Vec::with_capacity(leading.len() + 1);
        for piece in leading.iter().copied().chain([Self::own(index, tokens)]) {
            let tokens = piece.tokens.min(left);
            if tokens > 0 {
                pieces.push(Self { tokens, ..piece });
            }
            left -= tokens;
        }
        pieces
    }

    /// True for a block that a trace names: it is the same in every run.
    pub(crate) fn is_block(&self) -> bool {
        self.stream.0 == BLOCK
    }

    pub(crate) fn stream(&self, seed: u64) -> Stream {
        let (name, number) = self.stream;
        let seed = if self.is_block() { 0 } else { seed };
        Stream::numbered(seed, name, number)
    }
}

#[cfg(test)]
mod tests;
