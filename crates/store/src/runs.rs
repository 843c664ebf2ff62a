//! The runs that were made: finding, reading, listing and removing them.

use std::fmt;
use std::fs;
use std::io;
use std::path::{MAIN_SEPARATOR, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use measure::Record;
use wire::notes::{self, Notes};
use wire::rows::{self, Extent};
use wire::scrapes::{self, Collected};

use crate::directory::{METRICS, ROWS_FILE_BYTES, RowsFile, file_names, inside, rows_files};
use crate::file::{TEMPORARY, read_file, write_file_atomic};
use crate::{RunId, StoreError, id, memory};

/// The word for the newest run.
const LATEST: &str = "latest";

/// Where removed runs go, inside the runs directory: a removal by mistake can
/// be undone, and nothing is moved across disks.
const TRASH: &str = ".trash";

/// The most bytes of a run's JSON file.
const JSON_BYTES: u64 = 64 << 20;

/// What people wrote about a run.
const NOTES: &str = "notes.json";

/// The most bytes of it: more than its limits in characters can take.
const NOTES_BYTES: u64 = 1 << 20;

/// Names shown when a run is not found.
const NEAR: usize = 3;

/// A run in the runs directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEntry {
    /// The name of its directory, a [`RunId`] unless a person named it.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// When its manifest or its rows were written last. Notes do not count: a
    /// run is as old as what was measured.
    pub modified: SystemTime,
    /// The bytes of its files.
    pub size_bytes: u64,
}

/// A run directory that can be read.
#[derive(Clone, Debug)]
pub struct OpenRun {
    /// Where it is.
    pub path: PathBuf,
    /// The name of its directory.
    pub id: String,
}

/// The rows of a run and what a reader must know of them.
#[derive(Debug)]
pub struct Rows {
    /// Sorted by index.
    pub records: Vec<Record>,
    /// Why they may not be all rows of the run. Empty when all is well.
    pub notes: Vec<Note>,
}

/// Something about the files of a run that a report must say.
#[derive(Debug)]
pub enum Note {
    /// A file could not be read; the rows of the others are given.
    Damaged(StoreError),
    /// The numbers of a worker's parts have a gap.
    MissingPart {
        /// The file that should be there.
        name: String,
    },
    /// A write was cut off, by a crash say.
    CutOff {
        /// The file that was never finished. It is not read.
        name: String,
    },
    /// Several rows claim one place in the schedule. All are given.
    SameIndex {
        /// The rows beyond the first of each place.
        rows: usize,
    },
    /// The run has no file of rows: only its aggregates are known.
    NoRows,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(error) => write!(f, "a file of rows is left out: {error}"),
            Self::MissingPart { name } => {
                write!(f, "the part {name} is missing and with it its rows")
            }
            Self::CutOff { name } => {
                write!(f, "a write was cut off: {name} is not whole and is not read")
            }
            Self::SameIndex { rows } => {
                write!(f, "rows that repeat the index of another: {rows}; all are counted")
            }
            Self::NoRows => f.write_str("the run has no rows of single requests, only aggregates"),
        }
    }
}

/// Finds a run: a path, `latest`, or the beginning of an id in `runs_dir`.
///
/// # Errors
///
/// [`StoreError::NoSuchRun`] with runs of similar names, [`StoreError::NoRuns`],
/// [`StoreError::Ambiguous`] with all that match, [`StoreError::NotARun`], or
/// [`StoreError::Io`].
pub fn open_run(target: &str, runs_dir: &Path) -> Result<OpenRun, StoreError> {
    let path = find(target, runs_dir)?;
    // "." has no name of its own, its full path has.
    let full = fs::canonicalize(&path).map_err(StoreError::io("open", &path))?;
    let id = full.file_name().unwrap_or(full.as_os_str()).to_string_lossy().into_owned();
    Ok(OpenRun { path, id })
}

fn find(target: &str, runs_dir: &Path) -> Result<PathBuf, StoreError> {
    if target == LATEST {
        let newest = list_runs(runs_dir)?.into_iter().next();
        let none = || StoreError::NoRuns { runs_dir: runs_dir.to_owned() };
        return newest.map(|run| run.path).ok_or_else(none);
    }
    let path = Path::new(target);
    if is_run(path) {
        return Ok(path.to_owned());
    }
    let not_a_run = || StoreError::NotARun { path: path.to_owned() };
    if target.contains(MAIN_SEPARATOR) {
        fs::metadata(path).map_err(StoreError::io("open", path))?;
        return Err(not_a_run());
    }
    let runs = list_runs(runs_dir)?;
    if let Some(exact) = runs.iter().find(|run| run.id.eq_ignore_ascii_case(target)) {
        return Ok(exact.path.clone());
    }
    let begins = |run: &&RunEntry| !target.is_empty() && id::starts_with(&run.id, target);
    let matches: Vec<&RunEntry> = runs.iter().filter(begins).collect();
    match matches.as_slice() {
        [one] => Ok(one.path.clone()),
        [] if path.exists() => Err(not_a_run()),
        [] => Err(StoreError::NoSuchRun {
            target: target.to_owned(),
            runs_dir: runs_dir.to_owned(),
            near: near(target, &runs),
        }),
        several => Err(StoreError::Ambiguous {
            prefix: target.to_owned(),
            matches: several.iter().map(|run| run.id.clone()).collect(),
        }),
    }
}

/// The run of exactly this name in `runs_dir`: no path, no prefix, no link, and
/// nothing hidden. The name may come from outside.
///
/// # Errors
///
/// [`StoreError::BadName`] when the name leads elsewhere, [`StoreError::NotARun`]
/// when there is no run of that name.
pub fn run_in(id: &str, runs_dir: &Path) -> Result<OpenRun, StoreError> {
    let path = inside(runs_dir, id)?;
    // A NUL ends a path for the system and not for us; the rest is hidden.
    if id.starts_with('.') || id.contains('\0') {
        return Err(StoreError::BadName { name: id.to_owned() });
    }
    let directory = fs::symlink_metadata(&path).is_ok_and(|found| found.is_dir());
    if !directory || !is_run(&path) {
        return Err(StoreError::NotARun { path });
    }
    Ok(OpenRun { path, id: id.to_owned() })
}

impl OpenRun {
    /// Whether the run has a file of this name.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadName`] when the name leads out of the directory,
    /// [`StoreError::Io`] when the directory cannot be read.
    pub fn has(&self, name: &str) -> Result<bool, StoreError> {
        let path = inside(&self.path, name)?;
        path.try_exists().map_err(StoreError::io("look for", &path))
    }

    /// When its manifest or its rows were written last.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] when the directory cannot be read.
    pub fn measured_at(&self) -> Result<SystemTime, StoreError> {
        measured_at(&self.path)
    }

    /// What people wrote about the run; nothing where they did not.
    ///
    /// # Errors
    ///
    /// [`StoreError::Notes`] for a file that is not of this form,
    /// [`StoreError::Io`] or [`StoreError::TooLarge`] for one that cannot be
    /// read.
    pub fn notes(&self) -> Result<Notes, StoreError> {
        let path = self.path.join(NOTES);
        match read_file(&path, NOTES_BYTES) {
            Ok(bytes) => notes::decode(&bytes).map_err(|source| StoreError::Notes { path, source }),
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(Notes::default())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes what people say about the run in place of what they said before,
    /// whole or not at all.
    ///
    /// # Errors
    ///
    /// As [`Self::notes`]: what cannot be read is not written over. And
    /// [`StoreError::Io`] when it cannot be written.
    pub fn write_notes(&self, notes: &Notes) -> Result<(), StoreError> {
        self.notes()?;
        write_file_atomic(&self.path.join(NOTES), &notes::encode(notes))
    }

    /// The bytes of a file of the run, `run.json` say.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadName`] when the name leads out of the directory,
    /// [`StoreError::Io`] or [`StoreError::TooLarge`] when it cannot be read.
    pub fn read_json(&self, name: &str) -> Result<Vec<u8>, StoreError> {
        read_file(&inside(&self.path, name)?, JSON_BYTES)
    }

    /// What was scraped of servers during the run; nothing where nothing was.
    ///
    /// # Errors
    ///
    /// [`StoreError::Metrics`] for a damaged file, [`StoreError::Io`] or
    /// [`StoreError::TooLarge`] for one that cannot be read.
    pub fn metrics(&self) -> Result<Collected, StoreError> {
        let path = self.path.join(METRICS);
        let bytes = match read_file(&path, ROWS_FILE_BYTES) {
            Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Collected::default());
            }
            read => read?,
        };
        scrapes::decode(&bytes).map_err(|source| StoreError::Metrics { path, source })
    }

    /// All rows that can be read, sorted by index. What cannot be read is a
    /// note, so that one bad sector does not cost a run.
    ///
    /// # Errors
    ///
    /// The first file's when there are files of rows and none can be read,
    /// [`StoreError::Io`] when the directory cannot, or [`StoreError::Memory`].
    pub fn records(&self) -> Result<Rows, StoreError> {
        self.records_within(memory::free_bytes())
    }

    /// The same, where so many bytes of memory are free.
    ///
    /// # Errors
    ///
    /// As [`Self::records`].
    pub fn records_within(&self, free_bytes: Option<u64>) -> Result<Rows, StoreError> {
        if let Some(free_bytes) = free_bytes {
            self.fits(free_bytes)?;
        }
        let mut notes: Vec<Note> = file_names(&self.path)?
            .into_iter()
            .filter(|name| name.ends_with(TEMPORARY))
            .map(|name| Note::CutOff { name })
            .collect();
        let files = rows_files(&self.path)?;
        if files.is_empty() {
            notes.push(Note::NoRows);
        }
        let (mut records, mut read) = (Vec::new(), 0);
        for worker in files.chunk_by(|one, next| one.worker == next.worker) {
            read += self.read_worker(worker, &mut records, &mut notes);
        }
        let damaged = notes.iter().position(|note| matches!(note, Note::Damaged(_)));
        if let (0, Some(place)) = (read, damaged)
            && let Note::Damaged(error) = notes.swap_remove(place)
        {
            return Err(error);
        }
        records.sort_by_key(|record: &Record| record.index);
        let rows = records.windows(2).filter(|pair| pair[0].index == pair[1].index).count();
        if rows > 0 {
            notes.push(Note::SameIndex { rows });
        }
        Ok(Rows { records, notes })
    }

    /// Refuses a run that would end with the program being killed: nothing is
    /// said then, and other programs may be hit instead.
    fn fits(&self, free_bytes: u64) -> Result<(), StoreError> {
        let files: Vec<PathBuf> =
            rows_files(&self.path)?.iter().map(|file| self.path.join(file.name())).collect();
        let stored: u64 =
            files.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
        if stored.saturating_mul(memory::MOST_FOR_A_BYTE) < free_bytes {
            return Ok(());
        }
        let mut whole = Extent::default();
        for path in files {
            // What cannot be read takes no memory, and is told when it is read.
            let extent =
                read_file(&path, ROWS_FILE_BYTES).ok().and_then(|bytes| rows::extent(&bytes).ok());
            let Some(Extent { rows, events }) = extent else { continue };
            whole.rows += rows;
            whole.events += events;
        }
        let needed_bytes = memory::needed_bytes(whole);
        if needed_bytes <= free_bytes {
            return Ok(());
        }
        let (path, Extent { rows, events }) = (self.path.clone(), whole);
        Err(StoreError::Memory { path, rows, events, needed_bytes, free_bytes })
    }

    /// Reads the files of one worker and gives the number of those read. The
    /// joined file is made of all parts: where it is whole, parts beside it
    /// were only not removed yet.
    fn read_worker(
        &self,
        files: &[RowsFile],
        records: &mut Vec<Record>,
        notes: &mut Vec<Note>,
    ) -> usize {
        let (mut read, mut expected) = (0, 0);
        for file in files {
            for part in expected..file.part.unwrap_or(0) {
                let name = RowsFile { part: Some(part), ..*file }.name();
                notes.push(Note::MissingPart { name });
            }
            expected = file.part.map_or(0, |part| part + 1);
            match self.rows_of(*file) {
                Ok(rows) => {
                    records.extend(rows);
                    read += 1;
                    if file.part.is_none() {
                        break;
                    }
                }
                Err(error) => notes.push(Note::Damaged(error)),
            }
        }
        read
    }

    fn rows_of(&self, file: RowsFile) -> Result<Vec<Record>, StoreError> {
        let path = self.path.join(file.name());
        rows::decode(&read_file(&path, ROWS_FILE_BYTES)?)
            .map_err(|source| StoreError::Rows { path, source })
    }
}

/// The runs in a directory, newest first. A directory that does not exist has
/// none. Links are not followed, so that a run is listed where it lies.
///
/// # Errors
///
/// [`StoreError::Io`] when it exists and cannot be read.
pub fn list_runs(runs_dir: &Path) -> Result<Vec<RunEntry>, StoreError> {
    let entries = match fs::read_dir(runs_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("look into", runs_dir))?,
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(StoreError::io("look into", runs_dir))?;
        let (path, id) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !directory || id.starts_with('.') || !is_run(&path) {
            continue;
        }
        let modified = measured_at(&path)?;
        let size_bytes = size_of_files(&path)?;
        runs.push(RunEntry { id, path, modified, size_bytes });
    }
    runs.sort_by(|one, other| (other.made_ms(), &other.id).cmp(&(one.made_ms(), &one.id)));
    Ok(runs)
}

impl RunEntry {
    /// When the run was made, in milliseconds since 1970. An id says it; of a
    /// directory that a person named only the last change is known.
    pub fn made_ms(&self) -> u64 {
        let modified = || {
            let since = self.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            since.as_millis().try_into().unwrap_or(u64::MAX)
        };
        self.id.parse().map_or_else(|_| modified(), RunId::unix_ms)
    }
}

/// Moves a run, found as by [`open_run`], to the trash inside `runs_dir` and
/// gives the place where it is now.
///
/// # Errors
///
/// As [`open_run`]; [`StoreError::Outside`] when the run or the trash does not
/// lie in `runs_dir` itself.
pub fn remove_run(target: &str, runs_dir: &Path) -> Result<PathBuf, StoreError> {
    trash(&open_run(target, runs_dir)?, runs_dir)
}

/// Moves a run to the trash as [`remove_run`] does.
///
/// # Errors
///
/// [`StoreError::Outside`] when the run or the trash does not lie in `runs_dir`
/// itself, [`StoreError::Io`] when it cannot be moved.
pub fn trash(run: &OpenRun, runs_dir: &Path) -> Result<PathBuf, StoreError> {
    let full = |path: &Path| fs::canonicalize(path).map_err(StoreError::io("open", path));
    let (path, home) = (full(&run.path)?, full(runs_dir)?);
    if path.parent() != Some(&home) || run.id.starts_with('.') {
        return Err(StoreError::Outside { path: run.path.clone(), runs_dir: runs_dir.to_owned() });
    }
    let trash = home.join(TRASH);
    match fs::create_dir(&trash) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StoreError::io("make the directory", &trash)(error));
        }
        // A link would lead the run out of the runs directory.
        _ if !fs::symlink_metadata(&trash).is_ok_and(|found| found.is_dir()) => {
            return Err(StoreError::Outside { path: trash, runs_dir: runs_dir.to_owned() });
        }
        _ => {}
    }
    let mut place = trash.join(&run.id);
    let mut count = 1;
    while fs::symlink_metadata(&place).is_ok() {
        count += 1;
        place = trash.join(format!("{}.{count}", run.id));
    }
    fs::rename(&path, &place).map_err(StoreError::io("move to the trash", &path))?;
    Ok(place)
}

/// A crash may come before `run.json` is written, and an import may have no
/// rows; one of the two makes a run.
fn is_run(path: &Path) -> bool {
    path.join("run.json").is_file() || rows_files(path).is_ok_and(|files| !files.is_empty())
}

/// The last change of a run's manifest or rows; of its directory where there
/// is neither any more.
fn measured_at(run: &Path) -> Result<SystemTime, StoreError> {
    let changed = |path: PathBuf| fs::metadata(path).and_then(|found| found.modified());
    let rows = rows_files(run)?.into_iter().map(RowsFile::name);
    let files = rows.chain(["run.json".to_owned()]).map(|name| run.join(name));
    match files.filter_map(|file| changed(file).ok()).max() {
        Some(last) => Ok(last),
        None => changed(run.to_owned()).map_err(StoreError::io("look into", run)),
    }
}

fn size_of_files(directory: &Path) -> Result<u64, StoreError> {
    let names = file_names(directory)?;
    let sizes = names.iter().map(|name| fs::symlink_metadata(directory.join(name)));
    // A file that went away in between takes no space.
    Ok(sizes.flatten().filter(|found| found.is_file()).map(|found| found.len()).sum())
}

/// The runs whose names look most like what was asked for.
fn near(target: &str, runs: &[RunEntry]) -> Vec<String> {
    let target = target.to_ascii_lowercase();
    let length = target.chars().count();
    let allowed = (length / 3).clamp(1, 3);
    let mut found: Vec<(usize, &String)> = Vec::new();
    for run in runs {
        let id = run.id.to_ascii_lowercase();
        let head: String = id.chars().take(length).collect();
        // The end of an id is what differs between runs, and what one recalls.
        let far = if id.contains(&target) { 0 } else { distance(&target, &head) };
        if far <= allowed {
            found.push((far, &run.id));
        }
    }
    found.sort_by_key(|(far, _)| *far);
    found.into_iter().take(NEAR).map(|(_, id)| id.clone()).collect()
}

/// Levenshtein's distance: how many characters to add, drop or change.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, character) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (place, candidate) in other.iter().enumerate() {
            let changed = diagonal + usize::from(character != *candidate);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_added_dropped_and_changed_characters() {
        for (one, other, expected) in
            [("", "", 0), ("", "abc", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
            assert_eq!(distance(other, one), expected, "{other} {one}");
        }
    }
}
