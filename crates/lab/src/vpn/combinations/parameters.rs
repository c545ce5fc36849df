//! Table 7: what is combined with what, and what comes of one combination.

mod change;

use strait_model::{BitRate, ByteRates, Compression, LinkRates, ModelPacket, Ratio, Security, Stages};

use super::pipelined::PipelineSize;
use crate::vpn::printed::{self, DEFLATE, EFFICIENCY, FILES, LZS, NETWORKS, SIZES};
use crate::vpn::transaction::{self, Headers, PAYLOADS, Parts, TABLE7_PARTS, network};

/// The value of a parameter for a step that is not done.
pub(super) const NULL: &str = "NULL";
/// Classes of algorithms (section 7), named for what sets them apart.
pub(super) const AUTHENTICATION: &str = "authentication only";
pub(super) const FAST: &str = "RC5";
pub(super) const SLOW: &str = "3DES";
pub(super) const CLASSES: [&str; 4] = [NULL, AUTHENTICATION, FAST, SLOW];

/// The values of every parameter. Payloads are those of [`SIZES`].
#[derive(Clone, Debug)]
pub(super) struct Parameters {
    /// Name and Mbit/s; the paper's first.
    pub(super) networks: Vec<(&'static str, f64)>,
    /// The benchmarks.
    pub(super) files: Vec<String>,
    /// The paper's nine first.
    pub(super) protections: Vec<PaperProtection>,
    /// DEFLATE and LZS first.
    pub(super) codecs: Vec<CodecFigures>,
    /// Stages that work at the same time; nothing where they come one after another, as in the paper.
    pub(super) pipeline: Option<PipelineSize>,
    /// Speedups of some cells with the recommended codec that were measured, and are not computed; then there are no other cells.
    pub(super) measured: Vec<(ParameterCell, f64)>,
}

/// Encryption and authentication.
#[derive(Clone, Debug)]
pub(super) struct PaperProtection {
    pub(super) encryption: &'static str,
    pub(super) authentication: &'static str,
    /// What it is counted with.
    pub(super) class: &'static str,
    /// With the rates for each payload.
    pub(super) security: [Security; 3],
}

/// A codec on each file's blocks of each length.
#[derive(Clone, Debug)]
pub(super) struct CodecFigures {
    pub(super) name: String,
    pub(super) files: Vec<[Compression; 3]>,
}

/// A combination but for compression: places of the values of the other parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ParameterCell {
    pub(super) protection: usize,
    pub(super) size: usize,
    pub(super) file: usize,
    pub(super) network: usize,
}

impl Parameters {
    /// Table 7, with the rates and ratios of Tables 1 and 4 to 6.
    pub(super) fn printed() -> Parameters {
        let rates = [0, 1, 2].map(|size| transaction::printed(size, 0.0));
        Parameters {
            networks: NETWORKS.to_vec(),
            files: FILES.map(str::to_owned).to_vec(),
            protections: papers(|size| &rates[size]),
            codecs: [DEFLATE, LZS].iter().map(CodecFigures::printed).collect(),
            pipeline: None,
            measured: Vec::new(),
        }
    }

    /// What of it the paper has as well: its networks, algorithms and codecs.
    pub(super) fn of_the_paper(&self) -> Parameters {
        let mut papers = self.clone();
        papers.networks.truncate(NETWORKS.len());
        papers.protections.truncate(TABLE7_PARTS.len());
        papers.codecs.truncate(2);
        papers
    }

    /// Every cell: each stands for as many combinations as there are codecs, and one without.
    pub(super) fn cells(&self) -> impl Iterator<Item = ParameterCell> + '_ {
        let (networks, files, sizes) = (self.networks.len(), self.files.len(), SIZES.len());
        let all = (0..self.protections.len() * sizes * files * networks).map(move |at| ParameterCell {
            network: at % networks,
            file: at / networks % files,
            size: at / networks / files % sizes,
            protection: at / networks / files / sizes,
        });
        all.filter(|cell| self.has(*cell))
    }

    /// True if there are figures of a cell.
    pub(super) fn has(&self, cell: ParameterCell) -> bool {
        self.measured.is_empty() || self.measured_gain(cell).is_some()
    }

    fn measured_gain(&self, cell: ParameterCell) -> Option<f64> {
        self.measured.iter().find(|(measured, _)| *measured == cell).map(|(_, gain)| *gain)
    }

    /// The codec that section 7 recommends: DEFLATE on the two slow networks, LZS on the others.
    pub(super) fn recommended(cell: ParameterCell) -> usize {
        usize::from(cell.network >= SLOW_NETWORKS)
    }

    pub(super) fn protection(&self, cell: ParameterCell) -> &PaperProtection {
        &self.protections[cell.protection]
    }

    pub(super) fn compression(&self, cell: ParameterCell, codec: usize) -> &Compression {
        &self.codecs[codec].files[cell.file][cell.size]
    }

    /// The time of each stage with a codec, or without.
    pub(super) fn stages(&self, cell: ParameterCell, codec: Option<usize>) -> Stages {
        let (packet, network) = (packet(cell), network(self.networks[cell.network].1));
        let security = &self.protection(cell).security[cell.size];
        codec.map_or_else(
            || security.stages(packet, &network),
            |codec| security.compressed(packet, &network, self.compression(cell, codec)),
        )
    }

    /// Mbit/s of payload that all of a protection's algorithms together do at the sender.
    pub(super) fn suite_rate(&self, protection: usize, size: usize) -> f64 {
        let cell = ParameterCell { protection, size, file: 0, network: 0 };
        PAYLOADS[size].0 as f64 * 8.0 / 1e6 / self.stages(cell, None).at_sender().0
    }

    /// The speedup of section 6.1, headers counted: in a pipeline, how many times as many packets pass.
    pub(super) fn gain(&self, cell: ParameterCell, codec: usize) -> f64 {
        if let Some(measured) = self.measured_gain(cell) {
            return measured;
        }
        self.pace(&self.stages(cell, None)) / self.pace(&self.stages(cell, Some(codec)))
    }

    /// The codec with the highest speedup, and that.
    pub(super) fn best(&self, cell: ParameterCell) -> (usize, f64) {
        let gains = (0..self.codecs.len()).map(|codec| (codec, self.gain(cell, codec)));
        gains.reduce(|a, b| if b.1 > a.1 { b } else { a }).unwrap_or((0, f64::NAN))
    }

    /// The speedup of Figure 5, headers left aside, and whether the inequality of section 6.2 holds.
    pub(super) fn without_headers(&self, cell: ParameterCell, codec: usize) -> (f64, bool) {
        let security = &self.protection(cell).security[cell.size];
        let rate = BitRate::megabits(self.networks[cell.network].1).and_then(|rate| rate.share(EFFICIENCY));
        let (path, compression) =
            (ByteRates { network: rate, ..path(security) }, self.compression(cell, codec));
        let rates = rates(compression);
        // What is sent as it was has no second term of its own: it is not expanded.
        let gain = if compression.ratio.saving() > 0.0 {
            path.gain(compression.ratio, &rates)
        } else {
            path.byte() / (path.byte() + compression.compress.byte())
        };
        (gain, path.pays(compression.ratio, &rates))
    }

    /// A cell in words, but for its file and its network.
    pub(super) fn rest_of_name(&self, cell: ParameterCell) -> String {
        format!("{}, {}", SIZES[cell.size].0, self.protection(cell).name())
    }

    /// The place of a protection.
    pub(super) fn place(&self, encryption: &str, authentication: &str) -> Option<usize> {
        let is = |it: &PaperProtection| it.encryption == encryption && it.authentication == authentication;
        self.protections.iter().position(is)
    }
}

/// How many of [`NETWORKS`] are slow: those for which section 7 recommends DEFLATE.
pub(super) const SLOW_NETWORKS: usize = 2;

impl PaperProtection {
    /// Both algorithms, as the paper writes them.
    pub(super) fn name(&self) -> String {
        match (self.encryption, self.authentication) {
            (NULL, authentication) => authentication.to_owned(),
            (encryption, NULL) => encryption.to_owned(),
            (encryption, authentication) => format!("{encryption}/{authentication}"),
        }
    }
}

fn packet(cell: ParameterCell) -> ModelPacket {
    ModelPacket::tcp(PAYLOADS[cell.size])
}

/// What the inequality takes of a protection; the network is still to come.
pub(super) fn path(security: &Security) -> ByteRates {
    let hash = security.esp.and_then(|esp| esp.hash).or(security.ah.map(|ah| ah.hash));
    ByteRates {
        encrypt: security.esp.map(|esp| esp.encrypt),
        decrypt: security.esp.map(|esp| esp.decrypt),
        compute: hash.map(|hash| hash.compute),
        verify: hash.map(|hash| hash.verify),
        ..ByteRates::default()
    }
}

/// What the inequality takes of a codec.
pub(super) fn rates(compression: &Compression) -> LinkRates {
    LinkRates { compress: compression.compress, decompress: compression.decompress }
}

/// The paper's nine protections, from the rates of its algorithms at each length.
pub(super) fn papers<'a>(
    rates: impl Fn(usize) -> &'a [transaction::TransactionRates],
) -> Vec<PaperProtection> {
    let one = |parts: Parts| {
        let (cipher, hash) = parts;
        let name = |part: Option<usize>| part.map_or(NULL, |row| printed::TABLE1[row].0);
        let (encryption, authentication) = (name(cipher), name(hash));
        let class = match (cipher, hash) {
            (Some(_), _) => encryption,
            (None, Some(_)) => AUTHENTICATION,
            (None, None) => NULL,
        };
        let security = [0, 1, 2].map(|size| transaction::papers(parts, rates(size), Headers::PAPER));
        PaperProtection { encryption, authentication, class, security }
    };
    TABLE7_PARTS.map(one).to_vec()
}

impl CodecFigures {
    fn printed(codec: &printed::PrintedCodec) -> CodecFigures {
        let file = |file: usize| {
            [0, 1, 2].map(|size| {
                let [ratio, compress, expand] =
                    [&codec.ratio, &codec.compress, &codec.expand].map(|table| table[file][size]);
                compression(ratio, compress, expand)
                    .unwrap_or_else(|| unreachable!("Tables 4 to 6 hold ratios and rates"))
            })
        };
        CodecFigures { name: codec.name.to_owned(), files: (0..FILES.len()).map(file).collect() }
    }
}

/// A codec on some blocks, from its ratio and Mbit/s, if these are such. A zero for expanding says that nothing is
/// ever expanded (section 5.5): blocks are sent as they were, with a ratio of 1.
pub(super) fn compression(ratio: f64, compress: f64, expand: f64) -> Option<Compression> {
    let compress = BitRate::megabits(compress)?;
    if expand == 0.0 {
        return Some(Compression { ratio: Ratio::ONE, compress, decompress: compress });
    }
    Some(Compression { ratio: Ratio::new(ratio)?, compress, decompress: BitRate::megabits(expand)? })
}
