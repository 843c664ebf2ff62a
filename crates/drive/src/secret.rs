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
    /// Adds a secret, and what of it may be echoed by itself: of `Bearer x`
    /// also `x`, of a cookie `a=x; b=y` also `x` and `y`, of `x%2Fy` from an
    /// address also `x/y`.
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        let bare = secret.split_once(' ').map_or(secret, |(_, rest)| rest.trim());
        let members = secret.split(';').filter_map(|pair| Some(pair.split_once('=')?.1.trim()));
        let decoded = percent_decoded(secret);
        for text in [secret, bare, &decoded].into_iter().chain(members) {
            if text.len() >= SHORTEST && !self.texts.iter().any(|known| known == text) {
                self.texts.push(text.to_owned());
            }
        }
        // The longer first, so that no part of one is left behind.
        self.texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
    }

    /// Replaces every secret in `text`, and the beginning of one at its end:
    /// messages are cut at a length, and the cut may lie within a secret.
    pub fn redact(&self, text: &mut String) {
        for secret in &self.texts {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), REDACTED);
            }
        }
        let cut = |secret: &String| {
            let mut ends = (SHORTEST..secret.len()).rev();
            ends.find(|&end| secret.get(..end).is_some_and(|head| text.ends_with(head)))
        };
        if let Some(length) = self.texts.iter().filter_map(cut).max() {
            text.truncate(text.len() - length);
            text.push_str(REDACTED);
        }
    }

    /// The same for a text that is not ours.
    pub fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.redact(&mut text);
        text
    }
}

/// A text with its `%XX` read, as servers log the query of an address.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if byte == b'%' => {
                bytes.push(decoded);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_secret_are_secret_too() {
        let mut secrets = Secrets::default();
        secrets.add("sid=canary-1; theme=canary-2");
        secrets.add("canary%2F3%");
        let echoed = "canary-2 canary-1 canary/3% canary%2F3%";
        assert_eq!(secrets.redacted(echoed), [REDACTED; 4].join(" "));
    }

    #[test]
    fn a_secret_that_was_cut_off_is_found_at_the_end() {
        let mut secrets = Secrets::default();
        secrets.add("Bearer canary-äöü");
        for cut in ["canary", "canary-", "canary-ä", "Bearer canary-ä"] {
            assert_eq!(secrets.redacted(&format!("key {cut}")), "key [redacted]");
        }
        assert_eq!(secrets.redacted("canary sings, a cana"), "canary sings, a cana");
    }

    #[test]
    fn a_key_is_found_with_and_without_its_scheme() {
        let mut secrets = Secrets::default();
        secrets.add("Bearer sk-canary-1");
        let echoed = "bad key sk-canary-1 in 'Bearer sk-canary-1'";
        assert_eq!(secrets.redacted(echoed), "bad key [redacted] in '[redacted]'");
        assert_eq!(format!("{secrets:?}"), "Secrets(…)");
    }
}
