//! Ways in which an engine tells a signal.

use std::fmt;

use crate::prometheus::Labels;

/// Series of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The family. Counters have their `_total`, and are found without it too.
    pub family: &'static str,
    /// A label and the values of it that are meant; a value that ends in `*`
    /// stands for all that begin so. Without one, all series are.
    pub only: Option<(&'static str, &'static [&'static str])>,
}

impl Pick {
    /// Whether a series is meant.
    pub fn takes(&self, labels: &Labels) -> bool {
        let Some((label, wanted)) = self.only else { return true };
        let Some(value) = labels.get(label) else { return false };
        wanted.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(beginning) => value.starts_with(beginning),
            None => value == *wanted,
        })
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.family)?;
        match self.only {
            None => Ok(()),
            Some((label, values)) => write!(f, "{{{label}={}}}", values.join("|")),
        }
    }
}

/// How series become a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// As they are, added.
    Told(&'static [Pick]),
    /// One over the other, both as they stand.
    Ratio(Pick, Pick),
    /// One times the other, both as they stand.
    Product(Pick, Pick),
    /// The values of labels as numbers, multiplied.
    Labels(&'static str, &'static [&'static str]),
    /// Less the second; of distributions, the difference of their means.
    Less(Pick, Pick),
    /// Distributions of parts that follow each other: their means are added, and
    /// counted as often as the first.
    Chain(&'static [Pick]),
    /// What a histogram has counted.
    Count(Pick),
    /// The sum of what histograms have seen.
    Sum(&'static [Pick]),
    /// A distribution whose sum and count are counters.
    Pair(Pick, Pick),
    /// A level that is of the last step only: each scrape counts as one.
    Sampled(Pick),
    /// The increase a second of counters.
    Rate(&'static [Pick]),
    /// One over the number of series of the other.
    PerSeries(Pick, Pick),
    /// What the increase of the first is short of that of the second, as a share
    /// of it.
    Rest(Pick, Pick),
}

/// A way with its unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// How.
    pub how: How,
    /// What a value is multiplied by to have the signal's unit.
    pub scale: f64,
}

impl Way {
    pub(super) const fn times(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    /// The families that it needs.
    pub fn families(&self) -> Vec<&'static str> {
        match self.how {
            How::Told(picks) | How::Chain(picks) | How::Sum(picks) | How::Rate(picks) => {
                picks.iter().map(|pick| pick.family).collect()
            }
            How::Ratio(one, other)
            | How::Product(one, other)
            | How::Less(one, other)
            | How::Pair(one, other)
            | How::PerSeries(one, other)
            | How::Rest(one, other) => vec![one.family, other.family],
            How::Count(pick) | How::Sampled(pick) => vec![pick.family],
            How::Labels(family, _) => vec![family],
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |picks: &[Pick], with: &str| {
            picks.iter().map(ToString::to_string).collect::<Vec<_>>().join(with)
        };
        match self.how {
            How::Told(picks) => write!(f, "{}", joined(picks, " + ")),
            How::Ratio(one, other) => write!(f, "{one} ÷ {other}"),
            How::Product(one, other) => write!(f, "{one} × {other}"),
            How::Labels(family, labels) => write!(f, "{family}, label {}", labels.join(" × ")),
            How::Less(one, other) => write!(f, "{one} − {other}"),
            How::Chain(picks) => write!(f, "means of {}", joined(picks, " + ")),
            How::Count(pick) => write!(f, "count of {pick}"),
            How::Sum(picks) => write!(f, "sum of {}", joined(picks, " + ")),
            How::Pair(sum, count) => write!(f, "Δ{sum} ÷ Δ{count}"),
            How::Sampled(pick) => write!(f, "{pick} at each scrape"),
            How::Rate(picks) => write!(f, "Δ({}) ÷ s", joined(picks, " + ")),
            How::PerSeries(one, other) => write!(f, "{one} ÷ number of {other}"),
            How::Rest(part, all) => write!(f, "1 − Δ{part} ÷ Δ{all}"),
        }?;
        if self.scale == 1.0 { Ok(()) } else { write!(f, ", times {:e}", self.scale) }
    }
}

const fn way(how: How) -> Way {
    Way { how, scale: 1.0 }
}

pub(super) const fn all(family: &'static str) -> Pick {
    Pick { family, only: None }
}

pub(super) const fn only(
    family: &'static str,
    label: &'static str,
    values: &'static [&'static str],
) -> Pick {
    Pick { family, only: Some((label, values)) }
}

pub(super) const fn told(picks: &'static [Pick]) -> Way {
    way(How::Told(picks))
}

pub(super) const fn ratio(part: Pick, of: Pick) -> Way {
    way(How::Ratio(part, of))
}

pub(super) const fn product(one: Pick, other: Pick) -> Way {
    way(How::Product(one, other))
}

pub(super) const fn labels(family: &'static str, labels: &'static [&'static str]) -> Way {
    way(How::Labels(family, labels))
}

pub(super) const fn less(one: Pick, other: Pick) -> Way {
    way(How::Less(one, other))
}

pub(super) const fn chain(picks: &'static [Pick]) -> Way {
    way(How::Chain(picks))
}

pub(super) const fn count(pick: Pick) -> Way {
    way(How::Count(pick))
}

pub(super) const fn sum(picks: &'static [Pick]) -> Way {
    way(How::Sum(picks))
}

pub(super) const fn pair(sum: Pick, count: Pick) -> Way {
    way(How::Pair(sum, count))
}

pub(super) const fn sampled(pick: Pick) -> Way {
    way(How::Sampled(pick))
}

pub(super) const fn rate(picks: &'static [Pick]) -> Way {
    way(How::Rate(picks))
}

pub(super) const fn per_series(level: Pick, series: Pick) -> Way {
    way(How::PerSeries(level, series))
}

pub(super) const fn rest(part: Pick, all: Pick) -> Way {
    way(How::Rest(part, all))
}
