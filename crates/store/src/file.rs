//! Whole files: read under a limit, written as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::StoreError;

/// The end of the name of a file that is not whole yet.
pub(crate) const TEMPORARY: &str = ".tmp";

/// Told apart by process and by count, because two exports to one path at the
/// same time must not write into each other.
static COUNT: AtomicU64 = AtomicU64::new(0);

/// The bytes of a file of at most `limit_bytes`.
///
/// # Errors
///
/// [`StoreError::Io`] when it cannot be read, [`StoreError::TooLarge`] when it
/// is larger, however large the file says it is.
pub fn read_file(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, StoreError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit_bytes.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(StoreError::io("read", path))?;
    if bytes.len() as u64 > limit_bytes {
        return Err(StoreError::TooLarge { path: path.to_owned(), limit_bytes });
    }
    Ok(bytes)
}

/// The names of what lies in a folder of at most `limit` things, in order.
/// Names that are not UTF-8 are passed over.
///
/// # Errors
///
/// [`StoreError::NotAFolder`], [`StoreError::TooMany`], and [`StoreError::Io`]
/// when it cannot be read.
pub fn names_in(folder: &Path, limit: usize) -> Result<Vec<String>, StoreError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotADirectory => StoreError::NotAFolder { path: folder.to_owned() },
        _ => StoreError::io("read", folder)(error),
    };
    let mut names = Vec::new();
    for (place, entry) in fs::read_dir(folder).map_err(failed)?.enumerate() {
        if place == limit {
            return Err(StoreError::TooMany { path: folder.to_owned(), limit });
        }
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Writes a file as a whole: whoever looks sees the old bytes or the new ones.
///
/// # Errors
///
/// [`StoreError::Io`]; the old file is then as it was.
pub fn write_file_atomic(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    Output::open(path)?.write(bytes)
}

/// A file that is going to be written. It is opened before anything is
/// measured, so that a wrong path is found before an hour of load and not
/// after it.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    open: Open,
}

#[derive(Debug)]
enum Open {
    /// A file beside the target, which takes its place in the end.
    Beside { temporary: Temporary, file: File },
    /// A device or a pipe: it cannot be replaced, only written to.
    Through { file: File },
}

/// The end of a file of somebody else's, to which text is added: what is there
/// stays, whatever happens.
#[derive(Debug)]
pub struct Appended {
    path: PathBuf,
    file: File,
}

impl Appended {
    /// Opens the end of `path`; without a file an empty one is made.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] when nothing can be added there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Ok(Self { path: path.to_owned(), file: file.map_err(StoreError::io("write", path))? })
    }

    /// Bytes that are there already.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] when the system does not say.
    pub fn bytes(&self) -> Result<u64, StoreError> {
        let found = self.file.metadata().map_err(StoreError::io("read", &self.path))?;
        Ok(found.len())
    }

    /// Adds these bytes in one write, so that another writer's stay whole.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; a part may be there then.
    pub fn write(mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.flush());
        written.map_err(StoreError::io("write", &self.path))
    }
}

/// Removes its file when it is given up.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the rename there is nothing of this name, and that is right.
        let _ = fs::remove_file(&self.0);
    }
}

impl Output {
    /// Opens the way to `path`. Nothing is there to see before [`Self::write`].
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] when nothing can be written there.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Io { action: "write", path: path.to_owned(), source };
        // A link stays a link: what it points to is written.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let open = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => {
                return Err(failed(io::Error::from(io::ErrorKind::IsADirectory)));
            }
            Ok(found) if !found.is_file() => {
                let file = OpenOptions::new().write(true).open(&target).map_err(failed)?;
                Open::Through { file }
            }
            _ => {
                let name = temporary_name(&target).map_err(failed)?;
                let file = OpenOptions::new().write(true).create_new(true).open(&name);
                Open::Beside { file: file.map_err(failed)?, temporary: Temporary(name) }
            }
        };
        Ok(Self { path: target, open })
    }

    /// False of a device or a pipe: nothing can lie beside it.
    pub const fn is_file(&self) -> bool {
        matches!(self.open, Open::Beside { .. })
    }

    /// Writes the whole content, forces it to the disk and puts it in place.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`]; an old file is then as it was.
    pub fn write(self, bytes: &[u8]) -> Result<(), StoreError> {
        let Self { path, open } = self;
        let written = match open {
            Open::Through { mut file } => file.write_all(bytes).and_then(|()| file.flush()),
            Open::Beside { temporary, mut file } => file
                .write_all(bytes)
                .and_then(|()| file.sync_all())
                .and_then(|()| fs::rename(&temporary.0, &path))
                .and_then(|()| sync_directory(&path)),
        };
        written.map_err(StoreError::io("write", &path))
    }
}

fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(path.with_file_name(format!(".{name}.{}-{count}{TEMPORARY}", std::process::id())))
}

/// Makes a rename in a directory last: the name is data of the directory.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
