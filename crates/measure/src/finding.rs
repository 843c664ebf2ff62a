//! What a run says about its server: findings, each with its evidence, and
//! lints, each about a number that is easily misread.

use crate::metric::Text;
use crate::said::Said;

/// Where a bottleneck lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Requests wait for a seat, for tokens of a step, or behind others.
    Queueing,
    /// Prompts take long to compute.
    Prefill,
    /// Steps take long, or are held up.
    Decode,
    /// The KV cache is too small for what is asked of it.
    KvCapacity,
    /// Prompts that could be found are computed.
    PrefixCache,
    /// Memory is read as fast as it can be.
    Bandwidth,
    /// Arithmetic is done as fast as it can be.
    Compute,
    /// Accelerators or engines wait for each other.
    Communication,
    /// The host's processor holds the accelerators up, or they are slowed down.
    Host,
    /// What lies between client and server.
    Network,
    /// The load generator.
    Client,
    /// The server has more to give than is asked of it.
    Underload,
    /// The load itself makes the figures.
    Workload,
    /// A setting is wrong for this work.
    Misconfiguration,
}

impl Class {
    /// Every class.
    pub const ALL: &[Self] = &[
        Self::Queueing,
        Self::Prefill,
        Self::Decode,
        Self::KvCapacity,
        Self::PrefixCache,
        Self::Bandwidth,
        Self::Compute,
        Self::Communication,
        Self::Host,
        Self::Network,
        Self::Client,
        Self::Underload,
        Self::Workload,
        Self::Misconfiguration,
    ];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queueing => "queueing",
            Self::Prefill => "prefill",
            Self::Decode => "decode",
            Self::KvCapacity => "kv_capacity",
            Self::PrefixCache => "prefix_cache",
            Self::Bandwidth => "bandwidth",
            Self::Compute => "compute",
            Self::Communication => "communication",
            Self::Host => "host",
            Self::Network => "network",
            Self::Client => "client",
            Self::Underload => "underload",
            Self::Workload => "workload",
            Self::Misconfiguration => "misconfiguration",
        }
    }

    /// What people call it.
    pub const fn text(self) -> Text {
        match self {
            Self::Queueing => Text { en: "queueing", zh: "排队" },
            Self::Prefill => Text { en: "prefill", zh: "预填充" },
            Self::Decode => Text { en: "decode", zh: "解码" },
            Self::KvCapacity => Text { en: "KV cache capacity", zh: "KV 缓存容量" },
            Self::PrefixCache => Text { en: "prefix cache", zh: "前缀缓存" },
            Self::Bandwidth => Text { en: "memory bandwidth", zh: "显存带宽" },
            Self::Compute => Text { en: "computing power", zh: "算力" },
            Self::Communication => Text { en: "communication", zh: "卡间通信" },
            Self::Host => Text { en: "host", zh: "主机" },
            Self::Network => Text { en: "network", zh: "网络" },
            Self::Client => Text { en: "load generator", zh: "压测端" },
            Self::Underload => Text { en: "too little load", zh: "负载不足" },
            Self::Workload => Text { en: "workload", zh: "负载本身" },
            Self::Misconfiguration => Text { en: "a wrong setting", zh: "配置不当" },
        }
    }
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// What the client saw fits; other causes would look alike.
    Possible,
    /// Two kinds of evidence agree.
    Likely,
    /// The client's symptom and the server's own evidence agree, and what would
    /// speak against it was looked at.
    Confirmed,
}

impl Confidence {
    /// The name in JSON and in both languages.
    pub const fn text(self) -> Text {
        match self {
            Self::Possible => Text { en: "possible", zh: "可能" },
            Self::Likely => Text { en: "likely", zh: "很可能" },
            Self::Confirmed => Text { en: "confirmed", zh: "已确认" },
        }
    }
}

/// Where a number of the evidence comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The client's own records.
    Client,
    /// A server's metrics; the signal's id says which.
    Server,
    /// An experiment.
    Probe,
    /// What the user said: prices, topology, model, accelerator.
    Given,
    /// Computed from a model's shape and an accelerator's peaks.
    Bound,
}

impl From {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Probe => "probe",
            Self::Given => "given",
            Self::Bound => "bound",
        }
    }

    /// What people call it.
    pub const fn text(self) -> Text {
        match self {
            Self::Client => Text { en: "client", zh: "压测端" },
            Self::Server => Text { en: "server", zh: "服务端" },
            Self::Probe => Text { en: "experiment", zh: "实验" },
            Self::Given => Text { en: "given", zh: "用户给定" },
            Self::Bound => Text { en: "bound", zh: "理论界限" },
        }
    }
}

/// One number that speaks for or against a finding.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What was measured: a metric's key, a signal's id, or a ratio of some.
    pub what: Said,
    /// The number.
    pub value: f64,
    /// Its unit; empty for a ratio.
    pub unit: &'static str,
    /// Where it comes from.
    pub from: From,
}

/// Something to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Direction {
    /// What to do and what it costs.
    pub text: Said,
    /// The flag of the engine at hand, as it is typed; none where the engine has
    /// none or is not known.
    pub flag: Option<String>,
}

/// A cause with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Stable id of the rule.
    pub rule: &'static str,
    /// Where the bottleneck lies.
    pub class: Class,
    /// How sure.
    pub confidence: Confidence,
    /// The cause in a few words.
    pub title: Said,
    /// What happens here, in a sentence with the numbers.
    pub says: Said,
    /// The numbers that speak for it.
    pub evidence: Vec<Evidence>,
    /// Those that speak against it.
    pub against: Vec<Evidence>,
    /// What is missing to be sure.
    pub missing: Vec<Said>,
    /// The experiment that would refute it, in words.
    pub experiment: Said,
    /// The same as a command that can be pasted; none where no command does it
    /// or the target is gone.
    pub command: Option<String>,
    /// What to change.
    pub directions: Vec<Direction>,
    /// Keys of the metrics that must improve when it is mended.
    pub improves: &'static [&'static str],
    /// How much of what is wrong it explains, 0 to 1: findings are ordered by it.
    pub share: f64,
    /// False for a rule that was tested on made data only.
    pub seen_live: bool,
}

/// A number that is easily misread.
#[derive(Clone, Debug, PartialEq)]
pub struct Lint {
    /// Stable id.
    pub id: &'static str,
    /// The key of the number that it concerns.
    pub concerns: &'static str,
    /// What the number does not say here, a sentence with the figures.
    pub says: Said,
}
