//! One transfer into a folder.

mod names;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rustix::fs::{OFlags, fstatfs};
use rustix::process::geteuid;

use super::apply::{allow_owner, apply, time_kept};
use super::checkpoint::{Checkpoint, EVERY, EVERY_BYTES};
use super::fitting::fit;
use super::given::{GivenFiles, path_hash, state_hash};
use super::group::{ASIDE, Place, Settled, WholeEntry, WholeGroup, WholeKind, aside_name};
use super::keeper::{Keeper, KeeperAnswer, KeeperJob};
use super::log::{KeptFile, PieceLog};
use super::offer::Offer;
use super::partial::{Partial, PartialIdentity};
use super::usage::Usage;
use super::work::{WORKING_FOLDER, WorkFolder};
use super::{Folder, FolderError};
use crate::beneath::may_write;
use crate::message::MAX_SUBTREES;
use crate::path::EntryPath;
use crate::stamp::{Attributes, Status};

/// The name of a file without content, for as long as it takes to open it.
const TIMED: &str = "timed";
/// Entries of a group at most: what it keeps in memory is bounded, and a receipt does not wait long.
const MANY_ENTRIES: usize = 2048;
/// Subtrees of unfinished files that senders hear of at a time: 3 MB. A file has some in any case.
const MAX_OFFERED: usize = 1 << 16;
/// As [`MAX_OFFERED`], for a file when there is no room.
const MIN_OFFERED: usize = 64;
/// Numbers of file systems that may compress (statfs(2), and the source of OpenZFS): Btrfs, ZFS, bcachefs, F2FS.
const COMPRESSING: [u32; 4] = [0x9123_683e, 0x2fc1_2fc1, 0xca45_1a4e, 0xf2f5_2010];

/// A transfer into a folder. Files come aside and get their names in groups; see [`Folder`].
///
/// Dropped, it leaves everything that was given its name or recorded, as if the process had been killed, and frees its lock.
pub struct Receiving {
    keeper: Keeper,
    place: Arc<Place>,
    /// What earlier runs left, by path.
    kept: BTreeMap<EntryPath, KeptFile>,
    /// The files that this run and earlier ones gave names, if the sender may not read.
    given: GivenFiles,
    next_slot: u32,
    /// True once a file began in this run.
    begun: bool,
    group: WholeGroup,
    /// When the group got its first entry.
    since: Option<Instant>,
    /// Groups that were handed over and not answered.
    pending: usize,
    /// Why a resume will know less.
    unrecorded: Option<FolderError>,
    /// A file without a name that tells which times the file system keeps; nothing where there can be none.
    timed: OnceLock<Option<File>>,
}

impl Receiving {
    pub(super) fn open(folder: &Folder, transfer: [u8; 16]) -> Result<Receiving, FolderError> {
        let work = Arc::new(WorkFolder::open(&folder.beneath, transfer)?);
        let usage = Arc::new(Usage::new(&folder.beneath, &folder.rules)?);
        let log = PieceLog::open(Arc::clone(&work))?;
        let kept: BTreeMap<_, _> = log
            .files()
            .filter(|file| is_long_enough(&work, file))
            .map(|file| (file.path.clone(), file.clone()))
            .collect();
        let names: Vec<_> = kept.values().map(|file| aside_name(file.slot).into_bytes()).collect();
        work.retain(|name| !name.starts_with(b"aside-") || names.iter().any(|kept| kept == name))?;
        let next_slot = log.files().map(|file| file.slot + 1).max().unwrap_or(0);
        let given = log.given().clone();
        let place = Place { beneath: Arc::clone(&folder.beneath), work, rules: folder.rules, usage };
        let place = Arc::new(place);
        let keeper = Keeper::start(Arc::clone(&place), log)?;
        let (begun, group, since, pending, unrecorded) = (false, WholeGroup::default(), None, 0, None);
        let timed = OnceLock::new();
        Ok(Receiving {
            keeper,
            place,
            kept,
            given,
            next_slot,
            begun,
            group,
            since,
            pending,
            unrecorded,
            timed,
        })
    }

    /// Returns the time, in nanoseconds since 1970, that a file has here which was last modified at `modified`: some file systems keep
    /// whole seconds only, or times of a few decades.
    pub(crate) fn time_kept(&self, modified: i64) -> Option<i64> {
        let timed = self.timed.get_or_init(|| {
            let work = &self.place.work;
            let file = work.file(TIMED, OFlags::RDWR | OFlags::CREATE, "look which times are kept").ok();
            work.remove(TIMED);
            file
        });
        time_kept(timed.as_ref()?, modified)
    }

    /// What an earlier run left of a file.
    #[must_use]
    pub fn kept(&self, path: &EntryPath) -> Option<&KeptFile> {
        self.kept.get(path)
    }

    /// True if this transfer gave a file in this state its name, as far as that is known: only where the rules hide what is there.
    #[must_use]
    pub fn gave(&self, path: &EntryPath, size: u64, attributes: &Attributes) -> bool {
        let state = state_hash(size, attributes.modified, attributes.mode);
        self.given.get(path) == Some(state)
    }

    /// True if a hard link to this name may be made: where the rules hide what is there, to files of this transfer alone.
    #[must_use]
    pub fn may_link(&self, to: &EntryPath) -> bool {
        !self.place.rules.hidden || self.given.get(to).is_some()
    }

    /// The pieces that an earlier run left of a file, if the sender can go on from them. Of another state of the source they are read.
    pub fn offer(&mut self, path: &EntryPath, size: Option<u64>, version: [u8; 8]) -> Option<Offer> {
        let mut kept = self.kept.remove(path)?;
        if kept.offer.is_none()
            && let Some(size) = size
        {
            let offered: usize =
                self.kept.values().filter_map(|kept| kept.offer.as_ref()).map(|offer| offer.held.len()).sum();
            let most = MAX_OFFERED.saturating_sub(offered).clamp(MIN_OFFERED, MAX_SUBTREES);
            // What cannot be read is not there.
            let file = self.open_kept(kept.slot).ok();
            kept.offer = file.and_then(|file| Offer::of(&kept, &file, (size, version), most).ok()).flatten();
        }
        let offer = kept.offer.clone();
        self.kept.insert(path.clone(), kept);
        offer
    }

    /// Looks whether a file could be stored of which so many bytes are to come: whether its folder, as far as it is there, may be written,
    /// and, before a file of this run began, whether the disk and the folder's limit have room.
    ///
    /// # Errors
    ///
    /// The obstacle. Without one now there may be one later.
    pub fn room(&self, path: &EntryPath, bytes: u64) -> Result<(), FolderError> {
        let folder = match self.place.beneath.parent(path) {
            Ok((folder, _)) => folder,
            // It is made with what is in it, or leads elsewhere, which is said then.
            Err(_) => return Ok(()),
        };
        may_write(&folder).map_err(|error| FolderError::new("write to its folder", error))?;
        // Files that are on their way may give room when they replace others; and who may not read learns nothing of the room.
        if self.begun || self.place.rules.hidden {
            return Ok(());
        }
        if self.place.usage.left() < bytes {
            return Err(FolderError::MaxBytes);
        }
        let Ok(disk) = fstatfs(self.place.work.folder()) else { return Ok(()) };
        // A file system that does not count has no blocks, and one that compresses may take more than is free.
        if disk.f_blocks == 0 || COMPRESSING.contains(&(disk.f_type as u32)) {
            return Ok(());
        }
        let blocks = if geteuid().is_root() { disk.f_bfree } else { disk.f_bavail };
        let free = blocks.saturating_mul(u64::try_from(disk.f_bsize).unwrap_or(0));
        if free < bytes { Err(FolderError::NoRoom { needed: bytes, free }) } else { Ok(()) }
    }

    /// Begins a file of `size` bytes, if that is known. With `resume`, it goes on from what [`Receiving::offer`] gives for this size and
    /// version, the sender's name for the state of its source. Otherwise what an earlier run left is removed.
    ///
    /// # Errors
    ///
    /// If the path is not allowed, the folder's limits are reached, or the file cannot be made.
    pub fn begin(
        &mut self,
        path: EntryPath,
        size: Option<u64>,
        version: [u8; 8],
        resume: bool,
    ) -> Result<Partial, FolderError> {
        allowed(&path)?;
        self.begun = true;
        let offer = if resume { self.offer(&path, size, version) } else { None };
        if let Some(kept) = self.kept.remove(&path) {
            let identity = PartialIdentity { slot: kept.slot, path: path.clone(), size, version };
            let (goes_on, file) = (offer.is_some(), Arc::new(self.open_kept(kept.slot)?));
            let mut checkpoint = Checkpoint::new(self.keeper.jobs().clone(), true);
            if let Some(mixed) = offer.as_ref().filter(|offer| !offer.same_version) {
                checkpoint.restate(&identity, [0; 8], &file, &mixed.held)?;
            }
            let offer = Some(offer.unwrap_or_default());
            let partial = Partial::new(identity, file, offer, Arc::clone(&self.place.usage), checkpoint);
            if goes_on {
                return Ok(partial);
            }
            self.discard(partial)?;
        }
        self.place.usage.take_entry()?;
        let identity = PartialIdentity { slot: self.take_slot(), path, size, version };
        let file = self.place.work.file(&aside_name(identity.slot), ASIDE | OFlags::TRUNC, "make a file")?;
        let checkpoint = Checkpoint::new(self.keeper.jobs().clone(), false);
        Ok(Partial::new(identity, Arc::new(file), None, Arc::clone(&self.place.usage), checkpoint))
    }

    /// Opens a file of an earlier run.
    fn open_kept(&self, slot: u32) -> Result<File, FolderError> {
        let (name, doing) = (aside_name(slot), "go on with a file");
        // It may have got its permissions before it could get its name.
        let closed = OwnedFd::from(self.place.work.file(&name, OFlags::PATH, doing)?);
        allow_owner(&closed, 0o600).map_err(|error| FolderError::new(doing, error))?;
        self.place.work.file(&name, OFlags::RDWR, doing)
    }

    /// Removes an unfinished file and what was recorded of it.
    ///
    /// # Errors
    ///
    /// If the thread that writes records has ended.
    pub fn discard(&mut self, partial: Partial) -> Result<(), FolderError> {
        if let Ok(status) = Status::of(partial.file()) {
            self.place.usage.give_back(status.on_disk(), 1);
        }
        partial.checkpoint.forget(partial.identity.slot)?;
        self.place.work.remove(&aside_name(partial.identity.slot));
        Ok(())
    }

    /// Gives a verified file its attributes, and its name with the next group. `tag` names it in the answer.
    ///
    /// # Errors
    ///
    /// If the file is not verified or cannot have the attributes. It is then removed.
    pub fn finish(&mut self, tag: u64, partial: Partial, attributes: &Attributes) -> Result<(), FolderError> {
        let applied = match partial.is_verified() {
            true => apply(partial.file(), attributes, &self.place.rules),
            false => Err(FolderError::WrongHash),
        };
        if let Err(error) = applied {
            self.discard(partial)?;
            return Err(error);
        }
        let size = partial.file().metadata().map_or(0, |found| found.len());
        let hidden = self.place.rules.hidden;
        let state = hidden.then(|| state_hash(size, attributes.modified, attributes.mode));
        if let Some(state) = state {
            self.given.add(path_hash(&partial.identity.path), state);
        }
        let what = WholeKind::File {
            slot: partial.identity.slot,
            recorded: partial.checkpoint.begun(),
            state,
            file: Some(Arc::clone(partial.file())),
        };
        self.push(WholeEntry { tag, path: partial.identity.path, what }, size.min(EVERY_BYTES));
        Ok(())
    }

    fn take_slot(&mut self) -> u32 {
        let slot = self.next_slot;
        self.next_slot = self.next_slot.wrapping_add(1);
        slot
    }

    fn push(&mut self, entry: WholeEntry, bytes: u64) {
        self.group.push(entry, bytes);
        self.since.get_or_insert_with(Instant::now);
    }

    /// Hands the group over if it is old or large enough, and returns the results of earlier ones. Never waits for the disk, unless it
    /// is far behind.
    ///
    /// # Errors
    ///
    /// If the thread that waits for the disk has ended.
    pub fn settle(&mut self) -> Result<Vec<Settled>, FolderError> {
        let large = |factor: u64| {
            self.group.bytes() >= factor * EVERY_BYTES
                || self.group.len() as u64 >= factor * MANY_ENTRIES as u64
        };
        if large(1) || self.since.is_some_and(|since| since.elapsed() >= EVERY) {
            let patient = large(2);
            self.hand_over(patient)?;
        }
        let mut settled = Vec::new();
        while let Some(answer) = self.keeper.answer() {
            self.take(answer, &mut settled);
        }
        Ok(settled)
    }

    /// Hands the group over and waits until all are settled.
    ///
    /// # Errors
    ///
    /// As [`Receiving::settle`].
    pub fn commit(&mut self) -> Result<Vec<Settled>, FolderError> {
        self.hand_over(true)?;
        let mut settled = Vec::new();
        while self.pending > 0 {
            let answer = self.keeper.wait().ok_or(FolderError::Busy)?;
            self.take(answer, &mut settled);
        }
        Ok(settled)
    }

    fn hand_over(&mut self, patient: bool) -> Result<(), FolderError> {
        if self.group.len() == 0 {
            return Ok(());
        }
        let group = std::mem::take(&mut self.group);
        match self.keeper.jobs().give(KeeperJob::Group(group), patient) {
            Ok(()) => {
                self.since = None;
                self.pending += 1;
                Ok(())
            }
            Err(KeeperJob::Group(group)) if !patient => {
                self.group = group;
                Ok(())
            }
            Err(_) => Err(FolderError::Busy),
        }
    }

    fn take(&mut self, answer: KeeperAnswer, settled: &mut Vec<Settled>) {
        match answer {
            KeeperAnswer::Settled(group) => {
                self.pending -= 1;
                settled.extend(group);
            }
            KeeperAnswer::Unrecorded(error) => self.unrecorded = Some(error),
        }
    }

    /// The last error that kept pieces from being written down, such as for a full disk: the transfer can go on, and if it is interrupted,
    /// more of it comes again. A file whose bytes did not reach the disk fails when it is settled.
    #[must_use]
    pub fn unrecorded(&self) -> Option<FolderError> {
        self.unrecorded
    }

    /// Ends the transfer: settles what is left, and removes all that is not under its name, with the records.
    ///
    /// # Errors
    ///
    /// As [`Receiving::settle`], and if the folder for unfinished files cannot be removed.
    pub fn complete(mut self) -> Result<Vec<Settled>, FolderError> {
        let settled = self.commit()?;
        let place = Arc::clone(&self.place);
        // The thread ends first: it writes to what is removed.
        drop(self);
        place.work.remove_all()?;
        place.beneath.remove_empty(WORKING_FOLDER);
        Ok(settled)
    }
}

/// No entry is, or is below, the folder for unfinished files.
pub(super) fn allowed(path: &EntryPath) -> Result<(), FolderError> {
    if path.first() == WORKING_FOLDER.as_bytes() { Err(FolderError::Reserved) } else { Ok(()) }
}

/// Whether the file aside has what its records say.
fn is_long_enough(work: &WorkFolder, file: &KeptFile) -> bool {
    let last = file.pieces.subtrees().last();
    // The last piece may be short, so it need only begin before the end.
    let needed = last.map_or(0, |subtree| (subtree.end() - 1) * crate::pieces::PIECE_LEN);
    let found = Status::at(work.folder(), aside_name(file.slot).as_bytes());
    found.is_ok_and(|found| file.size.is_some() || found.stamp().size > needed)
}
