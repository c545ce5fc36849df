//! Real files as the ends of a session: what a walk finds, and a folder that is written to.

mod origin;

use std::fs::File;
use std::sync::Arc;

pub use self::origin::DiskOrigin;
use super::ends::{Aside, Destination, Settlement, Standing};
use super::incoming::SMALL;
use super::same::SameContents;
use crate::folder::{Folder, FolderError, Offer, Partial, Pruned, Receiving, Settled, is_numbered};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault};
use crate::path::{EntryPath, Printable};
use crate::source::SourceFile;
use crate::source::patterns::Patterns;
use crate::stamp::Attributes;

impl From<FolderError> for FileFault {
    fn from(error: FolderError) -> FileFault {
        let reason = match error {
            FolderError::Path(_) | FolderError::Reserved => FaultReason::Escapes,
            // The kernel found it at the receiver, whose owner can remove it.
            FolderError::InTheWay | FolderError::Symlink => FaultReason::InTheWay,
            FolderError::Missing => FaultReason::NoFolder,
            FolderError::Full | FolderError::NoRoom { .. } => FaultReason::DiskFull,
            FolderError::MaxBytes | FolderError::MaxEntries => FaultReason::OverLimit,
            FolderError::OutOfOrder | FolderError::TooScattered => FaultReason::Protocol,
            FolderError::WrongSize => FaultReason::WrongSize,
            FolderError::WrongHash => FaultReason::WrongHash,
            FolderError::Busy => FaultReason::Busy,
            FolderError::LeadsOut | FolderError::NoSymlinks => FaultReason::SymlinkRefused,
            FolderError::NoFirstName => FaultReason::NoFirstName,
            // Of a path that was checked, it is another disk that is mounted there.
            FolderError::Escapes | FolderError::NotOurs | FolderError::System { .. } => {
                FaultReason::Unwritable
            }
        };
        FileFault::new(reason, error.to_string())
    }
}

/// Shorter files are no base of a patch: one chunk of the first level.
const MIN_OLDER: u64 = 16 << 10;

/// Receives below a place of a folder.
pub struct DiskDestination {
    folder: Folder,
    /// None in a dry run.
    receiving: Option<Receiving>,
    place: Option<EntryPath>,
    /// Whether the place was made for this transfer.
    fresh: bool,
    /// What the sender leaves out is not removed.
    patterns: Patterns,
    /// Base of patches for files that have no older one under their name.
    like: Option<EntryPath>,
    /// Whether files that were there before are looked for under other names.
    search: bool,
    same: SameContents,
    /// Entries that need no group.
    settled: Vec<Settlement>,
}

impl DiskDestination {
    /// Begins a transfer, or goes on with it, below a place, which is made if it is not there; nothing is the folder itself.
    ///
    /// # Errors
    ///
    /// If another process works on the same transfer, or the folder cannot be written.
    pub fn open(
        folder: Folder,
        place: Option<EntryPath>,
        transfer: [u8; 16],
        patterns: Patterns,
        dry_run: bool,
    ) -> Result<DiskDestination, FileFault> {
        let mut receiving = if dry_run { None } else { Some(folder.receive(transfer)?) };
        let mut fresh = false;
        if let Some((receiving, place)) = receiving.as_mut().zip(place.as_ref()) {
            fresh = !folder.rules().hidden && folder.look(place)?.is_none();
            receiving.make_folders(place)?;
        }
        Ok(DiskDestination {
            folder,
            receiving,
            place,
            fresh,
            patterns,
            like: None,
            search: false,
            same: SameContents::default(),
            settled: Vec::new(),
        })
    }

    /// Names a file below the place that is the base of patches where there is no file under the same name.
    ///
    /// # Errors
    ///
    /// If it is no path.
    pub fn like(mut self, below: &[u8]) -> Result<DiskDestination, FileFault> {
        self.like = if below.is_empty() { None } else { Some(self.named(below)?) };
        Ok(self)
    }

    /// A file whose content is in another file below the place is taken from there. A sender that may not read there would learn what
    /// there is.
    #[must_use]
    pub fn searching(self) -> DiskDestination {
        DiskDestination { search: true, ..self }
    }

    /// The path of an entry below the folder. None: the folder itself.
    fn path(&self, below: &[u8]) -> Result<Option<EntryPath>, FileFault> {
        if below.is_empty() {
            return Ok(self.place.clone());
        }
        let path = match &self.place {
            Some(place) => EntryPath::new([place.as_bytes(), b"/", below].concat()),
            None => EntryPath::new(below),
        };
        path.map(Some).map_err(|error| FileFault::new(FaultReason::Escapes, error.to_string()))
    }

    /// True if entries of two folders of the transfer may be in this one: one that has its name, and one that got it because something
    /// else had its own.
    fn may_be_shared(&self, folder: Option<&EntryPath>) -> Result<bool, FolderError> {
        let Some(folder) = folder.filter(|_| self.hides()) else { return Ok(false) };
        let names = |path: &EntryPath| path.as_bytes().split(|byte| *byte == b'/').count();
        let above = self.place.as_ref().map_or(0, names);
        let fitted = self.folder.fit(folder, true)?;
        Ok(fitted.as_bytes().split(|byte| *byte == b'/').skip(above).any(is_numbered))
    }

    /// The path of an entry that is not the folder itself.
    fn named(&self, below: &[u8]) -> Result<EntryPath, FileFault> {
        self.path(below)?.ok_or(FileFault::from(FaultReason::InTheWay))
    }

    /// True if the sender is told nothing of what is there.
    fn hides(&self) -> bool {
        self.folder.rules().hidden
    }

    /// True if an entry need not come: it is there, or where the sender may not hear that, this transfer has brought it.
    fn has(&self, path: &EntryPath, size: Option<u64>, entry: &EntryMessage) -> Result<bool, FileFault> {
        let attributes = attributes(entry);
        if self.hides() {
            let receiving = self.receiving.as_ref().zip(size);
            return Ok(receiving.is_some_and(|(it, size)| it.gave(path, size, &attributes)));
        }
        let Some(there) = self.folder.look(path)? else { return Ok(false) };
        if there.is_folder {
            return Err(FaultReason::InTheWay.into());
        }
        let same = there.is_file
            && Some(there.stamp.size) == size
            && (there.stamp.modified == entry.modified
                || self.keeps_as(entry.modified, there.stamp.modified));
        if same && there.attributes.mode != entry.mode && self.receiving.is_some() {
            self.folder.reapply(path, &attributes)?;
        }
        Ok(same)
    }

    /// True if a file that is modified at one time has the other here, as the file system does not keep the first.
    fn keeps_as(&self, sent: i64, there: i64) -> bool {
        self.receiving.as_ref().is_some_and(|receiving| receiving.time_kept(sent) == Some(there))
    }

    fn receiving(&mut self) -> Result<&mut Receiving, FileFault> {
        self.receiving.as_mut().ok_or(FileFault::from(FaultReason::System))
    }
}

/// A fault as a sender hears it that may not know what is there.
pub(super) fn unseen(fault: FileFault) -> FileFault {
    use FaultReason::{DiskFull, InTheWay, NoFolder, System, Unwritable};
    match fault.reason {
        InTheWay | NoFolder | System | Unwritable => Unwritable.into(),
        DiskFull => DiskFull.into(),
        _ => fault,
    }
}

fn attributes(entry: &EntryMessage) -> Attributes {
    let EntryMessage { mode, modified, owner, .. } = *entry;
    Attributes { mode, modified, owner, xattrs: entry.xattrs.clone() }
}

fn settlement(settled: Settled) -> Settlement {
    (settled.tag, settled.result.map_err(FileFault::from))
}

impl Destination for DiskDestination {
    type Aside = DiskAside;

    fn folder(&mut self, entry: &EntryMessage) -> Result<bool, FileFault> {
        let Some(path) = self.path(&entry.path)? else { return Ok(false) };
        if entry.path.is_empty() {
            return Ok(self.fresh);
        }
        let made = self.receiving()?.make_folder(&path)?;
        Ok(made && !self.hides())
    }

    fn standing(&mut self, entry: &EntryMessage) -> Result<Standing, FileFault> {
        let path = self.named(&entry.path)?;
        let EntryKind::File { size } = entry.kind else { return Ok(Standing::Other) };
        if self.has(&path, size, entry)? {
            return Ok(Standing::Same);
        }
        if entry.eager {
            return Ok(Standing::Other);
        }
        let offer = self.receiving.as_mut().and_then(|it| it.offer(&path, size, entry.version));
        if let Some((receiving, size)) = self.receiving.as_ref().zip(size)
            && size > SMALL
        {
            let held = offer.as_ref().map_or(0, Offer::bytes);
            receiving.room(&path, if entry.holes { 0 } else { size.saturating_sub(held) })?;
        }
        Ok(offer.map_or(Standing::Other, Standing::Begun))
    }

    fn older(&mut self, entry: &EntryMessage) -> Option<(File, u64)> {
        // Ids of what is there would confirm guesses of a sender that may not read it.
        let same = self.named(&entry.path).ok().filter(|_| !self.hides())?;
        // A file under the same name is likelier to be the older one than what the user names for all.
        let all = [Some(same), self.like.clone()].into_iter().flatten();
        all.into_iter().find_map(|path| {
            let there = self.folder.look(&path).ok()??;
            let long = there.is_file && there.stamp.size >= MIN_OLDER;
            Some((self.folder.read(&path).ok().filter(|_| long)?, there.stamp.size))
        })
    }

    fn may_have(&mut self, entry: &EntryMessage) -> bool {
        let EntryKind::File { size: Some(size) } = entry.kind else { return false };
        // In a place that was made for this transfer there was nothing before.
        self.search && !self.fresh && self.same.has_length(&self.folder, self.place.as_ref(), size)
    }

    fn keeps(&self, entry: &EntryMessage) -> bool {
        let path = self.named(&entry.path).ok();
        path.is_some_and(|path| self.receiving.as_ref().is_some_and(|it| it.kept(&path).is_some()))
    }

    fn same(&mut self, size: u64, root: &[u8; 32]) -> Option<SourceFile> {
        let received = self.same.received(size, root);
        received.or_else(|| if self.search { self.same.find(&self.folder, size, root) } else { None })
    }

    fn aside(&mut self, entry: &EntryMessage, resume: bool) -> Result<DiskAside, FileFault> {
        let path = self.named(&entry.path)?;
        let size = match entry.kind {
            EntryKind::File { size } => size,
            _ => None,
        };
        let partial = self.receiving()?.begin(path, size, entry.version, resume)?;
        Ok(DiskAside { partial, root: None })
    }

    fn discard(&mut self, aside: DiskAside) {
        // What cannot be removed now is collected with other unfinished files.
        let _ = self.receiving.as_mut().map(|receiving| receiving.discard(aside.partial));
    }

    fn finish(&mut self, entry: &EntryMessage, content: Option<DiskAside>) -> Result<(), FileFault> {
        let Some(path) = self.path(&entry.path)? else {
            // The folder itself keeps what its owner gave it.
            self.settled.push((entry.index, Ok(())));
            return Ok(());
        };
        let (tag, attributes) = (entry.index, attributes(entry));
        match (&entry.kind, content) {
            (EntryKind::File { .. }, Some(DiskAside { partial, root })) => {
                let file = Arc::clone(partial.file());
                self.receiving()?.finish(tag, partial, &attributes)?;
                if let Some((size, root)) = root {
                    self.same.add(&path, size, root, &file);
                }
            }
            (EntryKind::Symlink { target }, _) => {
                self.receiving()?.symlink(tag, path, target, &attributes)?
            }
            (EntryKind::HardLink { to }, _) => {
                let to = self.named(to)?;
                if !self.receiving()?.may_link(&to) {
                    return Err(FaultReason::NoFirstName.into());
                }
                self.receiving()?.hard_link(tag, path, to)?;
            }
            (EntryKind::Folder, _) => self.receiving()?.finish_folder(tag, path, attributes),
            (EntryKind::File { .. }, None) => return Err(FaultReason::System.into()),
        }
        Ok(())
    }

    fn settle(&mut self, all: bool) -> Result<Vec<Settlement>, FileFault> {
        let mut settled = std::mem::take(&mut self.settled);
        if let Some(receiving) = &mut self.receiving {
            let more = if all { receiving.commit() } else { receiving.settle() };
            settled.extend(more?.into_iter().map(settlement));
        }
        Ok(settled)
    }

    fn end(&mut self) {
        // All is settled: what is left is removed, or collected later.
        let _ = self.receiving.take().map(Receiving::complete);
    }

    fn prune(
        &mut self,
        folder: &[u8],
        dry_run: bool,
        keep: &dyn Fn(&[u8]) -> bool,
        removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FileFault> {
        let path = self.path(folder)?;
        if dry_run && self.hides() {
            return Ok(());
        }
        if dry_run && path.as_ref().is_some_and(|path| !matches!(self.folder.look(path), Ok(Some(_)))) {
            return Ok(());
        }
        if self.may_be_shared(path.as_ref())? {
            return Ok(());
        }
        let keep = |name: &[u8]| {
            let path = if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() };
            // What this transfer brought may have another name than its sender knows.
            let other = self.hides() && is_numbered(name);
            other || keep(name) || !self.patterns.allow(&path, false) || !self.patterns.allow(&path, true)
        };
        let above = self.place.as_ref().map_or(0, |place| place.as_bytes().len() + 1);
        let hides = self.hides();
        let mut stay = StayingNames::default();
        let mut tell = |pruned: Pruned<'_>| match pruned {
            Pruned::Removed(path) if !hides => removed(&path[above..]),
            Pruned::Removed(_) => {}
            Pruned::Stays(path, error) => stay.add(&path[above..], error),
        };
        self.folder.prune(path.as_ref(), dry_run, &keep, &mut tell)?;
        stay.fault().map_or(Ok(()), Err)
    }

    fn told(&self, fault: FileFault) -> FileFault {
        if self.hides() { unseen(fault) } else { fault }
    }

    fn went(&self, entry: &EntryMessage) -> Vec<u8> {
        let is_folder = entry.kind == EntryKind::Folder;
        let fitted = self.named(&entry.path).ok().and_then(|path| self.folder.fit(&path, is_folder).ok());
        let Some(fitted) = fitted.filter(|_| self.hides()) else { return entry.path.clone() };
        // What is above the place is not in the path of an entry.
        let names = entry.path.split(|byte| *byte == b'/').count();
        let all: Vec<&[u8]> = fitted.as_bytes().split(|byte| *byte == b'/').collect();
        all[all.len().saturating_sub(names)..].join(&b'/')
    }
}

/// Bytes of names that one fault has, besides the system's words: it takes 512.
const MAX_STAYING: usize = 384;

/// Names that could not be removed.
#[derive(Default)]
struct StayingNames {
    /// The reason of the first.
    error: Option<FolderError>,
    names: Vec<String>,
    bytes: usize,
    /// Those beyond.
    more: usize,
}

impl StayingNames {
    fn add(&mut self, path: &[u8], error: FolderError) {
        self.error.get_or_insert(error);
        let name = Printable(path).to_string();
        if self.bytes + name.len() > MAX_STAYING {
            self.more += 1;
            return;
        }
        self.bytes += name.len() + 2;
        self.names.push(name);
    }

    /// Returns a fault that names them.
    fn fault(self) -> Option<FileFault> {
        let FileFault { reason, text } = self.error?.into();
        let more = if self.more > 0 { format!(" and {} more", self.more) } else { String::new() };
        let names = format!(": {}{more}", self.names.join(", "));
        Some(FileFault::new(reason, [&text[..], names.as_bytes()].concat()))
    }
}

/// A file that is being received.
pub struct DiskAside {
    partial: Partial,
    /// Its length and hash, once it is verified.
    root: Option<(u64, [u8; 32])>,
}

impl Aside for DiskAside {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileFault> {
        Ok(self.partial.write_at(offset, bytes)?)
    }

    fn hole(&mut self, offset: u64, length: u64) -> Result<(), FileFault> {
        Ok(self.partial.hole(offset, length)?)
    }

    fn verify(&mut self, size: u64, root: &[u8; 32]) -> Result<(), FileFault> {
        self.partial.verify(size, root)?;
        self.root = Some((size, *root));
        Ok(())
    }

    fn suspend(self) {
        // What is not recorded is sent again.
        let _ = self.partial.suspend();
    }
}
