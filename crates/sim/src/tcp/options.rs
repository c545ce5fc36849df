//! The options of a segment: timestamps, and what arrived beyond a gap.

/// No-operation, by which options are aligned.
const NOP: u8 = 1;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// Blocks that have room beside timestamps (RFC 2018 section 3).
pub(super) const BLOCKS: usize = 3;

/// Timestamps, where both ends have them, and blocks, aligned as Linux does.
pub(super) fn written(stamps: Option<(u32, u32)>, blocks: &[(u32, u32)]) -> Vec<u8> {
    let mut options = Vec::new();
    if let Some((value, echo)) = stamps {
        options.extend_from_slice(&[NOP, NOP, TIMESTAMPS, 10]);
        options.extend_from_slice(&value.to_be_bytes());
        options.extend_from_slice(&echo.to_be_bytes());
    }
    let blocks = blocks.get(..blocks.len().min(BLOCKS)).unwrap_or_default();
    if !blocks.is_empty() {
        options.extend_from_slice(&[NOP, NOP, SACK, blocks.len() as u8 * 8 + 2]);
        for (from, to) in blocks {
            options.extend_from_slice(&from.to_be_bytes());
            options.extend_from_slice(&to.to_be_bytes());
        }
    }
    options
}

/// The blocks in `options`; none from where they are malformed.
pub(super) fn blocks(options: &[u8]) -> Vec<(u32, u32)> {
    body(options, SACK).map_or_else(Vec::new, |body| {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        body.chunks_exact(8).map(|block| (number(&block[..4]), number(&block[4..]))).collect()
    })
}

/// The timestamp of who sent `options`.
pub(super) fn sent_at(options: &[u8]) -> Option<u32> {
    body(options, TIMESTAMPS)?.first_chunk().map(|value| u32::from_be_bytes(*value))
}

/// What the first option of a kind holds.
fn body(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        match options {
            [NOP, rest @ ..] => options = rest,
            [kind, len, ..] if *kind > NOP && *len >= 2 => {
                let (option, rest) = options.split_at_checked((*len).into())?;
                if *kind == wanted {
                    return option.get(2..);
                }
                options = rest;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let ranges: Vec<(u32, u32)> = (0..5).map(|at| (at * 1000, at * 1000 + 500)).collect();
        for (stamps, count) in
            [None, Some((7, 9))].into_iter().flat_map(|it| (0..=5).map(move |count| (it, count)))
        {
            let options = written(stamps, &ranges[..count]);
            assert!(options.len().is_multiple_of(4) && options.len() <= 40, "{count}");
            assert_eq!(blocks(&options), ranges[..count.min(3)]);
            assert_eq!(sent_at(&options), stamps.map(|(value, _)| value));
            for len in 0..options.len() {
                assert!(blocks(&options[..len]).len() <= 3);
            }
        }
        assert_eq!((blocks(&[]), sent_at(&[8, 0, 8, 1])), (Vec::new(), None));
    }
}
