//! Families of SGLang 0.5.23 for the state that the engine model has, with their
//! names, types, labels and bounds, as its collectors define them. SGLang has
//! some hundred more, of parts that the model does not have.

use super::state::{Bounds, Facts};
use super::{Family, Kind, Labels, Values};

/// What is not told, and why.
pub(super) const ABSENT: &[(&str, &str)] = &[
    ("sglang:swa_", "one usage is known of all layers together"),
    ("sglang:mamba_", "the models have no layers with a state"),
    ("sglang:lora_", "the places of adapters are not counted"),
    ("sglang:hicache_", "there is no second tier of the cache"),
    ("sglang:grammar_", "grammars are not modelled"),
    ("sglang:kv_transfer_", "a transfer takes time and is not counted"),
    ("sglang:startup_", "the model starts at once"),
    ("sglang:dp_", "replicas do not wait for each other"),
    ("sglang:kv_evictable_tokens", "free blocks are counted with those that can be found"),
    ("sglang:gen_throughput", "it is a mean over an interval of the log, which is not kept"),
    ("sglang:cache_hit_rate", "it is that of the last prompt only; the counters say more"),
];

/// The labels of an engine; more than one are told apart as ranks.
pub(super) fn labels(model: &str, number: usize, count: usize) -> Vec<(&'static str, String)> {
    let mut labels = front_labels(model);
    labels.extend(["tp_rank", "pp_rank", "moe_ep_rank"].map(|label| (label, "0".to_owned())));
    if count > 1 {
        labels.push(("dp_rank", number.to_string()));
    }
    labels
}

/// The labels of the tokenizer's process, which counts requests.
pub(super) fn front_labels(model: &str) -> Vec<(&'static str, String)> {
    vec![("model_name", model.to_owned()), ("engine_type", "unified".to_owned())]
}

const TTFT_S: &[f64] = &[
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0,
    400.0,
];

const ITL_S: &[f64] = &[
    0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08, 0.1, 0.2,
    0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0,
];

const E2E_S: &[f64] = &[
    0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 200.0,
    400.0, 600.0, 1200.0, 1800.0, 2400.0,
];

const QUEUE_S: &[f64] = &[
    0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0, 30.0,
    40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0,
    900.0, 1000.0, 1200.0, 1400.0, 1600.0, 1800.0, 2000.0, 2500.0, 3000.0,
];

const REQUEST_TOKENS: &[f64] = &[
    100.0, 300.0, 500.0, 700.0, 1e3, 1.5e3, 2e3, 3e3, 4e3, 5e3, 6e3, 7e3, 8e3, 9e3, 1e4, 1.25e4,
    1.5e4, 1.75e4, 2e4, 2.25e4, 2.5e4, 2.75e4, 3e4, 3.5e4, 4e4, 6e4, 8e4, 1e5, 2e5, 3e5, 4e5, 6e5,
    8e5, 1e6, 1.1e6,
];

/// The bounds, which do not depend on the model. Those of histograms that are
/// vLLM's alone are empty.
pub(super) fn bounds() -> Bounds {
    Bounds {
        iteration_tokens: Vec::new(),
        request_tokens: REQUEST_TOKENS.to_vec(),
        choices: Vec::new(),
        ttft_s: TTFT_S.to_vec(),
        itl_s: ITL_S.to_vec(),
        e2e_s: E2E_S.to_vec(),
        queue_s: QUEUE_S.to_vec(),
        stage_s: Vec::new(),
    }
}

const fn of_scheduler(
    name: &'static str,
    kind: Kind,
    help: &'static str,
    values: Values,
) -> Family {
    Family { name, kind, help, labels: Labels::Engine, values }
}

const fn of_front(name: &'static str, kind: Kind, help: &'static str, values: Values) -> Family {
    Family { name, kind, help, labels: Labels::Front, values }
}

fn tokens_of_cache(facts: &Facts) -> f64 {
    f64::from(facts.blocks) * f64::from(facts.block_size)
}

/// Every family that is there without drafts.
pub(super) const FAMILIES: &[Family] = &[
    of_scheduler(
        "sglang:num_running_reqs",
        Kind::Gauge,
        "Requests that run.",
        Values::Each(|engine| engine.running as f64),
    ),
    of_scheduler(
        "sglang:num_queue_reqs",
        Kind::Gauge,
        "Requests that wait.",
        Values::Each(|engine| engine.waiting as f64),
    ),
    of_scheduler(
        "sglang:num_grammar_queue_reqs",
        Kind::Gauge,
        "Requests that wait for their grammar.",
        Values::Still("grammars are not modelled"),
    ),
    of_scheduler(
        "sglang:token_usage",
        Kind::Gauge,
        "Share of the token pool in use, 0 to 1.",
        Values::Each(|engine| engine.kv_usage),
    ),
    of_scheduler(
        "sglang:full_token_usage",
        Kind::Gauge,
        "Share of the token pool in use by layers without a window, 0 to 1.",
        Values::Each(|engine| engine.kv_usage),
    ),
    of_scheduler(
        "sglang:num_used_tokens",
        Kind::Gauge,
        "Tokens of the pool in use.",
        Values::EachOfFacts(|engine, facts| engine.kv_usage * tokens_of_cache(facts)),
    ),
    of_scheduler(
        "sglang:kv_used_tokens",
        Kind::Gauge,
        "Tokens of the pool in use by requests that run.",
        Values::EachOfFacts(|engine, facts| engine.kv_usage * tokens_of_cache(facts)),
    ),
    of_scheduler(
        "sglang:kv_available_tokens",
        Kind::Gauge,
        "Tokens of the pool that nobody uses, those that can be found again too.",
        Values::EachOfFacts(|engine, facts| (1.0 - engine.kv_usage) * tokens_of_cache(facts)),
    ),
    of_scheduler(
        "sglang:num_retracted_requests_total",
        Kind::Counter,
        "Times that a request lost its place.",
        Values::Each(|engine| engine.preemptions as f64),
    ),
    of_scheduler(
        "sglang:queue_time_seconds",
        Kind::Histogram,
        "Wait for the first step, seconds.",
        Values::Spread(|engine| &engine.queue_s),
    ),
    of_scheduler(
        "sglang:realtime_tokens_total",
        Kind::Counter,
        "Tokens by what they are: computed of prompts, found of prompts, of answers.",
        Values::By(
            "mode",
            &[
                ("prefill_compute", |engine| engine.prompt_tokens.computed as f64),
                ("prefill_cache", |engine| engine.prompt_tokens.found as f64),
                ("decode", |engine| engine.generation_tokens as f64),
            ],
        ),
    ),
    of_scheduler(
        "sglang:prefill_effective_tokens_total",
        Kind::Counter,
        "Prompt tokens: all that came, and those found by where.",
        Values::By(
            "mode",
            &[
                ("input", |engine| engine.prompt_tokens.all() as f64),
                ("device_hit", |engine| engine.prompt_tokens.found as f64),
            ],
        ),
    ),
    of_scheduler(
        "sglang:estimated_flops_per_gpu_total",
        Kind::Counter,
        "Floating point operations of one accelerator, as the engine model counts them.",
        Values::Each(|engine| engine.flops),
    ),
    of_scheduler(
        "sglang:estimated_read_bytes_per_gpu_total",
        Kind::Counter,
        "Bytes that one accelerator read, as the engine model counts them.",
        Values::Each(|engine| engine.read_bytes),
    ),
    of_scheduler(
        "sglang:estimated_write_bytes_per_gpu_total",
        Kind::Counter,
        "Bytes that one accelerator wrote, as the engine model counts them.",
        Values::Each(|engine| engine.written_bytes),
    ),
    of_scheduler(
        "sglang:max_total_num_tokens",
        Kind::Gauge,
        "Tokens of the pool.",
        Values::Fact(tokens_of_cache),
    ),
    of_scheduler(
        "sglang:page_size",
        Kind::Gauge,
        "Tokens in a page of the pool.",
        Values::Fact(|facts| f64::from(facts.block_size)),
    ),
    of_scheduler(
        "sglang:num_pages",
        Kind::Gauge,
        "Pages of the pool.",
        Values::Fact(|facts| f64::from(facts.blocks)),
    ),
    of_scheduler(
        "sglang:context_len",
        Kind::Gauge,
        "Most tokens of a prompt and its answer.",
        Values::Fact(|facts| f64::from(facts.context)),
    ),
    of_scheduler(
        "sglang:weight_memory_usage_gb",
        Kind::Gauge,
        "Memory of one accelerator for weights, GB of 2^30 bytes.",
        Values::Fact(|facts| facts.weight_bytes / f64::from(1 << 30)),
    ),
    of_scheduler(
        "sglang:kv_cache_memory_usage_gb",
        Kind::Gauge,
        "Memory of one accelerator for the pool, GB of 2^30 bytes.",
        Values::Fact(|facts| facts.kv_cache_bytes / f64::from(1 << 30)),
    ),
    of_front(
        "sglang:prompt_tokens_total",
        Kind::Counter,
        "Prompt tokens of requests that ended.",
        Values::By(
            "is_streaming",
            &[
                ("true", |engine| engine.streamed.prompt_tokens as f64),
                ("false", |engine| engine.whole.prompt_tokens as f64),
            ],
        ),
    ),
    of_front(
        "sglang:generation_tokens_total",
        Kind::Counter,
        "Tokens of answers that ended.",
        Values::By(
            "is_streaming",
            &[
                ("true", |engine| engine.streamed.generation_tokens as f64),
                ("false", |engine| engine.whole.generation_tokens as f64),
            ],
        ),
    ),
    of_front(
        "sglang:prompt_tokens_histogram",
        Kind::Histogram,
        "Tokens of the prompt, by request.",
        Values::Spread(|engine| &engine.request_prompt_tokens),
    ),
    of_front(
        "sglang:uncached_prompt_tokens_histogram",
        Kind::Histogram,
        "Prompt tokens that were not found, by request.",
        Values::Spread(|engine| &engine.request_computed_tokens),
    ),
    of_front(
        "sglang:generation_tokens_histogram",
        Kind::Histogram,
        "Tokens of the answer, by request.",
        Values::Spread(|engine| &engine.request_generation_tokens),
    ),
    of_front(
        "sglang:cached_tokens_total",
        Kind::Counter,
        "Prompt tokens that were found, by where.",
        Values::By("cache_source", &[("device", |engine| engine.prompt_tokens.found as f64)]),
    ),
    of_front(
        "sglang:num_requests_total",
        Kind::Counter,
        "Requests that ended.",
        Values::By(
            "is_streaming",
            &[
                ("true", |engine| engine.streamed.ended as f64),
                ("false", |engine| engine.whole.ended as f64),
            ],
        ),
    ),
    of_front(
        "sglang:num_so_requests_total",
        Kind::Counter,
        "Requests for a structured answer.",
        Values::Still("grammars are not modelled"),
    ),
    of_front(
        "sglang:num_aborted_requests_total",
        Kind::Counter,
        "Requests whose client left.",
        Values::Each(|engine| engine.finished.abort as f64),
    ),
    of_front(
        "sglang:time_to_first_token_seconds",
        Kind::Histogram,
        "Arrival to the first token's way out, seconds.",
        Values::SpreadBy(
            "is_streaming",
            &[("true", |engine| &engine.streamed.ttft_s), ("false", |engine| &engine.whole.ttft_s)],
        ),
    ),
    of_front(
        "sglang:inter_token_latency_seconds",
        Kind::Histogram,
        "Between tokens of one answer, seconds; the tokens of one step share its time.",
        Values::Spread(|engine| &engine.itl_s),
    ),
    of_front(
        "sglang:request_time_per_output_token_seconds",
        Kind::Histogram,
        "Mean time between tokens, by request, seconds.",
        Values::SpreadBy(
            "is_streaming",
            &[("true", |engine| &engine.streamed.tpot_s), ("false", |engine| &engine.whole.tpot_s)],
        ),
    ),
    of_front(
        "sglang:e2e_request_latency_seconds",
        Kind::Histogram,
        "Arrival to the last token's way out, seconds.",
        Values::SpreadBy(
            "is_streaming",
            &[("true", |engine| &engine.streamed.e2e_s), ("false", |engine| &engine.whole.e2e_s)],
        ),
    ),
];

/// Families that are there with drafts only.
pub(super) const OF_DRAFTS: &[Family] = &[
    of_scheduler(
        "sglang:spec_accept_length",
        Kind::Gauge,
        "Tokens of an answer in one step with a draft, mean since the start.",
        Values::Each(|engine| 1.0 + per_draft(engine.accepted.iter().sum(), engine.drafts)),
    ),
    of_scheduler(
        "sglang:spec_num_draft_tokens",
        Kind::Gauge,
        "Tokens in a draft.",
        Values::Fact(|facts| f64::from(facts.drafted)),
    ),
];

fn per_draft(accepted: u64, drafts: u64) -> f64 {
    if drafts == 0 { 0.0 } else { accepted as f64 / drafts as f64 }
}
