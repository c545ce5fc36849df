//! Which letters there are: a small index over the store, and lists where it does not help.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use strait_keying::PublicKey;
use strait_transfer::broker::message::{LetterKind, ObjectName};

use crate::engine::Engine;
use crate::names::{self, LetterName};
use crate::store::StoreFault;

/// Letters in the index at most: some 6 MiB. With more, it begins anew.
const INDEXED: usize = 100_000;

/// What the names of letters say, by a hash of receiver and object. What it says of one that is gone, or of another with the same hash, is
/// found out when the letter is opened.
#[derive(Debug, Default)]
pub struct LetterIndex {
    hasher: RandomState,
    facts: Mutex<BTreeMap<u64, Facts>>,
}

#[derive(Clone, Copy, Debug)]
struct Facts {
    made: i64,
    expires: i64,
    manifest: u64,
    contents: u64,
    count: u8,
}

impl LetterIndex {
    fn hash(&self, receiver: &PublicKey, kind: LetterKind, object: &ObjectName) -> u64 {
        self.hasher.hash_one((receiver.as_bytes(), kind.number(), object))
    }

    pub(crate) fn insert(&self, receiver: &PublicKey, name: &LetterName) {
        let hash = self.hash(receiver, name.kind, &name.object);
        let LetterName { made, expires, manifest, contents, count, .. } = *name;
        let mut facts = self.facts();
        if facts.len() >= INDEXED && !facts.contains_key(&hash) {
            facts.clear();
        }
        facts.insert(hash, Facts { made, expires, manifest, contents, count });
    }

    pub(crate) fn remove(&self, receiver: &PublicKey, kind: LetterKind, object: &ObjectName) {
        self.facts().remove(&self.hash(receiver, kind, object));
    }

    fn get(&self, receiver: &PublicKey, kind: LetterKind, object: &ObjectName) -> Option<LetterName> {
        let Facts { made, expires, manifest, contents, count } =
            *self.facts().get(&self.hash(receiver, kind, object))?;
        Some(LetterName { kind, object: *object, made, expires, manifest, contents, count })
    }

    fn facts(&self) -> MutexGuard<'_, BTreeMap<u64, Facts>> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The letter of an object in an inbox; where its sender put several, the least. `sure`: it was just seen in the store.
pub(crate) async fn find(
    engine: &Engine,
    receiver: &PublicKey,
    kind: LetterKind,
    object: &ObjectName,
    sure: bool,
) -> Result<Option<LetterName>, StoreFault> {
    if let Some(name) = engine.index.get(receiver, kind, object) {
        if !sure || engine.store.about(&names::letter(receiver, &name)).await?.is_some() {
            return Ok(Some(name));
        }
        engine.index.remove(receiver, kind, object);
    }
    let found = all(engine, receiver, kind, object).await?.into_iter().min();
    found.iter().for_each(|name| engine.index.insert(receiver, name));
    Ok(found)
}

/// All letters of an object in an inbox: one, but for a sender that said two things of it.
pub(crate) async fn all(
    engine: &Engine,
    receiver: &PublicKey,
    kind: LetterKind,
    object: &ObjectName,
) -> Result<Vec<LetterName>, StoreFault> {
    let _permit = engine.lists.acquire().await;
    let offset = names::before(receiver, kind, object);
    let mut listing = engine.store.list(&names::inbox(receiver), Some(&offset));
    // A bucket lists in order.
    let ordered = engine.store.folder().is_none();
    let mut found = Vec::new();
    while let Some(about) = listing.next().await {
        let Some((_, name)) = names::parse_letter(&about?.location) else { continue };
        if name.kind == kind && name.object == *object {
            found.push(name);
        } else if ordered {
            break;
        }
    }
    Ok(found)
}
