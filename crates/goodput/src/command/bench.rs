//! `bench`: make load, measure, report.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use drive::{Control, Early, Happening, IDLE_LIMIT, Job, StopRules};
use measure::definition::{Definition, Endpoint};
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, ReplayFacts, RunFacts};
use measure::request::Settings as MetricSettings;
use measure::summary::{Summary, summarise};
use measure::validity::Verdict;
use measure::{At, Outcome, PerSecond, Record, Span};
use report::catalogue::report as words;
use report::lang::Lang;
use report::number::short;
use serde_json::json;
use store::{Output, PartWriter, RunDirectory, RunId};
use wire::api::{Api, RequestSpec, Yields};
use wire::run::Manifest;
use workload::prompt::RunNonce;
use workload::schedule::{Note, Schedule};
use workload::{Load, Phase};

use crate::command::report::isolated;
use crate::command::selftest;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{Settings, UsageError};
use crate::plan::{self, Address, Plan};
use crate::progress::Progress;
use crate::target::{self, Resolved, Unresolved};
use crate::{cache, host, inquiry, output};

/// Runs the command; the exit code is its result.
pub(crate) fn run(settings: &Settings) -> Result<Exit, Failure> {
    let settings = &with_seed(settings.clone())?;
    let read = |path: &str, limit: u64| {
        store::read_file(path.as_ref(), limit).map_err(|error| error.to_string())
    };
    let mut plan = plan::resolve(settings, read).map_err(Failure::usage)?;
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
    // Every output is opened before anything is measured: a folder that
    // cannot be written to must not cost a run.
    let json = output::Json::open(settings.text("json"))?;
    let copy = result_copy(settings)?;
    let lang = crate::cli::lang(settings.text("lang"))?;
    let asked = output::Asked {
        html: settings.text("html"),
        markdown: settings.text("markdown"),
        csv: settings.text("csv"),
    };
    let pages = output::Pages::open(asked, lang)?;
    let resolved = target::resolve(settings, &plan).map_err(unresolved)?;
    let (started_ms, started_at) = host::wall_time();
    let entropy: [u8; 18] = host::random().map_err(Failure::internal)?;
    let run_id = RunId::new(started_ms, std::array::from_fn(|index| entropy[index]));
    let nonce = u64::from_le_bytes(std::array::from_fn(|index| entropy[10 + index]));
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
    let session = Session {
        settings,
        plan: &plan,
        schedule: Arc::new(schedule),
        run_id: run_id.to_string(),
        started_at,
        nonce,
    };
    let finished = session.measure(resolved, directory)?;
    let outputs = Outputs { json, copy, pages, lang };
    finished.publish(settings, &plan, outputs)
}

fn draw(plan: &Plan) -> Result<(Schedule, Vec<Note>), Failure> {
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
fn with_seed(mut settings: Settings) -> Result<Settings, Failure> {
    let seed = u32::from_le_bytes(host::random().map_err(Failure::internal)?);
    settings.set_drawn("seed", seed.to_string());
    Ok(settings)
}

/// Where the results go.
struct Outputs {
    json: output::Json,
    copy: Option<Output>,
    pages: output::Pages,
    lang: Lang,
}

fn unresolved(why: Unresolved) -> Failure {
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

fn take_notes(plan: &mut Plan, schedule: &Schedule, notes: &[Note]) {
    schedule.cache().name().clone_into(&mut plan.workload.cache_regime);
    plan.workload.prefix_tokens = schedule.prefix_tokens();
    for note in notes {
        let oversampled = [plan.workload.oversampled, note.oversampled()];
        plan.workload.oversampled = oversampled.into_iter().flatten().reduce(f64::max);
        plan.workload.notes.push(note.to_string());
    }
}

fn directory(settings: &Settings, run_id: RunId) -> Result<RunDirectory, Failure> {
    Ok(match settings.text("out") {
        Some(path) => RunDirectory::create(Path::new(path))?,
        None => RunDirectory::create_in(&output::runs_dir(settings.text("runs-dir")), run_id)?,
    })
}

fn result_copy(settings: &Settings) -> Result<Option<Output>, Failure> {
    let Some(name) = settings.text("result-filename") else { return Ok(None) };
    let folder = PathBuf::from(settings.text("result-dir").unwrap_or("."));
    Ok(Some(Output::open(&folder.join(name))?))
}

/// Prints what would be done.
fn dry_run(settings: &Settings, plan: &Plan, schedule: &Schedule) -> Result<Exit, Failure> {
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

/// A run from here on.
struct Session<'a> {
    settings: &'a Settings,
    plan: &'a Plan,
    schedule: Arc<Schedule>,
    run_id: String,
    started_at: String,
    nonce: RunNonce,
}

/// A run that is over.
struct Finished {
    records: Vec<Record>,
    summary: Summary,
    anchor_ns: i64,
    early: Option<Early>,
    path: PathBuf,
    /// What could not be written, in words.
    unwritten: Vec<String>,
}

impl Session<'_> {
    fn measure(&self, resolved: Resolved, directory: RunDirectory) -> Result<Finished, Failure> {
        let job = Arc::new(self.job(&resolved));
        let control = Control::default();
        control.stop_on_signals().map_err(Failure::internal)?;
        let quiet = self.settings.is_on("disable-tqdm");
        let mut progress = Progress::new(self.schedule.count(), quiet);
        let path = directory.path().to_path_buf();
        // A run that is killed leaves its parts and this, which is enough for
        // a report of them; it counts as interrupted then.
        let mut facts = self.facts(&resolved);
        let unfinished = self.manifest(facts.clone(), 0);
        directory.write_json("run.json", &wire::run::encode(&unfinished))?;
        let mut writer = PartWriter::new(directory, 0, At::ZERO);
        let mut unwritten = Vec::new();
        let rules = StopRules {
            max_errors: self.plan.max_errors,
            max_error_rate: self.plan.max_error_rate,
        };
        let throttled_us = host::throttled_us();
        let end = drive::run(job, rules, &control, |happening| {
            let now = match happening {
                Happening::Ended(record) => {
                    progress.ended(&record);
                    let now = record.stamps.ended_at.unwrap_or_default();
                    writer.push(*record);
                    now
                }
                Happening::Tick(now) => now,
            };
            progress.tick(now);
            // A full disk is told once; the records stay and are tried again
            // at the end.
            if let Err(error) = writer.maybe_flush(now)
                && unwritten.is_empty()
            {
                unwritten.push(error.to_string());
            }
        })
        .map_err(Failure::internal)?;
        progress.finish();
        unwritten.clear();
        let saved = writer.flush(At::ZERO).and_then(|_| writer.sink().finish(0));
        if let Err(error) = saved {
            unwritten.push(error.to_string());
        }
        facts.interrupted = stopped(end.early.as_ref());
        self.note_instrument(&mut facts, &end.instrument, throttled_us);
        let (mut records, directory) = writer.into_parts();
        records.sort_by_key(|record| record.index);
        let definition = Definition::preset(&self.plan.definitions, facts.endpoint)
            .unwrap_or(measure::definition::GOODPUT);
        let summary = summarise(&records, &facts, &definition);
        // The stored summary is under our own definitions, whatever was asked
        // to be printed.
        let own = if definition == measure::definition::GOODPUT {
            summary.clone()
        } else {
            summarise(&records, &summary.facts, &measure::definition::GOODPUT)
        };
        let verdict = [own.validity.verdict.name().to_owned()];
        let reasons = own.validity.reasons.iter().map(|reason| reason.text.en.clone());
        let manifest = Manifest {
            files: directory.checksums().unwrap_or_default(),
            validity: verdict.into_iter().chain(reasons).collect(),
            ..self.manifest(own.facts.clone(), end.clock.anchor_ns())
        };
        let own =
            serde_json::to_vec_pretty(&wire::summary::to_json(&own)).map_err(Failure::internal)?;
        for (name, bytes) in [("run.json", wire::run::encode(&manifest)), ("summary.json", own)] {
            if let Err(error) = directory.write_json(name, &bytes) {
                unwritten.push(error.to_string());
            }
        }
        drop(resolved.embedded);
        Ok(Finished {
            records,
            summary,
            anchor_ns: end.clock.anchor_ns(),
            early: end.early,
            path,
            unwritten,
        })
    }

    fn job(&self, resolved: &Resolved) -> Job {
        let warmup = plan::warmup(self.plan, &self.schedule);
        Job {
            run_id: self.settings.text("request-id-prefix").map_or_else(
                || self.run_id.clone(),
                |prefix| prefix.trim_end_matches('-').to_owned(),
            ),
            schedule: Arc::clone(&self.schedule),
            nonce: self.nonce,
            targets: resolved.targets.clone(),
            api: self.plan.api,
            template: RequestSpec { model: resolved.model.clone(), ..self.plan.template.clone() },
            headers: resolved.headers.clone(),
            ids_by: self.plan.tokenizer.clone().filter(|_| self.plan.sends_ids),
            session_header: self.plan.session_header.clone(),
            secrets: resolved.secrets.clone(),
            idle_timeout: self.plan.idle_timeout,
            request_timeout: self.plan.request_timeout,
            idle_limit: IDLE_LIMIT,
            reuse: self.plan.reuse,
            keep_text: self.settings.is_on("save-text"),
            threads: self.plan.threads,
            warmup: warmup.map(Arc::new),
        }
    }

    /// What is known before the run, which is interrupted until it ends.
    fn facts(&self, resolved: &Resolved) -> RunFacts {
        let load = self.schedule.load();
        let kind = LoadKind::ALL.iter().copied().find(|kind| kind.name() == load.kind());
        let closes_early = self.schedule.closes_at().is_some();
        RunFacts {
            run_id: self.run_id.clone(),
            target: resolved.shown.clone(),
            engine: resolved.engine.clone(),
            model: Some(self.plan.models_shown(&resolved.model)),
            simulated: resolved.embedded.is_some(),
            api: self.plan.api.name().to_owned(),
            endpoint: match self.plan.api {
                Api::OpenaiCompletions => Endpoint::Completions,
                api if api.entry().yields != Yields::Tokens => Endpoint::Results,
                _ => Endpoint::Chat,
            },
            load: LoadFacts {
                kind: kind.unwrap_or(LoadKind::Unknown),
                request_rate: load.rate().map(PerSecond::get),
                burstiness: load.burstiness().filter(|k| k.is_finite()),
                users: load.users(),
                arrivals: self.schedule.arrival_text(),
                planned_duration: self.schedule.planned_duration(),
                seed: self.plan.spec.seed,
                schedule_hash: self.schedule.hash(),
                replay: load.replay().map(|replay| ReplayFacts {
                    rows: replay.rows() as u64,
                    speed: replay.speed(),
                    window_s: replay.window().map(|(from, until)| [from.s(), until.s()]),
                }),
            },
            workload: self.plan.workload.clone(),
            slo: self.plan.slo.clone(),
            settings: MetricSettings { stall_ms: self.plan.stall_ms, ..MetricSettings::default() },
            percentiles: self.plan.percentiles.clone(),
            instrument: InstrumentFacts {
                floor: selftest::stored(self.settings.text("runs-dir")),
                planned_requests: self.schedule.count().filter(|_| !closes_early).map(u64::from),
                ..InstrumentFacts::default()
            },
            request_timeout: Some(self.plan.request_timeout),
            source_duration_s: None,
            as_reported: Vec::new(),
            isolated: self.plan.isolated.clone(),
            interrupted: true,
        }
    }

    /// Adds what the instrument found out about itself.
    fn note_instrument(
        &self,
        facts: &mut RunFacts,
        instrument: &drive::Instrument,
        throttled_before_us: Option<i64>,
    ) {
        let known = &mut facts.instrument;
        instrument.stamp_source.clone_into(&mut known.stamp_source);
        known.client_lag_us = instrument.client_lag_us;
        known.stamp_error_p99_us = instrument.stamp_error_p99_us;
        known.busiest_thread = instrument.busiest_thread;
        known.clock_steps = instrument.clock_steps;
        let throttled = throttled_before_us.zip(host::throttled_us());
        known.throttled = throttled.map(|(before, after)| Span::from_us(after - before));
    }

    fn manifest(&self, facts: RunFacts, anchor_ns: i64) -> Manifest {
        let mut settings = self.settings.stored();
        settings.extend(self.plan.defaults(self.settings, &self.schedule));
        Manifest {
            argv: self.settings.argv(),
            settings,
            facts,
            host: host::facts(),
            started_at: self.started_at.clone(),
            anchor_monotonic_ns: anchor_ns.max(0) as u64,
            written_by: format!("goodput {}", env!("CARGO_PKG_VERSION")),
            files: Vec::new(),
            validity: Vec::new(),
            definitions: measure::definition::GOODPUT.card().stored(),
        }
    }
}

/// True when what was left of the schedule was never owed: the user stopped
/// the run, or a rule of the user's did.
const fn stopped(early: Option<&Early>) -> bool {
    matches!(early, Some(Early::Interrupted | Early::TooManyErrors(_)))
}

impl Finished {
    fn publish(&self, settings: &Settings, plan: &Plan, outputs: Outputs) -> Result<Exit, Failure> {
        let Outputs { json, copy, pages, lang } = outputs;
        let object = wire::summary::to_json(&self.summary);
        let mut text = output::report(&self.summary, plan.rows.as_deref(), lang, json.is_stdout());
        let truth = settings
            .text("ground-truth")
            .map(|path| output::errors_against_truth(path, &self.records, self.anchor_ns, lang));
        if let Some(Ok(errors)) = &truth {
            text.push_str(errors);
        }
        let path = lang.fill(words::RUN_DIRECTORY, &[("path", &self.path.display())]);
        text.push_str(&format!("\n{path}\n"));
        json.show(text.trim_end());
        json.write(&object)?;
        if let Some(copy) = copy {
            copy.write(object.to_string().as_bytes())?;
        }
        let rows = plan.rows.as_deref();
        pages.write_one(&self.records, &self.summary, &self.unwritten, rows)?;
        // A truth log that cannot be read costs nothing of the run's results.
        if let Some(Err(failure)) = truth {
            return Err(failure);
        }
        for what in &self.unwritten {
            crate::say(&format!("not written: {what}"));
        }
        let exit = self.exit(settings, plan, lang);
        if exit == Exit::Unreachable {
            crate::say(&self.unreachable());
        }
        Ok(exit)
    }

    fn exit(&self, settings: &Settings, plan: &Plan, lang: Lang) -> Exit {
        if self.early == Some(Early::Interrupted) {
            return Exit::Interrupted;
        }
        let answered = self.records.iter().any(|record| record.answer.http_status.is_some());
        if !answered || matches!(self.early, Some(Early::Refused { .. })) {
            return Exit::Unreachable;
        }
        let verdict = self.summary.validity.verdict;
        let invalid = verdict == Verdict::Invalid && !settings.is_on("allow-invalid");
        if invalid || (verdict == Verdict::Degraded && settings.is_on("strict")) {
            return Exit::Invalid;
        }
        if !self.unwritten.is_empty() {
            return Exit::Internal;
        }
        output::thresholds(&plan.thresholds, &self.summary, lang)
    }

    /// One sentence about a target that gave nothing.
    fn unreachable(&self) -> String {
        let target = &self.summary.facts.target;
        let failed = self.records.iter().find_map(|record| match record.outcome {
            Outcome::Failed(kind) => Some((kind, record)),
            _ => None,
        });
        let Some((kind, record)) = failed else {
            return format!("nothing was sent to {target}");
        };
        let did = match self.early {
            Some(Early::Refused { .. }) => "refused every request",
            _ => "gave no HTTP response",
        };
        let said =
            record.answer.message.as_deref().map_or(String::new(), |said| format!(": {said}"));
        let status = record.answer.http_status.map_or(String::new(), |status| format!(" {status}"));
        format!("{target} {did} ({}{status}{said}). {}", kind.name(), kind.hint())
    }
}
