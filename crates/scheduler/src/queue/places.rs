//! Packets in chains, one a flow.

use super::flows::NONE;
use super::packet::Queued;

/// A place for a packet.
#[derive(Debug)]
struct PacketPlace<N> {
    packet: Option<Queued<N>>,
    next: u32,
}

/// Places, used again and again; one is made when one more packet waits than ever before.
#[derive(Debug)]
pub(super) struct PacketPlaces<N> {
    places: Vec<PacketPlace<N>>,
    free: Vec<u32>,
}

impl<N> PacketPlaces<N> {
    pub(super) const fn new() -> PacketPlaces<N> {
        PacketPlaces { places: Vec::new(), free: Vec::new() }
    }

    /// All packets, in no order.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Queued<N>> {
        self.places.iter().filter_map(|place| place.packet.as_ref())
    }

    /// Puts a packet behind the one at `last`, if that is a place; says where it is.
    pub(super) fn add(&mut self, packet: Queued<N>, last: u32) -> u32 {
        let place = PacketPlace { packet: Some(packet), next: NONE };
        let at = self.free.pop().unwrap_or_else(|| u32::try_from(self.places.len()).unwrap_or(NONE));
        match self.places.get_mut(at as usize) {
            Some(free) => *free = place,
            None => self.places.push(place),
        }
        if let Some(last) = self.places.get_mut(last as usize) {
            last.next = at;
        }
        at
    }

    /// The packet at this place.
    pub(super) fn get(&self, at: u32) -> Option<&Queued<N>> {
        self.places.get(at as usize)?.packet.as_ref()
    }

    /// The same, to change it in place.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Queued<N>> {
        self.places.get_mut(at as usize)?.packet.as_mut()
    }

    /// Takes the packet at this place out, and says where the next of its flow is.
    pub(super) fn remove(&mut self, at: u32) -> Option<(Queued<N>, u32)> {
        let place = self.places.get_mut(at as usize)?;
        let packet = place.packet.take()?;
        self.free.push(at);
        Some((packet, place.next))
    }
}
