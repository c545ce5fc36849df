//! Which datagrams of the control channel are passed on: those of known sources first, of strangers no more than there
//! is time for.

use std::collections::BTreeMap;
use std::sync::Arc;

use strait_clock::Time;
use strait_scheduler::{Budget, SourceBudget};

use crate::{Reason, Source};

/// Datagrams of strangers that are passed on in a second, and at once after a pause. One that begins a handshake costs
/// the key manager about 20 us until its budgets refuse it: 2 % of a processor. A hub that starts with 64 sites at
/// addresses that it does not know gets three datagrams of each at once.
const STRANGERS: u64 = 1000;
const STRANGERS_BURST: u64 = 200;
/// The same of each known source: 40 sites behind one NAT that all begin a handshake at once, with 12 datagrams each.
const KNOWN: u64 = 100;
const KNOWN_BURST: u64 = 480;

/// Looks at a control datagram from an unknown source, before anything is done about it.
pub trait DatagramGate: core::fmt::Debug + Send + Sync {
    /// What `datagram` is, by its bytes alone.
    fn look(&self, datagram: &[u8]) -> GateVerdict;
}

/// What a [`DatagramGate`] sees in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// Its sender has proved that it is expected.
    Expected,
    /// It may be of a handshake that is under way.
    Unclear,
    /// Its sender should have proved something and has not.
    Refused,
}

/// Whom datagrams of the control channel may come from, and how many.
#[derive(Debug)]
pub(super) struct ControlIntake {
    pub(super) gate: Option<Arc<dyn DatagramGate>>,
    /// What the gate expects, from anywhere: it may have been recorded and sent again.
    expected: Budget,
    /// Sources that the key manager expects datagrams from.
    known: BTreeMap<Source, Budget>,
    strangers: SourceBudget,
    /// What the ids of connections with peers begin with, in ascending order.
    streams: Arc<[u32]>,
}

/// Who sent a datagram of the control channel, as far as its address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// An address that the key manager expects datagrams from.
    Known,
    /// Another.
    Stranger,
    /// Any, in a connection with a peer whose key is proved.
    Stream,
}

impl Default for ControlIntake {
    fn default() -> ControlIntake {
        let strangers = SourceBudget::new(STRANGERS, STRANGERS_BURST, STRANGERS_BURST / 2);
        let expected = Budget::new(KNOWN, KNOWN_BURST);
        ControlIntake { gate: None, expected, known: BTreeMap::new(), strangers, streams: Arc::default() }
    }
}

impl ControlIntake {
    /// These sources are known from now on, and no others.
    pub(super) fn know(&mut self, sources: &[Source]) {
        let before = core::mem::take(&mut self.known);
        let budget = |source| before.get(source).copied().unwrap_or(Budget::new(KNOWN, KNOWN_BURST));
        self.known = sources.iter().map(|source| (*source, budget(source))).collect();
    }

    /// Connections whose ids begin with these are peers' from now on, and no others.
    pub(super) fn know_streams(&mut self, marks: Arc<[u32]>) {
        self.streams = marks;
    }

    /// Whether a datagram from `source` is passed on, and as whose. Beyond its own budget a known source is a stranger
    /// like others: its address may be forged.
    pub(super) fn admit(&mut self, source: Source, datagram: &[u8], now: Time) -> Result<SourceKind, Reason> {
        if mark(datagram).is_some_and(|mark| self.streams.binary_search(&mark).is_ok()) {
            return Ok(SourceKind::Stream);
        }
        if self.known.get_mut(&source).is_some_and(|budget| budget.take(1, now)) {
            return Ok(SourceKind::Known);
        }
        match self.gate.as_ref().map(|gate| gate.look(datagram)) {
            Some(GateVerdict::Refused) => return Err(Reason::NoToken),
            Some(GateVerdict::Expected) if self.expected.take(1, now) => return Ok(SourceKind::Known),
            _ => {}
        }
        let fits = self.strangers.take(source.number(), 1, now);
        if fits { Ok(SourceKind::Stranger) } else { Err(Reason::StrangerOverBudget) }
    }
}

/// What the destination id of a datagram with a short header begins with (RFC 9000 section 17.3.1).
fn mark(datagram: &[u8]) -> Option<u32> {
    let (first, id) = datagram.split_first()?;
    (first & 0x80 == 0).then_some(())?;
    Some(u32::from_be_bytes(*id.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn source(number: u32) -> Source {
        Source::of(IpAddr::V4(Ipv4Addr::from_bits(number)))
    }

    #[test]
    fn a_flood_of_strangers_passes_at_the_budgets_rate_and_known_sources_pass_beside_it() {
        let (mut intake, friend) = (ControlIntake::default(), source(1));
        intake.know(&[friend]);
        let (mut strangers, mut known) = (0_u64, 0);
        // 100,000 a second from as many addresses, and one in ten thousand from a peer's.
        for number in 0..100_000_u32 {
            let now = Time::from_millis(1000) + Duration::from_micros(u64::from(number) * 10);
            strangers += u64::from(intake.admit(source(number + 2), &[], now) == Ok(SourceKind::Stranger));
            known +=
                u32::from(number % 10_000 == 0 && intake.admit(friend, &[], now) == Ok(SourceKind::Known));
        }
        assert!((STRANGERS..=STRANGERS + STRANGERS_BURST + 1).contains(&strangers), "{strangers}");
        assert_eq!(known, 10);
    }

    #[test]
    fn who_forges_a_known_address_takes_a_strangers_part_beyond_its_own() {
        let (mut intake, friend) = (ControlIntake::default(), source(1));
        intake.know(&[friend]);
        let now = Time::from_millis(1000);
        let passed: Vec<_> = (0..10_000).map(|_| intake.admit(friend, &[], now)).collect();
        let count = |wanted| passed.iter().filter(|one| **one == wanted).count() as u64;
        assert_eq!(count(Ok(SourceKind::Known)), KNOWN_BURST);
        assert_eq!(count(Ok(SourceKind::Stranger)), STRANGERS_BURST / 2);
        // The sources are told again, which fills no budget.
        intake.know(&[friend, source(2)]);
        assert_eq!(intake.admit(friend, &[], now), Err(Reason::StrangerOverBudget));
        assert_eq!(intake.admit(source(2), &[], now), Ok(SourceKind::Known));
    }

    #[derive(Debug)]
    struct FirstByte;

    impl DatagramGate for FirstByte {
        fn look(&self, datagram: &[u8]) -> GateVerdict {
            match datagram {
                [1, ..] => GateVerdict::Expected,
                [2, ..] => GateVerdict::Refused,
                _ => GateVerdict::Unclear,
            }
        }
    }

    #[test]
    fn what_the_gate_expects_passes_beside_a_flood_and_what_it_refuses_costs_no_budget() {
        let mut intake = ControlIntake { gate: Some(Arc::new(FirstByte)), ..ControlIntake::default() };
        let now = Time::from_millis(1000);
        assert!((0..100_000).all(|number| intake.admit(source(number), &[2], now) == Err(Reason::NoToken)));
        let passed = (0..10_000).filter(|number| intake.admit(source(*number), &[0], now).is_ok()).count();
        assert_eq!(passed as u64, STRANGERS_BURST);
        assert_eq!(intake.admit(source(5), &[1], now), Ok(SourceKind::Known));
    }

    #[test]
    fn datagrams_of_peers_streams_pass_from_anywhere_and_cost_no_budget() {
        let (mut intake, now) = (ControlIntake::default(), Time::from_millis(1000));
        intake.know_streams(Arc::from([7, 0x0102_0304]));
        let datagram = |first: u8, mark: u32| [&[first][..], &mark.to_be_bytes(), &[9; 40]].concat();
        let stream = datagram(0x40, 0x0102_0304);
        assert!(
            (0..100_000).all(|number| intake.admit(source(number), &stream, now) == Ok(SourceKind::Stream))
        );
        let others = [datagram(0x40, 8), datagram(0xc0, 7), vec![0x40, 1, 2, 3]];
        for (number, other) in (0..).zip(others) {
            assert_eq!(intake.admit(source(number), &other, now), Ok(SourceKind::Stranger), "{other:?}");
        }
        intake.know_streams(Arc::default());
        assert_eq!(intake.admit(source(9), &stream, now), Ok(SourceKind::Stranger), "the connection is over");
    }
}
