//! The only crate beside the binary that opens files: run directories, data
//! sets, exports.
//!
//! A file is either there as a whole or not at all: it is written under a
//! temporary name in its own folder, forced to the disk and renamed. What the
//! bytes mean is [`wire`]'s business.
//!
//! A run directory holds `run.json`, `summary.json` and the rows of each
//! worker: `requests-<worker>-<part>.parquet` while it runs, and one
//! `requests-<worker>.parquet` when it is finished. A reader takes both.

mod directory;
mod error;
mod file;
mod id;
mod memory;
mod part;
mod runs;

pub use directory::{Joined, RunDirectory};
pub use error::StoreError;
pub use file::{Appended, Output, names_in, read_file, write_file_atomic};
pub use id::{IdError, RunId};
pub use part::{PART_EVENTS, PART_ROWS, PART_SPAN, PartSink, PartWriter};
pub use runs::{Note, OpenRun, Rows, RunEntry, list_runs, open_run, remove_run, run_in, trash};
