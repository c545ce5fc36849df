//! What to compress with: a codec and its level, as configuration spells it.

use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;

use crate::Codec;

/// libdeflate's levels that compress; its level 0 only stores.
const DEFLATE_LEVELS: RangeInclusive<i8> = 1..=12;
/// Zstandard's levels worth naming: below -5 little is saved, above 19 its memory leaves proportion.
const ZSTD_LEVELS: RangeInclusive<i8> = -5..=19;
/// How LZS looks for strings: once each, or through the whole window.
const LZS_LEVELS: RangeInclusive<i8> = 1..=2;

/// A codec and how hard it tries.
///
/// Spelled `none`, `deflate-6`, `lz4`, `zstd-3` or, for negative levels, `zstd-fast-1`, `lzs-2`; a codec
/// alone means its default level. A level outside its codec's range, which only a literal can make, counts
/// as the nearest inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Method {
    /// The codec.
    pub codec: Codec,
    /// 1 to 12 for DEFLATE, -5 to 19 without 0 for Zstandard, 1 and 2 for LZS, 0 for the others.
    pub level: i8,
}

impl Method {
    /// Do not compress.
    pub const NONE: Method = Method { codec: Codec::None, level: 0 };
    /// DEFLATE at level 6: measured, the best ratio of all codecs on 1 KiB of text (2.06), at 50 MB/s
    /// a core; where DEFLATE is used, for IPComp over thin links, ratio is what counts.
    pub const DEFLATE: Method = Method { codec: Codec::Deflate, level: 6 };
    /// LZ4, for links too fast for anything else: 370 MB/s a core at a ratio of 1.4 to 1.9 on text.
    pub const LZ4: Method = Method { codec: Codec::Lz4, level: 0 };
    /// Zstandard at level 3: measured, 2.5 times the goodput of text on links of 10 and 100 Mbit/s,
    /// within 7 % of level 9 at 1.5 Mbit/s, and 97 to 185 MB/s a core.
    pub const ZSTD: Method = Method { codec: Codec::Zstd, level: 3 };
    /// LZS at level 1, which looks once for each string: measured on the Calgary corpus in blocks of 1 to
    /// 63 KiB, ratios of 1.64 to 2.02 at 240 MB/s a core. Level 2, which looks through the whole window and
    /// takes the cheapest way: 1.78 to 2.34 at 23 to 31 MB/s.
    pub const LZS: Method = Method { codec: Codec::Lzs, level: 1 };

    /// `codec` at its default level.
    #[must_use]
    pub const fn of(codec: Codec) -> Method {
        match codec {
            Codec::None => Method::NONE,
            Codec::Deflate => Method::DEFLATE,
            Codec::Lz4 => Method::LZ4,
            Codec::Zstd => Method::ZSTD,
            Codec::Lzs => Method::LZS,
        }
    }

    /// `codec` at `level`, or `None` when it has no such level.
    #[must_use]
    pub fn at_level(codec: Codec, level: i8) -> Option<Method> {
        let method = Method { codec, level };
        (method.clamped() == method).then_some(method)
    }

    /// This method with its level inside its codec's range.
    #[must_use]
    pub(crate) fn clamped(self) -> Method {
        let within = |levels: RangeInclusive<i8>| self.level.clamp(*levels.start(), *levels.end());
        let level = match self.codec {
            Codec::None | Codec::Lz4 => 0,
            Codec::Deflate => within(DEFLATE_LEVELS),
            // To the library 0 means the default, which has a name of its own here.
            Codec::Zstd if self.level == 0 => Method::ZSTD.level,
            Codec::Zstd => within(ZSTD_LEVELS),
            Codec::Lzs => within(LZS_LEVELS),
        };
        Method { codec: self.codec, level }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Method { codec, level } = *self;
        match codec {
            Codec::None | Codec::Lz4 => f.pad(codec.name()),
            Codec::Zstd if level < 0 => f.pad(&format!("zstd-fast-{}", level.unsigned_abs())),
            Codec::Deflate | Codec::Zstd | Codec::Lzs => f.pad(&format!("{codec}-{level}")),
        }
    }
}

/// A compression method that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMethod {
    /// The codec's name is none of ours.
    #[error(
        "unknown compression `{given}`: write none, deflate, lz4, zstd or lzs, with a level as in deflate-6, zstd-3 or zstd-fast-1"
    )]
    Unknown {
        /// The method as it was written.
        given: String,
    },
    /// The codec exists, the level does not.
    #[error("`{given}` is no level of {codec}: write {}", spelled_levels(*codec))]
    Level {
        /// The method as it was written.
        given: String,
        /// The codec it names.
        codec: Codec,
    },
}

/// The levels of `codec`, for people.
const fn spelled_levels(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "none",
        Codec::Deflate => "deflate-1 to deflate-12, or deflate for deflate-6",
        Codec::Lz4 => "lz4, which has no levels",
        Codec::Lzs => "lzs-1, or lzs for it, and lzs-2",
        Codec::Zstd => "zstd-1 to zstd-19, zstd-fast-1 to zstd-fast-5, or zstd for zstd-3",
    }
}

impl FromStr for Method {
    type Err = BadMethod;

    fn from_str(given: &str) -> Result<Method, BadMethod> {
        let (name, level) = given.split_once('-').map_or((given, None), |(name, level)| (name, Some(level)));
        let Some(codec) = Codec::ALL.into_iter().find(|codec| codec.name() == name) else {
            return Err(BadMethod::Unknown { given: given.to_owned() });
        };
        let Some(level) = level else { return Ok(Method::of(codec)) };
        let levelled = spelled_level(codec, level).and_then(|level| Method::at_level(codec, level));
        // `none-0` and `lz4-0` would be inside the range, but there is no reason to offer them.
        let levelled = levelled.filter(|_| matches!(codec, Codec::Deflate | Codec::Zstd | Codec::Lzs));
        levelled.ok_or_else(|| BadMethod::Level { given: given.to_owned(), codec })
    }
}

/// The number that `level` spells after the codec's name.
fn spelled_level(codec: Codec, level: &str) -> Option<i8> {
    let (fast, digits) = match level.strip_prefix("fast-") {
        Some(digits) if codec == Codec::Zstd => (true, digits),
        Some(_) => return None,
        None => (false, level),
    };
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit()) && !digits.starts_with('0');
    let number: i8 = if plain { digits.parse().ok()? } else { return None };
    Some(if fast { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_method() -> impl Iterator<Item = Method> {
        Codec::ALL
            .into_iter()
            .flat_map(|codec| (i8::MIN..=i8::MAX).filter_map(move |level| Method::at_level(codec, level)))
    }

    #[test]
    fn every_method_round_trips_through_its_name() {
        assert_eq!(every_method().count(), 1 + 12 + 1 + 24 + 2);
        for method in every_method() {
            assert_eq!(method.to_string().parse(), Ok(method), "{method}");
        }
    }

    #[test]
    fn names_and_defaults() {
        let table = [
            ("none", Codec::None, 0),
            ("deflate", Codec::Deflate, 6),
            ("deflate-1", Codec::Deflate, 1),
            ("deflate-12", Codec::Deflate, 12),
            ("lz4", Codec::Lz4, 0),
            ("zstd", Codec::Zstd, 3),
            ("zstd-19", Codec::Zstd, 19),
            ("zstd-fast-1", Codec::Zstd, -1),
            ("zstd-fast-5", Codec::Zstd, -5),
            ("lzs", Codec::Lzs, 1),
            ("lzs-2", Codec::Lzs, 2),
        ];
        for (name, codec, level) in table {
            assert_eq!(name.parse(), Ok(Method { codec, level }), "{name}");
        }
        assert_eq!(Method { codec: Codec::Zstd, level: -1 }.to_string(), "zstd-fast-1");
        assert_eq!(format!("{:<9}|", Method::ZSTD), "zstd-3   |");
    }

    #[test]
    fn parse_error_lists_valid_names() {
        for unknown in ["", "gzip", "Zstd", "zstd3", "-3", "lzss", "zstandard-3"] {
            let given = unknown.to_owned();
            assert_eq!(unknown.parse::<Method>(), Err(BadMethod::Unknown { given }));
        }
        let table = [
            ("deflate-0", Codec::Deflate),
            ("deflate-13", Codec::Deflate),
            ("deflate-fast-1", Codec::Deflate),
            ("deflate-06", Codec::Deflate),
            ("zstd-0", Codec::Zstd),
            ("zstd-20", Codec::Zstd),
            ("zstd-128", Codec::Zstd),
            ("zstd-", Codec::Zstd),
            ("zstd-+3", Codec::Zstd),
            ("zstd--1", Codec::Zstd),
            ("zstd-fast-", Codec::Zstd),
            ("zstd-fast-0", Codec::Zstd),
            ("zstd-fast-6", Codec::Zstd),
            ("lz4-1", Codec::Lz4),
            ("lz4-0", Codec::Lz4),
            ("lzs-0", Codec::Lzs),
            ("lzs-3", Codec::Lzs),
            ("lzs-fast-1", Codec::Lzs),
            ("none-0", Codec::None),
        ];
        for (name, codec) in table {
            let given = name.to_owned();
            assert_eq!(name.parse::<Method>(), Err(BadMethod::Level { given, codec }), "{name}");
        }
        let message = "zstd--1".parse::<Method>().unwrap_err().to_string();
        assert!(message.contains("zstd-fast-1"), "{message}");
    }

    #[test]
    fn levels_out_of_range_count_as_the_nearest() {
        let clamped = |codec, level| Method { codec, level }.clamped().level;
        assert_eq!(clamped(Codec::Deflate, 0), 1);
        assert_eq!(clamped(Codec::Deflate, 99), 12);
        assert_eq!(clamped(Codec::Zstd, -100), -5);
        assert_eq!(clamped(Codec::Zstd, 0), 3);
        assert_eq!(clamped(Codec::Zstd, 22), 19);
        assert_eq!(clamped(Codec::Lz4, 9), 0);
        assert_eq!(clamped(Codec::Lzs, 0), 1);
        assert_eq!(clamped(Codec::Lzs, 9), 2);
        assert_eq!(clamped(Codec::None, 1), 0);
    }
}
