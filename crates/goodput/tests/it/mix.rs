//! Several workloads in one run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::engine;

fn dry(workplace: &Workplace, arguments: &[&str]) -> Told {
    let start = ["bench", "--url", "http://h", "--dry-run", "--json", "-", "--seed", "3"];
    workplace.run(&[&start, arguments].concat())
}

/// Bodies by the value of a label of their rows.
fn sent(server: &fake::Server, rows: &[Value], label: &str) -> BTreeMap<String, Vec<Value>> {
    let mut bodies = BTreeMap::new();
    for request in server.requests() {
        // What the tool asks for itself, such as /tokenize, has no number.
        let Some(id) = request.header("x-request-id") else { continue };
        let id = id.rsplit_once('-').unwrap().1;
        bodies.insert(id.to_owned(), serde_json::from_slice::<Value>(&request.body).unwrap());
    }
    let mut sent: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for row in rows {
        let value = row["labels"][label].as_str().unwrap().to_owned();
        sent.entry(value).or_default().push(bodies[&row["id"].to_string()].clone());
    }
    sent
}

#[test]
fn two_workloads_partition_the_run_and_each_is_its_own() {
    let (workplace, server) = (Workplace::new(), engine());
    let rows: String = (0..40).map(|row| format!("{{\"prompt\": \"row {row}\"}}\n")).collect();
    let file = workplace.file("rows.jsonl", rows);
    let rag = format!("rag:1 dataset-name=custom dataset-path={file} osl=3 priority=7");
    let url = server.url();
    let flags = [
        &["bench", "--url", &url, "--model", "m", "--out", "run", "--json", "-"][..],
        &["--mix", "chat:3 isl=20 osl=2 ignore-eos", "--mix", &rag],
        &["-n", "48", "--seed", "5", "--tokenizer", "embedded", "--allow-invalid"],
    ];
    let summary = workplace.run(&flags.concat()).exits(0).json();
    assert_eq!(summary["outcomes"]["ok"], 48, "{}", summary["outcomes"]);
    let slices = summary["slices"]["by_label"].as_array().unwrap();
    let of_workload: Vec<_> =
        slices.iter().filter(|slice| slice["of"]["label"] == "workload").collect();
    assert_eq!(of_workload.len(), 2);
    assert_eq!(of_workload.iter().map(|slice| slice["n"].as_u64().unwrap()).sum::<u64>(), 48);
    let sent = sent(&server, &workplace.export("run"), "workload");
    for body in &sent["chat"] {
        assert_eq!(
            (&body["max_completion_tokens"], &body["ignore_eos"]),
            (&2.into(), &true.into())
        );
        assert!(body.get("priority").is_none());
    }
    let rows: BTreeSet<String> =
        sent["rag"].iter().map(|body| body["messages"][0]["content"].to_string()).collect();
    assert_eq!(rows.len(), sent["rag"].len(), "a row is sent twice");
    for body in &sent["rag"] {
        assert_eq!((&body["max_completion_tokens"], &body["priority"]), (&3.into(), &7.into()));
        assert!(body["messages"][0]["content"].as_str().unwrap().starts_with("row "));
        assert!(body.get("ignore_eos").is_none());
    }
    let workload = &summary["workload"];
    let source = workload["source"].as_str().unwrap();
    assert!(source.starts_with("mix of chat 75 % (synthetic text"), "{source}");
    assert!(source.contains("rag 25 % (custom rows.jsonl: 40 rows)"), "{source}");
    let lengths = workload["input_lengths"].as_str().unwrap();
    assert!(lengths.contains("chat 20 tokens") && lengths.contains("rag as the rows are"));
    assert_eq!(workload["output_lengths"], "chat 2; rag 3");
    assert!(workload["notes"].to_string().contains("rag: priorities by session: 7 for all"));
}

#[test]
fn a_part_sends_the_texts_that_it_sends_alone() {
    let workplace = Workplace::new();
    let texts = |mixes: &[&str], out: &str| {
        let server = engine();
        let url = server.url();
        let mut flags = vec!["bench", "--url", &url, "--model", "m", "--allow-invalid"];
        flags.extend(["--out", out, "-n", "24", "--seed", "5", "--prefix-cache", "as-is"]);
        mixes.iter().for_each(|mix| flags.extend(["--mix", mix]));
        workplace.run(&flags).exits(0);
        let mut sent = sent(&server, &workplace.export(out), "workload");
        let of_chat = sent.remove("chat").unwrap().into_iter();
        of_chat.map(|body| body["messages"].to_string()).collect::<Vec<_>>()
    };
    let alone = texts(&["chat isl=30 osl=2"], "alone");
    let mixed = texts(&["chat:1 isl=30 osl=2", "long:2 isl=90 osl=2"], "mixed");
    assert_eq!(alone.len(), 24);
    assert!((2..20).contains(&mixed.len()), "{}", mixed.len());
    assert_eq!(mixed, alone[..mixed.len()]);
}

#[test]
fn a_file_of_parts_is_the_same_mix() {
    let workplace = Workplace::new();
    workplace.file(
        "mix.toml",
        "[rag]\nisl = 800\nosl = 6\n[chat]\nweight = 3\nisl = 50\nosl = 25\nrandom-range-ratio = 0.5\n",
    );
    let inline =
        ["--mix", "chat:3 isl=50 osl=25 random-range-ratio=0.5", "--mix", "rag isl=800 osl=6"];
    let inline = dry(&workplace, &inline).exits(0).json();
    let file = dry(&workplace, &["--mix", "mix.toml"]).exits(0).json();
    assert_eq!(inline["schedule_hash"], file["schedule_hash"]);
    assert_eq!(inline["workload"], file["workload"]);
    let lengths = file["workload"]["input_lengths"].as_str().unwrap();
    assert_eq!(lengths, "chat 50 ± 50 % tokens; rag 800 tokens, estimated");
    // What holds for all parts is said once, and the number of threads is no
    // part of a schedule.
    let notes = file["workload"]["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let threads = dry(&workplace, &["--mix", "mix.toml", "--threads", "4"]).exits(0).json();
    assert_eq!(threads["schedule_hash"], file["schedule_hash"]);
}

#[test]
fn a_mix_ends_with_its_shortest_list_unless_rows_may_repeat() {
    let workplace = Workplace::new();
    let rows = workplace.file("rows.jsonl", "{\"prompt\": \"a b\"}\n{\"prompt\": \"c d\"}\n");
    let part = format!("rows dataset-name=custom dataset-path={rows}");
    let both = ["--mix", &part, "--mix", "said:3 prompt='the same to all'", "-n", "400"];
    let plan = dry(&workplace, &both).exits(0).json();
    let requests = plan["requests"].as_u64().unwrap();
    assert!((2..100).contains(&requests), "{requests}");
    let notes = plan["workload"]["notes"].to_string();
    assert!(notes.contains("when each row of the part rows was sent"), "{notes}");
    let again = [&both[..], &["--oversample"]].concat();
    let plan = dry(&workplace, &again).exits(0).json();
    assert_eq!(plan["requests"], 400);
    let notes = plan["workload"]["notes"].to_string();
    assert!(notes.contains("rows: oversampled"), "{notes}");
}

#[test]
fn a_part_has_the_runs_flags_where_it_gives_none() {
    let workplace = Workplace::new();
    let common = ["--isl", "64", "--osl", "9", "--mix", "a", "--mix", "b isl=32"];
    let plan = dry(&workplace, &common).exits(0).json();
    let lengths = plan["workload"]["input_lengths"].as_str().unwrap();
    assert_eq!(lengths, "a 64 tokens; b 32 tokens, estimated");
    assert_eq!(plan["workload"]["output_lengths"], "a 9; b 9");
}

#[test]
fn a_mistake_in_a_part_is_told_with_its_name_and_one_of_the_run_once() {
    let workplace = Workplace::new();
    for (mixes, words) in [
        (&["chat:3 isl=few"][..], "--mix chat: --isl:"),
        (&["chat:0 isl=5"], "the weight of \"chat\" is 0"),
        (&["chat isl=5", "chat isl=6"], "\"chat\" is there twice"),
        (&["chat dataset-name=custom"], "--mix chat: --dataset-path: --dataset-name custom needs"),
        (&["chat dataset-name=poems"], "--mix chat: --dataset-name: \"poems\" is not one of"),
        (&["chat prompt=x dataset-name=hf"], "--mix chat: --prompt: is a workload of its own"),
        (&["chat request-rate=3"], "--request-rate is not a workload's flag"),
        (&["no/such.toml"], "no/such.toml"),
        (&["chat lora-modules=a lora-assignment=x"], "--mix chat: --lora-assignment:"),
    ] {
        let arguments: Vec<&str> = mixes.iter().flat_map(|mix| ["--mix", mix]).collect();
        let told = dry(&workplace, &arguments).exits(2).says(&[words]);
        assert_eq!(told.errors().len(), 1, "{mixes:?}: {}", told.err);
    }
    let of_run = ["--osl", "few", "--mix", "a", "--mix", "b isl=32"];
    let told = dry(&workplace, &of_run).exits(2).says(&["error: --osl:"]);
    assert_eq!(told.errors().len(), 1, "{}", told.err);
    let tgi = ["--backend", "tgi", "--mix", "a ignore-eos"];
    let told = dry(&workplace, &tgi).exits(2).says(&["--mix a: --ignore-eos: the API tgi"]);
    assert_eq!(told.errors().len(), 1, "{}", told.err);
}
