//! The links: one that others are held against, and one that differs in each respect.

use std::time::Duration;

use strait_sim::LossModel;

use super::way::PeerWay;
use crate::paths::ThinPath;

/// How much of what is lost.
const LOST: LossModel = LossModel::Uniform(0.01);

/// The fastest link, in Mbit/s, that does not measure the virtual machines which one of the tunnels has for its routers.
const GUESTS: f64 = 10.0;

/// A link, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerLink {
    /// Its section, and what `--part` calls it.
    pub(super) name: &'static str,
    pub(super) part: &'static str,
    pub(super) path: ThinPath,
    /// Which variants are measured besides the other ways.
    pub(super) variants: &'static [PeerWay],
    /// How many ways are measured at the same time, each over a link of its own: more than one where these keep no processor busy.
    pub(super) together: usize,
    /// How many times as long as usual a stream goes on and is measured: where there are few packets a second, one that was lost shows
    /// for long.
    pub(super) stretch: u32,
    /// How many runs: all of them take about an hour.
    pub(super) runs: usize,
}

impl PeerLink {
    /// The tunnels that are measured over it: those that were asked for and Strait, or else all that belong there.
    pub(super) fn ways(&self, asked: &[PeerWay]) -> Vec<PeerWay> {
        let is_slow = self.path.megabits.is_some_and(|megabits| megabits <= GUESTS);
        let belongs = |way: &PeerWay| match way {
            PeerWay::Ipcomp => is_slow,
            way => !way.is_variant() || self.variants.contains(way),
        };
        let is_wanted = |way: &PeerWay| if asked.is_empty() { belongs(way) } else { way.is_asked_for(asked) };
        PeerWay::ALL.into_iter().filter(is_wanted).collect()
    }

    /// The round trip of the empty link.
    pub(super) fn round_trip(&self) -> Duration {
        Duration::from_millis(self.path.rtt.unwrap_or(0))
    }

    /// Until streams are as fast as they get: ten round trips for CUBIC's slow start, and time for what comes after it, where there is
    /// a delay: a stream inside a stream, as with ssh, takes long to find its rate.
    pub(super) fn warm_up(&self) -> Duration {
        let after = if self.path.rtt.is_some() { 3 } else { 1 };
        self.round_trip() * 10 + Duration::from_secs(after) * self.stretch
    }

    /// How long a stream is measured: twenty round trips at least, of which what a loss holds back is a small part.
    pub(super) fn window(&self, usual: Duration) -> Duration {
        (self.round_trip() * 20).max(usual * self.stretch)
    }
}

const fn clean(megabits: f64, rtt: u64) -> ThinPath {
    ThinPath::clean(megabits, rtt)
}

/// The base first.
pub(super) const LINKS: [PeerLink; 7] = [
    PeerLink {
        name: "peers: base",
        part: "base",
        path: clean(10.0, 60),
        variants: &[PeerWay::Auto],
        together: 1,
        stretch: 1,
        runs: 3,
    },
    PeerLink {
        name: "peers: thin",
        part: "thin",
        path: clean(1.54, 60),
        variants: &[],
        together: 3,
        stretch: 2,
        runs: 2,
    },
    PeerLink {
        name: "peers: fast",
        part: "fast",
        path: clean(100.0, 60),
        variants: &[PeerWay::TincLzo],
        together: 1,
        stretch: 1,
        runs: 2,
    },
    PeerLink {
        name: "peers: unlimited",
        part: "unlimited",
        path: ThinPath { megabits: None, rtt: None, loss: LossModel::None },
        variants: &[PeerWay::TincLzo],
        together: 1,
        stretch: 1,
        runs: 2,
    },
    PeerLink {
        name: "peers: far",
        part: "far",
        path: clean(10.0, 600),
        variants: &[],
        together: 3,
        stretch: 1,
        runs: 2,
    },
    PeerLink {
        name: "peers: lossy",
        part: "lossy",
        path: ThinPath { loss: LOST, ..clean(10.0, 60) },
        variants: &[],
        together: 3,
        stretch: 1,
        runs: 2,
    },
    PeerLink {
        name: "peers: hard",
        part: "hard",
        path: ThinPath { loss: LOST, ..clean(1.54, 600) },
        variants: &[],
        together: 3,
        stretch: 2,
        runs: 2,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_all_tunnels_that_belong_there_or_those_that_were_asked_for() {
        let [base, _, fast, ..] = LINKS;
        let ways = base.ways(&[]);
        assert!(ways.contains(&PeerWay::Auto) && ways.contains(&PeerWay::Ipcomp), "{ways:?}");
        assert!(!ways.contains(&PeerWay::TincLzo), "{ways:?}");
        let ways = fast.ways(&[]);
        assert!(ways.contains(&PeerWay::TincLzo) && !ways.contains(&PeerWay::Ipcomp), "{ways:?}");
        let asked = ["Linux IPsec, IPComp"].map(|name| PeerWay::named(name).unwrap());
        assert_eq!(fast.ways(&asked), [PeerWay::Strait, PeerWay::Ipcomp]);
        assert!(PeerWay::named("vtun").unwrap_err().contains("; tinc, zlib; "));
    }
}
