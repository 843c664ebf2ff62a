//! Several answers to one request (`n`).
//!
//! As in vLLM 0.27's V1 engine each of them is a request of its own to the
//! scheduler, with the same prompt: nothing but the number tells that they belong
//! together, and blocks are shared as with any other prompt that begins alike.

/// The most answers to one request. It is OpenAI's limit of `n`; vLLM's own is
/// 16 384 (`VLLM_MAX_N_SEQUENCES`).
pub const MOST_CHOICES: u8 = 128;

/// Below this temperature vLLM samples greedily.
const GREEDY: f64 = 1e-5;

/// Numbers of requests are below this: the bits above it are the answer's.
pub(crate) const NUMBERS: u64 = 1 << FROM_BIT;

/// Where the answer begins in the number of a sequence.
const FROM_BIT: u32 = 56;

/// One answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The caller's number for the request.
    pub request: u64,
    /// Which of its answers, from 0.
    pub index: u8,
}

impl Choice {
    /// The number under which an engine has it. It is the request's own for the
    /// first answer, as most requests have no other.
    pub(crate) const fn sequence(self) -> u64 {
        self.request | (self.index as u64) << FROM_BIT
    }

    pub(crate) const fn of_sequence(number: u64) -> Self {
        Self { request: number & (NUMBERS - 1), index: (number >> FROM_BIT) as u8 }
    }
}

/// Why a request does not get the answers that it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoicesError {
    /// None, or too many of them.
    #[error("n must be a whole number from 1 to {MOST_CHOICES}, got {0}")]
    Number(u64),
    /// They would all be the same.
    #[error(
        "n must be 1 under greedy sampling (temperature 0), got {0}: the answers would all be the \
         same, and vLLM refuses such requests"
    )]
    Greedy(u8),
}

/// The answers that a request gets that asks for `n` of them, which is one
/// without, at this temperature.
///
/// # Errors
/// The rule that it breaks; it is vLLM's but for the number.
pub fn choices(n: Option<u64>, temperature: Option<f64>) -> Result<u8, ChoicesError> {
    let asked = n.unwrap_or(1);
    let choices = u8::try_from(asked).ok().filter(|n| (1..=MOST_CHOICES).contains(n));
    let choices = choices.ok_or(ChoicesError::Number(asked))?;
    if choices > 1 && temperature.is_some_and(|temperature| temperature < GREEDY) {
        return Err(ChoicesError::Greedy(choices));
    }
    Ok(choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_tells_request_and_answer() {
        for request in [0, 1, 77, NUMBERS - 1] {
            for index in [0, 1, MOST_CHOICES - 1] {
                let choice = Choice { request, index };
                assert_eq!(Choice::of_sequence(choice.sequence()), choice);
            }
            assert_eq!(Choice { request, index: 0 }.sequence(), request);
        }
    }

    #[test]
    fn so_many_answers_are_given_and_no_others() {
        assert_eq!(choices(None, Some(0.0)), Ok(1));
        assert_eq!(choices(Some(1), Some(0.0)), Ok(1));
        assert_eq!(choices(Some(128), None), Ok(128));
        assert_eq!(choices(Some(2), Some(0.5)), Ok(2));
        assert_eq!(choices(Some(2), Some(0.0)), Err(ChoicesError::Greedy(2)));
        for n in [0, 129, 257, u64::MAX] {
            assert_eq!(choices(Some(n), None), Err(ChoicesError::Number(n)));
        }
    }
}
