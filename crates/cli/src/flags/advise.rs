//! Flags of `advise`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use ipnet::IpNet;
use strait_compress::history::cache::CacheCapacity;
use strait_node::config::size;
use strait_scheduler::Rate;

/// Flags of `advise`.
#[derive(Debug, Args)]
pub(crate) struct Advise {
    /// Captures (pcap, pcapng), text traces or ordinary files; the type is detected from the content
    #[arg(value_name = "FILE", required_unless_present = "live", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Capture from an interface instead of files, until Ctrl-C
    #[arg(long, value_name = "INTERFACE", conflicts_with = "files")]
    pub(crate) live: Option<String>,
    /// Duration of the capture, such as 10s
    #[arg(long = "for", value_name = "TIME", value_parser = span, requires = "live", conflicts_with = "files")]
    pub(crate) span: Option<Duration>,
    /// Rate of the link that the traffic would cross, such as 2Mbit
    #[arg(long, value_name = "RATE")]
    pub(crate) link: Rate,
    /// MTU of the hosts in bytes; longer frames (from segmentation offload) are split
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u16).range(576..=9_000))]
    pub(crate) mtu: u16,
    /// Network on the near side: only packets between it and the far side are replayed, each direction at the full rate [default: of two hosts, the one that speaks first is near]
    #[arg(long, value_name = "NETWORK")]
    pub(crate) from: Option<IpNet>,
    /// RTT of the link, such as 600ms, to estimate the time spent waiting for replies
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) rtt: Option<Duration>,
    /// Price of a gigabyte (10^9 bytes) on the wire, to estimate the cost saved
    #[arg(long, value_name = "PER_GB", value_parser = price)]
    pub(crate) price: Option<f64>,
    /// What the byte cache of each direction holds, where the replay has one, such as 1GiB
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = capacity)]
    pub(crate) cache: CacheCapacity,
    /// Also replay under each policy of a rule against length leaks (padding, mix, pause), to show what they cost
    #[arg(long)]
    pub(crate) policies: bool,
    /// Print every mode, protocols, pairs of hosts and codecs too
    #[arg(long, conflicts_with = "json")]
    pub(crate) detail: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the report with charts to this HTML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,
}

/// A time with its unit.
fn span(given: &str) -> Result<Duration, String> {
    let fail = || format!("`{given}` is not a duration: write a number with ms, s, min or h, such as 600ms");
    let given = given.trim();
    let split = given.find(|letter: char| letter.is_alphabetic()).ok_or_else(fail)?;
    let (number, unit) = given.split_at(split);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3_600.0,
        _ => return Err(fail()),
    };
    let number: f64 = number.trim().parse().map_err(|_| fail())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| fail())
}

/// What a byte cache may hold.
fn capacity(given: &str) -> Result<CacheCapacity, String> {
    let bytes = size(given).map_err(|error| error.to_string())?;
    CacheCapacity::new(bytes).ok_or_else(|| format!("`{given}` is not a size from 4MiB to 32GiB"))
}

/// An amount of money.
fn price(given: &str) -> Result<f64, String> {
    let price: f64 = given.parse().map_err(|_| format!("`{given}` is not a number"))?;
    if price.is_finite() && price >= 0.0 { Ok(price) } else { Err(format!("`{given}` is not a price")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::StraitFlags;
    use clap::Parser;

    #[test]
    fn times_as_people_write_them() {
        for (given, millis) in
            [("600ms", 600), ("0.25 s", 250), ("2min", 120_000), ("1h", 3_600_000), ("0s", 0)]
        {
            assert_eq!(span(given), Ok(Duration::from_millis(millis)), "{given}");
        }
        for given in ["", "5", "ms", "-1s", "1 week", "nans", "infs", "1e400s"] {
            assert!(span(given).is_err(), "{given}");
        }
    }

    #[test]
    fn prices() {
        assert_eq!((price("5"), price("0.08")), (Ok(5.0), Ok(0.08)));
        for given in ["-1", "nan", "inf", "cheap", ""] {
            assert!(price(given).is_err(), "{given}");
        }
    }

    #[test]
    fn usual_command_lines() {
        for line in [
            "strait advise a.pcap b.pcapng --link 2Mbit --rtt 600ms --price 5 --from 10.0.0.0/8 --json",
            "strait advise --live eth0 --link 2Mbit --for 10s",
            "strait advise file --link 512kbit --mtu 1280 --html report.html",
        ] {
            StraitFlags::try_parse_from(line.split(' ')).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
    }

    #[test]
    fn wrong_command_lines() {
        for (line, expected) in [
            ("strait advise a.pcap", "--link"),
            ("strait advise --link 2Mbit", "required"),
            ("strait advise a.pcap --live eth0 --link 2Mbit", "cannot be used with"),
            ("strait advise a.pcap --for 5s --link 2Mbit", "cannot be used with"),
            ("strait advise a.pcap --link 0", "is not a link rate"),
            ("strait advise a.pcap --link -1Mbit", "unexpected argument"),
            ("strait advise a.pcap --link 2Mbit --mtu 500", "500 is not in 576..=9000"),
            ("strait advise a.pcap --link 2Mbit --price=-1", "is not a price"),
            ("strait advise a.pcap --link 2Mbit --rtt 5", "is not a duration"),
        ] {
            let error = StraitFlags::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(expected), "{line}: {error}");
        }
    }
}
