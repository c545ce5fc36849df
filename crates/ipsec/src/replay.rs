//! The anti-replay window (RFC 4303 section 3.4.3) with 64-bit sequence numbers.
//!
//! A number is looked at before the packet is opened and marked after: only an authentic packet
//! moves the window, as [`ReplayWindow::commit`] asks for the proof that opening it gives.

use strait_wire::{Esn, SeqLow};

use crate::layers::Authentic;

/// Numbers below the highest that are still accepted; 8192 as current WireGuard, for reordering on
/// multi-queue paths.
pub(crate) const WINDOW: u64 = 8192;
const WORD: u64 = 64;
/// One word more than the window, so that the newest word never shares room with the oldest.
const WORDS: usize = 129;

/// Why a sequence number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplayRefused {
    /// Below the window.
    TooOld,
    /// Received before.
    Duplicate,
}

/// Which of the last [`WINDOW`] sequence numbers were received.
#[derive(Debug)]
pub(crate) struct ReplayWindow {
    highest: u64,
    /// Numbers up to and with this one are refused.
    floor: u64,
    /// Bit `n % 64` of word `(n / 64) % WORDS` says that number `n` was received.
    seen: Box<[u64; WORDS]>,
}

impl ReplayWindow {
    pub(crate) fn new() -> ReplayWindow {
        ReplayWindow::beginning(1, 0)
    }

    /// The window of a key whose first number is `first`, and which takes no number up to and with `floor`.
    pub(crate) fn beginning(first: u64, floor: u64) -> ReplayWindow {
        ReplayWindow { highest: first.saturating_sub(1), floor, seen: Box::new([0; WORDS]) }
    }

    /// The highest number that was received; before any, the one before the first.
    pub(crate) const fn highest(&self) -> Esn {
        Esn(self.highest)
    }

    /// The whole number whose low half travelled, nearest to what was received last.
    ///
    /// RFC 4303 appendix A2.2 takes all that lies behind the window for the next epoch; here the half
    /// that is nearer to the past is past, so an old packet is refused without being opened.
    pub(crate) fn infer(&self, low: SeqLow) -> Esn {
        const EPOCH: u64 = 1 << 32;
        let top = self.highest;
        let candidate = (top & !0xffff_ffff) | u64::from(low.0);
        if top.saturating_sub(candidate) > EPOCH / 2 {
            return Esn(candidate.checked_add(EPOCH).unwrap_or(candidate));
        }
        if candidate.saturating_sub(top) > EPOCH / 2 {
            return Esn(candidate.checked_sub(EPOCH).unwrap_or(candidate));
        }
        Esn(candidate)
    }

    /// Whether `esn` could be new. Says nothing of the packet's authenticity.
    pub(crate) fn peek(&self, esn: Esn) -> Result<(), ReplayRefused> {
        if esn.0 <= self.floor || esn.0.saturating_add(WINDOW) <= self.highest {
            return Err(ReplayRefused::TooOld);
        }
        if esn.0 <= self.highest && self.word(esn.0) & bit(esn.0) != 0 {
            return Err(ReplayRefused::Duplicate);
        }
        Ok(())
    }

    /// Marks a number as received and moves the window; true when it is the highest so far.
    pub(crate) fn commit(&mut self, esn: Esn, _proof: &Authentic) -> bool {
        let newest = esn.0 > self.highest;
        if newest {
            self.clear_between(self.highest, esn.0);
            self.highest = esn.0;
        }
        let index = index(esn.0);
        if let Some(word) = self.seen.get_mut(index) {
            *word |= bit(esn.0);
        }
        newest
    }

    /// Forgets what the words that the window enters said of numbers long gone.
    fn clear_between(&mut self, old: u64, new: u64) {
        let first = old / WORD + 1;
        let last = new / WORD;
        let words = (last + 1).saturating_sub(first).min(WORDS as u64);
        for word in (last + 1 - words)..=last {
            if words == 0 {
                break;
            }
            if let Some(slot) = self.seen.get_mut(index(word * WORD)) {
                *slot = 0;
            }
        }
    }

    fn word(&self, number: u64) -> u64 {
        self.seen.get(index(number)).copied().unwrap_or(u64::MAX)
    }
}

const fn index(number: u64) -> usize {
    ((number / WORD) % WORDS as u64) as usize
}

const fn bit(number: u64) -> u64 {
    1 << (number % WORD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn accept(window: &mut ReplayWindow, number: u64) -> Result<bool, ReplayRefused> {
        window.peek(Esn(number))?;
        Ok(window.commit(Esn(number), &Authentic::checked()))
    }

    #[test]
    fn edges_of_the_window() {
        let mut window = ReplayWindow::new();
        assert_eq!(accept(&mut window, 0), Err(ReplayRefused::TooOld));
        assert_eq!(accept(&mut window, 1), Ok(true));
        assert_eq!(accept(&mut window, 1), Err(ReplayRefused::Duplicate));
        assert_eq!(accept(&mut window, WINDOW + 1), Ok(true));
        assert_eq!(accept(&mut window, 1), Err(ReplayRefused::TooOld));
        assert_eq!(accept(&mut window, 2), Ok(false));
        assert_eq!(accept(&mut window, 2), Err(ReplayRefused::Duplicate));
    }

    #[test]
    fn a_window_may_begin_anywhere_and_refuse_what_is_at_its_floor() {
        let first = (7 << 32) - 2;
        let mut window = ReplayWindow::beginning(first, first + 1);
        assert_eq!(window.infer(SeqLow(5)), Esn((7 << 32) + 5));
        for number in [first, first + 1] {
            assert_eq!(accept(&mut window, number), Err(ReplayRefused::TooOld), "{number}");
        }
        assert_eq!(accept(&mut window, first + 2), Ok(true));
        assert_eq!(accept(&mut window, first + 2), Err(ReplayRefused::Duplicate));
        assert_eq!(accept(&mut window, first + 1), Err(ReplayRefused::TooOld));
    }

    #[test]
    fn agrees_with_a_set_on_random_walks() {
        for seed in 0..20 {
            let mut random = strait_clock::Random::new(seed);
            let mut window = ReplayWindow::new();
            let (mut seen, mut highest) = (BTreeSet::new(), 0_u64);
            for _ in 0..20_000 {
                let jump = if random.below(100) == 0 { 3 * WINDOW } else { 40 };
                let number = (highest + random.below(jump)).saturating_sub(random.below(WINDOW + 100)).max(1);
                let expected = if number + WINDOW <= highest {
                    Err(ReplayRefused::TooOld)
                } else if seen.contains(&number) {
                    Err(ReplayRefused::Duplicate)
                } else {
                    Ok(number > highest)
                };
                assert_eq!(
                    accept(&mut window, number),
                    expected,
                    "seed {seed} number {number} highest {highest}"
                );
                if expected.is_ok() {
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }

    #[test]
    fn the_high_half_is_inferred_across_the_wrap() {
        let mut window = ReplayWindow::new();
        let wrap = 1_u64 << 32;
        for number in [1, wrap - 3, wrap - 1, wrap + 2, wrap, wrap + wrap / 2, 2 * wrap - 1] {
            assert_eq!(window.infer(Esn(number).low()), Esn(number), "{number}");
            if window.peek(Esn(number)).is_ok() {
                window.commit(Esn(number), &Authentic::checked());
            }
        }
        // From 2^33 - 1, a small low half is of the next epoch, one just below is of this.
        assert_eq!(window.infer(SeqLow(5)), Esn(2 * wrap + 5));
        assert_eq!(window.infer(SeqLow(u32::MAX - 20_000)), Esn(2 * wrap - 1 - 20_000));
        // What is long past is not taken for the far future: it is refused without being opened.
        window.commit(Esn(2 * wrap + 20_000), &Authentic::checked());
        for old in [SeqLow(5), SeqLow(u32::MAX)] {
            assert_eq!(window.peek(window.infer(old)), Err(ReplayRefused::TooOld), "{old:?}");
        }
    }

    /// RFC 4303 appendix A2.2, step by step, for this window.
    fn a2_2(top: u64, low: u32) -> u64 {
        let (tl, th) = (u64::from(Esn(top).low().0), u64::from(Esn(top).high()));
        let seql = u64::from(low);
        let seqh = if tl >= WINDOW - 1 {
            let bottom = tl - (WINDOW - 1);
            if seql >= bottom { th } else { th + 1 }
        } else {
            let bottom = tl + (1 << 32) - (WINDOW - 1);
            if seql >= bottom { th.wrapping_sub(1) } else { th }
        };
        seqh << 32 | seql
    }

    proptest::proptest! {
        #[test]
        fn numbers_in_the_window_and_ahead_are_inferred_as_the_rfc_does(
            high in 0..4_u64,
            near in -20_000..20_000_i64,
            any_low in proptest::prelude::any::<u32>(),
            step in -20_000..20_000_i64,
            jump in proptest::prelude::any::<bool>(),
        ) {
            let mut window = ReplayWindow::new();
            let top = ((high << 32) + u64::from(any_low)).saturating_add_signed(near).max(1);
            window.commit(Esn(top), &Authentic::checked());
            let low = if jump { any_low.rotate_left(7) } else { Esn(top.saturating_add_signed(step)).low().0 };
            let (ours, theirs) = (window.infer(SeqLow(low)).0, a2_2(top, low));
            let ahead = theirs.wrapping_sub(top);
            // Before number 1 there is nothing, where the RFC counts down to minus 2^32.
            if theirs >> 32 != u64::from(u32::MAX) && (ahead <= 1 << 31 || top.wrapping_sub(theirs) < WINDOW) {
                proptest::prop_assert_eq!(ours, theirs, "top {}", top);
            } else {
                // What the RFC takes for the next epoch is long past here, and refused either way.
                let refused = window.peek(Esn(ours)) == Err(ReplayRefused::TooOld);
                proptest::prop_assert!(refused || ours.abs_diff(top) <= 1 << 32, "top {} low {}", top, low);
            }
        }
    }
}
