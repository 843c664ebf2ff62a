//! What the caveats look at in the requests of a run, collected request by
//! request so that rows need not be kept for them.

use std::collections::BTreeMap;

use super::cache::beyond_template;
use crate::outcome::{FailureKind, Outcome};
use crate::record::{Record, URL, Warnings};
use crate::unit::Span;

/// Counts and sums over the requests of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// Whether cached tokens are left out of prompt counts.
    excludes_cached: bool,
    /// Requests.
    pub(super) n: u64,
    /// Requests that no other tool's file holds.
    pub(super) ours: u64,
    /// How many answers had each warning, in the order of the table.
    warnings: [u64; Warnings::NAMES.len()],
    /// The longest that a cap held a request back, seconds.
    pub(super) longest_wait_s: f64,
    /// Requests that ended at their time limit.
    pub(super) timed_out: u64,
    /// Requests tried at each address, and those that it answered.
    pub(super) urls: BTreeMap<String, (u64, u64)>,
    /// Whether a row of another tool has a TTFT and no latency.
    pub(super) lacks_latency: bool,
    /// Tokens of answers that two counted: the server, and another.
    pub(super) counted_twice: (f64, f64),
    /// Answers whose length was forced and their tokens.
    pub(super) forced: (u64, u64),
    /// Those of them that ended before it, and the first one's index.
    pub(super) short: (u64, Option<u32>),
    /// Idle connections that were found closed.
    pub(super) reconnects: u64,
    /// Requests whose writing took long beside their TTFT, and all with one.
    pub(super) slow_writes: (u64, u64),
    /// Cached prompt tokens beyond any template, and prompt tokens, of answers.
    pub(super) cached_beyond: (u64, u64),
}

/// As for lateness, less than a millisecond is the machine's own noise.
const WRITE_FLOOR: Span = Span::from_ms(1);

impl Evidence {
    pub(crate) fn new(excludes_cached: bool) -> Self {
        Self { excludes_cached, ..Self::default() }
    }

    pub(crate) fn of(records: &[Record], excludes_cached: bool) -> Self {
        let mut evidence = Self::new(excludes_cached);
        records.iter().for_each(|record| evidence.add(record));
        evidence
    }

    /// Takes a request in.
    pub(crate) fn add(&mut self, record: &Record) {
        let (answer, stamps) = (&record.answer, &record.stamps);
        self.n += 1;
        self.ours += u64::from(record.source.is_none());
        if answer.warnings != Warnings::NONE {
            for (count, (warning, _)) in self.warnings.iter_mut().zip(Warnings::NAMES) {
                *count += u64::from(answer.warnings.has(*warning));
            }
        }
        if let Some(released_at) = stamps.released_at {
            let waited_s = (released_at - stamps.intended_at).s();
            self.longest_wait_s = self.longest_wait_s.max(waited_s);
        }
        let timed_out = record.outcome == Outcome::Failed(FailureKind::TotalTimeout);
        self.timed_out += u64::from(timed_out);
        let source = record.source.as_ref();
        self.lacks_latency |=
            source.is_some_and(|source| source.latency_s.is_none() && source.ttft_s.is_some());
        self.reconnects += u64::from(answer.reconnects);
        self.add_url(record);
        self.add_counts(record);
        if let (Some(sent_at), Some(written_at)) = (stamps.sent_at, stamps.written_at)
            && let Some(first) = record.events.iter().find(|event| event.carries.is_arrival())
        {
            let writing = written_at - sent_at;
            let slow = writing > WRITE_FLOOR && writing.us() * 10 > i64::from(first.at_us);
            self.slow_writes.0 += u64::from(slow);
            self.slow_writes.1 += 1;
        }
    }

    fn add_url(&mut self, record: &Record) {
        let tried = !matches!(record.outcome, Outcome::Cancelled | Outcome::NotSent(_));
        let (Some(url), true) = (record.planned.label(URL), tried) else { return };
        if !self.urls.contains_key(url) {
            self.urls.insert(url.to_owned(), (0, 0));
        }
        if let Some((n, answered)) = self.urls.get_mut(url) {
            *n += 1;
            *answered += u64::from(matches!(record.outcome, Outcome::Ok | Outcome::Empty));
        }
    }

    fn add_counts(&mut self, record: &Record) {
        let counts = &record.answer.counts;
        let other = counts.tokenizer.or(counts.logprobs);
        if let (Some(server), Some(other)) = (counts.usage.or(counts.server), other) {
            self.counted_twice.0 += f64::from(server.get());
            self.counted_twice.1 += f64::from(other.get());
        }
        if record.outcome != Outcome::Ok {
            return;
        }
        if let Some((beyond, prompt)) = beyond_template(record, self.excludes_cached) {
            self.cached_beyond.0 += beyond;
            self.cached_beyond.1 += prompt;
        }
        if let (true, Some((served, _))) = (record.planned.output_forced, record.output_tokens()) {
            self.forced.0 += 1;
            self.forced.1 += u64::from(served.get());
            if record.is_short_output() {
                self.short.0 += 1;
                self.short.1 =
                    Some(self.short.1.map_or(record.index, |first| first.min(record.index)));
            }
        }
    }

    /// How many answers had a warning.
    pub(super) fn warned(&self, of: Warnings) -> u64 {
        let known = self.warnings.iter().zip(Warnings::NAMES);
        known.filter(|(_, (warning, _))| *warning == of).map(|(count, _)| *count).sum()
    }

    /// Every warning that an answer had, and how many had it.
    pub(crate) fn warnings(&self) -> Vec<(&'static str, u64)> {
        let named = self.warnings.iter().zip(Warnings::NAMES);
        named.filter(|(count, _)| **count > 0).map(|(count, (_, name))| (*name, *count)).collect()
    }
}
