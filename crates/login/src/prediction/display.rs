//! Whether predictions are shown, and whether they are underlined.

use core::time::Duration;

use super::PredictMode;

// Shown above the first, until below the second: between them nothing changes, so that it does not flicker. An echo that comes
// later than some 60 ms is felt while one types; mosh begins at 60 ms of round trip, too (Winstein, Balakrishnan, USENIX ATC 2012).
const SHOW_ABOVE: Duration = Duration::from_millis(60);
const HIDE_BELOW: Duration = Duration::from_millis(40);
// The same for underlines, as mosh has them: where the answer comes at once, a line that comes and goes only disturbs.
const UNDERLINE_ABOVE: Duration = Duration::from_millis(80);
const UNDERLINE_BELOW: Duration = Duration::from_millis(50);

/// What the link makes of it.
#[derive(Debug)]
pub(super) struct Display {
    mode: PredictMode,
    slow: bool,
    underline: bool,
    /// An answer is late, whatever the round trip was.
    late: bool,
}

impl Display {
    pub(super) fn new(mode: PredictMode) -> Display {
        Display { mode, slow: false, underline: false, late: false }
    }

    /// The smoothed round trip now. `waiting`: predictions are on the screen, which stay until they are confirmed.
    pub(super) fn round_trip(&mut self, smoothed: Duration, waiting: bool) {
        if smoothed > SHOW_ABOVE {
            self.slow = true;
        } else if smoothed < HIDE_BELOW && !waiting {
            self.slow = false;
        }
        if smoothed > UNDERLINE_ABOVE {
            self.underline = true;
        } else if smoothed < UNDERLINE_BELOW {
            self.underline = false;
        }
    }

    /// Whether the oldest key has waited for long.
    pub(super) fn late(&mut self, late: bool) {
        self.late = late;
    }

    pub(super) fn is_late(&self) -> bool {
        self.late
    }

    pub(super) fn predicts(&self) -> bool {
        self.mode != PredictMode::Never
    }

    pub(super) fn shows(&self) -> bool {
        match self.mode {
            PredictMode::Auto => self.slow || self.late,
            PredictMode::Always => true,
            PredictMode::Never => false,
        }
    }

    pub(super) fn underlines(&self) -> bool {
        self.underline || self.late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_above_sixty_milliseconds_and_ends_below_forty() {
        let mut display = Display::new(PredictMode::Auto);
        let mut at = |millis, waiting| {
            display.round_trip(Duration::from_millis(millis), waiting);
            (display.shows(), display.underlines())
        };
        assert_eq!(at(60, false), (false, false));
        assert_eq!(at(61, false), (true, false));
        assert_eq!(at(81, false), (true, true));
        assert_eq!(at(50, false), (true, true));
        assert_eq!(at(49, false), (true, false));
        assert_eq!(at(40, false), (true, false));
        assert_eq!(at(39, true), (true, false));
        assert_eq!(at(39, false), (false, false));
    }

    #[test]
    fn an_answer_that_is_late_is_not_waited_for() {
        let mut display = Display::new(PredictMode::Auto);
        display.late(true);
        assert!(display.shows() && display.underlines());
        display.late(false);
        assert!(!display.shows());
        assert!(Display::new(PredictMode::Always).shows());
        let mut never = Display::new(PredictMode::Never);
        never.late(true);
        assert!(!never.shows() && !never.predicts());
    }
}
