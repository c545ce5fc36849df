//! Packet keys of this node towards its peers.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use strait_clock::Time;
use strait_ipsec::{HeaderChange, OutboundSa, PeerId, Place, Usage, outbound};
use strait_wire::Spi;
use strait_wire::sessionless::Acknowledgement;

use super::change::Change;
use super::{LOOK_EVERY, MarkOwner, SessionlessPeer, SessionlessPeers, daily};
use crate::control::context::ControlContext;
use crate::keystream::Keystream;
use crate::sessionless::{Acknowledged, CannotSend, Day, Now};
use crate::{Action, ControlEvent, SaDirection, Where};

/// A key in use is replaced so long before it ends; one that carried nothing for longer than that is not.
const AHEAD: Duration = Duration::from_secs(2);
/// After a key was begun, what the packet thread says may be of the time before it.
const SETTLING: Duration = Duration::from_secs(1);
/// Numbers that the packet thread may use while the key manager looks: far more than it seals in a moment.
const MEANWHILE: u64 = 10_000;
/// Answers that wait for a key: one of each kind, and some.
const ANSWERS: usize = 8;

/// What is sent to a peer, and with which key.
#[derive(Debug, Default)]
pub(super) struct OutboundState {
    pub(super) key: Option<KeyInUse>,
    /// The last number that may have been used under keys before.
    used: u64,
    /// Until when no daily keys are used, as the peer lacks one.
    pub(super) without_until: Option<Time>,
    /// Why no key could be begun, if one is wanted.
    pub(super) refused: Option<CannotSend>,
    /// What the peer is to be told under the next key.
    answers: VecDeque<(Acknowledgement, Option<Place>)>,
    /// True if the next key begins with a keepalive.
    keeps_alive: bool,
    /// How many keys were begun.
    pub(super) begun: u64,
}

/// A packet key of this node.
#[derive(Debug)]
pub(super) struct KeyInUse {
    pub(super) spi: Spi,
    first: u64,
    pub(super) usage: Arc<Usage>,
    pub(super) began: Time,
    pub(super) expires: Time,
    /// Whether the peer has acknowledged it.
    pub(super) bound: bool,
    /// The day whose keys are in its Kij.
    pub(super) day: Option<Day>,
}

impl KeyInUse {
    fn used(&self) -> u64 {
        self.first.saturating_add(self.usage.packets()).saturating_add(MEANWHILE)
    }
}

impl OutboundState {
    pub(super) fn is(&self, spi: Spi) -> bool {
        self.key.as_ref().is_some_and(|key| key.spi == spi)
    }

    pub(super) fn is_without(&self, now: Time) -> bool {
        self.without_until.is_some_and(|until| now < until)
    }

    pub(super) const fn waits_for_mark(&self) -> bool {
        matches!(self.refused, Some(CannotSend::NotPersisted { .. }))
    }

    fn used(&self) -> u64 {
        self.key.as_ref().map_or(0, KeyInUse::used).max(self.used)
    }

    pub(super) fn has_key(&self, now: Time) -> bool {
        self.key.as_ref().is_some_and(|key| key.expires > now)
    }
}

impl SessionlessPeers {
    /// Forgets the packet keys of this node, and begins others where packets go; all are made from `seed`.
    pub(crate) fn renew(&mut self, context: &mut ControlContext, seed: &[u8; 32], time: Time) {
        self.seeds = Keystream::new(seed, "sessionless peers");
        let mut begins = Vec::new();
        for (id, peer) in &mut self.peers {
            peer.sender.renew(&self.seeds.next_block());
            peer.out.used = peer.out.used();
            let key = peer.out.key.take();
            if let Change::FromSession { announced, prepared } = &mut peer.change {
                (*announced, *prepared) = (None, None);
            } else if let Some(key) = key {
                context.order_out(outbound::Order::Withdraw(*id, key.spi));
                begins.push(*id);
            }
        }
        let now = self.now(time);
        begins.into_iter().for_each(|id| self.begin(context, now, id));
        self.announce_all(context, now);
    }

    /// Packets wait for a key.
    pub(super) fn packets_wait(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(peer) = self.peers.get(&id) else { return };
        let settling = peer.out.key.as_ref().is_some_and(|key| key.began + SETTLING > now.time);
        if peer.config.spec.counters.endpoint.get().is_none() {
            match peer.config.place {
                Where::Unknown => context.log(ControlEvent::NoEndpoint { peer: id }),
                _ => self.place(context, id),
            }
        }
        if !settling {
            self.begin(context, now, id);
        }
    }

    /// Begins a key towards a peer, and sends what waits for one.
    pub(super) fn begin(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(sa) = self.make(context, now, id) else { return };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        context.order_out(outbound::Order::Install(Box::new(sa)));
        for (acknowledgement, elsewhere) in peer.out.answers.drain(..) {
            context.order_out(outbound::Order::Acknowledge(id, acknowledgement, elsewhere));
        }
        if core::mem::take(&mut peer.out.keeps_alive) {
            context.order_out(outbound::Order::Alive(id));
        }
        self.look_from(now.time);
    }

    /// Makes the association of a new key, if one may be sent now.
    pub(super) fn make(&mut self, context: &mut ControlContext, now: Now, id: PeerId) -> Option<OutboundSa> {
        let SessionlessPeers { own, mark, receiver, peers, .. } = self;
        let peer = peers.get_mut(&id)?;
        let used = peer.out.used();
        let secret = daily::secret(receiver, own, peer, now);
        let day = secret.as_ref().ok().and_then(|kij| kij.day());
        let begun = secret.and_then(|kij| peer.sender.begin(now, own, kij, mark, used));
        if let Some(mark) = mark.take_request() {
            context.actions.push_back(Action::PersistMark(MarkOwner::Own, mark));
        }
        match begun {
            Ok(key) => {
                context.export_key(SaDirection::Out, &key.association);
                let sa = OutboundSa::new(&key.association).new_within(key.reserve).until(key.expires);
                let sa = sa.headed(key.header, key.first);
                let (spi, first, usage) = (key.spi, key.first.0, sa.usage());
                peer.out.used = used;
                peer.out.key = Some(KeyInUse {
                    spi,
                    first,
                    usage,
                    began: now.time,
                    expires: key.expires,
                    bound: false,
                    day,
                });
                peer.out.begun += 1;
                if let Some(was) = peer.out.refused.take()
                    && !matches!(was, CannotSend::NotPersisted { .. })
                {
                    context.log(ControlEvent::SendsAgain { peer: id });
                }
                Some(sa)
            }
            Err(why) => {
                let same =
                    |before: CannotSend| core::mem::discriminant(&before) == core::mem::discriminant(&why);
                let said = peer.out.refused.replace(why).is_some_and(same);
                if !said && !matches!(why, CannotSend::NotPersisted { .. }) {
                    context.log(ControlEvent::CannotSend { peer: id, why });
                }
                None
            }
        }
    }

    /// Tells a peer something, under a key of this node's.
    pub(super) fn tell(
        &mut self,
        context: &mut ControlContext,
        now: Now,
        id: PeerId,
        acknowledgement: Acknowledgement,
        elsewhere: Option<Place>,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.change.has_session() || peer.out.has_key(now.time) {
            context.order_out(outbound::Order::Acknowledge(id, acknowledgement, elsewhere));
        } else {
            if peer.out.answers.len() >= ANSWERS {
                peer.out.answers.pop_front();
            }
            peer.out.answers.push_back((acknowledgement, elsewhere));
            self.begin(context, now, id);
        }
    }

    /// The peer said something of a header of this node's.
    pub(super) fn acknowledged(
        &mut self,
        context: &mut ControlContext,
        now: Now,
        id: PeerId,
        acknowledgement: Acknowledgement,
    ) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        match peer.sender.acknowledge(acknowledgement) {
            Acknowledged::Nothing => {}
            Acknowledged::Header(spi, change) => {
                let is_bound = change == HeaderChange::Bound;
                if let Some(key) = peer.out.key.as_mut().filter(|_| is_bound) {
                    key.bound = true;
                }
                if is_bound {
                    self.do_without(context, now, id);
                }
                context.order_out(outbound::Order::Header(id, spi, change));
            }
            Acknowledged::BeginAgain => self.begin(context, now, id),
            Acknowledged::NoDailyKey(_) => self.without_day(context, now, id),
        }
    }

    /// Looks at the keys in use: those that are due are replaced, and numbers reserved.
    pub(super) fn look(&mut self, context: &mut ControlContext, now: Now) {
        let soon = Now { time: now.time + AHEAD, ..now };
        let (mut due, mut silent) = (Vec::new(), Vec::new());
        for (id, peer) in &mut self.peers {
            peer.log_moves(context, *id, now.time);
            let sent = key_last(peer).unwrap_or(Time::ZERO).max(peer.kept_alive);
            if peer.config.keepalive.is_some_and(|silence| sent + silence <= now.time) && peer.heard {
                silent.push(*id);
            }
            let Some(key) = &peer.out.key else { continue };
            let (packets, bytes) = (key.usage.packets(), key.usage.bytes());
            let is_used = key.usage.last().is_some_and(|last| last + AHEAD > now.time);
            if is_used && !peer.change.has_session() && peer.sender.is_due(soon, packets, bytes) {
                due.push(*id);
            } else if key.expires <= now.time {
                peer.out.used = peer.out.used();
                peer.out.key = None;
            }
        }
        due.into_iter().for_each(|id| self.begin(context, now, id));
        silent.into_iter().for_each(|id| self.keep_alive(context, now, id));
        self.end_changes(context, now);
        self.raise_reserves(context);
        let any = |peer: &SessionlessPeer| {
            let changes = !matches!(peer.change, Change::Done);
            peer.out.key.is_some() || peer.config.keepalive.is_some() && peer.heard || changes
        };
        let any = self.peers.values().any(any) || !self.fading.is_empty();
        self.look_at = any.then(|| now.time + LOOK_EVERY);
    }

    /// Sends a NAT keepalive: an authentic one, which shows the peer where this node is, also behind a NAT that has forgotten it.
    fn keep_alive(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.kept_alive = now.time;
        if peer.change.has_session() || peer.out.key.is_some() {
            return context.order_out(outbound::Order::Alive(id));
        }
        // The mapping is kept also if there can be no key.
        context.order_out(outbound::Order::Keepalive(id));
        peer.out.keeps_alive = true;
        self.begin(context, now, id);
    }

    /// Lets keys in use have more numbers, as far as the mark on disk goes.
    pub(super) fn raise_reserves(&mut self, context: &mut ControlContext) {
        let SessionlessPeers { mark, peers, .. } = self;
        for peer in peers.values_mut() {
            if let Some(key) = &peer.out.key {
                // What is not on disk yet is asked for, and raised when it is.
                let _ = peer.sender.reserve(mark, key.used());
            }
        }
        if let Some(mark) = mark.take_request() {
            context.actions.push_back(Action::PersistMark(MarkOwner::Own, mark));
        }
    }
}

fn key_last(peer: &SessionlessPeer) -> Option<Time> {
    peer.out.key.as_ref().and_then(|key| key.usage.last())
}
