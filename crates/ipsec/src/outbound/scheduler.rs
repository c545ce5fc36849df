//! Which link has its turn, and when the next has.

use std::collections::VecDeque;

use strait_clock::Time;

use super::departure::Departure;
use super::link::Link;
use super::queue::LinkQueue;
use crate::PeerId;

/// The round of links with something to send.
#[derive(Debug, Default)]
pub(super) struct LinkScheduler {
    round: VecDeque<PeerId>,
    /// Links with a delivery report that leaves alone, unless a datagram takes it along.
    reports: VecDeque<PeerId>,
}

impl LinkScheduler {
    /// Makes room for so many links.
    pub(super) fn reserve(&mut self, links: usize) {
        self.round.reserve(links);
        self.reports.reserve(links);
    }

    /// Links in the round.
    pub(super) fn len(&self) -> usize {
        self.round.len()
    }

    /// The links in the round, in turn.
    pub(super) fn links(&self) -> impl Iterator<Item = &PeerId> {
        self.round.iter()
    }

    /// Gives the link a place in the round, if it has something to send.
    pub(super) fn list(&mut self, link: &mut Link) {
        if !link.backlog.listed && !link.is_idle() {
            link.backlog.listed = true;
            self.round.push_back(link.spec.id);
        }
    }

    /// The links with a delivery report or receipts that are due at some time.
    pub(super) fn reports(&self) -> impl ExactSizeIterator<Item = &PeerId> {
        self.reports.iter()
    }

    /// Puts the link among them, if it has one.
    pub(super) fn list_report(&mut self, link: &mut Link) {
        if !link.reporting.listed && link.return_due(false).is_some() {
            link.reporting.listed = true;
            self.reports.push_back(link.spec.id);
        }
    }

    /// One of them, which is none of them any more.
    pub(super) fn next_report(&mut self) -> Option<PeerId> {
        self.reports.pop_front()
    }

    /// The link whose turn it is; it leaves the round.
    pub(super) fn next(&mut self) -> Option<PeerId> {
        self.round.pop_front()
    }

    /// The link had its turn.
    pub(super) fn had_turn(&mut self, link: &mut Link) {
        link.backlog.listed = false;
        self.list(link);
    }

    pub(super) fn remove(&mut self, peer: PeerId) {
        self.round.retain(|listed| *listed != peer);
        self.reports.retain(|listed| *listed != peer);
    }

    /// Whether a latency-sensitive unit passes what is sealed already; only ever one between two datagrams of that.
    pub(super) fn promotes(link: &mut Link, has_idle: bool) -> bool {
        let room = link.association.bundle_room();
        // What was begun ahead of its time is passed as what is sealed is.
        let free = has_idle && (link.backlog.under_way.is_empty() || !link.backlog.ahead().is_zero());
        let may = free && link.backlog.queue.as_ref().is_some_and(|queue| queue.may_promote(room));
        link.backlog.promoted = may && !link.backlog.promoted;
        link.backlog.promoted
    }

    /// When a link that can send has its next step to take; nothing where that is up to an engine.
    pub(super) fn step_at(link: &Link, departure: &Departure, has_idle: bool) -> Option<Time> {
        let backlog = &link.backlog;
        let has_made = backlog.has_ready() || backlog.under_way.is_done();
        let waits_for_an_engine = !has_made && (!backlog.under_way.is_empty() || !has_idle);
        let due = if has_made { None } else { backlog.queue.as_ref() };
        let due_at = due.map_or(Time::ZERO, LinkQueue::due_at);
        let repairs = link.repair.as_ref().and_then(|repair| repair.next_at(backlog.is_empty()));
        let waits = waits_for_an_engine || backlog.is_empty();
        let due_at = repairs.into_iter().chain((!waits).then_some(due_at)).min();
        let step = due_at.map(|due_at| departure.room_at(link).max(due_at));
        step.into_iter().chain(LinkScheduler::ahead_at(link, departure, has_idle)).min()
    }

    /// When the next unit is to be begun before the link has room for it, since compressing takes long; nothing where that is not so.
    pub(super) fn ahead_at(link: &Link, departure: &Departure, has_idle: bool) -> Option<Time> {
        let backlog = &link.backlog;
        if backlog.ahead().is_zero() || !has_idle || !backlog.has_queued() {
            return None;
        }
        let at = departure.room_behind_at(link, backlog.before_next(), backlog.ahead())?;
        Some(at.max(backlog.queue.as_ref().map_or(Time::ZERO, LinkQueue::due_at)))
    }
}
