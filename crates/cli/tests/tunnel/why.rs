//! What is compressed follows the data and the link, and says why.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

use serde_json::Value;
use strait_testbed::{Extra, LinkSpec, TwoHosts, sample};

use crate::pair::{Family, PATIENCE, Pair, allowed, eventually, fast};

pub(crate) const TEXT: u8 = 0;
const NOISE: u8 = 1;
pub(crate) const END: u8 = 2;

/// The configuration's sections for a link of this rate out.
pub(crate) fn sections(up: &str) -> String {
    format!(
        "[link]\nup = \"{up}\"\n[[compress]]\nfrom = \"10.77.0.1/32\"\nto = \"10.77.0.2/32\"\ndomain = \"test\"\n"
    )
}

/// A pair on a fast link, of which the first site is told that it is slow.
pub(crate) fn told_slow() -> Pair {
    let mut pair = Pair::idle(TwoHosts::direct(LinkSpec::unshaped()).unwrap());
    pair.start(0, Extra { sections: &sections("1.5Mbit"), ..Extra::default() });
    pair.start(1, Extra::default());
    pair.wait_for_session();
    pair
}

/// Tells the first site of another link.
fn reload(pair: &Pair, up: &str) {
    let extra = Extra { sections: &sections(up), ..Extra::default() };
    pair.sites[0].configure("strait", &[&pair.sites[1]], extra).unwrap();
    pair.daemon(0).reload().unwrap();
}

/// A transfer from the first site to the second whose data is what `what` says, until it says the end.
pub(crate) fn transfer(pair: &Pair, what: &Arc<AtomicU8>) -> thread::JoinHandle<()> {
    let address = SocketAddr::new(pair.inside(1, Family::V4), 0);
    let listener = pair.hosts.b.run("listen", || TcpListener::bind(address)).unwrap();
    let target = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = vec![0; 65_536];
        while stream.read(&mut buffer).is_ok_and(|len| len > 0) {}
    });
    // So little in the socket that what is written is sent at once.
    let small = || std::fs::write("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 16384");
    pair.hosts.a.run("keep sockets small", small).unwrap();
    let mut stream = pair.hosts.a.run("connect", || TcpStream::connect(target)).unwrap();
    let files = sample::generate(7);
    let (text, noise) = (Arc::clone(&files[0].bytes), Arc::clone(&files[5].bytes));
    let what = Arc::clone(what);
    thread::spawn(move || {
        for at in (0..150_000).step_by(4_096).cycle() {
            let bytes = match what.load(Ordering::Relaxed) {
                TEXT => &text[at..],
                NOISE => &noise[at..],
                _ => return,
            };
            stream.write_all(&bytes[..4_096]).unwrap();
        }
    })
}

/// `strait why --follow`, its lines as they come.
struct Follow {
    child: Child,
    lines: Receiver<Value>,
}

impl Follow {
    fn start(pair: &Pair) -> Follow {
        let mut command = pair.daemon(0).command(&["why", "site-b", "--follow", "--json"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Follow { child, lines }
    }

    /// Waits for a decision on the transfer that `is` what is looked for; says on the way how long that took.
    fn wait(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let decision = self.lines.recv_timeout(left).unwrap_or_else(|_| panic!("never: {what}"));
            if decision["class"].as_str().unwrap().starts_with("tcp") && is(&decision) {
                eprintln!("{what}: after {} ms", begin.elapsed().as_millis());
                return decision;
            }
        }
    }
}

/// Ranks a choice by its speed: its estimate depends on the block as well.
fn haste(decision: &Value) -> i32 {
    let choice = decision["choice"].as_str().unwrap();
    let level = |text: &str| text.parse::<i32>().unwrap();
    match choice.strip_prefix("zstd-") {
        None => 1_000 + i32::from(choice == "none"),
        Some(fast) => fast.strip_prefix("fast-").map_or_else(|| -level(fast), level),
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn the_choice_follows_the_data_and_the_link() {
    if !allowed() {
        return;
    }
    let pair = told_slow();
    let what = Arc::new(AtomicU8::new(TEXT));
    let sending = transfer(&pair, &what);
    let follow = Follow::start(&pair);
    let slow = follow.wait("text is compressed on a slow link", |it| it["choice"] != "none");
    assert_eq!(slow["reason"], "pays", "{slow:#}");
    let estimate = &slow["estimate"];
    assert_eq!(estimate["link_rate_bits_per_second"], 1.5e6, "{slow:#}");
    assert!(estimate["ratio"].as_f64().unwrap() > 1.5, "{slow:#}");

    what.store(NOISE, Ordering::Relaxed);
    follow.wait("random bytes are not compressed", |it| it["choice"] == "none");
    what.store(TEXT, Ordering::Relaxed);
    let again = follow.wait("text is compressed again", |it| it["choice"] != "none");

    reload(&pair, "500Mbit");
    let fast = follow.wait("a fast link gets another choice", |it| {
        it["estimate"]["link_rate_bits_per_second"] == 5e8 && it["choice"] != again["choice"]
    });
    assert!(haste(&fast) > haste(&again), "{fast:#}\nafter {again:#}");
    reload(&pair, "1.5Mbit");
    follow.wait("and a slow one again the other", |it| {
        it["estimate"]["link_rate_bits_per_second"] == 1.5e6
            && it["choice"] != "none"
            && it["choice"] != fast["choice"]
    });
    drop(follow);
    let shown = pair.daemon(0).command(&["why"]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    for word in ["to           site-b, domain test", "runner-up", "bottleneck   ", "ratio ", "total"] {
        assert!(shown.contains(word), "{word} is not in\n{shown}");
    }
    what.store(END, Ordering::Relaxed);
    sending.join().unwrap();
    let logged = std::fs::read_to_string(pair.daemon(0).log()).unwrap();
    assert!(logged.contains("compression choice changed"), "{logged}");
}

#[test]
fn choice_follows_the_estimated_link_rate() {
    if !allowed() {
        return;
    }
    let mut pair = Pair::idle(TwoHosts::direct(fast()).unwrap());
    pair.start(0, Extra { sections: &sections("auto"), ..Extra::default() });
    pair.start(1, Extra::default());
    pair.wait_for_session();
    let what = Arc::new(AtomicU8::new(NOISE));
    let sending = transfer(&pair, &what);
    // So little is on its way at once that the fast link has room for all of it, and a link that is not full has no rate.
    eventually("much is sent", || pair.peer(0)["sent"]["packets"].as_u64() > Some(5_000));
    // Where others use the processor, what it lets through is found.
    let fast =
        |pair: &Pair| pair.peer(0)["link_rate_bits_per_second"].as_u64().is_none_or(|rate| rate > 10_000_000);
    assert!(fast(&pair), "{:#}", pair.peer(0));
    what.store(TEXT, Ordering::Relaxed);
    let link = |it: &Value| it["estimate"]["link_rate_bits_per_second"].as_f64().unwrap_or(0.0);
    pair.hosts.link.set_rate("1.5Mbit".parse().ok()).unwrap();
    let slow = |it: &Value| (link(it) / 1.5e6 - 1.0).abs() < 0.2;
    // The state and not its changes: on a busy machine the rate may come after the choice, and an old line be taken for a new one.
    let decision = || pair.daemon(0).show().unwrap()["decisions"][0].clone();
    eventually("the choice is made for a slow one", || slow(&decision()));
    what.store(NOISE, Ordering::Relaxed);
    eventually("random bytes are not compressed", || decision()["choice"] == "none");
    what.store(TEXT, Ordering::Relaxed);
    eventually("text on a slow link is compressed", || {
        Some(decision()).is_some_and(|it| slow(&it) && it["choice"] != "none")
    });
    pair.hosts.link.set_rate("20Mbit".parse().ok()).unwrap();
    what.store(NOISE, Ordering::Relaxed);
    eventually("a faster link is found", || fast(&pair));
    what.store(END, Ordering::Relaxed);
    sending.join().unwrap();
}

#[test]
fn unknown_peer_and_no_traffic_are_reported() {
    if !allowed() {
        return;
    }
    let pair = told_slow();
    let nothing = pair.daemon(0).command(&["why"]).output().unwrap();
    assert!(String::from_utf8_lossy(&nothing.stdout).contains("no decisions"), "{nothing:?}");
    let unknown = pair.daemon(0).command(&["why", "site-x"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("peers: site-b"), "{unknown:?}");
    eventually("programs get a list", || {
        let listed = pair.daemon(0).command(&["why", "--json"]).output().unwrap();
        serde_json::from_slice::<Value>(&listed.stdout).unwrap().is_array()
    });
}
