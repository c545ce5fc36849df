//! Seeds of what is inside ESP: blocks, headers, whole payloads, super-packets.

use strait_compress::headers::Coder;
use strait_sim::FlowShape;
use strait_wire::tcp::TcpFlags;
use strait_wire::{Cpi, Protocol, aggfrag, block, ipcomp, probe, vnet};

use super::Seed;
use super::packets::{datagram, shapes, tcp, v4, v6};

/// Blocks by hand, behind their codec and a cap: the library's own output may change with its version.
pub fn expand_seeds() -> Vec<Seed> {
    let seed = |codec: u8, cap: u16, block: &[u8]| [&[codec][..], &cap.to_be_bytes(), block].concat();
    let own_codes = [
        0x75, 0xcd, 0xc1, 0x09, 0x80, 0x30, 0x10, 0x44, 0xd1, 0x56, 0xb6, 0x00, 0xb1, 0x0a, 0x2f, 0x82, 0x4d,
        0x24, 0x3a, 0x31, 0x8b, 0x31, 0x2b, 0xd9, 0x95, 0x60, 0xf7, 0x92, 0x93, 0x08, 0x7a, 0x7e, 0x7f, 0x98,
        0xd1, 0xa8, 0x3a, 0x25, 0x8b, 0x20, 0x0f, 0x35, 0x92, 0x40, 0xc6, 0x3b, 0xb4, 0x23, 0x7e, 0xa4, 0x4a,
        0xf9, 0x23, 0xb7, 0xa2, 0x41, 0x65, 0x5d, 0x64, 0xff, 0x92, 0x20, 0x92, 0x58, 0x63, 0x86, 0xbe, 0x87,
        0x38, 0x64, 0x8e, 0x2d, 0xf0, 0x48, 0x8c, 0xf0, 0x6d, 0x9c, 0xe7, 0x82, 0xe5, 0x4c, 0x6c, 0xd7, 0x2b,
        0x50, 0x38, 0x95, 0xdc, 0x8a, 0x89, 0xd7, 0x68, 0x3f, 0x36, 0xb8, 0xb2, 0xb5, 0xdf, 0xfe, 0x06,
    ];
    vec![
        ("expand", "none", seed(0, 5, b"hello")),
        ("expand", "deflate-stored", seed(1, 100, b"\x01\x05\x00\xfa\xffhello")),
        ("expand", "deflate-fixed", seed(1, 100, b"\xcb\x48\xcd\xc9\xc9\x07\x00")),
        ("expand", "deflate-own-codes", seed(1, 300, &own_codes)),
        ("expand", "lz4-match", seed(2, 20, b"\x1aa\x01\x00\x50aaaaa")),
        ("expand", "lz4-over-cap", seed(2, 19, b"\x1aa\x01\x00\x50aaaaa")),
        ("expand", "zstd-stored", seed(3, 100, b"\x00\x00\x29\x00\x00hello")),
        ("expand", "zstd-repeat", seed(3, 1_400, b"\x00\x00\x43\x1f\x00x")),
        ("expand", "lzs-literal", seed(4, 100, b"\x30\xe0\x00")),
        ("expand", "lzs-string", seed(4, 10, b"\x30\xe0\x7c\x70\x00")),
        ("expand", "lzs-over-cap", seed(4, 9, b"\x30\xe0\x7c\x70\x00")),
    ]
}

pub fn compress_round_trip_seeds() -> Vec<Seed> {
    let log = b"GET /index.html 200\nGET /style.css 200\nGET /icon.png 404\n".repeat(3);
    let seed = |method: u8, room: u16| [&[method][..], &room.to_be_bytes(), &log].concat();
    vec![
        ("compress_round_trip", "deflate", seed(2, 170)),
        ("compress_round_trip", "lz4", seed(4, 170)),
        ("compress_round_trip", "zstd", seed(7, 170)),
        ("compress_round_trip", "lzs-fast", seed(9, 170)),
        ("compress_round_trip", "lzs-thorough", seed(10, 170)),
        ("compress_round_trip", "no-room", seed(7, 20)),
        ("compress_round_trip", "much-room", seed(4, 1_000)),
    ]
}

/// Packets of a bundle, of one flow and of several.
fn bundles() -> [(&'static str, Vec<u8>); 5] {
    let [a, b] = shapes();
    let stream = |shape: &FlowShape| -> Vec<u8> {
        (0..4).flat_map(|at| shape.tcp(1 + at * 4, TcpFlags::PSH, b"data")).collect()
    };
    let stamps = |at: u8| [1, 1, 8, 10, 0, 0, 0, at, 0, 0, 0, 7];
    let stamped = (0..4).flat_map(|at| v4(Protocol::TCP, 0x4000, &tcp(0x10, &stamps(at), &[]))).collect();
    let sack = [1, 1, 5, 10, 0, 0, 0, 9, 0, 0, 0, 12];
    let options = (0..3).flat_map(|_| v6(Protocol::TCP, &tcp(0x12, &sack, b"ok"))).collect();
    let others = [
        v4(Protocol::ICMP, 0, &[8, 0, 0xf7, 0xfd, 0, 1, 0, 1]),
        v4(Protocol::UDP, 0x2000, &datagram(b"first piece")),
        v6(Protocol::HOP_BY_HOP, &[17, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let mixed = [stream(&a), stream(&b), a.udp(b"query"), b.udp(b"query"), b"no packet".to_vec()];
    [
        ("stream", stream(&a)),
        ("timestamps", stamped),
        ("selective", options),
        ("others", others.concat()),
        ("mixed", mixed.concat()),
    ]
}

pub fn headers_round_trip_seeds() -> Vec<Seed> {
    bundles().map(|(name, packets)| ("headers_round_trip", name, packets)).to_vec()
}

pub fn headers_expand_seeds() -> Vec<Seed> {
    let seed = |(name, packets): (&'static str, Vec<u8>)| {
        let mut coded = vec![0; packets.len()];
        let len = Coder::new().encode(&packets, &mut coded).unwrap_or(0);
        ("headers_expand", name, [&1_000_u16.to_be_bytes()[..], &coded[..len]].concat())
    };
    bundles().map(seed).to_vec()
}

pub fn ipcomp_payload_seeds() -> Vec<Seed> {
    let log = b"GET /index.html 200\nGET /style.css 200\nGET /icon.png 404\n".repeat(3);
    let seed = |choice: u8, payload: &[u8]| [&[choice, 1, 0][..], payload].concat();
    vec![
        ("ipcomp_payload", "deflate", seed(0, &log)),
        ("ipcomp_payload", "deflate-beyond-the-window", seed(0xf0, &log)),
        ("ipcomp_payload", "deflate-stream", seed(0, b"\xcb\x48\xcd\xc9\xc9\x07\x00")),
        ("ipcomp_payload", "lzs", seed(1, &log)),
        ("ipcomp_payload", "lzs-repeated", seed(0xf1, &log)),
        ("ipcomp_payload", "lzs-stream", seed(1, b"\x30\xe0\x7c\x70\x00")),
    ]
}

/// Records for the target `datagram`: kind, traffic class, bytes.
fn records(records: &[(u8, u8, Vec<u8>)]) -> Vec<u8> {
    let mut seed = vec![1];
    for (kind, tos, bytes) in records {
        let [high, low] = u16::try_from(bytes.len()).unwrap().to_be_bytes();
        seed.extend_from_slice(&[*kind, *tos, high, low]);
        seed.extend_from_slice(bytes);
    }
    seed
}

pub fn datagram_seeds() -> Vec<Seed> {
    let [v4, v6] = shapes();
    let (one, two) = (v4.udp(b"one of some packets"), v6.tcp(7, TcpFlags::PSH, b"another"));
    let packets = [&one[..], &two].concat();
    let headed = |header: &dyn Fn(&mut [u8]), len: usize, rest: &[u8]| {
        let mut payload = [&vec![0; len][..], rest].concat();
        header(&mut payload);
        payload
    };
    let plain = |offset, rest: &[u8]| {
        headed(&|buf| aggfrag::emit_plain(buf, offset).unwrap(), aggfrag::PLAIN_LEN, rest)
    };
    let part = |part, parts, codec, rest: &[u8]| {
        let header = block::Header { codec, kind: block::BlockKind::Alone, id: 7, part, parts };
        headed(&|buf| header.emit(buf).unwrap(), block::HEADER_LEN, rest)
    };
    let (front, back) = packets.split_at(60);
    let mut coded = vec![0; packets.len()];
    let len = Coder::new().encode(&packets, &mut coded).unwrap();
    coded.truncate(len);
    let request = probe::Probe { kind: probe::ProbeKind::Request, id: 1, size: 1400 };
    let compressed = ipcomp::Header { next: Protocol::IPIP, cpi: Cpi::DEFLATE };
    let stored = [&[1, one.len() as u8, 0, !(one.len() as u8), 0xff][..], &one].concat();
    let stream: Vec<_> = (0..3).map(|at| (0, 0, v4.tcp(1 + at * 4, TcpFlags(0), b"data"))).collect();
    vec![
        ("datagram", "packets", records(&[(0, 0, one.clone()), (1, 2, two.clone())])),
        ("datagram", "stream", records(&stream)),
        ("datagram", "bundle", records(&[(2, 0, plain(0, &packets))])),
        ("datagram", "fragment", records(&[(2, 0, plain(0, &front[..40])), (2, 0, plain(7, &one[40..]))])),
        ("datagram", "block", records(&[(3, 0, part(0, 1, 0, &packets))])),
        ("datagram", "coded-headers", records(&[(3, 0, part(0, 1, 0x80, &coded))])),
        ("datagram", "parts", records(&[(3, 0, part(1, 2, 0, back)), (3, 2, part(0, 2, 0, front))])),
        ("datagram", "repeat", records(&[(3, 0, part(0, 1, 3, b"\x00\x00\x43\x1fE"))])),
        (
            "datagram",
            "probe",
            records(&[(4, 0, headed(&|buf| request.emit(buf).unwrap(), probe::LEN, &[0; 9]))]),
        ),
        (
            "datagram",
            "ipcomp",
            records(&[(5, 0, headed(&|buf| compressed.emit(buf).unwrap(), ipcomp::HEADER_LEN, &stored))]),
        ),
        (
            "datagram",
            "strangers",
            records(&[
                (6, 0, vec![0; 9]),
                (7, 0, vec![0; 9]),
                (40, 0, vec![4; 100]),
                (20, 0, vec![0xc0; 50]),
            ]),
        ),
    ]
}

pub fn super_packet_seeds() -> Vec<Seed> {
    let seed = |bits: u8, (packet, header): (Vec<u8>, vnet::Header)| {
        let mut head = [0; vnet::LEN];
        header.emit(&mut head);
        [&[bits][..], &head, &packet].concat()
    };
    let [v4, v6] = shapes();
    let whole = |packet| (packet, vnet::Header::default());
    let text = b"a line of text that repeats\n".repeat(60);
    let mut late = v6.udp_super(&text[..100], 0);
    late.1.gso_type = vnet::GSO_NONE;
    vec![
        ("super_packet", "whole", seed(0, whole(v4.udp(b"as it is")))),
        ("super_packet", "checksum-to-come", seed(2, late)),
        ("super_packet", "tcp-v4", seed(0, v4.tcp_super(u32::MAX, &text, 500))),
        ("super_packet", "tcp-v6-paced", seed(1, v6.tcp_super(9, &text, 700))),
        ("super_packet", "udp-compressed", seed(17, v4.udp_super(&text, 600))),
        ("super_packet", "tcp-ipcomp", seed(24, v4.tcp_super(9, &text, 600))),
        ("super_packet", "too-long-a-step", seed(4, v4.tcp_super(9, &text, 1500))),
        ("super_packet", "short-steps", seed(5, v6.udp_super(&text, 9))),
    ]
}
