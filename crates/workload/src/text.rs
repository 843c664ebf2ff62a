//! Text of our own: sentences from the word lists, and nonces.

use crate::stream::Stream;
use crate::words::{ADJECTIVES, ADVERBS, CONJUNCTIONS, DETERMINERS, NOUNS, PREPOSITIONS, VERBS};

/// Nouns in a nonce. Seven of the list are 63.6 bits: two runs in a million
/// million share one.
const NONCE_NOUNS: u32 = 7;

/// Tokens of a whole nonce: its nouns and a full stop.
pub(crate) const NONCE_TOKENS: u32 = NONCE_NOUNS + 1;

/// A text of `tokens` tokens in which each word and each mark counts as one.
/// It ends where the count is reached, in the middle of a sentence if need be,
/// and then with a full stop in place of the last word. `nonce` gives the first words; a text shorter than the nonce
/// is nothing but its beginning.
pub(crate) fn write(tokens: u32, stream: &mut Stream, nonce: Option<&mut Stream>) -> String {
    let mut writer = Writer {
        // About six bytes a word with its space; the cap keeps a hostile
        // length from reserving before a word is written.
        text: String::with_capacity(6 * tokens.min(1 << 20) as usize),
        left: tokens,
        after_word: false,
        open_sentence: true,
    };
    if let Some(nonce) = nonce {
        for _ in 0..NONCE_NOUNS {
            writer.word(nonce.pick(NOUNS));
        }
        writer.full_stop();
    }
    while writer.left > 0 {
        writer.sentence(stream);
    }
    writer.text
}

/// A nonce by itself, `NONCE_TOKENS` long, to be put before a text.
pub(crate) fn nonce(stream: &mut Stream) -> String {
    write(NONCE_TOKENS, &mut Stream::new(0, "unused"), Some(stream))
}

/// Writes words and marks until nothing is left of the count; what comes after
/// is dropped, so the grammar below need not look at it.
struct Writer {
    text: String,
    left: u32,
    after_word: bool,
    open_sentence: bool,
}

impl Writer {
    fn word(&mut self, word: &str) {
        if self.left == 0 {
            return;
        }
        if self.left == 1 && self.after_word {
            // The last place is the full stop's.
            return self.full_stop();
        }
        self.left -= 1;
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        let (first, rest) = word.split_at(1);
        if self.open_sentence {
            self.text.push_str(&first.to_ascii_uppercase());
        } else {
            self.text.push_str(first);
        }
        self.text.push_str(rest);
        self.after_word = true;
        self.open_sentence = false;
    }

    fn mark(&mut self, mark: char) {
        if self.left > 1 {
            self.left -= 1;
            self.text.push(mark);
            self.after_word = false;
        }
    }

    fn full_stop(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.text.push('.');
            self.after_word = false;
            self.open_sentence = true;
        }
    }

    fn sentence(&mut self, stream: &mut Stream) {
        self.clause(stream);
        if stream.chance(0.35) {
            if stream.chance(0.5) {
                self.mark(',');
            }
            self.word(stream.pick(CONJUNCTIONS));
            self.clause(stream);
        }
        self.full_stop();
    }

    fn clause(&mut self, stream: &mut Stream) {
        self.thing(stream);
        if stream.chance(0.25) {
            self.word(stream.pick(ADVERBS));
        }
        self.word(stream.pick(VERBS));
        if stream.chance(0.6) {
            self.thing(stream);
        }
        while stream.chance(0.4) {
            self.word(stream.pick(PREPOSITIONS));
            self.thing(stream);
        }
    }

    fn thing(&mut self, stream: &mut Stream) {
        self.word(stream.pick(DETERMINERS));
        while stream.chance(0.35) {
            self.word(stream.pick(ADJECTIVES));
        }
        self.word(stream.pick(NOUNS));
    }
}
