use proptest::prelude::*;

use super::*;

fn framed(plain: &[u8], padding: SizePadding) -> Vec<u8> {
    let mut writer = FrameWriter::new(Vec::new(), 1);
    writer.write_all(plain).unwrap();
    writer.finish(padding).unwrap()
}

fn expanded(frames: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    FrameReader::new(frames).read_to_end(&mut plain)?;
    Ok(plain)
}

#[test]
fn padme_is_that_of_the_paper() {
    // Nikitin et al., "Reducing Metadata Leakage from Encrypted Files and Communication with PURBs", algorithm 1.
    for (len, padded) in [(0, 0), (1, 1), (8, 8), (9, 10), (100, 104), (1_000, 1_024), (1_000_000, 1_015_808)]
    {
        assert_eq!(padme(len), padded, "{len}");
    }
    assert_eq!(padme(u64::MAX), u64::MAX);
}

#[test]
fn a_frame_ends_at_each_piece_and_says_its_size() {
    let plain: Vec<u8> = (0..2 * PIECE + 5).map(|at| (at >> 9) as u8).collect();
    let frames = framed(&plain, SizePadding::Exact);
    let mut rest = &frames[..];
    for expected in [PIECE, PIECE, 5] {
        assert_eq!(zstd_safe::get_frame_content_size(rest).unwrap(), Some(expected as u64));
        rest = &rest[zstd_safe::find_frame_compressed_size(rest).unwrap()..];
    }
    assert!(rest.is_empty());
    assert!(expanded(&frames).unwrap() == plain);
}

#[test]
fn nothing_is_a_frame_too() {
    for padding in [SizePadding::Exact, SizePadding::Padme] {
        let frames = framed(b"", padding);
        assert!(!frames.is_empty());
        assert_eq!(expanded(&frames).unwrap(), b"");
    }
    assert_eq!(expanded(b"").unwrap(), b"");
}

#[test]
fn every_cut_inside_a_frame_is_noticed() {
    let frames = framed(&vec![b'a'; 5_000], SizePadding::Padme);
    let first = zstd_safe::find_frame_compressed_size(&frames).unwrap();
    for len in (1..frames.len()).filter(|len| *len != first) {
        assert!(expanded(&frames[..len]).is_err(), "{len} of {}", frames.len());
    }
}

#[test]
fn a_frame_with_a_huge_window_is_refused() {
    // RFC 8878 section 3.1.1.1.2: a window of 2^24 bytes, one byte more than is read; one stored block.
    let frame =
        |log: u8| [&0xfd2f_b528_u32.to_le_bytes()[..], &[0, (log - 10) << 3, 0x29, 0, 0], b"hello"].concat();
    assert_eq!(expanded(&frame(23)).unwrap(), b"hello");
    assert!(expanded(&frame(24)).is_err());
}

#[test]
fn padding_of_any_size_is_whole_skippable_frames() {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    // Only the arithmetic of what is more than one frame; a gigabyte of zeros is not written.
    for left in [SKIPPABLE_MAX + 1, SKIPPABLE_MAX + 7, SKIPPABLE_MAX + 8, 3 * SKIPPABLE_MAX] {
        let first = SKIPPABLE_MAX - SKIPPABLE_HEAD;
        assert!(left - first >= SKIPPABLE_HEAD, "{left}");
    }
    for len in [0, SKIPPABLE_HEAD, 9, 100_000] {
        let mut count = Count(0);
        pad(&mut count, len).unwrap();
        assert_eq!(count.0, len);
    }
    assert!(pad(&mut Count(0), 7).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_content_round_trips_padded_and_not(plain: Vec<u8>, repeats in 1..4000_usize, padme_too: bool) {
        let plain = plain.repeat(repeats);
        let padding = if padme_too { SizePadding::Padme } else { SizePadding::Exact };
        let frames = framed(&plain, padding);
        prop_assert!(expanded(&frames).unwrap() == plain);
        if padme_too {
            prop_assert_eq!(frames.len() as u64, padme(frames.len() as u64));
        }
    }

    #[test]
    fn a_padded_size_is_one_of_padmes_with_room_for_a_frame(len: u64) {
        let len = len >> 3;
        let padded = padded_len(len);
        prop_assert_eq!(padme(padded), padded);
        prop_assert!(padded == len || padded - len >= SKIPPABLE_HEAD);
        prop_assert!(len < 300 || padded - len <= len / 8, "at most 12 percent: {} for {}", padded, len);
    }

    #[test]
    fn any_input_is_expanded_or_refused(bytes: Vec<u8>) {
        let mut out = vec![0; 100_000];
        let _ = FrameReader::new(&bytes[..]).read(&mut out);
    }
}
