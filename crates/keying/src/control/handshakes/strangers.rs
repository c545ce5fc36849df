//! Handshakes of nodes whose certificate is looked up: they wait for that, and then go on or are closed.
//!
//! Such a node has proved its key. What it can make this node do is a bounded look-up; it gets no keys before it is a peer.

use std::net::SocketAddr;

use strait_clock::Time;
use strait_ipsec::Source;
use strait_wire::sessionless::Name;

use super::super::sessions::Sessions;
use super::Handshakes;
use crate::channel::admission;
use crate::channel::{ChannelId, CloseCode};
use crate::sessionless::key_name;
use crate::{Action, Message, PublicKey, Refusal, SessionTerms};

/// Handshakes that wait: a quarter of those that may be under way, so that peers find room beside them.
const MOST: usize = admission::MOST / 4;
/// The same of one source.
const MOST_FROM_ONE: usize = admission::MOST_FROM_ONE / 2;

/// A node that proved its key, and its offer as it came.
#[derive(Debug)]
pub(super) struct WaitingStranger {
    key: PublicKey,
    offer: Option<(SessionTerms, Vec<u8>)>,
}

impl Handshakes {
    /// Keeps a handshake until the certificate of its key has been looked up, if there is room.
    pub(super) fn await_certificate(
        &mut self,
        sessions: &mut Sessions,
        id: ChannelId,
        (key, from): (PublicKey, SocketAddr),
        now: Time,
    ) {
        // One at a time: a node that begins again has given up what it began before.
        for (earlier, _) in self.strangers.extract_if(.., |_, stranger| stranger.key == key) {
            self.channels.close(earlier, CloseCode::Superseded, now);
        }
        let places = self.strangers.keys().filter_map(|id| self.channels.remote(*id));
        let near = places.filter(|place| Source::site(place.ip()) == Source::site(from.ip())).count();
        if self.strangers.len() >= MOST || near >= MOST_FROM_ONE {
            self.channels.close(id, CloseCode::Full, now);
            return self.refused(&mut sessions.context, from, Refusal::Full(key), now);
        }
        self.strangers.insert(id, WaitingStranger { key, offer: None });
        sessions.context.actions.push_back(Action::LookUp(key_name(&key)));
    }

    /// A message on a channel whose peer is not known: an offer waits with its handshake.
    pub(super) fn stranger_says(&mut self, id: ChannelId, message: &Message, frame: &[u8], now: Time) {
        let Some(stranger) = self.strangers.get_mut(&id) else { return };
        match message {
            Message::Offer(terms) if stranger.offer.is_none() => {
                stranger.offer = Some((terms.clone(), frame.to_vec()));
            }
            _ => {
                self.strangers.remove(&id);
                self.channels.close(id, CloseCode::Malformed, now);
            }
        }
    }

    /// The certificate of `name` has been looked up; if it was good, its node is a peer.
    pub(crate) fn certificate_answer(&mut self, sessions: &mut Sessions, name: Name, now: Time) {
        let over: Vec<_> =
            self.strangers.extract_if(.., |_, stranger| key_name(&stranger.key) == name).collect();
        for (id, WaitingStranger { key, offer }) in over {
            let Some(from) = self.channels.remote(id) else { continue };
            self.own(sessions, id, (key, from), now);
            if let Some((terms, frame)) = offer {
                self.offered(sessions, id, &terms, &frame, now);
            }
        }
    }
}
