use proptest::prelude::*;

use super::*;

const KEY: [u8; 32] = [5; 32];

fn sealed(plain: &[u8]) -> Vec<u8> {
    let mut writer = ChunkWriter::new(Vec::new(), &KEY);
    writer.write_all(plain).unwrap();
    writer.finish().unwrap()
}

fn opened(sealed: &[u8]) -> io::Result<Vec<u8>> {
    let mut plain = Vec::new();
    ChunkReader::new(sealed, &KEY).read_to_end(&mut plain)?;
    Ok(plain)
}

#[test]
fn all_sizes_around_a_chunk_round_trip_and_are_as_long_as_said() {
    for len in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 2 * CHUNK + 1] {
        let plain: Vec<u8> = (0..len).map(|at| at as u8).collect();
        let bytes = sealed(&plain);
        assert_eq!(bytes.len() as u64, sealed_len(len as u64));
        assert!(opened(&bytes).unwrap() == plain, "{len}");
    }
}

#[test]
fn every_kind_of_cut_is_noticed() {
    let bytes = sealed(&vec![1; 2 * CHUNK + 100]);
    let whole = CHUNK + TAG;
    for len in [
        0,
        1,
        TAG,
        100,
        whole - 1,
        whole,
        whole + 1,
        whole + TAG,
        2 * whole - 1,
        2 * whole,
        2 * whole + 1,
        bytes.len() - 1,
    ] {
        assert!(opened(&bytes[..len]).is_err(), "{len}");
    }
    assert!(opened(&[&bytes[..], &[0]].concat()).is_err());
    assert!(opened(&[&bytes[..], &bytes[..]].concat()).is_err());
    assert!(opened(&bytes[whole..]).is_err(), "the first is missing");
    assert!(opened(&[&bytes[whole..2 * whole], &bytes[..whole], &bytes[2 * whole..]].concat()).is_err());
}

#[test]
fn an_empty_last_chunk_behind_others_is_refused() {
    // Sealed right, and yet not what the format allows: there would be two spellings of one content.
    let mut bytes = Vec::new();
    for (number, text, last) in [(0, vec![1; CHUNK], false), (1, Vec::new(), true)] {
        let mut chunk = text;
        scheduled(&KEY).seal_in_place_append_tag(nonce(number, last), Aad::empty(), &mut chunk).unwrap();
        bytes.extend(chunk);
    }
    assert_eq!(opened(&bytes).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

/// Takes `left` bytes and then fails.
struct Full {
    left: usize,
    taken: Vec<u8>,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.left);
        if count == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.left -= count;
        self.taken.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn after_its_output_failed_a_writer_seals_nothing_more_under_that_key() {
    let mut writer = ChunkWriter::new(Full { left: CHUNK, taken: Vec::new() }, &KEY);
    writer.write_all(&vec![1; CHUNK]).unwrap();
    assert!(writer.write(b"a").is_err(), "the chunk and its tag have no room");
    // There would be room again, for other bytes under the same number.
    writer.inner.left = usize::MAX;
    let before = writer.inner.taken.clone();
    assert!(writer.write(b"b").is_err());
    assert!(writer.seal(true).is_err());
    assert!(writer.inner.taken == before);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn any_pieces_round_trip(pieces in proptest::collection::vec(0..90_000_usize, 0..6)) {
        let mut writer = ChunkWriter::new(Vec::new(), &KEY);
        let plain: Vec<u8> = (0..pieces.iter().sum()).map(|at: usize| ((at * 7) >> 3) as u8).collect();
        let mut rest = &plain[..];
        for piece in pieces {
            let (now, behind) = rest.split_at(piece);
            writer.write_all(now).unwrap();
            rest = behind;
        }
        prop_assert!(opened(&writer.finish().unwrap()).unwrap() == plain);
    }

    #[test]
    fn any_changed_byte_is_noticed_and_nothing_wrong_is_given_out(at: prop::sample::Index, flip in 1..=255_u8) {
        let plain: Vec<u8> = (0..CHUNK + 1000).map(|at| at as u8).collect();
        let mut bytes = sealed(&plain);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let mut out = Vec::new();
        prop_assert!(ChunkReader::new(&bytes[..], &KEY).read_to_end(&mut out).is_err());
        prop_assert!(plain.starts_with(&out));
    }
}
