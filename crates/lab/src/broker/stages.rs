//! What each stage costs by itself: reading, writing, compressing, encrypting; keys of other sizes; other levels.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use strait_testbed::interrupt;

use super::chain::{BEST_SPEED, Chain, Compression, Encryption};
use super::layer::Sink;
use super::layer::encrypt::AesBy;
use super::layer::record::RecordSuite;
use super::payload::BrokerPayload;
use super::pipeline::CHUNK;
use super::run::pump;
use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};
use crate::steps::StepCounter;

/// Bytes of a payload that one turn of a stage works on.
const PART: usize = 1024 * 1024;
/// Bits of the keys that are tried.
pub(super) const RC4_KEYS: [usize; 3] = [40, 128, 256];
/// Likewise: those that AES has (FIPS 197).
pub(super) const AES_KEYS: [usize; 3] = [128, 192, 256];
/// The place of 128 bits in [`RC4_KEYS`].
const RC4_128: usize = 1;
/// Levels of DEFLATE in zlib-rs, and what they are.
pub(super) const LEVELS: [(i32, &str); 4] = [
    (1, "1 of zlib-rs (quick)"),
    (BEST_SPEED, "BEST_SPEED (1 of zlib)"),
    (6, "6, the default"),
    (9, "9, BEST_COMPRESSION"),
];
/// The place of `BEST_SPEED` in [`LEVELS`],
pub(super) const FASTEST: usize = 1;
/// of the default,
pub(super) const DEFAULT: usize = 2;
/// and of the best.
pub(super) const BEST: usize = 3;

/// How far one level compresses a payload, and how fast.
#[derive(Clone, Debug)]
pub(super) struct LevelRuns {
    pub(super) ratio: f64,
    /// Nanoseconds a byte of the payload.
    pub(super) nanos: RunValues,
}

/// Every stage, in nanoseconds a byte that it is given.
#[derive(Clone, Debug)]
pub(super) struct StageCosts {
    pub(super) read: RunValues,
    pub(super) write: RunValues,
    /// By key as in [`RC4_KEYS`].
    pub(super) rc4: [RunValues; 3],
    /// By key as in [`AES_KEYS`], with the processor's instructions and by tables.
    pub(super) aes: [[RunValues; 3]; 2],
    /// Records of `SSL_RSA_WITH_RC4_128_MD5`.
    pub(super) tls: RunValues,
    /// By payload, then as in [`LEVELS`].
    pub(super) levels: Vec<[LevelRuns; 4]>,
}

impl StageCosts {
    /// Steps that it takes beside one for each payload.
    pub(super) const STEPS: usize = 2;

    /// RC4 with the key of the post's tests.
    pub(super) const fn rc4_128(&self) -> &RunValues {
        &self.rc4[RC4_128]
    }

    /// Measures every stage.
    pub(super) fn measured(
        stopwatch: RepeatTimer,
        payloads: &[BrokerPayload],
        folder: &Path,
        steps: &mut StepCounter<'_>,
    ) -> Result<StageCosts, Error> {
        steps.next("disk");
        let [read, write] = disk(stopwatch, folder).map_err(Error::doing("read and write a file"))?;
        steps.next("ciphers");
        let text = &payloads[0].bytes;
        let alone = |encryption| cost(stopwatch, Chain { encryption, ..Chain::BARE }, text);
        let [mut rc4, mut by_instructions, mut by_tables] =
            core::array::from_fn(|_| core::array::from_fn(|_| RunValues::default()));
        for (slot, bits) in rc4.iter_mut().zip(RC4_KEYS) {
            *slot = alone(Encryption::Rc4(bits))?;
        }
        for (place, bits) in AES_KEYS.into_iter().enumerate() {
            by_instructions[place] = alone(Encryption::Aes(bits, AesBy::Instructions))?;
            by_tables[place] = alone(Encryption::Aes(bits, AesBy::Tables))?;
        }
        let tls = cost(stopwatch, Chain { records: Some(RecordSuite::Rc4Md5), ..Chain::BARE }, text)?;
        let mut levels = Vec::new();
        for payload in payloads {
            steps.next(&format!("levels of DEFLATE, {}", payload.name));
            let level = |level| {
                let chain = Chain { compression: Compression::Deflate(level), ..Chain::BARE };
                let nanos = cost(stopwatch, chain, &payload.bytes)?;
                Ok::<_, Error>(LevelRuns { ratio: 1.0 / left(chain, &payload.bytes)?, nanos })
            };
            let [quick, fastest, default, best] = LEVELS.map(|(number, _)| level(number));
            levels.push([quick?, fastest?, default?, best?]);
        }
        Ok(StageCosts { read, write, rc4, aes: [by_instructions, by_tables], tls, levels })
    }
}

/// The front of a payload through a chain that ends nowhere.
fn through(chain: Chain, bytes: &[u8]) -> io::Result<Sink> {
    pump(bytes, chain.sender(Sink::Nothing(0))?)
}

/// Nanoseconds a byte that a chain takes beside copying.
fn cost(stopwatch: RepeatTimer, chain: Chain, bytes: &[u8]) -> Result<RunValues, Error> {
    interrupt::check()?;
    let front = &bytes[..PART.min(bytes.len())];
    stopwatch.nanos_per_unit(|| {
        through(chain, std::hint::black_box(front)).map_err(Error::doing(format!("make {chain}")))?;
        Ok(front.len() as u64)
    })
}

/// Bytes that a chain leaves of each of a whole payload.
fn left(chain: Chain, bytes: &[u8]) -> Result<f64, Error> {
    let sink = through(chain, bytes).map_err(Error::doing(format!("make {chain}")))?;
    Ok(sink.len() as f64 / bytes.len() as f64)
}

/// Nanoseconds a byte of reading a file that was read before, and of writing a new one.
fn disk(stopwatch: RepeatTimer, folder: &Path) -> io::Result<[RunValues; 2]> {
    let path = folder.join("stage");
    let chunk = vec![0x5a; CHUNK];
    let written = stopwatch.nanos_per_unit(|| {
        let mut file = File::create(&path)?;
        for _ in 0..PART / CHUNK {
            file.write_all(std::hint::black_box(&chunk))?;
        }
        Ok::<_, io::Error>(PART as u64)
    })?;
    let mut buffer = chunk;
    let read = stopwatch.nanos_per_unit(|| {
        let mut file = File::open(&path)?;
        let mut all = 0;
        loop {
            match file.read(std::hint::black_box(&mut buffer))? {
                0 => return Ok::<_, io::Error>(all),
                count => all += count as u64,
            }
        }
    })?;
    Ok([read, written])
}
