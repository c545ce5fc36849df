//! Which peer an inner address belongs to: the longest prefix decides (RFC 4301 section 4.4.1).

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::{PrefixMap, PrefixSet};

use crate::PeerId;

/// Whether packets of one peer may go on to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// A hub: they may.
    Between,
    /// They are dropped.
    None,
}

/// The allowed addresses of all peers, to choose where a packet goes and to check where one may come from;
/// what peers may reach on this side: the node itself and the networks behind it that are named; and how large segments may be.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    v4: PrefixMap<Ipv4Net, PeerId>,
    v6: PrefixMap<Ipv6Net, PeerId>,
    named_v4: PrefixSet<Ipv4Net>,
    named_v6: PrefixSet<Ipv6Net>,
    sought: Vec<IpNet>,
    local: Vec<IpAddr>,
    clamp: Option<u16>,
}

impl Policies {
    /// Policies without a prefix: every packet is refused.
    #[must_use]
    pub fn new() -> Policies {
        Policies::default()
    }

    /// Policies of a node that names every network, as an exit does; without a peer's prefix.
    #[must_use]
    pub fn exit() -> Policies {
        let mut policies = Policies::new();
        policies.name_network(Ipv4Net::default().into());
        policies.name_network(Ipv6Net::default().into());
        policies
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

    /// Names a network behind this node, which all peers may reach, and which may reach them.
    pub fn name_network(&mut self, network: IpNet) {
        match network {
            IpNet::V4(net) => self.named_v4.insert(net.trunc()),
            IpNet::V6(net) => self.named_v6.insert(net.trunc()),
        };
    }

    /// SYNs that pass announce no larger segments than fit the tunnel, whose interface takes packets of `mtu` bytes.
    pub const fn clamp_mss(&mut self, mtu: u16) {
        self.clamp = Some(mtu);
    }

    /// The largest packet that the tunnel's interface takes, where that bounds the segments that SYNs announce.
    pub(crate) fn clamp(&self) -> Option<usize> {
        self.clamp.map(usize::from)
    }

    /// Peers with addresses in this network are looked up when they are needed.
    pub fn seek(&mut self, network: IpNet) {
        self.sought.push(network.trunc());
    }

    /// Whether the peer with this address, which none has, may be looked up.
    #[must_use]
    pub fn seeks(&self, address: IpAddr) -> bool {
        !self.is_local(address)
            && !address.is_multicast()
            && self.sought.iter().any(|network| network.contains(&address))
    }

    /// Whether this address is the node's own.
    #[must_use]
    pub fn is_local(&self, address: IpAddr) -> bool {
        self.local.contains(&address)
    }

    /// The node's own first address of the family of `like`.
    pub(crate) fn own(&self, like: IpAddr) -> Option<IpAddr> {
        self.local.iter().copied().find(|own| own.is_ipv4() == like.is_ipv4())
    }

    /// Takes everything from `peer`.
    pub fn remove(&mut self, peer: PeerId) {
        self.v4.retain(|_, owner| *owner != peer);
        self.v6.retain(|_, owner| *owner != peer);
    }

    /// Whether packets may pass between `peer` and `address` on this side of the tunnel: the node's own, one of a
    /// network that is named, or, at a hub, one of another peer's site.
    ///
    /// The longer of two prefixes decides whether an address is in a peer's site or in a named network. A default route
    /// (or half of one) names an exit, not a site: what it covers may as well be a host behind this node.
    #[must_use]
    pub fn may_meet(&self, peer: PeerId, address: IpAddr, forwarding: Forwarding) -> bool {
        // Hosts do not forward multicasts and broadcasts to all: these are for the node itself.
        if self.is_local(address) || address.is_multicast() || address == IpAddr::V4(Ipv4Addr::BROADCAST) {
            return true;
        }
        match self.site(address) {
            Some(site) => site != peer && forwarding == Forwarding::Between,
            // A peer that is not known yet is a site, too.
            None => self.named(address).is_some() || forwarding == Forwarding::Between && self.seeks(address),
        }
    }

    /// The peer whose site this address is in, unless it is in a named network.
    pub(crate) fn site(&self, address: IpAddr) -> Option<PeerId> {
        let (len, site) = self.longest_match(address).filter(|(len, _)| *len > 1)?;
        self.named(address).is_none_or(|named| named <= len).then_some(site)
    }

    /// The length of the longest named network that covers the address.
    fn named(&self, address: IpAddr) -> Option<u8> {
        match address {
            IpAddr::V4(address) => self.named_v4.get_lpm(&address.into()).map(|net| net.prefix_len()),
            IpAddr::V6(address) => self.named_v6.get_lpm(&address.into()).map(|net| net.prefix_len()),
        }
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
        policies.remove(PeerId(2));
        assert_eq!(policies.owner("10.2.3.4".parse().unwrap()), Some(PeerId(1)));
    }

    #[test]
    fn a_network_is_a_sites_or_named_by_the_longer_prefix() {
        let mut policies = Policies::new();
        policies.allow("0.0.0.0/0".parse().unwrap(), PeerId(1));
        policies.allow("10.0.0.0/8".parse().unwrap(), PeerId(2));
        policies.add_local("10.0.0.9".parse().unwrap());
        policies.name_network("10.1.0.0/16".parse().unwrap());
        policies.name_network("10.0.0.0/8".parse().unwrap());
        policies.name_network("fd01::/16".parse().unwrap());
        use Forwarding::{Between, None};
        for (peer, address, forwarding, expected) in [
            (3, "10.0.0.9", None, true),
            (3, "224.0.0.251", None, true),
            (3, "255.255.255.255", None, true),
            (3, "10.1.2.3", None, true),
            (2, "10.1.2.3", None, true),
            (3, "10.2.2.3", None, false),
            (3, "10.2.2.3", Between, true),
            (2, "10.2.2.3", Between, false),
            (3, "192.0.2.1", Between, false),
            (3, "fd01::7", None, true),
            (3, "fd02::7", Between, false),
        ] {
            let met = policies.may_meet(PeerId(peer), address.parse().unwrap(), forwarding);
            assert_eq!(met, expected, "{peer} {address} {forwarding:?}");
        }
    }
}
