//! A conversation under way: which of its turns have ended, and what was said.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use measure::At;
use tokio::sync::Notify;
use workload::Message;

/// What its turns' tasks share. It lives as long as one of them does.
#[derive(Default)]
pub(crate) struct Talk {
    ended: RefCell<BTreeMap<u32, Ended>>,
    any_ended: Notify,
    /// Turns that may still want an answer.
    left: Cell<u32>,
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It ended well: what waits for it may go on.
    Well(At),
    /// It did not: what waits for it is not sent.
    Badly(At),
    /// It was not sent, because one before it ended badly; nor is what waits for
    /// it.
    Never(At),
}

struct Ended {
    end: End,
    answer: Option<Message>,
}

impl Talk {
    /// A conversation of so many turns.
    pub(crate) fn of(turns: u32) -> Self {
        Self { left: Cell::new(turns), ..Self::default() }
    }

    /// Notes the end of a turn, with its answer where a later prompt holds it.
    pub(crate) fn ended(&self, index: u32, end: End, answer: Option<Message>) {
        self.ended.borrow_mut().insert(index, Ended { end, answer });
        self.any_ended.notify_waiters();
    }

    /// Notes that a turn has its prompt, or will never have one. After the last
    /// one nobody wants an answer any more.
    pub(crate) fn has_prompt(&self) {
        self.left.set(self.left.get().saturating_sub(1));
        if self.left.get() == 0 {
            self.ended.borrow_mut().values_mut().for_each(|ended| ended.answer = None);
        }
    }

    /// The end of the last of these turns; a bad one as soon as it is known
    /// that one of them ended badly.
    pub(crate) async fn last_end(&self, turns: &[u32]) -> End {
        loop {
            let known = self.any_ended.notified();
            if let Some(end) = self.end_of(turns) {
                return end;
            }
            known.await;
        }
    }

    fn end_of(&self, turns: &[u32]) -> Option<End> {
        let ended = self.ended.borrow();
        let mut last = Some(At::ZERO);
        for turn in turns {
            match ended.get(turn).map(|ended| ended.end) {
                Some(End::Badly(at) | End::Never(at)) => return Some(End::Badly(at)),
                Some(End::Well(at)) => last = last.map(|last| last.max(at)),
                None => last = None,
            }
        }
        last.map(End::Well)
    }

    /// The end of the last turn that was sent.
    pub(crate) fn over_at(&self) -> Option<At> {
        let ended = self.ended.borrow();
        let sent = ended.values().filter(|ended| !matches!(ended.end, End::Never(_)));
        sent.map(|ended| ended.end.at()).max()
    }

    /// The answer to a turn; nothing where none was kept.
    pub(crate) fn answer(&self, index: u32) -> Vec<Message> {
        let ended = self.ended.borrow();
        ended.get(&index).and_then(|ended| ended.answer.clone()).into_iter().collect()
    }
}

impl End {
    pub(crate) const fn at(self) -> At {
        match self {
            Self::Well(at) | Self::Badly(at) | Self::Never(at) => at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_was_never_sent_does_not_hold_its_user() {
        let talk = Talk::of(3);
        talk.ended(0, End::Well(At::from_us(5)), None);
        talk.ended(1, End::Badly(At::from_us(9)), None);
        // Intended a pause after that, and given up.
        talk.ended(2, End::Never(At::from_us(1_000_009)), None);
        assert_eq!(talk.over_at(), Some(At::from_us(9)));
        assert_eq!(talk.end_of(&[2]), Some(End::Badly(At::from_us(1_000_009))));
    }
}
