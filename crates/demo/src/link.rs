//! The link that a demonstration has between its hosts, and how much it moves over that.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use strait_scheduler::{ParseRateError, Rate};
use strait_testbed::LinkSpec;
use strait_testbed::sample::SampleFile;

/// What a file should take at least without a tunnel: beside that, setting up a connection is little.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
/// The most of all files together: everything is held in memory.
const MOST: usize = 1152 << 20;
/// From here on the machine's own moods show as much as the link: each way is measured more than once.
const FAST: u64 = 100_000_000;
/// How often; the middle one counts.
const PASSES: usize = 3;

/// A rate in each direction, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoLink {
    /// As a thin link has.
    Rate(Rate),
    /// As fast as memory.
    Unshaped,
}

impl DemoLink {
    /// The rate, if it has one.
    pub(crate) const fn rate(self) -> Option<Rate> {
        match self {
            DemoLink::Rate(rate) => Some(rate),
            DemoLink::Unshaped => None,
        }
    }

    /// As a noun.
    pub(crate) fn words(self) -> String {
        match self {
            DemoLink::Rate(rate) => format!("a link of {rate} each way"),
            DemoLink::Unshaped => "an unshaped link".to_owned(),
        }
    }

    pub(crate) const fn spec(self) -> LinkSpec {
        match self {
            DemoLink::Rate(rate) => LinkSpec::thin(rate),
            DemoLink::Unshaped => LinkSpec::unshaped(),
        }
    }

    /// How often each way is measured.
    pub(crate) const fn passes(self) -> usize {
        match self {
            DemoLink::Rate(rate) if rate.bits() < FAST => 1,
            _ => PASSES,
        }
    }

    /// The files, each so many times over that moving it takes long enough to be measured, as far as memory reaches.
    pub(crate) fn enough_of(self, files: &[SampleFile]) -> Vec<SampleFile> {
        let most = MOST / files.len().max(1);
        let wanted =
            self.rate().map_or(u64::MAX, |rate| rate.bits() / 8 * LONG_ENOUGH.as_millis() as u64 / 1000);
        let wanted = usize::try_from(wanted).unwrap_or(most).min(most);
        files.iter().map(|file| repeated(file, wanted)).collect()
    }
}

/// A file as often as it takes to have so many bytes, at least once.
fn repeated(file: &SampleFile, wanted: usize) -> SampleFile {
    let times = wanted.div_ceil(file.bytes.len().max(1));
    if times <= 1 || file.bytes.is_empty() {
        return file.clone();
    }
    SampleFile { name: file.name.clone(), bytes: Arc::from(file.bytes.repeat(times)) }
}

impl fmt::Display for DemoLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DemoLink::Rate(rate) => rate.fmt(f),
            DemoLink::Unshaped => f.pad("unshaped"),
        }
    }
}

impl FromStr for DemoLink {
    type Err = ParseRateError;

    fn from_str(given: &str) -> Result<DemoLink, ParseRateError> {
        if given == "unshaped" { Ok(DemoLink::Unshaped) } else { given.parse().map(DemoLink::Rate) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_none() {
        for name in ["1.5 Mbit/s", "unshaped"] {
            assert_eq!(name.parse::<DemoLink>().unwrap().to_string(), name);
        }
        assert!("fast".parse::<DemoLink>().is_err());
    }

    #[test]
    fn fast_links_get_more_to_do() {
        let file = SampleFile { name: "a".to_owned(), bytes: vec![7; 1_000_000].into() };
        let bytes = |link: &str| {
            let files = [file.clone(), file.clone()];
            link.parse::<DemoLink>().unwrap().enough_of(&files)[1].bytes.len()
        };
        assert_eq!(bytes("1.5Mbit"), 1_000_000);
        // 6.25 MB in half a second, rounded up to whole files.
        assert_eq!(bytes("100Mbit"), 7_000_000);
        assert_eq!(bytes("unshaped"), 604_000_000);
        let nothing = SampleFile { name: "b".to_owned(), bytes: Vec::new().into() };
        assert_eq!(DemoLink::Unshaped.enough_of(std::slice::from_ref(&nothing)), [nothing]);
    }
}
