//! How long a user of a closed loop pauses between an answer and the next
//! request.

use measure::Span;

use crate::digest::Digest;
use crate::load::{HORIZON, LoadError};
use crate::stream::Stream;

/// A think time, drawn for each request from its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// Always the same.
    Fixed(Span),
    /// Exponential with this mean: most pauses are short, a few are long.
    Exponential {
        /// The mean.
        mean: Span,
    },
    /// Every length between the two equally likely.
    Uniform {
        /// The shortest.
        from: Span,
        /// The longest.
        to: Span,
    },
}

impl From<Span> for Think {
    fn from(span: Span) -> Self {
        Self::Fixed(span)
    }
}

impl Think {
    /// No pause at all.
    pub const NONE: Self = Self::Fixed(Span::ZERO);

    /// Checks every rule about a think time by itself.
    pub fn check(self) -> Result<(), LoadError> {
        let (shortest, longest) = match self {
            Self::Fixed(span) | Self::Exponential { mean: span } => (span, span),
            Self::Uniform { from, to } => (from, to),
        };
        if shortest < Span::ZERO {
            return Err(LoadError::Think(shortest));
        }
        if shortest > longest {
            return Err(LoadError::ThinkOrder { from: shortest, to: longest });
        }
        if longest > HORIZON { Err(LoadError::Horizon) } else { Ok(()) }
    }

    /// One draw. A fixed time takes nothing from the stream.
    pub fn draw(self, stream: &mut Stream) -> Span {
        match self {
            Self::Fixed(span) => span,
            Self::Exponential { mean } => {
                Span::from_s(mean.s() * stream.exponential()).min(HORIZON)
            }
            Self::Uniform { from, to } => {
                let width = (to - from).us() as u64 + 1;
                from + Span::from_us(stream.below(width) as i64)
            }
        }
    }

    /// The time in words: `30.0 ms`, `2.00 s on average (exponential)`.
    pub fn describe(self) -> String {
        match self {
            Self::Fixed(span) => span.to_string(),
            Self::Exponential { mean } => format!("{mean} on average (exponential)"),
            Self::Uniform { from, to } => format!("{from} to {to} (uniform)"),
        }
    }

    pub(crate) fn digest(self, digest: &mut Digest) {
        match self {
            // As it was before there were distributions, so that the digests
            // of old runs still match.
            Self::Fixed(span) => digest.signed(span.us()),
            Self::Exponential { mean } => digest.text("exponential").signed(mean.us()),
            Self::Uniform { from, to } => digest.text("uniform").signed(from.us()).signed(to.us()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(think: Think) -> Vec<f64> {
        (0..20_000).map(|n| think.draw(&mut Stream::numbered(3, "think", n)).s()).collect()
    }

    #[test]
    fn draws_have_the_stated_mean_and_range() {
        let mean = |draws: &[f64]| draws.iter().sum::<f64>() / draws.len() as f64;
        let ms = Span::from_ms;
        assert!(draws(ms(30).into()).iter().all(|s| *s == 0.030));
        // Four standard errors: 2 s ÷ √20 000 is 14 ms, 1 s ÷ √12 ÷ √20 000 is 2 ms.
        let exponential = draws(Think::Exponential { mean: ms(2_000) });
        assert!((mean(&exponential) - 2.0).abs() < 0.057);
        let over = exponential.iter().filter(|s| **s > 2.0).count() as f64 / 20_000.0;
        assert!((over - (-1.0f64).exp()).abs() < 0.014, "{over}");
        let uniform = draws(Think::Uniform { from: ms(1_000), to: ms(2_000) });
        assert!((mean(&uniform) - 1.5).abs() < 0.009);
        assert!(uniform.iter().all(|s| (1.0..=2.0).contains(s)));
    }

    #[test]
    fn every_broken_rule_has_its_error() {
        let negative = Span::from_us(-1);
        for think in [
            Think::Fixed(negative),
            Think::Exponential { mean: negative },
            Think::Uniform { from: negative, to: Span::ZERO },
        ] {
            assert_eq!(think.check(), Err(LoadError::Think(negative)));
        }
        let (from, to) = (Span::from_ms(2), Span::from_ms(1));
        assert_eq!(Think::Uniform { from, to }.check(), Err(LoadError::ThinkOrder { from, to }));
        assert_eq!(Think::Fixed(HORIZON + from).check(), Err(LoadError::Horizon));
    }
}
