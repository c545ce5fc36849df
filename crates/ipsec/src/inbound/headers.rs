//! Which headers that no association is known by are passed on to the key manager: those for this node, and of each source no more
//! than there is time for.

use std::collections::BTreeMap;
use std::sync::Arc;

use strait_clock::Time;
use strait_scheduler::{Budget, SourceBudget};

use crate::{PeerId, Reason, Source};

/// Headers and key packets that are passed on in a second from where no peer is known to be, and at once after a pause; a fourth of
/// the rate and half of the burst for one source. The key manager takes some 10 us for one that is forged: 5 % of a processor. A hub
/// that starts among peers at unknown addresses binds 5,000 of them in a second.
const STRANGERS: u64 = 5000;
const STRANGERS_BURST: u64 = 500;
/// The same of each source where a peer is known to be, which others may forge: of a flood of 50,000 a second, so many pass that a
/// packet of the peer in ten does.
const KNOWN: u64 = 5000;
const KNOWN_BURST: u64 = 250;

/// Looks at a datagram with a header that no association is known by, or at a key packet, before anything is done about it.
pub trait HeaderGate: core::fmt::Debug + Send + Sync {
    /// Whether it is well formed and meant for this node, by its bytes alone. What it refuses, the gate counts.
    fn takes(&self, datagram: &[u8]) -> bool;
}

/// What becomes of such a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderVerdict {
    /// The key manager looks at it.
    Passed,
    /// The gate refused and counted it.
    Counted,
    /// It is refused for this reason.
    Refused(Reason),
}

/// Where headers may come from, and how many.
#[derive(Debug)]
pub(super) struct HeaderIntake {
    pub(super) gate: Option<Arc<dyn HeaderGate>>,
    /// Where each peer is.
    places: BTreeMap<PeerId, Source>,
    known: BTreeMap<Source, KnownPlace>,
    strangers: SourceBudget,
}

/// A source where peers are.
#[derive(Debug)]
struct KnownPlace {
    peers: usize,
    budget: Budget,
}

impl Default for HeaderIntake {
    fn default() -> HeaderIntake {
        let strangers = SourceBudget::new(STRANGERS, STRANGERS_BURST, STRANGERS_BURST / 2);
        HeaderIntake { gate: None, places: BTreeMap::new(), known: BTreeMap::new(), strangers }
    }
}

impl HeaderIntake {
    /// A peer is there now.
    pub(super) fn place(&mut self, peer: PeerId, source: Source) {
        let before = self.places.insert(peer, source);
        if before == Some(source) {
            return;
        }
        let new = || KnownPlace { peers: 0, budget: Budget::new(KNOWN, KNOWN_BURST) };
        self.known.entry(source).or_insert_with(new).peers += 1;
        self.left(before);
    }

    /// A peer is gone.
    pub(super) fn remove(&mut self, peer: PeerId) {
        let before = self.places.remove(&peer);
        self.left(before);
    }

    fn left(&mut self, before: Option<Source>) {
        let Some(source) = before else { return };
        let is_empty = self.known.get_mut(&source).is_some_and(|place| {
            place.peers -= 1;
            place.peers == 0
        });
        if is_empty {
            self.known.remove(&source);
        }
    }

    /// Whether a datagram from `source` is passed on. The gate computes a MAC, so it looks only at what a budget has room for; what it
    /// refuses takes nothing of one.
    pub(super) fn admit(&mut self, source: Source, datagram: &[u8], now: Time) -> HeaderVerdict {
        let Some(gate) = &self.gate else { return HeaderVerdict::Refused(Reason::UnknownDatagram) };
        let own = self.known.get_mut(&source).map(|place| &mut place.budget);
        let own = own.filter(|budget| budget.has_room(1, now));
        if own.is_none() && !self.strangers.has_room(source.number(), 1, now) {
            return HeaderVerdict::Refused(Reason::HeaderOverBudget);
        }
        if !gate.takes(datagram) {
            return HeaderVerdict::Counted;
        }
        let taken = match own {
            Some(budget) => budget.take(1, now),
            None => self.strangers.take(source.number(), 1, now),
        };
        if taken { HeaderVerdict::Passed } else { HeaderVerdict::Refused(Reason::HeaderOverBudget) }
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[derive(Debug)]
    struct FirstByte;

    impl HeaderGate for FirstByte {
        fn takes(&self, datagram: &[u8]) -> bool {
            datagram.first() == Some(&1)
        }
    }

    fn intake() -> HeaderIntake {
        HeaderIntake { gate: Some(Arc::new(FirstByte)), ..HeaderIntake::default() }
    }

    fn source(number: u32) -> Source {
        Source::of(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    const NOW: Time = Time::from_millis(1000);

    #[test]
    fn one_source_that_floods_leaves_room_for_all_others() {
        let mut intake = intake();
        intake.place(PeerId(1), source(1));
        let (mut flooder, mut strangers, mut known) = (0, 0, 0);
        // 100,000 a second from one source, 100 from as many others, and 100 from a peer's.
        for number in 0..100_000_u32 {
            let now = NOW + Duration::from_micros(u64::from(number) * 10);
            let mut passes = |of| u32::from(intake.admit(source(of), &[1], now) == HeaderVerdict::Passed);
            flooder += passes(0x0a00_0000);
            if number % 1000 == 0 {
                strangers += passes(0x0b00_0000 + number);
                known += passes(1);
            }
        }
        assert!((1000..=1750).contains(&flooder), "{flooder}");
        assert_eq!(known, 100);
        assert!(strangers >= 95, "those that share the flooder's part may lose theirs: {strangers} of 100");
    }

    #[test]
    fn many_sources_that_flood_leave_peers_alone() {
        let mut intake = intake();
        intake.place(PeerId(1), source(1));
        let (mut strangers, mut known) = (0, 0);
        for number in 0..100_000_u32 {
            let now = NOW + Duration::from_micros(u64::from(number) * 10);
            let mut passes = |of| u64::from(intake.admit(source(of), &[1], now) == HeaderVerdict::Passed);
            strangers += passes(2 + number);
            known += if number % 1000 == 0 { passes(1) } else { 0 };
        }
        assert!((STRANGERS..=STRANGERS + STRANGERS_BURST + 1).contains(&strangers), "{strangers}");
        assert_eq!(known, 100);
    }

    #[test]
    fn a_peers_address_in_a_flood_takes_its_budget_and_a_strangers_part() {
        let mut intake = intake();
        intake.place(PeerId(1), source(1));
        let passed = (0..10_000).filter(|_| intake.admit(source(1), &[1], NOW) == HeaderVerdict::Passed);
        assert_eq!(passed.count() as u64, KNOWN_BURST + STRANGERS_BURST / 2);
        assert_eq!(intake.admit(source(1), &[1], NOW), HeaderVerdict::Refused(Reason::HeaderOverBudget));
    }

    #[test]
    fn what_the_gate_refuses_takes_nothing_of_a_budget() {
        let mut intake = intake();
        assert!((0..100_000).all(|_| intake.admit(source(5), &[2], NOW) == HeaderVerdict::Counted));
        assert_eq!(intake.admit(source(5), &[1], NOW), HeaderVerdict::Passed);
        intake.gate = None;
        assert_eq!(intake.admit(source(5), &[1], NOW), HeaderVerdict::Refused(Reason::UnknownDatagram));
    }

    #[test]
    fn a_source_is_known_as_long_as_a_peer_is_there() {
        let mut intake = intake();
        intake.place(PeerId(1), source(1));
        intake.place(PeerId(2), source(1));
        intake.place(PeerId(1), source(2));
        assert_eq!(intake.known.keys().copied().collect::<Vec<_>>(), [source(1), source(2)]);
        intake.remove(PeerId(2));
        intake.remove(PeerId(2));
        intake.place(PeerId(1), source(2));
        assert_eq!(intake.known.keys().copied().collect::<Vec<_>>(), [source(2)]);
        intake.remove(PeerId(1));
        assert!(intake.known.is_empty() && intake.places.is_empty());
    }
}
