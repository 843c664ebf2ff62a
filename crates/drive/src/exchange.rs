//! One request and its answer, over one connection or, when an idle one turns
//! out dead, over a second.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use measure::{At, Record, Span};
use tokio::time::{Instant, sleep_until};
use wire::http1;
use wire::reader::{Close, Reader, ReaderOptions};

use crate::connection::{Connection, OpenError, OpenStamps};
use crate::worker::Worker;

/// How long an answered connection may take to end its framing before it is
/// closed instead of used again.
const TAIL_LIMIT: Duration = Duration::from_secs(1);

/// A request under way. It outlives the future that drives it, so that a
/// cancelled request keeps what had arrived.
pub(crate) struct Attempt {
    record: Record,
    reader: Option<Reader>,
    reconnects: u16,
}

/// How an exchange over one connection ended.
struct Ended {
    close: Close,
    at: At,
}

impl Attempt {
    pub(crate) fn new(record: Record) -> Self {
        Self { record, reader: None, reconnects: 0 }
    }

    /// Sends the request and reads the answer to its end. A connection that
    /// was idle and is reset before the first byte of an answer was dead when
    /// it was used: that is ours, so the request goes out once more on a fresh
    /// one, and the first try's stamps stay.
    pub(crate) async fn exchange(&mut self, worker: &Rc<Worker>, bytes: &[u8]) {
        loop {
            let total_at = self.record.stamps.released_at.unwrap_or_default();
            let total_at = total_at + worker.job.request_timeout;
            let opening = worker.checkout(self.reconnects > 0);
            let opened = match limit(opening, worker, total_at).await {
                Some(Ok(opened)) => opened,
                Some(Err(error)) => return self.not_opened(error, worker.clock.now()),
                None => {
                    let message = format!("no connection within {}", worker.job.request_timeout);
                    let outcome = measure::Outcome::Failed(measure::FailureKind::Connect);
                    return self.not_opened(OpenError { outcome, message }, worker.clock.now());
                }
            };
            let (mut connection, stamps) = opened;
            self.note_opening(stamps);
            self.reader = Some(Reader::new(
                worker.job.api,
                ReaderOptions { keep_text: worker.job.keep_text, ..ReaderOptions::default() },
            ));
            let ended = self.talk(worker, &mut connection, bytes).await;
            let Some(reader) = self.reader.as_mut() else { return };
            let dead = matches!(ended.close, Close::Reset | Close::Eof)
                && connection.reused
                && !reader.first_byte_seen();
            if dead && self.reconnects == 0 {
                self.reconnects = 1;
                continue;
            }
            let framing = reader.answer_done().then(|| reader.framing());
            self.close(ended.close, ended.at);
            if let Some(framing) = framing {
                keep(worker, connection, framing);
            }
            return;
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
        self.reader = None;
    }

    /// Writes the request and reads until the answer is over.
    async fn talk(&mut self, worker: &Worker, connection: &mut Connection, bytes: &[u8]) -> Ended {
        let clock = worker.clock;
        let sent_at = *self.record.stamps.sent_at.get_or_insert_with(|| clock.now());
        let total_at = sent_at + worker.job.request_timeout;
        match limit(connection.write_all(bytes), worker, total_at).await {
            // A peer that refuses early may have answered before it closed, so
            // a failed write is no reason not to read.
            Some(_) => self.record.stamps.written_at = Some(clock.now()),
            None => return Ended { close: Close::TotalTimeout, at: clock.now() },
        }
        let mut last_byte_at = clock.now();
        let timer = sleep_until(instant(clock.now(), total_at));
        tokio::pin!(timer);
        loop {
            let Some(reader) = self.reader.as_mut() else {
                return Ended { close: Close::Reset, at: clock.now() };
            };
            let idle_at = reader.body_begun().then_some(last_byte_at + worker.job.idle_timeout);
            let deadline = idle_at.map_or(total_at, |idle_at| idle_at.min(total_at));
            let mut done = false;
            let mut take = |bytes: &[u8], at: At| {
                last_byte_at = at;
                reader.read(bytes, since(sent_at, at));
                done = reader.answer_done() || reader.framing_done();
            };
            let came = tokio::select! {
                biased;
                came = connection.read(&worker.buffer, clock, &mut take) => came,
                () = &mut timer => {
                    let now = clock.now();
                    if now < deadline {
                        timer.as_mut().reset(instant(now, deadline));
                        continue;
                    }
                    let close = if deadline == total_at { Close::TotalTimeout } else { Close::IdleTimeout };
                    return Ended { close, at: now };
                }
            };
            match came {
                Ok(true) if done => return Ended { close: Close::Done, at: last_byte_at },
                Ok(true) => {
                    // The timer may sleep past an idle limit that was armed
                    // just now; bring it forward once.
                    let due =
                        instant(clock.now(), deadline.min(last_byte_at + worker.job.idle_timeout));
                    if timer.deadline() > due {
                        timer.as_mut().reset(due);
                    }
                }
                Ok(false) => return Ended { close: Close::Eof, at: clock.now() },
                Err(error) => return Ended { close: how_broken(&error), at: clock.now() },
            }
        }
    }

    /// Ends the request by our own wish.
    pub(crate) fn cancel(&mut self, now: At) {
        if self.reader.is_some() {
            self.close(Close::Cancelled, now);
        } else if self.record.stamps.ended_at.is_none() {
            self.record.outcome = measure::Outcome::Cancelled;
            self.record.stamps.ended_at = Some(now);
        }
    }

    fn close(&mut self, close: Close, at: At) {
        let (Some(reader), Some(sent_at)) = (self.reader.take(), self.record.stamps.sent_at) else {
            return;
        };
        let reading = reader.finish(close, since(sent_at, at));
        let after = |us: Option<u32>| us.map(|us| sent_at + Span::from_us(i64::from(us)));
        self.record.stamps.first_byte_at = after(reading.first_byte_us);
        self.record.stamps.headers_at = after(reading.headers_us);
        self.record.stamps.ended_at = after(Some(reading.ended_us));
        self.record.events = reading.events;
        self.record.answer = reading.answer;
        self.record.answer.reconnects = self.reconnects;
        self.record.outcome = reading.outcome;
    }

    pub(crate) fn into_record(self) -> Record {
        self.record
    }
}

/// Microseconds from the first send to `at`, as the event columns hold them.
fn since(sent_at: At, at: At) -> u32 {
    u32::try_from((at - sent_at).us().max(0)).unwrap_or(u32::MAX)
}

fn instant(now: At, at: At) -> Instant {
    Instant::now() + Duration::from_micros((at - now).us().max(0) as u64)
}

async fn limit<T>(work: impl Future<Output = T>, worker: &Worker, until: At) -> Option<T> {
    tokio::time::timeout_at(instant(worker.clock.now(), until), work).await.ok()
}

fn how_broken(error: &io::Error) -> Close {
    // TLS reports a broken record as invalid data; for the reader both are a
    // connection that broke.
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Close::Eof,
        _ => Close::Reset,
    }
}

/// Returns an answered connection to the pool, after reading the end of its
/// framing where that has not come yet. The answer is over by then, so nobody
/// waits for this.
fn keep(worker: &Rc<Worker>, mut connection: Connection, mut framing: http1::Decoder) {
    if framing.is_done() {
        if framing.is_reusable() {
            worker.give_back(connection);
        }
        return;
    }
    if framing.ends_at_close() {
        return;
    }
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let end = async {
            while !framing.is_done() {
                let mut broken = false;
                let mut take = |bytes: &[u8], _: At| {
                    broken = framing.feed(bytes, |_| {}).is_err();
                };
                let open = connection.read(&worker.buffer, worker.clock, &mut take).await;
                if broken || !matches!(open, Ok(true)) {
                    return false;
                }
            }
            framing.is_reusable()
        };
        if tokio::time::timeout(TAIL_LIMIT, end).await == Ok(true) {
            worker.give_back(connection);
        }
    });
}
