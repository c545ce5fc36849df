//! What answers to strangers may cost this node's link.
//!
//! A stranger is a sender that has not proved a key. This node did not ask for it, so its answers have a small share of the
//! link, in steps: a sender that only claims its address, one that answered a Retry from it, one with a peer's address;
//! and one that proved a peer's key, whose datagrams are no answers to strangers any more.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_clock::Time;
use strait_ipsec::{Counters, Reason, Source};
use strait_scheduler::{Budget, LinkRate, Rate, SourceBudget};

use super::admission::{Address, MOST};

/// One in so many bytes of the link may go to addresses that are not proven: half a percent.
const CLAIMED: u64 = 200;
/// The same for proven addresses, whose forging takes a host there: so many that forty sites which lost their node are
/// back within a minute at 1 Mbit/s.
const PROVEN: u64 = 25;
/// The same for addresses of peers, whose forging takes knowing them: so many that a hub's forty sites have new keys
/// within nine seconds at 1 Mbit/s. All three together leave the tunnel more than four fifths of the link.
const PEERS: u64 = 10;
/// Bytes of a responder's first flight on the wire, as the test of that name measures; its initiator's handshake is not
/// delayed while this much is left.
pub(super) const FLIGHT: u64 = 2_600;
/// Bytes of the largest Retry packet on the wire: long header, two ids, a token with an IPv6 address, an integrity tag.
pub(super) const RETRY: u64 = 176;
/// How much of the link's time may be used at once: so little that 1 % of the link is not exceeded over three seconds.
const BURST: Duration = Duration::from_millis(10);
/// The same for proven addresses, and for those of peers.
const PROVEN_BURST: Duration = Duration::from_millis(100);
const PEERS_BURST: Duration = Duration::from_millis(250);
/// Handshakes from a peer's address that begin without a Retry: one in a second, and so many at once, as sites behind one
/// NAT have one address.
const KNOWN: (u64, u64) = (1, 4);
/// What a link is taken for that need not be paced: 1 Gbit/s, Ethernet's, on which others are the bottleneck. As the
/// receiver passes on a thousand datagrams of strangers a second, answers stay below 1.5 Mbit/s.
const UNPACED: u64 = 1_000_000_000;
/// The same where the rate is to be estimated and is not known yet: on a slower link an answer in a second or two is
/// still possible.
const UNKNOWN: u64 = 1_000_000;

/// Who is answered, and within which budget.
#[derive(Debug)]
pub(super) struct AnswerBudgets {
    claimed: SourceBudget,
    proven: Budget,
    peers: Budget,
    /// Where peers are, with what may begin from there.
    known: BTreeMap<Source, Budget>,
    counters: Arc<Counters>,
}

/// Bytes a second, and at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    per_second: u64,
    burst: u64,
}

impl Share {
    /// What may go to addresses that are only claimed, on a link of `bits` a second.
    fn claimed(bits: u64) -> Share {
        Share::of(bits, CLAIMED, BURST)
    }

    /// What may go to proven addresses.
    fn proven(bits: u64) -> Share {
        Share::of(bits, PROVEN, PROVEN_BURST)
    }

    /// What may go to addresses of peers.
    fn peers(bits: u64) -> Share {
        Share::of(bits, PEERS, PEERS_BURST)
    }

    /// One byte in `divisor`, and what the link takes in `burst` at once: at least a flight, and none beyond the
    /// handshakes that may be under way.
    fn of(bits: u64, divisor: u64, burst: Duration) -> Share {
        let ahead = Rate::from_bits(bits).map_or(0, |rate| rate.bytes_in(burst));
        Share { per_second: bits / 8 / divisor, burst: ahead.clamp(FLIGHT, MOST as u64 * FLIGHT) }
    }

    /// What one source can take of it at once.
    fn of_one(self) -> u64 {
        (self.burst / 2).max(FLIGHT)
    }
}

/// The bits a second that shares are taken of, for a link of which `up` is configured and `estimate` is known.
fn link(up: LinkRate, estimate: Option<Rate>) -> u64 {
    match (up, estimate) {
        (LinkRate::Given(rate), _) | (LinkRate::Auto, Some(rate)) => rate.bits(),
        (LinkRate::Auto, None) => UNKNOWN,
        (LinkRate::Unpaced, _) => UNPACED,
    }
}

impl AnswerBudgets {
    pub(super) fn new(up: LinkRate, counters: Arc<Counters>) -> AnswerBudgets {
        let bits = link(up, None);
        let (claimed, proven, peers) = (Share::claimed(bits), Share::proven(bits), Share::peers(bits));
        AnswerBudgets {
            claimed: SourceBudget::new(claimed.per_second, claimed.burst, claimed.of_one()),
            proven: Budget::new(proven.per_second, proven.burst),
            peers: Budget::new(peers.per_second, peers.burst),
            known: BTreeMap::new(),
            counters,
        }
    }

    /// The link is another, or its rate has been estimated anew.
    pub(super) fn set_link(&mut self, up: LinkRate, estimate: Option<Rate>, now: Time) {
        let bits = link(up, estimate);
        let (claimed, proven, peers) = (Share::claimed(bits), Share::proven(bits), Share::peers(bits));
        self.claimed.set(claimed.per_second, claimed.burst, claimed.of_one(), now);
        self.proven.set(proven.per_second, proven.burst, now);
        self.peers.set(peers.per_second, peers.burst, now);
    }

    /// Peers are there from now on, and nowhere else.
    pub(super) fn know(&mut self, sources: impl Iterator<Item = Source>) {
        let before = core::mem::take(&mut self.known);
        let budget = |source: Source| before.get(&source).copied().unwrap_or(Budget::new(KNOWN.0, KNOWN.1));
        self.known = sources.map(|source| (source, budget(source))).collect();
    }

    /// Whether a handshake from `source` may begin as one of a peer.
    pub(super) fn is_peers(&mut self, source: Source, now: Time) -> bool {
        self.known.get_mut(&source).is_some_and(|budget| budget.take(1, now))
    }

    /// Pays for `bytes` on the wire to `source`; false, and counted nowhere, when that is beyond the budget.
    pub(super) fn pay(&mut self, source: Source, address: Address, bytes: u64, now: Time) -> bool {
        match address {
            Address::Claimed => self.claimed.take(source.number(), bytes, now),
            Address::Proven => self.proven.take(bytes, now),
            Address::Peers => self.peers.take(bytes, now),
        }
    }

    /// Counts what is not answered.
    pub(super) fn refuse(&self, reason: Reason) {
        self.counters.drops.count(reason, 1);
    }
}

/// Bytes on the wire of a datagram with so many to an address, without the link layer's.
pub(super) fn wire_len(to: SocketAddr, bytes: usize) -> u64 {
    (bytes + if to.is_ipv6() { 48 } else { 28 }) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1000);

    fn rate(bits: u64) -> Rate {
        Rate::from_bits(bits).unwrap()
    }

    fn source(number: u32) -> Source {
        Source::of(std::net::Ipv4Addr::from_bits(number).into())
    }

    /// Bytes that senders at addresses of their own are answered in 10 s, each with a Retry.
    fn answered(budgets: &mut AnswerBudgets, address: Address) -> u64 {
        let at = |number: u32| NOW + Duration::from_micros(u64::from(number) * 100);
        let paid = (0..100_000_u32)
            .filter(|number| budgets.pay(source(*number), address, RETRY, at(*number)))
            .count();
        paid as u64 * RETRY
    }

    #[test]
    fn strangers_have_half_a_percent_of_a_known_link_whatever_its_rate() {
        for bits in [64_000, 1_000_000, 10_000_000, 1_000_000_000] {
            let mut budgets = AnswerBudgets::new(LinkRate::Given(rate(bits)), Arc::default());
            let bytes = answered(&mut budgets, Address::Claimed);
            let whole = rate(bits).bytes_in(Duration::from_secs(10));
            assert!(bytes <= whole / 200 + FLIGHT.max(whole / 1000), "{bits}: {bytes} of {whole}");
            assert!(bytes + RETRY >= (whole / 200).min(90_000 * RETRY), "{bits}: {bytes} of {whole}");
        }
    }

    #[test]
    fn all_who_forge_and_prove_addresses_together_leave_four_fifths_of_the_link() {
        for bits in [1_000_000, 10_000_000] {
            let mut budgets = AnswerBudgets::new(LinkRate::Given(rate(bits)), Arc::default());
            let all = [Address::Claimed, Address::Proven, Address::Peers];
            let bytes: u64 = all.into_iter().map(|address| answered(&mut budgets, address)).sum();
            let whole = rate(bits).bytes_in(Duration::from_secs(10));
            assert!(bytes * 5 <= whole, "{bits}: {bytes} of {whole}");
        }
    }

    #[test]
    fn a_first_flight_leaves_at_once_on_the_slowest_link() {
        let mut budgets = AnswerBudgets::new(LinkRate::Given(rate(64_000)), Arc::default());
        assert!(budgets.pay(source(1), Address::Claimed, FLIGHT, NOW));
        assert!(!budgets.pay(source(2), Address::Claimed, FLIGHT, NOW));
        assert!(budgets.pay(source(2), Address::Proven, FLIGHT, NOW));
    }

    #[test]
    fn a_link_that_is_not_configured_has_a_fixed_budget_until_it_is_estimated() {
        let of = |up, estimate| {
            let mut budgets = AnswerBudgets::new(up, Arc::default());
            budgets.set_link(up, estimate, NOW);
            answered(&mut budgets, Address::Claimed)
        };
        let estimated = of(LinkRate::Auto, Some(rate(50_000_000)));
        assert_eq!(estimated, of(LinkRate::Given(rate(50_000_000)), None));
        assert_eq!(of(LinkRate::Auto, None), of(LinkRate::Given(rate(UNKNOWN)), None));
        assert_eq!(of(LinkRate::Unpaced, None), of(LinkRate::Given(rate(UNPACED)), None));
    }

    #[test]
    fn handshakes_from_a_peers_address_are_few_as_it_may_be_forged() {
        let mut budgets = AnswerBudgets::new(LinkRate::Unpaced, Arc::default());
        budgets.know([source(1)].into_iter());
        assert_eq!((0..100).filter(|_| budgets.is_peers(source(1), NOW)).count() as u64, KNOWN.1);
        budgets.know([source(1), source(2)].into_iter());
        assert!(!budgets.is_peers(source(1), NOW) && budgets.is_peers(source(2), NOW));
        assert!(budgets.is_peers(source(1), NOW + Duration::from_secs(1)));
    }
}
