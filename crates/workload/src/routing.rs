//! Where a request goes and as what: the model or adapter that it asks for, its
//! priority, its target. Chosen for each session and part of the schedule.

use crate::choice::Choice;
use crate::digest::Digest;
use crate::schedule::Request;

/// What the requests of a run are dealt to. Without any choice, a request asks
/// for the run's own model, has no priority, and goes to the only target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routing {
    /// Models or adapters; a session keeps its own.
    pub models: Option<(ModelKind, Choice<String>)>,
    /// Priorities; a session keeps its own. That of a row wins.
    pub priorities: Option<Choice<i32>>,
    /// Places in the list of targets, from 0.
    pub targets: Option<(Dealt, Choice<u32>)>,
}

/// What a name that is sent as `model` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// A model of its own.
    Model,
    /// A LoRA adapter, which vLLM serves under a name of its own.
    Adapter,
}

impl ModelKind {
    /// The label that requests have.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Adapter => "adapter",
        }
    }
}

/// The label of a priority.
pub const PRIORITY: &str = "priority";

/// What is dealt to targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dealt {
    /// Each request: turns of a conversation may go to different targets.
    Requests,
    /// Each session, whose turns all go to one target.
    Sessions,
}

/// What was chosen for one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Sent as `model` in place of the run's own.
    pub model: Option<String>,
    /// Sent where the API knows priorities; what it means is the engine's.
    pub priority: Option<i32>,
    /// Place in the list of targets.
    pub target: u32,
}

impl Routing {
    /// True when requests go to several prefix caches: a block of an adapter's
    /// is not another's, and replicas share none.
    pub(crate) fn has_caches(&self) -> bool {
        self.models.is_some() || self.targets.is_some()
    }

    /// Chooses for a request what nobody chose before: its row, or the part of
    /// a mix that it is of. `session` counts sessions from 0. Labels say what
    /// is sent, so they take the place of a row's of the same name.
    pub(crate) fn route(&self, seed: u64, session: u32, request: &mut Request) {
        let Request { index, labels, route, .. } = request;
        if let (None, Some((kind, choice))) = (&route.model, &self.models) {
            let name = choice.of_unit(seed, kind.label(), session);
            relabel(labels, kind.label(), name.clone());
            route.model = Some(name.clone());
        }
        let drawn = |choice: &Choice<i32>| *choice.of_unit(seed, PRIORITY, session);
        route.priority = route.priority.or_else(|| self.priorities.as_ref().map(drawn));
        if let Some(number) = route.priority {
            relabel(labels, PRIORITY, number.to_string());
        }
        if let Some((dealt, choice)) = &self.targets {
            let unit = match dealt {
                Dealt::Requests => *index,
                Dealt::Sessions => session,
            };
            route.target = *choice.of_unit(seed, "target", unit);
        }
    }
}

/// Sets a label in a sorted list.
pub(crate) fn relabel(labels: &mut Vec<(String, String)>, name: &str, value: String) {
    match labels.binary_search_by(|(other, _)| other.as_str().cmp(name)) {
        Ok(place) => labels[place].1 = value,
        Err(place) => labels.insert(place, (name.to_owned(), value)),
    }
}

impl Route {
    /// Nothing for the usual route, so that schedules without choices keep
    /// their digests.
    pub(crate) fn digest(&self, digest: &mut Digest) {
        if *self == Self::default() {
            return;
        }
        digest.raw(b"r").number(self.target.into()).text(self.model.as_deref().unwrap_or_default());
        digest.maybe(self.priority.map(|number| number as u32 as u64));
    }
}
