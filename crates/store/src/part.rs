//! The rows of a running run, written a part at a time so that a crash loses
//! seconds and not the run.

use measure::{At, Record, Span};

use crate::{RunDirectory, StoreError};

/// The most rows of one part.
pub const PART_ROWS: usize = 50_000;

/// The most events of one part: encoding holds a part's columns once more.
pub const PART_EVENTS: usize = 1 << 20;

/// The longest that a record waits to be written.
pub const PART_SPAN: Span = Span::from_ms(10_000);

/// Where the parts of a run go.
pub trait PartSink {
    /// Keeps the rows for good, all or none of them.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when they are not kept.
    fn write_part(&self, worker: u32, part: u32, rows: &[Record]) -> Result<(), StoreError>;
}

impl PartSink for RunDirectory {
    fn write_part(&self, worker: u32, part: u32, rows: &[Record]) -> Result<(), StoreError> {
        Self::write_part(self, worker, part, rows)
    }
}

/// Collects the records of one worker and writes them in parts: every
/// [`PART_ROWS`] rows or [`PART_SPAN`], whichever comes first, and never more
/// than [`PART_EVENTS`] events in one, unless one record has more.
///
/// It keeps the records that it has written too, for the report at the end:
/// one copy in memory serves both. After a failed write it tries again a
/// [`PART_SPAN`] later, so that a disk that is full for a while costs nothing
/// and a report can be made in any case.
/// Encoding takes processor time: call it where no request is timed.
#[derive(Debug)]
pub struct PartWriter<S = RunDirectory> {
    sink: S,
    worker: u32,
    next_part: u32,
    records: Vec<Record>,
    /// The number of leading records that are written.
    written: usize,
    flush_at: At,
    failing: bool,
}

impl<S: PartSink> PartWriter<S> {
    /// A writer of one worker's rows that starts its first part at `now`.
    pub fn new(sink: S, worker: u32, now: At) -> Self {
        Self {
            sink,
            worker,
            next_part: 0,
            records: Vec::new(),
            written: 0,
            flush_at: now + PART_SPAN,
            failing: false,
        }
    }

    /// Takes a record. It is written by one of the next calls.
    pub fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    /// Writes what is due at `now`. True when something was written.
    ///
    /// # Errors
    ///
    /// [`StoreError`] when a part could not be written; its records are kept
    /// and the next try is a [`PART_SPAN`] later.
    pub fn maybe_flush(&mut self, now: At) -> Result<bool, StoreError> {
        let full = self.waiting().len() >= PART_ROWS && !self.failing;
        if full || now >= self.flush_at { self.flush(now) } else { Ok(false) }
    }

    /// Writes everything at once, as at the end of a run. True when something
    /// was written.
    ///
    /// # Errors
    ///
    /// As [`Self::maybe_flush`].
    pub fn flush(&mut self, now: At) -> Result<bool, StoreError> {
        self.flush_at = now + PART_SPAN;
        let some = !self.waiting().is_empty();
        while !self.waiting().is_empty() {
            let rows = part_rows(self.waiting());
            let part = &self.waiting()[..rows];
            let written = self.sink.write_part(self.worker, self.next_part, part);
            self.failing = written.is_err();
            written?;
            self.next_part += 1;
            self.written += rows;
        }
        Ok(some)
    }

    /// The records that are not written yet.
    pub fn waiting(&self) -> &[Record] {
        &self.records[self.written..]
    }

    /// All records, written or not, in the order in which they came, and
    /// where the parts went.
    pub fn into_parts(self) -> (Vec<Record>, S) {
        (self.records, self.sink)
    }

    /// The number of parts written.
    pub fn parts(&self) -> u32 {
        self.next_part
    }

    /// Where the parts go.
    pub fn sink(&self) -> &S {
        &self.sink
    }
}

/// The number of leading records that make one part: at least one.
fn part_rows(records: &[Record]) -> usize {
    let mut events = 0;
    let fits = records.iter().take(PART_ROWS).take_while(|record| {
        events += record.events.len();
        events <= PART_EVENTS
    });
    fits.count().max(1)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::io;
    use std::path::PathBuf;

    use measure::Planned;

    use super::*;

    /// Keeps the sizes of the parts, and fails like a full disk on demand.
    #[derive(Default)]
    struct Disk {
        full: Cell<bool>,
        parts: RefCell<Vec<(u32, u32, usize)>>,
    }

    impl PartSink for &Disk {
        fn write_part(&self, worker: u32, part: u32, rows: &[Record]) -> Result<(), StoreError> {
            if self.full.get() {
                let source = io::Error::from(io::ErrorKind::StorageFull);
                let path = PathBuf::from("runs/x/requests-0-0.parquet");
                return Err(StoreError::Io { action: "write", path, source });
            }
            self.parts.borrow_mut().push((worker, part, rows.len()));
            Ok(())
        }
    }

    fn record(index: u32) -> Record {
        Record::planned(index, At::ZERO, Planned::default())
    }

    fn at_s(s: i64) -> At {
        At::from_us(s * 1_000_000)
    }

    #[test]
    fn a_part_is_due_after_ten_seconds() {
        let disk = Disk::default();
        let mut writer = PartWriter::new(&disk, 3, at_s(5));
        writer.push(record(0));
        assert!(!writer.maybe_flush(at_s(14)).expect("the disk takes all"));
        assert!(writer.maybe_flush(at_s(15)).expect("the disk takes all"));
        writer.push(record(1));
        assert!(!writer.maybe_flush(at_s(24)).expect("the disk takes all"));
        assert!(writer.maybe_flush(at_s(25)).expect("the disk takes all"));
        assert!(!writer.maybe_flush(at_s(40)).expect("nothing is no part"));
        assert_eq!(*disk.parts.borrow(), [(3, 0, 1), (3, 1, 1)]);
    }

    #[test]
    fn a_part_is_due_after_fifty_thousand_rows() {
        let disk = Disk::default();
        let mut writer = PartWriter::new(&disk, 0, At::ZERO);
        (0..PART_ROWS as u32 - 1).for_each(|index| writer.push(record(index)));
        assert!(!writer.maybe_flush(at_s(1)).expect("the disk takes all"));
        writer.push(record(7));
        assert!(writer.maybe_flush(at_s(1)).expect("the disk takes all"));
        assert_eq!(*disk.parts.borrow(), [(0, 0, PART_ROWS)]);
    }

    #[test]
    fn a_full_disk_loses_no_record_and_is_tried_again_later() {
        let disk = Disk::default();
        let mut writer = PartWriter::new(&disk, 0, At::ZERO);
        disk.full.set(true);
        (0..PART_ROWS as u32 + 1).for_each(|index| writer.push(record(index)));
        let error = writer.maybe_flush(at_s(1)).expect_err("the disk is full");
        assert!(error.is_disk_full());
        let text = error.to_string();
        assert!(
            text.contains("requests-0-0.parquet") && text.contains("free some space"),
            "{text}"
        );
        assert_eq!(writer.waiting().len(), PART_ROWS + 1);

        disk.full.set(false);
        // Encoding 50 000 rows at every call would cost more than it gives.
        assert!(!writer.maybe_flush(at_s(10)).expect("nothing is tried yet"));
        assert!(writer.maybe_flush(at_s(11)).expect("there is space again"));
        assert_eq!(*disk.parts.borrow(), [(0, 0, PART_ROWS), (0, 1, 1)]);
        assert!(writer.waiting().is_empty());
    }

    #[test]
    fn the_end_of_the_run_tries_at_once() {
        let disk = Disk::default();
        let mut writer = PartWriter::new(&disk, 0, At::ZERO);
        writer.push(record(0));
        assert!(writer.flush(At::ZERO).expect("the disk takes all"));
        assert_eq!(writer.parts(), 1);
    }

    #[test]
    fn parts_hold_a_bounded_number_of_events() {
        let disk = Disk::default();
        let mut writer = PartWriter::new(&disk, 0, At::ZERO);
        for index in 0..3 {
            let mut long = record(index);
            for _ in 0..=PART_EVENTS / 2 {
                long.events.push(measure::Event::default());
            }
            writer.push(long);
        }
        writer.flush(At::ZERO).unwrap();
        assert_eq!(*disk.parts.borrow(), [(0, 0, 1), (0, 1, 1), (0, 2, 1)]);
    }
}
