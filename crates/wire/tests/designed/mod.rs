//! The members of `summary.json` that DESIGN §15 lists, written from its text:
//! what the tests of two crates hold the program against.

/// The members of the summary itself, in order.
pub(crate) const TOP: &[&str] = &[
    "schema",
    "run_id",
    "target",
    "engine",
    "simulated",
    "workload",
    "load",
    "outcomes",
    "metrics",
    "service_metrics",
    "all_requests_metrics",
    "throughput",
    "steady",
    "goodput",
    "tokens",
    "slices",
    "fairness",
    "conversations",
    "stages_ms",
    "efficiency",
    "signals",
    "validity",
    "definitions",
    "findings",
    "lints",
    "caveats",
    "absent",
];

/// Members of objects inside, by the path of the object.
pub(crate) const NESTED: &[(&str, &[&str])] = &[
    (
        "load",
        &["kind", "offered_rps", "released_rps", "completed_rps", "max_in_flight", "duration_s"],
    ),
    ("outcomes", &["ok", "empty", "failed", "not_sent", "cancelled", "by_kind"]),
    (
        "metrics",
        &[
            "ttft_ms",
            "ttfc_ms",
            "tpot_ms",
            "icl_ms",
            "itl_ms",
            "e2el_ms",
            "generation_ms",
            "finish_lag_ms",
        ],
    ),
    (
        "throughput",
        &[
            "output_tok_s",
            "input_computed_tok_s",
            "input_cached_tok_s",
            "input_tok_s",
            "total_tok_s",
            "req_s",
            "wasted_tok_s",
        ],
    ),
    ("steady", &["window_s"]),
    ("tokens", &["input", "output", "source", "cached", "wasted"]),
    ("validity", &["verdict", "reasons", "lateness_us", "client_lag_us", "instrument_floor"]),
];

/// Members of a distribution.
pub(crate) const DISTRIBUTION: &[&str] = &[
    "n",
    "n_undefined",
    "mean",
    "std",
    "min",
    "p50",
    "p90",
    "p95",
    "p99",
    "p999",
    "max",
    "few_samples",
    "unbounded",
];

/// Members of `goodput`, which is null without objectives.
pub(crate) const GOODPUT: &[&str] = &[
    "slo",
    "req_s",
    "tok_s",
    "good",
    "of",
    "attainment",
    "vacuous",
    "undecided",
    "per_slo",
    "per_label",
];
