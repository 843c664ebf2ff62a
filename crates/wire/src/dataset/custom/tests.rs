use proptest::prelude::*;
use workload::estimate_tokens;

use super::*;
use crate::dataset::{Place, Refusal};

const D04: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/datasets/D04_custom.jsonl"
));

fn load(bytes: &[u8]) -> (Vec<Prompt>, DatasetNotes) {
    read(bytes, &estimate_tokens)
}

fn one(line: &str) -> Result<Prompt, String> {
    let (mut prompts, mut notes) = load(line.as_bytes());
    prompts.pop().ok_or_else(|| notes.skipped.remove(0).reason.to_string())
}

#[test]
fn d04_odd_types_and_line_ends() {
    let cases: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/cases/cases.json"
    )))
    .unwrap();
    let cases = cases["cases"].as_array().unwrap();
    let expect = &cases.iter().find(|case| case["id"] == "D04").unwrap()["expect"];
    let (prompts, notes) = load(D04);

    let usable: Vec<Value> = prompts
        .iter()
        .map(|prompt| {
            let Content::Text(text) = &prompt.content else { panic!("a text") };
            serde_json::json!([text, prompt.max_output_tokens.map(Tokens::get)])
        })
        .collect();
    assert_eq!(Value::from(usable), expect["usable"]);
    let rejected: Vec<_> = notes.skipped.iter().map(|skipped| skipped.place.number()).collect();
    assert_eq!(Value::from(rejected), expect["rejected_lines"]);
    assert_eq!(notes.blank_lines, expect["blank_lines"].as_array().unwrap().len() as u64);
    assert_eq!(notes.entries, 12);
    // The broken line is not the last: nothing was cut off.
    assert_eq!((notes.truncated_at, notes.refused), (None, None));
}

#[test]
fn d04_rules_are_named_with_their_lines() {
    let (prompts, notes) = load(D04);
    let rules: Vec<_> = notes.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        rules[..5],
        [
            "line 5: empty prompt",
            "line 6: no prompt",
            "line 7: zero length",
            "line 8: negative length",
            "line 11: prompt is not a string",
        ]
    );
    assert!(
        rules[5].starts_with("line 12: broken JSON: EOF while parsing a string"),
        "{}",
        rules[5]
    );
    let rows: Vec<_> = prompts.iter().map(|prompt| prompt.source_row.unwrap()).collect();
    assert_eq!(rows, [1, 3, 4, 9, 10, 13]);
}

#[test]
fn messages_are_taken_as_they_are() {
    let prompt = one(
        r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}],"max_tokens":40}"#,
    )
    .unwrap();
    let Content::Messages(messages) = &prompt.content else { panic!("messages") };
    assert_eq!(messages.len(), 2);
    assert_eq!((messages[1].role.as_str(), messages[1].content.as_str()), ("user", "Hello"));
    assert_eq!(prompt.max_output_tokens, Some(Tokens::new(40)));
    // Two words and a mark, then one word.
    assert_eq!(prompt.input_tokens, Some(Tokens::new(4)));
}

#[test]
fn every_broken_rule_has_its_reason() {
    for (line, reason) in [
        (r#"[1]"#, "not a JSON object"),
        (r#""text""#, "not a JSON object"),
        (r#"{"prompt":null}"#, "no prompt"),
        (r#"{"prompt":" \n\t"}"#, "empty prompt"),
        (r#"{"prompt":["a"]}"#, "prompt is not a string"),
        (
            r#"{"prompt":"a","messages":[{"role":"user","content":"b"}]}"#,
            "both prompt and messages",
        ),
        (r#"{"messages":[]}"#, "empty prompt"),
        (r#"{"messages":[{"role":"user","content":""}]}"#, "empty prompt"),
        (
            r#"{"messages":"hi"}"#,
            "messages is not a list of {role, content} with text, images or audio",
        ),
        (
            r#"{"messages":[{"content":"hi"}]}"#,
            "messages is not a list of {role, content} with text, images or audio",
        ),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]}"#,
            "messages is not a list of {role, content} with text, images or audio",
        ),
        (r#"{"prompt":"a","output_tokens":12.5}"#, "output length is not a whole number"),
        (r#"{"prompt":"a","output_tokens":"many"}"#, "output length is not a whole number"),
        (r#"{"prompt":"a","output_tokens":"inf"}"#, "output length is not a whole number"),
        (r#"{"prompt":"a","output_tokens":true}"#, "output length is not a whole number"),
        (r#"{"prompt":"a","output_tokens":-0.5}"#, "negative length"),
        (r#"{"prompt":"a","output_tokens":1e30}"#, "output length is over 16777216"),
        (
            r#"{"prompt":"a","output_tokens":18446744073709551615}"#,
            "output length is over 16777216",
        ),
    ] {
        assert_eq!(one(line), Err(reason.to_owned()), "{line}");
    }
}

#[test]
fn the_length_has_several_names_and_forms() {
    for line in [
        r#"{"prompt":"a","output_tokens":20}"#,
        r#"{"prompt":"a","output_length":"20"}"#,
        r#"{"prompt":"a","output_tokens":null,"max_tokens":2e1}"#,
        r#"{"prompt":"a","output_len":" 20 "}"#,
        r#"{"prompt":"a","max_tokens":5,"output_tokens":20.0}"#,
        r#"{"prompt":"a","messages":null,"max_completion_tokens":20}"#,
    ] {
        assert_eq!(one(line).unwrap().max_output_tokens, Some(Tokens::new(20)), "{line}");
    }
}

#[test]
fn a_file_cut_in_its_last_line_says_so() {
    let (prompts, notes) = load(b"{\"prompt\":\"one\"}\n{\"prompt\":\"tw");
    assert_eq!(prompts.len(), 1);
    assert_eq!(notes.truncated_at, Some(2));
    assert_eq!(notes.skipped[0].place, Place::Line(2));
}

#[test]
fn files_of_another_kind_are_refused() {
    for (bytes, refusal) in [
        (&b""[..], Refusal::Empty),
        (b"\r\n\r\n", Refusal::Empty),
        (b"\xff\xfe{\0}\0", Refusal::NotUtf8),
    ] {
        assert_eq!(load(bytes).1.refused, Some(refusal));
    }
}

proptest! {
    #[test]
    fn any_bytes_give_prompts_or_notes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (prompts, notes) = load(&bytes);
        prop_assert_eq!(prompts.len() as u64 + notes.skipped_count(), notes.entries);
    }

    #[test]
    fn a_changed_byte_never_panics(position in 0..D04.len(), byte: u8) {
        let mut bytes = D04.to_vec();
        bytes[position] = byte;
        let (prompts, notes) = load(&bytes);
        prop_assert_eq!(prompts.len() as u64 + notes.skipped_count(), notes.entries);
    }

    #[test]
    fn a_legal_length_is_kept(n in 1..=MAX_TOKENS) {
        let prompt = one(&format!(r#"{{"prompt":"a","output_tokens":{n}}}"#)).unwrap();
        prop_assert_eq!(prompt.max_output_tokens, Some(Tokens::new(n)));
    }
}

#[test]
fn d11_request_bodies_are_rows() {
    let cases: Value = serde_json::from_str(include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/cases/cases.json"
    )))
    .unwrap();
    let cases = cases["cases"].as_array().unwrap();
    let expect = &cases.iter().find(|case| case["id"] == "D11").unwrap()["expect"];
    let (prompts, notes) = load(include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/cases/datasets/D11_openai_bodies.jsonl"
    )));
    assert_eq!(Value::from(prompts.len()), expect["rows"]);
    let text = |prompt: &Prompt| match &prompt.content {
        Content::Texts(_) => panic!("one prompt"),
        Content::Messages(messages) => messages[0].content.clone(),
        Content::Text(_) => panic!("messages"),
    };
    assert_eq!(prompts.iter().map(text).collect::<Value>(), expect["prompts"]);
    let limit = |prompt: &Prompt| Value::from(prompt.max_output_tokens.map(Tokens::get));
    assert_eq!(prompts.iter().map(limit).collect::<Value>(), expect["output_len"]);
    // What the run decides itself is told once and not sent.
    assert_eq!(
        notes.set_aside.iter().copied().collect::<Vec<_>>(),
        ["model", "stream", "temperature"]
    );
    assert_eq!(notes.skipped_count(), 0);
}

#[test]
fn what_an_answer_has_to_be_like_is_kept_where_a_server_could_take_it() {
    let row = |member: &str| one(&format!(r#"{{"prompt":"a",{member}}}"#));
    let choice = r#""tool_choice":{"type":"function"}"#;
    assert_eq!(row(choice).unwrap().member("tool_choice"), Some(r#"{"type":"function"}"#));
    let word = row(r#""tool_choice":"auto","response_format":null"#).unwrap();
    assert_eq!(word.member("tool_choice"), Some(r#""auto""#));
    assert_eq!(word.member("response_format"), None);
    for (member, name) in
        [(r#""tool_choice":7"#, "tool_choice"), (r#""response_format":"x""#, "response_format")]
    {
        assert!(row(member).unwrap_err().starts_with(name));
    }
}

#[test]
fn labels_and_tools_of_a_line_are_kept() {
    let prompt = one(
        r#"{"prompt":"a","label":"chat","labels":{"tenant":"t1","gold":true,"none":null},"tools":[{"type":"function"}]}"#,
    )
    .unwrap();
    let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        prompt.labels,
        [label("gold", "true"), label("label", "chat"), label("tenant", "t1")]
    );
    assert_eq!(prompt.member("tools"), Some(r#"[{"type":"function"}]"#));
    let prompt = one(r#"{"prompt":"a","label":{"tenant":3}}"#).unwrap();
    assert_eq!(prompt.labels, [label("tenant", "3")]);
    let prompt = one(r#"{"prompt":"a","priority":"-7","label":{"zone":"z"}}"#).unwrap();
    assert_eq!(prompt.priority, Some(-7));
    assert_eq!(prompt.labels, [label("priority", "-7"), label("zone", "z")]);
    assert_eq!(one(r#"{"prompt":"a","priority":null}"#).unwrap().priority, None);
    for (line, reason) in [
        (r#"{"prompt":"a","label":[1]}"#, Reason::BadLabel),
        (r#"{"prompt":"a","label":""}"#, Reason::BadLabel),
        (r#"{"prompt":"a","labels":"x"}"#, Reason::BadLabel),
        (r#"{"prompt":"a","tools":{}}"#, Reason::BadTools),
        (r#"{"prompt":"a","tools":["x"]}"#, Reason::BadTools),
        (r#"{"prompt":"a","priority":1.5}"#, Reason::BadPriority),
        (r#"{"prompt":"a","priority":"high"}"#, Reason::BadPriority),
        (r#"{"prompt":"a","priority":2147483648}"#, Reason::BadPriority),
    ] {
        assert_eq!(one(line), Err(reason.to_string()), "{line}");
    }
}
