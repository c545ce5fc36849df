//! The serial line of a guest: text to run, then its answer.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::{Error, interrupt};

/// How often a guest that does not answer is woken: on a busy machine a User-Mode Linux can miss that there is
/// something to read.
const WAKE: Duration = Duration::from_millis(200);

/// How long a guest may not read at all.
const STUCK: Duration = Duration::from_secs(60);

/// How much a guest is sent before it answers, in bytes: a terminal holds 4,096 (N_TTY_BUF_SIZE), and a User-Mode Linux that had
/// to stop reading may never start again.
const PIECE: usize = 2048;

/// What ends the length of a piece, and the text of an answer.
const MARK: u8 = 0;

/// This end of the line.
#[derive(Debug)]
pub(super) struct GuestLine {
    stream: UnixStream,
    received: Vec<u8>,
    /// Whether something was sent that the guest may have missed.
    asked: bool,
}

/// What came back.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A command has ended.
    Done {
        /// What it wrote.
        said: String,
        /// Its exit status.
        status: u8,
    },
    /// The guest has.
    Ended,
}

impl GuestLine {
    pub(super) fn new(stream: UnixStream) -> io::Result<GuestLine> {
        stream.set_read_timeout(Some(WAKE))?;
        stream.set_write_timeout(Some(STUCK))?;
        Ok(GuestLine { stream, received: Vec::new(), asked: false })
    }

    /// Has the guest run a text, and waits until it has ended or `patience` is over.
    pub(super) fn ask(&mut self, text: &str, patience: Duration) -> Result<Option<Reply>, Error> {
        let mut rest = text;
        while rest.len() > PIECE {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(PIECE));
            match self.exchange(&format!("+{}\0{piece}", piece.len()), patience)? {
                Some(Reply::Done { status: 0, .. }) => rest = more,
                unexpected => return Ok(unexpected),
            }
        }
        self.exchange(&format!("{}\0{rest}", rest.len()), patience)
    }

    fn exchange(&mut self, piece: &str, patience: Duration) -> Result<Option<Reply>, Error> {
        self.asked = true;
        self.stream.write_all(piece.as_bytes()).map_err(Error::doing("talk to the guest"))?;
        self.answer(patience)
    }

    /// The answer to what was sent last, or the first answer, which comes unasked; nothing when `patience` is over.
    pub(super) fn answer(&mut self, patience: Duration) -> Result<Option<Reply>, Error> {
        let start = Instant::now();
        let mut buffer = [0; 4096];
        while start.elapsed() < patience {
            interrupt::check()?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return Ok(Some(Reply::Ended)),
                Ok(length) => self.received.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wake(),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Some(Reply::Ended));
                }
                Err(source) => return Err(Error::System { doing: "hear from the guest".to_owned(), source }),
            }
            if let Some((reply, length)) = parse(&self.received) {
                self.received.drain(..length);
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    /// A mark after a piece that has no answer yet. If there is no room for it the guest has enough to wake up for;
    /// if the guest has ended, the next look at the line tells.
    fn wake(&mut self) {
        if self.asked {
            let _ = self.stream.write(&[MARK]);
        }
    }

    /// Waits until no process holds the other end.
    pub(super) fn wait_for_end(&mut self, patience: Duration) {
        let start = Instant::now();
        let mut buffer = [0; 4096];
        while start.elapsed() < patience {
            match self.stream.read(&mut buffer) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// The first whole answer and how many bytes it takes.
fn parse(received: &[u8]) -> Option<(Reply, usize)> {
    let mark = received.iter().position(|byte| *byte == MARK)?;
    let (said, rest) = (received.get(..mark)?, received.get(mark + 1..)?);
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    // What init writes there is a number; anything else counts as a failure.
    let status = str::from_utf8(rest.get(..end)?).ok().and_then(|text| text.parse().ok()).unwrap_or(u8::MAX);
    let said = String::from_utf8_lossy(said).into_owned();
    Some((Reply::Done { said, status }, mark + 1 + end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(said: &str, status: u8) -> Reply {
        Reply::Done { said: said.to_owned(), status }
    }

    #[test]
    fn answers_one_after_the_other() {
        let received = b"some\ntext\n\x000\n\x001\nmore";
        let (first, length) = parse(received).unwrap();
        assert_eq!(first, done("some\ntext\n", 0));
        let (second, more) = parse(&received[length..]).unwrap();
        assert_eq!(second, done("", 1));
        assert_eq!(&received[length + more..], b"more");
    }

    #[test]
    fn an_answer_is_whole_or_not_there_yet() {
        let received = b"text\n\x00127\n";
        for length in 0..received.len() {
            assert_eq!(parse(&received[..length]), None, "{length} bytes");
        }
        assert_eq!(parse(received), Some((done("text\n", 127), received.len())));
        assert_eq!(parse(b"\x00?\n"), Some((done("", u8::MAX), 3)));
    }

    #[test]
    fn silence_is_waited_for_and_an_end_is_told() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut line = GuestLine::new(near).unwrap();
        assert_eq!(line.answer(Duration::from_millis(1)).unwrap(), None);
        (&far).write_all(b"late\x000\n").unwrap();
        assert_eq!(line.answer(WAKE).unwrap(), Some(done("late", 0)));
        drop(far);
        assert_eq!(line.answer(WAKE).unwrap(), Some(Reply::Ended));
    }
}
