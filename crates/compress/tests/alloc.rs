//! Blocks and choices allocate nothing in the long run, neither in Rust nor in the libraries behind it.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used)]

#[path = "../../crypto/tests/counting/malloc.rs"]
mod malloc;

use std::net::{IpAddr, Ipv4Addr};

use strait_clock::{Random, Time};
use strait_compress::headers::Coder;
use strait_compress::{
    Allowed, Calibration, Chooser, CodecSet, Codecs, EndpointCosts, Ipcomp, IpcompAlgorithm, LiveChooser,
    Method, Outcome, PathCost, RuleId, Unit,
};
use strait_wire::{Flow, Protocol};

use malloc::calls;

/// `len` bytes of a log.
fn page(len: usize) -> Vec<u8> {
    let mut random = Random::new(len as u64);
    let line = |_| format!("request {} served served served\n", random.below(100)).into_bytes();
    let mut page: Vec<u8> = (0..=len / 20).flat_map(line).collect();
    page.truncate(len);
    page
}

/// Hundreds of small blocks between large ones: a library that trims its memory would show it here.
fn traffic() -> Vec<Vec<u8>> {
    let mut blocks: Vec<Vec<u8>> = [90, 576, 1_400, 4_096, 9_000, 30_000, 65_534, 65_535].map(page).into();
    blocks.extend((0..1_200).map(|number| page(100 + number)));
    blocks.extend([65_535, 9_000, 1_400].map(page));
    blocks
}

/// Compresses and expands `blocks`, with a refused one and a malformed one after each.
fn carry(codecs: &mut Codecs, method: Method, blocks: &[Vec<u8>], compressed: &mut [u8], back: &mut [u8]) {
    for block in blocks {
        let len = codecs.compress(method, block, &mut compressed[..block.len() - 1]).unwrap();
        assert_eq!(codecs.expand(method.codec, &compressed[..len], back), Ok(block.len()));
        assert_eq!(codecs.compress(method, block, &mut compressed[..8]), None);
        assert!(codecs.expand(method.codec, &compressed[..len], &mut back[..8]).is_err());
        // Whether it happens to be valid does not matter here.
        let _ = codecs.expand(method.codec, &compressed[1..len / 2], &mut back[..block.len() / 2]);
    }
}

#[test]
fn blocks_allocate_nothing_once_the_contexts_exist() {
    let blocks = traffic();
    let (mut compressed, mut back) = (vec![0; 70_000], vec![0; 70_000]);
    for name in
        ["deflate-1", "deflate-6", "lz4", "zstd-fast-1", "zstd-1", "zstd-3", "zstd-9", "lzs-1", "lzs-2"]
    {
        let method: Method = name.parse().unwrap();
        let before = calls();
        let mut codecs = Codecs::new();
        carry(&mut codecs, method, &blocks, &mut compressed, &mut back);
        assert!(calls() > before, "the contexts of {name} are counted");

        let before = calls();
        carry(&mut codecs, method, &blocks, &mut compressed, &mut back);
        assert_eq!(calls(), before, "{name} allocated");
    }
}

#[test]
fn methods_by_turns_allocate_nothing_once_their_contexts_exist() {
    let methods = ["deflate-1", "deflate-9", "lz4", "zstd-1", "zstd-3", "zstd-12", "lzs-1", "lzs-2"];
    let methods = methods.map(|name| name.parse::<Method>().unwrap());
    let blocks = [1_400, 65_535, 200, 9_000].map(page);
    let (mut compressed, mut back) = (vec![0; 70_000], vec![0; 70_000]);
    let mut codecs = Codecs::new();
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = calls();
        for block in &blocks {
            for method in methods {
                carry(&mut codecs, method, std::slice::from_ref(block), &mut compressed, &mut back);
            }
        }
        counts.push(calls() - before);
    }
    assert!(counts[0] > 0);
    assert_eq!(counts[1..], [0, 0]);
}

/// `count` datagrams one after another, of `flows` flows.
fn datagrams(count: u16, flows: u16) -> Vec<u8> {
    let datagram = |number: u16| {
        let [high, low] = (number % flows).to_be_bytes();
        let mut packet =
            [0x45, 0, 0, 60, high, low, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 2, 10, 2, high, low].to_vec();
        let checksum = strait_wire::ip::v4_header_checksum(&packet).to_be_bytes();
        packet[10..12].copy_from_slice(&checksum);
        packet.extend([0x30, 0x39, high, low, 0, 40, 0, 0]);
        packet.resize(60, 7);
        packet
    };
    (0..count).flat_map(datagram).collect()
}

#[test]
fn bundles_allocate_nothing_once_one_as_large_was_coded() {
    let bundles = [(1_000, 1_000), (1, 1), (30, 3), (900, 300), (1_000, 1)]
        .map(|(count, flows)| datagrams(count, flows));
    let (mut coded, mut back) = (vec![0; 65_536], vec![0; 65_536]);
    let mut coder = Coder::new();
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = calls();
        for bundle in &bundles {
            let len = coder.encode(bundle, &mut coded).unwrap();
            assert_eq!(coder.expand(&coded[..len], &mut back), Ok(bundle.len()));
            assert_eq!(coder.encode(bundle, &mut coded[..8]), None);
            assert!(coder.expand(&coded[..len / 2], &mut back).is_err());
        }
        counts.push(calls() - before);
    }
    assert!(counts[0] > 0);
    assert_eq!(counts[1..], [0, 0]);
}

#[test]
fn payloads_allocate_nothing_once_the_contexts_exist() {
    let payloads = [100, 576, 1_400, 2_048, 2_049, 9_000, 65_535, 200].map(page);
    let (mut compressed, mut back) = (vec![0; 70_000], vec![0; 70_000]);
    let mut ipcomp = Ipcomp::new();
    let mut counts = Vec::new();
    for _ in 0..3 {
        let before = calls();
        for (payload, algorithm) in
            payloads.iter().flat_map(|payload| IpcompAlgorithm::ALL.map(|each| (payload, each)))
        {
            let len = ipcomp.compress(algorithm, payload, &mut compressed).unwrap();
            assert_eq!(ipcomp.expand(algorithm, &compressed[..len], &mut back), Ok(payload.len()));
            assert_eq!(ipcomp.compress(algorithm, payload, &mut compressed[..8]), None);
            assert!(ipcomp.expand(algorithm, &compressed[..len / 2], &mut back).is_err());
        }
        counts.push(calls() - before);
    }
    assert!(counts[0] > 0);
    assert_eq!(counts[1..], [0, 0]);
}

#[test]
fn choosing_allocates_nothing_however_many_flows_come() {
    let mut chooser = LiveChooser::new(Calibration::assumed(), 1);
    let path_cost = PathCost {
        engines: core::num::NonZeroU32::MIN,
        rate: strait_model::BitRate::megabits(10.0),
        waiting: true,
        room: 1_400,
        around: 60,
        codecs: CodecSet::ALL,
        only: None,
        prefix: 0,
        ends: EndpointCosts::ALIKE,
    };
    let before = calls();
    for number in 0..10_000_u32 {
        let flow = Flow {
            src: IpAddr::V4(Ipv4Addr::from(number)),
            dst: IpAddr::V4(Ipv4Addr::LOCALHOST),
            protocol: Protocol::UDP,
            src_port: 1,
            dst_port: 2,
        };
        let unit = Unit { flow: &flow, to: 1, rule: RuleId { place: 0, edition: 0 }, allowed: Allowed::Any };
        let now = Time::from_millis(u64::from(number));
        assert!(chooser.may_shrink(&unit, &[0; 1_400], now));
        let method = chooser.choose(&unit, 1_400, &path_cost, now);
        assert_ne!(method, Method::NONE);
        chooser.learn(
            &unit,
            &Outcome { method, before: 1_400, of: 1_400, after: Some(700), took: Some(9_000), prefix: 0 },
            now,
        );
    }
    assert_eq!(calls(), before);
}
