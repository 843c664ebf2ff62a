//! Requests as the server reads them: HTTP/1.1 heads and bodies from bytes in
//! any cut, in bounded memory.

use crate::script::Script;

/// One request that was complete at the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method as sent.
    pub method: String,
    /// Request target as sent: path with query.
    pub target: String,
    /// Header names and values in order, as sent; bytes that are not UTF-8 are
    /// replaced.
    pub headers: Vec<(String, String)>,
    /// Body without its framing.
    pub body: Vec<u8>,
    /// CLOCK_MONOTONIC nanoseconds when its last byte reached this host.
    pub arrival_ns: u64,
    /// Number of the connection, from 0, in the order of acceptance.
    pub connection: u64,
    /// Position on its connection, from 0: above 0 the connection was reused.
    pub on_connection: u32,
    /// True when the client wants the connection kept.
    pub keep_alive: bool,
    /// True for HTTP/1.0, which knows no chunked answers.
    pub http_1_0: bool,
}

impl Request {
    /// The first header of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let same = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
        self.headers.iter().find(same).map(|(_, value)| value.as_str())
    }

    /// The target without its query.
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// What a request may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of request line and headers; more is answered with 431.
    pub head_bytes: usize,
    /// Bytes of body; more is answered with 413.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { head_bytes: 32 << 10, body_bytes: 64 << 20 }
    }
}

/// Most header fields in one head; more are answered with 431.
const MOST_HEADERS: usize = 128;
/// Longest line that gives a chunk's size.
const LONGEST_SIZE_LINE: usize = 1 << 10;

/// Why a request was not understood. The connection cannot be used any more,
/// because where the next request starts is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
}

impl Refusal {
    const fn new(status: u16, reason: &'static str) -> Self {
        Self { status, reason }
    }

    /// The answer to it, which ends the connection.
    pub(crate) fn script(self) -> Script {
        let body = serde_json::json!({ "error": {
            "message": self.reason,
            "type": "BadRequestError",
            "param": null,
            "code": self.status,
        }});
        Script::json(self.status, &body).close(0)
    }
}

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More bytes are needed.
    More,
    /// More bytes are needed and the client waits for `100 Continue`.
    Continue,
    /// A whole request. Arrival and connection are for the caller to fill in.
    Whole(Request),
}

#[derive(Debug)]
enum Phase {
    Head,
    Sized { request: Request, left: usize },
    Chunked { request: Request, part: Part },
}

#[derive(Debug)]
enum Part {
    Size,
    Data { left: usize },
    DataEnd,
    Trailer { bytes: usize },
}

/// Takes bytes in any cut and gives requests.
#[derive(Debug)]
pub(crate) struct RequestReader {
    limits: Limits,
    buffer: Vec<u8>,
    /// No head ends before this position, so it is not searched again: a head
    /// that comes byte by byte must not cost its length squared.
    searched: usize,
    phase: Phase,
    continue_owed: bool,
}

impl RequestReader {
    pub(crate) fn new(limits: Limits) -> Self {
        let phase = Phase::Head;
        Self { limits, buffer: Vec::new(), searched: 0, phase, continue_owed: false }
    }

    /// True between requests: nothing of the next one has come.
    pub(crate) fn is_idle(&self) -> bool {
        self.buffer.is_empty() && matches!(self.phase, Phase::Head)
    }

    /// Adds bytes. Call [`Self::advance`] before adding more: that is where
    /// the limits are enforced.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Goes as far as the bytes allow, at most to the end of one request.
    pub(crate) fn advance(&mut self) -> Result<Progress, Refusal> {
        if matches!(self.phase, Phase::Head) {
            match self.head()? {
                Some(phase) => self.phase = phase,
                None => return Ok(Progress::More),
            }
        }
        let mut consumed = 0;
        let whole = match &mut self.phase {
            Phase::Head => false,
            Phase::Sized { request, left } => {
                consumed = self.buffer.len().min(*left);
                request.body.extend_from_slice(&self.buffer[..consumed]);
                *left -= consumed;
                *left == 0
            }
            Phase::Chunked { request, part } => {
                read_chunks(&self.buffer, &mut consumed, &mut request.body, part, self.limits)?
            }
        };
        self.buffer.drain(..consumed);
        if !whole {
            let owed = std::mem::take(&mut self.continue_owed);
            return Ok(if owed { Progress::Continue } else { Progress::More });
        }
        self.continue_owed = false;
        self.searched = 0;
        match std::mem::replace(&mut self.phase, Phase::Head) {
            Phase::Sized { request, .. } | Phase::Chunked { request, .. } => {
                Ok(Progress::Whole(request))
            }
            Phase::Head => Ok(Progress::More),
        }
    }

    /// Parses the head once its last line is there.
    fn head(&mut self) -> Result<Option<Phase>, Refusal> {
        const TOO_LARGE: Refusal = Refusal::new(431, "the request head is too large");
        while let Some(end) = end_of_head(&self.buffer, self.searched) {
            if end > self.limits.head_bytes {
                return Err(TOO_LARGE);
            }
            self.searched = end;
            let mut fields = [httparse::EMPTY_HEADER; MOST_HEADERS];
            let mut parsed = httparse::Request::new(&mut fields);
            match parsed.parse(&self.buffer[..end]) {
                Ok(httparse::Status::Complete(length)) => {
                    let request = taken_over(&parsed);
                    let phase = framing(request, self.limits)?;
                    let expects = |(name, value): &(String, String)| {
                        name.eq_ignore_ascii_case("expect")
                            && value.eq_ignore_ascii_case("100-continue")
                    };
                    self.continue_owed = match &phase {
                        Phase::Sized { request, .. } | Phase::Chunked { request, .. } => {
                            request.headers.iter().any(expects)
                        }
                        Phase::Head => false,
                    };
                    self.buffer.drain(..length);
                    return Ok(Some(phase));
                }
                // Empty lines before the request line are allowed.
                Ok(httparse::Status::Partial) => {}
                Err(httparse::Error::TooManyHeaders) => {
                    return Err(Refusal::new(431, "too many header fields"));
                }
                Err(httparse::Error::Version) => {
                    return Err(Refusal::new(505, "only HTTP/1.1 and HTTP/1.0 are spoken here"));
                }
                Err(_) => return Err(Refusal::new(400, "the request head breaks HTTP/1.1")),
            }
        }
        if self.buffer.len() > self.limits.head_bytes {
            return Err(TOO_LARGE);
        }
        // The end may be cut within its last three bytes.
        self.searched = self.searched.max(self.buffer.len().saturating_sub(3));
        Ok(None)
    }
}

/// Position after the first empty line at or after `from`; lines may end with
/// LF or CRLF.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    (from..bytes.len()).find_map(|at| match &bytes[at..] {
        [b'\n', b'\n', ..] => Some(at + 2),
        [b'\n', b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}

fn taken_over(parsed: &httparse::Request<'_, '_>) -> Request {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers: Vec<_> =
        parsed.headers.iter().map(|field| (field.name.to_owned(), text(field.value))).collect();
    let http_1_0 = parsed.version == Some(0);
    let connection_says = |word: &str| {
        headers.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("connection")
                && value.split(',').any(|item| item.trim().eq_ignore_ascii_case(word))
        })
    };
    let keep_alive =
        if http_1_0 { connection_says("keep-alive") } else { !connection_says("close") };
    Request {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
        arrival_ns: 0,
        connection: 0,
        on_connection: 0,
        keep_alive,
        http_1_0,
    }
}

/// How the body is framed. Two framings at once are refused: that is how
/// requests are smuggled.
fn framing(request: Request, limits: Limits) -> Result<Phase, Refusal> {
    let values = |name: &str| -> Vec<&str> {
        let named = request.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.trim()).collect()
    };
    let lengths = values("content-length");
    let codings = values("transfer-encoding");
    if !codings.is_empty() {
        if !lengths.is_empty() || request.http_1_0 {
            return Err(Refusal::new(400, "transfer-encoding beside content-length or HTTP/1.0"));
        }
        if codings.len() > 1 || !codings[0].eq_ignore_ascii_case("chunked") {
            return Err(Refusal::new(501, "the only transfer coding known here is chunked"));
        }
        return Ok(Phase::Chunked { request, part: Part::Size });
    }
    let Some(&first) = lengths.first() else {
        return Ok(Phase::Sized { request, left: 0 });
    };
    if lengths.iter().any(|&other| other != first) {
        return Err(Refusal::new(400, "content-length is given twice and differs"));
    }
    if first.is_empty() || !first.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refusal::new(400, "content-length is not a number"));
    }
    // A number too large for the type is too large for the limit as well.
    match first.parse::<usize>() {
        Ok(left) if left <= limits.body_bytes => Ok(Phase::Sized { request, left }),
        _ => Err(Refusal::new(413, "the request body is too large")),
    }
}

/// Decodes chunks from `buffer[*at..]` into `body`; true at the end of the body.
fn read_chunks(
    buffer: &[u8],
    at: &mut usize,
    body: &mut Vec<u8>,
    part: &mut Part,
    limits: Limits,
) -> Result<bool, Refusal> {
    loop {
        let rest = &buffer[*at..];
        match part {
            Part::Size => {
                let Some(line) = line_of(rest, LONGEST_SIZE_LINE)? else { return Ok(false) };
                let size = chunk_size(line)?;
                if size > limits.body_bytes.saturating_sub(body.len()) {
                    return Err(Refusal::new(413, "the request body is too large"));
                }
                *at += line.len() + 1;
                *part =
                    if size == 0 { Part::Trailer { bytes: 0 } } else { Part::Data { left: size } };
            }
            Part::Data { left } => {
                let take = rest.len().min(*left);
                body.extend_from_slice(&rest[..take]);
                *at += take;
                *left -= take;
                if *left > 0 {
                    return Ok(false);
                }
                *part = Part::DataEnd;
            }
            Part::DataEnd => match rest {
                [b'\r', b'\n', ..] => {
                    *at += 2;
                    *part = Part::Size;
                }
                [] | [b'\r'] => return Ok(false),
                _ => return Err(Refusal::new(400, "a chunk does not end where it should")),
            },
            Part::Trailer { bytes } => {
                let Some(line) = line_of(rest, limits.head_bytes)? else { return Ok(false) };
                *at += line.len() + 1;
                *bytes += line.len() + 1;
                if *bytes > limits.head_bytes {
                    return Err(Refusal::new(431, "the trailer is too large"));
                }
                if line.is_empty() || line == b"\r" {
                    return Ok(true);
                }
            }
        }
    }
}

/// The bytes up to the first line feed, without it; none when it has not come.
fn line_of(bytes: &[u8], longest: usize) -> Result<Option<&[u8]>, Refusal> {
    let window = &bytes[..bytes.len().min(longest + 1)];
    match window.iter().position(|&byte| byte == b'\n') {
        Some(end) => Ok(Some(&bytes[..end])),
        None if bytes.len() > longest => Err(Refusal::new(400, "a line of the body is too long")),
        None => Ok(None),
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, Refusal> {
    const BAD: Refusal = Refusal::new(400, "a chunk size is not a hexadecimal number");
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    if digits.is_empty() || digits.len() > 15 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(BAD);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| BAD)?;
    usize::from_str_radix(digits, 16).map_err(|_| BAD)
}

#[cfg(test)]
mod tests;
