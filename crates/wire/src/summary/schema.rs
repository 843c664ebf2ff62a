//! The JSON Schema of `summary.json`, made from the same tables as the object
//! itself: the keys, and the metric registry with its words.

use measure::metric::{Branch, How, METRICS, Metric, find};
use measure::stage;
use measure::statistics::PERCENTILES;
use serde_json::{Map, Value, json};

use super::{KEYS, SCHEMA};

/// One member of an object: name, type and words. A type that ends in `?` may
/// be null.
type Member = (&'static str, &'static str, &'static str);

/// The members of the object itself that are not objects with a table of
/// their own.
const PLAIN: &[Member] = &[
    ("run_id", "string", "Id of the run; empty in a file without one."),
    ("target", "string", "The address that was measured, without secrets."),
    ("engine", "string?", "The serving engine, where it named itself."),
    ("model", "string?", "The model that was asked for."),
    ("simulated", "boolean", "True when an engine model answered instead of an engine."),
    ("as_reported", "object", "Aggregates of an imported file that its rows cannot give."),
    ("answer_warnings", "object", "Warnings about the form of answers, and how many had each."),
    ("peaks", "object?", "Peaks as the tool of the definition prints them."),
    (
        "stages",
        "object",
        "The split of TTFT as a whole: ttft_mean_ms, foreign_share (requests of others in the \
         server's figures), refused (why there is no split), notes; what is not known is left out.",
    ),
];

const WORKLOAD: &[Member] = &[
    ("source", "string", "Where prompts come from."),
    ("input_lengths", "string", "Prompt lengths asked for, in words."),
    ("output_lengths", "string", "Output lengths asked for, in words."),
    ("tokenizer", "string?", "The tokenizer that prompt lengths were counted by before sending."),
    ("cache_regime", "string", "cold, none, warm or as-is."),
    ("prefix_tokens", "integer?", "Tokens that a prompt shares with others by design."),
    ("oversampled", "number?", "How often each row of a data set was used."),
    ("use_case", "string?", "The use case that settings and the first figures are of."),
    ("notes", "array", "Things to know about the workload."),
];

const LOAD: &[Member] = &[
    ("kind", "string", "open, capped, closed, burst or unknown."),
    (
        "arrivals",
        "string",
        "The load shape, where the rate changes, and the arrival process in words.",
    ),
    (
        "request_rate",
        "number?",
        "Requests a second asked for; null where the rate changes by plan.",
    ),
    ("burstiness", "number?", "Gamma shape of the gaps between arrivals; 1 is Poisson."),
    ("users", "integer?", "Users of a closed loop, or the cap of a capped one."),
    ("seed", "integer", "Seed of every draw."),
    ("schedule_hash", "string", "Digest of the schedule."),
    ("offered_rps", "number?", "Arrivals a second over the arrival window."),
    ("released_rps", "number?", "Requests released a second over the arrival window."),
    ("completed_rps", "number?", "Successes a second over the makespan."),
    ("max_in_flight", "integer", "Largest number of requests in flight at once."),
    ("duration_s", "number?", "The makespan: first intended instant to last event."),
    ("arrival_window_s", "number?", "Length of the arrival window."),
    (
        "replay",
        "object?",
        "How well a trace was replayed: rows, speed, window_s of the trace; arrivals planned, \
         sent, missed, and rows sent again (duplicated); lag_ms of sends behind the trace's \
         instants; planned_span_s and sent_span_s from the first to the last; input_tokens and \
         output_tokens requested and served, over n requests of which exact have the very length.",
    ),
];

const OUTCOMES: &[Member] = &[
    ("ok", "integer", "Finished with output."),
    ("empty", "integer", "Finished without output."),
    ("failed", "integer", "Sent, and it went wrong."),
    ("not_sent", "integer", "Never sent, by the client's own fault."),
    ("cancelled", "integer", "Stopped by the client: interrupt, end of the run or a stop rule."),
    ("by_kind", "object", "Failures and unsent requests by kind."),
    ("by_status", "object", "HTTP error statuses and how many requests got each."),
    ("messages", "object", "A sample message of each kind, as the server or transport put it."),
];

const STEADY: &[Member] = &[
    ("window_s", "number?", "Length of the steady window."),
    ("from_ms", "number?", "Its start on the run's clock."),
    ("until_ms", "number?", "Its end on the run's clock."),
    ("output_tok_s", "number?", "Output tokens that arrived inside, a second."),
    ("req_s", "number?", "Successes that ended inside, a second."),
    ("mean_in_flight", "number?", "Mean number of requests in flight."),
    ("goodput_req_s", "number?", "Good ones of the requests intended inside, a second."),
    ("attainment", "number?", "Share of good ones of the requests intended inside."),
    ("error_rate", "number?", "Failed and empty ones of those intended inside that ended."),
];

const GOODPUT: &[Member] = &[
    ("slo", "string", "The objective of a request, all terms."),
    ("good", "integer", "Requests that met every term."),
    ("of", "integer", "Requests that could be judged."),
    ("attainment_bounds", "array?", "Attainment with all undecided ones bad, and with all good."),
    ("vacuous", "integer", "Good requests of which a term could not apply."),
    ("undecided", "integer", "Requests that were stopped before they could be judged."),
    ("client_faults", "integer", "Requests that were never sent by the client's own fault."),
    ("not_asked", "integer", "Requests that no set of terms is for."),
    ("per_slo", "object", "Each term by itself, as ttft or tenant=a:ttft: limit in ms, met, of."),
    ("per_label", "object", "By label name and value: the slo that they were judged by, good, of."),
];

const TOKENS: &[Member] = &[
    ("input", "integer?", "Prompt tokens of successes, as the server counted them."),
    ("output", "integer?", "Output tokens of successes."),
    ("source", "string?", "Where output counts come from; mixed where there are several sources."),
    ("sources", "object", "Successes by source of their output count."),
    ("cached", "integer?", "Prompt tokens from a prefix cache."),
    ("cached_share", "number?", "Their share of all prompt tokens."),
    ("wasted", "integer", "Output tokens of answers that were no success."),
];

const VALIDITY: &[Member] = &[
    ("reasons", "array", "What speaks against the run: id, verdict, text; worst first."),
    ("lateness_us", "object?", "How late requests were sent: p50, p99, max."),
    ("client_lag_us", "object?", "User stamp less kernel stamp: p50, p99, max."),
    ("burst_length_ms", "number?", "First to last send, when all was intended at once."),
    (
        "stamp_source",
        "string",
        "Where receive stamps come from: kernel, user, mixed, none, or virtual, of a simulated run without a clock.",
    ),
    (
        "stamp_error_p99_us",
        "number?",
        "How much too late the stamp of a token arrival may be, at p99.",
    ),
    (
        "busiest_thread",
        "number?",
        "The busiest sending thread's share of its time, without polling to send on time.",
    ),
    ("throttled_ms", "number?", "Time for which the control group held the process back."),
    ("clock_steps", "integer", "Steps of the wall clock during the run."),
    ("instrument_floor", "object?", "The instrument's own error, from a self-test."),
];

const STAGE: &[Member] = &[
    ("id", "string", "client_wait, network, front_end, queue, prefill and others."),
    ("name", "string", "What it is."),
    ("mean_ms", "number", "Mean over the requests of the window."),
    ("share", "number", "Share of the mean TTFT."),
    ("is_residual", "boolean", "True for what is left when all others are taken away."),
    ("from", "string", "client, server, probe, given or bound."),
    ("how", "string", "How it was found."),
];

const PANEL: &[Member] = &[
    ("key", "string", "What it is."),
    ("value", "number?", "Its value; where it is null, why says what would expose it."),
    ("unit", "string", "Its unit; empty for a ratio."),
    ("inputs", "array", "Where its inputs came from, in words."),
];

const SIGNALS: &[Member] = &[
    ("engine", "string?", "The engine that the metrics are of: vllm, sglang and others."),
    ("version", "string?", "Its version."),
    ("window_s", "number", "First measured send to last measured event."),
    (
        "scraping",
        "object",
        "sources, scrapes taken and failed, slowest_ms, widest_gap_ms between two, latest_ms after one was due.",
    ),
    (
        "readings",
        "object",
        "By signal (goodput explain signals): kind, unit, value (mean of a gauge or a histogram, \
         increase of a counter, a fact); min, max, first, last, n of a gauge; per_s of a counter; \
         count, sum of a histogram.",
    ),
    ("instances", "array", "The same of each engine or device, where there are two or more."),
    ("settings", "object", "Settings that the engine tells of itself."),
    ("notes", "array", "Things to know about the readings."),
    ("absent", "object", "Signals that are not there, why, and what would expose them."),
];

const FINDING: &[Member] = &[
    ("rule", "string", "Id of the rule: goodput explain tells it."),
    (
        "class",
        "string",
        "queueing, prefill, decode, kv_capacity, prefix_cache, bandwidth, compute, communication, \
         host, network, client, underload, workload or misconfiguration.",
    ),
    ("confidence", "string", "confirmed, likely or possible."),
    ("title", "string", "The cause in a few words."),
    ("says", "string", "What happens here, with the numbers."),
    ("missing", "array", "What is missing to be sure."),
    ("experiment", "string", "What would refute it."),
    ("command", "string?", "The experiment as a command; null where none does it."),
    ("improves", "array", "Keys of the metrics that must improve when it is mended."),
    (
        "share",
        "number",
        "How much of what is wrong it explains, 0 to 1; findings are sorted by it.",
    ),
    ("seen_live", "boolean", "False of a rule that was tested on made data only."),
];

const EVIDENCE: &[Member] = &[
    ("what", "string", "What was measured."),
    ("value", "number", "The number."),
    ("unit", "string", "Its unit; empty for a ratio."),
    ("from", "string", "client, server, probe, given or bound."),
];

const DIRECTION: &[Member] = &[
    ("text", "string", "What to change, and what it costs."),
    ("flag", "string?", "The flag of the engine at hand; null where it has none or is not known."),
];

const LINT: &[Member] = &[
    ("id", "string", "Id of the lint: goodput explain tells it."),
    ("concerns", "string", "Key of the number that is easily misread."),
    ("text", "string", "What it does not say here."),
];

/// The JSON Schema (draft 2020-12) that every `summary.json` of this version
/// keeps to. Further members may come; none of these goes.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for key in KEYS {
        properties.insert((*key).to_owned(), property(key));
    }
    for (key, kind, words) in PLAIN {
        properties.entry(*key).or_insert_with(|| typed(kind, words));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "goodput summary.json",
        "description": "All figures of a run. Every key is always there; what was not measured is \
                        null and named under absent. Made from the metric registry; do not edit.",
        "type": "object",
        "required": KEYS,
        "properties": properties,
        "$defs": {"distribution": distribution()},
    })
}

fn property(key: &str) -> Value {
    let metric = |key: &str| METRICS.iter().find(|metric| metric.key == key);
    match key {
        "schema" => json!({"const": SCHEMA, "description": "Name and version of this form."}),
        "workload" => object("What was sent.", members(WORKLOAD)),
        "load" => object("What was offered and released, and what came back.", members(LOAD)),
        "outcomes" => object("How the requests ended.", members(OUTCOMES)),
        "metrics" => metrics(),
        "service_metrics" => distributions("The same from the actual send."),
        "all_requests_metrics" => distributions(
            "Latencies of all requests: failures never came, time-outs at least so long.",
        ),
        "throughput" => object(
            "Rates over the makespan, or as the definitions say.",
            METRICS
                .iter()
                .filter(|metric| metric.branch == Branch::Throughput)
                .filter(|metric| !metric.key.starts_with("goodput"))
                .map(|metric| (metric.key, measured(metric)))
                .collect(),
        ),
        "steady" => {
            let mut of = members(STEADY);
            of.push(("metrics", distributions("Requests intended inside, followed to their end.")));
            object("Figures without ramp and drain; null where no part was steady.", of)
        }
        "goodput" => {
            let mut of = members(GOODPUT);
            for (name, key) in [
                ("req_s", "goodput_req_s"),
                ("tok_s", "goodput_tok_s"),
                ("attainment", "attainment"),
            ] {
                of.extend(metric(key).map(|metric| (name, measured(metric))));
            }
            nullable(object("Null without an SLO.", of))
        }
        "tokens" => object("Token totals.", members(TOKENS)),
        "slices" => object("The run by prompt length and by label.", slices()),
        "fairness" => json!({
            "type": "object",
            "description": "By label with two values or more: jain_attainment, jain_speed, \
                            largest_slowdown, without_isolated, and by value attainment, \
                            speed_tok_s, slowdown.",
            "additionalProperties": {"type": "object"},
        }),
        "conversations" => nullable(object(
            "Conversations as wholes; null where requests are no turns of any.",
            conversations(),
        )),
        "stages_ms" => list_of(
            "Stages of TTFT in the order in which a request passes them; empty without a split.",
            members(STAGE),
        ),
        "efficiency" => efficiency(),
        "signals" => nullable(object(
            "What was read of the server over the measured window; null where nothing was.",
            members(SIGNALS),
        )),
        "validity" => validity(),
        "definitions" => definitions(),
        "findings" => findings(),
        "lints" => list_of("Numbers that are easily misread here.", members(LINT)),
        "caveats" => list("What makes the result weaker than it looks: id, text."),
        "absent" => json!({
            "type": "object",
            "description": "Path of what is null, and why.",
            "additionalProperties": {"type": "string"},
        }),
        _ => PLAIN
            .iter()
            .find(|(name, ..)| *name == key)
            .map_or_else(|| json!({}), |(_, kind, words)| typed(kind, words)),
    }
}

fn typed(kind: &str, words: &str) -> Value {
    match kind.strip_suffix('?') {
        Some(kind) => json!({"type": [kind, "null"], "description": words}),
        None => json!({"type": kind, "description": words}),
    }
}

fn conversations() -> Vec<(&'static str, Value)> {
    let counts = [
        ("begun", "Conversations of which a turn was sent."),
        ("completed", "All turns ended ok."),
        ("broken", "A turn did not end well."),
        ("stopped", "Stopped by us before anything went wrong."),
        ("turns", "Turns planned in those that were begun."),
        ("turns_ok", "Turns that ended ok."),
    ];
    let mut of: Vec<_> =
        counts.into_iter().map(|(name, words)| (name, typed("integer", words))).collect();
    let words = "First intended instant to last end of completed conversations, pauses included: \
                 a distribution as in metrics.";
    of.push(("duration_ms", json!({"type": "object", "description": words})));
    of
}

fn slices() -> Vec<(&'static str, Value)> {
    let parts = "of is {input_tokens: [from, below]} or {label, value}, value null for requests \
                 without the label; n requests of which ok ended well; ttft_ms, tpot_ms and \
                 e2el_ms have n, p50 and p99.";
    vec![
        (
            "by_input",
            list(&format!("Successes by prompt length as the server counted it: {parts}")),
        ),
        ("by_label", list(&format!("All requests by each label: {parts}"))),
        (
            "tail_owner",
            json!({
                "type": ["object", "null"],
                "description": "The bucket of prompt lengths that at least half of the slowest \
                                hundredth by TTFT lies in, and one and a half times its share of \
                                the requests; null where none does or there are fewer than 100.",
            }),
        ),
    ]
}

fn list(words: &str) -> Value {
    json!({"type": "array", "items": {"type": "object"}, "description": words})
}

/// A list of objects of which every member named here is always there.
fn list_of(words: &str, members: Vec<(&'static str, Value)>) -> Value {
    let mut list = list(words);
    let mut items = object("", members);
    items.as_object_mut().expect("it was made as one").remove("description");
    list["items"] = items;
    list
}

fn findings() -> Value {
    let mut of = members(FINDING);
    of.push(("evidence", list_of("Numbers that speak for it.", members(EVIDENCE))));
    of.push(("against", list_of("Numbers that speak against it.", members(EVIDENCE))));
    of.push(("directions", list_of("What to change.", members(DIRECTION))));
    list_of("What limits the run; the first explains most.", of)
}

fn efficiency() -> Value {
    let mut of: Vec<(&'static str, Value)> = METRICS
        .iter()
        .filter(|metric| metric.branch == Branch::Efficiency)
        .map(|metric| (metric.key, measured(metric)))
        .collect();
    of.push(("inputs", typed("object", "By key, where the inputs came from, in words.")));
    let panel = "Six signals that together say whether busy is useful.";
    of.push(("panel", list_of(panel, members(PANEL))));
    object("How well hardware and money are used.", of)
}

fn members(table: &[Member]) -> Vec<(&'static str, Value)> {
    table.iter().map(|(name, kind, words)| (*name, typed(kind, words))).collect()
}

/// An object of which every member named here is always there.
fn object(words: &str, members: Vec<(&'static str, Value)>) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect();
    json!({
        "type": "object",
        "description": words,
        "required": required,
        "properties": properties,
    })
}

fn nullable(mut object: Value) -> Value {
    object["type"] = json!(["object", "null"]);
    object
}

/// What the registry says of a metric.
fn words(metric: &Metric) -> String {
    format!(
        "{} ({}), {}. {} Formula: {} Undefined when: {}.",
        metric.name.en,
        metric.symbol,
        metric.unit.symbol(),
        metric.text.en,
        sentence(metric.formula),
        metric.undefined_when
    )
}

fn sentence(words: &str) -> String {
    if words.ends_with('.') { words.to_owned() } else { format!("{words}.") }
}

fn measured(metric: &Metric) -> Value {
    json!({"type": ["number", "null"], "description": words(metric)})
}

fn metrics() -> Value {
    let mut of: Vec<(&'static str, Value)> = METRICS
        .iter()
        .filter(|metric| matches!(metric.how, How::Request(_) | How::Gaps | How::TokenGaps))
        .map(|metric| {
            let words = words(metric);
            (metric.key, json!({"$ref": "#/$defs/distribution", "description": words}))
        })
        .collect();
    if let Some(rate) = METRICS.iter().find(|metric| metric.key == "interactivity_tok_s") {
        let figures = PERCENTILES
            .iter()
            .map(|(name, _)| (*name, json!({"type": ["number", "null"]})))
            .collect();
        of.push((rate.key, object(&words(rate), figures)));
    }
    for metric in stage::METRICS.iter().filter_map(|(key, _)| find(key)) {
        let words = format!("{} Its mean, by the server's metrics.", words(metric));
        let mean = json!({"type": "number", "description": "Mean."});
        of.push((metric.key, nullable(object(&words, vec![("mean", mean)]))));
    }
    object("Successes, from the start that definitions.ttft.start names.", of)
}

fn distributions(words: &str) -> Value {
    json!({
        "type": "object",
        "description": words,
        "additionalProperties": {"$ref": "#/$defs/distribution"},
    })
}

fn distribution() -> Value {
    let figure = |words: String| json!({"type": ["number", "null"], "description": words});
    let names =
        |words: &str| json!({"type": "array", "items": {"type": "string"}, "description": words});
    let mut of = vec![
        ("n", typed("integer", "Samples with a value.")),
        ("n_undefined", typed("integer", "Members of the population without a value.")),
        ("mean", figure("Arithmetic mean.".to_owned())),
        ("std", figure("Standard deviation, no degrees of freedom removed.".to_owned())),
        ("min", figure("Smallest sample.".to_owned())),
    ];
    of.extend(PERCENTILES.iter().map(|(name, q)| {
        let percent = (q * 1e6).round() / 1e4;
        (*name, figure(format!("Percentile {percent}, linear between samples.")))
    }));
    of.push(("max", figure("Largest sample.".to_owned())));
    of.push(("few_samples", names("Percentiles with fewer than ten samples beyond them.")));
    of.push(("unbounded", names("Figures that failures make infinite; they are null.")));
    let mut object = object(
        "Figures of one metric, in its unit; null explains itself by undefined, unbounded and \
         at_least_ms.",
        of,
    );
    // Not in every distribution, so that they are not required.
    let numbers = json!({"type": "number"});
    object["properties"]["at_least_ms"] = json!({
        "type": "object",
        "description": "Figures that a time-out cut off, and what they are at least; they are null.",
        "additionalProperties": numbers,
    });
    object["properties"]["censored"] =
        json!({"type": "number", "description": "Share of samples that a time-out cut off."});
    object["properties"]["undefined"] = json!({
        "type": "object",
        "description": "Members without a value by reason.",
        "additionalProperties": {"type": "integer"},
    });
    object["patternProperties"] =
        json!({"^p[0-9.]+$": {"type": ["number", "null"], "description": "As asked for."}});
    object
}

fn validity() -> Value {
    let mut of = members(VALIDITY);
    let verdict = json!({
        "enum": ["VALID", "DEGRADED", "INVALID"],
        "description": "Whether the figures describe the server.",
    });
    of.insert(0, ("verdict", verdict));
    object("Whether the run can be trusted.", of)
}

fn definitions() -> Value {
    let span = |words: &str| {
        object(words, members(&[("start", "string", "Its start."), ("end", "string", "Its end.")]))
    };
    let mut of = members(&[
        ("name", "string", "The preset."),
        ("tpot", "string", "The formula of TPOT."),
        ("itl_unit", "string", "What a gap is."),
        ("token_source", "string", "Where token counts come from."),
        ("throughput", "string", "Numerator and window of throughput."),
        ("goodput", "string", "The goodput rule."),
        ("percentiles", "string", "The percentile method."),
        ("failures", "string", "What happens to failures."),
        ("cap", "string", "What happens to the wait for a concurrency cap."),
    ]);
    of.push(("ttft", span("Where TTFT starts and ends.")));
    of.push(("e2el", span("Where E2EL starts and ends.")));
    of.push((
        "metrics",
        json!({
            "type": "object",
            "description": "Number of each metric's definition; raised when it can give another value.",
            "additionalProperties": {"type": "integer"},
        }),
    ));
    object("The definitions of all figures: compare them before the figures.", of)
}
