//! The thread that encrypts and writes to the stream.

use std::io::Write;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::handed::Sealed;
use super::kinds::UploadError;
use super::queue::{Popped, Queue};
use super::shared::Shared;
use crate::TransferId;
use crate::broker::client::{BrokerError, BrokerRequests};
use crate::broker::message::BrokerRequest;
use crate::sealed::chunks::{CHUNK, ChunkWriter, TAG};
use crate::sealed::frames;

/// How often a client that has nothing to say shows that it is there, as an end of a session for files does.
const SIGN: Duration = Duration::from_secs(60);
/// Bytes of padding that are encrypted at once.
const STEP: u64 = 1 << 20;

/// Bytes, or time of writing, after which the rate is measured: a frame of a thin link, some frames of a fast one.
const MEASURED: u64 = 256 << 10;
const MEASURING: Duration = Duration::from_millis(100);

/// What is sent of one object.
struct Outgoing {
    id: TransferId,
    chunks: Option<ChunkWriter<Vec<u8>>>,
    /// Where the next bytes of ciphertext stand in the contents, and from where on they are sent.
    at: u64,
    from: u64,
}

/// The half of the stream that is written, and how fast it takes what is written.
struct Out<'a, W: Write> {
    requests: BrokerRequests<W>,
    shared: &'a Shared<'a>,
    /// Since the rate was measured last.
    bytes: u64,
    writing: Duration,
}

/// Sends all that was kept, then waits until all of it is answered.
pub(super) fn send<W: Write>(
    requests: BrokerRequests<W>,
    from: &Queue<Sealed>,
    shared: &Shared<'_>,
) -> Result<(), UploadError> {
    let mut out = Out { requests, shared, bytes: 0, writing: Duration::ZERO };
    let (mut batch, mut object) = (Vec::new(), None);
    loop {
        match from.pop_all(&mut batch, Duration::ZERO) {
            Popped::Items => {}
            Popped::End => break,
            Popped::Nothing => {
                // What waits is all there is to send now.
                out.flush()?;
                match from.pop_all(&mut batch, SIGN) {
                    Popped::Items => {}
                    Popped::End => break,
                    Popped::Nothing => out.requests.say(&BrokerRequest::Alive)?,
                }
            }
        }
        for sealed in batch.drain(..) {
            let bytes = sealed.waits();
            out.send(sealed, &mut object)?;
            shared.pace.waited(bytes);
        }
    }
    out.flush()?;
    while !shared.all_answered(SIGN)? {
        out.requests.say(&BrokerRequest::Alive)?;
        out.flush()?;
    }
    Ok(())
}

impl<W: Write> Out<'_, W> {
    fn send(&mut self, sealed: Sealed, current: &mut Option<Outgoing>) -> Result<(), UploadError> {
        match sealed {
            Sealed::Put { request, id, .. } => {
                self.requests.say(&request)?;
                *current = Some(Outgoing { id, chunks: None, at: 0, from: 0 });
                return Ok(());
            }
            Sealed::Abandon { id, .. } => {
                *current = None;
                return Ok(self.requests.say(&BrokerRequest::Abandon { id })?);
            }
            _ => {}
        }
        let Some(object) = current.as_mut() else { return Ok(()) };
        // Refused, or stored already: nothing more of it is said.
        if !self.shared.is_open(object.id) {
            *current = None;
            return Ok(());
        }
        match sealed {
            Sealed::Open { header, key, chunk, from, .. } => self.open(object, &header, &key, (chunk, from)),
            Sealed::Frame { bytes, skip, .. } => self.plain(object, &bytes[skip..]),
            Sealed::Padding { skip, len, .. } => self.padding(object, skip, len),
            Sealed::Manifest { bytes, .. } => Ok(self.requests.manifest(&bytes)?),
            Sealed::Commit { contents, .. } => {
                if object.at != contents {
                    return Err(BrokerError::Protocol("an object became another than was said").into());
                }
                *current = None;
                Ok(self.requests.say(&BrokerRequest::Commit { contents })?)
            }
            Sealed::Put { .. } | Sealed::Abandon { .. } => Ok(()),
        }
    }

    fn open(
        &mut self,
        object: &mut Outgoing,
        header: &[u8],
        key: &Zeroizing<[u8; 32]>,
        (chunk, from): (u64, u64),
    ) -> Result<(), UploadError> {
        object.chunks = Some(ChunkWriter::go_on(Vec::new(), key, chunk));
        object.from = from;
        if chunk == 0 {
            return self.cipher(object, header);
        }
        object.at = header.len() as u64 + chunk * (CHUNK + TAG) as u64;
        Ok(())
    }

    /// Encrypts bytes of frames, and sends the chunks that are full.
    fn plain(&mut self, object: &mut Outgoing, bytes: &[u8]) -> Result<(), UploadError> {
        // A chunk is sent while the processor's cache still has it.
        for part in bytes.chunks(CHUNK) {
            let Some(chunks) = &mut object.chunks else { return Ok(()) };
            chunks.write_all(part).map_err(BrokerError::from)?;
            let sealed = std::mem::take(chunks.get_mut());
            self.cipher(object, &sealed)?;
            if let Some(chunks) = &mut object.chunks {
                // Its memory again.
                *chunks.get_mut() = sealed;
                chunks.get_mut().clear();
            }
        }
        Ok(())
    }

    /// Encrypts `len` bytes of padding but for the first `skip`, and the last chunk.
    fn padding(&mut self, object: &mut Outgoing, skip: u64, len: u64) -> Result<(), UploadError> {
        // The bytes before `skip` are in chunks that the broker has; they are made again and dropped.
        let mut pad = PaddingOut { out: self, object, skip, held: Vec::new() };
        frames::pad(&mut pad, len).map_err(from_io)?;
        pad.flush_held()?;
        let Some(chunks) = object.chunks.take() else { return Ok(()) };
        let sealed = chunks.finish().map_err(BrokerError::from)?;
        self.cipher(object, &sealed)
    }

    /// Sends bytes of the contents, unless the broker has them.
    fn cipher(&mut self, object: &mut Outgoing, bytes: &[u8]) -> Result<(), UploadError> {
        let skip =
            usize::try_from(object.from.saturating_sub(object.at)).unwrap_or(usize::MAX).min(bytes.len());
        let at = object.at + skip as u64;
        object.at += bytes.len() as u64;
        let rest = &bytes[skip..];
        if rest.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        self.requests.data(at, rest)?;
        self.writing += begun.elapsed();
        self.bytes += rest.len() as u64;
        self.shared.sent(rest.len() as u64);
        if self.bytes >= MEASURED || self.writing >= MEASURING {
            self.measure();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), UploadError> {
        let begun = Instant::now();
        self.requests.flush()?;
        self.writing += begun.elapsed();
        Ok(())
    }

    fn measure(&mut self) {
        let (bytes, writing) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.writing));
        self.shared.pace.measured(bytes, writing.as_secs_f64());
    }
}

/// Encrypts padding in large steps.
struct PaddingOut<'a, 'b, W: Write> {
    out: &'a mut Out<'b, W>,
    object: &'a mut Outgoing,
    skip: u64,
    held: Vec<u8>,
}

impl<W: Write> PaddingOut<'_, '_, W> {
    fn flush_held(&mut self) -> Result<(), UploadError> {
        let held = std::mem::take(&mut self.held);
        self.out.plain(self.object, &held)
    }
}

impl<W: Write> Write for PaddingOut<'_, '_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let skip = self.skip.min(bytes.len() as u64);
        self.skip -= skip;
        self.held.extend_from_slice(&bytes[usize::try_from(skip).unwrap_or(bytes.len())..]);
        if self.held.len() as u64 >= STEP {
            self.flush_held().map_err(std::io::Error::other)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The error of an upload that passed through a writer.
fn from_io(error: std::io::Error) -> UploadError {
    match error.downcast::<UploadError>() {
        Ok(error) => error,
        Err(error) => BrokerError::from(error).into(),
    }
}
