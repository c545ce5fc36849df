//! Security associations: one direction, one key, one sequence (RFC 4301 section 4.1).

mod spec;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use strait_clock::Time;
use strait_wire::{Esn, Protocol, Spi};

use crate::ah::{AhIn, AhOut};
use crate::esp::{EspIn, EspOut};
use crate::header::{HeaderLead, InboundHeader, OutboundHeader};
use crate::layers::{Authentic, Inside};
use crate::replay::ReplayRefused;
use crate::sequence::{Numbers, Reserve};
use crate::{HistoryTerms, PeerId, Reason, RepairTerms};

pub(crate) use spec::SaId;
pub use spec::{
    AhSpec, Carrier, EspKeys, EspSpec, Fragments, IpcompSpec, IvMode, Mode, Payloads, SaSpec, SequenceNumbers,
};

/// What one SA has carried, written by the packet path and read by the key manager.
#[derive(Debug, Default)]
pub struct Usage {
    packets: AtomicU64,
    bytes: AtomicU64,
    last: AtomicU64,
}

impl Usage {
    /// Packets sealed or opened; of an outbound SA that began with number 1 also its last number.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets.load(Ordering::Relaxed)
    }

    /// Bytes sealed or opened.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// When a packet was last sealed or authentic; nothing when none was.
    #[must_use]
    pub fn last(&self) -> Option<Time> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            nanos => Some(Time::from_nanos(nanos)),
        }
    }

    /// Adds what was sealed or opened at `now`; for the one thread that owns the SA, and for simulations.
    pub fn note(&self, packets: u64, bytes: u64, now: Time) {
        // One writer: plain additions suffice and cost no locked instruction.
        self.packets.store(self.packets() + packets, Ordering::Relaxed);
        self.bytes.store(self.bytes() + bytes, Ordering::Relaxed);
        self.last.store(now.as_nanos().max(1), Ordering::Relaxed);
    }
}

/// An SA of the sender: the keys with the only counter that feeds them.
#[derive(Debug)]
pub struct OutboundSa {
    pub(crate) spi: Spi,
    pub(crate) peer: PeerId,
    pub(crate) ah: Option<AhOut>,
    pub(crate) esp: Option<EspOut>,
    pub(crate) numbers: Numbers,
    pub(crate) mode: Mode,
    pub(crate) carrier: Carrier,
    pub(crate) fragments: Fragments,
    pub(crate) payloads: Payloads,
    pub(crate) usage: Arc<Usage>,
    /// Nothing is sealed from then on.
    expires: Time,
    /// When it is to be looked at next: it expires, or a header is due.
    look_at: Time,
    /// Whether its losses are repaired.
    pub(crate) repair: RepairTerms,
    /// What its receiver keeps of earlier packets.
    pub(crate) history: HistoryTerms,
    /// Whether its receiver takes it directly behind IP as well as in UDP.
    pub(crate) direct: bool,
    /// Bytes of a header in front of the next packet.
    pub(crate) lead: usize,
    /// The header with the key of its packets, if it has one.
    pub(crate) header: Option<Box<HeaderLead>>,
    /// The number before the first.
    pub(crate) base: u64,
}

impl OutboundSa {
    /// A fresh SA whose first packet has sequence number 1 (RFC 4303 section 3.3.3).
    #[must_use]
    pub fn new(spec: &SaSpec) -> OutboundSa {
        OutboundSa {
            spi: spec.spi(),
            peer: spec.peer,
            ah: spec.ah.as_ref().map(|ah| AhOut::new(ah, spec)),
            esp: spec.esp.as_ref().map(EspOut::new),
            numbers: Numbers::new(spec.sequence),
            mode: spec.mode,
            carrier: spec.carrier,
            fragments: spec.fragments,
            payloads: spec.payloads,
            usage: Arc::default(),
            expires: Time::MAX,
            look_at: Time::MAX,
            repair: RepairTerms::Off,
            history: HistoryTerms::NONE,
            direct: false,
            lead: 0,
            header: None,
            base: 0,
        }
    }

    /// The same, with which nothing is sealed at `expires` or later: the sender sees to it itself, before the key manager can
    /// after a suspend.
    #[must_use]
    pub const fn until(mut self, expires: Time) -> OutboundSa {
        (self.expires, self.look_at) = (expires, expires);
        self
    }

    /// The same, with a header in front of its packets, whose key begins with the number `first`.
    #[must_use]
    pub fn headed(mut self, header: OutboundHeader, first: Esn) -> OutboundSa {
        self.lead = header.bytes.len();
        self.base = first.0.saturating_sub(1);
        self.header = Some(Box::new(HeaderLead::new(header, first)));
        self
    }

    /// Bytes of the header that some of its packets have in front.
    pub(crate) fn header_len(&self) -> usize {
        self.header.as_ref().map_or(0, |header| header.bytes().len())
    }

    /// Whether nothing comes back from its peer.
    pub(crate) fn is_one_way(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.is_one_way())
    }

    /// What is due at `now`: false when it has expired. A header may be due again, which the next packet has then.
    pub fn look(&mut self, now: Time) -> bool {
        self.look_at > now || self.look_closely(now)
    }

    #[cold]
    fn look_closely(&mut self, now: Time) -> bool {
        if let Some(header) = &self.header {
            self.lead = header.bytes().len();
            self.look_at = self.expires.min(header.due_at(now));
        }
        self.expires > now
    }

    /// The peer has said something of the header.
    pub fn change_header(&mut self, change: crate::HeaderChange, now: Time) {
        if let Some(header) = &mut self.header
            && header.change(change)
        {
            self.lead = 0;
            self.look_at = self.expires.min(header.due_at(now));
        }
    }

    /// The same, whose losses are repaired on these terms.
    #[must_use]
    pub const fn repaired(mut self, terms: RepairTerms) -> OutboundSa {
        self.repair = terms;
        self
    }

    /// The same, whose receiver keeps so much of earlier packets.
    #[must_use]
    pub const fn with_history(mut self, terms: HistoryTerms) -> OutboundSa {
        self.history = terms;
        self
    }

    /// The same, whose receiver takes its packets directly behind IP too, where that is agreed: protocol 50, without UDP.
    #[must_use]
    pub const fn with_direct(mut self, agreed: bool) -> OutboundSa {
        self.direct = agreed;
        self
    }

    /// The same, going on where an earlier run stopped, with no number that is not reserved.
    #[must_use]
    pub fn within(self, reserve: Reserve) -> OutboundSa {
        OutboundSa { numbers: self.numbers.within(reserve), ..self }
    }

    /// The same with a new key, whose first number is that of the reserve, and no number that is not reserved.
    #[must_use]
    pub fn new_within(self, reserve: Reserve) -> OutboundSa {
        OutboundSa { numbers: self.numbers.new_within(reserve), ..self }
    }

    /// The SPI of its outermost protocol, or 0.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// The peer at the other end.
    #[must_use]
    pub const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Its counters, to watch its limits.
    #[must_use]
    pub fn usage(&self) -> Arc<Usage> {
        Arc::clone(&self.usage)
    }
}

/// An SA of the receiver: the keys with their replay windows.
#[derive(Debug)]
pub struct InboundSa {
    pub(crate) id: SaId,
    pub(crate) spi: Spi,
    pub(crate) peer: PeerId,
    pub(crate) ah: Option<AhIn>,
    pub(crate) esp: Option<EspIn>,
    /// Where its packets come from, directly over IP.
    pub(crate) host: Option<IpAddr>,
    pub(crate) mode: Mode,
    pub(crate) payloads: Payloads,
    pub(crate) usage: Arc<Usage>,
    /// Nothing is opened from then on.
    pub(crate) expires: Time,
    /// Whether the peer is where its newest packet came from.
    pub(crate) roams: bool,
    /// Whether the upper half of 64-bit numbers is searched for.
    pub(crate) recovers: bool,
    /// Whether its losses are repaired.
    pub(crate) repair: RepairTerms,
    /// What is kept of earlier packets.
    pub(crate) history: HistoryTerms,
    /// Whether its packets may come directly behind IP as well as in UDP.
    pub(crate) direct: bool,
    /// The header that brought its key, if one did.
    pub(crate) header: Option<Box<InboundHeader>>,
}

impl InboundSa {
    /// A fresh SA that has received nothing.
    #[must_use]
    pub fn new(spec: &SaSpec) -> InboundSa {
        InboundSa {
            id: spec.id(),
            spi: spec.spi(),
            peer: spec.peer,
            ah: spec.ah.as_ref().map(|ah| AhIn::new(ah, spec)),
            esp: spec.esp.as_ref().map(|esp| EspIn::new(esp, spec.sequence)),
            host: match spec.carrier {
                Carrier::Ip { from, .. } => Some(from),
                Carrier::Udp => None,
            },
            mode: spec.mode,
            payloads: spec.payloads,
            usage: Arc::default(),
            expires: Time::MAX,
            roams: true,
            recovers: false,
            repair: RepairTerms::Off,
            history: HistoryTerms::NONE,
            direct: false,
            header: None,
        }
    }

    /// The same, whose key came in this header, and whose packets are taken above `floor`.
    #[must_use]
    pub fn headed(self, header: InboundHeader, floor: Esn) -> InboundSa {
        let id = if header.bound { SaId::Udp(self.spi) } else { SaId::Keyed(self.peer, self.spi) };
        let first = header.first;
        InboundSa { id, header: Some(Box::new(header)), ..self.beginning(first, floor) }
    }

    /// The number of an ESP packet that opens with this association, which is left as it is.
    #[must_use]
    pub fn try_open(mut self, packet: &[u8]) -> Option<Esn> {
        let mut bytes = packet.to_vec();
        let inside = Inside::untouched(0, bytes.len(), Protocol::ESP);
        self.open(&mut bytes, inside).ok().map(|inside| inside.esn)
    }

    /// The same, which searches for the upper half of 64-bit sequence numbers where that was lost (RFC 4303 appendix A3): for
    /// keys that outlive the receiver.
    #[must_use]
    pub const fn recovering(mut self) -> InboundSa {
        self.recovers = true;
        self
    }

    /// The same, whose numbers begin with `first` and are refused up to and with `floor`.
    #[must_use]
    pub fn beginning(mut self, first: Esn, floor: Esn) -> InboundSa {
        let ah = self.ah.as_mut().map(|ah| &mut ah.received);
        let esp = self.esp.as_mut().map(|esp| &mut esp.received);
        ah.into_iter().chain(esp).for_each(|received| received.begin(first.0, floor.0));
        self
    }

    /// The same, whose peer stays where it is whatever address its packets come from: for keys that outlive the replay window,
    /// with which a packet that was recorded before a restart is new after it.
    #[must_use]
    pub const fn fixed(mut self) -> InboundSa {
        self.roams = false;
        self
    }

    /// The same, whose losses are repaired on these terms.
    #[must_use]
    pub const fn repaired(mut self, terms: RepairTerms) -> InboundSa {
        self.repair = terms;
        self
    }

    /// The same, which keeps so much of earlier packets.
    #[must_use]
    pub const fn with_history(mut self, terms: HistoryTerms) -> InboundSa {
        self.history = terms;
        self
    }

    /// The same, whose packets may come directly behind IP too, where that is agreed.
    #[must_use]
    pub const fn with_direct(mut self, agreed: bool) -> InboundSa {
        self.direct = agreed;
        self
    }

    /// The same, with which nothing is opened at `expires` or later.
    #[must_use]
    pub const fn until(mut self, expires: Time) -> InboundSa {
        self.expires = expires;
        self
    }

    /// Takes a payload with this number that came inside of another datagram, for which `proof` vouches; false when it had come.
    pub(crate) fn admit_repeated(&mut self, number: Esn, proof: Option<Authentic>) -> Result<bool, Reason> {
        let (esp, proof) = self.esp.as_mut().zip(proof).ok_or(Reason::Unprotected)?;
        match esp.received.commit_repeated(number, &proof) {
            Ok(()) => Ok(true),
            Err(ReplayRefused::Duplicate) => Ok(false),
            Err(ReplayRefused::TooOld) => Err(Reason::TooOld),
        }
    }

    /// The SPI of its outermost protocol, or 0.
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// Whom it comes from.
    #[must_use]
    pub const fn peer(&self) -> PeerId {
        self.peer
    }

    /// Its counters, to see whether the peer is alive.
    #[must_use]
    pub fn usage(&self) -> Arc<Usage> {
        Arc::clone(&self.usage)
    }
}
