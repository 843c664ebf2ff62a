//! Starting the binary, and what it told.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A directory of one test, in which the binary runs; removed at the end.
pub(crate) struct Workplace {
    path: PathBuf,
    reads_metrics: bool,
}

impl Workplace {
    /// One in which runs read no metrics: most tests look at every request that a
    /// server gets.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("it-{}-{count}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self { path, reads_metrics: false }
    }

    /// One in which runs read metrics, as they do everywhere else.
    pub(crate) fn with_metrics() -> Self {
        let mut workplace = Self::new();
        workplace.reads_metrics = true;
        workplace
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file and gives its name, which is enough in here.
    pub(crate) fn file<'n>(&self, name: &'n str, content: impl AsRef<[u8]>) -> &'n str {
        std::fs::write(self.at(name), content).unwrap();
        name
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.at(name)).unwrap()
    }

    /// The rows of an exported file.
    pub(crate) fn rows(&self, name: &str) -> Vec<Value> {
        self.read(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The binary with these arguments, in here, with nothing of the user's
    /// environment that it listens to.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_goodput"));
        command.args(arguments).current_dir(&self.path).stdin(Stdio::null());
        for (name, _) in std::env::vars() {
            let told = name.starts_with("GOODPUT_") || name.ends_with("_API_KEY");
            if told || name == "GITHUB_STEP_SUMMARY" {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C.UTF-8");
        if !self.reads_metrics {
            command.env("GOODPUT_NO_METRICS", "true");
        }
        // A drawn seed would draw another run each time the tests are run.
        command.env("GOODPUT_SEED", "0");
        command
    }

    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Told {
        Told::of(self.command(arguments).output().unwrap())
    }

    /// Runs `bench` against `url` with a model and one prompt, and `more`. The
    /// exit code is that of a valid run: a machine that is busy with other
    /// tests may be too slow for one.
    pub(crate) fn bench(&self, url: &str, more: &[&str]) -> Told {
        self.judged_bench(url, &[more, &["--allow-invalid"]].concat())
    }

    /// As [`Self::bench`], with the exit code of what the run is.
    pub(crate) fn judged_bench(&self, url: &str, more: &[&str]) -> Told {
        Told::of(self.bench_command(url, more).output().unwrap())
    }

    /// The command of [`Self::judged_bench`], for a test that starts it itself.
    pub(crate) fn bench_command(&self, url: &str, more: &[&str]) -> Command {
        let start = ["bench", "--url", url, "--model", "m", "--prompt", "hi"];
        self.command(&[&start, more].concat())
    }

    /// Exports the run in `directory` and gives its rows.
    #[track_caller]
    pub(crate) fn export(&self, directory: &str) -> Vec<Value> {
        self.run(&["export", directory, "--to", "rows.jsonl"]).exits(0);
        self.rows("rows.jsonl")
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // What a failed test left is worth a look.
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// What the binary told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Told {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
        let told =
            Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) };
        assert!(!told.err.contains("panicked"), "{told:#?}");
        told
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// Standard error holds each of these.
    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        for word in words {
            assert!(self.err.contains(word), "not told: {word:?} in\n{}", self.err);
        }
        self
    }

    /// Standard output as the one JSON object that it must be.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("stdout is not one JSON object: {error}\n{}", self.out));
        assert!(value.is_object());
        value
    }

    /// The sentences of a failure: lines that begin with `error:`.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("error: ")).collect()
    }
}
