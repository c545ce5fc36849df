//! One TCP stream between ordinary sockets of two hosts, measured where it arrives.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::connect::connect;
use crate::{Error, Namespace, interrupt};

/// Bytes a read or write call moves at most: what iperf3 uses.
const CHUNK: usize = 128 * 1024;
/// How soon a thread notices that it should end.
const TICK: Duration = Duration::from_millis(50);
/// How long a connection may take, and the first byte.
const PATIENCE: Duration = Duration::from_secs(20);

/// A stream of `content`, again and again.
#[derive(Clone, Debug)]
pub struct Stream<'a> {
    /// The sending host.
    pub from: &'a Namespace,
    /// The receiving host.
    pub to: &'a Namespace,
    /// Where it listens, which decides the way the bytes take; port 0 is any.
    pub address: SocketAddr,
    /// What is sent.
    pub content: &'a Arc<[u8]>,
    /// What passes before measuring starts, counted from the first byte.
    pub warm_up: Duration,
    /// How long is measured.
    pub window: Duration,
}

/// What arrived in the window, and what was seen at its edges.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<T> {
    /// Bytes.
    pub bytes: u64,
    /// The window's true length.
    pub took: Duration,
    /// What `look` saw at its beginning.
    pub before: T,
    /// What `look` saw at its end.
    pub after: T,
}

impl<T> Arrived<T> {
    /// Bits a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.took.as_secs_f64()
    }
}

/// What the threads of a stream share.
#[derive(Debug, Default)]
struct StreamState {
    received: AtomicU64,
    stop: AtomicBool,
}

impl Stream<'_> {
    /// Runs the stream; `look` is called at both edges of the window.
    ///
    /// # Errors
    /// [`Error::TooSlow`] when nothing arrives, [`Error::Interrupted`], [`Error::System`], or what `look` fails with.
    pub fn run<T, E: From<Error>>(&self, mut look: impl FnMut() -> Result<T, E>) -> Result<Arrived<T>, E> {
        let running = self.start()?;
        let measured = self.measure(&running.shared, &mut look);
        running.stop()?;
        measured
    }

    /// Starts the stream and leaves it to the caller when to look and when to end; warm-up and window mean nothing then.
    ///
    /// # Errors
    /// [`Error::System`] when nothing can listen or no thread be started.
    pub fn start(&self) -> Result<RunningStream, Error> {
        let listener = self.to.run("listen for a stream", || TcpListener::bind(self.address))?;
        let target = listener.local_addr().map_err(Error::doing("find the port that was chosen"))?;
        let shared = Arc::new(StreamState::default());
        let receiver = self.to.spawn({
            let shared = Arc::clone(&shared);
            move || receive(&listener, &shared)
        })?;
        let sender = self.from.spawn({
            let (shared, content) = (Arc::clone(&shared), Arc::clone(self.content));
            let control = self.from.congestion_control();
            move || send(connect(target, control, PATIENCE)?, &content, &shared)
        });
        if sender.is_err() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        Ok(RunningStream { shared, receiver, sender: sender? })
    }

    fn measure<T, E: From<Error>>(
        &self,
        shared: &StreamState,
        look: &mut impl FnMut() -> Result<T, E>,
    ) -> Result<Arrived<T>, E> {
        self.wait_for_first_byte(shared)?;
        interrupt::pause(self.warm_up)?;
        let (before, start) = (look()?, Instant::now());
        let first = shared.received.load(Ordering::Relaxed);
        interrupt::pause(self.window)?;
        let (last, took) = (shared.received.load(Ordering::Relaxed), start.elapsed());
        let after = look()?;
        match last - first {
            0 => Err(self.silent().into()),
            bytes => Ok(Arrived { bytes, took, before, after }),
        }
    }

    fn wait_for_first_byte(&self, shared: &StreamState) -> Result<(), Error> {
        let start = Instant::now();
        while shared.received.load(Ordering::Relaxed) == 0 {
            interrupt::check()?;
            if start.elapsed() > PATIENCE {
                return Err(self.silent());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn silent(&self) -> Error {
        let what = format!("nothing of a TCP stream to {} arrived", self.address.ip());
        Error::TooSlow { what, waited: PATIENCE, said: String::new() }
    }
}

/// A stream that goes on until it is stopped.
#[derive(Debug)]
pub struct RunningStream {
    shared: Arc<StreamState>,
    receiver: JoinHandle<io::Result<()>>,
    sender: JoinHandle<io::Result<()>>,
}

impl RunningStream {
    /// Bytes that have arrived so far.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.shared.received.load(Ordering::Relaxed)
    }

    /// Ends it.
    ///
    /// # Errors
    /// [`Error::System`] when it failed meanwhile.
    pub fn stop(self) -> Result<(), Error> {
        self.shared.stop.store(true, Ordering::Relaxed);
        // The receiver goes first: what is still on its way is refused, so the sender's buffers are not drained.
        Namespace::join(self.receiver, "receive a stream")?;
        Namespace::join(self.sender, "send a stream")
    }
}

/// Sends until it is told to stop or the receiver goes away.
fn send(mut stream: TcpStream, content: &[u8], shared: &StreamState) -> io::Result<()> {
    stream.set_write_timeout(Some(TICK))?;
    let mut at = 0;
    while !shared.stop.load(Ordering::Relaxed) {
        let rest = content.get(at..).filter(|rest| !rest.is_empty()).unwrap_or(content);
        at = content.len() - rest.len();
        match stream.write(rest.get(..CHUNK).unwrap_or(rest)) {
            Ok(sent) => at += sent,
            Err(error) if is_pause(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Counts what arrives until it is told to stop, then closes with bytes unread, which resets the connection.
fn receive(listener: &TcpListener, shared: &StreamState) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if is_pause(&error) && !shared.stop.load(Ordering::Relaxed) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) if is_pause(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TICK))?;
    let mut buffer = vec![0_u8; CHUNK];
    while !shared.stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                shared.received.fetch_add(count as u64, Ordering::Relaxed);
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LinkSpec, TwoHosts, sandbox};

    #[test]
    fn a_stream_is_counted_where_it_arrives_and_ends() {
        if !sandbox::allows_hosts() {
            return;
        }
        let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
        let stream = Stream {
            from: &hosts.a,
            to: &hosts.b,
            address: SocketAddr::new(hosts.address_of_b().0, 0),
            content: &vec![7; 100_000].into(),
            warm_up: Duration::ZERO,
            window: Duration::from_millis(100),
        };
        let mut looks = 0;
        let arrived = stream.run(|| {
            looks += 1;
            Ok::<_, Error>(looks)
        });
        let arrived = arrived.unwrap();
        assert_eq!((arrived.before, arrived.after), (1, 2));
        let carried = hosts.link.traffic().unwrap().there.bytes;
        assert!(arrived.bytes > 0 && arrived.bytes <= carried, "{} of {carried}", arrived.bytes);
        assert!(arrived.rate() > 0.0);
    }
}
