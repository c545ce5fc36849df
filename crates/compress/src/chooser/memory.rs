//! What is remembered of one class: its data, what stands decided on it, and when to look again.

use core::time::Duration;

use strait_clock::Time;

use super::known::Known;
use super::{Allowed, DecisionReason, PathCost, Unit};

/// Bytes after which the past of how data looks counts half: a dozen packets.
const LOOK_MEMORY: f64 = 16_384.0;
/// The first pause without a trial: long enough to skip a burst, too short for a person to wait on.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest: what changes is followed within a second. One trial of 64 KiB in it takes less than a thousandth of a core.
const LONGEST_PAUSE: Duration = Duration::from_millis(800);
/// Units between two trials of what is not in use, once a class is known: with [`super::live`]'s bound on what may be
/// tried, that costs one percent. Of a new class more is tried, so that most of it profits.
const UNITS_APART: u32 = 16;
/// Over which time bytes are counted.
const SECOND: Duration = Duration::from_secs(1);

/// A choice that stands: a candidate's number, or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Standing {
    pub(super) candidate: Option<usize>,
    pub(super) reason: DecisionReason,
    pub(super) since: Time,
    /// Until when it holds without another look.
    pub(super) until: Time,
}

/// What a choice is about: whether throughput counts, and how large the unit is. Each has a standing choice of its own, as
/// small units and large ones by turns would otherwise move it to and fro.
const KINDS: usize = 2 * BANDS;
/// Sizes: packets alone, bundles, and whole super-packets.
const BANDS: usize = 3;
/// Where the second and the third begin.
const LARGER: [usize; BANDS - 1] = [1_500, 16_384];

fn kind(path_cost: &PathCost, len: usize) -> usize {
    let band = LARGER.iter().filter(|from| len >= **from).count();
    usize::from(path_cost.counts_throughput()) * BANDS + band
}

/// A question.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryQuery {
    pub(super) path_cost: PathCost,
    /// Bytes of the unit.
    pub(super) len: usize,
    pub(super) allowed: Allowed,
    /// Which choice it was about.
    pub(super) kind: usize,
    at: Time,
}

/// A class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) known: Known,
    /// Share of its bytes that look random.
    random: f64,
    /// What stands on each kind of unit.
    pub(super) standing: [Option<Standing>; KINDS],
    /// Which of them was asked for last.
    last: usize,
    /// What was asked lately, of the units the one that stands for them.
    pub(super) asked: Option<MemoryQuery>,
    pub(super) to: u32,
    /// Since when its data looks as it does.
    pub(super) looks_since: Time,
    /// Units since the last trial, and how many there must be before another takes the place of what pays.
    units: u32,
    apart: u32,
    /// When a codec that is not in use may be tried again, and the pause after that.
    next_trial: Time,
    pause: Duration,
    /// Since when so many bytes have been counted, and a second's before that.
    counting: (Time, u64),
    recent: u64,
}

impl Memory {
    pub(super) fn new(known: Known, to: u32, now: Time) -> Memory {
        Memory {
            known,
            random: 0.0,
            standing: [None; KINDS],
            last: 0,
            asked: None,
            to,
            looks_since: now,
            units: 0,
            apart: 1,
            next_trial: now,
            pause: FIRST_PAUSE,
            counting: (now, 0),
            recent: 0,
        }
    }

    /// A packet of `len` bytes was looked at; says whether the class looks otherwise than before.
    pub(super) fn look(&mut self, len: usize, random: bool, now: Time) -> bool {
        let bytes = len as f64;
        let share = bytes / (bytes + LOOK_MEMORY);
        let was = self.looks_random();
        self.random += (f64::from(u8::from(random)) - self.random) * share;
        if was && !self.looks_random() {
            // What was learned in vain on other data is no reason to wait.
            self.look_again(now);
        }
        let turned = was != self.looks_random();
        if turned {
            self.looks_since = now;
        }
        turned
    }

    /// A packet of `len` bytes came by.
    pub(super) fn count(&mut self, len: usize, now: Time) {
        let (began, counted) = self.counting;
        let span = now.since(began);
        if span >= SECOND {
            self.recent = if span < SECOND * 2 { counted } else { 0 };
            self.counting = (now, 0);
        }
        self.counting.1 += len as u64;
    }

    /// Bytes in the last whole second, or in the one that is running if that has more.
    pub(super) fn recent(&self, now: Time) -> u64 {
        let (began, counted) = self.counting;
        if now.since(began) >= SECOND * 2 { 0 } else { self.recent.max(counted) }
    }

    pub(super) fn looks_random(&self) -> bool {
        self.random > 0.5
    }

    /// A unit of `len` bytes is about to go; says which choice it is about.
    pub(super) fn ask(&mut self, unit: &Unit<'_>, path_cost: &PathCost, len: usize, now: Time) -> usize {
        let kind = kind(path_cost, len);
        let same_link = self.asked.is_none_or(|asked| asked.path_cost.rate == path_cost.rate);
        if !same_link {
            // Another link is another question.
            self.decide_anew();
        }
        // The tail of a conversation says little of it: small units stand for the class only when there are no others.
        let larger = |asked: &MemoryQuery| asked.len / 2 > len && now.since(asked.at) < SECOND && same_link;
        if !self.asked.as_ref().is_some_and(larger) {
            self.asked =
                Some(MemoryQuery { path_cost: *path_cost, len, allowed: unit.allowed, kind, at: now });
        }
        self.to = unit.to;
        self.last = kind;
        self.units = self.units.saturating_add(1);
        kind
    }

    /// Whether something not in use may be tried: in place of what pays, so seldom that it hardly shows.
    pub(super) fn trial_is_due(&self, in_place: bool, now: Time) -> bool {
        now >= self.next_trial && (!in_place || self.units > self.apart)
    }

    /// It is tried; the next time comes after a longer pause.
    pub(super) fn tried(&mut self, now: Time) {
        self.next_trial = now + self.pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.units = 0;
        self.apart = (self.apart * 2).min(UNITS_APART);
    }

    /// Nothing is compressed from now on: the first trial comes after the first pause.
    pub(super) fn rest(&mut self, now: Time) {
        self.next_trial = now + FIRST_PAUSE;
        self.pause = FIRST_PAUSE * 2;
    }

    /// Trials may begin anew.
    pub(super) fn look_again(&mut self, now: Time) {
        self.next_trial = now;
        self.pause = FIRST_PAUSE;
        self.apart = 1;
        self.decide_anew();
    }

    fn decide_anew(&mut self) {
        for standing in self.standing.iter_mut().flatten() {
            standing.until = Time::ZERO;
        }
    }

    /// Whether compressing is known to take too long, whatever the data.
    pub(super) fn is_too_slow(&self, now: Time) -> bool {
        let standing = self.standing.get(self.last).copied().flatten();
        standing.is_some_and(|it| it.reason == DecisionReason::TooSlow && now < it.until)
    }

    /// It is other data than before: what that has shown means nothing any more.
    pub(super) fn forget(&mut self, now: Time) {
        self.known = Known::default();
        self.standing = [None; KINDS];
        self.look_again(now);
    }
}
