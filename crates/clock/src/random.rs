//! A small generator for jitter, identifiers and simulated chance: repeatable, never for secrets.

/// `SplitMix64` (Steele, Lea, Flood 2014): one 64-bit state, passes the usual statistical batteries.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream that depends on nothing but `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound` (0 when `bound` is 0); the bias is at most `bound` / 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A number in `0.0..1.0` with 53 random bits.
    pub const fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_stream() {
        // First outputs for seed 1234567, from the reference C code's test.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(7);
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| random.below(10) < 10));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
    }
}
