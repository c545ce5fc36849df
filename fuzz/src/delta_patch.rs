//! Patches: any bytes as one, and any two files patched into each other.

use strait_transfer::delta::{
    ChunkKey, DeltaKnown, DeltaPlanner, FineAsk, FineIds, PatchWindow, SentChunks, Signature,
};

use crate::delta_messages::old_file;

/// A byte that is even before a patch, and odd before two files, the first with its length in two bytes.
pub fn check(data: &[u8]) {
    match data.split_first() {
        Some((kind, message)) if kind % 2 == 0 => patch(message),
        Some((_, files)) => round_trip(files),
        None => {}
    }
}

/// The key of the target and of its seeds.
#[must_use]
pub fn key() -> ChunkKey {
    ChunkKey::agree(&[1; 32], &[2; 32])
}

/// The signature of all of `file`.
#[must_use]
pub fn signature(file: &[u8]) -> Signature {
    let range = [0..file.len() as u64];
    Signature::of(&mut &*file, file.len() as u64, range.into_iter(), key()).unwrap().unwrap()
}

fn patch(message: &[u8]) {
    let Ok(patch) = PatchWindow::parse(message) else { return };
    assert_eq!(PatchWindow::parse(&patch.message()).as_ref(), Ok(&patch));
    let old = old_file();
    let signature = signature(&old);
    let fine = signature.fine(&FineAsk::parse(&[0, 3]).unwrap(), &mut &old[..]).unwrap();
    if let Ok(made) = patch.apply(Some(&signature), &fine, &key(), &mut &old[..]) {
        assert_eq!(made.len(), patch.len());
    }
}

fn round_trip(files: &[u8]) {
    let Some((&[high, low], rest)) = files.split_first_chunk() else { return };
    let Some((old, new)) = rest.split_at_checked(u16::from_be_bytes([high, low]).into()) else { return };
    let signature = signature(old);
    let ranges = [0..new.len() as u64];
    let mut planner =
        DeltaPlanner::new(DeltaKnown::Ids(signature.ids()), key(), new.len() as u64, ranges.into_iter());
    let mut made = Vec::new();
    while let Some(plan) = planner.next_window(&mut &*new, &mut SentChunks::default(), None).unwrap() {
        let fine = signature.fine(plan.ask(), &mut &*old).unwrap();
        let heard = FineIds::parse(&fine.message()).unwrap();
        let patch = planner.patch(&plan, &heard, &mut &*new).unwrap();
        let patch = PatchWindow::parse(&patch.message()).unwrap();
        made.extend(patch.apply(Some(&signature), &fine, &key(), &mut &*old).unwrap());
    }
    assert_eq!(made, new);
}
