//! Several runs as one JSON object: the summary of each, in what conditions they
//! differ, and what is easily misread in them together.

use insight::conditions::{Difference, Value as Condition, differences};
use insight::lint;
use measure::summary::Summary;
use serde_json::{Value, json};

/// The object of `report RUN RUN… --json`.
pub(super) fn object(runs: &[&Summary]) -> Value {
    let differ = differences(runs);
    let id = |place: usize| runs.get(place).map(|run| run.facts.run_id.as_str());
    let lints = lint::beside(runs).into_iter().map(|(place, lint)| {
        json!({
            "before": id(0),
            "after": id(place),
            "id": lint.id,
            "concerns": lint.concerns,
            "text": lint.says.en,
        })
    });
    json!({
        "comparable": !differ.iter().any(|one| one.decides),
        "differences": differ.iter().map(difference).collect::<Vec<_>>(),
        "lints": lints.collect::<Vec<_>>(),
        "runs": runs.iter().map(|run| wire::summary::to_json(run)).collect::<Vec<_>>(),
    })
}

fn difference(difference: &Difference) -> Value {
    let value = |value: &Option<Condition>| match value {
        None => Value::Null,
        Some(Condition::Words(words)) => json!(words),
        Some(Condition::Number(number) | Condition::Mean(number) | Condition::Share(number)) => {
            json!(number)
        }
    };
    let values: Vec<Value> = difference.values.iter().map(value).collect();
    json!({ "what": difference.what.en, "decides": difference.decides, "values": values })
}
