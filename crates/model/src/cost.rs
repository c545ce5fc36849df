//! What a piece of work takes: a time to set up, and a time a byte.

use crate::{BitRate, Bytes, Seconds};

/// A line: the time of a job grows with its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Whatever the size.
    pub set_up: Seconds,
    /// On top of that, a byte.
    pub per_byte: Seconds,
}

impl Cost {
    /// Costs nothing.
    pub const FREE: Cost = Cost { set_up: Seconds(0.0), per_byte: Seconds(0.0) };

    /// A job that runs at this rate from its first byte.
    #[must_use]
    pub const fn at(rate: BitRate) -> Cost {
        Cost { set_up: Seconds(0.0), per_byte: rate.byte() }
    }

    /// The line through two measured jobs, the smaller first. Measurements that would make a part negative give a
    /// line through the origin and the larger job, or a level one.
    #[must_use]
    pub fn through(smaller: (Bytes, Seconds), larger: (Bytes, Seconds)) -> Cost {
        let ((few, short), (many, long)) = (smaller, larger);
        let apart = many.0.saturating_sub(few.0);
        let per_byte = if apart == 0 { 0.0 } else { ((long.0 - short.0) / apart as f64).max(0.0) };
        let set_up = short.0 - few.0 as f64 * per_byte;
        if set_up < 0.0 && many.0 > 0 {
            return Cost { set_up: Seconds(0.0), per_byte: Seconds(long.0 / many.0 as f64) };
        }
        Cost { set_up: Seconds(set_up.max(0.0)), per_byte: Seconds(per_byte) }
    }

    /// How long so many bytes take.
    #[must_use]
    pub fn of(&self, bytes: Bytes) -> Seconds {
        self.set_up + self.per_byte * bytes.0 as f64
    }

    /// The rate that jobs of so many bytes reach; nothing when they take no time.
    #[must_use]
    pub fn rate(&self, bytes: Bytes) -> Option<BitRate> {
        BitRate::of_a_byte(Seconds(self.of(bytes).0 / bytes.0 as f64))
    }

    /// So many times as much.
    #[must_use]
    pub fn times(&self, factor: f64) -> Cost {
        Cost { set_up: self.set_up * factor, per_byte: self.per_byte * factor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_by_hand() {
        let cost = Cost::through((Bytes(1000), Seconds(3.0)), (Bytes(3000), Seconds(7.0)));
        assert_eq!(cost, Cost { set_up: Seconds(1.0), per_byte: Seconds(0.002) });
        assert_eq!(cost.of(Bytes(500)), Seconds(2.0));
        assert_eq!(cost.rate(Bytes(1000)), BitRate::of_a_byte(Seconds(0.003)));
        assert_eq!(Cost::FREE.rate(Bytes(1000)), None);
    }

    #[test]
    fn noise_makes_no_part_negative() {
        // Larger jobs relatively slower: no set-up below nothing.
        let cost = Cost::through((Bytes(100), Seconds(1.0)), (Bytes(200), Seconds(3.0)));
        assert_eq!(cost, Cost { set_up: Seconds(0.0), per_byte: Seconds(0.015) });
        // The larger job faster: level.
        let cost = Cost::through((Bytes(100), Seconds(3.0)), (Bytes(200), Seconds(1.0)));
        assert_eq!(cost, Cost { set_up: Seconds(3.0), per_byte: Seconds(0.0) });
        assert_eq!(
            Cost::through((Bytes(5), Seconds(1.0)), (Bytes(5), Seconds(9.0))),
            Cost { set_up: Seconds(1.0), per_byte: Seconds(0.0) }
        );
    }

    proptest! {
        #[test]
        fn never_negative_and_never_less_for_more(
            few in 0_u64..10_000, apart in 0_u64..100_000, short in 0.0..1.0, long in 0.0..1.0, bytes in 0_u64..1_000_000,
        ) {
            let cost = Cost::through((Bytes(few), Seconds(short)), (Bytes(few + apart), Seconds(long)));
            prop_assert!(cost.set_up.0 >= 0.0 && cost.per_byte.0 >= 0.0);
            prop_assert!(cost.of(Bytes(bytes)) <= cost.of(Bytes(bytes + 1)));
        }
    }
}
