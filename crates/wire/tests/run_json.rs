//! `run.json`: comes back whole, is readable for ever, and bad bytes are told
//! and never believed.

use measure::Span;
use measure::definition::Endpoint;
use measure::deployment::Deployment;
use measure::facts::{
    Floor, InstrumentFacts, LoadFacts, LoadKind, ReplayFacts, RunFacts, WorkloadFacts,
};
use measure::fairness::Isolated;
use measure::hardware::{self, Accelerator, ModelShape, Precision};
use measure::request::Settings;
use measure::slo::{Label, Labelled, Quantity, Slo, Statistic, Term};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::Value;
use wire::run::{Manifest, ManifestError, Setting, VERSION, decode, encode};

const GOLDEN: &[u8] = include_bytes!("golden/run-v1.json");

/// The manifest of the golden file. Never change either: the file is what
/// version 1 wrote, and it must decode to this for ever.
fn golden() -> Manifest {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let setting = |name: &str, value: &str, origin: &str| Setting {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: origin.to_owned(),
    };
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Manifest {
        argv: words(&["goodput", "bench", "--url", "http://10.0.0.7:8000", "--label", "城市=上海"]),
        settings: vec![
            setting("url", "http://10.0.0.7:8000", "command line"),
            setting("request-rate", "12.5", "config file"),
            setting("seed", "0", "default"),
        ],
        facts: golden_facts(),
        host: vec![pair("kernel", "6.8.0"), pair("cpus", "16")],
        started_at: "2026-11-29T16:30:11.123456Z".to_owned(),
        anchor_monotonic_ns: u64::MAX,
        written_by: "goodput 0.1.0".to_owned(),
        files: vec![pair("requests-0-0.parquet", "sha256:00ff")],
        // Version 1 at first had neither.
        validity: Vec::new(),
        definitions: Vec::new(),
    }
}

fn golden_facts() -> RunFacts {
    RunFacts {
        run_id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
        target: "http://10.0.0.7:8000/v1/completions".to_owned(),
        engine: Some("vllm 0.27.1".to_owned()),
        model: Some("example/model-8b".to_owned()),
        simulated: true,
        api: "openai-completions".to_owned(),
        endpoint: Endpoint::Completions,
        load: LoadFacts {
            kind: LoadKind::Capped,
            request_rate: Some(12.5),
            burstiness: Some(0.1),
            users: Some(8),
            arrivals: "gamma process, burstiness 0.1".to_owned(),
            planned_duration: Some(Span::from_us(60_000_001)),
            seed: u64::MAX,
            schedule_hash: "5f2b1d00c3a94e77".to_owned(),
            replay: None,
        },
        workload: WorkloadFacts {
            source: "custom prompts.jsonl: 20 rows".to_owned(),
            input_lengths: "as the rows are".to_owned(),
            output_lengths: "128 ± 25 %".to_owned(),
            tokenizer: None,
            cache_regime: "warm".to_owned(),
            prefix_tokens: None,
            oversampled: Some(7.5),
            notes: vec!["2 rows were skipped".to_owned()],
            ..WorkloadFacts::default()
        },
        slo: Some(Slo {
            terms: vec![
                Term { quantity: Quantity::Ttft, limit_ms: 300.0 },
                Term { quantity: Quantity::Tpot, limit_ms: 0.1 },
            ],
            labelled: Vec::new(),
        }),
        settings: Settings { stall_ms: 250.5, reading_tok_s: 5.0, events_kept: true },
        percentiles: vec![75.0, 99.9],
        instrument: InstrumentFacts {
            stamp_source: "kernel".to_owned(),
            client_lag_us: Some([1.0, 20.5, 300.0]),
            busiest_thread: Some(0.25),
            throttled: Some(Span::from_us(3)),
            planned_requests: Some(750),
            ..InstrumentFacts::default()
        },
        request_timeout: Some(Span::from_ms(600_000)),
        source_duration_s: Some(60.25),
        as_reported: vec![("p99_tpot_ms".to_owned(), 20.9)],
        isolated: Vec::new(),
        deployment: Deployment::default(),
        rows_kept: true,
        interrupted: true,
    }
}

#[test]
fn version_1_is_read_for_ever() {
    assert_eq!(decode(GOLDEN).unwrap(), golden());
}

#[test]
fn what_version_1_holds_is_still_written() {
    let old: Value = serde_json::from_slice(GOLDEN).unwrap();
    let new: Value = serde_json::from_slice(&encode(&golden())).unwrap();
    assert_kept("", &old, &new);
}

/// Every member of `old` stands in `new` with the same value; `new` may have
/// more.
fn assert_kept(path: &str, old: &Value, new: &Value) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in old {
                let path = format!("{path}.{key}");
                assert_kept(&path, value, new.get(key).unwrap_or_else(|| panic!("{path} is gone")));
            }
        }
        _ => assert_eq!(old, new, "{path}"),
    }
}

#[test]
fn a_newer_version_is_refused_with_a_sentence_that_says_what_to_do() {
    // Its form may be another one; only the version is looked at.
    let newer = br#"{"format_version": 2, "facts": 7}"#;
    let error = decode(newer).unwrap_err();
    assert!(matches!(error, ManifestError::Newer { found: 2 }));
    assert_eq!(
        error.to_string(),
        "run.json has format version 2; this goodput reads up to 1: take a newer one"
    );
    assert_eq!(VERSION, 1, "a new version needs a golden file of its own");
}

#[test]
fn a_version_that_nobody_writes_is_refused() {
    let text = String::from_utf8(GOLDEN.to_vec()).unwrap();
    let zero = text.replacen("\"format_version\": 1", "\"format_version\": 0", 1);
    let error = decode(zero.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("format_version") && error.contains('0'), "{error}");
}

#[test]
fn unknown_members_are_ignored_at_every_level() {
    fn salt(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.values_mut().for_each(salt);
                object.insert("of_a_later_version".to_owned(), serde_json::json!([1, {"x": null}]));
            }
            Value::Array(items) => items.iter_mut().for_each(salt),
            _ => {}
        }
    }
    let mut value: Value = serde_json::from_slice(GOLDEN).unwrap();
    salt(&mut value);
    assert_eq!(decode(value.to_string().as_bytes()).unwrap(), golden());
}

#[test]
fn values_that_no_version_writes_are_named() {
    for (path, field) in
        [("/facts/load/kind", "load.kind"), ("/facts/endpoint", "endpoint"), ("/facts/slo", "slo")]
    {
        let mut value: Value = serde_json::from_slice(GOLDEN).unwrap();
        *value.pointer_mut(path).unwrap() = Value::from("nonsense");
        let error = decode(value.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(field) && error.contains("nonsense"), "{error}");
    }
}

#[test]
fn a_member_that_is_missing_is_named() {
    let value: Value = serde_json::from_slice(GOLDEN).unwrap();
    for key in value.as_object().unwrap().keys() {
        let mut cut = value.clone();
        cut.as_object_mut().unwrap().remove(key);
        let error = decode(cut.to_string().as_bytes()).unwrap_err().to_string();
        assert!(error.contains(key.as_str()), "{key}: {error}");
    }
}

#[test]
fn a_limit_that_nothing_reaches_comes_back() {
    // JSON has no infinity; a run must be readable whatever its settings were.
    let mut manifest = golden();
    manifest.facts.settings.stall_ms = f64::INFINITY;
    assert_eq!(decode(&encode(&manifest)).unwrap(), manifest);
    manifest.facts.as_reported = vec![("a".to_owned(), f64::NAN), ("b".to_owned(), 1.0)];
    let read = decode(&encode(&manifest)).unwrap();
    assert_eq!(read.facts.as_reported, [("b".to_owned(), 1.0)]);
}

#[test]
fn an_accelerator_that_no_catalogue_has_is_named() {
    let mut manifest = golden();
    manifest.facts.deployment.accelerator = hardware::accelerator("h100").ok().copied();
    manifest.facts.deployment.weights = Some(Precision::Fp8);
    let written = String::from_utf8(encode(&manifest)).unwrap();
    for (known, field) in [("\"h100-sxm\"", "accelerator"), ("\"fp8\"", "weights")] {
        let text = written.replacen(known, "\"nonsense\"", 1);
        let error = decode(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(field) && error.contains("nonsense"), "{error}");
    }
}

#[test]
fn bytes_that_are_no_manifest_are_refused() {
    for bytes in [&b""[..], b"null", b"[]", b"{}", b"\xff\xfe", b"{\"format_version\": -1}"] {
        assert!(matches!(decode(bytes), Err(ManifestError::Form(_))), "{bytes:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(decode(deep.as_bytes()).is_err());
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

/// Any finite number, of every size.
fn number() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

prop_compose! {
    fn load()(
        kind in select(LoadKind::ALL),
        request_rate in option::of(number()),
        burstiness in option::of(number()),
        users in any::<Option<u32>>(),
        arrivals in text(),
        planned_us in any::<Option<i64>>(),
        seed in any::<u64>(),
        schedule_hash in text(),
    ) -> LoadFacts {
        let planned_duration = planned_us.map(Span::from_us);
        // Some runs replayed a trace, some a part of one.
        let replay = (seed % 2 == 1).then_some(ReplayFacts {
            rows: seed / 2,
            speed: 0.5,
            window_s: (seed % 3 == 1).then_some([0.25, 600.0]),
        });
        LoadFacts {
            kind, request_rate, burstiness, users, arrivals, planned_duration, seed, schedule_hash,
            replay,
        }
    }
}

prop_compose! {
    fn slo()(
        quantities in subsequence(Quantity::PLAIN, 0..=3),
        limits in vec(0.0..1e12f64, 3),
        labelled in any::<bool>(),
    ) -> Slo {
        let terms = quantities.into_iter().zip(limits);
        // A set bounds the start of an answer once.
        let start = |quantity| matches!(quantity, Quantity::Ttft | Quantity::Ttfc);
        let terms: Vec<Term> =
            terms.map(|(quantity, limit_ms)| Term { quantity, limit_ms }).collect();
        let whatever = terms.iter().any(|term| term.quantity == Quantity::Start);
        let terms: Vec<Term> =
            terms.into_iter().filter(|term| !(whatever && start(term.quantity))).collect();
        let of_label = Term { quantity: Quantity::Icl(Statistic::P99), limit_ms: 100.0 };
        let label = Label { name: Some("tenant".to_owned()), value: "a".to_owned() };
        let labelled = labelled.then(|| Labelled { label, terms: vec![of_label] });
        Slo { terms, labelled: labelled.into_iter().collect() }
    }
}

prop_compose! {
    fn instrument()(
        stamp_source in text(),
        lag in option::of([number(), number(), number()]),
        stamp_error_p99_us in option::of(number()),
        clock_steps in any::<u32>(),
        busiest_thread in option::of(number()),
        round_trip_us in any::<Option<i64>>(),
        throttled_us in any::<Option<i64>>(),
        planned_requests in any::<Option<u64>>(),
        floor in option::of([number(), number(), number()]),
    ) -> InstrumentFacts {
        InstrumentFacts {
            stamp_source,
            client_lag_us: lag,
            stamp_error_p99_us,
            clock_steps,
            busiest_thread,
            round_trip: round_trip_us.map(Span::from_us),
            throttled: throttled_us.map(Span::from_us),
            planned_requests,
            floor: floor.map(|[a, b, c]| Floor {
                measured_at: "2026-11-29T16:30:11Z".to_owned(),
                lateness_us: [a, b, c],
                stamp_us: [c, a],
                highest_valid_chunks_s: b,
                ..Floor::default()
            }),
        }
    }
}

prop_compose! {
    fn workload()(
        words in [text(), text(), text(), text()],
        tokenizer in option::of(text()),
        prefix_tokens in option::of(any::<u32>()),
        oversampled in option::of(number()),
        notes in vec(text(), 0..3),
        use_case in option::of(text()),
        random_text in any::<bool>(),
    ) -> WorkloadFacts {
        let [source, input_lengths, output_lengths, cache_regime] = words;
        WorkloadFacts {
            source,
            input_lengths,
            output_lengths,
            tokenizer,
            cache_regime,
            prefix_tokens,
            oversampled,
            use_case,
            random_text,
            output_forced: !random_text,
            engine_facts: notes.clone(),
            notes,
        }
    }
}

prop_compose! {
    fn machines()(
        model in option::of(select(hardware::models())),
        accelerator in option::of(select(hardware::accelerators())),
        bandwidth in number(),
        topology in vec((select(measure::deployment::ROLES), any::<u32>()), 0..3),
        counts in any::<[Option<u32>; 4]>(),
        precisions in [option::of(select(Precision::ALL)), option::of(select(Precision::ALL))],
        price_per_hour in option::of(number()),
    ) -> Deployment {
        let [tensor_parallel, pipeline_parallel, seats, token_budget] = counts;
        let [weights, kv_cache] = precisions;
        Deployment {
            // A shape of one's own, and a peak that was set.
            model: model.map(|shape| ModelShape { layers: shape.layers + 1, ..shape }),
            accelerator: accelerator
                .map(|one| Accelerator { bandwidth_bytes_per_s: bandwidth, ..one }),
            topology: topology.into_iter().map(|(role, count)| (role.to_owned(), count)).collect(),
            tensor_parallel, pipeline_parallel, weights, kv_cache, price_per_hour, seats,
            token_budget,
        }
    }
}

prop_compose! {
    fn facts()(
        words in [text(), text(), text()],
        named in [option::of(text()), option::of(text())],
        flags in any::<[bool; 5]>(),
        load in load(),
        workload in workload(),
        slo in option::of(slo()),
        settings in [number(), number()],
        percentiles in vec(0.0..=100.0f64, 0..4),
        instrument in instrument(),
        // A time-out of 35 years is enough.
        timeout_us in option::of(0..1i64 << 50),
        source_duration_s in option::of(number()),
        as_reported in vec((text(), number()), 0..4),
        isolated in vec(([text(), text(), text()], number()), 0..3),
        deployment in machines(),
    ) -> RunFacts {
        let isolated = isolated.into_iter().map(|([name, value, run_id], ms)| Isolated {
            name, value, run_id, figures_ms: vec![("ttft_ms", "p50", ms), ("e2el_ms", "p99", ms)],
        }).collect();
        let [run_id, target, api] = words;
        let [engine, model] = named;
        let [simulated, chat, interrupted, events_kept, rows_kept] = flags;
        let [stall_ms, reading_tok_s] = settings;
        RunFacts {
            run_id, target, engine, model, simulated, api,
            endpoint: if chat { Endpoint::Chat } else { Endpoint::Completions },
            load, workload, slo,
            settings: Settings { stall_ms, reading_tok_s, events_kept },
            percentiles, instrument,
            request_timeout: timeout_us.map(Span::from_us),
            source_duration_s, as_reported, isolated, rows_kept, deployment, interrupted,
        }
    }
}

prop_compose! {
    fn manifest()(
        argv in vec(text(), 0..4),
        settings in vec([text(), text(), text()], 0..4),
        facts in facts(),
        host in vec((text(), text()), 0..3),
        words in [text(), text()],
        anchor_monotonic_ns in any::<u64>(),
        files in vec((text(), text()), 0..3),
        validity in vec(text(), 0..3),
        definitions in vec((text(), text()), 0..3),
    ) -> Manifest {
        let [started_at, written_by] = words;
        let setting = |[name, value, origin]: [String; 3]| Setting { name, value, origin };
        Manifest {
            argv,
            settings: settings.into_iter().map(setting).collect(),
            facts, host, started_at, anchor_monotonic_ns, written_by, files, validity, definitions,
        }
    }
}

proptest! {
    #[test]
    fn a_manifest_comes_back_whole(manifest in manifest()) {
        let bytes = encode(&manifest);
        prop_assert_eq!(&decode(&bytes).unwrap(), &manifest);
        prop_assert_eq!(encode(&decode(&bytes).unwrap()), bytes);
    }

    #[test]
    fn any_bytes_give_a_manifest_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
    }

    #[test]
    fn damage_gives_a_manifest_or_an_error(
        at in 0..GOLDEN.len(),
        byte in any::<u8>(),
        cut in 0..=GOLDEN.len(),
    ) {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] = byte;
        let _ = decode(&bytes);
        bytes.truncate(cut);
        let _ = decode(&bytes);
        // A member of the wrong type is an error and no default.
        let mut value: Value = serde_json::from_slice(GOLDEN).unwrap();
        value["facts"]["load"] = Value::from(at);
        prop_assert!(decode(value.to_string().as_bytes()).is_err());
    }
}
