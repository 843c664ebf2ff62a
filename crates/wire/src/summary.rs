//! `summary.json`: all figures of a run as one JSON object. Every key is
//! always there; what was not measured is `null` and named under `absent` by
//! its path, or by that of the object it is in. Inside a distribution `null`
//! explains itself: `undefined` counts the reasons where there is no sample,
//! `unbounded` and `at_least_ms` name the figures that failures and time-outs
//! took away.

mod inside;
mod schema;

use measure::conversations::Conversations;
use measure::fairness::Fairness;
use measure::goodput::{Asked, Goodput};
use measure::metric::METRICS;
use measure::replay::{Fidelity, Kept};
use measure::slices::{Part, Slice, Slices};
use measure::statistics::{Distribution, PERCENTILES, percentile_name};
use measure::summary::{Steady, Summary, Throughput};
use measure::undefined::Undefined;
use serde_json::{Map, Value, json};

pub use inside::{diagnosis, finding};
pub use schema::schema;

/// Version of the object's form.
pub const SCHEMA: &str = "goodput.summary/1";

/// The keys that every summary has, in order.
pub const KEYS: &[&str] = &[
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

/// The summary as JSON.
pub fn to_json(summary: &Summary) -> Value {
    let facts = &summary.facts;
    let mut object = json!({
        "schema": SCHEMA,
        "run_id": facts.run_id,
        "target": facts.target,
        "engine": facts.engine,
        "model": facts.model,
        "simulated": facts.simulated,
        "workload": workload(summary),
        "load": load(summary),
        "outcomes": outcomes(summary),
        "metrics": metrics(summary),
        "service_metrics": distributions(&summary.service_metrics),
        "all_requests_metrics": distributions(&summary.all_requests_metrics),
        "throughput": throughput(&summary.throughput),
        "steady": steady(&summary.steady),
        "goodput": summary.goodput.as_ref().map(goodput),
        "tokens": tokens(summary),
        "slices": slices(&summary.slices),
        "fairness": map(summary.fairness.iter().map(|one| (one.label.as_str(), fairness(one)))),
        "conversations": summary.conversations.as_ref().map(conversations),
        "stages_ms": inside::stages(&summary.inside.stages),
        "stages": inside::split(&summary.inside.stages),
        "efficiency": inside::efficiency(&summary.inside.efficiency),
        "signals": inside::signals(summary.inside.signals.as_ref()),
        "validity": validity(summary),
        "definitions": definitions(summary),
        "findings": inside::findings(&summary.inside),
        "lints": inside::lints(&summary.inside.lints),
        "caveats": summary.caveats.iter()
            .map(|caveat| json!({"id": caveat.id, "text": caveat.text.en}))
            .collect::<Vec<_>>(),
        "answer_warnings": counted(summary.answer_warnings.iter().copied()),
        "as_reported": map(facts.as_reported.iter().map(|(key, value)| (key.as_str(), json!(value)))),
        "peaks": summary.peaks.map(|peaks| json!({
            "max_output_tokens_per_s": peaks.max_output_tokens_per_s,
            "max_concurrent_requests": peaks.max_concurrent_requests,
        })),
        "absent": {},
    });
    object["absent"] = absent(summary, &object);
    object
}

/// The reasons of all nulls, by path.
fn absent(summary: &Summary, object: &Value) -> Value {
    // Metrics that are one number are named by their key; they stand in here.
    let place = |key: &str| ["efficiency", "metrics"].into_iter().find(|of| has(object, of, key));
    let mut reasons: Map<String, Value> = summary
        .reasons()
        .into_iter()
        .map(|(key, reason)| {
            let path = place(&key).map_or_else(|| key.clone(), |of| format!("{of}.{key}"));
            (path, json!(reason.en))
        })
        .collect();
    for (path, reason) in UNASKED {
        let value = path.split('.').try_fold(object, |value, key| value.get(key));
        // The reason of a whole object stands for its members.
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        if value.is_some_and(Value::is_null) && !reasons.contains_key(parent) {
            reasons.entry(*path).or_insert_with(|| json!(reason));
        }
    }
    let tpot =
        summary.metrics.iter().find(|(key, _)| *key == "tpot_ms").map(|(_, figures)| figures);
    if summary.interactivity_tok_s.iter().any(|(_, value)| value.is_none()) {
        let reason = tpot.filter(|figures| figures.n == 0).map(Distribution::reason);
        // A rate of answers that took no time is no number.
        let reason = reason.unwrap_or(Undefined::NoTime).text();
        reasons.insert("metrics.interactivity_tok_s".to_owned(), json!(reason));
    }
    Value::Object(reasons)
}

fn has(object: &Value, of: &str, key: &str) -> bool {
    object[of].get(key).is_some()
}

const UNCOUNTED: &str = "the number of output tokens is unknown under these definitions";

/// Members that are null where something was not asked for, not said or does
/// not apply: path and reason.
const UNASKED: &[(&str, &str)] = &[
    ("engine", "the server did not name its engine"),
    ("model", "no model was named"),
    ("workload.tokenizer", "no tokenizer was given, so prompt lengths are not counted by one"),
    ("workload.prefix_tokens", "what these prompts have in common is not known"),
    ("workload.oversampled", "the prompts are no data set, or one that is long enough"),
    ("workload.use_case", "no use case was given"),
    ("load.replay", "no trace was replayed"),
    ("load.replay.window_s", "the whole trace was replayed"),
    ("load.replay.lag_ms", "nothing was sent"),
    ("load.replay.planned_span_s", "nothing was sent"),
    ("load.replay.sent_span_s", "nothing was sent"),
    ("load.request_rate", "no rate was asked for, or one that changes by plan"),
    ("load.burstiness", "arrivals were not drawn with a burstiness, or with an infinite one"),
    ("load.users", "neither users nor a cap on concurrency were given"),
    ("load.arrival_window_s", "there is no arrival schedule, or one of a single arrival"),
    ("metrics.tpot_ms.token_weighted_mean", UNCOUNTED),
    ("metrics.itl_ms.token_weighted_mean", UNCOUNTED),
    ("metrics.itl_ms.token_weighted_mean_over_osl", UNCOUNTED),
    ("tokens.input", Undefined::NoPromptCount.text()),
    ("tokens.output", Undefined::NoTokenCount.text()),
    ("tokens.source", Undefined::NoTokenCount.text()),
    ("tokens.cached", "the server does not say which prompt tokens were cached"),
    ("steady.output_tok_s", Undefined::NoTokenCount.text()),
    ("steady.goodput_req_s", Undefined::NoSlo.text()),
    ("steady.attainment", Undefined::NoSlo.text()),
    ("steady.error_rate", "no request of the steady part ended by itself"),
    ("goodput.req_s", Undefined::NoTime.text()),
    ("goodput.tok_s", Undefined::NoTime.text()),
    ("goodput.attainment", Undefined::Undecided.text()),
    ("goodput.attainment_bounds", Undefined::Undecided.text()),
    ("signals.engine", "the metrics are of no engine that is known"),
    ("signals.version", "the metrics do not tell the engine's version"),
    ("validity.burst_length_ms", "the requests were not all intended at once, or none was sent"),
    ("validity.stamp_error_p99_us", "the error of the receive stamps was not bounded"),
    ("validity.busiest_thread", "the processor time of the sending threads was not taken"),
    ("validity.throttled_ms", "no control group said whether it held this process back"),
    ("peaks", "only definitions of a tool that prints peaks have them"),
];

/// An object from pairs, in their order.
fn map<'a>(pairs: impl Iterator<Item = (&'a str, Value)>) -> Value {
    Value::Object(pairs.map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>())
}

fn counted(pairs: impl Iterator<Item = (&'static str, u64)>) -> Value {
    map(pairs.map(|(name, count)| (name, json!(count))))
}

fn workload(summary: &Summary) -> Value {
    let workload = &summary.facts.workload;
    json!({
        "source": workload.source,
        "input_lengths": workload.input_lengths,
        "output_lengths": workload.output_lengths,
        "tokenizer": workload.tokenizer,
        "cache_regime": workload.cache_regime,
        "prefix_tokens": workload.prefix_tokens,
        "oversampled": workload.oversampled,
        "use_case": workload.use_case,
        "notes": workload.notes,
    })
}

fn load(summary: &Summary) -> Value {
    let (load, figures) = (&summary.facts.load, &summary.load);
    json!({
        "kind": load.kind.name(),
        "arrivals": load.arrivals,
        "request_rate": load.request_rate,
        "burstiness": load.burstiness,
        "users": load.users,
        "seed": load.seed,
        "schedule_hash": load.schedule_hash,
        "offered_rps": figures.offered_rps,
        "released_rps": figures.released_rps,
        "completed_rps": figures.completed_rps,
        "max_in_flight": figures.max_in_flight,
        "duration_s": figures.duration_s,
        "arrival_window_s": figures.arrival_window_s,
        "replay": summary.replay.as_ref().map(replay),
    })
}

fn replay(fidelity: &Fidelity) -> Value {
    let kept = |kept: &Kept| {
        json!({
            "n": kept.n,
            "exact": kept.exact,
            "requested": kept.requested,
            "served": kept.served,
        })
    };
    let lag = fidelity.lag_ms.map(|[p50, p99, max]| json!({"p50": p50, "p99": p99, "max": max}));
    json!({
        "rows": fidelity.of.rows,
        "speed": fidelity.of.speed,
        "window_s": fidelity.of.window_s,
        "planned": fidelity.planned,
        "sent": fidelity.sent,
        "missed": fidelity.missed,
        "duplicated": fidelity.duplicated,
        "lag_ms": lag,
        "planned_span_s": fidelity.span_s.map(|(planned, _)| planned),
        "sent_span_s": fidelity.span_s.map(|(_, sent)| sent),
        "input_tokens": kept(&fidelity.input),
        "output_tokens": kept(&fidelity.output),
    })
}

fn outcomes(summary: &Summary) -> Value {
    let counts = &summary.outcomes;
    json!({
        "ok": counts.ok,
        "empty": counts.empty,
        "failed": counts.failed,
        "not_sent": counts.not_sent,
        "cancelled": counts.cancelled,
        "by_kind": counted(counts.by_kind.iter().map(|(kind, count)| (*kind, *count))),
        "by_status": Value::Object(counts.by_status.iter()
            .map(|(status, count)| (status.to_string(), json!(count)))
            .collect()),
        "messages": map(counts.messages.iter().map(|(kind, text)| (*kind, json!(text)))),
    })
}

fn metrics(summary: &Summary) -> Value {
    let mut metrics = distributions(&summary.metrics);
    let weighted = &summary.weighted;
    let extra = [
        ("tpot_ms", "token_weighted_mean", weighted.tpot_token_weighted_ms),
        ("itl_ms", "token_weighted_mean", weighted.itl_mean_ms),
        ("itl_ms", "token_weighted_mean_over_osl", weighted.itl_mean_over_osl_ms),
    ];
    for (key, name, value) in extra {
        if let Some(metric) = metrics.get_mut(key) {
            metric[name] = json!(value);
        }
    }
    metrics["interactivity_tok_s"] =
        map(summary.interactivity_tok_s.iter().map(|(name, value)| (*name, json!(value))));
    for (key, value) in inside::stage_metrics(&summary.inside.stages) {
        metrics[key] = value;
    }
    metrics
}

fn distributions(distributions: &[(&'static str, Distribution)]) -> Value {
    map(distributions.iter().map(|(key, figures)| (*key, distribution(figures))))
}

fn distribution(figures: &Distribution) -> Value {
    let mut object = Map::new();
    object.insert("n".to_owned(), json!(figures.n));
    object.insert("n_undefined".to_owned(), json!(figures.n_undefined()));
    object.insert("mean".to_owned(), json!(figures.mean));
    object.insert("std".to_owned(), json!(figures.std));
    object.insert("min".to_owned(), json!(figures.min));
    for (position, (name, _)) in PERCENTILES.iter().enumerate() {
        object.insert((*name).to_owned(), json!(figures.percentiles.get(position)));
    }
    for (percent, value) in &figures.extra {
        object.entry(percentile_name(*percent)).or_insert_with(|| json!(value));
    }
    object.insert("max".to_owned(), json!(figures.max));
    object.insert("few_samples".to_owned(), json!(figures.few_samples));
    object.insert("unbounded".to_owned(), json!(figures.unbounded));
    if !figures.at_least.is_empty() {
        let bounds = figures.at_least.iter().map(|(name, value)| (*name, json!(value)));
        object.insert("at_least_ms".to_owned(), map(bounds));
        object.insert("censored".to_owned(), json!(figures.censored));
    }
    let reasons = figures.undefined.iter().map(|(reason, count)| (reason.name(), *count));
    object.insert("undefined".to_owned(), counted(reasons));
    Value::Object(object)
}

fn throughput(rates: &Throughput) -> Value {
    json!({
        "output_tok_s": rates.output_tok_s,
        "input_computed_tok_s": rates.input_computed_tok_s,
        "input_cached_tok_s": rates.input_cached_tok_s,
        "input_tok_s": rates.input_tok_s,
        "total_tok_s": rates.total_tok_s,
        "req_s": rates.req_s,
        "wasted_tok_s": rates.wasted_tok_s,
    })
}

fn steady(steady: &Steady) -> Value {
    let window = steady.window.as_ref().ok();
    json!({
        "window_s": window.map(|window| window.length().s()),
        "from_ms": window.map(|window| window.from.ms()),
        "until_ms": window.map(|window| window.until.ms()),
        "output_tok_s": steady.output_tok_s,
        "req_s": steady.req_s,
        "mean_in_flight": steady.mean_in_flight,
        "goodput_req_s": steady.goodput.as_ref().and_then(|goodput| goodput.req_s),
        "attainment": steady.goodput.as_ref().and_then(|goodput| goodput.attainment),
        "error_rate": steady.error_rate,
        "metrics": distributions(&steady.metrics),
    })
}

fn goodput(goodput: &Goodput) -> Value {
    let per_slo = goodput.per_slo.iter().map(|result| {
        let figures = json!({
            "limit_ms": result.term.limit_ms,
            "limit": result.term.limit_ms,
            "met": result.met,
            "of": result.of,
        });
        (result.name(), figures)
    });
    let mut per_label = Map::new();
    for result in &goodput.per_label {
        let label = per_label.entry(result.name.clone()).or_insert_with(|| json!({}));
        let slo = match &result.asked {
            Asked::Nothing => "none",
            Asked::Same(terms) => terms,
            Asked::Several => "several",
        };
        label[&result.value] = json!({"slo": slo, "good": result.good, "of": result.of});
    }
    json!({
        "slo": goodput.slo.to_string(),
        "req_s": goodput.req_s,
        "tok_s": goodput.tok_s,
        "good": goodput.good,
        "of": goodput.of,
        "attainment": goodput.attainment,
        "attainment_bounds": goodput.bounds.map(|(low, high)| [low, high]),
        "vacuous": goodput.vacuous,
        "undecided": goodput.undecided,
        "client_faults": goodput.client_faults,
        "not_asked": goodput.not_asked,
        "per_slo": Value::Object(per_slo.collect()),
        "per_label": per_label,
    })
}

fn tokens(summary: &Summary) -> Value {
    let tokens = &summary.tokens;
    let source = match tokens.sources.as_slice() {
        [] => Value::Null,
        [(source, _)] => json!(source.name()),
        _ => json!("mixed"),
    };
    json!({
        "input": tokens.input,
        "output": tokens.output,
        "source": source,
        "sources": counted(tokens.sources.iter().map(|(source, count)| (source.name(), *count))),
        "cached": tokens.cached,
        "cached_share": tokens.cached_share,
        "wasted": tokens.wasted,
    })
}

fn slices(slices: &Slices) -> Value {
    let owner = slices.tail_owner.as_ref().map(|owner| {
        json!({
            "of": part(&owner.of),
            "of_slowest": owner.of_slowest,
            "of_all": owner.of_all,
        })
    });
    json!({
        "by_input": slices.by_input.iter().map(slice).collect::<Vec<_>>(),
        "by_label": slices.by_label.iter().map(slice).collect::<Vec<_>>(),
        "tail_owner": owner,
    })
}

fn conversations(figures: &Conversations) -> Value {
    json!({
        "begun": figures.begun,
        "completed": figures.completed,
        "broken": figures.broken,
        "stopped": figures.stopped,
        "turns": figures.turns,
        "turns_ok": figures.turns_ok,
        "duration_ms": distribution(&figures.duration),
    })
}

fn slice(slice: &Slice) -> Value {
    let figures =
        |of: &Distribution| json!({ "n": of.n, "p50": of.figure("p50"), "p99": of.figure("p99") });
    let mut object = json!({
        "of": part(&slice.of),
        "n": slice.n,
        "ok": slice.ok,
        "ttft_ms": figures(&slice.ttft),
        "tpot_ms": figures(&slice.tpot),
        "e2el_ms": figures(&slice.e2el),
    });
    if let Some(attained) = slice.attained {
        object["attained"] = json!({ "good": attained.good, "of": attained.of });
    }
    object
}

/// A figure that is not known is left out: what it needs is in the docs.
fn fairness(fairness: &Fairness) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Option<Value>| {
        object.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("jain_attainment", fairness.jain_attainment.map(|index| json!(index)));
    put("jain_speed", fairness.jain_speed.map(|index| json!(index)));
    let largest = fairness.largest_slowdown().map(|(value, metric, statistic, ratio)| {
        json!({ "value": value, "metric": metric, "statistic": statistic, "ratio": ratio })
    });
    put("largest_slowdown", largest);
    put("without_isolated", Some(json!(fairness.without_isolated())));
    let values = fairness.parts.iter().map(|part| {
        let mut of = Map::new();
        of.extend(part.attainment.map(|share| ("attainment".to_owned(), json!(share))));
        of.extend(part.speed_tok_s.map(|rate| ("speed_tok_s".to_owned(), json!(rate))));
        if let Some(slowdown) = &part.slowdown {
            let mut ratios = json!({ "isolated_run": slowdown.isolated_run });
            for (key, name, ratio) in &slowdown.ratios {
                ratios[key.trim_end_matches("_ms")][name] = json!(ratio);
            }
            of.insert("slowdown".to_owned(), ratios);
        }
        (part.value.as_str(), Value::Object(of))
    });
    put("values", Some(map(values)));
    Value::Object(object)
}

fn part(part: &Part) -> Value {
    match part {
        Part::Input { from, until } => json!({ "input_tokens": [from, until] }),
        Part::Label { name, value } => json!({ "label": name, "value": value }),
    }
}

fn validity(summary: &Summary) -> Value {
    let (validity, instrument) = (&summary.validity, &summary.facts.instrument);
    let three = |figures: Option<[f64; 3]>| {
        figures.map(|[p50, p99, max]| json!({"p50": p50, "p99": p99, "max": max}))
    };
    json!({
        "verdict": validity.verdict.name(),
        "reasons": validity.reasons.iter()
            .map(|reason| json!({
                "id": reason.id,
                "verdict": reason.verdict.name(),
                "text": reason.text.en,
            }))
            .collect::<Vec<_>>(),
        "lateness_us": three(validity.lateness_us),
        "client_lag_us": three(validity.client_lag_us),
        "stamp_source": instrument.stamp_source,
        "stamp_error_p99_us": instrument.stamp_error_p99_us,
        "busiest_thread": instrument.busiest_thread,
        "throttled_ms": instrument.throttled.map(|span| span.ms()),
        "clock_steps": instrument.clock_steps,
        "burst_length_ms": validity.burst_length.map(|span| span.ms()),
        "instrument_floor": instrument.floor.as_ref().map(crate::floor::to_json),
    })
}

fn definitions(summary: &Summary) -> Value {
    let card = summary.definition.card();
    let mut object = map(card.lines().into_iter().map(|(key, words)| (key, json!(words.en))));
    object["name"] = json!(card.name);
    object["ttft"] = json!({"start": card.ttft_start.en, "end": card.ttft_end.en});
    object["e2el"] = json!({"start": card.ttft_start.en, "end": card.e2el_end.en});
    object["metrics"] = map(METRICS.iter().map(|metric| (metric.key, json!(metric.definition))));
    object
}
