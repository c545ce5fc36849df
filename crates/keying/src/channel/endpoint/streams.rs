//! Connections for streams: how this node begins them, and how they are lent.

use std::sync::Arc;

use quinn_proto::{ConnectionEvent, ConnectionHandle, EndpointEvent};
use strait_clock::Time;
use strait_ipsec::{PeerId, Place};

use super::super::lent::{LentConnection, LentEvent, StreamTransport};
use super::super::transport::STREAMS_CID;
use super::super::{CannotConnect, Channel, ChannelId};
use super::Channels;
use crate::PublicKey;
use crate::tls::STREAMS;

impl Channels {
    /// Streams are served from now on, over connections that are set up so.
    pub(crate) fn serve_streams(&mut self, transport: Arc<dyn StreamTransport>) {
        self.streams.transport = Some(transport);
    }

    /// Begins a connection for streams with the node that has `key`, at `to`; nothing where streams are not served.
    pub(crate) fn connect_streams(
        &mut self,
        to: Place,
        key: PublicKey,
        now: Time,
    ) -> Option<Result<ChannelId, CannotConnect>> {
        let transport = self.streams.transport.as_ref()?.transport(to.remote);
        let connected = self.tls.client(key, STREAMS).map_err(CannotConnect::Tls);
        let connected =
            connected.and_then(|tls| self.connect_with(to, key, (tls, transport, STREAMS_CID), now));
        if let Ok(id) = connected {
            self.table.keep_for_streams(id);
        }
        Some(connected)
    }

    pub(crate) fn is_for_streams(&self, id: ChannelId) -> bool {
        self.table.is_for_streams(id)
    }

    /// Lends a channel's connection to those who drive streams of `peer`, who has `key`.
    pub(crate) fn lend(&mut self, id: ChannelId, peer: PeerId, key: PublicKey) {
        self.silence(id);
        let Some(channel) = self.table.lend(id) else { return };
        let Channel { role, handle, connection, local, .. } = channel;
        let lent = LentConnection { peer, key, role, handle, local, connection };
        self.streams.events.push_back(LentEvent::Connected(Box::new(lent)));
        self.streams.changed = true;
    }

    /// Tells those who drive streams; false if there are none, or too much waits for them.
    pub(crate) fn tell_streams(&mut self, event: LentEvent) -> bool {
        self.streams.tell(event)
    }

    /// A connection that this node began for streams with `peer` came to nothing.
    pub(crate) fn not_lent(&mut self, peer: PeerId, why: String) {
        self.streams.events.push_back(LentEvent::Failed(peer, why));
    }

    /// What there is for those who drive streams.
    pub(crate) fn next_lent(&mut self) -> Option<LentEvent> {
        self.streams.events.pop_front()
    }

    /// What a lent connection has to say to its endpoint, and the answer.
    pub(crate) fn heard_from_lent(
        &mut self,
        handle: ConnectionHandle,
        event: EndpointEvent,
    ) -> Option<ConnectionEvent> {
        if !self.table.is_lent(handle.0) {
            return None;
        }
        if event.is_drained() {
            self.table.forget_lent(handle.0);
            self.streams.changed = true;
        } else if let Some(mark) = self.table.mark(handle.0) {
            self.mark.set(mark);
        }
        self.endpoint.handle_event(handle, event)
    }

    /// What the ids of lent connections begin with, if they changed since this was asked.
    pub(crate) fn take_lent_marks(&mut self) -> Option<Vec<u32>> {
        core::mem::take(&mut self.streams.changed).then(|| self.table.lent_marks())
    }
}
