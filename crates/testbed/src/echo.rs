//! Bytes echoed over TCP, in both directions at once: the echo service (RFC 862), which every [`crate::Guest`] has as well.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::transfer::first_difference;
use crate::{Error, Namespace};

/// The service's port (RFC 862).
const PORT: u16 = 7;

/// How often the service looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(10);

/// How long a caller may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

/// A host's echo service; dropped, it takes no more calls.
#[derive(Debug)]
pub struct EchoService {
    wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EchoService {
    /// Starts the service at all addresses of `host`, those that come later included.
    ///
    /// # Errors
    /// [`Error::System`] when the port is taken.
    pub fn start(host: &Namespace) -> Result<EchoService, Error> {
        let listener = host.run("listen for calls", || {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        })?;
        let wanted = Arc::new(AtomicBool::new(true));
        let thread = thread::Builder::new().name(format!("echo-{}", host.name())).spawn({
            let wanted = Arc::clone(&wanted);
            move || serve(&listener, &wanted)
        });
        Ok(EchoService { wanted, thread: Some(thread.map_err(Error::doing("start an echo service"))?) })
    }

    /// Sends `content` from `host` to the service at `address`, and compares what comes back meanwhile.
    ///
    /// # Errors
    /// [`Error::System`] when the call cannot be made, breaks or stands still for longer than `patience`,
    /// [`Error::Damaged`] when other bytes come back.
    pub fn call(host: &Namespace, address: IpAddr, content: &[u8], patience: Duration) -> Result<(), Error> {
        let received = host.run(&format!("call {address}"), || {
            let stream = TcpStream::connect_timeout(&SocketAddr::new(address, PORT), patience)?;
            stream.set_read_timeout(Some(patience))?;
            stream.set_write_timeout(Some(patience))?;
            exchange(&stream, content)
        })?;
        match first_difference(&received, content) {
            None if received.len() == content.len() => Ok(()),
            at => Err(Error::Damaged {
                file: format!("what {address} sent back"),
                at: at.unwrap_or(received.len()),
            }),
        }
    }
}

impl Drop for EchoService {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Takes calls, each on a thread of its own, as long as that is wanted.
fn serve(listener: &TcpListener, wanted: &AtomicBool) {
    while wanted.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, _)) => drop(thread::spawn(move || echo(&stream))),
            Err(_) => thread::sleep(TICK),
        }
    }
}

/// Sends back what comes until the caller has said everything.
fn echo(mut stream: &TcpStream) -> io::Result<u64> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    io::copy(&mut { stream }, &mut stream)
}

/// Sends `content` and receives all that comes, at the same time: neither end has room for everything.
fn exchange(stream: &TcpStream, content: &[u8]) -> io::Result<Vec<u8>> {
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            { stream }.write_all(content)?;
            stream.shutdown(Shutdown::Write)
        });
        let mut received = Vec::new();
        let result = { stream }.read_to_end(&mut received);
        let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender panicked")));
        result.and(sent).map(|()| received)
    })
}
