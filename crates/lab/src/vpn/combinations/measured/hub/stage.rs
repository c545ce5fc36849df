//! Hosts of clients, a router, and a hub behind the link that clients share.

use std::fs;
use std::net::IpAddr;
use std::sync::Arc;

use strait_testbed::{
    DaemonProcess, DatagramStream, Namespace, RunningDatagrams, WireLink, Workdir, interrupt,
};

use super::super::VpnMeasure;
use super::super::grid::RunAmount;
use super::super::node::{Protected, TransportPeer};
use super::super::stage::{address, ahead, drained, fast_link, set_rate, silence, started};
use crate::error::Error;

/// Numbers of the links: the shared one's, and that of the first client's.
const SHARED: u8 = 9;
const FIRST: u8 = 10;

/// Hosts, links and daemons. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub(super) struct HubStage {
    // In the order in which they must go: daemons, hosts, folder. The hub's daemon is the last.
    daemons: Vec<DaemonProcess>,
    clients: Vec<Namespace>,
    hub: Namespace,
    shared: WireLink,
    links: Vec<WireLink>,
    dir: Workdir,
}

impl HubStage {
    /// So many clients whose packets are protected so.
    pub(super) fn set(measure: &VpnMeasure, protection: usize, clients: u32) -> Result<HubStage, Error> {
        interrupt::check()?;
        let (dir, router, hub) =
            (Workdir::create()?, Namespace::create("router")?, Namespace::create("hub")?);
        router.run("forward packets", || fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1"))?;
        let shared = WireLink::join(&router, &hub, SHARED, fast_link())?;
        let mut stage =
            HubStage { daemons: Vec::new(), clients: Vec::new(), hub, shared, links: Vec::new(), dir };
        let mut peers = Vec::new();
        for number in 0..u8::try_from(clients).unwrap_or(u8::MAX) {
            peers.push(stage.join(&router, number)?);
        }
        let protected = Protected::of(protection, 0);
        for (host, peer) in stage.clients.iter().zip(&peers) {
            stage.daemons.push(started(measure, host, &stage.dir, &protected.configuration(&[*peer]))?);
        }
        let others: Vec<TransportPeer> = peers.into_iter().map(TransportPeer::other).collect();
        let hub = started(measure, &stage.hub, &stage.dir, &protected.configuration(&others))?;
        stage.daemons.push(hub);
        Ok(stage)
    }

    /// Makes a client's host and its link to the router; gives the hub as the client's peer.
    fn join(&mut self, router: &Namespace, number: u8) -> Result<TransportPeer, Error> {
        let client = Namespace::create(&format!("client-{number}"))?;
        let link = WireLink::join(&client, router, FIRST + number, fast_link())?;
        let (local, remote) = (link.a.v6, self.shared.b.v6);
        client.add_route(IpAddr::from(remote), 128, link.b.v6.into())?;
        self.hub.add_route(IpAddr::from(local), 128, self.shared.a.v6.into())?;
        self.clients.push(client);
        self.links.push(link);
        Ok(TransportPeer { number, end: 0, local, remote })
    }

    /// All daemons, the hub's last.
    pub(super) fn daemons(&self) -> &[DaemonProcess] {
        &self.daemons
    }

    /// Packets a second that arrive at the hub over a network, of all clients together.
    pub(super) fn run(
        &mut self,
        megabits: f64,
        contents: &Arc<[Vec<u8>]>,
        amount: RunAmount,
        share: f64,
    ) -> Result<f64, Error> {
        set_rate(&mut self.shared, Some(megabits))?;
        let running = self.started(megabits, contents)?;
        for client in &running {
            client.wait(1, amount.warm_up / running.len() as u32)?;
        }
        let before: Vec<_> = running.iter().map(RunningDatagrams::arrivals).collect();
        interrupt::pause(amount.window)?;
        let mut rate = 0.0;
        for (client, before) in running.iter().zip(before) {
            let after = client.wait(before.count + amount.least, std::time::Duration::ZERO)?;
            rate += after.since(before).map_or(0.0, |(count, seconds)| count as f64 / seconds);
        }
        running.into_iter().try_for_each(RunningDatagrams::stop)?;
        set_rate(&mut self.shared, None)?;
        drained(&self.daemons, share)?;
        Ok(rate)
    }

    fn started(&self, megabits: f64, contents: &Arc<[Vec<u8>]>) -> Result<Vec<RunningDatagrams>, Error> {
        let len = contents.first().map_or(1, Vec::len);
        let share = (ahead(len, Some(megabits)) / self.clients.len()).max(2);
        let stream = |(number, from): (usize, &Namespace)| {
            let mut address = address(self.shared.b.v6, false);
            address.set_port(address.port() + number as u16);
            let silence = silence(len * self.clients.len(), Some(megabits));
            Ok(DatagramStream { from, to: &self.hub, address, contents, ahead: share, silence }.start()?)
        };
        self.clients.iter().enumerate().map(stream).collect()
    }
}
