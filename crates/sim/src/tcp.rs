//! A TCP connection between two hosts that carries one transfer: what most of a link's traffic is, and what slows down
//! when packets are lost or wait.
//!
//! ```text
//! sender      what to send when, and the timer (RFC 6298)
//! flight      which segments are on their way, arrived or lost (RFC 2018, RFC 8985)
//! window      how many may be on their way: slow start with HyStart, then CUBIC (RFC 9438)
//! receiver    cumulative and selective acknowledgements, delayed (RFC 1122, RFC 2018)
//! options     timestamps (RFC 7323) and SACK blocks, in the bytes that Linux sends
//! ```
//!
//! It begins when the connection is there, and has neither ECN nor PRR (RFC 6937) nor a tail loss probe.

mod flight;
mod options;
mod receiver;
mod sender;
mod window;

use core::time::Duration;
use std::sync::Arc;

use strait_clock::Time;
use strait_wire::{Flow, Protocol, ip};

use crate::{Delivered, Filler, FlowShape, NodeId, SimNetwork};

pub use receiver::TcpReceiver;
pub use sender::{TcpSender, TcpTally};

/// What a transfer is like; the default is as Linux does it through a tunnel with an MTU of 1,400 bytes.
#[derive(Clone, Copy, Debug)]
pub struct TcpSettings {
    /// Bytes of payload a segment.
    pub step: usize,
    /// Bytes that the receiver has room for: the largest `tcp_rmem` of Linux.
    pub room: u64,
    /// Segments to carry; without a number the transfer has no end.
    pub segments: Option<u64>,
    /// What they are filled with.
    pub filler: Filler,
    /// Whether segments have timestamps (RFC 7323); the receiver has them if they do.
    pub timestamps: bool,
}

impl Default for TcpSettings {
    fn default() -> TcpSettings {
        TcpSettings { step: 1348, room: 6 << 20, segments: None, filler: Filler::Random, timestamps: true }
    }
}

/// One transfer with both its ends, behind two nodes of a network.
#[derive(Debug)]
pub struct TcpTransfer {
    ends: [NodeId; 2],
    /// Packets of the sender, and of the receiver.
    flows: [Flow; 2],
    sender: TcpSender,
    receiver: TcpReceiver,
}

impl TcpTransfer {
    /// A transfer from a host behind `from` to one behind `to`, over IPv4 with `port` at both ends.
    #[must_use]
    pub fn new(from: NodeId, to: NodeId, port: u16, settings: TcpSettings) -> TcpTransfer {
        let shapes =
            [(from, to), (to, from)].map(|(from, to)| FlowShape::new(from.inner_v4(port), to.inner_v4(port)));
        TcpTransfer {
            ends: [from, to],
            flows: shapes.map(flow),
            sender: TcpSender::new(shapes[0], settings),
            receiver: TcpReceiver::new(shapes[1]),
        }
    }

    /// The same that carries this content ([`TcpSender::carrying`]).
    #[must_use]
    pub fn carrying(ends: [NodeId; 2], port: u16, settings: TcpSettings, content: Arc<[u8]>) -> TcpTransfer {
        let [from, to] = ends;
        let shape = FlowShape::new(from.inner_v4(port), to.inner_v4(port));
        let sender = TcpSender::carrying(shape, settings, content);
        TcpTransfer { sender, ..TcpTransfer::new(from, to, port, settings) }
    }

    /// The end that sends.
    #[must_use]
    pub const fn sender(&self) -> &TcpSender {
        &self.sender
    }

    /// The end that receives.
    #[must_use]
    pub const fn receiver(&self) -> &TcpReceiver {
        &self.receiver
    }

    /// Takes what the host behind `node` received.
    pub fn take(&mut self, node: NodeId, delivered: &[Delivered]) {
        for Delivered { at, packet } in delivered {
            let Ok(parsed) = ip::Packet::parse(packet) else { continue };
            if parsed.protocol() != Protocol::TCP {
                continue;
            }
            if node == self.ends[1] && parsed.flow() == self.flows[0] {
                self.receiver.take(parsed.payload(), *at);
            } else if node == self.ends[0] && parsed.flow() == self.flows[1] {
                self.sender.take(parsed.payload(), *at);
            }
        }
    }

    /// Both hosts send what they may.
    pub fn send(&mut self, network: &mut SimNetwork) {
        let now = network.now();
        for (end, packets) in [(0, self.sender.poll(now)), (1, self.receiver.poll(now))] {
            if !packets.is_empty() {
                network.send_all(self.ends[end], &packets);
            }
        }
    }

    /// Lets `span` pass in turns of `turn`: the hosts send, and receive what came. `beside` is called in each turn with what
    /// the hosts behind each node received, and may send as well.
    pub fn run(
        transfers: &mut [TcpTransfer],
        network: &mut SimNetwork,
        (span, turn): (Duration, Duration),
        mut beside: impl FnMut(&mut SimNetwork, NodeId, &[Delivered]),
    ) {
        let end = network.now() + span;
        let mut nodes: Vec<NodeId> = transfers.iter().flat_map(|transfer| transfer.ends).collect();
        nodes.sort_unstable();
        nodes.dedup();
        while network.now() < end {
            transfers.iter_mut().for_each(|transfer| transfer.send(network));
            let left = end.since(network.now());
            network.run_for(left.min(turn));
            for node in &nodes {
                let delivered = network.node_mut(*node).take_delivered();
                transfers.iter_mut().for_each(|transfer| transfer.take(*node, &delivered));
                beside(network, *node, &delivered);
            }
        }
    }
}

fn flow(shape: FlowShape) -> Flow {
    let FlowShape { src, dst, .. } = shape;
    let (src_port, dst_port) = (src.port(), dst.port());
    Flow { src: src.ip(), dst: dst.ip(), protocol: Protocol::TCP, src_port, dst_port }
}

/// The byte that a 32-bit number of a header means, near another.
fn unwrapped(number: u32, near: u64) -> u64 {
    let ahead = number.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(ahead.into())
}

/// A clock in milliseconds, as Linux has in timestamps.
fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

#[cfg(test)]
mod tests;
