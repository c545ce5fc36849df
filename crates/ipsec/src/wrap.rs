//! The protocols around a payload, put on and taken off: ESP, then AH, then the outer header
//! (RFC 4301 sections 5.1 and 5.2).
//!
//! ```text
//! outer header, or one with the key | AH | ESP header, IV | payload | ESP trailer, ICV
//! '------------- front ------------'
//! ```
//!
//! Each step is there or not; together they are every combination that the configuration can name. The
//! payload is in its place before and stays there: nothing is moved.

use std::net::IpAddr;

use strait_wire::{Esn, Protocol, Tos, ip};

pub use crate::layers::{Authentic, Inside};
use crate::layers::{Sizes, Unsealable};
pub use crate::sequence::NoNumber;
use crate::{Carrier, Fragments, InboundSa, OutboundSa, Reason};

/// What goes in front of the protocols.
#[derive(Clone, Copy, Debug)]
pub enum Head<'a> {
    /// A header of our own, as the carrier needs it, with these marks.
    Fresh(Tos),
    /// The front of the packet whose upper layer is the payload, and where its fields are.
    Own(&'a [u8], ip::Front),
}

/// Why a packet was not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSealed {
    /// There is no number for it.
    NoNumber(NoNumber),
    /// Its lengths do not add up, or it is longer than its algorithm takes.
    Unsealable,
}

impl From<Unsealable> for NotSealed {
    fn from(_: Unsealable) -> NotSealed {
        NotSealed::Unsealable
    }
}

impl From<NoNumber> for NotSealed {
    fn from(why: NoNumber) -> NotSealed {
        NotSealed::NoNumber(why)
    }
}

impl OutboundSa {
    /// Bytes in front of the protocols: a header with the key, where one is due. UDP's headers are the system's to write.
    #[must_use]
    pub const fn front_len(&self, head: Head<'_>) -> usize {
        match (self.carrier, head) {
            (Carrier::Udp, _) => self.lead,
            (Carrier::Ip { .. }, Head::Own(headers, _)) => headers.len(),
            (Carrier::Ip { to: IpAddr::V4(_), .. }, Head::Fresh(_)) => ip::V4_HEADER_LEN,
            (Carrier::Ip { to: IpAddr::V6(_), .. }, Head::Fresh(_)) => ip::V6_HEADER_LEN,
        }
    }

    fn ah_len(&self) -> usize {
        self.ah.as_ref().map_or(0, |ah| ah.len())
    }

    fn esp_sizes(&self) -> Option<Sizes> {
        self.esp.as_ref().map(|esp| esp.sizes)
    }

    /// Where the payload starts.
    #[must_use]
    pub fn payload_at(&self, front: usize) -> usize {
        front + self.ah_len() + self.esp_sizes().map_or(0, Sizes::front)
    }

    /// Bytes of the whole packet around a payload of `payload` bytes.
    #[must_use]
    pub fn sealed_len(&self, front: usize, payload: usize) -> usize {
        front + self.ah_len() + self.esp_sizes().map_or(payload, |esp| esp.sealed(payload))
    }

    /// The largest payload whose packet takes at most `room` bytes.
    #[must_use]
    pub fn payload_room(&self, front: usize, room: usize) -> usize {
        let room = room.saturating_sub(front + self.ah_len());
        self.esp_sizes().map_or(room, |esp| esp.room(room))
    }

    /// Makes a protected packet in place: `packet` is [`OutboundSa::sealed_len`] long and holds `payload`
    /// bytes at [`OutboundSa::payload_at`]; everything else is written here.
    ///
    /// # Errors
    /// [`NotSealed`]; the packet's content is then undefined.
    pub fn seal(
        &mut self,
        head: Head<'_>,
        packet: &mut [u8],
        payload: usize,
        next: Protocol,
    ) -> Result<(), NotSealed> {
        let nonce = self.numbers.next()?;
        let (esn, length) = (Esn(nonce.value()), self.numbers.length());
        let front_len = self.front_len(head);
        let mut next = next;
        if let Some(esp) = &self.esp {
            let inner = packet.get_mut(front_len + self.ah_len()..).ok_or(Unsealable)?;
            esp.seal(nonce, length, inner, payload, next)?;
            next = Protocol::ESP;
        }
        if front_len > 0 {
            let outermost = if self.ah.is_some() { Protocol::AH } else { next };
            self.put_front(head, packet, outermost, esn)?;
        }
        if let Some(ah) = &self.ah {
            ah.sign(esn, packet, front_len, next)?;
        }
        Ok(())
    }

    /// The headers in front, saying what follows and how long it is.
    fn put_front(
        &mut self,
        head: Head<'_>,
        packet: &mut [u8],
        outermost: Protocol,
        esn: Esn,
    ) -> Result<(), Unsealable> {
        let whole = packet.len();
        match (head, self.carrier) {
            (Head::Own(headers, front), Carrier::Ip { .. }) => {
                packet.get_mut(..headers.len()).ok_or(Unsealable)?.copy_from_slice(headers);
                front.refit(packet, outermost, whole).map_err(|_| Unsealable)
            }
            (Head::Fresh(tos), Carrier::Ip { from: IpAddr::V4(src), to: IpAddr::V4(dst) }) => {
                let (id, dont_fragment) = (id(esn), self.fragments == Fragments::Never);
                let payload_len = whole.saturating_sub(ip::V4_HEADER_LEN);
                ip::V4Header { src, dst, tos, id, dont_fragment, protocol: outermost, payload_len }
                    .emit(packet)
                    .map_err(|_| Unsealable)
            }
            (Head::Fresh(tos), Carrier::Ip { from: IpAddr::V6(src), to: IpAddr::V6(dst) }) => {
                let payload_len = whole.saturating_sub(ip::V6_HEADER_LEN);
                ip::V6Header { src, dst, tos, next: outermost, payload_len }
                    .emit(packet)
                    .map_err(|_| Unsealable)
            }
            (_, Carrier::Udp) => {
                let header = self.header.as_mut().ok_or(Unsealable)?;
                let room = packet.get_mut(..header.bytes().len()).ok_or(Unsealable)?;
                room.copy_from_slice(header.bytes());
                self.lead = header.sent(esn);
                Ok(())
            }
            (Head::Fresh(_), Carrier::Ip { .. }) => Err(Unsealable),
        }
    }
}

/// IPv4's identification: the sequence number's last bits, since AH covers it and the system would put
/// its own in place of zero.
fn id(esn: Esn) -> u16 {
    let [_, _, high, low] = esn.low().0.to_be_bytes();
    match u16::from_be_bytes([high, low]) {
        0 => 1 << 15,
        id => id,
    }
}

impl InboundSa {
    /// Takes off the protocols of this association, in place. `inside` is the packet behind the headers in
    /// front; all that was agreed must be there (RFC 4301 section 5.2, step 4).
    ///
    /// # Errors
    /// Why it is not to be delivered.
    #[inline]
    pub fn open(&mut self, bytes: &mut [u8], inside: Inside) -> Result<Inside, Reason> {
        let mut inside = inside;
        if let Some(ah) = &mut self.ah {
            inside = agreed(Protocol::AH, inside)?;
            inside = ah.open(bytes, inside)?;
        }
        if let Some(esp) = &mut self.esp {
            inside = agreed(Protocol::ESP, inside)?;
            inside = esp.open(bytes, inside)?;
        }
        Ok(inside)
    }

    /// The same, where the upper half of sequence numbers is `ahead` of that of the highest so far.
    ///
    /// # Errors
    /// As [`InboundSa::open`].
    pub(crate) fn open_in_epoch(
        &mut self,
        bytes: &mut [u8],
        inside: Inside,
        ahead: u32,
    ) -> Result<Inside, Reason> {
        self.suppose(Some(ahead));
        let opened = self.open(bytes, inside);
        self.suppose(None);
        opened
    }

    fn suppose(&mut self, ahead: Option<u32>) {
        let ah = self.ah.as_mut().map(|ah| &mut ah.received);
        let esp = self.esp.as_mut().map(|esp| &mut esp.received);
        ah.into_iter().chain(esp).for_each(|received| received.suppose(ahead));
    }
}

fn agreed(protocol: Protocol, inside: Inside) -> Result<Inside, Reason> {
    if inside.next == protocol { Ok(inside) } else { Err(Reason::Unprotected) }
}
