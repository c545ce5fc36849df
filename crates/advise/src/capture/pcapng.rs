//! pcapng (draft-ietf-opsawg-pcapng): blocks, of which sections, interfaces and packets matter here.

mod options;

use std::io::Read;

use strait_clock::Time;

use super::order::ByteOrder;
use super::window::ReadWindow;
use super::{CapturedFrame, FRAME_MAX, ReadError};
use crate::LinkType;
use options::Resolution;

/// Type and length in front of a block, length behind it (section 3.1).
const BLOCK_MIN: u32 = 12;
/// The first block of a section (section 4.1); reads the same in either order.
const SECTION: u32 = 0x0a0d_0d0a;
/// What tells its order.
const MAGIC_LITTLE: [u8; 4] = [0x4d, 0x3c, 0x2b, 0x1a];
const MAGIC_BIG: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// Describes an interface (section 4.2).
const INTERFACE: u32 = 1;
/// A packet as it was written before there were enhanced ones (appendix A).
const OBSOLETE_PACKET: u32 = 2;
/// A packet without time or interface (section 4.4).
const SIMPLE_PACKET: u32 = 3;
/// A packet (section 4.3).
const ENHANCED_PACKET: u32 = 6;
/// Interfaces of one section: more than any machine has.
const INTERFACES_MAX: usize = 4_096;
/// Of an interface's description, what is looked at: options begin with those that matter.
const INTERFACE_BODY_MAX: usize = 4_096;

/// Whether a file begins with a section.
pub(super) fn recognizes(first: &[u8]) -> bool {
    first.starts_with(&SECTION.to_be_bytes())
}

/// What is known of the present section.
#[derive(Debug)]
pub(super) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// The time of the packet before, for those that have none.
    at: Time,
    /// What is left of a block whose packet was handed out.
    rest: Option<Rest>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// The most that it keeps of a packet; 0 for all.
    snap: u32,
    resolution: Resolution,
}

/// The end of a block.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// Bytes before the length that ends it.
    len: u64,
    block: PcapngBlock,
}

/// A block's own words about itself.
#[derive(Clone, Copy, Debug)]
struct PcapngBlock {
    at: u64,
    len: u32,
}

impl PcapngBlock {
    /// Bytes between the lengths.
    const fn body(self) -> u32 {
        self.len - BLOCK_MIN
    }
}

/// A packet's fixed fields.
struct PcapngPacket {
    interface: u32,
    time: u64,
    captured: u32,
    len: u32,
}

impl Pcapng {
    pub(super) const fn new() -> Pcapng {
        Pcapng { order: ByteOrder::Little, interfaces: Vec::new(), at: Time::ZERO, rest: None }
    }

    pub(super) fn frame<'w, R: Read>(
        &mut self,
        window: &'w mut ReadWindow<R>,
    ) -> Result<Option<CapturedFrame<'w>>, ReadError> {
        loop {
            if let Some(rest) = self.rest.take() {
                self.end(rest, window)?;
            }
            let at = window.position();
            let Some(head) = window.take(8, "a block's header")? else { return Ok(None) };
            let kind = self.order.u32(head, 0);
            let len = <[u8; 4]>::try_from(head.get(4..8).unwrap_or_default()).unwrap_or_default();
            if kind == SECTION {
                self.section(len, at, window)?;
                continue;
            }
            let block = self.block(len, at)?;
            let taken = match kind {
                INTERFACE => self.interface(block, window)?,
                ENHANCED_PACKET | OBSOLETE_PACKET | SIMPLE_PACKET => {
                    return self.packet(kind, block, window).map(Some);
                }
                _ => 0,
            };
            self.rest = Some(Rest { len: u64::from(block.body() - taken), block });
        }
    }

    /// Checks a block's length.
    fn block(&self, len: [u8; 4], at: u64) -> Result<PcapngBlock, ReadError> {
        let len = self.order.u32(&len, 0);
        if len < BLOCK_MIN || !len.is_multiple_of(4) {
            return Err(ReadError::Malformed { what: "the length of a block", value: len.into(), at });
        }
        Ok(PcapngBlock { at, len })
    }

    /// Passes over what is left of a block, and compares its two lengths.
    fn end<R: Read>(&self, rest: Rest, window: &mut ReadWindow<R>) -> Result<(), ReadError> {
        let PcapngBlock { at, len } = rest.block;
        window.skip(rest.len, "a block", at)?;
        let again = self.order.u32(window.rest(4, "a block", at)?, 0);
        if again != len {
            let what = "the second length of a block";
            return Err(ReadError::Malformed { what, value: again.into(), at });
        }
        Ok(())
    }

    /// A new section: another order, other interfaces.
    fn section<R: Read>(
        &mut self,
        len: [u8; 4],
        at: u64,
        window: &mut ReadWindow<R>,
    ) -> Result<(), ReadError> {
        let what = "a section's header";
        let magic = window.rest(4, what, at)?;
        self.order = match magic.first_chunk() {
            Some(&MAGIC_LITTLE) => ByteOrder::Little,
            Some(&MAGIC_BIG) => ByteOrder::Big,
            other => {
                let value = other.map_or(0, |bytes| u32::from_be_bytes(*bytes)).into();
                return Err(ReadError::Malformed { what: "the byte order of a section", value, at });
            }
        };
        self.interfaces.clear();
        let block = self.block(len, at)?;
        let left = block.body().checked_sub(4);
        let left = left.ok_or(ReadError::Malformed {
            what: "the length of a section's header",
            value: block.len.into(),
            at,
        })?;
        self.rest = Some(Rest { len: left.into(), block });
        Ok(())
    }

    /// One more interface; says how many bytes of the block were taken.
    fn interface<R: Read>(
        &mut self,
        block: PcapngBlock,
        window: &mut ReadWindow<R>,
    ) -> Result<u32, ReadError> {
        let PcapngBlock { at, .. } = block;
        let take = block.body().min(INTERFACE_BODY_MAX as u32);
        if take < 8 || self.interfaces.len() >= INTERFACES_MAX {
            let (what, value) = if take < 8 {
                ("the length of an interface's description", u64::from(block.len))
            } else {
                ("the number of interfaces", self.interfaces.len() as u64 + 1)
            };
            return Err(ReadError::Malformed { what, value, at });
        }
        let body = window.rest(take as usize, "an interface's description", at)?;
        let link = LinkType(self.order.u16(body, 0));
        let resolution = Resolution::of(body.get(8..).unwrap_or_default(), self.order);
        let resolution = resolution.map_err(|value| ReadError::Malformed {
            what: "the resolution of an interface's clock",
            value: value.into(),
            at,
        })?;
        self.interfaces.push(Interface { link, snap: self.order.u32(body, 4), resolution });
        Ok(take)
    }

    /// A packet of any of the three kinds.
    fn packet<'w, R: Read>(
        &mut self,
        kind: u32,
        block: PcapngBlock,
        window: &'w mut ReadWindow<R>,
    ) -> Result<CapturedFrame<'w>, ReadError> {
        let at = block.at;
        let fixed: u32 = if kind == SIMPLE_PACKET { 4 } else { 20 };
        let too_short = |what, value: u32| ReadError::Malformed { what, value: value.into(), at };
        let Some(room) = block.body().checked_sub(fixed) else {
            return Err(too_short("the length of a packet's block", block.len));
        };
        let fields = window.rest(fixed as usize, "a packet's block", at)?;
        let packet = self.fields(kind, fields, room);
        let Some(interface) = self.interfaces.get(packet.interface as usize).copied() else {
            return Err(too_short("a packet's interface, which no block describes", packet.interface));
        };
        if packet.captured > room || packet.captured as usize > FRAME_MAX {
            return Err(too_short("the captured length of a packet", packet.captured));
        }
        if kind != SIMPLE_PACKET {
            self.at = interface.resolution.time(packet.time);
        }
        self.rest = Some(Rest { len: u64::from(room - packet.captured), block });
        let bytes = window.rest(packet.captured as usize, "a packet", at)?;
        let len = (packet.len as usize).max(bytes.len());
        Ok(CapturedFrame { at: self.at, link: interface.link, bytes, len })
    }

    /// A packet's fixed fields, of which the kinds have different ones.
    fn fields(&self, kind: u32, fields: &[u8], room: u32) -> PcapngPacket {
        let field = |index: usize| self.order.u32(fields, index * 4);
        match kind {
            SIMPLE_PACKET => {
                let len = field(0);
                let snap = self.interfaces.first().map_or(0, |interface| interface.snap);
                let captured = if snap == 0 { len } else { len.min(snap) };
                PcapngPacket { interface: 0, time: 0, captured: captured.min(room), len }
            }
            _ => {
                let interface =
                    if kind == OBSOLETE_PACKET { self.order.u16(fields, 0).into() } else { field(0) };
                let time = u64::from(field(1)) << 32 | u64::from(field(2));
                PcapngPacket { interface, time, captured: field(3), len: field(4) }
            }
        }
    }
}
