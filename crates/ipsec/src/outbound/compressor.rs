//! Step 5: which method compresses a unit, and on which engine. Units of one peer leave in the order in which they were gathered.

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Arc;

use strait_clock::{Stopwatch, Time};
use strait_compress::calibrate::{CANDIDATES, Calibration};
use strait_compress::history::BlockPlan;
use strait_compress::{Allowed, Chooser, Codec, CodecSet, Method, Outcome, RuleId, Unit};
use strait_wire::flow::Flow;

use super::context::{Outlet, TxContext};
use super::group::Group;
use super::history::{LinkHistory, stream_of};
use super::job::{CompressJob, CompressTools, CompressUnit, Task};
use super::link::Link;
use super::pauses::CompressionPauses;
use super::plain::{Part, Plain, UnitFlows};
use crate::pool::Pool;
use crate::{Counters, Domain, Explanation, Notice, Padding, PeerId, Reason, RuleSet};

/// One unit in so many with a history is compressed without it as well: what history gives is measured at the cost of 2 % more work.
const COMPARE_EVERY: u32 = 64;

/// Compresses units, and learns from what they became.
pub(super) struct Compressor {
    pub(super) rules: Arc<RuleSet>,
    /// Counts the changes of rules: what was classified by different ones is never mixed.
    pub(super) edition: u32,
    pub(super) chooser: Box<dyn Chooser>,
    pub(super) pool: Pool<CompressUnit>,
    pub(super) pauses: CompressionPauses,
    /// Units towards peers that keep a history.
    planned: u32,
    counters: Arc<Counters>,
}

/// The flow that comes first in a unit, with the rule that covers it and the group of all of the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lead {
    pub(super) flow: Flow,
    pub(super) rule: u16,
    pub(super) group: Group,
    /// Whether it waited: alone on an idle link it would have left at once, and by itself.
    pub(super) waited: bool,
}

/// Packets that were compressed, or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrialResult {
    pub(super) to: PeerId,
    pub(super) allowed: Allowed,
    pub(super) packets: u64,
    pub(super) outcome: Outcome,
    /// Bytes that came out, with padding.
    pub(super) padded: usize,
    /// How many sizes they might have had on the wire.
    pub(super) sizes: usize,
}

impl Compressor {
    pub(super) fn new(
        chooser: Box<dyn Chooser>,
        stopwatch: Stopwatch,
        counters: Arc<Counters>,
    ) -> Compressor {
        let pool = Pool::alone(CompressTools::new(stopwatch));
        let pauses = CompressionPauses::default();
        Compressor { rules: Arc::default(), edition: 0, chooser, pool, pauses, planned: 0, counters }
    }

    /// So many workers beside the calling thread, alike in speed.
    pub(super) fn add_workers(&mut self, workers: usize, calibration: &Calibration) {
        let costs = CANDIDATES.iter().map(|it| Some(calibration.of(*it)?.compress));
        self.pool.add_workers(workers, costs);
    }

    /// Other rules from now on.
    pub(super) fn obey(&mut self, rules: Arc<RuleSet>) {
        self.pauses.obey(&rules);
        self.rules = rules;
        self.edition = self.edition.wrapping_add(1);
    }

    /// What is decided, and how busy the engines are.
    pub(super) fn explain(&self, now: Time) -> Explanation {
        Explanation { decisions: self.chooser.decisions(now), engines: self.pool.occupations(now) }
    }

    /// Says what is decided otherwise than before, if anything is.
    pub(super) fn tell_changes(&mut self, outlet: &mut impl Outlet) {
        if let Some(decision) = self.chooser.changed() {
            outlet.notice(Notice::Decided(Box::new(decision)));
        }
    }

    /// The rule in this place of those that are in force.
    pub(super) const fn rule(&self, place: u16) -> RuleId {
        RuleId { place, edition: self.edition }
    }

    /// What to compress `len` bytes with, of which these come first.
    pub(super) fn choose(&mut self, tx: &mut TxContext<'_, impl Outlet>, lead: &Lead, len: usize) -> Method {
        let Lead { flow, rule, group, waited } = lead;
        let Group { domain, policy, .. } = *group;
        if len < policy.padding.least() || policy.may_pause() && self.pauses.is_paused(domain) {
            return Method::NONE;
        }
        let unit = Unit { flow, to: tx.link.spec.id.0, rule: self.rule(*rule), allowed: group.allowed };
        // IPComp is not for workers: what it makes is sealed as it is made.
        let blocks = tx.link.association.takes_blocks();
        let engines = if blocks { self.pool.side_by_side() } else { NonZeroU32::MIN };
        let mut path_cost = tx.link.path_cost(tx.own, engines);
        path_cost.waiting |= waited;
        path_cost.prefix = tx.link.prefix_len(group);
        let pads = tx.link.association.pads(policy.padding);
        if !pads {
            (path_cost.codecs, path_cost.only) = (CodecSet::EMPTY, None);
        }
        let method = self.chooser.choose(&unit, len, &path_cost, tx.now);
        if method.codec == Codec::None && pads && policy.padding == Padding::Constant {
            self.pause(domain, usize::from(*rule));
        }
        self.tell_changes(tx.outlet);
        method
    }

    /// Compressing pauses for this domain, by what packets of this rule became.
    fn pause(&mut self, domain: Option<Domain>, rule: usize) {
        if self.pauses.begin(domain)
            && let Some(rule) = self.rules.counters(rule)
        {
            rule.pauses.add(1);
        }
    }

    /// Compresses the gathered packets of one group with the method of the first one's flow.
    pub(super) fn submit_unit(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        plain: &mut Plain,
        (group, waited): (Group, bool),
    ) -> Option<CompressJob> {
        let first = plain.flows().first().copied().flatten();
        let method = first.map_or(Method::NONE, |Part { flow, rule, .. }| {
            self.choose(tx, &Lead { flow, rule, group, waited }, plain.len())
        });
        self.submit(tx, plain, &group, method)
    }

    /// Compresses the gathered packets: at once where there is only the calling thread or nothing to compress, and gives them back
    /// then; else where it ends first.
    pub(super) fn submit(
        &mut self,
        tx: &mut TxContext<'_, impl Outlet>,
        plain: &mut Plain,
        group: &Group,
        method: Method,
    ) -> Option<CompressJob> {
        let (association, to) = (&tx.link.association, tx.link.spec.id);
        let (headers, room) = (association.takes_headers(), association.part_room());
        let padding = group.policy.padding;
        let may = association.pads(padding) && plain.len() >= padding.least();
        let mut below = if may { association.block_below(method, plain.len()) } else { 0 };
        let cached_below = association.cached_below(plain.len());
        let predicted = plain.predicted() as u64;
        self.planned = self.planned.wrapping_add(1);
        let compare = self.planned.is_multiple_of(COMPARE_EVERY);
        let mut job = self.pool.idle_or_surplus();
        let blocks = &mut self.pool.tools.blocks;
        let caches = tx.link.history.as_deref_mut().map(|history| &mut history.caches);
        let cached = caches
            .filter(|_| cached_below > 0)
            .and_then(|caches| caches.stage(blocks, (group, headers, plain.bytes()), &mut job.work, tx.now));
        if cached.is_some() {
            below = cached_below;
        }
        let plan = if below > 0 {
            plan(tx.link.history.as_deref_mut(), &mut job.work, group, method, tx.now)
        } else {
            None
        };
        job.work.take(plain, Task { to, group: *group, method, headers, below, room, plan, compare });
        job.work.cached = cached;
        let under_way = &mut tx.link.backlog.under_way;
        let at_once = tx.promoted || !job.work.has_work() && under_way.is_empty();
        if !self.pool.has_workers() || at_once {
            self.pool.run_now(&mut job);
            self.account(&mut job, tx.now);
            return Some(job);
        }
        if job.work.has_work() {
            let outlet = &mut *tx.outlet;
            let hand_over = |worker, job| outlet.hand_over(worker, job);
            self.pool.submit(under_way, predicted, job, tx.now, hand_over);
        } else {
            under_way.push_done(predicted, job);
        }
        None
    }

    /// Puts a unit that an engine has compressed in its place before its link.
    pub(super) fn finished(&mut self, job: CompressJob, link: Option<&mut Link>) {
        let (back, gone) = match link {
            Some(link) => (link.backlog.under_way.put(job).err(), Reason::NoSa),
            None => (Some(job), Reason::NoPeer),
        };
        if let Some(job) = back {
            self.counters.drops.count(gone, job.work.plain.packets());
            self.pool.put_back(job);
        }
    }

    /// The first unit under way, if an engine has compressed it.
    pub(super) fn take_done(&mut self, link: &mut Link, now: Time) -> Option<CompressJob> {
        let (_, mut job) = link.backlog.under_way.pop()?;
        link.backlog.note_compressed(job.took.map(Duration::from_nanos));
        self.account(&mut job, now);
        Some(job)
    }

    /// Gives up what is under way on a link that cannot send any more; whether that frees any jobs.
    pub(super) fn abandon(&mut self, link: &mut Link) -> bool {
        let gone = if link.association.sa.is_none() { Reason::NoSa } else { Reason::NoPeer };
        self.counters.drops.count(gone, link.backlog.compressed_packets());
        let jobs = link.backlog.under_way.drain().filter_map(|(_, job)| job);
        jobs.map(|job| self.pool.put_back(job)).count() > 0
    }

    /// Learns from what a unit became; gives its block up where that must not leave any more.
    fn account(&mut self, job: &mut CompressJob, now: Time) {
        let Some(outcome) = job.work.outcome else { return };
        let Task { to, group: Group { domain, allowed, policy, .. }, .. } = job.work.task;
        let constant = policy.padding == Padding::Constant;
        if constant && self.pauses.is_paused(domain) {
            // It was under way when the pause began.
            job.work.give_up();
            return;
        }
        let CompressUnit { plain, cached, .. } = &job.work;
        if let Some(cached) = cached
            && (cached.copied > 0 || outcome.method.codec == Codec::None)
        {
            // What is left of copies says nothing of the flow's data.
            if let Some(rule) = self.rules.counters(first_rule(&plain.flows())) {
                rule.note_sizes(job.work.sizes());
                rule.before.add(plain.len() as u64);
                rule.after.add(job.work.block_len() as u64);
            }
            return;
        }
        let (flows, packets, padded) = (plain.flows(), plain.packets(), job.work.block_len());
        let tried = TrialResult { to, allowed, packets, outcome, padded, sizes: job.work.sizes() };
        self.learn(&tried, &flows, now);
        let Outcome { before, after, .. } = outcome;
        let alike =
            policy.pause && self.pauses.looks_like_guesses(domain, plain.bytes(), after.unwrap_or(before));
        if alike || constant && after.is_none() {
            self.pause(domain, first_rule(&flows));
        }
    }

    /// Tells the chooser and the counters how compressing packets of these flows went.
    pub(super) fn learn(&mut self, tried: &TrialResult, flows: &UnitFlows, now: Time) {
        let TrialResult { to, allowed, packets, outcome, padded, sizes } = *tried;
        let mut took = outcome.took;
        for Part { flow, rule, bytes } in flows.iter().flatten() {
            let unit = Unit { flow, to: to.0, rule: self.rule(*rule), allowed };
            // The time is one block's, so it counts once.
            let own = Outcome { of: *bytes, took: took.take(), ..outcome };
            self.chooser.learn(&unit, &own, now);
        }
        let rule = self.rules.counters(first_rule(flows));
        if let Some(rule) = rule {
            rule.note_sizes(sizes);
        }
        let Outcome { method, before, after, .. } = outcome;
        let Some(counters) = self.counters.codecs.get(usize::from(method.codec.id())) else { return };
        counters.tried.add(1);
        if after.is_none() {
            return;
        }
        counters.blocks.add(1);
        counters.packets.add(packets);
        counters.before.add(before as u64);
        counters.after.add(padded as u64);
        if let Some(rule) = rule {
            rule.before.add(before as u64);
            rule.after.add(padded as u64);
        }
    }
}

/// What a block of this group is to be compressed behind, which is put where it will be looked for.
fn plan(
    history: Option<&mut LinkHistory>,
    work: &mut CompressUnit,
    group: &Group,
    method: Method,
    now: Time,
) -> Option<BlockPlan> {
    let prefix = &mut work.history.prefix;
    let plan = history?.bulk.plan(stream_of(group)?, prefix, now)?;
    if method.codec == Codec::Zstd {
        return Some(plan);
    }
    prefix.clear();
    Some(plan.alone())
}

/// The place of the rule that covers the first flow of a unit; one that no rule has, where it has no flow.
fn first_rule(flows: &UnitFlows) -> usize {
    flows.first().copied().flatten().map_or(usize::MAX, |part| part.rule.into())
}

#[cfg(test)]
mod tests;
