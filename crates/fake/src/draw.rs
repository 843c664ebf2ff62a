//! Draws that depend on what they are for and not on the order in which they
//! are made.

/// Steele, Lea and Flood's SplitMix64 over three numbers.
pub(crate) fn mix(seed: u64, stream: u64, step: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let scramble = |z: u64| {
        let z = z.wrapping_add(GOLDEN);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    scramble(scramble(scramble(seed) ^ stream) ^ step)
}
