//! Two ends over a socket pair, which can be cut after so many bytes.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use super::memory::*;
use crate::delta::ChunkKey;
use crate::message::MessageReader;
use crate::session::content::SenderNonces;
use crate::session::driver::{ReceiverOrders, run_receiver};
use crate::session::event::{Tally, TransferError, TransferEvent, Watch};
use crate::session::outgoing::UnitOut;
use crate::session::receiver::ReceiverRules;
use crate::session::sender::{SenderOrders, run_sender};

pub(super) fn key() -> ChunkKey {
    ChunkKey::agree(&[1; 32], &[2; 32])
}

pub(super) fn rules() -> ReceiverRules {
    ReceiverRules { delete: false, dry_run: false, tops: None, max_bytes: u64::MAX, max_entries: u64::MAX }
}

/// Bytes without units.
pub(super) struct Plain<W>(pub(super) W);

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> UnitOut for Plain<W> {
    fn context(&mut self, _data: bool) -> io::Result<()> {
        Ok(())
    }

    fn begin_history(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that is cut after so many bytes.
pub(super) struct Cut<'a> {
    pub(super) stream: &'a UnixStream,
    pub(super) left: &'a AtomicI64,
}

impl Write for Cut<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = self.left.fetch_sub(bytes.len() as i64, Ordering::Relaxed);
        let now = usize::try_from(left).unwrap_or(0).min(bytes.len());
        if now > 0 {
            return self.stream.write(&bytes[..now]);
        }
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How both ends of a run ended, and what the sender was told.
pub(super) struct Run {
    pub(super) sender: Result<Tally, TransferError>,
    pub(super) receiver: Result<Tally, TransferError>,
    pub(super) events: Vec<TransferEvent>,
}

/// Runs a transfer between two ends in memory; both directions together carry `budget` bytes.
pub(super) fn run(
    mut origin: MemoryOrigin,
    destination: MemoryDestination,
    rules: ReceiverRules,
    budget: i64,
) -> Run {
    let (one, other) = UnixStream::pair().unwrap();
    let (left, cancel, events) = (AtomicI64::new(budget), AtomicBool::new(false), Mutex::new(Vec::new()));
    let orders = SenderOrders {
        first: Vec::new(),
        dry_run: rules.dry_run,
        nonces: SenderNonces::Server([1; 32], [2; 32]),
    };
    let (sender, receiver) = thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let hang_up = || drop(other.shutdown(std::net::Shutdown::Both));
            let watch = Watch { event: &|_| (), cancel: &cancel, hang_up: &hang_up };
            let writer = Plain(Cut { stream: &other, left: &left });
            run_receiver(
                MessageReader::new(Buffered(&other)),
                writer,
                destination,
                ReceiverOrders { rules, first: Vec::new(), key: key() },
                watch,
            )
        });
        let hang_up = || drop(one.shutdown(std::net::Shutdown::Both));
        let note = |event| events.lock().unwrap().push(event);
        let watch = Watch { event: &note, cancel: &cancel, hang_up: &hang_up };
        let writer = Plain(Cut { stream: &one, left: &left });
        let sender = run_sender(MessageReader::new(Buffered(&one)), writer, &mut origin, orders, watch);
        (sender, receiver.join().unwrap())
    });
    Run { sender, receiver, events: events.into_inner().unwrap() }
}

pub(super) struct Buffered<'a>(pub(super) &'a UnixStream);

impl Read for Buffered<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut stream = self.0;
        stream.read(buffer)
    }
}
