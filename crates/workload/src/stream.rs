//! Named random streams from one seed.
//!
//! Each use (arrivals, input lengths, prompts, …) has a stream of its own, so
//! that adding a use or drawing more from one never changes another: with one
//! shared generator, a longer prompt would move every later arrival.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Gamma};

use crate::digest::{Digest, mix};

/// A stream of random numbers that depends on (seed, name, number) only:
/// ChaCha with eight rounds, keyed by a hash of seed and name, the number as
/// its nonce. The same on every platform and for every number of workers.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of this name: the same as number 0 of [`Self::numbered`].
    pub fn new(seed: u64, name: &str) -> Self {
        Self::numbered(seed, name, 0)
    }

    /// One of 2⁶⁴ streams under the same name. A request's draws come from the
    /// stream with its index, so they do not depend on who asks first.
    pub fn numbered(seed: u64, name: &str, number: u64) -> Self {
        let name = Digest::new().raw(name.as_bytes()).value();
        let mut state = mix(seed.wrapping_add(GOLDEN)) ^ name;
        let mut key = [0; 32];
        for word in key.as_chunks_mut::<8>().0 {
            state = state.wrapping_add(GOLDEN);
            *word = mix(state).to_le_bytes();
        }
        let mut rng = ChaCha8Rng::from_seed(key);
        rng.set_stream(number);
        Self(rng)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }

    /// A float in [0, 1), a multiple of 2⁻⁵³.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// An integer in [0, n), every one equally likely. Multiply and reject
    /// (Lemire 2019), since a remainder would favour small values.
    ///
    /// # Panics
    /// When `n` is 0: there is nothing to choose from.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a draw from nothing");
        let reject_under = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.bits()) * u128::from(n);
            if (wide as u64) >= reject_under {
                return (wide >> 64) as u64;
            }
        }
    }

    /// One of the items, every one equally likely.
    ///
    /// # Panics
    /// When there are none.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// An exponential draw with mean 1, by inversion. One draw of the stream
    /// each, and another program can check it with a logarithm.
    pub fn exponential(&mut self) -> f64 {
        -(-self.unit()).ln_1p()
    }

    /// A gamma draw with mean 1 and this shape: its coefficient of variation is
    /// 1/√shape. Shape 1 is [`Self::exponential`].
    ///
    /// # Panics
    /// When the shape is not greater than 0: callers have checked it.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        if shape == 1.0 {
            return self.exponential();
        }
        // Scaled here and not by the distribution: 1/shape can be subnormal.
        let gamma = Gamma::new(shape, 1.0).expect("a shape greater than 0");
        gamma.sample(&mut self.0) / shape
    }

    /// Puts the items into a random order, every order equally likely
    /// (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests;
