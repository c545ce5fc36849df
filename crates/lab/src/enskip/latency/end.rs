//! A node around the real state and real ESP, with one peer: what a daemon would do, on one thread, with marks and cards on disk.
//!
//! `outward` sends, `learning` finds cards, `marks` has the files of marks.

mod learning;
mod marks;
mod outward;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_clock::Random;
use strait_ipsec::wrap::Inside;
use strait_ipsec::{HeaderChange, InboundSa, KeyPacketBeside, OutboundSa, Payloads, PeerId};
use strait_keying::PublicKey;
use strait_keying::sessionless::{
    Acknowledged, Delivery, NodeKeys, Now, Protection, Receiver, ReceiverCounts, ReceiverEvent,
    ReceiverSettings, SendMark, Sender, Verdict,
};
use strait_wire::sessionless::{ACKNOWLEDGEMENT_SUBTYPE, Acknowledgement, Name};
use strait_wire::{Esn, Protocol, Spi, demux};

use super::cards::CardFolder;
use marks::MarkFile;

/// The other node has this number at both.
const PEER: PeerId = PeerId(1);
/// Bytes of a datagram, at most: with cards it is no more than a frame.
const DATAGRAM_MAX: usize = 2048;

/// How packets are protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PingSettings {
    /// Crypt and MAC.
    pub(super) protection: Protection,
    /// Whether the secret of a key packet is in keys.
    pub(super) hybrid: bool,
    /// Whether marks are waited for until they are on disk, or are the kernel's when it has them.
    pub(super) durable: bool,
}

/// Where a node is, and whom it knows of.
#[derive(Clone)]
pub(super) struct Place {
    /// Its socket.
    pub(super) socket: Arc<UdpSocket>,
    /// The other's address.
    pub(super) to: SocketAddr,
    /// The other's name.
    pub(super) peer: Name,
    /// Who has cards that this node has not.
    pub(super) directory: SocketAddr,
}

/// What a node waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Waited {
    /// For marks on disk.
    pub(super) marks: Duration,
    /// For cards on disk.
    pub(super) cards: Duration,
    /// For the directory.
    pub(super) directory: Duration,
}

/// What was asked of caches and disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Cards read from disk.
    pub(super) cards: u64,
    /// Cards that came from the directory.
    pub(super) fetched: u64,
    /// Marks written.
    pub(super) marks: u64,
    /// Packet keys begun.
    pub(super) keys: u64,
}

/// A key of this node.
#[derive(Debug)]
struct Out {
    first: Esn,
    /// What goes beside its first packets, where the secret of a key packet is in it.
    key_packet: Option<KeyPacketBeside>,
    sa: OutboundSa,
}

/// The other node, as far as this one knows it.
#[derive(Debug)]
struct Known {
    key: PublicKey,
    sender: Sender,
    out: Option<Out>,
    inbound: BTreeMap<Spi, InboundSa>,
    used: u64,
}

/// See the head of this module.
pub(super) struct PingEnd {
    own: Arc<NodeKeys>,
    settings: PingSettings,
    place: Place,
    cards: CardFolder,
    marks: [MarkFile; 2],
    random: Random,
    receiver: Receiver,
    mark: SendMark,
    known: Option<Known>,
    answers: Vec<Acknowledgement>,
    pub(super) waited: Waited,
    pub(super) asked: Asked,
}

impl PingEnd {
    /// A node that knows nothing, with an empty folder.
    pub(super) fn new(
        own: Arc<NodeKeys>,
        settings: PingSettings,
        place: Place,
        folder: &Path,
        random: Random,
    ) -> io::Result<PingEnd> {
        let marks = [MarkFile::open(&folder.join("send"))?, MarkFile::open(&folder.join("receive"))?];
        Ok(PingEnd {
            own,
            settings,
            place,
            cards: CardFolder::new(folder),
            mark: SendMark::new(marks[0].value),
            marks,
            random,
            receiver: Receiver::new(&ReceiverSettings::default()),
            known: None,
            answers: Vec::new(),
            waited: Waited::default(),
            asked: Asked::default(),
        })
    }

    /// Starts again with what is on disk.
    pub(super) fn restart(&mut self) {
        self.receiver = Receiver::new(&ReceiverSettings::default());
        self.mark = SendMark::new(self.marks[0].value);
        self.known = None;
        self.answers.clear();
    }

    /// The other's card is to come from the disk itself.
    pub(super) fn forget_pages(&self) -> io::Result<()> {
        self.cards.forget_pages(self.place.peer)
    }

    /// How its caches did since it was started.
    pub(super) fn counts(&self) -> ReceiverCounts {
        self.receiver.counts()
    }

    /// Time has passed: what is too old is forgotten.
    pub(super) fn time_passes(&mut self, now: Now) -> io::Result<()> {
        self.receiver.expire(now.time);
        self.events().map(drop)
    }

    /// Waits for datagrams until one brings a payload.
    pub(super) fn receive(&mut self, now: Now) -> io::Result<Vec<u8>> {
        loop {
            if let Some(payload) = self.hear(now)? {
                return Ok(payload);
            }
        }
    }

    /// Waits for a datagram; gives the payload that it brought, if it did.
    pub(super) fn hear(&mut self, now: Now) -> io::Result<Option<Vec<u8>>> {
        let mut datagram = [0; DATAGRAM_MAX];
        let (len, from) = self.place.socket.recv_from(&mut datagram)?;
        self.take(now, from, &mut datagram[..len])
    }

    fn take(&mut self, now: Now, from: SocketAddr, datagram: &mut [u8]) -> io::Result<Option<Vec<u8>>> {
        let mut delivered = None;
        match demux::classify(datagram) {
            demux::DatagramKind::Sessionless => match self.receiver.look(now, &self.own, from, datagram) {
                Verdict::Known { spi, payload_at, .. } => {
                    delivered = self.open(now, spi, &mut datagram[payload_at..], true)?;
                }
                Verdict::New(candidate) => {
                    let spec = candidate.association(Payloads::STANDARD);
                    let sa = InboundSa::new(&spec).beginning(candidate.first, candidate.floor);
                    let (at, spi) = (candidate.payload_at(), candidate.spi);
                    let known = self.known.as_mut().ok_or_else(|| broken("no card"))?;
                    known.inbound.insert(spi, sa);
                    let inside = opened(known, spi, &mut datagram[at..])?;
                    self.receiver.bind(now, *candidate);
                    delivered = self.deliver(now, spi, inside, &datagram[at..], true)?;
                }
                Verdict::KeyPacket(waited) => {
                    for mut waiting in waited {
                        let brought = self.take(now, waiting.from.remote, &mut waiting.bytes)?;
                        delivered = delivered.or(brought);
                    }
                }
                Verdict::Waits => {}
                Verdict::Refused(why) => return Err(broken(&format!("a datagram is refused: {why:?}"))),
            },
            demux::DatagramKind::Esp => {
                let spi = datagram.first_chunk().map(|spi| Spi(u32::from_be_bytes(*spi)));
                let spi = spi.ok_or_else(|| broken("a datagram that is too short"))?;
                delivered = self.open(now, spi, datagram, false)?;
            }
            _ => return Err(broken("a datagram of no kind")),
        }
        for name in self.events()? {
            for mut waiting in self.learn(name)? {
                let brought = self.take(now, waiting.from.remote, &mut waiting.bytes)?;
                delivered = delivered.or(brought);
            }
        }
        Ok(delivered)
    }

    fn open(&mut self, now: Now, spi: Spi, packet: &mut [u8], header: bool) -> io::Result<Option<Vec<u8>>> {
        let known = self.known.as_mut().ok_or_else(|| broken("no card"))?;
        let inside = opened(known, spi, packet)?;
        self.deliver(now, spi, inside, packet, header)
    }

    /// A packet that was authentic: its payload, once the mark is written, or nothing where it is an acknowledgement.
    fn deliver(
        &mut self,
        now: Now,
        spi: Spi,
        inside: Inside,
        packet: &[u8],
        header: bool,
    ) -> io::Result<Option<Vec<u8>>> {
        let received = self.receiver.received(now, PEER, spi, inside.esn, header);
        let received = received.map_err(|why| refused("take a packet", &why))?;
        if let Delivery::AfterPersisted(mark) = received.delivery {
            // Look-ups that the events hold cannot come from a packet of a sender that is known.
            self.events()?;
            if self.marks[1].value < mark {
                return Err(broken("a mark is not written"));
            }
        }
        let payload = &packet[inside.at..inside.end];
        if inside.next != Protocol::AGGFRAG || payload.first() != Some(&ACKNOWLEDGEMENT_SUBTYPE) {
            return Ok(Some(payload.to_vec()));
        }
        let said = Acknowledgement::parse(payload).map_err(|_| broken("an acknowledgement is malformed"))?;
        if let Some(Known { sender, out: Some(out), .. }) = &mut self.known
            && let Acknowledged::Header(_, change) = sender.acknowledge(said)
        {
            out.sa.change_header(change, now.time);
            if let (HeaderChange::KeyPacketTaken, Some(beside)) = (change, &mut out.key_packet) {
                beside.schedule.taken();
            }
        }
        Ok(None)
    }

    /// Does what the receiver asks for; gives the names that are to be looked up.
    fn events(&mut self) -> io::Result<Vec<Name>> {
        let mut names = Vec::new();
        while let Some(event) = self.receiver.poll_event() {
            match event {
                ReceiverEvent::Persist { peer, mark } => {
                    let start = Instant::now();
                    self.marks[1].write(mark, self.settings.durable)?;
                    self.waited.marks += start.elapsed();
                    self.asked.marks += 1;
                    self.receiver.persisted(peer, mark);
                }
                ReceiverEvent::Answer { acknowledgement, .. } => self.answers.push(acknowledgement),
                ReceiverEvent::Expired { spi, .. } => {
                    self.known.as_mut().and_then(|known| known.inbound.remove(&spi));
                }
                ReceiverEvent::LookUp(name) => names.push(name),
            }
        }
        Ok(names)
    }
}

/// Opens a packet of an association that is known by its SPI.
fn opened(known: &mut Known, spi: Spi, packet: &mut [u8]) -> io::Result<Inside> {
    let sa = known.inbound.get_mut(&spi).ok_or_else(|| broken("a packet of no association"))?;
    let whole = Inside::untouched(0, packet.len(), Protocol::ESP);
    sa.open(packet, whole).map_err(|why| broken(&format!("a packet does not open: {why:?}")))
}

fn broken(what: &str) -> io::Error {
    io::Error::other(what.to_owned())
}

fn refused(doing: &str, why: &dyn std::error::Error) -> io::Error {
    io::Error::other(format!("cannot {doing}: {why}"))
}
