//! HTTP/1.1 responses, decoded as the bytes arrive: bytes in, head and body
//! slices out.
//!
//! The decoder is total: any bytes give parts or an [`Error`], in memory
//! bounded by the head limit. The body is lent, never collected.

use flate2::{Decompress, FlushDecompress, Status};
use memchr::{memchr, memmem};

/// Why a response cannot be read further.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The head does not end within the limit.
    #[error("the response head is longer than {0} bytes")]
    HeadTooLarge(usize),
    /// Not a response of HTTP/1: another protocol, or TLS on a plain port.
    #[error("not an HTTP/1 response: {0}")]
    Head(String),
    /// Content-Length is not a number, or is given twice with two values.
    #[error("Content-Length is not one number")]
    ContentLength,
    /// A transfer coding other than chunked.
    #[error("unknown transfer coding {0:?}")]
    TransferCoding(String),
    /// The chunk framing is broken.
    #[error("the chunk framing is broken: {0}")]
    Chunk(&'static str),
    /// Compressed data is broken.
    #[error("the compressed body is broken")]
    Compressed,
    /// A content coding that is not decoded here.
    #[error("unknown content coding {0:?}")]
    UnknownCoding(String),
}

/// What a response head says that matters to a measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Status code; 1xx heads are skipped.
    pub status: u16,
    /// Content-Type as sent.
    pub content_type: Option<String>,
    /// Content-Encoding, when it is not `identity`.
    pub content_encoding: Option<String>,
    /// Location of a redirect.
    pub location: Option<String>,
    /// Retry-After as sent.
    pub retry_after: Option<String>,
    /// The instance that answered, from the first header of
    /// [`SERVED_BY_HEADERS`] that is present.
    pub served_by: Option<String>,
    /// True when the connection ends with this response.
    pub close: bool,
}

impl Head {
    /// A head as it would be for a plain body, for bodies that come without
    /// HTTP/1 framing.
    pub fn new(status: u16, content_type: Option<&str>) -> Self {
        Self { status, content_type: content_type.map(str::to_owned), ..Self::default() }
    }

    /// The media type in lower case, without parameters; empty when absent.
    pub fn media_type(&self) -> String {
        let value = self.content_type.as_deref().unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
    }
}

/// Headers in which gateways name the instance that answered, best first: the
/// endpoint picker's own first, then what proxies and servers use.
pub const SERVED_BY_HEADERS: &[&str] = &[
    "x-gateway-destination-endpoint-served",
    "x-served-by",
    "x-backend",
    "x-backend-server",
    "x-backend-id",
    "x-upstream-addr",
    "x-instance-id",
    "x-worker-id",
];

/// Longest header value that is kept: nothing of interest is longer.
const VALUE_LIMIT: usize = 1024;

/// Most headers in a head; the same bound as in other clients.
const HEADERS_LIMIT: usize = 128;

/// Longest chunk-size line, extensions included.
const CHUNK_LINE_LIMIT: usize = 4096;

/// Something that came out of the bytes.
#[derive(Debug)]
pub enum Part<'a> {
    /// The head is complete.
    Head(&'a Head),
    /// A piece of the body, without its framing and as it was compressed.
    Body(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    /// Content-Length: bytes still to come.
    Counted(u64),
    UntilClose,
    Chunk(Chunk),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// In the hexadecimal size: its value and the digits so far.
    Size(u64, u8),
    /// Behind the size, up to the end of the line.
    Extension(u64, usize),
    Data(u64),
    /// Behind the data, before its line end. True after the CR.
    DataEnd(bool),
    /// In the trailers: bytes of the current line without its end, and bytes
    /// of all of them.
    Trailer(usize, usize),
}

/// The decoder of one response.
#[derive(Clone, Debug)]
pub struct Decoder {
    head_limit: usize,
    head_bytes: usize,
    head: Vec<u8>,
    state: State,
    keep_alive: bool,
    excess: bool,
    failed: Option<Box<Error>>,
}

impl Decoder {
    /// A decoder for one response whose head, and trailers, may have
    /// `head_limit` bytes.
    pub fn new(head_limit: usize) -> Self {
        Self {
            head_limit,
            head_bytes: 0,
            head: Vec::new(),
            state: State::Head,
            keep_alive: false,
            excess: false,
            failed: None,
        }
    }

    /// True when the response has been received to its last byte.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// True when only the end of the connection ends the body.
    pub fn ends_at_close(&self) -> bool {
        self.state == State::UntilClose
    }

    /// True when the connection may carry another request: all of the response
    /// is here, nothing came behind it and the server did not say close.
    pub fn is_reusable(&self) -> bool {
        self.is_done() && self.keep_alive && !self.excess && self.failed.is_none()
    }

    /// Takes the bytes of one read and hands what they contain to `sink`. After
    /// an error every further call gives the same error. Bytes behind the end
    /// are dropped and make the connection unfit for reuse.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Part<'_>)) -> Result<(), Error> {
        if let Some(failed) = &self.failed {
            return Err(Error::clone(failed));
        }
        let result = self.feed_parts(bytes, &mut sink);
        if let Err(error) = &result {
            self.failed = Some(Box::new(error.clone()));
        }
        result
    }

    fn feed_parts(
        &mut self,
        mut rest: &[u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<(), Error> {
        while !rest.is_empty() {
            match self.state {
                State::Head => rest = self.take_head(rest, sink)?,
                State::UntilClose => {
                    sink(Part::Body(rest));
                    break;
                }
                State::Counted(left) => {
                    let (data, behind) = split_at_most(rest, left);
                    sink(Part::Body(data));
                    let left = left - data.len() as u64;
                    self.state = if left == 0 { State::Done } else { State::Counted(left) };
                    rest = behind;
                }
                State::Chunk(chunk) => {
                    // The usual chunk lies whole in the read and leaves the
                    // state as it was.
                    while let Some((data, behind)) = whole_chunk(chunk, rest) {
                        sink(Part::Body(data));
                        rest = behind;
                    }
                    if !rest.is_empty() {
                        rest = self.take_chunk(chunk, rest, sink)?;
                    }
                }
                State::Done => {
                    self.excess = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Collects the head; gives what lies behind it.
    fn take_head<'b>(
        &mut self,
        mut rest: &'b [u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<&'b [u8], Error> {
        if self.head.is_empty() {
            // Some servers put an empty line before the status line.
            let skipped = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            self.head_bytes += skipped;
            rest = &rest[skipped..];
            if self.head_bytes > self.head_limit {
                return Err(Error::HeadTooLarge(self.head_limit));
            }
        }
        let old = self.head.len();
        let room = self.head_limit.saturating_sub(self.head_bytes);
        let taken = &rest[..rest.len().min(room)];
        // The usual head lies whole in one read and is not copied.
        let end = if old == 0 {
            blank_line(taken)
        } else {
            self.head.extend_from_slice(taken);
            // The blank line may be cut, so look a few bytes back.
            let from = old.saturating_sub(3);
            blank_line(&self.head[from..]).map(|end| from + end)
        };
        let Some(end) = end else {
            self.head_bytes += taken.len();
            if taken.len() < rest.len() {
                return Err(Error::HeadTooLarge(self.head_limit));
            }
            if old == 0 {
                self.head.extend_from_slice(taken);
            }
            return Ok(b"");
        };
        self.head_bytes += end - old;
        let (head, framing) =
            parse_head(if old == 0 { taken } else { &self.head }.split_at(end).0)?;
        // It came once and is not needed again: an open answer keeps no room
        // for it.
        self.head = Vec::new();
        if let Some(framing) = framing {
            self.keep_alive = !head.close && framing != State::UntilClose;
            self.state = framing;
            self.head_bytes = 0;
            sink(Part::Head(&head));
        }
        Ok(&rest[end - old..])
    }

    fn take_chunk<'b>(
        &mut self,
        chunk: Chunk,
        rest: &'b [u8],
        sink: &mut impl FnMut(Part<'_>),
    ) -> Result<&'b [u8], Error> {
        let (byte, behind) = (rest[0], &rest[1..]);
        let (next, behind) = match chunk {
            Chunk::Size(size, digits) => (size_digit(size, digits, byte)?, behind),
            Chunk::Extension(size, length) => match memchr(b'\n', rest) {
                Some(end) if length + end <= CHUNK_LINE_LIMIT => {
                    (after_size_line(size), &rest[end + 1..])
                }
                None if length + rest.len() <= CHUNK_LINE_LIMIT => {
                    (Chunk::Extension(size, length + rest.len()), &b""[..])
                }
                _ => return Err(Error::Chunk("the size line does not end")),
            },
            Chunk::Data(left) => {
                let (data, behind) = split_at_most(rest, left);
                sink(Part::Body(data));
                let left = left - data.len() as u64;
                let next = if left == 0 { Chunk::DataEnd(false) } else { Chunk::Data(left) };
                (next, behind)
            }
            Chunk::DataEnd(after_cr) => match byte {
                b'\r' if !after_cr => (Chunk::DataEnd(true), behind),
                b'\n' => (Chunk::Size(0, 0), behind),
                _ => return Err(Error::Chunk("the data does not end where its size says")),
            },
            Chunk::Trailer(line, all) => {
                if byte == b'\n' && line == 0 {
                    self.state = State::Done;
                    return Ok(behind);
                }
                if all >= self.head_limit {
                    return Err(Error::HeadTooLarge(self.head_limit));
                }
                let line = match byte {
                    b'\n' => 0,
                    b'\r' => line,
                    _ => line + 1,
                };
                (Chunk::Trailer(line, all + 1), behind)
            }
        };
        self.state = State::Chunk(next);
        Ok(behind)
    }
}

/// The data of a chunk that lies in `bytes` from its size to its line end,
/// and what lies behind it. Anything less usual is `None`.
#[inline]
fn whole_chunk(chunk: Chunk, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if chunk != Chunk::Size(0, 0) {
        return None;
    }
    let mut size = 0usize;
    let mut digits = 0;
    let behind = loop {
        let digit = match *bytes.get(digits)? {
            byte @ b'0'..=b'9' => byte - b'0',
            byte @ b'a'..=b'f' => byte - b'a' + 10,
            byte @ b'A'..=b'F' => byte - b'A' + 10,
            b'\r' if size > 0 => break bytes[digits..].strip_prefix(b"\r\n")?,
            _ => return None,
        };
        size = size << 4 | usize::from(digit);
        digits += 1;
        if digits > WHOLE_CHUNK_DIGITS {
            return None;
        }
    };
    let (data, behind) = behind.split_at_checked(size)?;
    Some((data, behind.strip_prefix(b"\r\n")?))
}

/// Most digits in the size of a chunk that can lie whole in a read; more are
/// left to the careful way.
const WHOLE_CHUNK_DIGITS: usize = 7;

fn size_digit(size: u64, digits: u8, byte: u8) -> Result<Chunk, Error> {
    let digit = match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ if digits == 0 => return Err(Error::Chunk("a chunk does not start with its size")),
        b'\n' => return Ok(after_size_line(size)),
        b'\r' | b';' | b' ' | b'\t' => return Ok(Chunk::Extension(size, 0)),
        _ => return Err(Error::Chunk("a chunk size is not hexadecimal")),
    };
    if digits >= 16 {
        return Err(Error::Chunk("a chunk size has more than 16 digits"));
    }
    Ok(Chunk::Size(size << 4 | u64::from(digit), digits + 1))
}

fn after_size_line(size: u64) -> Chunk {
    if size == 0 { Chunk::Trailer(0, 0) } else { Chunk::Data(size) }
}

fn split_at_most(bytes: &[u8], most: u64) -> (&[u8], &[u8]) {
    let most = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
    bytes.split_at(most)
}

/// The offset just behind the first blank line.
fn blank_line(bytes: &[u8]) -> Option<usize> {
    let crlf = memmem::find(bytes, b"\n\r\n").map(|at| at + 3);
    let lf = memmem::find(bytes, b"\n\n").map(|at| at + 2);
    match (crlf, lf) {
        (Some(crlf), Some(lf)) => Some(crlf.min(lf)),
        (one, other) => one.or(other),
    }
}

/// Parses a whole head. The framing is `None` for an interim (1xx) head.
fn parse_head(bytes: &[u8]) -> Result<(Head, Option<State>), Error> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut response = httparse::Response::new(&mut headers);
    let mut config = httparse::ParserConfig::default();
    config
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true);
    match config.parse_response(&mut response, bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => return Err(Error::Head("no status line".to_owned())),
        Err(error) => return Err(Error::Head(error.to_string())),
    }
    let status = response.code.unwrap_or_default();
    if status == 101 {
        return Err(Error::Head("the server switched to another protocol".to_owned()));
    }
    let is_http_1_0 = response.version == Some(0);
    let mut head = Head { status, close: is_http_1_0, ..Head::default() };
    let mut facts = Facts { length: None, coding: None, served_by_rank: usize::MAX, is_http_1_0 };
    for header in response.headers.iter() {
        note_header(&mut head, &mut facts, header)?;
    }
    let framing = framing(&mut head, facts.length, facts.coding.as_deref())?;
    Ok((head, framing))
}

/// What headers say that is needed only until the framing is known.
struct Facts {
    length: Option<u64>,
    coding: Option<String>,
    served_by_rank: usize,
    is_http_1_0: bool,
}

fn note_header(
    head: &mut Head,
    facts: &mut Facts,
    header: &httparse::Header<'_>,
) -> Result<(), Error> {
    let value = header.value.trim_ascii();
    let text = || String::from_utf8_lossy(&value[..value.len().min(VALUE_LIMIT)]).into_owned();
    match header.name.to_ascii_lowercase().as_str() {
        "content-type" => head.content_type = Some(text()),
        "content-encoding" if !value.eq_ignore_ascii_case(b"identity") => {
            head.content_encoding = Some(text());
        }
        "location" => head.location = Some(text()),
        "retry-after" => head.retry_after = Some(text()),
        "connection" => {
            for option in text().to_ascii_lowercase().split(',').map(str::trim) {
                match option {
                    "close" => head.close = true,
                    "keep-alive" if facts.is_http_1_0 => head.close = false,
                    _ => {}
                }
            }
        }
        "content-length" => {
            let new = content_length(value)?;
            if facts.length.is_some_and(|old| old != new) {
                return Err(Error::ContentLength);
            }
            facts.length = Some(new);
        }
        "transfer-encoding" => facts.coding = Some(text()),
        name => {
            let rank = SERVED_BY_HEADERS.iter().position(|known| *known == name);
            if let Some(rank) = rank.filter(|rank| *rank < facts.served_by_rank) {
                facts.served_by_rank = rank;
                head.served_by = Some(text());
            }
        }
    }
    Ok(())
}

/// Body framing by RFC 9112, section 6.3.
fn framing(
    head: &mut Head,
    length: Option<u64>,
    coding: Option<&str>,
) -> Result<Option<State>, Error> {
    let coding = coding.filter(|coding| !coding.eq_ignore_ascii_case("identity"));
    Ok(Some(match (head.status, coding, length) {
        (100..=199, ..) => return Ok(None),
        (204 | 304, ..) => State::Done,
        (_, Some(coding), length) => {
            if !coding.eq_ignore_ascii_case("chunked") {
                return Err(Error::TransferCoding(coding.to_owned()));
            }
            // Both framings at once is how requests are smuggled: the answer
            // is readable, the connection is not trusted any more.
            head.close |= length.is_some();
            State::Chunk(Chunk::Size(0, 0))
        }
        (_, None, Some(0)) => State::Done,
        (_, None, Some(length)) => State::Counted(length),
        (_, None, None) => State::UntilClose,
    }))
}

/// One length, or the same length several times in one header.
fn content_length(value: &[u8]) -> Result<u64, Error> {
    let text = std::str::from_utf8(value).map_err(|_| Error::ContentLength)?;
    let mut lengths = text.split(',').map(|part| {
        let part = part.trim();
        let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| part.parse::<u64>().ok()).flatten().ok_or(Error::ContentLength)
    });
    let first = lengths.next().ok_or(Error::ContentLength)??;
    for other in lengths {
        if other? != first {
            return Err(Error::ContentLength);
        }
    }
    Ok(first)
}

/// Undoes a content coding as the bytes arrive: what one flush of the server
/// made readable comes out of the call that brought its last byte.
#[derive(Debug)]
pub struct Decompressor {
    wrapping: Wrapping,
    inflate: Decompress,
    output: Vec<u8>,
}

#[derive(Debug)]
enum Wrapping {
    /// In a gzip header: where, and the flags once known.
    GzipHeader(GzipHeader),
    /// `deflate`, before the two bytes that tell a zlib header from none.
    DeflateStart(Option<u8>),
    /// In the compressed data; true for gzip, whose trailer and next member
    /// may follow.
    Data(bool),
    /// Bytes left of a gzip trailer. The checksum in it is not verified: TCP
    /// has its own, and a wrong text is not what is measured here.
    GzipTrailer(u8),
    /// Behind the end of a zlib or raw stream.
    Over,
}

#[derive(Debug, Clone, Copy)]
struct GzipHeader {
    /// Bytes of the fixed part that were seen, up to 10.
    fixed: u8,
    /// Flags of the optional fields that are still to come.
    flags: u8,
    /// The extra field: bytes of its length seen, then bytes left.
    extra_length_bytes: u8,
    extra_left: u16,
    checksum_left: u8,
}

const GZIP_CHECKSUM: u8 = 1 << 1;
const GZIP_EXTRA: u8 = 1 << 2;
const GZIP_NAME: u8 = 1 << 3;
const GZIP_COMMENT: u8 = 1 << 4;

impl GzipHeader {
    const START: Self =
        Self { fixed: 0, flags: 0, extra_length_bytes: 0, extra_left: 0, checksum_left: 2 };

    /// Takes one byte; true when it was the header's last. Every optional
    /// field is skipped byte by byte, so that its length costs no memory.
    fn take(&mut self, byte: u8) -> Result<bool, Error> {
        if self.fixed < 10 {
            match (self.fixed, byte) {
                (0, 0x1f) | (1, 0x8b) | (2, 8) | (4..10, _) => {}
                (3, flags) => self.flags = flags,
                _ => return Err(Error::Compressed),
            }
            self.fixed += 1;
            return Ok(self.fixed == 10 && self.is_over());
        }
        if self.flags & GZIP_EXTRA != 0 {
            if self.extra_length_bytes < 2 {
                self.extra_left |= u16::from(byte) << (8 * self.extra_length_bytes);
                self.extra_length_bytes += 1;
            } else {
                self.extra_left -= 1;
            }
            if self.extra_length_bytes == 2 && self.extra_left == 0 {
                self.flags &= !GZIP_EXTRA;
            }
        } else if self.flags & GZIP_NAME != 0 {
            if byte == 0 {
                self.flags &= !GZIP_NAME;
            }
        } else if self.flags & GZIP_COMMENT != 0 {
            if byte == 0 {
                self.flags &= !GZIP_COMMENT;
            }
        } else {
            self.checksum_left -= 1;
            if self.checksum_left == 0 {
                self.flags &= !GZIP_CHECKSUM;
            }
        }
        Ok(self.is_over())
    }

    fn is_over(self) -> bool {
        self.flags & (GZIP_CHECKSUM | GZIP_EXTRA | GZIP_NAME | GZIP_COMMENT) == 0
    }
}

/// Output of one step of inflation. A compressed byte can become a thousand,
/// so the output is handed on in pieces of this size.
const OUTPUT_BYTES: usize = 16 << 10;

impl Decompressor {
    /// A decompressor for a Content-Encoding: gzip and deflate are known.
    pub fn new(coding: &str) -> Result<Self, Error> {
        let coding = coding.trim().to_ascii_lowercase();
        let wrapping = match coding.as_str() {
            "gzip" | "x-gzip" => Wrapping::GzipHeader(GzipHeader::START),
            "deflate" => Wrapping::DeflateStart(None),
            _ => return Err(Error::UnknownCoding(coding)),
        };
        Ok(Self { wrapping, inflate: Decompress::new(false), output: vec![0; OUTPUT_BYTES] })
    }

    /// Takes compressed bytes and hands on all that they make readable.
    pub fn feed(&mut self, mut bytes: &[u8], mut sink: impl FnMut(&[u8])) -> Result<(), Error> {
        while let Some((&byte, behind)) = bytes.split_first() {
            match &mut self.wrapping {
                Wrapping::GzipHeader(header) => {
                    if header.take(byte)? {
                        self.inflate.reset(false);
                        self.wrapping = Wrapping::Data(true);
                    }
                    bytes = behind;
                }
                Wrapping::DeflateStart(None) => {
                    self.wrapping = Wrapping::DeflateStart(Some(byte));
                    bytes = behind;
                }
                Wrapping::DeflateStart(Some(first)) => {
                    // RFC 9110 means zlib by `deflate`, some servers send the
                    // bare stream. The zlib header is a multiple of 31.
                    let first = *first;
                    let header = u16::from(first) << 8 | u16::from(byte);
                    let zlib = first & 0x0f == 8 && header % 31 == 0;
                    self.inflate.reset(zlib);
                    self.wrapping = Wrapping::Data(false);
                    self.inflate_some(&[first], &mut sink)?;
                }
                Wrapping::Data(_) => {
                    let used = self.inflate_some(bytes, &mut sink)?;
                    bytes = &bytes[used..];
                }
                Wrapping::GzipTrailer(1) => {
                    self.wrapping = Wrapping::GzipHeader(GzipHeader::START);
                    bytes = behind;
                }
                Wrapping::GzipTrailer(left) => {
                    *left -= 1;
                    bytes = behind;
                }
                Wrapping::Over => return Err(Error::Compressed),
            }
        }
        Ok(())
    }

    /// Inflates until the input is used up or the stream ends; gives the
    /// number of bytes used.
    fn inflate_some(&mut self, bytes: &[u8], sink: &mut impl FnMut(&[u8])) -> Result<usize, Error> {
        let mut used = 0;
        loop {
            let (in_before, out_before) = (self.inflate.total_in(), self.inflate.total_out());
            let status =
                self.inflate.decompress(&bytes[used..], &mut self.output, FlushDecompress::None);
            let took = (self.inflate.total_in() - in_before) as usize;
            let made = (self.inflate.total_out() - out_before) as usize;
            used += took;
            if made > 0 {
                // What came before the damage is as good as without it.
                sink(&self.output[..made]);
            }
            let status = status.map_err(|_| Error::Compressed)?;
            if status == Status::StreamEnd {
                let gzip = matches!(self.wrapping, Wrapping::Data(true));
                self.wrapping = if gzip { Wrapping::GzipTrailer(8) } else { Wrapping::Over };
                return Ok(used);
            }
            // A full output buffer may hide more; anything else means that
            // the input is used up, or that it cannot go on.
            if made < self.output.len() {
                return if used == bytes.len() { Ok(used) } else { stuck(took, made, used) };
            }
        }
    }
}

/// The inflater left input behind without filling its output. It may do so
/// once for a block border; without any progress the data is broken.
fn stuck(took: usize, made: usize, used: usize) -> Result<usize, Error> {
    if took == 0 && made == 0 { Err(Error::Compressed) } else { Ok(used) }
}

#[cfg(test)]
mod tests;
