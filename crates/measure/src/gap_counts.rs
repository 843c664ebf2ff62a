//! Gaps between token arrivals counted in bins, for runs whose events are not
//! kept: as many bins as the gaps differ, however many gaps there are.

use std::collections::BTreeMap;

use crate::statistics::Distribution;
use crate::undefined::Undefined;

/// Bits that a bin keeps of a gap: it is off by half of the last one at most,
/// which is 0.05 %.
const KEPT_BITS: u32 = 11;

/// Gaps of whole microseconds by their size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GapCounts {
    /// Middle of the bin in µs, and how many gaps fell into it.
    pub bins: BTreeMap<u32, u64>,
    /// Sum of all gaps, µs.
    pub sum_us: u64,
    /// Sum of their squares, µs².
    pub squares_us2: f64,
    /// The shortest, µs.
    pub min_us: u32,
    /// The longest, µs.
    pub max_us: u32,
    /// Tokens of the chunks that ended them.
    pub tokens: u64,
}

impl GapCounts {
    /// Counts a gap that a chunk of so many tokens ended.
    pub fn add(&mut self, gap_us: u32, tokens: u32) {
        let is_first = self.bins.is_empty();
        *self.bins.entry(bin(gap_us)).or_default() += 1;
        self.sum_us += u64::from(gap_us);
        self.squares_us2 += f64::from(gap_us) * f64::from(gap_us);
        self.min_us = if is_first { gap_us } else { self.min_us.min(gap_us) };
        self.max_us = self.max_us.max(gap_us);
        self.tokens += u64::from(tokens);
    }

    /// How many gaps were counted.
    pub fn n(&self) -> u64 {
        self.bins.values().sum()
    }

    /// Their distribution in milliseconds; percentiles are off by 0.05 % at most.
    pub fn distribution(&self, extra: &[f64]) -> Distribution {
        let n = self.n();
        let mut below = 0;
        let ends: Vec<(u64, u32)> = self
            .bins
            .iter()
            .map(|(us, count)| {
                below += count;
                (below, (*us).clamp(self.min_us, self.max_us))
            })
            .collect();
        let ms = |index: usize| {
            let place = ends.partition_point(|(end, _)| *end <= index as u64);
            f64::from(ends[place].1) / 1e3
        };
        let mut found = Distribution::of_sorted(n as usize, ms, Vec::new(), extra);
        if n > 0 {
            let mean_us = self.sum_us as f64 / n as f64;
            let variance = (self.squares_us2 / n as f64 - mean_us * mean_us).max(0.0);
            found.min = Some(f64::from(self.min_us) / 1e3);
            found.max = Some(f64::from(self.max_us) / 1e3);
            found.mean = Some(mean_us / 1e3);
            found.std = Some(variance.sqrt() / 1e3);
        }
        found
    }

    /// The same by token: percentiles only where every chunk has one token,
    /// because spreading a gap over its tokens would hide stalls.
    pub fn of_tokens(&self, extra: &[f64]) -> Distribution {
        let by_chunk = self.distribution(extra);
        let n = self.n();
        if n == self.tokens {
            return by_chunk;
        }
        Distribution {
            n,
            undefined: vec![(Undefined::ManyTokensPerChunk, n)],
            mean: (self.tokens > 0).then(|| self.sum_us as f64 / self.tokens as f64 / 1e3),
            percentiles: vec![None; by_chunk.percentiles.len()],
            extra: extra.iter().map(|percent| (*percent, None)).collect(),
            ..Distribution::default()
        }
    }
}

/// The middle of the bin of a gap. Short gaps have a bin each.
fn bin(gap_us: u32) -> u32 {
    let dropped = (u32::BITS - gap_us.leading_zeros()).saturating_sub(KEPT_BITS);
    if dropped == 0 {
        return gap_us;
    }
    (gap_us >> dropped << dropped) + (1 << (dropped - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look drawn (Marsaglia's xorshift).
    fn gaps(count: usize) -> Vec<u32> {
        let mut state = 0x9e37_79b9_u32;
        (0..count)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 17;
                state ^= state << 5;
                state % 3_000_000 / (1 + state % 97)
            })
            .collect()
    }

    #[test]
    fn figures_are_those_of_the_gaps_themselves() {
        let all = gaps(20_000);
        let mut counts = GapCounts::default();
        all.iter().for_each(|gap| counts.add(*gap, 1));
        assert!(counts.bins.len() < 12_000);
        let (found, exact) =
            (counts.distribution(&[12.5]), Distribution::of_us(all, Vec::new(), &[12.5]));
        assert_eq!((found.n, found.min, found.max), (exact.n, exact.min, exact.max));
        let near = |a: Option<f64>, b: Option<f64>, share: f64| {
            let (a, b) = (a.unwrap(), b.unwrap());
            assert!((a - b).abs() <= share * b, "{a} and {b}");
        };
        near(found.mean, exact.mean, 1e-12);
        near(found.std, exact.std, 1e-9);
        for (found, exact) in found.percentiles.iter().zip(&exact.percentiles) {
            near(*found, *exact, 0.0005);
        }
        near(found.extra[0].1, exact.extra[0].1, 0.0005);
        assert_eq!(found.few_samples, exact.few_samples);
    }

    #[test]
    fn several_tokens_a_chunk_leave_the_mean_only() {
        let mut counts = GapCounts::default();
        [(6_000, 3), (10_000, 1)].into_iter().for_each(|(gap, tokens)| counts.add(gap, tokens));
        let found = counts.of_tokens(&[]);
        assert_eq!(found.mean, Some(4.0));
        assert!(found.percentiles.iter().all(Option::is_none));
        assert_eq!(counts.distribution(&[]).mean, Some(8.0));
        assert_eq!(GapCounts::default().distribution(&[]).n, 0);
    }
}
