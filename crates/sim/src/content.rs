//! What the tokens of a sequence are, without the tokens: enough to know which
//! sequences begin alike, which is all that a prefix cache asks.

use std::sync::Arc;

pub use workload::stretch::Stretch;

/// The tokens that a request brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Known by where they come from.
    Stretches(Arc<[Stretch]>),
    /// Known one by one, as a tokenizer numbers them.
    Tokens(Arc<[u32]>),
    /// The same with the beginning of the answer that will follow, so that a
    /// later prompt finds it when it carries the answer as text.
    Spelt {
        /// The prompt's tokens.
        prompt: Arc<[u32]>,
        /// The beginnings of all answers to it, one after the other.
        answers: Arc<[u32]>,
        /// How long each of them is.
        each: u32,
        /// Which of them follows here.
        choice: u8,
    },
}

impl Content {
    /// So many tokens that no other request has.
    pub fn own(source: u64, tokens: u32) -> Self {
        Self::Stretches(Arc::new([Stretch { source, from: 0, tokens }]))
    }

    /// The same tokens before another of the answers to them.
    #[must_use]
    pub fn before_choice(&self, choice: u8) -> Self {
        let mut same = self.clone();
        if let Self::Spelt { choice: follows, .. } = &mut same {
            *follows = choice;
        }
        same
    }

    /// How many tokens it has; more than fit a count are the largest count.
    pub fn len(&self) -> u32 {
        match self {
            Self::Stretches(all) => {
                all.iter().fold(0, |sum: u32, stretch| sum.saturating_add(stretch.tokens))
            }
            Self::Tokens(ids) | Self::Spelt { prompt: ids, .. } => {
                u32::try_from(ids.len()).unwrap_or(u32::MAX)
            }
        }
    }

    /// True without tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The beginning of the answer that follows, where it is known.
    fn answered(&self) -> &[u32] {
        match self {
            Self::Spelt { answers, each, choice, .. } => {
                let from = *each as usize * usize::from(*choice);
                answers.get(from..from + *each as usize).unwrap_or_default()
            }
            Self::Stretches(_) | Self::Tokens(_) => &[],
        }
    }
}

/// The identity of a block: of its tokens and of all before them, so that equal
/// hashes mean equal beginnings. 64 bits: among ten million blocks two are
/// alike by chance once in 370 000 runs.
pub type BlockHash = u64;

/// Before the first block.
const ROOT: BlockHash = 0x9e37_79b9_7f4a_7c15;

/// Takes a number into a hash (the finaliser of SplitMix64 by Steele, Lea and
/// Flood, over a multiply-add).
pub(crate) const fn mix(hash: u64, number: u64) -> u64 {
    let mut x =
        (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Gives the hashes of a sequence's full blocks one after the other, as the
/// sequence grows.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    block_tokens: u32,
    /// Of what is before the next block.
    last: BlockHash,
    /// Which stretch the next block begins in, and how far in it.
    place: (usize, u32),
    /// Blocks given so far.
    given: u32,
}

impl Chain {
    pub(crate) fn new(block_tokens: u32) -> Self {
        Self { block_tokens, last: ROOT, place: (0, 0), given: 0 }
    }

    /// The same for a sequence under an adapter: with it, keys and values of the
    /// same tokens are other ones.
    pub(crate) fn under(mut self, adapter: Option<u64>) -> Self {
        if let Some(adapter) = adapter {
            self.last = mix(self.last, adapter);
        }
        self
    }

    /// Blocks given so far.
    pub(crate) const fn given(&self) -> u32 {
        self.given
    }

    /// The hash of the next block of `prompt` and then the answer `answer`; its
    /// tokens must exist.
    pub(crate) fn next(&mut self, prompt: &Content, answer: u64) -> BlockHash {
        let mut hash = self.last;
        match prompt {
            Content::Stretches(stretches) => {
                let mut run = Run::default();
                let mut left = self.block_tokens;
                while left > 0 {
                    let (at, inside) = self.place;
                    let stretch = stretches.get(at).copied().unwrap_or(Stretch {
                        source: answer,
                        from: 0,
                        tokens: u32::MAX,
                    });
                    let taken = left.min(stretch.tokens - inside);
                    hash = run.take(hash, stretch.source, stretch.from + inside, taken);
                    left -= taken;
                    self.place = if inside + taken == stretch.tokens {
                        (at + 1, 0)
                    } else {
                        (at, inside + taken)
                    };
                }
                hash = run.end(hash);
            }
            Content::Tokens(ids) | Content::Spelt { prompt: ids, .. } => {
                let answered = prompt.answered();
                let known = ids.len() + answered.len();
                let first = self.given as usize * self.block_tokens as usize;
                for number in first..first + self.block_tokens as usize {
                    let id = ids.get(number).or_else(|| answered.get(number - ids.len()));
                    hash = match id {
                        Some(id) => mix(hash, u64::from(*id)),
                        None => mix(mix(hash, answer), (number - known) as u64),
                    };
                }
            }
        }
        self.given += 1;
        self.last = hash;
        hash
    }
}

/// Tokens in a row that may span stretches: how a source was cut must not show
/// in the hash.
#[derive(Default)]
struct Run {
    source: u64,
    from: u32,
    tokens: u32,
}

impl Run {
    fn take(&mut self, hash: u64, source: u64, from: u32, tokens: u32) -> u64 {
        if tokens == 0 {
            return hash;
        }
        if self.tokens > 0
            && self.source == source
            && self.from.checked_add(self.tokens) == Some(from)
        {
            self.tokens += tokens;
            return hash;
        }
        let hash = self.end(hash);
        *self = Self { source, from, tokens };
        hash
    }

    fn end(&mut self, hash: u64) -> u64 {
        if self.tokens == 0 {
            return hash;
        }
        let hash = mix(mix(hash, self.source), u64::from(self.from) << 32 | u64::from(self.tokens));
        self.tokens = 0;
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(content: &Content, answer: u64, blocks: u32) -> Vec<BlockHash> {
        let mut chain = Chain::new(16);
        (0..blocks).map(|_| chain.next(content, answer)).collect()
    }

    fn stretches(all: &[(u64, u32, u32)]) -> Content {
        let one = |&(source, from, tokens)| Stretch { source, from, tokens };
        Content::Stretches(all.iter().map(one).collect())
    }

    #[test]
    fn how_a_source_is_cut_does_not_show() {
        let whole = stretches(&[(1, 0, 40), (2, 0, 24)]);
        let cut = stretches(&[(1, 0, 10), (1, 10, 30), (2, 0, 3), (2, 3, 21)]);
        assert_eq!(hashes(&whole, 9, 4), hashes(&cut, 9, 4));
    }

    #[test]
    fn blocks_are_alike_as_far_as_all_before_them_is() {
        let a = hashes(&stretches(&[(1, 0, 40), (2, 0, 24)]), 9, 4);
        let b = hashes(&stretches(&[(1, 0, 40), (3, 0, 24)]), 9, 4);
        assert_eq!(a[..2], b[..2]);
        assert_ne!(a[2], b[2]);
        assert_ne!(a[3], b[3], "equal tokens after other ones are another block");
        let swapped = hashes(&stretches(&[(1, 16, 16), (1, 0, 16)]), 9, 2);
        assert_ne!(swapped[0], a[0]);
    }

    #[test]
    fn an_answer_is_what_the_next_turn_carries() {
        let first = stretches(&[(1, 0, 20)]);
        let next = stretches(&[(1, 0, 20), (7, 0, 30), (4, 0, 14)]);
        assert_eq!(hashes(&first, 7, 3), hashes(&next, 8, 3));
        assert_ne!(hashes(&first, 7, 4)[3], hashes(&next, 8, 4)[3]);
    }

    #[test]
    fn an_answer_that_is_spelt_is_found_as_text() {
        let ids: Vec<u32> = (0..48).collect();
        let answers: Vec<u32> = (20..48).chain(60..88).collect();
        let (prompt, answers) = (ids[..20].into(), answers.into());
        let first = Content::Spelt { prompt, answers, each: 28, choice: 0 };
        assert_eq!(first.len(), 20);
        let next = Content::Tokens(ids.into());
        assert_eq!(hashes(&first, 7, 3), hashes(&next, 8, 3));
        assert_ne!(hashes(&first, 7, 4)[3], hashes(&next, 8, 4)[3]);
        // Another answer to it goes another way once the prompt is over.
        let second = first.before_choice(1);
        let other: Vec<u32> = (0..20).chain(60..88).collect();
        assert_eq!(hashes(&second, 7, 3), hashes(&Content::Tokens(other.into()), 8, 3));
        assert_eq!(hashes(&second, 7, 1), hashes(&first, 7, 1));
        assert_ne!(hashes(&second, 7, 2)[1], hashes(&first, 7, 2)[1]);
        // One whose beginning is not known is that of no other request.
        let third = first.before_choice(2);
        assert_eq!(hashes(&third, 7, 1), hashes(&first, 7, 1));
        assert_ne!(hashes(&third, 7, 2)[1], hashes(&third, 8, 2)[1]);
    }

    #[test]
    fn token_ids_are_compared_one_by_one() {
        let ids: Vec<u32> = (0..32).collect();
        let mut other = ids.clone();
        other[31] = 99;
        let (a, b) = (Content::Tokens(ids.into()), Content::Tokens(other.into()));
        assert_eq!(hashes(&a, 1, 1), hashes(&b, 1, 1));
        assert_ne!(hashes(&a, 1, 2)[1], hashes(&b, 1, 2)[1]);
        assert_ne!(hashes(&a, 1, 3)[2], hashes(&a, 2, 3)[2]);
    }
}
