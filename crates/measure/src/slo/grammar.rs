//! How objectives are written.
//!
//! ```text
//! slo      := set (";" set)*
//! set      := [ label ":" ] ( term (("," | "and") term)* | "mlperf:" NAME )
//! label    := NAME "=" VALUE | VALUE
//! term     := quantity ("<=" | "≤") number unit
//! quantity := ttft | ttfc | start | tpot | e2el | (icl | itl) "." STAT
//! STAT     := mean | p50 | p90 | p95 | p99 | p999 | max
//! unit     := us | ms | s | m
//! ```

use std::fmt;

use super::{KnownLabels, Label, Labelled, PRESETS, Quantity, Slo, Statistic, Term};

/// What is wrong with an objective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SloError {
    /// The flag that it was written for.
    pub flag: &'static str,
    /// The item as given.
    pub item: String,
    /// The rule that it breaks.
    pub rule: String,
}

impl SloError {
    /// The sentence behind the flag's name: what is wrong, and what to write.
    pub fn sentence(&self) -> String {
        let hint = if self.flag == "--goodput" {
            "write NAME:LIMIT with NAME one of ttft, tpot, e2el and LIMIT a number of \
             milliseconds, as in ttft:300 tpot:60"
        } else {
            "write QUANTITY <= TIME, as in 'ttft <= 300ms, tpot <= 50ms' or \
             'tenant=a: icl.p99 <= 100ms'"
        };
        format!("{:?}: {}; {hint}", self.item, self.rule)
    }

    fn of_slo(item: &str, rule: impl Into<String>) -> Self {
        Self { flag: "--slo", item: item.to_owned(), rule: rule.into() }
    }

    pub(super) fn unknown_label(label: &Label, known: &KnownLabels) -> Self {
        let labels: Vec<String> = known
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| format!("{name}={value}")))
            .collect();
        let rule = match labels.as_slice() {
            [] => "no request of this run has a label".to_owned(),
            few if few.len() <= 8 => {
                format!("no request has this label; there are {}", few.join(", "))
            }
            many => {
                let few = many[..8].join(", ");
                format!("no request has this label; there are {few} and {} more", many.len() - 8)
            }
        };
        Self::of_slo(&format!("{label}:"), rule)
    }

    pub(super) fn several_labels(label: &Label, names: &[&String]) -> Self {
        let both: Vec<String> =
            names.iter().map(|name| format!("{name}={}", label.value)).collect();
        Self::of_slo(
            &format!("{label}:"),
            format!("the value alone could be any of {}; write one of them", both.join(", ")),
        )
    }

    pub(super) fn label_twice(slo: &Slo) -> Self {
        Self::of_slo(&stored(slo), "two sets are for the same label")
    }
}

impl fmt::Display for SloError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.flag, self.sentence())
    }
}

impl std::error::Error for SloError {}

impl Slo {
    /// Reads vLLM's syntax: `ttft:300 tpot:60`, limits in milliseconds.
    /// Stricter than vLLM: nan, inf and a name given twice are refused.
    ///
    /// # Errors
    ///
    /// When an item has another form; the first one is told.
    pub fn parse_goodput<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self, SloError> {
        let mut slo = Self::default();
        for item in items.into_iter().flat_map(str::split_whitespace) {
            let refuse = |rule: &str| SloError {
                flag: "--goodput",
                item: item.to_owned(),
                rule: rule.to_owned(),
            };
            let (name, limit) = item.split_once(':').ok_or(refuse("a colon is missing"))?;
            let quantity = Quantity::GOODPUT
                .iter()
                .copied()
                .find(|quantity| quantity.word() == name)
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

    /// Reads `--slo`; each item holds one set or several.
    ///
    /// # Errors
    ///
    /// When an item has another form; the first one is told.
    pub fn parse<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self, SloError> {
        let mut slo = Self::default();
        let sets = items.into_iter().flat_map(|item| item.split(';')).map(str::trim);
        for set in sets.filter(|set| !set.is_empty()) {
            slo.add_set(set)?;
        }
        Ok(slo)
    }

    /// Reads what [`stored`] writes.
    ///
    /// # Errors
    ///
    /// When the text has neither of the two forms.
    pub fn from_stored(text: &str) -> Result<Self, SloError> {
        if text.contains('<') { Self::parse([text]) } else { Self::parse_goodput([text]) }
    }

    fn add_set(&mut self, text: &str) -> Result<(), SloError> {
        let (label, terms) = split_label(text);
        let terms = match preset_name(terms) {
            Some(name) => preset(text, name)?,
            None => parse_terms(text, terms)?,
        };
        let into = match label {
            None => &mut self.terms,
            Some(label) => {
                let label = parse_label(text, label)?;
                if self.labelled.iter().any(|set| set.label == label) {
                    return Err(SloError::of_slo(text, "two sets are for the same label"));
                }
                self.labelled.push(Labelled { label, terms: Vec::new() });
                let set = self.labelled.last_mut().expect("one was pushed");
                &mut set.terms
            }
        };
        for term in terms {
            let clashes = |other: &Term| {
                let start = |quantity| matches!(quantity, Quantity::Ttft | Quantity::Ttfc);
                other.quantity == term.quantity
                    || (other.quantity == Quantity::Start && start(term.quantity))
                    || (term.quantity == Quantity::Start && start(other.quantity))
            };
            if into.iter().any(clashes) {
                let name = term.quantity.name();
                return Err(SloError::of_slo(text, format!("{name} is bounded twice")));
            }
            into.push(term);
        }
        Ok(())
    }
}

const PRESET: &str = "mlperf:";

/// Cuts a set into its label, if any, and its terms. The colon is the last one
/// before the first bound, so that a value may hold colons of its own.
fn split_label(text: &str) -> (Option<&str>, &str) {
    let bound = text.find(['<', '≤']).unwrap_or(text.len());
    let before = match text[..bound].rfind(PRESET) {
        // The colon of a preset's name is no label's.
        Some(at) if bound == text.len() => &text[..at],
        _ => &text[..bound],
    };
    match before.rfind(':') {
        Some(at) => (Some(text[..at].trim()), text[at + 1..].trim()),
        None => (None, text),
    }
}

fn preset_name(terms: &str) -> Option<&str> {
    terms.strip_prefix(PRESET).map(str::trim)
}

fn preset(text: &str, name: &str) -> Result<Vec<Term>, SloError> {
    match PRESETS.iter().find(|preset| preset.name == name) {
        Some(preset) => Ok(preset.terms.to_vec()),
        None => {
            let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            let rule = format!("{name:?} is not a preset of mlperf: {}", known.join(", "));
            Err(SloError::of_slo(text, rule))
        }
    }
}

fn parse_label(text: &str, label: &str) -> Result<Label, SloError> {
    let (name, value) = match label.split_once('=') {
        Some((name, value)) => (Some(name.trim()), value.trim()),
        None => (None, label),
    };
    if value.is_empty() || name.is_some_and(str::is_empty) {
        return Err(SloError::of_slo(text, "a label is NAME=VALUE, or a value alone"));
    }
    Ok(Label { name: name.map(str::to_owned), value: value.to_owned() })
}

fn parse_terms(text: &str, terms: &str) -> Result<Vec<Term>, SloError> {
    let apart = terms.split(',').flat_map(|part| part.split(" and "));
    apart.map(|term| parse_term(term.trim()).map_err(|rule| SloError::of_slo(text, rule))).collect()
}

fn parse_term(text: &str) -> Result<Term, String> {
    if text.is_empty() {
        return Err("a term is missing".to_owned());
    }
    let bound = text.find(['<', '≤']).ok_or_else(|| format!("{text:?} has no <="))?;
    let (name, rest) = (text[..bound].trim(), &text[bound..]);
    let limit = rest
        .strip_prefix('≤')
        .or_else(|| rest.strip_prefix("<="))
        .ok_or("a bound is inclusive here: write <= and not <")?;
    Ok(Term { quantity: parse_quantity(name)?, limit_ms: parse_ms(limit.trim())? })
}

fn parse_quantity(name: &str) -> Result<Quantity, String> {
    if let Some(plain) = Quantity::PLAIN.iter().find(|quantity| quantity.word() == name) {
        return Ok(*plain);
    }
    let (word, statistic) = name.split_once('.').unwrap_or((name, ""));
    let with: fn(Statistic) -> Quantity = match word {
        "icl" => Quantity::Icl,
        "itl" => Quantity::Itl,
        _ if Quantity::PLAIN.iter().any(|quantity| quantity.word() == word) => {
            return Err(format!("a request has one {word}: write {word} without a statistic"));
        }
        _ => {
            return Err(format!(
                "{name:?} is not one of ttft, ttfc, start, tpot, e2el, icl.STAT, itl.STAT"
            ));
        }
    };
    let found = Statistic::ALL.iter().find(|known| known.name() == statistic);
    found.map(|statistic| with(*statistic)).ok_or_else(|| {
        let known: Vec<&str> = Statistic::ALL.iter().map(|statistic| statistic.name()).collect();
        format!("{word} needs a statistic of the request's gaps, {word}. and {}", known.join(", "))
    })
}

fn parse_ms(text: &str) -> Result<f64, String> {
    let end = text.find(|c: char| c.is_alphabetic() && c != 'e' && c != 'E').unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().map_err(|_| format!("{text:?} is no time"))?;
    let ms = match &text[end..] {
        "us" | "µs" => number / 1e3,
        "ms" => number,
        "s" => number * 1e3,
        "m" => number * 6e4,
        "" => return Err(format!("{text:?} has no unit: write {text}ms or {text}s")),
        unit => return Err(format!("{unit:?} is not one of us, ms, s, m")),
    };
    if ms.is_finite() && ms >= 0.0 {
        Ok(ms)
    } else {
        Err("a limit is finite and not negative".to_owned())
    }
}

/// An objective as text that reads back as the same: vLLM's form where it can
/// say all, which earlier versions read, else that of `--slo`.
pub fn stored(slo: &Slo) -> String {
    let plain = slo.terms.iter().all(|term| Quantity::GOODPUT.contains(&term.quantity));
    if plain && slo.labelled.is_empty() {
        let terms = slo.terms.iter();
        let terms = terms.map(|term| format!("{}:{}", term.quantity.word(), term.limit_ms));
        return terms.collect::<Vec<_>>().join(" ");
    }
    written(slo, |term| format!("{} <= {}ms", term.quantity.name(), term.limit_ms))
}

fn written(slo: &Slo, term: impl Fn(&Term) -> String) -> String {
    let sets = slo.sets().map(|set| {
        let terms: Vec<String> = set.terms.iter().map(&term).collect();
        let label = set.label.map_or(String::new(), |label| format!("{label}: "));
        format!("{label}{}", terms.join(", "))
    });
    sets.collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ≤ {} ms", self.quantity.name(), self.limit_ms)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}={}", self.value),
            None => f.write_str(&self.value),
        }
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(self, Term::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Vec<(String, f64)> {
        let slo = Slo::parse_goodput([text]).unwrap();
        slo.terms.iter().map(|term| (term.quantity.name(), term.limit_ms)).collect()
    }

    fn pairs(terms: &[(&str, f64)]) -> Vec<(String, f64)> {
        terms.iter().map(|(name, limit)| ((*name).to_owned(), *limit)).collect()
    }

    #[test]
    fn m05_accepts_what_vllm_means() {
        assert_eq!(parsed("ttft:200"), pairs(&[("ttft", 200.0)]));
        assert_eq!(
            parsed("ttft:200 tpot:50 e2el:3000"),
            pairs(&[("ttft", 200.0), ("tpot", 50.0), ("e2el", 3000.0)])
        );
        assert_eq!(parsed("ttft:0.5"), pairs(&[("ttft", 0.5)]));
        assert_eq!(parsed("tpot:1e2"), pairs(&[("tpot", 100.0)]));
        assert_eq!(parsed("e2el:0"), pairs(&[("e2el", 0.0)]));
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

    fn shown(text: &str) -> String {
        Slo::parse([text]).unwrap_or_else(|error| panic!("{error}")).to_string()
    }

    #[test]
    fn objectives_are_read_with_labels_units_and_statistics() {
        for (text, right) in [
            ("ttft<=300ms", "ttft ≤ 300 ms"),
            ("ttft ≤ 0.3s, tpot <= 50ms", "ttft ≤ 300 ms, tpot ≤ 50 ms"),
            ("icl.p99 <= 100ms and e2el <= 30s", "icl.p99 ≤ 100 ms, e2el ≤ 30000 ms"),
            ("itl.mean <= 1500us, icl.max <= 2s", "itl.mean ≤ 1.5 ms, icl.max ≤ 2000 ms"),
            ("start <= 1e3ms", "start ≤ 1000 ms"),
            ("tenant=a: ttfc <= 1m", "tenant=a: ttfc ≤ 60000 ms"),
            ("chat: ttft <= 1s;e2el <= 2s", "e2el ≤ 2000 ms; chat: ttft ≤ 1000 ms"),
            ("url=http://h:8000/v1: ttft <= 1s", "url=http://h:8000/v1: ttft ≤ 1000 ms"),
            ("mlperf:llama2-70b-interactive", "ttft ≤ 450 ms, tpot ≤ 40 ms"),
            ("tenant=a: mlperf:qwen3-vl", "tenant=a: e2el ≤ 12000 ms"),
            ("ttft <= 1s; ; tpot <= 1s;", "ttft ≤ 1000 ms, tpot ≤ 1000 ms"),
            (" ", ""),
        ] {
            assert_eq!(shown(text), right, "{text}");
        }
    }

    #[test]
    fn wrong_objectives_say_what_to_write() {
        for (text, says) in [
            ("ttft", "has no <="),
            ("ttft < 300ms", "write <= and not <"),
            ("ttft <= 300", "write 300ms or 300s"),
            ("ttft <= 300 d", "not one of us, ms, s, m"),
            ("ttft <= x", "is no time"),
            ("ttft <= -1ms", "not negative"),
            ("ttft <= infs", "is no time"),
            ("icl <= 3ms", "needs a statistic"),
            ("itl.p98 <= 3ms", "needs a statistic"),
            ("ttft.p99 <= 3ms", "one ttft"),
            ("latency <= 3ms", "not one of ttft"),
            ("ttft <= 1s, ttft <= 2s", "bounded twice"),
            ("start <= 1s, ttfc <= 2s", "bounded twice"),
            ("ttft <= 1s,", "a term is missing"),
            ("tenant=: ttft <= 1s", "NAME=VALUE"),
            ("=a: ttft <= 1s", "NAME=VALUE"),
            (": ttft <= 1s", "NAME=VALUE"),
            ("t=a: ttft <= 1s; t=a: tpot <= 1s", "same label"),
            ("mlperf:gpt5", "llama2-70b-interactive"),
        ] {
            let error = Slo::parse([text]).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
            assert!(error.starts_with("--slo"), "{error}");
        }
    }

    #[test]
    fn a_label_by_its_value_must_mean_one() {
        let known: KnownLabels = [("class", "chat"), ("tenant", "a"), ("tenant", "chat")]
            .iter()
            .fold(KnownLabels::new(), |mut known, (name, value)| {
                known.entry((*name).to_owned()).or_default().insert((*value).to_owned());
                known
            });
        let named = |text: &str| {
            let mut slo = Slo::parse([text]).unwrap();
            slo.name_labels(&known).map(|()| slo.to_string())
        };
        assert_eq!(named("a: ttft <= 1s").unwrap(), "tenant=a: ttft ≤ 1000 ms");
        assert_eq!(named("class=chat: ttft <= 1s").unwrap(), "class=chat: ttft ≤ 1000 ms");
        let error = named("chat: ttft <= 1s").unwrap_err().to_string();
        assert!(error.contains("class=chat, tenant=chat"), "{error}");
        let error = named("tenant=b: ttft <= 1s").unwrap_err().to_string();
        assert!(error.contains("class=chat, tenant=a, tenant=chat"), "{error}");
        let error = named("a: ttft <= 1s; tenant=a: tpot <= 1s").unwrap_err().to_string();
        assert!(error.contains("same label"), "{error}");
    }

    fn quantity() -> impl Strategy<Value = Quantity> {
        let statistic = prop::sample::select(Statistic::ALL);
        prop_oneof![
            prop::sample::select(Quantity::PLAIN),
            statistic.clone().prop_map(Quantity::Icl),
            statistic.prop_map(Quantity::Itl),
        ]
    }

    proptest! {
        #[test]
        fn what_is_stored_reads_back_as_the_same(
            plain in prop::collection::vec((quantity(), 0.0..1e9f64), 0..3),
            labelled in prop::collection::btree_map("[a-z]{1,3}=[a-z:/.,]{0,4}[a-z]", (quantity(), 0.0..1e9f64), 0..3),
        ) {
            let term = |(quantity, limit_ms)| Term { quantity, limit_ms };
            let mut terms: Vec<Term> = Vec::new();
            for one in plain.into_iter().map(term) {
                // One bound of a start is all that a set can have.
                let kind = |quantity: Quantity| match quantity {
                    Quantity::Ttft | Quantity::Ttfc => Quantity::Start,
                    other => other,
                };
                if terms.iter().all(|other| kind(other.quantity) != kind(one.quantity)) {
                    terms.push(one);
                }
            }
            let labelled = labelled.into_iter().map(|(label, one)| {
                let (name, value) = label.split_once('=').expect("drawn with one");
                let label = Label { name: Some(name.to_owned()), value: value.to_owned() };
                Labelled { label, terms: vec![term(one)] }
            });
            let slo = Slo { terms, labelled: labelled.collect() };
            let text = stored(&slo);
            prop_assert_eq!(Slo::from_stored(&text), Ok(slo));
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            let _ = Slo::parse([text.as_str()]);
        }
    }
}
