//! The directory of a run while it is being made.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use measure::Record;
use wire::rows::{self, RowsError};
use wire::scrapes;

use crate::file::read_file;
use crate::{Output, RunId, StoreError};

/// Bytes that are written and removed again when a run directory is made. A
/// disk without room for them has none for a run.
const PROBE_BYTES: usize = 1 << 20;

/// The most bytes of parts that are joined in memory. Larger runs stay in
/// parts, which every reader takes as well.
const JOIN_BYTES: u64 = 256 << 20;

/// The most bytes of one file of rows.
pub(crate) const ROWS_FILE_BYTES: u64 = 2 << 30;

/// What was scraped of servers during a run.
pub(crate) const METRICS: &str = "metrics.parquet";

/// The directory of a run that this process makes. A clone is the same
/// directory: each worker's rows go to files of their own.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
}

/// What became of a worker's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The worker wrote no part.
    Nothing,
    /// One file took their place.
    Whole {
        /// The file.
        path: PathBuf,
        /// Its rows.
        rows: u64,
    },
    /// They are too large to be joined in memory and stay as they are.
    Apart {
        /// How many there are.
        parts: usize,
    },
}

/// A file of rows by its name: `requests-<worker>[-<part>].parquet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowsFile {
    pub(crate) worker: u32,
    /// `None` for the joined file, which sorts first.
    pub(crate) part: Option<u32>,
}

impl RowsFile {
    pub(crate) fn name(self) -> String {
        let Self { worker, part } = self;
        match part {
            Some(part) => format!("requests-{worker}-{part}.parquet"),
            None => format!("requests-{worker}.parquet"),
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let numbers = name.strip_prefix("requests-")?.strip_suffix(".parquet")?;
        let file = match numbers.split_once('-') {
            Some((worker, part)) => {
                Self { worker: worker.parse().ok()?, part: Some(part.parse().ok()?) }
            }
            None => Self { worker: numbers.parse().ok()?, part: None },
        };
        // Numbers have more than one spelling, and only one is ours.
        (file.name() == name).then_some(file)
    }
}

impl RunDirectory {
    /// Makes `path` the directory of a new run, with its parents. It may exist
    /// if it is empty. A trial file is written and removed, so that a disk that
    /// is full or read-only is found before anything is measured.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] when something is there, [`StoreError::Io`] when
    /// it cannot be made or written to.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let taken = || StoreError::Taken { path: path.to_owned() };
        let made = match fs::read_dir(path).map(|mut entries| entries.next().is_none()) {
            Ok(true) => false,
            Ok(false) => return Err(taken()),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(taken()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(StoreError::io("make the directory", path))?;
                true
            }
            Err(error) => return Err(StoreError::io("look into", path)(error)),
        };
        let directory = Self { path: path.to_owned() };
        if let Err(error) = directory.try_out() {
            if made {
                // Only an empty directory is removed so, and it is ours.
                let _ = fs::remove_dir(path);
            }
            return Err(error);
        }
        Ok(directory)
    }

    /// As [`Self::create`], in `runs_dir` under the run's id.
    ///
    /// # Errors
    ///
    /// As [`Self::create`].
    pub fn create_in(runs_dir: &Path, id: RunId) -> Result<Self, StoreError> {
        Self::create(&runs_dir.join(id.to_string()))
    }

    fn try_out(&self) -> Result<(), StoreError> {
        let trial = self.path.join("trial");
        Output::open(&trial)?.write(&vec![0; PROBE_BYTES])?;
        fs::remove_file(&trial).map_err(StoreError::io("remove", &trial))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes rows as one part of a worker's, whole or not at all. The same
    /// part written again takes the place of the first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; parts that were written before stay readable.
    pub fn write_part(&self, worker: u32, part: u32, rows: &[Record]) -> Result<(), StoreError> {
        let name = RowsFile { worker, part: Some(part) }.name();
        self.open_output(&name)?.write(&rows::encode(rows))
    }

    /// Writes a file of the run, `run.json` say, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadName`] when the name leads out of the directory,
    /// [`StoreError::Io`] when it cannot be written.
    pub fn write_json(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.open_output(name)?.write(bytes)
    }

    /// Opens a file of the run that is written later.
    ///
    /// # Errors
    ///
    /// As [`Self::write_json`].
    pub fn open_output(&self, name: &str) -> Result<Output, StoreError> {
        Output::open(&inside(&self.path, name)?)
    }

    /// Writes what was scraped of servers, as `wire::scrapes` encodes it, whole or
    /// not at all.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] when it cannot be written.
    pub fn write_metrics(&self, bytes: &[u8]) -> Result<(), StoreError> {
        self.open_output(METRICS)?.write(bytes)
    }

    /// The files of rows and of what was scraped: name, and the checksum that each
    /// carries.
    ///
    /// # Errors
    ///
    /// [`StoreError::Rows`] or [`StoreError::Metrics`] for a damaged file and
    /// [`StoreError::Io`] for one that cannot be read.
    pub fn checksums(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut checksums = Vec::new();
        for file in rows_files(&self.path)? {
            let path = self.path.join(file.name());
            let bytes = read_file(&path, ROWS_FILE_BYTES)?;
            let checksum = rows::checksum(&bytes)
                .map_err(|source| StoreError::Rows { path: path.clone(), source })?;
            checksums.push((file.name(), checksum));
        }
        let path = self.path.join(METRICS);
        if path.is_file() {
            let checksum = scrapes::checksum(&read_file(&path, ROWS_FILE_BYTES)?)
                .map_err(|source| StoreError::Metrics { path, source })?;
            checksums.push((METRICS.to_owned(), checksum));
        }
        Ok(checksums)
    }

    /// Joins the parts of a worker into one file and removes them. The parts
    /// go only when the file is on the disk; where both are found, after a
    /// crash in between, the file counts.
    ///
    /// # Errors
    ///
    /// [`StoreError::Rows`] for a damaged part and [`StoreError::Io`] for a
    /// failed write. All parts are then as they were.
    pub fn finish(&self, worker: u32) -> Result<Joined, StoreError> {
        let mut parts = rows_files(&self.path)?;
        parts.retain(|file| file.worker == worker && file.part.is_some());
        let paths: Vec<PathBuf> = parts.iter().map(|part| self.path.join(part.name())).collect();
        if paths.is_empty() {
            return Ok(Joined::Nothing);
        }
        let apart = Joined::Apart { parts: paths.len() };
        if total_bytes(&paths)? > JOIN_BYTES {
            return Ok(apart);
        }
        let (mut files, mut total) = (Vec::new(), 0);
        for path in &paths {
            let file = read_file(path, ROWS_FILE_BYTES)?;
            total += rows::count(&file)
                .map_err(|source| StoreError::Rows { path: path.clone(), source })?;
            files.push(file);
        }
        let path = self.path.join(RowsFile { worker, part: None }.name());
        let joined = match rows::join(files) {
            Ok(joined) => joined,
            Err(RowsError::TooManyRows { .. }) => return Ok(apart),
            Err(source) => return Err(StoreError::Rows { path, source }),
        };
        Output::open(&path)?.write(&joined)?;
        for part in &paths {
            fs::remove_file(part).map_err(StoreError::io("remove", part))?;
        }
        Ok(Joined::Whole { path, rows: total })
    }
}

/// The files of rows in a run directory, sorted by worker, the joined file
/// before the parts.
pub(crate) fn rows_files(run: &Path) -> Result<Vec<RowsFile>, StoreError> {
    let mut files: Vec<RowsFile> =
        file_names(run)?.iter().filter_map(|name| RowsFile::from_name(name)).collect();
    files.sort_unstable();
    Ok(files)
}

/// The names in a directory. A name that is no Unicode is none of ours.
pub(crate) fn file_names(directory: &Path) -> Result<Vec<String>, StoreError> {
    let read = |entry: io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
    let names: io::Result<Vec<_>> =
        fs::read_dir(directory).and_then(|entries| entries.map(read).collect());
    let names = names.map_err(StoreError::io("look into", directory))?;
    Ok(names.into_iter().filter_map(|name| name.into_string().ok()).collect())
}

/// The path of a file of a run. The name may come from outside.
pub(crate) fn inside(run: &Path, name: &str) -> Result<PathBuf, StoreError> {
    let mut components = Path::new(name).components();
    match (components.next(), components.next()) {
        (Some(Component::Normal(plain)), None) if plain == name => Ok(run.join(name)),
        _ => Err(StoreError::BadName { name: name.to_owned() }),
    }
}

fn total_bytes(paths: &[PathBuf]) -> Result<u64, StoreError> {
    let size = |path: &PathBuf| fs::metadata(path).map(|found| found.len());
    paths.iter().map(|path| size(path).map_err(StoreError::io("read", path))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_rows_has_one_name() {
        let part = |worker, part| Some(RowsFile { worker, part });
        assert_eq!(RowsFile::from_name("requests-3.parquet"), part(3, None));
        assert_eq!(RowsFile::from_name("requests-3-12.parquet"), part(3, Some(12)));
        for other in [
            "requests-.parquet",
            "requests-03.parquet",
            "requests-+3.parquet",
            "requests-3-.parquet",
            "requests-3-1-2.parquet",
            "requests-4294967296.parquet",
            ".requests-3-1.parquet.77-0.tmp",
            "metrics.parquet",
        ] {
            assert_eq!(RowsFile::from_name(other), None, "{other}");
        }
    }

    #[test]
    fn a_name_that_leads_out_of_the_run_is_refused() {
        let run = Path::new("run");
        assert_eq!(inside(run, "run.json").expect("it is plain"), run.join("run.json"));
        for name in ["", ".", "..", "../x", "/x", "a/b", "x/", "./x"] {
            assert!(matches!(inside(run, name), Err(StoreError::BadName { .. })), "{name}");
        }
    }
}
