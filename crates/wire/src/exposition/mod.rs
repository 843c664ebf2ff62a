//! What engines tell of themselves to Prometheus: the text format, and the
//! families of metrics that vLLM and SGLang have.
//!
//! A [`Snapshot`] is the state of a server in plain numbers. A profile is a table
//! of families, each of which says how its values are read from the snapshot; so
//! one state is told under the names of either engine.

mod histogram;
mod sglang;
mod state;
mod text;
mod vllm;

pub use histogram::Histogram;
pub use state::{
    Answers, Endpoint, EngineState, Facts, Finished, Http, PromptTokens, Snapshot, Summary,
};

use text::Text;

/// Whose names are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// vLLM 0.27.1.
    #[default]
    Vllm,
    /// SGLang 0.5.23.
    Sglang,
}

impl Profile {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Vllm, Self::Sglang];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
        }
    }

    /// The profile of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|profile| profile.name() == name)
    }

    /// An engine that has done nothing, with the bounds of this profile's
    /// histograms. `context` is the most tokens of a prompt and its answer.
    pub fn idle_engine(self, context: u32) -> EngineState {
        let bounds = match self {
            Self::Vllm => vllm::bounds(context),
            Self::Sglang => sglang::bounds(),
        };
        EngineState::idle(&bounds)
    }

    /// Every family that a server with drafts of so many tokens tells of.
    fn families(self, drafted: u32) -> impl Iterator<Item = &'static Family> {
        let (always, with_drafts) = match self {
            Self::Vllm => (vllm::FAMILIES, vllm::OF_DRAFTS),
            Self::Sglang => (sglang::FAMILIES, sglang::OF_DRAFTS),
        };
        always.iter().chain(with_drafts.iter().filter(move |_| drafted > 0))
    }

    /// The exposition of a server, in Prometheus' text format 0.0.4.
    pub fn write(self, snapshot: &Snapshot<'_>) -> String {
        let mut text = Text::new(self, snapshot);
        self.families(snapshot.facts.drafted).for_each(|family| text.family(family));
        text.done()
    }

    /// Families whose values never move here, and the reason of each.
    pub fn still(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.families(0).filter_map(|family| match family.values {
            Values::Still(reason) => Some((family.name, reason)),
            _ => None,
        })
    }

    /// Beginnings of the names of families that the engine has and that are not
    /// told here, and why.
    pub const fn absent(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Vllm => vllm::ABSENT,
            Self::Sglang => sglang::ABSENT,
        }
    }
}

/// The media type of the text format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a family counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Summary,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
        }
    }
}

/// One family of metrics.
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    labels: Labels,
    values: Values,
}

/// Which labels every series of a family has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Labels {
    /// Those of an engine.
    Engine,
    /// Those of what is in front of the engines; all engines are summed.
    Front,
    /// None.
    Bare,
}

type Number = fn(&EngineState) -> f64;
type NumberOfBoth = fn(&EngineState, &Facts) -> f64;
type Spread = fn(&EngineState) -> &Histogram;

/// Where a family's values come from.
enum Values {
    /// A number of each engine.
    Each(Number),
    /// A number of each engine and of what does not change.
    EachOfFacts(NumberOfBoth),
    /// Numbers by the values of one more label.
    By(&'static str, &'static [(&'static str, Number)]),
    /// Accepted drafts by the place in the draft.
    ByPosition,
    /// A histogram of each engine.
    Spread(Spread),
    /// The sum of two histograms of each engine.
    SpreadOfBoth(Spread, Spread),
    /// Histograms by the values of one more label.
    SpreadBy(&'static str, &'static [(&'static str, Spread)]),
    /// What does not change while the server runs.
    Fact(fn(&Facts) -> f64),
    /// Facts as labels, with the value 1.
    Info(fn(&Facts) -> Vec<(&'static str, String)>),
    /// It never moves, for this reason.
    Still(&'static str),
    /// Answers by path, method and status.
    HttpCount,
    /// Bytes by path.
    HttpSize(fn(&Endpoint) -> &Summary),
    /// Seconds by path and method.
    HttpDuration,
    /// Seconds of all answers.
    HttpDurationOfAll,
}

#[cfg(test)]
mod tests;
