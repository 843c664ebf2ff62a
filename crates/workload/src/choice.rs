//! One of several, by weight: an adapter, a model, a priority, a target, a
//! workload.

use std::fmt::Display;

use crate::stream::Stream;

/// The most options of one choice.
pub const MAX_OPTIONS: usize = 1_000;

/// The most turns of one round where options are dealt in turn.
pub const MAX_TURNS: u64 = 10_000;

/// How options are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assignment {
    /// Drawn by weight, each draw for itself.
    Random,
    /// In turn, each as often in a round as its weight says, its turns spread
    /// over the round.
    InTurn,
}

impl Assignment {
    /// The name on the command line, which is vLLM's.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::InTurn => "round-robin",
        }
    }
}

/// Options with their weights. What a unit (a session, a request) gets depends
/// on the seed and the unit alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    options: Vec<(T, f64)>,
    /// Places in the options, one round; empty where they are drawn.
    round: Vec<u16>,
}

/// Why there is no choice.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChoiceError {
    /// No option.
    #[error("names nothing to choose from")]
    Empty,
    /// Over [`MAX_OPTIONS`].
    #[error("{0} options are more than {MAX_OPTIONS}")]
    TooMany(usize),
    /// An option without a name.
    #[error("{0:?} has no name before its weight; write NAME or NAME:WEIGHT")]
    NoName(String),
    /// An option that is there twice.
    #[error("{0:?} is there twice; give it once with the sum of its weights")]
    Twice(String),
    /// A weight that none can be.
    #[error("the weight of {name:?} is {weight}; it must be a finite number above 0")]
    Weight {
        /// The option.
        name: String,
        /// Its weight.
        weight: f64,
    },
    /// Turns cannot be cut.
    #[error(
        "the weight of {name:?} is {weight}; in turn weights are whole numbers with a sum of at \
         most {MAX_TURNS}"
    )]
    Turns {
        /// The option.
        name: String,
        /// Its weight.
        weight: f64,
    },
}

impl<T: Display + PartialEq> Choice<T> {
    /// A choice of these options.
    pub fn new(options: Vec<(T, f64)>, assignment: Assignment) -> Result<Self, ChoiceError> {
        if options.is_empty() {
            return Err(ChoiceError::Empty);
        }
        if options.len() > MAX_OPTIONS {
            return Err(ChoiceError::TooMany(options.len()));
        }
        for (place, (option, weight)) in options.iter().enumerate() {
            let (name, weight) = (option.to_string(), *weight);
            if !weight.is_finite() || weight <= 0.0 {
                return Err(ChoiceError::Weight { name, weight });
            }
            if options[..place].iter().any(|(other, _)| other == option) {
                return Err(ChoiceError::Twice(name));
            }
        }
        let round = match assignment {
            Assignment::Random => Vec::new(),
            Assignment::InTurn => round(&options)?,
        };
        Ok(Self { options, round })
    }
}

impl<T> Choice<T> {
    /// The options and their weights, in their order.
    pub fn options(&self) -> &[(T, f64)] {
        &self.options
    }

    /// How they are given out.
    pub fn assignment(&self) -> Assignment {
        if self.round.is_empty() { Assignment::Random } else { Assignment::InTurn }
    }

    /// The options with their shares, from 0 to 1.
    pub fn shares(&self) -> impl Iterator<Item = (&T, f64)> {
        let total: f64 = self.options.iter().map(|(_, weight)| weight).sum();
        self.options.iter().map(move |(option, weight)| (option, weight / total))
    }

    /// What unit `unit` gets. `of` names what is chosen: choices of different
    /// names from one seed have nothing to do with each other.
    pub fn of_unit(&self, seed: u64, of: &str, unit: u32) -> &T {
        let place = if self.round.is_empty() {
            self.drawn(&mut Stream::numbered(seed, of, u64::from(unit)))
        } else {
            usize::from(self.round[unit as usize % self.round.len()])
        };
        &self.options[place].0
    }

    /// The place of an option drawn by weight.
    pub(crate) fn drawn(&self, stream: &mut Stream) -> usize {
        let total: f64 = self.options.iter().map(|(_, weight)| weight).sum();
        let mut left = stream.unit() * total;
        let passed = self.options.iter().take_while(|(_, weight)| {
            left -= weight;
            left >= 0.0
        });
        // Rounding may leave a crumb behind the last weight.
        passed.count().min(self.options.len() - 1)
    }
}

/// One round by the smooth weighted round-robin of nginx: at each turn every
/// option gains its weight, and the one that has most pays the sum. Turns of
/// one option lie as far apart as its weight allows.
fn round<T: Display>(options: &[(T, f64)]) -> Result<Vec<u16>, ChoiceError> {
    let mut weights = Vec::with_capacity(options.len());
    for (option, weight) in options {
        if weight.fract() != 0.0 || *weight > MAX_TURNS as f64 {
            return Err(ChoiceError::Turns { name: option.to_string(), weight: *weight });
        }
        weights.push(*weight as i64);
    }
    let total: i64 = weights.iter().sum();
    if total > MAX_TURNS as i64 {
        let (option, weight) = &options[0];
        return Err(ChoiceError::Turns { name: option.to_string(), weight: *weight });
    }
    let mut credit = vec![0; weights.len()];
    let turns = (0..total).map(|_| {
        for (credit, weight) in credit.iter_mut().zip(&weights) {
            *credit += weight;
        }
        let mut most = 0;
        for place in 1..credit.len() {
            if credit[place] > credit[most] {
                most = place;
            }
        }
        credit[most] -= total;
        most as u16
    });
    Ok(turns.collect())
}

/// Reads `NAME`, or `NAME:WEIGHT` where what follows the last colon is a
/// number. Names with such an ending need their weight written out.
pub fn named_weight(text: &str) -> Result<(&str, f64), ChoiceError> {
    let (name, weight) = match text.rsplit_once(':') {
        Some((name, weight)) => match weight.trim().parse() {
            Ok(weight) => (name, weight),
            Err(_) => (text, 1.0),
        },
        None => (text, 1.0),
    };
    let name = name.trim();
    if name.is_empty() { Err(ChoiceError::NoName(text.to_owned())) } else { Ok((name, weight)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn choice(weights: &[f64], assignment: Assignment) -> Result<Choice<String>, ChoiceError> {
        let named = |(place, weight): (usize, &f64)| (format!("option {place}"), *weight);
        Choice::new(weights.iter().enumerate().map(named).collect(), assignment)
    }

    #[test]
    fn a_weight_is_what_follows_the_last_colon_if_it_is_a_number() {
        let read = |text| named_weight(text).unwrap();
        assert_eq!(read("a"), ("a", 1.0));
        assert_eq!(read("a:3"), ("a", 3.0));
        assert_eq!(read("a:0.25"), ("a", 0.25));
        assert_eq!(read("llama3:8b"), ("llama3:8b", 1.0));
        assert_eq!(read("llama3:8:1"), ("llama3:8", 1.0));
        assert_eq!(named_weight(":3"), Err(ChoiceError::NoName(":3".into())));
        assert_eq!(named_weight(" "), Err(ChoiceError::NoName(" ".into())));
    }

    #[test]
    fn what_is_no_choice_is_refused_with_the_option() {
        let random = |weights: &[f64]| choice(weights, Assignment::Random).unwrap_err();
        assert_eq!(random(&[]), ChoiceError::Empty);
        assert_eq!(random(&[1.0; MAX_OPTIONS + 1]), ChoiceError::TooMany(MAX_OPTIONS + 1));
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(random(&[1.0, weight]).to_string().contains("option 1"), "{weight}");
        }
        let twice = vec![("a".to_owned(), 1.0), ("a".to_owned(), 2.0)];
        let twice = Choice::new(twice, Assignment::Random).unwrap_err();
        assert_eq!(twice, ChoiceError::Twice("a".into()));
        let in_turn = |weights: &[f64]| choice(weights, Assignment::InTurn).unwrap_err();
        assert!(matches!(in_turn(&[1.5]), ChoiceError::Turns { .. }));
        assert!(matches!(in_turn(&[1e300, 1.0]), ChoiceError::Turns { .. }));
        assert!(matches!(in_turn(&[5_000.0, 5_001.0]), ChoiceError::Turns { .. }));
    }

    /// The example of nginx's own commit message: weights 5, 1, 1.
    #[test]
    fn turns_are_spread_as_nginx_spreads_them() {
        let choice = choice(&[5.0, 1.0, 1.0], Assignment::InTurn).unwrap();
        assert_eq!(choice.round, [0, 0, 1, 0, 2, 0, 0]);
        let units: Vec<&str> = (0..3).map(|unit| choice.of_unit(9, "x", unit).as_str()).collect();
        assert_eq!(units, ["option 0", "option 0", "option 1"]);
    }

    #[test]
    fn draws_come_in_their_shares_and_differ_by_name_and_seed() {
        let choice = choice(&[3.0, 1.0], Assignment::Random).unwrap();
        let draws = |seed, of| -> Vec<bool> {
            (0..4_000).map(|unit| choice.of_unit(seed, of, unit) == "option 1").collect()
        };
        let drawn = draws(1, "adapter");
        let second = drawn.iter().filter(|second| **second).count();
        // A binomial of 4000 and a quarter: 4.5 standard deviations are 123.
        assert!((877..1123).contains(&second), "{second}");
        assert_ne!(drawn, draws(2, "adapter"));
        assert_ne!(drawn, draws(1, "priority"));
    }

    proptest! {
        #[test]
        fn a_round_gives_each_its_weight(weights in prop::collection::vec(1u32..50, 1..20)) {
            let floats: Vec<f64> = weights.iter().copied().map(f64::from).collect();
            let choice = choice(&floats, Assignment::InTurn).unwrap();
            let total: u32 = weights.iter().sum();
            prop_assert_eq!(choice.round.len(), total as usize);
            for (place, weight) in weights.iter().enumerate() {
                let turns = choice.round.iter().filter(|turn| usize::from(**turn) == place);
                prop_assert_eq!(turns.count(), *weight as usize);
            }
        }

        #[test]
        fn every_unit_gets_one_of_the_options(
            weights in prop::collection::vec(1e-9..1e9f64, 1..9), seed: u64, unit: u32,
        ) {
            let choice = choice(&weights, Assignment::Random).unwrap();
            choice.of_unit(seed, "x", unit);
        }
    }
}
