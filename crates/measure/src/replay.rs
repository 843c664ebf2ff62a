//! How well a trace was replayed: what the trace asked for, beside what was
//! sent and served.

use std::collections::BTreeSet;

use crate::facts::{ReplayFacts, RunFacts};
use crate::outcome::Outcome;
use crate::quantile;
use crate::record::Record;
use crate::unit::{At, Tokens};

/// The fidelity of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Fidelity {
    /// What was replayed.
    pub of: ReplayFacts,
    /// Arrivals planned.
    pub planned: u64,
    /// Of these, sent.
    pub sent: u64,
    /// Planned and never sent: the run was stopped, or the client could not.
    pub missed: u64,
    /// Sends of a row that had been sent before.
    pub duplicated: u64,
    /// Send − instant of the trace in ms, of what was sent: P50, P99, largest.
    pub lag_ms: Option<[f64; 3]>,
    /// From the first instant to the last in seconds: as planned, and as sent.
    pub span_s: Option<(f64, f64)>,
    /// Lengths of prompts.
    pub input: Kept,
    /// Lengths of answers.
    pub output: Kept,
}

/// Lengths asked for beside those served, over requests that ended well and
/// have both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// Requests with both.
    pub n: u64,
    /// Of these, the ones with the length asked for, to the token.
    pub exact: u64,
    /// Tokens asked for.
    pub requested: u64,
    /// Tokens as the server counted them, or else we did.
    pub served: u64,
}

impl Kept {
    /// Served ÷ requested.
    pub fn share(&self) -> Option<f64> {
        (self.requested > 0).then(|| self.served as f64 / self.requested as f64)
    }

    fn add(&mut self, requested: Option<Tokens>, served: Option<Tokens>) {
        let (Some(requested), Some(served)) = (requested, served) else { return };
        self.n += 1;
        self.exact += u64::from(requested == served);
        self.requested += u64::from(requested.get());
        self.served += u64::from(served.get());
    }
}

/// The fidelity of this run; `None` where it replayed nothing.
pub fn fidelity(records: &[Record], facts: &RunFacts) -> Option<Fidelity> {
    let of = facts.load.replay?;
    let mut lags_us: Vec<f64> = Vec::new();
    let (mut input, mut output) = (Kept::default(), Kept::default());
    let (mut rows, mut sent) = (BTreeSet::new(), 0);
    for record in records {
        let Some(sent_at) = record.stamps.sent_at else { continue };
        sent += 1;
        // Arrival k carries row k, and after the last row the first again.
        rows.insert(u64::from(record.index) % of.rows.max(1));
        lags_us.push((sent_at - record.stamps.intended_at).us() as f64);
        if record.outcome == Outcome::Ok {
            input.add(record.planned.input_tokens, record.answer.counts.prompt);
            let served = record.output_tokens().map(|(tokens, _)| tokens);
            output.add(record.planned.max_output_tokens, served);
        }
    }
    lags_us.sort_by(f64::total_cmp);
    let lag_ms = |share| quantile::linear(&lags_us, share).map(|us| us / 1e3);
    let planned = facts.instrument.planned_requests.unwrap_or(records.len() as u64);
    let length = |instants: Vec<At>| {
        let (first, last) = (instants.iter().min()?, instants.iter().max()?);
        Some((*last - *first).s())
    };
    let intended = records.iter().map(|record| record.stamps.intended_at).collect();
    let as_sent = records.iter().filter_map(|record| record.stamps.sent_at).collect();
    Some(Fidelity {
        of,
        planned,
        sent,
        missed: planned.saturating_sub(sent),
        duplicated: sent - rows.len() as u64,
        lag_ms: lag_ms(0.5).zip(lag_ms(0.99)).zip(lag_ms(1.0)).map(|((a, b), c)| [a, b, c]),
        span_s: length(intended).zip(length(as_sent)),
        input,
        output,
    })
}
