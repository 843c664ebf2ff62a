//! Dead idle connections, reuse, retirement.

use std::collections::BTreeSet;

use drive::Reuse;
use fake::{Request, Routes, Script, Server};
use measure::{At, FailureKind, Outcome, Span};
use workload::{After, PromptRef};

use crate::build::{Bench, DONE, answer, closed, even, finish, index, stream, text};

#[test]
fn h20_a_connection_closed_at_its_reuse_is_a_reconnect_and_no_failure() {
    // 40 ms tell the stamp of the first try from that of the second.
    let routes = Routes::new().on("/", answer(1)).then(Script::new().close(40));
    let server = Server::start_scripted(routes).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 2).run();
    ran.all_ok();
    let reconnects: u16 = ran.records.iter().map(|record| record.answer.reconnects).sum();
    assert_eq!((reconnects, ran.records[1].answer.reconnects), (1, 1));
    let seen = server.requests();
    assert_eq!(seen.iter().map(index).collect::<Vec<_>>(), [0, 1, 1]);
    assert_ne!(seen[1].connection, seen[2].connection);
    let sent_at = ran.records[1].stamps.sent_at.unwrap();
    let sent_ns = ran.end.clock.monotonic_ns_of(sent_at) as u64;
    assert!(sent_ns < seen[1].arrival_ns + 20_000_000, "sent_at is not that of the first try");
    let first_byte_at = ran.records[1].stamps.first_byte_at.unwrap();
    assert!(first_byte_at - sent_at >= Span::from_ms(40), "TTFT does not begin at the first try");
}

#[test]
fn h20_a_reset_at_reuse_is_a_reconnect_too() {
    let routes = Routes::new().on("/", answer(1)).then(Script::new().reset(0));
    let server = Server::start_scripted(routes).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 4).run();
    ran.all_ok();
    let reconnects: Vec<u16> = ran.records.iter().map(|record| record.answer.reconnects).collect();
    assert_eq!(reconnects, [0, 1, 1, 1]);
}

#[test]
fn h20_a_second_loss_on_a_fresh_connection_is_a_failure() {
    let mut first = true;
    let respond = move |_: &Request| {
        if std::mem::take(&mut first) { answer(1) } else { Script::new().close(0) }
    };
    let server = Server::start_scripted(respond).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 2).run();
    assert_eq!(ran.records[0].outcome, Outcome::Ok);
    assert_eq!(ran.records[1].outcome, Outcome::Failed(FailureKind::Disconnected));
    assert_eq!(ran.records[1].answer.reconnects, 1);
    assert_eq!(server.requests().len(), 3, "a request is tried twice and no more");
}

#[test]
fn h20_a_loss_after_the_first_byte_is_not_tried_again() {
    let part = Script::new().send(0, "HTTP/1.1 200 OK\r\ncontent-").close(5);
    let routes = Routes::new().on("/", answer(1)).then(part);
    let server = Server::start_scripted(routes).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 2).run();
    assert_eq!(ran.records[1].outcome, Outcome::Failed(FailureKind::Disconnected));
    assert_eq!(ran.records[1].answer.reconnects, 0);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn users_reuse_their_connections() {
    let server = Server::start_scripted(Routes::new().on("/", answer(2))).unwrap();
    let ran = Bench::at(&server.url()).load(closed(3), 30).run();
    ran.all_ok();
    let seen = server.requests();
    assert_eq!(seen.len(), 30);
    assert_eq!(server.counters().accepted, 3, "three users need three connections");
    assert!(seen.iter().any(|request| request.on_connection >= 5));
    assert!(ran.records.iter().all(|record| record.stamps.connected_at.is_none()));
    let round_trip = ran.end.instrument.round_trip;
    assert!(round_trip.is_some_and(|took| took > Span::ZERO), "{round_trip:?}");
}

#[test]
fn idle_connections_past_their_age_are_not_used_again() {
    let server = Server::start_scripted(Routes::new().on("/", answer(2))).unwrap();
    let mut bench = Bench::at(&server.url()).load(closed(2), 10);
    bench.idle_limit = Span::ZERO;
    let ran = bench.run();
    ran.all_ok();
    let connections: BTreeSet<u64> =
        server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections.len(), 10);
    for record in &ran.records {
        assert!(record.stamps.connected_at.is_some(), "request {}", record.index);
        assert_eq!(record.answer.reconnects, 0);
    }
}

#[test]
fn a_server_that_closes_after_each_answer_gets_a_connection_each() {
    let server = Server::start_scripted(Routes::new().on("/", answer(1).close(1))).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 5).run();
    ran.all_ok();
    assert!(server.requests().iter().all(|request| request.on_connection == 0));
}

#[test]
fn a_connection_with_an_answer_that_never_ends_its_framing_is_not_used_again() {
    // [DONE] ends the answer, but the last chunk never comes.
    let open = stream().chunk(0, text("one")).chunk(0, finish("stop")).chunk(0, DONE).stall(0);
    let server = Server::start_scripted(Routes::new().on("/", open)).unwrap();
    let ran = Bench::at(&server.url()).load(closed(1), 3).run();
    ran.all_ok();
    assert!(server.requests().iter().all(|request| request.on_connection == 0));
}

#[test]
fn without_reuse_each_request_opens_its_own_connection() {
    let server = Server::start_scripted(Routes::new().on("/", answer(1))).unwrap();
    let mut bench = Bench::at(&server.url()).load(closed(3), 12);
    bench.reuse = Reuse::Never;
    let ran = bench.run();
    ran.all_ok();
    assert!(ran.records.iter().all(|record| record.stamps.connected_at.is_some()));
    assert!(server.requests().iter().all(|request| request.on_connection == 0));
    assert_eq!(server.counters().accepted, 12, "connections were opened that nobody uses");
}

#[test]
fn turns_of_a_conversation_keep_a_connection_to_themselves() {
    let server = Server::start_scripted(Routes::new().on("/", answer(3))).unwrap();
    let mut bench = Bench::at(&server.url()).load(even(100.0), 1);
    bench.reuse = Reuse::PerSession;
    // Two conversations of three turns each, taking turns.
    let turn = |index: u32| workload::Request {
        index,
        after: match index {
            0 | 1 => After::Instant(At::ZERO),
            later => After::Parents { of: vec![later - 2], think: Span::ZERO },
        },
        session: index % 2,
        turn: (index / 2) as u16,
        labels: Vec::new(),
        prompt: PromptRef::Listed(0),
        input_tokens: None,
        max_output_tokens: None,
        output_forced: false,
        route: workload::Route::default(),
    };
    bench.requests = Some((0..6).map(turn).collect());
    let ran = bench.run();
    ran.all_ok();
    let connections = |session: u32| -> BTreeSet<u64> {
        let own = server.requests().into_iter().filter(|request| index(request) % 2 == session);
        own.map(|request| request.connection).collect()
    };
    let (even, odd) = (connections(0), connections(1));
    assert_eq!((even.len(), odd.len()), (1, 1));
    assert!(even.is_disjoint(&odd));
}

#[test]
fn connections_to_two_targets_are_kept_apart_and_used_again() {
    let servers =
        [(); 2].map(|()| Server::start_scripted(Routes::new().on("/", answer(2))).unwrap());
    let mut bench = Bench::at(&servers[0].url()).load(closed(3), 30);
    bench.also = vec![format!("{}/v1/chat/completions", servers[1].url())];
    let even = workload::Choice::new(vec![(0, 1.0), (1, 1.0)], workload::Assignment::InTurn);
    bench.spec.routing.targets = Some((workload::Dealt::Requests, even.unwrap()));
    bench.threads = 1;
    let ran = bench.run();
    ran.all_ok();
    for (place, server) in servers.iter().enumerate() {
        let seen = server.requests();
        assert_eq!(seen.len(), 15);
        assert!(seen.iter().all(|request| index(request) % 2 == place as u32));
        // Three users ask at most three at once of one target.
        assert!(server.counters().accepted <= 3, "{}", server.counters().accepted);
        let name = server.url().strip_prefix("http://").unwrap().to_owned();
        let own = ran.records.iter().filter(|record| record.index % 2 == place as u32);
        let label = ("url".to_owned(), name);
        assert!(own.into_iter().all(|record| record.planned.labels.contains(&label)));
    }
}

#[test]
fn turns_of_a_session_stay_at_one_target() {
    let servers =
        [(); 2].map(|()| Server::start_scripted(Routes::new().on("/", answer(2))).unwrap());
    let mut bench = Bench::at(&servers[0].url()).load(even(100.0), 1);
    bench.also = vec![format!("{}/v1/chat/completions", servers[1].url())];
    let in_turn = workload::Choice::new(vec![(0, 1.0), (1, 1.0)], workload::Assignment::InTurn);
    bench.spec.routing.targets = Some((workload::Dealt::Sessions, in_turn.unwrap()));
    bench.threads = 2;
    // Four conversations of three turns each, taking turns; their numbers are
    // all even, and still each target gets two of them.
    let turn = |index: u32| workload::Request {
        index,
        after: match index.checked_sub(4) {
            None => After::Instant(At::ZERO),
            Some(parent) => After::Parents { of: vec![parent], think: Span::ZERO },
        },
        session: index % 4 * 2,
        turn: (index / 4) as u16,
        labels: Vec::new(),
        prompt: PromptRef::Listed(0),
        input_tokens: None,
        max_output_tokens: None,
        output_forced: false,
        route: workload::Route::default(),
    };
    bench.requests = Some((0..12).map(turn).collect());
    bench.run().all_ok();
    for (place, server) in servers.iter().enumerate() {
        let seen: BTreeSet<u32> = server.requests().iter().map(index).collect();
        let own: BTreeSet<u32> = (0..12).filter(|index| index % 2 == place as u32).collect();
        assert_eq!(seen, own);
    }
}
