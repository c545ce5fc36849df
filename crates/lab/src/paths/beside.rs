//! Other traffic on the same link, beside the tunnel.

use std::time::Duration;

use strait_clock::Time;
use strait_sim::{EventQueue, FlowShape, LinkCounters, NodeId, SimLink, TcpReceiver, TcpSender, TcpSettings};
use strait_wire::{Tos, ip};

use super::script::{Beside, PathScript};

/// Bytes of a full packet.
const PACKET: u64 = 1500;
/// Bytes of payload of a TCP segment in one, with timestamps.
const STEP: usize = 1448;

/// What the other hosts send.
pub(super) struct BesideTraffic<'a> {
    script: &'a PathScript,
    /// Packets that are sent steadily and would have been sent by now.
    due: f64,
    /// A connection of each span with TCP.
    connections: Vec<(TcpSender, TcpReceiver)>,
    /// Packets on their way: which connection's, whether they go back, and what they are.
    events: EventQueue<(usize, bool, Vec<u8>)>,
    tally: LinkCounters,
}

impl BesideTraffic<'_> {
    pub(super) fn new(script: &PathScript) -> BesideTraffic<'_> {
        let connection = |port: u16| {
            let [from, to] = [NodeId(2), NodeId(3)].map(|host| host.inner_v4(port));
            let settings = TcpSettings { step: STEP, ..TcpSettings::default() };
            (TcpSender::new(FlowShape::new(from, to), settings), TcpReceiver::new(FlowShape::new(to, from)))
        };
        let count = u16::try_from(script.beside.len()).unwrap_or(0);
        BesideTraffic {
            script,
            due: 0.0,
            connections: (0..count).map(connection).collect(),
            events: EventQueue::default(),
            tally: LinkCounters::default(),
        }
    }

    /// What it had of the link.
    pub(super) const fn tally(&self) -> LinkCounters {
        self.tally
    }

    /// Sends what is due.
    pub(super) fn turn(&mut self, link: &mut SimLink, second: f64, now: Time) {
        while let Some((at, (number, back, packet))) = self.events.pop_if(|at, _| at <= now) {
            let Ok(packet) = ip::Packet::parse(&packet) else { continue };
            let (sender, receiver) = &mut self.connections[number];
            if back { sender.take(packet.payload(), at) } else { receiver.take(packet.payload(), at) }
        }
        let before = link.counters();
        let mut steady = 0.0;
        for (number, (from, to, beside)) in self.script.beside.iter().enumerate() {
            match beside {
                _ if !(*from..*to).contains(&second) => {}
                Beside::Steady(rate) => steady += rate,
                Beside::Tcp => self.exchange(number, link, now),
            }
        }
        self.due += steady * 1e6 / 8.0 / PACKET as f64 * 1e-3;
        while self.due >= 1.0 {
            self.due -= 1.0;
            link.carry(PACKET, Tos(0), now);
        }
        self.note(before, link.counters());
    }

    /// A connection's hosts send; the way back has no bottleneck.
    fn exchange(&mut self, number: usize, link: &mut SimLink, now: Time) {
        let delay = Duration::from_secs_f64(self.script.round_trip / 2.0);
        let (sender, receiver) = &mut self.connections[number];
        for packet in sender.poll(now) {
            for (at, _) in link.carry(packet.len() as u64, Tos(0), now).into_iter().flatten() {
                self.events.push(at, (number, false, packet.clone()));
            }
        }
        for packet in receiver.poll(now) {
            self.events.push(now + delay, (number, true, packet));
        }
    }

    fn note(&mut self, before: LinkCounters, after: LinkCounters) {
        let tally = &mut self.tally;
        for (mine, before, after) in [
            (&mut tally.entered, before.entered, after.entered),
            (&mut tally.carried, before.carried, after.carried),
            (&mut tally.bytes, before.bytes, after.bytes),
            (&mut tally.lost, before.lost, after.lost),
            (&mut tally.overflowed, before.overflowed, after.overflowed),
        ] {
            *mine += after - before;
        }
    }
}
