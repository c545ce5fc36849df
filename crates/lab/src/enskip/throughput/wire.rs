//! A file over TCP between two ends: the loopback interface, or two hosts and a link.

use std::io::{self, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use strait_clock::Random;
use strait_testbed::{LinkSpec, Offloads, TwoHosts};

use super::memory::{BATCH, LOOKS, kbytes};
use crate::enskip::packet::{PACKET_MAX, PAYLOAD, SkipReceiver, SkipSender, SkipSettings};
use crate::error::Error;
use crate::measure::{RunValues, ThreadMoment, pin};

/// Bytes that a write or a read moves at most, as many as `ftp` programs of today.
const CHUNK: usize = 64 * 1024;
/// How long a socket may stand still.
const PATIENCE: Duration = Duration::from_secs(20);
/// A run ends by the clock on the wall at the latest after so many times what it is to take: others may have the processor.
const LATEST: u32 = 20;
/// What packet keys follow from.
const SEED: u64 = 1300;

/// What carries the packets.
pub(super) enum Wire {
    /// The loopback interface of this machine.
    Loopback,
    /// A pair of veth devices between two hosts.
    Link(Box<TwoHosts>),
}

/// kbytes/s of the file, a value a run.
#[derive(Clone, Debug, Default)]
pub(super) struct WireRuns {
    /// By the processor time of both ends, as on one processor that has nothing else to do.
    pub(super) processor: RunValues,
    /// By the clock on the wall.
    pub(super) wall: RunValues,
}

/// What one end took.
struct EndTimes {
    bytes: usize,
    processor: Duration,
    wall: Duration,
}

impl Wire {
    /// A real link, over which packets go one by one.
    pub(super) fn link() -> Result<Wire, Error> {
        let spec = LinkSpec { offloads: Offloads::Off, ..LinkSpec::unshaped() };
        Ok(Wire::Link(Box::new(TwoHosts::direct(spec)?)))
    }

    /// One connection, over which the file goes again and again until the sender has used half of `least`; adds what it took, if it
    /// is to count.
    pub(super) fn run(
        &self,
        settings: SkipSettings,
        file: &Arc<[u8]>,
        least: Duration,
        counts: Option<&mut WireRuns>,
    ) -> Result<(), Error> {
        let [near, far] = self.connected()?;
        let doing = format!("send a file with {}", settings.combination);
        let ends = thread::scope(|scope| {
            let sender = scope.spawn(|| send(near, settings, file, least / 2));
            let receiver = scope.spawn(|| receive(far, settings, file));
            let join = |end: thread::ScopedJoinHandle<'_, io::Result<EndTimes>>| {
                end.join().unwrap_or_else(|why| std::panic::resume_unwind(why))
            };
            // A receiver that gives up tells more than the sender whose connection it breaks.
            let (sender, receiver) = (join(sender), join(receiver));
            receiver.and_then(|receiver| sender.map(|sender| [sender, receiver]))
        });
        let [sender, receiver] = ends.map_err(Error::doing(doing))?;
        if let Some(runs) = counts {
            runs.processor.push(kbytes(receiver.bytes, sender.processor + receiver.processor));
            runs.wall.push(kbytes(receiver.bytes, sender.wall));
        }
        Ok(())
    }

    /// Both ends of a connection.
    fn connected(&self) -> Result<[TcpStream; 2], Error> {
        let bind = |address: IpAddr| TcpListener::bind((address, 0));
        let (listener, near) = match self {
            Wire::Loopback => {
                let listener = bind(Ipv4Addr::LOCALHOST.into())
                    .map_err(Error::doing("listen on the loopback interface"))?;
                let near = listener.local_addr().and_then(TcpStream::connect);
                (listener, near.map_err(Error::doing("connect over the loopback interface"))?)
            }
            Wire::Link(hosts) => {
                let listener = hosts.b.run("listen for a file", || bind(hosts.address_of_b().0))?;
                let near = hosts.a.run("connect", || TcpStream::connect(listener.local_addr()?))?;
                (listener, near)
            }
        };
        let ends = listener.accept().and_then(|(far, _)| {
            for end in [&near, &far] {
                end.set_read_timeout(Some(PATIENCE))?;
                end.set_write_timeout(Some(PATIENCE))?;
            }
            Ok([near, far])
        });
        ends.map_err(Error::doing("connect two ends"))
    }
}

/// Sends packets with their lengths before them until its processor time is up, then a length of zero, and waits until that was seen.
fn send(mut stream: TcpStream, settings: SkipSettings, file: &[u8], least: Duration) -> io::Result<EndTimes> {
    // Both ends on one processor, as on the loopback interface of a machine that has no more.
    let _ = pin(0);
    let mut sender = SkipSender::new(settings, Random::new(SEED)).map_err(io::Error::other)?;
    let (mut out, mut packet) = (Vec::with_capacity(CHUNK), Vec::with_capacity(PACKET_MAX));
    let (start, clock) = (ThreadMoment::now(), Instant::now());
    let (mut bytes, mut batch, mut left, mut looked) = (0, BATCH, BATCH, Duration::ZERO);
    for part in std::iter::repeat_with(|| file.chunks(PAYLOAD)).flatten() {
        if left == 0 {
            let passed = start.elapsed();
            if passed >= least || clock.elapsed() >= least * LATEST {
                break;
            }
            // However fast it goes, reading the clock does not show.
            if passed.saturating_sub(looked) < least / LOOKS {
                batch *= 2;
            }
            (left, looked) = (batch, passed);
        }
        left -= 1;
        sender.seal(part, &mut packet).map_err(io::Error::other)?;
        out.extend_from_slice(&(packet.len() as u16).to_be_bytes());
        out.extend_from_slice(&packet);
        bytes += part.len();
        if out.len() + PACKET_MAX + 2 > CHUNK {
            stream.write_all(&out)?;
            out.clear();
        }
    }
    out.extend_from_slice(&0_u16.to_be_bytes());
    stream.write_all(&out)?;
    stream.read_exact(&mut [0])?;
    Ok(EndTimes { bytes, processor: start.elapsed(), wall: clock.elapsed() })
}

/// Opens packets, and compares each with the file.
fn receive(stream: TcpStream, settings: SkipSettings, file: &[u8]) -> io::Result<EndTimes> {
    let _ = pin(0);
    let mut receiver = SkipReceiver::new(settings).map_err(io::Error::other)?;
    let mut stream = BufReader::with_capacity(CHUNK, stream);
    let mut packet = [0; PACKET_MAX];
    let (start, clock) = (ThreadMoment::now(), Instant::now());
    let (mut bytes, mut len) = (0, [0; 2]);
    let mut parts = std::iter::repeat_with(|| file.chunks(PAYLOAD)).flatten();
    loop {
        stream.read_exact(&mut len)?;
        let len = usize::from(u16::from_be_bytes(len));
        if len == 0 {
            break;
        }
        let packet = packet.get_mut(..len).ok_or(io::ErrorKind::InvalidData)?;
        stream.read_exact(packet)?;
        let opened = receiver.open(packet).map_err(io::Error::other)?;
        if parts.next() != Some(opened) {
            return Err(io::Error::other("the file arrived damaged"));
        }
        bytes += opened.len();
    }
    stream.get_mut().write_all(&[1])?;
    Ok(EndTimes { bytes, processor: start.elapsed(), wall: clock.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::enskip::algorithm::Combination;

    fn all(wire: &Wire) {
        let file: Arc<[u8]> = (0..5 * PAYLOAD + 3).map(|at| at as u8).collect();
        let mut runs = WireRuns::default();
        for combination in Combination::all() {
            let settings = SkipSettings::of(combination);
            wire.run(settings, &file, Duration::from_micros(10), Some(&mut runs)).unwrap();
            wire.run(settings, &file, Duration::from_micros(10), None).unwrap();
        }
        for values in [&runs.processor, &runs.wall] {
            assert_eq!(values.values().len(), Combination::COUNT);
            assert!(values.values().iter().all(|it| it.is_finite() && *it > 0.0), "{values:?}");
        }
    }

    #[test]
    fn every_combination_arrives_over_the_loopback_interface() {
        all(&Wire::Loopback);
    }

    #[test]
    fn every_combination_arrives_over_a_link() {
        if strait_testbed::sandbox::allows_hosts() {
            let wire = Wire::link().unwrap();
            all(&wire);
            let Wire::Link(hosts) = wire else { unreachable!("it was just made") };
            assert!(
                hosts.link.traffic().unwrap().there.bytes > (Combination::COUNT * BATCH * PAYLOAD) as u64
            );
        }
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let [near, far] = Wire::Loopback.connected().unwrap();
        let settings = SkipSettings::of(Combination::of(0, false));
        let receiver = thread::spawn(move || receive(far, settings, &[7; 100]).map(|it| it.bytes));
        let sent = send(near, settings, &[8; 100], Duration::ZERO);
        assert!(receiver.join().unwrap().unwrap_err().to_string().contains("damaged"));
        assert!(sent.is_err());
    }
}
