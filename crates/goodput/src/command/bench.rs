//! `bench`: make load, measure, report.

use std::sync::Arc;

use drive::collector::Collector;
use drive::{Control, Happening, IDLE_LIMIT, Job, StopRules};
use measure::facts::InstrumentFacts;
use measure::{At, Span};
use report::number::short;
use serde_json::json;
use store::RunDirectory;
use wire::api::RequestSpec;
use wire::scrapes::Collected;
use workload::prompt::RunNonce;
use workload::schedule::{Note, Schedule};
use workload::{Load, Phase};

use crate::command::report::isolated;
use crate::command::selftest;
use crate::command::session::{Finished, Generated, Known, Outputs, Session, directory, new_id};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Settings, UsageError};
use crate::plan::{self, Address, Plan};
use crate::target::{self, Resolved, Unresolved};
use crate::{cache, collecting, host, inquiry, open, output};

/// Runs the command; the exit code is its result.
pub(crate) fn run(settings: &Settings) -> Result<Exit, Failure> {
    let settings = &with_seed(settings.clone())?;
    for flag in ["network", "no-events"] {
        if settings.has(flag) {
            let rule = "is for goodput sim run: bench measures what comes over a socket";
            return Err(UsageError::new(format!("--{flag}"), rule).into());
        }
    }
    let mut plan = plan::resolve(settings, open).map_err(Failure::usage)?;
    let (mut schedule, mut notes) = draw(&plan)?;
    plan::objective::name_labels(&mut plan, &schedule)?;
    plan.isolated = isolated(settings.all("isolated"), settings.text("runs-dir"))?;
    if settings.is_on("dry-run") {
        note_unasked(&mut plan);
        take_notes(&mut plan, &schedule, &notes);
        return dry_run(settings, &plan, &schedule);
    }
    enough_files(&schedule, plan.address.as_ref().map_or(1, |address| address.urls.len()))?;
    if settings.is_on("selftest") {
        selftest::before_bench(settings.text("runs-dir"))?;
    }
    let outputs = Outputs::open(settings)?;
    let resolved = target::resolve(settings, &plan).map_err(unresolved)?;
    let (run_id, started_at) = new_id()?;
    let nonce = u64::from_le_bytes(host::random().map_err(Failure::internal)?);
    let nonce = RunNonce::new(nonce);
    if plan.asks_server {
        let server = inquiry::count_by_server(&mut plan, &resolved)?;
        (schedule, notes) = draw(&plan)?;
        let checked = check_lengths(&plan, &schedule, nonce);
        inquiry::answered(&server)?;
        checked?;
    } else {
        check_lengths(&plan, &schedule, nonce)?;
    }
    let runs_dir = output::runs_dir(settings.text("runs-dir"));
    let of_cache = match cache::reset(settings, &resolved)? {
        Some(emptied) => Some(emptied),
        None => cache::repeated(settings, &plan, &schedule, &resolved, &runs_dir).inspect(|said| {
            crate::say(said);
        }),
    };
    plan.workload.notes.extend(of_cache);
    take_notes(&mut plan, &schedule, &notes);
    let told = inquiry::fits(&resolved, &schedule)?;
    let told = told.into_iter().chain(inquiry::second_opinion(&plan, &resolved, &schedule, nonce));
    plan.workload.notes.extend(told.collect::<Vec<_>>());
    let directory = directory(settings, run_id)?;
    let schedule = Arc::new(schedule);
    let run_id = run_id.to_string();
    let command = &["bench"];
    let session =
        Session { command, settings, plan: &plan, schedule: &schedule, run_id, started_at };
    let finished = measure(&session, &schedule, nonce, resolved, directory)?;
    finished.publish(settings, &plan, outputs)
}

/// Makes the load at a target.
fn measure(
    session: &Session<'_>,
    schedule: &Arc<Schedule>,
    nonce: RunNonce,
    resolved: Resolved,
    directory: RunDirectory,
) -> Result<Finished, Failure> {
    let plan = session.plan;
    let settings = session.settings;
    let run_id = settings
        .text("request-id-prefix")
        .map_or_else(|| session.run_id.clone(), |prefix| prefix.trim_end_matches('-').to_owned());
    let job = Arc::new(job(settings, plan, run_id, schedule, nonce, &resolved));
    let mut collector = None;
    let mut metrics = plan.metrics.as_ref().map(|metrics| collecting::plan(metrics, &resolved));
    let control = Control::default();
    control.stop_on_signals().map_err(Failure::internal)?;
    let rules = StopRules { max_errors: plan.max_errors, max_error_rate: plan.max_error_rate };
    let known = Known {
        target: resolved.shown.clone(),
        engine: resolved.engine.clone(),
        model: plan.models_shown(&resolved.model),
        // A server of ours says so in its list of models, where that was asked for.
        simulated: resolved.embedded.is_some() || resolved.engine.as_deref() == Some(OURS),
        rows_kept: true,
    };
    let finished = session.record(known, directory, |sink| {
        let throttled_us = host::throttled_us();
        let end = drive::run(job, rules, &control, |happening| {
            // Where metrics are read before anything of the run is sent.
            if matches!(happening, Happening::Ready) {
                collector = metrics.take().map(Collector::start);
            }
            sink(happening);
        })
        .map_err(Failure::internal)?;
        let collected = match collector {
            Some(collector) => collector.map_err(Failure::internal)?.finish(end.clock),
            None => Collected::default(),
        };
        let throttled = throttled_us.zip(host::throttled_us());
        Ok(Generated {
            anchor_ns: end.clock.anchor_ns(),
            early: end.early,
            instrument: InstrumentFacts {
                stamp_source: end.instrument.stamp_source.to_owned(),
                client_lag_us: end.instrument.client_lag_us,
                stamp_error_p99_us: end.instrument.stamp_error_p99_us,
                busiest_thread: end.instrument.busiest_thread,
                clock_steps: end.instrument.clock_steps,
                round_trip: end.instrument.round_trip,
                throttled: throttled.map(|(before, after)| Span::from_us(after - before)),
                ..InstrumentFacts::default()
            },
            notes: Vec::new(),
            collected,
        })
    })?;
    drop(resolved.embedded);
    Ok(finished)
}

/// The owner of the models that `sim serve` lists.
pub(super) const OURS: &str = "goodput";

/// What is sent, and how: the one place where flags become requests.
pub(super) fn job(
    settings: &Settings,
    plan: &Plan,
    run_id: String,
    schedule: &Arc<Schedule>,
    nonce: RunNonce,
    resolved: &Resolved,
) -> Job {
    let warmup = plan::warmup(plan, schedule);
    Job {
        run_id,
        schedule: Arc::clone(schedule),
        nonce,
        targets: resolved.targets.clone(),
        api: plan.api,
        template: RequestSpec { model: resolved.model.clone(), ..plan.template.clone() },
        headers: resolved.headers.clone(),
        ids_by: plan.tokenizer.clone().filter(|_| plan.sends_ids),
        session_header: plan.session_header.clone(),
        secrets: resolved.secrets.clone(),
        idle_timeout: plan.idle_timeout,
        request_timeout: plan.request_timeout,
        idle_limit: IDLE_LIMIT,
        reuse: plan.reuse,
        keep_text: settings.is_on("save-text"),
        threads: plan.threads,
        warmup: warmup.map(Arc::new),
    }
}

pub(super) fn draw(plan: &Plan) -> Result<(Schedule, Vec<Note>), Failure> {
    Schedule::draw(plan.spec.clone()).map_err(|error| Failure::new(Exit::Usage, error))
}

/// A dry run sends nothing, so it cannot know what the server counts.
fn note_unasked(plan: &mut Plan) {
    if plan.asks_server {
        let note = "a dry run does not ask the server for its tokens: texts and schedule differ \
                    from those of a run";
        plan.workload.notes.push(note.to_owned());
    }
}

/// Draws the seed that nobody gave. One seed for everybody would give the same
/// prompts each time, and the second run would measure the prefix cache. 32
/// bits are short enough to be typed again.
pub(super) fn with_seed(mut settings: Settings) -> Result<Settings, Failure> {
    let seed = u32::from_le_bytes(host::random().map_err(Failure::internal)?);
    settings.set_drawn("seed", seed.to_string());
    Ok(settings)
}

pub(super) fn unresolved(why: Unresolved) -> Failure {
    match why {
        Unresolved::Usage(error) => error.into(),
        Unresolved::Unreachable(words) => Failure::new(Exit::Unreachable, words),
        Unresolved::Internal(words) => Failure::internal(words),
    }
}

/// Descriptors that a run needs besides its connections.
const OTHER_FILES: u64 = 64;

/// Raises the limit on open files and refuses a load that cannot fit: running
/// out in the middle would read as a plateau of the server's.
fn enough_files(schedule: &Schedule, targets: usize) -> Result<(), Failure> {
    let limit = host::raise_open_files();
    let connections = match (schedule.load(), schedule.count()) {
        (Load::Burst, count) => count.unwrap_or(0),
        // A user may leave an idle connection at each target.
        (load, _) => load.users().unwrap_or(0).saturating_mul(targets as u32),
    };
    if u64::from(connections) + OTHER_FILES > limit {
        let rule = format!(
            "{connections} connections at once need {} open files and the limit is {limit}; raise \
             it (ulimit -n) or ask for fewer",
            u64::from(connections) + OTHER_FILES
        );
        return Err(Failure::new(Exit::Usage, rule));
    }
    Ok(())
}

/// Holds prompts against the tokenizer that their lengths are said to be of.
fn check_lengths(plan: &Plan, schedule: &Schedule, nonce: RunNonce) -> Result<(), Failure> {
    let Some(tokenizer) = &plan.tokenizer else { return Ok(()) };
    schedule
        .check_lengths(&**tokenizer, nonce)
        .map(|_| ())
        .map_err(|error| UsageError::new("--tokenizer", error).into())
}

pub(super) fn take_notes(plan: &mut Plan, schedule: &Schedule, notes: &[Note]) {
    schedule.cache().name().clone_into(&mut plan.workload.cache_regime);
    plan.workload.prefix_tokens = schedule.prefix_tokens();
    for note in notes {
        let oversampled = [plan.workload.oversampled, note.oversampled()];
        plan.workload.oversampled = oversampled.into_iter().flatten().reduce(f64::max);
        plan.workload.notes.push(note.to_string());
    }
}

/// Prints what would be done.
pub(super) fn dry_run(
    settings: &Settings,
    plan: &Plan,
    schedule: &Schedule,
) -> Result<Exit, Failure> {
    // A digest draws every request, so it is taken once.
    let (hash, phases) = (schedule.hash(), schedule.phases());
    let arrivals: Vec<f64> = schedule.arrivals().map(At::ms).collect();
    let config: Vec<_> = settings
        .stored()
        .into_iter()
        .chain(plan.defaults(settings, schedule))
        .map(|setting| json!({"name": setting.name, "value": setting.value, "origin": setting.origin}))
        .collect();
    let object = json!({
        "config": config,
        "api": plan.api.name(),
        "target": plan.address.as_ref().map(Address::shown),
        "slo": plan.slo.as_ref().map(ToString::to_string),
        "load": schedule.describe(),
        "load_kind": schedule.load().kind(),
        "seed": plan.spec.seed,
        "requests": schedule.count(),
        "workload": {
            "source": plan.workload.source,
            "input_lengths": plan.workload.input_lengths,
            "output_lengths": plan.workload.output_lengths,
            "tokenizer": plan.workload.tokenizer,
            "cache_regime": plan.workload.cache_regime,
            "prefix_tokens": plan.workload.prefix_tokens,
            "notes": plan.workload.notes,
        },
        "schedule_hash": hash,
        "phases": phases.iter().map(phase_json).collect::<Vec<_>>(),
        "arrivals_ms": arrivals,
    });
    if settings.has("json") {
        let json = output::Json::open(settings.text("json"))?;
        json.write(&object)?;
    } else {
        crate::print(&format!(
            "{}\n{} · {}\nrequests {}\nschedule {}, seed {}{}",
            schedule.describe(),
            plan.workload.source,
            plan.workload.cache_regime,
            schedule.count().map_or("no fixed number".to_owned(), |count| count.to_string()),
            hash,
            plan.spec.seed,
            phase_table(&phases)
        ));
    }
    Ok(Exit::Ok)
}

fn phase_json(phase: &Phase) -> serde_json::Value {
    json!({
        "from_s": phase.from.s(),
        "until_s": phase.until.s(),
        "expected_rps": phase.expected / (phase.until - phase.from).s(),
        "expected": phase.expected,
        "drawn": phase.drawn,
    })
}

/// Phases that a terminal is shown; JSON has all.
const SHOWN_PHASES: usize = 20;

/// The parts of a plan whose rate changes, each with the arrivals expected and
/// drawn: the difference is the seed's luck, and no fault of the load.
fn phase_table(phases: &[Phase]) -> String {
    if phases.len() < 2 {
        return String::new();
    }
    let mut table = format!(
        "\n\n{:>12} {:>12} {:>10} {:>10} {:>8}",
        "from s", "until s", "req/s", "expected", "drawn"
    );
    for phase in phases.iter().take(SHOWN_PHASES) {
        let rate = phase.expected / (phase.until - phase.from).s();
        table.push_str(&format!(
            "\n{:>12} {:>12} {:>10} {:>10} {:>8}",
            short(phase.from.s()),
            short(phase.until.s()),
            short(rate),
            short(phase.expected),
            phase.drawn
        ));
    }
    if phases.len() > SHOWN_PHASES {
        table.push_str(&format!("\n{} more; --json has all", phases.len() - SHOWN_PHASES));
    }
    table
}
