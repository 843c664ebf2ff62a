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
    /// Rows would be needed to find it, and were not kept.
    NotKept,
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
            Self::NotKept => said!(
                "the steady part of this load is found by looking back from its end, and no rows \
                 were kept (--no-events)",
                "此类负载的稳态部分要在结束后回看才能确定，而没有保留逐请求数据（--no-events）"
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

/// First and last of some instants, and how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// How many.
    pub(crate) n: u64,
    ends: Option<(At, At)>,
}

impl Reach {
    /// Takes an instant in.
    pub(crate) fn add(&mut self, at: At) {
        self.n += 1;
        self.ends = Some(self.ends.map_or((at, at), |(from, until)| (from.min(at), until.max(at))));
    }

    /// The first.
    pub(crate) fn first(&self) -> Option<At> {
        self.ends.map(|(first, _)| first)
    }

    /// The last.
    pub(crate) fn last(&self) -> Option<At> {
        self.ends.map(|(_, last)| last)
    }

    /// From the first to the last.
    pub(crate) fn length(&self) -> Option<Span> {
        self.ends.map(|(first, last)| last - first)
    }
}

/// Between which instants a run lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    /// When requests were intended that the load let come and that were owed.
    pub(crate) due: Reach,
    /// When those were intended that were tried.
    pub(crate) tried: Reach,
    /// When those ended.
    pub(crate) tried_ended: Reach,
    /// When any request ended.
    pub(crate) ended: Reach,
    /// When any request was sent.
    pub(crate) sent: Reach,
    /// Turns that came when those before them had ended.
    pub(crate) later_turns: u64,
}

impl Extent {
    /// Takes a request in. What an interrupted run had not released by its end
    /// was not owed.
    pub(crate) fn add(&mut self, record: &Record, interrupted: bool) {
        let stamps = &record.stamps;
        if record.arrives() {
            if !interrupted || stamps.released_at.is_some() {
                self.due.add(stamps.intended_at);
            }
        } else {
            self.later_turns += 1;
        }
        if stamps.released_at.is_some() {
            self.tried.add(stamps.intended_at);
            stamps.ended_at.into_iter().for_each(|at| self.tried_ended.add(at));
        }
        stamps.ended_at.into_iter().for_each(|at| self.ended.add(at));
        stamps.sent_at.into_iter().for_each(|at| self.sent.add(at));
    }

    pub(crate) fn of(records: &[Record], interrupted: bool) -> Self {
        let mut extent = Self::default();
        records.iter().for_each(|record| extent.add(record, interrupted));
        extent
    }

    /// The makespan [first intended, last event].
    pub(crate) fn makespan(&self) -> Option<Window> {
        Some(Window { from: self.tried.first()?, until: self.tried_ended.last()? })
    }
}

/// From the first send to the end of the last request: what a server did for the
/// run it did in this window. None where nothing was sent.
pub fn served(records: &[Record]) -> Option<Window> {
    let from = records.iter().filter_map(|record| record.stamps.sent_at).min()?;
    let until = records.iter().filter_map(|record| record.stamps.ended_at).max()?;
    Some(Window { from, until })
}

/// The arrival window [first, last intended]. Its length is the planned
/// duration where one was given, else (last − first)·n/(n − 1), since n
/// arrivals span n − 1 gaps.
pub fn arrival(intended: &[At], planned: Option<Span>) -> Option<Window> {
    let mut reach = Reach::default();
    intended.iter().for_each(|at| reach.add(*at));
    arrival_of(&reach, planned)
}

/// The same by what is known of the instants.
pub(crate) fn arrival_of(intended: &Reach, planned: Option<Span>) -> Option<Window> {
    let first = intended.first()?;
    if let Some(planned) = planned {
        // A planned duration counts from the start of the run, not from the
        // first arrival.
        let from = first.min(At::ZERO);
        return Some(Window { from, until: from + planned });
    }
    let n = intended.n as f64;
    let between = intended.length()?.us();
    (intended.n > 1 && between > 0).then(|| Window {
        from: first,
        until: first + Span::from_us((between as f64 * n / (n - 1.0)).round() as i64),
    })
}

/// The makespan [first intended, last event].
pub fn makespan(records: &[Record]) -> Option<Window> {
    Extent::of(records, false).makespan()
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

/// The time in which answers were being written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Writing {
    /// From the first to the last token arrival, added up over the answers.
    pub total: Span,
    /// The time in which at least one answer was under way, for each server by
    /// itself where answers say who served them, added up.
    pub busy: Span,
    /// Servers that answers name; 1 where they name none.
    pub servers: u32,
}

impl Writing {
    /// Answers that one server writes at a time while it writes any.
    pub fn at_a_time(&self) -> Option<f64> {
        (self.busy > Span::ZERO).then(|| self.total.us() as f64 / self.busy.us() as f64)
    }
}

/// The time in which the answers of these requests were being written.
pub fn writing<'a>(records: impl IntoIterator<Item = &'a Record>) -> Writing {
    let mut servers: BTreeMap<Option<&str>, Vec<(At, At)>> = BTreeMap::new();
    for record in records {
        let events = &record.events;
        let mut arrivals = (0..events.len()).filter(|place| events.carries[*place].is_arrival());
        let Some(first) = arrivals.next() else { continue };
        let last = arrivals.next_back().unwrap_or(first);
        let at = |place: usize| record.event_at(events.at_us[place]);
        let Some(span) = at(first).zip(at(last)) else { continue };
        servers.entry(record.answer.served_by.as_deref()).or_default().push(span);
    }
    let mut writing = Writing { servers: servers.len().max(1) as u32, ..Writing::default() };
    for spans in servers.values_mut() {
        spans.sort_unstable();
        let mut reached = At::from_us(i64::MIN);
        for (first, last) in spans {
            writing.total += *last - *first;
            writing.busy += (*last - (*first).max(reached).min(*last)).max(Span::ZERO);
            reached = reached.max(*last);
        }
    }
    writing
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
    long_enough(window, median)?;
    refuse_trend(window, |part| mean_in_flight(records, part))?;
    Ok(window)
}

/// Refuses a window that is short beside what half of the requests took.
pub(crate) fn long_enough(window: Window, median_s: f64) -> Result<(), NoSteady> {
    let needed = Span::from_s(f64::max(10.0, 3.0 * median_s));
    if window.length() < needed {
        return Err(NoSteady::TooShort { length: window.length().max(Span::ZERO), needed });
    }
    Ok(())
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
pub(crate) fn refuse_trend(
    window: Window,
    mean_in_flight: impl Fn(Window) -> f64,
) -> Result<(), NoSteady> {
    let quarter = Span::from_us(window.length().us() / 4);
    let mut from = window.from;
    let means: Vec<f64> = (0..4)
        .map(|_| {
            let mean = mean_in_flight(Window { from, until: from + quarter });
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
