//! Commands that are owed: written down durably before the sender hears that its transfer is done, removed when the command has ended.
//!
//! So a command runs at least once for each transfer that its sender saw end, whatever is killed meanwhile; one that was killed
//! itself runs again. The records are in the folder's hidden one, where no peer and no other user writes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock, fsync, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use strait_keying::PublicKey;

use crate::beneath::Beneath;
use crate::folder::{WORKING_FOLDER, names_in};
use crate::stamp::Status;
use crate::{FolderPath, TransferId};

/// What the name of a record ends in, and one that is not whole yet.
const RECORD: &str = ".arrived";
const ASIDE: &str = ".arrived-new";
/// Bytes before the names: the transfer and its sender. Behind the names is a BLAKE3 hash of all before it.
const HEAD: usize = 16 + 32;
const HASH: usize = 32;
/// Bytes of a record at most: the names that a command is told, which the service bounds by 8 MiB, and a little.
const RECORD_MAX: u64 = 9 << 20;

/// A transfer of which the folder's command has yet to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwedCommand {
    /// The transfer that arrived.
    pub transfer: TransferId,
    /// Who sent it.
    pub sender: PublicKey,
    /// What arrived, relative to the folder.
    pub paths: Vec<Vec<u8>>,
}

impl OwedCommand {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = [&self.transfer.as_bytes()[..], self.sender.as_bytes()].concat();
        for path in &self.paths {
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        let hash = blake3::hash(&bytes);
        bytes.extend_from_slice(hash.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<OwedCommand> {
        let (content, hash) = bytes.split_last_chunk::<HASH>()?;
        if blake3::hash(content) != *hash {
            return None;
        }
        let (head, names) = content.split_first_chunk::<HEAD>()?;
        let (transfer, sender) = head.split_first_chunk::<16>()?;
        let names = names.strip_suffix(&[0]).unwrap_or_default();
        let paths = names.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec);
        let sender = PublicKey::from_bytes(*sender.first_chunk()?);
        Some(OwedCommand { transfer: TransferId::from_bytes(*transfer), sender, paths: paths.collect() })
    }
}

/// What is owed in a folder.
#[derive(Debug)]
pub struct OwedCommands {
    beneath: Beneath,
}

impl OwedCommands {
    /// Those of a folder.
    ///
    /// # Errors
    /// As the system's.
    pub fn open(folder: &FolderPath) -> io::Result<OwedCommands> {
        Ok(OwedCommands { beneath: Beneath::open(folder)? })
    }

    /// Writes down that a command is owed; durable when it returns. A process owes one of a transfer at a time.
    ///
    /// # Errors
    /// As the system's; nothing is owed then.
    pub fn owe(&self, owed: &OwedCommand) -> io::Result<()> {
        match mkdirat(self.beneath.root(), WORKING_FOLDER, Mode::RWXU) {
            Ok(()) => fsync(self.beneath.root())?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let folder = self.folder()?.ok_or(io::ErrorKind::NotFound)?;
        // Another process may write of the same transfer, if it came twice.
        let name = format!("{}-{}", owed.transfer, std::process::id());
        let (aside, whole) = (format!("{name}{ASIDE}"), format!("{name}{RECORD}"));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&folder, &aside, flags, Mode::RUSR | Mode::WUSR)?);
        let written = file.write_all(&owed.encode()).and_then(|()| file.sync_all());
        let written = written.and_then(|()| Ok(renameat(&folder, &aside, &folder, &whole)?));
        written.and_then(|()| Ok(fsync(&folder)?)).inspect_err(|_| {
            let _ = unlinkat(&folder, &aside, AtFlags::empty());
            let _ = unlinkat(&folder, &whole, AtFlags::empty());
        })
    }

    /// Whether something may be owed, as far as any user can see.
    #[must_use]
    pub fn may_owe(&self) -> bool {
        let folder = self.beneath.folder(Some(WORKING_FOLDER.as_bytes()));
        let names = folder.ok().and_then(|folder| names_in(&folder).ok());
        names.unwrap_or_default().iter().any(|name| name.ends_with(RECORD.as_bytes()))
    }

    /// Has `run` carry out what is owed, one after the other. What another process carries out is left to it.
    ///
    /// # Errors
    /// As the system's; what was not carried out is still owed.
    pub fn settle(&self, mut run: impl FnMut(OwedCommand)) -> io::Result<()> {
        let Some(folder) = self.folder()? else { return Ok(()) };
        for name in names_in(&folder)?.iter().filter(|name| name.ends_with(RECORD.as_bytes())) {
            let Some(mut file) = claim(&folder, name)? else { continue };
            let mut bytes = Vec::new();
            Read::by_ref(&mut file).take(RECORD_MAX).read_to_end(&mut bytes)?;
            // One that is not whole, which only a broken disk makes, says nothing.
            if let Some(owed) = OwedCommand::decode(&bytes) {
                run(owed);
            }
            unlinkat(&folder, name, AtFlags::empty())?;
        }
        // Succeeds only if nothing else is in it.
        let _ = unlinkat(self.beneath.root(), WORKING_FOLDER, AtFlags::REMOVEDIR);
        Ok(())
    }

    /// The hidden folder, if it is there and this user's: what another one made could say anything.
    fn folder(&self) -> io::Result<Option<OwnedFd>> {
        let folder = match self.beneath.folder(Some(WORKING_FOLDER.as_bytes())) {
            Err(Errno::NOENT) => return Ok(None),
            folder => folder?,
        };
        let owner = Status::of(&folder)?.attributes().owner.0;
        if owner == geteuid().as_raw() {
            Ok(Some(folder))
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

/// Opens and locks a record. None if another process has it, or had it.
fn claim(folder: &OwnedFd, name: &[u8]) -> io::Result<Option<File>> {
    let file = match openat(folder, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    {
        Err(Errno::NOENT) => return Ok(None),
        file => file?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        locked => locked?,
    }
    let is_there = Status::of(&file)?.names() > 0;
    Ok(is_there.then(|| file.into()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strait_keying::PrivateKey;

    use super::*;
    use crate::scratch::ScratchFolder;

    fn owed(number: u8, paths: &[&[u8]]) -> OwedCommand {
        OwedCommand {
            transfer: TransferId::from_bytes([number; 16]),
            sender: PrivateKey::generate(&[1; 32]).public(),
            paths: paths.iter().map(|path| path.to_vec()).collect(),
        }
    }

    fn settled(commands: &OwedCommands) -> Vec<OwedCommand> {
        let mut all = Vec::new();
        commands.settle(|owed| all.push(owed)).unwrap();
        all.sort_by_key(|owed| *owed.transfer.as_bytes());
        all
    }

    #[test]
    fn what_is_owed_is_carried_out_once_and_then_nothing_is_left() {
        let scratch = ScratchFolder::new();
        let commands = OwedCommands::open(&scratch.path().into()).unwrap();
        assert!(!commands.may_owe() && settled(&commands).is_empty());
        let all = [owed(1, &[b"a", b"b/\xff\n"]), owed(2, &[b"c"])];
        all.iter().for_each(|owed| commands.owe(owed).unwrap());
        // The same again: its names may be more.
        commands.owe(&all[0]).unwrap();
        assert!(commands.may_owe());
        assert_eq!(settled(&commands), all);
        assert!(!commands.may_owe() && !scratch.path().join(WORKING_FOLDER).exists());
    }

    #[test]
    fn who_is_killed_while_a_command_runs_still_owes_it() {
        let scratch = ScratchFolder::new();
        let commands = OwedCommands::open(&scratch.path().into()).unwrap();
        commands.owe(&owed(1, &[b"a"])).unwrap();
        let killed = std::panic::catch_unwind(|| {
            let commands = OwedCommands::open(&scratch.path().into()).unwrap();
            commands.settle(|_| panic!("killed")).unwrap();
        });
        assert!(killed.is_err());
        // A process that another test starts has the lock as well until it runs its own program.
        let again = (0..1000).map(|_| settled(&commands)).find(|all| {
            std::thread::sleep(std::time::Duration::from_millis(if all.is_empty() { 5 } else { 0 }));
            !all.is_empty()
        });
        assert_eq!(again, Some(vec![owed(1, &[b"a"])]));
    }

    #[test]
    fn what_one_process_carries_out_no_other_does() {
        let scratch = ScratchFolder::new();
        let first = OwedCommands::open(&scratch.path().into()).unwrap();
        let second = OwedCommands::open(&scratch.path().into()).unwrap();
        first.owe(&owed(1, &[b"a"])).unwrap();
        first.settle(|_| assert_eq!(settled(&second), [])).unwrap();
    }

    proptest! {
        #[test]
        fn records_read_back_and_no_part_or_changed_one_does(
            paths in prop::collection::vec(prop::collection::vec(1..=u8::MAX, 1..20), 0..6), at: prop::sample::Index
        ) {
            let owed = OwedCommand { paths, ..owed(7, &[]) };
            let bytes = owed.encode();
            prop_assert_eq!(OwedCommand::decode(&bytes), Some(owed));
            prop_assert_eq!(OwedCommand::decode(&bytes[..at.index(bytes.len())]), None);
            let mut changed = bytes.clone();
            changed[at.index(bytes.len())] ^= 1;
            prop_assert_eq!(OwedCommand::decode(&changed), None);
        }
    }
}
