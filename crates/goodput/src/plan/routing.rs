//! What the flags say of where a request goes and as what: adapters, models,
//! priorities.

use std::fmt::Display;
use std::str::FromStr;

use wire::api::Api;
use workload::{Assignment, Choice, Dealt, ModelKind, Routing, named_weight};

use crate::flags::{Reader, storable_url};

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

/// What is dealt to targets, and how.
const STRATEGIES: &[(&str, (Dealt, Assignment))] = &[
    ("round-robin", (Dealt::Requests, Assignment::InTurn)),
    ("per-session", (Dealt::Sessions, Assignment::InTurn)),
    ("weighted", (Dealt::Sessions, Assignment::Random)),
];

/// Resolves which of several addresses a request goes to.
pub(super) fn targets(reader: &mut Reader<'_>, urls: &[String]) -> Option<(Dealt, Choice<u32>)> {
    let strategy = reader.choice("url-strategy", STRATEGIES);
    for flag in ["url-strategy", "url-weights"] {
        if urls.len() < 2 && reader.settings.has(flag) {
            reader.wrong(flag, "deals requests to several addresses; give more with --also-url");
            return None;
        }
    }
    if urls.len() < 2 {
        return None;
    }
    let (dealt, assignment) = strategy.unwrap_or(STRATEGIES[0].1);
    let texts = reader.settings.all("url-weights").iter().flat_map(|text| text.split(','));
    let texts: Vec<&str> = texts.map(str::trim).filter(|text| !text.is_empty()).collect();
    if texts.is_empty() && assignment == Assignment::Random {
        reader.wrong("url-strategy", "weighted needs --url-weights, one number for each address");
        return None;
    }
    let weights: Vec<f64> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    let weights = if texts.is_empty() { vec![1.0; urls.len()] } else { weights };
    if weights.len() != urls.len() || weights.len() < texts.len() {
        let rule = format!("must be {} numbers, one for each address in their order", urls.len());
        reader.wrong("url-weights", rule);
        return None;
    }
    let choice = Choice::new((0..).zip(weights).collect(), assignment);
    choice.map(|choice| (dealt, choice)).map_err(|error| reader.wrong("url-weights", error)).ok()
}

/// What a reader of the result must know of several targets.
pub(super) fn said_of_targets(routing: &Routing, urls: &[String]) -> Option<String> {
    let (dealt, choice) = routing.targets.as_ref()?;
    let unit = match dealt {
        Dealt::Requests => "request",
        Dealt::Sessions => "session",
    };
    let named = choice.options().iter().map(|(place, weight)| {
        (storable_url(urls.get(*place as usize).map_or("", String::as_str)), *weight)
    });
    let named = Choice::new(named.collect(), choice.assignment()).ok()?;
    Some(format!("addresses by {unit}: {}", shares(&named)))
}

/// A choice in words: `a 75 %, b 25 %, at random`.
fn shares<T: Display>(choice: &Choice<T>) -> String {
    let share = |(name, share): (&T, f64)| format!("{name} {} %", (share * 1e3).round() / 10.0);
    if let [(only, _)] = choice.options() {
        return format!("{only} for all");
    }
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
