//! The path that a demonstration has between its hosts: a link, and what else a long one is like.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LossModel, SimLink};
use strait_testbed::{EmulatedPath, Error, FrameDirection, LinkSpec, Relay, TwoHosts};

use crate::link::DemoLink;

/// What the modem's queue holds, as that of [`LinkSpec::thin`].
const QUEUE: Duration = Duration::from_millis(300);
/// Decides which packets are lost: in every demonstration the same ones of the same.
const SEED: u64 = 4303;

/// A link; a round trip and loss where they are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DemoPath {
    pub(crate) link: DemoLink,
    /// Of a small packet on the empty path; without one the hosts are beside each other.
    pub(crate) rtt: Option<Duration>,
    pub(crate) loss: Option<LossShare>,
}

/// What takes the place of the wire between two hosts, where the kernel's own link does not do.
#[derive(Debug)]
pub(crate) struct DemoWire {
    path: EmulatedPath,
    _relay: Relay,
}

impl DemoPath {
    /// Of a link, and of a round trip and loss where given; nothing where only a rate can be delayed and there is none.
    pub(crate) const fn new(
        link: DemoLink,
        rtt: Option<Duration>,
        loss: Option<LossShare>,
    ) -> Option<DemoPath> {
        match (link, rtt, loss) {
            (DemoLink::Unshaped, Some(_), _) | (DemoLink::Unshaped, _, Some(_)) => None,
            _ => Some(DemoPath { link, rtt, loss }),
        }
    }

    /// As a noun.
    pub(crate) fn words(&self) -> String {
        let mut words = self.link.words();
        if let Some(rtt) = self.rtt {
            words.push_str(&format!(", a round trip of {} ms", rtt.as_millis()));
        }
        if let Some(loss) = self.loss {
            words.push_str(&format!(", {loss} of packets lost"));
        }
        words
    }

    /// Two hosts at its ends, and the wire between them if the kernel's link is not it.
    pub(crate) fn hosts(&self) -> Result<(TwoHosts, Option<DemoWire>), Error> {
        let Some((rate, true)) = self.link.rate().zip(Some(self.rtt.is_some() || self.loss.is_some())) else {
            return Ok((TwoHosts::direct(self.spec())?, None));
        };
        let path = self.emulated(rate);
        let (hosts, relay) = Relay::over(&path)?;
        Ok((hosts, Some(DemoWire { path, _relay: relay })))
    }

    const fn spec(&self) -> LinkSpec {
        self.link.spec()
    }

    fn emulated(&self, rate: Rate) -> EmulatedPath {
        let loss = self.loss.map_or(LossModel::None, |loss| LossModel::Uniform(loss.0));
        let modem = LinkSettings::modem(rate, self.rtt.unwrap_or_default() / 2, QUEUE);
        let link = |seed| SimLink::new(LinkSettings { loss, ..modem }, seed);
        EmulatedPath::new(link(SEED), link(!SEED))
    }
}

impl DemoWire {
    /// Packets that it has lost so far by chance, both ways; what its queues could not hold is not among them.
    pub(crate) fn lost(&self) -> u64 {
        [FrameDirection::There, FrameDirection::Back].map(|way| self.path.counters(way).lost).iter().sum()
    }
}

/// Of so many packets, each is lost by itself: from 0 to 0.5.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LossShare(f64);

impl LossShare {
    /// Above this no handshake comes to its end in a time that people would wait.
    const MOST: f64 = 0.5;

    pub(crate) const fn share(self) -> f64 {
        self.0
    }
}

impl fmt::Display for LossShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", (self.0 * 1e6).round() / 1e4)
    }
}

/// A share of loss that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadLossShare(String);

impl fmt::Display for BadLossShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a share of loss; write for example \"1%\" or \"0.2%\", at most \"50%\"",
            self.0
        )
    }
}

impl std::error::Error for BadLossShare {}

impl FromStr for LossShare {
    type Err = BadLossShare;

    /// Reads `1%` and `0.2 %`.
    fn from_str(given: &str) -> Result<LossShare, BadLossShare> {
        let number = given.trim().strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
        let share = number.map(|percent| percent / 100.0);
        let share = share.filter(|share| (0.0..=LossShare::MOST).contains(share));
        share.map(LossShare).ok_or_else(|| BadLossShare(given.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_loss_has_a_percent_sign_and_a_bound() {
        for (given, expected) in [("1%", 0.01), ("0.2 %", 0.002), ("0%", 0.0), ("50%", 0.5)] {
            assert_eq!(given.parse::<LossShare>(), Ok(LossShare(expected)), "{given}");
        }
        for given in ["1", "0.01", "%", "-1%", "51%", "NaN%", "one%"] {
            let error = given.parse::<LossShare>().unwrap_err().to_string();
            assert!(error.contains(given) && error.contains("1%"), "{error}");
        }
        assert_eq!(LossShare(0.002).to_string(), "0.2 %");
        assert_eq!(LossShare(0.01).to_string(), "1 %");
    }

    #[test]
    fn words_name_what_was_asked_for() {
        let link: DemoLink = "2Mbit".parse().unwrap();
        let words = |rtt, loss: Option<&str>| {
            let loss = loss.map(|text| text.parse().unwrap());
            DemoPath::new(link, rtt, loss).unwrap().words()
        };
        assert_eq!(words(None, None), "a link of 2 Mbit/s each way");
        assert_eq!(
            words(Some(Duration::from_millis(600)), Some("1%")),
            "a link of 2 Mbit/s each way, a round trip of 600 ms, 1 % of packets lost"
        );
        assert_eq!(DemoPath::new(DemoLink::Unshaped, Some(Duration::ZERO), None), None);
        assert!(DemoPath::new(DemoLink::Unshaped, None, None).is_some());
    }
}
