//! A wire that loses, repeats, delays and repeats what passed long ago.
#![allow(clippy::unwrap_used)]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use strait_scheduler::Rate;
use strait_testbed::{FrameDirection, FrameFate, LinkSpec, Relay, Transfer, TwoHosts, sandbox};

fn thin() -> LinkSpec {
    LinkSpec::thin(Rate::from_bits(20_000_000).unwrap())
}

fn transfer(hosts: &TwoHosts, size: usize) {
    let content: Arc<[u8]> = (0..size).map(|index| (index / 3) as u8).collect();
    for address in [hosts.address_of_b().0, hosts.address_of_b().1] {
        let transfer = Transfer {
            from: &hosts.a,
            to: &hosts.b,
            address,
            name: "test",
            content: &content,
            patience: Duration::from_secs(20),
        };
        transfer.run(&mut |_| {}).unwrap();
    }
}

#[test]
fn tcp_survives_a_bad_wire() {
    if !sandbox::allows_tests() {
        return;
    }
    let mut count = 0_u32;
    let (hosts, _relay) = Relay::between(thin(), move |_, _| {
        count += 1;
        match count % 50 {
            10 => FrameFate::Lose,
            20 => FrameFate::Repeat,
            30 => FrameFate::Delay(Duration::from_millis(3)),
            _ => FrameFate::Pass,
        }
    })
    .unwrap();
    transfer(&hosts, 300_000);
}

#[test]
fn what_passed_can_be_sent_again() {
    if !sandbox::allows_tests() {
        return;
    }
    const MARK: &[u8] = b"a datagram that comes back";
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&kept);
    let (hosts, relay) = Relay::between(thin(), move |direction, frame| {
        if direction == FrameDirection::There && frame.ends_with(MARK) {
            keep.lock().unwrap().push(frame.to_vec());
        }
        FrameFate::Pass
    })
    .unwrap();
    let target = hosts.address_of_b().0;
    let receiver = hosts.b.run("bind", || UdpSocket::bind((target, 0))).unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let port = receiver.local_addr().unwrap().port();
    hosts.a.run("send", || UdpSocket::bind("0.0.0.0:0")?.send_to(MARK, (target, port))).unwrap();
    let mut buffer = [0_u8; 100];
    assert_eq!(receiver.recv(&mut buffer).unwrap(), MARK.len());
    let frame = kept.lock().unwrap()[0].clone();
    relay.inject(FrameDirection::There, &frame);
    relay.inject(FrameDirection::There, &frame);
    for _ in 0..2 {
        let length = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], MARK);
    }
    assert_eq!(kept.lock().unwrap().len(), 1, "what is injected is not judged");
}

#[test]
fn a_link_that_is_pulled_and_plugged_in_works_again() {
    if !sandbox::allows_tests() {
        return;
    }
    let (hosts, relay) = Relay::between(thin(), |_, _| FrameFate::Pass).unwrap();
    transfer(&hosts, 1000);
    relay.set_far_state(strait_testbed::InterfaceState::Down).unwrap();
    relay.set_far_state(strait_testbed::InterfaceState::Up).unwrap();
    transfer(&hosts, 1000);
}
