//! Text of our own: sentences from the word lists, and nonces.

use crate::lexicon::{Form, Lexicon, Word};
use crate::piece::Piece;
use crate::stream::Stream;

/// Nouns in a nonce, after its first word. Six of the list are 54.5 bits, and
/// the first word has some 8 more: two runs in a million million share one.
const NONCE_NOUNS: u32 = 6;

/// Tokens of a whole nonce: its first word, its nouns and a full stop.
pub(crate) const NONCE_TOKENS: u32 = NONCE_NOUNS + 2;

/// What sets a prompt apart from others.
#[derive(Clone, Debug)]
pub(crate) struct Nonce {
    /// Decides the first word. Numbers in a row have words of different single
    /// tokens, so that prompts in a row share not even their first token: a
    /// server with one slot holds a prompt against the one before it.
    pub(crate) number: u64,
    /// The rest is drawn.
    pub(crate) stream: Stream,
}

/// The text of these pieces, one after the other, each of exactly its tokens by
/// the costs of the lexicon. A piece ends where its count is reached, in the
/// middle of a sentence if need be, and then with a full stop in place of the
/// last word. `nonce` gives the first words of the first piece; a piece shorter
/// than the nonce is nothing but its beginning.
pub(crate) fn write(
    pieces: &[Piece],
    seed: u64,
    lexicon: &Lexicon,
    mut nonce: Option<Nonce>,
) -> String {
    let tokens = pieces.iter().fold(0, |sum: u32, piece| sum.saturating_add(piece.tokens));
    let mut writer = Writer {
        lexicon,
        // About six bytes a word with its space; the cap keeps a hostile
        // length from reserving before a word is written.
        text: String::with_capacity(6 * tokens.min(1 << 20) as usize),
        left: 0,
        after_word: false,
        open_sentence: true,
    };
    for (place, piece) in pieces.iter().enumerate() {
        writer.begin(piece);
        if let Some(nonce) = nonce.take() {
            writer.nonce(nonce);
        } else if place > 0 {
            writer.part(piece);
        }
        let mut stream = piece.stream(seed);
        while writer.left > 0 {
            writer.sentence(&mut stream);
        }
    }
    writer.text
}

/// A nonce by itself, `NONCE_TOKENS` long by words and marks, to be put before
/// a text.
pub(crate) fn nonce(nonce: Nonce) -> String {
    write(&[Piece::own(0, NONCE_TOKENS)], 0, Lexicon::by_words(), Some(nonce))
}

/// Writes words and marks until nothing is left of a piece; what comes after
/// is dropped, so the grammar below need not look at it.
struct Writer<'a> {
    lexicon: &'a Lexicon,
    text: String,
    left: u32,
    after_word: bool,
    open_sentence: bool,
}

impl Writer<'_> {
    /// Begins a piece, whatever the one before it ended with.
    fn begin(&mut self, piece: &Piece) {
        self.left = piece.tokens;
        self.after_word = false;
        self.open_sentence = true;
    }

    fn nonce(&mut self, mut nonce: Nonce) {
        self.word(self.lexicon.numbered(Form::Opening, nonce.number));
        for _ in 0..NONCE_NOUNS {
            self.word(nonce.stream.pick(&self.lexicon.nouns));
        }
        self.full_stop();
    }

    /// A first word of one token by the piece's number. Sentences mostly begin
    /// with one of a few words, so pieces after a shared one would share a word
    /// or two more, and the shared length would not be the one asked for.
    fn part(&mut self, piece: &Piece) {
        let (_, number) = piece.stream;
        self.word(self.lexicon.numbered(Form::Sentence, number));
    }

    fn word(&mut self, word: Word) {
        if self.left == 0 {
            return;
        }
        if self.left == 1 && self.after_word {
            // The last place is the full stop's.
            return self.full_stop();
        }
        let form = match (self.text.is_empty(), self.open_sentence) {
            (true, _) => Form::Opening,
            (false, true) => Form::Sentence,
            (false, false) => Form::Within,
        };
        let fits = word.cost(form) <= self.left;
        let word = if fits { word } else { self.lexicon.filler(form, self.left) };
        self.left -= word.cost(form);
        form.write(word.text, &mut self.text);
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
            self.word(stream.pick(&self.lexicon.conjunctions));
            self.clause(stream);
        }
        self.full_stop();
    }

    fn clause(&mut self, stream: &mut Stream) {
        self.thing(stream);
        if stream.chance(0.25) {
            self.word(stream.pick(&self.lexicon.adverbs));
        }
        self.word(stream.pick(&self.lexicon.verbs));
        if stream.chance(0.6) {
            self.thing(stream);
        }
        while stream.chance(0.4) {
            self.word(stream.pick(&self.lexicon.prepositions));
            self.thing(stream);
        }
    }

    fn thing(&mut self, stream: &mut Stream) {
        self.word(stream.pick(&self.lexicon.determiners));
        while stream.chance(0.35) {
            self.word(stream.pick(&self.lexicon.adjectives));
        }
        self.word(stream.pick(&self.lexicon.nouns));
    }
}
