//! A daemon that is killed, a host that is cut off: traffic resumes without a person.

use std::sync::Arc;
use std::time::Duration;

use strait_scheduler::Rate;
use strait_testbed::{Extra, InterfaceState, LinkSpec, Transfer, TwoHosts};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast};

#[test]
fn either_daemon_may_be_killed_and_started_again() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    for which in [0, 1] {
        pair.kill(which);
        pair.start(which, Extra::default());
        // The surviving node sends with keys that the restarted one has lost, until a new handshake.
        pair.tcp(which, Family::V4, 100_000);
        pair.tcp(1 - which, Family::V6, 100_000);
    }
}

#[test]
fn a_transfer_outlives_the_daemons_under_it() {
    if !allowed() {
        return;
    }
    let hosts = TwoHosts::direct(LinkSpec::thin(Rate::from_bits(8_000_000).unwrap())).unwrap();
    let mut pair = Pair::up(hosts.clone(), Extra::default());
    let address = pair.inside(1, Family::V4);
    let content: Arc<[u8]> = (0..3_000_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let (from, to) = (&hosts.a, &hosts.b);
    let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
    // After so many bytes each daemon is killed and started again, with the connection open.
    let mut victims = vec![(2_000_000, 1), (1_000_000, 0)];
    let outcome = transfer.run(&mut |arrived| {
        if let Some((_, which)) = victims.pop_if(|(at, _)| arrived >= *at) {
            pair.kill(which);
            pair.start(which, Extra::default());
        }
    });
    outcome.unwrap_or_else(|error| panic!("{error}\n{}", pair.logs()));
    assert!(victims.is_empty());
}

#[test]
fn both_at_once_and_together_again() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.kill(0);
    pair.kill(1);
    pair.start(0, Extra::default());
    pair.start(1, Extra::default());
    pair.wait_for_session();
    pair.tcp(1, Family::V4, 100_000);
}

#[test]
fn a_link_goes_down_and_up() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.tcp(1, Family::V4, 100_000);
    let before = session(&pair);
    pair.hosts.link.b.set_state(InterfaceState::Down).unwrap();
    // At the one end the system says that there is no way, at the other nothing says so.
    for which in [0, 1] {
        let target = (pair.inside(1 - which, Family::V4), 9);
        pair.socket(which, Family::V4).send_to(b"into the void", target).unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    pair.hosts.link.b.set_state(InterfaceState::Up).unwrap();
    // The kernel forgets IPv6 addresses of an interface that goes down; the tunnel's outside is IPv4 here.
    pair.tcp(1, Family::V4, 100_000);
    pair.tcp(0, Family::V6, 100_000);
    assert_eq!(session(&pair), before, "the session goes on");
}

#[test]
fn a_stopped_daemon_goes_on_where_it_was() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    let before = session(&pair);
    let (sender, receiver) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
    let target = receiver.local_addr().unwrap();
    let received = || pair.peer(1)["received"]["packets"].as_u64().unwrap();
    let until_then = received();
    pair.daemon(1).signal(19).unwrap();
    for _ in 0..150 {
        sender.send_to(&[7; 1000], target).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    pair.daemon(1).signal(18).unwrap();
    // The socket's buffer keeps them meanwhile. The system's default has room for some 90.
    eventually("what came while it was stopped is received", || received() >= until_then + 150);
    pair.tcp(1, Family::V4, 100_000);
    assert_eq!(session(&pair), before, "the session goes on");
}

/// What tells the session of the first site from all others.
fn session(pair: &Pair) -> String {
    pair.peer(0)["association"]["inbound_spi"].to_string()
}
