//! What operations do.

use strait_keying::{Start, Where};

use super::*;
use crate::NodeSettings;
use crate::operations::keys::operation::Knowledge;

impl KeyWorld {
    /// Does it, and sees whether what the key managers order adds up.
    pub(in crate::operations::keys) fn apply(&mut self, operation: KeyOperation) -> Held {
        match operation {
            KeyOperation::Advance(span) => self.advance(span),
            KeyOperation::Talk { node, peer, seconds } => {
                self.talk(&[(node, peer)], seconds.into()).map(|_| ())
            }
            KeyOperation::Packet { node, peer } => self.packet((node, peer)).map(|_| ()),
            KeyOperation::Weather { node, peer, weather } => {
                (self.weather[node][peer], self.weather[peer][node]) = (weather, weather);
                Ok(())
            }
            KeyOperation::Lose { node, peer, count } => {
                self.lose[node][peer] = count;
                Ok(())
            }
            KeyOperation::Restart(node) => self.restart(node),
            KeyOperation::Move(node) => {
                self.moves += 1;
                self.nodes[node].address.set_port(10_000 + self.moves);
                Ok(())
            }
            KeyOperation::Return(node) => {
                self.nodes[node].address = NodeId::of(node).outer_v4();
                Ok(())
            }
            KeyOperation::RemovePeer { node, peer } => {
                self.nodes[node].control.remove_peer(NodeId::of(peer).peer(), self.now);
                self.act(node)
            }
            KeyOperation::AddPeer { node, peer } => self.add_peer(node, peer),
            KeyOperation::Exhaust { node, peer, times } => {
                (0..times).try_for_each(|_| self.exhaust(node, peer))
            }
            KeyOperation::Forge { node, peer, form } => self.forge(node, peer, form),
            KeyOperation::Names(resolve) => {
                self.names_resolve = resolve;
                Ok(())
            }
        }
    }

    /// Packets flow both ways between these, one a second; how many could not leave.
    pub(super) fn talk(&mut self, pairs: &[(usize, usize)], seconds: u64) -> Result<u64, String> {
        let mut waited = 0;
        for _ in 0..seconds {
            for (node, peer) in pairs {
                waited += u64::from(!self.packet((*node, *peer))?);
                waited += u64::from(!self.packet((*peer, *node))?);
            }
            self.advance(Duration::from_secs(1))?;
        }
        Ok(waited)
    }

    fn restart(&mut self, node: usize) -> Held {
        let peers: Vec<usize> = self.nodes[node].peers.iter().copied().filter_map(NodeId::of_peer).collect();
        let fresh = self.fresh_node(node)?;
        let before = core::mem::replace(&mut self.nodes[node], fresh);
        self.nodes[node].address = before.address;
        self.nodes[node].established = before.established;
        peers.into_iter().try_for_each(|peer| self.add_peer(node, peer))
    }

    /// Tells a node of a peer, of which it may know.
    pub(super) fn add_peer(&mut self, node: usize, peer: usize) -> Held {
        let settings = NodeSettings::new(NodeId::of(peer));
        let place = match self.settings.knowledge(node, peer) {
            Knowledge::Address => Where::Address(settings.address),
            Knowledge::Name => Where::Name(format!("node-{peer}:51820")),
            Knowledge::Nothing => Where::Unknown,
        };
        let start = if self.settings.eager { Start::Eager } else { Start::OnTraffic };
        let mut config = settings.as_peer(place, start);
        config.keepalive = self.settings.keepalive.then_some(Duration::from_secs(25));
        self.nodes[node].control.add_peer(config, self.now);
        self.act(node)
    }

    fn exhaust(&mut self, node: usize, peer: usize) -> Held {
        let id = NodeId::of(peer).peer();
        let Some((spi, _)) = self.nodes[node].outbound.remove(&id) else { return Ok(()) };
        self.nodes[node].control.notice(Notice::Exhausted(id, spi), self.now);
        self.act(node)?;
        self.advance(Duration::from_secs(2))
    }

    /// What a stranger sends, who can write any source address.
    fn forge(&mut self, node: usize, peer: usize, form: u8) -> Held {
        let from = self.nodes[peer].address;
        let control = &mut self.nodes[node].control;
        match form & 1 {
            0 => control.notice(Notice::UnknownSpi(from.into(), Spi(u32::MAX - u32::from(form))), self.now),
            _ => {
                let mut bytes = [form; 1_200];
                bytes[0] |= 0xc0;
                bytes[1..5].copy_from_slice(&1_u32.to_be_bytes());
                control.datagram(from, Ecn::NotEct, &bytes, self.now);
            }
        }
        self.act(node)
    }
}
