//! How many tokens: of input, or of output.

use std::fmt;
use std::str::FromStr;

use measure::Tokens;

use crate::digest::Digest;
use crate::stream::Stream;

/// The largest length that can be asked for: above any context window, and
/// small enough that one prompt always fits in memory.
pub const MAX_TOKENS: u32 = 1 << 24;

/// A distribution of lengths in tokens. Every draw is at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    /// Always the same.
    Fixed(Tokens),
    /// Every integer in ⌊mean·(1 − spread)⌋ … ⌈mean·(1 + spread)⌉ equally
    /// likely, both ends included, as vLLM's `random` data set draws them.
    Uniform {
        /// The middle.
        mean: Tokens,
        /// A fraction of the mean, in [0, 1).
        spread: f64,
    },
}

/// Why a length was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LengthError {
    /// The text is no length.
    #[error("`{0}` is not a length in tokens; write a whole number such as 512, or 512±25%")]
    NotALength(String),
    /// A length below 1.
    #[error("a length must be at least 1 token")]
    Zero,
    /// Over [`MAX_TOKENS`].
    #[error("a length of {0} tokens is over the limit of {MAX_TOKENS}")]
    TooLarge(u64),
    /// A spread outside [0, 1).
    #[error("a spread must be at least 0 % and below 100 %; got {0} %")]
    Spread(f64),
}

impl Lengths {
    /// Always `n` tokens.
    pub fn fixed(n: u32) -> Result<Self, LengthError> {
        checked(u64::from(n)).map(Self::Fixed)
    }

    /// Uniform around `mean`; `spread` is a fraction.
    pub fn uniform(mean: u32, spread: f64) -> Result<Self, LengthError> {
        let mean = checked(u64::from(mean))?;
        if !(0.0..1.0).contains(&spread) {
            return Err(LengthError::Spread(spread * 100.0));
        }
        Ok(Self::Uniform { mean, spread })
    }

    /// The smallest and largest length that can be drawn.
    pub fn range(self) -> (Tokens, Tokens) {
        match self {
            Self::Fixed(n) => (n, n),
            Self::Uniform { mean, spread } => {
                let mean = f64::from(mean.get());
                // A spread such as 0.1 is not exact in binary; without the
                // slack 10·(1 + 0.1) would be rounded up to 12.
                let low = (mean * (1.0 - spread) + 1e-6).floor().max(1.0);
                let high = (mean * (1.0 + spread) - 1e-6).ceil().max(low);
                (Tokens::new(low as u32), Tokens::new(high as u32))
            }
        }
    }

    /// One draw. A fixed length takes nothing from the stream.
    pub fn draw(self, stream: &mut Stream) -> Tokens {
        let (low, high) = self.range();
        if low == high {
            return low;
        }
        let width = u64::from(high.get() - low.get()) + 1;
        Tokens::new(low.get() + stream.below(width) as u32)
    }

    /// The distribution in words: `512`, or `512 ± 25 %`. [`FromStr`] reads it
    /// back.
    pub fn describe(self) -> String {
        match self {
            Self::Fixed(n) => n.get().to_string(),
            Self::Uniform { mean, spread } => {
                format!("{} ± {} %", mean.get(), percent(spread))
            }
        }
    }

    pub(crate) fn digest(self, digest: &mut Digest) {
        match self {
            Self::Fixed(n) => digest.raw(b"f").number(u64::from(n.get())),
            Self::Uniform { mean, spread } => {
                digest.raw(b"u").number(u64::from(mean.get())).float(spread)
            }
        };
    }
}

/// The spread as a percentage, without the noise of binary fractions.
fn percent(spread: f64) -> f64 {
    (spread * 1e8).round() / 1e6
}

fn checked(n: u64) -> Result<Tokens, LengthError> {
    match u32::try_from(n) {
        Ok(0) => Err(LengthError::Zero),
        Ok(n) if n <= MAX_TOKENS => Ok(Tokens::new(n)),
        _ => Err(LengthError::TooLarge(n)),
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

impl FromStr for Lengths {
    type Err = LengthError;

    /// Reads `512`, `512±25%`, `512 ± 25 %` and `512+-25%`.
    fn from_str(text: &str) -> Result<Self, LengthError> {
        let not_a_length = || LengthError::NotALength(text.to_owned());
        let parts = text.split_once('±').or_else(|| text.split_once("+-"));
        let whole = parts.map_or(text, |(mean, _)| mean).trim();
        if whole.is_empty() || !whole.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(not_a_length());
        }
        // Digits only, so the one way to fail is to be too large for a u64.
        let mean = checked(whole.parse().unwrap_or(u64::MAX))?;
        let Some((_, spread)) = parts else { return Ok(Self::Fixed(mean)) };
        let spread = spread.trim().strip_suffix('%').ok_or_else(not_a_length)?;
        let spread: f64 = spread.trim().parse().map_err(|_| not_a_length())?;
        Self::uniform(mean.get(), spread / 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_a_number_and_a_spread() {
        assert_eq!("512".parse(), Lengths::fixed(512));
        assert_eq!(" 4096 ".parse(), Lengths::fixed(4096));
        for text in ["512±25%", "512 ± 25 %", "512+-25%"] {
            assert_eq!(text.parse(), Lengths::uniform(512, 0.25), "{text}");
        }
        assert_eq!(Lengths::fixed(512).unwrap().describe(), "512");
        assert_eq!(Lengths::uniform(512, 0.25).unwrap().describe(), "512 ± 25 %");
    }

    #[test]
    fn refuses_what_is_no_length() {
        for text in ["", "-3", "1e2", "12.5", "abc", "512±", "512±x%", "512±25", "+5", "±5%"] {
            assert_eq!(
                text.parse::<Lengths>(),
                Err(LengthError::NotALength(text.to_owned())),
                "{text}"
            );
        }
        assert_eq!("0".parse::<Lengths>(), Err(LengthError::Zero));
        assert_eq!("16777217".parse::<Lengths>(), Err(LengthError::TooLarge(16_777_217)));
        assert_eq!(
            "99999999999999999999999".parse::<Lengths>(),
            Err(LengthError::TooLarge(u64::MAX))
        );
        assert_eq!("512±100%".parse::<Lengths>(), Err(LengthError::Spread(100.0)));
        assert!("512±NaN%".parse::<Lengths>().is_err());
    }

    #[test]
    fn both_ends_of_a_uniform_length_are_drawn() {
        let lengths = Lengths::uniform(8, 0.25).unwrap();
        assert_eq!(lengths.range(), (Tokens::new(6), Tokens::new(10)));
        let mut stream = Stream::new(1, "test");
        let mut seen = [0u32; 11];
        for _ in 0..5_000 {
            seen[lengths.draw(&mut stream).get() as usize] += 1;
        }
        assert_eq!(seen[..6], [0; 6]);
        // 1000 each expected; 4.5 standard deviations of a binomial are 127.
        assert!(seen[6..].iter().all(|n| (873..1127).contains(n)), "{seen:?}");
    }

    #[test]
    fn a_short_length_never_reaches_zero() {
        assert_eq!(Lengths::uniform(1, 0.9).unwrap().range(), (Tokens::new(1), Tokens::new(2)));
        assert_eq!(Lengths::uniform(10, 0.1).unwrap().range(), (Tokens::new(9), Tokens::new(11)));
    }

    proptest! {
        #[test]
        fn what_is_described_is_read_back(mean in 1..=MAX_TOKENS, per_mille in 0u32..1000) {
            let lengths = Lengths::uniform(mean, f64::from(per_mille) / 1000.0).unwrap();
            let again: Lengths = lengths.describe().parse().unwrap();
            prop_assert_eq!(again.range(), lengths.range());
        }

        #[test]
        fn draws_stay_in_range(mean in 1..=MAX_TOKENS, spread in 0.0..0.999f64, seed: u64) {
            let lengths = Lengths::uniform(mean, spread).unwrap();
            let (low, high) = lengths.range();
            let drawn = lengths.draw(&mut Stream::new(seed, "test"));
            prop_assert!(low <= drawn && drawn <= high);
            prop_assert!(low >= Tokens::new(1));
        }

        #[test]
        fn any_text_is_a_length_or_an_error(text in ".{0,20}") {
            let _ = text.parse::<Lengths>();
        }
    }
}
