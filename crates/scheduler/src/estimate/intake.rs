//! Reports, put together until they can be judged.

use strait_clock::Time;

use super::PathSample;

/// Datagrams and seconds that reports are put together for before they are judged, and the seconds that are enough for any
/// number of datagrams: a host that is busy takes what came in 10 ms at once, so that of a shorter time chance decides.
const JUDGED: (f64, f64, f64) = (4.0, 0.04, 0.2);
/// The weight of a new distance between reports: two or three decide.
const SMOOTH: f64 = 0.5;
/// What is longer than this, in seconds, was silence.
const APART_MAX: f64 = 1.0;

/// When reports come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportIntake {
    /// Seconds from one to the next.
    pub(super) apart: f64,
    /// The least delay of the reports that were judged last, in seconds.
    pub(super) least_delay: f64,
    came_at: Option<Time>,
    /// What is too little to be judged.
    gathered: Option<PathSample>,
}

impl ReportIntake {
    /// Takes a report; all since the last that was judged, if that is enough.
    pub(super) fn take(&mut self, sample: &PathSample, now: Time) -> Option<PathSample> {
        if let Some(before) = self.came_at.replace(now) {
            let apart = now.since(before).as_secs_f64().min(APART_MAX);
            self.apart += (apart - self.apart) * SMOOTH;
        }
        let least = self.gathered.map_or(f64::INFINITY, |_| self.least_delay);
        self.least_delay = least.min(sample.delay);
        let sample = self.gathered.take().map_or(*sample, |before| before.and(sample));
        let (numbers, least, enough) = JUDGED;
        if (sample.numbers < numbers || sample.span < least) && sample.span < enough {
            self.gathered = Some(sample);
            return None;
        }
        Some(sample)
    }
}
