//! Transport parameters of connections that carry streams.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use quinn_proto::{AckFrequencyConfig, Connection, MtuDiscoveryConfig, TransportConfig, VarInt};
use strait_ipsec::{PeerCounters, PeerId};
use strait_keying::StreamTransport;
use strait_scheduler::Rate;

use super::follow::{FollowedRate, RateFollower, RateFollowers};

/// Bytes that a stream may have under way: 10 Mbit/s times 600 ms are 750 kB. A lost datagram is known after one round
/// trip and repeated after a half more, and its repetition may be lost as well: what comes behind it waits here. It is also
/// 20 times what 1 Gbit/s times 1 ms takes.
pub(super) const WINDOW: u32 = 2_560 * 1024;
/// Bytes that a connection takes beside those that one stream may have under way: a stream whose reader has stopped keeps no other out.
const BESIDE: u32 = 512 * 1024;
/// Bytes that may wait to be sent beside what is in flight: a turn of a process, which is asked for more as they leave.
pub(super) const UNSENT: u64 = 64 * 1024;
/// Streams that a peer may have open on one connection: one a transfer.
const STREAMS: u8 = 64;
/// Nothing heard for this long ends a connection with open streams: longer than a modem's or a machine's restart, and less than
/// what NAT and state of the other end would have to be kept for.
const IDLE: u32 = 900_000;
/// Datagrams that are acknowledged together: 2 % of a link is taken by an acknowledgement for two, and 0.4 % by one for ten. What
/// is out of order is acknowledged at once.
const ACKNOWLEDGED: u8 = 10;
/// A link that is slower is thin: its datagrams are not spent on probes of its MTU, one of which takes 24 ms of this.
pub(super) const THIN: u64 = 500_000;
/// What every path is taken to carry, and what most carry: the least that an IPv6 link may have (RFC 8200 section 5), and an Ethernet.
const PATHS: (u16, u16) = (1280, 1500);
/// The search ends when no more than this is to be gained: more than half of what lies between, so that the first probe is the
/// largest, as most paths take it. A datagram of 1,472 bytes instead of 1,252 carries 1 % more of the link.
const PROBED: u16 = 111;
/// Bytes of the IP and UDP headers around a QUIC datagram.
const fn around(remote: SocketAddr) -> u16 {
    if remote.is_ipv4() { 28 } else { 48 }
}

/// Makes the transport parameters of each connection, as far as the peer at its address is known.
#[derive(Debug, Default)]
pub(super) struct PeerTransports {
    peers: Mutex<BTreeMap<PeerId, Arc<PeerCounters>>>,
}

impl PeerTransports {
    pub(super) fn add(&self, id: PeerId, counters: Arc<PeerCounters>) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).insert(id, counters);
    }

    pub(super) fn remove(&self, id: PeerId) {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// What the controller of a connection follows, which was set up here.
    pub(super) fn rate_of(&self, connection: &Connection) -> Arc<FollowedRate> {
        let controller = connection.congestion_state().clone_box().into_any();
        controller.downcast::<RateFollower>().map(|it| Arc::clone(&it.followed)).unwrap_or_default()
    }

    /// What is known of the way to a node at `remote`: its rate, and its largest outer packet.
    fn way(&self, remote: SocketAddr) -> (Option<Rate>, Option<u16>) {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let there = peers.values().find(|counters| counters.endpoint.get() == Some(remote));
        there.map_or((None, None), |counters| (counters.stream.rate(), counters.stream.outer()))
    }
}

impl StreamTransport for PeerTransports {
    fn transport(&self, remote: SocketAddr) -> Arc<TransportConfig> {
        let (rate, outer) = self.way(remote);
        let followed = Arc::new(FollowedRate::default());
        followed.set(rate, 0);
        let mut config = TransportConfig::default();
        let thin = rate.is_some_and(|rate| rate.bits() < THIN);
        let [least, most] = [PATHS.0, PATHS.1].map(|outer| outer - around(remote));
        let mut search = MtuDiscoveryConfig::default();
        search.upper_bound(most).minimum_change(PROBED);
        match outer {
            // The tunnel has found it out already.
            Some(outer) => {
                config.initial_mtu(outer.saturating_sub(around(remote))).mtu_discovery_config(None)
            }
            None => config.initial_mtu(least).mtu_discovery_config((!thin).then_some(search)),
        };
        let mut acknowledged = AckFrequencyConfig::default();
        acknowledged.ack_eliciting_threshold(ACKNOWLEDGED.into());
        config
            .max_concurrent_bidi_streams(STREAMS.into())
            .max_concurrent_uni_streams(0_u8.into())
            .max_idle_timeout(Some(VarInt::from_u32(IDLE).into()))
            .stream_receive_window(WINDOW.into())
            .receive_window((WINDOW + BESIDE).into())
            .send_window(UNSENT)
            .datagram_receive_buffer_size(None)
            .ack_frequency_config(Some(acknowledged))
            .congestion_controller_factory(Arc::new(RateFollowers(followed)))
            .allow_spin(false);
        Arc::new(config)
    }
}
