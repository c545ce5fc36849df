//! Packets that leave alone, coded against earlier ones, with receipts that come back.

use strait_ipsec::{HistoryOrder, HistoryTerms};
use strait_wire::history::{Receipt, Receipts};

use super::*;

/// Receipts of the receiver, in memory that was there before.
struct Receiving {
    kept: Vec<Receipt>,
    delivered: u64,
}

impl Inlet for Receiving {
    fn deliver(&mut self, _: &vnet::Header, pieces: &[IoSlice<'_>]) -> Result<(), Reason> {
        self.delivered += pieces.len() as u64;
        Ok(())
    }

    fn control(&mut self, _: Place, _: Tos, _: &[u8]) {}

    fn order(&mut self, order: outbound::Order) {
        if let outbound::Order::History(_, HistoryOrder::KeptUnit(receipt)) = order {
            self.kept.push(receipt);
        }
    }

    fn notice(&mut self, _: Notice) {}
}

/// A reading, and how much of it changes.
fn reading(talk: &FlowShape, number: u64) -> Vec<u8> {
    talk.udp(format!("unit=7 temperature={} count={number:06} status=good", number % 90).as_bytes())
}

#[test]
fn lone_packets_and_their_receipts() {
    const ROUNDS: u64 = 400;
    let history = HistoryTerms { contexts: 4, epoch: 1, ..HistoryTerms::NONE };
    let settings = HalvesSettings { history, rules: compressing("zstd-3"), ..HalvesSettings::default() };
    let mut now = Time::from_millis(1000);
    let mut halves = Halves::new(settings, now);
    let mut wire = Wire { bytes: Vec::with_capacity(4_096), trains: Vec::with_capacity(8), delivered: 0 };
    let mut receiving = Receiving { kept: Vec::with_capacity(16), delivered: 0 };
    let (mut short, talk) = (0, shape(80));
    let mut packets: Vec<Vec<u8>> = (0..ROUNDS).map(|number| reading(&talk, number)).collect();
    let mut before = 0;
    let half = packets.len() / 2;
    for (round, packet) in packets.iter_mut().enumerate() {
        if round == half {
            before = COUNT.with(Cell::get);
        }
        halves.outbound.packet(packet, &vnet::Header::default(), now, &mut wire);
        halves.outbound.release(now, &mut wire);
        let (len, segment) = wire.trains.pop().unwrap();
        short += u64::from(len < packet.len());
        let batch =
            Batch { from: NodeId(0).outer_v4().into(), tos: Tos(0), segment, bytes: &mut wire.bytes[..len] };
        halves.inbound.datagrams(batch, now, &mut receiving);
        wire.bytes.clear();
        for receipt in receiving.kept.drain(..) {
            let mut receipts = Receipts::NONE;
            receipts.push(receipt);
            let order = outbound::Order::History(NodeId(1).peer(), HistoryOrder::Receipts(receipts));
            halves.outbound.handle(order, now, &mut wire);
        }
        now += Duration::from_millis(50);
    }
    assert_eq!(COUNT.with(Cell::get) - before, 0, "allocations for the second half of {ROUNDS} packets");
    assert_eq!(receiving.delivered, ROUNDS);
    assert!(short * 10 > ROUNDS * 9, "{short} of {ROUNDS} packets were shorter in ESP than outside");
}
