//! Which letters there are: a small index over the store, and lists where it does not help.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use object_store::path::Path;
use strait_keying::PublicKey;
use strait_transfer::broker::message::{LetterKind, ObjectName};
use tokio::sync::mpsc;

use crate::engine::Engine;
use crate::names::{self, LetterName};
use crate::store::{Listing, StoreFault};

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

/// Letters that are listed at once: a page of S3.
const PAGE: usize = 1000;
/// Pages that may wait for who reads them.
const PAGES: usize = 2;

/// The letters of an inbox, a page at a time.
pub(crate) enum Inbox {
    /// As the store lists them.
    Listing(Box<Listing>, PublicKey),
    /// Names of a folder, which are read without a look at the files: ten times as fast.
    Folder(mpsc::Receiver<io::Result<Vec<LetterName>>>),
}

impl Inbox {
    /// Those of an inbox; in a bucket, those behind `offset`.
    pub(crate) fn open(engine: &Engine, receiver: &PublicKey, offset: Option<&Path>) -> Inbox {
        let inbox = names::inbox(receiver);
        let Some(folder) = engine.store.folder() else {
            return Inbox::Listing(Box::new(engine.store.list(&inbox, offset)), *receiver);
        };
        let (pages, told) = mpsc::channel(PAGES);
        let folder = folder.join(inbox.as_ref());
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read_names(&folder, &pages) {
                let _ = pages.blocking_send(Err(error));
            }
        });
        Inbox::Folder(told)
    }

    /// The next ones; nothing at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<LetterName>, StoreFault>> {
        match self {
            Inbox::Listing(listing, receiver) => {
                let mut page = Vec::new();
                while page.len() < PAGE {
                    match listing.next().await {
                        None if page.is_empty() => return None,
                        None => break,
                        Some(Err(fault)) => return Some(Err(fault)),
                        Some(Ok(about)) => {
                            let letter = names::parse_letter(&about.location);
                            page.extend(letter.filter(|(whose, _)| whose == receiver).map(|(_, name)| name));
                        }
                    }
                }
                Some(Ok(page))
            }
            Inbox::Folder(pages) => {
                let page = pages.recv().await?;
                Some(page.map_err(|error| StoreFault::Failed(error.to_string())))
            }
        }
    }
}

/// Reads the names of a folder, until it ends or none is wanted.
fn read_names(folder: &std::path::Path, pages: &mpsc::Sender<io::Result<Vec<LetterName>>>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    let mut page = Vec::with_capacity(PAGE);
    for entry in entries {
        page.extend(entry?.file_name().to_str().and_then(LetterName::parse));
        if page.len() == PAGE
            && pages.blocking_send(Ok(std::mem::replace(&mut page, Vec::with_capacity(PAGE)))).is_err()
        {
            return Ok(());
        }
    }
    let _ = pages.blocking_send(Ok(page));
    Ok(())
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
    let mut inbox = Inbox::open(engine, receiver, Some(&offset));
    // A bucket lists in order.
    let ordered = engine.store.folder().is_none();
    let mut found = Vec::new();
    while let Some(page) = inbox.next().await {
        let page = page?;
        let (before, length) = (found.len(), page.len());
        found.extend(page.into_iter().filter(|name| name.kind == kind && name.object == *object));
        if ordered && found.len() - before < length {
            break;
        }
    }
    Ok(found)
}
