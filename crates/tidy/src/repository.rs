//! The files of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::manifest::Manifest;
use crate::source::Source;

/// A text file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path from the root, with `/` between the parts.
    pub path: String,
    /// What stands in it.
    pub text: String,
}

/// All files that belong to the repository.
#[derive(Clone, Debug, Default)]
pub struct Repository {
    /// Text files outside `testdata`, sorted by path.
    pub files: Vec<File>,
    /// Paths of all files and directories, the binary ones and those of
    /// `testdata` as well.
    pub paths: BTreeSet<String>,
}

impl Repository {
    /// Reads the repository at `root`: what `.gitignore` names is left out.
    ///
    /// # Errors
    ///
    /// When a directory or a file cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let mut ignored: Vec<&str> =
            ignored.lines().map(|line| line.trim().trim_start_matches('/')).collect();
        ignored.push(".git");
        let mut repository = Self::default();
        repository.walk(root, "", &ignored)?;
        repository.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(repository)
    }

    fn walk(&mut self, directory: &Path, above: &str, ignored: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // An ignored name is ignored in every directory, as git does it.
            let skip = ignored.contains(&name.as_str());
            let path = if above.is_empty() { name } else { format!("{above}/{name}") };
            if skip || ignored.contains(&path.as_str()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.walk(&entry.path(), &path, ignored)?;
            } else if !path.starts_with("testdata/")
                && let Ok(text) = String::from_utf8(fs::read(entry.path())?)
            {
                self.files.push(File { path: path.clone(), text });
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// The text of a file; empty when there is no such file, so that the rule
    /// that needs it finds nothing in it and says so.
    pub fn text(&self, path: &str) -> &str {
        self.files.iter().find(|file| file.path == path).map_or("", |file| &file.text)
    }

    /// Every Rust source of every crate.
    pub fn sources(&self) -> Vec<Source> {
        self.files
            .iter()
            .filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".rs"))
            .map(|file| Source::of(&file.path, &file.text))
            .collect()
    }

    /// The name of each crate's folder and its manifest.
    pub fn manifests(&self) -> Vec<(String, Manifest)> {
        self.files
            .iter()
            .filter_map(|file| {
                let folder = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
                Some((folder.to_owned(), Manifest::of(&file.text)))
            })
            .collect()
    }

    /// Every Markdown page.
    pub fn pages(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.ends_with(".md"))
    }
}
