//! No packet to the tunnel's addresses in the clear: a table of the packet filter, as wg-quick(8) makes one.
//!
//! Linux takes a packet for any of its addresses by whatever interface it comes in ("weak host", RFC 1122 section
//! 3.3.4.2). A neighbour on the LAN may so send to an inner address, with a peer's inner address as the source, and learn
//! from the answers what connections the tunnel carries (CVE-2019-14899). For each address the table has the rule
//!
//! ```text
//! ip daddr ADDRESS iif != TUNNEL fib saddr type != local counter drop
//! ```
//!
//! With a full tunnel, it has the rules of [`answers`] besides. The interface is known by its number: its name may change.

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;

use super::answers::{self, Answers};
use super::filter_table::FilterTable;
use super::{Network, request};
use crate::nftables::{
    self, NftAddress, NftAttributes, NftExpressions, NftHeader, NftMeta, NftVerb, Nftables,
};

/// Before connection tracking, and before the reverse path filters that other programs have at `NF_IP_PRI_RAW` (-300) and later;
/// behind the kernel's joining of fragments (`NF_IP_PRI_CONNTRACK_DEFRAG`, -400).
const PRIORITY: i32 = -310;
/// `NFT_TABLE_F_OWNER` (Linux 5.12): only this connection changes the table, `nft flush ruleset` leaves it, and it
/// ends with the connection, however that ends. Without the tunnel its addresses are gone, and nothing is left to guard.
const OWNER: u32 = 2;
const CHAIN: &str = "prerouting";
/// `NF_INET_PRE_ROUTING`.
const HOOK: u32 = 0;

/// The addresses and the port that the table is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Guarded {
    /// Addresses to which nothing comes but by the tunnel.
    pub(super) addresses: BTreeSet<IpAddr>,
    /// The datagrams that get a mark, where there is a full tunnel.
    pub(super) answers: Option<Answers>,
}

/// The table of one tunnel.
#[derive(Debug)]
pub(super) struct WeakHostTable {
    table: FilterTable,
    /// The number of the tunnel's interface.
    index: u32,
    /// Nothing until it is made.
    made: Option<Guarded>,
}

impl WeakHostTable {
    /// Connects to the packet filter; guards nothing yet.
    ///
    /// # Errors
    /// The kernel has no packet filter.
    pub(super) fn open(interface: &str, index: u32) -> io::Result<WeakHostTable> {
        let table = FilterTable::open(format!("strait-{interface}"), OWNER)?;
        Ok(WeakHostTable { table, index, made: None })
    }

    /// Guards this and nothing else, if it does not yet; says whether the table was there.
    ///
    /// # Errors
    /// What the kernel said; what was guarded before is guarded still.
    pub(super) fn guard(&mut self, guarded: Guarded) -> io::Result<bool> {
        let found = self.table.is_there();
        if found && self.made.as_ref() == Some(&guarded) {
            return Ok(found);
        }
        self.table.make(&self.content(&guarded))?;
        self.made = Some(guarded);
        Ok(found)
    }

    /// Whether others may remove it unseen.
    pub(super) const fn can_be_flushed(&self) -> bool {
        self.table.can_be_flushed()
    }

    /// As on a kernel that knows no owner.
    #[cfg(test)]
    pub(super) const fn forget_owner(&mut self) {
        self.table.forget_owner();
    }

    /// The table's chain and its rules.
    fn content(&self, guarded: &Guarded) -> Vec<(NftVerb, NftAttributes)> {
        let name = self.table.name();
        let mut all = vec![nftables::chain(name, CHAIN, HOOK, PRIORITY)];
        let addresses = guarded.addresses.iter().map(|address| rule(*address, self.index));
        let answers = guarded.answers.iter().flat_map(|answers| answers::rules(*answers, self.index));
        all.extend(addresses.chain(answers).map(|expressions| nftables::rule(name, CHAIN, &expressions)));
        all
    }
}

impl Drop for WeakHostTable {
    fn drop(&mut self) {
        if self.made.is_some()
            && let Err(error) = self.table.remove()
        {
            tracing::debug!(%error, "could not remove the packet filter's table");
        }
    }
}

impl Network {
    /// Lets reverse path filters take what comes to the node's UDP port, where there is a full tunnel.
    pub fn take_answers(&mut self, port: u16) {
        self.port = Some(port);
        self.guard();
    }

    /// Keeps packets in the clear from the tunnel's addresses, and marks what comes to the node's port where rules look at the mark;
    /// says whether it had to.
    pub(super) fn guard(&mut self) -> bool {
        let mark = self.rules.first().map(|rule| rule.mark);
        let answers = mark.zip(self.port).map(|(mark, port)| Answers { mark, port });
        let Some(table) = &mut self.weak_host else { return false };
        let guarded = request::on_other_interfaces(&mut self.netlink, self.index).and_then(|others| {
            let own = self.addresses.iter().map(IpNet::addr);
            let addresses = own.filter(|address| !others.contains(address)).collect();
            table.guard(Guarded { addresses, answers })
        });
        match guarded {
            Ok(was_there) => !was_there,
            Err(error) => {
                warn(&self.interface, mark.is_some(), &error);
                self.weak_host = None;
                false
            }
        }
    }
}

/// The expressions of the rule for one address.
fn rule(address: IpAddr, index: u32) -> NftAttributes {
    let of_address = to(IpNet::from(address)).meta_differs(NftMeta::InterfaceIn, &index.to_ne_bytes());
    of_address.foreign(NftAddress::Source).drop()
}

/// If the packet goes to `net`.
pub(super) fn to(net: IpNet) -> NftExpressions {
    // Where the destination is in the header (RFC 791, RFC 8200).
    let (family, offset, address, mask) = match net {
        IpNet::V4(net) => {
            (libc::NFPROTO_IPV4, 16, net.network().octets().to_vec(), net.netmask().octets().to_vec())
        }
        IpNet::V6(net) => {
            (libc::NFPROTO_IPV6, 24, net.network().octets().to_vec(), net.netmask().octets().to_vec())
        }
    };
    let rule = NftExpressions::new().family(family);
    match net.prefix_len() {
        0 => rule,
        len if len == net.max_prefix_len() => rule.bytes(NftHeader::Network, offset, &address),
        _ => rule.masked(NftHeader::Network, offset, &address, &mask),
    }
}

/// Says that nothing is guarded, and what else there is; `full` for a full tunnel, which a strict filter would cut off.
pub(super) fn warn(interface: &str, full: bool, error: &io::Error) {
    if full {
        return tracing::warn!(
            interface, %error,
            "no nftables: packets in the clear to the tunnel's addresses are not refused (CVE-2019-14899), and a strict \
             `rp_filter` (1) drops what peers of this full tunnel send; if nothing arrives, \
             `sysctl -w net.ipv4.conf.all.rp_filter=2`"
        );
    }
    tracing::warn!(
        interface, %error,
        "no nftables: packets in the clear to the tunnel's addresses are not refused (CVE-2019-14899); \
         `sysctl -w net.ipv4.conf.all.rp_filter=1` refuses a part of them"
    );
}

/// Why this host cannot guard the tunnel's addresses, if it cannot.
///
/// # Errors
/// What the kernel said: `PermissionDenied` without CAP_NET_ADMIN, anything else where it has no packet filter.
pub(super) fn is_possible() -> io::Result<()> {
    Nftables::open()?.look(NftVerb::GetGeneration, &NftAttributes::new())
}
