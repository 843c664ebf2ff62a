//! `--json`: its form, and that nothing else is on standard output.

use serde_json::Value;

use crate::designed::{DISTRIBUTION, GOODPUT, NESTED, TOP};
use crate::program::Workplace;
use crate::servers::{engine, refusing, slow_engine};

/// Members further inside that a run with objectives has, by path. An empty
/// list stands for an object whose keys are not fixed.
const DEEPER: &[(&str, &[&str])] = &[
    ("goodput", GOODPUT),
    ("goodput/per_slo/ttft", &["limit", "met", "of"]),
    ("goodput/per_slo/tpot", &["limit", "met", "of"]),
    ("efficiency", &[]),
    ("service_metrics", &["ttft_ms", "e2el_ms"]),
    ("all_requests_metrics", &["ttft_ms", "e2el_ms"]),
    ("validity/lateness_us", &["p50", "p99", "max"]),
    ("definitions", &["ttft", "tpot", "itl_unit", "token_source"]),
    ("definitions/ttft", &["start", "end"]),
    ("absent", &[]),
];

#[track_caller]
fn has_all_keys(summary: &Value) {
    let missing: Vec<_> = TOP.iter().filter(|key| summary.get(**key).is_none()).collect();
    assert!(missing.is_empty(), "no {missing:?}");
    for (path, keys) in NESTED.iter().chain(DEEPER) {
        let inner = summary.pointer(&format!("/{path}")).and_then(Value::as_object);
        let inner = inner.unwrap_or_else(|| panic!("{path} is no object"));
        for key in *keys {
            assert!(inner.contains_key(*key), "no {path}/{key}");
        }
    }
    for metric in ["ttft_ms", "ttfc_ms", "tpot_ms", "icl_ms", "itl_ms", "e2el_ms", "generation_ms"]
    {
        for key in DISTRIBUTION {
            assert!(summary["metrics"][metric].get(key).is_some(), "no metrics/{metric}/{key}");
        }
    }
    for key in ["stages_ms", "findings", "caveats"] {
        assert!(summary[key].is_array(), "{key} is no list");
    }
}

/// Paths of all nulls, except those in distributions without samples: their
/// metric is named instead.
fn nulls(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(path.to_owned()),
        Value::Object(members) => {
            if members.contains_key("n_undefined") {
                if members["n"] == 0 {
                    found.push(path.to_owned());
                }
                return;
            }
            for (name, member) in members.iter().filter(|(name, _)| *name != "absent") {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                nulls(member, &path, found);
            }
        }
        _ => {}
    }
}

/// Every null is named under `absent`, by its path or by that of something
/// around it.
#[track_caller]
fn nulls_have_reasons(summary: &Value) {
    let mut found = Vec::new();
    nulls(summary, "", &mut found);
    let absent = summary["absent"].as_object().unwrap();
    for path in found {
        // The views of one metric share its reason.
        let metric = path.replace("service_metrics.", "metrics.");
        let metric = metric.replace("all_requests_metrics.", "metrics.");
        let named = |name: &String| {
            let inside = |path: &str| path == name || path.starts_with(&format!("{name}."));
            inside(&path) || inside(&metric)
        };
        assert!(absent.keys().any(named), "{path} is null without a reason in {absent:#?}");
    }
    assert!(absent.values().all(|reason| reason.as_str().is_some_and(|text| text.len() > 5)));
}

#[test]
fn the_object_is_whole_and_alone_on_standard_output() {
    let (workplace, server) = (Workplace::new(), slow_engine());
    let told = workplace.run(&[
        "bench",
        "--url",
        &server.url(),
        "--model",
        "M",
        "-n",
        "50",
        "--request-rate",
        "100",
        "--isl",
        "32",
        "--osl",
        "8",
        "--goodput",
        "ttft:2000",
        "tpot:60",
        "--json",
        "-",
    ]);
    let told = told.exits(0).says(&["VALID", "run directory"]);
    let summary = told.json();
    has_all_keys(&summary);
    nulls_have_reasons(&summary);
    assert_eq!(summary["schema"], "goodput.summary/1");
    assert_eq!(summary["outcomes"]["ok"], 50);
    assert_eq!(summary["load"]["kind"], "open");
    assert_eq!(summary["tokens"]["output"], 400);
    assert_eq!(summary["tokens"]["source"], "usage");
    assert_eq!(summary["goodput"]["of"], 50);
    assert_eq!(summary["simulated"], false);
    let ttft = summary["metrics"]["ttft_ms"]["p50"].as_f64().unwrap();
    assert!((799.0..1_200.0).contains(&ttft), "TTFT {ttft}");
    // A first token and seven gaps of each request, but where a busy machine
    // let all of an answer arrive at one instant: that one has no gaps.
    let gaps = |key: &str| summary["metrics"]["icl_ms"][key].as_u64().unwrap();
    assert_eq!(gaps("n"), 7 * (50 - gaps("n_undefined")));
    assert!(gaps("n_undefined") < 10, "{}", summary["metrics"]["icl_ms"]);
    assert_eq!(server.requests().len(), 50, "no hidden request comes before the schedule");
}

#[test]
fn a_run_without_a_success_has_the_same_keys() {
    let (workplace, server) = (Workplace::new(), refusing(500, "broken"));
    let told = workplace.bench(
        &server.url(),
        &["-n", "4", "-c", "1", "--goodput", "ttft:300", "tpot:60", "--json", "-"],
    );
    let summary = told.exits(0).json();
    let mut widened = summary.clone();
    // Without a request to judge this has no figures, and its reason instead.
    let lateness = widened.pointer_mut("/validity/lateness_us").unwrap();
    if lateness.is_null() {
        *lateness = serde_json::json!({"p50": 0, "p99": 0, "max": 0});
    }
    has_all_keys(&widened);
    nulls_have_reasons(&summary);
}

#[test]
fn the_embedded_engine_says_that_it_is_one() {
    let workplace = Workplace::new();
    let arguments = [
        "bench",
        "-n",
        "10",
        "--request-rate",
        "40",
        "--osl",
        "4",
        "--json",
        "-",
        "--allow-invalid",
    ];
    let told = workplace.run(&arguments).exits(0).says(&["SIMULATED"]);
    let summary = told.json();
    has_all_keys_but_goodput(&summary);
    assert_eq!(summary["simulated"], true);
    assert!(summary["goodput"].is_null());
    assert!(summary["absent"]["goodput"].as_str().unwrap().contains("--goodput"));
    let caveats = summary["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|caveat| caveat["text"].as_str().unwrap().contains("simulation")));
}

#[track_caller]
fn has_all_keys_but_goodput(summary: &Value) {
    assert!(TOP.iter().all(|key| summary.get(*key).is_some()));
    nulls_have_reasons(summary);
}

#[test]
fn a_file_gets_the_object_and_standard_output_the_report() {
    let (workplace, server) = (Workplace::new(), engine());
    let told = workplace
        .bench(&server.url(), &["-n", "3", "--osl", "3", "--json", "summary.json", "--out", "run"]);
    let told = told.exits(0);
    assert!(told.out.contains("Latencies") && told.out.contains("run directory"), "{}", told.out);
    let summary: Value = serde_json::from_str(&workplace.read("summary.json")).unwrap();
    let kept: Value = serde_json::from_str(&workplace.read("run/summary.json")).unwrap();
    assert_eq!(summary, kept);
    let files: Vec<_> = std::fs::read_dir(workplace.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 2, "something else was left behind: {files:?}");
}
