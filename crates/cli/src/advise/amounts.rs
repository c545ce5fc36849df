//! Rates, times, money and shares, for people.

use strait_advise::report::UpTo;
use strait_scheduler::Rate;

use crate::units;

/// What stands where there is no figure.
pub(super) fn dash() -> String {
    "-".to_owned()
}

/// A rate in bits a second, with three digits.
pub(super) fn rate(bits: f64) -> String {
    let magnitude = 10_f64.powf(bits.max(1.0).log10().floor() - 2.0);
    let rounded = (bits / magnitude).round() * magnitude;
    Rate::from_bits(rounded as u64).map_or_else(|| format!("{rounded:.0} bit/s"), |rate| rate.to_string())
}

/// The fastest link that something pays on.
pub(super) fn up_to(limit: UpTo) -> String {
    match limit {
        UpTo::Never => dash(),
        UpTo::Rate(bits) => rate(bits),
        UpTo::Always => "any link".to_owned(),
    }
}

/// A time: fractions of seconds where they matter.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        _ if seconds < 0.0 => format!("-{}", time(-seconds)),
        _ if seconds < 0.9995 => format!("{:.0} ms", seconds * 1e3),
        _ if seconds < 60.0 => format!("{seconds:.1} s"),
        _ => units::seconds(seconds),
    }
}

/// Hundredths, and of less than one two digits.
pub(super) fn money(amount: f64) -> String {
    let places = if amount == 0.0 { 2.0 } else { (1.0 - amount.abs().log10().floor()).clamp(2.0, 9.0) };
    format!("{amount:.*}", places as usize)
}

/// A part of a whole.
pub(super) fn percent(part: f64, whole: f64) -> String {
    if whole == 0.0 { dash() } else { format!("{:.0} %", 100.0 * part / whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_of_a_rate() {
        for (bits, expected) in [
            (1_266_912_345.0, "1.27 Gbit/s"),
            (999_600.0, "1 Mbit/s"),
            (61_830_000.0, "61.8 Mbit/s"),
            (700.0, "700 bit/s"),
            (12.3, "12 bit/s"),
            (0.0, "0 bit/s"),
        ] {
            assert_eq!(rate(bits), expected);
        }
        assert_eq!((up_to(UpTo::Never), up_to(UpTo::Always)), ("-".to_owned(), "any link".to_owned()));
        assert_eq!(up_to(UpTo::Rate(1e6)), "1 Mbit/s");
    }

    #[test]
    fn times_short_and_long() {
        let times = [0.0, 0.017, 0.9999, 9.34, 154.0, -0.5].map(time);
        assert_eq!(times, ["0 ms", "17 ms", "1.0 s", "9.3 s", "2 min 34 s", "-500 ms"]);
    }

    #[test]
    fn money_large_and_small() {
        let amounts = [0.0, 12.345, 0.5, 0.003_39, 0.000_065, 1e-12].map(money);
        assert_eq!(amounts, ["0.00", "12.35", "0.50", "0.0034", "0.000065", "0.000000000"]);
        assert_eq!((percent(1.0, 3.0), percent(1.0, 0.0)), ("33 %".to_owned(), "-".to_owned()));
    }
}
