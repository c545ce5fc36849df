//! Readers against captures that are written here, whole, damaged and cut short.

mod files;
mod traces;
mod writer;

use std::io::{self, Read};

use proptest::prelude::*;

use super::*;
use writer::{Block, Taken, pcap, pcapng};

/// A source that gives little at a time, as pipes do.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let len = room.len().min(self.1);
        self.0.read(&mut room[..len])
    }
}

/// All frames, and how reading ended.
fn read_from(source: impl Read) -> (Vec<Taken>, Result<(), ReadError>) {
    let mut frames = Vec::new();
    let mut reader = match CaptureReader::open(source) {
        Ok(reader) => reader,
        Err(error) => return (frames, Err(error)),
    };
    loop {
        match reader.frame() {
            Ok(Some(CapturedFrame { at, link, bytes, len })) => {
                frames.push(Taken { nanos: at.as_nanos(), link: link.0, bytes: bytes.to_vec(), len });
            }
            Ok(None) => return (frames, Ok(())),
            Err(error) => return (frames, Err(error)),
        }
    }
}

fn read(bytes: &[u8]) -> (Vec<Taken>, Result<(), ReadError>) {
    read_from(bytes)
}

fn taken(nanos: u64, bytes: &[u8]) -> Taken {
    Taken { nanos, link: 1, bytes: bytes.to_vec(), len: bytes.len() }
}

/// Every prefix of a capture gives a prefix of its frames, and says so when it ends within something.
fn sweep(whole: &[u8]) {
    let (all, end) = read(whole);
    assert!(end.is_ok(), "{end:?}");
    let mut whole_prefixes = 0;
    // Fewer bytes than tell what it is are an ordinary file.
    for len in 4..whole.len() {
        let (frames, end) = read(&whole[..len]);
        assert!(all.starts_with(&frames), "{len} bytes");
        match end {
            Ok(()) => whole_prefixes += 1,
            Err(ReadError::CutShort { at, .. }) => assert!(at < len as u64, "{len} bytes: {at}"),
            Err(other) => panic!("{len} bytes: {other}"),
        }
    }
    // Only between two records is nothing missing.
    assert!((all.len()..=all.len() + 3).contains(&whole_prefixes), "{whole_prefixes}");
}

fn frames() -> impl Strategy<Value = Vec<Taken>> {
    let frame = (0..u64::from(u32::MAX), prop::collection::vec(any::<u8>(), 0..100), 0_usize..100);
    let frame = frame.prop_map(|(micros, bytes, more)| {
        let len = bytes.len() + more;
        Taken { nanos: micros * 1_000, link: 1, bytes, len }
    });
    prop::collection::vec(frame, 0..8)
}

proptest! {
    #[test]
    fn pcap_round_trip(frames in frames(), big: bool, nanos: bool, step in 1_usize..60) {
        let bytes = pcap(&frames, big, nanos);
        let (read, end) = read_from(Trickle(&bytes, step));
        prop_assert!(end.is_ok(), "{:?}", end);
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn pcapng_round_trip(sections in prop::collection::vec((frames(), any::<bool>()), 1..4), step in 1_usize..60) {
        let bytes: Vec<u8> = sections.iter().flat_map(|(frames, big)| {
            let blocks = [Block::interface(1, 6), Block::other()].into_iter();
            pcapng(&blocks.chain(frames.iter().cloned().map(Block::enhanced)).collect::<Vec<_>>(), *big)
        }).collect();
        let (read, end) = read_from(Trickle(&bytes, step));
        prop_assert!(end.is_ok(), "{:?}", end);
        let expected: Vec<Taken> = sections.into_iter().flat_map(|(frames, _)| frames).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn any_bytes_after_a_header_terminate(bytes in prop::collection::vec(any::<u8>(), 0..200), big: bool) {
        for head in [pcap(&[], big, false), pcapng(&[Block::interface(1, 9)], big)] {
            let whole = [head, bytes.clone()].concat();
            let (frames, _) = read(&whole);
            prop_assert!(frames.iter().map(|frame| frame.bytes.len()).sum::<usize>() <= bytes.len());
        }
    }
}

#[test]
fn captures_are_told_by_content() {
    let frames = [taken(1_000, b"abc")];
    for big in [false, true] {
        for nanos in [false, true] {
            assert_eq!(
                CaptureReader::open(&pcap(&frames, big, nanos)[..]).unwrap().kind(),
                CaptureKind::Pcap
            );
        }
        assert_eq!(CaptureReader::open(&pcapng(&[], big)[..]).unwrap().kind(), CaptureKind::Pcapng);
    }
    assert_eq!(CaptureReader::open(&b"0.5 64\n0.75 65\n"[..]).unwrap().kind(), CaptureKind::Trace);
    assert_eq!(CaptureReader::open(&b"whatever"[..]).unwrap().kind(), CaptureKind::File);
    for packed in [&[0x1f, 0x8b, 8][..], &[0x28, 0xb5, 0x2f, 0xfd], b"\xfd7zXZ\0", b"BZh9"] {
        let reader = CaptureReader::open(packed).unwrap();
        assert_eq!((reader.kind(), reader.is_file()), (CaptureKind::Packed, true));
    }
    assert!(matches!(CaptureReader::open(&b""[..]), Err(ReadError::Empty)));
    let patched = [0x34, 0xcd, 0xb2, 0xa1].repeat(6);
    let patched = CaptureReader::open(&patched[..]);
    assert!(matches!(patched, Err(ReadError::Unsupported(_))));
}

#[test]
fn a_capture_cut_short_gives_what_was_there() {
    let frames = [taken(1_000, b"first"), taken(2_000, b"second"), taken(3_000, b"")];
    sweep(&pcap(&frames, false, false));
    let blocks: Vec<Block> = [Block::interface(1, 9), Block::other()]
        .into_iter()
        .chain(frames.into_iter().map(Block::enhanced))
        .collect();
    sweep(&pcapng(&blocks, true));
}

#[test]
fn frames_are_kept_in_part_and_claims_are_not_believed_beyond_that() {
    let mut short = taken(0, b"abc");
    for len in [3, 4, 1_514, u32::MAX as usize] {
        short.len = len;
        assert_eq!(read(&pcap(&[short.clone()], false, false)).0, [short.clone()]);
    }
    // Captured more than there was.
    let mut bytes = pcap(&[taken(0, b"abc")], false, false);
    bytes[24 + 12] = 2;
    assert_eq!(read(&bytes).0, [taken(0, b"abc")]);
}

#[test]
fn absurd_lengths_end_the_reading() {
    let whole = pcap(&[taken(1, b"abc"), taken(2, b"def")], false, false);
    for absurd in [262_145_u32, u32::MAX] {
        let mut bytes = whole.clone();
        bytes[24 + 16 + 3 + 8..][..4].copy_from_slice(&absurd.to_le_bytes());
        let (frames, end) = read(&bytes);
        assert_eq!(frames.len(), 1);
        let Err(ReadError::Malformed { at: 43, value, .. }) = end else { panic!("{end:?}") };
        assert_eq!(value, u64::from(absurd));
    }
    // The most that is believed, and is not there.
    let mut bytes = whole;
    bytes[24 + 16 + 3 + 8..][..4].copy_from_slice(&262_144_u32.to_le_bytes());
    assert!(matches!(read(&bytes).1, Err(ReadError::CutShort { at: 43, .. })));
}

#[test]
fn the_longest_frames_pass_one_after_another() {
    let long = taken(0, &[7; FRAME_MAX]);
    let frames = vec![long; 5];
    assert!(read(&pcap(&frames, false, false)).0 == frames);
    let blocks = std::iter::once(Block::interface(1, 6)).chain(frames.iter().cloned().map(Block::enhanced));
    assert!(read(&pcapng(&blocks.collect::<Vec<_>>(), false)).0 == frames);
}

#[test]
fn packets_of_every_kind_and_interface() {
    let mut simple = taken(5_000, b"simple");
    let mut obsolete = taken(7_000, b"obsolete");
    (simple.len, obsolete.len) = (80, 90);
    let second = Taken { link: 101, ..taken(5_000, b"enhanced") };
    let bytes = pcapng(
        &[
            Block::interface(1, 6),
            Block::interface(101, 9),
            Block::enhanced_on(1, second.clone(), 5_000),
            Block::simple(simple.clone()),
            Block::obsolete(obsolete.clone()),
        ],
        false,
    );
    // A simple packet has no length of what was captured: the block's and the interface's say.
    simple.bytes.resize(8, 0);
    assert_eq!(read(&bytes).0, [second, simple, obsolete]);
}

#[test]
fn blocks_that_contradict_themselves() {
    let good = [Block::interface(1, 6), Block::enhanced(taken(0, b"abcd"))];
    let sections = pcapng(&[], false).len();
    let interface = pcapng(&good[..1], false).len() - sections;
    let packet = sections + interface;
    for (what, at, value) in [
        ("the length of a block", packet + 4, 13_u32),
        ("the length of a block", packet + 4, 8),
        ("the second length of a block", packet + 4, 40),
        ("a packet's interface, which no block describes", packet + 8, 1),
        ("the captured length of a packet", packet + 8 + 12, 17),
        ("the length of an interface's description", sections + 4, 12),
    ] {
        let mut bytes = pcapng(&good, false);
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes.extend([0; 100]);
        let end = read(&bytes).1;
        let Err(ReadError::Malformed { what: said, .. }) = &end else { panic!("{what}: {end:?}") };
        assert_eq!(*said, what);
    }
    let many = vec![Block::interface(1, 6); 4_097];
    assert!(matches!(read(&pcapng(&many, false)).1, Err(ReadError::Malformed { value: 4_097, .. })));
}
