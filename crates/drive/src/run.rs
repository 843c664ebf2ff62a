//! A run from start to end: worker threads, the records that come back, the
//! rules that stop it early.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use measure::record::URL;
use measure::{At, FailureKind, NotSentKind, Outcome, Record, Span};
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::eventfd::EventFd;
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::close;
use tokio::task::LocalSet;
use workload::{Load, Schedule};

use crate::clock::{Clock, monotonic_ns, thread_cpu_ns};
use crate::interrupt::Control;
use crate::job::{Job, Reuse};
use crate::tap::{Readings, Tap};
use crate::worker::{UNRELEASED, Worker, open_ahead};

/// Time between "everybody is ready" and instant 0.
const LEAD: Span = Span::from_ms(20);

/// Tasks run between two looks at timers and sockets: low, so that a send is
/// never far behind a batch of reads.
const EVENT_INTERVAL: u32 = 8;

/// File descriptors that a worker holds back while connections are opened
/// ahead: its poller and its timer need some too, and a worker without them
/// would be lost.
const OWN_DESCRIPTORS: usize = 16;

/// Descriptors that the kernel's table is made to hold before the start. It
/// grows by doubling, and in a process of several threads each growth waits for
/// all processors: seen as a send 12 ms late, on the way to the 1 024th
/// connection. The table takes 8 bytes a descriptor.
const DESCRIPTORS: u64 = 1 << 16;

/// Connections opened ahead at most: more would be a load of its own.
const AHEAD_LIMIT: u32 = 1_000;

/// How often records that ended well are taken over. Taking over each as it
/// comes would wake a thread for it, on a small machine on the processor that
/// sends: a dozen answers that end at once would then hold up the next send.
const COLLECT_EVERY: Duration = Duration::from_millis(20);

/// When the run stops itself.
#[derive(Clone, Copy, Debug)]
pub struct StopRules {
    /// Failures after which it stops.
    pub max_errors: Option<u64>,
    /// Share of failures among at least twenty ended requests at which it
    /// stops.
    pub max_error_rate: Option<f64>,
}

/// Equal refusals, without one success, after which the target is taken to
/// refuse everything.
const REFUSALS: u32 = 5;

/// Why a run ended before its schedule did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Early {
    /// A signal.
    Interrupted,
    /// Every request so far was refused in the same way.
    Refused {
        /// The kind, and the status for refusals by HTTP.
        kind: &'static str,
        /// The HTTP status.
        status: Option<u16>,
    },
    /// `--max-errors` or `--max-error-rate`.
    TooManyErrors(u64),
}

/// What happens while a run goes on.
pub enum Happening {
    /// The warm-up is over, and nothing of the run has been sent: time to look at
    /// what the run will change. It goes on when the sink returns.
    Ready,
    /// A request ended.
    Ended(Box<Record>),
    /// All that ended so far is told: time to show progress or write.
    Tick(At),
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct End {
    /// The clock that stamped it.
    pub clock: Clock,
    /// Why it ended early, if it did.
    pub early: Option<Early>,
    /// Workers that were lost to a defect.
    pub lost_workers: u32,
    /// What the instrument knows of itself.
    pub instrument: Instrument,
}

/// What the instrument knows of itself after a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instrument {
    /// Whether the kernel stamped what arrived: `kernel`, `user`, `mixed`, or
    /// `none` when nothing came.
    pub stamp_source: &'static str,
    /// User stamp − kernel stamp in µs: p50, p99, max.
    pub client_lag_us: Option<[f64; 3]>,
    /// p99 of how much earlier than its stamp an arrival may have been, in µs.
    pub stamp_error_p99_us: Option<f64>,
    /// Busiest worker thread's share of time on the processor, less what it
    /// polled for to be punctual.
    pub busiest_thread: Option<f64>,
    /// Processor time of all worker threads during the run, in ns.
    pub cpu_ns: u64,
    /// Steps of the wall clock during the run.
    pub clock_steps: u32,
    /// The shortest round trip of all connections, of which many carried several
    /// requests and were opened ahead.
    pub round_trip: Option<Span>,
}

/// What one worker found out about itself.
struct Report {
    readings: Readings,
    busy: f64,
    cpu_ns: u64,
    round_trip: Option<Span>,
}

/// Why a run could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A thread, a timer or a runtime could not be made.
    #[error("the load generator cannot start: {0}; raise the limits of processes and open files")]
    Resources(#[from] std::io::Error),
}

/// Runs `job` to its end. Every planned request reaches `sink` exactly once.
pub fn run(
    job: Arc<Job>,
    rules: StopRules,
    control: &Control,
    mut sink: impl FnMut(Happening),
) -> Result<End, StartError> {
    if let Some(warmup) = &job.warmup {
        warm_up(&job, warmup, control)?;
    }
    sink(Happening::Ready);
    grow_descriptor_table();
    let (records, incoming) = channel();
    let records = Outlet { records: Some(records), recorder: std::thread::current() };
    let workers = start_workers(&job, control, &records)?;
    drop(records);
    // The anchor lies a little ahead, so that every worker waits for it.
    let clock = Clock::starting_in(LEAD);
    for worker in &workers {
        // A worker that is gone is found when it is joined.
        let _ = worker.start.send(clock);
    }
    let mut watch = Watch::new(&job, rules);
    let seen = collect(&incoming, clock, control, &mut watch, &mut sink);
    let mut lost = BTreeSet::new();
    let mut reports = Vec::new();
    for (id, worker) in workers.into_iter().enumerate() {
        match worker.thread.join() {
            Ok(Ok(report)) => reports.push(report),
            Ok(Err(_)) | Err(_) => {
                lost.insert(id as u32);
            }
        }
    }
    if control.is_interrupted() {
        watch.early = Some(Early::Interrupted);
    }
    for record in missing(&job, &seen, &lost, watch.early.is_some()) {
        sink(Happening::Ended(Box::new(record)));
    }
    let lost_workers = lost.len() as u32;
    Ok(End { clock, early: watch.early, lost_workers, instrument: instrument(&reports) })
}

/// Lets the table of descriptors grow now instead of during the run. What
/// cannot be had is no loss but time.
fn grow_descriptor_table() {
    let (Ok((soft, _)), Ok(any)) = (getrlimit(Resource::RLIMIT_NOFILE), EventFd::new()) else {
        return;
    };
    let last = soft.min(DESCRIPTORS).saturating_sub(1) as i32;
    if let Ok(copy) = fcntl(&any, FcntlArg::F_DUPFD_CLOEXEC(last)) {
        let _ = close(copy);
    }
}

struct Started {
    thread: JoinHandle<std::io::Result<Report>>,
    start: Sender<Clock>,
}

fn start_workers(
    job: &Arc<Job>,
    control: &Control,
    records: &Outlet,
) -> Result<Vec<Started>, StartError> {
    let (ready, all_ready) = channel();
    let mut workers = Vec::new();
    for id in 0..job.threads {
        let (start, go) = channel();
        let (job, control) = (Arc::clone(job), control.clone());
        let (records, ready) = (records.clone(), ready.clone());
        let thread = std::thread::Builder::new()
            .name(format!("worker-{id}"))
            .spawn(move || work(&job, id, &control, records, &ready, &go))?;
        workers.push(Started { thread, start });
    }
    drop(ready);
    // Ends early when a worker could not start: its sender is then gone.
    for _ in 0..job.threads {
        if all_ready.recv().is_err() {
            break;
        }
    }
    Ok(workers)
}

fn work(
    job: &Arc<Job>,
    id: u32,
    control: &Control,
    records: Outlet,
    ready: &Sender<()>,
    go: &Receiver<Clock>,
) -> std::io::Result<Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .event_interval(EVENT_INTERVAL)
        .enable_all()
        .build()?;
    LocalSet::new().block_on(&runtime, async {
        let held_back: Vec<EventFd> =
            (0..OWN_DESCRIPTORS).map_while(|_| EventFd::new().ok()).collect();
        let before = Clock::starting_in(Span::ZERO);
        let ahead = by_target(job, connections_ahead(job, id));
        let opening = open_ahead(job, &ahead, before);
        // A peer that takes no connection must not hold up the start.
        let (idle, handshake) =
            tokio::time::timeout(Duration::from_secs(2), opening).await.unwrap_or_default();
        let _ = ready.send(());
        // Blocking here is right: nothing else runs on this thread yet. A
        // sender that is gone means that the run was given up.
        let clock = go.recv().map_err(std::io::Error::other)?;
        // By now no worker opens connections ahead any more.
        drop(held_back);
        let tap = Tap::new(clock, job.idle_limit)?;
        for connection in idle {
            tap.give_back(connection);
        }
        let stop = control.subscribe();
        let worker = Rc::new(Worker::new(Arc::clone(job), id, clock, records, stop, tap));
        let (cpu_ns, wall_ns) = (thread_cpu_ns(), monotonic_ns());
        let idled = Rc::clone(&worker).run().await?;
        let wall_ns = (monotonic_ns() - wall_ns).max(1);
        let cpu_ns = (thread_cpu_ns() - cpu_ns).max(0) as u64;
        let busy = (cpu_ns as f64 - idled.us() as f64 * 1e3).max(0.0) / wall_ns as f64;
        let readings = worker.tap.readings();
        let round_trip = [handshake, readings.round_trip].into_iter().flatten().min();
        Ok(Report { readings, busy, cpu_ns, round_trip })
    })
}

/// Merges what the workers found out about themselves.
fn instrument(reports: &[Report]) -> Instrument {
    let Some((first, rest)) = reports.split_first() else { return Instrument::default() };
    let (mut lag, mut bound) = (first.readings.lag_ns.clone(), first.readings.bound_ns.clone());
    for report in rest {
        // Histograms of one shape always add up.
        let _ = lag.add(&report.readings.lag_ns);
        let _ = bound.add(&report.readings.bound_ns);
    }
    let unstamped: u64 = reports.iter().map(|report| report.readings.unstamped).sum();
    let us = |ns: u64| ns as f64 / 1e3;
    let stamped = !lag.is_empty();
    Instrument {
        stamp_source: match (stamped, unstamped > 0) {
            (true, false) => "kernel",
            (true, true) => "mixed",
            (false, true) => "user",
            (false, false) => "none",
        },
        client_lag_us: stamped.then(|| {
            [us(lag.value_at_quantile(0.5)), us(lag.value_at_quantile(0.99)), us(lag.max())]
        }),
        stamp_error_p99_us: stamped.then(|| us(bound.value_at_quantile(0.99))),
        busiest_thread: reports.iter().map(|report| report.busy).reduce(f64::max),
        cpu_ns: reports.iter().map(|report| report.cpu_ns).sum(),
        clock_steps: reports.iter().map(|report| report.readings.clock_steps).max().unwrap_or(0),
        round_trip: reports.iter().filter_map(|report| report.round_trip).min(),
    }
}

/// How many connections a worker opens before the start: one a user, and in
/// open loop what a second of arrivals needs.
fn connections_ahead(job: &Job, id: u32) -> u32 {
    if job.reuse != Reuse::Always {
        // A connection that belongs to nobody yet could not be used.
        return 0;
    }
    let schedule = &job.schedule;
    let count = schedule.count().unwrap_or(u32::MAX);
    let wanted = match (schedule.users_of(id, job.threads), schedule.load()) {
        (Some(users), _) => users,
        (None, Load::Burst) => count,
        (None, load) => (load.peak_rps().unwrap_or(0.0).ceil() as u32).div_ceil(job.threads),
    };
    wanted.min(count.div_ceil(job.threads)).min(AHEAD_LIMIT)
}

/// Shares connections among the targets as requests are, rounded up: one that
/// is a connection short would open it within a latency.
fn by_target(job: &Job, connections: u32) -> Vec<u32> {
    match &job.schedule.spec().routing.targets {
        Some((_, choice)) => {
            let mut counts = vec![0; job.targets.len()];
            for (place, share) in choice.shares() {
                counts[*place as usize] = (f64::from(connections) * share).ceil() as u32;
            }
            counts
        }
        None => vec![connections],
    }
}

/// Sends the warm-up schedule and drops its records.
fn warm_up(job: &Arc<Job>, warmup: &Arc<Schedule>, control: &Control) -> Result<(), StartError> {
    let warm = Job {
        run_id: format!("{}-warm", job.run_id),
        schedule: Arc::clone(warmup),
        keep_text: false,
        threads: 1,
        warmup: None,
        ..Job::clone(job)
    };
    let rules = StopRules { max_errors: None, max_error_rate: None };
    // Refusals end a warm-up early by a control of its own, so that the run
    // itself still starts and records them.
    let own = Control::default();
    let mut stop = |_: Happening| {
        if control.is_interrupted() {
            own.stop();
        }
    };
    run(Arc::new(warm), rules, &own, &mut stop as &mut dyn FnMut(Happening))?;
    Ok(())
}

/// Passes records on until all workers are done; gives the indices seen.
fn collect(
    incoming: &Receiver<Record>,
    clock: Clock,
    control: &Control,
    watch: &mut Watch,
    sink: &mut impl FnMut(Happening),
) -> BTreeSet<u32> {
    let mut seen = BTreeSet::new();
    loop {
        match incoming.try_recv() {
            Ok(record) => {
                if watch.early.is_none() && watch.must_stop(&record) {
                    control.stop();
                }
                seen.insert(record.index);
                sink(Happening::Ended(Box::new(record)));
            }
            Err(TryRecvError::Empty) => {
                sink(Happening::Tick(clock.now()));
                std::thread::park_timeout(COLLECT_EVERY);
            }
            Err(TryRecvError::Disconnected) => return seen,
        }
    }
}

/// Where a worker puts its records.
#[derive(Clone)]
pub(crate) struct Outlet {
    /// There until the worker is done.
    records: Option<Sender<Record>>,
    recorder: Thread,
}

impl Outlet {
    /// Hands a record over. The receiver lives until every worker is done;
    /// without it nobody wants the record.
    pub(crate) fn put(&self, record: Record) {
        let urgent = !matches!(record.outcome, Outcome::Ok | Outcome::Empty);
        if let Some(records) = &self.records {
            let _ = records.send(record);
        }
        // Failures may stop the run, and then at once.
        if urgent {
            self.recorder.unpark();
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.records = None;
        self.recorder.unpark();
    }
}

/// What the stop rules remember.
struct Watch {
    rules: StopRules,
    early: Option<Early>,
    /// For each target: kind, status, and how many refusals in a row were so.
    refusals: Vec<Option<(&'static str, Option<u16>, u32)>>,
    /// Names of the targets, where there are several.
    targets: Vec<String>,
    ended: u64,
    errors: u64,
    ok: u64,
}

impl Watch {
    fn new(job: &Job, rules: StopRules) -> Self {
        let places = 0..job.targets.len() as u32;
        Self {
            rules,
            early: None,
            refusals: vec![None; job.targets.len()],
            targets: places.map(|place| job.target_name(place)).collect(),
            ended: 0,
            errors: 0,
            ok: 0,
        }
    }

    fn must_stop(&mut self, record: &Record) -> bool {
        self.ended += 1;
        match record.outcome {
            Outcome::Ok | Outcome::Empty => {
                self.ok += 1;
                return false;
            }
            Outcome::Failed(kind) => {
                self.errors += 1;
                self.note_refusal(kind, record);
            }
            Outcome::NotSent(_) | Outcome::Cancelled => return false,
        }
        // Where one target refuses, the others may be slow to answer.
        let all = self.refusals.iter().all(|refusal| matches!(refusal, Some((_, _, REFUSALS..))));
        if let (true, 0, Some((kind, status, _))) = (all, self.ok, self.refusals[0]) {
            self.early = Some(Early::Refused { kind, status });
        }
        let rate = self.errors as f64 / self.ended as f64;
        let too_many = self.rules.max_errors.is_some_and(|limit| self.errors > limit)
            || (self.ended >= 20 && self.rules.max_error_rate.is_some_and(|limit| rate > limit));
        if too_many {
            self.early = Some(Early::TooManyErrors(self.errors));
        }
        self.early.is_some()
    }

    /// Counts equal refusals of one target in a row: 401, 403, 404, or no
    /// connection.
    fn note_refusal(&mut self, kind: FailureKind, record: &Record) {
        let named = |name: &str| self.targets.iter().position(|own| own == name);
        let place = record.planned.label(URL).and_then(named).unwrap_or(0);
        let (status, refusals) = (record.answer.http_status, &mut self.refusals[place]);
        let status = match (kind, status) {
            (FailureKind::Dns | FailureKind::Connect | FailureKind::Tls, _) => None,
            (FailureKind::HttpStatus, Some(401 | 403 | 404)) => status,
            _ => {
                *refusals = None;
                return;
            }
        };
        *refusals = match *refusals {
            Some((name, same, count)) if name == kind.name() && same == status => {
                Some((name, same, count + 1))
            }
            _ => Some((kind.name(), status, 1)),
        };
    }
}

/// Records of planned requests that no worker reported: not let go any more,
/// or lost with their worker.
fn missing(job: &Job, seen: &BTreeSet<u32>, lost: &BTreeSet<u32>, early: bool) -> Vec<Record> {
    let Some(count) = job.schedule.count() else { return Vec::new() };
    // A closed loop that also has a duration may end before its count.
    if job.schedule.closes_at().is_some() && !early && lost.is_empty() {
        return Vec::new();
    }
    (0..count)
        .filter(|index| !seen.contains(index))
        .filter_map(|index| job.schedule.request(index))
        .map(|request| {
            let at = job.schedule.intended_at(request.index).unwrap_or(At::ZERO);
            let owner = job.schedule.owner(&request, job.threads);
            let mut record = Record::planned(request.index, at, job.planned(&request));
            record.worker = owner;
            record.outcome = if lost.contains(&owner) {
                Outcome::NotSent(NotSentKind::WorkerLost)
            } else {
                UNRELEASED
            };
            record
        })
        .collect()
}
