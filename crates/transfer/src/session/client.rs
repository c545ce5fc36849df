//! What a client does: sends, gets and lists.

use std::io::{self, Read, Write};
use std::thread;

use super::content::SenderNonces;
use super::driver::{ReceiverOrders, run_receiver};
use super::ends::{Destination, Origin};
use super::event::{Tally, TransferError, Watch};
use super::outgoing::UnitOut;
use super::receiver::ReceiverRules;
use super::sender::{SenderOrders, run_sender};
use super::units::{Messages, StreamEnds, Units};
use crate::delta::ChunkKey;
use crate::message::{Asked, EntryMessage, FileMessage, Hello, TransferOptions, frame};

impl Asked {
    /// How the transfer is done. None of a list.
    fn options(&self) -> Option<&TransferOptions> {
        match self {
            Asked::Push { options, .. } | Asked::Pull { options, .. } => Some(options),
            Asked::List { .. } => None,
        }
    }
}

/// Sends what an origin has to where the hello says.
///
/// # Errors
///
/// If the peer refuses, or the transfer ends before its end. Entries that fail alone are counted, and told by events.
pub fn push<R: Read + Send, W: Write + Send>(
    stream: StreamEnds<R, W>,
    hello: Hello,
    origin: &mut impl Origin,
    watch: Watch<'_>,
) -> Result<Tally, TransferError> {
    let dry_run = hello.asked.options().is_some_and(|options| options.dry_run);
    let nonces = SenderNonces::Client(hello.nonce);
    let orders = SenderOrders { first: vec![FileMessage::Hello(hello)], dry_run, nonces };
    let (reader, writer, worker) = stream.open(watch);
    thread::scope(|scope| {
        scope.spawn(|| worker.run());
        run_sender(reader, writer, origin, orders, watch)
    })
}

/// Receives what the hello asks for. Nothing but what is named at the top of `tops` is taken; None: any name.
///
/// # Errors
///
/// As [`push`].
pub fn pull<R: Read + Send, W: Write + Send>(
    stream: StreamEnds<R, W>,
    hello: Hello,
    destination: impl Destination,
    tops: Option<Vec<Vec<u8>>>,
    watch: Watch<'_>,
) -> Result<Tally, TransferError> {
    let (delete, dry_run) = hello.asked.options().map_or((false, false), |it| (it.delete, it.dry_run));
    // The folder's own limits are those of the destination.
    let rules = ReceiverRules { delete, dry_run, tops, max_bytes: u64::MAX, max_entries: u64::MAX };
    let (mut reader, mut writer, worker) = stream.open(watch);
    thread::scope(|scope| {
        scope.spawn(|| worker.run());
        let own = hello.nonce;
        let key = ChunkKey::agree(&own, &greet(&mut reader, &mut writer, hello)?);
        run_receiver(reader, writer, destination, ReceiverOrders { rules, first: Vec::new(), key }, watch)
    })
}

/// Hands each entry of a place to `each`, in the order of the walk.
///
/// # Errors
///
/// As [`push`].
pub fn list<R: Read + Send, W: Write + Send>(
    stream: StreamEnds<R, W>,
    hello: Hello,
    each: &mut dyn FnMut(EntryMessage),
    watch: Watch<'_>,
) -> Result<u64, TransferError> {
    let (mut reader, mut writer, worker) = stream.open(watch);
    let listed = thread::scope(|scope| {
        scope.spawn(|| worker.run());
        let greeted = greet(&mut reader, &mut writer, hello);
        drop(writer);
        greeted?;
        let mut failed = 0;
        loop {
            match heard(&mut reader)? {
                FileMessage::Entry(entry) => each(entry),
                FileMessage::Missing { .. } => failed += 1,
                FileMessage::Finish { .. } => return Ok(failed),
                FileMessage::Stopped(fault) => return Err(TransferError::Stopped(fault)),
                _ => return Err(TransferError::Protocol("a message that a list does not have")),
            }
        }
    });
    (watch.hang_up)();
    listed
}

/// Says what is asked and waits for the answer.
fn greet<R: Read, W: Write>(
    reader: &mut Messages<'_, R>,
    writer: &mut Units<'_, W>,
    hello: Hello,
) -> Result<[u8; 32], TransferError> {
    say(writer, &FileMessage::Hello(hello))?;
    match heard(reader)? {
        FileMessage::Welcome { nonce } => Ok(nonce),
        FileMessage::Refused(fault) => Err(TransferError::Refused(fault)),
        _ => Err(TransferError::Protocol("no welcome at the beginning")),
    }
}

/// Writes one message at once.
pub(super) fn say(writer: &mut impl UnitOut, message: &FileMessage) -> io::Result<()> {
    let mut bytes = Vec::new();
    frame(message, &mut bytes);
    writer.context(false)?;
    writer.write_all(&bytes)?;
    writer.flush()
}

/// The next message.
pub(super) fn heard<R: Read>(reader: &mut Messages<'_, R>) -> Result<FileMessage, TransferError> {
    let ended = || TransferError::Interrupted(io::ErrorKind::UnexpectedEof.into());
    reader.next_message()?.ok_or_else(ended)
}
