//! Headers of peers: those in use, new ones, and what waits until a mark is on disk.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_ipsec::inbound::HeldDatagram;
use strait_ipsec::{InboundSa, PeerId, Place, Usage, inbound};
use strait_wire::sessionless::{Acknowledgement, AcknowledgementKind, Name};
use strait_wire::{Spi, Tos};

use super::{MarkOwner, SessionlessPeers, own_payloads};
use crate::control::context::ControlContext;
use crate::directory::LookUpEnd;
use crate::sessionless::{Candidate, Delivery, Now, ReceiverEvent, Refusal, Verdict, WaitingDatagram};
use crate::{Action, ControlEvent, SaDirection};

/// Datagrams that wait for one mark: as those that wait for a key packet.
const HELD: usize = 64;
/// Bytes that wait for all marks.
const HELD_BYTES: usize = 4 << 20;

/// The packet keys of all peers that are in use here.
#[derive(Debug, Default)]
pub(super) struct KeysHere {
    keys: BTreeMap<(PeerId, Spi), KeyHere>,
    held_bytes: usize,
}

/// One of them.
#[derive(Debug)]
struct KeyHere {
    usage: Arc<Usage>,
    /// Whether its SPI alone finds it.
    bound: bool,
    waits: Option<Box<KeyInWaiting>>,
}

/// A key whose first packets may not be delivered until a mark is on disk.
#[derive(Debug)]
struct KeyInWaiting {
    mark: u64,
    sa: InboundSa,
    datagrams: Vec<HeldDatagram>,
    /// The acknowledgement, after which packets come without the header, so that it is not sent before the association is there.
    answer: Option<(Acknowledgement, Option<Place>)>,
}

impl KeysHere {
    pub(super) fn has(&self, key: (PeerId, Spi)) -> bool {
        self.keys.contains_key(&key)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Packets and bytes that came under the keys of a peer, and when the last did.
    pub(super) fn usages(&self, id: PeerId) -> impl Iterator<Item = (Spi, &Usage)> {
        self.keys.range((id, Spi(0))..=(id, Spi(u32::MAX))).map(|((_, spi), key)| (*spi, &*key.usage))
    }

    /// A datagram of a key in use goes on, or waits with those before it.
    fn pass(&mut self, context: &mut ControlContext, held: HeldDatagram) {
        match self.keys.get_mut(&held.sa).and_then(|key| key.waits.as_mut()) {
            None => context.order_in(inbound::Order::Again(Box::new(held))),
            Some(waits) => {
                if waits.datagrams.len() < HELD && self.held_bytes + held.bytes.len() <= HELD_BYTES {
                    self.held_bytes += held.bytes.len();
                    waits.datagrams.push(held);
                }
            }
        }
    }

    /// The mark of a peer is on disk: keys that waited for it are used.
    pub(super) fn persisted(
        &mut self,
        context: &mut ControlContext,
        id: PeerId,
        mark: u64,
    ) -> Vec<(Acknowledgement, Option<Place>)> {
        let mut answers = Vec::new();
        for key in self.keys.range_mut((id, Spi(0))..=(id, Spi(u32::MAX))).map(|(_, key)| key) {
            let Some(waits) = key.waits.take_if(|waits| waits.mark <= mark) else { continue };
            context.order_in(inbound::Order::Install(Box::new(waits.sa)));
            answers.extend(waits.answer);
            for held in waits.datagrams {
                self.held_bytes -= held.bytes.len();
                context.order_in(inbound::Order::Again(Box::new(held)));
            }
        }
        answers
    }

    /// Keeps an acknowledgement of a key that waits; false when it does not wait.
    fn keep_answer(&mut self, id: PeerId, answer: (Acknowledgement, Option<Place>)) -> bool {
        let AcknowledgementKind::Bound { spi, .. } = answer.0.0 else { return false };
        let waits = self.keys.get_mut(&(id, spi)).and_then(|key| key.waits.as_mut());
        waits.map(|waits| waits.answer = Some(answer)).is_some()
    }

    fn remove(&mut self, context: &mut ControlContext, id: PeerId, spi: Spi) {
        let Some(key) = self.keys.remove(&(id, spi)) else { return };
        if key.bound {
            context.spis.release(spi);
        }
        match key.waits {
            Some(waits) => {
                self.held_bytes -= waits.datagrams.iter().map(|held| held.bytes.len()).sum::<usize>();
            }
            None if key.bound => context.order_in(inbound::Order::Withdraw(spi)),
            None => context.order_in(inbound::Order::WithdrawKeyed(id, spi)),
        }
    }
}

impl SessionlessPeers {
    /// Takes a datagram that begins with a header, or a key packet.
    pub(crate) fn datagram(
        &mut self,
        context: &mut ControlContext,
        from: Place,
        tos: Tos,
        bytes: &[u8],
        time: strait_clock::Time,
    ) {
        let now = self.now(time);
        self.look_at_datagram(context, now, (from, tos), bytes);
        self.take_events(context, now, Some(from));
    }

    /// The certificate of a sender has been looked up; if it was good, it is a peer, and nothing waits any more.
    pub(crate) fn looked_up(&mut self, name: Name, end: LookUpEnd, time: strait_clock::Time) {
        match end {
            LookUpEnd::NotFound | LookUpEnd::Refused => self.receiver.refuse(time, name),
            LookUpEnd::Found | LookUpEnd::Failed => self.receiver.give_up(name),
        }
    }

    /// Forgets which senders are not known.
    pub(crate) fn forget_unknown(&mut self) {
        self.receiver.forget_unknown();
    }

    /// Looks again at a datagram that waited.
    pub(super) fn look_at(&mut self, context: &mut ControlContext, now: Now, waited: WaitingDatagram) {
        // Its marks were not kept: it counts as one that cannot carry any.
        self.look_at_datagram(context, now, (waited.from, Tos(0)), &waited.bytes);
    }

    fn look_at_datagram(
        &mut self,
        context: &mut ControlContext,
        now: Now,
        (from, tos): (Place, Tos),
        bytes: &[u8],
    ) {
        let mut rest = Vec::new();
        match self.receiver.look(now, &self.own, from, bytes) {
            Verdict::Known { peer, spi, payload_at } => {
                let held = HeldDatagram { from, tos, sa: (peer, spi), payload_at, bytes: bytes.into() };
                self.keys.pass(context, held);
            }
            Verdict::New(candidate) => self.new_key(context, now, (from, tos), *candidate, bytes),
            Verdict::KeyPacket(waited) => rest = waited,
            Verdict::Waits => {}
            Verdict::Refused(why) => self.refused(context, now, from.remote, why),
        }
        // What waited for a key packet is itself none.
        rest.into_iter().for_each(|waited| self.look_at(context, now, waited));
    }

    /// Says what is wrong with a peer's clock or card, which people can mend; counters have all else.
    fn refused(&mut self, context: &mut ControlContext, now: Now, from: SocketAddr, why: Refusal) {
        let mendable = matches!(
            why,
            Refusal::EpochFarOff
                | Refusal::NumberAhead
                | Refusal::CardNotValid
                | Refusal::NotHybrid
                | Refusal::NoDailyKey
        );
        if mendable && self.refusal_lines.take(1, now.time) {
            context.log(ControlEvent::RefusedHeader { from, why });
        }
    }

    /// A header with a key that is new: it is used if the packet behind it opens.
    fn new_key(
        &mut self,
        context: &mut ControlContext,
        now: Now,
        (from, tos): (Place, Tos),
        mut candidate: Candidate,
        bytes: &[u8],
    ) {
        let spec = candidate.association(own_payloads(context, candidate.algorithms.compression));
        let (peer, spi, number, floor) = (candidate.peer, candidate.spi, candidate.number, candidate.floor);
        let payload_at = candidate.payload_at();
        let trial = InboundSa::new(&spec).beginning(candidate.first, floor);
        let opened = trial.try_open(bytes.get(payload_at..).unwrap_or_default());
        if opened != Some(number) {
            return self.receiver.forged();
        }
        let again = self.keys.has((peer, spi));
        if !again && !context.spis.claim(spi, peer) {
            candidate.collide();
        }
        let Some(bound) = self.receiver.bind(now, candidate) else { return };
        // What bind has ended is withdrawn before the new association is there.
        self.take_events(context, now, Some(from));
        let is_bound = bound.header.bound;
        if is_bound {
            context.spis.claim(spi, peer);
        }
        if !again {
            context.export_key(SaDirection::In, &spec);
        }
        let sa = InboundSa::new(&spec).until(bound.expires).headed(bound.header, floor);
        let held = HeldDatagram { from, tos, sa: (peer, spi), payload_at, bytes: bytes.into() };
        let usage = sa.usage();
        let Ok(received) = self.receiver.received(now, peer, spi, number, true) else { return };
        let waits = match received.delivery {
            Delivery::Now => {
                context.order_in(inbound::Order::Install(Box::new(sa)));
                None
            }
            Delivery::AfterPersisted(mark) => {
                Some(Box::new(KeyInWaiting { mark, sa, datagrams: Vec::new(), answer: None }))
            }
        };
        self.keys.keys.insert((peer, spi), KeyHere { usage, bound: is_bound, waits });
        self.keys.pass(context, held);
        self.look_from(now.time);
    }

    /// Does what the receiver wants. `from` is where the datagram came from that was looked at.
    pub(super) fn take_events(&mut self, context: &mut ControlContext, now: Now, from: Option<Place>) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::LookUp(name) if context.looks_up => {
                    context.actions.push_back(Action::LookUp(name));
                }
                // Who is not configured is not known.
                ReceiverEvent::LookUp(name) => self.receiver.refuse(now.time, name),
                ReceiverEvent::Persist { peer, mark } => {
                    if let Some(peer) = self.peers.get(&peer) {
                        let owner = MarkOwner::Peer(peer.config.key);
                        context.actions.push_back(Action::PersistMark(owner, mark));
                    }
                }
                ReceiverEvent::Answer { peer, acknowledgement, heard_from } => {
                    let known =
                        self.peers.get(&peer).and_then(|peer| peer.config.spec.counters.endpoint.get());
                    let elsewhere = heard_from.or(from.filter(|_| known.is_none()));
                    let elsewhere = elsewhere.filter(|to| Some(to.remote) != known);
                    if self.keys.keep_answer(peer, (acknowledgement, elsewhere)) {
                        continue;
                    }
                    self.tell(context, now, peer, acknowledgement, elsewhere);
                }
                ReceiverEvent::Expired { peer, spi } => self.keys.remove(context, peer, spi),
            }
        }
    }
}
