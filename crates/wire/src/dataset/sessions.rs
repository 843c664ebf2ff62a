//! Rows that belong together: turns of conversations, and graphs of turns that
//! wait for several others.
//!
//! Rows with the same `session` are one conversation. Each waits for the row
//! before it, unless a row of the session has `parents`: then each waits for
//! those that it names by `id`, and one without is a first turn. A row without
//! a session is a conversation of its own.
//!
//! A row's messages are what its turn adds. Where they begin with all messages
//! of the turn before, as in a log of requests, the rest is what it adds.
//! Messages of the assistant at the beginning of what it adds are the scripted
//! answer to the turn before.
//!
//! A conversation of which one row breaks a rule is skipped whole: without it
//! the others would say something else.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use measure::{Span, Tokens};
use workload::conversation::{MAX_FAN_OUT, MAX_NODES, MAX_THINK, MAX_TURNS};
use workload::{Content, Conversation, Message, Prompt, Turn};

use super::table::Rows;
use super::{DatasetNotes, Place, Reason};

/// A row with what it says of its place in a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) prompt: Prompt,
    pub(super) session: Option<String>,
    pub(super) id: Option<String>,
    pub(super) parents: Option<Vec<String>>,
    pub(super) think: Option<Span>,
    /// Its prompt is its own messages alone.
    pub(super) fresh: bool,
    /// The scripted answer to it.
    pub(super) answer: Vec<Message>,
}

impl Row {
    /// A row by itself.
    pub(super) fn alone(place: Place, prompt: Prompt) -> Self {
        Self {
            place,
            prompt,
            session: None,
            id: None,
            parents: None,
            think: None,
            fresh: false,
            answer: Vec::new(),
        }
    }
}

/// A turn of a conversation that is made of one row.
pub(super) type ScriptedTurn = (Prompt, Vec<Message>);

/// Conversations as they are put together.
#[derive(Default)]
pub(super) struct Builder {
    prompts: Vec<Prompt>,
    conversations: Vec<Conversation>,
    /// Every turn that others wait for must have a scripted answer.
    scripted: bool,
}

impl Builder {
    pub(super) fn new(scripted: bool) -> Self {
        Self { scripted, ..Self::default() }
    }

    pub(super) fn rows(self) -> Rows {
        Rows::Conversations { prompts: self.prompts, conversations: self.conversations }
    }

    /// Adds a conversation of turns one after the other.
    pub(super) fn add_chain(&mut self, turns: Vec<ScriptedTurn>) -> Result<(), Reason> {
        if turns.len() > usize::from(MAX_TURNS) {
            return Err(Reason::TooManyTurns);
        }
        let last = turns.len().saturating_sub(1);
        if self.scripted && turns[..last].iter().any(|(_, answer)| answer.is_empty()) {
            return Err(Reason::NoScriptedAnswer);
        }
        let turns = (0u16..).zip(turns).map(|(place, (prompt, answer))| {
            let parents = place.checked_sub(1).into_iter().collect();
            (prompt, Turn { parents, answer, ..Turn::default() })
        });
        self.push(turns.collect());
        Ok(())
    }

    fn push(&mut self, turns: Vec<(Prompt, Turn)>) {
        // More rows than that do not fit into the file's own limit.
        let first = u32::try_from(self.prompts.len()).unwrap_or(u32::MAX);
        let (prompts, turns): (Vec<_>, Vec<_>) = turns.into_iter().unzip();
        self.prompts.extend(prompts);
        self.conversations.push(Conversation::new(first, turns));
    }

    /// Adds the conversation that the rows of one session are.
    fn add_session(&mut self, rows: Vec<Row>) -> Result<(), (Place, Reason)> {
        if rows.len() > MAX_NODES {
            return Err((rows[MAX_NODES].place, Reason::TooManyTurns));
        }
        let parents = parents_of(&rows)?;
        let (order, parents) = in_order(&rows, &parents)?;
        let mut rows: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
        let rows: Vec<Row> = order.iter().filter_map(|place| rows[*place].take()).collect();
        self.push(turns_of(rows, &parents, self.scripted)?);
        Ok(())
    }
}

/// Puts rows together to conversations, in the order of their first rows.
pub(super) fn build(rows: Vec<Row>, scripted: bool, notes: &mut DatasetNotes) -> Rows {
    let mut sessions: Vec<Vec<Row>> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut owners: HashMap<String, BTreeSet<String>> = HashMap::new();
    for row in rows {
        let Some(session) = row.session.clone() else {
            sessions.push(vec![row]);
            continue;
        };
        if let Some(id) = &row.id {
            owners.entry(id.clone()).or_default().insert(session.clone());
        }
        let place = *known.entry(session).or_insert(sessions.len());
        match sessions.get_mut(place) {
            Some(rows) => rows.push(row),
            None => sessions.push(vec![row]),
        }
    }
    let mut builder = Builder::new(scripted);
    for rows in sessions {
        let places: Vec<Place> = rows.iter().map(|row| row.place).collect();
        if let Err((place, reason)) = builder.add_session(rows) {
            let reason = match reason {
                Reason::UnknownParent(id) if owners.contains_key(&id) => {
                    Reason::ParentElsewhere(id)
                }
                reason => reason,
            };
            notes.skip(place, None, reason);
            for other in places.into_iter().filter(|other| *other != place) {
                notes.skip(other, None, Reason::InBadSession(place.number()));
            }
        }
    }
    builder.rows()
}

/// For each row the places of those that it waits for.
fn parents_of(rows: &[Row]) -> Result<Vec<Vec<usize>>, (Place, Reason)> {
    if rows.iter().all(|row| row.parents.is_none()) {
        return Ok((0..rows.len())
            .map(|place| place.checked_sub(1).into_iter().collect())
            .collect());
    }
    let mut ids: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(id) = &row.id
            && ids.insert(id, place).is_some()
        {
            return Err((row.place, Reason::SameId(id.clone())));
        }
    }
    let mut children = vec![0usize; rows.len()];
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let mut parents = Vec::new();
        for id in row.parents.iter().flatten() {
            let Some(&parent) = ids.get(id.as_str()) else {
                let reason = match row.session {
                    Some(_) => Reason::UnknownParent(id.clone()),
                    None => Reason::ParentsWithoutSession,
                };
                return Err((row.place, reason));
            };
            if !parents.contains(&parent) {
                parents.push(parent);
                children[parent] += 1;
            }
            if parents.len() > MAX_FAN_OUT || children[parent] > MAX_FAN_OUT {
                return Err((row.place, Reason::TooWide));
            }
        }
        all.push(parents);
    }
    Ok(all)
}

/// Places of rows in order, and the parents of each as places in that order.
type Ordered = (Vec<usize>, Vec<Vec<u16>>);

/// The rows' places with parents before children and else as in the file, and
/// the parents of each as places in that order.
fn in_order(rows: &[Row], parents: &[Vec<usize>]) -> Result<Ordered, (Place, Reason)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    let mut open: Vec<usize> = parents.iter().map(Vec::len).collect();
    for (child, parents) in parents.iter().enumerate() {
        parents.iter().for_each(|parent| children[*parent].push(child));
    }
    let mut ready: BTreeSet<usize> = (0..rows.len()).filter(|place| open[*place] == 0).collect();
    let (mut order, mut new_place) = (Vec::with_capacity(rows.len()), vec![0u16; rows.len()]);
    let mut depth = vec![0u32; rows.len()];
    while let Some(place) = ready.pop_first() {
        new_place[place] = order.len() as u16;
        order.push(place);
        if depth[place] >= u32::from(MAX_TURNS) {
            return Err((rows[place].place, Reason::TooDeep));
        }
        for &child in &children[place] {
            depth[child] = depth[child].max(depth[place] + 1);
            open[child] -= 1;
            if open[child] == 0 {
                ready.insert(child);
            }
        }
    }
    if let Some(stuck) = (0..rows.len()).find(|place| open[*place] > 0) {
        return Err((rows[stuck].place, Reason::Circle));
    }
    let renamed = order.iter().map(|place| parents[*place].iter().map(|p| new_place[*p]).collect());
    let renamed = renamed.collect();
    Ok((order, renamed))
}

/// The turns that rows are, with what each adds and what was answered to it.
fn turns_of(
    rows: Vec<Row>,
    parents: &[Vec<u16>],
    scripted: bool,
) -> Result<Vec<(Prompt, Turn)>, (Place, Reason)> {
    let whole: Vec<Vec<Message>> =
        rows.iter().map(|row| row.prompt.content.clone().into_messages()).collect();
    let mut answers: Vec<Vec<Message>> = rows.iter().map(|row| row.answer.clone()).collect();
    let awaited: BTreeSet<u16> = parents.iter().flatten().copied().collect();
    let places: Vec<Place> = rows.iter().map(|row| row.place).collect();
    let mut turns = Vec::with_capacity(rows.len());
    for (place, row) in rows.into_iter().enumerate() {
        let mut prompt = row.prompt;
        if let (Some(&parent), false) = (parents[place].first(), row.fresh) {
            let before = &whole[usize::from(parent)];
            let rest = whole[place].strip_prefix(before.as_slice()).unwrap_or(&whole[place]);
            let said = rest.iter().take_while(|message| message.role == "assistant").count();
            if said > 0 && answers[usize::from(parent)].is_empty() {
                answers[usize::from(parent)] = rest[..said].to_vec();
            }
            if rest.len() == said {
                return Err((row.place, Reason::NothingNew));
            }
            if rest.len() - said < whole[place].len() {
                prompt.content = Content::Messages(rest[said..].to_vec());
            }
        }
        let parents = parents[place].clone();
        let turn = Turn { parents, think: row.think, fresh: row.fresh, answer: Vec::new() };
        turns.push((prompt, turn));
    }
    for (place, answer) in answers.into_iter().enumerate() {
        if scripted && answer.is_empty() && awaited.contains(&(place as u16)) {
            return Err((places[place], Reason::NoScriptedAnswer));
        }
        turns[place].1.answer = answer;
    }
    Ok(turns)
}

/// Cuts a list of messages into turns: each ends where the assistant answers.
/// `count` says about how many tokens a text is.
pub(super) fn cut(prompt: Prompt, count: &dyn Fn(&str) -> u32) -> Vec<ScriptedTurn> {
    let Content::Messages(messages) = &prompt.content else { return vec![(prompt, Vec::new())] };
    let asks = |messages: &[Message]| {
        messages.iter().any(|message| matches!(message.role.as_str(), "user" | "tool"))
    };
    let mut turns: Vec<(Vec<Message>, Vec<Message>)> = Vec::new();
    let mut added: Vec<Message> = Vec::new();
    for message in messages {
        if message.role == "assistant" {
            if asks(&added) {
                turns.push((std::mem::take(&mut added), Vec::new()));
            }
            if let (Some((_, answer)), true) = (turns.last_mut(), added.is_empty()) {
                answer.push(message.clone());
                continue;
            }
        }
        added.push(message.clone());
    }
    if asks(&added) {
        turns.push((added, Vec::new()));
    }
    let turn = |(added, answer): (Vec<Message>, Vec<Message>)| {
        let tokens = added.iter().map(|message| count(&message.content));
        let tokens = Tokens::new(tokens.fold(0, u32::saturating_add));
        let content = Content::Messages(added);
        (Prompt { content, input_tokens: Some(tokens), ..prompt.clone() }, answer)
    };
    turns.into_iter().map(turn).collect()
}

/// The pause of a row in milliseconds.
pub(super) fn think_of(value: &serde_json::Value) -> Result<Span, Reason> {
    let ms = value.as_f64().filter(|ms| (0.0..=MAX_THINK.ms()).contains(ms));
    ms.map(|ms| Span::from_us((ms * 1e3).round() as i64)).ok_or(Reason::BadThink)
}

#[cfg(test)]
mod tests;
