//! The five questions of seed 000, asked of the binary as a user would: each has
//! to be answered by what it prints.

use fake::{Request, Script, Server};
use serde_json::Value;

use crate::program::Workplace;
use crate::serving::Serving;

/// A run of the engine model in virtual time, and its summary.
fn simulated(workplace: &Workplace, arguments: &[&str]) -> Value {
    let run = ["sim", "run", "--seed", "3", "--json", "-"];
    workplace.run(&[&run, arguments].concat()).exits(0).json()
}

/// A prompt of 2000 tokens, 300 of an answer, TTFT 0.3 s, TPOT 30 ms: E2EL?
#[test]
fn the_first_what_the_latencies_are_and_what_they_add_up_to() {
    let workplace = Workplace::new();
    let told = workplace.run(&["explain", "e2el"]).exits(0).out;
    assert!(told.contains("300 ms + 299 × 30.0 ms = 9.27 s") && told.contains("97 %"), "{told}");
    for word in ["ttft", "tpot", "itl"] {
        workplace.run(&["explain", word]).exits(0);
    }
}

/// 5 000 tok/s and a P99 TTFT of 8 s: goodput in tokens a second says how good.
#[test]
fn the_second_throughput_beside_late_first_tokens_is_held_to_an_objective() {
    let workplace = Workplace::new();
    let load = ["-c", "800", "-n", "2400", "--isl", "512", "--osl", "128"];
    let told = simulated(&workplace, &[&load[..], &["--goodput", "ttft:1000", "tpot:50"]].concat());
    let ttft_p99 = told["metrics"]["ttft_ms"]["p99"].as_f64().unwrap();
    let all = told["throughput"]["output_tok_s"].as_f64().unwrap();
    let good = told["goodput"]["tok_s"].as_f64().unwrap();
    assert!(all > 5_000.0 && ttft_p99 > 8_000.0, "{all} tok/s, {ttft_p99} ms");
    assert!(good < 0.2 * all, "{good} of {all}");
    let text = workplace.run(&["report", "latest"]).exits(0).out;
    assert!(text.contains("goodput") && text.contains("tok/s"), "{text}");
}

/// TTFT goes up and TPOT does not: the wait is before decode, and the four things
/// to look at stand in the finding.
#[test]
fn the_third_late_first_tokens_with_steady_decode_are_a_queue() {
    let workplace = Workplace::with_metrics();
    let load = ["--isl", "512", "--osl", "64", "-n", "300", "--set", "max_num_seqs=8"];
    let calm = simulated(&workplace, &[&load[..], &["--request-rate", "4"]].concat());
    let busy = simulated(&workplace, &[&load[..], &["--request-rate", "16"]].concat());
    let mean = |told: &Value, key: &str| told["metrics"][key]["mean"].as_f64().unwrap();
    assert!(mean(&busy, "ttft_ms") > 5.0 * mean(&calm, "ttft_ms"), "TTFT goes up");
    assert!(mean(&busy, "tpot_ms") < 1.3 * mean(&calm, "tpot_ms"), "TPOT does not");
    let first = &busy["findings"][0];
    assert_eq!(first["rule"], "seat_limit", "{}", busy["findings"]);
    // Lines are broken anywhere between words.
    let text = workplace.run(&["diagnose", "latest"]).exits(0).out;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "waiting, mean",
        "running while others wait",
        "seats",
        "KV usage while others wait",
        "preemptions a request",
        "longest prompts to compute, P99",
        "token budget of a step",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
}

/// A GPU that is busy 95 % of the time at an MFU of a few percent: no contradiction.
#[test]
fn the_fourth_a_busy_device_with_little_arithmetic_is_no_contradiction() {
    let workplace = Workplace::with_metrics();
    let serving = Serving::start(&workplace, &[]);
    let told = "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 95\n";
    let answer = move |_: &Request| Script::whole(200, "text/plain", told);
    let exporter = Server::start_scripted(answer).unwrap();
    let device = exporter.url();
    let engine = format!("{}/metrics", serving.url());
    let told =
        workplace.judged_bench(
            &serving.url(),
            &[
                &[
                    "--metrics-url",
                    &engine,
                    "--metrics-url",
                    &device,
                    "--metrics-interval",
                    "200ms",
                ][..],
                &[
                    "--model-shape",
                    "llama-3.1-8b",
                    "--accelerator",
                    "h100",
                    "--topology",
                    "1",
                    "--allow-invalid",
                ],
                &["-c", "8", "-n", "24", "--osl", "64", "--json", "s.json"],
            ]
            .concat(),
        );
    told.exits(0);
    let summary: Value = serde_json::from_str(&workplace.read("s.json")).unwrap();
    let figure =
        |key: &str| summary["efficiency"][key].as_f64().unwrap_or_else(|| panic!("no {key}"));
    assert!((figure("gpu_utilisation") - 0.95).abs() < 1e-9);
    let (mfu, mbu, over) = (figure("mfu"), figure("mbu"), figure("step_over_bound"));
    assert!(mfu < 0.1 && mbu > mfu && over > 1.0, "MFU {mfu}, MBU {mbu}, {over} over the bound");
    // Memory is what decode is limited by: nothing here speaks against the device.
    let against = ["host_bound", "busy_but_useless"];
    let findings = summary["findings"].to_string();
    assert!(!against.iter().any(|rule| findings.contains(rule)), "{findings}");
    let text = workplace.run(&["report", "latest"]).exits(0).out;
    for part in ["MFU", "MBU", "step over bound", "GPU utilisation"] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    serving.end();
}

/// Lengths, arrivals and the state of the prefix cache stand beside every headline,
/// and runs that differ in one get that said.
#[test]
fn the_fifth_figures_of_other_conditions_are_not_compared() {
    let workplace = Workplace::new();
    let base = ["-n", "60", "--isl", "256", "--osl", "32", "--request-rate", "4"];
    let first = simulated(&workplace, &base);
    let id = |told: &Value| told["run_id"].as_str().unwrap().to_owned();
    let changes: &[(&[&str], &str)] = &[
        (&["--isl", "512"], "prompt lengths asked for"),
        (&["--osl", "64"], "output lengths asked for"),
        (&["--request-rate", "6"], "requests a second asked for"),
        (&["--prefix-cache", "none"], "state of the prefix cache"),
    ];
    for (change, condition) in changes {
        let mut arguments = base.to_vec();
        let place = arguments.iter().position(|word| word == &change[0]);
        match place {
            Some(place) => arguments[place + 1] = change[1],
            None => arguments.extend(*change),
        }
        let other = simulated(&workplace, &arguments);
        let page = workplace.run(&["report", &id(&first), &id(&other)]).exits(0).out;
        assert_eq!(page.matches("conditions: ").count(), 2, "{page}");
        assert!(page.contains(condition) && page.contains("not comparable"), "{condition}: {page}");
    }
    let again = simulated(&workplace, &base);
    let page = workplace.run(&["report", &id(&first), &id(&again)]).exits(0).out;
    assert!(!page.contains("not comparable"), "{page}");
}
