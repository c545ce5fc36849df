//! Asks the daemon again and again, on a thread of its own: one that takes its time holds up no key.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use strait_node::client;

use super::figures::Poll;
use crate::failure::Failure;
use crate::running::refused;

/// An answer, or in words why there is none.
pub(super) type Answer = Result<Poll, String>;

/// The thread's end.
pub(super) struct Polling {
    answers: Receiver<Answer>,
    /// A byte for each answer: something that can be waited for with the keys.
    ready: PipeReader,
}

impl Polling {
    /// Asks for the first time, and from then on every `every` until the program ends.
    ///
    /// # Errors
    /// Why there was no first answer.
    pub(super) fn start(interface: String, every: Duration) -> Result<(Polling, Poll), Failure> {
        let begin = Instant::now();
        let report = client::show(&interface).map_err(refused)?;
        let first = Poll { report, at: begin.elapsed() };
        let (ready, wake) = io::pipe().map_err(Failure::doing("make a pipe"))?;
        // One waits at most: a terminal that is slow gets the newest but one, and memory has two.
        let (sender, answers) = sync_channel(1);
        thread::Builder::new()
            .name("polling".to_owned())
            .spawn(move || ask(&interface, every, begin, &sender, wake))
            .map_err(Failure::doing("start a thread"))?;
        Ok((Polling { answers, ready }, first))
    }

    /// The next answer; to be called when there is something to read.
    ///
    /// # Errors
    /// When there will be none any more.
    pub(super) fn next(&mut self) -> Result<Answer, Failure> {
        let ended = || Failure::new("the thread that asks the daemon has ended");
        self.ready.read_exact(&mut [0]).map_err(|_| ended())?;
        // It is sent before its byte.
        self.answers.try_recv().map_err(|_| ended())
    }
}

impl AsFd for Polling {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// Until the other end is dropped.
fn ask(interface: &str, every: Duration, begin: Instant, answers: &SyncSender<Answer>, mut wake: PipeWriter) {
    loop {
        thread::sleep(every);
        let answer = client::show(interface)
            .map(|report| Poll { report, at: begin.elapsed() })
            .map_err(|error| error.to_string());
        if answers.send(answer).is_err() || wake.write_all(&[0]).is_err() {
            return;
        }
    }
}
