//! What can be done with a run afterwards: report, export, import, runs.

use serde_json::Value;

use crate::program::{Told, Workplace};
use crate::servers::{engine, stream};

/// A workplace with one run of eight requests in `runs/`, and its id.
fn with_run() -> (Workplace, String) {
    let (workplace, server) = (Workplace::new(), engine());
    let told = workplace.bench(
        &server.url(),
        &["-n", "8", "-c", "2", "--osl", "5", "--goodput", "ttft:300", "tpot:60", "--json", "-"],
    );
    let id = told.exits(0).json()["run_id"].as_str().unwrap().to_owned();
    (workplace, id)
}

#[test]
fn a_report_from_the_directory_is_the_report_of_the_run() {
    let (workplace, id) = with_run();
    let kept: Value =
        serde_json::from_str(&workplace.read(&format!("runs/{id}/summary.json"))).unwrap();
    for name in [format!("runs/{id}"), id.clone(), id[..12].to_owned(), "latest".to_owned()] {
        let told = workplace.run(&["report", &name, "--json", "-"]).exits(0);
        assert_eq!(told.json(), kept, "{name}");
    }
    let told = workplace.run(&["report", "latest"]).exits(0);
    assert!(told.out.contains(&id) && told.out.contains("Latencies"));
}

#[test]
fn a_report_can_be_judged_anew() {
    let (workplace, _) = with_run();
    let told = workplace.run(&["report", "latest", "--goodput", "ttft:1", "--json", "-"]).exits(0);
    assert_eq!(told.json()["goodput"]["good"], 0);
    assert_eq!(told.json()["goodput"]["of"], 8);
    let told = workplace.run(&["report", "latest", "--fail-if", "ttft.p50 > 1ms"]).exits(99);
    told.says(&["ttft.p50"]);
    workplace.run(&["report", "latest", "--definitions", "x"]).exits(2).says(&["vllm-0.27"]);
}

#[test]
fn a_report_speaks_chinese_when_asked_and_its_json_stays_english() {
    let (workplace, _) = with_run();
    let english = workplace.run(&["report", "latest", "--json", "-"]).exits(0).json();
    let rule = ["--fail-if", "ttft.p50 > 0ms"];
    let words = ["report", "latest", "--lang", "zh", "--json", "zh.json", rule[0], rule[1]];
    let told = workplace.run(&words).exits(99).says(&["未通过"]);
    for part in ["指标口径", "负载情况", "达标率", "有效吞吐"] {
        assert!(told.out.contains(part), "{part} in {}", told.out);
    }
    let kept: Value = serde_json::from_str(&workplace.read("zh.json")).unwrap();
    assert_eq!(kept, english);
}

#[test]
fn a_run_can_be_told_under_vllms_definitions() {
    let (workplace, _) = with_run();
    let own = workplace.run(&["report", "latest", "--json", "-"]).exits(0).json();
    let vllm = workplace.run(&["report", "latest", "--definitions", "vllm", "--json", "-"]);
    let vllm = vllm.exits(0).json();
    assert_eq!(vllm["definitions"]["name"], "vllm-0.27");
    assert_ne!(own["definitions"]["ttft"], vllm["definitions"]["ttft"]);
    assert_eq!(vllm["metrics"]["ttft_ms"]["n"], 8);
    assert!(vllm["peaks"]["max_concurrent_requests"].as_u64().unwrap() >= 1);
    assert_eq!(own["outcomes"], vllm["outcomes"]);
}

#[test]
fn an_exported_row_adds_up() {
    let (workplace, _) = with_run();
    let rows = workplace.export("latest");
    assert_eq!(rows.len(), 8);
    for (place, row) in rows.iter().enumerate() {
        let ms = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} in {row}"));
        assert_eq!(row["id"], place);
        assert_eq!(row["outcome"], "ok");
        assert_eq!((&row["output_tokens"], &row["tokens_source"]), (&5.into(), &"usage".into()));
        let gaps: f64 = row["icl_ms"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
        assert_eq!(row["icl_ms"].as_array().unwrap().len(), 4);
        let sum = ms("ttft_ms") + gaps + ms("finish_lag_ms");
        assert_eq!((sum * 1_000.0).round(), (ms("e2el_ms") * 1_000.0).round(), "{row}");
        assert!(ms("intended_at_ms") <= ms("sent_at_ms") && ms("sent_at_ms") <= ms("ended_at_ms"));
        for key in [
            "labels",
            "kind",
            "status",
            "ttfc_ms",
            "tpot_ms",
            "input_tokens",
            "reasoning_tokens",
            "cached_tokens",
            "finish_reason",
            "ttft_event",
            "events",
            "output_chunks",
            "text",
            "server_timings",
            "reconnects",
            "warnings",
        ] {
            assert!(row.get(key).is_some(), "no {key}");
        }
    }
    let told = workplace.run(&["export", "latest", "--to", "rows.txt"]).exits(2);
    told.says(&["--to", ".jsonl", ".csv"]);
}

#[test]
fn texts_are_kept_when_asked_for_and_only_then() {
    let workplace = Workplace::new();
    let server = crate::servers::playing(stream(&["Grüße ", "世界"], 1));
    workplace.bench(&server.url(), &["-n", "1", "--out", "with", "--save-text"]).exits(0);
    workplace.bench(&server.url(), &["-n", "1", "--out", "without"]).exits(0);
    assert_eq!(workplace.export("with")[0]["text"], "Grüße 世界");
    assert!(workplace.export("without")[0]["text"].is_null());
}

/// The recorded run of a real vLLM.
const RESULT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/captures/vllm_completions_run/result.json"
);

#[track_caller]
fn near(found: &Value, expected: &Value, tolerance: f64) {
    let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
    let off = (found - expected).abs() / expected.abs();
    assert!(off <= tolerance, "{found} instead of {expected}");
}

/// `--out` is a place to write; that a word like `latest` also names a run to
/// read must not send the import into that run.
#[test]
fn an_import_stays_in_the_directory_that_was_made_for_it() {
    let workplace = Workplace::new();
    workplace.run(&["import", RESULT]).exits(0);
    let before = workplace.run(&["report", "latest", "--json", "-"]).exits(0).json();
    workplace.run(&["import", RESULT, "--out", "latest"]).exits(0);
    for name in ["run.json", "summary.json"] {
        assert!(workplace.at("latest").join(name).exists(), "no {name}");
    }
    let newest = before["run_id"].as_str().unwrap();
    let after = workplace.run(&["report", newest, "--json", "-"]).exits(0).json();
    assert_eq!(before, after);
}

#[test]
fn a_file_of_aggregates_is_imported_with_what_it_reports() {
    let workplace = Workplace::new();
    let mut result: Value = serde_json::from_slice(&std::fs::read(RESULT).unwrap()).unwrap();
    let lists = ["ttfts", "itls", "start_times", "input_lens", "output_lens", "generated_texts"];
    for key in lists.iter().chain(&["errors"]) {
        result.as_object_mut().unwrap().remove(*key);
    }
    let file = workplace.file("aggregates.json", result.to_string());
    workplace.run(&["import", file, "--out", "imported"]).exits(0).says(&["aggregates only"]);
    let summary: Value = serde_json::from_str(&workplace.read("imported/summary.json")).unwrap();
    assert_eq!(summary["as_reported"]["mean_ttft_ms"], result["mean_ttft_ms"]);
    assert!(summary["metrics"]["ttft_ms"]["mean"].is_null());
    workplace.run(&["report", "imported"]).exits(0);
}

#[test]
fn vllms_own_result_file_gives_vllms_own_figures() {
    let workplace = Workplace::new();
    workplace.run(&["import", RESULT, "--out", "imported"]).exits(0);
    let told = workplace.run(&[
        "report",
        "imported",
        "--definitions",
        "vllm",
        "--goodput",
        "ttft:300",
        "tpot:60",
        "--json",
        "-",
    ]);
    let summary = told.exits(0).json();
    let file: Value = serde_json::from_slice(&std::fs::read(RESULT).unwrap()).unwrap();
    // TTFT and ITL are in the file and must come out to the last digits; TPOT
    // and E2EL are computed from them, which is right to about 2e-6 of a
    // second, since vLLM reads its clock twice at the first token.
    for (metric, name, tolerance) in [
        ("ttft_ms", "ttft", 1e-9),
        ("itl_ms", "itl", 1e-9),
        ("tpot_ms", "tpot", 1e-3),
        ("e2el_ms", "e2el", 1e-3),
    ] {
        for (ours, theirs) in [
            ("mean", "mean"),
            ("p50", "median"),
            ("std", "std"),
            ("p90", "p90"),
            ("p95", "p95"),
            ("p99", "p99"),
        ] {
            near(
                &summary["metrics"][metric][ours],
                &file[format!("{theirs}_{name}_ms")],
                tolerance,
            );
        }
    }
    near(&summary["throughput"]["req_s"], &file["request_throughput"], 1e-9);
    near(&summary["throughput"]["output_tok_s"], &file["output_throughput"], 1e-9);
    near(&summary["throughput"]["total_tok_s"], &file["total_token_throughput"], 1e-9);
    near(&summary["goodput"]["req_s"], &file["request_goodput"], 1e-9);
    assert_eq!(summary["outcomes"]["ok"], file["completed"]);
    assert_eq!(summary["tokens"]["output"], file["total_output_tokens"]);
    assert_eq!(summary["tokens"]["input"], file["total_input_tokens"]);
    near(&summary["peaks"]["max_output_tokens_per_s"], &file["max_output_tokens_per_s"], 1e-9);
    near(&summary["peaks"]["max_concurrent_requests"], &file["max_concurrent_requests"], 1e-9);
}

#[test]
fn what_is_no_result_file_is_refused() {
    let workplace = Workplace::new();
    let other = workplace.file("other.json", "{\"hello\": 1}");
    let told = workplace.run(&["import", other]).exits(2).says(&["other.json"]);
    assert_eq!(told.errors().len(), 1);
    let broken = workplace.file("broken.json", "{\"ttfts\": [");
    workplace.run(&["import", broken]).exits(2).says(&["broken.json"]);
    workplace.run(&["import", "missing.json"]).exits(2).says(&["missing.json", "check the path"]);
    assert!(!workplace.at("runs").exists(), "a refused import leaves no run");
}

#[test]
fn runs_are_listed_and_moved_to_the_trash() {
    let (workplace, id) = with_run();
    let told = workplace.run(&["runs", "ls"]).exits(0);
    assert_eq!(told.out.lines().count(), 1);
    for word in [id.as_str(), "/v1/chat/completions", "closed", " 8 ok "] {
        assert!(told.out.contains(word), "{}", told.out);
    }
    workplace.run(&["runs", "rm", &id[..10]]).exits(0);
    assert!(workplace.at("runs/.trash").join(&id).exists(), "a removal can be undone");
    let told = workplace.run(&["runs", "ls"]).exits(0).says(&["no runs yet"]);
    assert_eq!(told.out, "");
    workplace.run(&["report", "latest"]).exits(2).says(&["no run in"]);
}

#[test]
fn runs_live_where_they_are_told_to() {
    let (workplace, server) = (Workplace::new(), engine());
    for _ in 0..2 {
        let told =
            workplace.bench(&server.url(), &["-n", "2", "--osl", "2", "--runs-dir", "there"]);
        told.exits(0);
    }
    let told = workplace.run(&["runs", "ls", "--runs-dir", "there"]).exits(0);
    assert_eq!(told.out.lines().count(), 2);
    // All ids of this century begin with 0.
    let told = workplace.run(&["report", "0", "--runs-dir", "there"]).exits(2);
    told.says(&["beginning of several runs"]);
    workplace.run(&["report", "latest", "--runs-dir", "there"]).exits(0);
    let newest = workplace.run(&["runs", "ls", "--runs-dir", "there"]).out;
    let newest = newest.split_whitespace().next().unwrap().to_owned();
    let told = workplace.run(&["report", "latest", "--runs-dir", "there", "--json", "-"]);
    assert_eq!(told.exits(0).json()["run_id"], newest.as_str());
    workplace.run(&["report", "zzz", "--runs-dir", "there"]).exits(2).says(&["no run \"zzz\""]);
}

#[test]
fn the_manifest_keeps_what_explains_the_run() {
    let (workplace, server) = (Workplace::new(), engine());
    let mut command = workplace.command(&[
        "bench",
        "--url",
        &server.url(),
        "--model",
        "m",
        "-n",
        "3",
        "--isl",
        "8",
        "--out",
        "run",
        "--allow-invalid",
    ]);
    command.env("GOODPUT_OSL", "4");
    Told::of(command.output().unwrap()).exits(0);
    let manifest: Value = serde_json::from_str(&workplace.read("run/run.json")).unwrap();
    let text = manifest.to_string();
    for word in ["num-prompts", "command line", "environment", "goodput 0.", "schedule_hash"] {
        assert!(text.contains(word), "no {word} in {text}");
    }
}
