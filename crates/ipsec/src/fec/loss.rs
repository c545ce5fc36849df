//! How datagrams are lost on a path, as far as its delivery reports say.

use super::amount::{LOSS_MIN, LossPattern};

/// Datagrams that are remembered: at 1 % loss, 40 losses tell the share to a sixth of it.
const MEMORY: f64 = 4000.0;
/// Datagrams of which a share is a share: a loss among the first few says little.
const NUMBERS_MIN: f64 = 500.0;
/// Datagrams for which a remembered pattern counts: it is replaced by what is seen within some seconds.
const REMEMBERED: f64 = 1000.0;
/// Bursts of one datagram that are assumed beside those that were seen, so that one burst does not make a pattern.
const SINGLE_LOSSES: f64 = 2.0;
/// Symbols begin at so much more than the loss at which they end.
const BEGIN: f64 = 1.25;
/// The share of lost datagrams, 0 to 1, at which symbols begin.
pub const CORRECTED_LOSS_MIN: f64 = LOSS_MIN * BEGIN;

/// Counts of the last datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossEstimate {
    numbers: f64,
    lost: f64,
    bursts: f64,
    /// Whether the path loses so much that symbols are worth it.
    lossy: bool,
    /// What the last report counted.
    reported: Option<LossCount>,
}

/// What a delivery report counts of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossCount {
    /// The highest number that arrived.
    pub(crate) highest: u64,
    /// Datagrams that arrived.
    pub(crate) datagrams: u64,
    /// How often a number left out others, modulo 2^16.
    pub(crate) gaps: u16,
}

impl LossEstimate {
    /// The peer reports so much; `counts` says whether it was lost by chance, and not because a queue stands on the path.
    pub(crate) fn report(&mut self, count: LossCount, counts: bool) {
        let before = self.reported.replace(count);
        let Some(before) = before.filter(|before| counts && before.highest < count.highest) else { return };
        let numbers = (count.highest - before.highest) as f64;
        let arrived = count.datagrams.saturating_sub(before.datagrams) as f64;
        self.note(numbers, numbers - arrived, count.gaps.wrapping_sub(before.gaps).into());
    }

    /// Another association: numbers begin anew.
    pub(crate) const fn renew(&mut self) {
        self.reported = None;
    }

    /// Of `numbers` datagrams, `lost` were lost, in `bursts` of one after another.
    fn note(&mut self, numbers: f64, lost: f64, bursts: f64) {
        let numbers = numbers.max(0.0);
        let keep = ((MEMORY - numbers).max(0.0) / self.numbers.max(1.0)).min(1.0);
        self.numbers = self.numbers * keep + numbers;
        // What came late after all was counted as lost before.
        self.lost = (self.lost * keep + lost).clamp(0.0, self.numbers);
        self.bursts = (self.bursts * keep + bursts.max(0.0)).min(self.lost.max(self.bursts * keep));
        self.judge();
    }

    /// Another path, which was seen to be so before; what is seen from now on counts more.
    pub(crate) fn begin_again(&mut self, pattern: LossPattern) {
        let LossPattern { share, burst } = pattern;
        // Where nothing is known, what is seen first counts whole.
        let numbers = if share > 0.0 { REMEMBERED } else { 0.0 };
        let lost = share.clamp(0.0, 1.0) * numbers;
        let bursts = lost / burst.max(1.0);
        *self = LossEstimate { numbers, lost, bursts, ..*self };
        self.judge();
    }

    /// The pattern of losses that symbols are to repair; `None` on a path that loses little.
    pub(crate) fn pattern(&self) -> Option<LossPattern> {
        self.lossy.then(|| self.seen())
    }

    /// The pattern of all losses that were seen.
    pub(crate) fn seen(&self) -> LossPattern {
        let burst = (self.lost + SINGLE_LOSSES) / (self.bursts + SINGLE_LOSSES);
        LossPattern { share: self.lost / self.numbers.max(NUMBERS_MIN), burst: burst.max(1.0) }
    }

    fn judge(&mut self) {
        let least = if self.lossy { LOSS_MIN } else { CORRECTED_LOSS_MIN };
        self.lossy = self.seen().share >= least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_and_mean_burst_are_those_of_the_last_datagrams() {
        let mut loss = LossEstimate::default();
        assert_eq!((loss.pattern(), loss.seen()), (None, LossPattern::NONE));
        for _ in 0..100 {
            loss.note(100.0, 3.0, 1.0);
        }
        let pattern = loss.pattern().unwrap();
        assert!((pattern.share - 0.03).abs() < 1e-9 && (2.5..3.0).contains(&pattern.burst), "{pattern:?}");
        // After as many others, nothing of it is left.
        for _ in 0..400 {
            loss.note(100.0, 1.0, 1.0);
        }
        let pattern = loss.pattern().unwrap();
        assert!((pattern.share - 0.01).abs() < 1e-4 && pattern.burst < 1.01, "{pattern:?}");
    }

    #[test]
    fn symbols_begin_above_the_share_at_which_they_end() {
        let mut loss = LossEstimate::default();
        loss.note(1000.0, 2.2, 2.2);
        assert_eq!(loss.pattern(), None);
        loss.note(1000.0, 3.0, 3.0);
        assert!(loss.pattern().is_some());
        loss.note(2000.0, 3.2, 3.2);
        assert!(loss.pattern().is_some(), "0.21 %");
        loss.note(2000.0, 0.0, 0.0);
        assert_eq!(loss.pattern(), None);
    }

    #[test]
    fn one_loss_among_the_first_datagrams_begins_nothing() {
        let mut loss = LossEstimate::default();
        loss.note(3.0, 1.0, 1.0);
        assert_eq!(loss.pattern(), None);
        loss.note(30.0, -1.0, 0.0);
        assert_eq!(loss.seen().share, 0.0, "it came late");
    }

    #[test]
    fn remembered_pattern_holds_until_the_path_shows_another() {
        let mut loss = LossEstimate::default();
        loss.begin_again(LossPattern { share: 0.01, burst: 2.0 });
        let pattern = loss.pattern().unwrap();
        assert!((pattern.share - 0.01).abs() < 1e-9 && (1.5..=2.0).contains(&pattern.burst), "{pattern:?}");
        for _ in 0..40 {
            loss.note(100.0, 0.0, 0.0);
        }
        assert_eq!(loss.pattern(), None);
        loss.begin_again(LossPattern { share: 0.01, burst: 2.0 });
        assert!(loss.pattern().is_some());
        loss.begin_again(LossPattern::NONE);
        assert_eq!((loss.pattern(), loss.numbers), (None, 0.0), "nothing is known of the third path");
    }

    #[test]
    fn losses_are_those_between_two_reports() {
        let mut loss = LossEstimate::default();
        let at = |highest, datagrams, gaps| LossCount { highest, datagrams, gaps };
        loss.report(at(1000, 900, 65_530), true);
        assert_eq!(loss.seen().share, 0.0, "what was before the first is not known");
        loss.report(at(2000, 1880, 4), true);
        let seen = loss.seen();
        assert!((seen.share - 0.02).abs() < 1e-9 && (seen.burst - 22.0 / 12.0).abs() < 1e-9, "{seen:?}");
        loss.report(at(3000, 2380, 5), false);
        assert_eq!(loss.seen(), seen, "a queue stands");
        loss.report(at(4000, 3380, 5), true);
        assert!((loss.seen().share - 0.01).abs() < 1e-9);
        loss.renew();
        loss.report(at(10, 5, 3), true);
        assert!((loss.seen().share - 0.01).abs() < 1e-9);
    }

    #[test]
    fn counts_that_cannot_be_make_no_pattern_that_cannot_be() {
        let mut loss = LossEstimate::default();
        for (numbers, lost, bursts) in
            [(10.0, 1e12, 1e12), (-5.0, -5.0, -5.0), (1e12, 1e12, 0.0), (0.0, 0.0, 9.0)]
        {
            loss.note(numbers, lost, bursts);
            let seen = loss.seen();
            assert!((0.0..=1.0).contains(&seen.share) && seen.burst >= 1.0, "{seen:?}");
        }
    }
}
