//! Hugging Face text-generation-inference: one event a token; the last one
//! holds the whole text and, when asked for, the details.

use serde::Deserialize;

use super::Listener;
use super::json::{Count, Fault, Flag, Lax, List, Text};
use super::template::Varying;

/// The number of the event, and of its token what is not its text.
pub(super) const VARYING: &[Varying] = &[(1, "index"), (2, "id"), (2, "logprob")];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    token: Lax<Token<'a>>,
    #[serde(borrow)]
    generated_text: Text<'a>,
    #[serde(borrow)]
    details: Lax<Details<'a>>,
    #[serde(borrow)]
    error: Fault<'a>,
    #[serde(borrow)]
    error_type: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Token<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    special: Flag,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Details<'a> {
    #[serde(borrow)]
    finish_reason: Text<'a>,
    generated_tokens: Count,
    input_length: Count,
}

pub(super) fn hear(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(event) = serde_json::from_slice::<Lax<Event<'_>>>(data)?.0 else { return Ok(()) };
    if event.error.present {
        ear.fault(&event.error, event.error_type.as_str());
        ear.terminal();
        return Ok(());
    }
    if let Some(token) = &event.token.0 {
        ear.listed_tokens(1);
        // A special token is a token, but its text is not shown to anyone.
        if !token.special.0 {
            ear.text(0, token.text.as_str());
        }
    }
    hear_details(event.details.0.as_ref(), ear);
    if event.details.0.is_some() || !event.generated_text.is_empty() {
        ear.terminal();
    }
    Ok(())
}

fn hear_details(details: Option<&Details<'_>>, ear: &mut Listener) {
    if let Some(details) = details {
        ear.finish_reason(details.finish_reason.as_str());
        ear.prompt_counts(details.input_length.0, None, None);
        ear.completion_count(details.generated_tokens.0);
    }
}

/// An answer that came as one body: an object, or a list of one.
pub(super) fn hear_whole(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let mut events = match serde_json::from_slice::<Lax<Event<'_>>>(data)?.0 {
        Some(event) => vec![event],
        None => serde_json::from_slice::<List<Event<'_>>>(data)?.0,
    };
    events.truncate(1);
    for event in &events {
        ear.text(0, event.generated_text.as_str());
        hear_details(event.details.0.as_ref(), ear);
    }
    Ok(())
}
