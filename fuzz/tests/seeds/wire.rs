//! Seeds of the headers that the crate `wire` reads, and of what is put together from them.

use strait_wire::aggfrag::{self, CongestionReport};
use strait_wire::delivery::{self, Delivery};
use strait_wire::missing::{MissingRange, MissingRanges};
use strait_wire::repetition::{self, Repetition};
use strait_wire::sessionless::{Acknowledgement, AcknowledgementKind, Algorithms, Header, KeyPacket, Name};
use strait_wire::{Cpi, Esn, Protocol, SeqLow, Spi, ah, block, esp, ip, ipcomp, probe, symbol, vnet};

use super::Seed;
use super::packets::{datagram, tcp, v4, v6};

pub fn ip_seeds() -> Vec<Seed> {
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

pub fn transport_seeds() -> Vec<Seed> {
    vec![
        ("transport", "tcp-syn", tcp(0x02, &[2, 4, 5, 0xb4, 1, 3, 3, 7], &[])),
        ("transport", "tcp-syn-odd", tcp(0x12, &[1, 2, 4, 5, 0xb4, 4, 2, 0], &[])),
        ("transport", "tcp-syn-damaged", tcp(0x02, &[2, 4, 5, 0xb4, 3, 9, 1, 1], &[])),
        ("transport", "tcp-syn-cut", tcp(0x02, &[1, 1, 1, 3], &[])),
        ("transport", "tcp-data", tcp(0x18, &[], b"GET / HTTP/1.1\r\n\r\n")),
        ("transport", "udp", datagram(b"a query for a name")),
        ("transport", "short", vec![0, 80, 0]),
    ]
}

pub fn esp_seeds() -> Vec<Seed> {
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

pub fn ah_seeds() -> Vec<Seed> {
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

pub fn fragment_seeds() -> Vec<Seed> {
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
pub fn reassembly_seeds() -> Vec<Seed> {
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
pub fn direct_seeds() -> Vec<Seed> {
    let record = |next: Protocol, payload: &[u8]| {
        let [high, low] = u16::try_from(payload.len()).unwrap().to_be_bytes();
        [&[next.0, high, low][..], payload].concat()
    };
    let mut inner = v4(Protocol::UDP, 0, &datagram(b"query"));
    inner[12..16].copy_from_slice(&[192, 0, 2, 1]);
    inner[10..12].fill(0);
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

pub fn ipcomp_seeds() -> Vec<Seed> {
    let header = |cpi| {
        let mut bytes = vec![0x5a; 12];
        ipcomp::Header { next: Protocol::IPIP, cpi }.emit(&mut bytes).unwrap();
        bytes
    };
    vec![("ipcomp", "deflate", header(Cpi::DEFLATE)), ("ipcomp", "negotiated", header(Cpi(61_440)))]
}

pub fn aggfrag_seeds() -> Vec<Seed> {
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
        marked: Some(3),
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
        // From a node that counts no marks.
        ("aggfrag", "report-without-marks", reported[..reported.len() - 2].to_vec()),
        ("aggfrag", "report", reported),
    ]
}

pub fn block_seeds() -> Vec<Seed> {
    let packets =
        [v6(Protocol::TCP, &tcp(0x10, &[], b"abc")), v4(Protocol::UDP, 0, &datagram(b"one"))].concat();
    let mut part = [&[0; block::HEADER_LEN][..], &packets].concat();
    block::Header { codec: 3, kind: block::BlockKind::Alone, id: 7, part: 1, parts: 4 }
        .emit(&mut part)
        .unwrap();
    let cut = packets[..packets.len() - 1].to_vec();
    vec![("block", "part", part), ("block", "expanded", packets), ("block", "cut", cut)]
}

pub fn symbol_seeds() -> Vec<Seed> {
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

pub fn repair_seeds() -> Vec<Seed> {
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

pub fn probe_demux_vnet_seeds() -> Vec<Seed> {
    let mut request = vec![0; 64];
    probe::Probe { kind: probe::ProbeKind::Request, id: 1, size: 1400 }.emit(&mut request).unwrap();
    let mut answer = vec![0; probe::LEN];
    probe::Probe { kind: probe::ProbeKind::Answer, id: 1, size: 1400 }.emit(&mut answer).unwrap();
    let mut goodbye = vec![0; probe::LEN];
    probe::Probe { kind: probe::ProbeKind::Goodbye, id: 0, size: 0 }.emit(&mut goodbye).unwrap();
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
        ("probe_demux_vnet", "goodbye", goodbye),
        ("probe_demux_vnet", "lane", vec![0xf9, 0xca, 0, 0, 1, 0, 0x11, 7, 0, 0]),
        ("probe_demux_vnet", "offload", offload.to_vec()),
        ("probe_demux_vnet", "keepalive", vec![0xff]),
        ("probe_demux_vnet", "quic", vec![0xc0; 20]),
        ("probe_demux_vnet", "esp", vec![4; 20]),
        ("probe_demux_vnet", "sessionless", vec![0x10; 20]),
    ]
}

pub fn icmp_seeds() -> Vec<Seed> {
    let with_mtu = |original: Vec<u8>| [&1280u16.to_be_bytes()[..], &original].concat();
    vec![
        ("icmp", "v4-long", with_mtu(v4(Protocol::UDP, 0x4000, &datagram(&[7; 600])))),
        ("icmp", "v6-long", with_mtu(v6(Protocol::UDP, &datagram(&[7; 1400])))),
        ("icmp", "v4-echo", with_mtu(v4(Protocol::ICMP, 0x4000, &[8, 0, 0, 0, 0, 1, 0, 1]))),
        ("icmp", "v6-error", with_mtu(v6(Protocol::ICMPV6, &[2, 0, 0, 0, 0, 0, 5, 0]))),
    ]
}

pub fn sessionless_seeds() -> Vec<Seed> {
    let of = |source: Name, destination: Name| {
        let header = Header {
            next: Protocol::ESP,
            source,
            destination,
            answer: true,
            hybrid: true,
            algorithms: Algorithms { kij: 1, crypt: 2, mac: 0, comp: 1 },
            epoch: 271_752,
            spi: Spi(0x0400_0001),
            first: Esn(978_307_800_000_000),
            wrapped: [7; 48],
            check: [9; 16],
        };
        let mut bytes = vec![0; header.wire_len()];
        header.emit(&mut bytes).unwrap();
        [&bytes[..], b"behind it"].concat()
    };
    let key = KeyPacket {
        kem: 1,
        source: Name::key_hash([1; 16]),
        destination: Name::NONE,
        answer: true,
        epoch: 271_752,
        ciphertext: [3; 1088],
        tag: [4; 32],
        check: [5; 16],
    };
    let mut packet = vec![0; key.wire_len()];
    key.emit(&mut packet).unwrap();
    let told = |kind| Acknowledgement(kind).to_bytes().to_vec();
    let bound = AcknowledgementKind::Bound { spi: Spi(0x0400_0001), highest: Esn(7) };
    let below = AcknowledgementKind::BelowMark { spi: Spi(0x0400_0001), mark: Esn(7) };
    let v6 = Name::address(std::net::Ipv6Addr::LOCALHOST.into());
    vec![
        ("sessionless", "by-key", of(Name::key_hash([1; 16]), Name::NONE)),
        ("sessionless", "by-address", of(Name::address(std::net::Ipv4Addr::LOCALHOST.into()), v6)),
        ("sessionless", "by-name", of(Name::name_hash([2; 16]), Name::key_hash([1; 16]))),
        ("sessionless", "cut", of(Name::key_hash([1; 16]), Name::NONE)[..90].to_vec()),
        ("sessionless", "key-packet", packet),
        ("sessionless", "bound", told(bound)),
        ("sessionless", "below-mark", told(below)),
        ("sessionless", "taken", told(AcknowledgementKind::KeyPacketTaken { epoch: 9 })),
        ("sessionless", "wanted", told(AcknowledgementKind::KeyPacketWanted { epoch: 9 })),
        ("sessionless", "no-day", told(AcknowledgementKind::DailyKeyUnknown { epoch: 9 })),
    ]
}
