//! Two nodes of the core in memory: one sends log lines over a link of 1.5 Mbit/s, the other receives them.
//!
//! The core does no I/O. The caller hands packets and the time to `Outbound`, carries the datagrams that come out
//! to the other node's `Inbound`, and gives the host what that delivers. A real node does this with a TUN device,
//! a socket and a clock; here the wire is a vector and the clock is a number. `Halves` sets both nodes up under a
//! fixed key, where a real node has a handshake: see `crates/sim/src/halves.rs`.

use std::{error::Error, fmt::Write, io::IoSlice};

use strait_clock::Time;
use strait_ipsec::{Domain, LeakPolicy, Notice, Place, Reason, Rule, inbound, outbound};
use strait_scheduler::Rate;
use strait_sim::{FlowShape, Halves, HalvesSettings, NodeId};
use strait_wire::{Tos, vnet};

/// What the two nodes give out: datagrams for the network, packets for the host.
#[derive(Default)]
struct World {
    datagrams: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
}

impl outbound::Outlet for World {
    fn transmit(&mut self, train: outbound::Train<'_>) -> Result<(), outbound::TransmitRefused> {
        self.datagrams.extend(train.datagrams().map(<[u8]>::to_vec));
        Ok(())
    }
    fn to_host(&mut self, _: &[u8]) {}
    fn notice(&mut self, _: Notice) {}
}

impl inbound::Inlet for World {
    fn deliver(&mut self, _: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.packets.push(pieces.iter().flat_map(|piece| piece.to_vec()).collect());
        Ok(())
    }
    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}
    fn order(&mut self, _: outbound::Order) {}
    fn notice(&mut self, _: Notice) {}
}

/// Sends 200 packets that arrive at once; returns what happened in words.
pub fn run() -> Result<String, Box<dyn Error>> {
    let (mut now, mut world, mut report) = (Time::ZERO, World::default(), String::new());
    let (from, to, allowed) = ("0.0.0.0/0".parse()?, "0.0.0.0/0".parse()?, "auto".parse()?);
    let rule = Rule {
        cache: None,
        history: Some(strait_ipsec::HistoryScope::Flow),
        from,
        to,
        protocol: None,
        ports: vec![514..=514],
        domain: Domain(1),
        allowed,
        policy: LeakPolicy::NONE,
    };
    let settings =
        HalvesSettings { up: Rate::from_bits(1_500_000), rules: vec![rule], ..HalvesSettings::default() };
    let Halves { mut outbound, mut inbound, .. } = Halves::new(settings, now);

    let flow = FlowShape::new(NodeId(0).inner_v4(40_000), NodeId(1).inner_v4(514));
    let line = |n| format!("<134>Oct 11 22:{:02}:{:02} gateway: session {n} opened", n / 60, n % 60);
    let mut packets: Vec<_> = (0..200).map(|n| flow.udp(line(n).as_bytes())).collect();
    writeln!(report, "{} packets of {} bytes", packets.len(), packets.concat().len())?;
    for packet in &mut packets {
        outbound.packet(packet, &vnet::Header::default(), now, &mut world);
    }
    loop {
        outbound.release(now, &mut world);
        for mut bytes in core::mem::take(&mut world.datagrams) {
            write!(report, "{:5} us: {:4} bytes on the wire, ", now.as_nanos() / 1000, bytes.len())?;
            write!(report, "SPI {:02x?}, number {:02x?}", &bytes[..4], &bytes[4..8])?;
            let (before, segment) = (world.packets.len(), bytes.len());
            let batch =
                inbound::Batch { from: NodeId(0).outer_v4().into(), tos: Tos(0), segment, bytes: &mut bytes };
            inbound.datagrams(batch, now, &mut world);
            writeln!(report, ": {} packets", world.packets.len() - before)?;
        }
        let Some(deadline) = outbound.poll_timeout() else { break };
        now = now.max(deadline.at);
    }
    writeln!(report, "all of them arrived as they were sent: {}", world.packets == packets)?;
    Ok(report)
}

fn main() -> Result<(), Box<dyn Error>> {
    print!("{}", run()?);
    Ok(())
}
