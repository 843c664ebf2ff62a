//! The way out of an answer that a fault hits: when each part of it leaves, and
//! whether it does. Instants are in model time.

use crate::faults::{Cut, Effect, Fault};

/// Comments that leave together at most: a proxy that holds them for an hour keeps
/// no more.
const MOST_COMMENTS: u64 = 10_000;

/// What leaves of a streamed answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The events with the role.
    Role,
    /// So many tokens of one answer in one event.
    Tokens { choice: u8, tokens: u32 },
    /// The end of one answer, which the tokens before it carry.
    End(u8),
    /// Usage, the sentinel and the end of the body.
    Tail,
    /// What stands in place of the rest, which would begin with this answer.
    Cut { choice: u8, cut: Cut },
}

/// A way out that is not the straight one. It takes parts in as the engine tells
/// them, and lets them go into `planned`.
#[derive(Debug)]
pub(super) struct Detour {
    accepted_ns: u64,
    first_held_ns: u64,
    stall: Option<Stall>,
    cut: Option<(u32, Cut)>,
    /// Tokens in one event; none takes them as they come.
    chunk: Option<u32>,
    role_first: bool,
    tail_held_ns: u64,
    flush_every_ns: Option<u64>,
    comments: Option<Comments>,
    /// Tokens of all answers that were taken in, and those of each that wait for
    /// their chunk.
    taken: u32,
    waiting: Vec<u32>,
    /// Nothing that is taken in leaves before this.
    not_before_ns: u64,
    is_over: bool,
    /// What was let go: when it leaves, what it is. Instants never fall.
    pub(super) planned: Vec<(u64, Part)>,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    after: u32,
    for_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Comments {
    every_ns: u64,
    next_ns: u64,
}

impl Detour {
    /// The way out of so many answers to a request that was accepted then; none
    /// where none of the faults is one of the way.
    pub(super) fn of(faults: &[Fault], accepted_ns: u64, choices: u8) -> Option<Self> {
        let mut detour = Self {
            accepted_ns,
            first_held_ns: 0,
            stall: None,
            cut: None,
            chunk: None,
            role_first: false,
            tail_held_ns: 0,
            flush_every_ns: None,
            comments: None,
            taken: 0,
            waiting: vec![0; choices.into()],
            not_before_ns: accepted_ns,
            is_over: false,
            planned: Vec::new(),
        };
        let on_the_way = faults.iter().filter(|fault| detour.take(fault.effect)).count();
        if detour.role_first {
            detour.let_go(accepted_ns, Part::Role);
        }
        (on_the_way > 0).then_some(detour)
    }

    /// True for a fault of the way out.
    fn take(&mut self, effect: Effect) -> bool {
        match effect {
            Effect::SlowFirstToken { for_ns } => self.first_held_ns = for_ns,
            Effect::Stall { after, for_ns } => self.stall = Some(Stall { after, for_ns }),
            Effect::Cut { after, cut } => self.cut = Some((after, cut)),
            Effect::Comments { every_ns } => {
                self.comments = Some(Comments { every_ns, next_ns: self.accepted_ns });
            }
            Effect::Chunks { tokens } => self.chunk = Some(tokens),
            Effect::RoleOnly => self.role_first = true,
            Effect::LateUsage { for_ns } => self.tail_held_ns = for_ns,
            Effect::Coalesce { every_ns } => self.flush_every_ns = Some(every_ns),
            // They change the answer's words, or leave it out.
            Effect::Refuse { .. } | Effect::NoUsage | Effect::Reasoning { .. } => return false,
        }
        true
    }

    /// When a proxy that flushes now and then passes on what came at this instant.
    fn flushed_ns(&self, at_ns: u64) -> u64 {
        let Some(every_ns) = self.flush_every_ns else { return at_ns };
        let since_ns = at_ns - self.accepted_ns;
        self.accepted_ns + since_ns.div_ceil(every_ns).max(1) * every_ns
    }

    fn let_go(&mut self, at_ns: u64, part: Part) {
        self.planned.push((self.flushed_ns(at_ns), part));
    }

    /// Lets tokens of one answer go that wait.
    fn let_tokens_go(&mut self, choice: u8) {
        let tokens = std::mem::take(&mut self.waiting[usize::from(choice)]);
        if tokens > 0 {
            self.let_go(self.not_before_ns, Part::Tokens { choice, tokens });
        }
    }

    /// Lets all tokens go that wait.
    fn let_all_go(&mut self) {
        (0..).zip(0..self.waiting.len()).for_each(|(choice, _)| self.let_tokens_go(choice));
    }

    /// The engine told of tokens.
    pub(super) fn tokens(&mut self, at_ns: u64, choice: u8, tokens: u32) {
        for _ in 0..tokens {
            if self.is_over {
                return;
            }
            self.token(at_ns, choice);
        }
        if self.chunk.is_none() {
            self.let_tokens_go(choice);
        }
    }

    fn token(&mut self, at_ns: u64, choice: u8) {
        if let Some((_, cut)) = self.cut.filter(|(after, _)| *after == self.taken) {
            self.not_before_ns = self.not_before_ns.max(at_ns);
            self.let_all_go();
            self.let_go(self.not_before_ns, Part::Cut { choice, cut });
            self.is_over = true;
            return;
        }
        if let Some(stall) = self.stall.filter(|stall| stall.after == self.taken) {
            let Some(for_ns) = stall.for_ns else {
                self.not_before_ns = self.not_before_ns.max(at_ns);
                self.let_all_go();
                self.is_over = true;
                return;
            };
            if self.chunk.is_none() {
                self.let_tokens_go(choice);
            }
            // It began when the token before this one left.
            self.not_before_ns += for_ns;
        }
        if self.taken == 0 {
            self.not_before_ns = self.not_before_ns.max(at_ns + self.first_held_ns);
        }
        self.not_before_ns = self.not_before_ns.max(at_ns);
        self.taken += 1;
        let waiting = &mut self.waiting[usize::from(choice)];
        *waiting += 1;
        if Some(*waiting) == self.chunk {
            self.let_tokens_go(choice);
        }
    }

    /// The engine told of the end of one answer, and whether it is the last.
    pub(super) fn end(&mut self, at_ns: u64, choice: u8, is_last: bool) {
        if self.is_over {
            return;
        }
        self.not_before_ns = self.not_before_ns.max(at_ns);
        self.let_tokens_go(choice);
        self.let_go(self.not_before_ns, Part::End(choice));
        if is_last {
            self.is_over = true;
            self.let_go(self.not_before_ns + self.tail_held_ns, Part::Tail);
        }
    }

    /// When the next comment leaves.
    pub(super) fn comment_ns(&self) -> Option<u64> {
        self.comments.map(|comments| self.flushed_ns(comments.next_ns))
    }

    /// Takes the comments that are due, and gives how many they are: of those that
    /// were held for long the last ones only.
    pub(super) fn take_comments(&mut self, now_ns: u64) -> u64 {
        if self.comment_ns().is_none_or(|at_ns| at_ns > now_ns) {
            return 0;
        }
        let Some(comments) = &mut self.comments else { return 0 };
        let every_ns = comments.every_ns.max(1);
        let count = now_ns.saturating_sub(comments.next_ns) / every_ns + 1;
        comments.next_ns += count * every_ns;
        count.min(MOST_COMMENTS)
    }
}
