//! Prompts are held against the tokenizer that their lengths are said to be
//! of, before any is sent.

use measure::Tokens;

use super::{OutputLength, Plan, PromptRef, PromptSource, Schedule};
use crate::batch::Batch;
use crate::lexicon::Lexicon;
use crate::piece::Piece;
use crate::prompt::{self, Content, Prompt, RunNonce};
use crate::tokenizer::Tokenizer;

/// One prompt in so many is encoded, and no fewer than [`LEAST_CHECKED`].
const CHECKED_ONE_IN: u32 = 100;

/// Prompts that are encoded before a run that has so many.
const LEAST_CHECKED: u32 = 100;

/// A prompt that has not the length asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the {what} of request {index}{} has {found} tokens by {tokenizer} and not {asked}: this \
     tokenizer counts a text otherwise than its words; leave out --tokenizer, and lengths are \
     estimates",
    part.as_ref().map(|part| format!(" of {part}")).unwrap_or_default()
)]
pub struct WrongLength {
    /// What was encoded: the prompt, or the prefix that it begins with.
    pub what: &'static str,
    /// The request; of a mix, its number in its part.
    pub index: u32,
    /// The part of a mix.
    pub part: Option<String>,
    /// Tokens asked for.
    pub asked: u32,
    /// Tokens that the text has.
    pub found: u32,
    /// The tokenizer's name.
    pub tokenizer: String,
}

/// Prompts that are held in memory at a time for a check.
const TOGETHER: usize = 64;

/// What a whole prompt is called in a message.
const PROMPT: &str = "prompt";

/// A text that was counted.
struct Counted {
    what: &'static str,
    index: u32,
    asked: u32,
    found: u32,
}

/// What two tokenizers count in the same texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Texts.
    pub texts: u32,
    /// Tokens by the tokenizer that lengths are exact by.
    pub asked: u64,
    /// Tokens by the other.
    pub found: u64,
}

/// Requests that a model's context cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beyond {
    /// How many.
    pub requests: u32,
    /// Of so many that were looked at.
    pub of: u32,
    /// Tokens of the prompt of the longest one.
    pub input: u32,
    /// Its limit of output tokens.
    pub output: u32,
}

/// Requests of an endless plan whose lengths are looked at.
const LOOKED_AT: u32 = 10_000;

impl Schedule {
    /// Encodes a hundredth of the prompts, at least 100 or all of them, evenly
    /// spread, and the prefixes that they begin with, and gives the number of
    /// prompts. Those whose lengths are not said to be exact are not looked at.
    pub fn check_lengths(
        &self,
        tokenizer: &dyn Tokenizer,
        nonce: RunNonce,
    ) -> Result<u32, WrongLength> {
        if let Some(mixed) = &self.mixed {
            let parts = mixed.parts().iter();
            let checked = parts.map(|(name, part)| {
                let wrong = |wrong| WrongLength { part: Some(name.clone()), ..wrong };
                part.check_lengths(tokenizer, nonce).map_err(wrong)
            });
            return checked.sum();
        }
        if self.spec.prompts.exact_lexicon().is_none() {
            return Ok(0);
        }
        // An endless plan is looked at from its beginning.
        let count = self.count().unwrap_or(LEAST_CHECKED);
        let checked = count.div_ceil(CHECKED_ONE_IN).max(LEAST_CHECKED).min(count);
        self.each_counted(tokenizer, nonce, checked, |Counted { what, index, asked, found }| {
            let tokenizer = tokenizer.name().to_owned();
            let wrong = WrongLength { what, index, part: None, asked, found, tokenizer };
            if found == asked { Ok(()) } else { Err(wrong) }
        })?;
        Ok(checked)
    }

    /// What another tokenizer counts in a few of the prompts, evenly spread,
    /// whose lengths are said to be exact; of a mix, in the prompts of its
    /// first part that has such.
    pub fn counts(&self, other: &dyn Tokenizer, nonce: RunNonce, texts: u32) -> Counts {
        if let Some(mixed) = &self.mixed {
            let parts = mixed.parts().iter().map(|(_, part)| part.counts(other, nonce, texts));
            return parts.into_iter().find(|counts| counts.texts > 0).unwrap_or_default();
        }
        let mut counts = Counts::default();
        let texts = texts.min(self.count().unwrap_or(texts));
        let Ok(()) =
            self.each_counted(other, nonce, texts, |Counted { what, asked, found, .. }| {
                if what == PROMPT {
                    counts.texts += 1;
                    counts.asked += u64::from(asked);
                    counts.found += u64::from(found);
                }
                Ok::<(), std::convert::Infallible>(())
            });
        counts
    }

    /// Counts the texts of so many requests, evenly spread.
    fn each_counted<E>(
        &self,
        tokenizer: &dyn Tokenizer,
        nonce: RunNonce,
        checked: u32,
        mut look: impl FnMut(Counted) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(lexicon) = self.spec.prompts.exact_lexicon() else { return Ok(()) };
        let count = self.count().unwrap_or(checked);
        let places = (0..checked)
            .map(|k| (u64::from(k) * u64::from(count) / u64::from(checked)) as u32)
            .collect::<Vec<_>>();
        for places in places.chunks(TOGETHER) {
            let texts = places.iter().flat_map(|&index| {
                let texts = self.texts_of(index, lexicon, nonce).into_iter();
                texts.map(move |(what, asked, text)| {
                    (Counted { what, index, asked, found: 0 }, text)
                })
            });
            let (counted, texts): (Vec<Counted>, Vec<String>) = texts.unzip();
            for (counted, ids) in counted.into_iter().zip(tokenizer.encode_all(&texts)) {
                let found = u32::try_from(ids.len()).unwrap_or(u32::MAX);
                look(Counted { found, ..counted })?;
            }
        }
        Ok(())
    }

    /// The texts that are written for request `index`, one or a batch, and the
    /// prefix that one begins with, where it has one: what it is, the tokens that it was asked
    /// to have, and it.
    fn texts_of(
        &self,
        index: u32,
        lexicon: &Lexicon,
        nonce: RunNonce,
    ) -> Vec<(&'static str, u32, String)> {
        let Some(request) = self.request(index) else { return Vec::new() };
        let PromptRef::Written(asked) = request.prompt else { return Vec::new() };
        let own = |tokens: Tokens| tokens.get() - lexicon.special();
        if self.spec.batch != Batch::One {
            let texts = self.batch_of(&request, nonce).into_iter();
            return texts.map(|(tokens, text)| (PROMPT, own(tokens), text)).collect();
        }
        // What a server adds, it adds to a whole prompt, not to a later turn.
        let adds = self.adds(&request);
        let asked = if adds { asked.get() } else { own(asked) };
        let mut texts = Vec::new();
        let mut add = |what, asked, prompt: Prompt| {
            if let Content::Text(text) = prompt.content {
                texts.push((what, asked, text));
            }
        };
        add(PROMPT, asked, self.text_of(&request, index, nonce));
        let leading = if adds { Vec::new() } else { self.leading(&request) };
        let prefix: u32 = leading.iter().map(|piece| piece.tokens).sum();
        if (1..asked).contains(&prefix) {
            let nonce = self.nonce_of(&request, index, nonce);
            let pieces = Piece::of_prompt(&leading, index, prefix);
            add("prefix", prefix, prompt::written(self.spec.seed, &pieces, lexicon, nonce));
        }
        texts
    }

    /// Tokens of the longest prompt that can be drawn and of its answer, where
    /// that can be told without drawing them.
    fn longest(&self) -> Option<u64> {
        let alone = self.mixed.is_none() && self.turns.is_none() && self.spec.batch == Batch::One;
        let (PromptSource::Synthetic { input } | PromptSource::Exact { input, .. }, true) =
            (&self.spec.prompts, alone && !matches!(self.plan, Plan::Listed(..)))
        else {
            return None;
        };
        let OutputLength::Drawn(output) = &self.spec.output else { return None };
        let own = input.range().1.max(self.spec.prompts.least());
        let input = self.spec.prefixes.and_own(own);
        Some(u64::from(input.get()) + u64::from(output.range().1.get()))
    }

    /// The requests whose prompt and answer together are longer than a context
    /// of so many tokens; of an endless plan the first 10 000 are looked at.
    /// Prompts of unknown length are none of them. `None` when all fit.
    pub fn beyond(&self, context: u32) -> Option<Beyond> {
        if self.longest().is_some_and(|longest| longest <= u64::from(context)) {
            return None;
        }
        let of = self.count().unwrap_or(LOOKED_AT);
        let mut beyond: Option<Beyond> = None;
        for request in (0..of).filter_map(|index| self.request(index)) {
            let Some(input) = request.input_tokens.map(Tokens::get) else { continue };
            let output = request.max_output_tokens.map_or(0, Tokens::get);
            let whole = |input: u32, output: u32| u64::from(input) + u64::from(output);
            if whole(input, output) <= u64::from(context) {
                continue;
            }
            let so_far = beyond.get_or_insert(Beyond { requests: 0, of, input, output });
            so_far.requests += 1;
            if whole(input, output) > whole(so_far.input, so_far.output) {
                (so_far.input, so_far.output) = (input, output);
            }
        }
        beyond
    }
}
