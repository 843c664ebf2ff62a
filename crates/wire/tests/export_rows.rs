//! Export rows: the keys that the documentation names, of the right types,
//! whatever became of the request.

#[allow(dead_code, reason = "one builder for the tests of two crates")]
#[path = "../../report/tests/runs/mod.rs"]
mod runs;

use measure::definition::{Definition, Endpoint, GOODPUT};
use measure::request::Settings;
use measure::{FailureKind, NotSentKind, Outcome, Record};
use serde_json::Value;
use wire::export::{csv, row};

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

/// Cells by column of each line; a reader of its own, so that the writer is not
/// held against itself: quotes double, and a line may end inside them.
fn cells(file: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut rest = file.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\r' if !quoted && rest.peek() == Some(&'\n') => {
                rest.next();
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    assert!(!quoted && cell.is_empty() && row.is_empty(), "the last line has an end");
    rows
}

fn table(records: &[Record]) -> Vec<Vec<String>> {
    let file = csv::file(records, &GOODPUT, Settings::default());
    cells(std::str::from_utf8(&file).expect("the file is UTF-8"))
}

#[test]
fn every_scalar_of_a_row_has_a_column_in_the_same_order() {
    let row = row(&runs::healthy().records[0], &GOODPUT, Settings::default());
    let no_cell = ["labels", "icl_ms", "server_timings"];
    let keys: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
    let keys: Vec<&str> = keys.into_iter().filter(|key| !no_cell.contains(key)).collect();
    assert_eq!(keys, csv::COLUMNS);
}

#[test]
fn a_table_holds_what_the_rows_hold() {
    for (name, run) in runs::all() {
        let table = table(&run.records);
        assert_eq!(table.len(), run.records.len() + 1, "{name}");
        for (record, line) in run.records.iter().zip(&table[1..]) {
            let row = row(record, &GOODPUT, Settings::default());
            assert_eq!(line.len(), table[0].len(), "{name}");
            for (title, cell) in table[0].iter().zip(line) {
                let value = match title.strip_prefix("label.") {
                    Some(label) => &row["labels"][label],
                    None => &row[title.as_str()],
                };
                match value {
                    Value::Null => assert_eq!(cell, "", "{name}: {title}"),
                    Value::Number(number) => assert_eq!(*cell, number.to_string(), "{title}"),
                    Value::String(text) => assert_eq!(cell.trim_start_matches('\''), text),
                    _ => assert_eq!(title, "warnings"),
                }
            }
        }
    }
}

#[test]
fn what_a_server_says_stays_in_its_cell_and_is_no_formula() {
    let mut record = runs::failing().records.swap_remove(60);
    record.answer.message = Some("=HYPERLINK(\"http://x\",\"a\")\r\nsecond, line".to_owned());
    record.answer.finish_reason = Some("@stop".to_owned());
    record.planned.labels = vec![("tier, \"1\"".to_owned(), "-1".to_owned())];
    let table = table(&[record]);
    let cell = |title: &str| {
        let column = table[0].iter().position(|name| name == title).expect("a column");
        table[1][column].as_str()
    };
    assert_eq!(table.len(), 2);
    assert_eq!(cell("message"), "'=HYPERLINK(\"http://x\",\"a\")\r\nsecond, line");
    assert_eq!(cell("finish_reason"), "'@stop");
    assert_eq!(cell("label.tier, \"1\""), "'-1");
    assert_eq!(cell("ttft_ms"), "");
}

#[test]
fn a_run_without_requests_is_a_line_of_titles() {
    let table = table(&[]);
    assert_eq!(table, [csv::COLUMNS]);
}
