//! Conversations: requests of which the later ones wait for the earlier ones
//! and carry them, with their answers, in their prompts.

use std::fmt;
use std::str::FromStr;

use measure::Span;

use crate::digest::Digest;
use crate::length::Lengths;
use crate::load::LoadError;
use crate::prompt::Message;
use crate::stream::Stream;
use crate::think::Think;

/// The most turns of one conversation that goes on turn by turn: the longest
/// chain that a schedule may hold.
pub const MAX_TURNS: u16 = crate::schedule::MAX_DEPTH as u16;

/// The most requests of one conversation, where turns wait for several others.
pub const MAX_NODES: usize = 4096;

/// The most turns that may wait for one turn, and the most that one turn may
/// wait for.
pub const MAX_FAN_OUT: usize = 64;

/// The longest pause before a turn: a day.
pub const MAX_THINK: Span = Span::from_ms(86_400_000);

/// Conversations of different lengths of which an endless plan holds the
/// numbers of turns; then these numbers come again, not the texts.
pub(crate) const ENDLESS_CYCLE: u32 = 1 << 16;

/// What makes the requests of a run turns of conversations.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversations {
    /// Which turns there are.
    pub script: Script,
    /// The pause before each turn but the first, where the script has none.
    pub think: Think,
    /// Which answers later prompts carry.
    pub history: History,
}

/// Where turns come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Script {
    /// Turns that are written as prompts are.
    Written(Turns),
    /// Turns whose prompts are in the list of prompts, one conversation after
    /// the other; at least one conversation.
    Listed(Vec<Conversation>),
}

/// Turns that are written.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns {
    /// How many in each conversation.
    pub count: TurnCount,
    /// Length of what the user says in each turn but the first; `None` takes
    /// the length of first turns.
    pub input: Option<Lengths>,
}

/// A number of turns, each from one to the other equally likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnCount {
    from: u16,
    to: u16,
}

/// Why a number of turns is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no number of turns; write one from 1 to {MAX_TURNS}, or a range such as 2-6")]
pub struct TurnCountError(String);

/// Which answers stand in the prompts of later turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum History {
    /// Those that the server gave in this run.
    #[default]
    Real,
    /// Those of the file, whatever the server said: the same prompts in every
    /// run.
    Scripted,
}

/// One conversation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// The place of its first turn's prompt in the list; the others follow.
    pub first: u32,
    /// Its turns, each after those that it waits for; at least one.
    turns: Vec<Turn>,
    /// Of each turn, how many stand before it in its longest chain.
    depths: Vec<u16>,
    /// Of each turn, whether another waits for it.
    awaited: Vec<bool>,
}

/// One turn of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Places in the conversation of the turns that it waits for. Its prompt
    /// goes on from the first of them; answers of the others come after that.
    pub parents: Vec<u16>,
    /// The pause before it; `None` where the script does not say.
    pub think: Option<Span>,
    /// True when its prompt is its own messages alone, whatever it waits for.
    pub fresh: bool,
    /// The scripted answer to it.
    pub answer: Vec<Message>,
}

impl Conversation {
    /// A conversation of these turns, each after those that it waits for, the
    /// first turn's prompt at this place of the list.
    ///
    /// # Panics
    /// When a turn waits for one that does not stand before it.
    pub fn new(first: u32, turns: Vec<Turn>) -> Self {
        let mut depths: Vec<u16> = Vec::with_capacity(turns.len());
        let mut awaited = vec![false; turns.len()];
        for turn in &turns {
            let parents = turn.parents.iter().map(|parent| usize::from(*parent));
            let below = parents.clone().map(|parent| depths[parent] + 1).max();
            depths.push(below.unwrap_or(0));
            parents.for_each(|parent| awaited[parent] = true);
        }
        Self { first, turns, depths, awaited }
    }

    /// Its turns, each after those that it waits for.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }
}

impl TurnCount {
    /// Always `n` turns.
    pub fn fixed(n: u16) -> Result<Self, TurnCountError> {
        Self::range(n, n)
    }

    /// From one number to another.
    pub fn range(from: u16, to: u16) -> Result<Self, TurnCountError> {
        let is_range = 1 <= from && from <= to && to <= MAX_TURNS;
        is_range.then_some(Self { from, to }).ok_or_else(|| TurnCountError(format!("{from}-{to}")))
    }

    /// The number of turns of conversation `session`.
    pub(crate) fn draw(self, seed: u64, session: u32) -> u32 {
        let width = u64::from(self.to - self.from) + 1;
        if width == 1 {
            return u32::from(self.from);
        }
        let mut stream = Stream::numbered(seed, "turns", u64::from(session));
        u32::from(self.from) + stream.below(width) as u32
    }

    pub(crate) const fn is_fixed(self) -> bool {
        self.from == self.to
    }
}

impl fmt::Display for TurnCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_fixed() {
            write!(f, "{}", self.from)
        } else {
            write!(f, "{} to {}", self.from, self.to)
        }
    }
}

impl FromStr for TurnCount {
    type Err = TurnCountError;

    /// Reads `4` and `2-6`.
    fn from_str(text: &str) -> Result<Self, TurnCountError> {
        let (from, to) = text.split_once('-').unwrap_or((text, text));
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let range = number(from).zip(number(to));
        range
            .and_then(|(from, to)| Self::range(from, to).ok())
            .ok_or_else(|| TurnCountError(text.to_owned()))
    }
}

impl History {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Scripted => "scripted",
        }
    }
}

impl Conversations {
    /// Checks what a loader or a flag may get wrong.
    pub(crate) fn check(&self) -> Result<(), LoadError> {
        self.think.check()
    }

    /// The parents of a turn of a conversation.
    pub(crate) fn parents(&self, conversation: u32, place: u16) -> Vec<u16> {
        match &self.script {
            Script::Written(_) => place.checked_sub(1).into_iter().collect(),
            Script::Listed(all) => {
                all[conversation as usize].turns[usize::from(place)].parents.clone()
            }
        }
    }

    /// True when another turn of the conversation waits for this one.
    pub(crate) fn is_awaited(&self, conversation: u32, place: u16, turns: u32) -> bool {
        match &self.script {
            Script::Written(_) => u32::from(place) + 1 < turns,
            Script::Listed(all) => all[conversation as usize].awaited[usize::from(place)],
        }
    }

    /// The turns before this one whose messages and answers its prompt holds,
    /// the first one first, and itself last.
    pub(crate) fn chain(&self, conversation: u32, place: u16) -> Vec<u16> {
        let Script::Listed(all) = &self.script else { return (0..=place).collect() };
        let turns = &all[conversation as usize].turns;
        let mut chain = vec![place];
        let mut at = &turns[usize::from(place)];
        while let (false, Some(&parent)) = (at.fresh, at.parents.first()) {
            chain.push(parent);
            at = &turns[usize::from(parent)];
        }
        chain.reverse();
        chain
    }

    /// The longest chain of turns that end in this one, itself left out.
    pub(crate) fn depth(&self, conversation: u32, place: u16) -> u16 {
        match &self.script {
            Script::Written(_) => place,
            Script::Listed(all) => all[conversation as usize].depths[usize::from(place)],
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text("conversations").text(self.history.name());
        self.think.digest(digest);
        match &self.script {
            Script::Written(turns) => {
                digest.number(u64::from(turns.count.from)).number(u64::from(turns.count.to));
                if let Some(input) = &turns.input {
                    input.digest(digest);
                }
            }
            Script::Listed(all) => {
                digest.number(all.len() as u64);
                let turns = all.iter().flat_map(|conversation| &conversation.turns);
                for turn in turns {
                    digest.raw(&[u8::from(turn.fresh)]);
                    for message in turn.answer.iter().filter(|_| self.history == History::Scripted)
                    {
                        message.digest(digest);
                    }
                }
            }
        }
    }
}

/// The requests of each conversation, one conversation after the other: where
/// each begins. After the last one here the numbers of turns come again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Starts(Vec<u32>);

/// More requests than indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Starts {
    /// From the number of turns of each conversation.
    pub(crate) fn of(turns: impl Iterator<Item = u32>) -> Result<Self, TooMany> {
        let mut starts = vec![0u32];
        let mut end = 0u32;
        for turns in turns {
            end = end.checked_add(turns.max(1)).ok_or(TooMany)?;
            starts.push(end);
        }
        Ok(Self(starts))
    }

    /// Conversations before numbers of turns come again.
    pub(crate) fn cycle(&self) -> u32 {
        self.0.len() as u32 - 1
    }

    /// Requests of one such round.
    pub(crate) fn round(&self) -> u32 {
        self.0[self.0.len() - 1]
    }

    /// The first request of a conversation, and how many it has; `None` beyond
    /// what can be numbered.
    pub(crate) fn of_session(&self, session: u32) -> Option<(u32, u32)> {
        let (rounds, place) = (session / self.cycle(), session % self.cycle());
        let (from, until) = (self.0[place as usize], self.0[place as usize + 1]);
        let first = rounds.checked_mul(self.round())?.checked_add(from)?;
        first.checked_add(until - from)?;
        Some((first, until - from))
    }

    /// The requests of so many conversations.
    pub(crate) fn requests(&self, sessions: u32) -> Result<u32, TooMany> {
        match sessions.checked_sub(1) {
            None => Ok(0),
            Some(last) => self.of_session(last).map(|(first, turns)| first + turns).ok_or(TooMany),
        }
    }

    /// The conversation of a request, and the request's place in it.
    pub(crate) fn locate(&self, index: u32) -> (u32, u16) {
        let (rounds, within) = (index / self.round(), index % self.round());
        let place = self.0.partition_point(|start| *start <= within) as u32 - 1;
        let session = rounds * self.cycle() + place;
        (session, (within - self.0[place as usize]) as u16)
    }
}

#[cfg(test)]
mod tests;
