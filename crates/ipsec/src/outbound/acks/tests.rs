use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use strait_wire::Protocol;
use strait_wire::ip::{Packet, Version};
use strait_wire::tcp::Segment;

use super::*;
use crate::sample::Shape;

/// What a receiver of segments tells next.
#[derive(Clone, Copy, Debug)]
enum Tell {
    /// So many more segments came in order.
    More(u32),
    /// One came out of order, so many behind the first that is missing.
    Behind(u32),
    /// One came that was there already.
    Twice,
    /// The application reads, or it does not.
    Window(u16),
    /// A mark of congestion came, or no more.
    Echo(bool),
    /// It sends data of its own.
    Data(u8),
    /// An acknowledgement of before is overtaken.
    Late(u32),
    /// The link takes one packet.
    Leave,
}

fn tell() -> impl Strategy<Value = Tell> {
    prop_oneof![
        6 => (1..4_u32).prop_map(Tell::More),
        6 => (1..30_u32).prop_map(Tell::Behind),
        1 => Just(Tell::Twice),
        1 => (400..404_u16).prop_map(Tell::Window),
        1 => any::<bool>().prop_map(Tell::Echo),
        1 => (1..50_u8).prop_map(Tell::Data),
        1 => (1..5_u32).prop_map(Tell::Late),
        3 => Just(Tell::Leave),
    ]
}

const LEN: u32 = 1_000;

/// A receiver that tells what came.
struct Teller {
    seq: u32,
    next: u32,
    window: u16,
    echo: bool,
    clock: u32,
    /// Segments that came out of order, the last first.
    behind: VecDeque<u32>,
    features: [bool; 2],
}

impl Teller {
    fn packet(&self, ack: u32, twice: Option<u32>, payload: usize) -> Vec<u8> {
        let [sacks, stamps] = self.features;
        let mut options = Vec::new();
        if stamps {
            options.extend([1, 1, 8, 10]);
            options.extend([self.clock, self.clock / 2].map(u32::to_be_bytes).concat());
        }
        let behind = self.behind.iter().filter(|first| **first >= ack);
        let ranges: Vec<u32> = twice.iter().chain(behind).copied().take(3).collect();
        if sacks && !ranges.is_empty() {
            options.extend([1, 1, 5, u8::try_from(2 + 8 * ranges.len()).unwrap()]);
            let edges = ranges.iter().flat_map(|first| [*first, first.wrapping_add(LEN)]);
            options.extend(edges.flat_map(u32::to_be_bytes));
        }
        let mut shape = Shape::new(Version::V4, Protocol::TCP, vec![7; payload]);
        (shape.seq, shape.ack, shape.window, shape.options) = (self.seq, ack, self.window, options);
        shape.flags |= if self.echo { 0x40 } else { 0 };
        shape.packet()
    }

    fn tell(&mut self, tell: Tell) -> Option<Vec<u8>> {
        self.clock += 1;
        match tell {
            Tell::More(count) => {
                self.next += count * LEN;
                while let Some(at) = self.behind.iter().position(|first| *first <= self.next) {
                    let first = self.behind.remove(at).unwrap();
                    self.next = self.next.max(first + LEN);
                }
            }
            Tell::Behind(by) => {
                let first = self.next + by * LEN;
                self.behind.retain(|other| *other != first);
                self.behind.push_front(first);
            }
            Tell::Twice => return Some(self.packet(self.next, Some(self.next - LEN), 0)),
            Tell::Window(window) => self.window = window,
            Tell::Echo(echo) => self.echo = echo,
            Tell::Data(len) => {
                let packet = self.packet(self.next, None, len.into());
                self.seq += u32::from(len);
                return Some(packet);
            }
            Tell::Late(by) => return Some(self.packet(self.next - by * LEN, None, 0)),
            Tell::Leave => return None,
        }
        Some(self.packet(self.next, None, 0))
    }
}

/// What the sender of those segments knows after it got acknowledgements.
#[derive(Debug, Default, PartialEq)]
struct Known {
    highest: u32,
    window: u16,
    /// Segments behind the highest number that came.
    came: BTreeSet<u32>,
    /// Repeats of each number, of which a sender counts three.
    repeats: BTreeMap<u32, u8>,
    twice: Vec<u32>,
    echoes: Vec<u8>,
    stamps: u32,
    data: Vec<(u32, usize)>,
}

impl Known {
    fn take(&mut self, packet: &[u8]) {
        let packet = Packet::parse(packet).unwrap();
        let segment = Segment::parse(packet.payload()).unwrap();
        let (ack, window) = (segment.ack(), segment.window());
        if !segment.payload().is_empty() {
            self.data.push((segment.seq(), segment.payload().len()));
        } else if (ack, window) == (self.highest, self.window) {
            let repeats = self.repeats.entry(ack).or_default();
            *repeats = (*repeats + 1).min(3);
        }
        if ack >= self.highest {
            (self.highest, self.window) = (ack, window);
        }
        let echo = segment.flags().bits() & 0xc0;
        if self.echoes.last() != Some(&echo) {
            self.echoes.push(echo);
        }
        let mut options = segment.options();
        while let [kind, len, ..] = *options {
            let body = if kind == 1 { &[] } else { &options[2..usize::from(len)] };
            let word = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap());
            match kind {
                8 => self.stamps = self.stamps.max(word(0)),
                5 => (0..body.len() / 8).for_each(|range| {
                    let first = word(8 * range);
                    if first < ack {
                        self.twice.push(first);
                    }
                    self.came.insert(first);
                }),
                _ => {}
            }
            options = &options[if kind == 1 { 1 } else { usize::from(len) }..];
        }
        self.came.retain(|first| *first >= self.highest);
    }
}

/// What leaves of what is told, in order, where the last that waits may be replaced; and how many were.
fn thinned(packets: &[Option<Vec<u8>>]) -> (Vec<Vec<u8>>, usize) {
    let (mut flows, mut replaced) = (AckFlows::default(), 0);
    let (mut waiting, mut left) = (VecDeque::<(AckRank, Vec<u8>)>::new(), Vec::new());
    let read = |bytes: &[u8]| Acknowledgement::of(&Packet::parse(bytes).unwrap()).unwrap();
    for packet in packets {
        let Some(packet) = packet else {
            left.extend(waiting.pop_front().map(|(_, packet)| packet));
            continue;
        };
        let ack = read(packet);
        let rank = flows.note(1, &ack);
        if waiting.back().is_some_and(|(before, older)| before.yields(&read(older), &ack)) {
            waiting.pop_back();
            replaced += 1;
        }
        waiting.push_back((rank, packet.clone()));
    }
    left.extend(waiting.into_iter().map(|(_, packet)| packet));
    (left, replaced)
}

fn teller(features: [bool; 2]) -> Teller {
    Teller { seq: 5, next: 100_000, window: 400, echo: false, clock: 10, behind: VecDeque::new(), features }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn sender_knows_the_same_whatever_acknowledgements_were_replaced(
        tells in proptest::collection::vec(tell(), 1..120),
        features in any::<[bool; 2]>(),
    ) {
        let mut teller = teller(features);
        let packets: Vec<_> = tells.iter().map(|tell| teller.tell(*tell)).collect();
        let (left, replaced) = thinned(&packets);
        let (mut all, mut few) = (Known::default(), Known::default());
        packets.iter().flatten().for_each(|packet| all.take(packet));
        left.iter().for_each(|packet| few.take(packet));
        prop_assert_eq!(packets.iter().flatten().count(), left.len() + replaced);
        prop_assert_eq!(all, few);
    }
}

#[test]
fn a_run_of_acknowledgements_becomes_the_last() {
    let mut teller = teller([true, true]);
    let packets: Vec<_> = (0..50).map(|_| teller.tell(Tell::More(2))).collect();
    let (left, replaced) = thinned(&packets);
    // Of the first it is not known what was before it.
    assert_eq!((left.len(), replaced), (2, 48));
    assert_eq!(Some(&left[1]), packets[49].as_ref());
}

#[test]
fn three_repeats_stay_and_ranges_of_the_rest_are_joined() {
    for (features, stay) in [([true, true], 2 + 3 + 1), ([false, true], 2 + 20)] {
        let mut teller = teller(features);
        let mut packets: Vec<_> = (0..2).map(|_| teller.tell(Tell::More(1))).collect();
        packets.extend((1..=2).chain([1; 18]).map(|by| teller.tell(Tell::Behind(by))));
        assert_eq!(thinned(&packets).0.len(), stay, "{features:?}");
    }
}
