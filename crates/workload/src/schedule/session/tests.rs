use measure::{PerSecond, Span};
use proptest::prelude::*;

use super::*;
use crate::arrival::Pace;
use crate::conversation::{Conversation, Turn, TurnCount, Turns};
use crate::load::Stop;
use crate::prompt::{CacheRegime, Order};
use crate::routing::Routing;
use crate::schedule::{Note, OutputLength, Spec};
use crate::{Lengths, estimate_tokens};

fn written(count: &str, input: Option<u32>) -> Conversations {
    let input = input.map(|input| Lengths::fixed(input).unwrap());
    let count: TurnCount = count.parse().unwrap();
    Conversations {
        script: Script::Written(Turns { count, input }),
        think: Span::from_ms(30).into(),
        history: History::Real,
    }
}

fn spec(load: Load, stop: Stop, conversations: Conversations) -> Spec {
    Spec {
        seed: 1,
        load,
        stop,
        prompts: PromptSource::Synthetic { input: Lengths::fixed(40).unwrap() },
        pictures: None,
        batch: crate::Batch::One,
        prefixes: crate::Prefixes::NONE,
        output: OutputLength::Drawn(Lengths::fixed(8).unwrap()),
        output_forced: false,
        cache: CacheRegime::Cold,
        nonce_in_own_prompts: false,
        labels: Vec::new(),
        routing: Routing::default(),
        conversations: Some(conversations),
    }
}

fn open(rate: f64) -> Load {
    Load::Open { pace: Pace::flat(PerSecond::new(rate), 1.0) }
}

fn closed(users: u32) -> Load {
    Load::Closed { users, think: Think::NONE }
}

fn draw(spec: Spec) -> Schedule {
    Schedule::draw(spec).unwrap().0
}

#[test]
fn counts_and_arrivals_are_of_conversations() {
    let (schedule, notes) =
        Schedule::draw(spec(open(10.0), Stop::Count(5), written("3", None))).unwrap();
    assert_eq!((schedule.units(), schedule.count()), (Some(5), Some(15)));
    assert_eq!(schedule.arrivals().count(), 5);
    assert!(notes.contains(&Note::Conversations { conversations: Some(5), requests: Some(15) }));
    let requests: Vec<Request> = schedule.requests().collect();
    for (index, request) in requests.iter().enumerate() {
        let (session, turn) = (index as u32 / 3, index as u16 % 3);
        assert_eq!((request.session, request.turn), (session, turn));
        assert_eq!(request.labels, [("turn".to_owned(), (turn + 1).to_string())]);
        match &request.after {
            After::Instant(at) => {
                assert_eq!(turn, 0);
                assert_eq!(schedule.intended_at(request.index), Some(*at));
            }
            After::Parents { of, think } => {
                assert_eq!((of.as_slice(), *think), (&[request.index - 1][..], Span::from_ms(30)));
                assert_eq!(schedule.intended_at(request.index), None);
            }
            After::Slot { .. } => panic!("an open loop has no slots"),
        }
    }
    assert!(schedule.describe().contains("of conversations"), "{}", schedule.describe());
}

#[test]
fn a_plan_without_a_last_conversation_goes_on() {
    let endless = Stop::Duration(Span::from_ms(1_000));
    let schedule = draw(spec(closed(2), endless, written("2-4", None)));
    assert_eq!((schedule.units(), schedule.count()), (None, None));
    let far = schedule.request(3_000_000).unwrap();
    let unit = schedule.unit(far.session).unwrap();
    assert!(unit.contains(&far));
    assert!((2..=4).contains(&unit.len()));
    assert_eq!(schedule.turns_of(&far), unit.len() as u32);
}

fn answers(index: u32) -> Vec<Message> {
    vec![Message::new("assistant", format!("answer {index}"))]
}

fn messages(schedule: &Schedule, index: u32) -> Vec<(String, String)> {
    let request = schedule.request(index).unwrap();
    match schedule.prompt_after(&request, RunNonce::new(7), &answers).content {
        Content::Text(text) => vec![("alone".to_owned(), text)],
        Content::Texts(_) => panic!("one text"),
        Content::Messages(messages) => {
            messages.into_iter().map(|message| (message.role, message.content)).collect()
        }
    }
}

#[test]
fn later_prompts_hold_what_was_said_before_in_order() {
    let schedule = draw(spec(open(10.0), Stop::Count(2), written("3", Some(9))));
    let first = messages(&schedule, 3);
    let [(alone, opening)] = first.as_slice() else { panic!("{first:?}") };
    assert_eq!((alone.as_str(), estimate_tokens(opening)), ("alone", 40));
    let last = messages(&schedule, 5);
    let roles: Vec<&str> = last.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(&last[0].1, opening, "the head of a conversation keeps its text and nonce");
    assert_eq!((last[1].1.as_str(), last[3].1.as_str()), ("answer 3", "answer 4"));
    assert_eq!(messages(&schedule, 4)[..], last[..3]);
    for (_, text) in [&last[2], &last[4]] {
        assert_eq!(estimate_tokens(text), 9);
    }
    let carried: Vec<bool> = schedule
        .unit(1)
        .unwrap()
        .iter()
        .map(|request| schedule.answer_is_carried(request))
        .collect();
    assert_eq!(carried, [true, true, false]);
}

#[test]
fn under_regime_none_no_two_turns_begin_alike() {
    let mut none = spec(open(10.0), Stop::Count(1), written("3", None));
    none.cache = CacheRegime::None;
    let schedule = draw(none);
    let heads: Vec<String> = (0..3)
        .map(|index| messages(&schedule, index)[0].1.split('.').next().unwrap().to_owned())
        .collect();
    assert!(heads[0] != heads[1] && heads[1] != heads[2] && heads[0] != heads[2], "{heads:?}");
}

/// A graph of a file: 0 → 1 and 2 (which starts afresh) → 3; then a
/// conversation of one turn.
fn listed(history: History, order: Order) -> Spec {
    let turn = |parents: &[u16], said: &str| Turn {
        parents: parents.to_vec(),
        answer: vec![Message::new("assistant", said)],
        ..Turn::default()
    };
    let graph = vec![
        turn(&[], "A"),
        turn(&[0], "B"),
        Turn { fresh: true, think: Some(Span::from_ms(2)), ..turn(&[0], "C") },
        turn(&[1, 2], "D"),
    ];
    let all = vec![Conversation::new(0, graph), Conversation::new(4, vec![turn(&[], "E")])];
    let mut prompts: Vec<Prompt> = ["a", "b", "c", "d", "e"].map(Prompt::text).into();
    prompts[0].body = vec![("tools".to_owned(), "[1]".to_owned())];
    prompts[2].body = vec![("tools".to_owned(), "[2]".to_owned())];
    let conversations = Conversations { script: Script::Listed(all), think: Think::NONE, history };
    Spec {
        prompts: PromptSource::List { prompts, order },
        cache: CacheRegime::AsIs,
        ..spec(open(10.0), Stop::Count(2), conversations)
    }
}

#[test]
fn a_join_goes_on_from_its_first_parent_and_hears_the_others() {
    let schedule = draw(listed(History::Real, Order::AsIs));
    let said = |index| -> Vec<String> {
        messages(&schedule, index)
            .into_iter()
            .map(|(role, text)| format!("{role}: {text}"))
            .collect()
    };
    assert_eq!(said(1), ["user: a", "assistant: answer 0", "user: b"]);
    assert_eq!(said(2), ["alone: c"]);
    let join = said(3);
    assert_eq!(
        join,
        [
            "user: a",
            "assistant: answer 0",
            "user: b",
            "assistant: answer 1",
            "user: answer 2",
            "user: d"
        ]
    );
    let requests: Vec<Request> = schedule.requests().collect();
    let join = After::Parents { of: vec![1, 2], think: Span::ZERO };
    assert_eq!((requests[3].after.clone(), requests[3].turn), (join, 2));
    let think = |index: usize| match &requests[index].after {
        After::Parents { think, .. } => *think,
        other => panic!("{other:?}"),
    };
    assert_eq!((think(1), think(2)), (Span::ZERO, Span::from_ms(2)));
    assert_eq!(requests[4].session, 1);
    let tools = |index: usize| {
        let prompt = schedule.prompt_after(&requests[index], RunNonce::new(1), &answers);
        prompt.member("tools").map(str::to_owned)
    };
    assert_eq!((tools(1), tools(2)), (Some("[1]".to_owned()), Some("[2]".to_owned())));
}

#[test]
fn a_scripted_history_asks_for_no_answer() {
    let schedule = draw(listed(History::Scripted, Order::AsIs));
    let request = schedule.request(1).unwrap();
    let never = |index| panic!("the answer to {index} is in the file");
    let prompt = schedule.prompt_after(&request, RunNonce::new(1), &never);
    let Content::Messages(messages) = prompt.content else { panic!("messages") };
    assert_eq!(messages[1].content, "A");
    assert!(schedule.requests().all(|request| !schedule.answer_is_carried(&request)));
    let real = draw(listed(History::Real, Order::AsIs));
    assert_ne!(schedule.hash(), real.hash());
}

#[test]
fn conversations_of_a_list_are_shuffled_whole_and_come_again_in_rounds() {
    let orders: std::collections::BTreeSet<Vec<u32>> = (0..20)
        .map(|seed| {
            let spec = Spec { seed, ..listed(History::Real, Order::Shuffled) };
            let schedule = draw(Spec { stop: Stop::Count(4), ..spec });
            assert_eq!(schedule.count(), Some(10));
            let places: Vec<u32> = schedule
                .requests()
                .map(|request| match request.prompt {
                    PromptRef::Listed(place) => place,
                    PromptRef::Written(_) => panic!("a list"),
                })
                .collect();
            assert_eq!(places[..5], places[5..]);
            places
        })
        .collect();
    assert_eq!(orders.len(), 2, "{orders:?}");
    assert!(orders.iter().all(|places| places.contains(&3)));
}

proptest! {
    /// Units are dealt whole: the union over workers is the schedule, and a
    /// conversation has one worker.
    #[test]
    fn workers_together_hold_every_conversation_whole(
        workers in 1u32..5,
        users in prop::option::of(1u32..6),
        count in 1u32..30,
        turns in prop::sample::select(vec!["1", "3", "1-5"]),
    ) {
        let load = users.map_or_else(|| open(50.0), closed);
        let schedule = draw(spec(load, Stop::Count(count), written(turns, None)));
        let mut seen: Vec<u32> = Vec::new();
        for unit in 0..count {
            let requests = schedule.unit(unit).unwrap();
            let owner = schedule.owner_at_unit(unit, workers).unwrap();
            for request in requests {
                prop_assert_eq!(schedule.owner_at(request.index, workers), Some(owner));
                prop_assert_eq!(request.session, unit);
                seen.push(request.index);
            }
        }
        prop_assert_eq!(seen, (0..schedule.count().unwrap()).collect::<Vec<_>>());
        prop_assert_eq!(schedule.unit(count), None);
        prop_assert_eq!(schedule.owner_at_unit(count, workers), None);
    }
}
