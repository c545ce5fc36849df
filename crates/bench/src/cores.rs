//! The packet path without I/O, and what it is made of: codecs and ciphers. One core, nothing shaped, nothing sent.

mod path;
mod stopwatch;
mod traffic;

use std::time::{Duration, Instant};

use strait_compress::{Codecs, Compressor, Expander, Method};
use strait_crypto::{Aead, Key, NonceCounter, Suite, calibrate};
use strait_testbed::interrupt;

use crate::content::{generated, noise};
use crate::error::Error;
use crate::machine::settle;
use crate::report::Section;
use crate::sample::Sample;
use crate::stage::{Effort, Setting};
use path::Path;
use stopwatch::Stopwatch;
use traffic::{Given, SMALL, SUPER, tcp};

/// Super-packets a call of the work: some 2 MB, as a busy second brings in one run.
const SUPERS: usize = 32;
/// Small packets a call, so that it takes about a millisecond too.
const SMALLS: usize = 2560;
/// Methods that are worth comparing, by link (see the table of methods in the compress crate).
const METHODS: [&str; 6] = ["lz4", "zstd-fast-1", "zstd-1", "zstd-3", "deflate-1", "deflate-6"];
/// Lengths of blocks: one packet's payload, and a whole super-packet.
const BLOCKS: [usize; 2] = [1360, 65_536];
/// Bytes that a codec is given a call.
const TEXT: usize = 1 << 20;
/// Bytes of a packet that a cipher is given, and packets a call.
const PACKET: usize = 1400;
const PACKETS: usize = 2000;

pub(crate) fn run(setting: &Setting) -> Result<Section, Error> {
    let stopwatch = match setting.effort {
        Effort::Full => Stopwatch { repeats: 15, least: Duration::from_millis(40) },
        Effort::Quick => Stopwatch { repeats: 5, least: Duration::from_millis(10) },
    };
    let start = Instant::now();
    let ranking = calibrate(|| u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    let suite = ranking.order()[0];
    let title = format!(
        "the packet path without I/O, {suite}, one core's time, {} repeats, median (min-max)",
        stopwatch.repeats
    );
    let mut section = Section::new("cores", title, &["out", "in"]);
    section.before.push(settle()?);
    packets(&mut section, stopwatch, suite)?;
    blocks(&mut section, stopwatch, suite)?;
    codecs(&mut section, stopwatch)?;
    ciphers(&mut section, stopwatch)?;
    Ok(section)
}

/// Packets that are not compressed: nanoseconds each.
fn packets(section: &mut Section, stopwatch: Stopwatch, suite: Suite) -> Result<(), Error> {
    let noise = noise();
    let cut = |len: usize, count: usize| noise.chunks_exact(len).take(count).map(tcp).collect::<Vec<Given>>();
    for (quantity, mut given) in [
        ("1,400-byte segments of super-packets, ns a packet", cut(SUPER, SUPERS)),
        ("100-byte packets, ns a packet", cut(SMALL, SMALLS)),
    ] {
        let units = given.iter().map(Given::count).sum();
        let [out, back] = both(stopwatch, &mut Path::new(suite, None), &mut given, units, quantity)?;
        section.row(quantity, [out, back]);
    }
    Ok(())
}

/// Blocks: nanoseconds a KiB of what the host gave.
fn blocks(section: &mut Section, stopwatch: Stopwatch, suite: Suite) -> Result<(), Error> {
    let (text, noise) = (generated(1).bytes, noise());
    let contents = [("text", &text), ("random data", &noise)];
    for (name, content) in contents {
        for method in ["lz4", "zstd-3"] {
            let quantity = format!("{name}, {method} rule, ns a KiB");
            let mut given: Vec<Given> = content.chunks_exact(SUPER).take(SUPERS).map(tcp).collect();
            let kibibytes = (given.len() * SUPER) as u64 / 1024;
            let mut path = Path::new(suite, method.parse().ok());
            let [out, back] = both(stopwatch, &mut path, &mut given, kibibytes, &quantity)?;
            section.row(quantity, [out, back]);
        }
    }
    Ok(())
}

/// Both directions, in nanoseconds a unit.
fn both(
    stopwatch: Stopwatch,
    path: &mut Path,
    given: &mut [Given],
    units: u64,
    what: &str,
) -> Result<[Sample; 2], Error> {
    interrupt::check()?;
    let out = stopwatch.timed(|| Ok::<_, Error>((path.send(given), units)))?;
    let back = stopwatch.timed(|| Ok::<_, Error>((path.receive(given, what)?, units)))?;
    Ok([out, back])
}

/// Codecs alone, on the generated text: MB/s of what is compressed.
fn codecs(section: &mut Section, stopwatch: Stopwatch) -> Result<(), Error> {
    let text = generated(4).bytes;
    let text = &text[..TEXT.min(text.len()) / BLOCKS[1] * BLOCKS[1]];
    let mut codecs = Codecs::new();
    for method in METHODS.iter().filter_map(|name| name.parse::<Method>().ok()) {
        for block in BLOCKS {
            interrupt::check()?;
            let quantity = format!("{method} in blocks of {block} bytes, MB/s");
            let squeeze =
                stopwatch.nanos_per_unit(|| Ok::<_, Error>(squeeze(&mut codecs, method, text, block)))?;
            let squeezed = squeezed(&mut codecs, method, text, block);
            let mut out = vec![0; block];
            let expand = stopwatch.nanos_per_unit(|| expand(&mut codecs, method, &squeezed, &mut out))?;
            section.row(quantity, [squeeze, expand].map(|it| it.map(|nanos| 1000.0 / nanos)));
        }
    }
    Ok(())
}

/// Compresses block by block and says how many bytes that were.
fn squeeze(codecs: &mut Codecs, method: Method, text: &[u8], block: usize) -> u64 {
    let mut out = vec![0; block];
    for chunk in text.chunks_exact(block) {
        std::hint::black_box(codecs.compress(method, chunk, &mut out[..block - 1]));
    }
    (text.len() / block * block) as u64
}

/// The blocks that a method made smaller.
fn squeezed(codecs: &mut Codecs, method: Method, text: &[u8], block: usize) -> Vec<Vec<u8>> {
    let mut out = vec![0; block];
    let one = |chunk: &[u8]| {
        let len = codecs.compress(method, chunk, &mut out[..block - 1])?;
        Some(out[..len].to_vec())
    };
    text.chunks_exact(block).filter_map(one).collect()
}

/// Expands blocks and says how many bytes came out.
fn expand(codecs: &mut Codecs, method: Method, blocks: &[Vec<u8>], out: &mut [u8]) -> Result<u64, Error> {
    let mut bytes = 0;
    for block in blocks {
        let expanded = codecs.expand(method.codec, block, out);
        bytes +=
            expanded.map_err(|error| Error::doing("expand a block")(std::io::Error::other(error)))? as u64;
    }
    Ok(bytes)
}

/// Ciphers alone, on 1,400-byte packets: MB/s.
fn ciphers(section: &mut Section, stopwatch: Stopwatch) -> Result<(), Error> {
    for suite in Suite::ALL {
        interrupt::check()?;
        let key = Key::new(&path::key(suite));
        let mut nonces = NonceCounter::new();
        let aad = [0; 12];
        let mut text = vec![0x5a; PACKET];
        let refused = |error: &dyn std::fmt::Display| {
            Error::doing(format!("use {suite}"))(std::io::Error::other(error.to_string()))
        };
        let seal = stopwatch.nanos_per_unit(|| {
            for _ in 0..PACKETS {
                let nonce = nonces.next().map_err(|error| refused(&error))?;
                std::hint::black_box(key.seal(nonce, &aad, &mut text).map_err(|error| refused(&error))?);
            }
            Ok::<_, Error>((PACKETS * PACKET) as u64)
        })?;
        let sealed: Vec<u8> = {
            let nonce = nonces.next().map_err(|error| refused(&error))?;
            let tag = key.seal(nonce, &aad, &mut text).map_err(|error| refused(&error))?;
            text.iter().copied().chain(tag).collect()
        };
        let iv = nonces.last();
        let mut packet = sealed.clone();
        let open = stopwatch.nanos_per_unit(|| {
            for _ in 0..PACKETS {
                packet.copy_from_slice(&sealed);
                std::hint::black_box(key.open(iv, &aad, &mut packet).map_err(|error| refused(&error))?);
            }
            Ok::<_, Error>((PACKETS * PACKET) as u64)
        })?;
        section.row(
            format!("{suite}, 1,400 bytes, MB/s"),
            [seal, open].map(|it| it.map(|nanos| 1000.0 / nanos)),
        );
    }
    Ok(())
}
