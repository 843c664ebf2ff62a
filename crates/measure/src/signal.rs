//! What can be seen inside a server, by one set of names: an engine's own
//! metrics are read into these, so that a rule need not know the engine.

use std::collections::BTreeMap;

use crate::metric::Text;
use crate::said::Said;
use crate::unit::{At, Span};

/// How a signal behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A state that goes up and down.
    Gauge,
    /// A count that only grows while a process lives.
    Counter,
    /// A distribution whose sum and count grow.
    Histogram,
    /// Something that does not change while a process lives.
    Fact,
}

/// How the engines of a deployment come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// They are added: requests, tokens, bytes.
    Sum,
    /// Their mean, each counting alike: shares and temperatures.
    Mean,
    /// The largest counts.
    Max,
}

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Stable name, with a unit where it has one.
    pub id: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// How engines come together.
    pub across: Across,
    /// What it is.
    pub name: Text,
}

macro_rules! signals {
    ($(
        $signal:ident $id:literal $unit:literal $kind:ident $across:ident $en:literal $zh:literal;
    )*) => {
        /// The closed list of signals.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Signal {
            $(#[doc = $en] $signal,)*
        }

        impl Signal {
            /// Every signal, in the order in which tables show them.
            pub const ALL: &[Self] = &[$(Self::$signal,)*];

            /// What is known of it.
            pub const fn entry(self) -> Entry {
                match self {
                    $(Self::$signal => Entry {
                        id: $id,
                        unit: $unit,
                        kind: Kind::$kind,
                        across: Across::$across,
                        name: Text { en: $en, zh: $zh },
                    },)*
                }
            }
        }
    };
}

signals! {
    QueueDepth "queue_depth" "requests" Gauge Sum "requests that wait for their first step, or for their next after a preemption" "等待调度的请求数（含被抢占后等待的）";
    QueueForCapacity "queue_for_capacity" "requests" Gauge Sum "requests that wait for a seat or for KV blocks" "因席位或 KV 块不足而等待的请求数";
    QueueDeferred "queue_deferred" "requests" Gauge Sum "requests that wait for an adapter, a grammar or a remote KV cache" "因适配器、语法或远端 KV 而等待的请求数";
    AdmissionReserve "admission_reserve" "ratio" Gauge Mean "share of an answer's limit that is set aside when it is admitted" "准入时为输出上限预留的比例";
    Running "running" "requests" Gauge Sum "requests in the running batch" "运行中的请求数";
    SeatLimit "seat_limit" "requests" Fact Sum "the most requests that may run at once" "可同时运行的请求上限";
    TokenBudget "token_budget" "tokens" Fact Max "the most tokens of one step" "单步 token 预算";
    KvUsage "kv_usage" "ratio" Gauge Mean "share of the KV cache that live requests hold" "存活请求占用的 KV 缓存比例";
    KvCapacity "kv_capacity_tokens" "tokens" Fact Sum "tokens that the KV cache can hold" "KV 缓存可容纳的 token 数";
    KvBlockSize "kv_block_size" "tokens" Fact Max "tokens of a KV block" "每个 KV 块的 token 数";
    ContextLimit "context_limit" "tokens" Fact Max "the most tokens of a prompt and its answer" "上下文长度上限";
    Preemptions "preemptions" "requests" Counter Sum "times that a running request lost its blocks" "运行中请求被抢占的次数";
    RecomputedTokens "recomputed_tokens" "tokens" Counter Sum "tokens computed again after preemptions" "抢占后重新计算的 token 数";
    PrefixQueries "prefix_queries" "tokens" Counter Sum "prompt tokens looked up in the prefix cache" "前缀缓存查询的 token 数";
    PrefixHits "prefix_hits" "tokens" Counter Sum "prompt tokens found in the prefix cache" "前缀缓存命中的 token 数";
    PrefixEvicted "prefix_evicted" "tokens" Counter Sum "cached tokens that were evicted" "被驱逐的缓存 token 数";
    ExternalHits "external_hits" "tokens" Counter Sum "prompt tokens fetched from outside the accelerator" "从外部 KV 存储取回的 token 数";
    PromptTokens "prompt_tokens" "tokens" Counter Sum "prompt tokens, cached ones among them" "输入 token 数（含缓存命中）";
    PromptComputed "prompt_tokens_computed" "tokens" Counter Sum "prompt tokens that were computed" "实际计算的输入 token 数";
    GeneratedTokens "generated_tokens" "tokens" Counter Sum "output tokens" "输出 token 数";
    Finished "finished" "requests" Counter Sum "requests that ended, whatever the reason" "已结束的请求数";
    Aborted "aborted" "requests" Counter Sum "requests that ended because their client left" "被中止的请求数";
    ServerErrors "server_errors" "requests" Counter Sum "requests that the server failed" "服务端出错的请求数";
    QueueTime "queue_time_s" "s" Histogram Sum "arrival to first schedule" "排队时间：到达至首次调度";
    PrefillTime "prefill_time_s" "s" Histogram Sum "first schedule to first token" "预填充时间：首次调度至首 token";
    DecodeTime "decode_time_s" "s" Histogram Sum "first to last token" "解码时间：首 token 至末 token";
    ServerTtft "server_ttft_s" "s" Histogram Sum "arrival at the server to its first token" "服务端 TTFT";
    ServerItl "server_itl_s" "s" Histogram Sum "between outputs, as the server sees them" "服务端输出间隔";
    ServerTpot "server_tpot_s" "s" Histogram Sum "time per output token of each request, as the server sees it" "服务端逐请求 TPOT";
    ServerE2el "server_e2el_s" "s" Histogram Sum "arrival at the server to its last token" "服务端 E2EL";
    FrontEndTime "front_end_time_s" "s" Histogram Sum "tokenising, templates and checks before the queue" "入队前的前端处理时间";
    GatewayTime "gateway_time_s" "s" Histogram Sum "in a router or gateway before an engine has the request" "网关或路由耗时";
    Steps "steps" "steps" Counter Sum "steps of the engine" "引擎步数";
    StepTime "step_time_s" "s" Histogram Sum "time of a step" "单步时间";
    StepTokens "step_tokens" "tokens" Histogram Sum "tokens of a step" "单步 token 数";
    EagerSteps "eager_steps" "steps" Counter Sum "decode steps without a recorded graph" "未使用 CUDA graph 的解码步数";
    EngineIdle "engine_idle_s" "s" Counter Sum "time in which the engine had nothing to do" "引擎空闲时间";
    HostCpu "host_cpu_s" "s" Counter Sum "processor time of the serving process" "服务进程 CPU 时间";
    Drafts "drafts" "drafts" Counter Sum "rounds of speculation" "推测解码轮数";
    DraftTokens "draft_tokens" "tokens" Counter Sum "tokens that were drafted" "草稿 token 数";
    AcceptedTokens "accepted_tokens" "tokens" Counter Sum "drafted tokens that were accepted" "被接受的草稿 token 数";
    EstimatedFlops "estimated_flops" "FLOP" Counter Mean "floating-point operations of an accelerator, as the engine estimates them" "引擎估计的每卡浮点运算量";
    EstimatedReadBytes "estimated_read_bytes" "B" Counter Mean "bytes that an accelerator read, as the engine estimates them" "引擎估计的每卡读取字节数";
    KvTransferTime "kv_transfer_time_s" "s" Histogram Sum "moving keys and values between engines or tiers" "KV 传输时间";
    KvTransferBytes "kv_transfer_bytes" "B" Counter Sum "bytes of keys and values moved between engines or tiers" "KV 传输字节数";
    KvTransferFailures "kv_transfer_failures" "transfers" Counter Sum "transfers of keys and values that failed" "失败的 KV 传输次数";
    KvExpired "kv_expired" "requests" Counter Sum "requests whose keys and values nobody fetched in time" "KV 超时未被取走的请求数";
    TransferQueue "transfer_queue" "requests" Gauge Sum "requests that wait for their keys and values from another engine" "等待从其他引擎接收 KV 的请求数";
    KvLoadTime "kv_load_time_s" "s" Counter Sum "time of loading keys and values from host memory or a store" "从主机内存或外部存储取回 KV 的时间";
    KvLoadBytes "kv_load_bytes" "B" Counter Sum "bytes of keys and values loaded from host memory or a store" "从主机内存或外部存储取回的 KV 字节数";
    KvOffloadRefusals "kv_offload_refusals" "times" Counter Sum "times that host memory had no room for keys and values" "主机内存放不下 KV 的次数";
    GrammarQueue "grammar_queue" "requests" Gauge Sum "requests that wait for a grammar" "等待语法编译的请求数";
    GrammarTime "grammar_time_s" "s" Histogram Sum "compiling a grammar" "语法编译时间";
    ImageQueries "image_queries" "items" Counter Sum "images looked up in the cache of prepared inputs" "多模态缓存查询数";
    ImageHits "image_hits" "items" Counter Sum "images found there" "多模态缓存命中数";
    ExpertBalance "expert_balance" "ratio" Gauge Mean "mean over largest load of the experts" "专家负载均衡度";
    RankSyncWait "rank_sync_wait_s" "s" Histogram Sum "waiting of data-parallel ranks for each other" "数据并行秩同步等待";
    RankImbalance "rank_imbalance" "ratio" Histogram Sum "tokens of the fullest data-parallel rank over those of a mean one" "数据并行秩之间的 token 不均衡度";
    GpuBusy "gpu_busy" "ratio" Gauge Mean "share of the time in which some kernel ran" "有内核运行的时间比例";
    SmActive "sm_active" "ratio" Gauge Mean "share of the multiprocessors with work" "SM 活跃比例";
    TensorActive "tensor_active" "ratio" Gauge Mean "share of the peak of the matrix units" "张量单元活跃比例";
    DramActive "dram_active" "ratio" Gauge Mean "share of the time in which memory moved data" "显存活跃比例";
    LinkBytes "link_bytes_s" "B/s" Gauge Sum "bytes a second between accelerators" "卡间互联字节率";
    PcieBytes "pcie_bytes_s" "B/s" Gauge Sum "bytes a second between host and accelerators" "PCIe 字节率";
    Power "power_w" "W" Gauge Sum "power of the accelerators" "加速器功率";
    Energy "energy_j" "J" Counter Sum "energy of the accelerators" "加速器能耗";
    MemoryUsed "memory_used_bytes" "B" Gauge Sum "memory of the accelerators that is taken" "已占用显存";
    MemoryTotal "memory_total_bytes" "B" Gauge Sum "memory of the accelerators" "显存总量";
    Clock "sm_clock_hz" "Hz" Gauge Mean "clock of the multiprocessors" "SM 时钟";
    ThrottleBits "throttle_bits" "bits" Gauge Max "reasons why the clock is held down, as NVML's bits" "降频原因位";
    ThermalViolation "thermal_violation_s" "s" Counter Sum "time throttled for heat" "因过热降频的时间";
    PowerViolation "power_violation_s" "s" Counter Sum "time throttled for power" "因功耗降频的时间";
    Temperature "temperature_c" "°C" Gauge Max "temperature of the hottest accelerator" "最高温度";
    DeviceErrors "device_errors" "errors" Gauge Max "the last error code of an accelerator (Xid)" "设备错误码（Xid）";
    HostLoad "host_load" "ratio" Gauge Max "runnable threads over processors of the host" "主机负载与核数之比";
    HostBusy "host_busy" "ratio" Gauge Max "share of the host's processor time in use" "主机 CPU 使用率";
    CpuPressure "cpu_pressure_s" "s" Counter Max "time in which threads waited for a processor" "线程等待 CPU 的时间";
    Retransmits "retransmits" "segments" Counter Sum "TCP segments sent again" "TCP 重传段数";
    SegmentsSent "segments_sent" "segments" Counter Sum "TCP segments sent" "TCP 发送段数";
    ListenDrops "listen_drops" "connections" Counter Sum "connections dropped because a listen queue was full" "监听队列溢出丢弃的连接数";
}

impl Signal {
    /// The signal of this id.
    pub fn find(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|signal| signal.entry().id == id)
    }
}

/// An engine or exporter, as people read of what it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teller {
    /// Stable name.
    pub key: &'static str,
    /// Its own name.
    pub name: &'static str,
    /// The version whose names are given.
    pub version: &'static str,
    /// What exposes metrics at all, where that is off by default.
    pub exposed_by: &'static str,
    /// What it tells.
    pub telling: Vec<Telling>,
}

/// How a signal is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// Which.
    pub signal: Signal,
    /// The families, in order of preference, each as an expression.
    pub ways: Vec<String>,
    /// What exposes it, where it is off by default.
    pub exposed_by: &'static str,
    /// What misleads in it.
    pub trap: Option<Text>,
}

/// A gauge over a window: each value counts for as long as it stood.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauge {
    /// Time-weighted mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// At the window's beginning.
    pub first: f64,
    /// At its end.
    pub last: f64,
    /// Scrapes that had it.
    pub n: u32,
}

/// What a histogram took in over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// Observations.
    pub count: f64,
    /// Their sum, in the signal's unit.
    pub sum: f64,
    /// Upper bounds and how many observations lie at or below each; empty
    /// where the server gives none.
    pub buckets: Vec<(f64, f64)>,
}

impl Taken {
    /// Sum over count; none of nothing.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }
}

/// A signal over a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// Of a gauge.
    Gauge(Gauge),
    /// Increase of a counter.
    Counter(f64),
    /// Of a histogram.
    Histogram(Taken),
    /// Of a fact.
    Fact(f64),
}

impl Reading {
    /// One number: a gauge's mean, a counter's increase, a histogram's mean, a
    /// fact.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Gauge(gauge) => Some(gauge.mean),
            Self::Counter(value) | Self::Fact(value) => Some(*value),
            Self::Histogram(taken) => taken.mean(),
        }
    }
}

/// What an instance of a deployment is there for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Prompts and answers.
    #[default]
    Both,
    /// Prompts only.
    Prefill,
    /// Answers only.
    Decode,
    /// It hands requests on.
    Router,
    /// An accelerator or a host.
    Device,
}

/// One engine, rank or device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instance {
    /// What tells it from others: address and rank.
    pub name: String,
    /// What it is there for.
    pub role: Role,
    /// Its signals over the window.
    pub readings: BTreeMap<Signal, Reading>,
}

/// How the scraping went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scraping {
    /// Where from, without secrets.
    pub sources: Vec<String>,
    /// Scrapes that gave metrics.
    pub taken: u32,
    /// Scrapes that did not.
    pub failed: u32,
    /// The slowest one.
    pub slowest: Span,
    /// The widest distance between two.
    pub widest_gap: Span,
    /// The longest that one began after it was due.
    pub latest: Span,
}

/// What is known of a server besides what a client sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Its metrics over the run; none where none were told.
    pub signals: Option<Signals>,
    /// Where metrics were looked for and none were told, and why.
    pub unread: Vec<Said>,
}

/// What was seen inside a server over a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// The engine's key in the table of signals: `vllm`, `sglang` …
    pub engine: Option<&'static str>,
    /// Its version, where it says so.
    pub version: Option<String>,
    /// From the first measured request's send to the last measured event.
    pub from: At,
    /// The end of it.
    pub until: At,
    /// All instances together, by [`Across`].
    pub readings: BTreeMap<Signal, Reading>,
    /// Values over time, all instances together: gauges as scraped, of counters
    /// and histograms the increase a second since the scrape before.
    pub series: BTreeMap<Signal, Vec<(At, f64)>>,
    /// Each by itself, where there are two or more.
    pub instances: Vec<Instance>,
    /// Why a signal is absent, and what would expose it.
    pub absent: BTreeMap<Signal, Said>,
    /// Times that counters fell: a process began anew, or several answer in turn.
    pub restarts: u32,
    /// Settings that the engine tells of itself, name and value.
    pub settings: Vec<(String, String)>,
    /// How the scraping went.
    pub scraping: Scraping,
    /// What to know about the figures: restarts, another model's metrics …
    pub notes: Vec<Said>,
}

impl Signals {
    /// One number for a signal: see [`Reading::value`].
    pub fn value(&self, signal: Signal) -> Option<f64> {
        self.readings.get(&signal)?.value()
    }

    /// A gauge over the window.
    pub fn gauge(&self, signal: Signal) -> Option<&Gauge> {
        match self.readings.get(&signal)? {
            Reading::Gauge(gauge) => Some(gauge),
            _ => None,
        }
    }

    /// The level at which a gauge was last told.
    pub fn latest(&self, signal: Signal) -> Option<f64> {
        let gauge = self.gauge(signal)?;
        let last = self.series.get(&signal).and_then(|series| series.last());
        Some(last.map_or(gauge.last, |(_, level)| *level))
    }

    /// What a histogram took in.
    pub fn taken(&self, signal: Signal) -> Option<&Taken> {
        match self.readings.get(&signal)? {
            Reading::Histogram(taken) => Some(taken),
            _ => None,
        }
    }

    /// Increase of a counter, or observations of a histogram.
    pub fn increase(&self, signal: Signal) -> Option<f64> {
        match self.readings.get(&signal)? {
            Reading::Counter(value) => Some(*value),
            Reading::Histogram(taken) => Some(taken.count),
            _ => None,
        }
    }

    /// The same a second.
    pub fn rate(&self, signal: Signal) -> Option<f64> {
        let length_s = (self.until - self.from).s();
        (length_s > 0.0).then(|| self.increase(signal)).flatten().map(|value| value / length_s)
    }

    /// Share of the prompt tokens looked up in the prefix cache that were found,
    /// 0 to 1. None where a counter fell: part of one of the two is lost then.
    pub fn hit_rate(&self) -> Option<f64> {
        let queries = self.increase(Signal::PrefixQueries).filter(|queries| *queries > 0.0)?;
        let hits = self.increase(Signal::PrefixHits)?;
        (self.restarts == 0).then_some(hits / queries)
    }

    /// Length of the window in seconds.
    pub fn length_s(&self) -> f64 {
        (self.until - self.from).s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_found() {
        for signal in Signal::ALL {
            assert_eq!(Signal::find(signal.entry().id), Some(*signal));
        }
    }
}
