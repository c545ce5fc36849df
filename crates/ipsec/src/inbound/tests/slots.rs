//! Blocks in several parts, on several associations at the same time.

use strait_crypto::{KeyMaterial, Suite};
use strait_wire::{Protocol, Spi, Tos};

use super::{Hand, block, packet};
use crate::inbound::Order;
use crate::sample::{PEER, Receiver, SPI, STRAIT, sa_spec};
use crate::{InboundSa, IvMode, OutboundSa, Reason, SaSpec};

/// A second association of the same peer.
fn other_spec() -> SaSpec {
    let key = KeyMaterial::new(Suite::Aes128Gcm, &[9; 20]).unwrap();
    SaSpec::session(PEER, Spi(0x0555_5555), key, IvMode::Implicit, STRAIT)
}

fn install(receiver: &mut Receiver, spec: &SaSpec) {
    receiver.half.handle(Order::Install(Box::new(InboundSa::new(spec))));
}

#[test]
fn one_association_cannot_evict_anothers_blocks() {
    let (mut hand, mut other, mut receiver) =
        (Hand::new(STRAIT), Hand(OutboundSa::new(&other_spec())), Receiver::new(STRAIT));
    install(&mut receiver, &other_spec());
    let packet = packet(300);
    let (first, second) = packet.split_at(100);
    receiver.take(&hand.seal(Protocol::AGGFRAG, &block(0, 7, 0, 2, first)), Tos(0));
    for id in 0..4_000 {
        receiver.take(&other.seal(Protocol::AGGFRAG, &block(0, id, 0, 2, &[0x45; 60])), Tos(0));
    }
    assert!(receiver.drops(Reason::BlockIncomplete) > 100, "the other one evicts its own");
    receiver.take(&hand.seal(Protocol::AGGFRAG, &block(0, 7, 1, 2, second)), Tos(0));
    assert_eq!(receiver.site.packets, [packet]);
}

#[test]
fn same_block_number_on_two_associations_is_two_blocks() {
    let (mut hand, mut other, mut receiver) =
        (Hand::new(STRAIT), Hand(OutboundSa::new(&other_spec())), Receiver::new(STRAIT));
    install(&mut receiver, &other_spec());
    let (one, two) = (packet(300), packet(400));
    for (at, [one, two]) in (0..).zip([[&one[..100], &two[..100]], [&one[100..], &two[100..]]]) {
        receiver.take(&hand.seal(Protocol::AGGFRAG, &block(0, 7, at, 2, one)), Tos(0));
        receiver.take(&other.seal(Protocol::AGGFRAG, &block(0, 7, at, 2, two)), Tos(0));
    }
    assert_eq!(
        (receiver.site.packets, receiver.counters.drops.get(Reason::MalformedBlock)),
        (vec![one, two], 0)
    );
}

#[test]
fn parts_of_withdrawn_association_are_discarded() {
    let (mut hand, mut receiver) = (Hand::new(STRAIT), Receiver::new(STRAIT));
    let packet = packet(300);
    receiver.take(&hand.seal(Protocol::AGGFRAG, &block(0, 7, 0, 2, &packet[..100])), Tos(0));
    receiver.half.handle(Order::Withdraw(SPI));
    install(&mut receiver, &sa_spec(STRAIT));
    receiver.take(&hand.seal(Protocol::AGGFRAG, &block(0, 7, 1, 2, &packet[100..])), Tos(0));
    assert_eq!((receiver.site.packets.len(), receiver.dropped()), (0, 0));
}
