//! Messages about chunks: ids of both levels, and questions for them.

use strait_transfer::delta::{ChunkKey, FineAsk, FineIds, Signature, SignatureIds};

/// The kind of message, then the message. Messages of ids may be several, split by their length in two bytes.
pub fn check(data: &[u8]) {
    let Some((kind, message)) = data.split_first() else { return };
    match kind % 3 {
        0 => signature_ids(message),
        1 => question(message),
        _ => {
            if let Ok(ids) = FineIds::parse(message) {
                assert_eq!(ids.message(), message);
            }
        }
    }
}

fn signature_ids(data: &[u8]) {
    let Some((&[high, low], rest)) = data.split_first_chunk() else { return };
    let Some((first, second)) = rest.split_at_checked(u16::from_be_bytes([high, low]).into()) else { return };
    let Ok(mut ids) = SignatureIds::begin(first) else { return };
    let whole = ids.is_whole();
    if ids.go_on(second).is_ok() {
        assert!(ids.is_whole() || !whole);
    }
}

fn question(message: &[u8]) {
    let Ok(ask) = FineAsk::parse(message) else { return };
    assert_eq!(FineAsk::parse(&ask.message()), Ok(ask.clone()));
    let old = old_file();
    let key = ChunkKey::agree(&[1; 32], &[2; 32]);
    let range = [0..old.len() as u64];
    let signature = Signature::of(&mut &old[..], old.len() as u64, range.into_iter(), key).unwrap().unwrap();
    let fine = signature.fine(&ask, &mut &old[..]).unwrap();
    assert_eq!(FineIds::parse(&fine.message()).unwrap().message(), fine.message());
}

/// A file of some chunks, always the same.
#[must_use]
pub fn old_file() -> Vec<u8> {
    let mut random = strait_clock::Random::new(1);
    (0..50_000).map(|_| random.next_u64().to_le_bytes()[0]).collect()
}
