//! Result files of `vllm bench serve`.
//!
//! With `--save-detailed` a file holds, in data-set order and in seconds,
//! `ttfts`, `itls`, `input_lens`, `output_lens`, `start_times`, `errors` and
//! texts; without it only aggregates. The latency of a request is not in the
//! file: on the completions path it is TTFT + Σ ITL, since vLLM ends both at
//! the last choice; on the chat path it ends at the usage event, which left no
//! trace, so TPOT and E2EL can only be taken as reported.

use measure::definition::Endpoint;
use measure::facts::{InstrumentFacts, LoadFacts, LoadKind, RunFacts, WorkloadFacts};
use measure::request::Settings;
use measure::{
    Answer, At, Counts, FailureKind, Outcome, Planned, Record, SourceTimes, Span, Tokens,
};
use serde_json::{Map, Value};

/// What an import gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Import {
    /// What the file says of the run.
    pub facts: RunFacts,
    /// One record a request; none when the file holds only aggregates.
    pub records: Vec<Record>,
    /// Things to know about the file.
    pub notes: Vec<String>,
}

/// Why a file cannot be imported.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// Not JSON.
    #[error(
        "line {line}, column {column}: the file is not JSON ({reason}); give the .json that vllm bench serve --save-result wrote"
    )]
    NotJson {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's words.
        reason: String,
    },
    /// JSON of another kind.
    #[error(
        "the file has no {key:?}: it is not a result of vllm bench serve; other formats are not read yet"
    )]
    NotVllm {
        /// The key that is missing.
        key: &'static str,
    },
    /// Arrays of different lengths.
    #[error("{array:?} has {found} entries and \"ttfts\" has {expected}: the file is damaged")]
    Lengths {
        /// The array.
        array: &'static str,
        /// Its length.
        found: usize,
        /// The right length.
        expected: usize,
    },
}

/// True for aggregates that vLLM's file gives of TPOT and E2EL, which rows of
/// a chat run cannot give.
fn is_latency_aggregate(key: &str) -> bool {
    key.ends_with("_tpot_ms") || key.ends_with("_e2el_ms")
}

/// Reads a result file.
pub fn import(bytes: &[u8]) -> Result<Import, ImportError> {
    let (value, nonstandard) =
        crate::json::lenient(bytes).map_err(|error| ImportError::NotJson {
            line: error.line(),
            column: error.column(),
            reason: error.to_string(),
        })?;
    let Value::Object(file) = value else {
        return Err(ImportError::NotVllm { key: "duration" });
    };
    for key in ["duration", "completed"] {
        if !file.contains_key(key) {
            return Err(ImportError::NotVllm { key });
        }
    }
    let endpoint = match text(&file, "backend").or_else(|| text(&file, "endpoint_type")) {
        Some(backend) if backend.contains("chat") => Endpoint::Chat,
        _ => Endpoint::Completions,
    };
    let records = records(&file, endpoint)?;
    let mut notes = Vec::new();
    if records.is_empty() {
        notes.push(
            "The file holds aggregates only (no --save-detailed): nothing can be recomputed."
                .to_owned(),
        );
    }
    if nonstandard {
        notes.push(
            "The file holds NaN or Infinity, which are not JSON; read as missing.".to_owned(),
        );
    }
    let has_rows = !records.is_empty();
    let as_reported = file
        .iter()
        .filter(|(key, _)| !has_rows || (endpoint == Endpoint::Chat && is_latency_aggregate(key)))
        .filter_map(|(key, value)| Some((key.clone(), value.as_f64()?)))
        .collect();
    Ok(Import { facts: facts(&file, endpoint, as_reported), records, notes })
}

fn text(file: &Map<String, Value>, key: &str) -> Option<String> {
    file.get(key)?.as_str().map(str::to_owned)
}

fn facts(
    file: &Map<String, Value>,
    endpoint: Endpoint,
    as_reported: Vec<(String, f64)>,
) -> RunFacts {
    let rate = file.get("request_rate").and_then(Value::as_f64);
    let cap = file.get("max_concurrency").and_then(Value::as_u64).map(|n| n as u32);
    let kind = match (rate, cap) {
        (Some(_), Some(_)) => LoadKind::Capped,
        (Some(_), None) => LoadKind::Open,
        (None, Some(_)) => LoadKind::Closed,
        (None, None) => LoadKind::Burst,
    };
    let burstiness = file.get("burstiness").and_then(Value::as_f64);
    RunFacts {
        run_id: String::new(),
        target: "imported from vllm bench serve".to_owned(),
        engine: None,
        model: text(file, "model_id"),
        simulated: false,
        api: text(file, "backend").unwrap_or_default(),
        endpoint,
        load: LoadFacts {
            kind,
            request_rate: rate,
            burstiness,
            users: cap,
            arrivals: match (rate, burstiness) {
                (Some(rate), Some(shape)) => {
                    format!("gamma gaps of shape {shape} at {rate} req/s, rescaled to end on time")
                }
                _ => "all at once".to_owned(),
            },
            planned_duration: None,
            seed: 0,
            schedule_hash: String::new(),
            replay: None,
        },
        workload: WorkloadFacts {
            source: "not in the file".to_owned(),
            input_lengths: "not in the file".to_owned(),
            output_lengths: "not in the file".to_owned(),
            tokenizer: None,
            cache_regime: "not in the file".to_owned(),
            ..WorkloadFacts::default()
        },
        slo: None,
        settings: Settings::default(),
        percentiles: Vec::new(),
        instrument: InstrumentFacts::default(),
        request_timeout: None,
        source_duration_s: file.get("duration").and_then(Value::as_f64),
        as_reported,
        isolated: Vec::new(),
        deployment: measure::deployment::Deployment::default(),
        rows_kept: true,
        interrupted: false,
    }
}

fn numbers(file: &Map<String, Value>, key: &str) -> Option<Vec<f64>> {
    let array = file.get(key)?.as_array()?;
    Some(array.iter().map(|value| value.as_f64().unwrap_or(f64::NAN)).collect())
}

fn records(file: &Map<String, Value>, endpoint: Endpoint) -> Result<Vec<Record>, ImportError> {
    let Some(ttfts) = numbers(file, "ttfts") else { return Ok(Vec::new()) };
    let n = ttfts.len();
    let column = |key: &'static str| -> Result<Option<Vec<f64>>, ImportError> {
        match numbers(file, key) {
            Some(values) if values.len() != n => {
                Err(ImportError::Lengths { array: key, found: values.len(), expected: n })
            }
            other => Ok(other),
        }
    };
    let (starts, inputs, outputs) =
        (column("start_times")?, column("input_lens")?, column("output_lens")?);
    let list = |key: &'static str| -> Result<&[Value], ImportError> {
        let values = file.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if !values.is_empty() && values.len() != n {
            return Err(ImportError::Lengths { array: key, found: values.len(), expected: n });
        }
        Ok(values)
    };
    let (itls, errors, texts) = (list("itls")?, list("errors")?, list("generated_texts")?);
    let origin =
        starts.iter().flatten().copied().filter(|s| s.is_finite()).fold(f64::MAX, f64::min);
    Ok((0..n)
        .map(|index| {
            let at = |column: &Option<Vec<f64>>| {
                column.as_ref().map(|values| values[index]).filter(|value| value.is_finite())
            };
            let gaps: Vec<f64> = itls
                .get(index)
                .and_then(Value::as_array)
                .map(|gaps| gaps.iter().filter_map(Value::as_f64).collect())
                .unwrap_or_default();
            let source = SourceTimes {
                ttft_s: Some(ttfts[index]).filter(|s| s.is_finite()),
                itl_s: gaps,
                start_s: at(&starts),
                latency_s: None,
            };
            let row = Row {
                index: index as u32,
                start: at(&starts).map(|s| Span::from_s(s - origin)),
                input: at(&inputs),
                output: at(&outputs),
                error: errors.get(index).and_then(Value::as_str).unwrap_or(""),
                text: texts.get(index).and_then(Value::as_str),
                source,
            };
            row.into_record(endpoint)
        })
        .collect())
}

struct Row<'a> {
    index: u32,
    start: Option<Span>,
    input: Option<f64>,
    output: Option<f64>,
    error: &'a str,
    text: Option<&'a str>,
    source: SourceTimes,
}

impl Row<'_> {
    fn into_record(self, endpoint: Endpoint) -> Record {
        let Self { index, start, input, output, error, text, mut source } = self;
        let started_at = At::ZERO + start.unwrap_or_default();
        let mut record =
            Record::planned(index, started_at, Planned { session: index, ..Planned::default() });
        let tokens = |count: Option<f64>| {
            count.filter(|count| *count >= 0.0).map(|count| Tokens::new(count as u32))
        };
        let failed = !error.is_empty() || output == Some(0.0);
        record.outcome = if failed {
            // vLLM keeps a traceback or a reason phrase and no kind.
            Outcome::Failed(FailureKind::Aborted)
        } else {
            Outcome::Ok
        };
        let whole: f64 = source.itl_s.iter().sum();
        if endpoint == Endpoint::Completions && !failed {
            source.latency_s = source.ttft_s.map(|ttft| ttft + whole);
        }
        let lasted = source.ttft_s.unwrap_or(0.0) + whole;
        record.stamps.released_at = Some(started_at);
        record.stamps.sent_at = Some(started_at);
        record.stamps.ended_at = Some(started_at + Span::from_s(lasted));
        record.answer = Answer {
            counts: Counts {
                prompt: tokens(input),
                usage: if failed { None } else { tokens(output) },
                ..Counts::default()
            },
            message: (!error.is_empty()).then(|| error.chars().take(500).collect()),
            text: text.map(str::to_owned),
            ..Answer::default()
        };
        record.source = Some(source);
        record
    }
}
