//! Codecs, block by block.

use std::convert::Infallible;

use strait_compress::{Codec, Codecs, Method};

use crate::error::Error;
use crate::measure::{RepeatTimer, RunValues};

/// Compressing all these blocks, whether they shrink or not.
pub fn compress(stopwatch: RepeatTimer, codecs: &mut Codecs, method: Method, blocks: &[&[u8]]) -> RunValues {
    let mut out = vec![0; room(blocks)];
    let sample = stopwatch.nanos_per_unit(|| {
        for block in blocks {
            std::hint::black_box(codecs.compress(method, std::hint::black_box(block), &mut out));
        }
        Ok::<_, Infallible>(total(blocks))
    });
    let Ok(sample) = sample;
    sample
}

/// What the method makes of each block, longer or shorter.
///
/// # Errors
/// [`Error::Refused`] when a block becomes longer than any codec may make it, or does not expand to what it was.
pub fn compressed(codecs: &mut Codecs, method: Method, blocks: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
    let mut out = vec![0; room(blocks)];
    let one = |block: &&[u8]| {
        let len = codecs.compress(method, block, &mut out);
        let len = len.ok_or_else(|| {
            Error::refused(method, "compress")("the block became twice as long or more".into())
        })?;
        let made = out[..len].to_vec();
        let mut back = vec![0; block.len()];
        let expanded = codecs.expand(method.codec, &made, &mut back);
        expanded.map_err(|error| Error::refused(method, "expand")(error.into()))?;
        if back != *block {
            return Err(Error::refused(method, "expand")("it gives other bytes".into()));
        }
        Ok(made)
    };
    blocks.iter().map(one).collect()
}

/// Expanding what was made of blocks, in nanoseconds a byte that comes out.
///
/// # Errors
/// [`Error::Refused`] when one does not expand.
pub fn expand(
    stopwatch: RepeatTimer,
    codecs: &mut Codecs,
    codec: Codec,
    compressed: &[&[u8]],
    longest: usize,
) -> Result<RunValues, Error> {
    let mut out = vec![0; longest];
    stopwatch.nanos_per_unit(|| {
        let mut bytes = 0;
        for block in compressed {
            let expanded = codecs.expand(codec, std::hint::black_box(block), &mut out);
            bytes += expanded.map_err(|error| Error::refused(codec, "expand")(error.into()))? as u64;
        }
        Ok(bytes)
    })
}

/// Room for the longest that any codec makes of one of these blocks: LZS writes nine bits for a byte it has not seen
/// (RFC 2395 section 2.2), the others less, and all a few bytes around it.
fn room(blocks: &[&[u8]]) -> usize {
    2 * blocks.iter().map(|block| block.len()).max().unwrap_or(0) + 64
}

fn total(blocks: &[&[u8]]) -> u64 {
    blocks.iter().map(|block| block.len() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use strait_clock::Random;

    #[test]
    fn what_shrinks_and_what_does_not() {
        let mut random = Random::new(1);
        let noise: Vec<u8> = std::iter::repeat_with(|| random.next_u64() as u8).take(4096).collect();
        let text = b"the same line again and again\n".repeat(100);
        let stopwatch = RepeatTimer { repeats: 2, least: Duration::from_micros(100) };
        for codec in Codec::ALL {
            let (method, mut codecs) = (Method::of(codec), Codecs::new());
            let blocks = [&noise[..], &text[..]];
            let made = compressed(&mut codecs, method, &blocks).unwrap();
            assert!(made[0].len() >= noise.len(), "{codec}");
            assert_eq!(made[1].len() < text.len(), codec != Codec::None, "{codec}");
            assert_eq!(compress(stopwatch, &mut codecs, method, &blocks).values().len(), 2);
            let made: Vec<&[u8]> = made.iter().map(Vec::as_slice).collect();
            assert!(expand(stopwatch, &mut codecs, codec, &made, 4096).is_ok(), "{codec}");
            assert!(expand(stopwatch, &mut codecs, codec, &made, 4095).is_err(), "{codec}");
        }
    }
}
