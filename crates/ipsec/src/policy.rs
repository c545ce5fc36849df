//! Which peer an inner address belongs to: the longest prefix decides (RFC 4301 section 4.4.1).

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use crate::PeerId;

/// Whether packets of one peer may go on to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// A hub: they may.
    Between,
    /// They are dropped.
    None,
}

/// The allowed addresses of all peers, both to choose where a packet goes and to check whence one
/// may come.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    v4: PrefixMap<Ipv4Net, PeerId>,
    v6: PrefixMap<Ipv6Net, PeerId>,
    local: Vec<IpAddr>,
}

impl Policies {
    /// Policies without a prefix: every packet is refused.
    #[must_use]
    pub fn new() -> Policies {
        Policies::default()
    }

    /// Gives `prefix` to `peer`, taking it from the peer that had exactly this prefix.
    pub fn allow(&mut self, prefix: IpNet, peer: PeerId) {
        match prefix {
            IpNet::V4(net) => self.v4.insert(net.trunc(), peer),
            IpNet::V6(net) => self.v6.insert(net.trunc(), peer),
        };
    }

    /// Marks this address as the node's own, even inside a peer's prefix.
    pub fn add_local(&mut self, address: IpAddr) {
        self.local.push(address);
    }

    /// Whether this address is the node's own.
    #[must_use]
    pub fn is_local(&self, address: IpAddr) -> bool {
        self.local.contains(&address)
    }

    /// Takes everything from `peer`.
    pub fn remove(&mut self, peer: PeerId) {
        self.v4.retain(|_, owner| *owner != peer);
        self.v6.retain(|_, owner| *owner != peer);
    }

    /// The peer whose site this address belongs to: a default route (or half of one) names an exit, not a
    /// site, so what it covers may as well be a host behind this node.
    #[must_use]
    pub fn site_of(&self, address: IpAddr) -> Option<PeerId> {
        let (prefix_len, peer) = self.longest_match(address)?;
        (prefix_len > 1 && !self.is_local(address)).then_some(peer)
    }

    /// The peer with the longest allowed prefix that covers this address.
    #[must_use]
    pub fn owner(&self, address: IpAddr) -> Option<PeerId> {
        self.longest_match(address).map(|(_, peer)| peer)
    }

    /// The longest prefix that covers the address, by its length, and whose it is.
    fn longest_match(&self, address: IpAddr) -> Option<(u8, PeerId)> {
        match address {
            IpAddr::V4(address) => {
                self.v4.get_lpm(&address.into()).map(|(net, peer)| (net.prefix_len(), *peer))
            }
            IpAddr::V6(address) => {
                self.v6.get_lpm(&address.into()).map(|(net, peer)| (net.prefix_len(), *peer))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides() {
        let mut policies = Policies::new();
        policies.allow("0.0.0.0/0".parse().unwrap(), PeerId(1));
        policies.allow("10.2.0.0/16".parse().unwrap(), PeerId(2));
        policies.allow("fd00::/8".parse().unwrap(), PeerId(3));
        let owner = |text: &str| policies.owner(text.parse().unwrap());
        assert_eq!(owner("10.2.3.4"), Some(PeerId(2)));
        assert_eq!(owner("10.3.3.4"), Some(PeerId(1)));
        assert_eq!(owner("fd01::1"), Some(PeerId(3)));
        assert_eq!(owner("2001:db8::1"), None);
        policies.add_local("10.2.0.1".parse().unwrap());
        let site = |text: &str| policies.site_of(text.parse().unwrap());
        assert_eq!(site("10.2.3.4"), Some(PeerId(2)));
        assert_eq!(site("10.2.0.1"), None, "the node's own");
        assert_eq!(site("10.3.3.4"), None, "only a default route covers it");
        assert_eq!(site("2001:db8::1"), None);
        policies.remove(PeerId(2));
        assert_eq!(policies.owner("10.2.3.4".parse().unwrap()), Some(PeerId(1)));
    }
}
