//! The name of a run: a ULID, which sorts by the time of its making.

use std::fmt;
use std::str::FromStr;

/// Crockford's base 32: no I, L, O and U, which people misread.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Characters of a run id.
const LENGTH: usize = 26;

/// Bits of chance below the 48 bits of time.
const RANDOM_BITS: u32 = 80;

/// The id of a run: 48 bits of milliseconds since 1970 and 80 bits of chance,
/// as 26 characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(u128);

/// Why text is not a run id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Not 26 characters.
    #[error("a run id has {LENGTH} characters, and {text:?} has {found}")]
    Length {
        /// The text given.
        text: String,
        /// Its number of characters.
        found: usize,
    },
    /// A character outside the alphabet.
    #[error(
        "{character:?} in {text:?} is not in the alphabet of run ids (0-9, A-Z without I, L, O, U)"
    )]
    Character {
        /// The text given.
        text: String,
        /// The first such character.
        character: char,
    },
    /// More than 128 bits.
    #[error("{text:?} is larger than any run id; the first character is at most 7")]
    Large {
        /// The text given.
        text: String,
    },
}

impl RunId {
    /// The id of a run that starts at `unix_ms`, told apart from others of the
    /// same millisecond by `random`. Bits of the time above the 48th, which
    /// are used from the year 10889 on, are dropped.
    pub fn new(unix_ms: u64, random: [u8; 10]) -> Self {
        let chance = random.iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte));
        // Shifting drops what is above 48 bits of time.
        Self(u128::from(unix_ms) << RANDOM_BITS | chance)
    }

    /// When the run was made, in milliseconds since 1970.
    pub fn unix_ms(self) -> u64 {
        (self.0 >> RANDOM_BITS) as u64
    }

    /// True when the id starts with `prefix`, in upper or lower case.
    pub fn starts_with(self, prefix: &str) -> bool {
        starts_with(&self.to_string(), prefix)
    }
}

/// True when `name` starts with `prefix`, whatever the case.
pub(crate) fn starts_with(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..LENGTH).rev().try_for_each(|place| {
            let digit = (self.0 >> (5 * place)) as usize % ALPHABET.len();
            write!(f, "{}", char::from(ALPHABET[digit]))
        })
    }
}

impl FromStr for RunId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let found = text.chars().count();
        if found != LENGTH {
            return Err(IdError::Length { text: text.to_owned(), found });
        }
        let mut bits: u128 = 0;
        for (place, character) in text.chars().enumerate() {
            let digit = ALPHABET
                .iter()
                .position(|one| char::from(*one) == character.to_ascii_uppercase())
                .ok_or_else(|| IdError::Character { text: text.to_owned(), character })?;
            // 26 characters of 5 bits are two bits more than an id has.
            if place == 0 && digit > 7 {
                return Err(IdError::Large { text: text.to_owned() });
            }
            bits = bits << 5 | digit as u128;
        }
        Ok(Self(bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the ULID specification: 1469918176385 ms.
    #[test]
    fn the_specifications_example_has_its_time() {
        let id: RunId = "01ARYZ6S41TSV4RRFFQ69G5FAV".parse().expect("it is the example");
        assert_eq!(id.unix_ms(), 1_469_918_176_385);
        assert_eq!(id.to_string(), "01ARYZ6S41TSV4RRFFQ69G5FAV");
    }

    #[test]
    fn an_id_is_its_time_and_its_chance() {
        assert_eq!(RunId::new(0, [0; 10]).to_string(), "0".repeat(26));
        assert_eq!(
            RunId::new(0, [0xff; 10]).to_string(),
            format!("{}{}", "0".repeat(10), "Z".repeat(16))
        );
        let largest = RunId::new((1 << 48) - 1, [0xff; 10]);
        assert_eq!(largest.to_string(), format!("7{}", "Z".repeat(25)));
        assert_eq!(RunId::new(1 << 48, [0; 10]), RunId::new(0, [0; 10]));
    }

    #[test]
    fn ids_sort_by_time_as_numbers_and_as_text() {
        let (early, late) = (RunId::new(1_000, [0xff; 10]), RunId::new(1_001, [0; 10]));
        assert!(early < late);
        assert!(early.to_string() < late.to_string());
    }

    #[test]
    fn a_prefix_matches_in_either_case() {
        let id: RunId = "01ARYZ6S41TSV4RRFFQ69G5FAV".parse().expect("it is the example");
        assert!(id.starts_with("01aryz"));
        assert!(id.starts_with(""));
        assert!(!id.starts_with("01ARYA"));
        assert!(!id.starts_with("01ARYZ6S41TSV4RRFFQ69G5FAV0"));
        assert!(!id.starts_with("é"));
    }

    #[test]
    fn what_is_no_id_is_told_why() {
        let parse = |text: &str| text.parse::<RunId>().expect_err("it is no id");
        assert!(matches!(parse(""), IdError::Length { found: 0, .. }));
        assert!(matches!(parse(&"0".repeat(27)), IdError::Length { found: 27, .. }));
        assert!(matches!(parse(&"é".repeat(26)), IdError::Character { character: 'é', .. }));
        assert!(matches!(
            parse("01ARYZ6S41TSV4RRFFQ69G5FAU"),
            IdError::Character { character: 'U', .. }
        ));
        assert!(matches!(parse(&"Z".repeat(26)), IdError::Large { .. }));
    }
}
