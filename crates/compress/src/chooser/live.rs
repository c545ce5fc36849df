//! The chooser of a live tunnel: what takes the least time, by the equations and by what was measured.

mod weigh;

use core::fmt;
use core::time::Duration;

use strait_clock::Time;
use strait_model::LoadFactor;
use strait_wire::Flow;

use super::class::RuleClass;
use super::known::{Known, Learned, WORTH, due};
use super::memory::{Memory, Standing};
use super::table::ClassTable;
use super::{Allowed, Chooser, Class, Decision, DecisionReason, Outcome, PathCost, RuleId, Unit};
use crate::calibrate::{CANDIDATES, Calibration, nearest};
use crate::{Method, probe};
use weigh::{Prices, Scales};

/// Classes remembered: some 900 bytes each, and more flows than a thin link carries at once.
const CLASSES: usize = 1_024;
/// Payloads under this are not looked at: a histogram of so few bytes says nothing.
const PROBE_MIN: usize = 256;
/// What a change must promise: a thirtieth, so that noise does not move the choice to and fro.
const HYSTERESIS: f64 = 0.03;
/// A choice that saves less than this is not held on to, however little worse the others are.
const HARDLY: f64 = 0.03;
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
/// Changes in classes of less than this a second are not reported.
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
    load: LoadFactor,
    classes: ClassTable<RuleClass, Memory>,
    changed: Option<Decision>,
}

impl LiveChooser {
    /// A chooser that has seen nothing; `seed` keeps others from choosing who shares a place in its table.
    #[must_use]
    pub fn new(calibration: Calibration, seed: u64) -> LiveChooser {
        LiveChooser {
            calibration,
            load: LoadFactor::NONE,
            classes: ClassTable::new(CLASSES, seed),
            changed: None,
        }
    }

    /// Keeps a decision that just changed to be reported, if the class carries enough.
    fn tell(&mut self, unit: &Unit<'_>, now: Time) {
        let key = keys(unit.flow, unit.rule)[0];
        let load = self.load.factor(now);
        let Some(memory) = self.classes.get_mut(&key, now) else { return };
        if memory.recent(now) >= NEWSWORTHY {
            self.changed = decision(&self.calibration, load, &key, memory, now).or(self.changed.take());
        }
    }
}

impl Chooser for LiveChooser {
    fn may_shrink(&mut self, unit: &Unit<'_>, payload: &[u8], now: Time) -> bool {
        if !unit.allowed.something() {
            return false;
        }
        let memory = memory(&mut self.classes, unit, now);
        memory.count(payload.len(), now);
        // On links as fast as memory even the entropy probe costs too much.
        if memory.is_too_slow(now) {
            return false;
        }
        let random = payload.len() >= PROBE_MIN && !probe::shrinkable(payload);
        let turned = memory.look(payload.len(), random, now);
        let worth_it = memory.known.shrinks() || memory.trial_is_due(false, now);
        if turned {
            self.tell(unit, now);
        }
        !random && worth_it
    }

    fn choose(&mut self, unit: &Unit<'_>, len: usize, path_cost: &PathCost, now: Time) -> Method {
        if !unit.allowed.something() || len == 0 {
            return Method::NONE;
        }
        let load = self.load.factor(now);
        let memory = memory(&mut self.classes, unit, now);
        let kind = memory.ask(unit, path_cost, len, now);
        let before = memory.standing[kind];
        if let Some(standing) = before.filter(|it| now < it.until) {
            // Trials wait for the next look.
            return named(unit.allowed, standing.candidate);
        }
        let scales = Scales { calibration: &self.calibration, known: &memory.known, load, path_cost, len };
        let prices = scales.prices();
        let standing = settle(&scales, &prices, unit.allowed, before, now);
        let begins_rest = standing.candidate.is_none() && before.is_none_or(|it| it.candidate.is_some());
        let due = !begins_rest && memory.trial_is_due(standing.candidate.is_some(), now);
        let trial = if due { trial(&scales, &prices, unit.allowed, &standing, now) } else { None };
        memory.standing[kind] = Some(standing);
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
        let before = outcome.before;
        let after = outcome.after.unwrap_or(before).min(before);
        let due = due(&self.calibration.figures()[candidate], before, outcome.prefix);
        // Another level's time says nothing of this one's.
        let its_own = due.0 > 0.0 && CANDIDATES.get(candidate) == Some(&outcome.method);
        let observed = outcome.took.filter(|_| its_own).map(|nanos| nanos as f64 * 1e-9 / due.0);
        let load = self.load.factor(now);
        if let Some(observed) = observed {
            let usual = memory(&mut self.classes, unit, now).known.slowness(candidate);
            self.load.learn(observed / usual, due, now);
        }
        let slowness = observed.map(|observed| observed / load);
        let learned = Learned { candidate, before, after, of: outcome.of, prefix: outcome.prefix, slowness };
        let shrank = (before - after) as f64 >= before as f64 * WORTH;
        for key in keys(unit.flow, unit.rule) {
            let begin = || Memory::new(Known::default(), unit.to, now);
            let memory = self.classes.get_or_insert_with(key, now, begin);
            if shrank && !memory.known.shrinks() {
                memory.forget(now);
            }
            memory.known.learn(&self.calibration, learned, now);
        }
    }

    fn changed(&mut self) -> Option<Decision> {
        self.changed.take()
    }

    fn decisions(&self, now: Time) -> Vec<Decision> {
        let load = self.load.factor(now);
        let mut lately: Vec<(&RuleClass, &Memory)> = self
            .classes
            .iter()
            .filter(|(key, _, touched)| matches!(key.0, Class::Flow(_)) && now.since(*touched) <= LATELY)
            .map(|(key, memory, _)| (key, memory))
            .collect();
        lately.sort_by_key(|(_, memory)| core::cmp::Reverse(memory.recent(now)));
        let decided = lately
            .into_iter()
            .filter_map(|(key, memory)| decision(&self.calibration, load, key, memory, now));
        decided.take(REPORTED).collect()
    }
}

/// The memory of a unit's flow, begun with what wider classes know.
fn memory<'a>(classes: &'a mut ClassTable<RuleClass, Memory>, unit: &Unit<'_>, now: Time) -> &'a mut Memory {
    let [flow, wider @ ..] = keys(unit.flow, unit.rule);
    let known = if classes.get_mut(&flow, now).is_some() {
        None
    } else {
        wider.iter().find_map(|key| Some(classes.get_mut(key, now)?.known.inherited()))
    };
    classes.get_or_insert_with(flow, now, || Memory::new(known.unwrap_or_default(), unit.to, now))
}

/// The classes of a flow, the narrowest first.
fn keys(flow: &Flow, rule: RuleId) -> [RuleClass; 3] {
    [Class::Flow(*flow), Class::service(flow), Class::Protocol(flow.protocol)].map(|class| (class, rule))
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
        Allowed::Nothing => (None, DecisionReason::PeerLacks),
        Allowed::Only(method) => ordered(scales, method, before.is_some_and(|it| it.candidate.is_some())),
        Allowed::Any => cheapest(scales, prices, before.map(|it| it.candidate)),
    };
    let since =
        before.filter(|it| (it.candidate, it.reason) == (candidate, reason)).map_or(now, |it| it.since);
    Standing { candidate, reason, since, until: now + HOLDS }
}

/// The method that a rule names, unless it is known to save nothing; what it was used for stays a little longer.
fn ordered(scales: &Scales<'_>, method: Method, stood: bool) -> (Option<usize>, DecisionReason) {
    match nearest(method) {
        Some(candidate) if scales.path_cost.codecs.contains(method.codec) => {
            let worth_it = scales.expected(candidate).ratio.saving() >= if stood { HARDLY } else { WORTH };
            if worth_it {
                (Some(candidate), DecisionReason::Ordered)
            } else {
                (None, DecisionReason::DoesNotShrink)
            }
        }
        _ => (None, DecisionReason::PeerLacks),
    }
}

/// The candidate that takes the least time, or none; what stood before stays while it is hardly worse.
fn cheapest(
    scales: &Scales<'_>,
    prices: &Prices,
    before: Option<Option<usize>>,
) -> (Option<usize>, DecisionReason) {
    if !scales.candidates().any(|_| true) {
        return (None, DecisionReason::PeerLacks);
    }
    let plain = prices.of(None);
    let cheapest = prices.cheapest();
    let mut best = cheapest.filter(|it| prices.of(Some(*it)) < plain * (1.0 - HYSTERESIS));
    // What stood stays while nothing is clearly better, unless it hardly shrinks any more.
    let holds = |it: usize| {
        scales.candidates().any(|candidate| candidate == it) && scales.expected(it).ratio.saving() > HARDLY
    };
    let least = plain.min(prices.of(cheapest));
    if let Some(stood) = before
        && stood.is_none_or(holds)
        && least > prices.of(stood) * (1.0 - HYSTERESIS)
    {
        best = stood;
    }
    let reason = match best {
        Some(_) => DecisionReason::Pays,
        None if scales.hopes().any(|_| true) => DecisionReason::DoesNotShrink,
        None => DecisionReason::TooSlow,
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
        (Allowed::Only(method), None) if standing.reason == DecisionReason::DoesNotShrink => nearest(method),
        (Allowed::Any, None) => scales.hopes().max_by_key(|it| scales.known.age(*it, now)),
        (Allowed::Any, Some(choice)) => {
            let near = prices.of(Some(choice)) * NEAR;
            let stale = |it: &usize| *it != choice && scales.known.age(*it, now) >= FRESH;
            let near = |it: &usize| prices.of(Some(*it)) <= near;
            scales.candidates().filter(stale).filter(near).max_by_key(|it| scales.known.age(*it, now))
        }
        _ => None,
    }
}

/// A class's decision with the figures it rests on, as of now; nothing where nothing was to be decided.
fn decision(
    calibration: &Calibration,
    load: f64,
    key: &RuleClass,
    memory: &Memory,
    now: Time,
) -> Option<Decision> {
    let asked = memory.asked.as_ref();
    let standing = asked.and_then(|asked| memory.standing.get(asked.kind).copied().flatten());
    let weighed = asked.zip(standing).map(|(asked, standing)| {
        let scales =
            Scales { calibration, known: &memory.known, load, path_cost: &asked.path_cost, len: asked.len };
        scales.weighed(asked.allowed, standing.candidate)
    });
    let (method, reason, since) = match standing {
        _ if memory.looks_random() => (Method::NONE, DecisionReason::LooksRandom, memory.looks_since),
        Some(standing) => {
            let allowed = asked.map_or(Allowed::Any, |asked| asked.allowed);
            // What looks otherwise now may have been decided on before that.
            (named(allowed, standing.candidate), standing.reason, standing.since.max(memory.looks_since))
        }
        None => return None,
    };
    let (class, rule) = *key;
    Some(Decision { class, to: memory.to, rule, recent: memory.recent(now), method, reason, since, weighed })
}

impl fmt::Debug for LiveChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveChooser").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
