//! Where the time to the first token goes: an open list of stages.

use crate::finding::From;
use crate::metric::Text;
use crate::said::Said;

/// A part of TTFT.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Stable id: `client_wait`, `network`, `front_end`, `queue`, `prefill` …
    pub id: &'static str,
    /// What it is.
    pub name: Text,
    /// Mean over the requests of the window, ms.
    pub mean_ms: f64,
    /// Share of the mean TTFT.
    pub share: f64,
    /// True for what is left when all others are taken away: at most one.
    pub is_residual: bool,
    /// Where the number comes from.
    pub from: From,
    /// How it was found, in words.
    pub how: Said,
}

/// Metrics of the registry that are the mean of a stage: key, and the stage's id.
pub const METRICS: &[(&str, &str)] = &[("queueing_ms", "queue"), ("prefill_ms", "prefill")];

/// The split of TTFT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stages {
    /// The mean TTFT that is split, ms.
    pub ttft_mean_ms: Option<f64>,
    /// The stages, in the order in which a request passes them.
    pub stages: Vec<Stage>,
    /// Requests of others that the server's figures include, as a share; none
    /// where it is not known.
    pub foreign_share: Option<f64>,
    /// Why there is no split, or no full one.
    pub refused: Option<Said>,
    /// What to know about it.
    pub notes: Vec<Said>,
}

impl Stages {
    /// The stage of this id.
    pub fn stage(&self, id: &str) -> Option<&Stage> {
        self.stages.iter().find(|stage| stage.id == id)
    }

    /// The value of a metric of the registry that is a stage, ms.
    pub fn metric(&self, key: &str) -> Option<f64> {
        let (_, id) = METRICS.iter().find(|(metric, _)| *metric == key)?;
        Some(self.stage(id)?.mean_ms)
    }
}
