//! The rows of a run: [`Record`]s as one Parquet file in memory.
//!
//! One row a request, one column a fact, units in the names. Every field of a
//! record is in the file and comes back exactly, so that any number of a raw
//! run's report can be recomputed from its directory. DuckDB, pandas and
//! polars read the same file: nothing in it is private to this program.
//!
//! The file says its version and carries a checksum over all of its bytes,
//! both in Parquet's own key-value metadata. The checksum is looked at before
//! anything is decoded: a flipped bit in a stored latency would otherwise be
//! a wrong number and no error.

mod column;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use measure::{At, Events, Planned, ReasoningDisclosure, Record};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;

use crate::seal::{Broken, Seal};

use column::{Column, Flag, List, Maybe, Number, Outcomes, Pairs, Part, Text, WarningNames};

/// The version of the layout that [`encode`] writes. A column may be added
/// within a version; a column that goes or changes its meaning takes a new one.
pub const VERSION: &str = "1";

const SEAL: Seal = Seal {
    version_key: "goodput.rows.version",
    checksum_key: "goodput.rows.crc32",
    version: VERSION,
};

/// The most rows that one file may hold. A record takes about 0.6 kB and its
/// events; a file that claims more is refused before it is decoded.
pub const MAX_ROWS: u64 = 10_000_000;

/// Rows of one Parquet row group: what a reader has to hold at once.
const ROW_GROUP_ROWS: usize = 50_000;

/// Rows that are turned into Arrow arrays at a time.
const BATCH_ROWS: usize = 8_192;

/// Bytes of text and events that are turned into Arrow arrays at a time. It
/// keeps the 32-bit offsets of a list column far from their end.
const BATCH_BYTES: usize = 64 << 20;

/// Why bytes are not the rows of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowsError {
    /// Not a Parquet file, or only the beginning of one.
    #[error(
        "not a whole Parquet file: it does not start and end with PAR1; was the write cut off?"
    )]
    NotParquet,
    /// A Parquet file of someone else's.
    #[error(
        "a Parquet file, but not rows of goodput: the key goodput.rows.version is missing; \
         rows that another program wrote again are not a run"
    )]
    NotRows,
    /// A layout that this program does not know.
    #[error(
        "rows of version {found}, and this program reads version {VERSION}; use a newer goodput"
    )]
    Version {
        /// What the file says of itself.
        found: String,
    },
    /// The bytes are not those that were written.
    #[error(
        "damaged: the checksum over the file is {found} and should be {expected}; restore it from a copy"
    )]
    Checksum {
        /// The checksum in the file.
        expected: String,
        /// The checksum of its bytes.
        found: String,
    },
    /// The Parquet reader refused it.
    #[error("damaged: {detail}")]
    Damaged {
        /// The reader's words.
        detail: String,
    },
    /// More rows than [`MAX_ROWS`].
    #[error("{rows} rows, and a file may hold {MAX_ROWS}; keep the parts of such a run apart")]
    TooManyRows {
        /// What the file claims.
        rows: u64,
    },
    /// A column of this version is not there.
    #[error("the column {column} is missing, and version {VERSION} has it")]
    MissingColumn {
        /// Its name.
        column: &'static str,
    },
    /// A column has another type than this version's.
    #[error("the column {column} is of type {found}, which version {VERSION} does not have there")]
    WrongType {
        /// Its name.
        column: &'static str,
        /// The type in the file.
        found: String,
    },
    /// A value is absent where every row has one.
    #[error("row {row} has no {column}, and every row must have one")]
    MissingValue {
        /// The column.
        column: &'static str,
        /// The row, from 0.
        row: u64,
    },
    /// A name outside a closed list.
    #[error(
        "row {row} has {value:?} as its {column}, which is not in this program's list; \
         a newer goodput may know it"
    )]
    UnknownName {
        /// The column.
        column: &'static str,
        /// The row, from 0.
        row: u64,
        /// The name found.
        value: String,
    },
    /// The four event columns of a row are of different lengths.
    #[error("row {row} has event columns of different lengths; an event has one value in each")]
    UnevenEvents {
        /// The row, from 0.
        row: u64,
    },
}

impl From<Broken> for RowsError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::NotParquet => Self::NotParquet,
            Broken::Foreign => Self::NotRows,
            Broken::Version { found } => Self::Version { found },
            Broken::Checksum { expected, found } => Self::Checksum { expected, found },
        }
    }
}

impl From<ParquetError> for RowsError {
    fn from(error: ParquetError) -> Self {
        Self::Damaged { detail: error.to_string() }
    }
}

macro_rules! number {
    ($name:literal, $($place:ident).+) => {
        &Number { name: $name, get: |r| r.$($place).+, set: |r, value| r.$($place).+ = value }
    };
}

macro_rules! maybe {
    ($name:literal, $($place:ident).+) => {
        &Maybe { name: $name, get: |r| r.$($place).+, set: |r, value| r.$($place).+ = value }
    };
}

macro_rules! text {
    ($name:literal, $($place:ident).+) => {
        &Text {
            name: $name,
            get: |r| r.$($place).+.as_deref(),
            set: |r, value| {
                r.$($place).+ = value.map(str::to_owned);
                true
            },
        }
    };
}

macro_rules! pairs {
    ($name:literal, $($place:ident).+) => {
        &Pairs { name: $name, get: |r| &r.$($place).+, set: |r, value| r.$($place).+ = value }
    };
}

macro_rules! events {
    ($name:literal, $($place:ident).+) => {
        &List {
            name: $name,
            nullable: false,
            get: |r| Some(&r.$($place).+),
            set: |r, value| r.$($place).+ = value,
        }
    };
}

macro_rules! source {
    ($name:literal, $place:ident) => {
        &Maybe {
            name: $name,
            get: |r| r.source.as_ref().and_then(|source| source.$place),
            set: |r, value| {
                if value.is_some() {
                    r.source.get_or_insert_default().$place = value;
                }
            },
        }
    };
}

/// Every column of version 1, in the order of the file.
static COLUMNS: &[&dyn Column] = &[
    number!("index", index),
    number!("worker", worker),
    number!("session", planned.session),
    number!("turn", planned.turn),
    pairs!("labels", planned.labels),
    maybe!("planned_input_tokens", planned.input_tokens),
    maybe!("max_output_tokens", planned.max_output_tokens),
    &Flag {
        name: "output_forced",
        get: |r| r.planned.output_forced,
        set: |r, value| r.planned.output_forced = value,
    },
    number!("intended_at_us", stamps.intended_at),
    maybe!("released_at_us", stamps.released_at),
    maybe!("resolved_at_us", stamps.resolved_at),
    maybe!("connected_at_us", stamps.connected_at),
    maybe!("secured_at_us", stamps.secured_at),
    maybe!("sent_at_us", stamps.sent_at),
    maybe!("written_at_us", stamps.written_at),
    maybe!("first_byte_at_us", stamps.first_byte_at),
    maybe!("headers_at_us", stamps.headers_at),
    maybe!("ended_at_us", stamps.ended_at),
    &Outcomes { outcome: "outcome", kind: "kind" },
    maybe!("http_status", answer.http_status),
    maybe!("retry_after_us", answer.retry_after),
    text!("message", answer.message),
    text!("error_code", answer.error_code),
    text!("finish_reason", answer.finish_reason),
    maybe!("prompt_tokens", answer.counts.prompt),
    maybe!("usage_tokens", answer.counts.usage),
    maybe!("server_tokens", answer.counts.server),
    maybe!("logprob_tokens", answer.counts.logprobs),
    maybe!("tokenizer_tokens", answer.counts.tokenizer),
    maybe!("reasoning_tokens", answer.counts.reasoning),
    maybe!("cached_tokens", answer.counts.cached),
    number!("choices", answer.choices),
    maybe!("first_event_tokens", answer.first_event_tokens),
    &Text {
        name: "reasoning_disclosure",
        get: |r| r.answer.reasoning_disclosure.map(ReasoningDisclosure::name),
        set: |r, value| {
            let all = ReasoningDisclosure::ALL.iter().copied();
            let known = value.map(|name| all.into_iter().find(|one| one.name() == name));
            r.answer.reasoning_disclosure = known.flatten();
            known != Some(None)
        },
    },
    pairs!("server_timings", answer.server_timings),
    text!("served_by", answer.served_by),
    text!("text", answer.text),
    text!("reasoning", answer.reasoning),
    text!("tool_arguments", answer.tool_arguments),
    number!("comments", answer.comments),
    number!("reconnects", answer.reconnects),
    &WarningNames { name: "warnings" },
    number!("body_bytes", answer.body_bytes),
    events!("event_at_us", events.at_us),
    events!("event_carries", events.carries),
    events!("event_tokens", events.tokens),
    events!("event_choice", events.choice),
    source!("source_ttft_s", ttft_s),
    // Not null exactly on imported rows, because a source without a single
    // gap is still a source.
    &List {
        name: "source_itl_s",
        nullable: true,
        get: |r| r.source.as_ref().map(|source| source.itl_s.as_slice()),
        set: |r, value| r.source.get_or_insert_default().itl_s = value,
    },
    source!("source_start_s", start_s),
    source!("source_latency_s", latency_s),
];

/// The records as one Parquet file, Snappy-compressed.
///
/// The four event columns of each record must be of one length, as
/// [`Events::push`] keeps them; [`decode`] refuses others.
///
/// # Panics
///
/// When a single record holds more than 2 GiB of text, which the limits of the
/// reader of answers make impossible.
pub fn encode(records: &[Record]) -> Vec<u8> {
    debug_assert!(records.iter().all(|record| even(&record.events)), "uneven events");
    let schema = schema();
    let options =
        ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
    let written = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options).and_then(
        |mut writer| {
            for batch in batches(records) {
                writer.write(&record_batch(&schema, batch)?)?;
            }
            writer.into_inner()
        },
    );
    let mut file = written.expect("a vector takes all bytes and the table above fits its schema");
    SEAL.close(&mut file);
    file
}

/// The records of a file that [`encode`] or [`join`] made, in its order.
///
/// Columns that version 1 does not have are ignored.
///
/// # Errors
///
/// Whatever the bytes are, they give records or a [`RowsError`]. Memory is
/// bounded by [`MAX_ROWS`] and by the bytes that the file expands to.
pub fn decode(bytes: &[u8]) -> Result<Vec<Record>, RowsError> {
    SEAL.check(bytes)?;
    guarded(|| decode_checked(Bytes::copy_from_slice(bytes)))
}

/// The rows of several files as one file, in the order given. Row groups are
/// copied as they are, so that no number is written a second time and a large
/// run needs no more memory than its files.
///
/// # Errors
///
/// As [`decode`], for the first file that is not whole.
pub fn join(files: Vec<Vec<u8>>) -> Result<Vec<u8>, RowsError> {
    for file in &files {
        SEAL.check(file)?;
    }
    guarded(|| join_checked(files))
}

/// The number of rows that a file says it has, without decoding them.
///
/// # Errors
///
/// As [`decode`], as far as the checksum and the footer tell.
pub fn count(bytes: &[u8]) -> Result<u64, RowsError> {
    extent(bytes).map(|extent| extent.rows)
}

/// How much a file says it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Requests.
    pub rows: u64,
    /// Events of all of them, or a few more: an empty list counts as one.
    pub events: u64,
}

/// The extent of a file, without decoding it.
///
/// # Errors
///
/// As [`count`].
pub fn extent(bytes: &[u8]) -> Result<Extent, RowsError> {
    SEAL.check(bytes)?;
    guarded(|| {
        let reader = SerializedFileReader::new(Bytes::copy_from_slice(bytes))?;
        let lists = |group: &RowGroupMetaData| {
            let lists = group.columns().iter().filter(|c| c.column_descr().max_rep_level() > 0);
            lists.map(|column| u64::try_from(column.num_values()).unwrap_or(0)).max().unwrap_or(0)
        };
        let events = reader.metadata().row_groups().iter().map(lists).sum();
        Ok(Extent { rows: rows_of(&reader)?, events })
    })
}

/// The checksum that a file carries, checked against its bytes: eight
/// hexadecimal digits of CRC-32.
///
/// # Errors
///
/// As [`decode`], as far as the checksum tells.
pub fn checksum(bytes: &[u8]) -> Result<String, RowsError> {
    Ok(SEAL.check(bytes)?)
}

/// Runs a reader of foreign bytes. The Parquet library checks most of what it
/// reads, but not all of it: a file made to harm, with a right checksum, can
/// still bring it to a panic, and that must end as an error of this one file.
fn guarded<T>(read: impl FnOnce() -> Result<T, RowsError>) -> Result<T, RowsError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(RowsError::Damaged { detail: "the Parquet reader gave up on its content".to_owned() })
    })
}

fn decode_checked(bytes: Bytes) -> Result<Vec<Record>, RowsError> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options)?;
    let root = builder.parquet_schema().root_schema();
    let mut wanted = Vec::new();
    for part in parts() {
        let place = root.get_fields().iter().position(|field| field.name() == part.name);
        wanted.push(place.ok_or(RowsError::MissingColumn { column: part.name })?);
    }
    let claimed = builder.metadata().file_metadata().num_rows();
    within_limit(u64::try_from(claimed).unwrap_or(u64::MAX))?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
    let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build()?;

    let mut records = Vec::new();
    for batch in reader {
        let batch = batch.map_err(|error| RowsError::Damaged { detail: error.to_string() })?;
        within_limit((records.len() + batch.num_rows()) as u64)?;
        read_batch(&batch, &mut records)?;
    }
    Ok(records)
}

fn read_batch(batch: &RecordBatch, records: &mut Vec<Record>) -> Result<(), RowsError> {
    let first = records.len();
    records.resize_with(first + batch.num_rows(), blank);
    let mut rows = column::Rows { first: first as u64, records: &mut records[first..] };
    for column in COLUMNS {
        column.read(batch, &mut rows)?;
    }
    let uneven = rows.records.iter().position(|record| !even(&record.events));
    match uneven {
        Some(row) => Err(RowsError::UnevenEvents { row: rows.row(row) }),
        None => Ok(()),
    }
}

fn even(events: &Events) -> bool {
    [events.carries.len(), events.tokens.len(), events.choice.len()] == [events.at_us.len(); 3]
}

fn join_checked(files: Vec<Vec<u8>>) -> Result<Vec<u8>, RowsError> {
    // An empty file of ours lends the schema, so that a file with other
    // columns is refused instead of spoiling the whole.
    let empty = SerializedFileReader::new(Bytes::from(encode(&[])))?;
    let schema = empty.metadata().file_metadata().schema_descr().root_schema_ptr();
    let properties = Arc::new(properties());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    let mut rows = 0;
    for file in files {
        let bytes = Bytes::from(file);
        let reader = SerializedFileReader::new(bytes.clone())?;
        rows += rows_of(&reader)?;
        within_limit(rows)?;
        for group in reader.metadata().row_groups() {
            let mut copy = writer.next_row_group()?;
            for column in group.columns() {
                copy.append_column(
                    &bytes,
                    ColumnCloseResult {
                        bytes_written: column.compressed_size() as u64,
                        rows_written: group.num_rows() as u64,
                        metadata: column.clone(),
                        bloom_filter: None,
                        column_index: None,
                        offset_index: None,
                    },
                )?;
            }
            copy.close()?;
        }
    }
    let mut file = writer.into_inner()?;
    SEAL.close(&mut file);
    Ok(file)
}

fn rows_of(reader: &SerializedFileReader<Bytes>) -> Result<u64, RowsError> {
    let rows = reader.metadata().file_metadata().num_rows();
    u64::try_from(rows)
        .map_err(|_| RowsError::Damaged { detail: format!("it claims to have {rows} rows") })
}

fn within_limit(rows: u64) -> Result<(), RowsError> {
    if rows > MAX_ROWS { Err(RowsError::TooManyRows { rows }) } else { Ok(()) }
}

fn parts() -> impl Iterator<Item = Part> {
    COLUMNS.iter().flat_map(|column| column.parts())
}

fn schema() -> SchemaRef {
    let fields = parts().map(|part| Field::new(part.name, part.data_type, part.nullable));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn record_batch(schema: &SchemaRef, records: &[Record]) -> Result<RecordBatch, ParquetError> {
    let arrays = COLUMNS.iter().flat_map(|column| column.write(records)).collect();
    Ok(RecordBatch::try_new(schema.clone(), arrays)?)
}

/// Cuts the records into pieces that are small in rows and in bytes.
fn batches(mut records: &[Record]) -> impl Iterator<Item = &[Record]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |record: &&Record| {
            bytes += weight(record);
            bytes <= BATCH_BYTES
        };
        let count = records.iter().take(BATCH_ROWS).take_while(fits).count();
        let (batch, rest) = records.split_at(count.max(1).min(records.len()));
        records = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

/// About how many bytes the variable parts of a record take.
fn weight(record: &Record) -> usize {
    let answer = &record.answer;
    let texts = [&answer.text, &answer.reasoning, &answer.tool_arguments, &answer.message];
    let gaps = record.source.as_ref().map_or(0, |source| source.itl_s.len());
    texts.into_iter().flatten().map(String::len).sum::<usize>()
        + record.events.len() * size_of::<u32>()
        + gaps * size_of::<f64>()
}

/// How the file is written. The units in the names tell which columns hardly
/// repeat: a dictionary only costs there. Instants rise, so that the difference
/// to the neighbour is short.
fn properties() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_created_by("goodput".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_key_value_metadata(Some(SEAL.open()));
    for Part { name, data_type, .. } in parts() {
        let mut path = vec![name.to_owned()];
        if matches!(data_type, DataType::List(_)) {
            path.extend(["list", column::ELEMENT].map(str::to_owned));
        }
        let path = ColumnPath::new(path);
        if name == "index" || name.ends_with("_at_us") {
            properties = properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        } else if name.ends_with("_s") && name.starts_with("source_") {
            properties = properties.set_column_dictionary_enabled(path, false);
        }
    }
    properties.build()
}

/// A row before its columns are read.
fn blank() -> Record {
    Record::planned(0, At::ZERO, Planned::default())
}
