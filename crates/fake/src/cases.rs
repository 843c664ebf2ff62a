//! Recorded hostile answers from a directory of cases, played on their time
//! lines.

use std::collections::BTreeMap;
use std::io;

use serde::Deserialize;
use thiserror::Error;

use crate::request::Request;
use crate::script::{Action, LAST_CHUNK, Play, Respond, Script, http_chunk};

/// The stream cases of a case directory, by id. As a server it answers
/// `/<ID>/any/path` with the case's bytes; case `S01` asked for as a chat
/// endpoint is `/S01/v1/chat/completions`.
#[derive(Clone, Debug, Default)]
pub struct CaseBook {
    cases: BTreeMap<String, StreamCase>,
    /// No deadline lies later than this; none: deadlines as recorded.
    latest_ns: Option<u64>,
}

#[derive(Clone, Debug)]
struct StreamCase {
    bytes: Vec<u8>,
    /// Content type of a body that is to be framed; none when the bytes hold
    /// their own head and framing.
    framed: Option<(u16, String)>,
    /// End offset and deadline of each write.
    segments: Vec<(usize, u64)>,
    close: Close,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Close {
    Eof,
    Reset,
    Stall,
}

#[derive(Deserialize)]
struct Book {
    cases: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: String,
    kind: String,
    file: Option<String>,
    segments: Option<Vec<(usize, f64)>>,
    close: Option<Close>,
    http: Option<Http>,
}

#[derive(Deserialize)]
struct Http {
    #[serde(default)]
    raw: bool,
    status: Option<u16>,
    content_type: Option<String>,
}

/// Why a case directory was refused.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The index is not JSON of the right shape.
    #[error("case index: {0}")]
    Index(#[from] serde_json::Error),
    /// A case's file could not be read.
    #[error("case {case}: {file}: {source}")]
    Read {
        /// The case's id.
        case: String,
        /// The file's name in the index.
        file: String,
        /// What the reader said.
        source: io::Error,
    },
    /// A case breaks a rule of the index.
    #[error("case {case}: {rule}")]
    Rule {
        /// The case's id.
        case: String,
        /// The rule, as a sentence.
        rule: &'static str,
    },
}

impl CaseBook {
    /// Takes the stream cases out of an index; `read` gives the bytes of a
    /// file named there. Other kinds of cases are for other readers.
    ///
    /// # Errors
    /// The first case that cannot be played.
    pub fn load(
        index: &[u8],
        mut read: impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<Self, CaseError> {
        let book: Book = serde_json::from_slice(index)?;
        let mut cases = BTreeMap::new();
        for entry in book.cases.into_iter().filter(|entry| entry.kind == "stream") {
            let id = entry.id.clone();
            let rule = |rule| CaseError::Rule { case: id.clone(), rule };
            let file = entry.file.as_deref().ok_or_else(|| rule("a stream case names a file"))?;
            let bytes = read(file).map_err(|source| CaseError::Read {
                case: id.clone(),
                file: file.to_owned(),
                source,
            })?;
            let case = entry.playable(bytes).map_err(rule)?;
            if cases.insert(id.clone(), case).is_some() {
                return Err(rule("an id occurs once"));
            }
        }
        Ok(Self { cases, latest_ns: None })
    }

    /// Lets no deadline be later than this: a case that is silent for minutes
    /// need not take minutes where only its order matters.
    #[must_use]
    pub fn capped_ms(mut self, latest_ms: u64) -> Self {
        self.latest_ns = Some(latest_ms.saturating_mul(1_000_000));
        self
    }

    /// The ids, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.cases.keys().map(String::as_str)
    }

    /// The case as a script; times count from the request.
    pub fn script(&self, id: &str) -> Option<Script> {
        let case = self.cases.get(id)?;
        let capped = |at_ns: u64| self.latest_ns.map_or(at_ns, |latest| at_ns.min(latest));
        let mut script = Script::new();
        if let Some((status, content_type)) = &case.framed {
            script = script.chunked_head(0, *status, content_type);
        }
        let (mut from, mut now_ns) = (0, 0);
        for &(end, at_ns) in &case.segments {
            now_ns = capped(at_ns);
            let bytes = &case.bytes[from..end];
            let bytes = if case.framed.is_some() { http_chunk(bytes) } else { bytes.to_vec() };
            script = script.act_ns(now_ns, Action::Send(bytes));
            from = end;
        }
        Some(match case.close {
            Close::Reset => script.act_ns(now_ns, Action::Reset),
            Close::Stall => script.act_ns(now_ns, Action::Stall),
            Close::Eof => {
                if case.framed.is_some() {
                    script = script.act_ns(now_ns, Action::Send(LAST_CHUNK.to_vec()));
                }
                script.act_ns(now_ns, Action::Close)
            }
        })
    }
}

impl Entry {
    /// Checks the rules that playing relies on.
    fn playable(self, bytes: Vec<u8>) -> Result<StreamCase, &'static str> {
        let http = self.http.ok_or("a stream case says how it is framed (http)")?;
        let close = self.close.ok_or("a stream case says how it ends (close)")?;
        let segments = self.segments.ok_or("a stream case has segments")?;
        if !segments.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
            return Err("segments ascend in offset and in time");
        }
        if segments.last().map_or(0, |last| last.0) != bytes.len() {
            return Err("the last segment ends where the file ends");
        }
        if segments.iter().any(|&(_, at_ms)| !(0.0..=86_400_000.0).contains(&at_ms)) {
            return Err("segment times lie between 0 and one day, in milliseconds");
        }
        let framed = match (http.raw, http.content_type) {
            (true, _) => None,
            (false, Some(content_type)) => Some((http.status.unwrap_or(200), content_type)),
            (false, None) => return Err("a case that is not raw names its content_type"),
        };
        let segments =
            segments.into_iter().map(|(end, at_ms)| (end, (at_ms * 1e6) as u64)).collect();
        Ok(StreamCase { bytes, framed, segments, close })
    }
}

impl Respond for CaseBook {
    fn answer(&mut self, request: &Request) -> Play {
        let id = request.path().trim_start_matches('/').split('/').next().unwrap_or_default();
        let script = self.script(id).unwrap_or_else(|| Script::whole(404, "text/plain", ""));
        Play::of(script, request.arrival_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(index: &str, file: &'static [u8]) -> Result<CaseBook, CaseError> {
        CaseBook::load(index.as_bytes(), |_| Ok(file.to_vec()))
    }

    const FRAMED: &str = r#"{"cases": [
        {"id": "L", "kind": "scenario"},
        {"id": "A", "kind": "stream", "file": "a", "segments": [[2, 10], [3, 20.5]], "close": "eof",
         "http": {"status": 200, "content_type": "text/event-stream"}}]}"#;

    #[test]
    fn framed_case_is_one_chunk_a_segment_and_closes_in_good_order() {
        let book = load(FRAMED, b"abc").unwrap();
        assert_eq!(book.ids().collect::<Vec<_>>(), ["A"]);
        let expected = Script::new()
            .chunked_head(0, 200, "text/event-stream")
            .send(10, "2\r\nab\r\n")
            .act_ns(20_500_000, Action::Send(b"1\r\nc\r\n".to_vec()))
            .act_ns(20_500_000, Action::Send(b"0\r\n\r\n".to_vec()))
            .act_ns(20_500_000, Action::Close);
        assert_eq!(book.script("A"), Some(expected));
        assert_eq!(book.script("L"), None);
    }

    #[test]
    fn raw_case_is_sent_as_it_is() {
        let index = r#"{"cases": [{"id": "H", "kind": "stream", "file": "h", "segments": [[3, 5]],
            "close": "reset", "http": {"raw": true}}]}"#;
        let script = load(index, b"abc").unwrap().script("H").unwrap();
        assert_eq!(script, Script::new().send(5, "abc").reset(5));
    }

    #[test]
    fn cap_moves_late_deadlines_only() {
        let script = load(FRAMED, b"abc").unwrap().capped_ms(15).script("A").unwrap();
        let times: Vec<u64> = script.into_steps().map(|step| step.at_ns / 1_000_000).collect();
        assert_eq!(times, [0, 10, 15, 15, 15]);
    }

    #[test]
    fn broken_indexes_are_refused_with_the_case() {
        assert!(matches!(load("{", b""), Err(CaseError::Index(_))));
        let broken = [
            FRAMED.replace("[2, 10]", "[4, 10]"),
            FRAMED.replace("[2, 10]", "[2, 30]"),
            FRAMED.replace("[3, 20.5]", "[9, 20.5]"),
            FRAMED.replace("[2, 10]", "[2, -1]"),
            FRAMED.replace("content_type", "other"),
            FRAMED.replace("\"file\"", "\"other\""),
        ];
        for index in broken {
            assert!(
                matches!(load(&index, b"abc"), Err(CaseError::Rule { case, .. }) if case == "A"),
                "{index}"
            );
        }
        let failing =
            CaseBook::load(FRAMED.as_bytes(), |_| Err(io::ErrorKind::NotFound.into())).unwrap_err();
        assert!(matches!(failing, CaseError::Read { .. }));
    }
}
