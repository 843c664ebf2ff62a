//! Conversations as a user asks for them: flags, files, what is sent, what is
//! told.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::engine;

fn dry(workplace: &Workplace, arguments: &[&str]) -> Told {
    let start = ["bench", "--dry-run", "--json", "-"];
    workplace.run(&[&start, arguments].concat())
}

/// The summary of a run against the engine at `url`.
fn bench(workplace: &Workplace, url: &str, arguments: &[&str]) -> Value {
    let start = ["bench", "--url", url, "--model", "m", "--out", "run", "--allow-invalid"];
    let told = workplace.run(&[&start[..], &["--json", "-"], arguments].concat());
    told.exits(0).json()
}

#[test]
fn prompts_grow_by_the_answer_and_what_the_user_says() {
    let (workplace, server) = (Workplace::new(), engine());
    let flags = ["--turns", "3", "-n", "4", "-c", "2", "--isl", "40", "--turn-input-len", "9"];
    let more = ["--osl", "5", "--ignore-eos", "--backend", "openai-chat"];
    let summary = bench(&workplace, &server.url(), &[&flags[..], &more].concat());
    let rows = workplace.export("run");
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let turn = row["turn"].as_u64().unwrap();
        // Without a tokenizer both sides count words and marks, and the answer
        // is five words.
        assert_eq!(row["input_tokens"], 40 + turn * (9 + 5), "{row}");
        assert_eq!(row["labels"]["turn"], (turn + 1).to_string());
    }
    let figures = &summary["conversations"];
    assert_eq!(figures["completed"], 4);
    assert_eq!((&figures["turns"], &figures["turns_ok"]), (&json!(12), &json!(12)));
    assert_eq!(figures["duration_ms"]["n"], 4);
    let by_label = summary["slices"]["by_label"].as_array().unwrap();
    assert_eq!(by_label.iter().map(|part| part["n"].as_u64().unwrap()).sum::<u64>(), 12);
    assert!(summary["load"]["arrivals"].as_str().unwrap().contains("conversation"));
}

#[test]
fn a_dry_run_plans_arrivals_of_conversations() {
    let workplace = Workplace::new();
    let flags = ["--turns", "2-4", "--request-rate", "5", "--num-conversations", "20"];
    let plan = dry(&workplace, &flags).exits(0).json();
    assert_eq!(plan["arrivals_ms"].as_array().unwrap().len(), 20);
    let requests = plan["requests"].as_u64().unwrap();
    assert!((40..=80).contains(&requests), "{requests}");
    assert!(plan["load"].as_str().unwrap().contains("of conversations"), "{}", plan["load"]);
    assert_eq!(dry(&workplace, &flags).exits(0).json()["schedule_hash"], plan["schedule_hash"]);
}

#[test]
fn sessions_of_a_file_are_held_as_conversations() {
    let (workplace, server) = (Workplace::new(), engine());
    let file = workplace.file(
        "talk.jsonl",
        r#"{"session": "a", "prompt": "one two", "output_tokens": 3}
{"session": "b", "prompt": "alpha", "output_tokens": 2}
{"session": "a", "prompt": "three", "output_tokens": 3}
{"session": "b", "id": "x", "parents": ["nowhere"], "prompt": "beta"}
"#,
    );
    let flags = ["--dataset-name", "custom", "--dataset-path", file, "-c", "1"];
    let summary = bench(&workplace, &server.url(), &flags);
    let notes = summary["workload"]["notes"].to_string();
    assert!(notes.contains("line 4: it waits for nowhere, which is the id of no row"), "{notes}");
    assert!(notes.contains("line 2: in the session of line 4"), "{notes}");
    let mut bodies: BTreeMap<usize, Value> = BTreeMap::new();
    for request in server.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        bodies.insert(body["messages"].as_array().unwrap().len(), body["messages"].clone());
    }
    assert_eq!(bodies.keys().copied().collect::<Vec<_>>(), [1, 3]);
    let later = &bodies[&3];
    assert_eq!((&later[0]["content"], &later[2]["content"]), (&json!("one two"), &json!("three")));
    let answer = later[1]["content"].as_str().unwrap();
    assert_eq!((answer.split(' ').count(), &later[1]["role"]), (3, &json!("assistant")));
}

#[test]
fn all_turns_of_sharegpt_are_held_when_asked_for() {
    let (workplace, server) = (Workplace::new(), engine());
    let file = workplace.file(
        "share.json",
        r#"[{"conversations": [{"from": "system", "value": "Be brief."}, {"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello you there"}, {"from": "human", "value": "Bye"}, {"from": "gpt", "value": "So long"}]}]"#,
    );
    let set = ["--dataset-name", "sharegpt", "--dataset-path", file, "--multi-turn", "-c", "1"];
    let scripted = [&set[..], &["--history", "scripted"]].concat();
    bench(&workplace, &server.url(), &scripted);
    let last = server.requests().pop().unwrap();
    let body: Value = serde_json::from_slice(&last.body).unwrap();
    let texts: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Be brief.", "Hi", "Hello you there", "Bye"]);
}

#[test]
fn what_makes_no_sense_of_turns_is_one_sentence() {
    let workplace = Workplace::new();
    let file = workplace.file("rows.jsonl", "{\"prompt\": \"hi\"}\n");
    let custom = ["--dataset-name", "custom", "--dataset-path", file];
    let refused = |arguments: &[&str], says: &[&str]| {
        let told = dry(&workplace, arguments).exits(2).says(says);
        assert_eq!(told.errors().len(), 1, "{told:?}");
    };
    refused(&["--turns", "0"], &["--turns", "write one from 1 to 1024"]);
    refused(&["--turns", "6-2"], &["--turns", "range such as 2-6"]);
    refused(&[&custom[..], &["--turns", "3"]].concat(), &["--turns", "synthetic", "--multi-turn"]);
    refused(&["--multi-turn"], &["--multi-turn", "say --turns"]);
    refused(&["--turn-input-len", "9"], &["--turn-input-len", "needs --turns"]);
    refused(&["--turn-think-time", "1s"], &["--turn-think-time", "there are none"]);
    refused(&["--num-conversations", "3"], &["--num-conversations", "--turns"]);
    refused(&["--turns", "2", "-n", "3", "--num-conversations", "3"], &["--num-conversations"]);
    refused(&["--turns", "2", "--history", "scripted"], &["--history", "a data set"]);
    refused(&["--turns", "2", "--turn-think-time", "soon"], &["--turn-think-time", "duration"]);
    refused(&["--session-header", "a b"], &["--session-header", "x-session-id"]);
    let turns = workplace
        .file("s.jsonl", "{\"session\":1,\"prompt\":\"a\"}\n{\"session\":1,\"prompt\":\"b\"}\n");
    let sessions = ["--dataset-name", "custom", "--dataset-path", turns, "--history", "scripted"];
    refused(&sessions, &["s.jsonl", "line 1: no scripted answer"]);
}
