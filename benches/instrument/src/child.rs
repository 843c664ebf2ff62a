//! `instrument child`: runs one command on one processor and says what it
//! cost as a whole. It is a process of its own because the kernel gives peak
//! memory and processor time of ended children only as a sum or a maximum over
//! all of them.

use std::fs::File;
use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::json;

use crate::arguments::Arguments;
use crate::clock::monotonic_ns;

/// Runs the command after `--`: prints `pid N` when it runs, and a JSON object
/// when it has ended. Its own output goes to `--output`.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let core = arguments.number("core", 0)?;
    let output = File::create(arguments.need("output")?).map_err(|error| error.to_string())?;
    let errors = output.try_clone().map_err(|error| error.to_string())?;
    let (program, words) = arguments.rest.split_first().ok_or("no command after --")?;
    crate::limits::raise_open_files();
    crate::limits::pin(core).map_err(|error| format!("core {core}: {error}"))?;
    let began_ns = monotonic_ns();
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    crate::say(&format!("pid {}", child.id()));
    let status = child.wait().map_err(|error| error.to_string())?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).map_err(|error| error.to_string())?;
    let ns = |time: TimeVal| (time.tv_sec() as u64 * 1_000_000 + time.tv_usec() as u64) * 1_000;
    let report = json!({
        "exit": status.code(),
        "user_ns": ns(usage.user_time()),
        "system_ns": ns(usage.system_time()),
        "rss_kb": usage.max_rss(),
        "sleeps": usage.voluntary_context_switches(),
        "preempted": usage.involuntary_context_switches(),
        "wall_ns": monotonic_ns() - began_ns,
    });
    crate::say(&report.to_string());
    Ok(())
}
