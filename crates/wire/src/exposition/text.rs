//! Prometheus' text format.

use std::fmt::Write;

use super::histogram::Histogram;
use super::state::{Endpoint, EngineState, Facts, Snapshot, Summary};
use super::{Family, Kind, Labels, Profile, Values};

type Pair = (&'static str, String);

/// An exposition as it is written.
pub(super) struct Text<'a> {
    snapshot: &'a Snapshot<'a>,
    /// The labels of each engine.
    engines: Vec<Vec<Pair>>,
    /// The labels of what is in front of them, and all of them together.
    front: (Vec<Pair>, EngineState),
    /// Whether a family tells when it began to count.
    tells_created: bool,
    lines: Lines<'a>,
}

impl<'a> Text<'a> {
    pub(super) fn new(profile: Profile, snapshot: &'a Snapshot<'a>) -> Self {
        let count = snapshot.engines.len();
        let model = snapshot.model;
        let labels = |number| match profile {
            Profile::Vllm => super::vllm::labels(model, number),
            Profile::Sglang => super::sglang::labels(model, number, count),
        };
        let front = match profile {
            Profile::Vllm => Vec::new(),
            Profile::Sglang => super::sglang::front_labels(model),
        };
        let idle = profile.idle_engine(snapshot.facts.context);
        let all = snapshot.engines.iter().fold(idle, |all, one| all.with_answers_of(one));
        Self {
            snapshot,
            engines: (0..count).map(labels).collect(),
            front: (front, all),
            tells_created: profile == Profile::Vllm,
            lines: Lines { facts: snapshot.facts, out: String::new() },
        }
    }

    pub(super) fn done(self) -> String {
        self.lines.out
    }

    pub(super) fn family(&mut self, family: &Family) {
        let Family { name, kind, help, .. } = family;
        self.lines.head(name, help, kind.name());
        let written = self.series(family);
        if self.tells_created && *kind != Kind::Gauge {
            let stem = name.strip_suffix("_total").filter(|_| *kind == Kind::Counter);
            let name = format!("{}_created", stem.unwrap_or(name));
            self.lines.head(&name, help, Kind::Gauge.name());
            for labels in written {
                self.lines.line(&name, &labels, self.snapshot.created_s);
            }
        }
    }

    /// Writes every series of a family, and gives their labels.
    fn series(&mut self, family: &Family) -> Vec<Vec<Pair>> {
        let name = family.name;
        let mut written = Vec::new();
        let snapshot = self.snapshot;
        match (&family.values, family.labels) {
            (Values::HttpCount | Values::HttpSize(_) | Values::HttpDuration, _) => {
                for (path, method, endpoint) in snapshot.http.endpoints() {
                    self.lines.of_endpoint(family, path, method, endpoint, &mut written);
                }
            }
            (Values::HttpDurationOfAll, _) => {
                self.lines.spread(name, &[], snapshot.http.durations());
                written.push(Vec::new());
            }
            (Values::Info(facts), _) => {
                for labels in &self.engines {
                    let engine = labels.iter().filter(|(name, _)| *name == "engine").cloned();
                    let labels = engine.chain(facts(snapshot.facts)).collect();
                    self.lines.number(name, labels, 1.0, &mut written);
                }
            }
            (values, Labels::Engine) => {
                for (labels, engine) in self.engines.iter().zip(snapshot.engines) {
                    self.lines.of_engine(name, values, labels, engine, &mut written);
                }
            }
            (values, Labels::Front | Labels::Bare) => {
                let (labels, all) = &self.front;
                self.lines.of_engine(name, values, labels, all, &mut written);
            }
        }
        written
    }
}

/// The lines themselves.
struct Lines<'a> {
    facts: &'a Facts,
    out: String,
}

impl Lines<'_> {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn of_engine(
        &mut self,
        name: &str,
        values: &Values,
        labels: &[Pair],
        engine: &EngineState,
        written: &mut Vec<Vec<Pair>>,
    ) {
        let with = |label: &'static str, value: &str| {
            let mut labels = labels.to_vec();
            labels.push((label, value.to_owned()));
            labels
        };
        match values {
            Values::Each(number) => self.number(name, labels.to_vec(), number(engine), written),
            Values::EachOfFacts(number) => {
                self.number(name, labels.to_vec(), number(engine, self.facts), written);
            }
            Values::Still(_) => self.number(name, labels.to_vec(), 0.0, written),
            Values::Fact(fact) => {
                self.number(name, labels.to_vec(), fact(self.facts), written);
            }
            Values::By(label, all) => {
                for (value, number) in *all {
                    self.number(name, with(label, value), number(engine), written);
                }
            }
            Values::ByPosition => {
                for position in 0..self.facts.drafted {
                    let taken = engine.accepted.get(position as usize).copied().unwrap_or(0);
                    let labels = with("position", &position.to_string());
                    self.number(name, labels, taken as f64, written);
                }
            }
            Values::Spread(spread) => {
                self.spread(name, labels, spread(engine));
                written.push(labels.to_vec());
            }
            Values::SpreadOfBoth(one, other) => {
                self.spread(name, labels, &one(engine).with(other(engine)));
                written.push(labels.to_vec());
            }
            Values::SpreadBy(label, all) => {
                for (value, spread) in *all {
                    let labels = with(label, value);
                    self.spread(name, &labels, spread(engine));
                    written.push(labels);
                }
            }
            Values::Info(_)
            | Values::HttpCount
            | Values::HttpSize(_)
            | Values::HttpDuration
            | Values::HttpDurationOfAll => unreachable!("these are of no engine"),
        }
    }

    fn of_endpoint(
        &mut self,
        family: &Family,
        path: &str,
        method: &str,
        endpoint: &Endpoint,
        written: &mut Vec<Vec<Pair>>,
    ) {
        let path = ("handler", path.to_owned());
        let method = ("method", method.to_owned());
        match family.values {
            Values::HttpCount => {
                for (status, count) in &endpoint.by_status {
                    let status = ("status", (*status).to_owned());
                    let labels = vec![path.clone(), method.clone(), status];
                    self.number(family.name, labels, *count as f64, written);
                }
            }
            Values::HttpSize(size) => {
                let labels = vec![path];
                self.summary(family.name, &labels, size(endpoint));
                written.push(labels);
            }
            _ => {
                let labels = vec![path, method];
                self.spread(family.name, &labels, &endpoint.durations);
                written.push(labels);
            }
        }
    }

    fn number(&mut self, name: &str, labels: Vec<Pair>, value: f64, written: &mut Vec<Vec<Pair>>) {
        self.line(name, &labels, value);
        written.push(labels);
    }

    fn summary(&mut self, name: &str, labels: &[Pair], summary: &Summary) {
        self.line(&format!("{name}_count"), labels, summary.count as f64);
        self.line(&format!("{name}_sum"), labels, summary.sum);
    }

    fn spread(&mut self, name: &str, labels: &[Pair], histogram: &Histogram) {
        let bucket = format!("{name}_bucket");
        let mut labels_of_bucket = labels.to_vec();
        labels_of_bucket.push(("le", String::new()));
        for (bound, count) in histogram.cumulated() {
            if let Some((_, value)) = labels_of_bucket.last_mut() {
                *value = float(bound);
            }
            self.line(&bucket, &labels_of_bucket, count as f64);
        }
        self.line(&format!("{name}_count"), labels, histogram.count() as f64);
        self.line(&format!("{name}_sum"), labels, histogram.sum());
    }

    /// One sample, its labels in the order of the alphabet.
    fn line(&mut self, name: &str, labels: &[Pair], value: f64) {
        self.out.push_str(name);
        let mut sorted: Vec<&Pair> = labels.iter().collect();
        sorted.sort_by_key(|(label, _)| *label);
        for (place, (label, text)) in sorted.iter().enumerate() {
            let opens = if place == 0 { '{' } else { ',' };
            let _ = write!(self.out, "{opens}{label}=\"{}\"", escaped(text));
        }
        if !labels.is_empty() {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {}", float(value));
    }
}

/// A label's value: the format gives a meaning to three characters.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// A number as the official client writes it: with a point, and with an exponent
/// from a million on.
pub(super) fn float(value: f64) -> String {
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let plain = format!("{value:?}");
    let Some(point) = plain.find('.').filter(|point| value > 0.0 && *point > 6) else {
        return plain;
    };
    let digits = plain.replace('.', "");
    let rest = digits[1..].trim_end_matches('0');
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{}{dot}{rest}e+{:02}", &digits[..1], point - 1)
}
