//! Van Jacobson's compression of the headers of TCP over IPv4 (RFC 1144): of most packets, what changed since the one before.

use super::get;
use crate::packet::put16;

/// Connections that both ends remember (RFC 1332 section 4 suggests 16).
const VJ_SLOTS: usize = 16;
/// Bytes of both headers without options.
const HEADERS: usize = 40;
const IPV4: usize = 20;
const TCP_PROTOCOL: u8 = 6;
/// Flags of TCP.
const FIN_SYN_RST: u8 = 0x07;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const ECN: u8 = 0xc0;
/// Bits of the change mask (section 3.2.2).
const NEW_C: u8 = 0x40;
const NEW_I: u8 = 0x20;
const PUSH: u8 = 0x10;
const NEW_S: u8 = 0x08;
const NEW_A: u8 = 0x04;
const NEW_W: u8 = 0x02;
const NEW_U: u8 = 0x01;
/// What changes when a character is echoed, and when data goes one way: masks that stand for these alone (section 3.2.2).
const ECHOED: u8 = NEW_S | NEW_W | NEW_U;
const ONE_WAY: u8 = NEW_S | NEW_A | NEW_W | NEW_U;
const SPECIALS: u8 = ONE_WAY;
const ACKED: u8 = NEW_S | NEW_A;

/// What a packet is sent as, with PPP's number of the protocol (RFC 1332 section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VjPacket {
    /// An IP packet as it is (0x0021).
    Plain(Vec<u8>),
    /// One whose protocol field says where to remember its headers (0x002f).
    Remembered(Vec<u8>),
    /// What changed since the last packet of its connection (0x002d).
    Changed(Vec<u8>),
}

/// Headers of a connection's last packet.
#[derive(Clone, Debug)]
struct VjSlot {
    headers: Vec<u8>,
    /// Bytes of that packet.
    len: u16,
}

impl VjSlot {
    fn of(packet: &[u8], headers: usize) -> VjSlot {
        VjSlot { headers: packet[..headers].to_vec(), len: get(packet, 2) }
    }

    /// Bytes of that packet behind its headers.
    fn data(&self) -> u32 {
        u32::from(self.len).saturating_sub(self.headers.len() as u32)
    }
}

/// The end that leaves out what did not change.
#[derive(Clone, Debug, Default)]
pub struct VjCompressor {
    /// Connections, and when each was last used.
    slots: Vec<(u64, VjSlot)>,
    last: Option<usize>,
    count: u64,
}

impl VjCompressor {
    /// What to send of this IP packet (section A.2).
    pub fn compress(&mut self, packet: &[u8]) -> VjPacket {
        let Some(len) = tcp_headers(packet).filter(|_| packet[33] & (FIN_SYN_RST | ACK) == ACK) else {
            return VjPacket::Plain(packet.to_vec());
        };
        self.count += 1;
        let same = |(_, slot): &(u64, VjSlot)| slot.headers[12..24] == packet[12..24];
        let Some(place) = self.slots.iter().position(same) else { return self.remembered(packet, len, None) };
        let new_slot = VjSlot::of(packet, len);
        let Some((mask, fields)) = changes(&self.slots[place].1, &new_slot) else {
            return self.remembered(packet, len, Some(place));
        };
        self.slots[place] = (self.count, new_slot);
        let other = self.last.replace(place) != Some(place);
        let mut out = vec![mask | if other { NEW_C } else { 0 }];
        out.extend(other.then_some(place as u8));
        out.extend_from_slice(&packet[36..38]);
        out.extend(fields);
        out.extend_from_slice(&packet[len..]);
        VjPacket::Changed(out)
    }

    /// Remembers the headers in the place of their connection, or of the one that was used the longest ago.
    fn remembered(&mut self, packet: &[u8], len: usize, place: Option<usize>) -> VjPacket {
        let slot = (self.count, VjSlot::of(packet, len));
        let place = place.unwrap_or(self.slots.len());
        let place = if place < VJ_SLOTS { place } else { self.oldest() };
        match self.slots.get_mut(place) {
            Some(known) => *known = slot,
            None => self.slots.push(slot),
        }
        self.last = Some(place);
        let mut packet = packet.to_vec();
        packet[9] = place as u8;
        VjPacket::Remembered(packet)
    }

    fn oldest(&self) -> usize {
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, (used, _))| *used);
        oldest.map_or(0, |(place, _)| place)
    }
}

/// The mask and the fields of what changed; nothing where a packet has to go whole.
fn changes(old: &VjSlot, new: &VjSlot) -> Option<(u8, Vec<u8>)> {
    let (before, now) = (&old.headers[..], &new.headers[..]);
    // Version, header length and type of service; fragments, time to live and protocol; TCP's header length; options. And what is
    // younger than the RFC: ECN (RFC 3168), of which the mask knows nothing.
    let fixed = before.len() == now.len()
        && before[..2] == now[..2]
        && before[6..10] == now[6..10]
        && before[32] == now[32]
        && before[33] & ECN == now[33] & ECN
        && before[HEADERS..] == now[HEADERS..];
    if !fixed {
        return None;
    }
    let (mut mask, mut fields) = (0, Vec::new());
    if now[33] & URG != 0 {
        mask |= NEW_U;
        encode(get(now, 38), &mut fields);
    } else if before[38..40] != now[38..40] {
        return None;
    }
    let moved = |at| get32(now, at).wrapping_sub(get32(before, at));
    let window = u32::from(get(now, 34).wrapping_sub(get(before, 34)));
    for (bit, delta) in [(NEW_W, window), (NEW_A, moved(28)), (NEW_S, moved(24))] {
        if delta != 0 {
            mask |= bit;
            encode(u16::try_from(delta).ok()?, &mut fields);
        }
    }
    match mask {
        // Data after an acknowledgement is new; anything else was sent before and is sent again, for the other end may lack it.
        0 if old.data() == 0 && new.data() > 0 => {}
        0 | ECHOED | ONE_WAY => return None,
        ACKED if moved(24) == moved(28) && moved(24) == old.data() => (mask, fields) = (ECHOED, Vec::new()),
        NEW_S if moved(24) == old.data() => (mask, fields) = (ONE_WAY, Vec::new()),
        _ => {}
    }
    let ident = get(now, 4).wrapping_sub(get(before, 4));
    if ident != 1 {
        mask |= NEW_I;
        encode(ident, &mut fields);
    }
    Some((mask | if now[33] & PSH != 0 { PUSH } else { 0 }, fields))
}

/// The end that puts together what was left out.
#[derive(Clone, Debug, Default)]
pub struct VjExpander {
    slots: [Option<VjSlot>; VJ_SLOTS],
    last: Option<usize>,
}

impl VjExpander {
    /// The IP packet that was sent; nothing when it is malformed, or of a connection of which nothing is remembered. After a
    /// packet was lost, [`VjExpander::toss`] is to be called.
    pub fn expand(&mut self, packet: &VjPacket) -> Option<Vec<u8>> {
        match packet {
            VjPacket::Plain(packet) => Some(packet.clone()),
            VjPacket::Remembered(packet) => self.remember(packet),
            VjPacket::Changed(changed) => {
                let packet = self.change(changed);
                if packet.is_none() {
                    self.toss();
                }
                packet
            }
        }
    }

    /// A packet was lost: what does not name its connection is of no use until one does (section 4.1).
    pub const fn toss(&mut self) {
        self.last = None;
    }

    fn remember(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let mut packet = packet.to_vec();
        let place = usize::from(*packet.get(9)?);
        packet[9] = TCP_PROTOCOL;
        let len = tcp_headers(&packet);
        let (Some(len), Some(slot)) = (len, self.slots.get_mut(place)) else {
            self.last = None;
            return None;
        };
        *slot = Some(VjSlot::of(&packet, len));
        self.last = Some(place);
        Some(packet)
    }

    fn change(&mut self, changed: &[u8]) -> Option<Vec<u8>> {
        let mut rest = changed;
        let mask = octet(&mut rest)?;
        if mask & NEW_C != 0 {
            self.last = Some(usize::from(octet(&mut rest)?));
        }
        let slot = self.slots.get_mut(self.last?)?.as_mut()?;
        let data = slot.data();
        let now = &mut slot.headers;
        let sum = [octet(&mut rest)?, octet(&mut rest)?];
        now[36..38].copy_from_slice(&sum);
        now[33] = now[33] & !(PSH | URG) | if mask & PUSH != 0 { PSH } else { 0 };
        match mask & SPECIALS {
            ECHOED => {
                add32(now, 28, data);
                add32(now, 24, data);
            }
            ONE_WAY => add32(now, 24, data),
            _ => {
                if mask & NEW_U != 0 {
                    now[33] |= URG;
                    let urgent = decode(&mut rest)?;
                    put16(now, 38, urgent);
                }
                if mask & NEW_W != 0 {
                    let window = get(now, 34).wrapping_add(decode(&mut rest)?);
                    put16(now, 34, window);
                }
                for (bit, at) in [(NEW_A, 28), (NEW_S, 24)] {
                    if mask & bit != 0 {
                        add32(now, at, decode(&mut rest)?.into());
                    }
                }
            }
        }
        let ident = if mask & NEW_I != 0 { decode(&mut rest)? } else { 1 };
        let ident = get(now, 4).wrapping_add(ident);
        put16(now, 4, ident);
        slot.len = u16::try_from(now.len() + rest.len()).ok()?;
        put16(now, 2, slot.len);
        let sum = strait_wire::ip::v4_header_checksum(&now[..IPV4]);
        put16(now, 10, sum);
        Some([&now[..], rest].concat())
    }
}

/// Bytes of the headers of a whole segment of TCP over IPv4 without options of IP; nothing of any other packet.
fn tcp_headers(packet: &[u8]) -> Option<usize> {
    let fixed = packet.len() >= HEADERS
        && packet[0] == 0x45
        && packet[9] == TCP_PROTOCOL
        && get(packet, 6) & 0x3fff == 0
        && usize::from(get(packet, 2)) == packet.len();
    let len = IPV4 + usize::from(*packet.get(32)? >> 4) * 4;
    (fixed && (HEADERS..=packet.len()).contains(&len)).then_some(len)
}

/// A byte, or a zero and two bytes for zero and what is longer (section 3.2.3).
fn encode(delta: u16, out: &mut Vec<u8>) {
    match u8::try_from(delta) {
        Ok(short) if short > 0 => out.push(short),
        _ => {
            out.push(0);
            out.extend(delta.to_be_bytes());
        }
    }
}

fn decode(rest: &mut &[u8]) -> Option<u16> {
    match octet(rest)? {
        0 => Some(u16::from_be_bytes([octet(rest)?, octet(rest)?])),
        short => Some(short.into()),
    }
}

fn octet(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from(get(bytes, at)) << 16 | u32::from(get(bytes, at + 2))
}

fn add32(bytes: &mut [u8], at: usize, delta: u32) {
    let sum = get32(bytes, at).wrapping_add(delta);
    bytes[at..at + 4].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests;
