//! Triton's generate extension: pieces of text and nothing else. There is no
//! end mark and no count.

use serde::Deserialize;

use super::Listener;
use super::json::{Fault, Lax, Text};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    text_output: Text<'a>,
    #[serde(borrow)]
    error: Fault<'a>,
}

pub(super) fn hear(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(event) = serde_json::from_slice::<Lax<Event<'_>>>(data)?.0 else { return Ok(()) };
    if event.error.present {
        ear.fault(&event.error, "");
    }
    ear.text(0, event.text_output.as_str());
    Ok(())
}
