//! Traffic classes and congestion marks, carried into the outer header and back (RFC 6040, RFC 2983).

use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use strait_testbed::{Extra, FrameDirection, FrameFate, Relay};

use crate::frame::{is_esp, tos, with_tos};
use crate::pair::{Pair, allowed, eventually, fast, has};

/// Expedited forwarding (RFC 3246), as the six upper bits.
const EF: u8 = 46 << 2;
const NOT_ECT: u8 = 0;
const ECT0: u8 = 2;
const CE: u8 = 3;

/// What a congested wire does: every ESP datagram on the way there goes on with `mark`; the marks of what comes back
/// are kept.
struct Wire {
    pair: Pair,
    relay: Relay,
    held: Arc<Mutex<Vec<Vec<u8>>>>,
    back: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    fn up(extra: Extra<'_>) -> Wire {
        let (held, back) = (Arc::<Mutex<Vec<Vec<u8>>>>::default(), Arc::<Mutex<Vec<u8>>>::default());
        let (hold, keep) = (Arc::clone(&held), Arc::clone(&back));
        let (hosts, relay) = Relay::between(fast(), move |direction, frame| match direction {
            FrameDirection::There if is_esp(frame) => {
                hold.lock().unwrap().push(frame.to_vec());
                FrameFate::Lose
            }
            FrameDirection::Back if is_esp(frame) => {
                keep.lock().unwrap().push(tos(frame));
                FrameFate::Pass
            }
            _ => FrameFate::Pass,
        })
        .unwrap();
        Wire { pair: Pair::idle(hosts).and_up(extra), relay, held, back }
    }

    /// One ping with `inner` as the type of service, which waits so many seconds for an answer.
    fn start_ping(&self, inner: u8, seconds: &str) -> Child {
        let mut command = self.pair.hosts.a.command("ping");
        command.args(["-n", "-c", "1", "-W", seconds, "-Q", &inner.to_string(), "10.77.0.2"]);
        command.stdout(Stdio::null()).spawn().unwrap()
    }

    /// Pings with `inner` as the type of service while the wire sets `mark`, which may be none. The marks of the outer
    /// headers there and of those back, from the first datagram of `inner`'s class on.
    fn ping(&self, inner: u8, mark: Option<u8>) -> (u8, u8) {
        let class = inner & !CE;
        self.back.lock().unwrap().clear();
        let mut ping = self.start_ping(inner, "5");
        let mut there = None;
        eventually("the answer comes back", || {
            for frame in self.held.lock().unwrap().drain(..) {
                let outer = tos(&frame);
                if outer & !CE == class {
                    there = Some(outer);
                }
                self.relay.inject(
                    FrameDirection::There,
                    &with_tos(&frame, mark.map_or(outer, |mark| outer & !CE | mark)),
                );
            }
            ping.try_wait().unwrap().is_some()
        });
        let back = self.back.lock().unwrap().iter().copied().find(|outer| outer & !CE == class);
        assert!(ping.wait().unwrap().success());
        (
            there.unwrap(),
            back.unwrap_or_else(|| panic!("nothing of the class came back\n{}", self.pair.logs())),
        )
    }
}

#[test]
fn classes_and_marks_are_carried_into_the_outer_header_and_back() {
    if !allowed() || !has("ping") {
        return;
    }
    let wire = Wire::up(Extra::default());
    // A host answers a ping with the type of service that arrived, so what comes back shows what was delivered.
    assert_eq!(wire.ping(EF | ECT0, None), (EF | ECT0, EF | ECT0));
    assert_eq!(wire.ping(EF | NOT_ECT, None), (EF | NOT_ECT, EF | NOT_ECT));
    assert_eq!(wire.ping(EF | ECT0, Some(CE)), (EF | ECT0, EF | CE), "a mark on the way is delivered");
    // A mark on what cannot carry one means loss.
    let before = wire.pair.drops(1, "congestion-mark");
    let mut ping = wire.start_ping(EF | NOT_ECT, "1");
    eventually("a mark that cannot be delivered is counted", || {
        for frame in wire.held.lock().unwrap().drain(..) {
            wire.relay.inject(FrameDirection::There, &with_tos(&frame, tos(&frame) | CE));
        }
        wire.pair.drops(1, "congestion-mark") > before
    });
    assert!(!ping.wait().unwrap().success());
}

#[test]
fn a_path_that_clears_marks_is_noticed_and_has_none() {
    if !allowed() || !has("ping") {
        return;
    }
    // An end that estimates its rate has many reports.
    let wire = Wire::up(Extra { sections: "[link]\nup = \"auto\"\ndown = \"auto\"\n", ..Extra::default() });
    assert_eq!(wire.ping(EF | ECT0, Some(NOT_ECT)), (EF | ECT0, EF | ECT0), "the inner mark stays");
    eventually("cleared marks are noticed", || {
        wire.ping(EF | ECT0, Some(NOT_ECT));
        wire.pair.peer(0)["path"]["ecn_cleared"] == true
    });
    assert_eq!(wire.ping(EF | ECT0, None), (EF | NOT_ECT, EF | ECT0));
    assert!(wire.pair.peer(1)["path"]["ecn_cleared"] == false, "marks of what comes back stay");
}
