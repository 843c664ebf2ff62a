//! Fits with gates: one that does not hold is refused with the reason, never
//! plotted.

use measure::quantile;
use measure::said;
use measure::said::Said;
use workload::Stream;

/// A point with its weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The known side.
    pub x: f64,
    /// The measured side.
    pub y: f64,
    /// How much it counts: 1 ÷ variance, or the samples behind it.
    pub weight: f64,
}

/// y = a + b·x + c·x², with c 0 for a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// The value at 0.
    pub a: f64,
    /// The slope there.
    pub b: f64,
    /// Half the change of the slope.
    pub c: f64,
    /// Share of the weighted variance that it explains.
    pub r2: f64,
    /// Deviation of a point from it over the mean of y.
    pub residual: f64,
}

impl Curve {
    /// Its value.
    pub fn at(&self, x: f64) -> f64 {
        self.a + self.b * x + self.c * x * x
    }
}

/// Why a fit is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Refused {
    /// Fewer distinct values of x than it takes.
    TooFew {
        /// How many there are.
        found: usize,
        /// How many it takes.
        needed: usize,
    },
    /// Negative times or rates came out.
    Negative,
    /// It explains too little.
    Loose {
        /// The share that it explains.
        r2: f64,
    },
    /// Points lie too far from it.
    Scattered {
        /// Their deviation over the mean.
        residual: f64,
    },
    /// What is fitted hardly moves.
    Flat {
        /// Its highest value over its lowest one, less 1.
        moves: f64,
    },
    /// What is fitted stops at a limit that its law does not have.
    Capped {
        /// The limit.
        at: f64,
    },
    /// The levels end before throughput bends, so that nothing is known of where
    /// it would.
    BeforeTheKnee {
        /// Throughput of the highest level over what it were without any loss.
        efficiency: f64,
    },
}

impl Refused {
    /// The reason in words.
    pub fn says(&self) -> Said {
        match self {
            Self::TooFew { found, needed } => said!(
                "only {found} different points were seen and a fit takes {needed}",
                "只有 {found} 个不同的测点，拟合至少需要 {needed} 个",
                found = found,
                needed = needed,
            ),
            Self::Negative => said!(
                "the fit gives a negative time or share, so it describes noise: repeat on a quiet machine",
                "拟合得出负的时间或比例，说明拟合的是噪声：请在安静的机器上重测"
            ),
            Self::Loose { r2 } => said!(
                "the fit explains only {share:.0} % of the variance",
                "拟合只解释了 {share:.0} % 的方差",
                share = 100.0 * r2,
            ),
            Self::Scattered { residual } => said!(
                "points lie {share:.0} % off the fit",
                "数据点偏离拟合 {share:.0} %",
                share = 100.0 * residual,
            ),
            Self::Flat { moves } => said!(
                "nothing to fit: it moves by {share:.1} % only, as good as constant",
                "无需拟合：仅变化 {share:.1} %，可视为不变",
                share = 100.0 * moves,
            ),
            Self::Capped { at } => said!(
                "it stops at {at:.0} requests at a time, a limit that the law does not have",
                "同时处理的请求止于 {at:.0} 个，该规律不含这种硬上限",
                at = at,
            ),
            Self::BeforeTheKnee { efficiency } => said!(
                "the highest level still has {share:.0} % of the throughput that it were without any \
                 loss: the knee lies above it",
                "最高一档仍达到无损吞吐的 {share:.0} %：拐点在更高处",
                share = 100.0 * efficiency,
            ),
        }
    }
}

/// What a fit must hold to be believed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// Distinct values of x.
    pub values: usize,
    /// Least share of the variance explained.
    pub r2: f64,
    /// Largest deviation over the mean.
    pub residual: f64,
}

/// For a ladder of lengths, as the rule base has it.
pub const LADDER: Gate = Gate { values: 5, r2: 0.95, residual: 0.10 };

/// Weighted least squares of y = a + b·x, or with a square where `bends`, kept
/// non-negative: a square that comes out negative is left out, and any other
/// negative coefficient refuses the fit.
///
/// # Errors
/// The gate that it does not pass.
pub fn curve(points: &[Point], bends: bool, gate: Gate) -> Result<Curve, Refused> {
    let found = distinct(points);
    if found < gate.values.max(2) {
        return Err(Refused::TooFew { found, needed: gate.values.max(2) });
    }
    let bent = bends.then(|| least_squares(points, 3)).flatten().filter(|[_, _, c]| *c > 0.0);
    let [a, b, c] =
        bent.or_else(|| least_squares(points, 2)).ok_or(Refused::TooFew { found: 1, needed: 2 })?;
    // A rounding error below 0 is 0.
    let scale = points.iter().map(|point| point.y.abs()).fold(0.0, f64::max);
    if a < -1e-9 * scale || b < 0.0 {
        return Err(Refused::Negative);
    }
    let whole = Curve { a: a.max(0.0), b, c, r2: 0.0, residual: 0.0 };
    let weight: f64 = points.iter().map(|point| point.weight).sum();
    let mean = points.iter().map(|point| point.weight * point.y).sum::<f64>() / weight;
    let off = |point: &Point| point.weight * (point.y - whole.at(point.x)).powi(2);
    let left: f64 = points.iter().map(off).sum();
    let r2 = explained(points, |x| whole.at(x));
    let residual = if mean > 0.0 { (left / weight).sqrt() / mean } else { f64::INFINITY };
    if r2 < gate.r2 {
        return Err(Refused::Loose { r2 });
    }
    if residual > gate.residual {
        return Err(Refused::Scattered { residual });
    }
    Ok(Curve { r2, residual, ..whole })
}

/// The coefficients of a polynomial with `terms` of 1, x, x², over x scaled to
/// its largest value; none where the equations are singular.
fn least_squares(points: &[Point], terms: usize) -> Option<[f64; 3]> {
    let scale = points.iter().map(|point| point.x.abs()).fold(0.0, f64::max);
    if scale <= 0.0 {
        return None;
    }
    let row = |point: &Point| {
        let x = point.x / scale;
        ([1.0, x, x * x], point.y, point.weight)
    };
    let mut found = solve(points.iter().map(row), terms)?;
    for (term, value) in found.iter_mut().enumerate() {
        *value /= scale.powi(term as i32);
    }
    Some(found)
}

/// Weighted least squares of y over the first `terms` of what stands with it, by
/// the normal equations; none where they are singular.
fn solve(rows: impl Iterator<Item = ([f64; 3], f64, f64)>, terms: usize) -> Option<[f64; 3]> {
    let mut matrix = [[0.0f64; 4]; 3];
    for (known, y, weight) in rows {
        for row in 0..terms {
            for column in 0..terms {
                matrix[row][column] += weight * known[row] * known[column];
            }
            matrix[row][3] += weight * known[row] * y;
        }
    }
    // Weights have any size; what is singular is so by its own.
    let size = matrix.iter().flat_map(|row| &row[..3]).fold(0.0f64, |most, x| most.max(x.abs()));
    for pivot in 0..terms {
        let best = (pivot..terms)
            .max_by(|a, b| matrix[*a][pivot].abs().total_cmp(&matrix[*b][pivot].abs()))?;
        matrix.swap(pivot, best);
        if matrix[pivot][pivot].abs() <= 1e-12 * size {
            return None;
        }
        let lead = matrix[pivot];
        for row in (0..terms).filter(|row| *row != pivot) {
            let factor = matrix[row][pivot] / lead[pivot];
            for (cell, above) in matrix[row].iter_mut().zip(lead) {
                *cell -= factor * above;
            }
        }
    }
    let mut found = [0.0; 3];
    for (term, value) in found.iter_mut().enumerate().take(terms) {
        *value = matrix[term][3] / matrix[term][term];
    }
    Some(found)
}

/// Throughput over users by the universal scalability law of Gunther:
/// X(N) = λN ÷ (1 + σ(N − 1) + κN(N − 1)).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    /// λ, throughput of one user.
    pub single: f64,
    /// σ, the share that is done one after the other.
    pub contention: f64,
    /// κ, what each pair costs each other; above 0 throughput falls in the end.
    pub coherency: f64,
    /// Share of the weighted variance of the throughput that it explains.
    pub r2: f64,
}

impl Scaling {
    /// Throughput with so many users.
    pub fn at(&self, users: f64) -> f64 {
        let loss = self.contention * (users - 1.0) + self.coherency * users * (users - 1.0);
        self.single * users / (1.0 + loss)
    }

    /// The users at which it is largest; none where it only flattens.
    pub fn peak(&self) -> Option<f64> {
        (self.coherency > 0.0)
            .then(|| ((1.0 - self.contention).max(0.0) / self.coherency).sqrt().max(1.0))
    }

    /// What it comes to without end, where it does not fall.
    pub fn asymptote(&self) -> Option<f64> {
        (self.coherency <= 0.0 && self.contention > 0.0).then(|| self.single / self.contention)
    }
}

/// Levels that the law takes.
const SCALING_LEVELS: usize = 6;

/// Efficiency of the highest level from which on the knee was not reached.
const UNBENT: f64 = 0.8;

/// Fits the law to throughputs over users, by least squares of N ÷ X, which is
/// linear in its parameters. κ that comes out negative is left out; σ that does
/// refuses the fit.
///
/// # Errors
/// The gate that it does not pass.
pub fn scaling(points: &[Point]) -> Result<Scaling, Refused> {
    let found = distinct(points);
    if found < SCALING_LEVELS {
        return Err(Refused::TooFew { found, needed: SCALING_LEVELS });
    }
    // What is fitted is N ÷ X, whose deviation grows with itself.
    let row = |point: &Point| {
        let y = point.x / point.y;
        ([1.0, point.x - 1.0, point.x * (point.x - 1.0)], y, point.weight / (y * y))
    };
    let rows = || points.iter().filter(|point| point.y > 0.0).map(row);
    let bent = solve(rows(), 3).filter(|[_, _, kappa]| *kappa > 0.0);
    let solved = bent.or_else(|| solve(rows(), 2));
    let [alpha, beta, gamma] =
        solved.ok_or(Refused::TooFew { found: 1, needed: SCALING_LEVELS })?;
    if alpha <= 0.0 || beta < -1e-9 * alpha {
        return Err(Refused::Negative);
    }
    let law = Scaling {
        single: 1.0 / alpha,
        contention: (beta / alpha).max(0.0),
        coherency: gamma / alpha,
        r2: 0.0,
    };
    let r2 = explained(points, |x| law.at(x));
    if r2 < LADDER.r2 {
        return Err(Refused::Loose { r2 });
    }
    let highest = points.iter().max_by(|a, b| a.x.total_cmp(&b.x));
    let efficiency = highest.map_or(1.0, |point| point.y / (point.x * law.single));
    if efficiency > UNBENT {
        return Err(Refused::BeforeTheKnee { efficiency });
    }
    Ok(Scaling { r2, ..law })
}

/// How many values of x there are.
fn distinct(points: &[Point]) -> usize {
    let mut values: Vec<f64> = points.iter().map(|point| point.x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values.len()
}

/// Share of the weighted variance that a line explains; 0 where there is none.
fn explained(points: &[Point], of: impl Fn(f64) -> f64) -> f64 {
    let weight: f64 = points.iter().map(|point| point.weight).sum();
    let mean = points.iter().map(|point| point.weight * point.y).sum::<f64>() / weight;
    let squares = |of: &dyn Fn(&Point) -> f64| -> f64 {
        points.iter().map(|point| point.weight * of(point).powi(2)).sum()
    };
    let all = squares(&|point| point.y - mean);
    if all > 0.0 { 1.0 - squares(&|point| point.y - of(point.x)) / all } else { 0.0 }
}

/// Samples that were taken at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The place.
    pub x: f64,
    /// What was measured there.
    pub samples: Vec<f64>,
}

impl Group {
    /// Their median as a point, of which a deviation counts for what it is of
    /// the value: times grow with what they are of, and so do their deviations.
    /// None without samples above 0.
    pub fn point(&self) -> Option<Point> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let y = quantile::linear(&sorted, 0.5).filter(|y| *y > 0.0)?;
        Some(Point { x: self.x, y, weight: sorted.len() as f64 / (y * y) })
    }
}

/// The points of groups.
pub fn points(groups: &[Group]) -> Vec<Point> {
    groups.iter().filter_map(Group::point).collect()
}

/// How often samples are drawn again for an interval.
const DRAWS: u64 = 200;

/// Intervals of 95 % of what `of` makes of the points, by samples that are drawn
/// again from each group. The same samples give the same intervals. None where
/// `of` refuses every other draw.
pub fn intervals<const K: usize>(
    groups: &[Group],
    of: impl Fn(&[Point]) -> Option<[f64; K]>,
) -> Option<[[f64; 2]; K]> {
    let mut drawn: Vec<[f64; K]> = Vec::new();
    for draw in 0..DRAWS {
        let mut stream = Stream::numbered(0, "samples drawn again", draw);
        let again: Vec<Group> = groups
            .iter()
            .filter(|group| !group.samples.is_empty())
            .map(|group| Group {
                x: group.x,
                samples: group.samples.iter().map(|_| stream.pick(&group.samples)).collect(),
            })
            .collect();
        drawn.extend(of(&points(&again)));
    }
    if 2 * drawn.len() < DRAWS as usize {
        return None;
    }
    let mut intervals = [[0.0; 2]; K];
    for (place, interval) in intervals.iter_mut().enumerate() {
        let mut values: Vec<f64> = drawn.iter().map(|values| values[place]).collect();
        values.sort_by(f64::total_cmp);
        *interval = [quantile::linear(&values, 0.025)?, quantile::linear(&values, 0.975)?];
    }
    Some(intervals)
}

/// Whether values in order move one way, and by how much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Median of the slopes between all pairs (Theil and Sen), per unit of x.
    pub slope: f64,
    /// Probability of such an order by chance, two-sided (Mann and Kendall).
    pub p: f64,
    /// Median of the values.
    pub middle: f64,
    /// From the first x to the last one.
    pub length: f64,
}

impl Trend {
    /// The change over the whole length.
    pub fn change(&self) -> f64 {
        self.slope * self.length
    }

    /// True where the order is no chance and the change is more than `least` and
    /// more than a fifth of the middle.
    pub fn grows(&self, least: f64) -> bool {
        self.p < 0.01 && self.change() > least.max(0.2 * self.middle)
    }
}

/// The trend of values over x; none with fewer than 8 of them.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 8 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut order = 0i64;
    for (place, (x, y)) in points.iter().enumerate() {
        for (later_x, later_y) in &points[place + 1..] {
            order += i64::from(later_y > y) - i64::from(later_y < y);
            if later_x > x {
                slopes.push((later_y - y) / (later_x - x));
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let mut sorted: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    sorted.sort_by(f64::total_cmp);
    let count = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tied| count(tied.len() as f64)).sum();
    let variance = (count(n as f64) - ties) / 18.0;
    let z = if variance > 0.0 { (order.abs() - 1).max(0) as f64 / variance.sqrt() } else { 0.0 };
    Some(Trend {
        slope: measure::quantile::linear(&slopes, 0.5)?,
        p: 2.0 * upper_tail(z),
        middle: measure::quantile::linear(&sorted, 0.5)?,
        length: points[n - 1].0 - points[0].0,
    })
}

/// Probability that a normal variable exceeds `z` ≥ 0 (Abramowitz and Stegun
/// 26.2.17, error below 7.5·10⁻⁸).
fn upper_tail(z: f64) -> f64 {
    const B: [f64; 5] =
        [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let series = B.iter().rev().fold(0.0, |sum, b| (sum + b) * t);
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series
}

/// Pearson's correlation; none with fewer than 5 pairs or without spread.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let n = pairs.len() as f64;
    if pairs.len() < 5 {
        return None;
    }
    let mean_x = pairs.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = pairs.iter().map(|(_, y)| y).sum::<f64>() / n;
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        xx += (x - mean_x).powi(2);
        yy += (y - mean_y).powi(2);
        xy += (x - mean_x) * (y - mean_y);
    }
    (xx > 0.0 && yy > 0.0).then(|| xy / (xx * yy).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(of: impl Fn(f64) -> f64, at: &[f64]) -> Vec<Point> {
        at.iter().map(|x| Point { x: *x, y: of(*x), weight: 1.0 }).collect()
    }

    const LENGTHS: &[f64] = &[16.0, 128.0, 512.0, 1_000.0, 2_000.0, 4_000.0];

    #[test]
    fn the_example_on_a_loaded_machine_is_refused() {
        // Diagnosis of V9: an intercept of −17 ms came out there.
        let noisy = points(|x| -17.0 + 0.1 * x, LENGTHS);
        assert_eq!(curve(&noisy, true, LADDER), Err(Refused::Negative));
        assert!(Refused::Negative.says().en.contains("noise"));
    }

    /// The other example of the same machine: σ of −0.03 came out.
    #[test]
    fn a_server_that_is_more_than_fair_is_refused() {
        let levels = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
        let law = |sigma: f64, kappa: f64| {
            points(move |n| 3.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0)), &levels)
        };
        assert_eq!(scaling(&law(-0.03, 0.0)), Err(Refused::Negative));
        assert_eq!(scaling(&law(0.1, 0.0)[..5]), Err(Refused::TooFew { found: 5, needed: 6 }));
        assert!(matches!(scaling(&law(0.001, 0.0)), Err(Refused::BeforeTheKnee { .. })));
        let bent = scaling(&law(0.05, 0.002)).unwrap();
        assert!((bent.single - 3.0).abs() < 1e-9 && (bent.contention - 0.05).abs() < 1e-9);
        assert!((bent.peak().unwrap() - (0.95f64 / 0.002).sqrt()).abs() < 1e-6);
        let flat = scaling(&law(0.1, 0.0)).unwrap();
        assert_eq!(flat.peak().is_some(), flat.coherency > 0.0);
        assert!((flat.at(32.0) - 3.0 * 32.0 / 4.1).abs() < 1e-6);
    }

    #[test]
    fn intervals_hold_the_truth_and_close_where_nothing_scatters() {
        let group = |x: f64, spread: f64| Group {
            x,
            samples: (0..9).map(|place| 20.0 + 0.1 * x + spread * f64::from(place - 4)).collect(),
        };
        let line = |points: &[Point]| curve(points, false, LADDER).ok().map(|c| [c.a, c.b]);
        let scattered: Vec<Group> = LENGTHS.iter().map(|x| group(*x, 1.0)).collect();
        let [a, b] = intervals(&scattered, line).unwrap();
        assert!(a[0] < 20.0 && 20.0 < a[1] && b[0] < 0.1 && 0.1 < b[1], "{a:?} {b:?}");
        let still: Vec<Group> = LENGTHS.iter().map(|x| group(*x, 0.0)).collect();
        let [a, _] = intervals(&still, line).unwrap();
        assert!((a[1] - a[0]).abs() < 1e-9);
        assert_eq!(intervals(&still[..2], line), None);
    }

    #[test]
    fn few_lengths_and_loose_points_are_refused() {
        let few = points(|x| x, &[1.0, 2.0, 3.0]);
        assert_eq!(curve(&few, true, LADDER), Err(Refused::TooFew { found: 3, needed: 5 }));
        let loose: Vec<Point> = LENGTHS
            .iter()
            .zip([900.0, 20.0, 700.0, 30.0, 950.0, 1_000.0])
            .map(|(x, y)| Point { x: *x, y, weight: 1.0 })
            .collect();
        assert!(matches!(curve(&loose, true, LADDER), Err(Refused::Loose { .. })));
    }

    #[test]
    fn what_falls_or_stays_is_no_growth() {
        let rising: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), 2.0 * f64::from(x))).collect();
        let found = trend(&rising).unwrap();
        assert_eq!((found.slope, found.length), (2.0, 19.0));
        assert!(found.p < 1e-6 && found.grows(1.0));
        let still: Vec<(f64, f64)> = (0..20).map(|x| (f64::from(x), f64::from(x % 2))).collect();
        assert!(!trend(&still).unwrap().grows(0.1));
        assert_eq!(trend(&rising[..7]), None);
    }

    #[test]
    fn the_tail_is_that_of_the_tables() {
        for (z, tail) in [(0.0, 0.5), (1.644_854, 0.05), (2.575_829, 0.005)] {
            assert!((upper_tail(z) - tail).abs() < 1e-6, "{z}");
        }
    }

    proptest! {
        #[test]
        fn a_curve_without_noise_comes_back(
            a in 0.0..500.0f64,
            b in 0.001..1.0f64,
            c in 0.0..1e-4f64,
        ) {
            let found = curve(&points(|x| a + b * x + c * x * x, LENGTHS), true, LADDER).unwrap();
            prop_assert!((found.a - a).abs() < 1e-6 * (1.0 + a));
            prop_assert!((found.b - b).abs() < 1e-6 * (1.0 + b));
            prop_assert!((found.c - c).abs() < 1e-9);
        }

        #[test]
        fn a_line_correlates_fully(slope in prop_oneof![-5.0..-0.1f64, 0.1..5.0f64]) {
            let pair = |x: i32| (f64::from(x), slope * f64::from(x));
            let pairs: Vec<(f64, f64)> = (0..9).map(pair).collect();
            prop_assert!((correlation(&pairs).unwrap() - slope.signum()).abs() < 1e-9);
        }
    }
}
