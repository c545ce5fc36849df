//! Writes a message.

use super::fields::put_number;
use super::requests::put_size;
use super::{ACK_BITS, LoginMessage, MAX_SMALL, answers, requests};

impl LoginMessage<'_> {
    /// Appends the whole message. `taken`: what its sender has taken in all.
    pub fn put(&self, taken: u64, out: &mut Vec<u8>) {
        let [a0, a1, a2, ..] = (taken & ((1 << ACK_BITS) - 1)).to_le_bytes();
        if let LoginMessage::Small(bytes) = self {
            debug_assert!(bytes.len() <= MAX_SMALL, "the caller cuts");
            out.extend([0x10 | bytes.len() as u8, a0, a1, a2]);
            out.extend_from_slice(bytes);
            out.extend_from_slice(&[0; MAX_SMALL][bytes.len()..]);
            return;
        }
        let mut body = Vec::new();
        let head = self.body(&mut body);
        out.extend([head, a0, a1, a2]);
        put_number(out, body.len() as u64);
        out.append(&mut body);
    }

    /// Appends the body and gives the head.
    fn body(&self, out: &mut Vec<u8>) -> u8 {
        match self {
            LoginMessage::Unit(channel, unit) => {
                unit.put(out);
                0x20 | *channel as u8
            }
            LoginMessage::End(channel) => 0x30 | *channel as u8,
            LoginMessage::Resize(size) => {
                put_size(out, *size);
                0x50
            }
            LoginMessage::Signal(signal) => {
                out.push(signal.number());
                0x51
            }
            LoginMessage::Detach => 0x52,
            LoginMessage::HangUp => 0x53,
            _ => requests::put(self, out).or_else(|| answers::put(self, out)).unwrap_or(0),
        }
    }
}
