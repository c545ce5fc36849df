//! What the channels have to say, by how far each has come.

use core::time::Duration;
use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_wire::Spi;

use super::Control;
use crate::channel::{ChannelId, Closed, Code, Signal};
use crate::{Event, Failure, Message, Refusal, Role};

/// Least time between two lines about strangers, who decide how many there could be.
const REFUSALS_APART: Duration = Duration::from_secs(1);

/// Who a channel belongs to and how far it has come.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) peer: PeerId,
    pub(super) stage: Stage,
}

#[derive(Debug)]
pub(super) enum Stage {
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
}

impl Control {
    pub(super) fn signal(&mut self, id: ChannelId, signal: Signal, now: Time) {
        match (signal, self.channels.role(id)) {
            (Signal::Connected, Some(Role::Initiator)) => self.offer(id, now),
            (Signal::Connected, _) => self.identify(id, now),
            (Signal::Message(message, frame), _) => self.message(id, &message, &frame, now),
            (Signal::Garbled(error), _) => self.misbehaved(id, error.into(), now),
            (Signal::Delivered, _) => self.delivered(id, now),
            (Signal::Closed(closed), _) => self.closed(id, &closed, now),
        }
    }

    fn message(&mut self, id: ChannelId, message: &Message, frame: &[u8], now: Time) {
        let Some(owner) = self.owners.get(&id) else { return };
        match (message, &owner.stage) {
            (Message::Accept(terms), Stage::Offered { .. }) => self.accepted(id, terms, frame, now),
            (Message::Offer(terms), Stage::Awaiting) => self.offered(id, terms, frame, now),
            (Message::Confirm, Stage::Accepted { spi }) => {
                let (peer, spi) = (owner.peer, *spi);
                self.owners.remove(&id);
                self.channels.close(id, Code::Done, now);
                self.promote(peer, spi, now);
            }
            (got, stage) => {
                let why = Failure::OutOfTurn { got: got.name(), expected: stage.expects() };
                self.misbehaved(id, why, now);
            }
        }
    }

    /// The end of a channel, whoever began it.
    fn closed(&mut self, id: ChannelId, closed: &Closed, now: Time) {
        match self.owners.remove(&id) {
            None => self.turned_away(id, closed, now),
            Some(Owner { peer, stage: Stage::Connecting }) => self.attempt_over(peer, closed, now),
            Some(Owner { peer, stage: Stage::Offered { spi, .. } }) => {
                self.spis.remove(&spi);
                self.attempt_over(peer, closed, now);
            }
            Some(Owner { stage: Stage::Confirming, .. }) => {}
            Some(Owner { peer, stage: Stage::Awaiting }) => self.answer_over(peer, closed),
            Some(Owner { peer, stage: Stage::Accepted { spi } }) => self.unconfirmed(peer, spi, closed),
        }
    }

    /// Somebody who began a handshake did not become known.
    fn turned_away(&mut self, id: ChannelId, closed: &Closed, now: Time) {
        let stranger = self.allowed.take_stranger();
        let Some(from) = self.channels.remote(id) else { return };
        // Half a handshake that nobody finishes costs its sender nothing, so it is not worth a line.
        let why = match (stranger, closed) {
            (Some(key), _) => Refusal::Stranger(key),
            (None, Closed::TimedOut) => return,
            (None, _) => Refusal::Handshake,
        };
        self.refused(from, why, now);
    }

    pub(super) fn refused(&mut self, from: SocketAddr, why: Refusal, now: Time) {
        if self.refused_at.is_none_or(|at| at + REFUSALS_APART <= now) {
            self.refused_at = Some(now);
            self.log(Event::Refused { from, why });
        }
    }
}

impl Stage {
    const fn expects(&self) -> &'static str {
        match self {
            Stage::Connecting | Stage::Confirming => "nothing",
            Stage::Offered { .. } => "an accept",
            Stage::Awaiting => "an offer",
            Stage::Accepted { .. } => "a confirm",
        }
    }
}
