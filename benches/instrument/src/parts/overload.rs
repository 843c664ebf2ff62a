//! (e) Overload: the load is raised until the run is no longer VALID. What is
//! tested is that it does stop being VALID, before its figures are wrong.

use std::collections::BTreeMap;

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

/// Requests a second, level by level.
const LEVELS: &[u64] = &[250, 500, 750, 1_000, 1_500, 2_000, 3_000, 4_000, 6_000];

/// One level's figures.
struct Level {
    rate: u64,
    verdict: String,
    value: Value,
    /// (reported − true) ÷ true, of the p99.
    wrong_by: f64,
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

/// (v) At 70 % of the highest valid level short runs are VALID.
pub(super) fn short_runs(bench: &Bench) -> Done {
    let head = ["req/s", "runs", "VALID", "not valid because"];
    let mut table = Table::new("(v) Short runs at 70 % of the highest VALID rate", &head);
    let mut highest = LEVELS[0];
    if !bench.quick {
        for &rate in LEVELS {
            if level(bench, rate, 2.0)?.verdict != "VALID" {
                break;
            }
            highest = rate;
        }
    }
    let rate = highest * 7 / 10;
    let runs = if bench.quick { 2 } else { 100 };
    let mut reasons = Vec::new();
    for number in 0..runs {
        let level = level(bench, rate, 1.0)?;
        if level.verdict != "VALID" {
            reasons.push(level.value["reasons"].clone());
            crate::tell(&format!("    run {number}: {}", level.verdict));
        }
    }
    let mut why: BTreeMap<&str, usize> = BTreeMap::new();
    for id in reasons.iter().filter_map(|list| list.get(0)?.get("id")?.as_str()) {
        *why.entry(id).or_default() += 1;
    }
    let why: Vec<String> = why.iter().map(|(id, count)| format!("{id} × {count}")).collect();
    let valid = runs - reasons.len();
    table.rows.push(vec![
        rate.to_string(),
        runs.to_string(),
        valid.to_string(),
        if why.is_empty() { "–".to_owned() } else { why.join(", ") },
    ]);
    Ok((json!({"rate": rate, "runs": runs, "valid": valid, "reasons": reasons}), vec![table]))
}
