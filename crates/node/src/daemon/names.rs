//! Peers that are known by name: names are looked up beside everything else, and who answers can at most have a handshake
//! tried elsewhere.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use strait_clock::Time;
use strait_ipsec::PeerId;
use strait_keying::MOST_ADDRESSES;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Daemon;
use super::resolver::{FoundAddress, Resolver};
use crate::config::Config;

/// Names that are looked up at once. The resolver takes a process for each.
const QUERIES: usize = 32;
/// The time that a query has that was made before the host's network changed: a server that is there answers sooner, even over a
/// satellite; the system's resolver takes 5 s to ask another one (resolv.conf(5)).
const OLD: Duration = Duration::from_secs(2);

/// What the resolver said of a peer's name, which is the text.
pub(super) type Resolved = (PeerId, String, Result<Vec<SocketAddr>, String>);

/// Names that are looked up now, and where they led.
#[derive(Debug)]
pub(super) struct NameQueries {
    answers: mpsc::Sender<Resolved>,
    resolver: Resolver,
    under_way: BTreeMap<(PeerId, String), NameQuery>,
    /// The last answer for each peer, as far as routes had to make way for it.
    led_to: BTreeMap<PeerId, Vec<IpAddr>>,
}

/// A query that is under way.
#[derive(Debug)]
struct NameQuery {
    /// It ends when the resolver has answered, or does not.
    task: JoinHandle<()>,
    asked: Time,
    /// True if the host's network has changed since.
    outdated: bool,
}

impl NameQueries {
    pub(super) const fn new(answers: mpsc::Sender<Resolved>, resolver: Resolver) -> NameQueries {
        NameQueries { answers, resolver, under_way: BTreeMap::new(), led_to: BTreeMap::new() }
    }

    /// The host's network has changed: queries that are under way are not waited for as long as before.
    pub(super) fn outdate(&mut self) {
        self.under_way.values_mut().for_each(|query| query.outdated = true);
    }

    /// Returns the time at which the next query is given up.
    pub(super) fn poll_timeout(&self) -> Time {
        self.under_way.values().map(NameQuery::ends).min().unwrap_or(Time::MAX)
    }

    /// Forgets where a peer's name led.
    pub(super) fn forget(&mut self, peer: PeerId) {
        self.led_to.remove(&peer);
    }

    /// Why `name` cannot be looked up now.
    fn refuses(&mut self, peer: PeerId, name: &str) -> Option<&'static str> {
        self.under_way.retain(|_, query| !query.task.is_finished());
        if self.under_way.contains_key(&(peer, name.to_owned())) {
            return Some("the resolver has not answered the last query yet");
        }
        (self.under_way.len() >= QUERIES).then_some("the resolver answers none of many queries")
    }
}

impl NameQuery {
    /// Returns the time at which it is given up, if it is.
    fn ends(&self) -> Time {
        if self.outdated { self.asked + OLD } else { Time::MAX }
    }
}

impl Daemon {
    /// Asks the resolver without waiting for it: one query a peer and name.
    pub(super) fn look_up(&mut self, peer: PeerId, name: String) {
        if let Some(why) = self.names.refuses(peer, &name) {
            return self.control.resolved(peer, &name, Err(why.to_owned()), self.clock.now());
        }
        let (answers, socket, key) =
            (self.names.answers.clone(), Arc::clone(&self.socket), (peer, name.clone()));
        let asked = self.names.resolver.ask(&name);
        let inside = inside(&self.config, |other| self.roster.number(other) == Some(peer));
        let query = tokio::spawn(async move {
            let mut asked = asked.map_err(|error| format!("the resolver cannot be asked: {error}"));
            let found = match &mut asked {
                Ok(query) => query.answer().await,
                Err(words) => Err(words.clone()),
            };
            let answer =
                found.and_then(|found| choose(&name, &found, &inside, |address| socket.reaches(address)));
            // Names are not needed when the node ends.
            let _ = answers.send((peer, name, answer)).await;
            if let Ok(query) = asked {
                query.end().await;
            }
        });
        self.names.under_way.insert(key, NameQuery { task: query, asked: self.clock.now(), outdated: false });
    }

    /// Gives up the queries that were made before the host's network changed, and asks again: their answer may never come.
    pub(super) fn give_up_queries(&mut self, now: Time) {
        let old = self.names.under_way.extract_if(.., |_, query| query.ends() <= now);
        for ((peer, _), query) in old.filter(|(_, query)| !query.task.is_finished()).collect::<Vec<_>>() {
            query.task.abort();
            self.control.look_up_again(peer, now);
        }
    }

    /// Passes on where a name led; where the tunnel itself would swallow datagrams to there, routes make way first. For
    /// a name that the peer no longer has, they do not.
    pub(super) fn resolved(&mut self, peer: PeerId, name: &str, answer: Result<Vec<SocketAddr>, String>) {
        if let Ok(addresses) = &answer
            && self.control.is_looking_up(peer, name)
            && addresses.iter().any(|address| self.plan.would_loop(*address))
        {
            self.names.led_to.insert(peer, addresses.iter().map(SocketAddr::ip).collect());
            if let Err(error) = self.reroute(false) {
                tracing::error!(name, "outer datagrams to a peer may be routed into the tunnel: {error}");
            }
        }
        self.control.resolved(peer, name, answer, self.clock.now());
        self.look_at_source(peer);
    }

    /// Where peers are beside the endpoints in the configuration: where names led last, and where peers are now. It grows no
    /// further with the resolver's answers.
    pub(super) fn outer(&self) -> Vec<IpAddr> {
        let led_to = self.names.led_to.iter();
        led_to
            .flat_map(|(peer, answer)| {
                let now = self.control.status(*peer).and_then(|status| status.endpoint);
                answer.iter().copied().chain(now.map(|endpoint| endpoint.ip()))
            })
            .collect()
    }
}

/// The networks in which the peer that `is_peer` says cannot be: this node's addresses in the tunnel, and what lies behind
/// other peers. Half of all addresses is meant as a default route, and holds endpoints.
fn inside(config: &Config, is_peer: impl Fn(&crate::config::PeerSection) -> bool) -> Vec<IpNet> {
    let others = config.peers.iter().filter(|other| !is_peer(other)).flat_map(|other| &other.allowed_ips);
    let own = config.node.address.iter().map(|address| IpNet::from(address.addr()));
    let others = others.chain(config.directory.iter().flat_map(|directory| &directory.allowed_ips));
    others.copied().filter(|net| net.prefix_len() > 1).chain(own).collect()
}

/// The addresses in an answer that can be a peer's, as many as are tried, or why none can.
fn choose(
    name: &str,
    found: &[FoundAddress],
    inside: &[IpNet],
    reaches: impl Fn(SocketAddr) -> bool,
) -> Result<Vec<SocketAddr>, String> {
    let (mut can_be, mut refused) = (Vec::new(), None);
    for FoundAddress { address, is_own } in found.iter().copied() {
        match lie(name, (address.ip().to_canonical(), is_own), inside) {
            None if reaches(address) => can_be.push(address),
            None => {}
            Some(what) => {
                refused.get_or_insert(format!("the resolver answered {}, {what}", address.ip()));
            }
        }
    }
    if can_be.is_empty() {
        return Err(refused.unwrap_or_else(|| "the name has no address that this node can reach".to_owned()));
    }
    can_be.truncate(MOST_ADDRESSES);
    Ok(can_be)
}

/// What is wrong with an address that is said to be a peer's outside.
fn lie(name: &str, (address, is_own): (IpAddr, bool), inside: &[IpNet]) -> Option<&'static str> {
    // Who writes this name means it (RFC 6761 section 6.3).
    let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
    let is_local_name = host == "localhost" || host.ends_with(".localhost");
    if address.is_unspecified() || address == IpAddr::V4(Ipv4Addr::BROADCAST) || address.is_multicast() {
        Some("which is no host's address")
    } else if address.is_loopback() {
        (!is_local_name).then_some("a loopback address")
    } else if inside.iter().any(|net| net.contains(&address)) {
        Some("an address inside the tunnel")
    } else {
        is_own.then_some("an address of this host")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(name: &str, found: &[&str]) -> Result<Vec<SocketAddr>, String> {
        let found: Vec<_> = found
            .iter()
            .map(|address| {
                // As the resolver says of an address of this host.
                let (address, is_own) =
                    address.strip_prefix("own ").map_or((*address, false), |it| (it, true));
                FoundAddress { address: SocketAddr::new(address.parse().unwrap(), 51_820), is_own }
            })
            .collect();
        let inside = ["10.77.0.1/32", "10.88.0.0/16", "fd00:88::/32"].map(|net| net.parse().unwrap());
        choose(name, &found, &inside, |address| address.is_ipv4() || !address.ip().is_multicast())
    }

    #[test]
    fn a_lie_of_the_resolver_is_refused_with_words() {
        for (found, words) in [
            ("127.0.0.1", "a loopback address"),
            ("127.9.9.9", "a loopback address"),
            ("::1", "a loopback address"),
            ("::ffff:127.0.0.1", "a loopback address"),
            ("0.0.0.0", "which is no host's address"),
            ("::", "which is no host's address"),
            ("255.255.255.255", "which is no host's address"),
            ("224.0.0.1", "which is no host's address"),
            ("ff02::1", "which is no host's address"),
            ("10.77.0.1", "an address inside the tunnel"),
            ("10.88.1.2", "an address inside the tunnel"),
            ("fd00:88::1", "an address inside the tunnel"),
            ("own 192.0.2.9", "an address of this host"),
        ] {
            let said = answer("site-b.example:51820", &[found]).unwrap_err();
            assert!(said.starts_with("the resolver answered ") && said.ends_with(words), "{said}");
        }
        assert_eq!(answer("localhost:51820", &["127.0.0.1"]), Ok(vec!["127.0.0.1:51820".parse().unwrap()]));
        assert!(answer("site-b.example:51820", &[]).unwrap_err().contains("no address"));
    }

    #[test]
    fn all_honest_addresses_beside_a_lie_are_taken_in_their_order_up_to_a_number() {
        let taken = |found: &[&str]| {
            let taken = answer("site-b.example:51820", found).unwrap();
            taken.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>()
        };
        let mixed = ["127.0.0.1", "2001:db8::7", "192.0.2.7", "10.88.1.2", "ff02::1", "192.0.2.8"];
        assert_eq!(taken(&mixed), ["2001:db8::7", "192.0.2.7", "192.0.2.8"]);
        let many: Vec<String> = (1..=40).map(|host| format!("192.0.2.{host}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(taken(&many), many[..MOST_ADDRESSES]);
    }

    #[test]
    fn networks_of_other_peers_are_inside_and_default_routes_are_not() {
        let key = strait_keying::PublicKey::from_bytes([1; 32]);
        let other = strait_keying::PublicKey::from_bytes([2; 32]);
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1/24\"\n[[peer]]\npublic_key = \"{key}\"\n\
             allowed_ips = [\"10.1.0.0/16\"]\n[[peer]]\npublic_key = \"{other}\"\n\
             allowed_ips = [\"10.2.0.0/16\", \"0.0.0.0/0\"]\n"
        );
        let config = Config::parse(&text, std::path::Path::new("x.toml")).unwrap();
        let nets = inside(&config, |peer| peer.public_key() == Some(&key));
        assert_eq!(nets, ["10.2.0.0/16", "10.0.0.1/32"].map(|net| net.parse::<IpNet>().unwrap()));
    }
}
