//! What blocks may cost the receiving thread while the datagrams of other peers wait.
//!
//! A plain datagram costs what it weighs on the wire. A block may cost a thousand times more: 228 bytes become 3,276 packets. No
//! limit a second tells a flood from a peer whose data shrinks well, so there is none while nothing waits. Once the thread has
//! worked for [`TURN`] without a pause, a block may cost what its own bytes pay for, [`PAID_A_BYTE`], and beyond that what is left
//! of its peer's [`allowance`].
//!
//! The clock tells how long the thread has worked. Within one call, where it stands still, the costs below tell.

use core::time::Duration;
use std::collections::BTreeMap;

use strait_clock::Time;
use strait_scheduler::Budget;
use strait_wire::ip;

use super::associations::PeerMemory;
use crate::block::{BLOCK_MAX, PACKETS_MAX};
use crate::{PeerId, Reason};

/// Nanoseconds for one packet to the host. On one core of an Intel Xeon (virtual, Linux 6.18) writing it to the TUN device takes 740,
/// and with all around that, a hub was at its limit with 650,000 packets a second.
const PACKET: u64 = 1_500;
/// Nanoseconds for one byte: expanding it, as the slower codecs do, and copying it to the host.
const BYTE: u64 = 1;
/// Nanoseconds that a byte on the wire pays for: 1 Mbit/s of them may take 1/32 of the thread. Blocks of 1,400-byte packets pay for
/// themselves until they shrink to less than a hundredth.
const PAID_A_BYTE: u64 = 250;
/// What a datagram is beside its part of a block, at least: IPv4, UDP, ESP with its trailer and ICV, and the block's own header.
const AROUND: u64 = 60;
/// How long the thread may work without a pause on blocks that do not pay for themselves. The largest block fits in, and with one
/// [`ALLOWANCE_BURST`] no other peer waits for more than 5 ms.
const TURN: Duration = Duration::from_millis(4);
/// What a peer may cost beyond what its bytes pay for while others wait, in nanoseconds a second: half of 1 %.
const ALLOWANCE: u64 = 5_000_000;
/// The same at once: a block of the default window's 256 packets.
const ALLOWANCE_BURST: u64 = 500_000;

const _: () = assert!(cost(PACKETS_MAX, BLOCK_MAX) <= TURN.as_nanos() as u64);

/// A peer's budget of nanoseconds beyond what its bytes pay for.
pub(super) fn allowance() -> Budget {
    Budget::new(ALLOWANCE, ALLOWANCE_BURST)
}

/// What a block of so many bytes in so many datagrams pays for, in nanoseconds.
pub(super) const fn pays(bytes: usize, datagrams: usize) -> u64 {
    (bytes as u64 + AROUND * datagrams as u64) * PAID_A_BYTE
}

/// What it costs to bring the host so many packets of so many bytes, in nanoseconds.
pub(super) const fn cost(packets: usize, bytes: usize) -> u64 {
    packets as u64 * PACKET + bytes as u64 * BYTE
}

/// Since when the receiving thread has worked without a pause.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WorkingTime {
    since: Option<Time>,
    /// When it will have done the blocks that it has taken, if they cost what is said here.
    until: Time,
    now: Time,
}

impl WorkingTime {
    /// Something came.
    pub(super) fn begin(&mut self, now: Time) {
        self.since.get_or_insert(now);
        self.now = now;
    }

    /// All that came has been taken.
    pub(super) fn end(&mut self) {
        *self = WorkingTime::default();
    }

    /// Nanoseconds that are left of the turn.
    fn left(&self) -> u64 {
        let worked = self.until.max(self.now).since(self.since.unwrap_or(self.now));
        u64::try_from(TURN.saturating_sub(worked).as_nanos()).unwrap_or(0)
    }

    /// Most packets to look for in a block that pays for so much, where there are `peers` of them: more are refused.
    pub(super) fn packets_max(&self, pays: u64, peers: usize) -> usize {
        if peers < 2 {
            return PACKETS_MAX;
        }
        let packets = (self.left().max(pays) + ALLOWANCE_BURST) / PACKET;
        usize::try_from(packets).unwrap_or(PACKETS_MAX).min(PACKETS_MAX)
    }

    /// Takes the time for what costs so much and pays for so much, both in nanoseconds, if `peer` may have that.
    pub(super) fn limit(
        &mut self,
        (cost, pays): (u64, u64),
        peer: PeerId,
        peers: &mut BTreeMap<PeerId, PeerMemory>,
    ) -> Result<(), Reason> {
        // With one peer there is no other to wait.
        if cost > pays
            && cost > self.left()
            && peers.len() > 1
            && let Some(memory) = peers.get_mut(&peer)
            && !memory.allowance.take(cost - pays, self.now)
        {
            return Err(Reason::OverBudget);
        }
        self.until = self.until.max(self.now) + Duration::from_nanos(cost);
        Ok(())
    }
}

/// What it costs to bring the host the packets of a block, in nanoseconds.
pub(super) fn cost_of_block(packets: &[u8]) -> Result<u64, Reason> {
    let count = count_packets(packets);
    if count > PACKETS_MAX { Err(Reason::TooManyPackets) } else { Ok(cost(count, packets.len())) }
}

/// How many packets stand in `bytes`; no more are counted than are too many.
fn count_packets(bytes: &[u8]) -> usize {
    let (mut at, mut packets) = (0, 0);
    while packets <= PACKETS_MAX
        && let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty())
    {
        packets += 1;
        let Ok(len) = ip::declared_len(rest) else { break };
        at += len.max(1);
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inbound::associations::Associations;

    fn peers(count: u32) -> BTreeMap<PeerId, PeerMemory> {
        let mut associations = Associations::new(std::sync::Arc::default());
        (0..count).for_each(|peer| {
            associations.add_peer(PeerId(peer), std::sync::Arc::default(), std::sync::Arc::default())
        });
        associations.peers
    }

    /// How many of 1,000 blocks of this cost pass, which came in so many bytes, while others wait all the time.
    fn pass(peers: &mut BTreeMap<PeerId, PeerMemory>, cost: u64, bytes: usize) -> usize {
        let mut working = WorkingTime::default();
        working.begin(Time::from_millis(1_000));
        let pays = pays(bytes, 1);
        (0..1_000).filter(|_| working.limit((cost, pays), PeerId(0), peers).is_ok()).count()
    }

    #[test]
    fn a_block_that_costs_more_than_it_pays_for_passes_within_one_turn_and_its_allowance() {
        // 256 packets of 40 bytes in 200: they cost 394 us and pay for 65.
        let cost = cost(256, 256 * 40);
        assert_eq!(pass(&mut peers(2), cost, 200), 4_000_000 / 394_240 + 1);
        assert_eq!(pass(&mut peers(2), cost, 2_000), 1_000, "paid for");
        assert_eq!(pass(&mut peers(1), cost, 200), 1_000, "alone");
        assert_eq!(pass(&mut peers(2), super::cost(PACKETS_MAX, 40_960), 100), 1);
    }

    #[test]
    fn a_pause_ends_the_turn() {
        let (mut working, mut peers) = (WorkingTime::default(), peers(2));
        for round in 0..100 {
            working.begin(Time::from_millis(1_000 + round));
            assert_eq!(working.packets_max(0, 2), PACKETS_MAX);
            assert_eq!(working.limit((3_000_000, 0), PeerId(0), &mut peers), Ok(()));
            assert_eq!(working.limit((3_000_000, 0), PeerId(0), &mut peers), Err(Reason::OverBudget));
            assert!(working.packets_max(0, 2) < PACKETS_MAX);
            working.end();
        }
    }

    #[test]
    fn the_clock_tells_how_long_the_thread_has_worked() {
        let (mut working, mut peers) = (WorkingTime::default(), peers(2));
        working.begin(Time::from_millis(1_000));
        // The block took longer than its cost says.
        assert_eq!(working.limit((1_000_000, 0), PeerId(0), &mut peers), Ok(()));
        working.begin(Time::from_millis(1_005));
        assert_eq!(working.limit((1_000_000, 0), PeerId(0), &mut peers), Err(Reason::OverBudget));
        assert_eq!(working.limit((1_000_000, 1_000_000), PeerId(0), &mut peers), Ok(()));
    }

    #[test]
    fn packets_are_counted_up_to_too_many() {
        let packet = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 0, 1, 1, 10, 0, 2, 1];
        for (count, expected) in
            [(1, Ok(cost(1, 20))), (2_048, Ok(cost(2_048, 40_960))), (2_049, Err(Reason::TooManyPackets))]
        {
            assert_eq!(cost_of_block(&packet.repeat(count)), expected, "{count} packets");
        }
        assert_eq!(cost_of_block(&[]), Ok(0));
        assert_eq!(cost_of_block(&[[0x45; 20], [0; 20]].concat()), Ok(cost(1, 40)));
    }
}
