//! SPIs: a number for each inbound association, by which packets are told apart.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use strait_ipsec::PeerId;
use strait_wire::Spi;

use crate::keystream::Keystream;
use crate::message::SPIS;

/// The inbound SPIs of a node.
#[derive(Debug)]
pub(crate) struct SpiPool {
    /// Those handed out and not yet released.
    taken: BTreeMap<Spi, PeerId>,
    /// Those in use beside the sessions.
    set_aside: BTreeSet<Spi>,
    stream: Keystream,
}

impl SpiPool {
    pub(crate) fn new(seed: &[u8; 32]) -> SpiPool {
        SpiPool { taken: BTreeMap::new(), set_aside: BTreeSet::new(), stream: Keystream::new(seed, "spi") }
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
        loop {
            // 2^64 is a multiple of the range's size (3 * 2^26) but for 2^64 mod 3: a bias of 2^-37.
            let number = low + self.stream.next_u64() % (high - low + 1);
            let spi = Spi(u32::try_from(number).unwrap_or(*SPIS.start()));
            if self.set_aside.contains(&spi) {
                continue;
            }
            if let Entry::Vacant(place) = self.taken.entry(spi) {
                place.insert(peer);
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
        self.taken.retain(|_, owner| *owner != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_aside_spis_are_not_handed_out() {
        let mut free = SpiPool::new(&[1; 32]);
        let [first, second] = [free.fresh(PeerId(1)), free.fresh(PeerId(1))];
        let mut pool = SpiPool::new(&[1; 32]);
        assert_eq!(pool.set_aside([first].into()), None);
        assert_eq!(pool.fresh(PeerId(1)), second);
        assert_eq!(pool.set_aside([first, second].into()), Some(second), "a session has it");
        let third = pool.fresh(PeerId(1));
        assert!(third != first && third != second);
    }
}
