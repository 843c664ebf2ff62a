//! The processes of a repetition: a server and a client, each on its
//! processor, and what they say of themselves when they are done.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::clock::ProcessorClock;
use crate::noise::{self, Busy};

/// A running token server.
pub(crate) struct TokenServer {
    child: Child,
    control: ChildStdin,
    lines: BufReader<ChildStdout>,
    /// `HOST:PORT`.
    pub(crate) address: String,
}

/// A running client in its wrapper.
pub(crate) struct Client {
    wrapper: Child,
    lines: BufReader<ChildStdout>,
    output: PathBuf,
    pid: i32,
}

/// What a client cost as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// User and system time in ns.
    pub(crate) cpu_ns: u64,
    /// Peak resident memory in kB.
    pub(crate) rss_kb: u64,
    /// Times that it slept, and that it was interrupted.
    pub(crate) switches: (u64, u64),
    /// Exit code, when it ended by itself.
    pub(crate) exit: Option<i64>,
    /// From start to end.
    pub(crate) wall_ns: u64,
}

/// A repetition: what server and client said, and whether it counts.
pub(crate) struct Repetition {
    /// The client's cost.
    pub(crate) cost: Cost,
    /// What the server did.
    pub(crate) server: Value,
    /// Share of the machine that other processes used.
    pub(crate) others: f64,
}

fn line(lines: &mut BufReader<ChildStdout>) -> Result<String, String> {
    let mut text = String::new();
    let count = lines.read_line(&mut text).map_err(|error| error.to_string())?;
    if count == 0 { Err("a process of the benchmark ended early".to_owned()) } else { Ok(text) }
}

fn object(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

/// This very program.
pub(crate) fn own_program() -> Result<PathBuf, String> {
    std::env::current_exe().map_err(|error| error.to_string())
}

fn piped(command: &mut Command) -> Result<(Child, ChildStdin, BufReader<ChildStdout>), String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("a pipe is missing".to_owned());
    };
    Ok((child, input, BufReader::new(output)))
}

impl TokenServer {
    /// Starts `instrument serve` with these words on a processor.
    pub(crate) fn start(core: usize, words: &[String]) -> Result<Self, String> {
        let mut command = Command::new(own_program()?);
        command.arg("serve").arg("--core").arg(core.to_string()).args(words);
        let (child, control, mut lines) = piped(&mut command)?;
        let address = object(&line(&mut lines)?)?["address"].as_str().unwrap_or("").to_owned();
        Ok(Self { child, control, lines, address })
    }

    /// Names the client whose processor time the server takes.
    pub(crate) fn watch(&mut self, pid: i32) -> Result<(), String> {
        writeln!(self.control, "watch {pid}").map_err(|error| error.to_string())
    }

    /// Stops it and gives its report.
    pub(crate) fn stop(mut self) -> Result<Value, String> {
        writeln!(self.control, "stop").map_err(|error| error.to_string())?;
        let report = object(&line(&mut self.lines)?)?;
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(report)
    }
}

impl Client {
    /// Starts a command on a processor; what it prints goes to `output`.
    pub(crate) fn start(core: usize, output: &Path, command: &[String]) -> Result<Self, String> {
        let mut wrapper = Command::new(own_program()?);
        wrapper.arg("child").arg("--core").arg(core.to_string());
        wrapper.arg("--output").arg(output).arg("--").args(command);
        let (wrapper, _, mut lines) = piped(&mut wrapper)?;
        let text = line(&mut lines)?;
        let pid = text.trim().strip_prefix("pid ").and_then(|pid| pid.parse().ok());
        let pid = pid.ok_or_else(|| format!("{text}: no process"))?;
        Ok(Self { wrapper, lines, output: output.to_owned(), pid })
    }

    /// Waits for its end; gives its cost and what it printed.
    pub(crate) fn wait(mut self) -> Result<(Cost, String), String> {
        let report = object(&line(&mut self.lines)?)?;
        self.wrapper.wait().map_err(|error| error.to_string())?;
        let number = |name: &str| report[name].as_u64().unwrap_or(0);
        let cost = Cost {
            cpu_ns: number("user_ns") + number("system_ns"),
            rss_kb: number("rss_kb"),
            switches: (number("sleeps"), number("preempted")),
            exit: report["exit"].as_i64(),
            wall_ns: number("wall_ns"),
        };
        let printed = std::fs::read_to_string(&self.output).map_err(|error| error.to_string())?;
        Ok((cost, printed))
    }
}

/// True when clients can be started as batch processes. On a processor that
/// they share with the server they would otherwise be woken by its first write
/// and read chunk by chunk: a sleep in each, which is not what is measured.
fn has_chrt() -> bool {
    Command::new("chrt").arg("--max").output().is_ok_and(|output| output.status.success())
}

/// One repetition: starts a server, runs the client that `command` makes for
/// its address to its end, stops the server. Gives also what the client
/// printed.
pub(crate) fn repetition(
    server: (usize, &[String]),
    client_core: usize,
    output: &Path,
    command: impl FnOnce(&str) -> Vec<String>,
) -> Result<(Repetition, String), String> {
    let own = ProcessorClock::own();
    let before = Busy::now();
    let own_before = own.ns().unwrap_or(0);
    let mut running = TokenServer::start(server.0, server.1)?;
    let mut words = command(&running.address);
    if server.0 == client_core && has_chrt() {
        words.splice(0..0, ["chrt", "--batch", "0"].map(str::to_owned));
    }
    let client = Client::start(client_core, output, &words)?;
    running.watch(client.pid)?;
    let (cost, printed) = client.wait()?;
    let report = running.stop()?;
    let ours = cost.cpu_ns
        + report["cpu_ns"].as_u64().unwrap_or(0)
        + own.ns().unwrap_or(0).saturating_sub(own_before);
    let others = match (before, Busy::now()) {
        (Some(before), Some(after)) => before.others_until(&after, ours),
        _ => 0.0,
    };
    if cost.exit.is_none_or(|code| !matches!(code, 0 | 4)) {
        let tail: String = printed.lines().rev().take(12).collect::<Vec<_>>().join("\n");
        return Err(format!("{words:?} ended with {:?}:\n{tail}", cost.exit));
    }
    Ok((Repetition { cost, server: report, others }, printed))
}

impl Repetition {
    /// Why it is void by what else the machine did.
    pub(crate) fn disturbed(&self) -> Option<String> {
        (self.others > noise::LIMIT)
            .then(|| format!("other processes used {:.0} % of the machine", self.others * 100.0))
    }
}
