//! Connections for the streams of peers: begun and admitted here, then driven by others.

use std::sync::Arc;

use quinn_proto::{ConnectionEvent, ConnectionHandle, EndpointEvent};
use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_wire::Spi;

use super::Control;
use crate::{LentEvent, StreamTransport};

impl Control {
    /// Peers may have connections for streams from now on, set up so; until then such connections are ignored.
    pub fn serve_streams(&mut self, transport: Arc<dyn StreamTransport>) {
        self.handshakes.channels.serve_streams(transport);
    }

    /// Begins a connection for streams with `peer`, where it was heard last or is looked for. What comes of it is said by
    /// [`Control::poll_lent`]. While there is no session with the peer, one is begun too, and the connection beside its handshake;
    /// where the peer has to be looked for first, this has to be asked again.
    pub fn connect_streams(&mut self, peer: PeerId, now: Time) {
        self.handshakes.want_session(&mut self.sessions, peer, now);
        self.handshakes.begin(&mut self.sessions, peer, now);
        self.handshakes.connect_streams(&mut self.sessions, peer, now);
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// Begins a handshake with a peer whose path is silent: it may be elsewhere.
    pub fn seek(&mut self, peer: PeerId, now: Time) {
        self.with_peer(peer, now, |peer, context| peer.packets_wait(now, context));
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// A process of a peer says that it is being stopped. Others of the peer may go on: those who drive streams know.
    pub(super) fn hear_goodbye(&mut self, id: PeerId, spi: Spi, now: Time) {
        let Some(peer) = self.sessions.peers.get(id) else { return };
        // One that has given the session to another is not missed.
        let process = peer.pairs.process(spi);
        let process =
            process.filter(|process| peer.pairs.in_use().is_some_and(|pair| pair.process == *process));
        if let Some(process) = process
            && !self.handshakes.channels.tell_streams(LentEvent::Stopped(id, process))
        {
            self.stopped(id, process, now);
        }
    }

    /// Takes the process of a peer with this number for ended ([`LentEvent::Stopped`]): none of the peer goes on beside it.
    pub fn stopped(&mut self, id: PeerId, process: u32, now: Time) {
        self.with_peer(id, now, |peer, context| peer.stopped(process, now, context));
        self.handshakes.pump(&mut self.sessions, now);
    }

    /// What there is for those who drive streams, to be polled until there is nothing after every other call.
    pub fn poll_lent(&mut self) -> Option<LentEvent> {
        self.handshakes.channels.next_lent()
    }

    /// What a lent connection has to say to its endpoint ([`quinn_proto::Connection::poll_endpoint_events`]); the answer is
    /// for the connection.
    pub fn lent_event(&mut self, handle: ConnectionHandle, event: EndpointEvent) -> Option<ConnectionEvent> {
        let answer = self.handshakes.channels.heard_from_lent(handle, event);
        self.handshakes.know_streams(&mut self.sessions);
        answer
    }
}
