//! Makes units: one Zstandard frame a history, continued from unit to unit.

use core::fmt;

use strait_compress::{Codecs, Method, THRESHOLD};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, FrameFormat, InBuffer, OutBuffer, ResetDirective, SafeResult};

use super::ladder::UnitRung;
use super::{UNIT_HEADER_LEN, UnitCoding, UnitContext, UnitHeader};

/// The compressing half of a stream: a history a context.
#[derive(Default)]
pub(super) struct UnitEncoder {
    histories: [Option<UnitHistory>; 2],
    codecs: Codecs,
}

/// A frame that goes on.
struct UnitHistory {
    context: CCtx<'static>,
    method: Method,
    /// Whether the frame has begun.
    begun: bool,
}

impl UnitEncoder {
    /// Makes a unit of `raw` in place of what is in `unit`: a header and its payload. What does not shrink is stored.
    ///
    /// `rung`: nothing to store it. `anew`: whether the context's history ends before this unit.
    pub(super) fn encode(
        &mut self,
        raw: &[u8],
        context: UnitContext,
        rung: Option<&UnitRung>,
        anew: bool,
        unit: &mut Vec<u8>,
    ) {
        if let Some(history) = &mut self.histories[context.index()]
            && anew
        {
            history.end();
        }
        unit.resize(UNIT_HEADER_LEN + raw.len(), 0);
        let (header, payload) = unit.split_at_mut(UNIT_HEADER_LEN);
        let rung = rung.filter(|_| raw.len() >= THRESHOLD);
        let made = match rung {
            None => None,
            Some(rung) if rung.method == Method::LZ4 => {
                let room = payload.len() - 1;
                let made = self.codecs.compress(rung.method, raw, &mut payload[..room]);
                made.map(|len| (UnitCoding::Lz4, len, false))
            }
            Some(rung) => self.continue_frame(raw, context, rung, payload),
        };
        let (coding, len, anew) = made.unwrap_or_else(|| {
            payload.copy_from_slice(raw);
            (UnitCoding::Stored, raw.len(), false)
        });
        let made = UnitHeader { coding, anew, context, payload: len, raw: raw.len() };
        header.copy_from_slice(&made.bytes());
        unit.truncate(UNIT_HEADER_LEN + len);
    }

    /// Continues the frame of `context` by `raw`, or begins another; nothing if the result is not smaller.
    fn continue_frame(
        &mut self,
        raw: &[u8],
        context: UnitContext,
        rung: &UnitRung,
        payload: &mut [u8],
    ) -> Option<(UnitCoding, usize, bool)> {
        let place = &mut self.histories[context.index()];
        // The old context goes before the new one takes its memory.
        place.take_if(|history| history.method != rung.method);
        let history = place.get_or_insert_with(|| UnitHistory::new(rung));
        let anew = !history.begun;
        history.begun = true;
        let room = payload.len() - 1;
        let made = history.part(raw, &mut payload[..room]);
        if made.is_none() {
            // The frame contains what the reader will not get.
            history.end();
        }
        made.map(|len| (UnitCoding::Zstd, len, anew))
    }
}

impl UnitHistory {
    fn new(rung: &UnitRung) -> UnitHistory {
        let mut context = CCtx::create();
        let parameters = [
            CParameter::CompressionLevel(i32::from(rung.method.level)),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::WindowLog(rung.window_log),
            CParameter::ContentSizeFlag(false),
            CParameter::ChecksumFlag(false),
            CParameter::DictIdFlag(false),
        ];
        let tables =
            rung.tables.map(|(hash, chain)| [CParameter::HashLog(hash), CParameter::ChainLog(chain)]);
        for parameter in parameters.into_iter().chain(tables.into_iter().flatten()) {
            accepted(context.set_parameter(parameter));
        }
        UnitHistory { context, method: rung.method, begun: false }
    }

    /// Forgets everything; the memory stays.
    fn end(&mut self) {
        accepted(self.context.reset(ResetDirective::SessionOnly));
        self.begun = false;
    }

    /// The next part of the frame, to the end of `raw`; nothing if it does not fit.
    fn part(&mut self, raw: &[u8], room: &mut [u8]) -> Option<usize> {
        let (mut input, mut output) = (InBuffer::around(raw), OutBuffer::around(room));
        loop {
            let before = (input.pos(), output.pos());
            let flush = ZSTD_EndDirective::ZSTD_e_flush;
            match self.context.compress_stream2(&mut output, &mut input, flush) {
                Ok(0) if input.pos() == raw.len() => return Some(output.pos()),
                // Without progress the output is full.
                Ok(_) if before != (input.pos(), output.pos()) && output.pos() < output.capacity() => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}

/// Our parameters are constants inside the library's bounds; it refuses none.
fn accepted(result: SafeResult) {
    debug_assert!(result.is_ok(), "zstd refused a parameter: {result:?}");
}

impl fmt::Debug for UnitEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitEncoder").finish_non_exhaustive()
    }
}
