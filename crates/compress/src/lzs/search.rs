//! The longest repetitions at every place of a block, of the whole window.

use super::code::{NEAR, WINDOW};
use super::common::common;
use super::places::StringPlaces;

/// Length from which a repetition is not compared with others: measured on the Calgary corpus, more
/// gains less than a thousandth.
const ENOUGH: usize = 32;
/// Earlier places of a string that are looked at in vain: twice as many gain a thousandth, and cost a
/// tenth of the speed. Those that are longer than the ones before do not count: behind a run of zeros
/// there is one for each, and the last is as long as the run.
const DEPTH: usize = 16;
/// Instead of a step in a chain: there is none.
const NO_STEP: u16 = u16::MAX;

/// Some bytes that began some bytes ago: the length above the offset, so that the longer is the greater.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repeat(u32);

impl Repeat {
    /// No repetition.
    pub(super) const NONE: Repeat = Repeat(0);

    /// Bits of an offset.
    const OFFSET: u32 = WINDOW.count_ones();
    /// Longest length that fits above them; longer ones are taken for that.
    const MOST: usize = u32::MAX as usize >> Repeat::OFFSET;

    fn new(offset: usize, length: usize) -> Repeat {
        Repeat((length.min(Repeat::MOST) << Repeat::OFFSET | offset) as u32)
    }

    /// How many bytes ago they began, to [`WINDOW`].
    pub(super) fn offset(self) -> usize {
        self.0 as usize & WINDOW
    }

    /// How many bytes they are; fewer than two are no repetition.
    pub(super) fn length(self) -> usize {
        (self.0 >> Repeat::OFFSET) as usize
    }

    /// The same repetition one place later.
    fn shifted(self) -> Repeat {
        if self.length() > 2 { Repeat(self.0 - (1 << Repeat::OFFSET)) } else { Repeat::NONE }
    }
}

/// The longest repetitions at a place, by the code of their offsets.
#[derive(Clone, Copy, Default)]
pub(super) struct Repetitions {
    /// With an offset of 7 bits.
    pub(super) near: Repeat,
    /// With one of 11 bits.
    pub(super) far: Repeat,
}

impl Repetitions {
    /// The same repetitions one place later.
    pub(super) fn shifted(self) -> Repetitions {
        Repetitions { near: self.near.shifted(), far: self.far.shifted() }
    }

    /// Takes a repetition if it is longer than those before; whether it is.
    #[inline(always)]
    fn offer(&mut self, offset: usize, length: usize) -> bool {
        let repeat = Repeat::new(offset, length);
        let (near, far) = if offset <= NEAR { (repeat, Repeat::NONE) } else { (Repeat::NONE, repeat) };
        let longer = length > self.near.max(self.far).length();
        *self = Repetitions { near: self.near.max(near), far: self.far.max(far) };
        longer
    }
}

/// Where strings were met.
pub(super) struct Search {
    /// Of two bytes, the last.
    pairs: StringPlaces<4_096>,
    /// Of three bytes, the last.
    triples: StringPlaces<8_192>,
    /// For every place of the window, how far before it its three bytes, or others that share their
    /// place in `triples`, were met.
    before: Box<[u16; WINDOW + 1]>,
}

impl Search {
    /// No string met.
    pub(super) fn new() -> Search {
        Search {
            pairs: StringPlaces::new(),
            triples: StringPlaces::new(),
            before: Box::new([NO_STEP; WINDOW + 1]),
        }
    }

    /// Begins a block of `len` bytes.
    pub(super) fn begin(&mut self, len: usize) {
        self.pairs.begin(len);
        self.triples.begin(len);
    }

    /// Adds what there is at `at` to what is `found`; to be asked for every place of the block in turn.
    #[inline(always)]
    pub(super) fn find(&mut self, input: &[u8], at: usize, mut found: Repetitions) -> Repetitions {
        let place = SearchPlace::new(input, at);
        let pair = self.pairs.replace(place.word as u32 & 0xffff, at);
        let triple = self.triples.replace(place.word as u32 & 0xff_ffff, at);
        let reach = WINDOW.min(at);
        self.before[at & WINDOW] = if (1..=reach).contains(&triple) { triple as u16 } else { NO_STEP };
        if found.near.max(found.far).length() < ENOUGH {
            let (mut offset, mut in_vain) = (0, 0);
            while in_vain < DEPTH {
                offset += usize::from(self.before[(at - offset) & WINDOW]);
                if offset > reach {
                    break;
                }
                let length = place.length(offset);
                if length >= ENOUGH {
                    found.offer(offset, length);
                    break;
                }
                in_vain += usize::from(!found.offer(offset, length));
            }
        }
        if found.near.length() < 2 && (1..=reach).contains(&pair) {
            found.offer(pair, place.length(pair));
        }
        found
    }
}

/// A place in a block.
struct SearchPlace<'a> {
    input: &'a [u8],
    at: usize,
    /// The eight bytes there, the first the lowest.
    word: u64,
    /// Whether there are as many.
    whole: bool,
}

impl SearchPlace<'_> {
    #[inline(always)]
    fn new(input: &[u8], at: usize) -> SearchPlace<'_> {
        let rest = input.get(at..).unwrap_or_default();
        let (word, whole) = match rest.first_chunk() {
            Some(bytes) => (u64::from_le_bytes(*bytes), true),
            None => (rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)), false),
        };
        SearchPlace { input, at, word, whole }
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
