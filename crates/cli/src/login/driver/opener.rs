//! What opens a session's next stream.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;

use super::super::road::{LoginRoad, LoginStream, NoRoad};
use crate::failure::Failure;

/// A thread that opens streams, which may take half a minute each, while the session's own thread goes on.
pub(super) struct Opener {
    asks: Sender<()>,
    answers: Receiver<Result<LoginStream, NoRoad>>,
    /// Readable when there is an answer.
    pub(super) wake: UnixStream,
}

impl Opener {
    pub(super) fn start(road: Arc<LoginRoad>) -> io::Result<Opener> {
        let (asks, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel();
        let (wake, mut waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        thread::Builder::new().name("strait-opener".to_owned()).spawn(move || {
            // It stays as long as it is asked: a node that it starts ends with it.
            while asked.recv().is_ok() {
                if answer.send(road.open()).is_err() || waker.write_all(&[0]).is_err() {
                    return;
                }
            }
        })?;
        Ok(Opener { asks, answers, wake })
    }

    pub(super) fn ask(&self) {
        // A thread that is gone answers as one that cannot.
        let _ = self.asks.send(());
    }

    pub(super) fn opened(&mut self) -> Option<Result<LoginStream, NoRoad>> {
        // First, as what wakes for an answer that was taken already would keep the loop awake until the next.
        let _ = self.wake.read(&mut [0; 16]);
        match self.answers.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                let failure = Failure::new("the thread that opens streams has ended");
                Some(Err(NoRoad { failure, may_return: false }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::Duration;

    use strait_node::poll::{self, PollFd};

    use super::*;

    #[test]
    fn a_wake_without_an_answer_keeps_no_loop_awake() {
        let ((asks, _asked), (_answer, answers)) = (mpsc::channel(), mpsc::channel());
        let (wake, mut waker) = UnixStream::pair().unwrap();
        wake.set_nonblocking(true).unwrap();
        let mut opener = Opener { asks, answers, wake };
        waker.write_all(&[0]).unwrap();
        assert!(opener.opened().is_none());
        let mut all = [PollFd::readable(opener.wake.as_fd())];
        assert_eq!(poll::wait(&mut all, Some(Duration::ZERO)).unwrap(), 0);
    }
}
