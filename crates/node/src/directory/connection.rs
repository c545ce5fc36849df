//! A connection to a directory. What comes is signed, so it is not encrypted, and who answers need not prove who it is.

use std::io::{self, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use strait_keying::directory::{Answer, BadMessage, HEAD_LEN, Question};
use strait_keying::{ATTEMPT_DELAY, MOST_ADDRESSES, in_turn};

use crate::units::span;

/// What a connection failed by.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryFailure {
    /// It is not reached, or does not answer.
    #[error("{0}")]
    System(#[from] io::Error),
    /// What came is no answer.
    #[error("what answered is no directory, or another version of one")]
    Malformed(#[from] BadMessage),
    /// It refuses.
    #[error("the directory refuses: {0}")]
    Refused(String),
}

/// A connection to a directory.
#[derive(Debug)]
pub struct DirectoryConnection(BufReader<TcpStream>);

impl DirectoryConnection {
    /// Connects to `server`, `host:port`; each step from now on may take as long as `patience`.
    ///
    /// # Errors
    /// As `connect(2)`; of several addresses, what the last failed by.
    pub fn open(server: &str, patience: Duration) -> io::Result<DirectoryConnection> {
        let (begun, addresses) = (Instant::now(), in_turn(server.to_socket_addrs()?.collect()));
        let stream = dial(addresses, patience).map_err(|error| why_not(error, begun))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(DirectoryConnection(BufReader::new(stream)))
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`DirectoryFailure`].
    pub fn ask(&mut self, question: &Question) -> Result<Answer, DirectoryFailure> {
        self.say(question)?;
        match self.hear()? {
            Answer::Refused(words) => Err(DirectoryFailure::Refused(words)),
            answer => Ok(answer),
        }
    }

    /// Asks without waiting. Answers come in the order of the questions.
    ///
    /// # Errors
    /// As `write(2)`.
    pub fn say(&mut self, question: &Question) -> io::Result<()> {
        let begun = Instant::now();
        self.0.get_mut().write_all(&question.to_bytes()).map_err(|error| why_not(error, begun))
    }

    /// The next answer. Its kind bounds its length before anything is allocated for it.
    ///
    /// # Errors
    /// [`DirectoryFailure`]; `TimedOut` when none came in time.
    pub fn hear(&mut self) -> Result<Answer, DirectoryFailure> {
        read_answer(&mut self.0)
    }

    /// The same, if all of it is there at `until`, however few bytes come at a time.
    ///
    /// # Errors
    /// As [`DirectoryConnection::hear`].
    pub fn hear_until(&mut self, until: Instant) -> Result<Answer, DirectoryFailure> {
        read_answer(&mut InTime { connection: &mut self.0, until })
    }

    /// Another handle of its socket, by which another thread may end it.
    ///
    /// # Errors
    /// As `dup(2)`.
    pub fn socket(&self) -> io::Result<TcpStream> {
        self.0.get_ref().try_clone()
    }
}

/// Connects to the first of `addresses` that answers: each further one is tried when those before it have had
/// [`ATTEMPT_DELAY`] or failed, as RFC 8305 has it. Those that are not needed end by themselves, after `patience` at most.
fn dial(addresses: Vec<SocketAddr>, patience: Duration) -> io::Result<TcpStream> {
    if let [only] = *addresses {
        return TcpStream::connect_timeout(&only, patience);
    }
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let (answers, answered) = mpsc::channel();
    let mut left = addresses.into_iter().take(MOST_ADDRESSES);
    let mut under_way = 0;
    loop {
        if let Some(address) = left.next() {
            let answers = answers.clone();
            let connect = move || drop(answers.send(TcpStream::connect_timeout(&address, patience)));
            thread::Builder::new().name("strait-dial".to_owned()).spawn(connect)?;
            under_way += 1;
        }
        if under_way == 0 {
            return Err(failed);
        }
        match answered.recv_timeout(if left.len() > 0 { ATTEMPT_DELAY } else { patience }) {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => (failed, under_way) = (error, under_way - 1),
            Err(_) => {}
        }
    }
}

/// A connection that gives what comes before a time.
struct InTime<'a> {
    connection: &'a mut BufReader<TcpStream>,
    until: Instant,
}

impl Read for InTime<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.connection.get_ref().set_read_timeout(Some(left))?;
        self.connection.read(buffer)
    }
}

/// The failure of a read or a write that began then, with what it means where the system has only a name for it.
fn why_not(error: io::Error, begun: Instant) -> io::Error {
    let words = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            let waited = span(begun.elapsed());
            return io::Error::new(io::ErrorKind::TimedOut, format!("no answer for {waited}"));
        }
        io::ErrorKind::UnexpectedEof => "it closed the connection",
        _ => return error,
    };
    io::Error::new(error.kind(), words)
}

fn read_answer(connection: &mut impl Read) -> Result<Answer, DirectoryFailure> {
    let begun = Instant::now();
    let mut head = [0; HEAD_LEN + 1];
    connection.read_exact(&mut head).map_err(|error| why_not(error, begun))?;
    let [a, b, c, d, kind] = head;
    let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if !(1..=Answer::most(kind)).contains(&len) {
        return Err(BadMessage.into());
    }
    let mut body = vec![kind; len];
    let read = connection.read_exact(body.get_mut(1..).unwrap_or_default());
    read.map_err(|error| why_not(error, begun))?;
    Ok(Answer::from_body(&body)?)
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    use super::*;

    /// Longer than any test: what waits for it hangs.
    const PATIENCE: Duration = Duration::from_secs(3600);

    fn listen() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn an_address_that_does_not_answer_holds_the_next_up_for_no_longer_than_a_delay() {
        let (full, silent) = listen();
        // One connection has room in its queue, and the kernel drops what would begin others (listen(2)).
        // SAFETY: takes integers.
        assert_eq!(unsafe { libc::listen(full.as_raw_fd(), 0) }, 0);
        let _fills = TcpStream::connect(silent).unwrap();
        let (_living, living) = listen();
        let stream = dial(vec![silent, living], PATIENCE).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), living);
    }

    #[test]
    fn an_address_that_refuses_is_passed_and_the_last_refusal_is_the_error() {
        let refusing = || listen().1;
        let (_living, living) = listen();
        let stream = dial(vec![refusing(), refusing(), living], PATIENCE).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), living);
        for addresses in [vec![refusing()], vec![refusing(), refusing()]] {
            let error = dial(addresses, PATIENCE).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        }
        assert_eq!(dial(vec![], PATIENCE).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_directory_that_does_not_answer_is_said_to_be_silent_and_for_how_long() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap().to_string();
        let open = || {
            let connection = DirectoryConnection::open(&server, PATIENCE).unwrap();
            connection.0.get_ref().set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            connection
        };
        let mut connection = open();
        let said = connection.hear().unwrap_err().to_string();
        assert!(said.starts_with("no answer for ") && !said.contains("os error"), "{said}");
        let said = connection.hear_until(Instant::now() + Duration::from_millis(20)).unwrap_err().to_string();
        assert!(said.starts_with("no answer for "), "{said}");
        let mut connection = open();
        // Both that were opened.
        drop((listener.accept().unwrap(), listener.accept().unwrap()));
        assert_eq!(connection.hear().unwrap_err().to_string(), "it closed the connection");
    }
}
