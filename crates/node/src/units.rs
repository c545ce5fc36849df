//! Numbers with units, for people.

use std::time::Duration;

/// Bytes in decimal units with three digits or so: `512 B`, `1.24 MB`.
pub fn bytes(count: u64) -> String {
    scaled(count as f64, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A rate of payload: `180 kB/s`.
pub fn per_second(bytes: u64, span: Duration) -> String {
    if span.is_zero() {
        return "-".to_owned();
    }
    format!("{}/s", scaled(bytes as f64 / span.as_secs_f64(), &["B", "kB", "MB", "GB", "TB"]))
}

/// A rate on a link, in bit/s with three digits: `930 kbit/s`.
pub fn bits_per_second(bits: f64) -> String {
    scaled(bits.max(0.0), &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

/// How many times `large` is `small`: `3.42`; a dash when there is nothing to compare.
pub fn ratio(large: u64, small: u64) -> String {
    if large == 0 || small == 0 { "-".to_owned() } else { format!("{:.2}", large as f64 / small as f64) }
}

/// A span with its two largest units: `3 d 4 h`, `2 min 5 s`, `850 ms`.
pub fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The same of seconds; of what is no span, as of none.
pub fn seconds(seconds: f64) -> String {
    span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// A number of things: `1 peer`, `2 peers`.
pub fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut units = units.iter().peekable();
    while let Some(unit) = units.next() {
        if value < 999.5 || units.peek().is_none() {
            // Whole bytes and bits have no fraction; other units three digits.
            let places = if matches!(*unit, "B" | "bit/s") { 0 } else { decimals(value) };
            return format!("{value:.places$} {unit}");
        }
        value /= 1000.0;
    }
    String::new()
}

fn decimals(value: f64) -> usize {
    match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (count, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (9_994, "9.99 kB"),
            (9_996, "10.0 kB"),
            (900_004, "900 kB"),
            (999_600, "1.00 MB"),
            (4_000_000_000, "4.00 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(bytes(count), expected, "{count}");
        }
    }

    #[test]
    fn spans() {
        for (millis, expected) in [
            (0, "0 ms"),
            (850, "850 ms"),
            (59_999, "59 s"),
            (125_000, "2 min 5 s"),
            (3_600_000, "1 h 0 min"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn things() {
        assert_eq!(counted(1, "peer"), "1 peer");
        assert_eq!(counted(0, "peer"), "0 peers");
    }

    #[test]
    fn rates_and_ratios() {
        assert_eq!(per_second(1_800_000, Duration::from_secs(10)), "180 kB/s");
        assert_eq!(per_second(1, Duration::ZERO), "-");
        for (bits, expected) in [
            (0.0, "0 bit/s"),
            (-1.0, "0 bit/s"),
            (12.4, "12 bit/s"),
            (930_400.0, "930 kbit/s"),
            (1.5e6, "1.50 Mbit/s"),
        ] {
            assert_eq!(bits_per_second(bits), expected);
        }
        assert_eq!(ratio(342, 100), "3.42");
        assert_eq!(ratio(0, 1), "-");
        assert_eq!(ratio(1, 0), "-");
    }
}
