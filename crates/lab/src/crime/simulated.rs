//! The data plane itself, in virtual time: one sender, under a key that the observer does not use.

use std::convert::Infallible;
use std::time::Duration;

use strait_clock::Time;
use strait_compress::{Allowed, Method};
use strait_ipsec::{Domain, LeakPolicy, Rule};
use strait_scheduler::Rate;
use strait_sim::{Halves, HalvesSettings};
use strait_wire::ip;

use super::{CrimePlace, LengthOracle};

/// The rate of the link. Any would do: packets that are found together wait for each other on a link that is paced.
const LINK: u64 = 100_000_000;
/// Between two guesses: long enough that the link is idle again.
const PAUSE: Duration = Duration::from_millis(20);

/// Where both hosts are, and where their service is.
const NETWORKS: [&str; 2] = ["10.0.1.0/24", "10.0.2.0/24"];

/// The rules of a node: one a service, each with a trust domain of its own.
fn rules(policy: LeakPolicy, place: CrimePlace, method: Method) -> Vec<Rule> {
    let [Ok(from), Ok(to)] = NETWORKS.map(str::parse) else { return Vec::new() };
    let rule = |port: &u16| Rule {
        // What blocks tell is asked here; lone.rs asks it of packets that leave alone.
        history: None,
        cache: None,
        from,
        to,
        protocol: None,
        ports: vec![*port..=*port],
        domain: Domain(*port),
        allowed: Allowed::Only(method),
        policy,
    };
    place.ruled().iter().map(rule).collect()
}

/// The same rules in a configuration.
#[must_use]
pub fn sections(policy: LeakPolicy, place: CrimePlace, method: Method) -> String {
    let [from, to] = NETWORKS;
    let (padding, mix) = (policy.padding.name(), policy.mix.name());
    let rule = |port: &u16| {
        format!(
            "[[compress]]\nfrom = \"{from}\"\nto = \"{to}\"\nports = [{port}]\ndomain = \"domain-{port}\"\n\
             codec = \"{method}\"\npadding = \"{padding}\"\nmix = \"{mix}\"\npause = {}\nhistory = \"none\"\n",
            policy.pause
        )
    };
    place.ruled().iter().map(rule).collect()
}

/// The sender of a node with a paced link.
#[derive(Debug)]
pub struct SimulatedTunnel {
    halves: Halves,
    now: Time,
}

impl SimulatedTunnel {
    /// A tunnel whose rules compress so and have this policy.
    #[must_use]
    pub fn new(policy: LeakPolicy, place: CrimePlace, method: Method) -> SimulatedTunnel {
        let rules = rules(policy, place, method);
        let settings = HalvesSettings { rules, up: Rate::from_bits(LINK), ..HalvesSettings::default() };
        SimulatedTunnel { halves: Halves::new(settings, Time::ZERO), now: Time::ZERO }
    }
}

impl LengthOracle for SimulatedTunnel {
    type Error = Infallible;

    fn carry(&mut self, packets: &[Vec<u8>]) -> Result<Vec<usize>, Infallible> {
        let mut packets = packets.to_vec();
        // They come from the network behind the node.
        packets.iter_mut().for_each(|packet| {
            ip::decrement_ttl(packet);
        });
        let mut sent = self.halves.send(&packets, self.now);
        let (rest, end) = self.halves.drain(self.now);
        sent.extend(rest);
        self.now = end + PAUSE;
        Ok(sent.iter().map(|datagram| datagram.bytes.len()).collect())
    }
}
