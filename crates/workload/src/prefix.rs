//! What prompts have in common at their beginning.

use measure::Tokens;

use crate::digest::Digest;
use crate::piece::Piece;
use crate::stream::Stream;

/// The most groups of prompts: their order is kept for each request.
pub const MAX_GROUPS: u32 = 1 << 20;

/// Places in the order of groups of a plan without a last request; after them
/// it starts again.
const ORDER_OF_ENDLESS: u32 = 1 << 16;

/// The most groups that have a label each: with more, a table of them is no
/// table any more.
pub const MAX_LABELLED_GROUPS: u32 = 100;

/// The name of the label that says which group a request is of.
pub const LABEL: &str = "prefix";

/// What written prompts begin with, before their own text and besides its
/// length. All of it can be there at once, in this order; a length of 0 is
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefixes {
    /// Tokens that all prompts of the run begin with, as with a system prompt.
    pub shared_tokens: u32,
    /// Groups of prompts that begin alike; below 2 all prompts are of one.
    pub groups: u32,
    /// Tokens that the prompts of one group begin with.
    pub group_tokens: u32,
    /// Tokens that the requests of one session begin with.
    pub session_tokens: u32,
}

impl Prefixes {
    /// Prompts that have nothing in common.
    pub const NONE: Self = Self { shared_tokens: 0, groups: 0, group_tokens: 0, session_tokens: 0 };

    /// All prefixes of a prompt together.
    pub const fn tokens(self) -> u32 {
        self.common_tokens().saturating_add(self.session_tokens)
    }

    /// What the prompts of one group have in common.
    pub const fn common_tokens(self) -> u32 {
        self.shared_tokens.saturating_add(self.group_tokens)
    }

    /// The length of a prompt whose own text has so many tokens.
    pub(crate) fn and_own(self, own: Tokens) -> Tokens {
        Tokens::new(self.tokens().saturating_add(own.get()))
    }

    /// The pieces that a prompt begins with.
    pub(crate) fn pieces(self, group: u32, session: u32) -> [Piece; 3] {
        [
            Piece { stream: ("shared prefix", 0), tokens: self.shared_tokens },
            Piece { stream: ("group prefix", group.into()), tokens: self.group_tokens },
            Piece { stream: ("session prefix", session.into()), tokens: self.session_tokens },
        ]
    }

    /// Which nonce of the run goes before a prompt of this group: prompts that
    /// begin alike have one, so that they still do.
    pub(crate) const fn nonce_of(self, group: u32) -> u32 {
        if self.shared_tokens > 0 { 0 } else { group }
    }

    /// The group of each request: dealt evenly, the order shuffled as a whole,
    /// so that two prompts of one group lie as far apart as chance has it.
    pub(crate) fn order(self, count: Option<u32>, seed: u64) -> Vec<u32> {
        if self.groups < 2 {
            return Vec::new();
        }
        let endless = ORDER_OF_ENDLESS.next_multiple_of(self.groups);
        let mut order: Vec<u32> =
            (0..count.unwrap_or(endless)).map(|index| index % self.groups).collect();
        Stream::new(seed, "group order").shuffle(&mut order);
        order
    }

    /// Nothing without prefixes, so that plans without keep their digest.
    pub(crate) fn digest(self, digest: &mut Digest) {
        if self != Self::NONE {
            digest.raw(b"prefixes");
            for number in [self.shared_tokens, self.groups, self.group_tokens, self.session_tokens]
            {
                digest.number(number.into());
            }
        }
    }
}
