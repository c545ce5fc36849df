//! The end of V.42bis that compresses.

use super::dictionary::{BtlzDictionary, FIRST_WIDTH};
use super::{V42bisSettings, command, escape};

/// Characters after which it is asked again whether compressing pays (section 7.8 leaves the test to the modem).
const TEST_EVERY: u32 = 256;
/// Of the bits that characters take as they are, the share below which codewords must be for compressing to begin: less than all,
/// so that the mode does not change to and fro.
const BEGIN_BELOW: (u32, u32) = (15, 16);

/// Compresses characters as they come, and leaves them as they are while that is shorter (V.42bis section 7).
#[derive(Clone, Debug)]
pub struct V42bisEncoder {
    settings: V42bisSettings,
    dictionary: BtlzDictionary,
    transparent: bool,
    escape: u8,
    /// Bits of a codeword (C2).
    width: u32,
    /// Bits that wait for an octet to be full, and how many.
    bits: (u32, u32),
    /// Since the last test: characters, the bits of their codewords, and those of the characters with escapes.
    tested: [u32; 3],
}

impl V42bisEncoder {
    /// One that has seen nothing; it begins in transparent mode (section 7.1).
    #[must_use]
    pub fn new(settings: V42bisSettings) -> V42bisEncoder {
        V42bisEncoder {
            settings,
            dictionary: BtlzDictionary::new(settings),
            transparent: true,
            escape: 0,
            width: FIRST_WIDTH,
            bits: (0, 0),
            tested: [0; 3],
        }
    }

    /// Whether characters go as they are.
    #[must_use]
    pub const fn is_transparent(&self) -> bool {
        self.transparent
    }

    /// Whether characters wait for more, or bits for an octet to be full.
    #[must_use]
    pub const fn holds_back(&self) -> bool {
        !self.transparent && (self.dictionary.is_matching() || self.bits.1 > 0)
    }

    /// Takes a character, and writes what is complete behind `out`.
    pub fn push(&mut self, octet: u8, out: &mut Vec<u8>) {
        self.test(out);
        let escaped = octet == self.escape;
        self.tested[0] += 1;
        self.tested[2] += 8 + if escaped { 8 } else { 0 };
        let complete = self.dictionary.take(octet);
        if let Some(code) = complete {
            self.tested[1] += self.width.max(width_of(code));
        }
        if self.transparent {
            out.push(octet);
            out.extend(escaped.then_some(escape::DATA));
        } else if let Some(code) = complete {
            self.send_string(code, out);
        }
        if escaped {
            self.escape = escape::after(self.escape);
        }
    }

    /// Writes what is left so that the other end has all (section 7.9).
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if self.transparent {
            return;
        }
        self.close(out);
        if self.bits.1 > 0 {
            self.send(command::FLUSH, out);
            self.align(out);
        }
    }

    /// Both ends forget all strings (section 7.8.3).
    pub fn reset(&mut self, out: &mut Vec<u8>) {
        if !self.transparent {
            self.enter_transparent(out);
        }
        out.extend([self.escape, escape::RESET]);
        *self = V42bisEncoder::new(self.settings);
    }

    /// Changes the mode where the other one would have been shorter.
    fn test(&mut self, out: &mut Vec<u8>) {
        let [characters, coded, plain] = self.tested;
        if characters < TEST_EVERY {
            return;
        }
        self.tested = [0; 3];
        if self.transparent && coded * BEGIN_BELOW.1 < plain * BEGIN_BELOW.0 {
            // Its characters are there already.
            self.dictionary.close();
            out.extend([self.escape, escape::COMPRESS]);
            self.transparent = false;
        } else if !self.transparent && coded > plain {
            self.enter_transparent(out);
        }
    }

    fn enter_transparent(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        self.send(command::TRANSPARENT, out);
        self.align(out);
        self.transparent = true;
    }

    /// Sends the string that is being matched.
    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(code) = self.dictionary.close() {
            self.send_string(code, out);
        }
    }

    /// Section 7.4: codewords become longer before one that needs it.
    fn send_string(&mut self, code: u16, out: &mut Vec<u8>) {
        while self.width < width_of(code) {
            self.send(command::STEP_UP, out);
            self.width += 1;
        }
        self.send(code, out);
    }

    /// Section 7.5: the least bit first.
    fn send(&mut self, code: u16, out: &mut Vec<u8>) {
        let (bits, count) = &mut self.bits;
        *bits |= u32::from(code) << *count;
        *count += self.width;
        while *count >= 8 {
            out.push(*bits as u8);
            *bits >>= 8;
            *count -= 8;
        }
    }

    fn align(&mut self, out: &mut Vec<u8>) {
        if self.bits.1 > 0 {
            out.push(self.bits.0 as u8);
        }
        self.bits = (0, 0);
    }
}

/// Bits that a codeword needs, at least the first width.
const fn width_of(code: u16) -> u32 {
    let bits = u16::BITS - code.leading_zeros();
    if bits < FIRST_WIDTH { FIRST_WIDTH } else { bits }
}
