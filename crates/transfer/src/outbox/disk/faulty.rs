//! A disk that stops at a chosen step, as when the power fails: what was not synchronised is there, or not, or half.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use strait_clock::Random;

use super::OutboxDisk;

/// A file's bytes, by a number of its own, so that a rename moves what was written before.
type Inode = u64;

/// Files in memory. `names` and `bytes` are what a running system sees, `durable_*` what is there after a power failure.
#[derive(Clone)]
pub(in crate::outbox) struct FaultyDisk {
    names: BTreeMap<String, Inode>,
    bytes: BTreeMap<Inode, Vec<u8>>,
    durable_names: BTreeMap<String, Inode>,
    durable_bytes: BTreeMap<Inode, Vec<u8>>,
    /// Names that changed since they were synchronised, in order: the new name, or a removal.
    pending: Vec<(String, Option<Inode>)>,
    unsynced: BTreeSet<Inode>,
    next: Inode,
    /// Steps until it fails.
    pub(in crate::outbox) left: u64,
}

impl FaultyDisk {
    pub(in crate::outbox) fn new() -> FaultyDisk {
        FaultyDisk {
            names: BTreeMap::new(),
            bytes: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            durable_bytes: BTreeMap::new(),
            pending: Vec::new(),
            unsynced: BTreeSet::new(),
            next: 0,
            left: u64::MAX,
        }
    }

    fn step(&mut self) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| io::Error::other("the power failed"))?;
        Ok(())
    }

    /// What is there when the power is back.
    pub(in crate::outbox) fn after_power_failure(&self, chance: &mut Random) -> FaultyDisk {
        let mut disk =
            FaultyDisk { left: u64::MAX, pending: Vec::new(), unsynced: BTreeSet::new(), ..self.clone() };
        disk.names.clone_from(&self.durable_names);
        // A journal writes names in their order, as far as it came.
        let came = usize::try_from(chance.below(self.pending.len() as u64 + 1)).unwrap();
        for (name, inode) in &self.pending[..came] {
            match inode {
                Some(inode) => disk.names.insert(name.clone(), *inode),
                None => disk.names.remove(name),
            };
        }
        disk.bytes.clone_from(&self.durable_bytes);
        for inode in &self.unsynced {
            // All, some, none, or zeros of what was written.
            let written = &self.bytes[inode];
            let len = usize::try_from(chance.below(written.len() as u64 + 1)).unwrap();
            let found = match chance.below(4) {
                0 => written.clone(),
                1 => written[..len].to_vec(),
                2 => vec![0; written.len()],
                _ => Vec::new(),
            };
            disk.bytes.insert(*inode, found);
        }
        disk.durable_names.clone_from(&disk.names);
        disk.durable_bytes.clone_from(&disk.bytes);
        disk
    }
}

impl OutboxDisk for FaultyDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.names.keys().cloned().collect())
    }

    fn read(&self, name: &str, max: u64) -> io::Result<Vec<u8>> {
        let bytes =
            self.names.get(name).and_then(|inode| self.bytes.get(inode)).ok_or(io::ErrorKind::NotFound)?;
        if bytes.len() as u64 > max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(bytes.clone()) }
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        self.next += 1;
        let inode = *self.names.entry(name.to_owned()).or_insert(self.next);
        self.bytes.insert(inode, bytes.to_vec());
        self.unsynced.insert(inode);
        self.pending.push((name.to_owned(), Some(inode)));
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.step()?;
        let inode = self.names[name];
        self.durable_bytes.insert(inode, self.bytes[&inode].clone());
        self.unsynced.remove(&inode);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.step()?;
        let inode = self.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        self.names.insert(to.to_owned(), inode);
        self.pending.push((to.to_owned(), Some(inode)));
        self.pending.push((from.to_owned(), None));
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.step()?;
        self.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        self.pending.push((name.to_owned(), None));
        Ok(())
    }

    fn sync_names(&mut self) -> io::Result<()> {
        self.step()?;
        self.durable_names.clone_from(&self.names);
        for inode in self.names.values() {
            self.durable_bytes.entry(*inode).or_default();
        }
        self.pending.clear();
        Ok(())
    }
}
