//! What a peer may do with the bytes of an answer: each is an outcome, told in
//! time, and no other request suffers.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};

use fake::{Request, Routes, Script, Server};
use flate2::Compression;
use flate2::write::GzEncoder;
use measure::{FailureKind, Outcome, Span, Warnings};

use crate::build::{Bench, DONE, answer, chunk, closed, ending, even, finish, stream, text};
use crate::process::{argument, in_child, peak_bytes};

fn playing(script: Script) -> Server {
    Server::start_scripted(Routes::new().on("/", script)).unwrap()
}

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A whole answer of two tokens as one piece.
fn whole() -> String {
    let events = [text("one"), text("two"), finish("stop"), DONE.to_owned()];
    format!("{HEAD}{}0\r\n\r\n", events.map(|event| chunk(&event)).concat())
}

#[test]
fn endless_headers_are_too_large_in_bounded_memory() {
    const NAME: &str = "bytes::endless_headers_are_too_large_in_bounded_memory";
    let Some(url) = argument() else {
        let lines = "x-more: and more\r\n".repeat(4_000);
        let server = playing(Script::new().send(0, "HTTP/1.1 200 OK\r\n").endless(0, 0, lines));
        return in_child(NAME, &server.url());
    };
    let before = peak_bytes();
    let record = Bench::at(&url).run().one();
    assert_eq!(record.outcome, Outcome::Failed(FailureKind::TooLarge));
    let said = record.answer.message.unwrap_or_default();
    assert!(said.contains("head is longer than"), "{said}");
    let grown = peak_bytes() - before;
    assert!(grown < 16 << 20, "memory grew by {grown} bytes");
}

#[test]
fn thousands_of_events_in_one_write_are_all_read() {
    let events: String = (0..5_000).map(|number| text(&format!(" w{number}"))).collect();
    let server = playing(ending(stream().send(0, chunk(&events)), 5));
    let mut bench = Bench::at(&server.url());
    bench.keep_text = true;
    let record = bench.run().one();
    assert_eq!((record.outcome, record.output_chunks()), (Outcome::Ok, 5_000));
    let words: String = (0..5_000).map(|number| format!(" w{number}")).collect();
    assert_eq!(record.answer.text, Some(words));
    assert!(record.answer.warnings.has(Warnings::BURSTY_DELIVERY));
}

/// A peer that says this much, ends its half of the connection and waits for
/// ours.
fn half_closing(said: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            let mut heard = Vec::new();
            while !heard.ends_with(b"}") {
                let mut some = [0; 4096];
                match tcp.read(&mut some) {
                    Ok(count) if count > 0 => heard.extend_from_slice(&some[..count]),
                    _ => break,
                }
            }
            if !heard.is_empty() {
                tcp.write_all(said.as_bytes()).unwrap();
                tcp.shutdown(Shutdown::Write).unwrap();
                // Ends when the client has closed too.
                let _ = tcp.read_to_end(&mut heard);
            }
        }
    });
    format!("http://{address}")
}

#[test]
fn a_half_closed_connection_is_judged_by_what_had_come() {
    let whole = whole();
    let unframed = whole.strip_suffix("0\r\n\r\n").unwrap().to_owned();
    let begun = format!("{HEAD}{}", chunk(&text("one")));
    for (said, outcome, chunks) in [
        (whole, Outcome::Ok, 2),
        (unframed, Outcome::Ok, 2),
        (begun, Outcome::Failed(FailureKind::Disconnected), 1),
        (HEAD.to_owned(), Outcome::Failed(FailureKind::Disconnected), 0),
        (String::new(), Outcome::Failed(FailureKind::Disconnected), 0),
    ] {
        let ran = Bench::at(&half_closing(said.clone())).load(closed(1), 3).run();
        for record in &ran.records {
            assert_eq!((record.outcome, record.output_chunks()), (outcome, chunks), "{said:?}");
            let took = record.stamps.ended_at.unwrap() - record.stamps.sent_at.unwrap();
            assert!(took < Span::from_ms(2_000), "{took}");
        }
    }
}

#[test]
fn a_reset_at_any_point_is_an_outcome() {
    let whole = whole().into_bytes();
    // Behind the data of the finish reason nothing is missing that an answer
    // needs, not even the blank line that ends the event.
    let finish = chunk(&finish("stop"));
    let needed = whole.windows(finish.len()).position(|bytes| bytes == finish.as_bytes()).unwrap()
        + finish.len()
        - "\n\n\r\n".len();
    let cuts: Vec<usize> = (0..whole.len()).step_by(3).collect();
    let count = cuts.len() as u32;
    let script = {
        let (whole, cuts) = (whole.clone(), cuts.clone());
        move |request: &Request| {
            let cut = cuts[crate::build::index(request) as usize];
            Script::new().send(0, &whole[..cut]).reset(20)
        }
    };
    let server = Server::start_scripted(script).unwrap();
    let ran = Bench::at(&server.url()).load(even(500.0), count).run();
    assert_eq!(ran.records.len(), cuts.len());
    for record in &ran.records {
        let cut = cuts[record.index as usize];
        let wanted =
            if cut >= needed { Outcome::Ok } else { Outcome::Failed(FailureKind::Disconnected) };
        assert_eq!(record.outcome, wanted, "reset behind {cut} bytes of {}", whole.len());
        assert!(record.output_chunks() <= 2);
    }
}

#[test]
fn http_1_0_interim_heads_and_trailers_are_read() {
    let events = [text("one"), text("two"), finish("stop"), DONE.to_owned()].concat();
    let old = format!("HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\n{events}");
    let interim = format!(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n{}",
        whole()
    );
    let body = whole();
    let trailers = format!("{}x-took: 3\r\nx-more: 4\r\n\r\n", body.strip_suffix("\r\n").unwrap());
    for (name, script, connections) in [
        ("HTTP/1.0", Script::new().send(0, old).close(1), 3),
        ("100 and 103", Script::new().send(0, interim), 1),
        ("trailers", Script::new().send(0, trailers), 1),
    ] {
        let server = playing(script);
        let ran = Bench::at(&server.url()).load(closed(1), 3).run();
        for record in &ran.records {
            assert_eq!(record.outcome, Outcome::Ok, "{name}: {:?}", record.answer.message);
            assert_eq!(record.output_chunks(), 2, "{name}");
            assert!(!record.answer.warnings.has(Warnings::FRAMING_ERROR), "{name}");
        }
        assert_eq!(server.counters().accepted, connections, "{name}");
    }
}

#[test]
fn a_gzip_stream_that_nobody_asked_for_is_decoded_and_warned_of() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let mut script = Script::new().send(
        0,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n\
         transfer-encoding: chunked\r\n\r\n",
    );
    for (place, event) in
        [text("one"), text(" two"), finish("stop"), DONE.to_owned()].iter().enumerate()
    {
        packed.write_all(event.as_bytes()).unwrap();
        packed.flush().unwrap();
        script = script.chunk(10 * place as u64, std::mem::take(packed.get_mut()));
    }
    let server = playing(script.chunk(40, packed.finish().unwrap()).last_chunk(40));
    let mut bench = Bench::at(&server.url()).load(closed(1), 2);
    bench.keep_text = true;
    let ran = bench.run();
    ran.all_ok();
    for record in &ran.records {
        assert_eq!(record.answer.text.as_deref(), Some("one two"));
        assert!(record.answer.warnings.has(Warnings::COMPRESSED_STREAM));
        let at_us = &record.events.at_us;
        assert!(
            at_us[1] - at_us[0] > 5_000,
            "each event has the stamp of its own chunk: {at_us:?}"
        );
    }
}

/// What one peer does to a connection is no matter to the next request.
#[test]
fn a_broken_answer_leaves_the_next_one_alone() {
    let mut turn = 0;
    let whole = whole().into_bytes();
    let alternating = move |_: &Request| {
        turn += 1;
        match turn % 4 {
            0 => answer(1),
            1 => Script::new().send(0, &whole[..whole.len() / 2]).reset(5),
            2 => {
                Script::new().send(0, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")
            }
            _ => answer(1),
        }
    };
    let server = Server::start_scripted(alternating).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 12).run();
    assert_eq!(ran.count(Outcome::Ok), 6);
    assert_eq!(ran.count(Outcome::Failed(FailureKind::Disconnected)), 3);
    assert_eq!(ran.count(Outcome::Failed(FailureKind::MalformedHttp)), 3);
}
