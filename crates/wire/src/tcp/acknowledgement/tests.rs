use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::ip::V4Header;

const ACK: u8 = 0x10;

/// A packet with this acknowledgement, as a host makes it.
#[derive(Clone, Debug)]
struct Made {
    tos: u8,
    seq: u32,
    ack: u32,
    window: u16,
    flags: u8,
    reserved: u8,
    options: Vec<u8>,
    payload: usize,
}

fn made(ack: u32) -> Made {
    Made { tos: 0, seq: 7, ack, window: 500, flags: ACK, reserved: 0, options: Vec::new(), payload: 0 }
}

fn stamps(value: u32, echo: u32) -> Vec<u8> {
    [&[NOP, NOP, TIMESTAMPS, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

fn sack(ranges: &[[u32; 2]]) -> Vec<u8> {
    let mut option = vec![NOP, NOP, SACK, u8::try_from(2 + 8 * ranges.len()).unwrap()];
    option.extend(ranges.iter().flatten().flat_map(|edge| edge.to_be_bytes()));
    option
}

impl Made {
    fn packet(&self) -> Vec<u8> {
        let words = u8::try_from(5 + self.options.len() / 4).unwrap();
        let mut segment = [[1, 2], [3, 4]].concat();
        segment.extend(self.seq.to_be_bytes());
        segment.extend(self.ack.to_be_bytes());
        segment.extend([words << 4 | self.reserved, self.flags]);
        segment.extend(self.window.to_be_bytes());
        segment.extend([0; 4]);
        segment.extend(&self.options);
        segment.extend(vec![9; self.payload]);
        let (src, dst) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let len = u32::try_from(segment.len()).unwrap();
        let sum = pseudo(src.into(), dst.into(), Protocol::TCP, len).add_bytes(&segment).finish();
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        let header = V4Header {
            src,
            dst,
            tos: Tos(self.tos),
            id: 1,
            dont_fragment: true,
            protocol: Protocol::TCP,
            payload_len: segment.len(),
        };
        let mut packet = vec![0; 20];
        header.emit(&mut packet).unwrap();
        [packet, segment].concat()
    }

    fn read(&self) -> Option<Acknowledgement> {
        let packet = self.packet();
        let packet = Packet::parse(&packet).unwrap();
        assert!(Acknowledgement::is_intact(&packet));
        Acknowledgement::of(&packet)
    }
}

/// Whether the second tells all of the first.
fn tells(older: &Made, newer: &Made) -> bool {
    newer.read().unwrap().tells_all_of(&older.read().unwrap())
}

#[test]
fn later_number_tells_all_of_a_pure_acknowledgement() {
    let older = made(1_000);
    for newer in [
        made(2_000),
        made(1_000_u32.wrapping_add((1 << 31) - 1)),
        Made { window: 7, ..made(2_000) },
        Made { payload: 30, flags: ACK | 0x08, ..made(2_000) },
        Made { flags: ACK | 0x01, ..made(2_000) },
    ] {
        assert!(tells(&older, &newer) && newer.read().unwrap().advances(&older.read().unwrap()), "{newer:?}");
    }
    assert!(tells(&made(u32::MAX - 5), &made(5)));
}

#[test]
fn news_is_never_told_by_a_later_number_alone() {
    let plain = made(2_000);
    let with = |options: Vec<u8>| Made { options, ..made(1_000) };
    for older in [
        made(3_000),
        Made { payload: 1, ..made(1_000) },
        Made { flags: ACK | 0x01, ..made(1_000) },
        Made { flags: ACK | 0x08, ..made(1_000) },
        Made { flags: ACK | 0x40, ..made(1_000) },
        Made { flags: ACK | 0x80, ..made(1_000) },
        Made { reserved: AE, ..made(1_000) },
        Made { seq: 6, ..made(1_000) },
        Made { tos: 0x03, ..made(1_000) },
        Made { tos: 0x20, ..made(1_000) },
        with(stamps(1, 1)),
        // Beyond what the later one has.
        with(sack(&[[2_500, 2_600]])),
        // Came twice: below the number, or within the second range.
        with(sack(&[[900, 1_000]])),
        with(sack(&[[1_500, 1_600], [1_400, 1_700]])),
        // Other options: TCP-AO, Multipath TCP, one that is cut off, one that comes twice.
        with(vec![29, 4, 1, 1]),
        with(vec![30, 4, 0, 0]),
        with(vec![NOP, NOP, TIMESTAMPS, 10]),
        with([sack(&[[1_100, 1_200]]), sack(&[[1_300, 1_400]])].concat()),
    ] {
        assert!(!tells(&older, &plain), "{older:?}");
    }
    for flags in [ACK | 0x02, ACK | 0x04, ACK | 0x20, 0x01] {
        assert_eq!(Made { flags, ..plain.clone() }.read(), None);
    }
    assert_eq!(Made { reserved: 0x02, ..plain.clone() }.read(), None);
    let stamped = |value, echo| Made { options: stamps(value, echo), ..made(2_000) };
    let older = with(stamps(10, 20));
    assert!(tells(&older, &stamped(10, 20)) && tells(&older, &stamped(11, 25)));
    assert!(!tells(&older, &stamped(9, 25)) && !tells(&older, &stamped(11, 19)) && !tells(&older, &plain));
}

#[test]
fn ranges_are_told_by_the_number_or_by_ranges_around_them() {
    let with = |ack, ranges: &[[u32; 2]]| Made { options: sack(ranges), ..made(ack) };
    let older = with(1_000, &[[1_500, 1_600], [1_800, 1_900]]);
    assert!(tells(&older, &made(1_900)));
    assert!(tells(&older, &with(1_000, &[[1_400, 1_600], [1_800, 1_900]])));
    assert!(tells(&older, &with(1_700, &[[1_800, 2_900]])));
    assert!(!tells(&older, &with(1_000, &[[1_400, 1_600]])));
    assert!(!tells(&older, &with(1_000, &[[1_400, 1_600], [1_800, 1_899]])));
}

#[test]
fn repeats_have_the_same_number_and_window_and_no_data() {
    let repeats = |newer: &Made| newer.read().unwrap().repeats(&made(1_000).read().unwrap());
    assert!(repeats(&made(1_000)) && repeats(&Made { options: sack(&[[2_000, 2_100]]), ..made(1_000) }));
    for newer in [made(1_001), Made { window: 1, ..made(1_000) }, Made { payload: 1, ..made(1_000) }] {
        assert!(!repeats(&newer), "{newer:?}");
    }
}

#[test]
fn wrong_checksum_is_noticed() {
    let packet = made(1_000).packet();
    for at in 20..packet.len() {
        let mut bad = packet.clone();
        bad[at] ^= 4;
        assert!(!Acknowledgement::is_intact(&Packet::parse(&bad).unwrap()), "byte {at}");
    }
}

proptest! {
    #[test]
    fn options_are_read_as_they_were_written(
        value in any::<u32>(),
        echo in any::<u32>(),
        ranges in proptest::collection::vec(any::<[u32; 2]>().prop_filter("not empty", |range| !is_empty(range)), 1..4),
    ) {
        let options = [stamps(value, echo), sack(&ranges)].concat();
        prop_assume!(options.len() <= 40);
        let read = AckOptions::read(&options);
        prop_assert!(read.known && read.stamps == Some([value, echo]));
        prop_assert_eq!(&read.ranges[..ranges.len()], &ranges[..]);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120), front in any::<bool>()) {
        let packet = if front { [&made(5).packet()[..32], &bytes].concat() } else { bytes };
        if let Ok(packet) = Packet::parse(&packet)
            && let Some(ack) = Acknowledgement::of(&packet)
        {
            prop_assert!(!ack.advances(&ack) && (ack.repeats(&ack) == ack.is_pure()));
        }
    }
}
