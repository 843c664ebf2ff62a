//! What a good request is, and which rules a run is held to.

use measure::slo::{KnownLabels, Quantity, Slo, SloError};
use measure::threshold::Threshold;
use wire::api::{Api, Yields};
use workload::schedule::Schedule;

use super::Plan;
use crate::flags::{Reader, UsageError};

/// The objective that `--goodput` and `--slo` give together.
///
/// # Errors
///
/// When one of them cannot be read, or both bound all requests.
pub(crate) fn parse<'a>(
    goodput: impl IntoIterator<Item = &'a str>,
    slo: impl IntoIterator<Item = &'a str>,
) -> Result<Option<Slo>, UsageError> {
    let wrong = |error: SloError| UsageError::new(error.flag, error.sentence());
    let plain = Slo::parse_goodput(goodput).map_err(wrong)?;
    let mut all = Slo::parse(slo).map_err(wrong)?;
    if !plain.terms.is_empty() && !all.terms.is_empty() {
        let rule = "both bound the requests without a set of their own; write all terms in --slo";
        return Err(UsageError::new("--goodput and --slo", rule));
    }
    if all.terms.is_empty() {
        all.terms = plain.terms;
    }
    Ok(Some(all).filter(|slo| *slo != Slo::default()))
}

pub(super) fn slo(reader: &mut Reader<'_>) -> Option<Slo> {
    let settings = reader.settings;
    let texts = |name: &str| settings.all(name).iter().map(String::as_str);
    parse(texts("goodput"), texts("slo")).unwrap_or_else(|error| {
        reader.errors.push(error);
        None
    })
}

/// An objective that no answer of this kind could be held against would call
/// every request undecided, so it is told before the run.
pub(super) fn possible(
    reader: &mut Reader<'_>,
    slo: &Slo,
    api: Api,
    body: &serde_json::Map<String, serde_json::Value>,
) {
    let flag = if reader.settings.has("slo") { "slo" } else { "goodput" };
    let quantities: Vec<Quantity> = slo.all_terms().map(|term| term.quantity).collect();
    let choices = body.get("n").and_then(serde_json::Value::as_u64).unwrap_or(1);
    if choices > 1 && quantities.contains(&Quantity::Tpot) {
        let rule = "tpot is not defined for several answers at once (n in --extra-body)";
        reader.wrong(flag, rule);
    }
    let Some(quantity) = quantities.iter().find(|quantity| **quantity != Quantity::E2el) else {
        return;
    };
    let name = quantity.name();
    if api.entry().yields != Yields::Tokens {
        let api = api.name();
        let rule = format!("{name} cannot be met or missed: {api} generates no tokens; bound e2el");
        reader.wrong(flag, rule);
    } else if body.get("stream") == Some(&serde_json::Value::Bool(false)) {
        let rule = format!(
            "{name} needs a stream, which --extra-body switches off; only e2el can be judged"
        );
        reader.wrong(flag, rule);
    }
}

pub(super) fn thresholds(reader: &mut Reader<'_>, slo: Option<&Slo>) -> Vec<Threshold> {
    let mut thresholds = Vec::new();
    for text in reader.settings.all("fail-if") {
        match checked(text, slo) {
            Ok(rule) => thresholds.push(rule),
            Err(rule) => reader.wrong("fail-if", rule),
        }
    }
    thresholds
}

/// A rule that this objective can decide.
pub(crate) fn checked(text: &str, slo: Option<&Slo>) -> Result<Threshold, String> {
    let rule = Threshold::parse(text).map_err(|error| error.to_string())?;
    match (slo, rule.attainment_of()) {
        (None, _) if rule.needs_slo() => {
            Err(format!("{text:?} needs an SLO; add --slo or --goodput"))
        }
        (Some(slo), Some(name)) if !slo.has(name) => {
            Err(format!("{text:?}: the SLO {slo} has no {name}"))
        }
        _ => Ok(rule),
    }
}

/// Requests whose labels are looked at where a schedule has no end.
const LOOKED_AT: u32 = 100_000;

/// Holds the labels of an objective against those of the requests to come.
///
/// # Errors
///
/// When a set is for a label that no request has, or one that names two.
pub(crate) fn name_labels(plan: &mut Plan, schedule: &Schedule) -> Result<(), UsageError> {
    let Some(slo) = plan.slo.as_mut().filter(|slo| !slo.labelled.is_empty()) else {
        return Ok(());
    };
    let mut known = KnownLabels::new();
    for index in 0..schedule.count().unwrap_or(LOOKED_AT) {
        let Some(request) = schedule.request(index) else { break };
        for (name, value) in request.labels {
            known.entry(name).or_default().insert(value);
        }
    }
    slo.name_labels(&known).map_err(|error| UsageError::new(error.flag, error.sentence()))
}
