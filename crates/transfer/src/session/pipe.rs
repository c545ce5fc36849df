//! Standard input and output as the ends of a session.

use std::fs::File;
use std::io::{self, Read, Write};

use super::ends::{Aside, Content, ContentState, Destination, NotFound, Origin, Settlement, Standing};
use crate::message::{EntryKind, EntryMessage, FaultReason, FileFault};
use crate::pieces::ZEROS;

/// Sends one file that is read from its beginning to its end, whose length is not known.
pub struct PipeOrigin<R> {
    entry: Option<EntryMessage>,
    reader: Option<R>,
}

impl<R: Read + Send> PipeOrigin<R> {
    /// The file gets this name, and this time of modification, in nanoseconds since 1970.
    pub fn new(name: Vec<u8>, modified: i64, reader: R) -> PipeOrigin<R> {
        let entry = EntryMessage::new(name, EntryKind::File { size: None }, 0o644, modified);
        PipeOrigin { entry: Some(entry), reader: Some(reader) }
    }
}

impl<R: Read + Send> Origin for PipeOrigin<R> {
    type Content = PipeContent<R>;

    fn next_entry(&mut self) -> Option<Result<EntryMessage, NotFound>> {
        self.entry.take().map(Ok)
    }

    fn open(&mut self, entry: &EntryMessage) -> Result<PipeContent<R>, FileFault> {
        // What was read cannot be read again.
        let reader = self.reader.take().ok_or(FaultReason::Vanished)?;
        Ok(PipeContent { reader, modified: entry.modified })
    }
}

/// What is read in order.
pub struct PipeContent<R> {
    reader: R,
    modified: i64,
}

impl<R: Read + Send> Content for PipeContent<R> {
    fn state(&mut self) -> io::Result<ContentState> {
        Ok(ContentState { size: None, modified: self.modified, version: [0; 8] })
    }

    fn read_at(&mut self, _offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    fn extent(&mut self, _from: u64) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }
}

/// Receives one file, whose bytes are written as they come: what reads them has them before they are verified.
pub struct PipeDestination<W> {
    writer: Option<W>,
    settled: Vec<Settlement>,
}

impl<W: Write> PipeDestination<W> {
    /// Writes to this.
    pub fn new(writer: W) -> PipeDestination<W> {
        PipeDestination { writer: Some(writer), settled: Vec::new() }
    }
}

fn unwritable(error: &io::Error) -> FileFault {
    FileFault::new(FaultReason::Unwritable, error.to_string())
}

impl<W: Write> Destination for PipeDestination<W> {
    type Aside = PipeAside<W>;

    fn folder(&mut self, _entry: &EntryMessage) -> Result<bool, FileFault> {
        Err(FileFault::new(FaultReason::InTheWay, "a folder cannot go to standard output"))
    }

    fn standing(&mut self, _entry: &EntryMessage) -> Result<Standing, FileFault> {
        Ok(Standing::Other)
    }

    fn older(&mut self, _entry: &EntryMessage) -> Option<(File, u64)> {
        None
    }

    fn aside(&mut self, _entry: &EntryMessage, _resume: bool) -> Result<PipeAside<W>, FileFault> {
        let used = || FileFault::new(FaultReason::InTheWay, "only one file can go to standard output");
        let writer = self.writer.take().ok_or_else(used)?;
        Ok(PipeAside { writer, position: 0, hash: blake3::Hasher::new() })
    }

    fn discard(&mut self, _aside: PipeAside<W>) {}

    fn finish(&mut self, entry: &EntryMessage, content: Option<PipeAside<W>>) -> Result<(), FileFault> {
        let other = || FileFault::new(FaultReason::InTheWay, "only a file can go to standard output");
        let mut content = content.ok_or_else(other)?;
        content.writer.flush().map_err(|error| unwritable(&error))?;
        self.settled.push((entry.index, Ok(())));
        Ok(())
    }

    fn settle(&mut self, _all: bool) -> Result<Vec<Settlement>, FileFault> {
        Ok(std::mem::take(&mut self.settled))
    }

    fn end(&mut self) {}

    fn prune(
        &mut self,
        _folder: &[u8],
        _dry_run: bool,
        _keep: &dyn Fn(&[u8]) -> bool,
        _removed: &mut dyn FnMut(&[u8]),
    ) -> Result<(), FileFault> {
        Ok(())
    }
}

/// The file on its way to standard output.
pub struct PipeAside<W> {
    writer: W,
    position: u64,
    hash: blake3::Hasher,
}

impl<W: Write> Aside for PipeAside<W> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileFault> {
        if offset != self.position {
            return Err(FaultReason::Protocol.into());
        }
        self.writer.write_all(bytes).map_err(|error| unwritable(&error))?;
        self.hash.update(bytes);
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn hole(&mut self, offset: u64, length: u64) -> Result<(), FileFault> {
        let end = offset.saturating_add(length);
        while self.position < end {
            let step = (end - self.position).min(ZEROS.len() as u64);
            self.write(self.position, &ZEROS[..usize::try_from(step).unwrap_or(0)])?;
        }
        Ok(())
    }

    fn verify(&mut self, size: u64, root: &[u8; 32]) -> Result<(), FileFault> {
        if size != self.position {
            return Err(FaultReason::WrongSize.into());
        }
        if self.hash.finalize().as_bytes() == root { Ok(()) } else { Err(FaultReason::WrongHash.into()) }
    }

    fn suspend(self) {}
}
