//! What a client and a broker say to each other: a type, a length (LEB128, three bytes at most) and a body.
//!
//! The broker speaks first: [`BrokerAnswer::Welcome`]. A client has one upload open at a time on a stream: [`BrokerRequest::Put`],
//! then [`BrokerRequest::Data`] and [`BrokerRequest::Manifest`] in any order, then [`BrokerRequest::Commit`]. It need not wait for answers
//! before it begins the next one, as long as it knows where to begin. Answers to uploads name the object and come in any order;
//! answers to [`BrokerRequest::List`] and [`BrokerRequest::Read`] come in the order of the questions.

mod text;

use strait_keying::PublicKey;

use crate::TransferId;
use crate::message::WireMessage;
use crate::message::fields::{BodyReader, MessageFault, put_number, put_string};

pub use text::{BrokerFault, FaultKind};

/// Bytes of an object in one message at most: a quarter of what a stream has on the way at 10 Mbit/s and 600 ms.
pub const MAX_DATA: usize = 256 * 1024;
/// Bytes of a body at most: data, and what stands before it.
pub const MAX_BODY: usize = MAX_DATA + 64;
/// Bytes of a sealed manifest at most: a manifest has 16 MiB (`sealed::manifest`), padding adds an eighth at most.
pub const MAX_MANIFEST: u64 = 20 << 20;
/// Bytes of a sealed receipt at most: a block of a disk. Who signs one names as many failures as fit
/// ([`crate::sealed::DeliveryReceipt::sign`]).
pub const RECEIPT_MAX: u64 = 4096;
/// Receivers of one object at most.
pub const MAX_RECIPIENTS: usize = 64;
/// Letters in one answer at most: 120 bytes each.
pub const MAX_LETTERS: usize = 1024;
/// Bytes of an explanation at most.
pub const MAX_TEXT: usize = 255;

/// The type of [`BrokerRequest::Data`].
const DATA: u8 = 0x02;

/// What an object is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LetterKind {
    /// A transfer: a manifest, and contents.
    Transfer,
    /// A receipt, in the place of the manifest; it has no contents, and the id of the transfer that it is about.
    Receipt,
}

/// What names an object: ids are the sender's, so those of two senders may be equal. A receipt has the id of its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// Who put it there, as the broker knows it.
    pub sender: PublicKey,
    /// Its id.
    pub id: TransferId,
}

/// One of the two parts of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectPart {
    /// The sealed manifest, or the sealed receipt.
    Manifest,
    /// The sealed contents.
    Contents,
}

/// Which letters are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LetterBox {
    /// Those to the client.
    Inbox,
    /// Those from the client.
    Sent,
}

/// What lies in a receiver's inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    /// The object.
    pub object: ObjectName,
    /// To whom.
    pub receiver: PublicKey,
    /// What it is.
    pub kind: LetterKind,
    /// When its sender made it, in seconds since 1970.
    pub made: i64,
    /// When it is removed at the latest, in seconds since 1970.
    pub expires: i64,
    /// Bytes of the sealed manifest.
    pub manifest: u64,
    /// Bytes of the sealed contents.
    pub contents: u64,
}

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerRequest {
    /// Begins an upload, or goes on with it. What the receivers, the kind and the times are, the first says; others repeat it.
    Put {
        /// Its id; the sender is who opened the stream.
        id: TransferId,
        /// What it is.
        kind: LetterKind,
        /// When it was made and when it expires, in seconds since 1970.
        made: i64,
        /// See `made`.
        expires: i64,
        /// To whom: 1 to [`MAX_RECIPIENTS`] keys, ascending.
        receivers: Vec<PublicKey>,
    },
    /// Bytes of the contents. Those below what is held already are skipped; a gap ends the stream.
    Data {
        /// Where they begin in the sealed contents.
        at: u64,
        /// At most [`MAX_DATA`].
        bytes: Vec<u8>,
    },
    /// The next bytes of the manifest, from its beginning with each [`BrokerRequest::Put`].
    Manifest {
        /// At most [`MAX_DATA`]; [`MAX_MANIFEST`] in all.
        bytes: Vec<u8>,
    },
    /// The object is whole. It becomes visible to all its receivers, and [`BrokerAnswer::Stored`] says that it is durable.
    Commit {
        /// Bytes of the contents.
        contents: u64,
    },
    /// Forgets an upload that is not committed.
    Abandon {
        /// Its id.
        id: TransferId,
    },
    /// Asks for a page of letters.
    List {
        /// Which.
        which: LetterBox,
        /// The place at which it begins, as [`BrokerAnswer::ListEnd`] said; nothing for the first page. At most [`MAX_TEXT`] bytes.
        after: Vec<u8>,
    },
    /// Asks for bytes of an object whose letter is in the client's inbox, or that the client sent.
    Read {
        /// The object.
        object: ObjectName,
        /// What it is.
        kind: LetterKind,
        /// Which part.
        part: ObjectPart,
        /// From where on, to the end.
        at: u64,
    },
    /// Removes a letter from the client's inbox, or as its sender all letters of an object; bytes that no letter needs are removed.
    Remove {
        /// The object.
        object: ObjectName,
        /// What it is.
        kind: LetterKind,
    },
    /// Nothing: the client is still there.
    Alive,
}

/// What a broker says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrokerAnswer {
    /// The first message of a stream.
    Welcome {
        /// The broker's clock, in seconds since 1970.
        now: i64,
        /// Bytes that the client may still store, if that is limited.
        room: Option<u64>,
        /// Bytes of one object at most.
        largest: u64,
        /// Seconds that an object stays at most.
        keep: u64,
    },
    /// How much of the contents of an upload the broker has: the answer to [`BrokerRequest::Put`], and said again as it grows.
    Held {
        /// The upload.
        id: TransferId,
        /// Bytes that are durable in the store: no broker loses them.
        stored: u64,
        /// Where the client goes on. What lies between `stored` and this is lost if this broker is killed.
        next: u64,
    },
    /// An object is durable, and its receivers see it. Said also of one that was stored before.
    Stored {
        /// The upload.
        id: TransferId,
    },
    /// Some letters; more may follow.
    Letters(Vec<Letter>),
    /// The page is at its end.
    ListEnd {
        /// The place at which the next page begins, in the broker's words; nothing if there is none. At most [`MAX_TEXT`] bytes.
        next: Vec<u8>,
    },
    /// The next bytes that were asked for.
    Bytes(Vec<u8>),
    /// All that were asked for have come.
    ReadEnd {
        /// Bytes of the whole part.
        size: u64,
    },
    /// An object, or a letter, is gone.
    Removed {
        /// The object.
        object: ObjectName,
    },
    /// Something was not done.
    Refused {
        /// Of which upload or object, if of one.
        id: Option<TransferId>,
        /// Why.
        fault: BrokerFault,
    },
    /// Nothing: the broker is still at it.
    Alive,
}

impl ObjectName {
    fn parse(body: &mut BodyReader<'_>) -> Result<ObjectName, MessageFault> {
        Ok(ObjectName { sender: key(body)?, id: id(body)? })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        out.extend(self.sender.as_bytes());
        out.extend(self.id.as_bytes());
    }
}

fn key(body: &mut BodyReader<'_>) -> Result<PublicKey, MessageFault> {
    Ok(PublicKey::from_bytes(body.fixed()?))
}

fn id(body: &mut BodyReader<'_>) -> Result<TransferId, MessageFault> {
    Ok(TransferId::from_bytes(body.fixed()?))
}

fn seconds(body: &mut BodyReader<'_>) -> Result<i64, MessageFault> {
    Ok(i64::from_be_bytes(body.fixed()?))
}

fn bytes(body: &mut BodyReader<'_>) -> Result<Vec<u8>, MessageFault> {
    let bytes = body.rest();
    if bytes.len() > MAX_DATA { Err(MessageFault::Bound) } else { Ok(bytes.to_vec()) }
}

/// A place in a list.
fn place(body: &mut BodyReader<'_>) -> Result<Vec<u8>, MessageFault> {
    let place = body.rest();
    if place.len() > MAX_TEXT { Err(MessageFault::Bound) } else { Ok(place.to_vec()) }
}

/// An enumeration whose members have consecutive numbers from 1 on.
macro_rules! numbered {
    ($name:ident: $($member:ident),+) => {
        impl $name {
            const ALL: &[$name] = &[$($name::$member),+];

            /// Its number in a message.
            #[must_use]
            pub fn number(self) -> u8 {
                Self::ALL.iter().zip(1..).find(|(one, _)| **one == self).map_or(0, |(_, number)| number)
            }

            /// The one with this number.
            #[must_use]
            pub fn of_number(number: u8) -> Option<$name> {
                Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
            }

            fn parse(body: &mut BodyReader<'_>) -> Result<$name, MessageFault> {
                $name::of_number(body.byte()?).ok_or(MessageFault::Unknown)
            }
        }
    };
}
use numbered;

numbered!(LetterKind: Transfer, Receipt);
numbered!(ObjectPart: Manifest, Contents);
numbered!(LetterBox: Inbox, Sent);

impl Letter {
    fn parse(body: &mut BodyReader<'_>) -> Result<Letter, MessageFault> {
        Ok(Letter {
            object: ObjectName::parse(body)?,
            receiver: key(body)?,
            kind: LetterKind::parse(body)?,
            made: seconds(body)?,
            expires: seconds(body)?,
            manifest: body.number()?,
            contents: body.number()?,
        })
    }

    fn emit(&self, out: &mut Vec<u8>) {
        self.object.emit(out);
        out.extend(self.receiver.as_bytes());
        out.push(self.kind.number());
        out.extend(self.made.to_be_bytes());
        out.extend(self.expires.to_be_bytes());
        put_number(out, self.manifest);
        put_number(out, self.contents);
    }
}

/// Appends what stands before the bytes of a [`BrokerRequest::Data`] of `len` bytes, at most [`MAX_DATA`].
pub fn frame_data(at: u64, len: usize, out: &mut Vec<u8>) {
    let mut number = Vec::new();
    put_number(&mut number, at);
    out.push(DATA);
    put_number(out, (number.len() + len) as u64);
    out.append(&mut number);
}

impl WireMessage for BrokerRequest {
    const MAX_BODY: usize = MAX_BODY;

    fn kind(&self) -> u8 {
        match self {
            BrokerRequest::Put { .. } => 0x01,
            BrokerRequest::Data { .. } => DATA,
            BrokerRequest::Manifest { .. } => 0x03,
            BrokerRequest::Commit { .. } => 0x04,
            BrokerRequest::Abandon { .. } => 0x05,
            BrokerRequest::List { .. } => 0x06,
            BrokerRequest::Read { .. } => 0x07,
            BrokerRequest::Remove { .. } => 0x08,
            BrokerRequest::Alive => 0x09,
        }
    }

    fn parse(kind: u8, body: &[u8]) -> Result<BrokerRequest, MessageFault> {
        let body = &mut BodyReader::new(body);
        let message = match kind {
            0x01 => {
                let (id, kind) = (id(body)?, LetterKind::parse(body)?);
                let (made, expires) = (seconds(body)?, seconds(body)?);
                let count = body.number()?;
                if count == 0 || count > MAX_RECIPIENTS as u64 {
                    return Err(MessageFault::Bound);
                }
                let receivers = (0..count).map(|_| key(body)).collect::<Result<Vec<_>, _>>()?;
                if !receivers.is_sorted_by(|one, next| one < next) {
                    return Err(MessageFault::Bound);
                }
                BrokerRequest::Put { id, kind, made, expires, receivers }
            }
            DATA => {
                let at = body.number()?;
                let bytes = bytes(body)?;
                at.checked_add(bytes.len() as u64).ok_or(MessageFault::Bound)?;
                BrokerRequest::Data { at, bytes }
            }
            0x03 => BrokerRequest::Manifest { bytes: bytes(body)? },
            0x04 => BrokerRequest::Commit { contents: body.number()? },
            0x05 => BrokerRequest::Abandon { id: id(body)? },
            0x06 => BrokerRequest::List { which: LetterBox::parse(body)?, after: place(body)? },
            0x07 => BrokerRequest::Read {
                object: ObjectName::parse(body)?,
                kind: LetterKind::parse(body)?,
                part: ObjectPart::parse(body)?,
                at: body.number()?,
            },
            0x08 => {
                BrokerRequest::Remove { object: ObjectName::parse(body)?, kind: LetterKind::parse(body)? }
            }
            0x09 => BrokerRequest::Alive,
            _ => return Err(MessageFault::Unknown),
        };
        body.end()?;
        Ok(message)
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            BrokerRequest::Put { id, kind, made, expires, receivers } => {
                out.extend(id.as_bytes());
                out.push(kind.number());
                out.extend(made.to_be_bytes());
                out.extend(expires.to_be_bytes());
                put_number(out, receivers.len() as u64);
                receivers.iter().for_each(|key| out.extend(key.as_bytes()));
            }
            BrokerRequest::Data { at, bytes } => {
                put_number(out, *at);
                out.extend(bytes);
            }
            BrokerRequest::Manifest { bytes } => out.extend(bytes),
            BrokerRequest::Commit { contents } => put_number(out, *contents),
            BrokerRequest::Abandon { id } => out.extend(id.as_bytes()),
            BrokerRequest::List { which, after } => {
                out.push(which.number());
                out.extend(after);
            }
            BrokerRequest::Read { object, kind, part, at } => {
                object.emit(out);
                out.extend([kind.number(), part.number()]);
                put_number(out, *at);
            }
            BrokerRequest::Remove { object, kind } => {
                object.emit(out);
                out.push(kind.number());
            }
            BrokerRequest::Alive => {}
        }
    }
}

impl WireMessage for BrokerAnswer {
    const MAX_BODY: usize = MAX_BODY;

    fn kind(&self) -> u8 {
        match self {
            BrokerAnswer::Welcome { .. } => 0x41,
            BrokerAnswer::Held { .. } => 0x42,
            BrokerAnswer::Stored { .. } => 0x43,
            BrokerAnswer::Letters(_) => 0x44,
            BrokerAnswer::ListEnd { .. } => 0x45,
            BrokerAnswer::Bytes(_) => 0x46,
            BrokerAnswer::ReadEnd { .. } => 0x47,
            BrokerAnswer::Removed { .. } => 0x48,
            BrokerAnswer::Refused { .. } => 0x49,
            BrokerAnswer::Alive => 0x4a,
        }
    }

    fn parse(kind: u8, body: &[u8]) -> Result<BrokerAnswer, MessageFault> {
        let body = &mut BodyReader::new(body);
        let message = match kind {
            0x41 => BrokerAnswer::Welcome {
                now: seconds(body)?,
                room: if body.flag()? { Some(body.number()?) } else { None },
                largest: body.number()?,
                keep: body.number()?,
            },
            0x42 => {
                let (id, (stored, next)) = (id(body)?, body.ordered()?);
                BrokerAnswer::Held { id, stored, next }
            }
            0x43 => BrokerAnswer::Stored { id: id(body)? },
            0x44 => {
                let count = body.number()?;
                if count > MAX_LETTERS as u64 {
                    return Err(MessageFault::Bound);
                }
                BrokerAnswer::Letters((0..count).map(|_| Letter::parse(body)).collect::<Result<_, _>>()?)
            }
            0x45 => BrokerAnswer::ListEnd { next: place(body)? },
            0x46 => BrokerAnswer::Bytes(bytes(body)?),
            0x47 => BrokerAnswer::ReadEnd { size: body.number()? },
            0x48 => BrokerAnswer::Removed { object: ObjectName::parse(body)? },
            0x49 => BrokerAnswer::Refused {
                id: if body.flag()? { Some(id(body)?) } else { None },
                fault: BrokerFault::parse(body)?,
            },
            0x4a => BrokerAnswer::Alive,
            _ => return Err(MessageFault::Unknown),
        };
        body.end()?;
        Ok(message)
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            BrokerAnswer::Welcome { now, room, largest, keep } => {
                out.extend(now.to_be_bytes());
                out.push(u8::from(room.is_some()));
                room.iter().for_each(|room| put_number(out, *room));
                put_number(out, *largest);
                put_number(out, *keep);
            }
            BrokerAnswer::Held { id, stored, next } => {
                out.extend(id.as_bytes());
                put_number(out, *stored);
                put_number(out, next.saturating_sub(*stored));
            }
            BrokerAnswer::Stored { id } => out.extend(id.as_bytes()),
            BrokerAnswer::Letters(letters) => {
                put_number(out, letters.len() as u64);
                letters.iter().for_each(|letter| letter.emit(out));
            }
            BrokerAnswer::Alive => {}
            BrokerAnswer::ListEnd { next: bytes } | BrokerAnswer::Bytes(bytes) => out.extend(bytes),
            BrokerAnswer::ReadEnd { size } => put_number(out, *size),
            BrokerAnswer::Removed { object } => object.emit(out),
            BrokerAnswer::Refused { id, fault } => {
                out.push(u8::from(id.is_some()));
                id.iter().for_each(|id| out.extend(id.as_bytes()));
                out.push(fault.kind.number());
                put_string(out, fault.text.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests;
