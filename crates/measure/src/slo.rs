//! Service-level objectives of a request, and whether it met them.

mod grammar;
mod preset;

use std::collections::{BTreeMap, BTreeSet};

use crate::outcome::{Blame, NotSentKind, Outcome};
use crate::record::Record;
use crate::request::{Timed, Value, start_of};
use crate::undefined::Undefined;

pub use grammar::{SloError, stored};
pub use preset::{PRESETS, Preset};

/// A figure of the gaps between one request's own arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Their mean.
    Mean,
    /// Their median.
    P50,
    /// Nine in ten are at most this.
    P90,
    /// 95 in a hundred are at most this.
    P95,
    /// 99 in a hundred are at most this.
    P99,
    /// 999 in a thousand are at most this.
    P999,
    /// The longest.
    Max,
}

impl Statistic {
    /// Every one.
    pub const ALL: &[Self] =
        &[Self::Mean, Self::P50, Self::P90, Self::P95, Self::P99, Self::P999, Self::Max];

    /// The word behind the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P95 => "p95",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        }
    }

    /// The share of the gaps that are at most this; `None` for the mean.
    pub const fn rank(self) -> Option<f64> {
        Some(match self {
            Self::Mean => return None,
            Self::P50 => 0.5,
            Self::P90 => 0.9,
            Self::P95 => 0.95,
            Self::P99 => 0.99,
            Self::P999 => 0.999,
            Self::Max => 1.0,
        })
    }
}

/// What an objective bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time to first token.
    Ttft,
    /// Time to first visible text.
    Ttfc,
    /// Where the answer starts for a person: TTFC where any answer of the run
    /// streamed reasoning, else TTFT.
    Start,
    /// Time per output token.
    Tpot,
    /// End-to-end latency.
    E2el,
    /// A figure of the request's gaps between arrivals.
    Icl(Statistic),
    /// The same by tokens. Its mean weighs by tokens; its percentiles are
    /// those of the arrivals, because a gap spread over tokens hides a stall.
    Itl(Statistic),
}

impl Quantity {
    /// Those that `--goodput` takes, in its order.
    pub const GOODPUT: &[Self] = &[Self::Ttft, Self::Tpot, Self::E2el];

    /// Those without a statistic that `--slo` takes.
    pub const PLAIN: &[Self] = &[Self::Ttft, Self::Ttfc, Self::Start, Self::Tpot, Self::E2el];

    /// The word in `--slo`, in `--fail-if` and in JSON.
    pub fn name(self) -> String {
        match self {
            Self::Icl(statistic) | Self::Itl(statistic) => {
                format!("{}.{}", self.word(), statistic.name())
            }
            _ => self.word().to_owned(),
        }
    }

    /// The word without its statistic.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Ttfc => "ttfc",
            Self::Start => "start",
            Self::Tpot => "tpot",
            Self::E2el => "e2el",
            Self::Icl(_) => "icl",
            Self::Itl(_) => "itl",
        }
    }
}

/// One bound: the quantity must be at most `limit_ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// What is bounded.
    pub quantity: Quantity,
    /// The largest value that is still good, in milliseconds.
    pub limit_ms: f64,
}

/// Which requests a set of terms is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    /// The label's name; `None` where only the value was written, which
    /// [`Slo::name_labels`] looks up.
    pub name: Option<String>,
    /// Its value.
    pub value: String,
}

/// Terms of the requests with one label.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The label.
    pub label: Label,
    /// The terms, each quantity at most once.
    pub terms: Vec<Term>,
}

/// What a good request is: it meets every term of the sets that are for it.
/// A set with a label is for the requests that have it; the terms without one
/// are for every request that no labelled set is for. Without any set at all a
/// request is good when it ends well.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slo {
    /// The terms without a label, each quantity at most once.
    pub terms: Vec<Term>,
    /// The sets with one.
    pub labelled: Vec<Labelled>,
}

/// The labels of a run and the values that each takes.
pub type KnownLabels = BTreeMap<String, BTreeSet<String>>;

/// The labels that these records have.
pub fn labels_of(records: &[Record]) -> KnownLabels {
    let mut known = KnownLabels::new();
    for (name, value) in records.iter().flat_map(|record| &record.planned.labels) {
        if !known.get(name).is_some_and(|values| values.contains(value)) {
            known.entry(name.clone()).or_default().insert(value.clone());
        }
    }
    known
}

/// A set of terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Set<'a> {
    /// The label that it is for; `None` for the set of all other requests.
    pub label: Option<&'a Label>,
    /// Its terms.
    pub terms: &'a [Term],
}

impl Slo {
    /// Every set, the one without a label first where there is one.
    pub fn sets(&self) -> impl Iterator<Item = Set<'_>> {
        let unlabelled = !self.terms.is_empty() || self.labelled.is_empty();
        let others = unlabelled.then_some(Set { label: None, terms: &self.terms });
        let labelled = self.labelled.iter();
        let labelled = labelled.map(|set| Set { label: Some(&set.label), terms: &set.terms });
        others.into_iter().chain(labelled)
    }

    /// Every term of every set.
    pub fn all_terms(&self) -> impl Iterator<Item = &Term> {
        self.sets().flat_map(|set| set.terms)
    }

    /// The places in [`Slo::sets`] of the sets that are for a request with
    /// these labels; none where nothing is asked of it.
    pub fn sets_for(&self, labels: &[(String, String)]) -> Vec<usize> {
        let named = self.labelled.iter().any(|set| set.label.is_among(labels));
        let places = self.sets().enumerate().filter(|(_, set)| match set.label {
            Some(label) => label.is_among(labels),
            None => !named,
        });
        places.map(|(place, _)| place).collect()
    }

    /// The same with [`Quantity::Start`] said as what it is in a run.
    pub fn of_run(&self, reasoned: bool) -> Self {
        let mut slo = self.clone();
        let terms = slo.labelled.iter_mut().flat_map(|set| &mut set.terms);
        for term in slo.terms.iter_mut().chain(terms) {
            if term.quantity == Quantity::Start {
                term.quantity = if reasoned { Quantity::Ttfc } else { Quantity::Ttft };
            }
        }
        slo
    }

    /// Gives sets that were written by value alone their label's name, and
    /// holds all labels against those of a run.
    ///
    /// # Errors
    ///
    /// When no request has such a label, or labels of two names take a value
    /// that was written without a name.
    pub fn name_labels(&mut self, known: &KnownLabels) -> Result<(), SloError> {
        for set in &mut self.labelled {
            let label = &mut set.label;
            let having: Vec<&String> = known
                .iter()
                .filter(|(name, _)| label.name.as_ref().is_none_or(|own| own == *name))
                .filter(|(_, values)| values.contains(&label.value))
                .map(|(name, _)| name)
                .collect();
            match having.as_slice() {
                [name] => label.name = Some((*name).clone()),
                [] => return Err(SloError::unknown_label(label, known)),
                several => return Err(SloError::several_labels(label, several)),
            }
        }
        let labels: BTreeSet<&Label> = self.labelled.iter().map(|set| &set.label).collect();
        if labels.len() < self.labelled.len() {
            return Err(SloError::label_twice(self));
        }
        Ok(())
    }

    /// True when an attainment of this name can be asked for: of a term, or of
    /// the requests with a label.
    pub fn has(&self, name: &str) -> bool {
        let mut terms = self
            .sets()
            .flat_map(|set| set.terms.iter().map(move |term| term_name(set.label, term)));
        let by_value = self.labelled.iter().any(|set| set.label.value == name);
        terms.any(|term| term == name) || by_value || (name.contains('=') && !name.contains(':'))
    }
}

impl Label {
    fn is_among(&self, labels: &[(String, String)]) -> bool {
        labels.iter().any(|(name, value)| {
            *value == self.value && self.name.as_ref().is_none_or(|own| own == name)
        })
    }
}

/// What a term is called beside others: `ttft`, or `tenant=a:ttft`.
pub fn term_name(label: Option<&Label>, term: &Term) -> String {
    let name = term.quantity.name();
    label.map_or(name.clone(), |label| format!("{label}:{name}"))
}

/// Whether a request met one term, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Met, by a value.
    Met,
    /// Met because the term cannot apply: TPOT of one token.
    Vacuous,
    /// Missed, by a value or by failing.
    Missed,
    /// Stopped by us before it could be told, or not measurable.
    Undecided,
    /// Never sent by our own fault: it says nothing about the server.
    ClientFault,
    /// No set is for a request with its labels.
    NotAsked,
}

impl Judgement {
    /// Whether the request counts as good.
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Met | Self::Vacuous)
    }

    /// Whether it counts among those that could be judged.
    pub const fn decides(self) -> bool {
        matches!(self, Self::Met | Self::Vacuous | Self::Missed)
    }
}

/// Judges one term.
pub fn judge_term(timed: &Timed<'_>, term: &Term) -> Judgement {
    match timed.record.outcome {
        Outcome::NotSent(kind) => judge_unsent(kind),
        Outcome::Cancelled => judge_cancelled(timed, term),
        _ if !timed.success => Judgement::Missed,
        _ => {
            let value = value(timed, term.quantity);
            match value {
                // A call needs no text; an answer that only thought never began.
                Err(Undefined::NoVisibleText) if timed.calls_tools() => Judgement::Vacuous,
                Err(Undefined::NoVisibleText) => Judgement::Missed,
                value => judge_value(value, term),
            }
        }
    }
}

fn value(timed: &Timed<'_>, quantity: Quantity) -> Value {
    match quantity {
        Quantity::Ttft => timed.ttft(),
        Quantity::Ttfc => timed.ttfc(),
        Quantity::Start if timed.reasoned() => timed.ttfc(),
        Quantity::Start => timed.ttft(),
        Quantity::Tpot => timed.tpot(),
        Quantity::E2el => timed.e2el(),
        Quantity::Itl(Statistic::Mean) => timed.itl_mean(),
        Quantity::Icl(statistic) | Quantity::Itl(statistic) => timed.gap(statistic),
    }
}

/// A request that was never sent: mostly by our own fault; but a turn that a
/// failure before it made impossible was missed by the server.
fn judge_unsent(kind: NotSentKind) -> Judgement {
    if kind.blame() == Blame::Client { Judgement::ClientFault } else { Judgement::Missed }
}

fn judge_value(value: Value, term: &Term) -> Judgement {
    match value {
        Ok(ms) if ms <= term.limit_ms => Judgement::Met,
        Ok(_) => Judgement::Missed,
        Err(Undefined::OneToken | Undefined::OneArrival) => Judgement::Vacuous,
        Err(_) => Judgement::Undecided,
    }
}

/// A request that we stopped has missed a term only if it had already gone
/// past the limit by then.
fn judge_cancelled(timed: &Timed<'_>, term: &Term) -> Judgement {
    let record = timed.record;
    let seen = match term.quantity {
        Quantity::Ttft => timed.ttft_seen().ok(),
        Quantity::Ttfc => timed.ttfc_seen(),
        Quantity::Start if timed.reasoned() => timed.ttfc_seen(),
        Quantity::Start => timed.ttft_seen().ok(),
        _ => None,
    };
    if let Some(ms) = seen {
        return judge_value(Ok(ms), term);
    }
    let waited = match term.quantity {
        Quantity::Ttft | Quantity::Ttfc | Quantity::Start | Quantity::E2el => record
            .stamps
            .ended_at
            .zip(start_of(record, timed.start()))
            .map(|(ended, start)| (ended - start).ms()),
        // One gap that is too long decides, however many would have followed.
        Quantity::Icl(Statistic::Max) | Quantity::Itl(Statistic::Max) => timed.longest_gap_seen(),
        Quantity::Tpot | Quantity::Icl(_) | Quantity::Itl(_) => None,
    };
    if waited.is_some_and(|ms| ms > term.limit_ms) {
        Judgement::Missed
    } else {
        Judgement::Undecided
    }
}

/// A request judged: as a whole, and by each term of the sets that are for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// By all terms together.
    pub joint: Judgement,
    /// The sets that are for it, by their places in [`Slo::sets`].
    pub sets: Vec<usize>,
    /// By each of their terms, set after set.
    pub terms: Vec<Judgement>,
}

/// Judges all terms jointly: one missed term decides.
pub fn judge(timed: &Timed<'_>, slo: &Slo) -> Judged {
    let sets = slo.sets_for(&timed.record.planned.labels);
    let terms: Vec<Judgement> = slo
        .sets()
        .enumerate()
        .filter(|(place, _)| sets.contains(place))
        .flat_map(|(_, set)| set.terms)
        .map(|term| judge_term(timed, term))
        .collect();
    let joint = if sets.is_empty() { Judgement::NotAsked } else { jointly(timed, &terms) };
    Judged { joint, sets, terms }
}

fn jointly(timed: &Timed<'_>, terms: &[Judgement]) -> Judgement {
    let any = |wanted| terms.contains(&wanted);
    let outcome = timed.record.outcome;
    // Said of the outcome and not of the terms, so that it holds without any.
    let failed = !timed.success && outcome != Outcome::Cancelled;
    if let Outcome::NotSent(kind) = outcome {
        judge_unsent(kind)
    } else if failed || any(Judgement::Missed) {
        Judgement::Missed
    } else if any(Judgement::Undecided) || outcome == Outcome::Cancelled {
        // A stopped one met what could be seen; nobody knows the rest.
        Judgement::Undecided
    } else if any(Judgement::Vacuous) {
        Judgement::Vacuous
    } else {
        Judgement::Met
    }
}
