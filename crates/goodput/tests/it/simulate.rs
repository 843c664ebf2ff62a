//! The engine model: runs in virtual time, fits, what if, and what is refused.

use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::modelled;

/// A short run whose load is drawn from seed 4.
const RUN: [&str; 12] = [
    "sim",
    "run",
    "--seed",
    "4",
    "--isl",
    "300",
    "--osl",
    "24",
    "--request-rate",
    "20",
    "-n",
    "60",
];

fn simulated(workplace: &Workplace, more: &[&str]) -> Value {
    let told = workplace.run(&[&RUN[..], &["--json", "-"], more].concat());
    assert_eq!(told.code, Some(0), "{}", told.err);
    serde_json::from_str(&told.out).unwrap()
}

fn refused(workplace: &Workplace, arguments: &[&str]) -> String {
    let told: Told = workplace.run(&[&["sim"], arguments].concat());
    assert_eq!(told.code, Some(2), "{}", told.err);
    told.err
}

fn rows(workplace: &Workplace, run: &Value) -> Vec<u8> {
    let folder = workplace.at("runs").join(run["run_id"].as_str().unwrap());
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "parquet"));
    std::fs::read(file.unwrap()).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_says_simulated() {
    let workplace = Workplace::new();
    let (first, second) = (simulated(&workplace, &[]), simulated(&workplace, &[]));
    assert_eq!(rows(&workplace, &first), rows(&workplace, &second));
    let other = simulated(&workplace, &["--seed", "5"]);
    assert_ne!(rows(&workplace, &first), rows(&workplace, &other));
    assert_eq!(first["simulated"], true);
    assert_eq!(first["engine"], "goodput engine model: Llama 3.1 8B on NVIDIA H100 SXM");
    assert_eq!(first["outcomes"]["ok"], 60);
    assert_eq!(first["validity"]["verdict"], "VALID");
    let report = workplace.run(&["report", first["run_id"].as_str().unwrap()]);
    assert!(report.out.contains("SIMULATED"), "{}", report.out);
}

#[test]
fn a_simulated_load_is_the_one_that_bench_would_make() {
    let workplace = Workplace::new();
    let dry = |start: &[&str]| -> Value {
        let told = workplace.run(&[start, &RUN[2..], &["--dry-run", "--json", "-"]].concat());
        serde_json::from_str(&told.out).unwrap()
    };
    let (bench, sim) = (dry(&["bench"]), dry(&["sim", "run"]));
    assert_eq!(bench["schedule_hash"], sim["schedule_hash"]);
    assert_eq!(bench["arrivals_ms"], sim["arrivals_ms"]);
    let run = simulated(&workplace, &[]);
    let manifest = workplace.at("runs").join(run["run_id"].as_str().unwrap()).join("run.json");
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["facts"]["load"]["schedule_hash"], sim["schedule_hash"]);
    assert_eq!(manifest["argv"][1], "sim");
}

#[test]
fn settings_that_cannot_be_are_refused_with_the_arithmetic() {
    let workplace = Workplace::new();
    let set = |setting: &str| refused(&workplace, &["run", "--set", setting]);
    assert!(set("max_num_seq=4").contains("near ones are max_num_seqs"));
    assert!(set("model=llama-3.1-9b").contains("llama-3.1-8b"));
    assert!(set("accelerator=h300").contains("h100"));
    assert!(set("max_num_seqs=0").contains("is not a whole number from 1"));
    assert!(set("seats").contains("write NAME=VALUE"));
    let weights = set("model=llama-3.1-70b");
    assert!(weights.contains("80.0 GB × 0.92 = 73.6 GB"), "{weights}");
    assert!(weights.contains("141.1 GB"), "{weights}");
    let context = set("num_gpu_blocks_override=100");
    assert!(context.contains("max_model_len 131072"), "{context}");
    assert!(context.contains("1600 tokens (100 blocks of 16)"), "{context}");
    let budget = set("max_num_batched_tokens=8");
    assert!(budget.contains("less than one block of block_size 16"), "{budget}");
    let shards = set("tensor_parallel_size=3");
    assert!(shards.contains("does not divide the 32 heads"), "{shards}");
    let address = refused(&workplace, &["run", "--url", "http://127.0.0.1:1"]);
    assert!(address.contains("sim run has no target"), "{address}");
    let set = workplace.run(&["bench", "http://127.0.0.1:1", "--set", "max_num_seqs=4"]);
    assert_eq!(set.code, Some(2));
    assert!(set.err.contains("an address was given"), "{}", set.err);
}

/// Keys of a summary that a run without rows has otherwise: its name, words
/// about it, and what is concluded from single requests.
const OTHERWISE: &[&str] = &[
    "run_id",
    "caveats",
    "absent",
    "slices",
    "findings",
    "lints",
    "stages_ms",
    "stages",
    "efficiency",
];

/// What needs the gaps of each request by itself.
const OF_GAPS: &[&str] = &["stall_ms", "stall_share", "reader_stall_ms", "tokens_per_chunk"];

/// Every figure of a run without rows is that of the same run with rows, within
/// a thousandth, or the reason why it is absent is said.
fn agrees(path: &str, exact: &Value, counted: &Value, absent: &Value) {
    match (exact, counted) {
        (Value::Object(exact), Value::Object(counted)) => {
            for (key, value) in exact {
                let is_of_gaps = OF_GAPS.contains(&key.as_str());
                if is_of_gaps || (path.is_empty() && OTHERWISE.contains(&key.as_str())) {
                    continue;
                }
                let path = format!("{path}/{key}");
                agrees(&path, value, counted.get(key).unwrap_or(&Value::Null), absent);
            }
        }
        (Value::Array(exact), Value::Array(counted)) => {
            assert_eq!(exact.len(), counted.len(), "{path}");
            let all = exact.iter().zip(counted).enumerate();
            all.for_each(|(k, (a, b))| agrees(&format!("{path}/{k}"), a, b, absent));
        }
        (Value::Number(exact), Value::Number(counted)) => {
            let (a, b) = (exact.as_f64().unwrap(), counted.as_f64().unwrap());
            assert!((a - b).abs() <= 0.001 * a.abs() + 1e-9, "{path}: {a} and {b}");
        }
        (exact, Value::Null) if !exact.is_null() => {
            let key = path.trim_start_matches('/').replace('/', ".");
            let is_said = |known: &String| key == *known || key.starts_with(&format!("{known}."));
            let said = absent.as_object().unwrap();
            assert!(said.keys().any(is_said), "{path} is missing and nothing says why: {said:?}");
        }
        (exact, counted) => assert_eq!(exact, counted, "{path}"),
    }
}

#[test]
fn a_run_without_rows_has_the_figures_of_one_with_rows() {
    let workplace = Workplace::new();
    let loads: [&[&str]; 4] = [
        &["--goodput", "ttft:200", "tpot:10"],
        &["-c", "6", "--osl", "64", "-n", "300", "--goodput", "ttft:60"],
        &[
            "--request-rate",
            "60",
            "-n",
            "600",
            "--request-timeout",
            "3s",
            "--set",
            "max_num_seqs=4",
        ],
        &["--request-rate", "90", "-n", "600", "-c", "40", "--isl", "normal:mean=300,std=90"],
    ];
    for load in loads {
        let load = [load, &["--allow-invalid"]].concat();
        let exact = simulated(&workplace, &load);
        let counted = simulated(&workplace, &[&load[..], &["--no-events"]].concat());
        agrees("", &exact, &counted, &counted["absent"]);
        let ids = counted["caveats"].as_array().unwrap().iter().map(|caveat| &caveat["id"]);
        assert!(ids.into_iter().any(|id| id == "counted_in_bins"), "{load:?}");
        let again = simulated(&workplace, &[&load[..], &["--no-events"]].concat());
        for key in ["metrics", "service_metrics", "goodput", "load", "steady"] {
            assert_eq!(again[key], counted[key], "the same seed gives the same figures");
        }
    }
}

#[test]
fn a_run_without_rows_says_so_where_rows_are_needed() {
    let workplace = Workplace::new();
    let run = simulated(&workplace, &["--no-events", "--markdown", "report.md"]);
    let id = run["run_id"].as_str().unwrap();
    let folder = workplace.at("runs").join(id);
    let mut files: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, ["run.json", "summary.json"]);
    for command in [&["report", id][..], &["export", id, "--to", "x.jsonl"], &["sim", "fit", id]] {
        let told = workplace.run(command);
        assert_eq!(told.code, Some(2), "{command:?}: {}", told.err);
        assert!(told.err.contains("kept no rows (--no-events)"), "{}", told.err);
        assert!(told.err.contains("summary.json"), "{}", told.err);
    }
    let summary: Value =
        serde_json::from_slice(&std::fs::read(folder.join("summary.json")).unwrap()).unwrap();
    assert_eq!(summary["metrics"], run["metrics"]);
    for (flag, why) in [(["--csv", "x.csv"], "--csv"), (["--definitions", "vllm"], "--definitions")]
    {
        let told = refused(&workplace, &[&["run", "--no-events"], &flag[..]].concat());
        assert!(told.contains("--no-events") && told.contains(why), "{told}");
    }
}

#[test]
fn a_prompt_beyond_the_context_is_a_failure_that_names_the_lengths() {
    let workplace = Workplace::new();
    let rows: String =
        [40, 4000].map(|words| format!("{{\"prompt\": \"{}\"}}\n", "word ".repeat(words))).concat();
    workplace.file("rows.jsonl", rows);
    let run = simulated(
        &workplace,
        &[
            "--dataset-name",
            "custom",
            "--dataset-path",
            "rows.jsonl",
            "--custom-output-len",
            "24",
            "--set",
            "max_model_len=1000",
            "--oversample",
            "--allow-invalid",
        ],
    );
    assert_eq!(run["outcomes"]["ok"], 30);
    assert_eq!(run["outcomes"]["by_kind"]["http_status"], 30);
}

/// The latest run under other settings, as JSON.
fn like_latest(workplace: &Workplace, more: &[&str]) -> Value {
    let like = ["sim", "run", "--like", "latest", "--json", "-"];
    let told = workplace.run(&[&like[..], more].concat());
    assert_eq!(told.code, Some(0), "{}", told.err);
    serde_json::from_str(&told.out).unwrap()
}

/// Under its own settings the model gives what was measured of it.
fn model_repeats_the_latest(workplace: &Workplace) {
    for figure in like_latest(workplace, &[])["figures"].as_array().unwrap() {
        assert!(figure["measured"].is_null() || figure["measured"] == figure["model"], "{figure}");
    }
}

#[test]
fn what_if_finds_the_run_itself_and_says_what_changes() {
    let workplace = Workplace::new();
    simulated(&workplace, &["--set", "max_num_seqs=2", "--shared-prefix-len", "200"]);
    let set = ["--set", "max_num_seqs=64", "--gpu-price-per-hour", "3.6"];
    let what_if = like_latest(&workplace, &set);
    assert_eq!(what_if["notes"], serde_json::json!([]));
    let figure = |key: &str| {
        let figures = what_if["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["key"] == key).unwrap().clone()
    };
    for key in ["ttft_ms.p50", "tpot_ms.p99", "icl_ms.p99", "output_tok_s"] {
        assert_eq!(figure(key)["measured"], figure(key)["model"], "{key}");
    }
    let ttft = figure("ttft_ms.p99");
    assert!(ttft["changed"].as_f64() < ttft["model"].as_f64(), "{ttft}");
    // 1 accelerator at 3.6 an hour is 0.001 a second.
    let (cost, rate) = (figure("cost_per_million_output_tokens"), figure("output_tok_s"));
    let expected = 1e6 * 0.001 / rate["changed"].as_f64().unwrap();
    assert!((cost["changed"].as_f64().unwrap() / expected - 1.0).abs() < 1e-9);
}

#[test]
fn a_fit_is_written_and_taken_and_a_bad_one_refused() {
    let workplace = Workplace::new();
    let slow = ["--set", "compute_efficiency=0.3", "--set", "step_overhead_us=2000"];
    simulated(&workplace, &slow);
    let fit = workplace.run(&[
        "sim",
        "fit",
        "latest",
        "--only",
        "compute_efficiency,step_overhead_us",
        "--to",
        "engine.json",
        "--json",
        "-",
    ]);
    assert_eq!(fit.code, Some(0), "{}", fit.err);
    let found: Value = serde_json::from_str(&fit.out).unwrap();
    let value = |place: usize| found["settings"][place]["value"].as_f64().unwrap();
    assert!((value(0) / 0.3 - 1.0).abs() < 0.1, "{found}");
    assert!((value(1) / 2000.0 - 1.0).abs() < 0.1, "{found}");
    let again = simulated(&workplace, &["--engine", "engine.json"]);
    let slow = simulated(&workplace, &slow);
    let ttft = |run: &Value| run["metrics"]["ttft_ms"]["mean"].as_f64().unwrap();
    assert!((ttft(&again) / ttft(&slow) - 1.0).abs() < 0.02);
    // Only a limit is moved that explains nothing.
    let bad = workplace.run(&[
        "sim",
        "fit",
        "latest",
        "--only",
        "frontend_token_us",
        "--set",
        "compute_efficiency=1",
        "--set",
        "memory_efficiency=1",
        "--to",
        "bad.json",
    ]);
    assert_eq!(bad.code, Some(4), "{}", bad.err);
    assert!(bad.err.contains("does not describe these runs"), "{}", bad.err);
    assert!(!workplace.at("bad.json").exists());
    let other = refused(&workplace, &["run", "--engine", "bad.json"]);
    assert!(other.contains("bad.json"), "{other}");
}

/// A fit of the latest run: its table, and its JSON.
fn fitted(workplace: &Workplace) -> (String, Value) {
    let fit = ["sim", "fit", "latest", "--only", "compute_efficiency,frontend_overhead_us"];
    let table = workplace.run(&fit);
    let json = workplace.run(&[&fit[..], &["--json", "-"]].concat());
    (table.out, serde_json::from_str(&json.out).unwrap())
}

#[test]
fn a_fit_takes_what_the_server_says_of_itself() {
    let workplace = Workplace::with_metrics();
    let set = ["--set", "frontend_overhead_us=9000", "--network", "80ms"];
    simulated(&workplace, &[&set[..], &["-c", "1", "-n", "40", "--request-rate", "inf"]].concat());
    let (table, json) = fitted(&workplace);
    for part in
        ["the server says front end 9.", "queue ", "prefill ", "80.0 ms of TTFT pass outside of it"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    for row in ["front end + queue, ms", "prefill, ms"] {
        assert!(table.contains(row), "{row}: {table}");
    }
    let front_end = &json["settings"][1];
    assert!((front_end["value"].as_f64().unwrap() / 9_000.0 - 1.0).abs() < 0.03, "{front_end}");
    assert_eq!(front_end["determined"], true);
    let run = &json["runs"][0];
    assert_eq!(run["server_left_out"], Value::Null);
    let server = |key: &str| run["server"][key].as_f64().unwrap();
    // By tokens and on the way out it takes a little more.
    assert!((9.0..10.0).contains(&server("front_end_ms")), "{run}");
    assert!((server("outside_ms") - 80.0).abs() < 0.01, "{run}");
    let measured = |key: &str| run["measured"][key].as_f64().unwrap();
    let waited = server("front_end_ms") + server("queue_ms");
    assert!((measured("front_end_and_queue_ms") - waited).abs() < 1e-6, "{run}");
    assert_eq!(measured("prefill_ms"), server("prefill_ms"));
}

/// A short run against the engine model as a server, which says nothing in its
/// answers.
fn served(workplace: &Workplace, more: impl Fn(&str) -> Vec<String>) {
    let server = modelled();
    let load = ["-n", "40", "-c", "4", "--osl", "8", "--allow-invalid"].map(str::to_owned);
    let url = server.url();
    let arguments = [vec!["bench".to_owned(), url.clone()], load.to_vec(), more(&url)].concat();
    let told = workplace.run(&arguments);
    assert_eq!(told.code, Some(0), "{}", told.err);
}

#[test]
fn a_fit_without_the_servers_own_figures_says_so() {
    let workplace = Workplace::with_metrics();
    served(&workplace, |_| vec!["--no-metrics".to_owned()]);
    let unread = "the server's metrics were not read";
    let (table, json) = fitted(&workplace);
    assert!(table.contains(unread), "{table}");
    assert!(table.contains("fitted by its client records alone"), "{table}");
    assert!(!table.contains("front end + queue"), "{table}");
    assert_eq!(json["runs"][0]["server"], Value::Null);
    assert!(json["runs"][0]["server_left_out"].as_str().unwrap().contains(unread), "{json}");
    assert_eq!(json["outside_ms"], Value::Null);
    // Answers of the model in virtual time bring its timings, but not its TTFT.
    simulated(&workplace, &["--no-metrics"]);
    let (table, json) = fitted(&workplace);
    assert!(table.contains("not its own TTFT") && table.contains("prefill, ms"), "{table}");
    assert!(!table.contains("front end + queue"), "{table}");
    assert!(json["runs"][0]["server"]["prefill_ms"].is_number(), "{json}");
    assert_eq!(json["runs"][0]["server"]["outside_ms"], Value::Null);
}

#[test]
fn a_fit_leaves_out_metrics_of_others_requests() {
    let workplace = Workplace::with_metrics();
    // Every request is counted at two addresses, of which one would be of others.
    served(&workplace, |url| vec!["--metrics-url".to_owned(), format!("{url}/metrics?other")]);
    let (table, json) = fitted(&workplace);
    let others = "50 % of the requests that the server counted are not of this run";
    assert!(table.contains(others) && table.contains("client records alone"), "{table}");
    assert_eq!(json["runs"][0]["server"], Value::Null);
    assert_eq!(json["runs"][0]["measured"]["prefill_ms"], Value::Null);
}

#[test]
fn what_if_takes_the_way_to_a_server_as_the_fit_found_it() {
    let workplace = Workplace::with_metrics();
    let fitted = |outside: &str| {
        let text = format!(
            "{{\"format_version\": 1, \"written_by\": \"a test\", \"settings\": []{outside}}}"
        );
        workplace.file("engine.json", text);
        let what_if = like_latest(&workplace, &["--engine", "engine.json"]);
        let figures = what_if["figures"].as_array().unwrap();
        let ttft = figures.iter().find(|figure| figure["key"] == "ttft_ms.mean").unwrap();
        (ttft["model"].as_f64().unwrap(), what_if["notes"].to_string())
    };
    served(&workplace, |_| ["--no-metrics", "-c", "1"].map(str::to_owned).to_vec());
    // An engine whose front end holds all of it has no way besides.
    let (near, notes) = fitted("");
    assert_eq!(notes, "[]");
    let (far, notes) = fitted(", \"outside_ms\": 12.0");
    assert!((far - near - 12.0).abs() < 0.01, "{near} and {far}");
    assert!(notes.contains("12.0 ms of TTFT pass outside"), "{notes}");
    assert!(notes.contains("as in the runs that the engine was fitted to"), "{notes}");
}

#[test]
fn a_way_to_the_engine_is_in_the_latencies_and_played_again() {
    let workplace = Workplace::new();
    let near = simulated(&workplace, &[]);
    let far = simulated(&workplace, &["--network", "80ms"]);
    let ttft = |run: &Value| run["metrics"]["ttft_ms"]["p50"].as_f64().unwrap();
    assert!((ttft(&far) - ttft(&near) - 80.0).abs() < 0.01, "{} and {}", ttft(&near), ttft(&far));
    model_repeats_the_latest(&workplace);
    for flag in [&["--network", "80ms"][..], &["--no-events"]] {
        let told = workplace.run(&[&["bench"], flag].concat());
        assert_eq!(told.code, Some(2));
        assert!(told.err.contains("is for goodput sim run"), "{}", told.err);
    }
}

#[test]
fn a_warm_run_finds_its_prefix_from_the_first_request_on() {
    let workplace = Workplace::new();
    let shared = ["--shared-prefix-len", "1600", "--prefix-cache"];
    let share = |regime: &str| {
        let run = simulated(&workplace, &[&shared[..], &[regime]].concat());
        assert_eq!(run["workload"]["cache_regime"], regime);
        run["tokens"]["cached"].as_f64().unwrap() / run["tokens"]["input"].as_f64().unwrap()
    };
    let (warm, cold) = (share("warm"), share("cold"));
    assert!((warm - 1600.0 / 1900.0).abs() < 1e-9, "{warm}");
    assert!(cold < warm && cold > 0.7, "{cold}");
}

#[test]
fn what_a_model_cannot_heed_is_refused_by_name() {
    let workplace = Workplace::new();
    let told = refused(&workplace, &["run", "--max-errors", "3", "--save-text"]);
    assert!(told.contains("--max-errors") && told.contains("--save-text"), "{told}");
    let told = refused(&workplace, &["run", "--no-events", "--slo", "icl.p99 <= 50ms"]);
    assert!(told.contains("keeps no gaps of a request"), "{told}");
    let told = refused(&workplace, &["run", "--isl", "5000", "--set", "max_model_len=4000"]);
    assert!(told.contains("the context of 4000 tokens of the engine model"), "{told}");
    simulated(&workplace, &[]);
    let told = refused(&workplace, &["run", "--like", "latest", "--isl", "20", "--html", "x.html"]);
    assert!(told.contains("--isl") && told.contains("--html"), "{told}");
    let told = refused(&workplace, &["fit", "latest", "--only", "max_num_seqs"]);
    assert!(told.contains("--only: max_num_seqs is no time or rate"), "{told}");
    let told = refused(&workplace, &["run", "--set", "replicas=1000000"]);
    assert!(told.contains("from 1 to 1024"), "{told}");
    let blocks = refused(&workplace, &["run", "--set", "num_gpu_blocks_override=90000000"]);
    assert!(blocks.contains("are more than the 33554432 that are modelled"), "{blocks}");
}

#[test]
fn several_answers_are_played_again_and_what_a_server_would_refuse_is_told() {
    let workplace = Workplace::new();
    let asking = |number: &str| -> Value {
        simulated(&workplace, &["--extra-body", &format!("{{\"n\": {number}}}")])
    };
    let run = asking("4");
    assert_eq!(run["tokens"]["output"], 60 * 4 * 24);
    let one = asking("1");
    assert_eq!(one["tokens"]["input"], run["tokens"]["input"]);
    assert_eq!(one["tokens"]["output"], 60 * 24);
    asking("4");
    model_repeats_the_latest(&workplace);
    let told = refused(&workplace, &["fit", "latest"]);
    assert!(told.contains("asked for several answers"), "{told}");
    for (number, rule) in
        [("0", "from 1 to 128, got 0"), ("\"x\"", "a whole number"), ("200", "got 200")]
    {
        let body = format!("{{\"n\": {number}}}");
        let told = refused(&workplace, &["run", "--extra-body", &body]);
        assert!(told.contains("--extra-body") && told.contains(rule), "{told}");
    }
    let greedy = ["run", "--extra-body", r#"{"n": 2}"#, "--temperature", "0"];
    let told = refused(&workplace, &greedy);
    assert!(told.contains("greedy sampling"), "{told}");
}

#[test]
fn a_run_is_played_again_under_what_the_environment_set() {
    let workplace = Workplace::new();
    let mut command = workplace.command(&RUN);
    let told = Told::of(command.env("GOODPUT_SET", "max_num_seqs=1").output().unwrap());
    assert_eq!(told.code, Some(0), "{}", told.err);
    model_repeats_the_latest(&workplace);
}

#[test]
fn every_setting_is_listed_with_its_default() {
    let workplace = Workplace::new();
    let told = workplace.run(&["sim", "settings", "--json", "-"]);
    let list: Value = serde_json::from_str(&told.out).unwrap();
    for setting in list["settings"].as_array().unwrap() {
        let (name, default) =
            (setting["name"].as_str().unwrap(), setting["default"].as_str().unwrap());
        // What is shown can be typed.
        let set = format!("{name}={default}");
        let told = workplace.run(&["sim", "run", "--dry-run", "--set", &set]);
        assert_eq!(told.code, Some(0), "{set}: {}", told.err);
    }
}
