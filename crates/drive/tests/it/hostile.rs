//! Peers that send without end, too slowly, in crumbs or too early.

use fake::{Limits, Listen, Routes, Script, Server};
use measure::{FailureKind, Outcome, Span};
use workload::PromptSource;

use crate::build::{Bench, DONE, answer, chunk, closed, ending, finish, stream, text};
use crate::process::{argument, in_child, peak_bytes};

fn playing(script: Script) -> Server {
    Server::start_scripted(Routes::new().on("/", script)).unwrap()
}

#[test]
fn an_endless_body_of_keep_alives_is_stopped_by_the_total_time_out() {
    let comments = ": still here\n\n".repeat(1_000);
    let server = playing(stream().endless(0, 1, chunk(&comments)));
    let mut bench = Bench::at(&server.url());
    bench.request_timeout = Span::from_ms(250);
    let record = bench.run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::TotalTimeout));
    assert!(record.answer.body_bytes > 100_000, "{} bytes", record.answer.body_bytes);
    assert!(record.events.is_empty());
    let took = record.stamps.ended_at.unwrap() - record.stamps.sent_at.unwrap();
    assert!((Span::from_ms(250)..Span::from_ms(2_000)).contains(&took), "{took}");
}

#[test]
fn an_endless_line_is_stopped_by_its_limit_in_bounded_memory() {
    const NAME: &str = "hostile::an_endless_line_is_stopped_by_its_limit_in_bounded_memory";
    let Some(url) = argument() else {
        let server = playing(stream().chunk(0, "data: {\"x\":\"").endless(
            0,
            0,
            chunk(&"a".repeat(64 << 10)),
        ));
        return in_child(NAME, &server.url());
    };
    let before = peak_bytes();
    let record = Bench::at(&url).run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::TooLarge));
    // The line's limit is 8 MiB, and a buffer that grows by doubling holds at
    // most three times as much for a moment.
    assert!(record.answer.body_bytes >= 8 << 20);
    let grown = peak_bytes() - before;
    assert!(grown < 64 << 20, "memory grew by {grown} bytes");
}

#[test]
fn slow_headers_do_not_start_the_idle_clock() {
    let mut script = Script::new();
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    for (place, byte) in head.bytes().enumerate() {
        script = script.send(2 * place as u64, [byte]);
    }
    let server = playing(ending(script.chunk(400, text("one")), 410));
    let mut bench = Bench::at(&server.url());
    bench.idle_timeout = Span::from_ms(150);
    let record = bench.run().one();
    assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.answer.message);
    let sent_at = record.stamps.sent_at.unwrap();
    let first_byte = record.stamps.first_byte_at.unwrap() - sent_at;
    let headers = record.stamps.headers_at.unwrap() - sent_at;
    assert!(headers >= Span::from_ms(150), "headers complete after {headers}");
    assert!(headers - first_byte >= Span::from_ms(100), "first byte after {first_byte}");
}

#[test]
fn an_answer_in_single_bytes_reads_as_in_one_piece() {
    let crumbs = |at_ms: u64, script: Script, bytes: &str| {
        bytes.bytes().fold(script, |script, byte| script.send(at_ms, [byte]))
    };
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut script = crumbs(0, Script::new(), head);
    script = crumbs(0, script, &chunk(&text("Grüße ")));
    script = crumbs(20, script, &chunk(&text("世界")));
    script = crumbs(20, script, &chunk(&finish("stop")));
    script = crumbs(20, script, &chunk(DONE));
    let server = playing(crumbs(20, script, "0\r\n\r\n"));
    let mut bench = Bench::at(&server.url()).load(closed(1), 2);
    bench.keep_text = true;
    let ran = bench.run();
    ran.all_ok();
    for record in &ran.records {
        assert_eq!(record.answer.text.as_deref(), Some("Grüße 世界"));
        assert_eq!(record.output_chunks(), 2);
    }
}

#[test]
fn an_answer_before_the_whole_request_was_read_is_the_answer() {
    let listen =
        Listen { limits: Limits { body_bytes: 1_000, ..Limits::default() }, ..Listen::default() };
    let server = Server::start_with(listen, Routes::new().on("/", answer(0))).unwrap();
    let mut bench = Bench::at(&server.url());
    bench.spec.prompts = PromptSource::fixed("a very long prompt ".repeat(200_000));
    let record = bench.run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::HttpStatus));
    assert_eq!(record.answer.http_status, Some(413), "{:?}", record.answer.message);
    let stamps = &record.stamps;
    assert!(stamps.sent_at <= stamps.first_byte_at && stamps.first_byte_at <= stamps.ended_at);
}

#[test]
fn a_peer_that_speaks_first_and_no_http_is_named() {
    let server = Server::start_scripted(
        Routes::new().greet(Script::new().send(0, "220 mail ready\r\n\r\n")),
    )
    .unwrap();
    let record = Bench::at(&server.url()).run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::MalformedHttp));
}

#[test]
fn a_peer_that_closes_at_once_is_a_disconnect_and_is_asked_twice_at_most() {
    let server = Server::start_scripted(Routes::new().greet(Script::new().close(0))).unwrap();
    let record = Bench::at(&server.url()).run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::Disconnected));
    assert!(record.answer.reconnects <= 1);
    assert!(server.counters().accepted <= 3);
}

#[test]
fn invalid_utf8_in_a_text_is_an_answer_or_a_failure_and_no_panic() {
    let broken = [
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a".as_slice(),
        b"\xff\xfe",
        b"b\"}}]}\n\n",
    ]
    .concat();
    let server = playing(ending(stream().chunk(0, text("one")).chunk(1, broken), 2));
    let mut bench = Bench::at(&server.url());
    bench.keep_text = true;
    let record = bench.run().one();
    let read = [Outcome::Ok, Outcome::Failed(FailureKind::MalformedEvent)];
    assert!(read.contains(&record.outcome), "{:?}", record.outcome);
}
