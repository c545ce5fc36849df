//! Messages into bytes.

use super::fields::{MessageFault, put_number, put_ordered, put_string};
use super::{FileMessage, MAX_BODY, WireMessage, parse};

impl WireMessage for FileMessage {
    const MAX_BODY: usize = MAX_BODY;

    fn kind(&self) -> u8 {
        match self {
            FileMessage::Hello(_) => 0x01,
            FileMessage::Welcome { .. } => 0x02,
            FileMessage::Refused(_) => 0x03,
            FileMessage::Entry(_) => 0x10,
            FileMessage::Left { .. } => 0x11,
            FileMessage::Data { .. } => 0x12,
            FileMessage::Hole { .. } => 0x13,
            FileMessage::Ask { .. } => 0x14,
            FileMessage::End { .. } => 0x15,
            FileMessage::Again { .. } => 0x16,
            FileMessage::Gone { .. } => 0x17,
            FileMessage::Finish { .. } => 0x18,
            FileMessage::Missing { .. } => 0x19,
            FileMessage::Patch { .. } => 0x1a,
            FileMessage::Same { .. } => 0x1b,
            FileMessage::Want { .. } => 0x20,
            FileMessage::Receipt { .. } => 0x21,
            FileMessage::Failed { .. } => 0x22,
            FileMessage::Removed { .. } => 0x23,
            FileMessage::Done { .. } => 0x24,
            FileMessage::Ids { .. } => 0x25,
            FileMessage::Fine { .. } => 0x26,
            FileMessage::Stopped(_) => 0x30,
            FileMessage::Alive => 0x31,
        }
    }

    fn parse(kind: u8, body: &[u8]) -> Result<FileMessage, MessageFault> {
        parse::parse(kind, body)
    }

    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            FileMessage::Hello(hello) => hello.put(out),
            FileMessage::Welcome { nonce } => out.extend(nonce),
            FileMessage::Refused(fault) | FileMessage::Stopped(fault) => fault.put(out),
            FileMessage::Entry(entry) => entry.put(out),
            FileMessage::Want { first, last, how } => {
                put_ordered(out, *first, *last);
                how.put(out);
            }
            FileMessage::Receipt { first, last } => put_ordered(out, *first, *last),
            FileMessage::Failed { entry, fault } | FileMessage::Gone { entry, fault } => {
                put_number(out, *entry);
                fault.put(out);
            }
            FileMessage::Removed { path } => put_string(out, path),
            FileMessage::Done { whole, failed, removed } => put_numbers(out, &[*whole, *failed, *removed]),
            _ => self.emit_content(out),
        }
    }
}

impl FileMessage {
    /// What a sender tells about a file's content.
    fn emit_content(&self, out: &mut Vec<u8>) {
        match self {
            FileMessage::Left { folder, complete } => {
                put_number(out, *folder);
                out.push(u8::from(*complete));
            }
            FileMessage::Data { entry, offset, bytes } => {
                put_numbers(out, &[*entry, *offset]);
                out.extend_from_slice(bytes);
            }
            FileMessage::Hole { entry, offset, length } => put_numbers(out, &[*entry, *offset, *length]),
            FileMessage::Ask { entry, bytes }
            | FileMessage::Ids { entry, bytes }
            | FileMessage::Fine { entry, bytes } => {
                put_number(out, *entry);
                out.extend_from_slice(bytes);
            }
            FileMessage::Patch { entry, last, asked, bytes } => {
                put_number(out, *entry);
                out.extend([u8::from(*last), u8::from(*asked)]);
                out.extend_from_slice(bytes);
            }
            FileMessage::End { entry, size, root } => {
                put_numbers(out, &[*entry, *size]);
                out.extend(root);
            }
            FileMessage::Same { entry, root } => {
                put_number(out, *entry);
                out.extend(root);
            }
            FileMessage::Again { entry, size, modified, version } => {
                put_number(out, *entry);
                out.push(u8::from(size.is_some()));
                size.iter().for_each(|size| put_number(out, *size));
                out.extend(modified.to_be_bytes());
                out.extend(version);
            }
            FileMessage::Finish { entries } => put_number(out, *entries),
            FileMessage::Missing { path, fault } => {
                put_string(out, path);
                fault.put(out);
            }
            _ => {}
        }
    }
}

fn put_numbers(out: &mut Vec<u8>, all: &[u64]) {
    all.iter().for_each(|number| put_number(out, *number));
}
