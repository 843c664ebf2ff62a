//! Where requests go and as what: adapters, models, priorities.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::Workplace;
use crate::servers::engine;

/// The bodies that a server got, in order of the request ids.
fn bodies(server: &fake::Server) -> Vec<Value> {
    let bodies = server.requests().into_iter().filter(|request| !request.body.is_empty());
    bodies.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
}

/// How often each value of `key` stands in the bodies.
fn counts(bodies: &[Value], key: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for body in bodies {
        *counts.entry(body[key].to_string()).or_insert(0) += 1;
    }
    counts
}

/// The requests of each value of a label in a summary.
fn by_label(summary: &Value, label: &str) -> BTreeMap<String, u64> {
    let slices = summary["slices"]["by_label"].as_array().unwrap();
    let own = slices.iter().filter(|slice| slice["of"]["label"] == label);
    own.map(|slice| (slice["of"]["value"].to_string(), slice["n"].as_u64().unwrap())).collect()
}

#[test]
fn adapter_names_reach_the_body_and_their_tables_partition_the_run() {
    let (workplace, server) = (Workplace::new(), engine());
    let flags = [
        &["--isl", "20", "--osl", "2", "-n", "24", "--json", "-", "--out", "run"][..],
        &["--lora_modules", "sql:3", "chat", "--lora-assignment", "round-robin"],
        &["--num-warmups", "2", "--allow-invalid"],
    ];
    let start = ["bench", "--url", &server.url(), "--model", "base"];
    let told = workplace.run(&[&start[..], &flags.concat()].concat()).exits(0);
    let summary = told.json();
    let bodies = bodies(&server);
    let sent = counts(&bodies[2..], "model");
    assert_eq!(sent, BTreeMap::from([("\"chat\"".into(), 6), ("\"sql\"".into(), 18)]));
    let table = by_label(&summary, "adapter");
    assert_eq!(table, BTreeMap::from([("\"chat\"".into(), 6), ("\"sql\"".into(), 18)]));
    assert_eq!(summary["model"], "base");
    let notes = summary["workload"]["notes"].to_string();
    assert!(notes.contains("adapters by session: sql 75 %, chat 25 %, in turn"), "{notes}");
    assert!(bodies.iter().all(|body| body.get("priority").is_none()));
    for row in workplace.export("run") {
        assert!(row["labels"]["adapter"].is_string(), "{row}");
    }
}

#[test]
fn models_are_mixed_without_a_model_list_and_named_in_the_result() {
    let (workplace, server) = (Workplace::new(), engine());
    let flags = ["--model-mix", "big", "small:3", "--prompt", "hi", "--osl", "2", "-n", "40"];
    let start = ["bench", &server.url(), "--json", "-", "--allow-invalid"];
    let summary = workplace.run(&[&start[..], &flags].concat()).exits(0).json();
    let sent = counts(&bodies(&server), "model");
    assert_eq!(sent.values().sum::<usize>(), 40, "{sent:?}");
    assert_eq!(sent.keys().collect::<Vec<_>>(), ["\"big\"", "\"small\""]);
    let table: usize = by_label(&summary, "model").values().map(|n| *n as usize).sum();
    assert_eq!(table, 40);
    assert_eq!(summary["model"], "big, small");
}

#[test]
fn a_priority_is_sent_only_when_asked_and_a_rows_own_wins() {
    let (workplace, server) = (Workplace::new(), engine());
    let rows = "{\"prompt\": \"one\", \"priority\": -3}\n{\"prompt\": \"two\"}\n";
    let file = workplace.file("rows.jsonl", rows);
    let data = ["--dataset-name", "custom", "--dataset-path", file, "--osl", "2"];
    let url = server.url();
    let start = ["bench", &url, "--model", "m", "--allow-invalid", "--json", "-"];
    let run = |more: &[&str]| {
        let told = workplace.run(&[&start[..], &data, more].concat()).exits(0);
        (counts(&bodies(&server), "priority"), told.json())
    };
    let (sent, summary) = run(&["--priority", "5"]);
    assert_eq!(sent, BTreeMap::from([("-3".into(), 1), ("5".into(), 1)]));
    let table = by_label(&summary, "priority");
    assert_eq!(table, BTreeMap::from([("\"-3\"".into(), 1), ("\"5\"".into(), 1)]));
    let (sent, _) = run(&[]);
    assert_eq!(sent, BTreeMap::from([("-3".into(), 2), ("5".into(), 1), ("null".into(), 1)]));
    // An API that knows none is not sent any, and the run says so.
    let plan = ["bench", "--url", "http://h", "--backend", "anthropic", "--dry-run", "--json", "-"];
    let plan = workplace.run(&[&plan[..], &data].concat()).exits(0).json();
    let notes = plan["workload"]["notes"].to_string();
    assert!(notes.contains("the priorities of the rows are not sent"), "{notes}");
}

#[test]
fn routes_that_cannot_be_are_refused_with_the_flag() {
    let workplace = Workplace::new();
    let dry = |arguments: &[&str]| {
        workplace.run(&[&["bench", "--dry-run", "--url", "http://h"], arguments].concat())
    };
    for (arguments, words) in [
        (&["--lora-modules", "a:0"][..], "--lora-modules: the weight of \"a\" is 0"),
        (&["--lora-modules", "a", "a:2"], "--lora-modules: \"a\" is there twice"),
        (&["--lora-modules", "a,:2"], "--lora-modules: \":2\" has no name"),
        (&["--lora-modules", "a", "http://h:80"], "is an address"),
        (&["--lora-modules", "a", "--model-mix", "b"], "--model-mix: contradicts --lora-modules"),
        (&["--lora-assignment", "random"], "deals out what --lora-modules names"),
        (&["--lora-modules", "a:0.5", "--lora-assignment", "round-robin"], "whole numbers"),
        (&["--lora-modules", "a", "--lora-assignment", "hash"], "random, round-robin"),
        (&["--model-mix", ","], "--model-mix: names nothing to choose from"),
        (&["--model-mix", "a", "--backend", "triton"], "--model-mix: this API has the model in"),
        (&["--priority", "high"], "--priority: \"high\" is not a whole number"),
        (&["--priority", "1:x"], "--priority: \"1:x\" is not a whole number"),
        (&["--priority", "1", "--backend", "tgi"], "--priority: the API tgi has no such field"),
    ] {
        let told = dry(arguments).exits(2).says(&[words]);
        assert_eq!(told.errors().len(), 1, "{arguments:?}: {}", told.err);
    }
    dry(&["--priority=-1:2,10", "--model-mix", "llama3:8b", "qwen:7:2"]).exits(0);
}
