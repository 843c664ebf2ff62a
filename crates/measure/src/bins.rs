//! Values counted in bins: as many bins as the values differ, however many
//! values there are. A run whose rows are not kept takes its percentiles from
//! these.

/// Bits of a value's significand that choose its bin: a bin is 2⁻¹¹ of its
/// values wide, so that whatever is said of a value inside is off by 0.05 % at
/// most.
const KEPT_BITS: u32 = 11;

/// Bits of a float's significand that its bin does not know.
const DROPPED_BITS: u32 = f64::MANTISSA_DIGITS - 1 - KEPT_BITS;

/// Bins that lie together in memory: an eighth of an octave.
const PAGE: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    count: u64,
    /// Sum of what its values are beyond its lower edge: their mean speaks for
    /// them, and a bin of equal values gives their value.
    beyond: f64,
}

/// Counts of values by size, with their exact number, sum, spread and ends.
/// Infinite values and those that are no number are not counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bins {
    n: u64,
    /// The first value. Sums are taken of differences to it, so that the spread
    /// of values that lie close together is not lost in their size.
    around: f64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
    zeros: u64,
    /// Number of the page that `pages` begins with.
    first_page: i64,
    pages: Vec<Option<Box<[Bin; PAGE]>>>,
}

impl Bins {
    /// Counts a value.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.n == 0 {
            (self.around, self.min, self.max) = (value, value, value);
        }
        self.n += 1;
        let difference = value - self.around;
        self.sum += difference;
        self.squares += difference * difference;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        if value == 0.0 {
            self.zeros += 1;
            return;
        }
        let number = number_of(value);
        let bin = self.bin(number);
        bin.count += 1;
        bin.beyond += value - edge_of(number);
    }

    /// The same of all values that another one has counted.
    pub fn add_all(&mut self, other: &Self) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            self.clone_from(other);
            return;
        }
        let (n, apart) = (other.n as f64, other.around - self.around);
        self.squares += other.squares + 2.0 * apart * other.sum + n * apart * apart;
        self.sum += other.sum + n * apart;
        self.n += other.n;
        self.zeros += other.zeros;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (number, bin) in other.bins() {
            let own = self.bin(number);
            own.count += bin.count;
            own.beyond += bin.beyond;
        }
    }

    fn bin(&mut self, number: i64) -> &mut Bin {
        let page = number.div_euclid(PAGE as i64);
        if self.pages.is_empty() {
            self.first_page = page;
        }
        while page < self.first_page {
            self.pages.insert(0, None);
            self.first_page -= 1;
        }
        let place = (page - self.first_page) as usize;
        if place >= self.pages.len() {
            self.pages.resize(place + 1, None);
        }
        let page = self.pages[place].get_or_insert_with(|| Box::new([Bin::default(); PAGE]));
        &mut page[number.rem_euclid(PAGE as i64) as usize]
    }

    /// Bins that have values, by their numbers, from the smallest.
    fn bins(&self) -> impl Iterator<Item = (i64, &Bin)> {
        let pages = self.pages.iter().zip(self.first_page..);
        let numbered = pages.filter_map(|(page, number)| Some((page.as_ref()?, number)));
        let all = numbered.flat_map(|(page, number)| {
            page.iter().zip(number * PAGE as i64..).map(|(bin, number)| (number, bin))
        });
        all.filter(|(_, bin)| bin.count > 0)
    }

    /// How many values were counted.
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// The smallest, exactly; `None` without values.
    pub fn min(&self) -> Option<f64> {
        (self.n > 0).then_some(self.min)
    }

    /// The largest, exactly.
    pub fn max(&self) -> Option<f64> {
        (self.n > 0).then_some(self.max)
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.around * self.n as f64 + self.sum
    }

    /// Their mean; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.around + self.sum / self.n as f64)
    }

    /// Their standard deviation (ddof 0).
    pub fn std(&self) -> Option<f64> {
        let n = self.n as f64;
        let off = self.sum / n;
        (self.n > 0).then(|| (self.squares / n - off * off).max(0.0).sqrt())
    }

    /// How many values are at most `limit`; of the values in the bin of the
    /// limit itself, the share that would be so if they were spread evenly.
    pub fn up_to(&self, limit: f64) -> f64 {
        if self.n == 0 || limit < self.min {
            return 0.0;
        }
        if limit >= self.max {
            return self.n as f64;
        }
        let own = if limit == 0.0 { 0 } else { number_of(limit) };
        let zeros = if limit >= 0.0 { self.zeros } else { 0 };
        self.bins().fold(zeros as f64, |sum, (number, bin)| {
            let (from, until) = match number {
                ..0 => (edge_of(number - 1), edge_of(number)),
                0.. => (edge_of(number), edge_of(number + 1)),
            };
            let share = match number.cmp(&own) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => ((limit - from) / (until - from)).clamp(0.0, 1.0),
                std::cmp::Ordering::Greater => 0.0,
            };
            sum + share * bin.count as f64
        })
    }

    /// The values in order, each bin's at their mean.
    pub(crate) fn ranks(&self) -> Ranks {
        let mut ends = Vec::new();
        let mut below = 0;
        let mut zeros = self.zeros;
        let mut push = |count: u64, value: f64| {
            below += count;
            ends.push((below, value.clamp(self.min, self.max)));
        };
        for (number, bin) in self.bins() {
            if number >= 0 && zeros > 0 {
                push(std::mem::take(&mut zeros), 0.0);
            }
            push(bin.count, edge_of(number) + bin.beyond / bin.count as f64);
        }
        if zeros > 0 {
            push(zeros, 0.0);
        }
        Ranks { n: self.n, min: self.min, max: self.max, ends }
    }

    /// Bins that memory is held for.
    pub fn held(&self) -> usize {
        self.pages.iter().flatten().count() * PAGE
    }
}

/// Values in order.
#[derive(Debug)]
pub(crate) struct Ranks {
    n: u64,
    min: f64,
    max: f64,
    /// How many values lie up to here, and the value of the last ones.
    ends: Vec<(u64, f64)>,
}

impl Ranks {
    /// The value at a rank from 0; beyond the last it is infinite.
    pub(crate) fn at(&self, rank: usize) -> f64 {
        let rank = rank as u64;
        if rank >= self.n {
            return f64::INFINITY;
        }
        if rank == 0 {
            return self.min;
        }
        if rank == self.n - 1 {
            return self.max;
        }
        let place = self.ends.partition_point(|(end, _)| *end <= rank);
        self.ends.get(place).map_or(self.max, |(_, value)| *value)
    }
}

/// The number of a value's bin: its sign, exponent and first digits, in order.
fn number_of(value: f64) -> i64 {
    let size = (value.abs().to_bits() >> DROPPED_BITS) as i64;
    if value < 0.0 { -1 - size } else { size }
}

/// The edge of a bin that is nearest to zero.
fn edge_of(number: i64) -> f64 {
    let size = if number < 0 { -1 - number } else { number };
    let edge = f64::from_bits((size as u64) << DROPPED_BITS);
    if number < 0 { -edge } else { edge }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile;
    use proptest::prelude::*;

    fn counted(values: &[f64]) -> Bins {
        let mut bins = Bins::default();
        values.iter().for_each(|value| bins.add(*value));
        bins
    }

    fn near(a: f64, b: f64, share: f64) -> bool {
        (a - b).abs() <= share * a.abs().max(b.abs())
    }

    /// Values of every size, with zeros and negative ones among them.
    fn value() -> impl Strategy<Value = f64> {
        let sized = (-1.0f64..1.0, -6i32..9).prop_map(|(digits, ten)| digits * 10f64.powi(ten));
        prop_oneof![4 => sized, 1 => Just(0.0), 2 => (0u32..200).prop_map(f64::from)]
    }

    proptest! {
        #[test]
        fn figures_are_those_of_the_values_within_the_width_of_a_bin(
            values in prop::collection::vec(value(), 1..300), q in 0.0f64..=1.0,
        ) {
            let bins = counted(&values);
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            // Between two neighbours the error is that of the larger one.
            let rank = (q * (sorted.len() - 1) as f64).ceil() as usize;
            let (low, high) = (sorted[rank.saturating_sub(1)], sorted[rank]);
            let (found, exact) =
                (quantile::counted(&bins, q).unwrap(), quantile::linear(&sorted, q).unwrap());
            let bound = low.abs().max(high.abs()) * 2f64.powi(-(KEPT_BITS as i32)) + 1e-300;
            prop_assert!((found - exact).abs() <= bound, "{} and {}", found, exact);
            prop_assert_eq!(bins.n(), values.len() as u64);
            prop_assert_eq!(bins.min(), Some(sorted[0]));
            prop_assert_eq!(bins.max(), sorted.last().copied());
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let size = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            prop_assert!((bins.mean().unwrap() - mean).abs() <= 1e-12 * size);
            let std = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            prop_assert!((bins.std().unwrap() - std).abs() <= 1e-6 * size);
        }

        #[test]
        fn counts_of_two_halves_together_are_those_of_the_whole(
            one in prop::collection::vec(value(), 0..100),
            other in prop::collection::vec(value(), 0..100),
            limit in value(),
        ) {
            let (mut sum, whole) = (counted(&one), counted(&[one.clone(), other.clone()].concat()));
            sum.add_all(&counted(&other));
            prop_assert_eq!((sum.n(), sum.min(), sum.max()), (whole.n(), whole.min(), whole.max()));
            for q in [0.0, 0.3, 0.5, 0.99, 1.0] {
                let (a, b) = (quantile::counted(&sum, q), quantile::counted(&whole, q));
                prop_assert!(a.zip(b).is_none_or(|(a, b)| near(a, b, 1e-9)), "{:?} {:?}", a, b);
            }
            let exact = one.iter().chain(&other).filter(|value| **value <= limit).count() as f64;
            let unsure =
                one.iter().chain(&other).filter(|value| near(**value, limit, 0.0005)).count();
            prop_assert!((whole.up_to(limit) - exact).abs() <= unsure as f64);
        }
    }

    #[test]
    fn equal_values_are_given_back_to_the_last_digit() {
        for value in [64.0, 0.1, 1e-3, 12.345, -7.7, 0.0] {
            let bins = counted(&vec![value; 1_000]);
            assert_eq!((quantile::counted(&bins, 0.5), bins.std()), (Some(value), Some(0.0)));
            assert_eq!(bins.mean(), Some(value));
        }
        // Whole numbers below 2¹¹ have a bin each.
        let counts: Vec<f64> = (0..2_000).map(f64::from).collect();
        assert_eq!(quantile::counted(&counted(&counts), 0.25), quantile::linear(&counts, 0.25));
    }

    #[test]
    fn memory_does_not_grow_with_the_number_of_values() {
        let mut bins = Bins::default();
        let mut state = 0x9e37_79b9_u32;
        let mut held = Vec::new();
        for count in 0..200_000 {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            bins.add(f64::from(1_000 + state % 100_000) / 1e3);
            if [20_000, 199_999].contains(&count) {
                held.push(bins.held());
            }
        }
        assert_eq!(held[0], held[1]);
        // 1 to 101 is less than seven octaves and a part of an eighth.
        assert!(held[0] <= 8 << KEPT_BITS, "{}", held[0]);
    }

    #[test]
    fn what_is_no_number_is_not_counted() {
        let bins = counted(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        assert_eq!((bins.n(), bins.mean(), quantile::counted(&bins, 0.5)), (0, None, None));
        assert_eq!(bins.up_to(1.0), 0.0);
    }
}
