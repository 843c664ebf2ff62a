//! A server's state in plain numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::histogram::Histogram;

/// A server at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The name under which the model is served.
    pub model: &'a str,
    /// When counting began, seconds since 1970.
    pub created_s: f64,
    /// What does not change.
    pub facts: &'a Facts,
    /// The engines, in the order of their numbers.
    pub engines: &'a [EngineState],
    /// What is in front of them.
    pub http: &'a Http,
}

/// What does not change while a server runs; all engines are alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// Tokens in a block of keys and values.
    pub block_size: u32,
    /// Blocks of one engine that sequences may use.
    pub blocks: u32,
    /// The number of blocks, where it was set by hand.
    pub blocks_set: Option<u32>,
    /// The most tokens of a prompt and its answer.
    pub context: u32,
    /// Precision of keys and values, as vLLM's flag has it.
    pub cache_dtype: String,
    /// Share of an accelerator's memory that the engine takes, 0 to 1.
    pub gpu_memory_utilization: f64,
    /// Whether blocks are found again.
    pub enable_prefix_caching: bool,
    /// The most tokens that layers with a window look at.
    pub sliding_window: Option<u32>,
    /// Memory of one accelerator for keys and values, bytes.
    pub kv_cache_bytes: f64,
    /// Memory of one accelerator for weights, bytes.
    pub weight_bytes: f64,
    /// Tokens drafted for each step of a sequence.
    pub drafted: u32,
}

/// Prompt tokens by where their keys and values came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptTokens {
    /// Computed by this engine.
    pub computed: u64,
    /// Found in its prefix cache.
    pub found: u64,
    /// Computed by another engine.
    pub transferred: u64,
}

impl PromptTokens {
    /// All of them.
    pub const fn all(&self) -> u64 {
        self.computed + self.found + self.transferred
    }

    pub(super) const fn with(&self, other: &Self) -> Self {
        Self {
            computed: self.computed + other.computed,
            found: self.found + other.found,
            transferred: self.transferred + other.transferred,
        }
    }
}

/// Answers that ended, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// The model ended it.
    pub stop: u64,
    /// It reached its limit.
    pub length: u64,
    /// Its client left.
    pub abort: u64,
}

impl Finished {
    pub(super) const fn with(&self, other: &Self) -> Self {
        Self {
            stop: self.stop + other.stop,
            length: self.length + other.length,
            abort: self.abort + other.abort,
        }
    }
}

/// Answers of one kind: streamed, or whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// Answers that ended and whose client was still there.
    pub ended: u64,
    /// Prompt tokens of them.
    pub prompt_tokens: u64,
    /// Tokens of them.
    pub generation_tokens: u64,
    /// Arrival to the first token's way out, seconds.
    pub ttft_s: Histogram,
    /// Time between tokens after the first, by answer, seconds.
    pub tpot_s: Histogram,
    /// Arrival to the last token's way out, seconds.
    pub e2e_s: Histogram,
}

impl Answers {
    pub(super) fn with(&self, other: &Self) -> Self {
        Self {
            ended: self.ended + other.ended,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            generation_tokens: self.generation_tokens + other.generation_tokens,
            ttft_s: self.ttft_s.with(&other.ttft_s),
            tpot_s: self.tpot_s.with(&other.tpot_s),
            e2e_s: self.e2e_s.with(&other.e2e_s),
        }
    }
}

/// One engine since counting began, and what it is like now. Bytes and
/// operations are those of one of its accelerators.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineState {
    /// Sequences that run.
    pub running: u64,
    /// Sequences that wait.
    pub waiting: u64,
    /// Those of them that wait for something else than room: for a place for
    /// their adapter.
    pub deferred: u64,
    /// Share of blocks in use, 0 to 1.
    pub kv_usage: f64,
    /// Prompt tokens that were looked up in the prefix cache at admission.
    pub prefix_queries: u64,
    /// Those of them that were found.
    pub prefix_hits: u64,
    /// Times that a sequence lost its blocks.
    pub preemptions: u64,
    /// Prompt tokens of requests whose first token is there.
    pub prompt_tokens: PromptTokens,
    /// Tokens of answers.
    pub generation_tokens: u64,
    /// Requests that ended.
    pub finished: Finished,
    /// Floating point operations.
    pub flops: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Bytes written.
    pub written_bytes: f64,
    /// Steps of sequences with drafted tokens.
    pub drafts: u64,
    /// Drafted tokens that were taken, by their place in the draft.
    pub accepted: Vec<u64>,
    /// Seconds with a step under way.
    pub busy_s: f64,
    /// Tokens of a step that gave some: of answers, and of prompts that ended in
    /// it.
    pub iteration_tokens: Histogram,
    /// Tokens of a prompt, of requests that ended.
    pub request_prompt_tokens: Histogram,
    /// Tokens of a prompt that were computed.
    pub request_computed_tokens: Histogram,
    /// Tokens of an answer.
    pub request_generation_tokens: Histogram,
    /// Tokens of the longest answer to a request.
    pub request_longest_tokens: Histogram,
    /// The most tokens that it could have had.
    pub request_max_tokens: Histogram,
    /// Answers asked for with one request.
    pub request_choices: Histogram,
    /// Between events of an answer, seconds.
    pub itl_s: Histogram,
    /// From the scheduler's queue into the first step, seconds.
    pub queue_s: Histogram,
    /// From there to the first token, seconds.
    pub prefill_s: Histogram,
    /// From there to the last token, seconds.
    pub decode_s: Histogram,
    /// From the first step to the last token, seconds.
    pub inference_s: Histogram,
    /// Answers in one piece.
    pub whole: Answers,
    /// Answers that were streamed.
    pub streamed: Answers,
}

/// The bounds of a profile's histograms.
pub(super) struct Bounds {
    pub(super) iteration_tokens: Vec<f64>,
    pub(super) request_tokens: Vec<f64>,
    pub(super) choices: Vec<f64>,
    pub(super) ttft_s: Vec<f64>,
    pub(super) itl_s: Vec<f64>,
    pub(super) e2e_s: Vec<f64>,
    pub(super) queue_s: Vec<f64>,
    pub(super) stage_s: Vec<f64>,
}

impl EngineState {
    pub(super) fn idle(bounds: &Bounds) -> Self {
        let new = |bounds: &Vec<f64>| Histogram::new(Arc::from(bounds.as_slice()));
        let answers = || Answers {
            ended: 0,
            prompt_tokens: 0,
            generation_tokens: 0,
            ttft_s: new(&bounds.ttft_s),
            tpot_s: new(&bounds.itl_s),
            e2e_s: new(&bounds.e2e_s),
        };
        Self {
            running: 0,
            waiting: 0,
            deferred: 0,
            kv_usage: 0.0,
            prefix_queries: 0,
            prefix_hits: 0,
            preemptions: 0,
            prompt_tokens: PromptTokens::default(),
            generation_tokens: 0,
            finished: Finished::default(),
            flops: 0.0,
            read_bytes: 0.0,
            written_bytes: 0.0,
            drafts: 0,
            accepted: Vec::new(),
            busy_s: 0.0,
            iteration_tokens: new(&bounds.iteration_tokens),
            request_prompt_tokens: new(&bounds.request_tokens),
            request_computed_tokens: new(&bounds.request_tokens),
            request_generation_tokens: new(&bounds.request_tokens),
            request_longest_tokens: new(&bounds.request_tokens),
            request_max_tokens: new(&bounds.request_tokens),
            request_choices: new(&bounds.choices),
            itl_s: new(&bounds.itl_s),
            queue_s: new(&bounds.queue_s),
            prefill_s: new(&bounds.stage_s),
            decode_s: new(&bounds.stage_s),
            inference_s: new(&bounds.stage_s),
            whole: answers(),
            streamed: answers(),
        }
    }

    /// What is counted by answer and not by engine, with that of another one.
    pub(super) fn with_answers_of(self, other: &Self) -> Self {
        let both = |own: &Histogram, others: &Histogram| own.with(others);
        Self {
            prompt_tokens: self.prompt_tokens.with(&other.prompt_tokens),
            finished: self.finished.with(&other.finished),
            itl_s: both(&self.itl_s, &other.itl_s),
            request_prompt_tokens: both(&self.request_prompt_tokens, &other.request_prompt_tokens),
            request_computed_tokens: both(
                &self.request_computed_tokens,
                &other.request_computed_tokens,
            ),
            request_generation_tokens: both(
                &self.request_generation_tokens,
                &other.request_generation_tokens,
            ),
            whole: self.whole.with(&other.whole),
            streamed: self.streamed.with(&other.streamed),
            ..self
        }
    }

    /// Answers of one kind.
    pub fn answers(&mut self, streamed: bool) -> &mut Answers {
        if streamed { &mut self.streamed } else { &mut self.whole }
    }
}

/// A count and a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Summary {
    /// Counts one value.
    pub fn observe(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
    }
}

/// What the HTTP server in front of the engines counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    endpoints: BTreeMap<(&'static str, &'static str), Endpoint>,
    durations: Histogram,
}

/// Answers under one path and method.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Answers by the hundreds of their status: 2xx, 4xx.
    pub by_status: BTreeMap<&'static str, u64>,
    /// Bytes of bodies that were sent here.
    pub request_bytes: Summary,
    /// Bytes of bodies whose head gave their length; 0 for the others.
    pub response_bytes: Summary,
    /// Arrival to the last write, seconds.
    pub durations: Histogram,
}

/// Bounds of the durations of all answers.
const FINE_S: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0,
    7.5, 10.0, 30.0, 60.0,
];

/// Bounds of the durations by path.
const COARSE_S: &[f64] = &[0.1, 0.5, 1.0];

impl Default for Http {
    fn default() -> Self {
        Self { endpoints: BTreeMap::new(), durations: Histogram::new(FINE_S) }
    }
}

impl Http {
    /// Counts an answer that is over. `response_bytes` is none where the head
    /// gave no length.
    pub fn answered(
        &mut self,
        (path, method): (&'static str, &'static str),
        status: u16,
        request_bytes: u64,
        response_bytes: Option<u64>,
        duration_s: f64,
    ) {
        let endpoint = self.endpoints.entry((path, method)).or_insert_with(|| Endpoint {
            by_status: BTreeMap::new(),
            request_bytes: Summary::default(),
            response_bytes: Summary::default(),
            durations: Histogram::new(COARSE_S),
        });
        let hundreds = ["1xx", "2xx", "3xx", "4xx", "5xx"];
        let place = usize::from(status / 100).clamp(1, 5) - 1;
        *endpoint.by_status.entry(hundreds[place]).or_default() += 1;
        endpoint.request_bytes.observe(request_bytes as f64);
        endpoint.response_bytes.observe(response_bytes.unwrap_or(0) as f64);
        endpoint.durations.observe(duration_s);
        self.durations.observe(duration_s);
    }

    /// Endpoints with their path and method.
    pub fn endpoints(&self) -> impl Iterator<Item = (&'static str, &'static str, &Endpoint)> {
        self.endpoints.iter().map(|((path, method), endpoint)| (*path, *method, endpoint))
    }

    /// Durations of all answers, seconds.
    pub const fn durations(&self) -> &Histogram {
        &self.durations
    }
}
