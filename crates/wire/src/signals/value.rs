//! One way of telling a signal, read from one exporter: a value for each of its
//! instances.

use std::collections::BTreeMap;

use measure::At;
use measure::signal::{Kind, Taken};

use super::Table;
use super::follow::{Growth, Rank, Source};
use super::way::{How, Pick, Way};

/// A signal of one instance.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// Levels, each from its instant on.
    Level(Vec<(At, f64)>),
    /// What was counted.
    Counted(Counted),
    /// What was observed.
    Observed(Counted),
    /// What does not change.
    Fact(f64),
}

/// What a counter or a distribution took in.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) taken: Taken,
    /// The increase a second of the count since the scrape before.
    pub(super) rates: Vec<(At, f64)>,
    pub(super) since_start: f64,
    pub(super) restarts: Vec<usize>,
    pub(super) is_not_cumulative: bool,
}

type Values = BTreeMap<Rank, Value>;
type Levels = BTreeMap<Rank, Vec<Option<f64>>>;

/// Reads a way as a signal of this kind; empty where the exporter does not tell it.
pub(super) fn read(source: &Source<'_>, table: &Table, way: &Way, kind: Kind) -> Values {
    let reader = Reader { source, table };
    let values = match kind {
        Kind::Gauge => reader.gauge(way.how),
        Kind::Fact => reader.fact(way.how),
        Kind::Counter => reader.counter(way.how),
        Kind::Histogram => reader.distribution(way.how),
    };
    values.into_iter().map(|(rank, value)| (rank, value.times(way.scale))).collect()
}

struct Reader<'a> {
    source: &'a Source<'a>,
    table: &'a Table,
}

impl Reader<'_> {
    fn gauge(&self, how: How) -> Values {
        let levels = match how {
            How::Told(picks) => self.sum_of_levels(picks),
            How::Ratio(part, of) => self.both_levels(&part, &of, |part, of| part / of),
            How::PerSeries(level, series) => {
                let count = self.source.series_at_end(&series) as f64;
                let levels = self.source.levels(self.table, &level).into_iter();
                let shared = |told: Option<f64>| told.filter(|_| count > 0.0).map(|l| l / count);
                levels.map(|(rank, told)| (rank, told.into_iter().map(shared).collect())).collect()
            }
            How::Rate(picks) => return self.rates(picks),
            How::Rest(part, all) => return self.rest(&part, &all),
            _ => Levels::new(),
        };
        let points = |told: Vec<Option<f64>>| {
            let window = told.into_iter().enumerate().take(self.source.end + 1);
            let window = window.skip(self.source.begin);
            let finite = window.filter_map(|(place, told)| Some((place, told?)));
            let finite = finite.filter(|(_, told)| told.is_finite());
            finite.map(|(place, told)| (self.source.scrapes[place].0, told)).collect::<Vec<_>>()
        };
        let levels = levels.into_iter().map(|(rank, told)| (rank, points(told)));
        let told = levels.filter(|(_, points)| !points.is_empty());
        told.map(|(rank, points)| (rank, Value::Level(points))).collect()
    }

    fn sum_of_levels(&self, picks: &[Pick]) -> Levels {
        let mut picks = picks.iter();
        let Some(first) = picks.next() else { return Levels::new() };
        let first = self.source.levels(self.table, first);
        picks.fold(first, |sum, pick| {
            let other = self.source.levels(self.table, pick);
            both(sum, &other, |sum, other| sum + other)
        })
    }

    fn both_levels(&self, one: &Pick, other: &Pick, with: fn(f64, f64) -> f64) -> Levels {
        let other = self.source.levels(self.table, other);
        both(self.source.levels(self.table, one), &other, with)
    }

    /// The increase a second of counters as a level: it stands from the scrape
    /// before on.
    fn rates(&self, picks: &[Pick]) -> Values {
        let values = self.sum_of_growths(picks).into_iter().map(|(rank, growth)| {
            let points = self.intervals().map(|(place, length_s)| {
                (self.source.scrapes[place - 1].0, growth.steps[place].0 / length_s)
            });
            (rank, Value::Level(points.collect()))
        });
        values.filter(|(_, value)| !value.is_empty()).collect()
    }

    fn rest(&self, part: &Pick, all: &Pick) -> Values {
        let part = self.source.growths(self.table, part);
        let mut values = Values::new();
        for (rank, all) in self.source.growths(self.table, all) {
            let Some(part) = part.get(&rank) else { continue };
            let points = self.intervals().filter_map(|(place, _)| {
                let share = 1.0 - part.steps[place].0 / all.steps[place].0;
                share.is_finite().then_some((self.source.scrapes[place - 1].0, share))
            });
            values.insert(rank, Value::Level(points.collect()));
        }
        values.retain(|_, value| !value.is_empty());
        values
    }

    /// Scrapes of the window with the time since the one before, seconds.
    fn intervals(&self) -> impl Iterator<Item = (usize, f64)> {
        let scrapes = &self.source.scrapes;
        (self.source.begin + 1..=self.source.end).filter_map(move |place| {
            let length_s = (scrapes.get(place)?.0 - scrapes[place - 1].0).s();
            (length_s > 0.0).then_some((place, length_s))
        })
    }

    fn fact(&self, how: How) -> Values {
        let levels = match how {
            How::Told(picks) => self.sum_of_levels(picks),
            How::Product(one, other) => self.both_levels(&one, &other, |one, other| one * other),
            How::Labels(family, labels) => {
                return self
                    .source
                    .label_values(self.table, family, labels)
                    .into_iter()
                    .map(|(rank, fact)| (rank, Value::Fact(fact)))
                    .collect();
            }
            _ => Levels::new(),
        };
        let last = |told: Vec<Option<f64>>| {
            told.into_iter().take(self.source.end + 1).flatten().rfind(|fact| fact.is_finite())
        };
        let facts = levels.into_iter().filter_map(|(rank, told)| Some((rank, last(told)?)));
        facts.map(|(rank, fact)| (rank, Value::Fact(fact))).collect()
    }

    fn counter(&self, how: How) -> Values {
        let growths = match how {
            How::Told(picks) => self.sum_of_growths(picks),
            How::Count(pick) => self.source.growths(self.table, &pick),
            How::Sum(picks) => self.sum_of_growths(picks).into_iter().map(by_sum).collect(),
            How::Less(all, part) => {
                let part = self.source.growths(self.table, &part);
                let all = self.source.growths(self.table, &all).into_iter();
                all.filter_map(|(rank, all)| Some((rank.clone(), all.less(part.get(&rank)?))))
                    .collect()
            }
            _ => BTreeMap::new(),
        };
        let counted = growths.into_iter().map(|(rank, growth)| (rank, self.counted(growth)));
        // Two scrapes are the least between which something can be counted.
        let has_two = self.source.end > self.source.begin;
        counted.filter(|_| has_two).map(|(rank, value)| (rank, Value::Counted(value))).collect()
    }

    /// What several counters took in together. One whose series lack because
    /// nothing was counted yet took in nothing.
    fn sum_of_growths(&self, picks: &[Pick]) -> BTreeMap<Rank, Growth> {
        let nothing =
            Growth { steps: vec![(0.0, 0.0); self.source.scrapes.len()], ..Growth::default() };
        let mut all: Option<BTreeMap<Rank, Growth>> = None;
        for pick in picks {
            let mut one = self.source.growths(self.table, pick);
            if one.is_empty() && self.source.has_other_series(pick) {
                one = self.source.ranks(self.table, pick.family, &nothing);
            }
            all = Some(match all {
                None => one,
                Some(mut all) => {
                    all.retain(|rank, _| one.contains_key(rank));
                    all.iter_mut().for_each(|(rank, growth)| growth.add(&one[rank]));
                    all
                }
            });
        }
        all.unwrap_or_default()
    }

    fn counted(&self, growth: Growth) -> Counted {
        let rates = self.intervals().map(|(place, length_s)| {
            (self.source.scrapes[place].0, growth.steps[place].0 / length_s)
        });
        Counted {
            rates: rates.collect(),
            taken: growth.taken,
            since_start: growth.since_start,
            restarts: growth.restarts,
            is_not_cumulative: growth.is_not_cumulative,
        }
    }

    fn distribution(&self, how: How) -> Values {
        let growths = match how {
            How::Told(picks) => self.sum_of_growths(picks),
            How::Less(one, other) => self.parts(&[one, other], |means| means[0] - means[1]),
            How::Chain(picks) => self.parts(picks, |means| means.iter().sum()),
            How::Pair(sum, count) => self.pair(&sum, &count),
            How::Sampled(pick) => return self.sampled(&pick),
            _ => BTreeMap::new(),
        };
        let has_two = self.source.end > self.source.begin;
        let counted = growths.into_iter().map(|(rank, growth)| (rank, self.counted(growth)));
        counted.filter(|_| has_two).map(|(rank, value)| (rank, Value::Observed(value))).collect()
    }

    /// A distribution made of the means of others, counted as the first one is.
    fn parts(&self, picks: &[Pick], mean: fn(&[f64]) -> f64) -> BTreeMap<Rank, Growth> {
        let parts: Vec<_> =
            picks.iter().map(|pick| self.source.growths(self.table, pick)).collect();
        let Some(first) = parts.first() else { return BTreeMap::new() };
        let mut made = BTreeMap::new();
        for (rank, one) in first {
            let all: Option<Vec<&Growth>> = parts.iter().map(|part| part.get(rank)).collect();
            let Some(all) = all else { continue };
            let means: Vec<f64> =
                all.iter().map(|part| part.taken.mean().unwrap_or_default()).collect();
            let count = one.taken.count;
            let taken = Taken { count, sum: mean(&means) * count, buckets: Vec::new() };
            made.insert(rank.clone(), Growth { taken, ..one.clone() });
        }
        made
    }

    fn pair(&self, sum: &Pick, count: &Pick) -> BTreeMap<Rank, Growth> {
        let sums = self.source.growths(self.table, sum);
        let counts = self.source.growths(self.table, count).into_iter();
        counts
            .filter_map(|(rank, mut count)| {
                count.taken.sum = sums.get(&rank)?.taken.count;
                count.taken.buckets = Vec::new();
                Some((rank, count))
            })
            .collect()
    }

    fn sampled(&self, pick: &Pick) -> Values {
        let mut values = Values::new();
        for (rank, told) in self.source.levels(self.table, pick) {
            let window = told.iter().take(self.source.end + 1).skip(self.source.begin);
            let samples: Vec<f64> = window.flatten().copied().filter(|l| l.is_finite()).collect();
            if !samples.is_empty() {
                let (count, sum) = (samples.len() as f64, samples.iter().sum());
                let taken = Taken { count, sum, buckets: Vec::new() };
                values.insert(rank, Value::Observed(Counted { taken, ..Counted::default() }));
            }
        }
        values
    }
}

/// The sums of histograms as counts.
fn by_sum((rank, mut growth): (Rank, Growth)) -> (Rank, Growth) {
    growth.steps.iter_mut().for_each(|step| *step = (step.1, 0.0));
    growth.taken = Taken { count: growth.taken.sum, sum: 0.0, buckets: Vec::new() };
    (rank, growth)
}

fn both(one: Levels, other: &Levels, with: fn(f64, f64) -> f64) -> Levels {
    let of_both = one.into_iter().filter_map(|(rank, levels)| {
        let others = other.get(&rank)?;
        let told = levels.into_iter().zip(others);
        let told = told.map(|(one, other)| Some(with(one?, (*other)?)));
        Some((rank, told.collect()))
    });
    of_both.collect()
}

impl Value {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Level(points) if points.is_empty())
    }

    fn times(self, scale: f64) -> Self {
        if scale == 1.0 {
            return self;
        }
        let points = |points: Vec<(At, f64)>| {
            points.into_iter().map(|(at, value)| (at, value * scale)).collect::<Vec<_>>()
        };
        match self {
            Self::Level(levels) => Self::Level(points(levels)),
            Self::Fact(fact) => Self::Fact(fact * scale),
            Self::Counted(counted) => Self::Counted(Counted {
                taken: Taken { count: counted.taken.count * scale, ..counted.taken },
                rates: points(counted.rates),
                ..counted
            }),
            Self::Observed(Counted { taken, rates, since_start, restarts, is_not_cumulative }) => {
                let buckets = taken.buckets.into_iter();
                let buckets = buckets.map(|(bound, count)| (bound * scale, count)).collect();
                let taken = Taken { sum: taken.sum * scale, buckets, ..taken };
                Self::Observed(Counted { taken, rates, since_start, restarts, is_not_cumulative })
            }
        }
    }
}
