//! Certificates that are looked up when a packet or a handshake needs them: what is asked for, and which peers make room for others.

use std::collections::BTreeMap;

use strait_clock::Time;
use strait_ipsec::outbound;
use strait_keying::directory::{Asked, Asker, LookUpEnd, LookUps, Question, address_of};
use strait_keying::sessionless::CacheCounts;
use strait_keying::{PublicKey, Start};
use strait_wire::sessionless::Name;

use super::messages::Wanted;
use super::{Daemon, DirectoryPeers};
use crate::config::{DirectorySection, PeerSection, PinnedPeer};
use crate::process::ProcessChannel;
use crate::report::{CacheReport, DirectoryReport, LookUpEndReport, LookUpReport};

/// See the head of this module.
#[derive(Debug)]
pub(super) struct Demand {
    pub(super) look_ups: LookUps,
    /// Peers that stay.
    pins: Vec<PinnedPeer>,
    /// Packets from and to each peer when they were looked at, and when they were last found to be more.
    used: BTreeMap<PublicKey, (u64, Time)>,
    /// Peers that made room for others.
    evicted: u64,
}

impl Demand {
    pub(super) fn new(section: &DirectorySection) -> Demand {
        Demand { look_ups: LookUps::new(), pins: section.pin.clone(), used: BTreeMap::new(), evicted: 0 }
    }

    fn is_pinned(&self, peer: &PeerSection) -> bool {
        self.pins.iter().any(|pin| pin.is(&peer.name, &peer.allowed_ips))
    }

    /// A peer that is looked up is called when there is a packet for it, and one that is pinned at once.
    pub(super) fn prepare(&self, peer: &mut PeerSection) {
        let pinned = self.is_pinned(peer);
        peer.start = if pinned { Start::Eager } else { Start::OnTraffic };
        if let Some(section) = &mut peer.sessionless {
            section.pin = pinned;
        }
    }

    /// A peer that has just been looked up counts as used.
    pub(super) fn note_new(&mut self, key: PublicKey, now: Time) {
        self.used.entry(key).or_insert((0, now)).1 = now;
    }

    /// Notes which peers had packets.
    pub(super) fn note_traffic(
        &mut self,
        peers: &BTreeMap<PublicKey, PeerSection>,
        packets: &dyn Fn(&PeerSection) -> u64,
        now: Time,
    ) {
        self.used.retain(|key, _| peers.contains_key(key));
        for (key, peer) in peers {
            let count = packets(peer);
            let used = self.used.entry(*key).or_insert((count, now));
            if used.0 != count {
                *used = (count, now);
            }
        }
    }

    /// The peer that was used least recently, of those that are not pinned.
    fn idlest(&self, peers: &BTreeMap<PublicKey, PeerSection>) -> Option<PublicKey> {
        let free = peers.iter().filter(|(_, peer)| !self.is_pinned(peer));
        free.min_by_key(|(key, _)| self.used.get(key).map(|(_, at)| *at)).map(|(key, _)| *key)
    }

    /// Adds to a report what there is to say.
    pub(super) fn add_to(&self, report: &mut DirectoryReport, peers: usize) {
        let counts = self.look_ups.counts();
        let ends = counts.named().map(|(end, count)| LookUpEndReport { end: end.to_owned(), count });
        report.look_ups = Some(LookUpReport {
            under_way: counts.under_way,
            ends: ends.to_vec(),
            seconds: counts.took.as_secs_f64(),
            longest_seconds: counts.longest.as_secs_f64(),
        });
        let here = CacheCounts {
            entries: peers,
            pinned: self.pins.len(),
            // What a peer is there for is never looked up.
            hits: 0,
            misses: counts.named().iter().map(|(_, count)| count).sum(),
            evicted: self.evicted,
            took: counts.took,
        };
        report.caches.insert(0, CacheReport::new("peers", here, Some(here.took)));
        report.caches.push(CacheReport::new("unknown-names", counts.unknown, None));
    }
}

impl DirectoryPeers {
    /// Takes away the peer that was used least recently, and says whose key it was; none where all are pinned.
    pub(super) fn make_room(
        demand: &mut Demand,
        peers: &mut BTreeMap<PublicKey, PeerSection>,
        channel: &ProcessChannel,
        packets: &dyn Fn(&PeerSection) -> u64,
        now: Time,
    ) -> Option<PublicKey> {
        demand.note_traffic(peers, packets, now);
        let idlest = demand.idlest(peers)?;
        demand.evicted += 1;
        demand.used.remove(&idlest);
        if let Some(peer) = peers.remove(&idlest) {
            tracing::info!(peer = peer.name, "makes room for another peer");
        }
        // If the process is gone, that is found out by what it says.
        let _ = say(channel, &Wanted::Evicted(idlest.to_string()));
        Some(idlest)
    }

    /// Gives the process what it is to look up.
    fn ask(&mut self, now: Time) {
        let Some(demand) = &mut self.demand else { return };
        while let Some(name) = demand.look_ups.poll_question() {
            let question = Wanted::Find(Question::Find(name).to_bytes());
            if self.has_ended || say(&self.channel, &question).is_err() {
                self.ended.push((name, LookUpEnd::Failed));
            }
        }
        for name in demand.look_ups.timeout(now) {
            self.ended.push((name, LookUpEnd::Failed));
        }
    }

    /// When a look-up takes too long.
    pub(in crate::daemon) fn poll_timeout(&self) -> Option<Time> {
        self.demand.as_ref()?.look_ups.poll_timeout().map(|deadline| deadline.at)
    }
}

pub(super) fn say(channel: &ProcessChannel, wanted: &Wanted) -> std::io::Result<()> {
    channel.send(&serde_json::to_vec(wanted)?, &[])
}

impl Daemon {
    /// From now on strangers are looked up, if the configuration says so; those that are pinned are at once.
    pub(in crate::daemon) fn begin_look_ups(&mut self) {
        if self.directory.as_ref().is_some_and(|directory| directory.demand.is_some()) {
            self.control.look_up_strangers();
            self.look_up_pins();
        }
    }

    /// Looks up what is pinned and not there.
    pub(super) fn look_up_pins(&mut self) {
        let Some(DirectoryPeers { demand: Some(demand), peers, .. }) = &self.directory else { return };
        let has = |pin: &PinnedPeer| peers.values().any(|peer| pin.is(&peer.name, &peer.allowed_ips));
        let missing: Vec<Name> =
            demand.pins.iter().filter(|pin| !has(pin)).map(PinnedPeer::question).collect();
        missing.into_iter().for_each(|name| self.look_up_certificate(name, Asker::Own));
    }

    /// A packet or a handshake needs the certificate of a node that is no peer.
    pub(in crate::daemon) fn look_up_certificate(&mut self, name: Name, asker: Asker) {
        let now = self.clock.now();
        let Some(directory) = &mut self.directory else {
            return self.no_certificate(name, LookUpEnd::NotFound, now);
        };
        let Some(demand) = &mut directory.demand else { return };
        match demand.look_ups.ask(name, asker, now) {
            Asked::Begun => directory.ask(now),
            Asked::UnderWay => {}
            Asked::Unknown(until) => self.no_certificate(name, LookUpEnd::NotFound, until),
            Asked::Busy => self.no_certificate(name, LookUpEnd::Failed, now),
        }
    }

    /// Says of look-ups that are over what came of them.
    pub(in crate::daemon) fn end_look_ups(&mut self) {
        let now = self.clock.now();
        let Some(directory) = &mut self.directory else { return };
        directory.ask(now);
        for (name, end) in std::mem::take(&mut directory.ended) {
            let has = |address| {
                self.config
                    .peers
                    .iter()
                    .any(|peer| peer.allowed_ips.iter().any(|network| network.contains(&address)))
            };
            // One whose networks are not allowed here is of no use.
            let useless = end == LookUpEnd::Found && address_of(&name).is_some_and(|address| !has(address));
            let end = if useless { LookUpEnd::Refused } else { end };
            let Some(demand) = self.directory.as_mut().and_then(|directory| directory.demand.as_mut()) else {
                return;
            };
            demand.look_ups.answered(name, end, now);
            let until = demand.look_ups.unknown_until(name, now).unwrap_or(now);
            self.no_certificate(name, end, until);
        }
        self.act();
    }

    /// A look-up is over: who still waits for it is told, and until when the answer holds.
    fn no_certificate(&mut self, name: Name, end: LookUpEnd, until: Time) {
        if let Some(address) = address_of(&name) {
            self.order_out(outbound::Order::NoPeer(address, until));
        }
        self.control.looked_up(name, end, self.clock.now());
    }
}

#[cfg(test)]
mod tests {
    use strait_keying::PrivateKey;

    use super::*;
    use crate::config::Config;

    fn key(node: u8) -> PublicKey {
        PrivateKey::generate(&[node; 32]).public()
    }

    fn section() -> DirectorySection {
        let text = format!(
            "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\npeers = \"directory\"\n[directory]\n\
             authority = \"{}\"\nservers = \"192.0.2.1:7707\"\nallowed_ips = \"10.77.0.0/16\"\n\
             certificates = \"on demand\"\npin = \"n1\"\n",
            key(9)
        );
        Config::parse(&text, std::path::Path::new("x.toml")).unwrap().directory.unwrap()
    }

    fn peers(count: u8) -> BTreeMap<PublicKey, PeerSection> {
        let text = |node| {
            format!(
                "[node]\nprivate_key_file = \"k\"\naddress = \"10.0.0.1\"\n[[peer]]\nname = \"n{node}\"\n\
                 public_key = \"{}\"\nallowed_ips = \"10.77.0.{node}\"\n",
                key(node)
            )
        };
        let peer = |node| Config::parse(&text(node), std::path::Path::new("x.toml")).unwrap().peers.remove(0);
        (1..=count).map(|node| (key(node), peer(node))).collect()
    }

    #[test]
    fn the_peer_without_packets_for_the_longest_time_goes_unless_it_is_pinned() {
        let (mut demand, peers) = (Demand::new(&section()), peers(3));
        let at = Time::from_millis;
        for (node, ms) in [(1, 0), (2, 10), (3, 20)] {
            demand.note_new(key(node), at(ms));
        }
        assert_eq!(demand.idlest(&peers), Some(key(2)), "the first is pinned");
        let some = |peer: &PeerSection| u64::from(peer.name == "n2");
        demand.note_traffic(&peers, &some, at(30));
        assert_eq!(demand.idlest(&peers), Some(key(3)));
        demand.note_traffic(&peers, &|_| 1, at(40));
        demand.note_traffic(&peers, &|_| 1, at(50));
        assert_eq!(demand.used.get(&key(2)), Some(&(1, at(30))), "no more packets came");
        assert_eq!(demand.idlest(&peers), Some(key(2)));
        let pinned = peers.into_iter().filter(|(_, peer)| peer.name == "n1").collect();
        assert_eq!(demand.idlest(&pinned), None);
    }

    #[test]
    fn who_is_pinned_is_called_at_once_and_others_with_a_packet() {
        let demand = Demand::new(&section());
        let starts = peers(2).into_values().map(|mut peer| {
            demand.prepare(&mut peer);
            (peer.name, peer.start)
        });
        let mut starts: Vec<_> = starts.collect();
        starts.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(starts, [("n1".to_owned(), Start::Eager), ("n2".to_owned(), Start::OnTraffic)]);
    }
}
