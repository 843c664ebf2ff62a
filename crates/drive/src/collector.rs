//! Metrics of servers and exporters, read before, during and after a run.
//!
//! Each place has a thread of its own and instants that never move: one that is
//! slow, hangs or fails holds up neither the load nor another place. Instants are
//! those of the run's clock; what a server stamps is not looked at.

mod exporter;
mod nvml;
mod queried;

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;

use measure::{At, Span};
use wire::prometheus::{Exposition, Reader, Unreadable};
use wire::scrapes::{Collected, Keeper, MOST_VALUES, Scrape, Source};

use crate::clock::{Clock, duration};
use crate::connection::Target;
use crate::secret::Secrets;

/// Where metrics are told over HTTP.
#[derive(Clone)]
pub struct Exporter {
    /// Its address, as results may show it.
    pub name: String,
    /// Its address, path included.
    pub target: Target,
    /// Headers of each request, keys among them.
    pub headers: Vec<(String, String)>,
    /// Whether nobody asked for it: it is where engines have their metrics.
    pub is_found: bool,
}

/// Where metrics are read.
#[derive(Clone)]
pub enum Place {
    /// Text of Prometheus, read again and again.
    Exporter(Exporter),
    /// A Prometheus server, asked once after the run for what it scraped itself,
    /// as far as these matchers of labels fit.
    PrometheusServer(Exporter, String),
    /// The NVIDIA accelerators of this machine.
    Nvml {
        /// Whether nobody asked for them.
        is_found: bool,
    },
}

impl Place {
    const fn is_found(&self) -> bool {
        match self {
            Self::Exporter(exporter) | Self::PrometheusServer(exporter, _) => exporter.is_found,
            Self::Nvml { is_found } => *is_found,
        }
    }
}

/// What is collected.
#[derive(Clone)]
pub struct Plan {
    /// Where; each name once.
    pub places: Vec<Place>,
    /// The distance between two readings.
    pub interval: Span,
    /// What must not be stored.
    pub secrets: Secrets,
}

/// A reading, as it comes.
#[derive(Clone, Debug)]
pub struct News {
    /// The name of its place.
    pub source: String,
    /// When it was.
    pub at: At,
    /// What was told, or why nothing was.
    pub reading: Result<Scrape, String>,
}

/// Why a place told nothing.
struct Trouble {
    reason: String,
    /// It would tell nothing later either, so it is not asked again.
    is_final: bool,
    is_json: bool,
}

impl Trouble {
    fn passing(reason: impl ToString) -> Self {
        Self { reason: reason.to_string(), is_final: false, is_json: false }
    }

    fn lasting(reason: impl ToString) -> Self {
        Self { is_final: true, ..Self::passing(reason) }
    }

    /// With what went wrong at another address before.
    fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else { return self };
        Self { reason: format!("{}; asked there, it {}", before.reason, self.reason), ..self }
    }
}

impl From<Unreadable> for Trouble {
    fn from(why: Unreadable) -> Self {
        // An engine that has served nothing yet may have nothing to tell.
        let is_final = !matches!(why, Unreadable::Empty | Unreadable::NoSamples);
        Self { reason: why.to_string(), is_final, is_json: why == Unreadable::Json }
    }
}

/// What can be asked for metrics again and again.
trait Tell {
    /// An exposition, as text.
    fn tell(&mut self) -> Result<Vec<u8>, Trouble>;

    /// Turns to another place, after JSON was told here; false where there is
    /// none.
    fn turn_elsewhere(&mut self) -> bool {
        false
    }

    /// Forgets where it was led: something else may answer by now.
    fn begin_anew(&mut self) {}
}

/// A run's collectors at work.
pub struct Collector {
    clock: Clock,
    interval: Span,
    watched: Vec<Watched>,
    queried: Vec<queried::Server>,
}

struct Watched {
    stop: Sender<()>,
    thread: JoinHandle<Source>,
    /// For a thread that was lost.
    name: String,
}

impl Collector {
    /// Reads each place for the first time and returns when all of them have
    /// answered or were given up on; from then on they are read on their own.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub fn start(plan: Plan) -> std::io::Result<Self> {
        Self::begin(plan, None)
    }

    /// As [`Self::start`], but each reading is told as it comes, with instants of
    /// [`Self::clock`], and is not kept; and a place that refuses is asked again,
    /// for something else may answer there by then.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub fn telling(plan: Plan, news: Sender<News>) -> std::io::Result<Self> {
        Self::begin(plan, Some(news))
    }

    fn begin(plan: Plan, news: Option<Sender<News>>) -> std::io::Result<Self> {
        let Plan { places, interval, secrets } = plan;
        let clock = Clock::starting_in(Span::ZERO);
        let most_values = if news.is_some() { 0 } else { MOST_VALUES / places.len().max(1) };
        let (read, all_read) = channel();
        let (mut watched, mut queried) = (Vec::new(), Vec::new());
        for place in places {
            let name = match &place {
                Place::Exporter(exporter) => exporter.name.clone(),
                Place::Nvml { .. } => Source::NVML.to_owned(),
                Place::PrometheusServer(exporter, matchers) => {
                    queried.push(queried::Server::new(exporter.clone(), matchers.clone()));
                    continue;
                }
            };
            let (stop, stopped) = channel();
            let watch = Watch {
                clock,
                interval,
                secrets: secrets.clone(),
                news: news.clone().map(|outlet| (name.clone(), outlet)),
                stopped,
                read: Some(read.clone()),
                reader: Reader::default(),
            };
            let source = Source { is_found: place.is_found(), ..Source::new(name.clone()) };
            let keeper = Keeper::new(source, most_values);
            let thread = std::thread::Builder::new().name("metrics".to_owned());
            let thread = thread.spawn(move || watch.place(&place, keeper))?;
            watched.push(Watched { stop, thread, name });
        }
        drop(read);
        // Ends when every thread has dropped its sender.
        while all_read.recv().is_ok() {}
        Ok(Self { clock, interval, watched, queried })
    }

    /// The clock of readings, until they are given to that of a run.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Reads each place for the last time. Instants are those of `run`, the
    /// clock of the run.
    pub fn finish(self, run: Clock) -> Collected {
        let Self { clock, interval, watched, queried } = self;
        let (stops, threads): (Vec<_>, Vec<_>) = watched
            .into_iter()
            .map(|Watched { stop, thread, name }| (stop, (thread, name)))
            .unzip();
        // All are told before the first is waited for.
        drop(stops);
        let mut sources = Vec::new();
        for (thread, name) in threads {
            sources.push(thread.join().unwrap_or_else(|_| {
                let mut lost = Source::new(name);
                lost.fail(clock.now(), "its thread was lost to a defect".to_owned());
                lost
            }));
        }
        for server in &queried {
            sources.extend(server.sources(clock));
        }
        let shift = Span::from_us((clock.anchor_ns() - run.anchor_ns()).div_euclid(1_000));
        for source in &mut sources {
            source.scrapes.iter_mut().for_each(|scrape| scrape.at = scrape.at + shift);
            source.failed.iter_mut().for_each(|failed| failed.last_at = failed.last_at + shift);
        }
        Collected { sources, interval }
    }
}

/// The share of the distance between two readings that one may take.
const SHARE: f64 = 0.8;

/// The longest that a reading may take.
const LONGEST: Span = Span::from_ms(10_000);

/// How long a reading may take: it is over before the next one.
fn within(interval: Span) -> Span {
    Span::from_s(interval.s() * SHARE).min(LONGEST)
}

/// One place under watch, in its own thread.
struct Watch {
    clock: Clock,
    interval: Span,
    secrets: Secrets,
    /// Who wants to know of each reading, and the name that it goes by.
    news: Option<(String, Sender<News>)>,
    /// Its other end goes away when the run is over.
    stopped: Receiver<()>,
    /// Dropped after the first reading.
    read: Option<Sender<()>>,
    reader: Reader,
}

impl Watch {
    fn place(self, place: &Place, mut keeper: Keeper) -> Source {
        let within = within(self.interval);
        match place {
            Place::Exporter(exporter) => {
                self.watch(&mut exporter::Asked::new(exporter, within), &mut keeper);
            }
            Place::Nvml { .. } => match nvml::Devices::open() {
                Ok(mut devices) => self.watch(&mut devices, &mut keeper),
                Err(reason) => {
                    let now = self.clock.now();
                    if !place.is_found() {
                        self.tell(now, || Err(reason.clone()));
                    }
                    keeper.fail(now, reason);
                }
            },
            // It is asked at the end, and has no thread.
            Place::PrometheusServer(..) => {}
        }
        keeper.into_source()
    }

    fn watch(mut self, place: &mut dyn Tell, keeper: &mut Keeper) {
        let first_at = self.clock.now();
        let mut due_at = first_at;
        loop {
            let gave_up = self.take(place, due_at, keeper);
            self.read = None;
            if gave_up && self.news.is_none() {
                return;
            }
            if gave_up {
                place.begin_anew();
            }
            // Instants that passed while it was read are left out.
            let now = self.clock.now();
            let turns = (now - first_at).us() / self.interval.us().max(1) + 1;
            due_at = first_at + Span::from_us(turns * self.interval.us());
            match self.stopped.recv_timeout(duration(due_at - now)) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                    let now = self.clock.now();
                    self.take(place, now, keeper);
                    return;
                }
            }
        }
    }

    /// One reading; true when there is no use in another.
    fn take(&mut self, place: &mut dyn Tell, due_at: At, keeper: &mut Keeper) -> bool {
        let began_at = self.clock.now();
        let mut before = None;
        let told = loop {
            let asked_at = self.clock.now();
            match self.read(place) {
                Ok((ended_at, exposition)) => break Ok((asked_at, ended_at, exposition)),
                Err(trouble) if trouble.is_json && place.turn_elsewhere() => before = Some(trouble),
                Err(trouble) => break Err(trouble.after(before)),
            }
        };
        match told {
            Ok((asked_at, ended_at, exposition)) => {
                let took = ended_at - asked_at;
                let at = asked_at + Span::from_us(took.us() / 2);
                let scrape = Scrape { at, took, late: began_at - due_at, exposition };
                self.tell(at, || Ok(scrape.clone()));
                keeper.push(scrape);
                false
            }
            Err(Trouble { mut reason, is_final, .. }) => {
                self.secrets.redact(&mut reason);
                self.tell(began_at, || Err(reason.clone()));
                keeper.fail(began_at, reason);
                is_final
            }
        }
    }

    fn tell(&self, at: At, reading: impl FnOnce() -> Result<Scrape, String>) {
        if let Some((source, outlet)) = &self.news {
            // Who went away does not want to know any more.
            let _ = outlet.send(News { source: source.clone(), at, reading: reading() });
        }
    }

    /// Asks and reads. The clock is read before the text is.
    fn read(&mut self, place: &mut dyn Tell) -> Result<(At, Exposition), Trouble> {
        let told = place.tell()?;
        let ended_at = self.clock.now();
        let told = match String::from_utf8(told) {
            // A server may echo what it was sent.
            Ok(mut text) => {
                self.secrets.redact(&mut text);
                text.into_bytes()
            }
            Err(other) => other.into_bytes(),
        };
        Ok((ended_at, self.reader.read(&told)?))
    }
}
