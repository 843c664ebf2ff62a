//! Prompts by the identity of their tokens, for a model of an engine, which
//! needs no text.

use measure::Tokens;

use super::session::{Answered, Said};
use super::{Batch, PromptRef, PromptSource, Request, Schedule};
use crate::piece::Piece;
use crate::prompt::{Content, Message, NONCE_TOKENS, Prompt, RunNonce, estimate_tokens};
use crate::stretch::Stretch;
use crate::text::Nonce;

impl Schedule {
    /// The tokens of a request's whole prompt by where they come from, so that
    /// prompts that begin with the same text begin with the same tokens.
    /// `answered` gives the length of the answer to an earlier request.
    ///
    /// Of written prompts lengths and shared beginnings are exact; messages and
    /// texts of a data set are the same or different as a whole, as long as
    /// their source says or else as long as [`estimate_tokens`] has it. What a
    /// chat template adds is not in it.
    ///
    /// # Panics
    /// As [`Self::prompt`].
    pub fn stretches(
        &self,
        request: &Request,
        nonce: RunNonce,
        answered: &dyn Fn(u32) -> u32,
    ) -> Vec<Stretch> {
        if let Some(mixed) = &self.mixed {
            let (part, index, nonce) = mixed.of(request.index, nonce);
            let own = Request { index, session: index, ..request.clone() };
            return part.stretches(&own, nonce, answered);
        }
        let mut all = Vec::new();
        for said in self.history(request).unwrap_or_default() {
            match said {
                Said::Turn(link) => self.add_own(&link, request.index, nonce, &mut all),
                Said::Answer { to: Answered::Given(index), .. } => {
                    all.push(Stretch::of_answer(index, answered(index)));
                }
                Said::Answer { to: Answered::Scripted(messages), .. } => {
                    all.extend(messages.iter().map(of_message));
                }
            }
        }
        self.add_own(request, request.index, nonce, &mut all);
        all.retain(|stretch| stretch.tokens > 0);
        all
    }

    /// What one request adds, with the nonce of request `carrier`.
    fn add_own(&self, request: &Request, carrier: u32, nonce: RunNonce, all: &mut Vec<Stretch>) {
        let seed = self.spec.seed;
        match request.prompt {
            PromptRef::Written(tokens) if self.spec.batch == Batch::One => {
                if self.adds(request) {
                    let own = Piece::own(request.index, tokens.get());
                    return all.push(Stretch::of_piece(&own, seed, 0));
                }
                let special = self.spec.prompts.lexicon().special();
                all.push(Stretch::of_text("what the tokenizer adds", special));
                let pieces = self.pieces(request, tokens);
                let nonce = self.nonce_of(request, carrier, nonce);
                let mut taken = match (&nonce, pieces.first()) {
                    (Some(nonce), Some(first)) => {
                        let tokens = NONCE_TOKENS.min(first.tokens);
                        all.push(of_nonce(nonce, tokens));
                        tokens
                    }
                    _ => 0,
                };
                for piece in &pieces {
                    all.push(Stretch::of_piece(piece, seed, taken));
                    taken = 0;
                }
            }
            PromptRef::Written(_) => {
                // Texts of a batch are embedded each for itself.
                let tokens = request.input_tokens.map_or(0, Tokens::get);
                all.push(Stretch::of_piece(&Piece::own(request.index, tokens), seed, 0));
            }
            PromptRef::Listed(place) => {
                let PromptSource::List { prompts, .. } = &self.spec.prompts else { return };
                let nonce = self.nonce_of(request, carrier, nonce).filter(|_| !self.adds(request));
                all.extend(nonce.map(|nonce| of_nonce(&nonce, NONCE_TOKENS)));
                all.extend(of_prompt(&prompts[place as usize]));
            }
        }
    }
}

fn of_nonce(nonce: &Nonce, tokens: u32) -> Stretch {
    Stretch::of_nonce(nonce.number ^ nonce.stream.clone().bits(), tokens)
}

/// A prompt of a list, its parts in proportion to what they are estimated at
/// where the whole is known.
fn of_prompt(prompt: &Prompt) -> Vec<Stretch> {
    let mut parts: Vec<Stretch> = match &prompt.content {
        Content::Text(text) => vec![Stretch::of_text(text, estimate_tokens(text))],
        Content::Texts(texts) => {
            texts.iter().map(|text| Stretch::of_text(text, estimate_tokens(text))).collect()
        }
        Content::Messages(messages) => messages.iter().map(of_message).collect(),
    };
    let Some(known) = prompt.input_tokens.map(Tokens::get) else { return parts };
    let estimated: u64 = parts.iter().map(|part| u64::from(part.tokens)).sum();
    let mut left = known;
    let last = parts.len().saturating_sub(1);
    for (place, part) in parts.iter_mut().enumerate() {
        let share = u64::from(part.tokens) * u64::from(known) / estimated.max(1);
        part.tokens = if place == last { left } else { (share as u32).min(left) };
        left -= part.tokens;
    }
    parts
}

fn of_message(message: &Message) -> Stretch {
    let tokens = estimate_tokens(&message.content);
    Stretch::of_text(&format!("{}\n{}", message.role, message.content), tokens)
}

#[cfg(test)]
mod tests;
