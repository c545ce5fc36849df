//! Takes units apart.

use core::fmt;

use strait_compress::{Codec, Codecs};
use zstd_safe::{DCtx, DParameter, FrameFormat, InBuffer, OutBuffer, ResetDirective, SafeResult};

use super::ladder::{CONTROL_WINDOW_LOG, DATA_WINDOW_LOG};
use super::{BadUnit, UnitCoding, UnitHeader};

/// The expanding half of a stream: a history a context, of 4 MiB and of 128 KiB at most.
#[derive(Default)]
pub struct UnitDecoder {
    histories: [Option<DCtx<'static>>; 2],
    codecs: Codecs,
}

impl UnitDecoder {
    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new() -> UnitDecoder {
        UnitDecoder::default()
    }

    /// Expands the payload of a unit in place of what is in `raw`, which afterwards has as many bytes as the header says.
    ///
    /// # Errors
    /// [`BadUnit`] when the payload is not what the header says; `raw` then means nothing, and no later unit of the stream
    /// can be expanded.
    pub fn decode(&mut self, header: &UnitHeader, payload: &[u8], raw: &mut Vec<u8>) -> Result<(), BadUnit> {
        self.begin(header);
        // One more than it says, so that what would go beyond is seen.
        raw.resize(header.raw + 1, 0);
        let len = match header.coding {
            UnitCoding::Stored => {
                let room = raw.get_mut(..payload.len());
                room.ok_or(BadUnit::WrongLength { raw: header.raw })?.copy_from_slice(payload);
                payload.len()
            }
            UnitCoding::Lz4 => {
                let expanded = self.codecs.expand(Codec::Lz4, payload, raw);
                expanded.map_err(|_| BadUnit::Malformed { codec: Codec::Lz4 })?
            }
            UnitCoding::Zstd => self.continue_frame(header, payload, raw)?,
        };
        if len != header.raw {
            return Err(BadUnit::WrongLength { raw: header.raw });
        }
        raw.truncate(len);
        Ok(())
    }

    /// Ends the history of a unit's context if the unit begins it anew.
    pub(super) fn begin(&mut self, header: &UnitHeader) {
        if let Some(history) = &mut self.histories[header.context.index()]
            && header.anew
        {
            accepted(history.reset(ResetDirective::SessionOnly));
        }
    }

    fn continue_frame(
        &mut self,
        header: &UnitHeader,
        payload: &[u8],
        raw: &mut [u8],
    ) -> Result<usize, BadUnit> {
        let window_log = [DATA_WINDOW_LOG, CONTROL_WINDOW_LOG][header.context.index()];
        let history = self.histories[header.context.index()].get_or_insert_with(|| history(window_log));
        let (mut input, mut output) = (InBuffer::around(payload), OutBuffer::around(raw));
        loop {
            let before = (input.pos(), output.pos());
            let done = history.decompress_stream(&mut output, &mut input);
            done.map_err(|_| BadUnit::Malformed { codec: Codec::Zstd })?;
            if output.pos() > header.raw {
                return Err(BadUnit::WrongLength { raw: header.raw });
            }
            // With room left and nothing more to read, all that there is has come out.
            if before == (input.pos(), output.pos()) {
                break;
            }
        }
        if input.pos() == payload.len() {
            Ok(output.pos())
        } else {
            Err(BadUnit::Malformed { codec: Codec::Zstd })
        }
    }
}

/// A context for frames with a window of at most 2^`window_log` bytes; the library takes memory for no larger one.
fn history(window_log: u32) -> DCtx<'static> {
    let mut context = DCtx::create();
    for parameter in [DParameter::Format(FrameFormat::Magicless), DParameter::WindowLogMax(window_log)] {
        accepted(context.set_parameter(parameter));
    }
    context
}

/// Our parameters are constants inside the library's bounds; it refuses none.
fn accepted(result: SafeResult) {
    debug_assert!(result.is_ok(), "zstd refused: {result:?}");
}

impl fmt::Debug for UnitDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitDecoder").finish_non_exhaustive()
    }
}
