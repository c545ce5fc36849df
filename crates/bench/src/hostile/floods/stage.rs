//! What a flood is sent to, and the frames of each.

use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use strait_clock::Random;
use strait_keying::PublicKey;
use strait_testbed::attack::{AttackRoute, RunningAttack, esp_of, listen, sessionless_of, stranger};
use strait_testbed::{Extra, LinkSpec, PORT, PingTrain, TwoHosts, interrupt, paced};

use super::StrangerFlood;
use crate::content::noise;
use crate::error::Error;
use crate::hostile::star::{HubStar, Spoke};
use crate::hostile::watch::{Disturbance, PINGS};
use crate::random::rate;
use crate::stage::{BenchSetup, MTU};
use crate::wireguard::{self, WireGuard, WireguardSearch, find, inside};

/// The port of a socket of the hub that is never read.
const DEAF: u16 = 4000;
/// Bytes behind a forged header.
const FORGED: usize = 256;
/// How often is looked for an answer.
const TICK: Duration = Duration::from_millis(10);
/// How long the wire is listened at for what is sent again.
const TAPPED: Duration = Duration::from_millis(400);
/// The same for headers, which come every second.
const TAPPED_HEADERS: Duration = Duration::from_millis(2500);

/// What a frame carries, if it is what is listened for.
type DatagramOf = fn(&[u8]) -> Option<&[u8]>;

/// A hub with one site, and what is sent to it.
pub(super) struct FloodStage<'a> {
    // Goes before the hosts it runs on.
    wireguard: Option<[WireGuard; 2]>,
    star: HubStar,
    content: Arc<[u8]>,
    flights: &'a [Vec<Box<[u8]>>],
    random: Random,
}

/// The site and its hub, joined by their link.
fn hosts(star: &HubStar) -> TwoHosts {
    let (a, b) = (star.sites[0].host.clone(), star.centre.host.clone());
    TwoHosts { a, b, link: star.links[0].clone(), router: None }
}

impl FloodStage<'_> {
    pub(super) fn set<'a>(
        setting: &BenchSetup,
        up: f64,
        (flights, peer): (&'a [Vec<Box<[u8]>>], &str),
        seed: u64,
    ) -> Result<FloodStage<'a>, Error> {
        let spec = LinkSpec::thin(rate(up));
        let link = paced(rate(up), rate(up));
        let spoke = Spoke { name: "site", spec, extra: Extra { peer, ..Extra::default() } };
        let star = HubStar::up(&setting.program, &[spoke], Extra { link: &link, peer, ..Extra::default() })?;
        let wireguard = match find(&setting.cache) {
            WireguardSearch::Missing(_) => None,
            WireguardSearch::Here { program, .. } => Some(WireGuard::pair(&program, &hosts(&star), MTU)?),
        };
        Ok(FloodStage { wireguard, star, content: noise(), flights, random: Random::new(seed) })
    }

    /// What is seen without and with a flood.
    pub(super) fn flood(
        &mut self,
        kind: StrangerFlood,
        rate: f64,
        window: Duration,
    ) -> Result<[Disturbance; 2], Error> {
        let port = match kind {
            StrangerFlood::Deaf => DEAF,
            StrangerFlood::WireGuard => wireguard::PORT,
            _ => PORT,
        };
        let route = AttackRoute::over(&self.star.stranger, port)?;
        let deaf = SocketAddr::new(self.star.stranger.b.v4.into(), DEAF);
        // Open, and never read.
        let _deaf = self.star.centre.host.run("open a socket", || UdpSocket::bind(deaf))?;
        let (seen, last) = self.tapped(kind)?;
        let frames = self.frames(kind, &route, &seen);
        let mut traffic = self.star.traffic(0, &self.content, window);
        if kind == StrangerFlood::WireGuard {
            for (place, (_, address)) in traffic.ends.iter_mut().enumerate() {
                *address = inside(place);
            }
        }
        traffic.watch(|| start(kind, &route, rate, frames, last).map(Some))
    }

    /// Seconds from when a site whose daemon was killed and started again is ready until its first ping is answered, while
    /// Initials come; `patience` for none until then.
    pub(super) fn restart(&mut self, rate: f64, patience: Duration) -> Result<f64, Error> {
        let route = AttackRoute::over(&self.star.stranger, PORT)?;
        let frames = self.frames(StrangerFlood::Initials, &route, &[]);
        let attack = route.start_cycle(rate, frames)?;
        let ready = self.star.restart(0)?;
        let (site, hub) = (&self.star.sites[0], &self.star.centre);
        let train = PingTrain::start(&site.host, &hub.host, SocketAddr::new(hub.inside().into(), 0), PINGS)?;
        while train.answered_since(ready).is_none() && ready.elapsed() < patience {
            interrupt::pause(TICK)?;
        }
        let answered = train.answered_since(ready);
        train.stop()?;
        attack.stop()?;
        Ok(answered.map_or(patience, |at| at - ready).as_secs_f64())
    }

    /// Whether there is a wireguard-go to compare with.
    pub(super) const fn has_wireguard(&self) -> bool {
        self.wireguard.is_some()
    }

    /// ESP packets of the site's, and the last number among them.
    fn tapped(&self, kind: StrangerFlood) -> Result<(Vec<Vec<u8>>, u32), Error> {
        let (span, datagram): (_, DatagramOf) = match kind {
            StrangerFlood::Forged | StrangerFlood::Replayed => (TAPPED, esp_of),
            StrangerFlood::ReplayedHeaders => (TAPPED_HEADERS, sessionless_of),
            _ => return Ok((Vec::new(), 0)),
        };
        let (site, hub) = (&self.star.sites[0], &self.star.centre);
        let train = PingTrain::start(&site.host, &hub.host, SocketAddr::new(hub.inside().into(), 0), PINGS)?;
        let heard = listen(&self.star.links[0].b, span, 1000);
        train.stop()?;
        let heard = heard?;
        let seen: Vec<Vec<u8>> =
            heard.iter().filter_map(|frame| datagram(frame)).map(<[u8]>::to_vec).collect();
        let number = |packet: &Vec<u8>| packet.get(4..8)?.try_into().ok().map(u32::from_be_bytes);
        let last = seen.iter().filter_map(number).max();
        match last {
            Some(last) => Ok((seen, last)),
            None => Err(Error::Silent { what: "ESP to listen to", way: "the wire".to_owned() }),
        }
    }

    /// Frames from the stranger's own address and from others in turn: any, or the site's where that makes sense.
    fn frames(&mut self, kind: StrangerFlood, route: &AttackRoute, seen: &[Vec<u8>]) -> Arc<[Vec<u8>]> {
        /// How many different datagrams a flood has that are made without a key manager.
        const DIFFERENT: usize = 4096;
        let site = SocketAddrV4::new(self.star.links[0].a.v4, PORT);
        let key = |of: &str| of.parse().unwrap_or(PublicKey::from_bytes([0; 32]));
        let keys = [&self.star.sites[0], &self.star.centre].map(|site| key(site.public_key()));
        let random = &mut self.random;
        let mut source = |number: usize| match (number % 2, kind) {
            (0, _) => route.own(low16(1024 + number)),
            (
                _,
                StrangerFlood::Forged
                | StrangerFlood::Replayed
                | StrangerFlood::ReplayedHeaders
                | StrangerFlood::Headers(_),
            ) => site,
            _ => stranger::any_source(random),
        };
        if kind == StrangerFlood::Initials {
            let flights = self.flights.iter().enumerate();
            let framed = flights.flat_map(|(number, flight)| {
                let source = source(number);
                flight.iter().map(move |payload| route.frame(source, payload))
            });
            return framed.collect();
        }
        let sources: Vec<SocketAddrV4> = (0..DIFFERENT).map(&mut source).collect();
        let payloads = sources.iter().enumerate().map(|(number, source)| {
            let payload = match kind {
                StrangerFlood::WireGuard => stranger::initiation(random),
                StrangerFlood::Versions => stranger::unknown_version(random),
                StrangerFlood::Resets => stranger::short_header(random),
                StrangerFlood::Deaf | StrangerFlood::Initials => vec![0; 1200],
                StrangerFlood::Headers(kind) => kind.datagram(&keys[0], &keys[1], random),
                StrangerFlood::Replayed | StrangerFlood::ReplayedHeaders => {
                    seen.get(number % seen.len().max(1)).cloned().unwrap_or_default()
                }
                StrangerFlood::Forged => {
                    let spi = seen.first().and_then(|it| it.first_chunk()).copied().unwrap_or_default();
                    stranger::forged_esp(spi, 0, FORGED, random)
                }
            };
            route.frame(*source, &payload)
        });
        payloads.collect()
    }
}

/// Starts to send; forged packets get numbers above the `last` one that was seen.
fn start(
    kind: StrangerFlood,
    route: &AttackRoute,
    rate: f64,
    frames: Arc<[Vec<u8>]>,
    last: u32,
) -> Result<RunningAttack, Error> {
    /// Beyond what the site itself sends meanwhile.
    const AHEAD: u32 = 1 << 20;
    /// Where the sequence number stands in a frame.
    const NUMBER: std::ops::Range<usize> = 46..50;
    if kind != StrangerFlood::Forged {
        return Ok(route.start_cycle(rate, frames)?);
    }
    Ok(route.start(rate, move |number, frame| {
        let [.., a, b, c, d] = number.to_be_bytes();
        let at = usize::try_from(number).unwrap_or(0) % frames.len().max(1);
        frame.clear();
        frame.extend_from_slice(frames.get(at).map_or(&[], Vec::as_slice));
        let next = last.wrapping_add(AHEAD).wrapping_add(u32::from_be_bytes([a, b, c, d]));
        if let Some(place) = frame.get_mut(NUMBER) {
            place.copy_from_slice(&next.to_be_bytes());
        }
    })?)
}

fn low16(value: usize) -> u16 {
    u16::try_from(value & 0xffff).unwrap_or(0)
}
