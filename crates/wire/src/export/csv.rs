//! `export --to x.csv`: the scalars of an export row as a table of RFC 4180,
//! one line a request.

use std::collections::BTreeSet;

use ::csv::{Terminator, WriterBuilder};
use measure::Record;
use measure::definition::Definition;
use measure::request::Settings;
use serde_json::Value;

/// The columns in their order, each a key of [`super::row`]. One column a label
/// follows them. Lists and objects have no cell: the JSON lines hold them. The
/// names of `warnings` stand in one cell with blanks between.
pub const COLUMNS: &[&str] = &[
    "id",
    "session",
    "turn",
    "outcome",
    "kind",
    "status",
    "message",
    "error_code",
    "retry_after_s",
    "intended_at_ms",
    "released_at_ms",
    "connected_at_ms",
    "sent_at_ms",
    "headers_at_ms",
    "ended_at_ms",
    "ttft_ms",
    "ttfc_ms",
    "tpot_ms",
    "tpot_adjusted_ms",
    "e2el_ms",
    "finish_lag_ms",
    "input_tokens",
    "output_tokens",
    "tokens_source",
    "reasoning_tokens",
    "cached_tokens",
    "planned_input_tokens",
    "max_output_tokens",
    "finish_reason",
    "ttft_event",
    "events",
    "output_chunks",
    "text",
    "reasoning",
    "tool_arguments",
    "reconnects",
    "warnings",
];

/// The whole file. A label becomes a column of its own and not a cell of JSON,
/// so that a spreadsheet can group by it.
pub fn file(records: &[Record], definition: &Definition, settings: Settings) -> Vec<u8> {
    let labels: BTreeSet<&str> = records
        .iter()
        .flat_map(|record| record.planned.labels.iter().map(|(name, _)| name.as_str()))
        .collect();
    let mut table = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    let mut write = |cells: Vec<String>| {
        table.write_record(cells).expect("memory takes every row, and all rows are as wide");
    };
    let titles = COLUMNS.iter().map(|name| (*name).to_owned());
    write(titles.chain(labels.iter().map(|name| format!("label.{name}"))).collect());
    for record in records {
        let row = super::row(record, definition, settings);
        let values = COLUMNS.iter().map(|name| &row[*name]);
        write(values.chain(labels.iter().map(|name| &row["labels"][*name])).map(cell).collect());
    }
    table.into_inner().expect("memory takes every row")
}

/// A value as a cell. What has no value is empty, so that no mean takes it for
/// zero.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => guarded(text),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            guarded(&names.join(" "))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Text that a spreadsheet does not take for a formula. A server may have
/// written it, and a formula can read files and call programs; an apostrophe in
/// front makes it text. Blanks do not hide a formula from every program, and
/// some take the wide forms of the signs too.
fn guarded(text: &str) -> String {
    let first = text.trim_start_matches([' ', '\u{a0}', '\u{feff}']).chars().next();
    let begins = |c: char| "=+-@\t\r\n＝＋－＠".contains(c);
    if first.is_some_and(begins) { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_that_a_spreadsheet_would_compute_begins_with_an_apostrophe() {
        for text in
            ["=1+1", "+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "  =cmd|' /C calc'!A0", "＝1", "-"]
        {
            assert_eq!(cell(&json!(text)), format!("'{text}"));
        }
        for text in ["stop", "", "a=b", "'quoted", "{\"error\": 1}", "5 - 3"] {
            assert_eq!(cell(&json!(text)), text);
        }
    }

    #[test]
    fn a_number_stays_one_and_nothing_is_empty() {
        assert_eq!(cell(&json!(-0.05)), "-0.05");
        assert_eq!(cell(&json!(154.05)), "154.05");
        assert_eq!(cell(&Value::Null), "");
        assert_eq!(cell(&json!(0)), "0");
        assert_eq!(cell(&json!(["no_usage", "clock_step"])), "no_usage clock_step");
        assert_eq!(cell(&json!([])), "");
    }
}
