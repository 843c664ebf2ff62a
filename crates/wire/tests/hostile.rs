//! Any bytes, cut anywhere: the same answer, never a panic, bounded memory.

mod case;

use std::io::Write as _;

use case::{Case, Until};
use measure::{Answer, Carries, Event, FailureKind, Outcome, Warnings};
use proptest::prelude::*;
use wire::api::{APIS, Api};
use wire::http1::Head;
use wire::reader::{Close, Limits, Progress, Reader, ReaderOptions, Reading};

/// What must not depend on how the bytes were cut: everything but the marks of
/// shared reads.
fn essence(reading: Reading) -> (Vec<Event>, Answer, Outcome) {
    let shared = Carries::SHARED_READ.bits();
    let unshared = |event: Event| Event {
        carries: Carries::from_bits(event.carries.bits() & !shared),
        ..event
    };
    (reading.events.iter().map(unshared).collect(), reading.answer, reading.outcome)
}

/// Plays a case in the given pieces, all at one instant, as the load generator
/// does: it stops when the reader asks for no more.
fn in_pieces<'b>(
    case: &Case,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> (Vec<Event>, Answer, Outcome) {
    let mut reader = case.reader();
    for piece in pieces {
        case.feed(&mut reader, piece, 5);
    }
    essence(reader.finish(case.close, 9))
}

#[test]
fn any_single_cut_of_any_case_changes_nothing() {
    for case in case::streams() {
        let want = in_pieces(&case, [&case.bytes[..]]);
        for cut in 1..case.bytes.len() {
            let (one, two) = case.bytes.split_at(cut);
            assert_eq!(in_pieces(&case, [one, two]), want, "{} cut at {cut}", case.id);
        }
        let bytes = in_pieces(&case, case.bytes.chunks(1));
        assert_eq!(bytes, want, "{} byte by byte", case.id);
    }
}

#[test]
fn line_ends_of_every_kind_give_the_same_answer() {
    for mut case in case::streams().into_iter().filter(|case| case.head.is_some()) {
        if case.bytes.contains(&b'\r') || case.api == Api::Ollama {
            continue;
        }
        let want = essence(case.play(Until::Exhausted)).2;
        let (events, mut answer, _) = in_pieces(&case, [&case.bytes[..]]);
        let text = String::from_utf8(case.bytes.clone()).unwrap();
        for end in ["\r", "\r\n"] {
            case.bytes = text.replace('\n', end).into_bytes();
            let (new_events, new_answer, outcome) = in_pieces(&case, case.bytes.chunks(7));
            answer.body_bytes = new_answer.body_bytes;
            assert_eq!((&new_events, &new_answer), (&events, &answer), "{} {end:?}", case.id);
            assert_eq!(outcome, want);
        }
    }
}

/// Reads `bytes` in pieces of `piece` bytes under small limits and checks that
/// the result is within them.
fn read_bounded(
    api: Api,
    head: Option<&Head>,
    bytes: &[u8],
    piece: usize,
    close: Close,
) -> Reading {
    let limits = Limits { head: 512, line: 256, event: 256, body: 4096, events: 16 };
    let mut reader =
        Reader::new(api, ReaderOptions { keep_text: true, limits, ..ReaderOptions::default() });
    if let Some(head) = head {
        reader.read_head(head, 1);
    }
    let mut at_us = 1;
    for piece in bytes.chunks(piece.max(1)) {
        at_us += 1;
        match head {
            Some(_) => reader.read_body(piece, at_us),
            None => reader.read(piece, at_us),
        };
    }
    let reading = reader.finish(close, at_us + 1);
    assert!(reading.events.len() <= limits.events);
    let answer = &reading.answer;
    let kept = [&answer.text, &answer.reasoning, &answer.tool_arguments];
    let kept: usize = kept.into_iter().map(|text| text.as_ref().map_or(0, String::len)).sum();
    // A body of 4 KiB holds no more text than that, but for characters that
    // were broken and became three bytes each.
    assert!(kept <= 3 * 4096 + 256);
    for text in [&answer.message, &answer.error_code, &answer.finish_reason] {
        // A broken byte becomes a character of three.
        assert!(text.as_ref().is_none_or(|text| text.len() <= 2048));
    }
    assert!(reading.ended_us <= at_us + 1);
    assert!(reading.events.at_us.is_sorted());
    reading
}

fn api() -> impl Strategy<Value = Api> {
    prop::sample::select(APIS.iter().map(|entry| entry.api).collect::<Vec<_>>())
}

fn close() -> impl Strategy<Value = Close> {
    prop::sample::select(vec![
        Close::Done,
        Close::Eof,
        Close::Reset,
        Close::IdleTimeout,
        Close::TotalTimeout,
        Close::Cancelled,
    ])
}

fn content_type() -> impl Strategy<Value = Option<&'static str>> {
    prop::sample::select(vec![
        None,
        Some("text/event-stream"),
        Some("application/x-ndjson"),
        Some("application/json"),
        Some("text/html"),
    ])
}

/// Pieces that hostile streams are made of: what the decoders look for.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    let known = [
        "data: ",
        "data:",
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        ":c",
        "event: error\n",
        "[DONE]",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\ud83d",
        "null",
        "NaN",
        ",",
        ":",
        "\"choices\":[{\"delta\":",
        "{\"content\":\"x\"}",
        "}]}",
        "\"usage\":{\"completion_tokens\":",
        "4294967296",
        "-1",
        "1e308",
        "\"error\":",
        "\"type\":\"message_stop\"",
        "\"text\":\"ab\"",
        "\"done\":true",
        "\"token\":{\"text\":\"x\"}",
        "\"meta_info\":{}",
        "\u{feff}",
        "HTTP/1.1 200 OK\r\n",
        "content-type: text/event-stream\r\n",
        "transfer-encoding: chunked\r\n",
        "content-length: 5\r\n",
        "content-encoding: gzip\r\n",
        "\r\n\r\n",
        "5\r\n",
        "0\r\n\r\n",
        "ffffffffffffffff\r\n",
    ];
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..24),
    ]
}

fn hostile() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(fragment(), 0..60).prop_map(|parts| parts.concat())
}

/// A head that is right but for at most one line of it.
fn head() -> impl Strategy<Value = Vec<u8>> {
    let lines = vec![
        "transfer-encoding: chunked",
        "transfer-encoding: gzip",
        "content-length: 10",
        "content-length: -1",
        "content-length: 18446744073709551616",
        "content-type: text/event-stream",
        "content-type: application/json; charset=\"",
        "content-encoding: gzip",
        "content-encoding: br",
        "content-encoding: deflate",
        "retry-after: soon",
        "location: http://x/",
        "connection: close",
        " folded",
        ": nameless",
        "no colon",
        "x-served-by: \u{1}",
    ];
    let status = prop_oneof![
        Just("HTTP/1.1 200 OK".to_owned()),
        (0u32..1100).prop_map(|status| format!("HTTP/1.1 {status} X")),
        Just("HTTP/1.0 200".to_owned()),
        Just("HTTP/2 200".to_owned()),
    ];
    (status, prop::collection::vec(prop::sample::select(lines), 0..6)).prop_map(
        |(status, lines)| format!("{status}\r\n{}\r\n\r\n", lines.join("\r\n")).into_bytes(),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_of_a_connection_are_read(
        api in api(), bytes in prop_oneof![hostile(), any::<Vec<u8>>()],
        piece in 1usize..40, close in close(),
    ) {
        read_bounded(api, None, &bytes, piece, close);
    }

    #[test]
    fn any_head_and_any_body_are_read(
        api in api(), head in head(), body in hostile(), piece in 1usize..40, close in close(),
    ) {
        let bytes = [head, body].concat();
        let cut = read_bounded(api, None, &bytes, piece, close);
        let whole = read_bounded(api, None, &bytes, bytes.len(), close);
        prop_assert_eq!(cut.outcome, whole.outcome);
    }

    #[test]
    fn any_body_of_any_type_is_read(
        api in api(), content_type in content_type(), bytes in hostile(),
        piece in 1usize..40, close in close(),
    ) {
        let head = Head::new(200, content_type);
        let cut = read_bounded(api, Some(&head), &bytes, piece, close);
        let whole = read_bounded(api, Some(&head), &bytes, bytes.len(), close);
        prop_assert_eq!(cut.outcome, whole.outcome);
    }

    #[test]
    fn damaged_cases_are_read(
        index: prop::sample::Index, at: prop::sample::Index, new in fragment(),
        removed in 0usize..9, piece in 1usize..200, close in close(),
    ) {
        let cases = case::streams();
        let case = &cases[index.index(cases.len())];
        let at = at.index(case.bytes.len());
        let mut bytes = case.bytes.clone();
        bytes.splice(at..(at + removed).min(case.bytes.len()), new);
        let mut reader = case.reader();
        for piece in bytes.chunks(piece) {
            case.feed(&mut reader, piece, 5);
        }
        let reading = reader.finish(close, 9);
        prop_assert!(reading.events.len() <= bytes.len());
    }

    #[test]
    fn any_cuts_of_any_case_change_nothing(
        index: prop::sample::Index,
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let cases = case::streams();
        let case = &cases[index.index(cases.len())];
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(case.bytes.len())).collect();
        cuts.push(case.bytes.len());
        cuts.sort_unstable();
        let pieces = cuts.iter().scan(0, |start, &end| {
            let piece = &case.bytes[*start..end];
            *start = end;
            Some(piece)
        });
        prop_assert_eq!(in_pieces(case, pieces), in_pieces(case, [&case.bytes[..]]));
    }
}

const SSE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

fn read(head: &str, body: &[u8], close: Close) -> Reading {
    let bytes = [head.as_bytes(), b"\r\n", body].concat();
    let mut reader = Reader::new(Api::OpenaiChat, ReaderOptions::default());
    reader.read(&bytes, 10);
    reader.finish(close, 20)
}

#[test]
fn every_failure_that_an_answer_can_show_is_told() {
    let text = br#"data: {"choices":[{"delta":{"content":"x"}}]}"#;
    let text = [&text[..], b"\n\n"].concat();
    let fixed = format!("{SSE}content-length: {}\r\n", text.len());
    let event = |data: &str| format!("data: {data}\n\n").into_bytes();
    let mut line = b"data: ".to_vec();
    line.resize(Limits::DEFAULT.line + 10, b'x');
    let in_band = event(r#"{"error":{"message":"m","code":"c"}}"#);
    let aborted = event(r#"{"choices":[{"delta":{},"finish_reason":"abort"}]}"#);
    let table: &[(&str, &[u8], Close, FailureKind)] = &[
        ("HTTP/1.1 500 X\r\n", b"", Close::Eof, FailureKind::HttpStatus),
        ("HTTP/1.1 302 X\r\nlocation: /\r\n", b"", Close::Eof, FailureKind::Redirect),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n",
            b"x",
            Close::Eof,
            FailureKind::BadContentType,
        ),
        (
            &format!("{SSE}content-encoding: zstd\r\n"),
            b"x",
            Close::Eof,
            FailureKind::UnsupportedEncoding,
        ),
        (SSE, &event("{oops"), Close::Eof, FailureKind::MalformedEvent),
        (
            &format!("{SSE}transfer-encoding: chunked\r\n"),
            b"oops",
            Close::Eof,
            FailureKind::MalformedHttp,
        ),
        (SSE, &in_band, Close::Eof, FailureKind::InBand),
        (SSE, &aborted, Close::Eof, FailureKind::Aborted),
        (SSE, &text, Close::Eof, FailureKind::Truncated),
        (&fixed, &text, Close::Reset, FailureKind::Truncated),
        (&fixed, &text[1..], Close::Eof, FailureKind::Disconnected),
        (SSE, &text, Close::Reset, FailureKind::Disconnected),
        (SSE, &text, Close::IdleTimeout, FailureKind::IdleTimeout),
        (SSE, &text, Close::TotalTimeout, FailureKind::TotalTimeout),
        (SSE, &line, Close::Eof, FailureKind::TooLarge),
    ];
    for (head, body, close, kind) in table {
        assert_eq!(read(head, body, *close).outcome, Outcome::Failed(*kind), "{head}");
    }
    assert_eq!(read(SSE, &text, Close::Cancelled).outcome, Outcome::Cancelled);
}

#[test]
fn nothing_at_all_is_the_fault_of_the_close() {
    for (close, outcome) in [
        (Close::Eof, Outcome::Failed(FailureKind::Disconnected)),
        (Close::Reset, Outcome::Failed(FailureKind::Disconnected)),
        (Close::IdleTimeout, Outcome::Failed(FailureKind::IdleTimeout)),
        (Close::TotalTimeout, Outcome::Failed(FailureKind::TotalTimeout)),
        (Close::Cancelled, Outcome::Cancelled),
    ] {
        for api in APIS {
            let reader = Reader::new(api.api, ReaderOptions::default());
            assert!(!reader.first_byte_seen() && !reader.answer_done() && !reader.reusable());
            let reading = reader.finish(close, 3);
            assert_eq!((reading.outcome, reading.ended_us), (outcome, 3));
        }
    }
}

#[test]
fn an_answer_that_is_whole_stays_whole_however_it_closes() {
    let finish = br#"data: {"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}"#;
    let chunk = |data: &[u8]| {
        let mut chunk = format!("{:x}\r\n", data.len()).into_bytes();
        chunk.extend_from_slice(data);
        chunk.extend_from_slice(b"\r\n");
        chunk
    };
    let head = format!("{SSE}transfer-encoding: chunked\r\n");
    let body = chunk(&[&finish[..], b"\n\n"].concat());
    for close in [Close::Eof, Close::Reset, Close::IdleTimeout, Close::TotalTimeout] {
        let reading = read(&head, &body, close);
        assert_eq!(reading.outcome, Outcome::Ok, "{close:?}");
        assert!(reading.answer.warnings.has(Warnings::FRAMING_ERROR));
        assert!(reading.answer.warnings.has(Warnings::MISSING_DONE));
    }
    let broken = [&body[..], b"oops"].concat();
    let reading = read(&head, &broken, Close::Eof);
    assert_eq!(reading.outcome, Outcome::Ok);
    assert!(reading.answer.warnings.has(Warnings::FRAMING_ERROR));
    assert_eq!(reading.answer.message, None);
}

#[test]
fn h20_a_connection_is_reusable_only_behind_a_whole_response() {
    let head = format!("{SSE}transfer-encoding: chunked\r\n\r\n");
    let mut reader = Reader::new(Api::OpenaiChat, ReaderOptions::default());
    assert_eq!(reader.read(head.as_bytes(), 1), Progress::More);
    assert_eq!(reader.read(b"e\r\ndata: [DONE]\n\n\r\n", 2), Progress::AnswerOver);
    assert!(reader.answer_done() && !reader.framing_done() && !reader.reusable());
    assert_eq!(reader.read(b"0\r\n\r\n", 3), Progress::Over);
    assert!(reader.framing_done() && reader.reusable());
    let reading = reader.finish(Close::Done, 4);
    assert_eq!((reading.ended_us, reading.first_byte_us), (2, Some(1)));
    assert_eq!(reading.headers_us, Some(1));
    assert_eq!(reading.outcome, Outcome::Empty);
}

#[test]
fn s20_the_request_ends_at_done_and_later_bytes_move_nothing() {
    let cases = case::streams();
    let case = cases.iter().find(|case| case.id == "S20").unwrap();
    for until in [Until::Answered, Until::Exhausted] {
        assert_eq!(case.play(until).ended_us, 60_000, "{until:?}");
    }
}

#[test]
fn limits_end_a_body_that_does_not_end() {
    let limits = Limits { head: 512, line: 256, event: 256, body: 4096, events: 16 };
    let options = ReaderOptions { keep_text: true, limits, ..ReaderOptions::default() };
    let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n".to_vec();
    let endless: &[(&str, Vec<u8>)] = &[
        ("a line", vec![b'x'; 64]),
        ("comments", b": ping\n".to_vec()),
        ("events", event),
        ("data lines", b"data: {\n".to_vec()),
    ];
    for (what, piece) in endless {
        let mut reader = Reader::new(Api::OpenaiChat, options);
        reader.read_head(&Head::new(200, Some("text/event-stream")), 0);
        let reads = (1..10_000).find(|at| reader.read_body(piece, *at) == Progress::Over);
        let at = reads.unwrap_or_else(|| panic!("{what} never end"));
        let reading = reader.finish(Close::Done, at);
        assert_eq!(reading.outcome, Outcome::Failed(FailureKind::TooLarge), "{what}");
        assert_eq!(reading.ended_us, at, "{what}");
        assert!(reading.answer.message.is_some_and(|message| message.contains("than")), "{what}");
    }
}

#[test]
fn an_event_of_a_gigabyte_ends_at_the_limit() {
    let head = format!("{SSE}transfer-encoding: chunked\r\n\r\n40000000\r\ndata: {{\"x\":\"");
    let (piece, whole) = (vec![b'x'; 64 << 10], vec![b'x'; 32 << 20]);
    for (what, pieces) in [("in reads", vec![&piece[..]; 16 << 10]), ("at once", vec![&whole[..]])]
    {
        let mut reader = Reader::new(Api::OpenaiChat, ReaderOptions::default());
        assert_eq!(reader.read(head.as_bytes(), 1), Progress::More);
        let taken = pieces.iter().position(|piece| reader.read(piece, 2) == Progress::Over);
        let taken: usize = pieces[..=taken.unwrap()].iter().map(|piece| piece.len()).sum();
        let reading = reader.finish(Close::Done, 3);
        assert_eq!(reading.outcome, Outcome::Failed(FailureKind::TooLarge), "{what}");
        assert!(
            what == "at once" || taken <= Limits::DEFAULT.line + piece.len(),
            "{what}: {taken}"
        );
    }
}

#[test]
fn a_decompression_bomb_is_too_large() {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        bomb.write_all(&[b':'; 1 << 10]).unwrap();
        bomb.write_all(b"\n").unwrap();
    }
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 1024);
    let limits = Limits { body: 16 << 10, ..Limits::DEFAULT };
    let mut reader =
        Reader::new(Api::OpenaiChat, ReaderOptions { limits, ..ReaderOptions::default() });
    reader.read(format!("{SSE}content-encoding: gzip\r\n\r\n").as_bytes(), 1);
    assert_eq!(reader.read(&bomb, 2), Progress::Over);
    let reading = reader.finish(Close::Done, 3);
    assert_eq!(reading.outcome, Outcome::Failed(FailureKind::TooLarge));
}

#[test]
fn refusals_are_explained_and_keys_are_not_repeated() {
    for (body, message, code) in [
        (r#"{"error":{"message":"m","type":"t","code":null}}"#, "m", Some("t")),
        (r#"{"error":"m"}"#, "m", None),
        (r#"{"object":"error","message":"m","type":"B","code":400}"#, "m", Some("400")),
        (r#"{"detail":"m"}"#, "m", None),
        (r#"{"detail":[{"loc":["body"],"msg":"m","type":"missing"}]}"#, "m", None),
        (r#"{"error":"m","error_type":"validation"}"#, "m", Some("validation")),
        ("  plain text \n", "plain text", None),
        (r#"["odd"]"#, r#"["odd"]"#, None),
        (
            r#"{"error":{"message":"Incorrect API key: 'sk-abcdefgh123'. Bearer abcdefghijkl"}}"#,
            "Incorrect API key: '[redacted]'. Bearer [redacted]",
            None,
        ),
    ] {
        let head = format!("HTTP/1.1 400 X\r\ncontent-length: {}\r\n", body.len());
        let answer = read(&head, body.as_bytes(), Close::Eof).answer;
        assert_eq!(answer.message.as_deref(), Some(message), "{body}");
        assert_eq!(answer.error_code.as_deref(), code, "{body}");
    }
    let long = "é".repeat(9_000);
    let message = read("HTTP/1.1 502 X\r\n", long.as_bytes(), Close::Eof).answer.message;
    assert_eq!(message.map(|message| message.len()), Some(500));
}

#[test]
fn s07_events_that_share_a_read_are_marked() {
    let cases = case::streams();
    let case = cases.iter().find(|case| case.id == "S07").unwrap();
    let events = case.play(Until::Answered).events;
    let shared: Vec<bool> =
        events.iter().map(|event| event.carries.any(Carries::SHARED_READ)).collect();
    assert_eq!(shared, [false, true, true, false, true, false, true]);
}

#[test]
fn h14_the_first_bytes_of_a_wrong_type_are_shown() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: Text/HTML; charset=utf-8\r\n";
    let answer = read(head, b"<title>Sign in</title>", Close::Eof).answer;
    assert_eq!(answer.message.as_deref(), Some("text/html: <title>Sign in</title>"));
}

#[test]
fn a_compressed_refusal_is_still_explained() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(br#"{"error":{"message":"slow down"}}"#).unwrap();
    let head = "HTTP/1.1 429 X\r\nretry-after: 7\r\ncontent-encoding: gzip\r\nx-served-by: b\r\n";
    let answer = read(head, &packed.finish().unwrap(), Close::Eof).answer;
    assert_eq!(answer.message.as_deref(), Some("slow down"));
    assert_eq!(answer.retry_after.map(|span| span.s()), Some(7.0));
    assert_eq!(answer.served_by.as_deref(), Some("b"));
}

#[test]
fn h13_a_whole_body_is_judged_by_what_is_in_it() {
    let head = |body: &str| {
        let length = body.len();
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n")
    };
    let whole = r#"{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}"#;
    let mute = r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#;
    for (body, outcome) in [
        (whole, Outcome::Ok),
        (mute, Outcome::Empty),
        (r#"{"error":{"message":"m"}}"#, Outcome::Failed(FailureKind::InBand)),
        (r#"{"object":"error","message":"m"}"#, Outcome::Failed(FailureKind::InBand)),
        ("{oops", Outcome::Failed(FailureKind::MalformedEvent)),
        ("", Outcome::Failed(FailureKind::Truncated)),
    ] {
        let reading = read(&head(body), body.as_bytes(), Close::Eof);
        assert_eq!(reading.outcome, outcome, "{body}");
        assert!(reading.events.iter().all(|event| !event.carries.is_arrival()), "{body}");
    }
    let cut = read(&head(whole), &whole.as_bytes()[..30], Close::Reset);
    assert_eq!(cut.outcome, Outcome::Failed(FailureKind::Disconnected));
    let row = read(&head(whole), whole.as_bytes(), Close::Eof).events.get(0);
    assert_eq!(row.carries, Carries::WHOLE.with(Carries::FINISH));
}
