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
    /// It did not, or was never sent: what waits for it is not sent.
    Badly(At),
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
                Some(End::Badly(at)) => return Some(End::Badly(at)),
                Some(End::Well(at)) => last = last.map(|last| last.max(at)),
                None => last = None,
            }
        }
        last.map(End::Well)
    }

    /// The end of the last turn that ended.
    pub(crate) fn over_at(&self) -> Option<At> {
        let ended = self.ended.borrow();
        ended.values().map(|ended| ended.end.at()).max()
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
            Self::Well(at) | Self::Badly(at) => at,
        }
    }
}
