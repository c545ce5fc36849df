//! The longest repetitions at every place of a block, of the whole window.

use super::code::{NEAR, WINDOW};
use super::common::common;
use super::places::Places;

/// Length from which a repetition is not compared with others: measured on the Calgary corpus, more
/// gains less than a thousandth.
const ENOUGH: usize = 32;
/// Earlier places of a string that are looked at: twice as many gain a thousandth, and cost a tenth of
/// the speed.
const DEPTH: usize = 16;
/// Instead of a step in a chain: there is none.
const NO_STEP: u16 = u16::MAX;

/// Some bytes that began some bytes ago: the length above the offset, so that the longer is the greater.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repeat(u32);

impl Repeat {
    /// No repetition.
    pub(super) const NONE: Repeat = Repeat(0);

    fn new(offset: usize, length: usize) -> Repeat {
        Repeat((length.min(u16::MAX.into()) << 16 | offset) as u32)
    }

    /// How many bytes ago they began, to [`WINDOW`].
    pub(super) fn offset(self) -> usize {
        self.0 as usize & 0xffff
    }

    /// How many bytes they are; fewer than two are no repetition.
    pub(super) fn length(self) -> usize {
        self.0 as usize >> 16
    }

    /// The same repetition one place later.
    fn shifted(self) -> Repeat {
        if self.length() > 2 { Repeat(self.0 - (1 << 16)) } else { Repeat::NONE }
    }
}

/// The longest repetitions at a place, by the code of their offsets.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// With an offset of 7 bits.
    pub(super) near: Repeat,
    /// With one of 11 bits.
    pub(super) far: Repeat,
}

impl Found {
    /// The same repetitions one place later.
    pub(super) fn shifted(self) -> Found {
        Found { near: self.near.shifted(), far: self.far.shifted() }
    }

    #[inline(always)]
    fn offer(&mut self, offset: usize, length: usize) {
        let repeat = Repeat::new(offset, length);
        let (near, far) = if offset <= NEAR { (repeat, Repeat::NONE) } else { (Repeat::NONE, repeat) };
        *self = Found { near: self.near.max(near), far: self.far.max(far) };
    }
}

/// Where strings were met.
pub(super) struct Search {
    /// Of two bytes, the last.
    pairs: Places<4_096>,
    /// Of three bytes, the last.
    triples: Places<8_192>,
    /// For every place of the window, how far before it its three bytes, or others that share their
    /// place in `triples`, were met.
    before: Box<[u16; WINDOW + 1]>,
}

impl Search {
    /// No string met.
    pub(super) fn new() -> Search {
        Search { pairs: Places::new(), triples: Places::new(), before: Box::new([NO_STEP; WINDOW + 1]) }
    }

    /// Begins a block of `len` bytes.
    pub(super) fn begin(&mut self, len: usize) {
        self.pairs.begin(len);
        self.triples.begin(len);
    }

    /// Adds what there is at `at` to what is `found`; to be asked for every place of the block in turn.
    #[inline(always)]
    pub(super) fn find(&mut self, input: &[u8], at: usize, mut found: Found) -> Found {
        let place = Place::new(input, at);
        let pair = self.pairs.replace(place.word as u32 & 0xffff, at);
        let triple = self.triples.replace(place.word as u32 & 0xff_ffff, at);
        let reach = WINDOW.min(at);
        self.before[at & WINDOW] = if (1..=reach).contains(&triple) { triple as u16 } else { NO_STEP };
        if found.near.max(found.far).length() < ENOUGH {
            let mut offset = 0;
            for _ in 0..DEPTH {
                offset += usize::from(self.before[(at - offset) & WINDOW]);
                if offset > reach {
                    break;
                }
                found.offer(offset, place.length(offset));
            }
        }
        if found.near.length() < 2 && (1..=reach).contains(&pair) {
            found.offer(pair, place.length(pair));
        }
        found
    }
}

/// A place in a block.
struct Place<'a> {
    input: &'a [u8],
    at: usize,
    /// The eight bytes there, the first the lowest.
    word: u64,
    /// Whether there are as many.
    whole: bool,
}

impl Place<'_> {
    #[inline(always)]
    fn new(input: &[u8], at: usize) -> Place<'_> {
        let rest = input.get(at..).unwrap_or_default();
        let (word, whole) = match rest.first_chunk() {
            Some(bytes) => (u64::from_le_bytes(*bytes), true),
            None => (rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), false),
        };
        Place { input, at, word, whole }
    }

    /// How many bytes are the same here and `offset` bytes ago.
    #[inline(always)]
    fn length(&self, offset: usize) -> usize {
        let from = self.at - offset;
        if self.whole
            && let Some(bytes) = self.input.get(from..).and_then(|rest| rest.first_chunk())
        {
            let difference = u64::from_le_bytes(*bytes) ^ self.word;
            if difference != 0 {
                return difference.trailing_zeros() as usize / 8;
            }
        }
        common(self.input, from, self.at)
    }
}
