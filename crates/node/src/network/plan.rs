//! What the system around the tunnel should look like, derived from the configuration alone.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::default_path::closed_families;
use crate::config::{Config, ManualMode, PeerSection, RouteTable};

/// The mark on outer packets, and the number of the routing table, of a full tunnel when the file
/// names none: "ST" in ASCII.
pub const DEFAULT_MARK: u32 = 0x5354;
/// The kernel's main table (`RT_TABLE_MAIN`).
pub(super) const MAIN_TABLE: u32 = 254;

/// A route into the tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Where to.
    pub destination: IpNet,
    /// The table it stands in.
    pub table: u32,
    /// What packets that take it meet.
    pub target: RouteTarget,
    /// The address that the host's own packets have as their source when they take it; the kernel's choice if none.
    pub source: Option<IpAddr>,
}

/// What packets meet that take a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteTarget {
    /// The tunnel's interface. The kernel removes the route with the interface.
    Tunnel,
    /// An error, if no route into the tunnel to the same destination is left: its metric is the highest. It outlives the
    /// interface, so without the tunnel nothing leaves in the clear.
    Unreachable,
}

/// A policy rule for packets that do not carry `mark`, which are all but the tunnel's own; a rule for packets to a
/// network that is allowed outside is for all packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    /// Which family's packets.
    pub family: RouteFamily,
    /// The mark they must not have.
    pub mark: u32,
    /// Where they are looked up.
    pub lookup: Lookup,
}

/// IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RouteFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl RouteFamily {
    /// Both.
    pub const ALL: [RouteFamily; 2] = [RouteFamily::V4, RouteFamily::V6];

    pub(super) fn of(net: &IpNet) -> RouteFamily {
        if net.addr().is_ipv4() { RouteFamily::V4 } else { RouteFamily::V6 }
    }

    /// All addresses of the family.
    pub(super) fn everything(self) -> IpNet {
        match self {
            RouteFamily::V4 => Ipv4Net::default().into(),
            RouteFamily::V6 => Ipv6Net::default().into(),
        }
    }
}

impl fmt::Display for RouteFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RouteFamily::V4 => "IPv4",
            RouteFamily::V6 => "IPv6",
        })
    }
}

/// Where a policy rule looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lookup {
    /// In the main table, passing over routes whose prefix is no longer than this.
    MainBeyond(u8),
    /// In the table with the mark's number, passing over routes whose prefix is shorter than this.
    TunnelFrom(u8),
    /// Packets to this network: in the main table.
    Outside(IpNet),
    /// Datagrams of a DHCP client that renews its lease (RFC 2131 section 4.1): in the main table.
    Dhcp,
}

/// A kernel setting that the plan wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SysctlSetting {
    pub(super) path: PathBuf,
    pub(super) value: &'static str,
    /// Whether the plan fails without it.
    pub(super) needed: bool,
}

impl SysctlSetting {
    /// The setting `name` below `/proc/sys/net`.
    fn new(name: &str, value: &'static str, needed: bool) -> SysctlSetting {
        SysctlSetting { path: Path::new("/proc/sys/net").join(name), value, needed }
    }
}

/// The switch that has the kernel forward what comes in by `interface`.
fn forwarding(family: RouteFamily, interface: &str) -> SysctlSetting {
    let name = match family {
        RouteFamily::V4 => format!("ipv4/conf/{interface}/forwarding"),
        RouteFamily::V6 if has_switch_each() => format!("ipv6/conf/{interface}/force_forwarding"),
        RouteFamily::V6 => "ipv6/conf/all/forwarding".to_owned(),
    };
    SysctlSetting::new(&name, "1", true)
}

/// Whether each interface has a switch of its own for IPv6; kernels before 6.17 forward on all interfaces or none.
pub(super) fn has_switch_each() -> bool {
    Path::new("/proc/sys/net/ipv6/conf/all/force_forwarding").exists()
}

/// An interface that leads to a named network.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Behind {
    pub(super) family: RouteFamily,
    pub(super) interface: String,
}

/// What the system around the tunnel should look like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Largest packet of the interface.
    pub mtu: u16,
    /// Its addresses.
    pub addresses: BTreeSet<IpNet>,
    /// Routes into it.
    pub routes: BTreeSet<Route>,
    /// Rules that keep the tunnel's own packets out of it.
    pub rules: BTreeSet<PolicyRule>,
    /// The mark of the tunnel's own packets.
    pub mark: Option<u32>,
    /// Networks that packets may go to outside the tunnel.
    pub outside: BTreeSet<IpNet>,
    /// Whether packets leave by the tunnel only, but for its own and those to the networks above.
    pub lockdown: bool,
    /// The families whose packets pass from one peer to another.
    pub hub: BTreeSet<RouteFamily>,
    /// Networks behind this node that peers may reach.
    pub networks: BTreeSet<IpNet>,
}

impl Plan {
    /// What `config` asks for.
    ///
    /// A route that would swallow datagrams to a peer's endpoint, a default route above all, goes to a table of
    /// its own, which marked packets do not see. The longest prefix decides as if both tables were one, and the main
    /// table's where two are equally long: for each length in the tunnel's table, rules ask the main table for longer
    /// ones, then the tunnel's for none shorter. For a default route this is what wg-quick(8) does.
    #[must_use]
    pub fn of(config: &Config) -> Plan {
        Plan::around(config, &[])
    }

    /// As [`Plan::of`] when peers are also at the addresses `others`, which names led to.
    #[must_use]
    pub fn around(config: &Config, others: &[IpAddr]) -> Plan {
        let node = &config.node;
        if !node.tunnel {
            return Plan { mark: node.fwmark, ..Plan::default() };
        }
        let mut plan = Plan {
            mtu: node.mtu,
            addresses: node.address.iter().copied().collect(),
            mark: node.fwmark,
            outside: node.allow_outside.iter().copied().collect(),
            lockdown: node.lockdown,
            networks: node.forward.networks.iter().copied().collect(),
            ..Plan::default()
        };
        if node.forward.peers {
            let told = config.directory.iter().flat_map(|directory| &directory.allowed_ips);
            let networks =
                config.peers.iter().flat_map(|peer| &peer.allowed_ips).chain(&node.address).chain(told);
            plan.hub = networks.map(RouteFamily::of).collect();
        }
        let written = config.peers.iter().filter_map(|peer| peer.endpoint.as_ref()?.ip());
        let endpoints: Vec<IpAddr> = written.chain(others.iter().copied()).collect();
        for peer in &config.peers {
            for net in &peer.allowed_ips {
                plan.route(*net, source(peer), node.table, &endpoints);
            }
        }
        // Which of their addresses have a peer changes with each certificate; routes do not.
        for net in config.directory.iter().flat_map(|directory| &directory.allowed_ips) {
            plan.route(*net, None, node.table, &endpoints);
        }
        if plan.lockdown {
            // What this node forwards for peers leaves outside by intent.
            plan.outside.extend(plan.networks.clone());
            plan.mark.get_or_insert(DEFAULT_MARK);
        }
        if node.table == RouteTable::Auto {
            plan.close(config);
        }
        plan
    }

    fn route(&mut self, destination: IpNet, source: Option<IpAddr>, table: RouteTable, endpoints: &[IpAddr]) {
        let table = match table {
            RouteTable::Off => return,
            RouteTable::Number(table) => table,
            RouteTable::Auto if self.lockdown => *self.mark.get_or_insert(DEFAULT_MARK),
            // The kernel routes the networks of the interface's addresses by itself.
            RouteTable::Auto if self.addresses.iter().any(|own| own.trunc().contains(&destination)) => return,
            RouteTable::Auto if swallows(destination, endpoints) => *self.mark.get_or_insert(DEFAULT_MARK),
            RouteTable::Auto => MAIN_TABLE,
        };
        self.routes.insert(Route { destination, table, target: RouteTarget::Tunnel, source });
    }

    /// Ends each destination of the tunnel's own table in an unreachable route, adds those that are closed altogether,
    /// and makes the rules that lead to the table.
    fn close(&mut self, config: &Config) {
        let closed = closed_families(config);
        if !closed.is_empty() {
            self.mark.get_or_insert(DEFAULT_MARK);
        }
        let Some(mark) = self.mark else { return };
        let own = self.routes.iter().filter(|route| route.table == mark).map(|route| route.destination);
        let own: BTreeSet<IpNet> = own.chain(closed.iter().map(|family| family.everything())).collect();
        let route = |destination, target| Route { destination, table: mark, target, source: None };
        for destination in &own {
            self.routes.insert(route(*destination, RouteTarget::Unreachable));
            self.rules_for(*destination, mark);
        }
        let all_v4 = RouteFamily::V4.everything();
        if closed.contains(&RouteFamily::V4) {
            // The sender drops what no peer has. Without any route, the reverse path filter of most systems (`rp_filter` 2)
            // drops datagrams that peers send to an IPv4 address of this host (Linux `__fib_validate_source`).
            self.routes.insert(route(all_v4, RouteTarget::Tunnel));
        }
        if self.lockdown {
            self.rules.insert(PolicyRule { family: RouteFamily::V4, mark, lookup: Lookup::Dhcp });
        }
        for outside in self.outside.iter().copied().filter(|_| !own.is_empty()).collect::<Vec<_>>() {
            let family = RouteFamily::of(&outside);
            self.rules.insert(PolicyRule { family, mark, lookup: Lookup::Outside(outside) });
        }
    }

    /// The main table's longer routes first, then the tunnel's that are no shorter. In lockdown no route of the main table
    /// goes first: another program could make one (TunnelVision, CVE-2024-3661).
    fn rules_for(&mut self, destination: IpNet, mark: u32) {
        let (family, len) = (RouteFamily::of(&destination), destination.prefix_len());
        if len < destination.max_prefix_len() && !self.lockdown {
            self.rules.insert(PolicyRule { family, mark, lookup: Lookup::MainBeyond(len) });
        }
        self.rules.insert(PolicyRule { family, mark, lookup: Lookup::TunnelFrom(len) });
    }

    /// The kernel settings it takes, where `behind` are the interfaces that lead to the named networks.
    pub(super) fn settings(&self, interface: &str, behind: &BTreeSet<Behind>) -> Vec<SysctlSetting> {
        let mut all = Vec::new();
        // Or the reverse path filter drops answers to marked packets; harmless where there is no filter.
        if self.rules.iter().any(|rule| rule.family == RouteFamily::V4) {
            all.push(SysctlSetting::new("ipv4/conf/all/src_valid_mark", "1", false));
        }
        // A kernel forwards what came in by an interface whose switch is on: from peers, and back from the networks.
        let named = self.networks.iter().map(RouteFamily::of);
        let own = self.hub.iter().copied().chain(named).map(|family| (family, interface));
        let all_on: BTreeSet<_> =
            own.chain(behind.iter().map(|it| (it.family, it.interface.as_str()))).collect();
        all.extend(all_on.iter().map(|(family, name)| forwarding(*family, name)));
        if all_on.contains(&(RouteFamily::V4, interface)) {
            // A peer reaches another one through here alone, and what has no other way here may come back, so the kernel has no shorter
            // way to tell of. It does where either value says so (Linux `Documentation/networking/ip-sysctl.rst`,
            // send_redirects); other interfaces have values of their own. IPv6 redirects take a link-local address, which there is not.
            for scope in [interface, "all"] {
                all.push(SysctlSetting::new(&format!("ipv4/conf/{scope}/send_redirects"), "0", false));
            }
        }
        all
    }

    /// Whether datagrams to `endpoint` would be routed into the tunnel themselves.
    #[must_use]
    pub fn would_loop(&self, endpoint: SocketAddr) -> bool {
        // Marked packets do not see the table of the mark.
        let seen = |route: &&Route| self.rules.is_empty() || self.mark != Some(route.table);
        self.routes.iter().filter(seen).any(|route| route.destination.contains(&endpoint.ip()))
    }
}

/// Whether datagrams to a peer could follow this route. Half of all addresses is meant as a default route, and
/// holds endpoints that are known by name only.
fn swallows(destination: IpNet, endpoints: &[IpAddr]) -> bool {
    destination.prefix_len() <= 1 || endpoints.iter().any(|endpoint| destination.contains(endpoint))
}

/// In transport mode this node is known by its address outside.
fn source(peer: &PeerSection) -> Option<IpAddr> {
    match peer.manual()?.mode {
        ManualMode::Transport(hosts) => Some(hosts.local),
        ManualMode::Tunnel => None,
    }
}
