//! Lockdown: a table of the packet filter that drops what would leave beside the tunnel, whatever routes say.
//!
//! Another program, or a DHCP server, may make routes that are more specific than the tunnel's (TunnelVision,
//! CVE-2024-3661), or give the host an address in a network of others (TunnelCrack, CVE-2023-36672). The table lets out
//!
//! - what leaves by the tunnel's interface or the loopback,
//! - the tunnel's own datagrams, which bear its mark (a process needs CAP_NET_ADMIN or CAP_NET_RAW to set one),
//! - what goes to a network that is allowed outside,
//! - what the outer interface needs to have an address and neighbours: see [`necessities`].
//!
//! What the host forwards passes if it comes from the tunnel or goes into it, or to such a network. Everything else is
//! counted and dropped. The table outlives the daemon. What is dropped here asks for no neighbour (ARP, neighbour
//! solicitations), since that comes later.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use ipnet::IpNet;

use super::filter_table::FilterTable;
use super::weak_host::to;
use super::{Network, NetworkError, Plan, report};
use crate::background::wait_for;
use crate::nftables::{self, NftAttributes, NftExpressions, NftHeader, NftMeta, NftVerb};

/// `NFT_TABLE_F_OWNER` and `NFT_TABLE_F_PERSIST` (Linux 6.9): only the daemon changes the table, `nft flush ruleset` leaves
/// it, and when the daemon is gone it stays, until the next one takes it over or it is removed by hand.
const OWNED_AND_LASTING: u32 = 2 | 4;
/// `NF_INET_FORWARD` and `NF_INET_LOCAL_OUT`.
const HOOKS: [(&str, u32); 2] = [("forward", 2), ("output", 3)];
const OUTPUT: &str = "output";
/// As long as the command that ends a daemon waits for its end.
const OWNER_ENDS: Duration = Duration::from_secs(10);
/// `NF_IP_PRI_FILTER`: behind programs that set marks.
const PRIORITY: i32 = 0;
/// The number of `lo` (Linux `LOOPBACK_IFINDEX`).
pub(super) const LOOPBACK: u32 = 1;

/// The table of one tunnel.
#[derive(Debug)]
pub(super) struct LockdownTable {
    table: FilterTable,
    /// The number of the tunnel's interface: its name may change.
    index: u32,
    /// What the table lets out, once it is made: the mark, and networks.
    lets_out: Option<(u32, BTreeSet<IpNet>)>,
}

impl LockdownTable {
    /// Connects to the packet filter; drops nothing yet.
    ///
    /// # Errors
    /// Where the kernel has no packet filter.
    pub(super) fn open(interface: &str, index: u32) -> io::Result<LockdownTable> {
        let table = FilterTable::open(name(interface), OWNED_AND_LASTING)?;
        Ok(LockdownTable { table, index, lets_out: None })
    }

    /// Lets out packets with `mark` and those to `outside`, and drops all others, if it does not yet; says whether the table
    /// was there.
    ///
    /// # Errors
    /// What the kernel said; what was dropped before is dropped still.
    pub(super) fn close(&mut self, mark: u32, outside: &BTreeSet<IpNet>) -> io::Result<bool> {
        let found = self.table.is_there();
        let wanted = Some((mark, outside.clone()));
        if found && wanted == self.lets_out {
            return Ok(found);
        }
        // The same table without an owner lasts, too.
        self.table.make(&self.content(mark, outside))?;
        self.lets_out = wanted;
        Ok(found)
    }

    /// Whether the table is made.
    pub(super) const fn is_made(&self) -> bool {
        self.lets_out.is_some()
    }

    /// Whether others may remove it unseen.
    pub(super) const fn can_be_flushed(&self) -> bool {
        self.lets_out.is_some() && self.table.can_be_flushed()
    }

    /// As on a kernel that knows no owner.
    #[cfg(test)]
    pub(super) const fn forget_owner(&mut self) {
        self.table.forget_owner();
    }

    /// Removes the table, if there is one.
    ///
    /// # Errors
    /// What the kernel said.
    pub(super) fn open_up(&mut self) -> io::Result<()> {
        self.lets_out = None;
        if self.table.is_there() { self.table.remove() } else { Ok(()) }
    }

    /// Removes the table of a daemon that is gone; says whether there was one.
    pub(super) fn remove(interface: &str) -> bool {
        let Ok(mut table) = FilterTable::open(name(interface), OWNED_AND_LASTING) else { return false };
        if !table.is_there() {
            return false;
        }
        // A process of a daemon that was killed owns it until that has ended, too.
        let mut removed = Ok(());
        wait_for(OWNER_ENDS, || {
            removed = table.remove();
            !removed.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
        });
        if let Err(error) = &removed {
            tracing::warn!(%error, table = table.name(), "could not remove a table of the packet filter");
        }
        removed.is_ok()
    }

    /// The table's chains and their rules.
    fn content(&self, mark: u32, outside: &BTreeSet<IpNet>) -> Vec<(NftVerb, NftAttributes)> {
        let (name, mut all) = (self.table.name(), Vec::new());
        let tunnel = self.index.to_ne_bytes();
        let new = NftExpressions::new;
        for (chain, hook) in HOOKS {
            let mut rules = vec![new().meta(NftMeta::InterfaceOut, &tunnel).accept()];
            if chain == OUTPUT {
                rules.push(new().meta(NftMeta::InterfaceOut, &LOOPBACK.to_ne_bytes()).accept());
                rules.push(new().meta(NftMeta::Mark, &mark.to_ne_bytes()).accept());
                rules.extend(necessities());
            } else {
                // What peers may reach here is decided where their packets are received.
                rules.push(new().meta(NftMeta::InterfaceIn, &tunnel).accept());
            }
            rules.extend(outside.iter().map(|net| to(*net).accept()));
            rules.push(new().drop());
            all.push(nftables::chain(name, chain, hook, PRIORITY));
            all.extend(rules.iter().map(|expressions| nftables::rule(name, chain, expressions)));
        }
        all
    }
}

impl Network {
    /// Drops what would leave beside the tunnel, if `plan` wants it; says whether that had to be put back.
    pub(super) fn lock_down(&mut self, plan: &Plan) -> Result<bool, NetworkError> {
        let Some(mark) = plan.mark.filter(|_| plan.lockdown) else { return Ok(false) };
        let was_made = self.lockdown.as_ref().is_some_and(LockdownTable::is_made);
        match self.close_all(mark, &plan.outside) {
            Ok(was_there) => Ok(was_made && !was_there),
            Err(error) if !plan.rules.is_empty() => {
                warn(&self.interface, &error);
                Ok(false)
            }
            Err(source) => Err(NetworkError::Lockdown(source)),
        }
    }

    fn close_all(&mut self, mark: u32, outside: &BTreeSet<IpNet>) -> io::Result<bool> {
        let table = match &mut self.lockdown {
            Some(table) => table,
            none => none.insert(LockdownTable::open(&self.interface, self.index)?),
        };
        table.close(mark, outside)
    }

    pub(super) fn open_up(&mut self) {
        if let Some(mut table) = self.lockdown.take() {
            report("table of the packet filter", table.open_up());
        }
    }
}

/// Without these the outer interface loses its address or its neighbours, and the tunnel with it. An ordinary user can send
/// none of them: the ports are below 1024, and ICMPv6 takes a raw socket. ARP is not IP and does not come here.
///
/// - DHCP from a client: UDP 68 to 67 (RFC 2131 section 4.1), to renew a lease.
/// - DHCPv6 from a client: UDP 546 to 547 at ff02::1:2 (RFC 8415 section 7).
/// - Router solicitation, neighbour solicitation and advertisement (133, 135, 136; RFC 4861), which no router forwards, as
///   their hop limit is 255.
/// - Listener reports (131, 132, 143; RFC 2710, RFC 3810) with hop limit 1, or switches that snoop do not pass
///   solicitations on to this host (RFC 4890 section 4.4.1).
fn necessities() -> Vec<NftAttributes> {
    let udp = || NftExpressions::new().meta(NftMeta::Protocol, &[17]);
    let ports = |from: u16, to: u16| [from.to_be_bytes(), to.to_be_bytes()].concat();
    let servers = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2];
    let dhcp = udp().family(libc::NFPROTO_IPV4).bytes(NftHeader::Transport, 0, &ports(68, 67));
    let dhcp6 = udp().family(libc::NFPROTO_IPV6).bytes(NftHeader::Transport, 0, &ports(546, 547));
    let dhcp6 = dhcp6.bytes(NftHeader::Network, 24, &servers);
    let icmp6 = |kind: u8, hop_limit: u8| {
        let icmp6 = NftExpressions::new().family(libc::NFPROTO_IPV6).meta(NftMeta::Protocol, &[58]);
        icmp6.bytes(NftHeader::Transport, 0, &[kind]).bytes(NftHeader::Network, 7, &[hop_limit]).accept()
    };
    let kinds = [(133, 255), (135, 255), (136, 255), (131, 1), (132, 1), (143, 1)];
    let icmp6 = kinds.map(|(kind, hop_limit)| icmp6(kind, hop_limit));
    [dhcp.accept(), dhcp6.accept()].into_iter().chain(icmp6).collect()
}

fn name(interface: &str) -> String {
    format!("strait-lockdown-{interface}")
}

/// Says that only rules lead packets into the tunnel.
pub(super) fn warn(interface: &str, error: &io::Error) {
    tracing::warn!(
        interface, %error,
        "no nftables: lockdown by rules and routes alone; other programs could take them away for a moment"
    );
}
