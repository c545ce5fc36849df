//! A lane: bytes of a stream that a person waits for go inside ESP, in short *pieces*, where a slow link makes QUIC's headers and its
//! acknowledgements longer than what they carry.
//!
//! ```text
//! client   a piece         has the number that the other end awaits; if no answer tells in time that it came, QUIC carries it again
//! server   an answer       only to a piece, which it acknowledges; if it is lost, so is the acknowledgement, and the client's bytes come
//!                          again by QUIC: then the answer goes again, too
//! both     records         what QUIC carries of such a stream: a head, pieces that may be lost, and what is written
//! ```
//!
//! A piece leaves only while QUIC has no byte of the stream that the other end has not read, as it has said: so each piece has its
//! place behind these. Every byte arrives once and in order, whatever is lost, late or repeated:
//!
//! - a packet is taken whole or not at all: with a piece that is not the awaited one, or has no room, nothing is acknowledged;
//! - none is taken that is older than one before it, by the association and its number there;
//! - the first on each association says how much was read, counted from a number of the stream's own, so that none is of another stream:
//!   an end sends for one stream at a time on a lane;
//! - no more pieces leave than there are numbers until one of them is acknowledged, so that no number means two;
//! - a record says which pieces it has, and the receiver passes over those that it took.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strait_clock::Time;
use strait_ipsec::LanePacket;
use strait_wire::Esn;
use strait_wire::lane::{LANES, LaneHeader, LanePiece, NUMBERS, PACKET_MAX, PIECE_MAX, PIECE_MIN};

/// Pieces under way: with more, what a number means would hang on how many are acknowledged at once.
const WINDOW: usize = 3;
/// The time that a server may wait with an answer to a piece, or with telling what it read: a login answers each key within 100 ms, and what
/// else it says with that goes with it.
const TELLS: Duration = Duration::from_millis(150);
/// The time by which an answer may be later than two round trips: what the server waits, and a turn of a busy machine.
const LATE: Duration = Duration::from_millis(250);
/// The first byte of a stream with lane 0, by the end that opened it; no service has one of these numbers.
const PREFIX: u8 = 0xc0;
/// Chunks that may wait to be read before no piece is taken: a process that reads none has QUIC's window, and no other.
const UNREAD: usize = 16;
/// Bytes of a record's head: which pieces it has, and how many bytes follow.
const HEAD: usize = 3;
/// Bytes of a record at most beside its pieces: one datagram's, so that turns stay as they are.
pub(super) const RECORD_MAX: u64 = 16 * 1024;

/// Bytes of a stream with a lane that are not as they must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unframed;

/// The time, and what is known of the way to the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now: Time,
    pub(super) round_trip: Duration,
    /// Sessions so far: with each, another association carries what leaves.
    pub(super) sessions: u64,
}

/// Both directions of a stream with a lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) number: u8,
    /// True if this end opened the stream.
    pub(super) opened: bool,
    /// The number of the stream that what is read is counted from.
    base: u32,
    /// True once a later stream has the lane: nothing of this one leaves on it.
    silent: bool,
    /// The association and the number there of the last packet that was taken.
    pub(super) heard: Option<(u64, Esn)>,
    /// True if the other end knows of the lane.
    begun: bool,
    /// The number of the next piece, those that may be lost, and how many left since one was acknowledged.
    next: u8,
    pieces: VecDeque<LanePiece>,
    unproven: u8,
    /// The time at which the first of them is late.
    late_at: Option<Time>,
    /// Bytes that QUIC got, and those that the other end has read.
    given: u64,
    read_there: u64,
    /// The number that is awaited, and how long the last pieces were.
    awaited: u8,
    taken: VecDeque<usize>,
    /// Bytes that were read here; and how many of them the last packet said, and in which session.
    read: u64,
    told: Option<(u64, u64)>,
    /// The time at which a packet without a piece says what was read.
    tells_at: Option<Time>,
    /// A piece that was taken is to be answered, which acknowledges it.
    answers: bool,
    /// The head of a record as far as it came; bytes to pass over, and those that follow.
    head: BytesMut,
    skip: usize,
    left: usize,
    /// Bytes that came, in order.
    came: VecDeque<Bytes>,
}

impl Lane {
    pub(super) fn new(number: u8, opened: bool, base: u32) -> Lane {
        Lane {
            number,
            opened,
            base,
            silent: false,
            heard: None,
            begun: !opened,
            next: 0,
            pieces: VecDeque::new(),
            unproven: 0,
            late_at: None,
            given: 0,
            read_there: 0,
            awaited: 0,
            taken: VecDeque::new(),
            read: 0,
            told: None,
            tells_at: None,
            answers: false,
            head: BytesMut::new(),
            skip: 0,
            left: 0,
            came: VecDeque::new(),
        }
    }

    /// The lane that the first byte of a stream of the peer's names, if it names one.
    pub(super) fn named(first: u8, base: u32) -> Option<Lane> {
        let number = first.checked_sub(PREFIX).filter(|number| *number < LANES)?;
        Some(Lane { read: 1, ..Lane::new(number, false, base) })
    }

    /// A later stream of the opener's has the lane from now on.
    pub(super) const fn silence(&mut self) {
        (self.silent, self.tells_at) = (true, None);
    }

    /// True if so many bytes that wait may go as a piece.
    pub(super) fn takes(&self, waiting: u64) -> bool {
        (PIECE_MIN as u64..=PIECE_MAX as u64).contains(&waiting)
            && (self.opened || self.answers)
            && self.begun
            && !self.silent
            && self.pieces.len() < WINDOW
            && self.unproven < NUMBERS - 1
            && self.given == self.read_there
    }

    /// The packet with this piece; an answer to it is late after two round trips.
    pub(super) fn send(&mut self, piece: LanePiece, moment: Moment) -> Box<[u8]> {
        let packet = self.packet(&piece, moment);
        self.pieces.push_back(piece);
        self.next = (self.next + 1) % NUMBERS;
        self.unproven += 1;
        if self.opened {
            self.late_at.get_or_insert(moment.late_at());
        }
        packet
    }

    /// The packet that tells what came, if it is time to.
    pub(super) fn tell(&mut self, moment: Moment) -> Option<Box<[u8]>> {
        self.tells_at.filter(|at| *at <= moment.now)?;
        Some(self.packet(&LanePiece::NONE, moment))
    }

    fn packet(&mut self, piece: &LanePiece, moment: Moment) -> Box<[u8]> {
        let tells = Some((self.read, moment.sessions));
        let read = (self.told != tells).then_some(self.base.wrapping_add(self.read as u32));
        (self.told, self.tells_at, self.answers) = (tells, None, false);
        let Lane { number: lane, opened, next: number, awaited, .. } = *self;
        let mut packet = [0; PACKET_MAX];
        let len = LaneHeader { lane, opened, number, awaited, read }.emit(piece, &mut packet);
        packet.get(..len).unwrap_or_default().into()
    }

    /// The time at which [`Lane::tell`] has something.
    pub(super) const fn tells_at(&self) -> Option<Time> {
        self.tells_at
    }

    /// The time at which the answer to the first piece is late.
    pub(super) const fn late_at(&self) -> Option<Time> {
        self.late_at
    }

    pub(super) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Takes what came on the lane, or nothing of it; true if there is something to be read.
    pub(super) fn hear(&mut self, packet: &LanePacket, moment: Moment) -> bool {
        let LaneHeader { number, awaited, read, .. } = packet.header;
        let at = (packet.generation, packet.esn);
        let Some(read) = self.read_there(packet.generation, read) else { return false };
        let is_next = self.heard.is_none_or(|heard| heard < at) && number == self.awaited;
        let has_piece = packet.piece != LanePiece::NONE;
        if !is_next || has_piece && !self.has_room() {
            return false;
        }
        (self.heard, self.read_there) = (Some(at), read);
        self.acknowledged(awaited, moment);
        if has_piece {
            self.take(packet.piece.bytes());
            self.answers = !self.opened;
            self.tells_at = self.tells_at.or(self.answers.then_some(moment.now + TELLS));
        }
        has_piece
    }

    /// Bytes that the other end has read, if this can be of this stream.
    fn read_there(&self, generation: u64, said: Option<u32>) -> Option<u64> {
        let Some(said) = said else {
            return self.heard.filter(|heard| heard.0 == generation).map(|_| self.read_there);
        };
        let ahead = said.wrapping_sub(self.base).wrapping_sub(self.read_there as u32);
        Some(self.read_there + u64::from(ahead)).filter(|at| *at <= self.given)
    }

    /// True if a piece has its place behind what came.
    fn has_room(&self) -> bool {
        self.skip + self.left == 0 && self.head.is_empty() && self.came.len() < UNREAD
    }

    fn take(&mut self, piece: &[u8]) {
        self.came.push_back(Bytes::copy_from_slice(piece));
        self.note_taken(piece.len());
    }

    fn note_taken(&mut self, len: usize) {
        self.awaited = (self.awaited + 1) % NUMBERS;
        self.taken.push_back(len);
        if self.taken.len() > WINDOW {
            self.taken.pop_front();
        }
    }

    /// The other end awaits this number.
    fn acknowledged(&mut self, awaited: u8, moment: Moment) {
        let acknowledged = usize::from(distance(self.first(), awaited));
        if acknowledged == 0 || acknowledged > self.pieces.len() {
            return;
        }
        self.pieces.drain(..acknowledged);
        self.unproven = self.pieces.len() as u8;
        self.late_at = self.late_at.filter(|_| self.has_pieces()).map(|_| moment.late_at());
    }

    /// The number of the first piece that may be lost, or of the next.
    fn first(&self) -> u8 {
        distance(self.pieces.len() as u8, self.next)
    }

    /// The head of a record of so many bytes, with all pieces that may be lost in front of these.
    pub(super) fn record(&mut self, len: usize) -> Bytes {
        let (first, count) = (self.first(), self.pieces.len() as u8);
        let pieces: usize = self.pieces.iter().map(|piece| piece.bytes().len()).sum();
        let mut record = BytesMut::with_capacity(1 + HEAD + pieces);
        if !core::mem::replace(&mut self.begun, true) {
            record.put_u8(PREFIX + self.number);
        }
        record.put_u8((first << 2) | count);
        record.put_u16((pieces + len) as u16);
        if count > 0 {
            // The packet that named the association may be lost with them.
            self.told = None;
        }
        self.pieces.drain(..).for_each(|piece| record.extend_from_slice(piece.bytes()));
        self.late_at = None;
        record.freeze()
    }

    /// QUIC got so many bytes.
    pub(super) const fn note_given(&mut self, bytes: u64) {
        self.given += bytes;
    }

    /// The next of what came, at most so many bytes.
    pub(super) fn next_read(&mut self, most: usize) -> Option<Bytes> {
        let mut next = self.came.pop_front()?;
        if next.len() > most {
            self.came.push_front(next.split_off(most));
        }
        Some(next)
    }

    /// Takes what QUIC brought, records; true if it had pieces again that were taken: the answers to them may be lost.
    ///
    /// # Errors
    /// [`Unframed`] when it is none of what the other end writes.
    pub(super) fn read(&mut self, mut bytes: Bytes, now: Time) -> Result<bool, Unframed> {
        self.read += bytes.len() as u64;
        if !self.opened && !self.silent {
            // What the peer waits for before it uses the lane again.
            self.tells_at = Some(now + TELLS);
        }
        let mut again = false;
        while !bytes.is_empty() {
            let passed = bytes.len().min(self.skip);
            bytes.advance(passed);
            self.skip -= passed;
            let content = bytes.split_to(bytes.len().min(self.left));
            self.left -= content.len();
            if !content.is_empty() {
                self.came.push_back(content);
            }
            if self.skip == 0 && self.left == 0 && !bytes.is_empty() {
                self.head.put_u8(bytes.get_u8());
                again |= self.head.len() == HEAD && self.begin_record()?;
            }
        }
        Ok(again)
    }

    /// The head of a record is there.
    fn begin_record(&mut self) -> Result<bool, Unframed> {
        let head = core::mem::take(&mut self.head);
        let [numbers, a, b] = *head else { return Err(Unframed) };
        let (first, count, len) = (numbers >> 2, numbers & 3, usize::from(u16::from_be_bytes([a, b])));
        let again = distance(first, self.awaited);
        let passed = self.taken.len().checked_sub(usize::from(again)).ok_or(Unframed)?;
        let skip: usize = self.taken.iter().skip(passed).sum();
        if first >= NUMBERS || again > count || skip > len {
            return Err(Unframed);
        }
        // How long each of the others is, is of no use any more: they are not sent again. The opener waits for no answer to them on the lane,
        // so that one there could be lost for good.
        self.taken.clear();
        self.answers = false;
        self.awaited = (first + count) % NUMBERS;
        (self.skip, self.left) = (skip, len - skip);
        Ok(again > 0)
    }
}

impl Moment {
    /// The time at which the answer to what leaves now is late.
    fn late_at(self) -> Time {
        self.now + 2 * self.round_trip + LATE
    }
}

/// Steps from one number to another.
const fn distance(from: u8, to: u8) -> u8 {
    (to + NUMBERS - from % NUMBERS) % NUMBERS
}

#[cfg(test)]
mod tests;
