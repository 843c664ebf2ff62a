use serde_json::Value;

use super::*;
use crate::dataset::case::expect;

const D05: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/datasets/D05_burstgpt_v1.csv"
));

const D07: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/datasets/D07_azure2023.csv"
));

fn load(bytes: &[u8]) -> (Vec<LengthRow>, DatasetNotes) {
    read(bytes, &Columns::default(), None)
}

fn lengths(rows: &[LengthRow]) -> Value {
    rows.iter().map(|row| Value::from(vec![row.input.get(), row.output.get()])).collect()
}

/// Instants in whole microseconds, as the case's seconds are.
fn holds_instants(notes: &DatasetNotes, expected: &Value) {
    let at: Vec<_> = notes.times.iter().map(|at| at.us()).collect();
    let expected = expected.as_array().unwrap().iter();
    let expected: Vec<_> = expected.map(|s| (s.as_f64().unwrap() * 1e6).round() as i64).collect();
    assert_eq!(at, expected);
}

#[test]
fn d05_failed_requests_of_burstgpt_are_skipped() {
    let expect = expect("D05");
    let (rows, notes) = load(D05);
    assert_eq!(Value::from(notes.entries), expect["rows"]);
    assert_eq!(Value::from(rows.len()), expect["usable"]);
    assert_eq!(Value::from(notes.skipped_by_reason["failed_request"]), expect["failed_rows"]);
    assert_eq!(notes.skipped_count(), 3);
    assert_eq!(notes.skipped[0].to_string(), "line 4: failed request, without response tokens");
    assert_eq!(lengths(&rows), expect["lens"]);
    holds_instants(&notes, &expect["arrivals_s"]);
    let (gpt4, _) = read(D05, &Columns::default(), Some("gpt-4"));
    assert_eq!(Value::from(gpt4.len()), expect["gpt4_usable"]);
}

#[test]
fn d07_dates_of_azure_have_seven_digits() {
    let expect = expect("D07");
    let (rows, notes) = load(D07);
    assert_eq!(Value::from(rows.len()), expect["rows"]);
    assert_eq!(lengths(&rows), expect["lens"]);
    holds_instants(&notes, &expect["arrivals_s"]);
    assert_eq!((notes.skipped_count(), notes.truncated_at), (0, None));
    assert_eq!(rows.last().unwrap().source_row, 4);
}

#[test]
fn columns_are_found_by_name_or_as_they_were_named() {
    let file = b"out,class,response tokens,in\n7,a,8,9\n5,b,6,3.0\n";
    let refused = load(file).1.refused.unwrap().to_string();
    assert!(refused.starts_with("there is no column Request tokens or ContextTokens"), "{refused}");
    assert!(refused.contains("the file has out, class, response tokens, in;"), "{refused}");
    assert!(refused.contains("--dataset-column input=COLUMN"), "{refused}");
    let columns = Columns::parse(&["input=in,output=OUT,label=class".to_owned()]).unwrap();
    let (rows, notes) = read(file, &columns, None);
    assert_eq!(notes.refused, None);
    assert_eq!(lengths(&rows), serde_json::json!([[9, 7], [3, 5]]));
    assert_eq!(rows[1].labels, [("class".to_owned(), "b".to_owned())]);
    assert!(notes.times.is_empty());
    let refused = read(file, &columns, Some("GPT-4")).1.refused.unwrap().to_string();
    assert!(refused.starts_with("there is no column Model;"), "{refused}");
}

#[test]
fn a_broken_line_is_named_and_a_cut_file_told() {
    let file = b"Timestamp,Request tokens,Response tokens\n1,x,3\nsoon,4,5\n2,0,5\n3,99999999,5\n4,5\n5,6,7\n6,";
    let (rows, notes) = load(file);
    assert_eq!(lengths(&rows), serde_json::json!([[6, 7]]));
    let told: Vec<_> = notes.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "line 2: the prompt's length is not a whole number",
            "line 3: time is neither a number of seconds nor a date like 2023-11-16 18:15:46.68",
            "line 4: empty prompt",
            "line 5: prompt length is over 16777216",
            "line 6: not as many fields as the first line has columns",
            "line 8: not as many fields as the first line has columns",
        ]
    );
    assert_eq!(notes.truncated_at, Some(8));
}
