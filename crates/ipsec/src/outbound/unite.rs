//! Fragments from the host for a transport-mode association, which has no use for them: only the whole packet
//! has an upper layer (RFC 4303 section 3.3.4). What is too large then is cut again outside.

use strait_clock::Time;
use strait_wire::vnet;

use super::link::Link;
use super::{Lost, Outbound, Outlet};
use crate::offload::SuperPacket;
use crate::{Mode, Reason};

/// Whether `packet` is a piece of what can only be protected whole.
pub(super) fn wanted(link: &Link, packet: &SuperPacket<'_>) -> bool {
    packet.ip().is_fragment() && link.sa.as_ref().is_some_and(|sa| matches!(sa.mode, Mode::Transport { .. }))
}

impl Outbound {
    /// Keeps a fragment until all of its packet are here, which then goes its way.
    pub(super) fn unite(&mut self, fragment: &[u8], now: Time, outlet: &mut impl Outlet) -> Result<(), Lost> {
        // Lent out while what it put together is used.
        let mut reassembly = core::mem::take(&mut self.reassembly);
        let mut lost = 0;
        let added = reassembly.add(fragment, now, &mut lost);
        self.works.counters.drops.count(Reason::FragmentsIncomplete, lost);
        let result = match added {
            Ok(None) => Ok(()),
            Ok(Some(packet)) => self.forward(packet, &vnet::Header::PLAIN, now, outlet),
            Err(reason) => Err(Lost { reason, packets: 1 }),
        };
        self.reassembly = reassembly;
        result
    }
}
