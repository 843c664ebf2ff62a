//! Lengths as they are written, drawn and described.

use super::*;
use proptest::prelude::*;

#[test]
fn reads_a_number_and_a_spread() {
    assert_eq!("512".parse(), Lengths::fixed(512));
    assert_eq!(" 4096 ".parse(), Lengths::fixed(4096));
    for text in ["512±25%", "512 ± 25 %", "512+-25%"] {
        assert_eq!(text.parse(), Lengths::uniform(512, 0.25), "{text}");
    }
    assert_eq!(Lengths::fixed(512).unwrap().describe(), "512");
    assert_eq!(Lengths::uniform(512, 0.25).unwrap().describe(), "512 ± 25 %");
}

#[test]
fn refuses_what_is_no_length() {
    for text in ["", "-3", "1e2", "12.5", "abc", "512±", "512±x%", "512±25", "+5", "±5%"] {
        assert_eq!(
            text.parse::<Lengths>(),
            Err(LengthError::NotALength(text.to_owned())),
            "{text}"
        );
    }
    assert_eq!("0".parse::<Lengths>(), Err(LengthError::Zero));
    assert_eq!("16777217".parse::<Lengths>(), Err(LengthError::TooLarge(16_777_217)));
    assert_eq!("99999999999999999999999".parse::<Lengths>(), Err(LengthError::TooLarge(u64::MAX)));
    assert_eq!("512±100%".parse::<Lengths>(), Err(LengthError::Spread(100.0)));
    assert!("512±NaN%".parse::<Lengths>().is_err());
}

#[test]
fn both_ends_of_a_uniform_length_are_drawn() {
    let lengths = Lengths::uniform(8, 0.25).unwrap();
    assert_eq!(lengths.range(), (Tokens::new(6), Tokens::new(10)));
    let mut stream = Stream::new(1, "test");
    let mut seen = [0u32; 11];
    for _ in 0..5_000 {
        seen[lengths.draw(&mut stream).get() as usize] += 1;
    }
    assert_eq!(seen[..6], [0; 6]);
    // 1000 each expected; 4.5 standard deviations of a binomial are 127.
    assert!(seen[6..].iter().all(|n| (873..1127).contains(n)), "{seen:?}");
}

#[test]
fn a_short_length_never_reaches_zero() {
    assert_eq!(Lengths::uniform(1, 0.9).unwrap().range(), (Tokens::new(1), Tokens::new(2)));
    assert_eq!(Lengths::uniform(10, 0.1).unwrap().range(), (Tokens::new(9), Tokens::new(11)));
}

proptest! {
    #[test]
    fn what_is_described_is_read_back(mean in 1..=MAX_TOKENS, per_mille in 0u32..1000) {
        let lengths = Lengths::uniform(mean, f64::from(per_mille) / 1000.0).unwrap();
        let again: Lengths = lengths.describe().parse().unwrap();
        prop_assert_eq!(again.range(), lengths.range());
    }

    #[test]
    fn draws_stay_in_range(mean in 1..=MAX_TOKENS, spread in 0.0..0.999f64, seed: u64) {
        let lengths = Lengths::uniform(mean, spread).unwrap();
        let (low, high) = lengths.range();
        let drawn = lengths.draw(&mut Stream::new(seed, "test"));
        prop_assert!(low <= drawn && drawn <= high);
        prop_assert!(low >= Tokens::new(1));
    }

    #[test]
    fn any_text_is_a_length_or_an_error(text in ".{0,20}") {
        let _ = text.parse::<Lengths>();
    }
}

#[test]
fn a_normal_draw_is_the_formula_over_two_uniform_ones() {
    let mut stream = Stream::new(9, "test");
    let mut same = stream.clone();
    for _ in 0..100 {
        let (u, v) = (same.unit(), same.unit());
        let expected = (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos();
        assert!((stream.normal() - expected).abs() < 1e-12);
    }
}

/// Φ, by Zelen and Severo's formula (Abramowitz and Stegun 26.2.17), off by
/// less than 7.5·10⁻⁸.
fn phi(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let terms = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let tail = terms.iter().fold(0.0, |sum, term| (sum + term) * t);
    let tail = tail * (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// The largest distance between the share of draws up to a length and what the
/// distribution gives, over all lengths drawn.
fn distance(lengths: &Lengths, seed: u64, of: impl Fn(f64) -> f64) -> f64 {
    let mut stream = Stream::new(seed, "test");
    let mut drawn: Vec<u32> = (0..DRAWS).map(|_| lengths.draw(&mut stream).get()).collect();
    drawn.sort_unstable();
    let far = |(place, tokens): (usize, &u32)| {
        let last = drawn.get(place + 1) != Some(tokens);
        let share = (place + 1) as f64 / DRAWS as f64;
        if last { (share - of(f64::from(*tokens) + 0.5)).abs() } else { 0.0 }
    };
    drawn.iter().enumerate().map(far).fold(0.0, f64::max)
}

const DRAWS: usize = 20_000;

/// Kolmogorov and Smirnov's critical distance at 0.1 %.
fn critical() -> f64 {
    1.95 / (DRAWS as f64).sqrt()
}

#[test]
fn bell_shaped_lengths_follow_their_curve_and_a_cut_one_has_no_heaps() {
    let normal: Lengths = "normal:mean=512,std=64".parse().unwrap();
    let lognormal: Lengths = "lognormal:median=512,sigma=0.6".parse().unwrap();
    let cut: Lengths = "normal:mean=512,std=64,min=480,max=600".parse().unwrap();
    for seed in 0..5 {
        assert!(distance(&normal, seed, |x| phi((x - 512.0) / 64.0)) < critical());
        assert!(distance(&lognormal, seed, |x| phi((x / 512.0).ln() / 0.6)) < critical());
        let of = |x: f64| phi((x - 512.0) / 64.0);
        let (low, high) = (of(479.5), of(600.5));
        assert!(distance(&cut, seed, |x| (of(x) - low) / (high - low)) < critical());
    }
}

#[test]
fn bounds_narrower_than_the_curve_are_filled_evenly() {
    let narrow: Lengths = "normal:mean=512,std=5000,min=512,max=521".parse().unwrap();
    let even = |x: f64| (x - 511.5) / 10.0;
    assert!(distance(&narrow, 3, even) < critical());
    let one: Lengths = "lognormal:median=512,sigma=9,min=512,max=512".parse().unwrap();
    assert_eq!(one.draw(&mut Stream::new(1, "test")), Tokens::new(512));
}

#[test]
fn a_lognormal_length_is_named_by_its_median_or_its_mean() {
    // scipy: lognorm(s, scale=median).stats() has mean 1000 and std 1000 for
    // s = sqrt(ln 2) and median = 1000/sqrt(2).
    let by_mean: Lengths = "lognormal:mean=1000,std=1000,max=100000".parse().unwrap();
    let median = 1000.0 / 2f64.sqrt();
    let by_median = Bell::lognormal(median, 2f64.ln().sqrt(), None, Some(100_000)).unwrap();
    let far = |one: &Lengths, other: &Lengths| {
        let draw = |lengths: &Lengths, n| lengths.draw(&mut Stream::numbered(2, "test", n)).get();
        (0..1000).filter(|n| draw(one, *n).abs_diff(draw(other, *n)) > 1).count()
    };
    assert_eq!(far(&by_mean, &Lengths::Bell(by_median)), 0);
    assert!((by_mean.mean() - 1000.0).abs() < 1e-9);
    let mut stream = Stream::new(4, "test");
    let sum: f64 = (0..DRAWS).map(|_| f64::from(by_mean.draw(&mut stream).get())).sum();
    // Five standard errors: 1000/√20000 each.
    assert!((sum / DRAWS as f64 - 1000.0).abs() < 36.0, "{}", sum / DRAWS as f64);
}

#[test]
fn a_histogram_gives_each_entry_its_share() {
    let lengths: Lengths = "histogram:128:0.5, 512-513:3e-1,2048:0.2,7:0".parse().unwrap();
    assert_eq!("128:0.5,512-513:0.3,2048:0.2,7:0".parse(), Ok(lengths.clone()));
    assert_eq!(lengths.range(), (Tokens::new(128), Tokens::new(2048)));
    assert!((lengths.mean() - (64.0 + 0.3 * 512.5 + 409.6)).abs() < 1e-9);
    let mut stream = Stream::new(5, "test");
    let mut seen = std::collections::BTreeMap::new();
    for _ in 0..DRAWS {
        *seen.entry(lengths.draw(&mut stream).get()).or_insert(0u32) += 1;
    }
    // Expected 10000, 3000, 3000 and 4000; five standard deviations at most.
    for (tokens, expected) in [(128, 10_000), (512, 3_000), (513, 3_000), (2048, 4_000)] {
        let expected: u32 = expected;
        assert!(seen[&tokens].abs_diff(expected) < 360, "{seen:?}");
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn distributions_that_are_none_are_refused_with_the_rule() {
    for (text, words) in [
        ("normal:mean=512", "mean and std"),
        ("normal:mean=512,std=0", "above 0"),
        ("normal:mean=512,std=64,sigma=1", "normal has mean, std, min and max"),
        ("normal:mean=512,std=64,min=600", "must lie between"),
        ("normal:mean=512,std=64,max=100", "must lie between"),
        ("normal:mean=512,std=64,min=0", "at least 1"),
        ("normal:mean=512,mean=3,std=64", "each once"),
        ("normal:mean=nan,std=64", "each once"),
        ("normal:mean=0.4,std=64", "from 1 to"),
        ("normal:", "each once"),
        ("lognormal:median=512,std=3", "median and sigma"),
        ("lognormal:median=512,sigma=11", "up to 10"),
        ("lognormal:mean=1e9,std=1", "from 1 to"),
        ("128:0.5,abc", "LENGTH:WEIGHT"),
        ("128:-1", "at least 0"),
        ("128:0,3:0", "above 0"),
        ("128:nan", "at least 0"),
        ("0:1", "at least 1"),
        ("300-200:1", "FROM-TO"),
        ("histogram:", "LENGTH:WEIGHT"),
        ("histogram:lengths.csv", "names a file"),
    ] {
        let told = text.parse::<Lengths>().map(|lengths| lengths.describe());
        let told = told.expect_err(text).to_string();
        assert!(told.contains(words), "{text}: {told}");
    }
    assert_eq!(Lengths::file_of("histogram:lengths.csv"), Some("lengths.csv"));
    assert_eq!(Lengths::file_of("histogram:1:2"), None);
}

proptest! {
    #[test]
    fn every_distribution_stays_in_range_and_is_read_back(
        middle in 1u32..100_000, width in 0.001..50_000f64, sigma in 0.001..10f64, seed: u64,
        below in 0u32..1000, above in 0u32..1000,
        weights in prop::collection::vec(0.01..9f64, 1..9),
    ) {
        let (min, max) = (middle.saturating_sub(below).max(1), middle + above);
        let centre = f64::from(middle);
        let buckets = weights.iter().enumerate().map(|(place, weight)| Bucket {
            low: Tokens::new(middle + place as u32),
            high: Tokens::new(middle + 2 * place as u32),
            weight: *weight,
        });
        for lengths in [
            Lengths::Bell(Bell::normal(centre, width, Some(min), Some(max)).unwrap()),
            Lengths::Bell(Bell::lognormal(centre, sigma, Some(min), Some(max)).unwrap()),
            Lengths::Bell(Bell::normal(centre, width, None, None).unwrap()),
            Lengths::histogram(buckets.collect()).unwrap(),
        ] {
            let (low, high) = lengths.range();
            for number in 0..20 {
                let drawn = lengths.draw(&mut Stream::numbered(seed, "test", number));
                prop_assert!(low <= drawn && drawn <= high && low >= Tokens::new(1));
            }
            let again: Lengths = lengths.describe().parse().unwrap();
            prop_assert_eq!(&again, &lengths);
            let digest = |lengths: &Lengths| {
                let mut digest = Digest::new();
                lengths.digest(&mut digest);
                digest
            };
            prop_assert_eq!(digest(&again), digest(&lengths));
        }
    }
}
