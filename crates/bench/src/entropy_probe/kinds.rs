//! Kinds of data: generated ones, each hard for some way of looking, and what there is of corpora and captures.

use std::fs;
use std::path::Path;

use strait_clock::Random;
use strait_compress::{Codecs, Method};
use strait_testdata as data;

use crate::content;
use crate::error::Error;

/// Bytes of a generated kind.
const LEN: usize = 1 << 20;
/// Files that are kinds of their own.
const FILES: [&str; 6] =
    ["chinook.sqlite", "geo.protobuf", "kppkn.gtb", "house.jpg", "logo.png", "paper.pdf"];
/// Captures whose packets are kinds of their own.
const CAPTURES: [&str; 8] = [
    "http-site",
    "smb-dcerpc",
    "ics-mixed",
    "voip-sip-rtp-t38",
    "dns",
    "ipp-print",
    "synchrophasor-tcp",
    "tls12",
];

/// Data of one kind.
#[derive(Debug)]
pub(super) struct DataKind {
    /// What it is.
    pub(super) name: String,
    /// It.
    pub(super) bytes: Vec<u8>,
}

impl DataKind {
    fn new(name: &str, bytes: impl IntoIterator<Item = u8>) -> DataKind {
        DataKind { name: name.to_owned(), bytes: bytes.into_iter().take(LEN).collect() }
    }
}

/// What can be made up, always the same.
pub(super) fn generated() -> Vec<DataKind> {
    let text = content::generated(1).bytes;
    let mut kinds = plain();
    kinds.extend(numbers());
    kinds.extend(mixtures(&text));
    let wide = text.iter().flat_map(|byte| [*byte, 0]);
    kinds.extend([DataKind::new("text", text.iter().copied()), DataKind::new("UTF-16 text", wide)]);
    for method in ["lz4", "zstd-1", "deflate-6", "lzs"] {
        kinds.push(DataKind::new(&format!("{method} output"), compressed(method, &text)));
    }
    kinds
}

/// Random bytes, whole or in part, and again.
fn plain() -> Vec<DataKind> {
    let base64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let kilobytes = (0..).flat_map(|seed| noise(seed).take(1_024).collect::<Vec<u8>>().repeat(8));
    vec![
        DataKind::new("random", noise(1)),
        DataKind::new("base64 of random", noise(2).map(|byte| base64[usize::from(byte & 63)])),
        DataKind::new(
            "hexadecimal of random",
            noise(3).map(|byte| b"0123456789abcdef"[usize::from(byte & 15)]),
        ),
        DataKind::new("random of 7 bits", noise(4).map(|byte| byte & 0x7f)),
        DataKind::new("random kilobytes, repeated", kilobytes),
    ]
}

/// Numbers as programs write them.
fn numbers() -> Vec<DataKind> {
    let mut random = Random::new(5);
    let uniform: Vec<f64> = (0..LEN / 8).map(|_| random.unit()).collect();
    let mut value = 20.0_f32;
    let walk = uniform.iter().flat_map(|step| {
        value += (*step as f32 - 0.5) * 0.1;
        value.to_le_bytes()
    });
    let sound = uniform.iter().enumerate().flat_map(|(time, noise)| {
        let sample = (time as f64 * 0.05).sin() * 8_000.0 + noise * 600.0;
        (sample as i16).to_le_bytes()
    });
    vec![
        DataKind::new("32-bit counter", (0_u32..).flat_map(|it| (it * 3).to_le_bytes())),
        DataKind::new("8-bit counter", (0..=u8::MAX).cycle()),
        DataKind::new("32-bit random walk", walk.collect::<Vec<u8>>()),
        DataKind::new("64-bit fractions", uniform.iter().flat_map(|it| it.to_le_bytes())),
        DataKind::new("16-bit sound", sound),
    ]
}

/// What shrinks among what does not.
fn mixtures(text: &[u8]) -> Vec<DataKind> {
    let mut random = Random::new(6);
    let keys: Vec<Vec<u8>> = (0..200).map(|key| noise(100 + key).take(16).collect()).collect();
    let records = (0..LEN / 24).flat_map(|_| {
        let key = &keys[random.below(200) as usize];
        [key.as_slice(), &random.next_u64().to_le_bytes()].concat()
    });
    let pages = text.chunks(700).zip(1_000..).flat_map(|(head, seed)| {
        let body = noise(seed).take(4_096 - head.len());
        head.iter().copied().chain(body).collect::<Vec<u8>>()
    });
    // IPv4, UDP and ESP headers with a sequence number, then what is encrypted.
    let sealed = (0_u16..).flat_map(|number| {
        let mut packet = b"E\0\x05\x78\0\0@\0@\x11\x12\x34\x0a\0\0\x01\x0a\0\0\x02".to_vec();
        packet[4..6].copy_from_slice(&number.to_be_bytes());
        packet.extend(b"\x11\x94\x11\x94\x05\x64\0\0\x04\x09\x09\x09\0\0");
        packet.extend(number.to_be_bytes());
        packet.extend(noise(u64::from(number) + 10_000).take(1_360));
        packet
    });
    vec![
        DataKind::new("random records with keys of 200", records),
        DataKind::new("pages with a head of text", pages),
        DataKind::new("ESP in bundles", sealed),
    ]
}

fn noise(seed: u64) -> impl Iterator<Item = u8> {
    let mut random = Random::new(seed);
    std::iter::repeat_with(move || random.next_u64().to_le_bytes()).flatten()
}

/// What a method makes of text, block after block.
fn compressed(method: &str, text: &[u8]) -> Vec<u8> {
    let (mut codecs, mut out) = (Codecs::new(), vec![0; 1 << 16]);
    let method: Method = method.parse().unwrap_or(Method::NONE);
    let blocks = text.chunks_exact(1 << 16);
    blocks
        .flat_map(|block| {
            let len = codecs.compress(method, block, &mut out).unwrap_or(0);
            out[..len].to_vec()
        })
        .collect()
}

/// What there is of corpora and captures; of what there is not, a note.
pub(super) fn found(notes: &mut Vec<String>) -> Result<Vec<DataKind>, Error> {
    let mut kinds = Vec::new();
    let mut take = |name: String, path: &str, read: &dyn Fn(&Path) -> Result<Vec<u8>, Error>| {
        match data::find(path) {
            None => notes.push(format!("skipped {name}: no {path} (see {})", data::VARIABLE)),
            Some(path) => kinds.push(DataKind { name, bytes: read(&path)? }),
        }
        Ok::<_, Error>(())
    };
    let folder = |belongs| move |path: &Path| Ok(content::read(path, belongs, 1)?.to_vec());
    for corpus in ["calgary", "canterbury"] {
        take(corpus.to_owned(), corpus, &folder(content::is_of_a_corpus))?;
    }
    take("modern text".to_owned(), "modern", &folder(content::is_text))?;
    for file in FILES {
        take(file.to_owned(), &format!("modern/{file}"), &file_at)?;
    }
    for capture in CAPTURES {
        let packets = |path: &Path| Ok(packets(&file_at(path)?));
        take(format!("{capture} packets"), &format!("captures/{capture}.pcap"), &packets)?;
    }
    Ok(kinds)
}

fn file_at(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::doing(format!("read {}", path.display())))
}

/// The packets of an Ethernet capture, one after another, as bundles have them (draft-ietf-opsawg-pcap: 24 bytes in
/// front of all, 16 in front of each, its length in the third word, here in the little-endian order).
fn packets(capture: &[u8]) -> Vec<u8> {
    const ETHERNET: usize = 14;
    let mut packets = Vec::new();
    let mut rest = capture.get(24..).unwrap_or_default();
    while let Some((header, data)) = rest.split_first_chunk::<16>() {
        let len = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let (frame, after) = data.split_at_checked(len).unwrap_or((data, &[]));
        packets.extend(frame.get(ETHERNET..).unwrap_or_default());
        rest = after;
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_out_of_a_capture() {
        let record =
            |frame: &[u8]| [&[0; 8][..], &(frame.len() as u32).to_le_bytes(), &[0; 4], frame].concat();
        let capture = [vec![0; 24], record(&[1; 20]), record(&[2; 10]), record(&[3; 15])].concat();
        assert_eq!(packets(&capture), [1, 1, 1, 1, 1, 1, 3]);
        // Cut off within the last one.
        assert_eq!(packets(&capture[..capture.len() - 1]), [1; 6]);
        assert!(packets(&[]).is_empty());
    }

    #[test]
    fn generated_kinds_are_long_enough_for_blocks() {
        for kind in generated() {
            assert!(kind.bytes.len() >= 4 << 16, "{}: {} bytes", kind.name, kind.bytes.len());
        }
    }
}
