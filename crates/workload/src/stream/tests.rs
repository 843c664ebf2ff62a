use super::*;
use proptest::prelude::*;

/// Made by a program of its own (Python: FNV-1a, splitmix64 and ChaCha8 written
/// from their papers), so that neither an update of a dependency nor an edit
/// here can change the draws of old seeds unnoticed. First three words and the
/// fortieth, which lies in a later block.
#[test]
fn draws_are_those_of_an_independent_program() {
    #[rustfmt::skip]
    let golden: &[(u64, &str, u64, [u64; 3], u64)] = &[
        (0, "arrivals", 0, [0x2603_a23e_46cb_4b98, 0x5e00_2874_72a5_bbc3, 0x3210_d5c6_fed0_cfde], 0xc1d2_1ce6_87d6_be86),
        (1, "arrivals", 0, [0x8c4c_e79f_e1ae_62fc, 0xdf7f_1870_4683_023b, 0xa2cc_8677_9db1_423f], 0x868a_ce90_ada3_cbe2),
        (1, "prompt", 0, [0x99a2_e4fd_e545_7d8f, 0xc412_5e87_0b0b_c980, 0x0eab_7ce6_877c_db03], 0x6922_9a70_decd_2d8b),
        (1, "prompt", 1, [0xc2c1_0947_dce2_7315, 0xca57_b510_3c1c_e3ff, 0x9c95_6327_dcf4_306a], 0x530a_b770_ce86_7b51),
        (u64::MAX, "", u64::MAX, [0x6b39_2563_ff66_a4e4, 0x7bcf_e11b_6570_d43f, 0x08bc_3b99_2528_5026], 0xdaa3_764e_f4ad_3db0),
    ];
    for &(seed, name, number, first, fortieth) in golden {
        let mut stream = Stream::numbered(seed, name, number);
        assert_eq!([stream.bits(), stream.bits(), stream.bits()], first, "{seed} {name} {number}");
        let later = (3..40).map(|_| stream.bits()).last().unwrap();
        assert_eq!(later, fortieth, "{seed} {name} {number}");
    }
}

#[test]
fn a_shuffle_is_that_of_an_independent_program() {
    let mut places: Vec<u32> = (0..8).collect();
    Stream::new(1, "order").shuffle(&mut places);
    assert_eq!(places, [3, 7, 5, 1, 4, 2, 0, 6]);
}

/// No independent source: this pins the gamma sampler of the dependency as it
/// was when the draws became part of every seed's meaning.
#[test]
fn gamma_draws_are_pinned() {
    let draw = |shape| (Stream::new(1, "gamma").gamma(shape) * 1e9).round() as u64;
    assert_eq!([draw(0.25), draw(0.5), draw(4.0)], [10_564_578, 125_803_414, 329_804_183]);
}

#[test]
fn one_stream_does_not_move_another() {
    let arrivals = |prompt_draws| {
        let mut prompts = Stream::new(9, "prompt");
        let mut arrivals = Stream::new(9, "arrivals");
        (0..100)
            .map(|_| {
                for _ in 0..prompt_draws {
                    prompts.bits();
                }
                arrivals.bits()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(arrivals(0), arrivals(17));
}

#[test]
fn names_seeds_and_numbers_give_different_streams() {
    let mut seen = std::collections::HashSet::new();
    for seed in 0..20 {
        for name in ["arrivals", "order", "prompt", "nonce", "input lengths", "output lengths"] {
            for number in 0..20 {
                assert!(seen.insert(Stream::numbered(seed, name, number).bits()));
            }
        }
    }
}

#[test]
fn uniform_draws_are_even() {
    let mut stream = Stream::new(3, "test");
    let mut cells = [0f64; 7];
    for _ in 0..70_000 {
        cells[stream.below(7) as usize] += 1.0;
    }
    // χ² with 6 degrees of freedom: 22.46 is its 0.999 quantile.
    let chi_squared: f64 = cells.iter().map(|n| (n - 1e4).powi(2) / 1e4).sum();
    assert!(chi_squared < 22.46, "{chi_squared}");
    let mean = (0..100_000).map(|_| stream.unit()).sum::<f64>() / 1e5;
    assert!((mean - 0.5).abs() < 0.004, "{mean}");
}

#[test]
fn gamma_draws_have_mean_one_and_the_stated_variation() {
    for shape in [0.25, 0.5, 1.0, 2.0, 10.0, 1e6] {
        let mut stream = Stream::new(5, "gamma");
        let n = 200_000.0;
        let draws: Vec<f64> = (0..200_000).map(|_| stream.gamma(shape)).collect();
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let cv = variance.sqrt() / mean;
        let expected = 1.0 / f64::sqrt(shape);
        assert!((mean - 1.0).abs() < 4.0 * expected / n.sqrt(), "shape {shape}: mean {mean}");
        assert!((cv / expected - 1.0).abs() < 0.02, "shape {shape}: CV {cv} for {expected}");
    }
}

proptest! {
    #[test]
    fn a_draw_below_n_is_below_n(seed: u64, n in 1u64..) {
        prop_assert!(Stream::new(seed, "test").below(n) < n);
    }

    #[test]
    fn a_shuffle_loses_nothing(seed: u64, n in 0u32..200) {
        let mut items: Vec<u32> = (0..n).collect();
        Stream::new(seed, "test").shuffle(&mut items);
        items.sort_unstable();
        prop_assert_eq!(items, (0..n).collect::<Vec<_>>());
    }

    #[test]
    fn any_legal_shape_gives_a_gap(seed: u64, exponent in -300.0..300.0f64) {
        let gap = Stream::new(seed, "test").gamma(10f64.powf(exponent));
        prop_assert!(gap >= 0.0, "{}", gap);
    }
}
