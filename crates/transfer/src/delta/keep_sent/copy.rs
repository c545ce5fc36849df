//! Reading a copy at any place.

use core::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{Nsecs, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use strait_crypto::ICV_LEN;

use super::record::{LAST, LENGTH, PIECE, RecordOpener, SEALED_MAX, damaged};
use super::{MAGIC, SALT};
use crate::delta::DeltaSource;

/// A time that is none, but asks for something (utimensat(2)).
const fn time(tv_nsec: Nsecs) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec }
}

/// A copy of what was sent last.
pub struct KeptCopy {
    file: File,
    opener: RecordOpener,
    /// Where each piece's record is, and its bytes.
    records: Vec<(u64, u32)>,
    size: u64,
    modified: i64,
    root: [u8; 32],
    /// The piece that was read last, and its number.
    piece: (u64, Vec<u8>),
}

impl KeptCopy {
    /// Opens a copy and finds its records; [`io::ErrorKind::InvalidData`] if it is damaged.
    pub(super) fn open(file: File, secret: &[u8; 32]) -> io::Result<KeptCopy> {
        let len = file.metadata()?.len();
        let mut head = [0; MAGIC.len() + SALT];
        read(&file, &mut head, 0)?;
        let salt: &[u8; SALT] =
            head.strip_prefix(MAGIC).and_then(|salt| salt.first_chunk()).ok_or_else(damaged)?;
        let (opener, mut records, mut at) = (RecordOpener::new(secret, salt)?, Vec::new(), head.len() as u64);
        while at < len {
            let mut length = [0; LENGTH];
            read(&file, &mut length, at)?;
            let sealed = u32::from_be_bytes([0, length[0], length[1], length[2]]);
            if sealed as usize > SEALED_MAX {
                return Err(damaged());
            }
            at += LENGTH as u64;
            records.push((at, sealed));
            at += u64::from(sealed);
        }
        let (last, sealed) = records.pop().ok_or_else(damaged)?;
        let mut record = vec![0; sealed as usize];
        read(&file, &mut record, last)?;
        let (size, modified, root) = opener.last(records.len() as u64, &mut record)?;
        let whole = record.len() == LAST + ICV_LEN && size.div_ceil(PIECE as u64) == records.len() as u64;
        if !whole {
            return Err(damaged());
        }
        Ok(KeptCopy { file, opener, records, size, modified, root, piece: (u64::MAX, Vec::new()) })
    }

    /// Bytes of the file.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Its BLAKE3 root: tell the receiver what the patch is against.
    #[must_use]
    pub const fn root(&self) -> &[u8; 32] {
        &self.root
    }

    /// Its time of modification in nanoseconds since 1970, when it was sent.
    #[must_use]
    pub const fn modified(&self) -> i64 {
        self.modified
    }

    /// It is used: others go before it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn touch(&self) -> io::Result<()> {
        let (last_access, last_modification) = (time(UTIME_OMIT), time(UTIME_NOW));
        Ok(futimens(&self.file, &Timestamps { last_access, last_modification })?)
    }

    /// The piece of this number.
    fn piece(&mut self, number: u64) -> io::Result<&[u8]> {
        if self.piece.0 != number {
            let place = usize::try_from(number).ok().and_then(|place| self.records.get(place));
            let (at, len) = *place.ok_or(io::ErrorKind::UnexpectedEof)?;
            let mut sealed = vec![0; len as usize];
            read(&self.file, &mut sealed, at)?;
            self.piece.0 = u64::MAX;
            self.opener.piece(number, &mut sealed, &mut self.piece.1)?;
            self.piece.0 = number;
        }
        Ok(&self.piece.1)
    }
}

impl DeltaSource for KeptCopy {
    fn read_exact_at(&mut self, mut offset: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let piece = self.piece(offset / PIECE as u64)?;
            // Below `PIECE`.
            let there = piece.get((offset % PIECE as u64) as usize..).unwrap_or_default();
            if there.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let len = there.len().min(into.len());
            let (front, rest) = into.split_at_mut(len);
            front.copy_from_slice(&there[..len]);
            (into, offset) = (rest, offset + len as u64);
        }
        Ok(())
    }
}

/// Reads all of `into`; a file that is too short is damaged.
fn read(file: &File, into: &mut [u8], at: u64) -> io::Result<()> {
    file.read_exact_at(into, at)
        .map_err(|error| if error.kind() == io::ErrorKind::UnexpectedEof { damaged() } else { error })
}

impl fmt::Debug for KeptCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptCopy").field("size", &self.size).finish_non_exhaustive()
    }
}
