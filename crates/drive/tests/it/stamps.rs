//! The order of instants in every record.

use fake::{Request, Script, Server};
use measure::{At, FailureKind, Outcome, PerSecond, Record, Span};
use workload::{Load, Pace};

use crate::build::{Bench, answer, ending, even, index, stream, text};

/// A server whose answer depends on the request's index.
fn mixed(request: &Request) -> Script {
    match index(request) % 6 {
        0 => answer(15),
        1 => Script::whole(503, "text/plain", "busy"),
        2 => stream().chunk(3, text("one")).reset(6),
        3 => Script::new().stall(0),
        4 => stream().chunk(0, text("one")).stall(0),
        _ => ending(
            Script::new()
                .send(4, "HTTP/1.1 200 OK\r\ncontent-type: text/event-")
                .send(9, "stream\r\ntransfer-encoding: chunked\r\n\r\n")
                .chunk(12, text("one")),
            14,
        ),
    }
}

#[track_caller]
fn in_order(record: &Record) {
    let s = &record.stamps;
    let steps = [
        ("intended", Some(s.intended_at)),
        ("released", s.released_at),
        ("sent", s.sent_at),
        ("first byte", s.first_byte_at),
        ("headers", s.headers_at),
        ("ended", s.ended_at),
    ];
    let known: Vec<(&str, At)> =
        steps.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
    let sorted = known.is_sorted_by_key(|(_, at)| *at);
    assert!(sorted, "request {} ({:?}): {known:?}", record.index, record.outcome);
    // The write is known to be over when its system call returns. On loopback
    // the answer may have reached this host within that call, and the kernel
    // stamps it then.
    assert!(s.sent_at <= s.written_at, "request {}", record.index);
    let opening = [s.released_at, s.resolved_at, s.connected_at, s.secured_at, s.sent_at];
    assert!(opening.into_iter().flatten().is_sorted(), "request {}", record.index);
    assert!(record.events.at_us.is_sorted());
}

fn mixed_run(load: Load, threads: u32) {
    let server = Server::start_scripted(mixed).unwrap();
    let mut bench = Bench::at(&server.url()).load(load, 48);
    (bench.idle_timeout, bench.request_timeout) = (Span::from_ms(80), Span::from_ms(120));
    bench.threads = threads;
    let ran = bench.run();
    assert_eq!(ran.records.len(), 48);
    for (position, record) in ran.records.iter().enumerate() {
        assert_eq!(record.index as usize, position);
        in_order(record);
        let stamps = &record.stamps;
        assert!(stamps.ended_at.is_some() && stamps.written_at.is_some());
        let expected = match record.index % 6 {
            0 | 5 => Outcome::Ok,
            1 => Outcome::Failed(FailureKind::HttpStatus),
            2 => Outcome::Failed(FailureKind::Disconnected),
            3 => Outcome::Failed(FailureKind::TotalTimeout),
            _ => Outcome::Failed(FailureKind::IdleTimeout),
        };
        assert_eq!(record.outcome, expected, "request {}", record.index);
        assert_eq!(stamps.first_byte_at.is_some(), record.index % 6 != 3);
        assert_eq!(stamps.secured_at, None);
    }
    // Only the first request of a connection can have opened it.
    for request in server.requests().iter().filter(|request| request.on_connection > 0) {
        let record = &ran.records[index(request) as usize];
        assert_eq!(record.stamps.connected_at, None, "request {}", record.index);
    }
}

#[test]
fn instants_are_in_order_in_an_open_loop() {
    mixed_run(even(200.0), 1);
}

#[test]
fn instants_are_in_order_under_a_cap_and_on_two_threads() {
    let rate = PerSecond::new(400.0);
    mixed_run(Load::Capped { pace: Pace::flat(rate, 1.0), users: 6 }, 2);
}

#[test]
fn instants_are_in_order_in_a_closed_loop() {
    mixed_run(crate::build::closed(8), 1);
}

#[test]
fn l08_headers_do_not_end_an_answer() {
    // The case's 2,000 ms at a twentieth: headers at once, the end at 100 ms.
    let server = Server::start_scripted(fake::Routes::new().on("/", answer(100))).unwrap();
    let record = Bench::at(&server.url()).run().one();
    let sent_at = record.stamps.sent_at.unwrap();
    let whole = record.stamps.ended_at.unwrap() - sent_at;
    let headers = record.stamps.headers_at.unwrap() - sent_at;
    assert!(whole >= Span::from_ms(99), "ended after {whole}");
    assert!(headers < Span::from_ms(90), "headers after {headers}");
}

#[test]
fn arrival_stamps_agree_with_the_servers_log() {
    let engine = fake::EngineConfig {
        token_interval: std::time::Duration::from_millis(5),
        ..fake::EngineConfig::default()
    };
    let config = fake::Config { engine, ..fake::Config::default() };
    let server = Server::start(config).unwrap();
    let mut bench = Bench::at(&server.url()).load(crate::build::closed(2), 8);
    bench.spec.output = workload::OutputLength::Drawn(workload::Lengths::fixed(10).unwrap());
    let ran = bench.run();
    ran.all_ok();
    let truths = server.truths();
    assert_eq!(truths.len(), 8);
    for truth in truths {
        let record: &Record = &ran.records[truth.id["run-".len()..].parse::<usize>().unwrap()];
        let sent_ns = ran.end.clock.monotonic_ns_of(record.stamps.sent_at.unwrap()) as u64;
        let arrivals: Vec<u64> = record
            .events
            .iter()
            .filter(|event| event.carries.is_arrival())
            .map(|event| sent_ns + u64::from(event.at_us) * 1_000)
            .collect();
        assert_eq!(arrivals.len(), 10);
        for (seen_ns, token_ns) in arrivals.iter().zip(&truth.token_ns) {
            // Stamps are whole microseconds of two clocks read one after the
            // other; the other end is loose, for a busy machine.
            let written_ns = truth.arrival_ns + token_ns;
            assert!(seen_ns + 50_000 >= written_ns, "seen before it was written");
            assert!(*seen_ns < written_ns + 200_000_000, "seen 200 ms late");
        }
    }
}
