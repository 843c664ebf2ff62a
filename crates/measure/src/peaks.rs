//! Peaks as vLLM's bench prints them, for its preset only: both are counts in
//! one-second buckets, and neither is what its name says.

use std::collections::BTreeMap;

use crate::request::{Timed, start_of};

/// The two peaks of `vllm bench serve`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    /// Most events with a choice in one second. Events, not tokens.
    pub max_output_tokens_per_s: f64,
    /// Most successes that touched one second. Not concurrency: a hundred
    /// requests one after the other within a second count as a hundred.
    pub max_concurrent_requests: u64,
}

/// Computes the peaks over successes, in buckets from the earliest start.
/// Source: vLLM 0.27.1 `benchmarks/serve.py`, `calculate_metrics`.
pub fn peaks(timed: &[Timed<'_>]) -> Option<Peaks> {
    let rows: Vec<(f64, f64, Vec<f64>)> = timed
        .iter()
        .filter(|request| request.success)
        .filter_map(|request| {
            let start_s = match &request.record.source {
                Some(source) => source.start_s.filter(|start| start.is_finite())?,
                None => start_of(request.record, request.start())?.us() as f64 / 1e6,
            };
            Some((start_s, request.ttft().ok()? / 1e3, request.gaps().ok()?))
        })
        .collect();
    let origin = rows.iter().map(|(start, ..)| *start).reduce(f64::min)?;
    // Sparse, because the starts of an imported file may lie years apart.
    let mut events: BTreeMap<u64, f64> = BTreeMap::new();
    let mut changes: BTreeMap<u64, i64> = BTreeMap::new();
    for (start, ttft, gaps) in &rows {
        let mut at = start + ttft;
        let mut bump = |at: f64| {
            *events.entry((at - origin).max(0.0) as u64).or_default() += 1.0;
        };
        bump(at);
        for gap in gaps {
            at += gap / 1e3;
            bump(at);
        }
        let (first, last) = ((start - origin) as u64, (at - origin).max(0.0) as u64);
        *changes.entry(first).or_default() += 1;
        *changes.entry(last.max(first).saturating_add(1)).or_default() -= 1;
    }
    let (mut now, mut most) = (0, 0);
    for change in changes.into_values() {
        now += change;
        most = most.max(now);
    }
    Some(Peaks {
        max_output_tokens_per_s: events.into_values().fold(0.0, f64::max),
        max_concurrent_requests: most as u64,
    })
}
