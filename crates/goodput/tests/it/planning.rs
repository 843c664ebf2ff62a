//! `plan`: bounds, what the engine model makes of them, a hosted API beside it,
//! and what is refused. The flags of the machines, and what is kept of them.

use serde_json::Value;

use crate::program::Workplace;

const LLAMA: [&str; 5] = ["plan", "--model-shape", "llama-3.1-8b", "--accelerator", "h100"];

fn planned(workplace: &Workplace, more: &[&str]) -> Value {
    workplace.run(&[&LLAMA[..], &["--json", "-"], more].concat()).exits(0).json()
}

fn bound(degree: &Value, key: &str) -> f64 {
    let bounds = degree["bounds"].as_array().unwrap();
    let line = bounds.iter().find(|line| line["key"] == key);
    line.unwrap_or_else(|| panic!("no {key}"))["value"].as_f64().unwrap()
}

#[test]
fn a_plan_has_bounds_and_what_the_model_makes_of_them() {
    let workplace = Workplace::new();
    let plan = planned(
        &workplace,
        &[
            "--isl",
            "512",
            "--osl",
            "128",
            "--goodput",
            "ttft:500",
            "tpot:30",
            "--tensor-parallel",
            "1,2",
            "--gpu-price-per-hour",
            "2.5",
        ],
    );
    let degrees = plan["degrees"].as_array().unwrap();
    assert_eq!(degrees.len(), 2);
    for (degree, count) in degrees.iter().zip([1, 2]) {
        assert_eq!(degree["accelerators"], count);
        let (best, met) = (bound(degree, "capacity_req_s"), &degree["predicted"]["met"]);
        let rate = met["req_s"].as_f64().unwrap();
        let share = degree["share_of_bound"].as_f64().unwrap();
        assert!((share - rate / best).abs() < 1e-9 && (0.1..1.0).contains(&share), "{degree}");
        assert!(met["attainment"].as_f64().unwrap() >= 0.99);
        let cost = degree["predicted_cost_per_million_tokens"].as_f64().unwrap();
        let expected = 1e6 * 2.5 * f64::from(count) / 3600.0 / (rate * 128.0);
        assert!((cost / expected - 1.0).abs() < 1e-9);
    }
    assert!(bound(&degrees[1], "least_ttft_ms") < bound(&degrees[0], "least_ttft_ms"));
    // 128 KiB a token, whoever holds it.
    assert_eq!(bound(&degrees[0], "kv_bytes_per_token"), 131_072.0);
    assert_eq!(plan["degrees"][0]["predicted"]["simulated"], true);
}

#[test]
fn without_flags_a_plan_is_of_a_chat_and_says_so_in_both_languages() {
    let workplace = Workplace::new();
    let told = workplace.run(&["plan", "--tensor-parallel", "1"]).exits(0);
    for words in [
        "Llama 3.1 8B on NVIDIA H100",
        "512 prompt tokens → 256",
        "start ≤ 500",
        "SIMULATED",
        "÷ (256 × TPOT",
    ] {
        assert!(told.out.contains(words), "{words} in\n{}", told.out);
    }
    let told = workplace.run(&["plan", "--tensor-parallel", "1", "--lang", "zh"]).exits(0);
    for words in ["容量规划", "输入 512 token", "理论最好", "KV 容量"] {
        assert!(told.out.contains(words), "{words} in\n{}", told.out);
    }
}

#[test]
fn a_hosted_api_is_held_against_the_models_capacity() {
    let workplace = Workplace::new();
    let plan = planned(
        &workplace,
        &[
            "--isl",
            "1000",
            "--osl",
            "500",
            "--tensor-parallel",
            "1",
            "--gpu-price-per-hour",
            "3.6",
            "--api-price",
            "in=0.5,out=1.5",
            "--request-rate",
            "40",
        ],
    );
    let api = &plan["api"];
    let number = |key: &str| api[key].as_f64().unwrap();
    assert!((number("api_cost_per_request") - 0.00125).abs() < 1e-12);
    // 3.6 an hour is 0.001 a second.
    assert!((number("break_even_req_s") - 0.8).abs() < 1e-9);
    let share = number("break_even_req_s") / number("capacity_req_s");
    assert!((number("break_even_utilisation") - share).abs() < 1e-12);
    let wanted = &plan["wanted"];
    let engines = wanted["engines"].as_f64().unwrap();
    assert_eq!(engines, (40.0 / number("capacity_req_s")).ceil());
    assert_eq!(wanted["accelerators"].as_f64(), Some(engines));
}

/// Goodput that was measured stands in the place of the model's capacity, with
/// the run's own lengths and accelerators.
#[test]
fn a_hosted_api_is_held_against_the_goodput_of_a_run() {
    let workplace = Workplace::new();
    let run = workplace
        .run(&[
            "sim",
            "run",
            "--isl",
            "400",
            "--osl",
            "100",
            "--request-rate",
            "5",
            "-n",
            "100",
            "--goodput",
            "ttft:1000",
            "--gpu-price-per-hour",
            "3.6",
            "--json",
            "-",
        ])
        .exits(0)
        .json();
    let plan = planned(
        &workplace,
        &["--tensor-parallel", "1", "--api-price", "in=1,out=4", "--run", "latest"],
    );
    let api = &plan["api"];
    assert_eq!(api["capacity_of"]["run_id"], run["run_id"]);
    assert_eq!(api["capacity_req_s"], run["goodput"]["req_s"]);
    let request = api["api_cost_per_request"].as_f64().unwrap();
    assert!((request - (400.0 + 4.0 * 100.0) / 1e6).abs() < 1e-9, "{request}");
}

#[test]
fn what_cannot_be_planned_is_refused_with_the_arithmetic() {
    let workplace = Workplace::new();
    let refused = |more: &[&str]| workplace.run(&[&["plan"], more].concat()).exits(2).err;
    let large = refused(&[
        "--model-shape",
        "llama-3.1-70b",
        "--accelerator",
        "h100",
        "--tensor-parallel",
        "1",
    ]);
    assert!(large.contains("80.0 GB × 0.92 = 73.6 GB") && large.contains("141.1 GB"), "{large}");
    for (arguments, words) in [
        (&["--model-shape", "llama-3.1-9b"][..], "llama-3.1-8b"),
        (&["--accelerator", "h300"], "h100"),
        (&["--weights", "fp6"], "no precision"),
        (&["--isl", "512±25%"], "a plan is of one length"),
        (&["--tensor-parallel", "1,x"], "as in 1,2,4,8"),
        (&["--attainment", "99"], "up to 1"),
        (&["--api-price", "in=1"], "in=0.15,out=0.60"),
        (&["--api-price", "in=1,out=2"], "--gpu-price-per-hour"),
        (&["--api-price", "on=1,out=2", "--gpu-price-per-hour", "1"], "in, out and cached"),
        (&["--run", "latest"], "--api-price"),
        (&["--isl", "200000", "--tensor-parallel", "1"], "has 131072"),
        (&["--set", "replicas=2"], "--request-rate"),
        (&["--goodput", "ttft:x"], "ttft"),
    ] {
        let err = refused(arguments);
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
    // One degree that does not fit is told beside those that do.
    let plan = workplace
        .run(&[
            "plan",
            "--model-shape",
            "llama-3.1-70b",
            "--accelerator",
            "h100",
            "--tensor-parallel",
            "1,4",
            "--json",
            "-",
        ])
        .exits(0)
        .json();
    assert!(plan["degrees"][0]["refused"].as_str().unwrap().contains("141.1 GB"));
    assert_eq!(plan["best"], 4);
}

/// What is said of the machines is kept with the run, and what is said again at
/// its report wins.
#[test]
fn machines_are_kept_with_the_run_and_said_again_at_its_report() {
    let workplace = Workplace::new();
    let run = workplace
        .run(&[
            "sim",
            "run",
            "--isl",
            "300",
            "--osl",
            "24",
            "--request-rate",
            "20",
            "-n",
            "60",
            "--set",
            "tensor_parallel_size=2",
            "--gpu-price-per-hour",
            "3.6",
            "--json",
            "-",
        ])
        .exits(0)
        .json();
    let kept = |run: &Value| -> Value {
        let folder = workplace.at("runs").join(run["run_id"].as_str().unwrap());
        let bytes = std::fs::read(folder.join("run.json")).unwrap();
        serde_json::from_slice::<Value>(&bytes).unwrap()["facts"]["deployment"].clone()
    };
    let machines = kept(&run);
    assert_eq!(machines["model"]["id"], "llama-3.1-8b");
    assert_eq!(machines["accelerator"]["id"], "h100-sxm");
    assert_eq!(machines["topology"], serde_json::json!([["", 2]]));
    assert_eq!(machines["tensor_parallel"], 2);
    assert_eq!(machines["price_per_hour"], 3.6);
    let wrong = workplace.run(&["report", "latest", "--accelerator", "h10o"]).exits(2);
    assert!(wrong.err.contains("h100"), "{}", wrong.err);
    let told = workplace.run(&["sim", "run", "--accelerator", "h100"]).exits(2);
    assert!(told.err.contains("--set accelerator=h200"), "{}", told.err);
}

#[test]
fn wrong_words_about_the_machines_are_told_before_anything_is_sent() {
    let workplace = Workplace::new();
    let told = workplace
        .bench(
            "http://127.0.0.1:1",
            &[
                "--accelerator",
                "h101",
                "--model-shape",
                "lama-3.1-8b",
                "--topology",
                "prefil=2",
                "--weights",
                "fp12",
                "--tensor-parallel",
                "0",
                "--gpu-price-per-hour",
                "-1",
            ],
        )
        .exits(2);
    told.says(&[
        "h100",
        "llama-3.1-8b",
        "there are prefill",
        "no precision",
        "at least 1",
        "above 0",
    ]);
}
