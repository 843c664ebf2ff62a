//! The symptoms that people come with: what to look at first, and in which
//! direction the remedy lies. The rows are those of seed text 000, rebuilt.

use measure::metric::Text;

/// What a person sees, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Stable id, by which rules name it.
    pub id: &'static str,
    /// What is seen.
    pub symptom: Text,
    /// What to look at first.
    pub look: Text,
    /// Where the remedy lies.
    pub direction: Text,
    /// Ids of the rules that it may be, the usual ones first.
    pub rules: &'static [&'static str],
}

/// Every row, in the order of the text.
pub const SYMPTOMS: &[Row] = &[
    Row {
        id: "ttft_high_tpot_normal",
        symptom: Text { en: "TTFT high, TPOT normal", zh: "TTFT 高，TPOT 正常" },
        look: Text {
            en: "queue length, queue time against prefill time, running against the seat limit, KV usage, preemptions, longest prompt against the token budget",
            zh: "队列长度、排队时间与预填充时间、运行数与席位上限、KV 占用、抢占次数、最长输入与 token 预算",
        },
        direction: Text {
            en: "queue: capacity, admission, seats, KV; prefill: prefix cache, token budget, faster prefill, disaggregation",
            zh: "排队为主：容量、准入、席位、KV；预填充为主：前缀缓存、token 预算、更快的预填充、PD 分离",
        },
        rules: &[
            "seat_limit",
            "kv_capacity",
            "kv_admission",
            "prefill_backlog",
            "over_saturation",
            "deferred",
            "prefill_bound",
            "prefill_inefficient",
            "prefill_slowed",
            "prefix_not_hit",
            "front_end",
            "distance",
            "upstream_queue",
            "cautious_admission",
            "quadratic_attention",
            "image_encoding",
            "grammar_compilation",
            "kv_fetch",
            "kv_handover",
        ],
    },
    Row {
        id: "ttft_tail",
        symptom: Text { en: "TTFT high at P99 only", zh: "只有 P99 TTFT 高" },
        look: Text {
            en: "bursts of arrivals, short prompts behind long ones, a cold cache, one bad replica",
            zh: "到达突发、短请求排在长输入之后、缓存冷启动、某个副本异常",
        },
        direction: Text {
            en: "a lane for short requests, a limit for long prefills, routing by load, headroom",
            zh: "短请求通道、长预填充上限、按负载路由、留余量",
        },
        rules: &["bursts", "head_of_line", "cold_start", "replica_imbalance", "offload_thrash"],
    },
    Row {
        id: "tpot_high_ttft_normal",
        symptom: Text { en: "TPOT high, TTFT normal", zh: "TPOT 高，TTFT 正常" },
        look: Text {
            en: "batch size, MBU against its bound, context length, communication time",
            zh: "批大小、MBU 与下界、上下文长度、通信时间",
        },
        direction: Text {
            en: "quantise weights or KV, speculate, tensor parallelism on fast links, a smaller batch, more bandwidth",
            zh: "量化权重或 KV、推测解码、高速互联上的 TP、减小批、更高带宽的卡",
        },
        rules: &[
            "weight_bandwidth",
            "kv_bandwidth",
            "host_bound",
            "speculation_ineffective",
            "throttled",
            "decode_compute_bound",
            "expert_spread",
            "expert_imbalance",
            "tensor_parallel_bound",
            "speculation_crowded",
            "sampling_cost",
            "slow_drift",
        ],
    },
    Row {
        id: "itl_tail",
        symptom: Text { en: "TPOT normal, ITL high at P99", zh: "TPOT 正常，P99 ITL 高" },
        look: Text {
            en: "prefill chunks in decode steps, preemptions, missed graphs, waiting of ranks",
            zh: "解码步中混入的预填充、抢占、CUDA graph 未命中、通信或 DP 同步",
        },
        direction: Text {
            en: "a smaller token budget, disaggregation, more KV memory, graph sizes",
            zh: "减小 token 预算、PD 分离、更多 KV、graph 尺寸",
        },
        rules: &[
            "prefill_interference",
            "preemption_stalls",
            "proxy_buffering",
            "output_path",
            "graph_miss",
            "rank_lockstep",
            "packet_loss",
            "processor_contention",
        ],
    },
    Row {
        id: "e2el_high",
        symptom: Text {
            en: "E2EL high, TTFT and TPOT normal", zh: "E2EL 高，TTFT 与 TPOT 正常"
        },
        look: Text { en: "length of answers", zh: "输出长度" },
        direction: Text {
            en: "limit max_tokens, ask for shorter answers, speculate",
            zh: "限制 max_tokens、缩短回答、推测解码",
        },
        rules: &["uncontrolled_lengths"],
    },
    Row {
        id: "throughput_low_latency_low",
        symptom: Text { en: "throughput low, latency low", zh: "吞吐低，延迟也低" },
        look: Text {
            en: "whether the load is too small, whether the client is the limit, running against the seats",
            zh: "负载是否过小、客户端是否受限、运行数与席位上限",
        },
        direction: Text {
            en: "more load or more users; fewer accelerators",
            zh: "提高负载或并发；减少加速器",
        },
        rules: &["underload", "client_bottleneck"],
    },
    Row {
        id: "throughput_flat_latency_grows",
        symptom: Text {
            en: "throughput flat while load and latency grow",
            zh: "负载上升而吞吐不变，延迟暴涨",
        },
        look: Text { en: "over-saturation", zh: "是否过饱和" },
        direction: Text { en: "admission control, scale out", zh: "准入控制、扩容" },
        rules: &["over_saturation", "kv_thrash"],
    },
    Row {
        id: "throughput_high_goodput_low",
        symptom: Text { en: "throughput high, goodput low", zh: "吞吐高，goodput 低" },
        look: Text {
            en: "operation past the knee, a batch that is too large",
            zh: "是否越过拐点、批过大",
        },
        direction: Text {
            en: "fewer seats or a smaller token budget, scheduling by SLO, separate pools",
            zh: "减少席位或 token 预算、SLO 感知调度、分池",
        },
        rules: &["past_the_knee", "phase_mix"],
    },
    Row {
        id: "busy_mfu_low",
        symptom: Text { en: "GPU utilisation high, MFU low", zh: "GPU 利用率高，MFU 低" },
        look: Text {
            en: "MBU, DRAM activity, link bytes, gaps between kernels",
            zh: "MBU、DRAM 活跃、NVLink、内核间隙",
        },
        direction: Text {
            en: "decoding: normal, judge by MBU; communication: change TP or EP; gaps: graphs, asynchronous scheduling",
            zh: "解码属正常，看 MBU；通信：调整 TP/EP；间隙：CUDA graph、异步调度",
        },
        rules: &[
            "busy_but_useless",
            "weight_bandwidth",
            "tensor_parallel_bound",
            "expert_exchange",
            "expert_imbalance",
        ],
    },
    Row {
        id: "idle_latency_high",
        symptom: Text {
            en: "GPU utilisation low, latency high", zh: "GPU 利用率低，延迟高"
        },
        look: Text {
            en: "host processor, tokeniser, gaps of the scheduler, the client",
            zh: "主机 CPU、分词、调度间隙、客户端",
        },
        direction: Text {
            en: "more API or tokeniser workers, graphs, asynchronous scheduling",
            zh: "更多 API/分词进程、CUDA graph、异步调度",
        },
        rules: &[
            "host_bound",
            "front_end",
            "client_bottleneck",
            "noisy_host",
            "pipeline_bubbles",
            "processor_contention",
        ],
    },
    Row {
        id: "kv_full",
        symptom: Text {
            en: "KV usage near 100 %, preemptions above 0",
            zh: "KV 占用约 100 %，且有抢占",
        },
        look: Text { en: "KV tokens needed against capacity", zh: "所需 KV token 与容量" },
        direction: Text {
            en: "more KV memory, FP8 KV, offloading, fewer seats, a watermark",
            zh: "更多 KV 显存、FP8 KV、卸载、减少席位、水位线",
        },
        rules: &["kv_capacity", "kv_admission", "preemption_stalls", "kv_thrash"],
    },
    Row {
        id: "kv_free_but_waiting",
        symptom: Text {
            en: "KV usage low but requests wait", zh: "KV 占用低，请求却在等待"
        },
        look: Text { en: "seats or token budget", zh: "席位或 token 预算" },
        direction: Text {
            en: "raise the seat limit or the token budget",
            zh: "提高席位上限或 token 预算",
        },
        rules: &["seat_limit", "prefill_backlog", "cautious_admission"],
    },
    Row {
        id: "prefix_hits_low",
        symptom: Text { en: "prefix hit rate low", zh: "前缀命中率低" },
        look: Text {
            en: "layout of prompts, routing, eviction", zh: "提示词布局、路由、驱逐"
        },
        direction: Text {
            en: "stable text first, routing that knows caches, offloading of KV",
            zh: "稳定前缀置前、缓存感知路由、KV 分层卸载",
        },
        rules: &["prefix_not_hit", "prefix_evicted"],
    },
    Row {
        id: "scales_badly",
        symptom: Text { en: "several GPUs scale badly", zh: "多卡扩展性差" },
        look: Text { en: "communication time, topology", zh: "通信时间、拓扑" },
        direction: Text {
            en: "less TP and more DP, custom all-reduce, a better fabric",
            zh: "降低 TP、增加 DP、自定义 all-reduce、更好的互联",
        },
        rules: &["tensor_parallel_bound", "pipeline_bubbles", "expert_exchange", "rank_lockstep"],
    },
    Row {
        id: "cost_high",
        symptom: Text { en: "cost a token high, SLO met", zh: "单 token 成本高，SLO 达标" },
        look: Text { en: "utilisation, batch, precision", zh: "利用率、批大小、精度" },
        direction: Text {
            en: "a larger batch up to the SLO's edge, FP8 or FP4, cheaper accelerators, offline work in the gaps",
            zh: "把批增大到 SLO 边缘、FP8/FP4、更便宜的卡、离线混跑",
        },
        rules: &["kv_spare", "underload", "cost_slack", "reserved_memory"],
    },
];

/// The row of this id.
pub fn find(id: &str) -> Option<&'static Row> {
    SYMPTOMS.iter().find(|row| row.id == id)
}
