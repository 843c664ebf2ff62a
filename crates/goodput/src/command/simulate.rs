//! `sim run`: a load against the engine model, in virtual time.

use drive::Happening;
use measure::facts::InstrumentFacts;
use measure::{At, Record, Span};
use sim::client::{self, Observer, Surroundings};
use sim::{Cluster, StepReport};
use store::RunId;
use wire::api::{Api, Yields};
use workload::prompt::RunNonce;

use crate::command::bench;
use crate::command::session::{Generated, Known, Outputs, Session, directory, new_id};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Settings, UsageError};
use crate::plan::{self, Plan};

/// What `sim run` takes besides the flags of `bench`.
pub(crate) struct Asked {
    /// Time from the client to the engine, and back, each.
    pub(crate) one_way: Span,
    /// False keeps the first and the last event of each request only.
    pub(crate) keep_events: bool,
}

/// Length of an answer whose request has no limit, tokens.
const DEFAULT_OUTPUT: u32 = 128;

/// Runs the command; the exit code is its result.
pub(crate) fn run(settings: &Settings, asked: &Asked) -> Result<Exit, Failure> {
    let settings = &bench::with_seed(settings.clone())?;
    let read = |path: &str, limit: u64| {
        store::read_file(path.as_ref(), limit).map_err(|error| error.to_string())
    };
    let mut plan = plan::resolve(settings, read).map_err(Failure::usage)?;
    check(&plan)?;
    let engine = plan.engine.clone().unwrap_or_default();
    let cluster = Cluster::new(&engine, plan.spec.seed).map_err(set_error)?;
    let (schedule, notes) = bench::draw(&plan)?;
    plan::objective::name_labels(&mut plan, &schedule)?;
    bench::take_notes(&mut plan, &schedule, &notes);
    if settings.is_on("dry-run") {
        return bench::dry_run(settings, &plan, &schedule);
    }
    let outputs = Outputs::open(settings)?;
    let (run_id, started_at): (RunId, String) = new_id()?;
    let directory = directory(settings, run_id)?;
    let run_id = run_id.to_string();
    let command = &["sim", "run"];
    let session =
        Session { command, settings, plan: &plan, schedule: &schedule, run_id, started_at };
    let known = Known {
        target: "engine model".to_owned(),
        engine: Some(described(&engine)),
        model: plan.model.clone().unwrap_or_else(|| engine.model.id.to_string()),
        simulated: true,
        events_kept: asked.keep_events,
    };
    let around = Surroundings {
        one_way: asked.one_way,
        request_timeout: plan.request_timeout,
        idle_timeout: plan.idle_timeout,
        is_chat: plan.api == Api::OpenaiChat,
        keep_events: asked.keep_events,
        default_output: DEFAULT_OUTPUT,
    };
    // The same seed gives the same run, so nothing of it is drawn elsewhere.
    let nonce = RunNonce::new(plan.spec.seed);
    let finished = session.record(known, directory, |sink| {
        let mut told = Told { sink, now: At::ZERO };
        client::run(&schedule, nonce, cluster, around, &mut told);
        Ok(Generated {
            anchor_ns: 0,
            early: None,
            instrument: InstrumentFacts {
                stamp_source: VIRTUAL.to_owned(),
                stamp_error_p99_us: Some(0.0),
                ..InstrumentFacts::default()
            },
        })
    })?;
    finished.publish(settings, &plan, outputs)
}

/// Where stamps come from when no clock is read.
const VIRTUAL: &str = "virtual";

/// Passes on what the model says, with the time that it has come to.
struct Told<'a> {
    sink: &'a mut dyn FnMut(Happening),
    now: At,
}

impl Observer for Told<'_> {
    fn ended(&mut self, record: Record) {
        self.now = self.now.max(record.stamps.ended_at.unwrap_or_default());
        (self.sink)(Happening::Ended(Box::new(record)));
    }

    fn step(&mut self, _replica: usize, report: &StepReport) {
        let now = At::from_us((report.ends_ns / 1_000) as i64);
        // Progress is for people; a tick for each step would be too many.
        if now > self.now + Span::from_ms(1_000) {
            self.now = now;
            (self.sink)(Happening::Tick(now));
        }
    }
}

/// What of `bench`'s flags means nothing here.
fn check(plan: &Plan) -> Result<(), Failure> {
    if plan.address.is_some() {
        let rule = "sim run has no target: the engine model answers; leave the address out, or use \
                    goodput bench";
        return Err(UsageError::new("--url", rule).into());
    }
    if plan.api.entry().yields != Yields::Tokens {
        let rule =
            "sim run models engines that write answers; openai-chat and openai are simulated";
        return Err(UsageError::new("--backend", rule).into());
    }
    Ok(())
}

fn set_error(error: sim::SettingsError) -> Failure {
    UsageError::new("--set", error).into()
}

/// The engine in a few words.
pub(crate) fn described(engine: &sim::Settings) -> String {
    let accelerators = engine.accelerators();
    let count = if accelerators == 1 { String::new() } else { format!("{accelerators} × ") };
    format!("goodput engine model: {} on {count}{}", engine.model.name, engine.accelerator.name)
}
