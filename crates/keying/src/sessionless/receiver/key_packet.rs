//! Key packets: the secret of an epoch, encapsulated to this node's ML-KEM key.

use aws_lc_rs::digest::{SHA256, digest};
use strait_ipsec::Place;
use strait_wire::sessionless::{AcknowledgementKind, KeyPacket};

use super::known::{ReceivedSecret, passed};
use super::look::valid;
use super::{Receiver, Refusal, Verdict};
use crate::sessionless::clock::Now;
use crate::sessionless::node_keys::{KEM_ID, NodeKeys};
use crate::sessionless::shared::Direction;

impl Receiver {
    /// Takes a key packet, whose tag proves its sender before anything is computed with the ML-KEM key.
    pub(super) fn key_packet(
        &mut self,
        now: Now,
        own: &NodeKeys,
        from: Place,
        datagram: &[u8],
    ) -> Result<Verdict, Refusal> {
        let packet = KeyPacket::parse(datagram).map_err(|_| Refusal::Malformed)?;
        own.check.allows(datagram, &packet.check)?;
        let name = self.name_of(packet.source);
        let Some(sender) = self.senders.get(name) else {
            return self.unknown_sender(now, packet.source, from, datagram);
        };
        valid(&sender.known, now)?;
        let length = sender.known.epoch;
        length.takes(packet.epoch, now.wall).map_err(|_| Refusal::EpochFarOff)?;
        let kem = own.kem.as_ref().filter(|_| packet.kem == KEM_ID).ok_or(Refusal::Algorithm)?;
        let (key, peer) = (sender.known.key, sender.known.peer);
        self.derive(now, own, name, &key)?;
        let bound = datagram.get(..packet.bound_len()).ok_or(Refusal::Malformed)?;
        let kij = self.secrets.peek(name).ok_or(Refusal::Busy)?;
        if !kij.key_packet_is_authentic(Direction::Inbound, bound, &packet.tag) {
            return Err(Refusal::Forged);
        }
        let sender = self.senders.peek(name).ok_or(Refusal::UnknownName)?;
        let mut id = [0; 16];
        id.copy_from_slice(digest(&SHA256, &packet.ciphertext).as_ref().get(..16).unwrap_or(&[0; 16]));
        if !sender.secrets.iter().any(|known| known.epoch == packet.epoch && known.id == id) {
            let secret = kem.decapsulate(&packet.ciphertext).ok_or(Refusal::Forged)?;
            sender.keep(ReceivedSecret { epoch: packet.epoch, id, secret }, length.at(now.wall));
        }
        let waited = sender.waiting.take(&mut self.waiting);
        if packet.answer && passed(sender.taken, now.time) {
            sender.taken = Some(now.time);
            self.answer(
                now.time,
                peer,
                AcknowledgementKind::KeyPacketTaken { epoch: packet.epoch },
                Some(from),
            );
        }
        Ok(Verdict::KeyPacket(waited))
    }
}
