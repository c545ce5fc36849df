//! What hosts send: packets each of which is unique, with what the other host must be given.

use std::collections::BTreeMap;

use strait_clock::Random;
use strait_wire::fragment::Cutter;
use strait_wire::tcp::TcpFlags;
use strait_wire::{Ecn, Tos, ip, vnet};

use crate::host::split;
use crate::packet::{low16, put16};
use crate::{FlowShape, Fragmentation, NodeId};

/// Payload bytes of a packet, and of a super-packet.
const SIZES: [usize; 8] = [8, 40, 100, 400, 1_000, 1_372, 1_452, 9_000];
const SUPER_SIZES: [usize; 8] = [100, 1_500, 3_000, 9_000, 20_000, 40_000, 60_000, 64_000];
const COUNTS: [usize; 4] = [1, 2, 8, 40];

/// What the packets of a flow have in common.
#[derive(Clone, Copy)]
struct FlowKind {
    is_tcp: bool,
    v6: bool,
    /// Whether nothing in them shrinks.
    noise: bool,
    dscp: u8,
    /// Whether routers may cut them.
    may_cut: bool,
}

/// A flow with these bits: TCP, IPv6, noise, may be cut.
const fn flow(bits: u8, dscp: u8) -> FlowKind {
    FlowKind { is_tcp: bits & 8 != 0, v6: bits & 4 != 0, noise: bits & 2 != 0, dscp, may_cut: bits & 1 != 0 }
}

/// Text over UDP and TCP most often; expedited forwarding (46), and two classes that are both bulk.
const FLOWS: [FlowKind; 16] = [
    flow(0b1000, 0),
    flow(0b0000, 0),
    flow(0b1000, 0),
    flow(0b0001, 0),
    flow(0b1100, 0),
    flow(0b0100, 0),
    flow(0b1010, 0),
    flow(0b0011, 0),
    flow(0b1000, 46),
    flow(0b0001, 46),
    flow(0b1000, 8),
    flow(0b0001, 1),
    flow(0b1101, 46),
    flow(0b0110, 8),
    flow(0b1001, 0),
    flow(0b0000, 0),
];

/// A packet as the host gives it.
pub(super) struct GivenPacket {
    pub(super) bytes: Vec<u8>,
    pub(super) offload: vnet::Header,
    /// The packets that the other host is to be given.
    pub(super) pieces: Vec<Vec<u8>>,
    /// The flow whose order is kept, if it is one.
    pub(super) flow: Option<u16>,
}

impl GivenPacket {
    fn new((bytes, offload): (Vec<u8>, vnet::Header), flow: Option<u16>) -> GivenPacket {
        let pieces = split(&offload, &bytes);
        GivenPacket { bytes, offload, pieces, flow }
    }
}

/// Makes packets, no two alike.
#[derive(Debug, Default)]
pub(super) struct HostTraffic {
    serial: u64,
    sequences: BTreeMap<(usize, usize, u16), u32>,
}

impl HostTraffic {
    /// Packets of the flow that `flow` says, as many and as large as `shape` says.
    pub(super) fn packets(&mut self, (from, to): (usize, usize), flow: u8, shape: u8) -> Vec<GivenPacket> {
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][usize::from(shape >> 6)];
        let size = usize::from(shape & 7);
        let is_super = shape >> 5 & 1 == 1;
        let count = COUNTS[usize::from(shape >> 3 & 3)];
        let count = if is_super { count.min(4) } else { count };
        (0..count).map(|_| self.packet((from, to), (flow, ecn), size, is_super)).collect()
    }

    fn packet(
        &mut self,
        (from, to): (usize, usize),
        (flow, ecn): (u8, Ecn),
        size: usize,
        is_super: bool,
    ) -> GivenPacket {
        let port = 1_000 + u16::from(flow);
        let FlowKind { is_tcp, v6, noise, dscp, may_cut } = FLOWS[usize::from(flow) % FLOWS.len()];
        let mut shape = shape((from, to), v6, port);
        shape.tos = Tos(dscp << 2).with_ecn(ecn);
        if may_cut {
            shape.fragmentation = Fragmentation::Allowed;
        }
        let len = if is_super { SUPER_SIZES[size] } else { SIZES[size] };
        let step = [1_400, 500, 1_000, 1_440][size % 4];
        let payload = self.payload(len, usize::from(step), noise);
        let sequence = self.sequences.entry((from, to, port)).or_insert(u32::MAX - 5_000);
        let first = *sequence;
        if is_tcp {
            *sequence = sequence.wrapping_add(u32::try_from(len).unwrap_or(0));
        }
        let made = match (is_tcp, is_super) {
            (true, true) => shape.tcp_super(first, &payload, step),
            (true, false) => (shape.tcp(first, flags(self.serial), &payload), vnet::Header::default()),
            (false, true) => shape.udp_super(&payload, step),
            (false, false) if self.serial.is_multiple_of(3) => unfinished(&shape, &payload),
            (false, false) => (shape.udp(&payload), vnet::Header::default()),
        };
        GivenPacket::new(made, Some(port))
    }

    /// A packet in fragments, as a host or a router before the sender makes them.
    pub(super) fn fragments(&mut self, (from, to): (usize, usize), form: u8) -> Vec<GivenPacket> {
        let mut shape = shape((from, to), form & 1 == 1, 900);
        shape.fragmentation = Fragmentation::Allowed;
        let mut packet = shape.udp(&self.payload(200 + usize::from(form) * 30, 1_000, false));
        if form & 1 == 0 {
            put16(&mut packet, 4, low16(self.serial as usize));
            put16(&mut packet, 10, 0);
            let sum = ip::v4_header_checksum(packet.get(..ip::V4_HEADER_LEN).unwrap_or_default());
            put16(&mut packet, 10, sum);
        }
        let (mut pieces, mut room) = (Vec::new(), vec![0; 1_500]);
        let Ok(mut cutter) = Cutter::new(&packet, 600, self.serial as u32) else { return pieces };
        while let Ok(Some(len)) = cutter.cut(&mut room) {
            let piece = room.get(..len).unwrap_or_default().to_vec();
            pieces.push(GivenPacket::new((piece, vnet::Header::default()), None));
        }
        pieces
    }

    /// Text or noise, in each `step` bytes of which a number stands that no other has.
    fn payload(&mut self, len: usize, step: usize, noise: bool) -> Vec<u8> {
        let mut payload = Vec::with_capacity(len);
        let mut random = Random::new(self.serial);
        while payload.len() < len {
            if noise {
                payload.extend_from_slice(&random.next_u64().to_be_bytes());
            } else {
                payload.extend_from_slice(b"Nov 21 03:14:15 host app[731]: request served in 26 ms\n");
            }
        }
        payload.truncate(len);
        for chunk in payload.chunks_mut(step) {
            self.serial += 1;
            let number = self.serial.to_be_bytes();
            let len = chunk.len().min(number.len());
            let low = number.get(number.len() - len..).unwrap_or_default();
            chunk.iter_mut().zip(low).for_each(|(byte, number)| *byte = *number);
        }
        payload
    }
}

/// What is no packet, or no packet as the device says.
pub(super) fn malformed((from, to): (usize, usize), form: u8) -> (Vec<u8>, vnet::Header) {
    let shape = shape((from, to), form & 1 == 1, 901);
    let (mut whole, mut offload) = shape.udp_super(&[7; 900], 300);
    match form >> 1 & 3 {
        0 => whole.truncate(usize::from(form)),
        1 => offload.gso_size = 0,
        2 => offload.gso_type = 77,
        _ => whole[0] &= 0x0f,
    }
    (whole, offload)
}

/// A packet for an address that no site has, or from one that a third site has.
pub(super) fn misaddressed(from: usize, src: NodeId, dst: NodeId, form: u8) -> Vec<u8> {
    let port = 902 + from as u16;
    let (src, dst) = match form & 1 {
        0 => (src.inner_v4(port), dst.inner_v4(port)),
        _ => (src.inner_v6(port), dst.inner_v6(port)),
    };
    FlowShape::new(src, dst).udp(b"to no site")
}

fn shape((from, to): (usize, usize), v6: bool, port: u16) -> FlowShape {
    let (from, to) = (NodeId::of(from), NodeId::of(to));
    if v6 {
        FlowShape::new(from.inner_v6(port), to.inner_v6(port))
    } else {
        FlowShape::new(from.inner_v4(port), to.inner_v4(port))
    }
}

fn flags(serial: u64) -> TcpFlags {
    if serial.is_multiple_of(5) { TcpFlags::PSH } else { TcpFlags(0) }
}

/// A packet whose checksum the device is to finish.
fn unfinished(shape: &FlowShape, payload: &[u8]) -> (Vec<u8>, vnet::Header) {
    let (packet, offload) = shape.udp_super(payload, u16::MAX);
    (packet, vnet::Header { gso_type: vnet::GSO_NONE, gso_size: 0, ..offload })
}
