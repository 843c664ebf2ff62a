//! Where experiments are made: at a server, on the real clock, or on the engine
//! model, in its own time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use drive::{Clock, Control, Happening, StopRules, Target, transport};
use insight::probe::{Beside, Context, Observed, RoundTrip, Trial};
use measure::{At, Record, Span};
use sim::Cluster;
use sim::client::{self, Observer, Surroundings};
use wire::api::Api;
use workload::prompt::RunNonce;
use workload::schedule::Schedule;

use crate::command::bench;
use crate::command::session::new_id;
use crate::command::simulate::{self, set_error};
use crate::failure::Failure;
use crate::flags::Settings;
use crate::plan::Plan;
use crate::target::{self, Resolved};
use crate::{host, inquiry};

/// Failures at which a trial ends: a server that others use is not pressed on.
const MOST_FAILED: u64 = 3;

/// How long a cheap request may take.
const WITHIN: Span = Span::from_ms(10_000);

/// Time between two cheap requests beside a load.
const BETWEEN: Duration = Duration::from_millis(250);

/// Time between two looks at the clock while nothing is sent.
const LOOK: Duration = Duration::from_millis(50);

/// Engines that are known to take `ignore_eos`, by who owns their models.
const FORCES_LENGTH: &[&str] = &["vllm", "sglang", bench::OURS];

/// Where experiments are made.
pub(super) enum Place {
    /// A server.
    Served(Box<Served>),
    /// The engine model.
    Model(Box<Model>),
}

/// A server.
pub(super) struct Served {
    resolved: Resolved,
    clock: Clock,
    signals: Control,
    run_id: String,
    trials: u32,
    nonce: u64,
}

/// The engine model.
pub(super) struct Model {
    /// None only while a trial is made.
    cluster: Option<Cluster>,
    around: Surroundings,
    waited_s: f64,
    name: String,
    described: String,
    context: u32,
}

impl Place {
    /// Resolves the target of a plan, and what is known of it goes into the plan.
    pub(super) fn of(settings: &Settings, plan: &mut Plan) -> Result<Self, Failure> {
        if plan.address.is_none() {
            return Model::of(settings, plan).map(|model| Self::Model(Box::new(model)));
        }
        let resolved = target::resolve(settings, plan).map_err(bench::unresolved)?;
        if plan.asks_server {
            let server = inquiry::count_by_server(plan, &resolved)?;
            inquiry::answered(&server)?;
        }
        let known = resolved.engine.as_deref().is_some_and(|one| FORCES_LENGTH.contains(&one));
        plan.spec.output_forced |= known && plan.api.entry().can_ignore_eos;
        let signals = Control::default();
        signals.stop_on_signals().map_err(Failure::internal)?;
        let (run_id, _) = new_id()?;
        let nonce = u64::from_le_bytes(host::random().map_err(Failure::internal)?);
        let clock = Clock::starting_in(Span::ZERO);
        let run_id = run_id.to_string();
        Ok(Self::Served(Box::new(Served { resolved, clock, signals, run_id, trials: 0, nonce })))
    }

    /// Time that is gone, seconds.
    pub(super) fn elapsed_s(&self) -> f64 {
        match self {
            Self::Served(served) => (served.clock.now() - At::ZERO).s(),
            Self::Model(model) => model.elapsed_s(),
        }
    }

    /// True once a signal came.
    pub(super) fn is_interrupted(&self) -> bool {
        match self {
            Self::Served(served) => served.signals.is_interrupted(),
            Self::Model(_) => false,
        }
    }

    /// Tokens of a prompt and its answer at most, where it is known.
    pub(super) fn context(&self) -> Option<u32> {
        match self {
            Self::Served(served) => served.resolved.context,
            Self::Model(model) => Some(model.context),
        }
    }

    /// What is known of the target.
    pub(super) fn told(&self) -> Context {
        match self {
            Self::Served(served) => Context {
                target: served.resolved.shown.clone(),
                model: served.resolved.model.clone(),
                engine: served.resolved.engine.clone(),
                simulated: served.resolved.engine.as_deref() == Some(bench::OURS),
            },
            Self::Model(model) => Context {
                target: simulate::TARGET.to_owned(),
                model: model.name.clone(),
                engine: Some(model.described.clone()),
                simulated: true,
            },
        }
    }

    /// What sets the prompts of this command apart from those of all others. The
    /// model forgets everything at the end, so there the seed alone decides.
    pub(super) fn nonce(&self) -> u64 {
        match self {
            Self::Served(served) => served.nonce,
            Self::Model(_) => 0,
        }
    }

    /// Opens so many connections one after the other.
    pub(super) fn round_trips(&self, count: u32) -> Vec<RoundTrip> {
        match self {
            Self::Served(served) => {
                let asked = served.asked();
                (0..count)
                    .take_while(|_| !served.signals.is_interrupted())
                    .filter_map(|_| asked.round_trip())
                    .collect()
            }
            // The model has no front end of its own for such requests.
            Self::Model(model) => {
                let connect_ms = 2.0 * model.around.one_way.ms();
                vec![RoundTrip { connect_ms, ..RoundTrip::default() }]
            }
        }
    }

    /// Sends nothing for a while.
    pub(super) fn wait(&mut self, s: f64) {
        match self {
            Self::Served(served) => {
                let until = served.clock.now() + Span::from_s(s);
                while served.clock.now() < until && !served.signals.is_interrupted() {
                    std::thread::park_timeout(LOOK);
                }
            }
            Self::Model(model) => model.waited_s += s,
        }
    }

    /// Makes a load, which ends when the budget does.
    pub(super) fn trial(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        trial: &Trial,
        (schedule, nonce): (Schedule, RunNonce),
        left_s: f64,
    ) -> Result<Observed, Failure> {
        match self {
            Self::Served(served) => served.trial(settings, plan, trial, (schedule, nonce), left_s),
            Self::Model(model) => Ok(model.trial(&schedule, nonce, left_s)),
        }
    }
}

impl Served {
    fn asked(&self) -> Asked {
        let target = self.resolved.targets[0].clone();
        let headers = self.resolved.headers.clone();
        Asked { target, headers, path: format!("{}/v1/models", self.resolved.root) }
    }

    fn trial(
        &mut self,
        settings: &Settings,
        plan: &Plan,
        trial: &Trial,
        (schedule, nonce): (Schedule, RunNonce),
        left_s: f64,
    ) -> Result<Observed, Failure> {
        self.trials += 1;
        let prefix = settings.text("request-id-prefix").map(|prefix| prefix.trim_end_matches('-'));
        let run_id = format!("{}-{}", prefix.unwrap_or(&self.run_id), self.trials);
        let schedule = Arc::new(schedule);
        let job = bench::job(settings, plan, run_id, &schedule, nonce, &self.resolved);
        let asking = (trial.beside == Beside::RoundTrips).then(|| Asking::start(self.asked()));
        let rules = StopRules { max_errors: Some(MOST_FAILED), max_error_rate: None };
        let control = Control::default();
        let signals = self.signals.clone();
        let mut records: Vec<Record> = Vec::new();
        let ended = drive::run(Arc::new(job), rules, &control, |happening| match happening {
            Happening::Ended(record) => records.push(*record),
            Happening::Tick(now) => {
                if signals.is_interrupted() || (now - At::ZERO).s() > left_s {
                    control.stop();
                }
            }
            Happening::Ready => {}
        });
        let beside = asking.map(Asking::finish).unwrap_or_default();
        ended.map_err(Failure::internal)?;
        records.sort_by_key(|record| record.index);
        Ok(Observed { beside, ..Observed::of(&records) })
    }
}

/// Where cheap requests go.
struct Asked {
    target: Target,
    headers: Vec<(String, String)>,
    path: String,
}

impl Asked {
    /// One of them; none where no connection is opened. What a server cannot
    /// answer says nothing of how long it takes to.
    fn round_trip(&self) -> Option<RoundTrip> {
        let trip = transport::round_trip(&self.target, &self.path, &self.headers, WITHIN).ok()?;
        Some(RoundTrip {
            connect_ms: trip.connect.ms(),
            secure_ms: trip.secure.map(Span::ms),
            answer_ms: trip.answer.filter(|(_, status)| *status < 500).map(|(span, _)| span.ms()),
        })
    }
}

/// Cheap requests beside a load, on a thread of their own.
struct Asking {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<RoundTrip>>>,
}

impl Asking {
    fn start(asked: Asked) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_over);
        let ask = move || {
            let mut trips = Vec::new();
            while !told.load(Ordering::Relaxed) {
                trips.extend(asked.round_trip());
                std::thread::park_timeout(BETWEEN);
            }
            trips
        };
        let thread = std::thread::Builder::new().name("round trips".to_owned()).spawn(ask).ok();
        Self { is_over, thread }
    }

    fn finish(self) -> Vec<RoundTrip> {
        self.is_over.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread else { return Vec::new() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

impl Model {
    fn of(settings: &Settings, plan: &Plan) -> Result<Self, Failure> {
        let engine = plan.engine.clone().unwrap_or_default();
        let cluster = Cluster::new(&engine, plan.spec.seed).map_err(set_error)?;
        let around = Surroundings {
            one_way: simulate::one_way(settings)?,
            request_timeout: plan.request_timeout,
            idle_timeout: plan.idle_timeout,
            is_chat: plan.api == Api::OpenaiChat,
            keep_events: true,
            default_output: client::DEFAULT_OUTPUT,
            choices: simulate::choices(plan)?,
        };
        Ok(Self {
            cluster: Some(cluster),
            around,
            waited_s: 0.0,
            name: plan.model.clone().unwrap_or_else(|| engine.model.id.to_string()),
            described: simulate::described(&engine),
            context: engine.context(),
        })
    }

    fn elapsed_s(&self) -> f64 {
        let now_ns = self.cluster.as_ref().map_or(0, Cluster::now_ns);
        now_ns as f64 / 1e9 + self.waited_s
    }

    fn trial(&mut self, schedule: &Schedule, nonce: RunNonce, left_s: f64) -> Observed {
        let Some(cluster) = self.cluster.take() else { return Observed::default() };
        let left = Span::from_s(left_s.max(1.0));
        let around =
            Surroundings { request_timeout: self.around.request_timeout.min(left), ..self.around };
        let mut kept = Kept(Vec::new());
        self.cluster = Some(client::run(schedule, nonce, cluster, around, &mut kept));
        kept.0.sort_by_key(|record| record.index);
        Observed::of(&kept.0)
    }
}

/// Keeps what ended.
struct Kept(Vec<Record>);

impl Observer for Kept {
    fn ended(&mut self, record: Record) {
        self.0.push(record);
    }
}
