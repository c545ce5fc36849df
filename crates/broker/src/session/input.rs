//! What a client says, from its stream: requests, and the bytes of data apart, which are read to where they go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use strait_transfer::broker::message::{BrokerRequest, MAX_DATA};
use strait_transfer::message::{MessageFault, WireMessage, length};
use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// Bytes that are read at once where they are not data.
const BUFFER: usize = 8 << 10;
/// How long a client that waits for nothing may be silent: its node tells streams that are lost from quiet ones before.
const SILENCE: Duration = Duration::from_secs(15 * 60);
/// The type of [`BrokerRequest::Data`].
const DATA: u8 = 0x02;

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputEnd {
    /// The client has said all, or is gone.
    Closed,
    /// The broker ends.
    Ending,
    /// Another stream goes on with the upload.
    Wanted,
    /// The client said nothing for too long.
    Silent,
    /// What it said is no message.
    Malformed(MessageFault),
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Frame {
    /// Bytes of contents follow.
    Data {
        /// Where they begin.
        at: u64,
        /// How many.
        length: usize,
    },
    /// Anything else.
    Request(BrokerRequest),
}

/// The client's end of a stream.
#[derive(Debug)]
pub(crate) struct Input {
    reader: BufReader<OwnedReadHalf>,
    ending: watch::Receiver<bool>,
    /// Told when another stream wants the upload that is open.
    pub(crate) wanted: Option<Arc<Notify>>,
    /// What the client waits for.
    outstanding: Arc<AtomicUsize>,
}

impl Input {
    pub(crate) fn new(
        reader: OwnedReadHalf,
        ending: watch::Receiver<bool>,
        outstanding: Arc<AtomicUsize>,
    ) -> Input {
        Input { reader: BufReader::with_capacity(BUFFER, reader), ending, wanted: None, outstanding }
    }

    /// Whether the client has said more, as far as is known without waiting.
    pub(crate) fn has_more(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Reads some bytes, at least one.
    pub(crate) async fn read(&mut self, room: &mut [u8]) -> Result<usize, InputEnd> {
        loop {
            let Input { reader, ending, wanted, outstanding } = self;
            let is_wanted = async {
                match wanted {
                    Some(wanted) => wanted.notified().await,
                    None => std::future::pending().await,
                }
            };
            let read = tokio::select! {
                biased;
                read = timeout(SILENCE, reader.read(room)) => read,
                () = is_wanted => return Err(InputEnd::Wanted),
                _ = ending.wait_for(|ending| *ending) => return Err(InputEnd::Ending),
            };
            return match read {
                Ok(Ok(0) | Err(_)) => Err(InputEnd::Closed),
                Ok(Ok(count)) => Ok(count),
                Err(_) if outstanding.load(Ordering::Relaxed) > 0 => continue,
                Err(_) => Err(InputEnd::Silent),
            };
        }
    }

    /// Appends some bytes, at least one and at most `count`.
    pub(crate) async fn read_into(&mut self, bytes: &mut Vec<u8>, count: usize) -> Result<usize, InputEnd> {
        let before = bytes.len();
        bytes.resize(before + count, 0);
        let read = match bytes.get_mut(before..) {
            Some(room) => self.read(room).await,
            None => Ok(0),
        };
        bytes.truncate(before + read.unwrap_or(0));
        read
    }

    /// Reads past bytes.
    pub(crate) async fn skip(&mut self, mut count: u64) -> Result<(), InputEnd> {
        let mut room = [0; 4096];
        while count > 0 {
            let most = usize::try_from(count).unwrap_or(room.len()).min(room.len());
            count -= self.read(room.get_mut(..most).unwrap_or_default()).await? as u64;
        }
        Ok(())
    }

    /// The next frame.
    pub(crate) async fn next(&mut self) -> Result<Frame, InputEnd> {
        let kind = self.byte().await?;
        let (mut head, mut had) = ([0; 3], 0);
        let length = loop {
            let Some(place) = head.get_mut(had) else {
                return Err(InputEnd::Malformed(MessageFault::Number));
            };
            *place = self.byte().await?;
            had += 1;
            let known = length::<BrokerRequest>(head.get(..had).unwrap_or_default());
            if let Some(length) = known.map_err(InputEnd::Malformed)? {
                break length;
            }
        };
        if kind == DATA {
            return self.data(length).await;
        }
        let mut body = Vec::new();
        while body.len() < length {
            let most = (length - body.len()).min(BUFFER);
            self.read_into(&mut body, most).await?;
        }
        BrokerRequest::parse(kind, &body).map(Frame::Request).map_err(InputEnd::Malformed)
    }

    /// What stands before data, in a body of this length.
    async fn data(&mut self, body: usize) -> Result<Frame, InputEnd> {
        let (mut head, mut at) = (Vec::with_capacity(10), None);
        while head.len() < body && at.is_none() {
            head.push(self.byte().await?);
            // A whole number ends at a byte without the highest bit.
            if head.last().is_some_and(|byte| byte & 0x80 == 0) || head.len() == 10 {
                match BrokerRequest::parse(DATA, &head).map_err(InputEnd::Malformed)? {
                    BrokerRequest::Data { at: place, .. } => at = Some(place),
                    _ => break,
                }
            }
        }
        let (Some(at), length) = (at, body - head.len()) else {
            return Err(InputEnd::Malformed(MessageFault::Short));
        };
        if length > MAX_DATA || at.checked_add(length as u64).is_none() {
            return Err(InputEnd::Malformed(MessageFault::Bound));
        }
        Ok(Frame::Data { at, length })
    }

    async fn byte(&mut self) -> Result<u8, InputEnd> {
        let mut byte = [0];
        self.read(&mut byte).await.map(|_| byte[0])
    }
}
