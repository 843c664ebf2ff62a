//! Numbers that are easily misread, and what they do not say here. A lint
//! speaks only where the usual reading would be wrong in this run: one that is
//! always there is not read.

mod between;
mod inside;
mod latency;
mod rate;

use measure::finding::Lint;
use measure::metric::Text;
use measure::said::Said;

pub use between::{Pair, beside, between};

use crate::view::View;

/// A number and how it is misread.
#[derive(Debug)]
pub struct Entry {
    /// Stable id.
    pub id: &'static str,
    /// Its letter and number in the list of lints.
    pub code: &'static str,
    /// The key of the number that it concerns.
    pub concerns: &'static str,
    /// The misreading in a few words.
    pub title: Text,
    /// What the number says instead.
    pub instead: Text,
    /// Of one run, or of two that are compared.
    pub judge: Judge,
}

/// What a lint looks at.
#[derive(Clone, Copy, Debug)]
pub enum Judge {
    /// One run.
    Run(fn(&View<'_>) -> Option<Said>),
    /// Two runs; see [`between`].
    Pair(Pair),
}

/// Every lint, in the order of the list.
pub static LINTS: &[Entry] = &[
    latency::MEAN_ONLY,
    latency::TTFT_IS_PREFILL,
    latency::TPOT_ONLY,
    inside::BUSY_IS_USEFUL,
    rate::RATE_WITHOUT_LENGTHS,
    inside::FULL_IS_GOOD,
    latency::OTHER_DEFINITIONS,
    latency::TWO_MEANS,
    rate::TOTAL_TOKENS,
    rate::SUCCESSES_ONLY,
    latency::CACHE_STATE,
    latency::FEW_SAMPLES,
    rate::USERS_ARE_NO_RATE,
    latency::WARM_UP_INCLUDED,
    between::SINGLE_RUN,
    inside::OTHER_PEAK,
    inside::COST_WITHOUT_BASIS,
    latency::AVERAGED_PERCENTILES,
    rate::SATURATED_POINT,
    latency::CHUNK_IS_TOKEN,
    inside::COARSE_BUCKETS,
    inside::MIXED_SCOPES,
    between::FASTER_AND_WORSE,
    rate::OUTPUT_OF_INPUT_WORK,
    inside::RANDOM_TEXT,
    between::OTHER_WORK,
];

/// The lint of this id or code.
pub fn find(word: &str) -> Option<&'static Entry> {
    LINTS.iter().find(|lint| lint.id == word || lint.code.eq_ignore_ascii_case(word))
}

/// The lints that a run calls for.
pub fn lints(view: &View<'_>) -> Vec<Lint> {
    let of_run = |entry: &Entry| match entry.judge {
        Judge::Run(judge) => judge(view),
        Judge::Pair(_) => None,
    };
    LINTS
        .iter()
        .filter_map(|entry| {
            Some(Lint { id: entry.id, concerns: entry.concerns, says: of_run(entry)? })
        })
        .collect()
}
