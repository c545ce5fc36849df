//! A chooser that stops where nothing shrinks, and looks again at growing intervals.

use core::fmt;
use core::time::Duration;

use strait_clock::Time;
use strait_wire::Flow;

use super::table::Table;
use super::{Chooser, RuleId, Unit};
use crate::{Codec, Method};

/// Flows remembered: some 100 bytes each, and more than a thin link carries at once.
const FLOWS: usize = 1_024;
/// Percent saved under which compressing is not worth it (OpenVPN's `AC_SAVE_PCT`, `lzo.h` in 2.3).
const WORTH_PERCENT: u64 = 5;
/// Bytes seen before a flow is judged (OpenVPN's `AC_MIN_BYTES`).
const MIN_BYTES: u64 = 1_000;
/// Bytes after which the past counts half: ten full packets, so that a flow that turns from text to
/// pictures is noticed within some 50 kB.
const MEMORY: u64 = 16 * 1_024;
/// The first pause: long enough to skip a burst, too short for a person to wait on.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause: at one trial of 64 KiB in it, 35 us of random data cost 5 millionths of a core.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Compresses what its rule says until a flow's moving saving falls under 5 %, then pauses.
///
/// After each pause one unit is tried. If that saves 5 % the flow is compressed again; if not, the next
/// pause is twice as long, from 0.25 to 8 seconds. Flows are kept apart by rule, in a table of
/// fixed size that allocates nothing after [`Backoff::new`].
pub struct Backoff {
    flows: Table<(Flow, RuleId), Memory>,
}

impl Backoff {
    /// A chooser that remembers nothing; `seed` keeps others from choosing who shares a place.
    #[must_use]
    pub fn new(seed: u64) -> Backoff {
        Backoff { flows: Table::new(FLOWS, seed) }
    }
}

impl Chooser for Backoff {
    fn choose(&mut self, unit: &Unit<'_>, now: Time) -> Method {
        if unit.method.codec == Codec::None {
            return Method::NONE;
        }
        let memory = self.flows.get_mut(&(*unit.flow, unit.rule), now);
        if memory.is_none_or(|memory| memory.wants_a_try(now)) { unit.method } else { Method::NONE }
    }

    fn learn(&mut self, unit: &Unit<'_>, before: usize, after: usize, now: Time) {
        let key = (*unit.flow, unit.rule);
        let outcome = Saving::of(before, after);
        if let Some(memory) = self.flows.get_mut(&key, now) {
            memory.learn(outcome, now);
        } else {
            self.flows.insert(key, Memory::default(), now).learn(outcome, now);
        }
    }
}

impl fmt::Debug for Backoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backoff").finish_non_exhaustive()
    }
}

/// Bytes before and after, over a while.
#[derive(Clone, Copy, Default)]
struct Saving {
    before: u64,
    after: u64,
}

impl Saving {
    fn of(before: usize, after: usize) -> Saving {
        // A unit is 64 KiB at most; the bound only keeps nonsense from overflowing the sums.
        let bytes = |count: usize| u64::from(u32::try_from(count).unwrap_or(u32::MAX));
        let before = bytes(before);
        Saving { before, after: before.min(bytes(after)) }
    }

    fn add(&mut self, other: Saving) {
        self.before += other.before;
        self.after += other.after;
        while self.before > MEMORY {
            self.before /= 2;
            self.after /= 2;
        }
    }

    fn is_worth_it(self) -> bool {
        (self.before - self.after) * 100 >= self.before * WORTH_PERCENT
    }
}

/// What is known of one flow.
#[derive(Default)]
struct Memory {
    saving: Saving,
    pause: Option<Pause>,
}

/// A time without compressing.
struct Pause {
    until: Time,
    span: Duration,
    /// A unit is on its way to show whether it shrinks.
    trial: bool,
}

impl Memory {
    /// Whether the next unit should be compressed; after a pause, true for one unit.
    fn wants_a_try(&mut self, now: Time) -> bool {
        let Some(pause) = &mut self.pause else { return true };
        if now < pause.until {
            return false;
        }
        // Should the outcome never come, another pause of this length passes before the next trial.
        pause.until = now + pause.span;
        pause.trial = true;
        true
    }

    fn learn(&mut self, outcome: Saving, now: Time) {
        match &mut self.pause {
            None => {
                self.saving.add(outcome);
                if self.saving.before >= MIN_BYTES && !self.saving.is_worth_it() {
                    self.pause = Some(Pause { until: now + FIRST_PAUSE, span: FIRST_PAUSE, trial: false });
                }
            }
            Some(_) if outcome.is_worth_it() && outcome.before > 0 => {
                *self = Memory { saving: Saving::default(), pause: None };
                self.saving.add(outcome);
            }
            Some(pause) if pause.trial => {
                let span = (pause.span * 2).min(LONGEST_PAUSE);
                *pause = Pause { until: now + span, span, trial: false };
            }
            // Sent on its way before the pause began: known already.
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
