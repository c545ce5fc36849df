//! What a peer with keys can seal: each function makes the payload of one ESP packet.

use std::net::Ipv4Addr;

use strait_compress::{Codec, Codecs, Method};
use strait_wire::aggfrag::{CONGESTION_LEN, CongestionReport, emit_congestion};
use strait_wire::checksum::Sum;
use strait_wire::condition::{self, Condition};
use strait_wire::delivery::{self, Delivery};
use strait_wire::probe::{self, Probe, ProbeKind};
use strait_wire::{Spi, block};

/// The most bytes that a block expands to.
const BLOCK_MAX: usize = 65_536;
/// The shortest IPv4 packet.
const LEAST: usize = 20;
/// A protocol for experiments (RFC 3692), so that no host answers with more than an ICMP message.
const PROTOCOL: u8 = 253;

/// As many of the shortest IPv4 packets as the bytes of a block hold: 3,276. That is more than a receiver takes,
/// [`strait_compress::headers::PACKETS_MAX`].
pub const TINY_MOST: usize = BLOCK_MAX / LEAST;

/// A whole block in one packet, of so many of the shortest IPv4 packets from `source` to `target`, at most [`TINY_MOST`]: a few bytes.
#[must_use]
pub fn tiny_packets(count: usize, source: Ipv4Addr, target: Ipv4Addr, id: u16) -> Vec<u8> {
    let plain = packet(source, target, &[]).repeat(count.min(TINY_MOST));
    let mut compressed = vec![0; plain.len()];
    // A name that the table of methods has.
    let len = "zstd-3"
        .parse::<Method>()
        .ok()
        .and_then(|method| Codecs::new().compress(method, &plain, &mut compressed));
    compressed.truncate(len.unwrap_or(0));
    part(
        block::Header { codec: Codec::Zstd.id(), kind: block::BlockKind::Alone, id, part: 0, parts: 1 },
        &compressed,
    )
}

/// One byte of a block whose other 63 parts never come.
#[must_use]
pub fn first_part(id: u16) -> Vec<u8> {
    part(
        block::Header { codec: Codec::Lz4.id(), kind: block::BlockKind::Alone, id, part: 0, parts: 64 },
        &[0],
    )
}

/// A probe that asks for an answer.
#[must_use]
pub fn probe_request(id: u16) -> Vec<u8> {
    let mut payload = vec![0; probe::LEN];
    let _ = Probe { kind: ProbeKind::Request, id, size: 64 }.emit(&mut payload);
    payload
}

/// A condition that differs from the one before.
#[must_use]
pub fn condition(number: u64) -> Vec<u8> {
    let mut payload = vec![0; condition::LEN];
    let load = if number.is_multiple_of(2) { Condition::USUAL } else { u16::MAX };
    let _ = Condition { load, down: 1_000_000 + number % 1000, estimates: None }.emit(&mut payload);
    payload
}

/// A delivery report on the association `spi` that says more each time.
#[must_use]
pub fn report(spi: Spi, number: u64) -> Vec<u8> {
    let mut payload = vec![0; CONGESTION_LEN + delivery::LEN];
    let _ = emit_congestion(&mut payload, 0, &CongestionReport::default());
    let said = Delivery {
        spi,
        gaps: 0,
        datagrams: number,
        bytes: number * 1400,
        highest: number,
        received_at: number * 10,
        marked: Some(0),
    };
    if let Some(room) = payload.get_mut(CONGESTION_LEN..) {
        let _ = said.emit(room);
    }
    payload
}

/// An IPv4 packet of a protocol that no host has.
#[must_use]
pub fn packet(source: Ipv4Addr, target: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let [a, b] = u16::try_from(LEAST + payload.len()).unwrap_or(u16::MAX).to_be_bytes();
    let mut ip = vec![0x45, 0, a, b, 0, 0, 0, 0, 64, PROTOCOL, 0, 0];
    ip.extend(source.octets().into_iter().chain(target.octets()));
    let sum = Sum::ZERO.add_bytes(&ip).finish().to_be_bytes();
    if let Some(place) = ip.get_mut(10..12) {
        place.copy_from_slice(&sum);
    }
    ip.extend_from_slice(payload);
    ip
}

fn part(header: block::Header, bytes: &[u8]) -> Vec<u8> {
    let mut payload = vec![0; block::HEADER_LEN];
    let _ = header.emit(&mut payload);
    payload.extend_from_slice(bytes);
    payload
}
