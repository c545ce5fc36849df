//! Datagrams from one host to another, so many of them on their way at once, and how long lies between two that arrive.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use strait_node::socket_buffer::SocketBuffer;

use crate::{Error, Namespace, interrupt, listen};

/// Bytes of the longest datagram.
const ROOM: usize = 65_536;
/// Bytes of the receiver's buffer: some dozen of the longest, as the kernel counts them.
const BUFFER: libc::c_int = 8 << 20;
/// The time between two looks of a waiting sender.
const TICK: Duration = Duration::from_millis(50);
/// The time after which a datagram that has not arrived is taken for lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Datagrams that go on from one host to another.
#[derive(Clone, Copy, Debug)]
pub struct DatagramStream<'a> {
    /// The host that sends.
    pub from: &'a Namespace,
    /// The host that receives.
    pub to: &'a Namespace,
    /// The receiver's address and port.
    pub address: SocketAddr,
    /// Payloads that are sent, one after the other and again from the first.
    pub contents: &'a Arc<[Vec<u8>]>,
    /// So many are on their way at once, at most.
    pub ahead: usize,
    /// The time without an arrival after which those on their way are taken for lost.
    pub silence: Duration,
}

/// Datagrams on their way until this value is dropped.
#[derive(Debug)]
pub struct RunningDatagrams {
    state: Arc<DatagramState>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// State that the sender and the receiver share.
#[derive(Debug, Default)]
struct DatagramState {
    arrived: Mutex<DatagramArrivals>,
    news: Condvar,
    stop: AtomicBool,
}

/// Datagrams that have arrived, and the newest of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramArrivals {
    /// Their number.
    pub count: u64,
    /// The moment of the newest; nothing where none has.
    pub last: Option<Instant>,
}

impl DatagramStream<'_> {
    /// Starts it.
    ///
    /// # Errors
    /// [`Error::System`] when there is no socket or no thread.
    pub fn start(&self) -> Result<RunningDatagrams, Error> {
        let socket = self.to.run("listen for datagrams", || UdpSocket::bind(self.address))?;
        // In a user namespace, as much as the system gives everybody.
        let _ = SocketBuffer::Receive.enlarge(&socket, BUFFER);
        let any = if self.address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let sender = self.from.run("open a socket for datagrams", || UdpSocket::bind(any))?;
        let state = Arc::new(DatagramState::default());
        let mut running = RunningDatagrams { state: Arc::clone(&state), threads: Vec::new() };
        let heard = Arc::clone(&state);
        running.threads.push(self.to.spawn(move || {
            listen(&socket, ROOM, &heard.stop, |_, _| {
                heard.note();
                Ok(())
            })
        })?);
        let (contents, target) = (Arc::clone(self.contents), self.address);
        let window = (self.ahead as u64, self.silence);
        running.threads.push(self.from.spawn(move || send(&sender, target, &contents, window, &state))?);
        Ok(running)
    }
}

impl RunningDatagrams {
    /// Datagrams that have arrived so far.
    #[must_use]
    pub fn arrivals(&self) -> DatagramArrivals {
        *self.state.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this many have arrived, and at least for `span`; gives what has arrived then.
    ///
    /// # Errors
    /// [`Error::TooSlow`] when none comes for a minute, [`Error::Interrupted`] on a signal.
    pub fn wait(&self, count: u64, span: Duration) -> Result<DatagramArrivals, Error> {
        let begin = Instant::now();
        loop {
            interrupt::check()?;
            let arrived = self.arrivals();
            if arrived.count >= count && begin.elapsed() >= span {
                return Ok(arrived);
            }
            if arrived.last.map_or(begin, |last| last.max(begin)).elapsed() > PATIENCE {
                let what = format!("no more than {} datagrams arrived", arrived.count);
                return Err(Error::TooSlow { what, waited: PATIENCE, said: String::new() });
            }
            let arrived = self.state.arrived.lock().unwrap_or_else(PoisonError::into_inner);
            let rest = span.saturating_sub(begin.elapsed()).clamp(Duration::from_millis(1), TICK);
            drop(self.state.news.wait_timeout(arrived, rest));
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`Error::System`] when a socket failed.
    pub fn stop(mut self) -> Result<(), Error> {
        self.state.stop.store(true, Ordering::Relaxed);
        let mut threads = std::mem::take(&mut self.threads).into_iter();
        threads.try_for_each(|thread| Namespace::join(thread, "send datagrams"))
    }
}

impl Drop for RunningDatagrams {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
    }
}

impl DatagramArrivals {
    /// Datagrams after `earlier`, and the seconds from its newest to this one's.
    #[must_use]
    pub fn since(self, earlier: DatagramArrivals) -> Option<(u64, f64)> {
        let count = self.count.checked_sub(earlier.count).filter(|count| *count > 0)?;
        Some((count, self.last?.duration_since(earlier.last?).as_secs_f64()))
    }
}

impl DatagramState {
    fn note(&self) {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *arrived = DatagramArrivals { count: arrived.count + 1, last: Some(Instant::now()) };
        self.news.notify_all();
    }

    fn count(&self) -> u64 {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Waits until so many have arrived, or for the end; false if none came for so long.
    fn wait_for(&self, count: u64, silence: Duration) -> bool {
        let begin = Instant::now();
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        while arrived.count < count && !self.stop.load(Ordering::Relaxed) {
            if arrived.last.map_or(begin, |last| last.max(begin)).elapsed() > silence {
                return false;
            }
            let waited = self.news.wait_timeout(arrived, TICK);
            arrived = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// Sends until `state` says stop.
fn send(
    socket: &UdpSocket,
    target: SocketAddr,
    contents: &[Vec<u8>],
    (ahead, silence): (u64, Duration),
    state: &DatagramState,
) -> io::Result<()> {
    socket.set_write_timeout(Some(TICK))?;
    let mut lost = 0;
    for (sent, content) in (1..).zip(contents.iter().cycle()) {
        if !state.wait_for(u64::saturating_sub(sent, ahead + lost), silence) {
            lost = sent - 1 - state.count();
        }
        while !state.stop.load(Ordering::Relaxed) {
            match socket.send_to(content, target) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        if state.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InterfaceState, LinkSpec, TwoHosts, sandbox};

    #[test]
    fn datagrams_are_counted_and_never_more_of_them_than_said_are_on_their_way() {
        if !sandbox::allows_hosts() {
            return;
        }
        let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
        let address = SocketAddr::new(hosts.address_of_b().0, 7_000);
        let contents: Arc<[Vec<u8>]> = vec![vec![1; 100], vec![2; 60_000]].into();
        let (from, to, silence) = (&hosts.a, &hosts.b, Duration::from_secs(1));
        let stream = DatagramStream { from, to, address, contents: &contents, ahead: 3, silence };
        let running = stream.start().unwrap();
        let first = running.wait(5, Duration::ZERO).unwrap();
        let later = running.wait(first.count + 20, Duration::from_millis(20)).unwrap();
        let (count, seconds) = later.since(first).unwrap();
        assert!(count >= 20 && seconds > 0.0, "{count} in {seconds}");
        assert_eq!(first.since(first), None);
        running.stop().unwrap();
        let sent = hosts.link.traffic().unwrap().there.packets;
        assert!(sent >= later.count, "{sent}");
    }

    #[test]
    fn what_is_lost_does_not_hold_up_what_comes_later() {
        if !sandbox::allows_hosts() {
            return;
        }
        let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
        let address = SocketAddr::new(hosts.address_of_b().0, 7_000);
        let contents: Arc<[Vec<u8>]> = vec![vec![1; 100]].into();
        hosts.link.b.set_state(InterfaceState::Down).unwrap();
        let (from, to, silence) = (&hosts.a, &hosts.b, Duration::from_millis(50));
        let stream = DatagramStream { from, to, address, contents: &contents, ahead: 2, silence };
        let running = stream.start().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(running.arrivals().count, 0);
        hosts.link.b.set_state(InterfaceState::Up).unwrap();
        running.wait(100, Duration::ZERO).unwrap();
        running.stop().unwrap();
    }
}
