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

/// Nanoseconds for one packet to the host. On one core of an AMD EPYC (Zen 3, 2.45 GHz) writing it to the TUN device takes 740, and
/// a hub handed on 650,000 packets a second.
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
