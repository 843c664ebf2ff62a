//! Exit codes, one by one.

use std::sync::mpsc::channel;
use std::time::Duration;

use fake::{Request, Script, Server};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::program::{Told, Workplace};
use crate::servers::{closed_port, engine, event, playing, refusing, slow_engine, stream, text};

#[test]
fn a_good_run_is_0_and_keeps_its_directory() {
    let (workplace, server) = (Workplace::new(), slow_engine());
    workplace.judged_bench(&server.url(), &["-n", "2", "--osl", "2"]).exits(0);
    assert_eq!(std::fs::read_dir(workplace.at("runs")).unwrap().count(), 1);
}

#[test]
fn usage_is_2_and_names_flag_and_allowed_values() {
    let workplace = Workplace::new();
    for (arguments, words) in [
        (&["--prefix-cache", "hot"][..], &["--prefix-cache", "cold, none, warm, as-is"][..]),
        (&["--token-counts", "never"], &["--token-counts", "final, continuous"]),
        (&["--backend", "grpc"], &["--backend", "openai-chat", "anthropic", "triton"]),
        (&["--definitions", "llmperf"], &["--definitions", "goodput", "vllm-0.27"]),
        (
            &["--dataset-name", "poems"],
            &["--dataset-name", "random, random-mm, random-rerank, prefix_repetition, sharegpt"],
        ),
        (&["--request-rate", "fast"], &["--request-rate", "fast"]),
        (&["--request-rate", "0"], &["--request-rate", "greater than 0"]),
        (&["--request-rate", "-3"], &["--request-rate", "greater than 0"]),
        (&["-n", "2.5"], &["--num-prompts", "whole number"]),
        (&["-n", "0"], &["--num-prompts", "at least 1"]),
        (&["-c", "0"], &["--max-concurrency", "at least 1"]),
        (&["--duration", "5 parsecs"], &["--duration", "5m"]),
        (&["--goodput", "speed:3"], &["--goodput", "ttft", "tpot", "e2el"]),
        (&["--goodput", "ttft:nan"], &["--goodput", "nan"]),
        (&["--fail-if", "ttft.p99"], &["--fail-if"]),
        (&["--fail-if", "attainment < 0.9"], &["--fail-if", "--goodput"]),
        (&["--percentile-metrics", "ttft,speed"], &["--percentile-metrics", "speed", "itl"]),
        (&["--metric-percentiles", "101"], &["--metric-percentiles", "0 to 100"]),
        (&["--extra-body", "[1]"], &["--extra-body", "JSON object"]),
        (&["--header", "no separator"], &["--header", "NAME=VALUE"]),
        (&["--threads", "0"], &["--threads", "1 to 256"]),
        (&["--url", "localhost:8000"], &["--url", "http://"]),
        (&["--url", "ftp://h/"], &["--url", "http"]),
        (&["--no-such-flag"], &["--no-such-flag"]),
        (&["--request-rat", "3"], &["--request-rat", "--request-rate"]),
    ] {
        let told = workplace.run(&[&["bench"], arguments].concat()).exits(2).says(words);
        assert_eq!(told.out, "", "{arguments:?}");
    }
    assert!(!workplace.at("runs").exists(), "a wrong command leaves no run");
}

#[test]
fn two_mistakes_are_both_named() {
    let workplace = Workplace::new();
    let told =
        workplace.run(&["bench", "--prefix-cache", "hot", "--seed", "x", "--url", "http://h"]);
    let told = told.exits(2).says(&["--prefix-cache", "--seed"]);
    assert_eq!(told.errors().len(), 2, "{}", told.err);
}

#[test]
fn flags_of_vllm_that_are_refused_give_their_reason() {
    let workplace = Workplace::new();
    for (flag, reason) in
        [("--tokenizer-mode", "tokenizer"), ("--ramp-up-strategy", "ramp"), ("--hf_subset", "hub")]
    {
        workplace.run(&["bench", flag, "1"]).exits(2).says(&[&flag.replace('_', "-"), reason]);
    }
    let told = workplace.run(&["bench", "--profile", "--append-result"]).exits(2);
    assert_eq!(told.errors().len(), 2);
}

#[test]
fn an_unreachable_target_is_3_with_one_sentence() {
    let workplace = Workplace::new();
    let url = closed_port();
    let told = workplace.bench(&url, &["-n", "20", "--json", "s.json", "--out", "run"]).exits(3);
    let host = url.strip_prefix("http://").unwrap();
    let sentences: Vec<&str> =
        told.err.lines().filter(|line| line.contains("refused") && line.contains(host)).collect();
    assert_eq!(sentences.len(), 1, "{}", told.err);
    assert!(sentences[0].contains("connect") && sentences[0].contains("port"), "{sentences:?}");
    let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    assert_eq!(summary["outcomes"]["ok"], 0);
    assert_eq!(
        summary["outcomes"]["failed"].as_u64().unwrap()
            + summary["outcomes"]["cancelled"].as_u64().unwrap(),
        20
    );
    // Nothing was received, so nothing was stamped in user space either.
    assert_eq!(summary["validity"]["stamp_source"], "none");
    assert!(!summary["caveats"].to_string().contains("user_stamps"));
    assert!(workplace.at("run/run.json").exists());
    // Without a model the list of models is asked for first.
    let told = workplace.run(&["bench", &url]).exits(3).says(&["/v1/models"]);
    assert_eq!(told.errors().len(), 1, "{}", told.err);
}

#[test]
fn five_equal_refusals_are_3_and_the_key_is_not_shown() {
    let (workplace, server) = (Workplace::new(), refusing(401, "Incorrect API key: sk-0123456789"));
    let mut command = workplace.command(&[
        "bench",
        "--url",
        &server.url(),
        "--model",
        "m",
        "-n",
        "300",
        "-c",
        "1",
        "--isl",
        "8",
        "--json",
        "-",
    ]);
    command.env("OPENAI_API_KEY", "sk-0123456789");
    let told = Told::of(command.output().unwrap()).exits(3).says(&["401", "key"]);
    assert!(!format!("{told:?}").contains("0123456789"));
    let seen = server.requests();
    assert!((5..200).contains(&seen.len()), "{} requests were sent", seen.len());
    assert_eq!(seen[0].header("authorization"), Some("Bearer sk-0123456789"));
    // The stop may have found one more request under way.
    let refused = told.json()["outcomes"]["by_status"]["401"].as_u64().unwrap() as usize;
    assert!(seen.len() - refused <= 1, "{refused} of {} were counted", seen.len());
}

#[test]
fn a_run_of_failures_is_4_with_a_full_report_and_no_zero_latency() {
    let (workplace, server) = (Workplace::new(), refusing(500, "out of memory"));
    let arguments = ["-n", "8", "-c", "2", "--json", "-", "--out", "run"];
    let told = workplace.judged_bench(&server.url(), &arguments);
    let told = told.exits(4).says(&["INVALID", "out of memory", "http_status", "Latencies"]);
    let summary = told.json();
    assert_eq!(summary["outcomes"]["failed"], 8);
    assert_eq!(summary["outcomes"]["by_kind"]["http_status"], 8);
    assert_eq!(summary["outcomes"]["by_status"]["500"], 8);
    assert_eq!(summary["validity"]["verdict"], "INVALID");
    for metric in ["ttft_ms", "tpot_ms", "e2el_ms", "icl_ms"] {
        let figures = &summary["metrics"][metric];
        assert_eq!(figures["n"], 0, "{metric}");
        assert!(figures["mean"].is_null() && figures["p99"].is_null(), "{metric}");
    }
    let all = &summary["all_requests_metrics"]["ttft_ms"];
    assert!(all["p50"].is_null() && all["unbounded"].as_array().unwrap().len() > 3, "{all}");
    for row in workplace.export("run") {
        assert!(row["ttft_ms"].is_null() && row["e2el_ms"].is_null());
        assert_eq!(row["message"], "out of memory");
    }
}

#[test]
fn an_allowed_invalid_run_is_0() {
    let (workplace, server) = (Workplace::new(), refusing(500, "broken"));
    workplace.judged_bench(&server.url(), &["-n", "3", "--allow-invalid"]).exits(0);
}

#[test]
fn a_missed_threshold_is_99_and_4_wins_over_it() {
    let (workplace, server) = (Workplace::new(), engine());
    let bench =
        |rule: &str| workplace.bench(&server.url(), &["-n", "3", "--osl", "2", "--fail-if", rule]);
    bench("ttft.p99 > 10s").exits(0);
    bench("ttft.p50 > 1ms").exits(99).says(&["ttft.p50 > 1ms"]);
    bench("error_rate > 0.5").exits(0);
    let broken = refusing(500, "broken");
    let rule = ["-n", "3", "--fail-if", "error_rate > 0.5"];
    workplace.judged_bench(&broken.url(), &rule).exits(4);
    workplace.bench(&broken.url(), &rule).exits(99).says(&["error_rate"]);
}

/// Answers of five tokens, whatever was asked for.
fn short_answers() -> Server {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5}});
    let mut script = Script::new().chunked_head(0, 200, "text/event-stream");
    for place in 0..5 {
        script = script.chunk(600 + 2 * place, text("word "));
    }
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]});
    let end = format!("{}{}data: [DONE]\n\n", event(&finish), event(&usage));
    playing(script.chunk(610, end).last_chunk(610))
}

#[test]
fn a_degraded_run_is_0_and_4_when_strict() {
    let (workplace, server) = (Workplace::new(), short_answers());
    let arguments = ["-n", "8", "-c", "8", "--osl", "50", "--ignore-eos", "--json", "-"];
    let told = workplace.judged_bench(&server.url(), &arguments).exits(0);
    let summary = told.json();
    assert_eq!(summary["validity"]["verdict"], "DEGRADED", "{}", summary["validity"]);
    let reasons = summary["validity"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|reason| reason["text"].as_str().unwrap().len() > 20));
    workplace.judged_bench(&server.url(), &[&arguments[..], &["--strict"]].concat()).exits(4);
}

#[test]
fn an_interrupt_is_130_with_records_and_report() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let workplace = Workplace::new();
        let (arrived, arrival) = channel();
        let server = Server::start_scripted(move |request: &Request| {
            let _ = arrived.send(request.target.clone());
            Script::new().chunked_head(0, 200, "text/event-stream").chunk(0, text("one")).stall(1)
        })
        .unwrap();
        let mut command = workplace
            .bench_command(&server.url(), &["-n", "40", "-c", "4", "--json", "-", "--out", "run"]);
        let piped = std::process::Stdio::piped;
        let child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
        for _ in 0..4 {
            arrival.recv_timeout(Duration::from_secs(20)).expect("four users ask");
        }
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let told = Told::of(child.wait_with_output().unwrap()).exits(130);
        let told = told.says(&["run directory", "Latencies"]);
        let summary = told.json();
        assert_eq!(summary["outcomes"]["cancelled"], 40);
        let ids: Vec<&str> = summary["caveats"]
            .as_array()
            .unwrap()
            .iter()
            .map(|caveat| caveat["id"].as_str().unwrap())
            .collect();
        assert!(ids.contains(&"interrupted"), "{ids:?}");
        let rows = workplace.export("run");
        assert_eq!(rows.len(), 40);
        assert!(rows.iter().all(|row| row["outcome"] == "cancelled"));
        assert_eq!(rows.iter().filter(|row| row["sent_at_ms"].is_number()).count(), 4);
        workplace.run(&["report", "run"]).exits(0);
    }
}

#[test]
fn an_interrupted_open_loop_keeps_what_ended_before() {
    let workplace = Workplace::new();
    let (arrived, arrival) = channel();
    let server = Server::start_scripted(move |_: &Request| {
        let _ = arrived.send(());
        stream(&["one", "two"], 2)
    })
    .unwrap();
    let mut command = workplace.command(&[
        "bench",
        "--url",
        &server.url(),
        "--model",
        "m",
        "--prompt",
        "hi",
        "--request-rate",
        "50",
        "--duration",
        "60",
        "--out",
        "run",
    ]);
    let piped = std::process::Stdio::piped;
    let child = command.stdout(piped()).stderr(piped()).spawn().unwrap();
    for _ in 0..10 {
        arrival.recv_timeout(Duration::from_secs(20)).expect("requests come");
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let told = Told::of(child.wait_with_output().unwrap()).exits(130);
    assert!(told.out.contains("run directory"));
    let rows = workplace.export("run");
    let ok = rows.iter().filter(|row| row["outcome"] == "ok").count();
    assert!((8..200).contains(&ok), "{ok} ended before");
    assert!(rows.len() > 2_000, "every arrival of the plan has its row");
}
