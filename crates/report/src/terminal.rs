//! The report in a terminal, in the seeds' order of analysis: definitions;
//! what was offered, and whether the run can be trusted; workload; latencies;
//! throughput; goodput; efficiency; what went wrong.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use measure::metric::{Better, Branch, How, METRICS, Metric, find};
use measure::outcome::{FailureKind, NotSentKind};
use measure::statistics::Distribution;
use measure::summary::Summary;
use measure::validity::Verdict;

use crate::number::{count, duration_ms, percent, short};

/// How the text may look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Bold headings and coloured verdicts by ANSI codes.
    pub color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    fn verdict(self, verdict: Verdict) -> String {
        let code = match verdict {
            Verdict::Valid => "1;32",
            Verdict::Degraded => "1;33",
            Verdict::Invalid => "1;31",
        };
        self.paint(code, verdict.name())
    }
}

/// The latency rows of the main table, in order.
pub const LATENCIES: &[&str] =
    &["ttft_ms", "ttfc_ms", "tpot_ms", "itl_ms", "icl_ms", "e2el_ms", "generation_ms"];

/// The whole report. `rows` chooses the rows of the latency table among
/// [`LATENCIES`]; without it all are shown.
pub fn report(summary: &Summary, rows: Option<&[&'static str]>, style: Style) -> String {
    let mut page = Page { text: String::new(), style };
    page.head(summary);
    page.definitions(summary);
    page.offered(summary);
    page.workload(summary);
    page.latencies(summary, rows.unwrap_or(LATENCIES));
    page.throughput(summary);
    page.goodput(summary);
    page.efficiency(summary);
    page.failures(summary);
    page.caveats(summary);
    page.text
}

struct Page {
    text: String,
    style: Style,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn section(&mut self, title: &str) {
        let title = self.style.heading(title);
        self.line("");
        self.line(&title);
    }

    /// A label and its value, aligned with the others.
    fn pair(&mut self, label: &str, value: &str) {
        self.line(&format!("  {label:<22} {value}"));
    }

    fn head(&mut self, summary: &Summary) {
        let facts = &summary.facts;
        let simulated =
            if facts.simulated { " · SIMULATED: the embedded engine answered" } else { "" };
        let model = facts.model.as_deref().map_or(String::new(), |model| format!(" · {model}"));
        let title = self.style.heading(&format!("goodput report{simulated}"));
        self.line(&title);
        self.line(&format!("  {} · {}{model}", facts.target, facts.api));
        if !facts.run_id.is_empty() {
            self.line(&format!("  run {}", facts.run_id));
        }
    }

    fn definitions(&mut self, summary: &Summary) {
        let card = summary.definition.card();
        self.section(&format!("1 Definitions ({})", card.name));
        self.pair("TTFT", &format!("{} → {}", card.ttft_start, card.ttft_end));
        self.pair("E2EL", &format!("{} → {}", card.ttft_start, card.e2el_end));
        self.pair("TPOT", card.tpot);
        self.pair("gaps", card.itl_unit);
        self.pair("token counts", &token_source(summary));
        self.pair("percentiles", card.percentiles);
        self.pair("failures", card.failures);
    }

    fn offered(&mut self, summary: &Summary) {
        let (load, figures) = (&summary.facts.load, &summary.load);
        self.section("2 What was offered, and whether the run can be trusted");
        let users = load.users.map_or(String::new(), |users| format!(", {users} users"));
        self.pair("load", &format!("{} loop{users}, {}", load.kind.name(), load.arrivals));
        let rate =
            |value: Option<f64>| value.map_or("n/a".to_owned(), |v| format!("{} req/s", short(v)));
        let offered = match figures.offered_rps {
            Some(value) => format!("{} req/s", short(value)),
            None => missing(summary, "load.offered_rps"),
        };
        self.pair("offered", &offered);
        self.pair("completed", &rate(figures.completed_rps));
        self.pair("in flight, at most", &figures.max_in_flight.to_string());
        let duration = figures.duration_s.map_or("n/a".to_owned(), |s| format!("{} s", short(s)));
        self.pair("makespan", &duration);
        self.pair("requests", &outcomes(summary));
        let validity = &summary.validity;
        let verdict = self.style.verdict(validity.verdict);
        self.pair("validity", &verdict);
        for reason in &validity.reasons {
            self.line(&format!("    {}: {}", reason.verdict.name(), reason.text));
        }
        let three = |figures: [f64; 3]| {
            let [p50, p99, max] = figures.map(|us| duration_ms(us / 1e3));
            format!("p50 {p50}, p99 {p99}, max {max}")
        };
        let lateness = match validity.lateness_us {
            Some(figures) => three(figures),
            None => missing(summary, "validity.lateness_us"),
        };
        self.pair("sent late by", &lateness);
        if let Some(length) = validity.burst_length {
            self.pair("burst sent within", &length.to_string());
        }
        let lag = match validity.client_lag_us {
            Some(figures) => three(figures),
            None => missing(summary, "validity.client_lag_us"),
        };
        self.pair("client's own lag", &lag);
        match &summary.steady.window {
            Ok(window) => self.pair("steady window", &window.length().to_string()),
            Err(reason) => self.pair("steady window", &format!("none ({})", reason.text())),
        }
    }

    fn workload(&mut self, summary: &Summary) {
        let workload = &summary.facts.workload;
        self.section("3 Workload");
        self.pair("prompts", &workload.source);
        self.pair("input length", &length(summary, "input_tokens", &workload.input_lengths));
        self.pair("output length", &length(summary, "output_tokens", &workload.output_lengths));
        self.pair("prefix cache", &workload.cache_regime);
        for note in &workload.notes {
            self.line(&format!("    {note}"));
        }
    }

    fn latencies(&mut self, summary: &Summary, rows: &[&'static str]) {
        self.section("4 Latency, successful requests (ms)");
        let mut table = table(&["", "n", "mean", "P50", "P90", "P95", "P99", "max"]);
        let mut undefined = Vec::new();
        for key in rows {
            let Some(metric) = find(key) else { continue };
            let Some((_, figures)) = summary.metrics.iter().find(|(name, _)| name == key) else {
                continue;
            };
            if figures.n == 0 {
                undefined.push(format!("{} n/a ({})", metric.symbol, figures.reason().text()));
                continue;
            }
            table.add_row(latency_row(metric, figures));
        }
        self.table(&table);
        for line in undefined {
            self.line(&format!("  {line}"));
        }
        self.tails(summary);
        self.weights(summary);
    }

    fn tails(&mut self, summary: &Summary) {
        let few = summary.metrics.iter().filter(|(key, _)| LATENCIES.contains(key)).filter_map(
            |(key, figures)| {
                let names = figures.few_samples.join(", ");
                (figures.n > 0 && !names.is_empty())
                    .then(|| format!("{} {names}", find(key).map_or(*key, |metric| metric.symbol)))
            },
        );
        let few: Vec<String> = few.collect();
        if !few.is_empty() {
            self.line(&format!(
                "  few samples beyond (fewer than ten above the percentile): {}",
                few.join("; ")
            ));
        }
        let failed = summary.outcomes.failed + summary.outcomes.empty;
        if failed == 0 {
            return;
        }
        for (key, figures) in &summary.all_requests_metrics {
            let Some(metric) = find(key) else { continue };
            if figures.n == 0 || *key == "ttfc_ms" {
                continue;
            }
            let [p50, p90, p99] = ["p50", "p90", "p99"].map(|name| bounded(figures, name));
            self.line(&format!(
                "  {} over all requests, failures never came: P50 {p50}, P90 {p90}, P99 {p99}",
                metric.symbol
            ));
        }
    }

    /// Request- and token-weighted means side by side, and why they differ.
    fn weights(&mut self, summary: &Summary) {
        let weighted = &summary.weighted;
        let tpot = summary.metrics.iter().find(|(key, _)| *key == "tpot_ms");
        let (Some(by_request), Some(by_token)) =
            (tpot.and_then(|(_, figures)| figures.mean), weighted.itl_mean_ms)
        else {
            return;
        };
        self.line(&format!(
            "  mean TPOT {} (each request counts once) · mean ITL {} (each token counts once, so \
             long answers weigh more){}",
            short(by_request),
            short(by_token),
            weighted
                .itl_mean_over_osl_ms
                .map_or(String::new(), |ms| format!(" · Σ gaps ÷ Σ OSL {}", short(ms)))
        ));
    }

    fn throughput(&mut self, summary: &Summary) {
        let rates = &summary.throughput;
        self.section("5 Throughput over the makespan");
        let rows = [
            ("output_tok_s", rates.output_tok_s),
            ("input_tok_s", rates.input_tok_s),
            ("input_computed_tok_s", rates.input_computed_tok_s),
            ("input_cached_tok_s", rates.input_cached_tok_s),
            ("total_tok_s", rates.total_tok_s),
            ("req_s", rates.req_s),
            ("wasted_tok_s", rates.wasted_tok_s),
        ];
        for (key, value) in rows {
            let symbol = find(key).map_or(key, |metric| metric.symbol);
            let value = match value {
                Some(value) => short(value),
                None => missing(summary, &format!("throughput.{key}")),
            };
            self.pair(symbol, &value);
        }
        if let Some(tok_s) = summary.steady.output_tok_s {
            self.pair("steady output tok/s", &short(tok_s));
        }
        if let Some(p90) = summary.interactivity_tok_s.iter().find(|(name, _)| *name == "p90")
            && let Some(tok_s) = p90.1
        {
            self.pair(
                "interactivity",
                &format!("90 % of users get at least {} tok/s", short(tok_s)),
            );
        }
        if let Some(peaks) = summary.peaks {
            self.pair("peak events/s", &short(peaks.max_output_tokens_per_s));
            self.pair("peak in one second", &peaks.max_concurrent_requests.to_string());
        }
    }

    fn goodput(&mut self, summary: &Summary) {
        self.section("6 Goodput and attainment");
        let Some(goodput) = &summary.goodput else {
            self.line("  n/a (no SLO was given; add --goodput ttft:300 tpot:60, in milliseconds)");
            return;
        };
        self.pair("SLO, jointly", &goodput.slo.to_string());
        let rate = |value: Option<f64>, unit: &str| {
            value.map_or("n/a (the window has no length)".to_owned(), |v| {
                format!("{} {unit}", short(v))
            })
        };
        let attained =
            goodput.attainment.map_or("n/a (no request could be judged)".to_owned(), percent);
        self.pair(
            "goodput",
            &format!("{} · {}", rate(goodput.req_s, "req/s"), rate(goodput.tok_s, "tok/s")),
        );
        self.pair("attainment", &format!("{attained} ({} of {})", goodput.good, goodput.of));
        for result in &goodput.per_slo {
            let name = format!("  {} ≤ {} ms", result.term.quantity.name(), result.term.limit_ms);
            let share = if result.of == 0 {
                "n/a".to_owned()
            } else {
                percent(result.met as f64 / result.of as f64)
            };
            self.pair(&name, &format!("{share} ({} of {})", result.met, result.of));
        }
        for result in &goodput.per_label {
            self.pair(
                &format!("  {}={}", result.name, result.value),
                &format!("{} of {}", result.good, result.of),
            );
        }
        if goodput.vacuous > 0 {
            self.line(&format!(
                "  {} good with one output token, where TPOT cannot apply",
                goodput.vacuous
            ));
        }
        if let (true, Some((low, high))) = (goodput.undecided > 0, goodput.bounds) {
            self.line(&format!(
                "  {} could not be judged: attainment lies between {} and {}",
                goodput.undecided,
                percent(low),
                percent(high)
            ));
        }
    }

    fn efficiency(&mut self, _: &Summary) {
        self.section("7 Efficiency");
        let absent: Vec<&Metric> = METRICS
            .iter()
            .filter(|metric| metric.branch == Branch::Efficiency)
            .filter(|metric| matches!(metric.how, How::Absent(_)))
            .collect();
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for metric in absent {
            let How::Absent(reason) = metric.how else { continue };
            match reasons.iter_mut().find(|(text, _)| *text == reason.text()) {
                Some((_, symbols)) => symbols.push(metric.symbol),
                None => reasons.push((reason.text(), vec![metric.symbol])),
            }
        }
        for (reason, symbols) in reasons {
            self.line(&format!("  {}: n/a ({reason})", symbols.join(", ")));
        }
    }

    fn failures(&mut self, summary: &Summary) {
        let outcomes = &summary.outcomes;
        if outcomes.by_kind.is_empty() && outcomes.empty == 0 {
            return;
        }
        self.section("8 What went wrong");
        if outcomes.empty > 0 {
            self.line(&format!("  {} empty: finished without any output", outcomes.empty));
        }
        for (kind, number) in &outcomes.by_kind {
            let (means, hint) = words(kind);
            self.line(&format!("  {} {kind}: {means}", count(*number)));
            if let Some(message) = outcomes.messages.get(kind) {
                self.line(&format!("    it said: {}", one_line(message)));
            }
            self.line(&format!("    hint: {hint}"));
        }
        for (status, number) in &outcomes.by_status {
            self.line(&format!("    HTTP {status}: {}", count(*number)));
        }
    }

    fn caveats(&mut self, summary: &Summary) {
        if summary.caveats.is_empty()
            && summary.answer_warnings.is_empty()
            && summary.facts.as_reported.is_empty()
        {
            return;
        }
        self.section("9 Caveats");
        for caveat in &summary.caveats {
            self.line(&format!("  {}", caveat.text));
        }
        if !summary.answer_warnings.is_empty() {
            let warnings: Vec<String> = summary
                .answer_warnings
                .iter()
                .map(|(name, number)| format!("{name} {number}"))
                .collect();
            self.line(&format!(
                "  answers with a warning: {} (goodput explain NAME)",
                warnings.join(", ")
            ));
        }
        for (key, value) in &summary.facts.as_reported {
            self.line(&format!("  as reported by the tool: {key} = {}", short(*value)));
        }
    }

    fn table(&mut self, table: &Table) {
        for line in table.to_string().lines() {
            self.line(&format!(" {line}"));
        }
    }
}

fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(columns.iter().copied());
    for index in 1..columns.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn latency_row(metric: &Metric, figures: &Distribution) -> Vec<String> {
    let mut row = vec![metric.symbol.to_owned(), count(figures.n)];
    for name in ["mean", "p50", "p90", "p95", "p99", "max"] {
        let text = bounded(figures, name);
        // A percentile with few samples behind it carries a mark.
        let mark = if figures.few_samples.iter().any(|few| few == name) { "*" } else { "" };
        row.push(format!("{text}{mark}"));
    }
    debug_assert!(metric.better != Better::Higher, "latencies are better when lower");
    row
}

/// A figure of a distribution, or what bounds it.
fn bounded(figures: &Distribution, name: &str) -> String {
    if let Some(value) = figures.figure(name) {
        return short(value);
    }
    if let Some((_, least)) = figures.at_least.iter().find(|(known, _)| *known == name) {
        return format!("≥ {}", short(*least));
    }
    if figures.unbounded.contains(&name) { "never".to_owned() } else { "n/a".to_owned() }
}

fn token_source(summary: &Summary) -> String {
    let sources: Vec<String> = summary
        .tokens
        .sources
        .iter()
        .map(|(source, number)| format!("{} ({})", source.name(), count(*number)))
        .collect();
    if sources.is_empty() { "n/a (no answer was counted)".to_owned() } else { sources.join(", ") }
}

fn outcomes(summary: &Summary) -> String {
    let counts = &summary.outcomes;
    let mut parts = vec![format!("{} ok", count(counts.ok))];
    for (number, name) in [
        (counts.empty, "empty"),
        (counts.failed, "failed"),
        (counts.not_sent, "not sent"),
        (counts.cancelled, "cancelled"),
    ] {
        if number > 0 {
            parts.push(format!("{} {name}", count(number)));
        }
    }
    format!("{} of {}", parts.join(", "), count(counts.total()))
}

fn length(summary: &Summary, key: &str, asked: &str) -> String {
    let served = summary.metrics.iter().find(|(name, _)| *name == key).map(|(_, figures)| figures);
    match served.filter(|figures| figures.n > 0) {
        Some(figures) => format!(
            "asked {asked}; served mean {}, P50 {}, max {} tokens",
            bounded(figures, "mean"),
            bounded(figures, "p50"),
            bounded(figures, "max")
        ),
        None => format!(
            "asked {asked}; served n/a ({})",
            served.map_or("no samples", |f| f.reason().text())
        ),
    }
}

fn missing(summary: &Summary, key: &str) -> String {
    let reason = summary.absent.iter().find(|(name, _)| name == key).map(|(_, reason)| reason);
    format!("n/a ({})", reason.map_or("not measured", String::as_str))
}

fn words(kind: &str) -> (&'static str, &'static str) {
    if let Some(kind) = FailureKind::from_name(kind) {
        return (kind.means(), kind.hint());
    }
    NotSentKind::from_name(kind).map_or(("", ""), |kind| (kind.means(), kind.hint()))
}

/// A message as one line without control characters: a server's text must not
/// reach the terminal as commands.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}
