//! Fairness between the values of a label: how equally they are served, and
//! how much slower each is than when it has the server for itself.

use crate::definition::GOODPUT;
use crate::record::Record;
use crate::request::{Settings, Timed, Value, start_of};
use crate::slices::{by_value, label_names};
use crate::slo::{Slo, judge};
use crate::statistics::Distribution;

/// Fairness between the values of one label.
#[derive(Clone, Debug, PartialEq)]
pub struct Fairness {
    /// The label's name.
    pub label: String,
    /// Jain's index of the shares of good requests; none without an SLO.
    pub jain_attainment: Option<f64>,
    /// Jain's index of the output tokens a second that a request gets.
    pub jain_speed: Option<f64>,
    /// Each value.
    pub parts: Vec<Part>,
}

/// The requests with one value of a label.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The value.
    pub value: String,
    /// Good requests ÷ those that could be judged.
    pub attainment: Option<f64>,
    /// Output tokens of successes ÷ seconds that requests were under way.
    pub speed_tok_s: Option<f64>,
    /// What it is against its isolated run, where there is one.
    pub slowdown: Option<Slowdown>,
}

/// Latency ÷ latency of the isolated run, by our own definitions.
#[derive(Clone, Debug, PartialEq)]
pub struct Slowdown {
    /// The run in which this label had the server for itself.
    pub isolated_run: String,
    /// Metric, statistic and ratio.
    pub ratios: Vec<(&'static str, &'static str, f64)>,
}

impl Fairness {
    /// The largest slowdown: value, metric, statistic, ratio.
    pub fn largest_slowdown(&self) -> Option<(&str, &'static str, &'static str, f64)> {
        let ratios = self.parts.iter().flat_map(|part| {
            let ratios = part.slowdown.iter().flat_map(|slowdown| &slowdown.ratios);
            ratios.map(move |(key, name, ratio)| (part.value.as_str(), *key, *name, *ratio))
        });
        ratios.max_by(|a, b| a.3.total_cmp(&b.3))
    }

    /// Values that no isolated run is known of.
    pub fn without_isolated(&self) -> Vec<&str> {
        let missing = self.parts.iter().filter(|part| part.slowdown.is_none());
        missing.map(|part| part.value.as_str()).collect()
    }
}

/// Latencies of the requests of one label when they had the server for
/// themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Isolated {
    /// The label's name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The run.
    pub run_id: String,
    /// Metric, statistic and value in ms.
    pub figures_ms: Vec<(&'static str, &'static str, f64)>,
}

type Latency = (&'static str, fn(&Timed<'_>) -> Value);

/// What slowdown is measured in.
const LATENCIES: [Latency; 2] =
    [("ttft_ms", |timed| timed.ttft()), ("e2el_ms", |timed| timed.e2el())];
const STATISTICS: [&str; 2] = ["p50", "p99"];

/// Every figure that an isolated run is kept by: metric and statistic.
pub fn figures() -> impl Iterator<Item = (&'static str, &'static str)> {
    LATENCIES.iter().flat_map(|(key, _)| STATISTICS.iter().map(move |name| (*key, *name)))
}

fn latencies(timed: &[&Timed<'_>]) -> Vec<(&'static str, &'static str, f64)> {
    let mut figures = Vec::new();
    for (key, value) in LATENCIES {
        let samples = timed.iter().filter_map(|request| value(request).ok()).collect();
        let found = Distribution::of(samples, Vec::new(), &[]);
        let named = STATISTICS.iter().filter_map(|name| Some((key, *name, found.figure(name)?)));
        figures.extend(named);
    }
    figures
}

/// What a run says of labels that had the server for themselves in it: of the
/// one that is asked for, or of every value that all its requests share.
///
/// # Errors
///
/// When the run has requests of another value, none that ended well, or no
/// value that all share.
pub fn isolated(
    records: &[Record],
    run_id: &str,
    label: Option<(&str, &str)>,
) -> Result<Vec<Isolated>, String> {
    let known = crate::slo::labels_of(records);
    let labels: Vec<(String, String)> = match label {
        Some((name, value)) => {
            let others = known.get(name).into_iter().flatten().find(|other| *other != value);
            if let Some(other) = others {
                return Err(format!(
                    "the run also sent requests of {name}={other}, so {name}={value} was not alone"
                ));
            }
            vec![(name.to_owned(), value.to_owned())]
        }
        None => {
            let all = |label: &(String, String)| {
                records.iter().all(|record| record.planned.labels.contains(label))
            };
            let labels = records.first().map_or(&[][..], |record| &record.planned.labels);
            let shared: Vec<_> = labels.iter().filter(|label| all(label)).cloned().collect();
            if shared.is_empty() {
                return Err("its requests share no label; write LABEL=VALUE:RUN".to_owned());
            }
            shared
        }
    };
    let timed = look(records);
    let figures_ms = latencies(&timed.iter().collect::<Vec<_>>());
    if figures_ms.is_empty() {
        return Err("none of its requests has a latency".to_owned());
    }
    let of = |(name, value)| {
        let (run_id, figures_ms) = (run_id.to_owned(), figures_ms.clone());
        Isolated { name, value, run_id, figures_ms }
    };
    Ok(labels.into_iter().map(of).collect())
}

fn look(records: &[Record]) -> Vec<Timed<'_>> {
    records.iter().map(|record| Timed::new(record, &GOODPUT, Settings::default())).collect()
}

/// Jain's index (Σx)² ÷ (n·Σx²): 1 when all are served alike, 1 ÷ n when one
/// has everything. `None` of fewer than two, or when nobody has anything.
pub fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(a, b), x| (a + x, b + x * x));
    (values.len() > 1 && squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// Labels whose values share no server as tenants do: the turns of one
/// conversation come one after the other, and a prefix is no class of requests.
const NO_CLASSES: &[&str] = &["turn", "prefix"];

/// Fairness between the values of each label that takes two or more, but for
/// turns and prefixes. `timed` is by our own definitions, because isolated runs
/// are kept by them, and in the order of the schedule.
pub fn fairness(timed: &[Timed<'_>], slo: Option<&Slo>, isolated: &[Isolated]) -> Vec<Fairness> {
    let mut all = Vec::new();
    for name in label_names(timed).filter(|name| !NO_CLASSES.contains(name)) {
        let mut parts = by_value(timed, name);
        parts.remove(&None);
        if parts.len() < 2 {
            continue;
        }
        let parts = parts.into_iter().filter_map(|(value, requests)| Some((value?, requests)));
        let parts: Vec<Part> = parts
            .map(|(value, requests)| {
                let alone = isolated.iter().find(|run| run.name == name && run.value == value);
                part(value, &requests, slo, alone)
            })
            .collect();
        all.push(Fairness {
            label: name.to_owned(),
            jain_attainment: index(&parts, |part| part.attainment),
            jain_speed: index(&parts, |part| part.speed_tok_s),
            parts,
        });
    }
    all
}

/// Jain's index of a figure that every part has.
fn index(parts: &[Part], figure: impl Fn(&Part) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = parts.iter().map(figure).collect();
    jain(&values?)
}

fn part(value: &str, requests: &[&Timed<'_>], slo: Option<&Slo>, alone: Option<&Isolated>) -> Part {
    let attainment = slo.and_then(|slo| {
        let judged: Vec<_> = requests.iter().map(|request| judge(request, slo).joint).collect();
        let of = judged.iter().filter(|judgement| judgement.decides()).count();
        let good = judged.iter().filter(|judgement| judgement.is_good()).count();
        (of > 0).then(|| good as f64 / of as f64)
    });
    let slowdown = alone.map(|alone| {
        let now = latencies(requests);
        let then = |key: &str, name: &str| {
            let found = alone.figures_ms.iter().find(|figure| figure.0 == key && figure.1 == name);
            found.map(|figure| figure.2).filter(|ms| *ms > 0.0)
        };
        let ratios = now.into_iter();
        let ratios = ratios.filter_map(|(key, name, ms)| Some((key, name, ms / then(key, name)?)));
        Slowdown { isolated_run: alone.run_id.clone(), ratios: ratios.collect() }
    });
    Part { value: value.to_owned(), attainment, speed_tok_s: speed(requests), slowdown }
}

/// Output tokens of successes over the time that requests were under way, of
/// failed ones too: who waits for nothing is served worse.
fn speed(requests: &[&Timed<'_>]) -> Option<f64> {
    let (mut tokens, mut under_way_s) = (None, 0.0);
    for request in requests {
        let record = request.record;
        if let (true, Ok(count)) = (request.success, request.output_tokens()) {
            *tokens.get_or_insert(0.0) += f64::from(count);
        }
        let took = record.stamps.ended_at.zip(start_of(record, request.start()));
        under_way_s += took.map_or(0.0, |(ended, start)| (ended - start).s());
    }
    tokens.filter(|_| under_way_s > 0.0).map(|tokens| tokens / under_way_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_and_prefixes_are_no_classes() {
        let labelled = |name: &str| -> Vec<Fairness> {
            let record = |index: u32| {
                let labels = vec![(name.to_owned(), index.to_string())];
                let planned = crate::Planned { labels, ..crate::Planned::default() };
                Record::planned(index, crate::At::ZERO, planned)
            };
            fairness(&look(&[record(0), record(1)]), None, &[])
        };
        assert_eq!(labelled("tenant").len(), 1);
        assert!(labelled("turn").is_empty() && labelled("prefix").is_empty());
    }

    #[test]
    fn jains_index_is_that_of_the_paper() {
        // Jain, Chiu, Hawe 1984: one of n served gives 1/n, all alike give 1.
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[1.0, 2.0]), Some(0.9));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[1.0]), None);
    }
}
