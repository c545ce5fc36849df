//! The packet path without I/O, and what it is made of: codecs and ciphers. One core, nothing shaped, nothing sent.

pub(crate) mod engines;
mod path;
mod traffic;

use std::time::Duration;

use strait_clock::Stopwatch as Clock;
use strait_compress::{Codecs, Method};
use strait_crypto::Suite;
use strait_lab::measure::{RepeatTimer, RunValues, settle};
use strait_lab::rate;
use strait_testbed::interrupt;

use crate::content::{generated, noise};
use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchEffort, BenchSetup};
use path::LoopbackPath;
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
/// Bytes of a packet that a cipher is given.
const PACKET: usize = 1400;

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let stopwatch = match setting.effort {
        BenchEffort::Full => RepeatTimer { repeats: 15, least: Duration::from_millis(40) },
        BenchEffort::Quick => RepeatTimer { repeats: 5, least: Duration::from_millis(10) },
    };
    let suite = rate::calibrate().order()[0];
    let title = format!(
        "the packet path without I/O, {suite}, one core's time, {} repeats, median (min-max)",
        stopwatch.repeats
    );
    let mut section = BenchSection::new("cores", title, &["out", "in"]);
    section.before.push(settle()?);
    packets(&mut section, stopwatch, suite)?;
    blocks(&mut section, stopwatch, suite)?;
    codecs(&mut section, stopwatch)?;
    ciphers(&mut section, stopwatch)?;
    Ok(section)
}

/// Packets that are not compressed: nanoseconds each.
fn packets(section: &mut BenchSection, stopwatch: RepeatTimer, suite: Suite) -> Result<(), Error> {
    let noise = noise();
    let cut = |len: usize, count: usize| noise.chunks_exact(len).take(count).map(tcp).collect::<Vec<Given>>();
    for (quantity, mut given) in [
        ("1,400-byte segments of super-packets, ns a packet", cut(SUPER, SUPERS)),
        ("100-byte packets, ns a packet", cut(SMALL, SMALLS)),
    ] {
        let units = given.iter().map(Given::count).sum();
        let [out, back] =
            both(stopwatch, &mut LoopbackPath::new(suite, None, Clock::NONE), &mut given, units, quantity)?;
        section.row(quantity, [out, back]);
    }
    Ok(())
}

/// Blocks: nanoseconds a KiB of what the host gave.
fn blocks(section: &mut BenchSection, stopwatch: RepeatTimer, suite: Suite) -> Result<(), Error> {
    let (text, noise) = (generated(1).bytes, noise());
    let contents = [("text", &text), ("random data", &noise)];
    for (name, content) in contents {
        for method in ["lz4", "zstd-3"] {
            let quantity = format!("{name}, {method} rule, ns a KiB");
            let mut given: Vec<Given> = content.chunks_exact(SUPER).take(SUPERS).map(tcp).collect();
            let kibibytes = (given.len() * SUPER) as u64 / 1024;
            let mut path = LoopbackPath::new(suite, method.parse().ok(), Clock::NONE);
            let [out, back] = both(stopwatch, &mut path, &mut given, kibibytes, &quantity)?;
            section.row(quantity, [out, back]);
        }
    }
    Ok(())
}

/// Both directions, in nanoseconds a unit.
fn both(
    stopwatch: RepeatTimer,
    path: &mut LoopbackPath,
    given: &mut [Given],
    units: u64,
    what: &str,
) -> Result<[RunValues; 2], Error> {
    interrupt::check()?;
    let out = stopwatch.timed(|| Ok::<_, Error>((path.send(given), units)))?;
    let back = stopwatch.timed(|| Ok::<_, Error>((path.receive(given, what)?, units)))?;
    Ok([out, back])
}

/// Codecs alone, on the generated text: MB/s of what is compressed.
fn codecs(section: &mut BenchSection, stopwatch: RepeatTimer) -> Result<(), Error> {
    let text = generated(4).bytes;
    let text = &text[..TEXT.min(text.len()) / BLOCKS[1] * BLOCKS[1]];
    let mut codecs = Codecs::new();
    for method in METHODS.iter().filter_map(|name| name.parse::<Method>().ok()) {
        for len in BLOCKS {
            interrupt::check()?;
            let blocks: Vec<&[u8]> = text.chunks_exact(len).collect();
            let compress = rate::compress(stopwatch, &mut codecs, method, &blocks);
            let made = rate::compressed(&mut codecs, method, &blocks)?;
            let made: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
            let expand = rate::expand(stopwatch, &mut codecs, method.codec, &made, len)?;
            let quantity = format!("{method} in blocks of {len} bytes, MB/s");
            section.row(quantity, [compress, expand].map(|it| it.map(|nanos| 1000.0 / nanos)));
        }
    }
    Ok(())
}

/// Ciphers alone, on 1,400-byte packets: MB/s.
fn ciphers(section: &mut BenchSection, stopwatch: RepeatTimer) -> Result<(), Error> {
    for suite in Suite::ALL {
        interrupt::check()?;
        let both = rate::aead(stopwatch, suite, &[0x5a; PACKET])?;
        section.row(format!("{suite}, 1,400 bytes, MB/s"), both.map(|it| it.map(|nanos| 1000.0 / nanos)));
    }
    Ok(())
}
