//! The latency limits of MLPerf Inference as named objectives.

use super::{Quantity, Term};

/// A named set of limits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// The name behind `mlperf:`.
    pub name: &'static str,
    /// The limits.
    pub terms: &'static [Term],
}

const fn ttft_tpot(name: &'static str, terms: &'static [Term; 2]) -> Preset {
    Preset { name, terms }
}

macro_rules! limits {
    ($ttft:literal / $tpot:literal) => {
        &[
            Term { quantity: Quantity::Ttft, limit_ms: $ttft },
            Term { quantity: Quantity::Tpot, limit_ms: $tpot },
        ]
    };
}

/// The server limits of MLPerf Inference: TTFT and TPOT in ms, as the rules of
/// LoadGen at `mlcommons/inference` `b66003e` (August 2026) have them. There
/// they bound the 99th percentile of a run; here they bound each request, so
/// the same demand is an attainment of 99 % of each term.
pub const PRESETS: &[Preset] = &[
    ttft_tpot("llama2-70b", limits!(2000.0 / 200.0)),
    ttft_tpot("llama2-70b-interactive", limits!(450.0 / 40.0)),
    ttft_tpot("llama3.1-405b", limits!(6000.0 / 175.0)),
    ttft_tpot("llama3.1-405b-interactive", limits!(4500.0 / 80.0)),
    ttft_tpot("llama3.1-8b", limits!(2000.0 / 100.0)),
    ttft_tpot("llama3.1-8b-interactive", limits!(500.0 / 30.0)),
    ttft_tpot("deepseek-r1", limits!(2000.0 / 80.0)),
    ttft_tpot("deepseek-r1-interactive", limits!(1500.0 / 15.0)),
    ttft_tpot("gpt-oss-120b", limits!(3000.0 / 80.0)),
    ttft_tpot("gpt-oss-120b-interactive", limits!(2000.0 / 15.0)),
    ttft_tpot("mixtral-8x7b", limits!(2000.0 / 200.0)),
    Preset { name: "qwen3-vl", terms: &[Term { quantity: Quantity::E2el, limit_ms: 12_000.0 }] },
];
