//! SGLang's native API: each event holds the text so far and running counts.

use serde::Deserialize;

use super::Listener;
use super::json::{Count, Fault, Lax, Name, Number, Text};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    #[serde(borrow)]
    text: Text<'a>,
    #[serde(borrow)]
    meta_info: Lax<MetaInfo<'a>>,
    /// The choice, when several were asked for.
    index: Count,
    #[serde(borrow)]
    error: Fault<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MetaInfo<'a> {
    prompt_tokens: Count,
    completion_tokens: Count,
    cached_tokens: Count,
    reasoning_tokens: Count,
    #[serde(borrow)]
    finish_reason: Name<'a>,
    e2e_latency: Number,
    queue_time: Number,
}

/// The text of one choice as it grows.
///
/// By default each event repeats all text so far; a server may be set to send
/// only what is new. Which of the two it is shows at the first event that does
/// not begin with what came before.
#[derive(Debug, Default)]
pub(super) struct Grown {
    text: String,
    /// It has grown at least once, so texts are cumulative.
    cumulative: bool,
    /// Texts are pieces.
    pieces: bool,
}

impl Grown {
    /// What is new in `text`.
    fn grow<'t>(&mut self, text: &'t str) -> &'t str {
        if self.pieces {
            return text;
        }
        match text.strip_prefix(self.text.as_str()) {
            Some(new) => {
                self.cumulative |= !self.text.is_empty() && !new.is_empty();
                self.text.push_str(new);
                new
            }
            None if self.cumulative => {
                // The server took back its last characters, a half of one say.
                let same = common_prefix(&self.text, text);
                let new = if text.len() > self.text.len() { &text[same..] } else { "" };
                self.text.clear();
                self.text.push_str(text);
                new
            }
            None => {
                self.pieces = true;
                self.text = String::new();
                text
            }
        }
    }
}

/// Length of the common beginning in bytes, whole characters only.
fn common_prefix(one: &str, other: &str) -> usize {
    let same = |(a, b): &(char, char)| a == b;
    one.chars().zip(other.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum()
}

pub(super) fn hear(data: &[u8], ear: &mut Listener) -> serde_json::Result<()> {
    let Some(event) = serde_json::from_slice::<Lax<Event<'_>>>(data)?.0 else { return Ok(()) };
    if event.error.present {
        ear.fault(&event.error, "");
        return Ok(());
    }
    let choice = ear.choice(event.index.0.unwrap_or(0));
    let known = ear.grown.iter().position(|(known, _)| *known == choice);
    let at = known.unwrap_or_else(|| {
        ear.grown.push((choice, Grown::default()));
        ear.grown.len() - 1
    });
    // What is new depends on the text before, not on this event alone.
    ear.trace.beyond();
    let new = ear.grown[at].1.grow(event.text.as_str());
    ear.text(choice, new);
    if let Some(meta) = &event.meta_info.0 {
        if let Some(reason) = meta.finish_reason.some() {
            ear.finish_reason(reason);
            if ear.aborted && !meta.finish_reason.message.is_empty() {
                ear.answer.message = Some(super::sample(&meta.finish_reason.message));
            }
        }
        ear.prompt_counts(meta.prompt_tokens.0, meta.cached_tokens.0, meta.reasoning_tokens.0);
        ear.completion_count(meta.completion_tokens.0);
        let timings = [("e2e_latency", meta.e2e_latency), ("queue_time", meta.queue_time)];
        let sent = timings.iter().filter_map(|(name, value)| Some(((*name).to_owned(), value.0?)));
        ear.timings(sent.collect());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Grown;

    fn grow(texts: &[&str]) -> Vec<String> {
        let mut grown = Grown::default();
        texts.iter().map(|text| grown.grow(text).to_owned()).collect()
    }

    #[test]
    fn a12_cumulative_text_gives_what_is_new() {
        assert_eq!(grow(&["", "A B", "A B", "A B C"]), ["", "A B", "", " C"]);
    }

    #[test]
    fn pieces_are_recognised() {
        assert_eq!(grow(&["A", "B", "B", "A"]), ["A", "B", "B", "A"]);
    }

    #[test]
    fn characters_taken_back_are_not_counted_twice() {
        assert_eq!(grow(&["a", "ab\u{fffd}", "ab🙂"]), ["a", "b\u{fffd}", "🙂"]);
    }
}
