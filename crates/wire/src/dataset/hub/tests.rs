use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field as ArrowField, Fields};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use workload::estimate_tokens;

use super::*;

fn columns(values: &[&str]) -> Columns {
    let values: Vec<_> = values.iter().map(|&value| value.to_owned()).collect();
    Columns::parse(&values).unwrap()
}

fn load(bytes: &[u8], named: &[&str]) -> (Vec<Prompt>, DatasetNotes) {
    read(bytes.to_vec(), &columns(named), &estimate_tokens)
}

fn texts(prompts: &[Prompt]) -> Vec<(String, Option<u32>)> {
    let text = |prompt: &Prompt| match &prompt.content {
        Content::Texts(_) => panic!("one prompt"),
        Content::Text(text) => text.clone(),
        Content::Messages(messages) => messages[0].content.clone(),
    };
    prompts.iter().map(|prompt| (text(prompt), prompt.max_output_tokens.map(Tokens::get))).collect()
}

const ROWS: &str = r#"[
  {"question": "What is 6 times 7?", "answer": "It is 42.", "level": "easy", "n": 9},
  {"question": "And 7 times 8?", "answer": "", "level": 2, "n": 1}
]"#;

#[test]
fn usual_columns_are_found_and_others_named() {
    let (prompts, notes) = load(ROWS.as_bytes(), &[]);
    // "It is 42." is four tokens by the rule of the estimate.
    let expected =
        [("What is 6 times 7?".to_owned(), Some(4)), ("And 7 times 8?".to_owned(), None)];
    assert_eq!(texts(&prompts), expected);
    assert_eq!(notes.refused, None);
    let (prompts, _) = load(ROWS.as_bytes(), &["prompt=answer,output=n", "label=level"]);
    assert_eq!(texts(&prompts), [("It is 42.".to_owned(), Some(9))]);
    assert_eq!(prompts[0].labels, [("level".to_owned(), "easy".to_owned())]);
}

#[test]
fn a_column_that_is_not_there_is_told_with_those_that_are() {
    for named in ["prompt=ask", "output=ask", "label=ask"] {
        let refused = load(ROWS.as_bytes(), &[named]).1.refused.unwrap().to_string();
        let field = named.split('=').next().unwrap();
        let words = format!(
            "there is no column ask; the file has answer, level, n, question; name the one to \
             take with --dataset-column {field}=COLUMN"
        );
        assert_eq!(refused, words);
    }
    let refused = load(b"{\"a\": 1}\n", &[]).1.refused.unwrap().to_string();
    assert!(refused.starts_with("there is no column prompt or messages or"), "{refused}");
    assert!(refused.contains("the file has a;"), "{refused}");
}

#[test]
fn a_broken_row_is_named() {
    let (prompts, notes) = load(b"{\"text\": \"hello\"}\nnothing\n[1]\n{\"text\": 3}\n{\"te", &[]);
    assert_eq!(prompts.len(), 1);
    let told: Vec<_> = notes.skipped.iter().map(ToString::to_string).collect();
    assert!(told[0].starts_with("line 2: broken JSON"), "{told:?}");
    assert_eq!(told[1..3], ["line 3: not a JSON object", "line 4: prompt is not a string"]);
    assert_eq!(notes.truncated_at, Some(5));
}

/// Two rows with a text, a list of messages, a number and a column of no use.
fn parquet(compression: Compression) -> Vec<u8> {
    let members: Fields = ["role", "content"]
        .map(|name| ArrowField::new(name, DataType::Utf8, true))
        .into_iter()
        .collect();
    let mut chats = ListBuilder::new(StructBuilder::from_fields(members, 2));
    for content in ["first", "second"] {
        for (place, text) in ["user", content].into_iter().enumerate() {
            let member = chats.values().field_builder::<StringBuilder>(place);
            member.unwrap().append_value(text);
        }
        chats.values().append(true);
        chats.append(true);
    }
    let batch = RecordBatch::try_from_iter([
        ("problem", Arc::new(StringArray::from(vec![Some("What is 1 + 1?"), None])) as ArrayRef),
        ("chat", Arc::new(chats.finish())),
        ("tokens", Arc::new(Int64Array::from(vec![12, 7]))),
        ("image", Arc::new(StringArray::from(vec!["x", "y"]))),
    ])
    .unwrap();
    let mut bytes = Vec::new();
    let properties = WriterProperties::builder().set_compression(compression).build();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    bytes
}

#[test]
fn parquet_gives_the_columns_that_are_named() {
    for compression in [Compression::UNCOMPRESSED, Compression::SNAPPY] {
        let file = parquet(compression);
        let (prompts, notes) = load(&file, &["output=tokens"]);
        assert_eq!(texts(&prompts), [("What is 1 + 1?".to_owned(), Some(12))]);
        assert_eq!(notes.skipped[0].to_string(), "row 2: no prompt");
        let (prompts, _) = load(&file, &["prompt=chat", "output=tokens", "label=tokens"]);
        let expected = [("first".to_owned(), Some(12)), ("second".to_owned(), Some(7))];
        assert_eq!(texts(&prompts), expected);
        assert!(matches!(prompts[0].content, Content::Messages(_)));
        assert_eq!(prompts[1].labels, [("tokens".to_owned(), "7".to_owned())]);
        let refused = load(&file, &["prompt=question"]).1.refused.unwrap().to_string();
        assert!(refused.contains("the file has chat, image, problem, tokens;"), "{refused}");
    }
}

#[test]
fn a_damaged_parquet_file_is_one_sentence() {
    let mut file = parquet(Compression::SNAPPY);
    file.truncate(file.len() - 9);
    let refused = load(&file, &[]).1.refused.unwrap().to_string();
    assert!(refused.starts_with("the Parquet file cannot be read: "), "{refused}");
}
