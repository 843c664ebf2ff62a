//! What is sent, unmeasured, so that the prefix cache knows what the run's
//! prompts begin with.

use std::collections::HashSet;

use measure::{Span, Tokens};

use super::{After, Plan, PromptRef, Request, Schedule, Spec, Stop};
use crate::load::Load;
use crate::prompt::CacheRegime;
use crate::think::Think;

/// Requests that are looked through for groups and the places that they go to.
const LOOKED_THROUGH: u32 = 1 << 20;

impl Schedule {
    /// The requests that regime `warm` sends before the run, one after the
    /// other: where prompts are of groups that begin alike, that beginning of
    /// each group once, to each model and target that the group goes to; else
    /// every prompt once. At least `at_least` of them, from the first again if
    /// need be. `None` in other regimes.
    pub fn priming(&self, at_least: u32) -> Option<Self> {
        if self.cache() != CacheRegime::Warm {
            return None;
        }
        let spec = |count: u32| Spec {
            load: Load::Closed { users: 1, think: Think::NONE },
            stop: Stop::Count(count),
            ..self.spec.clone()
        };
        if !self.primes_groups() {
            let count = self.different_prompts()?.max(at_least);
            return Self::draw(spec(count)).ok().map(|(schedule, _)| schedule);
        }
        let begun = self.beginnings();
        let count = (begun.len() as u32).max(at_least);
        let primers = (0u32..count).zip(begun.iter().cycle());
        let (requests, groups): (Vec<Request>, Vec<u32>) =
            primers.map(|(index, (group, of))| (self.primer(index, of), *group)).unzip();
        Some(Self {
            // A beginning has no pictures: they go with whole prompts.
            spec: Spec { pictures: None, conversations: None, ..spec(count) },
            sessions: (0..count).collect(),
            plan: Plan::Listed(requests, (0..count).map(|index| vec![index]).collect()),
            turns: None,
            order: Vec::new(),
            mixed: None,
            groups,
            routes_given: true,
        })
    }

    /// True where it is the beginnings of groups that are primed.
    pub(super) fn primes_groups(&self) -> bool {
        self.spec.prefixes.common_tokens() > 0
    }

    /// For each group and each place where it goes to, the first request.
    fn beginnings(&self) -> Vec<(u32, Request)> {
        let mut met = HashSet::new();
        let all = (0..LOOKED_THROUGH).map_while(|index| self.request(index));
        let looked_through = all.filter(|request| !self.adds(request));
        let with_group =
            looked_through.map(|request| (self.group(request.session).unwrap_or(0), request));
        with_group
            .filter(|(group, of)| met.insert((*group, of.route.model.clone(), of.route.target)))
            .collect()
    }

    /// The common beginning of a request's prompt and nothing after it, for an
    /// answer of one token.
    fn primer(&self, index: u32, of: &Request) -> Request {
        let special = self.spec.prompts.lexicon().special();
        let tokens = Tokens::new(self.spec.prefixes.common_tokens().saturating_add(special));
        Request {
            index,
            after: After::Slot { think: Span::ZERO },
            session: index,
            turn: 0,
            labels: Vec::new(),
            prompt: PromptRef::Written(tokens),
            input_tokens: Some(tokens),
            max_output_tokens: Some(Tokens::new(1)),
            output_forced: false,
            route: of.route.clone(),
        }
    }
}
