//! Bytes that a client sends, until they are whole: a piece of contents, or a manifest.
//!
//! The first 64 KiB are in memory of their own. A piece that goes on is then in the [spool](crate::spool), as a manifest is. Where the store
//! cannot adopt that file, the piece gets one of the [buffers](crate::buffers) for whole pieces before, if one is free and as long as it fills
//! quickly.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use object_store::PutPayload;
use strait_transfer::broker::message::{MAX_MANIFEST, ObjectName};
use tokio::time::{Instant, timeout};

use crate::buffers::PieceBuffer;
use crate::engine::Engine;
use crate::names::PIECE;
use crate::session::input::{Input, InputEnd};
use crate::spool::SpoolFile;

/// Bytes that are in memory of their own: what most small objects have.
const SMALL: usize = 64 << 10;
/// A piece that brings nothing for this long, or takes this long while others wait, gives its buffer back.
pub(crate) const SLOW: Duration = Duration::from_secs(2);

/// What grows.
#[derive(Debug)]
pub(crate) struct Growing {
    /// Which piece it is; nothing for a manifest.
    piece: Option<(ObjectName, u64)>,
    room: Room,
    since: Instant,
}

#[derive(Debug)]
enum Room {
    Small(Vec<u8>),
    Buffer(PieceBuffer),
    File(SpoolFile),
    /// Whole, and shared with who puts it into the store.
    Whole(Bytes),
}

/// Why nothing more came.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The client's end.
    Input(InputEnd),
    /// The spool.
    Spool(io::Error),
}

impl From<InputEnd> for Stopped {
    fn from(end: InputEnd) -> Stopped {
        Stopped::Input(end)
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Stopped {
        Stopped::Spool(error)
    }
}

impl Growing {
    pub(crate) fn piece(object: ObjectName, number: u64) -> Growing {
        Growing { piece: Some((object, number)), room: Room::Small(Vec::new()), since: Instant::now() }
    }

    pub(crate) fn manifest() -> Growing {
        Growing { piece: None, room: Room::Small(Vec::new()), since: Instant::now() }
    }

    /// A piece of which the spool has the beginning.
    pub(crate) fn resumed(object: ObjectName, number: u64, file: SpoolFile) -> Growing {
        Growing { piece: Some((object, number)), room: Room::File(file), since: Instant::now() }
    }

    pub(crate) fn len(&self) -> u64 {
        match &self.room {
            Room::Small(bytes) => bytes.len() as u64,
            Room::Buffer(buffer) => buffer.filled().len() as u64,
            Room::File(file) => file.len(),
            Room::Whole(bytes) => bytes.len() as u64,
        }
    }

    /// Whether it holds a buffer that others may wait for.
    pub(crate) const fn has_buffer(&self) -> bool {
        matches!(self.room, Room::Buffer(_))
    }

    /// Appends bytes that are in memory: of a manifest.
    pub(crate) async fn append(&mut self, bytes: Vec<u8>, engine: &Engine) -> io::Result<()> {
        if let Room::Small(small) = &mut self.room {
            if small.len() + bytes.len() <= SMALL {
                small.extend(bytes);
                return Ok(());
            }
            self.spill(engine).await?;
        }
        match &mut self.room {
            Room::File(file) => file.append(bytes).await,
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Takes `count` bytes of the client, which fit; what is left of that was not read.
    pub(crate) async fn receive(
        &mut self,
        input: &mut Input,
        count: &mut usize,
        engine: &Engine,
    ) -> Result<(), Stopped> {
        while *count > 0 {
            *count -= match &mut self.room {
                Room::Small(bytes) if bytes.len() + *count <= SMALL => input.read_into(bytes, *count).await?,
                Room::Small(_) => {
                    self.enlarge(engine).await?;
                    0
                }
                Room::Buffer(buffer) => {
                    let room = buffer.room();
                    let most = room.len().min(*count);
                    let room = room.get_mut(..most).unwrap_or_default();
                    match timeout(SLOW, input.read(room)).await {
                        Ok(read) => {
                            let read = read?;
                            buffer.fill(read);
                            read
                        }
                        Err(_) => {
                            self.spill(engine).await?;
                            0
                        }
                    }
                }
                Room::File(file) => {
                    if file.free() == 0 {
                        file.flush().await?;
                    }
                    let most = file.free().min(*count);
                    input.read_into(file.room(most), most).await?
                }
                Room::Whole(_) => return Err(io::Error::from(io::ErrorKind::InvalidInput).into()),
            };
        }
        if self.has_buffer() && self.since.elapsed() > SLOW && engine.buffers.try_take().is_none() {
            self.spill(engine).await?;
        }
        Ok(())
    }

    /// Gets a buffer for a whole piece, or a file.
    async fn enlarge(&mut self, engine: &Engine) -> io::Result<()> {
        let buffer = if self.piece.is_some() && !engine.adopts { engine.buffers.try_take() } else { None };
        match (buffer, &self.room) {
            (Some(mut buffer), Room::Small(bytes)) => {
                if let Some(room) = buffer.room().get_mut(..bytes.len()) {
                    room.copy_from_slice(bytes);
                }
                buffer.fill(bytes.len());
                (self.room, self.since) = (Room::Buffer(buffer), Instant::now());
                Ok(())
            }
            _ => self.spill(engine).await,
        }
    }

    /// Puts it into the spool, where it outlives this process. What cannot be written is lost, and leaves no file.
    pub(crate) async fn spill(&mut self, engine: &Engine) -> io::Result<()> {
        if let Room::File(file) = &mut self.room {
            return file.flush().await;
        }
        let mut file = match &self.piece {
            Some((object, number)) => engine.spool.begin(object, *number).await?,
            None => engine.spool.unnamed().await?,
        };
        let written = match std::mem::replace(&mut self.room, Room::Small(Vec::new())) {
            Room::Small(bytes) => file.append(bytes).await,
            Room::Buffer(buffer) => file.append(buffer).await,
            Room::Whole(bytes) => file.append(bytes).await,
            Room::File(_) => Ok(()),
        };
        match written {
            Ok(()) => self.room = Room::File(file),
            Err(_) => file.remove().await,
        }
        written
    }

    /// The bytes of a whole piece that is in memory, which stay there for the store; nothing if the spool has it.
    pub(crate) fn share(&mut self) -> Option<Bytes> {
        let bytes = match std::mem::replace(&mut self.room, Room::Small(Vec::new())) {
            Room::Small(bytes) => Bytes::from(bytes),
            Room::Buffer(buffer) => Bytes::from_owner(buffer),
            Room::Whole(bytes) => bytes,
            Room::File(file) => {
                self.room = Room::File(file);
                return None;
            }
        };
        self.room = Room::Whole(bytes.clone());
        Some(bytes)
    }

    /// Writes what is gathered for the spool, if it is there.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        if let Room::File(file) = &mut self.room { file.flush().await } else { Ok(()) }
    }

    /// The file of the spool, with all of it; itself, if it is in memory.
    pub(crate) async fn into_file(self) -> io::Result<Result<SpoolFile, Growing>> {
        match self.room {
            Room::File(mut file) => {
                file.flush().await?;
                Ok(Ok(file))
            }
            room => Ok(Err(Growing { room, ..self })),
        }
    }

    /// Forgets it; what the spool has of it is removed.
    pub(crate) async fn discard(self) {
        if let Room::File(file) = self.room {
            file.remove().await;
        }
    }

    /// What is put into the store, and the file to remove then.
    pub(crate) async fn payload(self, engine: &Engine) -> io::Result<(PutPayload, Option<SpoolFile>)> {
        let mut file = match self.room {
            Room::Small(bytes) => return Ok((Bytes::from(bytes).into(), None)),
            Room::Buffer(buffer) => return Ok((Bytes::from_owner(buffer).into(), None)),
            Room::Whole(bytes) => return Ok((bytes.into(), None)),
            Room::File(file) => file,
        };
        file.flush().await?;
        let length = file.len();
        if length <= PIECE {
            let buffer = engine.buffers.take().await.ok_or(io::ErrorKind::BrokenPipe)?;
            let mut buffer = file.read(Whole(buffer)).await?.0;
            buffer.fill(usize::try_from(length).map_err(io::Error::other)?);
            return Ok((Bytes::from_owner(buffer).into(), Some(file)));
        }
        if length > MAX_MANIFEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let permit = std::sync::Arc::clone(&engine.large).acquire_owned().await.map_err(io::Error::other)?;
        let bytes = file.read(vec![0; usize::try_from(length).map_err(io::Error::other)?]).await?;
        Ok((Bytes::from_owner(Large { bytes, _permit: permit }).into(), Some(file)))
    }
}

/// All room of a buffer, as a place to read to.
struct Whole(PieceBuffer);

impl AsMut<[u8]> for Whole {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.room()
    }
}

/// A manifest above a piece, while it is in memory.
struct Large {
    bytes: Vec<u8>,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Large {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
