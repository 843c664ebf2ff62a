//! Load models: who sends when.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Barrier};
use std::thread;

use fake::{Routes, Server};
use measure::{At, Outcome, PerSecond, Span, Tokens};
use workload::{
    After, CacheRegime, Lengths, Load, OutputLength, Pace, PromptRef, PromptSource, Request, Stop,
};

use crate::build::{Bench, DONE, answer, closed, even, finish, index, text};

fn slow_server(ms: u64) -> Server {
    Server::start_scripted(Routes::new().on("/", answer(ms))).unwrap()
}

#[test]
fn an_open_loop_never_waits_for_answers() {
    // Twenty arrivals in 400 ms, and no answer before 600.
    let server = slow_server(600);
    let ran = Bench::at(&server.url()).load(even(50.0), 20).run();
    ran.all_ok();
    assert_eq!(ran.most_in_flight(), 20);
    for record in &ran.records {
        let late = record.stamps.sent_at.unwrap() - record.stamps.intended_at;
        assert!((Span::ZERO..Span::from_ms(200)).contains(&late), "sent {late} late");
    }
    let gap = ran.records[1].stamps.intended_at - ran.records[0].stamps.intended_at;
    assert_eq!(gap, Span::from_ms(20));
}

#[test]
fn l02_a_cap_is_waited_for_and_the_wait_is_in_the_latency() {
    // The case at a tenth: ten arrivals 10 ms apart, each served for 100 ms,
    // one at a time. From sent: 100 ms each; from planned: 100, 190, … 910.
    let server = slow_server(100);
    let load = Load::Capped { pace: Pace::flat(PerSecond::new(100.0), f64::INFINITY), users: 1 };
    let ran = Bench::at(&server.url()).load(load, 10).run();
    ran.all_ok();
    assert_eq!(ran.most_in_flight(), 1);
    for (place, record) in ran.records.iter().enumerate() {
        let (sent_at, ended_at) = (record.stamps.sent_at.unwrap(), record.stamps.ended_at.unwrap());
        let planned = Span::from_ms(100 + 90 * place as i64);
        let from_planned = ended_at - record.stamps.intended_at;
        // The script counts from the request's arrival, a little after it was
        // sent; stamps are cut to microseconds.
        let slack = Span::from_ms(1);
        assert!(ended_at - sent_at + slack >= Span::from_ms(100));
        assert!(ended_at - sent_at < Span::from_ms(250), "{}", ended_at - sent_at);
        assert!(from_planned + slack >= planned, "{from_planned}, planned {planned}");
        assert!(from_planned < planned + Span::from_ms(500), "{from_planned}, planned {planned}");
        assert!(record.stamps.released_at.unwrap() <= sent_at);
    }
}

#[test]
fn a_closed_loop_has_as_many_in_flight_as_it_has_users() {
    let server = slow_server(25);
    for threads in [1, 2] {
        let mut bench = Bench::at(&server.url()).load(closed(5), 25);
        bench.threads = threads;
        let ran = bench.run();
        ran.all_ok();
        assert_eq!((ran.records.len(), ran.most_in_flight()), (25, 5));
    }
}

/// A pool of 100 connections would make the server look as if it took no more.
/// This server answers nobody until it holds all 200 requests at once.
#[test]
fn l04_two_hundred_asked_for_are_two_hundred_at_the_server() {
    const USERS: u32 = 200;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let all_here = Arc::new(Barrier::new(USERS as usize));
    thread::spawn(move || {
        for connection in listener.incoming() {
            let (mut connection, all_here) = (connection.unwrap(), Arc::clone(&all_here));
            thread::spawn(move || {
                // One that only tried whether anybody listens says nothing.
                if connection.read(&mut [0; 4096]).unwrap() > 0 {
                    all_here.wait();
                    let body = format!("{}{}{DONE}", text("one"), finish("stop"));
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream";
                    write!(connection, "{head}\r\nconnection: close\r\n\r\n{body}").unwrap();
                }
            });
        }
    });
    let mut bench = Bench::at(&url).load(closed(USERS), USERS);
    bench.threads = 2;
    let ran = bench.run();
    ran.all_ok();
    assert_eq!(ran.most_in_flight(), USERS as i32);
}

#[test]
fn a_user_thinks_between_an_answer_and_the_next_request() {
    let server = slow_server(5);
    let think = Span::from_ms(30);
    let ran =
        Bench::at(&server.url()).load(Load::Closed { users: 1, think: think.into() }, 4).run();
    ran.all_ok();
    assert_eq!(ran.records[0].stamps.intended_at, At::ZERO + think);
    for pair in ran.records.windows(2) {
        assert_eq!(pair[1].stamps.intended_at, pair[0].stamps.ended_at.unwrap() + think);
        assert!(pair[1].stamps.sent_at.unwrap() >= pair[1].stamps.intended_at);
    }
}

#[test]
fn a_duration_ends_the_arrivals_and_the_tail_is_awaited() {
    let server = slow_server(150);
    let mut bench = Bench::at(&server.url());
    bench.spec.load = closed(3);
    bench.spec.stop = Stop::Duration(Span::from_ms(200));
    let ran = bench.run();
    ran.all_ok();
    let until = At::ZERO + Span::from_ms(200);
    assert!(ran.records.len() >= 3);
    assert!(ran.records.iter().all(|record| record.stamps.intended_at < until));
    assert!(ran.records.iter().any(|record| record.stamps.ended_at.unwrap() > until));
    assert_eq!(ran.end.early, None);
}

#[test]
fn a_burst_is_all_intended_at_once() {
    let server = slow_server(400);
    let ran = Bench::at(&server.url()).load(Load::Burst, 40).run();
    ran.all_ok();
    assert!(ran.records.iter().all(|record| record.stamps.intended_at == At::ZERO));
    assert_eq!(ran.most_in_flight(), 40);
}

fn turn(index: u32, session: u32, turn: u16, after: After) -> Request {
    Request {
        index,
        after,
        session,
        turn,
        labels: Vec::new(),
        prompt: PromptRef::Listed(0),
        input_tokens: None,
        max_output_tokens: Some(Tokens::new(2)),
        output_forced: false,
        route: workload::Route::default(),
    }
}

fn after(of: &[u32], think: Span) -> After {
    After::Parents { of: of.to_vec(), think }
}

#[test]
fn a_later_turn_is_intended_when_its_last_parent_ended_and_the_user_thought() {
    let server = slow_server(20);
    let think = Span::from_ms(15);
    let mut bench = Bench::at(&server.url()).load(even(100.0), 1);
    bench.threads = 2;
    bench.requests = Some(vec![
        turn(0, 0, 0, After::Instant(At::ZERO)),
        turn(1, 1, 0, After::Instant(At::from_us(5_000))),
        turn(2, 0, 1, after(&[0], think)),
        turn(3, 1, 1, after(&[1], Span::ZERO)),
        turn(4, 1, 1, after(&[1], think)),
        turn(5, 1, 2, after(&[3, 4], think)),
    ]);
    let ran = bench.run();
    ran.all_ok();
    let ended = |index: usize| ran.records[index].stamps.ended_at.unwrap();
    let intended = |index: usize| ran.records[index].stamps.intended_at;
    assert_eq!(intended(1), At::from_us(5_000));
    assert_eq!(intended(2), ended(0) + think);
    assert_eq!(intended(3), ended(1));
    assert_eq!(intended(4), ended(1) + think);
    assert_eq!(intended(5), ended(3).max(ended(4)) + think);
    for record in &ran.records {
        assert!(record.stamps.sent_at.unwrap() >= record.stamps.intended_at);
    }
}

/// What the server saw of a run: index and body of each request.
fn bodies(load: Load, threads: u32) -> (BTreeSet<(u32, Vec<u8>)>, Vec<At>) {
    let server = slow_server(1);
    let mut bench = Bench::at(&server.url()).load(load, 40);
    bench.spec.prompts = PromptSource::Synthetic { input: Lengths::uniform(60, 0.5).unwrap() };
    bench.spec.output = OutputLength::Drawn(Lengths::uniform(20, 0.5).unwrap());
    bench.spec.cache = CacheRegime::Cold;
    bench.threads = threads;
    let ran = bench.run();
    ran.all_ok();
    let workers: BTreeSet<u32> = ran.records.iter().map(|record| record.worker).collect();
    assert_eq!(workers.len(), threads as usize, "some threads had nothing to do");
    let seen = server.requests();
    assert_eq!(seen.len(), 40);
    let seen = seen.iter().map(|request| (index(request), request.body.clone())).collect();
    (seen, ran.records.iter().map(|record| record.stamps.intended_at).collect())
}

#[test]
fn one_and_three_threads_send_the_same() {
    let open = Load::Open { pace: Pace::flat(PerSecond::new(400.0), 1.0) };
    let (one, three) = (bodies(open.clone(), 1), bodies(open, 3));
    assert_eq!(one, three, "instants or bodies differ");
    assert_eq!(one.0.len(), 40);
    assert_eq!(bodies(closed(6), 1).0, bodies(closed(6), 3).0);
}

#[test]
fn warm_up_requests_are_sent_first_and_leave_no_record() {
    let server = slow_server(1);
    let mut bench = Bench::at(&server.url()).load(closed(1), 3);
    let mut spec = bench.spec.clone();
    spec.stop = Stop::Count(2);
    bench.warmup = Some(std::sync::Arc::new(workload::Schedule::draw(spec).unwrap().0));
    let ran = bench.run();
    ran.all_ok();
    assert_eq!(ran.records.len(), 3);
    let ids: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.header("x-request-id").unwrap().to_owned())
        .collect();
    assert_eq!(ids, ["run-warm-0", "run-warm-1", "run-0", "run-1", "run-2"]);
    assert_eq!(ran.count(Outcome::Ok), 3);
}

#[test]
fn requests_carry_an_id_and_a_trace_of_their_own() {
    let server = slow_server(1);
    Bench::at(&server.url()).load(closed(1), 3).run().all_ok();
    let seen = server.requests();
    let header = |name: &str| -> Vec<String> {
        seen.iter().map(|request| request.header(name).unwrap().to_owned()).collect()
    };
    assert_eq!(header("x-request-id"), ["run-0", "run-1", "run-2"]);
    let traces = header("traceparent");
    assert_eq!(traces.iter().collect::<BTreeSet<_>>().len(), 3);
    for trace in traces {
        let parts: Vec<&str> = trace.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [2, 32, 16, 2], "{trace}");
        assert!(parts[2].bytes().any(|digit| digit != b'0'), "a span of zeros is none");
    }
    for request in &seen {
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        assert_eq!(request.method, "POST");
    }
}
