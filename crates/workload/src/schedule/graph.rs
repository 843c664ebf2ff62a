//! Lists of requests that wait for each other: conversations and graphs.

use std::collections::BTreeMap;

use measure::{At, Span};

use super::{After, MAX_DEPTH, Request, Spec};
use crate::length::MAX_TOKENS;
use crate::load::{HORIZON, Load};
use crate::prompt::{PromptRef, PromptSource};

/// Which rule a list of requests breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// There is none.
    #[error("the list of requests is empty")]
    Empty,
    /// Positions are indices.
    #[error("the request at position {position} has index {index}")]
    Index {
        /// Where it stands.
        position: u32,
        /// What it says.
        index: u32,
    },
    /// Parents come first; so there is no cycle.
    #[error("request {index} waits for {parent}, which does not come before it")]
    ParentNotBefore {
        /// The child.
        index: u32,
        /// The parent.
        parent: u32,
    },
    /// A parent named twice.
    #[error("request {index} waits for {parent} twice")]
    ParentTwice {
        /// The child.
        index: u32,
        /// The parent.
        parent: u32,
    },
    /// Parent and child may not be on different workers.
    #[error("request {index} waits for {parent}, which is in another session")]
    ParentElsewhere {
        /// The child.
        index: u32,
        /// The parent.
        parent: u32,
    },
    /// It waits for nobody.
    #[error("request {index} waits for parents but names none")]
    NoParents {
        /// The request.
        index: u32,
    },
    /// Over [`MAX_DEPTH`].
    #[error("request {index} has more than {MAX_DEPTH} requests before it in one chain")]
    TooDeep {
        /// The request.
        index: u32,
    },
    /// A time before the start, negative, or beyond the horizon.
    #[error(
        "request {index} has an instant or a think time that is negative or beyond the horizon"
    )]
    Time {
        /// The request.
        index: u32,
    },
    /// Slots exist in a closed loop only, and instants outside of it only.
    #[error("request {index} does not start in the way of a load of kind {kind}")]
    Start {
        /// The request.
        index: u32,
        /// The load's kind.
        kind: &'static str,
    },
    /// A prompt that the source does not have.
    #[error("request {index} names a prompt that its source does not have")]
    Prompt {
        /// The request.
        index: u32,
    },
}

/// Checks a list of requests. Parents come before children, which leaves no
/// room for a cycle and lets depth be had in one pass.
pub(super) fn check(spec: &Spec, requests: &[Request]) -> Result<(), GraphError> {
    if requests.is_empty() {
        return Err(GraphError::Empty);
    }
    let in_time = |span: Span| (Span::ZERO..=HORIZON).contains(&span);
    let mut depth: Vec<u32> = Vec::with_capacity(requests.len());
    for (position, request) in requests.iter().enumerate() {
        let (position, index) = (position as u32, request.index);
        if position != index {
            return Err(GraphError::Index { position, index });
        }
        let closed = matches!(spec.load, Load::Closed { .. });
        let (starts_right, timed_right) = match &request.after {
            After::Instant(at) => (!closed, in_time(*at - At::ZERO)),
            After::Slot { think } => (closed, in_time(*think)),
            After::Parents { think, .. } => (true, in_time(*think)),
        };
        if !starts_right {
            return Err(GraphError::Start { index, kind: spec.load.kind() });
        }
        if !timed_right {
            return Err(GraphError::Time { index });
        }
        depth.push(depth_below(request, requests, &depth)?);
        let prompt_exists = match (request.prompt, &spec.prompts) {
            (PromptRef::Listed(place), PromptSource::List { prompts, .. }) => {
                (place as usize) < prompts.len()
            }
            (_, PromptSource::Mix(_)) | (PromptRef::Listed(_), _) => false,
            (PromptRef::Written(tokens), source) => {
                source.is_written() && (1..=MAX_TOKENS).contains(&tokens.get())
            }
        };
        if !prompt_exists {
            return Err(GraphError::Prompt { index });
        }
    }
    Ok(())
}

/// For each request, the number of its session, sessions counted in the order
/// of their first requests.
pub(super) fn session_numbers(units: &[Vec<u32>]) -> Vec<u32> {
    let mut numbers = vec![0; units.iter().map(Vec::len).sum()];
    for (number, places) in (0..).zip(units) {
        places.iter().for_each(|place| numbers[*place as usize] = number);
    }
    numbers
}

/// The places of the requests of each session, sessions in the order of their
/// first requests.
pub(super) fn units(requests: &[Request]) -> Vec<Vec<u32>> {
    let mut units: Vec<Vec<u32>> = Vec::new();
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    for request in requests {
        let unit = *known.entry(request.session).or_insert_with(|| {
            units.push(Vec::new());
            units.len() - 1
        });
        units[unit].push(request.index);
    }
    units
}

/// The number of requests before this one in its longest chain.
fn depth_below(request: &Request, requests: &[Request], depth: &[u32]) -> Result<u32, GraphError> {
    let After::Parents { of, .. } = &request.after else { return Ok(0) };
    let index = request.index;
    let mut deepest = None;
    for (place, &parent) in of.iter().enumerate() {
        if parent >= index {
            return Err(GraphError::ParentNotBefore { index, parent });
        }
        if of[..place].contains(&parent) {
            return Err(GraphError::ParentTwice { index, parent });
        }
        if requests[parent as usize].session != request.session {
            return Err(GraphError::ParentElsewhere { index, parent });
        }
        deepest = deepest.max(Some(depth[parent as usize]));
    }
    let depth = deepest.ok_or(GraphError::NoParents { index })? + 1;
    if depth > MAX_DEPTH { Err(GraphError::TooDeep { index }) } else { Ok(depth) }
}
