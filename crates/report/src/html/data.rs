//! The data of a page as JSON. `assets/page.d.ts` says the same to the scripts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use measure::Record;
use measure::metric::{Branch, METRICS, Metric, Text};
use measure::picture::{self, Cloud, Lane, Picture, Shape};
use measure::request::Settings;
use measure::slo::Quantity;
use measure::summary::Summary;
use serde_json::{Map, Value, json};

use super::Script;
use crate::catalogue::{PAGE, WEB};
use crate::content::{beside, document, lints_beside};
use crate::document::{Block, Document, Pair};
use crate::explain;
use crate::glossary::TREE;
use crate::lang::Lang;

/// The format of the data; raised when an older script could not read it.
const FORMAT: u32 = 1;

/// The runs of a page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The runs, over each other where there are several.
    pub runs: &'a [PageRun],
    /// The program's version.
    pub version: &'a str,
}

/// One run of a page.
#[derive(Clone, Debug)]
pub struct PageRun {
    /// What it is called beside others.
    pub name: String,
    /// Its figures.
    pub summary: Summary,
    /// Its pictures.
    pub picture: Picture,
    /// What must be said of its files: a part that could not be read, say.
    pub notes: Vec<String>,
}

impl PageRun {
    /// A run as pages show it, named by its model and the end of its id, which
    /// is what differs between runs; `notes` are what must be said of its files.
    pub fn of(records: &[Record], summary: &Summary, notes: &[String]) -> Self {
        let id = &summary.facts.run_id;
        let short: String = id.chars().skip(id.len().saturating_sub(6)).collect();
        let model = summary.facts.model.as_deref().unwrap_or("run");
        Self {
            name: format!("{model} {short}").trim_end().to_owned(),
            summary: summary.clone(),
            picture: picture::picture(records, summary),
            notes: notes.to_vec(),
        }
    }

    /// The run as data.
    pub fn json(&self) -> Value {
        run(self)
    }
}

impl Page<'_> {
    pub(super) fn title(&self) -> String {
        let names: Vec<&str> = self.runs.iter().map(|run| run.name.as_str()).collect();
        format!("goodput · {}", names.join(" · "))
    }

    pub(super) fn documents(&self, lang: Lang) -> Vec<Document> {
        let runs: Vec<&Summary> = self.runs.iter().map(|run| &run.summary).collect();
        let together = (runs.len() > 1).then(|| beside(&runs, lang));
        together.into_iter().chain(runs.iter().map(|run| document(run, None, lang))).collect()
    }

    /// The page's data.
    pub fn json(&self, lang: Lang) -> Value {
        let mut page = common("report", lang, self.version);
        page.insert("runs".to_owned(), self.runs.iter().map(run).collect());
        let runs: Vec<&Summary> = self.runs.iter().map(|run| &run.summary).collect();
        let lints = |lang| lints_beside(&runs, lang);
        page.insert("lints".to_owned(), json!({ "en": lints(Lang::En), "zh": lints(Lang::Zh) }));
        Value::Object(page)
    }
}

/// A page of the web server, which fetches its runs.
#[derive(Clone, Copy, Debug)]
pub struct WebPage<'a> {
    /// The program's version.
    pub version: &'a str,
}

impl WebPage<'_> {
    /// The page's data.
    pub fn json(&self, lang: Lang) -> Value {
        let mut page = common("web", lang, self.version);
        if let Some(Value::Object(words)) = page.get_mut("words") {
            words.extend(WEB.iter().map(|(key, words)| ((*key).to_owned(), text(*words))));
        }
        page.insert("runs".to_owned(), json!([]));
        Value::Object(page)
    }
}

fn common(kind: &str, lang: Lang, version: &str) -> Map<String, Value> {
    let words: Map<String, Value> =
        PAGE.iter().map(|(key, words)| ((*key).to_owned(), text(*words))).collect();
    let page = json!({
        "format": FORMAT,
        "lang": lang.code(),
        "kind": kind,
        "version": version,
        "words": words,
        "metrics": METRICS.iter().map(metric).collect::<Vec<_>>(),
        "tree": TREE.iter().map(|(branch, leaves)| json!({
            "id": branch_id(*branch),
            "name": text(branch.name()),
            "leaves": leaves.iter().map(|leaf| json!({
                "symbol": leaf.symbol,
                "keys": leaf.keys,
                "name": text(leaf.name),
                "text": leaf.text.map(text),
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "reading_tok_s": Settings::default().reading_tok_s,
    });
    match page {
        Value::Object(page) => page,
        _ => Map::new(),
    }
}

const fn branch_id(branch: Branch) -> &'static str {
    match branch {
        Branch::Latency => "latency",
        Branch::Throughput => "throughput",
        Branch::Efficiency => "efficiency",
        Branch::Quality => "quality",
        Branch::Workload => "workload",
        Branch::Instrument => "instrument",
    }
}

fn text(text: Text) -> Value {
    json!({ "en": text.en, "zh": text.zh })
}

fn metric(metric: &Metric) -> Value {
    json!({
        "key": metric.key,
        "symbol": metric.symbol,
        "name": text(metric.name),
        "text": text(metric.text),
        "unit": metric.unit.symbol(),
        "level": text(explain::level(metric.level)),
        "better": text(explain::better(metric.better)),
        "branch": branch_id(metric.branch),
        "formula": metric.formula,
        "population": metric.population,
        "undefined_when": metric.undefined_when,
        "pitfalls": text(metric.pitfalls),
        "source": metric.source,
        "peers": metric.peers,
        "definition": metric.definition,
    })
}

/// One run as data.
fn run(run: &PageRun) -> Value {
    let summary = &run.summary;
    let (limits, beyond) = limits(summary);
    json!({
        "id": summary.facts.run_id,
        "name": run.name,
        "simulated": summary.facts.simulated,
        "notes": run.notes,
        "documents": {
            "en": shown(&document(summary, None, Lang::En)),
            "zh": shown(&document(summary, None, Lang::Zh)),
        },
        "slo": limits,
        "slo_beyond": beyond,
        "window_s": summary.load.goodput_window_s,
        "picture": picture(&run.picture, summary),
    })
}

/// The limits that charts mark and the playground takes, and the terms in words
/// that the playground cannot hold: it bounds TTFT, TPOT and E2EL of all its
/// requests alike.
fn limits(summary: &Summary) -> (Vec<Value>, Vec<String>) {
    let (mut limits, mut beyond) = (Vec::new(), Vec::new());
    let sets = summary.goodput.iter().flat_map(|goodput| goodput.slo.sets());
    for (set, term) in sets.flat_map(|set| set.terms.iter().map(move |term| (set, term))) {
        let label = set.label.map(ToString::to_string);
        if label.is_some() || !Quantity::GOODPUT.contains(&term.quantity) {
            let head = label.as_ref().map_or(String::new(), |label| format!("{label}: "));
            beyond.push(format!("{head}{term}"));
        }
        // Figures of one request's gaps are in no chart of requests.
        if Quantity::PLAIN.contains(&term.quantity) {
            let key = format!("{}_ms", term.quantity.word());
            limits.push(json!({ "key": key, "limit_ms": term.limit_ms, "label": label }));
        }
    }
    (limits, beyond)
}

fn shown(document: &Document) -> Value {
    let sections: Vec<Value> = document
        .sections
        .iter()
        .map(|section| {
            let blocks: Vec<Value> = section.blocks.iter().flat_map(block).collect();
            json!({ "id": section.id, "title": section.title, "blocks": blocks })
        })
        .collect();
    json!({
        "title": document.title,
        "verdict": document.verdict.map_or("", |verdict| verdict.name()),
        "headline": document.headline,
        "conditions": document.conditions,
        "lines": document.lines,
        "sections": sections,
    })
}

fn block(block: &Block) -> Vec<Value> {
    match block {
        Block::Pair(one) => vec![pair(one)],
        Block::Pairs(pairs) => pairs.iter().map(pair).collect(),
        Block::Sentence(_, text) | Block::Line(text) => {
            vec![json!({ "kind": "sentence", "text": text })]
        }
        Block::Command(command) => vec![json!({ "kind": "command", "text": command })],
        Block::Table(table) => {
            let rows: Vec<Value> = table
                .rows
                .iter()
                .map(|row| json!({ "about": row.about, "cells": row.cells }))
                .collect();
            let (columns, left) = (&table.columns, &table.left);
            vec![json!({ "kind": "table", "columns": columns, "rows": rows, "left": left })]
        }
    }
}

fn pair(pair: &Pair) -> Value {
    json!({
        "kind": "pair",
        "label": pair.label,
        "value": pair.value,
        "about": pair.about,
        "mark": pair.mark.map(|verdict| verdict.name()),
    })
}

fn picture(picture: &Picture, summary: &Summary) -> Value {
    let series = &picture.series;
    json!({
        "step_s": series.step.s(),
        "from_s": (series.from - measure::At::ZERO).s(),
        "offered": counts(&series.offered),
        "sent": counts(&series.sent),
        "completed": counts(&series.completed),
        "failed": counts(&series.failed),
        "in_flight": floats(&series.in_flight),
        "output_tokens": floats(&series.output_tokens),
        "shapes": picture.shapes.iter().map(shape).collect::<Vec<_>>(),
        "over_time": {
            "step_s": picture.over_time.step.s(),
            "from_s": (picture.over_time.from - measure::At::ZERO).s(),
            "in_flight": floats(&picture.over_time.in_flight),
            "of": picture.over_time.of.iter().map(|one| json!({
                "key": one.key,
                "p50": floats(&one.p50),
                "p90": floats(&one.p90),
                "p99": floats(&one.p99),
            })).collect::<Vec<_>>(),
        },
        "ttft_by_input": cloud(&picture.ttft_by_input),
        "lateness": cloud(&picture.lateness),
        "cap_wait": cloud(&picture.cap_wait),
        "client_lag_us": summary.validity.client_lag_us,
        "lanes": picture.lanes.iter().map(lane).collect::<Vec<_>>(),
        "requests": {
            "ttft_ms": floats(&picture.requests.ttft_ms),
            "e2el_ms": floats(&picture.requests.e2el_ms),
            "tokens": counts(&picture.requests.tokens),
            "of": picture.requests.of,
        },
    })
}

fn shape(shape: &Shape) -> Value {
    json!({
        "key": shape.key,
        "n": shape.n,
        "edges": floats(&shape.edges),
        "counts": counts(&shape.counts),
        "shares": floats(&shape.shares),
        "values": floats(&shape.values),
    })
}

fn cloud(cloud: &Cloud) -> Value {
    json!({ "x": floats(&cloud.x), "y": floats(&cloud.y), "of": cloud.of })
}

fn lane(lane: &Lane) -> Value {
    json!({
        "index": lane.index,
        "outcome": lane.outcome.name(),
        "intended_ms": lane.intended_ms,
        "sent_ms": lane.sent_ms,
        "end_ms": lane.end_ms,
        "tokens_ms": floats(&lane.tokens_ms),
        "tokens_of": lane.tokens_of,
        "slowest": lane.slowest,
    })
}

fn floats(values: &[f32]) -> Value {
    json!({ "f32": column(values.iter().flat_map(|value| value.to_le_bytes())) })
}

fn counts(values: &[u32]) -> Value {
    json!({ "u32": column(values.iter().flat_map(|value| value.to_le_bytes())) })
}

fn column(bytes: impl Iterator<Item = u8>) -> String {
    STANDARD.encode(bytes.collect::<Vec<u8>>())
}

/// A script as an address that holds it.
pub(super) fn inline(script: &Script) -> String {
    format!(
        "data:text/javascript;base64,{}",
        STANDARD.encode([script.text, script.behind].concat())
    )
}

/// JSON inside a script element. A `<` could end the element or begin a
/// comment, so there is none; in a JSON string its escape means the same.
pub(super) fn embedded(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Text in markup.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
