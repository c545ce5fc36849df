//! Fragments from the host for a transport-mode association, which has no use for them: only the whole packet
//! has an upper layer (RFC 4303 section 3.3.4). What is too large then is fragmented again outside.

use strait_clock::Time;
use strait_wire::ip::Packet;

use super::context::Lost;
use super::link::Link;
use crate::offload::SuperPacket;
use crate::reassembly::{FragmentShare, Reassembly};
use crate::{Counters, Mode, Reason};

/// Whether `packet` is a piece of what can only be protected whole.
pub(super) fn must_reassemble(link: &Link, packet: &SuperPacket<'_>) -> bool {
    let sa = link.association.sa.as_ref();
    packet.ip().is_fragment() && sa.is_some_and(|sa| matches!(sa.mode, Mode::Transport { .. }))
}

/// Keeps a fragment until all of its packet are here, and gives the packet then.
pub(super) fn reassemble<'a>(
    reassembly: &'a mut Reassembly,
    fragment: &[u8],
    now: Time,
    counters: &Counters,
) -> Result<Option<&'a [u8]>, Lost> {
    let mut lost = 0;
    // All come from this host: peers have equal shares.
    let share_of = |packet: &Packet<'_>| FragmentShare { owner: packet.dst(), known: true };
    let added = reassembly.add(fragment, share_of, now, &mut lost);
    counters.drops.count(Reason::FragmentsIncomplete, lost);
    added.map(|packet| packet.map(|packet| &*packet)).map_err(|reason| Lost { reason, packets: 1 })
}
