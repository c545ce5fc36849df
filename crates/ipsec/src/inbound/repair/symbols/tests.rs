use strait_wire::{Protocol, Tos};

use crate::fec::{LossPattern, SymbolSender};
use crate::sample::{NOW, Receiver, STRAIT, Shape, sa_spec};
use crate::wrap::Head;
use crate::{InboundSa, OutboundSa, Reason, RepairTerms, Tally};
use strait_wire::ip::Version;

/// A peer that sends symbols, and a receiver.
struct Pair {
    sa: OutboundSa,
    sender: SymbolSender,
    receiver: Receiver,
}

impl Pair {
    fn new() -> Pair {
        let spec = sa_spec(STRAIT);
        let sa = OutboundSa::new(&spec).repaired(RepairTerms::OnNotice);
        let receiver = Receiver::of(InboundSa::new(&spec).repaired(RepairTerms::OnNotice));
        let sender = SymbolSender::new(LossPattern { share: 0.1, burst: 1.0 });
        Pair { sa, sender, receiver }
    }

    fn seal(&mut self, next: Protocol, payload: &[u8]) -> Vec<u8> {
        let head = Head::Fresh(Tos(0));
        let front = self.sa.front_len(head);
        let mut bytes = vec![0; self.sa.sealed_len(front, payload.len())];
        let at = self.sa.payload_at(front);
        bytes[at..at + payload.len()].copy_from_slice(payload);
        self.sa.seal(head, &mut bytes, payload.len(), next).unwrap();
        bytes
    }

    /// The next packet, sealed, and the datagrams of symbols that follow.
    fn next(&mut self, count: usize) -> (Vec<u8>, Vec<u8>, Vec<Vec<u8>>) {
        let packet = packet(count);
        let datagram = self.seal(Protocol::IPIP, &packet);
        self.sender.note(self.sa.numbers.last().0, Protocol::IPIP, &packet, NOW);
        let mut symbols = Vec::new();
        while let Some(planned) = self.sender.next(self.sa.numbers.last().0 + 1, 1446, NOW) {
            let mut payload = vec![0; planned.payload()];
            self.sender.write(&planned, &mut payload);
            symbols.push(self.seal(Protocol::AGGFRAG, &payload));
        }
        (packet, datagram, symbols)
    }

    fn take(&mut self, datagram: &[u8]) {
        self.receiver.take(datagram, Tos(0));
        self.receiver.finish();
    }

    fn counted(&self) -> [u64; 4] {
        let repair = &self.receiver.peer.repair;
        [&repair.missing, &repair.recovered, &repair.without_payload, &repair.lost].map(Tally::get)
    }
}

/// Large enough that its flow is no small one.
fn packet(count: usize) -> Vec<u8> {
    let payload = count.to_be_bytes().repeat(100 + count % 7);
    Shape::new(Version::V4, Protocol::TCP, payload).packet()
}

#[test]
fn lost_packets_come_back_in_their_places() {
    let mut pair = Pair::new();
    let (mut expected, mut symbols) = (Vec::new(), 0);
    for count in 0..500 {
        let (packet, datagram, after) = pair.next(count);
        expected.push(packet);
        // Nothing is lost before payloads are kept of all that a symbol covers. One symbol is lost as well.
        if count < 200 || count % 13 != 5 {
            pair.take(&datagram);
        }
        for symbol in after {
            symbols += 1;
            if symbols != 120 {
                pair.take(&symbol);
            }
        }
    }
    assert_eq!(pair.receiver.site.packets, expected[..pair.receiver.site.packets.len()], "in order");
    assert!(pair.receiver.site.packets.len() > 490);
    let [missing, recovered, without_payload, lost] = pair.counted();
    assert!(recovered > 10 && without_payload == 1 && lost == 0, "{:?}", pair.counted());
    assert!(missing - recovered - without_payload <= 1, "the last may come yet");
    assert!(pair.receiver.site.orders.is_empty() || pair.receiver.peer.repair.requests.get() == 0);
    assert_eq!(pair.receiver.dropped(), 0);
}

#[test]
fn payload_that_came_back_is_not_taken_again() {
    let mut pair = Pair::new();
    let mut held = None;
    for count in 0..300 {
        let (_, datagram, after) = pair.next(count);
        if count == 260 {
            held = Some(datagram);
        } else {
            pair.take(&datagram);
        }
        after.iter().for_each(|symbol| pair.take(symbol));
    }
    let before = pair.receiver.site.packets.len();
    assert_eq!((before, pair.counted()[1]), (300, 1));
    pair.take(&held.unwrap());
    assert_eq!((pair.receiver.site.packets.len(), pair.receiver.drops(Reason::Replayed)), (before, 1));
}

#[test]
fn symbols_that_do_not_fit_are_counted_and_harmless() {
    let mut pair = Pair::new();
    let mut delivered = 0;
    for count in 0..200 {
        let (_, datagram, after) = pair.next(count);
        pair.take(&datagram);
        after.iter().for_each(|symbol| pair.take(symbol));
        delivered += 1;
    }
    let unfit = |pair: &Pair| pair.receiver.drops(Reason::UnfitSymbol);
    for bad in [
        &[0xf5][..],
        &[0xf5, 0, 0, 0],
        &[0xf5, 17, 1, 1],
        // Shorter than the payload that it covers.
        &[0xf5, 1, 0x80, 0, 0],
    ] {
        let (_, datagram, after) = pair.next(60);
        pair.take(&datagram);
        after.iter().for_each(|symbol| pair.take(symbol));
        delivered += 1;
        let before = unfit(&pair);
        let datagram = pair.seal(Protocol::AGGFRAG, bad);
        pair.take(&datagram);
        assert_eq!((unfit(&pair), pair.receiver.site.packets.len()), (before + 1, delivered), "{bad:?}");
    }
    // A number that was never sent comes back as what is no packet.
    let skipped = pair.seal(Protocol::IPIP, &[0; 30]);
    let mut symbol = vec![0xf5, 1, 0x80];
    symbol.extend([0; 2000]);
    symbol[4] = 7;
    let datagram = pair.seal(Protocol::AGGFRAG, &symbol);
    pair.take(&datagram);
    assert_eq!((pair.receiver.site.packets.len(), pair.receiver.dropped() - unfit(&pair)), (delivered, 1));
    pair.take(&skipped);
    assert_eq!(pair.receiver.drops(Reason::Replayed), 1);
    // Another peer's payloads are not asked for, and those of this one go on.
    let (_, datagram, _) = pair.next(61);
    pair.take(&datagram);
    assert_eq!(pair.receiver.site.packets.len(), delivered + 1);
}

#[test]
fn symbols_without_an_agreement_are_refused() {
    let mut pair = Pair::new();
    pair.receiver = Receiver::new(STRAIT);
    let datagram = pair.seal(Protocol::AGGFRAG, &[0xf5, 1, 0x80, 0, 0]);
    pair.take(&datagram);
    assert_eq!(pair.receiver.drops(Reason::UnknownPayload), 1);
}
