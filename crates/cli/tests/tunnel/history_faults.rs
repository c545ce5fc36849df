//! History while the link loses, repeats and reorders datagrams, while it is down, while keys are replaced, and when a daemon is killed:
//! everything that comes out was sent, nothing is refused that should be good, and history is in use again afterwards.

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use strait_clock::Random;
use strait_testbed::{Extra, FrameFate, LinkSpec, Relay, Transfer, TwoHosts, paced, sample};

use crate::block_history::carry;
use crate::pair::{Family, PATIENCE, Pair, allowed, eventually};

const RULE: &str =
    "[[compress]]\nfrom = \"10.77.0.0/24\"\nto = \"10.77.0.0/24\"\ndomain = \"test\"\ncodec = \"zstd-3\"\n";
/// Keys that are replaced some times within a test.
const BRIEF_KEYS: &str = "[session]\nbytes = \"1MiB\"\npackets = 1024\n";
/// Bytes of a transfer, and of one while keys are replaced: it takes more than two keys.
const BYTES: [usize; 2] = [3_000_000, 6_000_000];
/// Polls before, during and after a fault, and those while keys are replaced.
const POLLS: [u32; 2] = [150, 1_300];
/// Between two polls.
const PAUSE: Duration = Duration::from_millis(3);
/// How long the link is down.
const OUTAGE: Duration = Duration::from_secs(2);
/// Packets that may be refused after a restart, and on a link that reorders: no more than places and streams have.
const REFUSED_MAX: u64 = 60;
/// Reasons of drops that a bad link brings about by itself.
const OF_A_BAD_LINK: [&str; 6] =
    ["replayed", "too-old", "block-incomplete", "block-over", "fragment-incomplete", "history-gone"];
/// Those that a restart does: packets under keys that are lost, and packets that wait for others.
const OF_A_RESTART: [&str; 6] =
    ["unknown-spi", "no-sa-queue-full", "no-endpoint", "no-peer", "network-refused", "history-gone"];
/// Those of a queue that TCP fills; behind it, messages about a peer's load come close together.
const OF_THE_QUEUE: [&str; 3] = ["queue-overflow", "queue-aqm", "too-often"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Loss,
    Disorder,
    Outage,
    Rekeys,
    Restart(usize),
}

impl Fault {
    /// Whether packets may be dropped for this reason.
    fn allows(self, reason: &str) -> bool {
        OF_THE_QUEUE.contains(&reason)
            || match self {
                Fault::Rekeys => false,
                Fault::Restart(_) => OF_A_RESTART.contains(&reason) || OF_A_BAD_LINK.contains(&reason),
                Fault::Disorder => OF_A_BAD_LINK.contains(&reason),
                Fault::Loss | Fault::Outage => OF_A_BAD_LINK.contains(&reason) && reason != "history-gone",
            }
    }

    /// Which of two numbers is for this fault.
    fn of<T: Copy>(self, numbers: [T; 2]) -> T {
        numbers[usize::from(self == Fault::Rekeys)]
    }
}

/// What the link does with its frames.
#[derive(Clone, Copy)]
enum Link {
    Good,
    Loses,
    Disorders,
    Down,
}

impl Link {
    fn fate(state: u8, count: u64) -> FrameFate {
        // In a pattern rather than at random, so that a failure repeats.
        let place = count * 37 % 100;
        match (state, place) {
            (state, _) if state == Link::Down as u8 => FrameFate::Lose,
            (state, 0..3) if state == Link::Loses as u8 => FrameFate::Lose,
            (state, 0..5) if state == Link::Disorders as u8 => FrameFate::Repeat,
            (state, 5..20) if state == Link::Disorders as u8 => FrameFate::Delay(Duration::from_millis(8)),
            _ => FrameFate::Pass,
        }
    }
}

/// A pair on a link that has a fault at times.
struct Scene {
    fault: Fault,
    pair: Pair,
    link: Arc<AtomicU8>,
    config: [String; 2],
    _relay: Relay,
}

impl Scene {
    fn new(fault: Fault) -> Scene {
        let rate = "10Mbit".parse().unwrap();
        let (link, mut count) = (Arc::new(AtomicU8::new(Link::Good as u8)), 0);
        let state = Arc::clone(&link);
        let (hosts, relay): (TwoHosts, _) = Relay::between(LinkSpec::thin(rate), move |_, _| {
            count += 1;
            Link::fate(state.load(Ordering::Relaxed), count)
        })
        .unwrap();
        let sections = if fault == Fault::Rekeys { format!("{RULE}{BRIEF_KEYS}") } else { RULE.to_owned() };
        let config = [paced(rate, rate), sections];
        let pair = Pair::idle(hosts).and_up(extra(&config));
        Scene { fault, pair, link, config, _relay: relay }
    }

    /// The fault begins; what ends of itself has ended after this.
    fn begin(&mut self) {
        let link = match self.fault {
            Fault::Loss => Link::Loses,
            Fault::Disorder => Link::Disorders,
            Fault::Outage => Link::Down,
            Fault::Rekeys => return,
            Fault::Restart(which) => {
                self.check();
                self.pair.kill(which);
                self.pair.start(which, extra(&self.config));
                return;
            }
        };
        self.link.store(link as u8, Ordering::Relaxed);
    }

    /// The link is good again.
    fn end(&self) {
        self.link.store(Link::Good as u8, Ordering::Relaxed);
    }

    /// A count of what a site shows of history.
    fn history(&self, which: usize, key: &str) -> u64 {
        let peer = self.pair.peer(which);
        peer["history"][key].as_u64().unwrap_or_else(|| panic!("no {key} in {peer:#}"))
    }

    /// Nothing was dropped for reasons that the fault does not explain, and history refused little.
    fn check(&self) {
        for which in [0, 1] {
            let report = self.pair.daemon(which).show().unwrap();
            for drop in report["drops"].as_array().unwrap() {
                let (reason, packets) = (drop["reason"].as_str().unwrap(), drop["packets"].as_u64().unwrap());
                let good = packets == 0 || self.fault.allows(reason);
                assert!(good, "site {which} dropped {packets} as {reason}\n{}", self.pair.logs());
                if packets > 0 {
                    println!("{:?}: site {which} dropped {packets} as {reason}", self.fault);
                }
            }
            let refused = self.pair.drops(which, "history-gone");
            assert!(refused <= REFUSED_MAX, "{refused} refused\n{}", self.pair.logs());
        }
    }

    /// What one site received was sent by the other; where neither was restarted and no datagram was lost, all of it.
    fn compare(&self, sent: &str, received: &str) {
        for from in [0, 1] {
            let (sent, received) = (self.history(from, sent), self.history(1 - from, received));
            println!("{:?}: from site {from} {sent} sent and {received} received", self.fault);
            match self.fault {
                Fault::Restart(_) => {}
                Fault::Rekeys => assert_eq!(sent, received, "{}", self.pair.logs()),
                _ => assert!(received <= sent, "{received} of {sent}\n{}", self.pair.logs()),
            }
        }
    }
}

fn extra(config: &[String; 2]) -> Extra<'_> {
    Extra { link: &config[0], sections: &config[1], ..Extra::default() }
}

/// Log lines with some bytes between them that do not shrink, so that keys are used up soon.
fn text(bytes: usize) -> Arc<[u8]> {
    let files = sample::generate(sample::DEFAULT_SEED);
    let lines = &files.iter().find(|file| file.name.contains("log")).unwrap().bytes;
    let mut random = Random::new(sample::DEFAULT_SEED);
    let mut text = Vec::new();
    for piece in lines.chunks(3_000).cycle() {
        text.extend_from_slice(piece);
        text.extend((0..1_000).map(|_| random.next_u64().to_be_bytes()[0]));
        if text.len() >= bytes {
            break;
        }
    }
    text.truncate(bytes);
    text.into()
}

/// Moves a file over TCP; the fault is between its first third and its second.
fn bulk(fault: Fault) {
    if !allowed() {
        return;
    }
    let mut scene = Scene::new(fault);
    let size = fault.of(BYTES);
    let (content, third) = (text(size), u64::try_from(size / 3).unwrap());
    let (hosts, address) = (scene.pair.hosts.clone(), scene.pair.inside(1, Family::V4));
    let key = scene.pair.peer(0)["association"]["outbound_spi"].clone();
    let (from, to) = (&hosts.a, &hosts.b);
    let transfer = Transfer { from, to, address, name: "test", content: &content, patience: PATIENCE };
    let (mut began, mut ended, mut before) = (false, false, 0);
    let outcome = transfer.run(&mut |arrived| {
        if !began {
            before = scene.history(1, "received_blocks");
            if arrived < third || before < 3 {
                return;
            }
            scene.begin();
            began = true;
            if fault == Fault::Outage {
                thread::sleep(OUTAGE);
            }
        }
        if !ended && (arrived >= 2 * third || fault == Fault::Outage) {
            scene.end();
            ended = true;
        }
    });
    outcome.unwrap_or_else(|error| panic!("{error}\n{}", scene.pair.logs()));
    assert!(ended, "{before} blocks behind others before the fault");
    let since = if fault == Fault::Restart(1) { 0 } else { before };
    // What the other site has not acknowledged since a restart, nothing leans on: on a busy machine that may be all.
    eventually("blocks lean on others", || {
        let again = scene.history(1, "received_blocks") >= since + 3;
        if !again {
            carry(&scene.pair, &content);
        }
        again
    });
    if fault == Fault::Rekeys {
        assert!(scene.pair.peer(0)["association"]["outbound_spi"] != key, "the same keys");
    }
    scene.check();
    scene.compare("sent_blocks", "received_blocks");
}

/// A reading of an instrument, which is much like the one before.
fn reading(word: &str, round: u32) -> String {
    let values = [round * 37 % 101, round * 11 % 13];
    format!("{word} unit=7 temperature={} pressure=10{:02} count={round:05}", values[0], values[1])
}

/// Which round a reading is of, after a look whether it is as it was sent.
fn round_of(word: &str, message: &[u8]) -> u32 {
    let text = str::from_utf8(message).unwrap();
    let round = text.rsplit('=').next().unwrap().parse().unwrap();
    assert_eq!(text, reading(word, round));
    round
}

/// Answers polls until there are no more; each comes once.
fn serve(socket: &UdpSocket, ended: &AtomicBool) {
    let (mut buffer, mut seen) = ([0; 200], BTreeSet::new());
    while !ended.load(Ordering::Relaxed) {
        let Ok((len, from)) = socket.recv_from(&mut buffer) else { continue };
        let round = round_of("read", &buffer[..len]);
        assert!(seen.insert(round), "poll {round} came twice");
        // While a daemon is down there is no route.
        let _ = socket.send_to(reading("value", round).as_bytes(), from);
    }
}

/// Polls over UDP from a thread of their own; answers are read here.
struct Polls {
    client: UdpSocket,
    server: thread::JoinHandle<()>,
    ended: Arc<AtomicBool>,
    target: std::net::SocketAddr,
    seen: BTreeSet<u32>,
    next: u32,
}

impl Polls {
    fn new(pair: &Pair) -> Polls {
        let (client, server) = (pair.socket(0, Family::V4), pair.socket(1, Family::V4));
        for socket in [&client, &server] {
            socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        }
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let target = server.local_addr().unwrap();
        Polls {
            client,
            server: thread::spawn(move || serve(&server, &until)),
            ended,
            target,
            seen: BTreeSet::new(),
            next: 0,
        }
    }

    /// Sends so many polls, and says how many more answers came until there were as many, or no more came.
    fn run(&mut self, count: u32) -> usize {
        let (sender, rounds, target) =
            (self.client.try_clone().unwrap(), self.next..self.next + count, self.target);
        self.next += count;
        let sending = thread::spawn(move || {
            for round in rounds {
                let _ = sender.send_to(reading("read", round).as_bytes(), target);
                thread::sleep(PAUSE);
            }
        });
        let (before, mut buffer) = (self.seen.len(), [0; 200]);
        while self.seen.len() - before < count as usize {
            match self.client.recv(&mut buffer) {
                Ok(len) => {
                    let round = round_of("value", &buffer[..len]);
                    assert!(round < self.next && self.seen.insert(round), "answer {round} came twice");
                }
                Err(_) if sending.is_finished() => break,
                Err(_) => thread::sleep(PAUSE),
            }
        }
        sending.join().unwrap();
        self.seen.len() - before
    }

    /// Polls until both ends have received more than 10 packets that were coded, since these. Each poll waits for the answer to the one
    /// before: those that a busy host sends together leave in bundles, which need no history.
    fn until_coded(&mut self, scene: &Scene, before: [u64; 2]) {
        let coded =
            || [0, 1].iter().all(|which| scene.history(*which, "received_packets") > before[*which] + 10);
        eventually("packets are coded", || {
            coded() || {
                for _ in 0..20 {
                    self.run(1);
                }
                coded()
            }
        });
    }

    fn stop(self) {
        self.ended.store(true, Ordering::Relaxed);
        self.server.join().unwrap();
    }
}

/// Polls an instrument over UDP before, during and after the fault.
fn lone(fault: Fault) {
    if !allowed() {
        return;
    }
    let mut scene = Scene::new(fault);
    let mut polls = Polls::new(&scene.pair);
    let count = fault.of(POLLS);
    polls.run(POLLS[0]);
    polls.until_coded(&scene, [0, 0]);
    scene.begin();
    polls.run(count);
    if fault == Fault::Outage {
        thread::sleep(OUTAGE);
    }
    scene.end();
    eventually("polls are answered again", || polls.run(5) == 5);
    let before = [0, 1].map(|which| scene.history(which, "received_packets"));
    let answered = polls.run(POLLS[0]);
    assert!(answered > 140, "{answered} of 150 answers\n{}", scene.pair.logs());
    polls.until_coded(&scene, before);
    scene.check();
    scene.compare("coded_packets", "received_packets");
    polls.stop();
}

macro_rules! faults {
    ($($bulk:ident, $lone:ident: $fault:expr;)+) => {
        $(
            #[test]
            fn $bulk() {
                bulk($fault);
            }

            #[test]
            fn $lone() {
                lone($fault);
            }
        )+
    };
}

faults! {
    transfer_is_whole_where_datagrams_are_lost, polls_are_right_where_datagrams_are_lost: Fault::Loss;
    transfer_is_whole_where_datagrams_are_repeated_and_late, polls_are_right_where_datagrams_are_repeated_and_late: Fault::Disorder;
    transfer_is_whole_after_an_outage, polls_are_right_after_an_outage: Fault::Outage;
    transfer_is_whole_while_keys_are_replaced, polls_are_right_while_keys_are_replaced: Fault::Rekeys;
    transfer_is_whole_after_a_restart_of_the_sender, polls_are_right_after_a_restart_of_the_near_end: Fault::Restart(0);
    transfer_is_whole_after_a_restart_of_the_receiver, polls_are_right_after_a_restart_of_the_far_end: Fault::Restart(1);
}
