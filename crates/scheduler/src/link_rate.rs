//! What is known of a link's rate, and how a peer is paced for it.

use core::str::FromStr;

use crate::{ParseRateError, Rate};

/// What the configuration of one end says of its link in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkRate {
    /// It need not be paced.
    #[default]
    Unpaced,
    /// Configured, in bit/s of wire bytes.
    Given(Rate),
    /// To be estimated from delivery reports.
    Auto,
}

impl LinkRate {
    /// The rate, if it was given.
    #[must_use]
    pub const fn given(self) -> Option<Rate> {
        match self {
            LinkRate::Given(rate) => Some(rate),
            LinkRate::Unpaced | LinkRate::Auto => None,
        }
    }
}

impl FromStr for LinkRate {
    type Err = ParseRateError;

    /// Reads `auto`, or a rate as [`Rate`] does.
    fn from_str(text: &str) -> Result<LinkRate, ParseRateError> {
        if text.trim() == "auto" { Ok(LinkRate::Auto) } else { text.parse().map(LinkRate::Given) }
    }
}

impl From<Option<Rate>> for LinkRate {
    fn from(rate: Option<Rate>) -> LinkRate {
        rate.map_or(LinkRate::Unpaced, LinkRate::Given)
    }
}

/// How a sender is paced towards a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Not at all: straight through.
    #[default]
    None,
    /// At this rate.
    At(Rate),
    /// At the rate estimated from the peer's delivery reports.
    Estimated {
        /// No faster than this, if a rate was given as well.
        at_most: Option<Rate>,
    },
}

impl Pace {
    /// The pace from an end whose link takes `up` to one whose link takes `down`: the slower of the two, as far as they
    /// are known.
    #[must_use]
    pub fn between(up: LinkRate, down: LinkRate) -> Pace {
        let given = up.given().into_iter().chain(down.given()).min();
        match given {
            at_most if up == LinkRate::Auto || down == LinkRate::Auto => Pace::Estimated { at_most },
            Some(rate) => Pace::At(rate),
            None => Pace::None,
        }
    }

    /// What remains of it towards a peer that does not report what it receives.
    #[must_use]
    pub fn without_reports(self) -> Pace {
        self.given().into()
    }

    /// The rate that was given.
    #[must_use]
    pub const fn given(self) -> Option<Rate> {
        match self {
            Pace::None => None,
            Pace::At(rate) => Some(rate),
            Pace::Estimated { at_most } => at_most,
        }
    }
}

impl From<Option<Rate>> for Pace {
    fn from(rate: Option<Rate>) -> Pace {
        rate.map_or(Pace::None, Pace::At)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_common_notations() {
        assert_eq!("auto".parse(), Ok(LinkRate::Auto));
        assert_eq!("1kbit".parse(), Ok(LinkRate::Given(Rate::from_bits(1_000).expect("in range"))));
        assert!("automatic".parse::<LinkRate>().is_err());
    }

    #[test]
    fn the_slower_end_decides_as_far_as_it_is_known() {
        let rate = |bits| Rate::from_bits(bits).expect("in range");
        let (slow, fast) = (rate(1_000), rate(2_000));
        let estimated = |at_most| Pace::Estimated { at_most };
        for (one, other, pace) in [
            (LinkRate::Unpaced, LinkRate::Unpaced, Pace::None),
            (LinkRate::Given(fast), LinkRate::Unpaced, Pace::At(fast)),
            (LinkRate::Given(fast), LinkRate::Given(slow), Pace::At(slow)),
            (LinkRate::Auto, LinkRate::Unpaced, estimated(None)),
            (LinkRate::Auto, LinkRate::Auto, estimated(None)),
            (LinkRate::Auto, LinkRate::Given(slow), estimated(Some(slow))),
        ] {
            assert_eq!((Pace::between(one, other), Pace::between(other, one)), (pace, pace));
            assert_eq!(pace.without_reports().given(), pace.given());
        }
        assert_eq!(estimated(None).without_reports(), Pace::None);
    }
}
