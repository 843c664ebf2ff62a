//! Rows of a run: every field comes back, old files stay readable, and bad
//! bytes are told and never believed.

mod resealed;

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt8Builder};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use measure::{
    Answer, At, Carries, Counts, Event, Events, FailureKind, NotSentKind, Outcome, Planned,
    ReasoningDisclosure, Record, SourceTimes, Span, Stamps, Tokens, Warnings,
};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::properties::WriterProperties;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use wire::rows::{self, RowsError};

use crate::resealed::reseal;

const GOLDEN: &[u8] = include_bytes!("golden/rows-v1.parquet");

/// Where the checksum stands.
const SEAL: &[u8] = b"goodput.rows.crc32";

/// The records of the golden file. Never change them: the file is what version
/// 1 wrote, and it must decode to these for ever.
fn golden_records() -> Vec<Record> {
    vec![full(), failed(), never_sent(), imported()]
}

/// A record with something in every field.
fn full() -> Record {
    let mut events = Events::default();
    for (at_us, carries, tokens, choice) in [
        (12_345, Carries::ROLE.with(Carries::CHOICE), 0, 0),
        (20_000, Carries::TEXT.with(Carries::CHOICE), 3, 0),
        (20_000, Carries::TEXT.with(Carries::SHARED_READ), 1, 1),
        (u32::MAX, Carries::FINISH.with(Carries::USAGE), u16::MAX, u8::MAX),
    ] {
        events.push(Event { at_us, carries, tokens, choice });
    }
    Record {
        index: 7,
        worker: 2,
        planned: Planned {
            labels: vec![
                ("class".to_owned(), "interactive".to_owned()),
                ("tenant".to_owned(), "Łódź, 上海".to_owned()),
            ],
            session: 5,
            turn: 3,
            input_tokens: Some(Tokens::new(4096)),
            max_output_tokens: Some(Tokens::new(128)),
            output_forced: true,
        },
        stamps: Stamps {
            intended_at: At::from_us(-1),
            released_at: Some(At::from_us(0)),
            resolved_at: Some(At::from_us(1)),
            connected_at: Some(At::from_us(2)),
            secured_at: Some(At::from_us(3)),
            sent_at: Some(At::from_us(4)),
            written_at: Some(At::from_us(5)),
            first_byte_at: Some(At::from_us(6)),
            headers_at: Some(At::from_us(7)),
            ended_at: Some(At::from_us(i64::MAX)),
        },
        events,
        answer: Answer {
            http_status: Some(200),
            retry_after: Some(Span::from_us(1_500_000)),
            message: Some("a message".to_owned()),
            error_code: Some("a_code".to_owned()),
            finish_reason: Some("stop".to_owned()),
            counts: Counts {
                prompt: Some(Tokens::new(4097)),
                usage: Some(Tokens::new(128)),
                server: Some(Tokens::new(127)),
                logprobs: Some(Tokens::new(126)),
                tokenizer: Some(Tokens::new(125)),
                reasoning: Some(Tokens::new(30)),
                cached: Some(Tokens::new(2048)),
            },
            choices: 2,
            first_event_tokens: Some(Tokens::new(3)),
            reasoning_disclosure: Some(ReasoningDisclosure::Summary),
            server_timings: vec![
                ("queue_ms".to_owned(), 0.1),
                ("queue_ms".to_owned(), -0.0),
                ("total_ms".to_owned(), 1.0 / 3.0),
            ],
            served_by: Some("pod-3".to_owned()),
            text: Some("Hello".to_owned()),
            reasoning: Some("because".to_owned()),
            tool_arguments: Some("{\"a\":1}".to_owned()),
            comments: 9,
            reconnects: 1,
            warnings: Warnings::from_bits(
                Warnings::MISSING_DONE.bits() | Warnings::BURSTY_DELIVERY.bits() | 1 << 31,
            ),
            body_bytes: u64::MAX,
        },
        outcome: Outcome::Ok,
        source: None,
    }
}

fn failed() -> Record {
    let mut record = Record::planned(8, At::from_us(250_000), Planned::default());
    record.outcome = Outcome::Failed(FailureKind::InBand);
    // Empty is not absent.
    record.answer.message = Some(String::new());
    record
}

fn never_sent() -> Record {
    let mut record = Record::planned(u32::MAX, At::from_us(i64::MIN), Planned::default());
    record.outcome = Outcome::NotSent(NotSentKind::PortExhausted);
    record
}

fn imported() -> Record {
    let mut record = Record::planned(9, At::ZERO, Planned::default());
    record.outcome = Outcome::Empty;
    record.source = Some(SourceTimes {
        ttft_s: Some(0.1 + 0.2),
        itl_s: vec![f64::MIN_POSITIVE, 0.0, -0.0, f64::INFINITY],
        start_s: Some(1.756e9),
        latency_s: None,
    });
    record
}

#[test]
fn the_golden_file_of_version_1_decodes_to_its_records() {
    let decoded = rows::decode(GOLDEN).expect("version 1 is readable for ever");
    assert_eq!(exact(&decoded), exact(&golden_records()));
}

#[test]
#[ignore = "writes the golden file of a new version, once; it refuses to replace one"]
fn write_the_golden_file() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/rows-v1.parquet");
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    assert_eq!(length, 0, "a golden file is never written again");
    std::fs::write(path, rows::encode(&golden_records())).expect("the folder is writable");
}

#[test]
fn the_same_records_give_the_same_bytes() {
    assert_eq!(rows::encode(&golden_records()), rows::encode(&golden_records()));
}

#[test]
fn no_rows_are_a_file_too() {
    let file = rows::encode(&[]);
    assert_eq!(rows::decode(&file), Ok(Vec::new()));
    assert_eq!(rows::count(&file), Ok(0));
}

#[test]
fn an_import_without_any_figure_stays_an_import() {
    let mut record = imported();
    record.source = Some(SourceTimes::default());
    let decoded = rows::decode(&rows::encode(&[record])).expect("it was just written");
    assert_eq!(decoded[0].source, Some(SourceTimes::default()));
}

#[test]
fn every_outcome_comes_back() {
    let mut outcomes = vec![Outcome::Ok, Outcome::Empty, Outcome::Cancelled];
    outcomes.extend(FailureKind::ALL.iter().map(|&kind| Outcome::Failed(kind)));
    outcomes.extend(NotSentKind::ALL.iter().map(|&kind| Outcome::NotSent(kind)));
    let records: Vec<Record> = outcomes
        .iter()
        .map(|&outcome| Record { outcome, ..Record::planned(0, At::ZERO, Planned::default()) })
        .collect();
    let decoded = rows::decode(&rows::encode(&records)).expect("it was just written");
    assert_eq!(decoded.iter().map(|record| record.outcome).collect::<Vec<_>>(), outcomes);
}

#[test]
fn rows_beyond_one_row_group_keep_their_order() {
    let records: Vec<Record> = (0..60_000)
        .map(|index| {
            let mut record = Record::planned(index, At::from_us(index.into()), Planned::default());
            let at_us = index.wrapping_mul(2_654_435_761);
            record.events.push(Event { at_us, carries: Carries::TEXT, tokens: 1, choice: 0 });
            record
        })
        .collect();
    let file = rows::encode(&records);
    assert_eq!(rows::count(&file), Ok(60_000));
    let extent = rows::extent(&file).expect("it is a file of rows");
    assert_eq!(extent.rows, 60_000);
    let events: usize = records.iter().map(|record| record.events.len()).sum();
    assert!(extent.events as usize >= events, "{extent:?}");
    assert!(rows::decode(&file).expect("it was just written") == records);
}

#[test]
fn joined_files_hold_the_rows_of_all_in_order() {
    let records = golden_records();
    let parts = records.chunks(2).chain([&[][..]]).map(rows::encode).collect();
    let joined = rows::join(parts).expect("all are whole");
    assert_eq!(rows::count(&joined), Ok(4));
    assert_eq!(exact(&rows::decode(&joined).expect("it was just joined")), exact(&records));
    let again = rows::join(vec![joined, rows::encode(&records)]).expect("both are whole");
    assert_eq!(rows::decode(&again).expect("it was just joined").len(), 8);
}

#[test]
fn a_damaged_file_is_not_joined() {
    let mut bad = rows::encode(&golden_records());
    bad[100] ^= 1;
    let error = rows::join(vec![rows::encode(&[]), bad]).expect_err("one is damaged");
    assert!(matches!(error, RowsError::Checksum { .. }), "{error}");
}

#[test]
fn any_flipped_bit_and_any_cut_is_an_error() {
    let file = GOLDEN;
    for place in 0..file.len() {
        let mut bad = file.to_vec();
        bad[place] ^= 1 << (place % 8);
        assert!(rows::decode(&bad).is_err(), "bit flipped in byte {place}");
        assert!(rows::decode(&file[..place]).is_err(), "cut after byte {place}");
    }
}

#[test]
fn what_is_no_parquet_file_is_said_to_be_none() {
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"{}", b"PAR1\xff\xff\xff\xffPAR1"] {
        assert_eq!(rows::decode(bytes), Err(RowsError::NotParquet), "{bytes:?}");
    }
}

#[test]
fn a_newer_version_is_named() {
    let mut file = GOLDEN.to_vec();
    let place = find(&file, b"goodput.rows.version") + b"goodput.rows.version".len() + 2;
    assert_eq!(file[place], b'1');
    file[place] = b'2';
    assert_eq!(rows::decode(&file), Err(RowsError::Version { found: "2".to_owned() }));
}

#[test]
fn a_file_without_our_version_is_not_ours() {
    let mut file = GOLDEN.to_vec();
    let place = find(&file, b"goodput.rows.version");
    file[place] = b'G';
    assert_eq!(rows::decode(&file), Err(RowsError::NotRows));
}

#[test]
fn a_missing_column_is_named() {
    for column in ["index", "kind", "event_tokens", "source_latency_s"] {
        let file = rewritten(|columns| columns.retain(|(field, _)| field.name() != column));
        assert_eq!(rows::decode(&file), Err(RowsError::MissingColumn { column }));
    }
}

#[test]
fn a_foreign_column_is_ignored() {
    let extended = rewritten(|columns| {
        let zeros: ArrayRef = Arc::new(UInt32Array::from(vec![0; 4]));
        columns.insert(1, (Field::new("zeros", DataType::UInt32, false), zeros));
    });
    let decoded = rows::decode(&extended).expect("it only has more");
    assert_eq!(exact(&decoded), exact(&golden_records()));
}

#[test]
fn a_column_of_another_type_is_named() {
    let file = replaced("http_status", Arc::new(UInt32Array::from(vec![200; 4])));
    let (column, found) = ("http_status", "UInt32".to_owned());
    assert_eq!(rows::decode(&file), Err(RowsError::WrongType { column, found }));
}

#[test]
fn a_hole_where_every_row_has_a_value_is_named() {
    let file = replaced("worker", Arc::new(UInt32Array::from(vec![Some(0), Some(0), None, None])));
    assert_eq!(rows::decode(&file), Err(RowsError::MissingValue { column: "worker", row: 2 }));
}

#[test]
fn a_name_outside_the_list_is_named() {
    let cases = [
        (
            "outcome",
            "won",
            RowsError::UnknownName { column: "outcome", row: 0, value: "won".into() },
        ),
        ("kind", "bad", RowsError::UnknownName { column: "kind", row: 1, value: "bad".into() }),
        (
            "reasoning_disclosure",
            "sung",
            RowsError::UnknownName { column: "reasoning_disclosure", row: 0, value: "sung".into() },
        ),
    ];
    for (column, value, expected) in cases {
        let file = replaced(column, Arc::new(StringArray::from(vec![value; 4])));
        assert_eq!(rows::decode(&file), Err(expected));
    }
    let file = replaced("kind", Arc::new(StringArray::from(vec![None::<&str>; 4])));
    assert_eq!(rows::decode(&file), Err(RowsError::MissingValue { column: "kind", row: 1 }));
}

#[test]
fn event_columns_of_different_lengths_are_refused() {
    let mut lists = ListBuilder::new(UInt8Builder::new());
    (0..4).for_each(|_| lists.append(true));
    let file = replaced("event_choice", Arc::new(lists.finish()));
    assert_eq!(rows::decode(&file), Err(RowsError::UnevenEvents { row: 0 }));
}

#[test]
fn a_hole_in_a_list_is_named() {
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append(true);
    lists.values().append_null();
    (0..3).for_each(|_| lists.append(true));
    let file = replaced("warnings", Arc::new(lists.finish()));
    assert_eq!(rows::decode(&file), Err(RowsError::MissingValue { column: "warnings", row: 1 }));
}

/// Files with a right checksum and bad content: what a person may make who
/// wants to harm the reader. Every third byte keeps the test short.
#[test]
fn a_resealed_file_with_bad_content_is_an_error_or_records_but_no_panic() {
    for place in (4..GOLDEN.len()).step_by(3) {
        let mut bad = GOLDEN.to_vec();
        bad[place] ^= 0x80 >> (place % 8);
        let _ = rows::decode(&reseal(bad, SEAL));
    }
}

/// Records with their floats as bits: a NaN must come back as itself, and the
/// two zeros are two numbers.
fn exact(records: &[Record]) -> Vec<(Record, Vec<Option<u64>>)> {
    let bare = |record: &Record| {
        let mut record = record.clone();
        let mut floats = Vec::new();
        let mut take = |value: &mut f64| floats.push(Some(std::mem::take(value).to_bits()));
        record.answer.server_timings.iter_mut().for_each(|(_, value)| take(value));
        if let Some(source) = &mut record.source {
            source.itl_s.iter_mut().for_each(&mut take);
            for value in [&mut source.ttft_s, &mut source.start_s, &mut source.latency_s] {
                floats.push(value.take().map(f64::to_bits));
            }
        }
        (record, floats)
    };
    records.iter().map(bare).collect()
}

/// The golden file with other columns, written by the Parquet library alone.
fn rewritten(change: impl FnOnce(&mut Vec<(Field, ArrayRef)>)) -> Vec<u8> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from_static(GOLDEN)).unwrap();
    let metadata = builder.metadata().file_metadata().key_value_metadata().cloned();
    let batch = builder.build().unwrap().next().unwrap().unwrap();
    let fields = batch.schema().fields().iter().map(|field| (**field).clone()).collect::<Vec<_>>();
    let mut columns = fields.into_iter().zip(batch.columns().iter().cloned()).collect();
    change(&mut columns);
    let schema = Schema::new(columns.iter().map(|(field, _)| field.clone()).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::new(schema), arrays).unwrap();
    let properties = WriterProperties::builder().set_key_value_metadata(metadata).build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    reseal(writer.into_inner().unwrap(), SEAL)
}

fn replaced(name: &str, array: ArrayRef) -> Vec<u8> {
    rewritten(|columns| {
        let place = columns.iter().position(|(field, _)| field.name() == name).unwrap();
        columns[place] = (Field::new(name, array.data_type().clone(), true), array);
    })
}

fn find(file: &[u8], key: &[u8]) -> usize {
    file.windows(key.len()).rposition(|window| window == key).expect("the key is in the file")
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{0,12}")
}

fn count() -> impl Strategy<Value = Option<Tokens>> {
    option::of(any::<u32>().prop_map(Tokens::new))
}

fn at() -> impl Strategy<Value = Option<At>> {
    option::of(any::<i64>().prop_map(At::from_us))
}

fn float() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits)
}

fn planned() -> impl Strategy<Value = Planned> {
    (vec((".{0,6}", ".{0,6}"), 0..3), any::<(u32, u16, bool)>(), count(), count()).prop_map(
        |(labels, (session, turn, output_forced), input_tokens, max_output_tokens)| Planned {
            labels,
            session,
            turn,
            input_tokens,
            max_output_tokens,
            output_forced,
        },
    )
}

fn stamps() -> impl Strategy<Value = Stamps> {
    (any::<i64>(), [at(), at(), at(), at(), at(), at(), at(), at(), at()]).prop_map(
        |(intended, stamps)| {
            let [released_at, resolved_at, connected_at, secured_at, sent_at, ..] = stamps;
            let [.., written_at, first_byte_at, headers_at, ended_at] = stamps;
            Stamps {
                intended_at: At::from_us(intended),
                released_at,
                resolved_at,
                connected_at,
                secured_at,
                sent_at,
                written_at,
                first_byte_at,
                headers_at,
                ended_at,
            }
        },
    )
}

fn events() -> impl Strategy<Value = Events> {
    vec(any::<(u32, u16, u16, u8)>(), 0..20).prop_map(|list| {
        let mut events = Events::default();
        for (at_us, carries, tokens, choice) in list {
            events.push(Event { at_us, carries: Carries::from_bits(carries), tokens, choice });
        }
        events
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Ok),
        Just(Outcome::Empty),
        Just(Outcome::Cancelled),
        proptest::sample::select(FailureKind::ALL).prop_map(Outcome::Failed),
        proptest::sample::select(NotSentKind::ALL).prop_map(Outcome::NotSent),
    ]
}

fn answer() -> impl Strategy<Value = Answer> {
    let texts = [text(), text(), text(), text(), text(), text(), text()];
    let counts = [count(), count(), count(), count(), count(), count(), count(), count()];
    let disclosure = option::of(proptest::sample::select(ReasoningDisclosure::ALL));
    let timings = vec((".{0,6}", float()), 0..3);
    let numbers = any::<(Option<u16>, Option<i64>, u8, u32, u16, u32, u64)>();
    (texts, counts, disclosure, timings, numbers).prop_map(
        |(texts, counts, reasoning_disclosure, server_timings, numbers)| {
            let [message, error_code, finish_reason, served_by, text, reasoning, tool_arguments] =
                texts;
            let [prompt, usage, server, logprobs, tokenizer, reasoning_count, cached, first] =
                counts;
            let (http_status, retry_us, choices, comments, reconnects, warnings, body_bytes) =
                numbers;
            Answer {
                http_status,
                retry_after: retry_us.map(Span::from_us),
                message,
                error_code,
                finish_reason,
                counts: Counts {
                    prompt,
                    usage,
                    server,
                    logprobs,
                    tokenizer,
                    reasoning: reasoning_count,
                    cached,
                },
                choices,
                first_event_tokens: first,
                reasoning_disclosure,
                server_timings,
                served_by,
                text,
                reasoning,
                tool_arguments,
                comments,
                reconnects,
                warnings: Warnings::from_bits(warnings),
                body_bytes,
            }
        },
    )
}

fn source() -> impl Strategy<Value = SourceTimes> {
    let maybe = || option::of(float());
    (maybe(), vec(float(), 0..5), maybe(), maybe()).prop_map(
        |(ttft_s, itl_s, start_s, latency_s)| SourceTimes { ttft_s, itl_s, start_s, latency_s },
    )
}

fn record() -> impl Strategy<Value = Record> {
    (any::<(u32, u32)>(), planned(), stamps(), events(), answer(), outcome(), option::of(source()))
        .prop_map(|((index, worker), planned, stamps, events, answer, outcome, source)| Record {
            index,
            worker,
            planned,
            stamps,
            events,
            answer,
            outcome,
            source,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_field_of_every_record_comes_back(records in vec(record(), 0..12)) {
        let decoded = rows::decode(&rows::encode(&records)).expect("it was just written");
        prop_assert_eq!(exact(&decoded), exact(&records));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(rows::decode(&bytes).is_err());
        let mut framed = b"PAR1".to_vec();
        framed.extend(&bytes);
        framed.extend((bytes.len() as u32).to_le_bytes());
        framed.extend(b"PAR1");
        prop_assert!(rows::decode(&framed).is_err());
    }
}
