use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::*;
use crate::script::{Routes, Script};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cases/");

/// A blocking client of few words.
struct Client(TcpStream);

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Client {
    fn to(server: &Server) -> Self {
        let stream = TcpStream::connect(server.addr()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    fn ask(&mut self, method: &str, path: &str, id: &str, body: &str) {
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nx-request-id: {id}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).unwrap();
    }

    fn ask_completion(&mut self, id: &str, tokens: u32) {
        let body = json!({"prompt": "one", "stream": true, "max_tokens": tokens,
            "stream_options": {"include_usage": true}});
        self.ask("POST", "/v1/completions", id, &body.to_string());
    }

    fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.push(self.bytes(1)[0]);
        }
        String::from_utf8(line).unwrap()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head += &self.line();
        }
        head
    }

    /// One chunk's bytes; none at the end of the body.
    fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(self.line().trim(), 16).unwrap();
        let bytes = self.bytes(size);
        assert_eq!(self.line(), "\r\n");
        (size > 0).then_some(bytes)
    }

    fn reply(&mut self) -> Reply {
        let head = self.head().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = match length {
            Some(length) => self.bytes(length.parse().unwrap()),
            None => std::iter::from_fn(|| self.chunk()).flatten().collect(),
        };
        Reply { status, head, body }
    }

    /// Everything until the connection ends, and how it ended.
    fn rest(&mut self) -> (Vec<u8>, Option<io::ErrorKind>) {
        let mut bytes = Vec::new();
        let end = self.0.read_to_end(&mut bytes).err().map(|error| error.kind());
        (bytes, end)
    }
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn events(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        assert!(text.ends_with("data: [DONE]\n\n"));
        let events =
            text.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap());
        events
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }
}

/// Waits for what the server does on its own thread; the bound only ends a
/// test that would fail.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(10), "never: {what}");
        std::thread::yield_now();
    }
}

fn fast() -> EngineConfig {
    EngineConfig {
        ttft: Duration::from_millis(2),
        ttft_per_prompt_token: Duration::ZERO,
        token_interval: Duration::from_millis(1),
        ..EngineConfig::default()
    }
}

fn engine(engine: EngineConfig) -> Server {
    Server::start(Config { engine, ..Config::default() }).unwrap()
}

#[test]
fn streams_events_and_writes_the_truth_down_before_the_end() {
    let server = engine(fast());
    let mut client = Client::to(&server);
    let body = json!({"messages": [{"role": "user", "content": "two words"}], "stream": true,
        "max_tokens": 5, "stream_options": {"include_usage": true}});
    for (turn, id) in ["run-0", "run-1"].into_iter().enumerate() {
        client.ask("POST", "/v1/chat/completions", id, &body.to_string());
        let reply = client.reply();
        assert_eq!(reply.status, 200);
        assert!(reply.head.contains("content-type: text/event-stream"));
        let events = reply.events();
        assert_eq!(events.len(), 1 + 5 + 1);
        assert_eq!(events[5]["choices"][0]["finish_reason"], "length");
        assert_eq!(events[6]["usage"]["prompt_tokens"], 2);
        assert_eq!(events[6]["usage"]["completion_tokens"], 5);

        let truth = server.truths().pop().unwrap();
        assert_eq!((truth.id.as_str(), truth.token_ns.len()), (id, 5));
        assert_eq!((truth.arrival_ns, truth.held_tokens), (server.requests()[turn].arrival_ns, 0));
        let planned = truth.planned_token_ns.unwrap();
        let plan: Vec<u64> = (2..7).map(|ms| ms * 1_000_000).collect();
        assert_eq!(planned, plan);
        assert!(truth.token_ns.iter().zip(&planned).all(|(done, due)| done >= due));
    }
    let requests = server.requests();
    assert_eq!(requests[1].connection, requests[0].connection);
    assert_eq!(requests[1].on_connection, 1);
    assert_eq!(requests[0].body, body.to_string().as_bytes());
    assert_eq!(server.counters().accepted, 1);
}

#[test]
fn arrivals_lie_between_send_and_answer() {
    let server = engine(fast());
    let mut client = Client::to(&server);
    for turn in 0..5 {
        let before_ns = crate::clock::monotonic_ns();
        client.ask("GET", "/health", "", "");
        assert_eq!(client.reply().status, 200);
        let after_ns = crate::clock::monotonic_ns();
        let arrival_ns = server.requests()[turn].arrival_ns;
        // The kernel's stamp comes over the wall clock: allow for its
        // translation, two clock reads apart.
        assert!(before_ns <= arrival_ns + 1_000_000 && arrival_ns <= after_ns);
    }
}

#[test]
fn answers_whole_and_beside_the_point() {
    let server = engine(EngineConfig { model: Some("tiny".into()), ..fast() });
    let mut client = Client::to(&server);
    let mut ask = |method: &str, path: &str, body: &str| {
        client.ask(method, path, "x", body);
        client.reply()
    };
    let whole = ask("POST", "/v1/completions", r#"{"model":"tiny","prompt":"a","max_tokens":4}"#);
    assert_eq!(whole.status, 200);
    assert_eq!(whole.json()["usage"]["completion_tokens"], 4);
    assert_eq!(ask("GET", "/v1/models", "").json()["data"][0]["id"], "tiny");
    assert_eq!(ask("GET", "/health", "").status, 200);
    assert!(ask("GET", "/version", "").json()["version"].is_string());
    let unknown = ask("POST", "/v1/completions", r#"{"model":"huge","prompt":"a"}"#);
    assert_eq!(
        (unknown.status, unknown.json()["error"]["type"].as_str()),
        (404, Some("NotFoundError"))
    );
    assert_eq!(ask("POST", "/v1/completions", "{").status, 400);
    assert_eq!(ask("GET", "/nowhere", "").json(), json!({"detail": "Not Found"}));
    let wrong = ask("GET", "/v1/completions", "");
    assert!(wrong.status == 405 && wrong.head.contains("allow: post"));
    let truths = server.stop().truths;
    assert_eq!(truths.len(), 1);
    assert_eq!(truths[0].token_ns.len(), 4);
}

#[test]
fn seats_are_given_in_order_and_the_wait_is_in_the_truth() {
    let server = engine(EngineConfig { max_num_seqs: 1, ..fast() });
    let mut clients: Vec<Client> = (0..3).map(|_| Client::to(&server)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.ask_completion(&format!("r-{index}"), 20);
        eventually("request read", || server.requests().len() > index);
    }
    for client in &mut clients {
        assert_eq!(client.reply().events().len(), 21);
    }
    let truths = server.stop().truths;
    let ids: Vec<_> = truths.iter().map(|truth| truth.id.as_str()).collect();
    assert_eq!(ids, ["r-0", "r-1", "r-2"]);
    for pair in truths.windows(2) {
        let planned = |truth: &Truth, token: usize| {
            truth.arrival_ns + truth.planned_token_ns.as_ref().unwrap()[token]
        };
        // The seat is handed over at the planned end, then comes a whole TTFT.
        assert_eq!(planned(&pair[1], 0), planned(&pair[0], 19) + 2_000_000);
    }
}

#[test]
fn whole_answers_wait_for_a_seat_as_streams_do() {
    let server = engine(EngineConfig { max_num_seqs: 1, ..fast() });
    let (mut first, mut second) = (Client::to(&server), Client::to(&server));
    first.ask_completion("first", 3);
    eventually("the first is under way", || server.counters().requests == 1);
    second.ask("POST", "/v1/completions", "second", r#"{"prompt": "one", "max_tokens": 2}"#);
    assert_eq!(second.reply().status, 200);
    assert_eq!(first.reply().status, 200);
}

#[test]
fn client_that_leaves_gives_its_seat_back() {
    let server = engine(EngineConfig { max_num_seqs: 1, ..fast() });
    let mut first = Client::to(&server);
    // Ninety seconds of tokens: the second client is served only if this one's
    // seat is given back.
    first.ask_completion("leaves", 90_000);
    first.head();
    first.chunk().unwrap();
    let mut second = Client::to(&server);
    second.ask_completion("stays", 3);
    second.head();
    drop(first);
    while second.chunk().is_some() {}
    let log = server.stop();
    assert_eq!(log.counters.left_early, 1);
    let ids: Vec<_> = log.truths.iter().map(|truth| truth.id.as_str()).collect();
    assert_eq!(ids, ["leaves", "stays"]);
    let tokens = log.truths[0].token_ns.len();
    assert!((1..90_000).contains(&tokens), "{tokens}");
}

#[test]
fn client_that_never_reads_holds_nobody_up() {
    let server =
        engine(EngineConfig { ttft: Duration::ZERO, token_interval: Duration::ZERO, ..fast() });
    let mut lazy = Client::to(&server);
    lazy.ask_completion("lazy", 20_000);
    let mut quick = Client::to(&server);
    quick.ask_completion("quick", 50);
    assert_eq!(quick.reply().events().len(), 51);
    assert_eq!(lazy.reply().events().len(), 20_001);
    let truths = server.stop().truths;
    assert_eq!(truths[1].token_ns.len(), 20_000);
}

#[test]
fn truth_strays_little_from_the_plan() {
    let deviations =
        deviations_us(20, 20, EngineConfig { token_interval: Duration::from_millis(5), ..fast() });
    let mean = deviations.iter().sum::<f64>() / deviations.len() as f64;
    assert_eq!(deviations.len(), 400);
    assert!(mean < 5_000.0, "mean deviation {mean} µs");
}

/// Run by hand: `cargo test -p fake -- --ignored --nocapture`.
#[test]
#[ignore = "measures for two seconds a row"]
#[expect(clippy::print_stderr, reason = "the figures are what it is run for")]
fn measure_how_far_truth_strays_from_the_plan() {
    for (streams, lockstep) in [(1, false), (200, false), (200, true)] {
        let token_interval = Duration::from_millis(20);
        let mut us = deviations_us(
            streams,
            100,
            EngineConfig {
                token_interval,
                lockstep,
                max_num_seqs: streams,
                ..EngineConfig::default()
            },
        );
        us.sort_by(f64::total_cmp);
        let at = |share: f64| us[((us.len() - 1) as f64 * share) as usize];
        eprintln!(
            "{streams} streams, lockstep {lockstep}: p50 {:.1} µs, p99 {:.1} µs, p99.9 {:.1} µs, max {:.1} µs",
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0)
        );
    }
}

/// How late each token's write was, with clients that read as it comes.
fn deviations_us(streams: usize, tokens: u32, engine_config: EngineConfig) -> Vec<f64> {
    let server = engine(engine_config);
    let poll = nix::sys::epoll::Epoll::new(nix::sys::epoll::EpollCreateFlags::empty()).unwrap();
    let mut clients: Vec<Client> = (0..streams).map(|_| Client::to(&server)).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.0.set_nonblocking(true).unwrap();
        let flags = nix::sys::epoll::EpollFlags::EPOLLIN;
        poll.add(&client.0, nix::sys::epoll::EpollEvent::new(flags, index as u64)).unwrap();
        client.ask_completion(&index.to_string(), tokens);
    }
    let mut open = streams;
    let mut buffer = vec![0; 64 << 10];
    while open > 0 {
        let mut events = [nix::sys::epoll::EpollEvent::empty(); 64];
        let count = poll.wait(&mut events, 10_000u16).unwrap();
        assert!(count > 0, "an answer stopped");
        for event in &events[..count] {
            let read = clients[event.data() as usize].0.read(&mut buffer).unwrap();
            if buffer[..read].ends_with(b"0\r\n\r\n") {
                open -= 1;
            }
        }
    }
    let truths = server.stop().truths;
    assert_eq!(truths.len(), streams);
    let late = |truth: &Truth| -> Vec<f64> {
        let planned = truth.planned_token_ns.as_ref().unwrap();
        let pairs = truth.token_ns.iter().zip(planned);
        pairs.map(|(done, due)| (*done as f64 - *due as f64) / 1e3).collect()
    };
    truths.iter().flat_map(late).collect()
}

fn book() -> (Value, CaseBook) {
    let index = std::fs::read(format!("{CASES}cases.json")).unwrap();
    let book = CaseBook::load(&index, |file| std::fs::read(format!("{CASES}{file}"))).unwrap();
    (serde_json::from_slice(&index).unwrap(), book)
}

#[test]
fn every_case_is_played_byte_for_byte() {
    let (index, book) = book();
    let server = Server::start_cases(book.capped_ms(0)).unwrap();
    let cases = index["cases"].as_array().unwrap().iter().filter(|case| case["kind"] == "stream");
    let mut played = 0;
    for case in cases {
        let id = case["id"].as_str().unwrap();
        let bytes = std::fs::read(format!("{CASES}{}", case["file"].as_str().unwrap())).unwrap();
        let mut client = Client::to(&server);
        client.ask("POST", &format!("/{id}/v1/chat/completions"), id, "{}");
        let (sent, end) = if case["close"] == "stall" {
            played += 1;
            stalled(client)
        } else {
            played += 1;
            client.rest()
        };
        let expected = if case["http"]["raw"] == true { bytes } else { framed(case, &bytes) };
        assert_eq!(String::from_utf8_lossy(&sent), String::from_utf8_lossy(&expected), "{id}");
        let expected_end = match case["close"].as_str().unwrap() {
            "reset" => Some(io::ErrorKind::ConnectionReset),
            "stall" => Some(io::ErrorKind::WouldBlock),
            _ => None,
        };
        assert_eq!(end, expected_end, "{id}");
    }
    assert_eq!(played, 58);
}

/// What a framed case must look like on the wire.
fn framed(case: &Value, bytes: &[u8]) -> Vec<u8> {
    let content_type = case["http"]["content_type"].as_str().unwrap();
    let mut wire = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .into_bytes();
    let mut from = 0;
    for segment in case["segments"].as_array().unwrap() {
        let end = segment[0].as_u64().unwrap() as usize;
        wire.extend_from_slice(format!("{:x}\r\n", end - from).as_bytes());
        wire.extend_from_slice(&bytes[from..end]);
        wire.extend_from_slice(b"\r\n");
        from = end;
    }
    if case["close"] == "eof" {
        wire.extend_from_slice(b"0\r\n\r\n");
    }
    wire
}

/// What comes before the silence.
fn stalled(mut client: Client) -> (Vec<u8>, Option<io::ErrorKind>) {
    client.0.set_read_timeout(Some(Duration::from_millis(60))).unwrap();
    client.rest()
}

#[test]
fn s18_case_is_played_on_its_time_line_and_unknown_ids_are_not_found() {
    let (_, book) = book();
    let server = Server::start_cases(book).unwrap();
    let mut client = Client::to(&server);
    client.ask("POST", "/nothing/v1/chat/completions", "", "");
    assert_eq!(client.reply().status, 404);
    let start = Instant::now();
    client.ask("POST", "/S18/v1/chat/completions", "", "");
    client.head();
    let mut times_ms = Vec::new();
    while client.chunk().is_some() {
        times_ms.push(start.elapsed().as_secs_f64() * 1e3);
    }
    // Never early; how late is for the measurement, not for this test.
    assert!(times_ms.iter().zip([33.0, 44.0, 44.0, 44.0]).all(|(at, due)| *at >= due));
    assert_eq!(times_ms.len(), 4);
}

#[test]
fn accepts_and_closes() {
    let server = Server::start_scripted(Routes::new().greet(Script::new().close(0))).unwrap();
    assert_eq!(Client::to(&server).rest(), (Vec::new(), None));
}

#[test]
fn accepts_and_resets() {
    let server = Server::start_scripted(Routes::new().greet(Script::new().reset(0))).unwrap();
    assert_eq!(Client::to(&server).rest().1, Some(io::ErrorKind::ConnectionReset));
}

#[test]
fn greets_with_garbage_and_stays_silent() {
    let script = Script::new().send(0, b"\x15\x03\x01\x00\x02\x02\x28").stall(0);
    let server = Server::start_scripted(Routes::new().greet(script)).unwrap();
    let (bytes, end) = stalled(Client::to(&server));
    assert_eq!((bytes.len(), end), (7, Some(io::ErrorKind::WouldBlock)));
}

#[test]
fn head_may_come_a_byte_at_a_time() {
    let whole = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let script =
        (0u64..).zip(whole).fold(Script::new(), |script, (at, byte)| script.send(at, [*byte]));
    let server = Server::start_scripted(Routes::new().on("/", script)).unwrap();
    let mut client = Client::to(&server);
    client.ask("GET", "/", "", "");
    assert_eq!(client.reply().body, b"ok");
}

#[test]
fn connection_is_dropped_exactly_when_it_is_reused() {
    let answer = Script::whole(200, "text/plain", "ok");
    for (drop, end) in [
        (Script::new().close(0), None),
        (Script::new().reset(0), Some(io::ErrorKind::ConnectionReset)),
    ] {
        let routes = Routes::new().on("/v1", answer.clone()).then(drop);
        let server = Server::start_scripted(routes).unwrap();
        for _ in 0..2 {
            let mut client = Client::to(&server);
            client.ask("GET", "/v1", "", "");
            assert_eq!(client.reply().body, b"ok");
            client.ask("GET", "/v1", "", "");
            assert_eq!(client.rest(), (Vec::new(), end));
        }
    }
}

#[test]
fn endless_body_ends_with_its_reader_and_bounds_its_memory() {
    let script = Script::new().chunked_head(0, 200, "text/event-stream");
    let script = script.endless(0, 0, format!("400\r\n{}\r\n", "x".repeat(1024)));
    let routes = Routes::new().on("/endless", script).on("/", Script::whole(200, "text/plain", ""));
    let server = Server::start_scripted(routes).unwrap();
    let mut client = Client::to(&server);
    client.ask("GET", "/endless", "", "");
    client.head();
    for _ in 0..2000 {
        assert_eq!(client.chunk().unwrap().len(), 1024);
    }
    let mut other = Client::to(&server);
    other.ask("GET", "/other", "", "");
    assert_eq!(other.reply().status, 200);
    drop(client);
    eventually("the endless answer ends", || server.counters().left_early == 1);
}

#[test]
fn function_answers_with_what_it_saw() {
    let (seen, requests) = mpsc::channel();
    let server = Server::start_scripted(move |request: &Request| {
        seen.send(request.clone()).unwrap();
        Script::whole(200, "text/plain", &request.body)
    })
    .unwrap();
    let mut client = Client::to(&server);
    client
        .0
        .write_all(
            b"PUT /p?q HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
        )
        .unwrap();
    assert_eq!(client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.0.write_all(b"3\r\nabc\r\n0\r\n\r\n").unwrap();
    assert_eq!(client.reply().body, b"abc");
    let request = requests.recv().unwrap();
    assert_eq!((request.method.as_str(), request.target.as_str()), ("PUT", "/p?q"));
    assert_eq!(server.requests(), [request]);
}

#[test]
fn refusals_reach_a_client_that_is_still_sending() {
    let server = engine(fast());
    let mut client = Client::to(&server);
    client.0.write_all(b"POST / HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n").unwrap();
    client.0.write_all(&[b'x'; 50_000]).unwrap();
    assert_eq!(client.reply().status, 413);
    assert_eq!(client.rest(), (Vec::new(), None));

    let mut client = Client::to(&server);
    client.0.write_all(&[b'y'; 40_000]).unwrap();
    assert_eq!(client.reply().status, 431);

    let mut client = Client::to(&server);
    client.0.write_all(b"\x16\x03\x01\x02\x00\x01\x00\n\n").unwrap();
    assert_eq!(client.reply().status, 400);
    assert_eq!(server.counters().refused, 3);
    assert_eq!(server.counters().requests, 0);
}

#[test]
fn pipelined_requests_are_answered_in_turn() {
    let server = engine(fast());
    let mut client = Client::to(&server);
    client.ask_completion("a", 3);
    client.ask_completion("b", 2);
    assert_eq!(client.reply().events().len(), 4);
    assert_eq!(client.reply().events().len(), 3);
}

#[test]
fn connection_close_is_obeyed() {
    let server = engine(fast());
    let mut client = Client::to(&server);
    let body = r#"{"prompt":"a","stream":true,"max_tokens":1}"#;
    let request = format!(
        "POST /v1/completions HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.0.write_all(request.as_bytes()).unwrap();
    let reply = client.reply();
    assert!(reply.head.contains("connection: close"));
    assert_eq!(client.rest(), (Vec::new(), None));
}

#[test]
fn idle_connections_are_closed() {
    let listen = Listen { keep_alive: Duration::from_millis(5), ..Listen::default() };
    let server = Server::start_with(listen, Routes::new()).unwrap();
    let mut client = Client::to(&server);
    client.ask("GET", "/", "", "");
    assert_eq!(client.reply().status, 404);
    assert_eq!(client.rest(), (Vec::new(), None));
}

#[test]
fn connections_above_the_limit_wait_for_their_turn() {
    let listen = Listen { max_connections: 1, ..Listen::default() };
    let server = Server::start_with(listen, Routes::new()).unwrap();
    let mut first = Client::to(&server);
    first.ask("GET", "/", "", "");
    assert_eq!(first.reply().status, 404);
    let mut second = Client::to(&server);
    second.ask("GET", "/", "", "");
    eventually("accepting pauses", || server.counters().accept_pauses > 0);
    assert_eq!(server.counters().accepted, 1);
    drop(first);
    assert_eq!(second.reply().status, 404);
}

#[test]
fn logs_keep_to_their_limits_and_say_so() {
    let listen = Listen { keep_requests: 1, keep_truth_tokens: 5, ..Listen::default() };
    let server = Server::start(Config { listen, engine: fast() }).unwrap();
    let mut client = Client::to(&server);
    for id in ["a", "b"] {
        client.ask_completion(id, 3);
        client.reply();
    }
    let log = server.stop();
    assert_eq!((log.requests.len(), log.counters.requests_not_kept), (1, 1));
    assert_eq!((log.truths.len(), log.counters.truths_not_kept), (1, 1));
}

#[test]
fn half_closed_client_counts_as_gone() {
    let server = engine(EngineConfig { ttft: Duration::from_secs(60), ..fast() });
    let mut client = Client::to(&server);
    client.ask_completion("half", 3);
    client.head();
    client.0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(client.rest().0, b"");
    assert_eq!(server.counters().left_early, 1);
}

#[test]
fn dropping_stops_and_stop_gives_unfinished_answers() {
    let server = engine(EngineConfig { ttft: Duration::from_secs(60), ..fast() });
    let addr = server.addr();
    let mut client = Client::to(&server);
    client.ask_completion("cut", 3);
    client.head();
    let truths = server.stop().truths;
    assert_eq!((truths.len(), truths[0].id.as_str(), truths[0].token_ns.len()), (1, "cut", 0));
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn address_in_use_is_told() {
    let server = Server::start_scripted(Routes::new()).unwrap();
    let listen = Listen { bind: server.addr(), ..Listen::default() };
    let error = Server::start_with(listen, Routes::new()).unwrap_err();
    assert!(matches!(error, StartError::Bind { bind, .. } if bind == server.addr()));
}
