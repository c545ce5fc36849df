//! Ratios and rates of IPComp's codecs as the tunnel has them: its DEFLATE has a window of 2 KiB, which every receiver can follow.

use strait_compress::{Ipcomp, IpcompAlgorithm};
use strait_model::Compression;

use super::super::here::no_rate;
use super::super::parameters::{CodecFigures, compression};
use crate::corpus::{Corpus, CorpusFile};
use crate::error::Error;
use crate::measure::RepeatTimer;
use crate::steps::StepCounter;
use crate::vpn::codecs::segments;
use crate::vpn::{median, megabits};

/// IPComp's header (RFC 3173 section 3.1).
const HEADER: usize = 4;

/// The paper's codecs, in its order.
const CODECS: [(IpcompAlgorithm, &str); 2] =
    [(IpcompAlgorithm::Deflate, "DEFLATE"), (IpcompAlgorithm::Lzs, "LZS")];

/// Steps of [`measured`].
pub(super) const fn steps(files: usize) -> usize {
    CODECS.len() * files
}

/// Both codecs on every file's blocks.
pub(super) fn measured(
    stopwatch: RepeatTimer,
    corpus: &Corpus,
    steps: &mut StepCounter<'_>,
) -> Result<Vec<CodecFigures>, Error> {
    let one = |(algorithm, name): (IpcompAlgorithm, &str)| {
        let mut file = |source: &CorpusFile| -> Result<[Compression; 3], Error> {
            steps.next(&format!("{name}, {}", source.name));
            let size = |size| of_blocks(stopwatch, algorithm, &segments(source, size));
            Ok([size(0)?, size(1)?, size(2)?])
        };
        let files: Result<Vec<_>, Error> = corpus.files.iter().map(&mut file).collect();
        Ok(CodecFigures { name: name.to_owned(), files: files? })
    };
    CODECS.map(one).into_iter().collect()
}

fn of_blocks(
    stopwatch: RepeatTimer,
    algorithm: IpcompAlgorithm,
    blocks: &[Vec<u8>],
) -> Result<Compression, Error> {
    let (mut codec, longest) = (Ipcomp::new(), blocks.iter().map(Vec::len).max().unwrap_or(0));
    let mut out = vec![0; longest];
    let mut made = Vec::new();
    for block in blocks {
        made.extend(codec.compress(algorithm, block, &mut out).map(|len| (block.len(), out[..len].to_vec())));
    }
    let total = || blocks.iter().map(|block| block.len() as u64).sum::<u64>();
    let compress = stopwatch.nanos_per_unit(|| {
        for block in blocks {
            std::hint::black_box(codec.compress(algorithm, std::hint::black_box(block), &mut out));
        }
        Ok::<_, Error>(total())
    })?;
    let saved: usize = made.iter().map(|(before, after)| before - after.len() - HEADER).sum();
    let ratio = total() as f64 / (total() as f64 - saved as f64);
    let compress = megabits(median(&compress));
    // Blocks that do not shrink are sent as they were, and expanded by no one.
    let expand =
        if made.is_empty() { 0.0 } else { megabits(expanding(stopwatch, algorithm, &made, &mut out)?) };
    compression(ratio, compress, expand).ok_or_else(|| no_rate(algorithm))
}

/// Nanoseconds a byte that comes out.
fn expanding(
    stopwatch: RepeatTimer,
    algorithm: IpcompAlgorithm,
    made: &[(usize, Vec<u8>)],
    out: &mut [u8],
) -> Result<f64, Error> {
    let mut codec = Ipcomp::new();
    let sample = stopwatch.nanos_per_unit(|| {
        let mut bytes = 0;
        for (_, packed) in made {
            let expanded = codec.expand(algorithm, std::hint::black_box(packed), out);
            bytes += expanded.map_err(|error| Error::refused(algorithm, "expand")(error.into()))? as u64;
        }
        Ok::<_, Error>(bytes)
    })?;
    Ok(median(&sample))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn deflate_has_the_tunnels_window_and_what_does_not_shrink_a_ratio_of_one() {
        let corpus = Corpus::generated();
        let stopwatch = RepeatTimer { repeats: 1, least: Duration::from_micros(100) };
        let of = |name: &str, algorithm| {
            let file = corpus.files.iter().find(|file| file.name == name).unwrap();
            of_blocks(stopwatch, algorithm, &segments(file, 2)).unwrap()
        };
        let random = of("random", IpcompAlgorithm::Deflate);
        assert_eq!(random.ratio.saving(), 0.0);
        let (deflate, lzs) =
            (of("syslog.log", IpcompAlgorithm::Deflate), of("syslog.log", IpcompAlgorithm::Lzs));
        assert!(deflate.ratio.get() > lzs.ratio.get() && lzs.ratio.get() > 1.5, "{deflate:?} {lzs:?}");
    }
}
