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

use crate::nftables::{NftAttributes, NftVerb, Nftables};

/// Before connection tracking (`NF_IP_PRI_RAW`).
const PRIORITY_RAW: i32 = -300;
/// `NFT_TABLE_F_OWNER` (Linux 5.12): only this connection changes the table, `nft flush ruleset` leaves it, and it
/// ends with the connection, however that ends. Without the tunnel its addresses are gone, and nothing is left to guard.
const OWNER: u32 = 2;
const CHAIN: &str = "prerouting";
/// Length of an interface's name in a register (`IFNAMSIZ`).
const NAME_BYTES: usize = libc::IFNAMSIZ;

/// The table of one tunnel.
#[derive(Debug)]
pub(super) struct WeakHostTable {
    nftables: Nftables,
    interface: String,
    addresses: BTreeSet<IpAddr>,
    owned: bool,
}

impl WeakHostTable {
    /// Connects to the packet filter; guards nothing yet. Where the kernel has none, the log says so.
    pub(super) fn open(interface: &str) -> Option<WeakHostTable> {
        let nftables = Nftables::open().inspect_err(|error| warn(interface, error)).ok()?;
        let addresses = BTreeSet::new();
        Some(WeakHostTable { nftables, interface: interface.to_owned(), addresses, owned: true })
    }

    /// Guards `addresses` and no others, if it does not yet; says whether the table was there.
    ///
    /// # Errors
    /// What the kernel said; what was guarded before is guarded still.
    pub(super) fn guard(&mut self, addresses: BTreeSet<IpAddr>) -> io::Result<bool> {
        let found = self.is_there();
        if found && addresses == self.addresses {
            return Ok(found);
        }
        match self.nftables.change(&self.table(&addresses)) {
            // Older kernels know no owner; the same table without one can be flushed by others, and is put back.
            Err(error) if self.owned && !found && is_unknown(&error) => {
                self.owned = false;
                self.nftables.change(&self.table(&addresses))?;
            }
            other => other?,
        }
        self.addresses = addresses;
        Ok(found)
    }

    /// Whether others may remove it unseen.
    pub(super) const fn can_be_flushed(&self) -> bool {
        !self.owned
    }

    /// As on a kernel that knows no owner.
    #[cfg(test)]
    pub(super) const fn forget_owner(&mut self) {
        self.owned = false;
    }

    fn is_there(&mut self) -> bool {
        let name = NftAttributes::new().text(TABLE_NAME, &self.name());
        self.nftables.look(NftVerb::GetTable, &name).is_ok()
    }

    fn name(&self) -> String {
        format!("strait-{}", self.interface)
    }

    /// Everything of the table, in place of what there is of it.
    fn table(&self, addresses: &BTreeSet<IpAddr>) -> Vec<(NftVerb, NftAttributes)> {
        let name = self.name();
        let flags = if self.owned { OWNER } else { 0 };
        let table = || NftAttributes::new().text(TABLE_NAME, &name).number(TABLE_FLAGS, flags);
        // Made first so that there is one to remove.
        let mut all = vec![
            (NftVerb::NewTable, table()),
            (NftVerb::DelTable, NftAttributes::new().text(TABLE_NAME, &name)),
            (NftVerb::NewTable, table()),
        ];
        let hook = NftAttributes::new().number(1, 0).bytes(2, &PRIORITY_RAW.to_be_bytes());
        let chain = NftAttributes::new().text(1, &name).text(3, CHAIN).nested(4, &hook).text(7, "filter");
        all.push((NftVerb::NewChain, chain));
        for address in addresses {
            let expressions = rule(*address, &self.interface);
            let rule = NftAttributes::new().text(1, &name).text(2, CHAIN).nested(4, &expressions);
            all.push((NftVerb::NewRule, rule));
        }
        all
    }
}

impl Drop for WeakHostTable {
    fn drop(&mut self) {
        let name = NftAttributes::new().text(TABLE_NAME, &self.name());
        if !self.addresses.is_empty()
            && let Err(error) = self.nftables.change(&[(NftVerb::DelTable, name)])
        {
            tracing::debug!(%error, "could not remove the packet filter's table");
        }
    }
}

/// Attributes of tables: `NFTA_TABLE_NAME`, `NFTA_TABLE_FLAGS`.
const TABLE_NAME: u16 = 1;
const TABLE_FLAGS: u16 = 2;
/// The register that expressions hand values over in (`NFT_REG_1`).
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;

/// The expressions of the rule for one address.
fn rule(address: IpAddr, interface: &str) -> NftAttributes {
    /// `NFT_META_IIFNAME`, `NFT_META_NFPROTO`.
    const INTERFACE_NAME: u32 = 6;
    const PROTOCOL: u32 = 15;
    let mut name = [0; NAME_BYTES];
    name.iter_mut().zip(interface.bytes()).for_each(|(to, from)| *to = from);
    // Where the destination is in the header (RFC 791, RFC 8200).
    let (protocol, offset, bytes) = match address {
        IpAddr::V4(address) => (libc::NFPROTO_IPV4, 16, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::NFPROTO_IPV6, 24, address.octets().to_vec()),
    };
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let protocol = u8::try_from(protocol).unwrap_or(u8::MAX);
    let destination = NftAttributes::new().number(1, REGISTER).number(2, 1).number(3, offset).number(4, len);
    // The result is an address type, by the source address.
    let fib = NftAttributes::new().number(1, REGISTER).number(2, 3).number(3, 1);
    let verdict = NftAttributes::new().number(1, 0);
    let verdict = NftAttributes::new().nested(2, &verdict);
    let drop = NftAttributes::new().number(1, 0).nested(2, &verdict);
    [
        ("meta", meta(PROTOCOL)),
        ("cmp", compare(EQUAL, &[protocol])),
        ("payload", destination),
        ("cmp", compare(EQUAL, &bytes)),
        ("meta", meta(INTERFACE_NAME)),
        ("cmp", compare(NOT_EQUAL, &name)),
        ("fib", fib),
        ("cmp", compare(NOT_EQUAL, &u32::from(libc::RTN_LOCAL).to_ne_bytes())),
        ("counter", NftAttributes::new()),
        ("immediate", drop),
    ]
    .iter()
    .fold(NftAttributes::new(), |all, (name, data)| {
        all.nested(1, &NftAttributes::new().text(1, name).nested(2, data))
    })
}

fn meta(key: u32) -> NftAttributes {
    NftAttributes::new().number(1, REGISTER).number(2, key)
}

fn compare(operation: u32, with: &[u8]) -> NftAttributes {
    let value = NftAttributes::new().bytes(1, with);
    NftAttributes::new().number(1, REGISTER).number(2, operation).nested(3, &value)
}

/// A flag that this kernel does not know.
fn is_unknown(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
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
