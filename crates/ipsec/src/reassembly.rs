//! Fragments of outer packets, until all of one are here (RFC 791 section 3.2, RFC 8200 section 4.5); bounded in
//! number, pieces, bytes and time.
//!
//! What comes in here is not authenticated yet. Overlapping fragments show each observer another packet, so the whole
//! datagram is given up with what is still to come of it (RFC 5722); only exact duplicates, which networks make, are
//! passed over.

use core::time::Duration;

use strait_clock::Time;
use strait_wire::fragment::Fragment;
use strait_wire::ip::{Front, Packet};

use crate::Reason;

mod slot;

use slot::{PartialDatagram, Slot};

/// Datagrams in the making at once, over all senders; with [`slot::BYTES_MAX`] each that is 4 MiB. A choice: at a
/// loss of one fragment in a thousand, the remains of the last 64,000.
const SLOTS: usize = 64;
/// After this nothing that is missing comes any more (RFC 8200 section 4.5; RFC 1122 section 3.3.2 says 60 to 120 s).
const PATIENCE: Duration = Duration::from_secs(60);

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
    /// fragment header, its length and checksum right. `lost` is told how many datagrams were given up because
    /// the rest did not come in time or others needed the room.
    ///
    /// # Errors
    /// [`Reason::MalformedFragment`] when this is no fragment of what can be a packet,
    /// [`Reason::FragmentsOverlap`] when it overlaps with another or contradicts it about the end,
    /// [`Reason::FragmentsIncomplete`] when there are too many pieces, [`Reason::CongestionMark`] when one of
    /// them is marked and another not ECN-capable (RFC 3168 section 5.3). But for the first, the datagram is lost;
    /// after an overlap and too many pieces, what comes of it later is refused for the same reason.
    pub fn add(&mut self, packet: &[u8], now: Time, lost: &mut u64) -> Result<Option<&mut [u8]>, Reason> {
        let fragment = Fragment::parse(packet).ok().flatten().ok_or(Reason::MalformedFragment)?;
        // Also sees to it that the first fragment has all headers (RFC 7112 section 5).
        let packet = Packet::parse(packet).map_err(|_| Reason::MalformedFragment)?;
        if fragment.header.is_whole() {
            // Not mixed with others of the same name (RFC 6946 section 4).
            return whole(copy(&mut self.alone, &fragment)?).map(Some);
        }
        let at = self.slot_for(PartialDatagram::new(&packet, fragment.header.id), now, lost);
        let slot = self.slots.get_mut(at).ok_or(Reason::MalformedFragment)?;
        match slot.add(&fragment, packet.tos().ecn())? {
            Some(packet) => whole(packet).map(Some),
            None => Ok(None),
        }
    }

    /// The slot of this datagram, an empty one if this is its first fragment.
    fn slot_for(&mut self, datagram: PartialDatagram, now: Time, lost: &mut u64) -> usize {
        for slot in &mut self.slots {
            if slot.started().is_some_and(|started| now.since(started) > PATIENCE) {
                *lost += slot.give_up();
            }
        }
        if let Some(at) = self.slots.iter().position(|slot| slot.is_of(datagram)) {
            return at;
        }
        // A free one before all others; then the oldest.
        let oldest = (0..self.slots.len()).min_by_key(|at| self.slots.get(*at).and_then(Slot::started));
        let is_free = |at: &usize| self.slots.get(*at).is_some_and(|slot| slot.started().is_none());
        let at = match oldest.filter(|at| is_free(at) || self.slots.len() >= SLOTS) {
            Some(at) => at,
            None => {
                self.slots.push(Slot::empty());
                self.slots.len() - 1
            }
        };
        if let Some(slot) = self.slots.get_mut(at) {
            *lost += slot.give_up();
            slot.start(datagram, now);
        }
        at
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
