//! Stopping: by hand, and by the rules that stop a run.

use drive::{Early, Happening};
use fake::{Request, Routes, Script, Server};
use measure::{At, Outcome, PerSecond, Span};
use workload::{After, Load, Pace, PromptRef, Stop};

use crate::build::{Bench, Ran, answer, closed, even, stream, text};

/// Every planned request has exactly one record.
#[track_caller]
fn conserved(ran: &Ran, planned: u32) {
    let indices: Vec<u32> = ran.records.iter().map(|record| record.index).collect();
    assert_eq!(indices, (0..planned).collect::<Vec<_>>());
}

/// Answers that begin and never end.
fn endless_answers() -> Server {
    let script = stream().chunk(0, text("one")).chunk(5, text("two")).stall(5);
    Server::start_scripted(Routes::new().on("/", script)).unwrap()
}

/// Stops the run by hand once this much time has passed.
fn stopped(bench: Bench, after: Span) -> Ran {
    let control = bench.control.clone();
    bench.watch(move |happening| {
        if matches!(happening, Happening::Tick(now) if *now >= At::ZERO + after) {
            control.stop();
        }
    })
}

#[track_caller]
fn cancelled_with_what_had_come(ran: &Ran) {
    for record in &ran.records {
        assert_eq!(record.outcome, Outcome::Cancelled, "request {}", record.index);
        if record.stamps.sent_at.is_some() {
            assert_eq!(record.output_chunks(), 2, "request {}", record.index);
            assert!(record.stamps.ended_at.is_some() && record.stamps.first_byte_at.is_some());
            assert_eq!(record.answer.http_status, Some(200));
        } else {
            assert_eq!(record.stamps.released_at, None, "request {}", record.index);
            assert!(record.events.is_empty());
        }
    }
}

#[test]
fn a_stopped_open_loop_accounts_for_every_request() {
    let server = endless_answers();
    let bench = Bench::at(&server.url()).load(even(20.0), 100);
    // Between two sends, so that the last answer has begun.
    let ran = stopped(bench, Span::from_ms(225));
    conserved(&ran, 100);
    cancelled_with_what_had_come(&ran);
    let sent = ran.records.iter().filter(|record| record.stamps.sent_at.is_some()).count();
    assert!((4..60).contains(&sent), "{sent} were in flight");
    assert_eq!((ran.end.early, ran.end.lost_workers), (None, 0));
    assert_eq!(
        ran.records[99].stamps.intended_at,
        At::from_us(99 * 50_000 + ran.records[0].stamps.intended_at.us())
    );
}

#[test]
fn a_stopped_closed_loop_accounts_for_every_request() {
    let server = endless_answers();
    let mut bench = Bench::at(&server.url()).load(closed(4), 20);
    bench.threads = 2;
    let ran = stopped(bench, Span::from_ms(100));
    conserved(&ran, 20);
    cancelled_with_what_had_come(&ran);
    assert_eq!(ran.records.iter().filter(|record| record.stamps.sent_at.is_some()).count(), 4);
}

#[test]
fn a_stopped_cap_and_a_stopped_burst_account_for_every_request() {
    let server = endless_answers();
    let capped = Load::Capped { pace: Pace::flat(PerSecond::new(500.0), 1.0), users: 3 };
    for (load, sent) in [(capped, 3), (Load::Burst, 30)] {
        let ran = stopped(Bench::at(&server.url()).load(load.clone(), 30), Span::from_ms(150));
        conserved(&ran, 30);
        cancelled_with_what_had_come(&ran);
        let in_flight = ran.records.iter().filter(|record| record.stamps.sent_at.is_some());
        assert_eq!(in_flight.count(), sent, "{load:?}");
    }
}

#[test]
fn a_stopped_conversation_accounts_for_turns_that_never_came() {
    let server = endless_answers();
    let mut bench = Bench::at(&server.url()).load(even(10.0), 1);
    let turn = |index: u32, after| workload::Request {
        index,
        after,
        session: 0,
        turn: index as u16,
        labels: Vec::new(),
        prompt: PromptRef::Listed(0),
        input_tokens: None,
        max_output_tokens: None,
        output_forced: false,
        route: workload::Route::default(),
    };
    let parent = |of| After::Parents { of: vec![of], think: Span::ZERO };
    bench.requests =
        Some(vec![turn(0, After::Instant(At::ZERO)), turn(1, parent(0)), turn(2, parent(1))]);
    let ran = stopped(bench, Span::from_ms(100));
    conserved(&ran, 3);
    cancelled_with_what_had_come(&ran);
}

#[test]
fn a_run_stopped_before_it_starts_sends_nothing() {
    let server = endless_answers();
    for load in [closed(2), even(100.0), Load::Burst] {
        let bench = Bench::at(&server.url()).load(load, 6);
        bench.control.stop();
        let ran = bench.run();
        conserved(&ran, 6);
        assert_eq!(ran.count(Outcome::Cancelled), 6);
    }
    assert_eq!(server.requests().len(), 0);
}

fn refusing(status: u16) -> Server {
    let body = serde_json::json!({"error": {"message": "no"}});
    Server::start_scripted(Routes::new().on("/", Script::json(status, &body))).unwrap()
}

#[test]
fn five_equal_refusals_without_a_success_stop_the_run() {
    for status in [401, 403, 404] {
        let server = refusing(status);
        let ran = Bench::at(&server.url()).load(closed(1), 200).run();
        conserved(&ran, 200);
        let refused = Early::Refused { kind: "http_status", status: Some(status) };
        assert_eq!(ran.end.early, Some(refused));
        let answered = server.requests().len();
        assert!((5..100).contains(&answered), "{answered} were sent before the stop");
        assert!(ran.count(Outcome::Cancelled) >= 100);
    }
}

#[test]
fn a_port_that_takes_no_connection_stops_the_run() {
    let url = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let ran = Bench::at(&url).load(even(100.0), 100).run();
    conserved(&ran, 100);
    assert_eq!(ran.end.early, Some(Early::Refused { kind: "connect", status: None }));
    assert!(ran.count(Outcome::Cancelled) >= 50);
}

#[test]
fn other_failures_and_unequal_refusals_do_not_stop_the_run() {
    let mut turn = 0;
    let alternating = move |_: &Request| {
        turn += 1;
        Script::whole(if turn % 2 == 0 { 401 } else { 403 }, "text/plain", "no")
    };
    for server in [refusing(500), refusing(429), Server::start_scripted(alternating).unwrap()] {
        let ran = Bench::at(&server.url()).load(closed(1), 20).run();
        assert_eq!(ran.end.early, None);
        assert_eq!(server.requests().len(), 20);
    }
}

#[test]
fn one_success_keeps_refusals_from_stopping_the_run() {
    let mut turn = 0;
    let mostly_refused = move |_: &Request| {
        turn += 1;
        if turn == 3 { answer(0) } else { Script::whole(404, "text/plain", "no") }
    };
    let server = Server::start_scripted(mostly_refused).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 20).run();
    assert_eq!((ran.end.early.clone(), ran.count(Outcome::Ok)), (None, 1));
    assert_eq!(server.requests().len(), 20);
}

#[test]
fn more_errors_than_allowed_stop_the_run() {
    let server = refusing(500);
    let mut bench = Bench::at(&server.url()).load(even(100.0), 100);
    bench.rules.max_errors = Some(3);
    let ran = bench.run();
    conserved(&ran, 100);
    assert_eq!(ran.end.early, Some(Early::TooManyErrors(4)));
    assert!(ran.count(Outcome::Cancelled) >= 50);
}

#[test]
fn a_share_of_errors_stops_the_run_after_twenty() {
    let mut turn = 0;
    let one_in_two = move |_: &Request| {
        turn += 1;
        if turn % 2 == 0 { answer(0) } else { Script::whole(500, "text/plain", "no") }
    };
    let server = Server::start_scripted(one_in_two).unwrap();
    let mut bench = Bench::at(&server.url()).load(even(200.0), 200);
    bench.rules.max_error_rate = Some(0.4);
    let ran = bench.run();
    conserved(&ran, 200);
    // The twenty-first is the first failure at which there are twenty.
    let early = ran.end.early;
    assert!(matches!(early, Some(Early::TooManyErrors(10..=12))), "{early:?}");
    let server = refusing(500);
    let mut bench = Bench::at(&server.url()).load(closed(1), 19);
    bench.rules.max_error_rate = Some(0.4);
    assert_eq!(bench.run().end.early, None, "nineteen are too few to judge");
}

#[test]
fn a_stopped_closed_loop_with_a_time_limit_keeps_what_was_sent() {
    let server = endless_answers();
    let mut bench = Bench::at(&server.url());
    bench.spec.load = closed(2);
    bench.spec.stop = Stop::Duration(Span::from_ms(60_000));
    let ran = stopped(bench, Span::from_ms(100));
    conserved(&ran, 2);
    cancelled_with_what_had_come(&ran);
}
