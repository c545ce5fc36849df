//! Compression of one direction of a stream: each unit refers to those before it in the same stream, and to nothing else.

use core::fmt;

use strait_compress::probe;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{
    CCtx, CParameter, DCtx, DParameter, FrameFormat, InBuffer, OutBuffer, ResetDirective, SafeResult,
};

use crate::LoginError;
use crate::message::MessageUnit;

/// The window is 1 MiB: what a person still sees of a session, and with it a reader takes 1.3 MB.
const WINDOW_LOG: u32 = 20;
/// Tables of 2^18 entries hold the highest level at 4 MB.
const TABLE_LOG: u32 = 18;
/// Bytes below which nothing is tried: a part of a frame has three bytes of its own, and a name of 64 in a history saves less.
const LEAST: usize = 48;
/// Bytes from which on the probe is asked first: of less, most of what shrinks was in the history, which the probe does not see.
const PROBED: usize = 1024;
/// A unit that saves less than this did not shrink (as in the tunnel's chooser).
const WORTH: f64 = 0.05;
/// Bytes at most that are stored without a try after data that did not shrink: of 4 MiB one unit is compressed in vain.
const LONGEST_REST: usize = 4 << 20;
/// Levels by the fastest link, in Mbit/s, that they are for: at a ratio of 6, each takes about a fifth of a processor on its link by the
/// speeds that the units of files were measured with. Beyond the last, nothing is compressed.
const LEVELS: [(f64, i32); 6] = [(3.0, 12), (12.0, 9), (30.0, 6), (60.0, 3), (300.0, 1), (1_200.0, -3)];
/// The level while nothing is known of the link.
const FIRST: i32 = 3;
/// A rate has to be so many times another before the level follows it, since the history then begins anew.
const HYSTERESIS: f64 = 1.5;

/// Compresses units.
pub(crate) struct Press {
    context: Option<CCtx<'static>>,
    /// Whether the frame has begun.
    begun: bool,
    level: Option<i32>,
    /// What the level was chosen for, in bit/s.
    rate: Option<f64>,
    /// Bytes that are still to be stored without a try, and the units that did not shrink since one did.
    resting: usize,
    vain: u32,
    made: Vec<u8>,
}

impl Press {
    /// At the beginning of a stream. `rate_bits`: the link's, if it is known.
    pub(crate) fn new(rate_bits: Option<u64>) -> Press {
        let rate = rate_bits.map(|bits| bits as f64);
        let level = rate.map_or(Some(FIRST), level_for);
        Press { context: None, begun: false, level, rate, resting: 0, vain: 0, made: Vec::new() }
    }

    /// Another stream begins: nothing refers to this one.
    pub(crate) fn restart(&mut self) {
        self.end_frame();
        (self.resting, self.vain) = (0, 0);
    }

    /// The link takes so many bits a second.
    pub(crate) fn set_rate(&mut self, bits: f64) {
        let near = |rate: f64| bits < rate * HYSTERESIS && rate < bits * HYSTERESIS;
        if bits <= 0.0 || self.rate.is_some_and(near) {
            return;
        }
        self.rate = Some(bits);
        let level = level_for(bits);
        if level != self.level {
            self.level = level;
            self.context = None;
            self.begun = false;
        }
    }

    /// A unit of 1 byte to 64 KiB.
    pub(crate) fn press<'a>(&'a mut self, raw: &'a [u8]) -> MessageUnit<'a> {
        let Some(level) = self.level.filter(|_| raw.len() >= LEAST) else { return MessageUnit::Stored(raw) };
        if self.resting > 0 {
            self.resting = self.resting.saturating_sub(raw.len());
            return MessageUnit::Stored(raw);
        }
        let anew = !self.begun;
        let made = if raw.len() < PROBED || probe::shrinkable(raw) { self.part(level, raw) } else { None };
        let saved = made.map_or(0.0, |made| 1.0 - made as f64 / raw.len() as f64);
        if saved < WORTH {
            self.vain = (self.vain + 1).min(16);
            self.resting = (raw.len() << self.vain).min(LONGEST_REST);
        } else {
            self.vain = 0;
        }
        match made {
            Some(len) => MessageUnit::Zstd { anew, raw: raw.len(), payload: &self.made[..len] },
            None => MessageUnit::Stored(raw),
        }
    }

    /// The next part of the frame; nothing if it is not smaller. The frame then contains what the reader will not get, and ends.
    fn part(&mut self, level: i32, raw: &[u8]) -> Option<usize> {
        let context = self.context.get_or_insert_with(|| compressor(level));
        self.begun = true;
        // With three bytes of the message less, so that what is said to be smaller is.
        self.made.resize(raw.len() - 3, 0);
        let (mut input, mut output) = (InBuffer::around(raw), OutBuffer::around(&mut self.made[..]));
        let made = loop {
            let before = (input.pos(), output.pos());
            match context.compress_stream2(&mut output, &mut input, ZSTD_EndDirective::ZSTD_e_flush) {
                Ok(0) if input.pos() == raw.len() => break Some(output.pos()),
                // Without progress the output is full.
                Ok(_) if before != (input.pos(), output.pos()) && output.pos() < output.capacity() => {}
                Ok(_) | Err(_) => break None,
            }
        };
        if made.is_none() {
            self.end_frame();
        }
        made
    }

    fn end_frame(&mut self) {
        if let Some(context) = &mut self.context {
            accepted(context.reset(ResetDirective::SessionOnly));
        }
        self.begun = false;
    }
}

fn level_for(bits: f64) -> Option<i32> {
    LEVELS.into_iter().find(|(most, _)| bits <= most * 1e6).map(|(_, level)| level)
}

fn compressor(level: i32) -> CCtx<'static> {
    let mut context = CCtx::create();
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::Format(FrameFormat::Magicless),
        CParameter::WindowLog(WINDOW_LOG),
        CParameter::HashLog(TABLE_LOG),
        CParameter::ChainLog(TABLE_LOG),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ] {
        accepted(context.set_parameter(parameter));
    }
    context
}

/// Expands units.
#[derive(Default)]
pub(crate) struct Expander {
    context: Option<DCtx<'static>>,
}

impl Expander {
    /// Another stream begins.
    pub(crate) fn restart(&mut self) {
        self.context = None;
    }

    /// The bytes of a unit, at most 64 KiB.
    pub(crate) fn expand(&mut self, unit: &MessageUnit<'_>) -> Result<Vec<u8>, LoginError> {
        match unit {
            MessageUnit::Stored(bytes) => Ok(bytes.to_vec()),
            MessageUnit::Zstd { anew, raw, payload } => self.part(*anew, *raw, payload),
        }
    }

    fn part(&mut self, anew: bool, raw: usize, payload: &[u8]) -> Result<Vec<u8>, LoginError> {
        let context = self.context.get_or_insert_with(expander);
        if anew {
            accepted(context.reset(ResetDirective::SessionOnly));
        }
        // One more than it says, so that what would go beyond is seen.
        let mut bytes = vec![0; raw + 1];
        let (mut input, mut output) = (InBuffer::around(payload), OutBuffer::around(&mut bytes[..]));
        loop {
            let before = (input.pos(), output.pos());
            context.decompress_stream(&mut output, &mut input).map_err(|_| LoginError::Compressed)?;
            // With room left and nothing more to read, all that there is has come out.
            if output.pos() > raw || before == (input.pos(), output.pos()) {
                break;
            }
        }
        if output.pos() != raw || input.pos() != payload.len() {
            return Err(LoginError::Compressed);
        }
        bytes.truncate(raw);
        Ok(bytes)
    }
}

/// A context for frames with our window at most; the library takes memory for no larger one.
fn expander() -> DCtx<'static> {
    let mut context = DCtx::create();
    for parameter in [DParameter::Format(FrameFormat::Magicless), DParameter::WindowLogMax(WINDOW_LOG)] {
        accepted(context.set_parameter(parameter));
    }
    context
}

/// Our parameters are constants inside the library's bounds; it refuses none.
fn accepted(result: SafeResult) {
    debug_assert!(result.is_ok(), "zstd refused: {result:?}");
}

impl fmt::Debug for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Press").field("level", &self.level).finish_non_exhaustive()
    }
}

impl fmt::Debug for Expander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Expander")
    }
}
