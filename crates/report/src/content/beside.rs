//! Several runs under each other: under which conditions each was made, in what
//! they differ, and their main figures. It gives no verdict.

use insight::conditions::{Difference, Value, differences};
use insight::lint;
use measure::finding::Lint;
use measure::metric::find;
use measure::summary::Summary;

use super::inside::lint_words;
use super::{bounded, distribution, head};
use crate::catalogue::report as words;
use crate::document::{Document, Row};
use crate::lang::Lang;
use crate::number::{count, percent, short};

/// The runs side by side. The first line of each is its headline, and next to it
/// stand its conditions.
pub fn beside(runs: &[&Summary], lang: Lang) -> Document {
    let title = lang.fill(words::BESIDE_TITLE, &[("n", &count(runs.len() as u64))]);
    let mut page = Document { lang, title, ..Document::default() };
    page.section("runs", lang.pick(words::BESIDE_RUNS));
    for (place, run) in runs.iter().enumerate() {
        let head = head(run, lang);
        page.labelled(&name(place), &head.headline);
        page.labelled("", &head.conditions);
        for line in head.lines {
            page.labelled("", &line);
        }
    }
    let found = differences(runs);
    page.section("conditions", lang.pick(words::BESIDE_CONDITIONS));
    let (decide, more): (Vec<_>, Vec<_>) = found.iter().partition(|one| one.decides);
    if decide.is_empty() {
        page.line(lang.pick(words::SAME_CONDITIONS));
    } else {
        page.line(lang.pick(words::NOT_COMPARABLE));
        difference_table(&mut page, &decide, runs.len());
    }
    if !more.is_empty() {
        page.line(lang.pick(words::ALSO_DIFFER));
        difference_table(&mut page, &more, runs.len());
    }
    page.section("figures", lang.pick(words::BESIDE_FIGURES));
    figures(&mut page, runs);
    page.sentence(2, lang.pick(words::NO_VERDICT));
    let said = lints(runs, lang);
    if !said.is_empty() {
        page.section("lints", lang.pick(words::LINTS_TITLE));
        said.iter().for_each(|words| page.sentence(2, words));
    }
    page
}

/// What is easily misread in the runs together, each with the letters of its two
/// runs where there are more.
pub(crate) fn lints(runs: &[&Summary], lang: Lang) -> Vec<String> {
    let words = |(place, lint): &(usize, Lint)| {
        let words = lint_words(lint, lang);
        if runs.len() > 2 { format!("A, {}: {words}", name(*place)) } else { words }
    };
    lint::beside(runs).iter().map(words).collect()
}

/// Runs are lettered, as their ids take a line each.
fn name(place: usize) -> String {
    char::from_u32('A' as u32 + place as u32).map_or_else(|| place.to_string(), String::from)
}

fn names(first: &str, runs: usize) -> Vec<String> {
    std::iter::once(first.to_owned()).chain((0..runs).map(name)).collect()
}

fn difference_table(page: &mut Document, differences: &[&Difference], runs: usize) {
    let lang = page.lang;
    let row = |difference: &&Difference| {
        let values = difference.values.iter().map(|value| words_of(value.as_ref(), lang));
        let what = lang.pick(difference.what).to_owned();
        Row { about: None, cells: std::iter::once(what).chain(values).collect() }
    };
    let rows = differences.iter().map(row).collect();
    let left: Vec<usize> = (1..=runs).collect();
    page.table_of_words(names(lang.pick(words::COLUMN_CONDITION), runs), rows, &left);
}

fn words_of(value: Option<&Value>, lang: Lang) -> String {
    match value {
        None => lang.pick(words::NOT_GIVEN).to_owned(),
        Some(Value::Words(text)) => text.clone(),
        Some(Value::Number(number) | Value::Mean(number)) => short(*number),
        Some(Value::Share(share)) => percent(*share),
    }
}

/// Latencies that are shown, and which figures of each.
const LATENCIES: &[(&str, &[&str])] = &[
    ("ttft_ms", &["p50", "p99"]),
    ("tpot_ms", &["p50", "p99"]),
    ("itl_ms", &["p99"]),
    ("e2el_ms", &["p50", "p99"]),
];

fn figures(page: &mut Document, runs: &[&Summary]) {
    let lang = page.lang;
    let mut rows = Vec::new();
    for (key, statistics) in LATENCIES {
        let Some(metric) = find(key) else { continue };
        for statistic in *statistics {
            let of = |run: &&Summary| match distribution(&run.metrics, key) {
                Some(figures) if figures.n > 0 => bounded(figures, statistic, lang),
                _ => "–".to_owned(),
            };
            let what =
                format!("{} {}, {}", metric.symbol, statistic.to_uppercase(), metric.unit.symbol());
            let cells = std::iter::once(what).chain(runs.iter().map(of)).collect();
            rows.push(Row { about: Some(metric.key), cells });
        }
    }
    for (key, read) in RATES {
        let Some(metric) = find(key) else { continue };
        let unit = metric.unit.symbol();
        let show = if unit == "share" { percent } else { short };
        let of = |run: &&Summary| read(run).map_or("–".to_owned(), show);
        let said = unit == "share" || metric.symbol.contains(unit);
        let unit = if said { String::new() } else { format!(", {unit}") };
        let what = format!("{}{unit}", metric.symbol);
        let cells = std::iter::once(what).chain(runs.iter().map(of)).collect();
        rows.push(Row { about: Some(metric.key), cells });
    }
    page.table(names(lang.pick(words::COLUMN_FIGURE), runs.len()), rows);
}

type Rate = (&'static str, fn(&Summary) -> Option<f64>);

/// Figures of a run as a whole.
const RATES: &[Rate] = &[
    ("output_tok_s", |run| run.throughput.output_tok_s),
    ("req_s", |run| run.throughput.req_s),
    ("goodput_req_s", |run| run.goodput.as_ref()?.req_s),
    ("goodput_tok_s", |run| run.goodput.as_ref()?.tok_s),
    ("attainment", |run| run.goodput.as_ref()?.attainment),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_lettered() {
        assert_eq!((name(0), name(1)), ("A".to_owned(), "B".to_owned()));
        assert_eq!(names("figure", 2), ["figure", "A", "B"]);
    }
}
