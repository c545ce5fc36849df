//! What comes directly behind IP: AH, ESP and IPComp as protocols 51, 50 and 108.
//!
//! ESP of a session comes so only where that was agreed, and says nothing of where the peer is: it has no port.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_wire::ip::{FRONT_MAX, Front, Packet};
use strait_wire::{Protocol, ah, esp};

use super::intake::{Intake, PacketCarrier, RawDatagram};
use super::{Inbound, Inlet, Origin};
use crate::Reason;
use crate::layers::Inside;
use crate::reassembly::FragmentShare;
use crate::sa::SaId;

impl Inbound {
    /// Takes an IP packet, or a fragment of one, as the network brought it; where there are workers, after
    /// [`Inbound::make_room`] said that there is room. What it holds for the host is delivered before this returns; behind a block
    /// that an engine expands, once that has left.
    pub fn ip_packet(&mut self, packet: &mut [u8], now: Time, inlet: &mut impl Inlet) {
        if let Err(reason) = self.direct(packet, now, inlet) {
            self.intake.counters.refuse(reason);
        }
    }

    fn direct(&mut self, packet: &mut [u8], now: Time, inlet: &mut impl Inlet) -> Result<(), Reason> {
        self.intake.working.begin(now);
        let front = Front::parse(packet).map_err(|_| Reason::MalformedOuter)?;
        if front.fragment.is_none() {
            return self.intake.whole(packet, front, now, inlet);
        }
        let mut lost = 0;
        let associations = &self.intake.associations;
        let share_of = |packet: &Packet<'_>| {
            let owner = packet.src();
            FragmentShare { owner, known: associations.has_host(owner) }
        };
        let added = self.reassembly.add(packet, share_of, now, &mut lost);
        self.intake.counters.drops.count(Reason::FragmentsIncomplete, lost);
        let Some(packet) = added? else { return Ok(()) };
        let front = Front::parse(packet).map_err(|_| Reason::MalformedOuter)?;
        self.intake.whole(packet, front, now, inlet)
    }
}

impl Intake {
    /// A packet that is no fragment.
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
        if let Some(session) = self.associations.session_of(sa) {
            let (from, carrier) = (SocketAddr::new(src, 0).into(), PacketCarrier::Ip(front.len));
            let datagram = RawDatagram { from, tos, now, bytes, range: front.len..end, header: 0, carrier };
            let result = self.esp(datagram, Some(session), inlet);
            self.host.finish(bytes, inlet);
            return result;
        }
        let receiving = self.associations.find(sa).ok_or(Reason::UnknownSpi)?;
        let inside = Inside::untouched(front.len, end, front.next);
        let (peer, inside) = receiving.open(bytes, inside, end, now, inlet)?;
        let mut headers = [0; FRONT_MAX];
        let headers = headers.get_mut(..front.len).ok_or(Reason::MalformedOuter)?;
        headers.copy_from_slice(bytes.get(..front.len).unwrap_or_default());
        let result = self.inside(Origin { sa, peer, tos, now }, inside, bytes, Some((headers, front)), inlet);
        // Delivered also after an error: these bytes are about to change.
        self.host.finish(bytes, inlet);
        result
    }
}
