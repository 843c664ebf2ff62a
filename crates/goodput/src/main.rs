//! The one binary: what the user meant, wiring, exit codes.

mod cli;
mod command;
mod exit;
mod failure;
mod flags;
mod host;
mod output;
mod plan;
mod progress;
mod target;

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

/// Blocks until SIGINT or SIGTERM.
fn wait_for_signal() -> std::io::Result<()> {
    use nix::sys::signal::{SigSet, Signal};
    let mut set = SigSet::empty();
    set.add(Signal::SIGINT);
    set.add(Signal::SIGTERM);
    set.thread_block()?;
    set.wait()?;
    Ok(())
}
