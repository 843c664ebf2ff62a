use proptest::prelude::*;

use super::*;

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

fn pictures(count: (u32, u32), buckets: &[(u32, u32, f64)]) -> Pictures {
    let buckets = buckets
        .iter()
        .map(|&(width, height, weight)| Bucket { size: size(width, height), weight })
        .collect();
    Pictures { count, buckets, format: PictureFormat::Jpeg }
}

#[test]
fn counts_are_vllms() {
    // Uniform over [floor(n(1−r)), ceil(n(1+r))], the upper end at most the
    // limit of pictures of one request.
    for (base, ratio, limit, want) in [
        (1, 0.0, 255, (1, 1)),
        (3, 0.5, 255, (1, 5)),
        (10, 0.25, 12, (7, 12)),
        (4, 0.0, 2, (2, 2)),
        (0, 0.0, 255, (0, 0)),
    ] {
        assert_eq!(Pictures::vllm_count(base, ratio, limit), want, "{base} {ratio} {limit}");
    }
}

#[test]
fn broken_rules_are_told() {
    let one = [(8, 8, 1.0)];
    assert_eq!(pictures((0, 3), &one).check(), Ok(()));
    assert_eq!(pictures((0, MAX_PICTURES + 1), &one).check(), Err(PicturesError::Count));
    assert_eq!(pictures((2, 1), &one).check(), Err(PicturesError::Count));
    assert_eq!(pictures((1, 1), &[]).check(), Err(PicturesError::NoBucket));
    assert_eq!(pictures((1, 1), &[(8, 8, 0.0)]).check(), Err(PicturesError::NoBucket));
    assert_eq!(pictures((1, 1), &[(8, 8, f64::NAN)]).check(), Err(PicturesError::Weight));
    for (width, height) in [(0, 8), (8, 0), (65_536, 1), (60_000, 60_000)] {
        let broken = pictures((1, 1), &[(width, height, 1.0)]).check();
        assert_eq!(broken, Err(PicturesError::Size), "{width}x{height}");
    }
}

proptest! {
    #[test]
    fn pictures_are_within_what_was_asked(
        seed: u64,
        pixels: u64,
        index: u32,
        low in 0u32..4,
        more in 0u32..4,
        heavy in 0.0f64..3.0,
    ) {
        let asked = pictures((low, low + more), &[(8, 4, 1.0), (16, 2, heavy), (3, 3, 0.0)]);
        let drawn = asked.of_request(seed, pixels, index);
        prop_assert_eq!(&drawn, &asked.of_request(seed, pixels, index));
        prop_assert!((low..=low + more).contains(&(drawn.len() as u32)));
        for picture in &drawn {
            prop_assert!(picture.size == size(8, 4) || picture.size == size(16, 2));
            prop_assert_eq!(picture.seed, pixels);
        }
        let mut numbers: Vec<_> = drawn.iter().map(|picture| picture.number).collect();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), drawn.len());
        // Other pixels are other pictures of the same sizes.
        let other = asked.of_request(seed, !pixels, index);
        let sizes = |of: &[Picture]| of.iter().map(|picture| picture.size).collect::<Vec<_>>();
        prop_assert_eq!(sizes(&drawn), sizes(&other));
    }
}

#[test]
fn weights_are_shares() {
    let asked = pictures((1, 1), &[(1, 1, 3.0), (2, 2, 1.0)]);
    let wide =
        (0..4_000).filter(|&index| asked.of_request(7, 7, index)[0].size == size(2, 2)).count();
    // A quarter of 4 000 within six standard deviations (27).
    assert!((840..=1_160).contains(&wide), "{wide}");
}
