//! One request and its answer, over one connection or, when an idle one turns
//! out dead, over a second.

use std::rc::Rc;

use measure::{At, FailureKind, NotSentKind, Outcome, Record, Span, Warnings};
use wire::dialect::ToolCall;
use wire::reader::{Close, Reader, ReaderOptions};

use crate::clock::duration;
use crate::connection::{OpenError, OpenStamps};
use crate::job::Reuse;
use crate::places::Key;
use crate::tap::{Ended, Exchange, since};
use crate::worker::Worker;

/// A request under way. It outlives the future that drives it, so that a
/// cancelled request keeps what had arrived.
pub(crate) struct Attempt {
    record: Record,
    /// The place of its target.
    target: u32,
    /// Keep text and calls of the answer.
    keep_text: bool,
    calls: Vec<ToolCall>,
    /// Its place in the tap, while a connection is busy with it.
    key: Option<Key>,
    reconnects: u16,
    /// Vectors or scores that were asked for.
    results: u32,
}

impl Attempt {
    pub(crate) fn new(record: Record, target: u32, results: u32, keep_text: bool) -> Self {
        Self { record, target, keep_text, calls: Vec::new(), key: None, reconnects: 0, results }
    }

    /// Sends the request and reads the answer to its end. A connection that
    /// was idle and is reset before the first byte of an answer was dead when
    /// it was used: that is ours, so the request goes out once more on a fresh
    /// one, and the first try's stamps stay.
    pub(crate) async fn exchange(&mut self, worker: &Worker, request: &Rc<[u8]>) {
        loop {
            let Some(key) = self.begin(worker, request).await else { return };
            worker.tap.over(key).await;
            self.key = None;
            let Some(exchange) = worker.tap.take(key) else { return };
            let ended =
                exchange.ended.unwrap_or(Ended { close: Close::Reset, at: worker.clock.now() });
            let dead = matches!(ended.close, Close::Reset | Close::Eof)
                && exchange.connection.reused
                && !exchange.reader.first_byte_seen();
            if dead && self.reconnects == 0 {
                self.reconnects = 1;
                continue;
            }
            return self.finish(worker, exchange, ended);
        }
    }

    /// Finds a connection and writes the request.
    async fn begin(&mut self, worker: &Worker, request: &Rc<[u8]>) -> Option<Key> {
        let clock = worker.clock;
        let released_at = self.record.stamps.released_at.unwrap_or_else(|| clock.now());
        let limit = worker.job.request_timeout;
        let session = self.record.planned.session;
        let mut stamps = OpenStamps::default();
        let opening = worker.checkout(self.target, session, self.reconnects > 0, &mut stamps);
        let opened =
            tokio::time::timeout(duration(released_at + limit - clock.now()), opening).await;
        let connection = match opened {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                self.not_opened(error, clock.now());
                return None;
            }
            Err(_) => {
                let (kind, what) = match stamps.connected_at {
                    None => (FailureKind::Connect, "connection"),
                    Some(_) => (FailureKind::Tls, "TLS handshake"),
                };
                let message = format!("no {what} within {limit}");
                self.not_opened(OpenError::failed(kind, message), clock.now());
                return None;
            }
        };
        self.note_opening(stamps);
        // A token an event at most, and a few events around them.
        let limit_tokens = self.record.planned.max_output_tokens.map_or(0, |n| n.get() + 8);
        let options = ReaderOptions {
            keep_text: self.keep_text,
            expected_events: limit_tokens as usize,
            expected_results: self.results,
            ..ReaderOptions::default()
        };
        let reader = Reader::sharing(&worker.forms, options);
        let sent_at = *self.record.stamps.sent_at.get_or_insert_with(|| clock.now());
        let exchange = Exchange::new(
            connection,
            reader,
            Rc::clone(request),
            sent_at,
            sent_at + limit,
            worker.job.idle_timeout,
        );
        match worker.tap.begin(exchange) {
            Ok(key) => {
                self.key = Some(key);
                Some(key)
            }
            Err(error) => {
                let outcome = Outcome::NotSent(NotSentKind::ClientResource);
                let message = format!("the connection cannot be watched: {error}");
                self.not_opened(OpenError { outcome, message }, clock.now());
                None
            }
        }
    }

    fn note_opening(&mut self, stamps: OpenStamps) {
        if self.record.stamps.sent_at.is_none() {
            self.record.stamps.resolved_at = stamps.resolved_at;
            self.record.stamps.connected_at = stamps.connected_at;
            self.record.stamps.secured_at = stamps.secured_at;
        }
    }

    fn not_opened(&mut self, error: OpenError, now: At) {
        self.record.outcome = error.outcome;
        self.record.answer.message = Some(error.message);
        self.record.answer.reconnects = self.reconnects;
        self.record.stamps.ended_at = Some(now);
    }

    /// Ends the request by our own wish.
    pub(crate) fn cancel(&mut self, worker: &Worker) {
        let at = worker.clock.now();
        match self.key.take().and_then(|key| worker.tap.take(key)) {
            // What ended at the same moment has ended.
            Some(exchange) => {
                let ended = exchange.ended.unwrap_or(Ended { close: Close::Cancelled, at });
                self.finish(worker, exchange, ended);
            }
            None if self.record.stamps.ended_at.is_none() => {
                self.record.outcome = Outcome::Cancelled;
                self.record.stamps.ended_at = Some(at);
            }
            None => {}
        }
    }

    fn finish(&mut self, worker: &Worker, exchange: Exchange, ended: Ended) {
        let stepped = exchange.saw_clock_step();
        let Exchange { connection, reader, sent_at, written_at, .. } = exchange;
        let framing = reader.answer_done().then(|| reader.framing());
        let reading = reader.finish(ended.close, since(sent_at, ended.at));
        let after = |us: Option<u32>| us.map(|us| sent_at + Span::from_us(i64::from(us)));
        self.record.stamps.written_at = written_at;
        self.record.stamps.first_byte_at = after(reading.first_byte_us);
        self.record.stamps.headers_at = after(reading.headers_us);
        self.record.stamps.ended_at = after(Some(reading.ended_us));
        self.record.events = reading.events;
        let of_request = self.record.answer.warnings;
        self.record.answer = reading.answer;
        self.record.answer.warnings.add(of_request);
        self.calls = reading.tool_calls;
        self.record.answer.reconnects = self.reconnects;
        self.record.outcome = reading.outcome;
        if stepped {
            self.record.answer.warnings.add(Warnings::CLOCK_STEP);
        }
        if let (Some(framing), true) = (framing, worker.job.reuse != Reuse::Never) {
            worker.tap.keep(connection, framing);
        }
    }

    /// The record, and the calls of tools in the answer where they were kept.
    pub(crate) fn into_record(self) -> (Record, Vec<ToolCall>) {
        (self.record, self.calls)
    }
}
