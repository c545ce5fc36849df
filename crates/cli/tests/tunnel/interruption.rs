//! A daemon that is killed, a host that is cut off: traffic resumes without a person.

use std::sync::Arc;

use strait_scheduler::Rate;
use strait_testbed::{Extra, InterfaceState, LinkSpec, Transfer, TwoHosts};

use crate::pair::{Family, PATIENCE, Pair, allowed, fast};

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
    pair.hosts.link.b.set_state(InterfaceState::Down).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    pair.hosts.link.b.set_state(InterfaceState::Up).unwrap();
    // The kernel forgets IPv6 addresses of an interface that goes down; the tunnel's outside is IPv4 here.
    pair.tcp(1, Family::V4, 100_000);
    pair.tcp(0, Family::V6, 100_000);
}

#[test]
fn a_stopped_daemon_goes_on_where_it_was() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    pair.daemon(1).signal(19).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(800));
    pair.daemon(1).signal(18).unwrap();
    pair.tcp(1, Family::V4, 100_000);
}
