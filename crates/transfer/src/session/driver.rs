//! Runs a receiver: one thread reads and decompresses, one writes answers, this one hashes and writes to the disk.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::ends::Destination;
use super::event::{Tally, TransferError, Watch};
use super::hang_up::end_stream;
use super::outgoing::{BATCHES, Outbound, UnitOut, write_batches};
use super::receiver::{ReceiverRules, ReceiverState};
use crate::delta::ChunkKey;
use crate::message::{FaultReason, FileFault, FileMessage, MessageReader};

/// Messages that wait for the thread that writes to the disk: of file data at most 8 MiB.
const WAITING: usize = 8;
/// Answers that wait for more messages at most.
const ANSWERS: usize = 256;
/// How often it looks at the time while nothing arrives.
const LOOK: Duration = Duration::from_millis(200);

/// A message, or why none comes any more.
type Heard = Result<FileMessage, TransferError>;

/// What a receiver is told about its transfer.
#[derive(Debug)]
pub(crate) struct ReceiverOrders {
    /// What it allows and does.
    pub(crate) rules: ReceiverRules,
    /// Messages that go before all others.
    pub(crate) first: Vec<FileMessage>,
    /// The key of chunk ids.
    pub(crate) key: ChunkKey,
}

/// Receives into a destination until the sender is done.
pub(crate) fn run_receiver<D: Destination, R: Read + Send, W: UnitOut + Send>(
    reader: MessageReader<R>,
    writer: W,
    destination: D,
    orders: ReceiverOrders,
    watch: Watch<'_>,
) -> Result<Tally, TransferError> {
    thread::scope(|scope| {
        let (to_writer, from_disk) = sync_channel(BATCHES);
        let (to_disk, from_reader) = sync_channel(WAITING);
        let writing = scope.spawn(move || drop(write_batches(writer, &from_disk, watch)));
        let reading = scope.spawn(move || read(reader, &to_disk));
        let mut out = Outbound::new(to_writer);
        let mut receiving = ReceiverState::new(destination, orders.rules, orders.key, watch);
        for message in orders.first {
            let _ = out.put(message);
        }
        let ended = turn(&mut receiving, &from_reader, &mut out, watch);
        if let Err(error) = &ended {
            let says = match error {
                TransferError::Protocol(says) => Some(FileFault::new(FaultReason::Protocol, says)),
                TransferError::Stopped(fault) => Some(fault.clone()),
                TransferError::Refused(_) | TransferError::Interrupted(_) => None,
            };
            let _ = says.map(|fault| out.put(FileMessage::Stopped(fault)));
            receiving.abandon();
        }
        let _ = out.send();
        drop(out);
        drop(from_reader);
        end_stream(&writing, &reading, ended.is_ok(), watch);
        ended
    })
}

/// Reads messages until the stream or their taker ends.
fn read<R: Read>(mut reader: MessageReader<R>, to: &SyncSender<Heard>) {
    loop {
        let message = match reader.next_message() {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(TransferError::Interrupted(std::io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(error.into()),
        };
        let last = message.is_err();
        if to.send(message).is_err() || last {
            return;
        }
    }
}

fn lost() -> TransferError {
    TransferError::Interrupted(std::io::ErrorKind::BrokenPipe.into())
}

fn turn<D: Destination>(
    receiving: &mut ReceiverState<'_, D>,
    from: &Receiver<Heard>,
    out: &mut Outbound,
    watch: Watch<'_>,
) -> Result<Tally, TransferError> {
    loop {
        let next = next(receiving, from, out)?;
        if watch.is_cancelled() {
            return Err(TransferError::Stopped(FaultReason::Cancelled.into()));
        }
        let Some(message) = next else {
            receiving.settle(false)?;
            continue;
        };
        if let Some(tally) = receiving.message(message?)? {
            answer(receiving, out)?;
            return Ok(tally);
        }
    }
}

/// The next message, or none for a while. Answers go together while messages wait, and at once when none does.
fn next<D: Destination>(
    receiving: &mut ReceiverState<'_, D>,
    from: &Receiver<Heard>,
    out: &mut Outbound,
) -> Result<Option<Heard>, TransferError> {
    if receiving.answers() < ANSWERS
        && let Ok(next) = from.try_recv()
    {
        return Ok(Some(next));
    }
    answer(receiving, out)?;
    match from.recv_timeout(LOOK) {
        Ok(next) => Ok(Some(next)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(lost()),
    }
}

fn answer<D: Destination>(
    receiving: &mut ReceiverState<'_, D>,
    out: &mut Outbound,
) -> Result<(), TransferError> {
    for answer in receiving.take_answers() {
        out.put(answer).map_err(|_| lost())?;
    }
    out.send().map_err(|_| lost())
}
