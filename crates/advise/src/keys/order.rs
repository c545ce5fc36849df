//! The peers of a hub, in the order in which packets need their keys.

use core::net::IpAddr;
use core::time::Duration;
use std::collections::BTreeMap;

use strait_clock::Time;
use strait_wire::Flow;

use super::PeerIndex;
use crate::Side;

/// Most peers that are told apart: as many as the replay knows sides of, and as an index can name.
const PEERS: usize = 1 << PeerIndex::BITS;
/// Most changes from one peer to another that are kept: 8 MiB of them.
const CHANGES: usize = 1 << 22;
/// Life of a packet key (docs/design/sessionless.md).
const KEY_LIFE: Duration = Duration::from_secs(60);

/// A peer: the hosts of a pair.
#[derive(Debug)]
struct SeenPeer {
    hosts: [IpAddr; 2],
    /// The begin of the packet keys of both directions.
    began: [Option<Time>; 2],
}

/// See the head of this module.
#[derive(Debug, Default)]
pub(crate) struct PeerOrder {
    indices: BTreeMap<[IpAddr; 2], PeerIndex>,
    peers: Vec<SeenPeer>,
    /// Each peer whose packet follows one of another.
    changes: Vec<PeerIndex>,
    /// Packets of peers that are not told apart, and changes that are not kept.
    left_out: u64,
    /// Packet keys that were begun.
    packet_keys: u64,
}

impl PeerOrder {
    /// Begins another capture, whose times have nothing to do with those before.
    pub(crate) fn begin(&mut self) {
        self.peers.iter_mut().for_each(|peer| peer.began = [None; 2]);
    }

    /// A packet of `flow` was captured.
    pub(crate) fn note(&mut self, flow: &Flow, at: Time) {
        let Some(index) = self.index([flow.src.min(flow.dst), flow.src.max(flow.dst)]) else {
            self.left_out += 1;
            return;
        };
        if self.changes.last() != Some(&index) {
            if self.changes.len() < CHANGES {
                self.changes.push(index);
            } else {
                self.left_out += 1;
            }
        }
        let side = if flow.src <= flow.dst { Side::Near } else { Side::Far };
        let began = self.peers.get_mut(usize::from(index)).map(|peer| &mut peer.began[side.index()]);
        if let Some(began) = began
            && began.is_none_or(|began| at.since(began) >= KEY_LIFE)
        {
            *began = Some(at);
            self.packet_keys += 1;
        }
    }

    fn index(&mut self, hosts: [IpAddr; 2]) -> Option<PeerIndex> {
        let last = self.changes.last().filter(|last| self.peers[usize::from(**last)].hosts == hosts);
        if let Some(index) = last.or_else(|| self.indices.get(&hosts)) {
            return Some(*index);
        }
        let index = PeerIndex::try_from(self.peers.len()).ok().filter(|_| self.peers.len() < PEERS)?;
        self.peers.push(SeenPeer { hosts, began: [None; 2] });
        self.indices.insert(hosts, index);
        Some(index)
    }

    /// The number of peers.
    pub(crate) const fn peers(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn changes(&self) -> &[PeerIndex] {
        &self.changes
    }

    pub(crate) const fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(crate) const fn packet_keys(&self) -> u64 {
        self.packet_keys
    }

    /// The host of a peer that fewer others speak with: the other is the hub's, or behind it.
    pub(crate) fn far_host(&self, index: PeerIndex) -> Option<IpAddr> {
        let [one, other] = self.peers.get(usize::from(index))?.hosts;
        let pairs = |host| self.peers.iter().filter(|peer| peer.hosts.contains(&host)).count();
        Some(if pairs(one) < pairs(other) { one } else { other })
    }
}

#[cfg(test)]
mod tests {
    use strait_wire::Protocol;

    use super::*;

    fn flow(src: u8, dst: u8) -> Flow {
        let [src, dst] = [src, dst].map(|host| IpAddr::from([10, 0, 0, host]));
        Flow { src, dst, protocol: Protocol::UDP, src_port: 1, dst_port: 2 }
    }

    #[test]
    fn both_directions_are_one_peer_and_keys_live_a_minute_each() {
        let mut order = PeerOrder::default();
        for (second, src, dst) in [(0, 9, 1), (1, 1, 9), (2, 9, 2), (59, 9, 1), (60, 9, 1), (60, 1, 9)] {
            order.note(&flow(src, dst), Time::from_millis(second * 1_000));
        }
        assert_eq!((order.peers(), order.changes()), (2, &[0, 1, 0][..]));
        assert_eq!(order.packet_keys(), 4, "of the first peer two and one, of the second one");
        order.begin();
        order.note(&flow(9, 1), Time::from_millis(0));
        assert_eq!((order.packet_keys(), order.left_out()), (5, 0));
        assert_eq!(order.far_host(1), Some(IpAddr::from([10, 0, 0, 2])));
    }
}
