//! The sender's half: which packets have the header in front of them.

use strait_clock::Time;
use strait_wire::Esn;

use super::schedule::{HEADER_PACKETS, HEADER_PAUSE, KeyPacketSchedule, ReturnPath};

/// The header of an outbound association.
#[derive(Debug)]
pub struct OutboundHeader {
    /// What goes in front of packets, the same for all.
    pub bytes: Box<[u8]>,
    /// Whether the peer answers.
    pub path: ReturnPath,
    /// The datagram with the secret of the epoch that goes beside packets, if there is one.
    pub key_packet: Option<KeyPacketBeside>,
}

/// A key packet, and when it is sent.
#[derive(Clone, Debug)]
pub struct KeyPacketBeside {
    /// The datagram.
    pub bytes: Box<[u8]>,
    /// When it is sent.
    pub schedule: KeyPacketSchedule,
}

/// What the peer has said of a header or its key packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderChange {
    /// The key is bound to its SPI: packets need no header.
    Bound,
    /// The secret of the key packet is known.
    KeyPacketTaken,
    /// The key packet is wanted again, at once.
    KeyPacketWanted,
}

/// A header with how far it is acknowledged, and when it was sent last.
#[derive(Debug)]
pub(crate) struct HeaderLead {
    header: OutboundHeader,
    bound: bool,
    /// The number before that of the key's first packet.
    base: u64,
    /// The number of the last packet that had the header.
    last: u64,
}

impl HeaderLead {
    pub(crate) const fn new(header: OutboundHeader, first: Esn) -> HeaderLead {
        let base = first.0.saturating_sub(1);
        HeaderLead { header, bound: false, base, last: base }
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        &self.header.bytes
    }

    pub(crate) fn is_one_way(&self) -> bool {
        self.header.path == ReturnPath::OneWay
    }

    /// Whether packets need not have it.
    const fn rests(&self) -> bool {
        self.bound && matches!(self.header.path, ReturnPath::Answers)
    }

    /// The packet with this number had it; how many bytes the next one has in front.
    pub(crate) const fn sent(&mut self, number: Esn) -> usize {
        self.last = number.0;
        if self.rests() { 0 } else { self.header.bytes.len() }
    }

    /// When the next packet has it again, for the time's sake.
    pub(crate) fn due_at(&self, now: Time) -> Time {
        if self.rests() { now + HEADER_PAUSE } else { Time::MAX }
    }

    /// Whether it goes in a datagram of its own behind the packet with this number: so many packets left without it.
    pub(crate) const fn is_overdue(&self, number: Esn) -> bool {
        self.rests() && number.0.saturating_sub(self.last) >= HEADER_PACKETS
    }

    /// The key packet, if it goes beside the packet with this number.
    pub(crate) fn key_packet(&mut self, now: Time, number: Esn) -> Option<&[u8]> {
        let packets = number.0.saturating_sub(self.base);
        let beside = self.header.key_packet.as_mut()?;
        beside.schedule.wants(now, packets).then_some(&*beside.bytes)
    }

    /// Takes what the peer said; whether the header is not needed any more.
    pub(crate) fn change(&mut self, change: HeaderChange) -> bool {
        let schedule = self.header.key_packet.as_mut().map(|beside| &mut beside.schedule);
        match change {
            HeaderChange::Bound => self.bound = true,
            HeaderChange::KeyPacketTaken => schedule.into_iter().for_each(KeyPacketSchedule::taken),
            HeaderChange::KeyPacketWanted => schedule.into_iter().for_each(KeyPacketSchedule::wanted),
        }
        change == HeaderChange::Bound && self.rests()
    }
}
