//! The metric registry: one entry a metric, from which METRICS.md, `explain`,
//! the JSON schema's text and tooltips are made.

mod table;

use crate::request::{Timed, Value};
use crate::undefined::Undefined;

pub use table::METRICS;

/// One metric, as data.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Key in JSON, with its unit: `ttft_ms`.
    pub key: &'static str,
    /// The field's own word: `TTFT`.
    pub symbol: &'static str,
    /// Full name.
    pub name: Text,
    /// What it tells, one or two sentences.
    pub text: Text,
    /// The unit of its values.
    pub unit: Unit,
    /// What one value belongs to.
    pub level: Level,
    /// Which direction is better.
    pub better: Better,
    /// Where it stands in the seeds' tree.
    pub branch: Branch,
    /// The formula, in words of the field.
    pub formula: &'static str,
    /// Which requests or gaps enter.
    pub population: &'static str,
    /// When there is no value.
    pub undefined_when: &'static str,
    /// How it is misread.
    pub pitfalls: Text,
    /// Who defines it so.
    pub source: &'static str,
    /// What peers call it, and what they mean by the same word.
    pub peers: &'static str,
    /// Raised whenever the same records can give another number.
    pub definition: u32,
    /// How a value comes about.
    pub how: How,
}

/// The same words in English and Chinese.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// English.
    pub en: &'static str,
    /// Chinese.
    pub zh: &'static str,
}

/// Units of metric values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Milliseconds a token.
    MillisecondsPerToken,
    /// Microseconds.
    Microseconds,
    /// Seconds.
    Seconds,
    /// Requests.
    Requests,
    /// Tokens a second.
    TokensPerSecond,
    /// Requests a second.
    RequestsPerSecond,
    /// A share in [0, 1].
    Share,
    /// Tokens.
    Tokens,
    /// Tokens a chunk.
    TokensPerChunk,
    /// Watts.
    Watts,
    /// Joules a token.
    JoulesPerToken,
    /// Currency a million tokens.
    CostPerMillionTokens,
    /// Tokens a second and megawatt.
    TokensPerSecondPerMegawatt,
    /// A plain ratio.
    Ratio,
    /// Events a request.
    PerRequest,
}

impl Unit {
    /// The unit as printed.
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::MillisecondsPerToken => "ms/token",
            Self::Microseconds => "µs",
            Self::Seconds => "s",
            Self::Requests => "requests",
            Self::TokensPerSecond => "tok/s",
            Self::RequestsPerSecond => "req/s",
            Self::Share => "share",
            Self::Tokens => "tokens",
            Self::TokensPerChunk => "tokens/chunk",
            Self::Watts => "W",
            Self::JoulesPerToken => "J/token",
            Self::CostPerMillionTokens => "per 1M tokens",
            Self::TokensPerSecondPerMegawatt => "tok/s/MW",
            Self::Ratio => "ratio",
            Self::PerRequest => "per request",
        }
    }
}

/// What one value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// One value a request.
    Request,
    /// One value a gap between arrivals.
    Gap,
    /// One value a run.
    Run,
}

impl Level {
    /// The level as printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Gap => "gap",
            Self::Run => "run",
        }
    }
}

/// Which direction is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Smaller is better.
    Lower,
    /// Larger is better.
    Higher,
    /// Neither by itself.
    Neither,
}

impl Better {
    /// The direction as printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::Neither => "neither by itself",
        }
    }
}

/// The four branches of seed 000's tree, and the conditions of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// How long users wait.
    Latency,
    /// How much is done in a second.
    Throughput,
    /// How well hardware and money are used.
    Efficiency,
    /// How many requests meet their objectives.
    Quality,
    /// What was sent: conditions rather than results.
    Workload,
    /// What the client errs by.
    Instrument,
}

impl Branch {
    /// The branch's name.
    pub const fn name(self) -> Text {
        match self {
            Self::Latency => Text { en: "Latency", zh: "延迟" },
            Self::Throughput => Text { en: "Throughput", zh: "吞吐" },
            Self::Efficiency => Text { en: "Efficiency", zh: "资源效率" },
            Self::Quality => Text { en: "Quality of service", zh: "服务质量" },
            Self::Workload => Text { en: "Workload", zh: "负载" },
            Self::Instrument => Text { en: "Instrument", zh: "压测端" },
        }
    }
}

/// How a value comes about.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// From one request; aggregated into a distribution.
    Request(fn(&Timed<'_>) -> Value),
    /// The gaps between token arrivals, pooled.
    Gaps,
    /// The gaps weighted by tokens.
    TokenGaps,
    /// From the run as a whole.
    Run,
    /// From what is seen inside the server and what the user says of it, by
    /// `insight`; the reason stands where nobody looked.
    Inside(Undefined),
}

/// The metric with this key, symbol or name; case, blanks, dashes and the unit
/// at the end of a key do not matter: `finish_lag` finds `finish_lag_ms`.
pub fn find(word: &str) -> Option<&'static Metric> {
    let plain = |name: &str| name.to_lowercase().replace([' ', '-'], "_");
    let word = plain(word);
    let by = |name: fn(&Metric) -> &str| METRICS.iter().find(|m| plain(name(m)) == word);
    by(|metric| metric.key)
        .or_else(|| by(|metric| metric.symbol))
        .or_else(|| by(|metric| metric.name.en))
        .or_else(|| METRICS.iter().find(|m| without_unit(m.key) == word))
}

fn without_unit(key: &str) -> &str {
    ["_tok_s", "_req_s", "_ms", "_w", "_j"]
        .iter()
        .find_map(|unit| key.strip_suffix(unit))
        .unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_has_all_its_fields() {
        for metric in METRICS {
            let fields = [
                metric.key,
                metric.symbol,
                metric.name.en,
                metric.name.zh,
                metric.text.en,
                metric.text.zh,
                metric.formula,
                metric.population,
                metric.undefined_when,
                metric.pitfalls.en,
                metric.pitfalls.zh,
                metric.source,
                metric.peers,
            ];
            for (position, field) in fields.iter().enumerate() {
                assert!(!field.trim().is_empty(), "{}: field {position} is empty", metric.key);
            }
            assert!(metric.definition >= 1, "{}", metric.key);
        }
    }

    #[test]
    fn keys_and_symbols_are_unique_and_keys_carry_their_unit() {
        let keys: BTreeSet<_> = METRICS.iter().map(|metric| metric.key).collect();
        let symbols: BTreeSet<_> = METRICS.iter().map(|metric| metric.symbol).collect();
        assert_eq!(keys.len(), METRICS.len());
        assert_eq!(symbols.len(), METRICS.len());
        for metric in METRICS {
            let ending = match metric.unit {
                Unit::Milliseconds | Unit::MillisecondsPerToken => "_ms",
                Unit::TokensPerSecond => "_tok_s",
                // The load's keys are older than the rule.
                Unit::RequestsPerSecond if metric.branch == Branch::Workload => "_rps",
                Unit::RequestsPerSecond => "req_s",
                Unit::Microseconds => "_us",
                Unit::Seconds => "_s",
                Unit::Watts => "_w",
                _ => continue,
            };
            assert!(metric.key.ends_with(ending), "{}", metric.key);
        }
    }

    #[test]
    fn the_seeds_tree_is_whole() {
        for symbol in [
            "TTFT",
            "TPOT",
            "ITL",
            "E2EL",
            "queueing",
            "output tok/s",
            "total tok/s",
            "req/s",
            "goodput",
            "MFU",
            "GPU utilisation",
            "GPU memory",
            "cost per token",
            "attainment",
        ] {
            assert!(find(symbol).is_some(), "{symbol}");
        }
    }
}
