//! What is written down of unfinished files: what is read can be written, and pieces are known once.

use std::collections::BTreeSet;

use strait_transfer::folder::records::TransferRecord;
use strait_transfer::pieces::{Pieces, Subtree};

/// Subtrees of one input that are counted piece by piece at most.
const COUNTED: u64 = 1 << 12;

/// A byte that says whether the rest is the file as it is, or bodies of records with their length before them; then these.
pub fn check(data: &[u8]) {
    let Some((how, data)) = data.split_first() else { return };
    let framed;
    let mut rest = match how & 1 {
        0 => data,
        _ => {
            framed = frame(data);
            &framed
        }
    };
    let (mut pieces, mut known) = (Pieces::default(), BTreeSet::new());
    while let Some((record, next)) = TransferRecord::take(rest) {
        let mut again = Vec::new();
        record.put(&mut again);
        assert_eq!(again, rest[..rest.len() - next.len()], "{record:?} is written as it was read");
        for end in 0..again.len() {
            assert!(TransferRecord::take(&again[..end]).is_none(), "{end} bytes of {record:?}");
        }
        if let TransferRecord::Held { subtree, .. } = record {
            insert(&mut pieces, &mut known, subtree);
        }
        rest = next;
    }
    let gaps: u64 = pieces.gaps(COUNTED).map(|gap| gap.end - gap.start).sum();
    assert_eq!(gaps, COUNTED - known.len() as u64);
    for size in [0, 1, 1 << 20, (1 << 20) + 1, COUNTED << 20] {
        let whole = pieces.gaps(size.div_ceil(1 << 20)).next().is_none();
        assert!(whole || pieces.root(size).is_none(), "a hash of {size} bytes with pieces missing");
    }
}

/// Each body behind a byte for its length, as it stands in a file.
fn frame(mut data: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    while let Some((len, rest)) = data.split_first() {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(*len)));
        framed.extend((body.len() as u16).to_be_bytes());
        framed.extend(body);
        framed.extend(&strait_transfer::folder::records::check(body));
        data = rest;
    }
    framed
}

fn insert(pieces: &mut Pieces, known: &mut BTreeSet<u64>, subtree: Subtree) {
    let counted: Vec<u64> = (subtree.first()..subtree.end().min(COUNTED)).collect();
    let inserted = pieces.insert(subtree);
    if counted.iter().any(|piece| known.contains(piece)) {
        assert!(inserted.is_err(), "{subtree:?} came twice");
    }
    if inserted.is_ok() {
        known.extend(counted);
    }
    assert!(known.iter().all(|piece| pieces.has(*piece)));
}
