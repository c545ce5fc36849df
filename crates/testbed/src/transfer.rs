//! A file over plain TCP between ordinary sockets of two hosts, compared byte by byte where it arrives.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::connect::connect;
use crate::{Error, Namespace, interrupt};

/// How often progress is told, and how soon a thread notices that it should give up.
const TICK: Duration = Duration::from_millis(50);

/// Bytes a read or write call moves at most.
const CHUNK: usize = 64 * 1024;

/// The receiver's answer when everything arrived as it was sent.
const COMPLETE: u64 = u64::MAX;

/// One file on its way from one host to another.
#[derive(Clone, Debug)]
pub struct Transfer<'a> {
    /// Where it is.
    pub from: &'a Namespace,
    /// Where it goes.
    pub to: &'a Namespace,
    /// The receiving host's address, which decides the way the bytes take.
    pub address: IpAddr,
    /// The file's name, for messages.
    pub name: &'a str,
    /// Its content.
    pub content: &'a Arc<[u8]>,
    /// How long it may stand still before it is given up.
    pub patience: Duration,
}

/// What both threads of a transfer share.
#[derive(Debug, Default)]
struct TransferState {
    received: AtomicU64,
    cancelled: AtomicBool,
}

impl Transfer<'_> {
    /// Moves the file and says how long it took, from the call to `connect` until the sender knows that the last
    /// byte arrived and every byte was right. `progress` is told the bytes that have arrived.
    ///
    /// # Errors
    /// [`Error::TooSlow`] when it stands still for longer than the patience, [`Error::Damaged`] when other bytes
    /// arrive, [`Error::Interrupted`] on a signal, [`Error::System`] when a connection cannot be made or breaks.
    pub fn run(&self, progress: &mut dyn FnMut(u64)) -> Result<Duration, Error> {
        let listener = self.to.run("listen for a file", || TcpListener::bind((self.address, 0)))?;
        let target = listener.local_addr().map_err(Error::doing("find the port that was chosen"))?;
        let shared = Arc::new(TransferState::default());
        let (done, outcome) = mpsc::channel();
        self.start_receiver(listener, &shared)?;
        self.start_sender(target, &shared, done)?;
        let result = self.watch(&shared, &outcome, progress);
        shared.cancelled.store(true, Ordering::Relaxed);
        result
    }

    fn start_receiver(&self, listener: TcpListener, shared: &Arc<TransferState>) -> Result<(), Error> {
        let (shared, content) = (Arc::clone(shared), Arc::clone(self.content));
        thread::Builder::new()
            .name("receiver".to_owned())
            .spawn(move || receive(&listener, &content, &shared))
            .map(|_| ())
            .map_err(Error::doing("start the receiver"))
    }

    fn start_sender(
        &self,
        target: SocketAddr,
        shared: &Arc<TransferState>,
        done: Sender<io::Result<(Duration, u64)>>,
    ) -> Result<(), Error> {
        let (shared, content, patience) = (Arc::clone(shared), Arc::clone(self.content), self.patience);
        let control = self.from.congestion_control();
        self.from
            .spawn(move || {
                let start = Instant::now();
                let connected = connect(target, control, patience);
                let _ = done.send(connected.and_then(|stream| send(stream, start, &content, &shared)));
                Ok(())
            })
            .map(|_| ())
    }

    fn watch(
        &self,
        shared: &TransferState,
        outcome: &Receiver<io::Result<(Duration, u64)>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Duration, Error> {
        let (mut seen, mut moved) = (0, Instant::now());
        loop {
            let answer = outcome.recv_timeout(TICK);
            let received = shared.received.load(Ordering::Relaxed);
            if received != seen {
                (seen, moved) = (received, Instant::now());
                progress(received);
            }
            match answer {
                Ok(Ok((took, COMPLETE))) => return Ok(took),
                Ok(Ok((_, at))) => {
                    let at = usize::try_from(at).unwrap_or(usize::MAX);
                    return Err(Error::Damaged { file: self.name.to_owned(), at });
                }
                Ok(Err(source)) if moved.elapsed() < self.patience => {
                    return Err(Error::System { doing: self.doing(), source });
                }
                Err(RecvTimeoutError::Timeout) if moved.elapsed() < self.patience => interrupt::check()?,
                _ => return Err(self.stuck(seen)),
            }
        }
    }

    fn doing(&self) -> String {
        format!("send {} from {} to {} at {}", self.name, self.from.name(), self.to.name(), self.address)
    }

    fn stuck(&self, received: u64) -> Error {
        let what = format!(
            "{} from {} to {} at {} stood still at {received} of {} bytes",
            self.name,
            self.from.name(),
            self.to.name(),
            self.address,
            self.content.len()
        );
        Error::TooSlow { what, waited: self.patience, said: String::new() }
    }
}

/// Sends everything and waits for the receiver's answer.
fn send(
    mut stream: TcpStream,
    start: Instant,
    content: &[u8],
    shared: &TransferState,
) -> io::Result<(Duration, u64)> {
    stream.set_write_timeout(Some(TICK))?;
    stream.set_read_timeout(Some(TICK))?;
    let mut sent = 0;
    while let Some(rest) = content.get(sent..).filter(|rest| !rest.is_empty()) {
        sent += patiently(shared, || stream.write(rest.get(..CHUNK).unwrap_or(rest)))?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = [0_u8; 8];
    let mut got = 0;
    while let Some(room) = answer.get_mut(got..).filter(|room| !room.is_empty()) {
        match patiently(shared, || stream.read(room))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => got += count,
        }
    }
    Ok((start.elapsed(), u64::from_be_bytes(answer)))
}

/// Accepts one connection, compares what arrives with what should, and answers. Failures show at the sender.
fn receive(listener: &TcpListener, content: &[u8], shared: &TransferState) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (mut stream, _) =
        patiently(shared, || listener.accept().inspect_err(|_| thread::sleep(Duration::from_millis(1))))?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TICK))?;
    let mut buffer = vec![0_u8; CHUNK];
    let mut at = 0;
    let verdict = loop {
        let count = patiently(shared, || stream.read(&mut buffer))?;
        let (got, expected) =
            (buffer.get(..count).unwrap_or_default(), content.get(at..).unwrap_or_default());
        if let Some(wrong) = first_difference(got, expected) {
            break (at + wrong) as u64;
        }
        at += count;
        shared.received.store(at as u64, Ordering::Relaxed);
        if count == 0 {
            break if at == content.len() { COMPLETE } else { at as u64 };
        }
    };
    stream.write_all(&verdict.to_be_bytes())
}

/// Where `got` stops being the beginning of `expected`.
pub(crate) fn first_difference(got: &[u8], expected: &[u8]) -> Option<usize> {
    match got.iter().zip(expected).position(|(left, right)| left != right) {
        None if got.len() > expected.len() => Some(expected.len()),
        other => other,
    }
}

/// Repeats `attempt` while it only times out, until the transfer is cancelled.
fn patiently<T>(shared: &TransferState, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if is_pause(&error) && !shared.cancelled.load(Ordering::Relaxed) => {}
            result => return result,
        }
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences() {
        for (got, expected, at) in [
            (&b""[..], &b"abc"[..], None),
            (b"abc", b"abcd", None),
            (b"abc", b"abc", None),
            (b"abd", b"abc", Some(2)),
            (b"abcd", b"abc", Some(3)),
            (b"x", b"", Some(0)),
        ] {
            assert_eq!(first_difference(got, expected), at);
        }
    }
}
