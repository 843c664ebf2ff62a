//! Keys that a server echoes.

use fake::{Request, Script, Server};
use measure::Record;

use crate::build::{Bench, DONE, closed, stream, text};

const KEY: &str = "canary+0123456789/abcdefghij";

/// A request's key, as the server got it.
fn key(request: &Request) -> (String, String) {
    let whole = request.header("authorization").expect("the key is sent").to_owned();
    let bare = whole.split(' ').next_back().unwrap().to_owned();
    assert_eq!(bare, KEY);
    (whole, bare)
}

/// Echoes the key in one way a request.
fn echo(request: &Request) -> Script {
    let (whole, bare) = key(request);
    let error = serde_json::json!({"error": {
        "message": format!("no such key: {whole} ({bare})"), "type": bare, "code": bare,
    }});
    let event = |json: serde_json::Value| format!("data: {json}\n\n");
    let choice = |delta: serde_json::Value, reason: Option<&str>| {
        event(
            serde_json::json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}),
        )
    };
    let content = |key: &str| serde_json::json!({"content": key});
    match crate::build::index(request) {
        0 => Script::json(401, &error),
        1 => Script::whole(500, "text/plain", format!("key {bare} broke it")),
        2 => stream().chunk(0, text("one")).chunk(1, event(error)).last_chunk(1),
        3 => {
            let (head, tail) = bare.split_at(9);
            stream()
                .chunk(0, choice(content(head), None))
                .chunk(1, choice(content(tail), None))
                .chunk(2, choice(serde_json::json!({"reasoning_content": whole}), None))
                .chunk(3, choice(content(&bare), Some(&bare)))
                .chunk(4, DONE)
                .last_chunk(4)
        }
        4 => {
            let served = format!("server: {bare}\r\nx-served-by: {bare}\r\n");
            let location = format!("location: /there?key={bare}\r\n");
            Script::new().send(
                0,
                format!(
                    "HTTP/1.1 307 Temporary Redirect\r\n{served}{location}content-length: 0\r\n\r\n"
                ),
            )
        }
        5 => Script::whole(200, "text/html", format!("<html>{whole}</html>")),
        6 => stream().chunk(0, format!("data: {{\"broken\": \"{bare}\n\n")).last_chunk(0),
        7 => Script::new().send(0, format!("HTTP/1.1 2x0 {bare}\r\n{bare}\r\n\r\n")).close(0),
        8 => {
            let timings = serde_json::json!({"choices": [], "timings": {bare: 1.5}});
            stream().chunk(0, text("one")).chunk(0, event(timings)).chunk(0, DONE).last_chunk(0)
        }
        // A message is cut at a length; the cut must not leave half a key.
        lead => {
            let lead = "x".repeat(460 + lead as usize);
            Script::whole(400, "text/plain", format!("{lead} {bare} and more"))
        }
    }
}

#[test]
fn nothing_of_an_echoed_key_is_in_any_record() {
    let server = Server::start_scripted(echo).unwrap();
    let mut bench = Bench::at(&server.url()).load(closed(1), 50);
    let value = format!("Bearer {KEY}");
    bench.headers = vec![("authorization".to_owned(), value.clone())];
    bench.secrets.add(&value);
    bench.keep_text = true;
    let ran = bench.run();
    assert_eq!(ran.records.len(), 50);
    assert_eq!(server.requests().len(), 50);
    for record in &ran.records {
        clean(record);
    }
}

#[track_caller]
fn clean(record: &Record) {
    let whole = format!("{record:?}");
    // Eight letters of a key are more than its kind and length would tell.
    for start in 0..=KEY.len() - 8 {
        let part = &KEY[start..start + 8];
        assert!(!whole.contains(part), "request {} holds {part:?}: {whole}", record.index);
    }
}
