//! Data sets from disk: what is read of them, what is sent, what is said.

use std::collections::BTreeMap;

use serde_json::Value;
use wire::dataset::table::{DATASETS, Read};

use crate::program::{Told, Workplace};
use crate::servers::engine;

const D12: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/cases/datasets/D12_three_rows.jsonl");

/// A file of two rows for each data set, and what `--dataset-name` it is of.
const FILES: &[(&str, &str)] = &[
    (
        "sharegpt",
        r#"[{"conversations": [{"from": "human", "value": "What is the capital of Norway?"}, {"from": "gpt", "value": "It is Oslo, of course."}]},
            {"conversations": [{"from": "human", "value": "And what is that of Sweden?"}, {"from": "gpt", "value": "It is Stockholm, of course."}]}]"#,
    ),
    ("custom", "{\"prompt\": \"red fox\"}\n{\"prompt\": \"blue jay\"}\n"),
    (
        "custom_image",
        "{\"prompt\": \"red fox\", \"image_files\": \"https://h/fox.png\"}\n{\"prompt\": \"blue jay\", \"image_files\": \"https://h/jay.png\"}\n",
    ),
    (
        "custom_audio",
        "{\"prompt\": \"red fox\", \"audio\": \"call.wav\"}\n{\"prompt\": \"blue jay\", \"audio\": \"call.wav\"}\n",
    ),
    ("hf", "[{\"question\": \"red fox\"}, {\"question\": \"blue jay\"}]"),
    ("burstgpt", "Timestamp,Model,Request tokens,Response tokens\n5,GPT-4,9,4\n6,ChatGPT,30,7\n"),
    (
        "azure",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,9,4\n2023-11-16 18:15:46.7805900,30,7",
    ),
    (
        "mooncake",
        "{\"timestamp\":0,\"input_length\":600,\"output_length\":4,\"hash_ids\":[0,1]}\n{\"timestamp\":50,\"input_length\":513,\"output_length\":4,\"hash_ids\":[0,2]}\n",
    ),
    (
        "timed_trace",
        "{\"timestamp\":1,\"input_length\":20,\"output_length\":4}\n{\"timestamp\":1.05,\"input_length\":20,\"output_length\":4}\n",
    ),
    ("sonnet", "From fairest creatures we desire increase,\nThat thereby beauty's rose might\n"),
    (
        "spec_bench",
        "{\"turns\": [\"red fox\"], \"category\": \"a\"}\n{\"turns\": [\"blue jay\"], \"category\": \"b\"}\n",
    ),
    (
        "speed_bench",
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"category\": \"x\"}\n{\"messages\": [{\"role\": \"user\", \"content\": \"b\"}]}\n",
    ),
];

fn content_of(name: &str) -> &'static str {
    FILES.iter().find(|(other, _)| *other == name).expect("each data set has a file here").1
}

/// The path of such a file, or of a folder with one client.
fn path_of(workplace: &Workplace, name: &str) -> &'static str {
    if name == "servegen" {
        std::fs::create_dir(workplace.at("file")).unwrap();
        workplace.file("file/chunk-1-trace.csv", "0,1,1,Gamma,1,1\n");
        let lists = r#"{"input_tokens": "{9: 0.5, 30: 0.5}", "output_tokens": "{4: 1.0}"}"#;
        workplace.file("file/chunk-1-dataset.json", format!("{{\"0\": {lists}}}"));
        return "file";
    }
    workplace.file("file", content_of(name))
}

fn dry(workplace: &Workplace, arguments: &[&str]) -> Told {
    let start = ["bench", "--dry-run", "--json", "-"];
    workplace.run(&[&start, arguments].concat())
}

fn set<'a>(name: &'a str, path: &'a str) -> [&'a str; 4] {
    ["--dataset-name", name, "--dataset-path", path]
}

fn notes(plan: &Value) -> String {
    plan["workload"]["notes"].to_string()
}

/// Runs a data set against an engine; the directory of the run is `run`.
fn bench(workplace: &Workplace, url: &str, arguments: &[&str]) -> Told {
    let start = ["bench", "--url", url, "--model", "m", "--out", "run", "--allow-invalid"];
    workplace.run(&[&start, arguments].concat())
}

#[test]
fn every_data_set_is_read_and_sent() {
    for entry in DATASETS {
        let (workplace, server) = (Workplace::new(), engine());
        let file = path_of(&workplace, entry.name);
        workplace.file("call.wav", "RIFF");
        let flags = ["-n", "2", "--osl", "3"];
        bench(&workplace, &server.url(), &[&set(entry.name, file)[..], &flags].concat()).exits(0);
        assert_eq!(workplace.export("run").len(), 2, "{}", entry.name);
        let sent: std::collections::BTreeSet<_> =
            server.requests().into_iter().map(|request| request.body).collect();
        assert_eq!(sent.len(), 2, "{} sends one prompt twice", entry.name);
    }
}

#[test]
fn a_file_that_is_missing_or_empty_is_one_sentence() {
    let workplace = Workplace::new();
    let empty = workplace.file("empty", "\n");
    for entry in DATASETS {
        let told = dry(&workplace, &set(entry.name, "no/such/file")).exits(2);
        let told = told.says(&["--dataset-path", "no/such/file"]);
        assert_eq!(told.errors().len(), 1);
        let (empty_is, kind) = match entry.read {
            Read::File(_) => ("empty: the file is empty", "needs a file"),
            Read::Folder => ("empty is not a folder", "needs a folder"),
        };
        let told = dry(&workplace, &set(entry.name, empty)).exits(2);
        assert_eq!(told.says(&[empty_is]).errors().len(), 1);
        dry(&workplace, &["--dataset-name", entry.name]).exits(2).says(&[kind]);
    }
    dry(&workplace, &set("hf", "org/name")).exits(2).says(&["nothing is fetched from a hub"]);
    dry(&workplace, &set("speed_bench", ".")).exits(2).says(&["SUBSET.jsonl"]);
    let told = dry(&workplace, &set("custom", workplace.file("head.csv", "a,b\n"))).exits(2);
    told.says(&["has no usable row", "line 1: broken JSON"]);
    let told = dry(&workplace, &set("burstgpt", workplace.file("h.csv", "request tokens,x\n")));
    told.exits(2).says(&["no column Response tokens", "the file has request tokens, x"]);
    let head = "request tokens,response tokens\n";
    let told = dry(&workplace, &set("burstgpt", workplace.file("head.csv", head))).exits(2);
    told.says(&["holds no row at all"]);
}

#[test]
fn an_unknown_data_set_or_column_names_those_that_are() {
    let workplace = Workplace::new();
    let told = dry(&workplace, &["--dataset-name", "poems"]).exits(2);
    let names: Vec<_> = DATASETS.iter().map(|entry| entry.name).collect();
    told.says(&names);
    let file = workplace.file("rows.json", content_of("hf"));
    let with = |column: &str| {
        dry(&workplace, &[&set("hf", file)[..], &["--dataset-column", column]].concat())
    };
    with("prompt=ask").exits(2).says(&["rows.json", "no column ask", "the file has question"]);
    with("ask=question").exits(2).says(&["--dataset-column", "one of prompt, output"]);
    with("time=question").exits(2).says(&["hf has no time", "prompt, output, label, tools"]);
    with("prompt=question").exits(0);
    dry(&workplace, &["--dataset-column", "prompt=ask"]).exits(2).says(&["--dataset-name hf"]);
    let custom = [&set("custom", file)[..], &["--dataset-column", "prompt=ask"]].concat();
    dry(&workplace, &custom).exits(2).says(&["the keys of custom are fixed"]);
}

#[test]
fn d12_rows_are_sent_once_and_the_run_says_so() {
    let workplace = Workplace::new();
    let plan = dry(&workplace, &[&set("custom", D12)[..], &["-n", "8"]].concat()).exits(0).json();
    assert_eq!(plan["requests"], 3);
    let told = "the data set has 3 usable rows for 8 requests: 3 are sent, each row once";
    assert!(notes(&plan).contains(told), "{plan}");
    for more in [&["--no-oversample", "-n", "8"][..], &["--duration", "9s"]] {
        let plan = dry(&workplace, &[&set("custom", D12)[..], more].concat()).exits(0).json();
        assert_eq!(plan["requests"], 3, "{more:?}");
        assert!(notes(&plan).contains("--oversample sends rows again"), "{plan}");
    }
    let both = ["--oversample", "--no-oversample"];
    dry(&workplace, &[&set("custom", D12)[..], &both].concat()).exits(2).says(&["contradicts"]);
}

#[test]
fn d12_rows_are_sent_again_when_asked() {
    let (workplace, server) = (Workplace::new(), engine());
    let flags = ["-n", "8", "--oversample", "--json", "-"];
    let told = bench(&workplace, &server.url(), &[&set("custom", D12)[..], &flags].concat());
    let summary = told.exits(0).json();
    let factor = summary["workload"]["oversampled"].as_f64().unwrap();
    assert!((factor - 2.666_666_666_666_666_5).abs() < 1e-9, "{factor}");
    let note = "oversampled 2.67x, repeated prompts hit prefix caches";
    assert!(summary["workload"]["notes"].to_string().contains(note), "{}", summary["workload"]);
    let mut uses = BTreeMap::new();
    for request in server.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        *uses.entry(body["messages"].to_string()).or_insert(0) += 1;
    }
    let mut uses: Vec<u32> = uses.into_values().collect();
    uses.sort_unstable();
    assert_eq!(uses, [2, 3, 3]);
}

#[test]
fn labels_of_rows_partition_the_run() {
    let (workplace, server) = (Workplace::new(), engine());
    let line = |n: usize| {
        let tenant = if n.is_multiple_of(3) { "small" } else { "large" };
        format!(
            "{{\"prompt\": \"question {n}\", \"output_tokens\": 2, \"label\": {{\"tenant\": \"{tenant}\"}}}}\n"
        )
    };
    let file = workplace.file("rows.jsonl", (0..12).map(line).collect::<String>());
    let flags = ["-n", "12", "--goodput", "ttft:60000", "--json", "summary.json"];
    let arguments = [&set("custom", file)[..], &flags].concat();
    let told = bench(&workplace, &server.url(), &arguments).exits(0);
    for words in ["tenant=small", "tenant=large"] {
        assert!(told.out.contains(words), "no {words} in\n{}", told.out);
    }
    let summary: Value = serde_json::from_str(&workplace.read("summary.json")).unwrap();
    let tenants = &summary["goodput"]["per_label"]["tenant"];
    assert_eq!((&tenants["small"]["of"], &tenants["large"]["of"]), (&4.into(), &8.into()));
    assert_eq!((&tenants["small"]["good"], &tenants["large"]["good"]), (&4.into(), &8.into()));
    assert_eq!(summary["goodput"]["of"], 12);
    let rows = workplace.export("run");
    let small = rows.iter().filter(|row| row["labels"]["tenant"] == "small").count();
    assert_eq!((small, rows.len()), (4, 12), "{}", rows[0]["labels"]);
}

#[test]
fn tools_of_a_row_reach_the_chat_apis() {
    let (workplace, server) = (Workplace::new(), engine());
    let tools = r#"[{"function":{"name":"f"},"type":"function"}]"#;
    let row = format!("{{\"prompt\": \"a b\", \"tools\": {tools}, \"model\": \"x\"}}\n");
    let file = workplace.file("rows.jsonl", row);
    let once = [&set("custom", file)[..], &["-n", "1", "--osl", "2"]].concat();
    bench(&workplace, &server.url(), &once).exits(0);
    let body: Value = serde_json::from_slice(&server.requests()[0].body).unwrap();
    assert_eq!(body["tools"], serde_json::from_str::<Value>(tools).unwrap());
    assert_eq!((&body["model"], &body["stream"]), (&"m".into(), &true.into()));
    let plan = dry(&workplace, &once).exits(0).json();
    assert!(notes(&plan).contains("not taken from the rows: model;"), "{plan}");
    let plain = dry(&workplace, &[&once[..], &["--backend", "openai"]].concat()).exits(0).json();
    assert!(notes(&plain).contains("the tools of the rows are not sent"), "{plain}");
}

#[test]
fn lengths_and_filters_come_from_flags_of_the_data_set() {
    let workplace = Workplace::new();
    let plan = |name: &str, more: &[&str]| {
        let file = workplace.file("file", content_of(name));
        dry(&workplace, &[&set(name, file)[..], more].concat()).exits(0).json()
    };
    let lengths = plan("burstgpt", &["--burstgpt-model", "GPT-4"]);
    assert_eq!(lengths["requests"], 1);
    assert_eq!(lengths["workload"]["cache_regime"], "cold", "the text is ours");
    assert!(notes(&lengths).contains("its times are not replayed"), "{lengths}");
    let asked = plan("spec_bench", &["--spec-bench-category", "b", "--spec-bench-output-len", "9"]);
    assert_eq!(asked["requests"], 1);
    assert!(asked["workload"]["output_lengths"].to_string().contains('9'), "{asked}");
    assert!(plan("sonnet", &[])["workload"]["output_lengths"].to_string().contains("150"));
    let poem = workplace.file("poem", content_of("sonnet"));
    let huge = [&set("sonnet", poem)[..], &["--sonnet-input-len", "4000000000"]].concat();
    dry(&workplace, &huge).exits(2).says(&["--sonnet-input-len", "1000000000"]);
    let other = plan("custom", &["--sonnet-input-len", "9"]);
    let told = "--sonnet-input-len did nothing: it concerns sonnet only";
    assert!(notes(&other).contains(told), "{other}");
    let several = plan("sharegpt", &["--custom-output-len", "5"]);
    let told =
        "--custom-output-len did nothing: it concerns custom, custom_image, custom_audio only";
    assert!(notes(&several).contains(told), "{several}");
}

#[test]
fn a_file_that_is_cut_off_is_used_and_told() {
    let workplace = Workplace::new();
    let whole = content_of("sharegpt");
    let cut = &whole[..whole.len() - 40];
    let plan = dry(&workplace, &set("sharegpt", workplace.file("cut.json", cut))).exits(0).json();
    assert_eq!(plan["requests"], 1);
    assert!(notes(&plan).contains("the file is cut off at 2; rows before that are used"), "{plan}");
}

#[test]
fn the_documents_describe_every_data_set() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/datasets.md");
    let page = std::fs::read_to_string(path).unwrap();
    for entry in DATASETS {
        let start = page.find(&format!("\n## {}\n", entry.name));
        let section = &page[start.unwrap_or_else(|| panic!("no section {}", entry.name)) + 4..];
        let section = section.split("\n## ").next().unwrap();
        for flag in entry.output_flag.iter().chain(entry.flags) {
            assert!(section.contains(&format!("`--{flag}`")), "{}: {flag}", entry.name);
        }
        for field in entry.fields {
            assert!(section.contains(&format!("`{}`", field.name())), "{}: {field:?}", entry.name);
        }
        assert!(section.contains("**vLLM**"), "{}: what vLLM does differently", entry.name);
    }
}
