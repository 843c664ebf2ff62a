//! What people serve models for: the lengths, objectives and first figures of
//! each use case, in one table from which help, documents and plans derive.

use crate::metric::Text;

/// Who a figure is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The seed texts: 500 ms for chat, 100 ms for code completion, 30 s for a
    /// report, documents of about 2 000 tokens.
    Seeds,
    /// Ours: a usual size, for want of a better one.
    Ours,
}

impl Whose {
    /// The word in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seeds => "seeds",
            Self::Ours => "ours",
        }
    }
}

/// A flag that a use case sets, unless the user did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The flag.
    pub flag: &'static str,
    /// Its value.
    pub value: &'static str,
    /// Who the value is from.
    pub from: Whose,
    /// Flags that take its place: a data set has lengths of its own.
    pub unless: &'static [&'static str],
}

/// A term of a use case's objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// As `--slo` takes it.
    pub term: &'static str,
    /// Who the limit is from.
    pub from: Whose,
}

/// A figure that a report of the use case begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headline {
    /// The metric's key.
    pub key: &'static str,
    /// Its statistic; empty for a figure of the whole run.
    pub statistic: &'static str,
}

/// One use case.
#[derive(Clone, Copy, Debug)]
pub struct UseCase {
    /// The word behind `--use-case`.
    pub name: &'static str,
    /// What to look at first, and why.
    pub reason: Text,
    /// Flags that it sets.
    pub settings: &'static [Setting],
    /// What a good request is, unless `--slo` or `--goodput` says so.
    pub limits: &'static [Limit],
    /// Figures that the report begins with; none leaves the usual ones.
    pub headline: &'static [Headline],
    /// True where it means nothing without an objective of the user's.
    pub needs_slo: bool,
}

impl UseCase {
    /// Its objective as one value of `--slo`; empty without one.
    pub fn slo(&self) -> String {
        let terms: Vec<&str> = self.limits.iter().map(|limit| limit.term).collect();
        terms.join(", ")
    }
}

/// The use case of this name.
pub fn find(name: &str) -> Option<&'static UseCase> {
    USE_CASES.iter().find(|use_case| use_case.name == name)
}

/// Flags that bring prompts of their own.
const OWN: &[&str] = &["prompt", "dataset-name", "dataset-path", "mix"];

const fn lengths(isl: &'static str, isl_from: Whose, osl: &'static str) -> [Setting; 2] {
    [
        Setting { flag: "isl", value: isl, from: isl_from, unless: OWN },
        Setting { flag: "osl", value: osl, from: Whose::Ours, unless: OWN },
    ]
}

const fn limit(term: &'static str, from: Whose) -> Limit {
    Limit { term, from }
}

const fn headline(key: &'static str, statistic: &'static str) -> Headline {
    Headline { key, statistic }
}

const CHAT: &[Setting] = &lengths("512", Whose::Ours, "256");
const CODE: &[Setting] = &lengths("1024", Whose::Ours, "32");
const LONG_FORM: &[Setting] = &lengths("256", Whose::Ours, "1024");
const SUMMARIZE: &[Setting] = &lengths("2048", Whose::Seeds, "128");
const AGENT: &[Setting] = &{
    let [isl, osl] = lengths("2048", Whose::Ours, "128");
    [isl, osl, Setting { flag: "turns", value: "4", from: Whose::Ours, unless: OWN }]
};
const OFFLINE: &[Setting] = &[
    Setting {
        flag: "request-rate",
        value: "inf",
        from: Whose::Ours,
        unless: &["stages", "load-shape", "ramp-up-strategy", "max-concurrency"],
    },
    Setting { flag: "num-prompts", value: "100", from: Whose::Ours, unless: &["duration"] },
];

/// Every use case.
pub const USE_CASES: &[UseCase] = &[
    UseCase {
        name: "chat",
        reason: Text {
            en: "TTFT first, then TPOT: people notice when an answer starts, then whether it flows; \
                 of models that reason, TTFC in place of TTFT",
            zh: "先看 TTFT，再看 TPOT：用户先在意何时开始回答，再在意输出是否流畅；推理模型以 TTFC 代替 TTFT",
        },
        settings: CHAT,
        limits: &[limit("start <= 500ms", Whose::Seeds), limit("tpot <= 50ms", Whose::Ours)],
        headline: &[headline("ttft_ms", "p99"), headline("tpot_ms", "p50")],
        needs_slo: false,
    },
    UseCase {
        name: "code-completion",
        reason: Text {
            en: "TTFT and E2EL: a completion that comes after the next key is of no use",
            zh: "看 TTFT 和 E2EL：补全若晚于下一次按键就没有用了",
        },
        settings: CODE,
        limits: &[limit("ttft <= 100ms", Whose::Seeds), limit("e2el <= 1s", Whose::Ours)],
        headline: &[headline("ttft_ms", "p99"), headline("e2el_ms", "p99")],
        needs_slo: false,
    },
    UseCase {
        name: "long-form",
        reason: Text {
            en: "ICL, TPOT and E2EL: behind the first token, the pace of the stream decides",
            zh: "看 ICL、TPOT 和 E2EL：首 token 之后，输出速度占主导",
        },
        settings: LONG_FORM,
        limits: &[limit("icl.p99 <= 100ms", Whose::Ours), limit("e2el <= 30s", Whose::Seeds)],
        headline: &[
            headline("icl_ms", "p99"),
            headline("tpot_ms", "p50"),
            headline("e2el_ms", "p99"),
        ],
        needs_slo: false,
    },
    UseCase {
        name: "summarize",
        reason: Text {
            en: "input tok/s: reading the documents is most of the work",
            zh: "看输入 tok/s：大部分工作是读文档",
        },
        settings: SUMMARIZE,
        limits: &[],
        headline: &[headline("input_tok_s", ""), headline("ttft_ms", "p99")],
        needs_slo: false,
    },
    UseCase {
        name: "agent",
        reason: Text {
            en: "E2EL of a turn: the next step waits for the whole answer",
            zh: "看每轮的 E2EL：下一步要等完整的回答",
        },
        settings: AGENT,
        limits: &[limit("e2el <= 10s", Whose::Ours)],
        headline: &[headline("e2el_ms", "p99"), headline("e2el_ms", "p50")],
        needs_slo: false,
    },
    UseCase {
        name: "offline",
        reason: Text {
            en: "tok/s and cost per token, all at once: nobody waits for a single request",
            zh: "看 tok/s 和单 token 成本，全部请求一次发出：没有人在等单个请求",
        },
        settings: OFFLINE,
        limits: &[],
        headline: &[
            headline("output_tok_s", ""),
            headline("total_tok_s", ""),
            headline("cost_per_million_tokens", ""),
        ],
        needs_slo: false,
    },
    UseCase {
        name: "slo-bound",
        reason: Text {
            en: "goodput: only what meets its objective counts",
            zh: "看有效吞吐：只有满足 SLO 的请求才算数",
        },
        settings: &[],
        limits: &[],
        headline: &[],
        needs_slo: true,
    },
    UseCase {
        name: "custom",
        reason: Text { en: "nothing is set", zh: "不作任何预设" },
        settings: &[],
        limits: &[],
        headline: &[],
        needs_slo: false,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric;
    use crate::slo::Slo;

    #[test]
    fn every_use_case_names_metrics_and_objectives_that_exist() {
        for use_case in USE_CASES {
            for headline in use_case.headline {
                let found = metric::find(headline.key).expect(headline.key);
                assert_eq!(found.key, headline.key, "{}", use_case.name);
            }
            let slo = Slo::parse([use_case.slo().as_str()]).expect(use_case.name);
            assert_eq!(slo.terms.len(), use_case.limits.len(), "{}", use_case.name);
        }
    }
}
