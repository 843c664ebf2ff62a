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

/// Takes one row with its place.
type Take<'t> = dyn FnMut(&mut DatasetNotes, Place, Map<String, Value>) + 't;

/// Hands over each row with its place, with those of the named columns that
/// the file has: columns of images are not even unpacked.
pub(super) fn each(bytes: Vec<u8>, named: &[&str], take: &mut Take<'_>) -> DatasetNotes {
    let mut notes = DatasetNotes::default();
    // The Parquet library checks most of what it reads, but not all of it; a
    // panic in it must end as an error of this one file.
    let read = AssertUnwindSafe(|| rows(bytes, named, &mut notes, take));
    let done = catch_unwind(read)
        .unwrap_or_else(|_| Err(ParquetError::General("it is damaged".to_owned())));
    notes.refused = done.err().map(|error| refusal(&error));
    notes
}

/// What the library says, in words that help. A codec that it was built without
/// is only in its text.
fn refusal(error: &ParquetError) -> Refusal {
    let text = error.to_string();
    if let Some((_, codec)) = text.split_once("Disabled feature at compile time: ") {
        let codec = if codec == "flate2" { "gzip" } else { codec };
        return Refusal::ParquetCodec(codec.to_owned());
    }
    Refusal::Parquet(text.strip_prefix("Parquet error: ").unwrap_or(&text).to_owned())
}

fn rows(
    bytes: Vec<u8>,
    named: &[&str],
    notes: &mut DatasetNotes,
    take: &mut Take<'_>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_codec_that_is_not_known_is_named() {
        for (feature, codec) in [("zstd", "zstd"), ("flate2", "gzip")] {
            // The words of parquet 60 for files that pyarrow wrote with this codec.
            let text = format!("Disabled feature at compile time: {feature}");
            let told = refusal(&ParquetError::General(text)).to_string();
            assert!(told.starts_with(&format!("the Parquet file is compressed with {codec};")));
        }
    }
}
