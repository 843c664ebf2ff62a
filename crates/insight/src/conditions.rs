//! What runs must have in common before their figures can be compared: seed
//! 000's three conditions (lengths, arrivals, state of the cache), and what else
//! makes a figure another one.

use std::fmt;

use measure::metric::Text;
use measure::summary::Summary;

/// A condition in which runs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What it is.
    pub what: Text,
    /// Whether figures that differ in it cannot be compared.
    pub decides: bool,
    /// Its value of each run, in the order of the runs; none where it is not
    /// known or was not asked for.
    pub values: Vec<Option<Value>>,
}

/// A value of a condition.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// As it was recorded.
    Words(String),
    /// A number that was asked for, in its own unit.
    Number(f64),
    /// A mean of what came.
    Mean(f64),
    /// Part of a whole.
    Share(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(words),
            Self::Number(number) => write!(f, "{number}"),
            Self::Mean(mean) => write!(f, "{mean:.1}"),
            Self::Share(share) => write!(f, "{:.0} %", 100.0 * share),
        }
    }
}

/// Means of what came, and shares, may be this far apart.
const ALIKE: f64 = 0.1;

type Kind = (&'static str, &'static str, bool, fn(&Summary) -> Option<Value>);

/// Every condition: what it is, whether it decides, its value. The seed's three
/// come first.
const KINDS: &[Kind] = &[
    ("prompt lengths asked for", "设定的输入长度", true, |run| {
        said(&run.facts.workload.input_lengths)
    }),
    ("output lengths asked for", "设定的输出长度", true, |run| {
        said(&run.facts.workload.output_lengths)
    }),
    ("prompt tokens served, mean", "实际输入 token 数均值", true, |run| {
        mean(run, "input_tokens")
    }),
    ("output tokens served, mean", "实际输出 token 数均值", true, |run| {
        mean(run, "output_tokens")
    }),
    ("prompts", "prompt 来源", true, |run| said(&run.facts.workload.source)),
    ("kind of load", "负载类型", true, |run| said(run.facts.load.kind.name())),
    ("arrivals", "到达过程", true, |run| said(&run.facts.load.arrivals)),
    ("requests a second asked for", "设定的到达速率（req/s）", true, |run| {
        run.facts.load.request_rate.map(Value::Number)
    }),
    ("users, or the most in flight", "用户数或在途上限", true, |run| {
        run.facts.load.users.map(|users| Value::Number(f64::from(users)))
    }),
    ("state of the prefix cache", "前缀缓存状态", true, |run| {
        said(&run.facts.workload.cache_regime)
    }),
    ("prompt tokens shared by design", "设计上共享的输入 token 数", true, |run| {
        run.facts.workload.prefix_tokens.map(|tokens| Value::Number(f64::from(tokens)))
    }),
    ("prompt tokens from the cache", "来自缓存的输入 token 占比", true, |run| {
        run.tokens.cached_share.map(Value::Share)
    }),
    ("definitions", "指标口径", true, |run| said(run.definition.card().name)),
    ("objective", "SLO 目标", true, |run| {
        run.facts.slo.as_ref().and_then(|slo| said(&slo.to_string()))
    }),
    ("answered by an engine model", "由引擎模型应答", true, |run| {
        said(if run.facts.simulated { "yes" } else { "no" })
    }),
    ("API", "API 类型", false, |run| said(&run.facts.api)),
    ("model", "模型", false, |run| run.facts.model.as_deref().and_then(said)),
    ("engine", "引擎", false, |run| run.facts.engine.as_deref().and_then(said)),
    ("target", "测试目标", false, |run| said(&run.facts.target)),
];

fn said(words: &str) -> Option<Value> {
    (!words.is_empty()).then(|| Value::Words(words.to_owned()))
}

fn mean(run: &Summary, key: &str) -> Option<Value> {
    let (_, figures) = run.metrics.iter().find(|(known, _)| *known == key)?;
    figures.mean.map(Value::Mean)
}

/// In what these runs differ, the conditions that decide first.
pub fn differences(runs: &[&Summary]) -> Vec<Difference> {
    let difference = |(en, zh, decides, value): &Kind| {
        let values: Vec<Option<Value>> = runs.iter().map(|run| value(run)).collect();
        let all_alike = values
            .iter()
            .all(|one| values.first().is_none_or(|first| are_alike(first.as_ref(), one.as_ref())));
        (!all_alike).then_some(Difference { what: Text { en, zh }, decides: *decides, values })
    };
    KINDS.iter().filter_map(difference).collect()
}

fn are_alike(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (Some(Value::Mean(a)), Some(Value::Mean(b))) => {
            (a - b).abs() <= ALIKE * a.abs().max(b.abs())
        }
        (Some(Value::Share(a)), Some(Value::Share(b))) => (a - b).abs() <= ALIKE,
        // What one of two does not say cannot be held against the other, but a
        // rate or a cap that only one was given is another load.
        (Some(Value::Share(_)), None) | (None, Some(Value::Share(_))) => true,
        (one, other) => one == other,
    }
}
