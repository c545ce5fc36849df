//! Packets to addresses whose peer is being looked up: they wait here, bounded, and go to the peer once it is there.
//!
//! Only addresses in networks that the policies [seek](crate::Policies::seek) get here. One look-up is asked for per address; one that
//! came to nothing is not asked for again for the time that its answer says. Packets of known peers never pass here.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use strait_clock::{Deadline, Time};
use strait_wire::vnet;

/// Addresses that are waited for at the same time: as many as names of senders that are looked up.
const ADDRESSES: usize = 256;
/// Most packets for one address: the first flight of a TCP connection (RFC 6928: ten segments), and a few more.
const PACKETS: usize = 16;
/// Most bytes for one address: one super-packet of the device.
const BYTES: usize = 64 << 10;
/// Most bytes for all addresses.
const BYTES_IN_ALL: usize = 4 << 20;
/// How long a packet waits: as long as a first packet is of use (RFC 6298: TCP repeats its SYN after 1 s).
const WAIT: Duration = Duration::from_secs(3);
/// Addresses that are known to have no peer.
const REFUSED: usize = 4096;

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Unsent {
    pub(super) offload: vnet::Header,
    pub(super) bytes: Box<[u8]>,
    /// How many packets it is.
    packets: u64,
}

/// The packets of one address.
#[derive(Debug)]
struct Waiting {
    since: Time,
    packets: Vec<Unsent>,
    bytes: usize,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It waits; the peer of its address is to be looked up.
    First,
    /// It waits with others.
    Waits,
    /// Its address has no peer, as is known.
    Refused,
    /// There is no room.
    Full,
}

/// See the head of this module.
#[derive(Debug, Default)]
pub(super) struct UnknownDestinations {
    waiting: BTreeMap<IpAddr, Waiting>,
    bytes: usize,
    /// Addresses without a peer, until when that is taken for granted, and in the order in which they came.
    refused: BTreeMap<IpAddr, Time>,
    order: VecDeque<IpAddr>,
}

impl UnknownDestinations {
    /// Keeps a copy of a packet to `to`, which is so many packets.
    pub(super) fn keep(
        &mut self,
        to: IpAddr,
        offload: &vnet::Header,
        bytes: &[u8],
        packets: u64,
        now: Time,
    ) -> Kept {
        if self.refused.get(&to).is_some_and(|until| *until > now) {
            return Kept::Refused;
        }
        let known = self.waiting.contains_key(&to);
        let most = self.waiting.get(&to).map_or(BYTES, |waiting| BYTES.saturating_sub(waiting.bytes));
        let full = self.waiting.get(&to).is_some_and(|waiting| waiting.packets.len() >= PACKETS);
        if full
            || bytes.len() > most
            || self.bytes + bytes.len() > BYTES_IN_ALL
            || !known && self.waiting.len() >= ADDRESSES
        {
            return Kept::Full;
        }
        self.bytes += bytes.len();
        let waiting =
            self.waiting.entry(to).or_insert_with(|| Waiting { since: now, packets: Vec::new(), bytes: 0 });
        waiting.bytes += bytes.len();
        waiting.packets.push(Unsent { offload: *offload, bytes: bytes.into(), packets });
        if known { Kept::Waits } else { Kept::First }
    }

    /// The packets of the addresses that `has` now, in the order in which they came; nothing is refused any more.
    pub(super) fn take(&mut self, has: impl Fn(IpAddr) -> bool) -> Vec<Unsent> {
        self.refused.clear();
        self.order.clear();
        let mut all = Vec::new();
        for (_, waiting) in self.waiting.extract_if(.., |to, _| has(*to)) {
            self.bytes -= waiting.bytes;
            all.extend(waiting.packets);
        }
        all
    }

    /// The look-up of an address came to nothing, which holds until then; says how many packets are lost.
    pub(super) fn refuse(&mut self, to: IpAddr, until: Time, now: Time) -> u64 {
        if until > now && self.refused.insert(to, until).is_none() {
            self.order.push_back(to);
            if self.order.len() > REFUSED
                && let Some(oldest) = self.order.pop_front()
            {
                self.refused.remove(&oldest);
            }
        }
        self.waiting.remove(&to).map_or(0, |waiting| self.lose(&waiting))
    }

    /// Forgets what has waited too long; says how many packets are lost.
    pub(super) fn expire(&mut self, now: Time) -> u64 {
        let over: Vec<Waiting> = self
            .waiting
            .extract_if(.., |_, waiting| waiting.since + WAIT <= now)
            .map(|(_, over)| over)
            .collect();
        over.iter().map(|waiting| self.lose(waiting)).sum()
    }

    /// When the first of them has waited too long.
    pub(super) fn deadline(&self) -> Option<Deadline> {
        let first = self.waiting.values().map(|waiting| waiting.since).min()?;
        Some(Deadline { at: first + WAIT, why: "packets wait for a peer" })
    }

    fn lose(&mut self, waiting: &Waiting) -> u64 {
        self.bytes -= waiting.bytes;
        waiting.packets.iter().map(|packet| packet.packets).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PLAIN: &vnet::Header = &vnet::Header::PLAIN;

    fn to(last: u16) -> IpAddr {
        let [high, low] = last.to_be_bytes();
        IpAddr::from([10, 77, high, low])
    }

    #[test]
    fn what_waits_is_bounded_for_each_address_and_for_all() {
        let mut unknown = UnknownDestinations::default();
        let now = Time::ZERO;
        let kept = |unknown: &mut UnknownDestinations, last, len: usize| {
            (0..100)
                .map(|_| unknown.keep(to(last), PLAIN, &vec![0; len], 1, now))
                .take_while(|kept| *kept != Kept::Full)
                .count()
        };
        assert_eq!(kept(&mut unknown, 1, 100), PACKETS);
        assert_eq!(kept(&mut unknown, 2, 10_000), BYTES / 10_000);
        for last in 3..200 {
            kept(&mut unknown, last, 65_000);
        }
        assert!(unknown.bytes <= BYTES_IN_ALL && unknown.bytes > BYTES_IN_ALL - 65_536);
        let mut small = UnknownDestinations::default();
        for last in 0..1000 {
            small.keep(to(last), PLAIN, &[0], 1, now);
        }
        assert_eq!(small.waiting.len(), ADDRESSES);
        assert_eq!(small.keep(to(5), PLAIN, &[0], 1, now), Kept::Waits, "known addresses go on");
    }

    #[test]
    fn an_address_is_asked_for_once_and_its_packets_keep_their_order() {
        let mut unknown = UnknownDestinations::default();
        let now = Time::ZERO;
        assert_eq!(unknown.keep(to(1), PLAIN, b"one", 1, now), Kept::First);
        assert_eq!(unknown.keep(to(1), PLAIN, b"two", 1, now), Kept::Waits);
        assert_eq!(unknown.keep(to(2), PLAIN, b"other", 1, now), Kept::First);
        let taken = unknown.take(|address| address == to(1));
        assert_eq!(taken.iter().map(|unsent| &*unsent.bytes).collect::<Vec<_>>(), [b"one", b"two"]);
        assert_eq!(unknown.keep(to(1), PLAIN, b"one", 1, now), Kept::First, "it was forgotten");
    }

    #[test]
    fn what_has_no_peer_is_refused_for_its_time_or_until_there_are_other_peers() {
        let mut unknown = UnknownDestinations::default();
        let at = Time::from_millis;
        unknown.keep(to(1), PLAIN, b"x", 3, at(0));
        assert_eq!(unknown.refuse(to(1), at(1000), at(10)), 3);
        assert_eq!(unknown.keep(to(1), PLAIN, b"x", 1, at(999)), Kept::Refused);
        assert_eq!(unknown.keep(to(1), PLAIN, b"x", 1, at(1000)), Kept::First);
        unknown.refuse(to(1), at(5000), at(1001));
        assert!(unknown.take(|_| false).is_empty());
        assert_eq!(unknown.keep(to(1), PLAIN, b"x", 1, at(1002)), Kept::First);
        assert_eq!(unknown.deadline().map(|deadline| deadline.at), Some(at(4002)));
        assert_eq!((unknown.expire(at(4001)), unknown.expire(at(4002))), (0, 1));
        assert!(unknown.deadline().is_none());
        for last in 0..10_000 {
            unknown.refuse(to(last), at(100_000), at(5000));
        }
        assert_eq!((unknown.refused.len(), unknown.order.len()), (REFUSED, REFUSED));
    }

    proptest! {
        #[test]
        fn each_packet_is_given_back_or_counted(
            steps in proptest::collection::vec((0..4_u8, 0..6_u16, 0..40_000_usize), 0..200),
        ) {
            let mut unknown = UnknownDestinations::default();
            let (mut now, mut kept, mut gone) = (Time::ZERO, 0, 0);
            for (step, address, len) in steps {
                match step {
                    0 => {
                        let waits = unknown.keep(to(address), PLAIN, &vec![0; len], 2, now);
                        kept += 2 * u64::from(matches!(waits, Kept::First | Kept::Waits));
                    }
                    1 => gone += 2 * unknown.take(|has| has == to(address)).len() as u64,
                    2 => gone += unknown.refuse(to(address), now + WAIT, now),
                    _ => {
                        now += Duration::from_millis(len as u64 / 10);
                        gone += unknown.expire(now);
                    }
                }
                prop_assert!(unknown.bytes <= BYTES_IN_ALL);
            }
            gone += 2 * unknown.take(|_| true).len() as u64;
            prop_assert_eq!((kept, unknown.bytes), (gone, 0));
        }
    }
}
