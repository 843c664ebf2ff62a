//! Prompts are held against the tokenizer that their lengths are said to be
//! of, before any is sent.

use super::{PromptRef, Schedule};
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
        let Some(lexicon) = self.spec.prompts.exact_lexicon() else { return Ok(0) };
        // An endless plan is looked at from its beginning.
        let count = self.count().unwrap_or(LEAST_CHECKED);
        let checked = count.div_ceil(CHECKED_ONE_IN).max(LEAST_CHECKED).min(count);
        for k in 0..checked {
            let index = (u64::from(k) * u64::from(count) / u64::from(checked)) as u32;
            let Some(request) = self.request(index) else { continue };
            let PromptRef::Written(asked) = request.prompt else { continue };
            let asked = asked.get() - lexicon.special();
            let leading = self.leading(&request);
            let prefix: u32 = leading.iter().map(|piece| piece.tokens).sum();
            let check = |what, prompt: Prompt, asked| {
                let Content::Text(text) = prompt.content else { return Ok(()) };
                let found = tokenizer.count(&text);
                let tokenizer = tokenizer.name().to_owned();
                let wrong = WrongLength { what, index, part: None, asked, found, tokenizer };
                if found == asked { Ok(()) } else { Err(wrong) }
            };
            check("prompt", self.text_of(&request, nonce), asked)?;
            if (1..asked).contains(&prefix) {
                let nonce = self.nonce_of(&request, nonce);
                let pieces = Piece::of_prompt(&leading, index, prefix);
                let prompt = prompt::written(self.spec.seed, &pieces, lexicon, nonce);
                check("prefix", prompt, prefix)?;
            }
        }
        Ok(checked)
    }
}
