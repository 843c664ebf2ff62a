//! Keys and other secrets: known to the sender, and nowhere else.

use std::fmt;

/// What stands where a secret stood.
pub const REDACTED: &str = "[redacted]";

/// Secrets shorter than this are not searched for: a two-letter "key" would
/// black out words of innocent texts.
const SHORTEST: usize = 6;

/// The texts that must not be stored or printed. Its own debug form is empty.
#[derive(Clone, Default)]
pub struct Secrets {
    texts: Vec<String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(…)")
    }
}

impl Secrets {
    /// Adds a secret, and what of it may be echoed without its scheme word:
    /// of `Bearer x` also `x`.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        let bare = secret.split_once(' ').map_or(secret, |(_, rest)| rest.trim());
        for text in [secret, bare] {
            if text.len() >= SHORTEST && !self.texts.iter().any(|known| known == text) {
                self.texts.push(text.to_owned());
            }
        }
        // The longer first, so that no part of one is left behind.
        self.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// Replaces every secret in `text`.
    pub fn redact(&self, text: &mut String) {
        for secret in &self.texts {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), REDACTED);
            }
        }
    }

    /// The same for a text that is not ours.
    pub fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.redact(&mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_with_and_without_its_scheme() {
        let mut secrets = Secrets::default();
        secrets.add("Bearer sk-canary-1");
        let echoed = "bad key sk-canary-1 in 'Bearer sk-canary-1'";
        assert_eq!(secrets.redacted(echoed), "bad key [redacted] in '[redacted]'");
        assert_eq!(format!("{secrets:?}"), "Secrets(…)");
    }
}
