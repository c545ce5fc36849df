//! A peer with manual keys, as it is shown before any packet.

use strait_ipsec::{Fragments, SequenceNumbers};

use super::{ManualReport, ProtocolReport};
use crate::config::{
    Manual, ManualAh, ManualCarrier, ManualEsp, ManualMode, ManualPayloads, ManualProtection,
};

impl ManualReport {
    /// What the file says, with nothing counted yet.
    #[must_use]
    pub fn of(manual: &Manual) -> ManualReport {
        ManualReport {
            mode: match manual.mode {
                ManualMode::Tunnel => "tunnel",
                ManualMode::Transport(_) => "transport",
            }
            .to_owned(),
            carrier: match manual.carrier {
                ManualCarrier::Udp => "udp",
                ManualCarrier::Ip(_) => "ip",
            }
            .to_owned(),
            local: manual.hosts().map(|hosts| hosts.local.to_string()),
            esn: manual.sequence == SequenceNumbers::Bits64,
            protocols: [manual.ah.as_ref().map(ah), manual.esp.as_ref().map(esp), ipcomp(manual.inside)]
                .into_iter()
                .flatten()
                .collect(),
            aggfrag: manual.inside == ManualPayloads::Aggfrag,
            outer_fragmentation: manual.fragments == Fragments::Outer,
            last_sequence_number: 0,
            inbound_packets: 0,
            inbound_bytes: 0,
            outbound_packets: 0,
            outbound_bytes: 0,
            last_received_age_seconds: None,
            last_sent_age_seconds: None,
        }
    }
}

fn ah(ah: &ManualAh) -> ProtocolReport {
    ProtocolReport {
        protocol: "ah".to_owned(),
        algorithms: vec![ah.keys.algorithm().to_string()],
        inbound_spi: ah.spi.inbound.to_string(),
        outbound_spi: ah.spi.outbound.to_string(),
    }
}

fn esp(esp: &ManualEsp) -> ProtocolReport {
    let algorithms = match &esp.protection {
        ManualProtection::Aead(keys) => vec![keys.algorithm().to_string()],
        ManualProtection::Separate { cipher, integrity } => {
            let integrity = integrity.as_ref().map(|keys| keys.algorithm().to_string());
            [cipher.algorithm().to_string()].into_iter().chain(integrity).collect()
        }
    };
    ProtocolReport {
        protocol: "esp".to_owned(),
        algorithms,
        inbound_spi: esp.spi.inbound.to_string(),
        outbound_spi: esp.spi.outbound.to_string(),
    }
}

fn ipcomp(inside: ManualPayloads) -> Option<ProtocolReport> {
    let ManualPayloads::Ipcomp { algorithm, inbound, outbound } = inside else { return None };
    Some(ProtocolReport {
        protocol: "ipcomp".to_owned(),
        algorithms: vec![algorithm.to_string()],
        inbound_spi: inbound.0.to_string(),
        outbound_spi: outbound.0.to_string(),
    })
}
