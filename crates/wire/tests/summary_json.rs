//! `summary.json`: every key is always there, every null has its reason, and
//! the schema in the documentation is the one that is kept.

mod designed;
#[allow(dead_code, reason = "one builder for the tests of two crates")]
#[path = "../../report/tests/runs/mod.rs"]
mod runs;

use std::path::PathBuf;
use std::{env, fs};

use designed::{DISTRIBUTION, GOODPUT, NESTED, TOP};
use measure::definition::{Definition, Endpoint};
use measure::summary::summarise;
use serde_json::{Map, Value, json};
use wire::summary::{KEYS, SCHEMA, diagnosis, schema, to_json};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compares a file of the repository with what is made today.
fn assert_current(name: &str, text: &str) {
    let path = path(name);
    if env::var_os("UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, text).expect("the file can be written");
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    if stored == text {
        return;
    }
    let differs = stored.lines().zip(text.lines()).position(|(old, new)| old != new);
    let line = differs.unwrap_or_else(|| stored.lines().count().min(text.lines().count()));
    panic!(
        "{name} is not what is made today, from line {} on:\n  stored {:?}\n  made   {:?}\nrun \
         UPDATE=1 cargo test -p wire --test summary_json and read the difference",
        line + 1,
        stored.lines().nth(line),
        text.lines().nth(line)
    );
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The summaries of all runs, under our definitions and under vLLM's.
fn summaries() -> Vec<(String, Value)> {
    let vllm = Definition::preset("vllm", Endpoint::Chat).expect("a preset");
    let mut summaries = Vec::new();
    for (name, run) in runs::all() {
        summaries.push((name.to_owned(), to_json(&run.summary())));
        let theirs = summarise(&run.records, &run.facts, &vllm);
        summaries.push((format!("{name} as vllm"), to_json(&theirs)));
    }
    summaries.push(("seen".to_owned(), to_json(&runs::seen())));
    summaries
}

fn named<'a>(summaries: &'a [(String, Value)], name: &str) -> &'a Value {
    &summaries.iter().find(|(known, _)| known == name).expect("a run").1
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|item| item.as_str().expect("a string")).collect()
}

#[test]
fn a_healthy_and_a_failing_run_look_as_they_did() {
    let summaries = summaries();
    assert_current("tests/golden/summary-healthy.json", &pretty(named(&summaries, "healthy")));
    assert_current("tests/golden/summary-failing.json", &pretty(named(&summaries, "failing")));
}

#[test]
fn what_was_seen_inside_is_there_with_its_sources() {
    let summaries = summaries();
    let seen = named(&summaries, "seen");
    assert_eq!(seen["stages_ms"][1]["id"], "queue");
    assert_eq!(seen["stages_ms"][1]["mean_ms"], 150.0);
    assert_eq!(seen["stages_ms"][3]["is_residual"], true);
    assert_eq!(seen["metrics"]["queueing_ms"], json!({"mean": 150.0}));
    assert_eq!(seen["stages"]["foreign_share"], 0.012);
    assert_eq!(seen["efficiency"]["mfu"], 0.052);
    assert_eq!(seen["efficiency"]["inputs"]["mfu"], json!(["weights of 16.1 GB"]));
    assert!(seen["efficiency"]["hfu"].is_null());
    assert_eq!(seen["absent"]["efficiency.hfu"], "DCGM was not read: add --metrics-url");
    assert_eq!(seen["efficiency"]["panel"][1]["why"], "DCGM was not read: add --metrics-url");
    let waiting = &seen["signals"]["readings"]["queue_depth"];
    assert_eq!((&waiting["value"], &waiting["max"]), (&json!(12.0), &json!(15.0)));
    assert_eq!(seen["signals"]["readings"]["preemptions"]["per_s"], 0.1);
    assert_eq!(seen["signals"]["readings"]["queue_time_s"]["value"], 0.15);
    let finding = &seen["findings"][0];
    assert_eq!(finding["rule"], "seat_limit");
    assert_eq!(finding["class"], "queueing");
    assert_eq!(finding["confidence"], "confirmed");
    assert_eq!(finding["evidence"][0]["from"], "server");
    assert_eq!(finding["directions"][0]["flag"], "--max-num-seqs");
    assert_eq!(finding["improves"], json!(["ttft_ms", "goodput_req_s"]));
    assert_eq!(seen["lints"][0]["concerns"], "ttft_ms");
    // What diagnose prints are the same findings.
    let told = diagnosis(&runs::seen());
    assert_eq!(told["findings"], seen["findings"]);
    assert_eq!(told["missing"], json!(["how often prefixes were evicted"]));
}

#[test]
fn every_key_of_the_design_is_in_every_summary() {
    for (name, summary) in summaries() {
        for (path, keys) in NESTED {
            for key in *keys {
                assert!(summary[*path].get(key).is_some(), "{name}: {path}.{key}");
            }
        }
        for group in ["metrics", "service_metrics", "all_requests_metrics"] {
            for (key, figures) in summary[group].as_object().unwrap() {
                // A stage is a mean of the server's, or null.
                let wanted: &[&str] = match key.as_str() {
                    "interactivity_tok_s" => &["p50"],
                    "queueing_ms" | "prefill_ms" => &[],
                    _ => DISTRIBUTION,
                };
                for figure in wanted {
                    assert!(figures.get(figure).is_some(), "{name}: {group}.{key}.{figure}");
                }
            }
        }
        if !summary["goodput"].is_null() {
            for key in GOODPUT {
                assert!(summary["goodput"].get(key).is_some(), "{name}: goodput.{key}");
            }
        }
        for key in TOP {
            assert!(summary.get(key).is_some(), "{name}: {key}");
        }
        assert_eq!(TOP, KEYS);
        assert_eq!(summary["schema"], SCHEMA);
    }
}

/// Paths of all nulls, those inside distributions apart.
fn nulls(path: &str, value: &Value, outside: &mut Vec<String>) {
    let Value::Object(object) = value else {
        if value.is_null() {
            outside.push(path.to_owned());
        }
        return;
    };
    if object.contains_key("few_samples") {
        let weighted = |key: &&String| key.starts_with("token_weighted");
        let missing = object.keys().filter(weighted).filter(|key| object[*key].is_null());
        outside.extend(missing.map(|key| format!("{path}.{key}")));
        assert_explained(path, object);
        return;
    }
    for (key, value) in object {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        nulls(&path, value, outside);
    }
}

/// A figure is null because there is no sample, or for a reason that the
/// distribution names.
fn assert_explained(path: &str, figures: &Map<String, Value>) {
    let reasons: u64 = figures["undefined"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(figures["n_undefined"], reasons, "{path}");
    let unbounded = strings(&figures["unbounded"]);
    for (key, value) in figures {
        if key.starts_with("token_weighted") {
            continue;
        }
        if !value.is_null() {
            assert!(!unbounded.contains(&key.as_str()), "{path}.{key} is a number and unbounded");
            continue;
        }
        let bounded = figures.get("at_least_ms").is_some_and(|bounds| bounds.get(key).is_some());
        let failures = !unbounded.is_empty() || figures.contains_key("at_least_ms");
        // The spread of a set with an infinite member is no number either, and
        // a percentile that was asked for has no name in `unbounded`.
        let derived = failures && (key == "std" || key.contains('.') || key == "p75");
        let hidden = figures["undefined"].get("many_tokens_per_chunk").is_some();
        assert!(
            figures["n"] == 0 || hidden || bounded || unbounded.contains(&key.as_str()) || derived,
            "{path}.{key} is null for no reason that the distribution names"
        );
    }
}

#[test]
fn every_null_is_named_in_absent_with_its_reason() {
    for (name, summary) in summaries() {
        let absent = summary["absent"].as_object().unwrap();
        let mut outside = Vec::new();
        nulls("", &summary, &mut outside);
        assert!(!outside.is_empty(), "{name}: something is always missing");
        for path in &outside {
            let covered = absent.keys().any(|key| {
                path == key
                    || path.strip_prefix(key.as_str()).is_some_and(|rest| rest.starts_with('.'))
            });
            assert!(covered, "{name}: {path} is null and absent does not say why");
        }
        for (key, reason) in absent {
            let words = reason.as_str().unwrap();
            assert!(words.len() > 5 && !words.ends_with('.'), "{name}: {key}: {words:?}");
            let value = key.split('.').try_fold(&summary, |value, part| value.get(part));
            let empty = value.is_none_or(|value| match value {
                Value::Null => true,
                Value::Array(items) => items.is_empty(),
                Value::Object(object) => {
                    object.get("n") == Some(&json!(0)) || object.values().any(Value::is_null)
                }
                _ => false,
            });
            assert!(empty, "{name}: {key} is there, though absent says {words:?}");
        }
    }
}

#[test]
fn without_answers_no_latency_is_zero() {
    let summaries = summaries();
    for name in ["unreachable", "nothing_sent"] {
        for group in ["metrics", "service_metrics", "all_requests_metrics"] {
            for (key, figures) in named(&summaries, name)[group].as_object().unwrap() {
                for figure in ["mean", "min", "p50", "p99", "p999", "max"] {
                    let value = figures.get(figure).unwrap_or(&Value::Null);
                    assert!(value.is_null(), "{name}: {group}.{key}.{figure} is {value}");
                }
            }
        }
    }
}

#[test]
fn the_healthy_run_has_the_figures_that_its_records_were_made_for() {
    let summaries = summaries();
    let healthy = named(&summaries, "healthy");
    // 25 of 1000 wait 400 ms; 25 a second for 40 s; 21 tokens each.
    let goodput = &healthy["goodput"];
    assert_eq!(
        (&goodput["good"], &goodput["of"], &goodput["attainment"]),
        (&json!(975), &json!(1000), &json!(0.975))
    );
    assert_eq!(goodput["req_s"], 975.0 / 40.0);
    assert_eq!(goodput["tok_s"], 975.0 * 21.0 / 40.0);
    assert_eq!(
        goodput["per_slo"]["ttft"],
        json!({"limit_ms": 300.0, "limit": 300.0, "met": 975, "of": 1000})
    );
    // Every 40th misses, and 39 is odd: all of them are of the other tenant.
    assert_eq!(
        goodput["per_label"]["tenant"],
        json!({
            "interactive": {"slo": "ttft ≤ 300 ms, tpot ≤ 60 ms", "good": 725, "of": 750},
            "上海交易所": {"slo": "ttft ≤ 300 ms, tpot ≤ 60 ms", "good": 250, "of": 250},
        })
    );
    let ttft = &healthy["metrics"]["ttft_ms"];
    // Sent 50 µs late; 2.5 % wait 400 ms, so that everything from P98 on is it.
    assert_eq!((&ttft["p99"], &ttft["p999"]), (&json!(400.05), &json!(400.05)));
    assert_eq!(healthy["service_metrics"]["ttft_ms"]["p99"], 400.0);
    assert_eq!(healthy["metrics"]["tpot_ms"]["p50"], 12.1);
    assert_eq!(strings(&ttft["few_samples"]), ["p999", "p99.9"]);
    assert!(ttft["p75"].is_number() && ttft["p99.9"].is_number());
    assert_eq!(
        healthy["tokens"],
        json!({
            "input": 512_000, "output": 21_000, "source": "usage", "sources": {"usage": 1000},
            "cached": 256_000, "cached_share": 0.5, "wasted": 0,
        })
    );
    assert_eq!(healthy["validity"]["lateness_us"], json!({"p50": 50.0, "p99": 50.0, "max": 50.0}));
}

#[test]
fn failures_are_at_infinity_and_time_outs_at_their_limit() {
    let summaries = summaries();
    let failing = named(&summaries, "failing");
    assert_eq!(
        failing["outcomes"]["by_kind"],
        json!({
            "client_resource": 2, "disconnected": 5, "http_status": 15, "in_band": 2,
            "total_timeout": 10,
        })
    );
    assert_eq!(failing["outcomes"]["by_status"], json!({"429": 12, "503": 3}));
    // 35 of 95 did not come at all or in time: all of the tail.
    let e2el = &failing["all_requests_metrics"]["e2el_ms"];
    assert_eq!((&e2el["n"], &e2el["n_undefined"]), (&json!(95), &json!(5)));
    assert!(e2el["p99"].is_null() && strings(&e2el["unbounded"]).contains(&"p99"));
    // 60 end well, 10 are cut off at 30 s: rank 0.9 · 69 is past the 60th.
    let mut cut = runs::failing();
    cut.records.retain(|record| record.index < 60 || (75..85).contains(&record.index));
    let cut = to_json(&cut.summary());
    let e2el = &cut["all_requests_metrics"]["e2el_ms"];
    assert!(e2el["p90"].is_null());
    assert_eq!(e2el["at_least_ms"]["p90"], 30_000.0);
    assert_eq!(e2el["censored"], json!(10.0 / 70.0));
    assert_eq!(strings(&e2el["unbounded"]), Vec::<&str>::new());
}

#[test]
fn the_schema_in_the_documentation_is_current() {
    assert_current("../../docs/summary.schema.json", &pretty(&schema()));
}

#[test]
fn every_summary_keeps_to_the_schema() {
    let schema = schema();
    assert_eq!(schema["required"], json!(KEYS));
    for (name, summary) in summaries() {
        check(&schema, &schema, &summary, &name);
    }
}

#[test]
fn the_check_of_the_schema_finds_what_is_wrong() {
    let schema = schema();
    let good = to_json(&runs::healthy().summary());
    let breaks: [fn(&mut Value); 5] = [
        |summary| drop(summary.as_object_mut().unwrap().remove("caveats")),
        |summary| summary["load"]["max_in_flight"] = json!(1.5),
        |summary| summary["metrics"]["ttft_ms"]["p99"] = json!("400"),
        |summary| summary["validity"]["verdict"] = json!("FINE"),
        |summary| drop(summary["service_metrics"]["e2el_ms"].as_object_mut().unwrap().remove("n")),
    ];
    for (position, break_it) in breaks.into_iter().enumerate() {
        let mut bad = good.clone();
        break_it(&mut bad);
        let found = std::panic::catch_unwind(|| check(&schema, &schema, &bad, ""));
        assert!(found.is_err(), "case {position} passed");
    }
}

/// The part of JSON Schema that ours uses.
fn check(root: &Value, schema: &Value, value: &Value, path: &str) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        check(root, target, value, path);
    }
    if let Some(right) = schema.get("const") {
        assert_eq!(value, right, "{path}");
    }
    if let Some(right) = schema["enum"].as_array() {
        assert!(right.contains(value), "{path}: {value}");
    }
    let kinds = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(_) => strings(&schema["type"]),
        _ => Vec::new(),
    };
    let fits = kinds.iter().any(|kind| is_a(value, kind));
    assert!(kinds.is_empty() || fits, "{path}: {value} is none of {kinds:?}");
    if let Some(items) = value.as_array() {
        for (position, item) in items.iter().enumerate() {
            check(root, &schema["items"], item, &format!("{path}[{position}]"));
        }
    }
    let Some(object) = value.as_object() else { return };
    for key in schema["required"].as_array().into_iter().flatten() {
        assert!(object.contains_key(key.as_str().unwrap()), "{path}: {key} is missing");
    }
    for (key, member) in object {
        let of = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
        check(root, of, member, &format!("{path}.{key}"));
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type of JSON Schema: {other}"),
    }
}
