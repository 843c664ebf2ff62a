use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::engine;

fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    let start = ["bench", "--url", url, "--model", "m", "-n", "4", "--osl", "2", "--allow-invalid"];
    workplace.run(&[&start[..], more].concat())
}

fn plan(workplace: &Workplace, more: &[&str]) -> Told {
    let start = ["bench", "--url", "http://127.0.0.1:9", "--dry-run", "--json", "-", "-n", "2"];
    workplace.run(&[&start, more].concat())
}

fn lengths(plan: &Value) -> (&str, &str) {
    let of = |key: &str| plan["workload"][key].as_str().unwrap();
    (of("input_lengths"), of("output_lengths"))
}

#[test]
fn every_form_of_a_length_is_taken_and_said() {
    let workplace = Workplace::new();
    workplace.file("lengths.csv", "tokens,weight\n64,3\n100-199,1\n");
    for (given, said) in [
        ("64", "64"),
        ("64±25%", "64 ± 25 %"),
        ("normal:mean=64,std=8,max=90", "normal:mean=64,std=8,min=1,max=90"),
        ("lognormal:median=64,sigma=0.5,min=8", "lognormal:median=64,sigma=0.5,min=8,max=3495"),
        ("64:3,100-199:1", "histogram:64:3,100-199:1"),
        ("histogram:lengths.csv", "histogram:64:3,100-199:1"),
    ] {
        let told = plan(&workplace, &["--isl", given, "--osl", given]).exits(0).json();
        assert_eq!(lengths(&told), (format!("{said} tokens, estimated").as_str(), said));
        // What is stored gives the same schedule again.
        let (_, stored) = lengths(&told);
        let again = plan(&workplace, &["--isl", stored, "--osl", stored]).exits(0).json();
        assert_eq!(again["schedule_hash"], told["schedule_hash"], "{given}");
    }
}

#[test]
fn vllms_range_ratio_is_one_number_or_one_for_each_length() {
    let workplace = Workplace::new();
    let start = ["--random-input-len", "100", "--random-output-len", "10"];
    let ratio = |ratio| plan(&workplace, &[&start[..], &["--random-range-ratio", ratio]].concat());
    let both = ratio("0.5").exits(0).json();
    assert_eq!(lengths(&both), ("100 ± 50 % tokens, estimated", "10 ± 50 %"));
    let each = ratio(r#"{"input": 0.3, "output": 0}"#).exits(0).json();
    assert_eq!(lengths(&each), ("100 ± 30 % tokens, estimated", "10"));
    for wrong in ["1", "-0.1", "x", "{\"input\": 0.3}", "{\"input\": 2, \"output\": 0}", "nan"] {
        ratio(wrong).exits(2).says(&["--random-range-ratio", "from 0 to below 1"]);
    }
    plan(&workplace, &["--isl", "normal:mean=9,std=1", "--random-range-ratio", "0.1"])
        .exits(2)
        .says(&["--isl", "a spread of its own", "leave out --random-range-ratio"]);
}

#[test]
fn a_length_that_is_none_names_flag_file_line_and_rule() {
    let workplace = Workplace::new();
    workplace.file("bad.csv", "64,3\nmany,1\n");
    workplace.file("none.csv", "tokens,weight\n");
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--isl", "12.5"], &["--isl", "not a length in tokens", "512±25%"]),
        (&["--osl", "normal:mean=5"], &["--osl", "normal needs mean and std"]),
        (&["--isl", "histogram:bad.csv"], &["--isl", "bad.csv: line 2", "LENGTH:WEIGHT"]),
        (&["--isl", "histogram:none.csv"], &["--isl", "none.csv", "no entry"]),
        (&["--osl", "histogram:absent.csv"], &["--osl", "absent.csv"]),
        (&["--osl", "64:0"], &["--osl", "one weight must be above 0"]),
    ];
    for (more, words) in cases {
        let told = plan(&workplace, more).exits(2);
        assert_eq!(told.errors().len(), 1, "{}", told.err);
        told.says(words);
    }
}

#[test]
fn rows_of_lengths_have_exactly_their_tokens_under_a_tokenizer() {
    let workplace = Workplace::new();
    let trace = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,ChatGPT,472,2,474,Conversation log\n9,GPT-4,33,3,36,API log\n";
    workplace.file("trace.csv", trace);
    let data = ["--dataset-name", "burstgpt", "--dataset-path", "trace.csv", "-n", "2"];
    let start = ["bench", "--allow-invalid", "--out", "run", "--json", "s.json"];
    workplace.run(&[&start[..], &data].concat()).exits(0);
    // The embedded engine counts by its own tokenizer.
    let mut counted: Vec<u64> =
        workplace.export("run").iter().map(|row| row["input_tokens"].as_u64().unwrap()).collect();
    counted.sort_unstable();
    assert_eq!(counted, [33, 472]);
    let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    assert_eq!(
        summary["workload"]["input_lengths"],
        "as the rows say, exact by the tokenizer embedded-1"
    );
    let foreign = plan(&workplace, &data).exits(0).json();
    assert_eq!(lengths(&foreign).0, "as the rows say, estimated");
}

#[test]
fn prompts_go_out_as_ids_where_the_api_takes_them() {
    let (workplace, server) = (Workplace::new(), engine());
    let ids = ["--prompt-format", "token-ids"];
    let sent = ["--backend", "openai", "--isl", "40", "--tokenizer", "embedded"];
    bench(&workplace, &server.url(), &[&sent[..], &ids].concat()).exits(0);
    let asked = server.requests().into_iter().filter(|asked| asked.path() == "/v1/completions");
    let bodies: Vec<Value> =
        asked.map(|asked| serde_json::from_slice(&asked.body).unwrap()).collect();
    assert!(!bodies.is_empty());
    let tokenizer = tokens::embedded();
    for body in bodies {
        let ids = body["prompt"].as_array().unwrap().iter();
        let ids: Vec<u32> = ids.map(|id| id.as_u64().unwrap() as u32).collect();
        assert_eq!(ids.len(), 40);
        assert_eq!(tokenizer.encode(&tokenizer.decode(&ids)), ids, "a text's own ids");
    }
    for (more, words) in [
        (&["--backend", "openai-chat"][..], "takes texts only"),
        (&["--backend", "openai"], "ids are a tokenizer's"),
        (&["--backend", "openai", "--tokenizer", "server"], "give a --tokenizer that lies on"),
        (&["--backend", "openai", "--tokenizer", "embedded", "--turns", "2"], "have no ids"),
    ] {
        let told = bench(&workplace, &server.url(), &[more, &ids].concat()).exits(2);
        told.says(&["--prompt-format", words]);
    }
}
