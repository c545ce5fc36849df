//! What is to be known of the table of latency.

use super::Latency;
use super::pings::PING;
use crate::enskip::printed::{DX2, TRIPLE_DES};
use crate::enskip::printed::{
    LATENCY, LATENCY_DISK, LATENCY_NONE, LATENCY_PRIMARY, LATENCY_SECONDARY, TABLE,
};

/// Bytes of a packet of ENskip around a ping: the outer IP header, SKIP's of 60, and AH and ESP of 24 and 18 with MD5 and 3DES.
const PING_IN_ENSKIP: usize = 20 + 60 + 24 + 18 + PING;

impl Latency {
    /// What is measured, and where the paper differs from itself.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            format!(
                "latency: a ping of {PING} bytes goes to the other end and back, in ESP by sessionless keys (Sender and Receiver of strait-keying) \
                 through UDP sockets on the loopback interface, with both ends on one thread, as on the paper's one processor, and without a \
                 daemon: the clock runs from before the first is sealed until the answer is open. The time that keys go by is set \
                 forward between pings by an hour or a minute, so that caches are in the state that a row names; a table above has \
                 what was asked of them. Each run's figure is the middle one of several pairs of nodes"
            ),
            "latency, rows: primary is packet keys that are bound; its header in front, as on all of ENskip's packets; a new packet key, \
             wrapped under Kijn, which comes once a minute; secondary is Kij at hand, and Kijn of a new epoch; certificate on disk is a \
             restarted node with a signed card in a file; no cache is a card that a directory sends in answer to one question over TCP on the \
             loopback interface, at each end, and that is kept on disk. A far directory takes its round trips more: TCP's and its own"
                .to_owned(),
            "latency, marks: before a new packet key is used a number is written to disk, at both ends, so that no restart lets a packet in \
             twice. SKIP has none of that, so beside the paper's figures it is written and not waited for; where the time goes, it is: \
             that is what this disk takes to make some bytes durable, four times a round trip, and the first packet after a pause does wait for it"
                .to_owned(),
            shares(),
            "the paper's caches and its table of latency: a row for no cache has a word and no figure, and one machine was measured, with one \
             combination of algorithms. Its disk's part is most likely the computing of Kij, a modular power, which takes longer than a disk \
             of 1997: it prints no algorithm for that"
                .to_owned(),
        ];
        match &self.daemons {
            Err(why) => notes.push(format!("pings through tunnels are left out: {why}")),
            Ok(pings) => {
                notes.push(
                    "pings through tunnels: the same lengths in UDP between two hosts (a pair of veth devices), through two daemons each way, \
                     by the clock on the wall; what a daemon adds is system calls and threads that wake. The first ping is sent when both \
                     are ready, and again each half second until it is answered. Daemons shake hands as they start, so a session is mostly \
                     there by then; without one, packet keys are begun by this ping, at both ends, once four marks are on disk"
                        .to_owned(),
                );
                if pings.sessionless.is_none() {
                    notes.push(
                        "this strait knows only sessions, so pings through a tunnel without one are left out"
                            .to_owned(),
                    );
                }
            }
        }
        notes
    }
}

/// What the paper's own table of rates says of its ping.
fn shares() -> String {
    let time = |place: usize| LATENCY[place].1;
    let rate = TABLE[DX2][TRIPLE_DES][0].unwrap_or(f64::NAN);
    // Both ways, and both ends at once, as over the loopback interface.
    let bytes = 2.0 * PING_IN_ENSKIP as f64 / 1024.0 / rate * 1e3;
    format!(
        "latency, the paper against its table of rates: ENskip adds {:.1} ms to a ping with the primary cache. At 3DES's {rate:.0} kbytes/s two packets \
         of some {PING_IN_ENSKIP} bytes take {bytes:.1} ms, so {:.1} ms go with packets, however short: headers, key schedules, calls. \
         The secondary cache adds {:.1} ms to that, the disk {:.0} ms more",
        time(LATENCY_PRIMARY) - time(LATENCY_NONE),
        time(LATENCY_PRIMARY) - time(LATENCY_NONE) - bytes,
        time(LATENCY_SECONDARY) - time(LATENCY_PRIMARY),
        time(LATENCY_DISK) - time(LATENCY_SECONDARY),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_ping_by_hand() {
        // 412 bytes at 102,400 bytes/s are 4.02 ms of 5.9.
        let said = shares();
        assert_eq!(PING_IN_ENSKIP, 206);
        assert!(said.contains("adds 5.9 ms") && said.contains("take 4.0 ms, so 1.9 ms"), "{said}");
        assert!(said.contains("adds 17.8 ms to that, the disk 196 ms more"), "{said}");
    }
}
