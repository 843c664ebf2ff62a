//! Rows of a Parquet file, as objects.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::{DatasetNotes, Place, Refusal};

/// What every Parquet file begins with.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// The most rows that are read: a footer may claim any number.
const MAX_ROWS: u64 = 20_000_000;

/// Hands over each row with its place, with those of the named columns that
/// the file has: columns of images are not even unpacked.
pub(super) fn each(
    bytes: Vec<u8>,
    named: &[&str],
    take: &mut dyn FnMut(&mut DatasetNotes, Place, Map<String, Value>),
) -> DatasetNotes {
    let mut notes = DatasetNotes::default();
    // The Parquet library checks most of what it reads, but not all of it; a
    // panic in it must end as an error of this one file.
    let read = AssertUnwindSafe(|| rows(bytes, named, &mut notes, take));
    let done = catch_unwind(read)
        .unwrap_or_else(|_| Err(ParquetError::General("it is damaged".to_owned())));
    if let Err(error) = done {
        let text = error.to_string();
        let text = text.strip_prefix("Parquet error: ").unwrap_or(&text);
        notes.refused = Some(Refusal::Parquet(text.to_owned()));
    }
    notes
}

fn rows(
    bytes: Vec<u8>,
    named: &[&str],
    notes: &mut DatasetNotes,
    take: &mut dyn FnMut(&mut DatasetNotes, Place, Map<String, Value>),
) -> Result<(), ParquetError> {
    let reader = SerializedFileReader::new(Bytes::from(bytes))?;
    let root = reader.metadata().file_metadata().schema();
    let names: BTreeSet<String> =
        root.get_fields().iter().map(|field| field.name().to_owned()).collect();
    notes.columns = Some(names);
    let wanted: Vec<Arc<Type>> =
        root.get_fields().iter().filter(|field| named.contains(&field.name())).cloned().collect();
    if wanted.is_empty() {
        // The caller says which columns there are.
        return Ok(());
    }
    let projection = Type::group_type_builder(root.name()).with_fields(wanted).build()?;
    for (row, number) in reader.get_row_iter(Some(projection))?.zip(1..=MAX_ROWS) {
        notes.entries += 1;
        let row = row?;
        let object = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
        take(notes, Place::Row(number), object.collect());
    }
    Ok(())
}

/// A value as JSON has it. What no prompt is made of (dates, bytes) is text for
/// a label, or null.
fn value(field: &Field) -> Value {
    match field {
        Field::Bool(truth) => (*truth).into(),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        Field::Float(number) => f64::from(*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Str(text) => text.clone().into(),
        Field::Group(row) => {
            let members = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
            Value::Object(members.collect())
        }
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::Date(_) | Field::TimestampMillis(_) | Field::TimestampMicros(_) => {
            field.to_string().into()
        }
        _ => Value::Null,
    }
}
