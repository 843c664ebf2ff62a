//! `diagnose`: what it prints of a run, what it says where it cannot tell, and
//! what stands of it elsewhere. Which causes are named rightly is for the tests
//! of the rules.

use serde_json::Value;

use crate::program::Workplace;

/// A short run of the engine model in virtual time.
fn simulated(workplace: &Workplace, more: &[&str]) -> Value {
    let run = ["sim", "run", "--seed", "4", "--isl", "300", "--osl", "24", "-n", "40"];
    let load: &[&str] = if more.contains(&"--request-rate") || more.contains(&"-c") {
        &[]
    } else {
        &["--request-rate", "20"]
    };
    workplace.run(&[&run, load, &["--json", "-"], more].concat()).exits(0).json()
}

#[test]
fn a_run_is_diagnosed_from_its_directory_in_both_languages_and_as_json() {
    let workplace = Workplace::new();
    let run = simulated(&workplace, &[]);
    let id = run["run_id"].as_str().unwrap();
    let english = workplace.run(&["diagnose", "latest"]).exits(0).out;
    for part in ["goodput diagnose · SIMULATED", "conditions: input", id, "1 Directions"] {
        assert!(english.contains(part), "no {part} in\n{english}");
    }
    assert_eq!(english, workplace.run(&["diagnose", &id[..12]]).exits(0).out);
    let chinese = workplace.run(&["diagnose", "latest", "--lang", "zh"]).exits(0).out;
    assert!(chinese.contains("模拟数据") && chinese.contains("优化方向"), "{chinese}");
    let told = workplace.run(&["diagnose", "latest", "--json", "-"]).exits(0).json();
    for key in ["findings", "stages_ms", "lints", "missing"] {
        assert!(told[key].is_array(), "{key}: {told}");
    }
    assert_eq!((&told["run_id"], &told["simulated"]), (&run["run_id"], &run["simulated"]));
    // The summary of the run and what is found in its directory are the same.
    assert_eq!(told["findings"], run["findings"]);
    assert_eq!(told["stages_ms"], run["stages_ms"]);
    assert_eq!(told["lints"], run["lints"]);
}

#[test]
fn a_report_ends_with_one_paragraph_of_diagnosis_or_why_there_is_none() {
    let workplace = Workplace::new();
    let told = workplace.run(&["sim", "run", "--request-rate", "4", "-n", "12", "--osl", "16"]);
    let text = told.exits(0).out;
    let is_it = |part: &&str| part.trim_start().starts_with("Diagnosis");
    assert_eq!(text.split("\n\n").filter(is_it).count(), 1, "{text}");
    let failed = workplace.bench("http://127.0.0.1:1", &["-n", "3"]);
    assert!(failed.out.contains("Diagnosis: none, because the run is INVALID"), "{}", failed.out);
}

/// The recorded run of a real vLLM.
const RESULT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/captures/vllm_completions_run/result.json"
);

#[test]
fn what_cannot_be_told_is_said_with_what_would_tell() {
    let workplace = Workplace::new();
    workplace.run(&["import", RESULT, "--out", "imported"]).exits(0);
    let told = workplace.run(&["diagnose", "imported", "--json", "-"]).exits(0).json();
    let missing = told["missing"].to_string();
    for part in ["the server's metrics were not read", "--metrics-url", "--slo"] {
        assert!(missing.contains(part), "no {part} in {missing}");
    }
    assert!(told["stages"]["refused"].is_string(), "{told}");
    let text = workplace.run(&["diagnose", "imported"]).exits(0).out;
    assert!(text.contains("could not be concluded"), "{text}");
    // With an objective, one thing fewer is missing.
    let judged = ["diagnose", "imported", "--goodput", "ttft:300", "--json", "-"];
    let judged = workplace.run(&judged).exits(0).json();
    assert!(!judged["missing"].to_string().contains("--slo"), "{judged}");
}

#[test]
fn mistakes_are_told_before_anything_is_read() {
    let workplace = Workplace::new();
    workplace.run(&["diagnose", "nothing"]).exits(2).says(&["nothing"]);
    workplace.run(&["diagnose"]).exits(2).says(&["RUN"]);
    simulated(&workplace, &[]);
    workplace.run(&["diagnose", "latest", "--slo", "speed <= 3"]).exits(2).says(&["--slo"]);
    workplace.run(&["diagnose", "latest", "--lang", "fr"]).exits(2).says(&["fr"]);
}

#[test]
fn runs_side_by_side_are_compared_by_their_conditions_first() {
    let workplace = Workplace::new();
    let one = simulated(&workplace, &[]);
    let same = simulated(&workplace, &[]);
    let longer = simulated(&workplace, &["--isl", "900"]);
    let faster = simulated(&workplace, &["--request-rate", "40"]);
    let warm = simulated(&workplace, &["--prefix-cache", "none"]);
    let beside = |other: &Value| {
        let ids = [&one, other].map(|run| run["run_id"].as_str().unwrap());
        let told = workplace.run(&["report", ids[0], ids[1]]).exits(0).out;
        assert_eq!(told.matches("conditions: input").count(), 2, "{told}");
        told
    };
    assert!(beside(&same).contains("the state of the prefix cache are the same"));
    let differs = |other: &Value, condition: &str| {
        let told = beside(other);
        assert!(told.contains("not comparable"), "{told}");
        assert!(told.lines().any(|line| line.trim_start().starts_with(condition)), "{told}");
    };
    differs(&longer, "prompt lengths asked for");
    differs(&faster, "requests a second asked for");
    differs(&warm, "state of the prefix cache");
}

/// The commands in an experiment: loops of a shell are taken apart, and numbers
/// put in place of their variables.
fn commands(experiment: &str) -> Vec<Vec<String>> {
    let filled = experiment.replace("{target}", "http://127.0.0.1:9").replace("{run}", "latest");
    let parts = filled.split(';').filter_map(|part| part.split("goodput ").nth(1));
    let word = |word: &str| if word.contains('$') { "8".to_owned() } else { word.to_owned() };
    parts.map(|part| part.split_whitespace().map(word).collect()).collect()
}

#[test]
fn the_experiment_of_every_rule_is_a_command_that_exists() {
    let workplace = Workplace::new();
    let all = insight::RULES.iter().map(|rule| (rule.id, rule.command));
    let distinct: std::collections::BTreeMap<&str, &str> =
        all.map(|(id, command)| (command, id)).collect();
    for (experiment, rule) in distinct {
        let found = commands(experiment);
        assert!(!found.is_empty(), "{rule}: {experiment}");
        for mut command in found {
            // Without a target that answers, the plan says whether it is one.
            let is_load = command[0] == "bench";
            command.push(if is_load { "--dry-run" } else { "--help" }.to_owned());
            let told = workplace.run(&command);
            assert_eq!(told.code, Some(0), "{rule}: {command:?}: {}", told.err);
        }
    }
}

#[test]
fn what_two_runs_together_do_not_say_is_told_wherever_they_are_compared() {
    let workplace = Workplace::new();
    let short = simulated(&workplace, &[]);
    let long = simulated(&workplace, &["--isl", "900"]);
    let ids = [&short, &long].map(|run| run["run_id"].as_str().unwrap());
    let [one, other] = ids;
    let files = ["--markdown", "both.md", "--html", "both.html"];
    let told = workplace.run(&[&["report", one, other][..], &files].concat()).exits(0).out;
    let html = workplace.read("both.html");
    let words = "The two runs differ in prompt lengths asked for";
    for (where_from, text) in
        [("text", &told), ("Markdown", &workplace.read("both.md")), ("HTML", &html)]
    {
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(one_line.contains(words), "not in the {where_from}: {one_line}");
    }
    let chinese = workplace.run(&["report", one, other, "--lang", "zh"]).exits(0).out;
    assert!(chinese.contains("两次测试的设定的输入长度"), "{chinese}");
    let object = workplace.run(&["report", one, other, "--json", "-"]).exits(0).json();
    assert_eq!(object["comparable"], false);
    let lint = &object["lints"][0];
    assert_eq!((&lint["before"], &lint["after"]), (&short["run_id"], &long["run_id"]));
    assert_eq!((&lint["id"], &lint["concerns"]), (&"other_work".into(), &"ttft_ms".into()));
    let asked = object["differences"].as_array().unwrap();
    assert!(asked.iter().any(|one| one["what"] == "prompt lengths asked for"), "{object}");
    let runs = object["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| &run["run_id"]).collect::<Vec<_>>(), ids);
    // The same run twice is the same work, and nothing of it is misread.
    let same = workplace.run(&["report", one, one, "--json", "-"]).exits(0).json();
    assert_eq!((&same["comparable"], &same["lints"]), (&true.into(), &serde_json::json!([])));
}
