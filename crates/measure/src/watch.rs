//! A server that is watched under the load of others: figures of a sliding window
//! of its signals, what happened to it, and what is wrong since when.

use crate::finding::Finding;
use crate::metric::Text;
use crate::said;
use crate::said::Said;
use crate::signal::{Signal, Signals};
use crate::unit::{At, Span};

/// What figures are shown together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What comes and goes.
    Traffic,
    /// What the engine holds.
    State,
    /// How long requests take, as the server sees it.
    Times,
    /// What the accelerators do, where an exporter tells it.
    Accelerators,
}

impl Group {
    /// Every group, in the order in which they are shown.
    pub const ALL: &[Self] = &[Self::Traffic, Self::State, Self::Times, Self::Accelerators];

    /// What it is called.
    pub const fn text(self) -> Text {
        match self {
            Self::Traffic => Text { en: "Traffic", zh: "流量" },
            Self::State => Text { en: "Engine", zh: "引擎" },
            Self::Times => {
                Text { en: "Times at the server, means", zh: "服务端耗时（均值）" }
            }
            Self::Accelerators => Text { en: "Accelerators", zh: "加速器" },
        }
    }
}

/// A figure of a server over a window.
#[derive(Debug)]
pub struct Figure {
    /// Stable id, with the unit where it has one.
    pub id: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// What it is.
    pub name: Text,
    /// The same in a word or two, for a line of many figures.
    pub short: Text,
    /// What it is shown with.
    pub group: Group,
    /// The signal without which there is none.
    pub needs: Signal,
    value: fn(&Signals) -> Option<f64>,
}

impl Figure {
    /// Its value over the window of the signals.
    ///
    /// # Errors
    /// Why there is none.
    pub fn value(&self, signals: &Signals) -> Result<f64, Said> {
        let value = (self.value)(signals).filter(|value| value.is_finite());
        value.ok_or_else(|| match signals.absent.get(&self.needs) {
            Some(why) => why.clone(),
            None => said!(
                "nothing that it is computed from was counted in the last {length:.0} s",
                "最近 {length:.0} 秒内没有可用于计算的数据",
                length = signals.length_s(),
            ),
        })
    }

    /// The figure of this id.
    pub fn find(id: &str) -> Option<&'static Self> {
        FIGURES.iter().find(|figure| figure.id == id)
    }
}

macro_rules! figures {
    ($(
        $id:literal $unit:literal $group:ident $needs:ident
        [$short:literal $short_zh:literal] $name:literal $name_zh:literal $value:expr;
    )*) => {
        /// Every figure, in the order in which they are shown.
        pub static FIGURES: &[Figure] = &[$(Figure {
            id: $id,
            unit: $unit,
            name: Text { en: $name, zh: $name_zh },
            short: Text { en: $short, zh: $short_zh },
            group: Group::$group,
            needs: Signal::$needs,
            value: $value,
        },)*];
    };
}

figures! {
    "req_s" "req/s" Traffic Finished ["requests" "请求"] "requests that ended" "结束的请求" |s| s.rate(Signal::Finished);
    "output_tok_s" "tok/s" Traffic GeneratedTokens ["out" "输出"] "output tokens" "输出 token" |s| s.rate(Signal::GeneratedTokens);
    "input_computed_tok_s" "tok/s" Traffic PromptTokens ["in" "输入"] "prompt tokens computed" "计算的输入 token" computed;
    "input_cached_tok_s" "tok/s" Traffic PromptTokens ["cached" "缓存"] "prompt tokens from the cache" "命中缓存的输入 token" cached;
    "running" "requests" State Running ["run" "运行"] "requests that run" "运行中的请求" |s| s.latest(Signal::Running);
    "waiting" "requests" State QueueDepth ["wait" "等待"] "requests that wait" "等待中的请求" |s| s.latest(Signal::QueueDepth);
    "kv_usage" "ratio" State KvUsage ["kv" "KV"] "KV cache in use" "KV 缓存占用" |s| s.latest(Signal::KvUsage);
    "hit_rate" "ratio" State PrefixQueries ["hits" "命中"] "found in the prefix cache" "前缀缓存命中率" Signals::hit_rate;
    "preemptions" "requests" State Preemptions ["preempted" "抢占"] "preemptions in the window" "窗口内的抢占次数" |s| s.increase(Signal::Preemptions);
    "queue_ms" "ms" Times QueueTime ["queue" "排队"] "wait for the first step" "排队时间" |s| mean_ms(s, Signal::QueueTime);
    "prefill_ms" "ms" Times PrefillTime ["prefill" "预填充"] "first step to first token" "预填充时间" |s| mean_ms(s, Signal::PrefillTime);
    "decode_ms" "ms" Times DecodeTime ["decode" "解码"] "first to last token" "解码时间" |s| mean_ms(s, Signal::DecodeTime);
    "server_ttft_ms" "ms" Times ServerTtft ["TTFT" "TTFT"] "TTFT as the server sees it" "服务端 TTFT" |s| mean_ms(s, Signal::ServerTtft);
    "server_itl_ms" "ms" Times ServerItl ["ITL" "ITL"] "ITL as the server sees it" "服务端 ITL" itl;
    "gpu_busy" "ratio" Accelerators GpuBusy ["gpu" "GPU"] "time in which some kernel ran" "有内核运行的时间" |s| s.latest(Signal::GpuBusy);
    "sm_active" "ratio" Accelerators SmActive ["sm" "SM"] "multiprocessors with work" "SM 活跃比例" |s| s.latest(Signal::SmActive);
    "tensor_active" "ratio" Accelerators TensorActive ["tensor" "张量"] "peak of the matrix units in use" "张量单元活跃比例" |s| s.latest(Signal::TensorActive);
    "dram_active" "ratio" Accelerators DramActive ["dram" "显存"] "time in which memory moved data" "显存活跃比例" |s| s.latest(Signal::DramActive);
    "memory_used" "ratio" Accelerators MemoryUsed ["memory" "显存占用"] "memory that is taken" "已占用显存" memory_used;
    "power_w" "W" Accelerators Power ["power" "功率"] "power" "功率" |s| s.latest(Signal::Power);
    "clock_mhz" "MHz" Accelerators Clock ["clock" "时钟"] "clock of the multiprocessors" "SM 时钟" |s| s.latest(Signal::Clock).map(|hz| hz / 1e6);
    "temperature_c" "°C" Accelerators Temperature ["hottest" "最高温"] "hottest accelerator" "最高温度" |s| s.latest(Signal::Temperature);
}

fn mean_ms(signals: &Signals, signal: Signal) -> Option<f64> {
    signals.taken(signal)?.mean().map(|seconds| seconds * 1e3)
}

/// Some engines tell the time of an output token by request only.
fn itl(signals: &Signals) -> Option<f64> {
    mean_ms(signals, Signal::ServerItl).or_else(|| mean_ms(signals, Signal::ServerTpot))
}

/// What the engine says was computed, else what was not found.
fn computed(signals: &Signals) -> Option<f64> {
    signals.rate(Signal::PromptComputed).or_else(|| {
        let (all, hits) = (signals.rate(Signal::PromptTokens)?, signals.rate(Signal::PrefixHits)?);
        Some((all - hits).max(0.0))
    })
}

/// What came without being computed, else what was found.
fn cached(signals: &Signals) -> Option<f64> {
    let all = signals.rate(Signal::PromptTokens);
    match all.zip(signals.rate(Signal::PromptComputed)) {
        Some((all, computed)) => Some((all - computed).max(0.0)),
        None => signals.rate(Signal::PrefixHits),
    }
}

fn memory_used(signals: &Signals) -> Option<f64> {
    Some(signals.latest(Signal::MemoryUsed)? / signals.latest(Signal::MemoryTotal)?)
}

/// What can happen to a server that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It gives no metrics: it is not reached, or something else answers.
    Unread,
    /// It gives metrics again.
    Read,
    /// Its process began anew.
    Restarted,
    /// Its counters fell although its process did not begin anew.
    Reset,
    /// Metrics that it told are not told any more.
    Missing,
    /// They are told again.
    Back,
    /// Something is found wrong.
    Found,
    /// It is not any more.
    Gone,
}

impl Kind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::Unread,
        Self::Read,
        Self::Restarted,
        Self::Reset,
        Self::Missing,
        Self::Back,
        Self::Found,
        Self::Gone,
    ];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::Read => "read_again",
            Self::Restarted => "restarted",
            Self::Reset => "reset",
            Self::Missing => "missing",
            Self::Back => "told_again",
            Self::Found => "found",
            Self::Gone => "gone",
        }
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When.
    pub at: At,
    /// What.
    pub kind: Kind,
    /// What it happened to: the address of metrics, or the id of a rule.
    pub of: String,
    /// The same in a sentence.
    pub says: Said,
}

/// Something that is wrong, and since when.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What it is, as of now.
    pub finding: Finding,
    /// When it was first seen.
    pub since: At,
}

/// An address with metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The address, without secrets.
    pub name: String,
    /// Why nothing is told there now; none where something is.
    pub trouble: Option<String>,
    /// Readings that gave metrics so far.
    pub taken: u64,
    /// Readings that gave none.
    pub failed: u64,
    /// Times that its process or its counters began anew.
    pub restarts: u64,
}

/// A server at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glance {
    /// When.
    pub at: At,
    /// The signals of the window that ends now; none while no place tells any.
    pub signals: Option<Signals>,
    /// What happened since the glance before.
    pub events: Vec<Event>,
    /// What is wrong, what explains most first.
    pub held: Vec<Held>,
    /// Where metrics are read.
    pub places: Vec<Place>,
}

impl Glance {
    /// A figure, or why there is none.
    ///
    /// # Errors
    /// Why there is none.
    pub fn value(&self, figure: &Figure) -> Result<f64, Said> {
        match &self.signals {
            Some(signals) => figure.value(signals),
            None => {
                let why = self.places.iter().find_map(|place| place.trouble.as_deref());
                let why = why.unwrap_or("nothing was read yet");
                Err(said!("no metrics: {why}", "没有指标：{why}", why = why))
            }
        }
    }

    /// Every figure.
    pub fn figures(&self) -> impl Iterator<Item = (&'static Figure, Result<f64, Said>)> {
        FIGURES.iter().map(|figure| (figure, self.value(figure)))
    }
}

/// Everything that was seen while a server was watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Where metrics were read, as of the last glance.
    pub places: Vec<Place>,
    /// How long it was watched.
    pub length: Span,
    /// Figures that had a value at least once: mean over the glances, and most.
    pub usual: Vec<Usual>,
    /// What to know about the figures of the last glance that had any.
    pub notes: Vec<Said>,
    /// Figures that never had one, each with the last reason.
    pub absent: Vec<(&'static str, Said)>,
    /// What was wrong, with when it was first and last seen.
    pub found: Vec<Found>,
    /// Findings beyond the most that are kept.
    pub left_out: u64,
}

/// The most findings that are kept: a server that is watched for weeks has more.
const MOST_FOUND: usize = 1_000;

/// A figure over all glances.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usual {
    /// The figure's id.
    pub id: &'static str,
    /// Glances that had it.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Their largest.
    pub most: f64,
}

/// Something that was wrong for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The rule's id.
    pub rule: &'static str,
    /// The cause in a few words.
    pub title: Said,
    /// When it was first seen.
    pub since: At,
    /// When it was last seen.
    pub until: At,
}

impl Course {
    /// Takes what was seen at one instant.
    pub fn take(&mut self, glance: &Glance) {
        self.places.clone_from(&glance.places);
        self.length = glance.at - At::ZERO;
        if let Some(signals) = &glance.signals {
            self.notes.clone_from(&signals.notes);
        }
        for (figure, value) in glance.figures() {
            let value = match value {
                Ok(value) => value,
                Err(why) => {
                    self.lack(figure.id, why);
                    continue;
                }
            };
            self.absent.retain(|(id, _)| *id != figure.id);
            match self.usual.iter_mut().find(|known| known.id == figure.id) {
                Some(known) => {
                    known.n += 1;
                    known.mean += (value - known.mean) / known.n as f64;
                    known.most = known.most.max(value);
                }
                None => {
                    self.usual.push(Usual { id: figure.id, n: 1, mean: value, most: value });
                }
            }
        }
        let is_full = self.found.len() >= MOST_FOUND;
        for Held { finding, since } in &glance.held {
            let same = |found: &&mut Found| found.rule == finding.rule && found.since == *since;
            match self.found.iter_mut().find(same) {
                Some(found) => found.until = glance.at,
                None if is_full => self.left_out += 1,
                None => self.found.push(Found {
                    rule: finding.rule,
                    title: finding.title.clone(),
                    since: *since,
                    until: glance.at,
                }),
            }
        }
    }

    fn lack(&mut self, id: &'static str, why: Said) {
        if self.usual.iter().any(|usual| usual.id == id) {
            return;
        }
        match self.absent.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = why,
            None => self.absent.push((id, why)),
        }
    }

    /// Whether metrics were read at all.
    pub fn saw_anything(&self) -> bool {
        self.places.iter().any(|place| place.taken > 0)
    }
}
