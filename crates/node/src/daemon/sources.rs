//! The address of this host that datagrams leave with: that at which a peer's arrive. As long as that is not known, it is the routing
//! table's choice, but never an address of the tunnel itself.

use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use strait_clock::Time;
use strait_ipsec::outbound::{self, Via};
use strait_ipsec::{LatestEndpoint, PeerId, Place, Reason, SPARES};

use super::Daemon;
use crate::config::Config;
use crate::network::{HostAddresses, OuterRoutes, RouteSource};

/// Time for which packets that arrive at an address which the routing table has turned away from change nothing: a peer that hears this
/// node at its new address answers there before that. Three times the shortest retransmission timeout of TCP (RFC 6298 section 2.4).
const SETTLED_AFTER: Duration = Duration::from_secs(3);
/// Remote addresses of which the choice is remembered, until a route changes: more than there are handshakes under way.
const REMEMBERED: usize = 1024;

/// The address that datagrams leave with whose peer was not heard yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SourceChoice {
    /// The kernel's, for each datagram: there is no route, or no choice.
    Kernel,
    /// This one, and the other where that is gone.
    Best { source: IpAddr, spare: Option<IpAddr> },
    /// None: this address of the tunnel is all that the host has.
    TunnelOnly(IpAddr),
}

/// The routing table's choices, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// For each peer, where it was and which address was chosen for it, if there was one.
    chosen: BTreeMap<PeerId, (IpAddr, Option<IpAddr>)>,
    /// The choices for remote addresses that datagrams without an address of their own went to.
    choices: BTreeMap<IpAddr, SourceChoice>,
    /// The addresses of this host.
    addresses: Option<HostAddresses>,
    /// The time from which packets count again that arrive at an address which was left.
    settles: BTreeMap<PeerId, Time>,
}

impl Sources {
    /// The time at which [`Daemon::settle_sources`] has something to do.
    pub(super) fn poll_timeout(&self) -> Time {
        self.settles.values().min().copied().unwrap_or(Time::MAX)
    }

    /// Forgets a peer.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.chosen.remove(&peer);
        self.settles.remove(&peer);
    }

    /// An address or a route has changed, so that any choice may be another.
    pub(super) fn forget_choices(&mut self) {
        self.choices.clear();
        self.addresses = None;
    }

    /// Chooses for `remote`, which datagrams take `route` to; `is_own` says which addresses are the tunnel's.
    fn choose(
        &mut self,
        routes: &mut OuterRoutes,
        (remote, route): (IpAddr, RouteSource),
        is_own: impl Fn(IpAddr) -> bool,
    ) -> SourceChoice {
        // One of the link alone needs the interface's number beside it.
        let usable = |address: &IpAddr| !matches!(address, IpAddr::V6(it) if it.is_unicast_link_local());
        let Some(table) = route.address.filter(usable) else { return SourceChoice::Kernel };
        let addresses = match self.addresses.take().map_or_else(|| routes.addresses(), Ok) {
            Ok(addresses) => self.addresses.insert(addresses),
            Err(error) => {
                tracing::warn!(%remote, "the addresses of this host cannot be read: {error}");
                return SourceChoice::Kernel;
            }
        };
        let best_but = |but: Option<IpAddr>| {
            addresses.best(remote, route.index, |address| Some(address) != but && !is_own(address))
        };
        let first = if is_own(table) { best_but(None) } else { Some(table) };
        first.map_or(SourceChoice::TunnelOnly(table), |source| SourceChoice::Best {
            source,
            spare: best_but(Some(source)),
        })
    }

    /// Remembers the choice for a remote address.
    fn remember(&mut self, remote: IpAddr, choice: SourceChoice) {
        if self.choices.len() >= REMEMBERED {
            self.choices.clear();
        }
        self.choices.insert(remote, choice);
    }

    /// Takes that `source` is chosen for a peer at `remote`. If datagrams to it left with what was chosen before, they leave with this from
    /// now on: the host has another way out. Those that left with another address came to that. Says whether that is another choice.
    fn chose(
        &mut self,
        peer: PeerId,
        (remote, source): (IpAddr, Option<IpAddr>),
        latest: &LatestEndpoint,
        now: Time,
    ) -> bool {
        let before = self.chosen.insert(peer, (remote, source));
        if before == Some((remote, source)) {
            return false;
        }
        if let Some((there, Some(before))) = before
            && there == remote
            && let Some(source) = source
            && latest.leave_local(before, source)
        {
            self.settles.insert(peer, now + SETTLED_AFTER);
        }
        true
    }
}

impl Daemon {
    /// Follows the routing table, by which datagrams to the peer at `index` of the configuration, at `remote`, take `route`.
    pub(super) fn follow_source(&mut self, index: usize, remote: IpAddr, route: RouteSource) {
        let choice = self.choose_by(remote, route);
        let Some(peer) = self.config.peers.get(index) else { return };
        let Some((id, counters)) = self.roster.number(peer).zip(self.roster.counters(peer)) else { return };
        let (sources, latest, now) = (&mut self.watch.sources, &counters.endpoint, self.clock.now());
        match choice {
            SourceChoice::Kernel => {}
            SourceChoice::Best { source, spare } => {
                sources.chose(id, (remote, Some(source)), latest, now);
                latest.offer(remote, [Some(source), spare]);
            }
            SourceChoice::TunnelOnly(tunnel) => {
                if sources.chose(id, (remote, None), latest, now) {
                    tracing::warn!(
                        peer = peer.name, %remote,
                        "nothing can leave to the peer: the tunnel's own address {tunnel} is the only one of this host for that; give \
                         an outer interface an address of the same kind"
                    );
                }
                latest.offer(remote, [None; SPARES]);
            }
        }
    }

    /// Follows the routing table for one peer, whose place may be another than before.
    pub(super) fn look_at_source(&mut self, id: PeerId) {
        let mut peers = self.config.peers.iter();
        if let Some(index) = peers.position(|peer| self.roster.number(peer) == Some(id)) {
            self.look_at_source_of(index);
        }
    }

    /// The same for the peer at `index` of the configuration.
    pub(super) fn look_at_source_of(&mut self, index: usize) {
        let address = self.config.peers.get(index).and_then(|peer| self.outer_address(peer));
        if let Some(address) = address
            && let Ok(route) = self.watch.routes.source(address, self.plan.mark)
        {
            self.follow_source(index, address, route);
        }
    }

    /// Has packets count again that arrive at addresses which were left a while ago.
    pub(super) fn settle_sources(&mut self) {
        let now = self.clock.now();
        let settles = &mut self.watch.sources.settles;
        let due: Vec<PeerId> = settles.extract_if(.., |_, at| *at <= now).map(|(peer, _)| peer).collect();
        let peers = self.config.peers.iter();
        let due = peers.filter(|peer| self.roster.number(peer).is_some_and(|id| due.contains(&id)));
        due.filter_map(|peer| self.roster.counters(peer)).for_each(|counters| counters.endpoint.settle());
    }

    /// Sends a control datagram; without an address to leave with it is lost, and the peer is not reached.
    pub(super) fn transmit(&mut self, via: Via, to: Place, bytes: Box<[u8]>) {
        let local = match to.local {
            None => match self.choose_source(to.remote.ip()) {
                SourceChoice::Kernel => None,
                SourceChoice::Best { source, .. } => Some(source),
                SourceChoice::TunnelOnly(_) => return self.counters.refuse(Reason::NetworkRefused),
            },
            local => local,
        };
        self.order_out(outbound::Order::Transmit(via, Place { local, ..to }, bytes));
    }

    /// Ends the handshake with a peer at `remote` that has begun, if nothing can leave to there.
    pub(super) fn check_source(&mut self, peer: PeerId, remote: SocketAddr) {
        if let SourceChoice::TunnelOnly(tunnel) = self.choose_source(remote.ip()) {
            self.control.no_source(peer, remote, tunnel, self.clock.now());
        }
    }

    /// Returns the choice for datagrams to `remote` that have no address of their own.
    fn choose_source(&mut self, remote: IpAddr) -> SourceChoice {
        if let Some(choice) = self.watch.sources.choices.get(&remote.to_canonical()) {
            return *choice;
        }
        // Without a route, sending fails whatever the address is.
        let Ok(route) = self.watch.routes.source(remote.to_canonical(), self.plan.mark) else {
            return SourceChoice::Kernel;
        };
        self.choose_by(remote, route)
    }

    /// Returns the same by this route.
    fn choose_by(&mut self, remote: IpAddr, route: RouteSource) -> SourceChoice {
        let remote = remote.to_canonical();
        // A socket on one address leaves no choice, and to an address of a link, the interface that the remote address names.
        let is_free = self.socket.local().ip().is_unspecified()
            && !matches!(remote, IpAddr::V6(remote) if remote.is_unicast_link_local());
        let choice = if is_free {
            let is_own = |address| is_own(&self.config, address);
            self.watch.sources.choose(&mut self.watch.routes, (remote, route), is_own)
        } else {
            SourceChoice::Kernel
        };
        self.watch.sources.remember(remote, choice);
        choice
    }
}

/// Returns true if an address is one of the tunnel's.
fn is_own(config: &Config, address: IpAddr) -> bool {
    config.node.address.iter().any(|own| own.addr() == address)
}
