use measure::{Carries, FailureKind, Outcome, Warnings};
use wire::api::Api;
use wire::reader::{Close, Reader, ReaderOptions, Reading};

use super::*;
use crate::faults::KINDS;
use crate::script::Break;

const TOKENS: u32 = 128;

fn faulty(faults: &[&str], set: &[&str]) -> Modelled {
    let faults = faults.iter().map(|text| FaultShare::read(text).unwrap()).collect();
    with(set, ModelledConfig { faults, ..ModelledConfig::default() })
}

fn chat() -> Value {
    json!({"messages": [{"role": "user", "content": "one two"}], "stream": true,
        "max_tokens": TOKENS, "stream_options": {"include_usage": true}})
}

/// Instants of the tokens of one chat under these faults, milliseconds.
fn instants(faults: &[&str]) -> Vec<f64> {
    let mut model = faulty(faults, &[]);
    model.answer(&request(1, 0, CHAT, &chat()));
    Poured::all(&mut model).due_ms(1)
}

#[track_caller]
fn same(found: &[f64], expected: impl IntoIterator<Item = f64>) {
    let expected: Vec<f64> = expected.into_iter().collect();
    assert_eq!(found.len(), expected.len());
    let near = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-6;
    assert!(found.iter().zip(&expected).all(near), "{found:?}\n{expected:?}");
}

/// What a client reads that waits for the end of what comes.
fn read(model: &mut Modelled, request: &Request) -> Reading {
    let options = ReaderOptions { keep_text: true, ..ReaderOptions::default() };
    let mut reader = Reader::new(Api::OpenaiChat, options);
    let us = |at_ns: u64| u32::try_from((at_ns - ANCHOR.monotonic_ns) / 1_000).unwrap();
    let play = model.answer(request);
    for step in play.steps {
        if let crate::script::Action::Send(bytes) = step.action {
            reader.read(&bytes, us(play.start_ns + step.at_ns));
        }
    }
    let (mut piece, mut breaks, mut last_us) = (Piece::default(), None, 0);
    while let Some(at_ns) = model.wake_ns() {
        model.wake(at_ns);
        while model.pour(at_ns, &mut piece) {
            reader.read(&piece.bytes, us(at_ns));
            (breaks, last_us) = (piece.breaks, us(at_ns));
            piece.clear();
        }
    }
    let close = match breaks {
        Some(Break::Close) => Close::Eof,
        Some(Break::Reset) => Close::Reset,
        None if reader.framing_done() => Close::Done,
        None => Close::IdleTimeout,
    };
    reader.finish(close, last_us)
}

fn read_one(faults: &[&str]) -> Reading {
    read(&mut faulty(faults, &[]), &request(1, 0, CHAT, &chat()))
}

#[test]
fn a_client_reports_every_fault_as_its_entry_says() {
    let well = read_one(&[]);
    assert_eq!((well.outcome, well.answer.warnings), (Outcome::Ok, Warnings::NONE));
    for kind in KINDS {
        let reading = read_one(&[kind.name]);
        let told = (reading.outcome, reading.answer.warnings);
        assert_eq!(told, (kind.outcome, kind.warnings), "{}", kind.name);
        assert_ne!(reading, well, "{} does something", kind.name);
    }
}

#[test]
fn tokens_are_late_by_what_was_asked_for_and_no_more() {
    let well = instants(&[]);
    let until = |at: f64| well.iter().map(move |instant| instant.max(at));
    same(&instants(&["slow-first-token,for=200ms"]), until(well[0] + 200.0));

    let stalled = instants(&["stall,after=8,for=300ms"]);
    same(&stalled[..8], well[..8].to_vec());
    same(&stalled[8..], until(well[7] + 300.0).skip(8));
    same(&instants(&["stall,after=8"]), well[..8].to_vec());

    let last_of_four = |token: usize| well[(token | 3).min(well.len() - 1)];
    same(&instants(&["chunks,tokens=4"]), (0..well.len()).map(last_of_four));
    same(&instants(&["chunks,tokens=1000"]), well.iter().map(|_| *well.last().unwrap()));

    let flushed = |at: &f64| (at / 50.0).ceil() * 50.0;
    same(&instants(&["coalesce,every=50ms"]), well.iter().map(flushed));
    for name in ["comments", "role-only", "no-usage", "late-usage", "reasoning"] {
        same(&instants(&[name]), well.clone());
    }
}

#[test]
fn faults_that_can_be_together_act_one_after_the_other() {
    let well = instants(&[]);
    let both = instants(&["stall,after=6,for=1s", "chunks,tokens=4", "truncate,after=10"]);
    let on_again = well[5] + 1_000.0;
    let expected = [well[3]; 4].into_iter().chain([on_again; 6]);
    same(&both, expected);
    let held = instants(&["slow-first-token,for=100ms", "coalesce,every=70ms"]);
    let flushed = |at: f64| (at.max(well[0] + 100.0) / 70.0).ceil() * 70.0;
    same(&held, well.iter().map(|at| flushed(*at)));
}

#[test]
fn an_answer_that_is_cut_short_gives_its_seat_to_the_next() {
    for name in ["truncate", "disconnect", "reset", "error-event"] {
        // The first request is hit: the second has fewer tokens.
        let mut model = faulty(&[&format!("{name},after=5")], &["max_num_seqs=1"]);
        model.answer(&request(1, 0, COMPLETIONS, &streamed("a", 50, 1_000)));
        model.answer(&request(2, 1, COMPLETIONS, &streamed("b", 50, 5)));
        let poured = Poured::all(&mut model);
        let (first, second) = (poured.due_ms(1), poured.due_ms(2));
        assert_eq!((first.len(), second.len()), (5, 5), "{name}");
        // Six tokens of the first and the prompt of the second, and not a thousand.
        assert!(second[0] < first[4] + 50.0, "{name}: {second:?}");
        let scrape = Scrape::at(&mut model, END_MS);
        scrape.is("vllm:request_success_total", &["\"abort\""], 1.0);
        scrape.is("vllm:request_success_total", &["\"length\""], 1.0);
        scrape.is("vllm:num_requests_running", &[], 0.0);
        scrape.is("vllm:kv_cache_usage_perc", &[], 0.0);
        scrape.is("http_requests_total", &["2xx", COMPLETIONS], 2.0);
    }
}

#[test]
fn a_cut_ends_the_bytes_as_its_name_says() {
    let cut = |fault: &str| {
        let mut model = faulty(&[fault], &[]);
        model.answer(&request(1, 0, CHAT, &chat()));
        let poured = Poured::all(&mut model);
        let last = poured.0[&1].last().unwrap();
        assert!(last.last && last.tokens.is_empty(), "{fault}: {last:?}");
        assert_eq!(poured.due_ms(1).len(), 3);
        (poured.text(1), last.breaks)
    };
    let (text, breaks) = cut("truncate,after=3");
    assert!(text.ends_with("\n\n\r\n0\r\n\r\n") && !text.contains("DONE"), "{text}");
    assert!(!text.contains("\"finish_reason\":\"") && breaks.is_none());

    let (text, breaks) = cut("error-event,after=3");
    assert!(text.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n") && breaks.is_none(), "{text}");
    let error = text.split("data: ").find(|event| event.starts_with("{\"error\"")).unwrap();
    let error: Value = serde_json::from_str(error.split("\n\n").next().unwrap()).unwrap();
    assert_eq!(error["error"]["code"], 500);

    let (text, breaks) = cut("disconnect,after=3");
    assert_eq!(breaks, Some(Break::Close));
    assert_eq!(text.matches("data: ").count(), 5, "role, three tokens, a part: {text}");
    assert!(!text.ends_with('\n'), "{text}");
    assert_eq!(cut("reset,after=3").1, Some(Break::Reset));
    // An answer with as many tokens is whole.
    assert_eq!(read_one(&["reset,after=128"]).outcome, Outcome::Ok);
    assert_eq!(read_one(&["truncate,after=127"]).outcome, Outcome::Failed(FailureKind::Truncated));
    assert_eq!(read_one(&["truncate,after=0"]).events.len(), 0);
}

#[test]
fn a_refusal_costs_the_engine_nothing() {
    let mut model = faulty(&["refuse"], &[]);
    let reading = read(&mut model, &request(1, 0, CHAT, &chat()));
    assert_eq!(reading.answer.http_status, Some(429));
    assert_eq!(reading.answer.retry_after, Some(measure::Span::from_ms(1_000)));
    let whole = request(2, 1, "/v1/embeddings", &json!({"input": "a"}));
    let told = text_of(model.answer(&whole));
    assert!(told.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{told}");
    assert!(told.contains("\r\nretry-after: 1\r\n"), "{told}");
    let scrape = Scrape::at(&mut model, END_MS);
    scrape.is("vllm:prompt_tokens_total", &[], 0.0);
    scrape.is("vllm:request_success_total", &["\"abort\""], 0.0);
    scrape.is("http_requests_total", &["4xx", CHAT], 1.0);
    let mut model = faulty(&["refuse,status=503,retry-after=none"], &[]);
    let told = text_of(model.answer(&whole));
    assert!(told.starts_with("HTTP/1.1 503 ") && !told.contains("retry-after"), "{told}");
}

/// Instants of events that carry this, milliseconds.
fn carrying(reading: &Reading, carries: Carries) -> Vec<f64> {
    let events = reading.events.iter().filter(|event| event.carries.any(carries));
    events.map(|event| f64::from(event.at_us) / 1e3).collect()
}

#[test]
fn what_is_no_token_comes_when_it_was_asked_for() {
    let well = read_one(&[]);
    let first = carrying(&well, Carries::TEXT)[0];
    same(&carrying(&well, Carries::ROLE), [first]);
    same(&carrying(&read_one(&["role-only"]), Carries::ROLE), [0.0]);

    let late = read_one(&["late-usage,for=2s"]);
    let finish = carrying(&well, Carries::FINISH);
    same(&carrying(&late, Carries::FINISH), finish.clone());
    same(&carrying(&late, Carries::USAGE), [finish[0] + 2_000.0]);
    same(&carrying(&late, Carries::DONE), [finish[0] + 2_000.0]);

    let comments = read_one(&["comments,every=100ms"]).answer.comments;
    assert_eq!(comments, (finish[0] / 100.0).floor() as u32 + 1);
    assert_eq!(read_one(&["no-usage"]).answer.counts.usage, None);
}

#[test]
fn the_first_tokens_are_reasoning_in_the_member_that_was_asked_for() {
    for field in ["reasoning_content", "reasoning"] {
        let mut model =
            faulty(&[&format!("reasoning,tokens=5,field={field}")], &["num_speculative_tokens=3"]);
        let reading = read(&mut model, &request(1, 0, CHAT, &chat()));
        let words = |text: &Option<String>| text.as_ref().unwrap().split_whitespace().count();
        assert_eq!(words(&reading.answer.reasoning), 5);
        assert_eq!(words(&reading.answer.text), TOKENS as usize - 5);
        assert_eq!(reading.answer.counts.reasoning, Some(measure::Tokens::new(5)));
        assert_eq!(reading.answer.counts.usage, Some(measure::Tokens::new(TOKENS)));
        let mut model = faulty(&[&format!("reasoning,tokens=5,field={field}")], &[]);
        model.answer(&request(1, 0, CHAT, &chat()));
        let events = Poured::all(&mut model).events(1);
        let member = |event: &&Value| event["choices"][0]["delta"].get(field).is_some();
        assert_eq!(events.iter().filter(member).count(), 5, "{field}");
    }
    // An answer that is shorter is reasoning as a whole.
    let reading = read_one(&["reasoning,tokens=1000"]);
    assert_eq!(reading.answer.counts.reasoning, Some(measure::Tokens::new(TOKENS)));
    assert_eq!(reading.answer.finish_reason.as_deref(), Some("length"));
}

#[test]
fn a_header_forces_a_fault_where_the_server_allows_it() {
    let asks = |allowed: bool, path, body: &Value, header: &str| {
        let faults = vec![FaultShare::read("chunks").unwrap()];
        let config =
            ModelledConfig { faults, faults_by_header: allowed, ..ModelledConfig::default() };
        let mut model = with(&[], config);
        let mut request = request(1, 0, path, body);
        request.headers.push(("X-Goodput-Fault".into(), header.into()));
        let reading = read(&mut model, &request);
        (reading.outcome, reading.events.len(), reading.answer.message.unwrap_or_default())
    };
    let (outcome, events, _) = asks(true, CHAT, &chat(), "truncate,after=6");
    // The role and six tokens: what is drawn is left out.
    assert_eq!((outcome, events), (Outcome::Failed(FailureKind::Truncated), 7));
    let (outcome, events, _) = asks(false, CHAT, &chat(), "truncate,after=6");
    assert_eq!((outcome, events), (Outcome::Ok, 1 + TOKENS as usize / 4 + 2));
    let refused = Outcome::Failed(FailureKind::HttpStatus);
    let whole = json!({"messages": [{"role": "user", "content": "a"}]});
    for (path, body, header, words) in [
        (CHAT, &chat(), "trunc", "x-goodput-fault: there is no fault"),
        (CHAT, &chat(), "truncate,share=1", "its keys are after"),
        (CHAT, &whole, "truncate", "truncate hits streamed answers only"),
        (COMPLETIONS, &streamed("a", 3, 3), "role-only", "of chat requests only"),
    ] {
        let (outcome, _, message) = asks(true, path, body, header);
        assert_eq!(outcome, refused, "{header}");
        assert!(message.contains(words), "{header}: {message}");
    }
}

#[test]
fn a_client_that_leaves_a_stalled_answer_leaves_nothing_behind() {
    let mut model = faulty(&["stall", "comments,every=10ms"], &[]);
    model.answer(&request(1, 0, COMPLETIONS, &streamed("a", 10, 50)));
    let end_ns = ANCHOR.monotonic_ns + 10_000 * MS;
    let mut poured = Poured::default();
    poured.look(&mut model, end_ns);
    assert_eq!(poured.due_ms(1).len(), 8);
    assert_eq!(poured.text(1).matches(": still here\n\n").count(), 1_001);
    assert!(model.wake_ns().is_some(), "comments go on");
    model.left(1, end_ns);
    poured.look(&mut model, end_ns + 10 * MS);
    assert_eq!(model.wake_ns(), None);
    // The engine had finished it.
    let scrape = Scrape::at(&mut model, END_MS);
    scrape.is("vllm:request_success_total", &["\"length\""], 1.0);
    scrape.is("vllm:request_success_total", &["\"abort\""], 0.0);
}
