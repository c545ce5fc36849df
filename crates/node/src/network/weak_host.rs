//! No packet to the tunnel's addresses in the clear: a table of the packet filter, as wg-quick(8) makes one.
//!
//! Linux takes a packet for any of its addresses by whatever interface it comes in ("weak host", RFC 1122 section
//! 3.3.4.2). A neighbour on the LAN may so send to an inner address, with a peer's inner address as the source, and learn
//! from the answers what connections the tunnel carries (CVE-2019-14899). For each address the table has the rule
//!
//! ```text
//! ip daddr ADDRESS iifname != TUNNEL fib saddr type != local counter drop
//! ```

use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

use ipnet::IpNet;

use super::filter_table::FilterTable;
use crate::nftables::{
    self, NftAttributes, NftExpressions, NftHeader, NftMeta, NftVerb, Nftables, interface_name,
};

/// Before connection tracking (`NF_IP_PRI_RAW`).
const PRIORITY_RAW: i32 = -300;
/// `NFT_TABLE_F_OWNER` (Linux 5.12): only this connection changes the table, `nft flush ruleset` leaves it, and it
/// ends with the connection, however that ends. Without the tunnel its addresses are gone, and nothing is left to guard.
const OWNER: u32 = 2;
const CHAIN: &str = "prerouting";
/// `NF_INET_PRE_ROUTING`.
const HOOK: u32 = 0;

/// The table of one tunnel.
#[derive(Debug)]
pub(super) struct WeakHostTable {
    table: FilterTable,
    interface: String,
    addresses: BTreeSet<IpAddr>,
}

impl WeakHostTable {
    /// Connects to the packet filter; guards nothing yet. Where the kernel has none, the log says so.
    pub(super) fn open(interface: &str) -> Option<WeakHostTable> {
        let table = FilterTable::open(format!("strait-{interface}"), OWNER);
        let table = table.inspect_err(|error| warn(interface, error)).ok()?;
        Some(WeakHostTable { table, interface: interface.to_owned(), addresses: BTreeSet::new() })
    }

    /// Guards `addresses` and no others, if it does not yet; says whether the table was there.
    ///
    /// # Errors
    /// What the kernel said; what was guarded before is guarded still.
    pub(super) fn guard(&mut self, addresses: BTreeSet<IpAddr>) -> io::Result<bool> {
        let found = self.table.is_there();
        if found && addresses == self.addresses {
            return Ok(found);
        }
        self.table.make(&self.content(&addresses))?;
        self.addresses = addresses;
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
    fn content(&self, addresses: &BTreeSet<IpAddr>) -> Vec<(NftVerb, NftAttributes)> {
        let name = self.table.name();
        let mut all = vec![nftables::chain(name, CHAIN, HOOK, PRIORITY_RAW)];
        let rules = addresses.iter().map(|address| rule(*address, &self.interface));
        all.extend(rules.map(|expressions| nftables::rule(name, CHAIN, &expressions)));
        all
    }
}

impl Drop for WeakHostTable {
    fn drop(&mut self) {
        if !self.addresses.is_empty()
            && let Err(error) = self.table.remove()
        {
            tracing::debug!(%error, "could not remove the packet filter's table");
        }
    }
}

/// The expressions of the rule for one address.
fn rule(address: IpAddr, interface: &str) -> NftAttributes {
    let of_address = to(IpNet::from(address)).meta_differs(NftMeta::InterfaceIn, &interface_name(interface));
    // The result is an address type, by the source address.
    let fib = NftAttributes::new().number(1, 1).number(2, 3).number(3, 1);
    of_address.then("fib", &fib).differs(&u32::from(libc::RTN_LOCAL).to_ne_bytes()).drop()
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

/// Says that nothing is guarded, and what else there is.
pub(super) fn warn(interface: &str, error: &io::Error) {
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
