//! SPIs: a number for each inbound association, by which packets are told apart.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;

use strait_ipsec::PeerId;
use strait_wire::Spi;

use super::Control;
use crate::message::SPIS;

impl Control {
    /// Keeps `spis`, which others receive with, out of what is handed out from now on; says which of them a session
    /// has, in which case nothing changes.
    pub fn set_aside(&mut self, spis: BTreeSet<Spi>) -> Option<Spi> {
        let taken = spis.iter().find(|spi| self.spis.contains_key(spi)).copied();
        if taken.is_none() {
            self.set_aside = spis;
        }
        taken
    }

    /// An SPI of the range that tells ESP from QUIC, not in use here.
    pub(super) fn fresh_spi(&mut self, peer: PeerId) -> Spi {
        let (low, high) = (u64::from(*SPIS.start()), u64::from(*SPIS.end()));
        loop {
            // 2^64 is a multiple of the range's size (3 * 2^26) but for 2^64 mod 3: a bias of 2^-37.
            let number = low + self.spi_stream.next_u64() % (high - low + 1);
            let spi = Spi(u32::try_from(number).unwrap_or(*SPIS.start()));
            if self.set_aside.contains(&spi) {
                continue;
            }
            if let Entry::Vacant(place) = self.spis.entry(spi) {
                place.insert(peer);
                return spi;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::node::{base, settings};
    use strait_clock::Time;

    #[test]
    fn what_is_set_aside_is_not_handed_out() {
        let make = || Control::new(settings(0, 1, base()), Time::ZERO).unwrap();
        let mut free = make();
        let [first, second] = [free.fresh_spi(PeerId(1)), free.fresh_spi(PeerId(1))];
        let mut control = make();
        assert_eq!(control.set_aside([first].into()), None);
        assert_eq!(control.fresh_spi(PeerId(1)), second);
        assert_eq!(control.set_aside([first, second].into()), Some(second), "a session has it");
        let third = control.fresh_spi(PeerId(1));
        assert!(third != first && third != second);
    }
}
