//! One combination of Table 7 with all that comes of it, for programs.

use serde::Serialize;
use strait_model::Stages;

use super::parameters::{NULL, Parameters};
use crate::vpn::transaction::PAYLOADS;

/// One combination: the value of each parameter, the time of each stage, and what compression does to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Combination {
    /// The cipher in ESP, or the whole of ESP where that is one algorithm; `NULL` for none.
    pub encryption: &'static str,
    /// The integrity algorithm, or `NULL`.
    pub authentication: &'static str,
    /// The codec, or `NULL`.
    pub compression: String,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// The file that the payload is of.
    pub benchmark: String,
    /// The network's name.
    pub network: &'static str,
    /// Its rate in bit/s, of which 80 % can be used.
    pub network_bits_per_second: f64,
    /// The time of each stage.
    pub seconds: Times,
    /// The time without compression over the time with it, headers counted (section 6.1).
    pub speedup: f64,
    /// True if the inequality says that compression pays (section 6.2); nothing without compression, and in a pipeline, for which it is not.
    pub inequality: Option<bool>,
    /// The segment that sets the pace of a pipeline; nothing where stages come one after another.
    pub slowest: Option<&'static str>,
}

/// Seconds in each stage (section 2); zero for what is not done.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Compressing.
    pub compress: f64,
    /// Encrypting.
    pub encrypt: f64,
    /// Computing the hash.
    pub compute_hash: f64,
    /// On the network.
    pub transmit: f64,
    /// Verifying the hash.
    pub verify_hash: f64,
    /// Decrypting.
    pub decrypt: f64,
    /// Expanding.
    pub decompress: f64,
    /// All of them.
    pub total: f64,
}

impl From<Stages> for Times {
    fn from(stages: Stages) -> Times {
        Times {
            compress: stages.compress.0,
            encrypt: stages.encrypt.0,
            compute_hash: stages.compute.0,
            transmit: stages.transmit.0,
            verify_hash: stages.verify.0,
            decrypt: stages.decrypt.0,
            decompress: stages.decompress.0,
            total: stages.total().0,
        }
    }
}

/// Every combination, the codecs next to each other.
pub(super) fn all(parameters: &Parameters) -> Vec<Combination> {
    let codecs = || (0..parameters.codecs.len()).map(Some).chain([None]);
    let cells = parameters.cells().flat_map(|cell| codecs().map(move |codec| (cell, codec)));
    cells
        .map(|(cell, codec)| {
            let (network, megabits) = parameters.networks[cell.network];
            let stages = parameters.stages(cell, codec);
            let compared = codec.filter(|_| parameters.pipeline.is_none());
            Combination {
                encryption: parameters.protection(cell).encryption,
                authentication: parameters.protection(cell).authentication,
                compression: codec.map_or(NULL, |codec| &parameters.codecs[codec].name).to_owned(),
                payload_bytes: PAYLOADS[cell.size].0,
                benchmark: parameters.files[cell.file].clone(),
                network,
                network_bits_per_second: megabits * 1e6,
                seconds: stages.into(),
                speedup: codec.map_or(1.0, |codec| parameters.gain(cell, codec)),
                inequality: compared.map(|codec| parameters.without_headers(cell, codec).1),
                slowest: parameters.slowest(&stages),
            }
        })
        .collect()
}
