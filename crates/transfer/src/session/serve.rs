//! What a server does: one stream, one request, in the folders that the peer may read or write.

use std::io::{self, Read, Write};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use strait_clock::Time;
use strait_compress::Calibration;
use strait_stream::unit::UnitWriter;

use super::client::{heard, say};
use super::content::SenderNonces;
use super::disk::{DiskDestination, DiskOrigin, unseen};
use super::driver::{ReceiverOrders, run_receiver};
use super::ends::Origin;
use super::event::{Tally, TransferError, TransferEvent, Watch};
use super::hang_up::GRACE;
use super::kept::ServedCopies;
use super::receiver::ReceiverRules;
use super::sender::{SenderOrders, run_sender};
use super::units::{Messages, StreamEnds, Units};
use crate::FolderPath;
use crate::delta::ChunkKey;
use crate::folder::{Folder, FolderRules};
use crate::message::{Asked, EntryKind, EntryMessage, FaultReason, FileFault, FileMessage, TransferOptions};
use crate::path::EntryPath;
use crate::source::patterns::Patterns;
use crate::source::{SourceError, Sources};

/// A folder as one peer may use it. What the peer may neither read nor write is as if it were not there.
#[derive(Clone, Debug)]
pub struct SharedFolder {
    /// The name that peers know.
    pub name: String,
    /// Where it is.
    pub path: FolderPath,
    /// What may be written.
    pub rules: FolderRules,
    /// Whether this peer may read.
    pub read: bool,
    /// True if this peer may write: add what is not there, and replace what is.
    pub write: bool,
    /// True if this peer, which may write, may remove.
    pub delete: bool,
    /// How long a run of a transfer waits for an earlier one of the same transfer to end.
    pub patience: Duration,
    /// Where copies of what the peer got are kept, if they are.
    pub copies: Option<ServedCopies>,
    /// Unfinished files of other transfers to which nothing was written since then are removed when one begins.
    pub unfinished_since: SystemTime,
}

/// How often a run looks whether the earlier one has ended.
const LOOK: Duration = Duration::from_millis(50);

/// What was done for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedRequest {
    /// The transfer.
    pub transfer: [u8; 16],
    /// What was asked.
    pub asked: Asked,
    /// How it ended.
    pub tally: Tally,
}

/// Serves one stream: hears what is asked, and does it if the peer may.
///
/// # Errors
///
/// If the peer may not, or the transfer ends before its end.
pub fn serve<R: Read + Send, W: Write + Send>(
    stream: StreamEnds<R, W>,
    folders: &[SharedFolder],
    nonce: [u8; 32],
    watch: Watch<'_>,
) -> Result<ServedRequest, TransferError> {
    let (mut reader, mut writer, worker) = stream.open(watch);
    thread::scope(|scope| {
        scope.spawn(|| worker.run());
        let FileMessage::Hello(hello) = heard(&mut reader)? else {
            return Err(TransferError::Protocol("no hello at the beginning"));
        };
        let (transfer, asked) = (hello.transfer, hello.asked.clone());
        let writes = matches!(&asked, Asked::Push { options, .. } if !options.dry_run);
        watch.tell(TransferEvent::Asked { transfer, writes });
        let prepared = prepare(folders, hello.asked, hello.transfer, nonce);
        let done = match prepared {
            Ok(prepared) => prepared.run(reader, writer, (hello.nonce, nonce), watch),
            Err(fault) => {
                let _ = say(&mut writer, &FileMessage::Refused(fault.clone()));
                drop(writer);
                // A stream that is closed with something unread can lose what was written to it.
                let begun = Instant::now();
                while begun.elapsed() < GRACE && heard(&mut reader).is_ok() {}
                (watch.hang_up)();
                Err(TransferError::Refused(fault))
            }
        };
        done.map(|tally| ServedRequest { transfer, asked, tally })
    })
}

/// Tells a client that its stream is not served. It has to stay open until the client, which may write still, has heard it and ended it.
///
/// # Errors
///
/// Those of the stream.
pub fn refuse(writer: impl Write, fault: FileFault) -> io::Result<()> {
    let mut units = UnitWriter::new(writer, || Time::ZERO, Calibration::assumed());
    say(&mut units, &FileMessage::Refused(fault))
}

/// What is to be done, after it was found to be allowed.
enum Prepared {
    Receive(DiskDestination, TransferOptions),
    Send(DiskOrigin, bool),
    List(Vec<EntryMessage>, Option<DiskOrigin>),
}

fn prepare(
    folders: &[SharedFolder],
    asked: Asked,
    transfer: [u8; 16],
    nonce: [u8; 32],
) -> Result<Prepared, FileFault> {
    match asked {
        Asked::Push { folder, place, options } => {
            let shared = find(folders, &folder)?;
            if !shared.write {
                return Err(FaultReason::NotAllowed.into());
            }
            if options.delete && !shared.delete {
                return Err(FileFault::new(FaultReason::NotAllowed, "to remove anything there"));
            }
            let rules = FolderRules { hidden: !shared.read, ..shared.rules };
            let open = Folder::open(&shared.path, rules)?;
            let patterns = patterns(&options.patterns)?;
            let place = checked(&place)?;
            if !options.dry_run {
                // What cannot be removed now may be when the next one begins.
                let _ = open.collect(&transfer, shared.unfinished_since);
            }
            let begun = Instant::now();
            let destination = loop {
                let (open, place, patterns) = (open.clone(), place.clone(), patterns.clone());
                match DiskDestination::open(open, place, transfer, patterns, options.dry_run) {
                    // A run whose client was killed hears of it later than the user who begins the next one.
                    Err(fault) if fault.reason == FaultReason::Busy && begun.elapsed() < shared.patience => {
                        thread::sleep(LOOK);
                    }
                    Err(fault) if !shared.read => return Err(unseen(fault)),
                    opened => break opened?,
                }
            };
            let destination = destination.like(&options.like)?;
            let destination = if shared.read { destination.searching() } else { destination };
            Ok(Prepared::Receive(destination, options))
        }
        Asked::Pull { folder, paths, options } => {
            let (shared, open) = readable(folders, &folder)?;
            let mut sources = Sources::default();
            for path in &paths {
                let path = checked(path)?;
                let content = path.is_none();
                sources.add_in_folder(&open, path.as_ref(), content)?;
            }
            let xattrs = options.xattrs && shared.rules.keep_xattrs;
            let copies = shared.copies.as_ref().filter(|_| !options.dry_run);
            let copies = copies.and_then(|copies| copies.open(&folder, &paths, nonce));
            let origin = DiskOrigin::new(sources, patterns(&options.patterns)?, xattrs).keeping(copies);
            Ok(Prepared::Send(origin, options.dry_run))
        }
        Asked::List { folder, .. } if folder.is_empty() => {
            Ok(Prepared::List(folders.iter().filter(|it| it.read || it.write).map(named).collect(), None))
        }
        Asked::List { folder, place, deep } => {
            let (_, open) = readable(folders, &folder)?;
            let sources = listed(&open, checked(&place)?.as_ref())?;
            let mut patterns = Patterns::default();
            if !deep {
                let _ = patterns.push(false, b"/*/*");
            }
            Ok(Prepared::List(Vec::new(), Some(DiskOrigin::new(sources, patterns, false))))
        }
    }
}

/// The content of a folder at `place`; as with ls(1), a file or symlink is listed itself.
fn listed(open: &Folder, place: Option<&EntryPath>) -> Result<Sources, SourceError> {
    let mut sources = Sources::default();
    match sources.add_in_folder(open, place, true) {
        Err(SourceError::Vanished | SourceError::Symlink) if place.is_some() => {
            sources.add_in_folder(open, place, false)?;
        }
        added => added?,
    }
    Ok(sources)
}

fn find<'a>(folders: &'a [SharedFolder], name: &[u8]) -> Result<&'a SharedFolder, FileFault> {
    let known = folders.iter().find(|it| it.name.as_bytes() == name && (it.read || it.write));
    known.ok_or(FileFault::from(FaultReason::NoFolder))
}

fn readable<'a>(folders: &'a [SharedFolder], name: &[u8]) -> Result<(&'a SharedFolder, Folder), FileFault> {
    let shared = find(folders, name)?;
    if !shared.read {
        return Err(FaultReason::NotAllowed.into());
    }
    Ok((shared, Folder::open(&shared.path, shared.rules)?))
}

fn checked(path: &[u8]) -> Result<Option<EntryPath>, FileFault> {
    if path.is_empty() {
        return Ok(None);
    }
    EntryPath::new(path).map(Some).map_err(|error| FileFault::new(FaultReason::Escapes, error.to_string()))
}

/// The rights of a peer as permissions of an entry of the list of folders. In a folder with the last one, as with the sticky bit of Unix
/// (chmod(1)), names are made and not removed.
pub const READ: u32 = 0o500;
/// As [`READ`].
pub const WRITE: u32 = 0o300;
/// As [`READ`].
pub const NO_DELETE: u32 = 0o1000;

/// A folder as an entry of the list of folders.
fn named(folder: &SharedFolder) -> EntryMessage {
    let write = if folder.delete { WRITE } else { WRITE | NO_DELETE };
    let mode = if folder.read { READ } else { 0 } | if folder.write { write } else { 0 };
    EntryMessage::new(folder.name.clone().into_bytes(), EntryKind::Folder, mode, 0)
}

/// Patterns from a request: `+ ` or `- ` and the pattern.
///
/// # Errors
///
/// If one has neither sign, or they are too long.
pub fn patterns(all: &[Vec<u8>]) -> Result<Patterns, FileFault> {
    let mut patterns = Patterns::default();
    for line in all {
        let (include, pattern) = match line.split_at_checked(2) {
            Some((b"+ ", pattern)) => (true, pattern),
            Some((b"- ", pattern)) => (false, pattern),
            _ => return Err(FileFault::new(FaultReason::Protocol, "a pattern has neither + nor -")),
        };
        let pushed = patterns.push(include, pattern);
        pushed.map_err(|error| FileFault::new(FaultReason::OverLimit, error.to_string()))?;
    }
    Ok(patterns)
}

impl Prepared {
    fn run<R: Read + Send, W: Write + Send>(
        self,
        reader: Messages<'_, R>,
        mut writer: Units<'_, W>,
        (client, own): ([u8; 32], [u8; 32]),
        watch: Watch<'_>,
    ) -> Result<Tally, TransferError> {
        let first = vec![FileMessage::Welcome { nonce: own }];
        match self {
            Prepared::Receive(destination, TransferOptions { delete, dry_run, .. }) => {
                // The folder's own limits are those of the destination.
                let rules =
                    ReceiverRules { delete, dry_run, tops: None, max_bytes: u64::MAX, max_entries: u64::MAX };
                run_receiver(
                    reader,
                    writer,
                    destination,
                    ReceiverOrders { rules, first, key: ChunkKey::agree(&client, &own) },
                    watch,
                )
            }
            Prepared::Send(mut origin, dry_run) => run_sender(
                reader,
                writer,
                &mut origin,
                SenderOrders { first, dry_run, nonces: SenderNonces::Server(client, own) },
                watch,
            ),
            Prepared::List(names, origin) => {
                for message in first {
                    say(&mut writer, &message)?;
                }
                let tally = send_list(&mut writer, names, origin)?;
                drop(writer);
                (watch.hang_up)();
                Ok(tally)
            }
        }
    }
}

/// Entries, and the end.
fn send_list<W: Write>(
    writer: &mut Units<'_, W>,
    names: Vec<EntryMessage>,
    mut origin: Option<DiskOrigin>,
) -> Result<Tally, TransferError> {
    let (mut bytes, mut tally) = (Vec::new(), Tally::default());
    writer.control()?;
    let more = std::iter::from_fn(|| origin.as_mut().and_then(Origin::next_entry));
    for found in names.into_iter().map(Ok).chain(more) {
        let message = match found {
            Ok(mut entry) => {
                entry.index = tally.whole;
                tally.whole += 1;
                FileMessage::Entry(entry)
            }
            Err(missing) => {
                tally.failed += 1;
                FileMessage::Missing { path: missing.path, fault: missing.fault }
            }
        };
        bytes.clear();
        crate::message::frame(&message, &mut bytes);
        writer.write_all(&bytes)?;
    }
    say(writer, &FileMessage::Finish { entries: tally.whole })?;
    Ok(tally)
}
