//! Hosts, links and transfers as the kernel makes them.
#![allow(clippy::unwrap_used)]

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use strait_scheduler::Rate;
use strait_testbed::{EchoService, Error, InterfaceState, LinkSpec, Namespace, Transfer, TwoHosts, sandbox};

const PATIENCE: Duration = Duration::from_secs(20);

fn transfer(hosts: &TwoHosts, address: IpAddr, content: &Arc<[u8]>) -> Result<Duration, Error> {
    let (from, to) = (&hosts.a, &hosts.b);
    Transfer { from, to, address, name: "test", content, patience: PATIENCE }.run(&mut |_| {})
}

fn content(size: usize) -> Arc<[u8]> {
    (0..size).map(|index| (index * 7 / 3) as u8).collect()
}

#[test]
fn a_thin_link_carries_what_its_rate_allows_and_counts_it() {
    if !sandbox::allows_tests() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(8_000_000).unwrap())).unwrap();
    let before = hosts.link.traffic().unwrap();
    let mut seen = Vec::new();
    let content = content(500_000);
    let (v4, v6) = hosts.address_of_b();
    let took = Transfer {
        from: &hosts.a,
        to: &hosts.b,
        address: v4,
        name: "test",
        content: &content,
        patience: PATIENCE,
    }
    .run(&mut |bytes| seen.push(bytes))
    .unwrap();
    let crossed = hosts.link.traffic().unwrap().since(before);

    // 500,000 bytes are 342 full frames of 1,448 bytes each, 66 bytes of headers on every one.
    let least = 500_000 + 345 * 66;
    assert!((least..least * 21 / 20).contains(&crossed.there.bytes), "{crossed:?}");
    assert!(crossed.there.packets >= 346, "super-packets crossed: {crossed:?}");
    assert!(crossed.back.packets > 10 && crossed.back.bytes < crossed.there.bytes / 10, "{crossed:?}");
    // 8 Mbit/s is a million bytes a second; the bucket's burst may save a few milliseconds.
    assert!(took >= Duration::from_millis(500), "{took:?}");
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]) && seen.last() == Some(&500_000), "{seen:?}");

    transfer(&hosts, v6, &content).unwrap();
}

#[test]
fn an_echo_service_sends_back_what_it_is_sent() {
    if !sandbox::allows_tests() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
    let content = content(3_000_000);
    for address in [hosts.address_of_b().0, hosts.address_of_b().1] {
        let service = EchoService::start(&hosts.b).unwrap();
        EchoService::call(&hosts.a, address, &content, PATIENCE).unwrap();
        EchoService::call(&hosts.a, address, &[], PATIENCE).unwrap();
        drop(service);
        assert!(EchoService::call(&hosts.a, address, &content, PATIENCE).is_err());
    }
}

/// Frames that have crossed the link from the first host, once nothing crosses any more.
fn settled(hosts: &TwoHosts) -> u64 {
    let crossed = || hosts.link.traffic().unwrap().there.packets;
    let mut last = crossed();
    loop {
        std::thread::sleep(Duration::from_millis(400));
        let now = crossed();
        if now == last {
            return now;
        }
        last = now;
    }
}

#[test]
fn what_does_not_fit_the_queue_is_dropped() {
    if !sandbox::allows_tests() {
        return;
    }
    let spec =
        LinkSpec { queue: Duration::from_millis(100), ..LinkSpec::thin(Rate::from_bits(1_500_000).unwrap()) };
    let hosts = TwoHosts::direct(spec).unwrap();
    let target = hosts.address_of_b().0;
    // A card that has just been joined takes a while until it sends; what comes before that is lost.
    let service = EchoService::start(&hosts.b).unwrap();
    EchoService::call(&hosts.a, target, &[], PATIENCE).unwrap();
    drop(service);
    let before = settled(&hosts);
    let refused = hosts
        .a
        .run("send a burst", || {
            let socket = UdpSocket::bind("0.0.0.0:0")?;
            Ok((0..200).filter(|_| socket.send_to(&[0; 1000], (target, 9)).is_err()).count())
        })
        .unwrap();
    let crossed = settled(&hosts) - before;
    // 100 ms of 1.5 Mbit/s are 18,750 bytes: the queue's 17 frames and the bucket's 2 or 3.
    assert!((10..40).contains(&crossed), "{crossed} crossed, {refused} refused");
}

#[test]
fn a_link_changes_its_rate() {
    if !sandbox::allows_tests() {
        return;
    }
    let mut hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(64_000).unwrap())).unwrap();
    hosts.link.set_rate(Rate::from_bits(50_000_000)).unwrap();
    transfer(&hosts, hosts.address_of_b().0, &content(300_000)).unwrap();
    hosts.link.set_rate(None).unwrap();
    hosts.link.set_rate(None).unwrap();
    transfer(&hosts, hosts.address_of_b().0, &content(3_000_000)).unwrap();
}

#[test]
fn a_router_stands_between() {
    if !sandbox::allows_tests() {
        return;
    }
    let hosts = TwoHosts::routed(LinkSpec::unshaped(), LinkSpec::unshaped()).unwrap();
    let (v4, v6) = hosts.address_of_b();
    transfer(&hosts, v4, &content(1_000_000)).unwrap();
    transfer(&hosts, v6, &content(1_000_000)).unwrap();
    let router = hosts.router.as_ref().unwrap();
    assert!(router.link.traffic().unwrap().there.bytes >= 2_000_000);
}

#[test]
fn a_dead_link_ends_a_transfer_with_where_it_stood() {
    if !sandbox::allows_tests() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
    hosts.link.b.set_state(InterfaceState::Down).unwrap();
    let content = content(10);
    let error = Transfer {
        from: &hosts.a,
        to: &hosts.b,
        address: hosts.address_of_b().0,
        name: "notes.txt",
        content: &content,
        patience: Duration::from_millis(300),
    }
    .run(&mut |_| {})
    .unwrap_err();
    assert!(
        error.to_string().contains("notes.txt") && error.to_string().contains("0 of 10 bytes"),
        "{error}"
    );
    hosts.link.b.set_state(InterfaceState::Up).unwrap();
    transfer(&hosts, hosts.address_of_b().0, &content).unwrap();
}

#[test]
fn hosts_are_apart_and_commands_run_inside() {
    if !sandbox::allows_tests() {
        return;
    }
    let host = Namespace::create("alone").unwrap();
    assert_eq!(host.interfaces().unwrap(), ["lo"]);
    let output = host.command("cat").arg("/proc/self/net/dev").output().unwrap();
    let inside = String::from_utf8(output.stdout).unwrap();
    assert_eq!(inside.lines().filter(|line| line.contains(':')).count(), 1, "{inside}");
    let handle = host.spawn(|| UdpSocket::bind("127.0.0.1:0")?.local_addr()).unwrap();
    assert!(handle.join().unwrap().unwrap().ip().is_loopback());
    let error = host.run("try", || Err::<(), _>(io::Error::from_raw_os_error(libc::EBUSY))).unwrap_err();
    assert_eq!(error.to_string(), "cannot try on alone: Device or resource busy (os error 16)");
}

#[test]
fn ends_take_addresses_and_an_mtu() {
    if !sandbox::allows_tests() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::unshaped()).unwrap();
    let more: IpAddr = "198.18.0.77".parse().unwrap();
    hosts.link.b.add_address(more, 24).unwrap();
    transfer(&hosts, more, &content(5_000)).unwrap();
    hosts.link.b.remove_address(more, 24).unwrap();
    assert!(hosts.b.run("bind", || UdpSocket::bind((more, 0))).is_err());
    hosts.link.ends().into_iter().for_each(|end| end.set_mtu(1280).unwrap());
    transfer(&hosts, hosts.address_of_b().1, &content(5_000)).unwrap();
}
