//! Daily keys in the key manager: which Kij a packet key is wrapped with, and what changes when days or published keys do.

use core::time::Duration;

use strait_clock::Time;
use strait_ipsec::PeerId;

use super::{SessionlessPeer, SessionlessPeers};
use crate::control::context::ControlContext;
use crate::sessionless::{
    CannotSend, DailyKeys, DailyPolicy, DailyRing, DailySlotWrite, Day, Kij, NodeKeys, Now, Receiver,
    ReturnPath,
};
use crate::{ControlEvent, PublicKey};

/// How long a peer that lacks a key of the day is sent to without, before it is tried again: a directory tells it in seconds, and each
/// trial costs the packets of a round trip.
const WITHOUT: Duration = Duration::from_secs(300);

/// The Kij for a packet key that begins now.
pub(super) fn secret<'a>(
    receiver: &'a mut Receiver,
    own: &NodeKeys,
    peer: &SessionlessPeer,
    now: Now,
) -> Result<&'a Kij, CannotSend> {
    let key = &peer.config.key;
    let day = Day::of_epoch(peer.terms.epoch.at(now.wall), peer.terms.epoch);
    let day = day.filter(|day| own.daily.has(key, *day));
    let kij = match (own.daily.policy(), day) {
        (DailyPolicy::Off, _) | (DailyPolicy::Prefer, None) => receiver.secret(own, key),
        (DailyPolicy::Require, None) => return Err(CannotSend::NoDailyKey),
        (DailyPolicy::Require, Some(day)) => receiver.secret_of_day(own, key, day),
        // One that answers nothing could not say that it lacks a key.
        (DailyPolicy::Prefer, Some(_))
            if peer.terms.path == ReturnPath::OneWay || peer.out.is_without(now.time) =>
        {
            receiver.secret(own, key)
        }
        (DailyPolicy::Prefer, Some(day)) => receiver.secret_of_day(own, key, day),
    };
    kij.ok_or(CannotSend::BadPeerKey)
}

impl SessionlessPeers {
    /// The peer lacks a key of the day of a key of this node's.
    pub(super) fn without_day(&mut self, context: &mut ControlContext, now: Now, id: PeerId) {
        let policy = self.own.daily.policy();
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.out.is_without(now.time) {
            return;
        }
        peer.out.without_until = Some(now.time + WITHOUT);
        context.log(ControlEvent::PeerLacksDailyKey { peer: id, required: policy == DailyPolicy::Require });
        // Where they are required, packets go on with them: the peer takes them as soon as it can.
        if policy == DailyPolicy::Prefer {
            self.begin(context, now, id);
        }
    }

    /// Takes what a node published.
    pub(crate) fn learn_daily_keys(&mut self, context: &mut ControlContext, keys: DailyKeys, time: Time) {
        let node = *keys.node();
        if !self.own.daily.learn(keys) {
            return;
        }
        self.receiver.forget_days_of(&node);
        let now = self.now(time);
        let waits = |peer: &SessionlessPeer| {
            peer.config.key == node
                && peer.out.refused == Some(CannotSend::NoDailyKey)
                && !peer.change.has_session()
        };
        let waiting: Vec<PeerId> =
            self.peers.iter().filter(|(_, peer)| waits(peer)).map(|(id, _)| *id).collect();
        waiting.into_iter().for_each(|id| self.begin(context, now, id));
        self.take_events(context, now, None);
    }

    /// Forgets what a node published.
    pub(crate) fn forget_daily_keys(&mut self, node: &PublicKey) {
        if self.own.daily.forget(node) {
            self.receiver.forget_days_of(node);
        }
    }

    /// Wipes secrets of days that are over, and makes those of days to come; gives what is to be on disk before anything is published.
    /// `seed` is 32 bytes of the system's randomness that serve nothing else.
    pub(crate) fn roll_daily_keys(&mut self, seed: &[u8; 32], time: Time) -> Vec<DailySlotWrite> {
        if self.own.daily.policy() == DailyPolicy::Off {
            return Vec::new();
        }
        let wall = self.now(time).wall;
        let writes = self.own.daily.own.roll(wall.unix_seconds(), seed);
        if !writes.is_empty() {
            self.receiver.forget_days();
        }
        writes
    }

    /// What is to be published now.
    pub(crate) fn sign_daily_keys(&mut self, time: Time) -> Option<DailyKeys> {
        if self.own.daily.policy() == DailyPolicy::Off {
            return None;
        }
        let wall = self.now(time).wall;
        let NodeKeys { identity, daily, .. } = &mut self.own;
        Some(daily.own.sign(identity, wall.unix_micros()))
    }

    /// Daily keys, as they are.
    pub(crate) const fn daily(&self) -> &DailyRing {
        &self.own.daily
    }
}
