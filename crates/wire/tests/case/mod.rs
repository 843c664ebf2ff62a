//! Reads `testdata/cases` and plays a stream case into a reader on a fake
//! clock.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::path::PathBuf;

use serde_json::{Map, Value};
use wire::api::Api;
use wire::http1::Head;
use wire::reader::{Close, Progress, Reader, ReaderOptions, Reading};

/// One stream case: bytes, their time line, and what a reader must make of it.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) api: Api,
    pub(crate) bytes: Vec<u8>,
    /// End offset and milliseconds of each read.
    pub(crate) segments: Vec<(usize, u32)>,
    pub(crate) close: Close,
    /// Status and content type; none when the bytes hold the HTTP head.
    pub(crate) head: Option<(u16, String)>,
    pub(crate) expect: Map<String, Value>,
}

/// A path below the test data.
pub(crate) fn testdata(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata")).join(path)
}

/// All cases of every kind, as written.
pub(crate) fn all() -> Vec<Value> {
    let text = std::fs::read_to_string(testdata("cases/cases.json")).unwrap();
    let mut cases: Value = serde_json::from_str(&text).unwrap();
    match cases["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("cases is no list: {other}"),
    }
}

/// The cases that are streams, in the order of the file.
pub(crate) fn streams() -> Vec<Case> {
    all().iter().filter(|case| case["kind"] == "stream").map(stream).collect()
}

fn stream(case: &Value) -> Case {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let http = &case["http"];
    let bytes = std::fs::read(testdata("cases").join(text(&case["file"]))).unwrap();
    let segments: Vec<(usize, u32)> = case["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| (number(&segment[0]) as usize, number(&segment[1])))
        .collect();
    assert_eq!(segments.last().unwrap().0, bytes.len());
    Case {
        id: text(&case["id"]),
        api: Api::from_name(case["api"].as_str().unwrap()).unwrap(),
        bytes,
        segments,
        close: match case["close"].as_str().unwrap() {
            "eof" => Close::Eof,
            "reset" => Close::Reset,
            "stall" => Close::IdleTimeout,
            other => panic!("unknown close {other}"),
        },
        head: (http["raw"] != true)
            .then(|| (number(&http["status"]) as u16, text(&http["content_type"]))),
        expect: case["expect"].as_object().unwrap().clone(),
    }
}

/// When to stop reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// As the load generator does: at the end of the answer.
    Answered,
    /// At the end of the bytes, whatever the reader says.
    Exhausted,
}

impl Case {
    /// A reader at the start of the body, or of the head where the case holds
    /// one.
    pub(crate) fn reader(&self) -> Reader {
        let options = ReaderOptions { keep_text: true, ..ReaderOptions::default() };
        let mut reader = Reader::new(self.api, options);
        if let Some((status, content_type)) = &self.head {
            reader.read_head(&Head::new(*status, Some(content_type)), 0);
        }
        reader
    }

    pub(crate) fn feed(&self, reader: &mut Reader, bytes: &[u8], at_us: u32) -> Progress {
        if self.head.is_some() { reader.read_body(bytes, at_us) } else { reader.read(bytes, at_us) }
    }

    /// Plays the case on its own time line.
    pub(crate) fn play(&self, until: Until) -> Reading {
        let mut reader = self.reader();
        let mut start = 0;
        let mut at_us = 0;
        for &(end, at_ms) in &self.segments {
            at_us = at_ms * 1_000;
            let progress = self.feed(&mut reader, &self.bytes[start..end], at_us);
            start = end;
            if progress != Progress::More && until == Until::Answered {
                assert!(reader.answer_done() || reader.framing_done());
                return reader.finish(Close::Done, at_us);
            }
        }
        // The close comes later than the last byte, so that a stamp taken at
        // the close would show.
        reader.finish(self.close, at_us + 7_000)
    }
}
