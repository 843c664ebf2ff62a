//! Metric definitions as data: where a clock starts, what counts as the first
//! token, where a request ends. Raw time lines are kept, so any tool's
//! definition can be applied to a run later.

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
    pub fn card(&self) -> DefinitionCard {
        let start = match self.start {
            ClockStart::Intended => "intended_at",
            ClockStart::Released => "released_at",
            ClockStart::Sent => "sent_at",
        };
        let mut card = DefinitionCard {
            name: self.name,
            ttft_start: start,
            ttft_end: match self.arrival {
                ArrivalMark::Token => "first token arrival on any channel",
                ArrivalMark::Choice => "first event with a choice, empty or not",
            },
            e2el_end: match self.end {
                EndMark::TokenOrFinish => "last token arrival or finish event",
                EndMark::Choice => "last event with a choice",
                EndMark::AnyEvent => "last event before [DONE], usage included",
            },
            tpot: "(E2EL − TTFT) / (OSL − 1), requests with OSL ≥ 2",
            itl_unit: match self.arrival {
                ArrivalMark::Token => "ICL between token arrivals; ITL mean weighted by tokens",
                ArrivalMark::Choice => "gap between events with a choice, pooled",
            },
            token_source: match self.count {
                CountRule::BestSource => "usage > server > logprobs > tokenizer > chunks",
                CountRule::UsageElseRetokenised => "usage of an event without choices, else text",
            },
            throughput: "tokens of successes / makespan",
            goodput: "requests meeting all SLOs, limits inclusive; failures are bad",
            percentiles: "linear interpolation on raw samples",
            failures: match self.success {
                SuccessRule::FinishedWithOutput => "failed, empty and cut answers are no successes",
                SuccessRule::ReadableBody { .. } => {
                    "every readable 200 is a success, cut and failed ones too"
                }
            },
            cap: "waiting for a --max-concurrency slot is in the latency",
        };
        if self.start != ClockStart::Intended {
            card.cap = "waiting for a --max-concurrency slot is in no number";
        }
        if self.window == ThroughputWindow::WholeRun {
            card.goodput = "successes meeting the given SLOs / duration; OSL 1 has TPOT 0";
            card.throughput = "tokens of successes / duration of the run";
        }
        card
    }
}

/// The answers to "check the definitions before comparing", in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionCard {
    /// The preset.
    pub name: &'static str,
    /// The stamp at which TTFT and E2EL start.
    pub ttft_start: &'static str,
    /// The event that stops TTFT.
    pub ttft_end: &'static str,
    /// The event that stops E2EL.
    pub e2el_end: &'static str,
    /// The TPOT formula.
    pub tpot: &'static str,
    /// What a gap is.
    pub itl_unit: &'static str,
    /// Where token counts come from.
    pub token_source: &'static str,
    /// Numerator and window of throughput.
    pub throughput: &'static str,
    /// The goodput rule.
    pub goodput: &'static str,
    /// The percentile method.
    pub percentiles: &'static str,
    /// What happens to failures.
    pub failures: &'static str,
    /// What happens to the wait for a concurrency cap.
    pub cap: &'static str,
}

impl DefinitionCard {
    /// The card as it is stored: its name first, then its lines.
    pub fn stored(&self) -> Vec<(String, String)> {
        let name = [("name", self.name)];
        let lines = name.into_iter().chain(self.lines());
        lines.map(|(key, words)| (key.to_owned(), words.to_owned())).collect()
    }

    /// The lines of the card: key and words, in the order of the report.
    pub fn lines(&self) -> [(&'static str, &'static str); 11] {
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
