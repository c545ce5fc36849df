//! Handshakes: what the channels say, by who began each and how far it has come.
//!
//! ```text
//! begun here:   connect -> Connecting -> Offer -> Offered ... Accept -> install in, out -> Confirm -> Confirming
//! begun there:  Awaiting ... Offer -> which of two? -> install in -> Accept -> Accepted ... Confirm -> install out
//! ```
//!
//! begun there by a node whose certificate is looked up first: it waits before Awaiting                  handshakes/strangers.rs
//!
//! A first packet on the new association confirms as well as a Confirm does.

mod initiator;
mod race;
mod responder;
mod strangers;
mod streams;

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

use strait_clock::{Deadline, Time};
use strait_crypto::Suite;
use strait_ipsec::{PeerId, Source, inbound, outbound};
use strait_wire::Spi;

use super::context::ControlContext;
use super::sessions::Sessions;
use crate::agreement::PairKeys;
use crate::channel::{ChannelId, Channels, CloseCode, Closed, OutgoingDatagram, Signal};
use crate::{ControlEvent, HandshakeFailure, Message, Refusal, Role};
use strangers::WaitingStranger;

/// Least time between two lines about strangers, who decide how many there could be.
const REFUSALS_APART: Duration = Duration::from_secs(1);

/// All handshakes of a node.
#[derive(Debug)]
pub(crate) struct Handshakes {
    pub(crate) channels: Channels,
    /// Those whose peer is known.
    owners: BTreeMap<ChannelId, ChannelOwner>,
    /// Those whose peer is looked up.
    strangers: BTreeMap<ChannelId, WaitingStranger>,
    refused_at: Option<Time>,
}

/// Who a channel belongs to and how far it has come.
#[derive(Debug)]
struct ChannelOwner {
    peer: PeerId,
    stage: ChannelStage,
}

#[derive(Debug)]
enum ChannelStage {
    /// Begun here; TLS is not through.
    Connecting,
    /// Begun here; the offer with this SPI, as sent, awaits its answer.
    Offered { spi: Spi, offer: Vec<u8> },
    /// Begun here; done but for the last bytes on their way.
    Confirming,
    /// Begun there; its offer is awaited.
    Awaiting,
    /// Begun there; accepted with this SPI, its confirmation is awaited.
    Accepted { spi: Spi },
    /// Begun here for streams; TLS is not through.
    Streams,
}

impl Handshakes {
    pub(crate) const fn new(channels: Channels) -> Handshakes {
        Handshakes { channels, owners: BTreeMap::new(), strangers: BTreeMap::new(), refused_at: None }
    }

    /// Forgets all of them without a word to the peers; those to come are made from `seed`.
    pub(crate) fn renew(&mut self, context: &mut ControlContext, seed: &[u8; 32]) {
        self.channels.begin_anew(seed);
        for owner in core::mem::take(&mut self.owners).into_values() {
            if let ChannelStage::Offered { spi, .. } = owner.stage {
                context.spis.release(spi);
            }
        }
        self.strangers.clear();
    }

    /// Acts on every signal, then sends what came of it.
    pub(crate) fn pump(&mut self, sessions: &mut Sessions, now: Time) {
        loop {
            while let Some((id, signal)) = self.channels.next_signal() {
                self.signal(sessions, id, signal, now);
            }
            self.channels.flush(now);
            while let Some(OutgoingDatagram { to, via, bytes, strange }) = self.channels.next_transmit() {
                sessions.sent_to(to.remote, now);
                let order = if strange { outbound::Order::Answer } else { outbound::Order::Transmit };
                sessions.context.order_out(order(via, to, bytes));
            }
            if !self.channels.has_signals() {
                break;
            }
        }
        self.know_sources(sessions);
        self.know_streams(sessions);
    }

    /// Says where datagrams are expected from, if that has changed: from peers, and from those that began a handshake
    /// and have shown more than an address.
    fn know_sources(&mut self, sessions: &mut Sessions) {
        let moved = sessions.peers.take_moved();
        if moved {
            self.channels.know(sessions.peers.sources());
        }
        if self.channels.take_admitted() || moved {
            let mut sources: Vec<Source> = sessions.peers.sources().chain(self.channels.guests()).collect();
            sources.sort_unstable();
            sources.dedup();
            sessions.context.order_in(inbound::Order::Known(sources.into()));
        }
    }

    /// Closes the channels of a peer, and says why.
    pub(crate) fn close_all(&mut self, peer: PeerId, why: CloseCode, now: Time) {
        for (channel, _) in self.owners.extract_if(.., |_, owner| owner.peer == peer) {
            self.channels.close(channel, why, now);
        }
    }

    /// When a channel wants time.
    pub(crate) fn poll_timeout(&self) -> Option<Deadline> {
        self.channels.poll_timeout()
    }

    fn signal(&mut self, sessions: &mut Sessions, id: ChannelId, signal: Signal, now: Time) {
        match (signal, self.channels.role(id)) {
            (Signal::Connected, role) if self.channels.is_for_streams(id) => {
                self.lend(sessions, id, role, now);
            }
            (Signal::Connected, Some(Role::Initiator)) => self.offer(sessions, id, now),
            (Signal::Connected, _) => self.identify(sessions, id, now),
            (Signal::Message(message, frame), _) => self.message(sessions, id, &message, &frame, now),
            (Signal::Malformed(error), _) => self.misbehaved(sessions, id, error.into(), now),
            (Signal::Delivered, _) => self.delivered(id, now),
            (Signal::Closed(closed), _) => self.closed(sessions, id, &closed, now),
        }
    }

    fn message(
        &mut self,
        sessions: &mut Sessions,
        id: ChannelId,
        message: &Message,
        frame: &[u8],
        now: Time,
    ) {
        let Some(owner) = self.owners.get(&id) else { return self.stranger_says(id, message, frame, now) };
        match (message, &owner.stage) {
            (Message::Accept(terms), ChannelStage::Offered { .. }) => {
                self.accepted(sessions, id, terms, frame, now);
            }
            (Message::Offer(terms), ChannelStage::Awaiting) => self.offered(sessions, id, terms, frame, now),
            (Message::Confirm, ChannelStage::Accepted { spi }) => {
                let (peer, spi) = (owner.peer, *spi);
                self.owners.remove(&id);
                self.channels.close(id, CloseCode::Done, now);
                self.confirmed(sessions, peer, spi, now);
            }
            (got, stage) => {
                let why = HandshakeFailure::OutOfTurn { got: got.name(), expected: stage.expects() };
                self.misbehaved(sessions, id, why, now);
            }
        }
    }

    /// A message was wrong, on a channel that either end began.
    fn misbehaved(&mut self, sessions: &mut Sessions, id: ChannelId, why: HandshakeFailure, now: Time) {
        self.channels.close(id, CloseCode::Malformed, now);
        self.strangers.remove(&id);
        let Some(ChannelOwner { peer: number, stage }) = self.owners.remove(&id) else { return };
        let Some((peer, context)) = sessions.with(number) else { return };
        match stage {
            ChannelStage::Connecting => self.lost(sessions, number, id, why, now),
            ChannelStage::Offered { spi, .. } => {
                context.spis.release(spi);
                self.lost(sessions, number, id, why, now);
            }
            ChannelStage::Accepted { spi } => {
                peer.pairs.reject(spi, context);
                peer.answer_failed(why, context);
            }
            ChannelStage::Confirming | ChannelStage::Awaiting => peer.answer_failed(why, context),
            ChannelStage::Streams => {}
        }
    }

    /// The end of a channel that either end began.
    fn closed(&mut self, sessions: &mut Sessions, id: ChannelId, closed: &Closed, now: Time) {
        if self.strangers.remove(&id).is_some() {
            return;
        }
        let Some(ChannelOwner { peer: number, stage }) = self.owners.remove(&id) else {
            return self.turned_away(sessions, id, closed, now);
        };
        if let ChannelStage::Streams = stage {
            return self.channels.not_lent(number, closed.text());
        }
        let Some((peer, context)) = sessions.with(number) else { return };
        match stage {
            ChannelStage::Connecting => self.attempt_over(sessions, number, id, closed, now),
            ChannelStage::Offered { spi, .. } => {
                context.spis.release(spi);
                self.attempt_over(sessions, number, id, closed, now);
            }
            ChannelStage::Confirming | ChannelStage::Streams => {}
            ChannelStage::Awaiting => responder::answer_over(peer, closed, context),
            ChannelStage::Accepted { spi } => responder::unconfirmed(peer, spi, closed, context),
        }
    }

    /// A handshake from elsewhere ended before its peer was known.
    fn turned_away(&mut self, sessions: &mut Sessions, id: ChannelId, closed: &Closed, now: Time) {
        let stranger = sessions.peers.take_stranger();
        let Some(from) = self.channels.remote(id) else { return };
        // Half a handshake that is never finished costs its sender nothing, so it is not worth a line. When
        // both begin at once, one end closes its own handshake.
        let why = match (stranger, closed) {
            (Some(key), _) => Refusal::Stranger(key),
            (None, Closed::TimedOut | Closed::GivenUp) => return,
            (None, _) => Refusal::Handshake,
        };
        self.refused(&mut sessions.context, from, why, now);
    }

    fn refused(&mut self, context: &mut ControlContext, from: SocketAddr, why: Refusal, now: Time) {
        if self.refused_at.is_none_or(|at| at + REFUSALS_APART <= now) {
            self.refused_at = Some(now);
            context.log(ControlEvent::Refused { from, why });
        }
    }

    /// The two keys of a pair, from the channel's one export, bound to its `transcript`: the offer and the accept.
    fn keys(&mut self, id: ChannelId, suite: Suite, transcript: &[u8]) -> Option<PairKeys> {
        let exported = self.channels.export(id, transcript).ok()?;
        PairKeys::cut(suite, &exported).ok()
    }
}

impl ChannelStage {
    const fn expects(&self) -> &'static str {
        match self {
            ChannelStage::Connecting | ChannelStage::Confirming | ChannelStage::Streams => "nothing",
            ChannelStage::Offered { .. } => "an accept",
            ChannelStage::Awaiting => "an offer",
            ChannelStage::Accepted { .. } => "a confirm",
        }
    }
}
