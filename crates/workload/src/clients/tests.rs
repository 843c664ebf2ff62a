use proptest::prelude::*;

use super::*;
use crate::length::Bucket;

fn s(seconds: i64) -> Span {
    Span::from_ms(seconds * 1_000)
}

fn active(from: i64, until: i64, rate: f64, gaps: Gaps) -> Active {
    let rate = PerSecond::new(rate);
    Active { from: s(from), until: s(until), rate, gaps, source_row: 1 }
}

fn client(number: u32, active: Vec<Active>) -> Client {
    Client { number, active }
}

/// Three clients of 600 s windows: a bursty one, an even one with a silence,
/// and one by a Poisson process.
fn service() -> Vec<Client> {
    let weibull = Gaps::Weibull { shape: 0.35 };
    let gamma = Gaps::Gamma { shape: 3.0 };
    vec![
        client(12, vec![active(0, 600, 1.5, weibull), active(600, 1_200, 0.5, weibull)]),
        client(3, vec![active(0, 600, 0.8, gamma), active(1_200, 1_800, 2.0, gamma)]),
        client(7, vec![active(600, 1_800, 0.25, Gaps::Exponential)]),
    ]
}

const WHOLE: (Span, Span) = (Span::ZERO, Span::from_ms(1_800_000));

fn drawn(clients: &Clients, seed: u64, part: (Span, Span)) -> Vec<(Span, u32)> {
    let arrivals = clients.arrivals(seed, part, None, 1_000_000).unwrap();
    arrivals.iter().map(|(at, from)| (*at, clients.all()[from.client as usize].number)).collect()
}

#[test]
fn ln_gamma_is_that_of_factorials_and_tables() {
    for n in 1..=20_u32 {
        let factorial: f64 = (1..=n).map(f64::from).product();
        let found = ln_gamma(f64::from(n) + 1.0);
        assert!((found - factorial.ln()).abs() < 1e-11 * factorial.ln().max(1.0), "{n}: {found}");
    }
    // Γ(1.5) = √π/2, Γ(1.1) and the minimum near 1.4616 from Abramowitz and
    // Stegun, table 6.1.
    let near = |x: f64, gamma: f64| assert!((ln_gamma(x).exp() - gamma).abs() < 1e-9, "{x}");
    near(1.5, std::f64::consts::PI.sqrt() / 2.0);
    near(1.1, 0.951_350_769_9);
    near(1.461_632_144_968, 0.885_603_194_4);
    // ln 1000! from Stirling's own formula with its next term.
    assert!((ln_gamma(1_001.0) - 5_912.128_178_488_2).abs() < 1e-8);
}

#[test]
fn a_weibull_gap_is_a_power_of_an_exponential() {
    // Γ(1 + 1/0.5) = 2, Γ(1 + 1/0.25) = 24.
    for (shape, power, mean) in [(0.5, 2, 2.0), (0.25, 4, 24.0), (1.0, 1, 1.0)] {
        let (mut stream, mut plain) = (Stream::new(4, "gaps"), Stream::new(4, "gaps"));
        for _ in 0..100 {
            let expected = plain.exponential().powi(power) / mean;
            let gap = Gaps::Weibull { shape }.draw(&mut stream);
            assert!((gap - expected).abs() <= 1e-11 * expected, "{shape}: {gap} {expected}");
        }
    }
}

/// The gamma distribution function at `x` for the scale 1, by its series
/// (Abramowitz and Stegun, 6.5.29), with Γ(shape + 1) given.
fn gamma_cdf(shape: f64, gamma: f64, x: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for n in 1..1_000 {
        term *= x / (shape + f64::from(n));
        sum += term;
    }
    (sum.ln() + shape * x.ln() - x - gamma.ln()).exp()
}

/// Kolmogorov and Smirnov: with n gaps the distance stays below 1.63/√n in 99
/// of 100 cases; the seeds are fixed.
#[test]
fn gaps_follow_the_distribution_that_was_asked_for() {
    let root_pi = std::f64::consts::PI.sqrt();
    type Cdf = Box<dyn Fn(f64) -> f64>;
    // Each as a function of the gap in means.
    let cases: Vec<(Gaps, Cdf)> = vec![
        (Gaps::Exponential, Box::new(|x| -(-x).exp_m1())),
        (
            Gaps::Gamma { shape: 0.5 },
            Box::new(move |x| gamma_cdf(0.5, root_pi / 2.0, 0.5 * x).min(1.0)),
        ),
        (Gaps::Gamma { shape: 3.0 }, Box::new(|x| gamma_cdf(3.0, 6.0, 3.0 * x).min(1.0))),
        (Gaps::Weibull { shape: 0.5 }, Box::new(|x| -(-(2.0 * x).sqrt()).exp_m1())),
        (Gaps::Weibull { shape: 0.25 }, Box::new(|x| -(-(24.0 * x).powf(0.25)).exp_m1())),
        (Gaps::Weibull { shape: 2.0 }, Box::new(move |x| -(-(root_pi / 2.0 * x).powi(2)).exp_m1())),
    ];
    for (gaps, cdf) in cases {
        for seed in 0..3 {
            // So slow that rounding to microseconds moves no gap to another.
            let (rate, end) = (1e-6, 20_000_000_000);
            let clients = Clients::new(vec![client(1, vec![active(0, end, rate, gaps)])]);
            let at = clients.arrivals(seed, (Span::ZERO, s(end)), None, 100_000).unwrap();
            let mut found: Vec<f64> =
                at.windows(2).map(|pair| (pair[1].0 - pair[0].0).s() * rate).collect();
            found.sort_by(f64::total_cmp);
            let n = found.len() as f64;
            let distance = (0..)
                .zip(&found)
                .map(|(place, gap)| {
                    let (expected, below) = (cdf(*gap), f64::from(place) / n);
                    (expected - below).abs().max((below + 1.0 / n - expected).abs())
                })
                .fold(0.0, f64::max);
            assert!(n > 10_000.0, "{gaps:?}: {n} gaps");
            assert!(distance < 1.63 / n.sqrt(), "{gaps:?}, seed {seed}: {distance}");
        }
    }
}

/// The mean of 20 000 counts lies within 3.29 of its standard errors of rate ×
/// time in 999 of 1000 cases. A client that began each time with a whole gap
/// would have far more where gaps vary much.
#[test]
fn a_client_has_rate_times_time_requests_on_average() {
    let times = 20_000;
    for gaps in [
        Gaps::Exponential,
        Gaps::Gamma { shape: 0.1 },
        Gaps::Gamma { shape: 5.0 },
        Gaps::Weibull { shape: 0.35 },
        Gaps::Weibull { shape: 2.0 },
    ] {
        let windows = (0..times).map(|n| active(n * 100, (n + 1) * 100, 0.05, gaps)).collect();
        let clients = Clients::new(vec![client(5, windows)]);
        let part = (Span::ZERO, s(times * 100));
        assert!((clients.expected(part) - 100_000.0).abs() < 1e-6);
        let arrivals = clients.arrivals(11, part, None, 1_000_000).unwrap();
        let mut counts = vec![0.0_f64; times as usize];
        for (_, origin) in &arrivals {
            counts[origin.active as usize] += 1.0;
        }
        let n = times as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = 3.29 * (variance / n).sqrt();
        assert!((mean - 5.0).abs() < error, "{gaps:?}: {mean} ± {error}");
        assert!(error < 0.4, "{gaps:?}: {error}");
    }
}

#[test]
fn neither_the_order_of_clients_nor_others_beside_them_move_a_request() {
    let in_order = Clients::new(service());
    let mut turned = service();
    turned.reverse();
    let turned = Clients::new(turned);
    assert_eq!(in_order, turned);
    let all = drawn(&in_order, 9, WHOLE);
    assert!(all.is_sorted());
    assert_eq!(all, drawn(&turned, 9, WHOLE));
    assert_ne!(all, drawn(&in_order, 10, WHOLE));
    let alone = Clients::new(service().drain(2..).collect());
    let of_seven: Vec<_> = all.iter().copied().filter(|(_, number)| *number == 7).collect();
    assert_eq!(drawn(&alone, 9, WHOLE), of_seven);
}

#[test]
fn nobody_sends_where_no_rate_is() {
    let clients = Clients::new(service());
    for (at, number) in drawn(&clients, 2, WHOLE) {
        let silent = match number {
            12 => s(1_200)..s(1_800),
            3 => s(600)..s(1_200),
            _ => s(0)..s(600),
        };
        assert!(!silent.contains(&at) && at < s(1_800), "client {number} at {at}");
    }
    let nobody = Clients::default();
    assert_eq!(nobody.arrivals(1, WHOLE, Some(5), 10), Some(Vec::new()));
    assert!(nobody.picked(1, 5).is_empty());
}

#[test]
fn heaps_beyond_the_limit_are_told_and_end() {
    let heap = Gaps::Gamma { shape: MIN_SHAPE };
    let clients = Clients::new(vec![client(1, vec![active(0, 1_000_000, 1e3, heap)])]);
    assert_eq!(clients.arrivals(1, (Span::ZERO, s(1_000_000)), None, 5_000), None);
    let rare = Gaps::Weibull { shape: MIN_SHAPE };
    let clients = Clients::new(vec![client(1, vec![active(0, 600, 1e-6, rare)])]);
    assert!(clients.arrivals(1, (Span::ZERO, s(600)), None, 5_000).is_some());
    for shape in [MIN_SHAPE, 0.1, 1.0, 1e3, MAX_SHAPE] {
        let mut stream = Stream::new(1, "gaps");
        for gaps in [Gaps::Gamma { shape }, Gaps::Weibull { shape }] {
            for _ in 0..1_000 {
                let (first, gap) = (gaps.first(&mut stream), gaps.draw(&mut stream));
                assert!(first >= 0.0 && gap >= 0.0, "{gaps:?}: {first}, {gap}");
            }
        }
    }
}

#[test]
fn picked_requests_are_shared_out_as_they_would_come() {
    let clients = Clients::new(service());
    let picked = clients.picked(3, 30_000);
    assert_eq!(picked[..100], clients.picked(3, 100));
    let total = clients.expected(WHOLE);
    let mut chi_squared = 0.0;
    for (place, client) in (0..).zip(clients.all()) {
        let found = picked.iter().filter(|origin| origin.client == place).count() as f64;
        let expected = 30_000.0 * client.expected(WHOLE) / total;
        chi_squared += (found - expected).powi(2) / expected;
    }
    // 13.8 is the 0.999 quantile of χ² with 2 degrees of freedom.
    assert!(chi_squared < 13.8, "{chi_squared}");
    let places: std::collections::BTreeSet<u32> = picked.iter().map(|pick| pick.place).collect();
    assert_eq!(places.len(), 30_000, "no two draw the same lengths");
}

fn sizes(from: i64, input: &[(u32, f64)], output: u32) -> Sizes {
    let bucket = |&(length, weight): &(u32, f64)| {
        let length = Tokens::new(length);
        Bucket { low: length, high: length, weight }
    };
    let input = Lengths::histogram(input.iter().map(bucket).collect()).unwrap();
    Sizes { from: s(from), input, output: Lengths::fixed(output).unwrap() }
}

#[test]
fn lengths_are_those_of_the_last_list_before_the_request() {
    let clients = Clients::new(service());
    let sizes = [sizes(0, &[(10, 0.25), (20, 0.75)], 5), sizes(1_200, &[(99, 1.0)], 6)];
    let of = |active, place| Origin { client: 0, active, place };
    let early: Vec<u32> = (0..4_000)
        .map(|place| {
            let (input, output) = clients.lengths(8, of(0, place), &sizes).unwrap();
            assert_eq!(output.get(), 5);
            input.get()
        })
        .collect();
    let short = early.iter().filter(|input| **input == 10).count() as f64 / 4_000.0;
    // Three and a third standard errors.
    assert!((short - 0.25).abs() < 0.0226, "{short}");
    assert!(early.iter().all(|input| [10, 20].contains(input)));
    let late = clients.lengths(8, of(1, 0), &sizes).unwrap();
    assert_eq!((late.0.get(), late.1.get()), (99, 6));
    assert_eq!(clients.lengths(8, of(0, 0), &sizes[1..]), None);
    assert_eq!(clients.lengths(8, of(0, 0), &[]), None);
}

proptest! {
    #[test]
    fn a_part_has_the_requests_that_the_whole_has_there(
        seed: u64, from in 0..1_800_i64, lasts in 1..1_800_i64,
    ) {
        let clients = Clients::new(service());
        let part = (s(from), s((from + lasts).min(1_800)));
        let inside = |at: &&(Span, u32)| (part.0..part.1).contains(&at.0);
        let whole = drawn(&clients, seed, WHOLE);
        let expected: Vec<_> = whole.iter().filter(inside).copied().collect();
        prop_assert_eq!(drawn(&clients, seed, part), expected);
    }

    #[test]
    fn the_first_ones_are_those_of_all(seed: u64, wanted in 0..3_000_usize) {
        let clients = Clients::new(service());
        let all = clients.arrivals(seed, WHOLE, None, 1_000_000).unwrap();
        let first = clients.arrivals(seed, WHOLE, Some(wanted), 1_000_000).unwrap();
        prop_assert_eq!(&first[..], &all[..wanted.min(all.len())]);
    }

    #[test]
    fn a_horizon_has_what_was_asked_for(requests in 0.0..3_000.0_f64, from in 0..1_700_i64) {
        let clients = Clients::new(service());
        let part = (s(from), WHOLE.1);
        let until = clients.horizon(part, requests);
        prop_assert!((part.0..=part.1).contains(&until));
        let expected = clients.expected((part.0, until));
        let all = clients.expected(part);
        prop_assert!(until == part.1 || (expected - requests).abs() < 1e-3, "{} {}", expected, all);
        prop_assert!(until < part.1 || all <= requests + 1e-3);
    }
}
