//! The codec numbers in a block's header, and the set of codecs that an end expands.

use core::fmt;

/// The bit that says in one byte with a codec, or with a set of them, that headers are coded.
const HEADERS: u8 = 0x80;
/// The bit of a set that says that padded blocks are understood.
const PADDING: u8 = 0x40;

/// How a block was made of packets: the codec byte of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Coding {
    /// Whether the packets' headers were coded first (see [`crate::headers`]).
    pub headers: bool,
    /// What it was compressed with then.
    pub codec: Codec,
}

impl Coding {
    /// Packets as they are.
    pub const NONE: Coding = Coding { headers: false, codec: Codec::None };
    /// Packets whose headers are coded, and nothing else.
    pub const HEADERS: Coding = Coding { headers: true, codec: Codec::None };

    /// The byte on the wire.
    #[must_use]
    pub const fn id(self) -> u8 {
        self.codec.id() | if self.headers { HEADERS } else { 0 }
    }

    /// What a peer wrote as `id`, or `None` when that names no codec.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Coding> {
        Some(Coding { headers: id & HEADERS != 0, codec: Codec::from_id(id & !HEADERS)? })
    }
}

/// How a block was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// Not compressed.
    None = 0,
    /// Raw DEFLATE (RFC 1951), its distances as far as the input goes, up to 32 KiB. What another
    /// implementation is to expand, see [`crate::Ipcomp`].
    Deflate = 1,
    /// One LZ4 block, without frame or size.
    Lz4 = 2,
    /// One Zstandard frame (RFC 8878) without magic, content size, checksum and dictionary.
    Zstd = 3,
    /// One LZS stream (RFC 2395 section 2.2), as in IPComp.
    Lzs = 4,
}

impl Codec {
    /// Every codec, in order of id.
    pub const ALL: [Codec; 5] = [Codec::None, Codec::Deflate, Codec::Lz4, Codec::Zstd, Codec::Lzs];

    /// The codec's byte on the wire.
    #[must_use]
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The codec a peer wrote as `id`, or `None` for a number that is not assigned.
    #[must_use]
    pub const fn from_id(id: u8) -> Option<Codec> {
        match id {
            0 => Some(Codec::None),
            1 => Some(Codec::Deflate),
            2 => Some(Codec::Lz4),
            3 => Some(Codec::Zstd),
            4 => Some(Codec::Lzs),
            _ => None,
        }
    }

    /// The name in configuration files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Deflate => "deflate",
            Codec::Lz4 => "lz4",
            Codec::Zstd => "zstd",
            Codec::Lzs => "lzs",
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an end expands, in one byte: bit `id` stands for the codec numbered `id`, the highest for header compression, the one below it
/// for blocks with padding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodecSet(u8);

impl CodecSet {
    /// No codec at all, not even [`Codec::None`], and no header compression.
    pub const EMPTY: CodecSet = CodecSet(0);
    /// All that this version knows.
    pub const ALL: CodecSet = CodecSet(0b1_1111 | HEADERS | PADDING);

    /// This set with `codec` added.
    #[must_use]
    pub const fn with(self, codec: Codec) -> CodecSet {
        CodecSet(self.0 | 1 << codec.id())
    }

    /// This set with header compression added.
    #[must_use]
    pub const fn with_headers(self) -> CodecSet {
        CodecSet(self.0 | HEADERS)
    }

    /// Whether header compression is in the set.
    #[must_use]
    pub const fn has_headers(self) -> bool {
        self.0 & HEADERS != 0
    }

    /// This set with padded blocks added.
    #[must_use]
    pub const fn with_padding(self) -> CodecSet {
        CodecSet(self.0 | PADDING)
    }

    /// Whether padded blocks are in the set.
    #[must_use]
    pub const fn has_padding(self) -> bool {
        self.0 & PADDING != 0
    }

    /// Whether `codec` is in the set.
    #[must_use]
    pub const fn contains(self, codec: Codec) -> bool {
        self.0 & 1 << codec.id() != 0
    }

    /// What is in both sets.
    #[must_use]
    pub const fn intersect(self, other: CodecSet) -> CodecSet {
        CodecSet(self.0 & other.0)
    }

    /// Whether nothing is in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The set as its wire byte.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The set a peer wrote as `bits`; bits this version does not know are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> CodecSet {
        CodecSet(bits & CodecSet::ALL.0)
    }

    /// The codecs in the set, in order of id.
    pub fn iter(self) -> impl Iterator<Item = Codec> {
        Codec::ALL.into_iter().filter(move |codec| self.contains(*codec))
    }
}

impl FromIterator<Codec> for CodecSet {
    fn from_iter<I: IntoIterator<Item = Codec>>(codecs: I) -> CodecSet {
        codecs.into_iter().fold(CodecSet::EMPTY, CodecSet::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip_and_others_are_refused() {
        for id in 0..=u8::MAX {
            assert_eq!(Codec::from_id(id).map(Codec::id), (id < 5).then_some(id));
        }
        assert_eq!(Codec::ALL.map(Codec::name), ["none", "deflate", "lz4", "zstd", "lzs"]);
        assert_eq!(format!("{:>8}", Codec::Lz4), "     lz4");
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set = CodecSet::EMPTY.with(Codec::None).with(Codec::Zstd);
        assert!(set.contains(Codec::None) && set.contains(Codec::Zstd));
        assert!(!set.contains(Codec::Deflate) && !set.contains(Codec::Lz4));
        assert_eq!(set.bits(), 0b1001);
        let fast = CodecSet::EMPTY.with(Codec::Lz4).with(Codec::Zstd);
        assert_eq!(set.intersect(fast), CodecSet::EMPTY.with(Codec::Zstd));
        assert!(CodecSet::EMPTY.is_empty() && !set.is_empty());
        assert_eq!(CodecSet::ALL.iter().collect::<Vec<_>>(), Codec::ALL);
        for bits in 0..=u8::MAX {
            let known = CodecSet::from_bits(bits);
            assert_eq!(known.bits(), bits & 0b1101_1111);
            assert_eq!((known.has_headers(), known.has_padding()), (bits >= 0x80, bits & 0x40 != 0));
            let codecs = known.iter().collect::<CodecSet>();
            let codecs = if known.has_headers() { codecs.with_headers() } else { codecs };
            assert_eq!(if known.has_padding() { codecs.with_padding() } else { codecs }, known);
        }
    }

    #[test]
    fn coding_byte_is_codec_and_header_bit() {
        for id in 0..=u8::MAX {
            let coding = Coding::from_id(id);
            assert_eq!(coding.map(Coding::id), (id & 0x7f < 5).then_some(id));
            assert_eq!(coding.is_some_and(|coding| coding.headers), coding.is_some() && id >= 0x80);
        }
    }
}
