//! Counts of what was found against what was there.

use std::collections::BTreeMap;

use measure::finding::Confidence;
use serde_json::{Value, json};

use crate::cause::{Cause, Seen};
use crate::judge::Found;
use crate::scenario::Scenario;

/// Hits among trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How often it was so.
    pub hits: u32,
    /// Of how many.
    pub of: u32,
}

/// The quantile of the normal distribution for 95 % in the middle.
const Z: f64 = 1.959_964;

impl Share {
    fn count(&mut self, hit: bool) {
        self.hits += u32::from(hit);
        self.of += 1;
    }

    /// The share, 0 to 1.
    pub fn value(&self) -> Option<f64> {
        (self.of > 0).then(|| f64::from(self.hits) / f64::from(self.of))
    }

    /// Wilson's interval of it at 95 % (Wilson 1927).
    pub fn interval(&self) -> Option<(f64, f64)> {
        let (p, n) = (self.value()?, f64::from(self.of));
        let z2 = Z * Z;
        let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        Some(((middle - half).max(0.0), (middle + half).min(1.0)))
    }
}

/// What a share has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
    /// It is only told.
    None,
}

impl Goal {
    /// Whether a share meets it; none where there is no goal or no share.
    pub fn met(self, share: &Share) -> Option<bool> {
        let value = share.value()?;
        match self {
            Self::AtLeast(least) => Some(value >= least),
            Self::AtMost(most) => Some(value <= most),
            Self::None => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::AtLeast(least) => format!("at least {:.0} %", 100.0 * least),
            Self::AtMost(most) => format!("at most {:.0} %", 100.0 * most),
            Self::None => "—".to_owned(),
        }
    }
}

/// Everything that is counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    single_first: Share,
    single_first_rule: Share,
    single_among_two: Share,
    pair_either_first: Share,
    pair_both: Share,
    healthy_sick: Share,
    /// Whether findings name a cause that is there, by how sure they are.
    precision: BTreeMap<Confidence, Share>,
    /// Findings of nothing that is there: by how sure, by rule.
    unfounded: BTreeMap<&'static str, BTreeMap<&'static str, u32>>,
    client_named: Share,
    client_wrong: Share,
    elsewhere_wrong: Share,
    client_healthy_sick: Share,
    /// By cause: how often the first finding is of each rule.
    confusion: BTreeMap<&'static str, BTreeMap<&'static str, u32>>,
    /// The same without the server's metrics.
    client_confusion: BTreeMap<&'static str, BTreeMap<&'static str, u32>>,
}

/// The name of a run without causes, and of a list without findings.
const HEALTHY: &str = "healthy";
const NOTHING: &str = "nothing";

fn first_code(found: &[Found]) -> &'static str {
    found.first().map_or(NOTHING, |first| first.code)
}

impl Matrix {
    /// Counts a scenario: what is found, and what is found by the client alone.
    pub fn count(&mut self, scenario: &Scenario, found: &[Found], by_client: &[Found]) {
        for finding in found {
            let is_right = finding.is_there(scenario);
            self.precision.entry(finding.confidence).or_default().count(is_right);
            if !is_right {
                let of = self.unfounded.entry(finding.confidence.text().en).or_default();
                *of.entry(finding.code).or_default() += 1;
            }
        }
        match scenario.labels.as_slice() {
            [] => self.count_healthy(found, by_client),
            [cause] => self.count_single(cause, scenario, found, by_client),
            causes => self.count_pair(causes, found),
        }
    }

    fn count_healthy(&mut self, found: &[Found], by_client: &[Found]) {
        let is_sick = |found: &[Found]| {
            found.iter().any(|finding| finding.confidence == Confidence::Confirmed)
        };
        self.healthy_sick.count(is_sick(found));
        self.client_healthy_sick.count(is_sick(by_client));
        *self.confusion.entry(HEALTHY).or_default().entry(first_code(found)).or_default() += 1;
        let row = self.client_confusion.entry(HEALTHY).or_default();
        *row.entry(first_code(by_client)).or_default() += 1;
    }

    fn count_single(
        &mut self,
        cause: &'static Cause,
        scenario: &Scenario,
        found: &[Found],
        by_client: &[Found],
    ) {
        self.single_first.count(found.first().is_some_and(|first| first.places(cause)));
        self.single_first_rule.count(found.first().is_some_and(|first| first.names(cause)));
        self.single_among_two.count(found.iter().take(2).any(|finding| finding.places(cause)));
        let first = by_client.first();
        let (sees, misleads) = (
            first.is_some_and(|first| first.sees(cause)),
            first.is_some_and(|first| !first.sees(cause) && !first.is_there(scenario)),
        );
        if let Seen::As(_) = cause.client {
            self.client_named.count(sees);
            self.client_wrong.count(misleads);
        } else {
            self.elsewhere_wrong.count(misleads);
        }
        *self.confusion.entry(cause.id).or_default().entry(first_code(found)).or_default() += 1;
        let row = self.client_confusion.entry(cause.id).or_default();
        *row.entry(first_code(by_client)).or_default() += 1;
    }

    fn count_pair(&mut self, causes: &[&'static Cause], found: &[Found]) {
        let first = found.first();
        let either = causes.iter().any(|cause| first.is_some_and(|first| first.places(cause)));
        self.pair_either_first.count(either);
        let both = match found {
            [first, second, ..] => {
                let in_order = |one: usize, other: usize| {
                    first.places(causes[one]) && second.places(causes[other])
                };
                in_order(0, 1) || in_order(1, 0)
            }
            _ => false,
        };
        self.pair_both.count(both);
    }

    /// Every share with what it must be.
    pub fn shares(&self) -> Vec<(&'static str, Share, Goal)> {
        let precision = |confidence| self.precision.get(&confidence).copied().unwrap_or_default();
        vec![
            ("one cause: its class is first", self.single_first, Goal::AtLeast(0.9)),
            ("one cause: its own rule is first", self.single_first_rule, Goal::None),
            (
                "one cause: its class is among the first two",
                self.single_among_two,
                Goal::AtLeast(0.97),
            ),
            ("two causes: one of them is first", self.pair_either_first, Goal::AtLeast(0.9)),
            ("two causes: both are the first two", self.pair_both, Goal::AtLeast(0.85)),
            ("healthy: something is confirmed", self.healthy_sick, Goal::AtMost(0.01)),
            ("what is confirmed is there", precision(Confidence::Confirmed), Goal::AtLeast(0.95)),
            ("what is likely is there", precision(Confidence::Likely), Goal::AtLeast(0.75)),
            ("what is possible is there", precision(Confidence::Possible), Goal::None),
            ("client alone, what it can tell: named first", self.client_named, Goal::AtLeast(0.7)),
            (
                "client alone, what it can tell: what is first is not there",
                self.client_wrong,
                Goal::AtMost(0.05),
            ),
            (
                "client alone, the rest: what is first is not there",
                self.elsewhere_wrong,
                Goal::None,
            ),
            (
                "client alone, healthy: something is confirmed",
                self.client_healthy_sick,
                Goal::AtMost(0.01),
            ),
        ]
    }

    /// The result as a file keeps it.
    pub fn to_json(&self, date: &str, seeds: &str, healthy: u32) -> Value {
        let shares = self.shares().into_iter().map(|(name, share, goal)| {
            let (low, high) = share.interval().unzip();
            json!({
                "name": name, "hits": share.hits, "of": share.of, "share": share.value(),
                "low": low, "high": high, "goal": goal.words(), "met": goal.met(&share),
            })
        });
        json!({
            "date": date,
            "seeds": seeds,
            "healthy": healthy,
            "shares": shares.collect::<Vec<_>>(),
            "unfounded": self.unfounded,
            "first_by_cause": self.confusion,
            "first_by_cause_client_alone": self.client_confusion,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wilson's interval for 8 of 10, as in Brown, Cai and DasGupta (2001).
    #[test]
    fn an_interval_is_wilsons() {
        let (low, high) = Share { hits: 8, of: 10 }.interval().unwrap();
        assert!((low - 0.4902).abs() < 5e-4 && (high - 0.9433).abs() < 5e-4, "{low} {high}");
        let (low, high) = Share { hits: 0, of: 300 }.interval().unwrap();
        assert!(low < 1e-12 && (0.01..0.02).contains(&high), "{low} {high}");
        assert_eq!(Share::default().interval(), None);
    }
}
