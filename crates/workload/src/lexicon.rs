//! The words of synthetic prompts and what each costs in tokens: by rule, or
//! as a tokenizer counts them. With the costs known, a prompt of exactly so
//! many tokens is written word by word, without encoding it.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::digest::Digest;
use crate::stream::Stream;
use crate::tokenizer::Tokenizer;
use crate::words;

/// How a word stands in a text. The number is its place in [`Word::costs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// After a space.
    Within,
    /// After a space, with a capital.
    Sentence,
    /// At the very beginning, with a capital.
    Opening,
}

impl Form {
    const ALL: [Self; 3] = [Self::Within, Self::Sentence, Self::Opening];

    /// Adds the word to a text.
    pub(crate) fn write(self, word: &str, text: &mut String) {
        if self != Self::Opening {
            text.push(' ');
        }
        let (first, rest) = word.split_at(1);
        match self {
            Self::Within => text.push_str(first),
            Self::Sentence | Self::Opening => text.push_str(&first.to_ascii_uppercase()),
        }
        text.push_str(rest);
    }

    fn text(self, word: &str) -> String {
        let mut text = String::new();
        self.write(word, &mut text);
        text
    }
}

/// A word and its tokens in each form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: &'static str,
    costs: [u8; 3],
}

impl Word {
    pub(crate) const fn cost(self, form: Form) -> u32 {
        self.costs[form as usize] as u32
    }
}

/// The words that prompts are written from, each with its cost. A full stop
/// and a comma cost one token.
#[derive(Clone, Debug, PartialEq)]
pub struct Lexicon {
    tokenizer: String,
    special: u32,
    pub(crate) determiners: Vec<Word>,
    pub(crate) adjectives: Vec<Word>,
    pub(crate) nouns: Vec<Word>,
    pub(crate) verbs: Vec<Word>,
    pub(crate) adverbs: Vec<Word>,
    pub(crate) prepositions: Vec<Word>,
    pub(crate) conjunctions: Vec<Word>,
    /// For each form, words of one token: what fills the last places when the
    /// word drawn is too long for them.
    fillers: [Vec<Word>; 3],
}

/// Why a tokenizer makes no exact lengths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LexiconError {
    /// Tokens of neighbours merge, or marks are more than one token.
    #[error(
        "the tokenizer {0} joins tokens across the borders of words, so no exact length can be \
         written with it; leave it out, and lengths are estimates"
    )]
    Borders(String),
    /// Few words come back as they were.
    #[error(
        "the tokenizer {tokenizer} keeps {stable} of {of} English words apart and whole, too few \
         to write prompts from; leave it out, and lengths are estimates"
    )]
    FewWords {
        /// Its name.
        tokenizer: String,
        /// Usable words.
        stable: usize,
        /// Words tried.
        of: usize,
    },
    /// Nothing is there to fill the last token.
    #[error(
        "the tokenizer {0} has no word of one token, so not every length can be written; leave it \
         out, and lengths are estimates"
    )]
    NoFiller(String),
}

static BY_WORDS: LazyLock<Lexicon> =
    LazyLock::new(|| Lexicon::of("words and marks", |_| Some([1; 3])));

/// A text around the piece that is looked at: what is left of it and right of
/// it must keep its tokens.
const LEFT: &str = "The time";
const RIGHT: &str = " was the";

/// Orders of all words in which borders are tried.
const ROUNDS: u64 = 4;

impl Lexicon {
    /// Each word and each mark counts as one: the estimate.
    pub(crate) fn by_words() -> &'static Self {
        &BY_WORDS
    }

    /// The costs under a tokenizer. Proven once, so that prompts need no
    /// encoding: a word is taken when its tokens are the same whatever stands
    /// beside it and come back from their own text, and then texts of all
    /// words in several orders must cost what their words do.
    pub fn proven(tokenizer: &dyn Tokenizer) -> Result<Self, LexiconError> {
        let name = || tokenizer.name().to_owned();
        let probe = Probe::new(tokenizer).ok_or_else(|| LexiconError::Borders(name()))?;
        let marks = [",", "."].map(|mark| (mark.to_owned(), Form::Within));
        if probe.tokens(&marks) != [Some(1); 2] {
            return Err(LexiconError::Borders(name()));
        }
        let costs = probe.costs();
        let lexicon = Self::of(tokenizer.name(), |word| costs.get(word).copied().flatten());
        let lists = lexicon.lists();
        let of = words::ALL.iter().map(|list| list.len()).sum();
        let stable = lists.iter().map(|list| list.len()).sum();
        if lists.iter().zip(words::ALL).any(|(kept, list)| kept.len() * 2 < list.len()) {
            return Err(LexiconError::FewWords { tokenizer: name(), stable, of });
        }
        if lexicon.fillers.iter().any(Vec::is_empty) {
            return Err(LexiconError::NoFiller(name()));
        }
        if !lexicon.costs_add_up(tokenizer) {
            return Err(LexiconError::Borders(name()));
        }
        Ok(lexicon)
    }

    fn of(tokenizer: &str, costs: impl Fn(&str) -> Option<[u8; 3]>) -> Self {
        let costed = |list: &[&'static str]| -> Vec<Word> {
            let words = list.iter().map(|&text| Some(Word { text, costs: costs(text)? }));
            words.flatten().collect()
        };
        let mut lexicon = Self {
            tokenizer: tokenizer.to_owned(),
            special: 0,
            determiners: costed(words::DETERMINERS),
            adjectives: costed(words::ADJECTIVES),
            nouns: costed(words::NOUNS),
            verbs: costed(words::VERBS),
            adverbs: costed(words::ADVERBS),
            prepositions: costed(words::PREPOSITIONS),
            conjunctions: costed(words::CONJUNCTIONS),
            fillers: [const { Vec::new() }; 3],
        };
        lexicon.fillers = Form::ALL.map(|form| {
            let words = lexicon.lists().into_iter().flatten().copied();
            words.filter(|word| word.cost(form) == 1).collect()
        });
        lexicon
    }

    /// In the order of [`words::ALL`].
    fn lists(&self) -> [&Vec<Word>; 7] {
        [
            &self.determiners,
            &self.adjectives,
            &self.nouns,
            &self.verbs,
            &self.adverbs,
            &self.prepositions,
            &self.conjunctions,
        ]
    }

    /// The tokenizer's name.
    pub fn tokenizer(&self) -> &str {
        &self.tokenizer
    }

    /// The same words for an API that puts so many special tokens around a
    /// prompt by itself, as a beginning-of-sequence mark is: a prompt's length
    /// holds them, so its text is that much shorter.
    #[must_use]
    pub fn with_special(self, special: u32) -> Self {
        Self { special, ..self }
    }

    /// The number of those tokens.
    pub const fn special(&self) -> u32 {
        self.special
    }

    /// A word of one token in place of one that is too long; which one depends
    /// on the place, so that ends of prompts differ.
    pub(crate) fn filler(&self, form: Form, place: u32) -> Word {
        self.numbered(form, u64::from(place))
    }

    /// A word of one token for a number; numbers in a row have different ones.
    pub(crate) fn numbered(&self, form: Form, number: u64) -> Word {
        let fillers = &self.fillers[form as usize];
        fillers[(number % fillers.len() as u64) as usize]
    }

    /// True when texts of all words, each round in an order of its own and with
    /// marks between, have the tokens of their parts together.
    fn costs_add_up(&self, tokenizer: &dyn Tokenizer) -> bool {
        let mut texts = Vec::new();
        let mut costs = Vec::new();
        for round in 0..ROUNDS {
            let mut words: Vec<Word> = self.lists().into_iter().flatten().copied().collect();
            Stream::numbered(0, "lexicon", round).shuffle(&mut words);
            for words in words.chunks(64) {
                let (text, cost) = Self::sample(words);
                texts.push(text);
                costs.push(cost);
            }
        }
        let counted = tokenizer.encode_all(&texts);
        counted.len() == costs.len()
            && counted.iter().zip(costs).all(|(ids, cost)| ids.len() == cost as usize)
    }

    /// A text of these words with marks between, and what its parts cost.
    fn sample(words: &[Word]) -> (String, u32) {
        let (mut text, mut cost) = (String::new(), 0);
        let mut form = Form::Opening;
        for (place, word) in words.iter().enumerate() {
            form.write(word.text, &mut text);
            cost += word.cost(form);
            let mark = match place % 5 {
                1 => ",",
                3 => ".",
                _ => "",
            };
            text.push_str(mark);
            cost += mark.len() as u32;
            // Capitals follow words without a mark too, where a piece ends
            // in the middle of a sentence.
            let opens = mark == "." || place % 7 == 6;
            form = if opens { Form::Sentence } else { Form::Within };
        }
        (text, cost)
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        digest.text(&self.tokenizer);
        for list in self.lists() {
            digest.number(list.len() as u64);
            for word in list {
                digest.text(word.text).raw(&word.costs);
            }
        }
        // Only where there are any, so that lexicons without keep their digest.
        if self.special > 0 {
            digest.number(u64::from(self.special));
        }
    }
}

/// Looks at one piece inside a text.
struct Probe<'a> {
    tokenizer: &'a dyn Tokenizer,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl<'a> Probe<'a> {
    /// None when already the text around pieces does not hold together.
    fn new(tokenizer: &'a dyn Tokenizer) -> Option<Self> {
        let left = tokenizer.encode(LEFT);
        let both = tokenizer.encode(&format!("{LEFT}{RIGHT}"));
        let right = both.strip_prefix(left.as_slice()).filter(|right| !right.is_empty())?.to_vec();
        Some(Self { tokenizer, left, right })
    }

    /// What each word costs in its three forms; `None` for one that is not
    /// stable in one of them.
    fn costs(&self) -> HashMap<&'static str, Option<[u8; 3]>> {
        let words: Vec<&'static str> = words::ALL.iter().copied().flatten().copied().collect();
        let pieces: Vec<(String, Form)> =
            words.iter().flat_map(|word| Form::ALL.map(|form| (form.text(word), form))).collect();
        let tokens = self.tokens(&pieces);
        let (forms, _) = tokens.as_chunks::<3>();
        let all = |forms: &[Option<u8>; 3]| Some([forms[0]?, forms[1]?, forms[2]?]);
        words.into_iter().zip(forms.iter().map(all)).collect()
    }

    /// Tokens of each piece between what is left and right of it, when those
    /// keep theirs and the whole comes back from its own text. A tokenizer
    /// gives the same text the same ids, so where the text comes back its ids
    /// do.
    fn tokens(&self, pieces: &[(String, Form)]) -> Vec<Option<u8>> {
        let text = |(piece, form): &(String, Form)| match form {
            Form::Opening => format!("{piece}{RIGHT}"),
            Form::Within | Form::Sentence => format!("{LEFT}{piece}{RIGHT}"),
        };
        let texts: Vec<String> = pieces.iter().map(text).collect();
        let wholes = self.tokenizer.encode_all(&texts);
        let back = self.tokenizer.decode_all(&wholes);
        let cost = |place: usize| {
            let (whole, back) = (wholes.get(place)?, back.get(place)?);
            let left = if pieces[place].1 == Form::Opening { &[] } else { self.left.as_slice() };
            let middle = whole.strip_prefix(left)?.strip_suffix(self.right.as_slice())?;
            let same = *back == texts[place] || self.tokenizer.encode(back) == *whole;
            if middle.is_empty() || !same {
                return None;
            }
            u8::try_from(middle.len()).ok()
        };
        (0..pieces.len()).map(cost).collect()
    }
}

#[cfg(test)]
mod tests;
