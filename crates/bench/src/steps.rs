//! What the protocols around a packet cost, each alone and together, beside the calls of ciphers, integrity algorithms
//! and codecs that they consist of. One core, no I/O.

mod stack;

use std::time::Duration;

use strait_compress::IpcompAlgorithm;
use strait_crypto::{Cipher, Integrity, Suite};
use strait_lab::measure::{RepeatTimer, RunValues, ThreadMoment, settle};
use strait_testbed::interrupt;

use crate::content::generated;
use crate::error::Error;
use crate::report::BenchSection;
use crate::stage::{BenchEffort, BenchSetup};
use crate::target::Target;
use stack::{Stack, StackEsp};

/// Bytes of the packets that are protected.
const LENGTHS: [usize; 4] = [64, 576, 1400, 64_000];
/// The length that has a target: a full packet on Ethernet, and how much more than the bare calls it may cost.
const JUDGED: usize = 1400;
const AT_MOST: f64 = 1.15;
/// Bytes a batch, so that it takes about a millisecond or more.
const BATCH: usize = 1 << 20;
/// Packets a batch at most.
const PACKETS: usize = 512;
/// How far one payload begins behind the other in the text: so near that all of them stay in the first cache, as what
/// was just read from the tunnel device does.
const APART: usize = 29;

const ONE: Stack = Stack { name: "", ipcomp: None, esp: None, ah: None };
const GCM: Option<StackEsp> = Some(StackEsp::Aead(Suite::Aes128Gcm));
const CHACHA: Option<StackEsp> = Some(StackEsp::Aead(Suite::ChaCha20Poly1305));
const SHA: Integrity = Integrity::HmacSha256_128;

/// Each step alone, then the pipelines.
const STACKS: [Stack; 9] = [
    Stack { name: "ESP aes-128-gcm", esp: GCM, ..ONE },
    Stack { name: "ESP chacha20-poly1305", esp: CHACHA, ..ONE },
    Stack {
        name: "ESP aes-128-cbc, hmac-sha-256",
        esp: Some(StackEsp::Separate(Cipher::Aes128Cbc, Some(SHA))),
        ..ONE
    },
    Stack { name: "AH hmac-sha-256", ah: Some(SHA), ..ONE },
    Stack { name: "IPComp deflate", ipcomp: Some(IpcompAlgorithm::Deflate), ..ONE },
    Stack { name: "IPComp lzs", ipcomp: Some(IpcompAlgorithm::Lzs), ..ONE },
    Stack { name: "AH + ESP aes-128-gcm", ah: Some(SHA), esp: GCM, ..ONE },
    Stack {
        name: "ESP aes-128-gcm + IPComp deflate",
        esp: GCM,
        ipcomp: Some(IpcompAlgorithm::Deflate),
        ..ONE
    },
    Stack {
        name: "AH + ESP aes-128-cbc + IPComp lzs",
        ah: Some(SHA),
        esp: Some(StackEsp::Separate(Cipher::Aes128Cbc, None)),
        ipcomp: Some(IpcompAlgorithm::Lzs),
    },
];

pub(crate) fn run(setting: &BenchSetup) -> Result<BenchSection, Error> {
    let (repeats, least) = match setting.effort {
        BenchEffort::Full => (15, Duration::from_millis(20)),
        BenchEffort::Quick => (5, Duration::from_millis(4)),
    };
    let title = format!(
        "steps of IPsec beside the bare calls they consist of, ns a packet, one core's time, {repeats} repeats, median (min-max)"
    );
    let columns = ["out, bare", "out, steps", "in, bare", "in, steps", "out, Gbit/s", "in, Gbit/s"];
    let mut section = BenchSection::new("steps", title, &columns);
    section.before.push(settle()?);
    let text = generated(1).bytes;
    let mut judged = Vec::new();
    for stack in STACKS {
        for len in LENGTHS {
            interrupt::check()?;
            let [out, back] = measure(stack, &text, len, repeats, least)?;
            let rate = |sample: &RunValues| sample.map(|nanos| (len * 8) as f64 / nanos);
            let rates = [rate(&out.steps), rate(&back.steps)];
            if len == JUDGED {
                judged.push((stack.name, out.steps.over(&out.bare), back.steps.over(&back.bare)));
            }
            let [out_rate, in_rate] = rates;
            section.row(
                format!("{}, {len} bytes", stack.name),
                [out.bare, out.steps, back.bare, back.steps, out_rate, in_rate],
            );
        }
    }
    for (name, out, back) in judged {
        section.judge(
            format!("{name}, {JUDGED} bytes out, steps over bare calls"),
            out,
            Target::AtMost(AT_MOST),
        );
        section.judge(
            format!("{name}, {JUDGED} bytes in, steps over bare calls"),
            back,
            Target::AtMost(AT_MOST),
        );
    }
    section.notes.push(
        "steps include a copy of the payload out and headers, checks, counters and replay windows both ways; the way in \
         copies each packet first, bare and in steps"
            .to_owned(),
    );
    Ok(section)
}

/// Both ways of doing the same.
#[derive(Debug, Default)]
struct SideBySide {
    bare: RunValues,
    steps: RunValues,
}

/// Out and in, nanoseconds a packet of `len` bytes of `text`; bare and in steps in turn.
fn measure(
    stack: Stack,
    text: &[u8],
    len: usize,
    repeats: usize,
    least: Duration,
) -> Result<[SideBySide; 2], Error> {
    let count = (BATCH / len).clamp(16, PACKETS);
    let payloads: Vec<&[u8]> = text.windows(len).step_by(APART).take(count).collect();
    let stopwatch = RepeatTimer { repeats: 1, least };
    let (mut sender, mut bare) = (stack.sender()?, stack.bare()?);
    let (mut out, mut back) = (SideBySide::default(), SideBySide::default());
    let units = payloads.len() as u64;
    let mut lengths = Vec::new();
    for payload in &payloads {
        lengths.push(stack.lengths(sender.protect(payload)?));
    }
    for _ in 0..repeats {
        let one = stopwatch.nanos_per_unit(|| {
            payloads.iter().zip(&lengths).try_for_each(|(payload, lengths)| bare.out(payload, *lengths))?;
            Ok::<_, Error>(units)
        })?;
        let other = stopwatch.nanos_per_unit(|| {
            for payload in &payloads {
                std::hint::black_box(sender.protect(payload)?);
            }
            Ok::<_, Error>(units)
        })?;
        one.values().iter().for_each(|value| out.bare.push(*value));
        other.values().iter().for_each(|value| out.steps.push(*value));
    }
    let compressed: Vec<Option<Vec<u8>>> = payloads.iter().map(|payload| bare.compress(payload)).collect();
    for _ in 0..repeats {
        let mut packets = Vec::new();
        for payload in &payloads {
            packets.push(sender.protect(payload)?.to_vec());
        }
        let one = stopwatch.timed(|| {
            let start = ThreadMoment::now();
            for ((packet, compressed), lengths) in packets.iter().zip(&compressed).zip(&lengths) {
                bare.back(packet, compressed.as_deref(), *lengths)?;
            }
            Ok::<_, Error>((start.elapsed(), units))
        })?;
        let other = stopwatch.timed(|| {
            // A packet is taken once, so each batch has an association of its own.
            let mut receiver = stack.receiver()?;
            let start = ThreadMoment::now();
            for packet in &packets {
                std::hint::black_box(receiver.open(packet)?);
            }
            Ok::<_, Error>((start.elapsed(), units))
        })?;
        one.values().iter().for_each(|value| back.bare.push(*value));
        other.values().iter().for_each(|value| back.steps.push(*value));
    }
    Ok([out, back])
}
