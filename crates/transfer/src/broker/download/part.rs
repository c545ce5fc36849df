//! The bytes of a part as they come from the broker, read ahead by a thread of their own.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::broker::client::{BrokerClient, BrokerError};
use crate::broker::message::BrokerAnswer;

use super::letters::CUT;
use super::spool::SpooledPart;

/// Messages that are read ahead, of at most 256 KiB.
const AHEAD: usize = 16;

/// Both ends of what is read ahead.
pub(super) fn ahead() -> (SyncSender<io::Result<Vec<u8>>>, PartReader) {
    let (tell, hear) = sync_channel(AHEAD);
    (tell, PartReader { hear, bytes: Vec::new(), taken: 0, failed: false })
}

/// Reads what a [`feed`] tells.
pub(super) struct PartReader {
    hear: Receiver<io::Result<Vec<u8>>>,
    bytes: Vec<u8>,
    taken: usize,
    failed: bool,
}

impl Read for PartReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.failed {
            return Err(io::Error::other("an earlier read failed"));
        }
        while self.taken == self.bytes.len() {
            match self.hear.recv() {
                Ok(Ok(bytes)) => (self.bytes, self.taken) = (bytes, 0),
                Ok(Err(error)) => {
                    self.failed = true;
                    return Err(error);
                }
                // It told all.
                Err(_) => return Ok(0),
            }
        }
        let count = out.len().min(self.bytes.len() - self.taken);
        out[..count].copy_from_slice(&self.bytes[self.taken..][..count]);
        self.taken += count;
        Ok(count)
    }
}

/// Passes on the answer to a question for the bytes of a part from `at` on, of which there are `size`; what comes is in the spool
/// before it is told. True: the answer was read to its end, so the stream can be used for the next one.
pub(super) fn feed<R: Read, W: Write>(
    client: &mut BrokerClient<R, W>,
    tell: &SyncSender<io::Result<Vec<u8>>>,
    (mut at, size): (u64, u64),
    mut spool: Option<&mut SpooledPart>,
    moved: &dyn Fn(u64),
) -> bool {
    loop {
        match client.next_answer() {
            Ok(BrokerAnswer::Bytes(bytes)) => {
                at = at.saturating_add(bytes.len() as u64);
                if at > size {
                    drop(tell.send(Err(wrong("the broker has more bytes of it than its letter says"))));
                    return false;
                }
                moved(bytes.len() as u64);
                if let Some(spooled) = spool.as_deref_mut()
                    && spooled.append(&bytes).is_err()
                {
                    // It goes on without what would help the next visit.
                    spool = None;
                }
                if tell.send(Ok(bytes)).is_err() {
                    return false;
                }
            }
            Ok(BrokerAnswer::ReadEnd { .. }) => {
                if at < size {
                    drop(tell.send(Err(wrong(CUT))));
                }
                return true;
            }
            Ok(BrokerAnswer::Refused { id, fault }) => {
                let goes_on = id.is_some();
                drop(tell.send(Err(io::Error::other(BrokerError::Refused { id, fault }))));
                return goes_on;
            }
            Ok(_) => {
                let error = BrokerError::Protocol("an answer is none to what was asked");
                drop(tell.send(Err(io::Error::other(error))));
                return false;
            }
            Err(error) => {
                drop(tell.send(Err(io::Error::other(error))));
                return false;
            }
        }
    }
}

fn wrong(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
