//! Amounts of data, spans of time and rates, each a type of its own.

use core::iter::Sum;
use core::ops::{Add, Div, Mul, Sub};

/// A number of bytes; sums and products end at the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl Add for Bytes {
    type Output = Bytes;

    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;

    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0.saturating_mul(times))
    }
}

impl Div<BitRate> for Bytes {
    type Output = Seconds;

    /// How long this much takes at that rate.
    fn div(self, rate: BitRate) -> Seconds {
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

impl Sub for Seconds {
    type Output = Seconds;

    fn sub(self, other: Seconds) -> Seconds {
        Seconds(self.0 - other.0)
    }
}

impl Mul<f64> for Seconds {
    type Output = Seconds;

    fn mul(self, times: f64) -> Seconds {
        Seconds(self.0 * times)
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
pub struct BitRate(f64);

impl BitRate {
    /// A rate in bit/s, or nothing if that is no rate.
    #[must_use]
    pub const fn bits(per_second: f64) -> Option<BitRate> {
        if per_second > 0.0 && per_second.is_finite() { Some(BitRate(per_second)) } else { None }
    }

    /// A rate in millions of bit/s, or nothing if that is no rate.
    #[must_use]
    pub const fn megabits(per_second: f64) -> Option<BitRate> {
        BitRate::bits(per_second * 1e6)
    }

    /// The rate at which a byte takes this long; nothing if that is no rate.
    #[must_use]
    pub const fn of_a_byte(takes: Seconds) -> Option<BitRate> {
        BitRate::bits(8.0 / takes.0)
    }

    /// How long a byte takes.
    #[must_use]
    pub const fn byte(self) -> Seconds {
        Seconds(8.0 / self.0)
    }

    /// Bits per second, as a number.
    #[must_use]
    pub const fn as_bits(self) -> f64 {
        self.0
    }

    /// The share `share` of this rate, or nothing if that is no rate.
    #[must_use]
    pub const fn share(self, share: f64) -> Option<BitRate> {
        BitRate::bits(self.0 * share)
    }
}

/// The compression ratio X: bytes before over bytes after; above zero and finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Ratio(f64);

impl Ratio {
    /// What does not shrink.
    pub const ONE: Ratio = Ratio(1.0);

    /// X as a number, or nothing if that is no ratio.
    #[must_use]
    pub const fn new(before_over_after: f64) -> Option<Ratio> {
        if before_over_after > 0.0 && before_over_after.is_finite() {
            Some(Ratio(before_over_after))
        } else {
            None
        }
    }

    /// X as a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The share of the bytes that compression takes away, 1 - 1/X: negative when it adds some.
    #[must_use]
    pub const fn saving(self) -> f64 {
        1.0 - 1.0 / self.0
    }

    /// The compressed size of so many bytes, rounded up.
    #[must_use]
    pub const fn shrink(self, before: Bytes) -> Bytes {
        // A float beyond the largest integer becomes that integer.
        Bytes((before.0 as f64 / self.0).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_bits_over_rate() {
        let rate = BitRate::megabits(10.0).unwrap();
        assert_eq!(Bytes(1250) / rate, Seconds(0.001));
        assert_eq!([Bytes(1250) / rate, Bytes(2500) / rate].into_iter().sum::<Seconds>(), Seconds(0.003));
        assert_eq!(Seconds(3.0) / Seconds(1.5), 2.0);
    }

    #[test]
    fn rates_and_bytes() {
        let rate = BitRate::megabits(8.0).unwrap();
        assert_eq!(rate.byte(), Seconds(1e-6));
        assert_eq!(BitRate::of_a_byte(Seconds(1e-6)), Some(rate));
        assert_eq!(BitRate::of_a_byte(Seconds(0.0)), None);
    }

    #[test]
    fn ratios() {
        let ratio = |x| Ratio::new(x).unwrap();
        assert_eq!(ratio(4.0).saving(), 0.75);
        assert_eq!(ratio(3.0).shrink(Bytes(100)), Bytes(34));
        assert_eq!(Ratio::ONE.shrink(Bytes(100)), Bytes(100));
        assert_eq!(ratio(1e-300).shrink(Bytes(u64::MAX)), Bytes(u64::MAX));
        for x in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Ratio::new(x), None, "{x}");
        }
    }

    #[test]
    fn what_is_no_rate_is_none() {
        for bits in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(BitRate::bits(bits), None, "{bits}");
        }
        assert_eq!(BitRate::megabits(0.056), BitRate::bits(56e3));
    }
}
