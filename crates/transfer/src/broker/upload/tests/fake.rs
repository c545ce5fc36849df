//! A broker in memory. It keeps whole pieces when it is killed, and staged bytes while it is not; it remembers every byte of
//! ciphertext that it ever saw.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Mutex;

use crate::TransferId;
use crate::broker::message::{BrokerAnswer, BrokerFault, BrokerRequest, FaultKind, ObjectName};
use crate::message::{MessageReader, frame};

/// Bytes of a piece.
pub(super) const PIECE: usize = 150_000;

/// An object.
#[derive(Clone, Default)]
pub(super) struct FakeObject {
    pub(super) contents: Vec<u8>,
    pub(super) manifest: Vec<u8>,
    pub(super) committed: bool,
    /// What it was begun with.
    put: Option<BrokerRequest>,
}

/// See the module.
#[derive(Default)]
pub(super) struct FakeBroker {
    pub(super) objects: Mutex<BTreeMap<TransferId, FakeObject>>,
    /// All ciphertext ever seen of each id, and from where on it was sent each time.
    pub(super) seen: Mutex<BTreeMap<TransferId, Vec<u8>>>,
    /// All sealed manifests ever seen.
    pub(super) manifests: Mutex<Vec<Vec<u8>>>,
    /// Refuses objects once it has so many.
    pub(super) most: Option<usize>,
    /// Closes the stream where it should say that an object is stored.
    pub(super) rude: Mutex<bool>,
}

impl FakeBroker {
    /// Loses what is not durable.
    pub(super) fn kill(&self) {
        for object in self.objects.lock().unwrap().values_mut().filter(|object| !object.committed) {
            object.contents.truncate(object.contents.len() / PIECE * PIECE);
        }
    }

    /// Objects that were committed.
    pub(super) fn committed(&self) -> Vec<(TransferId, FakeObject)> {
        let objects = self.objects.lock().unwrap();
        objects
            .iter()
            .filter(|(_, object)| object.committed)
            .map(|(id, object)| (*id, object.clone()))
            .collect()
    }

    /// Serves one stream to its end.
    pub(super) fn serve(&self, stream: UnixStream) {
        let mut out = stream.try_clone().unwrap();
        let mut say = |answer: BrokerAnswer| {
            let mut bytes = Vec::new();
            frame(&answer, &mut bytes);
            out.write_all(&bytes).is_ok()
        };
        say(BrokerAnswer::Welcome { now: 0, room: None, largest: u64::MAX, keep: u64::MAX });
        let mut reader = MessageReader::new(std::io::BufReader::new(&stream));
        let mut current = None;
        while let Ok(Some(request)) = reader.next_message::<BrokerRequest>() {
            let Some(answer) = self.take(request, &mut current) else { continue };
            if matches!(answer, BrokerAnswer::Stored { .. }) && *self.rude.lock().unwrap() {
                break;
            }
            // A client that hears no more may have said more.
            say(answer);
        }
        let _ = stream.shutdown(Shutdown::Both);
    }

    fn take(&self, request: BrokerRequest, current: &mut Option<TransferId>) -> Option<BrokerAnswer> {
        let mut objects = self.objects.lock().unwrap();
        match request {
            BrokerRequest::Put { id, .. } => {
                *current = None;
                if self.most.is_some_and(|most| objects.len() >= most && !objects.contains_key(&id)) {
                    let fault = BrokerFault::new(FaultKind::SenderQuota, "");
                    return Some(BrokerAnswer::Refused { id: Some(id), fault });
                }
                let object = objects.entry(id).or_default();
                assert_eq!(object.put.get_or_insert(request.clone()), &request, "it is put again as it was");
                if object.committed {
                    return Some(BrokerAnswer::Stored { id });
                }
                *current = Some(id);
                object.manifest.clear();
                let next = object.contents.len() as u64;
                Some(BrokerAnswer::Held { id, stored: next / PIECE as u64 * PIECE as u64, next })
            }
            BrokerRequest::Data { at, bytes } => {
                let id = (*current)?;
                let at = usize::try_from(at).unwrap();
                let mut seen = self.seen.lock().unwrap();
                let seen = seen.entry(id).or_default();
                let both = seen.len().saturating_sub(at).min(bytes.len());
                assert!(seen.get(at..at + both) == Some(&bytes[..both]), "other bytes under a used key");
                seen.extend(&bytes[both..]);
                let object = objects.get_mut(&id)?;
                assert_eq!(at, object.contents.len(), "neither a gap nor anything twice");
                object.contents.extend(bytes);
                None
            }
            BrokerRequest::Manifest { bytes } => {
                objects.get_mut(&(*current)?)?.manifest.extend(bytes);
                None
            }
            BrokerRequest::Commit { contents } => {
                let id = current.take()?;
                let object = objects.get_mut(&id)?;
                assert_eq!(contents, object.contents.len() as u64);
                object.committed = true;
                self.manifests.lock().unwrap().push(object.manifest.clone());
                Some(BrokerAnswer::Stored { id })
            }
            BrokerRequest::Abandon { id } => {
                if objects.get(&id).is_some_and(|object| !object.committed) {
                    objects.remove(&id);
                }
                let sender = strait_keying::PrivateKey::generate(&[1; 32]).public();
                Some(BrokerAnswer::Removed { object: ObjectName { sender, id } })
            }
            BrokerRequest::Alive => None,
            _ => panic!("an upload does not say that"),
        }
    }
}
