//! Several written texts in one request: batches to embed, documents to rank.

use measure::Tokens;

use crate::digest::Digest;
use crate::length::Lengths;
use crate::piece::Piece;
use crate::stream::Stream;

/// The most texts of one request: what OpenAI takes of them.
pub const MAX_TEXTS: u32 = 2_048;

/// What one request carries of written texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Batch {
    /// One prompt.
    #[default]
    One,
    /// So many texts, each with a length of its own.
    Texts(u32),
    /// A query, then documents to be ranked under it.
    Ranking(Ranking),
}

/// A query and its documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// How many documents.
    pub documents: u32,
    /// The length that a request is of: of the query with one document, where
    /// they are read together, else of each.
    pub mean: u32,
    /// Spread of it, as a fraction.
    pub spread: f64,
    /// True when the model reads the query with each document (a reranker, or
    /// cross-encoder), false when it embeds each by itself.
    pub together: bool,
}

/// A rule that a [`Batch`] breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// None, or more than are taken.
    #[error("a request has from 1 to {MAX_TEXTS} texts")]
    Count,
    /// Query and document do not fit.
    #[error("a query with its document has at least 6 tokens")]
    TooShort,
    /// The prompts are the user's own.
    #[error("only written texts come in batches")]
    OwnPrompts,
}

impl Ranking {
    /// The query's length before its spread: vLLM's half of the whole, less one
    /// for the mark between the two.
    fn query(&self) -> u32 {
        if self.together { (self.mean / 2).saturating_sub(1) } else { self.mean }
    }

    /// A document's length before its spread, beside a query of so many tokens.
    fn document(&self, query: u32) -> u32 {
        if self.together { self.mean.saturating_sub(query + 1) } else { self.mean }
    }

    fn draw(&self, mean: u32, stream: &mut Stream) -> Tokens {
        // A long query may leave a document nothing; it has a token then.
        let lengths = Lengths::uniform(mean.max(1), self.spread);
        lengths.map_or(Tokens::new(1), |lengths| lengths.draw(stream))
    }
}

impl Batch {
    /// Checks the rules; `written` says whether the prompts are.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self, written: bool) -> Result<(), BatchError> {
        let count = match self {
            Self::One => return Ok(()),
            Self::Texts(count) => *count,
            Self::Ranking(ranking) => ranking.documents,
        };
        if !written {
            return Err(BatchError::OwnPrompts);
        }
        if !(1..=MAX_TEXTS).contains(&count) {
            return Err(BatchError::Count);
        }
        match self {
            Self::Ranking(ranking) if ranking.together && ranking.mean < 6 => {
                Err(BatchError::TooShort)
            }
            _ => Ok(()),
        }
    }

    /// The lengths of a request's texts, the first of which is `first` where
    /// the texts are alike: all draws are from the request's own stream, whose
    /// first one that was.
    pub(crate) fn lengths(
        &self,
        first: Tokens,
        input: &Lengths,
        mut stream: Stream,
    ) -> Vec<Tokens> {
        match self {
            Self::One => vec![first],
            Self::Texts(count) => (0..*count).map(|_| input.draw(&mut stream)).collect(),
            Self::Ranking(ranking) => {
                let query = ranking.draw(ranking.query(), &mut stream);
                let document = ranking.document(query.get());
                let documents = (0..ranking.documents).map(|_| ranking.draw(document, &mut stream));
                [query].into_iter().chain(documents.collect::<Vec<_>>()).collect()
            }
        }
    }

    /// Tokens that the model reads of texts of these lengths: a query counts
    /// once for each document that it is read with.
    pub(crate) fn read(&self, lengths: &[Tokens]) -> Tokens {
        let sum = lengths.iter().fold(0u32, |sum, n| sum.saturating_add(n.get()));
        Tokens::new(match (self, lengths.first()) {
            (Self::Ranking(ranking), Some(query)) if ranking.together => {
                sum.saturating_add(query.get().saturating_mul(ranking.documents - 1))
            }
            _ => sum,
        })
    }

    /// True when the text at this place carries the run's nonce: a document is
    /// read behind its query, whose nonce is enough.
    pub(crate) const fn has_nonce(&self, place: usize) -> bool {
        match self {
            Self::Ranking(ranking) => place == 0 || !ranking.together,
            Self::One | Self::Texts(_) => true,
        }
    }

    /// The piece that the text at this place of request `index` is made of.
    pub(crate) const fn piece(index: u32, place: usize, tokens: u32) -> Piece {
        match place {
            0 => Piece::own(index, tokens),
            _ => Piece { stream: ("batch", (index as u64) << 16 | place as u64), tokens },
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        match self {
            // Nothing, so that schedules without keep their hash.
            Self::One => {}
            Self::Texts(count) => {
                digest.raw(b"texts").number(u64::from(*count));
            }
            Self::Ranking(ranking) => {
                digest.raw(b"ranking").number(u64::from(ranking.documents));
                digest.number(u64::from(ranking.mean)).number(ranking.spread.to_bits());
                digest.number(u64::from(ranking.together));
            }
        }
    }
}

#[cfg(test)]
mod tests;
