//! Seeds of what modems and dialled lines compress.

use strait_clock::{Random, Time};
use strait_sim::{IphcCompressor, IphcPacket, V42bisEncoder, V42bisSettings, VjCompressor, VjPacket};
use strait_wire::Protocol;

use super::Seed;
use super::packets::{datagram, tcp, v4};

/// Each with a mode of its own: what a modem sends, and what is compressed.
pub fn v42bis_seeds() -> Vec<Seed> {
    let lines: Vec<u8> =
        (0..400).flat_map(|line| format!("-rw-r--r-- {} file{line}\n", line * 37).into_bytes()).collect();
    let mut random = Random::new(5);
    let noise: Vec<u8> = (0..1500).map(|_| random.next_u64() as u8).collect();
    let mixed = [&lines[..], &noise, &lines].concat();
    let sent = |settings: V42bisSettings| {
        let (mut encoder, mut out) = (V42bisEncoder::new(settings), Vec::new());
        for part in mixed.chunks(5000) {
            part.iter().for_each(|octet| encoder.push(*octet, &mut out));
            encoder.flush(&mut out);
        }
        encoder.reset(&mut out);
        out
    };
    let small = V42bisSettings::new(512, 6).unwrap();
    let with = |first: u8, bytes: &[u8]| [&[first][..], bytes].concat();
    vec![
        ("v42bis", "sent-small", with(0, &sent(small))),
        ("v42bis", "sent", with(3, &sent(V42bisSettings::default()))),
        ("v42bis", "unknown-string", with(0, &[0, 0, 0xff, 1])),
        ("v42bis", "too-wide", with(0, &[0, 0, 2, 0])),
        ("v42bis", "unknown-command", with(0, &[0, 9])),
        ("v42bis", "text", with(7 | 3 << 3, &mixed)),
        ("v42bis", "text-of-a-character", with(5, &[b'u'; 3000])),
    ]
}

/// Packets for both ends, as [`strait_fuzz::vj::check`] reads them.
pub fn vj_seeds() -> Vec<Seed> {
    let segment = |seq: u8, flags: u8, urgent: u8, payload: &[u8]| {
        let mut segment = tcp(flags, &[], payload);
        (segment[7], segment[19]) = (seq, urgent);
        v4(Protocol::TCP, 0x4000, &segment)
    };
    let packets = [
        segment(1, 0x18, 0, b"a"),
        segment(2, 0x18, 0, b"b"),
        segment(2, 0x10, 0, b""),
        segment(90, 0x30, 7, b"urgent"),
        segment(91, 0x10, 7, b"text"),
        segment(91, 0x10, 7, b"text"),
        segment(95, 0x02, 7, b""),
        v4(Protocol::UDP, 0, &datagram(b"no TCP")),
    ];
    let of = |kind: u8, packet: &[u8]| [&[kind, u8::try_from(packet.len()).unwrap()][..], packet].concat();
    let mut compressor = VjCompressor::default();
    let sent = packets.iter().flat_map(|packet| match compressor.compress(packet) {
        VjPacket::Plain(packet) => of(0, &packet),
        VjPacket::Remembered(packet) => of(1, &packet),
        VjPacket::Changed(packet) => of(2, &packet),
    });
    let odd =
        [of(1, b"short"), of(2, &[0x0f, 0, 0]), of(3, b""), of(2, &[0x40, 16, 0, 0]), of(2, &[0x7f, 0, 1])];
    let mut contexts = IphcCompressor::default();
    let flows = [
        v4(Protocol::UDP, 0x4000, &datagram(b"one")),
        v4(Protocol::UDP, 0x4000, &datagram(b"two")),
        v4(Protocol::ESP, 0x4000, &[4, 1, 2, 3, 0, 0, 0, 1, 9, 9]),
        v4(Protocol::ESP, 0x4000, &[4, 1, 2, 3, 0, 0, 0, 2, 8, 8]),
    ];
    let told = flows.iter().flat_map(|packet| match contexts.compress(packet, Time::ZERO) {
        IphcPacket::Plain(packet) => of(4, &packet),
        IphcPacket::Full(packet) => of(5, &packet),
        IphcPacket::Compressed(packet) => of(6, &packet),
    });
    vec![
        ("vj", "contexts", flows.iter().flat_map(|packet| of(4, packet)).collect()),
        ("vj", "told", told.collect()),
        ("vj", "packets", packets.iter().flat_map(|packet| of(0, packet)).collect()),
        ("vj", "sent", sent.collect()),
        ("vj", "odd", odd.concat()),
    ]
}
