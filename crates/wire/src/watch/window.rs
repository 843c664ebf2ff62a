//! The readings of the last while, and what happened between two of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use measure::said::{Said, said};
use measure::signal::{Signal, Signals};
use measure::watch::{Event, Kind, Place};
use measure::{At, Span};

use crate::prometheus::Exposition;
use crate::scrapes::Scrape;
use crate::signals;

/// When a process began, as the usual client libraries tell it.
const STARTED: &str = "process_start_time_seconds";

/// What two readings of that may differ by in one process, seconds.
const SAME_START: f64 = 1.0;

/// Beginnings within one window from which on more than one process tells its
/// figures.
const MANY_BEGINNINGS: usize = 3;

/// The most signals that are named in one sentence.
const MOST_NAMED: usize = 6;

/// The readings of each place that a window holds.
#[derive(Debug)]
pub struct Window {
    length: Span,
    model: Option<String>,
    places: Vec<Watched>,
}

/// One place.
#[derive(Debug, Default)]
struct Watched {
    place: Place,
    /// When its trouble began.
    troubled_at: At,
    /// Those of the window, and one before it.
    scrapes: VecDeque<Scrape>,
    /// When it began anew, within the length of the window.
    beginnings: VecDeque<At>,
    /// What its last reading told.
    told: BTreeSet<Signal>,
    /// What was told and is not any more, and when it last was.
    lost: BTreeMap<Signal, At>,
}

impl Window {
    /// One of this length. Where a server tells of several models, only that of
    /// this name is meant.
    pub const fn new(length: Span, model: Option<String>) -> Self {
        Self { length, model, places: Vec::new() }
    }

    /// Takes a reading of a place, or why there was none, and says what happened
    /// since the one before. Readings of one place come in the order of time.
    pub fn take(&mut self, source: &str, at: At, reading: Result<Scrape, String>) -> Vec<Event> {
        let known = self.places.iter().position(|watched| watched.place.name == source);
        let place = known.unwrap_or_else(|| {
            let place = Place { name: source.to_owned(), ..Place::default() };
            self.places.push(Watched { place, ..Watched::default() });
            self.places.len() - 1
        });
        let watched = &mut self.places[place];
        let mut events = Vec::new();
        let mut tell = |kind, says| {
            events.push(Event { at, kind, of: source.to_owned(), says });
        };
        match reading {
            Ok(scrape) => watched.read(scrape, self.length, &mut tell),
            Err(reason) => watched.fail(at, reason, &mut tell),
        }
        events
    }

    /// The places, in the order in which they were first met.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.iter().map(|watched| &watched.place)
    }

    /// What the places that answer told over the window; none where none does.
    ///
    /// It begins at the first reading that is kept of every engine: one that has
    /// just begun anew leaves the others no longer time than itself. What is not
    /// told any more is absent, and not the value that it last had.
    pub fn signals(&self) -> Option<Signals> {
        let answering = || self.places.iter().filter(|watched| watched.answers());
        let until = answering().filter_map(Watched::last_at).max()?;
        let of_engines = || answering().filter(|watched| watched.is_of_engine());
        let from = of_engines().filter_map(Watched::first_at).max();
        let from = from.or_else(|| answering().filter_map(Watched::first_at).max())?;
        let scrapes: Vec<signals::Scrape<'_>> = answering()
            .flat_map(|watched| {
                let source = watched.place.name.as_str();
                watched.scrapes.iter().map(move |scrape| signals::Scrape {
                    at: scrape.at,
                    source,
                    exposition: &scrape.exposition,
                })
            })
            .collect();
        let mut signals = signals::read(&scrapes, from, until, self.model.as_deref());
        signals.notes.extend(answering().filter(|one| one.takes_turns()).map(Watched::in_turn));
        for signal in Signal::ALL {
            if answering().any(|watched| watched.told.contains(signal)) {
                continue;
            }
            if let Some(why) =
                self.places.iter().find_map(|watched| watched.why_not(*signal, until))
            {
                signals.readings.remove(signal);
                signals.series.remove(signal);
                for instance in &mut signals.instances {
                    instance.readings.remove(signal);
                }
                signals.absent.insert(*signal, why);
            }
        }
        Some(signals)
    }
}

impl Watched {
    fn answers(&self) -> bool {
        self.place.trouble.is_none() && !self.scrapes.is_empty()
    }

    fn is_of_engine(&self) -> bool {
        self.scrapes.back().is_some_and(|scrape| signals::detect(&scrape.exposition).is_some())
    }

    fn first_at(&self) -> Option<At> {
        self.scrapes.front().map(|scrape| scrape.at)
    }

    fn last_at(&self) -> Option<At> {
        self.scrapes.back().map(|scrape| scrape.at)
    }

    fn fail(&mut self, at: At, reason: String, tell: &mut dyn FnMut(Kind, Said)) {
        self.place.failed += 1;
        if self.place.trouble.as_ref() == Some(&reason) {
            return;
        }
        if self.place.trouble.is_none() {
            self.troubled_at = at;
        }
        tell(
            Kind::Unread,
            said!(
                "{place} gives no metrics: {reason}",
                "{place} 没有给出指标：{reason}",
                place = self.place.name,
                reason = reason,
            ),
        );
        self.place.trouble = Some(reason);
    }

    fn read(&mut self, scrape: Scrape, length: Span, tell: &mut dyn FnMut(Kind, Said)) {
        self.place.taken += 1;
        let at = scrape.at;
        if self.place.trouble.take().is_some() {
            tell(
                Kind::Read,
                said!(
                    "{place} gives metrics again, after {length:.0} s",
                    "{place} 在 {length:.0} 秒后重新给出指标",
                    place = self.place.name,
                    length = (at - self.troubled_at).s(),
                ),
            );
        }
        while self.beginnings.front().is_some_and(|began| at - *began > length) {
            self.beginnings.pop_front();
        }
        if let Some((kind, says)) = self.beginning(&scrape) {
            self.place.restarts += 1;
            self.scrapes.clear();
            self.beginnings.push_back(at);
            // From then on it is told of once, however often they change places.
            match self.beginnings.len() {
                MANY_BEGINNINGS => tell(Kind::Reset, self.in_turn()),
                ..MANY_BEGINNINGS => tell(kind, says),
                _ => {}
            }
        }
        self.compare(signals::told(&scrape.exposition), at, tell);
        self.scrapes.push_back(scrape);
        // The one at or before the window's beginning stays: counters are
        // differenced from there.
        while self.scrapes.get(1).is_some_and(|next| at - next.at >= length) {
            self.scrapes.pop_front();
        }
    }

    fn takes_turns(&self) -> bool {
        self.beginnings.len() >= MANY_BEGINNINGS
    }

    fn in_turn(&self) -> Said {
        said!(
            "counters of {place} fall again and again: several processes seem to answer there in \
             turn, and its figures mean little; give each one's own address with --metrics-url",
            "{place} 的计数器反复回落：可能有多个进程轮流应答，其数值意义不大；请用 --metrics-url 分别给出各自的地址",
            place = self.place.name,
        )
    }

    /// Whether the process or its counters began anew before this reading.
    fn beginning(&self, now: &Scrape) -> Option<(Kind, Said)> {
        let before = self.scrapes.back()?;
        let place = self.place.name.as_str();
        let starts = started(&before.exposition).zip(started(&now.exposition));
        if let Some((then, since)) = starts
            && since > then + SAME_START
        {
            let says = said!(
                "the process at {place} began anew: the window starts again from here",
                "{place} 的进程已重启：统计窗口从此刻重新开始",
                place = place,
            );
            return Some((Kind::Restarted, says));
        }
        let both = [before, now].map(|scrape| signals::Scrape {
            at: scrape.at,
            source: place,
            exposition: &scrape.exposition,
        });
        if signals::read(&both, before.at, now.at, None).restarts == 0 {
            return None;
        }
        let says = match starts {
            Some(_) => said!(
                "counters of {place} fell although its process is the same: the window starts again \
                 from here",
                "{place} 的计数器回落，但进程未重启：统计窗口从此刻重新开始",
                place = place,
            ),
            None => said!(
                "counters of {place} fell: its process began anew, or another one answers; the window \
                 starts again from here",
                "{place} 的计数器回落：进程已重启，或换了进程应答；统计窗口从此刻重新开始",
                place = place,
            ),
        };
        let kind = if starts.is_some() { Kind::Reset } else { Kind::Restarted };
        Some((kind, says))
    }

    /// Says what is told no more and what is told again.
    fn compare(&mut self, told: BTreeSet<Signal>, at: At, tell: &mut dyn FnMut(Kind, Said)) {
        let last_at = self.last_at().unwrap_or(at);
        let missing: Vec<Signal> = self.told.difference(&told).copied().collect();
        let back: Vec<Signal> =
            self.lost.keys().filter(|signal| told.contains(signal)).copied().collect();
        self.lost.retain(|signal, _| !told.contains(signal));
        self.lost.extend(missing.iter().map(|signal| (*signal, last_at)));
        self.told = told;
        if !missing.is_empty() {
            tell(
                Kind::Missing,
                said!(
                    "{place} does not tell {signals} any more",
                    "{place} 不再给出 {signals}",
                    place = self.place.name,
                    signals = named(&missing),
                ),
            );
        }
        if !back.is_empty() {
            tell(
                Kind::Back,
                said!(
                    "{place} tells {signals} again",
                    "{place} 重新给出 {signals}",
                    place = self.place.name,
                    signals = named(&back),
                ),
            );
        }
    }

    /// Why a signal that this place told is not there now; none where it never
    /// told it.
    fn why_not(&self, signal: Signal, now: At) -> Option<Said> {
        if let Some(reason) = &self.place.trouble {
            let was_told = self.told.contains(&signal) || self.lost.contains_key(&signal);
            return was_told.then(|| {
                said!(
                    "{place} gives no metrics: {reason}",
                    "{place} 没有给出指标：{reason}",
                    place = self.place.name,
                    reason = reason,
                )
            });
        }
        let last_at = *self.lost.get(&signal)?;
        Some(said!(
            "{place} told it until {ago:.0} s ago and does not any more",
            "{place} 在 {ago:.0} 秒前还给出它，现在没有了",
            place = self.place.name,
            ago = (now - last_at).s(),
        ))
    }
}

/// When the process of an exposition began, in seconds since 1970; the latest
/// where it tells of several.
fn started(exposition: &Exposition) -> Option<f64> {
    let samples = exposition.family(STARTED).into_iter().flat_map(|family| family.samples());
    samples.map(|sample| sample.value).filter(|value| value.is_finite()).reduce(f64::max)
}

/// Ids of signals, the first few.
fn named(signals: &[Signal]) -> String {
    let ids: Vec<&str> = signals.iter().take(MOST_NAMED).map(|signal| signal.entry().id).collect();
    match signals.len().saturating_sub(MOST_NAMED) {
        0 => ids.join(", "),
        more => format!("{} (+{more})", ids.join(", ")),
    }
}

#[cfg(test)]
mod tests;
