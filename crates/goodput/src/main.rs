//! The one binary: what the user meant, wiring, exit codes.

mod cache;
mod cli;
mod collecting;
mod command;
mod exit;
mod failure;
mod flags;
mod host;
mod inquiry;
mod output;
mod plan;
mod progress;
mod target;
mod tokenizer;

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args_os()
        .map(|argument| flags::with_dashes(argument.to_string_lossy().into_owned()))
        .collect();
    match cli::run(&arguments) {
        Ok(exit) => ExitCode::from(exit as u8),
        Err(failure) => {
            for words in &failure.words {
                say(&format!("error: {words}"));
            }
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// One text for people, on standard error. A reader that went away is no
/// reason to stop.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// One text for standard output.
fn print(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// The bytes of a file that a user named, or why it cannot be read. Plans and
/// settings are given this, so that they open nothing themselves.
fn open(path: &str, limit: u64) -> Result<Vec<u8>, String> {
    store::read_file(path.as_ref(), limit).map_err(|error| error.to_string())
}

/// SIGINT and SIGTERM, held back from this thread and from those that it
/// starts from now on: one that comes before the wait begins would else end
/// another thread, and the whole program with it.
struct Signals(nix::sys::signal::SigSet);

impl Signals {
    /// Holds them back. Servers are started after it.
    fn hold() -> std::io::Result<Self> {
        use nix::sys::signal::{SigSet, Signal};
        let mut set = SigSet::empty();
        set.add(Signal::SIGINT);
        set.add(Signal::SIGTERM);
        set.thread_block()?;
        Ok(Self(set))
    }

    /// Blocks until one of them comes.
    fn wait(&self) -> std::io::Result<()> {
        self.0.wait()?;
        Ok(())
    }
}
