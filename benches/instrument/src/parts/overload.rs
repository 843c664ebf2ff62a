//! (e) Overload: the load is raised until the run is no longer VALID. What is
//! tested is that it does stop being VALID, before its figures are wrong.

use std::collections::BTreeMap;
use std::process::Command;

use measure::quantile;
use serde_json::{Value, json};

use super::{Bench, Done, words};
use crate::errors::{join, read_run, read_truth, strays};
use crate::processes::repetition;
use crate::table::{Table, short};

/// Tokens of an answer, tokens a write, and time between writes: an answer
/// takes half a second, and a client is full before this server is.
const TOKENS: u64 = 100;
const CHUNKS: u64 = 4;
const INTERVAL_US: u64 = 20_000;

/// Length of a short run: one stop of the machine of some 20 ms does not reach
/// its p99.
const SHORT_S: f64 = 3.0;

/// Requests a second, level by level.
const LEVELS: &[u64] = &[250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000, 8_000, 12_000];

/// One level's figures.
struct Level {
    rate: u64,
    verdict: String,
    value: Value,
    /// (reported − true) ÷ true, of the p99.
    wrong_by: f64,
    void: Option<String>,
}

pub(super) fn run(bench: &Bench) -> Done {
    let head = [
        "req/s",
        "tokens/s",
        "verdict",
        "TTFT p99 reported ms",
        "true ms",
        "wrong by",
        "client CPU",
        "server late p99 ms",
        "others",
    ];
    let mut table = Table::new("(e) Overload", &head);
    let mut levels = Vec::new();
    let rates = if bench.quick { &LEVELS[..1] } else { LEVELS };
    let mut bad = 0;
    for &rate in rates {
        let level = level(bench, rate, if bench.quick { 1.0 } else { 4.0 })?;
        crate::tell(&format!("    {rate} req/s {}", level.verdict));
        let of = |pointer: &str| level.value.pointer(pointer).and_then(Value::as_f64);
        table.rows.push(vec![
            rate.to_string(),
            (rate * TOKENS).to_string(),
            level.verdict.clone(),
            short(of("/reported_ms")),
            short(of("/true_ms")),
            format!("{:+.1} %", level.wrong_by * 100.0),
            format!("{:.0} %", of("/client_cpu_share").unwrap_or(0.0) * 100.0),
            short(of("/server_late_p99_us").map(|us| us / 1e3)),
            format!("{:.0} %", of("/others").unwrap_or(0.0) * 100.0),
        ]);
        // Two levels beyond the first INVALID show that it stays so.
        bad += usize::from(level.verdict == "INVALID");
        levels.push(level);
        if bad > 2 {
            break;
        }
    }
    table.notes.push(conclusion(&levels));
    let figures: Vec<Value> = levels.into_iter().map(|level| level.value).collect();
    Ok((Value::Array(figures), vec![table]))
}

/// Whether a run that called itself VALID was wrong by a tenth.
fn conclusion(levels: &[Level]) -> String {
    let left = levels.iter().find(|level| level.verdict != "VALID");
    let worst = levels
        .iter()
        .filter(|level| level.verdict == "VALID")
        .map(|level| level.wrong_by.abs())
        .fold(0.0, f64::max);
    let left = left.map_or("No level left VALID".to_owned(), |level| {
        format!("The verdict leaves VALID at {} req/s", level.rate)
    });
    format!(
        "{left}; the largest error of a TTFT p99 in a VALID run is {:.1} % (at most 10 % is \
         asked). TTFT is from `sent_at`; true is the server's from its receive stamp to just \
         before its write, over the same requests.",
        worst * 100.0
    )
}

/// A run in open loop at `rate` for `seconds`.
fn level(bench: &Bench, rate: u64, seconds: f64) -> Result<Level, String> {
    let truth = bench.fresh("truth.jsonl");
    let server = words(&format!(
        "--mode paced --lockstep --interval-us {INTERVAL_US} --chunks-per-write {CHUNKS} \
         --first-token-us 5000 --truth {}",
        truth.display()
    ));
    let output = bench.fresh("client.out");
    let (done, _) =
        repetition((bench.server_core, &server), bench.client_core, &output, |address| {
            let load = format!("--request-rate {rate} --duration {seconds} --osl {TOKENS}");
            bench.goodput(address, &load)
        })?;
    let summary = bench.summary()?;
    let truths = read_truth(&truth)?;
    let (seen, _) = read_run(&bench.work.join("run"))?;
    let errors = join(&seen, &truths);
    let true_ms = quantile::linear(&errors.true_ttft_us, 0.99).unwrap_or(0.0) / 1e3;
    let reported_ms = summary["service_metrics"]["ttft_ms"]["p99"].as_f64().unwrap_or(f64::NAN);
    let (_, late_us) = strays(&truths, INTERVAL_US);
    let verdict = summary["validity"]["verdict"].as_str().unwrap_or("none").to_uppercase();
    Ok(Level {
        rate,
        wrong_by: (reported_ms - true_ms) / true_ms.max(1e-9),
        void: done.disturbed(),
        value: json!({
            "rate": rate,
            "verdict": verdict,
            "reasons": summary["validity"]["reasons"],
            "reported_ms": reported_ms,
            "true_ms": true_ms,
            "errors": errors.to_json(),
            "server_late_p99_us": late_us,
            "client_cpu_share": done.cost.cpu_ns as f64 / done.cost.wall_ns.max(1) as f64,
            "others": done.others,
        }),
        verdict,
    })
}

/// (v) Short runs at 70 % of the highest valid rate: of the floor that
/// `goodput selftest` found, under its own kind of load, and of the highest
/// VALID level of (e).
pub(super) fn short_runs(bench: &Bench) -> Done {
    let head = ["load", "of", "chunks/s", "runs", "VALID", "not valid because", "void"];
    let mut table = Table::new("(v) Short runs at 70 % of the highest VALID rate", &head);
    let floor = floor(bench)?;
    let streams = (floor * 0.7 / 50.0) as u64;
    let steady = many(bench, "streams", &mut || steady(bench, streams))?;
    let mut highest = LEVELS[0];
    if !bench.quick {
        for &rate in LEVELS {
            if level(bench, rate, SHORT_S)?.verdict != "VALID" {
                break;
            }
            highest = rate;
        }
    }
    let rate = highest * 7 / 10;
    let open = many(bench, "open loop", &mut || {
        let level = level(bench, rate, SHORT_S)?;
        Ok((level.verdict, level.value["reasons"].clone(), level.void))
    })?;
    let mut figures = serde_json::Map::new();
    for (load, of, chunks, many) in [
        (format!("{streams} streams at 50/s"), format!("selftest's {floor}"), streams * 50, steady),
        (format!("{rate} req/s"), format!("{highest} req/s of (e)"), rate * TOKENS, open),
    ] {
        table.rows.push(vec![
            load.clone(),
            of,
            chunks.to_string(),
            many.runs.to_string(),
            many.valid.to_string(),
            many.words(),
            many.void.to_string(),
        ]);
        let figure =
            json!({"runs": many.runs, "valid": many.valid, "void": many.void, "reasons": many.why});
        figures.insert(load, figure);
    }
    Ok((Value::Object(figures), vec![table]))
}

/// Verdict, reasons, and why the run is void.
type Short = (String, Value, Option<String>);

/// Many short runs.
#[derive(Default)]
struct Many {
    runs: usize,
    valid: usize,
    void: usize,
    why: BTreeMap<String, usize>,
}

impl Many {
    fn words(&self) -> String {
        let why: Vec<String> =
            self.why.iter().map(|(id, count)| format!("{id} × {count}")).collect();
        if why.is_empty() { "–".to_owned() } else { why.join(", ") }
    }
}

/// A hundred runs that are not void, or as many as come of twice that.
fn many(
    bench: &Bench,
    what: &str,
    run: &mut dyn FnMut() -> Result<Short, String>,
) -> Result<Many, String> {
    let wanted = if bench.quick { 2 } else { 100 };
    let mut many = Many::default();
    while many.runs < wanted && many.runs + many.void < 2 * wanted {
        let (verdict, reasons, void) = run()?;
        if void.is_some() {
            many.void += 1;
            continue;
        }
        many.runs += 1;
        if verdict == "VALID" {
            many.valid += 1;
        } else {
            crate::tell(&format!("    {what} {}: {verdict}", many.runs));
            let id = reasons.pointer("/0/id").and_then(Value::as_str).unwrap_or("?");
            *many.why.entry(id.to_owned()).or_default() += 1;
        }
    }
    Ok(many)
}

/// The highest valid rate in chunks a second that `goodput selftest` finds.
fn floor(bench: &Bench) -> Result<f64, String> {
    let mut command = Command::new(&bench.goodput);
    command.args(["selftest", "--json", "-", "--runs-dir"]).arg(bench.fresh("floor"));
    if bench.quick {
        command.arg("--quick");
    }
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let floor: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("{command:?}: {error}"))?;
    floor["highest_valid_chunks_s"].as_f64().ok_or_else(|| format!("{command:?}: {floor}"))
}

/// So many streams of 50 tokens a second, all asked for at once.
fn steady(bench: &Bench, streams: u64) -> Result<Short, String> {
    let server = words("--mode paced --interval-us 20000");
    let output = bench.fresh("client.out");
    let tokens = SHORT_S * 50.0;
    let (done, _) =
        repetition((bench.server_core, &server), bench.client_core, &output, |address| {
            bench.goodput(address, &format!("--request-rate inf -n {streams} --osl {tokens}"))
        })?;
    let summary = bench.summary()?;
    let verdict = summary["validity"]["verdict"].as_str().unwrap_or("none").to_uppercase();
    Ok((verdict, summary["validity"]["reasons"].clone(), done.disturbed()))
}
