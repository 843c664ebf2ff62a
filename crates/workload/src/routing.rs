//! Where a request goes and as what: the model or adapter that it asks for, its
//! priority, its target. Chosen for each session and part of the schedule.

use crate::choice::Choice;
use crate::digest::Digest;

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
    /// The route of a request and the labels that come of it. `session` counts
    /// sessions from 0; `own_priority` is that of the request's row.
    pub(crate) fn route(
        &self,
        seed: u64,
        index: u32,
        session: u32,
        own_priority: Option<i32>,
    ) -> (Route, Vec<(String, String)>) {
        let mut labels = Vec::new();
        let model = self.models.as_ref().map(|(kind, choice)| {
            let name = choice.of_unit(seed, kind.label(), session).clone();
            labels.push((kind.label().to_owned(), name.clone()));
            name
        });
        let drawn = |choice: &Choice<i32>| *choice.of_unit(seed, PRIORITY, session);
        let priority = own_priority.or_else(|| self.priorities.as_ref().map(drawn));
        labels.extend(priority.map(|number| (PRIORITY.to_owned(), number.to_string())));
        let target = self.targets.as_ref().map_or(0, |(dealt, choice)| {
            let unit = match dealt {
                Dealt::Requests => index,
                Dealt::Sessions => session,
            };
            *choice.of_unit(seed, "target", unit)
        });
        (Route { model, priority, target }, labels)
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
