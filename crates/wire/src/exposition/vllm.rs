//! The families of vLLM 0.27.1, in its order, with its names, types, labels and
//! bounds (a test holds them against what a real one told).

use super::state::{Bounds, EngineState, Facts};
use super::{Family, Kind, Labels, Values};

/// What is not told, and why.
pub(super) const ABSENT: &[(&str, &str)] = &[
    ("python_", "there is no interpreter"),
    ("process_", "they are of the interpreter's process, which does the work of a front end"),
];

/// The labels of an engine.
pub(super) fn labels(model: &str, number: usize) -> Vec<(&'static str, String)> {
    vec![("engine", number.to_string()), ("model_name", model.to_owned())]
}

/// 1, 2, 5, 10, 20, 50 and so on, up to `most`.
fn one_two_five(most: u32) -> Vec<f64> {
    let decades = (0..).map(|power| 10f64.powi(power));
    let steps = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|step| step * decade));
    steps.take_while(|bound| *bound <= f64::from(most)).collect()
}

const TTFT_S: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];

const ITL_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];

const LATENCY_S: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

const ITERATION_TOKENS: &[f64] =
    &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0];

const CHOICES: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0];

/// The bounds for a model of this context.
pub(super) fn bounds(context: u32) -> Bounds {
    Bounds {
        iteration_tokens: ITERATION_TOKENS.to_vec(),
        request_tokens: one_two_five(context),
        choices: CHOICES.to_vec(),
        ttft_s: TTFT_S.to_vec(),
        itl_s: ITL_S.to_vec(),
        e2e_s: LATENCY_S.to_vec(),
        queue_s: LATENCY_S.to_vec(),
        stage_s: LATENCY_S.to_vec(),
    }
}

const fn of_engine(name: &'static str, kind: Kind, help: &'static str, values: Values) -> Family {
    Family { name, kind, help, labels: Labels::Engine, values }
}

const fn of_http(name: &'static str, kind: Kind, help: &'static str, values: Values) -> Family {
    Family { name, kind, help, labels: Labels::Bare, values }
}

const NO_CONNECTOR: &str = "no connector brings keys and values from elsewhere";
const NO_PICTURES: &str = "what pictures become is not cached";

/// Every family that is there without drafts.
pub(super) const FAMILIES: &[Family] = &[
    of_engine(
        "vllm:estimated_flops_per_gpu_total",
        Kind::Counter,
        "Floating point operations of one accelerator, as the engine model counts them.",
        Values::Each(|engine| engine.flops),
    ),
    of_engine(
        "vllm:estimated_read_bytes_per_gpu_total",
        Kind::Counter,
        "Bytes that one accelerator read from its memory, as the engine model counts them.",
        Values::Each(|engine| engine.read_bytes),
    ),
    of_engine(
        "vllm:estimated_write_bytes_per_gpu_total",
        Kind::Counter,
        "Bytes that one accelerator wrote to its memory, as the engine model counts them.",
        Values::Each(|engine| engine.written_bytes),
    ),
    of_engine(
        "vllm:num_requests_running",
        Kind::Gauge,
        "Requests that run.",
        Values::Each(|engine| engine.running as f64),
    ),
    of_engine(
        "vllm:num_requests_waiting",
        Kind::Gauge,
        "Requests that wait.",
        Values::Each(|engine| engine.waiting as f64),
    ),
    of_engine(
        "vllm:num_requests_waiting_by_reason",
        Kind::Gauge,
        "Requests that wait: for room (capacity), or for a place for their adapter (deferred).",
        Values::By(
            "reason",
            &[
                ("capacity", |engine| engine.waiting.saturating_sub(engine.deferred) as f64),
                ("deferred", |engine| engine.deferred as f64),
            ],
        ),
    ),
    of_engine(
        "vllm:engine_sleep_state",
        Kind::Gauge,
        "1 at the state that the engine is in; this one never sleeps.",
        Values::By(
            "sleep_state",
            &[("awake", |_| 1.0), ("weights_offloaded", |_| 0.0), ("discard_all", |_| 0.0)],
        ),
    ),
    of_engine(
        "vllm:kv_cache_usage_perc",
        Kind::Gauge,
        "Share of KV blocks in use, 0 to 1.",
        Values::Each(|engine| engine.kv_usage),
    ),
    of_engine(
        "vllm:prefix_cache_queries_total",
        Kind::Counter,
        "Prompt tokens looked up in the prefix cache.",
        Values::Each(|engine| engine.prefix_queries as f64),
    ),
    of_engine(
        "vllm:prefix_cache_hits_total",
        Kind::Counter,
        "Prompt tokens found in the prefix cache.",
        Values::Each(|engine| engine.prefix_hits as f64),
    ),
    of_engine(
        "vllm:external_prefix_cache_queries_total",
        Kind::Counter,
        "Prompt tokens looked up in caches of other instances.",
        Values::Still(NO_CONNECTOR),
    ),
    of_engine(
        "vllm:external_prefix_cache_hits_total",
        Kind::Counter,
        "Prompt tokens found in caches of other instances.",
        Values::Still(NO_CONNECTOR),
    ),
    of_engine(
        "vllm:mm_cache_queries_total",
        Kind::Counter,
        "Pictures and sounds looked up in the multi-modal cache.",
        Values::Still(NO_PICTURES),
    ),
    of_engine(
        "vllm:mm_cache_hits_total",
        Kind::Counter,
        "Pictures and sounds found in the multi-modal cache.",
        Values::Still(NO_PICTURES),
    ),
    of_engine(
        "vllm:num_preemptions_total",
        Kind::Counter,
        "Times that a request lost its blocks.",
        Values::Each(|engine| engine.preemptions as f64),
    ),
    of_engine(
        "vllm:prompt_tokens_total",
        Kind::Counter,
        "Prompt tokens of requests whose first token is there.",
        Values::Each(|engine| engine.prompt_tokens.all() as f64),
    ),
    of_engine(
        "vllm:prompt_tokens_by_source_total",
        Kind::Counter,
        "The same by where their keys and values came from.",
        Values::By(
            "source",
            &[
                ("local_compute", |engine| engine.prompt_tokens.computed as f64),
                ("local_cache_hit", |engine| engine.prompt_tokens.found as f64),
                ("external_kv_transfer", |engine| engine.prompt_tokens.transferred as f64),
            ],
        ),
    ),
    of_engine(
        "vllm:prompt_tokens_cached_total",
        Kind::Counter,
        "Prompt tokens that were found or transferred.",
        Values::Each(|engine| {
            (engine.prompt_tokens.found + engine.prompt_tokens.transferred) as f64
        }),
    ),
    of_engine(
        "vllm:generation_tokens_total",
        Kind::Counter,
        "Tokens of answers.",
        Values::Each(|engine| engine.generation_tokens as f64),
    ),
    of_engine(
        "vllm:request_success_total",
        Kind::Counter,
        "Requests that ended, by reason.",
        Values::By(
            "finished_reason",
            &[
                ("stop", |engine| engine.finished.stop as f64),
                ("length", |engine| engine.finished.length as f64),
                ("abort", |engine| engine.finished.abort as f64),
                ("error", |_| 0.0),
                ("repetition", |_| 0.0),
            ],
        ),
    ),
    of_engine(
        "vllm:request_prompt_tokens",
        Kind::Histogram,
        "Tokens of the prompt, by request.",
        Values::Spread(|engine| &engine.request_prompt_tokens),
    ),
    of_engine(
        "vllm:request_generation_tokens",
        Kind::Histogram,
        "Tokens of the answer, by request.",
        Values::Spread(|engine| &engine.request_generation_tokens),
    ),
    of_engine(
        "vllm:iteration_tokens_total",
        Kind::Histogram,
        "Tokens of a step that gave some: of answers, and of whole prompts that ended in it.",
        Values::Spread(|engine| &engine.iteration_tokens),
    ),
    of_engine(
        "vllm:request_max_num_generation_tokens",
        Kind::Histogram,
        "Tokens of the longest answer, by request.",
        Values::Spread(|engine| &engine.request_longest_tokens),
    ),
    of_engine(
        "vllm:request_params_n",
        Kind::Histogram,
        "Answers asked for, by request.",
        Values::Spread(|engine| &engine.request_choices),
    ),
    of_engine(
        "vllm:request_params_max_tokens",
        Kind::Histogram,
        "Most tokens of the answer, by request.",
        Values::Spread(|engine| &engine.request_max_tokens),
    ),
    of_engine(
        "vllm:time_to_first_token_seconds",
        Kind::Histogram,
        "Arrival to the first token's way out, seconds.",
        Values::SpreadOfBoth(|engine| &engine.whole.ttft_s, |engine| &engine.streamed.ttft_s),
    ),
    of_engine(
        "vllm:inter_token_latency_seconds",
        Kind::Histogram,
        "Between the steps that gave tokens of one answer, seconds.",
        Values::Spread(|engine| &engine.itl_s),
    ),
    of_engine(
        "vllm:request_time_per_output_token_seconds",
        Kind::Histogram,
        "Mean time between tokens, by request, seconds.",
        Values::SpreadOfBoth(|engine| &engine.whole.tpot_s, |engine| &engine.streamed.tpot_s),
    ),
    of_engine(
        "vllm:e2e_request_latency_seconds",
        Kind::Histogram,
        "Arrival to the last token's way out, seconds.",
        Values::SpreadOfBoth(|engine| &engine.whole.e2e_s, |engine| &engine.streamed.e2e_s),
    ),
    of_engine(
        "vllm:request_queue_time_seconds",
        Kind::Histogram,
        "Wait for the first step, seconds.",
        Values::Spread(|engine| &engine.queue_s),
    ),
    of_engine(
        "vllm:request_inference_time_seconds",
        Kind::Histogram,
        "First step to last token, seconds.",
        Values::Spread(|engine| &engine.inference_s),
    ),
    of_engine(
        "vllm:request_prefill_time_seconds",
        Kind::Histogram,
        "First step to first token, seconds.",
        Values::Spread(|engine| &engine.prefill_s),
    ),
    of_engine(
        "vllm:request_decode_time_seconds",
        Kind::Histogram,
        "First to last token, seconds.",
        Values::Spread(|engine| &engine.decode_s),
    ),
    of_engine(
        "vllm:request_prefill_kv_computed_tokens",
        Kind::Histogram,
        "Prompt tokens that were not found, by request.",
        Values::Spread(|engine| &engine.request_computed_tokens),
    ),
    of_engine(
        "vllm:cache_config_info",
        Kind::Gauge,
        "What the KV cache is like, as labels.",
        Values::Info(cache_config),
    ),
    of_http(
        "http_requests_total",
        Kind::Counter,
        "Answers by method, status and path.",
        Values::HttpCount,
    ),
    of_http(
        "http_request_size_bytes",
        Kind::Summary,
        "Bytes of request bodies by path.",
        Values::HttpSize(|endpoint| &endpoint.request_bytes),
    ),
    of_http(
        "http_response_size_bytes",
        Kind::Summary,
        "Bytes of answers by path; those without a length in their head count 0.",
        Values::HttpSize(|endpoint| &endpoint.response_bytes),
    ),
    of_http(
        "http_request_duration_highr_seconds",
        Kind::Histogram,
        "Arrival to the end of the answer in fine steps, all paths.",
        Values::HttpDurationOfAll,
    ),
    of_http(
        "http_request_duration_seconds",
        Kind::Histogram,
        "Arrival to the end of the answer in coarse steps, by path.",
        Values::HttpDuration,
    ),
];

/// Families that are there with drafts only.
pub(super) const OF_DRAFTS: &[Family] = &[
    of_engine(
        "vllm:spec_decode_num_drafts_total",
        Kind::Counter,
        "Drafts.",
        Values::Each(|engine| engine.drafts as f64),
    ),
    of_engine(
        "vllm:spec_decode_num_draft_tokens_total",
        Kind::Counter,
        "Tokens drafted.",
        Values::Each(drafted_tokens),
    ),
    of_engine(
        "vllm:spec_decode_num_accepted_tokens_total",
        Kind::Counter,
        "Drafted tokens that were taken.",
        Values::Each(|engine| engine.accepted.iter().sum::<u64>() as f64),
    ),
    of_engine(
        "vllm:spec_decode_num_accepted_tokens_per_pos_total",
        Kind::Counter,
        "The same by their place in the draft.",
        Values::ByPosition,
    ),
];

/// `accepted` has a place for each token of a draft.
fn drafted_tokens(engine: &EngineState) -> f64 {
    engine.drafts as f64 * engine.accepted.len() as f64
}

/// A fact as Python shows it.
fn python(value: bool) -> String {
    if value { "True" } else { "False" }.to_owned()
}

fn or_none(value: Option<u32>) -> String {
    value.map_or_else(|| "None".to_owned(), |value| value.to_string())
}

fn cache_config(facts: &Facts) -> Vec<(&'static str, String)> {
    let tokens = u64::from(facts.blocks) * u64::from(facts.block_size);
    let concurrency = tokens as f64 / f64::from(facts.context.max(1));
    let text = str::to_owned;
    vec![
        ("_block_size_resolved", python(true)),
        ("block_size", facts.block_size.to_string()),
        ("cache_dtype", facts.cache_dtype.clone()),
        ("calculate_kv_scales", python(false)),
        ("enable_prefix_caching", python(facts.enable_prefix_caching)),
        ("gpu_memory_utilization", super::text::float(facts.gpu_memory_utilization)),
        ("is_attention_free", python(false)),
        ("kv_cache_dtype_skip_layers", text("[]")),
        ("kv_cache_max_concurrency", super::text::float(concurrency)),
        ("kv_cache_memory_bytes", format!("{:.0}", facts.kv_cache_bytes)),
        ("kv_cache_size_tokens", tokens.to_string()),
        ("kv_offloading_backend", text("native")),
        ("kv_offloading_size", text("None")),
        ("kv_sharing_fast_prefill", python(false)),
        ("mamba_block_size", text("None")),
        ("mamba_cache_dtype", text("auto")),
        ("mamba_cache_mode", text("none")),
        ("mamba_page_size_padded", text("None")),
        ("mamba_ssm_cache_dtype", text("auto")),
        ("num_cpu_blocks", text("None")),
        ("num_gpu_blocks", facts.blocks.to_string()),
        ("num_gpu_blocks_override", or_none(facts.blocks_set)),
        ("prefix_caching_hash_algo", text("sha256")),
        ("prefix_match_unit", text("None")),
        ("replayssm_buffer_len", text("16")),
        ("skip_page_size_padded", text("None")),
        ("sliding_window", or_none(facts.sliding_window)),
        ("use_replayssm", python(false)),
        ("user_specified_block_size", python(false)),
        ("user_specified_mamba_block_size", python(false)),
    ]
}
