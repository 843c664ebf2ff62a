//! ShareGPT: conversations between people and a model.
//!
//! ```text
//! [
//!   {"id": "a", "conversations": [
//!     {"from": "system", "value": "Be brief."},
//!     {"from": "human",  "value": "What is the capital of Norway?"},
//!     {"from": "gpt",    "value": "Oslo."}]},
//!   …
//! ]
//! ```
//!
//! A JSON array of rows, or one row a line. The turns are under
//! `conversations`, `conversation` or `messages`; a turn's speaker under `from`
//! or `role`, its text under `value`, `content` or `text`. Speakers: human or
//! user; gpt, assistant, chatgpt, bing, bard, model; system. Others (tools)
//! belong to no pair.
//!
//! A row gives one prompt, unless all turns are asked for: the question of its
//! first human → gpt pair, with the system turn before it where there is one.
//! The answer's estimated length is the output limit, as in vLLM. Turns that are
//! no objects are passed over. A row that gives no pair is skipped with the
//! reason; a file that ends inside a row keeps the rows before it and says so.
//!
//! vLLM takes the first two turns whoever speaks, so it may send an answer as a
//! prompt; [`Pairing::FirstTwo`] does that for comparison's sake.

use measure::Tokens;
use serde_json::{Map, Value};
use workload::{Content, Message, Prompt};

use super::table::Rows;
use super::{DatasetNotes, Place, Reason, json_rows, sessions};

/// Which turns make a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// A human turn and the gpt turn right after it.
    #[default]
    RoleAware,
    /// The first two turns, whoever speaks: vLLM's rule.
    FirstTwo,
}

/// Which pairs are of a usable length, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Shorter prompts are skipped.
    pub min_prompt: u32,
    /// Shorter answers are skipped. Set to 0 when the output length is given
    /// otherwise.
    pub min_answer: u32,
    /// Longer prompts are skipped.
    pub max_prompt: u32,
    /// Pairs that are longer together are skipped.
    pub max_pair: u32,
}

impl Bounds {
    /// vLLM's filter. It came with the first ShareGPT benchmark, to keep out
    /// what is too short to time and too long for small models.
    pub const VLLM: Self = Self { min_prompt: 4, min_answer: 4, max_prompt: 1024, max_pair: 2048 };

    /// No filter.
    pub const NONE: Self =
        Self { min_prompt: 0, min_answer: 0, max_prompt: u32::MAX, max_pair: u32::MAX };

    fn check(self, prompt: u32, answer: u32) -> Result<(), Reason> {
        if prompt < self.min_prompt {
            Err(Reason::PromptTooShort(self.min_prompt))
        } else if answer < self.min_answer {
            Err(Reason::AnswerTooShort(self.min_answer))
        } else if prompt > self.max_prompt {
            Err(Reason::PromptTooLong(self.max_prompt))
        } else if prompt.saturating_add(answer) > self.max_pair {
            Err(Reason::PairTooLong(self.max_pair))
        } else {
            Ok(())
        }
    }
}

/// A usable row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Where it stands.
    pub place: Place,
    /// Its name, where it has one.
    pub id: Option<String>,
    /// The system turn before the first pair.
    pub system: Option<String>,
    /// Question and answer, at least one pair, up to the first broken one.
    pub pairs: Vec<(String, String)>,
}

/// Reads the file and gives one prompt for each usable row. `count` says about
/// how many tokens a text is; without a tokenizer, pass
/// [`workload::estimate_tokens`]. Bounds are as good as that count.
pub fn read(
    bytes: &[u8],
    pairing: Pairing,
    bounds: Bounds,
    count: &dyn Fn(&str) -> u32,
) -> (Vec<Prompt>, DatasetNotes) {
    let mut prompts = Vec::new();
    let notes = each(bytes, pairing, &mut |conversation| {
        prompts.push(prompt_of(conversation, bounds, count)?);
        Ok(())
    });
    (prompts, notes)
}

/// Reads the file and gives every usable row whole.
pub fn conversations(bytes: &[u8]) -> (Vec<Conversation>, DatasetNotes) {
    let mut conversations = Vec::new();
    let notes = each(bytes, Pairing::RoleAware, &mut |conversation| {
        conversations.push(conversation);
        Ok(())
    });
    (conversations, notes)
}

/// Reads the file and gives every usable row as a conversation of all its pairs,
/// whatever their lengths. The answers are the scripted ones, and their lengths
/// the limits.
pub fn multi_turn(bytes: &[u8], count: &dyn Fn(&str) -> u32) -> (Rows, DatasetNotes) {
    let mut builder = sessions::Builder::default();
    let notes = each(bytes, Pairing::RoleAware, &mut |mut conversation| {
        let pairs = std::mem::take(&mut conversation.pairs);
        let mut system = conversation.system.take();
        let turns = pairs.into_iter().map(|(question, answer)| {
            let said = vec![Message::new("assistant", answer.as_str())];
            let pair = vec![(question, answer)];
            let turn = Conversation { system: system.take(), pairs: pair, ..conversation.clone() };
            Ok((prompt_of(turn, Bounds::NONE, count)?, said))
        });
        builder.add_chain(turns.collect::<Result<_, Reason>>()?)
    });
    (builder.rows(), notes)
}

fn prompt_of(
    mut conversation: Conversation,
    bounds: Bounds,
    count: &dyn Fn(&str) -> u32,
) -> Result<Prompt, Reason> {
    let (question, answer) = conversation.pairs.swap_remove(0);
    let system = conversation.system;
    let prompt = count(&question).saturating_add(system.as_deref().map_or(0, count));
    let answer = count(&answer);
    bounds.check(prompt, answer)?;
    let content = match system {
        None => Content::Text(question),
        Some(system) => {
            Content::Messages(vec![Message::new("system", system), Message::new("user", question)])
        }
    };
    Ok(Prompt {
        content,
        input_tokens: Some(Tokens::new(prompt)),
        // A limit of 0 is no legal one; a counter may still say 0.
        max_output_tokens: Some(Tokens::new(answer.clamp(1, workload::MAX_TOKENS))),
        source_row: Some(conversation.place.number()),
        labels: Vec::new(),
        body: Vec::new(),
        priority: None,
    })
}

/// Takes the usable rows of the file; `take` may still refuse one.
fn each(
    bytes: &[u8],
    pairing: Pairing,
    take: &mut dyn FnMut(Conversation) -> Result<(), Reason>,
) -> DatasetNotes {
    json_rows::each(bytes, &mut |notes, place, bytes| {
        if let Err((id, reason)) = usable(bytes, place, pairing, take) {
            notes.skip(place, id, reason);
        }
    })
}

/// Reads one row and hands it over; else its name and what is wrong with it.
fn usable(
    bytes: &[u8],
    place: Place,
    pairing: Pairing,
    take: &mut dyn FnMut(Conversation) -> Result<(), Reason>,
) -> Result<(), (Option<String>, Reason)> {
    let mut object = json_rows::object(bytes, place).map_err(|reason| (None, reason))?;
    let id = match object.get("id") {
        Some(Value::String(id)) => Some(id.clone()),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    let turns = ["conversations", "conversation", "messages"]
        .into_iter()
        .find_map(|key| match object.remove(key) {
            Some(Value::Array(turns)) => Some(turns),
            _ => None,
        })
        .ok_or(Reason::NoConversations);
    turns
        .and_then(|turns| match pairing {
            Pairing::RoleAware => by_role(turns),
            Pairing::FirstTwo => first_two(turns),
        })
        .and_then(|(system, pairs)| take(Conversation { place, id: id.clone(), system, pairs }))
        .map_err(|reason| (id, reason))
}

type Pairs = (Option<String>, Vec<(String, String)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Human,
    Model,
    System,
    Other,
}

fn speaker_of(turn: &Map<String, Value>) -> Speaker {
    let name = ["from", "role"].iter().find_map(|key| turn.get(*key)?.as_str()).unwrap_or("");
    match name.to_ascii_lowercase().as_str() {
        "human" | "user" => Speaker::Human,
        "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => Speaker::Model,
        "system" => Speaker::System,
        _ => Speaker::Other,
    }
}

fn text_of(turn: &mut Map<String, Value>) -> Option<String> {
    ["value", "content", "text"].iter().find_map(|key| match turn.get_mut(*key)?.take() {
        Value::String(text) => Some(text),
        _ => None,
    })
}

/// The pairs of a row by who speaks, and the system turn before the first.
fn by_role(turns: Vec<Value>) -> Result<Pairs, Reason> {
    let (mut system, mut pairs) = (None, Vec::new());
    // The human turn that waits for its answer; its text may be missing.
    let mut asked: Option<Option<String>> = None;
    let (mut seen, mut anyone_asked) = (0, false);
    for turn in turns {
        let Value::Object(mut turn) = turn else { continue };
        seen += 1;
        let speaker = speaker_of(&turn);
        let text = text_of(&mut turn);
        match speaker {
            Speaker::Human => {
                asked = Some(text);
                anyone_asked = true;
            }
            Speaker::Model => {
                let Some(question) = asked.take() else { continue };
                match pair(question, text) {
                    Ok(pair) => pairs.push(pair),
                    Err(reason) if pairs.is_empty() => return Err(reason),
                    Err(_) => break,
                }
            }
            Speaker::System if pairs.is_empty() => {
                system = text.filter(|text| !text.trim().is_empty());
            }
            Speaker::System => {}
            Speaker::Other => asked = None,
        }
    }
    if !pairs.is_empty() {
        Ok((system, pairs))
    } else if anyone_asked {
        Err(Reason::NoAnswerTurn)
    } else if seen < 2 {
        Err(Reason::FewerThanTwoTurns)
    } else {
        Err(Reason::NoHumanTurn)
    }
}

/// The first two turns as a pair, whoever speaks.
fn first_two(turns: Vec<Value>) -> Result<Pairs, Reason> {
    let mut texts = turns.into_iter().map(|turn| match turn {
        Value::Object(mut turn) => text_of(&mut turn),
        _ => None,
    });
    let (Some(question), Some(answer)) = (texts.next(), texts.next()) else {
        return Err(Reason::FewerThanTwoTurns);
    };
    Ok((None, vec![pair(question, answer)?]))
}

fn pair(question: Option<String>, answer: Option<String>) -> Result<(String, String), Reason> {
    let (Some(question), Some(answer)) = (question, answer) else {
        return Err(Reason::TurnWithoutValue);
    };
    if question.trim().is_empty() {
        Err(Reason::EmptyPrompt)
    } else if answer.trim().is_empty() {
        Err(Reason::EmptyAnswer)
    } else {
        Ok((question, answer))
    }
}

#[cfg(test)]
mod tests;
