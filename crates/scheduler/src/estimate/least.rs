//! The least of what was measured lately.

use core::time::Duration;

use strait_clock::Time;

/// Half of how long a measurement counts: together as long as BBR keeps its least round-trip time
/// (draft-ietf-ccwg-bbr section 2.13.1, 10 s), so that a path that became longer is believed.
const HALF: Duration = Duration::from_secs(5);

/// The least of the last five to ten seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Least {
    before: Option<i64>,
    now: Option<i64>,
    since: Time,
}

impl Least {
    /// Takes a measurement, and says what the least is.
    pub(super) fn note(&mut self, value: i64, at: Time) -> i64 {
        if at.since(self.since) >= HALF {
            // What is older than both halves no longer counts.
            let fresh = at.since(self.since) < HALF * 2;
            (self.before, self.now) = (self.now.filter(|_| fresh), None);
            self.since = at;
        }
        let least = self.now.map_or(value, |least| least.min(value));
        self.now = Some(least);
        self.before.map_or(least, |before| before.min(least))
    }

    /// The least, if there was anything.
    pub(super) fn get(&self) -> Option<i64> {
        self.before.into_iter().chain(self.now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_is_kept_for_its_window() {
        let mut least = Least::default();
        assert_eq!(least.get(), None);
        let noted: Vec<i64> = [(0, 7), (4, 5), (6, 9), (11, 8), (17, 9), (23, 10)]
            .into_iter()
            .map(|(second, value)| least.note(value, Time::from_millis(10_000 + second * 1000)))
            .collect();
        assert_eq!(noted, [7, 5, 5, 8, 8, 9]);
        assert_eq!(least.get(), Some(9));
        assert_eq!(least.note(20, Time::from_millis(3_600_000)), 20, "an hour of silence");
    }
}
