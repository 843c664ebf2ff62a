//! The time line of an answer while it grows.
//!
//! A thousand answers grow at once, so what an event leaves behind is memory
//! that is touched for it alone. Events of one read share their stamp, and most
//! carry what the one before carried: both are noted once.

use measure::{Carries, Event, Events};

use crate::dialect::Heard;

/// Rows as they come; see [`Self::columns`].
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Timeline {
    reads: Vec<Read>,
    /// Where what is heard changes.
    changes: Vec<(u32, Heard)>,
    /// The last reads, kept beside the rest of the answer's state: `reads` is
    /// seldom touched, because it is likely far away.
    recent: [Read; RECENT],
    recent_len: u8,
    last: Heard,
    len: u32,
}

/// Reads that are kept back.
const RECENT: usize = 24;

/// The rows of one read.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    at_us: u32,
    rows: u32,
}

impl Timeline {
    /// Room for so many rows that come alone.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self {
            reads: Vec::with_capacity(rows),
            recent: [Read::default(); RECENT],
            recent_len: 0,
            changes: Vec::new(),
            last: Heard::default(),
            len: 0,
        }
    }

    /// Rows so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// What the last row heard; nothing before the first.
    #[inline]
    pub(crate) fn last(&self) -> Heard {
        self.last
    }

    /// Appends a row; `shared` when it is of the same read as the one before.
    #[inline]
    pub(crate) fn push(&mut self, heard: Heard, at_us: u32, shared: bool) {
        if heard != self.last || self.len == 0 {
            self.changes.push((self.len, heard));
            self.last = heard;
        }
        self.len += 1;
        let recent = usize::from(self.recent_len);
        if shared && recent > 0 {
            self.recent[recent - 1].rows += 1;
            return;
        }
        self.recent[recent % RECENT] = Read { at_us, rows: 1 };
        self.recent_len += 1;
        if recent + 1 == RECENT {
            // One stays, for the rows that it may still get.
            self.reads.extend_from_slice(&self.recent[..RECENT - 1]);
            self.recent[0] = self.recent[RECENT - 1];
            self.recent_len = 1;
        }
    }

    /// The rows as columns, with no room to spare. Rows behind the first of
    /// their read are marked.
    pub(crate) fn columns(&self) -> Events {
        let mut events = Events::with_capacity(self.len());
        let mut changes = self.changes.iter().peekable();
        let mut heard = self.last;
        let recent = &self.recent[..usize::from(self.recent_len)];
        for read in self.reads.iter().chain(recent) {
            for row in 0..read.rows {
                let place = events.len() as u32;
                while let Some((_, next)) = changes.next_if(|(from, _)| *from <= place) {
                    heard = *next;
                }
                let shared = if row > 0 { Carries::SHARED_READ } else { Carries::default() };
                let Heard { carries, tokens, choice } = heard;
                let carries = carries.with(shared);
                events.push(Event { at_us: read.at_us, carries, tokens, choice });
            }
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_columns_are_the_rows_that_came(
            rows in prop::collection::vec((0u16..3, 0u16..2, any::<bool>()), 0..200),
        ) {
            let mut timeline = Timeline::with_capacity(0);
            let (mut want, mut at_us) = (Vec::new(), 0);
            for (place, (bits, tokens, shared)) in rows.into_iter().enumerate() {
                let shared = shared && place > 0;
                at_us += u32::from(!shared);
                let carries = Carries::from_bits(bits);
                timeline.push(Heard { carries, tokens, choice: 0 }, at_us, shared);
                let mark = if shared { Carries::SHARED_READ } else { Carries::default() };
                want.push(Event { at_us, carries: carries.with(mark), tokens, choice: 0 });
            }
            prop_assert_eq!(timeline.len(), want.len());
            prop_assert_eq!(timeline.columns().iter().collect::<Vec<_>>(), want);
        }
    }
}
