//! Timed expositions of one or several exporters as signals over a window.

use std::collections::BTreeMap;

use measure::At;
use measure::said::{Said, said};
use measure::signal::{Across, Gauge, Instance, Kind, Reading, Role, Signal, Signals};

use super::follow::{Rank, Source, together};
use super::value::{self, Counted, Value};
use super::{Entry, TABLES, Table};
use crate::prometheus::Exposition;

/// An exposition of an exporter and when it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Scrape<'a> {
    /// On the run's clock.
    pub at: At,
    /// What names the exporter: its address, or `nvml`.
    pub source: &'a str,
    /// What it told.
    pub exposition: &'a Exposition,
}

/// From so many falls of one exporter's counters on, more than one process tells
/// its figures.
const MANY_RESTARTS: usize = 3;

/// Reads what was seen between two instants. Scrapes of one exporter are in the
/// order of time.
///
/// Counters and histograms: what they took in from the last scrape at or before
/// `from` to the first at or after `until`, by series; one that fell began anew,
/// so what it has counted since is added. Gauges: each level for as long as it
/// stood in the window. Then series become instances, and instances the whole,
/// by [`Across`]. Of several engines that tell one signal the first of [`TABLES`]
/// counts. `model` is the one asked for: where an exporter serves several, only
/// its series are taken.
pub fn read(scrapes: &[Scrape<'_>], from: At, until: At, model: Option<&str>) -> Signals {
    let mut signals = Signals { from, until, ..Signals::default() };
    let sources = sources(scrapes, (from, until));
    signals.scraping.sources = sources.iter().map(|source| source.name.to_owned()).collect();
    signals.scraping.taken = scrapes.len() as u32;
    let mut readers: Vec<(&Table, Source<'_>)> = Vec::new();
    for source in &sources {
        for table in TABLES {
            if !source.scrapes.iter().any(|(_, exposition)| table.is_told_by(exposition)) {
                continue;
            }
            let named = signals.engine.and_then(|key| TABLES.iter().find(|one| one.key == key));
            // What stands in front of engines is named only where none of them is.
            if !table.is_of_devices() && named.is_none_or(|named| named.role == Role::Router) {
                signals.engine = Some(table.key);
            }
            let chosen = choose_model(source, table, model, &mut signals.notes);
            if let Ok(model) = chosen {
                for family in table.settings {
                    signals.settings.extend(source.settings(family));
                }
                readers.push((table, Source { model, ..source.clone() }));
            }
        }
    }
    let mut whole = Whole { signals, instances: BTreeMap::new(), falls: BTreeMap::new() };
    for signal in Signal::ALL {
        whole.signal(*signal, &readers);
    }
    whole.done(&sources)
}

/// The exporters, in the order in which they are first met.
fn sources<'a>(scrapes: &[Scrape<'a>], window: (At, At)) -> Vec<Source<'a>> {
    let mut names: Vec<&str> = Vec::new();
    for scrape in scrapes {
        if !names.contains(&scrape.source) {
            names.push(scrape.source);
        }
    }
    let of = |name: &'a str| {
        let own = scrapes.iter().filter(|scrape| scrape.source == name);
        Source::new(name, own.map(|scrape| (scrape.at, scrape.exposition)).collect(), window)
    };
    names.into_iter().map(of).collect()
}

/// Which model's series of an exporter are taken; all of them where it has one
/// only, whatever its name. An error where it is not known which.
fn choose_model<'a>(
    source: &Source<'a>,
    table: &Table,
    asked: Option<&str>,
    notes: &mut Vec<Said>,
) -> Result<Option<&'a str>, ()> {
    let models = source.models(table);
    let Some(asked) = asked else { return Ok(None) };
    if let Some(own) = models.iter().find(|model| **model == asked) {
        return Ok((models.len() > 1).then_some(*own));
    }
    let (name, told) = (source.name, models.join(", "));
    match models.len() {
        0 => Ok(None),
        1 => {
            notes.push(said!(
                "The metrics of {name} are of the model {told}, and {asked} was asked for: they \
                 may be of another server.",
                "{name} 的指标属于模型 {told}，而请求的是 {asked}：可能来自另一个服务。",
                name = name,
                told = told,
                asked = asked,
            ));
            Ok(None)
        }
        _ => {
            notes.push(said!(
                "The metrics of {name} are of several models ({told}) and none is {asked}: they \
                 were left out.",
                "{name} 的指标属于多个模型（{told}），其中没有 {asked}：已全部略去。",
                name = name,
                told = told,
                asked = asked,
            ));
            Err(())
        }
    }
}

/// Signals as they are put together.
struct Whole {
    signals: Signals,
    /// By exporter and by what tells them apart there.
    instances: BTreeMap<(String, Rank), Instance>,
    /// Times that counters of an exporter fell, at most of any series.
    falls: BTreeMap<String, usize>,
}

impl Whole {
    fn signal(&mut self, signal: Signal, readers: &[(&Table, Source<'_>)]) {
        let kind = signal.entry().kind;
        for table in TABLES {
            let Some(entry) = table.entry(signal) else { continue };
            let of_table = || readers.iter().filter(|(other, _)| other.key == table.key);
            let mut values: Vec<((String, Rank), Value)> = Vec::new();
            for (_, source) in of_table() {
                let mut ways = entry.ways.iter();
                let read = ways.find_map(|way| {
                    let read = value::read(source, table, way, kind);
                    (!read.is_empty()).then_some(read)
                });
                for (rank, value) in read.into_iter().flatten() {
                    self.notice(&value, source);
                    let role = source.role(table, &rank);
                    let key = (source.name.to_owned(), rank);
                    self.instances.entry(key.clone()).or_default().role = role;
                    values.push((key, value));
                }
            }
            if entry.zero_is_off && values.iter().all(|(_, value)| value.is_unmoved()) {
                if !values.is_empty() {
                    self.signals.absent.insert(signal, switched_off(table, entry));
                    return;
                }
                continue;
            }
            if !values.is_empty() {
                self.put(signal, values);
                return;
            }
        }
        let reason = absent(signal, readers, self.signals.engine);
        self.signals.absent.insert(signal, reason);
    }

    /// Remembers restarts, and buckets that contradict each other.
    fn notice(&mut self, value: &Value, source: &Source<'_>) {
        let (Value::Counted(counted) | Value::Observed(counted)) = value else { return };
        let in_window = counted.restarts.iter();
        let in_window = in_window.filter(|place| (source.begin + 1..=source.end).contains(*place));
        let mut places: Vec<&usize> = in_window.collect();
        places.sort_unstable();
        places.dedup();
        if !places.is_empty() {
            let known = self.falls.entry(source.name.to_owned()).or_default();
            *known = (*known).max(places.len());
        }
        if counted.is_not_cumulative {
            let note = said!(
                "A histogram of {name} has fewer observations under a bound than under a smaller \
                 one: its buckets were left out.",
                "{name} 的某个直方图，大界限的累计数小于小界限的：已略去其分桶。",
                name = source.name,
            );
            if !self.signals.notes.contains(&note) {
                self.signals.notes.push(note);
            }
        }
    }

    fn put(&mut self, signal: Signal, values: Vec<((String, Rank), Value)>) {
        let Signals { from, until, .. } = self.signals;
        let across = signal.entry().across;
        for (key, value) in &values {
            let reading = reading(std::slice::from_ref(value), across, (from, until));
            if let (Some(reading), Some(instance)) = (reading, self.instances.get_mut(key)) {
                instance.readings.insert(signal, reading);
            }
        }
        let values: Vec<Value> = values.into_iter().map(|(_, value)| value).collect();
        if let Some(whole) = reading(&values, across, (from, until)) {
            self.signals.readings.insert(signal, whole);
        }
        let series = values.iter().map(Value::over_time).collect::<Vec<_>>();
        let series = merged(&series, across);
        if !series.is_empty() {
            self.signals.series.insert(signal, series);
        }
    }

    fn done(mut self, sources: &[Source<'_>]) -> Signals {
        let signals = &mut self.signals;
        for (name, falls) in &self.falls {
            signals.restarts += *falls as u32;
            signals.notes.push(restarted(name, *falls));
        }
        for source in sources {
            signals.notes.extend(uncovered(source, signals.from, signals.until));
        }
        self.instances.retain(|_, instance| !instance.readings.is_empty());
        let instances: Vec<Instance> =
            sources.iter().flat_map(|source| of_source(source.name, &mut self.instances)).collect();
        if instances.len() > 1 {
            self.signals.instances = instances;
        }
        self.signals
    }
}

/// The instances of one exporter. One that stands alone there is the exporter's,
/// with what that tells of no instance.
fn of_source(source: &str, all: &mut BTreeMap<(String, Rank), Instance>) -> Vec<Instance> {
    let (own, others) = std::mem::take(all).into_iter().partition(|((name, _), _)| name == source);
    *all = others;
    let own: BTreeMap<(String, Rank), Instance> = own;
    let ranks = own.keys().filter(|(_, rank)| !rank.is_empty()).count();
    let mut instances: Vec<Instance> = Vec::new();
    for ((_, rank), instance) in own {
        let name = if rank.is_empty() || ranks == 1 {
            source.to_owned()
        } else {
            format!("{source}#{rank}")
        };
        match instances.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.readings.extend(instance.readings);
                known.role = instance.role;
            }
            None => instances.push(Instance { name, ..instance }),
        }
    }
    instances
}

fn restarted(name: &str, falls: usize) -> Said {
    if falls < MANY_RESTARTS {
        return said!(
            "Counters of {name} fell {falls} times: it began anew, and what it has counted since \
             is added.",
            "{name} 的计数器回落了 {falls} 次：进程重启过，已加上重启后的计数。",
            name = name,
            falls = falls,
        );
    }
    said!(
        "Counters of {name} fell {falls} times: several processes seem to answer under this \
         address in turn, and its figures mean little. Name each one's own address.",
        "{name} 的计数器回落了 {falls} 次：可能有多个进程轮流应答该地址，其数值意义不大。请分别给出各自的\
         地址。",
        name = name,
        falls = falls,
    )
}

/// What to say where the scrapes of an exporter leave some of the window out.
fn uncovered(source: &Source<'_>, from: At, until: At) -> Option<Said> {
    let (first, _) = source.scrapes.first()?;
    let (last, _) = source.scrapes.last()?;
    let length_s = (until - from).s();
    let missing_s = (*first - from).s().max(0.0) + (until - *last).s().max(0.0);
    (missing_s > 0.05 * length_s && length_s > 0.0).then(|| {
        said!(
            "{name} was not seen for {missing:.1} s of the {length:.1} s measured.",
            "测量的 {length:.1} 秒中，有 {missing:.1} 秒没有 {name} 的数据。",
            name = source.name,
            missing = missing_s.min(length_s),
            length = length_s,
        )
    })
}

fn switched_off(table: &Table, entry: &Entry) -> Said {
    said!(
        "{engine} tells it and it never moved from 0, so it is switched off: {flag} exposes it.",
        "{engine} 有该指标但始终为 0，说明未启用：加上 {flag}。",
        engine = table.name,
        flag = entry.exposed_by,
    )
}

/// Why a signal is not there, and what would expose it.
fn absent(signal: Signal, readers: &[(&Table, Source<'_>)], engine: Option<&str>) -> Said {
    let seen =
        readers.iter().find_map(|(table, source)| Some((table, source, table.entry(signal)?)));
    if let Some((table, source, entry)) = seen {
        let (engine, family) = (table.name, entry.ways[0].families()[0]);
        let has_two = source.end > source.begin;
        let is_level = matches!(signal.entry().kind, Kind::Gauge | Kind::Fact);
        if !has_two && !is_level {
            return said!(
                "Only one scrape of {name} lies in or around the window: nothing can be counted \
                 between two.",
                "窗口内外只有一次对 {name} 的抓取：无法求差。",
                name = source.name,
            );
        }
        let flag = [entry.exposed_by, table.exposed_by].into_iter().find(|flag| !flag.is_empty());
        return match flag {
            Some(flag) => said!(
                "{engine} did not tell {family}: {flag} exposes it",
                "{engine} 未给出 {family}：可用 {flag} 开启",
                engine = engine,
                family = family,
                flag = flag,
            ),
            None => said!(
                "{engine} did not tell {family}: this version or configuration has none",
                "{engine} 未给出 {family}：该版本或配置没有此指标",
                engine = engine,
                family = family,
            ),
        };
    }
    let of_devices = |table: &&Table| table.is_of_devices() && table.entry(signal).is_some();
    let exporters: Vec<&str> = TABLES.iter().filter(of_devices).map(|table| table.name).collect();
    if !exporters.is_empty() {
        let exporters = exporters.join(", ");
        return said!(
            "no exporter that tells it was scraped ({exporters}): name one with --metrics-url",
            "没有抓取能给出它的导出器（{exporters}）：用 --metrics-url 指定",
            exporters = exporters,
        );
    }
    match engine.and_then(|key| TABLES.iter().find(|table| table.key == key)) {
        Some(table) => {
            said!("{engine} does not tell it", "{engine} 不提供此指标", engine = table.name,)
        }
        None => said!("no metrics of a known engine were scraped", "没有抓取到已知引擎的指标"),
    }
}

/// Values of instances as one reading.
fn reading(values: &[Value], across: Across, window: (At, At)) -> Option<Reading> {
    let counted = || {
        values.iter().filter_map(|value| match value {
            Value::Counted(counted) | Value::Observed(counted) => Some(counted),
            _ => None,
        })
    };
    match values.first()? {
        Value::Level(_) => level(values, across, window).map(Reading::Gauge),
        Value::Fact(_) => {
            let facts = values.iter().filter_map(|value| match value {
                Value::Fact(fact) => Some(*fact),
                _ => None,
            });
            Some(Reading::Fact(combined(facts, across)))
        }
        Value::Counted(_) => {
            Some(Reading::Counter(combined(counted().map(|one| one.taken.count), across)))
        }
        Value::Observed(first) => {
            let others = counted().skip(1);
            let all = others.fold(first.taken.clone(), |all, one| together(&all, &one.taken));
            Some(Reading::Histogram(all))
        }
    }
}

fn combined(values: impl Iterator<Item = f64>, across: Across) -> f64 {
    let values: Vec<f64> = values.collect();
    match across {
        Across::Sum => values.iter().sum(),
        Across::Mean => values.iter().sum::<f64>() / values.len() as f64,
        Across::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

/// A gauge of all instances. Where their mean is taken, the smallest and the
/// largest are those of any instance: an average hides the one that is full.
fn level(values: &[Value], across: Across, window: (At, At)) -> Option<Gauge> {
    let series: Vec<Vec<(At, f64)>> = values.iter().map(Value::over_time).collect();
    let mut whole = stood(&merged(&series, across), window)?;
    if across == Across::Mean {
        let each = || series.iter().filter_map(|points| stood(points, window));
        whole.min = each().map(|gauge| gauge.min).fold(whole.min, f64::min);
        whole.max = each().map(|gauge| gauge.max).fold(whole.max, f64::max);
    }
    Some(whole)
}

/// Levels over a window, each for as long as it stood.
fn stood(points: &[(At, f64)], (from, until): (At, At)) -> Option<Gauge> {
    let inside: Vec<(f64, f64)> = points
        .iter()
        .enumerate()
        .filter_map(|(place, (at, level))| {
            let next = points.get(place + 1).map_or(until, |(next, _)| *next);
            let length_s = (next.min(until) - (*at).max(from)).s();
            (length_s > 0.0).then_some((*level, length_s))
        })
        .collect();
    // Where no level stood for any time, each scrape counts alike.
    let all = || points.iter().map(|(_, level)| (*level, 1.0)).collect();
    let inside: Vec<(f64, f64)> = if inside.is_empty() { all() } else { inside };
    let length: f64 = inside.iter().map(|(_, length)| length).sum();
    let levels = || inside.iter().map(|(level, _)| *level);
    Some(Gauge {
        mean: inside.iter().map(|(level, weight)| level * weight).sum::<f64>() / length,
        min: levels().fold(f64::INFINITY, f64::min),
        max: levels().fold(f64::NEG_INFINITY, f64::max),
        first: levels().next()?,
        last: levels().next_back()?,
        n: inside.len() as u32,
    })
}

/// Series of instances as one: at each instant at which one of them was told,
/// from when on all of them were.
fn merged(series: &[Vec<(At, f64)>], across: Across) -> Vec<(At, f64)> {
    let told: Vec<&Vec<(At, f64)>> = series.iter().filter(|points| !points.is_empty()).collect();
    let [first, others @ ..] = told.as_slice() else { return Vec::new() };
    if others.is_empty() {
        return (*first).clone();
    }
    let mut instants: Vec<At> = told.iter().flat_map(|points| points.iter().map(|p| p.0)).collect();
    instants.sort_unstable();
    instants.dedup();
    let from = told.iter().map(|points| points[0].0).max().unwrap_or_default();
    instants.retain(|instant| *instant >= from);
    let value = |instant| combined(told.iter().map(|points| level_at(points, instant)), across);
    instants.into_iter().map(|instant| (instant, value(instant))).collect()
}

/// The level that stands at an instant, which is not before the first one.
fn level_at(points: &[(At, f64)], instant: At) -> f64 {
    points[points.partition_point(|(at, _)| *at <= instant).saturating_sub(1)].1
}

impl Value {
    fn over_time(&self) -> Vec<(At, f64)> {
        match self {
            Self::Level(points) => points.clone(),
            Self::Counted(Counted { rates, .. }) | Self::Observed(Counted { rates, .. }) => {
                rates.clone()
            }
            Self::Fact(_) => Vec::new(),
        }
    }

    /// Whether it has counted nothing since its process began.
    fn is_unmoved(&self) -> bool {
        let Self::Counted(counted) = self else { return false };
        counted.since_start == 0.0 && counted.taken.count == 0.0
    }
}
