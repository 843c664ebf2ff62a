//! METRICS.md: the metric registry, the kinds of failure and the reasons of
//! missing values, as a page. It is made from the tables that the program
//! itself runs on, so that the two cannot differ.

use measure::metric::{Branch, METRICS, Metric};
use measure::outcome::{Blame, FailureKind, NotSentKind};
use measure::undefined::Undefined;

use crate::explain::{self, WARNINGS};

/// The branches in the order of the seeds' tree, conditions last.
const BRANCHES: &[Branch] = &[
    Branch::Latency,
    Branch::Throughput,
    Branch::Efficiency,
    Branch::Quality,
    Branch::Workload,
    Branch::Instrument,
];

const HEAD: &str = "\
<!-- Made from the registry; do not edit. UPDATE=1 cargo test -p report --test metrics_page -->

# Metrics

What every number of goodput means, from which requests it comes, when there is none, how it is \
misread, and what other tools mean by the same word. The terminal has the same text: \
`goodput explain TPOT`.

## How to read this page

- **Definition** is a number. It is raised whenever the same records can give another value; \
compare two results of one metric only when theirs are equal.
- **Missing is not zero.** A value that does not exist is `null` in JSON and n/a in text, always \
with a [reason](#missing-values). A failed request is never a latency of 0, and \
an imported run has no value for what its file does not hold.
- **Two starts.** Headline latencies count from the instant at which the load model says the user \
asked (`intended_at`). Service latencies (`service_metrics`) count from just before the first byte \
was written (`sent_at`). The difference is [client wait](#client_wait_ms): near zero in an open \
loop that keeps up, the whole queue behind a concurrency cap. Presets of other tools count from \
`released_at`, after such a cap.
- **One value per** request, gap or run. Values of requests and gaps become a distribution: n, \
n_undefined, mean, standard deviation (ddof 0), min, P50, P90, P95, P99, P99.9, max. Percentiles \
are interpolated linearly on the raw samples; those with fewer than 10 ÷ (1 − p) samples are named \
in `few_samples`. Percentiles of several runs or replicas must not be averaged.
- **Two populations.** `metrics` holds requests that ended ok. `all_requests_metrics` adds \
the failed and empty ones to TTFT, TTFC and E2EL: they count as infinite (`unbounded`), a time-out \
as at least the time waited (`at_least_ms`).
- **Three windows.** *Arrival*: first to last intended, or the planned duration; attainment, and \
goodput in an open loop. *Makespan*: first intended to last event; throughput. *Steady*: between \
ramp and drain, `null` with the reason where a run has none.
- The slow tail of a speed is 1 ÷ p90(time), \"90 % get at least\", never p90(1 ÷ time).
- **Other tools** are vLLM bench 0.27.1, AIPerf 0.13, GuideLLM 0.8.1, inference-perf 0.7, \
genai-bench 0.0.5, EvalScope 1.14.1 and MLPerf endpoints.
";

/// METRICS.md, whole.
pub fn page() -> String {
    let mut parts = vec![HEAD.to_owned(), contents()];
    for branch in BRANCHES {
        let name = branch.name();
        parts.push(format!("## {} · {}\n", name.en, name.zh));
        parts.extend(of_branch(*branch).map(section));
    }
    parts.push(failures());
    parts.push(not_sent());
    parts.push(warnings());
    parts.push(reasons());
    parts.join("\n")
}

fn of_branch(branch: Branch) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(move |metric| metric.branch == branch)
}

fn contents() -> String {
    let mut lines = vec!["## Contents\n".to_owned()];
    for branch in BRANCHES {
        let name = branch.name();
        let links: Vec<String> = of_branch(*branch)
            .map(|metric| format!("[{}](#{})", metric.symbol, metric.key))
            .collect();
        lines.push(format!("- **{} · {}**: {}", name.en, name.zh, links.join(" · ")));
    }
    lines.push(
        "- **Outcomes**: [failure kinds](#failure-kinds) · [requests not sent](#requests-not-sent) \
         · [answer warnings](#answer-warnings) · [missing values](#missing-values)\n"
            .to_owned(),
    );
    lines.join("\n")
}

fn section(metric: &Metric) -> String {
    let lines = [
        format!("<a id=\"{}\"></a>\n", metric.key),
        format!("### {} — {}\n", metric.symbol, metric.name.en),
        format!("{}\n", metric.text.en),
        format!(
            "`{}` · unit: {} · one value per {} · better: {} · definition {}\n",
            metric.key,
            metric.unit.symbol(),
            explain::level(metric.level).en,
            explain::better(metric.better).en,
            metric.definition,
        ),
        format!("- **Formula**: {}", metric.formula),
        format!("- **Population**: {}", metric.population),
        format!("- **Undefined when**: {}", metric.undefined_when),
        format!("- **How it is misread**: {}", metric.pitfalls.en),
        format!("- **Source**: {}", metric.source),
        format!("- **Other tools**: {}", metric.peers),
        format!("- **中文名**：{}", metric.name.zh),
        format!("- **说明**：{}", metric.text.zh),
        format!("- **常见误读**：{}\n", metric.pitfalls.zh),
    ];
    lines.join("\n")
}

fn failures() -> String {
    let rows = FailureKind::ALL.iter().map(|kind| {
        kind_row(
            kind.name(),
            kind.blame(),
            kind.means(),
            kind.hint(),
            explain::failure_zh(*kind).means,
        )
    });
    format!(
        "## Failure kinds\n\nWhat went wrong with a request that we tried to send. Every kind is a \
         bad request for attainment and goodput, and enters no latency of `metrics`.\n\n{}",
        table(KIND_COLUMNS, rows)
    )
}

fn not_sent() -> String {
    let rows = NotSentKind::ALL.iter().map(|kind| {
        kind_row(
            kind.name(),
            kind.blame(),
            kind.means(),
            kind.hint(),
            explain::not_sent_zh(*kind).means,
        )
    });
    format!(
        "## Requests not sent\n\nWhy a planned request never left. Faults of the load \
         generator say nothing about the server and are outside attainment. A turn after one that \
         failed counts as missed: the server made it impossible.\n\n{}",
        table(KIND_COLUMNS, rows)
    )
}

const KIND_COLUMNS: [&str; 5] = ["kind", "look at", "means", "try first", "含义"];

fn kind_row(name: &str, blame: Blame, means: &str, hint: &str, zh: &str) -> [String; 5] {
    let blame = explain::blame(blame).en;
    [format!("`{name}`"), blame.to_owned(), means.to_owned(), hint.to_owned(), zh.to_owned()]
}

fn warnings() -> String {
    let rows = WARNINGS.iter().map(|warning| {
        [
            format!("`{}`", warning.name()),
            warning.means.en.to_owned(),
            warning.effect.en.to_owned(),
            warning.means.zh.to_owned(),
        ]
    });
    format!(
        "## Answer warnings\n\nThings worth telling about the form of an answer that was still \
         readable.\n\n{}",
        table(["warning", "means", "effect on figures", "含义"], rows)
    )
}

fn reasons() -> String {
    let rows = Undefined::ALL.iter().map(|reason| {
        [format!("`{}`", reason.name()), reason.texts().en.to_owned(), reason.texts().zh.to_owned()]
    });
    format!(
        "## Missing values\n\nWhy a metric has no value for a request or a run.\n\n{}",
        table(["reason", "means", "含义"], rows)
    )
}

fn table<const N: usize>(columns: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines =
        vec![line(&columns.map(str::to_owned)), line(&columns.map(|_| "---".to_owned()))];
    lines.extend(rows.map(|cells| line(&cells)));
    lines.push(String::new());
    lines.join("\n")
}

/// A row of a Markdown table, in which a bar would end the cell.
fn line(cells: &[String]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |", cells.join(" | "))
}
