//! A hub with many peers that have no session: memory, and how many new packet keys it takes and begins in a second. The hub is the
//! core without I/O: its receiver, its senders, and their associations.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use strait_clock::{Random, Time};
use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::wrap::{Head, Inside};
use strait_ipsec::{InboundSa, OutboundSa, Payloads, PeerId};
use strait_keying::PrivateKey;
use strait_keying::sessionless::{
    Compression, EpochLength, Kij, KijAlgorithm, KnownSender, NodeKeys, Now, OutboundKey, PacketAlgorithms,
    PacketKeyLimits, Protection, Receiver, ReceiverEvent, ReceiverSettings, ReturnPath, SendMark, Sender,
    SenderSettings, Verdict, WallTime,
};
use strait_lab::measure::{RunValues, ThreadMoment, settle};
use strait_testbed::{interrupt, sample};
use strait_wire::sessionless::Name;
use strait_wire::{Protocol, Spi, Tos};

use crate::error::Error;
use crate::report::{BenchSection, progress};
use crate::stage::BenchSetup;
use crate::target::Target;

/// MiB, and new packet keys a second.
const MEMORY: Target = Target::AtMost(512.0);
const NEW_KEYS: Target = Target::AtLeast(5000.0);
const PEERS: u32 = 10_000;
/// Bytes of a packet's payload: a ping.
const PAYLOAD: usize = 84;
/// RFC 5737's addresses for documentation.
const FROM: ([u8; 4], u16) = ([192, 0, 2, 1], 51820);
/// Longer than a packet key lives.
const NEXT_KEY: Duration = Duration::from_secs(61);
/// Noon of some day in 2026, in seconds since 1970: in the middle of an epoch.
const BEGIN: u64 = 1_790_000_000 / 3600 * 3600 + 60;
/// What is measured, a row each.
const ROWS: [&str; 6] = [
    "memory of the hub, MiB",
    "first packet of a peer, Kij unknown: a second",
    "first packet of a key, Kij known: a second",
    "next packet with the same header: a second",
    "first packet to a peer, Kij unknown: a second",
    "first packet of a key to a peer, Kij known: a second",
];

/// A peer, as the hub's other end.
struct Remote {
    own: NodeKeys,
    kij: Kij,
    sender: Sender,
    mark: SendMark,
    used: u64,
    /// Its newest key.
    key: Option<OutboundSa>,
}

/// The hub, and the moment.
struct Hub {
    own: NodeKeys,
    receiver: Receiver,
    inbound: BTreeMap<Spi, InboundSa>,
    senders: Vec<Sender>,
    outbound: Vec<Option<OutboundSa>>,
    mark: SendMark,
    used: u64,
    at: Duration,
}

pub(super) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (runs, peers) = setting.effort.pick((5, PEERS), (2, 1000));
    let title = format!(
        "a hub with {peers} peers without sessions, the core without I/O, one core's time, {runs} runs, median (min-max)"
    );
    let mut section = BenchSection::new("sessionless: peers", title, &["hub"]);
    section.notes.push(
        "memory that is the process's own (RssAnon), as it grows from a hub without peers to one that has received from and sent to all, \
         in the first run; a mark counts as written at once; peers in random order"
            .to_owned(),
    );
    let mut values: [RunValues; ROWS.len()] = Default::default();
    for run in 1..=runs {
        section.before.push(settle()?);
        let measured = measure(peers, u64::try_from(run).unwrap_or(0))?;
        // What a run frees, the next one has without asking the system for it.
        let skipped = usize::from(run > 1);
        for ((values, value), name) in values.iter_mut().zip(measured).zip(ROWS).skip(skipped) {
            progress(section.name, run, name, value, "");
            values.push(value);
        }
    }
    section.judge(format!("memory with {peers} peers, MiB"), values[0].clone(), MEMORY);
    section.judge("new keys of peers, Kij known, a second", values[2].clone(), NEW_KEYS);
    section.judge("new keys to peers, Kij known, a second", values[5].clone(), NEW_KEYS);
    for (row, values) in ROWS.into_iter().zip(values) {
        section.row(row, [values]);
    }
    Ok(section)
}

fn measure(peers: u32, seed: u64) -> Result<[f64; ROWS.len()], Error> {
    let mut random = Random::new(sample::DEFAULT_SEED.wrapping_add(seed));
    let identity = |number: u32| {
        let mut seed = [0x5a; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        PrivateKey::generate(&seed)
    };
    let hub = identity(u32::MAX);
    let public = hub.public();
    // All that others have is there before the hub is, and until it is measured.
    let mut remotes = Vec::new();
    for number in 0..peers {
        remotes.push(Remote::new(identity(number), &public, number)?);
    }
    let keys: Vec<_> = remotes.iter().map(|remote| remote.own.identity.public()).collect();
    let mut order: Vec<u32> = (0..peers).collect();
    shuffle(&mut order, &mut random);
    let mut datagrams = Vec::with_capacity(order.len());
    for number in &order {
        datagrams.push(remotes[*number as usize].datagram(now(Duration::ZERO))?);
    }
    let before = own_memory()?;
    let mut hub = Hub::new(hub, &keys);
    let first = hub.take_all(&mut datagrams)?;
    let first_out = hub.send_all(&order, &keys)?;
    let memory = (own_memory()? - before) / 1024.0;
    interrupt::check()?;
    // The same keys again, with their headers.
    let mut datagrams = Vec::with_capacity(order.len());
    for number in &order {
        datagrams.push(remotes[*number as usize].datagram(now(hub.at))?);
    }
    let same = hub.take_all(&mut datagrams)?;
    hub.at = NEXT_KEY;
    shuffle(&mut order, &mut random);
    let mut datagrams = Vec::with_capacity(order.len());
    for number in &order {
        datagrams.push(remotes[*number as usize].datagram(now(hub.at))?);
    }
    let next = hub.take_all(&mut datagrams)?;
    let next_out = hub.send_all(&order, &keys)?;
    let rate = |took: Duration| f64::from(peers) / took.as_secs_f64();
    Ok([memory, rate(first), rate(next), rate(same), rate(first_out), rate(next_out)])
}

impl Remote {
    fn new(identity: PrivateKey, hub: &strait_keying::PublicKey, number: u32) -> Result<Remote, Error> {
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
    fn datagram(&mut self, now: Now) -> Result<Vec<u8>, Error> {
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
    fn new(identity: PrivateKey, keys: &[strait_keying::PublicKey]) -> Hub {
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
    fn take_all(&mut self, datagrams: &mut [Vec<u8>]) -> Result<Duration, Error> {
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
    fn send_all(&mut self, order: &[u32], keys: &[strait_keying::PublicKey]) -> Result<Duration, Error> {
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

fn known(peer: PeerId, key: strait_keying::PublicKey) -> KnownSender {
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

fn now(since: Duration) -> Now {
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

fn shuffle(order: &mut [u32], random: &mut Random) {
    for at in (1..order.len()).rev() {
        let other = usize::try_from(random.below(at as u64 + 1)).unwrap_or(0);
        order.swap(at, other);
    }
}

/// Memory of this process that is its own, in KiB.
fn own_memory() -> Result<f64, Error> {
    let status =
        fs::read_to_string("/proc/self/status").map_err(Error::doing("read this process's status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
    number.ok_or_else(|| wrong("RssAnon"))
}

fn wrong(what: &str) -> Error {
    Error::Silent { what: "the hub's core", way: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_hub_takes_and_sends_all() {
        let values = measure(20, 1).unwrap();
        assert!(values[1..].iter().all(|rate| *rate > 0.0), "{values:?}");
    }
}
