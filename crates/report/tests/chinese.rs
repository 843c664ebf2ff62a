//! A Chinese report holds no English but the field's own words and what was
//! recorded: texts of a run, of a server and of the user.

#[allow(dead_code, reason = "one builder for the tests of two crates")]
mod runs;

use std::collections::BTreeSet;

use measure::definition::{Definition, Endpoint};
use measure::metric::METRICS;
use measure::outcome::{FailureKind, NotSentKind};
use measure::slices::Part;
use measure::summary::{Summary, summarise};
use measure::{TokensSource, Warnings};
use report::content::document;
use report::document::{Block, Document};
use report::lang::Lang;

/// Words that Chinese engineers write in English, names of stamps and
/// commands.
const TERMS: &str = "goodput VALID DEGRADED INVALID n a P50 P90 P95 P99 P75 req tok s ms token chunk prompt \
    makespan choice usage DONE OSL SLO HTTP vLLM vllm TCP explain WORD NAME selftest ulimit \
    diagnose slo isolated RUN ttft tpot e2el icl itl p99 intended_at released_at sent_at max concurrency request timeout GB DCGM metrics url KV";

/// Every run under two definitions.
fn summaries() -> Vec<(String, Summary)> {
    let vllm = Definition::preset("vllm", Endpoint::Chat).expect("a preset");
    runs::all()
        .into_iter()
        .flat_map(|(name, run)| {
            let theirs = summarise(&run.records, &run.facts, &vllm);
            [(name.to_owned(), run.summary()), (format!("{name} as vllm"), theirs)]
        })
        .chain([("seen".to_owned(), runs::seen())])
        .collect()
}

/// What the tool did not word itself, longest first.
fn recorded(summary: &Summary) -> Vec<String> {
    let facts = &summary.facts;
    let mut recorded = vec![facts.target.clone(), facts.api.clone(), facts.run_id.clone()];
    recorded.extend(facts.model.clone());
    recorded.extend(facts.engine.clone());
    recorded.extend([facts.load.arrivals.clone(), facts.load.schedule_hash.clone()]);
    let workload = &facts.workload;
    recorded.extend([workload.source.clone(), workload.cache_regime.clone()]);
    recorded.extend([workload.input_lengths.clone(), workload.output_lengths.clone()]);
    recorded.extend(workload.notes.clone());
    recorded.push(facts.instrument.stamp_source.clone());
    recorded.extend(facts.as_reported.iter().map(|(key, _)| key.clone()));
    // Flags of engines and names of rules are the same in every language.
    for finding in summary.inside.findings.iter().flatten() {
        recorded.push(finding.rule.to_owned());
        recorded.extend(finding.directions.iter().filter_map(|direction| direction.flag.clone()));
    }
    recorded.extend(summary.inside.lints.iter().map(|lint| lint.id.to_owned()));
    let messages = summary.outcomes.messages.values();
    recorded.extend(messages.map(|message| message.chars().take(300).collect()));
    let labels = summary.goodput.iter().flat_map(|goodput| &goodput.per_label);
    recorded.extend(labels.map(|label| format!("{}={}", label.name, label.value)));
    for slice in &summary.slices.by_label {
        if let Part::Label { name, value } = &slice.of {
            recorded.push(name.clone());
            recorded.extend(value.clone());
        }
    }
    // A bare length gets its unit from the report.
    recorded.retain(|text| text.chars().any(char::is_alphabetic));
    recorded.sort_by_key(|text| std::cmp::Reverse(text.len()));
    recorded
}

/// Every text of a report.
fn texts(document: &Document) -> Vec<&str> {
    let mut texts = vec![document.title.as_str(), document.headline.as_str()];
    texts.extend(document.lines.iter().map(String::as_str));
    for section in &document.sections {
        texts.push(&section.title);
        for block in &section.blocks {
            match block {
                Block::Pair(pair) => texts.extend([pair.label.as_str(), &pair.value]),
                Block::Pairs(pairs) => {
                    texts.extend(pairs.iter().flat_map(|pair| [pair.label.as_str(), &pair.value]));
                }
                Block::Sentence(_, text) | Block::Line(text) => texts.push(text),
                // A command is the same in every language.
                Block::Command(_) => {}
                Block::Table(table) => {
                    texts.extend(table.columns.iter().map(String::as_str));
                    let cells = table.rows.iter().flat_map(|row| &row.cells);
                    texts.extend(cells.map(String::as_str));
                }
            }
        }
    }
    texts
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// What follows the flag at the beginning of a part that stood behind dashes.
fn without_flag((place, part): (usize, &str)) -> &str {
    let is_of_flag = |c: char| c.is_ascii_lowercase() || c == '-';
    if place == 0 { part } else { part.trim_start_matches(is_of_flag) }
}

#[test]
fn a_chinese_report_holds_no_english_but_terms_and_what_was_recorded() {
    let symbols = METRICS.iter().flat_map(|metric| [metric.symbol, metric.unit.symbol()]);
    let kinds = FailureKind::ALL.iter().map(|kind| kind.name());
    let kinds = kinds.chain(NotSentKind::ALL.iter().map(|kind| kind.name()));
    let warnings = Warnings::NAMES.iter().map(|(_, name)| *name);
    let sources = TokensSource::ALL.iter().map(|source| source.name());
    let known: BTreeSet<&str> = symbols
        .chain(kinds)
        .chain(warnings)
        .chain(sources)
        .flat_map(words)
        .chain(TERMS.split(' '))
        .collect();
    for (name, summary) in summaries() {
        let recorded = recorded(&summary);
        let chinese = document(&summary, None, Lang::Zh);
        for text in texts(&chinese) {
            let own = recorded.iter().fold(text.to_owned(), |text, known| text.replace(known, " "));
            // A flag is typed as it is in any language.
            let own: Vec<&str> = own.split("--").enumerate().map(without_flag).collect();
            let own = own.join(" ");
            let foreign: Vec<&str> = words(&own).filter(|word| !known.contains(word)).collect();
            assert!(foreign.is_empty(), "{name}: {foreign:?} in {text:?}");
        }
    }
}

#[test]
fn both_languages_say_the_same_things_in_the_same_places() {
    for (name, summary) in summaries() {
        let [english, chinese] = [Lang::En, Lang::Zh].map(|lang| document(&summary, None, lang));
        let shape = |document: &Document| -> Vec<(&'static str, Vec<String>)> {
            let block = |block: &Block| match block {
                Block::Pair(pair) => format!("pair {:?} {:?}", pair.about, pair.mark),
                Block::Pairs(pairs) => format!("{} pairs", pairs.len()),
                Block::Sentence(indent, _) => format!("sentence at {indent}"),
                Block::Line(_) => "line".to_owned(),
                Block::Command(command) => command.clone(),
                Block::Table(table) => format!("table of {}", table.rows.len()),
            };
            let sections = document.sections.iter();
            sections.map(|one| (one.id, one.blocks.iter().map(block).collect())).collect()
        };
        assert_eq!(shape(&english), shape(&chinese), "{name}");
        // Every figure of the one stands in the other.
        for (en, zh) in texts(&english).into_iter().zip(texts(&chinese)) {
            let figures = |text: &str| {
                let mut figures: Vec<String> = text
                    .split(|c: char| !c.is_ascii_digit() && c != '.')
                    .filter(|figure| figure.starts_with(|c: char| c.is_ascii_digit()))
                    .map(|figure| figure.trim_end_matches('.').to_owned())
                    .collect();
                figures.sort();
                figures
            };
            assert_eq!(figures(en), figures(zh), "{name}: {en:?} {zh:?}");
        }
    }
}

#[test]
fn a_section_title_a_label_and_a_column_have_chinese_or_are_symbols() {
    let is_han = |c: char| ('\u{4e00}'..='\u{9fff}').contains(&c);
    for (name, summary) in summaries() {
        let chinese = document(&summary, None, Lang::Zh);
        assert!(chinese.title.contains(is_han), "{name}");
        for section in &chinese.sections {
            assert!(section.title.contains(is_han), "{name}: {}", section.title);
            for block in &section.blocks {
                let Block::Pair(pair) = block else { continue };
                let is_symbol = METRICS.iter().any(|metric| metric.symbol == pair.label);
                let said = pair.label.contains(is_han) || pair.label.is_empty() || is_symbol;
                assert!(said, "{name}: {}", pair.label);
            }
        }
    }
}
