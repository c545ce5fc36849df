//! What the sites of a run are, read from four bytes.

use strait_ipsec::inbound::UdpOffload;
use strait_ipsec::outbound::Queueing;
use strait_ipsec::{IvMode, Payloads, RepairTerms};
use strait_scheduler::Rate;

use super::operation::{payloads, rate};

/// Bytes of the settings.
pub const SETTINGS_LEN: usize = 4;

/// What the sites of a run are, all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSettings {
    /// Threads beside the one that carries packets, at the sender and at the receiver.
    pub workers: [usize; 2],
    /// What may be inside, at first.
    pub payloads: Payloads,
    /// The pace towards each peer, at first.
    pub pace: Option<Rate>,
    /// The rules, at first.
    pub rules: u8,
    /// Largest outer packet, where it is not found out.
    pub mtu: Option<u16>,
    /// What the hosts take.
    pub udp_offload: UdpOffload,
    /// Where the IV is.
    pub iv: IvMode,
    /// Whether queues drop nothing before they are full.
    pub lossless: bool,
    /// Whether losses are repaired.
    pub repair: RepairTerms,
}

impl DataSettings {
    /// The settings that these bytes say; there are some for any.
    #[must_use]
    pub fn read([a, b, c, d]: [u8; SETTINGS_LEN]) -> DataSettings {
        let bit = |number: u8| d >> number & 1 == 1;
        DataSettings {
            workers: [usize::from(a & 3), usize::from(a >> 2 & 3)],
            payloads: payloads(b),
            pace: rate(c),
            rules: a >> 4,
            mtu: [Some(1500), None, Some(1280), Some(9000)][usize::from(d & 3)],
            udp_offload: if bit(2) { UdpOffload::Supported } else { UdpOffload::Unsupported },
            iv: if bit(3) { IvMode::Explicit } else { IvMode::Implicit },
            lossless: bit(4),
            repair: match (bit(5), bit(6)) {
                (false, _) => RepairTerms::Off,
                (true, false) => RepairTerms::Kept,
                (true, true) => RepairTerms::OnNotice,
            },
        }
    }

    /// How packets wait, at first.
    pub(super) fn queueing(&self) -> Queueing {
        Queueing { lossless: self.lossless, ..Queueing::NORMAL }
    }
}
