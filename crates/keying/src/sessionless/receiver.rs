//! The receiver's state: who may send, which keys its packets have, and what is answered.
//!
//! An unknown sender costs a MAC and a bounded look-up. Public-key operations come after the check that is keyed by this node's public
//! key, and have a budget of so many a second. Three tiers of caches: packet keys and Kijn, Kij, senders; what is in none of them is
//! asked of the caller ([`ReceiverEvent::LookUp`]), which may answer later, while the first packets wait.

mod bind;
mod budget;
mod daily;
mod key_packet;
mod known;
mod look;
mod refusal;
mod waiting;

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use strait_clock::{Deadline, Stopwatch, Time};
use strait_ipsec::{EspKeys, PeerId, Place};
use strait_wire::sessionless::{Acknowledgement, AcknowledgementKind, Name};
use strait_wire::{Esn, Spi};

use super::algorithms::PacketAlgorithms;
use super::cache::{Cache, CacheCounts};
use super::daily::Day;
use super::node_keys::{NodeKeys, key_name};
use super::packet_key::PacketKey;
use super::shared::{Kij, Kijn};

pub use bind::{BoundKey, Received, UnknownKey};
use budget::Budget;
pub use known::KnownSender;
use known::{EpochKeyId, SenderState};
pub use refusal::{Refusal, Refusals};
pub use waiting::WaitingDatagram;
use waiting::{Waiting, WaitingBytes};

/// Names that are looked up at the same time.
const LOOKUPS: usize = 256;
/// How long a datagram waits for a card or a key packet: as long as a first packet is of use (RFC 6298: TCP repeats its SYN after 1 s).
const WAIT: Duration = Duration::from_secs(3);
/// How long a name that is not known is refused without being asked for.
const NEGATIVE: Duration = Duration::from_secs(30);
/// How long a packet key is kept after its life, for packets that are late.
const LINGER: Duration = Duration::from_secs(30);
/// Events that wait to be taken; of answers, more are not made.
const EVENTS: usize = 4096;

/// How much a receiver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverSettings {
    /// Senders that are not pinned.
    pub senders: usize,
    /// Secrets, Kij.
    pub secrets: usize,
    /// Keys of epochs, Kijn.
    pub epoch_keys: usize,
    /// Names that are known not to exist.
    pub unknown_names: usize,
    /// Secrets that are computed in a second, for headers that may be forged.
    pub secrets_a_second: u32,
    /// Answers in a second to datagrams that may be forged or replayed.
    pub answers_a_second: u32,
}

impl Default for ReceiverSettings {
    /// 16,384 senders with a Kij and two Kijn each, 4,096 unknown names, 10,000 secrets a second: half of one processor;
    /// 1,000 answers a second, as datagrams of strangers.
    fn default() -> ReceiverSettings {
        ReceiverSettings {
            senders: 16_384,
            secrets: 16_384,
            epoch_keys: 32_768,
            unknown_names: 4096,
            secrets_a_second: 10_000,
            answers_a_second: 1000,
        }
    }
}

/// A packet key that a header brought, and that opens the packet behind it or not.
#[derive(Debug)]
pub struct Candidate {
    name: Name,
    header: Box<[u8]>,
    answer: bool,
    collides: bool,
    /// Whose it is.
    pub peer: PeerId,
    /// Its SPI.
    pub spi: Spi,
    /// The number of its first packet.
    pub first: Esn,
    /// Numbers up to and with this one are refused.
    pub floor: Esn,
    /// The number of the packet behind the header.
    pub number: Esn,
    /// How its packets are protected, and what they may carry.
    pub algorithms: PacketAlgorithms,
    key: PacketKey,
}

impl Candidate {
    /// Another association has the SPI, so that the header has to stay on.
    pub const fn collide(&mut self) {
        self.collides = true;
    }

    /// Whether the sender wants answers.
    #[must_use]
    pub const fn wants_answers(&self) -> bool {
        self.answer
    }

    /// Where the ESP packet begins in the datagram.
    #[must_use]
    pub fn payload_at(&self) -> usize {
        self.header.len()
    }

    /// The keys of ESP.
    #[must_use]
    pub fn esp_keys(&self) -> EspKeys {
        self.key.esp_keys(self.algorithms.protection, 0)
    }

    /// The association, which takes numbers above the floor.
    #[must_use]
    pub fn association(&self, payloads: strait_ipsec::Payloads) -> strait_ipsec::SaSpec {
        self.key.association(self.peer, self.spi, self.algorithms.protection, payloads, 0)
    }
}

/// What a sessionless datagram is.
#[derive(Debug)]
pub enum Verdict {
    /// The header of a key that is in use: the packet behind it is for that association.
    Known {
        /// Whose it is.
        peer: PeerId,
        /// Its SPI; not the only one with that number where keys collide.
        spi: Spi,
        /// Where the ESP packet begins.
        payload_at: usize,
    },
    /// A key that is new. If the packet opens with it, [`Receiver::bind`] is to be called.
    New(Box<Candidate>),
    /// A key packet was taken. These waited for it, and are to be looked at again.
    KeyPacket(Vec<WaitingDatagram>),
    /// It waits, as a copy.
    Waits,
    /// It is dropped.
    Refused(Refusal),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReceiverEvent {
    /// Find the card of this sender, and say what came of it: [`Receiver::know`] or [`Receiver::refuse`].
    LookUp(Name),
    /// Write the mark of this sender to disk, then call [`Receiver::persisted`].
    Persist {
        /// The sender.
        peer: PeerId,
        /// Its mark.
        mark: u64,
    },
    /// Tell the sender, with the next packet or at once.
    Answer {
        /// The sender.
        peer: PeerId,
        /// What it is told.
        acknowledgement: Acknowledgement,
        /// From where the datagram came that made the answer, for a sender whose place is not known. It may be forged.
        heard_from: Option<Place>,
    },
    /// A packet key is used no more: its association is to go.
    Expired {
        /// Whose it was.
        peer: PeerId,
        /// Its SPI.
        spi: Spi,
    },
}

/// How the caches did, and what was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverCounts {
    /// Headers of keys in use (hits) and others (misses), and what unwrapping took. [`Receiver::counts`] counts no entries: the data plane has them.
    pub packet_keys: CacheCounts,
    /// Kijn.
    pub epoch_keys: CacheCounts,
    /// Kij.
    pub secrets: CacheCounts,
    /// Kij of days.
    pub daily_secrets: CacheCounts,
    /// Senders.
    pub senders: CacheCounts,
    /// Names that are known not to exist.
    pub unknown_names: CacheCounts,
    /// Datagrams refused.
    pub refusals: Refusals,
}

/// See the head of this module.
#[derive(Debug)]
pub struct Receiver {
    senders: Cache<Name, SenderState>,
    /// The names of senders by their numbers, and their other names.
    by_peer: BTreeMap<PeerId, Name>,
    aliases: BTreeMap<Name, Name>,
    secrets: Cache<Name, Kij>,
    /// Those of days.
    daily: Cache<(Name, Day), Kij>,
    epoch_keys: Cache<EpochKeyId, Kijn>,
    unknown: Cache<Name, Time>,
    lookups: BTreeMap<Name, Waiting>,
    waiting: WaitingBytes,
    /// SPIs that are bound, here or elsewhere.
    bound: BTreeMap<Spi, Name>,
    set_aside: BTreeSet<Spi>,
    expiries: BTreeSet<(Time, Name, Spi)>,
    /// Until when datagrams of known senders wait for a key packet.
    stalled: BTreeSet<(Time, Name)>,
    budget: Budget,
    answers: Budget,
    events: VecDeque<ReceiverEvent>,
    refusals: Refusals,
    packet_keys: CacheCounts,
    stopwatch: Stopwatch,
}

impl Receiver {
    /// A receiver that knows no sender yet.
    #[must_use]
    pub fn new(settings: &ReceiverSettings) -> Receiver {
        Receiver {
            senders: Cache::new(settings.senders),
            by_peer: BTreeMap::new(),
            aliases: BTreeMap::new(),
            secrets: Cache::new(settings.secrets),
            daily: Cache::new(settings.secrets),
            epoch_keys: Cache::new(settings.epoch_keys),
            unknown: Cache::new(settings.unknown_names),
            lookups: BTreeMap::new(),
            waiting: WaitingBytes::default(),
            bound: BTreeMap::new(),
            set_aside: BTreeSet::new(),
            expiries: BTreeSet::new(),
            stalled: BTreeSet::new(),
            budget: Budget::new(settings.secrets_a_second),
            answers: Budget::new(settings.answers_a_second),
            events: VecDeque::new(),
            refusals: Refusals::default(),
            packet_keys: CacheCounts::default(),
            stopwatch: Stopwatch::NONE,
        }
    }

    /// The same that measures what misses of its caches take.
    #[must_use]
    pub fn timed(self, stopwatch: Stopwatch) -> Receiver {
        Receiver { stopwatch, ..self }
    }

    /// Returns true for a sender of which everything stays in the caches.
    fn is_pinned(&mut self, name: Name) -> bool {
        self.senders.peek(name).is_some_and(|sender| sender.known.pinned)
    }

    fn answer(&mut self, now: Time, peer: PeerId, kind: AcknowledgementKind, heard_from: Option<Place>) {
        let allowed = heard_from.is_none() || self.answers.take(now);
        if allowed && self.events.len() < EVENTS {
            let acknowledgement = Acknowledgement(kind);
            self.events.push_back(ReceiverEvent::Answer { peer, acknowledgement, heard_from });
        }
    }

    fn push(&mut self, event: ReceiverEvent) {
        self.events.push_back(event);
    }

    /// The packet behind a header that had a key did not open with it.
    pub fn forged(&mut self) {
        self.refusals.count(Refusal::Forged);
    }

    /// What is to be done next.
    pub fn poll_event(&mut self) -> Option<ReceiverEvent> {
        self.events.pop_front()
    }

    /// When [`Receiver::expire`] is to be called.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        let key = self.expiries.first().map(|(at, ..)| Deadline { at: *at, why: "packet key expires" });
        let waits = self.lookups.values().filter_map(|waiting| waiting.since).min();
        let waits = waits.map(|since| Deadline { at: since + WAIT, why: "look-up of a sender" });
        let stalled =
            self.stalled.first().map(|(at, _)| Deadline { at: *at, why: "key packet did not come" });
        Deadline::earliest(Deadline::earliest(key, waits), stalled)
    }

    /// How the caches did, and what was refused.
    #[must_use]
    pub fn counts(&self) -> ReceiverCounts {
        ReceiverCounts {
            packet_keys: self.packet_keys,
            epoch_keys: self.epoch_keys.counts(),
            secrets: self.secrets.counts(),
            daily_secrets: self.daily.counts(),
            senders: self.senders.counts(),
            unknown_names: self.unknown.counts(),
            refusals: self.refusals,
        }
    }

    /// The Kij of a sender that is known, for packets to it too.
    pub fn secret(&mut self, own: &NodeKeys, key: &crate::PublicKey) -> Option<&Kij> {
        let name = key_name(key);
        let entry = (name, self.is_pinned(name));
        let agree = || Kij::agree(&own.identity, key).ok_or(());
        self.secrets.ensure(entry, &mut self.stopwatch, agree).ok()?;
        self.secrets.peek(name).map(|kij| &*kij)
    }
}

#[cfg(test)]
mod tests;
