//! The compression ratio of each codec on a class, and the break-even link rate.

use serde::{Serialize, Serializer};
use strait_compress::{Method, MethodFigures as Speed};
use strait_model::{BitRate, BreakEven, ByteRates, Bytes, LinkRates, Ratio};

use super::class::by_name;
use crate::MachineModel;
use crate::classes::{ClassFigures, CompressionSample};

/// What takes no time goes at this rate, beyond any link's.
const AT_ONCE: BitRate = match BitRate::bits(1e15) {
    Some(rate) => rate,
    None => panic!("a positive number"),
};

/// A codec on a class.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CodecTrial {
    /// Which.
    #[serde(serialize_with = "by_name")]
    pub method: Method,
    /// Compression ratio, each packet by itself.
    pub packet_ratio: f64,
    /// Compression ratio of blocks of packets.
    pub block_ratio: f64,
    /// Link rate up to which it pays on blocks.
    pub break_even: UpTo,
}

/// Links that compression pays on, in bits a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpTo {
    /// None.
    Never,
    /// Those up to this rate.
    Rate(f64),
    /// All: sealing what is longer takes more time than compressing it.
    Always,
}

impl UpTo {
    /// The faster of two.
    #[must_use]
    pub fn or(self, other: UpTo) -> UpTo {
        match (self, other) {
            (UpTo::Always, _) | (_, UpTo::Always) => UpTo::Always,
            (UpTo::Rate(one), UpTo::Rate(other)) => UpTo::Rate(one.max(other)),
            (UpTo::Never, other) => other,
            (one, UpTo::Never) => one,
        }
    }
}

impl Serialize for UpTo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            UpTo::Never => serializer.serialize_str("never"),
            UpTo::Rate(bits) => serializer.serialize_f64(*bits),
            UpTo::Always => serializer.serialize_str("always"),
        }
    }
}

impl CodecTrial {
    /// Every candidate; none when nothing was tried.
    pub(super) fn all(figures: &ClassFigures, machine: &MachineModel) -> Vec<CodecTrial> {
        if figures.together.before == 0 {
            return Vec::new();
        }
        let speeds = machine.codecs.figures().iter().enumerate();
        speeds.map(|(place, speed)| CodecTrial::new(place, speed, figures, machine)).collect()
    }

    fn new(place: usize, speed: &Speed, figures: &ClassFigures, machine: &MachineModel) -> CodecTrial {
        let together = ratio(&figures.together, place);
        let block = Bytes(figures.together.block().max(1));
        let rates = LinkRates {
            compress: speed.compress.rate(block).unwrap_or(AT_ONCE),
            decompress: speed.expand.rate(block).unwrap_or(AT_ONCE),
        };
        let path = ByteRates { further: machine.handling(), ..ByteRates::default() };
        CodecTrial {
            method: speed.method,
            packet_ratio: ratio(&figures.alone, place).get(),
            block_ratio: together.get(),
            break_even: match path.network_up_to(together, &rates) {
                BreakEven::Never => UpTo::Never,
                BreakEven::At(rate) => UpTo::Rate(rate.as_bits()),
                BreakEven::Always => UpTo::Always,
            },
        }
    }
}

fn ratio(sample: &CompressionSample, place: usize) -> Ratio {
    let after = sample.after.get(place).copied().unwrap_or(sample.before);
    Ratio::new(sample.before as f64 / after.max(1) as f64).unwrap_or(Ratio::ONE)
}
