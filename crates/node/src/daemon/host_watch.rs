//! What happens to the host's network while the node runs: what another program removes is put back, and the log says
//! by which interface peers are reached.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_scheduler::Budget;

use super::Daemon;
use crate::config::PeerSection;
use crate::network::{self, NetworkChange, OuterRoutes, Repair};

/// Looks a second, and at once after a quiet time: programs that set up a network do it in a few steps. A program that
/// removes what is put back makes the node work, and log, no more often.
const LOOKS: (u64, u64) = (1, 5);
/// How long to wait for the rest of what a program does: flushing rules is one event for each, microseconds apart. Until the
/// rules of a full tunnel are back, packets leave in the clear, but for those of a node in lockdown.
const SETTLE: Duration = Duration::from_millis(5);
/// How often to look at what changes without an event.
const UNSEEN: Duration = Duration::from_secs(10);
/// Names in one line of the log; the rest is counted.
const NAMED: usize = 3;

/// What is known of the host's network.
pub(super) struct HostWatch {
    routes: OuterRoutes,
    /// The interface by which a peer's endpoint is reached, if there is one.
    outer: BTreeMap<PeerId, Option<String>>,
    change: NetworkChange,
    due: Time,
    budget: Budget,
}

impl HostWatch {
    /// Knows nothing yet, and looks at once.
    pub(super) fn new() -> io::Result<HostWatch> {
        let (per_second, burst) = LOOKS;
        Ok(HostWatch {
            routes: OuterRoutes::open()?,
            outer: BTreeMap::new(),
            change: NetworkChange { tunnel: true, outside: true },
            due: Time::ZERO,
            budget: Budget::new(per_second, burst),
        })
    }

    /// When there is something to look at.
    pub(super) const fn poll_timeout(&self) -> Time {
        self.due
    }

    /// The interface by which datagrams leave to a peer.
    pub(super) fn outer_interface(&self, peer: PeerId) -> Option<&str> {
        self.outer.get(&peer)?.as_deref()
    }
}

impl Daemon {
    /// Tells a gateway between sites, which this host may be, why peers do not reach the network behind it.
    pub(super) fn say_scope(&self) {
        let routes =
            std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").is_ok_and(|on| on.trim() == "1");
        let node = &self.config.node;
        for family in network::closed_families(&self.config) {
            tracing::info!(
                "{family} is closed: no peer has all of it in `allowed_ips`, and `allow_outside` does not have it"
            );
        }
        if routes && node.forward.networks.is_empty() && !node.address.is_empty() {
            tracing::info!(
                forward = %node.forward,
                "this host is a router; peers reach networks behind it only if `forward` names them"
            );
        }
    }

    /// The kernel said that something changed: to be looked at in a moment.
    pub(super) fn host_changed(&mut self, change: NetworkChange) {
        if change == NetworkChange::default() {
            return;
        }
        let watch = &mut self.watch;
        watch.change = watch.change | change;
        watch.due = watch.due.min(self.clock.now() + SETTLE);
    }

    /// Looks at what changed, if it is time.
    pub(super) fn look_at_host(&mut self, now: Time) {
        if now < self.watch.due {
            return;
        }
        if !self.watch.budget.take(1, now) {
            self.watch.due = self.watch.budget.room_at(1).unwrap_or(now + UNSEEN);
            return;
        }
        let change = std::mem::take(&mut self.watch.change);
        self.watch.due = Time::MAX;
        if self.network.must_look() {
            self.watch.due = now + UNSEEN;
            self.watch.change.tunnel = true;
        }
        if change.tunnel {
            match self.network.repair(&self.plan) {
                Ok(repair) => self.log_repair(&repair),
                Err(error) => tracing::error!("another program changed the tunnel's network: {error}"),
            }
        }
        if change.outside {
            self.look_outside();
        }
    }

    fn log_repair(&self, repair: &Repair) {
        let interface = &self.config.node.interface;
        if repair.went_down {
            let traffic = match self.plan.rules.is_empty() {
                true => "its traffic takes other routes",
                false => "what goes into a full tunnel is refused until it is up",
            };
            tracing::warn!(interface, "another program set the interface down; {traffic}");
        }
        if repair.came_up {
            tracing::info!(interface, "the interface is up again");
        }
        if !repair.put_back.is_empty() {
            let (what, more) = first_few(&repair.put_back);
            tracing::warn!(interface, "another program removed, and it is put back: {what}{more}");
        }
    }

    /// Finds by which interface each peer is reached, and logs what is new.
    pub(super) fn look_outside(&mut self) {
        let (mut lost, mut found) = (BTreeMap::new(), BTreeMap::new());
        let mut outer = BTreeMap::new();
        for peer in &self.config.peers {
            let Some((id, address)) = self.roster.number(peer).zip(self.outer_address(peer)) else {
                continue;
            };
            let now = self.watch.routes.interface(address, self.plan.mark);
            let before = self.watch.outer.get(&id);
            let name = || peer.name.clone();
            match (&now, before) {
                (Err(error), Some(Some(before))) => {
                    let key = (before.clone(), error.to_string());
                    lost.entry(key).or_insert_with(Vec::new).push(name());
                }
                (Err(error), None) => {
                    let key = (String::new(), error.to_string());
                    lost.entry(key).or_insert_with(Vec::new).push(name());
                }
                (Ok(now), Some(before)) if before.as_ref() != Some(now) => {
                    found.entry(now.clone()).or_insert_with(Vec::new).push(name());
                }
                _ => {}
            }
            outer.insert(id, now.ok());
        }
        self.watch.outer = outer;
        for ((before, error), peers) in lost {
            let (peers, more) = first_few(&peers);
            tracing::warn!(before, "no route to the endpoint of {peers}{more}: {error}");
        }
        for (interface, peers) in found {
            let (peers, more) = first_few(&peers);
            tracing::info!(interface, "another route to the endpoint of {peers}{more}");
        }
    }

    /// Where a peer is, outside the tunnel.
    fn outer_address(&self, peer: &PeerSection) -> Option<IpAddr> {
        let id = self.roster.number(peer)?;
        let endpoint = match peer.manual() {
            Some(_) => self.manual.get(id)?.endpoint(),
            None => self.control.status(id)?.endpoint,
        };
        Some(endpoint?.ip())
    }
}

/// A few names, and how many more there are.
fn first_few(names: &[String]) -> (String, String) {
    let named: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (named.join(", "), more)
}
