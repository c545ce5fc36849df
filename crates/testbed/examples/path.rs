//! Real daemons over an emulated path: one TCP stream with pings beside it, plain and through the tunnel.
//!
//! ```text
//! cargo run -p strait-testbed --example path -- target/release/strait rate=10Mbit rtt=100ms loss=1 burst=5 data=text
//! ```
//!
//! Each argument behind the program is `name=value`:
//!
//! | name | value | default |
//! |---|---|---|
//! | `rate` | of the path there, as in a configuration; `none`: the kernel's own link, without a limit or a delay | `10Mbit` |
//! | `back` | of the path back | as `rate` |
//! | `rtt` | round trip of the empty path, in ms | `100` |
//! | `jitter` | ms one way, so that packets overtake each other | `0` |
//! | `loss` | percent in each direction | `0` |
//! | `burst` | mean datagrams that are lost in a row; 1 is each by itself | `1` |
//! | `queue` | ms that the modem's queue holds | `300` |
//! | `data` | `random` or `text` | `random` |
//! | `link` | `told`, `auto` or `none`: what the daemons know of the rate | `told` |
//! | `peer`, `sections` | more of the configuration; `;` ends a line | |
//! | `seconds` | of each transfer, slow start included | `10` |
//! | `runs` | transfers one after another, with the same daemons | `2` |
//! | `plain` | `yes`: the path without a tunnel too | `yes` |
//! | `record` | a file in mahimahi's format, in the place of `rate` | |
//! | `beside` | a file with a line for each packet of others, seconds and bytes, which take their part of `rate` | |
#![allow(clippy::unwrap_used, clippy::expect_used)] // Ends with what is wrong; a program for developers.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strait_scheduler::Rate;
use strait_sim::{LinkSettings, LossModel, RateTrace, SimLink};
use strait_testbed::{
    EmulatedPath, Extra, FrameDirection, LinkSpec, PingTrain, Relay, Stream, TestTunnel, TwoHosts, interrupt,
    sample, sandbox,
};

/// Between two pings.
const PINGS: Duration = Duration::from_millis(20);
/// Until what a transfer left in queues has drained.
const DRAIN: Duration = Duration::from_secs(3);

struct Arguments(BTreeMap<String, String>);

impl Arguments {
    fn text(&self, name: &str, default: &str) -> String {
        self.0.get(name).map_or_else(|| default.to_owned(), String::clone)
    }

    fn number(&self, name: &str, default: f64) -> f64 {
        let text = self.text(name, "");
        if text.is_empty() { default } else { text.trim_end_matches("ms").parse().expect(name) }
    }

    fn millis(&self, name: &str, default: f64) -> Duration {
        Duration::from_secs_f64(self.number(name, default) / 1000.0)
    }

    fn lines(&self, name: &str) -> String {
        self.text(name, "").replace(';', "\n")
    }

    fn rates(&self) -> [Rate; 2] {
        let there = self.text("rate", "10Mbit").replace("none", "10Gbit");
        [there.parse().expect("rate"), self.text("back", &there).parse().expect("back")]
    }

    fn path(&self) -> EmulatedPath {
        let loss = match (self.number("loss", 0.0) / 100.0, self.number("burst", 1.0)) {
            (0.0, _) => LossModel::None,
            (share, 1.0) => LossModel::Uniform(share),
            (share, burst) => LossModel::bursts(share, burst),
        };
        let jitter = self.millis("jitter", 0.0);
        let link = |rate, seed| {
            let modem = LinkSettings::modem(rate, self.millis("rtt", 100.0) / 2, self.millis("queue", 300.0));
            SimLink::new(LinkSettings { loss, jitter, ..modem }, seed)
        };
        let [there, back] = self.rates();
        let text = |name: &str| self.0.get(name).map(|file| std::fs::read_to_string(file).expect(name));
        let there = match (text("record"), text("beside")) {
            (Some(record), _) => link(there, 1).following(record.parse().unwrap()),
            (_, Some(others)) => {
                let packet = |line: &str| -> Option<(Duration, u64)> {
                    let (time, bytes) = line.trim().split_once(char::is_whitespace)?;
                    Some((Duration::from_secs_f64(time.parse().ok()?), bytes.trim().parse().ok()?))
                };
                link(there, 1).following(RateTrace::beside(there, others.lines().filter_map(packet)).unwrap())
            }
            _ => link(there, 1),
        };
        EmulatedPath::new(there, link(back, 2))
    }

    fn hosts(&self, path: &EmulatedPath) -> (TwoHosts, Option<Relay>) {
        if self.text("rate", "") == "none" {
            return (TwoHosts::direct(LinkSpec::unshaped()).unwrap().with_cubic().unwrap(), None);
        }
        let (hosts, relay) = Relay::over(path).unwrap();
        (hosts, Some(relay))
    }

    fn content(&self) -> Arc<[u8]> {
        let random = self.text("data", "random") == "random";
        let files = sample::generate(sample::DEFAULT_SEED);
        let mut bytes: Vec<u8> = Vec::new();
        for file in files.iter().filter(|file| !random && file.name != "archive.bin") {
            bytes.extend_from_slice(&file.bytes);
        }
        let mut chance = strait_clock::Random::new(sample::DEFAULT_SEED);
        while random && bytes.len() < 4 << 20 {
            bytes.extend(chance.next_u64().to_le_bytes());
        }
        bytes.into()
    }
}

fn main() {
    sandbox::enter().expect("hosts");
    interrupt::watch();
    let mut words = std::env::args().skip(1);
    let program = words.next().expect("the program to run");
    let pair = |word: String| word.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let arguments = Arguments(words.map(|word| pair(word).expect("name=value")).collect());
    if arguments.text("plain", "yes") == "yes" {
        let path = arguments.path();
        let (hosts, _relay) = arguments.hosts(&path);
        measure(&arguments, "plain", &hosts, hosts.address_of_b().0, &path);
    }
    let path = arguments.path();
    let (hosts, _relay) = arguments.hosts(&path);
    let sections = format!(
        "[[compress]]\nfrom = \"10.77.0.1/32\"\nto = \"10.77.0.2/32\"\ndomain = \"path\"\n{}",
        arguments.lines("sections")
    );
    let (rates, link) = match arguments.text("link", "told").as_str() {
        "auto" => ([None; 2], "up = \"auto\"\ndown = \"auto\"\noverhead = 14\n"),
        "none" => ([None; 2], ""),
        _ => (arguments.rates().map(Some), ""),
    };
    let extra = Extra { link, peer: &arguments.lines("peer"), sections: &sections, ..Extra::default() };
    let tunnel = TestTunnel::between(Path::new(&program), hosts, rates, extra).unwrap();
    measure(&arguments, "Strait", &tunnel.hosts, tunnel.far_address(), &path);
    for daemon in tunnel.daemons() {
        println!("{:#}", daemon.show().unwrap()["peers"]);
    }
}

fn measure(arguments: &Arguments, name: &str, hosts: &TwoHosts, address: IpAddr, path: &EmulatedPath) {
    let (a, b) = (&hosts.a, &hosts.b);
    let content = arguments.content();
    let pings = PingTrain::start(a, b, SocketAddr::new(address, 0), PINGS).unwrap();
    let seconds = Duration::from_secs_f64(arguments.number("seconds", 10.0));
    interrupt::pause(Duration::from_secs(2)).unwrap();
    println!("{name}: idle ping, {}", ping_line(&pings, Instant::now() - Duration::from_secs(1)));
    for run in 1..=arguments.number("runs", 2.0) as usize {
        let (before, begin) = (hosts.link.traffic().unwrap(), Instant::now());
        let stream = Stream {
            from: a,
            to: b,
            address: SocketAddr::new(address, 0),
            content: &content,
            warm_up: Duration::ZERO,
            window: seconds,
        };
        let running = stream.start().unwrap();
        interrupt::pause(seconds).unwrap();
        let megabits = running.received() as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6;
        let after = hosts.link.traffic().unwrap();
        println!(
            "{name}, run {run}: {megabits:.3} Mbit/s; {}; wire bytes there {}, back {}",
            ping_line(&pings, begin),
            after.there.bytes - before.there.bytes,
            after.back.bytes - before.back.bytes,
        );
        running.stop().unwrap();
        interrupt::pause(DRAIN).unwrap();
    }
    println!("{name}: there {:?}", path.counters(FrameDirection::There));
    println!("{name}: back {:?}", path.counters(FrameDirection::Back));
    pings.stop().unwrap();
}

/// The round trips since `begin`.
fn ping_line(pings: &PingTrain, begin: Instant) -> String {
    let (mut times, lost) = pings.round_trips(begin, Instant::now());
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(f64::NAN);
    format!("ping median {:.1} ms, 95 of 100 within {:.1} ms, {lost} unanswered", at(50), at(95))
}
