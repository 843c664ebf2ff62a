//! A run from its schedule to its report, whatever makes the requests: a load
//! at a target, or the engine model.

use std::path::{Path, PathBuf};

use drive::{Early, Happening};
use measure::definition::{Definition, Endpoint};
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, ReplayFacts, RunFacts};
use measure::request::Settings as MetricSettings;
use measure::summary::Summary;
use measure::tally::Tally;
use measure::validity::Verdict;
use measure::window;
use measure::{At, Outcome, PerSecond, Record};
use report::catalogue::report as words;
use report::lang::Lang;
use store::{Output, PartWriter, RunDirectory, RunId};
use wire::api::{Api, Yields};
use wire::run::Manifest;
use wire::scrapes::{self, Collected};
use workload::schedule::Schedule;

use crate::command::selftest;
use crate::command::simulate::VIRTUAL;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::Settings;
use crate::plan::Plan;
use crate::progress::Progress;
use crate::{host, output};

/// An id for a run that starts now, and when that is.
pub(super) fn new_id() -> Result<(RunId, String), Failure> {
    let (started_ms, started_at) = host::wall_time();
    let entropy: [u8; 10] = host::random().map_err(Failure::internal)?;
    Ok((RunId::new(started_ms, entropy), started_at))
}

/// Where the results go.
pub(super) struct Outputs {
    json: output::Json,
    copy: Option<Output>,
    pages: output::Pages,
    lang: Lang,
}

impl Outputs {
    /// Opens every output before anything is measured: a folder that cannot be
    /// written to must not cost a run.
    pub(super) fn open(settings: &Settings) -> Result<Self, Failure> {
        let json = output::Json::open(settings.text("json"))?;
        let copy = result_copy(settings)?;
        let lang = crate::cli::lang(settings.text("lang"))?;
        let asked = output::Asked {
            html: settings.text("html"),
            markdown: settings.text("markdown"),
            csv: settings.text("csv"),
        };
        Ok(Self { json, copy, pages: output::Pages::open(asked, lang)?, lang })
    }
}

/// Where the run is kept.
pub(super) fn directory(settings: &Settings, run_id: RunId) -> Result<RunDirectory, Failure> {
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

/// A run whose schedule is drawn.
pub(super) struct Session<'a> {
    /// The words of the command that makes it.
    pub(super) command: &'static [&'static str],
    pub(super) settings: &'a Settings,
    pub(super) plan: &'a Plan,
    pub(super) schedule: &'a Schedule,
    pub(super) run_id: String,
    pub(super) started_at: String,
}

/// What is known of a target before the run.
pub(super) struct Known {
    /// As it may be stored.
    pub(super) target: String,
    pub(super) engine: Option<String>,
    pub(super) model: String,
    pub(super) simulated: bool,
    /// Whether rows are kept, with every event.
    pub(super) rows_kept: bool,
}

/// What made the requests says at the end.
pub(super) struct Generated {
    pub(super) anchor_ns: i64,
    /// Why it ended early, if it did.
    pub(super) early: Option<Early>,
    pub(super) instrument: InstrumentFacts,
    /// What it has to say of itself.
    pub(super) notes: Vec<String>,
    /// What was scraped of servers.
    pub(super) collected: Collected,
}

/// A run that is over.
pub(super) struct Finished {
    pub(super) records: Vec<Record>,
    pub(super) summary: Summary,
    anchor_ns: i64,
    early: Option<Early>,
    path: PathBuf,
    /// What could not be written, in words.
    unwritten: Vec<String>,
}

impl Session<'_> {
    /// Lets `generate` tell of every request as it ends, writes them down as
    /// they come, and computes what they come to.
    pub(super) fn record(
        &self,
        known: Known,
        directory: RunDirectory,
        generate: impl FnOnce(&mut dyn FnMut(Happening)) -> Result<Generated, Failure>,
    ) -> Result<Finished, Failure> {
        let mut progress = self.progress();
        let mut facts = self.begin(known, &directory)?;
        let mut writer = PartWriter::new(directory, 0, At::ZERO);
        let mut unwritten = Vec::new();
        let mut generated = generate(&mut |happening| {
            let now = match happening {
                Happening::Ended(record) => {
                    progress.ended(&record);
                    let now = record.stamps.ended_at.unwrap_or_default();
                    writer.push(*record);
                    now
                }
                Happening::Tick(now) => now,
                // What makes the requests heeds it.
                Happening::Ready => return,
            };
            progress.tick(now);
            // A full disk is told once; the records stay and are tried again
            // at the end.
            if let Err(error) = writer.maybe_flush(now)
                && unwritten.is_empty()
            {
                unwritten.push(error.to_string());
            }
        })?;
        progress.finish();
        unwritten.clear();
        let saved = writer.flush(At::ZERO).and_then(|_| writer.sink().finish(0));
        if let Err(error) = saved {
            unwritten.push(error.to_string());
        }
        take_in(&mut facts, &generated);
        let (mut records, directory) = writer.into_parts();
        records.sort_by_key(|record| record.index);
        let definition = Definition::preset(&self.plan.definitions, facts.endpoint)
            .unwrap_or(measure::definition::GOODPUT);
        let collected = std::mem::take(&mut generated.collected);
        if !collected.sources.is_empty() {
            let file = scrapes::encode(&collected, window::served(&records));
            if let Err(error) = directory.write_metrics(&file) {
                unwritten.push(error.to_string());
            }
        }
        let seen = collected.seen(&records, facts.model.as_deref());
        // The stored summary is under our own definitions, whatever was asked
        // to be printed.
        let ours = measure::definition::GOODPUT;
        let own = insight::summary(&records, &facts, &ours, seen, &facts.deployment);
        let summary = insight::under(&own, &records, &definition);
        self.write_down(&directory, &own, &generated, &mut unwritten)?;
        Ok(Self::finished(records, summary, generated, &directory, unwritten))
    }

    /// Lets `generate` count every request as it ends, of which none is kept.
    pub(super) fn count(
        &self,
        known: Known,
        directory: &RunDirectory,
        generate: impl FnOnce(&mut Tally, &mut Progress) -> Result<Generated, Failure>,
    ) -> Result<Finished, Failure> {
        let mut progress = self.progress();
        let mut facts = self.begin(known, directory)?;
        let mut tally = Tally::new(&facts);
        let generated = generate(&mut tally, &mut progress)?;
        progress.finish();
        take_in(&mut facts, &generated);
        let summary = tally.summary(&facts);
        let mut unwritten = Vec::new();
        self.write_down(directory, &summary, &generated, &mut unwritten)?;
        Ok(Self::finished(Vec::new(), summary, generated, directory, unwritten))
    }

    fn progress(&self) -> Progress {
        Progress::new(self.schedule.count(), self.settings.is_on("disable-tqdm"))
    }

    /// Writes down what is known before the first request. A run that is killed
    /// leaves its parts and this, which is enough for a report of them; it
    /// counts as interrupted then.
    fn begin(&self, known: Known, directory: &RunDirectory) -> Result<RunFacts, Failure> {
        let facts = self.facts(known);
        let unfinished = self.manifest(facts.clone(), 0);
        directory.write_json("run.json", &wire::run::encode(&unfinished))?;
        Ok(facts)
    }

    /// Writes the run's own files.
    fn write_down(
        &self,
        directory: &RunDirectory,
        own: &Summary,
        generated: &Generated,
        unwritten: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let verdict = [own.validity.verdict.name().to_owned()];
        let reasons = own.validity.reasons.iter().map(|reason| reason.text.en.clone());
        let manifest = Manifest {
            files: directory.checksums().unwrap_or_default(),
            validity: verdict.into_iter().chain(reasons).collect(),
            ..self.manifest(own.facts.clone(), generated.anchor_ns)
        };
        let own =
            serde_json::to_vec_pretty(&wire::summary::to_json(own)).map_err(Failure::internal)?;
        for (name, bytes) in [("run.json", wire::run::encode(&manifest)), ("summary.json", own)] {
            if let Err(error) = directory.write_json(name, &bytes) {
                unwritten.push(error.to_string());
            }
        }
        Ok(())
    }

    fn finished(
        records: Vec<Record>,
        summary: Summary,
        generated: Generated,
        directory: &RunDirectory,
        unwritten: Vec<String>,
    ) -> Finished {
        let Generated { anchor_ns, early, .. } = generated;
        let path = directory.path().to_path_buf();
        Finished { records, summary, anchor_ns, early, path, unwritten }
    }

    /// What is known before the run, which is interrupted until it ends.
    fn facts(&self, known: Known) -> RunFacts {
        let load = self.schedule.load();
        let kind = LoadKind::ALL.iter().copied().find(|kind| kind.name() == load.kind());
        let closes_early = self.schedule.closes_at().is_some();
        RunFacts {
            run_id: self.run_id.clone(),
            target: known.target,
            engine: known.engine,
            model: Some(known.model),
            simulated: known.simulated,
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
            settings: MetricSettings {
                stall_ms: self.plan.stall_ms,
                events_kept: known.rows_kept,
                ..MetricSettings::default()
            },
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
            deployment: self.plan.deployment.clone(),
            rows_kept: known.rows_kept,
            interrupted: true,
        }
    }

    fn manifest(&self, facts: RunFacts, anchor_ns: i64) -> Manifest {
        let mut settings = self.settings.stored();
        settings.extend(self.plan.defaults(self.settings, self.schedule));
        Manifest {
            argv: self.settings.argv(self.command),
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

/// Takes what made the requests has to say into what is known of the run.
fn take_in(facts: &mut RunFacts, generated: &Generated) {
    facts.interrupted = stopped(generated.early.as_ref());
    facts.instrument = InstrumentFacts {
        floor: facts.instrument.floor.take(),
        planned_requests: facts.instrument.planned_requests,
        ..generated.instrument.clone()
    };
    facts.workload.notes.extend(generated.notes.iter().cloned());
}

/// True when what was left of the schedule was never owed: the user stopped
/// the run, or a rule of the user's did.
const fn stopped(early: Option<&Early>) -> bool {
    matches!(early, Some(Early::Interrupted | Early::TooManyErrors(_)))
}

impl Finished {
    /// Shows the report and writes what was asked for.
    pub(super) fn publish(
        &self,
        settings: &Settings,
        plan: &Plan,
        outputs: Outputs,
    ) -> Result<Exit, Failure> {
        let Outputs { json, copy, pages, lang } = outputs;
        let object = wire::summary::to_json(&self.summary);
        let mut text = output::report(&self.summary, plan.rows.as_deref(), lang, json.is_stdout());
        let truth = settings
            .text("ground-truth")
            .map(|path| output::errors_against_truth(path, &self.records, self.anchor_ns, lang));
        if let Some(Ok(errors)) = &truth {
            text.push_str(errors);
        }
        // Of a run without rows nobody can say what limits it.
        if self.summary.inside.findings.is_some() {
            let diagnosis = report::content::in_short(&self.summary, lang);
            text.push_str(&format!("\n{}", report::terminal::paragraph(&diagnosis)));
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
        // The engine model cannot be out of reach, however late it is.
        let is_virtual = self.summary.facts.instrument.stamp_source == VIRTUAL;
        if (!answered && !is_virtual) || matches!(self.early, Some(Early::Refused { .. })) {
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
