//! Metric definitions as data: where a clock starts, what counts as the first
//! token, where a request ends. Raw time lines are kept, so any tool's
//! definition can be applied to a run later.

use crate::metric::Text;

/// Where a latency starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStart {
    /// When the load model says the user asked: headline latencies.
    Intended,
    /// When the generator let the request go: after a concurrency cap and
    /// before connecting, as most peers start.
    Released,
    /// Just before the first byte was written: service latencies.
    Sent,
}

/// Which event is the first token, and which events bound gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalMark {
    /// Output on any channel, or a running count that grew.
    Token,
    /// Any event with a choice, whatever it holds.
    Choice,
}

/// Where E2EL ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndMark {
    /// The last token arrival or finish event, whichever is later.
    TokenOrFinish,
    /// The last event with a choice.
    Choice,
    /// The last event of any kind before `[DONE]`, the usage event included.
    AnyEvent,
}

/// Which requests count as successes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessRule {
    /// Finished with output and a terminal mark.
    FinishedWithOutput,
    /// HTTP 200 and a readable body; empty, cut and failed-in-band answers
    /// count as successes.
    ReadableBody {
        /// Whether at least one choice must have come.
        needs_choice: bool,
    },
}

/// How output tokens are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountRule {
    /// The best source there is, which is named.
    BestSource,
    /// Usage from an event without choices, else the text re-tokenised.
    UsageElseRetokenised,
}

/// The window that throughput divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThroughputWindow {
    /// From the first intended instant to the last event.
    Makespan,
    /// From the start of the run to the end of the last response.
    WholeRun,
}

/// What an aggregate without samples reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutSamples {
    /// Null, with the reason.
    Null,
    /// 0.0, as the tool prints.
    Zero,
}

/// One tool's definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The preset's name, with the tool's version.
    pub name: &'static str,
    /// Where TTFT and E2EL start.
    pub start: ClockStart,
    /// What stops TTFT and bounds gaps.
    pub arrival: ArrivalMark,
    /// Where E2EL ends.
    pub end: EndMark,
    /// Which requests enter the statistics.
    pub success: SuccessRule,
    /// How output tokens are counted.
    pub count: CountRule,
    /// Whether answers that came at one instant stay out of TPOT and gaps.
    pub excludes_not_streamed: bool,
    /// What throughput divides by.
    pub window: ThroughputWindow,
    /// Aggregates without samples.
    pub without_samples: WithoutSamples,
}

/// What a preset needs to know of the API: some tools measure two APIs by two
/// rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A chat API.
    Chat,
    /// A completions API or any other.
    Completions,
    /// An API that generates no tokens: embeddings, rerank.
    Results,
}

impl Endpoint {
    /// False where an answer has no tokens, so that only its whole latency
    /// means something.
    pub const fn generates(self) -> bool {
        !matches!(self, Self::Results)
    }
}

/// Our own definitions, with latencies from the intended instant.
pub const GOODPUT: Definition = Definition {
    name: "goodput",
    start: ClockStart::Intended,
    arrival: ArrivalMark::Token,
    end: EndMark::TokenOrFinish,
    success: SuccessRule::FinishedWithOutput,
    count: CountRule::BestSource,
    excludes_not_streamed: true,
    window: ThroughputWindow::Makespan,
    without_samples: WithoutSamples::Null,
};

/// Our own definitions with latencies from the actual send.
pub const SERVICE: Definition = Definition { start: ClockStart::Sent, ..GOODPUT };

const VLLM_0_27_COMPLETIONS: Definition = Definition {
    name: "vllm-0.27",
    start: ClockStart::Released,
    arrival: ArrivalMark::Choice,
    end: EndMark::Choice,
    success: SuccessRule::ReadableBody { needs_choice: true },
    count: CountRule::UsageElseRetokenised,
    excludes_not_streamed: false,
    window: ThroughputWindow::WholeRun,
    without_samples: WithoutSamples::Zero,
};

/// vLLM's chat path ends at the usage event and needs no token to succeed.
const VLLM_0_27_CHAT: Definition = Definition {
    end: EndMark::AnyEvent,
    success: SuccessRule::ReadableBody { needs_choice: false },
    ..VLLM_0_27_COMPLETIONS
};

/// Names of the presets that `--definitions` takes.
pub const PRESETS: &[&str] = &["goodput", "vllm-0.27", "vllm"];

impl Definition {
    /// The preset of this name for an endpoint. `vllm` is the newest vLLM
    /// preset.
    pub fn preset(name: &str, endpoint: Endpoint) -> Option<Self> {
        match (name, endpoint) {
            ("goodput", _) => Some(GOODPUT),
            ("vllm" | "vllm-0.27", Endpoint::Chat) => Some(VLLM_0_27_CHAT),
            ("vllm" | "vllm-0.27", Endpoint::Completions) => Some(VLLM_0_27_COMPLETIONS),
            _ => None,
        }
    }

    /// The card that stands on every result.
    pub const fn card(&self) -> DefinitionCard {
        let start = match self.start {
            ClockStart::Intended => "intended_at",
            ClockStart::Released => "released_at",
            ClockStart::Sent => "sent_at",
        };
        let (ttft_end, itl_unit) = self.arrival.words();
        let waits_count = matches!(self.start, ClockStart::Intended);
        let (throughput, goodput) = self.window.words();
        DefinitionCard {
            name: self.name,
            ttft_start: Text { en: start, zh: start },
            ttft_end,
            e2el_end: self.end.words(),
            tpot: Text {
                en: "(E2EL − TTFT) / (OSL − 1), requests with OSL ≥ 2",
                zh: "(E2EL − TTFT) / (OSL − 1)，只算 OSL ≥ 2 的请求",
            },
            itl_unit,
            token_source: self.count.words(),
            throughput,
            goodput,
            percentiles: Text {
                en: "linear interpolation on raw samples",
                zh: "对原始样本线性插值",
            },
            failures: self.success.words(),
            cap: if waits_count {
                Text {
                    en: "waiting for a --max-concurrency slot is in the latency",
                    zh: "等待 --max-concurrency 名额的时间计入延迟",
                }
            } else {
                Text {
                    en: "waiting for a --max-concurrency slot is in no number",
                    zh: "等待 --max-concurrency 名额的时间不计入任何数字",
                }
            },
        }
    }
}

impl ArrivalMark {
    /// What stops TTFT, and what a gap is.
    const fn words(self) -> (Text, Text) {
        match self {
            Self::Token => (
                Text {
                    en: "first token arrival on any channel", zh: "任一通道的首个 token 到达"
                },
                Text {
                    en: "ICL between token arrivals; ITL mean weighted by tokens",
                    zh: "ICL 为相邻 token 到达之间的间隔；ITL 均值按 token 加权",
                },
            ),
            Self::Choice => (
                Text {
                    en: "first event with a choice, empty or not",
                    zh: "首个带 choice 的事件，不论是否为空",
                },
                Text {
                    en: "gap between events with a choice, pooled",
                    zh: "带 choice 的事件之间的间隔，汇总统计",
                },
            ),
        }
    }
}

impl EndMark {
    /// What stops E2EL.
    const fn words(self) -> Text {
        match self {
            Self::TokenOrFinish => Text {
                en: "last token arrival or finish event",
                zh: "最后一个 token 到达或结束事件，取较晚者",
            },
            Self::Choice => {
                Text { en: "last event with a choice", zh: "最后一个带 choice 的事件" }
            }
            Self::AnyEvent => Text {
                en: "last event before [DONE], usage included",
                zh: "[DONE] 之前的最后一个事件，usage 也算",
            },
        }
    }
}

impl SuccessRule {
    /// What happens to failures.
    const fn words(self) -> Text {
        match self {
            Self::FinishedWithOutput => Text {
                en: "failed, empty and cut answers are no successes",
                zh: "失败的、空的和被截断的回答都不算成功",
            },
            Self::ReadableBody { .. } => Text {
                en: "every readable 200 is a success, cut and failed ones too",
                zh: "只要返回可读的 200 就算成功，被截断和出错的也算",
            },
        }
    }
}

impl CountRule {
    /// Where token counts come from.
    const fn words(self) -> Text {
        match self {
            Self::BestSource => Text {
                en: "usage > server > logprobs > tokenizer > chunks",
                zh: "优先级 usage > server > logprobs > tokenizer > chunks",
            },
            Self::UsageElseRetokenised => Text {
                en: "usage of an event without choices, else text",
                zh: "不带 choice 的事件中的 usage，否则对文本重新分词",
            },
        }
    }
}

impl ThroughputWindow {
    /// Numerator and window of throughput, and the goodput rule.
    const fn words(self) -> (Text, Text) {
        match self {
            Self::Makespan => (
                Text {
                    en: "tokens of successes / makespan", zh: "成功请求的 token 数 / makespan"
                },
                Text {
                    en: "requests meeting all SLOs, limits inclusive; failures are bad",
                    zh: "满足全部 SLO 的请求，等于上限也算；失败的算不达标",
                },
            ),
            Self::WholeRun => (
                Text {
                    en: "tokens of successes / duration of the run",
                    zh: "成功请求的 token 数 / 整次测试时长",
                },
                Text {
                    en: "successes meeting the given SLOs / duration; OSL 1 has TPOT 0",
                    zh: "满足给定 SLO 的成功请求 / 时长；OSL 为 1 时 TPOT 取 0",
                },
            ),
        }
    }
}

/// The answers to "check the definitions before comparing", in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionCard {
    /// The preset.
    pub name: &'static str,
    /// The stamp at which TTFT and E2EL start.
    pub ttft_start: Text,
    /// The event that stops TTFT.
    pub ttft_end: Text,
    /// The event that stops E2EL.
    pub e2el_end: Text,
    /// The TPOT formula.
    pub tpot: Text,
    /// What a gap is.
    pub itl_unit: Text,
    /// Where token counts come from.
    pub token_source: Text,
    /// Numerator and window of throughput.
    pub throughput: Text,
    /// The goodput rule.
    pub goodput: Text,
    /// The percentile method.
    pub percentiles: Text,
    /// What happens to failures.
    pub failures: Text,
    /// What happens to the wait for a concurrency cap.
    pub cap: Text,
}

impl DefinitionCard {
    /// The card as it is stored, in English: its name first, then its lines.
    pub fn stored(&self) -> Vec<(String, String)> {
        let name = [("name", self.name)];
        let lines = self.lines().map(|(key, words)| (key, words.en));
        name.into_iter().chain(lines).map(|(key, en)| (key.to_owned(), en.to_owned())).collect()
    }

    /// The lines of the card: key and words, in the order of the report.
    pub fn lines(&self) -> [(&'static str, Text); 11] {
        [
            ("ttft_start", self.ttft_start),
            ("ttft_end", self.ttft_end),
            ("e2el_end", self.e2el_end),
            ("tpot", self.tpot),
            ("itl_unit", self.itl_unit),
            ("token_source", self.token_source),
            ("throughput", self.throughput),
            ("goodput", self.goodput),
            ("percentiles", self.percentiles),
            ("failures", self.failures),
            ("cap", self.cap),
        ]
    }
}
