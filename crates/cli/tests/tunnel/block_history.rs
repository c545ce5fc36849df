//! Blocks of one flow that are compressed behind earlier ones, as a decoder sees them that was written from the wire format apart from
//! the program: what it makes of a capture of the link is what came out of the tunnel.

use strait_testbed::outside::{has, has_scapy};
use strait_testbed::sample;
use strait_testbed::{Extra, LinkSpec, Transfer, TwoHosts, paced};

use strait_wire::{ip, tcp};

use crate::capture::Capture;
use crate::outside::open;
use crate::pair::{Family, PATIENCE, Pair, allowed};

const RULE: &str =
    "[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"test\"\ncodec = \"zstd-3\"\n";
const BYTES: usize = 600_000;

/// Text of the sample, sent over one TCP connection.
fn transfer(pair: &Pair) -> Vec<u8> {
    let file =
        sample::generate(sample::DEFAULT_SEED).into_iter().find(|file| file.name.contains("log")).unwrap();
    let content: Vec<u8> = file.bytes.iter().copied().cycle().take(BYTES).collect();
    carry(pair, &content);
    content
}

/// Sends bytes over a TCP connection of their own, and looks whether they arrive as they are.
pub(crate) fn carry(pair: &Pair, content: &[u8]) {
    let (from, to, address) = (&pair.hosts.a, &pair.hosts.b, pair.inside(1, Family::V4));
    let content = &content.into();
    let transfer = Transfer { from, to, address, name: "test", content, patience: PATIENCE };
    transfer.run(&mut |_| {}).unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
}

/// The bytes of one TCP stream in these packets.
pub(crate) fn stream<'a>(packets: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut first, mut bytes) = (None, Vec::new());
    for packet in packets.map(|packet| ip::Packet::parse(packet).unwrap()) {
        let segment = tcp::Segment::parse(packet.payload()).unwrap();
        let from = *first.get_or_insert(segment.seq().wrapping_add(1));
        let at = segment.seq().wrapping_sub(from) as usize;
        if !segment.payload().is_empty() {
            bytes.resize(bytes.len().max(at + segment.payload().len()), 0);
            bytes[at..at + segment.payload().len()].copy_from_slice(segment.payload());
        }
    }
    bytes
}

#[test]
fn another_decoder_makes_the_same_packets_of_blocks_behind_others() {
    if !allowed() || !has_scapy() || !has("zstd") {
        return;
    }
    let rate = "2Mbit".parse().unwrap();
    let pair = Pair::idle(TwoHosts::direct(LinkSpec::thin(rate)).unwrap());
    let link = Capture::start(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let (node, paced) = ("danger_export_keys = \"esp-keys\"", paced(rate, rate));
    let pair = pair.and_up(Extra { node, link: &paced, sections: RULE, ..Extra::default() });
    let content = transfer(&pair);
    let opened = open(&pair, &link.stop());
    let there: Vec<_> = opened.iter().filter(|it| it.direction == "out").collect();
    let made = there.iter().flat_map(|it| &it.packets).map(Vec::as_slice);
    assert!(stream(made) == content, "the packets carry something else");
    let behind =
        there.iter().filter(|it| it.kind == "history" && it.line["behind"].as_u64() > Some(0)).count();
    println!("{behind} blocks behind others");
    assert!(behind >= 5, "{behind} blocks behind others");
    for which in [0, 1] {
        assert_eq!(pair.drops(which, "history-gone"), 0, "{}", pair.logs());
    }
}
