//! Handshakes that a peer begins.

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_wire::Spi;

use super::pairs::Awaited;
use super::peer::Step;
use super::{Control, Owner, Stage};
use crate::agreement::Agreement;
use crate::channel::{ChannelId, Closed, Code};
use crate::{Event, Failure, Message, Refusal, Role, Terms};

impl Control {
    /// TLS is through on a channel begun elsewhere: the key says who it is.
    pub(super) fn identify(&mut self, id: ChannelId, now: Time) {
        let (Some(key), Some(from)) = (self.channels.peer_key(id), self.channels.remote(id)) else {
            return self.channels.close(id, Code::Internal, now);
        };
        // Its key was allowed when TLS looked; the peer may have been removed since.
        let Some(&peer) = self.by_key.get(&key) else {
            self.channels.close(id, Code::Stranger, now);
            return self.refused(from, Refusal::Stranger(key), now);
        };
        // One at a time: a peer that begins again has given up what it began before.
        let earlier: Vec<ChannelId> = self
            .owners
            .iter()
            .filter(|(_, owner)| {
                owner.peer == peer && matches!(owner.stage, Stage::Awaiting | Stage::Accepted { .. })
            })
            .map(|(channel, _)| *channel)
            .collect();
        for channel in earlier {
            self.owners.remove(&channel);
            self.channels.close(channel, Code::Superseded, now);
        }
        self.owners.insert(id, Owner { peer, stage: Stage::Awaiting });
    }

    /// The peer's offer: unless a handshake of our own goes first, it is accepted.
    pub(super) fn offered(&mut self, id: ChannelId, theirs: &Terms, offer: &[u8], now: Time) {
        let Some(Owner { peer, .. }) = self.owners.remove(&id) else { return };
        if self.goes_first(peer) {
            return self.channels.close(id, Code::Yield, now);
        }
        self.yield_to(peer, now);
        let mine = self.offered_to(peer);
        let Some(agreement) = Agreement::of(&mine, &theirs.capabilities) else {
            return self.reject(id, peer, Code::NoSuite, Failure::NoCommonSuite, now);
        };
        let spi = self.fresh_spi(peer);
        let accept = Message::Accept(Terms { spi, capabilities: mine });
        let context = [offer, accept.emit().as_slice()].concat();
        let Some(made) = self.make(id, peer, Role::Responder, &agreement, (spi, theirs.spi), &context, now)
        else {
            self.spis.remove(&spi);
            return self.reject(id, peer, Code::Internal, Failure::Tls("no key material".to_owned()), now);
        };
        self.follow(id, peer);
        self.install_inbound(made.inbound);
        let capabilities = theirs.capabilities.clone();
        self.await_confirmation(
            peer,
            Awaited { pair: made.pair, outbound: made.outbound, capabilities, made: now },
        );
        self.channels.send(id, &accept);
        self.owners.insert(id, Owner { peer, stage: Stage::Accepted { spi } });
    }

    /// Whether a handshake of this node with `peer` goes before the peer's own.
    ///
    /// When both begin at once, that of the smaller key goes on. It counts as begun when its offer is
    /// out: before that the peer cannot have decided for it, and might not even be reachable by it.
    fn goes_first(&self, id: PeerId) -> bool {
        let Some(peer) = self.peers.get(&id) else { return false };
        let Some(Step::Shake(channel)) = peer.attempt.map(|attempt| attempt.step) else { return false };
        let offered = matches!(self.owners.get(&channel), Some(Owner { stage: Stage::Offered { .. }, .. }));
        offered && self.public < peer.config.key
    }

    /// The peer is where its end of the handshake is.
    pub(super) fn follow(&mut self, id: ChannelId, peer: PeerId) {
        let Some(from) = self.channels.remote(id) else { return };
        let before = self.peers.get(&peer).and_then(|peer| peer.endpoint);
        self.move_to(peer, from);
        if before.is_some_and(|before| before != from) {
            self.log(Event::Moved { peer, to: from });
        }
    }

    /// Closes a channel that the peer began and says why; it is the peer who tries again.
    pub(super) fn reject(&mut self, id: ChannelId, peer: PeerId, code: Code, why: Failure, now: Time) {
        self.channels.close(id, code, now);
        self.answer_failed(peer, why);
    }

    /// The peer's handshake ended before its offer came.
    pub(super) fn answer_over(&mut self, peer: PeerId, closed: &Closed) {
        let why = match closed {
            // It decided for a handshake of ours, or for a newer one of its own.
            Closed::ByPeer(Code::Yield | Code::Superseded) => return,
            Closed::ByPeer(code) => Failure::Closed(code.text().to_owned()),
            Closed::TimedOut => Failure::TimedOut,
            Closed::Broken(how) => Failure::Closed(how.clone()),
            Closed::WrongKey | Closed::RefusedThere => Failure::RefusedThere { key: self.public },
        };
        self.answer_failed(peer, why);
    }

    /// The peer's handshake ended after it was accepted and before it was confirmed.
    pub(super) fn unconfirmed(&mut self, peer: PeerId, spi: Spi, closed: &Closed) {
        match closed {
            // Its initiator says that it does not use the pair.
            Closed::ByPeer(code) if *code != Code::Done => self.drop_awaited(peer, spi),
            // Nobody knows whether the initiator has it: its first packet will tell.
            _ => {}
        }
    }

    fn answer_failed(&mut self, id: PeerId, why: Failure) {
        let Some(peer) = self.peers.get(&id) else { return };
        let failures = peer.failures;
        self.log(Event::Failed { peer: id, role: Role::Responder, why, failures, retry: None });
    }
}
