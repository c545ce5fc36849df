//! What the paper says of throughput, and what it is judged by.

pub(super) mod rules;

use super::tables::AlgorithmTable;
use crate::enskip::printed::{DX2, ETHERNET, MACHINES, TABLE};

/// Rows of rates by name.
pub(super) type NamedRates = Vec<(String, Vec<f64>)>;

/// Figures that sentences are judged by, as far as a set has them; lists may be empty.
#[derive(Clone, Debug)]
pub(super) struct EnskipFigures {
    /// Rates by machine or way.
    pub(super) machines: Vec<(String, AlgorithmTable)>,
    /// Which of them is a link, and which the loopback interface that it is compared with.
    pub(super) link: Option<[usize; 2]>,
    /// The share of the link's rate without ENskip up to which a combination says that the processor decides.
    pub(super) processor_decides: f64,
    /// By combination: the rate with text over that with random bytes.
    pub(super) text: Vec<(String, f64)>,
    /// By algorithm: rates with keys of 40, 64 and 128 bits; a row of one figure is of a key that stays short.
    pub(super) keys: NamedRates,
    /// By Kij algorithm: rates with few to many packets of a packet key.
    pub(super) kij: NamedRates,
    /// Parts of a hundred of a processor, the whole first, and the rate with that share.
    pub(super) shares: Vec<[f64; 2]>,
}

impl EnskipFigures {
    /// The paper's. Its link is compared with the loopback interface of the slower of its machines.
    pub(super) fn printed() -> EnskipFigures {
        EnskipFigures {
            machines: MACHINES.iter().map(|name| (*name).to_owned()).zip(TABLE).collect(),
            link: Some([ETHERNET, DX2]),
            processor_decides: 1.0,
            text: Vec::new(),
            keys: Vec::new(),
            kij: Vec::new(),
            shares: Vec::new(),
        }
    }
}
