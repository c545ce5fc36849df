//! An IP packet that spans several AGGFRAG payloads (RFC 9347 section 2.2.3).

use strait_wire::{Ecn, Esn};

use super::assembly::worst;

/// Longest packet that fragments may make.
const PACKET_MAX: usize = 65_535;

/// The part of a packet that is here, and which payload has to bring the rest.
#[derive(Debug)]
pub(crate) struct PartialPacket {
    next: Esn,
    bytes: Vec<u8>,
    ecn: Ecn,
    waiting: bool,
}

impl PartialPacket {
    pub(crate) fn new() -> PartialPacket {
        PartialPacket { next: Esn(0), bytes: Vec::new(), ecn: Ecn::NotEct, waiting: false }
    }

    /// A packet begins at the end of payload `esn`, which came with `ecn` outside; true when another one was
    /// given up for it.
    pub(crate) fn start(&mut self, esn: Esn, ecn: Ecn, bytes: &[u8]) -> bool {
        let lost = core::mem::replace(&mut self.waiting, true);
        self.next = Esn(esn.0.wrapping_add(1));
        self.ecn = ecn;
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        lost
    }

    /// More of it at the start of payload `esn`: all there is, with the mark of all that brought it; `None` when this is not the next one, or it grows
    /// beyond any packet.
    pub(crate) fn go_on(&mut self, esn: Esn, ecn: Ecn, bytes: &[u8]) -> Option<(&mut [u8], Ecn)> {
        if !self.waiting || self.next != esn || self.bytes.len() + bytes.len() > PACKET_MAX {
            self.waiting = false;
            return None;
        }
        self.next = Esn(esn.0.wrapping_add(1));
        self.ecn = worst(self.ecn, ecn);
        self.bytes.extend_from_slice(bytes);
        Some((&mut self.bytes, self.ecn))
    }

    /// The packet was complete.
    pub(crate) fn finish(&mut self) {
        self.waiting = false;
    }
}
