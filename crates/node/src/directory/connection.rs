//! A connection to a directory. What comes is signed, so it is not encrypted, and who answers need not prove who it is.

use std::io::{self, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use strait_keying::directory::{Answer, BadMessage, HEAD_LEN, Question};

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
        let mut failed = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in server.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, patience) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_read_timeout(Some(patience))?;
                    stream.set_write_timeout(Some(patience))?;
                    return Ok(DirectoryConnection(BufReader::new(stream)));
                }
                Err(error) => failed = error,
            }
        }
        Err(failed)
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
        self.0.get_mut().write_all(&question.to_bytes())
    }

    /// The next answer. Its kind bounds its length before anything is allocated for it.
    ///
    /// # Errors
    /// [`DirectoryFailure`]; `WouldBlock` when none came in time.
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

/// A connection that gives what comes before a time.
struct InTime<'a> {
    connection: &'a mut BufReader<TcpStream>,
    until: Instant,
}

impl Read for InTime<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long"));
        }
        self.connection.get_ref().set_read_timeout(Some(left))?;
        self.connection.read(buffer)
    }
}

fn read_answer(connection: &mut impl Read) -> Result<Answer, DirectoryFailure> {
    let mut head = [0; HEAD_LEN + 1];
    connection.read_exact(&mut head)?;
    let [a, b, c, d, kind] = head;
    let len = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if !(1..=Answer::most(kind)).contains(&len) {
        return Err(BadMessage.into());
    }
    let mut body = vec![kind; len];
    connection.read_exact(body.get_mut(1..).unwrap_or_default())?;
    Ok(Answer::from_body(&body)?)
}
