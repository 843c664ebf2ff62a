use proptest::prelude::*;
use workload::estimate_tokens;

use super::super::columns::Columns;
use super::super::table::Options;
use super::super::{custom, sonnet};
use super::*;

fn options(multi_turn: bool, scripted: bool) -> Options<'static> {
    Options {
        count: &estimate_tokens,
        columns: Columns::default(),
        category: None,
        model: None,
        sonnet: sonnet::Shape::VLLM,
        open: &|path| Err(format!("{path} does not exist")),
        media_inside: false,
        trace: Default::default(),
        multi_turn,
        scripted,
    }
}

fn read(file: &str) -> (Vec<Prompt>, Vec<Conversation>, DatasetNotes) {
    read_as(file, &options(false, false))
}

fn read_as(file: &str, options: &Options<'_>) -> (Vec<Prompt>, Vec<Conversation>, DatasetNotes) {
    match custom::prompts_or_turns(file.as_bytes(), options) {
        (Rows::Conversations { prompts, conversations }, notes) => (prompts, conversations, notes),
        (other, _) => panic!("{other:?}"),
    }
}

fn texts(prompts: &[Prompt]) -> Vec<String> {
    let text = |prompt: &Prompt| {
        let messages = prompt.content.clone().into_messages().into_iter();
        messages.map(|message| message.content).collect::<Vec<_>>().join("|")
    };
    prompts.iter().map(text).collect()
}

fn parents(conversation: &Conversation) -> Vec<Vec<u16>> {
    conversation.turns().iter().map(|turn| turn.parents.clone()).collect()
}

#[test]
fn rows_of_one_session_are_turns_in_the_order_of_the_file() {
    let (prompts, talks, notes) = read(
        r#"{"session": "a", "prompt": "one"}
{"session": 7, "prompt": "eins", "think_ms": 1500}
{"session": "a", "prompt": "two", "think_ms": 0.5}
{"prompt": "alone"}
{"session": "a", "prompt": "three"}
"#,
    );
    assert_eq!(notes.skipped_count(), 0);
    assert_eq!(texts(&prompts), ["one", "two", "three", "eins", "alone"]);
    assert_eq!(talks.iter().map(|talk| talk.first).collect::<Vec<_>>(), [0, 3, 4]);
    assert_eq!(parents(&talks[0]), [vec![], vec![0], vec![1]]);
    let thinks: Vec<_> = talks[0].turns().iter().map(|turn| turn.think).collect();
    assert_eq!(thinks, [None, Some(Span::from_us(500)), None]);
}

#[test]
fn a_log_of_requests_gives_what_each_turn_adds_and_what_was_answered() {
    let (prompts, talks, _) = read(
        r#"{"session": 1, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]}
{"session": 1, "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "b"}]}
{"session": 1, "messages": [{"role": "assistant", "content": "B"}, {"role": "user", "content": "c"}], "answer": "C"}
"#,
    );
    assert_eq!(texts(&prompts), ["s|a", "b", "c"]);
    let said = |text: &str| vec![Message::new("assistant", text)];
    let answers: Vec<_> = talks[0].turns().iter().map(|turn| turn.answer.clone()).collect();
    assert_eq!(answers, [said("A"), said("B"), said("C")]);
}

#[test]
fn a_graph_is_put_in_order_whatever_the_order_of_its_rows() {
    let (prompts, talks, notes) = read(
        r#"{"session": "g", "id": "join", "parents": ["left", "right"], "prompt": "j"}
{"session": "g", "id": "left", "parents": ["root"], "prompt": "l", "history": false}
{"session": "g", "id": "right", "parents": ["root"], "prompt": "r"}
{"session": "g", "id": "root", "prompt": "t"}
"#,
    );
    assert_eq!(notes.skipped_count(), 0);
    assert_eq!(texts(&prompts), ["t", "l", "r", "j"]);
    assert_eq!(parents(&talks[0]), [vec![], vec![0], vec![0], vec![1, 2]]);
    assert_eq!(
        talks[0].turns().iter().map(|turn| turn.fresh).collect::<Vec<_>>(),
        [false, true, false, false]
    );
}

#[track_caller]
fn refused(file: &str, options: &Options<'_>, line: u64, says: &str) {
    let (_, talks, notes) = read_as(file, options);
    assert!(talks.is_empty(), "{talks:?}");
    let found = notes.skipped.iter().find(|row| row.place == Place::Line(line)).unwrap();
    assert!(found.to_string().contains(says), "{found}");
    assert_eq!(notes.skipped_count(), notes.entries, "{:?}", notes.skipped);
}

#[test]
fn what_could_hang_or_mean_nothing_is_refused_by_line_and_rule() {
    let plain = options(false, false);
    let row = |id: &str, parents: &str| {
        format!(
            "{{\"session\": 1, \"id\": \"{id}\", \"parents\": [{parents}], \"prompt\": \"x\"}}\n"
        )
    };
    let ring = [row("a", "\"b\""), row("b", "\"a\"")].concat();
    refused(&ring, &plain, 1, "waits for itself");
    refused(&row("a", "\"a\""), &plain, 1, "waits for itself");
    refused(&row("a", "\"z\""), &plain, 1, "it waits for z, which is the id of no row");
    refused(&[row("a", ""), row("a", "")].concat(), &plain, 2, "the id a stands twice");
    let lone = "{\"id\": \"a\", \"parents\": [\"b\"], \"prompt\": \"x\"}\n";
    refused(lone, &plain, 1, "parents without a session");
    let wide: String = [row("r", "")]
        .into_iter()
        .chain((0..=MAX_FAN_OUT).map(|n| row(&format!("c{n}"), "\"r\"")))
        .collect();
    refused(&wide, &plain, 66, "more than 64 turns wait for one");
    let deep: String = (0..=MAX_TURNS)
        .map(|n| match n.checked_sub(1) {
            Some(before) => row(&format!("{n}"), &format!("\"{before}\"")),
            None => row("0", ""),
        })
        .collect();
    refused(&deep, &plain, 1025, "more than 1024 turns one after the other");
    let two = "{\"session\": 1, \"prompt\": \"x\"}\n{\"session\": 1, \"prompt\": \"y\"}\n";
    refused(two, &options(false, true), 1, "--history scripted");
    for (member, says) in [
        ("\"parents\": \"a\"", "parents is not a list"),
        ("\"think_ms\": -1", "think_ms is not a number from 0 to 86400000"),
        ("\"think_ms\": 1e99", "think_ms is not"),
        ("\"session\": []", "session is not"),
        ("\"session\": 1, \"id\": {}", "id is not"),
        ("\"history\": 1", "history is not true or false"),
        ("\"answer\": 5", "answer is not"),
        ("\"answer\": {\"role\": \"user\", \"content\": \"x\"}", "answer is not"),
    ] {
        let file = format!("{{\"session\": 1, \"prompt\": \"x\", {member}}}\n");
        let (rows, notes) = custom::prompts_or_turns(file.as_bytes(), &plain);
        assert!(rows.is_empty() && notes.skipped[0].to_string().contains(says), "{notes:?}");
    }
}

#[test]
fn a_parent_in_another_session_is_told_from_one_that_is_nowhere() {
    let file = "{\"session\": 1, \"id\": \"a\", \"prompt\": \"x\"}\n\
                {\"session\": 2, \"id\": \"b\", \"parents\": [\"a\"], \"prompt\": \"x\"}\n\
                {\"session\": 2, \"id\": \"c\", \"prompt\": \"y\"}\n";
    let (_, talks, notes) = read(file);
    assert_eq!(talks.len(), 1);
    let said: Vec<String> = notes.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        ["line 2: it waits for a, which is in another session", "line 3: in the session of line 2"]
    );
}

#[test]
fn messages_are_cut_where_the_assistant_answers() {
    let file = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]}, {"role": "tool", "tool_call_id": "1", "content": "r"}, {"role": "assistant", "content": "B"}, {"role": "user", "content": "c"}], "max_tokens": 9}
"#;
    let (prompts, talks, _) = read_as(file, &options(true, true));
    assert_eq!(texts(&prompts), ["s|a", "r", "c"]);
    let members: Vec<_> = talks[0].turns().iter().map(|turn| turn.answer.len()).collect();
    assert_eq!(members, [1, 1, 0]);
    assert!(talks[0].turns()[0].answer[0].members.as_ref().unwrap().contains("tool_calls"));
    assert!(prompts.iter().all(|prompt| prompt.max_output_tokens == Some(Tokens::new(9))));
    // Without the flag the row is one request.
    let (rows, _) = custom::prompts_or_turns(file.as_bytes(), &options(false, false));
    assert!(matches!(rows, Rows::Prompts(prompts) if prompts.len() == 1));
}

proptest! {
    /// Rows that name each other at random give graphs that a schedule takes,
    /// or are skipped, and none is lost.
    #[test]
    fn any_rows_are_turns_in_order_or_skipped(
        rows in prop::collection::vec(
            (0u8..3, 0u8..6, prop::collection::vec(0u8..6, 0..4), any::<bool>()),
            1..14,
        ),
    ) {
        let line = |(session, id, parents, linear): &(u8, u8, Vec<u8>, bool)| {
            let parents = if *linear { String::new() } else { format!("\"parents\": {parents:?}, ") };
            format!("{{\"session\": {session}, \"id\": {id}, {parents}\"prompt\": \"x\"}}\n")
        };
        let file: String = rows.iter().map(line).collect();
        let (prompts, talks, notes) = read(&file);
        let turns: usize = talks.iter().map(|talk| talk.turns().len()).sum();
        prop_assert_eq!(turns, prompts.len());
        prop_assert_eq!(turns as u64 + notes.skipped_count(), rows.len() as u64);
        for talk in &talks {
            for (place, turn) in talk.turns().iter().enumerate() {
                prop_assert!(turn.parents.iter().all(|parent| usize::from(*parent) < place));
            }
        }
    }
}
