//! One datagram in the making.

use std::net::IpAddr;

use strait_clock::Time;
use strait_wire::fragment::Fragment;
use strait_wire::ip::{self, FRONT_MAX, Front, Packet, Version};
use strait_wire::{Ecn, Protocol};

use super::FragmentShare;
use crate::Reason;

/// Most pieces of a datagram. The longest takes 119 of the 552 bytes that a packet of 576 leaves, and no host need
/// take smaller ones (RFC 791 section 3.2).
pub(super) const PIECES_MAX: usize = 128;
/// Most bytes of a datagram: the front, and what 16 bits of length can say.
pub(super) const BYTES_MAX: usize = FRONT_MAX + 65_535;

/// What the fragments of one datagram have in common (RFC 791 section 3.2, RFC 8200 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartialDatagram {
    src: IpAddr,
    dst: IpAddr,
    /// IPv6 looks for it in the first fragment only.
    protocol: Option<Protocol>,
    id: u32,
}

impl PartialDatagram {
    pub(super) fn new(fragment: &Packet<'_>, id: u32) -> PartialDatagram {
        let protocol = (fragment.version() == Version::V4).then(|| fragment.protocol());
        PartialDatagram { src: fragment.src(), dst: fragment.dst(), protocol, id }
    }
}

/// Where a fragment's bytes lie behind the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    start: usize,
    end: usize,
}

/// Room for one datagram, and what is there of it.
#[derive(Debug)]
pub(super) struct Slot {
    making: Option<Making>,
    /// In order, apart from each other.
    pieces: Vec<Piece>,
    /// Room for the front, then the payload; what no piece covers is left from earlier datagrams.
    bytes: Vec<u8>,
}

/// What is known of a datagram.
#[derive(Debug)]
struct Making {
    datagram: PartialDatagram,
    share: FragmentShare,
    /// When its first fragment came.
    started: Time,
    /// Why what comes of it is dropped.
    refused: Option<Reason>,
    /// Where the last fragment ends.
    end: Option<usize>,
    /// Of the first fragment, once it is here; its bytes end [`FRONT_MAX`] bytes into the slot's.
    front: Option<Front>,
    /// Whether a fragment had a congestion mark, and whether one could not have had any.
    marks: Marks,
}

#[derive(Debug, Clone, Copy, Default)]
struct Marks {
    congested: bool,
    not_capable: bool,
}

impl Slot {
    pub(super) const fn empty() -> Slot {
        Slot { making: None, pieces: Vec::new(), bytes: Vec::new() }
    }

    pub(super) fn start(&mut self, datagram: PartialDatagram, share: FragmentShare, now: Time) {
        let marks = Marks::default();
        self.making =
            Some(Making { datagram, share, started: now, refused: None, end: None, front: None, marks });
        self.pieces.clear();
    }

    /// When the first fragment came; `None` when the slot is free.
    pub(super) fn started(&self) -> Option<Time> {
        self.making.as_ref().map(|making| making.started)
    }

    /// Whose slot it is, and since when; `None` when it is free.
    pub(super) fn share(&self) -> Option<(FragmentShare, Time)> {
        self.making.as_ref().map(|making| (making.share, making.started))
    }

    pub(super) fn is_of(&self, datagram: PartialDatagram) -> bool {
        self.making.as_ref().is_some_and(|making| making.datagram == datagram)
    }

    /// Frees the slot, and says how many datagrams are lost by that: one that was refused was counted then.
    pub(super) fn give_up(&mut self) -> u64 {
        self.making.take().map_or(0, |making| u64::from(making.refused.is_none()))
    }

    /// Adds one fragment of this slot's datagram; gives the packet when it was the last one missing.
    pub(super) fn add(&mut self, fragment: &Fragment<'_>, mark: Ecn) -> Result<Option<&mut [u8]>, Reason> {
        let Some(making) = &mut self.making else { return Err(Reason::MalformedFragment) };
        if let Some(reason) = making.refused {
            return Err(reason);
        }
        if let Err(reason) = making.take(&mut self.pieces, &mut self.bytes, fragment, mark) {
            making.refused = Some(reason);
            return Err(reason);
        }
        match (making.end, making.front) {
            (Some(end), Some(front)) if self.pieces.iter().map(Piece::len).sum::<usize>() == end => {
                let marks = making.marks;
                self.making = None;
                self.finish(front, end, marks).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The packet, of which all is there.
    fn finish(&mut self, front: Front, end: usize, marks: Marks) -> Result<&mut [u8], Reason> {
        // RFC 3168 section 5.3: the mark must not get lost, nor go where it means nothing.
        if marks.congested && marks.not_capable {
            return Err(Reason::CongestionMark);
        }
        let packet = self.bytes.get_mut(FRONT_MAX - front.len..FRONT_MAX + end);
        let packet = packet.ok_or(Reason::MalformedFragment)?;
        front.refit(packet, front.next, front.len + end).map_err(|_| Reason::MalformedFragment)?;
        if marks.congested {
            ip::set_ecn(packet, Ecn::Ce);
        }
        Ok(packet)
    }
}

#[cfg(test)]
impl Slot {
    /// How many bytes it keeps.
    pub(super) fn room(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Making {
    fn take(
        &mut self,
        pieces: &mut Vec<Piece>,
        bytes: &mut Vec<u8>,
        fragment: &Fragment<'_>,
        mark: Ecn,
    ) -> Result<(), Reason> {
        let start = usize::from(fragment.header.offset);
        let piece = Piece { start, end: start + fragment.payload.len() };
        let at = FRONT_MAX + piece.start..FRONT_MAX + piece.end;
        let Some(place) = self.place(pieces, piece, fragment.header.more)? else {
            let is_same = bytes.get(at) == Some(fragment.payload);
            return if is_same { Ok(()) } else { Err(Reason::FragmentsOverlap) };
        };
        if pieces.len() >= PIECES_MAX {
            return Err(Reason::FragmentsIncomplete);
        }
        pieces.insert(place, piece);
        if !fragment.header.more {
            self.end = Some(piece.end);
        }
        self.marks.congested |= mark == Ecn::Ce;
        self.marks.not_capable |= mark == Ecn::NotEct;
        grow(bytes, at.end);
        bytes.get_mut(at).ok_or(Reason::MalformedFragment)?.copy_from_slice(fragment.payload);
        if start == 0 {
            self.front = Some(fragment.front);
            let front = bytes.get_mut(FRONT_MAX - fragment.front.len..).unwrap_or_default();
            fragment.emit_front(front, 0).map_err(|_| Reason::MalformedFragment)?;
        }
        Ok(())
    }

    /// Where in order a piece goes; `None` when there is one just like it.
    fn place(&self, pieces: &[Piece], piece: Piece, more: bool) -> Result<Option<usize>, Reason> {
        let at = pieces.partition_point(|other| other.start < piece.start);
        let next = pieces.get(at);
        if next == Some(&piece) && (self.end == Some(piece.end)) != more {
            return Ok(None);
        }
        let is_after_last =
            at.checked_sub(1).and_then(|at| pieces.get(at)).is_none_or(|last| last.end <= piece.start);
        let is_before_next = next.is_none_or(|next| piece.end <= next.start);
        let is_within = match self.end {
            Some(end) => more && piece.end < end,
            None => more || next.is_none(),
        };
        if is_after_last && is_before_next && is_within {
            return Ok(Some(at));
        }
        Err(Reason::FragmentsOverlap)
    }
}

impl Piece {
    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Makes room for `len` bytes, at most as many as a datagram has: twice as much each time, so that bytes are not
/// moved for every fragment.
fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        let room = len.next_power_of_two().min(BYTES_MAX).max(len);
        bytes.reserve_exact(room - bytes.len());
        bytes.resize(len, 0);
    }
}
