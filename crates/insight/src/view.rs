//! What rules look at: a run's figures from the client's side and the signals
//! from the server's, by the symbols that the rules are written in.

use measure::definition::GOODPUT;
use measure::deployment::Deployment;
use measure::request::Timed;
use measure::signal::{Signal, Signals};
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::{Outcome, Record};

/// A run as a rule sees it. Every figure is `None` where it is not known.
#[derive(Debug)]
pub struct View<'a> {
    /// The figures.
    pub summary: &'a Summary,
    /// The rows.
    pub records: &'a [Record],
    /// The rows with their latencies, by our own definitions.
    pub timed: Vec<Timed<'a>>,
    /// What the user says of the machines.
    pub deployment: &'a Deployment,
}

impl<'a> View<'a> {
    /// The view of a run.
    pub fn new(summary: &'a Summary, records: &'a [Record], deployment: &'a Deployment) -> Self {
        let timed = records
            .iter()
            .map(|record| Timed::new(record, &GOODPUT, summary.facts.settings))
            .collect();
        Self { summary, records, timed, deployment }
    }

    /// What was seen inside.
    pub fn signals(&self) -> Option<&'a Signals> {
        self.summary.inside.signals.as_ref()
    }

    /// One number of a signal; see [`Signals::value`].
    pub fn signal(&self, signal: Signal) -> Option<f64> {
        self.signals()?.value(signal)
    }

    /// The distribution of a metric over successes.
    pub fn metric(&self, key: &str) -> Option<&'a Distribution> {
        let found = self.summary.metrics.iter().find(|(known, _)| *known == key);
        found.map(|(_, distribution)| distribution).filter(|distribution| distribution.n > 0)
    }

    /// A figure of it: `mean`, `p50`, `p99`, `max`.
    pub fn figure(&self, key: &str, statistic: &str) -> Option<f64> {
        self.metric(key)?.figure(statistic)
    }

    /// Requests that ended well.
    pub fn ok(&self) -> impl Iterator<Item = &Timed<'a>> {
        self.timed.iter().filter(|request| request.record.outcome == Outcome::Ok)
    }

    /// Seats of the deployment: what the engine tells, or the user.
    pub fn seats(&self) -> Option<f64> {
        self.signal(Signal::SeatLimit).or_else(|| self.deployment.seats.map(f64::from))
    }

    /// Preemptions for each request that finished.
    pub fn preemptions_per_request(&self) -> Option<f64> {
        let signals = self.signals()?;
        let finished = signals.increase(Signal::Finished).filter(|finished| *finished > 0.0)?;
        Some(signals.increase(Signal::Preemptions)? / finished)
    }

    /// Mean of a server's histogram, ms.
    pub fn server_ms(&self, signal: Signal) -> Option<f64> {
        self.signal(signal).map(|seconds| seconds * 1e3)
    }
}
