//! Bodies into messages.

use super::fields::{BodyReader, MessageFault, checked_path};
use super::{EntryMessage, FileFault, FileMessage, Hello, HowWanted, MAX_DATA, MAX_PATH};

/// Reads a message from its type and its whole body.
pub(super) fn parse(kind: u8, body: &[u8]) -> Result<FileMessage, MessageFault> {
    let mut body = BodyReader::new(body);
    let message = match kind {
        0x01..=0x03 | 0x30 | 0x31 => greeting(kind, &mut body),
        0x10..=0x1f => from_sender(kind, &mut body),
        0x20..=0x2f => from_receiver(kind, &mut body),
        _ => Err(MessageFault::Unknown),
    }?;
    body.end()?;
    Ok(message)
}

fn greeting(kind: u8, body: &mut BodyReader<'_>) -> Result<FileMessage, MessageFault> {
    Ok(match kind {
        0x01 => FileMessage::Hello(Hello::parse(body)?),
        0x02 => FileMessage::Welcome { nonce: body.fixed()? },
        0x03 => FileMessage::Refused(FileFault::parse(body)?),
        0x30 => FileMessage::Stopped(FileFault::parse(body)?),
        _ => FileMessage::Alive,
    })
}

fn from_sender(kind: u8, body: &mut BodyReader<'_>) -> Result<FileMessage, MessageFault> {
    Ok(match kind {
        0x10 => FileMessage::Entry(EntryMessage::parse(body)?),
        0x11 => FileMessage::Left { folder: body.number()?, complete: body.flag()? },
        0x12 => {
            let (entry, offset) = (body.number()?, body.number()?);
            let bytes = body.rest();
            in_file(offset, bytes.len() as u64)?;
            if bytes.len() > MAX_DATA {
                return Err(MessageFault::Bound);
            }
            FileMessage::Data { entry, offset, bytes: bytes.to_vec() }
        }
        0x13 => {
            let (entry, (offset, length)) = (body.number()?, range(body)?);
            FileMessage::Hole { entry, offset, length }
        }
        0x14 => FileMessage::Ask { entry: body.number()?, bytes: rest(body)? },
        0x15 => FileMessage::End { entry: body.number()?, size: body.number()?, root: body.fixed()? },
        0x16 => again(body)?,
        0x17 => FileMessage::Gone { entry: body.number()?, fault: FileFault::parse(body)? },
        0x18 => FileMessage::Finish { entries: body.number()? },
        0x19 => {
            FileMessage::Missing { path: body.string(MAX_PATH)?.to_vec(), fault: FileFault::parse(body)? }
        }
        0x1a => patch(body)?,
        0x1b => FileMessage::Same { entry: body.number()?, root: body.fixed()? },
        _ => return Err(MessageFault::Unknown),
    })
}

fn patch(body: &mut BodyReader<'_>) -> Result<FileMessage, MessageFault> {
    let (entry, last, asked, bytes) = (body.number()?, body.flag()?, body.flag()?, rest(body)?);
    if bytes.is_empty() {
        return Err(MessageFault::Short);
    }
    Ok(FileMessage::Patch { entry, last, asked, bytes })
}

/// What is left of a body, at most as long as file data.
fn rest(body: &mut BodyReader<'_>) -> Result<Vec<u8>, MessageFault> {
    let bytes = body.rest();
    if bytes.len() > MAX_DATA { Err(MessageFault::Bound) } else { Ok(bytes.to_vec()) }
}

/// A checked path.
fn named(body: &mut BodyReader<'_>) -> Result<Vec<u8>, MessageFault> {
    let path = body.string(MAX_PATH)?;
    checked_path(path)?;
    Ok(path.to_vec())
}

fn again(body: &mut BodyReader<'_>) -> Result<FileMessage, MessageFault> {
    let entry = body.number()?;
    let size = if body.flag()? { Some(body.number()?) } else { None };
    Ok(FileMessage::Again {
        entry,
        size,
        modified: i64::from_be_bytes(body.fixed()?),
        version: body.fixed()?,
    })
}

fn from_receiver(kind: u8, body: &mut BodyReader<'_>) -> Result<FileMessage, MessageFault> {
    Ok(match kind {
        0x20 => {
            let (first, last) = body.ordered()?;
            let how = HowWanted::parse(body)?;
            // Only what has no more to say is said of several at once.
            let several = matches!(how, HowWanted::Skip | HowWanted::Whole | HowWanted::Hash);
            if first != last && !several {
                return Err(MessageFault::Bound);
            }
            FileMessage::Want { first, last, how }
        }
        0x21 => {
            let (first, last) = body.ordered()?;
            FileMessage::Receipt { first, last }
        }
        0x22 => FileMessage::Failed { entry: body.number()?, fault: FileFault::parse(body)? },
        0x23 => FileMessage::Removed { path: named(body)? },
        0x25 => FileMessage::Ids { entry: body.number()?, bytes: rest(body)? },
        0x26 => FileMessage::Fine { entry: body.number()?, bytes: rest(body)? },
        0x24 => FileMessage::Done { whole: body.number()?, failed: body.number()?, removed: body.number()? },
        _ => return Err(MessageFault::Unknown),
    })
}

/// An offset and a length that is not 0, which end within 2^63 - 1, as files do.
fn range(body: &mut BodyReader<'_>) -> Result<(u64, u64), MessageFault> {
    let (offset, length) = (body.number()?, body.number()?);
    in_file(offset, length)?;
    Ok((offset, length))
}

fn in_file(offset: u64, length: u64) -> Result<(), MessageFault> {
    let end = offset.checked_add(length).filter(|end| *end <= i64::MAX as u64);
    if length == 0 || end.is_none() { Err(MessageFault::Bound) } else { Ok(()) }
}
