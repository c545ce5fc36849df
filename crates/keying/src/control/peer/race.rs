//! The addresses at which one attempt tries to reach a peer: handshakes that overlap, as RFC 8305 has connections (Happy
//! Eyeballs).
//!
//! A handshake begins at the first address, and at each further one when a delay has passed without proof of the peer's
//! key, or when one ended. The first that proves the key goes on alone.

use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;

use strait_clock::{Deadline, Time};

use super::super::context::LocalNode;
use super::ATTEMPT;
use crate::HandshakeFailure;
use crate::channel::ChannelId;

/// Most addresses of one name: with [`ATTEMPT_DELAY`] between them, the last has its turn within 2 s.
pub const MOST_ADDRESSES: usize = 8;
/// The time that the first of several addresses has before the next is tried: RFC 8305 section 8's Connection Attempt Delay.
pub const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// The longest that this may be, by the same section.
const LONGEST_DELAY: Duration = Duration::from_secs(2);
/// Bytes on the wire of the first flight in each direction: two datagrams, since a key share of ML-KEM fills one. QUIC pads them
/// to 1,200 (RFC 9000 section 14.1), and UDP and IPv6 headers are 48.
const FLIGHT: u64 = 2 * 1_248;

/// Times that the first flight of a handshake is sent that nothing answers within [`ATTEMPT`]: after 0, 1, 3 and 7 s (RFC 9002
/// section 6.2).
const FLIGHTS: u64 = 4;

/// The addresses of one attempt, and the handshakes at them.
#[derive(Debug, Default)]
pub(crate) struct Race {
    addresses: Vec<SocketAddr>,
    /// The number of those that have had their turn.
    begun: usize,
    /// No other has its turn before then.
    next_at: Time,
    /// Handshakes of which none has proved the peer's key.
    channels: Vec<ChannelId>,
    /// The reason for the end of the first that ended; an address that nothing can leave to gives no reason where another does.
    ended: Option<HandshakeFailure>,
    /// The place at which the peer proved its key last, if no session came of it.
    fruitless: Option<SocketAddr>,
}

impl Race {
    /// Begins with `addresses`, the first of which has its turn at `now`.
    pub(crate) fn begin(&mut self, addresses: Vec<SocketAddr>, now: Time) {
        *self = Race { addresses, next_at: now, fruitless: self.fruitless, ..Race::default() };
    }

    /// Returns the order in which `addresses` are tried: `last`, the address that served last, is before all others, and
    /// one at which the last handshake stood still is behind them. There are `most` of them.
    pub(crate) fn order(
        &self,
        mut addresses: Vec<SocketAddr>,
        last: Option<SocketAddr>,
        most: usize,
    ) -> Vec<SocketAddr> {
        addresses.sort_by_key(|address| Some(*address) != last);
        let mut addresses = in_turn(addresses);
        addresses.truncate(most);
        addresses.sort_by_key(|address| Some(*address) == self.fruitless);
        addresses
    }

    /// The address that has its turn at `now`, once.
    pub(crate) fn take_next(&mut self, now: Time) -> Option<SocketAddr> {
        let next = self.addresses.get(self.begun).filter(|_| self.next_at <= now)?;
        self.begun += 1;
        Some(*next)
    }

    /// A handshake began at the address that was taken; the next waits for its answer so long.
    pub(crate) fn add(&mut self, channel: ChannelId, until: Time) {
        self.channels.push(channel);
        self.next_at = until;
    }

    /// A handshake ended, and the next address has its turn at once; false where it was none of these.
    pub(crate) fn remove(&mut self, channel: ChannelId, why: HandshakeFailure, now: Time) -> bool {
        let Some(at) = self.channels.iter().position(|other| *other == channel) else { return false };
        self.channels.remove(at);
        self.failed(why);
        self.next_at = now;
        true
    }

    /// There is, or can be, no handshake at one of the addresses any more.
    pub(crate) fn failed(&mut self, why: HandshakeFailure) {
        if matches!(self.ended, None | Some(HandshakeFailure::NoSource { .. })) {
            self.ended = Some(why);
        }
    }

    /// The oldest handshake that is under way.
    pub(crate) fn oldest(&self) -> Option<ChannelId> {
        self.channels.first().copied()
    }

    /// The peer proved its key at `address`.
    pub(crate) const fn proved(&mut self, address: Option<SocketAddr>) {
        self.fruitless = address;
    }

    /// There is a session.
    pub(crate) const fn succeeded(&mut self) {
        self.fruitless = None;
    }

    /// Ends it; gives the handshakes that were under way, and why the first that ended did.
    pub(crate) fn end(&mut self) -> (Vec<ChannelId>, Option<HandshakeFailure>) {
        let race = core::mem::take(self);
        self.fruitless = race.fruitless;
        (race.channels, race.ended)
    }

    /// Returns the places that it expects answers from.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.addresses.iter().copied()
    }

    /// Returns the time at which the next address has its turn.
    pub(crate) fn deadline(&self) -> Option<Deadline> {
        let left = self.begun < self.addresses.len();
        left.then_some(Deadline { at: self.next_at, why: "the next address of a peer" })
    }
}

/// Returns how long a handshake has the link to itself: on a link whose rate is given, what its first flights take there
/// does not count.
pub(crate) fn delay(node: &LocalNode) -> Duration {
    let rates = [node.up, node.capabilities.down].into_iter().filter_map(|rate| rate.given());
    rates.map(|rate| rate.time_for(FLIGHT)).sum::<Duration>().saturating_add(ATTEMPT_DELAY).min(LONGEST_DELAY)
}

/// Returns how many addresses one attempt tries: on a link out whose rate is given, so many that their handshakes take at most half of
/// the attempt there if none is answered, but one of each family.
pub(crate) fn most_addresses(node: &LocalNode) -> usize {
    let Some(rate) = node.up.given() else { return MOST_ADDRESSES };
    let one = rate.time_for(FLIGHTS * FLIGHT / 2).max(Duration::from_nanos(1));
    let fit = (ATTEMPT / 2).as_nanos() / one.as_nanos();
    usize::try_from(fit).unwrap_or(usize::MAX).clamp(2, MOST_ADDRESSES)
}

/// Returns `addresses` with both families in turn, beginning with that of the first (RFC 8305 section 4); each is there once.
#[must_use]
pub fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_v4 = |address: &SocketAddr| address.ip().to_canonical().is_ipv4();
    let first = addresses.first().map(is_v4);
    let mut seen = BTreeSet::new();
    // How many of its family are before each, and whether it is of the second family.
    let mut before = [0_usize; 2];
    let mut turns: Vec<_> = addresses
        .into_iter()
        .filter(|address| seen.insert(*address))
        .map(|address| {
            let second = Some(is_v4(&address)) != first;
            let [of_first, of_second] = &mut before;
            let turn = if second { of_second } else { of_first };
            *turn += 1;
            ((*turn, second), address)
        })
        .collect();
    turns.sort_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, address)| address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses by the last part: `4.1` is an IPv4 address, `6.1` one of IPv6.
    fn list(text: &str) -> Vec<SocketAddr> {
        let one = |word: &str| match word.split_once('.').unwrap() {
            ("4", host) => format!("192.0.2.{host}:5").parse().unwrap(),
            (_, host) => format!("[2001:db8::{host}]:5").parse().unwrap(),
        };
        text.split_whitespace().map(one).collect()
    }

    #[test]
    fn families_take_turns() {
        for (given, wanted) in [
            ("", ""),
            ("4.1", "4.1"),
            ("6.1 6.2 6.3 4.1 4.2", "6.1 4.1 6.2 4.2 6.3"),
            ("4.1 6.1 6.2", "4.1 6.1 6.2"),
            ("4.1 4.1 6.1 4.1", "4.1 6.1"),
            ("6.1 6.2 6.3 6.4 6.5 4.1", "6.1 4.1 6.2 6.3 6.4 6.5"),
        ] {
            assert_eq!(in_turn(list(given)), list(wanted), "{given}");
        }
        let mapped = vec!["[::ffff:192.0.2.9]:5".parse().unwrap(), list("4.1")[0], list("6.1")[0]];
        assert_eq!(in_turn(mapped.clone()), [mapped[0], mapped[2], mapped[1]]);
    }

    #[test]
    fn an_address_that_nothing_can_leave_to_gives_no_reason_where_another_does() {
        let mut race = Race::default();
        let nothing_leaves = HandshakeFailure::NoSource { tunnel: "10.77.0.1".parse().unwrap() };
        race.failed(nothing_leaves.clone());
        assert_eq!(race.end().1, Some(nothing_leaves.clone()));
        race.failed(nothing_leaves.clone());
        race.failed(HandshakeFailure::TimedOut);
        race.failed(HandshakeFailure::Tls("no".to_owned()));
        race.failed(nothing_leaves);
        assert_eq!(race.end().1, Some(HandshakeFailure::TimedOut));
    }

    #[test]
    fn the_address_that_served_is_first_and_a_fruitless_one_is_last() {
        let mut race = Race::default();
        let all = || list("6.1 6.2 4.1 4.2");
        let last = |text: &str| list(text).first().copied();
        assert_eq!(race.order(all(), last("4.2"), 8), list("4.2 6.1 4.1 6.2"));
        let many = list("6.1 6.2 6.3 6.4 6.5 6.6 6.7 6.8 6.9 4.1");
        assert_eq!(race.order(many, last("6.9"), 8), list("6.9 4.1 6.1 6.2 6.3 6.4 6.5 6.6"));
        assert_eq!(
            race.order(all(), last("4.9"), 8),
            list("6.1 4.1 6.2 4.2"),
            "it is no address of the name"
        );
        race.proved(last("4.2"));
        race.end();
        assert_eq!(race.order(all(), last("4.2"), 8), list("6.1 4.1 6.2 4.2"));
        race.succeeded();
        assert_eq!(race.order(all(), last("4.2"), 8), list("4.2 6.1 4.1 6.2"));
    }
}
