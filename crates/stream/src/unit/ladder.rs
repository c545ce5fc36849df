//! The rungs of the ladder: from stored to the highest level of Zstandard that a thin link pays for.

use strait_compress::{Calibration, Codec, Method};
use strait_model::{Bytes, Ratio, Seconds};

/// log2 of the farthest distance in a unit of files' data: 4 MiB, which is what the reader takes. Against 2 MiB it gains 0.5 % at
/// level 3 on a tar of 27 MB.
pub(super) const DATA_WINDOW_LOG: u32 = 22;
/// log2 of the same in control units, which are few and small.
pub(super) const CONTROL_WINDOW_LOG: u32 = 17;

/// A rung: what a unit is compressed with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct UnitRung {
    /// The codec and its level.
    pub(super) method: Method,
    /// log2 of the window.
    pub(super) window_log: u32,
    /// log2 of the entries of the hash table and of the chain table, where the library's own would take too much memory.
    pub(super) tables: Option<(u32, u32)>,
    /// The candidate of the calibration whose times are nearest, and how many times longer this takes.
    times: (Method, f64),
    /// Bytes that come out of text of programs for a thousand that zstd-3 makes of it, with history.
    of_zstd_3: f64,
}

const fn zstd(
    level: i8,
    window_log: u32,
    tables: Option<(u32, u32)>,
    times: (i8, f64),
    of_zstd_3: f64,
) -> UnitRung {
    let (like, factor) = times;
    UnitRung {
        method: Method { codec: Codec::Zstd, level },
        window_log,
        tables,
        times: (Method { codec: Codec::Zstd, level: like }, factor),
        of_zstd_3,
    }
}

/// The ladder, the quickest first; nothing stands before it: stored.
///
/// Sizes are relative to zstd-3, times to the calibrated level beside: of levels 1, 9, 12, 15, 17 and 19 measured over a tar of
/// Python source in units of 256 KiB with history, on a busy machine; of LZ4 and of levels -1 and 6 estimated. They are where a
/// choice begins: it corrects them by what units take. Tables of 2^19 and 2^21 entries hold the highest levels at 16 MB; twice
/// the size takes 26 MB at level 15 and gains 0.5 %.
pub(super) const LADDER: [UnitRung; 10] = [
    UnitRung {
        method: Method::LZ4,
        window_log: 16,
        tables: None,
        times: (Method::LZ4, 1.0),
        of_zstd_3: 1_900.0,
    },
    zstd(-1, 20, None, (-1, 1.0), 1_390.0),
    zstd(1, 21, None, (1, 1.0), 1_119.0),
    zstd(3, 21, None, (3, 1.5), 1_000.0),
    zstd(6, DATA_WINDOW_LOG, Some((20, 19)), (9, 0.7), 890.0),
    zstd(9, DATA_WINDOW_LOG, Some((20, 19)), (9, 1.0), 853.0),
    zstd(12, DATA_WINDOW_LOG, Some((20, 20)), (9, 1.6), 836.0),
    zstd(15, DATA_WINDOW_LOG, Some((19, 21)), (9, 7.0), 803.0),
    zstd(17, DATA_WINDOW_LOG, Some((19, 21)), (9, 16.0), 769.0),
    zstd(19, DATA_WINDOW_LOG, Some((19, 21)), (9, 27.0), 733.0),
];
/// The place of what takes the least time in [`LADDER`].
pub(super) const QUICKEST: usize = 0;
/// The place of zstd-1 in [`LADDER`]: what is used while nothing is known of the link, until buffers are full. Against zstd-3 this takes
/// half the time, and on a thin link at most an eighth of these buffers more.
pub(super) const FIRST_RUNG: usize = 2;
/// How far zstd-3 shrinks text of programs with history: the same tar.
const TEXT_RATIO: f64 = 6.2;
/// Control units: small, alike, and never what limits.
pub(super) const CONTROL_RUNG: UnitRung = zstd(3, CONTROL_WINDOW_LOG, None, (3, 1.5), 1_000.0);

impl UnitRung {
    /// How long `raw` bytes take by the calibration.
    pub(super) fn due(&self, calibration: &Calibration, raw: usize) -> Seconds {
        let (like, factor) = self.times;
        calibration.of(like).map_or(Seconds(0.0), |figures| figures.compress.of(Bytes(raw as u64)) * factor)
    }

    /// How long expanding to `raw` bytes takes by the calibration.
    pub(super) fn expand(&self, calibration: &Calibration, raw: usize) -> Seconds {
        calibration.of(self.times.0).map_or(Seconds(0.0), |figures| figures.expand.of(Bytes(raw as u64)))
    }

    /// The logarithm of the ratio that it reaches on text of programs.
    pub(super) fn text(&self) -> f64 {
        (TEXT_RATIO * 1_000.0 / self.of_zstd_3).ln()
    }

    /// The ratio on data of this compressibility (1: as text of programs).
    pub(super) fn ratio(&self, compressibility: f64) -> Ratio {
        Ratio::new((compressibility * self.text()).exp()).unwrap_or(Ratio::ONE)
    }
}
