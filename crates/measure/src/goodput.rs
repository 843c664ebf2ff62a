//! Goodput and attainment: how much of what was asked was served well.

use std::collections::BTreeMap;

use crate::facts::LoadKind;
use crate::request::Timed;
use crate::slo::{Judged, Judgement, Label, Slo, Term, judge, term_name};
use crate::unit::PerSecond;
use crate::window::Window;

/// Goodput and attainment of a run under one SLO.
#[derive(Clone, Debug, PartialEq)]
pub struct Goodput {
    /// The objective, with `start` said as what it is in this run.
    pub slo: Slo,
    /// Good requests a second; `None` when the window has no length.
    pub req_s: Option<f64>,
    /// Output tokens of good requests a second.
    pub tok_s: Option<f64>,
    /// Requests that met every term of the sets that are for them.
    pub good: u64,
    /// Requests that could be judged: all intended, less client faults,
    /// undecided ones and those that nothing is asked of.
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
    /// Requests that no set is for.
    pub not_asked: u64,
    /// Each term by itself.
    pub per_slo: Vec<TermResult>,
    /// The same figures for each label value, each under its own objective.
    pub per_label: Vec<LabelResult>,
}

/// One term by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TermResult {
    /// The label of its set.
    pub label: Option<Label>,
    /// The term.
    pub term: Term,
    /// Requests that met it.
    pub met: u64,
    /// Requests that could be judged on it.
    pub of: u64,
}

impl TermResult {
    /// What it is called: `ttft`, or `tenant=a:ttft`.
    pub fn name(&self) -> String {
        term_name(self.label.as_ref(), &self.term)
    }

    /// met ÷ of; `None` where none could be judged.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.met as f64 / self.of as f64)
    }
}

/// Attainment of the requests with one label value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelResult {
    /// Label name.
    pub name: String,
    /// Label value.
    pub value: String,
    /// The objective that they were judged by.
    pub asked: Asked,
    /// Requests with it that met every term.
    pub good: u64,
    /// Requests with it that could be judged.
    pub of: u64,
}

impl LabelResult {
    /// good ÷ of.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.good as f64 / self.of as f64)
    }
}

/// What was asked of the requests with one label value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing: no set is for them.
    Nothing,
    /// The same of all: these terms.
    Same(String),
    /// Not the same of all, because sets of other labels are for some.
    Several,
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
    let slo = slo.of_run(timed.iter().any(Timed::reasoned));
    let judged: Vec<Judged> = timed.iter().map(|request| judge(request, &slo)).collect();
    let count = |wanted| judged.iter().filter(|judged| judged.joint == wanted).count() as u64;
    let (vacuous, undecided) = (count(Judgement::Vacuous), count(Judgement::Undecided));
    let client_faults = count(Judgement::ClientFault);
    let good = count(Judgement::Met) + vacuous;
    let of = good + count(Judgement::Missed);
    let counted: Vec<u32> = timed
        .iter()
        .zip(&judged)
        .filter(|(_, judged)| judged.joint.is_good())
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
        req_s: rate(good),
        tok_s: rate(good_tokens).filter(|_| known),
        good,
        of,
        attainment: (of > 0).then(|| good as f64 / of as f64),
        bounds: (possible > 0.0).then(|| (good as f64 / possible, open / possible)),
        vacuous,
        undecided,
        client_faults,
        not_asked: count(Judgement::NotAsked),
        per_slo: per_slo(&slo, &judged),
        per_label: per_label(timed, &slo, &judged),
        slo: slo.clone(),
    }
}

fn per_slo(slo: &Slo, judged: &[Judged]) -> Vec<TermResult> {
    let mut results: Vec<Vec<TermResult>> = slo
        .sets()
        .map(|set| {
            let label = || set.label.cloned();
            let result = |term: &Term| TermResult { label: label(), term: *term, met: 0, of: 0 };
            set.terms.iter().map(result).collect()
        })
        .collect();
    for judged in judged {
        let mut terms = judged.terms.iter();
        for set in &judged.sets {
            for (result, judgement) in results[*set].iter_mut().zip(&mut terms) {
                result.met += u64::from(judgement.is_good());
                result.of += u64::from(judgement.decides());
            }
        }
    }
    results.into_iter().flatten().collect()
}

/// Counts of the requests with one label value, and the sets that are for them
/// where these are the same for all.
struct Counts {
    sets: Option<Vec<usize>>,
    good: u64,
    of: u64,
}

fn per_label(timed: &[Timed<'_>], slo: &Slo, judged: &[Judged]) -> Vec<LabelResult> {
    let mut counted: BTreeMap<(&str, &str), Counts> = BTreeMap::new();
    for (request, judged) in timed.iter().zip(judged) {
        for (name, value) in &request.record.planned.labels {
            let counts = counted.entry((name, value)).or_insert_with(|| Counts {
                sets: Some(judged.sets.clone()),
                good: 0,
                of: 0,
            });
            if counts.sets.as_ref() != Some(&judged.sets) {
                counts.sets = None;
            }
            counts.good += u64::from(judged.joint.is_good());
            counts.of += u64::from(judged.joint.decides());
        }
    }
    let counted = counted.into_iter();
    counted
        .map(|((name, value), Counts { sets, good, of })| {
            let (name, value) = (name.to_owned(), value.to_owned());
            LabelResult { name, value, asked: asked(slo, sets.as_deref()), good, of }
        })
        .collect()
}

fn asked(slo: &Slo, sets: Option<&[usize]>) -> Asked {
    let Some(places) = sets else { return Asked::Several };
    if places.is_empty() {
        return Asked::Nothing;
    }
    let sets = slo.sets().enumerate().filter(|(place, _)| places.contains(place));
    let terms: Vec<String> = sets.flat_map(|(_, set)| set.terms).map(Term::to_string).collect();
    Asked::Same(terms.join(", "))
}
