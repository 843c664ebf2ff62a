//! Scripts: what a server sends and when, as lists of steps with deadlines. An
//! engine's answer and a hostile peer are the same thing here.

use std::collections::VecDeque;

use crate::request::Request;

const NS_PER_MS: u64 = 1_000_000;

/// What a step does when its deadline comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes these bytes in one system call.
    Send(Vec<u8>),
    /// Ends our direction (FIN) once all bytes are with the kernel; the client
    /// can still read them.
    Close,
    /// Cuts the connection (RST).
    Reset,
    /// Nothing more comes and the connection stays open until the client goes.
    Stall,
}

/// One deadline of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Nanoseconds from the start of the script. A deadline before that of the
    /// step before it is due at once: steps never change places.
    pub at_ns: u64,
    /// What happens then.
    pub action: Action,
    /// Output tokens in the bytes, for the truth log.
    pub tokens: u32,
    /// True for the write that ends the answer: the truth log has the request
    /// before the client can know that it is over.
    pub last: bool,
}

impl Step {
    /// A step that sends bytes without tokens.
    pub fn send(at_ns: u64, bytes: Vec<u8>) -> Self {
        Self { at_ns, action: Action::Send(bytes), tokens: 0, last: false }
    }
}

/// Steps in order. They may be made one by one: only the next one needs to
/// exist, encoded, before its deadline.
pub type Steps = Box<dyn Iterator<Item = Step> + Send>;

/// A script written down in advance. Times are milliseconds from its start:
/// the moment the request was complete, or the connection accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    steps: VecDeque<Step>,
    endless: Option<Endless>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Endless {
    at_ns: u64,
    every_ns: u64,
    bytes: Vec<u8>,
}

impl Script {
    /// Nothing: the connection goes on with its next request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends bytes as they are, in one write.
    #[must_use]
    pub fn send(self, at_ms: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.act(at_ms, Action::Send(bytes.as_ref().to_vec()))
    }

    /// Closes in good order (FIN) after everything before it was sent.
    #[must_use]
    pub fn close(self, at_ms: u64) -> Self {
        self.act(at_ms, Action::Close)
    }

    /// Cuts the connection (RST).
    #[must_use]
    pub fn reset(self, at_ms: u64) -> Self {
        self.act(at_ms, Action::Reset)
    }

    /// Says nothing more and keeps the connection open.
    #[must_use]
    pub fn stall(self, at_ms: u64) -> Self {
        self.act(at_ms, Action::Stall)
    }

    /// Sends the bytes again and again, from `at_ms` on, until the client
    /// leaves. Nothing that is added later is reached.
    #[must_use]
    pub fn endless(mut self, at_ms: u64, every_ms: u64, bytes: impl AsRef<[u8]>) -> Self {
        self.endless = Some(Endless {
            at_ns: at_ms.saturating_mul(NS_PER_MS),
            every_ns: every_ms.saturating_mul(NS_PER_MS),
            bytes: bytes.as_ref().to_vec(),
        });
        self
    }

    /// Adds the head of a chunked answer.
    #[must_use]
    pub fn chunked_head(self, at_ms: u64, status: u16, content_type: &str) -> Self {
        let reason = reason_phrase(status);
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        self.send(at_ms, head)
    }

    /// Sends bytes as one chunk. Empty bytes give no chunk, because that would
    /// be the end of the body.
    #[must_use]
    pub fn chunk(self, at_ms: u64, bytes: impl AsRef<[u8]>) -> Self {
        let framed = http_chunk(bytes.as_ref());
        self.send(at_ms, framed)
    }

    /// Ends a chunked body.
    #[must_use]
    pub fn last_chunk(self, at_ms: u64) -> Self {
        self.send(at_ms, LAST_CHUNK)
    }

    /// A whole answer with its length, sent at once.
    pub fn whole(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Self {
        let mut bytes = whole_head(status, content_type, body.as_ref().len(), "").into_bytes();
        bytes.extend_from_slice(body.as_ref());
        Self::new().send(0, bytes)
    }

    /// A whole JSON answer, sent at once.
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::whole(status, "application/json", body.to_string())
    }

    /// The steps, for the server: at least one, so that a script that says
    /// nothing still takes its turn.
    pub fn into_steps(mut self) -> Steps {
        if self.steps.is_empty() && self.endless.is_none() {
            self = self.send(0, []);
        }
        let endless = self.endless.into_iter().flat_map(|endless| {
            (0u64..).map(move |turn| {
                let at_ns = endless.at_ns.saturating_add(endless.every_ns.saturating_mul(turn));
                Step::send(at_ns, endless.bytes.clone())
            })
        });
        Box::new(self.steps.into_iter().chain(endless))
    }

    fn act(self, at_ms: u64, action: Action) -> Self {
        self.act_ns(at_ms.saturating_mul(NS_PER_MS), action)
    }

    pub(crate) fn act_ns(mut self, at_ns: u64, action: Action) -> Self {
        self.steps.push_back(Step { at_ns, action, tokens: 0, last: false });
        self
    }
}

/// The end of a chunked body.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Bytes framed as one HTTP chunk; nothing for nothing.
pub(crate) fn http_chunk(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let size = format!("{:x}\r\n", bytes.len());
    [size.as_bytes(), bytes, b"\r\n"].concat()
}

/// Head of an answer of known length. `more` holds further header lines, each
/// with its line end.
pub(crate) fn whole_head(status: u16, content_type: &str, length: usize, more: &str) -> String {
    let reason = reason_phrase(status);
    format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n{more}\r\n"
    )
}

/// The usual words for the statuses that occur here.
pub(crate) fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Other",
    }
}

/// Steps under way: a script with its absolute start.
pub struct Play {
    /// CLOCK_MONOTONIC nanoseconds from which the steps' deadlines count.
    pub start_ns: u64,
    /// What is sent.
    pub steps: Steps,
    /// Name for the truth log; none when the answer has no tokens. A play that
    /// continues an answer keeps the name of its beginning.
    pub truth_id: Option<String>,
    /// True when a later play continues the same answer: the answer is not
    /// over when these steps are.
    pub more: bool,
}

impl Play {
    /// A script as a whole answer, without tokens.
    pub fn of(script: Script, start_ns: u64) -> Self {
        Self { start_ns, steps: script.into_steps(), truth_id: None, more: false }
    }
}

/// Bytes of an answer under way that are due: a step of an answer whose steps are
/// not known in advance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The connection that it is for.
    pub connection: u64,
    /// Written in one system call.
    pub bytes: Vec<u8>,
    /// Output tokens in the bytes, for the truth log: the instant at which they
    /// were due (CLOCK_MONOTONIC nanoseconds), and how many.
    pub tokens: Vec<(u64, u32)>,
    /// True for what ends the answer.
    pub last: bool,
    /// How the connection ends with it; none where it can be used again.
    pub breaks: Option<Break>,
}

/// How an answer that is cut short ends its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Our direction ends (FIN) once all bytes are with the kernel.
    Close,
    /// The connection is cut (RST).
    Reset,
}

impl Piece {
    /// Makes it empty and keeps its memory.
    pub fn clear(&mut self) {
        self.connection = 0;
        self.bytes.clear();
        self.tokens.clear();
        self.last = false;
        self.breaks = None;
    }
}

/// Who decides what is answered. All of it runs on the server's one thread,
/// between deadlines, so it must be quick.
pub trait Respond: Send {
    /// What is sent to a fresh connection before any request; usually nothing.
    fn greet(&mut self, connection: u64) -> Option<Script> {
        let _ = connection;
        None
    }

    /// The answer to a request, or its beginning.
    fn answer(&mut self, request: &Request) -> Play;

    /// When [`Self::wake`] wants to be called, on the monotonic clock.
    fn wake_ns(&self) -> Option<u64> {
        None
    }

    /// Continues answers that were begun with `more`: connection and play.
    fn wake(&mut self, now_ns: u64) -> Vec<(u64, Play)> {
        let _ = now_ns;
        Vec::new()
    }

    /// Fills `piece`, which is empty, with the next bytes that are due, of an
    /// answer that was begun with `more`; false when nothing is due. It is asked
    /// again and again from the instant of [`Self::wake_ns`] on, with other work
    /// in between, and what it gives is written at once.
    fn pour(&mut self, now_ns: u64, piece: &mut Piece) -> bool {
        let _ = (now_ns, piece);
        false
    }

    /// The client of an unfinished answer went away.
    fn left(&mut self, connection: u64, now_ns: u64) {
        let _ = (connection, now_ns);
    }
}

/// A function from request to script answers requests.
impl<F: FnMut(&Request) -> Script + Send> Respond for F {
    fn answer(&mut self, request: &Request) -> Play {
        Play::of(self(request), request.arrival_ns)
    }
}

/// Scripts by path. The first route whose prefix fits wins; without one the
/// answer is 404.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    greeting: Option<Script>,
    table: Vec<Route>,
}

#[derive(Clone, Debug)]
struct Route {
    prefix: String,
    scripts: Vec<Script>,
}

impl Routes {
    /// No routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// What every fresh connection gets before it has asked anything: bytes
    /// that are no HTTP, a close, silence.
    #[must_use]
    pub fn greet(mut self, script: Script) -> Self {
        self.greeting = Some(script);
        self
    }

    /// Answers requests whose target starts with `prefix`.
    #[must_use]
    pub fn on(mut self, prefix: &str, script: Script) -> Self {
        self.table.push(Route { prefix: prefix.to_owned(), scripts: vec![script] });
        self
    }

    /// Answers a further request on the same connection differently: the n-th
    /// script belongs to the connection's n-th request, the last one to all
    /// after it. So a server is written that drops a connection exactly when
    /// it is reused. Belongs to the route before it.
    #[must_use]
    pub fn then(mut self, script: Script) -> Self {
        match self.table.last_mut() {
            Some(route) => route.scripts.push(script),
            None => return self.on("/", script),
        }
        self
    }
}

impl Respond for Routes {
    fn greet(&mut self, _: u64) -> Option<Script> {
        self.greeting.clone()
    }

    fn answer(&mut self, request: &Request) -> Play {
        let route = self.table.iter().find(|route| request.target.starts_with(&route.prefix));
        let script = route.and_then(|route| {
            let nth = (request.on_connection as usize).min(route.scripts.len() - 1);
            route.scripts.get(nth).cloned()
        });
        let script = script.unwrap_or_else(|| Script::whole(404, "text/plain", ""));
        Play::of(script, request.arrival_ns)
    }
}
