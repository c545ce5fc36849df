//! Coded headers on everything that was captured: all of it comes back, and codecs gain by it.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};

use strait_advise::CaptureReader;
use strait_compress::headers::Coder;
use strait_compress::{Codecs, Method};
use strait_wire::ip::Packet;

/// The most bytes of a bundle, those of a block.
const BUNDLE_MAX: usize = 65_536;
/// Packets in a bundle.
const COUNTS: [usize; 9] = [1, 2, 3, 5, 8, 13, 21, 32, 64];

/// The whole packets of each capture, those of each direction apart, as a tunnel carries them.
fn captured() -> Vec<Vec<Vec<u8>>> {
    let Some(folder) = strait_testdata::find_or_skip("captures") else { return Vec::new() };
    let mut directions = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let mut reader = CaptureReader::open(File::open(entry.unwrap().path()).unwrap()).unwrap();
        let (mut there, mut back) = (Vec::new(), Vec::new());
        while let Some(frame) = reader.frame().unwrap() {
            let Ok(Some((bytes, _))) = frame.ip() else { continue };
            let Ok(packet) = Packet::parse(bytes) else { continue };
            let direction = if packet.src() < packet.dst() { &mut there } else { &mut back };
            direction.push(packet.bytes().to_vec());
        }
        directions.extend([there, back]);
    }
    assert!(directions.iter().map(Vec::len).sum::<usize>() > 20_000);
    directions
}

/// The packets by so many, as far as they fit together.
fn bundles(packets: &[Vec<u8>], count: usize) -> Vec<Vec<u8>> {
    let (mut bundles, mut held) = (Vec::<Vec<u8>>::new(), count);
    for packet in packets {
        match bundles.last_mut() {
            Some(bundle) if held < count && bundle.len() + packet.len() <= BUNDLE_MAX => {
                bundle.extend_from_slice(packet);
                held += 1;
            }
            _ => {
                bundles.push(packet.clone());
                held = 1;
            }
        }
    }
    bundles
}

#[test]
fn every_bundle_of_every_capture_comes_back() {
    let (mut coder, mut coded, mut back) = (Coder::new(), vec![0; BUNDLE_MAX], vec![0; BUNDLE_MAX]);
    for packets in captured() {
        for bundle in COUNTS.into_iter().flat_map(|count| bundles(&packets, count)) {
            let Some(len) = coder.encode(&bundle, &mut coded) else { continue };
            assert!(len < bundle.len());
            assert_eq!(coder.expand(&coded[..len], &mut back), Ok(bundle.len()));
            assert_eq!(back[..bundle.len()], bundle);
        }
    }
}

#[test]
fn every_codec_gains_by_header_compression() {
    let mut codecs = Codecs::new();
    let mut output = vec![0; BUNDLE_MAX];
    let mut compressed = |method: Method, bundle: &[u8]| {
        codecs.compress(method, bundle, &mut output[..bundle.len() - 1]).unwrap_or(bundle.len())
    };
    let (mut coder, mut coded) = (Coder::new(), vec![0; BUNDLE_MAX]);
    let directions = captured();
    for (count, share) in [(2, 0.94), (8, 0.92), (32, 0.92)] {
        for method in ["none", "lz4", "deflate-6", "zstd-1", "zstd-3"].map(|name| name.parse().unwrap()) {
            let (mut before, mut after) = (0, 0);
            for bundle in directions.iter().flat_map(|packets| bundles(packets, count)) {
                let Some(len) = coder.encode(&bundle, &mut coded) else { continue };
                before += compressed(method, &bundle);
                after += compressed(method, &coded[..len]);
            }
            let of = after as f64 / before as f64;
            assert!(directions.is_empty() || of < share, "{method} in bundles of {count}: {of:.3}");
        }
    }
}
