//! A daemon that is killed, a host that is cut off: traffic resumes without a person.

use strait_testbed::{Extra, State, TwoHosts};

use crate::pair::{Family, Pair, allowed, fast};

#[test]
fn either_daemon_may_be_killed_and_started_again() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::up(TwoHosts::direct(fast()).unwrap(), Extra::default());
    for which in [0, 1] {
        pair.kill(which);
        pair.start(which, Extra::default());
        // Whoever lived on sends with keys that the other has lost, until it learns better.
        pair.tcp(which, Family::V4, 100_000);
        pair.tcp(1 - which, Family::V6, 100_000);
    }
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
    pair.hosts.link.b.set_state(State::Down).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    pair.hosts.link.b.set_state(State::Up).unwrap();
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
