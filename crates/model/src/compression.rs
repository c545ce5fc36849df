//! What compression does to a transaction: the speedup equation of section 6.1.

use crate::{BitRate, Bytes, ModelPacket, NetworkModel, Ratio, Security, Stages};

/// A codec on some data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    /// X, with IPComp's header counted in what comes out (section 5.4).
    pub ratio: Ratio,
    /// `R_COMP`: bytes that go in.
    pub compress: BitRate,
    /// `R_DECOMP`: bytes that come out.
    pub decompress: BitRate,
}

impl Compression {
    /// What stands behind the IP header instead of this; nothing when that would not be smaller, so that it is sent as
    /// it was (RFC 3173 section 2.2).
    #[must_use]
    pub fn body(&self, body: Bytes) -> Option<Bytes> {
        Some(self.ratio.shrink(body)).filter(|smaller| *smaller < body)
    }
}

impl Security {
    /// How long each stage takes when everything behind the IP header is compressed first. What does not shrink was
    /// tried in vain, is sent as it was, and is not expanded.
    #[must_use]
    pub fn compressed(
        &self,
        packet: ModelPacket,
        network: &NetworkModel,
        compression: &Compression,
    ) -> Stages {
        let before = packet.body();
        let compress = before / compression.compress;
        match compression.body(before) {
            None => Stages { compress, ..self.stages_of(before, network) },
            Some(after) => {
                let decompress = before / compression.decompress;
                Stages { compress, decompress, ..self.stages_of(after, network) }
            }
        }
    }

    /// S of section 6.1: the time without compression over the time with it; above 1 it pays.
    #[must_use]
    pub fn gain(&self, packet: ModelPacket, network: &NetworkModel, compression: &Compression) -> f64 {
        self.stages(packet, network).total() / self.compressed(packet, network, compression).total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EspModel, Seconds};
    use proptest::prelude::*;

    fn rate(megabits: f64) -> BitRate {
        BitRate::megabits(megabits).unwrap()
    }

    fn network(megabits: f64) -> NetworkModel {
        NetworkModel::new(rate(megabits), 0.8, NetworkModel::MTU).unwrap()
    }

    fn compression(x: f64, megabits: f64) -> Compression {
        Compression {
            ratio: Ratio::new(x).unwrap(),
            compress: rate(megabits),
            decompress: rate(megabits * 2.0),
        }
    }

    fn security() -> Security {
        let esp = EspModel {
            iv: Bytes(8),
            block: Bytes(8),
            icv: Bytes(0),
            encrypt: rate(96.0),
            decrypt: rate(96.0),
            hash: None,
        };
        Security { esp: Some(esp), ah: None }
    }

    #[test]
    fn each_stage_by_hand() {
        // 1044 bytes behind the IP header become 522; with 2 of trailer 524, in blocks of 8 528.
        let packet = ModelPacket::tcp(Bytes(1024));
        let stages = security().compressed(packet, &network(10.0), &compression(2.0, 200.0));
        assert_eq!(stages.compress, Bytes(1044) / rate(200.0));
        assert_eq!(stages.decompress, Bytes(1044) / rate(400.0));
        assert_eq!(stages.encrypt, Bytes(528) / rate(96.0));
        assert_eq!(stages.transmit, Bytes(40 + 8 + 8 + 528) / rate(8.0));
    }

    #[test]
    fn what_does_not_shrink_costs_only_the_attempt() {
        let (packet, network) = (ModelPacket::tcp(Bytes(4096)), network(10.0));
        let in_vain = security().compressed(packet, &network, &compression(0.89, 150.0));
        let without = security().stages(packet, &network);
        assert_eq!(in_vain, Stages { compress: Bytes(4116) / rate(150.0), ..without });
        assert_eq!(in_vain.decompress, Seconds(0.0));
        assert!(security().gain(packet, &network, &compression(0.89, 150.0)) < 1.0);
    }

    proptest! {
        #[test]
        fn a_better_ratio_never_hurts(
            payload in 1_u64..64_512, x in 0.5_f64..30.0, more in 1.0_f64..3.0, link in 0.05_f64..100_000.0,
        ) {
            let (packet, network) = (ModelPacket::tcp(Bytes(payload)), network(link));
            // From 1 on: what just shrinks has to be expanded as well.
            let worse = security().gain(packet, &network, &compression(x.max(1.01), 200.0));
            let better = security().gain(packet, &network, &compression(x.max(1.01) * more, 200.0));
            prop_assert!(better >= worse * (1.0 - 1e-12), "{worse} {better}");
        }

        #[test]
        fn on_a_slow_link_the_gain_is_the_ratio(x in 1.1_f64..20.0) {
            let (packet, network) = (ModelPacket::tcp(Bytes(64_512)), network(1e-6));
            let bytes = |body| network.carried(security().around(body)).0 as f64;
            let expected = bytes(packet.body()) / bytes(Ratio::new(x).unwrap().shrink(packet.body()));
            let gain = security().gain(packet, &network, &compression(x, 200.0));
            prop_assert!((gain / expected - 1.0).abs() < 1e-3, "{gain} {expected}");
        }
    }
}
