//! `sim serve`: which engine serves, what it tells of itself, what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::program::Workplace;

/// A server under way.
pub(crate) struct Serving {
    child: Child,
    /// What it said when it was there.
    line: String,
}

impl Serving {
    pub(crate) fn start(workplace: &Workplace, more: &[&str]) -> Self {
        let mut command = workplace.command(&[&["sim", "serve", "--port", "0"], more].concat());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("listening on http://"), "{line}");
        Self { child, line }
    }

    pub(crate) fn url(&self) -> String {
        let rest = self.line.split("listening on ").nth(1).unwrap();
        rest.split([',', ';']).next().unwrap().to_owned()
    }

    /// Asks on a connection of its own, and gives the whole answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let url = self.url();
        let mut stream = TcpStream::connect(url.trim_start_matches("http://")).unwrap();
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
        stream
            .write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The value of the first sample of `/metrics` that begins so and has this
    /// label.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str, label: &str) -> f64 {
        let metrics = self.ask("GET", "/metrics", "");
        let is_it = |line: &&str| line.starts_with(name) && line.contains(label);
        let line = metrics.lines().find(is_it).unwrap_or_else(|| panic!("no {name}: {metrics}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub(crate) fn end(mut self) {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // After `end` it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_a_run_counted_is_what_the_served_model_tells_after_it() {
    let workplace = Workplace::new();
    let more = ["--ground-truth", "truth.jsonl", "--enable-per-request-metrics"];
    let serving = Serving::start(&workplace, &more);
    assert!(serving.line.contains("Llama 3.1 8B on 1 × "), "{}", serving.line);
    assert!(serving.line.contains("KV blocks of 16 tokens"), "{}", serving.line);
    let blocks: f64 = {
        let before = serving.line.split(" KV blocks").next().unwrap();
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let url = serving.url();
    let arguments = [
        "bench",
        &url,
        "-n",
        "30",
        "-c",
        "6",
        "--isl",
        "100",
        "--osl",
        "12",
        "--ignore-eos",
        "--shared-prefix-len",
        "64",
        "--allow-invalid",
        "--out",
        "run",
        "--json",
        "-",
    ];
    let summary = workplace.run(&arguments).exits(0).json();
    let tokens = &summary["tokens"];
    let told = |name: &str, label: &str| serving.metric(name, label);
    assert_eq!(summary["outcomes"]["ok"], 30);
    let near = |one: f64, other: &Value| assert!((one - other.as_f64().unwrap()).abs() < 0.5);
    near(told("vllm:prompt_tokens_total{", ""), &tokens["input"]);
    near(told("vllm:generation_tokens_total{", ""), &tokens["output"]);
    near(told("vllm:prompt_tokens_by_source_total{", "local_cache_hit"), &tokens["cached"]);
    assert!(tokens["cached"].as_u64().unwrap() > 0, "{tokens}");
    near(told("vllm:request_success_total{", "\"length\""), &30.into());
    near(told("vllm:e2e_request_latency_seconds_count{", ""), &30.into());
    near(told("vllm:num_requests_running{", ""), &0.into());
    assert!(
        (told("vllm:cache_config_info{", &format!("num_gpu_blocks=\"{blocks}\"")) - 1.0).abs()
            < 0.1
    );

    // What the client measured is what the server says, and what lies between
    // them: its own TTFT is a part of the client's.
    let server_ttft_s = told("vllm:time_to_first_token_seconds_sum{", "") / 30.0;
    let client_ttft_ms = summary["metrics"]["ttft_ms"]["mean"].as_f64().unwrap();
    assert!(server_ttft_s * 1e3 < client_ttft_ms + 1.0, "{server_ttft_s} {client_ttft_ms}");
    let rows = workplace.export("run");
    let timings = |row: &Value| row["server_timings"]["queue_time_ms"].as_f64();
    assert!(rows.iter().all(|row| timings(row).is_some()), "{:?}", rows[0]);

    assert!(serving.ask("POST", "/reset_prefix_cache", "").starts_with("HTTP/1.1 200 "));
    serving.end();
    let truths = wire::truth::decode(workplace.read("truth.jsonl").as_bytes()).unwrap();
    assert_eq!(truths.truths.len(), 30);
    assert!(truths.truths.iter().all(|truth| truth.token_ns.len() == 12));
}

/// One user asks one request after the other, so that what the model does with each
/// does not depend on how busy this machine is.
#[test]
fn several_answers_over_a_socket_and_in_virtual_time_are_the_same() {
    let workplace = Workplace::new();
    let serving = Serving::start(&workplace, &["--ground-truth", "truth.jsonl"]);
    let url = serving.url();
    let load = [
        "-n",
        "6",
        "-c",
        "1",
        "--isl",
        "100",
        "--osl",
        "8",
        "--ignore-eos",
        "--backend",
        "openai-chat",
        "--extra-body",
        r#"{"n": 3}"#,
        "--json",
        "-",
        "--out",
    ];
    let bench = ["bench", &url, "--allow-invalid"];
    let measured = workplace.run(&[&bench[..], &load, &["measured"]].concat()).exits(0).json();
    let simulated = workplace.run(&[&["sim", "run"][..], &load, &["simulated"]].concat());
    let simulated = simulated.exits(0).json();
    assert_eq!(serving.metric("vllm:request_params_n_sum{", "") as u32, 6 * 3);
    serving.end();
    for run in [&measured, &simulated] {
        assert_eq!(run["outcomes"]["ok"], 6);
        assert_eq!(run["tokens"]["output"], 6 * 3 * 8);
        assert_eq!(run["tokens"]["input"], 600);
        let (tpot, gaps) = (&run["metrics"]["tpot_ms"], &run["metrics"]["icl_ms"]);
        assert_eq!((&tpot["n"], &tpot["n_undefined"]), (&0.into(), &6.into()));
        assert_eq!(run["absent"]["metrics.tpot_ms"], "more than one choice shares the stream");
        assert_eq!(gaps["n"], 6 * 3 * 7);
    }
    let mut all = ["measured", "simulated"].map(|run| {
        let mut rows = workplace.export(run);
        rows.sort_by_key(|row| row["id"].as_u64());
        rows
    });
    for (measured, simulated) in all[0].iter().zip(&all[1]) {
        for key in [
            "output_tokens",
            "input_tokens",
            "cached_tokens",
            "tpot_ms",
            "finish_reason",
            "events",
            "output_chunks",
            "warnings",
        ] {
            assert_eq!(measured[key], simulated[key], "{key}");
        }
        assert_eq!(simulated["warnings"], serde_json::json!(["n_gt_1"]));
    }
    // Where the server meant tokens to be is where virtual time has them, to the
    // microsecond of the records.
    let truths = wire::truth::decode(workplace.read("truth.jsonl").as_bytes()).unwrap().truths;
    all[1].truncate(truths.len());
    for (truth, row) in truths.iter().zip(&all[1]) {
        let planned = truth.planned_token_ns.as_ref().unwrap();
        assert_eq!(planned.len(), 3 * 8);
        for (at_ns, key) in [(planned[0], "ttft_ms"), (planned[23], "e2el_ms")] {
            let (planned, simulated) = (at_ns as f64 / 1e6, row[key].as_f64().unwrap());
            assert!((planned - simulated).abs() < 0.003, "{key}: {planned}, {simulated}");
        }
    }
}

#[test]
fn a_bench_asks_the_served_model_for_its_tokenizer_and_its_context() {
    let workplace = Workplace::new();
    let serving =
        Serving::start(&workplace, &["--tokenizer", "embedded", "--set", "max_model_len=512"]);
    let url = serving.url();
    let start =
        ["bench", &url, "-n", "4", "--osl", "4", "--tokenizer", "server", "--allow-invalid"];
    let exact = [&start[..], &["--isl", "77", "--json", "-"]].concat();
    let summary = workplace.run(&exact).exits(0).json();
    assert_eq!(summary["tokens"]["input"], 4 * 77);
    let told = workplace.run(&[&start[..], &["--isl", "600"]].concat()).exits(2);
    told.says(&["512"]);
    serving.end();
}

#[test]
fn the_fixed_clock_serves_where_its_flags_are_given() {
    let workplace = Workplace::new();
    let serving = Serving::start(&workplace, &["--ttft", "1ms", "--token-interval", "1ms"]);
    assert!(serving.line.contains("; stop with Ctrl-C") && !serving.line.contains("KV blocks"));
    assert!(serving.ask("GET", "/metrics", "").starts_with("HTTP/1.1 404 "));
    serving.end();
}

#[test]
fn metrics_have_sglangs_names_where_they_are_asked_for() {
    let workplace = Workplace::new();
    let serving = Serving::start(&workplace, &["--metrics-profile", "sglang", "--model", "m"]);
    assert!((serving.metric("sglang:page_size{", "model_name=\"m\"") - 16.0).abs() < 0.1);
    let refused = serving.ask("POST", "/v1/completions", r#"{"model":"x","prompt":"a"}"#);
    assert!(refused.starts_with("HTTP/1.1 404 ") && refused.contains("does not exist"));
    serving.end();
}

#[test]
fn what_cannot_be_served_is_told_in_one_sentence() {
    let workplace = Workplace::new();
    let cases: &[(&[&str], &[&str])] = &[
        (&["--set", "max_num_seqs=0"], &["--set", "max_num_seqs", "\"0\"", "from 1"]),
        (&["--set", "max_num_seq=4"], &["--set", "max_num_seq", "max_num_seqs"]),
        (&["--set", "block_size"], &["--set", "NAME=VALUE"]),
        (&["--set", "model=none"], &["--set", "no model \"none\""]),
        (
            &["--set", "model=llama-3.1-70b"],
            &["does not fit on", "80.0 GB", "tensor_parallel_size"],
        ),
        (&["--set", "num_gpu_blocks_override=10"], &["max_model_len", "KV cache of 160 tokens"]),
        (&["--set", "tensor_parallel_size=3"], &["does not divide the 32 heads"]),
        (&["--set", "max_num_seqs=4", "--ttft", "1ms"], &["--set", "--ttft", "fixed clock"]),
        (
            &["--set", "max_num_seqs=4", "--max-num-seqs", "4"],
            &["--set", "--max-num-seqs", "--set max_num_seqs=N"],
        ),
        (&["--metrics-profile", "sglang", "--lockstep"], &["--metrics-profile", "--lockstep"]),
        (&["--enable-per-request-metrics", "--cases", "x"], &["--cases", "recorded answers"]),
        (&["--metrics-profile", "tgi"], &["--metrics-profile", "\"tgi\"", "vllm, sglang"]),
        (&["--tokenizer", "none"], &["--tokenizer", "none is no file"]),
        (&["--engine", "none.json"], &["--engine", "none.json"]),
        (&["--seed", "x"], &["--seed", "whole number"]),
        (&["--fault", "trunc"], &["--fault", "no fault \"trunc\"", "truncate, disconnect"]),
        (&["--fault", "truncate,when=3"], &["no key \"when\"", "after, share"]),
        (&["--fault", "stall", "--ttft", "1ms"], &["--fault", "--ttft", "fixed clock"]),
        (&["--faults-by-header", "--cases", "x"], &["--faults-by-header", "recorded answers"]),
        (&["--host", "localhost"], &["--host", "IP address"]),
    ];
    for (arguments, words) in cases {
        let told = workplace.run(&[&["sim", "serve", "--port", "0"], *arguments].concat()).exits(2);
        assert_eq!(told.errors().len(), 1, "{arguments:?}: {told:?}");
        told.says(words);
    }
    let all = ["sim", "serve", "--port", "x", "--seed", "y", "--set", "a", "--tokenizer", "none"];
    let told = workplace.run(&all).exits(2);
    assert_eq!(told.errors().len(), 4, "{told:?}");
}
