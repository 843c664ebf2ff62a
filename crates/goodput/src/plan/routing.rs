//! What the flags say of where a request goes and as what: adapters, models,
//! priorities.

use std::fmt::Display;
use std::str::FromStr;

use wire::api::Api;
use workload::{Assignment, Choice, ModelKind, Routing, named_weight};

use crate::flags::Reader;

/// Flags of which each decides the name that is sent as `model`.
const NAMES: &[(&str, &str, ModelKind)] = &[
    ("lora-modules", "lora-assignment", ModelKind::Adapter),
    ("model-mix", "model-assignment", ModelKind::Model),
];

const ASSIGNMENTS: &[(&str, Assignment)] = &[
    (Assignment::Random.name(), Assignment::Random),
    (Assignment::InTurn.name(), Assignment::InTurn),
];

/// Resolves what sessions are dealt to, but for targets.
pub(super) fn routing(reader: &mut Reader<'_>, api: Api) -> Routing {
    let models = models(reader);
    if let Some((kind, _)) = &models
        && api == Api::Triton
    {
        let (flag, ..) = NAMES.iter().find(|(.., named)| named == kind).unwrap_or(&NAMES[0]);
        reader.wrong(flag, "this API has the model in its path, which is one for all requests");
    }
    let priorities = choice(reader, "priority", Assignment::Random);
    if priorities.is_some() && !api.entry().takes_priority {
        reader.wrong("priority", format!("the API {} has no such field", api.name()));
    }
    Routing { models, priorities, targets: None }
}

fn models(reader: &mut Reader<'_>) -> Option<(ModelKind, Choice<String>)> {
    let given = |name: &&str| reader.settings.has(name);
    if NAMES.iter().all(|(flag, ..)| given(flag)) {
        reader.wrong("model-mix", "contradicts --lora-modules: an adapter belongs to one model");
        return None;
    }
    let mut found = None;
    for &(flag, how, kind) in NAMES {
        let assignment = reader.choice(how, ASSIGNMENTS);
        if assignment.is_some() && !reader.settings.has(flag) {
            reader.wrong(how, format!("deals out what --{flag} names; give that too"));
        }
        let names = choice(reader, flag, assignment.unwrap_or(Assignment::Random));
        found = found.or_else(|| Some((kind, names?)));
    }
    found
}

/// Reads `NAME[:WEIGHT]`, several with blanks or commas between.
fn choice<T: FromStr + Display + PartialEq>(
    reader: &mut Reader<'_>,
    flag: &str,
    assignment: Assignment,
) -> Option<Choice<T>> {
    if !reader.settings.has(flag) {
        return None;
    }
    let mut options = Vec::new();
    let items = reader.settings.all(flag).iter().flat_map(|text| text.split(','));
    for item in items.map(str::trim).filter(|item| !item.is_empty()) {
        match named_weight(item).map(|(name, weight)| (name, name.parse(), weight)) {
            Ok((name, ..)) if name.contains("://") || name == "http" || name == "https" => {
                reader
                    .wrong(flag, format!("{item:?} is an address; give it before, or with --url"));
                return None;
            }
            Ok((_, Ok(value), weight)) => options.push((value, weight)),
            Ok((name, Err(_), _)) => {
                reader.wrong(flag, format!("{name:?} is not a whole number of 32 bits"));
                return None;
            }
            Err(error) => {
                reader.wrong(flag, error);
                return None;
            }
        }
    }
    Choice::new(options, assignment).map_err(|error| reader.wrong(flag, error)).ok()
}

/// A choice in words: `a 75 %, b 25 %, at random`.
fn shares<T: Display>(choice: &Choice<T>) -> String {
    let share = |(name, share): (&T, f64)| format!("{name} {} %", (share * 1e3).round() / 10.0);
    let shares: Vec<String> = choice.shares().map(share).collect();
    let how = match choice.assignment() {
        Assignment::Random => "at random",
        Assignment::InTurn => "in turn",
    };
    format!("{}, {how}", shares.join(", "))
}

/// What a reader of the result must know of the routing.
pub(super) fn said(routing: &Routing) -> Vec<String> {
    let mut said = Vec::new();
    if let Some((kind, choice)) = &routing.models {
        let noun = match kind {
            ModelKind::Model => "models",
            ModelKind::Adapter => "adapters",
        };
        said.push(format!("{noun} by session: {}", shares(choice)));
    }
    if let Some(choice) = &routing.priorities {
        said.push(format!("priorities by session: {}", shares(choice)));
    }
    said
}
