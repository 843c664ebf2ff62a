//! Conversations as wholes, and windows of runs that hold some.

use measure::facts::LoadKind;
use measure::slices::Part;
use measure::{At, NotSentKind, Outcome, Record, Span};

use crate::build::{Build, at, facts, failed, records, request, streamed, summary};

/// A turn of a conversation.
fn turn(build: Build, session: u32, turn: u16) -> Record {
    let mut record = build.record();
    (record.planned.session, record.planned.turn) = (session, turn);
    record.planned.labels = vec![("turn".to_owned(), (turn + 1).to_string())];
    record
}

/// Three conversations of two turns: one held, one broken by its first turn, one
/// stopped after it.
fn three() -> Vec<Record> {
    let unsent = request(3).unreleased().outcome(Outcome::NotSent(NotSentKind::ParentFailed));
    vec![
        turn(streamed(0, 100, 500, 5).at(0), 0, 0),
        turn(streamed(1, 100, 500, 5).at(1_500), 0, 1),
        turn(failed(2, measure::FailureKind::HttpStatus).at(1_000), 1, 0),
        turn(unsent, 1, 1),
        turn(streamed(4, 100, 500, 5).at(2_000), 2, 0),
        turn(request(5).unreleased().outcome(Outcome::Cancelled), 2, 1),
    ]
}

#[test]
fn conversations_are_held_broken_or_stopped() {
    let run = summary(&three(), &facts(LoadKind::Open));
    let found = run.conversations.expect("there are later turns");
    assert_eq!((found.begun, found.completed, found.broken, found.stopped), (3, 1, 1, 1));
    assert_eq!((found.turns, found.turns_ok), (6, 3));
    // From 0 to 1.5 s and half a second more.
    assert_eq!((found.duration.n, found.duration.figure("max")), (1, Some(2_000.0)));
    assert_eq!(found.duration.n_undefined(), 2);
    let alone = records([streamed(0, 100, 500, 5), streamed(1, 100, 500, 5)]);
    assert_eq!(summary(&alone, &facts(LoadKind::Open)).conversations, None);
}

#[test]
fn arrivals_are_those_of_first_turns() {
    // Four conversations a second apart, each with a second turn much later.
    let mut run = Vec::new();
    for session in 0..4u32 {
        let from = i64::from(session) * 1_000;
        run.push(turn(streamed(2 * session, 100, 500, 5).at(from), session, 0));
        run.push(turn(streamed(2 * session + 1, 100, 500, 5).at(from + 60_000), session, 1));
    }
    let load = summary(&run, &facts(LoadKind::Open)).load;
    assert_eq!((load.offered_rps, load.released_rps), (Some(1.0), Some(1.0)));
    assert_eq!(load.arrival_window_s, Some(4.0));
}

#[test]
fn a_user_has_work_until_its_last_conversation_ends() {
    // Two users; each conversation is two turns of 3 s with a pause of 3 s. The
    // first user is done at 27 s, the second at 30 s.
    let mut run = Vec::new();
    for (session, from) in [(0, 0), (1, 3), (2, 9), (3, 12), (4, 18), (5, 21)] {
        for place in 0..2u16 {
            let at_s = from + i64::from(place) * 6;
            let index = 2 * session + u32::from(place);
            run.push(turn(streamed(index, 1_000, 3_000, 5).at(at_s * 1_000), session, place));
        }
    }
    let mut closed = facts(LoadKind::Closed);
    closed.load.users = Some(2);
    let window = summary(&run, &closed).steady.window.expect("a steady part");
    assert_eq!((window.from, window.until), (at(12_000), at(27_000)));
    assert_eq!(window.from, At::ZERO + Span::from_ms(12_000));
}

#[test]
fn turns_are_in_the_order_of_their_numbers() {
    let run: Vec<Record> =
        (0..12).map(|n| turn(streamed(u32::from(n), 100, 500, 5), 0, n)).collect();
    let slices = summary(&run, &facts(LoadKind::Closed)).slices.by_label;
    let values: Vec<String> = slices
        .iter()
        .map(|slice| match &slice.of {
            Part::Label { value, .. } => value.clone().unwrap_or_default(),
            Part::Input { .. } => panic!("a label"),
        })
        .collect();
    let want: Vec<String> = (1..=12).map(|n: u32| n.to_string()).collect();
    assert_eq!(values, want);
}
