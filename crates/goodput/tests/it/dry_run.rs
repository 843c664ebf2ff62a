//! `--dry-run`: the resolved configuration and the schedule.

use serde_json::Value;

use crate::program::{Told, Workplace};

fn plan(workplace: &Workplace, arguments: &[&str]) -> Value {
    let start = ["bench", "--dry-run", "--json", "-"];
    workplace.run(&[&start, arguments].concat()).exits(0).json()
}

/// The value and origin of a setting.
fn setting<'a>(plan: &'a Value, name: &str) -> Option<(&'a str, &'a str)> {
    let settings = plan["config"].as_array().unwrap();
    let found = settings.iter().find(|setting| setting["name"] == name)?;
    Some((found["value"].as_str()?, found["origin"].as_str()?))
}

#[test]
fn arrivals_are_listed_to_the_microsecond() {
    let workplace = Workplace::new();
    let plan = plan(&workplace, &["--url", "http://h:1", "--request-rate", "100", "-n", "200"]);
    let arrivals: Vec<f64> =
        plan["arrivals_ms"].as_array().unwrap().iter().map(|at| at.as_f64().unwrap()).collect();
    assert_eq!(arrivals.len(), 200);
    assert!(arrivals.is_sorted());
    for at in &arrivals {
        let us = at * 1_000.0;
        assert!((us - us.round()).abs() < 1e-3, "{at} ms is no whole number of microseconds");
    }
    let fractions = arrivals.iter().filter(|at| at.fract() != 0.0).count();
    assert!(fractions > 150, "instants are rounded to milliseconds");
    // 200 arrivals at 100 a second, within six standard deviations.
    let last = arrivals.last().unwrap();
    assert!((1_200.0..2_800.0).contains(last), "the last comes at {last} ms");
    assert!(!workplace.at("runs").exists(), "a dry run leaves nothing");
}

#[test]
fn the_schedule_depends_on_the_seed_and_not_on_threads() {
    let workplace = Workplace::new();
    let schedule = |more: &[&str]| {
        let plan = plan(&workplace, &[&["--request-rate", "50", "-n", "100"], more].concat());
        (plan["schedule_hash"].as_str().unwrap().to_owned(), plan["arrivals_ms"].clone())
    };
    let one = schedule(&["--threads", "1"]);
    assert_eq!(one, schedule(&["--threads", "8"]));
    assert_eq!(one, schedule(&["--seed", "0"]));
    let other = schedule(&["--seed", "1"]);
    assert!(one.0 != other.0 && one.1 != other.1);
    assert_ne!(one.0, schedule(&["--osl", "7"]).0, "lengths belong to the schedule");
}

#[test]
fn a_seed_that_nobody_gave_is_drawn_and_told() {
    let workplace = Workplace::new();
    let drawn = || {
        let mut command = workplace.command(&["bench", "-n", "9", "--dry-run", "--json", "-"]);
        let plan = Told::of(command.env_remove("GOODPUT_SEED").output().unwrap()).exits(0).json();
        let seed = plan["seed"].as_u64().unwrap();
        assert_eq!(setting(&plan, "seed"), Some((seed.to_string().as_str(), "drawn")));
        (seed, plan["schedule_hash"].clone())
    };
    let (first, second) = (drawn(), drawn());
    assert!(first.0 != second.0 && first.1 != second.1);
    let seed = first.0.to_string();
    let again = plan(&workplace, &["-n", "9", "--seed", &seed]);
    assert_eq!(again["schedule_hash"], first.1, "the seed repeats the schedule");
    let shown = workplace.run(&["bench", "-n", "9", "--seed", &seed, "--dry-run"]).exits(0).out;
    assert!(shown.contains(&format!("seed {seed}")), "{shown}");
}

#[test]
fn the_hash_of_a_run_is_that_of_its_dry_run() {
    let workplace = Workplace::new();
    let arguments = ["--request-rate", "80", "-n", "6", "--isl", "8", "--osl", "2"];
    let plan = plan(&workplace, &arguments);
    let run = workplace.run(
        &[&["bench", "--json", "-", "--threads", "2", "--allow-invalid"], &arguments[..]].concat(),
    );
    assert_eq!(run.exits(0).json()["load"]["schedule_hash"], plan["schedule_hash"]);
}

#[test]
fn values_are_kept_with_their_origin_and_the_nearest_wins() {
    let workplace = Workplace::new();
    let file = workplace.file(
        "goodput.toml",
        "seed = 1\nisl = 100\nosl = 30\nnum_prompts = 9\ngoodput = [\"ttft:300\", \"tpot:60\"]\n",
    );
    let mut command = workplace.command(&[
        "bench",
        "--config",
        file,
        "--seed",
        "3",
        "--dry-run",
        "--json",
        "-",
        "--max_concurrency",
        "2",
        "-c",
        "4",
    ]);
    command.env("GOODPUT_SEED", "2").env("GOODPUT_ISL", "200").env("GOODPUT_IGNORE_EOS", "true");
    let plan = Told::of(command.output().unwrap()).exits(0).json();
    assert_eq!(setting(&plan, "seed"), Some(("3", "command line")));
    assert_eq!(setting(&plan, "isl"), Some(("200", "environment")));
    assert_eq!(setting(&plan, "osl"), Some(("30", "config file")));
    assert_eq!(setting(&plan, "num-prompts"), Some(("9", "config file")));
    assert_eq!(setting(&plan, "goodput"), Some(("ttft:300 tpot:60", "config file")));
    assert_eq!(setting(&plan, "ignore-eos"), Some(("true", "environment")));
    assert_eq!(setting(&plan, "max-concurrency"), Some(("4", "command line")));
    assert_eq!(setting(&plan, "idle-timeout"), Some(("60s", "default")));
    assert_eq!(setting(&plan, "prefix-cache"), Some(("cold", "default")));
    assert_eq!((&plan["seed"], &plan["requests"]), (&3.into(), &9.into()));
    assert!(plan["workload"]["input_lengths"].as_str().unwrap().contains("200"));
    assert!(plan["load"].as_str().unwrap().contains("4 users"));
}

#[test]
fn a_config_file_can_come_from_the_environment() {
    let workplace = Workplace::new();
    workplace.file("a.toml", "seed = 41\n");
    let mut command = workplace.command(&["bench", "--dry-run", "--json", "-"]);
    command.env("GOODPUT_CONFIG", "a.toml").env_remove("GOODPUT_SEED");
    assert_eq!(Told::of(command.output().unwrap()).exits(0).json()["seed"], 41);
}

#[test]
fn a_wrong_config_file_is_named() {
    let workplace = Workplace::new();
    for (text, words) in [
        ("speed = 3\n", &["bad.toml", "speed"][..]),
        ("seed = [1, [2]]\n", &["bad.toml", "seed"]),
        ("seed = \n", &["bad.toml"]),
        ("request-rate = \"fast\"\n", &["--request-rate", "fast"]),
    ] {
        let file = workplace.file("bad.toml", text);
        workplace.run(&["bench", "--config", file, "--dry-run"]).exits(2).says(words);
    }
}

#[test]
fn the_default_load_is_closed_for_a_url_and_open_for_the_engine() {
    let workplace = Workplace::new();
    let served = plan(&workplace, &["http://127.0.0.1:8000"]);
    assert_eq!((&served["load_kind"], &served["requests"]), (&"closed".into(), &100.into()));
    assert!(served["load"].as_str().unwrap().contains("8 users"));
    assert_eq!(served["arrivals_ms"].as_array().unwrap().len(), 0);
    let embedded = plan(&workplace, &[]);
    assert_eq!(embedded["load_kind"], "open");
    assert!(embedded["target"].is_null());
    let arrivals = embedded["arrivals_ms"].as_array().unwrap();
    assert!(arrivals.iter().all(|at| at.as_f64().unwrap() < 10_000.0));
    for (arguments, kind) in [
        (&["--request-rate", "inf", "-c", "3", "-n", "9"][..], "closed"),
        (&["--request-rate", "inf", "-n", "9"], "burst"),
        (&["--request-rate", "5", "-c", "3", "-n", "9"], "capped"),
    ] {
        assert_eq!(plan(&workplace, arguments)["load_kind"], kind, "{arguments:?}");
    }
}

#[test]
fn a_bad_line_of_a_data_set_is_named_by_its_number() {
    let workplace = Workplace::new();
    let good = "{\"prompt\": \"hello there\", \"output_tokens\": 3}";
    let mixed = workplace.file("mixed.jsonl", format!("{good}\n\n{{\"prompt\": \n{good}\n"));
    let custom = |file: &'static str| ["--dataset-name", "custom", "--dataset-path", file];
    let notes = plan(&workplace, &custom(mixed))["workload"]["notes"].to_string();
    assert!(notes.contains("line 3") && notes.contains("JSON"), "{notes}");
    let broken = workplace.file("broken.jsonl", "not json\nnor this\n");
    let told = workplace.run(&[&["bench"], &custom(broken)[..]].concat());
    let told = told.exits(2).says(&["--dataset-path", "broken.jsonl", "line 1", "line 2", "JSON"]);
    assert_eq!(told.errors().len(), 1);
}

/// Phases as (from, until, expected, drawn).
fn phases(plan: &Value) -> Vec<(f64, f64, f64, u64)> {
    let phases = plan["phases"].as_array().unwrap().iter();
    let number = |phase: &Value, key: &str| phase[key].as_f64().unwrap();
    phases
        .map(|phase| {
            let drawn = phase["drawn"].as_u64().unwrap();
            (number(phase, "from_s"), number(phase, "until_s"), number(phase, "expected"), drawn)
        })
        .collect()
}

#[test]
fn stages_are_planned_one_after_the_other() {
    let workplace = Workplace::new();
    let arguments = ["--stages", "5:4s, 0:500ms,10:2", "--arrivals", "constant"];
    let plan = plan(&workplace, &arguments);
    assert_eq!(
        plan["load"],
        "open loop, 3 stages (5 req/s for 4 s, 0 req/s for 0.5 s, 10 req/s for 2 s), constant gaps"
    );
    assert_eq!(plan["requests"], 40);
    assert_eq!(phases(&plan), [(0.0, 4.0, 20.0, 20), (4.0, 4.5, 0.0, 0), (4.5, 6.5, 20.0, 20)]);
    assert_eq!(plan["arrivals_ms"][20], 4_500.0);
    assert_eq!(setting(&plan, "duration"), Some(("6.5s", "default")));
    assert_eq!(setting(&plan, "num-prompts"), Some(("none", "default")));
    assert_eq!(setting(&plan, "request-rate"), Some(("none", "default")));
    // A duration cuts the stages and does not draw them out.
    let of = |duration| {
        let plan = self::plan(&workplace, &[&arguments[..], &["--duration", duration]].concat());
        plan["requests"].as_u64().unwrap()
    };
    assert_eq!((of("5s"), of("1h")), (25, 40));
}

#[test]
fn a_ramp_takes_the_time_of_the_run() {
    let workplace = Workplace::new();
    let ramp = |strategy, more: [&str; 2]| {
        let rates = ["--ramp-up-start-rps", "2", "--ramp-up-end-rps", "18"];
        let way = ["--ramp-up-strategy", strategy, "--arrivals", "constant"];
        plan(&workplace, &[&rates[..], &way, &more].concat())
    };
    // 2·t + 16·t²/(2·20): 16 in the first of five parts of 20 s, then 12.8 more each.
    let linear = ramp("linear", ["--duration", "20s"]);
    assert_eq!(
        linear["load"],
        "open loop, linear ramp from 2 to 18 req/s over 20 s, constant gaps"
    );
    assert_eq!(linear["requests"], 200);
    let parts: Vec<f64> = phases(&linear).iter().map(|(_, _, expected, _)| *expected).collect();
    for (part, wanted) in parts.iter().zip([14.4, 27.2, 40.0, 52.8, 65.6]) {
        assert!((part - wanted).abs() < 1e-6, "{parts:?}");
    }
    // As many requests take as long.
    let counted = ramp("linear", ["-n", "200"]);
    assert_eq!(counted["arrivals_ms"], linear["arrivals_ms"]);
    // 16 ÷ ln 9 requests a second on average.
    let exponential = ramp("exponential", ["--duration", "20s"]);
    assert_eq!(exponential["requests"], (20.0 * 16.0 / 9f64.ln()).ceil() as u64);
}

#[test]
fn one_seed_gives_one_plan_whatever_the_shape_and_the_threads() {
    let workplace = Workplace::new();
    for shape in [
        ["--load-shape", "sine:mean=20,amplitude=20,period=3s"],
        ["--load-shape", "bursts:on=50,off=1,on_for=500ms,off_for=1s"],
        ["--stages", "20:3s,40:3s"],
        ["--think-time", "exponential:mean=1s"],
    ] {
        let hash = |more: [&str; 2]| {
            let closed = if shape[0] == "--think-time" { ["-c", "4"] } else { ["--osl", "8"] };
            let plan = plan(&workplace, &[&shape[..], &["-n", "90"], &closed, &more].concat());
            (plan["schedule_hash"].clone(), plan["arrivals_ms"].clone(), plan["phases"].clone())
        };
        let one = hash(["--threads", "1"]);
        assert_eq!(one, hash(["--threads", "5"]));
        assert_ne!(one.0, hash(["--seed", "1"]).0);
    }
}

#[test]
fn a_person_sees_the_phases_as_a_table() {
    let workplace = Workplace::new();
    let told = workplace
        .run(&["bench", "--dry-run", "--stages", "5:4s,10:2s", "--arrivals", "constant"])
        .exits(0);
    let rows: Vec<Vec<&str>> =
        told.out.lines().skip(5).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [
            vec!["from", "s", "until", "s", "req/s", "expected", "drawn"],
            vec!["0", "4.00", "5.00", "20.0", "20"],
            vec!["4.00", "6.00", "10.0", "20.0", "20"],
        ]
    );
    let many = ["--load-shape", "bursts:on=9,off=1,on_for=1s,off_for=1s", "--duration", "60s"];
    let told = workplace.run(&[&["bench", "--dry-run"], &many[..]].concat()).exits(0);
    assert!(told.out.ends_with("40 more; --json has all\n"), "{}", told.out);
}

#[test]
fn a_run_of_stages_says_what_was_offered() {
    let workplace = Workplace::new();
    let load = ["--stages", "20:500ms,60:500ms", "--arrivals", "constant", "--isl", "8"];
    let run = ["bench", "--osl", "2", "--json", "-", "--allow-invalid", "--out", "run"];
    let summary = workplace.run(&[&run[..], &load].concat()).exits(0).json();
    let load = &summary["load"];
    assert_eq!(
        load["arrivals"],
        "2 stages (20 req/s for 0.5 s, 60 req/s for 0.5 s), constant gaps"
    );
    assert_eq!((&load["kind"], &load["request_rate"]), (&"open".into(), &Value::Null));
    assert_eq!(summary["outcomes"]["ok"], 40);
    assert_eq!(
        (load["arrival_window_s"].as_f64(), load["offered_rps"].as_f64()),
        (Some(1.0), Some(40.0))
    );
    let why = summary["absent"]["steady"].as_str().unwrap();
    assert!(why.contains("changes by plan"), "{why}");
    let told = workplace.run(&["report", "run"]).exits(0);
    assert!(told.out.contains("open loop, 2 stages (20 req/s for 0.5 s"), "{}", told.out);
}
