//! The order of packets on the lanes of a peer.

use strait_wire::{Esn, Spi};

/// The last packet on the lanes of a peer: nothing older is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct LaneOrder {
    newest: Option<(Spi, Esn)>,
    before: Option<Spi>,
}

impl LaneOrder {
    /// True if a packet is newer than all before it.
    pub(in super::super) fn takes(&mut self, spi: Spi, esn: Esn) -> bool {
        match self.newest {
            _ if self.before == Some(spi) => return false,
            Some((newest, last)) if newest == spi && esn <= last => return false,
            Some((newest, _)) if newest != spi => self.before = Some(newest),
            _ => {}
        }
        self.newest = Some((spi, esn));
        true
    }
}
