//! How QUIC is set up for a handshake and a few messages on a thin link.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::{hkdf, hmac};
use bytes::Bytes;
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, EndpointConfig, ServerConfig, TimeSource, TokenStore,
    TransportConfig, VarInt,
};
use strait_clock::Time;

use crate::Role;
use crate::keystream::Keystream;

/// Bytes of our connection ids: unguessable, and no longer than they must be (RFC 9000 section 5.1). All ids of a connection
/// begin with the same four, its mark.
pub(crate) const CID_LEN: usize = 8;
/// Bytes of the first destination id of a handshake: RFC 9000 section 7.2 asks for 8 at least, and those of a responder have
/// [`CID_LEN`].
pub(super) const HANDSHAKE_CID: usize = 16;
/// The same of a connection for streams: it tells the responder what comes before it reads anything, so that it answers with
/// the transport parameters of that. The application protocol, which TLS protects, has to agree.
pub(super) const STREAMS_CID: usize = 20;
/// Nothing heard for this long ends a connection: as long as an attempt lasts.
const IDLE: VarInt = VarInt::from_u32(10_000);
/// What the peer may have under way: four of the largest messages.
const WINDOW: VarInt = VarInt::from_u32(16 * 1024);
/// Least time between two stateless resets, which strangers can provoke (RFC 9000 section 10.3.3).
const RESET_INTERVAL: Duration = Duration::from_millis(100);
/// How long a Retry token serves: the client answers at once, or after a few retransmissions.
const RETRY_LIFETIME: Duration = Duration::from_secs(15);

/// Translates between our time and the instants that QUIC counts in.
#[derive(Clone, Copy, Debug)]
pub struct Epoch(Instant);

impl Epoch {
    /// Time zero was at `base`.
    #[must_use]
    pub const fn new(base: Instant) -> Epoch {
        Epoch(base)
    }

    /// The instant of `time`.
    #[must_use]
    pub fn instant(self, time: Time) -> Instant {
        self.0.checked_add(Duration::from_nanos(time.as_nanos())).unwrap_or(self.0)
    }

    /// The time of `instant`.
    #[must_use]
    pub fn time(self, instant: Instant) -> Time {
        Time::ZERO + instant.saturating_duration_since(self.0)
    }
}

/// The transport parameters of a role; only an initiator opens a stream, and one is all there is.
pub(super) fn transport(role: Role) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let peer_streams = match role {
        Role::Initiator => 0_u8,
        Role::Responder => 1,
    };
    config
        .max_concurrent_bidi_streams(peer_streams.into())
        .max_concurrent_uni_streams(0_u8.into())
        .max_idle_timeout(Some(IDLE.into()))
        .stream_receive_window(WINDOW)
        .receive_window(WINDOW)
        .send_window(WINDOW.into_inner())
        .datagram_receive_buffer_size(None)
        // Its probes are 5 kB a connection, and 1,200 bytes pass everywhere.
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .allow_spin(false);
    Arc::new(config)
}

/// The endpoint's parameters: everything unpredictable comes from `seed`.
pub(super) fn endpoint(seed: &[u8; 32], mark: &Arc<CidMark>) -> EndpointConfig {
    let reset_key = Keystream::new(seed, "stateless reset").next_block();
    let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &reset_key)));
    let (cids, mark) = (Keystream::new(seed, "connection id").next_block(), Arc::clone(mark));
    config
        .cid_generator(move || {
            Box::new(Cids { stream: Keystream::new(&cids, "connection id"), mark: Arc::clone(&mark) })
        })
        // The first byte tells QUIC from ESP on one port (RFC 9443); a cleared fixed bit would not.
        .grease_quic_bit(false)
        .supported_versions(vec![1])
        .min_reset_interval(RESET_INTERVAL)
        .rng_seed(Some(Keystream::new(seed, "endpoint").next_block()));
    config
}

/// The server's parameters around its TLS; `clock` dates its Retry tokens.
pub(super) fn server(
    tls: Arc<dyn quinn_proto::crypto::ServerConfig>,
    seed: &[u8; 32],
    clock: Arc<TokenClock>,
    most: usize,
) -> ServerConfig {
    let secret = Keystream::new(seed, "retry token").next_block();
    let token_key = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&secret);
    let mut config = ServerConfig::new(tls, Arc::new(token_key));
    config
        .transport_config(transport(Role::Responder))
        .retry_token_lifetime(RETRY_LIFETIME)
        // A handshake ends before a peer roams; the data plane follows peers that roam.
        .migration(false)
        .max_incoming(most)
        .incoming_buffer_size(0)
        .incoming_buffer_size_total(0)
        .time_source(clock);
    config
}

/// A client's parameters for one connection. `cid` gives its first destination id, and `prove` what its first datagrams
/// say with that id.
pub(super) fn client(
    tls: Arc<dyn quinn_proto::crypto::ClientConfig>,
    transport: Arc<TransportConfig>,
    cid: &[u8],
    prove: impl FnOnce(&[u8]) -> Bytes,
) -> ClientConfig {
    let mut config = ClientConfig::new(tls);
    let first = ConnectionId::new(cid);
    let proof = FirstFlightProof(prove(&first));
    config
        .transport_config(transport)
        .token_store(Arc::new(proof))
        .initial_dst_cid_provider(Arc::new(move || first));
    config
}

/// What the first datagrams of one connection say in their token field.
struct FirstFlightProof(Bytes);

impl TokenStore for FirstFlightProof {
    // No token of a responder's serves another connection.
    fn insert(&self, _: &str, _: Bytes) {}

    fn take(&self, _: &str) -> Option<Bytes> {
        Some(self.0.clone())
    }
}

/// What the ids begin with that are made next: each connection has a number of its own, by which the receiver of datagrams
/// knows those of peers' streams.
#[derive(Debug, Default)]
pub(super) struct CidMark(AtomicU32);

impl CidMark {
    pub(super) fn set(&self, mark: u32) {
        self.0.store(mark, Ordering::Relaxed);
    }
}

/// Connection ids from the node's seed.
struct Cids {
    stream: Keystream,
    mark: Arc<CidMark>,
}

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = self.stream.next_block();
        let mark = self.mark.0.load(Ordering::Relaxed).to_be_bytes();
        id.iter_mut().zip(mark).for_each(|(byte, mark)| *byte = mark);
        ConnectionId::new(id.get(..CID_LEN).unwrap_or_default())
    }

    fn cid_len(&self) -> usize {
        CID_LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The node's time as Retry tokens want it: only differences matter, so it begins in 1970.
#[derive(Debug, Default)]
pub(super) struct TokenClock(AtomicU64);

impl TokenClock {
    pub(super) fn set(&self, now: Time) {
        self.0.store(now.as_nanos(), Ordering::Relaxed);
    }
}

impl TimeSource for TokenClock {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
