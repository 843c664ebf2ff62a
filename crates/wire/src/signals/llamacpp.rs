//! llama.cpp's server.

use measure::signal::Signal;

use super::way::{all, pair, told};
use super::{Entry, NONE, Table, of};

const COMPUTED: &str = "llamacpp:prompt_tokens_total";
const CACHED: &str = "llamacpp:prompt_tokens_cached_total";
const PREDICTED: &str = "llamacpp:tokens_predicted_total";
const SINCE_LAST_SCRAPE: (&str, &str) = (
    "The gauge llamacpp:predicted_tokens_seconds is a mean since the last scrape by anyone: take \
     the counters.",
    "仪表 llamacpp:predicted_tokens_seconds 是自上次（任何人）抓取以来的均值：应以计数器为准。",
);

pub(super) const TABLE: Table = Table {
    key: "llamacpp",
    name: "llama.cpp",
    version: "2026-09",
    prefixes: &["llamacpp:"],
    exposed_by: "--metrics",
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[all("llamacpp:requests_deferred")])]),
    of(Signal::Running, &[told(&[all("llamacpp:requests_processing")])]),
    of(Signal::KvUsage, &[told(&[all("llamacpp:kv_cache_usage_ratio")])])
        .trap("Later builds dropped it; /slots has it.", "较新的构建已移除；可从 /slots 得到。"),
    of(Signal::PrefixQueries, &[told(&[all(COMPUTED), all(CACHED)])]),
    of(Signal::PrefixHits, &[told(&[all(CACHED)])])
        .trap("Only later builds count them.", "仅较新的构建提供。"),
    of(Signal::PromptTokens, &[told(&[all(COMPUTED), all(CACHED)])]),
    of(Signal::PromptComputed, &[told(&[all(COMPUTED)])])
        .trap("Moves at the first token of an answer.", "在首 token 产生时才变化。"),
    of(Signal::GeneratedTokens, &[told(&[all(PREDICTED)])])
        .trap(SINCE_LAST_SCRAPE.0, SINCE_LAST_SCRAPE.1),
    of(Signal::ServerItl, &[pair(all("llamacpp:tokens_predicted_seconds_total"), all(PREDICTED))])
        .trap("Moves at the end of an answer.", "在回答结束时才变化。"),
    of(Signal::Steps, &[told(&[all("llamacpp:n_decode_total")])]),
    of(Signal::Drafts, &[told(&[all("llamacpp:spec_decode_num_drafts_total")])]),
    of(Signal::DraftTokens, &[told(&[all("llamacpp:spec_decode_num_draft_tokens_total")])]),
    of(Signal::AcceptedTokens, &[told(&[all("llamacpp:spec_decode_num_accepted_tokens_total")])]),
];
