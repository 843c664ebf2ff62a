//! Goodput and attainment: how much of what was asked was served well.

use std::collections::BTreeMap;

use crate::facts::LoadKind;
use crate::outcome::Outcome;
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
    /// Of these, the ones that ended by themselves: a value that the objective
    /// bounds was not measurable on them.
    pub unmeasurable: u64,
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
    let mut judging = Judging::under(slo, timed.iter().any(Timed::reasoned));
    for request in timed {
        judging.add(request, &judge(request, &judging.slo));
    }
    judging.goodput(window_s)
}

/// Requests judged so far.
#[derive(Clone, Debug)]
pub(crate) struct Judging {
    /// The objective, with `start` said as what it is in this run.
    pub(crate) slo: Slo,
    met: u64,
    vacuous: u64,
    missed: u64,
    undecided: u64,
    unmeasurable: u64,
    client_faults: u64,
    not_asked: u64,
    /// Output tokens of good ones; `None` where none of them was counted.
    good_tokens: Option<u64>,
    /// Set by set.
    terms: Vec<Vec<TermResult>>,
    /// By a label's name and value.
    labels: BTreeMap<String, BTreeMap<String, Counts>>,
}

/// Counts of the requests with one label value, and the sets that are for them
/// where these are the same for all.
#[derive(Clone, Debug)]
struct Counts {
    sets: Option<Vec<usize>>,
    good: u64,
    of: u64,
}

impl Judging {
    /// Nothing judged yet, in a run whose answers reasoned or not.
    pub(crate) fn under(slo: &Slo, reasoned: bool) -> Self {
        let slo = slo.of_run(reasoned);
        let terms = slo.sets().map(|set| {
            let label = || set.label.cloned();
            let result = |term: &Term| TermResult { label: label(), term: *term, met: 0, of: 0 };
            set.terms.iter().map(result).collect()
        });
        Self {
            terms: terms.collect(),
            slo,
            met: 0,
            vacuous: 0,
            missed: 0,
            undecided: 0,
            unmeasurable: 0,
            client_faults: 0,
            not_asked: 0,
            good_tokens: None,
            labels: BTreeMap::new(),
        }
    }

    /// Takes in what was judged of a request.
    pub(crate) fn add(&mut self, request: &Timed<'_>, judged: &Judged) {
        let record = request.record;
        match judged.joint {
            Judgement::Met => self.met += 1,
            Judgement::Vacuous => self.vacuous += 1,
            Judgement::Missed => self.missed += 1,
            Judgement::Undecided => {
                self.undecided += 1;
                self.unmeasurable += u64::from(record.outcome != Outcome::Cancelled);
            }
            Judgement::ClientFault => self.client_faults += 1,
            Judgement::NotAsked => self.not_asked += 1,
        }
        let (good, decides) = (judged.joint.is_good(), judged.joint.decides());
        if let (true, Ok(tokens)) = (good, request.output_tokens()) {
            *self.good_tokens.get_or_insert(0) += u64::from(tokens);
        }
        let mut terms = judged.terms.iter();
        for set in &judged.sets {
            for (result, judgement) in self.terms[*set].iter_mut().zip(&mut terms) {
                result.met += u64::from(judgement.is_good());
                result.of += u64::from(judgement.decides());
            }
        }
        for (name, value) in &record.planned.labels {
            let counts = self.of_label(name, value, &judged.sets);
            if counts.sets.as_ref() != Some(&judged.sets) {
                counts.sets = None;
            }
            counts.good += u64::from(good);
            counts.of += u64::from(decides);
        }
    }

    fn of_label(&mut self, name: &str, value: &str, sets: &[usize]) -> &mut Counts {
        let known = self.labels.get(name).is_some_and(|values| values.contains_key(value));
        if !known {
            let counts = Counts { sets: Some(sets.to_vec()), good: 0, of: 0 };
            self.labels.entry(name.to_owned()).or_default().insert(value.to_owned(), counts);
        }
        let values = self.labels.get_mut(name).and_then(|values| values.get_mut(value));
        values.expect("it was put in where it was not")
    }

    /// What it comes to over a window of so many seconds.
    pub(crate) fn goodput(&self, window_s: Option<f64>) -> Goodput {
        let good = self.met + self.vacuous;
        let of = good + self.missed;
        // Good requests of which none was counted have tokens, only unknown ones.
        let known = good == 0 || self.good_tokens.is_some();
        let rate = |count: u64| {
            window_s.filter(|s| *s > 0.0).map(|s| PerSecond::new(count as f64 / s).get())
        };
        let open = (good + self.undecided) as f64;
        let possible = (of + self.undecided) as f64;
        Goodput {
            req_s: rate(good),
            tok_s: rate(self.good_tokens.unwrap_or(0)).filter(|_| known),
            good,
            of,
            attainment: (of > 0).then(|| good as f64 / of as f64),
            bounds: (possible > 0.0).then(|| (good as f64 / possible, open / possible)),
            vacuous: self.vacuous,
            undecided: self.undecided,
            unmeasurable: self.unmeasurable,
            client_faults: self.client_faults,
            not_asked: self.not_asked,
            per_slo: self.terms.iter().flatten().cloned().collect(),
            per_label: self.per_label(),
            slo: self.slo.clone(),
        }
    }

    fn per_label(&self) -> Vec<LabelResult> {
        let of_name = |(name, values): (&String, &BTreeMap<String, Counts>)| {
            let result = |(value, counts): (&String, &Counts)| LabelResult {
                name: name.clone(),
                value: value.clone(),
                asked: asked(&self.slo, counts.sets.as_deref()),
                good: counts.good,
                of: counts.of,
            };
            values.iter().map(result).collect::<Vec<_>>()
        };
        self.labels.iter().flat_map(of_name).collect()
    }
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
