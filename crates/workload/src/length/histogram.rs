//! Lengths by the weights of a histogram.

use measure::Tokens;

use super::{LengthError, between, whole};
use crate::digest::Digest;
use crate::stream::Stream;

/// The most entries of one histogram: one for each length of a long context.
pub const MAX_BUCKETS: usize = 1 << 20;

/// Entries that a description shows one by one.
const SHOWN: usize = 12;

/// An entry of a histogram: lengths that are equally likely among themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bucket {
    /// The smallest length.
    pub low: Tokens,
    /// The largest length; equal to `low` for a single one.
    pub high: Tokens,
    /// How likely, relative to the others.
    pub weight: f64,
}

impl Bucket {
    /// Reads the lengths, `128` or `128-255`, beside their weight.
    pub fn read(lengths: &str, weight: &str) -> Result<Self, LengthError> {
        let wrong = || LengthError::Bucket(format!("{}:{}", lengths.trim(), weight.trim()));
        let (low, high) = lengths.split_once('-').unwrap_or((lengths, lengths));
        let (low, high) = (whole(low).ok_or_else(wrong)??, whole(high).ok_or_else(wrong)??);
        if low > high {
            return Err(wrong());
        }
        let weight: f64 = weight.trim().parse().map_err(|_| wrong())?;
        Ok(Self { low, high, weight })
    }

    fn describe(&self) -> String {
        let (low, high) = (self.low.get(), self.high.get());
        let lengths = if low == high { low.to_string() } else { format!("{low}-{high}") };
        format!("{lengths}:{}", self.weight)
    }
}

/// Entries with their weights; at least one can be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    buckets: Vec<Bucket>,
    /// For each entry, the weight of all up to it.
    sums: Vec<f64>,
}

impl Histogram {
    /// Takes entries in any order; lengths may overlap, and their weights add
    /// up then.
    pub fn new(buckets: Vec<Bucket>) -> Result<Self, LengthError> {
        if buckets.is_empty() {
            return Err(LengthError::Empty);
        }
        if buckets.len() > MAX_BUCKETS {
            return Err(LengthError::TooManyBuckets);
        }
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(buckets.len());
        for bucket in &buckets {
            sum += bucket.weight;
            if bucket.weight < 0.0 || !sum.is_finite() {
                return Err(LengthError::Weight(bucket.describe()));
            }
            sums.push(sum);
        }
        if sum <= 0.0 {
            return Err(LengthError::Weight(buckets[0].describe()));
        }
        Ok(Self { buckets, sums })
    }

    fn drawable(&self) -> impl Iterator<Item = &Bucket> {
        self.buckets.iter().filter(|bucket| bucket.weight > 0.0)
    }

    pub(super) fn range(&self) -> (Tokens, Tokens) {
        let low = self.drawable().map(|bucket| bucket.low).min();
        let high = self.drawable().map(|bucket| bucket.high).max();
        (low.unwrap_or(Tokens::new(1)), high.unwrap_or(Tokens::new(1)))
    }

    pub(super) fn mean(&self) -> f64 {
        let middle = |bucket: &Bucket| {
            f64::midpoint(f64::from(bucket.low.get()), f64::from(bucket.high.get()))
        };
        let sum: f64 = self.buckets.iter().map(|bucket| bucket.weight * middle(bucket)).sum();
        sum / self.total()
    }

    fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(1.0)
    }

    /// The entry takes one draw, a length inside a range another one.
    pub(super) fn draw(&self, stream: &mut Stream) -> Tokens {
        let at = stream.unit() * self.total();
        // An entry of weight 0 adds nothing to the sum, so it is passed over.
        // Rounding may reach the total itself, which the last drawable one ends.
        let place = self.sums.partition_point(|sum| *sum <= at);
        let bucket = self.buckets.get(place).or_else(|| self.drawable().last());
        bucket.map_or(Tokens::new(1), |bucket| between(bucket.low.get(), bucket.high.get(), stream))
    }

    /// All entries, or of a long one how many there are and what they span.
    pub(super) fn describe(&self) -> String {
        if self.buckets.len() <= SHOWN {
            let entries: Vec<_> = self.buckets.iter().map(Bucket::describe).collect();
            return format!("histogram:{}", entries.join(","));
        }
        let (low, high) = self.range();
        format!("histogram of {} entries from {} to {}", self.buckets.len(), low.get(), high.get())
    }

    pub(super) fn digest(&self, digest: &mut Digest) {
        digest.raw(b"h").number(self.buckets.len() as u64);
        for Bucket { low, high, weight } in &self.buckets {
            digest.number(u64::from(low.get())).number(u64::from(high.get())).float(*weight);
        }
    }
}

/// Reads entries that stand in one line, separated by commas.
pub(super) fn entries(text: &str) -> Result<Vec<Bucket>, LengthError> {
    text.split(',')
        .map(|entry| match entry.split_once(':') {
            Some((lengths, weight)) => Bucket::read(lengths, weight),
            None => Err(LengthError::Bucket(entry.trim().to_owned())),
        })
        .collect()
}
