//! More small packets than a link carries, and how many of them arrive.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use strait_testbed::{Namespace, TwoHosts, interrupt, listen};

use crate::error::Error;
use crate::payload::{DEVICES, LEN, PayloadKind, SensorStation};

/// Packets offered a second: more than any way carries at 1.5 Mbit/s, which would have six bytes for each; and few enough that
/// sending them does not keep the machine busy.
const OFFERED: f64 = 30_000.0;
/// How often the sender sends what is due.
const BEAT: Duration = Duration::from_millis(1);
/// How long the first packet may take: on a busy machine, threads begin late.
const BEGIN: Duration = Duration::from_secs(10);

/// Packets of a kind from the first host to the second, a flow a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flood<'a> {
    pub(crate) hosts: &'a TwoHosts,
    /// Which decides the way; ports are any.
    pub(crate) address: SocketAddr,
    pub(crate) kind: PayloadKind,
    /// From the first packet that arrives, until queues are full and choices are made.
    pub(crate) warm_up: Duration,
    pub(crate) window: Duration,
}

/// What the threads share.
#[derive(Debug, Default)]
struct FloodState {
    arrived: AtomicU64,
    stop: AtomicBool,
}

impl Flood<'_> {
    /// Packets a second that arrive.
    pub(crate) fn run(&self) -> Result<f64, Error> {
        let shared = Arc::new(FloodState::default());
        let mut threads = Vec::new();
        let measured = self.start(&shared, &mut threads).and_then(|()| self.measure(&shared));
        shared.stop.store(true, Ordering::Relaxed);
        for thread in threads {
            Namespace::join(thread, "flood a link")?;
        }
        match measured? {
            rate if rate > 0.0 => Ok(rate),
            _ => Err(Error::Silent { what: "a flood", way: self.address.ip().to_string() }),
        }
    }

    fn start(
        &self,
        shared: &Arc<FloodState>,
        threads: &mut Vec<JoinHandle<io::Result<()>>>,
    ) -> Result<(), Error> {
        let mut targets = Vec::new();
        // A socket a flow: the buffer of one would not hold what a bundle brings.
        for _ in 0..DEVICES {
            let socket = self.hosts.b.run("listen to a device", || UdpSocket::bind(self.address))?;
            targets.push(socket.local_addr().map_err(Error::doing("find the port that was chosen"))?);
            let shared = Arc::clone(shared);
            threads.push(self.hosts.b.spawn(move || receive(&socket, &shared))?);
        }
        let (shared, station) = (Arc::clone(shared), SensorStation::new(self.kind));
        threads.push(self.hosts.a.spawn(move || send(station, &targets, &shared))?);
        Ok(())
    }

    fn measure(&self, shared: &FloodState) -> Result<f64, Error> {
        let begin = Instant::now();
        while shared.arrived.load(Ordering::Relaxed) == 0 && begin.elapsed() < BEGIN {
            interrupt::pause(BEAT)?;
        }
        interrupt::pause(self.warm_up)?;
        let (start, before) = (Instant::now(), shared.arrived.load(Ordering::Relaxed));
        interrupt::pause(self.window)?;
        let arrived = shared.arrived.load(Ordering::Relaxed) - before;
        Ok(arrived as f64 / start.elapsed().as_secs_f64())
    }
}

/// Sends what is due, beat by beat.
fn send(mut station: SensorStation, targets: &[SocketAddr], shared: &FloodState) -> io::Result<()> {
    let sockets: Vec<UdpSocket> = targets
        .iter()
        .map(|target| {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            socket.connect(target)?;
            Ok(socket)
        })
        .collect::<io::Result<_>>()?;
    let (start, mut sent) = (Instant::now(), 0.0);
    while !shared.stop.load(Ordering::Relaxed) {
        while sent < start.elapsed().as_secs_f64() * OFFERED {
            let (device, payload) = station.answer();
            if let Some(socket) = sockets.get(device) {
                // Where there is no room, as on any network, it is lost.
                let _ = socket.send(&payload);
            }
            sent += 1.0;
        }
        std::thread::sleep(BEAT);
    }
    Ok(())
}

fn receive(socket: &UdpSocket, shared: &FloodState) -> io::Result<()> {
    listen(socket, 2 * LEN, &shared.stop, |_, _| {
        shared.arrived.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::{LinkSpec, sandbox};

    #[test]
    fn a_thin_link_carries_what_fits() {
        if !sandbox::allows_hosts() {
            return;
        }
        let hosts = TwoHosts::direct(LinkSpec::thin("1.5Mbit".parse().unwrap())).unwrap();
        let address = SocketAddr::new(hosts.address_of_b().0, 0);
        let before = hosts.link.traffic().unwrap().there.packets;
        let (warm_up, window) = (Duration::from_millis(100), Duration::from_secs(1));
        let arrived =
            Flood { hosts: &hosts, address, kind: PayloadKind::Random, warm_up, window }.run().unwrap();
        let crossed = hosts.link.traffic().unwrap().there.packets - before;
        assert!(arrived > 0.0 && arrived * window.as_secs_f64() <= crossed as f64, "{arrived} of {crossed}");
    }
}
