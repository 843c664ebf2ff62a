//! The three windows of a run: arrival, makespan, steady.

use std::collections::BTreeMap;

use crate::facts::{LoadFacts, LoadKind};
use crate::metric::Text;
use crate::quantile;
use crate::record::Record;
use crate::said::{Said, said};
use crate::unit::{At, Span};

/// A half-open stretch of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first instant.
    pub from: At,
    /// The instant after its last.
    pub until: At,
}

impl Window {
    /// Its length.
    pub fn length(&self) -> Span {
        self.until - self.from
    }

    /// True for an instant inside.
    pub fn contains(&self, at: At) -> bool {
        self.from <= at && at < self.until
    }
}

/// Why a run has no steady window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NoSteady {
    /// Nothing was sent.
    NothingSent,
    /// The load has no steady part by its kind.
    Kind(LoadKind),
    /// The rate of arrivals changes by plan.
    Shaped,
    /// Some slot never finished its first request while others had work.
    NeverFull,
    /// What is left between ramp and drain is too short.
    TooShort {
        /// Length of what is left.
        length: Span,
        /// Length that was needed.
        needed: Span,
    },
    /// The number in flight kept moving one way.
    Trending {
        /// Mean in flight in the first quarter.
        first: f64,
        /// Mean in flight in the last quarter.
        last: f64,
    },
}

impl NoSteady {
    /// The reason in words.
    pub fn text(&self) -> Said {
        match self {
            Self::NothingSent => said!("nothing was sent", "没有发出任何请求"),
            Self::Kind(kind) => {
                let Text { en, zh } = kind.texts();
                Said {
                    en: format!("a {en} load has no steady part"),
                    zh: format!("{zh}负载没有稳态部分"),
                }
            }
            Self::Shaped => said!(
                "the rate of arrivals changes by plan, so no part of the run is steady",
                "到达速率按计划变化，因此没有稳态部分"
            ),
            Self::NeverFull => said!(
                "no stretch had every slot past its first request and at work",
                "没有一段时间里所有并发位都已过首个请求且都在工作"
            ),
            Self::TooShort { length, needed } => said!(
                "only {length} lie between ramp and drain and {needed} are needed; run longer",
                "爬升与收尾之间只有 {length}，至少需要 {needed}；请延长压测时间",
                length = length,
                needed = needed,
            ),
            Self::Trending { first, last } => said!(
                "requests in flight went from {first:.1} to {last:.1}: the load was not steady",
                "在途请求从 {first:.1} 变到 {last:.1}，负载不稳定",
                first = first,
                last = last,
            ),
        }
    }
}

/// The arrival window [first, last intended]. Its length is the planned
/// duration where one was given, else (last − first)·n/(n − 1), since n
/// arrivals span n − 1 gaps.
pub fn arrival(intended: &[At], planned: Option<Span>) -> Option<Window> {
    let first = *intended.iter().min()?;
    let last = *intended.iter().max()?;
    if let Some(planned) = planned {
        // A planned duration counts from the start of the run, not from the
        // first arrival.
        let from = first.min(At::ZERO);
        return Some(Window { from, until: from + planned });
    }
    let n = intended.len() as i64;
    let between = (last - first).us();
    (n > 1 && between > 0).then(|| Window {
        from: first,
        until: first + Span::from_us((between as f64 * n as f64 / (n - 1) as f64).round() as i64),
    })
}

/// The makespan [first intended, last event].
pub fn makespan(records: &[Record]) -> Option<Window> {
    let tried = records.iter().filter(|record| record.stamps.released_at.is_some());
    let from = tried.clone().map(|record| record.stamps.intended_at).min()?;
    let until = tried.filter_map(|record| record.stamps.ended_at).max()?;
    Some(Window { from, until })
}

/// In-flight intervals [sent, ended] of all requests that were sent.
fn intervals(records: &[Record]) -> Vec<(At, At)> {
    records.iter().filter_map(|r| Some((r.stamps.sent_at?, r.stamps.ended_at?))).collect()
}

/// From the first send to the last end of each conversation that was begun, of
/// a request by itself its own: the time for which it holds a user.
fn held(records: &[Record]) -> Vec<(At, At)> {
    if records.iter().all(Record::arrives) {
        return intervals(records);
    }
    let mut held: BTreeMap<u32, (At, At)> = BTreeMap::new();
    for record in records {
        let stamps = &record.stamps;
        let Some((sent, ended)) = stamps.sent_at.zip(stamps.ended_at) else { continue };
        let span = held.entry(record.planned.session).or_insert((sent, ended));
        *span = (span.0.min(sent), span.1.max(ended));
    }
    held.into_values().collect()
}

/// Starts and ends in order. An end at the same instant as a start comes first:
/// they did not overlap.
fn changes(records: &[Record]) -> Vec<(At, i32)> {
    let mut changes: Vec<(At, i32)> =
        intervals(records).into_iter().flat_map(|(sent, ended)| [(sent, 1), (ended, -1)]).collect();
    changes.sort_unstable();
    changes
}

/// The largest number of requests in flight at once.
pub fn max_in_flight(records: &[Record]) -> u32 {
    let (mut now, mut most) = (0, 0);
    for (_, change) in changes(records) {
        now += change;
        most = most.max(now);
    }
    most as u32
}

/// Time-weighted mean of requests in flight inside a window.
pub fn mean_in_flight(records: &[Record], window: Window) -> f64 {
    let covered: i64 = intervals(records)
        .into_iter()
        .map(|(sent, ended)| (ended.min(window.until) - sent.max(window.from)).us().max(0))
        .sum();
    covered as f64 / window.length().us().max(1) as f64
}

/// The steady window of a run, or why it has none.
///
/// Closed loop: from when every slot has finished its first request, or its
/// first conversation, until a slot first finds no work. Open loop: from when
/// the number in flight first reaches its mean over the second half of the
/// arrivals, to the last arrival. Never the drain. Refused when shorter than
/// max(10 s, 3 × median E2EL) or when the number in flight trends.
pub fn steady(records: &[Record], load: &LoadFacts) -> Result<Window, NoSteady> {
    let window = match load.kind {
        LoadKind::Open | LoadKind::Capped => {
            let window = steady_open(records)?;
            if load.request_rate.is_none() {
                return Err(NoSteady::Shaped);
            }
            window
        }
        LoadKind::Closed => steady_closed(records, load.users.unwrap_or(1) as usize)?,
        LoadKind::Burst | LoadKind::Unknown => return Err(NoSteady::Kind(load.kind)),
    };
    let mut took: Vec<f64> =
        intervals(records).into_iter().map(|(sent, ended)| (ended - sent).s()).collect();
    took.sort_by(f64::total_cmp);
    let median = quantile::linear(&took, 0.5).unwrap_or(0.0);
    let needed = Span::from_s(f64::max(10.0, 3.0 * median));
    if window.length() < needed {
        return Err(NoSteady::TooShort { length: window.length().max(Span::ZERO), needed });
    }
    refuse_trend(records, window)?;
    Ok(window)
}

fn steady_open(records: &[Record]) -> Result<Window, NoSteady> {
    let arrivals = records.iter().filter(|record| record.stamps.released_at.is_some());
    let first =
        arrivals.clone().map(|r| r.stamps.intended_at).min().ok_or(NoSteady::NothingSent)?;
    let last = arrivals
        .filter(|record| record.arrives())
        .map(|r| r.stamps.intended_at)
        .max()
        .ok_or(NoSteady::NothingSent)?;
    let middle = first + Span::from_us((last - first).us() / 2);
    let plateau = mean_in_flight(records, Window { from: middle, until: last });
    let mut now = 0;
    for (at, change) in changes(records) {
        now += change;
        if f64::from(now) >= plateau {
            return Ok(Window { from: at, until: last });
        }
    }
    Err(NoSteady::NeverFull)
}

fn steady_closed(records: &[Record], users: usize) -> Result<Window, NoSteady> {
    let mut spans = held(records);
    spans.sort_unstable();
    if spans.len() <= users {
        return Err(NoSteady::NeverFull);
    }
    // The first `users` sends are the users' first requests.
    let from = spans[..users].iter().map(|(_, ended)| *ended).max().ok_or(NoSteady::NothingSent)?;
    let last_sent = spans[spans.len() - 1].0;
    let until = spans
        .iter()
        .map(|(_, ended)| *ended)
        .filter(|ended| *ended > last_sent)
        .min()
        .unwrap_or(last_sent);
    if until <= from { Err(NoSteady::NeverFull) } else { Ok(Window { from, until }) }
}

/// A load trends when its mean in flight rises, or falls, over all four
/// quarters and by more than a tenth and one request in all. Not by more than
/// a quarter: the window of an open loop starts where the number in flight
/// reaches its later mean, so that a backlog that grows evenly from nothing
/// rises by only 24 % inside it.
fn refuse_trend(records: &[Record], window: Window) -> Result<(), NoSteady> {
    let quarter = Span::from_us(window.length().us() / 4);
    let mut from = window.from;
    let means: Vec<f64> = (0..4)
        .map(|_| {
            let mean = mean_in_flight(records, Window { from, until: from + quarter });
            from = from + quarter;
            mean
        })
        .collect();
    let rises = means.windows(2).all(|pair| pair[1] > pair[0]);
    let falls = means.windows(2).all(|pair| pair[1] < pair[0]);
    let (first, last) = (means[0], means[3]);
    let far = (last - first).abs() > f64::max(1.0, 0.10 * f64::min(first, last));
    if (rises || falls) && far { Err(NoSteady::Trending { first, last }) } else { Ok(()) }
}
