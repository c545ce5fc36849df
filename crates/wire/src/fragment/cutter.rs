//! A packet that is too long for a link, one fragment after another.

use super::{Fragment, HEADER_LEN, Header};
use crate::ip::{self, FRONT_MAX, Front, Version, next_v4};
use crate::{Malformed, Protocol};

/// The longest IPv4 header: 15 words (RFC 791 section 3.1).
const V4_HEADER_MAX: usize = 60;
/// In an IPv4 option's type: every fragment has it, not only the first (RFC 791 section 3.1).
const V4_COPIED: u8 = 0x80;

/// Cuts a packet into fragments that fit a link.
#[derive(Debug, Clone)]
pub struct Cutter<'a> {
    version: Version,
    /// Where the headers end that every fragment has, and what follows them.
    front: Front,
    /// Those headers, as the first fragment has them.
    first: &'a [u8],
    /// And as the others have them, where that is not the same.
    later: Option<Later>,
    /// What is not sent yet.
    payload: &'a [u8],
    /// Of the fragment to come, were it the last.
    header: Header,
    mtu: usize,
    state: CutterState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutterState {
    /// The packet fits as it is.
    Fits,
    First,
    Later,
    Done,
}

/// The IPv4 header of all fragments but the first.
#[derive(Debug, Clone, Copy)]
struct Later {
    bytes: [u8; V4_HEADER_MAX],
    len: usize,
}

impl<'a> Cutter<'a> {
    /// Prepares to cut `packet` for a link that takes packets of `mtu` bytes. In IPv6 `id` must not name another
    /// packet between these addresses for as long as fragments may live (RFC 8200 section 4.5); IPv4 packets bring
    /// theirs, and may be fragments already.
    ///
    /// # Errors
    /// [`Malformed`] when this is no packet, or when it is too long and has a fragment header or no room for one
    /// within [`FRONT_MAX`] bytes (IPv6), forbids to be cut or has options that do not add up (IPv4).
    pub fn new(packet: &'a [u8], mtu: usize, id: u32) -> Result<Cutter<'a>, Malformed> {
        let front = Front::of_fragments(packet)?;
        let version = ip::version_of(packet).ok_or(Malformed::new("ip version", packet))?;
        let packet = packet.get(..ip::declared_len(packet)?).unwrap_or_default();
        let (first, payload) = packet.split_at_checked(front.len).unwrap_or_default();
        let mut cutter = Cutter {
            version,
            front,
            first,
            later: None,
            payload,
            header: Header { id, offset: 0, more: false },
            mtu,
            state: CutterState::Fits,
        };
        if packet.len() > mtu {
            cutter.state = CutterState::First;
            match version {
                Version::V4 => cutter.prepare_v4(packet)?,
                Version::V6 if front.fragment.is_some() => {
                    return Err(Malformed::new("packet that is a fragment", packet));
                }
                Version::V6 if front.len + HEADER_LEN > FRONT_MAX => {
                    return Err(Malformed::new("length of the headers in front", packet));
                }
                Version::V6 => {}
            }
        }
        Ok(cutter)
    }

    fn prepare_v4(&mut self, packet: &[u8]) -> Result<(), Malformed> {
        if ip::Packet::parse(packet)?.dont_fragment() {
            return Err(Malformed::new("packet that may not be fragmented", packet));
        }
        if let Some(fragment) = Fragment::parse(packet)? {
            self.header = fragment.header;
        }
        self.later = Some(Later::new(self.first)?);
        Ok(())
    }

    /// Writes the next fragment at the start of `buf` and returns its length; `None` when there are no more. A packet
    /// that fits comes out once, as it is.
    ///
    /// # Errors
    /// [`Malformed`] when `buf` is too short, or the link takes not even 8 bytes behind the headers.
    pub fn cut(&mut self, buf: &mut [u8]) -> Result<Option<usize>, Malformed> {
        let front = match (self.state, &self.later) {
            (CutterState::Done, _) => return Ok(None),
            (CutterState::Later, Some(later)) => later.bytes(),
            (CutterState::Fits | CutterState::First | CutterState::Later, _) => self.first,
        };
        let has_header = self.version == Version::V6 && self.state != CutterState::Fits;
        let head_len = front.len() + if has_header { HEADER_LEN } else { 0 };
        let take = self.mtu.checked_sub(head_len).and_then(|room| self.share(room));
        let take = take.ok_or(Malformed::new("mtu", front))?;
        let (payload, left) = self.payload.split_at_checked(take).unwrap_or_default();

        let malformed = Malformed::new("buffer for a fragment", buf);
        let fragment = buf.get_mut(..head_len + take).ok_or(malformed)?;
        let (head, to_payload) = fragment.split_at_mut_checked(head_len).ok_or(malformed)?;
        to_payload.copy_from_slice(payload);
        head.split_at_mut_checked(front.len()).ok_or(malformed)?.0.copy_from_slice(front);
        if self.state != CutterState::Fits {
            let header = Header { more: self.header.more || !left.is_empty(), ..self.header };
            self.finish_head(head, front.len(), header, head_len + take)?;
        }
        // Offset and length together are within the longest packet, which 16 bits can say.
        self.header.offset += u16::try_from(take).map_err(|_| malformed)?;
        self.payload = left;
        self.state = if left.is_empty() { CutterState::Done } else { CutterState::Later };
        Ok(Some(head_len + take))
    }

    /// How many bytes of what is left go where `room` bytes fit: all, or a multiple of 8.
    fn share(&self, room: usize) -> Option<usize> {
        if self.payload.len() <= room {
            return Some(self.payload.len());
        }
        Some(room / 8 * 8).filter(|take| *take > 0)
    }

    /// Makes the copied front, the first `front_len` bytes of `head`, that of a fragment of `len` bytes.
    fn finish_head(
        &self,
        head: &mut [u8],
        front_len: usize,
        header: Header,
        len: usize,
    ) -> Result<(), Malformed> {
        let front = Front { len: front_len, ..self.front };
        match self.version {
            Version::V4 => {
                header.put_v4(head).ok_or(Malformed::new("ipv4 header", head))?;
                front.refit(head, front.next, len)
            }
            Version::V6 => {
                header.emit(front.next, head.get_mut(front_len..).unwrap_or_default())?;
                front.refit(head, Protocol::FRAGMENT, len)
            }
        }
    }
}

impl Later {
    /// Keeps of the first header's options those that are to be copied.
    fn new(first: &[u8]) -> Result<Later, Malformed> {
        let malformed = Malformed::new("ipv4 header", first);
        let (fixed, options) = first.split_at_checked(ip::V4_HEADER_LEN).ok_or(malformed)?;
        let mut later = Later { bytes: [0; V4_HEADER_MAX], len: 0 };
        later.push(fixed).ok_or(malformed)?;
        let mut at = 0;
        while let Some(option) = next_v4(options, at)? {
            at = option.at.end;
            if option.kind & V4_COPIED != 0 {
                later.push(options.get(option.at).unwrap_or_default()).ok_or(malformed)?;
            }
        }
        // The rest of the last word is zero already: end of options.
        later.len = later.len.next_multiple_of(4);
        let words = u8::try_from(later.len / 4).map_err(|_| malformed)?;
        later.bytes[0] = 0x40 | words;
        Ok(later)
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.len + bytes.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(bytes);
        self.len = end;
        Some(())
    }
}
