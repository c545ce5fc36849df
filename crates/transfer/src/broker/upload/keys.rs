//! What is derived: keys of an object from its seed, and what the journal knows objects by.

use crate::broker::journal::UploadSeed;
use crate::sealed::{ObjectSeed, SealedEntry, SealedKind, derive};

/// The seed of an object's contents.
pub(super) fn contents_seed(seed: &UploadSeed) -> ObjectSeed {
    ObjectSeed::new(*derive(&*seed.0, &[], "contents"))
}

/// The seed of an object's manifest with this content, compressed by this version of the library.
pub(super) fn manifest_seed(seed: &UploadSeed, signed: &[u8]) -> ObjectSeed {
    let info = format!("manifest {}", zstd_safe::version_number());
    ObjectSeed::new(*derive(&*seed.0, blake3::hash(signed).as_bytes(), &info))
}

/// What is seen of a source without reading it.
pub(super) fn state(entries: &[SealedEntry]) -> Vec<u8> {
    let mut state = Vec::new();
    let mut part = |bytes: &[u8]| {
        state.extend((bytes.len() as u64).to_be_bytes());
        state.extend(bytes);
    };
    for entry in entries {
        part(&entry.path);
        part(&entry.mode.to_be_bytes());
        part(&entry.mtime.to_be_bytes());
        match &entry.kind {
            SealedKind::File { size, .. } => part(&size.to_be_bytes()),
            SealedKind::Folder => part(b"folder"),
            SealedKind::Symlink { target } => part(target),
            SealedKind::HardLink { to } => part(to),
        }
    }
    state
}

/// The first bytes of a hash for one purpose.
pub(super) fn short(purpose: &str, bytes: &[u8]) -> [u8; 16] {
    let context = format!("strait 2026-11 upload journal {purpose}");
    let hash = blake3::Hasher::new_derive_key(&context).update(bytes).finalize();
    *hash.as_bytes().first_chunk().unwrap_or(&[0; 16])
}
