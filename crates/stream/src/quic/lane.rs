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
//! A piece leaves only while QUIC has no byte of the stream that the other end has not read, as that has told: so each piece has its
//! place behind these. Every byte arrives once and in order, whatever is lost, late or repeated:
//!
//! - what is older than what came before it on the association is dropped ([`LaneOrder`]);
//! - no more pieces leave than there are numbers until one of them is acknowledged, so that no number means two;
//! - a record says which pieces it has, and the receiver passes over those that it took.

mod order;

use core::time::Duration;
use std::collections::VecDeque;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strait_clock::Time;
use strait_ipsec::LanePacket;
use strait_wire::lane::{LANES, LaneHeader, LanePiece, NUMBERS, PACKET_MAX, PIECE_MAX, PIECE_MIN};

pub(super) use order::LaneOrder;

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

/// Both directions of a stream with a lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) number: u8,
    /// True if this end opened the stream.
    pub(super) opened: bool,
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
    /// Bytes that were read here, and what was told of that.
    read: u64,
    told: u64,
    /// The time at which something is told by itself.
    tells_at: Option<Time>,
    /// A piece is to be answered, which acknowledges it.
    answers: bool,
    /// The head of a record as far as it came; bytes to pass over, and those that follow.
    head: BytesMut,
    skip: usize,
    left: usize,
    /// Bytes that came, in order.
    came: VecDeque<Bytes>,
}

impl Lane {
    pub(super) fn new(number: u8, opened: bool) -> Lane {
        Lane {
            number,
            opened,
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
            told: 0,
            tells_at: None,
            answers: false,
            head: BytesMut::new(),
            skip: 0,
            left: 0,
            came: VecDeque::new(),
        }
    }

    /// The lane that the first byte of a stream of the peer's names, if it names one.
    pub(super) fn named(first: u8) -> Option<Lane> {
        let number = first.checked_sub(PREFIX).filter(|number| *number < LANES)?;
        Some(Lane { read: 1, ..Lane::new(number, false) })
    }

    /// True if so many bytes that wait may go as a piece.
    pub(super) fn takes(&self, waiting: u64) -> bool {
        (PIECE_MIN as u64..=PIECE_MAX as u64).contains(&waiting)
            && (self.opened || self.answers)
            && self.begun
            && self.pieces.len() < WINDOW
            && self.unproven < NUMBERS - 1
            && self.given == self.read_there
    }

    /// The packet with this piece; an answer to it is late after two round trips.
    pub(super) fn send(&mut self, piece: LanePiece, round_trip: Duration, now: Time) -> Box<[u8]> {
        let packet = self.packet(&piece);
        self.pieces.push_back(piece);
        self.next = (self.next + 1) % NUMBERS;
        self.unproven += 1;
        if self.opened {
            self.late_at.get_or_insert(now + 2 * round_trip + LATE);
        }
        packet
    }

    /// The packet that tells what came, if it is time to.
    pub(super) fn tell(&mut self, now: Time) -> Option<Box<[u8]>> {
        self.tells_at.filter(|at| *at <= now)?;
        Some(self.packet(&LanePiece::NONE))
    }

    fn packet(&mut self, piece: &LanePiece) -> Box<[u8]> {
        let read = (self.read != self.told).then_some(self.read as u32);
        (self.told, self.tells_at, self.answers) = (self.read, None, false);
        let Lane { number: lane, opened, next: number, awaited, .. } = *self;
        let mut packet = [0; PACKET_MAX];
        let len = LaneHeader { lane, opened, number, awaited, read }.emit(piece, &mut packet);
        packet.get(..len).unwrap_or_default().into()
    }

    /// The time at which [`Lane::tell`] or [`Lane::is_late`] has something.
    pub(super) fn due(&self) -> Option<Time> {
        self.tells_at.into_iter().chain(self.late_at).min()
    }

    /// True if the answer to the first piece is late.
    pub(super) fn is_late(&self, now: Time) -> bool {
        self.late_at.is_some_and(|at| at <= now)
    }

    pub(super) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// Takes what came on the lane; true if there is something to be read.
    pub(super) fn hear(&mut self, packet: &LanePacket, round_trip: Duration, now: Time) -> bool {
        let LaneHeader { number, awaited, read, .. } = packet.header;
        self.acknowledged(awaited, round_trip, now);
        if let Some(read) = read {
            let ahead = u64::from(read.wrapping_sub(self.read_there as u32));
            self.read_there =
                Some(self.read_there + ahead).filter(|at| *at <= self.given).unwrap_or(self.read_there);
        }
        if packet.piece == LanePiece::NONE {
            return false;
        }
        // One that came by QUIC meanwhile, or comes too soon, is answered as well: it tells what was taken.
        self.answers = !self.opened;
        self.tells_at = self.tells_at.or(self.answers.then_some(now + TELLS));
        let takes = number == self.awaited
            && self.skip + self.left == 0
            && self.head.is_empty()
            && self.came.len() < UNREAD;
        if takes {
            self.take(packet.piece.bytes());
        }
        takes
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
    fn acknowledged(&mut self, awaited: u8, round_trip: Duration, now: Time) {
        let acknowledged = usize::from(distance(self.first(), awaited));
        if acknowledged == 0 || acknowledged > self.pieces.len() {
            return;
        }
        self.pieces.drain(..acknowledged);
        self.unproven = self.pieces.len() as u8;
        let late_at = now + 2 * round_trip + LATE;
        self.late_at = self.late_at.filter(|_| self.has_pieces()).map(|_| late_at);
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
        if !self.opened {
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
        // How long each of the others is, is of no use any more: they are not sent again.
        self.taken.clear();
        self.awaited = (first + count) % NUMBERS;
        (self.skip, self.left) = (skip, len - skip);
        Ok(again > 0)
    }
}

/// Steps from one number to another.
const fn distance(from: u8, to: u8) -> u8 {
    (to + NUMBERS - from % NUMBERS) % NUMBERS
}

#[cfg(test)]
mod tests;
