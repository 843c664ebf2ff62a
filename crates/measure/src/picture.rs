//! A run as pictures show it: time series, shapes of distributions, clouds of
//! points and the time lines of single requests. Everything is small, whatever
//! the size of the run; where points are left out, the extremes stay.

use crate::facts::{LoadFacts, LoadKind};
use crate::metric::{How, find};
use crate::outcome::Outcome;
use crate::quantile;
use crate::record::Record;
use crate::request::{Timed, start_of};
use crate::summary::Summary;
use crate::unit::{At, Span};
use crate::validity::lateness;
use crate::window;

/// Latencies that are drawn, by metric key.
pub const SHAPES: &[&str] = &["ttft_ms", "tpot_ms", "icl_ms", "e2el_ms"];

/// Bins of counts and of percentiles over time: at most and at least so many,
/// and between them so many requests a bin. Percentiles need more of them.
const COUNTS: Fineness = Fineness { most: 160, least: 12, requests: 5 };
const PERCENTILES: Fineness = Fineness { most: 48, least: 6, requests: 25 };

/// How fine a grid over time is.
#[derive(Clone, Copy)]
struct Fineness {
    most: usize,
    least: usize,
    requests: usize,
}

/// Lengths of a bin, in milliseconds.
const STEPS_MS: &[i64] = &[
    10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000,
    300_000, 600_000, 1_800_000, 3_600_000,
];

/// Points of a cloud, at most.
const POINTS: usize = 3_000;

/// Requests whose time line is kept: the slowest, and others spread evenly
/// over the schedule.
const SLOWEST: usize = 20;
const SPREAD: usize = 20;

/// Tokens of one time line, at most.
const TOKENS: usize = 1_000;

/// Requests that a person can load and change, at most.
const REQUESTS: usize = 2_000;

/// Points of a cumulative curve below its tail, and in each decade of it.
const CURVE: u32 = 200;
const TAIL: u32 = 20;

/// What is drawn of a run. Columns of one group have one length; NaN stands
/// where there is no value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// The series over time.
    pub series: Series,
    /// Shapes of the distributions of [`SHAPES`], successes.
    pub shapes: Vec<Shape>,
    /// Percentiles over time of the same.
    pub over_time: OverTime,
    /// TTFT in ms against prompt tokens.
    pub ttft_by_input: Cloud,
    /// How late the client sent in ms, as validity judges it, against seconds.
    pub lateness: Cloud,
    /// How long a cap held requests back in ms, against seconds.
    pub cap_wait: Cloud,
    /// Time lines of single requests.
    pub lanes: Vec<Lane>,
    /// Requests as three numbers each.
    pub requests: Requests,
}

/// Counts and rates in equal bins of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Where the first bin begins, on the run's clock.
    pub from: At,
    /// Length of a bin.
    pub step: Span,
    /// Requests intended in each bin.
    pub offered: Vec<u32>,
    /// Requests sent.
    pub sent: Vec<u32>,
    /// Requests that ended ok.
    pub completed: Vec<u32>,
    /// Requests that ended otherwise.
    pub failed: Vec<u32>,
    /// Requests in flight, mean over the bin.
    pub in_flight: Vec<f32>,
    /// Output tokens that arrived.
    pub output_tokens: Vec<f32>,
}

/// A distribution as a histogram on a log axis and as a cumulative curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shape {
    /// Metric key.
    pub key: &'static str,
    /// Samples.
    pub n: u64,
    /// Lower edges of the bins; neighbours differ by the same factor.
    pub edges: Vec<f32>,
    /// Samples in each.
    pub counts: Vec<u32>,
    /// Shares of the curve, ascending to 1.
    pub shares: Vec<f32>,
    /// The value that this share does not exceed.
    pub values: Vec<f32>,
}

/// Percentiles in equal bins of time, wider than those of [`Series`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// Where the first bin begins, on the run's clock.
    pub from: At,
    /// Length of a bin.
    pub step: Span,
    /// Requests in flight, mean over the bin.
    pub in_flight: Vec<f32>,
    /// The percentiles of each of [`SHAPES`].
    pub of: Vec<Percentiles>,
}

/// Percentiles of one metric: of a request by when it was intended, of a gap
/// by when it ended. One is given where at least one sample lies beyond it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Metric key.
    pub key: &'static str,
    /// Medians.
    pub p50: Vec<f32>,
    /// 90th percentiles.
    pub p90: Vec<f32>,
    /// 99th percentiles.
    pub p99: Vec<f32>,
}

/// Points in a plane, thinned where they are many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cloud {
    /// Horizontal values, ascending.
    pub x: Vec<f32>,
    /// Vertical values.
    pub y: Vec<f32>,
    /// Points before thinning.
    pub of: u64,
}

/// The time line of one request, on the run's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Position in the schedule.
    pub index: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When it was to be sent, in ms.
    pub intended_ms: f64,
    /// When it was.
    pub sent_ms: Option<f64>,
    /// When it was over.
    pub end_ms: Option<f64>,
    /// When its tokens arrived, thinned where they are many.
    pub tokens_ms: Vec<f32>,
    /// Arrivals before thinning.
    pub tokens_of: u64,
    /// One of the slowest, not of the spread.
    pub slowest: bool,
}

/// Requests as three numbers each, thinned where they are many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Requests {
    /// TTFT, ms.
    pub ttft_ms: Vec<f32>,
    /// End-to-end latency, ms.
    pub e2el_ms: Vec<f32>,
    /// Output tokens.
    pub tokens: Vec<u32>,
    /// Requests before thinning.
    pub of: u64,
}

/// Draws a run under the definition of its summary.
pub fn picture(records: &[Record], summary: &Summary) -> Picture {
    let mut timed: Vec<Timed<'_>> = records
        .iter()
        .map(|record| Timed::new(record, &summary.definition, summary.facts.settings))
        .collect();
    timed.sort_by_key(|request| request.record.index);
    let fine = Grid::over(records, COUNTS);
    let wide = Grid::over(records, PERCENTILES);
    let (output_tokens, gaps) = arrivals(&timed, &fine, &wide);
    Picture {
        over_time: over_time(&timed, records, &wide, gaps),
        series: series(records, &fine, output_tokens),
        shapes: SHAPES.iter().map(|key| shape(key, &samples(key, &timed))).collect(),
        ttft_by_input: ttft_by_input(&timed),
        lateness: waits(records, |record| lateness(record, &summary.facts.load)),
        cap_wait: waits(records, |record| cap_wait(record, &summary.facts.load)),
        lanes: lanes(&timed),
        requests: requests(&timed),
    }
}

/// Bins of a run that is longer than the longest step allows for.
const MOST_BINS: i64 = 2_000;

/// Equal bins over the run.
struct Grid {
    from: At,
    step: Span,
    bins: usize,
}

impl Grid {
    fn over(records: &[Record], fineness: Fineness) -> Self {
        let Some(window) = window::makespan(records) else {
            return Self { from: At::ZERO, step: Span::from_ms(1_000), bins: 0 };
        };
        let length_us = window.length().us().max(1);
        let last = STEPS_MS[STEPS_MS.len() - 1];
        let wanted = (records.len() / fineness.requests).clamp(fineness.least, fineness.most);
        let step_ms = STEPS_MS.iter().copied().find(|ms| length_us <= ms * 1_000 * wanted as i64);
        let step = Span::from_ms(step_ms.unwrap_or(last));
        // The last event belongs to a bin of its own where it lies on an edge.
        let bins = (length_us / step.us() + 1).min(MOST_BINS) as usize;
        Self { from: window.from, step, bins }
    }

    fn bin(&self, at: At) -> Option<usize> {
        let since = (at - self.from).us();
        let bin = usize::try_from(since.div_euclid(self.step.us())).ok()?;
        (bin < self.bins).then_some(bin)
    }

    fn edge(&self, bin: usize) -> At {
        self.from + Span::from_us(self.step.us() * bin as i64)
    }

    fn count(&self, instants: impl Iterator<Item = At>) -> Vec<u32> {
        let mut counts = vec![0; self.bins];
        instants.filter_map(|at| self.bin(at)).for_each(|bin| counts[bin] += 1);
        counts
    }
}

fn series(records: &[Record], grid: &Grid, output_tokens: Vec<f32>) -> Series {
    let ended = |ok: bool| {
        records
            .iter()
            .filter(move |record| (record.outcome == Outcome::Ok) == ok)
            .filter_map(|record| record.stamps.ended_at)
    };
    Series {
        from: grid.from,
        step: grid.step,
        offered: grid.count(records.iter().map(|record| record.stamps.intended_at)),
        sent: grid.count(records.iter().filter_map(|record| record.stamps.sent_at)),
        completed: grid.count(ended(true)),
        failed: grid.count(ended(false)),
        in_flight: in_flight(records, grid),
        output_tokens,
    }
}

/// Samples in ms, bin by bin.
type Bins = Vec<Vec<f32>>;

/// The output tokens of successes spread over their arrivals, and their gaps
/// in the wide bins in which they ended.
fn arrivals(timed: &[Timed<'_>], fine: &Grid, wide: &Grid) -> (Vec<f32>, Bins) {
    let mut tokens = vec![0.0f32; fine.bins];
    let mut gaps: Bins = vec![Vec::new(); wide.bins];
    for request in timed {
        let shown = request.success && request.knows_events();
        let Some(stamped) = request.stamped().filter(|_| shown) else { continue };
        let start_at = start_of(request.record, request.start());
        let Some(start_at) = start_at else { continue };
        let total = request.output_tokens().ok().map(f64::from);
        let each = total.map_or(1.0, |total| total / stamped.arrivals.len().max(1) as f64);
        for arrival in &stamped.arrivals {
            if let Some(bin) = fine.bin(start_at + arrival.at) {
                tokens[bin] += each as f32;
            }
        }
        if !request.is_streamed() {
            continue;
        }
        for (gap, ended) in stamped.ended_gaps() {
            if let Some(bin) = wide.bin(start_at + ended) {
                gaps[bin].push(gap.ms() as f32);
            }
        }
    }
    (tokens, gaps)
}

/// Requests in flight, mean over each bin.
fn in_flight(records: &[Record], grid: &Grid) -> Vec<f32> {
    // Of each bin: the time of requests that begin or end in it, and the
    // change of those that fill the next ones whole.
    let mut inside = vec![0i64; grid.bins];
    let mut whole = vec![0i64; grid.bins + 1];
    for record in records {
        let (Some(sent), Some(ended)) = (record.stamps.sent_at, record.stamps.ended_at) else {
            continue;
        };
        let (Some(first), Some(last)) = (grid.bin(sent), grid.bin(ended)) else { continue };
        if first == last {
            inside[first] += (ended - sent).us();
            continue;
        }
        inside[first] += (grid.edge(first + 1) - sent).us();
        inside[last] += (ended - grid.edge(last)).us();
        whole[first + 1] += 1;
        whole[last] -= 1;
    }
    let mut filling = 0;
    let step_us = grid.step.us();
    (0..grid.bins)
        .map(|bin| {
            filling += whole[bin];
            ((filling * step_us + inside[bin]) as f64 / step_us as f64) as f32
        })
        .collect()
}

/// The values of a metric of requests, by when these were intended.
fn requests_by_bin(key: &str, timed: &[Timed<'_>], grid: &Grid) -> Option<Bins> {
    let How::Request(value) = find(key)?.how else { return None };
    let mut bins: Bins = vec![Vec::new(); grid.bins];
    for request in timed {
        if let Some(bin) = grid.bin(request.record.stamps.intended_at) {
            bins[bin].extend(value(request).ok().map(|value| value as f32));
        }
    }
    Some(bins)
}

fn over_time(timed: &[Timed<'_>], records: &[Record], grid: &Grid, gaps: Bins) -> OverTime {
    let mut gaps = Some(gaps);
    let of = SHAPES.iter().filter_map(|key| {
        let bins = match find(key)?.how {
            How::Gaps => gaps.take()?,
            _ => requests_by_bin(key, timed, grid)?,
        };
        Some(percentiles(key, bins))
    });
    OverTime {
        of: of.collect(),
        from: grid.from,
        step: grid.step,
        in_flight: in_flight(records, grid),
    }
}

fn percentiles(key: &'static str, mut bins: Bins) -> Percentiles {
    bins.iter_mut().for_each(|samples| samples.sort_unstable_by(f32::total_cmp));
    // At least one sample lies beyond the percentile.
    let at = |q: f64| -> Vec<f32> {
        let known =
            |samples: &Vec<f32>| (samples.len() as f64 * (1.0 - q) >= 1.0 - 1e-9) || q == 0.5;
        let of = |samples: &Vec<f32>| {
            quantile::linear_of(samples.len(), |place| f64::from(samples[place]), q)
        };
        bins.iter()
            .map(|samples| of(samples).filter(|_| known(samples)).map_or(f32::NAN, |v| v as f32))
            .collect()
    };
    Percentiles { key, p50: at(0.5), p90: at(0.9), p99: at(0.99) }
}

/// The samples behind a metric, sorted.
fn samples(key: &str, timed: &[Timed<'_>]) -> Vec<f32> {
    let Some(metric) = find(key) else { return Vec::new() };
    let mut samples: Vec<f32> = Vec::new();
    for request in timed {
        match metric.how {
            How::Request(value) => samples.extend(value(request).ok().map(|value| value as f32)),
            How::Gaps => samples
                .extend(request.gaps_streamed().into_iter().flatten().map(|value| value as f32)),
            How::TokenGaps | How::Run | How::Inside(_) => {}
        }
    }
    samples.sort_unstable_by(f32::total_cmp);
    samples
}

/// Bins of a histogram, about, and of a decade at least and at most: 16 differ
/// by 15 %.
const BARS: f64 = 40.0;
const BINS_A_DECADE: (f64, f64) = (16.0, 1_000.0);

fn shape(key: &'static str, sorted: &[f32]) -> Shape {
    let mut shape = Shape { key, n: sorted.len() as u64, ..Shape::default() };
    let (Some(&most), Some(first)) = (sorted.last(), sorted.iter().position(|ms| *ms > 0.0)) else {
        return shape;
    };
    // What is zero has no place on a log axis: it joins the smallest bin.
    let least = sorted[first];
    let decades = (f64::from(most) / f64::from(least)).log10().max(1e-9);
    let each = (BARS / decades).clamp(BINS_A_DECADE.0, BINS_A_DECADE.1).round();
    let bin = |ms: f32| (f64::from(ms.max(least)).log10() * each).floor() as i32;
    let (low, high) = (bin(least), bin(most));
    let edge = |bin: i32| 10f64.powf(f64::from(bin) / each) as f32;
    shape.edges = (low..=high).map(edge).collect();
    shape.counts = vec![0; shape.edges.len()];
    for ms in sorted {
        shape.counts[(bin(*ms) - low) as usize] += 1;
    }
    let body = (0..CURVE).map(|step| f64::from(step) / f64::from(CURVE) * 0.99);
    let tail = (0..=2 * TAIL).map(|step| {
        let decades = f64::from(step) / f64::from(TAIL);
        1.0 - 0.01 * 10f64.powf(-decades)
    });
    for q in body.chain(tail).chain([1.0]) {
        let value = quantile::linear_of(sorted.len(), |place| f64::from(sorted[place]), q);
        shape.shares.push(q as f32);
        shape.values.push(value.map_or(most, |value| value as f32));
    }
    shape
}

fn ttft_by_input(timed: &[Timed<'_>]) -> Cloud {
    let points = timed.iter().filter_map(|request| {
        Some((request.input_length().ok()? as f32, request.ttft().ok()? as f32))
    });
    cloud(points.collect())
}

/// Spans of requests in ms, against when these were intended.
fn waits(records: &[Record], span: impl Fn(&Record) -> Option<Span>) -> Cloud {
    let points = records.iter().filter_map(|record| {
        let at = record.stamps.intended_at - At::ZERO;
        Some((at.s() as f32, span(record)?.ms() as f32))
    });
    cloud(points.collect())
}

fn cap_wait(record: &Record, load: &LoadFacts) -> Option<Span> {
    let stamps = &record.stamps;
    let held = stamps.released_at? - stamps.intended_at;
    (load.kind == LoadKind::Capped && record.source.is_none()).then_some(held)
}

/// Points by their x, thinned so that of neighbours the lowest and the highest
/// stay.
fn cloud(mut points: Vec<(f32, f32)>) -> Cloud {
    points.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let of = points.len() as u64;
    if points.len() > POINTS {
        let few = points.len().div_ceil(POINTS / 3);
        points = points.chunks(few).flat_map(extremes).collect();
    }
    let (x, y) = points.into_iter().unzip();
    Cloud { x, y, of }
}

/// The first, the lowest and the highest of some points, in their order.
fn extremes(points: &[(f32, f32)]) -> Vec<(f32, f32)> {
    let by = |a: &usize, b: &usize| points[*a].1.total_cmp(&points[*b].1);
    let lowest = (0..points.len()).min_by(by);
    let highest = (0..points.len()).max_by(by);
    let mut kept: Vec<usize> = [Some(0), lowest, highest].into_iter().flatten().collect();
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|index| points[index]).collect()
}

fn lanes(timed: &[Timed<'_>]) -> Vec<Lane> {
    // Requests that failed took as long as they took: they are slow too.
    let took = |request: &Timed<'_>| {
        let stamps = &request.record.stamps;
        stamps.ended_at.filter(|_| stamps.sent_at.is_some()).map(|end| end - stamps.intended_at)
    };
    let mut slowest: Vec<(Span, usize)> = timed
        .iter()
        .enumerate()
        .filter_map(|(place, request)| Some((took(request)?, place)))
        .collect();
    slowest.sort_unstable_by(|a, b| b.cmp(a));
    let spread = spread(timed.len(), SPREAD);
    let slowest = slowest.into_iter().take(SLOWEST).map(|(_, place)| (place, true));
    slowest
        .chain(spread.into_iter().map(|place| (place, false)))
        .map(|(place, slowest)| lane(&timed[place], slowest))
        .collect()
}

/// Places spread evenly over `n`, the first and the last among them.
fn spread(n: usize, most: usize) -> Vec<usize> {
    if n <= most {
        return (0..n).collect();
    }
    (0..most).map(|step| step * (n - 1) / (most - 1)).collect()
}

fn lane(request: &Timed<'_>, slowest: bool) -> Lane {
    let record = request.record;
    let ms = |at: At| (at - At::ZERO).ms();
    let arrivals: Vec<f64> = record
        .events
        .iter()
        .filter(|event| event.carries.is_arrival())
        .filter_map(|event| record.event_at(event.at_us).map(ms))
        .collect();
    Lane {
        index: record.index,
        outcome: record.outcome,
        intended_ms: ms(record.stamps.intended_at),
        sent_ms: record.stamps.sent_at.map(ms),
        end_ms: record.stamps.ended_at.map(ms),
        tokens_ms: thinned(&arrivals),
        tokens_of: arrivals.len() as u64,
        slowest,
    }
}

/// Arrivals of a time line. Where they are too many, both ends of the longest
/// gaps stay and the rest is spread evenly.
fn thinned(arrivals: &[f64]) -> Vec<f32> {
    let mut kept: Vec<usize> = if arrivals.len() <= TOKENS {
        (0..arrivals.len()).collect()
    } else {
        let mut ends: Vec<usize> = (1..arrivals.len()).collect();
        let gap = |end: &usize| arrivals[*end] - arrivals[end - 1];
        ends.sort_unstable_by(|a, b| gap(b).total_cmp(&gap(a)));
        let longest = ends.into_iter().take(TOKENS / 4).flat_map(|end| [end - 1, end]);
        longest.chain(spread(arrivals.len(), TOKENS / 2)).collect()
    };
    kept.sort_unstable();
    kept.dedup();
    kept.into_iter().map(|place| arrivals[place] as f32).collect()
}

fn requests(timed: &[Timed<'_>]) -> Requests {
    let known: Vec<(f64, f64, u32)> = timed
        .iter()
        .filter_map(|request| {
            let tokens = request.output_tokens().ok().filter(|tokens| *tokens > 0)?;
            Some((request.ttft().ok()?, request.e2el().ok()?, tokens))
        })
        .collect();
    let mut places = spread(known.len(), REQUESTS);
    let slowest = (0..known.len()).max_by(|a, b| known[*a].1.total_cmp(&known[*b].1));
    places.extend(slowest.filter(|place| !places.contains(place)));
    places.sort_unstable();
    let mut requests = Requests { of: known.len() as u64, ..Requests::default() };
    for (ttft_ms, e2el_ms, tokens) in places.into_iter().map(|place| known[place]) {
        requests.ttft_ms.push(ttft_ms as f32);
        requests.e2el_ms.push(e2el_ms as f32);
        requests.tokens.push(tokens);
    }
    requests
}
