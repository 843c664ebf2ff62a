//! The embedded engine: an OpenAI-compatible server with a plan. Who runs when
//! is decided in planned time, never by when a write really happened, so that
//! lateness of the server does not pile up and the plan can be held against
//! the truth.

mod stream;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use workload::Tokenizer;

use self::stream::{Shape, TokenStream};
use crate::clock;
use crate::draw::mix;
use crate::openai::{Answer, Ask, Kind, Refused, Route, Served, Tally, Voice, Words, route};
use crate::request::Request;
use crate::script::{Play, Respond, Script, Step};

/// What the embedded engine is like. The default resembles a small deployment
/// of an 8B model on one accelerator.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// The one model served; a request for another is answered with 404. None
    /// accepts any name.
    pub model: Option<String>,
    /// TTFT of a request that did not wait, before its prompt is counted.
    pub ttft: Duration,
    /// What each prompt token adds to TTFT.
    pub ttft_per_prompt_token: Duration,
    /// Time between tokens of one request.
    pub token_interval: Duration,
    /// Scatter of the deadlines; none gives even gaps.
    pub jitter: Option<Jitter>,
    /// Output tokens of a request that names no limit.
    pub default_output_tokens: u32,
    /// Range in which the model ends by itself, drawn per request from
    /// `seed`; none: it always reaches the limit. A request with `ignore_eos`
    /// reaches its limit in any case.
    pub output_tokens: Option<(u32, u32)>,
    /// Seed of output lengths and of the words.
    pub seed: u64,
    /// Most prompt and output tokens of one request together; more is
    /// answered with 400.
    pub context_tokens: u32,
    /// What prompts are counted by; without one, words and marks are.
    pub tokenizer: Option<Arc<dyn Tokenizer>>,
    /// Requests that run at a time. The others wait, first come first served,
    /// and their wait is part of their TTFT.
    pub max_num_seqs: usize,
    /// True when all running requests emit at the same instants, as the steps
    /// of a real engine make them.
    pub lockstep: bool,
    /// Tokens in one chunk. A chunk leaves when its last token is made, except
    /// that the first leaves at TTFT; so the mean rate of tokens is the same
    /// for any value.
    pub chunk_tokens: u32,
    /// True: the role chunk of a chat answer leaves when the request is
    /// accepted. False: with the first token, as vLLM does.
    pub role_chunk_at_accept: bool,
}

/// Deterministic scatter: each deadline is moved back by a share of the token
/// interval, evenly spread between 0 and `share`. In lockstep all requests of
/// a step are moved alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Seed of the scatter.
    pub seed: u64,
    /// Largest delay as a share of the token interval, in [0, 1): below 1, or
    /// tokens would overtake each other.
    pub share: f64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            model: None,
            ttft: Duration::from_millis(40),
            ttft_per_prompt_token: Duration::from_micros(20),
            token_interval: Duration::from_millis(12),
            jitter: None,
            default_output_tokens: 128,
            output_tokens: None,
            seed: 0,
            context_tokens: 131_072,
            tokenizer: None,
            max_num_seqs: 64,
            lockstep: false,
            chunk_tokens: 1,
            role_chunk_at_accept: false,
        }
    }
}

/// A rule that an engine configuration breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EngineConfigError {
    /// No request could ever run.
    #[error("max_num_seqs must be at least 1")]
    NoSeats,
    /// A chunk carries something.
    #[error("chunk_tokens must be at least 1")]
    EmptyChunks,
    /// Steps need a length.
    #[error("token_interval must be above 0 with lockstep")]
    NoStep,
    /// Tokens would overtake each other.
    #[error("jitter share must lie in [0, 1)")]
    Jitter,
    /// The range is empty or starts below one token.
    #[error("output_tokens must be a range (low, high) with 1 <= low <= high")]
    OutputRange,
    /// A request without a limit must produce something and fit.
    #[error("default_output_tokens must be at least 1 and below context_tokens")]
    DefaultOutput,
}

impl EngineConfig {
    fn check(&self) -> Result<(), EngineConfigError> {
        let jitter_ok = self.jitter.is_none_or(|jitter| (0.0..1.0).contains(&jitter.share));
        let range_ok = self.output_tokens.is_none_or(|(low, high)| 1 <= low && low <= high);
        let default_ok = (1..self.context_tokens).contains(&self.default_output_tokens);
        let rules = [
            (self.max_num_seqs >= 1, EngineConfigError::NoSeats),
            (self.chunk_tokens >= 1, EngineConfigError::EmptyChunks),
            (!self.lockstep || !self.token_interval.is_zero(), EngineConfigError::NoStep),
            (jitter_ok, EngineConfigError::Jitter),
            (range_ok, EngineConfigError::OutputRange),
            (default_ok, EngineConfigError::DefaultOutput),
        ];
        rules.into_iter().find(|(kept, _)| !kept).map_or(Ok(()), |(_, broken)| Err(broken))
    }
}

/// One instant on both clocks: the origin of the step grid and of the
/// `created` fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// CLOCK_MONOTONIC nanoseconds.
    pub monotonic_ns: u64,
    /// Seconds since 1970 at that instant.
    pub unix_s: u64,
}

impl Anchor {
    /// Now.
    pub fn now() -> Self {
        Self { monotonic_ns: clock::monotonic_ns(), unix_s: clock::unix_ns() / 1_000_000_000 }
    }
}

/// The engine: a function of requests and instants. It reads no clock.
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    anchor: Anchor,
    /// Planned end and connection of each running request.
    running: BTreeSet<(u64, u64)>,
    /// Planned end of the request that runs for a connection.
    ends_ns: HashMap<u64, u64>,
    waiting: VecDeque<Waiting>,
    requests: u64,
    words: Arc<Words>,
}

#[derive(Debug)]
struct Waiting {
    connection: u64,
    arrival_ns: u64,
    answer: Answer,
    shape: Shape,
}

impl Engine {
    /// An engine without requests.
    ///
    /// # Errors
    /// The rule that the configuration breaks.
    pub fn new(config: EngineConfig, anchor: Anchor) -> Result<Self, EngineConfigError> {
        config.check()?;
        Ok(Self {
            config,
            anchor,
            running: BTreeSet::new(),
            ends_ns: HashMap::new(),
            waiting: VecDeque::new(),
            requests: 0,
            words: Arc::new(Words::all()),
        })
    }

    /// The name under which the model is listed.
    fn model(&self) -> &str {
        self.config.model.as_deref().unwrap_or("goodput-embedded")
    }

    fn created_s(&self, at_ns: u64) -> u64 {
        self.anchor.unix_s + at_ns.saturating_sub(self.anchor.monotonic_ns) / 1_000_000_000
    }

    fn generate(&mut self, request: &Request, kind: Kind) -> Play {
        let tally = Tally::counting(self.config.tokenizer.as_deref());
        let read = Ask::of_kind(kind, &request.body, tally)
            .and_then(|ask| ask.for_model(self.config.model.as_deref()))
            .and_then(|ask| ask.streamable(request))
            .and_then(Ask::answered_once);
        let (mut answer, shape) = match read.and_then(|ask| self.answer_to(ask, request)) {
            Ok(answer) => answer,
            Err(refused) => {
                let script = Script::json(refused.status, &refused.body());
                return Play::of(script, request.arrival_ns);
            }
        };
        let arrival_ns = request.arrival_ns;
        let connection = request.connection;
        if self.waiting.is_empty() {
            self.vacate(arrival_ns);
            if self.running.len() < self.config.max_num_seqs {
                let opening = stream::opening(&mut answer, shape);
                let mut play = self.start(connection, answer, shape, arrival_ns);
                // The head leaves at once, whatever the first token's deadline.
                play.steps = Box::new(opening.into_iter().chain(play.steps));
                return play;
            }
        }
        let opening = stream::opening(&mut answer, shape);
        let truth_id = Some(answer.truth_id.clone());
        self.waiting.push_back(Waiting { connection, arrival_ns, answer, shape });
        Play { start_ns: arrival_ns, steps: Box::new(opening.into_iter()), truth_id, more: true }
    }

    /// Decides length and words of an answer.
    fn answer_to(&mut self, ask: Ask, request: &Request) -> Result<(Answer, Shape), Refused> {
        let (tokens, finish_reason) = match ask.results {
            Some(_) => (0, ""),
            None => self.output_of(&ask)?,
        };
        self.requests += 1;
        let shape = Shape {
            tokens,
            finish_reason,
            chunk_tokens: self.config.chunk_tokens,
            role_at_accept: self.config.role_chunk_at_accept,
        };
        let voice = Voice {
            model: self.model(),
            created_s: self.created_s(request.arrival_ns),
            number: self.requests,
            words: &self.words,
            words_seed: mix(self.config.seed, self.requests, 1),
        };
        Ok((Answer::new(ask, request, &voice), shape))
    }

    fn output_of(&self, ask: &Ask) -> Result<(u32, &'static str), Refused> {
        let room = ask.room(self.config.context_tokens)?;
        let default = self.config.default_output_tokens.min(room);
        let limit = ask.limit.unwrap_or(default);
        let natural = match self.config.output_tokens {
            _ if ask.ignore_eos => None,
            Some((low, high)) => {
                let draw = mix(self.config.seed, self.requests + 1, 0);
                Some(low + (draw % u64::from(high - low + 1)) as u32)
            }
            // Without a limit the model is what ends the answer.
            None => ask.limit.is_none().then_some(default),
        };
        Ok(match natural.map(|natural| natural.max(ask.min_tokens)) {
            Some(natural) if natural < limit || ask.limit.is_none() => (natural.min(room), "stop"),
            _ => (limit, "length"),
        })
    }

    /// Forgets requests whose planned end has come.
    fn vacate(&mut self, now_ns: u64) {
        while self.running.first().is_some_and(|(end_ns, _)| *end_ns <= now_ns) {
            self.vacate_one();
        }
    }

    fn vacate_one(&mut self) {
        if let Some((end_ns, connection)) = self.running.pop_first()
            && self.ends_ns.get(&connection) == Some(&end_ns)
        {
            self.ends_ns.remove(&connection);
        }
    }

    /// Gives an answer a seat from `start_ns` on.
    fn start(&mut self, connection: u64, answer: Answer, shape: Shape, start_ns: u64) -> Play {
        let plan = self.plan(start_ns, answer.ask.prompt_tokens);
        let tokens_after_first = shape.tokens.saturating_sub(self.config.chunk_tokens);
        let end_ns = plan.token_ns(u64::from(tokens_after_first));
        self.running.insert((end_ns, connection));
        self.ends_ns.insert(connection, end_ns);
        let truth_id = Some(answer.truth_id.clone());
        let steps: Box<dyn Iterator<Item = Step> + Send> = if answer.ask.stream {
            Box::new(TokenStream::new(answer, shape, plan))
        } else {
            Box::new(std::iter::once(stream::whole(answer, shape, end_ns - start_ns)))
        };
        Play { start_ns, steps, truth_id, more: false }
    }

    fn plan(&self, start_ns: u64, prompt_tokens: u32) -> Plan {
        let config = &self.config;
        let prefill =
            config.ttft.saturating_add(config.ttft_per_prompt_token.saturating_mul(prompt_tokens));
        let interval_ns = nanoseconds(config.token_interval);
        let ready_ns = start_ns.saturating_add(nanoseconds(prefill));
        let (first_ns, first_step, stream) = if config.lockstep {
            let since = ready_ns.saturating_sub(self.anchor.monotonic_ns);
            let step = since.div_ceil(interval_ns);
            (self.anchor.monotonic_ns.saturating_add(step.saturating_mul(interval_ns)), step, 0)
        } else {
            (ready_ns, 0, self.requests)
        };
        Plan { start_ns, first_ns, interval_ns, first_step, stream, jitter: config.jitter }
    }
}

impl Respond for Engine {
    fn answer(&mut self, request: &Request) -> Play {
        if let Route::Answer(kind, _) = route(request) {
            return self.generate(request, kind);
        }
        let served = Served {
            name: self.model(),
            context_tokens: self.config.context_tokens,
            created_s: self.created_s(request.arrival_ns),
        };
        Play::of(served.plain(request), request.arrival_ns)
    }

    fn wake_ns(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then(|| self.running.first().map_or(0, |first| first.0))
    }

    fn wake(&mut self, now_ns: u64) -> Vec<(u64, Play)> {
        let mut started = Vec::new();
        while let Some(freed_ns) = self.wake_ns().filter(|&at_ns| at_ns <= now_ns) {
            let Some(next) = self.waiting.pop_front() else { break };
            // The seat is taken over at its planned end, not at now: lateness
            // of this call must not move the plan. But a seat may have become
            // free before the one who waits had come.
            self.vacate_one();
            let start_ns = freed_ns.max(next.arrival_ns);
            let play = self.start(next.connection, next.answer, next.shape, start_ns);
            started.push((next.connection, play));
        }
        started
    }

    fn left(&mut self, connection: u64, now_ns: u64) {
        self.waiting.retain(|waiting| waiting.connection != connection);
        if let Some(end_ns) = self.ends_ns.get_mut(&connection) {
            // It ends now; the next `wake` or request finds the seat free.
            self.running.remove(&(*end_ns, connection));
            *end_ns = now_ns.min(*end_ns);
            self.running.insert((*end_ns, connection));
        }
    }
}

/// The deadlines of one answer.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Absolute start that steps count from.
    start_ns: u64,
    /// Absolute deadline of the first chunk, before scatter.
    first_ns: u64,
    interval_ns: u64,
    /// Index of the first chunk's deadline on the step grid.
    first_step: u64,
    /// Key of the scatter: the same for all in lockstep.
    stream: u64,
    jitter: Option<Jitter>,
}

impl Plan {
    /// Absolute deadline of the token `after_first` tokens after the first chunk.
    fn token_ns(&self, after_first: u64) -> u64 {
        let even = self.first_ns.saturating_add(self.interval_ns.saturating_mul(after_first));
        let scatter = self.jitter.map_or(0, |jitter| {
            let draw = mix(jitter.seed, self.stream, self.first_step + after_first);
            // 53 bits fill a float's fraction: an even draw from [0, 1).
            let unit = (draw >> 11) as f64 / (1u64 << 53) as f64;
            (unit * jitter.share * self.interval_ns as f64) as u64
        });
        even.saturating_add(scatter)
    }

    /// The same, from the start of the steps.
    fn offset_ns(&self, after_first: u64) -> u64 {
        self.token_ns(after_first) - self.start_ns
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
