//! The chooser of a live tunnel: what takes the least time, by the equations and by what was measured.

mod weigh;

use core::fmt;
use core::time::Duration;

use strait_clock::Time;
use strait_wire::Flow;

use super::class::Key;
use super::known::{Known, Learned, due};
use super::load::Load;
use super::memory::{Memory, Standing};
use super::table::Table;
use super::{Allowed, Chooser, Class, Decision, Outcome, Reason, Road, RuleId, Unit};
use crate::calibrate::{CANDIDATES, Calibration};
use crate::{Method, probe};
use weigh::{Prices, Scales};

/// Classes remembered: half a kilobyte each, and more flows than a thin link carries at once.
const CLASSES: usize = 1_024;
/// Payloads under this are not looked at: a histogram of so few bytes says nothing.
const PROBE_MIN: usize = 256;
/// What a change must promise: a thirtieth, so that noise does not move the choice to and fro.
const HYSTERESIS: f64 = 0.03;
/// What the rule names is left off where it saves less than this (OpenVPN's `AC_SAVE_PCT`, `lzo.h` in 2.3).
const WORTH: f64 = 0.05;
/// How long a decision holds for units of about the same size: short beside a person's second, and long beside the
/// fraction of a microsecond that another look takes.
const HOLDS: Duration = Duration::from_millis(10);
/// A codec that may be this much slower than the choice is tried now and then.
const NEAR: f64 = 1.15;
/// What was tried so lately is known.
const FRESH: Duration = Duration::from_secs(5);
/// Classes that were silent for longer are not reported.
const LATELY: Duration = Duration::from_secs(10);
/// Most classes in a report.
const REPORTED: usize = 64;
/// Changes in classes of less than this a second are nobody's news.
const NEWSWORTHY: u64 = 16_384;

/// Chooses for each class of traffic what takes the least time.
///
/// A class is a flow; a new one begins with what its service has shown, or else its protocol. For each unit the time of
/// every stage is predicted with and without each of [`CANDIDATES`]: one stage after the other when nothing else waits
/// (a unit then arrives soonest), or the slowest of them when something does. The least wins; a standing choice
/// gives way only to one that is clearly better. Rates come from a [`Calibration`], and then from the work itself: per
/// class, and for the machine as a whole, whose load changes. What does not shrink is left alone and tried again after pauses that
/// grow from 0.1 to 0.8 seconds. Everything is of fixed size and allocates nothing after [`LiveChooser::new`], but for reports.
pub struct LiveChooser {
    calibration: Calibration,
    load: Load,
    classes: Table<Key, Memory>,
    changed: Option<Decision>,
}

impl LiveChooser {
    /// A chooser that has seen nothing; `seed` keeps others from choosing who shares a place in its table.
    #[must_use]
    pub fn new(calibration: Calibration, seed: u64) -> LiveChooser {
        LiveChooser { calibration, load: Load::NONE, classes: Table::new(CLASSES, seed), changed: None }
    }

    /// Keeps a decision that just changed for whoever asks, if it is worth telling.
    fn tell(&mut self, unit: &Unit<'_>, now: Time) {
        let key = keys(unit.flow, unit.rule)[0];
        let load = self.load.factor(now);
        let Some(memory) = self.classes.get_mut(&key, now) else { return };
        if memory.recent() >= NEWSWORTHY {
            self.changed = Some(decision(&self.calibration, load, &key, memory));
        }
    }
}

impl Chooser for LiveChooser {
    fn may_shrink(&mut self, unit: &Unit<'_>, payload: &[u8], now: Time) -> bool {
        if !unit.allowed.something() {
            return false;
        }
        let random = payload.len() >= PROBE_MIN && !probe::shrinkable(payload);
        let memory = memory(&mut self.classes, unit, now);
        let turned = memory.look(payload.len(), random, now);
        let worth_it = !memory.does_not_shrink() || memory.trial_is_due(false, now);
        if turned {
            self.tell(unit, now);
        }
        !random && worth_it
    }

    fn choose(&mut self, unit: &Unit<'_>, len: usize, road: &Road, now: Time) -> Method {
        if !unit.allowed.something() || len == 0 {
            return Method::NONE;
        }
        let load = self.load.factor(now);
        let memory = memory(&mut self.classes, unit, now);
        let mode = memory.ask(unit, road, len, now);
        let before = memory.standing[mode];
        if let Some(standing) = before.filter(|it| now < it.until && it.size == len.ilog2()) {
            // Trials wait for the next look.
            return named(unit.allowed, standing.candidate);
        }
        let scales = Scales { calibration: &self.calibration, known: &memory.known, load, road, len };
        let prices = scales.prices();
        let standing = settle(&scales, &prices, unit.allowed, before, now);
        let begins_rest = standing.candidate.is_none() && before.is_none_or(|it| it.candidate.is_some());
        let due = !begins_rest && memory.trial_is_due(standing.candidate.is_some(), now);
        let trial = if due { trial(&scales, &prices, unit.allowed, &standing, now) } else { None };
        memory.standing[mode] = Some(standing);
        if begins_rest {
            memory.rest(now);
        } else if trial.is_some() {
            memory.tried(now);
        }
        if before.is_some_and(|before| before.candidate != standing.candidate) {
            self.tell(unit, now);
        }
        named(unit.allowed, trial.or(standing.candidate))
    }

    fn learn(&mut self, unit: &Unit<'_>, outcome: &Outcome, now: Time) {
        let Some(candidate) = nearest(outcome.method) else { return };
        let figures = self.calibration.figures()[candidate];
        let before = outcome.before;
        let after = outcome.after.unwrap_or(before).min(before);
        let due = due(&figures, before);
        let observed = outcome.took.filter(|_| due.0 > 0.0).map(|nanos| nanos as f64 * 1e-9 / due.0);
        let load = self.load.factor(now);
        if let Some(observed) = observed {
            let usual = memory(&mut self.classes, unit, now).known.slowness(candidate).unwrap_or(1.0);
            self.load.learn(observed / usual, due, now);
        }
        let learned =
            Learned { candidate, before, after, slowness: observed.map(|observed| observed / load) };
        for key in keys(unit.flow, unit.rule) {
            let begin = || Memory::new(Known::default(), unit.to, now);
            self.classes.get_or_insert_with(key, now, begin).known.learn(&figures, learned, now);
        }
        let shrank = (before - after) as f64 >= before as f64 * WORTH;
        let memory = memory(&mut self.classes, unit, now);
        if shrank && memory.does_not_shrink() {
            // Other data than before: what that has shown means nothing any more.
            memory.known = Known::default();
            memory.known.learn(&figures, learned, now);
            memory.standing = [None; 2];
            memory.look_again(now);
        }
    }

    fn changed(&mut self) -> Option<Decision> {
        self.changed.take()
    }

    fn decisions(&self, now: Time) -> Vec<Decision> {
        let load = self.load.factor(now);
        let lately = self
            .classes
            .iter()
            .filter(|(key, _, touched)| matches!(key.0, Class::Flow(_)) && now.since(*touched) <= LATELY);
        let mut decisions: Vec<Decision> =
            lately.map(|(key, memory, _)| decision(&self.calibration, load, key, memory)).collect();
        decisions.sort_by_key(|it| (core::cmp::Reverse(it.recent), it.since));
        decisions.truncate(REPORTED);
        decisions
    }
}

/// The memory of a unit's flow, begun with what wider classes know.
fn memory<'a>(classes: &'a mut Table<Key, Memory>, unit: &Unit<'_>, now: Time) -> &'a mut Memory {
    let [flow, wider @ ..] = keys(unit.flow, unit.rule);
    let known = if classes.get_mut(&flow, now).is_some() {
        None
    } else {
        wider.iter().find_map(|key| Some(classes.get_mut(key, now)?.known.inherited()))
    };
    classes.get_or_insert_with(flow, now, || Memory::new(known.unwrap_or_default(), unit.to, now))
}

/// The classes of a flow, the narrowest first.
fn keys(flow: &Flow, rule: RuleId) -> [Key; 3] {
    [Class::Flow(*flow), Class::service(flow), Class::Protocol(flow.protocol)].map(|class| (class, rule))
}

/// The candidate that stands for a method: itself, or that of its codec with the nearest level.
fn nearest(method: Method) -> Option<usize> {
    let of_codec = |it: &(usize, &Method)| it.1.codec == method.codec;
    let far = |it: &(usize, &Method)| i32::from(it.1.level).abs_diff(method.level.into());
    CANDIDATES.iter().enumerate().filter(of_codec).min_by_key(far).map(|(place, _)| place)
}

/// A candidate by its method; for a rule that names one, that.
fn named(allowed: Allowed, candidate: Option<usize>) -> Method {
    match (allowed, candidate) {
        (Allowed::Only(method), Some(_)) => method,
        (_, candidate) => candidate.and_then(|place| CANDIDATES.get(place)).copied().unwrap_or(Method::NONE),
    }
}

/// What stands from now on.
fn settle(
    scales: &Scales<'_>,
    prices: &Prices,
    allowed: Allowed,
    before: Option<Standing>,
    now: Time,
) -> Standing {
    let (candidate, reason) = match allowed {
        Allowed::Nothing => (None, Reason::PeerLacks),
        Allowed::Only(method) => ordered(scales, method),
        Allowed::Any => cheapest(scales, prices, before.map(|it| it.candidate)),
    };
    let since =
        before.filter(|it| (it.candidate, it.reason) == (candidate, reason)).map_or(now, |it| it.since);
    Standing { candidate, reason, since, until: now + HOLDS, size: scales.len.ilog2() }
}

/// The method that a rule names, unless it is known to save nothing.
fn ordered(scales: &Scales<'_>, method: Method) -> (Option<usize>, Reason) {
    match nearest(method) {
        Some(candidate) if scales.road.codecs.contains(method.codec) => {
            let worth_it = scales.expected(candidate).ratio.saving() >= WORTH;
            if worth_it { (Some(candidate), Reason::Ordered) } else { (None, Reason::DoesNotShrink) }
        }
        _ => (None, Reason::PeerLacks),
    }
}

/// The candidate that takes the least time, or none; what stood before stays while it is hardly worse.
fn cheapest(scales: &Scales<'_>, prices: &Prices, before: Option<Option<usize>>) -> (Option<usize>, Reason) {
    if !scales.candidates().any(|_| true) {
        return (None, Reason::PeerLacks);
    }
    let plain = prices.of(None);
    let cheapest = prices.cheapest();
    let mut best = cheapest.filter(|it| prices.of(Some(*it)) < plain * (1.0 - HYSTERESIS));
    // What stood stays while nothing is clearly better, unless it hardly shrinks any more.
    let holds = |it: usize| {
        scales.candidates().any(|candidate| candidate == it)
            && scales.expected(it).ratio.saving() > HYSTERESIS
    };
    let least = plain.min(prices.of(cheapest));
    if let Some(stood) = before
        && stood.is_none_or(holds)
        && least > prices.of(stood) * (1.0 - HYSTERESIS)
    {
        best = stood;
    }
    let reason = match best {
        Some(_) => Reason::Pays,
        None if scales.hopeful().is_some() => Reason::DoesNotShrink,
        None => Reason::TooSlow,
    };
    (best, reason)
}

/// What may be tried in place of what stands: something near it that was not tried lately; where nothing is compressed,
/// what would pay if the data shrank well.
fn trial(
    scales: &Scales<'_>,
    prices: &Prices,
    allowed: Allowed,
    standing: &Standing,
    now: Time,
) -> Option<usize> {
    match (allowed, standing.candidate) {
        (Allowed::Only(method), None) if standing.reason == Reason::DoesNotShrink => nearest(method),
        (Allowed::Any, None) => scales.hopeful(),
        (Allowed::Any, Some(choice)) => {
            let near = prices.of(Some(choice)) * NEAR;
            let stale = |it: &usize| *it != choice && scales.known.age(*it, now) >= FRESH;
            let near = |it: &usize| prices.of(Some(*it)) <= near;
            scales.candidates().filter(stale).filter(near).max_by_key(|it| scales.known.age(*it, now))
        }
        _ => None,
    }
}

/// A class's decision with the figures it rests on, as of now.
fn decision(calibration: &Calibration, load: f64, key: &Key, memory: &Memory) -> Decision {
    let asked = memory.asked.as_ref();
    let standing = asked.and_then(|asked| memory.standing.get(asked.mode).copied().flatten());
    let weighed = asked.zip(standing).map(|(asked, standing)| {
        let scales = Scales { calibration, known: &memory.known, load, road: &asked.road, len: asked.len };
        scales.weighed(asked.allowed, standing.candidate)
    });
    let allowed = asked.map_or(Allowed::Any, |asked| asked.allowed);
    let (method, reason, since) = match standing {
        Some(standing) if !memory.looks_random() => {
            (named(allowed, standing.candidate), standing.reason, standing.since)
        }
        _ => (Method::NONE, Reason::LooksRandom, memory.looks_since),
    };
    let (class, rule) = *key;
    // What looks otherwise now may have been decided on before that.
    let since = since.max(memory.looks_since);
    Decision { class, to: memory.to, rule, recent: memory.recent(), method, reason, since, weighed }
}

impl fmt::Debug for LiveChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveChooser").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
