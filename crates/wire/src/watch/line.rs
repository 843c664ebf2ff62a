//! One glance at a server as JSON, one object a line.

use measure::said::Said;
use measure::watch::{Event, Glance, Held, Place};
use serde_json::{Map, Value, json};

use crate::summary::finding;

/// Name and version of this form.
const SCHEMA: &str = "goodput.watch/1";

/// A glance as one object. `at` is the wall time in words, as the binary reads
/// it. A figure without a value is null, with the reason in `absent`.
pub fn line(glance: &Glance, at: &str) -> Value {
    let (mut figures, mut absent) = (Map::new(), Map::new());
    for (figure, value) in glance.figures() {
        let value = value.map_err(|why| absent.insert(figure.id.to_owned(), json!(why.en)));
        figures.insert(figure.id.to_owned(), json!(value.ok()));
    }
    let signals = glance.signals.as_ref();
    json!({
        "schema": SCHEMA,
        "at": at,
        "elapsed_s": glance.at.ms() / 1e3,
        "window_s": signals.map(|signals| signals.length_s()),
        "engine": signals.and_then(|signals| signals.engine),
        "figures": figures,
        "absent": absent,
        "findings": glance.held.iter().map(|held| held_of(held, glance)).collect::<Vec<_>>(),
        "events": glance.events.iter().map(event).collect::<Vec<_>>(),
        "notes": signals.map_or(Value::Array(Vec::new()), |signals| english(&signals.notes)),
        "places": glance.places.iter().map(place).collect::<Vec<_>>(),
    })
}

/// The finding as in a summary, with when it was first seen.
fn held_of(held: &Held, glance: &Glance) -> Value {
    let mut value = finding(&held.finding);
    if let Value::Object(members) = &mut value {
        members.insert("since_s".to_owned(), json!(held.since.ms() / 1e3));
        members.insert("for_s".to_owned(), json!((glance.at - held.since).s()));
    }
    value
}

fn english(sentences: &[Said]) -> Value {
    sentences.iter().map(|said| said.en.as_str()).collect()
}

fn event(event: &Event) -> Value {
    json!({
        "elapsed_s": event.at.ms() / 1e3,
        "kind": event.kind.name(),
        "of": event.of,
        "says": event.says.en,
    })
}

fn place(place: &Place) -> Value {
    json!({
        "name": place.name,
        "trouble": place.trouble,
        "taken": place.taken,
        "failed": place.failed,
        "restarts": place.restarts,
    })
}
