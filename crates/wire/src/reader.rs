//! One answer, from its first byte to its end: bytes and stamps in, a
//! [`Reading`] out.
//!
//! The load generator and the tests use the same reader. It is incremental and
//! bounded: nothing is kept but the time line, the figures and, when asked, the
//! text. It never fails: what went wrong is in the outcome.

use measure::{Answer, Events, FailureKind, Outcome, Span, Warnings};

use crate::api::{Api, EndMark, Framing, Yields};
use crate::dialect::{Forms, Heard, Listener, MESSAGE_LIMIT, ToolCall, clip, refusal, sample};
use crate::http1::{self, Decompressor, Head, Part};
use crate::timeline::Timeline;
use crate::{ndjson, sse};

/// What an answer may take before it is called too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the response head.
    pub head: usize,
    /// Bytes of one line.
    pub line: usize,
    /// Bytes of one event, or of a body that is one JSON value.
    pub event: usize,
    /// Bytes of the whole body, as received and as decompressed.
    pub body: u64,
    /// Events.
    pub events: usize,
}

impl Limits {
    /// The bounds used without other instructions.
    ///
    /// Head: four times what common servers send at most. Line and event: the
    /// last event of the responses API holds the whole text, and each event of
    /// SGLang's native API all text so far, so a token-sized bound would be
    /// wrong; 8 MiB is two million tokens. Body: those cumulative texts add up,
    /// to 250 MB for an answer of ten thousand tokens; the body is not kept.
    /// Events: one million rows are 9 MB, more than any context holds tokens.
    pub const DEFAULT: Self =
        Self { head: 64 << 10, line: 8 << 20, event: 8 << 20, body: 1 << 30, events: 1 << 20 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How to read an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReaderOptions {
    /// Keep text, reasoning and tool arguments.
    pub keep_text: bool,
    /// Bounds.
    pub limits: Limits,
    /// Parse every event in full, also those that differ from the one before
    /// only in their text. The reading is the same; tests and the bench
    /// compare the two ways.
    pub full_parse: bool,
    /// Events that are likely to come, to make room for at once: rows that
    /// move while they grow cost more than the parsing.
    pub expected_events: usize,
    /// Results that were asked for, of an API that gives vectors or scores;
    /// 0 is as 1.
    pub expected_results: u32,
}

/// How many times the limit of an event a body of vectors may have: a batch of
/// 256 texts with 4 096 numbers each is 20 MB.
const RESULT_FACTOR: usize = 8;

/// Rows made room for at most before any came: 2 MB.
const ROOM_LIMIT: usize = 1 << 18;

/// Whether more bytes are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The answer is not over.
    More,
    /// The answer is over, but the response is not at its end: read on for a
    /// moment if the connection is to be used again.
    AnswerOver,
    /// The response is at its end, or cannot be read further.
    Over,
}

/// How the reading ended, as the driver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The reader asked for no more.
    Done,
    /// The peer closed the connection in order.
    Eof,
    /// The connection broke.
    Reset,
    /// Nothing came for too long.
    IdleTimeout,
    /// The whole took too long.
    TotalTimeout,
    /// We stopped it.
    Cancelled,
}

/// All that is known of one answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The time line.
    pub events: Events,
    /// What the answer said.
    pub answer: Answer,
    /// The calls of tools in it, where texts are kept.
    pub tool_calls: Vec<ToolCall>,
    /// How the request ended.
    pub outcome: Outcome,
    /// First byte, in microseconds since the request was sent.
    pub first_byte_us: Option<u32>,
    /// Head complete, in microseconds since the request was sent.
    pub headers_us: Option<u32>,
    /// The request was over: terminal event, end of the body or error; in
    /// microseconds since the request was sent.
    pub ended_us: u32,
}

/// Bytes kept of a body that only explains a failure.
const EXPLANATION_LIMIT: usize = 8 << 10;

/// Bytes shown of a body of the wrong type.
const WRONG_TYPE_SAMPLE: usize = 200;

/// Zero gaps make a burst only among this many arrivals or more.
const BURST_ARRIVALS: usize = 21;

/// Reads one answer.
#[derive(Debug)]
pub struct Reader {
    http: http1::Decoder,
    /// The body comes without HTTP/1 framing.
    unframed: bool,
    framing_done_us: Option<u32>,
    content: Content,
}

/// What receives head and body, apart from the HTTP framing.
///
/// In this order, because thousands of answers are read in turn: what the head
/// and the end touch lies first, then what each read touches, and the rows end
/// with what only an unusual event touches.
#[derive(Debug)]
#[repr(C)]
struct Content {
    headers_us: Option<u32>,
    /// What the head says went wrong: nothing in the body can change it.
    refused: Option<FailureKind>,
    /// What broke on the way: of no matter once the answer is whole.
    broken: Option<FailureKind>,
    notes: Option<Box<Notes>>,
    http_status: Option<u16>,
    retry_after: Option<Span>,
    served_by: Option<String>,
    warnings: Warnings,
    api: Api,
    limits: Limits,
    first_byte_us: Option<u32>,
    failed_us: Option<u32>,
    decompressor: Option<Box<Decompressor>>,
    body_bytes: u64,
    decoded_bytes: u64,
    last_body_us: u32,
    last_body_read: u32,
    rows: Rows,
    body: Body,
}

/// What explains a failure. Most answers have none of it.
#[derive(Debug, Default)]
struct Notes {
    message: Option<String>,
    error_code: Option<String>,
    /// Of a body that is not of the right type.
    media_type: String,
}

/// What becomes of the body.
#[derive(Debug)]
enum Body {
    Sse(sse::Decoder),
    Ndjson(ndjson::Decoder),
    /// One JSON value, not streamed.
    Whole(Vec<u8>),
    /// The explanation of a failure, or its beginning.
    Explanation(Vec<u8>),
    /// Nothing of it matters, or no head came yet.
    Ignored,
}

/// The time line as it grows.
#[derive(Debug)]
#[repr(C)]
struct Rows {
    limit: usize,
    /// Number of the current read, and of the read of the last row.
    read: u32,
    last_row_read: u32,
    over_us: Option<u32>,
    overflow: bool,
    timeline: Timeline,
    listener: Listener,
}

impl Rows {
    fn take(&mut self, kind: &[u8], data: &[u8], at_us: u32) {
        if self.overflow {
            return;
        }
        if let Some(heard) = self.listener.hear(kind, data) {
            self.push(heard, at_us);
        }
    }

    /// Takes the events of a known form at the start of `bytes`, which begins
    /// where an event may begin; gives what lies behind them. Decoding them
    /// line by line would give the same for twice the price.
    #[inline]
    fn take_framed<'b>(&mut self, mut bytes: &'b [u8], limits: Limits, at_us: u32) -> &'b [u8] {
        // No larger than this as a whole, it is within both limits.
        let limit = limits.line.min(limits.event);
        while !bytes.is_empty()
            && !self.overflow
            && let Some((heard, behind)) = self.listener.hear_framed(bytes, limit)
        {
            self.push(heard, at_us);
            bytes = behind;
        }
        bytes
    }

    #[inline(always)]
    fn push(&mut self, heard: Heard, at_us: u32) {
        if self.timeline.len() >= self.limit {
            self.overflow = true;
            return;
        }
        self.timeline.push(heard, at_us, self.last_row_read == self.read);
        self.last_row_read = self.read;
        if self.over_us.is_none() && self.listener.is_over() {
            self.over_us = Some(at_us);
        }
    }
}

impl Reader {
    /// A reader for one answer of `api`.
    pub fn new(api: Api, options: ReaderOptions) -> Self {
        Self::sharing(&Forms::new(api), options)
    }

    /// A reader for one answer of the API of `forms`, which uses what other
    /// readers found out about the form of its events.
    pub fn sharing(forms: &Forms, options: ReaderOptions) -> Self {
        let api = forms.api();
        let limits = options.limits;
        let mut listener = Listener::new(forms.clone(), options.keep_text);
        listener.expect_results(options.expected_results.max(1));
        if options.full_parse {
            listener.parse_in_full();
        }
        Self {
            http: http1::Decoder::new(limits.head),
            unframed: false,
            framing_done_us: None,
            content: Content {
                api,
                limits,
                rows: Rows {
                    listener,
                    timeline: Timeline::with_capacity(options.expected_events.min(ROOM_LIMIT)),
                    limit: limits.events,
                    read: 0,
                    last_row_read: 0,
                    over_us: None,
                    overflow: false,
                },
                body: Body::Ignored,
                decompressor: None,
                first_byte_us: None,
                headers_us: None,
                refused: None,
                broken: None,
                failed_us: None,
                notes: None,
                http_status: None,
                retry_after: None,
                served_by: None,
                warnings: Warnings::NONE,
                body_bytes: 0,
                decoded_bytes: 0,
                last_body_us: 0,
                last_body_read: 0,
            },
        }
    }

    /// Takes the bytes of one read of the connection. They share one stamp,
    /// `at_us` microseconds since the request was sent.
    pub fn read(&mut self, bytes: &[u8], at_us: u32) -> Progress {
        let content = &mut self.content;
        if !bytes.is_empty() {
            content.start_read(at_us);
            let result = self.http.feed(bytes, |part| match part {
                Part::Head(head) => content.take_head(head, at_us),
                Part::Body(bytes) => content.take_body(bytes, at_us),
            });
            if let Err(error) = result {
                content.break_off(&error, at_us);
            }
            if self.framing_done_us.is_none() && self.http.is_done() {
                self.framing_done_us = Some(at_us);
            }
        }
        self.progress()
    }

    /// Takes a head that did not come as HTTP/1 bytes: HTTP/2, or a recorded
    /// body with a known status and type.
    pub fn read_head(&mut self, head: &Head, at_us: u32) {
        self.unframed = true;
        self.content.start_read(at_us);
        self.content.take_head(head, at_us);
    }

    /// Takes the bytes of one read of a body without HTTP/1 framing, after
    /// [`Self::read_head`]. They share one stamp.
    pub fn read_body(&mut self, bytes: &[u8], at_us: u32) -> Progress {
        if !bytes.is_empty() {
            self.content.start_read(at_us);
            self.content.take_body(bytes, at_us);
        }
        self.progress()
    }

    fn progress(&self) -> Progress {
        if self.framing_done() || self.content.failed_us.is_some() {
            Progress::Over
        } else if self.answer_done() {
            Progress::AnswerOver
        } else {
            Progress::More
        }
    }

    /// True when the request is over: the answer's terminal event came, or the
    /// end of the body, or nothing further can change the outcome. The HTTP
    /// response may go on.
    pub fn answer_done(&self) -> bool {
        self.content.is_over() || self.framing_done()
    }

    /// True when the HTTP response was received to its last byte.
    pub fn framing_done(&self) -> bool {
        self.http.is_done()
    }

    /// True when the connection may carry another request.
    pub fn reusable(&self) -> bool {
        self.http.is_reusable() && self.content.broken.is_none()
    }

    /// True when any byte of the response came.
    pub fn first_byte_seen(&self) -> bool {
        self.content.first_byte_us.is_some()
    }

    /// Something from all over what a read touches, and of no meaning: to have
    /// it fetched into the cache.
    pub fn glance(&self) -> u64 {
        let content = &self.content;
        let sse = match &content.body {
            Body::Sse(decoder) => decoder.is_between_events(),
            _ => false,
        };
        content.body_bytes
            ^ content.limits.body
            ^ u64::from(self.ends_in_arrival())
            ^ u64::from(content.last_body_us)
            ^ u64::from(content.rows.listener.arrivals())
            ^ u64::from(content.rows.listener.is_over() ^ sse ^ self.http.is_done())
    }

    /// Number of token arrivals so far.
    pub fn arrivals_seen(&self) -> u32 {
        self.content.rows.listener.arrivals()
    }

    /// True when the last event so far was an arrival of tokens.
    pub fn ends_in_arrival(&self) -> bool {
        self.content.rows.timeline.last().carries.is_arrival()
    }

    /// True when a first event came: from then on silence is a stall.
    pub fn body_begun(&self) -> bool {
        self.content.rows.timeline.len() > 0
    }

    /// The state of the HTTP framing, to read a response to its end after the
    /// answer is over.
    pub fn framing(&self) -> http1::Decoder {
        self.http.clone()
    }

    /// Ends the reading; `at_us` is when the driver saw the end.
    pub fn finish(mut self, close: Close, at_us: u32) -> Reading {
        let content = &mut self.content;
        let complete = if self.unframed {
            matches!(close, Close::Eof | Close::Done)
        } else {
            self.http.is_done() || (self.http.ends_at_close() && close == Close::Eof)
        };
        content.take_last_event(complete);
        let outcome = content.outcome(close, complete);
        let events = content.rows.timeline.columns();
        if outcome == Outcome::Ok {
            // We may stop reading behind the answer; then nothing is known of
            // the framing.
            let seen_to_the_end = !matches!(close, Close::Done | Close::Cancelled);
            let framed = !self.unframed && !self.http.ends_at_close();
            if content.broken == Some(FailureKind::MalformedHttp)
                || (framed && seen_to_the_end && !complete)
            {
                content.warnings.add(Warnings::FRAMING_ERROR);
            }
            content.warnings.add(delivery_warning(&events));
        }
        let ends = [content.rows.over_us, content.failed_us, self.framing_done_us];
        let ended_us = ends.into_iter().flatten().min().unwrap_or(at_us);
        self.content.into_reading(outcome, events, ended_us)
    }
}

impl Content {
    fn start_read(&mut self, at_us: u32) {
        self.first_byte_us.get_or_insert(at_us);
        self.rows.read = self.rows.read.saturating_add(1);
    }

    fn take_head(&mut self, head: &Head, at_us: u32) {
        self.headers_us.get_or_insert(at_us);
        self.http_status = Some(head.status);
        self.served_by = head.served_by.as_deref().map(|name| clip(name, MESSAGE_LIMIT).to_owned());
        let media_type = head.media_type();
        let limits = self.limits;
        self.body = match (head.status, media_type.as_str()) {
            (300..=399, _) => {
                self.refused = Some(FailureKind::Redirect);
                let location =
                    head.location.as_deref().map(|at| clip(at, MESSAGE_LIMIT).to_owned());
                self.notes().message = location;
                Body::Ignored
            }
            (400.., _) => {
                self.refused = Some(FailureKind::HttpStatus);
                self.retry_after = head.retry_after.as_deref().and_then(retry_after);
                Body::Explanation(Vec::new())
            }
            (_, media) if self.yields_results() && (media.is_empty() || is_json(media)) => {
                Body::Whole(Vec::new())
            }
            _ if self.yields_results() => {
                self.refused = Some(FailureKind::BadContentType);
                self.notes().media_type.clone_from(&media_type);
                Body::Explanation(Vec::new())
            }
            (_, "text/event-stream") => Body::Sse(sse::Decoder::new(limits.line, limits.event)),
            (_, media) if is_ndjson(media) => Body::Ndjson(ndjson::Decoder::new(limits.line)),
            (_, media) if is_json(media) => Body::Whole(Vec::new()),
            (_, "") => match self.api.entry().framing {
                Framing::Sse => Body::Sse(sse::Decoder::new(limits.line, limits.event)),
                Framing::Ndjson => Body::Ndjson(ndjson::Decoder::new(limits.line)),
            },
            _ => {
                self.refused = Some(FailureKind::BadContentType);
                self.notes().media_type.clone_from(&media_type);
                Body::Explanation(Vec::new())
            }
        };
        if let Some(coding) = &head.content_encoding {
            match Decompressor::new(coding) {
                Ok(decompressor) => {
                    self.decompressor = Some(Box::new(decompressor));
                    self.warnings.add(Warnings::COMPRESSED_STREAM);
                }
                Err(error) => {
                    self.refused.get_or_insert(FailureKind::UnsupportedEncoding);
                    self.notes().message.get_or_insert(sample(&error.to_string()));
                    self.body = Body::Ignored;
                }
            }
        }
    }

    fn take_body(&mut self, bytes: &[u8], at_us: u32) {
        self.body_bytes += bytes.len() as u64;
        self.last_body_us = at_us;
        self.last_body_read = self.rows.read;
        if self.failed_us.is_some() {
            return;
        }
        if let Some(mut decompressor) = self.decompressor.take() {
            let result = decompressor.feed(bytes, |bytes| self.take_decoded(bytes, at_us));
            self.decompressor = Some(decompressor);
            if let Err(error) = result {
                self.break_off(&error, at_us);
            }
        } else {
            self.take_decoded(bytes, at_us);
        }
    }

    fn take_decoded(&mut self, bytes: &[u8], at_us: u32) {
        if self.failed_us.is_some() {
            return;
        }
        self.decoded_bytes += bytes.len() as u64;
        if self.decoded_bytes > self.limits.body {
            let limit = self.limits.body;
            return self.too_large(&format!("the body is larger than {limit} bytes"), at_us);
        }
        let bytes = match &self.body {
            Body::Sse(decoder) if decoder.is_between_events() => {
                self.rows.take_framed(bytes, self.limits, at_us)
            }
            _ => bytes,
        };
        if bytes.is_empty() && !self.rows.overflow {
            return;
        }
        let factor = if self.yields_results() { RESULT_FACTOR } else { 1 };
        let whole = self.limits.event.saturating_mul(factor);
        let rows = &mut self.rows;
        let mut take = |event: sse::Event<'_>| rows.take(event.kind, event.data, at_us);
        let result = match &mut self.body {
            Body::Sse(decoder) => decoder.feed(bytes, &mut take),
            Body::Ndjson(decoder) => decoder.feed(bytes, &mut take),
            Body::Whole(kept) if kept.len() + bytes.len() > whole => {
                Err(sse::TooLarge::Event(whole))
            }
            Body::Whole(kept) => {
                kept.extend_from_slice(bytes);
                Ok(())
            }
            Body::Explanation(kept) => {
                let room = EXPLANATION_LIMIT - kept.len();
                kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
                Ok(())
            }
            Body::Ignored => Ok(()),
        };
        if let Err(error) = result {
            self.too_large(&error.to_string(), at_us);
        } else if self.rows.overflow {
            let limit = self.limits.events;
            self.too_large(&format!("the answer has more than {limit} events"), at_us);
        }
    }

    /// True for an API whose answers are one body without tokens.
    fn yields_results(&self) -> bool {
        self.api.entry().yields != Yields::Tokens
    }

    fn notes(&mut self) -> &mut Notes {
        self.notes.get_or_insert_default()
    }

    fn too_large(&mut self, message: &str, at_us: u32) {
        self.fail(FailureKind::TooLarge, message, at_us);
    }

    fn break_off(&mut self, error: &http1::Error, at_us: u32) {
        let kind = match error {
            http1::Error::HeadTooLarge(_) => FailureKind::TooLarge,
            _ => FailureKind::MalformedHttp,
        };
        self.fail(kind, &error.to_string(), at_us);
    }

    fn fail(&mut self, kind: FailureKind, message: &str, at_us: u32) {
        if self.broken.is_none() {
            self.broken = Some(kind);
            self.notes().message.get_or_insert(sample(message));
        }
        self.failed_us.get_or_insert(at_us);
    }

    /// True when nothing that may still come can change the outcome.
    fn is_over(&self) -> bool {
        let explained = match &self.body {
            Body::Explanation(kept) => kept.len() >= EXPLANATION_LIMIT,
            Body::Ignored => self.refused.is_some(),
            _ => false,
        };
        explained || self.failed_us.is_some() || self.rows.listener.is_over()
    }

    /// Takes what stood open when the body ended: an event without its blank
    /// line is taken when its data is whole, and a body that is one JSON value
    /// is read only now. Both were there when the last byte was.
    fn take_last_event(&mut self, complete: bool) {
        self.rows.read = self.last_body_read;
        let at_us = self.last_body_us;
        let rows = &mut self.rows;
        let open = match &mut self.body {
            _ if self.failed_us.is_some() => None,
            Body::Sse(decoder) => decoder.finish(),
            Body::Ndjson(decoder) => decoder.finish(),
            _ => None,
        };
        if let Some(open) = open {
            let before = rows.timeline.len();
            if Listener::is_complete(open.data) {
                rows.take(open.kind, open.data, at_us);
            }
            if rows.timeline.len() > before {
                self.warnings.add(Warnings::UNTERMINATED_LAST_EVENT);
            }
        }
        match std::mem::replace(&mut self.body, Body::Ignored) {
            Body::Whole(body) if self.failed_us.is_none() => {
                match self.rows.listener.hear_whole(&body) {
                    Some(heard) => self.rows.push(heard, at_us),
                    None if complete && !body.trim_ascii().is_empty() => {
                        let message = String::from_utf8_lossy(&body);
                        self.fail(FailureKind::MalformedEvent, &message, at_us);
                    }
                    None => {}
                }
            }
            Body::Explanation(body) => self.explain(&body),
            Body::Sse(decoder) => self.body = Body::Sse(decoder),
            _ => {}
        }
    }

    fn explain(&mut self, body: &[u8]) {
        if self.refused == Some(FailureKind::BadContentType) {
            let text = String::from_utf8_lossy(&body[..body.len().min(WRONG_TYPE_SAMPLE)]);
            let notes = self.notes();
            notes.message = Some(format!("{}: {}", notes.media_type, sample(&text)));
        } else {
            let (message, code) = refusal(body);
            let notes = self.notes();
            notes.message = notes.message.take().or(message);
            notes.error_code = code;
        }
    }

    fn outcome(&self, close: Close, complete: bool) -> Outcome {
        let listener = &self.rows.listener;
        if let Some(kind) = self.refused.or(listener.failure()) {
            return Outcome::Failed(kind);
        }
        let clean_end = self.api.entry().end_mark == EndMark::CleanClose
            && complete
            && self.http_status.is_some()
            && self.broken.is_none();
        if listener.is_whole() || clean_end {
            return if listener.arrivals() > 0 { Outcome::Ok } else { Outcome::Empty };
        }
        if let Some(kind) = self.broken {
            return Outcome::Failed(kind);
        }
        Outcome::Failed(match close {
            Close::Cancelled => return Outcome::Cancelled,
            Close::IdleTimeout => FailureKind::IdleTimeout,
            Close::TotalTimeout => FailureKind::TotalTimeout,
            Close::Done | Close::Eof | Close::Reset if complete => FailureKind::Truncated,
            Close::Done | Close::Eof | Close::Reset => FailureKind::Disconnected,
        })
    }

    fn into_reading(self, outcome: Outcome, events: Events, ended_us: u32) -> Reading {
        let comments = match &self.body {
            Body::Sse(decoder) => decoder.comments(),
            _ => 0,
        };
        let mut listener = self.rows.listener;
        let tool_calls = listener.take_calls();
        let mut answer = listener.finish(outcome == Outcome::Ok);
        answer.http_status = self.http_status;
        answer.retry_after = self.retry_after;
        answer.served_by = self.served_by;
        answer.comments = comments;
        answer.body_bytes = self.body_bytes;
        answer.warnings.add(self.warnings);
        // What broke behind a whole answer is no message of a failure.
        if !matches!(outcome, Outcome::Ok | Outcome::Empty) {
            let notes = self.notes.map_or_else(Notes::default, |notes| *notes);
            answer.message = answer.message.or(notes.message);
            answer.error_code = answer.error_code.or(notes.error_code);
        }
        Reading {
            events,
            answer,
            tool_calls,
            outcome,
            first_byte_us: self.first_byte_us,
            headers_us: self.headers_us,
            ended_us,
        }
    }
}

fn is_ndjson(media: &str) -> bool {
    const TYPES: &[&str] = &[
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/stream+json",
    ];
    TYPES.contains(&media)
}

fn is_json(media: &str) -> bool {
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

/// The seconds of a Retry-After. A date is left alone: the answer to it needs
/// a wall clock, and the server's at that.
fn retry_after(value: &str) -> Option<Span> {
    let seconds: f64 = value.trim().parse().ok()?;
    // A year stands for "never"; it also keeps the sum of spans in range.
    (seconds >= 0.0).then(|| Span::from_s(seconds.min(31_536_000.0)))
}

/// Whether output that was streamed also arrived as a stream.
fn delivery_warning(events: &Events) -> Warnings {
    let arrivals: Vec<u32> =
        events.iter().filter(|event| event.carries.is_arrival()).map(|event| event.at_us).collect();
    let gaps = arrivals.len().saturating_sub(1);
    let zeros = arrivals.windows(2).filter(|pair| pair[0] == pair[1]).count();
    if gaps > 0 && zeros == gaps {
        Warnings::NOT_STREAMED
    } else if arrivals.len() >= BURST_ARRIVALS && zeros * 10 >= gaps * 9 {
        Warnings::BURSTY_DELIVERY
    } else {
        Warnings::NONE
    }
}

#[cfg(test)]
mod tests {
    use measure::{Carries, Event};

    use super::*;

    #[test]
    fn h01_retry_after_is_seconds_or_unknown() {
        assert_eq!(retry_after(" 2 "), Some(Span::from_ms(2_000)));
        assert_eq!(retry_after("0.5"), Some(Span::from_ms(500)));
        assert_eq!(retry_after("1e99"), Some(Span::from_s(31_536_000.0)));
        for other in ["-1", "NaN", "", "Fri, 31 Dec 1999 23:59:59 GMT"] {
            assert_eq!(retry_after(other), None, "{other}");
        }
    }

    /// Thousands of answers are open at once, so an open one is kept small: it
    /// has no buffers before there is something to put in them.
    #[test]
    fn an_open_reader_takes_less_than_a_kilobyte() {
        assert!(size_of::<Reader>() <= 1_000, "{} bytes", size_of::<Reader>());
    }

    fn arrivals(at_us: impl IntoIterator<Item = u32>) -> Events {
        let event = |at_us| Event { at_us, carries: Carries::TEXT, ..Event::default() };
        let mut events = Events::default();
        at_us.into_iter().for_each(|at_us| events.push(event(at_us)));
        events
    }

    #[test]
    fn h11_bursts_are_told_from_streams() {
        for (events, want) in [
            (arrivals([5]), Warnings::NONE),
            (arrivals([5, 5]), Warnings::NOT_STREAMED),
            (arrivals([5, 6]), Warnings::NONE),
            (arrivals((0..40).map(|n| n / 20)), Warnings::BURSTY_DELIVERY),
            (arrivals((0..20).map(|n| n / 19)), Warnings::NONE),
            (arrivals((0..40).map(|n| n / 2)), Warnings::NONE),
        ] {
            assert_eq!(delivery_warning(&events), want, "{events:?}");
        }
    }
}
