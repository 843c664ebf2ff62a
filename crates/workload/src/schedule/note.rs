//! What a reader must know of a schedule.

use std::fmt;

use measure::Tokens;

use crate::prompt::CacheRegime;

/// Something that a schedule's reader must know: the workload is weaker than
/// its flags suggest. Reported, never silent.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Prompts repeat: repeats hit the prefix cache.
    Oversampled {
        /// Planned requests.
        requests: u32,
        /// Different prompts.
        prompts: u32,
    },
    /// The run has no last request, and its prompts come from a list.
    MayRepeat {
        /// Different prompts.
        prompts: u32,
    },
    /// Some users never get a request.
    IdleUsers {
        /// Users, or the cap.
        users: u32,
        /// Planned requests.
        requests: u32,
    },
    /// Some users never get a conversation.
    IdleConversationUsers {
        /// Users, or the cap.
        users: u32,
        /// Planned conversations.
        conversations: u32,
    },
    /// The requests are turns of conversations, and what flags count are those.
    Conversations {
        /// How many, where there is a last one.
        conversations: Option<u32>,
        /// How many turns they have together.
        requests: Option<u32>,
    },
    /// Prompt lengths are counted by rule, not by a tokenizer.
    EstimatedLengths,
    /// Some lengths asked for leave no room for a text.
    Raised {
        /// The length that is sent in place of a shorter one.
        least: Tokens,
    },
    /// A part of a mix, of which too few requests were drawn for it to have any.
    NoRequest,
    /// Of one part of a mix.
    OfPart {
        /// The part's name.
        part: String,
        /// What is true of it.
        note: Box<Self>,
    },
    /// The regime wants nonces, and the prompts are the user's own.
    NonceLeftOut {
        /// The regime asked for.
        regime: CacheRegime,
    },
    /// Regime warm, and prompts that nobody can send before the run.
    NotPrimed,
    /// Some prefixes begin no prompt.
    UnusedPrefixes {
        /// Planned requests.
        requests: u32,
        /// Prefixes asked for.
        groups: u32,
    },
    /// Prefixes of sessions, and each request is a session of its own.
    LoneSessions,
    /// There are too many prefixes for a label each.
    NoPrefixLabels {
        /// Prefixes.
        groups: u32,
    },
}

impl Note {
    /// How often each prompt is used; of a mix, those of the part.
    pub fn oversampled(&self) -> Option<f64> {
        match self {
            Self::Oversampled { requests, prompts } => {
                Some(f64::from(*requests) / f64::from(*prompts))
            }
            Self::OfPart { note, .. } => note.oversampled(),
            _ => None,
        }
    }

    /// The same of one part of a mix.
    pub(crate) fn of_part(self, part: &str) -> Self {
        Self::OfPart { part: part.to_owned(), note: Box::new(self) }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Oversampled { requests, prompts } => write!(
                f,
                "oversampled {:.2}x, repeated prompts hit prefix caches: {requests} requests share \
                 {prompts} different prompts",
                f64::from(*requests) / f64::from(*prompts),
            ),
            Self::MayRepeat { prompts } => write!(
                f,
                "after {prompts} requests the list of prompts starts again: repeats may hit the \
                 prefix cache"
            ),
            Self::IdleUsers { users, requests } => {
                write!(f, "{users} users share {requests} requests: some never send one")
            }
            Self::IdleConversationUsers { users, conversations } => {
                write!(f, "{users} users share {conversations} conversations: some never begin one")
            }
            Self::Conversations { conversations: Some(conversations), requests } => write!(
                f,
                "{conversations} conversations of {} turns together; counts, users and rates are \
                 of conversations",
                requests.unwrap_or_default()
            ),
            Self::Conversations { .. } => {
                f.write_str("requests are turns of conversations; users and rates are of those")
            }
            Self::EstimatedLengths => f.write_str(
                "prompt lengths are counted by words and marks, not by the model's tokenizer: the \
                 server's own count may differ",
            ),
            Self::Raised { least } => write!(
                f,
                "prompts shorter than {} tokens are sent with {}: the server puts {} before a \
                 prompt by itself",
                least.get(),
                least.get(),
                least.get() - 1
            ),
            Self::NoRequest => {
                f.write_str("no request fell to it: the run is too short for its weight")
            }
            Self::OfPart { part, note } => write!(f, "{part}: {note}"),
            Self::NonceLeftOut { regime } => write!(
                f,
                "the prompts are not ours, so they carry no nonce and the cache regime is as-is, \
                 not {}",
                regime.name()
            ),
            Self::NotPrimed => f.write_str(
                "the run has no last request and its prompts share no prefix, so they cannot be \
                 sent beforehand and the cache regime is as-is, not warm; give -n or a prefix",
            ),
            Self::UnusedPrefixes { requests, groups } => write!(
                f,
                "{requests} requests begin with {requests} of the {groups} prefixes, each with \
                 another: nothing is shared"
            ),
            Self::LoneSessions => f.write_str(
                "each request is a session of its own here, so a prefix of each session is shared \
                 by no other request",
            ),
            Self::NoPrefixLabels { groups } => write!(
                f,
                "{groups} prefixes are too many for a label each: there is no table of them"
            ),
        }
    }
}
