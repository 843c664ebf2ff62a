//! The preset `vllm-0.27` against what a real `vllm bench serve` 0.27.1 wrote.

use measure::definition::{Definition, Endpoint};
use measure::slo::Slo;
use measure::summary::{Summary, summarise};
use serde_json::Value;
use wire::foreign::vllm::{ImportError, import};

const COMPLETIONS: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/captures/vllm_completions_run/result.json"
));
const CHAT: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/captures/vllm_bench_result.json"
));

fn recomputed(bytes: &[u8], endpoint: Endpoint) -> (Summary, Value) {
    let mut import = import(bytes).unwrap();
    assert_eq!(import.facts.endpoint, endpoint);
    import.facts.slo = Some(Slo::parse_goodput(["ttft:300 tpot:60"]).unwrap());
    let definition = Definition::preset("vllm", endpoint).unwrap();
    (summarise(&import.records, &import.facts, &definition), serde_json::from_slice(bytes).unwrap())
}

fn near(name: &str, got: Option<f64>, file: &Value, key: &str, relative: f64) {
    let right = file[key].as_f64().unwrap_or_else(|| panic!("{key} is in the file"));
    let got = got.unwrap_or_else(|| panic!("{name} is undefined"));
    assert!(((got - right) / right).abs() <= relative, "{name}: {got}, the file has {right}");
}

fn check_metric(summary: &Summary, file: &Value, metric: &str, relative: f64) {
    let key = format!("{metric}_ms");
    let (_, figures) = summary.metrics.iter().find(|(name, _)| *name == key).unwrap();
    for (name, prefix) in [
        ("mean", "mean"),
        ("std", "std"),
        ("p50", "median"),
        ("p50", "p50"),
        ("p95", "p95"),
        ("p99", "p99"),
    ] {
        near(&key, figures.figure(name), file, &format!("{prefix}_{metric}_ms"), relative);
    }
    if file.get(format!("p90_{metric}_ms")).is_some() {
        near(&key, figures.figure("p90"), file, &format!("p90_{metric}_ms"), relative);
    }
}

fn check_counts_and_rates(summary: &Summary, file: &Value) {
    assert_eq!(file["completed"], summary.outcomes.ok);
    assert_eq!(file["failed"], summary.outcomes.failed);
    assert_eq!(file["total_input_tokens"], summary.tokens.input.unwrap());
    assert_eq!(file["total_output_tokens"], summary.tokens.output.unwrap());
    let rates = &summary.throughput;
    near("req/s", rates.req_s, file, "request_throughput", 1e-9);
    near("output", rates.output_tok_s, file, "output_throughput", 1e-9);
    near("total", rates.total_tok_s, file, "total_token_throughput", 1e-9);
    let peaks = summary.peaks.unwrap();
    assert_eq!(file["max_output_tokens_per_s"], peaks.max_output_tokens_per_s);
    assert_eq!(file["max_concurrent_requests"], peaks.max_concurrent_requests);
}

#[test]
fn completions_run_recomputes_from_its_rows() {
    let (summary, file) = recomputed(COMPLETIONS, Endpoint::Completions);
    check_counts_and_rates(&summary, &file);
    check_metric(&summary, &file, "ttft", 1e-9);
    check_metric(&summary, &file, "itl", 1e-9);
    check_metric(&summary, &file, "tpot", 1e-5);
    check_metric(&summary, &file, "e2el", 1e-5);
    near("goodput", summary.goodput.as_ref().unwrap().req_s, &file, "request_goodput", 1e-9);
    assert!(summary.facts.as_reported.is_empty(), "nothing that can be recomputed is echoed");
}

#[test]
fn chat_run_takes_tpot_and_e2el_as_reported() {
    let (summary, file) = recomputed(CHAT, Endpoint::Chat);
    check_counts_and_rates(&summary, &file);
    check_metric(&summary, &file, "ttft", 1e-9);
    check_metric(&summary, &file, "itl", 1e-9);
    assert!(summary.caveats.iter().any(|caveat| caveat.id == "latency_not_in_file"));
    let reported = |key: &str| {
        summary.facts.as_reported.iter().find(|(name, _)| name == key).map(|(_, value)| *value)
    };
    assert_eq!(reported("mean_tpot_ms"), file["mean_tpot_ms"].as_f64());
    assert_eq!(reported("p99_e2el_ms"), file["p99_e2el_ms"].as_f64());
    assert_eq!(reported("mean_ttft_ms"), None);
    let (_, e2el) = summary.metrics.iter().find(|(key, _)| *key == "e2el_ms").unwrap();
    assert_eq!(e2el.n, 0, "an E2EL that the file does not hold is not made up");
}

#[test]
fn other_files_are_refused_with_the_reason() {
    assert!(matches!(import(b"{"), Err(ImportError::NotJson { line: 1, .. })));
    assert_eq!(import(b"{}"), Err(ImportError::NotVllm { key: "duration" }));
    assert_eq!(import(b"[1]"), Err(ImportError::NotVllm { key: "duration" }));
    let short = br#"{"duration":1,"completed":2,"ttfts":[1,2],"itls":[[]]}"#;
    assert_eq!(import(short), Err(ImportError::Lengths { array: "itls", found: 1, expected: 2 }));
}

#[test]
fn r01_a_file_with_nan_and_infinity_is_read() {
    let file = include_bytes!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/cases/results/R01_nan_inf.json"
    ));
    let import = import(file).unwrap();
    assert!(import.notes.iter().any(|note| note.contains("NaN")));
    assert!(import.facts.as_reported.iter().all(|(key, _)| key != "mean_tpot_ms"));
}
