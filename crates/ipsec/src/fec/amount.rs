//! How many repair symbols a path asks for.

/// Up to this share of lost payloads no symbols are sent. They would cost more than the losses.
pub(crate) const LOSS_MIN: f64 = 0.002;
/// The share of payloads that may stay lost where so many datagrams pass in the time for a repair, or fewer. A third of 0.1 %, for what
/// the model does not know: losses that are not those of the model, and a share that is estimated.
const RESIDUAL: f64 = 0.000_33;
const RESIDUAL_SLOTS: f64 = 25.0;
/// With that power of a faster path fewer may stay lost. The window of CUBIC grows with the power -3/4 of the share that is lost (RFC
/// 9438 section 5.1), and has to hold as much more as the path is faster.
const RESIDUAL_POWER: f64 = 4.0 / 3.0;
/// The most symbols for each payload. More would take longer than what TCP loses with the rest of the losses.
const SHARE_MAX: f64 = 0.5;
/// Datagrams of a window that are told apart; longer ones are as this one.
const SLOTS: usize = 128;

/// How datagrams are lost on a path, by the model of Gilbert (1960): between bursts, in which all are lost, each begins one with
/// the same probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossPattern {
    /// The share of datagrams that is lost, 0 to 1.
    pub share: f64,
    /// Datagrams that are lost one after another, on average; at least 1.
    pub burst: f64,
}

impl LossPattern {
    /// Nothing is lost.
    pub const NONE: LossPattern = LossPattern { share: 0.0, burst: 1.0 };

    /// Repair symbols for each payload, where a repair may take as long as `slots` datagrams, symbols among them, pass. 0 where that
    /// is nothing to choose from.
    ///
    /// That so many lost payloads stay unrepaired is computed for a block of `slots` datagrams, of which the symbols are the last:
    /// it is lost when more of its datagrams are lost than it has symbols. Sliding windows lose a little less.
    pub(crate) fn symbols_each(&self, slots: usize) -> f64 {
        let slots = slots.min(SLOTS);
        if self.share < LOSS_MIN || slots < 2 {
            return 0.0;
        }
        let unrepaired = self.unrepaired(slots);
        let most = slots as f64 * SHARE_MAX / (1.0 + SHARE_MAX);
        let residual = RESIDUAL * (RESIDUAL_SLOTS / slots as f64).min(1.0).powf(RESIDUAL_POWER);
        let enough = unrepaired.iter().take(slots).position(|share| *share <= residual);
        let symbols = enough.map_or(most, |symbols| fraction(&unrepaired, symbols, residual)).min(most);
        symbols / (slots as f64 - symbols)
    }

    /// For each number of symbols from 0 on, the share of datagrams that stays lost.
    fn unrepaired(&self, slots: usize) -> [f64; SLOTS + 1] {
        let lost = self.lost_of(slots);
        let mut unrepaired = [0.0; SLOTS + 1];
        let mut sum = 0.0;
        // With one symbol less, as many losses as it has symbols are too many as well.
        for symbols in (0..slots).rev() {
            let losses = symbols + 1;
            sum += lost.get(losses).copied().unwrap_or(0.0) * losses as f64 / slots as f64;
            if let Some(place) = unrepaired.get_mut(symbols) {
                *place = sum;
            }
        }
        unrepaired
    }

    /// The probability of each number of losses among `slots` datagrams.
    fn lost_of(&self, slots: usize) -> [f64; SLOTS + 1] {
        let share = self.share.min(0.5);
        // Losses that are independent come in bursts as well, of this mean length.
        let end = 1.0 / self.burst.max(1.0 / (1.0 - share));
        let begin = (end * share / (1.0 - share)).min(1.0);
        // Of the last datagram: whether it arrived, or was lost.
        let (mut good, mut bad) = ([0.0; SLOTS + 1], [0.0; SLOTS + 1]);
        (good[0], bad[0]) = (1.0 - share, share);
        for _ in 0..slots {
            let mut before = 0.0;
            for (arrived, lost) in good.iter_mut().zip(&mut bad) {
                let begins = *arrived * begin + *lost * (1.0 - end);
                *arrived = *arrived * (1.0 - begin) + *lost * end;
                *lost = core::mem::replace(&mut before, begins);
            }
        }
        core::array::from_fn(|losses| good.get(losses).unwrap_or(&0.0) + bad.get(losses).unwrap_or(&0.0))
    }
}

/// So many symbols, or as much less of the last one as is enough for `residual`, on a logarithmic scale.
fn fraction(unrepaired: &[f64], symbols: usize, residual: f64) -> f64 {
    let at = |symbols: usize| unrepaired.get(symbols).copied().unwrap_or(0.0).max(f64::MIN_POSITIVE).ln();
    let Some(before) = symbols.checked_sub(1) else { return 0.0 };
    let needed = (at(before) - residual.ln()) / (at(before) - at(symbols));
    before as f64 + needed.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(share: f64, burst: f64, slots: usize) -> f64 {
        LossPattern { share, burst }.symbols_each(slots)
    }

    #[test]
    fn clean_paths_get_no_symbols() {
        assert_eq!(each(0.0, 1.0, 64), 0.0);
        assert_eq!(each(0.0019, 5.0, 64), 0.0);
        assert!(each(0.002, 1.0, 64) > 0.0);
    }

    #[test]
    fn losses_of_a_block_are_those_of_the_binomial_distribution() {
        let lost = LossPattern { share: 0.1, burst: 1.0 }.lost_of(10);
        for (losses, expected) in [(0, 0.348_678), (1, 0.387_420), (2, 0.193_710), (10, 1e-10)] {
            assert!((lost[losses] - expected).abs() < 1e-6, "{losses}: {}", lost[losses]);
        }
        let bursts = LossPattern { share: 0.1, burst: 4.0 }.lost_of(10);
        let mean = |lost: &[f64]| lost.iter().enumerate().map(|(n, p)| n as f64 * p).sum::<f64>();
        assert!((mean(&bursts) - 1.0).abs() < 1e-9 && (mean(&lost) - 1.0).abs() < 1e-9);
        assert!(bursts[0] > lost[0] && bursts[5] > 10.0 * lost[5]);
    }

    #[test]
    fn amount_grows_with_loss_and_bursts_and_shrinks_with_the_window() {
        let amounts = [each(0.01, 1.0, 25), each(0.03, 1.0, 25), each(0.03, 1.5, 25), each(0.03, 5.0, 25)];
        assert!(amounts.is_sorted() && amounts[0] > 0.07 && amounts[0] < 0.1, "{amounts:?}");
        assert!((amounts[3] - SHARE_MAX).abs() < 1e-9, "it has a limit");
        let amounts = [each(0.01, 2.0, 256), each(0.01, 2.0, 128), each(0.01, 2.0, 64), each(0.01, 2.0, 32)];
        assert!(amounts.is_sorted(), "{amounts:?}");
        assert_eq!(amounts[0], amounts[1]);
    }

    #[test]
    fn any_share_and_window_has_an_amount() {
        for share in [0.002, 0.2, 0.5, 0.9, 1.0] {
            for burst in [0.0, 1.0, 1e9] {
                for slots in [0, 1, 2, 3, 1000] {
                    let amount = each(share, burst, slots);
                    assert!((0.0..=SHARE_MAX + 1e-9).contains(&amount), "{share} {burst} {slots}: {amount}");
                }
            }
        }
    }
}
