//! Newline-delimited JSON, decoded as the bytes arrive: one line is one event.
//!
//! Only LF ends a line. A CR before it is white space to JSON and stays.

use memchr::memchr;

pub use crate::sse::{Event, TooLarge};

use crate::sse::LeadingMark;

/// The decoder. Its memory is bounded by the line limit.
#[derive(Debug)]
pub struct Decoder {
    line_limit: usize,
    mark: LeadingMark,
    /// The part of a line that came in earlier reads.
    line: Vec<u8>,
    failed: Option<TooLarge>,
}

impl Decoder {
    /// A decoder that refuses lines above this size in bytes.
    pub fn new(line_limit: usize) -> Self {
        Self { line_limit, mark: LeadingMark::default(), line: Vec::new(), failed: None }
    }

    /// Takes the bytes of one read and hands every line that they complete to
    /// `sink`, as an event without kind. Blank lines are none. After an error
    /// every further call gives the same error.
    pub fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(Event<'_>)) -> Result<(), TooLarge> {
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let (returned, mut rest) = self.mark.strip(bytes);
        self.line.extend_from_slice(returned);
        loop {
            // A line that goes over its limit is not searched any further.
            let room = self.line_limit.saturating_sub(self.line.len());
            let end = memchr(b'\n', &rest[..rest.len().min(room.saturating_add(1))]);
            if self.line.len() + end.unwrap_or(rest.len()) > self.line_limit {
                let failed = TooLarge::Line(self.line_limit);
                self.failed = Some(failed);
                return Err(failed);
            }
            let Some(end) = end else { break };
            let line = if self.line.is_empty() {
                &rest[..end]
            } else {
                self.line.extend_from_slice(&rest[..end]);
                &self.line
            };
            if !line.trim_ascii().is_empty() {
                sink(Event { kind: b"", data: line });
            }
            self.line.clear();
            rest = &rest[end + 1..];
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the stream. A last line without its LF is handed back.
    pub fn finish(&mut self) -> Option<Event<'_>> {
        let returned = self.mark.rest();
        self.line.extend_from_slice(returned);
        let whole = self.failed.is_none() && !self.line.trim_ascii().is_empty();
        whole.then_some(Event { kind: b"", data: &self.line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(reads: &[&str]) -> (Vec<String>, Option<String>) {
        let text = |event: Event<'_>| String::from_utf8_lossy(event.data).into_owned();
        let mut decoder = Decoder::new(64);
        let mut seen = Vec::new();
        for read in reads {
            decoder.feed(read.as_bytes(), |event| seen.push(text(event))).unwrap();
        }
        let open = decoder.finish().map(text);
        (seen, open)
    }

    #[test]
    fn a06_lines_cut_and_joined_by_reads_come_out_whole() {
        assert_eq!(
            decode(&["{\"a\"", ":1}\n{\"b\":2}\n{\"c\"", ":3}\n"]).0,
            ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]
        );
    }

    #[test]
    fn blank_lines_are_no_events_and_the_last_line_is_handed_back() {
        assert_eq!(decode(&["\n \r\n1\r\n", "2"]), (vec!["1\r".into()], Some("2".into())));
        assert_eq!(decode(&["1\n", " "]).1, None);
    }

    #[test]
    fn a_leading_mark_is_removed() {
        assert_eq!(decode(&["\u{feff}1\n"]).0, ["1"]);
    }

    #[test]
    fn a_long_line_is_refused_for_good() {
        let mut decoder = Decoder::new(4);
        assert_eq!(decoder.feed(b"12345", |_| ()), Err(TooLarge::Line(4)));
        assert_eq!(decoder.feed(b"\n", |_| ()), Err(TooLarge::Line(4)));
        assert_eq!(decoder.finish(), None);
    }
}
