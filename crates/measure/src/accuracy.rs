//! The client against a server with a known clock: how far its figures stray
//! from what the server wrote down.

use crate::record::Record;
use crate::statistics::Distribution;

/// What the server wrote down of one request, on the clock that the client
/// used too.
#[derive(Clone, Copy, Debug)]
pub struct Truth<'a> {
    /// Index of the request.
    pub index: u32,
    /// When the request was whole at the server, in ns.
    pub arrival_ns: u64,
    /// When each chunk was written, in ns since then.
    pub token_ns: &'a [u64],
}

/// Errors in microseconds, client − truth.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// TTFT from send, against the server's from arrival: the way there is in it.
    pub ttft_us: Distribution,
    /// Gaps between arrivals, absolute value of the error.
    pub gap_us: Distribution,
    /// Instants of arrival: how long after the write the client saw it.
    pub absolute_us: Distribution,
    /// Requests that were joined.
    pub joined: u64,
    /// Requests without a line of truth, or with another number of chunks.
    pub unmatched: u64,
}

/// Joins records with truth. `anchor_ns` is the run's clock anchor.
pub fn accuracy(records: &[Record], truths: &[Truth<'_>], anchor_ns: i64) -> Accuracy {
    let mut by_index: Vec<&Truth<'_>> = truths.iter().collect();
    by_index.sort_by_key(|truth| truth.index);
    let (mut ttft, mut gaps, mut absolute) = (Vec::new(), Vec::new(), Vec::new());
    let (mut joined, mut unmatched) = (0, 0);
    for record in records {
        let Some(sent_at) = record.stamps.sent_at else { continue };
        let found = by_index.binary_search_by_key(&record.index, |truth| truth.index);
        let seen: Vec<u32> = record
            .events
            .iter()
            .filter(|event| event.carries.is_arrival())
            .map(|event| event.at_us)
            .collect();
        let truth = match found {
            Ok(position) if by_index[position].token_ns.len() == seen.len() && !seen.is_empty() => {
                by_index[position]
            }
            _ => {
                unmatched += 1;
                continue;
            }
        };
        joined += 1;
        let sent_ns = anchor_ns + sent_at.us() * 1_000;
        let true_us =
            |token_ns: u64| (truth.arrival_ns as i64 - sent_ns + token_ns as i64) as f64 / 1e3;
        ttft.push(f64::from(seen[0]) - truth.token_ns[0] as f64 / 1e3);
        for (seen, token_ns) in seen.iter().zip(truth.token_ns) {
            absolute.push(f64::from(*seen) - true_us(*token_ns));
        }
        for (seen, tokens) in seen.windows(2).zip(truth.token_ns.windows(2)) {
            let gap = f64::from(seen[1] - seen[0]);
            gaps.push((gap - (tokens[1] - tokens[0]) as f64 / 1e3).abs());
        }
    }
    let of = |samples| Distribution::of(samples, Vec::new(), &[]);
    Accuracy { ttft_us: of(ttft), gap_us: of(gaps), absolute_us: of(absolute), joined, unmatched }
}
