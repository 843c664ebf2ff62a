//! Server-sent events, decoded as the bytes arrive.
//!
//! Lines end at CR, LF or CRLF and at nothing else, so that U+2028 inside a
//! JSON string stays text. A CRLF may be cut between two reads: the line ends
//! at the CR, because what matters here is when an event was there, and at the
//! CR it was. Everything works on bytes; a character cut by a read is whole
//! again before anyone looks at it.

use memchr::{memchr, memchr2};

/// One dispatched event, lent to the sink for the length of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event:` field; empty when there was none.
    pub kind: &'a [u8],
    /// The `data:` lines, joined with LF.
    pub data: &'a [u8],
}

/// A line or an event went over its limit. The decoder takes no more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// A single line without end.
    #[error("a line is longer than {0} bytes")]
    Line(usize),
    /// The data of one event.
    #[error("an event is larger than {0} bytes")]
    Event(usize),
}

/// The mark that some gateways put before the first byte of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Strips one leading byte-order mark, which may be cut between reads.
#[derive(Debug, Default)]
pub(crate) struct LeadingMark {
    matched: u8,
    settled: bool,
}

impl LeadingMark {
    /// Splits `bytes` into what has to be given back from earlier reads
    /// (the start of a mark that turned out to be none) and the rest.
    pub(crate) fn strip<'b>(&mut self, bytes: &'b [u8]) -> (&'static [u8], &'b [u8]) {
        if self.settled {
            return (b"", bytes);
        }
        for (index, &byte) in bytes.iter().enumerate() {
            if byte != BYTE_ORDER_MARK[usize::from(self.matched)] {
                self.settled = true;
                // The matched bytes of this read are still in front of us;
                // only those of earlier reads have to be given back.
                let matched = usize::from(self.matched);
                let earlier = matched - index.min(matched);
                return (&BYTE_ORDER_MARK[..earlier], bytes);
            }
            self.matched += 1;
            if usize::from(self.matched) == BYTE_ORDER_MARK.len() {
                self.settled = true;
                return (b"", &bytes[index + 1..]);
            }
        }
        (b"", b"")
    }

    /// What has to be given back when the stream ends inside a mark.
    pub(crate) fn rest(&mut self) -> &'static [u8] {
        if self.settled {
            return b"";
        }
        self.settled = true;
        &BYTE_ORDER_MARK[..usize::from(self.matched)]
    }
}

/// What one line means.
enum Line<'b> {
    /// The end of an event.
    Blank,
    Comment,
    Data(&'b [u8]),
    Kind(&'b [u8]),
    /// `id`, `retry` and what is not known: nothing to measure.
    Other,
}

#[inline]
fn read_line(line: &[u8]) -> Line<'_> {
    // The usual line, without a search for its colon.
    if let Some(value) = line.strip_prefix(b"data:") {
        return Line::Data(value.strip_prefix(b" ").unwrap_or(value));
    }
    let (name, value) = match memchr(b':', line) {
        Some(0) => return Line::Comment,
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None if line.is_empty() => return Line::Blank,
        None => (line, &line[line.len()..]),
    };
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match name {
        b"data" => Line::Data(value),
        b"event" => Line::Kind(value),
        _ => Line::Other,
    }
}

/// The data of the event that is being read.
enum Pending<'b> {
    /// No data line yet.
    Nothing,
    /// One data line, still where it was received: the usual case costs no
    /// copy.
    Lent(&'b [u8]),
    /// Kept in the decoder's own buffer.
    Kept,
}

/// The decoder. Its memory is bounded by the two limits.
#[derive(Debug)]
#[repr(C)]
pub struct Decoder {
    /// First, because it is all that is looked at when events are of a known
    /// form: see [`Self::is_between_events`].
    between_events: bool,
    line_limit: usize,
    event_limit: usize,
    mark: LeadingMark,
    /// The last byte was a CR that ended a line: an LF now belongs to it.
    after_cr: bool,
    /// The part of a line that came in earlier reads.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    kind: Vec<u8>,
    comments: u32,
    failed: Option<TooLarge>,
}

impl Decoder {
    /// A decoder that refuses lines and events above these sizes in bytes.
    pub fn new(line_limit: usize, event_limit: usize) -> Self {
        Self {
            between_events: false,
            line_limit,
            event_limit,
            mark: LeadingMark::default(),
            after_cr: false,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            kind: Vec::new(),
            comments: 0,
            failed: None,
        }
    }

    /// Comment lines seen so far.
    pub fn comments(&self) -> u32 {
        self.comments
    }

    /// True when the next byte begins an event, and nothing is kept of the
    /// bytes before it.
    #[inline]
    pub fn is_between_events(&self) -> bool {
        self.between_events
    }

    /// Takes the bytes of one read and hands every event that they complete to
    /// `sink`. After an error every further call gives the same error.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let result = self.feed_lines(bytes, &mut sink);
        self.failed = result.err();
        self.between_events = result.is_ok()
            && self.mark.settled
            && !self.after_cr
            && self.line.is_empty()
            && !self.has_data
            && self.kind.is_empty();
        result
    }

    fn feed_lines(
        &mut self,
        bytes: &[u8],
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), TooLarge> {
        let (returned, mut rest) = self.mark.strip(bytes);
        self.line.extend_from_slice(returned);
        let mut pending = if self.has_data { Pending::Kept } else { Pending::Nothing };
        loop {
            if self.after_cr && !rest.is_empty() {
                self.after_cr = false;
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            // A line that goes over its limit is not searched any further.
            let room = self.line_limit.saturating_sub(self.line.len());
            let window = &rest[..rest.len().min(room.saturating_add(1))];
            let end = match window.first() {
                Some(b'\r' | b'\n') => Some(0),
                _ => memchr2(b'\r', b'\n', window),
            };
            if self.line.len() + end.unwrap_or(rest.len()) > self.line_limit {
                return Err(TooLarge::Line(self.line_limit));
            }
            let Some(end) = end else { break };
            let behind = &rest[end + 1..];
            self.after_cr = rest[end] == b'\r';
            if !self.line.is_empty() {
                self.line.extend_from_slice(&rest[..end]);
                self.take_carried_line(&mut pending, sink)?;
                rest = behind;
                continue;
            }
            match read_line(&rest[..end]) {
                Line::Data(value)
                    if matches!(pending, Pending::Nothing) && value.len() <= self.event_limit =>
                {
                    // The usual event is one data line and a blank line.
                    if let Some(behind) = behind.strip_prefix(b"\n").filter(|_| !self.after_cr) {
                        sink(Event { kind: &self.kind, data: value });
                        self.kind.clear();
                        rest = behind;
                        continue;
                    }
                    pending = Pending::Lent(value);
                }
                line => self.take(line, &mut pending, sink)?,
            }
            rest = behind;
        }
        self.line.extend_from_slice(rest);
        if let Pending::Lent(data) = pending {
            self.data.clear();
            self.data.extend_from_slice(data);
        }
        self.has_data = !matches!(pending, Pending::Nothing);
        Ok(())
    }

    /// Ends the stream. The event that was still open is handed back: a strict
    /// reader drops it, a lenient one takes it when its data is whole.
    pub fn finish(&mut self) -> Option<Event<'_>> {
        let returned = self.mark.rest();
        self.line.extend_from_slice(returned);
        if self.failed.is_some() {
            return None;
        }
        if !self.line.is_empty() {
            let mut pending = if self.has_data { Pending::Kept } else { Pending::Nothing };
            // A line without its end is never blank, so nothing is dispatched.
            self.failed = self.take_carried_line(&mut pending, &mut |_| ()).err();
            self.has_data = self.failed.is_none() && !matches!(pending, Pending::Nothing);
        }
        self.has_data.then_some(Event { kind: &self.kind, data: &self.data })
    }

    /// Takes a line that was put together from several reads.
    fn take_carried_line(
        &mut self,
        pending: &mut Pending<'_>,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), TooLarge> {
        let mut line = std::mem::take(&mut self.line);
        let result = self.take(read_line(&line), pending, sink);
        line.clear();
        self.line = line;
        result
    }

    fn take(
        &mut self,
        line: Line<'_>,
        pending: &mut Pending<'_>,
        sink: &mut impl FnMut(Event<'_>),
    ) -> Result<(), TooLarge> {
        match line {
            Line::Comment => self.comments = self.comments.saturating_add(1),
            Line::Other => {}
            Line::Kind(value) => {
                self.kind.clear();
                self.kind.extend_from_slice(value);
            }
            Line::Data(value) => return self.join(value, pending),
            Line::Blank => {
                match std::mem::replace(pending, Pending::Nothing) {
                    Pending::Nothing => {}
                    Pending::Lent(data) => sink(Event { kind: &self.kind, data }),
                    Pending::Kept => sink(Event { kind: &self.kind, data: &self.data }),
                }
                self.kind.clear();
            }
        }
        Ok(())
    }

    /// Adds a data line to the decoder's own buffer.
    fn join(&mut self, value: &[u8], pending: &mut Pending<'_>) -> Result<(), TooLarge> {
        match std::mem::replace(pending, Pending::Kept) {
            Pending::Nothing => self.data.clear(),
            Pending::Lent(first) => {
                self.data.clear();
                self.data.extend_from_slice(first);
                self.data.push(b'\n');
            }
            Pending::Kept => self.data.push(b'\n'),
        }
        if self.data.len() + value.len() > self.event_limit {
            return Err(TooLarge::Event(self.event_limit));
        }
        self.data.extend_from_slice(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Seen = Vec<(String, String)>;

    fn text(event: Event<'_>) -> (String, String) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(event.kind), text(event.data))
    }

    /// Events of the reads, what was open at the end, and the comment count.
    fn decode(reads: &[&str]) -> (Seen, Option<(String, String)>, u32) {
        let mut decoder = Decoder::new(1 << 10, 1 << 10);
        let mut seen = Vec::new();
        for read in reads {
            decoder.feed(read.as_bytes(), |event| seen.push(text(event))).unwrap();
        }
        let open = decoder.finish().map(text);
        (seen, open, decoder.comments())
    }

    fn data(reads: &[&str]) -> Vec<String> {
        decode(reads).0.into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn every_line_end_gives_the_same_events() {
        for end in ["\n", "\r", "\r\n"] {
            let stream = "event: e\ndata: a\ndata:b\n\n:c\nid: 1\n\ndata\n\n".replace('\n', end);
            let (seen, open, comments) = decode(&[&stream]);
            let want = [("e", "a\nb"), ("", "")].map(|(k, d)| (k.to_owned(), d.to_owned()));
            assert_eq!(seen, want, "line end {end:?}");
            assert_eq!((open, comments), (None, 1));
        }
    }

    #[test]
    fn s02_crlf_cut_between_reads_dispatches_at_the_cr() {
        let mut decoder = Decoder::new(100, 100);
        let mut count = 0;
        decoder.feed(b"data: a\r\n\r", |_| count += 1).unwrap();
        assert_eq!(count, 1);
        let mut seen = Vec::new();
        decoder.feed(b"\ndata: b\r\n\r\n", |event| seen.push(event.data.to_vec())).unwrap();
        assert_eq!(seen, [b"b"]);
    }

    #[test]
    fn only_one_space_after_the_colon_is_taken() {
        assert_eq!(data(&["data:  x \n\n"]), [" x "]);
    }

    #[test]
    fn s18_other_unicode_line_ends_are_text() {
        let line = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f";
        assert_eq!(data(&[&format!("data: {line}\n\n")]), [line]);
    }

    #[test]
    fn s09_one_leading_mark_is_removed_even_when_cut() {
        let mut decoder = Decoder::new(100, 100);
        let mut seen = Vec::new();
        for read in [&b"\xef"[..], b"\xbb", b"\xbfdata: x\n\n\xef\xbb\xbfdata: y\n\n"] {
            decoder.feed(read, |event| seen.push(event.data.to_vec())).unwrap();
        }
        assert_eq!(seen, [b"x"], "the second mark makes an unknown field");
    }

    #[test]
    fn the_start_of_a_mark_that_is_none_is_kept() {
        for cut in 1..3 {
            let stream = b"\xef\xbb:x\ndata: y\n\n";
            let mut decoder = Decoder::new(100, 100);
            let mut seen = Vec::new();
            for read in [&stream[..cut], &stream[cut..]] {
                decoder.feed(read, |event| seen.push(event.data.to_vec())).unwrap();
            }
            assert_eq!((seen, decoder.comments()), (vec![b"y".to_vec()], 0));
        }
    }

    #[test]
    fn s10_an_open_event_is_handed_back_at_the_end() {
        let (seen, open, _) = decode(&["data: a\n\ndata: b\nda", "ta: c"]);
        assert_eq!(seen.len(), 1);
        assert_eq!(open.unwrap().1, "b\nc");
        assert_eq!(decode(&["data: a\n\n"]).1, None);
        assert_eq!(decode(&["data: a\n\n:late"]).2, 1);
    }

    #[test]
    fn long_lines_and_events_are_refused() {
        let mut decoder = Decoder::new(16, 100);
        assert_eq!(decoder.feed(&[b'x'; 17], |_| ()), Err(TooLarge::Line(16)));
        assert_eq!(decoder.feed(b"\n", |_| ()), Err(TooLarge::Line(16)));
        assert_eq!(decoder.finish(), None);

        let mut decoder = Decoder::new(16, 20);
        let lines = b"data: 0123456789\n".repeat(3);
        assert_eq!(decoder.feed(&lines, |_| ()), Err(TooLarge::Event(20)));

        let mut decoder = Decoder::new(100, 5);
        assert_eq!(decoder.feed(b"data: 0123456789\n", |_| ()), Err(TooLarge::Event(5)));
    }

    #[test]
    fn a_line_limit_holds_for_lines_fed_byte_by_byte() {
        let mut decoder = Decoder::new(16, 100);
        let fed = std::iter::repeat_n(b'x', 40)
            .take_while(|byte| decoder.feed(&[*byte], |_| ()).is_ok())
            .count();
        assert_eq!(fed, 16);
    }

    #[test]
    fn a_line_over_its_limit_is_not_kept() {
        let mut decoder = Decoder::new(1 << 10, 1 << 10);
        assert_eq!(decoder.feed(&vec![b'x'; 1 << 24], |_| ()), Err(TooLarge::Line(1 << 10)));
        assert_eq!(decoder.line.capacity(), 0);
    }

    type Bytes = (Vec<u8>, Vec<u8>);

    /// Events, the error if any, and the comments of a stream in pieces.
    fn read(bytes: &[u8], piece: usize) -> (Vec<Bytes>, Option<TooLarge>, u32) {
        let mut decoder = Decoder::new(24, 30);
        let mut seen = Vec::new();
        let mut failed = None;
        for piece in bytes.chunks(piece) {
            let taken =
                decoder.feed(piece, |event| seen.push((event.kind.to_vec(), event.data.to_vec())));
            failed = taken.err();
        }
        seen.extend(decoder.finish().map(|open| (open.kind.to_vec(), open.data.to_vec())));
        (seen, failed, decoder.comments())
    }

    proptest! {
        #[test]
        fn a_stream_is_the_same_however_it_is_cut(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "data: x\n\n", "data:y\r\n\r\n", "data: z\r\r", "data: z\r\n\r", "data", "data:",
                    "event: e\n", "\n", "\r", "\r\n", ":c\n", "id: 1\n", "data: one of 23 bytes.\n",
                    "data: one of 24 bytes..\n\n", "data: one of 25 bytes...\n", "\u{feff}", "é",
                ]),
                0..20,
            ),
            piece in 2usize..60,
        ) {
            let bytes = parts.concat().into_bytes();
            let want = read(&bytes, 1);
            prop_assert_eq!(read(&bytes, usize::MAX), want.clone());
            prop_assert_eq!(read(&bytes, piece), want);
        }
    }
}
