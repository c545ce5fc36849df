//! The hub and its peers: senders, receivers and associations of keys without sessions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use strait_clock::Time;
use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::wrap::{Head, Inside};
use strait_ipsec::{InboundSa, OutboundSa, Payloads, PeerId, ReturnPath};
use strait_keying::sessionless::{
    Compression, EpochLength, Kij, KijAlgorithm, KnownSender, NodeKeys, Now, OutboundKey, PacketAlgorithms,
    PacketKeyLimits, Protection, Receiver, ReceiverEvent, ReceiverSettings, SendMark, Sender, SenderSettings,
    Verdict, WallTime,
};
use strait_keying::{PrivateKey, PublicKey};
use strait_lab::measure::ThreadMoment;
use strait_wire::sessionless::Name;
use strait_wire::{Protocol, Spi, Tos};

use crate::error::Error;

/// Bytes of a packet's payload: a ping.
const PAYLOAD: usize = 84;
/// RFC 5737's addresses for documentation.
const FROM: ([u8; 4], u16) = ([192, 0, 2, 1], 51820);
/// Noon of some day in 2026, in seconds since 1970: in the middle of an epoch.
const BEGIN: u64 = 1_790_000_000 / 3600 * 3600 + 60;

/// A peer, as the hub's other end.
pub(super) struct Remote {
    pub(super) own: NodeKeys,
    kij: Kij,
    sender: Sender,
    mark: SendMark,
    used: u64,
    /// Its newest key.
    key: Option<OutboundSa>,
}

/// The hub, and the moment.
pub(super) struct Hub {
    own: NodeKeys,
    receiver: Receiver,
    inbound: BTreeMap<Spi, InboundSa>,
    senders: Vec<Sender>,
    outbound: Vec<Option<OutboundSa>>,
    mark: SendMark,
    used: u64,
    pub(super) at: Duration,
}

impl Remote {
    pub(super) fn new(identity: PrivateKey, hub: &PublicKey, number: u32) -> Result<Remote, Error> {
        let kij = Kij::agree(&identity, hub).ok_or_else(|| wrong("a secret with the hub"))?;
        let mut seed = [1; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let sender = Sender::new(settings(PeerId(0)), hub, &seed);
        // As far as it is asked for: its disk is not measured.
        let mut mark = SendMark::new(0);
        mark.persisted(u64::MAX);
        Ok(Remote { own: NodeKeys::new(identity, None), kij, sender, mark, used: 0, key: None })
    }

    /// A packet with its header.
    pub(super) fn datagram(&mut self, now: Now) -> Result<Vec<u8>, Error> {
        let packets = self.key.as_ref().map_or(0, |sa| sa.usage().packets());
        if self.sender.is_due(now, packets, 0) {
            let key = self.sender.begin(now, &self.own, &self.kij, &mut self.mark, self.used);
            let key = key.map_err(|error| wrong(&error.to_string()))?;
            self.used = key.first.0 - 1;
            self.key = Some(association(key));
        }
        let sa = self.key.as_mut().ok_or_else(|| wrong("a packet key"))?;
        self.used += 1;
        sealed(sa)
    }
}

impl Hub {
    pub(super) fn new(identity: PrivateKey, keys: &[PublicKey]) -> Hub {
        // Budgets are for what strangers cost; here the processor is measured.
        let generous = ReceiverSettings { secrets_a_second: u32::MAX / 2, ..ReceiverSettings::default() };
        let mut receiver = Receiver::new(&generous);
        let mut senders = Vec::with_capacity(keys.len());
        for (number, key) in keys.iter().enumerate() {
            let peer = PeerId(u32::try_from(number).unwrap_or(u32::MAX));
            receiver.know(known(peer, *key));
            let mut seed = [2; 32];
            seed[..4].copy_from_slice(&peer.0.to_be_bytes());
            senders.push(Sender::new(settings(peer), key, &seed));
        }
        let mut mark = SendMark::new(0);
        mark.persisted(u64::MAX);
        Hub {
            own: NodeKeys::new(identity, None),
            receiver,
            inbound: BTreeMap::new(),
            outbound: keys.iter().map(|_| None).collect(),
            senders,
            mark,
            used: 0,
            at: Duration::ZERO,
        }
    }

    /// The time that it takes to take these, one after another.
    pub(super) fn take_all(&mut self, datagrams: &mut [Vec<u8>]) -> Result<Duration, Error> {
        let start = ThreadMoment::now();
        for datagram in datagrams {
            self.take(datagram)?;
        }
        Ok(start.elapsed())
    }

    fn take(&mut self, datagram: &mut [u8]) -> Result<(), Error> {
        let now = now(self.at);
        let from = SocketAddr::from(FROM);
        let (peer, spi, number) = match self.receiver.look(now, &self.own, from, datagram) {
            Verdict::Known { peer, spi, payload_at } => {
                let sa = self.inbound.get_mut(&spi).ok_or_else(|| wrong("an association"))?;
                (peer, spi, opened(sa, &mut datagram[payload_at..])?)
            }
            Verdict::New(candidate) => {
                let spec = candidate.association(Payloads::STANDARD);
                let mut sa = InboundSa::new(&spec).beginning(candidate.first, candidate.floor);
                let (peer, spi) = (candidate.peer, candidate.spi);
                let inside = opened(&mut sa, &mut datagram[candidate.payload_at()..])?;
                let floor = candidate.floor;
                let bound = self.receiver.bind(now, *candidate).ok_or_else(|| wrong("a key that is kept"))?;
                self.inbound.insert(spi, sa.headed(bound.header, floor));
                (peer, spi, inside)
            }
            other => return Err(wrong(&format!("a packet that is taken, not {other:?}"))),
        };
        let received = self.receiver.received(now, peer, spi, number.esn, true);
        received.map_err(|error| wrong(&error.to_string()))?;
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Persist { peer, mark } => self.receiver.persisted(peer, mark),
                ReceiverEvent::Expired { spi, .. } => drop(self.inbound.remove(&spi)),
                ReceiverEvent::Answer { .. } | ReceiverEvent::LookUp(_) => {}
            }
        }
        Ok(())
    }

    /// The time that it takes to send a packet under a new key to each of these peers.
    pub(super) fn send_all(&mut self, order: &[u32], keys: &[PublicKey]) -> Result<Duration, Error> {
        let start = ThreadMoment::now();
        let now = now(self.at);
        for number in order {
            let at = *number as usize;
            let kij = self.receiver.secret(&self.own, &keys[at]).ok_or_else(|| wrong("a secret"))?;
            let key = self.senders[at].begin(now, &self.own, kij, &mut self.mark, self.used);
            let key = key.map_err(|error| wrong(&error.to_string()))?;
            self.used = key.first.0;
            let mut sa = association(key);
            std::hint::black_box(sealed(&mut sa)?);
            self.outbound[at] = Some(sa);
        }
        Ok(start.elapsed())
    }
}

/// What a peer is told of another in a file.
fn settings(peer: PeerId) -> SenderSettings {
    SenderSettings {
        peer,
        path: ReturnPath::Answers,
        kij: KijAlgorithm::default(),
        algorithms: PacketAlgorithms {
            protection: Protection::Aead(Suite::Aes128Gcm),
            compression: Compression::Strait,
        },
        payloads: Payloads::STANDARD,
        limits: PacketKeyLimits::default(),
        epoch: EpochLength::default(),
        kem: None,
        destination: Name::NONE,
    }
}

fn known(peer: PeerId, key: PublicKey) -> KnownSender {
    KnownSender {
        peer,
        key,
        names: Vec::new(),
        epoch: EpochLength::default(),
        suites: SuiteSet::ALL,
        separate: false,
        hybrid: false,
        valid: (WallTime(0), WallTime(u64::MAX)),
        mark: 0,
        pinned: false,
    }
}

pub(super) fn now(since: Duration) -> Now {
    Now { time: Time::ZERO + since, wall: WallTime::from_unix(Duration::from_secs(BEGIN) + since) }
}

fn association(key: OutboundKey) -> OutboundSa {
    let sa = OutboundSa::new(&key.association).new_within(key.reserve).until(key.expires);
    sa.headed(key.header, key.first)
}

/// A packet with its header in front, which is not acknowledged.
fn sealed(sa: &mut OutboundSa) -> Result<Vec<u8>, Error> {
    let head = Head::Fresh(Tos(0));
    let mut packet = vec![0; sa.sealed_len(sa.front_len(head), PAYLOAD)];
    sa.seal(head, &mut packet, PAYLOAD, Protocol::IPIP).map_err(|_| wrong("a sealed packet"))?;
    Ok(packet)
}

fn opened(sa: &mut InboundSa, packet: &mut [u8]) -> Result<Inside, Error> {
    let whole = Inside::untouched(0, packet.len(), Protocol::ESP);
    sa.open(packet, whole).map_err(|_| wrong("a packet that opens"))
}

pub(crate) fn wrong(what: &str) -> Error {
    Error::Silent { what: "the hub's core", way: what.to_owned() }
}
