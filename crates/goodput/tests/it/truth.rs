//! Errors of the client against a server's own clock.

use std::time::Duration;

use fake::{Config, EngineConfig, Server};

use crate::program::Workplace;

#[test]
fn errors_against_the_servers_own_clock_are_printed() {
    let engine = EngineConfig {
        ttft: Duration::from_millis(20),
        ttft_per_prompt_token: Duration::ZERO,
        token_interval: Duration::from_millis(20),
        ..EngineConfig::default()
    };
    let server = Server::start(Config { engine, ..Config::default() }).unwrap();
    let workplace = Workplace::new();
    let arguments = ["-n", "20", "-c", "20", "--osl", "20", "--ignore-eos", "--out", "run"];
    workplace.bench(&server.url(), &arguments).exits(0);
    let truths = server.stop().truths;
    assert_eq!(truths.len(), 20);
    let lines: Vec<u8> = truths.iter().flat_map(wire::truth::encode_line).collect();
    let file = workplace.file("truth.jsonl", lines);
    let told = workplace.run(&["report", "run", "--ground-truth", file]).exits(0);
    assert!(told.out.contains("20 requests joined, 0 not"), "{}", told.out);
    for (name, count) in [("TTFT", 20), ("gaps", 20 * 19), ("absolute", 20 * 20)] {
        let tail = told.out.split("ground truth").nth(1).unwrap();
        let line = tail.lines().find(|line| line.trim().starts_with(name)).unwrap();
        assert!(line.contains(&format!("n {count},")), "{line}");
        let mean = line.split("mean ").nth(1).unwrap().split(',').next().unwrap();
        let mean_us: f64 = mean.trim().parse().unwrap();
        // Loose: it proves the joining; how good the client is is measured
        // elsewhere, on a quiet machine.
        assert!(mean_us.abs() < 20_000.0, "{line}");
    }
}

#[test]
fn a_truth_log_that_is_missing_or_no_truth_costs_no_result() {
    let (workplace, server) = (Workplace::new(), crate::servers::engine());
    let wrong = workplace.file("wrong.jsonl", "{\"id\": 3}\nnonsense\n");
    for file in [wrong, "missing.jsonl"] {
        let arguments = ["-n", "2", "--osl", "2", "--ground-truth", file, "--json", "-"];
        let told = workplace.bench(&server.url(), &arguments).exits(2).says(&[file]);
        assert_eq!(told.json()["outcomes"]["ok"], 2);
    }
}
