//! Writes captures by their specifications.

/// A frame as it is written or was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) nanos: u64,
    pub(super) link: u16,
    pub(super) bytes: Vec<u8>,
    pub(super) len: usize,
}

/// Numbers in one order.
fn number(bytes: &mut Vec<u8>, big: bool, value: u32) {
    bytes.extend(if big { value.to_be_bytes() } else { value.to_le_bytes() });
}

fn half(bytes: &mut Vec<u8>, big: bool, value: u16) {
    bytes.extend(if big { value.to_be_bytes() } else { value.to_le_bytes() });
}

fn word(len: usize) -> u32 {
    u32::try_from(len).unwrap()
}

/// A pcap file of Ethernet frames.
pub(super) fn pcap(frames: &[Taken], big: bool, nanos: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    number(&mut bytes, big, if nanos { 0xa1b2_3c4d } else { 0xa1b2_c3d4 });
    half(&mut bytes, big, 2);
    half(&mut bytes, big, 4);
    for value in [0, 0, 262_144, 1] {
        number(&mut bytes, big, value);
    }
    for frame in frames {
        let (seconds, part) = (frame.nanos / 1_000_000_000, frame.nanos % 1_000_000_000);
        let part = if nanos { part } else { part / 1_000 };
        for value in [
            u32::try_from(seconds).unwrap(),
            u32::try_from(part).unwrap(),
            word(frame.bytes.len()),
            word(frame.len),
        ] {
            number(&mut bytes, big, value);
        }
        bytes.extend(&frame.bytes);
    }
    bytes
}

/// A block of a section.
#[derive(Clone, Debug)]
pub(super) enum Block {
    Interface { link: u16, resolution: u8 },
    Enhanced { interface: u32, frame: Taken, time: u64 },
    Simple(Taken),
    Obsolete(Taken),
    Other,
}

impl Block {
    /// An interface whose clock counts units of 10 to the minus `resolution` seconds.
    pub(super) fn interface(link: u16, resolution: u8) -> Block {
        Block::Interface { link, resolution }
    }

    /// A packet of the first interface, which counts microseconds.
    pub(super) fn enhanced(frame: Taken) -> Block {
        let time = frame.nanos / 1_000;
        Block::Enhanced { interface: 0, frame, time }
    }

    pub(super) fn enhanced_on(interface: u32, frame: Taken, time: u64) -> Block {
        Block::Enhanced { interface, frame, time }
    }

    pub(super) fn simple(frame: Taken) -> Block {
        Block::Simple(frame)
    }

    pub(super) fn obsolete(frame: Taken) -> Block {
        Block::Obsolete(frame)
    }

    /// One that no reader needs.
    pub(super) fn other() -> Block {
        Block::Other
    }

    fn kind(&self) -> u32 {
        match self {
            Block::Interface { .. } => 1,
            Block::Obsolete(_) => 2,
            Block::Simple(_) => 3,
            Block::Enhanced { .. } => 6,
            Block::Other => 0x0bad_cafe,
        }
    }

    fn body(&self, big: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Block::Interface { link, resolution } => {
                half(&mut bytes, big, *link);
                half(&mut bytes, big, 0);
                number(&mut bytes, big, 8);
                // A name, which is padded, then the resolution.
                half(&mut bytes, big, 2);
                half(&mut bytes, big, 5);
                bytes.extend(b"en0p3\0\0\0");
                half(&mut bytes, big, 9);
                half(&mut bytes, big, 1);
                bytes.extend([*resolution, 0, 0, 0]);
                number(&mut bytes, big, 0);
            }
            Block::Enhanced { interface, frame, time } => {
                number(&mut bytes, big, *interface);
                packet(&mut bytes, big, *time, frame);
                // A comment behind the packet.
                half(&mut bytes, big, 1);
                half(&mut bytes, big, 4);
                bytes.extend(b"seen");
                number(&mut bytes, big, 0);
            }
            Block::Obsolete(frame) => {
                half(&mut bytes, big, 0);
                half(&mut bytes, big, 0xffff);
                packet(&mut bytes, big, frame.nanos / 1_000, frame);
            }
            Block::Simple(frame) => {
                number(&mut bytes, big, word(frame.len));
                padded(&mut bytes, &frame.bytes);
            }
            Block::Other => bytes.extend([1, 2, 3, 4]),
        }
        bytes
    }
}

fn packet(bytes: &mut Vec<u8>, big: bool, time: u64, frame: &Taken) {
    let (high, low) = (time >> 32, time & u64::from(u32::MAX));
    for value in
        [u32::try_from(high).unwrap(), u32::try_from(low).unwrap(), word(frame.bytes.len()), word(frame.len)]
    {
        number(bytes, big, value);
    }
    padded(bytes, &frame.bytes);
}

fn padded(bytes: &mut Vec<u8>, data: &[u8]) {
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// A section.
pub(super) fn pcapng(blocks: &[Block], big: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut head = Vec::new();
    number(&mut head, big, 0x1a2b_3c4d);
    half(&mut head, big, 1);
    half(&mut head, big, 0);
    head.extend([0xff; 8]);
    let blocks = blocks.iter().map(|block| (block.kind(), block.body(big)));
    for (kind, body) in std::iter::once((0x0a0d_0d0a, head)).chain(blocks) {
        let len = word(body.len() + 12);
        number(&mut bytes, big, kind);
        number(&mut bytes, big, len);
        bytes.extend(body);
        number(&mut bytes, big, len);
    }
    bytes
}
