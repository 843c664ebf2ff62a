use super::*;
use crate::arrival::{Arrivals, Pace, Process};
use crate::stream::Stream;
use measure::At;
use proptest::prelude::*;

fn rate(per_second: f64) -> PerSecond {
    PerSecond::new(per_second)
}

fn stage(per_second: f64, seconds: f64) -> Stage {
    Stage { rate: rate(per_second), lasts: Span::from_s(seconds) }
}

fn ramp(from: f64, to: f64, over_s: f64, growth: Growth) -> Shape {
    Shape::Ramp { from: rate(from), to: rate(to), over: Span::from_s(over_s), growth }
}

fn sine(mean: f64, amplitude: f64, period_s: f64) -> Shape {
    Shape::Sine { mean: rate(mean), amplitude: rate(amplitude), period: Span::from_s(period_s) }
}

fn bursts(on: Stage, off: Stage) -> Shape {
    Shape::Bursts { on, off }
}

/// A rate over time, written down a second time.
type RateAt = fn(f64) -> f64;

fn shapes() -> Vec<(Shape, RateAt)> {
    vec![
        (Shape::Flat(rate(20.0)), |_| 20.0),
        (ramp(5.0, 45.0, 80.0, Growth::Linear), |s| (5.0 + s / 2.0).min(45.0)),
        (ramp(0.0, 40.0, 80.0, Growth::Linear), |s| (s / 2.0).min(40.0)),
        (ramp(40.0, 10.0, 100.0, Growth::Linear), |s| (40.0 - 0.3 * s).max(10.0)),
        (ramp(2.0, 64.0, 100.0, Growth::Exponential), |s| (2.0 * 32f64.powf(s / 100.0)).min(64.0)),
        (ramp(64.0, 2.0, 100.0, Growth::Exponential), |s| (64.0 / 32f64.powf(s / 100.0)).max(2.0)),
        (
            Shape::Stages(vec![stage(10.0, 40.0), stage(0.0, 20.0), stage(30.0, 60.0)]),
            |s| match s {
                ..40.0 => 10.0,
                ..60.0 => 0.0,
                ..120.0 => 30.0,
                _ => 0.0,
            },
        ),
        (sine(20.0, 10.0, 60.0), |s| 20.0 + 10.0 * (std::f64::consts::TAU * s / 60.0).sin()),
        (sine(20.0, 20.0, 7.0), |s| 20.0 + 20.0 * (std::f64::consts::TAU * s / 7.0).sin()),
        (bursts(stage(60.0, 5.0), stage(0.0, 10.0)), |s| if s % 15.0 < 5.0 { 60.0 } else { 0.0 }),
        (bursts(stage(0.0, 3.0), stage(30.0, 6.0)), |s| if s % 9.0 < 3.0 { 0.0 } else { 30.0 }),
        (bursts(stage(40.0, 4.0), stage(5.0, 6.0)), |s| if s % 10.0 < 4.0 { 40.0 } else { 5.0 }),
    ]
}

fn arrivals(process: Process, shape: &Shape, seed: u64, end_s: f64) -> Vec<At> {
    let pace = Pace { process, shape: shape.clone() };
    Arrivals::new(pace, Stream::new(seed, "arrivals"))
        .take_while(|at| *at < At::ZERO + Span::from_s(end_s))
        .collect()
}

fn seconds(arrivals: &[At]) -> Vec<f64> {
    arrivals.iter().map(|at| (*at - At::ZERO).s()).collect()
}

/// The distance of Kolmogorov and Smirnov from a law, times √n: below 1.63 in
/// 99 of 100 cases.
fn distance(mut draws: Vec<f64>, law: impl Fn(f64) -> f64) -> f64 {
    draws.sort_by(f64::total_cmp);
    let n = draws.len() as f64;
    let of = |(place, draw): (usize, &f64)| {
        let (expected, below) = (law(*draw), place as f64 / n);
        (expected - below).abs().max((below + 1.0 / n - expected).abs())
    };
    draws.iter().enumerate().map(of).fold(0.0, f64::max) * n.sqrt()
}

#[test]
fn expected_arrivals_are_the_integral_of_the_rate() {
    const STEPS: usize = 120_000;
    for (shape, rate_at) in shapes() {
        let width = 120.0 / STEPS as f64;
        let mut sum = 0.0;
        for step in 0..STEPS {
            sum += rate_at((step as f64 + 0.5) * width) * width;
            let until = (step + 1) as f64 * width;
            let expected = shape.expected_until(until);
            assert!((expected - sum).abs() < 0.06, "{}: {expected} at {until}", shape.describe());
        }
        assert_eq!(shape.check(), Ok(()));
    }
}

#[test]
fn instants_are_the_inverse_of_expected_arrivals() {
    for (shape, _) in shapes() {
        let mut last = 0.0;
        for step in 0..20_000 {
            let expected = f64::from(step) * 0.07;
            let Some(at) = shape.instant_of(expected) else {
                assert!(shape.expected_until(1e9) <= expected, "{}", shape.describe());
                continue;
            };
            assert!(at >= last, "{}: {at} after {last}", shape.describe());
            last = at;
            let again = shape.expected_until(at);
            assert!((again - expected).abs() < 1e-6, "{}: {again} {expected}", shape.describe());
        }
    }
}

/// Put back through Λ, the arrivals of every shape are those of a Poisson
/// process of rate 1. The seeds are fixed, so this is no lottery.
#[test]
fn rescaled_poisson_arrivals_are_exponential_in_every_shape() {
    for (shape, _) in shapes() {
        for seed in 0..3 {
            let at = seconds(&arrivals(Process::Poisson, &shape, seed, 120.0));
            assert!(at.len() > 700, "{}", shape.describe());
            let unit: Vec<f64> =
                std::iter::once(0.0).chain(at.iter().map(|s| shape.expected_until(*s))).collect();
            let gaps = unit.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let distance = distance(gaps, |gap| -(-gap).exp_m1());
            assert!(distance < 1.63, "{}, seed {seed}: {distance}", shape.describe());
        }
    }
}

/// Given their number, arrivals of a Poisson process lie as Λ(t) ÷ Λ(end): this
/// holds the instants to the rates and not only to their own inverse.
#[test]
fn arrivals_lie_where_the_rate_puts_them() {
    for (shape, rate_at) in shapes() {
        let integral: Vec<f64> = (0..=12_000)
            .scan(0.0, |sum, step| {
                let before = *sum;
                *sum += rate_at((f64::from(step) + 0.5) / 100.0) / 100.0;
                Some(before)
            })
            .collect();
        let at = seconds(&arrivals(Process::Poisson, &shape, 11, 120.0));
        let law = |s: f64| integral[(s * 100.0) as usize] / integral[12_000];
        let distance = distance(at, law);
        assert!(distance < 1.8, "{}: {distance}", shape.describe());
    }
}

#[test]
fn ramps_start_and_end_at_the_rates_asked_for() {
    let slope = |shape: &Shape, s: f64| {
        (shape.expected_until(s + 1e-4) - shape.expected_until((s - 1e-4).max(0.0)))
            / (s + 1e-4 - (s - 1e-4).max(0.0))
    };
    let near = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 1e-3, "{got} {wanted}");
    let linear = ramp(4.0, 36.0, 60.0, Growth::Linear);
    let exponential = ramp(4.0, 36.0, 60.0, Growth::Exponential);
    for shape in [&linear, &exponential] {
        near(slope(shape, 0.0), 4.0);
        near(slope(shape, 59.999), 36.0);
        near(slope(shape, 90.0), 36.0);
    }
    // Half way in time: the arithmetic and the geometric mean.
    near(slope(&linear, 30.0), 20.0);
    near(slope(&exponential, 30.0), 12.0);
    near(linear.expected_until(60.0), 1_200.0);
    near(exponential.expected_until(60.0), 60.0 * 32.0 / 9f64.ln());
    near(Growth::Linear.mean(rate(4.0), rate(36.0)).get(), 20.0);
    near(Growth::Exponential.mean(rate(4.0), rate(36.0)).get(), 32.0 / 9f64.ln());
    near(Growth::Exponential.mean(rate(4.0), rate(4.0)).get(), 4.0);
}

#[test]
fn arrivals_near_the_end_of_a_ramp_come_at_its_end_rate() {
    for growth in [Growth::Linear, Growth::Exponential] {
        let shape = ramp(100.0, 1_000.0, 100.0, growth);
        let at = seconds(&arrivals(Process::Poisson, &shape, 5, 120.0));
        let last = at.iter().filter(|s| (99.0..100.0).contains(*s)).count() as f64;
        let held = at.iter().filter(|s| (100.0..120.0).contains(*s)).count() as f64 / 20.0;
        // Four standard deviations: 4·√1000 of a second, 4·√20000 ÷ 20 of twenty.
        assert!((last - 1_000.0).abs() < 135.0, "{growth:?} {last}");
        assert!((held - 1_000.0).abs() < 29.0, "{growth:?} {held}");
    }
}

#[test]
fn constant_arrivals_fill_stages_and_bursts_exactly() {
    let us = |shape: &Shape, end_s| -> Vec<i64> {
        arrivals(Process::Constant, shape, 1, end_s).iter().map(|at| at.us()).collect()
    };
    let stages = Shape::Stages(vec![stage(2.0, 1.0), stage(0.0, 5.0), stage(4.0, 1.0)]);
    assert_eq!(us(&stages, 60.0), [0, 500_000, 6_000_000, 6_250_000, 6_500_000, 6_750_000]);
    let bursts = bursts(stage(2.0, 1.0), stage(0.0, 9.0));
    assert_eq!(us(&bursts, 21.0), [0, 500_000, 10_000_000, 10_500_000, 20_000_000, 20_500_000]);
    // 4t²/2·2 = i: the instants of an even ramp from 0 to 4 in 2 s are √i.
    let root = |i: u32| (f64::from(i).sqrt() * 1e6).round() as i64;
    let even = ramp(0.0, 4.0, 2.0, Growth::Linear);
    assert_eq!(us(&even, 2.0), [root(0), root(1), root(2), root(3)]);
}

#[test]
fn uniform_arrivals_are_one_in_each_interval() {
    for (shape, _) in shapes() {
        let at = seconds(&arrivals(Process::Uniform, &shape, 9, 120.0));
        let places: Vec<f64> = at.iter().map(|s| shape.expected_until(*s)).collect();
        for (place, expected) in places.iter().enumerate() {
            // A microsecond of rounding is 6·10⁻⁵ of an arrival.
            let range = place as f64 - 1e-4..place as f64 + 1.0 + 1e-4;
            assert!(range.contains(expected), "{}: {place} {expected}", shape.describe());
        }
        let offsets = places.iter().enumerate().map(|(place, at)| at - place as f64).collect();
        assert!(distance(offsets, |x| x.clamp(0.0, 1.0)) < 1.63, "{}", shape.describe());
    }
}

/// Gaps of shape 4 have the law 1 − e^(−4g)·(1 + 4g + (4g)²/2 + (4g)³/6), by
/// counting a Poisson process; so the law owes nothing to the generator.
#[test]
fn gamma_gaps_have_their_law_in_every_shape() {
    let law = |gap: f64| {
        let x = 4.0 * gap;
        1.0 - (-x).exp() * (1.0 + x + x * x / 2.0 + x * x * x / 6.0)
    };
    for (shape, _) in shapes() {
        let at = arrivals(Process::Gamma { burstiness: 4.0 }, &shape, 2, 120.0);
        let unit: Vec<f64> = std::iter::once(0.0)
            .chain(seconds(&at).iter().map(|s| shape.expected_until(*s)))
            .collect();
        let gaps = unit.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let distance = distance(gaps, law);
        assert!(distance < 1.63, "{}: {distance}", shape.describe());
    }
}

#[test]
fn totals_of_stages_are_near_what_is_expected() {
    let shape = Shape::Stages(vec![stage(50.0, 20.0), stage(5.0, 20.0), stage(200.0, 20.0)]);
    for seed in 0..20 {
        let at = seconds(&arrivals(Process::Poisson, &shape, seed, 60.0));
        for (begin, expected) in [(0.0, 1_000.0), (20.0, 100.0), (40.0, 4_000.0)] {
            let drawn = at.iter().filter(|s| (begin..begin + 20.0).contains(*s)).count() as f64;
            // 4.5 standard deviations of a Poisson count.
            let bound = 4.5 * f64::sqrt(expected);
            assert!((drawn - expected).abs() < bound, "seed {seed}: {drawn} of {expected}");
        }
    }
}

#[test]
fn phases_are_what_a_reader_thinks_of() {
    let ends = |shape: &Shape, end_s: f64| -> Vec<(f64, f64)> {
        let phases = shape.phases(Span::from_s(end_s));
        phases.iter().map(|phase| (phase.until.s(), phase.expected.round())).collect()
    };
    assert_eq!(ends(&Shape::Flat(rate(4.0)), 10.0), [(10.0, 40.0)]);
    let even = ramp(0.0, 10.0, 10.0, Growth::Linear);
    assert_eq!(
        ends(&even, 12.0),
        [(2.0, 2.0), (4.0, 6.0), (6.0, 10.0), (8.0, 14.0), (10.0, 18.0), (12.0, 20.0)]
    );
    let stages = Shape::Stages(vec![stage(5.0, 30.0), stage(10.0, 30.0)]);
    assert_eq!(ends(&stages, 60.0), [(30.0, 150.0), (60.0, 300.0)]);
    assert_eq!(ends(&stages, 40.0), [(30.0, 150.0), (40.0, 100.0)]);
    assert_eq!(ends(&sine(10.0, 5.0, 60.0), 60.0), [(30.0, 395.0), (60.0, 205.0)]);
    let bursts = bursts(stage(20.0, 5.0), stage(0.0, 10.0));
    assert_eq!(ends(&bursts, 18.0), [(5.0, 100.0), (15.0, 0.0), (18.0, 60.0)]);
    let fast = sine(10.0, 5.0, 0.001);
    let phases = fast.phases(Span::from_s(3_600.0));
    assert_eq!((phases.len(), phases[MAX_PHASES - 1].until), (MAX_PHASES, Span::from_s(3_600.0)));
}

#[test]
fn every_broken_rule_has_its_error() {
    let wrong = |shape: &Shape| shape.check().unwrap_err();
    let linear = |from, to| ramp(from, to, 10.0, Growth::Linear);
    assert_eq!(wrong(&linear(-1.0, 5.0)), ShapeError::RampStart(-1.0));
    assert_eq!(wrong(&linear(1.0, 0.0)), ShapeError::RampEnd(0.0));
    assert_eq!(wrong(&linear(1.0, 2e6)), ShapeError::TooHigh(2e6));
    assert_eq!(wrong(&ramp(0.0, 5.0, 9.0, Growth::Exponential)), ShapeError::RampFromNothing);
    let none = Span::ZERO;
    assert_eq!(wrong(&ramp(1.0, 5.0, 0.0, Growth::Linear)), ShapeError::RampLength(none));
    assert_eq!(wrong(&Shape::Stages(Vec::new())), ShapeError::NoStage);
    let stages = |stage: Stage| {
        Shape::Stages(vec![Stage { rate: rate(1.0), lasts: HORIZON - Span::from_ms(1_000) }, stage])
    };
    assert_eq!(wrong(&stages(stage(-2.0, 1.0))), ShapeError::StageRate { place: 2, rate: -2.0 });
    assert_eq!(wrong(&stages(stage(2.0, 0.0))), ShapeError::StageLength { place: 2, lasts: none });
    assert_eq!(wrong(&stages(stage(2.0, 2.0))), ShapeError::StagesTooLong);
    let silent = Shape::Stages(vec![stage(0.0, 1.0)]);
    assert_eq!(wrong(&silent), ShapeError::Silent("--stages"));
    let many = Shape::Stages(vec![stage(1.0, 1.0); MAX_STAGES + 1]);
    assert_eq!(wrong(&many), ShapeError::TooManyStages(MAX_STAGES + 1));
    assert_eq!(wrong(&sine(0.0, 0.0, 1.0)), ShapeError::SineMean(0.0));
    let steep = ShapeError::SineAmplitude { mean: 10.0, amplitude: 10.5 };
    assert_eq!(wrong(&sine(10.0, 10.5, 1.0)), steep);
    assert!(steep.to_string().contains("amplitude of a sine must be from 0 to its mean of 10"));
    assert_eq!(wrong(&sine(10.0, 1.0, 0.0)), ShapeError::SinePeriod(none));
    let burst = |on, off| bursts(stage(on, 1.0), stage(off, 1.0));
    assert_eq!(wrong(&burst(-1.0, 0.0)), ShapeError::BurstRate("on", -1.0));
    assert_eq!(wrong(&burst(1.0, -1.0)), ShapeError::BurstRate("off", -1.0));
    assert_eq!(wrong(&burst(0.0, 0.0)), ShapeError::Silent("bursts"));
    let instant = bursts(stage(1.0, 1.0), stage(0.0, 0.0));
    assert_eq!(wrong(&instant), ShapeError::BurstLength("off_for", none));
    for rate in [f64::NAN, f64::INFINITY] {
        assert!(burst(rate, 1.0).check().is_err());
        assert!(linear(rate, 1.0).check().is_err() && linear(1.0, rate).check().is_err());
        assert!(sine(rate, 1.0, 1.0).check().is_err() && sine(1.0, rate, 1.0).check().is_err());
        assert!(stages(stage(rate, 0.5)).check().is_err());
    }
}

#[test]
fn a_shape_says_what_it_is() {
    assert_eq!(
        ramp(1.0, 10.0, 60.0, Growth::Linear).describe(),
        "linear ramp from 1 to 10 req/s over 60 s"
    );
    let stages = Shape::Stages(vec![stage(5.0, 30.0), stage(2.5, 0.5)]);
    assert_eq!(stages.describe(), "2 stages (5 req/s for 30 s, 2.5 req/s for 0.5 s)");
    let many = Shape::Stages(vec![stage(5.0, 1.0); 5]);
    assert!(many.describe().ends_with("5 req/s for 1 s, …)"), "{}", many.describe());
    assert_eq!(sine(10.0, 5.0, 60.0).describe(), "sine of 10 ± 5 req/s, period 60 s");
    assert_eq!(
        bursts(stage(20.0, 5.0), stage(0.0, 10.0)).describe(),
        "bursts (20 req/s for 5 s, then 0 req/s for 10 s)"
    );
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let stages = || (0.0..500.0f64, 0.001..100.0f64).prop_map(|(r, s)| stage(r, s));
    prop_oneof![
        (0.01..1e4f64).prop_map(|r| Shape::Flat(rate(r))),
        (0.0..1e3f64, 0.01..1e3f64, 0.01..1e3f64).prop_map(|(from, to, s)| ramp(
            from,
            to,
            s,
            Growth::Linear
        )),
        (0.01..1e3f64, 0.01..1e3f64, 0.01..1e3f64).prop_map(|(from, to, s)| ramp(
            from,
            to,
            s,
            Growth::Exponential
        )),
        prop::collection::vec(stages(), 1..8).prop_map(Shape::Stages),
        (0.01..1e3f64, 0.0..=1.0f64, 0.01..1e3f64).prop_map(|(mean, share, s)| sine(
            mean,
            mean * share,
            s
        )),
        (stages(), stages()).prop_map(|(on, off)| bursts(on, off)),
    ]
}

proptest! {
    #[test]
    fn any_shape_is_inverted(shape in any_shape(), expected in 0.0..1e5f64) {
        prop_assume!(shape.check().is_ok());
        let Some(at) = shape.instant_of(expected) else {
            prop_assert!(shape.lasts().is_some());
            return Ok(());
        };
        prop_assert!(at >= 0.0);
        // A nanosecond at the highest rate, and the rounding of the sum.
        let error = (shape.expected_until(at) - expected).abs();
        prop_assert!(error <= 1e-8 * shape.peak().get() + 1e-9 * expected.max(1.0), "{}", error);
        let later = shape.instant_of(expected + 0.5).unwrap_or(f64::INFINITY);
        prop_assert!(later + 1e-8 >= at);
    }

    #[test]
    fn phases_cover_the_plan_and_add_up(shape in any_shape(), end_s in 0.001..500.0f64) {
        let end = Span::from_s(end_s);
        let phases = shape.phases(end);
        prop_assert_eq!(phases[0].from, Span::ZERO);
        prop_assert!(phases.windows(2).all(|pair| pair[0].until == pair[1].from));
        let covered = phases.last().unwrap().until;
        prop_assert!(covered == end || shape.lasts() == Some(covered));
        let sum: f64 = phases.iter().map(|phase| phase.expected).sum();
        let whole = shape.expected_until(covered.s());
        prop_assert!((sum - whole).abs() <= 1e-6 * whole.max(1.0), "{} {}", sum, whole);
    }
}
