//! Peaks as vLLM's bench prints them, for its preset only: both are counts in
//! one-second buckets, and neither is what its name says.

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
                Some(source) => source.start_s?,
                None => start_of(request.record, request.start())?.us() as f64 / 1e6,
            };
            Some((start_s, request.ttft().ok()? / 1e3, request.gaps().ok()?))
        })
        .collect();
    let origin = rows.iter().map(|(start, ..)| *start).reduce(f64::min)?;
    let mut events: Vec<f64> = Vec::new();
    let mut touched: Vec<u64> = Vec::new();
    for (start, ttft, gaps) in &rows {
        let mut at = start + ttft;
        let mut bump = |at: f64| {
            let bucket = (at - origin).max(0.0) as usize;
            if events.len() <= bucket {
                events.resize(bucket + 1, 0.0);
            }
            events[bucket] += 1.0;
        };
        bump(at);
        for gap in gaps {
            at += gap / 1e3;
            bump(at);
        }
        let (first, last) = ((start - origin) as usize, (at - origin).max(0.0) as usize);
        if touched.len() <= last {
            touched.resize(last + 1, 0);
        }
        touched[first..=last].iter_mut().for_each(|count| *count += 1);
    }
    Some(Peaks {
        max_output_tokens_per_s: events.into_iter().fold(0.0, f64::max),
        max_concurrent_requests: touched.into_iter().max().unwrap_or(0),
    })
}
