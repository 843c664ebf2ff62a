//! The steps of a streamed answer of the engine with a fixed clock.

use super::Plan;
use crate::openai::{Answer, Passage};
use crate::script::{Action, Step};

/// What the engine decides of an answer before it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) tokens: u32,
    pub(super) finish_reason: &'static str,
    pub(super) chunk_tokens: u32,
    pub(super) role_at_accept: bool,
}

/// What leaves when the request is accepted, before it has a seat: the head of a
/// stream, and the role event where it is wanted so early.
pub(super) fn opening(answer: &mut Answer, shape: Shape) -> Vec<Step> {
    if !answer.ask.stream {
        return Vec::new();
    }
    let mut bytes = answer.head();
    if answer.ask.chat && shape.role_at_accept {
        answer.role_events(&mut bytes);
    }
    vec![Step::send(0, bytes)]
}

/// The whole answer, due at `at_ns`.
pub(super) fn whole(mut answer: Answer, shape: Shape, at_ns: u64) -> Step {
    let usage = answer.usage(shape.tokens);
    let bytes = answer.whole(&[(shape.tokens, shape.finish_reason)], usage, None);
    Step { at_ns, action: Action::Send(bytes), tokens: shape.tokens, last: true }
}

/// The steps of a streamed answer from its first token on.
pub(super) struct TokenStream {
    answer: Answer,
    shape: Shape,
    plan: Plan,
    made: u32,
    stage: Stage,
}

enum Stage {
    Role,
    Tokens,
    Tail,
    Over,
}

impl TokenStream {
    pub(super) fn new(answer: Answer, shape: Shape, plan: Plan) -> Self {
        let owes_role = answer.ask.chat && !shape.role_at_accept;
        let stage = if owes_role { Stage::Role } else { Stage::Tokens };
        Self { answer, shape, plan, made: 0, stage }
    }

    /// Deadline of the event that ends with token number `made`.
    fn due_ns(&self, made: u32) -> u64 {
        self.plan.offset_ns(u64::from(made.saturating_sub(self.shape.chunk_tokens)))
    }

    fn token_step(&mut self) -> Step {
        let count = self.shape.chunk_tokens.min(self.shape.tokens - self.made);
        let ends = self.made + count == self.shape.tokens;
        let finish_reason = ends.then_some(self.shape.finish_reason);
        let mut bytes = Vec::new();
        let passage = Passage { choice: 0, from: self.made, count };
        self.answer.tokens_event(passage, finish_reason, &mut bytes);
        self.made += count;
        let at_ns = self.due_ns(self.made);
        Step { at_ns, action: Action::Send(bytes), tokens: count, last: false }
    }

    fn role_step(&mut self) -> Step {
        let first = self.shape.chunk_tokens.min(self.shape.tokens);
        let mut bytes = Vec::new();
        self.answer.role_events(&mut bytes);
        Step::send(self.due_ns(first), bytes)
    }

    /// Usage, the sentinel and the end of the body.
    fn tail(&mut self) -> Step {
        let usage = self.answer.usage(self.shape.tokens);
        let mut bytes = Vec::new();
        self.answer.last_events(usage, None, &mut bytes);
        let at_ns = self.due_ns(self.shape.tokens);
        Step { at_ns, action: Action::Send(bytes), tokens: 0, last: true }
    }
}

impl Iterator for TokenStream {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        match self.stage {
            Stage::Role => {
                self.stage = Stage::Tokens;
                Some(self.role_step())
            }
            Stage::Tokens => {
                let step = self.token_step();
                if self.made == self.shape.tokens {
                    self.stage = Stage::Tail;
                }
                Some(step)
            }
            Stage::Tail => {
                self.stage = Stage::Over;
                Some(self.tail())
            }
            Stage::Over => None,
        }
    }
}
