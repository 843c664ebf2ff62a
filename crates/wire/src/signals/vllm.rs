//! vLLM, with the names of earlier versions after those of today.

use measure::signal::Signal;

use super::way::{all, count, labels, less, only, sum, told};
use super::{Entry, NONE, Table, of};

const HITS: &str = "vllm:prefix_cache_hits_total";
const QUERIES: &str = "vllm:prefix_cache_queries_total";
const ENDED: &str = "vllm:request_success_total";
const MFU: &str = "--enable-mfu-metrics";
const PREEMPTED_WAIT_HERE: (&str, &str) =
    ("Preempted requests wait here too.", "被抢占的请求也计入其中。");
const NOT_BELOW_BUCKETS: (&str, &str) = (
    "The first bucket ends at 0.3 s: take the mean, or per-request timings.",
    "首个桶到 0.3 s 才结束：请用均值，或逐请求计时。",
);

pub(super) const TABLE: Table = Table {
    key: "vllm",
    name: "vLLM",
    version: "0.27.1",
    prefixes: &["vllm:"],
    instances: &["engine"],
    settings: &["vllm:cache_config_info"],
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[all("vllm:num_requests_waiting")])])
        .trap(PREEMPTED_WAIT_HERE.0, PREEMPTED_WAIT_HERE.1),
    of(
        Signal::QueueForCapacity,
        &[told(&[only("vllm:num_requests_waiting_by_reason", "reason", &["capacity"])])],
    ),
    of(
        Signal::QueueDeferred,
        &[told(&[only("vllm:num_requests_waiting_by_reason", "reason", &["deferred"])])],
    ),
    of(Signal::Running, &[told(&[all("vllm:num_requests_running")])]).trap(
        "Requests whose prompt is still computed in chunks are among them.",
        "仍在分块预填充的请求也计入其中。",
    ),
    of(
        Signal::KvUsage,
        &[told(&[all("vllm:kv_cache_usage_perc")]), told(&[all("vllm:gpu_cache_usage_perc")])],
    )
    .trap(
        "0 to 1 despite its name; cached blocks that nobody holds count as free.",
        "虽名为 perc，取值是 0 到 1；无人引用的缓存块算空闲。",
    ),
    of(
        Signal::KvCapacity,
        &[
            labels("vllm:cache_config_info", &["kv_cache_size_tokens"]),
            labels("vllm:cache_config_info", &["num_gpu_blocks", "block_size"]),
        ],
    )
    .trap(
        "Of one engine. Blocks times block size is too much where layers have windows.",
        "为单个引擎的值。有滑动窗口层时，块数乘块大小会偏大。",
    ),
    of(Signal::KvBlockSize, &[labels("vllm:cache_config_info", &["block_size"])]),
    of(Signal::Preemptions, &[told(&[all("vllm:num_preemptions_total")])]).trap(
        "What is computed again after one is in no token counter.",
        "抢占后的重算不计入任何 token 计数。",
    ),
    of(
        Signal::PrefixQueries,
        &[told(&[all(QUERIES)]), told(&[all("vllm:gpu_prefix_cache_queries_total")])],
    )
    .trap("Counted once, at admission.", "只在首次调度时计一次。"),
    of(Signal::PrefixHits, &[told(&[all(HITS)]), told(&[all("vllm:gpu_prefix_cache_hits_total")])]),
    of(Signal::ExternalHits, &[told(&[all("vllm:external_prefix_cache_hits_total")])])
        .exposed_by("--kv-transfer-config"),
    of(Signal::PromptTokens, &[told(&[all("vllm:prompt_tokens_total")])])
        .trap("Cached tokens are among them.", "包含命中缓存的 token。"),
    of(
        Signal::PromptComputed,
        &[
            told(&[only("vllm:prompt_tokens_by_source_total", "source", &["local_compute"])]),
            less(all("vllm:prompt_tokens_total"), all("vllm:prompt_tokens_cached_total")),
        ],
    ),
    of(Signal::GeneratedTokens, &[told(&[all("vllm:generation_tokens_total")])]),
    of(Signal::Finished, &[told(&[all(ENDED)])]).trap(
        "The name says success; aborted and failed requests are among them.",
        "名称是 success，但也包含中止和出错的请求。",
    ),
    of(Signal::Aborted, &[told(&[only(ENDED, "finished_reason", &["abort"])])]),
    of(Signal::ServerErrors, &[told(&[only(ENDED, "finished_reason", &["error"])])]),
    of(Signal::QueueTime, &[told(&[all("vllm:request_queue_time_seconds")])]).trap(
        "To the first schedule only: waiting again after a preemption is in the later phases. The \
         first bucket ends at 0.3 s.",
        "只到首次调度：抢占后的再次等待计入后续阶段。首个桶到 0.3 s 才结束。",
    ),
    of(Signal::PrefillTime, &[told(&[all("vllm:request_prefill_time_seconds")])])
        .trap(NOT_BELOW_BUCKETS.0, NOT_BELOW_BUCKETS.1),
    of(Signal::DecodeTime, &[told(&[all("vllm:request_decode_time_seconds")])])
        .trap(NOT_BELOW_BUCKETS.0, NOT_BELOW_BUCKETS.1),
    of(Signal::ServerTtft, &[told(&[all("vllm:time_to_first_token_seconds")])])
        .trap("From arrival, before tokenising.", "从到达时（分词之前）开始计时。"),
    of(
        Signal::ServerItl,
        &[
            told(&[all("vllm:inter_token_latency_seconds")]),
            told(&[all("vllm:time_per_output_token_seconds")]),
        ],
    )
    .trap(
        "One for each output, which is several tokens under speculation; nothing below 10 ms is \
         told apart.",
        "每次输出一个样本，推测解码时一次含多个 token；10 ms 以下无法区分。",
    ),
    of(Signal::ServerTpot, &[told(&[all("vllm:request_time_per_output_token_seconds")])]),
    of(Signal::ServerE2el, &[told(&[all("vllm:e2e_request_latency_seconds")])])
        .trap("Counted at the end of a request.", "在请求结束时才计入。"),
    of(Signal::Steps, &[count(all("vllm:iteration_tokens_total"))]).trap(
        "Steps that give no output, as those of a prompt's first chunks, are not counted.",
        "没有产出的步（如提示的前几块）不计入。",
    ),
    of(Signal::StepTokens, &[told(&[all("vllm:iteration_tokens_total")])]).trap(
        "A histogram in spite of its name; a prompt in chunks is booked whole on its last step.",
        "虽以 _total 结尾，实为直方图；分块的提示整体记在最后一步。",
    ),
    of(Signal::HostCpu, &[told(&[all("process_cpu_seconds_total")])])
        .trap("Of the API server's process only.", "仅为 API 服务进程。"),
    of(Signal::Drafts, &[told(&[all("vllm:spec_decode_num_drafts_total")])])
        .exposed_by("--speculative-config"),
    of(Signal::DraftTokens, &[told(&[all("vllm:spec_decode_num_draft_tokens_total")])])
        .exposed_by("--speculative-config"),
    of(Signal::AcceptedTokens, &[told(&[all("vllm:spec_decode_num_accepted_tokens_total")])])
        .exposed_by("--speculative-config"),
    of(Signal::EstimatedFlops, &[told(&[all("vllm:estimated_flops_per_gpu_total")])])
        .exposed_by(MFU)
        .zero_is_off()
        .trap(
            "Counts causal attention twice, and what is computed again after preemptions.",
            "因果注意力算了两倍，且包含抢占后的重算。",
        ),
    of(Signal::EstimatedReadBytes, &[told(&[all("vllm:estimated_read_bytes_per_gpu_total")])])
        .exposed_by(MFU)
        .zero_is_off()
        .trap(
            "Assumes 4-bit weights of some formats even where they have 8, and balanced experts.",
            "部分格式即使是 8 位也按 4 位权重计，并假设专家均衡。",
        ),
    of(Signal::KvTransferTime, &[told(&[all("vllm:nixl_xfer_time_seconds")])])
        .exposed_by("--kv-transfer-config"),
    of(
        Signal::KvTransferBytes,
        &[
            sum(&[all("vllm:nixl_bytes_transferred")]),
            told(&[
                all("vllm:kv_offload_load_bytes_total"),
                all("vllm:kv_offload_store_bytes_total"),
            ]),
        ],
    )
    .exposed_by("--kv-transfer-config"),
    of(Signal::KvTransferFailures, &[told(&[all("vllm:nixl_num_failed_transfers_total")])])
        .exposed_by("--kv-transfer-config"),
    of(Signal::KvExpired, &[told(&[all("vllm:nixl_num_kv_expired_reqs_total")])])
        .exposed_by("--kv-transfer-config")
        .trap("Counted on the engine that computed the prompt.", "在执行预填充的引擎上计数。"),
    of(Signal::KvLoadTime, &[told(&[all("vllm:kv_offload_load_time_total")])])
        .exposed_by("--kv-offloading-size"),
    of(Signal::KvLoadBytes, &[told(&[all("vllm:kv_offload_load_bytes_total")])])
        .exposed_by("--kv-offloading-size"),
    of(
        Signal::KvOffloadRefusals,
        &[told(&[
            all("vllm:kv_offload_allocation_failure_total"),
            all("vllm:kv_offload_stores_skipped_total"),
        ])],
    )
    .exposed_by("--kv-offloading-size"),
    of(Signal::ImageQueries, &[told(&[all("vllm:mm_cache_queries_total")])]),
    of(Signal::ImageHits, &[told(&[all("vllm:mm_cache_hits_total")])]),
];
