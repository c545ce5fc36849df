//! Which letters there are: a small index over the store, and lists where it does not help.

use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use object_store::path::Path;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{LetterKind, ObjectName};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;

use crate::engine::Engine;
use crate::names::{self, LetterName};
use crate::store::StoreFault;

/// Letters in each half of the index at most: some 6 MiB in all.
const HALF: usize = 50_000;
/// Lists at once: the store makes pages of a thousand names.
const LISTS: usize = 32;
/// Of these, lists that one peer asked for: eight peers together leave none.
const PEER_LISTS: usize = 4;
/// Letters in one list at most: a page of S3 (ListObjectsV2).
pub(crate) const PAGE: usize = 1000;

/// What the names of letters say, by a hash of receiver and object. What it says of one that is gone, or of another with the same hash, is
/// found out when the letter is opened.
///
/// It has two halves: when the new one is full, it takes the place of the old one. So the letters that came last are there, and no flood
/// of others empties it at once.
#[derive(Debug, Default)]
pub struct LetterIndex {
    hasher: RandomState,
    halves: Mutex<Halves>,
}

#[derive(Debug, Default)]
struct Halves {
    new: BTreeMap<u64, Facts>,
    old: BTreeMap<u64, Facts>,
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
        let mut halves = self.halves();
        if halves.new.len() >= HALF && !halves.new.contains_key(&hash) {
            halves.old = std::mem::take(&mut halves.new);
        }
        halves.new.insert(hash, Facts { made, expires, manifest, contents, count });
    }

    pub(crate) fn remove(&self, receiver: &PublicKey, kind: LetterKind, object: &ObjectName) {
        let hash = self.hash(receiver, kind, object);
        let mut halves = self.halves();
        halves.new.remove(&hash);
        halves.old.remove(&hash);
    }

    fn get(&self, receiver: &PublicKey, kind: LetterKind, object: &ObjectName) -> Option<LetterName> {
        let hash = self.hash(receiver, kind, object);
        let halves = self.halves();
        let Facts { made, expires, manifest, contents, count } =
            *halves.new.get(&hash).or_else(|| halves.old.get(&hash))?;
        Some(LetterName { kind, object: *object, made, expires, manifest, contents, count })
    }

    fn halves(&self) -> MutexGuard<'_, Halves> {
        self.halves.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists of the store take turns, so that no peer has all of them.
#[derive(Debug)]
pub(crate) struct Turns {
    all: Semaphore,
    /// Of peers that the configuration has, or had.
    own: Mutex<BTreeMap<PublicKey, Arc<Semaphore>>>,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { all: Semaphore::new(LISTS), own: Mutex::default() }
    }
}

impl Turns {
    /// The turn of a list that `asker` asked for, when it has come.
    async fn of(&self, asker: &PublicKey) -> (Option<OwnedSemaphorePermit>, Option<SemaphorePermit<'_>>) {
        let own = {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(own.entry(*asker).or_insert_with(|| Arc::new(Semaphore::new(PEER_LISTS))))
        };
        // Never closed.
        let own = own.acquire_owned().await.ok();
        (own, self.all.acquire().await.ok())
    }
}

/// Letters of an inbox whose names begin with `start` and come after `after`: a page at most, in the order of their names.
pub(crate) async fn page(
    engine: &Engine,
    asker: &PublicKey,
    receiver: &PublicKey,
    start: &str,
    after: &str,
) -> Result<Vec<LetterName>, StoreFault> {
    let _turn = engine.lists.of(asker).await;
    let inbox = names::inbox(receiver);
    let Some(folder) = engine.store.folder() else {
        return bucket_page(engine, &inbox, start, after).await;
    };
    let (folder, start, after) = (folder.join(inbox.as_ref()), start.to_owned(), after.to_owned());
    let place = folder.clone();
    let read = spawn_blocking(move || folder_page(&folder, &start, &after)).await;
    let noted = |error: io::Error| {
        let all = format!("{}: {error}", place.display());
        engine.store.note(StoreFault::of_system(&error, all))
    };
    read.map_err(io::Error::other).flatten().map_err(noted)
}

/// The page of a bucket, which lists in order.
async fn bucket_page(
    engine: &Engine,
    inbox: &Path,
    start: &str,
    after: &str,
) -> Result<Vec<LetterName>, StoreFault> {
    let offset = start.max(after);
    let offset = (!offset.is_empty()).then(|| inbox.clone().join(offset));
    let mut listing = engine.store.list(inbox, offset.as_ref());
    let mut page = Vec::new();
    while page.len() < PAGE
        && let Some(about) = listing.next().await
    {
        let about = about?;
        let Some(file) = about.location.filename().filter(|file| file.starts_with(start)) else { break };
        page.extend(LetterName::parse(file));
    }
    Ok(page)
}

/// The page of a folder, which lists in no order: the least names, by which a list goes on. The names are read without a look at the files.
fn folder_page(folder: &std::path::Path, start: &str, after: &str) -> io::Result<Vec<LetterName>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut least = BinaryHeap::new();
    for entry in entries {
        let file = entry?.file_name();
        let file = file.to_str().filter(|file| file.starts_with(start) && *file > after);
        if let Some(file) = file.filter(|file| LetterName::parse(file).is_some()) {
            least.push(file.to_owned());
        }
        if least.len() > PAGE {
            least.pop();
        }
    }
    Ok(least.into_sorted_vec().iter().filter_map(|file| LetterName::parse(file)).collect())
}

/// The letter of an object in an inbox; where its sender put several, the least. It was just seen in the store.
pub(crate) async fn find(
    engine: &Engine,
    asker: &PublicKey,
    receiver: &PublicKey,
    kind: LetterKind,
    object: &ObjectName,
) -> Result<Option<LetterName>, StoreFault> {
    if let Some(name) = engine.index.get(receiver, kind, object) {
        if engine.store.about(&names::letter(receiver, &name)).await?.is_some() {
            return Ok(Some(name));
        }
        engine.index.remove(receiver, kind, object);
    }
    let found = all(engine, asker, receiver, kind, object).await?.into_iter().min();
    found.iter().for_each(|name| engine.index.insert(receiver, name));
    Ok(found)
}

/// All letters of an object in an inbox: one, but for a sender that said two things of it.
pub(crate) async fn all(
    engine: &Engine,
    asker: &PublicKey,
    receiver: &PublicKey,
    kind: LetterKind,
    object: &ObjectName,
) -> Result<Vec<LetterName>, StoreFault> {
    page(engine, asker, receiver, &names::start(kind, object), "").await
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use strait_transfer::TransferId;

    fn key(number: u8) -> PublicKey {
        PublicKey::from_bytes([number; 32])
    }

    fn letter(number: usize) -> LetterName {
        let id = TransferId::from_bytes((number as u128).to_be_bytes());
        let object = ObjectName { sender: key(1), id };
        LetterName {
            kind: LetterKind::Transfer,
            object,
            made: 1,
            expires: 2,
            manifest: 3,
            contents: 4,
            count: 1,
        }
    }

    #[test]
    fn the_letters_that_came_last_are_in_the_index_however_many_came() {
        let index = LetterIndex::default();
        for number in 0..3 * HALF + 1 {
            index.insert(&key(2), &letter(number));
            let earlier = letter(number.saturating_sub(HALF - 1));
            assert_eq!(index.get(&key(2), earlier.kind, &earlier.object), Some(earlier));
        }
        let halves = index.halves();
        assert_eq!((halves.new.len(), halves.old.len()), (1, HALF));
        drop(halves);
        let last = letter(3 * HALF - 1);
        index.remove(&key(2), last.kind, &last.object);
        assert_eq!(index.get(&key(2), last.kind, &last.object), None, "of the old half");
    }

    #[test]
    fn a_peer_that_has_its_turns_leaves_those_of_others() {
        fn now<T>(future: impl Future<Output = T>) -> Option<T> {
            match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
                std::task::Poll::Ready(done) => Some(done),
                std::task::Poll::Pending => None,
            }
        }
        let turns = Turns::default();
        let own: Vec<_> = std::iter::from_fn(|| now(turns.of(&key(1)))).collect();
        assert_eq!(own.len(), PEER_LISTS);
        let other = now(turns.of(&key(2)));
        assert!(other.is_some());
        drop(own);
        assert!(now(turns.of(&key(1))).is_some());
    }
}
