//! The runs as a browser is told of them. Everything here waits for a disk, so
//! it is called off the threads that answer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use measure::definition::GOODPUT;
use report::html::PageRun;
use serde_json::{Map, Value, json};
use store::{OpenRun, RunEntry, StoreError};
use wire::notes::Notes;
use wire::run::Manifest;
use wire::scrapes::Collected;

use crate::answer::Fault;

/// The most runs of a list, newest first: a browser draws a line for each.
const LISTED: usize = 1_000;

/// A run without a summary that changed within this time is being written: a
/// part comes every ten seconds.
const WRITING_MS: u64 = 60_000;

/// Runs that are kept as text after they were read: those of an overlay.
const KEPT: usize = 8;

/// Where the runs are.
#[derive(Debug)]
pub(crate) struct Shelf {
    runs_dir: PathBuf,
    now_ms: fn() -> u64,
    kept: Mutex<Vec<Kept>>,
}

/// A run as it was read last.
#[derive(Clone, Debug)]
struct Kept {
    id: String,
    measured_at: SystemTime,
    text: Arc<str>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has its summary.
    Done,
    /// It has none yet, and something came a moment ago.
    Writing,
    /// It has none, and nothing comes any more.
    CutOff,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Writing => "writing",
            Self::CutOff => "cut_off",
        }
    }
}

impl Shelf {
    pub(crate) fn new(runs_dir: PathBuf, now_ms: fn() -> u64) -> Self {
        Self { runs_dir, now_ms, kept: Mutex::new(Vec::new()) }
    }

    /// The list of runs as JSON.
    pub(crate) fn list(&self) -> Result<String, Fault> {
        let runs = store::list_runs(&self.runs_dir)?;
        let lines: Vec<Value> = runs.iter().take(LISTED).map(|run| self.line(run)).collect();
        Ok(json!({ "runs": lines, "of": runs.len() }).to_string())
    }

    /// One run of the list. What cannot be read is said in it, so that one bad
    /// file hides no other run.
    fn line(&self, entry: &RunEntry) -> Value {
        let run = OpenRun { path: entry.path.clone(), id: entry.id.clone() };
        let mut line = json!({
            "id": entry.id,
            "made_ms": entry.made_ms(),
            "size_bytes": entry.size_bytes,
            "state": "unreadable",
            "reason": null,
        });
        let said = run.notes();
        line["notes_fault"] = json!(said.as_ref().err().map(ToString::to_string));
        let notes = said.unwrap_or_default();
        line["tags"] = json!(notes.tags());
        line["note"] = json!(notes.note());
        match self.figures(&run) {
            Ok((state, figures)) => {
                line["state"] = json!(state.name());
                line.as_object_mut().expect("it was made as one").extend(figures);
            }
            Err(reason) => line["reason"] = json!(reason),
        }
        line
    }

    /// What the list shows of a run: from its summary, and from its manifest
    /// where there is no summary yet.
    fn figures(&self, run: &OpenRun) -> Result<(State, Map<String, Value>), String> {
        let facts = manifest(run).map_err(|fault| fault.error)?.facts;
        let state = self.state(run)?;
        let mut figures = Map::new();
        let mut add = |key: &str, value: Value| figures.insert(key.to_owned(), value);
        add("target", json!(facts.target));
        add("model", json!(facts.model));
        add("simulated", json!(facts.simulated));
        add("load", json!(facts.load.kind.name()));
        if state != State::Done {
            return Ok((state, figures));
        }
        let bytes = run.read_json("summary.json").map_err(|error| error.to_string())?;
        let summary: Value = serde_json::from_slice(&bytes)
            .map_err(|error| format!("summary.json is not JSON: {error}"))?;
        for (key, pointer) in [
            ("verdict", "/validity/verdict"),
            ("ok", "/outcomes/ok"),
            ("failed", "/outcomes/failed"),
            ("ttft_p50_ms", "/metrics/ttft_ms/p50"),
            ("ttft_p99_ms", "/metrics/ttft_ms/p99"),
            ("tpot_p50_ms", "/metrics/tpot_ms/p50"),
            ("output_tok_s", "/throughput/output_tok_s"),
            ("attainment", "/goodput/attainment"),
        ] {
            add(key, summary.pointer(pointer).cloned().unwrap_or_default());
        }
        Ok((state, figures))
    }

    fn state(&self, run: &OpenRun) -> Result<State, String> {
        match run.has("summary.json").map_err(|error| error.to_string())? {
            true => Ok(State::Done),
            false => {
                let changed = run.measured_at().map_err(|error| error.to_string())?;
                let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
                let since = u128::from((self.now_ms)()).saturating_sub(changed.as_millis());
                let writing = since <= u128::from(WRITING_MS);
                Ok(if writing { State::Writing } else { State::CutOff })
            }
        }
    }

    /// One run with its notes as JSON.
    pub(crate) fn run(&self, id: &str) -> Result<String, Fault> {
        let run = store::run_in(id, &self.runs_dir)?;
        let state = self.state(&run).map_err(unreadable)?;
        let text = self.page_data(&run)?;
        let said = run.notes();
        let fault = said.as_ref().err().map(ToString::to_string);
        let notes = said.unwrap_or_default();
        let (tags, note) = (json!(notes.tags()), json!(notes.note()));
        let (state, fault) = (json!(state.name()), json!(fault));
        Ok(format!(
            r#"{{"state":{state},"tags":{tags},"note":{note},"notes_fault":{fault},{text}}}"#
        ))
    }

    /// The member `run` of a run's data, read again only when something
    /// was measured since.
    fn page_data(&self, run: &OpenRun) -> Result<Arc<str>, Fault> {
        let measured_at = run.measured_at()?;
        let same = |kept: &&Kept| kept.id == run.id && kept.measured_at == measured_at;
        if let Some(known) = self.kept().iter().find(same) {
            return Ok(Arc::clone(&known.text));
        }
        let facts = manifest(run)?.facts;
        if !facts.rows_kept {
            let hint = "its figures are in summary.json; run it without --no-events to keep rows";
            let what = "the run kept no rows (--no-events), so there is nothing to show of them";
            return Err(Fault::new(StatusCode::UNPROCESSABLE_ENTITY, what, hint));
        }
        let rows = run.records()?;
        let mut notes: Vec<String> = rows.notes.iter().map(ToString::to_string).collect();
        let collected = run.metrics().unwrap_or_else(|error| {
            notes.push(error.to_string());
            Collected::default()
        });
        let records = &rows.records;
        let seen = collected.seen(records, facts.model.as_deref());
        let definition = definition(&facts);
        let summary = insight::summary(records, &facts, &definition, seen, &facts.deployment);
        let page = PageRun::of(&rows.records, &summary, &notes).json();
        let text: Arc<str> = format!(r#""run":{page}"#).into();
        let mut kept = self.kept();
        kept.retain(|one| one.id != run.id);
        kept.insert(0, Kept { id: run.id.clone(), measured_at, text: Arc::clone(&text) });
        kept.truncate(KEPT);
        Ok(text)
    }

    /// A list that a thread left while it failed is as good as before: it is
    /// changed by whole entries.
    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes tags and a note, and gives them as they are kept.
    pub(crate) fn write_notes(&self, id: &str, asked: &[u8]) -> Result<String, Fault> {
        let run = store::run_in(id, &self.runs_dir)?;
        let notes: Notes = wire::notes::asked(asked).map_err(|error| {
            let hint = "send both tags and note; docs/run-directory.md has the limits";
            Fault::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string(), hint)
        })?;
        run.write_notes(&notes)?;
        Ok(json!({ "tags": notes.tags(), "note": notes.note() }).to_string())
    }

    /// Moves a run to the trash, from where a person can take it back.
    pub(crate) fn trash(&self, id: &str) -> Result<String, Fault> {
        let run = store::run_in(id, &self.runs_dir)?;
        if self.state(&run).map_err(unreadable)? == State::Writing {
            let hint = "wait for its end, or stop it first";
            return Err(Fault::new(StatusCode::CONFLICT, "the run is being written", hint));
        }
        let place = store::trash(&run, &self.runs_dir)?;
        self.kept().retain(|one| one.id != run.id);
        Ok(json!({ "moved_to": place.display().to_string() }).to_string())
    }
}

fn unreadable(error: String) -> Fault {
    Fault::new(StatusCode::UNPROCESSABLE_ENTITY, error, "the files of this run are damaged")
}

fn manifest(run: &OpenRun) -> Result<Manifest, Fault> {
    let bytes = run.read_json("run.json").map_err(|error| match error {
        StoreError::TooLarge { .. } => Fault::from(error),
        // A crash comes before the manifest now and then; the rows are there.
        error => unreadable(error.to_string()),
    })?;
    wire::run::decode(&bytes).map_err(|error| unreadable(error.to_string()))
}

/// Our own definitions, as `goodput report` takes them by default.
fn definition(facts: &measure::facts::RunFacts) -> measure::definition::Definition {
    use measure::definition::Definition;
    Definition::preset("goodput", facts.endpoint).unwrap_or(GOODPUT)
}
