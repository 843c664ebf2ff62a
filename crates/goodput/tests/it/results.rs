//! Embeddings and rerank: one answer without tokens. What is sent, what has a
//! figure, what is refused.

use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::{engine, playing};

fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Told {
    let start = ["bench", "--url", url, "--model", "m", "--out", "run", "--allow-invalid"];
    workplace.run(&[&start[..], more].concat())
}

fn summary(workplace: &Workplace) -> Value {
    serde_json::from_str(&workplace.read("run/summary.json")).unwrap()
}

const EMBED: &[&str] = &["--backend", "openai-embeddings", "--isl", "30", "-n", "6", "-c", "2"];

#[test]
fn embeddings_have_a_latency_and_input_and_nothing_of_generation() {
    let (workplace, server) = (Workplace::new(), engine());
    let more = ["--random-batch-size", "4", "--goodput", "e2el:60000"];
    let told = bench(&workplace, &server.url(), &[EMBED, &more].concat()).exits(0);
    for request in server.requests() {
        assert_eq!(request.path(), "/v1/embeddings");
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["input"].as_array().unwrap().len(), 4);
        assert_eq!(body.as_object().unwrap().len(), 2, "model and input alone: {body}");
    }
    let summary = summary(&workplace);
    assert_eq!(summary["outcomes"]["ok"], 6, "{}", summary["outcomes"]);
    assert_eq!(summary["metrics"]["e2el_ms"]["n"], 6);
    assert_eq!(summary["tokens"]["input"], 6 * 4 * 30);
    assert!(summary["throughput"]["input_tok_s"].as_f64().unwrap() > 0.0);
    assert_eq!(summary["goodput"]["attainment"], 1.0);
    let why = "this kind of request generates no tokens";
    for key in ["ttft_ms", "ttfc_ms", "tpot_ms", "itl_ms", "icl_ms", "generation_ms", "osl"] {
        let named = format!("metrics.{key}");
        if summary["metrics"].get(key).is_some() {
            assert_eq!(summary["metrics"][key]["n"], 0, "{key}");
            assert_eq!(summary["absent"][&named], why, "{key}");
        }
    }
    assert_eq!(summary["throughput"]["output_tok_s"], Value::Null);
    assert_eq!(summary["absent"]["throughput.output_tok_s"], why);
    // Nothing is missing that should be there; a busy machine is another matter.
    let caveats = summary["caveats"].as_array().unwrap().iter().map(|caveat| &caveat["id"]);
    assert_eq!(caveats.filter(|id| *id != "client_bottleneck").count(), 0, "{summary}");
    let places = "once of the conditions, once of the lengths, once of the latencies";
    assert_eq!(told.out.matches(why).count(), 3, "{places}");
    assert!(!told.out.contains("TPOT P50"), "{}", told.out);
    // A run that a busy machine made INVALID begins with the reason alone.
    assert_eq!(told.out.contains("E2EL P99"), !told.out.contains("INVALID ·"), "{}", told.out);
    // The rows come back as they were.
    let rows = workplace.export("run");
    assert!(rows.iter().all(|row| row["outcome"] == "ok" && row["ttft_ms"].is_null()));
    assert!(rows.iter().all(|row| row["e2el_ms"].as_f64().unwrap() > 0.0));
    let again = workplace.run(&["report", "run"]).exits(0).out;
    assert_eq!(again.matches(why).count(), 3, "{again}");
}

#[test]
fn rerank_sends_a_query_with_documents_of_vllms_lengths() {
    let (workplace, server) = (Workplace::new(), engine());
    let more = ["--dataset-name", "random-rerank", "--backend", "vllm-rerank", "--isl", "101"];
    let more = [&more[..], &["--random-batch-size", "3", "-n", "4", "--tokenizer", "embedded"]];
    let flags = more.concat();
    bench(&workplace, &server.url(), &flags).exits(0);
    // Before the run the server is asked for its models and how it counts.
    let asked = server.requests().into_iter().filter(|request| request.path() == "/v1/rerank");
    let asked: Vec<_> = asked.collect();
    assert_eq!(asked.len(), 4);
    for request in asked {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(body["documents"].as_array().unwrap().len(), 3);
        assert!(body["query"].as_str().unwrap().len() > 100);
    }
    let first = summary(&workplace);
    assert_eq!(first["outcomes"]["ok"], 4);
    let said = first["workload"]["input_lengths"].as_str().unwrap().to_owned();
    assert!(said.starts_with("a query with 3 documents, each pair of 101 tokens"), "{said}");
    assert!(said.contains("exact by the tokenizer"), "{said}");
    // 49 of the query with 51 of each document.
    let rows = workplace.export("run");
    assert!(rows.iter().all(|row| row["outcome"] == "ok"));
    let apart = [&flags[..], &["--no-reranker", "--dry-run", "--json", "-"]].concat();
    let told = bench(&workplace, &server.url(), &apart).exits(0).json();
    let lengths = told["workload"]["input_lengths"].as_str().unwrap();
    assert!(lengths.starts_with("a query and 2 documents, each of 101 tokens"), "{lengths}");
}

#[test]
fn the_embedded_engine_embeds_and_ranks() {
    let workplace = Workplace::new();
    for more in [
        &["--backend", "openai-embeddings"][..],
        &["--backend", "openai-embeddings-chat"],
        &["--backend", "rerank", "--dataset-name", "random-rerank"],
    ] {
        let common = ["bench", "-n", "3", "-c", "1", "--isl", "60", "--json", "-"];
        let told = workplace.run(&[&common[..], &["--allow-invalid"], more].concat()).exits(0);
        let summary = told.json();
        assert_eq!(summary["outcomes"]["ok"], 3, "{more:?}");
        assert_eq!(summary["tokens"]["output"], Value::Null);
    }
}

#[test]
fn answers_of_another_number_or_form_are_failures() {
    let workplace = Workplace::new();
    let body = json!({"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 9}});
    let server = playing(fake::Script::json(200, &body));
    let more = ["--random-batch-size", "2"];
    bench(&workplace, &server.url(), &[EMBED, &more].concat()).exits(0);
    let told = summary(&workplace);
    assert_eq!(told["outcomes"]["by_kind"], json!({"malformed_event": 6}));
    let message = told["outcomes"]["messages"]["malformed_event"].as_str().unwrap();
    assert_eq!(message, "1 data came and 2 were asked for");
}

#[test]
fn what_such_an_answer_never_has_is_refused() {
    let workplace = Workplace::new();
    let refused = |more: &[&str]| {
        let start = ["bench", "--dry-run", "--url", "http://h", "--model", "m"];
        workplace.run(&[&start[..], more].concat()).exits(2)
    };
    let embed = |more: &[&str]| refused(&[&["--backend", "openai-embeddings"][..], more].concat());
    embed(&["--goodput", "ttft:300"]).says(&["--goodput", "ttft", "generates no tokens", "e2el"]);
    embed(&["--slo", "tpot <= 50ms"]).says(&["--slo", "tpot", "generates no tokens"]);
    embed(&["--temperature", "1"]).says(&["--temperature", "samples nothing"]);
    embed(&["--ignore-eos"]).says(&["--ignore-eos"]);
    embed(&["--no-reranker"]).says(&["random-rerank only"]);
    embed(&["--dataset-name", "random-rerank"]).says(&["needs an API that ranks"]);
    embed(&["--random-batch-size", "3000"]).says(&["from 1 to 2048 texts"]);
    embed(&["--dataset-name", "random-mm"]).says(&["takes no images", "openai-embeddings-chat"]);
    refused(&["--random-batch-size", "2"]).says(&["--random-batch-size", "openai-embeddings"]);
    refused(&["--backend", "rerank"]).says(&["--backend", "random-rerank"]);
    refused(&["--backend", "openai-audio"]).says(&["is not spoken", "custom_audio"]);
    let rank = ["--backend", "rerank", "--dataset-name", "random-rerank"];
    refused(&[&rank[..], &["--isl", "4"]].concat()).says(&["at least 6 tokens"]);
    refused(&[&rank[..], &["--no-reranker"]].concat()).says(&["counts the query too"]);
}
