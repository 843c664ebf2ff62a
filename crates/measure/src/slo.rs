//! Service-level objectives of a request, and whether it met them.

use std::fmt;

use crate::outcome::Outcome;
use crate::request::{Timed, Value, start_of};
use crate::undefined::Undefined;

/// What an objective bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time to first token.
    Ttft,
    /// Time per output token.
    Tpot,
    /// End-to-end latency.
    E2el,
}

impl Quantity {
    /// Every quantity that `--goodput` takes, in its order.
    pub const ALL: &[Self] = &[Self::Ttft, Self::Tpot, Self::E2el];

    /// The word in `--goodput`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::E2el => "e2el",
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

/// A joint objective: a request is good when it meets every term.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slo {
    /// The terms, each quantity at most once.
    pub terms: Vec<Term>,
}

/// What is wrong with one `--goodput` item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SloError {
    /// The item as given.
    pub item: String,
    /// The rule that it breaks.
    pub rule: &'static str,
}

impl fmt::Display for SloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "--goodput {:?}: {}; write NAME:LIMIT with NAME one of ttft, tpot, e2el and LIMIT a \
             number of milliseconds, as in ttft:300 tpot:60",
            self.item, self.rule
        )
    }
}

impl std::error::Error for SloError {}

impl Slo {
    /// Reads vLLM's syntax: `ttft:300 tpot:60`, limits in milliseconds.
    /// Stricter than vLLM: nan, inf and a name given twice are refused.
    pub fn parse_goodput<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self, SloError> {
        let mut slo = Self::default();
        for item in items.into_iter().flat_map(str::split_whitespace) {
            let refuse = |rule| SloError { item: item.to_owned(), rule };
            let (name, limit) = item.split_once(':').ok_or(refuse("a colon is missing"))?;
            let quantity = Quantity::ALL
                .iter()
                .copied()
                .find(|quantity| quantity.name() == name)
                .ok_or(refuse("the name is not one of ttft, tpot, e2el"))?;
            let limit_ms: f64 = limit
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
                .then(|| limit.parse().ok())
                .flatten()
                .ok_or(refuse("the limit is not a plain number of milliseconds"))?;
            if !limit_ms.is_finite() || limit_ms < 0.0 {
                return Err(refuse("the limit must be finite and not negative"));
            }
            if slo.terms.iter().any(|term| term.quantity == quantity) {
                return Err(refuse("the name is given twice"));
            }
            slo.terms.push(Term { quantity, limit_ms });
        }
        Ok(slo)
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, term) in self.terms.iter().enumerate() {
            let gap = if position == 0 { "" } else { ", " };
            write!(f, "{gap}{} ≤ {} ms", term.quantity.name(), term.limit_ms)?;
        }
        Ok(())
    }
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
}

/// Judges one term.
pub fn judge_term(timed: &Timed<'_>, term: &Term) -> Judgement {
    match timed.record.outcome {
        Outcome::NotSent(_) => Judgement::ClientFault,
        Outcome::Cancelled => judge_cancelled(timed, term),
        _ if !timed.success => Judgement::Missed,
        _ => {
            let value = match term.quantity {
                Quantity::Ttft => timed.ttft(),
                Quantity::Tpot => timed.tpot(),
                Quantity::E2el => timed.e2el(),
            };
            judge_value(value, term)
        }
    }
}

fn judge_value(value: Value, term: &Term) -> Judgement {
    match value {
        Ok(ms) if ms <= term.limit_ms => Judgement::Met,
        Ok(_) => Judgement::Missed,
        Err(Undefined::OneToken) => Judgement::Vacuous,
        Err(_) => Judgement::Undecided,
    }
}

/// A request that we stopped has missed a term only if it had already gone
/// past the limit by then.
fn judge_cancelled(timed: &Timed<'_>, term: &Term) -> Judgement {
    let record = timed.record;
    let seen = timed.ttft_seen().ok();
    if let (Quantity::Ttft, Some(ms)) = (term.quantity, seen) {
        return judge_value(Ok(ms), term);
    }
    let waited = record
        .stamps
        .ended_at
        .zip(start_of(record, timed.start()))
        .map_or(0.0, |(ended, start)| (ended - start).ms());
    match term.quantity {
        Quantity::Ttft | Quantity::E2el if waited > term.limit_ms => Judgement::Missed,
        _ => Judgement::Undecided,
    }
}

/// Judges all terms jointly: one missed term decides.
pub fn judge(timed: &Timed<'_>, slo: &Slo) -> Judgement {
    let terms: Vec<Judgement> = slo.terms.iter().map(|term| judge_term(timed, term)).collect();
    let any = |wanted| terms.contains(&wanted);
    let outcome = timed.record.outcome;
    // Said of the outcome and not of the terms, so that it holds without any.
    let failed = !timed.success && outcome != Outcome::Cancelled;
    if matches!(outcome, Outcome::NotSent(_)) {
        Judgement::ClientFault
    } else if failed || any(Judgement::Missed) {
        Judgement::Missed
    } else if any(Judgement::Undecided) {
        Judgement::Undecided
    } else if any(Judgement::Vacuous) {
        Judgement::Vacuous
    } else if outcome == Outcome::Cancelled {
        // It met what could be seen, but nobody knows how it would have ended.
        Judgement::Undecided
    } else {
        Judgement::Met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(&'static str, f64)> {
        let slo = Slo::parse_goodput([text]).unwrap();
        slo.terms.iter().map(|term| (term.quantity.name(), term.limit_ms)).collect()
    }

    #[test]
    fn m05_accepts_what_vllm_means() {
        assert_eq!(parsed("ttft:200"), [("ttft", 200.0)]);
        assert_eq!(
            parsed("ttft:200 tpot:50 e2el:3000"),
            [("ttft", 200.0), ("tpot", 50.0), ("e2el", 3000.0)]
        );
        assert_eq!(parsed("ttft:0.5"), [("ttft", 0.5)]);
        assert_eq!(parsed("tpot:1e2"), [("tpot", 100.0)]);
        assert_eq!(parsed("e2el:0"), [("e2el", 0.0)]);
    }

    #[test]
    fn m05_rejects_the_rest_and_says_the_unit() {
        for item in [
            "ttft",
            "ttft:",
            ":200",
            "ttft=200",
            "ttft:200ms",
            "ttft:0.2s",
            "ttft:-1",
            "ttft:nan",
            "ttft:inf",
            "itl:20",
            "TTFT:200",
            "ttft:1:2",
            "ttft:200,tpot:50",
            "ttft:200 ttft:300",
        ] {
            let error = Slo::parse_goodput([item]).expect_err(item).to_string();
            assert!(error.contains("milliseconds"), "{error}");
            assert!(error.contains("ttft, tpot, e2el"), "{error}");
        }
    }
}
