//! Uploads that are open here: each has one stream. One that begins again, since its stream broke, takes over from the old one, which
//! puts what it has into the spool first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use strait_keying::PublicKey;
use strait_transfer::broker::message::{LetterKind, ObjectName};
use tokio::sync::{Notify, OwnedMutexGuard};
use tokio::time::timeout;

/// How long the old stream has to give way: as long as the store may take for a piece, since that is on its way to it.
const GIVE_WAY: Duration = Duration::from_secs(70);

type Key = (ObjectName, LetterKind);

/// The uploads. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Active(Arc<Mutex<BTreeMap<Key, Arc<Slot>>>>);

#[derive(Debug, Default)]
struct Slot {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// Tells who has it that another wants it.
    holder: Mutex<Option<Arc<Notify>>>,
}

/// An upload that is open on one stream.
#[derive(Debug)]
pub struct Claim {
    active: Active,
    key: Key,
    slot: Arc<Slot>,
    wanted: Arc<Notify>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl Active {
    /// Claims an upload; nothing if another stream does not give it up.
    pub async fn claim(&self, object: ObjectName, kind: LetterKind) -> Option<Claim> {
        let key = (object, kind);
        let slot = Arc::clone(self.lock().entry(key).or_default());
        let wanted = Arc::new(Notify::new());
        let mut claim = Claim { active: self.clone(), key, slot, wanted, guard: None };
        let lock = Arc::clone(&claim.slot.lock);
        let guard = match Arc::clone(&lock).try_lock_owned() {
            Ok(guard) => guard,
            Err(_) => {
                if let Some(holder) = &*claim.slot.holder.lock().unwrap_or_else(PoisonError::into_inner) {
                    holder.notify_one();
                }
                timeout(GIVE_WAY, lock.lock_owned()).await.ok()?
            }
        };
        *claim.slot.holder.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&claim.wanted));
        claim.guard = Some(guard);
        Some(claim)
    }

    /// Whether an object is being uploaded here.
    #[must_use]
    pub fn has(&self, object: &ObjectName) -> bool {
        [LetterKind::Transfer, LetterKind::Receipt]
            .iter()
            .any(|kind| self.lock().contains_key(&(*object, *kind)))
    }

    /// How many uploads of a sender are open, and how many of all.
    #[must_use]
    pub fn open(&self, sender: &PublicKey) -> (usize, usize) {
        let all = self.lock();
        (all.keys().filter(|(object, _)| object.sender == *sender).count(), all.len())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, Arc<Slot>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// Ready when another stream wants this upload.
    #[must_use]
    pub fn wanted(&self) -> Arc<Notify> {
        Arc::clone(&self.wanted)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.guard = None;
        let mut all = self.active.lock();
        // This one and the map's: no other waits for it.
        if Arc::strong_count(&self.slot) == 2 {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use strait_transfer::TransferId;

    #[tokio::test(flavor = "current_thread")]
    async fn who_comes_later_gets_it_when_the_other_has_given_way() {
        let (active, sender) = (Active::default(), PublicKey::from_bytes([1; 32]));
        let object = ObjectName { sender, id: TransferId::from_bytes([2; 16]) };
        let first = active.claim(object, LetterKind::Transfer).await.unwrap();
        assert!(active.has(&object));
        let wanted = first.wanted();
        let gives_way = async {
            wanted.notified().await;
            drop(first);
        };
        let (second, ()) = tokio::join!(active.claim(object, LetterKind::Transfer), gives_way);
        assert_eq!(active.open(&sender), (1, 1));
        drop(second);
        assert_eq!(active.open(&sender), (0, 0));
        assert!(!active.has(&object));
    }
}
