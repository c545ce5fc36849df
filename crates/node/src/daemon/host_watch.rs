//! By which interfaces peers are reached: the log says when that changes.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use strait_ipsec::PeerId;
use strait_scheduler::Budget;

use super::Daemon;
use super::sources::Sources;
use crate::config::PeerSection;
use crate::network::{OuterRoute, OuterRoutes};
use crate::path_memory::PathKey;

/// Names in one line of the log; the rest is counted.
const NAMED: usize = 3;

/// Changes of the host's network that end pauses: eight at once, as when it starts, and one in 10 s. Some hosts' routes change without
/// end.
const CHANGES: (u64, u64) = (1, 80);
/// The part of it that one of them takes.
const CHANGE: u64 = 10;

/// What is known of the ways to peers.
pub(super) struct HostWatch {
    pub(super) routes: OuterRoutes,
    /// The addresses of this host by which they leave.
    pub(super) sources: Sources,
    changes: Budget,
    /// The interface by which a peer's endpoint is reached, if there is one.
    outer: BTreeMap<PeerId, Option<String>>,
    /// The starter's warnings about the host's network around the tunnel.
    pub(super) warnings: Vec<String>,
}

impl HostWatch {
    /// Knows nothing yet.
    pub(super) fn new() -> io::Result<HostWatch> {
        let changes = Budget::new(CHANGES.0, CHANGES.1);
        let (routes, sources) = (OuterRoutes::open()?, Sources::default());
        Ok(HostWatch { routes, sources, changes, outer: BTreeMap::new(), warnings: Vec::new() })
    }

    /// The interface by which datagrams leave to a peer.
    pub(super) fn outer_interface(&self, peer: PeerId) -> Option<&str> {
        self.outer.get(&peer)?.as_deref()
    }

    /// The way that datagrams with `mark` take to `address` now.
    pub(super) fn route(&mut self, address: IpAddr, mark: Option<u32>) -> io::Result<OuterRoute> {
        self.routes.route(address, mark)
    }
}

impl Daemon {
    /// Finds by which interface each peer is reached, and logs what is new.
    pub(super) fn look_outside(&mut self) {
        let (mut lost, mut found) = (BTreeMap::new(), BTreeMap::new());
        let (mut outer, mut paths) = (BTreeMap::new(), Vec::new());
        let (mut sources, mut moved) = (Vec::new(), Vec::new());
        for (index, peer) in self.config.peers.iter().enumerate() {
            let Some((id, address)) = self.roster.number(peer).zip(self.outer_address(peer)) else {
                continue;
            };
            let route = self.watch.routes.route(address, self.plan.mark);
            // As in `look_at_path`.
            if let (Ok(route), Some(key)) = (&route, peer.public_key()) {
                let OuterRoute { interface, gateway, .. } = route.clone();
                paths.push((id, PathKey::new(*key, interface, gateway, address)));
            }
            if let Ok(route) = &route {
                sources.push((index, address, route.source));
            }
            let now = route.map(|route| route.interface);
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
                    moved.push(id);
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
        paths.into_iter().for_each(|(id, key)| self.enter_path(id, key));
        for (index, address, route) in sources {
            self.follow_source(index, address, route);
        }
        // After that, so that what begins anew leaves with the address of the new way.
        let now = self.clock.now();
        moved.into_iter().for_each(|id| self.control.route_changed(id, now));
    }

    /// Links, addresses, routes or the resolver may be others: what failed for want of them is tried at once, unless they change
    /// all the time.
    pub(super) fn outside_changed(&mut self) {
        self.watch.sources.forget_choices();
        self.look_outside();
        let now = self.clock.now();
        if !self.watch.changes.take(CHANGE, now) {
            return;
        }
        self.names.outdate();
        self.give_up_queries(now);
        self.control.outside_changed(now);
    }

    /// Where a peer is, outside the tunnel.
    pub(super) fn outer_address(&self, peer: &PeerSection) -> Option<IpAddr> {
        let id = self.roster.number(peer)?;
        let endpoint = match peer.manual() {
            Some(_) => self.manual.get(id)?.endpoint(),
            None => self.control.status(id)?.endpoint,
        };
        Some(endpoint?.ip())
    }
}

/// A few names, and how many more there are.
pub(super) fn first_few(names: &[String]) -> (String, String) {
    let named: Vec<&str> = names.iter().take(NAMED).map(String::as_str).collect();
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (named.join(", "), more)
}
