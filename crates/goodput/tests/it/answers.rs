//! What answers have to be like: formats and the choice of tools, of the run
//! and of rows.

use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::engine;

const ROWS: &str = r#"{"prompt": "a", "response_format": {"type": "json_object"}, "tool_choice": "none"}
{"prompt": "b"}
{"prompt": "c", "response_format": "json"}
"#;

fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    let start = ["bench", "--url", url, "--model", "m", "--osl", "2", "-c", "1", "--allow-invalid"];
    let start = [&start[..], &["--out", "run"]].concat();
    workplace.run(&[&start[..], more].concat())
}

/// The bodies that were posted to this path, by their prompts.
fn bodies(server: &fake::Server, path: &str) -> Vec<Value> {
    let posted = server.requests().into_iter().filter(|asked| asked.path() == path);
    posted.map(|asked| serde_json::from_slice(&asked.body).unwrap()).collect()
}

#[test]
fn a_rows_own_format_is_sent_where_the_run_has_none() {
    let (workplace, server) = (Workplace::new(), engine());
    let file = workplace.file("rows.jsonl", ROWS);
    let custom = ["--dataset-name", "custom", "--dataset-path", file, "-n", "2"];
    bench(&workplace, &server.url(), &[&custom[..], &["--disable-shuffle"]].concat()).exits(0);
    let summary: Value = serde_json::from_str(&workplace.read("run/summary.json")).unwrap();
    let notes = summary["workload"]["notes"].to_string();
    assert!(notes.contains("line 3: response_format is not an object"), "{notes}");
    let sent = bodies(&server, "/v1/chat/completions");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0]["response_format"], json!({"type": "json_object"}));
    assert_eq!(sent[0]["tool_choice"], "none");
    assert_eq!(sent[1]["response_format"], Value::Null);
}

#[test]
fn the_runs_format_goes_into_every_request_and_wins() {
    let (workplace, server) = (Workplace::new(), engine());
    let file = workplace.file("rows.jsonl", ROWS);
    let custom = ["--dataset-name", "custom", "--dataset-path", file, "-n", "2"];
    let schema = r#"{"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}"#;
    let asked = ["--response-format", schema, "--tool-choice", "auto"];
    bench(&workplace, &server.url(), &[&custom[..], &asked].concat()).exits(0);
    for body in bodies(&server, "/v1/chat/completions") {
        assert_eq!(body["response_format"]["type"], "json_schema");
        assert_eq!(body["tool_choice"], "auto");
    }
}

#[test]
fn what_an_api_does_not_take_is_told_before_the_run() {
    let (workplace, server) = (Workplace::new(), engine());
    for (more, words) in [
        (["--response-format", "json"], "must be one JSON object"),
        (["--tool-choice", "auto"], "not to anthropic"),
        (["--response-format", "{}"], "anthropic has no such field"),
    ] {
        let told =
            bench(&workplace, &server.url(), &[&["--backend", "anthropic"], &more[..]].concat());
        told.exits(2).says(&[more[0], words]);
    }
    assert!(server.requests().is_empty());
}
