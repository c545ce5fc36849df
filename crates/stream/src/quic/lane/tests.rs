use proptest::prelude::*;
use strait_ipsec::PeerId;

use super::*;

const ROUND: Duration = Duration::from_millis(200);

/// The number that bytes read are counted from.
const BASE: u32 = u32::MAX - 20;

/// A client's end and a server's, and the number of the last packet that arrived.
struct Ends {
    lanes: [Lane; 2],
    now: Time,
    esn: u64,
}

impl Ends {
    fn new() -> Ends {
        let lanes = [Lane::new(3, true, BASE), Lane::named(PREFIX + 3, BASE).unwrap()];
        Ends { lanes, now: Time::from_millis(1), esn: 0 }
    }

    fn moment(&self) -> Moment {
        Moment { now: self.now, round_trip: ROUND, sessions: 1 }
    }

    /// Bytes that QUIC carries from an end, and the other reads; whether it had some of them.
    fn quic(&mut self, from: usize, content: &[u8]) -> Result<bool, Unframed> {
        let mut record = self.lanes[from].record(content.len()).to_vec();
        record.extend(content);
        self.lanes[from].note_given(record.len() as u64);
        if self.lanes[1 - from].fresh_of(&mut record) {
            assert_eq!(from, 0);
        }
        self.lanes[1 - from].read(record.into(), self.now)
    }

    fn piece(&mut self, from: usize, fill: u8) -> Box<[u8]> {
        assert!(self.lanes[from].takes(16), "{:?}", self.lanes[from]);
        let piece = LanePiece::new(&[fill; 16]).unwrap();
        let moment = self.moment();
        self.lanes[from].send(piece, moment)
    }

    fn hears(&mut self, to: usize, packet: &[u8]) -> bool {
        let (header, piece) = LaneHeader::parse(packet).unwrap();
        self.esn += 1;
        let packet = LanePacket { peer: PeerId(1), generation: 1, esn: Esn(self.esn), header, piece };
        let moment = self.moment();
        self.lanes[to].hear(&packet, moment)
    }

    /// The server tells what it read, when it is time to.
    fn tells(&mut self) {
        self.now += TELLS;
        let moment = self.moment();
        let packet = self.lanes[1].tell(moment).unwrap();
        assert!(!self.hears(0, &packet));
    }

    fn read(&mut self, at: usize) -> Vec<u8> {
        core::iter::from_fn(|| self.lanes[at].next_read(1000)).flatten().collect()
    }

    /// Ends between which a request was carried, and its answer.
    fn begun() -> Ends {
        let mut ends = Ends::new();
        assert!(!ends.lanes[0].takes(16), "the other end knows nothing of the lane");
        assert_eq!(ends.quic(0, b"request"), Ok(false));
        assert_eq!(ends.quic(1, b"answer"), Ok(false));
        assert_eq!((ends.read(1), ends.read(0)), (b"request".to_vec(), b"answer".to_vec()));
        assert!(!ends.lanes[0].takes(16), "nothing says that the request was read");
        ends.tells();
        ends
    }
}

impl Lane {
    /// Takes the prefix off the first record, as the connection does.
    fn fresh_of(&mut self, record: &mut Vec<u8>) -> bool {
        let is_first = !self.opened && self.read == 1 && record[0] == PREFIX + self.number;
        if is_first {
            record.remove(0);
        }
        is_first
    }
}

#[test]
fn a_key_and_its_echo_are_a_packet_each() {
    let mut ends = Ends::begun();
    for key in 1..=100 {
        let packet = ends.piece(0, key);
        assert!(ends.hears(1, &packet));
        let echo = ends.piece(1, key);
        assert_eq!((packet.len(), echo.len()), (if key == 1 { 22 } else { 18 }, 18), "of key {key}");
        assert!(ends.hears(0, &echo));
        assert_eq!((ends.read(1), ends.read(0)), (vec![key; 16], vec![key; 16]));
        assert_eq!(ends.lanes[0].late_at(), None, "nothing more is awaited");
        assert_eq!([0, 1].map(|end| ends.lanes[end].tells_at()), [None; 2]);
    }
}

#[test]
fn what_is_lost_comes_by_quic_and_nothing_twice() {
    for echo_is_lost in [false, true] {
        let mut ends = Ends::begun();
        let key = ends.piece(0, 7);
        if echo_is_lost {
            assert!(ends.hears(1, &key));
            ends.piece(1, 7);
        }
        assert_eq!(ends.lanes[0].late_at(), Some(ends.now + 2 * ROUND + LATE));
        ends.now += 2 * ROUND + LATE;
        assert_eq!(ends.quic(0, b""), Ok(echo_is_lost), "the server hears that its answer is lost");
        assert_eq!((ends.read(1), ends.lanes[0].late_at()), (vec![7; 16], None));
        assert_eq!(ends.lanes[1].has_pieces(), echo_is_lost);
        let echo: &[u8] = if echo_is_lost { b"" } else { &[7; 16] };
        assert_eq!(ends.quic(1, echo), Ok(false));
        assert_eq!(ends.read(0), vec![7; 16]);
        // The lane is used again, once both have told.
        ends.tells();
        let key = ends.piece(0, 8);
        assert!(ends.hears(1, &key));
        let echo = ends.piece(1, 8);
        assert!(ends.hears(0, &echo));
        assert_eq!((ends.read(1), ends.read(0)), (vec![8; 16], vec![8; 16]));
    }
}

#[test]
fn a_piece_that_came_by_quic_meanwhile_is_passed_over() {
    let mut ends = Ends::begun();
    let late = ends.piece(0, 1);
    assert_eq!(ends.quic(0, b"more"), Ok(false));
    assert!(!ends.hears(1, &late));
    assert_eq!(ends.read(1), [&[1; 16][..], b"more"].concat());
    assert!(!ends.lanes[0].takes(16), "nothing says that all of it was read");
    ends.tells();
    assert!(ends.lanes[0].takes(16));
}

#[test]
fn where_no_piece_arrives_the_lane_is_given_up_before_a_number_means_two() {
    let mut ends = Ends::begun();
    let mut pieces = 0;
    while ends.lanes[0].takes(16) {
        ends.piece(0, 9);
        pieces += 1;
        assert_eq!(ends.quic(0, b""), Ok(false));
        ends.tells();
    }
    assert_eq!(pieces, NUMBERS - 1);
    assert_eq!(ends.read(1), vec![9; 16 * usize::from(pieces)]);
}

#[test]
fn a_lane_takes_short_bytes_only_and_no_more_than_a_window() {
    let mut ends = Ends::begun();
    assert_eq!([15, 16, 64, 65].map(|len| ends.lanes[0].takes(len)), [false, true, true, false]);
    assert!(!ends.lanes[1].takes(16), "the server has nothing to answer");
    for piece in 0..WINDOW {
        ends.piece(0, piece as u8);
    }
    assert!(!ends.lanes[0].takes(16));
}

#[test]
fn a_process_that_reads_nothing_gets_no_more_pieces() {
    let mut ends = Ends::begun();
    for key in 0..UNREAD {
        let packet = ends.piece(0, key as u8);
        assert!(ends.hears(1, &packet));
        let packet = ends.piece(1, 0);
        ends.hears(0, &packet);
        ends.read(0);
    }
    let packet = ends.piece(0, 0);
    assert!(!ends.hears(1, &packet));
}

#[test]
fn records_in_any_parts_are_the_same() {
    let mut whole = Ends::begun();
    for key in [1, 2] {
        let packet = whole.piece(0, key);
        assert!(whole.hears(1, &packet));
    }
    let mut record = whole.lanes[0].record(5).to_vec();
    record.extend(b"bytes");
    let mut again = false;
    for byte in record {
        again |= whole.lanes[1].read(vec![byte].into(), whole.now).unwrap();
    }
    assert!(again);
    assert_eq!(whole.read(1), [&[1; 16][..], &[2; 16], b"bytes"].concat());
}

#[test]
fn what_no_end_writes_is_refused() {
    // A piece that was never taken; more than were; longer than the record; an undefined number.
    for head in [[1 << 2, 0, 0], [7 << 2, 0, 9], [(5 << 2) | 3, 0, 48], [8 << 2, 0, 0]] {
        let mut ends = Ends::begun();
        assert_eq!(ends.lanes[1].read(head.to_vec().into(), ends.now), Err(Unframed), "{head:?}");
    }
    let mut ends = Ends::begun();
    let packet = ends.piece(0, 1);
    assert!(ends.hears(1, &packet));
    assert_eq!(ends.lanes[1].read(vec![1, 0, 15].into(), ends.now), Err(Unframed));
    assert!([0, 4, 0xbf, 0xc8, 0xff].iter().all(|first| Lane::named(*first, BASE).is_none()));
}

#[test]
fn with_an_answer_that_is_not_taken_nothing_is_acknowledged() {
    let mut ends = Ends::begun();
    for (key, is_lost) in [(1, true), (2, false)] {
        let packet = ends.piece(0, key);
        assert!(ends.hears(1, &packet));
        let echo = ends.piece(1, key);
        assert!(is_lost || !ends.hears(0, &echo), "the one before it is missing");
    }
    assert!(
        ends.lanes[0].has_pieces() && ends.lanes[0].late_at().is_some(),
        "the client does not wait any more"
    );
    assert_eq!(ends.quic(0, b""), Ok(true), "the server hears that answers are lost");
    assert_eq!(ends.quic(1, b""), Ok(false));
    assert_eq!((ends.read(1), ends.read(0)), ([[1; 16], [2; 16]].concat(), [[1; 16], [2; 16]].concat()));
}

#[test]
fn only_a_piece_that_was_taken_and_did_not_come_again_is_answered_by_one() {
    let mut ends = Ends::begun();
    let _lost = ends.piece(0, 1);
    let second = ends.piece(0, 2);
    assert!(!ends.hears(1, &second));
    assert!(!ends.lanes[1].takes(16), "nothing was taken that waits for an answer");
    let mut ends = Ends::begun();
    let packet = ends.piece(0, 1);
    assert!(ends.hears(1, &packet) && ends.lanes[1].takes(16));
    assert_eq!(ends.quic(0, b""), Ok(true));
    assert!(!ends.lanes[1].takes(16), "the client waits for no answer on the lane any more");
}

proptest! {
    #[test]
    fn nothing_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut ends = Ends::begun();
        let packet = ends.piece(0, 1);
        ends.hears(1, &packet);
        // Whatever it says it has, no more than came is passed on.
        let len = bytes.len();
        let _ = ends.lanes[1].read(bytes.into(), ends.now);
        prop_assert!(ends.read(1).len() <= 16 + len);
    }
}
