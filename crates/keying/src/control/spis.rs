//! SPIs: a number for each inbound association, by which packets are told apart.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use strait_ipsec::PeerId;
use strait_wire::Spi;

use crate::keystream::Keystream;
use crate::message::SPIS;

/// The bits of an SPI that a receipt has (`strait_wire::history`).
const RECEIPT_BITS: u32 = 3;

/// The inbound SPIs of a node.
#[derive(Debug)]
pub(crate) struct SpiPool {
    /// Those handed out and not yet released.
    taken: BTreeMap<Spi, PeerId>,
    /// The last that each peer got. The next differs from it in the low bits, by which receipts tell associations apart.
    last: BTreeMap<PeerId, Spi>,
    /// Those in use beside the sessions.
    set_aside: BTreeSet<Spi>,
    stream: Keystream,
}

impl SpiPool {
    pub(crate) fn new(seed: &[u8; 32]) -> SpiPool {
        SpiPool {
            taken: BTreeMap::new(),
            last: BTreeMap::new(),
            set_aside: BTreeSet::new(),
            stream: Keystream::new(seed, "spi"),
        }
    }

    /// Hands out numbers from `seed` from now on.
    pub(crate) fn renew(&mut self, seed: &[u8; 32]) {
        self.stream = SpiPool::new(seed).stream;
    }

    /// Keeps `spis` out of what is handed out from now on; says which of them a session has, in which case nothing
    /// changes.
    pub(crate) fn set_aside(&mut self, spis: BTreeSet<Spi>) -> Option<Spi> {
        let taken = spis.iter().find(|spi| self.taken.contains_key(spi)).copied();
        if taken.is_none() {
            self.set_aside = spis;
        }
        taken
    }

    /// An SPI of the range that tells ESP from QUIC, not in use here.
    pub(crate) fn fresh(&mut self, peer: PeerId) -> Spi {
        let (low, high) = (u64::from(*SPIS.start()), u64::from(*SPIS.end()));
        // The range begins and ends with whole fours.
        let bits = self.last.get(&peer).map(|last| last.0.wrapping_add(1) & RECEIPT_BITS);
        loop {
            // 2^64 is a multiple of the range's size (3 * 2^26) but for 2^64 mod 3: a bias of 2^-37.
            let number = low + self.stream.next_u64() % (high - low + 1);
            let number = u32::try_from(number).unwrap_or(*SPIS.start());
            let spi = Spi(bits.map_or(number, |bits| number & !RECEIPT_BITS | bits));
            if self.set_aside.contains(&spi) {
                continue;
            }
            if let Entry::Vacant(place) = self.taken.entry(spi) {
                place.insert(peer);
                self.last.insert(peer, spi);
                return spi;
            }
        }
    }

    /// Takes `spi`, which a peer has chosen, out of what is handed out; false when another association has it.
    pub(crate) fn claim(&mut self, spi: Spi, peer: PeerId) -> bool {
        !self.set_aside.contains(&spi) && *self.taken.entry(spi).or_insert(peer) == peer
    }

    /// May be handed out again.
    pub(crate) fn release(&mut self, spi: Spi) {
        self.taken.remove(&spi);
    }

    /// All of a peer's may be handed out again.
    pub(crate) fn release_all(&mut self, peer: PeerId) {
        self.last.remove(&peer);
        self.taken.retain(|_, owner| *owner != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_associations_of_a_peer_in_a_row_differ_in_the_bits_of_receipts() {
        let mut pool = SpiPool::new(&[3; 32]);
        for _ in 0..100 {
            let bits: BTreeSet<u32> = (0..4).map(|_| pool.fresh(PeerId(7)).0 & RECEIPT_BITS).collect();
            assert_eq!(bits.len(), 4);
            pool.fresh(PeerId(8));
        }
        assert_eq!((*SPIS.start() & RECEIPT_BITS, *SPIS.end() & RECEIPT_BITS), (0, RECEIPT_BITS));
    }

    #[test]
    fn set_aside_spis_are_not_handed_out() {
        let mut free = SpiPool::new(&[1; 32]);
        let [first, second] = [free.fresh(PeerId(1)), free.fresh(PeerId(2))];
        let mut pool = SpiPool::new(&[1; 32]);
        assert_eq!(pool.set_aside([first].into()), None);
        assert_eq!(pool.fresh(PeerId(2)), second);
        assert_eq!(pool.set_aside([first, second].into()), Some(second), "a session has it");
        let third = pool.fresh(PeerId(1));
        assert!(third != first && third != second);
    }
}
