//! The sender's state for one peer: its packet key, when that is replaced, and what the peer has acknowledged.

use strait_clock::Time;
use strait_ipsec::{
    HeaderChange, KeyPacketBeside, KeyPacketSchedule, OutboundHeader, Payloads, PeerId, Reserve, ReturnPath,
    SaSpec,
};
use strait_wire::sessionless::{
    Acknowledgement, AcknowledgementKind, CHECK_LEN, Header, KeyPacket, Name, TAG_LEN, WRAPPED_LEN,
};
use strait_wire::{Esn, Protocol, Spi};

use super::algorithms::{KijAlgorithm, PacketAlgorithms, with_daily_keys};
use super::clock::{EpochLength, Now};
use super::marks::{CannotSend, SEND_SLACK, SendMark};
use super::node_keys::{CheckKey, KEM_ID, KemPublic, NodeKeys};
use super::packet_key::{PacketKey, PacketKeyLimits};
use super::shared::{Direction, EpochSecret, Kij};
use crate::keystream::Keystream;
use crate::message::SPIS;

/// What a sender is told of one peer.
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// The peer.
    pub peer: PeerId,
    /// Whether the peer answers.
    pub path: ReturnPath,
    /// How packet keys are wrapped.
    pub kij: KijAlgorithm,
    /// How packets are protected.
    pub algorithms: PacketAlgorithms,
    /// What the peer takes, as its card says.
    pub payloads: Payloads,
    /// How much one packet key carries.
    pub limits: PacketKeyLimits,
    /// How long an epoch of this node is, as its own card says.
    pub epoch: EpochLength,
    /// The peer's ML-KEM key, if its secret is to be in Kijn.
    pub kem: Option<KemPublic>,
    /// Whether headers name the receiver, for what stands in front of several.
    pub destination: Name,
}

/// A packet key that a sender has begun.
#[derive(Debug)]
pub struct OutboundKey {
    /// The association for it.
    pub association: SaSpec,
    /// The SPI.
    pub spi: Spi,
    /// The number of its first packet.
    pub first: Esn,
    /// The numbers that may be used now; raised as the mark on disk is.
    pub reserve: Reserve,
    /// What goes in front of its packets, and the key packet beside them.
    pub header: OutboundHeader,
    /// Nothing is sealed with it from then on.
    pub expires: Time,
}

/// What an acknowledgement changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// Nothing.
    Nothing,
    /// Something for the association of the key with this SPI.
    Header(Spi, HeaderChange),
    /// A new key is to be begun: the peer refuses the numbers of this one.
    BeginAgain,
    /// The peer cannot open keys of this epoch, since it lacks a key of the day.
    NoDailyKey(u32),
}

#[derive(Debug)]
struct CurrentKey {
    spi: Spi,
    first: u64,
    epoch: u32,
    began: Time,
    reserve: Reserve,
}

#[derive(Debug)]
struct EpochPacket {
    epoch: u32,
    secret: EpochSecret,
    bytes: Box<[u8]>,
    taken: bool,
}

impl EpochPacket {
    /// It as the association of a key has it.
    fn beside(&self, path: ReturnPath) -> KeyPacketBeside {
        let mut schedule = KeyPacketSchedule::new(path);
        if self.taken {
            schedule.taken();
        }
        KeyPacketBeside { bytes: self.bytes.clone(), schedule }
    }
}

/// See the head of this module.
#[derive(Debug)]
pub struct Sender {
    settings: SenderSettings,
    check: CheckKey,
    current: Option<CurrentKey>,
    key_packet: Option<EpochPacket>,
    /// Numbers up to here are refused by the peer.
    refused: u64,
    stream: Keystream,
}

impl Sender {
    /// A sender to the holder of `peer`; `seed` is 32 bytes of the system's randomness that serve nothing else.
    #[must_use]
    pub fn new(settings: SenderSettings, peer: &crate::PublicKey, seed: &[u8; 32]) -> Sender {
        let settings = SenderSettings { limits: settings.limits.bounded(), ..settings };
        let stream = Keystream::new(seed, "sessionless");
        Sender { settings, check: CheckKey::of(peer), current: None, key_packet: None, refused: 0, stream }
    }

    /// Forgets the key and the secret of the epoch; the next are made from `seed`, as in [`Sender::new`].
    pub(crate) fn renew(&mut self, seed: &[u8; 32]) {
        (self.current, self.key_packet) = (None, None);
        self.stream = Keystream::new(seed, "sessionless");
    }

    /// Whether a key is to be begun before the next packet: there is none, it is too old, its epoch is over, or it carried so many
    /// `packets` and `bytes` that it is used up.
    #[must_use]
    pub fn is_due(&self, now: Now, packets: u64, bytes: u64) -> bool {
        self.current.as_ref().is_none_or(|key| {
            let limits = &self.settings.limits;
            let used_up = packets >= limits.packets || bytes >= limits.bytes;
            used_up
                || now.time.since(key.began) >= limits.life
                || key.epoch != self.settings.epoch.at(now.wall)
                || key.first <= self.refused
        })
    }

    /// Begins a key. `used` is the last number that was sent to this peer, 0 for none. `kij` is that of the day on which the epoch begins
    /// where daily keys are used.
    ///
    /// # Errors
    /// [`CannotSend`]; nothing has changed then, but for the mark that is to be written.
    pub fn begin(
        &mut self,
        now: Now,
        own: &NodeKeys,
        kij: &Kij,
        mark: &mut SendMark,
        used: u64,
    ) -> Result<OutboundKey, CannotSend> {
        let settings = &self.settings;
        let numbers = settings.algorithms.numbers(settings.kij).ok_or(CannotSend::NoSuchAlgorithm)?;
        let numbers = if kij.day().is_some() { with_daily_keys(numbers) } else { numbers };
        // A receiver's mark is ahead of what was sent by its slack; one that is further ahead is not believed.
        let believed = now.wall.0.max(used).saturating_add(2 * SEND_SLACK);
        if self.refused > believed {
            return Err(CannotSend::PeerMarkAhead { ahead_us: self.refused - now.wall.0 });
        }
        let epoch = settings.epoch.at(now.wall);
        let first = Esn(mark.begin(now.wall, used.max(self.refused))?);
        self.make_key_packet(epoch, own, kij)?;
        let settings = &self.settings;
        let spi = spi(&mut self.stream);
        let key = PacketKey::from_bytes(self.stream.next_block());
        let secret = self.key_packet.as_ref().map(|packet| &packet.secret);
        let kijn = kij.epoch_key(Direction::Outbound, settings.kij, epoch, secret);
        let mut header = Header {
            next: Protocol::ESP,
            source: own.name(),
            destination: settings.destination,
            answer: settings.path == ReturnPath::Answers,
            hybrid: secret.is_some(),
            algorithms: numbers,
            epoch,
            spi,
            first,
            wrapped: [0; WRAPPED_LEN],
            check: [0; CHECK_LEN],
        };
        let bound = emitted(&header);
        header.wrapped = kijn.wrap(&key, spi, first, bound.get(..header.bound_len()).unwrap_or_default());
        let bytes = emitted(&header);
        header.check = self.check.sign(bytes.get(..header.wire_len() - CHECK_LEN).unwrap_or_default());
        let last = first.0.saturating_add(settings.limits.packets - 1);
        let reserve = Reserve::new(first.0, last.min(mark.limit()));
        let began = now.time;
        self.current = Some(CurrentKey { spi, first: first.0, epoch, began, reserve: reserve.clone() });
        let protection = settings.algorithms.protection;
        let association =
            key.association(settings.peer, spi, protection, settings.payloads, self.stream.next_u64());
        Ok(OutboundKey {
            association,
            spi,
            first,
            reserve,
            header: OutboundHeader {
                bytes: emitted(&header).into(),
                path: settings.path,
                key_packet: self.key_packet.as_ref().map(|packet| packet.beside(settings.path)),
            },
            expires: began + settings.limits.life,
        })
    }

    /// Lets the key use more numbers, as far as `mark` and its own limit go; the key used `used` last.
    ///
    /// # Errors
    /// [`CannotSend::NotPersisted`] when the mark is to be written for that.
    pub fn reserve(&mut self, mark: &mut SendMark, used: u64) -> Result<(), CannotSend> {
        let Some(key) = &self.current else { return Ok(()) };
        let reserved = mark.reserve(used.saturating_add(1));
        key.reserve.raise(key.first.saturating_add(self.settings.limits.packets - 1).min(mark.limit()));
        reserved
    }

    /// Takes what the peer acknowledged, in an authentic packet of its own.
    pub fn acknowledge(&mut self, acknowledgement: Acknowledgement) -> Acknowledged {
        let current = self.current.as_ref();
        match acknowledgement.0 {
            AcknowledgementKind::Bound { spi, .. } if current.is_some_and(|key| key.spi == spi) => {
                Acknowledged::Header(spi, HeaderChange::Bound)
            }
            AcknowledgementKind::BelowMark { spi, mark }
                if current.is_some_and(|key| key.spi == spi && key.first <= mark.0) =>
            {
                self.refused = self.refused.max(mark.0);
                Acknowledged::BeginAgain
            }
            AcknowledgementKind::KeyPacketTaken { epoch } => self.key_packet_said(epoch, true),
            AcknowledgementKind::KeyPacketWanted { epoch } => self.key_packet_said(epoch, false),
            AcknowledgementKind::DailyKeyUnknown { epoch }
                if current.is_some_and(|key| key.epoch == epoch) =>
            {
                Acknowledged::NoDailyKey(epoch)
            }
            AcknowledgementKind::Bound { .. }
            | AcknowledgementKind::BelowMark { .. }
            | AcknowledgementKind::DailyKeyUnknown { .. } => Acknowledged::Nothing,
        }
    }

    fn key_packet_said(&mut self, epoch: u32, taken: bool) -> Acknowledged {
        let packet = self.key_packet.as_mut().filter(|packet| packet.epoch == epoch);
        let Some((packet, key)) = packet.zip(self.current.as_ref()) else { return Acknowledged::Nothing };
        packet.taken = taken;
        let change = if taken { HeaderChange::KeyPacketTaken } else { HeaderChange::KeyPacketWanted };
        Acknowledged::Header(key.spi, change)
    }

    /// Encapsulates once an epoch.
    fn make_key_packet(&mut self, epoch: u32, own: &NodeKeys, kij: &Kij) -> Result<(), CannotSend> {
        let Some(kem) = &self.settings.kem else { return Ok(()) };
        if self.key_packet.as_ref().is_some_and(|packet| packet.epoch == epoch) {
            return Ok(());
        }
        let (ciphertext, secret) = kem.encapsulate().map_err(|_| CannotSend::BadPeerKey)?;
        let mut packet = KeyPacket {
            kem: KEM_ID,
            source: own.name(),
            destination: self.settings.destination,
            answer: self.settings.path == ReturnPath::Answers,
            epoch,
            ciphertext,
            tag: [0; TAG_LEN],
            check: [0; CHECK_LEN],
        };
        let mut bytes = vec![0; packet.wire_len()];
        let _ = packet.emit(&mut bytes);
        let bound = bytes.get(..packet.bound_len()).unwrap_or_default();
        packet.tag = kij.key_packet_tag(Direction::Outbound, bound);
        let _ = packet.emit(&mut bytes);
        packet.check = self.check.sign(bytes.get(..packet.wire_len() - CHECK_LEN).unwrap_or_default());
        let _ = packet.emit(&mut bytes);
        self.key_packet = Some(EpochPacket { epoch, secret, bytes: bytes.into(), taken: false });
        Ok(())
    }
}

/// The bytes of a header.
fn emitted(header: &Header) -> Vec<u8> {
    let mut bytes = vec![0; header.wire_len()];
    // The buffer has the length that the header says.
    let _ = header.emit(&mut bytes);
    bytes
}

/// A random SPI of the range that tells ESP from the other datagrams of the port.
fn spi(stream: &mut Keystream) -> Spi {
    let (low, high) = (u64::from(*SPIS.start()), u64::from(*SPIS.end()));
    let number = low + stream.next_u64() % (high - low + 1);
    Spi(u32::try_from(number).unwrap_or(*SPIS.start()))
}
