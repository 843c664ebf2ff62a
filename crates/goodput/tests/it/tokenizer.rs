use serde_json::Value;

use crate::program::{Told, Workplace};

/// A tokenizer to which each word is one unknown token.
const WORDS: &str = r#"{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],
"normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,
"model":{"type":"WordLevel","vocab":{"unk":0,",":1,".":2},"unk_token":"unk"}}"#;

const MODEL: &str = "cache/hub/models--org--model-1.5/snapshots/0a1b";

fn plan(workplace: &Workplace, more: &[&str]) -> Told {
    let start = ["bench", "--dry-run", "--json", "-", "-n", "2"];
    let mut command = workplace.command(&[&start, more].concat());
    command.env("HF_HOME", workplace.at("cache")).env_remove("HF_HUB_CACHE");
    Told::of(command.output().unwrap())
}

fn served<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--url", "http://127.0.0.1:9", "--model", "m"], more].concat()
}

fn write(workplace: &Workplace, folder: &str) {
    std::fs::create_dir_all(workplace.at(folder)).unwrap();
    std::fs::write(workplace.at(folder).join("tokenizer.json"), WORDS).unwrap();
}

fn workload(plan: &Value) -> (String, Option<&str>) {
    let workload = &plan["workload"];
    let lengths = workload["input_lengths"].as_str().unwrap().to_owned();
    (lengths, workload["tokenizer"].as_str())
}

#[test]
fn a_file_a_folder_and_a_cached_model_are_one_tokenizer() {
    let workplace = Workplace::new();
    write(&workplace, "folder");
    write(&workplace, MODEL);
    let mut hashes = Vec::new();
    for name in ["folder", "folder/tokenizer.json", "org/model-1.5"] {
        let plan = plan(&workplace, &served(&["--tokenizer", name])).exits(0).json();
        let (lengths, tokenizer) = workload(&plan);
        let tokenizer = tokenizer.unwrap();
        let expected =
            format!("exact by the tokenizer {tokenizer}, before the server's chat template");
        assert!(lengths.ends_with(&expected), "{lengths}");
        assert!(tokenizer.starts_with(&format!("{name} (")), "{tokenizer}");
        hashes.push(tokenizer.trim_start_matches(name).to_owned());
    }
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
    // A folder in the way of a model's name is what was written.
    write(&workplace, "org/model-1.5");
    std::fs::write(workplace.at("org/model-1.5/tokenizer.json"), "{}").unwrap();
    let told = plan(&workplace, &served(&["--tokenizer", "org/model-1.5"])).exits(2);
    told.says(&["--tokenizer", "org/model-1.5/tokenizer.json", "beside the model's weights"]);
}

#[test]
fn what_is_absent_is_told_with_what_would_help() {
    let workplace = Workplace::new();
    std::fs::create_dir_all(workplace.at("empty")).unwrap();
    workplace.file("ranks", "IQ== 0\nIg== 1\n");
    let cases: [(&str, &[&str]); 5] = [
        ("org/model", &["nothing is downloaded", "hf download org/model tokenizer.json"]),
        ("nowhere", &["no file, no folder and no ORG/MODEL", "embedded"]),
        ("../../etc/x", &["no file, no folder and no ORG/MODEL"]),
        ("empty", &["holds no tokenizer.json"]),
        ("ranks", &["tiktoken", "rename it so that it holds one of o200k, cl100k"]),
    ];
    for (name, words) in cases {
        let told = plan(&workplace, &served(&["--tokenizer", name])).exits(2);
        assert_eq!(told.errors().len(), 1, "{}", told.err);
        told.says(words).says(&["--tokenizer"]);
    }
}

#[test]
fn without_a_tokenizer_lengths_are_exact_on_the_embedded_engine_only() {
    let workplace = Workplace::new();
    let own = plan(&workplace, &[]).exits(0).json();
    assert_eq!(
        workload(&own),
        ("4096 tokens, exact by the tokenizer embedded-1".to_owned(), Some("embedded-1"))
    );
    assert_eq!(own["workload"]["notes"], serde_json::json!([]));
    let foreign = plan(&workplace, &served(&["--isl", "64"])).exits(0).json();
    assert_eq!(workload(&foreign), ("64 tokens, estimated".to_owned(), None));
    assert!(foreign["workload"]["notes"][0].as_str().unwrap().contains("words and marks"));
    let told = plan(&workplace, &served(&["--isl", "64", "--tokenizer", "embedded"]));
    assert_eq!(workload(&told.exits(0).json()).1, Some("embedded-1"));
}

#[test]
fn the_engine_counts_the_tokens_that_were_asked_for() {
    let workplace = Workplace::new();
    write(&workplace, "folder");
    for tokenizer in ["embedded", "folder"] {
        let more = ["--isl", "333", "--osl", "2", "-n", "5", "--request-rate", "inf"];
        let start = ["bench", "--allow-invalid", "--json", "s.json", "--tokenizer", tokenizer];
        workplace.run(&[&start[..], &more].concat()).exits(0);
        let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
        let lengths = &summary["metrics"]["input_tokens"];
        assert_eq!((&lengths["min"], &lengths["max"]), (&333.0.into(), &333.0.into()));
        let named = summary["workload"]["tokenizer"].as_str().unwrap();
        assert!(named.starts_with(tokenizer), "{named}");
    }
}

#[test]
fn rows_of_a_data_set_are_counted_by_the_tokenizer() {
    let workplace = Workplace::new();
    write(&workplace, "folder");
    workplace.file("rows.jsonl", "{\"prompt\": \"unbelievably, extraordinarily long\"}\n");
    let more = ["--dataset-name", "custom", "--dataset-path", "rows.jsonl", "--osl", "2", "-n"];
    let start = ["bench", "--allow-invalid", "--tokenizer", "folder", "--out", "run"];
    workplace.run(&[&start[..], &more, &["1"]].concat()).exits(0);
    let row = &workplace.export("run")[0];
    assert_eq!(row["input_tokens"], 4, "{row}");
}
