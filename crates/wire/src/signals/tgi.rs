//! Text Generation Inference of Hugging Face.

use measure::signal::Signal;

use super::way::{all, chain, count, less, only, ratio, sum, told};
use super::{Entry, NONE, Table, of};

const PREFILL: super::Pick = only("tgi_batch_inference_duration", "method", &["prefill"]);
const STEP: super::Pick = only("tgi_batch_forward_duration", "method", &["decode"]);
const OF_BATCHES: (&str, &str) = ("Of a batch, not of a request.", "以批为单位，而非请求。");

pub(super) const TABLE: Table = Table {
    key: "tgi",
    name: "TGI",
    version: "3.3.7",
    prefixes: &["tgi_"],
    entries: ENTRIES,
    ..NONE
};

const ENTRIES: &[Entry] = &[
    of(Signal::QueueDepth, &[told(&[all("tgi_queue_size")])]),
    of(Signal::Running, &[told(&[all("tgi_batch_current_size")])]),
    of(
        Signal::KvUsage,
        &[ratio(all("tgi_batch_current_max_tokens"), all("tgi_batch_max_total_tokens"))],
    )
    .trap(
        "What requests may come to at most, not what they hold.",
        "是请求可能达到的上限，而不是已占用量。",
    ),
    of(Signal::KvCapacity, &[told(&[all("tgi_batch_max_total_tokens")])]),
    of(Signal::PromptTokens, &[sum(&[all("tgi_request_input_length")])]),
    of(Signal::GeneratedTokens, &[sum(&[all("tgi_request_generated_tokens")])])
        .trap("Counted at the end of a request.", "在请求结束时才计入。"),
    of(
        Signal::Finished,
        &[
            told(&[all("tgi_request_success"), all("tgi_request_failure")]),
            told(&[all("tgi_request_success")]),
        ],
    ),
    of(Signal::Aborted, &[told(&[only("tgi_request_failure", "err", &["dropped"])])]),
    of(
        Signal::ServerErrors,
        &[told(&[only("tgi_request_failure", "err", &["overloaded", "incomplete", "generation"])])],
    ),
    of(Signal::QueueTime, &[told(&[all("tgi_request_queue_duration")])]),
    of(Signal::PrefillTime, &[told(&[PREFILL])]).trap(OF_BATCHES.0, OF_BATCHES.1),
    of(Signal::DecodeTime, &[less(all("tgi_request_inference_duration"), PREFILL)])
        .trap("Inference less the mean prefill of a batch.", "推理时间减去每批预填充的均值。"),
    of(
        Signal::ServerTtft,
        &[chain(&[
            all("tgi_request_validation_duration"),
            all("tgi_request_queue_duration"),
            PREFILL,
        ])],
    )
    .trap(
        "Not told itself: validation, queue and prefill, one after the other.",
        "没有直接给出：由校验、排队、预填充三段相加。",
    ),
    of(Signal::ServerTpot, &[told(&[all("tgi_request_mean_time_per_token_duration")])]),
    of(Signal::ServerE2el, &[told(&[all("tgi_request_duration")])]),
    of(Signal::FrontEndTime, &[told(&[all("tgi_request_validation_duration")])]),
    of(Signal::Steps, &[count(STEP)]),
    of(Signal::StepTime, &[told(&[STEP])]),
    of(Signal::StepTokens, &[told(&[all("tgi_batch_next_size")])]).trap(
        "Requests of a batch: one token each while decoding.",
        "为批内请求数：解码时每请求一个 token。",
    ),
    of(Signal::AcceptedTokens, &[sum(&[all("tgi_request_skipped_tokens")])])
        .exposed_by("--speculate"),
];
