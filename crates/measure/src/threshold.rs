//! `--fail-if`: a rule over the figures of a run, for scripts and pipelines.
//!
//! ```text
//! rule   := [ "steady." | "service." ] figure op value
//! figure := METRIC "." STAT | "attainment" [ "." SLO ] | "goodput" | "error_rate"
//! SLO    := TERM | LABEL ":" TERM | LABEL
//! STAT   := mean | std | min | max | p50 | p90 | p95 | p99 | p999
//! op     := ">" | ">=" | "<" | "<="
//! value  := number [ "ms" | "s" | "%" ]
//! ```

use std::fmt;

use crate::goodput::Goodput;
use crate::metric::{self, Unit};
use crate::statistics::Distribution;
use crate::summary::Summary;

/// A parsed rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    /// As it was written.
    pub text: String,
    population: Population,
    figure: Figure,
    op: Op,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Population {
    Successes,
    Steady,
    Service,
}

#[derive(Clone, Debug, PartialEq)]
enum Figure {
    Metric { key: &'static str, stat: String },
    Attainment(Option<String>),
    Goodput,
    ErrorRate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Above,
    AtLeast,
    Below,
    AtMost,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdError {
    /// The rule as written.
    pub text: String,
    /// What is wrong.
    pub rule: String,
}

impl fmt::Display for ThresholdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}: {}; write METRIC.STAT OP VALUE as in 'ttft.p99 > 500ms', or attainment, \
             attainment.ttft, goodput, error_rate",
            self.text, self.rule
        )
    }
}

impl std::error::Error for ThresholdError {}

/// How a rule came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The rule is not true: the run passes.
    Passed(f64),
    /// The rule is true: the run fails.
    Missed(f64),
    /// The figure is not defined, so nobody can say that the run passes.
    Undefined,
}

const STATS: &[&str] = &["mean", "std", "min", "max", "p50", "p90", "p95", "p99", "p999"];

impl Threshold {
    /// Reads a rule.
    pub fn parse(text: &str) -> Result<Self, ThresholdError> {
        let wrong = |rule: &str| ThresholdError { text: text.to_owned(), rule: rule.to_owned() };
        let at =
            text.find(['<', '>']).ok_or_else(|| wrong("an operator (> >= < <=) is missing"))?;
        let (left, right) = (text[..at].trim(), &text[at..]);
        let (op, right) = match (&right[..1], right[1..].strip_prefix('=')) {
            (">", Some(rest)) => (Op::AtLeast, rest),
            (">", None) => (Op::Above, &right[1..]),
            (_, Some(rest)) => (Op::AtMost, rest),
            (_, None) => (Op::Below, &right[1..]),
        };
        let (population, left) = if let Some(rest) = left.strip_prefix("steady.") {
            (Population::Steady, rest)
        } else if let Some(rest) = left.strip_prefix("service.") {
            (Population::Service, rest)
        } else {
            (Population::Successes, left)
        };
        let figure = figure(left).map_err(|rule| wrong(&rule))?;
        let value = value(right.trim(), &figure)
            .ok_or_else(|| wrong("the value is not a number with ms, s or %"))?;
        if figure == Figure::ErrorRate && population == Population::Service {
            return Err(wrong("an error is one whenever its clock starts: leave out service."));
        }
        Ok(Self { text: text.to_owned(), population, figure, op, value })
    }

    /// Applies the rule to a run.
    pub fn judge(&self, summary: &Summary) -> Outcome {
        // A failure makes the figure infinite, which no limit can pass.
        let Some(figure) = self.figure_of(summary) else { return Outcome::Undefined };
        let fails = match self.op {
            Op::Above => figure > self.value,
            Op::AtLeast => figure >= self.value,
            Op::Below => figure < self.value,
            Op::AtMost => figure <= self.value,
        };
        if fails { Outcome::Missed(figure) } else { Outcome::Passed(figure) }
    }

    fn figure_of(&self, summary: &Summary) -> Option<f64> {
        match &self.figure {
            Figure::Metric { key, stat } => {
                let distributions: &[(&str, Distribution)] = match self.population {
                    Population::Successes => &summary.metrics,
                    Population::Steady => &summary.steady.metrics,
                    Population::Service => &summary.service_metrics,
                };
                distributions.iter().find(|(name, _)| name == key)?.1.figure(stat)
            }
            Figure::Attainment(None) => self.goodput_of(summary)?.attainment,
            Figure::Attainment(Some(name)) => attainment_of(self.goodput_of(summary)?, name),
            Figure::Goodput => self.goodput_of(summary)?.req_s,
            Figure::ErrorRate if self.population == Population::Steady => summary.steady.error_rate,
            Figure::ErrorRate => summary.outcomes.error_rate(),
        }
    }

    fn goodput_of<'a>(&self, summary: &'a Summary) -> Option<&'a Goodput> {
        match self.population {
            Population::Successes => summary.goodput.as_ref(),
            Population::Steady => summary.steady.goodput.as_ref(),
            Population::Service => summary.service_goodput.as_ref(),
        }
    }

    /// The unit of the figure, for people.
    pub fn unit(&self) -> &'static str {
        match &self.figure {
            Figure::Metric { key, .. } => {
                metric::find(key).map_or("", |metric| metric.unit.symbol())
            }
            Figure::Goodput => "req/s",
            Figure::Attainment(_) | Figure::ErrorRate => "(a share)",
        }
    }

    /// The name behind `attainment.`, where there is one.
    pub fn attainment_of(&self) -> Option<&str> {
        match &self.figure {
            Figure::Attainment(name) => name.as_deref(),
            _ => None,
        }
    }

    /// True when the rule needs an SLO.
    pub fn needs_slo(&self) -> bool {
        matches!(self.figure, Figure::Attainment(_) | Figure::Goodput)
    }
}

/// The attainment that a name behind `attainment.` means: of a term as the
/// summary calls it, of `start` whatever it was in this run, or of the requests
/// with a label.
fn attainment_of(goodput: &Goodput, name: &str) -> Option<f64> {
    let term = |name: &str| goodput.per_slo.iter().find(|result| result.name() == name);
    let started = name
        .strip_suffix("start")
        .map(|set| ["ttft", "ttfc"].iter().find_map(|quantity| term(&format!("{set}{quantity}"))));
    if let Some(result) = term(name).or(started.flatten()) {
        return result.share();
    }
    let sets = &goodput.slo.labelled;
    let by_value = sets.iter().find(|set| set.label.value == name);
    let label = by_value.map_or(name.to_owned(), |set| set.label.to_string());
    let (name, value) = label.split_once('=')?;
    goodput.per_label.iter().find(|result| result.name == name && result.value == value)?.share()
}

fn figure(text: &str) -> Result<Figure, String> {
    match text.split_once('.') {
        None if text == "attainment" => Ok(Figure::Attainment(None)),
        None if text == "goodput" => Ok(Figure::Goodput),
        None if text == "error_rate" => Ok(Figure::ErrorRate),
        Some(("attainment", name)) => Ok(Figure::Attainment(Some(name.to_owned()))),
        Some((name, stat)) => {
            if !STATS.contains(&stat) {
                return Err(format!("{stat:?} is not one of {}", STATS.join(", ")));
            }
            let metric = metric::find(name)
                .filter(|metric| !matches!(metric.how, metric::How::Run | metric::How::Inside(_)))
                .ok_or_else(|| format!("{name:?} is not a metric with a distribution"))?;
            Ok(Figure::Metric { key: metric.key, stat: stat.to_owned() })
        }
        None => Err(format!("{text:?} needs a statistic, as in {text}.p99")),
    }
}

fn value(text: &str, figure: &Figure) -> Option<f64> {
    let is_time = match figure {
        Figure::Metric { key, .. } => {
            matches!(metric::find(key)?.unit, Unit::Milliseconds | Unit::MillisecondsPerToken)
        }
        _ => false,
    };
    let (number, scale) = if let Some(number) = text.strip_suffix("ms") {
        (number, is_time.then_some(1.0)?)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, is_time.then_some(1e3)?)
    } else if let Some(number) = text.strip_suffix('%') {
        (number, (!is_time).then_some(0.01)?)
    } else {
        (text, 1.0)
    };
    let number: f64 = number.trim().parse().ok()?;
    number.is_finite().then_some(number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_with_their_units() {
        for (text, value) in [
            ("ttft.p99 > 500ms", 500.0),
            ("ttft.p99>0.5s", 500.0),
            ("steady.e2el.mean >= 3 s", 3000.0),
            ("service.tpot.p50 < 20", 20.0),
            ("attainment < 99%", 0.99),
            ("attainment.ttft <= 0.5", 0.5),
            ("error_rate > 1 %", 0.01),
            ("goodput < 2", 2.0),
            ("steady.goodput < 2", 2.0),
            ("service.attainment.ttft < 99%", 0.99),
            ("steady.error_rate > 1%", 0.01),
        ] {
            let rule = Threshold::parse(text).unwrap_or_else(|error| panic!("{error}"));
            assert!((rule.value - value).abs() < 1e-9, "{text}: {}", rule.value);
        }
    }

    #[test]
    fn wrong_rules_say_what_is_wrong() {
        for text in [
            "",
            "ttft",
            "ttft > 3",
            "ttft.p98 > 3",
            "mfu.p50 > 1",
            "nonsense.p50 > 1",
            "ttft.p50 > x",
            "ttft.p50 > 5%",
            "error_rate > 3ms",
            "service.error_rate > 1%",
            "ttft.p50 = 3",
        ] {
            assert!(Threshold::parse(text).is_err(), "{text}");
        }
    }
}
