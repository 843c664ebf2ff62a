//! Conversations: what later turns hold, when they are let go, and how one that
//! breaks ends.

use std::collections::BTreeMap;

use fake::{Play, Request as Asked, Respond, Script, Server};
use measure::{At, NotSentKind, Outcome, Record, Span, Tokens, Warnings};
use serde_json::{Value, json};
use workload::conversation::{Conversation, Turn};
use workload::{
    Conversations, History, Lengths, Load, Message, Order, OutputLength, Prompt, PromptSource,
    Script as Turns, Stop, Think, TurnCount,
};

use crate::build::{Bench, Ran, chunk, closed, ending, even, index, stream, text};

/// Answers each request with a text that names it; refuses those of a list, and
/// calls a tool in the first turn when asked to.
#[derive(Default)]
struct Speaker {
    refused: Vec<u32>,
    calls: bool,
    after_ms: u64,
}

impl Respond for Speaker {
    fn answer(&mut self, request: &Asked) -> Play {
        let index = index(request);
        let script = if self.refused.contains(&index) {
            Script::json(500, &json!({"error": {"message": "no"}}))
        } else if self.calls && index == 0 {
            let call = json!([{"index": 0, "id": "real-id", "function": {"name": "look", "arguments": "{}"}}]);
            let event = json!({"choices": [{"index": 0, "delta": {"tool_calls": call}}]});
            ending(stream().send(0, chunk(&format!("data: {event}\n\n"))), self.after_ms)
        } else {
            ending(stream().chunk(0, text(&format!("I am {index}"))), self.after_ms)
        };
        Play::of(script, request.arrival_ns)
    }
}

fn written(turns: u16) -> Conversations {
    let turns = workload::Turns { count: TurnCount::fixed(turns).unwrap(), input: None };
    Conversations { script: Turns::Written(turns), think: Think::NONE, history: History::Real }
}

fn bench(server: &Server, load: Load, conversations: u32, talks: Conversations) -> Bench {
    let mut bench = Bench::at(&server.url()).load(load, conversations);
    bench.spec.prompts = PromptSource::Synthetic { input: Lengths::fixed(12).unwrap() };
    bench.spec.output = OutputLength::Drawn(Lengths::fixed(4).unwrap());
    bench.spec.conversations = Some(talks);
    bench
}

fn speaking(speaker: Speaker) -> Server {
    Server::start_scripted(speaker).unwrap()
}

/// The messages of every request by index.
fn messages(server: &Server) -> BTreeMap<u32, Vec<Value>> {
    let of = |request: &Asked| {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        (index(request), body["messages"].as_array().unwrap().clone())
    };
    server.requests().iter().map(of).collect()
}

fn texts(messages: &[Value]) -> Vec<&str> {
    messages.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

#[track_caller]
fn follows(later: &Record, parents: &[&Record], think: Span) {
    let ended = parents.iter().map(|parent| parent.stamps.ended_at.unwrap()).max().unwrap();
    assert_eq!(later.stamps.intended_at, ended + think);
    assert!(later.stamps.sent_at.unwrap() >= later.stamps.intended_at);
}

#[test]
fn a_turn_holds_the_real_answers_of_the_turns_before_it() {
    for (load, threads) in [(closed(3), 1), (closed(3), 3), (even(200.0), 1), (even(200.0), 3)] {
        let server = speaking(Speaker::default());
        let mut bench = bench(&server, load, 7, written(3));
        bench.threads = threads;
        let ran = bench.run();
        ran.all_ok();
        assert_eq!(ran.records.len(), 21);
        let seen = messages(&server);
        for (index, messages) in &seen {
            let turn = index % 3;
            assert_eq!(messages.len() as u32, 2 * turn + 1, "request {index}");
            for before in 0..turn {
                let place = 2 * before as usize + 1;
                assert_eq!(messages[place]["role"], "assistant");
                assert_eq!(messages[place]["content"], format!("I am {}", index - turn + before));
                assert_eq!(messages[place - 1], seen[&(index - turn + before)][place - 1]);
            }
        }
        for turns in ran.records.chunks(3) {
            follows(&turns[1], &[&turns[0]], Span::ZERO);
            follows(&turns[2], &[&turns[1]], Span::ZERO);
        }
        assert!(ran.records.iter().all(|record| record.answer.text.is_none()), "not asked for");
    }
}

#[test]
fn one_and_three_threads_hold_the_same_conversations() {
    let sent = |load: Load, threads| {
        let server = speaking(Speaker::default());
        let mut bench = bench(&server, load, 9, written(3));
        bench.threads = threads;
        bench.run().all_ok();
        messages(&server)
    };
    assert_eq!(sent(closed(3), 1), sent(closed(3), 3));
    assert_eq!(sent(even(300.0), 1), sent(even(300.0), 3));
}

#[test]
fn a_user_holds_one_conversation_after_the_other() {
    let server = speaking(Speaker { after_ms: 5, ..Speaker::default() });
    let think = Span::from_ms(7);
    let talks = Conversations { think: think.into(), ..written(2) };
    let ran = bench(&server, closed(2), 6, talks).run();
    ran.all_ok();
    assert!(ran.most_in_flight() <= 2);
    for turns in ran.records.chunks(2) {
        follows(&turns[1], &[&turns[0]], think);
    }
    // The third conversation begins where one of the first two ended.
    let ends = [1usize, 3].map(|index| ran.records[index].stamps.ended_at.unwrap());
    assert!(ends.contains(&ran.records[4].stamps.intended_at));
}

#[test]
fn a_cap_counts_requests_in_flight() {
    let server = speaking(Speaker { after_ms: 5, ..Speaker::default() });
    let pace = workload::Pace::flat(measure::PerSecond::new(1_000.0), f64::INFINITY);
    let ran = bench(&server, Load::Capped { pace, users: 2 }, 6, written(2)).run();
    ran.all_ok();
    assert_eq!((ran.records.len(), ran.most_in_flight()), (12, 2));
}

#[test]
fn a_turn_that_fails_ends_its_conversation_and_no_other() {
    for load in [closed(2), even(300.0)] {
        let server = speaking(Speaker { refused: vec![1, 6], ..Speaker::default() });
        let ran = bench(&server, load, 4, written(3)).run();
        let outcome = |index: usize| ran.records[index].outcome;
        let unsent = Outcome::NotSent(NotSentKind::ParentFailed);
        assert_eq!([2, 7, 8].map(outcome), [unsent; 3]);
        assert_eq!(ran.records.len(), 12, "outcomes partition the schedule");
        assert_eq!(ran.count(Outcome::Ok), 7);
        assert_eq!(server.requests().len(), 9);
        assert!(ran.records[2].stamps.released_at.is_none());
        assert_eq!(ran.end.early, None);
    }
}

/// A conversation of a list, with the parents of each turn.
fn listed(parents: &[&[u16]], prompts: Vec<Prompt>) -> (PromptSource, Conversations) {
    let turns = parents.iter().map(|of| Turn { parents: of.to_vec(), ..Turn::default() });
    let conversation = Conversation::new(0, turns.collect());
    let talks = Conversations {
        script: Turns::Listed(vec![conversation]),
        think: Think::NONE,
        history: History::Real,
    };
    (PromptSource::List { prompts, order: Order::AsIs }, talks)
}

fn run_listed(server: &Server, load: Load, list: (PromptSource, Conversations)) -> Ran {
    let mut bench = bench(server, load, 1, list.1);
    bench.spec.prompts = list.0;
    bench.run()
}

#[test]
fn a_join_starts_after_its_last_parent_and_hears_them_all() {
    for load in [closed(1), even(100.0)] {
        let server = speaking(Speaker { after_ms: 4, ..Speaker::default() });
        let prompts = ["plan", "left", "right", "sum"].map(Prompt::text).into();
        let ran = run_listed(&server, load, listed(&[&[], &[0], &[0], &[1, 2]], prompts));
        ran.all_ok();
        let [root, left, right, join] = ran.records.as_slice() else { panic!("four turns") };
        follows(left, &[root], Span::ZERO);
        follows(right, &[root], Span::ZERO);
        follows(join, &[left, right], Span::ZERO);
        assert_eq!((join.planned.turn, join.planned.session), (2, 0));
        let seen = messages(&server);
        let said = texts(&seen[&3]);
        assert_eq!(said, ["plan", "I am 0", "left", "I am 1", "I am 2", "sum"]);
    }
}

#[test]
fn a_failed_branch_keeps_its_join_from_being_asked() {
    let server = speaking(Speaker { refused: vec![2], ..Speaker::default() });
    let prompts = ["plan", "left", "right", "sum", "after"].map(Prompt::text).into();
    let graph = listed(&[&[], &[0], &[0], &[1, 2], &[1]], prompts);
    let ran = run_listed(&server, closed(1), graph);
    let ok = |index: usize| ran.records[index].outcome == Outcome::Ok;
    assert_eq!([0, 1, 2, 3, 4].map(ok), [true, true, false, false, true]);
    assert_eq!(ran.records[3].outcome, Outcome::NotSent(NotSentKind::ParentFailed));
}

#[test]
fn a_call_of_a_tool_is_put_into_the_history_with_its_scripted_result() {
    let result = |text: &str| Message {
        members: Some(json!({"tool_call_id": "scripted"}).to_string()),
        ..Message::new("tool", text)
    };
    for calls in [true, false] {
        let server = speaking(Speaker { calls, ..Speaker::default() });
        let prompts = vec![
            Prompt::text("look it up"),
            Prompt { content: workload::Content::Messages(vec![result("42")]), ..Prompt::text("") },
        ];
        let ran = run_listed(&server, closed(1), listed(&[&[], &[0]], prompts));
        ran.all_ok();
        let seen = messages(&server);
        let refitted = ran.records[1].answer.warnings.has(Warnings::TOOL_RESULTS_REFITTED);
        assert_eq!(refitted, !calls);
        if calls {
            assert_eq!(seen[&1][1]["tool_calls"][0]["function"]["name"], "look");
            let want = json!({"role": "tool", "tool_call_id": "real-id", "content": "42"});
            assert_eq!(seen[&1][2], want);
        } else {
            assert_eq!(seen[&1][2], json!({"role": "user", "content": "42"}));
        }
    }
}

#[test]
fn the_session_header_names_the_conversation() {
    let server = speaking(Speaker::default());
    let mut bench = bench(&server, closed(1), 2, written(2));
    bench.session_header = Some("x-session-id".to_owned());
    bench.run().all_ok();
    let mut seen: Vec<(u32, String)> = server
        .requests()
        .iter()
        .map(|request| (index(request), request.header("x-session-id").unwrap().to_owned()))
        .collect();
    seen.sort();
    let names: Vec<&str> = seen.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["run-s0", "run-s0", "run-s1", "run-s1"]);
}

#[test]
fn a_stop_in_the_middle_accounts_for_every_turn() {
    // The second turn never ends by itself.
    struct Stuck;
    impl Respond for Stuck {
        fn answer(&mut self, request: &Asked) -> Play {
            let script = match index(request) % 3 {
                0 => ending(stream().chunk(0, text("on")), 0),
                _ => stream().chunk(0, text("and")).stall(0),
            };
            Play::of(script, request.arrival_ns)
        }
    }
    for (load, stop) in [
        (closed(2), Stop::Count(2)),
        (even(500.0), Stop::Count(2)),
        (closed(2), Stop::Duration(Span::from_ms(5_000))),
    ] {
        let server = Server::start_scripted(Stuck).unwrap();
        let mut bench = bench(&server, load, 2, written(3));
        bench.spec.stop = stop;
        let control = bench.control.clone();
        let mut ended = 0;
        let ran = bench.watch(|happening| {
            if let drive::Happening::Ended(_) = happening {
                ended += 1;
            }
            if let (drive::Happening::Tick(_), 2) = (happening, ended) {
                // Both second turns are under way or on their way.
                control.stop();
            }
        });
        assert_eq!(ran.records.len(), 6, "{stop:?}");
        assert_eq!(ran.count(Outcome::Ok), 2);
        let unsent = ran.records.iter().filter(|record| record.stamps.sent_at.is_none());
        assert!(unsent.clone().all(|record| record.outcome == Outcome::Cancelled));
        assert!(unsent.count() >= 2, "the third turns");
    }
}

#[test]
fn planned_lengths_are_those_of_first_turns() {
    let server = speaking(Speaker::default());
    let ran = bench(&server, closed(1), 1, written(2)).run();
    ran.all_ok();
    let lengths: Vec<_> = ran.records.iter().map(|record| record.planned.input_tokens).collect();
    assert_eq!(lengths, [Some(Tokens::new(12)), None]);
    assert!(ran.records[0].stamps.intended_at >= At::ZERO);
}
