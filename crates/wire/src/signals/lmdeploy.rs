//! LMDeploy.

use measure::signal::Signal;

use super::way::{all, count, less, told};
use super::{Entry, NONE, Table, of};

const ENDED: &str = "lmdeploy:request_success_total";

pub(super) const TABLE: Table = Table {
    key: "lmdeploy",
    name: "LMDeploy",
    version: "0.16.0",
    prefixes: &["lmdeploy:"],
    exposed_by: "--enable-metrics",
    instances: &["engine"],
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[all("lmdeploy:num_requests_waiting")])]),
    of(Signal::QueueForCapacity, &[told(&[all("lmdeploy:num_api_requests_waiting")])]),
    of(Signal::Running, &[told(&[all("lmdeploy:num_requests_running")])]),
    of(Signal::KvUsage, &[told(&[all("lmdeploy:gpu_cache_usage_perc")])]).trap(
        "With TurboMind it is bytes held by live objects of the prefix cache, which is something \
         else.",
        "使用 TurboMind 时表示前缀缓存对象占用的字节，含义不同。",
    ),
    of(Signal::PrefixQueries, &[told(&[all("lmdeploy:prompt_tokens_total")])]),
    of(Signal::PrefixHits, &[told(&[all("lmdeploy:cached_tokens_total")])]),
    of(Signal::PromptTokens, &[told(&[all("lmdeploy:prompt_tokens_total")])]),
    of(
        Signal::PromptComputed,
        &[less(all("lmdeploy:prompt_tokens_total"), all("lmdeploy:cached_tokens_total"))],
    ),
    of(Signal::GeneratedTokens, &[told(&[all("lmdeploy:generation_tokens_total")])]),
    of(Signal::Finished, &[told(&[all(ENDED)])]),
    of(Signal::QueueTime, &[told(&[all("lmdeploy:request_queue_time_seconds")])]),
    of(Signal::PrefillTime, &[told(&[all("lmdeploy:request_prefill_time_seconds")])]),
    of(Signal::DecodeTime, &[told(&[all("lmdeploy:request_decode_time_seconds")])]),
    of(Signal::ServerTtft, &[told(&[all("lmdeploy:time_to_first_token_seconds")])]),
    of(Signal::ServerItl, &[told(&[all("lmdeploy:iter_token_latency")])])
        .trap("Seconds, though its name has no unit.", "单位为秒，名称中没有写明。"),
    of(Signal::ServerTpot, &[told(&[all("lmdeploy:time_per_output_token_seconds")])]),
    of(Signal::ServerE2el, &[told(&[all("lmdeploy:e2e_request_latency_seconds")])]),
    of(Signal::Steps, &[count(all("lmdeploy:iteration_tokens_total"))]),
    of(Signal::StepTokens, &[told(&[all("lmdeploy:iteration_tokens_total")])]),
    of(Signal::Drafts, &[told(&[all("lmdeploy:spec_decode_num_drafts_total")])]),
    of(Signal::DraftTokens, &[told(&[all("lmdeploy:spec_decode_num_draft_tokens_total")])]),
    of(Signal::AcceptedTokens, &[told(&[all("lmdeploy:spec_decode_num_accepted_tokens_total")])]),
];
