//! How well the computed cells meet the printed ones, and what the printed ones tell of what the paper leaves open.

use super::{SpeedupGrid, TABLE2_SIZE, cells, grid};
use crate::claim::greatest;
use crate::vpn::printed::{COMBINATIONS, NETWORKS, TABLE1_ROUNDING, TABLE2, TABLE2_ROUNDING};
use crate::vpn::transaction::{Headers, printed};

/// The cells that do not round to what is printed.
pub(super) fn missed(grid: &SpeedupGrid) -> Vec<String> {
    let misses =
        |row: usize, column: usize| (grid[row][column] - TABLE2[row][column]).abs() > TABLE2_ROUNDING;
    cells(0..NETWORKS.len()).filter(|(row, column, _)| misses(*row, *column)).map(|(.., name)| name).collect()
}

/// The greatest difference from what is printed, and where.
pub(super) fn worst(grid: &SpeedupGrid) -> (String, f64) {
    greatest(
        cells(0..NETWORKS.len())
            .map(|(row, column, name)| (name, (grid[row][column] - TABLE2[row][column]).abs())),
    )
}

/// The cells that no rates meet which round to those of Table 1.
pub(super) fn unexplained() -> Vec<String> {
    // A speedup rises with each rate, so all rates at their lowest and at their highest give its range.
    let [low, high] =
        [-1.0, 1.0].map(|sign| grid(&printed(TABLE2_SIZE, sign * TABLE1_ROUNDING), Headers::PAPER));
    let misses = |row: usize, column: usize| {
        let cell: f64 = TABLE2[row][column];
        low[row][column] > cell + TABLE2_ROUNDING || high[row][column] < cell - TABLE2_ROUNDING
    };
    cells(0..NETWORKS.len()).filter(|(row, column, _)| misses(*row, *column)).map(|(.., name)| name).collect()
}

/// What comes of it, in words.
pub(super) fn notes() -> Vec<String> {
    let all = NETWORKS.len() * COMBINATIONS.len();
    let of = |headers: Headers| grid(&printed(TABLE2_SIZE, 0.0), headers);
    let (whole, truncated) = (missed(&of(Headers::PAPER)), missed(&of(Headers::TRUNCATED)));
    let (at, most) = worst(&of(Headers::PAPER));
    vec![
        format!(
            "{} of {all} computed cells round to the printed ones, all within {most:.4} ({at}); not those of {}",
            all - whole.len(),
            whole.join("; ")
        ),
        format!(
            "Table 1's rates are themselves rounded to 1 Mbit/s; what that leaves unexplained: {}",
            unexplained().join("; ")
        ),
        format!(
            "the cells imply ICVs that are not truncated in AH, 16 bytes of MD5 and 20 of SHA-1; with the 96 bits of \
             RFC 2403 and RFC 2404 only {} of {all} come out",
            all - truncated.len()
        ),
        "besides, after section 4.1: IPv6, TCP without options, fragments of 1280 bytes, 80 % of the link's rate, \
         ESP with an IV and padding of 8 bytes and without an ICV of its own"
            .to_owned(),
    ]
}
