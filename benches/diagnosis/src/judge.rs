//! What the rules say of a scenario, and whether it is right.

use insight::rule;
use measure::Record;
use measure::definition::GOODPUT;
use measure::finding::{Class, Confidence, Finding};
use measure::summary::summarise;

use crate::cause::{Cause, Seen};
use crate::scenario::Scenario;

/// A finding, as far as it is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The rule's id.
    pub rule: &'static str,
    /// Its letter and number.
    pub code: &'static str,
    /// Where it says that the bottleneck lies.
    pub class: Class,
    /// How sure it is.
    pub confidence: Confidence,
    /// The share of what is wrong that it explains.
    pub share: f64,
}

impl Found {
    fn of(finding: &Finding) -> Self {
        Self {
            rule: finding.rule,
            code: rule::find(finding.rule).map_or("", |rule| rule.code),
            class: finding.class,
            confidence: finding.confidence,
            share: finding.share,
        }
    }

    /// Whether its rule is one of the cause's own.
    pub fn names(&self, cause: &Cause) -> bool {
        cause.codes.contains(&self.code)
    }

    /// Whether it says where the cause lies: by its rule, or by the class of the
    /// cause's first rule.
    pub fn places(&self, cause: &Cause) -> bool {
        let class = rule::find(cause.codes[0]).map(|rule| rule.class);
        self.names(cause) || class == Some(self.class)
    }

    /// Whether what it names is in the scenario, put in or not.
    pub fn is_there(&self, scenario: &Scenario) -> bool {
        scenario.labels.iter().any(|cause| self.places(cause)) || scenario.has(self.code)
    }

    /// Whether it says as much of the cause as can be told without the server's
    /// metrics.
    pub fn sees(&self, cause: &Cause) -> bool {
        match cause.client {
            Seen::As(codes) => codes.contains(&self.code) || self.places(cause),
            Seen::Undecided => self.places(cause),
        }
    }
}

/// What is found with the server's metrics.
pub fn found(scenario: &Scenario) -> Vec<Found> {
    examined(scenario, &scenario.records, true)
}

/// What is found by what the client saw alone.
pub fn found_by_client(scenario: &Scenario) -> Vec<Found> {
    let mut records = scenario.records.clone();
    records.iter_mut().for_each(|record| record.answer.server_timings.clear());
    examined(scenario, &records, false)
}

fn examined(scenario: &Scenario, records: &[Record], with_signals: bool) -> Vec<Found> {
    let mut summary = summarise(records, &scenario.facts, &GOODPUT);
    let signals = with_signals.then(|| scenario.signals.clone());
    insight::examine(&mut summary, records, signals, &scenario.facts.deployment);
    let findings = summary.inside.findings.unwrap_or_default();
    findings.iter().map(Found::of).collect()
}
