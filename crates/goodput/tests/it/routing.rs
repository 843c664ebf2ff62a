//! Where requests go and as what: adapters, models, priorities.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::program::Workplace;
use crate::servers::{closed_port, engine, refusing};

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

#[test]
fn two_servers_are_dealt_to_evenly_and_by_weight_and_each_has_its_table() {
    for (strategy, expected) in [
        (&["--url-weights", "3", "1"][..], Some([18, 6])),
        (&["--url-strategy", "per-session"], Some([12, 12])),
        (&["--url-strategy", "weighted", "--url-weights", "1,1", "--threads", "2"], None),
    ] {
        let (workplace, servers) = (Workplace::new(), [engine(), engine()]);
        let [first, second] = servers.each_ref().map(fake::Server::url);
        let flags = [
            &["bench", "--url", &first, "--also-url", &second, "--prompt", "hi", "-c", "4"][..],
            &["-n", "24", "--osl", "2", "--allow-invalid", "--json", "-"],
            strategy,
        ];
        let summary = workplace.run(&flags.concat()).exits(0).json();
        assert_eq!(summary["outcomes"]["ok"], 24, "{}", summary["outcomes"]);
        let got = servers.each_ref().map(|server| bodies(server).len());
        assert_eq!(got.iter().sum::<usize>(), 24);
        if let Some(expected) = expected {
            assert_eq!(got, expected, "{strategy:?}");
        } else {
            assert!(got.iter().all(|n| (4..=20).contains(n)), "{got:?}");
        }
        let table = by_label(&summary, "url");
        for (url, n) in [&first, &second].into_iter().zip(got) {
            let name = format!("\"{}\"", url.strip_prefix("http://").unwrap());
            assert_eq!(table[&name], n as u64, "{table:?}");
        }
        let target = summary["target"].as_str().unwrap();
        assert!(target.contains(&first) && target.contains(&second), "{target}");
        assert!(!summary["caveats"].to_string().contains("silent_url"));
    }
}

#[test]
fn a_dead_second_address_is_named_and_its_failures_count() {
    let (workplace, server, dead) = (Workplace::new(), engine(), closed_port());
    let url = server.url();
    // One failure after the other comes before the first answer is there.
    let start = ["bench", "--url", &dead, "--also-url", &url, "--model", "m", "--prompt", "hi"];
    let flags = ["-n", "40", "-c", "20", "--osl", "2", "--allow-invalid", "--json", "-"];
    let summary = workplace.run(&[&start[..], &flags].concat()).exits(0).json();
    let outcomes = &summary["outcomes"];
    assert_eq!((&outcomes["ok"], &outcomes["failed"]), (&20.into(), &20.into()), "{outcomes}");
    let name = dead.strip_prefix("http://").unwrap();
    let caveats = summary["caveats"].to_string();
    assert!(caveats.contains(&format!("No request succeeded at {name} (20)")), "{caveats}");
    assert_eq!(by_label(&summary, "url")[&format!("\"{name}\"")], 20);
}

#[test]
fn addresses_that_all_refuse_stop_the_run_as_one_does() {
    let (workplace, other) = (Workplace::new(), closed_port());
    let server = refusing(401, "no key");
    let url = server.url();
    let start = ["bench", "--url", &url, "--also-url", &other, "--model", "m", "--prompt", "hi"];
    let told = workplace.run(&[&start[..], &["-n", "400", "-c", "1"]].concat()).exits(3);
    let told = told.says(&["refused every request"]);
    assert!(server.requests().len() < 50, "{}", told.err);
}

#[test]
fn addresses_that_cannot_be_dealt_to_are_refused() {
    let workplace = Workplace::new();
    let run = |arguments: &[&str]| workplace.run(&[&["bench"], arguments].concat());
    let two = ["--url", "http://h:1", "--also-url", "http://h:2", "--dry-run"];
    let with = |more: &[&str]| run(&[&two[..], more].concat());
    for (told, words) in [
        (run(&["--also-url", "http://h"]), "--also-url: is a further address"),
        (with(&["--also-url", "http://h:1"]), "--also-url: http://h:1 is there twice"),
        (with(&["--url-strategy", "hash"]), "round-robin, per-session, weighted"),
        (with(&["--url-strategy", "weighted"]), "weighted needs --url-weights"),
        (with(&["--url-weights", "1"]), "must be 2 numbers"),
        (with(&["--url-weights", "1,x"]), "must be 2 numbers"),
        (with(&["--url-weights", "1,0"]), "--url-weights: the weight of"),
        (with(&["--url-weights", "1,0.5"]), "whole numbers"),
        (run(&["--url", "http://h", "--url-strategy", "per-session"]), "give more with --also-url"),
        (
            run(&[
                "--url",
                "http://h",
                "--also-url",
                "http://h/api/generate",
                "--backend",
                "ollama",
            ]),
            "leads to another API",
        ),
    ] {
        let told = told.exits(2).says(&[words]);
        assert_eq!(told.errors().len(), 1, "{}", told.err);
    }
    // A key in the query of any address is neither printed nor stored.
    let keyed = ["--also-url", "http://h:3?key=sk-canary-1", "--json", "-"];
    let told = with(&keyed).exits(0);
    assert!(!told.out.contains("canary") && told.out.contains("http://h:2"), "{}", told.out);
    // The digest is of the plan and not of the hosts.
    let hash = |url: &str| {
        let told = run(&[
            "--url",
            "http://h",
            "--also-url",
            url,
            "--dry-run",
            "--seed",
            "1",
            "--json",
            "-",
        ]);
        told.exits(0).json()["schedule_hash"].clone()
    };
    assert_eq!(hash("http://i"), hash("http://j"));
}

#[test]
fn the_models_of_several_addresses_must_agree() {
    let (workplace, servers) = (Workplace::new(), [engine(), engine()]);
    let [first, second] = servers.each_ref().map(fake::Server::url);
    let start = ["bench", "--url", &first, "--also-url", &second, "--prompt", "hi", "-n", "2"];
    workplace.run(&[&start[..], &["--osl", "2", "--allow-invalid"]].concat()).exits(0);
    let list = serde_json::json!({"object": "list", "data": [{"id": "another"}]});
    let other =
        fake::Server::start_scripted(fake::Routes::new().on("/", fake::Script::json(200, &list)))
            .unwrap();
    let url = other.url();
    let start = ["bench", "--url", &first, "--also-url", &url, "--prompt", "hi", "-n", "2"];
    workplace.run(&start).exits(2).says(&["--model: is needed", "\"another\""]);
}
