//! A client: what it says goes out as messages, what it hears is checked.

use std::io::{BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use strait_broker::engine::Client;
use strait_keying::PublicKey;
use strait_transfer::TransferId;
use strait_transfer::broker::message::{
    BrokerAnswer, BrokerRequest, FaultKind, Letter, LetterBox, LetterKind, MAX_DATA, ObjectName, ObjectPart,
};
use strait_transfer::message::{MessageReader, frame};

/// How long an answer may take: a machine with much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The key of the peer with this number.
pub(crate) fn key(number: u8) -> PublicKey {
    PublicKey::from_bytes([number; 32])
}

pub(crate) fn id(number: u64) -> TransferId {
    let mut bytes = [7; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    TransferId::from_bytes(bytes)
}

/// Who has this number.
pub(crate) fn who(number: u8) -> Client {
    Client { name: format!("peer-{number}"), key: key(number) }
}

/// Bytes that do not repeat, by a seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) struct TestClient {
    stream: UnixStream,
    reader: MessageReader<BufReader<UnixStream>>,
}

/// What an upload says beside its contents.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) id: TransferId,
    pub(crate) kind: LetterKind,
    pub(crate) made: i64,
    pub(crate) expires: i64,
    pub(crate) to: Vec<PublicKey>,
    pub(crate) manifest: Vec<u8>,
    pub(crate) contents: Vec<u8>,
}

impl Object {
    pub(crate) fn new(number: u64, to: &[u8], length: usize) -> Object {
        Object {
            id: id(number),
            kind: LetterKind::Transfer,
            made: strait_broker::now(),
            expires: strait_broker::now() + 3600,
            to: to.iter().map(|number| key(*number)).collect(),
            manifest: noise(!number, 300),
            contents: noise(number, length),
        }
    }

    pub(crate) fn put(&self) -> BrokerRequest {
        let Object { id, kind, made, expires, .. } = *self;
        BrokerRequest::Put { id, kind, made, expires, receivers: self.to.clone() }
    }
}

impl TestClient {
    pub(crate) fn new(stream: UnixStream) -> TestClient {
        let reader = MessageReader::new(BufReader::new(stream.try_clone().unwrap()));
        TestClient { stream, reader }
    }

    /// Says messages at once; false when the broker does not take them any more.
    pub(crate) fn try_say(&mut self, requests: &[BrokerRequest]) -> bool {
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| frame(request, &mut bytes));
        self.stream.write_all(&bytes).is_ok()
    }

    pub(crate) fn say(&mut self, requests: &[BrokerRequest]) {
        assert!(self.try_say(requests));
    }

    /// The next answer; nothing at the end.
    pub(crate) fn try_hear(&mut self) -> Option<BrokerAnswer> {
        loop {
            match self.reader.next_message().ok()?? {
                BrokerAnswer::Alive => {}
                other => return Some(other),
            }
        }
    }

    pub(crate) fn hear(&mut self) -> BrokerAnswer {
        self.try_hear().expect("the broker ended the stream")
    }

    /// The next answer that is not about the progress of an upload.
    pub(crate) fn outcome(&mut self) -> BrokerAnswer {
        loop {
            match self.hear() {
                BrokerAnswer::Held { .. } => {}
                other => return other,
            }
        }
    }

    /// What follows the welcome of an upload's place: (stored, next).
    pub(crate) fn begin(&mut self, object: &Object) -> (u64, u64) {
        self.say(&[object.put()]);
        match self.hear() {
            BrokerAnswer::Held { id, stored, next } if id == object.id => (stored, next),
            other => panic!("{other:?}"),
        }
    }

    /// Says contents from a place on to another; false when the broker does not take them.
    pub(crate) fn data(&mut self, object: &Object, from: usize, to: usize) -> bool {
        let mut at = from;
        while at < to {
            let end = to.min(at + MAX_DATA);
            let bytes = object.contents[at..end].to_vec();
            if !self.try_say(&[BrokerRequest::Data { at: at as u64, bytes }]) {
                return false;
            }
            at = end;
        }
        true
    }

    pub(crate) fn end(&mut self, object: &Object) {
        let mut all: Vec<_> = object
            .manifest
            .chunks(MAX_DATA)
            .map(|part| BrokerRequest::Manifest { bytes: part.to_vec() })
            .collect();
        all.push(BrokerRequest::Commit { contents: object.contents.len() as u64 });
        self.try_say(&all);
    }

    /// Puts an object and hears what came of it.
    pub(crate) fn upload(&mut self, object: &Object) -> BrokerAnswer {
        self.say(&[object.put()]);
        let next = match self.hear() {
            BrokerAnswer::Held { next, .. } => next,
            other => return other,
        };
        self.data(object, next as usize, object.contents.len());
        self.end(object);
        self.outcome()
    }

    /// The same without waiting for where to begin.
    pub(crate) fn upload_at_once(&mut self, object: &Object) -> BrokerAnswer {
        let first = object.contents.len().min(1000);
        self.say(&[object.put(), BrokerRequest::Data { at: 0, bytes: object.contents[..first].to_vec() }]);
        self.data(object, first, object.contents.len());
        self.end(object);
        self.outcome()
    }

    pub(crate) fn store(&mut self, object: &Object) {
        assert_eq!(self.upload(object), BrokerAnswer::Stored { id: object.id });
    }

    /// A page of letters, and where the next one begins.
    pub(crate) fn page(&mut self, which: LetterBox, after: Vec<u8>) -> (Vec<Letter>, Vec<u8>) {
        self.say(&[BrokerRequest::List { which, after }]);
        let mut all = Vec::new();
        loop {
            match self.hear() {
                BrokerAnswer::Letters(letters) => all.extend(letters),
                BrokerAnswer::ListEnd { next } => return (all, next),
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn list(&mut self, which: LetterBox) -> Vec<Letter> {
        let (mut all, mut after) = self.page(which, Vec::new());
        while !after.is_empty() {
            let (more, next) = self.page(which, after);
            all.extend(more);
            after = next;
        }
        all
    }

    /// Bytes of a part, or why not.
    pub(crate) fn read(
        &mut self,
        object: ObjectName,
        kind: LetterKind,
        part: ObjectPart,
        at: u64,
    ) -> Result<Vec<u8>, FaultKind> {
        self.say(&[BrokerRequest::Read { object, kind, part, at }]);
        let mut all = Vec::new();
        loop {
            match self.hear() {
                BrokerAnswer::Bytes(bytes) => all.extend(bytes),
                BrokerAnswer::ReadEnd { size } => {
                    assert_eq!(size, at + all.len() as u64);
                    return Ok(all);
                }
                BrokerAnswer::Refused { fault, .. } => return Err(fault.kind),
                other => panic!("{other:?}"),
            }
        }
    }

    /// Everything of an object that a peer put, compared.
    pub(crate) fn assert_has(&mut self, sender: u8, object: &Object) {
        let name = ObjectName { sender: key(sender), id: object.id };
        assert_eq!(self.read(name, object.kind, ObjectPart::Manifest, 0).unwrap(), object.manifest);
        assert!(self.read(name, object.kind, ObjectPart::Contents, 0).unwrap() == object.contents);
    }

    pub(crate) fn remove(&mut self, object: ObjectName) -> Result<(), FaultKind> {
        self.say(&[BrokerRequest::Remove { object, kind: LetterKind::Transfer }]);
        match self.hear() {
            BrokerAnswer::Removed { object: removed } if removed == object => Ok(()),
            BrokerAnswer::Refused { fault, .. } => Err(fault.kind),
            other => panic!("{other:?}"),
        }
    }

    /// Says no more, and hears the rest.
    pub(crate) fn finish(mut self) -> Vec<BrokerAnswer> {
        self.stream.shutdown(Shutdown::Write).unwrap();
        std::iter::from_fn(|| self.try_hear()).collect()
    }
}

/// Why an answer refuses.
pub(crate) fn why(answer: &BrokerAnswer) -> Option<FaultKind> {
    match answer {
        BrokerAnswer::Refused { fault, .. } => Some(fault.kind),
        _ => None,
    }
}
