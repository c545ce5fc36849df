//! What holds once the network is good again.

use super::*;
use crate::operations::keys::operation::Knowledge;

/// How long handshakes may take to come through once the network is good: the longest pause between two attempts is
/// a minute, up to a quarter more, and an attempt takes up to ten seconds.
const RECOVERY: u64 = 240;
/// How long packets then flow without a gap.
const STEADY: u64 = 60;
/// When nothing is left of the pairs before one: they fade for a minute.
const FADED: Duration = Duration::from_secs(65);
/// How long both ends may take to agree after a rekeying began.
const AGREEMENT: u64 = 30;

impl KeyWorld {
    /// The network is good, each node is where others look, and packets flow: after some minutes all ends agree.
    pub(in crate::operations::keys) fn recover(&mut self) -> Held {
        (self.weather, self.lose) = ([[LinkWeather::FAIR; NODES]; NODES], [[0; NODES]; NODES]);
        self.names_resolve = true;
        // Names lead to where a node is; addresses in configurations to where it was at first.
        let named = [self.settings.forth, self.settings.back].contains(&Knowledge::Name);
        for node in (0..NODES).filter(|_| !named) {
            self.nodes[node].address = NodeId::of(node).outer_v4();
        }
        for (node, peer) in pairs() {
            if !self.nodes[node].peers.contains(&NodeId::of(peer).peer()) {
                self.add_peer(node, peer)?;
            }
        }
        let talking: Vec<_> = pairs().filter(|(node, peer)| node < peer).collect();
        self.talk(&talking, RECOVERY)?;
        let unknown = self.summary.unknown;
        let waited = self.talk(&talking, STEADY)?;
        let unknown = self.summary.unknown - unknown;
        hold(waited + unknown == 0, || {
            format!(
                "after {RECOVERY} s {waited} packets waited for keys, and {unknown} came for no association"
            )
        })?;
        self.agree(&talking)
    }

    /// Within some time, as rekeying may be under way, both ends believe the same.
    fn agree(&mut self, talking: &[(usize, usize)]) -> Held {
        let mut outcome = Ok(());
        for _ in 0..AGREEMENT {
            outcome = talking.iter().try_for_each(|(node, peer)| self.agreed(*node, *peer));
            if outcome.is_ok() {
                break;
            }
            self.talk(talking, 1)?;
        }
        outcome
    }

    /// Whether two nodes believe the same of the pair between them.
    fn agreed(&self, node: usize, peer: usize) -> Held {
        let pair = |node: usize, peer: usize| {
            let status = self.nodes[node].control.status(NodeId::of(peer).peer());
            status.and_then(|status| status.association).ok_or(format!("node {node} has no pair with {peer}"))
        };
        let (mine, theirs) = (pair(node, peer)?, pair(peer, node)?);
        hold((mine.outbound.spi, mine.inbound.spi) == (theirs.inbound.spi, theirs.outbound.spi), || {
            format!("nodes {node} and {peer} use different pairs: {mine:?}, {theirs:?}")
        })?;
        hold(mine.role != theirs.role, || format!("both of nodes {node} and {peer} began"))?;
        for (here, there, pair) in [(node, peer, &mine), (peer, node, &theirs)] {
            let inbound = self.nodes[here].inbound_of(NodeId::of(there).peer());
            hold(inbound == 1 || pair.established + FADED > self.now, || {
                format!("node {here} has {inbound} inbound associations of node {there}, long after the last")
            })?;
        }
        for (here, there, spi) in [(node, peer, mine.outbound.spi), (peer, node, mine.inbound.spi)] {
            let (sender, receiver) = (&self.nodes[here], &self.nodes[there]);
            let used = sender.outbound.get(&NodeId::of(there).peer()).map(|(spi, _)| *spi);
            hold(used == Some(spi), || format!("node {here} sends with {used:?}, not {spi}"))?;
            hold(receiver.inbound.contains_key(&spi), || format!("node {there} does not receive on {spi}"))?;
            let (out, back) = (sender.key_of(false, spi), receiver.key_of(true, spi));
            hold(out.is_some() && out == back, || format!("{spi} has two keys"))?;
        }
        Ok(())
    }
}
