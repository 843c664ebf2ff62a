//! Traces: instants, lengths and shared prefixes as they were, and what a
//! report says of how well they were kept.

use serde_json::{Value, json};
use tokens::embedded;

use crate::program::{Told, Workplace};
use crate::servers::engine;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cases/");

fn expected(id: &str) -> Value {
    let cases = std::fs::read_to_string(format!("{CASES}cases.json")).unwrap();
    let cases: Value = serde_json::from_str(&cases).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    cases.iter().find(|case| case["id"] == id).unwrap()["expect"].clone()
}

fn case_file(name: &str) -> String {
    format!("{CASES}datasets/{name}")
}

fn dry(workplace: &Workplace, arguments: &[&str]) -> Told {
    let start = ["bench", "--dry-run", "--json", "-"];
    workplace.run(&[&start, arguments].concat())
}

fn set<'a>(name: &'a str, path: &'a str) -> [&'a str; 4] {
    ["--dataset-name", name, "--dataset-path", path]
}

/// Runs a trace against an engine; the directory of the run is `run`.
fn bench(workplace: &Workplace, url: &str, arguments: &[&str]) -> Told {
    let start = ["bench", "--url", url, "--model", "m", "--out", "run", "--allow-invalid"];
    workplace.run(&[&start, arguments].concat())
}

fn seconds(plan: &Value) -> Vec<f64> {
    let arrivals = plan["arrivals_ms"].as_array().unwrap();
    arrivals.iter().map(|ms| ms.as_f64().unwrap() / 1e3).collect()
}

/// Six requests in a quarter of a second: two share two blocks, two share one.
const TRACE: &str = r#"{"timestamp": 40, "input_length": 40, "output_length": 3, "hash_ids": [1, 2, 3]}
{"timestamp": 40, "input_length": 37, "output_length": 4, "hash_ids": [1, 2, 4]}
{"timestamp": 90, "input_length": 32, "output_length": 2, "hash_ids": [1, 5]}
{"timestamp": 140, "input_length": 21, "output_length": 5}
{"timestamp": 190, "input_length": 20, "output_length": 3, "hash_ids": ["x", "y"]}
{"timestamp": 290, "input_length": 16, "output_length": 2, "hash_ids": [18446744073709551615]}
"#;

const MS: [&str; 2] = ["--timed-trace-sec-multiplier", "0.001"];

#[test]
fn d05_d07_and_d09_arrive_when_the_files_say() {
    let workplace = Workplace::new();
    let d05 = case_file("D05_burstgpt_v1.csv");
    let plan = dry(&workplace, &[&set("burstgpt", &d05)[..], &["--replay"]].concat());
    let plan = plan.exits(0).json();
    assert_eq!(json!(seconds(&plan)), json!([0.0, 40.0, 4793.0]));
    assert_eq!(expected("D05")["arrivals_s"], json!([0, 40, 4793]));
    let gpt4 = ["--replay", "--burstgpt-model", "GPT-4"];
    let plan = dry(&workplace, &[&set("burstgpt", &d05)[..], &gpt4].concat()).exits(0).json();
    assert_eq!(json!(seconds(&plan).len()), expected("D05")["gpt4_usable"]);
    let d07 = case_file("D07_azure2023.csv");
    let plan = dry(&workplace, &set("azure", &d07)).exits(0).json();
    assert_eq!(json!(seconds(&plan)), expected("D07")["arrivals_s"]);
    assert_eq!(plan["load_kind"], "open");
    let d09 = case_file("D09_mooncake.jsonl");
    let plan = dry(&workplace, &set("mooncake", &d09)).exits(0).json();
    // Line 3 is rejected, and the others come when they came.
    assert_eq!(seconds(&plan), [0.0, 0.0, 3.0, 3.0]);
    assert_eq!(expected("D09")["arrivals_s"], json!([0, 0, 2.5, 3.0, 3.0]));
    let notes = plan["workload"]["notes"].to_string();
    assert!(notes.contains("line 3: 2 hash ids for 20 tokens, which need 1 of 512"), "{notes}");
    assert_eq!(plan["load"], "open loop, replay of a trace, 4 arrivals in 3 s");
}

#[test]
fn a_replay_sends_the_rows_in_order_with_their_lengths_and_shared_text() {
    let mut hashes = Vec::new();
    let mut prompts: Vec<Vec<String>> = Vec::new();
    for threads in ["1", "3"] {
        let (workplace, server) = (Workplace::new(), engine());
        let file = workplace.file("trace.jsonl", TRACE);
        let flags = ["--threads", threads, "--tokenizer", "embedded", "--ignore-eos"];
        let json = ["--backend", "openai", "--prefix-cache", "as-is", "--json", "s.json"];
        let arguments = [&set("timed_trace", file)[..], &MS, &flags, &json].concat();
        bench(&workplace, &server.url(), &arguments).exits(0);
        let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
        hashes.push(summary["load"]["schedule_hash"].clone());
        let mut rows = workplace.export("run");
        rows.sort_by_key(|row| row["id"].as_str().map(|id| (id.len(), id.to_owned())));
        let at: Vec<f64> = rows.iter().map(|r| r["intended_at_ms"].as_f64().unwrap()).collect();
        assert_eq!(at, [0.0, 0.0, 50.0, 100.0, 150.0, 250.0]);
        let output: Vec<u64> = rows.iter().map(|r| r["output_tokens"].as_u64().unwrap()).collect();
        assert_eq!(output, [3, 4, 2, 5, 3, 2]);
        let mut sent: Vec<String> = server
            .requests()
            .into_iter()
            // What the tool asks for itself, such as /tokenize, has no number.
            .filter(|request| request.header("x-request-id").is_some())
            .map(|request| {
                let body: Value = serde_json::from_slice(&request.body).unwrap();
                body["prompt"].as_str().unwrap().to_owned()
            })
            .collect();
        sent.sort();
        prompts.push(sent);
    }
    assert_eq!(hashes[0], hashes[1]);
    assert_eq!(prompts[0], prompts[1], "the same texts, however many threads");
    let tokenizer = embedded();
    let ids: Vec<Vec<u32>> = prompts[0].iter().map(|text| tokenizer.encode(text)).collect();
    let mut lengths: Vec<usize> = ids.iter().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [16, 20, 21, 32, 37, 40]);
    let of = |length: usize| ids.iter().find(|ids| ids.len() == length).unwrap();
    let shared = |a: &[u32], b: &[u32]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    assert_eq!(shared(of(40), of(37)), 32, "two blocks");
    assert_eq!(shared(of(40), of(32)), 16, "one block");
    assert!(shared(of(40), of(20)) < 16 && shared(of(16), of(40)) < 16);
}

#[test]
fn speed_window_and_cap_change_what_they_say() {
    let workplace = Workplace::new();
    let file = workplace.file("trace.jsonl", TRACE);
    let plan = |more: &[&str]| {
        dry(&workplace, &[&set("timed_trace", file)[..], &MS, more].concat()).exits(0).json()
    };
    let ms = |plan: &Value| -> Vec<f64> { seconds(plan).iter().map(|s| s * 1e3).collect() };
    assert_eq!(ms(&plan(&["--trace-speed", "2"])), [0.0, 0.0, 25.0, 50.0, 75.0, 125.0]);
    let part = plan(&["--trace-window", "50ms..200ms", "--trace-speed", "0.5"]);
    assert_eq!(ms(&part), [0.0, 100.0, 200.0]);
    let told = "open loop, replay of a trace, 3 arrivals in 0.2 s, cut to 0.05 s to 0.2 s of it, \
                speed 0.5";
    assert_eq!(part["load"], told);
    assert!(part["workload"]["notes"].to_string().contains("3 of 6 usable rows lie outside"));
    assert_eq!(ms(&plan(&["--trace-window", "190ms.."])), [0.0]);
    assert_eq!(ms(&plan(&["-n", "2"])), [0.0, 0.0]);
    assert_eq!(ms(&plan(&["--duration", "50ms"])), [0.0, 0.0]);
    let capped = plan(&["-c", "2"]);
    assert_eq!((&capped["load_kind"], ms(&capped).len()), (&"capped".into(), 6));
    let again = plan(&["-n", "8", "--oversample"]);
    assert_eq!(ms(&again)[5..], [250.0, 300.0, 300.0]);
    // A rate takes the place of the times; vLLM's own default does not.
    assert!(plan(&["--request-rate", "9"])["load"].to_string().contains("9 req/s"));
    assert!(plan(&["--request-rate", "inf"])["load"].to_string().contains("replay"));
    for flag in ["--no-replay", "--no-self-timed", "--no_self_timed"] {
        let plan = plan(&[flag]);
        assert!(!plan["load"].to_string().contains("replay"), "{plan}");
        assert!(plan["workload"]["notes"].to_string().contains("its times are not replayed"));
    }
    assert!(plan(&["--self-timed"])["load"].to_string().contains("replay"));
}

#[test]
fn a_trace_that_goes_back_in_time_is_refused_with_its_line() {
    let workplace = Workplace::new();
    let mut lines: Vec<&str> = TRACE.lines().collect();
    lines.swap(2, 4);
    let file = workplace.file("back.jsonl", lines.join("\n"));
    let arguments = [&set("timed_trace", file)[..], &MS].concat();
    let told = dry(&workplace, &arguments).exits(2);
    let told = told.says(&["back.jsonl: line 4 goes back in time, 50.0 ms before line 3"]);
    assert_eq!(told.says(&["--trace-sort"]).errors().len(), 1);
    let sorted = dry(&workplace, &[&arguments[..], &["--trace-sort"]].concat()).exits(0).json();
    assert_eq!(seconds(&sorted), [0.0, 0.0, 0.05, 0.1, 0.15, 0.25]);
    // Where times are not replayed their order is nobody's concern.
    dry(&workplace, &[&arguments[..], &["--request-rate", "5"]].concat()).exits(0);
}

#[test]
fn what_contradicts_a_replay_is_told() {
    let workplace = Workplace::new();
    let file = workplace.file("trace.jsonl", TRACE);
    let told = |more: &[&str]| {
        let told = dry(&workplace, &[&set("timed_trace", file)[..], &MS, more].concat()).exits(2);
        assert_eq!(told.errors().len(), 1, "{told:?}");
        told
    };
    told(&["--replay", "--request-rate", "4"]).says(&["so does --request-rate"]);
    told(&["--replay", "--no-replay"]).says(&["contradicts --no-replay"]);
    told(&["--trace-speed", "0"]).says(&["--trace-speed: must be a number above 0"]);
    told(&["--trace-window", "9s..3s"]).says(&["FROM must be before TO"]);
    told(&["--trace-window", "soon"]).says(&["such as 10m..20m"]);
    told(&["--trace-window", "1h..2h"]).says(&["no row of trace.jsonl lies in it"]);
    told(&["--trace-speed", "2", "--stages", "5:1s"]).says(&["--stages says when"]);
    told(&["--no-replay", "--trace-speed", "2"]).says(&["add --replay"]);
    told(&["--think-time", "1s"]).says(&["--think-time"]);
    told(&["--arrivals", "poisson"]).says(&["these come when the trace says"]);
    told(&["--timed-trace-chunk-hash-size", "4"]).says(&["must be from 8 to"]);
    told(&["--timed-trace-sec-multiplier", "0"]).says(&["must be above 0"]);
    let hashed: String = TRACE.lines().take(3).map(|line| format!("{line}\n")).collect();
    let hashed = workplace.file("hashed.jsonl", hashed);
    let blocks = ["--timed-trace-chunk-hash-size", "512"];
    let told = dry(&workplace, &[&set("timed_trace", hashed)[..], &blocks].concat()).exits(2);
    told.says(&["has no usable row: block_count (3)", "3 hash ids for 40 tokens, which need 1"]);
    let other = workplace.file("rows.jsonl", "{\"prompt\": \"red fox\"}\n");
    let plain = [&set("custom", other)[..], &["--replay"]].concat();
    dry(&workplace, &plain).exits(2).says(&["custom has no times to replay", "timed_trace"]);
    dry(&workplace, &["--trace-speed", "2"]).exits(2).says(&["no times to replay"]);
    let part =
        format!("a dataset-name=timed_trace dataset-path={file} timed-trace-sec-multiplier=1e-3");
    let mixed = dry(&workplace, &["--mix", &part, "--request-rate", "50"]).exits(0).json();
    assert!(mixed["load"].to_string().contains("50 req/s"), "{mixed}");
    let asked = dry(&workplace, &["--mix", &part, "--replay"]).exits(2);
    asked.says(&["the parts of a mix come at the rate of the run"]);
    let head = "Request tokens,Response tokens\n3,4\n";
    let lengths = workplace.file("lengths.csv", head);
    let asked = [&set("burstgpt", lengths)[..], &["--replay"]].concat();
    dry(&workplace, &asked).exits(2).says(&["no column of times", "time=COLUMN"]);
    dry(&workplace, &set("azure", lengths)).exits(2).says(&["there is no column Timestamp"]);
}

#[test]
fn a_report_says_how_well_the_trace_was_kept() {
    let (workplace, server) = (Workplace::new(), engine());
    let file = workplace.file("trace.jsonl", TRACE);
    let flags = ["--trace-speed", "2", "--trace-window", "..200ms", "--ignore-eos"];
    let more = ["-n", "7", "--oversample", "--markdown", "r.md", "--json", "s.json"];
    let arguments = [&set("timed_trace", file)[..], &MS, &flags, &more].concat();
    let told = bench(&workplace, &server.url(), &arguments).exits(0);
    let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    let replay = &summary["load"]["replay"];
    assert_eq!(replay["rows"], 5);
    assert_eq!((&replay["speed"], &replay["window_s"]), (&json!(2.0), &json!([0.0, 0.2])));
    assert_eq!((&replay["planned"], &replay["sent"]), (&json!(7), &json!(7)));
    assert_eq!((&replay["missed"], &replay["duplicated"]), (&json!(0), &json!(2)));
    assert_eq!(
        (&replay["output_tokens"]["n"], &replay["output_tokens"]["exact"]),
        (&json!(7), &json!(7))
    );
    assert!(replay["lag_ms"]["p99"].as_f64().unwrap() >= 0.0, "{replay}");
    for page in [&told.out, &workplace.read("r.md")] {
        assert!(page.contains("Replay of the trace"), "{page}");
        assert!(page.contains("7 planned, 7 sent, 0 missed, 2 rows sent again"), "{page}");
    }
    // Made again from the directory, it says the same.
    let again = workplace.run(&["report", "run", "--json", "-"]).exits(0).json();
    assert_eq!(&again["load"]["replay"], replay);
    // What is no replay has no such section.
    let plain =
        ["--dry-run", "--dataset-name", "timed_trace", "--dataset-path", file, "--no-replay"];
    let told = workplace.run(&[&["bench"], &plain[..], &MS].concat()).exits(0);
    assert!(!told.out.contains("Replay of the trace"));
}
