//! What comes directly behind IP: AH, ESP and IPComp as protocols 51, 50 and 108.

use strait_clock::Time;
use strait_wire::ip::{FRONT_MAX, Front, Packet};
use strait_wire::{Protocol, ah, esp};

use super::{Inbound, Inlet, Origin};
use crate::Reason;
use crate::reassembly::Reassembly;
use crate::sa::SaId;
use crate::wrap::Inside;

impl Inbound {
    /// Takes an IP packet, or a fragment of one, as the network brought it; what it holds for the host is
    /// delivered before this returns.
    pub fn ip_packet(&mut self, packet: &mut [u8], now: Time, inlet: &mut impl Inlet) {
        if let Err(reason) = self.direct(packet, now, inlet) {
            self.counters.refuse(reason);
        }
    }

    fn direct(&mut self, packet: &mut [u8], now: Time, inlet: &mut impl Inlet) -> Result<(), Reason> {
        let front = Front::parse(packet).map_err(|_| Reason::MalformedOuter)?;
        if front.fragment.is_none() {
            return self.whole(packet, front, now, inlet);
        }
        // Lent out while what it put together is used.
        let mut reassembly = core::mem::take(&mut self.reassembly);
        let result = self.piece(&mut reassembly, packet, now, inlet);
        self.reassembly = reassembly;
        result
    }

    /// One fragment, and the packet when it is the last that was missing.
    fn piece(
        &mut self,
        reassembly: &mut Reassembly,
        fragment: &[u8],
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let mut lost = 0;
        let added = reassembly.add(fragment, now, &mut lost);
        self.counters.drops.count(Reason::FragmentsIncomplete, lost);
        let Some(packet) = added? else { return Ok(()) };
        let front = Front::parse(packet).map_err(|_| Reason::MalformedOuter)?;
        self.whole(packet, front, now, inlet)
    }

    fn whole(
        &mut self,
        bytes: &mut [u8],
        front: Front,
        now: Time,
        inlet: &mut impl Inlet,
    ) -> Result<(), Reason> {
        let packet = Packet::parse(bytes).map_err(|_| Reason::MalformedOuter)?;
        let (end, tos, src) = (packet.bytes().len(), packet.tos(), packet.src());
        let behind = packet.bytes().get(front.len..).unwrap_or_default();
        let sa = match front.next {
            Protocol::AH => SaId::Ip(ah::View::parse(behind).map_err(|_| Reason::MalformedAh)?.header().spi),
            Protocol::ESP => SaId::Ip(esp::Header::parse(behind).map_err(|_| Reason::MalformedEsp)?.0.spi),
            // What did not shrink comes without IPComp's header (RFC 3173 section 2.2).
            _ => SaId::From(src),
        };
        let receiver = self.sas.get_mut(&sa).ok_or(Reason::UnknownSpi)?;
        let inside = Inside::untouched(front.len, end, front.next);
        let (peer, inside) = receiver.open(bytes, inside, end, now, inlet)?;
        let mut headers = [0; FRONT_MAX];
        let headers = headers.get_mut(..front.len).ok_or(Reason::MalformedOuter)?;
        headers.copy_from_slice(bytes.get(..front.len).unwrap_or_default());
        let result = self.inside(Origin { sa, peer, tos, now }, inside, bytes, Some((headers, front)), inlet);
        // Whatever became of the rest: these bytes are about to change.
        self.finish(bytes, inlet);
        result
    }
}
