//! Handshakes that this node begins.

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_wire::Spi;

use super::peer::{ATTEMPT, Attempt, Step};
use super::{Control, Owner, PERSEVERANCE, Stage, UNKNOWN_APART};
use crate::agreement::Agreement;
use crate::channel::{CannotConnect, ChannelId, Closed, Code};
use crate::{Action, Event, Failure, Message, Role, Terms, Where};

/// How long after a packet waited in vain the next attempt is still made; the packet path says it again
/// every second while packets come.
const WAITING: Duration = Duration::from_secs(30);
/// The first pause after a failed attempt; it doubles with each (as the sixty-second cap, `WireGuard`'s
/// and IKE daemons' practice).
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long the peer's handshake, which went first, has before another is begun here.
const YIELD_PAUSE: Duration = Duration::from_secs(3);

impl Control {
    /// Somebody wants new associations with `id` for `span`.
    pub(super) fn want(&mut self, id: PeerId, span: Duration, now: Time) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.wanted_until = peer.wanted_until.max(Some(now + span));
            self.strive(id, now);
        }
    }

    /// Packets wait for an association.
    pub(super) fn packets_wait(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.endpoint.is_none() && !matches!(peer.config.place, Where::Name(_)) {
            if !core::mem::replace(&mut peer.lost, true) {
                self.log(Event::NoEndpoint { peer: id });
            }
            return;
        }
        self.want(id, WAITING, now);
    }

    /// The sequence numbers of the pair in use are used up.
    pub(super) fn exhausted(&mut self, id: PeerId, spi: Spi, now: Time) {
        let current = self.peers.get(&id).and_then(|peer| peer.pair.as_ref());
        if current.is_some_and(|pair| pair.outbound.spi == spi) {
            self.want(id, PERSEVERANCE, now);
        }
    }

    /// ESP came that no association here is for: its sender may be a peer that missed a restart.
    pub(super) fn unknown_spi(&mut self, from: SocketAddr, now: Time) {
        let Some(&id) = self.by_endpoint.get(&from) else { return };
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let apart = self.unknown_at.is_none_or(|at| at + UNKNOWN_APART <= now);
        if !apart || !peer.unknown.permits(now) || peer.attempt.is_some() {
            return;
        }
        peer.unknown.note(now);
        self.unknown_at = Some(now);
        self.want(id, ATTEMPT, now);
    }

    /// Begins an attempt if one is wanted, none is under way and the pause is over.
    pub(super) fn strive(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.lapse(now);
        if !peer.is_wanted(now) || peer.may_begin_at().is_none_or(|at| at > now) {
            return;
        }
        match (&peer.config.place, peer.endpoint) {
            (Where::Name(name), endpoint) if peer.look_up || endpoint.is_none() => {
                peer.attempt = Some(Attempt { since: now, step: Step::LookUp });
                let name = name.clone();
                self.actions.push_back(Action::Resolve(id, name));
            }
            (_, Some(last)) => {
                let to = peer.next_place(last);
                self.connect(id, to, now, now);
            }
            // It has to speak first.
            (_, None) => peer.wanted_until = None,
        }
    }

    /// The answer of the resolver.
    pub(super) fn looked_up(&mut self, id: PeerId, answer: Result<SocketAddr, String>, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Where::Name(name) = &peer.config.place else { return };
        let Some(Attempt { since, step: Step::LookUp }) = peer.attempt else { return };
        match answer {
            Ok(to) => {
                peer.look_up = false;
                self.move_to(id, to);
                self.connect(id, to, since, now);
            }
            Err(why) => {
                let (name, known) = (name.clone(), peer.endpoint);
                self.log(Event::Unresolved { peer: id, name, why });
                match known {
                    Some(to) => self.connect(id, to, since, now),
                    None => self.failed(id, Failure::Unresolved, now),
                }
            }
        }
    }

    fn connect(&mut self, id: PeerId, to: SocketAddr, since: Time, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        match self.channels.connect(to, peer.config.key, now) {
            Ok(channel) => {
                peer.attempt = Some(Attempt { since, step: Step::Shake(channel) });
                self.owners.insert(channel, Owner { peer: id, stage: Stage::Connecting });
                self.log(Event::HandshakeStarted { peer: id, to });
            }
            Err(CannotConnect::Address) => self.failed(id, Failure::BadAddress { to }, now),
            Err(CannotConnect::Tls(error)) => self.failed(id, Failure::Tls(error.to_string()), now),
        }
    }

    /// TLS is through on a channel begun here: the offer goes out with its last message.
    pub(super) fn offer(&mut self, id: ChannelId, now: Time) {
        let Some(owner) = self.owners.get(&id) else { return self.channels.close(id, Code::Internal, now) };
        let peer = owner.peer;
        let spi = self.fresh_spi(peer);
        let terms = Terms { spi, capabilities: self.offered_to(peer) };
        let offer = self.channels.send(id, &Message::Offer(terms));
        self.owners.insert(id, Owner { peer, stage: Stage::Offered { spi, offer } });
    }

    /// The responder accepted: both associations are installed and it is told.
    pub(super) fn accepted(&mut self, id: ChannelId, theirs: &Terms, accept: &[u8], now: Time) {
        let Some(Owner { peer, stage: Stage::Offered { spi, offer } }) = self.owners.remove(&id) else {
            return;
        };
        let Some(agreement) = Agreement::of(&self.offered_to(peer), &theirs.capabilities) else {
            return self.abandon(id, peer, Some(spi), Code::NoSuite, Failure::NoCommonSuite, now);
        };
        let context = [offer.as_slice(), accept].concat();
        let Some(made) = self.make(id, peer, Role::Initiator, &agreement, (spi, theirs.spi), &context, now)
        else {
            let why = Failure::Tls("no key material".to_owned());
            return self.abandon(id, peer, Some(spi), Code::Internal, why, now);
        };
        if let Some(peer) = self.peers.get_mut(&peer) {
            peer.attempt = None;
            peer.capabilities = Some(theirs.capabilities.clone());
        }
        self.follow(id, peer);
        self.install_inbound(made.inbound);
        self.use_pair(peer, made.pair, made.outbound, now);
        self.channels.send(id, &Message::Confirm);
        self.owners.insert(id, Owner { peer, stage: Stage::Confirming });
    }

    /// Everything arrived: the connection, and with it whatever could derive the keys again, goes.
    pub(super) fn delivered(&mut self, id: ChannelId, now: Time) {
        if matches!(self.owners.get(&id), Some(Owner { stage: Stage::Confirming, .. })) {
            self.owners.remove(&id);
            self.channels.close(id, Code::Done, now);
        }
    }

    /// A message was wrong, on a channel that either end began.
    pub(super) fn misbehaved(&mut self, id: ChannelId, why: Failure, now: Time) {
        match self.owners.remove(&id) {
            Some(Owner { peer, stage: Stage::Connecting }) => {
                self.abandon(id, peer, None, Code::Malformed, why, now);
            }
            Some(Owner { peer, stage: Stage::Offered { spi, .. } }) => {
                self.abandon(id, peer, Some(spi), Code::Malformed, why, now);
            }
            Some(Owner { peer, stage: Stage::Accepted { spi } }) => {
                self.drop_awaited(peer, spi);
                self.reject(id, peer, Code::Malformed, why, now);
            }
            Some(Owner { peer, .. }) => self.reject(id, peer, Code::Malformed, why, now),
            None => self.channels.close(id, Code::Malformed, now),
        }
    }

    fn abandon(
        &mut self,
        id: ChannelId,
        peer: PeerId,
        spi: Option<Spi>,
        code: Code,
        why: Failure,
        now: Time,
    ) {
        if let Some(spi) = spi {
            self.spis.remove(&spi);
        }
        self.channels.close(id, code, now);
        self.failed(peer, why, now);
    }

    /// The channel of an attempt ended before there was a pair.
    pub(super) fn attempt_over(&mut self, id: PeerId, closed: &Closed, now: Time) {
        let why = match closed {
            Closed::ByPeer(Code::Yield) => return self.yielded(id, now),
            Closed::ByPeer(Code::Stranger) | Closed::RefusedThere => {
                Failure::RefusedThere { key: self.public }
            }
            Closed::ByPeer(Code::NoSuite) => Failure::NoCommonSuite,
            Closed::ByPeer(code) => Failure::Closed(code.text().to_owned()),
            Closed::WrongKey => Failure::WrongKey,
            Closed::TimedOut => Failure::TimedOut,
            Closed::Broken(how) => Failure::Closed(how.clone()),
        };
        self.failed(id, why, now);
    }

    /// The peer's own handshake goes first; this one does not count.
    fn yielded(&mut self, id: PeerId, now: Time) {
        let pause = self.jitter(YIELD_PAUSE);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.attempt = None;
        peer.not_before = now + pause;
        self.log(Event::Yielded { peer: id });
    }

    /// Drops the attempt of this node in favour of the peer's.
    pub(super) fn yield_to(&mut self, id: PeerId, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let Some(attempt) = peer.attempt.take() else { return };
        if let Step::Shake(channel) = attempt.step {
            if let Some(Owner { stage: Stage::Offered { spi, .. }, .. }) = self.owners.remove(&channel) {
                self.spis.remove(&spi);
            }
            self.channels.close(channel, Code::Yield, now);
            self.log(Event::Yielded { peer: id });
        }
    }

    /// An attempt failed: the next waits longer, and asks anew where the peer is.
    fn failed(&mut self, id: PeerId, why: Failure, now: Time) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        peer.attempt = None;
        peer.look_up = true;
        peer.failures = peer.failures.saturating_add(1);
        let failures = peer.failures;
        let pause = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(6)).min(LONGEST_PAUSE);
        let retry = self.jitter(pause);
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.not_before = now + retry;
        }
        self.log(Event::Failed { peer: id, role: Role::Initiator, why, failures, retry: Some(retry) });
    }

    /// Ends the attempts that take too long.
    pub(super) fn give_up(&mut self, now: Time) {
        let late = self.peers.iter().filter_map(|(id, peer)| {
            let attempt = peer.attempt.filter(|attempt| attempt.since + ATTEMPT <= now)?;
            Some((*id, attempt.step))
        });
        for (id, step) in late.collect::<Vec<_>>() {
            match step {
                Step::LookUp => {
                    // A resolver that does not answer is no better than one that says no.
                    self.looked_up(id, Err("no answer in time".to_owned()), now);
                    self.restart_clock(id, now);
                }
                Step::Shake(channel) => {
                    if let Some(Owner { stage: Stage::Offered { spi, .. }, .. }) =
                        self.owners.remove(&channel)
                    {
                        self.spis.remove(&spi);
                    }
                    self.channels.close(channel, Code::GaveUp, now);
                    self.failed(id, Failure::TimedOut, now);
                }
            }
        }
    }

    /// A handshake that follows a fruitless look-up has its own time.
    fn restart_clock(&mut self, id: PeerId, now: Time) {
        if let Some(attempt) = self.peers.get_mut(&id).and_then(|peer| peer.attempt.as_mut()) {
            attempt.since = now;
        }
    }

    /// `span`, up to a quarter less or more.
    pub(super) fn jitter(&mut self, span: Duration) -> Duration {
        span.mul_f64(0.75 + 0.5 * self.random.unit())
    }
}
