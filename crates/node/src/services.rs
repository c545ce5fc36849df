//! Streams that peers open, for the process that serves them: a message each, with the stream's descriptor.
//!
//! That process opens nothing that a peer names. It has a process made for each stream ([`ServiceWorkers`]), which goes on as the
//! user whose files are meant, without any privilege.

mod limit;
mod workers;

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use strait_kerberos::Binding;

use crate::process::ProcessChannel;
pub use limit::TimeLimit;
pub(crate) use workers::unfit;
pub use workers::{Places, ServiceWorkers, WorkerLimits, serve_files};

/// How long the serving process may take to make room for a message: it takes one for each stream, and does nothing else with it.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a stream that is refused stays open, so that its client hears why: round trips of a satellite link.
pub const LINGER: Duration = Duration::from_secs(10);

/// Says the last bytes of a stream, and waits a while until the client has closed it: what it writes to a closed stream would undo
/// that. The stream has to be one that waits.
pub fn say_last(mut stream: &UnixStream, bytes: &[u8]) {
    let patient = stream.set_write_timeout(Some(LINGER));
    let told = patient.and_then(|()| stream.write_all(bytes)).and_then(|()| stream.shutdown(Shutdown::Write));
    let (begun, mut rest) = (Instant::now(), [0; 4096]);
    while told.is_ok()
        && let Some(left) = LINGER.checked_sub(begun.elapsed()).filter(|left| !left.is_zero())
        && stream.set_read_timeout(Some(left)).is_ok()
        && matches!(stream.read(&mut rest), Ok(1..))
    {}
}

/// The name that all nodes have together which the configuration does not list; no peer is called so.
pub const UNLISTED: &str = "unlisted";

/// Who opened a stream, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamHead {
    /// The peer's name in the configuration, or [`UNLISTED`].
    pub peer: String,
    /// Its public key, 44 characters of base64.
    pub key: String,
    /// The address that its last packet came from.
    pub from: SocketAddr,
    /// The first byte of the stream: 1 files, 2 login, 3 broker, 4 login behind Kerberos.
    pub service: u8,
    /// The second: the version of the service.
    pub version: u8,
    /// What of the service is meant, for files the name of a folder: as many bytes as the third says.
    pub name: Vec<u8>,
    /// The rate of the link to the peer when it was opened, in bit/s, if it is told or was found.
    pub rate_bits: Option<u64>,
    /// The connection that carries it, for a service that begins with Kerberos.
    #[serde(default)]
    pub binding: Option<Binding>,
}

impl StreamHead {
    /// The line of the log that says what is refused, and why, as programs read it that keep hosts out (docs/guide/login.md). Nothing
    /// that comes from the peer stands before the address, nor begins a line.
    #[must_use]
    pub fn refused(&self, what: &str, why: &str) -> String {
        let (ip, port) = (self.from.ip().to_canonical(), self.from.port());
        printable(&format!("refused {what} from {ip} port {port}: {} ({}): {why}", self.peer, self.key))
    }
}

/// A text with nothing in it that controls a terminal or begins a line.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// What the serving process hears of.
#[derive(Debug)]
pub enum ServiceEvent {
    /// A stream of a peer: what follows its head.
    Stream(StreamHead, UnixStream),
    /// The node has read its configuration again.
    ConfigChanged,
    /// Nothing for a while.
    Silence,
}

/// A message to the serving process.
#[derive(Serialize, Deserialize)]
enum ServiceMessage {
    Stream(StreamHead),
    ConfigChanged,
}

/// The way by which streams reach the process that serves them.
#[derive(Debug)]
pub struct ServiceChannel(ProcessChannel);

impl ServiceChannel {
    /// The giver's end and the serving process's.
    pub(crate) fn pair() -> io::Result<(ServiceChannel, ServiceChannel)> {
        let (giver, server) = ProcessChannel::pair()?;
        giver.set_patience(PATIENCE)?;
        Ok((ServiceChannel(giver), ServiceChannel(server)))
    }

    /// Hands a stream over.
    pub(crate) fn give(&self, head: &StreamHead, stream: &UnixStream) -> io::Result<()> {
        let text = serde_json::to_vec(&ServiceMessage::Stream(head.clone()))?;
        self.0.send(&text, &[stream.as_fd()])
    }

    /// Says that the configuration was read again.
    pub(crate) fn tell_changed(&self) -> io::Result<()> {
        self.0.send(&serde_json::to_vec(&ServiceMessage::ConfigChanged)?, &[])
    }

    /// What happens next, waited for: for ever if `patience` is nothing.
    ///
    /// # Errors
    /// `UnexpectedEof` when the node has ended; others as `recvmsg(2)`.
    pub fn next(&self, patience: Option<Duration>) -> io::Result<ServiceEvent> {
        // No time at all means no limit to the system.
        self.0.set_patience(patience.unwrap_or_default())?;
        loop {
            let (text, descriptors) = match self.0.receive() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(ServiceEvent::Silence),
                received => received?,
            };
            let stream = descriptors.into_iter().next().map(UnixStream::from);
            match (serde_json::from_slice(&text), stream) {
                (Ok(ServiceMessage::Stream(head)), Some(stream)) => {
                    stream.set_nonblocking(false)?;
                    return Ok(ServiceEvent::Stream(head, stream));
                }
                (Ok(ServiceMessage::ConfigChanged), _) => return Ok(ServiceEvent::ConfigChanged),
                _ => {}
            }
        }
    }
}

impl AsFd for ServiceChannel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_arrives_with_who_opened_it_and_the_end_is_told() {
        let (giver, server) = ServiceChannel::pair().unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let (peer, key, name) = ("home".to_owned(), "key".to_owned(), b"inbox".to_vec());
        let binding = Some(Binding::new([7; 32]));
        let from = "[::ffff:192.0.2.7]:51820".parse().unwrap();
        let head =
            StreamHead { peer, key, from, service: 4, version: 1, name, rate_bits: Some(1_500_000), binding };
        assert!(matches!(server.next(Some(Duration::from_millis(1))).unwrap(), ServiceEvent::Silence));
        giver.tell_changed().unwrap();
        assert!(matches!(server.next(None).unwrap(), ServiceEvent::ConfigChanged));
        giver.give(&head, &theirs).unwrap();
        drop(theirs);
        let ServiceEvent::Stream(told, mut stream) = server.next(None).unwrap() else { panic!() };
        assert_eq!(told, head);
        ours.write_all(b"abc").unwrap();
        drop(ours);
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abc");
        drop(giver);
        assert_eq!(server.next(None).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let line = told.refused("login", "two\nlines");
        assert_eq!(line, "refused login from 192.0.2.7 port 51820: home (key): two\u{fffd}lines");
    }
}
