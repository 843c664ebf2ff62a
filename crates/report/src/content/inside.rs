//! What was seen inside the server, and what follows from it: stages of TTFT,
//! resources, findings, and lints beside the numbers that they concern.

use std::fmt::Display;

use measure::efficiency::Figure;
use measure::finding::{Evidence, Finding, Lint};
use measure::metric::{Branch, METRICS, find};
use measure::said::Said;
use measure::stage::{self, Stage};
use measure::summary::Summary;

use super::{missing, not_available};
use crate::bars::bar_of;
use crate::catalogue::report as words;
use crate::document::{Block, Document, Row, Section};
use crate::lang::Lang;
use crate::number::{count, duration_ms, percent, short};

/// Where the mean TTFT goes, as bars and figures, or why that is not known.
pub(super) fn stages(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let split = &summary.inside.stages;
    if let (Some(ms), false) = (split.ttft_mean_ms, split.stages.is_empty()) {
        page.line(&lang.fill(words::STAGES_OF, &[("ms", &duration_ms(ms))]));
        let titles = [
            lang.pick(words::COLUMN_STAGE),
            &format!("{}, ms", lang.pick(words::COLUMN_MEAN)),
            lang.pick(words::COLUMN_SHARE),
            "",
            lang.pick(words::COLUMN_FROM),
        ];
        let rows = split.stages.iter().map(|stage| stage_row(stage, lang)).collect();
        page.table_of_words(titles.map(str::to_owned).to_vec(), rows, &[3, 4]);
        for stage in &split.stages {
            let said = [
                ("name", &stage_name(stage, lang) as &dyn Display),
                ("how", &lang.sentence(&stage.how)),
            ];
            page.sentence(4, &lang.fill(words::STAGE_HOW, &said));
        }
    }
    let hidden: Vec<&str> = stage::METRICS
        .iter()
        .filter(|(key, _)| split.metric(key).is_none())
        .filter_map(|(key, _)| find(key))
        .map(|metric| metric.symbol)
        .collect();
    if !hidden.is_empty() {
        let mut names = hidden;
        if split.stages.is_empty() {
            names.push(lang.pick(words::STAGES));
        }
        let names = names.join(lang.pick(words::BETWEEN_NAMES));
        let why = super::why(summary, "queueing_ms", lang);
        let said = [("names", &names as &dyn Display), ("why", &why)];
        page.sentence(2, &lang.fill(words::NAMES_NOT_AVAILABLE, &said));
    } else if let Some(why) = &split.refused {
        page.sentence(2, &lang.fill(words::NO_FULL_SPLIT, &[("why", &lang.sentence(why))]));
    }
    if let Some(share) = split.foreign_share.filter(|share| *share > 0.0) {
        page.sentence(2, &lang.fill(words::FOREIGN_SHARE, &[("share", &percent(share))]));
    }
    for note in &split.notes {
        page.sentence(2, lang.sentence(note));
    }
}

fn stage_name(stage: &Stage, lang: Lang) -> String {
    let name = lang.pick(stage.name);
    if !stage.is_residual {
        return name.to_owned();
    }
    lang.fill(words::RESIDUAL, &[("name", &name)])
}

fn stage_row(stage: &Stage, lang: Lang) -> Row {
    let about = stage::METRICS.iter().find(|(_, id)| *id == stage.id).map(|(key, _)| *key);
    let cells = vec![
        stage_name(stage, lang),
        short(stage.mean_ms),
        percent(stage.share),
        bar_of(stage.share),
        lang.pick(stage.from.text()).to_owned(),
    ];
    Row { about, cells }
}

/// Figures of hardware and money with their inputs, those that are missing by
/// their reason, and six signals that are read together.
pub(super) fn resources(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    page.section("resources", lang.pick(words::RESOURCES));
    let efficiency = &summary.inside.efficiency;
    let reasons = summary.reasons();
    let mut missing: Vec<(&Said, Vec<&str>)> = Vec::new();
    for metric in METRICS.iter().filter(|metric| metric.branch == Branch::Efficiency) {
        if let Some(figure) = efficiency.figure(metric.key)
            && let Ok(value) = figure.value
        {
            let value = with_inputs(figure, value, metric.unit.symbol(), lang);
            page.figure(metric.key, crate::document::symbol(metric.symbol), &value);
            continue;
        }
        let Some((_, why)) = reasons.iter().find(|(key, _)| key == metric.key) else { continue };
        match missing.iter_mut().find(|(known, _)| *known == why) {
            Some((_, symbols)) => symbols.push(metric.symbol),
            None => missing.push((why, vec![metric.symbol])),
        }
    }
    for (why, symbols) in missing {
        let names = symbols.join(lang.pick(words::BETWEEN_NAMES));
        let said = [("names", &names as &dyn Display), ("why", &lang.sentence(why))];
        page.sentence(2, &lang.fill(words::NAMES_NOT_AVAILABLE, &said));
    }
    panel(page, summary);
}

/// The six signals of seed 000, each a value or what would expose it.
fn panel(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let panel = &summary.inside.efficiency.panel;
    if panel.is_empty() {
        return;
    }
    page.line(lang.pick(words::PANEL));
    let row = |figure: &Figure| {
        let value = match &figure.value {
            Ok(value) => with_inputs(figure, *value, figure.unit, lang),
            Err(why) => not_available(lang.sentence(why), lang),
        };
        (panel_name(figure.key, lang), value)
    };
    page.pairs(panel.iter().map(row).collect());
}

/// What a signal of the panel is called.
fn panel_name(key: &str, lang: Lang) -> String {
    let own = words::PANEL_NAMES.iter().find(|(known, _)| *known == key);
    match (own, find(key)) {
        (Some((_, name)), _) => lang.pick(*name).to_owned(),
        (None, Some(metric)) => metric.symbol.to_owned(),
        (None, None) => key.to_owned(),
    }
}

fn with_inputs(figure: &Figure, value: f64, unit: &str, lang: Lang) -> String {
    let value = number(value, unit);
    if figure.inputs.is_empty() {
        return value;
    }
    let said = [("value", &value as &dyn Display), ("inputs", &sentences(&figure.inputs, lang))];
    lang.fill(words::INPUTS, &said)
}

/// A number with its unit. A share is shown as percent, a count without
/// decimals.
fn number(value: f64, unit: &str) -> String {
    match unit {
        "share" => percent(value),
        "ratio" | "" => plain(value),
        "ms" => duration_ms(value),
        _ => format!("{} {unit}", plain(value)),
    }
}

fn plain(value: f64) -> String {
    let whole = value.fract() == 0.0 && (0.0..1e15).contains(&value);
    if whole { count(value as u64) } else { short(value) }
}

fn sentences(all: &[Said], lang: Lang) -> String {
    let all: Vec<&str> = all.iter().map(|said| lang.sentence(said)).collect();
    all.join(lang.pick(words::SEMICOLON))
}

/// The findings, the one that explains most first, and what could not be
/// concluded.
pub(super) fn directions(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    page.section("directions", lang.pick(words::DIRECTIONS));
    match summary.inside.findings.as_deref() {
        None => page.pair(words::FINDINGS, &missing(summary, "findings", lang)),
        Some([]) => page.pair(words::FINDINGS, lang.pick(words::NOTHING_FOUND)),
        Some(findings) => {
            for (place, one) in findings.iter().enumerate() {
                finding(page, place + 1, one);
            }
            page.sentence(2, lang.pick(words::JUDGED_BY));
        }
    }
    if !summary.inside.missing.is_empty() {
        page.line(lang.pick(words::NOT_CONCLUDED));
        for what in &summary.inside.missing {
            page.sentence(4, lang.sentence(what));
        }
    }
    page.sentence(2, lang.pick(words::ASK_EXPLAIN));
}

/// One finding, the how manieth.
pub(crate) fn finding(page: &mut Document, place: usize, finding: &Finding) {
    let lang = page.lang;
    let label = format!("{place} {}", lang.pick(finding.confidence.text()));
    let says = lang.fill(
        words::FINDING_SAYS,
        &[
            ("title", &lang.sentence(&finding.title)),
            ("class", &lang.pick(finding.class.text())),
            ("rule", &finding.rule),
            ("says", &lang.sentence(&finding.says)),
        ],
    );
    page.labelled(&label, &says);
    page.pair(words::EVIDENCE, &evidence(&finding.evidence, lang));
    let against = if finding.against.is_empty() {
        lang.pick(words::NOTHING_AGAINST).to_owned()
    } else {
        evidence(&finding.against, lang)
    };
    page.pair(words::AGAINST, &against);
    if !finding.missing.is_empty() {
        page.pair(words::STILL_MISSING, &sentences(&finding.missing, lang));
    }
    let mut directions = finding.directions.iter().map(|direction| {
        let text = lang.sentence(&direction.text);
        match &direction.flag {
            Some(flag) => lang.fill(words::DIRECTION, &[("text", &text), ("flag", flag)]),
            None => text.to_owned(),
        }
    });
    if let Some(first) = directions.next() {
        page.pair(words::CHANGE, &first);
        directions.for_each(|more| page.more(&more));
    }
    page.pair(words::MUST_IMPROVE, &symbols(finding.improves, lang));
    page.pair(words::NEXT_EXPERIMENT, lang.sentence(&finding.experiment));
    if let Some(command) = &finding.command {
        page.command(command);
    }
    if !finding.seen_live {
        page.sentence(4, lang.pick(words::ONLY_MADE_DATA));
    }
}

/// What readers call these metrics.
pub(super) fn symbols(keys: &[&'static str], lang: Lang) -> String {
    let symbols: Vec<&str> =
        keys.iter().map(|key| find(key).map_or(*key, |metric| metric.symbol)).collect();
    symbols.join(lang.pick(words::BETWEEN_NAMES))
}

fn evidence(evidence: &[Evidence], lang: Lang) -> String {
    let item = |one: &Evidence| {
        let what = lang.sentence(&one.what);
        let value = number(one.value, one.unit);
        let from = lang.pick(one.from.text());
        let said: [(&str, &dyn Display); 3] = [("what", &what), ("value", &value), ("from", &from)];
        lang.fill(words::EVIDENCE_ITEM, &said)
    };
    evidence.iter().map(item).collect::<Vec<_>>().join(lang.pick(words::SEMICOLON))
}

/// Sections whose numbers lints may stand beside: in the definitions and the
/// stages of a page, a metric is named without being one.
const BESIDE: &[&str] =
    &["phases", "tail", "throughput", "resources", "goodput", "offered", "workload"];

/// Puts every lint behind the number that it concerns; one whose number is not
/// on the page stands among the caveats.
pub(super) fn place_lints(page: &mut Document, lints: &[Lint]) {
    let lang = page.lang;
    // Backwards, so that several of one number keep their order.
    for lint in lints.iter().rev() {
        let block = Block::Sentence(4, lint_words(lint, lang));
        let place = BESIDE.iter().find_map(|id| {
            let section = page.sections.iter().position(|section| section.id == *id)?;
            Some((section, behind(&page.sections[section], lint.concerns)?))
        });
        let last = page.sections.iter().position(|section| section.id == "caveats");
        match place.or_else(|| Some((last?, page.sections[last?].blocks.len()))) {
            Some((section, at)) => page.sections[section].blocks.insert(at, block),
            None => debug_assert!(false, "a page without caveats has no place for {}", lint.id),
        }
    }
}

pub(super) fn lint_words(lint: &Lint, lang: Lang) -> String {
    let symbol = find(lint.concerns).map_or(lint.concerns, |metric| metric.symbol);
    let said: [(&str, &dyn Display); 3] =
        [("symbol", &symbol), ("says", &lang.sentence(&lint.says)), ("id", &lint.id)];
    lang.fill(words::LINT, &said)
}

/// The place behind the first block about this metric.
fn behind(section: &Section, key: &str) -> Option<usize> {
    let about = |block: &Block| match block {
        Block::Pair(pair) => pair.about == Some(key),
        Block::Pairs(pairs) => pairs.iter().any(|pair| pair.about == Some(key)),
        Block::Table(table) => table.rows.iter().any(|row| row.about == Some(key)),
        Block::Sentence(..) | Block::Line(_) | Block::Command(_) => false,
    };
    section.blocks.iter().position(about).map(|at| at + 1)
}
