//! Fits with gates: one that does not hold is refused with the reason, never
//! plotted.

use measure::said;
use measure::said::Said;

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
}

impl Refused {
    /// The reason in words.
    pub fn says(&self) -> Said {
        match self {
            Self::TooFew { found, needed } => said!(
                "only {found} different lengths were seen and a fit takes {needed}",
                "只有 {found} 种不同长度，拟合至少需要 {needed} 种",
                found = found,
                needed = needed,
            ),
            Self::Negative => said!(
                "the fit gives a negative time, so it describes noise: repeat on a quiet machine",
                "拟合得出负的时间，说明拟合的是噪声：请在安静的机器上重测"
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
    let mut values: Vec<f64> = points.iter().map(|point| point.x).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    if values.len() < gate.values.max(2) {
        return Err(Refused::TooFew { found: values.len(), needed: gate.values.max(2) });
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
    let squares = |of: &dyn Fn(&Point) -> f64| -> f64 {
        points.iter().map(|point| point.weight * of(point).powi(2)).sum()
    };
    let left = squares(&|point| point.y - whole.at(point.x));
    let all = squares(&|point| point.y - mean);
    let r2 = if all > 0.0 { 1.0 - left / all } else { 0.0 };
    let residual = if mean > 0.0 { (left / weight).sqrt() / mean } else { f64::INFINITY };
    if r2 < gate.r2 {
        return Err(Refused::Loose { r2 });
    }
    if residual > gate.residual {
        return Err(Refused::Scattered { residual });
    }
    Ok(Curve { r2, residual, ..whole })
}

/// The coefficients of a polynomial with `terms` of 1, x, x², by the normal
/// equations over x scaled to its largest value; none where they are singular.
fn least_squares(points: &[Point], terms: usize) -> Option<[f64; 3]> {
    let scale = points.iter().map(|point| point.x.abs()).fold(0.0, f64::max);
    if scale <= 0.0 {
        return None;
    }
    let mut matrix = [[0.0f64; 4]; 3];
    for point in points {
        let x = point.x / scale;
        let powers = [1.0, x, x * x];
        for row in 0..terms {
            for column in 0..terms {
                matrix[row][column] += point.weight * powers[row] * powers[column];
            }
            matrix[row][3] += point.weight * powers[row] * point.y;
        }
    }
    for pivot in 0..terms {
        let best = (pivot..terms)
            .max_by(|a, b| matrix[*a][pivot].abs().total_cmp(&matrix[*b][pivot].abs()))?;
        matrix.swap(pivot, best);
        if matrix[pivot][pivot].abs() < 1e-12 {
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
        *value = matrix[term][3] / matrix[term][term] / scale.powi(term as i32);
    }
    Some(found)
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
