//! What a sender without keys can send to an address that it knows: each function makes payloads of UDP datagrams.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::sync::Arc;
use std::time::Instant;

use strait_clock::{Random, Time};
use strait_ipsec::outbound::Order;
use strait_ipsec::{PeerCounters, PeerId, PeerSpec};
use strait_keying::{
    Action, Capabilities, CarrierMode, Control, ControlSettings, KeyExport, Lifetime, PayloadFormat,
    PeerConfig, PrivateKey, PublicKey, RepairMode, Start, Where,
};
use strait_scheduler::LinkRate;

use crate::Error;

/// The shortest datagram that begins a QUIC connection (RFC 9000 section 14.1).
const INITIAL: usize = 1200;
/// A version that is reserved to provoke a Version Negotiation (RFC 9000 section 15).
const VERSION: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];
/// Bytes of a connection id as most clients choose them.
const ID: usize = 8;
/// Where a key manager begins to count time; any value but zero.
const NOW: Time = Time::from_millis(1000);

/// First flights of `count` handshakes, each by a key manager of its own with a key that no node knows: whole and valid,
/// with fresh connection ids. Nothing in them says with whom the handshake is.
///
/// # Errors
/// [`Error::System`] when TLS cannot be set up.
pub fn first_flights(count: u64, random: &mut Random) -> Result<Vec<Vec<Box<[u8]>>>, Error> {
    let victim = PrivateKey::generate(&seed(random)).public();
    let flight_of_one = |_| {
        let settings = settings(PrivateKey::generate(&seed(random)), seed(random));
        let failed = |error| Error::doing("make the first flight of a handshake")(io::Error::other(error));
        let mut control = Control::new(settings, NOW).map_err(failed)?;
        control.add_peer(peer(victim), NOW);
        Ok(flight(&mut control))
    };
    (0..count).map(flight_of_one).collect()
}

/// What a key manager sends at first.
fn flight(control: &mut Control) -> Vec<Box<[u8]>> {
    let actions = std::iter::from_fn(|| control.poll_action());
    let sent = actions.filter_map(|action| match action {
        Action::Out(Order::Transmit(_, _, bytes)) => Some(bytes),
        _ => None,
    });
    sent.collect()
}

fn settings(identity: PrivateKey, seed: [u8; 32]) -> ControlSettings {
    ControlSettings {
        identity,
        capabilities: Capabilities::typical(),
        up: LinkRate::Unpaced,
        lifetime: Lifetime::default(),
        export: KeyExport::Never,
        counters: Arc::default(),
        token: None,
        seed: seed.into(),
        base: Instant::now(),
    }
}

fn peer(key: PublicKey) -> PeerConfig {
    // Where it is does not matter: the frames say that.
    let place = Where::Address(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)));
    let spec = PeerSpec {
        id: PeerId(1),
        allowed: Vec::new(),
        endpoint: None,
        mtu: None,
        counters: Arc::new(PeerCounters::default()),
        caches: Arc::default(),
    };
    let (name, start, format) = ("victim".to_owned(), Start::Eager, PayloadFormat::Strait);
    PeerConfig {
        spec,
        name,
        key,
        place,
        start,
        keepalive: None,
        format,
        repair: RepairMode::Auto,
        carrier: CarrierMode::Udp,
    }
}

fn seed(random: &mut Random) -> [u8; 32] {
    let mut seed = [0; 32];
    fill(random, &mut seed);
    seed
}

/// A long header of a version that does not exist: asks for a Version Negotiation.
#[must_use]
pub fn unknown_version(random: &mut Random) -> Vec<u8> {
    let mut datagram = noise(random, INITIAL);
    datagram[0] |= 0xc0;
    datagram[1..5].copy_from_slice(&VERSION);
    datagram[5] = ID as u8;
    datagram[6 + ID] = ID as u8;
    datagram
}

/// A short header with a connection id that does not exist: asks for a stateless reset (RFC 9000 section 10.3).
#[must_use]
pub fn short_header(random: &mut Random) -> Vec<u8> {
    let mut datagram = noise(random, 100);
    datagram[0] = datagram[0] & 0x3f | 0x40;
    datagram
}

/// What has the form of a handshake initiation of WireGuard (its white paper, section 5.4.2), and is none.
#[must_use]
pub fn initiation(random: &mut Random) -> Vec<u8> {
    let mut message = noise(random, 148);
    message[..4].copy_from_slice(&[1, 0, 0, 0]);
    message
}

/// `len` bytes of nonsense behind the SPI of a session, and the sequence number `number`.
#[must_use]
pub fn forged_esp(spi: [u8; 4], number: u32, len: usize, random: &mut Random) -> Vec<u8> {
    [&spi[..], &number.to_be_bytes(), &noise(random, len)].concat()
}

/// An address of the Internet, with a port.
#[must_use]
pub fn any_source(random: &mut Random) -> SocketAddrV4 {
    let [.., a, b, c, port_high, port_low] = random.next_u64().to_be_bytes();
    // 100.64.0.0/10 (RFC 6598), which no host of the testbed has.
    let address = Ipv4Addr::new(100, 64 | a & 0x3f, b, c);
    SocketAddrV4::new(address, u16::from_be_bytes([port_high | 4, port_low]))
}

fn noise(random: &mut Random, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(random, &mut bytes);
    bytes
}

fn fill(random: &mut Random, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let word = random.next_u64().to_be_bytes();
        chunk.iter_mut().zip(word).for_each(|(byte, random)| *byte = random);
    }
}
