//! Turns of conversations: which requests they are, and whole prompts of them.

use measure::Tokens;

use super::{After, PromptRef, PromptSource, Request, Schedule, SpecError};
use crate::conversation::{Conversations, ENDLESS_CYCLE, History, Script, Starts, Turns};
use crate::load::Load;
use crate::prompt::{Content, Message, Prompt, RunNonce};
use crate::routing::{Route, relabel};
use crate::stream::Stream;
use crate::think::Think;

/// What lets a user of a closed loop begin a conversation.
const FREED: &str = "the end of a conversation frees a user";

/// The label of every turn of a conversation: its number from 1.
pub(super) const TURN_LABEL: &str = "turn";

/// Turns from this number on share a label: a table has an end.
const LAST_LABELLED: u16 = 32;

impl Schedule {
    /// Which requests the conversations have; none without conversations.
    pub(super) fn dealt_turns(&self) -> Result<Option<Starts>, SpecError> {
        let Some(conversations) = &self.spec.conversations else { return Ok(None) };
        let units = self.units();
        let starts = match &conversations.script {
            Script::Written(turns) => {
                let different =
                    if turns.count.is_fixed() { 1 } else { units.unwrap_or(ENDLESS_CYCLE) };
                let seed = self.spec.seed;
                Starts::of((0..different.max(1)).map(|session| turns.count.draw(seed, session)))
            }
            Script::Listed(all) => {
                let turns = |place: &u32| all[*place as usize].turns().len() as u32;
                Starts::of(self.order.iter().map(turns))
            }
        };
        let starts = starts.map_err(|_| SpecError::TooManyTurns)?;
        if let Some(units) = units {
            starts.requests(units).map_err(|_| SpecError::TooManyTurns)?;
        }
        Ok(Some(starts))
    }

    /// The conversation of the script that session `session` is.
    fn conversation(&self, session: u32) -> u32 {
        match self.spec.conversations.as_ref().map(|conversations| &conversations.script) {
            Some(Script::Listed(_)) => self.order[session as usize % self.order.len()],
            _ => session,
        }
    }

    /// The conversations of a schedule that deals turns.
    fn talks(&self) -> &Conversations {
        self.spec.conversations.as_ref().expect("turns are dealt of conversations only")
    }

    /// True for a turn that waits for no other.
    pub(super) fn begins(&self, session: u32, place: u16) -> bool {
        self.talks().parents(self.conversation(session), place).is_empty()
    }

    /// Request `index` as the turn that it is.
    pub(super) fn turn(&self, turns: &Starts, index: u32) -> Option<Request> {
        let (session, place) = turns.locate(index);
        if self.units().is_some_and(|units| session >= units) {
            return None;
        }
        let (talks, conversation) = (self.talks(), self.conversation(session));
        let first = index - u32::from(place);
        let parents = talks.parents(conversation, place);
        let after = if parents.is_empty() {
            self.beginning(session)?
        } else {
            let scripted = match &talks.script {
                Script::Listed(all) => all[conversation as usize].turns()[usize::from(place)].think,
                Script::Written(_) => None,
            };
            let mut stream = Stream::numbered(self.spec.seed, "turn think", u64::from(index));
            let think = scripted.unwrap_or_else(|| talks.think.draw(&mut stream));
            After::Parents { of: parents.iter().map(|at| first + u32::from(*at)).collect(), think }
        };
        let begins = parents.is_empty();
        let (prompt, input_tokens, own_limit, mut labels) =
            match (&talks.script, &self.spec.prompts) {
                (Script::Listed(all), PromptSource::List { prompts, .. }) => {
                    let row = all[conversation as usize].first + u32::from(place);
                    let prompt = &prompts[row as usize];
                    let tokens = self.with_nonce_tokens(prompt.input_tokens).filter(|_| begins);
                    let labels = self.with_labels(&prompt.labels, session);
                    (PromptRef::Listed(row), tokens, prompt.max_output_tokens, labels)
                }
                _ => {
                    let (prompt, tokens, limit) = self.written_turn(index, begins);
                    (prompt, tokens.filter(|_| begins), limit, self.with_labels(&[], session))
                }
            };
        let turn = talks.depth(conversation, place);
        relabel(&mut labels, TURN_LABEL, turn_label(turn));
        let max_output_tokens = self.limit_of(index, own_limit);
        Some(Request {
            index,
            after,
            session,
            turn,
            labels,
            prompt,
            input_tokens,
            max_output_tokens,
            output_forced: self.spec.output_forced && max_output_tokens.is_some(),
            route: Route::default(),
        })
    }

    /// What is written for a turn: a first one is as any other prompt.
    fn written_turn(
        &self,
        index: u32,
        begins: bool,
    ) -> (PromptRef, Option<Tokens>, Option<Tokens>) {
        match &self.talks().script {
            Script::Written(Turns { input: Some(lengths), .. }) if !begins => {
                let mut stream =
                    Stream::numbered(self.spec.seed, "input lengths", u64::from(index));
                let tokens = lengths.draw(&mut stream);
                (PromptRef::Written(tokens), Some(tokens), None)
            }
            _ => self.prompt_of(index),
        }
    }

    /// What makes a request come, in words; of conversations, what makes one
    /// begin.
    pub fn arrival_text(&self) -> String {
        let load = &self.spec.load;
        match (&self.turns, load) {
            (None, _) => load.arrival_text(),
            (Some(_), Load::Closed { think: Think::NONE, .. }) => FREED.to_owned(),
            (Some(_), Load::Closed { think, .. }) => {
                format!("{FREED}, who thinks {}", think.describe())
            }
            (Some(_), _) => {
                format!(
                    "{} of conversations, whose later turns follow answers",
                    load.arrival_text()
                )
            }
        }
    }

    /// The load on one line, for people.
    pub fn describe(&self) -> String {
        let text = self.spec.load.describe();
        if self.turns.is_none() {
            return text;
        }
        match text.strip_suffix(&self.spec.load.arrival_text()) {
            Some(kind) => format!("{kind}{}", self.arrival_text()),
            None => text,
        }
    }

    /// The requests of unit `unit`, in order: those of a conversation, or a
    /// request by itself; `None` past the end.
    pub fn unit(&self, unit: u32) -> Option<Vec<Request>> {
        if let Some(turns) = &self.turns {
            if self.units().is_some_and(|units| unit >= units) {
                return None;
            }
            let (first, count) = turns.of_session(unit)?;
            return (first..first + count).map(|index| self.request(index)).collect();
        }
        if let super::Plan::Listed(_, units) = &self.plan {
            let places = units.get(unit as usize)?;
            return places.iter().map(|place| self.request(*place)).collect();
        }
        self.request(unit).map(|request| vec![request])
    }

    /// The worker of unit `unit`, without drawing it; `None` past the end.
    ///
    /// # Panics
    /// When there are no workers.
    pub fn owner_at_unit(&self, unit: u32, workers: u32) -> Option<u32> {
        if self.units().is_some_and(|units| unit >= units) {
            return None;
        }
        let session = match &self.plan {
            super::Plan::Listed(requests, units) => {
                requests[units[unit as usize][0] as usize].session
            }
            _ => unit,
        };
        Some(self.owner_of_unit(session, workers))
    }

    /// The number of turns of the conversation that a request belongs to.
    pub fn turns_of(&self, request: &Request) -> u32 {
        match (&self.turns, &self.plan) {
            (Some(turns), _) => turns.of_session(request.session).map_or(1, |(_, count)| count),
            (None, super::Plan::Listed(_, units)) => {
                let unit = self.sessions[request.index as usize];
                units[unit as usize].len() as u32
            }
            (None, _) => 1,
        }
    }

    /// True when a later prompt holds the answer to this request as the server
    /// gives it.
    pub fn answer_is_carried(&self, request: &Request) -> bool {
        let Some(turns) = &self.turns else { return false };
        let (session, place) = turns.locate(request.index);
        let (talks, count) = (self.talks(), self.turns_of(request));
        talks.history == History::Real && talks.is_awaited(self.conversation(session), place, count)
    }

    /// The whole prompt of a turn: the messages of the turns before it, each
    /// with its answer, then its own. `answer` gives the messages that the
    /// server's answer to a request is; a scripted history does not ask. A turn
    /// that waits for several goes on from the first of them and has the answers
    /// of the others before its own messages, each as a message of the user's.
    /// Tools of an earlier turn hold until another turn brings its own.
    ///
    /// # Panics
    /// As [`Self::prompt`].
    pub fn prompt_after(
        &self,
        request: &Request,
        nonce: RunNonce,
        answer: &dyn Fn(u32) -> Vec<Message>,
    ) -> Prompt {
        let own = self.prompt(request, nonce);
        let Some(history) = self.history(request) else { return own };
        let mut messages = Vec::new();
        let mut tools = None;
        for said in history {
            match said {
                Said::Turn(link) => {
                    let carries = self.prompt_for(&link, request.index, nonce);
                    tools = carries.member("tools").map(str::to_owned).or(tools);
                    messages.extend(carries.content.into_messages());
                }
                Said::Answer { to, aside } => {
                    let answered = match to {
                        Answered::Given(index) => answer(index),
                        Answered::Scripted(scripted) => scripted.to_vec(),
                    };
                    messages.extend(answered.into_iter().map(|message| match aside {
                        true => Message::new("user", message.content),
                        false => message,
                    }));
                }
            }
        }
        messages.extend(own.content.into_messages());
        let mut body = own.body;
        if let Some(tools) = tools.filter(|_| !body.iter().any(|(name, _)| name == "tools")) {
            body.push(("tools".to_owned(), tools));
        }
        let content = Content::Messages(messages);
        Prompt { content, body, ..own }
    }

    /// What was said before a turn adds its own, in order; none where nothing
    /// was.
    pub(super) fn history(&self, request: &Request) -> Option<Vec<Said<'_>>> {
        let turns = self.turns.as_ref()?;
        let (session, place) = turns.locate(request.index);
        let (talks, conversation) = (self.talks(), self.conversation(session));
        let chain = talks.chain(conversation, place);
        if chain.len() < 2 {
            return None;
        }
        let first = request.index - u32::from(place);
        let answered = |place: u16| match (&talks.script, talks.history) {
            (Script::Listed(all), History::Scripted) => {
                Answered::Scripted(&all[conversation as usize].turns()[usize::from(place)].answer)
            }
            _ => Answered::Given(first + u32::from(place)),
        };
        let mut said = Vec::new();
        for (depth, &at) in chain.iter().enumerate() {
            if depth > 0 {
                said.push(Said::Answer { to: answered(chain[depth - 1]), aside: false });
                let others = talks.parents(conversation, at).into_iter().skip(1);
                said.extend(others.map(|at| Said::Answer { to: answered(at), aside: true }));
            }
            // What the turn itself adds is there already.
            if at == place {
                break;
            }
            said.extend(self.request(first + u32::from(at)).map(Said::Turn));
        }
        Some(said)
    }
}

/// A part of what was said before a turn.
pub(super) enum Said<'a> {
    /// What an earlier turn added.
    Turn(Request),
    /// The answer to one.
    Answer {
        /// Which answer.
        to: Answered<'a>,
        /// True where the turn waits for it besides the one that it goes on
        /// from.
        aside: bool,
    },
}

/// An answer of an earlier turn.
pub(super) enum Answered<'a> {
    /// The one that the server gave to this request.
    Given(u32),
    /// The one of the script.
    Scripted(&'a [Message]),
}

/// What a turn is called in its label.
fn turn_label(turn: u16) -> String {
    let number = turn.saturating_add(1);
    if number < LAST_LABELLED { number.to_string() } else { format!("{LAST_LABELLED}+") }
}

#[cfg(test)]
mod tests;
