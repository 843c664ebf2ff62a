//! `metrics.parquet`: everything that was scraped, in long form.
//!
//! One row a sample. Names, kinds and labels are text as in an exposition, so
//! that a row needs no other row to be read, and reading the rows of a scrape
//! back is reading an exposition. What is told of a scrape itself stands in rows
//! of their own, under [`OF_SCRAPES`].

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use measure::window::Window;
use measure::{At, Span};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::{Collected, Failed, MOST_VALUES, Scrape, Source, spelling, with_buckets};
use crate::prometheus::{Exposition, Kind, Part, Reader, Sample, Unreadable};
use crate::seal::{Broken, Seal};

/// The version of the layout that [`encode`] writes. A column may be added
/// within a version; a column that goes or changes its meaning takes a new one.
pub const VERSION: &str = "1";

/// The most rows that one file may hold: what is kept in memory, and as many
/// rows again about the scrapes themselves.
pub const MAX_ROWS: u64 = 2 * MOST_VALUES as u64;

/// The most bytes of text that the rows of one file may come to when they are
/// read: labels that repeat take no room in a file.
const MAX_TEXT_BYTES: usize = 8 << 30;

const SEAL: Seal = Seal {
    version_key: "goodput.metrics.version",
    checksum_key: "goodput.metrics.crc32",
    version: VERSION,
};

/// Rows that are turned into Arrow arrays at a time.
const BATCH_ROWS: usize = 4_096;

const COLUMNS: [(&str, DataType); 6] = [
    ("at_us", DataType::Int64),
    ("source", DataType::Utf8),
    ("name", DataType::Utf8),
    ("kind", DataType::Utf8),
    ("labels", DataType::Utf8),
    ("value", DataType::Float64),
];

/// How the names begin of what is told of scrapes, and not of a server.
const OF_SCRAPES: &str = "goodput_scrape";
const DURATION: &str = "goodput_scrape_duration_seconds";
const LATENESS: &str = "goodput_scrape_lateness_seconds";
const FAILED: &str = "goodput_scrapes_failed";
const LEFT_OUT: &str = "goodput_scrapes_left_out";
const FOUND: &str = "goodput_scrape_target_found";
const INTERVAL: &str = "goodput_scrape_interval_seconds";

/// Why bytes are not what was scraped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// Not a Parquet file, or only the beginning of one.
    #[error(
        "not a whole Parquet file: it does not start and end with PAR1; was the write cut off?"
    )]
    NotParquet,
    /// A Parquet file of someone else's.
    #[error(
        "a Parquet file, but not metrics of goodput: the key goodput.metrics.version is missing"
    )]
    NotMetrics,
    /// A layout that this program does not know.
    #[error(
        "metrics of version {found}, and this program reads version {VERSION}; use a newer goodput"
    )]
    Version {
        /// What the file says of itself.
        found: String,
    },
    /// The bytes are not those that were written.
    #[error(
        "damaged: the checksum over the file is {found} and should be {expected}; restore it from \
         a copy"
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
    /// More rows than [`MAX_ROWS`], or more text than a run can have.
    #[error("the file claims more than {MAX_ROWS} samples or more text than a run has")]
    TooMuch,
    /// A column of this version is not there, or of another type.
    #[error("the column {column} is missing or of another type than in version {VERSION}")]
    Column {
        /// Its name.
        column: &'static str,
    },
    /// The rows of a scrape are no exposition.
    #[error("the samples of {source_name} at {at_us} µs are no exposition: {why}")]
    Exposition {
        /// Where they come from.
        source_name: String,
        /// When.
        at_us: i64,
        /// What is wrong.
        why: Unreadable,
    },
}

impl From<ParquetError> for MetricsError {
    fn from(error: ParquetError) -> Self {
        Self::Damaged { detail: error.to_string() }
    }
}

impl From<Broken> for MetricsError {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::NotParquet => Self::NotParquet,
            Broken::Foreign => Self::NotMetrics,
            Broken::Version { found } => Self::Version { found },
            Broken::Checksum { expected, found } => Self::Checksum { expected, found },
        }
    }
}

/// Everything that was scraped as one Parquet file, Snappy-compressed. Buckets of
/// histograms are in it at the edges of `window`, of the run and of restarts, and
/// nowhere else; help texts and units are not.
pub fn encode(collected: &Collected, window: Option<Window>) -> Vec<u8> {
    let schema = schema();
    let options =
        ArrowWriterOptions::new().with_properties(properties()).with_skip_arrow_metadata(true);
    let writer = ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options);
    let written = writer.and_then(|mut writer| {
        let mut rows = Rows::default();
        for source in &collected.sources {
            let whole = with_buckets(&source.scrapes, window);
            rows.of_source(source, collected.interval);
            for (scrape, whole) in source.scrapes.iter().zip(whole) {
                rows.of_scrape(&source.name, scrape, whole);
                if rows.at_us.len() >= BATCH_ROWS {
                    writer.write(&std::mem::take(&mut rows).batch(&schema)?)?;
                }
            }
        }
        writer.write(&rows.batch(&schema)?)?;
        writer.into_inner()
    });
    let mut file = written.expect("a vector takes all bytes, and the columns are the schema's");
    SEAL.close(&mut file);
    file
}

/// What a file of [`encode`] holds.
///
/// # Errors
///
/// Whatever the bytes are, they give scrapes or a [`MetricsError`].
pub fn decode(bytes: &[u8]) -> Result<Collected, MetricsError> {
    SEAL.check(bytes)?;
    // The Parquet library checks most of what it reads, but not all of it: a file
    // made to harm must end as an error of this one file.
    let read = || decode_checked(Bytes::copy_from_slice(bytes));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        let detail = "the Parquet reader gave up on its content".to_owned();
        Err(MetricsError::Damaged { detail })
    })
}

/// The checksum that a file carries, checked against its bytes.
///
/// # Errors
///
/// As [`decode`], as far as the checksum tells.
pub fn checksum(bytes: &[u8]) -> Result<String, MetricsError> {
    Ok(SEAL.check(bytes)?)
}

/// Rows on their way into the file, in columns.
#[derive(Default)]
struct Rows {
    at_us: Vec<i64>,
    source: Vec<String>,
    name: Vec<String>,
    kind: Vec<&'static str>,
    labels: Vec<String>,
    value: Vec<f64>,
}

impl Rows {
    fn push(&mut self, at: At, source: &str, what: (&str, Kind), labels: String, value: f64) {
        self.at_us.push(at.us());
        self.source.push(source.to_owned());
        self.name.push(what.0.to_owned());
        self.kind.push(what.1.name());
        self.labels.push(labels);
        self.value.push(value);
    }

    /// What is told of a source: these rows come before those of its scrapes.
    fn of_source(&mut self, source: &Source, interval: Span) {
        let first = source.scrapes.first().map_or(At::ZERO, |scrape| scrape.at);
        let mut tell = |at: At, name: &str, labels: String, value: f64| {
            self.push(at, &source.name, (name, Kind::Gauge), labels, value);
        };
        tell(first, INTERVAL, String::new(), interval.s());
        tell(first, FOUND, String::new(), f64::from(u8::from(source.is_found)));
        tell(first, LEFT_OUT, String::new(), f64::from(source.left_out));
        for Failed { reason, count, last_at } in &source.failed {
            let labels = spelling::pair("reason", reason);
            tell(*last_at, FAILED, labels, f64::from(*count));
        }
    }

    fn of_scrape(&mut self, source: &str, scrape: &Scrape, with_buckets: bool) {
        let Scrape { at, took, late, exposition } = scrape;
        for (name, span) in [(DURATION, took), (LATENESS, late)] {
            self.push(*at, source, (name, Kind::Gauge), String::new(), span.s());
        }
        for family in exposition.families().filter(|family| !family.name().starts_with(OF_SCRAPES))
        {
            for sample in family.samples() {
                if with_buckets || !matches!(sample.part, Part::Bucket(_)) {
                    let name = [family.name(), ending(sample.part)].concat();
                    self.push(*at, source, (&name, family.kind()), labels(&sample), sample.value);
                }
            }
        }
    }

    fn batch(self, schema: &SchemaRef) -> Result<RecordBatch, ParquetError> {
        let text = |texts: Vec<String>| -> ArrayRef { Arc::new(StringArray::from(texts)) };
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.at_us)),
            text(self.source),
            text(self.name),
            Arc::new(StringArray::from(self.kind)),
            text(self.labels),
            Arc::new(Float64Array::from(self.value)),
        ];
        Ok(RecordBatch::try_new(schema.clone(), columns)?)
    }
}

/// What a sample's name ends with behind the name of its family.
const fn ending(part: Part) -> &'static str {
    match part {
        Part::Value | Part::Quantile(_) => "",
        Part::Bucket(_) => "_bucket",
        Part::Sum => "_sum",
        Part::Count => "_count",
    }
}

/// Labels as an exposition has them between braces, by name; the bound of a
/// bucket or the place of a quantile stands last.
fn labels(sample: &Sample<'_>) -> String {
    let mut text = String::new();
    for (name, value) in sample.labels.iter() {
        let _ = write!(text, "{},", spelling::pair(name, value));
    }
    let _ = match sample.part {
        Part::Bucket(bound) => write!(text, "le=\"{bound}\""),
        Part::Quantile(at) => write!(text, "quantile=\"{at}\""),
        _ => Ok(()),
    };
    if text.ends_with(',') {
        text.pop();
    }
    text
}

fn schema() -> SchemaRef {
    let fields = COLUMNS.map(|(name, data_type)| Field::new(name, data_type, false));
    Arc::new(Schema::new(fields.to_vec()))
}

/// Text repeats and takes a dictionary; instants rise.
fn properties() -> WriterProperties {
    let at = ColumnPath::new(vec!["at_us".to_owned()]);
    WriterProperties::builder()
        .set_created_by("goodput".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_column_dictionary_enabled(at.clone(), false)
        .set_column_encoding(at, Encoding::DELTA_BINARY_PACKED)
        .set_key_value_metadata(Some(SEAL.open()))
        .build()
}

fn decode_checked(bytes: Bytes) -> Result<Collected, MetricsError> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(bytes, options)?;
    let claimed = builder.metadata().file_metadata().num_rows();
    if u64::try_from(claimed).map_or(true, |rows| rows > MAX_ROWS) {
        return Err(MetricsError::TooMuch);
    }
    let mut restoring = Restoring::default();
    for batch in builder.with_batch_size(BATCH_ROWS).build()? {
        let batch = batch.map_err(|error| MetricsError::Damaged { detail: error.to_string() })?;
        restoring.take(&batch)?;
    }
    restoring.finish()
}

/// Scrapes on their way out of the file.
#[derive(Default)]
struct Restoring {
    collected: Collected,
    reader: Reader,
    /// The scrape whose rows are being read: when, how long, how late.
    scrape: Option<(At, Span, Span)>,
    /// Its rows, as an exposition.
    text: String,
    /// The family that was named last in it.
    family: String,
    rows: u64,
    text_bytes: usize,
}

impl Restoring {
    fn take(&mut self, batch: &RecordBatch) -> Result<(), MetricsError> {
        let at_us: &Int64Array = column(batch, "at_us")?;
        let value: &Float64Array = column(batch, "value")?;
        let text = |name| column::<StringArray>(batch, name);
        let (source, name, kind, labels) =
            (text("source")?, text("name")?, text("kind")?, text("labels")?);
        self.rows += batch.num_rows() as u64;
        for row in 0..batch.num_rows() {
            let told = (name.value(row), kind.value(row), labels.value(row));
            self.text_bytes += told.0.len() + told.2.len();
            if self.rows > MAX_ROWS || self.text_bytes > MAX_TEXT_BYTES {
                return Err(MetricsError::TooMuch);
            }
            self.row(source.value(row), At::from_us(at_us.value(row)), told, value.value(row))?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        source: &str,
        at: At,
        (name, kind, labels): (&str, &str, &str),
        value: f64,
    ) -> Result<(), MetricsError> {
        if self.collected.sources.last().is_none_or(|last| last.name != source) {
            self.end_scrape()?;
            self.collected.sources.push(Source::new(source));
            self.reader = Reader::default();
        }
        if name.starts_with(OF_SCRAPES) {
            return self.of_scrapes(at, name, labels, value);
        }
        self.sample(name, kind, labels, value);
        Ok(())
    }

    /// A row about scrapes. That of its duration begins a new one.
    fn of_scrapes(
        &mut self,
        at: At,
        name: &str,
        labels: &str,
        value: f64,
    ) -> Result<(), MetricsError> {
        if name == DURATION {
            self.end_scrape()?;
            self.scrape = Some((at, Span::from_s(value), Span::ZERO));
            return Ok(());
        }
        let Some(source) = self.collected.sources.last_mut() else { return Ok(()) };
        // Counts are small whole numbers; what is none of them becomes 0.
        let count = value as u32;
        match name {
            LATENESS => {
                if let Some((_, _, late)) = &mut self.scrape {
                    *late = Span::from_s(value);
                }
            }
            INTERVAL => self.collected.interval = Span::from_s(value),
            FOUND => source.is_found = value != 0.0,
            LEFT_OUT => source.left_out = count,
            FAILED => source.failed.push(Failed { reason: reason(labels), count, last_at: at }),
            // A later version may tell more.
            _ => {}
        }
        Ok(())
    }

    fn sample(&mut self, name: &str, kind: &str, labels: &str, value: f64) {
        let family = match kind {
            "histogram" => {
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end))
            }
            "summary" => ["_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)),
            _ => None,
        };
        let family = family.unwrap_or(name);
        if family != self.family {
            family.clone_into(&mut self.family);
            let _ = writeln!(self.text, "# TYPE {} {kind}", spelling::name(family));
        }
        spelling::line(&mut self.text, name, labels, value);
    }

    /// Reads the rows of the scrape that ends here.
    fn end_scrape(&mut self) -> Result<(), MetricsError> {
        let text = std::mem::take(&mut self.text);
        self.family.clear();
        let Some((at, took, late)) = self.scrape.take() else { return Ok(()) };
        let Some(source) = self.collected.sources.last_mut() else { return Ok(()) };
        // Of a scrape between the edges that told nothing but buckets, nothing is left.
        if text.is_empty() {
            return Ok(());
        }
        let exposition: Exposition = self.reader.read(text.as_bytes()).map_err(|why| {
            let source_name = source.name.clone();
            MetricsError::Exposition { source_name, at_us: at.us(), why }
        })?;
        source.scrapes.push(Scrape { at, took, late, exposition });
        Ok(())
    }

    fn finish(mut self) -> Result<Collected, MetricsError> {
        self.end_scrape()?;
        Ok(self.collected)
    }
}

/// The one label of a failure.
fn reason(labels: &str) -> String {
    let line = format!("r{{{labels}}} 0\n");
    let read = crate::prometheus::read(line.as_bytes()).ok();
    let family = read.as_ref().and_then(|read| read.families().next());
    let reason = family.and_then(|family| {
        let sample = family.samples().next()?;
        sample.labels.get("reason").map(str::to_owned)
    });
    reason.unwrap_or_default()
}

fn column<'a, A: Array + 'static>(
    batch: &'a RecordBatch,
    name: &'static str,
) -> Result<&'a A, MetricsError> {
    let found = batch.column_by_name(name).and_then(|array| array.as_any().downcast_ref::<A>());
    found.filter(|array| array.null_count() == 0).ok_or(MetricsError::Column { column: name })
}
