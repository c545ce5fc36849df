//! Round trips of small UDP datagrams between ordinary sockets of two hosts, one at a time, as `ping` makes them.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use strait_testbed::{Namespace, TwoHosts, interrupt, listen};

use crate::error::Error;

/// Bytes of payload: those of an ordinary `ping`.
const PAYLOAD: usize = 56;
/// Rounds before measuring: addresses are resolved and paths warmed.
const WARM_UP: usize = 10;
/// Rounds that may be lost before it is given up.
const LOST: usize = 10;
/// Between two rounds, so that each finds an idle link idle again.
const GAP: Duration = Duration::from_millis(5);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Round trips from the first host to an address on the second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echoes<'a> {
    hosts: &'a TwoHosts,
    /// Which decides the way; port 0 is any.
    address: SocketAddr,
    /// Rounds that do not count, and those that do.
    rounds: [usize; 2],
    gap: Duration,
    /// How long they go on at most.
    within: Duration,
}

impl<'a> Echoes<'a> {
    /// So many `rounds`, while nothing else moves.
    pub(crate) const fn idle(hosts: &'a TwoHosts, address: SocketAddr, rounds: usize) -> Echoes<'a> {
        Echoes { hosts, address, rounds: [WARM_UP, rounds], gap: GAP, within: Duration::MAX }
    }

    /// With a `gap` between two rounds for as long as something else goes on.
    pub(crate) const fn beside(
        hosts: &'a TwoHosts,
        address: SocketAddr,
        gap: Duration,
        within: Duration,
    ) -> Echoes<'a> {
        Echoes { hosts, address, rounds: [0, usize::MAX], gap, within }
    }

    /// Milliseconds of each; datagrams that are lost are left out.
    pub(crate) fn run(&self) -> Result<Vec<f64>, Error> {
        let Echoes { hosts, address, .. } = *self;
        let server = hosts.b.run("listen for echoes", || UdpSocket::bind(address))?;
        let target = server.local_addr().map_err(Error::doing("find the port that was chosen"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let answering = hosts.b.spawn({
            let stop = Arc::clone(&stop);
            move || answer(&server, &stop)
        })?;
        let any = SocketAddr::new(if address.is_ipv4() { [0; 4].into() } else { [0; 16].into() }, 0);
        let client = hosts.a.run("open a socket for echoes", || {
            let socket = UdpSocket::bind(any)?;
            socket.connect(target)?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(socket)
        });
        let times = client.map_err(Error::from).and_then(|client| self.ask(&client));
        stop.store(true, Ordering::Relaxed);
        Namespace::join(answering, "answer echoes")?;
        match times? {
            times if times.is_empty() => {
                Err(Error::Silent { what: "a UDP echo", way: address.ip().to_string() })
            }
            times => Ok(times),
        }
    }

    fn ask(&self, client: &UdpSocket) -> Result<Vec<f64>, Error> {
        let [warm_up, rounds] = self.rounds;
        let (start, mut times, mut lost) = (Instant::now(), Vec::new(), 0);
        for round in 0..warm_up.saturating_add(rounds) {
            interrupt::check()?;
            match one(client, round).map_err(Error::doing("send an echo"))? {
                Some(time) if round >= warm_up => times.push(time.as_secs_f64() * 1000.0),
                Some(_) => {}
                None => lost += 1,
            }
            if lost > LOST || start.elapsed() + self.gap >= self.within {
                break;
            }
            std::thread::sleep(self.gap);
        }
        Ok(times)
    }
}

/// What so many of a hundred times stay within; nothing at all for none.
pub(crate) fn within(times: &mut [f64], hundredths: usize) -> f64 {
    times.sort_by(f64::total_cmp);
    times
        .get((times.len() * hundredths / 100).min(times.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}

/// One round trip; nothing when the answer did not come in time.
fn one(client: &UdpSocket, round: usize) -> io::Result<Option<Duration>> {
    let mut payload = [0_u8; PAYLOAD];
    let number = (round as u64).to_be_bytes();
    payload[..number.len()].copy_from_slice(&number);
    let start = Instant::now();
    client.send(&payload)?;
    let mut answer = [0_u8; PAYLOAD];
    loop {
        match client.recv(&mut answer) {
            Ok(PAYLOAD) if answer == payload => return Ok(Some(start.elapsed())),
            // An answer that was given up before.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

fn answer(server: &UdpSocket, stop: &AtomicBool) -> io::Result<()> {
    listen(server, 2 * PAYLOAD, stop, |bytes, from| server.send_to(bytes, from).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_testbed::{LinkSpec, TwoHosts, sandbox};

    #[test]
    fn every_round_that_is_answered_counts() {
        if !sandbox::allows_hosts() {
            return;
        }
        let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
        let (v4, v6) = hosts.address_of_b();
        for address in [v4, v6] {
            let times = Echoes::idle(&hosts, SocketAddr::new(address, 0), 20).run().unwrap();
            assert!(times.len() > 10 && times.iter().all(|time| *time > 0.0), "{times:?}");
        }
        let packets = hosts.link.traffic().unwrap().there.packets;
        assert!(packets >= 60, "{packets} frames crossed");
    }
}
