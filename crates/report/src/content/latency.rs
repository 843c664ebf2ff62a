//! Where the time of a request goes, and how far the tail is from the mean.

use measure::fairness::Fairness;
use measure::metric::{Better, Metric, find};
use measure::slices::{Part, Slice};
use measure::statistics::{Distribution, PERCENTILES, percentile_name};
use measure::summary::Summary;
use measure::undefined::Undefined;

use super::{bounded, distribution, inside, p50_p99_max};
use crate::catalogue::report as words;
use crate::document::{Document, Row};
use crate::lang::Lang;
use crate::number::{count, duration_ms, percent, short};

/// Rows of the comparison of mean and tail.
const TAILS: &[&str] = &["ttft_ms", "tpot_ms", "icl_ms", "e2el_ms"];

/// One column of figures.
#[derive(Clone, Copy)]
enum Figure {
    /// By its name: mean, std, min, p50 … max.
    Named(&'static str),
    /// A percentile that was asked for, in percent.
    Asked(f64),
}

impl Figure {
    fn title(self, lang: Lang) -> String {
        match self {
            Self::Named("mean") => lang.pick(words::COLUMN_MEAN).to_owned(),
            Self::Named("std") => lang.pick(words::COLUMN_STD).to_owned(),
            Self::Named("min") => lang.pick(words::COLUMN_MIN).to_owned(),
            Self::Named("max") => lang.pick(words::COLUMN_MAX).to_owned(),
            Self::Named(name) => name.replacen('p', "P", 1),
            Self::Asked(percent) => format!("P{percent}"),
        }
    }

    fn cell(self, figures: &Distribution, lang: Lang) -> String {
        match self {
            // The spread of equal values is the rounding of their sum.
            Self::Named("std") if is_rounding(figures) => short(0.0),
            Self::Named(name) => bounded(figures, name, lang),
            Self::Asked(percent) => {
                let found = figures.extra.iter().find(|(known, _)| *known == percent);
                found.and_then(|(_, value)| *value).map_or("n/a".to_owned(), short)
            }
        }
    }

    fn has_few_samples(self, figures: &Distribution) -> bool {
        let name = match self {
            Self::Named(name) => name.to_owned(),
            Self::Asked(percent) => percentile_name(percent),
        };
        figures.few_samples.contains(&name)
    }
}

fn is_rounding(figures: &Distribution) -> bool {
    figures.std.zip(figures.mean).is_some_and(|(std, mean)| std < 1e-9 * mean.abs())
}

/// The columns of the main table: the usual ones, and the percentiles that
/// were asked for in their places.
fn columns(summary: &Summary) -> Vec<Figure> {
    let usual = ["p50", "p90", "p95", "p99"];
    let mut percentiles: Vec<(f64, Figure)> = PERCENTILES
        .iter()
        .filter(|(name, _)| usual.contains(name))
        .map(|(name, q)| (q * 100.0, Figure::Named(name)))
        .collect();
    for percent in &summary.facts.percentiles {
        if percentiles.iter().all(|(known, _)| (known - percent).abs() > 1e-9) {
            percentiles.push((*percent, Figure::Asked(*percent)));
        }
    }
    percentiles.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut columns = vec![Figure::Named("mean"), Figure::Named("std"), Figure::Named("min")];
    columns.extend(percentiles.into_iter().map(|(_, figure)| figure));
    columns.push(Figure::Named("max"));
    columns
}

/// Rows of figures under each other, marked where few samples are behind one.
struct Figures {
    lang: Lang,
    columns: Vec<Figure>,
    rows: Vec<Row>,
    marked: bool,
}

impl Figures {
    const fn new(columns: Vec<Figure>, lang: Lang) -> Self {
        Self { lang, columns, rows: Vec::new(), marked: false }
    }

    fn add(&mut self, name: &str, metric: &Metric, figures: &Distribution) {
        debug_assert!(metric.better != Better::Higher, "latencies are better when lower");
        let unit = metric.unit.symbol();
        let mut row = vec![name.to_owned(), unit.to_owned(), count(figures.n)];
        for column in &self.columns {
            let cell = column.cell(figures, self.lang);
            let figure = cell.contains(|c: char| c.is_ascii_digit());
            let few = figure && column.has_few_samples(figures);
            self.marked |= few;
            row.push(format!("{cell}{}", if few { "*" } else { "" }));
        }
        self.rows.push(Row { about: Some(metric.key), cells: row });
    }

    fn print(self, page: &mut Document) {
        let unit = self.lang.pick(words::COLUMN_UNIT);
        let mut titles = vec![String::new(), unit.to_owned(), "n".to_owned()];
        titles.extend(self.columns.iter().map(|column| column.title(self.lang)));
        page.table(titles, self.rows);
        if self.marked {
            page.legend(words::FEW_SAMPLES);
        }
    }
}

pub(super) fn phases(page: &mut Document, summary: &Summary, rows: &[&'static str]) {
    let lang = page.lang;
    page.section("phases", lang.pick(words::PHASES_TITLE));
    let mut table = Figures::new(columns(summary), lang);
    let mut undefined: Vec<(Undefined, Vec<String>)> = Vec::new();
    for key in rows {
        let (Some(metric), Some(figures)) = (find(key), distribution(&summary.metrics, key)) else {
            continue;
        };
        if figures.n > 0 {
            table.add(metric.symbol, metric, figures);
        }
        if figures.n == 0 || figures.figure("p50").is_none() {
            let name = if figures.n > 0 {
                lang.fill(words::PERCENTILES_OF, &[("symbol", &metric.symbol)])
            } else {
                metric.symbol.to_owned()
            };
            match undefined.iter_mut().find(|(reason, _)| *reason == figures.reason()) {
                Some((_, names)) => names.push(name),
                None => undefined.push((figures.reason(), vec![name])),
            }
        }
    }
    table.print(page);
    for (reason, names) in undefined {
        let (names, why) = (names.join(lang.pick(words::BETWEEN_NAMES)), lang.pick(reason.texts()));
        page.sentence(
            2,
            &lang.fill(words::NAMES_NOT_AVAILABLE, &[("names", &names), ("why", &why)]),
        );
    }
    as_reported(page, summary);
    timed_phases(page, summary);
    inside::stages(page, summary);
}

/// The parts of a request that a client can see.
fn timed_phases(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    // An imported row has one start and no end: its parts would read zero.
    let lag = distribution(&summary.metrics, "finish_lag_ms");
    if let Some(why) = lag.map(Distribution::reason).filter(|why| *why == Undefined::NotInFile) {
        let why = lang.pick(why.texts());
        page.sentence(2, &lang.fill(words::PHASES_NOT_AVAILABLE, &[("why", &why)]));
        return;
    }
    let parts = [
        (words::INTENDED_TO_SENT, &summary.metrics, "client_wait_ms"),
        (words::SENT_TO_FIRST, &summary.service_metrics, "ttft_ms"),
        (words::FIRST_TO_END, &summary.metrics, "generation_ms"),
        (words::LAST_TO_END, &summary.metrics, "finish_lag_ms"),
    ];
    let columns = ["mean", "p50", "p90", "p99", "max"].map(Figure::Named).to_vec();
    let mut table = Figures::new(columns, lang);
    for (name, among, key) in parts {
        let figures = distribution(among, key).filter(|figures| figures.n > 0);
        if let (Some(metric), Some(figures)) = (find(key), figures) {
            table.add(lang.pick(name), metric, figures);
        }
    }
    table.print(page);
}

fn as_reported(page: &mut Document, summary: &Summary) {
    let reported = &summary.facts.as_reported;
    if reported.is_empty() {
        return;
    }
    page.line(page.lang.pick(words::AS_REPORTED));
    let pairs: Vec<(String, String)> =
        reported.iter().map(|(key, value)| (key.clone(), short(*value))).collect();
    page.pairs(pairs);
}

pub(super) fn mean_against_tail(page: &mut Document, summary: &Summary, rows: &[&'static str]) {
    let lang = page.lang;
    page.section("tail", lang.pick(words::TAIL_TITLE));
    let mut table = Vec::new();
    for key in TAILS.iter().filter(|key| rows.contains(key)) {
        let (Some(metric), Some(figures)) = (find(key), distribution(&summary.metrics, key)) else {
            continue;
        };
        let ratio = figures.figure("p50").filter(|p50| *p50 > 0.0).zip(figures.figure("p99"));
        let Some((p50, p99)) = ratio.filter(|_| figures.n > 1) else { continue };
        let mut row = vec![metric.symbol.to_owned(), metric.unit.symbol().to_owned()];
        row.extend(["mean", "p50", "p99"].map(|name| bounded(figures, name, lang)));
        row.push(short(p99 / p50));
        table.push(Row { about: Some(metric.key), cells: row });
    }
    if table.is_empty() {
        page.line(lang.pick(words::NO_TAIL));
    }
    let [unit, mean] = [words::COLUMN_UNIT, words::COLUMN_MEAN].map(|text| lang.pick(text));
    let titles = ["", unit, mean, "P50", "P99", "P99 ÷ P50"].map(str::to_owned);
    page.table(titles.to_vec(), table);
    weights(page, summary);
    stalls(page, summary);
    everybody(page, summary);
    slices(page, summary);
    steady(page, summary, rows);
}

/// Who waits: requests by prompt length and by label. One part alone says
/// nothing that the whole does not.
fn slices(page: &mut Document, summary: &Summary) {
    let (lang, slices) = (page.lang, &summary.slices);
    if slices.by_input.len() > 1 {
        page.line(lang.pick(words::BY_INPUT));
        slice_table(page, lang.pick(words::COLUMN_PROMPT), &slices.by_input);
    }
    if let Some(owner) = summary.caveats.iter().find(|caveat| caveat.id == "tail_owner") {
        page.sentence(2, lang.sentence(&owner.text));
    }
    for parts in slices.by_label.chunk_by(|one, next| label_of(one) == label_of(next)) {
        let name = label_of(&parts[0]);
        page.line(&lang.fill(words::BY_LABEL, &[("name", &name)]));
        slice_table(page, name, parts);
    }
    for fairness in &summary.fairness {
        fairness_of(page, fairness);
    }
}

/// How equally the values of a label are served, and how much slower each is
/// than alone.
fn fairness_of(page: &mut Document, fairness: &Fairness) {
    let lang = page.lang;
    let indices = [
        (words::JAIN_ATTAINMENT, fairness.jain_attainment),
        (words::JAIN_SPEED, fairness.jain_speed),
    ];
    let indices: Vec<String> = indices
        .into_iter()
        .filter_map(|(words, index)| Some(lang.fill(words, &[("index", &short(index?))])))
        .collect();
    if !indices.is_empty() {
        let indices = indices.join(lang.pick(words::COMMA));
        let said = [("indices", &indices as &dyn std::fmt::Display), ("name", &fairness.label)];
        page.figure("jain_speed", words::FAIRNESS, &lang.fill(words::FAIRNESS_INDICES, &said));
    }
    if let Some((value, key, name, ratio)) = fairness.largest_slowdown() {
        let symbol = find(key).map_or(key, |metric| metric.symbol);
        let largest = lang.fill(
            words::LARGEST_SLOWDOWN,
            &[
                ("ratio", &short(ratio)),
                ("label", &format!("{}={value}", fairness.label)),
                ("figure", &format!("{symbol} {}", name.to_uppercase())),
            ],
        );
        page.figure("slowdown", words::SLOWDOWN, &largest);
    }
    if let Some(value) = fairness.without_isolated().first() {
        let label = format!("{}={value}", fairness.label);
        page.sentence(2, &lang.fill(words::NO_ISOLATED, &[("label", &label)]));
    }
}

fn label_of(slice: &Slice) -> &str {
    match &slice.of {
        Part::Label { name, .. } => name,
        Part::Input { .. } => "",
    }
}

fn part_words(part: &Part, lang: Lang) -> String {
    match part {
        Part::Input { from, until } => format!("{from}–{}", until - 1),
        Part::Label { value: Some(value), .. } => value.clone(),
        Part::Label { value: None, .. } => lang.pick(words::UNLABELLED).to_owned(),
    }
}

fn slice_table(page: &mut Document, title: &str, slices: &[Slice]) {
    let lang = page.lang;
    // Why there is none is said of the whole; here it would be a column.
    let figure = |of: &Distribution, name: &str| match of.n {
        0 => "–".to_owned(),
        _ => bounded(of, name, lang),
    };
    let columns: Vec<&Column> =
        COLUMNS.iter().filter(|(_, _, of)| slices.iter().any(|slice| of(slice).n > 0)).collect();
    let row = |slice: &Slice| {
        let mut cells = vec![part_words(&slice.of, lang), count(slice.n), count(slice.ok)];
        cells.extend(columns.iter().map(|(_, name, of)| figure(of(slice), name)));
        cells.extend(slice.attained.map(|attained| match attained.of {
            0 => "–".to_owned(),
            of => percent(attained.good as f64 / of as f64),
        }));
        Row { about: None, cells }
    };
    let mut titles = vec![title, "n", lang.pick(words::COLUMN_OK)];
    titles.extend(columns.iter().map(|(title, _, _)| *title));
    if slices.iter().any(|slice| slice.attained.is_some()) {
        titles.push(lang.pick(words::COLUMN_ATTAINED));
    }
    let titles = titles.into_iter().map(str::to_owned).collect();
    page.table(titles, slices.iter().map(row).collect());
}

/// A column of slices: its title, the figure and what it is of.
type Column = (&'static str, &'static str, fn(&Slice) -> &Distribution);

/// The columns of slices; one in which no slice has anything is left out.
const COLUMNS: &[Column] = &[
    ("TTFT P50", "p50", |slice| &slice.ttft),
    ("TTFT P99", "p99", |slice| &slice.ttft),
    ("TPOT P50", "p50", |slice| &slice.tpot),
    ("E2EL P50", "p50", |slice| &slice.e2el),
    ("E2EL P99", "p99", |slice| &slice.e2el),
];

/// Request- and token-weighted means side by side, and why they differ.
fn weights(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let weighted = &summary.weighted;
    let tpot = distribution(&summary.metrics, "tpot_ms").and_then(|figures| figures.mean);
    let (Some(by_request), Some(by_token)) = (tpot, weighted.itl_mean_ms) else { return };
    let by_request = lang.fill(words::BY_REQUEST, &[("ms", &short(by_request))]);
    page.figure("tpot_ms", words::MEAN_TPOT, &by_request);
    let over_osl = weighted
        .itl_mean_over_osl_ms
        .map_or(String::new(), |ms| lang.fill(words::OVER_OSL, &[("ms", &short(ms))]));
    let by_token = lang.fill(words::BY_TOKEN, &[("ms", &short(by_token)), ("over_osl", &over_osl)]);
    page.figure("itl_ms", words::MEAN_ITL, &by_token);
}

/// What an average pace hides from a reader.
fn stalls(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    let at = |key: &str| distribution(&summary.metrics, key).filter(|figures| figures.n > 0);
    let settings = &summary.facts.settings;
    let three = |figures: &Distribution| {
        ["p50", "p99", "max"].map(|name| figures.figure(name).map_or("n/a".to_owned(), duration_ms))
    };
    if let Some(stall) = at("stall_ms") {
        let [p50, p99, max] = three(stall);
        let share = at("stall_share").and_then(|figures| figures.mean);
        let stalls = lang.fill(
            words::STALLS,
            &[
                ("figures", &p50_p99_max([&p50, &p99, &max], lang)),
                ("limit", &duration_ms(settings.stall_ms)),
                ("share", &share.map_or("n/a".to_owned(), percent)),
            ],
        );
        page.figure("stall_ms", words::LONGEST_GAP, &stalls);
    }
    if let Some(reader) = at("reader_stall_ms") {
        let [p50, p99, max] = three(reader);
        let figures = p50_p99_max([&p50, &p99, &max], lang);
        let rate = short(settings.reading_tok_s);
        let waits = lang.fill(words::READER_WAIT, &[("figures", &figures), ("rate", &rate)]);
        page.figure("reader_stall_ms", words::READER_WAITS, &waits);
    }
}

/// Latencies of all who asked: the tail of the successes alone flatters a
/// server that drops its slowest requests.
fn everybody(page: &mut Document, summary: &Summary) {
    let lang = page.lang;
    if summary.outcomes.failed + summary.outcomes.empty == 0 {
        return;
    }
    let names = ["p50", "p90", "p95", "p99", "max"];
    let mut table = Figures::new(names.map(Figure::Named).to_vec(), lang);
    for (key, figures) in &summary.all_requests_metrics {
        if let (Some(metric), true) = (find(key), figures.n > 0 && *key != "ttfc_ms") {
            table.add(metric.symbol, metric, figures);
        }
    }
    if table.rows.is_empty() {
        return;
    }
    page.line(lang.pick(words::EVERYBODY));
    let bounds = |wanted: fn(&Distribution) -> bool| {
        summary.all_requests_metrics.iter().any(|(_, figures)| wanted(figures))
    };
    table.print(page);
    if bounds(|figures| !figures.unbounded.is_empty()) {
        page.line(lang.pick(words::NEVER_MEANS));
    }
    if bounds(|figures| !figures.at_least.is_empty()) {
        page.line(lang.pick(words::AT_LEAST_MEANS));
    }
}

/// The same figures without ramp and drain, where the run was steady.
fn steady(page: &mut Document, summary: &Summary, rows: &[&str]) {
    if summary.steady.window.is_err() {
        return;
    }
    let columns = ["mean", "p50", "p90", "p99", "max"].map(Figure::Named).to_vec();
    let mut table = Figures::new(columns, page.lang);
    for key in TAILS.iter().filter(|key| rows.contains(key)) {
        let figures = distribution(&summary.steady.metrics, key).filter(|figures| figures.n > 0);
        if let (Some(metric), Some(figures)) = (find(key), figures) {
            table.add(metric.symbol, metric, figures);
        }
    }
    if !table.rows.is_empty() {
        page.line(page.lang.pick(words::STEADY_ALONE));
        table.print(page);
    }
}
