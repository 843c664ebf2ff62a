//! A client's stamps against the server's truth.

use std::collections::HashMap;
use std::path::Path;

use measure::quantile;
use serde_json::{Value, json};
use wire::truth::{self, Truth};

/// What a client saw of one request.
pub(crate) struct Seen {
    /// `x-request-id`, or its end after the last dash: clients put their own
    /// run's name in front.
    pub(crate) id: String,
    /// Just before the request was written, CLOCK_MONOTONIC.
    pub(crate) sent_ns: i64,
    /// When each token came.
    pub(crate) at_ns: Vec<i64>,
}

/// Errors of a whole run, µs, client − truth.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Errors {
    pub(crate) absolute_us: Vec<f64>,
    /// Of gaps between tokens, without sign.
    pub(crate) gap_us: Vec<f64>,
    /// Of TTFT: sent to seen, against arrived to written.
    pub(crate) ttft_us: Vec<f64>,
    /// The server's own TTFT.
    pub(crate) true_ttft_us: Vec<f64>,
    /// Tokens written and not seen.
    pub(crate) lost: u64,
    /// Requests without a line of truth.
    pub(crate) unmatched: u64,
}

/// The part of an id that client and server agree on: the number at its end.
fn number_of(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

/// Joins by request.
pub(crate) fn join(seen: &[Seen], truths: &[Truth]) -> Errors {
    let by_id: HashMap<&str, &Truth> =
        truths.iter().map(|truth| (number_of(&truth.id), truth)).collect();
    let mut errors = Errors::default();
    for request in seen {
        let Some(truth) = by_id.get(number_of(&request.id)) else {
            errors.unmatched += 1;
            continue;
        };
        errors.lost += truth.token_ns.len().saturating_sub(request.at_ns.len()) as u64;
        let us = |ns: i64| ns as f64 / 1e3;
        let written: Vec<i64> =
            truth.token_ns.iter().map(|offset| truth.arrival_ns as i64 + *offset as i64).collect();
        let (Some(first), Some(first_written)) = (request.at_ns.first(), written.first()) else {
            continue;
        };
        let own = us(*first_written - truth.arrival_ns as i64);
        errors.true_ttft_us.push(own);
        errors.ttft_us.push(us(*first - request.sent_ns) - own);
        let pairs = request.at_ns.iter().zip(&written);
        errors.absolute_us.extend(pairs.map(|(seen, written)| us(*seen - *written)));
        for (seen, written) in request.at_ns.windows(2).zip(written.windows(2)) {
            errors.gap_us.push(us((seen[1] - seen[0]) - (written[1] - written[0])).abs());
        }
    }
    for samples in
        [&mut errors.absolute_us, &mut errors.gap_us, &mut errors.ttft_us, &mut errors.true_ttft_us]
    {
        samples.sort_by(f64::total_cmp);
    }
    errors
}

/// p50, p99, p99.9, max and mean of sorted samples.
pub(crate) fn distribution(sorted: &[f64]) -> Value {
    let at = |q: f64| quantile::linear(sorted, q);
    let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
    json!({
        "n": sorted.len(),
        "mean": mean,
        "p50": at(0.5),
        "p99": at(0.99),
        "p999": at(0.999),
        "max": at(1.0),
    })
}

impl Errors {
    /// As the result file holds it.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "absolute_us": distribution(&self.absolute_us),
            "gap_us": distribution(&self.gap_us),
            "ttft_us": distribution(&self.ttft_us),
            "true_ttft_us": distribution(&self.true_ttft_us),
            "lost": self.lost,
            "unmatched": self.unmatched,
        })
    }
}

/// Reads a truth log.
pub(crate) fn read_truth(path: &Path) -> Result<Vec<Truth>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    truth::decode(&bytes).map(|file| file.truths).map_err(|error| error.to_string())
}

/// What the raw client wrote with `--log`.
pub(crate) fn read_raw_log(path: &Path) -> Result<Vec<Seen>, String> {
    let seen = |line: Truth| Seen {
        sent_ns: line.arrival_ns as i64,
        at_ns: line.token_ns.iter().map(|ns| (line.arrival_ns + ns) as i64).collect(),
        id: line.id,
    };
    Ok(read_truth(path)?.into_iter().map(seen).collect())
}

/// A finished run of goodput, from its directory: what it saw of each request,
/// and how many token events shared a read with the event before.
pub(crate) fn read_run(path: &Path) -> Result<(Vec<Seen>, u64), String> {
    let words = |error: store::StoreError| error.to_string();
    let folder = path.to_string_lossy();
    let run = store::open_run(&folder, Path::new(".")).map_err(words)?;
    let manifest = run.read_json("run.json").map_err(words)?;
    let manifest = wire::run::decode(&manifest).map_err(|error| error.to_string())?;
    let anchor_ns = manifest.anchor_monotonic_ns as i64;
    let mut shared = 0;
    let mut all = Vec::new();
    for record in run.records().map_err(words)?.records {
        let Some(sent_at) = record.stamps.sent_at else { continue };
        let sent_ns = anchor_ns + sent_at.us() * 1_000;
        let arrivals = record.events.iter().filter(|event| event.carries.is_arrival());
        let mut at_ns = Vec::with_capacity(record.events.len());
        for event in arrivals {
            at_ns.push(sent_ns + i64::from(event.at_us) * 1_000);
            shared += u64::from(event.carries.any(measure::Carries::SHARED_READ));
        }
        all.push(Seen { id: record.index.to_string(), sent_ns, at_ns });
    }
    Ok((all, shared))
}

/// The truth's own distance from its plan: p99 of the gaps between the writes
/// of a stream as a multiple of the planned gap, and p99 of how late a token
/// was, in µs.
pub(crate) fn strays(truths: &[Truth], interval_us: u64) -> (f64, f64) {
    let mut gaps: Vec<f64> = Vec::new();
    let mut late: Vec<f64> = Vec::new();
    for truth in truths {
        // Tokens of one write share an instant; between writes lies the gap.
        let mut instants = truth.token_ns.clone();
        instants.dedup();
        gaps.extend(instants.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e3));
        if let Some(planned) = &truth.planned_token_ns {
            let pairs = truth.token_ns.iter().zip(planned);
            late.extend(pairs.map(|(was, meant)| was.saturating_sub(*meant) as f64 / 1e3));
        }
    }
    gaps.sort_by(f64::total_cmp);
    late.sort_by(f64::total_cmp);
    let gap = quantile::linear(&gaps, 0.99).unwrap_or(0.0) / interval_us.max(1) as f64;
    (gap, quantile::linear(&late, 0.99).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(id: &str, token_ns: &[u64]) -> Truth {
        Truth {
            id: id.to_owned(),
            arrival_ns: 1_000_000,
            token_ns: token_ns.to_vec(),
            planned_token_ns: Some(token_ns.iter().map(|ns| ns.saturating_sub(2_000)).collect()),
            ..Truth::default()
        }
    }

    #[test]
    fn errors_are_joined_by_the_number_in_the_id() {
        let truths = [truth("run-0", &[10_000, 30_000]), truth("run-1", &[10_000])];
        let seen = [
            Seen { id: "0".into(), sent_ns: 990_000, at_ns: vec![1_013_000, 1_032_000] },
            Seen { id: "1".into(), sent_ns: 999_000, at_ns: vec![] },
            Seen { id: "7".into(), sent_ns: 0, at_ns: vec![5] },
        ];
        let errors = join(&seen, &truths);
        assert_eq!(errors.absolute_us, [2.0, 3.0]);
        assert_eq!(errors.gap_us, [1.0]);
        // Sent to seen took 23 µs, arrived to written 10 µs.
        assert_eq!(errors.ttft_us, [13.0]);
        assert_eq!(errors.true_ttft_us, [10.0]);
        assert_eq!((errors.lost, errors.unmatched), (1, 1));
    }

    #[test]
    fn the_truth_is_held_to_its_plan() {
        let (gap, late) = strays(&[truth("a-0", &[10_000, 10_000, 30_000, 50_000])], 20);
        assert!((gap - 1.0).abs() < 1e-9 && (late - 2.0).abs() < 1e-9, "{gap} {late}");
        assert_eq!(strays(&[], 20), (0.0, 0.0));
    }
}
