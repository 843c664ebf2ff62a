//! `sim serve --fault`: what a run reports of answers that go wrong on request.

use fake::faults::{Excludes, KINDS, Kind};
use measure::Outcome;
use serde_json::Value;

use crate::program::Workplace;
use crate::serving::Serving;

const REQUESTS: usize = 3;
const TOKENS: u64 = 40;

/// What is to be seen of a fault besides its outcome and its warnings.
struct Seen {
    fault: &'static str,
    /// Output tokens that left the server.
    tokens: u64,
    of_row: fn(&Value) -> bool,
}

const SEEN: &[Seen] = &[
    Seen {
        fault: "slow-first-token,for=150ms",
        tokens: TOKENS,
        of_row: |row| ms(row, "ttft_ms") > 150.0,
    },
    Seen { fault: "stall", tokens: 8, of_row: has_eight_chunks },
    Seen { fault: "truncate", tokens: 8, of_row: has_eight_chunks },
    Seen { fault: "disconnect", tokens: 8, of_row: has_eight_chunks },
    Seen { fault: "reset", tokens: 8, of_row: has_eight_chunks },
    Seen {
        fault: "error-event",
        tokens: 8,
        of_row: |row| {
            let message = row["message"].as_str().is_some_and(|said| said.contains("on request"));
            has_eight_chunks(row) && message && row["error_code"] == "500"
        },
    },
    Seen {
        fault: "refuse",
        tokens: 0,
        of_row: |row| row["status"] == 429 && ms(row, "retry_after_s").to_bits() == 1_f64.to_bits(),
    },
    Seen { fault: "comments,every=20ms", tokens: TOKENS, of_row: has_all_chunks },
    Seen {
        fault: "chunks",
        tokens: TOKENS,
        of_row: |row| row["output_chunks"] == TOKENS / 4 && row["output_tokens"] == TOKENS,
    },
    Seen { fault: "role-only", tokens: TOKENS, of_row: has_all_chunks },
    Seen {
        fault: "no-usage",
        tokens: TOKENS,
        of_row: |row| has_all_chunks(row) && row["tokens_source"] != "usage",
    },
    Seen {
        fault: "late-usage,for=300ms",
        tokens: TOKENS,
        of_row: |row| {
            let over_ms = ms(row, "ended_at_ms") - ms(row, "intended_at_ms");
            has_all_chunks(row) && over_ms > ms(row, "e2el_ms") + 100.0
        },
    },
    Seen {
        fault: "reasoning",
        tokens: TOKENS,
        of_row: |row| row["reasoning_tokens"] == 8 && ms(row, "ttfc_ms") >= ms(row, "ttft_ms"),
    },
    Seen { fault: "coalesce", tokens: TOKENS, of_row: has_all_chunks },
];

fn ms(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

fn has_eight_chunks(row: &Value) -> bool {
    row["output_chunks"] == 8
}

fn has_all_chunks(row: &Value) -> bool {
    row["output_chunks"] == TOKENS && row["output_tokens"] == TOKENS
}

fn bench(workplace: &Workplace, url: &str, more: &[&str]) -> Vec<Value> {
    let start = ["bench", url, "-n", "3", "-c", "3", "--isl", "20", "--osl", "40", "--ignore-eos"];
    workplace.run(&[&start[..], &["--allow-invalid", "--out", "run"], more].concat());
    workplace.export("run")
}

/// Warnings that a busy machine may add: they are about instants.
const OF_INSTANTS: &[&str] = &["bursty_delivery", "not_streamed", "clock_step"];

#[track_caller]
fn is_as_its_entry_says(row: &Value, kind: &Kind) {
    let Kind { outcome, .. } = kind;
    let failure = match outcome {
        Outcome::Failed(failure) => Value::from(failure.name()),
        _ => Value::Null,
    };
    assert_eq!((&row["outcome"], &row["kind"]), (&outcome.name().into(), &failure), "{row}");
    let found: Vec<&str> =
        row["warnings"].as_array().unwrap().iter().flat_map(Value::as_str).collect();
    let wanted = kind.warnings.names();
    // A server that is late enough lets the bursts of an answer become one.
    let is_found = |name: &&str| {
        found.contains(name) || (*name == "bursty_delivery" && found.contains(&"not_streamed"))
    };
    assert!(wanted.iter().all(is_found), "{}: {row}", kind.name);
    let explained = |name: &&str| wanted.contains(name) || OF_INSTANTS.contains(name);
    assert!(found.iter().all(explained), "{}: {row}", kind.name);
}

#[test]
fn a_run_reports_every_fault_as_its_entry_says() {
    for kind in KINDS {
        let seen = SEEN.iter().find(|seen| seen.fault.split(',').next() == Some(kind.name));
        let seen = seen.unwrap_or_else(|| panic!("{} is not looked at", kind.name));
        let workplace = Workplace::new();
        let more = ["--fault", seen.fault, "--ground-truth", "truth.jsonl"];
        let serving = Serving::start(&workplace, &more);
        // A stalled answer never goes on.
        let more = if kind.name == "stall" { &["--idle-timeout", "1"][..] } else { &[] };
        let rows = bench(&workplace, &serving.url(), more);
        assert_eq!(rows.len(), REQUESTS);
        for row in &rows {
            is_as_its_entry_says(row, kind);
            assert!((seen.of_row)(row), "{}: {row}", kind.name);
        }
        // What the engine says of them: it hears of cuts, and of nothing else.
        let ends = [("\"length\"", Excludes::Itself), ("\"abort\"", Excludes::Ends)];
        for (reason, ended_by) in ends {
            let ended = if kind.excludes == ended_by { REQUESTS as f64 } else { 0.0 };
            let told = serving.metric("vllm:request_success_total{", reason);
            assert!((told - ended).abs() < 0.1, "{}: {reason} {told}", kind.name);
        }
        serving.end();
        let truth = wire::truth::decode(workplace.read("truth.jsonl").as_bytes()).unwrap();
        let answers = if seen.tokens > 0 { REQUESTS } else { 0 };
        assert_eq!(truth.truths.len(), answers, "{}", kind.name);
        for truth in truth.truths {
            assert_eq!(truth.token_ns.len() as u64, seen.tokens, "{}", kind.name);
            assert_eq!(
                truth.planned_token_ns.map(|planned| planned.len() as u64),
                Some(seen.tokens)
            );
        }
    }
}

#[test]
fn a_header_breaks_answers_only_where_the_server_allows_it() {
    let header = ["--header", "x-goodput-fault: truncate,after=3"];
    for (allows, kind) in
        [(&["--faults-by-header"][..], Value::from("truncated")), (&[], Value::Null)]
    {
        let workplace = Workplace::new();
        let serving = Serving::start(&workplace, allows);
        let rows = bench(&workplace, &serving.url(), &header);
        assert!(rows.len() == REQUESTS && rows.iter().all(|row| row["kind"] == kind), "{rows:?}");
        serving.end();
    }
}
