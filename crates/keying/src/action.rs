//! What the key manager orders.

use std::sync::Arc;

use strait_crypto::{KeyMaterial, Suite};
use strait_ipsec::{IvMode, PeerCounters, PeerId, inbound, outbound};
use strait_wire::Spi;
use strait_wire::sessionless::Name;

use crate::{ControlEvent, MarkOwner};

/// Something for the node to do, in the order it is polled.
#[derive(Debug)]
pub enum Action {
    /// Tell the sender.
    Out(outbound::Order),
    /// Tell the receiver.
    In(inbound::Order),
    /// Look up this `host:port` and answer with [`Control::resolved`](crate::Control::resolved).
    Resolve(PeerId, String),
    /// Look up the certificate of a node that is no peer, make it one if that is good, and answer with
    /// [`Control::looked_up`](crate::Control::looked_up); only after [`Control::look_up_strangers`](crate::Control::look_up_strangers).
    LookUp(Name),
    /// A node that the configuration does not list is there: it may open streams, until
    /// [`Control::remove_peer`](crate::Control::remove_peer).
    Unlisted(PeerId, Arc<PeerCounters>),
    /// Write this mark to disk, and say so with [`Control::mark_persisted`](crate::Control::mark_persisted).
    PersistMark(MarkOwner, u64),
    /// Log it.
    Log(ControlEvent),
    /// Write this key where an analyser reads it; only with
    /// [`KeyExport::Danger`](crate::KeyExport::Danger).
    DangerKey(Box<DangerKey>),
}

/// Which way an association leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaDirection {
    /// From the peer to here.
    In,
    /// From here to the peer.
    Out,
}

/// A key in readable form.
#[derive(Debug)]
pub struct DangerKey {
    /// Whose.
    pub peer: PeerId,
    /// Which way.
    pub direction: SaDirection,
    /// Of which association.
    pub spi: Spi,
    /// For which suite.
    pub suite: Suite,
    /// Where the IV is.
    pub iv: IvMode,
    /// Key and salt.
    pub material: KeyMaterial,
}
