//! Amounts of data, spans of time and rates, each a type of its own.

use core::iter::Sum;
use core::ops::{Add, Div, Mul};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Add for Bytes {
    type Output = Bytes;

    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;

    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl Div<Rate> for Bytes {
    type Output = Seconds;

    /// How long this much takes at that rate.
    fn div(self, rate: Rate) -> Seconds {
        Seconds(self.0 as f64 * 8.0 / rate.0)
    }
}

/// A span of time. Not a `Duration`, whose whole nanoseconds would show where a packet takes a few hundred of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Seconds(pub f64);

impl Add for Seconds {
    type Output = Seconds;

    fn add(self, other: Seconds) -> Seconds {
        Seconds(self.0 + other.0)
    }
}

impl Sum for Seconds {
    fn sum<I: Iterator<Item = Seconds>>(spans: I) -> Seconds {
        spans.fold(Seconds::default(), Add::add)
    }
}

impl Div for Seconds {
    type Output = f64;

    /// How many times the other span fits into this one.
    fn div(self, other: Seconds) -> f64 {
        self.0 / other.0
    }
}

/// Bits per second; above zero and finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// A rate in bit/s, or nothing if that is no rate.
    #[must_use]
    pub const fn bits(per_second: f64) -> Option<Rate> {
        if per_second > 0.0 && per_second.is_finite() { Some(Rate(per_second)) } else { None }
    }

    /// A rate in millions of bit/s, or nothing if that is no rate.
    #[must_use]
    pub const fn megabits(per_second: f64) -> Option<Rate> {
        Rate::bits(per_second * 1e6)
    }

    /// The share `share` of this rate, or nothing if that is no rate.
    #[must_use]
    pub const fn share(self, share: f64) -> Option<Rate> {
        Rate::bits(self.0 * share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_bits_over_rate() {
        let rate = Rate::megabits(10.0).unwrap();
        assert_eq!(Bytes(1250) / rate, Seconds(0.001));
        assert_eq!([Bytes(1250) / rate, Bytes(2500) / rate].into_iter().sum::<Seconds>(), Seconds(0.003));
        assert_eq!(Seconds(3.0) / Seconds(1.5), 2.0);
    }

    #[test]
    fn what_is_no_rate_is_none() {
        for bits in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Rate::bits(bits), None, "{bits}");
        }
        assert_eq!(Rate::megabits(0.056), Rate::bits(56e3));
    }
}
