//! What changes a receiver: senders that become known, keys that are bound, packets that were authentic, time.

use std::sync::Arc;

use strait_clock::Time;
use strait_ipsec::{InboundHeader, PeerId};
use strait_wire::sessionless::{AcknowledgementKind, Name};
use strait_wire::{Esn, Spi};

use super::known::{InboundKey, KnownSender, SenderState};
use super::{Candidate, LINGER, NEGATIVE, Receiver, ReceiverEvent, Refusal, WAIT, WaitingDatagram};
use crate::sessionless::clock::Now;
use crate::sessionless::marks::Delivery;
use crate::sessionless::node_keys::key_name;
use crate::sessionless::packet_key::PacketKeyLimits;

/// What becomes of a packet that was authentic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// When it is delivered.
    pub delivery: Delivery,
    /// Whether its sender is where it came from: it is newer than all before it, so no replay.
    pub moves: bool,
    /// Whether its SPI alone finds its association.
    pub bound: bool,
}

/// A packet key that is kept.
#[derive(Clone, Debug)]
pub struct BoundKey {
    /// By what its association is known.
    pub header: InboundHeader,
    /// Until when its packets are taken.
    pub expires: Time,
}

/// A packet of a key that this receiver does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such sender, or no such key of it")]
pub struct UnknownKey;

impl Receiver {
    /// Takes a sender, or what changed of one; gives the datagrams that waited for it, to be looked at again.
    pub fn know(&mut self, known: KnownSender) -> Vec<WaitingDatagram> {
        let name = key_name(&known.key);
        let mut waited = Vec::new();
        self.by_peer.insert(known.peer, name);
        for alias in known.names.iter().copied().chain([name]) {
            if alias != name {
                // A name that another sender has stays its own.
                self.aliases.entry(alias).or_insert(name);
            }
            self.unknown.remove(alias);
            if let Some(mut waiting) = self.lookups.remove(&alias) {
                waited.extend(waiting.take(&mut self.waiting));
            }
        }
        let pinned = known.pinned;
        let state = match self.senders.remove(name) {
            // What it sent before stays refused, whatever is said of its mark now.
            Some(state) => SenderState { known, ..state },
            None => SenderState::new(known),
        };
        if let Some((name, evicted)) = self.senders.insert(name, state, pinned) {
            self.forget_sender(name, evicted);
        }
        waited
    }

    /// There is no sender with this name: its datagrams are refused, for some time without being looked up again.
    pub fn refuse(&mut self, now: Time, name: Name) {
        self.give_up(name);
        self.unknown.insert(name, now + NEGATIVE, false);
    }

    /// It was not found out whether there is a sender with this name: what waits for it is refused, and the next is looked up again.
    pub fn give_up(&mut self, name: Name) {
        if let Some(mut waiting) = self.lookups.remove(&name) {
            for _ in waiting.take(&mut self.waiting) {
                self.refusals.count(Refusal::UnknownName);
            }
        }
    }

    /// Forgets which senders there are not.
    pub fn forget_unknown(&mut self) {
        self.unknown.retain(|_, _| false);
    }

    /// Removes a sender: revoked, or not configured any more. Its associations end with the events that follow.
    pub fn remove(&mut self, peer: PeerId) {
        let Some(name) = self.by_peer.get(&peer).copied() else { return };
        if let Some(state) = self.senders.remove(name) {
            self.forget_sender(name, state);
        }
        self.secrets.remove(name);
        self.daily.retain(|(of, _), _| *of != name);
        self.epoch_keys.retain(|(of, ..), _| *of != name);
    }

    fn forget_sender(&mut self, name: Name, mut state: SenderState) {
        let peer = state.known.peer;
        self.by_peer.remove(&peer);
        for alias in &state.known.names {
            if self.aliases.get(alias) == Some(&name) {
                self.aliases.remove(alias);
            }
        }
        state.waiting.take(&mut self.waiting);
        for key in state.keys {
            self.expiries.remove(&(key.expires, name, key.spi));
            self.release(name, key.spi);
            self.push(ReceiverEvent::Expired { peer, spi: key.spi });
        }
    }

    /// The SPI is another's to have.
    fn release(&mut self, name: Name, spi: Spi) {
        if self.bound.get(&spi) == Some(&name) {
            self.bound.remove(&spi);
        }
    }

    /// SPIs of other associations of this node, with which no sessionless key is found.
    pub fn set_aside(&mut self, spis: std::collections::BTreeSet<Spi>) {
        self.set_aside = spis;
    }

    /// Whether a session may not be given this SPI.
    #[must_use]
    pub fn has_bound(&self, spi: Spi) -> bool {
        self.bound.contains_key(&spi)
    }

    /// A packet opened with the candidate's key: the key is kept, and found by its SPI if that is free. [`Receiver::received`] is to be
    /// called for the packet then.
    ///
    /// What the packet path is to know of it; nothing when the sender is gone.
    pub fn bind(&mut self, now: Now, candidate: Candidate) -> Option<BoundKey> {
        let Candidate { name, header, answer, collides, peer, spi, first, .. } = candidate;
        let sender = self.senders.peek(name)?;
        let mut gone: Vec<Spi> = sender.surplus().into_iter().collect();
        // The same SPI with another key: the sender drew it twice.
        if sender.key(spi).is_some() && !gone.contains(&spi) {
            gone.push(spi);
        }
        let expires = now.time + PacketKeyLimits::LONGEST + LINGER;
        let mut times = Vec::new();
        for old in &gone {
            times.extend(sender.forget(*old).map(|key| (key.expires, name, key.spi)));
        }
        let key = InboundKey::new(spi, first.0, header.clone(), !collides, answer, expires);
        let (numbers, of_sender) = (Arc::clone(&key.numbers), sender.mark.numbers());
        sender.keys.push(key);
        for time in times {
            self.expiries.remove(&time);
            self.release(name, time.2);
            self.push(ReceiverEvent::Expired { peer, spi: time.2 });
        }
        self.expiries.insert((expires, name, spi));
        if !collides {
            self.bound.insert(spi, name);
        }
        let header = InboundHeader {
            bytes: header,
            first,
            answers: answer,
            bound: !collides,
            key: numbers,
            sender: of_sender,
        };
        Some(BoundKey { header, expires })
    }

    /// The sender puts a header in front of packets of this key that need none.
    pub fn header_repeats(&mut self, now: Time, peer: PeerId, spi: Spi) {
        let sender = self.by_peer.get(&peer).and_then(|name| self.senders.peek(*name));
        let Some(key) = sender.and_then(|sender| sender.key(spi)) else { return };
        if key.may_acknowledge(now) {
            let highest = Esn(key.numbers.highest());
            self.answer(now, peer, AcknowledgementKind::Bound { spi, highest }, None);
        }
    }

    /// An authentic packet with this number, which its association had not seen.
    ///
    /// # Errors
    /// [`UnknownKey`] when it has a key that this receiver does not have.
    pub fn received(
        &mut self,
        now: Now,
        peer: PeerId,
        spi: Spi,
        number: Esn,
        with_header: bool,
    ) -> Result<Received, UnknownKey> {
        let name = self.by_peer.get(&peer).copied().ok_or(UnknownKey)?;
        let sender = self.senders.peek(name).ok_or(UnknownKey)?;
        let before = sender.keys.iter().map(|key| key.numbers.highest()).max().unwrap_or(0).max(sender.floor);
        let key = sender.key(spi).ok_or(UnknownKey)?;
        let first = key.first == number.0 && before == number.0;
        key.numbers.note(number.0);
        let acknowledges = with_header && key.wants_acknowledgement(now.time, number.0);
        let (bound, highest) = (key.bound, Esn(key.numbers.highest()));
        let (delivery, request) = sender.mark.admit(number.0);
        if let Some(mark) = request {
            self.push(ReceiverEvent::Persist { peer, mark });
        }
        if acknowledges {
            self.answer(now.time, peer, AcknowledgementKind::Bound { spi, highest }, None);
        }
        Ok(Received { delivery, moves: number.0 > before || first, bound })
    }

    /// The mark of a sender is on disk.
    pub fn persisted(&mut self, peer: PeerId, mark: u64) {
        if let Some(sender) = self.by_peer.get(&peer).and_then(|name| self.senders.peek(*name)) {
            sender.mark.persisted(mark);
        }
    }

    /// Forgets what has expired: packet keys, look-ups that were not answered.
    pub fn expire(&mut self, now: Time) {
        while let Some((at, name, spi)) = self.expiries.first().copied() {
            if at > now {
                break;
            }
            self.expiries.pop_first();
            self.release(name, spi);
            if let Some(sender) = self.senders.peek(name) {
                sender.forget(spi);
                let peer = sender.known.peer;
                self.push(ReceiverEvent::Expired { peer, spi });
            }
        }
        while let Some((at, name)) = self.stalled.first().copied().filter(|(at, _)| *at <= now) {
            self.stalled.remove(&(at, name));
            if let Some(sender) = self.senders.peek(name)
                && sender.waiting.since.is_some_and(|since| since + WAIT <= now)
            {
                sender
                    .waiting
                    .take(&mut self.waiting)
                    .iter()
                    .for_each(|_| self.refusals.count(Refusal::Forged));
            }
        }
        let over: Vec<Name> = self
            .lookups
            .iter()
            .filter(|(_, waiting)| waiting.since.is_some_and(|since| since + WAIT <= now))
            .map(|(name, _)| *name)
            .collect();
        for name in over {
            if let Some(mut waiting) = self.lookups.remove(&name) {
                waiting
                    .take(&mut self.waiting)
                    .iter()
                    .for_each(|_| self.refusals.count(Refusal::UnknownName));
            }
        }
    }
}
