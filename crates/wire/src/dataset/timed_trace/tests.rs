use serde_json::json;
use workload::estimate_tokens;

use super::*;
use crate::dataset::case::expect;
use crate::dataset::mooncake;

const D09: &[u8] = include_bytes!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../testdata/cases/datasets/D09_mooncake.jsonl"
));

fn load(text: &str, shape: &Shape) -> (Rows, DatasetNotes) {
    read(text.as_bytes(), shape, &estimate_tokens)
}

fn lengths(rows: Rows) -> Vec<LengthRow> {
    match rows {
        Rows::Lengths(rows) => rows,
        Rows::Prompts(_) | Rows::Conversations { .. } => panic!("rows of prompts"),
    }
}

fn told(notes: &DatasetNotes) -> Vec<String> {
    notes.skipped.iter().map(ToString::to_string).collect()
}

fn us(notes: &DatasetNotes) -> Vec<i64> {
    notes.times.iter().map(|time| time.us()).collect()
}

#[test]
fn d09_blocks_are_counted_and_ids_keep_64_bits() {
    let expect = expect("D09");
    let (rows, notes) = mooncake::read(D09, &estimate_tokens);
    let rows = lengths(rows);
    let bad: Vec<u64> = notes.skipped.iter().map(|skipped| skipped.place.number()).collect();
    assert_eq!(json!(bad), expect["bad_lines"]);
    assert_eq!(told(&notes), ["line 3: 2 hash ids for 20 tokens, which need 1 of 512"]);
    // The case has an instant for each line, the rejected one too.
    let lines = [1, 2, 4, 5_usize];
    assert!(rows.iter().map(|row| row.source_row as usize).eq(lines));
    let expected: Vec<i64> = lines
        .iter()
        .map(|line| (expect["arrivals_s"][line - 1].as_f64().unwrap() * 1e6).round() as i64)
        .collect();
    assert_eq!(us(&notes), expected);
    let blocks: Vec<&Blocks> = rows.iter().map(|row| row.blocks.as_ref().unwrap()).collect();
    for (row, line) in blocks.iter().zip(lines) {
        assert_eq!(json!(row.ids.len()), expect["blocks_needed"][line - 1]);
        assert_eq!(row.size.get(), 512);
    }
    // 0, 1, 2³², 2³³ and the largest of all.
    let ids: std::collections::BTreeSet<u64> =
        blocks.iter().flat_map(|blocks| blocks.ids.iter().copied()).collect();
    assert_eq!(json!(ids.len()), expect["distinct_ids"]);
    assert!(ids.contains(&u64::MAX) && ids.contains(&(1 << 33)));
}

#[test]
fn a_trace_of_qwen_has_seconds_and_blocks_of_16() {
    // The format of Alibaba's Bailian traces; input 20 is a whole block and a
    // cut one.
    let file = "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":61.114,\"input_length\":20,\"output_length\":132,\"type\":\"text\",\"turn\":1,\"hash_ids\":[7,8]}\n\
                {\"timestamp\":61.5,\"input_length\":16,\"output_length\":1,\"hash_ids\":[7]}\n";
    let (rows, notes) = load(file, &Shape::default());
    assert_eq!(us(&notes), [0, 386_000]);
    let rows = lengths(rows);
    assert_eq!(*rows[0].blocks.as_ref().unwrap().ids, [7, 8]);
    assert_eq!((rows[1].input.get(), rows[1].output.get()), (16, 1));
}

#[test]
fn keys_factor_and_block_size_are_as_named() {
    let shape = Shape {
        block: 4,
        seconds: 1e-9,
        time: "at".to_owned(),
        input: "in".to_owned(),
        output: "out".to_owned(),
        hash_ids: "blocks".to_owned(),
    };
    let file = "{\"at\":\"1500000000\",\"in\":\"8\",\"out\":3.0,\"blocks\":[\"a\",-4]}\n\
                {\"at\":2000000000,\"in\":5,\"out\":3,\"blocks\":[\"a\",\"-4\"]}\n\
                {\"at\":2500000000,\"in\":5,\"out\":3,\"blocks\":[]}\n\
                {\"at\":2600000000,\"in\":5,\"out\":3}\n";
    let (rows, notes) = load(file, &shape);
    assert_eq!(told(&notes), [""; 0]);
    assert_eq!(us(&notes), [0, 500_000, 1_000_000, 1_100_000]);
    let rows = lengths(rows);
    let ids = |row: usize| &rows[row].blocks.as_ref().unwrap().ids;
    assert_eq!(ids(0), ids(1), "a negative number is what its text is");
    assert_ne!(ids(0)[0], ids(0)[1]);
    assert_eq!((&rows[2].blocks, &rows[3].blocks), (&None, &None), "text of their own");
}

#[test]
fn rows_may_hold_the_prompts_themselves() {
    let file = "{\"timestamp\":\"2024-05-10 00:00:00.5+00:00\",\"prompt\":\"red fox\",\"output_length\":7}\n\
                {\"timestamp\":\"2024-05-10T00:00:02Z\",\"messages\":[{\"role\":\"user\",\"content\":\"blue jay\"}],\"max_tokens\":3,\"label\":\"b\"}\n\
                {\"timestamp\":\"2024-05-10T00:00:03Z\",\"input_length\":5,\"output_length\":7}\n";
    let (rows, notes) = load(file, &Shape::default());
    let Rows::Prompts(prompts) = rows else { panic!("rows of lengths") };
    assert_eq!(prompts[0].max_output_tokens, Some(Tokens::new(7)));
    assert_eq!(prompts[1].max_output_tokens, Some(Tokens::new(3)));
    assert_eq!((prompts[1].source_row, prompts[1].labels.len()), (Some(2), 1));
    assert_eq!(us(&notes), [0, 1_500_000]);
    let other = "line 3: a prompt among rows of lengths, or lengths among prompts; a file has one \
                 of the two";
    assert_eq!(told(&notes), [other]);
}

#[test]
fn what_is_wrong_with_a_row_is_told_with_its_line() {
    let file = "{\"input_length\":5,\"output_length\":7}\n\
                {\"timestamp\":\"soon\",\"input_length\":5,\"output_length\":7}\n\
                {\"timestamp\":1e300,\"input_length\":5,\"output_length\":7}\n\
                {\"timestamp\":1,\"output_length\":7}\n\
                {\"timestamp\":1,\"input_length\":0,\"output_length\":7}\n\
                {\"timestamp\":1,\"input_length\":99999999,\"output_length\":7}\n\
                {\"timestamp\":1,\"input_length\":\"x\",\"output_length\":7}\n\
                {\"timestamp\":1,\"input_length\":5,\"output_length\":0}\n\
                {\"timestamp\":1,\"input_length\":5,\"output_length\":7,\"hash_ids\":[18446744073709551616]}\n\
                {\"timestamp\":1,\"input_length\":5,\"output_length\":7,\"hash_ids\":7}\n\
                [1]\n\
                {\"timestamp\":1,\"inp";
    let (rows, notes) = load(file, &Shape::default());
    assert!(rows.is_empty());
    assert_eq!(
        told(&notes),
        [
            "line 1: no time: the row has no timestamp",
            "line 2: time is neither a number of seconds nor a date like 2023-11-16 18:15:46.68",
            "line 3: time is neither a number of seconds nor a date like 2023-11-16 18:15:46.68",
            "line 4: the row has neither a prompt nor input_length",
            "line 5: empty prompt",
            "line 6: prompt length is over 16777216",
            "line 7: the prompt's length is not a whole number",
            "line 8: zero length",
            "line 9: hash ids are not a list of texts or whole numbers under 2^64",
            "line 10: hash ids are not a list of texts or whole numbers under 2^64",
            "line 11: not a JSON object",
            "line 12: broken JSON: EOF while parsing a string at column 19",
        ]
    );
    assert_eq!(notes.truncated_at, Some(12));
}
