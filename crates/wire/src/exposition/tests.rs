use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// What a real vLLM 0.27.1 told, after a completion and a chat answer.
const CAPTURE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/captures/vllm_metrics.prom"));

/// A family as its lines say: type, names of labels, and bounds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    kind: String,
    labels: BTreeSet<String>,
    /// Values of labels that are the same for every server.
    values: BTreeSet<String>,
    bounds: Vec<String>,
}

/// Labels whose values are part of the interface.
const FIXED: &[&str] = &["reason", "sleep_state", "source", "finished_reason", "position"];

fn told(text: &str) -> BTreeMap<String, Told> {
    let mut families: BTreeMap<String, Told> = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (family, kind) = rest.split_once(' ').unwrap();
            name = family.to_owned();
            let new = Told { kind: kind.to_owned(), ..Told::default() };
            assert!(families.insert(name.clone(), new).is_none(), "{name} is told twice");
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let (sample, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert!(sample.starts_with(&name), "{line} under {name}");
        let family = families.get_mut(&name).unwrap();
        for pair in labels.trim_end_matches('}').split("\",").filter(|pair| !pair.is_empty()) {
            let (label, value) = pair.split_once("=\"").unwrap();
            let value = value.trim_end_matches('"');
            family.labels.insert(label.to_owned());
            if FIXED.contains(&label) {
                family.values.insert(value.to_owned());
            }
            if label == "le" && !family.bounds.contains(&value.to_owned()) {
                family.bounds.push(value.to_owned());
            }
        }
    }
    families
}

fn facts() -> Facts {
    // Those of the server that was recorded.
    Facts { context: 4096, block_size: 128, blocks: 4096, ..Facts::default() }
}

fn write(profile: Profile, facts: &Facts, engines: &[EngineState]) -> String {
    let mut http = Http::default();
    http.answered(("/v1/completions", "POST"), 200, 10, None, 0.2);
    profile.write(&Snapshot { model: "tiny", created_s: 1.7e9, facts, engines, http: &http })
}

#[test]
fn vllms_families_types_labels_and_bounds_are_those_of_a_real_one() {
    let mut real = told(CAPTURE);
    let absent = |name: &String| {
        Profile::Vllm.absent().iter().any(|(beginning, _)| name.starts_with(beginning))
    };
    real.retain(|name, _| !absent(name));
    let ours = told(&write(Profile::Vllm, &facts(), &[Profile::Vllm.idle_engine(4096)]));
    let names = |all: &BTreeMap<String, Told>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&real));
    for (name, family) in &real {
        assert_eq!(&ours[name], family, "{name}");
    }
}

#[test]
fn the_facts_of_the_cache_are_told_as_a_real_one_tells_them() {
    let line = |text: &str| {
        text.lines().find(|line| line.starts_with("vllm:cache_config_info{")).unwrap().to_owned()
    };
    let facts = Facts {
        cache_dtype: "auto".to_owned(),
        gpu_memory_utilization: 0.92,
        enable_prefix_caching: true,
        kv_cache_bytes: 1_073_741_824.0,
        ..facts()
    };
    let ours = write(Profile::Vllm, &facts, &[Profile::Vllm.idle_engine(4096)]);
    assert_eq!(line(&ours), line(CAPTURE));
}

#[test]
fn a_histogram_cumulates_and_a_value_on_a_bound_is_under_it() {
    let mut histogram = Histogram::new([1.0, 2.0]);
    [0.5, 1.0, 1.5, 9.0].into_iter().for_each(|value| histogram.observe(value));
    histogram.observe_shares(6.0, 4);
    let all: Vec<_> = histogram.cumulated().collect();
    assert_eq!(all, [(1.0, 2), (2.0, 7), (f64::INFINITY, 8)]);
    assert!((histogram.sum() - 18.0).abs() < 1e-12);
    assert_eq!(histogram.with(&histogram).count(), 16);
}

#[test]
fn numbers_are_written_as_the_official_client_writes_them() {
    let cases = [
        (0.0, "0.0"),
        (13720.0, "13720.0"),
        (0.005, "0.005"),
        (100_000.0, "100000.0"),
        (1_000_000.0, "1e+06"),
        (1.278124032e9, "1.278124032e+09"),
        (1.7959602681346378e9, "1.7959602681346378e+09"),
        (f64::INFINITY, "+Inf"),
    ];
    for (value, expected) in cases {
        assert_eq!(text::float(value), expected);
    }
}

#[test]
fn engines_are_told_apart_and_what_is_in_front_is_their_sum() {
    let facts = facts();
    for profile in Profile::ALL {
        let mut engines = [profile.idle_engine(4096), profile.idle_engine(4096)];
        for (place, engine) in engines.iter_mut().enumerate() {
            engine.running = place as u64 + 1;
            engine.finished.abort = 3;
            engine.streamed.ended = 2;
        }
        let text = write(*profile, &facts, &engines);
        told(&text);
        let has = |line: &str| assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        match profile {
            Profile::Vllm => {
                has("vllm:num_requests_running{engine=\"1\",model_name=\"tiny\"} 2.0");
                has(
                    "vllm:request_success_total{engine=\"0\",finished_reason=\"abort\",model_name=\"tiny\"} 3.0",
                );
            }
            Profile::Sglang => {
                has(
                    "sglang:num_running_reqs{dp_rank=\"1\",engine_type=\"unified\",model_name=\"tiny\",moe_ep_rank=\"0\",pp_rank=\"0\",tp_rank=\"0\"} 2.0",
                );
                has(
                    "sglang:num_aborted_requests_total{engine_type=\"unified\",model_name=\"tiny\"} 6.0",
                );
                has(
                    "sglang:num_requests_total{engine_type=\"unified\",is_streaming=\"true\",model_name=\"tiny\"} 4.0",
                );
            }
        }
    }
}

#[test]
fn drafts_are_told_where_there_are_some() {
    let facts = Facts { drafted: 2, ..facts() };
    let mut engine = Profile::Vllm.idle_engine(4096);
    (engine.drafts, engine.accepted) = (10, vec![7, 4]);
    let text = write(Profile::Vllm, &facts, &[engine]);
    let labels = "engine=\"0\",model_name=\"tiny\"";
    for line in [
        format!("vllm:spec_decode_num_drafts_total{{{labels}}} 10.0"),
        format!("vllm:spec_decode_num_draft_tokens_total{{{labels}}} 20.0"),
        format!("vllm:spec_decode_num_accepted_tokens_total{{{labels}}} 11.0"),
        format!(
            "vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position=\"1\"}} 4.0"
        ),
    ] {
        assert!(text.contains(&line), "{line}");
    }
}

#[test]
fn what_never_moves_has_a_reason_and_a_models_name_breaks_no_line() {
    for profile in Profile::ALL {
        assert_eq!(Profile::find(profile.name()), Some(*profile));
        assert!(profile.still().count() > 0);
        assert!(profile.still().all(|(_, reason)| !reason.is_empty()));
    }
    let (facts, http) = (facts(), Http::default());
    let engines = [Profile::Vllm.idle_engine(4096)];
    let model = "a\"b\\c\nd";
    let snapshot =
        Snapshot { model, created_s: 0.0, facts: &facts, engines: &engines, http: &http };
    let text = Profile::Vllm.write(&snapshot);
    assert!(text.contains("model_name=\"a\\\"b\\\\c\\nd\"} 0.0"));
}
