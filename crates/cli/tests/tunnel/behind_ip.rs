//! ESP of a session directly behind IP: what it saves, who agrees to it, and what happens where the network drops it.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use strait_testbed::{Extra, Namespace, TwoHosts};

use crate::capture::Capture;
use crate::frame::is_esp;
use crate::pair::{Family, Pair, allowed, eventually, fast};

const DIRECT: Extra<'_> = Extra {
    peer: "carrier = \"ip\"\n",
    node: "",
    link: "",
    sections: "",
    networks: strait_testbed::Networks::Hidden,
};
/// A length of messages that nothing else has.
const LEN: usize = 333;

/// Two sockets inside the tunnel, which wait for a tenth of a second.
struct Talk {
    ends: [UdpSocket; 2],
    round: u32,
}

impl Talk {
    fn new(pair: &Pair) -> Talk {
        let ends = [0, 1].map(|which| pair.socket(which, Family::V4));
        for end in &ends {
            end.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        }
        Talk { ends, round: 0 }
    }

    /// A message there and one back; whether both came.
    fn exchange(&mut self) -> bool {
        self.round += 1;
        let mut message = [0; LEN];
        message[..4].copy_from_slice(&self.round.to_be_bytes());
        let [a, b] = &self.ends;
        [(a, b), (b, a)].into_iter().all(|(from, to)| {
            from.send_to(&message, to.local_addr().unwrap()).unwrap();
            let mut buffer = [0; 2 * LEN];
            std::iter::from_fn(|| to.recv(&mut buffer).ok().map(|len| buffer[..len] == message)).any(|it| it)
        })
    }

    /// Asserts that nothing of so many exchanges is lost, however long a busy machine takes for them.
    fn assert_all_pass(&mut self, times: usize, pair: &Pair) {
        let wait = |ends: &[UdpSocket], time| {
            ends.iter().for_each(|end| end.set_read_timeout(Some(Duration::from_millis(time))).unwrap());
        };
        wait(&self.ends, 30_000);
        assert!((0..times).all(|_| self.exchange()), "{}", pair.logs());
        wait(&self.ends, 100);
    }

    /// How many exchanges fail before so many in a row succeed.
    fn failures(&mut self, successes: usize) -> usize {
        let (mut failed, mut row) = (0, 0);
        while row < successes {
            row = if self.exchange() { row + 1 } else { 0 };
            failed += usize::from(row == 0);
            assert!(failed < 600, "nothing passes any more");
        }
        failed
    }
}

fn carrier(pair: &Pair, which: usize) -> (String, String) {
    let carrier = &pair.peer(which)["carrier"];
    let word = |key: &str| carrier[key].as_str().unwrap_or_default().to_owned();
    (word("sending"), word("reason"))
}

/// Exchanges messages until both ends send so, and with a reason that has these words.
fn until(pair: &Pair, talk: &mut Talk, sending: &str, reason: &str) {
    eventually(&format!("both send in {sending}: {reason}\n{}", pair.logs()), || {
        talk.exchange();
        [0, 1].iter().all(|which| {
            let found = carrier(pair, *which);
            found.0 == sending && found.1.contains(reason)
        })
    });
}

/// How many packets of each length were ESP: in UDP, or directly behind IPv4.
fn lengths(file: &Path, direct: bool) -> BTreeMap<usize, usize> {
    let bytes = std::fs::read(file).unwrap();
    let mut rest = &bytes[24..];
    let mut found = BTreeMap::new();
    while let Some((head, more)) = rest.split_at_checked(16) {
        let len = usize::try_from(u32::from_ne_bytes(head[8..12].try_into().unwrap())).unwrap();
        let Some((frame, next)) = more.split_at_checked(len) else { break };
        rest = next;
        let wanted = if direct { frame[12..14] == [8, 0] && frame[23] == 50 } else { is_esp(frame) };
        if wanted {
            *found.entry(usize::from(u16::from_be_bytes([frame[16], frame[17]]))).or_default() += 1;
        }
    }
    found
}

/// Has a host drop protocol 50, or no longer.
fn drop_esp(host: &Namespace, action: &str) {
    let rule = ["rule", action, "priority", "1", "ipproto", "50", "blackhole"];
    assert!(host.command("ip").args(rule).status().unwrap().success());
}

#[test]
fn datagrams_directly_behind_ip_are_eight_bytes_shorter() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let capture = Capture::with_esp(&pair.hosts, &pair.dir.path().join("link.pcap"));
    let pair = pair.and_up(DIRECT);
    let mut talk = Talk::new(&pair);
    until(&pair, &mut talk, "ip", "");
    talk.assert_all_pass(20, &pair);
    // Later messages of a flow are coded against earlier ones.
    (0..20).for_each(|_| Talk::new(&pair).assert_all_pass(1, &pair));
    for which in [0, 1] {
        pair.tcp(which, Family::V4, 300_000);
        pair.tcp(which, Family::V6, 300_000);
        let carrier = &pair.peer(which)["carrier"];
        // The 40 messages that were answered one by one, and some for the transfers: how many these take is as the codec has it.
        assert!(carrier["sent_datagrams"].as_u64() > Some(44), "{carrier}");
        assert!(carrier["received_datagrams"].as_u64() > Some(44), "{carrier}");
    }
    assert_eq!(carrier(&pair, 0), ("ip".to_owned(), String::new()));
    let file = capture.stop();
    let (udp, direct) = (lengths(&file, false), lengths(&file, true));
    // The first message of a flow is whole: IP, ESP, the message behind IP and UDP, padding to 4 bytes, ICV.
    let whole = |outer: usize| outer + 8 + (LEN + 28 + 2).next_multiple_of(4) + 16;
    let count = |found: &BTreeMap<usize, usize>, outer| found.get(&whole(outer)).copied().unwrap_or(0);
    assert!(count(&udp, 28) > 0 && count(&direct, 20) >= 20, "{udp:?} {direct:?}");
}

#[test]
fn tunnel_stays_on_udp_where_the_network_drops_protocol_50() {
    if !allowed() {
        return;
    }
    let pair = Pair::idle(TwoHosts::routed(fast(), fast()).unwrap());
    drop_esp(&pair.hosts.router.as_ref().unwrap().host, "add");
    let pair = pair.and_up(DIRECT);
    let mut talk = Talk::new(&pair);
    talk.assert_all_pass(20, &pair);
    until(&pair, &mut talk, "udp", "a NAT or firewall drops protocol 50");
    talk.assert_all_pass(20, &pair);
}

#[test]
fn tunnel_falls_back_to_udp_where_the_drop_begins_later() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::routed(fast(), fast()).unwrap(), DIRECT);
    let mut talk = Talk::new(&pair);
    until(&pair, &mut talk, "ip", "");
    let router = &pair.hosts.router.as_ref().unwrap().host;
    drop_esp(router, "add");
    // A tenth of a second each: one and a half seconds on a machine without other work.
    let failed = talk.failures(20);
    assert!((1..60).contains(&failed), "{failed} failed\n{}", pair.logs());
    until(&pair, &mut talk, "udp", "drops protocol 50");
    pair.tcp(1, Family::V4, 100_000);
    pair.tcp(0, Family::V6, 100_000);
}

#[test]
fn transfer_survives_the_beginning_of_a_drop() {
    if !allowed() {
        return;
    }
    let pair = Pair::up(TwoHosts::routed(fast(), fast()).unwrap(), DIRECT);
    let mut talk = Talk::new(&pair);
    until(&pair, &mut talk, "ip", "");
    let router = &pair.hosts.router.as_ref().unwrap().host;
    std::thread::scope(|scope| {
        let transfer = scope.spawn(|| pair.tcp(1, Family::V4, 20_000_000));
        let sent = || pair.peer(0)["carrier"]["sent_datagrams"].as_u64().unwrap();
        let before = sent();
        eventually("the transfer is under way", || sent() > before + 500);
        drop_esp(router, "add");
        transfer.join().unwrap();
    });
    assert_eq!(carrier(&pair, 0).0, "udp");
}

#[test]
fn nothing_goes_directly_to_a_peer_that_does_not_ask_for_it() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    let capture = Capture::with_esp(&pair.hosts, &pair.dir.path().join("link.pcap"));
    pair.start(0, DIRECT);
    pair.start(1, Extra::default());
    pair.wait_for_session();
    let mut talk = Talk::new(&pair);
    talk.assert_all_pass(20, &pair);
    let (sending, reason) = carrier(&pair, 0);
    assert!(sending == "udp" && reason.contains("not agreed"), "{reason}");
    assert_eq!(carrier(&pair, 1), ("udp".to_owned(), String::new()));
    let file = capture.stop();
    assert!(!lengths(&file, false).is_empty() && lengths(&file, true).is_empty());
}
