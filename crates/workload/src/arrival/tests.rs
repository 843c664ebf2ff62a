use super::*;

fn arrivals(rate: f64, burstiness: f64, seed: u64, n: usize) -> Vec<At> {
    let stream = Stream::new(seed, "arrivals");
    Arrivals::new(Pace::flat(PerSecond::new(rate), burstiness), stream).take(n).collect()
}

fn gaps_s(arrivals: &[At]) -> Vec<f64> {
    std::iter::once(&At::ZERO)
        .chain(arrivals)
        .zip(arrivals)
        .map(|(earlier, later)| (*later - *earlier).s())
        .collect()
}

fn mean_and_cv(gaps: &[f64]) -> (f64, f64) {
    let n = gaps.len() as f64;
    let mean = gaps.iter().sum::<f64>() / n;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt() / mean)
}

#[test]
fn poisson_instants_are_those_of_an_independent_program() {
    // As in stream/tests.rs: u from ChaCha8, −ln(1 − u)/4 summed, rounded.
    let us: Vec<i64> = arrivals(4.0, 1.0, 1, 8).iter().map(|at| at.us()).collect();
    let golden = [198_545, 714_502, 967_107, 1_080_735, 1_957_105, 2_130_565, 2_257_212, 2_654_334];
    assert_eq!(us, golden);
}

#[test]
fn gaps_have_the_stated_mean_and_variation() {
    for burstiness in [0.25, 1.0, 4.0] {
        let (mean, cv) = mean_and_cv(&gaps_s(&arrivals(50.0, burstiness, 7, 100_000)));
        let expected = 1.0 / f64::sqrt(burstiness);
        let error = 4.0 * expected / f64::sqrt(100_000.0);
        assert!((mean * 50.0 - 1.0).abs() < error, "{burstiness}: mean {mean}");
        assert!((cv / expected - 1.0).abs() < 0.03, "{burstiness}: CV {cv}");
    }
}

/// Kolmogorov and Smirnov against 1 − e^(−λt). With n gaps the distance stays
/// below 1.63/√n in 99 of 100 cases; the seeds are fixed, so this is no lottery.
#[test]
fn poisson_gaps_are_exponential() {
    for seed in 0..5 {
        let mut gaps = gaps_s(&arrivals(50.0, 1.0, seed, 20_000));
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(place, gap)| {
                let expected = -(-50.0 * gap).exp_m1();
                let below = place as f64 / n;
                (expected - below).abs().max((below + 1.0 / n - expected).abs())
            })
            .fold(0.0, f64::max);
        assert!(distance < 1.63 / n.sqrt(), "seed {seed}: {distance}");
    }
}

#[test]
fn dispersion_tells_the_processes_apart() {
    let index = |burstiness, seed| {
        let arrivals = arrivals(50.0, burstiness, seed, 50_000);
        index_of_dispersion(&arrivals, Span::from_ms(1_000)).unwrap()
    };
    for seed in 0..5 {
        let poisson = index(1.0, seed);
        let (low, high) = poisson.poisson_band_99();
        assert!((low..high).contains(&poisson.index), "seed {seed}: {poisson:?}");
        assert!((0.8..1.2).contains(&poisson.index));
        // Over many gaps the index tends to CV² = 1/burstiness.
        assert!((3.0..5.0).contains(&index(0.25, seed).index));
        assert!((0.15..0.35).contains(&index(4.0, seed).index));
    }
    assert_eq!(index(f64::INFINITY, 0).index, 0.0);
}

#[test]
fn dispersion_of_a_worked_example() {
    // Windows of 10 µs after the first: counts 3, 0, 1, and a last incomplete
    // window left out. Mean 4/3, variance 7/3, index 7/4.
    let at: Vec<At> = [0, 1, 5, 10, 25, 33].map(At::from_us).to_vec();
    let dispersion = index_of_dispersion(&at, Span::from_us(10)).unwrap();
    assert_eq!(dispersion.windows, 3);
    assert!((dispersion.index - 1.75).abs() < 1e-12, "{dispersion:?}");
}

#[test]
fn dispersion_of_too_little_is_none() {
    let at = |us: &[i64]| us.iter().copied().map(At::from_us).collect::<Vec<_>>();
    let window = Span::from_us(10);
    assert_eq!(index_of_dispersion(&[], window), None);
    assert_eq!(index_of_dispersion(&at(&[0]), window), None);
    assert_eq!(index_of_dispersion(&at(&[0, 5]), window), None);
    assert_eq!(index_of_dispersion(&at(&[0, 100]), Span::ZERO), None);
    // Nothing but the first inside whole windows.
    assert_eq!(index_of_dispersion(&at(&[0, 25]), window), None);
    assert_eq!(index_of_dispersion(&at(&[7, 7, 7]), window), None);
}

#[test]
fn the_band_agrees_with_chi_squared_tables() {
    // χ²(0.005) and χ²(0.995): 9 degrees 1.735 and 23.589, 100 degrees 67.328
    // and 140.169.
    for (windows, low, high) in [(10, 1.735 / 9.0, 23.589 / 9.0), (101, 0.67328, 1.40169)] {
        let band = Dispersion { index: 1.0, windows }.poisson_band_99();
        assert!((band.0 - low).abs() < 0.01, "{band:?}");
        assert!((band.1 - high).abs() < 0.02, "{band:?}");
    }
}

#[test]
fn constant_gaps_start_at_zero_and_do_not_drift() {
    let at = arrivals(3.0, f64::INFINITY, 1, 3_000_001);
    assert_eq!(at[..4], [0, 333_333, 666_667, 1_000_000].map(At::from_us));
    assert_eq!(at[3_000_000], At::from_us(1_000_000_000_000));
}

#[test]
fn rounding_does_not_accumulate() {
    // A gap of 1/7 µs short of 143 µs, a hundred thousand times.
    let at = arrivals(7_000.0, f64::INFINITY, 1, 100_001);
    assert_eq!(at[100_000], At::from_us(14_285_714));
}

#[test]
fn random_processes_start_after_one_gap() {
    let first: Vec<i64> = (0..2_000).map(|seed| arrivals(1.0, 1.0, seed, 1)[0].us()).collect();
    let mean_s = first.iter().sum::<i64>() as f64 / 2_000.0 / 1e6;
    assert!((mean_s - 1.0).abs() < 0.1, "{mean_s}");
}

#[test]
fn counts_keep_their_variance() {
    // Rescaled to end at N/λ, every run would have 400 arrivals in 100 s. A
    // Poisson process has a variance of 400.
    let counts: Vec<f64> = (0..400)
        .map(|seed| {
            arrivals(4.0, 1.0, seed, 800).iter().filter(|at| at.us() < 100_000_000).count() as f64
        })
        .collect();
    let mean = counts.iter().sum::<f64>() / 400.0;
    let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 399.0;
    assert!((mean - 400.0).abs() < 4.0, "{mean}");
    assert!((300.0..520.0).contains(&variance), "{variance}");
}
