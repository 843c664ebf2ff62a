//! What was seen inside the server and what follows from it, as JSON: stages,
//! efficiency, signals, findings, lints.

use measure::efficiency::{Efficiency, Figure};
use measure::finding::{Evidence, Finding, Lint};
use measure::metric::{Branch, METRICS};
use measure::said::Said;
use measure::signal::{Kind, Reading, Role, Signal, Signals};
use measure::stage::{self, Stage, Stages};
use measure::summary::{Inside, Summary};
use serde_json::{Map, Value, json};

use super::map;

/// What `diagnose` prints: the members of the summary that say where time goes,
/// what limits the run and what could not be concluded.
pub fn diagnosis(summary: &Summary) -> Value {
    let (facts, inside) = (&summary.facts, &summary.inside);
    json!({
        "run_id": facts.run_id,
        "target": facts.target,
        "engine": facts.engine,
        "simulated": facts.simulated,
        "validity": summary.validity.verdict.name(),
        "findings": findings(inside),
        "stages_ms": stages(&inside.stages),
        "stages": split(&inside.stages),
        "lints": lints(&inside.lints),
        "missing": english(&inside.missing),
    })
}

/// The stages of TTFT, in the order in which a request passes them.
pub(super) fn stages(stages: &Stages) -> Vec<Value> {
    let row = |stage: &Stage| {
        json!({
            "id": stage.id,
            "name": stage.name.en,
            "mean_ms": stage.mean_ms,
            "share": stage.share,
            "is_residual": stage.is_residual,
            "from": stage.from.name(),
            "how": stage.how.en,
        })
    };
    stages.stages.iter().map(row).collect()
}

/// What is known of the split as a whole; what is not known is left out.
pub(super) fn split(stages: &Stages) -> Value {
    let mut object = Map::new();
    object.extend(stages.ttft_mean_ms.map(|ms| ("ttft_mean_ms".to_owned(), json!(ms))));
    object.extend(stages.foreign_share.map(|share| ("foreign_share".to_owned(), json!(share))));
    object.extend(stages.refused.as_ref().map(|why| ("refused".to_owned(), json!(why.en))));
    object.insert("notes".to_owned(), english(&stages.notes));
    Value::Object(object)
}

/// Metrics of the registry that are the mean of a stage, by key.
pub(super) fn stage_metrics(stages: &Stages) -> impl Iterator<Item = (&'static str, Value)> {
    let value = |key: &str| match stages.metric(key) {
        Some(mean) => json!({"mean": mean}),
        None => Value::Null,
    };
    stage::METRICS.iter().map(|(key, _)| (*key, value(key))).collect::<Vec<_>>().into_iter()
}

/// Shares of peaks, memory, energy and money by key, where their inputs came
/// from, and the six signals that are read together.
pub(super) fn efficiency(efficiency: &Efficiency) -> Value {
    let keys = || METRICS.iter().filter(|metric| metric.branch == Branch::Efficiency);
    let mut object = map(keys().map(|metric| (metric.key, json!(efficiency.value(metric.key)))));
    let inputs = efficiency.figures.iter().filter(|figure| !figure.inputs.is_empty());
    object["inputs"] = map(inputs.map(|figure| (figure.key, english(&figure.inputs))));
    object["panel"] = efficiency.panel.iter().map(panel_row).collect();
    object
}

fn panel_row(figure: &Figure) -> Value {
    let mut row = json!({
        "key": figure.key,
        "value": figure.value.as_ref().ok(),
        "unit": figure.unit,
        "inputs": english(&figure.inputs),
    });
    if let Err(why) = &figure.value {
        row["why"] = json!(why.en);
    }
    row
}

/// What was read of the server over the measured window.
pub(super) fn signals(signals: Option<&Signals>) -> Value {
    let Some(signals) = signals else { return Value::Null };
    let scraping = &signals.scraping;
    let instances = signals.instances.iter().map(|instance| {
        json!({
            "name": instance.name,
            "role": role(instance.role),
            "readings": readings(instance.readings.iter(), None),
        })
    });
    json!({
        "engine": signals.engine,
        "version": signals.version,
        "window_s": signals.length_s(),
        "scraping": {
            "sources": scraping.sources,
            "taken": scraping.taken,
            "failed": scraping.failed,
            "slowest_ms": scraping.slowest.ms(),
            "widest_gap_ms": scraping.widest_gap.ms(),
            "latest_ms": scraping.latest.ms(),
        },
        "readings": readings(signals.readings.iter(), Some(signals.length_s())),
        "instances": instances.collect::<Vec<_>>(),
        "settings": map(signals.settings.iter().map(|(name, value)| (name.as_str(), json!(value)))),
        "notes": english(&signals.notes),
        "absent": map(signals.absent.iter().map(|(signal, why)| (signal.entry().id, json!(why.en)))),
    })
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Both => "both",
        Role::Prefill => "prefill",
        Role::Decode => "decode",
        Role::Router => "router",
        Role::Device => "device",
    }
}

fn readings<'a>(
    readings: impl Iterator<Item = (&'a Signal, &'a Reading)>,
    length_s: Option<f64>,
) -> Value {
    map(readings.map(|(signal, value)| (signal.entry().id, reading(*signal, value, length_s))))
}

/// One reading: `value` is the one number of it, whatever its kind.
fn reading(signal: Signal, reading: &Reading, length_s: Option<f64>) -> Value {
    let entry = signal.entry();
    let mut object = json!({"kind": kind(entry.kind), "unit": entry.unit});
    let mut put = |name: &str, value: f64| {
        // What is no number has no place in JSON.
        if value.is_finite() {
            object[name] = json!(value);
        }
    };
    if let Some(value) = reading.value() {
        put("value", value);
    }
    match reading {
        Reading::Gauge(gauge) => {
            for (name, value) in [
                ("min", gauge.min),
                ("max", gauge.max),
                ("first", gauge.first),
                ("last", gauge.last),
            ] {
                put(name, value);
            }
            object["n"] = json!(gauge.n);
        }
        Reading::Histogram(taken) => {
            put("count", taken.count);
            put("sum", taken.sum);
        }
        Reading::Counter(value) => {
            if let Some(length_s) = length_s.filter(|length_s| *length_s > 0.0) {
                put("per_s", value / length_s);
            }
        }
        Reading::Fact(_) => {}
    }
    object
}

const fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::Histogram => "histogram",
        Kind::Fact => "fact",
    }
}

/// The findings, the one that explains most first; none where nobody looked.
pub(super) fn findings(inside: &Inside) -> Vec<Value> {
    inside.findings.iter().flatten().map(finding).collect()
}

/// A cause with its evidence.
pub fn finding(finding: &Finding) -> Value {
    let directions = finding.directions.iter();
    let directions: Vec<Value> = directions
        .map(|direction| json!({"text": direction.text.en, "flag": direction.flag}))
        .collect();
    json!({
        "rule": finding.rule,
        "class": finding.class.name(),
        "confidence": finding.confidence.text().en,
        "title": finding.title.en,
        "says": finding.says.en,
        "evidence": finding.evidence.iter().map(evidence).collect::<Vec<_>>(),
        "against": finding.against.iter().map(evidence).collect::<Vec<_>>(),
        "missing": english(&finding.missing),
        "experiment": finding.experiment.en,
        "command": finding.command,
        "directions": directions,
        "improves": finding.improves,
        "share": finding.share,
        "seen_live": finding.seen_live,
    })
}

fn evidence(evidence: &Evidence) -> Value {
    json!({
        "what": evidence.what.en,
        "value": evidence.value,
        "unit": evidence.unit,
        "from": evidence.from.name(),
    })
}

/// Numbers that are easily misread, each with the key that it concerns.
pub(super) fn lints(lints: &[Lint]) -> Vec<Value> {
    let lint =
        |lint: &Lint| json!({"id": lint.id, "concerns": lint.concerns, "text": lint.says.en});
    lints.iter().map(lint).collect()
}

fn english(sentences: &[Said]) -> Value {
    sentences.iter().map(|said| said.en.as_str()).collect()
}
