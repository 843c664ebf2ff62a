//! How true and how cheap goodput's own measuring is: benchmarks against a
//! server with a known clock. `docs/instrument.md` says what each part shows;
//! `scripts/bench-instrument` builds and runs them.

mod arguments;
mod arrivals;
mod child;
mod clock;
mod errors;
mod limits;
mod noise;
mod parts;
mod processes;
mod raw;
mod serve;
mod table;

use std::io::Write;
use std::process::ExitCode;

use arguments::Arguments;

const USAGE: &str = "\
usage: instrument PART [--flag value]… [-- COMMAND…]
  run       the benchmarks: --goodput FILE [--anchor FILE] [--parts a,b,c,d,e,f,v] [--quick]
            [--repeat 5] [--json FILE] [--markdown FILE] [--work DIR]
  serve     the token server: --mode paced|flood [--lockstep] [--interval-us N] [--gate N]
            [--chunks-per-write N] [--first-token-us N] [--truth FILE] [--port N]
  raw       the floor client: --address HOST:PORT --streams N --tokens N [--kernel-stamps] [--log FILE]
  arrivals  lateness of goodput's send path: --address HOST:PORT --rate N --seconds N --streams N
  child     one pinned command with its cost: --core N --output FILE -- COMMAND…";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let part = words.next().unwrap_or_default();
    let done = Arguments::read(words).and_then(|arguments| match part.as_str() {
        "run" => parts::run(&arguments),
        "serve" => serve::run(&arguments),
        "raw" => raw::run(&arguments),
        "arrivals" => arrivals::run(&arguments),
        "child" => child::run(&arguments),
        _ => Err(USAGE.to_owned()),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            let _ = writeln!(std::io::stderr(), "instrument {part}: {words}");
            ExitCode::FAILURE
        }
    }
}

/// Writes one line to standard output at once: another process waits for it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // When nobody reads any more there is nobody to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes one line to standard error: how far the benchmarks are.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
