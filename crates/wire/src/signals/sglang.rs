//! SGLang.

use measure::signal::Signal;

use super::way::{all, less, only, pair, sum, told};
use super::{Entry, NONE, Table, of};

const PASSES: &str = "sglang:cuda_graph_passes_total";
const STAGES: &str = "sglang:per_stage_req_latency_seconds";
const PREFILLED: &str = "sglang:prefill_effective_tokens_total";
const AT_THE_END: (&str, &str) = ("Counted at the end of a request.", "在请求结束时才计入。");
const MFU: &str = "--enable-mfu-metrics";

pub(super) const TABLE: Table = Table {
    key: "sglang",
    name: "SGLang",
    version: "0.5.23",
    prefixes: &["sglang:"],
    exposed_by: "--enable-metrics",
    instances: &["dp_rank"],
    alike: &["tp_rank", "pp_rank", "moe_ep_rank"],
    role_label: Some("engine_type"),
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(
        Signal::QueueDepth,
        &[
            told(&[all("sglang:num_queue_reqs"), all("sglang:num_grammar_queue_reqs")]),
            told(&[all("sglang:num_queue_reqs")]),
        ],
    ),
    of(Signal::QueueForCapacity, &[told(&[all("sglang:num_queue_reqs")])]),
    of(Signal::QueueDeferred, &[told(&[all("sglang:num_grammar_queue_reqs")])]),
    of(Signal::AdmissionReserve, &[told(&[all("sglang:new_token_ratio")])]).trap(
        "Of the answers' limits, and falls by itself while nothing is retracted.",
        "相对于输出上限；只要没有回退就会自行下降。",
    ),
    of(Signal::Running, &[told(&[all("sglang:num_running_reqs")])]),
    of(Signal::KvUsage, &[told(&[all("sglang:token_usage")])]).trap(
        "The fullest of its pools; what can be evicted counts as free.",
        "取各内存池中最满者；可驱逐的算空闲。",
    ),
    of(Signal::KvCapacity, &[told(&[all("sglang:max_total_num_tokens")])]),
    of(Signal::KvBlockSize, &[told(&[all("sglang:page_size")])]),
    of(Signal::ContextLimit, &[told(&[all("sglang:context_len")])]),
    of(Signal::Preemptions, &[told(&[all("sglang:num_retracted_requests_total")])]),
    of(
        Signal::RecomputedTokens,
        &[told(&[
            all("sglang:num_retracted_input_tokens_total"),
            all("sglang:num_retracted_output_tokens_total"),
        ])],
    ),
    of(
        Signal::PrefixQueries,
        &[told(&[only(PREFILLED, "mode", &["input"])]), told(&[all("sglang:prompt_tokens_total")])],
    ),
    of(
        Signal::PrefixHits,
        &[
            told(&[only(PREFILLED, "mode", &["device_hit", "host_hit", "storage_hit"])]),
            told(&[all("sglang:cached_tokens_total")]),
        ],
    )
    .trap(
        "sglang:cache_hit_rate is of the last prompt only; the counters say more.",
        "sglang:cache_hit_rate 只反映最近一次预填充；应以计数器为准。",
    ),
    of(Signal::PrefixEvicted, &[told(&[all("sglang:evicted_tokens_total")])]),
    of(
        Signal::ExternalHits,
        &[told(&[only("sglang:cached_tokens_total", "cache_source", &["host", "storage*"])])],
    ),
    of(
        Signal::PromptTokens,
        &[told(&[only(PREFILLED, "mode", &["input"])]), told(&[all("sglang:prompt_tokens_total")])],
    )
    .trap("Cached tokens are among them.", "包含命中缓存的 token。"),
    of(
        Signal::PromptComputed,
        &[
            told(&[only("sglang:realtime_tokens_total", "mode", &["prefill_compute"])]),
            less(all("sglang:prompt_tokens_total"), all("sglang:cached_tokens_total")),
        ],
    ),
    of(
        Signal::GeneratedTokens,
        &[
            told(&[only("sglang:realtime_tokens_total", "mode", &["decode"])]),
            told(&[all("sglang:generation_tokens_total")]),
        ],
    )
    .trap(
        "sglang:generation_tokens_total moves at the end of a request.",
        "sglang:generation_tokens_total 在请求结束时才变化。",
    ),
    of(Signal::Finished, &[told(&[all("sglang:num_requests_total")])]),
    of(Signal::Aborted, &[told(&[all("sglang:num_aborted_requests_total")])]),
    of(Signal::QueueTime, &[told(&[all("sglang:queue_time_seconds")])]),
    of(Signal::PrefillTime, &[told(&[only(STAGES, "stage", &["prefill_forward"])])]).trap(
        "Chunks before the last one are a stage of their own.",
        "最后一块之前的分块属于另一阶段。",
    ),
    of(
        Signal::DecodeTime,
        &[less(
            all("sglang:e2e_request_latency_seconds"),
            all("sglang:time_to_first_token_seconds"),
        )],
    ),
    of(Signal::ServerTtft, &[told(&[all("sglang:time_to_first_token_seconds")])])
        .trap("The first bucket ends at 0.1 s.", "首个桶到 0.1 s 才结束。"),
    of(Signal::ServerItl, &[told(&[all("sglang:inter_token_latency_seconds")])]).trap(
        "Divided by the tokens of a chunk, unlike vLLM's.",
        "已按每块的 token 数平分，与 vLLM 不同。",
    ),
    of(Signal::ServerTpot, &[told(&[all("sglang:request_time_per_output_token_seconds")])]),
    of(Signal::ServerE2el, &[told(&[all("sglang:e2e_request_latency_seconds")])])
        .trap(AT_THE_END.0, AT_THE_END.1),
    of(Signal::Steps, &[told(&[all(PASSES)])]),
    of(Signal::StepTime, &[pair(all("sglang:forward_execution_seconds_total"), all(PASSES))]),
    of(Signal::StepTokens, &[pair(all("sglang:realtime_tokens_total"), all(PASSES))])
        .trap("Cached tokens of prompts are among them.", "包含命中缓存的输入 token。"),
    of(Signal::EagerSteps, &[told(&[only(PASSES, "mode", &["decode_none"])])]),
    of(Signal::EngineIdle, &[told(&[all("sglang:scheduler_idle_seconds_total")])]),
    of(
        Signal::HostCpu,
        &[
            told(&[all("sglang:scheduler_process_cpu_seconds_total")]),
            told(&[all("process_cpu_seconds_total")]),
        ],
    )
    .trap(
        "Of the scheduler's process; sglang:utilization is stuck at 0.",
        "仅为调度进程；sglang:utilization 恒为 0。",
    ),
    of(Signal::Drafts, &[told(&[all("sglang:spec_verify_calls_total")])])
        .exposed_by("--speculative-algorithm"),
    of(Signal::EstimatedFlops, &[told(&[all("sglang:estimated_flops_per_gpu_total")])])
        .exposed_by(MFU)
        .zero_is_off(),
    of(Signal::EstimatedReadBytes, &[told(&[all("sglang:estimated_read_bytes_per_gpu_total")])])
        .exposed_by(MFU)
        .zero_is_off(),
    of(Signal::KvTransferTime, &[told(&[all("sglang:kv_transfer_latency_ms")]).times(1e-3)])
        .exposed_by("--disaggregation-mode"),
    of(Signal::KvTransferBytes, &[sum(&[all("sglang:kv_transfer_total_mb")]).times(1e6)])
        .exposed_by("--disaggregation-mode"),
    of(
        Signal::KvTransferFailures,
        &[told(&[
            all("sglang:num_transfer_failed_reqs_total"),
            all("sglang:num_bootstrap_failed_reqs_total"),
        ])],
    )
    .exposed_by("--disaggregation-mode"),
    of(
        Signal::TransferQueue,
        &[told(&[
            all("sglang:num_decode_transfer_queue_reqs"),
            all("sglang:num_decode_prealloc_queue_reqs"),
        ])],
    )
    .exposed_by("--disaggregation-mode"),
    of(Signal::KvLoadTime, &[sum(&[all("sglang:load_back_duration_seconds")])])
        .exposed_by("--enable-hierarchical-cache"),
    of(Signal::KvLoadBytes, &[told(&[all("sglang:load_back_bytes_total")])])
        .exposed_by("--enable-hierarchical-cache"),
    of(Signal::GrammarQueue, &[told(&[all("sglang:num_grammar_queue_reqs")])]),
    of(Signal::GrammarTime, &[told(&[all("sglang:grammar_compilation_time_seconds")])]),
    of(Signal::ExpertBalance, &[told(&[all("sglang:eplb_balancedness")])])
        .exposed_by("--enable-eplb"),
    of(Signal::RankSyncWait, &[told(&[all("sglang:dp_attention_sync_wait_seconds")])])
        .exposed_by("--enable-dp-attention"),
    of(Signal::RankImbalance, &[told(&[all("sglang:dp_attention_token_imbalance_ratio")])])
        .exposed_by("--enable-dp-attention"),
];
