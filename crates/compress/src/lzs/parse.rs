//! The cheapest way through a stretch of a block.
//!
//! As every code has a fixed length it is a shortest path, found from the end back. The bits to the end
//! never grow from one place to the next: whatever leads on from a place, without its first byte, leads on
//! from the next for no more. So of the lengths whose codes take the same bits only the longest matters.

use super::code::{FAR_BITS, LITERAL_BITS, NEAR_BITS, NIBBLE, PLAIN_MAX, SHORTEST, length_bits};
use super::search::{Repeat, Repetitions};

/// Bytes whose way is chosen together. That it is chosen as if nothing came after them costs the Calgary
/// corpus less than a thousandth.
pub(super) const STRETCH: usize = 4_096;
/// More bits than any way through a stretch takes: 9 for each byte.
const NO_WAY: u32 = 1 << 16;
/// The longest plain lengths of 2, 4 and 8 bits.
const LONGEST: [usize; 3] = [4, 7, PLAIN_MAX];

/// A step and the bits from before it to the end, as one number: the least is the cheapest, and among
/// those a near one and then a long one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ParseStep(u32);

impl ParseStep {
    /// Above the lengths, of 13 bits, which stand there as what they lack.
    const FAR: u32 = 1 << 13;
    /// What is below the bits.
    const SELF: u32 = 2 * ParseStep::FAR - 1;
    /// One byte as it is.
    const LITERAL: ParseStep = ParseStep::new(LITERAL_BITS, false, 1);

    const fn new(bits: u32, far: bool, length: usize) -> ParseStep {
        let far = if far { ParseStep::FAR } else { 0 };
        ParseStep(bits << ParseStep::SELF.count_ones() | far | (ParseStep::FAR - 1 - length as u32))
    }

    /// With the bits that are left after it.
    fn and(self, left: Bits) -> ParseStep {
        ParseStep(self.0 + left.0)
    }

    fn bits(self) -> Bits {
        Bits(self.0 & !ParseStep::SELF)
    }

    fn length(self) -> usize {
        (ParseStep::FAR - 1 - (self.0 & (ParseStep::FAR - 1))) as usize
    }

    fn is_far(self) -> bool {
        self.0 & ParseStep::FAR != 0
    }
}

/// Bits to the end, where a [`ParseStep`] has them.
#[derive(Clone, Copy)]
struct Bits(u32);

/// By length: a step of that, without what is left after it.
type ShorterSteps = [ParseStep; PLAIN_MAX + 1];

const NEAR_STEPS: ShorterSteps = steps(NEAR_BITS, false);
const FAR_STEPS: ShorterSteps = steps(FAR_BITS, true);

const fn steps(offset_bits: u32, far: bool) -> ShorterSteps {
    let mut steps = [ParseStep::new(NO_WAY, far, 0); PLAIN_MAX + 1];
    let mut length = SHORTEST;
    while length <= PLAIN_MAX {
        steps[length] = ParseStep::new(offset_bits + length_bits(length), far, length);
        length += 1;
    }
    steps
}

/// A stretch, place by place.
pub(super) struct Parse {
    /// What was found.
    pub(super) found: Box<[Repetitions; STRETCH]>,
    /// What is best.
    best: Box<[ParseStep; STRETCH]>,
    /// How many bits it takes to the end; then none, and beyond it no way.
    bits: Box<[Bits; STRETCH + 1 + PLAIN_MAX]>,
}

impl Parse {
    /// Nothing found yet.
    pub(super) fn new() -> Parse {
        Parse {
            found: Box::new([Repetitions::default(); STRETCH]),
            best: Box::new([ParseStep::LITERAL; STRETCH]),
            bits: Box::new([Bits(0); STRETCH + 1 + PLAIN_MAX]),
        }
    }

    /// Finds the way through the first `len` places.
    pub(super) fn choose(&mut self, len: usize) {
        self.bits[len] = Bits(0);
        self.bits[len + 1..=len + PLAIN_MAX].fill(FAR_STEPS[0].bits());
        for place in (0..len).rev() {
            let Repetitions { near, far } = self.found[place];
            let Some(left) = self.bits[place..].first_chunk() else { return };
            let mut best = ParseStep::LITERAL.and(left[1]);
            best = best.min(plain(near, &NEAR_STEPS, left)).min(plain(far, &FAR_STEPS, left));
            if near.max(far).length() > PLAIN_MAX {
                best = best.min(self.long(near, NEAR_BITS, place, len));
                best = best.min(self.long(far, FAR_BITS, place, len));
            }
            self.best[place] = best;
            self.bits[place] = best.bits();
        }
    }

    /// The best of `repeat` and its beginnings that have no plain length: all of it, or what fills its
    /// nibbles. Shorter ones hardly ever pay: each saves 4 bits, and leaves 15 bytes. Seldom needed, and kept
    /// out of the loop.
    #[inline(never)]
    fn long(&self, repeat: Repeat, offset_bits: u32, place: usize, len: usize) -> ParseStep {
        let length = repeat.length().min(len - place);
        let filled = length.saturating_sub(PLAIN_MAX) / NIBBLE * NIBBLE + PLAIN_MAX;
        let step = |length| {
            let step = ParseStep::new(offset_bits + length_bits(length), offset_bits == FAR_BITS, length);
            step.and(self.bits[place + length])
        };
        if length > PLAIN_MAX { step(length).min(step(filled)) } else { FAR_STEPS[0] }
    }

    /// How the way goes on from `place`: how many bytes of which repetition, or one as it is.
    pub(super) fn step(&self, place: usize) -> (Option<Repeat>, usize) {
        let (best, found) = (self.best[place], self.found[place]);
        let repeat = if best.is_far() { found.far } else { found.near };
        ((best.length() > 1).then_some(repeat), best.length())
    }
}

/// The best of `repeat` and its beginnings that have a plain length.
#[inline(always)]
fn plain(repeat: Repeat, steps: &ShorterSteps, left: &[Bits; PLAIN_MAX + 1]) -> ParseStep {
    let beginning = |longest: usize| {
        let length = repeat.length().min(longest);
        steps[length].and(left[length])
    };
    let [a, b, c] = LONGEST.map(beginning);
    a.min(b).min(c)
}
