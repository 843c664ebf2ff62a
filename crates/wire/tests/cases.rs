//! Every stream case of `testdata/cases`, on a fake clock, with exactly the
//! expected values.

mod case;

use std::collections::BTreeSet;

use case::{Case, Until};
use measure::{At, Carries, Outcome, Planned, Record, Warnings};
use serde_json::{Map, Value, json};
use wire::api::Api;
use wire::reader::Reading;

/// Keys of an expectation that tell a person something and fix no value.
const NOT_CHECKED: &[&str] = &["soft", "alt_outcome", "hint"];

/// The figures of a reading, by the definitions at the head of INDEX.md.
fn figures(reading: Reading) -> Map<String, Value> {
    let mut record = Record::planned(0, At::ZERO, Planned::default());
    record.events = reading.events;
    record.answer = reading.answer;
    record.outcome = reading.outcome;
    let (events, answer) = (&record.events, &record.answer);
    let ok = record.outcome == Outcome::Ok;
    let ms = |at_us: u32| f64::from(at_us) / 1e3;

    let at = |is: &dyn Fn(Carries) -> bool| -> Vec<u32> {
        events.iter().filter(|event| is(event.carries)).map(|event| event.at_us).collect()
    };
    let arrivals = at(&Carries::is_arrival);
    let outputs = at(&Carries::is_output);
    let ends = at(&|carries| carries.any(Carries::FINISH) || carries.is_output());
    let ttft_event = events.iter().position(|event| event.carries.is_arrival());
    let text_at = at(&|carries| carries.any(Carries::TEXT));
    let ttft = arrivals.first().copied().map(ms).filter(|_| ok);
    let e2el = ends.iter().max().copied().map(ms).filter(|_| ok);
    let (tokens, source) = record.output_tokens().unzip();
    let tokens = tokens.map(|tokens| f64::from(tokens.get()));
    let first_tokens = answer.first_event_tokens.map(|tokens| f64::from(tokens.get()));
    let reasoning_tokens = answer.counts.reasoning.map(|tokens| f64::from(tokens.get()));
    let generation = ttft.zip(e2el).map(|(ttft, e2el)| e2el - ttft);
    let tpot_over = |tokens: f64| generation.filter(|_| tokens > 0.0).map(|time| time / tokens);
    let single = !answer.warnings.has(Warnings::N_GT_1);
    let adjusted = if answer.warnings.has(Warnings::HIDDEN_REASONING) {
        tokens.zip(reasoning_tokens).and_then(|(all, hidden)| tpot_over(all - hidden - 1.0))
    } else {
        let several = first_tokens.filter(|first| *first > 1.0);
        tokens.zip(several).and_then(|(all, first)| tpot_over(all - first))
    };
    let gaps: Vec<f64> = arrivals.windows(2).map(|pair| ms(pair[1] - pair[0])).collect();
    let (outcome, kind) = match record.outcome {
        Outcome::Failed(kind) => ("error", Some(kind.name())),
        other => (other.name(), None),
    };
    let figures = json!({
        "outcome": outcome,
        "error_kind": kind,
        "events": events.len(),
        "comments": answer.comments,
        "output_chunks": record.output_chunks(),
        "ttft_event": ttft_event,
        "ttft_ms": ttft,
        "ttfc_ms": text_at.first().copied().map(ms).filter(|_| ok),
        "e2el_ms": e2el,
        "last_output_ms": outputs.last().copied().map(ms),
        "icl_ms": gaps,
        "output_tokens": tokens,
        "tokens_source": source.map(|source| source.name()),
        "prompt_tokens": answer.counts.prompt.map(|tokens| tokens.get()),
        "reasoning_tokens": reasoning_tokens,
        "tpot_ms": tokens.filter(|_| single).and_then(|tokens| tpot_over(tokens - 1.0)),
        "tpot_adjusted_ms": adjusted,
        "first_chunk_tokens": first_tokens,
        "tokens_per_chunk": tokens.map(|tokens| tokens / outputs.len() as f64),
        "finish_reason": answer.finish_reason,
        "text": answer.text,
        "reasoning": answer.reasoning,
        "tool_args": answer.tool_arguments,
        "warnings": answer.warnings.names(),
        "http_status": answer.http_status,
        "retry_after_s": answer.retry_after.map(|span| span.s()),
        "error_code": answer.error_code,
        "message": answer.message,
        "location": answer.message,
    });
    match figures {
        Value::Object(figures) => figures,
        _ => unreachable!("an object was written above"),
    }
}

/// Equality with numbers compared as such and codes as text.
fn same(got: &Value, want: &Value) -> bool {
    match (got, want) {
        (Value::Number(got), Value::Number(want)) => {
            (got.as_f64().unwrap() - want.as_f64().unwrap()).abs() < 1e-9
        }
        (Value::Array(got), Value::Array(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| same(got, want))
        }
        (Value::String(got), Value::Number(want)) => *got == want.to_string(),
        _ => got == want,
    }
}

fn names(warnings: &Value) -> BTreeSet<String> {
    let names = warnings.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    names.map(|name| name.split(':').next().unwrap_or(name).to_owned()).collect()
}

fn differences(case: &Case, until: Until) -> Vec<String> {
    let got = figures(case.play(until));
    let mut expect = case.expect.clone();
    if expect["outcome"] != "error" {
        expect.entry("warnings").or_insert(json!([]));
    }
    let mut differences = Vec::new();
    for (key, want) in expect.iter().filter(|(key, _)| !NOT_CHECKED.contains(&key.as_str())) {
        let got = got.get(key).unwrap_or_else(|| panic!("{key} is not computed"));
        let equal = if key == "warnings" { names(got) == names(want) } else { same(got, want) };
        if !equal {
            differences.push(format!("{until:?}: {key}: got {got}, want {want}"));
        }
    }
    differences
}

fn check(id: &str) {
    let cases = case::streams();
    let case = cases.iter().find(|case| case.id.eq_ignore_ascii_case(id)).unwrap();
    let mut all = differences(case, Until::Answered);
    all.extend(differences(case, Until::Exhausted));
    assert!(all.is_empty(), "{id}:\n  {}", all.join("\n  "));
}

macro_rules! stream_cases {
    ($($id:ident)*) => {
        const IDS: &[&str] = &[$(stringify!($id)),*];

        $(#[test]
        fn $id() {
            check(stringify!($id));
        })*
    };
}

stream_cases! {
    s01 s02 s04 s05 s06 s07 s09 s10 s11 s14 s16 s18 s20
    p01 p02 p03 p05 p06 p07 p08 p10 p11 p13 p15 p16 p17 p19 p21 p22 p23 p25 p26 p28 p30
    a01 a02 a04 a06 a08 a09 a10 a11 a12 a15 a16
    h01 h03 h04 h05 h06 h08 h09 h11 h13 h14 h15 h17 h18
}

#[test]
fn every_stream_case_of_the_index_is_checked() {
    let ids: Vec<String> = case::streams().iter().map(|case| case.id.to_lowercase()).collect();
    assert_eq!(IDS, ids);
}

#[test]
fn h25_six_urls() {
    let cases = case::all();
    let case = cases.iter().find(|case| case["id"] == "H25").unwrap();
    let urls = case["expect"]["urls"].as_object().unwrap();
    assert_eq!(urls.len(), 6);
    for (url, want) in urls {
        let got = Api::OpenaiChat.endpoint_url(url, None, None);
        assert_eq!(got.as_deref(), Ok(want.as_str().unwrap()), "{url}");
    }
}

#[test]
fn captured_vllm_streams_have_the_right_token_counts() {
    for (file, api, prompt, arrivals, tokens) in [
        ("captures/vllm_chat.sse", Api::OpenaiChat, 8, 6, None),
        ("captures/vllm_comp.sse", Api::OpenaiCompletions, 5, 4, Some(1)),
    ] {
        let bytes = std::fs::read(case::testdata(file)).unwrap();
        let case = Case {
            id: file.to_owned(),
            api,
            segments: bytes
                .split_inclusive(|byte| *byte == b'\n')
                .scan((0, 0), |(end, at), line| {
                    *end += line.len();
                    *at += 5;
                    Some((*end, *at))
                })
                .collect(),
            bytes,
            close: wire::reader::Close::Eof,
            head: Some((200, "text/event-stream; charset=utf-8".to_owned())),
            expect: Map::new(),
        };
        let reading = case.play(Until::Answered);
        assert_eq!(reading.outcome, Outcome::Ok, "{file}");
        assert_eq!(reading.answer.warnings, Warnings::NONE, "{file}");
        let counts = &reading.answer.counts;
        assert_eq!(counts.prompt.map(|n| n.get()), Some(prompt), "{file}");
        assert_eq!(counts.usage.map(|n| n.get()), Some(arrivals), "{file}");
        let of_arrivals: Vec<u16> = reading
            .events
            .iter()
            .filter(|event| event.carries.is_arrival())
            .map(|event| event.tokens)
            .collect();
        assert_eq!(of_arrivals, vec![tokens.unwrap_or(0); arrivals as usize], "{file}");
        assert_eq!(reading.answer.first_event_tokens.map(|n| n.get() as u16), tokens, "{file}");
    }
}
