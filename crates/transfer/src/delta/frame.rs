//! Literals of a window as one Zstandard frame, with what the receiver has near them as prefix.

use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat, SafeResult};

/// Longest prefix that a frame refers to: two windows, one that is copied and one of hints.
pub(super) const PREFIX: usize = 2 * super::WINDOW;
/// log2 of the farthest distance: a prefix and a window lie within 2^24 bytes. The reader takes no memory for it.
const WINDOW_LOG_MAX: u32 = 24;
/// Level of literals: the highest whose tables are searched by lazy matching, so that a prefix is loaded in some tens of milliseconds.
/// Other levels were not compared here.
const LEVEL: i32 = 12;
/// log2 of the entries of the hash table and of the chain table: 8 MB together.
const TABLES: (u32, u32) = (20, 20);
/// Prefixes that are longer than the tables remember are searched for long matches, too: what is changed in few places is nearly one.
/// log2 of the entries of that table, 8 bytes each; the shortest match; and log2 of how many places have one entry. Text of 3.7 MB with
/// another word every 8.5 kB took 1.72 MB without this, and takes less than 30 kB. Other values were not compared.
const LONG_MATCHES: (u32, u32, u32) = (18, 32, 4);
/// Level of lists of operations, which have some kilobytes.
const OPERATIONS_LEVEL: i32 = 19;

/// Compresses `raw` after `prefix`; nothing if that is not smaller.
pub(super) fn compress(raw: &[u8], prefix: &[u8]) -> Option<Vec<u8>> {
    let mut made = vec![0; raw.len().checked_sub(1)?];
    let mut context = CCtx::create();
    let span = (raw.len() + prefix.len()).next_power_of_two().ilog2().clamp(10, WINDOW_LOG_MAX);
    let level = if prefix.is_empty() && raw.len() < 1 << 17 { OPERATIONS_LEVEL } else { LEVEL };
    let long = prefix.len() > 1 << TABLES.1;
    let (table, shortest, rate) = LONG_MATCHES;
    for parameter in [
        CParameter::CompressionLevel(level),
        CParameter::EnableLongDistanceMatching(long),
        CParameter::LdmHashLog(table),
        CParameter::LdmMinMatch(shortest),
        CParameter::LdmHashRateLog(rate),
        CParameter::Format(FrameFormat::Magicless),
        CParameter::WindowLog(span),
        CParameter::HashLog(TABLES.0.min(span)),
        CParameter::ChainLog(TABLES.1.min(span)),
        CParameter::ContentSizeFlag(false),
        CParameter::ChecksumFlag(false),
        CParameter::DictIdFlag(false),
    ] {
        accepted(context.set_parameter(parameter));
    }
    accepted(context.ref_prefix(prefix));
    let len = context.compress2(&mut made[..], raw).ok()?;
    made.truncate(len);
    Some(made)
}

/// Expands a frame of exactly `len` bytes after `prefix`; nothing if it is none.
pub(super) fn expand(frame: &[u8], prefix: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut raw = vec![0; len];
    let mut context = DCtx::create();
    for parameter in [DParameter::Format(FrameFormat::Magicless), DParameter::WindowLogMax(WINDOW_LOG_MAX)] {
        accepted(context.set_parameter(parameter));
    }
    accepted(context.ref_prefix(prefix));
    (context.decompress(&mut raw[..], frame) == Ok(len)).then_some(raw)
}

/// Our parameters are constants inside the library's bounds; it refuses none.
fn accepted(result: SafeResult) {
    debug_assert!(result.is_ok(), "zstd refused a parameter: {result:?}");
}
