//! What was sent, by service and by class of the queue.

use core::fmt;
use std::sync::OnceLock;

use strait_scheduler::Tin;
use strait_wire::{Flow, Service};

use super::Tally;

/// Services that are counted apart, those that come first: more than a site usually needs.
const SERVICES: usize = 24;

/// Counters of one service or class.
#[derive(Debug, Default)]
pub struct ServiceTally {
    /// Inner packets sent.
    pub packets: Tally,
    /// Their bytes.
    pub bytes: Tally,
    /// Their part of the wire bytes as they were sealed: where packets share datagrams, by their bytes.
    pub wire: Tally,
}

impl ServiceTally {
    fn add(&self, packets: u64, bytes: u64, wire: u64) {
        self.packets.add(packets);
        self.bytes.add(bytes);
        self.wire.add(wire);
    }
}

/// Counters by service: of packets of the tunnel, of services that have no place of their own, and of streams (files, logins); and of all
/// of them by class.
#[derive(Debug, Default)]
pub struct ServiceCounters {
    classes: [ServiceTally; Tin::ALL.len()],
    places: [(OnceLock<Service>, ServiceTally); SERVICES],
    others: ServiceTally,
    streams: ServiceTally,
}

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceClass {
    /// A service.
    One(Service),
    /// All services that have no place of their own.
    Others,
    /// Datagrams of streams, as QUIC sealed them.
    Streams,
}

impl fmt::Display for ServiceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceClass::One(service) => write!(f, "{service}"),
            ServiceClass::Others => f.write_str("other services"),
            ServiceClass::Streams => f.write_str("files and logins"),
        }
    }
}

impl ServiceCounters {
    /// How many places there are.
    pub const PLACES: usize = SERVICES + 2;

    /// What is counted in a place, with its counters; nothing where it has no service yet.
    #[must_use]
    pub fn get(&self, place: usize) -> Option<(ServiceClass, &ServiceTally)> {
        match self.places.get(place) {
            Some((service, tally)) => Some((ServiceClass::One(*service.get()?), tally)),
            None if place == SERVICES => Some((ServiceClass::Others, &self.others)),
            None => (place < Self::PLACES).then_some((ServiceClass::Streams, &self.streams)),
        }
    }

    /// All that is counted, with its counters.
    pub fn all(&self) -> impl Iterator<Item = (ServiceClass, &ServiceTally)> {
        (0..Self::PLACES).filter_map(|place| self.get(place))
    }

    /// Counters of a class.
    #[must_use]
    pub const fn class(&self, tin: Tin) -> &ServiceTally {
        let [interactive, normal, bulk] = &self.classes;
        match tin {
            Tin::Interactive => interactive,
            Tin::Normal => normal,
            Tin::Bulk => bulk,
        }
    }

    /// Counts packets of a flow that left in a class; one thread does.
    pub(crate) fn note(&self, flow: &Flow, tin: Tin, packets: u64, bytes: u64, wire: u64) {
        for tally in [self.tally(Service::of(flow)), self.class(tin)] {
            tally.add(packets, bytes, wire);
        }
    }

    /// Counts datagrams of streams; the same thread does.
    pub(crate) fn note_stream(&self, tin: Tin, datagrams: u64, bytes: u64, wire: u64) {
        for tally in [&self.streams, self.class(tin)] {
            tally.add(datagrams, bytes, wire);
        }
    }

    fn tally(&self, service: Service) -> &ServiceTally {
        if service.is_unnamed() {
            return &self.others;
        }
        let is = |(place, _): &&(OnceLock<Service>, ServiceTally)| *place.get_or_init(|| service) == service;
        self.places.iter().find(is).map_or(&self.others, |(_, tally)| tally)
    }
}

#[cfg(test)]
mod tests {
    use strait_wire::Protocol;

    use super::*;

    #[test]
    fn those_that_come_first_have_places_and_the_others_share_one() {
        let counters = ServiceCounters::default();
        let [src, dst] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let flow = |port| Flow { src, dst, protocol: Protocol::UDP, src_port: 40_000, dst_port: port };
        // Two ports that systems hand out say nothing.
        counters.note(&flow(50_000), Tin::Normal, 1, 0, 0);
        for port in 1..=30 {
            counters.note(&flow(port), Tin::Interactive, 1, 100, 60);
            counters.note(&flow(1), Tin::Normal, 2, 10, 6);
        }
        counters.note_stream(Tin::Bulk, 3, 3_000, 3_084);
        assert_eq!(counters.all().count(), SERVICES + 2);
        let said = |place: usize| {
            let (class, tally) = counters.get(place).unwrap();
            (class, tally.packets.get(), tally.bytes.get(), tally.wire.get())
        };
        let one = |port| ServiceClass::One(Service { protocol: Protocol::UDP, port });
        assert_eq!(said(0), (one(1), 61, 400, 240));
        assert_eq!(said(23), (one(24), 1, 100, 60));
        assert_eq!(said(24), (ServiceClass::Others, 7, 600, 360));
        assert_eq!(said(25), (ServiceClass::Streams, 3, 3_000, 3_084));
        assert!(counters.get(26).is_none());
        let by_class = Tin::ALL.map(|tin| counters.class(tin).packets.get());
        assert_eq!(by_class, [30, 61, 3]);
        let none = ServiceCounters::default();
        assert!((0..SERVICES).all(|place| none.get(place).is_none()));
    }
}
