//! Lines of a poem: prompts that share a beginning and differ after it.
//!
//! The file is plain text, one line of verse a line; blank lines are passed
//! over. Each prompt is vLLM's sentence of instruction, the same leading lines
//! of the file in all prompts up to the prefix length, and then lines drawn by
//! the seed while they fit into the input length. A prompt so ends below its
//! length by less than a line.

use measure::Tokens;
use workload::{Prompt, Stream};

use super::{DatasetNotes, Refusal, each_line, without_mark};

/// The sentence of vLLM's sonnet prompts.
const INSTRUCTION: &str = "Pick as many lines as you can from these poem lines:\n";

/// How many draws in a row may not fit before a prompt counts as full: lines
/// differ in length, and one that is shorter may still fit.
const MISSES: u32 = 4;

/// What is to be made of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Length of a prompt in tokens.
    pub input: u32,
    /// Of that, about how many are the same in all prompts.
    pub prefix: u32,
    /// How many prompts.
    pub prompts: u32,
    /// The seed of the draws.
    pub seed: u64,
}

impl Shape {
    /// vLLM's lengths.
    pub const VLLM: Self = Self { input: 550, prefix: 200, prompts: 1000, seed: 0 };
}

/// Reads the file and makes the prompts. `count` as in
/// [`custom::read`](super::custom::read).
pub fn read(
    bytes: &[u8],
    shape: Shape,
    count: &dyn Fn(&str) -> u32,
) -> (Vec<Prompt>, DatasetNotes) {
    let bytes = match without_mark(bytes) {
        Ok(bytes) => bytes,
        Err(refusal) => return (Vec::new(), DatasetNotes::refused(refusal)),
    };
    let mut notes = DatasetNotes::default();
    let mut verses: Vec<(String, u32)> = Vec::new();
    each_line(bytes, &mut notes, &mut |notes, line| {
        notes.entries += 1;
        let text = format!("{}\n", String::from_utf8_lossy(line.bytes));
        let tokens = count(&text);
        verses.push((text, tokens));
    });
    let (mut head, mut tokens) = (INSTRUCTION.to_owned(), count(INSTRUCTION));
    for (text, length) in &verses {
        if tokens.saturating_add(*length) > shape.prefix.min(shape.input) {
            break;
        }
        head.push_str(text);
        tokens += length;
    }
    if verses.iter().all(|(_, length)| tokens.saturating_add(*length) > shape.input) {
        notes.refused = Some(Refusal::LinesTooLong(shape.input));
        return (Vec::new(), notes);
    }
    let prompts = (0..shape.prompts).map(|number| {
        let mut stream = Stream::numbered(shape.seed, "verses", u64::from(number));
        let (mut text, mut tokens, mut misses) = (head.clone(), tokens, 0);
        while misses < MISSES {
            let (verse, length) = &verses[stream.below(verses.len() as u64) as usize];
            if tokens.saturating_add(*length) > shape.input {
                misses += 1;
                continue;
            }
            text.push_str(verse);
            // A line counts one at least, so that the loop ends for any counter.
            tokens = tokens.saturating_add((*length).max(1));
        }
        Prompt { input_tokens: Some(Tokens::new(count(&text))), ..Prompt::text(text) }
    });
    (prompts.collect(), notes)
}

#[cfg(test)]
mod tests {
    use workload::{Content, estimate_tokens};

    use super::*;

    fn text(prompt: &Prompt) -> &str {
        match &prompt.content {
            Content::Text(text) => text,
            Content::Texts(_) | Content::Messages(_) => panic!("a text"),
        }
    }

    /// Ten lines of nine tokens each, by words and the line's end, with blank
    /// lines between.
    fn poem() -> String {
        let names = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
        let line = |name: &&str| format!("the {name} ship went out to the sea\r\n\n");
        names.iter().map(line).collect()
    }

    #[test]
    fn prompts_share_the_prefix_and_stay_below_their_length() {
        let shape = Shape { input: 100, prefix: 40, prompts: 30, seed: 7 };
        let (prompts, notes) = read(poem().as_bytes(), shape, &estimate_tokens);
        assert_eq!((notes.entries, notes.blank_lines, prompts.len()), (10, 10, 30));
        // 12 of the instruction and 9 a line: three lines are within 40.
        let head = format!(
            "{INSTRUCTION}the one ship went out to the sea\nthe two ship went out to the sea\n\
             the three ship went out to the sea\n"
        );
        for prompt in &prompts {
            assert!(text(prompt).starts_with(&head), "{}", text(prompt));
            let tokens = prompt.input_tokens.unwrap().get();
            assert!((92..=100).contains(&tokens), "{tokens}");
        }
        let different: std::collections::BTreeSet<_> = prompts.iter().map(text).collect();
        assert!(different.len() > 25, "lines are drawn");
        assert_eq!(read(poem().as_bytes(), shape, &estimate_tokens).0, prompts);
        let other = Shape { seed: 8, ..shape };
        assert_ne!(read(poem().as_bytes(), other, &estimate_tokens).0, prompts);
    }

    #[test]
    fn lines_that_never_fit_are_an_error_and_no_endless_loop() {
        let shape = Shape { input: 20, prefix: 0, ..Shape::VLLM };
        let (prompts, notes) = read(poem().as_bytes(), shape, &estimate_tokens);
        assert!(prompts.is_empty());
        assert_eq!(notes.refused, Some(Refusal::LinesTooLong(20)));
        let (_, notes) = read(b"\n \n", Shape::VLLM, &estimate_tokens);
        assert_eq!(notes.refused, Some(Refusal::Empty));
        // A counter that says nothing still ends.
        assert_eq!(
            read(b"a\n", Shape { input: 3, prefix: 0, prompts: 1, seed: 0 }, &|_| 0).0.len(),
            1
        );
    }
}
