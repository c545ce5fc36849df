//! A page as a fax machine scans it: two colours, mostly white, lines of type and a drawing.

use strait_clock::Random;

/// Bytes a row: 1,728 pixels, as in ITU-T T.4 section 2.2 and in the `pic` of the Calgary corpus.
const ROW: usize = 216;
/// Rows: the front that blocks are drawn from, and some more.
const ROWS: usize = 320;
/// Rows of a line of type, and of the white under it.
const TYPE: (usize, usize) = (24, 16);
/// White rows at the top.
const TOP: usize = 48;
/// Bytes of white at the left and at the right of the type.
const MARGIN: usize = 24;
/// Letters there are, each two bytes wide.
const LETTERS: usize = 26;

/// The page, a bit a pixel, black is 1.
pub(super) fn page(random: &mut Random) -> Vec<u8> {
    let mut page = vec![0; ROW * ROWS];
    let font: Vec<[u16; TYPE.0]> = (0..LETTERS).map(|_| letter(random)).collect();
    for line in (TOP..ROWS - TYPE.0).step_by(TYPE.0 + TYPE.1) {
        // Every third line is short, as at the end of a paragraph.
        let end = if random.below(3) == 0 { ROW / 2 } else { ROW - MARGIN };
        for column in (MARGIN..end).step_by(2) {
            // One place in six is the white between words.
            if random.below(6) > 0 {
                let letter = font[usize::try_from(random.below(LETTERS as u64)).unwrap_or(0)];
                for (row, bits) in (line..).zip(letter) {
                    page[row * ROW + column..][..2].copy_from_slice(&bits.to_be_bytes());
                }
            }
        }
    }
    // A frame around all of it: two lines down the page.
    for row in page.chunks_exact_mut(ROW) {
        row[8] = 0x18;
        row[ROW - 9] = 0x18;
    }
    page
}

/// A letter: a few strokes that run down it and a bar across.
fn letter(random: &mut Random) -> [u16; TYPE.0] {
    let strokes = 0x3000 >> random.below(4) | 0x00c0 >> random.below(4);
    let bar = usize::try_from(random.below(20)).unwrap_or(0) + 2;
    core::array::from_fn(|row| match row {
        0 | 1 | 22 | 23 => 0,
        _ if row == bar || row == bar + 1 => 0x3ffc,
        _ => strokes,
    })
}
