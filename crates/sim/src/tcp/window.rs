//! How many segments may be on their way: CUBIC (RFC 9438), with slow start and the delay criterion of Linux's HyStart.

use core::time::Duration;

use strait_clock::Time;

/// Segments at the beginning (RFC 6928).
const INITIAL: f64 = 10.0;
/// RFC 9438 section 5.
const C: f64 = 0.4;
/// The share of the window that is left when segments are lost (section 4.6).
const BETA: f64 = 0.7;
/// The window below which HyStart does not look, and how many round-trip times it looks at (Ha and Rhee, *Taming the
/// elephants*, 2011; `tcp_cubic.c` of Linux).
const HYSTART: (f64, u32) = (16.0, 8);
/// Between which a longer round trip ends slow start: an eighth of the least, within these.
const HYSTART_DELAY: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(16)];

/// The congestion window of one connection, in segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct CubicWindow {
    size: f64,
    threshold: f64,
    /// Before the last loss.
    most: f64,
    /// Since when it grows, and what it would be if it grew as Reno's (section 4.3).
    growing: Option<(Time, f64)>,
    round: HystartRound,
}

/// Round-trip times of one round of slow start.
#[derive(Clone, Copy, Debug, Default)]
struct HystartRound {
    ends_at: u64,
    samples: u32,
    least: Option<Duration>,
}

impl CubicWindow {
    pub(super) fn new() -> CubicWindow {
        CubicWindow {
            size: INITIAL,
            threshold: f64::INFINITY,
            most: 0.0,
            growing: None,
            round: HystartRound::default(),
        }
    }

    /// Segments that may be on their way.
    pub(super) fn size(&self) -> usize {
        self.size as usize
    }

    pub(super) fn is_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// A round trip took `took` while the segments up to `first` are acknowledged and those before `next` are sent.
    pub(super) fn round_trip(&mut self, took: Duration, least: Duration, (first, next): (u64, u64)) {
        if first >= self.round.ends_at {
            self.round = HystartRound { ends_at: next, ..HystartRound::default() };
        }
        let round = &mut self.round;
        round.samples += 1;
        round.least = Some(round.least.map_or(took, |least| least.min(took)));
        let slack = (least / 8).clamp(HYSTART_DELAY[0], HYSTART_DELAY[1]);
        let waits = round.samples >= HYSTART.1 && round.least.is_some_and(|took| took > least + slack);
        if waits && self.is_slow_start() && self.size >= HYSTART.0 {
            self.threshold = self.size;
        }
    }

    /// `count` more segments have arrived, while the window was full; a round trip takes `round`.
    pub(super) fn grow(&mut self, count: f64, round: Duration, now: Time) {
        if self.is_slow_start() {
            self.size = (self.size + count).min(self.threshold.max(self.size));
            return;
        }
        let (since, reno) = self.growing.unwrap_or((now, self.size));
        // Section 4.2: the cubic function has its plateau where the window was when segments were lost.
        let climb = ((self.most - self.size_at_start()).max(0.0) / C).cbrt();
        let after = (now.since(since) + round).as_secs_f64() - climb;
        let cubic =
            (C * after.powi(3) + self.most.max(self.size_at_start())).clamp(self.size, 1.5 * self.size);
        let reno =
            reno + count / self.size * if reno < self.most { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.growing = Some((since, reno));
        self.size = (self.size + count * (cubic - self.size) / self.size).max(reno);
    }

    /// The window at the beginning of congestion avoidance.
    fn size_at_start(&self) -> f64 {
        if self.threshold.is_finite() { self.threshold } else { self.size }
    }

    /// Segments were lost.
    pub(super) fn shrink(&mut self) {
        // Fast convergence (section 4.7).
        self.most = if self.size < self.most { self.size * (1.0 + BETA) / 2.0 } else { self.size };
        self.threshold = (self.size * BETA).max(2.0);
        self.size = self.threshold;
        self.growing = None;
    }

    /// The timer ran out.
    pub(super) fn restart(&mut self) {
        self.shrink();
        self.size = 1.0;
        self.round = HystartRound::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Duration = Duration::from_millis(100);

    /// Acknowledges a whole window each round.
    fn rounds(window: &mut CubicWindow, count: u64) {
        for round in 0..count {
            for _ in 0..window.size() {
                window.grow(1.0, ROUND, Time::ZERO + ROUND * u32::try_from(round).unwrap());
            }
        }
    }

    #[test]
    fn window_doubles_each_round_until_round_trips_become_longer() {
        let mut window = CubicWindow::new();
        rounds(&mut window, 3);
        assert_eq!(window.size(), 80);
        for _ in 0..8 {
            window.round_trip(ROUND + Duration::from_millis(13), ROUND, (0, 80));
        }
        assert!(!window.is_slow_start());
    }

    #[test]
    fn window_falls_by_three_tenths_and_comes_back_along_the_cubic() {
        let mut window = CubicWindow::new();
        rounds(&mut window, 4);
        window.shrink();
        assert_eq!(window.size(), 112);
        // K = cbrt(48 / 0.4) = 4.9 s.
        rounds(&mut window, 25);
        assert!((140..156).contains(&window.size()), "{}", window.size());
        rounds(&mut window, 49);
        assert!((154..200).contains(&window.size()), "{}", window.size());
        window.restart();
        assert_eq!((window.size(), window.is_slow_start()), (1, true));
    }
}
