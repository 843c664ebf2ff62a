//! TensorRT-LLM, served by itself and by Triton.

use measure::signal::Signal;

use super::way::{all, less, only, pair, product, sampled, told};
use super::{Entry, NONE, Pick, Table, of};

const PER_REQUEST: &str = "return_perf_metrics: true";
const PER_STEP: &str = "enable_iter_perf_stats: true";
const ENDED: &str = "trtllm_request_success_total";

pub(super) const TABLE: Table = Table {
    key: "trtllm",
    name: "TensorRT-LLM",
    version: "050f80de",
    prefixes: &["trtllm_"],
    exposed_by: "/prometheus/metrics",
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[all("trtllm_num_requests_waiting")])]).exposed_by(PER_STEP),
    of(Signal::Running, &[told(&[all("trtllm_num_requests_running")])]).exposed_by(PER_STEP),
    of(
        Signal::SeatLimit,
        &[
            told(&[all("trtllm_max_num_active_requests")]),
            told(&[all("trtllm_max_batch_size_runtime")]),
        ],
    )
    .exposed_by(PER_STEP),
    of(Signal::TokenBudget, &[told(&[all("trtllm_max_num_tokens_runtime")])]).exposed_by(PER_STEP),
    of(Signal::KvUsage, &[told(&[all("trtllm_kv_cache_utilization")])]).exposed_by(PER_STEP),
    of(
        Signal::KvCapacity,
        &[product(all("trtllm_kv_cache_max_blocks"), all("trtllm_kv_cache_tokens_per_block"))],
    )
    .exposed_by(PER_STEP),
    of(Signal::KvBlockSize, &[told(&[all("trtllm_kv_cache_tokens_per_block")])])
        .exposed_by(PER_STEP),
    of(Signal::PrefixQueries, &[told(&[all("trtllm_prompt_tokens_total")])])
        .exposed_by(PER_REQUEST),
    of(Signal::PrefixHits, &[told(&[all("trtllm_prompt_cached_tokens_total")])])
        .exposed_by(PER_REQUEST),
    of(Signal::PromptTokens, &[told(&[all("trtllm_prompt_tokens_total")])])
        .exposed_by(PER_REQUEST)
        .trap("Cached tokens are among them.", "包含命中缓存的 token。"),
    of(
        Signal::PromptComputed,
        &[less(all("trtllm_prompt_tokens_total"), all("trtllm_prompt_cached_tokens_total"))],
    )
    .exposed_by(PER_REQUEST),
    of(Signal::GeneratedTokens, &[told(&[all("trtllm_generation_tokens_total")])])
        .exposed_by(PER_REQUEST),
    of(Signal::Finished, &[told(&[all(ENDED)])]),
    of(Signal::ServerErrors, &[told(&[all("trtllm_request_error_total")])]),
    of(Signal::QueueTime, &[told(&[all("trtllm_request_queue_time_seconds")])])
        .exposed_by(PER_REQUEST),
    of(Signal::PrefillTime, &[told(&[all("trtllm_request_prefill_time_seconds")])])
        .exposed_by(PER_REQUEST),
    of(Signal::DecodeTime, &[told(&[all("trtllm_request_decode_time_seconds")])])
        .exposed_by(PER_REQUEST),
    of(Signal::ServerTtft, &[told(&[all("trtllm_time_to_first_token_seconds")])])
        .exposed_by(PER_REQUEST),
    of(Signal::ServerTpot, &[told(&[all("trtllm_time_per_output_token_seconds")])])
        .exposed_by(PER_REQUEST),
    of(Signal::ServerE2el, &[told(&[all("trtllm_e2e_request_latency_seconds")])])
        .exposed_by(PER_REQUEST),
    of(Signal::StepTime, &[sampled(all("trtllm_iteration_latency_seconds"))])
        .exposed_by(PER_STEP)
        .trap("Of the last step before each scrape.", "只是每次抓取前最后一步的值。"),
    of(Signal::DraftTokens, &[told(&[all("trtllm_spec_decode_num_draft_tokens_total")])])
        .exposed_by("speculative_config"),
    of(Signal::AcceptedTokens, &[told(&[all("trtllm_spec_decode_num_accepted_tokens_total")])])
        .exposed_by("speculative_config"),
    of(
        Signal::KvTransferBytes,
        &[told(&[
            all("trtllm_kv_cache_onboard_bytes_total"),
            all("trtllm_kv_cache_offload_bytes_total"),
        ])],
    )
    .exposed_by(PER_STEP),
];

/// Triton's backend for TensorRT-LLM tells levels only.
pub(super) const TRITON: Table = Table {
    key: "triton",
    name: "Triton with TensorRT-LLM",
    version: "0b9d7d5a",
    prefixes: &["nv_trt_llm_"],
    entries: OF_TRITON,
    ..NONE
};

const fn requests(kind: &'static [&'static str]) -> Pick {
    only("nv_trt_llm_request_metrics", "request_type", kind)
}

const fn blocks(kind: &'static [&'static str]) -> Pick {
    only("nv_trt_llm_kv_cache_block_metrics", "kv_cache_block_type", kind)
}

const OF_TRITON: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[requests(&["waiting"])])]),
    of(Signal::Running, &[told(&[requests(&["scheduled"])])]),
    of(Signal::SeatLimit, &[told(&[requests(&["max"])])]),
    of(Signal::KvUsage, &[told(&[blocks(&["fraction"])])]),
    of(Signal::KvCapacity, &[product(blocks(&["max"]), blocks(&["tokens_per"]))]),
    of(Signal::KvBlockSize, &[told(&[blocks(&["tokens_per"])])]),
    of(
        Signal::QueueTime,
        &[pair(all("nv_inference_queue_duration_us"), all("nv_inference_request_success"))
            .times(1e-6)],
    )
    .trap("Of Triton's own queue, before the backend's.", "为 Triton 自身的队列，在后端队列之前。"),
    of(
        Signal::ServerE2el,
        &[pair(all("nv_inference_request_duration_us"), all("nv_inference_request_success"))
            .times(1e-6)],
    ),
    of(Signal::Finished, &[told(&[all("nv_inference_request_success")])]),
    of(Signal::ServerErrors, &[told(&[all("nv_inference_request_failure")])]),
];
