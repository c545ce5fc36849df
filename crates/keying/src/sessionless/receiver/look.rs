//! What a datagram with a header is: cheap checks first, then those that cost.

use core::time::Duration;

use strait_ipsec::{PeerId, Place};
use strait_wire::sessionless::{AcknowledgementKind, HEADER_TYPE, Header, KEY_PACKET_TYPE, Name};
use strait_wire::{Esn, Spi};

use super::known::{EpochKeyId, KnownSender, ReceivedSecret, SenderState, passed};
use super::{Candidate, LOOKUPS, Receiver, ReceiverEvent, Refusal, Verdict, WAIT};
use crate::PublicKey;
use crate::sessionless::algorithms::{KijAlgorithm, PacketAlgorithms, without_daily_keys};
use crate::sessionless::cache::Cache;
use crate::sessionless::clock::{Now, WallTime};
use crate::sessionless::daily::Day;
use crate::sessionless::node_keys::NodeKeys;
use crate::sessionless::packet_key::PacketKey;
use crate::sessionless::screen::HeaderInFront;
use crate::sessionless::shared::{Direction, Kij, Kijn};

impl Receiver {
    /// Tells what a sessionless datagram is (first byte 0x10 to 0x1F).
    pub fn look(&mut self, now: Now, own: &NodeKeys, from: impl Into<Place>, datagram: &[u8]) -> Verdict {
        let from = from.into();
        let looked = match datagram.first() {
            Some(&HEADER_TYPE) => self.header(now, own, from, datagram),
            Some(&KEY_PACKET_TYPE) => self.key_packet(now, own, from, datagram),
            _ => Err(Refusal::Malformed),
        };
        looked.unwrap_or_else(|refusal| {
            self.refusals.count(refusal);
            Verdict::Refused(refusal)
        })
    }

    fn header(&mut self, now: Now, own: &NodeKeys, from: Place, datagram: &[u8]) -> Result<Verdict, Refusal> {
        let HeaderInFront { header, bytes, low } = HeaderInFront::read(datagram)?;
        let name = self.name_of(header.source);
        if let Some(peer) = self.in_use(name, header.spi, bytes) {
            self.packet_keys.hits += 1;
            return Ok(Verdict::Known { peer, spi: header.spi, payload_at: bytes.len() });
        }
        self.packet_keys.misses += 1;
        own.check.allows(bytes, &header.check)?;
        let Some(sender) = self.senders.get(name) else {
            return self.unknown_sender(now, header.source, from, datagram);
        };
        let (kij, algorithms) = screened(&sender.known, now, &header)?;
        let (key, length) = (sender.known.key, sender.known.epoch);
        self.derive(now, own, name, &key)?;
        let day = self.day_of(now, own, name, &header, length, from)?;
        let Some(packet_key) = self.unwrapped(name, &header, bytes, (kij, day)) else {
            if header.hybrid {
                return self.wait_for_key_packet(now, name, &header, from, datagram);
            }
            return Err(Refusal::Forged);
        };
        let number = Esn(SenderState::number(header.first, low.0));
        let (peer, floor) = self.above_floor(now, name, &header, number, from)?;
        Ok(Verdict::New(Box::new(Candidate {
            name,
            header: bytes.into(),
            answer: header.answer,
            collides: self.set_aside.contains(&header.spi) || self.bound.contains_key(&header.spi),
            peer,
            spi: header.spi,
            first: header.first,
            floor,
            number,
            algorithms,
            key: packet_key,
        })))
    }

    /// Whose key it is, if this very header has brought one that is in use.
    fn in_use(&mut self, name: Name, spi: Spi, bytes: &[u8]) -> Option<PeerId> {
        let key = self.senders.peek(name)?.key(spi)?;
        if *key.header != *bytes {
            return None;
        }
        self.senders.get(name).map(|sender| sender.known.peer)
    }

    /// The sender and its floor, or the refusal of a number that is not above that, which the sender is told.
    fn above_floor(
        &mut self,
        now: Now,
        name: Name,
        header: &Header,
        number: Esn,
        from: Place,
    ) -> Result<(PeerId, Esn), Refusal> {
        let sender = self.senders.peek(name).ok_or(Refusal::UnknownName)?;
        let (peer, mark) = (sender.known.peer, Esn(sender.floor));
        if number > mark {
            return Ok((peer, mark));
        }
        if header.answer && passed(sender.refused, now.time) {
            sender.refused = Some(now.time);
            self.answer(now.time, peer, AcknowledgementKind::BelowMark { spi: header.spi, mark }, Some(from));
        }
        Err(Refusal::BelowMark)
    }

    /// The packet key in a header, tried with no secret or with each that a key packet brought for its epoch.
    fn unwrapped(
        &mut self,
        name: Name,
        header: &Header,
        bytes: &[u8],
        (algorithm, day): (KijAlgorithm, Option<Day>),
    ) -> Option<PacketKey> {
        let bound = bytes.get(..header.bound_len())?;
        let kij = match day {
            Some(day) => self.daily.peek((name, day))?,
            None => self.secrets.peek(name)?,
        };
        let sender = self.senders.peek(name)?;
        let (stopwatch, took) = (&mut self.stopwatch, &mut self.packet_keys.took);
        let mut open = |cache: &mut Cache<EpochKeyId, Kijn>, secret: Option<&ReceivedSecret>| {
            let id = (name, header.epoch, algorithm, day.is_some(), secret.map(|secret| secret.id));
            let secret = secret.map(|secret| &secret.secret);
            let derive = || Ok::<_, ()>(kij.epoch_key(Direction::Inbound, algorithm, header.epoch, secret));
            cache.ensure((id, sender.known.pinned), stopwatch, derive).ok()?;
            let kijn = cache.peek(id)?;
            let (key, nanos) =
                stopwatch.time(|| kijn.unwrap_key(&header.wrapped, header.spi, header.first, bound));
            *took += Duration::from_nanos(nanos.unwrap_or(0));
            key
        };
        if !header.hybrid {
            return open(&mut self.epoch_keys, None);
        }
        let secrets = sender.secrets.iter().filter(|secret| secret.epoch == header.epoch).rev();
        let cache = &mut self.epoch_keys;
        secrets.into_iter().find_map(|secret| open(cache, Some(secret)))
    }

    fn wait_for_key_packet(
        &mut self,
        now: Now,
        name: Name,
        header: &Header,
        from: Place,
        datagram: &[u8],
    ) -> Result<Verdict, Refusal> {
        let Some(sender) = self.senders.peek(name) else { return Err(Refusal::UnknownName) };
        let kept = sender.waiting.push(&mut self.waiting, now.time, from, datagram);
        if sender.waiting.since == Some(now.time) {
            self.stalled.insert((now.time + WAIT, name));
        }
        let asks = header.answer && passed(sender.wanted, now.time);
        let peer = sender.known.peer;
        if asks {
            sender.wanted = Some(now.time);
            self.answer(
                now.time,
                peer,
                AcknowledgementKind::KeyPacketWanted { epoch: header.epoch },
                Some(from),
            );
        }
        if kept { Ok(Verdict::Waits) } else { Err(Refusal::WaitingFull) }
    }

    pub(super) fn unknown_sender(
        &mut self,
        now: Now,
        name: Name,
        from: Place,
        datagram: &[u8],
    ) -> Result<Verdict, Refusal> {
        if self.unknown.get(name).is_some_and(|until| *until > now.time) {
            return Err(Refusal::UnknownName);
        }
        let new = !self.lookups.contains_key(&name);
        if new && self.lookups.len() >= LOOKUPS {
            return Err(Refusal::WaitingFull);
        }
        let waiting = self.lookups.entry(name).or_default();
        let kept = waiting.push(&mut self.waiting, now.time, from, datagram);
        // One that cannot wait is looked up all the same: the next will not have to.
        waiting.since.get_or_insert(now.time);
        if new {
            self.push(ReceiverEvent::LookUp(name));
        }
        if kept { Ok(Verdict::Waits) } else { Err(Refusal::WaitingFull) }
    }

    /// Makes sure that the Kij of a sender is there, within the budget.
    pub(super) fn derive(
        &mut self,
        now: Now,
        own: &NodeKeys,
        name: Name,
        key: &PublicKey,
    ) -> Result<(), Refusal> {
        let entry = (name, self.is_pinned(name));
        self.secrets.ensure(entry, &mut self.stopwatch, || {
            if !self.budget.take(now.time) {
                return Err(Refusal::Busy);
            }
            Kij::agree(&own.identity, key).ok_or(Refusal::Forged)
        })
    }

    pub(super) fn name_of(&self, name: Name) -> Name {
        self.aliases.get(&name).copied().unwrap_or(name)
    }
}

/// What the card, the clock and the configuration say of a header, before anything is computed with a key.
fn screened(
    known: &KnownSender,
    now: Now,
    header: &Header,
) -> Result<(KijAlgorithm, PacketAlgorithms), Refusal> {
    valid(known, now)?;
    known.epoch.takes(header.epoch, now.wall).map_err(|_| Refusal::EpochFarOff)?;
    // A sender that sends more than a million packets a second is ahead of its clock; a mark that is an epoch ahead helps none.
    if known.epoch.at(WallTime(header.first.0)) > header.epoch.saturating_add(1) {
        return Err(Refusal::NumberAhead);
    }
    let (_, numbers) = without_daily_keys(header.algorithms);
    let (kij, algorithms) = PacketAlgorithms::of(numbers).map_err(|_| Refusal::Algorithm)?;
    if !known.allows(algorithms) {
        return Err(Refusal::Algorithm);
    }
    if known.hybrid && !header.hybrid {
        return Err(Refusal::NotHybrid);
    }
    Ok((kij, algorithms))
}

pub(super) fn valid(known: &KnownSender, now: Now) -> Result<(), Refusal> {
    let (from, until) = known.valid;
    if from <= now.wall && now.wall <= until { Ok(()) } else { Err(Refusal::CardNotValid) }
}
