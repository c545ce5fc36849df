//! Fragments of outer packets, until all of one are here (RFC 791 section 3.2, RFC 8200 section 4.5); bounded in
//! number, pieces, bytes and time.
//!
//! What comes in here is not authenticated yet. Overlapping fragments show each observer another packet, so the whole
//! datagram is given up with what is still to come of it (RFC 5722); only exact duplicates, which networks make, are
//! passed over.
//!
//! Each datagram takes a slot of the share of an owner. Where all slots are taken, the owner with the most of them gives up its
//! oldest datagram, so that no sender takes what others need. Strangers have slots of their own, apart from those of peers. A sender
//! that forges a peer's address takes from the share of that peer, which nothing before authentication can prevent (RFC 4963).

use core::time::Duration;
use std::net::IpAddr;

use strait_clock::Time;
use strait_wire::fragment::Fragment;
use strait_wire::ip::{Front, Packet};

use crate::Reason;

mod slot;

use slot::{PartialDatagram, Slot};

/// Datagrams of peers in the making at once; with [`slot::BYTES_MAX`] each that is 8 MiB. A choice: at a loss of one fragment in a
/// thousand, the remains of the last 128,000; and three for each of 40 peers.
const SLOTS: usize = 128;
/// The same for strangers, together 1 MiB. Nothing of theirs is authentic, unless a peer has another address than it is known by.
const SLOTS_STRANGERS: usize = 16;
/// After this nothing that is missing comes any more (RFC 8200 section 4.5; RFC 1122 section 3.3.2 says 60 to 120 s).
const PATIENCE: Duration = Duration::from_secs(60);

/// Whose slot a datagram takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentShare {
    /// Owners have equal shares.
    pub owner: IpAddr,
    /// Whether the owner is a peer, and no stranger.
    pub known: bool,
}

/// Slots of one owner.
#[derive(Clone, Copy)]
struct ShareHolder {
    owner: IpAddr,
    slots: usize,
    /// The oldest of them.
    oldest: usize,
    started: Time,
}

/// All datagrams in the making.
#[derive(Debug, Default)]
pub struct Reassembly {
    slots: Vec<Slot>,
    /// Where a packet that came as its only fragment gets its headers.
    alone: Vec<u8>,
}

impl Reassembly {
    /// Nothing in the making, and no memory taken.
    #[must_use]
    pub fn new() -> Reassembly {
        Reassembly::default()
    }

    /// Adds one fragment; gives the packet when it was the last one missing, as it was before it was cut: without a
    /// fragment header, its length and checksum right. `share_of` is asked of its first fragment whose slot it takes. `lost` is
    /// told how many datagrams were given up because the rest did not come in time or others needed the room.
    ///
    /// # Errors
    /// [`Reason::MalformedFragment`] when this is no fragment of what can be a packet,
    /// [`Reason::FragmentsOverlap`] when it overlaps with another or contradicts it about the end,
    /// [`Reason::FragmentsIncomplete`] when there are too many pieces, [`Reason::CongestionMark`] when one of
    /// them is marked and another not ECN-capable (RFC 3168 section 5.3). But for the first, the datagram is lost;
    /// after an overlap and too many pieces, what comes of it later is refused for the same reason.
    pub fn add(
        &mut self,
        packet: &[u8],
        share_of: impl FnOnce(&Packet<'_>) -> FragmentShare,
        now: Time,
        lost: &mut u64,
    ) -> Result<Option<&mut [u8]>, Reason> {
        let fragment = Fragment::parse(packet).ok().flatten().ok_or(Reason::MalformedFragment)?;
        // Also sees to it that the first fragment has all headers (RFC 7112 section 5).
        let packet = Packet::parse(packet).map_err(|_| Reason::MalformedFragment)?;
        if fragment.header.is_whole() {
            // Not mixed with others of the same name (RFC 6946 section 4).
            return whole(copy(&mut self.alone, &fragment)?).map(Some);
        }
        let datagram = PartialDatagram::new(&packet, fragment.header.id);
        let at = self.slot_for(datagram, || share_of(&packet), now, lost);
        let slot = self.slots.get_mut(at).ok_or(Reason::MalformedFragment)?;
        match slot.add(&fragment, packet.tos().ecn())? {
            Some(packet) => whole(packet).map(Some),
            None => Ok(None),
        }
    }

    /// The slot of this datagram, an empty one if this is its first fragment.
    fn slot_for(
        &mut self,
        datagram: PartialDatagram,
        share_of: impl FnOnce() -> FragmentShare,
        now: Time,
        lost: &mut u64,
    ) -> usize {
        for slot in &mut self.slots {
            if slot.started().is_some_and(|started| now.since(started) > PATIENCE) {
                *lost += slot.give_up();
            }
        }
        if let Some(at) = self.slots.iter().position(|slot| slot.is_of(datagram)) {
            return at;
        }
        let share = share_of();
        let at = self.evicted(share).unwrap_or_else(|| self.free());
        if let Some(slot) = self.slots.get_mut(at) {
            *lost += slot.give_up();
            slot.start(datagram, share, now);
        }
        at
    }

    /// A free slot.
    fn free(&mut self) -> usize {
        let free = self.slots.iter().position(|slot| slot.started().is_none());
        free.unwrap_or_else(|| {
            self.slots.push(Slot::empty());
            self.slots.len() - 1
        })
    }

    /// The slot whose datagram gives way to one more of this share; nothing while there is room. It is the oldest of the owner that
    /// has the most: of the one that wants another if no one has more, then of the one whose oldest is the oldest.
    fn evicted(&self, share: FragmentShare) -> Option<usize> {
        let mut holders: [Option<ShareHolder>; SLOTS] = [None; SLOTS];
        let mut taken = 0;
        for (at, slot) in self.slots.iter().enumerate() {
            let Some((of, started)) = slot.share().filter(|(of, _)| of.known == share.known) else {
                continue;
            };
            taken += 1;
            let is_same = |holder: &Option<ShareHolder>| holder.is_none_or(|holder| holder.owner == of.owner);
            let Some(place) = holders.iter_mut().find(|holder| is_same(holder)) else { continue };
            let holder = place.get_or_insert(ShareHolder { owner: of.owner, slots: 0, oldest: at, started });
            holder.slots += 1;
            if started < holder.started {
                (holder.oldest, holder.started) = (at, started);
            }
        }
        if taken < if share.known { SLOTS } else { SLOTS_STRANGERS } {
            return None;
        }
        let first_to_give = |holder: &&ShareHolder| {
            (holder.slots, holder.owner == share.owner, core::cmp::Reverse(holder.started))
        };
        Some(holders.iter().flatten().max_by_key(first_to_give)?.oldest)
    }
}

/// The packet whose only fragment this is, in `buf`.
fn copy<'a>(buf: &'a mut Vec<u8>, fragment: &Fragment<'_>) -> Result<&'a mut [u8], Reason> {
    buf.clear();
    buf.resize(fragment.front.len, 0);
    fragment.emit_front(buf, fragment.payload.len()).map_err(|_| Reason::MalformedFragment)?;
    buf.extend_from_slice(fragment.payload);
    Ok(buf)
}

/// A packet that was put together, if it is not a fragment again: who cuts one twice hides something.
fn whole(packet: &mut [u8]) -> Result<&mut [u8], Reason> {
    match Front::parse(packet) {
        Ok(Front { fragment: None, .. }) => Ok(packet),
        _ => Err(Reason::MalformedFragment),
    }
}

#[cfg(test)]
mod tests;
