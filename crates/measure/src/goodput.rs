//! Goodput and attainment: how much of what was asked was served well.

use crate::facts::LoadKind;
use crate::request::Timed;
use crate::slo::{Judgement, Slo, Term, judge, judge_term};
use crate::unit::PerSecond;
use crate::window::Window;

/// Goodput and attainment of a run under one SLO.
#[derive(Clone, Debug, PartialEq)]
pub struct Goodput {
    /// The objective.
    pub slo: Slo,
    /// Good requests a second; `None` when the window has no length.
    pub req_s: Option<f64>,
    /// Output tokens of good requests a second.
    pub tok_s: Option<f64>,
    /// Requests that met every term.
    pub good: u64,
    /// Requests that could be judged: all intended, less client faults and
    /// undecided ones.
    pub of: u64,
    /// good ÷ of.
    pub attainment: Option<f64>,
    /// Lowest and highest attainment that the undecided ones leave open.
    pub bounds: Option<(f64, f64)>,
    /// Good requests of which a term could not apply.
    pub vacuous: u64,
    /// Requests that we stopped before they could be judged.
    pub undecided: u64,
    /// Requests that we never sent by our own fault.
    pub client_faults: u64,
    /// Each term by itself.
    pub per_slo: Vec<TermResult>,
    /// The same figures for each label value: label name, value, good, of.
    pub per_label: Vec<LabelResult>,
}

/// One term by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TermResult {
    /// The term.
    pub term: Term,
    /// Requests that met it.
    pub met: u64,
    /// Requests that could be judged on it.
    pub of: u64,
}

/// Attainment of the requests with one label value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelResult {
    /// Label name.
    pub name: String,
    /// Label value.
    pub value: String,
    /// Requests with it that met every term.
    pub good: u64,
    /// Requests with it that could be judged.
    pub of: u64,
}

/// The window that goodput divides by: the arrival window where arrivals
/// follow a schedule, else the makespan.
pub fn goodput_window(
    kind: LoadKind,
    arrival: Option<Window>,
    makespan: Option<Window>,
) -> Option<Window> {
    if kind.has_schedule() { arrival.or(makespan) } else { makespan }
}

/// Judges every request under `slo` and divides by `window_s` seconds.
pub fn goodput(timed: &[Timed<'_>], slo: &Slo, window_s: Option<f64>) -> Goodput {
    let judged: Vec<Judgement> = timed.iter().map(|request| judge(request, slo)).collect();
    let count = |wanted| judged.iter().filter(|judgement| **judgement == wanted).count() as u64;
    let (vacuous, undecided) = (count(Judgement::Vacuous), count(Judgement::Undecided));
    let client_faults = count(Judgement::ClientFault);
    let good = count(Judgement::Met) + vacuous;
    let of = good + count(Judgement::Missed);
    let counted: Vec<u32> = timed
        .iter()
        .zip(&judged)
        .filter(|(_, judgement)| is_good(**judgement))
        .filter_map(|(request, _)| request.output_tokens().ok())
        .collect();
    // Good requests of which none was counted have tokens, only unknown ones.
    let known = good == 0 || !counted.is_empty();
    let good_tokens = counted.into_iter().map(u64::from).sum();
    let rate =
        |count: u64| window_s.filter(|s| *s > 0.0).map(|s| PerSecond::new(count as f64 / s).get());
    let open = (good + undecided) as f64;
    let possible = (of + undecided) as f64;
    Goodput {
        slo: slo.clone(),
        req_s: rate(good),
        tok_s: rate(good_tokens).filter(|_| known),
        good,
        of,
        attainment: (of > 0).then(|| good as f64 / of as f64),
        bounds: (possible > 0.0).then(|| (good as f64 / possible, open / possible)),
        vacuous,
        undecided,
        client_faults,
        per_slo: slo.terms.iter().map(|term| term_result(timed, term)).collect(),
        per_label: per_label(timed, &judged),
    }
}

fn is_good(judgement: Judgement) -> bool {
    matches!(judgement, Judgement::Met | Judgement::Vacuous)
}

fn term_result(timed: &[Timed<'_>], term: &Term) -> TermResult {
    let judged: Vec<Judgement> = timed.iter().map(|request| judge_term(request, term)).collect();
    let met = judged.iter().filter(|judgement| is_good(**judgement)).count() as u64;
    let missed = judged.iter().filter(|judgement| **judgement == Judgement::Missed).count() as u64;
    TermResult { term: *term, met, of: met + missed }
}

fn per_label(timed: &[Timed<'_>], judged: &[Judgement]) -> Vec<LabelResult> {
    let mut results: Vec<LabelResult> = Vec::new();
    for (request, judgement) in timed.iter().zip(judged) {
        let good = is_good(*judgement);
        if !good && *judgement != Judgement::Missed {
            continue;
        }
        for (name, value) in &request.record.planned.labels {
            let position = results.iter().position(|r| r.name == *name && r.value == *value);
            let position = position.unwrap_or_else(|| {
                let (name, value) = (name.clone(), value.clone());
                results.push(LabelResult { name, value, good: 0, of: 0 });
                results.len() - 1
            });
            results[position].of += 1;
            results[position].good += u64::from(good);
        }
    }
    results.sort_by(|a, b| (&a.name, &a.value).cmp(&(&b.name, &b.value)));
    results
}
