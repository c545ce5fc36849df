//! Entries without content: folders, symlinks and other names of files.

use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::super::FolderError;
use super::super::apply::{allow_owner, apply_to_symlink};
use super::super::group::{WholeEntry, WholeKind, aside_name};
use super::{Receiving, allowed, fit};
use crate::path::EntryPath;
use crate::stamp::Attributes;

impl Receiving {
    /// Makes a folder, for its owner alone until [`Receiving::finish_folder`], or takes the one that is there. Whether it was made.
    ///
    /// # Errors
    ///
    /// If the path is not allowed, something else has the name, or the folder's limits are reached.
    pub fn make_folder(&mut self, path: &EntryPath) -> Result<bool, FolderError> {
        allowed(path)?;
        let because = |error| FolderError::new("make a folder", error);
        let path = &fit(&self.place.beneath, &self.place.rules, path, true)?;
        let (parent, name) = self.place.beneath.parent(path).map_err(because)?;
        match mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) => {
                let counted = self.place.usage.take_entry();
                if counted.is_err() {
                    let _ = unlinkat(&parent, name, AtFlags::REMOVEDIR);
                }
                counted.map(|()| true)
            }
            Err(Errno::EXIST) => {
                let flags = OFlags::PATH | OFlags::DIRECTORY;
                // What has the name is no folder, and if it is a symlink it is not followed.
                let folder =
                    self.place.beneath.file(path.as_bytes(), flags).map_err(|error| match error {
                        Errno::LOOP | Errno::NOTDIR => FolderError::InTheWay,
                        error => because(error),
                    })?;
                // Its last attributes come when it is finished.
                allow_owner(&folder, 0o700).map_err(because)?;
                Ok(false)
            }
            Err(error) => Err(because(error)),
        }
    }

    /// Makes a folder and those above it that are not there.
    ///
    /// # Errors
    ///
    /// As [`Receiving::make_folder`].
    pub fn make_folders(&mut self, path: &EntryPath) -> Result<(), FolderError> {
        let bytes = path.as_bytes();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([bytes.len()]) {
            self.make_folder(&EntryPath::new(&bytes[..end])?)?;
        }
        Ok(())
    }

    /// Gives a folder its attributes, after all entries that came before. `tag` names it in the answer.
    pub fn finish_folder(&mut self, tag: u64, path: EntryPath, attributes: Attributes) {
        self.push(WholeEntry { tag, path, what: WholeKind::Folder { attributes } }, 0);
    }

    /// Makes a symlink aside, as it is: what is where it leads is not looked at. It gets its name with the next group.
    ///
    /// # Errors
    ///
    /// If the path is not allowed or the rules allow no such symlink, the folder's limits are reached, or the symlink cannot be made.
    pub fn symlink(
        &mut self,
        tag: u64,
        path: EntryPath,
        target: &[u8],
        attributes: &Attributes,
    ) -> Result<(), FolderError> {
        allowed(&path)?;
        self.place.rules.symlinks.check(path.depth(), target)?;
        self.place.usage.take_entry()?;
        let slot = self.take_slot();
        let (work, name) = (&self.place.work, aside_name(slot));
        work.remove(&name);
        let made = symlinkat(target, work.folder(), &name);
        made.map_err(|error| FolderError::new("make a symlink", error))?;
        apply_to_symlink(work.folder(), &name, attributes, &self.place.rules)?;
        self.push(WholeEntry { tag, path, what: WholeKind::Symlink { slot } }, 0);
        Ok(())
    }

    /// Makes another name for a file of this folder, with the next group.
    ///
    /// # Errors
    ///
    /// If a path is not allowed or the folder's limits are reached.
    pub fn hard_link(&mut self, tag: u64, path: EntryPath, to: EntryPath) -> Result<(), FolderError> {
        allowed(&path)?;
        allowed(&to)?;
        self.place.usage.take_entry()?;
        let slot = self.take_slot();
        self.push(WholeEntry { tag, path, what: WholeKind::Link { to, slot } }, 0);
        Ok(())
    }
}
