//! `export --to x.jsonl`: one JSON object a request, all times in
//! milliseconds. Latencies start as `definitions.ttft.start` of the run says.

pub mod csv;

use measure::definition::Definition;
use measure::request::{Settings, Timed};
use measure::{At, Record, Tokens};
use serde_json::{Map, Value, json};

/// One request as an export row.
pub fn row(record: &Record, definition: &Definition, settings: Settings) -> Value {
    let timed = Timed::new(record, definition, settings);
    let answer = &record.answer;
    let counted = record.output_tokens();
    let at_ms = |at: Option<At>| at.map(At::ms);
    let get = |tokens: Option<Tokens>| tokens.map(Tokens::get);
    let pairs = |pairs: &[(String, f64)]| {
        Value::Object(pairs.iter().map(|(k, v)| (k.clone(), json!(v))).collect::<Map<_, _>>())
    };
    let labels: Map<String, Value> =
        record.planned.labels.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    json!({
        "id": record.index,
        "labels": labels,
        "session": record.planned.session,
        "turn": record.planned.turn,
        "outcome": record.outcome.name(),
        "kind": record.outcome.kind(),
        "status": answer.http_status,
        "message": answer.message,
        "error_code": answer.error_code,
        "retry_after_s": answer.retry_after.map(measure::Span::s),
        "intended_at_ms": record.stamps.intended_at.ms(),
        "released_at_ms": at_ms(record.stamps.released_at),
        "connected_at_ms": at_ms(record.stamps.connected_at),
        "sent_at_ms": at_ms(record.stamps.sent_at),
        "headers_at_ms": at_ms(record.stamps.headers_at),
        "ended_at_ms": at_ms(record.stamps.ended_at),
        "ttft_ms": timed.ttft().ok(),
        "ttfc_ms": timed.ttfc().ok(),
        "tpot_ms": timed.tpot().ok(),
        "tpot_adjusted_ms": timed.tpot_adjusted().ok(),
        "e2el_ms": timed.e2el().ok(),
        "icl_ms": timed.gaps().ok(),
        "finish_lag_ms": timed.finish_lag().ok(),
        "input_tokens": get(answer.counts.prompt),
        "output_tokens": counted.map(|(tokens, _)| tokens.get()),
        "tokens_source": counted.map(|(_, source)| source.name()),
        "reasoning_tokens": get(answer.counts.reasoning),
        "cached_tokens": get(answer.counts.cached),
        "planned_input_tokens": get(record.planned.input_tokens),
        "max_output_tokens": get(record.planned.max_output_tokens),
        "finish_reason": answer.finish_reason,
        "ttft_event": record.events.carries.iter().position(|carries| carries.is_arrival()),
        "events": events(record),
        "output_chunks": streams(record).then(|| record.output_chunks()),
        "text": answer.text,
        "reasoning": answer.reasoning,
        "tool_arguments": answer.tool_arguments,
        "server_timings": pairs(&answer.server_timings),
        "reconnects": answer.reconnects,
        "warnings": warnings(record),
    })
}

/// What the answer's form gave to tell, and whether it is shorter than forced.
fn warnings(record: &Record) -> Vec<&'static str> {
    let mut names = record.answer.warnings.names();
    names.extend(record.is_short_output().then_some("short_output"));
    names
}

/// Number of stream events; null where the answer was one body or none came.
fn events(record: &Record) -> Option<usize> {
    let whole = record.events.carries.iter().any(|c| c.any(measure::Carries::WHOLE));
    (streams(record) && !whole).then_some(record.events.len())
}

/// True where events could be seen: a request that was not sent has none, and
/// a row of another tool's file does not say how many there were. Neither is
/// zero events.
fn streams(record: &Record) -> bool {
    record.stamps.sent_at.is_some() && record.source.is_none()
}
