//! Where a peer is: a latest value that its owner's threads share, so that no full queue loses a move.

use core::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A remote address, and the address of this host that datagrams from there arrive at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The remote address and port.
    pub remote: SocketAddr,
    /// The local address, which datagrams to there leave with; none where the kernel chooses it. The unspecified address is none of
    /// this host's: no datagram leaves with it.
    pub local: Option<IpAddr>,
}

/// The number of addresses that stand ready for one that is gone: an uplink may go with the first of them.
pub const SPARES: usize = 2;

impl From<SocketAddr> for Place {
    fn from(remote: SocketAddr) -> Place {
        Place { remote, local: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.remote.fmt(f)
    }
}

/// Where the newest authentic packet of a peer came from, or where its last handshake was.
///
/// The receiver and the key manager set it, the last one counts. The sender looks at it before it sends. A look costs one
/// load while nothing changed; the address itself is locked only when it is set, or read after it was set.
#[derive(Debug, Default)]
pub struct LatestEndpoint {
    /// The number of changes of the remote address.
    moves: AtomicU64,
    /// The number of changes of any kind.
    changes: AtomicU64,
    known: Mutex<KnownPlace>,
}

#[derive(Debug, Default)]
struct KnownPlace {
    place: Option<Place>,
    /// True if the peer was heard at the local address; otherwise it was chosen here.
    heard: bool,
    /// A local address that is not learned for a while, as the routing table has turned away from it.
    left: Option<IpAddr>,
    /// The addresses that datagrams to this remote host may leave with besides, the best first; the kernel chooses as long as they are not
    /// known.
    spares: Option<[Option<IpAddr>; SPARES]>,
}

impl LatestEndpoint {
    /// The peer is at `to`; returns where it was before. A local address that is not known stays as it was for the same host.
    pub fn set(&self, to: impl Into<Place>) -> Option<SocketAddr> {
        let Place { remote, local } = to.into();
        let mut known = self.lock();
        let before = known.place;
        let same_host = before.filter(|before| before.remote.ip() == remote.ip());
        if same_host.is_none() {
            (known.heard, known.spares) = (false, None);
        }
        let kept = same_host.and_then(|before| before.local);
        let learned = local.filter(|local| Some(*local) != known.left);
        known.place = Some(Place { remote, local: learned.or(kept) });
        known.heard |= learned.is_some();
        self.note(before, known.place);
        before.map(|before| before.remote)
    }

    /// It is not known where the peer is.
    pub fn clear(&self) {
        let before = self.lock().place.take();
        self.note(before, None);
    }

    /// Takes the local addresses that datagrams to `remote` may leave with, the best first: the first is used as long as the peer was not
    /// heard at another, and each of them stands ready for one that is gone. Without any, nothing leaves until the peer is heard.
    pub fn offer(&self, remote: IpAddr, spares: [Option<IpAddr>; SPARES]) {
        let mut known = self.lock();
        let before = known.place;
        let Some(place) = before.filter(|place| place.remote.ip() == remote) else { return };
        if !known.heard {
            let [first, ..] = spares;
            let none = match remote.to_canonical() {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            known.place = Some(Place { local: first.or(Some(none)), ..place });
        }
        known.spares = Some(spares);
        self.note(before, known.place);
    }

    /// Returns places that differ from `to` in the local address alone, which the kernel does not take, in the order in which they are to
    /// be tried.
    #[must_use]
    pub fn others(&self, to: Place) -> [Option<Place>; SPARES] {
        let is_v4 = to.remote.ip().to_canonical().is_ipv4();
        let fits = |spare: &IpAddr| spare.is_ipv4() == is_v4 && Some(*spare) != to.local;
        let place = |local| Place { local, ..to };
        match self.lock().spares {
            Some(spares) => spares.map(|spare| spare.filter(fits).map(|spare| place(Some(spare)))),
            None => [Some(place(None)), None],
        }
    }

    /// Datagrams that left with the local address `from`, which the kernel does not take any more, leave with `to` from now on, which it
    /// took instead.
    pub fn change_local(&self, from: Option<IpAddr>, to: Option<IpAddr>) {
        let mut known = self.lock();
        let before = known.place;
        if let Some(place) = before.filter(|place| place.local == from) {
            known.place = Some(Place { local: to, ..place });
            known.heard = false;
        }
        self.note(before, known.place);
    }

    /// Takes that the routing table has turned away from the local address `from` to `to`: datagrams that left with the former follow, and
    /// packets that still arrive there change nothing until [`LatestEndpoint::settle`]. Says whether datagrams left with it.
    pub fn leave_local(&self, from: IpAddr, to: IpAddr) -> bool {
        let mut known = self.lock();
        let Some(place) = known.place.filter(|place| place.local == Some(from)) else { return false };
        known.place = Some(Place { local: Some(to), ..place });
        (known.heard, known.left) = (false, Some(from));
        self.changes.fetch_add(1, Ordering::Release);
        true
    }

    /// Any local address is learned again from the next packet on.
    pub fn settle(&self) {
        if self.lock().left.take().is_some() {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Where the peer is, if that is known.
    #[must_use]
    pub fn get(&self) -> Option<SocketAddr> {
        self.place().map(|place| place.remote)
    }

    /// The same with the local address.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.lock().place
    }

    /// The place of the peer's host at `remote`, where the peer may not be any more.
    #[must_use]
    pub fn place_at(&self, remote: SocketAddr) -> Place {
        let known = self.place().filter(|place| place.remote.ip() == remote.ip());
        let local = known.and_then(|place| place.local).filter(|local| !local.is_unspecified());
        Place { remote, local }
    }

    /// The number of changes of the remote address.
    #[must_use]
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Acquire)
    }

    /// The number of changes of that or of the local address.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The place of the peer, if that changed since `seen` changes, which become those of now.
    pub fn news(&self, seen: &mut u64) -> Option<Place> {
        let changes = self.changes();
        if core::mem::replace(seen, changes) == changes { None } else { self.place() }
    }

    /// Counts what is another place than before.
    fn note(&self, before: Option<Place>, now: Option<Place>) {
        if before.map(|place| place.remote) != now.map(|place| place.remote) {
            self.moves.fetch_add(1, Ordering::Release);
        }
        if before != now {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    // Nothing can panic while it is locked.
    fn lock(&self) -> MutexGuard<'_, KnownPlace> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16, local: &str) -> Place {
        Place { remote: SocketAddr::from(([192, 0, 2, 1], port)), local: local.parse().ok() }
    }

    #[test]
    fn only_the_latest_address_counts_and_is_news_once() {
        let [one, other] = [9, 10].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let (endpoint, mut seen) = (LatestEndpoint::default(), 0);
        assert_eq!((endpoint.get(), endpoint.news(&mut seen)), (None, None));
        assert_eq!(
            [endpoint.set(one), endpoint.set(other), endpoint.set(other)],
            [None, Some(one), Some(other)]
        );
        assert_eq!((endpoint.get(), endpoint.moves()), (Some(other), 2));
        assert_eq!([endpoint.news(&mut seen), endpoint.news(&mut seen)], [Some(other.into()), None]);
        endpoint.clear();
        assert_eq!((endpoint.get(), endpoint.news(&mut seen), endpoint.moves()), (None, None, 3));
    }

    #[test]
    fn another_local_address_is_news_and_no_move() {
        let (endpoint, mut seen) = (LatestEndpoint::default(), 0);
        endpoint.set(at(9, "198.51.100.2"));
        assert_eq!(endpoint.news(&mut seen), Some(at(9, "198.51.100.2")));
        assert_eq!(endpoint.set(at(9, "198.51.100.3")), Some(at(9, "").remote));
        assert_eq!((endpoint.news(&mut seen), endpoint.moves()), (Some(at(9, "198.51.100.3")), 1));
        // It stays for another port of the host, and not for another host.
        endpoint.set(at(10, ""));
        assert_eq!(endpoint.place(), Some(at(10, "198.51.100.3")));
        assert_eq!(endpoint.place_at(at(9, "").remote), at(9, "198.51.100.3"));
        let elsewhere = SocketAddr::from(([192, 0, 2, 7], 9));
        assert_eq!(endpoint.place_at(elsewhere), elsewhere.into());
        endpoint.set(elsewhere);
        assert_eq!(endpoint.place(), Some(elsewhere.into()));
    }

    #[test]
    fn a_local_address_that_was_left_is_not_learned_until_that_is_settled() {
        let endpoint = LatestEndpoint::default();
        let [old, new] = ["198.51.100.2", "203.0.113.2"];
        endpoint.set(at(9, old));
        let [from, to] = [old, new].map(|address| address.parse().unwrap());
        assert!(!endpoint.leave_local(to, from), "it is not in use");
        assert!(endpoint.leave_local(from, to));
        endpoint.set(at(9, old));
        assert_eq!(endpoint.place(), Some(at(9, new)), "packets on their way change nothing");
        endpoint.set(at(9, ""));
        assert_eq!(endpoint.place(), Some(at(9, new)));
        let mut seen = endpoint.changes();
        endpoint.settle();
        assert!(endpoint.news(&mut seen).is_some(), "the next packet is looked at");
        endpoint.set(at(9, old));
        assert_eq!(endpoint.place(), Some(at(9, old)));
        assert_eq!(endpoint.moves(), 1);
    }

    #[test]
    fn another_address_takes_the_place_of_one_that_is_gone() {
        let endpoint = LatestEndpoint::default();
        let [learned, first, second] = ["198.51.100.2", "203.0.113.2", "203.0.113.3"];
        let [one, other] = [first, second].map(|address| address.parse().ok());
        let remote = at(9, "").remote.ip();
        let place = || endpoint.place().unwrap();
        endpoint.set(at(9, learned));
        let kernels = [Some(at(9, "")), None];
        assert_eq!(endpoint.others(place()), kernels, "as long as nothing is known, the kernel chooses");
        endpoint.offer("192.0.2.7".parse().unwrap(), [None; SPARES]);
        assert_eq!(endpoint.others(place()), kernels, "that was for another host");
        endpoint.offer(remote, [one, other]);
        assert_eq!(place(), at(9, learned), "the peer sends there");
        assert_eq!(endpoint.others(place()), [Some(at(9, first)), Some(at(9, second))]);
        assert_eq!(endpoint.others(at(9, first)), [None, Some(at(9, second))]);
        let v6 = Place { remote: "[2001:db8::1]:9".parse().unwrap(), local: None };
        assert_eq!(endpoint.others(v6), [None; SPARES]);
        endpoint.change_local(one, other);
        assert_eq!(place(), at(9, learned), "another is in use");
        endpoint.change_local(learned.parse().ok(), other);
        assert_eq!(place(), at(9, second));
        endpoint.offer(remote, [one, other]);
        assert_eq!(place(), at(9, first), "the routing table is followed");
        endpoint.offer(remote, [None; SPARES]);
        assert_eq!(place().local, Some(Ipv4Addr::UNSPECIFIED.into()), "nothing leaves");
        endpoint.set(at(9, second));
        endpoint.offer(remote, [None; SPARES]);
        assert_eq!(place(), at(9, second), "the peer was heard there");
    }

    #[test]
    fn datagrams_leave_with_the_best_address_until_the_peer_is_heard() {
        let endpoint = LatestEndpoint::default();
        let there = at(9, "").remote;
        let local = || endpoint.place().and_then(|place| place.local);
        endpoint.set(there);
        endpoint.offer(there.ip(), [None; SPARES]);
        assert_eq!(local(), Some(Ipv4Addr::UNSPECIFIED.into()), "nothing leaves");
        let best = "203.0.113.2".parse().ok();
        endpoint.offer(there.ip(), [best, None]);
        assert_eq!(local(), best);
        endpoint.set(at(9, "203.0.113.3"));
        endpoint.offer(there.ip(), [best, None]);
        assert_eq!(endpoint.place(), Some(at(9, "203.0.113.3")));
        let elsewhere = SocketAddr::from(([192, 0, 2, 7], 9));
        endpoint.set(elsewhere);
        assert_eq!(endpoint.place(), Some(elsewhere.into()), "it is another host");
    }
}
