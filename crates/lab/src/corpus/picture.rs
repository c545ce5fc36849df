//! A picture as the Web has them, compressed already: GIF89a (CompuServe 1990) with LZW.

use strait_clock::Random;

/// Pixels in width and height: enough that the file is longer than any draw.
const SIDE: u16 = 448;
/// Bits a pixel.
const DEPTH: u8 = 8;
/// LZW's codes besides the pixels themselves: start over, and the end (appendix F).
const CLEAR: u16 = 1 << DEPTH;
const END: u16 = CLEAR + 1;
/// Codes have at most this many bits (appendix F).
const LONGEST: u32 = 12;
/// Data stand in blocks of at most so many bytes, each with its length before it (section 15).
const SUB_BLOCK: usize = 255;

/// The picture's file.
pub(super) fn gif(random: &mut Random) -> Vec<u8> {
    let [low, high] = SIDE.to_le_bytes();
    let mut file = b"GIF89a".to_vec();
    // The screen, with a table of 256 colours; then the colours, all shades of one.
    file.extend([low, high, low, high, 0xf0 | (DEPTH - 1), 0, 0]);
    file.extend((0..=u8::MAX).flat_map(|shade| [shade, shade, shade / 2]));
    // One image that fills it.
    file.extend([b',', 0, 0, 0, 0, low, high, low, high, 0, DEPTH]);
    for block in compressed(&shades(random)).chunks(SUB_BLOCK) {
        file.push(u8::try_from(block.len()).unwrap_or(u8::MAX));
        file.extend_from_slice(block);
    }
    file.extend([0, b';']);
    file
}

/// Hills under an even light, with a little grain.
fn shades(random: &mut Random) -> Vec<u8> {
    let pixels = (0..u64::from(SIDE)).flat_map(|y| (0..u64::from(SIDE)).map(move |x| (x, y)));
    let shade = |(x, y): (u64, u64)| (x * y / 700 + y / 4 + random.below(2)) % 256;
    pixels.map(shade).map(|shade| u8::try_from(shade).unwrap_or(0)).collect()
}

/// Pixels as LZW codes, packed from the least bit on.
fn compressed(pixels: &[u8]) -> Vec<u8> {
    let mut codes = Codes::default();
    // By a string's code and a pixel: the code of both together, or 0 where there is none yet.
    let mut longer = vec![[0_u16; 1 << DEPTH]; 1 << LONGEST];
    let (mut next, mut bits) = (END + 1, u32::from(DEPTH) + 1);
    codes.push(CLEAR, bits);
    let mut string: Option<u16> = None;
    for &pixel in pixels {
        let Some(code) = string else {
            string = Some(u16::from(pixel));
            continue;
        };
        let known = longer[usize::from(code)][usize::from(pixel)];
        if known != 0 {
            string = Some(known);
            continue;
        }
        codes.push(code, bits);
        string = Some(u16::from(pixel));
        if next == 1 << LONGEST {
            codes.push(CLEAR, bits);
            longer.fill([0; 1 << DEPTH]);
            (next, bits) = (END + 1, u32::from(DEPTH) + 1);
        } else {
            longer[usize::from(code)][usize::from(pixel)] = next;
            // The reader is one code behind: it needs the longer ones when the first of them can come.
            bits += u32::from(next == 1 << bits);
            next += 1;
        }
    }
    codes.push(string.unwrap_or(CLEAR), bits);
    codes.push(END, bits);
    codes.finish()
}

/// Bits, the first the least of the first byte.
#[derive(Default)]
struct Codes {
    bytes: Vec<u8>,
    pending: u64,
    held: u32,
}

impl Codes {
    fn push(&mut self, code: u16, bits: u32) {
        self.pending |= u64::from(code) << self.held;
        self.held += bits;
        while self.held >= 8 {
            self.bytes.push((self.pending & 0xff) as u8);
            self.pending >>= 8;
            self.held -= 8;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.held > 0 {
            self.push(0, 8 - self.held);
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LZW as a reader of GIF does it, from its appendix F.
    fn expanded(bytes: &[u8]) -> Vec<u8> {
        let mut bits = bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
        let mut code =
            |len: u32| (0..len).fold(0_usize, |code, bit| code | usize::from(bits.next().unwrap()) << bit);
        let fresh = || (0..=END).map(|it| vec![(it & 0xff) as u8]).collect::<Vec<Vec<u8>>>();
        let (mut table, mut previous, mut out) = (fresh(), Vec::new(), Vec::new());
        loop {
            // A code as long as the table that was read so far needs.
            let bits = (table.len().ilog2() + 1).clamp(9, 12);
            match code(bits) {
                256 => (table, previous) = (fresh(), Vec::new()),
                257 => return out,
                code => {
                    let mut string: Vec<u8> = previous.clone();
                    if code < table.len() {
                        string = table[code].clone();
                    } else {
                        string.push(previous[0]);
                    }
                    if !previous.is_empty() && table.len() < 4096 {
                        previous.push(string[0]);
                        table.push(previous);
                    }
                    out.extend(&string);
                    previous = string;
                }
            }
        }
    }

    #[test]
    fn a_reader_gets_the_pixels_back() {
        let pixels = shades(&mut Random::new(3));
        assert_eq!(expanded(&compressed(&pixels)), pixels);
        let flat = vec![9; 10_000];
        assert_eq!(expanded(&compressed(&flat)), flat);
        assert!(compressed(&flat).len() < 500);
    }

    #[test]
    fn the_file_is_whole_and_as_long_as_needed() {
        let file = gif(&mut Random::new(3));
        assert!(file.starts_with(b"GIF89a\xc0\x01\xc0\x01\xf7"));
        assert!(file.ends_with(&[0, b';']));
        assert!(file.len() >= crate::corpus::LEAST, "{}", file.len());
        // From the first sub-block on, lengths lead to the end.
        let mut at = 6 + 7 + 768 + 11;
        while file[at] != 0 {
            at += usize::from(file[at]) + 1;
        }
        assert_eq!(at, file.len() - 2);
    }
}
