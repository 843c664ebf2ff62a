//! NVIDIA Dynamo: its front end and components. The engines behind it tell
//! theirs themselves, on a port of the system.

use measure::signal::{Role, Signal};

use super::way::{all, only, product, sum, told};
use super::{Entry, NONE, Table, of};

const STAGES: &str = "dynamo_frontend_stage_duration_seconds";

pub(super) const TABLE: Table = Table {
    key: "dynamo",
    name: "Dynamo",
    version: "1.6.1",
    prefixes: &["dynamo_"],
    role: Role::Router,
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[all("dynamo_frontend_queued_requests")])]).trap(
        "In the front end; engines have queues of their own.",
        "为前端队列；引擎另有自己的队列。",
    ),
    of(Signal::Running, &[told(&[all("dynamo_frontend_inflight_requests")])])
        .trap("All that it has taken and not answered.", "已接收但尚未答完的全部请求。"),
    of(Signal::SeatLimit, &[told(&[all("dynamo_frontend_model_max_num_seqs")])]),
    of(Signal::TokenBudget, &[told(&[all("dynamo_frontend_model_max_num_batched_tokens")])]),
    of(Signal::KvUsage, &[told(&[all("dynamo_component_gpu_cache_usage_percent")])])
        .trap("0 to 1 despite its name.", "虽名为 percent，取值是 0 到 1。"),
    of(
        Signal::KvCapacity,
        &[product(
            all("dynamo_frontend_model_total_kv_blocks"),
            all("dynamo_frontend_model_kv_cache_block_size"),
        )],
    ),
    of(Signal::KvBlockSize, &[told(&[all("dynamo_frontend_model_kv_cache_block_size")])]),
    of(Signal::ContextLimit, &[told(&[all("dynamo_frontend_model_context_length")])]),
    of(Signal::PrefixQueries, &[sum(&[all("dynamo_frontend_input_sequence_tokens")])]),
    of(Signal::PrefixHits, &[sum(&[all("dynamo_frontend_cached_tokens")])]).trap(
        "dynamo_frontend_kv_hit_rate is what the router expected.",
        "dynamo_frontend_kv_hit_rate 是路由时的预测值。",
    ),
    of(Signal::PromptTokens, &[sum(&[all("dynamo_frontend_input_sequence_tokens")])]),
    of(Signal::GeneratedTokens, &[told(&[all("dynamo_frontend_output_tokens_total")])]),
    of(Signal::Finished, &[told(&[all("dynamo_frontend_requests_total")])])
        .trap("No series before the first request.", "首个请求之前没有任何序列。"),
    of(Signal::ServerTtft, &[told(&[all("dynamo_frontend_time_to_first_token_seconds")])]),
    of(Signal::ServerItl, &[told(&[all("dynamo_frontend_inter_token_latency_seconds")])]),
    of(Signal::ServerE2el, &[told(&[all("dynamo_frontend_request_duration_seconds")])]),
    of(
        Signal::FrontEndTime,
        &[
            told(&[only(STAGES, "stage", &["preprocess"])]),
            told(&[all("dynamo_frontend_tokenizer_latency_ms")]).times(1e-3),
        ],
    ),
    of(Signal::GatewayTime, &[told(&[only(STAGES, "stage", &["route"])])])
        .trap("Without the dispatch after it.", "不含其后的分发阶段。"),
];
