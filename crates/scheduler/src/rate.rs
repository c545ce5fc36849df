//! How fast a link is.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

const NANOS: u128 = 1_000_000_000;

/// Bits per second on the wire; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// The slowest rate that makes sense to pace at: one 1,500-byte datagram in 24 s.
    pub const MIN: Rate = Rate(500);
    /// The fastest that the arithmetic is tested for, 10 Tbit/s.
    pub const MAX: Rate = Rate(10_000_000_000_000);

    /// A rate in bit/s, or nothing outside [`Rate::MIN`]..=[`Rate::MAX`].
    #[must_use]
    pub const fn from_bits(bits_per_second: u64) -> Option<Rate> {
        if bits_per_second < Rate::MIN.0 || bits_per_second > Rate::MAX.0 {
            return None;
        }
        Some(Rate(bits_per_second))
    }

    /// Bits per second.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// How long `bytes` take on this link.
    #[must_use]
    pub fn time_for(self, bytes: u64) -> Duration {
        let nanos = u128::from(bytes) * 8 * NANOS / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many whole bytes this link carries in `span`.
    #[must_use]
    pub fn bytes_in(self, span: Duration) -> u64 {
        u64::try_from(span.as_nanos() * u128::from(self.0) / (8 * NANOS)).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_000_000_000_u64, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
        match units.iter().find(|(size, _)| self.0 >= *size) {
            Some((size, name)) => {
                let thousandths = u128::from(self.0) * 1000 / u128::from(*size);
                let (whole, part) = (thousandths / 1000, thousandths % 1000);
                let part = format!("{part:03}");
                let part = part.trim_end_matches('0');
                let point = if part.is_empty() { "" } else { "." };
                write!(f, "{whole}{point}{part} {name}")
            }
            None => write!(f, "{} bit/s", self.0),
        }
    }
}

/// A rate that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseRateError {
    text: String,
    doubt: Doubt,
}

/// The part of it that is not clear.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Doubt {
    /// It is no rate.
    Form,
    /// Bits or bytes may be meant: the rate if it is bits.
    Bytes(Rate),
    /// The number has no unit.
    Unit,
}

impl fmt::Display for ParseRateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        match self.doubt {
            Doubt::Bytes(bits) => {
                let bytes = Rate(bits.0.saturating_mul(8));
                write!(
                    f,
                    "'{text}' may be bits or bytes; write \"{bits}\" for bits, \"{bytes}\" for bytes a second"
                )
            }
            Doubt::Unit => {
                let number = text.trim();
                write!(f, "'{text}' has no unit; write \"{number}bit\", \"{number}kbit\" or \"{number}Mbit\"")
            }
            Doubt::Form => write!(
                f,
                "'{text}' is not a link rate; write a number and bit, kbit, Mbit or Gbit, between {} and {}, \
                 for example \"1.5Mbit\"",
                Rate::MIN,
                Rate::MAX
            ),
        }
    }
}

impl core::error::Error for ParseRateError {}

impl FromStr for Rate {
    type Err = ParseRateError;

    /// Reads `1.5Mbit`, `512 kbit/s`, `10Mbps`, `2Gbit`. `1.5MB` and `1.5M` may be meant as bytes, and `1500` as anything: both are
    /// refused.
    fn from_str(text: &str) -> Result<Rate, ParseRateError> {
        let fail = |doubt| ParseRateError { text: text.to_owned(), doubt };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim();
        let bits_per_second = unit.ends_with("bps");
        let unit = unit.to_ascii_lowercase();
        let unit = unit.trim_end_matches("/s").trim_end_matches("ps");
        let (scale, what) = match unit.as_bytes() {
            [b'k', what @ ..] => (1_000_u64, what),
            [b'm', what @ ..] => (1_000_000, what),
            [b'g', what @ ..] => (1_000_000_000, what),
            what => (1, what),
        };
        let rate = decimal(number, scale).and_then(Rate::from_bits).ok_or_else(|| fail(Doubt::Form))?;
        match what {
            b"bit" => Ok(rate),
            b"b" if bits_per_second => Ok(rate),
            b"" if unit.is_empty() => Err(fail(Doubt::Unit)),
            b"" | b"b" | b"byte" | b"bytes" => Err(fail(Doubt::Bytes(rate))),
            _ => Err(fail(Doubt::Form)),
        }
    }
}

/// `number` with an optional fraction, times `scale`, exactly, rounded down.
fn decimal(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let digits: u64 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let places = 10_u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    whole.checked_mul(scale)?.checked_add(digits.checked_mul(scale)? / places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_common_notations() {
        for (text, bits) in [
            ("1.5Mbit", 1_500_000),
            ("512 kbit/s", 512_000),
            ("10Mbps", 10_000_000),
            ("2Gbit", 2_000_000_000),
            ("9600 bit", 9_600),
            ("64kbps", 64_000),
            (" 0.064 Mbit ", 64_000),
        ] {
            assert_eq!(text.parse::<Rate>().map(Rate::bits), Ok(bits), "{text}");
        }
        for text in
            ["", ".", "0", "-1Mbit", "fast", "1.5.5Mbit", "1e9", "99999Gbit", "1Tbit", "0.0000000001Gbit"]
        {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }

    #[test]
    fn bits_and_bytes_are_not_mixed_up_and_a_number_is_no_rate() {
        for (text, said) in [
            ("1.5MB", "write \"1.5 Mbit/s\" for bits, \"12 Mbit/s\" for bytes a second"),
            ("1.5MBps", "write \"1.5 Mbit/s\" for bits"),
            ("200 kB/s", "write \"200 kbit/s\" for bits, \"1.6 Mbit/s\" for bytes"),
            ("2M", "write \"2 Mbit/s\" for bits, \"16 Mbit/s\" for bytes"),
            ("5Mb", "write \"5 Mbit/s\" for bits, \"40 Mbit/s\" for bytes"),
            ("500", "'500' has no unit; write \"500bit\", \"500kbit\" or \"500Mbit\""),
        ] {
            let error = text.parse::<Rate>().map_err(|error| error.to_string()).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn display_round_trips_through_parse() {
        for bits in [500, 9_600, 64_000, 1_500_000, 1_536_000, 10_000_000, 2_500_000_000] {
            let rate = Rate::from_bits(bits).expect("in range");
            assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }
        assert_eq!(Rate(1_500_000).to_string(), "1.5 Mbit/s");
    }

    #[test]
    fn time_and_bytes_agree() {
        let rate = Rate(1_500_000);
        assert_eq!(rate.time_for(1500), Duration::from_millis(8));
        assert_eq!(rate.bytes_in(Duration::from_millis(8)), 1500);
        assert_eq!(Rate::MAX.time_for(u64::MAX), Duration::from_nanos(14_757_395_258_967_641));
    }
}
