use proptest::prelude::*;
use serde_json::Value;
use workload::estimate_tokens;

use super::*;
use crate::dataset::Refusal;
use crate::dataset::case::expect;

const D01: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/datasets/D01_sharegpt_broken.json"
));

fn load(bytes: &[u8]) -> (Vec<Prompt>, DatasetNotes) {
    read(bytes, Pairing::RoleAware, Bounds::VLLM, &estimate_tokens)
}

fn question(prompt: &Prompt) -> &str {
    match &prompt.content {
        Content::Texts(_) => panic!("one prompt"),
        Content::Text(text) => text,
        Content::Messages(messages) => &messages.last().unwrap().content,
    }
}

fn reasons(bytes: &[u8]) -> Vec<String> {
    load(bytes).1.skipped.iter().map(|skipped| skipped.reason.to_string()).collect()
}

#[test]
fn d01_every_kind_of_broken_row() {
    let expect = expect("D01");
    let (prompts, notes) = load(D01);
    let (rows, _) = conversations(D01);
    assert_eq!(notes.entries, expect["rows"].as_u64().unwrap());
    let ids: Vec<_> = rows.iter().map(|row| row.id.as_deref().unwrap()).collect();
    assert_eq!(Value::from(ids.clone()), expect["usable"]);
    assert_eq!(notes.truncated_at, None);
    assert_eq!(notes.refused, None);

    assert_eq!(prompts.len(), ids.len());
    for (prompt, id) in prompts.iter().zip(&ids) {
        assert_eq!(question(prompt), expect["prompts"][id], "{id}");
        let system = expect["system"].get(id).and_then(Value::as_str);
        match (&prompt.content, system) {
            (Content::Text(_), None) => {}
            (Content::Messages(messages), Some(system)) => {
                assert_eq!(
                    (messages[0].role.as_str(), messages[0].content.as_str()),
                    ("system", system)
                );
                assert_eq!((messages.len(), messages[1].role.as_str()), (2, "user"));
            }
            other => panic!("{id}: {other:?}"),
        }
    }
    for row in &rows {
        let id = row.id.as_deref().unwrap();
        if let Some(pairs) = expect["pairs"].get(id) {
            assert_eq!(Value::from(row.pairs.len()), *pairs, "{id}");
        }
    }

    let skipped = expect["skipped"].as_object().unwrap();
    assert_eq!(notes.skipped.len(), skipped.len());
    assert_eq!(notes.skipped_count(), skipped.len() as u64);
    for entry in &notes.skipped {
        let id = entry.id.as_deref().unwrap();
        assert_eq!(skipped[id], entry.reason.to_string(), "{id}");
    }
}

#[test]
fn d01_places_and_lengths() {
    let (prompts, notes) = load(D01);
    let rows: Vec<_> = prompts.iter().map(|prompt| prompt.source_row.unwrap()).collect();
    assert_eq!(rows, [1, 6, 7, 9, 11]);
    let places: Vec<_> = notes.skipped.iter().map(|skipped| skipped.place.number()).collect();
    assert_eq!(places, [2, 3, 4, 5, 8, 10]);
    assert_eq!(notes.skipped[0].to_string(), "row 2 (noconv): no conversations");
    // "What is the capital of Norway?" is six words and a mark, its answer too.
    assert_eq!(prompts[0].input_tokens, Some(Tokens::new(7)));
    assert_eq!(prompts[0].max_output_tokens, Some(Tokens::new(7)));
}

#[test]
fn d01_vllm_takes_the_first_two_turns() {
    let (prompts, _) = read(D01, Pairing::FirstTwo, Bounds::VLLM, &estimate_tokens);
    let prompt_of = expect("D01")["vllm_compatible_first_two"]["prompt_of"].clone();
    for (row, id) in [(6, "gptfirst"), (7, "sysfirst")] {
        let prompt = prompts.iter().find(|prompt| prompt.source_row == Some(row)).unwrap();
        assert_eq!(question(prompt), prompt_of[id]);
    }
}

#[test]
fn a_file_cut_anywhere_keeps_the_rows_before_the_cut() {
    let (whole, _) = load(D01);
    for end in 1..D01.len() {
        let (prompts, notes) = load(&D01[..end]);
        assert_eq!(prompts[..], whole[..prompts.len()], "cut at {end}");
        // The last byte but the final line end is the closing bracket.
        let complete = D01[..end].trim_ascii_end().ends_with(b"\n]");
        let blank = D01[..end].trim_ascii().is_empty();
        assert_eq!(notes.truncated_at.is_some(), !complete && !blank, "cut at {end}");
    }
    let (_, notes) = load(&D01[..D01.len() / 2]);
    assert_eq!(notes.truncated_at, Some(notes.entries + 1));
}

#[test]
fn one_broken_row_does_not_hide_the_next() {
    let good = r#"{"conversations":[{"from":"human","value":"one two three four"},{"from":"gpt","value":"five six seven eight"}]}"#;
    for broken in [
        r#"{"id": nonsense}"#,
        r#"{"a":1,}"#,
        r#"{"a":NaN}"#,
        r#"{"a":"\ud800"}"#,
        "{\"a\":\"\u{1}\"}",
        "[1, 2]",
        "}",
        "word",
        r#""text, with ] and }""#,
        "{]",
    ] {
        let file = format!("[{good},{broken}\n,{good}]");
        let (prompts, notes) = load(file.as_bytes());
        assert_eq!(prompts.len(), 2, "{broken}: {notes:?}");
        assert!(notes.skipped_count() >= 1, "{broken}");
        assert_eq!(notes.truncated_at, None, "{broken}");
    }
}

#[test]
fn an_open_bracket_takes_the_rows_after_it_and_the_file_seems_to_end_early() {
    let (prompts, notes) = load(b"[{}, [1, 2, {}]");
    assert_eq!(prompts.len(), 0);
    assert_eq!(notes.skipped_by_reason["not_an_object"], 1);
    assert_eq!(notes.truncated_at, Some(3));
}

#[test]
fn bytes_that_are_no_utf8_spoil_their_row_only() {
    let mut file = br#"[{"conversations":[{"from":"human","value":""#.to_vec();
    file.extend([0xff, 0xfe]);
    file.extend(br#""}]},"#);
    file.extend(&D01.trim_ascii_start()[1..]);
    let (prompts, notes) = load(&file);
    assert_eq!(prompts.len(), 5);
    assert_eq!(notes.skipped[0].reason.name(), "broken_json");
}

#[test]
fn variants_of_names_and_of_form_are_read() {
    let row = |conversations: &str, from: &str, value: &str, human: &str, gpt: &str| {
        format!(
            r#"{{"{conversations}":[{{"{from}":"{human}","{value}":"one two three four"}},{{"{from}":"{gpt}","{value}":"five six seven eight nine"}}]}}"#
        )
    };
    let rows = [
        row("conversations", "from", "value", "human", "gpt"),
        row("conversation", "role", "content", "user", "assistant"),
        row("messages", "role", "content", "User", "Model"),
        row("conversations", "from", "text", "human", "bing"),
    ];
    let array = format!("\u{feff}  [{}]\n", rows.join(",\n"));
    let lines = rows.join("\r\n");
    for (file, is_array) in [(array, true), (format!("\n{lines}"), false), (lines + "\n", false)] {
        let (prompts, notes) = load(file.as_bytes());
        assert_eq!(prompts.len(), 4, "{file}");
        assert_eq!((notes.entries, notes.truncated_at), (4, None));
        let first = if is_array || !file.starts_with('\n') { 1 } else { 2 };
        assert_eq!(prompts[0].source_row, Some(first));
        assert_eq!(prompts[0].max_output_tokens, Some(Tokens::new(5)));
    }
}

#[test]
fn rows_without_a_pair_say_why() {
    let row = |turns: &str| format!(r#"[{{"conversations":[{turns}]}}]"#);
    let turn = |from: &str| format!(r#"{{"from":"{from}","value":"one two three four"}}"#);
    let turns = |from: &[&str]| from.iter().map(|f| turn(f)).collect::<Vec<_>>().join(",");
    for (from, reason) in [
        (&["gpt"][..], "fewer than two turns"),
        (&["system"], "fewer than two turns"),
        (&["gpt", "gpt"], "no human turn"),
        (&["human", "human"], "no answer turn"),
        (&["gpt", "human"], "no answer turn"),
        (&["human", "function_call", "gpt"], "no answer turn"),
    ] {
        assert_eq!(reasons(row(&turns(from)).as_bytes()), [reason], "{from:?}");
    }
    let blank_answer = format!(r#"{},{{"from":"gpt","value":" \n"}}"#, turn("human"));
    assert_eq!(reasons(row(&blank_answer).as_bytes()), ["empty answer"]);
    assert_eq!(
        reasons(b"[7, {}, [], null]"),
        ["not a JSON object", "no conversations", "not a JSON object", "not a JSON object"]
    );
}

#[test]
fn of_two_questions_in_a_row_the_answered_one_counts() {
    let file = br#"[{"conversations":[
        {"from":"human","value":"a first question nobody answered"},
        {"from":"human","value":"a second question with answer"},
        {"from":"gpt","value":"the answer to the second"},
        {"from":"system","value":"too late to matter"}]}]"#;
    let (prompts, _) = load(file);
    assert_eq!(prompts[0].content, Content::Text("a second question with answer".to_owned()));
}

#[test]
fn bounds_skip_with_the_bound_that_was_missed() {
    let file = |question: usize, answer: usize| {
        format!(
            r#"[{{"conversations":[{{"from":"human","value":"{}"}},{{"from":"gpt","value":"{}"}}]}}]"#,
            "word ".repeat(question),
            "word ".repeat(answer)
        )
    };
    for (question, answer, reason) in [
        (3, 4, Some("prompt shorter than 4 tokens")),
        (4, 3, Some("answer shorter than 4 tokens")),
        (4, 4, None),
        (1024, 1024, None),
        (1025, 4, Some("prompt longer than 1024 tokens")),
        (1024, 1025, Some("prompt and answer together longer than 2048 tokens")),
    ] {
        let file = file(question, answer);
        assert_eq!(reasons(file.as_bytes()), reason.as_slice(), "{question} {answer}");
        let all = read(file.as_bytes(), Pairing::RoleAware, Bounds::NONE, &estimate_tokens);
        assert_eq!(all.0.len(), 1);
    }
}

#[test]
fn files_of_another_kind_are_refused() {
    for (bytes, refusal) in [
        (&b""[..], Refusal::Empty),
        (b" \n\t", Refusal::Empty),
        (b"\xef\xbb\xbf", Refusal::Empty),
        (b"\xff\xfe[\0]\0", Refusal::NotUtf8),
        (b"id,text\n1,hello\n", Refusal::NotRows),
        (b"<html></html>", Refusal::NotRows),
        (b"{\n  \"data\": []\n}\n", Refusal::NotRows),
        (b"\x28\xb5\x2f\xfd....", Refusal::NotRows),
    ] {
        let (prompts, notes) = load(bytes);
        assert_eq!((prompts.len(), notes.refused), (0, Some(refusal)), "{bytes:?}");
    }
}

#[test]
fn a_file_of_rubbish_is_counted_and_listed_in_bounded_memory() {
    let file = format!("[{}]", "{},".repeat(5_000));
    let (_, notes) = load(file.as_bytes());
    assert_eq!(notes.skipped.len(), super::super::MAX_LISTED);
    assert_eq!(notes.skipped_count(), 5_000);
    assert_eq!(notes.skipped_by_reason["no_conversations"], 5_000);
    let deep = format!("[{}", "[".repeat(200_000));
    assert_eq!(load(deep.as_bytes()).1.truncated_at, Some(1));
    let deep = format!("[{}{}]", "[".repeat(10_000), "]".repeat(10_000));
    assert_eq!(load(deep.as_bytes()).1.skipped_by_reason["broken_json"], 1);
}

proptest! {
    #[test]
    fn any_bytes_give_prompts_or_notes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = load(&bytes);
    }

    #[test]
    fn anything_like_json_gives_prompts_or_notes(text in r#"\[?[\[\]{},:"\\a0 \n]{0,80}"#) {
        let (_, notes) = load(text.as_bytes());
        prop_assert!(notes.entries >= notes.skipped_count());
    }

    #[test]
    fn a_changed_byte_never_panics(position in 0..D01.len(), byte: u8) {
        let mut bytes = D01.to_vec();
        bytes[position] = byte;
        let (prompts, notes) = load(&bytes);
        prop_assert_eq!(prompts.len() as u64 + notes.skipped_count(), notes.entries);
    }
}
