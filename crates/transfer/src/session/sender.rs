//! The sender of data: announces entries ahead, and sends the contents that the receiver wants.
//!
//! Three threads: this one walks, reads and hashes; one compresses and writes; one hears what the receiver says.

use std::collections::VecDeque;
use std::io::Read;
use std::sync::mpsc::sync_channel;
use std::thread;

use super::content::{ContentSender, SenderNonces};
use super::desk::{Desk, Over, WantedFile};
use super::ends::Origin;
use super::event::{Tally, TransferError, TransferEvent, Watch};
use super::hang_up::end_stream;
use super::outgoing::{BATCHES, Outbound, UnitOut, write_batches};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileMessage, HowWanted, MessageReader};

/// Entries whose data follow at once are announced in groups of so many, so that announcements and data make long units.
const EAGER_ENTRIES: usize = 256;
/// Bytes of their contents in a group at most: the longest unit.
const EAGER_BYTES: u64 = 1 << 20;
/// Entries announced before the next wanted file is sent.
const AHEAD: usize = 64;
/// Files up to this size share a compression history with their neighbours in a folder.
const SMALL: u64 = 64 << 10;

/// What a sender is told about its transfer.
#[derive(Debug)]
pub(crate) struct SenderOrders {
    /// Messages that go before all others.
    pub(crate) first: Vec<FileMessage>,
    /// Nothing is written or removed, so no content is sent.
    pub(crate) dry_run: bool,
    /// Of which the key of chunk ids is made.
    pub(crate) nonces: SenderNonces,
}

/// Sends what an origin has until the receiver says that it is done.
pub(crate) fn run_sender<O: Origin, R: Read + Send, W: UnitOut + Send>(
    reader: MessageReader<R>,
    writer: W,
    origin: &mut O,
    orders: SenderOrders,
    watch: Watch<'_>,
) -> Result<Tally, TransferError> {
    let desk = Desk::new(orders.dry_run);
    let mut sent = thread::scope(|scope| {
        let (to, from) = sync_channel(BATCHES);
        let desk = &desk;
        let writing = scope.spawn(move || {
            if let Err(error) = write_batches(writer, &from, watch) {
                desk.writer_failed(error);
            }
        });
        let hearing = scope.spawn(move || hear(reader, desk, watch));
        let contents = ContentSender::new(desk, Outbound::new(to), orders.nonces, watch);
        let (walk, eager) = (Walked::default(), VecDeque::new());
        let mut sending = Sending { contents, origin: &mut *origin, walk, eager };
        sending.run(orders);
        if watch.is_cancelled() {
            let _ = sending.contents.out.put(FileMessage::Stopped(FaultReason::Cancelled.into()));
            desk.end(Err(TransferError::Stopped(FaultReason::Cancelled.into())));
        }
        let _ = sending.contents.out.send();
        // Without its channel the writer writes what is left and ends.
        let sent = std::mem::take(&mut sending.contents.sent);
        drop(sending);
        end_stream(&writing, &hearing, desk.is_whole(), watch);
        sent
    });
    // Most receipts come at the end.
    while !watch.is_cancelled() && sent.keep_one(origin, &desk) {}
    let lost = || Err(TransferError::Protocol("the session has no end"));
    desk.take_end().unwrap_or_else(lost)
}

/// Hears the receiver until it is done or the stream ends.
fn hear<R: Read>(mut reader: MessageReader<R>, desk: &Desk, watch: Watch<'_>) {
    let end = loop {
        match reader.next_message() {
            Ok(Some(message)) => match desk.hear(message, watch) {
                Ok(()) if desk.check().is_err() => return,
                Ok(()) => {}
                Err(error) => break error,
            },
            Ok(None) => break TransferError::Interrupted(std::io::ErrorKind::UnexpectedEof.into()),
            Err(error) => break error.into(),
        }
    };
    desk.end(Err(end));
}

/// Where the walk is.
#[derive(Debug, Default)]
struct Walked {
    next: u64,
    ended: bool,
    /// The folders from the place to where the walk is.
    folders: Vec<WalkedFolder>,
    /// The folder and owner of the last small file: the next one of both shares its history.
    batch: Option<(Vec<u8>, u32)>,
}

#[derive(Debug)]
struct WalkedFolder {
    index: u64,
    path: Vec<u8>,
    complete: bool,
}

/// The thread that walks, reads and hashes.
struct Sending<'a, O: Origin> {
    contents: ContentSender<'a>,
    origin: &'a mut O,
    walk: Walked,
    /// Files that are announced and follow at once.
    eager: VecDeque<EntryMessage>,
}

impl<O: Origin> Sending<'_, O> {
    /// Runs until the transfer is over.
    fn run(&mut self, orders: SenderOrders) {
        let mut finished = false;
        let mut running = orders.first.into_iter().try_for_each(|message| self.put(message));
        while running.is_ok() {
            running = self.turn(orders.dry_run, &mut finished);
        }
    }

    /// Announces some entries, sends some contents, or waits.
    fn turn(&mut self, dry_run: bool, finished: &mut bool) -> Result<(), Over> {
        self.contents.desk.check()?;
        if self.contents.watch.is_cancelled() {
            return Err(Over);
        }
        let mut busy = self.announce_some(!dry_run)?;
        while let Some(entry) = self.eager.pop_front() {
            let (index, how) = (entry.index, HowWanted::Whole);
            self.content(&entry, WantedFile { index, how, ids: None, again: None })?;
            busy = true;
        }
        if let Some(wanted) = self.contents.desk.take_want() {
            // After the end, only what has to be sent once more.
            (busy, *finished) = (true, false);
            match self.contents.desk.entry(wanted.index) {
                Some(entry) => self.content(&entry, wanted)?,
                None => {
                    let fault = FaultReason::Cancelled.into();
                    self.put(FileMessage::Gone { entry: wanted.index, fault })?;
                }
            }
        }
        if busy {
            return Ok(());
        }
        if self.walk.ended && self.contents.desk.is_all_sent() && !*finished {
            *finished = true;
            self.put(FileMessage::Finish { entries: self.walk.next })?;
        }
        self.contents.out.send().map_err(|_| Over)?;
        if !self.contents.sent.keep_one(self.origin, self.contents.desk) {
            self.contents.desk.wait();
        }
        Ok(())
    }

    fn put(&mut self, message: FileMessage) -> Result<(), Over> {
        self.contents.out.put(message).map_err(|_| Over)
    }

    /// Announces entries until there are enough for a while. Whether it announced any.
    fn announce_some(&mut self, eager: bool) -> Result<bool, Over> {
        let (mut announced, mut bytes) = (0, 0);
        while !self.walk.ended && self.contents.desk.has_room() && self.eager.len() < EAGER_ENTRIES {
            if bytes >= EAGER_BYTES || (self.eager.is_empty() && announced >= AHEAD) {
                break;
            }
            announced += 1;
            match self.origin.next_entry() {
                Some(Ok(found)) => bytes += self.announce(found, eager)?,
                Some(Err(missing)) => {
                    // What is in a folder that was not read to its end is not known.
                    for folder in self.walk.folders.iter_mut().filter(|_| missing.incomplete) {
                        folder.complete = false;
                    }
                    self.leave_to(&missing.path)?;
                    let event =
                        TransferEvent::Failed { path: missing.path.clone(), fault: missing.fault.clone() };
                    self.contents.watch.tell(event);
                    self.put(FileMessage::Missing { path: missing.path, fault: missing.fault })?;
                }
                None => {
                    self.walk.ended = true;
                    self.leave_to(b"/")?;
                }
            }
        }
        Ok(announced > 0)
    }

    /// Announces an entry. The answer: bytes that follow at once.
    fn announce(&mut self, mut entry: EntryMessage, eager: bool) -> Result<u64, Over> {
        self.leave_to(&entry.path)?;
        entry.index = self.walk.next;
        self.walk.next += 1;
        let fresh = eager && self.contents.desk.is_in_fresh();
        let mut follows = 0;
        if let EntryKind::File { size } = entry.kind {
            // Of a longer one the receiver may have the content under another name.
            entry.eager = fresh && size.is_none_or(|size| size <= SMALL);
            follows = if entry.eager { size.unwrap_or(0) } else { 0 };
            let copies = if fresh { None } else { self.origin.copies() };
            entry.kept = copies.and_then(|copies| copies.version(&entry));
        }
        self.contents.desk.announce(&entry);
        let event = TransferEvent::Announced { path: entry.path.clone(), kind: entry.kind.clone() };
        self.contents.watch.tell(event);
        self.put(FileMessage::Entry(entry.clone()))?;
        if entry.kind == EntryKind::Folder {
            let (index, path) = (entry.index, entry.path);
            self.walk.folders.push(WalkedFolder { index, path, complete: true });
        } else if entry.eager {
            self.eager.push_back(entry);
        }
        Ok(follows)
    }

    /// Leaves the folders that this path is not in.
    fn leave_to(&mut self, path: &[u8]) -> Result<(), Over> {
        while let Some(folder) = self.walk.folders.last() {
            if is_in(path, &folder.path) {
                break;
            }
            let message = FileMessage::Left { folder: folder.index, complete: folder.complete };
            self.contents.desk.leave(folder.index);
            self.walk.folders.pop();
            self.put(message)?;
        }
        Ok(())
    }

    /// A dry run only says which files the receiver wants.
    fn content(&mut self, entry: &EntryMessage, wanted: WantedFile) -> Result<(), Over> {
        let small = matches!(entry.kind, EntryKind::File { size: Some(size) } if size <= SMALL);
        let folder = parent(&entry.path).to_vec();
        let batch = small.then_some((folder, entry.owner.0));
        if batch.is_none() || batch != self.walk.batch {
            self.contents.out.new_history();
        }
        self.walk.batch = batch;
        self.contents.send(self.origin, entry, wanted)
    }
}

/// Whether a path is below a folder's. The end of a walk is below none: no path begins with a slash.
fn is_in(path: &[u8], folder: &[u8]) -> bool {
    if folder.is_empty() {
        return path.first() != Some(&b'/');
    }
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// The path of the folder that a path is in.
pub(crate) fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |slash| &path[..slash])
}
