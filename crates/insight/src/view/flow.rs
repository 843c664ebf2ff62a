//! How requests come, wait, are answered and go, over time.

use measure::course::Course;
use measure::quantile;
use measure::summary::Summary;

use super::request::Seen;
use crate::fit::{self, Trend};

/// The flow of requests of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flow {
    /// Trend of the requests in flight while arrivals come, a second.
    pub in_flight: Option<Trend>,
    /// Trend of TTFT over the sends, ms a second.
    pub ttft: Option<Trend>,
    /// Arrivals a second, where they follow a schedule.
    pub offered_rps: Option<f64>,
    /// Requests that ended a second while arrivals came.
    pub ended_rps: Option<f64>,
    /// Squared coefficient of variation of the gaps between arrivals, where they
    /// follow a schedule: 1 for Poisson.
    pub scatter: Option<f64>,
    /// How many wait and how many are answered at a time.
    pub streams: Option<Streams>,
}

/// What a client sees of the batch: requests that wait for their first token, and
/// requests whose tokens come.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Streams {
    /// Mean number that waits.
    pub waiting: f64,
    /// Most that wait at a time.
    pub most_waiting: f64,
    /// Mean number that is answered.
    pub answered: f64,
    /// The most, short peaks aside.
    pub most_answered: f64,
    /// Share of the time in which two or more wait.
    pub queued: f64,
    /// Of that time, the 10th percentile of those that are answered over the
    /// 90th: near 1 where a limit holds them.
    pub evenness: Option<f64>,
}

/// Parts that a run is cut into for its trends.
const PARTS: usize = 24;

impl Flow {
    /// The flow of a run.
    pub(super) fn of(courses: &[Course], seen: &[Seen], summary: &Summary) -> Self {
        let mut sent: Vec<f64> = courses.iter().filter_map(|course| course.sent_s).collect();
        sent.sort_by(f64::total_cmp);
        let (Some(first), Some(last)) = (sent.first().copied(), sent.last().copied()) else {
            return Self::default();
        };
        let has_schedule = summary.facts.load.kind.has_schedule();
        let ends = courses.iter().filter_map(|course| course.ended_s);
        let length = last - first;
        let ended = ends.filter(|at| *at <= last).count() as f64;
        let mut arrivals: Vec<f64> = courses.iter().map(|course| course.intended_s).collect();
        arrivals.sort_by(f64::total_cmp);
        Self {
            in_flight: in_flight(courses, first, last),
            ttft: ttft(seen, first, last),
            offered_rps: summary.load.offered_rps,
            ended_rps: (length > 0.0).then(|| ended / length),
            scatter: has_schedule.then(|| scatter(&arrivals)).flatten(),
            streams: Streams::of(courses, last),
        }
    }

    /// Share of what was offered that did not come back while it was offered.
    pub fn deficit(&self) -> Option<f64> {
        let (offered, ended) = (self.offered_rps?, self.ended_rps?);
        (offered > 0.0).then(|| (offered - ended) / offered)
    }
}

/// Squared coefficient of variation of the gaps between sorted instants.
fn scatter(sorted: &[f64]) -> Option<f64> {
    let gaps: Vec<f64> = sorted.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = super::mean(gaps.iter().copied()).filter(|mean| *mean > 0.0)?;
    let variance = super::mean(gaps.iter().map(|gap| (gap - mean).powi(2)))?;
    (gaps.len() >= 20).then(|| variance / (mean * mean))
}

/// Mean in flight in each part of the time in which requests were sent.
fn in_flight(courses: &[Course], from: f64, until: f64) -> Option<Trend> {
    let width = (until - from) / PARTS as f64;
    if width <= 0.0 || courses.len() < 2 * PARTS {
        return None;
    }
    let mut parts = [0.0; PARTS];
    for course in courses {
        let (Some(sent), ended) = (course.sent_s, course.ended_s.unwrap_or(until)) else {
            continue;
        };
        let first = (((sent - from) / width) as usize).min(PARTS - 1);
        for (place, part) in parts.iter_mut().enumerate().skip(first) {
            let begins = from + place as f64 * width;
            let inside = ended.min(begins + width) - sent.max(begins);
            if inside <= 0.0 {
                break;
            }
            *part += inside / width;
        }
    }
    // The run's ramp is no trend.
    let points: Vec<(f64, f64)> = parts
        .iter()
        .enumerate()
        .skip(PARTS / 6)
        .map(|(place, value)| (from + (place as f64 + 0.5) * width, *value))
        .collect();
    fit::trend(&points)
}

/// Mean TTFT of the requests that were sent in each part.
fn ttft(seen: &[Seen], from: f64, until: f64) -> Option<Trend> {
    let width = (until - from) / PARTS as f64;
    if width <= 0.0 || seen.len() < 2 * PARTS {
        return None;
    }
    let mut parts = [(0.0, 0u32); PARTS];
    for one in seen {
        let place = (((one.sent_s - from) / width).max(0.0) as usize).min(PARTS - 1);
        if let Some(ms) = one.ttft_ms {
            parts[place] = (parts[place].0 + ms, parts[place].1 + 1);
        }
    }
    let points: Vec<(f64, f64)> = parts
        .iter()
        .enumerate()
        .skip(PARTS / 6)
        .filter(|(_, (_, count))| *count > 0)
        .map(|(place, (sum, count))| (from + (place as f64 + 0.5) * width, sum / f64::from(*count)))
        .collect();
    fit::trend(&points)
}

impl Streams {
    /// From the first send to the last one, or to the last first token where all
    /// were sent at once.
    fn of(courses: &[Course], last_sent: f64) -> Option<Self> {
        let mut changes: Vec<(f64, i32, i32)> = Vec::with_capacity(3 * courses.len());
        for course in courses {
            let Some(sent) = course.sent_s else { continue };
            let ended = course.last_token_s.or(course.ended_s).unwrap_or(sent);
            changes.push((sent, 1, 0));
            match course.first_token_s {
                Some(first) => changes.extend([(first, -1, 1), (ended.max(first), 0, -1)]),
                None => changes.push((course.ended_s.unwrap_or(sent), -1, 0)),
            }
        }
        let firsts = courses.iter().filter_map(|course| course.first_token_s);
        let last_first = firsts.fold(f64::NEG_INFINITY, f64::max);
        changes.sort_by(|a, b| a.0.total_cmp(&b.0));
        let from = changes.first()?.0;
        let until = if last_sent > from + 0.01 { last_sent } else { last_first };
        let (mut waiting, mut answered, mut at) = (0i32, 0i32, from);
        let mut spans: Vec<(i32, i32, f64)> = Vec::new();
        for (when, waits, answers) in changes {
            let span = when.min(until) - at;
            if span > 0.0 {
                spans.push((waiting, answered, span));
                at = when.min(until);
            }
            waiting += waits;
            answered += answers;
        }
        Self::of_spans(&spans)
    }

    fn of_spans(spans: &[(i32, i32, f64)]) -> Option<Self> {
        let all: f64 = spans.iter().map(|(_, _, span)| span).sum();
        if all <= 0.0 {
            return None;
        }
        let over = |of: &dyn Fn(i32, i32) -> f64| {
            spans.iter().map(|(waits, answers, span)| of(*waits, *answers) * span).sum::<f64>()
                / all
        };
        let queued: Vec<(f64, f64)> = spans
            .iter()
            .filter(|(waits, ..)| *waits >= 2)
            .map(|(_, answers, span)| (f64::from(*answers), *span))
            .collect();
        let every: Vec<(f64, f64)> =
            spans.iter().map(|(_, answers, span)| (f64::from(*answers), *span)).collect();
        let low = quantile::weighted(&queued, 0.1)
            .zip(quantile::weighted(&queued, 0.9).filter(|high| *high > 0.0));
        Some(Self {
            waiting: over(&|waits, _| f64::from(waits)),
            most_waiting: spans.iter().map(|(waits, ..)| f64::from(*waits)).fold(0.0, f64::max),
            answered: over(&|_, answers| f64::from(answers)),
            most_answered: quantile::weighted(&every, 0.99).unwrap_or(0.0),
            queued: over(&|waits, _| f64::from(u8::from(waits >= 2))),
            evenness: low.map(|(low, high)| low / high),
        })
    }
}
