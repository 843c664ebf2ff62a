//! Where the time of a request goes, and how far the tail is from the mean.

use measure::metric::{Better, Metric, find};
use measure::statistics::{Distribution, PERCENTILES, percentile_name};
use measure::summary::Summary;
use measure::undefined::Undefined;

use super::{bounded, distribution, missing};
use crate::document::{Document, Row};
use crate::number::{count, duration_ms, percent, short};

/// Rows of the comparison of mean and tail.
const TAILS: &[&str] = &["ttft_ms", "tpot_ms", "icl_ms", "e2el_ms"];

const FEW_SAMPLES: &str =
    "* fewer than ten samples lie beyond this percentile: a single request moves it";

/// One column of figures.
#[derive(Clone, Copy)]
enum Figure {
    /// By its name: mean, std, min, p50 … max.
    Named(&'static str),
    /// A percentile that was asked for, in percent.
    Asked(f64),
}

impl Figure {
    fn title(self) -> String {
        match self {
            Self::Named(name) => name.replacen('p', "P", 1),
            Self::Asked(percent) => format!("P{percent}"),
        }
    }

    fn cell(self, figures: &Distribution) -> String {
        match self {
            // The spread of equal values is the rounding of their sum.
            Self::Named("std") if is_rounding(figures) => short(0.0),
            Self::Named(name) => bounded(figures, name),
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
    columns: Vec<Figure>,
    rows: Vec<Row>,
    marked: bool,
}

impl Figures {
    const fn new(columns: Vec<Figure>) -> Self {
        Self { columns, rows: Vec::new(), marked: false }
    }

    fn add(&mut self, name: &str, metric: &Metric, figures: &Distribution) {
        debug_assert!(metric.better != Better::Higher, "latencies are better when lower");
        let unit = metric.unit.symbol();
        let mut row = vec![name.to_owned(), unit.to_owned(), count(figures.n)];
        for column in &self.columns {
            let cell = column.cell(figures);
            let figure = cell.contains(|c: char| c.is_ascii_digit());
            let few = figure && column.has_few_samples(figures);
            self.marked |= few;
            row.push(format!("{cell}{}", if few { "*" } else { "" }));
        }
        self.rows.push(Row { about: Some(metric.key), cells: row });
    }

    fn print(self, page: &mut Document) {
        let mut titles = vec![String::new(), "unit".to_owned(), "n".to_owned()];
        titles.extend(self.columns.iter().map(|column| column.title()));
        page.table(titles, self.rows);
        if self.marked {
            page.legend(FEW_SAMPLES);
        }
    }
}

pub(super) fn phases(page: &mut Document, summary: &Summary, rows: &[&'static str]) {
    page.section("phases", "Latencies and phases, requests that ended well");
    let mut table = Figures::new(columns(summary));
    let mut undefined: Vec<(Undefined, Vec<String>)> = Vec::new();
    for key in rows {
        let (Some(metric), Some(figures)) = (find(key), distribution(&summary.metrics, key)) else {
            continue;
        };
        if figures.n > 0 {
            table.add(metric.symbol, metric, figures);
        }
        if figures.n == 0 || figures.figure("p50").is_none() {
            let part = if figures.n > 0 { " percentiles" } else { "" };
            let name = format!("{}{part}", metric.symbol);
            match undefined.iter_mut().find(|(reason, _)| *reason == figures.reason()) {
                Some((_, names)) => names.push(name),
                None => undefined.push((figures.reason(), vec![name])),
            }
        }
    }
    table.print(page);
    for (reason, names) in undefined {
        page.sentence(2, &format!("{} n/a ({})", names.join(", "), reason.text()));
    }
    as_reported(page, summary);
    timed_phases(page, summary);
    let hidden: Vec<&str> = ["queueing_ms", "prefill_ms"]
        .into_iter()
        .filter_map(find)
        .map(|metric| metric.symbol)
        .collect();
    let hidden = format!("{} n/a", hidden.join(", "));
    page.sentence(2, &missing(summary, "queueing_ms").replacen("n/a", &hidden, 1));
}

/// The parts of a request that a client can see.
fn timed_phases(page: &mut Document, summary: &Summary) {
    // An imported row has one start and no end: its parts would read zero.
    let lag = distribution(&summary.metrics, "finish_lag_ms");
    if let Some(why) = lag.map(Distribution::reason).filter(|why| *why == Undefined::NotInFile) {
        page.sentence(2, &format!("phases n/a ({})", why.text()));
        return;
    }
    let parts = [
        ("intended → sent", &summary.metrics, "client_wait_ms"),
        ("sent → first token", &summary.service_metrics, "ttft_ms"),
        ("first token → end", &summary.metrics, "generation_ms"),
        ("last token → end", &summary.metrics, "finish_lag_ms"),
    ];
    let mut table = Figures::new(["mean", "p50", "p90", "p99", "max"].map(Figure::Named).to_vec());
    for (name, among, key) in parts {
        let figures = distribution(among, key).filter(|figures| figures.n > 0);
        if let (Some(metric), Some(figures)) = (find(key), figures) {
            table.add(name, metric, figures);
        }
    }
    table.print(page);
}

fn as_reported(page: &mut Document, summary: &Summary) {
    let reported = &summary.facts.as_reported;
    if reported.is_empty() {
        return;
    }
    page.line(
        "as the source tool reported, by its definitions; its file does not let us recompute:",
    );
    let pairs: Vec<(String, String)> =
        reported.iter().map(|(key, value)| (key.clone(), short(*value))).collect();
    page.pairs(pairs);
}

pub(super) fn mean_against_tail(page: &mut Document, summary: &Summary, rows: &[&'static str]) {
    page.section("tail", "Mean against tail");
    let mut table = Vec::new();
    for key in TAILS.iter().filter(|key| rows.contains(key)) {
        let (Some(metric), Some(figures)) = (find(key), distribution(&summary.metrics, key)) else {
            continue;
        };
        let ratio = figures.figure("p50").filter(|p50| *p50 > 0.0).zip(figures.figure("p99"));
        let Some((p50, p99)) = ratio.filter(|_| figures.n > 1) else { continue };
        let mut row = vec![metric.symbol.to_owned(), metric.unit.symbol().to_owned()];
        row.extend(["mean", "p50", "p99"].map(|name| bounded(figures, name)));
        row.push(short(p99 / p50));
        table.push(Row { about: Some(metric.key), cells: row });
    }
    if table.is_empty() {
        page.line("n/a (a tail needs more than one request that ended well)");
    }
    let titles = ["", "unit", "mean", "P50", "P99", "P99 ÷ P50"].map(str::to_owned);
    page.table(titles.to_vec(), table);
    weights(page, summary);
    stalls(page, summary);
    everybody(page, summary);
    steady(page, summary, rows);
}

/// Request- and token-weighted means side by side, and why they differ.
fn weights(page: &mut Document, summary: &Summary) {
    let weighted = &summary.weighted;
    let tpot = distribution(&summary.metrics, "tpot_ms").and_then(|figures| figures.mean);
    let (Some(by_request), Some(by_token)) = (tpot, weighted.itl_mean_ms) else { return };
    page.figure(
        "tpot_ms",
        "mean TPOT",
        &format!("{} ms/token: every request counts once", short(by_request)),
    );
    let over_osl = weighted
        .itl_mean_over_osl_ms
        .map_or(String::new(), |ms| format!("; Σ gaps ÷ Σ OSL {} ms", short(ms)));
    page.figure(
        "itl_ms",
        "mean ITL",
        &format!(
            "{} ms: every token counts once, long answers weigh more{over_osl}",
            short(by_token)
        ),
    );
}

/// What an average pace hides from a reader.
fn stalls(page: &mut Document, summary: &Summary) {
    let at = |key: &str| distribution(&summary.metrics, key).filter(|figures| figures.n > 0);
    if let Some(stall) = at("stall_ms") {
        let figure = |name| stall.figure(name).map_or("n/a".to_owned(), duration_ms);
        let limit = duration_ms(summary.facts.settings.stall_ms);
        let share = at("stall_share").and_then(|figures| figures.mean);
        page.figure(
            "stall_ms",
            "longest gap",
            &format!(
                "P50 {}, P99 {}, max {}; mean share of gaps above {limit}: {}",
                figure("p50"),
                figure("p99"),
                figure("max"),
                share.map_or("n/a".to_owned(), percent)
            ),
        );
    }
    if let Some(reader) = at("reader_stall_ms") {
        let figure = |name| reader.figure(name).map_or("n/a".to_owned(), duration_ms);
        page.figure(
            "reader_stall_ms",
            "a reader waits",
            &format!(
                "P50 {}, P99 {}, max {} in all, at {} tok/s from the first token on",
                figure("p50"),
                figure("p99"),
                figure("max"),
                short(summary.facts.settings.reading_tok_s)
            ),
        );
    }
}

/// Latencies of all who asked: the tail of the successes alone flatters a
/// server that drops its slowest requests.
fn everybody(page: &mut Document, summary: &Summary) {
    if summary.outcomes.failed + summary.outcomes.empty == 0 {
        return;
    }
    let names = ["p50", "p90", "p95", "p99", "max"];
    let mut table = Figures::new(names.map(Figure::Named).to_vec());
    for (key, figures) in &summary.all_requests_metrics {
        if let (Some(metric), true) = (find(key), figures.n > 0 && *key != "ttfc_ms") {
            table.add(metric.symbol, metric, figures);
        }
    }
    if table.rows.is_empty() {
        return;
    }
    page.line("over all requests, failures too:");
    let bounds = |wanted: fn(&Distribution) -> bool| {
        summary.all_requests_metrics.iter().any(|(_, figures)| wanted(figures))
    };
    table.print(page);
    if bounds(|figures| !figures.unbounded.is_empty()) {
        page.line("never: the request failed, so that its answer did not come at all");
    }
    if bounds(|figures| !figures.at_least.is_empty()) {
        page.line("≥: a time-out cut the wait off, the true value is at least this");
    }
}

/// The same figures without ramp and drain, where the run was steady.
fn steady(page: &mut Document, summary: &Summary, rows: &[&str]) {
    if summary.steady.window.is_err() {
        return;
    }
    let mut table = Figures::new(["mean", "p50", "p90", "p99", "max"].map(Figure::Named).to_vec());
    for key in TAILS.iter().filter(|key| rows.contains(key)) {
        let figures = distribution(&summary.steady.metrics, key).filter(|figures| figures.n > 0);
        if let (Some(metric), Some(figures)) = (find(key), figures) {
            table.add(metric.symbol, metric, figures);
        }
    }
    if !table.rows.is_empty() {
        page.line("in the steady window alone:");
        table.print(page);
    }
}
