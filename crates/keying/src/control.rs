//! The keeper of all sessions of one node.

use std::net::SocketAddr;

use strait_clock::{Deadline, Time};
use strait_ipsec::{Notice, PeerId};
use strait_wire::tos::Ecn;

use crate::{Action, PeerConfig, PeerStatus, Settings, SetupError};

/// The keeper of all sessions of one node.
#[derive(Debug)]
pub struct Control {}

impl Control {
    /// A keeper without peers.
    ///
    /// # Errors
    /// [`SetupError`] when the settings make no sense or TLS cannot be set up.
    pub fn new(settings: Settings, now: Time) -> Result<Control, SetupError> {
        let _ = (settings, now);
        Ok(Control {})
    }
    /// Adds a peer.
    pub fn add_peer(&mut self, config: PeerConfig, now: Time) {
        let _ = (self, config, now);
    }
    /// Changes what a peer was told, keeping its session where nothing forbids that.
    pub fn update_peer(&mut self, config: PeerConfig, now: Time) {
        let _ = (self, config, now);
    }
    /// Removes a peer: its associations go and its key is refused from now on.
    pub fn remove_peer(&mut self, peer: PeerId, now: Time) {
        let _ = (self, peer, now);
    }
    /// Takes a QUIC datagram from the network.
    pub fn datagram(&mut self, from: SocketAddr, ecn: Ecn, data: &[u8], now: Time) {
        let _ = (self, from, ecn, data, now);
    }
    /// Takes what the packet path noticed.
    pub fn notice(&mut self, notice: Notice, now: Time) {
        let _ = (self, notice, now);
    }
    /// Takes the answer to [`Action::Resolve`]; the error is what the resolver said.
    pub fn resolved(&mut self, peer: PeerId, answer: Result<SocketAddr, String>, now: Time) {
        let _ = (self, peer, answer, now);
    }
    /// Does what is due at `now`.
    pub fn timeout(&mut self, now: Time) {
        let _ = (self, now);
    }
    /// When [`Control::timeout`] wants to be called next.
    pub fn poll_timeout(&self) -> Option<Deadline> {
        let _ = (self, );
        None
    }
    /// What has to be done next, to be polled until there is nothing after every other call.
    pub fn poll_action(&mut self) -> Option<Action> {
        let _ = (self, );
        None
    }
    /// What can be shown of a peer.
    pub fn status(&self, peer: PeerId) -> Option<PeerStatus> {
        let _ = (self, peer);
        None
    }
}
