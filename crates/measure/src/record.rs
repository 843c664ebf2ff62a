//! What was observed of one request: the plan, the stamps, the event time
//! line, and what the server said. A run is a list of these; everything else
//! is computed from them.

use crate::outcome::Outcome;
use crate::unit::{At, Span, Tokens};

/// The label of the address that a request went to, where there are several.
pub const URL: &str = "url";

/// One planned request and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Position in the schedule, from 0.
    pub index: u32,
    /// The worker that owned it.
    pub worker: u32,
    /// What the schedule said of it.
    pub planned: Planned,
    /// When things happened, on the run's clock.
    pub stamps: Stamps,
    /// What arrived, in order.
    pub events: Events,
    /// What the answer said.
    pub answer: Answer,
    /// How it ended.
    pub outcome: Outcome,
    /// Present on imported rows: the source tool's own figures.
    pub source: Option<SourceTimes>,
}

/// The part of the schedule that belongs to one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Tenant, class, adapter, turn …: name and value, sorted by name.
    pub labels: Vec<(String, String)>,
    /// The conversation that it belongs to; equal to `index` where requests are
    /// no turns of any.
    pub session: u32,
    /// Turns before it in its conversation: of several chains that end in it,
    /// the longest.
    pub turn: u16,
    /// Prompt length that the workload asked for, when it knows one.
    pub input_tokens: Option<Tokens>,
    /// Output limit sent with the request.
    pub max_output_tokens: Option<Tokens>,
    /// True when the output length was forced (`ignore_eos`), so that a
    /// shorter answer is a deviation.
    pub output_forced: bool,
}

impl Planned {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Instants of one request. `intended_at ≤ released_at ≤ sent_at` always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// When the load model says the user asked.
    pub intended_at: At,
    /// When the generator let it go (after a concurrency cap, say).
    pub released_at: Option<At>,
    /// Name resolved (only when a connection was opened for it).
    pub resolved_at: Option<At>,
    /// TCP connected (only when a connection was opened for it).
    pub connected_at: Option<At>,
    /// TLS handshake done (only when a connection was opened for it).
    pub secured_at: Option<At>,
    /// Just before the first byte was written, of the first try.
    pub sent_at: Option<At>,
    /// The last byte of the request was handed to the kernel.
    pub written_at: Option<At>,
    /// First byte of the response.
    pub first_byte_at: Option<At>,
    /// Response head complete.
    pub headers_at: Option<At>,
    /// The request was over for us: terminal event, end of body or error.
    pub ended_at: Option<At>,
}

/// The event time line in columns, about nine bytes an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// Microseconds since `sent_at`. A request lives at most 71 minutes.
    pub at_us: Vec<u32>,
    /// What the event carried.
    pub carries: Vec<Carries>,
    /// New tokens in it where the server says so; 0 when unknown.
    pub tokens: Vec<u16>,
    /// Index of the choice that it belongs to.
    pub choice: Vec<u8>,
}

/// One event, as a row of [`Events`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since `sent_at`.
    pub at_us: u32,
    /// What it carried.
    pub carries: Carries,
    /// New tokens in it; 0 when unknown.
    pub tokens: u16,
    /// Choice index.
    pub choice: u8,
}

/// A set of things that one event carried. One event may carry several: the
/// last text and the finish reason, say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Carries(u16);

impl Carries {
    /// Nothing of interest: a ping, an unknown type.
    pub const NOTHING: Self = Self(0);
    /// A role or other opening without output.
    pub const ROLE: Self = Self(1);
    /// Non-empty visible text.
    pub const TEXT: Self = Self(1 << 1);
    /// Non-empty reasoning text.
    pub const REASONING: Self = Self(1 << 2);
    /// A tool call's name or arguments.
    pub const TOOL_CALL: Self = Self(1 << 3);
    /// Usage figures.
    pub const USAGE: Self = Self(1 << 4);
    /// A finish reason, or the API's own end-of-answer event.
    pub const FINISH: Self = Self(1 << 5);
    /// An error object.
    pub const ERROR: Self = Self(1 << 6);
    /// A keep-alive event.
    pub const PING: Self = Self(1 << 7);
    /// The `[DONE]` sentinel.
    pub const DONE: Self = Self(1 << 8);
    /// At least one choice (OpenAI APIs), whatever it holds: peers stamp on it.
    pub const CHOICE: Self = Self(1 << 9);
    /// A choice without finish reason whose running completion count grew,
    /// although no text came.
    pub const COUNT_GREW: Self = Self(1 << 10);
    /// It came out of the same read as the event before it, so its stamp is a
    /// late bound.
    pub const SHARED_READ: Self = Self(1 << 11);
    /// Data that is not JSON.
    pub const NOT_JSON: Self = Self(1 << 12);
    /// A whole answer in one body, not streamed.
    pub const WHOLE: Self = Self(1 << 13);

    /// A whole answer of a kind that generates no tokens: vectors or scores.
    pub const RESULT: Self = Self(1 << 14);

    /// Output on any channel.
    pub const OUTPUT: Self = Self(Self::TEXT.0 | Self::REASONING.0 | Self::TOOL_CALL.0);

    /// The set as a number, for files.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The set of this number.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// True when any member of `other` is in this set.
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// True for an output chunk: text, reasoning or tool-call content.
    pub const fn is_output(self) -> bool {
        self.any(Self::OUTPUT)
    }

    /// True for a token arrival: an output chunk, or a running completion
    /// count that grew before the finish.
    pub const fn is_arrival(self) -> bool {
        self.any(Self::OUTPUT) || self.any(Self::COUNT_GREW)
    }
}

impl Events {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.at_us.len()
    }

    /// True without events.
    pub fn is_empty(&self) -> bool {
        self.at_us.is_empty()
    }

    /// No events, with room for `count`.
    pub fn with_capacity(count: usize) -> Self {
        Self {
            at_us: Vec::with_capacity(count),
            carries: Vec::with_capacity(count),
            tokens: Vec::with_capacity(count),
            choice: Vec::with_capacity(count),
        }
    }

    /// Forgets all events and keeps their memory.
    pub fn clear(&mut self) {
        self.at_us.clear();
        self.carries.clear();
        self.tokens.clear();
        self.choice.clear();
    }

    /// Appends one event.
    pub fn push(&mut self, event: Event) {
        self.at_us.push(event.at_us);
        self.carries.push(event.carries);
        self.tokens.push(event.tokens);
        self.choice.push(event.choice);
    }

    /// The event at `index`.
    pub fn get(&self, index: usize) -> Event {
        Event {
            at_us: self.at_us[index],
            carries: self.carries[index],
            tokens: self.tokens[index],
            choice: self.choice[index],
        }
    }

    /// All events in order of arrival.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Event> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.get(index))
    }
}

/// What the answer said besides its time line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// HTTP status, when a response head came.
    pub http_status: Option<u16>,
    /// Retry-After of a refusal.
    pub retry_after: Option<Span>,
    /// A bounded, redacted sample of what the server or the transport said
    /// when it went wrong.
    pub message: Option<String>,
    /// The error's own code or type, where the server gave one.
    pub error_code: Option<String>,
    /// Last finish reason.
    pub finish_reason: Option<String>,
    /// Counts that the server gave, by source.
    pub counts: Counts,
    /// Number of choices seen.
    pub choices: u8,
    /// Tokens known to be in the first output event.
    pub first_event_tokens: Option<Tokens>,
    /// How reasoning was shown.
    pub reasoning_disclosure: Option<ReasoningDisclosure>,
    /// The server's own timings, name as sent and value as sent.
    pub server_timings: Vec<(String, f64)>,
    /// The instance that answered, where a header names it.
    pub served_by: Option<String>,
    /// Visible text, kept only when asked.
    pub text: Option<String>,
    /// Reasoning text, kept only when asked.
    pub reasoning: Option<String>,
    /// Tool-call arguments, kept only when asked.
    pub tool_arguments: Option<String>,
    /// SSE comment lines seen.
    pub comments: u32,
    /// Fresh connections taken after a reused one was found dead.
    pub reconnects: u16,
    /// Things worth telling about the answer's form.
    pub warnings: Warnings,
    /// Bytes of body read.
    pub body_bytes: u64,
}

/// Token counts as the server gave them. Each is the last or largest value
/// seen, never a sum over events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Prompt tokens.
    pub prompt: Option<Tokens>,
    /// Completion tokens in an OpenAI- or Anthropic-style usage object.
    pub usage: Option<Tokens>,
    /// Completion tokens by another server count (Ollama, TGI, SGLang).
    pub server: Option<Tokens>,
    /// Log-probability entries seen.
    pub logprobs: Option<Tokens>,
    /// Counted by a tokenizer on our side.
    pub tokenizer: Option<Tokens>,
    /// Reasoning tokens, inside the completion count.
    pub reasoning: Option<Tokens>,
    /// Prompt tokens served from a prefix cache.
    pub cached: Option<Tokens>,
}

/// Where an output token count came from, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TokensSource {
    /// A usage object.
    Usage,
    /// Another count of the server's.
    Server,
    /// Log-probability entries.
    Logprobs,
    /// A tokenizer on our side.
    Tokenizer,
    /// Output chunks: a lower bound.
    Chunks,
}

impl TokensSource {
    /// All sources, best first.
    pub const ALL: &[Self] =
        &[Self::Usage, Self::Server, Self::Logprobs, Self::Tokenizer, Self::Chunks];

    /// The name in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Server => "server",
            Self::Logprobs => "logprobs",
            Self::Tokenizer => "tokenizer",
            Self::Chunks => "chunks",
        }
    }
}

/// How a reasoning model showed its reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReasoningDisclosure {
    /// Reasoning text was streamed.
    Verbatim,
    /// A summary was streamed, typed so.
    Summary,
    /// Only encrypted blocks were sent.
    Redacted,
    /// Usage counts reasoning tokens and none were streamed.
    Unknown,
}

impl ReasoningDisclosure {
    /// All values.
    pub const ALL: &[Self] = &[Self::Verbatim, Self::Summary, Self::Redacted, Self::Unknown];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verbatim => "verbatim",
            Self::Summary => "summary",
            Self::Redacted => "redacted",
            Self::Unknown => "unknown",
        }
    }
}

macro_rules! warnings {
    ($($(#[$doc:meta])* $constant:ident = $bit:literal $name:literal;)*) => {
        impl Warnings {
            $($(#[$doc])* pub const $constant: Self = Self(1 << $bit);)*

            /// Every warning and its name, in the order of the table.
            pub const NAMES: &[(Self, &'static str)] = &[$((Self::$constant, $name),)*];
        }
    };
}

/// Things worth telling about the form of an answer that was still readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Warnings(u32);

warnings! {
    /// No `[DONE]` came, though a finish reason did.
    MISSING_DONE = 0 "missing_done";
    /// The last event had no closing blank line; it was whole and was taken.
    UNTERMINATED_LAST_EVENT = 1 "unterminated_last_event";
    /// No usage object came; the token count has another source.
    NO_USAGE = 2 "no_usage";
    /// `[DONE]` came without any finish reason.
    MISSING_FINISH_REASON = 3 "missing_finish_reason";
    /// The body was compressed although identity was asked for.
    COMPRESSED_STREAM = 4 "compressed_stream";
    /// All output arrived at one instant or as one JSON body.
    NOT_STREAMED = 5 "not_streamed";
    /// The server did not say how long the prompt was.
    NO_PROMPT_TOKENS = 6 "no_prompt_tokens";
    /// Data that is not JSON and not the sentinel.
    NON_JSON_EVENT = 7 "non_json_event";
    /// JSON with bare NaN or Infinity; read as null.
    NONSTANDARD_JSON = 8 "nonstandard_json";
    /// More than one choice: gaps are taken per choice.
    N_GT_1 = 9 "n_gt_1";
    /// Usage counts reasoning tokens that were never shown.
    HIDDEN_REASONING = 10 "hidden_reasoning";
    /// The first output event carried several tokens.
    FIRST_CHUNK_BUNDLED = 11 "first_chunk_bundled";
    /// The HTTP framing was incomplete although the answer was whole.
    FRAMING_ERROR = 12 "framing_error";
    /// Most gaps are zero: something between buffers.
    BURSTY_DELIVERY = 13 "bursty_delivery";
    /// The wall clock was stepped while the request ran: kernel stamps follow
    /// the wall clock, so its times may be off by the step.
    CLOCK_STEP = 14 "clock_step";
    /// The answer before made other calls of tools than the script has results
    /// for: some results were sent as the user's words, or empty.
    TOOL_RESULTS_REFITTED = 15 "tool_results_refitted";
}

impl Warnings {
    /// No warning.
    pub const NONE: Self = Self(0);

    /// Adds `other`.
    pub fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// True when any of `other` is in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The set as a number, for files.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of this number.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// The names in the set, in the order of the table.
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMES.iter().filter(|(bit, _)| self.has(*bit)).map(|(_, name)| *name).collect()
    }
}

/// The figures of another tool for one request, kept as it wrote them: an
/// import must not lose digits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceTimes {
    /// TTFT in seconds, from the tool's own start.
    pub ttft_s: Option<f64>,
    /// Gaps in seconds between what the tool counts as arrivals.
    pub itl_s: Vec<f64>,
    /// Start on the tool's clock, seconds from an arbitrary origin.
    pub start_s: Option<f64>,
    /// Whole latency in seconds, where it can be known.
    pub latency_s: Option<f64>,
}

impl Record {
    /// A record of a request that has not been tried yet.
    pub fn planned(index: u32, intended_at: At, planned: Planned) -> Self {
        Self {
            index,
            worker: 0,
            planned,
            stamps: Stamps { intended_at, ..Stamps::default() },
            events: Events::default(),
            answer: Answer::default(),
            outcome: Outcome::Cancelled,
            source: None,
        }
    }

    /// True where the load let it come: a later turn of a conversation comes
    /// when those before it have ended.
    pub const fn arrives(&self) -> bool {
        self.planned.turn == 0
    }

    /// The instant of an event, when the request was sent.
    pub fn event_at(&self, at_us: u32) -> Option<At> {
        self.stamps.sent_at.map(|sent| sent + Span::from_us(i64::from(at_us)))
    }

    /// Output tokens and where the count came from. The best source wins; the
    /// chunk count is used only where the answer is whole, because a broken
    /// answer's chunks say nothing about its tokens.
    pub fn output_tokens(&self) -> Option<(Tokens, TokensSource)> {
        let counts = &self.answer.counts;
        let known = [
            (counts.usage, TokensSource::Usage),
            (counts.server, TokensSource::Server),
            (counts.logprobs, TokensSource::Logprobs),
            (counts.tokenizer, TokensSource::Tokenizer),
        ];
        if let Some((tokens, source)) =
            known.into_iter().find_map(|(tokens, source)| Some((tokens?, source)))
        {
            return Some((tokens, source));
        }
        (self.outcome == Outcome::Ok && self.output_chunks() > 0)
            .then(|| (Tokens::new(self.output_chunks()), TokensSource::Chunks))
    }

    /// True when the answer ended well before the length that was forced: the
    /// server did not heed `ignore_eos`. Chunks are a lower bound of tokens, so
    /// they accuse nobody.
    pub fn is_short_output(&self) -> bool {
        let served = self.output_tokens().filter(|(_, source)| *source != TokensSource::Chunks);
        let (Some((served, _)), Some(asked)) = (served, self.planned.max_output_tokens) else {
            return false;
        };
        // The length is that of each answer, and what was served is that of all.
        let asked = asked.get().saturating_mul(u32::from(self.answer.choices.max(1)));
        self.planned.output_forced && self.outcome == Outcome::Ok && served.get() < asked
    }

    /// Number of output chunks.
    pub fn output_chunks(&self) -> u32 {
        self.events.carries.iter().filter(|carries| carries.is_output()).count() as u32
    }
}
