//! The arguments of `watch`: which server is looked at, how often, for how long.

use clap::{Arg, ArgMatches, Command};
use measure::Span;

use crate::command::watch::{Arguments, FLAGS, Output, run as watch};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{self, Reader, Settings};
use crate::plan::metrics::{LONGEST, SHORTEST};

const EXAMPLES: &str = "\
Examples:
  goodput watch http://127.0.0.1:8000                       until Ctrl-C
  goodput watch URL --metrics-url http://127.0.0.1:9400     with the accelerators (DCGM exporter)
  goodput watch URL --interval 5s --window 2m > watch.log   a line every five seconds
  goodput watch URL --duration 10m --json - > watch.jsonl   one JSON object a line

Only /metrics is read; no request is sent to the model. Rates and means are those of the window.
A server that restarts, falls silent or loses a metric is told of, and watched on.";

/// A window of this many intervals is as much as is kept of a server.
const MOST_INTERVALS: f64 = 600.0;

/// The subcommand.
pub(super) fn command() -> Command {
    let command = Command::new("watch")
        .about("Look at a server under real traffic, without any load: rates, queue, KV cache, times, and what is wrong")
        .after_help(EXAMPLES)
        .arg(Arg::new("address").value_name("URL").required(true).help("Address of the server; its /metrics is read"))
        .arg(Arg::new("window").long("window").value_name("DURATION").default_value("30s").help("Time that rates, means and findings are of"))
        .arg(Arg::new("interval").long("interval").value_name("DURATION").default_value("1s").help("Distance between two readings, and two lines"))
        .arg(Arg::new("duration").long("duration").value_name("DURATION").help("Stop after this time [never]"))
        .arg(Arg::new("json").long("json").value_name("-").help("Write one JSON object a line to standard output instead: -"));
    flags::add_named(command, FLAGS)
}

/// Reads the arguments and watches.
pub(super) fn run(matches: &ArgMatches) -> Result<Exit, Failure> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let flags = FLAGS.iter().filter_map(|name| flags::named(name));
    let settings = Settings::typed_of(matches, flags);
    let mut reader = Reader::new(&settings);
    let duration = |reader: &mut Reader<'_>, name: &str| {
        let given = text(name)?;
        let span = flags::parse_duration(given).filter(|span| *span > Span::ZERO);
        if span.is_none() {
            reader.wrong(name, format!("{given:?} is not a duration; write 30, 500ms, 30s or 5m"));
        }
        span
    };
    let window = duration(&mut reader, "window").unwrap_or(Span::from_ms(30_000));
    let interval = duration(&mut reader, "interval").unwrap_or(Span::from_ms(1_000));
    let length = duration(&mut reader, "duration");
    if !(SHORTEST..=LONGEST).contains(&interval) {
        reader.wrong("interval", format!("is not between {SHORTEST} and {LONGEST}; write 1s"));
    } else if window < interval || window.s() > MOST_INTERVALS * interval.s() {
        let rule = format!(
            "is not between one interval and {MOST_INTERVALS} of them ({interval} each); change \
             --interval too"
        );
        reader.wrong("window", rule);
    }
    if text("json").is_some_and(|target| target != "-") {
        let rule = "writes a line at a time and so takes - only; write --json - > FILE";
        reader.wrong("json", rule);
    }
    watch(
        reader,
        &Arguments {
            address: text("address").unwrap_or_default(),
            window,
            interval,
            length,
            output: if text("json").is_some() { Output::Json } else { Output::People },
        },
    )
}
