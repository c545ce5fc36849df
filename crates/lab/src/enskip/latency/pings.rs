//! Round trips by tier: what both ends have of each other is made so before each, by restarts and by the time that keys go by.

use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use strait_clock::{Random, Time};
use strait_keying::PrivateKey;
use strait_keying::sessionless::{
    CardError, EpochLength, KemKey, KeyCard, NodeKeys, Now, PacketKeyLimits, WallTime, key_name,
};
use strait_testbed::Workdir;
use strait_wire::Protocol;

use super::cards::CardDirectory;
use super::end::{PingEnd, PingSettings, Place, Waited};
use super::tiers::{CacheUse, RoundTrip, Tier};

/// Bytes of the IP packet of a ping: 56 of data, as `ping` sends, with headers of ICMP and IPv4.
pub(super) const PING: usize = 84;
/// How long a datagram may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pings of a pair in each tier, of which the middle one counts: what was not done for a while is slow the first time. Between nodes that have
/// never met there is one.
const MANY: usize = 5;
/// Where in an epoch a pair begins: so that a minute later is in the same one.
const INTO_EPOCH: u64 = 600;

/// What all pairs share: sockets on the loopback interface, a directory, a folder.
pub(super) struct PingRoom {
    sockets: [Arc<UdpSocket>; 2],
    directory: CardDirectory,
    folder: Workdir,
    pairs: u32,
}

impl PingRoom {
    /// An empty one.
    pub(super) fn new() -> io::Result<PingRoom> {
        let socket = || -> io::Result<Arc<UdpSocket>> {
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            socket.set_read_timeout(Some(PATIENCE))?;
            Ok(Arc::new(socket))
        };
        let folder = Workdir::create().map_err(io::Error::other)?;
        Ok(PingRoom { sockets: [socket()?, socket()?], directory: CardDirectory::start()?, folder, pairs: 0 })
    }

    /// Two nodes that have never met, whose cards the directory has.
    pub(super) fn pair(&mut self, settings: PingSettings) -> io::Result<PingPair> {
        self.pairs += 1;
        let mut random = Random::new(u64::from(self.pairs));
        let now = beginning();
        let keys = [self.keys(now, settings, &mut random)?, self.keys(now, settings, &mut random)?];
        let mut end = |at: usize| {
            let place = Place {
                socket: Arc::clone(&self.sockets[at]),
                to: self.sockets[1 - at].local_addr()?,
                peer: key_name(&keys[1 - at].identity.public()),
                directory: self.directory.address(),
            };
            let folder: PathBuf = self.folder.path().join(format!("{}-{at}", self.pairs));
            std::fs::create_dir(&folder)?;
            PingEnd::new(Arc::clone(&keys[at]), settings, place, &folder, Random::new(random.next_u64()))
        };
        let payload = std::array::from_fn(|at| at as u8);
        Ok(PingPair { ends: [end(0)?, end(1)?], now, payload, sockets: self.sockets.clone() })
    }

    /// A node's keys, and its card at the directory.
    fn keys(&self, now: Now, settings: PingSettings, random: &mut Random) -> io::Result<Arc<NodeKeys>> {
        let seed = std::array::from_fn(|_| random.next_u64() as u8);
        let kem = settings.hybrid.then(KemKey::generate).transpose().map_err(io::Error::other)?;
        let own = NodeKeys::new(PrivateKey::generate(&seed), kem);
        let card = card(&own, now).map_err(io::Error::other)?;
        self.directory.add(key_name(&card.key), card.sign(&own.identity));
        Ok(Arc::new(own))
    }
}

/// What a node says of itself, for a year from some hours ago on.
pub(super) fn card(own: &NodeKeys, now: Now) -> Result<KeyCard, CardError> {
    let seconds = now.wall.unix_seconds();
    Ok(KeyCard {
        kem: own.kem.as_ref().map(|kem| kem.public().clone()),
        valid: (seconds - 86_400, seconds + 365 * 86_400),
        ..KeyCard::plain("a-host".parse()?, own.identity.public())
    })
}

/// Some minutes into this epoch.
pub(super) fn beginning() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = u64::from(EpochLength::default().seconds()) * 1_000_000;
    let wall = WallTime::from_unix(since).0 / epoch * epoch + INTO_EPOCH * 1_000_000;
    Now { time: Time::from_millis(1_000_000), wall: WallTime(wall) }
}

/// Two nodes.
pub(super) struct PingPair {
    ends: [PingEnd; 2],
    now: Now,
    payload: [u8; PING],
    sockets: [Arc<UdpSocket>; 2],
}

/// What a pair did in one tier: its round trip, and what was asked of caches.
pub(super) type TierRun = (Tier, RoundTrip, CacheUse);

impl PingPair {
    /// A round trip in each tier, from nothing on.
    pub(super) fn run(&mut self) -> io::Result<Vec<TierRun>> {
        let mut all = vec![self.tier(Tier::NoCache)?];
        for tier in [Tier::Disk, Tier::DiskRead, Tier::Secondary, Tier::NewKey, Tier::Header] {
            all.push(self.middle(tier)?);
        }
        self.settle()?;
        for tier in [Tier::Primary, Tier::Plain] {
            all.push(self.middle(tier)?);
        }
        Ok(all)
    }

    /// Brings both ends into the state of a tier; they have been through those behind it.
    fn prepare(&mut self, tier: Tier) -> io::Result<()> {
        let epoch = Duration::from_secs(EpochLength::default().seconds().into());
        match tier {
            Tier::NoCache | Tier::Plain => {}
            Tier::Disk | Tier::DiskRead => {
                self.passes(epoch)?;
                self.ends.iter_mut().for_each(PingEnd::restart);
                if tier == Tier::DiskRead {
                    self.ends.iter().try_for_each(PingEnd::forget_pages)?;
                }
            }
            Tier::Secondary => self.passes(epoch)?,
            Tier::NewKey => self.passes(PacketKeyLimits::LONGEST + Duration::from_secs(1))?,
            // Less than what would call for a header again.
            Tier::Header | Tier::Primary => self.passes(Duration::from_millis(100))?,
        }
        Ok(())
    }

    /// Time passes by which keys go; none of the clock's.
    fn passes(&mut self, time: Duration) -> io::Result<()> {
        self.now.time += time;
        self.now.wall.0 += u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = self.now;
        self.ends.iter_mut().try_for_each(|end| end.time_passes(now))
    }

    /// One round trip, and what it asked of caches.
    fn tier(&mut self, tier: Tier) -> io::Result<TierRun> {
        self.prepare(tier)?;
        let before = CacheUse::of(&self.ends);
        let trip = self.round_trip(tier)?;
        Ok((tier, trip, CacheUse::of(&self.ends).since(before)))
    }

    /// The middle one of some.
    fn middle(&mut self, tier: Tier) -> io::Result<TierRun> {
        let runs: io::Result<Vec<TierRun>> = (0..MANY).map(|_| self.tier(tier)).collect();
        let mut runs = runs?;
        runs.sort_by_key(|(_, trip, _)| trip.took);
        Ok(runs[MANY / 2])
    }

    fn round_trip(&mut self, tier: Tier) -> io::Result<RoundTrip> {
        for end in &mut self.ends {
            end.waited = Waited::default();
        }
        let start = Instant::now();
        let back = if tier == Tier::Plain { self.echoed()? } else { self.encrypted()? };
        let took = start.elapsed();
        if back[..] != self.payload {
            return Err(io::Error::other("a ping came back changed"));
        }
        let [near, far] = &self.ends;
        let waited = Waited {
            marks: near.waited.marks + far.waited.marks,
            cards: near.waited.cards + far.waited.cards,
            directory: near.waited.directory + far.waited.directory,
        };
        Ok(RoundTrip { took, waited })
    }

    /// The round trip.
    fn encrypted(&mut self) -> io::Result<Vec<u8>> {
        let (now, [near, far]) = (self.now, &mut self.ends);
        near.send(now, Protocol::IPIP, &self.payload)?;
        let heard = far.receive(now)?;
        far.send(now, Protocol::IPIP, &heard)?;
        near.receive(now)
    }

    /// The same bytes as they are.
    fn echoed(&self) -> io::Result<Vec<u8>> {
        let mut datagram = [0; 2 * PING];
        let [near, far] = &self.sockets;
        near.send_to(&self.payload, far.local_addr()?)?;
        let (len, from) = far.recv_from(&mut datagram)?;
        far.send_to(&datagram[..len], from)?;
        let len = near.recv(&mut datagram)?;
        Ok(datagram[..len].to_vec())
    }

    /// Sends what is to be acknowledged, until nothing is.
    fn settle(&mut self) -> io::Result<()> {
        let now = self.now;
        loop {
            let [near, far] = &mut self.ends;
            let [there, back] = [near.answer(now)?, far.answer(now)?];
            for (end, datagrams) in [(far, there), (near, back)] {
                for _ in 0..datagrams {
                    end.hear(now)?;
                }
            }
            if there + back == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use strait_crypto::{Cipher, Integrity, Suite};
    use strait_keying::sessionless::Protection;

    use super::*;
    use crate::enskip::latency::end::Asked;

    fn uses(settings: PingSettings) -> Vec<(Tier, CacheUse)> {
        let mut room = PingRoom::new().unwrap();
        let runs = room.pair(settings).unwrap().run().unwrap();
        assert!(runs.iter().all(|(_, trip, _)| trip.took > trip.waited.marks));
        runs.into_iter().map(|(tier, _, uses)| (tier, uses)).collect()
    }

    #[test]
    fn each_tier_asks_what_its_name_says() {
        let separate = Protection::Separate(Cipher::TripleDesCbc, Integrity::HmacMd5_96);
        for protection in [Protection::Aead(Suite::Aes256Gcm), separate] {
            for (tier, uses) in uses(PingSettings { protection, hybrid: false, durable: false }) {
                let asked = |cards, fetched, marks, keys| Asked { cards, fetched, marks, keys };
                let both = |it: (u64, u64)| (it.0 > 0, it.1 > 0);
                let (expected, keys, epochs, secrets) = match tier {
                    Tier::Plain | Tier::Primary => {
                        (asked(0, 0, 0, 0), (0, 0), (false, false), (false, false))
                    }
                    Tier::Header => (asked(0, 0, 0, 0), (2, 0), (false, false), (false, false)),
                    Tier::NewKey => (asked(0, 0, 4, 2), (0, 2), (true, false), (true, false)),
                    Tier::Secondary => (asked(0, 0, 4, 2), (0, 2), (false, true), (true, false)),
                    Tier::Disk | Tier::DiskRead => (asked(2, 0, 4, 2), (0, 3), (false, true), (true, true)),
                    Tier::NoCache => (asked(0, 2, 4, 2), (0, 3), (false, true), (true, true)),
                };
                assert_eq!(uses.asked, expected, "{tier:?}");
                assert_eq!(uses.packet_keys, keys, "{tier:?}");
                assert_eq!(both(uses.epoch_keys), epochs, "{tier:?} {uses:?}");
                assert_eq!(both(uses.secrets), secrets, "{tier:?} {uses:?}");
            }
        }
    }

    #[test]
    fn key_packets_go_before_the_first_packet_of_an_epoch() {
        let settings = PingSettings { hybrid: true, durable: true, ..crate::enskip::latency::SETTINGS[1].1 };
        let uses = uses(settings);
        assert_eq!(uses.len(), Tier::ALL.len());
        assert!(Tier::ALL.iter().all(|tier| uses.iter().any(|(it, _)| it == tier)));
    }
}
