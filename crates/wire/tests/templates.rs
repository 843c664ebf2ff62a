//! Events that are read by the form of the one before, and the same events
//! parsed in full: the same reading, whatever the bytes.

mod case;

use case::{Case, testdata};
use measure::{Answer, Carries, Event, Outcome, Warnings};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use wire::api::Api;
use wire::dialect::Forms;
use wire::http1::Head;
use wire::reader::{Close, Reader, ReaderOptions, Reading};

/// How a server writes its answers.
struct Engine {
    name: &'static str,
    api: Api,
    /// The `event:` line before each data line; empty for none.
    kind: &'static str,
    /// What comes before the output.
    opening: &'static [&'static str],
    /// An event with output: its index in the answer, and the text as JSON.
    output: fn(usize, &str) -> String,
    /// What comes behind the output.
    closing: &'static [&'static str],
}

const TWO_CHOICES: &str = "two choices in turn";
const TWO_CHANNELS: &str = "two channels in every event";

/// A chat answer that is nothing but its output.
const CHAT: Engine = Engine {
    name: "",
    api: Api::OpenaiChat,
    kind: "",
    opening: &[],
    output: |_, _| String::new(),
    closing: &["[DONE]"],
};

const ENGINES: &[Engine] = &[
    Engine {
        name: "vLLM",
        api: Api::OpenaiChat,
        kind: "",
        opening: &[
            r#"{"id":"c","created":7,"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
        ],
        output: |_, text| {
            format!(
                r#"{{"id":"c","created":7,"choices":[{{"index":0,"delta":{{"content":{text}}},"logprobs":null,"finish_reason":null}}]}}"#
            )
        },
        closing: &[
            r#"{"id":"c","created":7,"choices":[{"index":0,"delta":{"content":""},"logprobs":null,"finish_reason":"stop"}]}"#,
            r#"{"id":"c","created":7,"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":8}}"#,
            "[DONE]",
        ],
    },
    Engine {
        name: "SGLang with reasoning, by the second",
        api: Api::OpenaiChat,
        kind: "",
        opening: &[r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#],
        output: |index, text| {
            let (reasoning, content) = if index < 4 { (text, "null") } else { ("null", text) };
            let created = 1_795_960_280 + index / 3;
            format!(
                r#"{{"created":{created},"choices":[{{"index":0,"delta":{{"role":null,"content":{content},"reasoning_content":{reasoning}}},"finish_reason":null}}],"usage":null}}"#
            )
        },
        closing: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#, "[DONE]"],
    },
    Engine {
        name: "llama.cpp",
        api: Api::OpenaiChat,
        kind: "",
        opening: &[],
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"finish_reason":null,"index":0,"delta":{{"content":{text}}}}}],"created":1,"id":"x","object":"chat.completion.chunk"}}"#
            )
        },
        closing: &[
            r#"{"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"timings":{"predicted_n":8}}"#,
            "[DONE]",
        ],
    },
    Engine {
        name: "OpenAI with padding",
        api: Api::OpenaiChat,
        kind: "",
        opening: &[],
        output: |index, text| {
            let noise = &"aZ3kQ9xWmP5t"[..index * 5 % 12];
            format!(
                r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":{text}}}}}],"obfuscation":"{noise}"}}"#
            )
        },
        closing: &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#, "[DONE]"],
    },
    Engine {
        name: TWO_CHOICES,
        api: Api::OpenaiCompletions,
        kind: "",
        opening: &[],
        output: |index, text| {
            format!(r#"{{"choices":[{{"index":{},"text":{text}}}]}}"#, index / 3 % 2)
        },
        closing: &["[DONE]"],
    },
    Engine {
        name: "vLLM with running usage",
        api: Api::OpenaiCompletions,
        kind: "",
        opening: &[],
        output: |index, text| {
            format!(
                r#"{{"choices":[{{"index":0,"text":{text}}}],"usage":{{"completion_tokens":{}}}}}"#,
                index + 1
            )
        },
        closing: &[r#"{"choices":[{"text":"","finish_reason":"stop"}]}"#, "[DONE]"],
    },
    Engine {
        name: "OpenAI responses",
        api: Api::OpenaiResponses,
        kind: "response.output_text.delta",
        opening: &[r#"{"type":"response.created","sequence_number":0}"#],
        output: |index, text| {
            format!(
                r#"{{"type":"response.output_text.delta","sequence_number":{index},"delta":{text},"obfuscation":"{}"}}"#,
                "x".repeat(index % 4)
            )
        },
        closing: &[
            r#"{"type":"response.completed","response":{"status":"completed","usage":{"output_tokens":8}}}"#,
        ],
    },
    Engine {
        name: "Anthropic",
        api: Api::Anthropic,
        kind: "content_block_delta",
        opening: &[
            r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#,
        ],
        output: |index, text| {
            let (kind, field) =
                if index < 3 { ("thinking_delta", "thinking") } else { ("text_delta", "text") };
            format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"{kind}","{field}":{text}}}}}"#
            )
        },
        closing: &[
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":8}}"#,
            r#"{"type":"message_stop"}"#,
        ],
    },
    Engine {
        name: "Ollama",
        api: Api::Ollama,
        kind: "",
        opening: &[],
        output: |index, text| {
            format!(
                r#"{{"model":"m","created_at":"2026-01-01T00:00:0{}.{}Z","message":{{"role":"assistant","content":{text}}},"done":false}}"#,
                index % 10,
                index * 1013
            )
        },
        closing: &[r#"{"message":{"content":""},"done":true,"eval_count":8}"#],
    },
    Engine {
        name: "TGI",
        api: Api::Tgi,
        kind: "",
        opening: &[],
        output: |index, text| {
            format!(
                r#"{{"index":{index},"token":{{"id":{},"text":{text},"logprob":-{index}.5,"special":false}},"generated_text":null,"details":null}}"#,
                index * 7919
            )
        },
        closing: &[
            r#"{"token":{"text":"</s>","special":true},"generated_text":"x","details":{"finish_reason":"length","generated_tokens":9}}"#,
        ],
    },
    Engine {
        name: "SGLang natively, with cumulative text",
        api: Api::Sglang,
        kind: "",
        opening: &[],
        output: |index, text| {
            format!(r#"{{"text":{text},"meta_info":{{"completion_tokens":{index}}}}}"#)
        },
        closing: &["[DONE]"],
    },
    Engine {
        name: "Triton",
        api: Api::Triton,
        kind: "",
        opening: &[],
        output: |_, text| format!(r#"{{"model_name":"m","text_output":{text}}}"#),
        closing: &[],
    },
    Engine {
        name: "finish reason in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}},"finish_reason":"stop"}}]}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: "log probabilities in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}},"logprobs":{{"content":[{{}}]}}}}]}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: "timings in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}}}}],"timings":{{"predicted_n":3}}}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: "prompt count in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}}}}],"usage":{{"prompt_tokens":3}}}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: "tool call beside the text",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"role":"assistant","content":{text},"tool_calls":[{{"function":{{"arguments":"b"}}}}]}}}}]}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: "role and token ids in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"role":"assistant","content":{text}}},"token_ids":[1,2]}}]}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: TWO_CHANNELS,
        output: |_, text| {
            format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{text},"reasoning":"r"}}}}]}}"#)
        },
        ..CHAT
    },
    Engine {
        name: "two choices in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}}}},{{"index":1,"delta":{{"content":"b"}}}}]}}"#
            )
        },
        ..CHAT
    },
    Engine {
        name: "encrypted reasoning in every event",
        output: |_, text| {
            format!(
                r#"{{"choices":[{{"index":0,"delta":{{"content":{text},"reasoning_details":[{{"type":"reasoning.encrypted"}}]}}}}]}}"#
            )
        },
        ..CHAT
    },
];

impl Engine {
    fn is_lines(&self) -> bool {
        self.api == Api::Ollama
    }

    fn framed(&self, data: &str) -> String {
        match (self.is_lines(), self.kind) {
            (true, _) => format!("{data}\n"),
            (_, "") => format!("data: {data}\n\n"),
            (_, kind) => format!("event: {kind}\ndata: {data}\n\n"),
        }
    }

    /// An answer with these texts, each written as JSON already.
    fn answer(&self, texts: &[String]) -> Vec<String> {
        let fixed = |data: &&str| (*data).to_owned();
        let outputs = texts.iter().enumerate().map(|(index, text)| (self.output)(index, text));
        let opening = self.opening.iter().map(fixed);
        opening.chain(outputs).chain(self.closing.iter().map(fixed)).collect()
    }

    fn body(&self, texts: &[String]) -> Vec<u8> {
        let events = self.answer(texts);
        events.iter().map(|data| self.framed(data)).collect::<String>().into_bytes()
    }

    fn head(&self) -> Head {
        let media = if self.is_lines() { "application/x-ndjson" } else { "text/event-stream" };
        Head::new(200, Some(media))
    }

    fn read<'b>(
        &self,
        options: ReaderOptions,
        pieces: impl IntoIterator<Item = &'b [u8]>,
        close: Close,
    ) -> Reading {
        self.read_sharing(&Forms::new(self.api), options, pieces, close)
    }

    /// Reads with what the readers before found out about the events.
    fn read_sharing<'b>(
        &self,
        forms: &Forms,
        options: ReaderOptions,
        pieces: impl IntoIterator<Item = &'b [u8]>,
        close: Close,
    ) -> Reading {
        let mut reader = Reader::sharing(forms, options);
        reader.read_head(&self.head(), 0);
        for (at_us, piece) in pieces.into_iter().enumerate() {
            reader.read_body(piece, at_us as u32);
        }
        reader.finish(close, u32::MAX)
    }
}

const FAST: ReaderOptions = ReaderOptions {
    keep_text: true,
    limits: wire::reader::Limits::DEFAULT,
    full_parse: false,
    expected_events: 0,
    expected_results: 0,
};
const FULL: ReaderOptions = ReaderOptions { full_parse: true, ..FAST };

/// A text as JSON by the habits of several writers.
fn literals(text: &str) -> [String; 3] {
    let plain = Value::from(text).to_string();
    let ascii = plain
        .chars()
        .map(|c| match c {
            ' '..='~' => c.to_string(),
            _ => c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect(),
        })
        .collect();
    [plain, ascii, format!("\"{text}\"")]
}

/// Texts that hold what the fast way looks for, or what stops it.
const TRICKY: &[&str] = &[
    "",
    " ",
    " the",
    "\n",
    "\t\"",
    "\\",
    "\\\\\"",
    "\"",
    "\",\"finish_reason\":\"stop\"",
    "\"},\"finish_reason\":\"stop\",\"index\":0}]}",
    "\"content\":\"y\"",
    "x\"},\"logprobs\":null,\"finish_reason\":null}]}\n\ndata: {\"id\":\"c\",\"created\":7,\
     \"choices\":[{\"index\":0,\"delta\":{\"content\":\"y",
    "\\u0041",
    "\\ud83d",
    "\\x",
    "{}[],:",
    "data: [DONE]\n\n",
    "[DONE]",
    "NaN",
    "\u{0}",
    "\u{1f}",
    "\u{7f}",
    "\u{2028}",
    "é漢🙂",
    "\u{fffd}",
    "0123456789abcdef",
    "\r\n",
];

fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = prop_oneof![
        6 => select(vec![" the", " of", "ing", "漢字", ","]).prop_map(|word| literals(word)[0].clone()),
        3 => (select(TRICKY), 0usize..3).prop_map(|(text, style)| literals(text)[style].clone()),
        1 => ("\\PC{0,12}", 0usize..3).prop_map(|(text, style)| literals(&text)[style].clone()),
        1 => (any::<String>(), 0usize..2).prop_map(|(text, style)| literals(&text)[style].clone()),
        1 => select(vec!["null", "7", "[\"x\"]", "[{\"text\":\"x\"}]", "{\"text\":\"x\"}", "true"])
            .prop_map(str::to_owned),
    ];
    prop::collection::vec(text, 0..16)
}

/// Other ways to write one event.
#[derive(Clone, Copy, Debug)]
enum Rewrite {
    ReversedKeys,
    Spaced,
    KeyTwice,
    MoreFields,
    Null(&'static str),
    Again,
    Away,
}

fn rewrite() -> impl Strategy<Value = Rewrite> {
    prop_oneof![
        Just(Rewrite::ReversedKeys),
        Just(Rewrite::Spaced),
        Just(Rewrite::KeyTwice),
        Just(Rewrite::MoreFields),
        select(vec!["error", "usage", "choices", "created", "delta"]).prop_map(Rewrite::Null),
        Just(Rewrite::Again),
        Just(Rewrite::Away),
    ]
}

fn reversed(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            Value::Object(map.into_iter().rev().map(|(k, v)| (k, reversed(v))).collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(reversed).collect()),
        other => other,
    }
}

impl Rewrite {
    fn apply(self, events: &mut Vec<String>, at: usize) {
        let event = events[at].clone();
        let value: Option<Value> = serde_json::from_str(&event).ok();
        let inside = event.strip_prefix('{');
        events[at] = match (self, value, inside) {
            (Self::ReversedKeys, Some(value), _) => reversed(value).to_string(),
            (Self::Spaced, Some(value), _) => format!("{value:#}").replace('\n', " "),
            (Self::KeyTwice, Some(Value::Object(map)), Some(inside)) => {
                let first =
                    map.iter().next().map(|(key, value)| format!("{}:{value},", json!(key)));
                format!("{{{}{inside}", first.unwrap_or_default())
            }
            (Self::MoreFields, Some(_), Some(inside)) => format!(
                r#"{{"x":{{"delta":{{"content":"no"}},"created":1}},"created":2,"id":[3],{inside}"#
            ),
            (Self::Null(field), Some(_), Some(inside)) => format!("{{\"{field}\":null,{inside}"),
            (Self::Again, ..) => {
                events.insert(at, event.clone());
                event
            }
            (Self::Away, ..) => String::new(),
            _ => event,
        };
    }
}

/// Damage to the bytes.
fn damage() -> impl Strategy<Value = (Index, usize, Vec<u8>)> {
    let known = vec![
        "\"",
        "\\",
        "\\\"",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "{",
        "}",
        ",",
        "\u{0}",
        "\u{1f}",
        "é",
        ": c\n",
        "\"content\":",
        "\"content\":\"z\"",
        "\",\"content\":\"",
        "data: ",
        "[DONE]",
        "0",
        "-",
        ".",
        "e",
        " ",
        "\\u0041",
        "null",
    ];
    let new = prop_oneof![
        3 => select(known).prop_map(|text| text.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    (any::<Index>(), 0usize..4, new)
}

fn close() -> impl Strategy<Value = Close> {
    select(vec![Close::Eof, Close::Done, Close::Reset, Close::IdleTimeout])
}

fn engine() -> impl Strategy<Value = &'static Engine> {
    (0..ENGINES.len()).prop_map(|index| &ENGINES[index])
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn any_answer_is_read_as_if_parsed_in_full(
        engine in engine(), texts in texts(), close in close(), keep_text: bool,
        rewrites in prop::collection::vec((any::<Index>(), rewrite()), 0..4),
        damage in prop::collection::vec(damage(), 0..3),
        piece in prop_oneof![1usize..30, 30usize..400, Just(usize::MAX)],
    ) {
        let mut events = engine.answer(&texts);
        for (at, rewrite) in rewrites {
            if !events.is_empty() {
                let at = at.index(events.len());
                rewrite.apply(&mut events, at);
            }
        }
        let body: String = events.iter().map(|data| engine.framed(data)).collect();
        let mut bytes = body.into_bytes();
        for (at, removed, new) in damage {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                let end = (at + removed).min(bytes.len());
                bytes.splice(at..end, new);
            }
        }
        let read = |options: ReaderOptions| {
            engine.read(ReaderOptions { keep_text, ..options }, bytes.chunks(piece), close)
        };
        let full = read(FULL);
        prop_assert_eq!(&read(FAST), &full, "{}", String::from_utf8_lossy(&bytes));
        // Once more with forms that other engines' answers left behind, and
        // then with those of the same bytes.
        let forms = Forms::new(engine.api);
        for (other, bytes) in streams().iter().filter(|(other, _)| other.api == engine.api) {
            other.read_sharing(&forms, FAST, [&bytes[..]], Close::Eof);
        }
        let options = ReaderOptions { keep_text, ..FAST };
        for _ in 0..2 {
            let shared = engine.read_sharing(&forms, options, bytes.chunks(piece), close);
            prop_assert_eq!(&shared, &full, "shared, {}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn fields_that_vary_mean_nothing(
        engine in engine(), text in "[a-z]{1,5}",
        values in prop::collection::vec(
            select(vec!["1", "-0.5e+3", "\"\"", "\"x\\n\\u00e9\"", "null", "[1]", "{\"text\":\"x\"}", "01", "1."]),
            2..12,
        ),
        field in select(vec!["created", "id", "obfuscation", "sequence_number", "item_id", "created_at", "index", "logprob"]),
    ) {
        let bytes: String = values
            .iter()
            .map(|value| {
                let event = (engine.output)(2, &format!("\"{text}\""));
                let event: Value = serde_json::from_str(&event).unwrap();
                let Value::Object(mut map) = event else { unreachable!("events are objects") };
                map.shift_remove(field);
                let rest = Value::Object(map).to_string();
                engine.framed(&format!("{{\"{field}\":{value},{}", &rest[1..]))
            })
            .collect();
        let read = |options| engine.read(options, [bytes.as_bytes()], Close::Eof);
        prop_assert_eq!(read(FAST), read(FULL), "{}", bytes);
    }
}

/// What must not depend on how the bytes were cut.
fn essence(reading: Reading) -> (Vec<Event>, Answer, Outcome) {
    let shared = Carries::SHARED_READ.bits();
    let uncut = |event: Event| Event {
        at_us: 0,
        carries: Carries::from_bits(event.carries.bits() & !shared),
        ..event
    };
    let mut answer = reading.answer;
    // Whether the delivery was a burst depends on the reads.
    let bursts = Warnings::NOT_STREAMED.bits() | Warnings::BURSTY_DELIVERY.bits();
    answer.warnings = Warnings::from_bits(answer.warnings.bits() & !bursts);
    (reading.events.iter().map(uncut).collect(), answer, reading.outcome)
}

/// An answer of every engine: plain texts with a few that are not between.
fn streams() -> Vec<(&'static Engine, Vec<u8>)> {
    let texts: Vec<String> = [" the", " of", "ing", "a\"b", "漢🙂", "", "\u{1}", " is", "s", "."]
        .iter()
        .enumerate()
        .map(|(index, text)| literals(text)[usize::from(index == 4)].clone())
        .collect();
    ENGINES.iter().map(|engine| (engine, engine.body(&texts))).collect()
}

#[test]
fn no_cut_of_an_answer_tells_the_two_ways_apart() {
    for (engine, bytes) in streams() {
        let want = essence(engine.read(FULL, [&bytes[..]], Close::Eof));
        assert!(want.0.len() > 8, "{engine:?}");
        for cut in 0..=bytes.len() {
            let (one, two) = bytes.split_at(cut);
            let cut_read = essence(engine.read(FAST, [one, two], Close::Eof));
            assert_eq!(cut_read, want, "{engine:?} cut at {cut}");
        }
        let single = essence(engine.read(FAST, bytes.chunks(1), Close::Eof));
        assert_eq!(single, want, "{engine:?} byte by byte");
    }
}

/// Reads a case or a capture the given way.
fn read_case(case: &Case, options: ReaderOptions, pieces: &[&[u8]]) -> Reading {
    let mut reader = Reader::new(case.api, options);
    if let Some((status, content_type)) = &case.head {
        reader.read_head(&Head::new(*status, Some(content_type)), 0);
    }
    for piece in pieces {
        case.feed(&mut reader, piece, 5);
    }
    reader.finish(case.close, 9)
}

#[test]
fn no_cut_of_a_case_or_a_capture_tells_the_two_ways_apart() {
    let captures = [
        ("captures/vllm_chat.sse", Api::OpenaiChat),
        ("captures/vllm_comp.sse", Api::OpenaiCompletions),
    ];
    let captures = captures.map(|(file, api)| Case {
        id: file.to_owned(),
        api,
        bytes: std::fs::read(testdata(file)).unwrap(),
        segments: Vec::new(),
        close: Close::Eof,
        head: Some((200, "text/event-stream".to_owned())),
        expect: serde_json::Map::new(),
    });
    for case in case::streams().into_iter().chain(captures) {
        let whole = read_case(&case, FULL, &[&case.bytes]);
        assert_eq!(read_case(&case, FAST, &[&case.bytes]), whole, "{}", case.id);
        let want = essence(whole);
        for cut in 1..case.bytes.len() {
            let (one, two) = case.bytes.split_at(cut);
            let cut_read = essence(read_case(&case, FAST, &[one, two]));
            assert_eq!(cut_read, want, "{} cut at {cut}", case.id);
        }
    }
}

#[test]
fn thousands_of_events_in_one_read_are_read_alike() {
    for engine in ENGINES {
        let texts: Vec<String> =
            (0..5_000).map(|index| literals(TRICKY[index % TRICKY.len()])[0].clone()).collect();
        let bytes = engine.body(&texts);
        let read = |options| engine.read(options, [&bytes[..]], Close::Eof);
        let (fast, full) = (read(FAST), read(FULL));
        assert!(full.events.len() >= 5_000, "{engine:?}");
        assert_eq!(fast, full, "{engine:?}");
    }
}

/// The text of a reply must come out letter by letter, whatever it looks like.
#[test]
fn what_looks_like_structure_in_a_text_is_kept_as_text() {
    let texts: Vec<&str> = [" a", " b", " c", " d"].iter().chain(TRICKY).copied().collect();
    let written: Vec<String> = texts.iter().map(|text| literals(text)[0].clone()).collect();
    // Texts are kept of choice 0 only, and SGLang's are cumulative.
    let plain = |engine: &&Engine| {
        !matches!(engine.name, TWO_CHOICES | TWO_CHANNELS) && engine.api != Api::Sglang
    };
    for engine in ENGINES.iter().filter(plain) {
        let bytes = engine.body(&written);
        let answer = engine.read(FAST, [&bytes[..]], Close::Eof).answer;
        let said = answer.reasoning.into_iter().chain(answer.text).collect::<String>();
        assert_eq!(said, texts.concat(), "{engine:?}");
    }
}
