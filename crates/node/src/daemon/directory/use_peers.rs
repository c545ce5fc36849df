//! What the process that follows a directory says, as it changes the node.

use std::collections::BTreeMap;

use ipnet::IpNet;
use strait_ipsec::ReturnPath;
use strait_keying::directory::Certificate;
use strait_keying::sessionless::EpochLength;
use strait_keying::{CarrierMode, PublicKey, RepairMode, Start};

use super::{Daemon, DirectoryPeers};
use crate::config::{DirectoryKeying, PeerKeys, PeerPayloads, PeerSection, SessionlessSection};

/// Waits until the process that follows a directory says something; for ever where there is none.
pub(in crate::daemon) async fn told(directory: Option<&mut DirectoryPeers>) {
    let Some(directory) = directory else { return std::future::pending().await };
    if directory.has_more {
        return;
    }
    let Some(events) = directory.events() else { return std::future::pending().await };
    if let Ok(mut ready) = events.readable().await {
        ready.clear_ready();
    }
}

impl Daemon {
    /// Takes news of the directory. If its process is gone, peers stay as they are.
    pub(in crate::daemon) fn hear_directory(&mut self) {
        let (own, now) = (self.own_key(), self.clock.now());
        let Some(directory) = &mut self.directory else { return };
        let roster = &self.roster;
        let packets = |peer: &PeerSection| {
            roster.counters(peer).map_or(0, |counters| counters.in_packets.get() + counters.out_packets.get())
        };
        match directory.hear(own, &packets, now) {
            Ok(false) => {}
            Ok(true) => self.use_directory(),
            Err(error) => {
                (directory.events, directory.has_ended, directory.has_more) = (None, true, false);
                tracing::error!("no directory is followed any more: {error}; its peers stay as they are");
            }
        }
        self.learn_daily_keys();
        self.end_look_ups();
        let Some(directory) = &mut self.directory else { return };
        if std::mem::take(&mut directory.is_newer) {
            self.control.forget_unknown();
        }
        if std::mem::take(&mut directory.is_pin_time) {
            self.look_up_pins();
        }
    }

    /// Makes peers of certificates, and takes away those that have none any more.
    fn use_directory(&mut self) {
        let own = self.own_key();
        let before = self.config.clone();
        // Those of the file have a line in it.
        self.config.peers.retain(|peer| peer.line > 0);
        if let Some(directory) = &mut self.directory {
            directory.add_to(&mut self.config, own);
        }
        let changes = self.change_peers(&before, BTreeMap::new(), crate::local::Changes::default());
        tracing::debug!("peers of the directory: {changes}");
        self.act();
        self.announce_policies();
        self.follow_saved();
        let at =
            self.config.peers.iter().filter(|peer| peer.line == 0).filter_map(|peer| peer.endpoint.as_ref());
        let loops = at.filter_map(|endpoint| match endpoint {
            crate::config::Endpoint::Address(address) => Some(*address),
            _ => None,
        });
        if loops.into_iter().any(|address| self.plan.would_loop(address))
            && let Err(error) = self.reroute(false)
        {
            tracing::error!("outer datagrams to a peer may be routed into the tunnel: {error}");
        }
    }

    /// Gives the key manager what was told of daily keys.
    fn learn_daily_keys(&mut self) {
        let now = self.clock.now();
        let Some(directory) = &mut self.directory else { return };
        for told in std::mem::take(&mut directory.learned) {
            match told {
                Ok(keys) => self.control.learn_daily_keys(keys, now),
                Err(node) => self.control.forget_daily_keys(&node),
            }
        }
        self.act();
    }

    /// The key of this node, if it has one.
    pub(in crate::daemon) fn own_key(&self) -> Option<PublicKey> {
        self.config.node.private_key_file.as_ref().map(|_| self.control.public())
    }
}

/// The peer that a certificate makes.
pub(super) fn peer_of(certificate: &Certificate, keying: DirectoryKeying) -> PeerSection {
    let terms = certificate.terms();
    PeerSection {
        name: terms.name.as_str().to_owned(),
        keys: PeerKeys::Session {
            public_key: *certificate.key(),
            payloads: PeerPayloads::Strait,
            repair: RepairMode::Auto,
            carrier: CarrierMode::Udp,
        },
        endpoint: terms.endpoint.as_ref().and_then(|endpoint| endpoint.parse().ok()),
        allowed_ips: terms.networks.clone(),
        keepalive: None,
        mtu: None,
        kerberos: None,
        broker: false,
        via: None,
        cap: None,
        sessionless: match keying {
            DirectoryKeying::Session => None,
            DirectoryKeying::Sessionless => Some(Box::new(SessionlessSection {
                path: ReturnPath::Answers,
                epoch: EpochLength::default(),
                pin: false,
                card: Some(certificate.card().clone()),
            })),
        },
        start: Start::Eager,
        line: 0,
    }
}

/// Of the networks of a certificate those that lie within the limits of the configuration, and that no peer has yet.
pub(super) fn usable(networks: &[IpNet], limits: &[IpNet], taken: &[IpNet]) -> Vec<IpNet> {
    let is_usable = |net: &&IpNet| limits.iter().any(|limit| limit.contains(*net)) && !taken.contains(net);
    networks.iter().filter(is_usable).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(text: &str) -> Vec<IpNet> {
        text.split_whitespace().map(|net| net.parse().unwrap()).collect()
    }

    #[test]
    fn a_certificate_gives_no_network_beyond_the_limits_and_none_that_a_peer_has() {
        let limits = nets("10.77.0.0/16 fd77::/48");
        for (claimed, taken, used) in [
            ("10.77.3.0/24 fd77:0:0:3::/64", "", "10.77.3.0/24 fd77:0:0:3::/64"),
            ("0.0.0.0/0 10.0.0.0/8 10.78.0.0/24 ::/0", "", ""),
            ("10.77.0.0/16 10.76.0.0/15", "", "10.77.0.0/16"),
            ("10.77.3.0/24 10.77.4.0/24", "10.77.3.0/24", "10.77.4.0/24"),
            ("10.77.3.1/32", "10.77.3.0/24", "10.77.3.1/32"),
        ] {
            assert_eq!(usable(&nets(claimed), &limits, &nets(taken)), nets(used), "{claimed} beside {taken}");
        }
    }
}
