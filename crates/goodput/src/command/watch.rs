//! `watch`: a server under the load of others, without any of its own.

mod screen;
mod state;

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use drive::collector::{Collector, News, Place};
use measure::watch::Glance;
use measure::{At, Span};
use report::lang::Lang;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::Reader;
use crate::plan::deployment::deployment;
use crate::plan::metrics;
use crate::{collecting, host, output, target};

use screen::{Page, Screen};
use state::{Asked, State};

/// Flags of the table that it takes.
pub(crate) const FLAGS: &[&str] = &[
    "model",
    "header",
    "api-key-env",
    "api-key-file",
    "cacert",
    "insecure",
    "metrics-url",
    "metrics-header",
    "nvml",
    "max-num-seqs",
    "max-num-batched-tokens",
    "lang",
];

/// How what is seen is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A page where a terminal shows it, else a line each time.
    People,
    /// A JSON object each time.
    Json,
}

/// What `watch` takes besides.
pub(crate) struct Arguments<'a> {
    pub(crate) address: &'a str,
    pub(crate) window: Span,
    pub(crate) interval: Span,
    pub(crate) length: Option<Span>,
    pub(crate) output: Output,
}

/// What the main thread waits for.
enum Told {
    News(News),
    /// The terminal has another size.
    Resized,
    /// A signal came, or a key that ends it.
    Stop,
}

/// Watches until a signal comes or the time is over. `reader` holds what is
/// wrong with the command line so far.
pub(crate) fn run(mut reader: Reader<'_>, arguments: &Arguments<'_>) -> Result<Exit, Failure> {
    let settings = reader.settings;
    let lang = crate::cli::lang(settings.text("lang"))?;
    let (deployment, _) = deployment(&mut reader, &crate::open);
    let asked = metrics::metrics(&mut reader);
    if asked.iter().flat_map(|asked| &asked.asked).any(|asked| asked.matchers.is_some()) {
        let rule = "watch reads exporters; a Prometheus server is asked after a run only";
        reader.wrong("metrics-url", rule);
    }
    let resolved = target::watched(settings, arguments.address);
    let (mut asked, resolved) = match (asked, resolved) {
        (Some(asked), Ok(resolved)) if reader.errors.is_empty() => (asked, resolved),
        (_, resolved) => {
            reader.errors.extend(resolved.err());
            return Err(Failure::usage(reader.errors));
        }
    };
    asked.interval = arguments.interval;
    let plan = collecting::plan(&asked, &resolved);
    let state = State::new(Asked {
        target: resolved.shown.clone(),
        window: arguments.window,
        model: settings.text("model").map(str::to_owned),
        deployment,
        places: plan.places.iter().filter_map(expected).collect(),
    });
    let signals = crate::Signals::hold().map_err(Failure::internal)?;
    let (started_ms, _) = host::wall_time();
    let (outlet, inlet) = channel();
    let (news, read) = channel();
    let page = Page::new(resolved.shown.clone(), lang, std::env::var_os("NO_COLOR").is_none());
    let shown = match arguments.output {
        Output::Json => Shown::Json,
        Output::People if is_page_possible() => {
            let screen = Screen::open(page, outlet.clone()).map_err(Failure::internal)?;
            Shown::Page(Box::new(screen))
        }
        Output::People => Shown::Lines,
    };
    let collector = Collector::telling(plan, news).map_err(Failure::internal)?;
    forward(read, outlet, signals).map_err(Failure::internal)?;
    let mut watch = Watch { state, shown, lang, started_ms };
    watch.follow(&inlet, &collector, arguments.length);
    Ok(watch.close(&resolved.shown))
}

/// The name of a place that will tell; accelerators that nobody asked for may
/// not be there.
fn expected(place: &Place) -> Option<String> {
    match place {
        Place::Exporter(exporter) => Some(exporter.name.clone()),
        Place::PrometheusServer(..) | Place::Nvml { .. } => None,
    }
}

/// Threads that tell the main one of readings and of a signal.
fn forward(
    read: Receiver<News>,
    outlet: Sender<Told>,
    signals: crate::Signals,
) -> std::io::Result<()> {
    let stop = outlet.clone();
    let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
    named("readings").spawn(move || {
        for news in read {
            if outlet.send(Told::News(news)).is_err() {
                return;
            }
        }
    })?;
    named("signals").spawn(move || {
        if signals.wait().is_ok() {
            let _ = stop.send(Told::Stop);
        }
    })?;
    Ok(())
}

/// Whether standard output is a terminal that can be drawn on.
fn is_page_possible() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && !is_dumb
}

/// Where what is seen goes.
enum Shown {
    Page(Box<Screen>),
    Lines,
    Json,
}

struct Watch {
    state: State,
    shown: Shown,
    lang: Lang,
    started_ms: u64,
}

impl Watch {
    fn follow(&mut self, inlet: &Receiver<Told>, collector: &Collector, length: Option<Span>) {
        loop {
            let left = length.map(|length| length - (collector.clock().now() - At::ZERO));
            let told = match left {
                None => inlet.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(left) => {
                    inlet.recv_timeout(Duration::from_micros(left.us().max(0).unsigned_abs()))
                }
            };
            let News { source, at, reading } = match told {
                Ok(Told::News(news)) => news,
                Ok(Told::Resized) => {
                    if let Shown::Page(screen) = &mut self.shown
                        && screen.draw().is_err()
                    {
                        return;
                    }
                    continue;
                }
                Ok(Told::Stop) | Err(_) => return,
            };
            for glance in self.state.take(&source, at, reading) {
                if !self.show(&glance) {
                    return;
                }
            }
        }
    }

    /// Shows a glance; false where nobody reads any more.
    fn show(&mut self, glance: &Glance) -> bool {
        let (started_ms, lang) = (self.started_ms, self.lang);
        let at = date(started_ms, glance.at);
        let mut events = glance.events.iter().map(|event| {
            report::watch::event(event, time_of_day(&date(started_ms, event.at)), lang)
        });
        match &mut self.shown {
            Shown::Page(screen) => screen.show(glance, time_of_day(&at), events).is_ok(),
            Shown::Json => print(&wire::watch::line(glance, &at).to_string()),
            Shown::Lines => {
                events.all(|event| print(&event))
                    && print(&report::watch::line(glance, time_of_day(&at), lang))
            }
        }
    }

    /// The last words, and how the program ends.
    fn close(self, target: &str) -> Exit {
        let course = self.state.course();
        let is_json = matches!(self.shown, Shown::Json);
        // The terminal is given back before anything is printed below it.
        drop(self.shown);
        let page = report::watch::closing(course, target, self.lang);
        let text = output::text(&page, is_json);
        if is_json {
            crate::say(text.trim_end());
        } else {
            crate::print(text.trim_end());
        }
        if course.saw_anything() { Exit::Ok } else { Exit::Unreachable }
    }
}

/// The wall time of an instant in RFC 3339.
fn date(started_ms: u64, at: At) -> String {
    host::date(started_ms + at.us().max(0).unsigned_abs() / 1_000)
}

/// The time of a date in RFC 3339, to the second.
fn time_of_day(date: &str) -> &str {
    date.get(11..19).unwrap_or(date)
}

/// One text for standard output; false where nobody reads it.
fn print(text: &str) -> bool {
    writeln!(std::io::stdout().lock(), "{text}").is_ok()
}
