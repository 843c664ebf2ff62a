//! How many tokens: of input, or of output.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use measure::Tokens;

use crate::digest::Digest;
use crate::stream::Stream;

mod bell;
mod histogram;

pub use bell::Bell;
pub use histogram::{Bucket, Histogram, MAX_BUCKETS};

/// The largest length that can be asked for: above any context window, and
/// small enough that one prompt always fits in memory.
pub const MAX_TOKENS: u32 = 1 << 24;

/// A distribution of lengths in tokens. Every draw is at least 1.
#[derive(Clone, Debug, PartialEq)]
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
    /// Normal or lognormal, rounded, inside bounds.
    Bell(Bell),
    /// Lengths and ranges of lengths with weights.
    Histogram(Arc<Histogram>),
}

/// Why a length was not taken.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LengthError {
    /// The text is no length.
    #[error(
        "`{0}` is not a length in tokens; write a whole number such as 512, 512±25%, \
         normal:mean=512,std=64, lognormal:median=512,sigma=0.6, or lengths with weights such as \
         128:0.5,512:0.3,2048:0.2"
    )]
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
    /// A parameter of a distribution that it does not have, or twice.
    #[error("`{item}` is not taken here; {kind} has {known}, each once")]
    Parameter {
        /// What was written.
        item: String,
        /// The distribution.
        kind: &'static str,
        /// Its parameters.
        known: &'static str,
    },
    /// A parameter is missing.
    #[error("{kind} needs {known}")]
    Incomplete {
        /// The distribution.
        kind: &'static str,
        /// What it needs.
        known: &'static str,
    },
    /// A centre or a width that is none.
    #[error("{name}={value} must be {rule}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        rule: &'static str,
    },
    /// Bounds that leave the middle out: hardly a draw would fall between.
    #[error("the middle, {centre}, must lie between min={min} and max={max}")]
    Bounds {
        /// Mean or median.
        centre: f64,
        /// The lower bound.
        min: u32,
        /// The upper bound.
        max: u32,
    },
    /// An entry of a histogram that is none.
    #[error(
        "`{0}` is not a length with its weight; write LENGTH:WEIGHT or FROM-TO:WEIGHT, as in \
         128:0.5 or 128-255:3"
    )]
    Bucket(String),
    /// A weight that is no weight.
    #[error("the weight of {0} must be a number of at least 0, and one weight must be above 0")]
    Weight(String),
    /// Nothing to draw from.
    #[error("the histogram has no entry; write LENGTH:WEIGHT, as in 128:0.5")]
    Empty,
    /// More entries than [`MAX_BUCKETS`].
    #[error("a histogram may have at most {MAX_BUCKETS} entries")]
    TooManyBuckets,
    /// A histogram's file was named and cannot be opened here.
    #[error("`{0}` names a file, and only a command line can: write the entries themselves")]
    File(String),
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

    /// By the weights of a histogram's entries.
    pub fn histogram(buckets: Vec<Bucket>) -> Result<Self, LengthError> {
        Ok(Self::Histogram(Arc::new(Histogram::new(buckets)?)))
    }

    /// The file that the text names, as `histogram:FILE` does. What holds a
    /// colon names the entries themselves.
    pub fn file_of(text: &str) -> Option<&str> {
        let rest = text.trim().strip_prefix(HISTOGRAM)?.trim();
        (!rest.is_empty() && !rest.contains(':')).then_some(rest)
    }

    /// The smallest and largest length that can be drawn.
    pub fn range(&self) -> (Tokens, Tokens) {
        match self {
            Self::Fixed(n) => (*n, *n),
            Self::Uniform { mean, spread } => {
                let mean = f64::from(mean.get());
                // A spread such as 0.1 is not exact in binary; without the
                // slack 10·(1 + 0.1) would be rounded up to 12.
                let low = (mean * (1.0 - spread) + 1e-6).floor().max(1.0);
                let high = (mean * (1.0 + spread) - 1e-6).ceil().max(low);
                (Tokens::new(low as u32), Tokens::new(high as u32))
            }
            Self::Bell(bell) => bell.range(),
            Self::Histogram(histogram) => histogram.range(),
        }
    }

    /// The mean of the distribution; of a bell-shaped one before its bounds.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(n) => f64::from(n.get()),
            Self::Uniform { .. } => {
                let (low, high) = self.range();
                f64::midpoint(f64::from(low.get()), f64::from(high.get()))
            }
            Self::Bell(bell) => bell.mean(),
            Self::Histogram(histogram) => histogram.mean(),
        }
    }

    /// One draw. A fixed length takes nothing from the stream.
    pub fn draw(&self, stream: &mut Stream) -> Tokens {
        match self {
            Self::Fixed(n) => *n,
            Self::Uniform { .. } => {
                let (low, high) = self.range();
                between(low.get(), high.get(), stream)
            }
            Self::Bell(bell) => bell.draw(stream),
            Self::Histogram(histogram) => histogram.draw(stream),
        }
    }

    /// The draw of one stream among the numbered ones. A fixed length needs no
    /// stream.
    pub(crate) fn numbered(&self, seed: u64, name: &str, number: u64) -> Tokens {
        match self {
            Self::Fixed(n) => *n,
            _ => self.draw(&mut Stream::numbered(seed, name, number)),
        }
    }

    /// The distribution in words: `512`, `512 ± 25 %`, or as [`FromStr`] takes
    /// it, which reads each of them back. Of a histogram with many entries it
    /// says how many.
    pub fn describe(&self) -> String {
        match self {
            Self::Fixed(n) => n.get().to_string(),
            Self::Uniform { mean, spread } => {
                format!("{} ± {} %", mean.get(), percent(*spread))
            }
            Self::Bell(bell) => bell.describe(),
            Self::Histogram(histogram) => histogram.describe(),
        }
    }

    pub(crate) fn digest(&self, digest: &mut Digest) {
        match self {
            Self::Fixed(n) => {
                digest.raw(b"f").number(u64::from(n.get()));
            }
            Self::Uniform { mean, spread } => {
                digest.raw(b"u").number(u64::from(mean.get())).float(*spread);
            }
            Self::Bell(bell) => bell.digest(digest),
            Self::Histogram(histogram) => histogram.digest(digest),
        }
    }
}

/// A whole number of `low` to `high`, every one equally likely; one that is
/// certain takes nothing from the stream.
fn between(low: u32, high: u32, stream: &mut Stream) -> Tokens {
    if low == high {
        return Tokens::new(low);
    }
    let width = u64::from(high - low) + 1;
    Tokens::new(low + stream.below(width) as u32)
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

/// A length written in digits; `None` when it is not so written.
fn whole(text: &str) -> Option<Result<Tokens, LengthError>> {
    let text = text.trim();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits only, so the one way to fail is to be too large for a u64.
    digits.then(|| checked(text.parse().unwrap_or(u64::MAX)))
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// What stands before the entries of a histogram; they are known without it.
const HISTOGRAM: &str = "histogram:";

impl FromStr for Lengths {
    type Err = LengthError;

    /// Reads `512`, `512±25%`, `512 ± 25 %`, `512+-25%`,
    /// `normal:mean=512,std=64`, `lognormal:median=512,sigma=0.6`,
    /// `lognormal:mean=512,std=300`, each also with `min=` and `max=`, and
    /// `128:0.5,512-1023:0.5`, also behind `histogram:`.
    fn from_str(text: &str) -> Result<Self, LengthError> {
        let text = text.trim();
        if let Some(bell) = Bell::read(text) {
            return bell.map(Self::Bell);
        }
        if let Some(file) = Self::file_of(text) {
            return Err(LengthError::File(file.to_owned()));
        }
        if text.contains(':') {
            let entries = text.strip_prefix(HISTOGRAM).unwrap_or(text);
            return Self::histogram(histogram::entries(entries)?);
        }
        let not_a_length = || LengthError::NotALength(text.to_owned());
        let parts = text.split_once('±').or_else(|| text.split_once("+-"));
        let mean = parts.map_or(text, |(mean, _)| mean);
        let mean = whole(mean).ok_or_else(not_a_length)??;
        let Some((_, spread)) = parts else { return Ok(Self::Fixed(mean)) };
        let spread = spread.trim().strip_suffix('%').ok_or_else(not_a_length)?;
        let spread: f64 = spread.trim().parse().map_err(|_| not_a_length())?;
        Self::uniform(mean.get(), spread / 100.0)
    }
}

#[cfg(test)]
mod tests;
