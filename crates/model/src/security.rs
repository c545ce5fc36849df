//! ESP and AH around a packet in transport mode: what they add, what they work on, and how long that takes.

use crate::{BitRate, Bytes, ModelPacket, NetworkModel, Stages};

/// ESP's fields before the IV: SPI and sequence number (RFC 4303 section 2).
const ESP_HEADER: Bytes = Bytes(8);
/// ESP's fields behind the padding: its length and the next header (RFC 4303 section 2).
const ESP_TRAILER: Bytes = Bytes(2);
/// What ESP's ciphertext is a multiple of at least (RFC 4303 section 2.4).
const ESP_ALIGNMENT: u64 = 4;
/// AH's fields before the ICV (RFC 4302 section 2).
const AH_HEADER: Bytes = Bytes(12);

/// How fast an integrity algorithm is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hash {
    /// Computing at the sender.
    pub compute: BitRate,
    /// Verifying at the receiver.
    pub verify: BitRate,
}

/// An ESP association (RFC 4303).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EspModel {
    /// The IV in each packet.
    pub iv: Bytes,
    /// The cipher's block, which the text is padded to; at most 4 for those that need none.
    pub block: Bytes,
    /// The ICV behind the text; none when integrity is left to AH.
    pub icv: Bytes,
    /// How fast the cipher, or the AEAD as a whole, is at the sender.
    pub encrypt: BitRate,
    /// And at the receiver.
    pub decrypt: BitRate,
    /// The algorithm that makes the ICV, when that is not the cipher itself.
    pub hash: Option<Hash>,
}

/// An AH association (RFC 4302).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AhModel {
    /// The ICV, with any padding of it.
    pub icv: Bytes,
    /// The algorithm that makes it.
    pub hash: Hash,
}

/// What is done to a packet: AH in front of ESP where there are both (section 3.5 of the paper).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Security {
    /// Encryption.
    pub esp: Option<EspModel>,
    /// Authentication of the whole packet.
    pub ah: Option<AhModel>,
}

impl EspModel {
    /// The text, padded, with its trailer: what the cipher works on.
    fn ciphertext(&self, body: Bytes) -> Bytes {
        Bytes((body + ESP_TRAILER).0.next_multiple_of(self.block.0.max(ESP_ALIGNMENT)))
    }

    /// What its ICV covers: all but the ICV itself (RFC 4303 section 3.3.2.1).
    fn covered(&self, body: Bytes) -> Bytes {
        ESP_HEADER + self.iv + self.ciphertext(body)
    }
}

impl AhModel {
    /// What its ICV covers: the whole packet, with zeros for the ICV (RFC 4302 section 3.3.3).
    fn covered(&self, body: Bytes) -> Bytes {
        ModelPacket::IP_HEADER + AH_HEADER + self.icv + body
    }
}

impl Security {
    /// The packet in the clear.
    pub const NONE: Security = Security { esp: None, ah: None };

    /// What is behind the IP header once the packet is secured.
    #[must_use]
    pub fn body(&self, packet: ModelPacket) -> Bytes {
        self.around(packet.body())
    }

    /// The same of anything that stands behind an IP header.
    pub(crate) fn around(&self, body: Bytes) -> Bytes {
        let inside = self.behind_ah(body);
        self.ah.map_or(inside, |ah| AH_HEADER + ah.icv + inside)
    }

    /// The same without AH's own header.
    fn behind_ah(&self, body: Bytes) -> Bytes {
        self.esp.map_or(body, |esp| esp.covered(body) + esp.icv)
    }

    /// How long each stage takes.
    #[must_use]
    pub fn stages(&self, packet: ModelPacket, network: &NetworkModel) -> Stages {
        self.stages_of(packet.body(), network)
    }

    /// The same of anything that stands behind an IP header.
    pub(crate) fn stages_of(&self, body: Bytes, network: &NetworkModel) -> Stages {
        let mut stages = Stages { transmit: network.time(self.around(body)), ..Stages::default() };
        if let Some(esp) = &self.esp {
            let text = esp.ciphertext(body);
            stages.encrypt = text / esp.encrypt;
            stages.decrypt = text / esp.decrypt;
            if let Some(hash) = esp.hash {
                stages.hashed(hash, esp.covered(body));
            }
        }
        if let Some(ah) = &self.ah {
            stages.hashed(ah.hash, ah.covered(self.behind_ah(body)));
        }
        stages
    }

    /// The bare packet's time over the secured packet's: 1 when security costs nothing, 0.5 when it doubles the time
    /// (section 4.2 of the paper).
    #[must_use]
    pub fn speedup(&self, packet: ModelPacket, network: &NetworkModel) -> f64 {
        network.time(packet.body()) / self.stages(packet, network).total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(megabits: f64) -> BitRate {
        BitRate::megabits(megabits).unwrap()
    }

    fn network(megabits: f64) -> NetworkModel {
        NetworkModel::new(rate(megabits), 0.8, NetworkModel::MTU).unwrap()
    }

    fn hash(megabits: f64) -> Hash {
        Hash { compute: rate(megabits), verify: rate(megabits) }
    }

    fn esp(icv: u64, hash: Option<Hash>) -> EspModel {
        EspModel {
            iv: Bytes(16),
            block: Bytes(16),
            icv: Bytes(icv),
            encrypt: rate(100.0),
            decrypt: rate(200.0),
            hash,
        }
    }

    #[test]
    fn each_stage_by_hand() {
        // 1020 bytes behind the IP header and 2 of trailer make 64 blocks of 16; ESP in all 8 + 16 + 1024 + 12.
        let security = Security { esp: Some(esp(12, Some(hash(300.0)))), ah: None };
        let stages = security.stages(ModelPacket::tcp(Bytes(1000)), &network(10.0));
        assert_eq!(stages.encrypt, Bytes(1024) / rate(100.0));
        assert_eq!(stages.decrypt, Bytes(1024) / rate(200.0));
        assert_eq!(stages.compute, Bytes(1048) / rate(300.0));
        assert_eq!(stages.verify, stages.compute);
        assert_eq!(stages.transmit, Bytes(1100) / rate(8.0));
        // AH covers the IP header, itself, and ESP.
        let ah = AhModel { icv: Bytes(20), hash: hash(100.0) };
        let security = Security { esp: Some(esp(0, None)), ah: Some(ah) };
        assert_eq!(security.body(ModelPacket::tcp(Bytes(1000))), Bytes(32 + 1048));
        let stages = security.stages(ModelPacket::tcp(Bytes(1000)), &network(10.0));
        assert_eq!(stages.compute, Bytes(40 + 32 + 1048) / rate(100.0));
        assert_eq!(stages.transmit, Bytes(40 + 32 + 1048) / rate(8.0));
        let total = stages.encrypt.0 + stages.compute.0 * 2.0 + stages.transmit.0 + stages.decrypt.0;
        assert!((stages.total().0 - total).abs() < 1e-12);
    }

    #[test]
    fn the_text_is_padded_to_the_block_and_to_four() {
        let padded = |block, body| EspModel { block: Bytes(block), ..esp(0, None) }.ciphertext(Bytes(body)).0;
        for (block, body, expected) in [(1, 18, 20), (1, 19, 24), (8, 22, 24), (8, 23, 32), (16, 0, 16)] {
            assert_eq!(padded(block, body), expected, "{body} bytes in blocks of {block}");
        }
    }

    #[test]
    fn nothing_done_costs_nothing() {
        let packet = ModelPacket::tcp(Bytes(4096));
        assert_eq!(Security::NONE.speedup(packet, &network(10.0)), 1.0);
        let stages = Security::NONE.stages(packet, &network(10.0));
        assert_eq!(stages, Stages { transmit: network(10.0).time(packet.body()), ..Stages::default() });
    }

    proptest! {
        #[test]
        fn security_never_pays_and_costs_more_on_faster_links(
            payload in 0_u64..65_000,
            slow in 0.05_f64..1000.0,
            factor in 1.01_f64..100.0,
            cipher in 1.0_f64..10_000.0,
        ) {
            let packet = ModelPacket::tcp(Bytes(payload));
            let esp = EspModel { encrypt: rate(cipher), ..esp(0, None) };
            let security = Security { esp: Some(esp), ah: Some(AhModel { icv: Bytes(12), hash: hash(300.0) }) };
            let (slower, faster) = (network(slow), network(slow * factor));
            let [slower, faster] = [slower, faster].map(|network| security.speedup(packet, &network));
            prop_assert!(faster < slower && slower < 1.0 && faster > 0.0, "{slower} {faster}");
        }
    }
}
