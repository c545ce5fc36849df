//! A node of the simulation: what a daemon would do, in some lines, around the real state and real ESP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use strait_crypto::{Suite, SuiteSet};
use strait_ipsec::wrap::{Head, Inside, NotSealed};
use strait_ipsec::{HeaderChange, InboundSa, KeyPacketBeside, OutboundSa, Payloads, PeerId};
use strait_wire::sessionless::{ACKNOWLEDGEMENT_SUBTYPE, Acknowledgement, Name};
use strait_wire::{Esn, Protocol, Spi, Tos, demux};

use super::super::*;
use crate::PrivateKey;

pub(super) const FROM: &str = "192.0.2.1:4500";
/// The other node has this number at both.
pub(super) const PEER: PeerId = PeerId(1);

/// What outlives a restart.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) send: u64,
    pub(super) receive: u64,
}

struct Out {
    first: Esn,
    /// As the association has it.
    key_packet: Option<KeyPacketBeside>,
    sa: OutboundSa,
}

pub(super) struct Node {
    pub(super) own: Arc<NodeKeys>,
    peer: Arc<NodeKeys>,
    sender: Sender,
    pub(super) receiver: Receiver,
    mark: SendMark,
    pub(super) disk: Disk,
    out: Option<Out>,
    inbound: BTreeMap<Spi, InboundSa>,
    pub(super) delivered: Vec<Vec<u8>>,
    pub(super) refused_to_send: Vec<CannotSend>,
    /// Datagrams with an ESP packet of no known key.
    pub(super) unknown_spi: u64,
    /// Datagrams with a header that were sent.
    pub(super) headers_sent: u64,
    pub(super) key_packets_sent: u64,
    pub(super) moves: u64,
    used: u64,
    path: ReturnPath,
    answers: Vec<Acknowledgement>,
    seed: u8,
    knows_peer: bool,
    /// The epoch of which the other said that it lacks a key of the day.
    pub(super) unknown_day: Option<u32>,
}

impl Node {
    pub(super) fn new(
        own: &Arc<NodeKeys>,
        peer: &Arc<NodeKeys>,
        path: ReturnPath,
        disk: Disk,
        seed: u8,
    ) -> Node {
        let settings = SenderSettings {
            peer: PEER,
            path,
            kij: KijAlgorithm::default(),
            algorithms: PacketAlgorithms {
                protection: Protection::Aead(Suite::Aes256Gcm),
                compression: Compression::Strait,
            },
            payloads: Payloads::STANDARD,
            limits: PacketKeyLimits::default(),
            epoch: EpochLength::default(),
            kem: peer.kem.as_ref().map(|kem| kem.public().clone()),
            destination: Name::NONE,
        };
        let sender = Sender::new(settings, &peer.identity.public(), &[seed; 32]);
        let mut node = Node {
            own: Arc::clone(own),
            peer: Arc::clone(peer),
            sender,
            receiver: Receiver::new(&ReceiverSettings::default()),
            mark: SendMark::new(disk.send),
            disk,
            out: None,
            inbound: BTreeMap::new(),
            delivered: Vec::new(),
            refused_to_send: Vec::new(),
            unknown_spi: 0,
            headers_sent: 0,
            key_packets_sent: 0,
            moves: 0,
            used: 0,
            path,
            answers: Vec::new(),
            seed,
            knows_peer: true,
            unknown_day: None,
        };
        node.know_peer();
        node
    }

    /// Two nodes' keys.
    pub(super) fn keys(seed: u8, hybrid: bool) -> Arc<NodeKeys> {
        let kem = if hybrid { Some(KemKey::generate().unwrap()) } else { None };
        Arc::new(NodeKeys::new(PrivateKey::generate(&[seed; 32]), kem))
    }

    pub(super) fn known(peer: &NodeKeys, mark: u64, hybrid: bool) -> KnownSender {
        KnownSender {
            peer: PEER,
            key: peer.identity.public(),
            names: vec![text_name("north")],
            epoch: EpochLength::default(),
            suites: SuiteSet::ALL,
            separate: false,
            hybrid,
            valid: (WallTime(0), WallTime(u64::MAX)),
            mark,
            pinned: false,
        }
    }

    fn know_peer(&mut self) -> Vec<WaitingDatagram> {
        self.receiver.know(Node::known(&self.peer, self.disk.receive, self.own.kem.is_some()))
    }

    /// Does not know the other until it is looked up.
    pub(super) fn forgets_peer(&mut self) {
        self.receiver.remove(PEER);
        self.knows_peer = false;
    }

    /// The directory has answered.
    pub(super) fn learns_peer(&mut self, now: Now) {
        self.knows_peer = true;
        for waited in self.know_peer() {
            self.receive(now, waited.bytes.to_vec());
        }
    }

    /// The process dies, and starts again with what is on disk.
    pub(super) fn restart(&mut self) {
        let delivered = std::mem::take(&mut self.delivered);
        let fresh =
            Node::new(&self.own, &self.peer, self.path, self.disk.clone(), self.seed.wrapping_add(100));
        *self = Node { delivered, ..fresh };
    }

    /// Sends one packet: nothing, or one datagram, or a key packet before it.
    pub(super) fn send(&mut self, now: Now, next: Protocol, payload: &[u8]) -> Vec<Vec<u8>> {
        let packets = self.out.as_ref().map_or(0, |out| out.sa.usage().packets());
        if (self.out.is_none() || self.sender.is_due(now, packets, 0)) && !self.begin(now) {
            return Vec::new();
        }
        let mut datagrams = Vec::new();
        let Some(out) = &mut self.out else { return datagrams };
        if let Some(beside) = &mut out.key_packet
            && beside.schedule.wants(now.time, packets)
        {
            self.key_packets_sent += 1;
            datagrams.push(beside.bytes.to_vec());
        }
        assert!(out.sa.look(now.time), "a key that has expired was replaced");
        let head = Head::Fresh(Tos(0));
        let front = out.sa.front_len(head);
        let mut esp = vec![0; out.sa.sealed_len(front, payload.len())];
        loop {
            let at = out.sa.payload_at(front);
            esp[at..at + payload.len()].copy_from_slice(payload);
            match out.sa.seal(head, &mut esp, payload.len(), next) {
                Ok(()) => break,
                Err(NotSealed::NoNumber(_)) => {
                    // What a daemon does ahead of time.
                    let _ = self.sender.reserve(&mut self.mark, self.used);
                    let mark = self.mark.take_request().expect("a mark to write");
                    self.disk.send = mark;
                    self.mark.persisted(mark);
                    self.sender.reserve(&mut self.mark, self.used).unwrap();
                }
                Err(NotSealed::Unsealable) => panic!("not sealable"),
            }
        }
        self.used = self.used.max(out.first.0 - 1) + 1;
        assert!(self.used <= self.disk.send, "no number above the mark on disk");
        self.headers_sent += u64::from(front > 0);
        out.sa.usage().note(1, 0, now.time);
        datagrams.push(esp);
        datagrams
    }

    fn begin(&mut self, now: Now) -> bool {
        let lasting = Kij::agree(&self.own.identity, &self.peer.identity.public()).unwrap();
        let epoch = EpochLength::default().at(now.wall);
        let day = Day::of_epoch(epoch, EpochLength::default()).unwrap();
        let daily =
            self.own.daily.agree(&lasting, day).filter(|_| {
                self.own.daily.policy() == DailyPolicy::Require || self.unknown_day != Some(epoch)
            });
        let kij = daily.unwrap_or(lasting);
        for _ in 0..2 {
            match self.sender.begin(now, &self.own, &kij, &mut self.mark, self.used) {
                Ok(key) => {
                    let sa = OutboundSa::new(&key.association).new_within(key.reserve).until(key.expires);
                    let key_packet = key.header.key_packet.clone();
                    self.used = key.first.0 - 1;
                    self.out =
                        Some(Out { first: key.first, key_packet, sa: sa.headed(key.header, key.first) });
                    return true;
                }
                Err(CannotSend::NotPersisted { mark }) => {
                    assert_eq!(self.mark.take_request(), Some(mark));
                    self.disk.send = mark;
                    self.mark.persisted(mark);
                }
                Err(why) => {
                    self.refused_to_send.push(why);
                    return false;
                }
            }
        }
        panic!("the mark is on disk");
    }

    /// Takes a datagram.
    pub(super) fn receive(&mut self, now: Now, mut datagram: Vec<u8>) {
        let from: SocketAddr = FROM.parse().unwrap();
        match demux::classify(&datagram) {
            demux::DatagramKind::Sessionless => match self.receiver.look(now, &self.own, from, &datagram) {
                Verdict::Known { peer, spi, payload_at } => {
                    assert_eq!(peer, PEER);
                    self.open(now, spi, &mut datagram[payload_at..], true);
                }
                Verdict::New(candidate) => {
                    let spec = candidate.association(Payloads::STANDARD);
                    let mut sa = InboundSa::new(&spec).beginning(candidate.first, candidate.floor);
                    let (at, spi) = (candidate.payload_at(), candidate.spi);
                    let packet = &mut datagram[at..];
                    let whole = Inside::untouched(0, packet.len(), Protocol::ESP);
                    if let Ok(inside) = sa.open(packet, whole) {
                        assert_eq!(inside.esn, candidate.number);
                        self.receiver.bind(now, *candidate);
                        self.inbound.insert(spi, sa);
                        self.take(now, spi, inside, &datagram[at..], true);
                    }
                }
                Verdict::KeyPacket(waited) => {
                    for waited in waited {
                        self.receive(now, waited.bytes.to_vec());
                    }
                }
                Verdict::Waits | Verdict::Refused(_) => {}
            },
            demux::DatagramKind::Esp => {
                let spi = Spi(u32::from_be_bytes(datagram[..4].try_into().unwrap()));
                if self.inbound.contains_key(&spi) {
                    self.open(now, spi, &mut datagram, false);
                } else {
                    self.unknown_spi += 1;
                }
            }
            _ => panic!("a datagram of no kind"),
        }
        self.events(now);
    }

    fn open(&mut self, now: Now, spi: Spi, packet: &mut [u8], with_header: bool) {
        let sa = self.inbound.get_mut(&spi).expect("a key that is bound has an association");
        let whole = Inside::untouched(0, packet.len(), Protocol::ESP);
        let Ok(inside) = sa.open(packet, whole) else { return };
        self.take(now, spi, inside, packet, with_header);
    }

    fn take(&mut self, now: Now, spi: Spi, inside: Inside, packet: &[u8], with_header: bool) {
        let received = self.receiver.received(now, PEER, spi, inside.esn, with_header).unwrap();
        self.moves += u64::from(received.moves);
        if let Delivery::AfterPersisted(mark) = received.delivery {
            // The disk is quick here; that it is asked before is what counts.
            self.events(now);
            assert!(self.disk.receive >= mark, "a mark that is asked for is written");
        }
        assert!(inside.esn.0 <= self.disk.receive, "nothing is delivered above the mark on disk");
        let payload = &packet[inside.at..inside.end];
        if payload.first() == Some(&ACKNOWLEDGEMENT_SUBTYPE) && inside.next == Protocol::AGGFRAG {
            match self.sender.acknowledge(Acknowledgement::parse(payload).unwrap()) {
                Acknowledged::Header(_, change) => {
                    // A key that another answer made it give up has no header to change.
                    let Some(out) = self.out.as_mut() else { return };
                    out.sa.change_header(change, now.time);
                    let schedule = out.key_packet.as_mut().map(|beside| &mut beside.schedule);
                    match change {
                        HeaderChange::KeyPacketTaken => schedule.unwrap().taken(),
                        HeaderChange::KeyPacketWanted => schedule.unwrap().wanted(),
                        HeaderChange::Bound => {}
                    }
                }
                Acknowledged::BeginAgain => self.out = None,
                Acknowledged::NoDailyKey(epoch) => {
                    self.unknown_day = Some(epoch);
                    if self.own.daily.policy() == DailyPolicy::Prefer {
                        self.out = None;
                    }
                }
                Acknowledged::Nothing => {}
            }
            return;
        }
        self.delivered.push(payload.to_vec());
    }

    fn events(&mut self, now: Now) {
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Persist { peer, mark } => {
                    self.disk.receive = mark;
                    self.receiver.persisted(peer, mark);
                }
                ReceiverEvent::Answer { acknowledgement, .. } => self.answers.push(acknowledgement),
                ReceiverEvent::Expired { spi, .. } => drop(self.inbound.remove(&spi)),
                ReceiverEvent::LookUp(_) => assert!(!self.knows_peer),
            }
        }
        self.receiver.expire(now.time);
    }

    /// What is to be answered, as datagrams.
    pub(super) fn answers(&mut self, now: Now) -> Vec<Vec<u8>> {
        let answers = std::mem::take(&mut self.answers);
        answers.into_iter().flat_map(|answer| self.send(now, Protocol::AGGFRAG, &answer.to_bytes())).collect()
    }

    pub(super) fn time_passes(&mut self, now: Now) {
        self.receiver.expire(now.time);
        self.events(now);
    }
}
