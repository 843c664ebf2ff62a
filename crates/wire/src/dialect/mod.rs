//! What one event of each API means.
//!
//! One file per family of APIs; each reads one event and tells a [`Listener`]
//! what it heard. The listener turns that into a row of the time line and into
//! the answer's figures, so that counting rules are written once.

mod anthropic;
mod json;
mod ollama;
mod openai;
mod responses;
mod results;
mod sglang;
mod template;
mod tgi;
mod triton;
mod whole;

use measure::{Answer, Carries, FailureKind, ReasoningDisclosure, Tokens, TokensSource, Warnings};

use crate::api::{Api, EndMark, Yields};
use json::Fault;
pub use template::Forms;
use template::{Channel, Fitting, Trace, Varying};

/// What one event carried.
///
/// As large as a word, so that it is copied in one piece and not field by field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(8))]
pub struct Heard {
    /// The set of things.
    pub carries: Carries,
    /// New tokens in it; 0 when unknown.
    pub tokens: u16,
    /// The choice that it belongs to. An event with several choices is one
    /// row, of the first choice with output (else the first): rows are events,
    /// and an event has one instant. Texts and finish reasons of all its
    /// choices are still taken. Engines send one choice an event.
    pub choice: u8,
}

/// A call of a tool, as far as its answer named it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The server's name for it; empty where it gave none.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as they came, which should be JSON.
    pub arguments: String,
}

/// What one event says of a call.
#[derive(Clone, Copy, Debug, Default)]
struct CallPiece<'a> {
    /// Which of the answer's calls, where the API numbers them.
    place: Option<u32>,
    id: &'a str,
    name: &'a str,
    arguments: &'a str,
}

/// Longest sample of a server's message, in bytes.
pub const MESSAGE_LIMIT: usize = 500;

/// Finish reasons that say the answer is no answer.
const ABORTED: &[&str] = &["abort", "aborted", "error", "cancelled"];

/// Data that ends a stream in several APIs.
const DONE: &[u8] = b"[DONE]";

/// Listens to the events of one answer.
///
/// In this order, because thousands of answers are read in turn: what an event
/// of a known form touches lies together and first.
#[derive(Debug)]
#[repr(C)]
pub struct Listener {
    /// The known forms of events, unless each is to be parsed in full.
    forms: Option<Forms>,
    /// The form of the last event that was nothing but a text.
    form: u8,
    /// `[DONE]` came.
    done: bool,
    /// An event of the API's own ended the answer.
    terminal: bool,
    keep_text: bool,
    verbatim_reasoning: bool,
    summarised_reasoning: bool,
    arrivals: u32,
    /// Arrivals since the last running count: the growth of the next one is
    /// theirs too.
    uncounted_arrivals: u32,
    choices: ChoiceSet,
    choices_with_output: ChoiceSet,
    api: Api,
    malformed: bool,
    in_band: bool,
    aborted: bool,
    redacted_reasoning: bool,
    no_prompt_count: bool,
    /// Results asked for, where the API gives such.
    wanted_results: u32,
    finish_reasons: u32,
    logprobs: u32,
    /// Best completion count so far, running or final.
    completion: Option<u32>,
    /// A count that the API sends before there is output (Anthropic's start):
    /// used only when nothing better follows.
    placeholder: Option<u32>,
    now: Now,
    trace: Trace,
    /// What the answer said so far. Texts are kept only when asked.
    answer: Box<Answer>,
    /// SGLang's text so far, by choice.
    grown: Vec<(u8, sglang::Grown)>,
    /// Calls of tools, each with its place; kept only when asked.
    calls: Vec<(Option<u32>, ToolCall)>,
}

/// What the event at hand has said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    carries: Carries,
    choice: Option<u8>,
    choice_has_output: bool,
    /// The completion count in it.
    completion: Option<u32>,
    /// Tokens that it lists one by one.
    listed: u32,
}

/// A set of choice indices.
#[derive(Clone, Debug, Default)]
struct ChoiceSet {
    /// Those below 64, one bit each.
    low: u64,
    /// The others: nobody asks for so many.
    high: Option<Box<[u64; 3]>>,
}

impl ChoiceSet {
    fn add(&mut self, choice: u8) {
        let word = match usize::from(choice >> 6) {
            0 => &mut self.low,
            word => &mut self.high.get_or_insert_default()[word - 1],
        };
        *word |= 1 << (choice & 63);
    }

    fn len(&self) -> u32 {
        let high = self.high.iter().flat_map(|words| words.iter());
        self.low.count_ones() + high.map(|word| word.count_ones()).sum::<u32>()
    }
}

impl Listener {
    /// A listener for an answer of the API of `forms`; `keep_text` keeps text,
    /// reasoning and tool arguments of choice 0.
    pub fn new(forms: Forms, keep_text: bool) -> Self {
        let kept = || keep_text.then(String::new);
        let answer =
            Answer { text: kept(), reasoning: kept(), tool_arguments: kept(), ..Answer::default() };
        Self {
            api: forms.api(),
            answer: Box::new(answer),
            keep_text,
            now: Now::default(),
            trace: Trace::default(),
            forms: Some(forms),
            form: 0,
            done: false,
            terminal: false,
            malformed: false,
            in_band: false,
            aborted: false,
            finish_reasons: 0,
            arrivals: 0,
            uncounted_arrivals: 0,
            completion: None,
            placeholder: None,
            logprobs: 0,
            choices: ChoiceSet::default(),
            choices_with_output: ChoiceSet::default(),
            grown: Vec::new(),
            calls: Vec::new(),
            verbatim_reasoning: false,
            summarised_reasoning: false,
            redacted_reasoning: false,
            no_prompt_count: false,
            wanted_results: 1,
        }
    }

    /// Parses every event in full from now on, with the same result: there to
    /// compare the two ways.
    pub fn parse_in_full(&mut self) {
        self.forms = None;
    }

    /// Takes one event. `None` when it is none: blank data, or anything after
    /// the end of the answer. Behind an API's own terminal event a `[DONE]`
    /// that a gateway added is still counted.
    pub fn hear(&mut self, kind: &[u8], data: &[u8]) -> Option<Heard> {
        let data = data.trim_ascii();
        if data.is_empty() || self.done || (self.terminal && data != DONE) {
            return None;
        }
        let forms = self.forms.as_ref();
        Some(match forms.and_then(|forms| forms.fit(&mut self.form, kind, data)) {
            Some(fitting) => self.hear_fitting(&fitting),
            None => self.hear_in_full(kind, data),
        })
    }

    /// Takes the whole server-sent event at the start of `bytes` when it is of
    /// a known form and has at most `limit` bytes; with what it said comes what
    /// lies behind it. `None` says nothing of the event: it is then to be
    /// decoded.
    #[inline]
    pub fn hear_framed<'b>(&mut self, bytes: &'b [u8], limit: usize) -> Option<(Heard, &'b [u8])> {
        if self.is_over() {
            return None;
        }
        let (fitting, behind) = self.forms.as_ref()?.fit_framed(&mut self.form, bytes, limit)?;
        Some((self.hear_fitting(&fitting), behind))
    }

    /// Takes an event of a known form: it does what the event did that the
    /// form was learnt from, which was an arrival with one text and without a
    /// count.
    #[inline]
    fn hear_fitting(&mut self, fitting: &Fitting<'_>) -> Heard {
        let heard = fitting.heard;
        self.choices.add(heard.choice);
        self.choices_with_output.add(heard.choice);
        match fitting.channel {
            Channel::Text => {}
            Channel::Reasoning => self.verbatim_reasoning = true,
            Channel::Summary => self.summarised_reasoning = true,
        }
        if self.keep_text && heard.choice == 0 {
            let kept = match fitting.channel {
                Channel::Text => &mut self.answer.text,
                Channel::Reasoning | Channel::Summary => &mut self.answer.reasoning,
            };
            kept.get_or_insert_default().push_str(&fitting.text());
        }
        self.note_arrival(false, u32::from(heard.tokens));
        heard
    }

    /// Not inlined, so that the usual event does not pay for its frame.
    #[inline(never)]
    fn hear_in_full(&mut self, kind: &[u8], data: &[u8]) -> Heard {
        self.now = Now::default();
        self.trace = Trace::default();
        if data == DONE {
            self.done = true;
            self.now.carries = Carries::DONE;
        } else if !matches!(data[0], b'{' | b'[') {
            self.answer.warnings.add(Warnings::NON_JSON_EVENT);
            self.now.carries = Carries::NOT_JSON;
        } else if self.dispatch(kind, data).is_err() {
            self.hear_repaired(kind, data);
        } else if let Some(forms) = &self.forms
            && let Some(text) = self.trace.text_in(data)
        {
            let (forms, varying) = (forms.clone(), self.varying());
            let heard = self.close_event();
            forms.learn(kind, data, text, heard, varying);
            return heard;
        }
        self.close_event()
    }

    /// The fields of this API's events that differ from event to event and
    /// mean nothing here.
    fn varying(&self) -> &'static [Varying] {
        match self.api {
            Api::OpenaiChat | Api::OpenaiCompletions => openai::VARYING,
            Api::OpenaiResponses => responses::VARYING,
            Api::Ollama | Api::OllamaGenerate => ollama::VARYING,
            Api::Tgi => tgi::VARYING,
            Api::Anthropic
            | Api::Sglang
            | Api::Triton
            | Api::Embeddings
            | Api::EmbeddingsChat
            | Api::Pooling
            | Api::Rerank => &[],
        }
    }

    /// True when the data of an event that was still open is whole: the
    /// sentinel, or JSON.
    pub fn is_complete(data: &[u8]) -> bool {
        let data = data.trim_ascii();
        data == DONE
            || serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
            || json::repair(data).is_some()
    }

    /// A dialect applies nothing before its event is parsed, so trying again
    /// counts nothing twice.
    fn hear_repaired(&mut self, kind: &[u8], data: &[u8]) {
        let repaired = json::repair(data);
        if let Some(repaired) = &repaired
            && self.dispatch(kind, &repaired.json).is_ok()
        {
            if repaired.nonfinite {
                self.answer.warnings.add(Warnings::NONSTANDARD_JSON);
            }
            return;
        }
        self.malformed = true;
        if self.answer.message.is_none() {
            self.answer.message = Some(sample(&String::from_utf8_lossy(data)));
        }
    }

    fn dispatch(&mut self, kind: &[u8], data: &[u8]) -> serde_json::Result<()> {
        match self.api {
            Api::OpenaiChat | Api::OpenaiCompletions => openai::hear(kind, data, self),
            Api::OpenaiResponses => responses::hear(kind, data, self),
            Api::Anthropic => anthropic::hear(kind, data, self),
            Api::Ollama | Api::OllamaGenerate => ollama::hear(data, self),
            Api::Tgi => tgi::hear(data, self),
            Api::Sglang => sglang::hear(data, self),
            Api::Triton => triton::hear(data, self),
            // They send one body and no events, so that an event is none of
            // theirs.
            Api::Embeddings | Api::EmbeddingsChat | Api::Pooling | Api::Rerank => {
                self.wrong_result("the answer is a stream of events");
                Ok(())
            }
        }
    }

    /// Takes a whole answer in one body, not streamed. The row that it gives
    /// is no output chunk: nothing is known of when its tokens were made.
    /// `None` when the body is not JSON.
    pub fn hear_whole(&mut self, body: &[u8]) -> Option<Heard> {
        self.now = Now::default();
        let body = body.trim_ascii();
        if whole::hear(body, self).is_err() {
            let repaired = json::repair(body)?;
            whole::hear(&repaired.json, self).ok()?;
            if repaired.nonfinite {
                self.answer.warnings.add(Warnings::NONSTANDARD_JSON);
            }
        }
        if self.api.entry().yields != Yields::Tokens {
            return Some(self.close_result());
        }
        let output = self.now.carries.is_output();
        let choice = self.now.choice.unwrap_or(0);
        let mut carries = Carries::WHOLE;
        if self.in_band {
            carries = carries.with(Carries::ERROR);
        } else {
            carries = carries.with(Carries::FINISH);
            self.answer.warnings.add(Warnings::NOT_STREAMED);
        }
        self.completion = self.completion.max(self.now.completion);
        self.arrivals = u32::from(output);
        self.terminal = true;
        Some(Heard { carries, tokens: 0, choice })
    }

    /// The row of an answer that has no tokens.
    fn close_result(&mut self) -> Heard {
        self.terminal = true;
        let kind = if self.in_band { Carries::ERROR } else { Carries::RESULT };
        Heard { carries: self.now.carries.with(kind), tokens: 0, choice: 0 }
    }

    /// Says how many results were asked for, of an API that gives such.
    pub fn expect_results(&mut self, count: u32) {
        self.wanted_results = count;
    }

    /// Turns what the event said into its row.
    fn close_event(&mut self) -> Heard {
        let now = std::mem::take(&mut self.now);
        let mut carries = now.carries;
        if carries.any(Carries::ROLE) && carries.is_output() {
            carries = Carries::from_bits(carries.bits() & !Carries::ROLE.bits());
        }
        let mut tokens = now.listed;
        let mut total = now.listed;
        if let Some(completion) = now.completion {
            let before = self.completion.unwrap_or(0);
            self.completion = Some(completion.max(before));
            let growth = completion.saturating_sub(before);
            let running = self.api == Api::Sglang || carries.any(Carries::CHOICE);
            if running && growth > 0 {
                if self.api.has_choices() && !carries.is_output() && !carries.any(Carries::FINISH) {
                    carries = carries.with(Carries::COUNT_GREW);
                }
                // With several choices the running count is that of one of
                // them, so its growth says nothing.
                if self.uncounted_arrivals == 0 && self.choices.len() <= 1 {
                    tokens = growth;
                    total = completion;
                }
            }
            self.uncounted_arrivals = 0;
        }
        if carries.is_arrival() {
            self.note_arrival(now.completion.is_some(), total);
        }
        Heard {
            carries,
            tokens: u16::try_from(tokens).unwrap_or(u16::MAX),
            choice: now.choice.unwrap_or(0),
        }
    }

    /// Counts an arrival: whether a completion count came with it, and the
    /// tokens known to be in it and in what came before.
    #[inline]
    fn note_arrival(&mut self, counted: bool, total: u32) {
        self.uncounted_arrivals += u32::from(!counted);
        if self.arrivals == 0 && total > 0 {
            self.answer.first_event_tokens = Some(Tokens::new(total));
        }
        self.arrivals += 1;
    }

    /// True when the answer is over: nothing that follows belongs to it.
    pub fn is_over(&self) -> bool {
        self.done || self.terminal
    }

    /// True when the API's end mark came. An API without one is never sure.
    pub fn is_whole(&self) -> bool {
        match self.api.entry().end_mark {
            EndMark::DoneOrFinishReason => self.done || self.terminal || self.finish_reasons > 0,
            EndMark::TerminalEvent => self.terminal,
            EndMark::CleanClose => self.done || self.terminal,
        }
    }

    /// Token arrivals heard, or 1 for a whole body with output.
    pub fn arrivals(&self) -> u32 {
        self.arrivals
    }

    /// What the events themselves say went wrong. An unreadable event is worst,
    /// because what was in it is not known.
    pub fn failure(&self) -> Option<FailureKind> {
        if self.malformed {
            Some(FailureKind::MalformedEvent)
        } else if self.in_band {
            Some(FailureKind::InBand)
        } else if self.aborted {
            Some(FailureKind::Aborted)
        } else {
            None
        }
    }

    /// The calls of tools that choice 0 made, where texts are kept.
    pub fn take_calls(&mut self) -> Vec<ToolCall> {
        std::mem::take(&mut self.calls).into_iter().map(|(_, call)| call).collect()
    }

    /// The answer. `finished` tells whether it ended well with output: what is
    /// missing at its end is worth a warning only then.
    pub fn finish(mut self, finished: bool) -> Answer {
        let whole = self.terminal;
        let counts = &mut self.answer.counts;
        let completion = self.completion.or(self.placeholder.filter(|_| whole)).map(Tokens::new);
        match self.api.entry().tokens_source {
            TokensSource::Usage => counts.usage = completion,
            _ => counts.server = completion,
        }
        counts.logprobs = (self.logprobs > 0).then(|| Tokens::new(self.logprobs));
        let hidden = counts.reasoning.is_some_and(|reasoning| reasoning.get() > 0)
            && !self.verbatim_reasoning
            && !self.summarised_reasoning;
        self.answer.reasoning_disclosure = if self.summarised_reasoning {
            Some(ReasoningDisclosure::Summary)
        } else if self.verbatim_reasoning {
            Some(ReasoningDisclosure::Verbatim)
        } else if self.redacted_reasoning {
            Some(ReasoningDisclosure::Redacted)
        } else {
            hidden.then_some(ReasoningDisclosure::Unknown)
        };
        self.answer.choices = u8::try_from(self.choices.len()).unwrap_or(u8::MAX);
        let bundled = self.api != Api::Sglang
            && self.answer.first_event_tokens.is_some_and(|tokens| tokens.get() > 1);
        let streamed = !self.answer.warnings.has(Warnings::NOT_STREAMED);
        let generates = self.api.entry().yields == Yields::Tokens;
        let warnings = &mut self.answer.warnings;
        for (applies, warning) in [
            (self.choices_with_output.len() > 1, Warnings::N_GT_1),
            (self.no_prompt_count, Warnings::NO_PROMPT_TOKENS),
            (finished && hidden, Warnings::HIDDEN_REASONING),
            (finished && bundled, Warnings::FIRST_CHUNK_BUNDLED),
            (finished && generates && completion.is_none(), Warnings::NO_USAGE),
            (finished && self.api.has_choices() && streamed && !self.done, Warnings::MISSING_DONE),
            (
                finished && self.api.has_choices() && self.finish_reasons == 0,
                Warnings::MISSING_FINISH_REASON,
            ),
        ] {
            if applies {
                warnings.add(warning);
            }
        }
        *self.answer
    }
}

/// What dialects tell the listener.
impl Listener {
    fn carries(&mut self, carries: Carries) {
        self.now.carries = self.now.carries.with(carries);
    }

    fn choice(&mut self, index: u32) -> u8 {
        let choice = u8::try_from(index).unwrap_or(u8::MAX);
        self.choices.add(choice);
        if self.now.choice.is_some() {
            self.trace.beyond();
        }
        self.now.choice.get_or_insert(choice);
        choice
    }

    fn output(&mut self, choice: u8, channel: Carries) {
        self.carries(channel);
        self.choices.add(choice);
        self.choices_with_output.add(choice);
        if !self.now.choice_has_output {
            self.now.choice_has_output = true;
            self.now.choice = Some(choice);
        }
    }

    /// Visible text.
    fn text(&mut self, choice: u8, text: &str) {
        if text.is_empty() {
            return;
        }
        self.trace.text(Channel::Text, text);
        self.output(choice, Carries::TEXT);
        if let (0, Some(kept)) = (choice, &mut self.answer.text) {
            kept.push_str(text);
        }
    }

    /// Reasoning text; `summary` when the API says that it is a summary.
    fn reasoning(&mut self, choice: u8, text: &str, summary: bool) {
        if text.is_empty() {
            return;
        }
        let channel = if summary { Channel::Summary } else { Channel::Reasoning };
        self.trace.text(channel, text);
        self.output(choice, Carries::REASONING);
        if summary {
            self.summarised_reasoning = true;
        } else {
            self.verbatim_reasoning = true;
        }
        if let (0, Some(kept)) = (choice, &mut self.answer.reasoning) {
            kept.push_str(text);
        }
    }

    /// Reasoning of which only an encrypted block was sent.
    fn redacted_reasoning(&mut self) {
        self.trace.beyond();
        self.redacted_reasoning = true;
    }

    /// A tool call's name or a piece of its arguments.
    fn tool_call(&mut self, choice: u8, name: &str, arguments: &str) {
        if name.is_empty() && arguments.is_empty() {
            return;
        }
        self.trace.beyond();
        self.output(choice, Carries::TOOL_CALL);
        if let (0, Some(kept)) = (choice, &mut self.answer.tool_arguments) {
            kept.push_str(arguments);
        }
    }

    /// Puts a piece of a call with the call that it belongs to.
    fn keep_call(&mut self, choice: u8, piece: CallPiece<'_>) {
        if piece.id.is_empty() && piece.name.is_empty() && piece.arguments.is_empty() {
            return;
        }
        self.trace.beyond();
        if choice != 0 || !self.keep_text {
            return;
        }
        let known = match piece.place {
            Some(place) => self.calls.iter().position(|(other, _)| *other == Some(place)),
            // Only a beginning has a name or an id.
            None if piece.id.is_empty() && piece.name.is_empty() => self.calls.len().checked_sub(1),
            None => None,
        };
        let place = known.unwrap_or_else(|| {
            self.calls.push((piece.place, ToolCall::default()));
            self.calls.len() - 1
        });
        let call = &mut self.calls[place].1;
        // Some servers repeat id and name in every piece.
        if call.id.is_empty() {
            piece.id.clone_into(&mut call.id);
        }
        if call.name.is_empty() {
            piece.name.clone_into(&mut call.name);
        }
        call.arguments.push_str(piece.arguments);
    }

    /// A finish reason, when it is not empty.
    fn finish_reason(&mut self, reason: &str) {
        if reason.is_empty() {
            return;
        }
        self.trace.beyond();
        self.carries(Carries::FINISH);
        self.finish_reasons = self.finish_reasons.saturating_add(1);
        self.aborted |= ABORTED.contains(&reason);
        self.answer.finish_reason = Some(clip(reason, MESSAGE_LIMIT).to_owned());
    }

    /// The completion count as of this event: the largest one counts, since
    /// servers repeat and accumulate it.
    fn completion_count(&mut self, count: Option<u32>) {
        if let Some(count) = count {
            self.trace.beyond();
            self.carries(Carries::USAGE);
            self.now.completion = Some(self.now.completion.unwrap_or(0).max(count));
        }
    }

    /// A completion count from before there was output.
    fn placeholder_count(&mut self, count: Option<u32>) {
        if count.is_some() {
            self.trace.beyond();
            self.carries(Carries::USAGE);
        }
        self.placeholder = self.placeholder.max(count);
    }

    /// The other counts; the latest value of each.
    fn prompt_counts(&mut self, prompt: Option<u32>, cached: Option<u32>, reasoning: Option<u32>) {
        if prompt.or(cached).or(reasoning).is_some() {
            self.trace.beyond();
        }
        if prompt.is_some() {
            self.carries(Carries::USAGE);
        }
        let counts = &mut self.answer.counts;
        counts.prompt = prompt.map(Tokens::new).or(counts.prompt);
        counts.cached = cached.map(Tokens::new).or(counts.cached);
        counts.reasoning = reasoning.map(Tokens::new).or(counts.reasoning);
    }

    /// Tokens that the event lists one by one.
    fn listed_tokens(&mut self, count: u32) {
        self.now.listed = self.now.listed.saturating_add(count);
    }

    fn logprobs(&mut self, count: u32) {
        if count > 0 {
            self.trace.beyond();
        }
        self.logprobs = self.logprobs.saturating_add(count);
    }

    /// The server's own timings; those of the last event that has some.
    fn timings(&mut self, timings: Vec<(String, f64)>) {
        if !timings.is_empty() {
            self.trace.beyond();
            self.answer.server_timings = timings;
        }
    }

    /// The API's own event that ends an answer.
    fn terminal(&mut self) {
        self.trace.beyond();
        self.terminal = true;
    }

    /// Vectors or scores, as many as were asked for; none is an empty answer.
    fn results(&mut self, count: u32) {
        self.arrivals = u32::from(count > 0);
    }

    /// An answer whose results are not those that were asked for.
    fn wrong_result(&mut self, message: &str) {
        self.malformed = true;
        self.answer.message.get_or_insert_with(|| message.to_owned());
    }

    /// An error object inside the stream; the first one counts.
    fn error(&mut self, message: &str, code: &str) {
        self.trace.beyond();
        self.carries(Carries::ERROR);
        if self.in_band {
            return;
        }
        self.in_band = true;
        self.answer.message = Some(sample(message));
        self.answer.error_code = (!code.is_empty()).then(|| clip(code, MESSAGE_LIMIT).to_owned());
    }

    fn fault(&mut self, fault: &Fault<'_>, outer_kind: &str) {
        let code = [&*fault.code, &*fault.kind, outer_kind]
            .into_iter()
            .find(|code| !code.is_empty())
            .unwrap_or_default();
        self.error(&fault.message, code);
    }
}

/// The message and the code in the body of a refusal: JSON in the usual
/// shapes, else its text.
pub(crate) fn refusal(body: &[u8]) -> (Option<String>, Option<String>) {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return (None, None);
    }
    let (message, code) = whole::refusal(text.as_bytes()).unwrap_or_default();
    let message = if message.is_empty() { text } else { &message };
    (Some(sample(message)), (!code.is_empty()).then(|| clip(&code, MESSAGE_LIMIT).to_owned()))
}

/// The first `limit` bytes, cut between characters.
pub(crate) fn clip(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Beginnings of what is likely a key. Servers like to repeat the key that
/// they refuse, and messages are stored.
const KEY_PREFIXES: &[&str] = &["sk-", "hf_", "nvapi-", "gsk_", "xai-", "AIza", "eyJ"];

/// A bounded sample of what a server said, without keys.
pub(crate) fn sample(text: &str) -> String {
    let is_key_char = |c: char| c.is_ascii_alphanumeric() || "-_.~+/".contains(c);
    let mut sample = String::new();
    let mut rest = clip(text.trim(), MESSAGE_LIMIT);
    let mut after_bearer = false;
    while !rest.is_empty() {
        let word = &rest[..rest.find(|c| !is_key_char(c)).unwrap_or(rest.len())];
        let known = after_bearer || KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        // Shorter words are no keys: "sk-" alone, "bearer token".
        sample.push_str(if known && word.len() >= 8 { "[redacted]" } else { word });
        if !word.is_empty() {
            after_bearer = word.eq_ignore_ascii_case("bearer");
        }
        let behind = &rest[word.len()..];
        let next = behind.find(is_key_char).unwrap_or(behind.len());
        sample.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    sample
}

#[cfg(test)]
mod tests;
