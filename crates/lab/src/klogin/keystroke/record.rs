//! What klogin does with each write: four bytes of length, then the data, encrypted; once in two writes, once in one (section 5).
//! TCP is that of the system, with Nagle's algorithm (RFC 896) as klogin had it. It can be told to wait with every acknowledgement
//! for an answer that carries it, as 4.3BSD did; of itself, Linux at times acknowledges at once.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::TcpStreamExt;
use std::time::{Duration, Instant};

use strait_testbed::TwoHosts;

use super::LoginSession;
use crate::error::Error;
use crate::klogin::cipher::FileCipher;

/// The service's port: eklogin (IANA).
const PORT: u16 = 2105;
/// Bytes of data of a character: what Kerberos 4 has around it, in whole blocks (the paper's traces).
const DATA: usize = 16;
/// How long an echo, or the next keystroke, may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a read waits before the system is told again how to acknowledge: less than the 40 ms for which Linux delays it.
const TOLD_EVERY: Duration = Duration::from_millis(5);

/// How a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordWrites {
    /// Length and data in a write each.
    Apart,
    /// In one, as with `writev`.
    Merged,
}

/// When segments are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordAcks {
    /// As 4.3BSD does: with an answer, or when none came for a while.
    Delayed,
    /// As Linux does.
    System,
}

/// One end of a connection that carries records.
struct RecordStream {
    stream: TcpStream,
    writes: RecordWrites,
    acks: RecordAcks,
}

impl RecordStream {
    fn write(&mut self, character: u8) -> io::Result<()> {
        // One byte fills the last block.
        let data = FileCipher::Des.encrypted(vec![character; DATA - 1]);
        let data = data.map_err(|error| io::Error::other(error.to_string()))?;
        let length = (data.len() as u32).to_be_bytes();
        match self.writes {
            RecordWrites::Apart => {
                self.stream.write_all(&length)?;
                self.stream.write_all(&data)
            }
            RecordWrites::Merged => self.stream.write_all(&[&length[..], &data].concat()),
        }
    }

    /// Reads a record.
    fn read(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.fill(&mut length)?;
        if u32::from_be_bytes(length) as usize != DATA {
            return Err(io::Error::other("a record of another length"));
        }
        self.fill(&mut [0; DATA])
    }

    /// Linux forgets at each late acknowledgement that it was to wait, so it is told again and again.
    fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let (mut filled, start) = (0, Instant::now());
        while filled < bytes.len() {
            self.tell()?;
            match self.stream.read(&mut bytes[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                Err(error) if start.elapsed() > PATIENCE => return Err(error),
                Err(_) => {}
            }
        }
        self.tell()
    }

    fn tell(&self) -> io::Result<()> {
        match self.acks {
            RecordAcks::Delayed => self.stream.set_quickack(false),
            RecordAcks::System => Ok(()),
        }
    }
}

impl LoginSession for RecordStream {
    fn press(&mut self) -> io::Result<()> {
        self.write(b'x')?;
        self.read()
    }
}

/// Both ends; the server's echoes.
pub(super) fn start(
    hosts: &TwoHosts,
    writes: RecordWrites,
    acks: RecordAcks,
) -> Result<Option<Box<dyn LoginSession>>, Error> {
    let address = SocketAddr::new(hosts.address_of_b().0, PORT);
    let listener = hosts.b.run("listen for a login", || TcpListener::bind(address))?;
    // It ends with the connection.
    hosts.b.spawn(move || {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(TOLD_EVERY))?;
        let mut server = RecordStream { stream, writes, acks };
        while server.read().is_ok() {
            server.write(b'x')?;
        }
        Ok(())
    })?;
    let stream = hosts.a.run("log in", || {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(TOLD_EVERY))?;
        Ok(stream)
    })?;
    Ok(Some(Box::new(RecordStream { stream, writes, acks })))
}
