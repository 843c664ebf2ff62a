//! `run.json`: what a run was, so that every figure of its report can be
//! recomputed from its directory. Versioned, and readable forever.

mod deployment;

use measure::Span;
use measure::definition::Endpoint;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, ReplayFacts, RunFacts, WorkloadFacts};
use measure::fairness::{self, Isolated};
use measure::request::Settings;
use measure::slo::Slo;
use serde::{Deserialize, Serialize};

use self::deployment::DeploymentForm;

/// Version of the form. Raise it when a reader of the old form would be
/// misled, and keep reading the old one.
pub const VERSION: u32 = 1;

/// A run's manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The command line, secrets taken out.
    pub argv: Vec<String>,
    /// Each setting with its value and where it came from.
    pub settings: Vec<Setting>,
    /// What is known besides the records.
    pub facts: RunFacts,
    /// The machine that made the load: name and value.
    pub host: Vec<(String, String)>,
    /// The one wall-clock reading of the run, taken before the first
    /// connection was opened: RFC 3339.
    pub started_at: String,
    /// CLOCK_MONOTONIC at the clock anchor, in ns, to join server logs.
    pub anchor_monotonic_ns: u64,
    /// Version of goodput that wrote it.
    pub written_by: String,
    /// Row files and the CRC-32 of their bytes, in hexadecimal.
    pub files: Vec<(String, String)>,
    /// The verdict and its reasons in words; recomputed by every report.
    pub validity: Vec<String>,
    /// The definition card: key and words.
    pub definitions: Vec<(String, String)>,
}

/// One resolved setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// The flag's name.
    pub name: String,
    /// Its value as text.
    pub value: String,
    /// command line, environment, config file or default.
    pub origin: String,
}

/// Why a manifest cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// Not JSON of this form.
    #[error("run.json is not a goodput manifest: {0}")]
    Form(#[from] serde_json::Error),
    /// Written by a later version.
    #[error(
        "run.json has format version {found}; this goodput reads up to {VERSION}: take a newer one"
    )]
    Newer {
        /// The version found.
        found: u32,
    },
    /// A value that no version writes.
    #[error("run.json: {field} is {value:?}, which no version of goodput writes")]
    Value {
        /// The field.
        field: &'static str,
        /// What stands there.
        value: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Form {
    format_version: u32,
    written_by: String,
    argv: Vec<String>,
    settings: Vec<Setting>,
    started_at: String,
    anchor_monotonic_ns: u64,
    host: Vec<(String, String)>,
    files: Vec<(String, String)>,
    #[serde(default)]
    validity: Vec<String>,
    #[serde(default)]
    definitions: Vec<(String, String)>,
    facts: FactsForm,
}

const fn yes() -> bool {
    true
}

const fn is_true(kept: &bool) -> bool {
    *kept
}

#[derive(Serialize, Deserialize)]
struct FactsForm {
    run_id: String,
    target: String,
    engine: Option<String>,
    model: Option<String>,
    simulated: bool,
    api: String,
    endpoint: String,
    load: LoadForm,
    workload: WorkloadForm,
    slo: Option<String>,
    // A limit that no value reaches is infinite, which JSON writes as null.
    stall_ms: Option<f64>,
    reading_tok_s: Option<f64>,
    // Files of before there was a choice have all events.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    events_kept: bool,
    percentiles: Vec<f64>,
    instrument: InstrumentForm,
    request_timeout_ms: Option<f64>,
    source_duration_s: Option<f64>,
    // Null where another tool had nothing to report.
    as_reported: Vec<(String, Option<f64>)>,
    // Written since labels can be held against runs of their own.
    #[serde(default)]
    isolated: Vec<IsolatedForm>,
    // Written since machines can be named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deployment: Option<DeploymentForm>,
    // Files of before there was a choice have rows.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    rows_kept: bool,
    interrupted: bool,
}

#[derive(Serialize, Deserialize)]
struct IsolatedForm {
    name: String,
    value: String,
    run_id: String,
    figures_ms: Vec<(String, String, f64)>,
}

#[derive(Serialize, Deserialize)]
struct LoadForm {
    kind: String,
    request_rate: Option<f64>,
    burstiness: Option<f64>,
    users: Option<u32>,
    arrivals: String,
    planned_duration_us: Option<i64>,
    seed: u64,
    schedule_hash: String,
    // Written since traces can be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<ReplayForm>,
}

#[derive(Serialize, Deserialize)]
struct ReplayForm {
    rows: u64,
    speed: f64,
    window_s: Option<[f64; 2]>,
}

#[derive(Serialize, Deserialize)]
struct WorkloadForm {
    source: String,
    input_lengths: String,
    output_lengths: String,
    // Written since prompt lengths can be exact.
    #[serde(default)]
    tokenizer: Option<String>,
    cache_regime: String,
    // Written since prompts can share prefixes.
    #[serde(default)]
    prefix_tokens: Option<u32>,
    oversampled: Option<f64>,
    // Written since there are use cases.
    #[serde(default)]
    use_case: Option<String>,
    #[serde(default)]
    random_text: bool,
    #[serde(default)]
    output_forced: bool,
    #[serde(default)]
    engine_facts: Vec<String>,
    notes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct InstrumentForm {
    stamp_source: String,
    client_lag_us: Option<[f64; 3]>,
    #[serde(default)]
    stamp_error_p99_us: Option<f64>,
    #[serde(default)]
    clock_steps: u32,
    // Written since round trips are measured, first as handshakes only.
    #[serde(default, alias = "handshake_us")]
    round_trip_us: Option<i64>,
    #[serde(default)]
    floor: Option<crate::floor::FloorForm>,
    busiest_thread: Option<f64>,
    throttled_us: Option<i64>,
    planned_requests: Option<u64>,
}

/// The manifest as JSON text.
pub fn encode(manifest: &Manifest) -> Vec<u8> {
    let form = Form {
        format_version: VERSION,
        written_by: manifest.written_by.clone(),
        argv: manifest.argv.clone(),
        settings: manifest.settings.clone(),
        started_at: manifest.started_at.clone(),
        anchor_monotonic_ns: manifest.anchor_monotonic_ns,
        host: manifest.host.clone(),
        files: manifest.files.clone(),
        validity: manifest.validity.clone(),
        definitions: manifest.definitions.clone(),
        facts: facts_form(&manifest.facts),
    };
    serde_json::to_vec_pretty(&form).expect("a form of plain values is always JSON")
}

/// Reads a manifest of this or an earlier version.
pub fn decode(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    let Version { format_version: found } = serde_json::from_slice(bytes)?;
    if found > VERSION {
        return Err(ManifestError::Newer { found });
    }
    if found == 0 {
        let value = found.to_string();
        return Err(ManifestError::Value { field: "format_version", value });
    }
    let form: Form = serde_json::from_slice(bytes)?;
    Ok(Manifest {
        argv: form.argv,
        settings: form.settings,
        facts: facts(form.facts)?,
        host: form.host,
        started_at: form.started_at,
        anchor_monotonic_ns: form.anchor_monotonic_ns,
        written_by: form.written_by,
        files: form.files,
        validity: form.validity,
        definitions: form.definitions,
    })
}

fn facts_form(facts: &RunFacts) -> FactsForm {
    let slo = facts.slo.as_ref().map(measure::slo::stored);
    FactsForm {
        run_id: facts.run_id.clone(),
        target: facts.target.clone(),
        engine: facts.engine.clone(),
        model: facts.model.clone(),
        simulated: facts.simulated,
        api: facts.api.clone(),
        endpoint: endpoint_name(facts.endpoint).to_owned(),
        load: LoadForm {
            kind: facts.load.kind.name().to_owned(),
            request_rate: facts.load.request_rate,
            burstiness: facts.load.burstiness,
            users: facts.load.users,
            arrivals: facts.load.arrivals.clone(),
            planned_duration_us: facts.load.planned_duration.map(Span::us),
            seed: facts.load.seed,
            schedule_hash: facts.load.schedule_hash.clone(),
            replay: facts.load.replay.map(|replay| ReplayForm {
                rows: replay.rows,
                speed: replay.speed,
                window_s: replay.window_s,
            }),
        },
        workload: WorkloadForm {
            source: facts.workload.source.clone(),
            input_lengths: facts.workload.input_lengths.clone(),
            output_lengths: facts.workload.output_lengths.clone(),
            tokenizer: facts.workload.tokenizer.clone(),
            cache_regime: facts.workload.cache_regime.clone(),
            prefix_tokens: facts.workload.prefix_tokens,
            oversampled: facts.workload.oversampled,
            use_case: facts.workload.use_case.clone(),
            random_text: facts.workload.random_text,
            output_forced: facts.workload.output_forced,
            engine_facts: facts.workload.engine_facts.clone(),
            notes: facts.workload.notes.clone(),
        },
        slo,
        stall_ms: Some(facts.settings.stall_ms),
        reading_tok_s: Some(facts.settings.reading_tok_s),
        events_kept: facts.settings.events_kept,
        percentiles: facts.percentiles.clone(),
        instrument: InstrumentForm {
            stamp_source: facts.instrument.stamp_source.clone(),
            client_lag_us: facts.instrument.client_lag_us,
            stamp_error_p99_us: facts.instrument.stamp_error_p99_us,
            clock_steps: facts.instrument.clock_steps,
            round_trip_us: facts.instrument.round_trip.map(Span::us),
            floor: facts.instrument.floor.as_ref().map(Into::into),
            busiest_thread: facts.instrument.busiest_thread,
            throttled_us: facts.instrument.throttled.map(Span::us),
            planned_requests: facts.instrument.planned_requests,
        },
        request_timeout_ms: facts.request_timeout.map(Span::ms),
        source_duration_s: facts.source_duration_s,
        as_reported: facts
            .as_reported
            .iter()
            .map(|(key, value)| (key.clone(), Some(*value)))
            .collect(),
        isolated: facts.isolated.iter().map(isolated_form).collect(),
        deployment: deployment::form(&facts.deployment),
        rows_kept: facts.rows_kept,
        interrupted: facts.interrupted,
    }
}

fn facts(form: FactsForm) -> Result<RunFacts, ManifestError> {
    let kind = LoadKind::ALL.iter().copied().find(|kind| kind.name() == form.load.kind);
    let kind = kind.ok_or(ManifestError::Value { field: "load.kind", value: form.load.kind })?;
    let slo = form.slo.map(|text| {
        Slo::from_stored(&text)
            .map_err(|_| ManifestError::Value { field: "slo", value: text.clone() })
    });
    Ok(RunFacts {
        run_id: form.run_id,
        target: form.target,
        engine: form.engine,
        model: form.model,
        simulated: form.simulated,
        api: form.api,
        endpoint: match form.endpoint.as_str() {
            "chat" => Endpoint::Chat,
            "completions" => Endpoint::Completions,
            "results" => Endpoint::Results,
            _ => return Err(ManifestError::Value { field: "endpoint", value: form.endpoint }),
        },
        load: LoadFacts {
            kind,
            request_rate: form.load.request_rate,
            burstiness: form.load.burstiness,
            users: form.load.users,
            arrivals: form.load.arrivals,
            planned_duration: form.load.planned_duration_us.map(Span::from_us),
            seed: form.load.seed,
            schedule_hash: form.load.schedule_hash,
            replay: form.load.replay.map(|replay| ReplayFacts {
                rows: replay.rows,
                speed: replay.speed,
                window_s: replay.window_s,
            }),
        },
        workload: WorkloadFacts {
            source: form.workload.source,
            input_lengths: form.workload.input_lengths,
            output_lengths: form.workload.output_lengths,
            tokenizer: form.workload.tokenizer,
            cache_regime: form.workload.cache_regime,
            prefix_tokens: form.workload.prefix_tokens,
            oversampled: form.workload.oversampled,
            use_case: form.workload.use_case,
            random_text: form.workload.random_text,
            output_forced: form.workload.output_forced,
            engine_facts: form.workload.engine_facts,
            notes: form.workload.notes,
        },
        slo: slo.transpose()?,
        settings: Settings {
            stall_ms: form.stall_ms.unwrap_or(f64::INFINITY),
            reading_tok_s: form.reading_tok_s.unwrap_or(f64::INFINITY),
            events_kept: form.events_kept,
        },
        percentiles: form.percentiles,
        instrument: InstrumentFacts {
            stamp_source: form.instrument.stamp_source,
            client_lag_us: form.instrument.client_lag_us,
            stamp_error_p99_us: form.instrument.stamp_error_p99_us,
            clock_steps: form.instrument.clock_steps,
            round_trip: form.instrument.round_trip_us.map(Span::from_us),
            floor: form.instrument.floor.map(Into::into),
            busiest_thread: form.instrument.busiest_thread,
            throttled: form.instrument.throttled_us.map(Span::from_us),
            planned_requests: form.instrument.planned_requests,
        },
        // Not by way of seconds: two roundings could miss the microsecond.
        request_timeout: form.request_timeout_ms.map(|ms| Span::from_us((ms * 1e3).round() as i64)),
        source_duration_s: form.source_duration_s,
        as_reported: form
            .as_reported
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect(),
        isolated: form.isolated.into_iter().map(isolated).collect(),
        deployment: form.deployment.map(deployment::deployment).transpose()?.unwrap_or_default(),
        rows_kept: form.rows_kept,
        interrupted: form.interrupted,
    })
}

fn isolated_form(run: &Isolated) -> IsolatedForm {
    let figures = run.figures_ms.iter();
    let figures = figures.map(|(key, name, ms)| ((*key).to_owned(), (*name).to_owned(), *ms));
    IsolatedForm {
        name: run.name.clone(),
        value: run.value.clone(),
        run_id: run.run_id.clone(),
        figures_ms: figures.collect(),
    }
}

/// Figures of a name that this version does not know are left out: nothing is
/// computed from them.
fn isolated(form: IsolatedForm) -> Isolated {
    let figures = form.figures_ms.into_iter().filter_map(|(key, name, ms)| {
        let (key, name) = fairness::figures().find(|known| known.0 == key && known.1 == name)?;
        Some((key, name, ms))
    });
    let figures_ms = figures.collect();
    Isolated { name: form.name, value: form.value, run_id: form.run_id, figures_ms }
}

fn endpoint_name(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Chat => "chat",
        Endpoint::Completions => "completions",
        Endpoint::Results => "results",
    }
}
