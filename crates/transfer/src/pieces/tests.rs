use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;

fn bytes(len: usize) -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| (0..9 << 16).map(|at| (at * 7 % 251) as u8).collect());
    &BYTES[..len]
}

fn subtree_of(file: &[u8], piece: u64) -> Subtree {
    let mut hasher = PieceHasher::new(piece);
    let begin = usize::try_from(piece * PIECE_LEN).unwrap();
    hasher.update(&file[begin..]);
    hasher.subtree().unwrap()
}

#[test]
fn the_root_is_that_of_blake3_for_every_number_of_pieces() {
    let file = bytes(9 << 16);
    for pieces in 2..9_usize {
        for more in [0, 1, 1023, 1024, 1025, 50_000] {
            let file = &file[..((pieces - 1) << 16) + more.max(1)];
            let mut known = Pieces::default();
            for piece in (0..pieces_of(file.len() as u64)).rev() {
                assert_eq!(known.root(file.len() as u64), None, "piece {piece} is missing");
                known.insert(subtree_of(file, piece)).unwrap();
            }
            assert_eq!(known.root(file.len() as u64), Some(blake3::hash(file)), "{} bytes", file.len());
        }
    }
}

#[test]
fn a_piece_that_is_all_of_the_file_gives_its_root() {
    for len in [0, 1, 1024, 1 << 16] {
        let file = bytes(len);
        let mut hasher = PieceHasher::new(0);
        assert!(hasher.update(file).is_empty());
        assert_eq!(hasher.root(), Some(blake3::hash(file)));
    }
    assert_eq!(PieceHasher::new(1).root(), None);
    assert_eq!(PieceHasher::new(1).subtree(), None);
}

#[test]
fn a_subtree_stands_at_a_multiple_of_its_length() {
    assert!(Subtree::new(4, 2, [0; 32]).is_some());
    assert!(Subtree::new(2, 2, [0; 32]).is_none());
    assert!(Subtree::new(0, 48, [0; 32]).is_none());
    assert!(Subtree::new(0, 255, [0; 32]).is_none());
    assert!(Subtree::new(u64::MAX, 0, [0; 32]).is_none());
}

#[test]
fn a_peer_that_leaves_gaps_gets_an_error_instead_of_memory() {
    let mut known = Pieces::default();
    let gaps = MAX_SUBTREES as u64;
    for piece in 0..gaps {
        known.insert(Subtree::new(piece * 2, 0, [1; 32]).unwrap()).unwrap();
    }
    let one_more = Subtree::new(gaps * 2, 0, [1; 32]).unwrap();
    assert_eq!(known.insert(one_more), Err(PiecesError::TooScattered));
}

#[test]
fn a_file_written_in_order_needs_few_subtrees() {
    let mut known = Pieces::default();
    for piece in 0..20_480 {
        known.insert(Subtree::new(piece, 0, [1; 32]).unwrap()).unwrap();
    }
    assert!(known.subtrees().count() <= 30, "{}", known.subtrees().count());
}

proptest! {
    #[test]
    fn pieces_in_any_order_cover_what_was_inserted(order in Just((0..24_u64).collect::<Vec<_>>()).prop_shuffle(), count in 0..24_usize) {
        let mut known = Pieces::default();
        let (inserted, missing) = order.split_at(count);
        for piece in inserted {
            known.insert(Subtree::new(*piece, 0, [1; 32]).unwrap()).unwrap();
            prop_assert_eq!(known.insert(Subtree::new(*piece, 0, [1; 32]).unwrap()), Err(PiecesError::Twice));
            let around = Subtree::new(0, 5, [1; 32]).unwrap();
            prop_assert_eq!(known.insert(around), Err(PiecesError::Twice));
        }
        prop_assert!(inserted.iter().all(|piece| known.has(*piece)));
        prop_assert!(missing.iter().all(|piece| !known.has(*piece)));
        let mut expected = missing.to_vec();
        expected.sort_unstable();
        prop_assert_eq!(known.gaps(24).flatten().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_order_of_pieces_does_not_change_the_root(order in Just((0..6_u64).collect::<Vec<_>>()).prop_shuffle()) {
        let file = bytes((5 << 16) + 77);
        let mut known = Pieces::default();
        for piece in order {
            known.insert(subtree_of(file, piece)).unwrap();
        }
        prop_assert_eq!(known.root(file.len() as u64), Some(blake3::hash(file)));
    }
}
