//! Export rows: the keys that the documentation names, of the right types,
//! whatever became of the request.

#[allow(dead_code, reason = "one builder for the tests of two crates")]
#[path = "../../report/tests/runs/mod.rs"]
mod runs;

use measure::definition::{Definition, Endpoint, GOODPUT};
use measure::request::Settings;
use measure::{FailureKind, NotSentKind, Outcome, Record};
use serde_json::Value;
use wire::export::row;

/// Keys and types of a row; a type that ends in `?` may be null.
const KEYS: &[(&str, &str)] = &[
    ("id", "integer"),
    ("labels", "object"),
    ("outcome", "string"),
    ("kind", "string?"),
    ("status", "integer?"),
    ("intended_at_ms", "number"),
    ("sent_at_ms", "number?"),
    ("ended_at_ms", "number?"),
    ("ttft_ms", "number?"),
    ("ttfc_ms", "number?"),
    ("tpot_ms", "number?"),
    ("e2el_ms", "number?"),
    ("icl_ms", "array?"),
    ("finish_lag_ms", "number?"),
    ("input_tokens", "integer?"),
    ("output_tokens", "integer?"),
    ("tokens_source", "string?"),
    ("reasoning_tokens", "integer?"),
    ("cached_tokens", "integer?"),
    ("finish_reason", "string?"),
    ("ttft_event", "integer?"),
    ("events", "integer?"),
    ("output_chunks", "integer?"),
    ("text", "string?"),
    ("server_timings", "object"),
    ("reconnects", "integer"),
    ("warnings", "array"),
];

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" => value.is_u64(),
        "number" => value.is_f64() || value.is_i64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type: {other}"),
    }
}

#[track_caller]
fn check(record: &Record, definition: &Definition) -> Value {
    let row = row(record, definition, Settings::default());
    for (key, kind) in KEYS {
        let value = row.get(key).unwrap_or_else(|| panic!("{key} is missing in {row}"));
        let (kind, may_be_null) =
            kind.strip_suffix('?').map_or((*kind, false), |kind| (kind, true));
        assert!(is_a(value, kind) || (may_be_null && value.is_null()), "{key}: {value}");
    }
    // One line a request, whatever its text.
    assert!(!row.to_string().contains('\n'));
    row
}

/// Every outcome that there is.
fn outcomes() -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Ok, Outcome::Empty, Outcome::Cancelled];
    outcomes.extend(FailureKind::ALL.iter().copied().map(Outcome::Failed));
    outcomes.extend(NotSentKind::ALL.iter().copied().map(Outcome::NotSent));
    outcomes
}

#[test]
fn every_key_is_there_for_every_outcome() {
    let whole = runs::healthy().records.remove(0);
    for outcome in outcomes() {
        let mut record = whole.clone();
        record.outcome = outcome;
        let row = check(&record, &GOODPUT);
        assert_eq!(row["outcome"], outcome.name());
        assert_eq!(row["kind"].as_str(), outcome.kind());
        let ok = outcome == Outcome::Ok;
        for key in ["ttft_ms", "ttfc_ms", "tpot_ms", "e2el_ms", "icl_ms", "finish_lag_ms"] {
            assert_eq!(row[key].is_null(), !ok, "{key} of {outcome:?}");
        }
    }
}

#[test]
fn every_row_of_every_run_has_the_keys_under_every_definition() {
    let vllm = Definition::preset("vllm", Endpoint::Chat).expect("a preset");
    for (_, run) in runs::all() {
        for record in &run.records {
            check(record, &GOODPUT);
            check(record, &vllm);
        }
    }
}

#[test]
fn ttft_gaps_and_finish_lag_add_up_to_e2el_in_whole_microseconds() {
    let us = |value: &Value| {
        let ms = value.as_f64().unwrap();
        let us = (ms * 1e3).round();
        assert!((ms * 1e3 - us).abs() < 1e-6 * us.abs().max(1.0), "{ms} ms are no whole µs");
        us as i64
    };
    let mut seen = 0;
    for (_, run) in runs::all() {
        for record in run.records.iter().filter(|record| record.source.is_none()) {
            let row = check(record, &GOODPUT);
            if row["outcome"] != "ok" {
                continue;
            }
            let gaps: i64 = row["icl_ms"].as_array().unwrap().iter().map(us).sum();
            let parts = us(&row["ttft_ms"]) + gaps + us(&row["finish_lag_ms"]);
            assert_eq!(parts, us(&row["e2el_ms"]), "{row}");
            seen += 1;
        }
    }
    assert!(seen > 1000);
}

#[test]
fn a_row_says_what_its_record_says() {
    let record = &runs::healthy().records[4];
    let row = check(record, &GOODPUT);
    // Intended at 4 · 40 ms, sent 50 µs later, first token after 154 ms.
    assert_eq!(row["id"], 4);
    assert_eq!(row["labels"]["tenant"], "上海交易所");
    assert_eq!((&row["intended_at_ms"], &row["sent_at_ms"]), (&160.0.into(), &160.05.into()));
    assert_eq!(row["ttft_ms"], 154.05);
    // 20 gaps of 12 ms and 2 ms to the finish event.
    assert_eq!(row["e2el_ms"], 154.05 + 240.0 + 2.0);
    assert_eq!(row["tpot_ms"], 242.0 / 20.0);
    assert_eq!(row["icl_ms"].as_array().unwrap().len(), 20);
    assert_eq!((&row["input_tokens"], &row["output_tokens"]), (&512.into(), &21.into()));
    assert_eq!((&row["tokens_source"], &row["cached_tokens"]), (&"usage".into(), &256.into()));
    // The role comes first, then 21 chunks and the finish.
    assert_eq!((&row["ttft_event"], &row["events"]), (&1.into(), &23.into()));
    assert_eq!(row["output_chunks"], 21);
    let served = Definition { start: measure::definition::ClockStart::Sent, ..GOODPUT };
    assert_eq!(check(record, &served)["ttft_ms"], 154.0);
}

#[test]
fn events_that_nobody_could_see_are_null_and_not_zero() {
    let unsent = runs::failing().records.into_iter().find(|record| record.stamps.sent_at.is_none());
    let imported = runs::imported_chat().records.remove(0);
    for record in [unsent.expect("a request that was not sent"), imported] {
        let row = check(&record, &GOODPUT);
        assert!(row["events"].is_null() && row["output_chunks"].is_null(), "{row}");
    }
    let refused = &runs::failing().records[60];
    let row = check(refused, &GOODPUT);
    assert_eq!((&row["status"], &row["events"]), (&429.into(), &0.into()));
}
