//! The command line of the seed text, with only the program's name changed.

use std::process::Command;

use crate::program::Workplace;

/// The seed's arguments, word for word, but for the placeholder of the model.
const SEED: &str = "serve --model M --dataset-name sharegpt --dataset-path ShareGPT.json \
    --request-rate 8 --num-prompts 500 \
    --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles 50,95,99 \
    --goodput ttft:300 tpot:60";

fn with_data(pairs: &str) -> Workplace {
    let workplace = Workplace::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/make-sharegpt");
    let made = Command::new("python3")
        .args([script, "ShareGPT.json", "--pairs", pairs])
        .current_dir(workplace.path())
        .output()
        .expect("python3 is there");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    workplace
}

#[test]
fn the_seeds_command_line_is_understood_word_for_word() {
    let workplace = with_data("600");
    let mut words: Vec<&str> = vec!["bench"];
    words.extend(SEED.split_whitespace());
    words.extend(["--dry-run", "--json", "-"]);
    let plan = workplace.run(&words).exits(0).json();
    assert_eq!(plan["requests"], 500);
    assert_eq!(plan["load_kind"], "open");
    assert_eq!(plan["arrivals_ms"].as_array().unwrap().len(), 500);
    assert!(plan["workload"]["source"].as_str().unwrap().contains("sharegpt"));
    // vllm bench goes to a server when no address is given; that is said.
    workplace.run(&["bench", "--help"]).exits(0);
}

#[test]
fn the_seeds_command_line_measures_the_embedded_engine() {
    let workplace = with_data("40");
    let line = SEED.replace("--request-rate 8", "--request-rate 40");
    let line = line.replace("--num-prompts 500", "--num-prompts 12");
    let mut words: Vec<&str> = vec!["bench"];
    words.extend(line.split_whitespace());
    // A machine that is busy with other tests may be too slow for a valid run.
    words.push("--allow-invalid");
    let told = workplace.run(&words).exits(0);
    for word in ["SIMULATED", "TTFT", "TPOT", "ITL", "E2EL", "12 ok of 12", "P95", "P99"] {
        assert!(told.out.contains(word), "no {word} in\n{}", told.out);
    }
    let summary = workplace.run(&["report", "latest", "--json", "-"]).exits(0).json();
    assert_eq!(summary["outcomes"]["ok"], 12);
    assert_eq!(summary["goodput"]["of"], 12);
    // The engine's steps of 6 ms are well below 60.
    assert_eq!(summary["goodput"]["per_slo"]["tpot"]["met"], 12);
    assert_eq!(summary["goodput"]["per_slo"]["ttft"]["limit"], 300.0);
    let tpot = summary["metrics"]["tpot_ms"]["p50"].as_f64().unwrap();
    assert!((5.0..40.0).contains(&tpot), "TPOT {tpot}");
}
