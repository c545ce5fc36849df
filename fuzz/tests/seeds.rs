//! The seeds, those of the wire targets written by the emitters themselves. `STRAIT_SEEDS=write cargo test --test seeds` writes
//! them; without it the test checks that the committed files are what the emitters write.

#[path = "seeds/files.rs"]
mod files;
#[path = "seeds/login.rs"]
mod login;
#[path = "seeds/ssh.rs"]
mod ssh;

use std::fs;
use std::path::PathBuf;

use strait_clock::Random;
use strait_compress::headers::Coder;
use strait_sim::{FlowShape, NodeId, V42bisEncoder, V42bisSettings, VjCompressor, VjPacket};
use strait_transfer::folder::records::TransferRecord;
use strait_transfer::path::EntryPath;
use strait_transfer::pieces::Subtree;
use strait_wire::aggfrag::{self, CongestionReport};
use strait_wire::delivery::{self, Delivery};
use strait_wire::missing::{MissingRange, MissingRanges};
use strait_wire::repetition::{self, Repetition};
use strait_wire::{Cpi, Protocol, SeqLow, Spi, ah, block, esp, ip, ipcomp, probe, symbol, tcp, udp, vnet};

/// Target, name of the seed, bytes.
type Seed = (&'static str, &'static str, Vec<u8>);

fn v4(protocol: Protocol, fragment_word: u16, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let [f0, f1] = fragment_word.to_be_bytes();
    let mut header = [0x45, 2, l0, l1, 0, 1, f0, f1, 64, protocol.0, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let checksum = ip::v4_header_checksum(&header).to_be_bytes();
    header[10..12].copy_from_slice(&checksum);
    [&header[..], payload].concat()
}

fn v6(next: Protocol, payload: &[u8]) -> Vec<u8> {
    let [l0, l1] = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut header = [0; 40];
    header[..8].copy_from_slice(&[0x60, 0x20, 0, 0, l0, l1, next.0, 64]);
    (header[8], header[9], header[23]) = (0xfd, 0x01, 1);
    (header[24], header[25], header[39]) = (0xfd, 0x01, 2);
    [&header[..], payload].concat()
}

fn tcp(flags: u8, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let offset = u8::try_from((20 + options.len()) / 4).unwrap() << 4;
    let fixed = [0x13, 0x88, 0, 22, 0, 0, 0, 1, 0, 0, 0, 2, offset, flags, 0xff, 0xff, 0, 0, 0, 0];
    [&fixed[..], options, payload].concat()
}

fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&[0; udp::HEADER_LEN][..], payload].concat();
    udp::emit(&mut bytes, 5353, 53, payload.len()).unwrap();
    bytes
}

fn ip_seeds() -> Vec<Seed> {
    let extended = [
        &[Protocol::ROUTING.0, 0, 0, 0, 0, 0, 0, 0][..],
        &[Protocol::FRAGMENT.0, 0, 0, 0, 0, 0, 0, 0],
        &[Protocol::UDP.0, 0, 0, 1, 0, 0, 0, 7],
        &datagram(b"first piece"),
    ]
    .concat();
    let authenticated =
        [&[Protocol::TCP.0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1][..], &tcp(0x10, &[], &[])].concat();
    vec![
        ("ip", "v4-tcp", v4(Protocol::TCP, 0x4000, &tcp(0x18, &[], b"ls\n"))),
        ("ip", "v4-udp", v4(Protocol::UDP, 0, &datagram(b"query"))),
        ("ip", "v4-later-fragment", v4(Protocol::UDP, 0x2005, &[7; 16])),
        ("ip", "v6-tcp", v6(Protocol::TCP, &tcp(0x02, &[2, 4, 5, 0xb4], &[]))),
        ("ip", "v6-extensions", v6(Protocol::HOP_BY_HOP, &extended)),
        ("ip", "v6-ah", v6(Protocol::AH, &authenticated)),
    ]
}

fn transport_seeds() -> Vec<Seed> {
    vec![
        ("transport", "tcp-syn", tcp(0x02, &[2, 4, 5, 0xb4, 1, 3, 3, 7], &[])),
        ("transport", "tcp-data", tcp(0x18, &[], b"GET / HTTP/1.1\r\n\r\n")),
        ("transport", "udp", datagram(b"a query for a name")),
    ]
}

fn esp_seeds() -> Vec<Seed> {
    let mut packet = vec![0x5a; 40];
    esp::Header { spi: Spi(0x0400_0001), seq: SeqLow(1) }.emit(&mut packet).unwrap();
    let mut plaintext = v4(Protocol::UDP, 0, &datagram(b"x"));
    let payload_len = plaintext.len();
    plaintext.resize(payload_len + esp::pad_len(payload_len, 4) + 2, 0);
    esp::emit_trailer(&mut plaintext[payload_len..], Protocol::IPIP).unwrap();
    let mut dummy = vec![0; 257];
    esp::emit_trailer(&mut dummy, Protocol::NO_NEXT).unwrap();
    vec![("esp", "packet", packet), ("esp", "plaintext", plaintext), ("esp", "most-padding", dummy)]
}

fn ah_seeds() -> Vec<Seed> {
    let header = |next: Protocol, payload: &[u8]| {
        let header = ah::Header { next, spi: Spi(0x0400_0001), seq: SeqLow(1) };
        let mut bytes = vec![0; ah::len(16, ah::Align::Eight)];
        header.emit(&mut bytes, 16, ah::Align::Eight).unwrap();
        bytes.extend_from_slice(payload);
        bytes
    };
    // Router alert, record route, loose source route with one hop to go, end of options.
    let options = [148, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 131, 7, 4, 192, 0, 2, 1, 0, 0];
    let mut routed = v4(Protocol::AH, 0, &[&options[..], &header(Protocol::UDP, &datagram(b"x"))].concat());
    routed[0] = 0x4a;
    let chain = [
        &[Protocol::ROUTING.0, 0, 0x3e, 2, 1, 2, 0, 0][..],
        &[Protocol::DEST_OPTS.0, 2, 0, 1, 0, 0, 0, 0, 0xfd, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3],
        &[Protocol::AH.0, 0, 1, 4, 0, 0, 0, 0],
        &header(Protocol::UDP, &datagram(b"x")),
    ];
    vec![
        ("ah", "header", header(Protocol::UDP, &datagram(b"x"))),
        ("ah", "v4-options", routed),
        ("ah", "v6-chain", v6(Protocol::HOP_BY_HOP, &chain.concat())),
    ]
}

fn fragment_seeds() -> Vec<Seed> {
    let with_mtu = |mtu: u16, packet: Vec<u8>| [&mtu.to_be_bytes()[..], &packet].concat();
    let mut options = v4(Protocol::UDP, 0, &[&[148, 4, 0, 0, 7, 3, 4, 0][..], &[7; 100]].concat());
    options[0] = 0x47;
    let routing = [Protocol::UDP.0, 0, 0, 0, 0, 0, 0, 0];
    let first = [&[Protocol::UDP.0, 0, 0, 1, 0, 0, 0, 7][..], &[7; 16]].concat();
    vec![
        ("fragment", "v4-options", with_mtu(76, options)),
        ("fragment", "v4-fragment", with_mtu(60, v4(Protocol::UDP, 0x2003, &[7; 80]))),
        ("fragment", "v4-forbidden", with_mtu(60, v4(Protocol::UDP, 0x4000, &[7; 80]))),
        ("fragment", "v6-routing", with_mtu(100, v6(Protocol::ROUTING, &[&routing[..], &[7; 100]].concat()))),
        ("fragment", "v6-fragment", with_mtu(1280, v6(Protocol::FRAGMENT, &first))),
    ]
}

/// Records of the target `reassembly`: place, length, flags, wait.
fn reassembly_seeds() -> Vec<Seed> {
    let records = |records: &[[u8; 4]]| [&[0][..], &records.concat()].concat();
    let (more, four) = (1, 2);
    let fragment = v4(Protocol::ESP, 0x2000, &[7; 16]);
    vec![
        (
            "reassembly",
            "v4-in-order",
            records(&[[0, 16, four | more, 0], [2, 8, four | more, 0], [3, 5, four, 0]]),
        ),
        (
            "reassembly",
            "v6-backwards",
            records(&[[3, 5, 0, 0], [2, 8, more, 0], [0, 16, more, 0], [0, 16, more, 0]]),
        ),
        ("reassembly", "overlap", records(&[[0, 32, more, 0], [3, 4, 0, 0], [4, 8, more, 0]])),
        (
            "reassembly",
            "marked",
            records(&[[0, 8, 0x30 | more, 0], [1, 1, 0x20, 0], [0, 8, 4 | more, 0], [1, 1, 0x34, 0]]),
        ),
        ("reassembly", "too-late", records(&[[0, 8, more, 0], [1, 1, 0, 255]])),
        ("reassembly", "long", records(&[[0x44, 200, four | more, 0], [0x44, 200, more, 0]])),
        ("reassembly", "raw", [&[1][..], &fragment].concat()),
    ]
}

/// Records of the target `direct`: next header, length, payload.
fn direct_seeds() -> Vec<Seed> {
    let record = |next: Protocol, payload: &[u8]| {
        let [high, low] = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [&[next.0, high, low][..], payload].concat()
    };
    let mut inner = v4(Protocol::UDP, 0, &datagram(b"query"));
    (inner[12..16].copy_from_slice(&[192, 0, 2, 1]), inner[10..12].fill(0));
    let checksum = ip::v4_header_checksum(&inner[..20]).to_be_bytes();
    inner[10..12].copy_from_slice(&checksum);
    let mut compressed = vec![0x5a; 24];
    ipcomp::Header { next: Protocol::IPIP, cpi: Cpi::LZS }.emit(&mut compressed).unwrap();
    let tunnel = |settings: u8| [&[settings][..], &record(Protocol::IPIP, &inner)].concat();
    vec![
        ("direct", "ah-tunnel", tunnel(0b0001)),
        ("direct", "ah-esp-tunnel", tunnel(0b0111)),
        ("direct", "esp-transport", [&[0b1010][..], &record(Protocol::UDP, &datagram(b"query"))].concat()),
        ("direct", "ipcomp-alone", [&[0b1_0000][..], &record(Protocol::IPCOMP, &compressed)].concat()),
        ("direct", "as-it-is", [&[0][..], &record(Protocol(255), &inner)].concat()),
    ]
}

fn ipcomp_seeds() -> Vec<Seed> {
    let header = |cpi| {
        let mut bytes = vec![0x5a; 12];
        ipcomp::Header { next: Protocol::IPIP, cpi }.emit(&mut bytes).unwrap();
        bytes
    };
    vec![("ipcomp", "deflate", header(Cpi::DEFLATE)), ("ipcomp", "negotiated", header(Cpi(61_440)))]
}

fn aggfrag_seeds() -> Vec<Seed> {
    let packets = [v4(Protocol::UDP, 0, &datagram(b"one")), v6(Protocol::TCP, &tcp(0x10, &[], &[]))].concat();
    let mut plain = [&[0; aggfrag::PLAIN_LEN][..], &packets, &[0; 9]].concat();
    aggfrag::emit_plain(&mut plain, 0).unwrap();
    let mut cut = [&[0; aggfrag::PLAIN_LEN][..], &[7; 10], &packets[..50]].concat();
    aggfrag::emit_plain(&mut cut, 10).unwrap();
    let mut inside = [&[0; aggfrag::PLAIN_LEN][..], &[7; 30]].concat();
    aggfrag::emit_plain(&mut inside, 1000).unwrap();
    let report = CongestionReport {
        loss_event_rate: 100,
        rtt: 40_000,
        echo_delay: 500,
        tval: 1,
        techo: 2,
        ..CongestionReport::default()
    };
    let mut congestion = [&[0; aggfrag::CONGESTION_LEN][..], &packets].concat();
    aggfrag::emit_congestion(&mut congestion, 0, &report).unwrap();
    let mut reported = vec![0; aggfrag::CONGESTION_LEN + delivery::LEN];
    aggfrag::emit_congestion(&mut reported, 0, &report).unwrap();
    let counted = Delivery {
        spi: Spi(0x0400_0001),
        gaps: 0,
        datagrams: 90,
        bytes: 126_000,
        highest: 95,
        received_at: 1_234_567,
    };
    counted.emit(&mut reported[aggfrag::CONGESTION_LEN..]).unwrap();
    // The report rides behind packets.
    let mut riding = [&reported[..aggfrag::CONGESTION_LEN], &packets].concat();
    riding.extend(&reported[aggfrag::CONGESTION_LEN..]);
    vec![
        ("aggfrag", "riding-report", riding),
        ("aggfrag", "plain", plain),
        ("aggfrag", "continued-and-cut", cut),
        ("aggfrag", "all-continuation", inside),
        ("aggfrag", "congestion", congestion),
        ("aggfrag", "report", reported),
    ]
}

fn block_seeds() -> Vec<Seed> {
    let packets =
        [v6(Protocol::TCP, &tcp(0x10, &[], b"abc")), v4(Protocol::UDP, 0, &datagram(b"one"))].concat();
    let mut part = [&[0; block::HEADER_LEN][..], &packets].concat();
    block::Header { codec: 3, id: 7, part: 1, parts: 4 }.emit(&mut part).unwrap();
    let cut = packets[..packets.len() - 1].to_vec();
    vec![("block", "part", part), ("block", "expanded", packets), ("block", "cut", cut)]
}

fn symbol_seeds() -> Vec<Seed> {
    let header = symbol::source_header(Protocol::IPIP, 9).unwrap();
    let source = [&header[..], b"a payload", &[0; 3]].concat();
    let of = |covered| {
        let mut bytes = vec![0; symbol::header_len(covered) + source.len()];
        symbol::emit_header(covered, &mut bytes).unwrap().copy_from_slice(&source);
        bytes
    };
    vec![
        ("symbol", "source", source.clone()),
        ("symbol", "few", of(0b1011 << 124)),
        ("symbol", "most", of(u128::MAX)),
    ]
}

/// Each with a mode of its own: what a modem sends, and what is compressed.
fn v42bis_seeds() -> Vec<Seed> {
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
fn vj_seeds() -> Vec<Seed> {
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
    vec![
        ("vj", "packets", packets.iter().flat_map(|packet| of(0, packet)).collect()),
        ("vj", "sent", sent.collect()),
        ("vj", "odd", odd.concat()),
    ]
}

fn repair_seeds() -> Vec<Seed> {
    let mut missing = MissingRanges::new(Spi(0x0400_0001));
    for (first, count) in [(7, 1), (20, 5), (u32::MAX - 1, 3)] {
        assert!(missing.push(MissingRange { first: SeqLow(first), count }));
    }
    let mut request = vec![0; missing.wire_len()];
    missing.emit(&mut request).unwrap();
    let mut again = vec![0; repetition::HEADER_LEN];
    Repetition { next: Protocol::IPIP, distance: 90 }.emit(&mut again).unwrap();
    again.extend(b"a payload");
    let mut notice = vec![0; repetition::NOTICE_LEN];
    repetition::emit_notice(&mut notice, 90, 4).unwrap();
    vec![("repair", "request", request), ("repair", "again", again), ("repair", "notice", notice)]
}

fn probe_demux_vnet_seeds() -> Vec<Seed> {
    let mut request = vec![0; 64];
    probe::Probe { kind: probe::ProbeKind::Request, id: 1, size: 1400 }.emit(&mut request).unwrap();
    let mut answer = vec![0; probe::LEN];
    probe::Probe { kind: probe::ProbeKind::Answer, id: 1, size: 1400 }.emit(&mut answer).unwrap();
    let mut offload = [0; vnet::LEN];
    let header = vnet::Header {
        flags: vnet::NEEDS_CSUM,
        gso_type: vnet::GSO_TCPV4,
        hdr_len: 40,
        gso_size: 1360,
        csum_start: 20,
        csum_offset: 16,
    };
    header.emit(&mut offload);
    vec![
        ("probe_demux_vnet", "request", request),
        ("probe_demux_vnet", "answer", answer),
        ("probe_demux_vnet", "offload", offload.to_vec()),
        ("probe_demux_vnet", "keepalive", vec![0xff]),
        ("probe_demux_vnet", "quic", vec![0xc0; 20]),
        ("probe_demux_vnet", "esp", vec![4; 20]),
        ("probe_demux_vnet", "sessionless", vec![0x10; 20]),
    ]
}

fn icmp_seeds() -> Vec<Seed> {
    let with_mtu = |original: Vec<u8>| [&1280u16.to_be_bytes()[..], &original].concat();
    vec![
        ("icmp", "v4-long", with_mtu(v4(Protocol::UDP, 0x4000, &datagram(&[7; 600])))),
        ("icmp", "v6-long", with_mtu(v6(Protocol::UDP, &datagram(&[7; 1400])))),
        ("icmp", "v4-echo", with_mtu(v4(Protocol::ICMP, 0x4000, &[8, 0, 0, 0, 0, 1, 0, 1]))),
        ("icmp", "v6-error", with_mtu(v6(Protocol::ICMPV6, &[2, 0, 0, 0, 0, 0, 5, 0]))),
    ]
}

/// Blocks by hand, behind their codec and a cap: the library's own output may change with its version.
fn expand_seeds() -> Vec<Seed> {
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

fn compress_round_trip_seeds() -> Vec<Seed> {
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
        (0..4).flat_map(|at| shape.tcp(1 + at * 4, tcp::TcpFlags::PSH, b"data")).collect()
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

fn headers_round_trip_seeds() -> Vec<Seed> {
    bundles().map(|(name, packets)| ("headers_round_trip", name, packets)).to_vec()
}

fn headers_expand_seeds() -> Vec<Seed> {
    let seed = |(name, packets): (&'static str, Vec<u8>)| {
        let mut coded = vec![0; packets.len()];
        let len = Coder::new().encode(&packets, &mut coded).unwrap_or(0);
        ("headers_expand", name, [&1_000_u16.to_be_bytes()[..], &coded[..len]].concat())
    };
    bundles().map(seed).to_vec()
}

fn ipcomp_payload_seeds() -> Vec<Seed> {
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

fn configuration_seeds() -> Vec<Seed> {
    let template = strait_node::config::template(std::path::Path::new("site.key"));
    // Every suggestion of the template taken up: its comments explain, or suggest a line that can be read.
    let suggestion = |line: &str| {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let reads =
            bare.starts_with('[') || bare.split_once(" = ").is_some_and(|(key, _)| !key.contains(' '));
        reads.then(|| format!("{bare}\n"))
    };
    let full: String = template.lines().filter_map(suggestion).collect();
    vec![
        ("configuration", "template", template.clone().into_bytes()),
        ("configuration", "full", full.into_bytes()),
        ("configuration", "misspelt", template.replace("address", "adress").into_bytes()),
        ("configuration", "cut", template.as_bytes()[..template.len() / 2].to_vec()),
    ]
}

fn control_message_seeds() -> Vec<Seed> {
    let field = |tag: u8, value: &[u8]| {
        let [high, low] = u16::try_from(value.len()).unwrap().to_be_bytes();
        [&[tag, high, low], value].concat()
    };
    let terms = [
        field(1, &[4, 0, 0, 1]),
        field(2, &[7]),
        field(3, &[1, 0, 0, 3, 232, 2, 0, 0, 4, 76, 3, 0, 0, 15, 160]),
        field(4, &[15]),
        field(5, &[0, 1, 0, 0]),
        field(6, &[1]),
        field(7, &[0]),
        field(8, &[5, 140]),
    ]
    .concat();
    let rates =
        [field(9, &1_500_000_u64.to_be_bytes()), field(10, &[3, 253, 0, 0, 0, 0, 8, 240, 209, 128])].concat();
    let message = |kind: u8, parts: &[&[u8]]| [&[kind, 1], parts.concat().as_slice()].concat();
    vec![
        ("control_message", "offer", message(1, &[&terms])),
        ("control_message", "accept-with-rates", message(2, &[&terms, &rates])),
        ("control_message", "confirm", message(3, &[])),
        ("control_message", "unknown-field", message(1, &[&field(200, b"later"), &terms])),
        ("control_message", "field-twice", message(1, &[&terms, &field(2, &[1])])),
        ("control_message", "cut", message(1, &[&terms[..20]])),
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

fn shapes() -> [FlowShape; 2] {
    let (a, b) = (NodeId(0), NodeId(1));
    [FlowShape::new(a.inner_v4(5), b.inner_v4(6)), FlowShape::new(a.inner_v6(5), b.inner_v6(6))]
}

fn datagram_seeds() -> Vec<Seed> {
    let [v4, v6] = shapes();
    let (one, two) = (v4.udp(b"one of some packets"), v6.tcp(7, tcp::TcpFlags::PSH, b"another"));
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
        let header = block::Header { codec, id: 7, part, parts };
        headed(&|buf| header.emit(buf).unwrap(), block::HEADER_LEN, rest)
    };
    let (front, back) = packets.split_at(60);
    let mut coded = vec![0; packets.len()];
    let len = Coder::new().encode(&packets, &mut coded).unwrap();
    coded.truncate(len);
    let request = probe::Probe { kind: probe::ProbeKind::Request, id: 1, size: 1400 };
    let compressed = ipcomp::Header { next: Protocol::IPIP, cpi: Cpi::DEFLATE };
    let stored = [&[1, one.len() as u8, 0, !(one.len() as u8), 0xff][..], &one].concat();
    let stream: Vec<_> = (0..3).map(|at| (0, 0, v4.tcp(1 + at * 4, tcp::TcpFlags(0), b"data"))).collect();
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

/// Numbers of 32 bits, the low byte first.
fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A block of pcapng.
fn block_of(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 12).unwrap();
    [&words(&[kind, len])[..], body, &words(&[len])].concat()
}

fn transfer_record_seeds() -> Vec<Seed> {
    let path = EntryPath::new(*b"folder/file \xff").unwrap();
    let held = |first, level| TransferRecord::Held {
        slot: 1,
        subtree: Subtree::new(first, level, [first as u8; 32]).unwrap(),
    };
    let records = [
        TransferRecord::Head { transfer: [7; 16] },
        TransferRecord::Begin { slot: 1, size: Some(5 << 20), version: [2; 8], path: path.clone() },
        held(0, 1),
        held(3, 0),
        held(2, 0),
        held(4, 0),
        TransferRecord::Begin { slot: 2, size: None, version: [0; 8], path },
        held(3, 0),
        held(8, 3),
        held(1 << 42, 42),
        TransferRecord::Dropped { slot: 1 },
    ];
    let mut whole = vec![0];
    records.iter().for_each(|record| record.put(&mut whole));
    let mut bodies = vec![1];
    for record in &records {
        let mut one = Vec::new();
        record.put(&mut one);
        let body = &one[2..one.len() - 8];
        bodies.push(u8::try_from(body.len()).unwrap());
        bodies.extend(body);
    }
    let cut = whole[..whole.len() - 3].to_vec();
    let odd: [(&str, &[u8]); 8] = [
        ("unknown", &[1, 1, 9]),
        ("slot", &[1, 3, 2, 0, 0]),
        ("begin", &[1, 14, 1, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]),
        ("no-size", &[1, 23, 1, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'a']),
        ("path", &[1, 24, 1, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, b'a', b'/']),
        ("dropped", &[1, 6, 3, 0, 0, 0, 1, 0]),
        ("head", &[1, 1, 0]),
        ("long", &[0, 0xff, 0xff, 1]),
    ];
    let level = [&[1, 46, 2, 0, 0, 0, 1, 44, 0, 0, 0, 0, 0, 0, 0, 0][..], &[5; 32]].concat();
    let named = [("whole", whole), ("bodies", bodies), ("cut", cut), ("level", level)];
    let odd = odd.into_iter().map(|(name, bytes)| (name, bytes.to_vec()));
    named.into_iter().chain(odd).map(|(name, bytes)| ("transfer_records", name, bytes)).collect()
}

fn pattern_seeds() -> Vec<Seed> {
    let seeds: [(&str, &[u8]); 6] = [
        ("rules", b"+*/\n+*.c\n/top/\n*\ntop/a.c"),
        ("stars", b"a**z\n**/foo\ndir/***\nfoo/*/bar\n?x\na/b/z"),
        ("sets", b"[a-c]x\n[!a-c]\n[^]]y\n[[:digit:][:alpha:]]*\n[[:none:]]\n[a\n[\\]]\n7up"),
        ("classes", b"[[:alnum:][:upper:][:lower:][:space:][:blank:][:punct:][:xdigit:][:cntrl:][:graph:][:print:]]\n~"),
        ("escapes", b"\\*x*\na\\b\n\\\n*\\\n\n/\n\x1b[2J\xff\xe2\x80\xae/x\\"),
        ("paths", b"+x\na/../b"),
    ];
    seeds.map(|(name, bytes)| ("patterns", name, bytes.to_vec())).to_vec()
}

fn capture_seeds() -> Vec<Seed> {
    let packet = v4(Protocol::UDP, 0, &datagram(b"query"));
    let frame = [&[7; 12][..], &[8, 0], &packet, &[0; 3]].concat();
    let len = u32::try_from(frame.len()).unwrap();
    let head = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1]);
    let pcap = [&head[..], &words(&[1, 5, len, 1_514]), &frame, &words(&[1, 6, len, len]), &frame].concat();
    let section = block_of(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let interface = block_of(1, &words(&[1, 64, 0x0001_0009, 9, 0]));
    let enhanced = block_of(6, &[&words(&[0, 0, 7, len, len])[..], &frame, &[0; 2]].concat());
    let simple = block_of(3, &[&words(&[len])[..], &frame, &[0; 2]].concat());
    vec![
        ("capture", "pcap", pcap),
        ("capture", "pcapng", [section, interface, enhanced, simple].concat()),
        ("capture", "trace-sizes", b"    0.001340  1090 \n    0.001508   174 \n".to_vec()),
        ("capture", "trace-ports", b"0.5 2 1 2436 23 0\n0.6 1 2 23 2436 512\n".to_vec()),
        ("capture", "file", b"anything else".to_vec()),
    ]
}

fn link_layer_seeds() -> Vec<Seed> {
    let packet = v6(Protocol::UDP, &datagram(b"query"));
    let seed = |link: u16, head: &[u8]| [&link.to_be_bytes()[..], head, &packet].concat();
    vec![
        ("link_layer", "ethernet", seed(1, &[&[7; 12][..], &[0x86, 0xdd]].concat())),
        (
            "link_layer",
            "tagged-pppoe",
            seed(1, &[&[7; 12][..], &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 1, 0, 50, 0, 0x57]].concat()),
        ),
        ("link_layer", "linux-any", seed(276, &[&[0x86, 0xdd][..], &[0; 18]].concat())),
        ("link_layer", "loopback", seed(0, &[30, 0, 0, 0])),
        ("link_layer", "raw", seed(101, &[])),
    ]
}

fn super_packet_seeds() -> Vec<Seed> {
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

/// Settings, then operations: 0 sends, 12 releases, 15 lets time pass, 19 delivers, 23 and on are mishaps, 32 has a worker
/// end a job, 36 and on change something. Which of 56 kinds, between whom, and two bytes more.
fn operations_data_seeds() -> Vec<Seed> {
    let seed = |settings: [u8; 4], operations: &[[u8; 4]]| [&settings[..], &operations.concat()].concat();
    let (text, large, whole) = ([0, 0, 0, 0x1d], [0, 0, 3, 0x1f], [0, 0, 1, 0x2f]);
    let (release, pass, deliver) = ([12, 0, 0, 0], [15, 0, 5, 3], [19, 0, 9, 0]);
    vec![
        ("operations_data", "straight", seed([0, 0, 0, 0], &[text, release, deliver])),
        (
            "operations_data",
            "paced",
            seed([0x10, 0, 21, 0], &[text, text, pass, deliver, text, pass, deliver]),
        ),
        (
            "operations_data",
            "parts",
            seed([0, 0, 21, 0], &[large, pass, [26, 0, 0, 0], [23, 0, 4, 0], deliver]),
        ),
        (
            "operations_data",
            "workers",
            seed([0x15, 0, 0, 0], &[whole, whole, release, [32, 0, 1, 0], deliver]),
        ),
        (
            "operations_data",
            "copies",
            seed([0, 0, 0, 8], &[text, release, [25, 0, 2, 0], [30, 0, 3, 40], [29, 0, 5, 2], deliver]),
        ),
        (
            "operations_data",
            "pieces",
            seed([0, 7, 21, 0], &[large, pass, [28, 0, 0, 0], deliver, large, [31, 0, 0, 0], pass]),
        ),
        (
            "operations_data",
            "peer-goes",
            seed(
                [0x15, 0, 5, 0],
                &[text, whole, [40, 0, 0, 0], text, [41, 0, 0, 0], [36, 0, 0, 0], text, pass],
            ),
        ),
        (
            "operations_data",
            "association-changes",
            seed(
                [0x1d, 0, 37, 1],
                &[whole, [53, 2, 175, 0], [53, 2, 123, 0], release, [36, 2, 5, 0], release],
            ),
        ),
        (
            "operations_data",
            "small-blocks-only",
            seed([0, 4, 0, 0], &[[0, 0, 14, 0x17], [0, 0, 3, 0x17], release, deliver]),
        ),
        (
            "operations_data",
            "withdrawn-with-jobs-away",
            seed([0x91, 0, 0, 0], &[[0, 0, 14, 26], [32, 0, 188, 0], [53, 2, 15, 0], [38, 0, 0, 0], release]),
        ),
        (
            "operations_data",
            "rules-and-rates",
            seed(
                [0x40, 0, 9, 4],
                &[text, [46, 0, 7, 0], text, [43, 0, 30, 3], text, [45, 0, 4, 9], pass, [44, 0, 9, 0]],
            ),
        ),
        (
            "operations_data",
            "oddities",
            seed(
                [0, 5, 0, 0],
                &[[51, 0, 2, 0], [52, 0, 1, 0], [52, 0, 1, 1], [50, 0, 1, 200], [50, 0, 2, 1], text],
            ),
        ),
    ]
}

/// Settings, then operations: 0 lets time pass, 7 has nodes talk, 14 sets the weather, 18 and on break something.
fn operations_keys_seeds() -> Vec<Seed> {
    let seed = |settings: [u8; 3], operations: &[[u8; 3]]| [&settings[..], &operations.concat()].concat();
    let talk = [7, 0, 50];
    vec![
        ("operations_keys", "quiet", seed([1, 0, 2], &[])),
        ("operations_keys", "few-packets-a-key", seed([2, 0, 4], &[talk, talk, talk])),
        ("operations_keys", "short-lifetime", seed([3, 3, 0], &[[7, 0, 200], [0, 0, 15]])),
        ("operations_keys", "losses", seed([4, 0, 2], &[[18, 0, 3], [18, 1, 9], talk, [14, 0, 0x7b], talk])),
        (
            "operations_keys",
            "restart",
            seed([5, 2, 2], &[talk, [20, 1, 0], [11, 0, 0], [0, 0, 4], [20, 0, 0], talk]),
        ),
        (
            "operations_keys",
            "both-move",
            seed([6, 10, 18], &[talk, [22, 0, 0], [22, 1, 0], talk, [31, 0, 1], talk]),
        ),
        (
            "operations_keys",
            "peer-goes",
            seed([7, 0, 10], &[talk, [25, 1, 16], talk, [26, 1, 16], [0, 0, 3]]),
        ),
        ("operations_keys", "exhausted", seed([8, 0, 3], &[talk, [28, 0, 5], talk, [28, 1, 7], [28, 0, 7]])),
        (
            "operations_keys",
            "forged",
            seed([9, 0, 3], &[talk, [29, 0, 4], [29, 0, 5], [0, 0, 4], [29, 0, 8], talk]),
        ),
    ]
}

/// The kinds of [`strait_fuzz::sealed::check`], each with one whole input, and those that a parser has to refuse.
fn sealed_seeds() -> Vec<Seed> {
    use strait_fuzz::sealed::{receiver, signer};
    use strait_transfer::TransferId;
    use strait_transfer::sealed::frames::{FrameWriter, SizePadding};
    use strait_transfer::sealed::object::{ObjectSealing, seal_message};
    use strait_transfer::sealed::{
        AgeRecipient, DeliveryOutcome, DeliveryReceipt, EntryFailure, Manifest, ObjectSeed, SealedEntry,
        SealedKind,
    };

    let node = AgeRecipient::Node(receiver().public());
    let other = AgeRecipient::X25519([9; 32]);
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let object = |recipients: &[AgeRecipient], content: &[u8]| {
        let sealing = ObjectSealing { recipients, level: 3, padding: SizePadding::Padme };
        seal_message(content, Vec::new(), ObjectSeed::new([3; 32]), &sealing).unwrap()
    };
    let mut frames = FrameWriter::new(Vec::new(), 3);
    std::io::Write::write_all(&mut frames, &b"a line that comes again\n".repeat(200)).unwrap();
    let frames = frames.finish(SizePadding::Padme).unwrap();
    let entry = |path: &[u8], kind| SealedEntry { path: path.to_vec(), mode: 0o644, mtime: 1, kind };
    let manifest = Manifest {
        transfer: TransferId::from_bytes([6; 16]),
        sender: signer().public(),
        serial: 1,
        made: 2,
        expires: 3,
        folder: "inbox".to_owned(),
        below: b"a/b".to_vec(),
        recipients: vec![node, other],
        entries: vec![
            entry(b"d", SealedKind::Folder),
            entry(b"d/f", SealedKind::File { size: 5, root: [4; 32] }),
            entry(b"e", SealedKind::Symlink { target: b"d".to_vec() }),
            entry(b"g", SealedKind::HardLink { to: b"d/f".to_vec() }),
        ],
    };
    let manifest = manifest.sign(&signer()).unwrap();
    let manifest = &manifest[..manifest.len() - 64];
    let receipt = |outcome| {
        let receipt = DeliveryReceipt {
            transfer: TransferId::from_bytes([6; 16]),
            sender: receiver().public(),
            receiver: signer().public(),
            at: 1,
            outcome,
            entries: 2,
            bytes: 3,
            failed: 1,
            failures: vec![EntryFailure { path: b"d".to_vec(), reason: "no room".to_owned() }],
        };
        let bytes = receipt.sign(&signer()).unwrap();
        bytes[..bytes.len() - 64].to_vec()
    };
    // A manifest with other bytes at one place: each seed reaches another refusal.
    let changed = |at: usize, bytes: &[u8]| {
        let mut manifest = manifest.to_vec();
        manifest[at..at + bytes.len()].copy_from_slice(bytes);
        seed(3, &manifest)
    };
    let ssh = receiver().to_openssh(7, "comment");
    let recipients_at = 18 + 16 + 32 + 24 + 2 + 5 + 2 + 3;
    let entries_at = recipients_at + 2 + 2 * 33 + 4;
    vec![
        ("sealed", "header", seed(0, &object(&[other, node], b"x"))),
        ("sealed", "header-others", seed(0, &object(&[other], b"x"))),
        ("sealed", "header-cut", seed(0, b"age-encryption.org/v1\n-> X25519 a\n")),
        ("sealed", "header-no-stanza", seed(0, b"age-encryption.org/v1\nx\n")),
        ("sealed", "header-blank", seed(0, b"age-encryption.org/v1\n-> a  b\n\n")),
        ("sealed", "header-base64", seed(0, b"age-encryption.org/v1\n-> a\n====\n")),
        ("sealed", "chunks", seed(1, &[&[255, 255, 255][..], &[7; 1000]].concat())),
        ("sealed", "chunks-changed", seed(1, &[&[1, 0, 30][..], &[7; 1000]].concat())),
        ("sealed", "frames", seed(2, &frames)),
        ("sealed", "frames-cut", seed(2, &frames[..20])),
        ("sealed", "manifest", seed(3, manifest)),
        ("sealed", "manifest-folder", changed(18 + 16 + 32 + 24 + 2, b"in/ox")),
        ("sealed", "manifest-recipients", changed(recipients_at, &[0, 0])),
        ("sealed", "manifest-kind", changed(recipients_at + 2, &[9])),
        ("sealed", "manifest-dots", changed(entries_at + 2, b"/")),
        ("sealed", "manifest-order", changed(entries_at + 2, b"z")),
        ("sealed", "manifest-mode", changed(entries_at + 3, &[0xff])),
        ("sealed", "manifest-entry-kind", changed(entries_at + 13, &[9])),
        ("sealed", "manifest-cut", seed(3, &manifest[..manifest.len() - 1])),
        ("sealed", "receipt-whole", seed(4, &receipt(DeliveryOutcome::Whole))),
        ("sealed", "receipt-partly", seed(4, &receipt(DeliveryOutcome::Partly))),
        ("sealed", "receipt-refused", seed(4, &receipt(DeliveryOutcome::Refused))),
        ("sealed", "object", seed(5, &object(&[node], b"a whole object"))),
        ("sealed", "ssh-private", seed(6, ssh.as_bytes())),
        ("sealed", "ssh-public", seed(6, receiver().public().to_openssh("comment").as_bytes())),
        ("sealed", "ssh-rsa", seed(6, b"ssh-rsa AAAA")),
        ("sealed", "age-recipient", seed(6, other.to_string().as_bytes())),
    ]
}

#[test]
fn committed_seeds_are_what_the_emitters_write() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let write = std::env::var_os("STRAIT_SEEDS").is_some_and(|value| value == "write");
    let seeds = [
        ip_seeds(),
        transport_seeds(),
        esp_seeds(),
        ah_seeds(),
        fragment_seeds(),
        reassembly_seeds(),
        direct_seeds(),
        ipcomp_seeds(),
        aggfrag_seeds(),
        block_seeds(),
        symbol_seeds(),
        capture_seeds(),
        probe_demux_vnet_seeds(),
        repair_seeds(),
        icmp_seeds(),
        expand_seeds(),
        compress_round_trip_seeds(),
        headers_round_trip_seeds(),
        headers_expand_seeds(),
        ipcomp_payload_seeds(),
        link_layer_seeds(),
        datagram_seeds(),
        super_packet_seeds(),
        configuration_seeds(),
        control_message_seeds(),
        operations_data_seeds(),
        operations_keys_seeds(),
        files::unit_seeds(),
        files::delta_message_seeds(),
        files::delta_patch_seeds(),
        login::prediction_seeds(),
        login::kerberos_frame_seeds(),
        ssh::packet_seeds(),
        ssh::message_seeds(),
        transfer_record_seeds(),
        pattern_seeds(),
        sealed_seeds(),
        v42bis_seeds(),
        vj_seeds(),
    ];
    for (target, name, bytes) in seeds.into_iter().flatten() {
        let path = corpus.join(target).join(name);
        if write {
            fs::create_dir_all(corpus.join(target)).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let committed = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(committed, bytes, "{}", path.display());
    }
}
