//! Connections for streams: begun and admitted as handshakes are, then lent to those who drive streams.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use quinn_proto::{Connection, ConnectionEvent, ConnectionHandle, ServerConfig, TransportConfig};
use strait_ipsec::PeerId;

use crate::{PublicKey, Role};

/// How connections for streams are set up.
pub trait StreamTransport: core::fmt::Debug + Send + Sync {
    /// The transport parameters of a connection with a node at `remote`, asked for when it begins. Of one that begins elsewhere
    /// no key is proved yet, and the address may be forged.
    fn transport(&self, remote: SocketAddr) -> Arc<TransportConfig>;
}

/// A connection with a peer that proved its key.
#[derive(Debug)]
pub struct LentConnection {
    /// The peer.
    pub peer: PeerId,
    /// Its key.
    pub key: PublicKey,
    /// Which end this one is.
    pub role: Role,
    /// The number by which its events come and go.
    pub handle: ConnectionHandle,
    /// The address of this host that its datagrams leave with, once it is known.
    pub local: Option<IpAddr>,
    /// The connection.
    pub connection: Connection,
}

/// What there is for those who drive streams.
#[derive(Debug)]
pub enum LentEvent {
    /// A connection is established, and theirs from now on.
    Connected(Box<LentConnection>),
    /// Something for a connection of theirs.
    Event(ConnectionHandle, ConnectionEvent),
    /// A connection that this node began came to nothing, for this reason.
    Failed(PeerId, String),
    /// A process of the peer is in the place of another, as a handshake with it says: the other has lost its connections.
    Restarted(PeerId, SocketAddr),
    /// The process of the peer with this number is being stopped. [`Control::stopped`](crate::Control::stopped) is to be called when none of
    /// the peer goes on beside it.
    Stopped(PeerId, u32),
}

/// Events for those who drive streams that wait at most: what a peer may send in a burst; more are lost, as on a network.
const EVENTS: usize = 4096;

/// What all connections for streams of a node share.
pub(super) struct StreamService {
    /// Its transport is another for each connection.
    server: ServerConfig,
    /// Nothing where streams are not served.
    pub(super) transport: Option<Arc<dyn StreamTransport>>,
    pub(super) events: VecDeque<LentEvent>,
    /// Whether a connection was lent or came to its end.
    pub(super) changed: bool,
}

impl StreamService {
    pub(super) const fn new(server: ServerConfig) -> StreamService {
        StreamService { server, transport: None, events: VecDeque::new(), changed: false }
    }

    /// Forgets all connections, and takes others so from now on.
    pub(super) fn renew(&mut self, server: ServerConfig) {
        self.server = server;
        self.events.clear();
        self.changed = true;
    }

    /// The parameters of a connection that a node at `remote` begins, where streams are served.
    pub(super) fn server(&self, remote: SocketAddr) -> Option<Arc<ServerConfig>> {
        let transport = self.transport.as_ref()?.transport(remote);
        let mut config = self.server.clone();
        // Its end may roam: what a transfer has in flight is worth a path validation.
        config.transport_config(transport).migration(true);
        Some(Arc::new(config))
    }

    /// Tells of something, where streams are served and there is room; says whether that was so.
    pub(super) fn tell(&mut self, event: LentEvent) -> bool {
        let tells = self.transport.is_some() && self.events.len() < EVENTS;
        self.events.extend(tells.then_some(event));
        tells
    }

    /// Something for a lent connection.
    pub(super) fn hear(&mut self, handle: usize, event: ConnectionEvent) {
        if self.events.len() < EVENTS {
            self.events.push_back(LentEvent::Event(ConnectionHandle(handle), event));
        }
    }
}
