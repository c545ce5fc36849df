//! DEFLATE with a narrow window, by zlib-rs: libdeflate has but one window, of 32 KiB.

use zlib_rs::{Deflate, DeflateFlush, Status};

use crate::Method;

/// Farthest distance that Linux expands in IPComp (`DEFLATE_DEF_WINBITS` in `crypto/deflate.c`): measured,
/// 7.2 drops a packet with a farther one, while 6.1 still follows it.
pub(super) const WINDOW: usize = 1 << WINDOW_BITS;
const WINDOW_BITS: u8 = 11;

/// The context.
#[derive(Default)]
pub(super) struct NarrowDeflate(Option<Deflate>);

impl NarrowDeflate {
    /// Compresses `input` as one stream into the front of `output`; `None` when it does not fit.
    pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
        let deflate =
            self.0.get_or_insert_with(|| Deflate::new(i32::from(Method::DEFLATE.level), false, WINDOW_BITS));
        deflate.reset();
        match deflate.compress(input, output, DeflateFlush::Finish) {
            Ok(Status::StreamEnd) => usize::try_from(deflate.total_out()).ok(),
            _ => None,
        }
    }
}
