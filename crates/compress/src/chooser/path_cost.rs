//! The cost of a path: what a unit meets besides the codec, and how long that takes.

use core::num::NonZeroU32;

use strait_model::{BitRate, Bytes, Seconds, Stages};

use crate::{Codec, CodecSet, Method};

/// Seconds that an end spends on every byte, compression aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerByteCost {
    /// Seconds to take a byte of an inner packet from the host, or to deliver it.
    pub inner: Seconds,
    /// Seconds to send or receive a byte of a datagram.
    pub outer: Seconds,
    /// Seconds to seal or open a byte of a datagram.
    pub crypto: Seconds,
}

impl PerByteCost {
    /// Measured: 0.11 to 0.13 s of processor time a gigabit at either end with AES-128-GCM, 0.05 s of them for that
    /// (one TCP stream through two namespaces with offloads); what is not crypto divides about one to two.
    pub const MEASURED: PerByteCost =
        PerByteCost { inner: Seconds(0.19e-9), outer: Seconds(0.37e-9), crypto: Seconds(0.4e-9) };

    /// The same with `nanos` a packet of `bytes` for sealing it and as many for opening it.
    #[must_use]
    pub fn with_crypto(self, nanos: u32, bytes: usize) -> PerByteCost {
        PerByteCost { crypto: Seconds(f64::from(nanos) * 0.5e-9 / bytes.max(1) as f64), ..self }
    }
}

/// The costs of the peer, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeerCosts {
    /// Its cost per byte, compression aside.
    pub handling: PerByteCost,
    /// How many times longer than this machine it takes to expand, by codec.
    pub expand: [f64; Codec::ALL.len()],
}

impl PeerCosts {
    /// The costs of a peer like this node.
    pub const ALIKE: PeerCosts =
        PeerCosts { handling: PerByteCost::MEASURED, expand: [1.0; Codec::ALL.len()] };
}

/// The costs of both ends of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndpointCosts {
    /// The costs of this end.
    pub here: PerByteCost,
    /// The costs of the peer.
    pub there: PeerCosts,
}

impl EndpointCosts {
    /// Two alike, as measured beforehand.
    pub const ALIKE: EndpointCosts = EndpointCosts { here: PerByteCost::MEASURED, there: PeerCosts::ALIKE };

    /// The same with the other end so many times as slow in everything; what is beyond 64 times either way is not believed.
    #[must_use]
    pub fn loaded(mut self, times: f64) -> EndpointCosts {
        let times = times.clamp(1.0 / 64.0, 64.0);
        let PeerCosts { handling: PerByteCost { inner, outer, crypto }, expand } = &mut self.there;
        for time in [inner, outer, crypto] {
            *time = *time * times;
        }
        for codec in expand {
            *codec *= times;
        }
        self
    }
}

/// The path from here to a peer, at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCost {
    /// The link's rate; nothing when it was not given, so that it is taken not to limit.
    pub rate: Option<BitRate>,
    /// Engines here that compress units side by side, where several are under way.
    pub engines: NonZeroU32,
    /// Whether more waits behind the unit, or it has waited itself.
    pub waiting: bool,
    /// Bytes of payload that a datagram takes.
    pub room: usize,
    /// Bytes around each on the wire.
    pub around: usize,
    /// Codecs that both ends have.
    pub codecs: CodecSet,
    /// The only method, where not even the level can be chosen.
    pub only: Option<Method>,
    /// Bytes of history that the unit would be compressed behind.
    pub prefix: usize,
    /// The costs of both ends, per byte.
    pub ends: EndpointCosts,
}

impl PathCost {
    /// Whether throughput counts, and not how soon the unit arrives: when something waits. Where no rate is
    /// known nothing ever waits here, and what limits is one of the processors.
    #[must_use]
    pub fn counts_throughput(&self) -> bool {
        self.waiting || self.rate.is_none()
    }

    /// The stages of a unit of `inner` bytes that travels as `payload` bytes.
    pub(super) fn stages(&self, inner: Bytes, payload: Bytes) -> Stages {
        let datagrams = payload.0.div_ceil(self.room.max(1) as u64);
        let wire = payload + Bytes(self.around as u64) * datagrams;
        let (sent, own) = (payload.0 as f64, inner.0 as f64);
        let other = self.ends.there.handling;
        Stages {
            encrypt: self.ends.here.crypto * sent,
            transmit: self.rate.map_or(Seconds(0.0), |rate| wire / rate),
            decrypt: other.crypto * sent,
            sender: self.ends.here.inner * own + self.ends.here.outer * sent,
            receiver: other.outer * sent + other.inner * own,
            ..Stages::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_by_hand() {
        let path_cost = PathCost {
            rate: BitRate::megabits(8.0),
            engines: NonZeroU32::MIN,
            waiting: false,
            room: 1_000,
            around: 50,
            codecs: CodecSet::ALL,
            only: None,
            prefix: 0,
            ends: EndpointCosts {
                here: PerByteCost { inner: Seconds(1e-9), outer: Seconds(2e-9), crypto: Seconds(3e-9) },
                there: PeerCosts::ALIKE,
            },
        };
        let stages = path_cost.stages(Bytes(4_000), Bytes(2_500));
        // Three datagrams: 2,650 bytes at a microsecond each.
        assert!((stages.transmit.0 - 2_650e-6).abs() < 1e-12);
        assert!((stages.encrypt.0 - 7_500e-9).abs() < 1e-15);
        assert!((stages.sender.0 - 9_000e-9).abs() < 1e-15);
        assert_eq!(
            PathCost { rate: None, ..path_cost }.stages(Bytes(4_000), Bytes(2_500)).transmit,
            Seconds(0.0)
        );
        assert!(!path_cost.counts_throughput() && PathCost { rate: None, ..path_cost }.counts_throughput());
        assert!(PathCost { waiting: true, ..path_cost }.counts_throughput());
    }

    #[test]
    fn crypto_from_a_ranking() {
        let handling = PerByteCost::MEASURED.with_crypto(2_800, 1_400);
        assert!((handling.crypto.0 - 1e-9).abs() < 1e-15, "half of the nanoseconds are the sender's");
    }
}
