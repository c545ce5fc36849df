//! What is done to a payload on its way to the broker: compressed, encrypted, and put into TLS records.

use std::fmt;
use std::io;

use strait_crypto::Suite;
use strait_transfer::sealed::chunks::ChunkWriter;
use strait_transfer::sealed::frames::FrameWriter;
use strait_transfer::sealed::{AgeRecipient, ObjectSeed, header};

use super::layer::encrypt::{AesBy, AesLayer, Rc4Layer, SuiteLayer};
use super::layer::record::{OpeningLayer, RecordLayer, RecordSuite};
use super::layer::{Below, DeflateLayer, Lz4Layer, Sink};

/// zlib-rs's level that does what zlib's own level 1, Java's `BEST_SPEED`, does: `deflate_fast` with the same parameters.
/// Level 1 of zlib-rs is another algorithm, `deflate_quick`, which zlib does not have.
pub(super) const BEST_SPEED: i32 = 2;
/// The u-coordinate of X25519's base point (RFC 7748 section 4.1): a recipient that is as good as any for measuring.
const RECIPIENT: [u8; 32] = {
    let mut point = [0; 32];
    point[0] = 9;
    point
};

/// How a payload is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    /// At this level of zlib-rs.
    Deflate(i32),
    /// At this level.
    Zstd(i32),
    Lz4,
}

/// How a payload is encrypted, so that the broker cannot read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    None,
    /// With so many bits of key.
    Rc4(usize),
    /// Likewise.
    Aes(usize, AesBy),
    Suite(Suite),
    /// age v1, as sealed objects are.
    Age,
}

/// All layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    pub(super) compression: Compression,
    pub(super) encryption: Encryption,
    /// The records on the way, which the broker's end takes off.
    pub(super) records: Option<RecordSuite>,
}

impl Chain {
    /// Nothing is done to it.
    pub(super) const BARE: Chain =
        Chain { compression: Compression::None, encryption: Encryption::None, records: None };

    /// The post's combinations, in the order of its table.
    pub(super) fn papers() -> [Chain; 8] {
        let deflate = Compression::Deflate(BEST_SPEED);
        let columns = [
            Chain::BARE,
            Chain { records: Some(RecordSuite::Rc4Md5), ..Chain::BARE },
            Chain { encryption: Encryption::Rc4(128), ..Chain::BARE },
            Chain { encryption: Encryption::Aes(128, AesBy::Instructions), ..Chain::BARE },
        ];
        core::array::from_fn(|at| Chain {
            compression: if at % 2 == 0 { Compression::None } else { deflate },
            ..columns[at / 2]
        })
    }

    /// What the post advises: TLS that authenticates only, with AES inside; plain and compressed.
    pub(super) fn advised() -> [Chain; 2] {
        [Compression::None, Compression::Deflate(BEST_SPEED)].map(|compression| Chain {
            compression,
            encryption: Encryption::Aes(128, AesBy::Instructions),
            records: Some(RecordSuite::NullSha256),
        })
    }

    /// The sender's layers, which end in `sink`.
    ///
    /// # Errors
    /// When a library refuses.
    pub(super) fn sender(self, sink: Sink) -> io::Result<Below> {
        let mut below: Below = Box::new(sink);
        if let Some(suite) = self.records {
            below = Box::new(RecordLayer::new(below, suite)?);
        }
        below = match self.encryption {
            Encryption::None => below,
            Encryption::Rc4(bits) => Box::new(Rc4Layer::new(below, bits)?),
            Encryption::Aes(bits, by) => Box::new(AesLayer::new(below, bits, by)?),
            Encryption::Suite(suite) => Box::new(SuiteLayer::new(below, suite)?),
            Encryption::Age => {
                let recipients = [AgeRecipient::X25519(RECIPIENT)];
                let key = header::write(&mut below, &recipients, ObjectSeed::new([7; 32]));
                Box::new(ChunkWriter::new(below, &*key.map_err(io::Error::other)?))
            }
        };
        Ok(match self.compression {
            Compression::None => below,
            Compression::Deflate(level) => Box::new(DeflateLayer::new(below, level)),
            Compression::Zstd(level) => Box::new(FrameWriter::new(below, level)),
            Compression::Lz4 => Box::new(Lz4Layer::new(below)),
        })
    }

    /// The broker's layers: what it stores ends in `sink`.
    ///
    /// # Errors
    /// As [`Chain::sender`].
    pub(super) fn receiver(self, sink: Sink) -> io::Result<Below> {
        let below = Box::new(sink);
        Ok(match self.records {
            None => below,
            Some(suite) => Box::new(OpeningLayer::new(below, suite)?),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::None => f.write_str("plain"),
            Compression::Deflate(BEST_SPEED) => f.write_str("DEFLATE"),
            Compression::Deflate(level) => write!(f, "DEFLATE {level}"),
            Compression::Zstd(level) => write!(f, "zstd {level}"),
            Compression::Lz4 => f.write_str("LZ4"),
        }
    }
}

impl fmt::Display for Encryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encryption::None => f.write_str("none"),
            Encryption::Rc4(bits) => write!(f, "RC4-{bits}"),
            Encryption::Aes(bits, AesBy::Instructions) => write!(f, "AES-{bits}"),
            Encryption::Aes(bits, AesBy::Tables) => write!(f, "AES-{bits} by tables"),
            Encryption::Suite(suite) => f.write_str(suite.name()),
            Encryption::Age => f.write_str("age v1"),
        }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.records, self.encryption) {
            (None, encryption) => write!(f, "{encryption}, {}", self.compression),
            (Some(RecordSuite::Rc4Md5), Encryption::None) => write!(f, "TLS, {}", self.compression),
            (Some(RecordSuite::Rc4Md5), inside) => write!(f, "{inside} in TLS, {}", self.compression),
            (Some(RecordSuite::NullSha256), inside) => {
                write!(f, "{inside} in TLS that authenticates, {}", self.compression)
            }
        }
    }
}
