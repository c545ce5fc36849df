//! The same pings, and the file, through tunnels of real daemons between two hosts: with sessions, and with keys that need none.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_testbed::{DaemonProcess, Extra, LinkSpec, Offloads, Site, TwoHosts, Workdir};

use super::pings::PING;
use crate::enskip::throughput::tunnel::sent;
use crate::error::Error;
use crate::measure::RunValues;

/// Bytes of a ping behind headers of IPv4 and UDP.
const DATA: usize = PING - 28;
/// How long an answer may take; a packet that a daemon does not send yet is sent again then.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often a ping is sent until it is answered: as long as two daemons may take to agree on a session.
const ATTEMPTS: u32 = 60;
/// Runs of pings one after another, and the pings of each, of which the middle one counts.
const WARM: (usize, usize) = (5, 41);
/// Lines of a peer without sessions.
const SESSIONLESS: &str = "keying = \"sessionless\"\n";

/// Round trips in microseconds, a value a run.
#[derive(Clone, Debug, Default)]
pub(super) struct DaemonPings {
    /// The link, with no tunnel.
    pub(super) link: RunValues,
    /// Tunnels: one with a session, and if the daemons have such keys, one without.
    pub(super) session: TunnelPings,
    /// None where the program knows only sessions.
    pub(super) sessionless: Option<TunnelPings>,
}

/// What pings through one kind of tunnel took.
#[derive(Clone, Debug, Default)]
pub(super) struct TunnelPings {
    /// The first ping after both daemons were started.
    pub(super) first: RunValues,
    /// Those after it.
    pub(super) warm: RunValues,
    /// kbytes/s of transfers of the file.
    pub(super) file: RunValues,
}

/// What is sent.
#[derive(Clone, Debug)]
pub(super) struct TunnelLoad {
    /// How often daemons are started.
    pub(super) starts: usize,
    /// A file,
    pub(super) file: Arc<[u8]>,
    /// and how long it is sent again and again.
    pub(super) span: Duration,
}

/// Pings over a link, and through tunnels of two `program`s: of each kind in turn, as a machine is not as fast at any time.
pub(super) fn measured(program: &Path, load: &TunnelLoad) -> Result<DaemonPings, Error> {
    let hosts = TwoHosts::direct(LinkSpec { offloads: Offloads::Off, ..LinkSpec::unshaped() })?;
    let folder = Workdir::create()?;
    let sites = Site::pair(program, &hosts, folder.path())?;
    let link = Ends::between(&hosts, hosts.address_of_a().0, hosts.address_of_b().0)?.warm()?;
    let mut session = TunnelPings::default();
    let mut sessionless = accepts(&sites, SESSIONLESS)?.then(TunnelPings::default);
    for _ in 0..load.starts {
        session.add(&hosts, &sites, "", load)?;
        if let Some(sessionless) = &mut sessionless {
            sessionless.add(&hosts, &sites, SESSIONLESS, load)?;
        }
    }
    Ok(DaemonPings { link, session, sessionless })
}

/// Whether the program takes these lines of a peer.
fn accepts(sites: &[Site; 2], peer: &str) -> Result<bool, Error> {
    let [near, far] = sites;
    let path = near.configure("check", &[far], Extra { peer, ..Extra::default() })?;
    let checked = near.host.command(near.program()).arg("check").arg(&path).output();
    let doing = format!("run {} check", near.program().display());
    Ok(checked.map_err(Error::doing(doing))?.status.success())
}

impl TunnelPings {
    /// Starts both daemons once more, with what they keep on disk from before, and adds what pings and the file took.
    fn add(
        &mut self,
        hosts: &TwoHosts,
        sites: &[Site; 2],
        peer: &str,
        load: &TunnelLoad,
    ) -> Result<(), Error> {
        let [near, far] = sites;
        let name = if peer.is_empty() { "session" } else { "sessionless" };
        let start = |site: &Site, other: &Site| -> Result<DaemonProcess, Error> {
            Ok(site.start(&site.configure(name, &[other], Extra { peer, ..Extra::default() })?, name)?)
        };
        let _daemons = [start(near, far)?, start(far, near)?];
        let ends = Ends::between(hosts, near.inside().into(), far.inside().into())?;
        self.first.push(ends.first()?);
        self.warm.extend(&ends.warm()?);
        self.file.extend(&sent(hosts, far.inside().into(), &load.file, load.span)?);
        Ok(())
    }
}

/// Two sockets, each at its host.
struct Ends {
    near: UdpSocket,
    far: UdpSocket,
    to: SocketAddr,
}

impl Ends {
    fn between(hosts: &TwoHosts, near: IpAddr, far: IpAddr) -> Result<Ends, Error> {
        let bound = |address: IpAddr| {
            let socket = UdpSocket::bind((address, 0))?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket)
        };
        let near = hosts.a.run("open a socket for pings", || bound(near))?;
        let far = hosts.b.run("open a socket for pings", || bound(far))?;
        let to = far.local_addr().map_err(Error::doing("find the port that was chosen"))?;
        Ok(Ends { near, far, to })
    }

    /// The time from the sending of the first ping to its answer, however often it had to be sent.
    fn first(&self) -> Result<f64, Error> {
        let start = Instant::now();
        for _ in 0..ATTEMPTS {
            match self.round_trip() {
                Ok(()) => return Ok(micros(start)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(Error::doing("send a ping through a tunnel")(error)),
            }
        }
        let silent = io::Error::new(io::ErrorKind::TimedOut, "no ping was answered");
        Err(Error::doing("send a ping through a tunnel")(silent))
    }

    /// The middle ones of many.
    fn warm(&self) -> Result<RunValues, Error> {
        let (runs, pings) = WARM;
        let run = |_| {
            let one = |_| {
                let start = Instant::now();
                self.round_trip().map(|()| micros(start))
            };
            let times: io::Result<RunValues> = (0..pings).map(one).collect();
            times.map(|times| times.spread().map_or(f64::NAN, |it| it.median))
        };
        (0..runs).map(run).collect::<io::Result<_>>().map_err(Error::doing("send pings"))
    }

    /// The round trip.
    fn round_trip(&self) -> io::Result<()> {
        let mut datagram = [0; 2 * DATA];
        self.near.send_to(&[7; DATA], self.to)?;
        let (len, from) = self.far.recv_from(&mut datagram)?;
        self.far.send_to(&datagram[..len], from)?;
        let len = self.near.recv(&mut datagram)?;
        if datagram[..len] == [7; DATA] { Ok(()) } else { Err(io::Error::other("a ping came back changed")) }
    }
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_come_back_over_a_link() {
        if strait_testbed::sandbox::allows_hosts() {
            let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
            let ends = Ends::between(&hosts, hosts.address_of_a().0, hosts.address_of_b().0).unwrap();
            assert!(ends.first().unwrap() > 0.0);
            assert_eq!(ends.warm().unwrap().values().len(), WARM.0);
        }
    }
}
