//! Client traces of ServeGen: requests drawn from rates and distributions, what
//! is said of them, and what is refused.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::engine;

/// A bursty client with a silence, and lengths that change with it.
const TRACE_1: &str = "0,2,0.8165,Gamma,1.5,0.4\n600,0,0,,0,0\n1200,1,4,Weibull,0.5,0.3\n";
const LENGTHS_1: &str = r#"{
  "0": {"input_tokens": "{20: 0.5, 40: 0.5}", "output_tokens": "{3: 1.0}"},
  "1200": {"input_tokens": "{60: 1.0}", "output_tokens": "{5: 1.0}"}
}"#;

/// One by a Poisson process, whose lengths begin late.
const TRACE_2: &str = "0,0.5,1,,0,0\n600,0.5,1,,0,0\n1200,0.5,1,,0,0\n";
const LENGTHS_2: &str = r#"{
  "0": {"input_tokens": "{}", "output_tokens": "{}", "reason_ratio": "{}"},
  "600": {"input_tokens": "{30: 1.0}", "output_tokens": "{4: 1.0}", "reason_ratio": "{0.5: 1.0}"}
}"#;

/// Expected of the two above where lengths are known: 1200 + 600 + 600, and
/// 300 of client 2 before.
const EXPECTED: f64 = 2_400.0;

fn dry(workplace: &Workplace, arguments: &[&str]) -> Told {
    let start = ["bench", "--dry-run", "--json", "-", "--dataset-name", "servegen"];
    workplace.run(&[&start, arguments].concat())
}

/// A folder with these files, in this order.
fn folder(workplace: &Workplace, files: &[(&str, &str)]) {
    std::fs::create_dir(workplace.at("m")).unwrap();
    for (name, content) in files {
        workplace.file(&format!("m/{name}"), content);
    }
}

fn service(workplace: &Workplace) {
    folder(
        workplace,
        &[
            ("chunk-1-trace.csv", TRACE_1),
            ("chunk-1-dataset.json", LENGTHS_1),
            ("chunk-2-trace.csv", TRACE_2),
            ("chunk-2-dataset.json", LENGTHS_2),
            ("chunk-4-dataset.json", LENGTHS_2),
            ("chunk-9-trace.csv", "0,0.25,1,,0,0\n600,0,0,,0,0\n1200,0,0,,0,0\n"),
            (".DS_Store", "\0"),
        ],
    );
}

const HERE: [&str; 2] = ["--dataset-path", "m"];
const REPLAY: [&str; 3] = ["--dataset-path", "m", "--replay"];

fn arrivals_us(plan: &Value) -> Vec<i64> {
    let arrivals = plan["arrivals_ms"].as_array().unwrap();
    arrivals.iter().map(|ms| (ms.as_f64().unwrap() * 1e3).round() as i64).collect()
}

fn notes(plan: &Value) -> String {
    plan["workload"]["notes"].to_string()
}

#[test]
fn a_replay_has_the_rates_of_the_clients_and_says_what_it_lacks() {
    let workplace = Workplace::new();
    service(&workplace);
    let plan = dry(&workplace, &REPLAY).exits(0).json();
    let arrivals = arrivals_us(&plan);
    assert!(arrivals.is_sorted() && arrivals[0] == 0);
    assert!(*arrivals.last().unwrap() < 1_800_000_000);
    // Counts of renewal processes vary by CV² times their mean: 1200/1.5, 600 ×
    // 5 and 600. The band of 99.9 % is 3.29 standard deviations.
    let band = 3.29 * (800.0 + 3_000.0 + 600.0_f64).sqrt();
    assert!((arrivals.len() as f64 - EXPECTED).abs() < band, "{} arrivals", arrivals.len());
    assert_eq!((&plan["load_kind"], &plan["requests"]), (&json!("open"), &json!(arrivals.len())));
    let told = format!("servegen m: {} rows", arrivals.len());
    assert_eq!(plan["workload"]["source"], told);
    let notes = notes(&plan);
    for words in [
        "requests were drawn where 2400 are expected, of 2 clients in 1800 s of the trace",
        "left out, for want of chunk-N-trace.csv: client 4; nobody knows",
        "for want of chunk-N-dataset.json: client 9; the total lacks 150 requests, 5.9 %",
        "before their first lengths: client 2; the total lacks 300 requests, 11.1 %",
        "not taken from the files: reason_ratio",
        "--ignore-eos forces it",
    ] {
        assert!(notes.contains(words), "not said: {words}: {notes}");
    }
}

#[test]
fn the_seed_alone_decides_and_not_the_order_of_files() {
    let files = [
        ("chunk-1-trace.csv", TRACE_1),
        ("chunk-1-dataset.json", LENGTHS_1),
        ("chunk-2-trace.csv", TRACE_2),
        ("chunk-2-dataset.json", LENGTHS_2),
    ];
    let mut turned = files;
    turned.reverse();
    let plan = |files: &[(&str, &str)], more: &[&str]| {
        let workplace = Workplace::new();
        folder(&workplace, files);
        let plan = dry(&workplace, &[&REPLAY[..], more].concat()).exits(0).json();
        (plan["schedule_hash"].clone(), arrivals_us(&plan))
    };
    let (hash, arrivals) = plan(&files, &[]);
    assert_eq!(plan(&turned, &["--threads", "3"]), (hash, arrivals.clone()));
    assert_ne!(plan(&files, &["--seed", "5"]).1, arrivals);
}

#[test]
fn a_part_and_the_first_ones_are_those_of_the_whole() {
    let workplace = Workplace::new();
    service(&workplace);
    let plan = |more: &[&str]| {
        let plan = dry(&workplace, &[&REPLAY[..], more].concat()).exits(0).json();
        (arrivals_us(&plan), plan)
    };
    let (whole, _) = plan(&[]);
    let (first, told) = plan(&["-n", "50"]);
    assert_eq!(first, whole[..50]);
    assert!(notes(&told).contains("50 requests were drawn"), "{told}");
    // Fewer are expected of the silent time than of the others.
    let (part, told) = plan(&["--trace-window", "500s..1300s", "--trace-speed", "2"]);
    let speed = "cut to 8.3 min to 21.7 min of it, speed 2";
    assert!(told["load"].as_str().unwrap().ends_with(speed), "{told}");
    let gaps = |us: &[i64]| us.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let begins = whole.windows(part.len()).position(|found| {
        gaps(found).iter().zip(gaps(&part)).all(|(gap, half)| (gap - 2 * half).abs() <= 2)
    });
    assert!(begins.is_some_and(|begins| whole[begins] > 450_000_000), "{begins:?}");
    let (capped, told) = plan(&["-c", "3", "--duration", "60s"]);
    assert_eq!((&told["load_kind"], capped.len()), (&json!("capped"), capped.len()));
    assert!(capped == whole[..capped.len()] && whole[capped.len()] >= 60_000_000);
}

#[test]
fn requests_carry_the_lengths_and_the_label_of_their_client() {
    let (workplace, server) = (Workplace::new(), engine());
    service(&workplace);
    let start = ["bench", "--url", &server.url(), "--model", "m", "--out", "run"];
    let flags = ["--dataset-name", "servegen", "--trace-window", "1100s..1300s"];
    let more = ["--trace-speed", "1000", "--ignore-eos", "--tokenizer", "embedded"];
    let goal = ["--goodput", "e2el:60000", "--json", "s.json", "--allow-invalid"];
    workplace.run(&[&start, &REPLAY[..], &flags, &more, &goal].concat()).exits(0);
    let mut clients = BTreeSet::new();
    for row in workplace.export("run") {
        let client = row["labels"]["client"].as_str().unwrap().to_owned();
        let lengths = (row["planned_input_tokens"].as_u64(), row["output_tokens"].as_u64());
        match client.as_str() {
            "1" => assert_eq!(lengths, (Some(60), Some(5))),
            _ => assert_eq!(lengths, (Some(30), Some(4))),
        }
        clients.insert(client);
    }
    assert_eq!(clients, ["1", "2"].map(str::to_owned).into());
    let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    let tables = summary["goodput"]["per_label"].to_string();
    assert!(tables.contains("client"), "{tables}");
}

#[test]
fn without_a_replay_rows_are_lengths_in_proportion() {
    let workplace = Workplace::new();
    service(&workplace);
    let rate = ["--request-rate", "50", "-n", "40"];
    let plan = dry(&workplace, &[&HERE[..], &rate].concat()).exits(0).json();
    assert_eq!((&plan["requests"], &plan["load_kind"]), (&json!(40), &json!("open")));
    let said = notes(&plan);
    assert!(said.contains("40 pairs of lengths were drawn of 2 clients"), "{said}");
    assert!(said.contains("its times are not replayed; --replay does that"), "{said}");
    let again = dry(&workplace, &[&HERE[..], &rate].concat()).exits(0).json();
    assert_eq!(plan["schedule_hash"], again["schedule_hash"]);
    let plan = dry(&workplace, &HERE).exits(0).json();
    assert_eq!(plan["workload"]["source"], "servegen m: 10000 rows");
    let part = "a dataset-name=servegen dataset-path=m";
    let mixed = ["bench", "--dry-run", "--mix", part, "--request-rate", "5", "-n", "9"];
    workplace.run(&mixed).exits(0);
    let window = [&HERE[..], &["--trace-window", "1s..2s"]].concat();
    dry(&workplace, &window).exits(2).says(&["concerns a replay; add --replay"]);
}

#[test]
fn more_clients_than_a_label_has_values_share_one() {
    let workplace = Workplace::new();
    std::fs::create_dir(workplace.at("m")).unwrap();
    for client in 1..=101 {
        // The later ones send more.
        let trace = format!("0,{},1,,0,0\n", f64::from(client) / 1e3);
        workplace.file(&format!("m/chunk-{client}-trace.csv"), trace);
        let lists = r#"{"0": {"input_tokens": "{9: 1.0}", "output_tokens": "{3: 1.0}"}}"#;
        workplace.file(&format!("m/chunk-{client}-dataset.json"), lists);
    }
    let plan = dry(&workplace, &REPLAY).exits(0).json();
    let told = "the label client names the 99 clients that send most";
    assert!(notes(&plan).contains(told), "{plan}");
    std::fs::remove_file(workplace.at("m/chunk-50-trace.csv")).unwrap();
    let plan = dry(&workplace, &REPLAY).exits(0).json();
    assert!(!notes(&plan).contains("the label client"), "{plan}");
}

#[test]
fn too_many_requests_are_refused_with_the_arithmetic() {
    let workplace = Workplace::new();
    let trace = TRACE_1.replace("0,2,", "0,9000,");
    folder(
        &workplace,
        &[("chunk-1-trace.csv", trace.as_str()), ("chunk-1-dataset.json", LENGTHS_1)],
    );
    let told = dry(&workplace, &REPLAY).exits(2).says(&[
        "--replay: 3000.333 requests per second of 1 client over 1800 s are 5400600, and a \
         replay holds 1000000",
        "--trace-window 0s..100s, or the first ones with -n",
    ]);
    assert_eq!(told.errors().len(), 1);
    let part = dry(&workplace, &[&REPLAY[..], &["--trace-window", "0s..2s"]].concat());
    assert!(part.exits(0).json()["requests"].as_u64().unwrap() > 17_000);
    let first = dry(&workplace, &[&REPLAY[..], &["-n", "1000"]].concat()).exits(0).json();
    assert_eq!(first["requests"], 1_000);
}

#[test]
fn gaps_that_come_in_heaps_are_refused_or_come_to_nothing() {
    let workplace = Workplace::new();
    let trace = "0,1500,30,Weibull,0.05,1\n";
    folder(&workplace, &[("chunk-1-trace.csv", trace), ("chunk-1-dataset.json", LENGTHS_1)]);
    // Of the gaps of this shape nearly all are 0 and few are longer than the
    // trace; the seed says whether a heap falls into it.
    let heap = dry(&workplace, &[&REPLAY[..], &["--seed", "5"]].concat()).exits(2);
    heap.says(&["--replay: 900000 requests are expected, and far more were drawn"]);
    let nothing = dry(&workplace, &[&REPLAY[..], &["--seed", "0"]].concat()).exits(2);
    nothing.says(&["no request of m was drawn there, where 900000.000 are expected"]);
}

#[test]
fn what_is_no_folder_of_traces_is_told_in_a_sentence() {
    let lists = |list: &str| {
        format!(r#"{{"0": {{"input_tokens": "{list}", "output_tokens": "{{1: 1.0}}"}}}}"#)
    };
    let good = lists("{5: 1.0}");
    let cases: Vec<(&str, String, &str)> = vec![
        ("0,x,1,,0,0\n", good.clone(), "m/chunk-1-trace.csv: line 1, column 2 (rate): \"x\" is"),
        ("0,1,1,Pareto,2,1\n", good.clone(), "line 1, column 4 (distribution): \"Pareto\" is not"),
        ("600,1,1,,0,0\n0,1,1,,0,0\n", good.clone(), "line 2 goes back in time, from 600 s to 0"),
        ("", good.clone(), "m/chunk-1-trace.csv: the file is empty"),
        (
            "0,1,1,,0,0\n",
            lists("{5: -0.5}"),
            "m/chunk-1-dataset.json: window 0, input_tokens, entry 1",
        ),
        ("0,1,1,,0,0\n", lists("{5: nan}"), "\"5: nan\" is not a length with a share"),
        ("0,1,1,,0,0\n", lists("{5: 0.5}"), "the shares make 0.5 together and not 1"),
        (
            "0,1,1,,0,0\n",
            "{".to_owned(),
            "m/chunk-1-dataset.json: line 1: not an object of windows",
        ),
        (
            "0,1,1,,0,0\n",
            "version https://git-lfs.github.com/spec/v1\n".to_owned(),
            "it is a pointer of Git LFS and not the file itself; run git lfs pull",
        ),
        ("0,0,0,,0,0\n", good, "--dataset-path: nobody in m sends a request there"),
    ];
    for (trace, lists, words) in cases {
        let workplace = Workplace::new();
        folder(&workplace, &[("chunk-1-trace.csv", trace), ("chunk-1-dataset.json", &lists)]);
        for more in [&REPLAY[..], &HERE] {
            assert_eq!(dry(&workplace, more).exits(2).says(&[words]).errors().len(), 1, "{words}");
        }
    }
    let workplace = Workplace::new();
    folder(&workplace, &[("chunk-1-trace.csv", TRACE_1), ("notes.txt", "")]);
    let told = dry(&workplace, &REPLAY).exits(2);
    told.says(&["m has no client with both chunk-N-trace.csv", "such as data/language/m-large"]);
    let file = ["--dataset-path", "m/notes.txt", "--replay"];
    dry(&workplace, &file).exits(2).says(&["m/notes.txt is not a folder; give the folder of one"]);
}

#[test]
fn parts_of_the_trace_that_are_none_are_told() {
    let workplace = Workplace::new();
    service(&workplace);
    let told = |window: &str| {
        let told = dry(&workplace, &[&REPLAY[..], &["--trace-window", window]].concat()).exits(2);
        assert_eq!(told.errors().len(), 1, "{told:?}");
        told
    };
    told("30m..40m").says(&["--trace-window: begins after the trace of m, which lasts 1800 s"]);
    told("2h..").says(&["begins after the trace of m"]);
    told("40s..10s").says(&["FROM must be before TO"]);
    // Hardly anybody comes within a millisecond.
    told("600s..600.001s").says(&["--trace-window: no request of m was drawn there, where 0.001"]);
    // Several files with mistakes are several sentences.
    for client in 20..26 {
        workplace.file(&format!("m/chunk-{client}-trace.csv"), "no trace\n");
    }
    let told = dry(&workplace, &REPLAY).exits(2);
    let told = told.says(&["m/chunk-20-trace.csv: line 1 has 1 columns", "3 more files cannot"]);
    assert_eq!(told.errors().len(), 4);
}
