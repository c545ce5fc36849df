//! A telephone line between two hosts, with modems that compress.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use strait_sim::DialUpSettings;
use strait_testbed::{DialledLine, FrameDirection, Relay, Transfer, sandbox};

#[test]
fn files_arrive_through_modems_that_compress_them() {
    if !sandbox::allows_tests() {
        return;
    }
    let line = DialledLine::new(DialUpSettings { line: 144_000, port: 384_000, ..DialUpSettings::default() });
    let (hosts, relay) = Relay::dialled(&line, 296).unwrap();
    let content: Arc<[u8]> = b"a line of text, again and again\n".repeat(1000).into();
    let transfer = Transfer {
        from: &hosts.a,
        to: &hosts.b,
        address: hosts.address_of_b().0,
        name: "test",
        content: &content,
        patience: Duration::from_secs(20),
    };
    transfer.run(&mut |_| {}).unwrap();
    // Nothing moves on the line any more.
    drop(relay);
    let [there, back] = [FrameDirection::There, FrameDirection::Back].map(|way| line.tally(way));
    assert_eq!(there.damaged + back.damaged, 0);
    assert!(
        there.port_octets > content.len() as u64 && there.modem_octets < there.port_octets / 4,
        "{there:?}"
    );
    let seen = line.take_seen();
    let sent = seen.iter().filter(|packet| packet.direction == FrameDirection::There).count();
    assert_eq!(sent as u64, there.packets);
    assert!(seen.len() > sent && (seen.len() - sent) as u64 <= back.packets);
    assert!(seen.iter().all(|packet| packet.packet.len() <= 296));
    assert!(line.take_seen().is_empty());
}
