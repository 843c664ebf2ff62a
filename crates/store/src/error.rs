//! What can go wrong with files. Each message says what, where, the rule and
//! what to try.

use std::io;
use std::path::{Path, PathBuf};

use wire::notes::NotesError;
use wire::rows::RowsError;
use wire::scrapes::MetricsError;

/// Why a file or a run directory could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The place of a new run is taken.
    #[error(
        "{} exists and is not an empty directory; a run is never written over another: \
         give another --out or remove it first", path.display()
    )]
    Taken {
        /// The place asked for.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}; {}", path.display(), hint(source))]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// No run of this name.
    #[error(
        "no run {target:?} in {}{}; give a path, the first characters of an id, or latest",
        runs_dir.display(), listed(", did you mean", near)
    )]
    NoSuchRun {
        /// What was asked for.
        target: String,
        /// Where it was looked for.
        runs_dir: PathBuf,
        /// Runs of similar names, at most three.
        near: Vec<String>,
    },
    /// `latest` was asked for and there is none.
    #[error("there is no run in {} yet; make one with goodput bench, or give --runs-dir", runs_dir.display())]
    NoRuns {
        /// Where it was looked for.
        runs_dir: PathBuf,
    },
    /// Several runs start so.
    #[error(
        "{prefix:?} is the beginning of several runs{}; give more characters",
        listed(":", matches)
    )]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// All runs that start so, newest first.
        matches: Vec<String>,
    },
    /// A directory or file, but not of a run.
    #[error(
        "{} is not a run directory: it has neither run.json nor requests-*.parquet; \
         another tool's result can be taken in with goodput import", path.display()
    )]
    NotARun {
        /// What was given.
        path: PathBuf,
    },
    /// A file of rows that cannot be read.
    #[error("{}: {source}", path.display())]
    Rows {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: RowsError,
    },
    /// A file of what was scraped that cannot be read.
    #[error("{}: {source}", path.display())]
    Metrics {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: MetricsError,
    },
    /// Notes that cannot be read.
    #[error("{}: {source}; what people wrote is not written over: mend the file or move it away", path.display())]
    Notes {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: NotesError,
    },
    /// A run that does not fit into the memory that is free.
    #[error(
        "{} holds {rows} requests with {events} events, which take about {} to look at, and {} \
         are free; use a machine with more memory, or take single columns out of the Parquet files",
        path.display(), gigabytes(*needed_bytes), gigabytes(*free_bytes)
    )]
    Memory {
        /// The run.
        path: PathBuf,
        /// Its requests.
        rows: u64,
        /// Their events.
        events: u64,
        /// What a report of them takes, about.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
    /// A file above a limit.
    #[error("{} is larger than {limit_bytes} bytes, the most that is read here; is it the right file?", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit_bytes: u64,
    },
    /// A file where a folder is wanted.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// What was given.
        path: PathBuf,
    },
    /// A folder with more in it than is looked at.
    #[error("{} holds more than {limit} files; is it the right folder?", path.display())]
    TooMany {
        /// The folder.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// A name that would lead out of its directory.
    #[error("{name:?} is not a plain file name; a file of a run lies in the run's own directory")]
    BadName {
        /// The name given.
        name: String,
    },
    /// Not one of the runs that may be removed.
    #[error(
        "{} does not lie in {}; only runs in the runs directory are removed: \
         give --runs-dir, or remove it by hand", path.display(), runs_dir.display()
    )]
    Outside {
        /// What was given.
        path: PathBuf,
        /// Where it should lie.
        runs_dir: PathBuf,
    },
}

impl StoreError {
    /// True when the disk or the quota is full, so that the same write may
    /// succeed later.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if full(source))
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn hint(error: &io::Error) -> &'static str {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::StorageFull | Kind::QuotaExceeded => {
            "free some space or use another disk; what was written before is whole and readable"
        }
        Kind::NotFound => "check the path",
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => {
            "choose a place that this user may write to, or change its permissions"
        }
        Kind::IsADirectory => "give the path of a file",
        Kind::NotADirectory => "a part of the path is a file",
        Kind::AlreadyExists => "something else is there already",
        _ => "what was written before is whole and readable",
    }
}

fn listed(before: &str, names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("{before} {}", names.join(", ")) }
}
