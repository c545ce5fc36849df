//! What a client learned, and by how many packets.

use std::ops::AddAssign;

use serde::Serialize;

use super::limit::{lower, upper};

/// How often a guess at random is right.
const CHANCE: f64 = 1.0 / 16.0;
/// Bits of a digit.
const BITS: f64 = 4.0;

/// Digits that a client decided, and the packets that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CrimeTally {
    /// Cookies, the last of which it may have left.
    pub cookies: u64,
    /// Digits that it decided.
    pub digits: u64,
    /// How many of them were right.
    pub right: u64,
    /// Packets that it added.
    pub packets: u64,
}

impl CrimeTally {
    /// Right digits beyond chance in bits a 1,000 packets of the client; negative where fewer were right than by chance.
    #[must_use]
    pub fn bits(&self) -> f64 {
        self.bits_at(self.right as f64 / self.digits.max(1) as f64)
    }

    /// The 95 % upper limit of the same: that of Clopper and Pearson, one side.
    #[must_use]
    pub fn bits_limit(&self) -> f64 {
        self.bits_at(upper(self.right, self.digits))
    }

    /// Whether more digits were right than chance gives, in 19 of 20 such runs.
    #[must_use]
    pub fn is_above_chance(&self) -> bool {
        lower(self.right, self.digits) > CHANCE
    }

    /// Whether the upper limit is at most 1 bit a 1,000 packets.
    #[must_use]
    pub fn is_safe(&self) -> bool {
        self.bits_limit() <= 1.0
    }

    /// The yield if so many of the digits were right.
    fn bits_at(&self, share: f64) -> f64 {
        (share - CHANCE) * BITS * self.digits as f64 * 1000.0 / self.packets.max(1) as f64
    }
}

impl AddAssign for CrimeTally {
    fn add_assign(&mut self, other: CrimeTally) {
        self.cookies += other.cookies;
        self.digits += other.digits;
        self.right += other.right;
        self.packets += other.packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yields_are_beyond_chance_and_limits_decide() {
        let tally = |right| CrimeTally { cookies: 20, digits: 800, right, packets: 200_000 };
        assert!(tally(50).bits().abs() < 1e-9);
        assert!(tally(50).is_safe() && !tally(50).is_above_chance());
        // All right: 15 of 16 digits beyond chance.
        assert!((tally(800).bits() - 15.0).abs() < 1e-9);
        assert!(tally(800).is_above_chance() && !tally(800).is_safe());
        assert!(tally(0).bits() < 0.0);
        // As many digits by few packets leave more open.
        assert!(!CrimeTally { packets: 20_000, ..tally(50) }.is_safe());
        let mut sum = tally(3);
        sum += tally(4);
        assert_eq!((sum.right, sum.packets, sum.cookies), (7, 400_000, 40));
    }
}
