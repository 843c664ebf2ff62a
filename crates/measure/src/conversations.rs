//! Conversations as wholes: how many were held to their end, and how long that
//! took. A user does not judge turns by themselves.

use std::collections::BTreeMap;

use crate::outcome::Outcome;
use crate::record::Record;
use crate::statistics::Distribution;
use crate::undefined::Undefined;

/// Figures of a run whose requests are turns of conversations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversations {
    /// Conversations of which a turn was sent.
    pub begun: u64,
    /// All turns ended ok.
    pub completed: u64,
    /// A turn did not end well, and those that wait for it were not sent.
    pub broken: u64,
    /// Stopped by us before anything went wrong.
    pub stopped: u64,
    /// Turns planned in those that were begun.
    pub turns: u64,
    /// Of these, the ones that ended ok.
    pub turns_ok: u64,
    /// From when the first turn was intended to the end of the last, pauses
    /// included, in ms; of completed conversations.
    pub duration: Distribution,
}

/// The conversations of a run; `None` where no request follows another.
pub fn conversations(records: &[Record], percentiles: &[f64]) -> Option<Conversations> {
    if records.iter().all(Record::arrives) {
        return None;
    }
    let mut sessions: BTreeMap<u32, Vec<&Record>> = BTreeMap::new();
    for record in records {
        sessions.entry(record.planned.session).or_default().push(record);
    }
    let mut found = Conversations::default();
    let mut durations = Vec::new();
    for turns in sessions.values() {
        if turns.iter().all(|turn| turn.stamps.released_at.is_none()) {
            continue;
        }
        let ok = turns.iter().filter(|turn| turn.outcome == Outcome::Ok).count();
        found.begun += 1;
        found.turns += turns.len() as u64;
        found.turns_ok += ok as u64;
        if ok == turns.len() {
            found.completed += 1;
            durations.extend(duration_ms(turns));
        } else if turns.iter().all(|turn| matches!(turn.outcome, Outcome::Ok | Outcome::Cancelled))
        {
            found.stopped += 1;
        } else {
            found.broken += 1;
        }
    }
    let unended = found.begun - found.completed;
    let undefined = if unended > 0 { vec![(Undefined::NotOk, unended)] } else { Vec::new() };
    found.duration = Distribution::of(durations, undefined, percentiles);
    Some(found)
}

fn duration_ms(turns: &[&Record]) -> Option<f64> {
    let from = turns.iter().map(|turn| turn.stamps.intended_at).min()?;
    let until = turns.iter().filter_map(|turn| turn.stamps.ended_at).max()?;
    Some((until - from).ms())
}
