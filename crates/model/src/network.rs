//! The link between the two parties: its rate, what of it can be used, and how large packets may be.

use crate::{BitRate, Bytes, ModelPacket, Seconds};

/// The fragment header (RFC 8200 section 4.5).
const FRAGMENT_HEADER: Bytes = Bytes(8);
/// What the length of every fragment but the last is a multiple of (RFC 8200 section 4.5).
const FRAGMENT_UNIT: u64 = 8;

/// A link that packets cross whole or in fragments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkModel {
    effective: BitRate,
    mtu: Bytes,
}

impl NetworkModel {
    /// The least MTU of IPv6 (RFC 8200 section 5), which the paper sets everywhere.
    pub const MTU: Bytes = Bytes(1280);

    /// A link of `rate`, of which the share `efficiency` can be used, and which carries IP packets of at most `mtu`
    /// bytes. `None` when the share is not above 0 and at most 1, or the MTU below [`NetworkModel::MTU`].
    #[must_use]
    pub fn new(rate: BitRate, efficiency: f64, mtu: Bytes) -> Option<NetworkModel> {
        if efficiency > 1.0 || mtu < NetworkModel::MTU {
            return None;
        }
        rate.share(efficiency).map(|effective| NetworkModel { effective, mtu })
    }

    /// Bytes that cross the link for a packet with `body` behind its IP header: one packet, or as few fragments as
    /// possible, each with both headers.
    #[must_use]
    pub fn carried(&self, body: Bytes) -> Bytes {
        let headers = ModelPacket::IP_HEADER + FRAGMENT_HEADER;
        if ModelPacket::IP_HEADER + body <= self.mtu {
            return ModelPacket::IP_HEADER + body;
        }
        let most = (self.mtu.0 - headers.0) / FRAGMENT_UNIT * FRAGMENT_UNIT;
        body + headers * body.0.div_ceil(most)
    }

    /// How long that takes.
    #[must_use]
    pub fn time(&self, body: Bytes) -> Seconds {
        self.carried(body) / self.effective
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn network(mtu: u64) -> NetworkModel {
        NetworkModel::new(BitRate::megabits(10.0).unwrap(), 0.8, Bytes(mtu)).unwrap()
    }

    #[test]
    fn whole_packets_and_fragments() {
        // By hand: 1280 - 48 = 1232 bytes a fragment, itself a multiple of 8.
        for (body, carried) in
            [(1240, 1280), (1241, 1241 + 2 * 48), (2464, 2464 + 2 * 48), (2465, 2465 + 3 * 48), (4116, 4308)]
        {
            assert_eq!(network(1280).carried(Bytes(body)), Bytes(carried), "{body}");
        }
        // 1500 - 48 = 1452 is not a multiple of 8: 1448 bytes a fragment.
        assert_eq!(network(1500).carried(Bytes(2900)), Bytes(2900 + 3 * 48));
    }

    #[test]
    fn only_the_usable_share_carries() {
        assert_eq!(network(1280).time(Bytes(960)), Seconds(0.001));
    }

    #[test]
    fn what_is_no_network_is_none() {
        let rate = BitRate::megabits(10.0).unwrap();
        for (efficiency, mtu) in [(0.0, 1280), (-0.5, 1280), (1.1, 1280), (f64::NAN, 1280), (0.8, 1279)] {
            assert_eq!(NetworkModel::new(rate, efficiency, Bytes(mtu)), None, "{efficiency} {mtu}");
        }
    }

    proptest! {
        #[test]
        fn fragments_are_as_few_as_the_mtu_allows(body in 1_u64..70_000, mtu in 1280_u64..9000) {
            let carried = network(mtu).carried(Bytes(body)).0;
            if body + 40 <= mtu {
                prop_assert_eq!(carried, body + 40);
            } else {
                let fragments = (carried - body) / 48;
                prop_assert_eq!(carried, body + fragments * 48);
                prop_assert!(fragments >= 2 && fragments * (mtu - 48) >= body);
                // One fragment fewer would not do, even if every one were filled to the last unit of 8.
                prop_assert!((fragments - 1) * ((mtu - 48) / 8 * 8) < body);
            }
        }
    }
}
