use core::time::Duration;

use proptest::prelude::*;
use strait_ipsec::PeerId;
use strait_wire::Esn;

use super::*;

const ROUND: Duration = Duration::from_millis(200);
/// The time after which everything that waits for a time has happened.
const LONG: Duration = Duration::from_secs(30);

/// An event between two ends.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// An end writes so many bytes.
    Writes(usize, usize),
    /// QUIC brings so many bytes to an end.
    Quic(usize, usize),
    /// A packet arrives, of those that left so far and counted from the newest; it may arrive again.
    Arrives(usize),
    /// An end sends in another association from now on.
    Renewal(usize),
    /// Milliseconds pass.
    Passes(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let len = prop_oneof![4 => Just(16_usize), 1 => 17..65_usize, 1 => Just(300)];
    prop_oneof![
        4 => (0..2_usize, len).prop_map(|(end, len)| Happening::Writes(end, len)),
        4 => (0..2_usize, prop_oneof![Just(5_usize), Just(5_000)]).prop_map(|(end, most)| Happening::Quic(end, most)),
        6 => prop_oneof![4 => Just(0_usize), 2 => 0..4_usize, 1 => 0..40_usize].prop_map(Happening::Arrives),
        1 => (0..2_usize).prop_map(Happening::Renewal),
        2 => prop_oneof![Just(50_u64), Just(200), Just(700)].prop_map(Happening::Passes),
    ]
}

/// A packet on its way.
#[derive(Clone)]
struct Way {
    to: usize,
    generation: u64,
    esn: u64,
    bytes: Box<[u8]>,
}

struct End {
    stream: LiveStream,
    wrote: Vec<u8>,
    read: Vec<u8>,
    quic: Vec<u8>,
    generation: u64,
    esn: u64,
}

/// Both ends of a stream, of which the second answers what it reads with as much if it is to.
struct Pair {
    answers: bool,
    ends: [End; 2],
    base: u32,
    air: Vec<Way>,
    now: Time,
}

impl End {
    fn new(lane: Option<Lane>) -> End {
        let mut stream = LiveStream::new(StreamKey(1), StreamPriority::Now);
        stream.fresh = lane.is_none();
        stream.lane = lane;
        let (wrote, read, quic) = (Vec::new(), Vec::new(), Vec::new());
        End { stream, wrote, read, quic, generation: 0, esn: 0 }
    }
}

impl Lane {
    /// True if a packet is taken.
    fn takes_whole(&mut self, packet: &LanePacket, moment: Moment) -> bool {
        let before = self.heard;
        self.hear(packet, moment);
        self.heard != before
    }
}

impl Pair {
    fn new(base: u32) -> Pair {
        let ends = [Some(Lane::new(3, true, base)), None].map(End::new);
        Pair { answers: true, ends, base, air: Vec::new(), now: Time::from_millis(1) }
    }

    /// A pair whose first end may use its lane.
    fn begun(base: u32) -> Pair {
        let mut pair = Pair::new(base);
        pair.happens(Happening::Writes(0, 40));
        pair.happens(Happening::Quic(1, 1000));
        pair.happens(Happening::Quic(0, 1000));
        pair.happens(Happening::Passes(200));
        pair.happens(Happening::Arrives(0));
        pair
    }

    fn moment(&self, end: usize) -> Moment {
        Moment { now: self.now, round_trip: ROUND, sessions: self.ends[end].generation + 1 }
    }

    fn writes(&mut self, end: usize, len: usize) {
        let end = &mut self.ends[end];
        let from = end.wrote.len();
        let bytes: Vec<u8> = (from..from + len).map(|at| (at % 251) as u8).collect();
        end.wrote.extend(&bytes);
        let mut bytes = Bytes::from(bytes);
        end.stream.unsent.take(&mut bytes, 1 << 20);
    }

    /// Both ends send what they have, and the second answers.
    fn settle(&mut self) {
        for at in [1, 0, 1] {
            self.reads(at);
            let (moment, end) = (self.moment(at), &mut self.ends[at]);
            if end.stream.is_late(moment.now) {
                end.stream.call_back();
            }
            while let Some(bytes) = end.stream.next_packet(false, moment) {
                end.esn += 1;
                let (to, generation, esn) = (1 - at, end.generation, end.esn);
                self.air.push(Way { to, generation, esn, bytes });
            }
            while let Some(bytes) = end.stream.next(u64::MAX) {
                end.stream.note_given(bytes.len() as u64);
                end.quic.extend(&bytes);
            }
        }
    }

    fn reads(&mut self, at: usize) {
        let end = &mut self.ends[at];
        let read: Vec<u8> = core::iter::from_fn(|| end.stream.next_read(1000)).flatten().collect();
        end.read.extend(&read);
        if at == 1 && self.answers && !read.is_empty() {
            self.writes(1, read.len());
        }
    }

    fn quic(&mut self, to: usize, most: usize) {
        let quic = &mut self.ends[1 - to].quic;
        let bytes: Vec<u8> = quic.drain(..most.min(quic.len())).collect();
        if !bytes.is_empty() {
            let read = self.ends[to].stream.unframed(bytes.into(), Some(self.base), self.now);
            assert_eq!(read, Ok(None));
        }
    }

    /// A packet arrives; returns true if any of it is taken.
    fn arrives(&mut self, way: &Way) -> bool {
        let (header, piece) = LaneHeader::parse(&way.bytes).unwrap();
        let packet =
            LanePacket { peer: PeerId(1), generation: way.generation, esn: Esn(way.esn), header, piece };
        let (moment, lane) = (self.moment(way.to), &mut self.ends[way.to].stream.lane);
        lane.as_mut().is_some_and(|lane| lane.takes_whole(&packet, moment))
    }

    fn happens(&mut self, happening: Happening) {
        match happening {
            Happening::Writes(end, len) => self.writes(end, len),
            Happening::Quic(to, most) => self.quic(to, most),
            Happening::Arrives(back) => {
                if let Some(way) = self.air.iter().rev().nth(back).cloned() {
                    self.arrives(&way);
                }
            }
            Happening::Renewal(end) => {
                let end = &mut self.ends[end];
                (end.generation, end.esn) = (end.generation + 1, 0);
            }
            Happening::Passes(millis) => self.now += Duration::from_millis(millis),
        }
        self.settle();
    }

    /// Nothing more arrives on the lane, or all that leaves from now on does; QUIC brings everything.
    fn ends(&mut self, arrives: bool) {
        let end = self.now + LONG;
        while self.now < end {
            self.happens(Happening::Passes(50));
            let ways = core::mem::take(&mut self.air);
            for way in ways.into_iter().filter(|_| arrives) {
                self.arrives(&way);
            }
            [0, 1].into_iter().for_each(|to| self.quic(to, usize::MAX));
            self.settle();
        }
        let [here, there] = &self.ends;
        assert!(there.read == here.wrote, "{} of {} bytes there", there.read.len(), here.wrote.len());
        assert!(here.read == there.wrote, "{} of {} bytes here", here.read.len(), there.wrote.len());
    }
}

#[test]
fn nothing_of_an_older_association_is_taken() {
    let mut pair = Pair::begun(7);
    for _ in 0..3 {
        // A key comes late, and meanwhile by QUIC. It has no echo, so that nothing else tells its packet from a new one.
        (pair.answers, pair.air) = (false, Vec::new());
        pair.happens(Happening::Writes(0, 16));
        let late = pair.air.clone();
        assert_eq!(late.len(), 1);
        pair.happens(Happening::Passes(1000));
        pair.happens(Happening::Quic(1, 1000));
        pair.happens(Happening::Passes(200));
        pair.happens(Happening::Arrives(0));
        // Seven others: then a piece with its number is awaited again.
        pair.answers = true;
        for _ in 1..8 {
            [0, 1].into_iter().for_each(|end| pair.happens(Happening::Renewal(end)));
            pair.happens(Happening::Writes(0, 16));
            pair.happens(Happening::Arrives(0));
            pair.happens(Happening::Arrives(0));
        }
        assert!(!pair.arrives(&late[0]));
    }
    let [here, there] = &pair.ends;
    assert_eq!((here.read.len(), there.read.len()), (40 + 3 * 7 * 16, 40 + 3 * 8 * 16));
    pair.ends(true);
}

#[test]
fn a_late_packet_of_a_stream_is_taken_by_no_later_one_in_its_lane() {
    let mut before = Pair::begun(0x0100_0000);
    before.happens(Happening::Writes(0, 16));
    before.happens(Happening::Arrives(0));
    before.happens(Happening::Arrives(0));
    before.happens(Happening::Writes(0, 16));
    before.happens(Happening::Writes(1, 300));
    before.happens(Happening::Passes(1000));
    before.happens(Happening::Quic(1, 1000));
    before.happens(Happening::Passes(200));
    // Late on the same association, or at once on a later one, as of another process of the peer's.
    let late = |pair: &mut Pair| {
        let ways =
            before.air.iter().flat_map(|way| [0, 9].map(|later| Way { generation: later, ..way.clone() }));
        ways.filter(|way| pair.arrives(way)).count()
    };
    assert!(before.air.len() >= 5 && before.air.iter().any(|way| way.bytes.len() > 16));
    let mut after = Pair::new(0x7000_0000);
    after.ends.iter_mut().zip(&before.ends).for_each(|(after, before)| after.esn = before.esn);
    for happening in [
        Happening::Writes(0, 40),
        Happening::Quic(1, 1000),
        Happening::Quic(0, 1000),
        Happening::Passes(200),
        Happening::Arrives(0),
        Happening::Writes(0, 16),
        Happening::Arrives(0),
        Happening::Arrives(0),
    ] {
        assert_eq!(late(&mut after), 0, "before {happening:?}");
        after.happens(happening);
    }
    assert_eq!((late(&mut after), after.ends[0].read.len()), (0, 40 + 16));
    after.ends(true);
}

#[test]
fn a_renewal_delays_no_key() {
    let mut pair = Pair::begun(1);
    for _ in 0..10 {
        pair.happens(Happening::Renewal(0));
        pair.happens(Happening::Renewal(1));
        pair.happens(Happening::Writes(0, 16));
        pair.happens(Happening::Arrives(0));
        pair.happens(Happening::Arrives(0));
        assert_eq!(pair.ends[0].read, pair.ends[0].wrote[..pair.ends[0].read.len()]);
        assert_eq!(pair.ends[0].read.len(), pair.ends[0].wrote.len());
    }
}

#[test]
fn the_older_of_two_streams_in_a_lane_says_nothing_more_on_it() {
    let mut pair = Pair::begun(1);
    pair.ends[1].stream.lane.as_mut().unwrap().silence();
    pair.air.clear();
    for _ in 0..3 {
        pair.happens(Happening::Writes(0, 16));
        pair.happens(Happening::Arrives(0));
    }
    pair.happens(Happening::Writes(0, 300));
    pair.happens(Happening::Quic(1, 1000));
    assert!(pair.air.iter().all(|way| way.to == 1), "{} packets", pair.air.len());
    pair.ends(true);
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order_whatever_happens_to_packets(
        happenings in proptest::collection::vec(happening(), 0..300),
        arrives: bool,
    ) {
        let mut pair = Pair::begun(u32::MAX - 100);
        happenings.into_iter().for_each(|happening| pair.happens(happening));
        pair.ends(arrives);
    }
}
